"""Pictures of explanations: everything is there, nothing is unsafe, and text and page say the same."""

import json
import random
import re
import xml.etree.ElementTree as ET
from html import unescape

import pytest
from notebooks import ROOT
from pages import Page

from subword_nb.corpus.documents import default_corpus
from subword_nb.core.draw import cell_width
from subword_nb.insight.explain_draw import (
    draw_trials,
    explanation_html,
    explanation_text,
    merge_trees_of,
    plot_ranks,
    reader,
)
from subword_nb.tokenizer.tokenizer import Tokenizer

TEXTS = [
    "",
    " ",
    "a",
    "An iterator isn't trivial!",
    "naïve Ünïcödé  x",
    "你好, 世界 🤗👩‍👩‍👧",
    "e\u0301\u0301 ﬁ Ⅳ İ",
    "\n\n\t tabs\r\nand lines \n",
    "1234567 3.14",
    "the cat the cat",
    "<s>special</s>",
]
HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="x',
    "&amp;<b>",
    "\u202edrow",
    "\x1b[31m",
    "\x00",
    "e" + "\u0300" * 99,
    "\u0300",
    "\u2066x\u2069\u200b",
    "</details></div>",
    "a" * 6000,
    "ab " * 2000,
    "東京" * 50,
]
UNSAFE = set("\x1b\x00\u202e\u200b\u2066\u2069")


@pytest.fixture(scope="module")
def toks() -> dict:
    "Tokenizers of every kind."
    docs = default_corpus()[:12] + ["naïve Ünïcödé 你好 🤗 " * 5]

    def make(kind, **more):
        return Tokenizer.train(docs, algorithm=kind, vocab_size=600, **more)

    return {
        "bpe": make("bpe", special_tokens=["<s>", "</s>"]),
        "char": make("char_bpe", unk_piece="<unk>", end_of_word_suffix="</w>"),
        "fallback": make("char_bpe", byte_fallback=True),
        "wordpiece": make("wordpiece", objective="frequency"),
        "unigram": make("unigram"),
        "wordlevel": make("wordlevel"),
        "nfkc": make("unigram", normalizer="nfkc"),
        "whole": make("unigram", pre_tokenizer=None),
    }


def check_page(html: str) -> Page:
    "What holds for every drawing in a page."
    page = Page(html)
    assert set(page.tags) <= {
        "div",
        "span",
        "b",
        "bdi",
        "br",
        "details",
        "summary",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "title",
        "rect",
        "text",
        "tspan",
        "path",
        "circle",
    }
    assert (
        not [a for _, a, v in page.attrs if a.startswith("on") or a in ("href", "src", "class", "id")]
        and "url(" not in html
    )
    assert not set(html) & UNSAFE
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        root = ET.fromstring(svg)
        assert root.get("role") == "img" and root.get("aria-label")
    for _, name, style in page.attrs:
        if (
            name == "style" and "background:" in style and "width:" not in style.replace("max-width:", "")
        ):  # the inside of a bar holds no text
            assert re.search(r"(^|;)color:#", style), style
    return page


def test_all_kinds_on_all_texts(toks):
    for name, tok in toks.items():
        for text in TEXTS:
            e = tok.explain(text)
            html, plain = explanation_html(e, words=99), explanation_text(e, color=False, width=200, words=99)
            said = unescape("".join(check_page(html).text))
            for t in e.to_dict()["tokens"]:
                assert t["shown"] in plain and t["shown"] in said, (name, text, t)
            distinct = len({w["why"] for w in e.to_dict()["words"]})
            assert html.count("<details") == distinct
            assert html == explanation_html(
                json.loads(json.dumps(e.to_dict())), words=99
            ) and plain == explanation_text(e.to_dict(), color=False, width=200, words=99)


def test_hostile_texts(toks):
    for name, tok in toks.items():
        for text in HOSTILE:
            e = tok.explain(text)
            html = explanation_html(e)
            check_page(html)
            assert len(html) < 500_000, (name, text[:20], len(html))
            for width in (20, 60):
                plain = explanation_text(e, color=False, width=width)
                assert not set(plain) & UNSAFE and max(map(cell_width, plain.split("\n"))) <= width, (
                    name,
                    text[:20],
                )
                assert len(plain) < 100_000


