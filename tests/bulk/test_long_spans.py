"""Spans that are too long to be remembered: the same ids piece by piece, whatever the pieces."""

import random

import numpy as np
import pytest

from subword_nb import Tokenizer
from subword_nb.bpe import merge_kernels
from subword_nb.bpe.merge_kernels import RankSpanEncoder, span_ids
from subword_nb.bulk import encode_files as encode_files_page
from subword_nb.bulk.id_files import IdWriter
from subword_nb.core.jit import available
from subword_nb.core.limits import LimitExceeded, limited
from subword_nb.corpus.partitions import range_batches, file_ranges
from subword_nb.corpus.sources import Corpus
from subword_nb.pipeline.encoder import encode_blocks, encoder_of
from subword_nb.pipeline.encoding import Truncation
from subword_nb.pipeline.runs import encode_texts
from subword_nb.pipeline.thresholds import SIZES
from subword_nb.unigram import span_encoder as unigram_encoder

pytestmark = pytest.mark.skipif(
    not available(), reason="kernels as plain Python are checked in the notebooks"
)
MODELS = [
    "gpt2/tokenizer.json",
    "tiktoken/cl100k_base.tiktoken",
    "llama-2/tokenizer.model",
    "phi-3-mini/tokenizer.json",
    "mistral-v1/tokenizer.model.v1",
    "bert-base-uncased/tokenizer.json",
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
    "xlnet-base-cased/spiece.model",
]
ALPHABETS = [
    "a",
    " ",
    "ab",
    "\n",
    "7",
    "🤗",
    "-",
    "etaoinshrdlu",
    "aAbé",
    "中文字日本語",
    "a \n\t",
    "▁ a",
    "\u3000ｱé ",
]


def texts(rng, n):
    for _ in range(n):
        yield "".join(
            "".join(rng.choices(rng.choice(ALPHABETS), k=rng.choice((1, 3, 30, 200))))
            for _ in range(rng.randrange(1, 5))
        )


def test_spans_of_bytes_in_parts(monkeypatch):
    rng, answered = random.Random(0), 0
    for _ in range(600):
        tokens = {
            bytes(rng.choices(b"abc", k=rng.choice((2, 2, 3, 3, 4, 6)))) for _ in range(rng.randrange(14))
        }
        names = [b"a", b"b", b"c", *tokens]
        rng.shuffle(names)
        encoder = RankSpanEncoder({name: i for i, name in enumerate(names)})
        span = bytes(
            rng.choices(rng.choice((b"a", b"ab", b"abc", b"aaaab")), k=rng.choice((9, 50, 300, 3000)))
        )
        monkeypatch.setattr(merge_kernels, "PART", rng.choice((7, 8, 16, 64, 1000)))
        pieces = encoder.long_span(np.frombuffer(span, np.uint8))
        if pieces is not None:
            assert [i for ids in pieces for i in ids.tolist()] == span_ids(encoder, [span])[0]
            answered += 1
    assert answered > 400


@pytest.mark.parametrize("path", MODELS)
def test_ids_do_not_depend_on_what_is_remembered(shared_file, monkeypatch, path):
    tok, rng = Tokenizer.load(shared_file(f"vocab/{path}")), random.Random(path)
    cases = [*texts(rng, 100)]
    bulk, answered = encoder_of(tok).bulk, []
    whole = [encode_texts(bulk, [text]).ids.tolist() for text in cases]
    long_span = bulk.coder.long_span

    def noted(span, *, sums):
        pieces = long_span(span, sums=sums)
        answered.append(pieces is not None)
        return pieces

    bulk.coder = bulk.coder._replace(long_span=noted)
    for page in (merge_kernels, unigram_encoder):
        monkeypatch.setattr(page, "PART", 9)
    monkeypatch.setattr(SIZES, "longest", 12)
    monkeypatch.setattr(SIZES, "block", 16)
    bulk.tables.clear()
    for text, ids in zip(cases, whole, strict=True):
        assert encode_texts(bulk, [text]).ids.tolist() == ids, text
        data = text.encode()
        blocks = [data[i : i + 5] for i in range(0, len(data), 5)]
        found = encode_blocks(tok, blocks, add_special_tokens=False)
        assert [i for some in found for i in some.tolist()] == ids, text
    assert sum(answered) > max(25, len(answered) // 3)


def test_a_limit_for_spans_without_a_kernel(monkeypatch):
    tok = Tokenizer.train(["low lower lowest"] * 3, algorithm="bpe", vocab_size=280)
    text = "a" * 3000
    bulk = encoder_of(tok).bulk
    bulk.coder = bulk.coder._replace(long_span=None)
    monkeypatch.setattr(SIZES, "longest", 100)
    monkeypatch.setattr(SIZES, "python", 2000)
    assert encode_texts(bulk, [text[:2000]]).ids.tolist() == tok.encode(text[:2000], add_special_tokens=False)
    with pytest.raises(ValueError, match="at most 2,000 bytes, got 3,000"):
        encode_texts(bulk, [text])


def test_a_stream_holds_no_span_beyond_the_limit():
    tok = Tokenizer.train(["ab ab abc"], vocab_size=260)
    words, letters = [b"ab abc " * 10_000] * 5, [b"ab" * 25_000] * 5
    expected = {k: tok.encode_array(b"".join(blocks)).tolist() for k, blocks in enumerate((words, letters))}
    with limited(span_bytes=100_000):
        assert [i for ids in encode_blocks(tok, words) for i in ids.tolist()] == expected[0]
        with pytest.raises(ValueError, match=r"more than 100,000 bytes.*the limit span_bytes is 100,000"):
            list(encode_blocks(tok, letters))
    with limited(span_bytes=250_000):
        assert [i for ids in encode_blocks(tok, letters) for i in ids.tolist()] == expected[1]


def test_files_name_the_span_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr("subword_nb.bulk.encode_files.BLOCK", 1 << 16)
    tok = Tokenizer.train(["ab ab abc"], vocab_size=260)
    (tmp_path / "a.txt").write_bytes(b"abc ab\n" + b"ab" * 500_000)
    with (
        limited(span_bytes=300_000),
        pytest.raises(ValueError, match=r"a\.txt, document at byte 7: .*span_bytes"),
    ):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "a.npy", separator="\n")
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "' + b"ab " * 500_000 + b'"}\n')
    with limited(row_bytes=300_000), pytest.raises(ValueError, match=r"b\.jsonl, line at byte 0 .*row_bytes"):
        tok.encode_files(tmp_path / "b.jsonl", tmp_path / "b.npy")
    assert tok.encode_files(tmp_path / "b.jsonl", tmp_path / "b.npy").documents == 1


