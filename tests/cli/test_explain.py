"""`explain` and `compare` as a shell uses them: exit codes, one line per mistake, files, pipes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run

from subword_nb.insight.compare import compare, comparison_html, comparison_text
from subword_nb.corpus.documents import default_corpus
from subword_nb.insight.explain_draw import explanation_html, explanation_text
from subword_nb.tokenizer.tokenizer import Tokenizer

TEXT = "An iterator isn't naïve: 你好 <s>"


def good(*args, **more) -> str:
    done = run(*args, **more)
    assert done.returncode == 0 and not done.stderr, (args, done.stderr.decode())
    return done.stdout.decode()


def refused(*args, **more) -> str:
    done = run(*args, **more)
    lines = done.stderr.decode().splitlines()
    assert (
        done.returncode == 2
        and not done.stdout
        and len(lines) == 1
        and lines[0].startswith("subword-nb: error: ")
    ), (args, done.returncode, done.stdout, done.stderr.decode()[-2000:])
    return lines[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    "A folder with tokenizers and texts."
    folder = tmp_path_factory.mktemp("explain")
    for kind in ("bpe", "wordpiece", "unigram"):
        Tokenizer.train(default_corpus()[:10], algorithm=kind, vocab_size=400, special_tokens=["<s>"]).save(
            folder / f"{kind}.json"
        )
    (folder / "text.txt").write_text(TEXT + "\n", encoding="utf-8")
    (folder / "lines.txt").write_text("one\n\ntwo\n", encoding="utf-8")
    (folder / "bad.txt").write_bytes(b"a\xffb")
    (folder / "copy").mkdir()
    (folder / "copy" / "bpe.json").write_bytes((folder / "bpe.json").read_bytes())
    return folder


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_explain_says_what_the_library_says(home, kind):
    e = Tokenizer.load(home / f"{kind}.json").explain(TEXT)
    ask = ["explain", "-t", f"{kind}.json", TEXT]
    assert good(*ask, "--width", 90, cwd=home) == explanation_text(e, color=False, width=90) + "\n"
    assert (
        good(*ask, "--width", 90, "--words", 2, "--color", cwd=home)
        == explanation_text(e, color=True, width=90, words=2) + "\n"
    )
    assert json.loads(good(*ask, "--json", cwd=home)) == e.to_dict()
    plain = Tokenizer.load(home / f"{kind}.json").explain(TEXT, allowed_special=(), add_special_tokens=False)
    assert json.loads(good(*ask, "--json", "--plain", "--bare", cwd=home)) == plain.to_dict() != e.to_dict()


def test_compare_says_what_the_library_says(home):
    c = compare(
        Tokenizer.load(home / "bpe.json"),
        Tokenizer.load(home / "wordpiece.json"),
        TEXT,
        names=("bpe.json", "wordpiece.json"),
    )
    ask = ["compare", "-t", "bpe.json", "-t", "wordpiece.json", TEXT]
    assert good(*ask, "--width", 70, cwd=home) == comparison_text(c, color=False, width=70) + "\n"
    assert good(*ask, "--width", 70, "--color", cwd=home) == comparison_text(c, color=True, width=70) + "\n"
    assert json.loads(good(*ask, "--json", cwd=home)) == c.to_dict()
    assert json.loads(good(*ask, "--json", "--plain", cwd=home))["counts"] > list(c.counts)
    twins = json.loads(good("compare", "-t", "bpe.json", "-t", "copy/bpe.json", "--json", "a", cwd=home))
    assert twins["names"] == ["bpe.json", "copy/bpe.json"] and twins["boundaries"]["only_first"] == 0


@pytest.mark.parametrize(
    "ask",
    [["explain", "-t", "bpe.json"], ["compare", "-t", "bpe.json", "-t", "unigram.json"]],
    ids=lambda a: a[0],
)
def test_files_pipes_and_lines(home, ask):
    data = (home / "text.txt").read_bytes()
    of_file = good(*ask, "--file", "text.txt", "--json", cwd=home)
    assert json.loads(of_file)["text"] == TEXT + "\n"
    assert (
        good(*ask, "--json", data=data, cwd=home)
        == good(*ask, "--json", "-f", "-", data=data, cwd=home)
        == of_file
    )
    rows = [
        json.loads(row)["text"]
        for row in good(*ask, "--json", "--lines", "-f", "lines.txt", "-f", "text.txt", cwd=home).splitlines()
    ]
    assert rows == ["one", "", "two", TEXT]
    assert good(*ask, "--lines", data=b"", cwd=home) == ""
    assert (
        json.loads(good(*ask, "--json", "--errors", "replace", "-f", "bad.txt", cwd=home))["text"]
        == "a\ufffdb"
    )


@pytest.mark.parametrize(
    "ask",
    [["explain", "-t", "bpe.json"], ["compare", "-t", "bpe.json", "-t", "unigram.json"]],
    ids=lambda a: a[0],
)
def test_what_the_name_of_the_file_says(home, tmp_path, ask):
    toks = [Tokenizer.load(home / f"{n}.json") for n in ("bpe", "unigram")]
    found = (
        toks[0].explain(TEXT)
        if ask[0] == "explain"
        else compare(*toks, TEXT, names=("bpe.json", "unigram.json"))
    )
    html = explanation_html(found) if ask[0] == "explain" else comparison_html(found)
    for name in ("a.html", "a.json", "a.txt"):
        assert good(*ask, "-o", tmp_path / name, TEXT, cwd=home) == ""
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert (
        page.startswith("<!doctype html>")
        and html in page
        and not [x for x in ("<script", "href", "src=", "@import") if x in page]
    )
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == found.to_dict()
    assert "\x1b" not in (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert good(*ask, "-o", tmp_path / "two.html", "--lines", "-f", "lines.txt", cwd=home) == ""
    assert (tmp_path / "two.html").read_text(encoding="utf-8").count("<hr>") == 2


@pytest.mark.parametrize(
    "args, message",
    [
        (["explain", "a"], "explain needs a tokenizer: add -t tok.json"),
        (["explain", "-t", "none.json", "a"], "none.json"),
        (["explain", "-t", "bpe.json", "two", "words"], 'put it in quotes: "two words"'),
        (["explain", "-t", "bpe.json", "a", "-f", "text.txt"], "--file must be left out where TEXT is given"),
        (["explain", "-t", "bpe.json", "-f", "bad.txt"], "add --errors replace"),
        (["explain", "-t", "bpe.json", "-f", "none.txt"], "none.txt"),
        (["explain", "-t", "bpe.json", "a", "--words", "-1"], "--words must be a number of pretokens"),
        (["explain", "-t", "bpe.json", "a", "--json", "-o", "a.html"], "--out must end in .json with --json"),
        (["explain", "-t", "bpe.json", "a", "--form", "x"], "explain --help"),
        (["explain", "-t", "bpe.json", "--piece", "a"], "add --trace run.npz"),
        (["explain", "-t", "bpe.json", "--trace", "run.npz"], "add --piece ing"),
        (
            ["explain", "-t", "bpe.json", "--piece", "a", "--trace", "run.npz", "text"],
            "leave one of them out",
        ),
        (["explain", "-t", "bpe.json", "--piece", "a", "--trace", "none.npz"], "there is no such file"),
        (["explain", "-t", "bpe.json", "--piece", "a", "--trace", "text.txt"], "must be a trace of training"),
        (
            ["compare", "-t", "bpe.json", "a"],
            "--tokenizer must be given twice, got 1: add -t a.json -t b.json",
        ),
        (["compare", "a"], "got 0"),
        (["compare", "-t", "bpe.json", "-t", "bpe.json", "-t", "bpe.json", "a"], "got 3"),
        (["compare", "-t", "bpe.json", "-t", "none.json", "a"], "none.json"),
        (["compare", "-t", "bpe.json", "-t", "unigram.json", "-f", "bad.txt"], "add --errors replace"),
    ],
    ids=lambda a: " ".join(a)[:40] if isinstance(a, list) else "",
)
def test_mistakes_are_one_line(home, args, message):
    before = sorted(p.name for p in home.iterdir())
    assert message in refused(*args, cwd=home)
    assert sorted(p.name for p in home.iterdir()) == before


def test_why_a_piece_is_in_the_vocabulary(tmp_path):
    (tmp_path / "a.txt").write_text("hug hug pug pun bun hugs hugs hug\n" * 9, encoding="utf-8")
    good("train", "a.txt", "--vocab-size", 262, "--trace", "run.npz", "-o", "tok.json", cwd=tmp_path)
    tok = Tokenizer.load(tmp_path / "tok.json")
    ask = ["explain", "-t", "tok.json", "--trace", "run.npz"]
    explained = [tok.explain_training(p, trace=str(tmp_path / "run.npz")) for p in ("ug", "Ġhug")]
    assert (
        good(*ask, "--piece", "ug", "--piece", "Ġhug", cwd=tmp_path) == f"{explained[0]}\n\n{explained[1]}\n"
    )
    assert json.loads(good(*ask, "--piece", "ug", "--json", cwd=tmp_path)) == explained[0].to_dict()
    assert good(*ask, "--piece", "ug", "-o", "ug.html", cwd=tmp_path) == "" and explained[0].summary.split()[
        0
    ] in (tmp_path / "ug.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_help_teaches_by_example(command):
    said = run(command, "--help", COLUMNS="100").stdout.decode()
    assert f"subword-nb {command} -t" in said and "--json" in said and "Traceback" not in said
    assert command in run("--help", COLUMNS="100").stdout.decode()


def test_hostile_text_reaches_no_terminal(home):
    text = "\x1b[31m \u202e <script>"
    for ask in (["explain", "-t", "bpe.json"], ["compare", "-t", "bpe.json", "-t", "wordpiece.json"]):
        assert not set(good(*ask, data=text.encode(), cwd=home)) & set("\x1b\u202e")


def test_a_reader_that_goes_away_is_no_error(home):
    command = (
        f'"{sys.executable}" -m subword_nb explain -t bpe.json --words 99 --json -f text.txt | head -c 10'
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=home)
    assert len(done.stdout) == 10 and not done.stderr


def test_a_merge_is_drawn_once(tmp_path):
    "aaaa is aa twice: what aa is made of is drawn at the first, and a piece that is asked for twice is told of once."
    (tmp_path / "a.txt").write_text("aaaa aaaaaaaa banana\n" * 5)
    good("train", "a.txt", "--vocab-size", 262, "-o", "tok.json", "--trace", "run.npz", cwd=tmp_path)
    ask = ["explain", "-t", "tok.json", "--trace", "run.npz", "--piece", "aaaa"]
    said = good(*ask, cwd=tmp_path)
    tree = [
        line
        for line in said.splitlines()
        if line.lstrip("│├└─ ").split("  ")[0] in ("aaaa", "aa", "a")
        and "×" in line
        or line[:2] in ("├─", "│ ", "└─")
    ]
    assert tree == ["aaaa  1: 20×", "├─ aa  0: 50×", "│  ├─ a", "│  └─ a", "└─ aa"]
    assert good(*ask, "--piece", "aaaa", cwd=tmp_path) == said
    facts = json.loads(good(*ask, "--json", cwd=tmp_path))
    assert (
        facts["tree"]["left"] == facts["tree"]["right"] and facts["tree"]["left"]["count"] == 50
    )  # plain data has all of it