def test_hostile_data():
    "Labels that no model gives, in every field."
    for s in [*HOSTILE[:11], "", "x" * 5000]:
        word = {"start": 0, "end": 1, "pretoken": s, "shown": s, "why": 0, "tokens": [0, 1]}
        token = {
            "id": 1,
            "piece": s,
            "shown": s,
            "bytes": "",
            "start": 0,
            "end": 1,
            "word": 0,
            "special": False,
        }
        reasons = [
            {
                "kind": "bpe",
                "symbols": [s, s, s],
                "steps": [
                    {
                        "rank": None,
                        "score": -1.5,
                        "left": s,
                        "right": s,
                        "piece": s,
                        "at": 1,
                        "start": 0,
                        "end": 1,
                    }
                ],
                "pieces": [s, s],
                "note": s,
            },
            {
                "kind": "wordpiece",
                "trials": [{"start": 0, "end": len(s), "piece": s, "found": f} for f in (False, True)],
                "links": [{"at": 0, "char": s, "from": s, "pops": [s], "to": s}],
                "pieces": [s],
                "note": s,
            },
            {
                "kind": "unigram",
                "arcs": [
                    {
                        "start": 0,
                        "end": len(s),
                        "piece": s,
                        "id": None,
                        "score": None,
                        "marginal": 1.0,
                        "best": True,
                        "unknown": True,
                    }
                ]
                * bool(s),
                "paths": [{"pieces": [s] * 99, "score": -1.0, "gap": 0.0, "probability": 1.0}],
                "total": 0.0,
                "pieces": [s],
                "note": s,
            },
            {"kind": "wordlevel", "found": False, "pieces": [s], "note": s},
            {"kind": s, "pieces": [s], "note": None},
        ]
        part = {
            "start": 0,
            "end": 1,
            "added": s,
            "normalized": s,
            "changes": [{"start": 0, "end": 1, "before": s, "after": s}],
        }
        for reason in reasons:
            data = {
                "text": s,
                "model": s,
                "parts": [part],
                "words": [word] * 3,
                "reasons": [reason],
                "tokens": [token],
            }
            assert "(3 times)" in "".join(check_page(explanation_html(data)).text)
            plain = explanation_text(data, color=False, width=50)
            assert not set(plain) & UNSAFE and max(map(cell_width, plain.split("\n"))) <= 50, (
                s[:9],
                reason["kind"][:9],
            )


def leaves(tree) -> list:
    return leaves(tree[1]) + leaves(tree[2]) if isinstance(tree, tuple) else [tree]


def root(tree):
    return tree[0] if isinstance(tree, tuple) else tree


def test_trees_have_the_symbols_as_leaves_and_the_pieces_as_roots(toks):
    for name in ("bpe", "char", "fallback"):
        for text in TEXTS[3:8]:
            data = toks[name].explain(text).to_dict()
            for reason in data["reasons"]:
                trees = merge_trees_of(reason)
                assert [x for t in trees for x in leaves(t)] == reason["symbols"] and [
                    root(t) for t in trees
                ] == reason["pieces"]


def test_byte_level_pieces_are_read_as_bytes(toks):
    data = toks["bpe"].explain("naïve 你").to_dict()
    read = reader(data)
    assert b"".join(read(s) for r in data["reasons"] for s in r["symbols"]).decode() == "naïve 你"
    for name in ("char", "wordpiece", "unigram"):
        read = reader(toks[name].explain("naïve 你").to_dict())
        assert [read(s) for s in ("ï", "Ġa", "é")] == ["ï", "Ġa", "é"]
    said = explanation_text(toks["bpe"].explain("the tokens 你"), color=False, width=120)
    assert (
        "⟨E4" in said
        and "Ġt" in said
        and "Ġt" not in explanation_text(toks["char"].explain("the tokens 你"), color=False, width=120)
    )


def random_trials(rng):
    word, at, out = "".join(rng.choices("abé京", k=rng.randrange(1, 12))), 0, []
    while at < len(word):
        last = rng.randrange(at + 1, len(word) + 1) if rng.random() < 0.95 else at
        out += [
            {"start": at, "end": end, "piece": "##" * (at > 0) + word[at:end], "found": end == last}
            for end in range(len(word), max(last, at + 1) - 1, -1)
        ]
        if last == at:
            break
        at = last
    return word, out


