"""Measures of real vocabularies: bulk sums against the reference, other programs' figures, errors, the command."""

import math


import numpy as np
import pytest
from seeds import fresh
from subword_nb import Tokenizer
from subword_nb.bulk.word_tokens import word_tokens
from subword_nb.corpus.sources import files
from subword_nb.insight import measures
from subword_nb.insight.measures import boundary_scores, measure, measure_ref, renyi_efficiency

VOCABULARIES = [
    "gpt2/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "t5-small/spiece.model",
    "llama-2/tokenizer.model",
]


SYMBOLS = [
    "a",
    "B",
    "the",
    "ing",
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "é",
    "中文",
    "\u3000",
    "\xa0",
    "\x1c",
    "👍",
    ".",
    "1",
    "▁",
    "_",
]


def random_text(rng):
    return "".join(rng.choices(SYMBOLS, k=rng.randrange(60)))


@pytest.mark.parametrize("name", VOCABULARIES)
def test_sums_of_real_vocabularies_are_the_references(shared_file, name):
    tok, rng = Tokenizer.load(shared_file(f"vocab/{name}")), fresh("measures", name)
    texts = [random_text(rng) for _ in range(60)]
    found, wanted = measure(tok, texts), measure_ref(tok, texts)
    assert {k: getattr(found, k) for k in wanted if k != "counts"} == {
        k: v for k, v in wanted.items() if k != "counts"
    }
    assert found.counts.tolist() == wanted["counts"]


@pytest.mark.parametrize("name", ["gpt2/tokenizer.json", "tiktoken/cl100k_base.tiktoken"])
def test_words_read_from_ids_have_the_references_sums(shared_file, monkeypatch, name):
    monkeypatch.setattr(measures, "READ_WORDS", 0)  # also of small batches
    tok, rng = Tokenizer.load(shared_file(f"vocab/{name}")), fresh("words", name)
    assert word_tokens(tok) is not None
    texts = [random_text(rng) for _ in range(60)] + ["“low” lower\n it's 12345 , a\u2003b", ""]
    for documents, some in ((None, texts), ("lines", ["\n".join(texts)])):
        found, wanted = measure(tok, some, documents=documents), measure_ref(tok, some)
        for key in ("bytes", "characters", "words", "word_tokens", "continued"):
            assert getattr(found, key) == wanted[key], key
    assert measure(tok, texts).counts.tolist() == measure_ref(tok, texts)["counts"]


@pytest.mark.parametrize("kernels", [True, False])
def test_words_that_are_encoded_before_the_end_have_the_references_sums(monkeypatch, kernels):
    monkeypatch.setattr(measures, "WORD_BYTES", 1)  # after every batch
    if not kernels:
        monkeypatch.setattr("subword_nb.core.jit.available", lambda: False)
    tok = Tokenizer.train(["a b c abc"] * 20, vocab_size=262)
    texts = ["a b c abc abd", "abc d " * 200_000, "abc abd"]  # a batch ends within them
    found, wanted = measure(tok, texts, progress=False), measure_ref(tok, texts)
    for key in ("words", "word_tokens", "continued", "tokens"):
        assert getattr(found, key) == wanted[key], key


def test_special_tokens_in_a_corpus_are_text(shared_file):
    tok = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json"))
    found = measure(tok, ["a<|endoftext|>b"])
    assert found.counts[tok.piece2id["<|endoftext|>"]] == 0 and found.tokens > 3


def test_files_lines_and_fields(tmp_path):
    tok = Tokenizer.train(["hug pug hugs bun"] * 3, vocab_size=262)
    text, rows = tmp_path / "a.txt", tmp_path / "a.jsonl"
    text.write_text("hug pug\nbun hugs\n\npug\n", encoding="utf-8")
    rows.write_text('{"body": "hug pug"}\n{"body": "bun"}\n', encoding="utf-8")
    whole, lines = measure(tok, files(text)), measure(tok, files(text), documents="lines")
    assert (whole.documents, lines.documents) == (1, 4)
    assert (whole.bytes, whole.words) == (lines.bytes, lines.words) == (22, 5)
    assert measure(tok, files(rows), field="body").documents == 2
    none = measure(tok, [""])
    assert (
        none.bytes_per_token,
        none.fertility,
        none.utilisation,
        none.efficiency(),
        none.single_token_words,
    ) == (0,) * 5
    with pytest.raises(ValueError, match="source must have a document, got none"):
        measure(tok, [])


