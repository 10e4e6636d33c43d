"""Two tokenizers on one text: the same as the definition, whatever the tokenizers, and drawn safely."""

import json
import random
import re
from dataclasses import replace

import pytest
from pages import Page

from subword_nb.insight.compare import boundaries, boundaries_ref, compare, comparison_html, comparison_text
from subword_nb.corpus.documents import default_corpus
from subword_nb.core.draw import cell_width, printable
from subword_nb.pipeline.encoding import Padding, Truncation
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
    "a" * 80,
    "<s>special</s>",
    "\u202eabc\u200b\x00\x1b[31m",
    "한국어 العربية ก็",
]
HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="x',
    "&amp;",
    "\u202edrow",
    "\x1b[31m",
    "\x00",
    "e" + "\u0300" * 99,
    "\u0300",
    "東京",
    "=" * 500,
    "\u2066x\u2069",
]


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
        "wordpiece": make("wordpiece"),
        "unigram": make("unigram"),
        "wordlevel": make("wordlevel"),
        "nfkc": make("unigram", normalizer="nfkc"),
        "small": Tokenizer.train(docs, vocab_size=270),
    }


def places(c) -> list:
    "Where the tokens of both are, in bytes."
    return [[(t["start_bytes"], t["end_bytes"]) for t in side] for side in c.tokens]


def pairs(toks):
    rng = random.Random(0)
    names = sorted(toks)
    return [(a, b) for a in names for b in names if a < b and rng.random() < 0.6] + [(n, n) for n in names]


def test_boundaries_are_those_of_the_definition(toks):
    for a, b in pairs(toks):
        for text in TEXTS:
            c = compare(toks[a], toks[b], text)
            assert c.boundaries == boundaries_ref(*places(c), len(text.encode())), (a, b, text)
            assert c.both + sum(c.only) == len(c.boundaries)


def test_boundaries_of_random_places():
    rng = random.Random(1)
    for _ in range(1500):
        n = rng.randrange(14)
        some = [
            [
                (s, min(n, s + rng.randrange(5)))
                for s in (rng.randrange(n + 1) for _ in range(rng.randrange(9)))
            ]
            for _ in range(2)
        ]
        assert boundaries(*some) == boundaries_ref(*some, n)
        assert [(y, b, a) for y, a, b in boundaries(*some)] == boundaries(*some[::-1])


def test_every_token_is_in_one_stretch_and_stretches_are_in_order(toks):
    for a, b in pairs(toks):
        for text in TEXTS:
            c = compare(toks[a], toks[b], text)
            for side in (0, 1):
                assert [n for s in c.stretches for n in s["tokens"][side]] == list(range(c.counts[side])), (
                    a,
                    b,
                    text,
                )
            spots = [(s["start_bytes"], s["end_bytes"]) for s in c.stretches]
            assert spots == sorted(spots) and all(x[1] <= y[0] for x, y in zip(spots, spots[1:]))
            for s in c.stretches:
                inside = [
                    y
                    for y, one, other in c.boundaries
                    if s["start_bytes"] < y < s["end_bytes"] and one != other
                ]
                assert (s["same"] is False) == bool(inside)
                assert (s["same"] is None) == (
                    not all(
                        any(places(c)[k][n][0] < places(c)[k][n][1] for n in s["tokens"][k]) for k in (0, 1)
                    )
                )


def test_places_are_those_of_the_original(toks):
    for name, tok in toks.items():
        for text in TEXTS:
            c, bare = compare(tok, tok, text), replace_no_limits(tok)
            e = bare.align(text, add_special_tokens=False)
            assert [t["id"] for t in c.tokens[0]] == e.ids and [t["piece"] for t in c.tokens[0]] == e.pieces
            assert [(t["start"], t["end"]) for t in c.tokens[0]] == e.offsets, (name, text)
            data = text.encode()
            for s in c.stretches:
                assert (
                    len(text[: s["start"]].encode())
                    <= s["start_bytes"]
                    <= s["end_bytes"]
                    <= len(text[: s["end"]].encode())
                    <= len(data)
                )