def test_random_trials():
    rng = random.Random(0)
    for _ in range(200):
        word, trials = random_trials(rng)
        figure = draw_trials(word, trials, limit=999)
        root = ET.fromstring(figure.svg)
        lines = figure.text.split("\n")
        hidden = sum(
            int(re.search(r"… ([\d,]+) shorter", ln)[1].replace(",", "")) for ln in lines if "shorter" in ln
        )
        shown = [ln for ln in lines if "shorter" not in ln]
        assert len(shown) + hidden == len(trials) and figure.svg.count("<rect") == len(shown)
        assert figure.text.count("✓") == sum(t["found"] for t in trials) == figure.svg.count('stroke="#666"')
        wide = float(root.get("width"))
        for r in root.iter("{http://www.w3.org/2000/svg}rect"):
            left, width = float(r.get("x")), float(r.get("width"))
            assert left >= 0 and left + width <= wide
        cut = draw_trials(word, trials, limit=3)
        assert ("more trials" in cut.text) == (len(lines) > 3)


def test_long_words_are_cut_and_counted(toks):
    text = "ab" * 2000
    said = {
        name: explanation_text(toks[name].explain(text), color=False, width=100)
        for name in ("bpe", "wordpiece", "unigram", "whole")
    }
    assert all("more" in s for s in said.values())
    assert "characters more" in explanation_html(toks["whole"].explain("the cat sat " * 20))
    deep = {
        "kind": "bpe",
        "symbols": ["a"] * 400,
        "steps": [
            {
                "rank": k,
                "score": None,
                "left": "a" * (k + 1),
                "right": "a",
                "piece": "a" * (k + 2),
                "at": 0,
                "start": 0,
                "end": k + 2,
            }
            for k in range(399)
        ],
        "pieces": ["a" * 400],
        "note": None,
    }
    data = {
        "text": "",
        "model": "BPE",
        "parts": [],
        "words": [
            {"start": 0, "end": 400, "pretoken": "a" * 400, "shown": "a" * 400, "why": 0, "tokens": [0, 1]}
        ],
        "reasons": [deep],
        "tokens": [],
    }
    assert "Too big to draw: 1 piece" in explanation_html(
        data
    ) and "… and 359 merges more" in explanation_text(data, color=False, width=80)
    assert "… and 359 merges more" in explanation_text(
        data, color=False, width=80, limit=40
    ) and "… and 389 merges more" in explanation_text(data, color=False, width=80, limit=10)


def test_many_words_are_counted(toks):
    e = toks["wordpiece"].explain(" ".join(map(str, range(100, 160))))
    distinct = len({w["why"] for w in e.to_dict()["words"]})
    for n in (0, 1, 12):
        assert explanation_html(e, words=n).count(
            "<details"
        ) == n and f"… and {distinct - n} distinct pretokens more" in explanation_html(e, words=n)
        assert explanation_text(e, color=False, width=80, words=n).endswith(
            f"… and {distinct - n} distinct pretokens more"
        )
    assert "distinct" not in explanation_text(e, color=False, width=80, words=distinct)


def test_normalizer_added_tokens_and_repeats(toks):
    said = explanation_text(toks["wordpiece"].explain("The cat, THE cat"), color=False, width=100)
    assert "What the normalizer changed" in said and re.search(r"0–1 +T +t\n", said) and "(2 times)" in said
    said = explanation_text(toks["bpe"].explain("a<s>b", allowed_special="all"), color=False, width=100)
    assert "Added tokens, found in the text" in said
    assert "What the normalizer changed" not in explanation_text(
        toks["bpe"].explain("abc"), color=False, width=100
    )


