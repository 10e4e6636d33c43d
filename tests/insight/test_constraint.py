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


COUNTING = {
    "up to twenty characters": r".{0,20}",
    "up to two hundred": r".{0,200}",
    "letters": r"[a-z]{3,20}",
    "digits": r"\d{1,8}",
    "letters of any script": r"\p{L}+",
    "words of any script": r"\p{L}+( \p{L}+){0,9}",
    "small letters and spaces": r"[a-z ]{3,40}",
    "word characters": r"\w{1,30}",
    "a field": r"(Name|Title|Author): .{0,100}",
    "a mail address": r"[a-z0-9._]{1,30}@[a-z0-9]{1,20}\.[a-z]{2,3}",
}


def some_states(made, n):
    "Live states, the first one among them."
    live = np.flatnonzero(made.live)
    return [0, *draw.choice(live[1:], min(n, len(live) - 1), replace=False).tolist()]


draw = np.random.default_rng(5)


@pytest.mark.slow
def test_masks_of_counting_languages(trie):
    for name, pattern in COUNTING.items():
        steps, ends = pattern_automaton(pattern)
        made = Constraint(trie, (steps, ends))
        for state in some_states(made, 4):
            found = {*np.flatnonzero(made.mask(state)).tolist()}
            assert found == mask_ref(trie.table, steps, ends, state), (name, state)


@pytest.mark.slow
def test_a_list_of_many_words(trie):
    "More words than the patterns of a pre-tokenizer may have."
    pieces = sorted({data.decode("utf-8", "ignore").strip() for data in trie.table.spelled[::150]})
    words = [word for word in pieces if word.isalpha()][:700]
    steps, ends = pattern_automaton("|".join(words))
    made = Constraint(trie, (steps, ends))
    for state in some_states(made, 5):
        found = {*np.flatnonzero(made.mask(state)).tolist()}
        assert found == mask_ref(trie.table, steps, ends, state)
    for word in words[::50]:
        assert made.step(0, word.encode()) in made.accepting


def least(times, run):
    "The least processor time of several runs, so that a busy machine matters little."
    found = []
    for _ in range(times):
        start = time.thread_time()
        run()
        found.append(time.thread_time() - start)
    return min(found)


@pytest.mark.slow
def test_a_new_mask_takes_little_longer_than_writing_one_in_every_state(trie):
    "Writing the ids of all pieces takes half a millisecond on a machine that does nothing else."
    ids, written = trie.table.ids, np.zeros(trie.table.size, bool)

    def write():
        written[ids] = True

    for name, pattern in {**LANGUAGES, **COUNTING, "JSON": None}.items():
        made = Constraint(trie, pattern or json_automaton(depth=3))
        for state in some_states(made, 200):

            def renew(made=made, state=state):
                made.masks.clear()
                made.mask(state)

            if least(2, renew) > 0.001:
                taken, allowed = least(10, renew), 4 * least(10, write) + 0.0005
                assert taken < allowed, (name, state, taken, allowed)


def test_what_is_no_language_or_state_is_named():
    table = piece_table(Tokenizer.train(["abc"], vocab_size=256))
    with pytest.raises(TypeError, match="language must be a pattern, .* got NoneType"):
        Constraint(table, None)
    constraint = Constraint(table, "[a-z]+")
    for state in (-1, 1000):
        with pytest.raises(ValueError, match=f"state must be from 0 to 1, got {state}"):
            constraint.mask(state)