def test_groups_hold_every_document():
    tok = Tokenizer.train(["hug pug"] * 3, vocab_size=258)
    texts = [f"hug {k} " * 120 for k in range(2500)]  # more than one batch
    found = measure(tok, texts)
    assert found.groups.shape == (1000, 3)
    assert found.groups.sum(axis=0).tolist() == [found.bytes, found.characters, found.tokens]
    wanted = np.zeros(1000, np.int64)
    np.add.at(wanted, np.arange(found.documents) % 1000, [*map(len, texts)])
    assert found.groups[:, 0].tolist() == wanted.tolist()
    low, high = found.interval(measure="characters_per_token")
    assert low <= found.characters_per_token <= high


def test_efficiency_against_the_definition():
    rng = fresh("efficiency")
    for _ in range(300):
        counts = [rng.randrange(50) for _ in range(rng.randrange(2, 30))]
        used = [n for n in counts if n]
        if len(used) < 2:
            continue
        alpha = rng.choice([0, 0.5, 2, 2.5, 7])
        total = sum(used)
        wanted = math.log(sum((n / total) ** alpha for n in used)) / (1 - alpha) / math.log(len(used))
        assert renyi_efficiency(counts, alpha=alpha) == pytest.approx(wanted, abs=1e-12)
        assert -1e-12 <= wanted <= 1 + 1e-12


def test_boundaries_of_random_segmentations():
    rng = fresh("boundaries")
    tok = Tokenizer.train(["unhelpful helpful helps unhelped tokens"] * 4, vocab_size=275)
    gold = {}
    for _ in range(200):
        parts = [
            "".join(rng.choices("unhelpfutok", k=rng.randrange(1, 4))) for _ in range(rng.randrange(1, 5))
        ]
        gold["".join(parts)] = parts
    found = boundary_scores(tok, gold)
    matched = predicted = wanted = 0
    whole = {}
    for word, parts in gold.items():
        ends = set(np.cumsum([len(p) for p in parts])[:-1].tolist())
        pieces = [len(p) - p.startswith("Ġ") for p in tok.tokenize(f" {word}")]
        cuts = set(np.cumsum(pieces)[:-1].tolist()) - {0}  # a space may be a token of its own
        if cuts:
            whole[word] = parts
        matched, predicted, wanted = matched + len(ends & cuts), predicted + len(cuts), wanted + len(ends)
    assert found == (matched, predicted, wanted)
    assert boundary_scores(tok, gold, whole_words=False) == boundary_scores(tok, whole)


def test_without_threads_measures_are_the_same(monkeypatch):
    "As in a browser."
    tok = Tokenizer.train(["a b c abc"] * 20, vocab_size=262)
    expected = measure(tok, ["a b c", "abc d"])

    def refuse(*given, **options):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("subword_nb.core.jit.available", lambda: False)
    monkeypatch.setattr("threading.Thread.start", refuse)
    found = measure(tok, ["a b c", "abc d"], progress=False)
    assert (found.words, found.word_tokens, found.tokens) == (
        expected.words,
        expected.word_tokens,
        expected.tokens,
    )


def test_what_cannot_be_measured_is_named():
    tok = Tokenizer.train(["hug pug hugs bun"] * 3, vocab_size=262)
    found = measure(tok, ["hug pug"] * 30)
    for call, words in (
        (lambda: found.interval(resamples=0), "resamples must be 1 or more, got 0"),
        (lambda: renyi_efficiency([-2, 1]), "counts must be 0 or more, got -2"),
        (lambda: renyi_efficiency([2, 1], alpha=math.nan), "alpha must be 0 or more, got nan"),
        (lambda: measures.gini([1, math.nan]), "values must be 0 or more, got nan"),
        (lambda: measures.parity({}, "English"), "measures must have a language, got none"),
        (lambda: boundary_scores(tok, {}), "gold must have a word, got none; pass words with their parts"),
        (lambda: boundary_scores(tok, {"hug": "hug"}), "must be its pieces in order, none empty, got 'hug'"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="both must be Measures, got int"):
        measures.normalized_length(found, 5)