def replace_no_limits(tok):
    "The same tokenizer without limits."
    again = Tokenizer(**tok.parts._asdict())
    again.truncation = again.padding = None
    return again


def test_a_tokenizer_and_itself_agree(toks):
    for tok in toks.values():
        for text in TEXTS:
            c = compare(tok, tok, text)
            assert c.only == (0, 0) and all(s["same"] is not False for s in c.stretches) and "≠" not in str(c)


def test_turned_round(toks):
    for a, b in pairs(toks)[:8]:
        for text in TEXTS:
            c, d = compare(toks[a], toks[b], text), compare(toks[b], toks[a], text)
            assert (c.both, c.only, c.counts) == (d.both, d.only[::-1], d.counts[::-1])
            assert [(s["start_bytes"], s["end_bytes"], s["same"]) for s in c.stretches] == [
                (s["start_bytes"], s["end_bytes"], s["same"]) for s in d.stretches
            ]


def test_what_is_put_around_and_limits_do_not_matter(toks):
    tok = toks["bpe"]
    short = Tokenizer(**tok.parts._asdict())
    short.truncation, short.padding = Truncation(3), Padding(12, pad_piece="<s>", pad_id=tok.piece2id["<s>"])
    assert (
        compare(short, tok, TEXTS[3]).to_dict()["tokens"] == compare(tok, tok, TEXTS[3]).to_dict()["tokens"]
    )
    assert (
        compare(tok, tok, "<s>a", allowed_special="all").counts == (2, 2)
        and min(compare(tok, tok, "<s>a", allowed_special=()).counts) > 2
    )


def test_bytes_of_a_character_are_told_apart(toks):
    c = compare(toks["small"], toks["unigram"], "x漢y")
    inner = [t for t in c.tokens[0] if t["start"] == 1]
    assert [(t["start_bytes"], t["end_bytes"]) for t in inner] == [(1, 2), (2, 3), (3, 4)] and {
        (t["start"], t["end"]) for t in inner
    } == {(1, 2)}
    assert {(2, True, False), (3, True, False)} <= set(c.boundaries)
    c = compare(toks["fallback"], toks["small"], "漢")
    spelled = [(t["start_bytes"], t["end_bytes"]) for t in c.tokens[0] if t["piece"].startswith("<0x")]
    assert spelled in ([(0, 1), (1, 2), (2, 3)], [])


def test_data_is_plain_and_says_what_the_fields_say(toks):
    c = compare(toks["bpe"], toks["wordpiece"], TEXTS[3], names=["a", "b"])
    d = json.loads(json.dumps(c.to_dict()))
    assert d == c.to_dict()
    assert (d["names"], d["counts"], d["text"]) == (["a", "b"], list(c.counts), TEXTS[3])
    assert (d["boundaries"]["both"], d["boundaries"]["only_first"], d["boundaries"]["only_second"]) == (
        c.both,
        *c.only,
    )
    assert repr(replace(c, names=("x", "y"))) != repr(c)
    assert compare(toks["bpe"], toks["bpe"], "x").names[0].endswith("(first)")
    assert toks["bpe"].compare(toks["small"], b"caf\xc3\xa9").text == "café"


def test_text_drawing_fits_and_marks_what_differs(toks):
    for text in [*TEXTS, *HOSTILE, " ".join(TEXTS)]:
        c = compare(toks["bpe"], toks["wordpiece"], text)
        for width in (20, 47, 100):
            lines = comparison_text(c, color=False, width=width).splitlines()
            assert not set("".join(lines)) & set("\x1b\x00\u202e\u200b\u2066")
            assert max(map(cell_width, lines)) <= width
            assert len(re.findall("≠+", "\n".join(lines))) == sum(s["same"] is False for s in c.stretches)
    assert "\x1b[" in comparison_text(c, color=True, width=80)


