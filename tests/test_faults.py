"""Disks that are full, broken or gone.

An error that names the file, the old content untouched, nothing half-written that looks whole, and the same
call completes later.
"""

import bz2
import contextlib
import errno
import gzip
import itertools
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mishaps import Disk, ballast, in_fork, small_disk

from subword_nb import Tokenizer
from subword_nb.core import jit
from subword_nb.train.checkpoints import load_snapshot, save_snapshot
from subword_nb.corpus.documents import documents
from subword_nb.corpus.counts import (
    flatten_counts,
    load_counts,
    save_counts,
    write_atomically,
    write_together,
)
from subword_nb.train.counting import batches_of, count_corpus
from subword_nb.bulk.encode_files import encode_files
from subword_nb.bulk.id_files import load_encoded
from subword_nb.text.pretokenizers import byte_level
from subword_nb.corpus.sources import Corpus, files
from subword_nb.core.ragged import Ragged
from subword_nb.train.span_counts import Spill, SpanCounts, add_rows, span_rows, spilled_rows

unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and modes of files")
DOCS = ["low lower lowest newer wider ", "hugs pug pun bun hug ", "it's 12 o'clock in naïve Zürich "] * 20


@pytest.fixture(scope="module")
def models():
    "Algorithm → two tokenizers, an old and a new one."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        special = {"bpe": ["<|endoftext|>"], "wordpiece": ["[UNK]"], "unigram": ["<unk>"]}
        return {
            kind: [
                Tokenizer.train(DOCS, algorithm=kind, vocab_size=size, special_tokens=tokens, progress=False)
                for size in ((290, 300) if kind == "bpe" else (60, 80))
            ]
            for kind, tokens in special.items()
        }


def saver(toks, name, folder=False):
    "(write the old, write the new, read) for a format of tokenizers."

    def write(tok):
        def to(home):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                tok.save(home / name, kind="gpt2" if folder else None)

        return to

    def read(home):
        inside = sorted((home / name).iterdir()) if folder else [home / name]
        return [(p.name, p.read_bytes()) for p in inside]

    return write(toks[0]), write(toks[1]), read


def counted(suffix):
    old, new = ({f"{word}{k}": k + 1 for k in range(n) for word in ("hug", "pug")} for n in (300, 400))
    return *(
        (lambda home, c=c: save_counts(flatten_counts(c), home / f"counts{suffix}")) for c in (old, new)
    ), lambda home: load_counts(home / f"counts{suffix}").to_dict()


def snapshots():
    return *(
        (lambda home, n=n: save_snapshot(home / "state.npz", {"merges": [("a", "b")] * n}))
        for n in (500, 900)
    ), lambda home: load_snapshot(home / "state.npz")


def writers(models):
    "Name → (write the old, write the new, read) of whatever is replaced in one step."
    found = {
        "tokenizer.json": saver(models["bpe"], "tokenizer.json"),
        "gpt2": saver(models["bpe"], "pair", folder=True),
        "tiktoken": saver(models["bpe"], "x.tiktoken"),
        "vocab.txt": saver(models["wordpiece"], "vocab.txt"),
        "wordpiece.json": saver(models["wordpiece"], "w.json"),
        "sentencepiece": saver(models["unigram"], "x.model"),
        "unigram.json": saver(models["unigram"], "u.json"),
        "counts.npz": counted(".npz"),
        "snapshot": snapshots(),
    }
    with contextlib.suppress(ImportError):
        import pyarrow  # noqa: F401

        found["counts.parquet"] = counted(".parquet")
    return found


WRITERS = [
    "tokenizer.json",
    "gpt2",
    "tiktoken",
    "vocab.txt",
    "wordpiece.json",
    "sentencepiece",
    "unigram.json",
    "counts.npz",
    "snapshot",
    "counts.parquet",
]


def writer(models, name, home):
    found = writers(models)
    if name not in found:
        pytest.skip("needs pyarrow")
    if name == "gpt2":
        (home / "pair").mkdir(exist_ok=True)
    return found[name]


