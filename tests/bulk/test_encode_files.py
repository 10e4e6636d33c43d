"""Files to files of ids: every format, every way to cut documents, and runs that are killed at any moment."""

import errno
import gzip
import io
import itertools
import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from seeds import TEXTS, fresh

from subword_nb.bulk import encode_files as page
from subword_nb.bulk import id_files
from subword_nb.bpe.model import BPE
from subword_nb.bulk.encode_files import Cut, cut_documents, cut_documents_ref, encode_files, fingerprint
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.bulk.id_files import load_encoded
from subword_nb.text.pretokenizers import byte_level
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.core.ragged import Ragged
from subword_nb.tokenizer.tokenizer import Tokenizer

END = "<|endoftext|>"
pytestmark = pytest.mark.usefixtures("no_waiting")
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")


@pytest.fixture
def small(monkeypatch):
    "Blocks of a few bytes, and a mark after each."
    monkeypatch.setattr(page, "BLOCK", 700)
    monkeypatch.setattr(page, "JOURNAL_SECONDS", 0.0)


def at_each_sync(monkeypatch, job):
    "Do a job in the middle of a run, whenever it makes sure that what is written is on the disk."
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (job(), real(fd))[1])


def story(n=4000, seed=0):
    "A text with accents, Chinese, an emoji and ends of documents."
    rng = fresh(seed)
    words = ["hug", "pug", "bun", "naïve", "東京", "🤗", "the", "function", END, "\n", "a" * 30]
    return " ".join(rng.choices(words, k=n))


def tree(path):
    "All files below a path, and beside it with its name."
    found = {
        p.relative_to(path.parent).as_posix(): p.read_bytes()
        for p in [path, *path.parent.glob(path.name + ".*"), *path.rglob("*")]
        if p.is_file()
    }
    assert not any(".partial" in name for name in found), sorted(found)
    return found


def rows_of(path):
    "The documents that were written."
    found = load_encoded(path)
    return [row for part in ([found] if isinstance(found, Ragged) else found) for row in part.tolist()]


def expected(tok, data, separator, append=None, **options):
    tail = [] if append is None else [append]
    return [tok.encode(doc, **options) + tail for doc in cut_documents_ref(data, separator)]


def whole(cuts):
    "The documents of cuts, pieces joined; places are checked."
    docs, held, at = [], b"", 0
    for cut in cuts:
        assert cut.start == at
        at = cut.end
        if cut.ends_document:
            docs += [held + cut.docs[0], *cut.docs[1:]]
            held = b""
        else:
            assert len(cut.docs) == 1
            held += cut.docs[0]
    assert not held
    return docs


def test_cut_documents_like_split():
    rng = fresh(1)
    for _ in range(TEXTS):
        data = "".join(rng.choices(["a", "b", "é", "你", "🤗", "\n"], k=rng.randrange(40))).encode()
        separator = rng.choice(
            [None, b"\n", b"a", b"ab", b"aba", b"aa", "é".encode(), b"aab\nb", "你🤗".encode()]
        )
        size, longest = rng.randrange(1, 9), rng.randrange(1, 12)
        cuts = list(
            cut_documents((data[i : i + size] for i in range(0, len(data), size)), separator, longest)
        )
        assert whole(cuts) == cut_documents_ref(data, separator)
        for cut in cuts:
            assert all(d.decode() is not None for d in cut.docs)  # no character is cut
        assert cuts[-1].end == len(data) if cuts else not data


def test_pieces_of_damaged_text_are_the_text():
    rng = fresh(2)
    for _ in range(TEXTS):
        data = bytes(
            rng.choices(
                [0x61, 0x80, 0xBF, 0xC3, 0xE4, 0xBD, 0xA0, 0xF0, 0x9F, 0xED, 0xFF], k=rng.randrange(40)
            )
        )
        size = rng.randrange(1, 6)
        for errors in ("replace", "ignore"):
            pieces = [
                cut.docs[0].decode("utf-8", errors)
                for cut in cut_documents((data[i : i + size] for i in range(0, len(data), size)), None, 1)
            ]
            assert "".join(pieces) == data.decode("utf-8", errors)


