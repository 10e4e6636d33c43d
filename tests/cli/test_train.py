"""`train`, `count` and `cut` as somebody new to them uses them: an empty folder, a text, processes, exit codes."""

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import run

KINDS = ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"]
SIZE = 400


def good(*args, **more) -> str:
    "What a call prints that succeeds."
    done = run(*args, **more)
    assert done.returncode == 0, (args, done.stderr.decode())
    return done.stdout.decode()


def refused(*args, **more) -> str:
    "The one line of a call that fails."
    done = run(*args, **more)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2 and len(lines) == 1 and lines[0].startswith("subword-nb: error: "), (
        args,
        done.returncode,
        done.stdout,
        done.stderr.decode()[-2000:],
    )
    return lines[0]


def story(seed: int, size: int) -> str:
    "A text of made-up words, a few of them frequent."
    rng = random.Random(seed)
    words = [
        "".join(rng.choice("abcdeilmnorstu") for _ in range(rng.randint(1, 8)))
        for _ in range(max(500, size // 40))
    ]
    out, n = [], 0
    while n < size:
        out.append(
            words[
                min(int(rng.paretovariate(0.7)) - 1, len(words) - 1)
                if rng.random() < 0.6
                else rng.randrange(len(words))
            ]
            + rng.choice(["", "", ".", ",\n", " naïve"])
        )
        n += len(out[-1]) + 1
    return " ".join(out) + "\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    "A folder with texts, and tokenizers and counts of each kind."
    folder = tmp_path_factory.mktemp("train")
    (folder / "a.txt").write_text(story(0, 30000))
    for kind in KINDS:
        said = good(
            "train",
            "a.txt",
            "--algorithm",
            kind,
            "--vocab-size",
            SIZE,
            "--special-token",
            "<s>",
            "-o",
            f"{kind}.json",
            cwd=folder,
        )
        assert said.startswith(f"{kind}.json: 400 pieces from ")
        said = good("count", "a.txt", "--algorithm", kind, "-o", f"{kind}.npz", cwd=folder)
        assert re.fullmatch(rf"{kind}\.npz: [\d,]+ pretokens, [\d,]+ distinct\n", said)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_counts_stand_for_their_corpus(home, tmp_path, kind):
    good(
        "train",
        f"{kind}.npz",
        "--algorithm",
        kind,
        "--vocab-size",
        SIZE,
        "--special-token",
        "<s>",
        "-o",
        tmp_path / "tok.json",
        cwd=home,
    )
    assert (tmp_path / "tok.json").read_bytes() == (home / f"{kind}.json").read_bytes()


@pytest.mark.parametrize("kind", ["bpe", "char_bpe"])
def test_parquet_counts_are_counts_or_refused_never_a_text(home, tmp_path, kind):
    pytest.importorskip("pyarrow")
    good("count", "a.txt", "--algorithm", kind, "-o", tmp_path / "c.parquet", cwd=home)
    done = run(
        "train",
        tmp_path / "c.parquet",
        "--algorithm",
        kind,
        "--vocab-size",
        SIZE,
        "--special-token",
        "<s>",
        "-o",
        tmp_path / "tok.json",
        cwd=home,
    )
    if done.returncode == 0:
        assert (tmp_path / "tok.json").read_bytes() == (home / f"{kind}.json").read_bytes()
    else:
        assert done.returncode == 2 and b".npz" in done.stderr


def test_counts_add_up(home, tmp_path):
    (tmp_path / "b.txt").write_text(story(1, 9000))
    good("count", "b.txt", "-o", "b.npz", cwd=tmp_path)
    said = good("count", home / "bpe.npz", "b.npz", "-o", "both.npz", cwd=tmp_path)

    def total(text):
        return int(re.search(r"([\d,]+) pretokens", text)[1].replace(",", ""))

    assert total(said) == total(good("count", home / "a.txt", "b.txt", "-o", "once.npz", cwd=tmp_path))
    for name in ("both", "once"):
        good("train", f"{name}.npz", "--vocab-size", SIZE, "-o", f"{name}.json", cwd=tmp_path)
    assert (tmp_path / "both.json").read_bytes() == (tmp_path / "once.json").read_bytes()
    assert "too low" in good("count", home / "a.txt", "--max-pretokens", 20, "-o", "few.npz", cwd=tmp_path)


@pytest.mark.parametrize("kind", ["bpe", "char_bpe", "wordpiece", "wordlevel"])
def test_cut_and_extend_are_direct_training(home, tmp_path, kind):
    small, more = ["--algorithm", kind, "--special-token", "<s>"], tmp_path / "more.json"
    good("train", home / "a.txt", *small, "--vocab-size", 350, "-o", "want.json", cwd=tmp_path)
    assert (
        good("cut", home / f"{kind}.json", "--vocab-size", 350, "-o", "cut.json", cwd=tmp_path)
        == "cut.json: 350 of 400 pieces\n"
    )
    assert (tmp_path / "cut.json").read_bytes() == (tmp_path / "want.json").read_bytes()
    good("train", home / "a.txt", "--extend", "cut.json", "--vocab-size", SIZE, "-o", more, cwd=tmp_path)
    assert more.read_bytes() == (home / f"{kind}.json").read_bytes()


def test_unigram_is_cut_with_text_or_counts(home, tmp_path):
    for source, name in ((home / "a.txt", "1"), (home / "unigram.npz", "2")):
        good("cut", home / "unigram.json", source, "--vocab-size", 200, "-o", tmp_path / f"{name}.json")
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    assert json.loads(good("inspect", tmp_path / "1.json", "--json"))["vocab_size"] == 200


def test_growing_a_word_list_of_another_text(home, tmp_path):
    (tmp_path / "b.txt").write_text("entirely other words stand here, zyx zyx zyx\n")
    assert good(
        "train",
        tmp_path / "b.txt",
        "--extend",
        home / "wordlevel.json",
        "--vocab-size",
        402,
        "-o",
        tmp_path / "tok.json",
    ).startswith(str(tmp_path / "tok.json"))


@pytest.mark.parametrize("kind", KINDS)
def test_like_keeps_the_special_tokens(home, tmp_path, kind):
    good(
        "train",
        home / "a.txt",
        "--like",
        home / f"{kind}.json",
        "--vocab-size",
        350,
        "--special-token",
        "<more>",
        "-o",
        tmp_path / "new.json",
    )
    old, new = (json.loads(p.read_text()) for p in (home / f"{kind}.json", tmp_path / "new.json"))
    assert new["pre_tokenizer"] == old["pre_tokenizer"] and new["normalizer"] == old["normalizer"]
    assert [t["content"] for t in new["added_tokens"]] == [t["content"] for t in old["added_tokens"]] + [
        "<more>"
    ]


def test_rows_samples_pipes_and_packed_texts(home, tmp_path):
    lines = (home / "a.txt").read_text().splitlines()
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"id": i, "doc": {"body": t}}) + "\n" for i, t in enumerate(lines))
    )
    with gzip.open(tmp_path / "a.txt.gz", "wt") as file:
        file.write((home / "a.txt").read_text())
    size = ["--vocab-size", SIZE, "--special-token", "<s>"]
    good("train", "a.txt.gz", *size, "-o", "1.json", cwd=tmp_path)
    good("train", "-", *size, "-o", "2.json", cwd=tmp_path, data=(home / "a.txt").read_bytes())
    good("train", *size, "-o", "3.json", cwd=tmp_path, data=(home / "a.txt").read_bytes())
    assert (
        len({(tmp_path / f"{i}.json").read_bytes() for i in (1, 2, 3)} | {(home / "bpe.json").read_bytes()})
        == 1
    )
    good("train", "rows.jsonl", "--field", "doc.body", *size, "-o", "4.json", cwd=tmp_path)
    for field in ("nothing", "id"):
        assert field in refused("train", "rows.jsonl", "--field", field, *size, "-o", "5.json", cwd=tmp_path)
    half = [
        good(
            "train",
            "rows.jsonl",
            "--field",
            "doc.body",
            "--sample",
            s,
            "--seed",
            k,
            *size,
            "-o",
            f"{n}.json",
            cwd=tmp_path,
        )
        for s, k, n in ((0.5, 0, "x"), (0.5, 0, "y"), (0.5, 1, "z"), (100, 1, "v"))
    ]
    assert (tmp_path / "x.json").read_bytes() == (tmp_path / "y.json").read_bytes() != (
        tmp_path / "z.json"
    ).read_bytes() and len({*half}) > 1


