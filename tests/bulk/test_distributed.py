"""A corpus counted in parts, by workers that may die, is the corpus counted at once: documents, counts and their order."""

import gzip
import json
import lzma
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from subword_nb import Tokenizer, scale
from subword_nb.corpus import partitions as parts
from subword_nb.corpus import sources
from subword_nb.corpus.partitions import (
    FileRange,
    check_range,
    document_from,
    open_range,
    range_batches,
    range_blocks,
    file_ranges,
    range_ref,
)
from subword_nb.train.partition_counts import (
    CountOptions,
    count_part,
    count_parts,
    count_texts,
    merge_rows,
    pack_rows,
    unpack_rows,
)
from subword_nb.text.pretokenizers import pretokenizer
from subword_nb.corpus.sources import Corpus, files
from subword_nb.train.train import pretoken_counts
from subword_nb.corpus.workers import LocalExecutor, check_client, need_dask, run_tasks, open_executor

BITS = ["a", "b1", " ", "\n", "\r\n", "é", "東", "  ", "\n\n", ".", "\u3000", "\u00a0", "🙂"]


def docs_of(batches):
    return [doc for batch in batches for doc in batch.docs()]


def same(a, b):
    "Are two counts alike to the last bit, order and kind too?"
    return all(
        np.array_equal(x, y) and x.dtype == y.dtype
        for x, y in ((a.data, b.data), (a.bounds, b.bounds), (a.counts, b.counts))
    ) and (a.bytewise, a.error) == (b.bytewise, b.error)


def random_text(rng):
    "Text with places to cut of every kind, and some of none."
    weights = [rng.choice([0, 1, 3, 8]) for _ in BITS]
    return "".join(rng.choices(BITS, weights, k=rng.randrange(400))) if any(weights) else ""


def damaged(rng, data):
    "Bytes that are not UTF-8 here and there."
    data = bytearray(data)
    for _ in range(rng.randrange(1, 30)):
        data.insert(rng.randrange(len(data) + 1), rng.choice([0x80, 0xFF, 0xE3, 0xC3, 0xF0, 0xBF]))
    return bytes(data)


@pytest.fixture
def small_blocks(monkeypatch):
    "Files are read in blocks of so many bytes."

    def use(size):
        monkeypatch.setattr(parts, "BLOCK", size)
        monkeypatch.setattr(sources, "BLOCK", size)

    return use


@pytest.mark.parametrize("block", [16, 40, 64, 200])
def test_parts_have_the_documents_of_the_whole(tmp_path, small_blocks, block):
    small_blocks(block)
    rng, path = random.Random(block), tmp_path / "x.txt"
    for _ in range(20 if block < 64 else 40):
        errors, data = rng.choice(["strict", "replace", "ignore"]), random_text(rng).encode()
        path.write_bytes(data if errors == "strict" else damaged(rng, data))
        found = file_ranges(path, part_bytes=rng.choice([1, 7, block, block + 3, 3 * block, 1000]))
        assert docs_of(b for p in found for b in range_batches(p, errors=errors)) == docs_of(
            Corpus(path, errors=errors).batches()
        ), (path.read_bytes(), errors)


@pytest.mark.parametrize("block", [16, 64])
def test_lines_of_parts_are_those_that_a_sample_chooses_from(tmp_path, small_blocks, block):
    small_blocks(block)
    rng, path = random.Random(f"lines {block}"), tmp_path / "x.txt"
    for _ in range(25):
        errors, data = rng.choice(["strict", "replace", "ignore"]), random_text(rng).encode()
        path.write_bytes(data if errors == "strict" else damaged(rng, data))
        found = file_ranges(path, part_bytes=rng.choice([1, 7, block, 3 * block, 1000]))
        assert docs_of(b for p in found for b in range_batches(p, errors=errors, lines=True)) == docs_of(
            Corpus(path, errors=errors, sample=1.0).batches()
        ), (path.read_bytes(), errors)
    path.write_bytes(b"one\ntwo\xff\n")
    with pytest.raises(ValueError, match=r"x\.txt must be UTF-8, got the byte 0xff at offset 7"):
        docs_of(b for p in file_ranges(path, part_bytes=4) for b in range_batches(p, lines=True))


