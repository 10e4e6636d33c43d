"""Documents from anywhere: exact, bounded, and clear when something is wrong."""

import gzip
import json
import lzma
import os
import random
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from subword_nb.corpus import documents as corpus
from subword_nb.corpus.documents import (
    COURSE_CORPUS,
    TOY_BYTES,
    TOY_COUNTS,
    default_corpus,
    documents,
    find_files,
    from_string,
)

TEXT = "naïve 東京 🚀\r\n\ttabs\n\nand 3 more\nlines\x00\x85\u2028\ufeff end"


def write(path: Path, data: bytes) -> Path:
    opener = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix.lower(), bytes)
    path.write_bytes(opener(data))
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    "Files are read a few bytes at a time."
    monkeypatch.setattr(corpus, "BLOCK", 7)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz", "A.GZ", "no_suffix"])
def test_a_file_is_read_exactly(tmp_path, name):
    p = write(tmp_path / name, TEXT.encode())
    assert list(documents(p)) == list(documents(str(p))) == list(documents([p])) == [TEXT]


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.xz"])
@pytest.mark.parametrize("errors", ["replace", "ignore"])
def test_chunks_joined_are_the_file_whatever_its_bytes(tmp_path, small_blocks, name, errors):
    rng = random.Random(0)
    for _ in range(60):
        data = b"".join(
            rng.choice([b"a", b"b ", b"\n", b"\r\n", "é".encode(), "東".encode(), b"\xff", b"\xe6\x9d", b"9"])
            for _ in range(rng.randrange(60))
        )
        p = write(tmp_path / name, data)
        assert "".join(documents(p, errors=errors)) == data.decode("utf-8", errors)


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.xz"])
def test_a_bad_byte_is_named_by_its_place_in_the_whole_text(tmp_path, small_blocks, name):
    rng = random.Random(1)
    for bad, tail in [
        (b"\xff", b""),
        (b"\xe6\x9d", b"a"),
        (b"\xe6\x9d", b""),
        (b"\xed\xa0\x80", b"a"),
        (b"\xc0\xaf", b""),
    ]:
        for _ in range(20):
            good = "".join(rng.choice("a é東\n") for _ in range(rng.randrange(40))).encode()
            p = write(tmp_path / name, good + bad + tail)
            with pytest.raises(ValueError) as e:
                list(documents(p))
            assert f"{p} must be UTF-8, got the byte 0x{bad[0]:02x} at offset {len(good)}" in str(e.value)
            assert "errors=" in str(e.value)


# The published patterns of the GPT family: a chunk may end only where all of them cut anyway.
PUBLISHED = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "whitespace": r"\w+|[^\w\s]+",
    "whitespace_split": r"\S+",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_chunks_never_change_a_pretoken(tmp_path, small_blocks, name):
    regex = pytest.importorskip("regex")
    pattern, rng, cuts = regex.compile(PUBLISHED[name]), random.Random(2), 0
    for _ in range(400):
        text = "".join(
            rng.choice(
                [
                    "a",
                    "B",
                    "1",
                    " ",
                    " ",
                    "\n",
                    "\n",
                    "\r\n",
                    ".",
                    "/",
                    "'s",
                    "é",
                    "東",
                    "\u3000",
                    "\t",
                    "\u0301",
                ]
            )
            for _ in range(rng.randrange(80))
        )
        p = write(tmp_path / "a", text.encode())
        docs = list(documents(p))
        cuts += len(docs) > 1
        assert [t for d in docs for t in pattern.findall(d)] == pattern.findall(text)
    assert cuts > 100


def test_memory_stays_bounded(tmp_path):
    p = tmp_path / "big.xz"
    with lzma.open(p, "wb", preset=0) as f:
        for i in range(40):
            f.write(b"a line of text that says nothing new at all\n" * 24_000 + str(i).encode() + b"\n")
    tracemalloc.start()
    total = sum(len(d) for d in documents(p))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 40_000_000 and peak < 12_000_000


