"""Masks that hold a model to a language, over published vocabularies."""

import time

import numpy as np
import pytest

from subword_nb.insight.canonical import piece_table
from subword_nb.insight.constraint import Constraint, byte_trie, json_automaton, mask_ref, pattern_automaton
from subword_nb.tokenizer.tokenizer import Tokenizer

LANGUAGES = {
    "an identifier": r"[A-Za-z_][A-Za-z0-9_]*",
    "a name in any script": r"[^\W\d]\w*",
    "a number": r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?",
    "a line": r"[^\n]*",
    "a string": r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"',
    "one of three": r"yes|no|unknown",
}


@pytest.fixture(scope="module")
def trie(shared_file):
    "That of a vocabulary of 200,000 pieces."
    return byte_trie(piece_table(Tokenizer.load(shared_file("vocab/tiktoken/o200k_base.tiktoken"))))


@pytest.mark.slow
def test_masks_of_languages_over_a_large_vocabulary(trie):
    "Each piece by itself gives the same mask, at the start and in states that texts lead to."
    languages = {name: pattern_automaton(pattern) for name, pattern in LANGUAGES.items()}
    languages["JSON"] = json_automaton(depth=2)
    begun = {
        "JSON": [b'"', b'{"', b'["x"', b'"\\', b'"\xe4', b"[1", b'{"a": ', b"[[tr"],
        "a string": [b'"', b'"\xe4'],
    }
    for name, (steps, ends) in languages.items():
        made = Constraint(trie, (steps, ends))
        for state in [0, *(made.step(0, data) for data in begun.get(name, ()))]:
            assert {*np.flatnonzero(made.mask(state)).tolist()} == mask_ref(trie.table, steps, ends, state), (
                name
            )


@pytest.mark.slow
def test_a_new_mask_takes_a_millisecond_or_little_more(trie):
    "The least of several times, so that a busy machine does not matter."
    for name, pattern in {**LANGUAGES, "JSON": None}.items():
        made = Constraint(trie, pattern or json_automaton(depth=3))
        begin = b'"' if name in ("JSON", "a string") else b""
        state, times = made.step(0, begin), []
        for _ in range(20):
            made.masks.clear()
            start = time.thread_time()
            made.mask(state)
            times.append(time.thread_time() - start)
        assert min(times) < 0.003, (name, min(times))


def test_what_is_no_language_or_state_is_named():
    table = piece_table(Tokenizer.train(["abc"], vocab_size=256))
    with pytest.raises(TypeError, match="language must be a pattern, .* got NoneType"):
        Constraint(table, None)
    constraint = Constraint(table, "[a-z]+")
    for state in (-1, 1000):
        with pytest.raises(ValueError, match=f"state must be from 0 to 1, got {state}"):
            constraint.mask(state)