MISTAKES = {  # a call → what its error must say
    ("train", "a.txt"): "-o tok.json",
    ("train", "none.txt", "-o", "x.json"): "none.txt",
    ("train", "a.txt", "-o", "none/x.json"): "create it first",
    ("train", "a.txt", "-o", "x.json", "--algorithm", "bp"): "char_bpe",
    ("train", "a.txt", "-o", "x.json", "--vocab-size", "5"): "--vocab-size must be at least 256",
    ("train", "a.txt", "-o", "x.json", "--vocab-size", "-5"): "--vocab-size must be at least 256",
    (
        "train",
        "a.txt",
        "-o",
        "x.json",
        "--vocab-size",
        "-5",
        "--algorithm",
        "wordlevel",
    ): "--vocab-size must be at least 1",
    **{
        (
            "train",
            "a.txt",
            "-o",
            "x.json",
            "--vocab-size",
            "-5",
            "--algorithm",
            kind,
        ): "--vocab-size must be at least"
        for kind in ("char_bpe", "wordpiece", "unigram")
    },
    ("demo", "--vocab-size", "-5"): "--vocab-size must be at least 257",
    ("cut", "bpe.json", "--vocab-size", "-5", "-o", "x.json"): "--vocab-size must be at least 257",
    ("train", "a.txt", "-o", "x.json", "--sample", "lots"): "0.1",
    ("train", "a.txt", "-o", "x.json", "--sample", "0"): "0.1",
    ("train", "a.txt", "-o", "x.json", "--field", "text"): "field must be left out for files of text",
    ("train", "a.txt", "-o", "x.json", "-O", "nothing=1"): "bpe has",
    ("train", "a.txt", "-o", "x.json", "-O", "nothing"): "=VALUE",
    ("train", "a.txt", "-o", "x.json", "--checkpoint", "."): "name a folder that is empty",
    ("train", "a.txt", "-o", "x.json", "--checkpoint", "a.txt"): "folder",
    ("train", "bpe.npz", "-o", "x.json", "--checkpoint", "run"): "leave out checkpoint",
    ("train", "bpe.npz", "-o", "x.json", "--field", "text"): "counts",
    ("train", "bpe.npz", "-o", "x.json", "--sample", "0.5"): "counts",
    ("train", "bpe.npz", "a.txt", "-o", "x.json"): "counts",
    ("train", "bpe.npz", "-o", "x.json", "--algorithm", "wordpiece"): "count the corpus again",
    ("train", "a.txt", "--like", "bpe.json", "--extend", "bpe.json", "-o", "x.json"): "--like",
    (
        "train",
        "a.txt",
        "--like",
        "bpe.json",
        "--normalizer",
        "nfc",
        "-o",
        "x.json",
    ): "--normalizer must be left out with --like",
    ("train", "a.txt", "--extend", "bpe.json", "--special-token", "<x>", "-o", "x.json"): "use --like",
    ("train", "a.txt", "--extend", "bpe.json", "--vocab-size", "300", "-o", "x.json"): "cut",
    ("train", "a.txt", "--extend", "unigram.json", "--vocab-size", "500", "-o", "x.json"): "cannot grow",
    ("train", "a.txt", "--like", "none.json", "-o", "x.json"): "none.json",
    ("train", "a.txt", "-o", "x.json", "--threads", "0"): "threads",
    ("count", "a.txt"): "-o counts.npz",
    ("count", "none.txt", "-o", "x.npz"): "none.txt",
    ("count", "a.txt", "-o", "x.json"): ".npz or .parquet",
    ("count", "a.txt", "-o", "none/x.npz"): "folder none",
    ("count", "a.txt", "-o", "x.npz", "--max-pretokens", "0"): "max",
    ("cut", "bpe.json", "-o", "x.json"): "--vocab-size",
    ("cut", "bpe.json", "--vocab-size", "300"): "cut needs",
    ("cut", "bpe.json", "--vocab-size", "30", "-o", "x.json"): "--vocab-size must be at least 257",
    ("cut", "bpe.json", "--vocab-size", "3000", "-o", "x.json"): "400",
    ("cut", "bpe.json", "a.txt", "--vocab-size", "300", "-o", "x.json"): "Unigram",
    ("cut", "unigram.json", "--vocab-size", "300", "-o", "x.json"): "corpus",
    ("cut", "none.json", "--vocab-size", "300", "-o", "x.json"): "none.json",
}