@pytest.mark.parametrize("separator", [b"\n", b"\r\n", b"\n\n", b"aba", b"<|endoftext|>"])
def test_a_document_belongs_to_the_range_in_which_it_begins(tmp_path, small_blocks, separator):
    small_blocks(64)
    rng, path = random.Random(0), tmp_path / "x.txt"
    for _ in range(25):
        data = b"".join(
            rng.choices(
                [b"a", b"ab", b"\n", b"\r\n", separator, separator[:-1], b"text"], k=rng.randrange(200)
            )
        )
        path.write_bytes(data)
        found = file_ranges(path, part_bytes=rng.choice([1, 3, 64, 100, 5000]))
        pieces = [b"".join(range_blocks(p, separator=separator)) for p in found]
        assert b"".join(pieces) == data
        assert pieces == [range_ref(data, separator, p.start, p.stop) for p in found]


def test_a_long_run_of_separators_is_cut_as_it_is_in_the_whole(tmp_path):
    path = tmp_path / "x.txt"
    for n in (20_001, 20_002):
        path.write_bytes(b"a" + b"\n" * n + b"b\n\nc")
        with open(path, "rb") as raw:
            assert document_from(raw, 10_002, n + 5, separator=b"\n\n") == 10_003
            assert document_from(raw, 10_003, n + 5, separator=b"\n\n") == 10_003


def test_lines_of_json_in_parts(tmp_path, small_blocks):
    small_blocks(32)
    rng, path = random.Random(0), tmp_path / "x.jsonl"
    rows = [
        {"text": "a é" * 4, "z": 1},
        {"text": None, "a": "b"},
        {"q": "x", "text": "t"},
        {"text": "\n"},
        {"text": "{}"},
    ]
    for _ in range(60):
        text = "".join(
            "  " * rng.randrange(2)
            + json.dumps(rng.choice(rows), ensure_ascii=rng.random() < 0.5)
            + rng.choice(["\n", "\r\n", "\n\n"])
            for _ in range(rng.randrange(9))
        )
        text = "\ufeff" * (rng.random() < 0.3) + (text.rstrip() if rng.random() < 0.5 else text)
        path.write_bytes(text.encode())
        found = file_ranges(path, part_bytes=rng.choice([1, 5, 32, 33, 100]))
        assert {p.kind for p in found} == {"rows"}
        assert docs_of(b for p in found for b in range_batches(p)) == docs_of(Corpus(path).batches()), text


def test_the_field_is_chosen_by_the_first_row_of_the_file(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a"}\n{"title": "b", "text": null}\n{"title": "no text"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.jsonl, line at byte 43 must have the field 'text', got none"):
        docs_of(b for p in file_ranges(path, part_bytes=10) for b in range_batches(p))
    with pytest.raises(ValueError, match=r"x\.jsonl, line 3 must have the field 'text', got none"):
        docs_of(Corpus(path).batches())


def test_kinds_of_files(tmp_path):
    for name, kind in (("a.txt", "text"), ("b", "text"), ("c.ndjson", "rows"), ("d.json", "text")):
        (tmp_path / name).write_bytes(b"one\ntwo\n" * 4)
        assert [p.kind for p in file_ranges(tmp_path / name, part_bytes=20)] == [kind] * 2
    assert [p.kind for p in file_ranges(tmp_path / "d.json", field="text")] == ["rows"]
    for name in ("e.txt.gz", "f"):
        (tmp_path / name).write_bytes(gzip.compress(b"one\ntwo\n"))
        (part,) = file_ranges(tmp_path / name, part_bytes=4)
        assert (
            part.kind == "whole"
            and part.whole
            and docs_of(range_batches(part)) == [b"one\ntwo\n"]
            and b"".join(range_blocks(part)) == b"one\ntwo\n"
        )
    (tmp_path / "empty.txt").write_bytes(b"")
    (part,) = file_ranges(tmp_path / "empty.txt")
    assert docs_of(range_batches(part)) == [] and [*range_blocks(part, separator=None)] == []


def test_tables_are_one_part(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["one", None, "two"]}), tmp_path / "x.parquet")
    (tmp_path / "unknown").write_bytes((tmp_path / "x.parquet").read_bytes())
    for name in ("x.parquet", "unknown"):
        (part,) = file_ranges(tmp_path / name, part_bytes=10)
        assert part.kind == "whole" and docs_of(range_batches(part)) == [b"one", b"two"]