def test_colours_and_width_come_from_the_terminal(toks, monkeypatch):
    c = compare(toks["bpe"], toks["small"], "an iterator over tokens " * 9)
    monkeypatch.setenv("COLUMNS", "44")
    assert (
        comparison_text(c)
        == comparison_text(c, color=False, width=44)
        != comparison_text(c, color=False, width=120)
    )
    assert max(cell_width(ln) for ln in comparison_text(c).splitlines()[4:]) <= 44


def test_page_drawing_is_safe(toks):
    for text in [*TEXTS, *HOSTILE]:
        for a, b in (("bpe", "wordpiece"), ("unigram", "char")):
            html = comparison_html(compare(toks[a], toks[b], text, names=(text, "<b>")))
            tags = Page(html)
            assert set(tags.tags) <= {"div", "span", "b", "bdi"} and {k for _, k, _ in tags.attrs} <= {
                "style",
                "dir",
                "role",
                "aria-label",
                "title",
            }
            assert not set(html) & set("\x1b\x00\u202e\u200b\u2066")
            for style in (v for _, k, v in tags.attrs if k == "style" and "background" in v):
                assert "color:#" in style.replace("background", "")


def test_long_texts_are_cut_and_counted(toks):
    c = compare(toks["bpe"], toks["small"], "word " * 5000)
    n = len(c.stretches)
    assert f"… and {n - 300:,} stretches more" in comparison_html(
        c
    ) and f"… and {n - 500:,} stretches more" in comparison_text(c, color=False, width=80)
    assert len(comparison_html(c)) < 300_000
    assert len(comparison_html(compare(toks["small"], toks["wordlevel"], "x" * 20000))) < 300_000


@pytest.mark.parametrize(
    "args, message",
    [((None,), "must be tokenizers.*got a NoneType"), (("gpt2",), "must be tokenizers.*got a str")],
)
def test_what_is_no_tokenizer(toks, args, message):
    with pytest.raises(ValueError, match=message):
        compare(toks["bpe"], *args, "text")


def test_what_is_no_text(toks):
    for bad in (["a"], None, 3):
        with pytest.raises(
            ValueError, match="must be str or UTF-8 bytes, got .*; compare one text at a time"
        ):
            compare(toks["bpe"], toks["bpe"], bad)
    with pytest.raises(ValueError, match="got the byte 0xff at offset 0"):
        compare(toks["bpe"], toks["bpe"], b"\xff")
    assert compare(toks["bpe"], toks["bpe"], b"a\xff", errors="ignore").text == "a"
    with pytest.raises(ValueError, match="a larger limit="):
        compare(toks["bpe"], toks["bpe"], "text", limit=3)
    with pytest.raises(ValueError, match="names must be two, one for each tokenizer, got"):
        compare(toks["bpe"], toks["bpe"], "a", names=("a",))


def test_known_tokenizers_on_a_known_sentence(shared_file):
    gpt, bert, t5 = (
        Tokenizer.load(shared_file(f"vocab/{name}/tokenizer.json"))
        for name in ("gpt2", "bert-base-uncased", "t5-small")
    )
    text = "Tokenization isn't trivial! 你好"

    def shown(c):
        return [
            "|".join(c.tokens[k][n]["shown"] for n in s["tokens"][k])
            for s in c.stretches
            if s["same"] is False
            for k in (0, 1)
        ]

    c = compare(gpt, bert, text)
    assert (c.counts, c.both, c.only) == ((11, 9), 7, (2, 1))
    assert shown(c) == ["'t", "'|t", "⟨E4 BD⟩|⟨A0⟩", "[UNK]", "⟨E5 A5⟩|⟨BD⟩", "[UNK]"]
    assert [s["same"] for s in c.stretches].count(None) == 1  # the space before 你, which is a token of GPT-2
    c = compare(gpt, t5, text)
    assert (c.counts, c.both, c.only) == ((11, 12), 6, (3, 4))
    assert shown(c)[:4] == ["Token", "▁To|ken", "·isn", "▁is|n"] and printable("▁") in str(c)