def test_one_endless_line_is_cut_between_words_and_then_anywhere(tmp_path, monkeypatch):
    p = write(tmp_path / "line", b"word " * 700_000)
    docs = list(documents(p))
    assert (
        len(docs) > 2
        and all(d.startswith((" word", "word")) for d in docs)
        and "".join(docs) == "word " * 700_000
    )
    monkeypatch.setattr(corpus, "LONGEST", 1 << 20)
    p = write(tmp_path / "solid", b"x" * 5_000_000)
    docs = list(documents(p))
    assert len(docs) > 1 and max(map(len, docs)) <= 3 << 20 and "".join(docs) == "x" * 5_000_000


def test_globs_are_sorted_and_cross_folders(tmp_path):
    (tmp_path / "sub.txt").mkdir()
    for name in ("b.txt", "a.txt", "sub.txt/c.txt", "d.md", "[x].txt"):
        write(tmp_path / name, name.encode())
    assert list(documents(f"{tmp_path}/*.txt")) == ["[x].txt", "a.txt", "b.txt"]
    assert list(documents(f"{tmp_path}/**/*.txt")) == ["[x].txt", "a.txt", "b.txt", "sub.txt/c.txt"]
    assert list(documents(f"{tmp_path}/[x].txt")) == [
        "[x].txt"
    ]  # a file that is there is itself, not a pattern
    assert [p.name for p in find_files(f"{tmp_path}/[ab].txt")] == ["a.txt", "b.txt"]


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write(tmp_path / "a.txt", b"at home")
    assert list(documents("~/a.txt")) == list(documents("~/*.txt")) == ["at home"]


def test_iterables_mix_text_bytes_and_paths(tmp_path):
    p = write(tmp_path / "a.gz", b"packed")
    assert list(documents(["", "a\n", b"b", bytearray(b"c"), p])) == ["", "a\n", "b", "c", "packed"]
    assert list(documents(iter(COURSE_CORPUS))) == COURSE_CORPUS
    assert list(documents([])) == [] and list(documents(write(tmp_path / "empty", b""))) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_pipe_is_a_file(tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(fifo)!r}, 'w').write('through a pipe')"])
    assert list(documents(fifo)) == ["through a pipe"]
    assert writer.wait() == 0


def test_an_open_binary_file_is_read_like_its_path(tmp_path, small_blocks):
    p = write(tmp_path / "a.txt", TEXT.encode() * 3)
    with open(p, "rb") as f:
        assert list(documents(f)) == list(documents(p))
        assert not f.closed
    bad = write(tmp_path / "bad.txt", b"some words\n\xff")
    with (
        open(bad, "rb") as f,
        pytest.raises(ValueError, match=re.escape(f"{bad} must be UTF-8, got the byte 0xff at offset 11")),
    ):
        list(documents(f))


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("nothing.txt", FileNotFoundError, "to use the text itself pass it in a list: [text]"),
        ("nothing/*.txt", FileNotFoundError, "no file matches 'nothing/*.txt'"),
        ("x" * 5000, FileNotFoundError, "…"),
        ("a text with * and\0 in it" * 300, FileNotFoundError, "no file is called"),
        ("two * lines\nof [text]?" * 300, FileNotFoundError, "no file matches"),
        ("~no-such-user/a.txt", FileNotFoundError, "'~no-such-user/a.txt'"),
        ("", FileNotFoundError, "no file is called ''"),
        (Path("nothing.txt"), FileNotFoundError, "no file nothing.txt"),
        (Path("."), IsADirectoryError, "with a pattern"),
        (
            None,
            ValueError,
            "source must be a path, a glob pattern, or an iterable of str, bytes or Path, got NoneType",
        ),
        (
            7,
            ValueError,
            "source must be a path, a glob pattern, or an iterable of str, bytes or Path, got int",
        ),
        (b"text", ValueError, "[data]"),
        (TOY_COUNTS, ValueError, "list(counts)"),
    ],
)
def test_a_wrong_source_is_refused_at_once(source, error, says):
    with pytest.raises(error, match=re.escape(says)):
        documents(source)