def test_addresses(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    address = "memory://scale-test/x.txt"
    with fsspec.open(address, "wb") as file:
        file.write("one two\nthree é\n".encode() * 30)
    found = file_ranges(address, part_bytes=100)
    assert (
        len(found) == 6
        and b"".join(b for p in found for b in range_blocks(p)) == "one two\nthree é\n".encode() * 30
    )
    with fsspec.open(address, "wb") as file:
        file.write(b"other")
    with pytest.raises(ValueError, match=r"scale-test/x\.txt must not change after it was cut"):
        check_range(found[0])


def test_a_file_that_changed_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "grows.txt"
    path.write_bytes(b"one two\n" * 1000)
    found = file_ranges(path, part_bytes=4000)
    with (
        pytest.raises(
            ValueError, match=r"grows\.txt must not change after it was cut .* had 8,000 bytes, and has 8,003"
        ),
        open_range(found[0]),
        open(path, "ab") as file,
    ):
        file.write(b"end")
    with pytest.raises(ValueError, match=r"grows\.txt must not change after it was cut"):
        [*range_batches(found[1])]
    found, facts = file_ranges(path), path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    with pytest.raises(ValueError, match="was written later"):
        [*range_blocks(found[0])]
    path.unlink()
    with pytest.raises(FileNotFoundError, match="no file is called"):
        [*range_batches(found[0])]


def test_a_byte_that_is_no_utf8_is_named_with_its_place(tmp_path, small_blocks):
    small_blocks(1 << 10)
    path, data = tmp_path / "bad.txt", b"one two\n" * 1000
    path.write_bytes(data[:5001] + b"\xff" + data[5001:])
    with pytest.raises(ValueError, match=r"bad\.txt must be UTF-8, got the byte 0xff at offset 5001"):
        docs_of(b for p in file_ranges(path, part_bytes=2000) for b in range_batches(p))
    with pytest.raises(ValueError, match=r"bad\.txt must be UTF-8, got the byte 0xff at offset 5001"):
        scale.count(path, client=False, part_bytes=2000)


def test_a_truncated_gz_is_named(tmp_path):
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(gzip.compress(os.urandom(5000).hex().encode())[:2000])
    with pytest.raises(
        ValueError, match=r"cut\.txt\.gz must be a complete \.gz file, got a truncated one"
    ) as caught:
        scale.count(path, client=False)
    assert "cut.txt.gz" in caught.value.__notes__[0]


def test_what_makes_no_parts(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"one\n" * 100)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="part_bytes must be a positive integer"):
            file_ranges(tmp_path / "x.txt", part_bytes=wrong)
    for wrong in ([], [b"bytes"], [1], 5):
        with pytest.raises(
            ValueError,
            match="paths must (be paths, patterns|name at least one file)",
        ):
            file_ranges(wrong)
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        file_ranges("nothing-here-*.txt")
    with pytest.raises(ValueError, match="is cut"):
        [*range_blocks(file_ranges(tmp_path / "x.txt", part_bytes=100)[0], separator=None)]
    with pytest.raises(ValueError, match="separator must be .*, got b''"):
        [*range_blocks(file_ranges(tmp_path / "x.txt")[0], separator=b"")]
    with pytest.raises(ValueError, match="errors"):
        [*range_batches(file_ranges(tmp_path / "x.txt")[0], errors="never")]


def test_parts_are_plain_values(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"one\n" * 100)
    (part,) = file_ranges(tmp_path / "x.txt")
    assert pickle.loads(pickle.dumps(part)) == part == FileRange(*part) and os.path.isabs(part.path)


PIPELINES = [
    {},
    {"algorithm": "unigram"},
    {"algorithm": "wordpiece"},
    {"algorithm": "char_bpe"},
    {"algorithm": "char_bpe", "pre_tokenizer": "metaspace"},
    {"algorithm": "char_bpe", "pre_tokenizer": None},
    {"pre_tokenizer": "cl100k"},
    {"algorithm": "bpe", "normalizer": "nfkc"},
    {"algorithm": "wordlevel", "pre_tokenizer": "whitespace_split", "normalizer": "lowercase"},
]