def test_a_document_that_is_encoded_as_a_whole_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("subword_nb.bulk.encode_files.BLOCK", 1 << 16)
    (tmp_path / "a.txt").write_bytes(b"abc ab\n" + b"ab abc\xff" * 50_000)
    tok = Tokenizer.train(["ab ab abc"], vocab_size=260)
    given = {"separator": "\n", "progress": False, "errors": "bytes"}
    with (
        limited(document_bytes=300_000),
        pytest.raises(ValueError, match=r"a\.txt, document at byte 7 has .* as a whole, .*document_bytes"),
    ):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "a.npy", **given)
    assert tok.encode_files(tmp_path / "a.txt", tmp_path / "a.npy", **given).documents == 2
    tok.truncation = Truncation(5)
    with limited(document_bytes=300_000):
        assert [ids.tolist() for ids in encode_blocks(tok, [b"ab " * 100_000])] == [tok.encode("ab " * 9)]
        with pytest.raises(ValueError, match=r"300,003 bytes or more, and the limit document_bytes"):
            list(encode_blocks(tok, [b"ab " * 100_000, b"abc"]))


@pytest.mark.parametrize("direction", ["right", "left"])
def test_truncation_of_long_texts(direction):
    tok = Tokenizer.train(["ab ab abc"], vocab_size=260)
    texts = ["ab abc " * n for n in (0, 1, 2, 3, 40_000)]
    rows = tok.encode_batch(texts).tolist()
    tok.truncation = Truncation(5, stride=2, direction=direction)
    expected = [row[:5] if direction == "right" else row[-5:] for row in rows]
    assert tok.encode_batch(texts).tolist() == expected
    assert [tok.encode(text) for text in texts] == expected


def test_a_line_of_json_beyond_the_limit_is_refused_before_it_is_held(tmp_path):
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "ab"}\n{"text": "' + b"ab " * 700_000 + b'"}\n')
    with limited(row_bytes=1 << 20), pytest.raises(ValueError, match=r"b\.jsonl, line 2 has .*row_bytes"):
        list(Corpus(tmp_path / "b.jsonl"))
    parts = file_ranges(tmp_path / "b.jsonl")
    with limited(row_bytes=1 << 20), pytest.raises(ValueError, match=r"b\.jsonl has a line of .*row_bytes"):
        list(range_batches(parts[0]))
    assert [len(doc) for doc in Corpus(tmp_path / "b.jsonl")] == [2, 2_100_000]


@pytest.mark.parametrize("block", [1 << 23, 64])
def test_a_row_of_parquet_has_a_limit_that_is_checked_while_its_ids_are_made(tmp_path, monkeypatch, block):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(encode_files_page, "BLOCK", block)
    tok = Tokenizer.train({"ab": 2, "a": 1}, vocab_size=257)  # every byte of other texts is a token
    texts = ["xy" * 30, "", "xyz" * 40, "x" * 60]  # 60, 0, 120 and 60 ids
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    for shard_tokens in (None, 50):

        def encode(name, shard_tokens=shard_tokens):
            return tok.encode_files(
                tmp_path / "a.txt",
                tmp_path / f"{shard_tokens}-{name}",
                format=name.split(".")[-1],
                separator="\n",
                shard_tokens=shard_tokens,
                progress=False,
            )

        with limited(row_ids=120):
            assert encode("all.parquet").tokens == 240
        with limited(row_ids=119), pytest.raises(LimitExceeded, match=r"document \d of a Parquet.*row_ids"):
            encode("some.parquet")
        with limited(row_ids=119):
            assert encode("all.arrow").tokens == encode("all.npy").tokens == 240
        with limited(row_ids=120):  # it continues where the limit stopped it
            assert encode("some.parquet").tokens == 240


def test_many_short_documents_are_written_as_often_as_long_ones(tmp_path, monkeypatch):
    tok = Tokenizer.train({"ab": 2}, vocab_size=257)
    monkeypatch.setattr(encode_files_page, "BLOCK", 1000)
    (tmp_path / "a.txt").write_bytes(b"\n" * 500 + b"ab\n" * 500)
    monkeypatch.setattr(encode_files_page, "READ", 100)
    most, add = [], IdWriter.add
    monkeypatch.setattr(
        IdWriter, "add", lambda self, ids, ends: most.append(len(ends)) or add(self, ids, ends)
    )
    done = tok.encode_files(tmp_path / "a.txt", tmp_path / "a.npy", separator="\n", progress=False)
    assert (done.documents, done.tokens) == (1000, 500)
    assert 0 < max(most) < 200