def test_colours_and_width_come_from_the_terminal(toks, monkeypatch):
    e = toks["bpe"].explain("An iterator over all of the tokens, again and again")
    monkeypatch.setenv("COLUMNS", "44")
    assert (
        explanation_text(e)
        == explanation_text(e, color=False, width=44)
        != explanation_text(e, color=False, width=120)
    )
    assert "\x1b[1m" in explanation_text(e, color=True, width=80) and "\x1b" not in explanation_text(
        e, color=False, width=80
    )
    assert (
        re.sub("\x1b\\[[0-9;]*m", "", explanation_text(e, color=True, width=80)).split("\n\n", 2)[2]
        == explanation_text(e, color=False, width=80).split("\n\n", 2)[2]
    )


def test_an_explanation_draws_itself(toks):
    e = toks["unigram"].explain("iterator")
    assert e._repr_html_() == explanation_html(e) and str(e) == explanation_text(e)


def test_plot_ranks(toks):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    e = toks["bpe"].explain("iterator function iterator")
    ax = plot_ranks(e)
    steps = [[m["rank"] + 1 for m in r["steps"]] for r in e.to_dict()["reasons"] if r["steps"]]
    assert sorted([list(ln.get_ydata()) for ln in ax.lines]) == sorted(steps)
    assert len(plot_ranks(e, words=1).lines) == 1 and plot_ranks(e, ax=ax) is ax
    plt.close("all")
    for name in ("unigram", "wordpiece"):
        with pytest.raises(ValueError, match="explanation must contain merges with ranks"):
            plot_ranks(toks[name].explain("iterator"))


@pytest.mark.parametrize("bad", ["text", None, {}, {"text": "a", "words": []}, [1]])
def test_what_is_no_explanation(bad):
    for draw in (explanation_html, explanation_text, plot_ranks):
        with pytest.raises(ValueError, match="explanation must be what tok.explain"):
            draw(bad)


@pytest.mark.parametrize(
    "name, expected",
    [
        (
            "gpt2/tokenizer.json",
            ["Token ization", "ization  rank 1378", "⟨E4⟩ + ⟨BD⟩ → ⟨E4 BD⟩", "19270", "Ġtrivial"],
        ),
        (
            "bert-base-uncased/tokenizer.json",
            [
                "token ##ization",
                "tokenization –",
                "token ✓",
                "##ization ✓",
                "In one pass, with failure links",
                "[UNK]",
            ],
        ),
        (
            "t5-small/tokenizer.json",
            ["▁To ken ization", "━ ization  −9.97", "gap, nats", "94.3%", "undecided ones first"],
        ),
        ("t5-small/spiece.model", ["▁To ken ization", "gap"]),
        ("xlnet-base-cased", ["▁To ken ization", "4.07", "<unk>"]),
        ("phi-3-mini/tokenizer.json", ["ization", "rank"]),
    ],
)
def test_known_tokenizers_on_a_known_sentence(shared_file, name, expected):
    e = Tokenizer.load(shared_file(f"vocab/{name}")).explain("Tokenization isn't trivial! 你好")
    said = explanation_text(e, color=False, width=160)
    assert [x for x in expected if x not in said] == []
    check_page(explanation_html(e))


STEPS = {
    "PickyBPE": {"picky": 0.5},
    "Scaffold-BPE": {"scaffold": True},
    "BoundlessBPE": {"superwords": "boundless"},
    "PathPiece": {"algorithm": "pathpiece"},
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_in_sentences_are_drawn(name):
    tok = Tokenizer.train(
        ["the hug of a pug and the hug of a pun, hugs "] * 6, vocab_size=272, progress=False, **STEPS[name]
    )
    found = tok.explain("the hugs of")
    text, page = explanation_text(found), unescape(explanation_html(found))
    assert "not in the vocabulary" not in text + page
    steps = [step for reason in found.reasons for step in reason.steps]
    assert len(steps) > 2
    for step in steps[:3]:
        assert step.replace("Ġ", "") in text.replace("Ġ", "") and step in page


def test_every_kind_of_reason_has_a_panel_in_the_page():
    package = ROOT / "subword_nb"
    panels = set(re.findall(r"(\w+): \w+Panel", (package / "view.js").read_text(encoding="utf-8")))
    kinds = set()
    for path in package.rglob("*.py"):
        kinds.update(re.findall(r'kind: str = field\(default="(\w+)', path.read_text(encoding="utf-8")))
    assert panels == kinds and len(kinds) > 4