def leftovers(home):
    return [str(p) for p in home.rglob("*") if p.name.endswith(".tmp")]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("there", [True, False], ids=["old", "none"])
def test_a_full_disk_at_each_step(models, name, there, tmp_path, record_property):
    faults = 0
    for at in itertools.count(1):
        home = tmp_path / f"{at}"
        home.mkdir()
        write_old, write_new, read = writer(models, name, home)
        if there:
            write_old(home)
        before = read(home) if there else sorted(home.rglob("*"))
        with Disk(home, at) as disk:
            try:
                write_new(home)
            except OSError as e:
                assert e.errno == errno.ENOSPC and str(home) in str(e) and ".tmp" not in str(e), e
                assert disk.failed
                raised = True
            else:
                raised = False
        assert not leftovers(home), at
        if raised:
            faults += 1
            assert (read(home) if there else sorted(home.rglob("*"))) == before, f"step {at}"
            write_new(home)
        after = read(home)
        write_new(home)
        assert after == read(home) and not leftovers(home)
        if not disk.failed:
            break
        assert (
            raised or at > 3
        )  # only what comes after all is done (names of a folder brought to the disk) may fail in silence
    assert faults >= 3
    record_property("faults", faults)


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_vanishes(models, name, tmp_path):
    for at in (1, 2, 3):
        home = tmp_path / f"{at}"
        home.mkdir()
        _, write_new, read = writer(models, name, home)
        with (
            Disk(home, at, fail=partial(shutil.rmtree, home, ignore_errors=True)),
            pytest.raises(OSError) as e,
        ):
            write_new(home)
        assert str(home) in str(e.value) and ".tmp" not in str(e.value)
        home.mkdir(exist_ok=True)
        writer(models, name, home)
        write_new(home)
        assert read(home)


@pytest.mark.parametrize("name", WRITERS)
def test_a_small_disk(models, name, tmp_path, record_property):
    tried = 0
    with small_disk(tmp_path, 4 << 20) as home:
        if home is None:
            pytest.skip("this process may not mount a disk")
        write_old, write_new, read = writer(models, name, home)
        write_old(home)
        old = read(home)
        for left in (0, 4096, 8192, 12288):
            load = ballast(home, left)
            try:
                write_new(home)
            except OSError as e:
                tried += 1
                assert str(home) in str(e) and ".tmp" not in str(e)
                assert read(home) == old and not leftovers(home)
            finally:
                load.unlink()
            write_new(home)
            new = read(home)
            write_old(home)
            assert new != old and read(home) == old
    assert tried
    record_property("faults", tried)