@pytest.mark.parametrize("options", PIPELINES, ids=lambda o: "-".join(map(str, o.values())) or "default")
def test_counts_of_parts_are_the_counts_of_the_whole(tmp_path, small_blocks, options):
    small_blocks(1 << 12)
    rng, names = random.Random(0), []
    words = ["the", "of", "Über", "naïve", "東京", "don't", "x1", "...", "\n", "\n\n", "  "]
    for k, suffix in enumerate((".txt", ".jsonl", ".txt.gz", ".txt")):
        text = " ".join(rng.choices([*words, *(f"w{rng.randrange(500)}" for _ in range(20))], k=6000))
        data = (
            "".join(json.dumps({"text": line}) + "\n" for line in text.split("\n")).encode()
            if suffix == ".jsonl"
            else text.encode()
        )
        (tmp_path / f"{k}{suffix}").write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
        names.append(tmp_path / f"{k}{suffix}")
    wanted = {threads: pretoken_counts(files(*names), threads=threads, **options) for threads in (1, 3)}
    assert same(wanted[1], wanted[3])
    for part_bytes, partitions in ((5000, 1), (9000, 8), (1 << 20, 3)):
        assert same(
            scale.count(names, client=False, part_bytes=part_bytes, partitions=partitions, **options),
            wanted[1],
        )


@pytest.fixture(scope="module")
def mixed_files(tmp_path_factory):
    "Files of several kinds, some of them without a document or without a newline at the end."
    folder, rng, names = tmp_path_factory.mktemp("mixed"), random.Random("mixed"), []
    words = ["the", "of", "Über", "東京", "don't", "x1", "\n", "\r\n", *(f"w{k}" for k in range(60))]
    for k, suffix in enumerate((".txt", ".jsonl", ".txt.gz", ".txt", ".txt", ".parquet")):
        text = " ".join(rng.choices(words, k=0 if k == 3 else 1500))
        if suffix == ".parquet":
            pa = pytest.importorskip("pyarrow")
            from pyarrow import parquet

            parquet.write_table(pa.table({"text": [*text.split("\n")[:40], None, ""]}), folder / "t.parquet")
            names.append(folder / "t.parquet")
            continue
        data = (
            "".join(
                json.dumps({"text": line if n % 9 else None}) + "\n"
                for n, line in enumerate(text.split("\n"))
            ).encode()
            if suffix == ".jsonl"
            else text.encode()
        )
        names.append(folder / f"{k}{suffix}")
        names[-1].write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    return names


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"algorithm": "unigram"},
        {"algorithm": "wordpiece"},
        {"algorithm": "char_bpe", "pre_tokenizer": "metaspace", "documents": "whole"},
    ],
    ids=lambda o: o.get("algorithm", "bpe"),
)
def test_sampled_counts_are_those_of_one_machine(mixed_files, options):
    sizes = set()
    for sample, seed in ((0.3, 0), (1.0, 1), (1, 2), (40, 3), (40, 4), (100_000, 5)):
        wanted = pretoken_counts(files(*mixed_files), sample=sample, seed=seed, threads=1, **options)
        sizes.add(int(wanted.counts.sum()))
        for part_bytes, partitions in ((1500, 3), (1 << 20, 8)):
            assert same(
                scale.count(
                    mixed_files,
                    client=False,
                    part_bytes=part_bytes,
                    partitions=partitions,
                    sample=sample,
                    seed=seed,
                    **options,
                ),
                wanted,
            )
    assert len(sizes) > 4
    assert not len(scale.count(mixed_files, client=False, sample=5e-324)) and not len(
        pretoken_counts(files(*mixed_files), sample=5e-324)
    )


def test_texts_are_sampled_by_their_place_among_all_texts():
    rng, how = random.Random("texts"), CountOptions(None, pretokenizer("whitespace"))
    texts = [
        rng.choice([None, {"text": None}]) if rng.random() < 0.1 else f"a{rng.randrange(99)} b{k}"
        for k in range(300)
    ]
    texts = [{"text": t} if isinstance(t, str) else {"text": None} for t in texts]
    cut = [texts[a : a + 37] for a in range(0, 300, 37)]
    for sample in (0.2, 25, 1000):
        with open_executor(client=False) as executor:
            found = count_parts(
                executor, [[], *cut, []], how, progress=False, count=count_texts, sample=sample, seed=7
            )
        assert same(
            found,
            pretoken_counts(
                texts,
                algorithm="wordlevel",
                normalizer=None,
                pre_tokenizer="whitespace",
                sample=sample,
                seed=7,
            ),
        )


