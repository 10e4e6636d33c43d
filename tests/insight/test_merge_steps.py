"""Steppers of BPE and WordPiece: the words of every frame are what the rules learned so far make of them."""

import random
import re

import pytest

from subword_nb.bpe.reference import base_symbols, bpe_encode_ref, bpe_train_ref, count_pairs
from subword_nb.insight.merge_steps import (
    SHOWN_WORDS,
    bpe_encode_steps,
    bpe_steps,
    match_steps,
    wordpiece_steps,
)
from subword_nb.wordpiece.longest_match import match_trie, wordpiece_encode
from subword_nb.wordpiece.reference import pair_scores, wordpiece_train_ref


def corpora(n: int = 60):
    "Counted words over few letters, so that ties happen."
    rng = random.Random(5)
    for _ in range(n):
        words = [
            "".join(rng.choices("abc", k=rng.randrange(1, 8))) for _ in range(rng.randrange(1, SHOWN_WORDS))
        ]
        yield {word: rng.randrange(1, 5) for word in words}


def words_of(stepper, number: int) -> list[list[str]]:
    "The symbols of each word in a frame."
    lines = stepper.frame(number).splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("pairs"))
    return [re.sub(r"[][<>]", "", line).split()[3:] for line in lines[2:end]]


@pytest.mark.parametrize("tie_break", ["ids", "first", "bytes"])
def test_frames_of_bpe_are_the_states_of_training(tie_break):
    for counts in corpora():
        rules = bpe_train_ref(counts, 30, tie_break=tie_break)
        stepper = bpe_steps(counts, rules)
        assert len(stepper) == len(rules.merges) + 1
        for k in range(len(stepper)):
            ranks = {pair: rank for rank, pair in enumerate(rules.merges[:k])}
            splits = {word: bpe_encode_ref(word, ranks) for word in counts}
            assert words_of(stepper, k) == list(splits.values())
            pairs = count_pairs(splits, counts)
            tied = sum(n == max(pairs.values()) for n in pairs.values())
            assert (f"{tied} pairs have the highest" in stepper.captions[k]) == (
                tied > 1 and k < len(rules.merges)
            )
            for pair, n in sorted(pairs.items(), key=lambda p: -p[1])[:2]:
                assert re.search(rf"^  {' '.join(pair)} +\[?{n}\b", stepper.frame(k), re.M)


def test_frames_of_wordpiece_are_the_states_of_training():
    for counts in corpora():
        rules = wordpiece_train_ref(counts, 30, tie_break="first")
        stepper = wordpiece_steps(counts, rules)
        for k in range(len(stepper)):
            ranks = {pair: rank for rank, pair in enumerate(rules.merges[:k])}
            splits = {
                word: bpe_encode_ref(base_symbols(word, prefix="##"), ranks, continuing_subword_prefix="##")
                for word in counts
            }
            assert words_of(stepper, k) == list(splits.values())
            top = max(pair_scores(splits, counts).values(), default=None)
            assert k == len(rules.scores) or (
                rules.scores[k] == top and f"score, {top}" in stepper.captions[k]
            )


def test_encoding_by_rank_ends_where_the_reference_ends():
    rng = random.Random(3)
    for counts in corpora():
        ranks = {pair: rank for rank, pair in enumerate(bpe_train_ref(counts, 12).merges)}
        word = "".join(rng.choices("abcd", k=rng.randrange(9)))
        stepper = bpe_encode_steps(word, ranks)
        last = re.sub(r"[<>]", "", stepper.frame(-1).splitlines()[2]).split()
        assert last == bpe_encode_ref(word, ranks) and len(stepper) == len(word) - len(last) + 1


def test_longest_match_ends_where_the_encoder_ends():
    rng = random.Random(4)
    for counts in corpora():
        trie = match_trie(wordpiece_train_ref(counts, 12).pieces)
        word = "".join(rng.choices("abcd", cum_weights=[30, 60, 90, 91], k=rng.randrange(9)))
        expected, stepper = wordpiece_encode(word, trie), match_steps(word, trie)
        if expected is None:
            assert stepper.captions[-1].endswith("which has no failure link: the word is unknown.")
        else:
            assert re.sub(r"[<>]", "", stepper.frame(-1).splitlines()[-1]).split()[1:] == expected


def test_rules_of_another_corpus_are_refused():
    rules = bpe_train_ref({"abab": 2}, 10)
    with pytest.raises(ValueError, match="rules must be the result of training on these counts, got rule 0"):
        bpe_steps({"ab": 1}, rules)


def test_pairs_that_an_option_excludes_are_named():
    rules = bpe_train_ref({"aaa": 5, "bc": 3}, 10, max_token_length=2)
    stepper = bpe_steps({"aaa": 5, "bc": 3}, rules)
    assert stepper.captions[1] == "Merge 2: The options of training exclude the pairs above b c, which has 3."


def test_bytes_are_shown_as_text_or_in_hexadecimal():
    rules = bpe_train_ref({"éa".encode(): 2}, 10)
    assert (
        bpe_steps({"éa".encode(): 2}, rules).frame(0).splitlines()[2].startswith("  éa × 2  ⟨C3⟩ [⟨A9⟩] [a]")
    )