def test_two_files_are_written_together(tmp_path):
    pair = [tmp_path / "a", tmp_path / "b"]
    write_together({pair[0]: b"1", pair[1]: b"2"})
    real, seen = os.replace, []

    def second_fails(a, b):
        seen.append(b)
        if len(seen) == 2:
            raise PermissionError(errno.EACCES, "Permission denied", str(a), None, str(b))
        return real(a, b)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", second_fails)
        with pytest.raises(PermissionError):
            write_together({pair[0]: b"new", pair[1]: b"new"})
    assert [p.read_bytes() for p in pair] == [b"1", b"2"] and sorted(p.name for p in tmp_path.iterdir()) == [
        "a",
        "b",
    ]
    seen.clear()
    fresh = [tmp_path / "c", tmp_path / "d"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", second_fails)
        with pytest.raises(PermissionError):
            write_together(dict.fromkeys(fresh, b"new"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


# Files of ids.

FORMATS = ["npy", "bin", "arrow", "parquet"]


def ids_of(out):
    found = load_encoded(out)
    return [(r.ids.tolist(), r.bounds.tolist()) for r in ([found] if isinstance(found, Ragged) else found)]


def texts_in(folder, n=3):
    folder.mkdir(exist_ok=True)
    for k in range(n):
        (folder / f"{k}.txt").write_text("\n".join(DOCS[k:] * (k + 1)), encoding="utf-8")
    return str(folder / "*.txt")


@pytest.mark.parametrize("shards", [None, pytest.param(700, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", ["npy", *(pytest.param(f, marks=pytest.mark.slow) for f in FORMATS[1:])])
def test_encode_files_on_a_full_disk(models, format, shards, tmp_path, record_property):
    if format in FORMATS[2:]:
        pytest.importorskip("pyarrow")
    old, tok = models["bpe"]
    paths, options, faults = (
        texts_in(tmp_path / "texts"),
        {"format": format, "separator": "\n", "shard_tokens": shards, "progress": False},
        0,
    )
    name = "shards" if shards else f"ids.{format}"
    encode_files(tok, paths, tmp_path / name, **options)
    expected = ids_of(tmp_path / name)
    for at in itertools.count(1, 2 if not shards else 5):
        home = tmp_path / f"{at}"
        home.mkdir()
        encode_files(old, paths, home / name, **options)
        before = ids_of(home / name)
        with Disk(home, at, renames=False) as disk:
            try:
                encode_files(tok, paths, home / name, overwrite=True, **options)
            except OSError as e:
                faults += 1
                assert str(home) in str(e), e
                assert ids_of(home / name) == before
        encode_files(tok, paths, home / name, overwrite=True, **options)
        assert (
            ids_of(home / name) == expected
            and not leftovers(home)
            and not (home / f"{name}.partial").exists()
        )
        shutil.rmtree(home)
        if not disk.failed:
            break
    assert faults > 5
    record_property("faults", faults)


@pytest.mark.parametrize("format", FORMATS)
def test_encode_files_on_a_small_disk(models, format, tmp_path, record_property):
    if format in FORMATS[2:]:
        pytest.importorskip("pyarrow")
    tok, tried = models["bpe"][1], 0
    home = tmp_path / "disk"
    home.mkdir()
    (tmp_path / "texts").mkdir()
    rng = random.Random(0)
    for k in range(3):
        (tmp_path / "texts" / f"{k}.txt").write_text(
            "\n".join(" ".join(rng.choices(DOCS, k=40)) for _ in range(100)), encoding="utf-8"
        )
    paths, options = (
        str(tmp_path / "texts" / "*.txt"),
        {"format": format, "separator": "\n", "progress": False},
    )
    encode_files(tok, paths, tmp_path / f"ids.{format}", **options)
    expected = ids_of(tmp_path / f"ids.{format}")
    with small_disk(home, 8 << 20) as disk:
        if disk is None:
            pytest.skip("this process may not mount a disk")
        for left in (0, 1 << 14, 1 << 16, 1 << 18, 1 << 19):
            out = home / f"ids{left}.{format}"
            load = ballast(home, left)
            try:
                encode_files(tok, paths, out, **options)
            except OSError as e:
                tried += 1
                assert str(home) in str(e), e
                assert not out.exists()
            finally:
                load.unlink()
            encode_files(tok, paths, out, **options)
            assert ids_of(out) == expected and not Path(f"{out}.partial").exists()
            for p in home.iterdir():
                p.unlink()
    assert tried >= 2
    record_property("faults", tried)


# Training.


def trained(paths, **options):
    tok = Tokenizer.train(paths, vocab_size=320, special_tokens=["<s>"], progress=False, **options)
    return tok.piece2id, tok.model


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_training_with_a_checkpoint_on_a_full_disk(algorithm, tmp_path, record_property):
    paths, faults = texts_in(tmp_path / "texts"), 0
    expected = trained(paths, algorithm=algorithm)
    for at in itertools.chain(range(1, 30, 3), itertools.count(30, 20)):
        home = tmp_path / f"{at}"
        home.mkdir()
        with Disk(home, at) as disk:
            try:
                assert trained(paths, algorithm=algorithm, checkpoint=home / "run", every=0) == expected
            except OSError as e:
                faults += 1
                assert str(home) in str(e) and ".tmp" not in str(e), e
        assert trained(paths, algorithm=algorithm, checkpoint=home / "run", every=0) == expected
        assert not leftovers(home)
        shutil.rmtree(home)
        if not disk.failed:
            break
    assert faults > 5
    record_property("faults", faults)


def test_counts_that_do_not_fit_on_the_disk(tmp_path, monkeypatch, record_property):
    "Tables that go to the temporary folder because memory is short."
    import tempfile

    if not jit.available():
        pytest.skip("without Numba nothing is spilled")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def count(memory):
        return count_corpus(
            batches_of(DOCS, size=200), None, byte_level("gpt2"), threads=1, memory=memory
        ).to_dict()

    expected, faults = count(1 << 30), 0
    for at in itertools.count(1, 5):
        with Disk(tmp_path, at) as disk:
            try:
                assert count(1) == expected
            except OSError as e:
                faults += 1
                assert e.errno == errno.ENOSPC and str(tmp_path) in str(e)
        assert not [*tmp_path.iterdir()]
        if not disk.failed:
            break
    assert faults > 5
    record_property("faults", faults)


@pytest.mark.parametrize("error", [b"", b"half of"])
def test_spilled_counts_that_are_damaged(error, tmp_path):
    table = SpanCounts()
    add_rows(
        table, (np.frombuffer(b"hugpug", np.uint8), np.array([0, 3, 6]), np.array([1, 2]), np.array([0, 3]))
    )
    spill = Spill(tmp_path, {})
    spill.write(span_rows(table, parts=16))
    part = next(p for p in range(16) if spill.sizes[p])
    path = tmp_path / f"counts.{part:02}"
    path.write_bytes(path.read_bytes()[:60] + error)
    with pytest.raises(ValueError) as e:
        [*spilled_rows(spill, part)]
    assert str(path) in str(e.value) and "a damaged file" in str(e.value)


# Reading.


def pack(kind, data):
    if kind == ".zst":
        return pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[kind](data)


@pytest.mark.parametrize("kind", [".gz", ".xz", ".bz2", ".zst"])
def test_packed_files_that_are_cut_off(models, kind, tmp_path, record_property):
    rng = random.Random(1)
    whole = pack(kind, "".join(rng.choices("abcdefgh \n", k=3000)).encode())
    path, faults = tmp_path / f"a.txt{kind}", 0
    for size in sorted({0, 1, 2, 5, 9, *rng.sample(range(10, len(whole)), 8), len(whole) - 1}):
        path.write_bytes(whole[:size])
        for read in (
            lambda: [*documents(path)],
            lambda: [*Corpus(path)],
            lambda: encode_files(models["bpe"][0], path, tmp_path / "ids.npy", progress=False),
            lambda: Tokenizer.train(path, vocab_size=300, progress=False),
        ):
            faults += 1
            with pytest.raises(ValueError, match="must be a (complete|valid) .* file, got ") as e:
                read()
            assert str(path) in str(e.value)
        assert not (tmp_path / "ids.npy").exists()
        shutil.rmtree(tmp_path / "ids.npy.partial", ignore_errors=True)
    path.write_bytes(whole)
    assert encode_files(models["bpe"][0], path, tmp_path / "ids.npy", progress=False).documents == 1
    record_property("faults", faults)


def table_file(path, rows):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": [f"{k} " + "low lower " * 40 for k in range(rows)]})
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(
            table, path, row_group_size=500, compression="none", use_dictionary=False
        )
    else:
        with (
            pa.ipc.new_file(str(path), table.schema)
            if path.suffix == ".arrow"
            else pa.ipc.new_stream(str(path), table.schema) as out
        ):
            for batch in table.to_batches(500):
                out.write_batch(batch)


def source_file(path, rows=9000):
    text = "".join(f"{k} " + "low lower " * 40 + "\n" for k in range(rows))
    if path.suffix in (".parquet", ".arrow", ".feather"):
        table_file(path, rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": line}) + "\n" for line in text.splitlines()))
    elif path.suffix in (".gz", ".xz", ".bz2", ".zst"):
        path.write_bytes(pack(path.suffix, text.encode()))
    else:
        path.write_text(text)
    return path


SLOWLY = [pytest.param(name, marks=pytest.mark.slow) for name in ("a.txt.xz", "a.txt.bz2", "a.feather")]
KINDS = ["a.txt", "a.jsonl", "a.txt.gz", "a.parquet", "a.arrow", *SLOWLY]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("change", ["grows", "shrinks", "rewritten"])
def test_a_file_that_changes_while_it_is_read(name, change, tmp_path):
    path = source_file(tmp_path / name)
    size = path.stat().st_size

    def changed():
        if change == "grows":
            with open(path, "ab") as f:
                f.write(b"more\n")
        elif change == "shrinks":
            os.truncate(path, size // 2)
        else:
            with open(path, "r+b") as f:
                f.seek(size // 2)
                f.write(b"x" * 100)
        os.utime(path, ns=(1, 10**18))

    batches = Corpus(path).batches()
    next(batches)
    changed()
    with pytest.raises(ValueError) as e:
        for _ in batches:
            pass
    assert str(path) in str(e.value) and (
        "must not change while it is read" in str(e.value)
        or "must be UTF-8" in str(e.value)
        or "must be JSON" in str(e.value)
    ), e.value
    if path.suffix not in (".parquet", ".arrow", ".feather", ".jsonl"):
        source_file(path)
        found = documents(path)
        next(found)
        changed()
        with pytest.raises(ValueError, match="must not change while it is read|must be UTF-8") as e:
            list(found)
        assert str(path) in str(e.value)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that opens and cannot be read")
@pytest.mark.parametrize(
    "name", ["a.txt", "a.jsonl", "a.txt.gz", "a.txt.xz", "a.txt.bz2", "a.parquet", "a.arrow"]
)
def test_a_disk_that_cannot_be_read_names_the_file(models, name, tmp_path):
    if name.endswith((".parquet", ".arrow")):
        pytest.importorskip("pyarrow")
    (tmp_path / name).symlink_to("/proc/self/mem")
    with pytest.raises((OSError, ValueError)) as e:
        [*Corpus(tmp_path / name)]
    assert str(tmp_path / name) in str(e.value)
    if name.endswith((".txt", ".jsonl")):
        assert e.value.errno == errno.EIO
        for read in (
            lambda: Tokenizer.train(tmp_path / name, vocab_size=300, progress=False),
            lambda: encode_files(models["bpe"][0], tmp_path / name, tmp_path / "ids.npy", progress=False),
        ):
            with pytest.raises(OSError) as e:
                read()
            assert e.value.errno == errno.EIO and str(tmp_path / name) in str(e.value)
        assert not (tmp_path / "ids.npy").exists()


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that opens and cannot be read")
@pytest.mark.parametrize(
    "name", ["tokenizer.json", "vocab.txt", "x.tiktoken", "x.model", "x.gguf", "vocab.json", "merges.txt"]
)
def test_a_tokenizer_that_cannot_be_read_is_named(name, tmp_path):
    (tmp_path / name).symlink_to("/proc/self/mem")
    for path in (tmp_path / name, tmp_path):
        with pytest.raises((OSError, ValueError)) as e:
            Tokenizer.load(path)
        assert str(tmp_path) in str(e.value), e.value


@unix
def test_files_that_may_not_be_read(models):
    import tempfile

    home = Path(tempfile.mkdtemp())
    try:
        home.chmod(0o755)
        models["bpe"][0].save(home / "tokenizer.json")
        names = ["a.txt", "a.jsonl", "a.txt.gz", "tokenizer.json"]
        for name in names[:3]:
            source_file(home / name, 10)
        with contextlib.suppress(ImportError):
            import pyarrow  # noqa: F401

            table_file(home / "a.parquet", 10)
            table_file(home / "a.arrow", 10)
            names += ["a.parquet", "a.arrow"]
        for name in names:
            (home / name).chmod(0)
        reads = {
            name: (lambda path=home / name: Tokenizer.load(path))
            if name == "tokenizer.json"
            else (lambda path=home / name: [*Corpus(path)])
            for name in names
        }

        def job():
            if os.geteuid() == 0:
                os.setuid(65534)
            said = {}
            for name, read in reads.items():
                try:
                    read()
                except PermissionError as e:
                    said[name] = str(e)
            return said

        for name in names:
            with contextlib.suppress(Exception):
                reads[name]()  # so that all pages are imported
        said = in_fork(job)
        assert sorted(said) == sorted(names) and all(
            str(home / name) in text for name, text in said.items()
        ), said
    finally:
        shutil.rmtree(home)


@pytest.mark.parametrize("how", ["folder", "pattern", "list"])
def test_a_folder_of_texts_that_vanishes(how, tmp_path):
    home = tmp_path / "texts"
    pattern = texts_in(home)
    corpus = Corpus({"folder": home, "pattern": pattern, "list": files(*sorted(home.iterdir()))}[how])
    shutil.rmtree(home)
    with pytest.raises(FileNotFoundError) as e:
        list(corpus)
    assert str(home) in str(e.value)
    texts_in(home)
    assert [*corpus]


# The cache of kernels, and the command line.


def triple(x):
    return 3 * x


def test_a_cache_folder_that_takes_nothing(tmp_path, monkeypatch, capfd):
    if not jit.available():
        pytest.skip("without Numba there is no cache")
    monkeypatch.setenv("SUBWORD_NB_QUIET", "1")
    (tmp_path / "file").write_bytes(b"")
    places = [tmp_path / "file", tmp_path / "file" / "below"]
    full = tmp_path / "full"
    full.mkdir()
    with small_disk(full, 1 << 20) as disk:
        if disk is not None:
            ballast(full, 0)
            places.append(full)
        for place in places:
            monkeypatch.setenv("SUBWORD_NB_CACHE", str(place))
            assert jit.kernel(triple)(14) == 42
            assert place.is_file() or not place.exists() or {p.name for p in place.iterdir()} == {"ballast"}
    with Disk(tmp_path, 2) as broken:
        monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path / "broken"))
        assert jit.kernel(triple)(14) == 42
    assert broken.failed and not [*(tmp_path / "broken").iterdir()]
    assert not capfd.readouterr().err
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path / "works"))
    assert jit.kernel(triple)(14) == 42
    (kept,) = (tmp_path / "works").iterdir()
    for damage in (b"", kept.read_bytes()[:100]):
        kept.write_bytes(damage)
        assert jit.kernel(triple)(14) == 42


def run_cli(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "subword_nb", *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,
        cwd=Path(__file__).resolve().parent.parent,
        env={**os.environ, "SUBWORD_NB_QUIET": "1"},
        **options,
    )


@pytest.mark.slow
def test_the_command_line_on_a_full_disk(models, tmp_path, record_property):
    home, texts = tmp_path / "disk", texts_in(tmp_path / "texts")
    home.mkdir()
    models["bpe"][0].save(tmp_path / "tok.json")
    commands = {
        "t.json": ["train", *sorted(map(str, (tmp_path / "texts").iterdir())), "--vocab-size", "300", "-o"],
        "e.txt": ["encode", "--tokenizer", tmp_path / "tok.json", "low lower " * 3000, "--out"],
        "ids.npy": ["encode-files", "-t", tmp_path / "tok.json", texts, "-o"],
        "c.json": ["convert", tmp_path / "tok.json"],
    }
    with small_disk(home, 4 << 20) as disk:
        if disk is None:
            pytest.skip("this process may not mount a disk")
        for name, command in commands.items():
            load = ballast(home, 0)
            failed = run_cli(*command, home / name)
            load.unlink()
            assert (
                failed.returncode not in (0, None)
                and str(home) in failed.stderr.replace("\n", "")
                and "Traceback" not in failed.stderr
            ), (command, failed.stderr)
            assert not (home / name).exists()
            done = run_cli(*command, home / name)
            assert done.returncode == 0 and (home / name).stat().st_size > 100, done.stderr
    record_property("faults", len(commands))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_that_is_full_is_named(models):
    with pytest.raises(OSError, match="No space left on device.*/dev/full"):
        write_atomically("/dev/full", b"text")
    with pytest.raises(OSError, match="/dev/full"):
        models["bpe"][0].save("/dev/full", kind="tokenizer.json")