@pytest.mark.parametrize("name", ["a.npy", "a.bin", "a.arrow", "a.parquet"])
@pytest.mark.parametrize("shard_tokens", [None, 900])
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_every_format_round_trip(tok, tmp_path, small, name, shard_tokens, dtype):
    if name[-3:] not in ("npy", "bin"):
        pytest.importorskip("pyarrow")
    data = story().encode()
    (tmp_path / "x.txt").write_bytes(data)
    done = encode_files(
        tok,
        tmp_path / "x.txt",
        tmp_path / name,
        separator=END,
        append=END,
        shard_tokens=shard_tokens,
        dtype=dtype,
    )
    want = expected(tok, data, END.encode(), tok.piece2id[END])
    assert rows_of(tmp_path / name) == want
    assert (done.documents, done.tokens, done.bytes, done.dtype) == (
        len(want),
        sum(map(len, want)),
        len(data),
        dtype,
    )
    assert all(p.exists() for p in done.paths) and (len(done.paths) > 3) == bool(shard_tokens)
    assert not (tmp_path / f"{name}.partial").exists()
    parts = load_encoded(tmp_path / name)
    for part in parts if shard_tokens else [parts]:
        assert part.ids.dtype == dtype and part.bounds.dtype == np.int64
    if shard_tokens:
        assert all(len(p.ids) >= 900 and part.bounds[-2] < 900 for p, part in zip(parts[:-1], parts))


def test_other_readers_open_them(tok, tmp_path):
    pa = pytest.importorskip("pyarrow")
    (tmp_path / "x.txt").write_text("a hug\na pug\n\nbun")
    want = [tok.encode(t) for t in ("a hug", "a pug", "", "bun")]
    for name in ("a.npy", "a.bin", "a.arrow", "a.parquet"):
        encode_files(tok, tmp_path / "x.txt", tmp_path / name, separator="\n")
    flat = [i for row in want for i in row]
    assert np.load(tmp_path / "a.npy").tolist() == flat == np.fromfile(tmp_path / "a.bin", "<u2").tolist()
    assert np.load(tmp_path / "a.bin.bounds.npy").tolist() == [0, *np.cumsum([len(r) for r in want]).tolist()]
    table = pa.ipc.open_file(str(tmp_path / "a.arrow")).read_all()
    assert table["input_ids"].to_pylist() == want and table.schema.field(0).type == pa.list_(pa.uint16())
    from pyarrow import parquet

    assert parquet.read_table(tmp_path / "a.parquet")["input_ids"].to_pylist() == want


def test_inputs_of_all_kinds(tok, tmp_path, small):
    text = story(600, 3)
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "c.txt.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "d.txt").write_bytes(b"")
    lines = [{"text": "a hug"}, {"n": 1, "text": "東京\n" * 300}, {"text": ""}]
    (tmp_path / "e.jsonl").write_text(
        "".join(json.dumps(x) + "\n" for x in lines[:2]) + "\n" + json.dumps(lines[2]), encoding="utf-8"
    )
    encode_files(tok, [str(tmp_path / "*.txt*"), tmp_path / "e.jsonl"], tmp_path / "out.npy")
    assert rows_of(tmp_path / "out.npy") == [
        tok.encode(t) for t in [text] * 3 + [""] + [x["text"] for x in lines]
    ]


