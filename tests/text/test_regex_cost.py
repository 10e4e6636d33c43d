"""Patterns that are said to be linear are; the others give the same matches against a clock."""

import random
import re
import time

import pytest
from subword_nb.text.regex_cost import is_linear, steps_of
from subword_nb.text.regex_syntax import pattern_tree
from subword_nb.core.limits import limited
from subword_nb.text.regex_syntax import read_pattern
from subword_nb.text.regex import DEEPSEEK, PATTERNS, compile_pattern

SETS = ("a", "b", "[ab]", "[^a]", ".", r"\s", r"\S", "[^ab]", "c")


def some_pattern(rng, depth=1):
    def item():
        body = rng.choice(SETS) if depth == 0 or rng.random() < 0.8 else f"(?:{some_pattern(rng, depth - 1)})"
        if rng.random() < 0.1:
            return f"(?{rng.choice('=!')}{rng.choice(SETS)})"
        return (
            body
            + rng.choice(("", "", "*", "+", "+", "?", "{2}", "{1,3}", "{2,}"))
            + rng.choice(("", "", "", "?", "+"))
        )

    return "|".join("".join(item() for _ in range(rng.randrange(1, 4))) for _ in range(rng.randrange(1, 5)))


def test_linear_patterns_are_linear():
    "A long run of each kind, with what may follow it: two minutes are ample for a linear search and too few for a quadratic one."
    regex = pytest.importorskip("regex")
    rng, proved, start = random.Random(3), 0, time.process_time()
    texts = [
        unit * (20_000 // len(unit)) + end
        for unit in ("a", "b", "ab", "aab", " ", "c", "a ")
        for end in ("", "b", "\n", "c")
    ]
    while proved < 25 and time.process_time() - start < 60:
        pattern = some_pattern(rng)
        if not is_linear(pattern_tree(read_pattern(pattern)[0])):
            continue
        proved += 1
        compiled = regex.compile(pattern)
        for text in rng.sample(texts, 6):
            for _ in compiled.finditer(text, timeout=120):
                pass  # raises TimeoutError
    assert proved >= 20


def test_published_patterns_are_linear():
    for pattern in (*PATTERNS, *DEEPSEEK):
        assert compile_pattern(pattern).linear, pattern


def test_matches_do_not_depend_on_the_engine():
    rng = random.Random(4)
    clocked = 0
    for _ in range(400):
        pattern = some_pattern(rng)
        compiled = compile_pattern(pattern)
        if compiled.linear or re.search(r"[?*+}]\+|\(\?:", pattern):
            continue  # `re` of older Pythons has no possessive repeats
        clocked += 1
        for _ in range(10):
            text = "".join(rng.choices("ab c\né🤗", k=rng.randrange(12)))
            found = [
                m.span()
                for m in re.finditer(
                    "".join(
                        p
                        if isinstance(p, str)
                        else "[" + "".join(f"\\U{a:08x}-\\U{b - 1:08x}" for a, b in p) + "]"
                        for p in compiled.parts
                    ),
                    text,
                )
            ]
            if all(a < b for a, b in found):
                assert compiled.spans(text) == found and compiled.findall(text) == [
                    text[a:b] for a, b in found
                ], (pattern, text)
    assert clocked > 20


def test_sizes():
    for pattern, n in (("a", 1), ("a{7}", 7), ("(?:a{10}){10}", 100), ("a*", 1)):
        assert steps_of(pattern_tree(read_pattern(pattern)[0])) == n
    with limited(pattern_steps=99), pytest.raises(ValueError, match="has 100 steps"):
        compile_pattern("(?:b{10}){10}").spans("b")
    with pytest.raises(
        ValueError, match="pattern must not nest classes so deeply|not closed|never closed|missing"
    ):
        compile_pattern("[" * 5000 + "]" * 5000).spans("b")