def test_parts_that_are_others_the_second_time_are_noticed():
    class Changing:
        "Gives one text more whenever it is read."

        def __init__(self):
            self.reads = 0

        def __iter__(self):
            self.reads += 1
            yield ["one", "two"] * self.reads

    with (
        open_executor(client=False) as executor,
        pytest.raises(ValueError, match="part 0 must have the 2 documents that were numbered, got 4"),
    ):
        count_parts(
            executor,
            Changing(),
            CountOptions(None, pretokenizer("whitespace")),
            progress=False,
            count=count_texts,
            sample=3,
        )


def test_options_of_samples_and_limits_are_checked():
    for options, message in (
        ({"sample": 0}, "sample must be a share, a positive number"),
        ({"sample": 2.0}, "sample must be a share.*got 2.0"),
        ({"seed": 0.5}, "seed must be an integer, got 0.5"),
        ({"max_pretokens": 0}, "max_pretokens must be at least 1, got 0"),
        ({"max_pretokens": True}, "max_pretokens must be an integer, got True"),
    ):
        with pytest.raises(ValueError, match=message):
            scale.count(Path(__file__), client=False, **options)


@pytest.mark.parametrize(
    "options, spans",
    [
        ({}, 1),
        ({"pre_tokenizer": "cl100k"}, 1),
        ({"algorithm": "wordlevel", "pre_tokenizer": "whitespace_split"}, 3),
    ],
    ids=["gpt2", "cl100k", "words"],
)
def test_limited_counts_are_within_their_error(tmp_path, options, spans):
    rng = random.Random(str(options))
    for k in range(4):
        text = " ".join(
            f"w{int(rng.paretovariate(0.7))}" if rng.random() < 0.9 else "東京"
            for _ in range(rng.choice([0, 300, 2000]))
        )
        (tmp_path / f"{k}.txt").write_text(text.replace(" w3 ", "\n"), encoding="utf-8")
    exact = pretoken_counts(tmp_path, **options)
    truth, total = exact.to_dict(), int(exact.counts.sum())
    for most in (1, 2, 7, 30, 200, len(exact)):
        for part_bytes, partitions in ((900, 1), (900, 5), (1 << 20, 8)):
            found = scale.count(
                tmp_path,
                client=False,
                part_bytes=part_bytes,
                partitions=partitions,
                max_pretokens=most,
                **options,
            )
            kept = found.to_dict()
            assert len(found) <= most and kept.keys() <= truth.keys()
            assert all(0 <= n - kept.get(p, 0) <= spans * found.error for p, n in truth.items()), (
                most,
                part_bytes,
                partitions,
            )
            assert {p for p, n in truth.items() if n > spans * found.error} <= kept.keys()
            if partitions == 1:
                assert found.error * (most + 1) <= total
    assert scale.count(tmp_path, client=False, part_bytes=900, max_pretokens=30, **options).error > 0
    assert same(scale.count(tmp_path, client=False, max_pretokens=2 * len(exact), **options), exact)


def test_a_sample_may_be_limited_too(mixed_files):
    sampled = pretoken_counts(files(*mixed_files), sample=60, seed=1).to_dict()
    found = scale.count(mixed_files, client=False, part_bytes=1500, sample=60, seed=1, max_pretokens=20)
    kept = found.to_dict()
    assert (
        0 < len(found) <= 20
        and found.error
        and all(0 <= n - kept.get(p, 0) <= found.error for p, n in sampled.items())
    )


def test_counts_beyond_32_bits_and_many_merges(tmp_path):
    rows = (
        np.frombuffer(b"low", np.uint8),
        np.array([0, 3]),
        np.array([1 << 40]),
        np.array([7 << 32], np.uint64),
    )
    data, bounds, counts, places = merge_rows(
        *[rows] * 5, (rows[0], rows[1], np.array([3]), np.array([5], np.uint64))
    )
    assert (data.tobytes(), bounds.tolist(), counts.tolist(), places.tolist()) == (
        b"low",
        [0, 3],
        [5 * (1 << 40) + 3],
        [5],
    )
    path = tmp_path / "x.txt"
    path.write_bytes(b"".join(b"w%d\n" % (k % 700) for k in range(5000)))
    assert same(scale.count([path] * 75, client=False), pretoken_counts(files(*[path] * 75)))