def test_nothing_to_encode(tok, tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    for name in ("a.npy", "a.bin", *(("a.arrow", "a.parquet") if find_spec("pyarrow") else ())):
        done = encode_files(tok, tmp_path / "empty.txt", tmp_path / name, separator="\n")
        assert (done.documents, done.tokens, rows_of(tmp_path / name)) == (0, 0, [])
    done = encode_files(tok, tmp_path / "empty.txt", tmp_path / "one.npy", shard_tokens=5)
    assert (done.documents, rows_of(tmp_path / "one.npy")) == (1, [[]])
    with pytest.raises(ValueError, match="paths must name at least one file"):
        encode_files(tok, [], tmp_path / "b.npy")


def test_more_than_65536_ids(tok, tmp_path):
    model = replace(tok.model, piece2id={**tok.model.piece2id, "東": 65536})
    large = Tokenizer(
        model, pre_tokenizer=tok.pre_tokenizer, decoder=tok.decoder, added_tokens=tok.added_tokens
    )
    (tmp_path / "x.txt").write_text("a hug")
    assert encode_files(large, tmp_path / "x.txt", tmp_path / "a.npy").dtype == "uint32"
    assert np.load(tmp_path / "a.npy").dtype == np.uint32
    with pytest.raises(ValueError, match="65,537"):
        encode_files(large, tmp_path / "x.txt", tmp_path / "b.npy", dtype="uint16")
    assert encode_files(tok, tmp_path / "x.txt", tmp_path / "c.npy").dtype == "uint16"


def test_what_the_tokenizer_puts_around(tok, tmp_path, small):
    other = Tokenizer(
        tok.model,
        pre_tokenizer=tok.pre_tokenizer,
        decoder=tok.decoder,
        added_tokens=tok.added_tokens,
        post_processor=TemplateProcessing([END, "$A"], special_tokens=[(END, tok.piece2id[END])]),
        truncation=Truncation(12),
        padding=Padding(20),
    )
    data = ("a hug\n" * 50 + "東京" * 700 + "\nbun").encode()
    (tmp_path / "x.txt").write_bytes(data)
    encode_files(other, tmp_path / "x.txt", tmp_path / "a.npy", separator="\n")
    assert rows_of(tmp_path / "a.npy") == expected(other, data, b"\n")
    encode_files(other, tmp_path / "x.txt", tmp_path / "b.npy", separator="\n", add_special_tokens=False)
    assert rows_of(tmp_path / "b.npy") == expected(other, data, b"\n", add_special_tokens=False)


def test_special_tokens_in_texts(tok, tmp_path):
    (tmp_path / "x.txt").write_text(f"a hug{END}bun")
    for allowed in ("all", (), {END}):
        encode_files(tok, tmp_path / "x.txt", tmp_path / "a.npy", allowed_special=allowed, overwrite=True)
        assert rows_of(tmp_path / "a.npy") == [tok.encode(f"a hug{END}bun", allowed_special=allowed)]


def test_chance_is_left_out(tok, tmp_path):
    chancy = Tokenizer(
        replace(tok.model, dropout=0.5),
        pre_tokenizer=tok.pre_tokenizer,
        decoder=tok.decoder,
        added_tokens=tok.added_tokens,
    )
    (tmp_path / "x.txt").write_text("the function returns an iterator")
    encode_files(chancy, tmp_path / "x.txt", tmp_path / "a.npy")
    assert rows_of(tmp_path / "a.npy") == [tok.encode("the function returns an iterator")]


@pytest.mark.parametrize("separator", [None, "\n"])
@pytest.mark.parametrize("errors", ["replace", "ignore", "bytes"])
def test_damaged_text(tok, tmp_path, small, separator, errors):
    data = (b"a hug\n" * 40 + b"pug \xe6\x9d\n\xff" + b"bun\xf0\x9f" * 400) * 2
    (tmp_path / "x.txt").write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.txt.*(0xe6|0xff|0xf0).*offset.*errors="):
        encode_files(tok, tmp_path / "x.txt", tmp_path / "a.npy", separator=separator)
    assert not (tmp_path / "a.npy").exists()
    encode_files(tok, tmp_path / "x.txt", tmp_path / "b.npy", separator=separator, errors=errors)
    assert rows_of(tmp_path / "b.npy") == expected(tok, data, separator and separator.encode(), errors=errors)


def test_files_that_are_no_text(tok, tmp_path, small):
    "Documents of generated bytes, most of them text; packed ones, long ones, and ones that are cut off or filled up."
    rng = fresh("bytes")
    parts = [
        b"a hug",
        " naïve 東京".encode(),
        b"\n",
        b"\n",
        b"\xff",
        b"\xe6\x9d",
        b" pug",
        "🤗".encode(),
        END.encode(),
    ]
    framed = Tokenizer(
        tok.model,
        pre_tokenizer=tok.pre_tokenizer,
        decoder=tok.decoder,
        added_tokens=tok.added_tokens,
        truncation=Truncation(9),
        padding=Padding(4),
    )
    for n in range(12):
        data = b"".join(
            rng.choices(parts, weights=[9, 9, 3, 3, 0.2, 0.2, 9, 3, 1], k=rng.choice([0, 5, 60, 900]))
        )
        path, separator, who = (
            tmp_path / ("x.gz" if n % 4 == 3 else "x.dat"),
            rng.choice([None, b"\n", b"\xff"]),
            rng.choice([tok, framed]),
        )
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        encode_files(
            who, path, tmp_path / "a.npy", separator=separator, errors="bytes", append=END, overwrite=True
        )
        assert rows_of(tmp_path / "a.npy") == expected(
            who, data, separator, tok.piece2id[END], errors="bytes"
        )


def test_bytes_that_cannot_be_encoded_are_named(tok, tmp_path):
    (tmp_path / "x.dat").write_bytes(b"a\nab\xff\n")
    words = Tokenizer.train(["a b"], algorithm="wordlevel", vocab_size=5)
    with pytest.raises(ValueError, match="load a tokenizer of that kind"):
        encode_files(words, tmp_path / "x.dat", tmp_path / "a.npy", errors="bytes")
    few = Tokenizer(BPE({"a": 0, "b": 1}, []), pre_tokenizer=byte_level("gpt2"))
    with pytest.raises(
        ValueError, match=r"x\.dat, document at byte 2: the vocabulary must have a piece for the byte 0xff"
    ):
        encode_files(few, tmp_path / "x.dat", tmp_path / "a.npy", separator="\n", errors="bytes")
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a hug"}\n')
    encode_files(tok, tmp_path / "x.jsonl", tmp_path / "b.npy", errors="bytes")
    assert rows_of(tmp_path / "b.npy") == [tok.encode("a hug")]
    for line, message in (
        (b'{"text": "\xff"}', "line at byte 0 must be UTF-8, got the byte 0xff at offset 10"),
        (b'{"text": "\\ud83d"}', "document at byte 0: .*surrogate"),
    ):
        (tmp_path / "x.jsonl").write_bytes(line)
        with pytest.raises(ValueError, match=message):
            encode_files(tok, tmp_path / "x.jsonl", tmp_path / "c.npy", errors="bytes")


def job(folder, name, **options):
    "The arguments of a run with several files, documents of all lengths, and shards."
    paths = [folder / "x1.txt", folder / "x2.txt.gz", folder / "x3.jsonl", folder / "x4.txt"]
    if not paths[0].exists():
        paths[0].write_bytes(story(900, 1).encode())
        paths[1].write_bytes(gzip.compress((story(400, 2) + "東京 hug" * 300).encode(), mtime=0))
        paths[2].write_text(
            "".join(json.dumps({"text": story(40, k)}) + "\n" for k in range(20)), encoding="utf-8"
        )
        paths[3].write_bytes(b"")
        for p in paths:
            os.utime(p, (1_000_000_000, 1_000_000_000))  # both runs of a comparison read the same
    return dict(paths=paths, out=folder / name, separator=END, append=END) | options


class Killed(BaseException): ...


def die_at(k, monkeypatch, how):
    "Let the k-th call that touches the disk be the last."
    left = [k]

    def wrap(home, name):
        real = getattr(home, name)

        def wrapped(*args, **more):
            if left[0] == 0:
                how()
            left[0] -= 1
            return real(*args, **more)

        monkeypatch.setattr(home, name, wrapped)

    for home, name in (
        (os, "fsync"),
        (os, "replace"),
        (type(page.Path()), "unlink"),
        (shutil, "rmtree"),
        (os, "rename"),
    ):
        wrap(home, name)
    return left


@unix
@pytest.mark.parametrize(
    "name,limit,overwrite",
    [
        ("a.npy", None, True),
        ("b.npy", 700, False),
        ("b.npy", 700, True),
        ("c.parquet", 700, True),
        ("d.arrow", None, False),
    ],
)
def test_killed_at_every_step(tok, tmp_path, small, name, limit, overwrite, record_property):
    if name[-3:] != "npy":
        pytest.importorskip("pyarrow")
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    calm.mkdir(), rough.mkdir()
    encode_files(tok, **job(tmp_path, f"calm/{name}", shard_tokens=limit))
    want = tree(calm / name)
    rng, at, steps = fresh(4), 0, 0
    while True:  # each child dies a few steps further on than the last
        if overwrite and not (rough / name).exists() and not (rough / f"{name}.partial").exists():
            encode_files(tok, [tmp_path / "x1.txt"], rough / name, shard_tokens=limit)
            old = tree(rough / name)
        child = os.fork()
        if child == 0:
            with pytest.MonkeyPatch.context() as patch:
                die_at(at, patch, lambda: os._exit(9))
                encode_files(tok, **job(tmp_path, f"rough/{name}", shard_tokens=limit, overwrite=overwrite))
                os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9)
        steps += 1
        if code == 0:
            break
        if (rough / name).exists():  # what has the name is whole: the old or the new
            found = {
                p.relative_to(rough).as_posix(): p.read_bytes()
                for p in rough.rglob("*")
                if p.is_file() and ".partial" not in str(p.relative_to(rough))
            }
            assert found == want or overwrite and found == old
        at = at + 1 if rng.random() < 0.7 else rng.randrange(at + 2)
        assert steps < 500
    assert tree(rough / name) == want and steps > 5
    record_property("kills", steps - 1)


