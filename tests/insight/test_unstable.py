"""Ids that more text may change, over published vocabularies."""

import random

import pytest

from subword_nb.insight.unstable import unstable, unstable_ref
from subword_nb.tokenizer.tokenizer import Tokenizer

MORE = [
    "s",
    "ing",
    " a",
    " the",
    "\n",
    " ",
    "  x",
    ".",
    "'s",
    "1",
    "00",
    "é",
    "中",
    "\u0301",
    "://",
    ")",
    "=",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gpt2/tokenizer.json",
        "tiktoken/cl100k_base.tiktoken",
        "bert-base-uncased/vocab.txt",
        "t5-small/tokenizer.json",
        "t5-small/spiece.model",
        "llama-2/tokenizer.model",
        "phi-3-mini/tokenizer.json",
        "clip/tokenizer.json",
        "wordlevel-vulrepair/wordlevel.json",
    ],
)
def test_what_is_certain_never_changes(shared_file, name):
    "The beginnings of texts keep their certain ids, with what comes next in the text, and with anything else."
    tok, rng = Tokenizer.load(shared_file(f"vocab/{name}")), random.Random(name)
    text = shared_file("corpus/stress/UTF-8-demo.txt").read_text("utf-8")
    shares = []
    for _ in range(12):
        at = rng.randrange(len(text) - 100)
        begun, rest = text[at : at + rng.randrange(1, 60)], text[at + 60 : at + 90]
        n = unstable(tok, begun)
        assert n >= unstable_ref(tok, begun, [*MORE, rest]), begun
        shares.append(n / max(1, len(tok.encode(begun, add_special_tokens=False))))
    assert min(shares) < 0.7  # not all of every text


def test_a_long_text_before_does_not_count(shared_file):
    "With a byte-level vocabulary, words before a safe cut are certain."
    tok = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json"))
    for text in ("import", "x  ", "a <|endof", "it'", "café", "中"):
        assert unstable(tok, "some words " * 40 + text) == unstable(tok, "some words " + text)