def test_rows_are_the_same_after_their_way():
    empty = np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64)
    large = (
        np.frombuffer(b"a" * 70_000 + b"bc", np.uint8),
        np.array([0, 70_000, 70_001, 70_002]),
        np.array([1, 1 << 62, 300]),
        np.array([3, (1 << 31) << 32, (1 << 63) + 9], np.uint64),
    )
    for rows in (empty, large):
        for a, b in zip(unpack_rows(pickle.loads(pickle.dumps(pack_rows(rows)))), rows):
            assert np.array_equal(a, b) and a.dtype == b.dtype


def test_a_table_that_goes_to_disk(tmp_path):
    (tmp_path / "x.txt").write_text(" ".join(f"w{k % 5000}" for k in range(400_000)), encoding="utf-8")
    assert same(scale.count(tmp_path, client=False, memory=1), pretoken_counts(tmp_path))


def test_a_partition_is_said_by_the_bytes_alone(tmp_path):
    for k, order in enumerate((1, -1)):
        (tmp_path / f"{k}.txt").write_text(
            " ".join([f"word{i}" for i in range(500)][::order]), encoding="utf-8"
        )
    how, found = CountOptions(None, pretokenizer("whitespace"), partitions=4), []
    for part in file_ranges(tmp_path):
        divided = count_part(part, 0, how, chosen=None).rows
        found.append([{rows[0][a:b].tobytes() for a, b in zip(rows[1], rows[1][1:])} for rows in divided])
    assert (
        found[0] == found[1]
        and len(set.union(*found[0])) == 500 == sum(map(len, found[0]))
        and all(len(p) > 80 for p in found[0])
    )


def test_counts_go_to_a_trainer(tmp_path):
    (tmp_path / "x.txt").write_text("hug hug pug\nhugs bun\n" * 50, encoding="utf-8")
    counts = scale.count(tmp_path / "x.txt", client=False)
    assert (
        Tokenizer.train(counts, vocab_size=270).model.merges
        == Tokenizer.train(tmp_path / "x.txt", vocab_size=270).model.merges
    )


def test_an_error_is_raised_at_once():
    done = []

    def fail(task):
        done.append(task)
        if task == 3:
            raise KeyError("three")

    with pytest.raises(KeyError, match="three") as caught:
        [*run_tasks(fail, range(100), client=False)]
    assert done == [0, 1, 2, 3] and caught.value.__notes__ == ["while working on 3"]


