"""Aligned texts against HF's NormalizedString, alignment by difference, and functions by path."""

import functools
import html
import random
import subprocess
import sys

import pytest
from costs import assert_linear

from subword_nb.text.alignment import (
    Aligned,
    align_by_difference,
    as_aligned,
    function_at,
    path_of,
    replace_places,
    spread,
)

ALPHABETS = (
    "ab",
    "aé\u0301 ",
    "한ｶ\uff9e在",
    "👩\u200d🚀🏽",
    " \t\r\n\x0b\x0c\x1c\x85\xa0\u2003\u3000\u200b\ufeff\u2028",
    "▁<&",
    "\x00\x01\x7f\ue000\u0378",
)


def generated(n, seed):
    "n strings, each from a few alphabets."
    rng = random.Random(seed)
    for _ in range(n):
        yield "".join(
            rng.choices("".join(rng.sample(ALPHABETS, rng.randint(1, 3))), k=rng.choice((0, 1, 2, 3, 5, 8)))
        )


def theirs(tk, text, change):
    "HF's text and spans after a change to its NormalizedString."
    whole = tk.PreTokenizedString(text)
    whole.normalize(change)
    whole.split(lambda i, part: part.split(tk.Regex(r"[\s\S]"), "isolated"))
    splits = whole.get_splits("original", "char")
    return "".join(s[0] for s in splits), [s[1] for s in splits]


def drop_and_map(drop, turn, s):
    "Two changes by HF's own means."
    s.filter(lambda ch: ch not in drop)
    s.map(lambda ch: turn[ch])


@pytest.mark.peers
def test_dropping_and_mapping_are_hf_s():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    rng = random.Random(1)
    for text in generated(1500, 2):
        drop, turn = set(rng.sample(text, k=len(text) // 2)), {c: rng.choice("xé在") for c in text}
        ours = spread(
            spread(Aligned(text), ["" if c in drop else c for c in text]),
            (turn[c] for c in text if c not in drop),
        )
        assert (ours.text, ours.char_spans()) == theirs(
            tk, text, functools.partial(drop_and_map, drop, turn)
        ), text


@pytest.mark.peers
def test_replacing_and_adding_are_hf_s():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    for text in generated(1500, 3):
        for old, new in (("a", "bc"), ("a", ""), ("é", "e"), (" ", "▁")):
            x = Aligned(text)
            x = replace_places(x, [(i, i + 1) for i, c in enumerate(text) if c == old], new)
            assert (x.text, x.char_spans()) == theirs(
                tk, text, lambda s, old=old, new=new: s.replace(old, new)
            ), text
        if not text:
            continue
        more = spread(Aligned(text), ["▁x" + text[0], *text[1:]])
        assert (more.text, more.char_spans()) == theirs(tk, text, lambda s: s.prepend("▁x")), text
        more = spread(Aligned(text), [*text[:-1], text[-1] + "▁x"])
        assert (more.text, more.char_spans()) == theirs(tk, text, lambda s: s.append("▁x")), text


def test_parts_keep_their_places():
    for text in generated(500, 4):
        x = spread(Aligned(text, at=3), ["" if c == "a" else c + "+" if c == "b" else c for c in text])
        for a in range(len(x.text) + 1):
            for b in range(a, len(x.text) + 1):
                part = x.slice(a, b)
                assert (
                    part.text == x.text[a:b]
                    and part.char_spans() == x.char_spans()[a:b]
                    and part.at == x.span(a, b)[0]
                )
                if a < b:
                    assert (
                        part.span(0, b - a)
                        == x.span(a, b)
                        == (x.char_spans()[a][0], x.char_spans()[b - 1][1])
                    )
    assert as_aligned("ab").slice(1, 2) == Aligned("b", at=1) and Aligned("abc", at=5).slice(1, 3).slice(
        1, 2
    ) == Aligned("c", at=7)
    assert Aligned("", [], 4).span(0, 0) == (4, 4)


def test_difference_of_real_functions():
    "Where characters are only dropped or only replaced, each comes from where it came from."
    rng = random.Random(5)
    for _ in range(300):
        text = "".join(rng.choices("the quick brown fox", k=rng.randrange(200)))
        x = align_by_difference(Aligned(text), text.replace("q", ""))
        assert [text[a:b] for a, b in x.char_spans()] == list(x.text)
        assert align_by_difference(Aligned(text), text.upper()).char_spans() == Aligned(text).char_spans()
        escaped = text.replace("q", "&#60;")
        x = align_by_difference(Aligned(escaped), html.unescape(escaped))
        assert all(c == "<" or escaped[a:b] == c for c, (a, b) in zip(x.text, x.char_spans()))


def test_difference_takes_linear_time():
    rng = random.Random(6)
    word = "".join(rng.choices("abcdefgh <>&é", k=4_000))

    def work(pair):
        before, after = pair
        x = align_by_difference(Aligned(before), after)
        assert len(x.char_spans()) == len(after) and all(
            0 <= a <= b <= len(before) for a, b in x.char_spans()
        )

    for make in (
        lambda w: (w, html.escape(w)),
        lambda w: (html.escape(w), w),
        lambda w: (w, w[::-1]),
        lambda w: ("a" * len(w), "ab" * len(w)),
        lambda w: (w, ""),
        lambda w: (w, "x"),
        lambda w: ("▁" + w, w),
        lambda w: (w * 2, w),
    ):
        assert_linear(work, lambda n, make=make: make(word[:n]), len(word))


def test_paths_there_and_back():
    for function in (html.unescape, str.lower, str.strip, path_of, Aligned.slice):
        assert function_at(path_of(function)) is function

    def inner(text):
        return text

    for bad in (inner, lambda t: t, "".join, print.__call__, random.Random(1).random, 3):
        with pytest.raises(ValueError, match="function must be one that can be imported to be saved, got"):
            path_of(bad)
    for bad in (
        "",
        ":",
        "html",
        "html:",
        ":unescape",
        None,
        "html:unescape.x",
        "no_such:thing",
        "html:__name__",
        ".html:unescape",
        b"html:unescape",
    ):
        with pytest.raises(ValueError):
            function_at(bad)


def test_import_is_light(project):
    heavy = ("numpy", "numba", "regex", "fastcore", "tqdm", "matplotlib")
    code = f"import sys, subword_nb.text.alignment; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True
        ).stdout.strip()
        == "[]"
    )
