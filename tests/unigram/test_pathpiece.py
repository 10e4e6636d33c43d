"PathPiece as a tokenizer: trained, saved, in threads."

import random
from dataclasses import replace

import pytest

from subword_nb import Tokenizer, models
from subword_nb.corpus.counts import flatten_counts
from subword_nb.insight.explain_training import explain_training
from subword_nb.train.trace import load_trace
from subword_nb.unigram.pathpiece import pathpiece_train

TEXT = "hug pug pun bun hugs the of naïve 東京 don't 🤗 1984 …"
WORDS = TEXT.split(" ")


@pytest.fixture(scope="module")
def corpus():
    rng = random.Random(4)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(30))) for _ in range(200)]


def test_a_tokenizer_is_trained_and_saved(corpus, tmp_path):
    tok = Tokenizer.train(corpus, algorithm="pathpiece", vocab_size=280, special_tokens=["<s>"])
    assert isinstance(tok.model, models.Pieces)
    assert tok.vocab_size == 280
    with pytest.warns(UserWarning, match="only this library reads the model"):
        tok.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == tok
    for text in [*corpus[:20], "Ünseen\x00 text"]:
        assert tok.decode(tok.encode(text)) == text
        assert again.encode(text) == tok.encode(text)


def test_fewer_tokens_than_byte_pairs(corpus):
    size = dict(vocab_size=285)
    few = Tokenizer.train(corpus, algorithm="pathpiece", **size)
    merged = Tokenizer.train(corpus, **size)
    assert sum(map(len, map(few.encode, corpus))) <= sum(map(len, map(merged.encode, corpus)))


def test_threads_and_kinds_of_counts_do_not_matter(corpus):
    one, two = (
        Tokenizer.train(corpus, algorithm="pathpiece", vocab_size=280, threads=n).model for n in (1, 2)
    )
    assert one == two
    counts = {"hug": 10, "pug": 5, "naïve": 7}
    assert pathpiece_train(flatten_counts(counts), 12) == pathpiece_train(counts, 12)


def test_a_corpus_without_substrings_says_so():
    with pytest.warns(UserWarning, match="no substring was left"):
        tok = Tokenizer.train(["a b"], algorithm="pathpiece", vocab_size=300)
    assert tok.training.ended == "no substring left"


def test_a_trace_explains_what_stayed_and_what_fell(corpus, tmp_path):
    options = dict(algorithm="pathpiece", vocab_size=280, special_tokens=["<s>"])
    path = tmp_path / "trace.npz"
    tok = Tokenizer.train(corpus, **options, trace=path)
    assert tok.model == Tokenizer.train(corpus, **options).model
    trace = tok.training.trace
    assert load_trace(path) == trace
    stays = [
        p for p, fell in zip(trace.facts["seeds"], trace.arrays["fell"].tolist(), strict=True) if fell < 0
    ]
    assert stays == [*tok.model.piece2id][257:]
    for piece in [*trace.facts["seeds"][:40], *stays]:
        found = explain_training(tok, piece).to_dict()
        assert found["kind"] == "substring"
        assert (found["dropped"] is None) == (piece in tok.piece2id)
        assert found["increase"] >= found["bar"] or found["dropped"] is not None
        assert ("kept to the end" if found["dropped"] is None else "It was dropped in round") in found[
            "summary"
        ]
        assert str(explain_training(tok, piece)) == found["summary"]
    assert explain_training(tok, "a").kind == "alphabet"
    assert explain_training(tok, "<s>").kind == "special"
    seeds = Tokenizer.train(corpus, algorithm="pathpiece", vocab_size=280, seed_size=30, trace=True)
    assert "was not among the 30 highest" in explain_training(seeds, "ïv".encode()).summary


def test_a_damaged_trace_is_refused(corpus, tmp_path):
    tok = Tokenizer.train(corpus, algorithm="pathpiece", vocab_size=280, trace=True)
    trace = tok.training.trace
    for name in ("fell", "increase"):
        broken = replace(trace, arrays={**trace.arrays, name: trace.arrays[name][:-1]})
        broken.save(tmp_path / "trace.npz")
        with pytest.raises(ValueError, match="must fit together"):
            load_trace(tmp_path / "trace.npz")