class Mortal(io.BufferedRandom):
    "A file of a process that ends in one of its writes, all files counted: before it, with a part of it on the disk, or behind it."

    left, phase = -1, "before"

    def write(self, data):
        Mortal.left -= 1
        if Mortal.left == 0 and self.phase != "before":
            data = memoryview(data).cast("B") if len(data) else b""
            super().write(data[: len(data) // 2 if self.phase == "within" else None])
            self.flush()
        if Mortal.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(data)


def whole_run(tok, paths, out):
    encode_files(
        tok, paths, out, separator=END, append=END, shard_tokens=8_000 if "shards" in out.name else None
    )


def start(tok, paths, out, at=-1, phase="before"):
    "A process that encodes, and ends in its write number `at`; counted from 1."
    if child := os.fork():
        return child
    try:
        Mortal.left, Mortal.phase = at, phase
        id_files.open = lambda path, mode: Mortal(
            io.FileIO(path, mode.replace("b", "") if "+" in mode else "w+")
        )
        whole_run(tok, paths, out)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


@pytest.fixture
def three(tmp_path, monkeypatch):
    "Three files, read in blocks of some kilobytes, with a mark after each."
    monkeypatch.setattr(page, "BLOCK", 3000)
    monkeypatch.setattr(page, "JOURNAL_SECONDS", 0.0)
    paths = [tmp_path / f"t{k}.txt" for k in range(3)]
    for k, p in enumerate(paths):
        p.write_bytes((story(5000, k) + "東京 hug" * 700).encode())
    (tmp_path / "calm").mkdir(), (tmp_path / "rough").mkdir()
    return paths


def marks(partial):
    "Whole lines of a journal."
    return (
        (partial / "journal.jsonl").read_bytes().count(b"\n") if (partial / "journal.jsonl").exists() else 0
    )


@unix
@pytest.mark.parametrize("name", ["a.npy", "shards.parquet"])
def test_sigkill_in_ten_random_writes(tok, tmp_path, three, name):
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    calm, rough = tmp_path / "calm" / name, tmp_path / "rough" / name
    whole_run(tok, three, calm)  # compiles what the processes need
    rng, seen, phases = random.Random(5), [], itertools.cycle(["before", "within", "behind"])
    while len(seen) < 10 or len(set(seen)) < 5:  # how many marks lie between two writes is the clock's affair
        assert len(seen) < 40
        assert (
            os.waitpid(start(tok, three, rough, rng.randrange(1, 12), next(phases)), 0)[1] == signal.SIGKILL
        )
        seen.append(marks(rough.with_name(f"{name}.partial")))
    assert seen == sorted(seen)  # each went on where the last had stopped
    assert os.waitpid(start(tok, three, rough), 0)[1] == 0
    assert tree(rough) == tree(calm)


@unix
@pytest.mark.parametrize("name", ["a.npy", "shards.parquet"])
def test_sigkill_from_outside_at_any_moment(tok, tmp_path, three, name):
    "Wherever a process is when its journal has some lines more; it may have ended before."
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    calm, rough, rng = tmp_path / "calm" / name, tmp_path / "rough" / name, fresh(6)
    whole_run(tok, three, calm)  # compiles what the processes need
    partial = rough.with_name(f"{name}.partial")
    for _ in range(10):
        aim, child = marks(partial) + rng.randrange(4), start(tok, three, rough)
        while marks(partial) < aim and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(rng.random() / 1000)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] in (0, signal.SIGKILL)
        if rough.exists():
            break
    assert os.waitpid(start(tok, three, rough), 0)[1] == 0
    assert tree(rough) == tree(calm)


def test_goes_on_where_it_stopped(tok, tmp_path, small, monkeypatch):
    args = job(tmp_path, "a.npy")
    with monkeypatch.context() as patch:
        left = die_at(30, patch, lambda: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            encode_files(tok, **args)
        assert left == [0]
    last = json.loads((tmp_path / "a.npy.partial" / "journal.jsonl").read_text().splitlines()[-1])
    read = []
    monkeypatch.setattr(
        page, "cut_documents", lambda *a: (read.append(cut) or cut for cut in cut_documents(*a))
    )
    done = encode_files(tok, **args)
    assert done.resumed and last["read"] > 0
    assert sum(cut.end - cut.start for cut in read) == done.bytes - last["read"]
    assert encode_files(tok, **args) == done  # nothing is left to do


def test_other_runs_are_refused(tok, tmp_path, small, monkeypatch):
    args = job(tmp_path, "a.npy")
    with monkeypatch.context() as patch:
        die_at(30, patch, lambda: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            encode_files(tok, **args)
    other = Tokenizer(tok.model, pre_tokenizer="cl100k", decoder=tok.decoder, added_tokens=tok.added_tokens)
    for who, change, said in (
        (tok, {"separator": "\n"}, "separator"),
        (tok, {"dtype": "uint32"}, "dtype"),
        (other, {}, "tokenizer"),
        (tok, {"append": None}, "append"),
        (tok, {"paths": args["paths"][:2]}, "inputs"),
    ):
        with pytest.raises(ValueError, match=f"unfinished run with other {said}.*resume=False"):
            encode_files(who, **{**args, **change})
    args["paths"][0].write_text("new")
    with pytest.raises(ValueError, match="with other inputs"):
        encode_files(tok, **args)
    done = encode_files(tok, **args, resume=False)
    assert not done.resumed and rows_of(tmp_path / "a.npy")[0] == tok.encode("new") + [tok.piece2id[END]]
    with pytest.raises(FileExistsError, match="overwrite=True"):
        encode_files(tok, **{**args, "append": None})
    with pytest.raises(FileExistsError, match="overwrite=True"):
        encode_files(tok, **args, resume=False)
    assert (
        encode_files(tok, **{**args, "append": None}, overwrite=True).tokens == done.tokens - done.documents
    )


def test_a_damaged_journal_and_damaged_files(tok, tmp_path, small, monkeypatch):
    args = job(tmp_path, "a.npy")
    encode_files(tok, **{**args, "out": tmp_path / "b.npy"})
    partial = tmp_path / "a.npy.partial"
    for damage in ("torn", "garbage", "empty", "short"):
        with monkeypatch.context() as patch:
            die_at(40, patch, lambda: (_ for _ in ()).throw(Killed()))
            with pytest.raises(Killed):
                encode_files(tok, **args)
        log = partial / "journal.jsonl"
        data = log.read_bytes()
        if damage == "short":
            (partial / "shards" / "a.npy").write_bytes(b"")
            with pytest.raises(ValueError, match="bytes of its journal, got fewer.*resume=False"):
                encode_files(tok, **args)
        else:
            log.write_bytes({"torn": data[:-9], "garbage": data + b"\0\0\xff", "empty": b""}[damage])
        encode_files(tok, **args, resume=damage != "short")
        assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
        assert (tmp_path / "a.npy.bounds.npy").read_bytes() == (tmp_path / "b.npy.bounds.npy").read_bytes()
        (tmp_path / "a.npy").unlink()
        (tmp_path / "a.npy.json").unlink()


def test_an_input_that_changes_while_it_is_read(tok, tmp_path, small, monkeypatch):
    args = job(tmp_path, "a.npy")
    at_each_sync(monkeypatch, lambda: args["paths"][0].open("a").write("more"))
    with pytest.raises(ValueError, match="must not change while it is read, got a file that did"):
        encode_files(tok, **args)
    assert not (tmp_path / "a.npy").exists()


@unix
def test_two_processes_do_not_write_the_same(tok, tmp_path, small, monkeypatch):
    args, seen = job(tmp_path, "a.npy"), []

    def second():
        with pytest.raises(ValueError, match="must be written by one process at a time, got a second"):
            encode_files(tok, **args)
        seen.append(True)

    with monkeypatch.context() as patch:
        at_each_sync(patch, second)
        encode_files(tok, **args)
    assert seen


@unix
def test_a_full_disk(tok, tmp_path):
    "A limit on the size of files stands for a disk without page."
    args = job(tmp_path, "a.npy")
    child = os.fork()
    if child == 0:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        try:
            encode_files(tok, **args)
        except OSError as e:
            os._exit(17 if e.errno == errno.EFBIG else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert not (tmp_path / "a.npy").exists() and (tmp_path / "a.npy.partial").exists()
    encode_files(tok, **args)
    encode_files(tok, **{**args, "out": tmp_path / "b.npy"})
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_places_that_cannot_be_written(tok, tmp_path):
    (tmp_path / "x.txt").write_text("a hug")
    with pytest.raises(FileNotFoundError, match="create it first"):
        encode_files(tok, tmp_path / "x.txt", tmp_path / "no" / "a.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError, match="did not write"):
        encode_files(tok, tmp_path / "x.txt", tmp_path / "folder.npy", overwrite=True)
    (tmp_path / "a.npy.partial").mkdir()
    (tmp_path / "a.npy.partial" / "mine").write_text("keep")
    with pytest.raises(ValueError, match="contains something else"):
        encode_files(tok, tmp_path / "x.txt", tmp_path / "a.npy")
    assert (tmp_path / "a.npy.partial" / "mine").read_text() == "keep"
    (tmp_path / "closed").mkdir(mode=0o500)
    if not os.access(tmp_path / "closed", os.W_OK):
        with pytest.raises(PermissionError):
            encode_files(tok, tmp_path / "x.txt", tmp_path / "closed" / "a.npy")


def test_mistakes_are_named(tok, tmp_path):
    (tmp_path / "x.txt").write_text("a hug")
    (tmp_path / "x.jsonl").write_text('{"body": "a hug"}\n')
    (tmp_path / "y.jsonl").write_text('{"text": "a hug"}\nno\n')
    (tmp_path / "z.txt.gz").write_bytes(gzip.compress(b"hug" * 1000)[:-9])
    x, out = tmp_path / "x.txt", tmp_path / "a.npy"
    for change, said in (
        (dict(out=tmp_path / "a.txt"), "out must end in .npy, .bin, .arrow or .parquet"),
        (dict(format="csv"), "format must be one of npy, bin, arrow, parquet, got 'csv'"),
        (dict(dtype="int8"), "dtype must be 'uint16', 'uint32', or None .*, got 'int8'"),
        (dict(separator=""), "separator must have at least one byte"),
        (dict(append="nowhere"), "append must be a piece or an id of this tokenizer, got 'nowhere'"),
        (dict(append=10**6), "append must be .*, got 1000000"),
        (dict(shard_tokens=0), "shard_tokens must be an int from 1, .*, got 0"),
        (dict(errors="skip"), "errors must be .* got 'skip'"),
        (
            dict(paths=tmp_path / "x.jsonl"),
            "byte 0: a line must have a text under 'text', got an object with 'body'; pass field=",
        ),
        (dict(paths=tmp_path / "y.jsonl"), "line at byte 18: a line must be a JSON object"),
        (dict(paths=tmp_path / "z.txt.gz"), "got a truncated one"),
        (dict(allowed_special="x"), "allowed_special"),
    ):
        with pytest.raises(ValueError, match=said):
            encode_files(tok, **{"paths": x, "out": out, "resume": False, **change})
        assert not out.exists()
    with pytest.raises(FileNotFoundError, match="no file"):
        encode_files(tok, "nothing*.txt", out)
    with pytest.raises(FileNotFoundError, match="an output of encode_files"):
        load_encoded(out)
    assert encode_files(tok, tmp_path / "x.jsonl", out, field="body", resume=False).documents == 1
    (tmp_path / "a.npy.bounds.npy").write_bytes(
        (tmp_path / "a.npy.bounds.npy").read_bytes().replace(b"(2,)", b"(1,)")
    )
    with pytest.raises(ValueError, match="must contain as many ids as its bounds say"):
        load_encoded(out)


def test_fingerprints(tok, tmp_path):
    tok.save(tmp_path / "tok.json")
    once = fingerprint(tok)
    assert once == fingerprint(Tokenizer.load(tmp_path / "tok.json"))
    merges = list(tok.model.merges)
    merges[-1], merges[-2] = merges[-2], merges[-1]
    others = [
        Tokenizer(
            replace(tok.model, merges=merges),
            pre_tokenizer=tok.pre_tokenizer,
            decoder=tok.decoder,
            added_tokens=tok.added_tokens,
        ),
        Tokenizer(tok.model, pre_tokenizer="cl100k", decoder=tok.decoder, added_tokens=tok.added_tokens),
        Tokenizer(
            tok.model,
            pre_tokenizer=tok.pre_tokenizer,
            decoder=tok.decoder,
            added_tokens=tok.added_tokens,
            normalizer="nfc",
        ),
        Tokenizer(tok.model, pre_tokenizer=tok.pre_tokenizer, decoder=tok.decoder, added_tokens=()),
        Tokenizer(
            tok.model,
            pre_tokenizer=tok.pre_tokenizer,
            decoder=tok.decoder,
            added_tokens=tok.added_tokens,
            allowed_special=(),
        ),
        Tokenizer(
            tok.model,
            pre_tokenizer=tok.pre_tokenizer,
            decoder=tok.decoder,
            added_tokens=tok.added_tokens,
            truncation=Truncation(5),
        ),
    ]
    assert len({once, *map(fingerprint, others)}) == 1 + len(others)
    code = (
        "import sys; from subword_nb.tokenizer.tokenizer import Tokenizer; "
        "from subword_nb.bulk.encode_files import fingerprint; print(fingerprint(Tokenizer.load(sys.argv[1])))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "tok.json")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.stdout.strip() == once, done.stderr


def test_a_cut_is_a_plain_tuple():
    assert list(cut_documents([b"a\nb", b"c\n"], b"\n", 99)) == [
        Cut([b"a"], True, 0, 2),
        Cut([b"bc"], True, 2, 5),
    ]


def test_a_mended_file_is_read_when_the_run_goes_on(tok, tmp_path):
    good, bad = tmp_path / "a.txt", tmp_path / "b.txt"
    good.write_text("hugs")
    bad.write_bytes(b"hug \xff")
    args = dict(paths=[good, bad], out=tmp_path / "ids.npy")
    with pytest.raises(ValueError, match="b.txt.*must be UTF-8, .*offset 4"):
        encode_files(tok, **args)
    assert not (tmp_path / "ids.npy").exists()
    bad.write_text("pugs and puns")
    assert encode_files(tok, **args).resumed
    assert rows_of(tmp_path / "ids.npy") == [tok.encode("hugs"), tok.encode("pugs and puns")]
    for paths in (5, None, [good, 5], b"a.txt"):
        with pytest.raises(ValueError, match="paths must be a path, a pattern, or a list of them"):
            encode_files(tok, paths, tmp_path / "no.npy")