def test_a_wrong_document_is_named_by_its_position(tmp_path):
    for docs, says in (
        (["a", None], "document 1 (counted from 0) must be str, bytes or pathlib.Path, got NoneType"),
        ([7], "document 0 (counted from 0) must be str, bytes or pathlib.Path, got int"),
        ([["a", ["b"]]], "document 1 (counted from 0) must be str, bytes or pathlib.Path, got list"),
        (["a", "b", b"\xff"], "document 2 must be UTF-8, got the byte 0xff at offset 0 (invalid start byte)"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            list(documents(docs))
    with pytest.raises(FileNotFoundError, match="no file"):
        list(documents(["a", tmp_path / "missing"]))


@pytest.mark.parametrize("kind", [".gz", ".xz"])
def test_damaged_archives_are_named(tmp_path, kind):
    whole = write(tmp_path / f"whole{kind}", random.Random(0).randbytes(3000).hex().encode()).read_bytes()
    for keep in (len(whole) - 1, len(whole) // 2, 12):
        (tmp_path / f"cut{kind}").write_bytes(whole[:keep])
        with pytest.raises(
            ValueError, match=re.escape(f"cut{kind} must be a complete {kind} file, got a truncated one")
        ):
            list(documents(tmp_path / f"cut{kind}"))
    for place in (0, len(whole) // 2, len(whole) - 6):
        bad = bytearray(whole)
        bad[place] ^= 0xFF
        (tmp_path / f"bad{kind}").write_bytes(bad)
        with pytest.raises(
            ValueError,
            match=rf"bad\{kind} must be a (valid|complete) \{kind} file, got .*download or compress it again",
        ):
            list(documents(tmp_path / f"bad{kind}"))


def test_errors_is_checked_at_the_door():
    with pytest.raises(ValueError, match="errors must .*got 'surrogateescape'"):
        documents(["a"], errors="surrogateescape")


def test_default_corpus_is_english_prose_and_has_no_nul():
    prose = default_corpus()
    text = "\n".join(prose)
    assert len(prose) >= 70 and len(text) > 400_000 and "\0" not in text and "the" in text.split()
    assert all(isinstance(d, str) and d for d in prose)


def test_a_python_without_its_manual_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(ModuleNotFoundError, match="pass a corpus of yours"):
        default_corpus()


def test_toy_corpora_are_as_published(shared_file):
    assert TOY_COUNTS == {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5} and TOY_BYTES == b"aaabdaaabac"
    letters = {
        c
        for m in json.loads(shared_file("course_expected.json").read_text())["bpe"]["merges"]
        for c in "".join(m)
    } - {"Ġ"}
    assert letters <= set("".join(COURSE_CORPUS)) and len(COURSE_CORPUS) == 4


def test_from_string_splits_and_drops_what_is_empty():
    assert from_string("a--b----c", sep="--") == ["a", "b", "c"] and from_string(" ") == [" "]


def test_files_report_the_bytes_on_disk(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        corpus,
        "track",
        lambda items, total, desc, progress, unit, step: (
            seen.append(total) or (x for x in items if seen.append(step(x)) is None)
        ),
    )
    paths = [write(tmp_path / n, b"text\n" * 500) for n in ("a.txt", "b.gz", "c.xz")]
    list(documents(f"{tmp_path}/*"))
    assert seen[0] == sum(p.stat().st_size for p in paths) == sum(seen[1:])


def test_importing_the_page_is_light():
    heavy = ("numpy", "numba", "regex", "tqdm", "lzma", "gzip", "pydoc_data.topics")
    code = f"import sys, subword_nb.corpus.documents; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