def test_this_process_needs_no_dask(tmp_path):
    (tmp_path / "x.txt").write_text("one two\n" * 10, encoding="utf-8")
    code = f"""
import sys
for name in ("dask", "distributed"): sys.modules[name] = None
from subword_nb import scale
print(len(scale.count({str(tmp_path / "x.txt")!r}, client=False)))
try: scale.count({str(tmp_path / "x.txt")!r})
except ModuleNotFoundError as e: print(e)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", timeout=900
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] == "3" and 'pip install "subword_nb[scale]"' in ran.stdout


def test_who_may_work():
    with open_executor(client=False) as executor:
        assert isinstance(executor, LocalExecutor) and executor.fetch(executor.submit(max, 3, 5)) == 5
    with pytest.raises(
        ValueError, match="n_workers must be left out where client=False determines the workers, got 2"
    ):
        check_client(False, n_workers=2)
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="n_workers must be a positive integer or None"):
            check_client(None, n_workers=wrong)
    pytest.importorskip("distributed")
    assert need_dask().__name__ == "dask"
    for wrong in ("tcp://x:1", 2, True):
        with pytest.raises(ValueError, match="distributed.Client"):
            check_client(wrong)
    with pytest.raises(ValueError, match="partitions must be at least 1, got 0"):
        scale.count(Path(__file__), client=False, partitions=0)


# On a cluster ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    from subword_nb.corpus.workers import local_client

    with local_client(2, timeout=600) as made:
        yield made


def corpus(shared_file, tmp_path_factory, name):
    "A corpus of the data folder, unpacked."
    path = tmp_path_factory.mktemp("corpus") / f"{name}.txt"
    path.write_bytes(lzma.decompress(shared_file(f"corpus/{name}.txt.xz").read_bytes()))
    return path


def squared(task, shared):
    if task == shared.get("wrong"):
        raise ValueError("not this one")
    return task * task + shared["add"]


@pytest.mark.slow
def test_tasks_on_workers(client):
    assert [*run_tasks(squared, range(200), client=client, shared=({"add": 1},))] == [
        n * n + 1 for n in range(200)
    ]
    assert sorted(run_tasks(squared, range(200), client=client, shared=({"add": 1},), ordered=False)) == [
        n * n + 1 for n in range(200)
    ]
    assert [*run_tasks(squared, range(3), n_workers=1, shared=({"add": 1},))] == [1, 2, 5]
    begun = run_tasks(squared, range(200), client=client, shared=({"add": 1},))
    next(begun)
    begun.close()
    with pytest.raises(ValueError, match="not this one") as caught:
        [*run_tasks(squared, range(200), client=client, shared=({"add": 1, "wrong": 7},))]
    assert caught.value.__notes__ == ["while working on 7"]
    assert client.status == "running" and len(client.nthreads()) == 2


def marks(task, folder):
    "Leaves a file; the first task fails."
    if task == 0:
        raise OSError("the first one")
    time.sleep(0.1)
    Path(folder, str(task)).touch()


@pytest.mark.slow
def test_an_error_on_a_worker_does_not_wait_for_the_others(client, tmp_path):
    with pytest.raises(OSError, match="the first one"):
        [*run_tasks(marks, range(400), client=client, shared=(str(tmp_path),))]
    time.sleep(1)
    assert len([*tmp_path.iterdir()]) < 200
    assert [*run_tasks(squared, range(5), client=client, shared=({"add": 0},))] == [0, 1, 4, 9, 16]


@pytest.mark.slow
def test_errors_on_workers_name_the_file(client, tmp_path):
    for k in range(6):
        (tmp_path / f"{k}.txt").write_bytes(b"one two\n" * 1000 + b"\xff" * (k == 4))
    with pytest.raises(ValueError, match=r"4\.txt must be UTF-8, got the byte 0xff at offset 8000"):
        scale.count(tmp_path, client=client)
    with pytest.raises(FileNotFoundError, match="nothing"):
        scale.count(tmp_path / "nothing.txt", client=client)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["english_60mb", "multilingual_mixed"])
def test_two_workers_are_one_machine(client, shared_file, tmp_path_factory, name):
    path = corpus(shared_file, tmp_path_factory, name)
    wanted = pretoken_counts(path)
    found = scale.count(path, client=client, part_bytes=5_000_000)
    assert same(found, wanted) and same(scale.count(path, client=False), wanted)
    assert (
        Tokenizer.train(found, vocab_size=2000).model.merges
        == Tokenizer.train(wanted, vocab_size=2000).model.merges
    )
    for sample in (0.05, 5000):
        assert same(
            scale.count(path, client=client, part_bytes=5_000_000, sample=sample, seed=1),
            pretoken_counts(path, sample=sample, seed=1),
        )
    few = scale.count(path, client=client, part_bytes=5_000_000, max_pretokens=3000)
    assert few.error and same(few, scale.count(path, client=False, part_bytes=5_000_000, max_pretokens=3000))
    if name == "multilingual_mixed":
        assert same(
            scale.count(path, algorithm="unigram", client=client), pretoken_counts(path, algorithm="unigram")
        )


@pytest.mark.slow
def test_bags(client):
    bags = pytest.importorskip("dask.bag")
    texts = [f"Text {k} of {k % 7}: naïve 東京\n" * (k % 5) for k in range(500)]
    bag, wanted = bags.from_sequence(texts, npartitions=11), pretoken_counts(texts)
    for who in (client, False):
        assert same(scale.count(bag, client=who), wanted)
        assert same(
            scale.count(bag, client=who, sample=99, seed=4), pretoken_counts(texts, sample=99, seed=4)
        )
        assert same(
            scale.count(bag.map(str.upper), algorithm="unigram", client=who),
            pretoken_counts([t.upper() for t in texts], algorithm="unigram"),
        )
        assert same(scale.count(bag.map(lambda t: {"text": t, "other": 1}), client=who), wanted)
    with pytest.raises(ValueError, match="partition 1, document 1 must be str, bytes, .* got int"):
        scale.count(bags.from_sequence(["a", "b", "c", 4], npartitions=2), client=client)


@pytest.mark.slow
def test_workers_that_cannot_start_do_not_hang(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from subword_nb.corpus.workers import local_client\nwith local_client(1, timeout=6) as client: print('started')\n",
        encoding="utf-8",
    )
    root = str(Path(scale.__file__).resolve().parents[2])
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert ran.returncode != 0 and "started" not in ran.stdout
    assert (
        '1 workers did not start within 6 seconds; a script that starts them needs `if __name__ == "__main__":`'
        in ran.stderr
    )


def spills_and_dies(task, part, folder):
    "Count with a table of no memory; say where it is put on disk, and be killed then, the first time."
    from subword_nb.train import span_counts

    with pytest.MonkeyPatch.context() as patch:
        real = span_counts.Spill.write

        def write(spill, rows):
            real(spill, rows)
            dies = not (Path(folder) / "where").exists()
            with open(Path(folder) / "where", "a", encoding="utf-8") as file:
                file.write(f"{spill.folder}\n")
            if dies and any(spill.folder.iterdir()):
                os.kill(os.getpid(), signal.SIGKILL)

        patch.setattr(span_counts.Spill, "write", write)
        return sum(
            map(
                len,
                (
                    rows[2]
                    for rows in count_part(
                        part, task, CountOptions(None, pretokenizer("gpt2"), memory=1), chosen=None
                    ).rows
                ),
            )
        )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_worker_leaves_nothing_on_disk(client, tmp_path):
    (tmp_path / "a.txt").write_text("naïve 東京 hugs and pugs\n" * 100, encoding="utf-8")
    part = file_ranges(tmp_path / "a.txt")[0]
    assert [*run_tasks(spills_and_dies, range(3), client=client, shared=(part, str(tmp_path)))] == [6] * 3
    where = {*(tmp_path / "where").read_text(encoding="utf-8").splitlines()}
    due = time.monotonic() + 600
    while (
        any(Path(p).exists() for p in where) and time.monotonic() < due
    ):  # the other worker may be quicker than whoever tidies up
        time.sleep(0.05)
    # three tasks and the one that died; more where the worker that died held results of others
    assert len(where) >= 4 and not [p for p in where if Path(p).exists()]
    assert spills_and_dies(0, part, str(tmp_path)) == 6  # without Dask it is where the system has such files
    assert Path((tmp_path / "where").read_text(encoding="utf-8").splitlines()[-1]).parent == Path(
        tempfile.gettempdir()
    )


class Killer(threading.Thread):
    "Ends workers by SIGKILL, at random, until it is told to stop."

    def __init__(self, client, seed):
        super().__init__(daemon=True)
        self.client, self.rng, self.over, self.killed = client, random.Random(seed), threading.Event(), 0
        self.seen = dict.fromkeys(self.pids(), 0.0)

    def pids(self):
        return [nanny.pid for nanny in self.client.cluster.workers.values() if nanny.pid]

    def run(self):
        while not self.over.wait(self.rng.uniform(0.1, 0.9)):
            pids = [
                p for p in self.pids() if time.monotonic() - self.seen.setdefault(p, time.monotonic()) > 2
            ]  # one that dies while it starts is given up by Dask
            if pids and self.killed < 6:
                try:
                    os.kill(self.rng.choice(pids), signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    pass


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_workers_that_are_killed(client, shared_file, tmp_path_factory, record_property):
    path = corpus(shared_file, tmp_path_factory, "multilingual_mixed")
    wanted = pretoken_counts(files(*[path] * 5))
    killed = 0
    for seed in range(10):  # a quick machine may have counted it before two were killed
        killer = Killer(client, seed)
        killer.start()
        try:
            found = scale.count([path] * 5, client=client, part_bytes=3_000_000)
        finally:
            killer.over.set()
            killer.join()
        assert same(found, wanted)
        killed += killer.killed
        if killed >= 2:
            break
    record_property("kills", killed)
    assert killed >= 2, "the corpus was counted before workers were killed: take more of it"