@pytest.mark.parametrize("call", MISTAKES, ids=" ".join)
def test_a_mistake_is_one_line_that_names_the_way_out(home, call):
    before = sorted(p.name for p in home.iterdir())
    line = refused(*call, cwd=home)
    assert MISTAKES[call] in line, line
    assert not re.search(r"train_new|truncate|source=|vocab_size|max_pretokens=", line), (
        f"Python words at a shell: {line}"
    )
    assert sorted(p.name for p in home.iterdir()) == before


def test_damaged_counts_are_one_line(home, tmp_path):
    data = (home / "bpe.npz").read_bytes()
    for name, bad in (
        ("cut", data[: len(data) // 2]),
        ("none", b""),
        ("noise", b"PK" + random.Random(0).randbytes(200)),
    ):
        (tmp_path / f"{name}.npz").write_bytes(bad)
        assert f"{name}.npz" in refused("train", f"{name}.npz", "-o", "x.json", cwd=tmp_path)


def test_a_checkpoint_is_gone_on_with_and_that_of_another_run_refused(home, tmp_path):
    args = ["train", home / "a.txt", "--vocab-size", SIZE, "--special-token", "<s>", "--checkpoint", "run"]
    for name in ("1.json", "2.json"):
        good(*args, "-o", name, cwd=tmp_path)
        assert (tmp_path / name).read_bytes() == (home / "bpe.json").read_bytes()
    assert "another run" in refused(*args, "--tie-break", "first", "-o", "3.json", cwd=tmp_path)
    assert not (tmp_path / "3.json").exists()


def cpu_seconds(pid):
    "CPU time that a process has used; where the system does not tell it, the time since the first question."
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic() - ASKED.setdefault(pid, time.monotonic())
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


ASKED = {}


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False], ids=["checkpoint", "plain"])
def test_ctrl_c_says_what_is_kept(tmp_path, kept):
    (tmp_path / "a.txt").write_text("".join(story(i, 600_000) for i in range(24)))
    command = [
        sys.executable,
        "-m",
        "subword_nb",
        "train",
        "a.txt",
        "--algorithm",
        "unigram",
        "--vocab-size",
        "3000",
        "-o",
        "tok.json",
        *(["--checkpoint", "run"] if kept else []),
    ]
    heard = (
        {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)} if os.name == "posix" else {}
    )  # also where the tests were started in the background, which does not hear it
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SUBWORD_NB_QUIET": "1"},
        **heard,
    ) as child:
        due = time.monotonic() + 600
        while (
            kept and not [*(tmp_path / "run").glob("*")] and time.monotonic() < due
        ):  # until there is something to keep
            time.sleep(0.02)
        while (
            not kept and cpu_seconds(child.pid) < 2.5 and time.monotonic() < due
        ):  # it has loaded what it needs, and is at work
            time.sleep(0.02)
        time.sleep(0.3 if kept else 0)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
    assert child.returncode == 130 and out == b""
    assert (b"finished work is in run" if kept else b"nothing was written") in err and b"Traceback" not in err
    assert not (tmp_path / "tok.json").exists()
    if kept:
        good(*command[3:], cwd=tmp_path)
        good(
            "train", "a.txt", "--algorithm", "unigram", "--vocab-size", 3000, "-o", "want.json", cwd=tmp_path
        )
        assert (tmp_path / "tok.json").read_bytes() == (tmp_path / "want.json").read_bytes()


