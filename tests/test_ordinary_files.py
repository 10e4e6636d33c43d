"""Files that are none.

Pipes and devices are refused by their kind, before anything waits for them; and lists of pieces that are too
long before they are read whole.
"""

import os
import socket
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from subword_nb import Tokenizer
from subword_nb.bulk.encode_files import encode_files
from subword_nb.bulk.distributed import encode_parts
from subword_nb.core.limits import read_bytes
from subword_nb.bulk.shards import record_name, verify_encoded
from subword_nb.corpus.sources import files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes and devices")
KINDS = {"pipe": "a pipe", "socket": "a socket", "null": "a device", "zero": "a device", "link": "a pipe"}


@pytest.fixture
def strange(tmp_path, monkeypatch):
    "Paths that are no ordinary files."
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    held = socket.socket(socket.AF_UNIX)
    held.bind("socket")
    yield {
        "pipe": tmp_path / "pipe",
        "socket": tmp_path / "socket",
        "null": Path("/dev/null"),
        "zero": Path("/dev/zero"),
        "link": tmp_path / "link",
    }
    held.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused(strange, kind, tok, tmp_path):
    "By load, train and encode_files, at once; every reader of tokenizers asks first."
    path, said = strange[kind], f"must be an ordinary file, got {KINDS[kind]}, .* pass the open file"
    calls = [
        lambda: Tokenizer.load(path),
        lambda: Tokenizer.load(str(path)),
        lambda: read_bytes(path),
        lambda: Tokenizer.train(path, vocab_size=300),
        lambda: Tokenizer.train(str(path), vocab_size=300),
        lambda: Tokenizer.train(files(path), vocab_size=300),
        lambda: encode_files(tok, str(path), out=tmp_path / "ids.npy"),
        lambda: encode_parts(tok, [str(path)], out=tmp_path / "parts"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=said):
            call()
    assert not (tmp_path / "ids.npy").exists() and not (tmp_path / "ids.npy.partial").exists()


def test_a_pipe_in_a_folder_is_refused(tok, tmp_path):
    (tmp_path / "a.txt").write_text("text")
    os.mkfifo(tmp_path / "b.txt")
    with pytest.raises(ValueError, match="b.txt must be an ordinary file, got a pipe"):
        Tokenizer.train(tmp_path, vocab_size=300)
    with pytest.raises(ValueError, match="b.txt must be an ordinary file, got a pipe"):
        encode_files(tok, str(tmp_path / "*.txt"), out=tmp_path / "ids.npy")


def test_an_open_pipe_is_read(tmp_path):
    "Whoever opens it knows what it is."

    def open_pipe():
        reader, writer = os.pipe()
        threading.Thread(target=lambda: [os.write(writer, b"hug pug hugs " * 100), os.close(writer)]).start()
        return os.fdopen(reader, "rb")

    with open_pipe() as stream:
        got = Tokenizer.train(files(stream), vocab_size=260)
    assert got.encode("hug") == Tokenizer.train(["hug pug hugs " * 100], vocab_size=260).encode("hug")


@pytest.mark.parametrize(
    "name, line",
    [
        ("vocab.txt", b"%x\n"),
        ("r.tiktoken", b"QQ== %d\n"),
        ("codes.txt", b"a b%x</w>\n"),
        ("m.model", b"%d 97\n"),
    ],
)
def test_lists_that_are_too_long_are_refused_before_they_are_read_whole(name, line, tmp_path):
    "More lines than pieces, or merge rules, are allowed; the part behind them is not looked at."
    start = {"codes.txt": b"#version: 0.2\n", "m.model": b"minbpe v1\n\n0\n"}.get(name, b"")
    path = tmp_path / name
    path.write_bytes(start + b"".join(line % i for i in range(50_000)))
    size = path.stat().st_size
    os.truncate(path, 400 << 20)  # a hole, which takes no space on the disk
    kind = {"codes.txt": "nmt", "m.model": "minbpe", "r.tiktoken": "tiktoken"}.get(name, name)
    tracemalloc.start()
    with pytest.raises(
        ValueError, match="has more than 20,000 lines, and the limit (pieces|merges) is 20,000"
    ):
        Tokenizer.load(
            path,
            limits={"pieces": 20_000, "merges": 20_000},
            **({"pattern": "gpt2"} if kind == "tiktoken" else {}),
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * size + (8 << 20)


def test_a_vocabulary_of_millions_of_lines_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[UNK]\n" + b"".join(b"%x\n" % i for i in range(4_300_000)))
    tracemalloc.start()
    with pytest.raises(ValueError, match="has more than 4,194,304 lines, and the limit pieces is 4,194,304"):
        Tokenizer.load(tmp_path / "vocab.txt")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000


def test_a_missing_record_is_noticed(tok, tmp_path):
    (tmp_path / "a.txt").write_text("some words and more of them\n" * 200)
    encode_parts(tok, [str(tmp_path / "a.txt")], out=tmp_path / "out", part_bytes=1_000)
    assert verify_encoded(tmp_path / "out") == []
    for damage, kind in ((Path.unlink, "missing"), (lambda path: path.write_text("{"), "damaged")):
        place = tmp_path / "out" / record_name(1)
        data = place.read_bytes()
        damage(place)
        assert [(f.name, f.kind) for f in verify_encoded(tmp_path / "out")] == [(record_name(1), kind)]
        place.write_bytes(data)
    assert verify_encoded(tmp_path / "out") == []
