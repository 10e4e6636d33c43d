"""The promises of the book: each names tests that there are, with the figures of their last run; and round trips, over all of Unicode."""

import ast
import json

import pytest
from seeds import TEXTS, fresh
from characters import code_points
from tests.pipeline.test_align import generated

from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS
from subword_nb.text.pretokenizers import ByteLevel

WAYS = {
    "as usual": {},
    "many merges": dict(vocab_size=600),
    "no merge": dict(vocab_size=257),
    "qwen2's pattern": dict(pre_tokenizer="qwen2"),
    "cl100k's pattern": dict(pre_tokenizer="cl100k"),
    "o200k's pattern": dict(pre_tokenizer="o200k"),
    "nothing split": dict(pre_tokenizer=ByteLevel(add_prefix_space=False, use_regex=False)),
    "first ties": dict(tie_break="first"),
}
BYTEWISE = {
    "gpt2/tokenizer.json": None,
    "roberta-base/tokenizer.json": None,
    "whisper-tiny/tokenizer.json": None,
    "tiktoken/r50k_base.tiktoken": "r50k_base",
    "tiktoken/p50k_base.tiktoken": "p50k_base",
    "tiktoken/cl100k_base.tiktoken": "cl100k_base",
    "tiktoken/o200k_base.tiktoken": "o200k_base",
    "llama-3/tokenizer.model": None,
    "qwen/qwen.tiktoken": None,
}


def book(project, name):
    return json.loads((project / "nbs" / "book" / name).read_text(encoding="utf-8"))


def functions(path) -> set[str]:
    "Names of the tests in a file."
    return {
        n.name
        for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
    }


def test_every_promise_names_tests_that_there_are(project):
    promises = book(project, "promises.json")
    assert len({p["promise"] for p in promises}) == len(promises) >= 10
    for p in promises:
        assert p["tests"] and p["says"].endswith("."), p["promise"]
        for test in p["tests"]:
            file, name = test.split("::")
            assert name in functions(project / file), test


def test_every_named_test_has_figures_and_no_other(project):
    named = {t for p in book(project, "promises.json") for t in p["tests"]}
    figures = book(project, "promises_figures.json")
    assert set(figures) == named, "run `python dev/promises.py run` with the names that differ"
    assert all(f["cases"] > 0 for f in figures.values())


def texts() -> list[str]:
    """Code points one by one, in groups of neighbours, and in texts drawn from all of them.

    One by one, all are tried where SUBWORD_NB_TEXTS is 2,000 or more."""
    every = code_points(1 if TEXTS >= 2000 else 64)
    rng = fresh(3)
    groups = ["".join(map(chr, every[i : i + 50])) for i in range(0, len(every), 50)]
    drawn = ["".join(map(chr, rng.choices(every, k=rng.randrange(40)))) for _ in range(4000)]
    return ["", *map(chr, every if TEXTS >= 2000 else every[::31]), *groups, *drawn, *generated(2000, 5)]


def come_back(tok: Tokenizer, some: list[str]):
    "Ids in one batch, decoded again; a text that spells an added token is text."
    tok.allowed_special = ()
    rows = tok.encode_batch(some, add_special_tokens=False)
    back = tok.decode_batch(rows, skip_special_tokens=False)
    wrong = [(a, b) for a, b in zip(some, back) if a != b]
    assert len(back) == len(some) and not wrong, wrong[:3]


@pytest.mark.slow
def test_what_is_trained_here_comes_back(record_property):
    some = texts()
    for options in WAYS.values():
        tok = Tokenizer.train(COURSE_CORPUS, **{"vocab_size": 320, **options})
        come_back(tok, some)
        for text in some[-200:]:
            assert (
                tok.decode(tok.encode(text)) == text
                and tok.decode_bytes(tok.encode_array(text)) == text.encode()
            )
    record_property("texts", len(some))
    record_property("tokenizers", len(WAYS))


@pytest.mark.slow
@pytest.mark.parametrize("name", BYTEWISE)
def test_what_others_trained_comes_back(name, shared_file, record_property):
    some = texts()
    tok = Tokenizer.load(
        shared_file(f"vocab/{name}"), **({"encoding": BYTEWISE[name]} if BYTEWISE[name] else {})
    )
    come_back(tok, some)
    record_property("texts", len(some))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc80"])
def test_what_is_no_unicode_is_refused(text):
    tok = Tokenizer.train(COURSE_CORPUS, vocab_size=300)
    for call in (
        tok.encode,
        tok.encode_array,
        tok.tokenize,
        tok.align,
        tok.explain,
        lambda t: tok.encode_batch([t]),
    ):
        with pytest.raises(ValueError, match="surrogate"):
            call(text)