@pytest.mark.slow
def test_ctrl_c_while_kernels_compile_keeps_the_checkpoint(tmp_path):
    "The signal comes as soon as compiling is announced; the same command then ends as one that nobody stopped."
    pytest.importorskip("numba")
    (tmp_path / "a.txt").write_text("".join(story(i, 200_000) for i in range(12)))
    command = [
        sys.executable,
        "-m",
        "subword_nb",
        "train",
        "a.txt",
        "--vocab-size",
        "600",
        "-o",
        "tok.json",
        "--checkpoint",
        "run",
    ]
    env = {k: v for k, v in os.environ.items() if k != "SUBWORD_NB_QUIET"} | {
        "SUBWORD_NB_JIT": "1",  # compiled in place, and not taken out of the library
        "SUBWORD_NB_CACHE": str(tmp_path / "cache"),
        "SUBWORD_NB_BULK": "4096",
    }
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)} if os.name == "posix" else {}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **heard
    ) as child:
        assert b"compiling" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=300)
    assert (child.returncode, out) == (130, b"") and b"finished work is in run" in err
    assert b"Traceback" not in err and b"ignored" not in err and not (tmp_path / "tok.json").exists()
    good(*command[3:], cwd=tmp_path)
    good(*command[3:-2], "-o", "want.json", cwd=tmp_path)
    assert (tmp_path / "tok.json").read_bytes() == (tmp_path / "want.json").read_bytes()
