"""Files to shards: the same ids whatever the parts, folders that are damaged or hostile, and runs that are killed at any step."""

import errno
import gzip
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

import mishaps
import numpy as np
import pytest
from seeds import fresh, window

from subword_nb.bulk import encode_files as files_room
from subword_nb.bulk import distributed as page
from subword_nb.bulk import id_files
from subword_nb.bulk import shards
from subword_nb.pipeline.thresholds import SIZES
from subword_nb.corpus.documents import default_corpus
from subword_nb.bulk.encode_files import cut_documents_ref, encode_files
from subword_nb.bulk.distributed import encode_parts, part_ranges, plan_parts
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.bulk.id_files import load_encoded
from subword_nb.core.limits import limited
from subword_nb.text.pretokenizers import ByteLevel
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.bulk.shards import MANIFEST, checksum, load_shards, read_manifest, read_record, verify_encoded
from subword_nb.tokenizer.tokenizer import Tokenizer

END = "<|endoftext|>"
ROUNDS = int(os.environ.get("SUBWORD_NB_ROUNDS", "60"))
KILLS = int(os.environ.get("SUBWORD_NB_KILLS", "40"))
pytestmark = pytest.mark.usefixtures("no_waiting")
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")


def story(
    n=400,
    seed=0,
    words=(
        "hug",
        "pug",
        "bun",
        "naïve",
        "東京",
        "🤗",
        "the",
        "function",
        END,
        "\n",
        "\r\n",
        "\n\n",
        "a" * 30,
    ),
):
    "A text with accents, Chinese, an emoji, ends of lines of both kinds, and ends of documents."
    return " ".join(random.Random(seed).choices(words, k=n))


def tree(folder):
    "All files in a folder, with what tells their bytes apart and is short to print."
    return {p.name: (p.stat().st_size, checksum(p)) for p in sorted(folder.iterdir())}


def one_machine(tok, paths, out, **options):
    "Ids and bounds of one array, as `encode_files` writes them."
    if out.exists():
        out.unlink()
    encode_files(tok, paths, out, overwrite=True, **options)
    return load_encoded(out)


def same(folder, want):
    "The ids and bounds of a folder are these, bit for bit, document for document; and nothing is wrong with it."
    found = load_shards(folder)
    got = found.ragged()
    assert got.ids.dtype == want.ids.dtype and np.array_equal(got.ids, want.ids)
    assert np.array_equal(got.bounds, want.bounds)
    assert [doc.tolist() for doc in found] == want.tolist()
    assert verify_encoded(folder) == []
    return found


@pytest.fixture
def mixed(tmp_path):
    "Files of every kind."
    home = tmp_path / "texts"
    home.mkdir()
    for k, text in enumerate(
        [
            story(120),
            "",
            "\n",
            story(30, 1),
            "\n\n\n",
            "ends without",
            story(3, 2) + "\n",
            "\r\na\r\n\r\nb",
            "x",
        ]
    ):
        (home / f"t{k}.txt").write_bytes(text.encode())
    lines = [
        json.dumps({"text": t, "n": k}) for k, t in enumerate([story(20, 3), "", "a\nb", "東京 🤗", END])
    ]
    (home / "u.jsonl").write_text("\n".join(["", *lines, "", " "]), encoding="utf-8")
    (home / "v.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (home / "w.txt.gz").write_bytes(gzip.compress(story(60, 4).encode()))
    (home / "x.txt.gz").write_bytes(gzip.compress(b""))
    return sorted(home.iterdir())


@pytest.mark.parametrize(
    "separator, format",
    [
        (None, "bin"),
        ("\n", "bin"),
        ("\n\n", "bin"),
        (END, "bin"),
        (b"aa", "bin"),
        ("東京".encode(), "bin"),
        (None, "parquet"),
        ("\n\n", "parquet"),
    ],
)
def test_any_parts_are_the_whole(tok, tmp_path, mixed, format, separator):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    for append in (None, END)[format == "parquet" :]:
        want = one_machine(tok, mixed, tmp_path / "one.npy", separator=separator, append=append)
        seen = []
        for part_bytes in (20, 100, 900, 1 << 20):
            done = encode_parts(
                tok,
                mixed,
                tmp_path / f"{part_bytes}{append}",
                format=format,
                separator=separator,
                append=append,
                part_bytes=part_bytes,
            )
            found = same(done.folder, want)
            assert (done.documents, done.tokens, done.made, done.dtype) == (
                len(want.bounds) - 1,
                len(want.ids),
                done.shards,
                "uint16",
            )
            assert (
                done.bytes
                == read_manifest(done.folder).bytes
                == sum(len((gzip.decompress if p.suffix == ".gz" else bytes)(p.read_bytes())) for p in mixed)
            )
            seen.append(len(found.manifest.shards))
        assert seen == sorted(seen, reverse=True) and seen[0] > 9 and seen[-1] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "uint32"},
        {"allowed_special": ()},
        {"errors": "replace"},
        {"errors": "ignore"},
        {"errors": "bytes"},
        {"add_special_tokens": False},
    ],
)
def test_options_are_those_of_one_machine(tok, tmp_path, mixed, options):
    if "errors" in options:
        (tmp_path / "odd.txt").write_bytes(b"hug\xff pug \xe4\xba hug\n" * 40)
        mixed = [*mixed, tmp_path / "odd.txt"]
    framed = Tokenizer(
        tok.model,
        pre_tokenizer=ByteLevel(add_prefix_space=True),
        decoder=tok.decoder,
        added_tokens=tok.added_tokens,
        post_processor=TemplateProcessing([END, "$A", END], special_tokens=[(END, tok.piece2id[END])]),
    )
    for who in (tok, framed):
        for separator in (None, "\n"):
            out = tmp_path / f"{who is tok}{separator is None}"
            encode_parts(who, mixed, out, separator=separator, part_bytes=60, **options)
            same(out, one_machine(who, mixed, tmp_path / "one.npy", separator=separator, **options))


def test_tables_are_text_in_any_case(tok, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["a hug", "東京"]}), tmp_path / "good.parquet")
    parquet.write_table(pa.table({"text": [b"a hug", b"\xff"]}), tmp_path / "bad.parquet")
    encode_parts(tok, tmp_path / "good.parquet", tmp_path / "good", errors="bytes")
    assert [doc.tolist() for doc in load_shards(tmp_path / "good")] == [
        tok.encode("a hug"),
        tok.encode("東京"),
    ]
    with pytest.raises(ValueError, match=r"bad\.parquet.*got the byte 0xff at offset 0"):
        encode_parts(tok, tmp_path / "bad.parquet", tmp_path / "bad", errors="bytes", field="text")


def test_documents_that_need_their_end_stay_whole(tok, tmp_path):
    (tmp_path / "x.txt").write_text(story(), encoding="utf-8")
    for change in (dict(truncation=Truncation(12)), dict(padding=Padding(20)), dict(normalizer="nfkc")):
        who = Tokenizer(
            tok.model,
            pre_tokenizer=tok.pre_tokenizer,
            decoder=tok.decoder,
            added_tokens=tok.added_tokens,
            **change,
        )
        out = tmp_path / next(iter(change))
        assert encode_parts(who, tmp_path / "x.txt", out, part_bytes=50).shards == 1
        same(out, one_machine(who, tmp_path / "x.txt", tmp_path / "one.npy"))
    assert encode_parts(tok, tmp_path / "x.txt", tmp_path / "cut", part_bytes=50).shards > 5


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"])
def test_every_model(tmp_path, algorithm):
    who = Tokenizer.train(default_corpus()[:12], algorithm=algorithm, vocab_size=400)
    (tmp_path / "x.txt").write_text("\n".join(default_corpus()[3:5]), encoding="utf-8")
    for separator in (None, "\n"):
        out = tmp_path / f"{separator is None}"
        encode_parts(who, tmp_path / "x.txt", out, separator=separator, part_bytes=700)
        same(out, one_machine(who, tmp_path / "x.txt", tmp_path / "one.npy", separator=separator))


def test_no_part_begins_inside_a_long_document(tok, tmp_path):
    data = (b"a hug\n" * 3 + b"pug " * 500 + b"\nbun\n") * 4
    (tmp_path / "x.txt").write_bytes(data)
    encode_parts(tok, tmp_path / "x.txt", tmp_path / "ids", separator="\n", part_bytes=100)
    ranges = [(s.sources[0].start, s.sources[0].end) for s in read_manifest(tmp_path / "ids").shards]
    assert [a for a, _ in ranges][1:] == [b for _, b in ranges][:-1] and (ranges[0][0], ranges[-1][1]) == (
        0,
        len(data),
    )
    assert all(data[a - 1 : a] == b"\n" for a, _ in ranges[1:])
    same(tmp_path / "ids", one_machine(tok, tmp_path / "x.txt", tmp_path / "one.npy", separator="\n"))


def test_a_million_small_files_are_not_a_million_shards(tok, tmp_path):
    (tmp_path / "many").mkdir()
    for k in range(300):
        (tmp_path / "many" / f"{k:03}.txt").write_text("a hug" * (k % 3))
    done = encode_parts(tok, f"{tmp_path}/many/*.txt", tmp_path / "ids", part_bytes=400)
    assert (
        done.documents == 300
        and done.shards == 4
        and len(read_manifest(tmp_path / "ids").shards[0].sources) > 50
    )
    same(tmp_path / "ids", one_machine(tok, f"{tmp_path}/many/*.txt", tmp_path / "one.npy"))


def test_a_long_document_in_steps(tok, tmp_path, monkeypatch):
    monkeypatch.setattr(SIZES, "section", 70)
    (tmp_path / "x.txt").write_text(story(2000), encoding="utf-8")
    encode_parts(tok, tmp_path / "x.txt", tmp_path / "ids", part_bytes=1000)
    same(tmp_path / "ids", one_machine(tok, tmp_path / "x.txt", tmp_path / "one.npy"))


def test_other_readers_open_the_folder(tok, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "x.txt").write_text(story(100), encoding="utf-8")
    encode_parts(tok, tmp_path / "x.txt", tmp_path / "ids", format="parquet", separator="\n", part_bytes=60)
    assert len(read_manifest(tmp_path / "ids").shards) > 3
    assert pq.read_table(tmp_path / "ids")["input_ids"].to_pylist() == [
        doc.tolist() for doc in load_shards(tmp_path / "ids")
    ]


def test_shards_as_a_sequence(tok, tmp_path):
    (tmp_path / "x.txt").write_text(story(100), encoding="utf-8")
    encode_parts(tok, tmp_path / "x.txt", tmp_path / "ids", separator="\n", part_bytes=60)
    found = load_shards(tmp_path / "ids")
    again = pickle.loads(pickle.dumps(found))
    assert (
        [d.tolist() for d in again]
        == [d.tolist() for d in found]
        == [found[i - len(found)].tolist() for i in range(len(found))]
    )
    for i in (len(found), -len(found) - 1):
        with pytest.raises(IndexError, match=f"document {i} of {len(found)}"):
            found[i]


def test_tables(tok, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = [story(5, k) for k in range(40)] + ["", None, "東京"]
    parquet.write_table(pa.table({"n": range(43), "body": texts}), tmp_path / "a.parquet", row_group_size=7)
    with (
        pa.OSFile(str(tmp_path / "b.arrow"), "wb") as id_buffer,
        pa.ipc.new_file(id_buffer, pa.schema([("body", pa.string())])) as out,
    ):
        out.write_table(pa.table({"body": texts}))
    (tmp_path / "c.txt").write_text("a hug\nbun")
    done = encode_parts(
        tok,
        [tmp_path / "a.parquet", tmp_path / "b.arrow", tmp_path / "c.txt"],
        tmp_path / "ids",
        field="body",
        separator="\n",
        append=END,
        part_bytes=100,
    )
    wanted = [t for t in texts if t is not None] * 2 + ["a hug", "bun"]
    assert [d.tolist() for d in load_shards(tmp_path / "ids")] == [
        [*tok.encode(t), tok.piece2id[END]] for t in wanted
    ]
    assert done.documents == len(wanted) and verify_encoded(tmp_path / "ids") == []
    with pytest.raises(ValueError, match="a.parquet.*'text'"):
        encode_parts(tok, tmp_path / "a.parquet", tmp_path / "no")
    (tmp_path / "d.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(ValueError, match="d.parquet must be a valid Parquet file, got a damaged one"):
        encode_parts(tok, tmp_path / "d.parquet", tmp_path / "no", field="body")


def test_relative_names_are_meant_where_the_call_is_made(tok, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "x.txt").write_text(story(50), encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    real = page.encode_part

    def elsewhere(*args):
        os.chdir(tmp_path)
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(page, "encode_part", elsewhere)
        encode_parts(tok, "x.txt", tmp_path / "ids", separator="\n", part_bytes=100)
    os.chdir(tmp_path / "here")
    assert encode_parts(tok, "x.txt", "../ids", separator="\n", part_bytes=100).made == 0
    assert read_manifest(tmp_path / "ids").shards[0].sources[0].path == "x.txt"
    same(
        tmp_path / "ids", one_machine(tok, tmp_path / "here" / "x.txt", tmp_path / "one.npy", separator="\n")
    )


# --- called again


@pytest.fixture
def job(tmp_path):
    "Three files in some shards; what `encode_parts` takes."
    paths = [tmp_path / f"t{k}.txt" for k in range(3)]
    for k, p in enumerate(paths):
        p.write_text(story(60, k), encoding="utf-8")
    return dict(paths=paths, out=tmp_path / "ids", separator="\n", append=END, part_bytes=150)


def test_nothing_is_made_twice(tok, tmp_path, job):
    done = encode_parts(tok, **job)
    assert done.made == done.shards > 6
    before, times = tree(job["out"]), {p.name: p.stat().st_mtime_ns for p in job["out"].iterdir()}
    assert encode_parts(tok, **job) == done._replace(made=0)
    assert {p.name: p.stat().st_mtime_ns for p in job["out"].iterdir()} == times
    for name in before:  # each file alone is lost, is empty, is cut, is longer, has another bit
        for damage in ("lost", "empty", "cut", "longer", "flipped"):
            path, data = job["out"] / name, bytearray((job["out"] / name).read_bytes())
            if damage == "lost":
                path.unlink()
            else:
                if damage == "flipped":
                    data[len(data) // 2] ^= 1
                path.write_bytes(
                    {"empty": b"", "cut": data[:-1], "longer": data + b"\0", "flipped": data}[damage]
                )
            whole = verify_encoded(job["out"]) == [] if name != MANIFEST else None
            made = encode_parts(
                tok, **job, overwrite=damage == "flipped" and name[0] == "_"
            ).made  # a record may still be one, of another text
            assert made <= 1 and (made == 1 or whole or name == MANIFEST or name[0] == "_"), (name, damage)
            assert tree(job["out"]) == before, (name, damage)


def test_records_that_are_lost_are_taken_from_the_manifest(tok, job):
    encode_parts(tok, **job)
    before = tree(job["out"])
    for p in job["out"].glob("_0*.json"):
        p.unlink()
    assert encode_parts(tok, **job).made == 0 and tree(job["out"]) == before


def test_other_runs_are_refused(tok, tmp_path, job):
    done = encode_parts(tok, **job)
    before = tree(job["out"])
    other = Tokenizer(tok.model, pre_tokenizer="cl100k", decoder=tok.decoder, added_tokens=tok.added_tokens)
    for who, change, said in (
        (other, {}, "another tokenizer"),
        (tok, {"separator": None}, r"separator='\\n', now None"),
        (tok, {"append": None}, "append="),
        (tok, {"dtype": "uint32"}, "dtype="),
        (tok, {"errors": "ignore"}, "errors="),
        (tok, {"format": "parquet"}, "format="),
        (tok, {"part_bytes": 300}, "part 0 was bytes 0 to"),
        (tok, {"paths": job["paths"][1:]}, "part 0 was bytes 0 to .*t0.txt, now .*t1.txt"),
        (tok, {"paths": job["paths"][:2]}, "there were more parts"),
        (tok, {"add_special_tokens": False}, "add_special_tokens"),
        (tok, {"allowed_special": ()}, "allowed_special"),
        (tok, {"field": "body"}, "field='text', now 'body'"),
    ):
        if change.get("format") == "parquet":
            pytest.importorskip("pyarrow")
        with pytest.raises(ValueError, match=f"{said}.*overwrite=True"):
            encode_parts(who, **{**job, **change})
        assert tree(job["out"]) == before
    os.utime(job["paths"][1], ns=(1, 1))
    with pytest.raises(ValueError, match="t1.txt has changed.*overwrite=True"):
        encode_parts(tok, **job)
    kept = sum(s.sources[0].path != str(job["paths"][1]) for s in read_manifest(job["out"]).shards)
    again = encode_parts(tok, **job, overwrite=True)
    assert kept > 0 and again == done._replace(made=done.shards - kept)  # what fits is kept
    small = encode_parts(tok, **{**job, "paths": job["paths"][:1]}, overwrite=True)
    assert small.shards < done.shards and verify_encoded(job["out"]) == []  # nothing of the old is left
    same(job["out"], one_machine(tok, job["paths"][:1], tmp_path / "one.npy", separator="\n", append=END))


def test_a_folder_of_something_else_is_left_alone(tok, tmp_path, job):
    job["out"].mkdir()
    (job["out"] / "notes.txt").write_text("keep")
    with pytest.raises(ValueError, match="contains something else"):
        encode_parts(tok, **job, overwrite=True)
    assert [p.name for p in job["out"].iterdir()] == ["notes.txt"] and (
        job["out"] / "notes.txt"
    ).read_text() == "keep"
    with pytest.raises(FileNotFoundError, match="create it first"):
        encode_parts(tok, **{**job, "out": tmp_path / "no" / "ids"})
    with pytest.raises(FileExistsError):
        encode_parts(tok, **{**job, "out": job["paths"][0]})


def test_mistakes_are_named(tok, tmp_path, job):
    (tmp_path / "y.jsonl").write_text('{"text": "a hug"}\nno\n')
    (tmp_path / "z.jsonl").write_text('{"body": "a hug"}\n')
    for change, said in (
        ({"format": "npy"}, "format must be one of bin, parquet, got 'npy'"),
        ({"dtype": "int8"}, "got 'int8'"),
        ({"part_bytes": 0}, "part_bytes must be an int from 1, got 0"),
        ({"part_bytes": 1.5}, "got 1.5"),
        ({"part_bytes": True}, "got True"),
        ({"separator": ""}, "separator must have at least one byte"),
        ({"append": "nowhere"}, "append must be a piece or an id of this tokenizer, got 'nowhere'"),
        ({"errors": "skip"}, 'errors must be "strict", "replace" or "ignore", got \'skip\''),
        ({"n_workers": 2}, "n_workers must be left out where client=False determines the workers, got 2"),
        ({"client": 5, "paths": job["paths"]}, "client must be a distributed.Client .*got 5"),
        ({"paths": tmp_path / "y.jsonl"}, "y.jsonl, line at byte 18: a line must be a JSON object"),
        ({"paths": tmp_path / "z.jsonl"}, "pass field="),
        ({"paths": []}, "paths must name at least one file"),
    ):
        if "client" in change:
            pytest.importorskip("distributed")
        with pytest.raises(ValueError, match=said):
            encode_parts(tok, **{**job, "out": tmp_path / "new", **change})
    with pytest.raises(FileNotFoundError, match="no file"):
        encode_parts(tok, **{**job, "paths": "nothing*.txt"})
    with pytest.raises(FileNotFoundError, match="no folder"):
        load_shards(tmp_path / "nowhere")


@unix
def test_only_one_run_works_in_a_folder(tok, job, monkeypatch):
    real = page.encode_part

    def second(*args):
        with pytest.raises(ValueError, match="must be written by one process at a time, got a second"):
            encode_parts(tok, **job)
        return real(*args)

    monkeypatch.setattr(page, "encode_part", second)
    encode_parts(tok, **job)
    monkeypatch.undo()
    assert encode_parts(tok, **job).made == 0


# --- faults


def finishes(tok, job, calm):
    "Called again, it completes, and every byte is as without a fault."
    done = encode_parts(tok, **job)
    assert tree(job["out"]) == calm and verify_encoded(job["out"]) == []
    return done


@pytest.fixture
def calm(tok, job):
    "What an undisturbed run leaves in the folder of `job`, which is removed."
    encode_parts(tok, **job)
    found = tree(job["out"])
    shutil.rmtree(job["out"])
    return found


class Disk:
    "Counts what is done to the disk, and runs out of space from a step on."

    def __init__(self, monkeypatch, step):
        self.left = step
        for name in ("fsync", "replace", "mkdir"):
            monkeypatch.setattr(os, name, self.failing(getattr(os, name)))
        monkeypatch.setattr(id_files, "open", self.opened, raising=False)

    def failing(self, real):
        def step(*args, **kwargs):
            self.take()
            return real(*args, **kwargs)

        return step

    def take(self):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(self, path, mode):
        file, disk = open(path, mode), self  # noqa: SIM115 - the wrapper below closes it

        class File:
            def write(self, data):
                disk.take()
                return file.write(data)

            def __getattr__(self, name):
                return getattr(file, name)

            def __enter__(self):
                return self

            def __exit__(self, *error):
                file.close()

        return File()


@pytest.mark.parametrize("format", ["bin", "parquet"])
def test_a_full_disk_at_every_step(tok, tmp_path, job, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    job = {**job, "format": format, "paths": job["paths"][:1], "part_bytes": 300}
    encode_parts(tok, **job)
    calm = tree(job["out"])
    shutil.rmtree(job["out"])
    for step in range(200):
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, step)
            try:
                encode_parts(tok, **job)
                break
            except OSError as e:
                assert e.errno == errno.ENOSPC and str(job["out"]) in str(e.filename), (step, e)
        assert not (job["out"] / MANIFEST).exists() or tree(job["out"]).keys() >= calm.keys(), step
        if step % 7 == 0:  # some are finished, some go on with what the one before has left
            finishes(tok, job, calm)
            shutil.rmtree(job["out"])
    assert (
        disk.left >= -2 and step > 15
    )  # the names in a folder, which are synced twice in the end, are no reason to fail
    finishes(tok, job, calm)


@unix
def test_a_task_that_dies_at_any_step_is_repeated_in_the_same_run(tok, job, calm, monkeypatch):
    "As a cluster does it: a worker is gone in the middle of a part, another makes the part anew, and nothing of the first is left."
    real = page.encode_part
    for step in range(fresh("steps").randrange(3), 100, 3):
        died = []

        def twice(*given, step=step, died=died):
            child = os.fork()
            if child == 0:
                with mishaps.Disk(job["out"], step + 1, lambda: os._exit(9)):
                    real(*given)
                os._exit(0)
            died.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return real(*given)

        with monkeypatch.context() as patch:
            patch.setattr(page, "encode_part", twice)
            encode_parts(tok, **job)
        assert {*died} <= {0, 9} and len(died) > 3
        assert tree(job["out"]) == calm and verify_encoded(job["out"]) == []
        shutil.rmtree(job["out"])
        if 9 not in died:
            break
    assert step > 5


@unix
def test_a_limit_of_the_system_stands_for_a_full_disk(tok, job, calm):
    child = os.fork()
    if child == 0:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            encode_parts(tok, **job)
        except OSError as e:
            os._exit(17 if e.errno == errno.EFBIG and "ids" in str(e.filename) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert not (job["out"] / MANIFEST).exists()
    finishes(tok, job, calm)


def test_a_file_that_changes_while_it_is_read(tok, tmp_path, job, monkeypatch):
    path, real = job["paths"][1], page.find_documents
    text = path.read_bytes()
    for change in (
        text + b" more",
        text[:-40],
        b"",
        text[: len(text) // 2] + b"\xff" * (len(text) - len(text) // 2),
    ):

        def changed(run, change=change):
            if run.inputs == [path]:
                path.write_bytes(change)
                os.utime(path, ns=(5, 5))
            return real(run)

        with monkeypatch.context() as patch:
            patch.setattr(page, "find_documents", changed)
            with pytest.raises(
                ValueError, match="t1.txt must not change after its parts were chosen.*call again"
            ):
                encode_parts(tok, **job)
        assert not (job["out"] / MANIFEST).exists() and read_record(job["out"], 0) is not None
        path.write_bytes(text)
        encode_parts(tok, **job)  # no part of it was done, so nothing has to be overwritten
        same(job["out"], one_machine(tok, job["paths"], tmp_path / "one.npy", separator="\n", append=END))
        shutil.rmtree(job["out"])


def test_a_cut_document_that_changes_while_it_is_read(tok, tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    path.write_text(story(), encoding="utf-8")
    encode_parts(tok, path, tmp_path / "calm", part_bytes=300)
    text, real, facts = path.read_bytes(), page.open_input, path.stat()
    for change in (text[:400], text + b"more", b""):
        opened = []

        def changed(place, change=change, opened=opened):
            opened.append(place)
            if len(opened) == 3:  # for planning, for the first part, for the second
                path.write_bytes(change)
            return real(place)

        with monkeypatch.context() as patch:
            patch.setattr(page, "open_input", changed)
            with pytest.raises(ValueError, match="x.txt must not change after its parts were chosen"):
                encode_parts(tok, path, tmp_path / "ids", part_bytes=300)
        path.write_bytes(text)
        with pytest.raises(ValueError, match="x.txt has changed.*overwrite=True"):
            encode_parts(tok, path, tmp_path / "ids", part_bytes=300)
        os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        encode_parts(tok, path, tmp_path / "ids", part_bytes=300)
        assert tree(tmp_path / "ids") == tree(tmp_path / "calm")
        shutil.rmtree(tmp_path / "ids")


def test_archives_that_are_cut_off_are_named(tok, tmp_path, job):
    whole = gzip.compress(story(300).encode())
    (tmp_path / "z.txt.gz").write_bytes(whole[:-30])
    job["paths"] = [*job["paths"], tmp_path / "z.txt.gz"]
    with pytest.raises(ValueError, match="z.txt.gz must be a complete .gz file, got a truncated one"):
        encode_parts(tok, **job)
    assert not (job["out"] / MANIFEST).exists()
    with pytest.raises(FileNotFoundError, match="encode again"):
        load_shards(job["out"])
    (tmp_path / "z.txt.gz").write_bytes(whole)
    done = encode_parts(tok, **job)
    assert done.made == 1 < done.shards
    same(job["out"], one_machine(tok, job["paths"], tmp_path / "one.npy", separator="\n", append=END))


def test_files_that_cannot_be_read(tok, tmp_path, job, monkeypatch):
    def broken(run):
        raise OSError(errno.EIO, "Input/output error")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(page, "find_documents", broken)
        with pytest.raises(OSError, match="t0.txt"):
            encode_parts(tok, **job)
    gone = job["paths"][2].read_bytes()
    real = page.encode_part

    def vanish(tok, part, out, run):
        job["paths"][2].unlink(missing_ok=True)
        return real(tok, part, out, run)

    with monkeypatch.context() as patch:
        patch.setattr(page, "encode_part", vanish)
        with pytest.raises(FileNotFoundError, match="t2.txt"):
            encode_parts(tok, **job)
    job["paths"][2].write_bytes(gone)
    encode_parts(tok, **job)
    same(job["out"], one_machine(tok, job["paths"], tmp_path / "one.npy", separator="\n", append=END))


def mortal(real, left):
    "A function that ends the process when nothing is left."

    def step(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    return step


def dying(tok, job, step):
    "A process that kills itself before the step of that number; steps are what changes names or brings bytes to the disk."
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    left = [step]
    try:
        for name in ("replace", "mkdir", "rmdir", "unlink", "fsync"):
            setattr(os, name, mortal(getattr(os, name), left))
        encode_parts(tok, **job)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


@unix
def test_sigkill_at_every_step(tok, job):
    "Each from nothing; then one folder in which run after run dies at random."
    job = {**job, "paths": job["paths"][:1], "part_bytes": 400}
    encode_parts(tok, **job)
    calm = tree(job["out"])
    shutil.rmtree(job["out"])
    for step in range(500):
        if (status := dying(tok, job, step)) == 0:
            break
        assert status == signal.SIGKILL
        if (job["out"] / MANIFEST).exists():
            assert verify_encoded(job["out"]) in (
                [],
                [shards.Fault("_work", "foreign", "no shard of this folder has that name")],
            )
        elif job["out"].exists():
            with pytest.raises(FileNotFoundError):
                load_shards(job["out"])
        finishes(tok, job, calm)
        shutil.rmtree(job["out"])
    assert step > 15
    finishes(tok, job, calm)
    shutil.rmtree(job["out"])
    rng = random.Random(7)
    while dying(tok, job, rng.randrange(4, 30)):
        pass
    finishes(tok, job, calm)


# --- folders from strangers


@pytest.fixture
def folder(tok, job):
    encode_parts(tok, **{**job, "part_bytes": 400})
    return job["out"]


def refused(folder, match, error=ValueError):
    "Every way in says what is wrong, and where."
    for way in (
        lambda: list(load_shards(folder)),
        lambda: load_shards(folder).ragged(),
        lambda: verify_encoded(folder),
    ):
        with pytest.raises(error, match=match) as caught:
            way()
        assert str(folder) in str(caught.value)


NAMES = [
    "/etc/passwd",
    "../000000.bin",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "C:\\x",
    "000001.bin",
    "\0",
    "000000.bin\0",
    "000000.bin/",
    "./000000.bin",
    "0" * 100_000,
    "000000.parquet",
    "NUL",
    "~",
    "000000.BIN",
]


@pytest.mark.parametrize("name", NAMES, ids=[repr(n[:20]) for n in NAMES])
def test_names_do_not_leave_the_folder(folder, name):
    found = json.loads((folder / MANIFEST).read_bytes())
    found["shards"][0]["files"][0]["name"] = name
    (folder / MANIFEST).write_text(json.dumps(found))
    refused(folder, "a file must be named")


@unix
def test_links_and_devices_are_not_followed(folder, tmp_path):
    keep = tmp_path / "elsewhere"
    for name in ("000000.bin", "000000.bin.bounds.npy"):
        os.replace(folder / name, keep)
        for make in (
            lambda p: p.symlink_to(keep),
            lambda p: p.symlink_to("/dev/zero"),
            lambda p: p.mkdir(),
            os.mkfifo,
        ):
            make(folder / name)
            for way in (lambda: load_shards(folder)[0], lambda: load_shards(folder).ragged()):
                with pytest.raises(
                    ValueError, match="must be a plain file, got a link, a folder or a device"
                ):
                    way()
            assert [(f.name, f.kind) for f in verify_encoded(folder)] == [(name, "damaged")]
            (folder / name).rmdir() if (folder / name).is_dir() and not (folder / name).is_symlink() else (
                folder / name
            ).unlink()
        os.replace(keep, folder / name)
    os.replace(folder / MANIFEST, keep)
    for target in (keep, Path("/dev/zero")):
        (folder / MANIFEST).symlink_to(target)
        refused(folder, "must be a plain file, got a link, a folder or a device")
        (folder / MANIFEST).unlink()


TEXTS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b"\xff\xfe",
    b"{}",
    b"[" * 200_000,
    b'{"a":' * 100_000,
    b'{"version": 1' + b"0" * 6000 + b"}",
    b'{"version": NaN}',
    b'{"version": 2, "format": "bin", "dtype": "uint16", "tokenizer": "", "options": {}, '
    b'"documents": 0, "tokens": 0, "bytes": 0, "shards": []}',
]


@pytest.mark.parametrize("text", TEXTS, ids=[repr(t[:20]) for t in TEXTS])
def test_manifests_that_are_none(folder, text):
    (folder / MANIFEST).write_bytes(text)
    refused(folder, MANIFEST)


def places(value, way=()):
    "Every place in JSON."
    yield way
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*way, key))


def test_manifests_with_anything_anywhere(folder):
    "One value is exchanged for another, or left out: it is refused with the name of the file, or means what it did."
    rng, whole = random.Random(3), json.loads((folder / MANIFEST).read_bytes())
    deep = []
    for _ in range(500):
        deep = [deep]
    values = [
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        2**64,
        10**4000,
        1.5,
        float("nan"),
        float("inf"),
        -1e308,
        "",
        "x",
        "\ud800",
        "0" * 64,
        "../x",
        [],
        {},
        [[]],
        [None],
        {"a": 1},
        deep,
        {"": deep},
        "bin",
        "parquet",
        "uint32",
        10**18,
    ]
    everywhere, before = [*places(whole)], [d.tolist() for d in load_shards(folder)]
    passed = 0
    for n in range(6 * ROUNDS):
        found = json.loads(json.dumps(whole))
        way = everywhere[n] if n < len(everywhere) else rng.choice(everywhere)
        at = found
        for key in way[:-1]:
            at = at[key]
        if not way:
            found = rng.choice(values)
        elif rng.random() < 0.1:
            del at[way[-1]]
        else:
            at[way[-1]] = rng.choice(values)
        try:
            text = json.dumps(found)
        except ValueError:  # a number with too many digits is written by hand
            continue
        (folder / MANIFEST).write_text(text)
        try:
            docs = [d.tolist() for d in load_shards(folder)]
            verify_encoded(folder)
            assert docs == before
            passed += 1
        except (ValueError, FileNotFoundError) as e:
            assert str(folder) in str(e) and len(str(e)) < 1000, (way, e)
    assert passed < 3 * ROUNDS


def test_counts_that_agree_with_each_other_and_not_with_the_files(folder):
    whole = json.loads((folder / MANIFEST).read_bytes())
    for key, more in (("tokens", 10**15), ("documents", 10**15), ("tokens", 1), ("documents", 1)):
        found = json.loads(json.dumps(whole))
        found[key] += more
        found["shards"][0][key] += more
        for file, size in zip(found["shards"][0]["files"], ("tokens", "documents")):
            file["bytes"] += more * (2 if size == "tokens" else 8) * (size == key)
        (folder / MANIFEST).write_text(json.dumps(found))
        with pytest.raises(ValueError, match=f"bytes of {MANIFEST}, got"):
            load_shards(folder)[0]
        assert {f.kind for f in verify_encoded(folder)} == {"damaged"}
    for name, data, said in (
        ("000000.bin.bounds.npy", b"PK\x03\x04", "must begin with the header of the bounds"),
        ("000000.bin.bounds.npy", b"\x80\x04cos\nsystem\n", "must begin with the header of the bounds"),
    ):
        (folder / MANIFEST).write_text(json.dumps(whole))
        path = folder / name
        path.write_bytes(data.ljust(path.stat().st_size, b"\0"))
        with pytest.raises(ValueError, match=said):
            load_shards(folder)[0]


def test_bounds_that_go_backwards_are_damage(folder):
    found, path = json.loads((folder / MANIFEST).read_bytes()), folder / "000000.bin.bounds.npy"
    data = path.read_bytes()
    bounds = np.frombuffer(data[128:], "<i8").copy()
    bounds[1] = -5
    path.write_bytes(data[:128] + bounds.tobytes())
    found["shards"][0]["files"][1]["sha256"] = shards.checksum(path)
    (folder / MANIFEST).write_text(json.dumps(found))
    assert [(f.kind, f.message) for f in verify_encoded(folder)] == [("damaged", "its bounds decrease")]


def test_parquet_that_is_none(tok, tmp_path, job):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    encode_parts(tok, **{**job, "format": "parquet", "part_bytes": 400})
    path = job["out"] / "000000.parquet"
    whole = path.read_bytes()
    rows = load_shards(job["out"]).rows(0).tolist()
    parquet.write_table(pa.table({"other": [1]}), tmp_path / "other")
    parquet.write_table(
        pa.table({"input_ids": pa.array([[None, 1]], pa.list_(pa.uint16()))}), tmp_path / "null"
    )
    parquet.write_table(
        pa.table({"input_ids": pa.array(rows[:-1] + [None], pa.list_(pa.uint16()))}), tmp_path / "gap"
    )
    parquet.write_table(pa.table({"input_ids": pa.array(rows, pa.list_(pa.uint32()))}), tmp_path / "wide")
    parquet.write_table(pa.table({"input_ids": [str(r) for r in rows]}), tmp_path / "text")
    for data in (
        b"",
        whole[:-1],
        whole[: len(whole) // 2],
        b"PAR1" + bytes(len(whole) - 8) + b"PAR1",
        *((tmp_path / n).read_bytes() for n in ("other", "null", "gap", "wide", "text")),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="000000.parquet"):
            load_shards(job["out"])[0]
        found = json.loads((job["out"] / MANIFEST).read_bytes())  # and where the manifest was made to fit
        found["shards"][0]["files"][0] |= {"bytes": len(data), "sha256": shards.checksum(path)}
        (tmp_path / "lies").mkdir(exist_ok=True)
        for p in job["out"].iterdir():
            shutil.copy(p, tmp_path / "lies")
        (tmp_path / "lies" / MANIFEST).write_text(json.dumps(found))
        with pytest.raises(ValueError, match="000000.parquet"):
            load_shards(tmp_path / "lies").ragged()
        assert [f.kind for f in verify_encoded(tmp_path / "lies")] == ["damaged"]
    path.write_bytes(whole)
    assert verify_encoded(job["out"]) == []


def test_a_manifest_that_is_too_large(folder):
    with limited(file_bytes=100):
        refused(folder, "has [0-9,]+ bytes, and the limit file_bytes is 100")


def test_ranges_of_any_bytes(tmp_path):
    rng = random.Random(4)
    for _ in range(10 * ROUNDS):
        data = bytes(rng.choices(b"ab\n\r\xff", k=1 + rng.randrange(60)))
        separator, size = bytes(rng.choices(b"ab\n", k=1 + rng.randrange(4))), 1 + rng.randrange(20)
        (tmp_path / "x").write_bytes(data)
        with open(tmp_path / "x", "rb") as raw:
            ranges = [*part_ranges(raw, len(data), separator, size)]
        assert [
            doc for a, b in ranges for doc in cut_documents_ref(data[a:b], separator)
        ] == cut_documents_ref(data, separator)
        assert all(b - a >= size for a, b in ranges[:-1])


def test_plans_do_not_depend_on_where_they_are_made(tok, job):
    run = files_room.plan_run(
        tok,
        job["paths"],
        job["out"],
        "bin",
        None,
        None,
        "text",
        None,
        {"add_special_tokens": True, "allowed_special": None},
        None,
        "strict",
    )
    for part_bytes in (50, 333):
        assert plan_parts(tok, run, part_bytes) == plan_parts(
            pickle.loads(pickle.dumps(tok)), run, part_bytes
        )


# --- on Dask


def cluster(workers=2):
    pytest.importorskip("distributed")
    from subword_nb.corpus.workers import local_client

    return local_client(workers)


@pytest.fixture(scope="module")
def unpacked(shared_file, tmp_path_factory):
    "The large corpora, unpacked once."
    import lzma

    home = tmp_path_factory.mktemp("corpora")

    def find(name):
        path = home / name
        if not path.exists():
            with lzma.open(shared_file(f"corpus/{name}.xz")) as packed, open(path, "wb") as plain:
                shutil.copyfileobj(packed, plain, 1 << 20)
        return path

    return find


@pytest.mark.slow
def test_two_workers_give_the_ids_of_one(unpacked, shared_file, tmp_path):
    "A corpus, another one in each run, whole and by lines; again, nothing is made; a shard that is deleted is made alone."
    from subword_nb import scale

    tok = Tokenizer.load(shared_file("vocab/gpt2/vocab.json").parent)
    with cluster() as client:
        for name in fresh("corpus").sample(("english_60mb.txt", "multilingual_mixed.txt"), 1):
            path = unpacked(name)
            done = scale.encode(tok, path, tmp_path / name, client=client, part_bytes=1 << 22)
            assert done.made == done.shards > 6 and done.documents == 1
            found = load_shards(tmp_path / name).ragged()
            assert np.array_equal(
                found.ids, tok.encode_array(path.read_bytes())
            ) and found.bounds.tolist() == [0, done.tokens]
            assert verify_encoded(tmp_path / name) == []
            before = tree(tmp_path / name)
            (tmp_path / name / "000003.bin").unlink()
            assert scale.encode(tok, path, tmp_path / name, client=client, part_bytes=1 << 22).made == 1
            assert scale.encode(tok, path, tmp_path / name, client=False, part_bytes=1 << 22).made == 0
            assert tree(tmp_path / name) == before
            lines = scale.encode(
                tok, path, tmp_path / f"{name}.lines", client=client, part_bytes=1 << 23, separator="\n"
            )
            want = one_machine(tok, path, tmp_path / "one.npy", separator="\n")
            got = load_shards(lines.folder).ragged()
            assert np.array_equal(got.ids, want.ids) and np.array_equal(got.bounds, want.bounds)


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gpt2/tokenizer.json",
        "llama-2/tokenizer.model",
        "bert-base-uncased/vocab.txt",
        "t5-small/spiece.model",
        "falcon/tokenizer.json",
    ],
)
def test_real_tokenizers_cut_anywhere(shared_file, tmp_path, name):
    tok = Tokenizer.load(shared_file(f"vocab/{name}"))
    for text in ("wagahaiwa_nekodearu.txt", "english_small.txt", "stress/UTF-8-demo.txt", "stress/blns.txt"):
        data = shared_file(f"corpus/{text}").read_bytes().decode("utf-8", "replace")
        (tmp_path / "x.txt").write_bytes(window(data, 30_000, name, text).encode())
        for separator in (None, "\n"):
            out = tmp_path / f"ids{separator is None}"
            encode_parts(tok, tmp_path / "x.txt", out, part_bytes=7_000, separator=separator, overwrite=True)
            want = one_machine(tok, tmp_path / "x.txt", tmp_path / "one.npy", separator=separator)
            got = load_shards(out).ragged()
            assert np.array_equal(got.ids, want.ids) and np.array_equal(got.bounds, want.bounds)


@pytest.mark.slow
def test_golden_strings_in_parts(shared_file, tmp_path):
    "Each string of the golden files is a line of JSON; the ids are those that the reference library gave."
    strings = json.loads(shared_file("golden/strings.json").read_bytes())
    golden = json.loads(shared_file("golden/hf__gpt2.json").read_bytes())
    tok = Tokenizer.load(shared_file("vocab/gpt2/vocab.json").parent)
    (tmp_path / "s.jsonl").write_text(
        "".join(json.dumps({"text": s}) + "\n" for s in strings), encoding="utf-8"
    )
    for part_bytes in (100, 3000, 1 << 20):
        encode_parts(tok, tmp_path / "s.jsonl", tmp_path / f"{part_bytes}", part_bytes=part_bytes)
        assert [d.tolist() for d in load_shards(tmp_path / f"{part_bytes}")] == golden["ids"]


@pytest.mark.parametrize(
    "kills", [pytest.param(4, marks=pytest.mark.slow), pytest.param(KILLS, marks=pytest.mark.soak)]
)
@unix
def test_workers_are_killed_again_and_again(tok, tmp_path, kills, record_property):
    "SIGKILL, several times, at random: the run goes on by itself, and the bytes are those of a calm one."
    from subword_nb import scale

    path = tmp_path / "x.txt"
    path.write_text(story(300_000), encoding="utf-8")
    options = dict(part_bytes=1 << 16, separator="\n\n")
    scale.encode(tok, path, tmp_path / "calm", client=False, **options)
    rng, killed, seen = random.Random(11), [], {}

    def kill(client, ended, most):
        while len(killed) < most and not ended.wait(0.3 + rng.random()):
            pids = [
                p
                for p in (
                    w.get("pid")
                    for w in client.run(lambda: {"pid": os.getpid()}, on_error="ignore").values()
                    if w
                )
                if p
            ]
            old = [
                p for p in pids if time.monotonic() - seen.setdefault(p, time.monotonic()) > 1
            ]  # one that dies while it starts is given up by Dask
            if old and not ended.is_set():
                killed.append(rng.choice(old))
                os.kill(killed[-1], signal.SIGKILL)

    while (
        len(killed) < kills
    ):  # a cluster that loses many workers may have none in the end: it is made anew after four
        most = min(kills, len(killed) + 4)
        with cluster() as client:
            while len(killed) < most:
                shutil.rmtree(tmp_path / "rough", ignore_errors=True)
                ended = threading.Event()
                killer = threading.Thread(target=kill, args=(client, ended, most))
                killer.start()
                try:
                    scale.encode(tok, path, tmp_path / "rough", client=client, **options)
                finally:
                    ended.set()
                    killer.join()
                assert tree(tmp_path / "rough") == tree(tmp_path / "calm")
    record_property("kills", len(killed))


RUN = """
import sys
from subword_nb import scale
from subword_nb.tokenizer.tokenizer import Tokenizer
if __name__ == "__main__":
    tok = Tokenizer.load(sys.argv[1], allowed_special="all")
    scale.encode(tok, sys.argv[2], sys.argv[3], n_workers=2, part_bytes=1 << 17, progress=False)
"""


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.slow), pytest.param(KILLS, marks=pytest.mark.soak)]
)
@unix
def test_the_whole_run_is_killed_at_random(tok, tmp_path, kills):
    "Driver and workers at once; the next run takes over what is whole, and in the end every byte is there."
    pytest.importorskip("distributed")
    path, rng = tmp_path / "x.txt", random.Random(12)
    path.write_text(
        story(400_000, words=("hug", "pug ", "naïve", "東京", "🤗", "the", "\n")), encoding="utf-8"
    )
    tok.save(tmp_path / "tok.json")
    (tmp_path / "run.py").write_text(RUN)
    encode_parts(
        Tokenizer.load(tmp_path / "tok.json", allowed_special="all"),
        path,
        tmp_path / "calm",
        part_bytes=1 << 17,
    )
    killed, laps, records = 0, 0, lambda: len([*(tmp_path / "rough").glob("_0*.json")])
    while killed < kills or not laps:
        aim = records() + rng.randrange(1, 4)
        with open(tmp_path / "errors.txt", "wb") as errors:
            child = subprocess.Popen(
                [
                    sys.executable,
                    str(tmp_path / "run.py"),
                    str(tmp_path / "tok.json"),
                    str(path),
                    str(tmp_path / "rough"),
                ],
                start_new_session=True,
                stdout=errors,
                stderr=errors,
            )
        try:
            due = time.monotonic() + 900
            while child.poll() is None and time.monotonic() < due and (killed == kills or records() < aim):
                time.sleep(0.01)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
        assert status in (0, -signal.SIGKILL) and time.monotonic() < due, (
            tmp_path / "errors.txt"
        ).read_text()
        if status == 0:
            assert tree(tmp_path / "rough") == tree(tmp_path / "calm")
            shutil.rmtree(tmp_path / "rough")
            laps += 1
            continue
        killed += 1
        if (tmp_path / "rough" / MANIFEST).exists():
            assert verify_encoded(tmp_path / "rough")[:1] in (
                [],
                [shards.Fault("_work", "foreign", "no shard of this folder has that name")],
            )


@pytest.fixture
def small_disk(tmp_path):
    "A disk of 300 kilobytes; the test is skipped where none may be made."
    place = tmp_path / "disk"
    place.mkdir()
    with mishaps.small_disk(place, "300k") as disk:
        if disk is None:
            pytest.skip("a tmpfs cannot be mounted here")
        yield disk


@pytest.mark.slow
@pytest.mark.parametrize("format", ["bin", "parquet"])
def test_a_disk_that_is_really_full(tok, tmp_path, small_disk, format):
    "The error names the place, nothing looks finished, and with more space the rest is made."
    if format == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "x.txt"
    path.write_text(story(120_000), encoding="utf-8")
    job = dict(paths=path, separator="\n", part_bytes=1 << 16, format=format)
    calm = encode_parts(tok, out=tmp_path / "calm", **job)
    with pytest.raises(OSError) as caught:
        encode_parts(tok, out=small_disk / "ids", **job)
    assert caught.value.errno == errno.ENOSPC and str(small_disk) in str(caught.value)
    assert not (small_disk / "ids" / MANIFEST).exists()
    with pytest.raises(FileNotFoundError, match="encode again"):
        load_shards(small_disk / "ids")
    kept = len([*(small_disk / "ids").glob("_0*.json")])
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    done = encode_parts(tok, out=small_disk / "ids", **job)
    assert 0 < done.made <= calm.shards - kept and kept > 0
    assert tree(small_disk / "ids") == tree(tmp_path / "calm")


# Addresses -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def remote(request):
    "What puts files of this computer under addresses of a file system in memory, which goes at the end."
    fsspec = pytest.importorskip("fsspec")
    fs, home = fsspec.filesystem("memory"), f"/{request.node.originalname}"

    def put(paths):
        for path in paths:
            fs.pipe(f"{home}/{path.name}", path.read_bytes())
        return [f"memory://{home}/{path.name}" for path in paths]

    yield put
    if fs.exists(home):
        fs.rm(home, recursive=True)


def but_for_sources(folder):
    "What a manifest says, but for names and times of files."
    found = read_manifest(folder)
    return found._replace(
        shards=tuple(
            s._replace(sources=tuple((Path(x.path).name, x.start, x.end, x.size) for x in s.sources))
            for s in found.shards
        )
    )


@pytest.mark.parametrize("separator, format", [(None, "bin"), ("\n", "bin"), (None, "parquet")])
def test_addresses_are_read_as_files_of_this_computer(tok, tmp_path, mixed, remote, separator, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    addresses = remote(mixed)
    for part_bytes in (60, 900, 1 << 20):
        here, there = tmp_path / f"here{part_bytes}", tmp_path / f"there{part_bytes}"
        wanted = encode_parts(tok, mixed, here, separator=separator, format=format, part_bytes=part_bytes)
        done = encode_parts(tok, addresses, there, separator=separator, format=format, part_bytes=part_bytes)
        assert done._replace(folder=here) == wanted
        assert but_for_sources(there) == but_for_sources(here)
        assert {s.path for shard in read_manifest(there).shards for s in shard.sources} == {*addresses}
        assert verify_encoded(there) == []
        assert (
            encode_parts(
                tok, addresses, there, separator=separator, format=format, part_bytes=part_bytes
            ).made
            == 0
        )
        (there / shards.shard_names(0, format)[0]).unlink()
        assert (
            encode_parts(
                tok, addresses, there, separator=separator, format=format, part_bytes=part_bytes
            ).made
            == 1
        )


def test_patterns_and_folders_of_addresses(tok, tmp_path, mixed, remote):
    texts = [p for p in mixed if p.suffix == ".txt"]
    addresses = remote(texts)
    wanted = one_machine(tok, texts, tmp_path / "one.npy")
    home = addresses[0].rpartition("/")[0]
    for k, name in enumerate((f"{home}/*.txt", home, addresses)):
        encode_parts(tok, name, tmp_path / str(k))
        same(tmp_path / str(k), wanted)
    encode_files(tok, addresses, tmp_path / "two.npy")
    assert load_encoded(tmp_path / "two.npy").tolist() == wanted.tolist()


def test_tables_at_addresses(tok, tmp_path, remote):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["a hug", "pug", ""]}), tmp_path / "x.parquet")
    (address,) = remote([tmp_path / "x.parquet"])
    encode_parts(tok, address, tmp_path / "ids")
    assert [doc.tolist() for doc in load_shards(tmp_path / "ids")] == [
        tok.encode(text) for text in ("a hug", "pug", "")
    ]


def test_an_address_that_changed_is_noticed(tok, tmp_path, remote):
    path = tmp_path / "x.txt"
    path.write_text("a hug\n" * 60, encoding="utf-8")
    (address,) = remote([path])
    run = files_room.plan_run(
        tok,
        address,
        tmp_path / "ids",
        "bin",
        None,
        "\n",
        "text",
        None,
        {"add_special_tokens": True, "allowed_special": None},
        None,
        "strict",
    )
    found = plan_parts(tok, run, 100)
    (tmp_path / "ids" / "_work").mkdir(parents=True)
    for text, said in (
        ("a hug\n" * 61, "it had 360 bytes, and has 366"),
        ("a pug\n" * 60, "it has the same size, but was written later"),
    ):
        path.write_text(text, encoding="utf-8")
        remote([path])
        with pytest.raises(
            ValueError, match=f"x\\.txt must not change after its parts were chosen.* \\({said}\\)"
        ):
            page.encode_part(tok, found[1], tmp_path / "ids", run)
    encode_parts(tok, address, tmp_path / "other", separator="\n", part_bytes=100)
    path.write_text("a bun\n" * 60, encoding="utf-8")
    remote([path])
    with pytest.raises(ValueError, match=r"x\.txt has changed"):
        encode_parts(tok, address, tmp_path / "other", separator="\n", part_bytes=100)
    assert (
        encode_parts(tok, address, tmp_path / "other", separator="\n", part_bytes=100, overwrite=True).made
        == 4
    )
    assert load_shards(tmp_path / "other")[0].tolist() == tok.encode("a bun")


def test_errors_about_addresses(tok, tmp_path, remote):
    (tmp_path / "bad.txt").write_bytes(b"a hug\n\xff")
    (address,) = remote([tmp_path / "bad.txt"])
    for separator in (None, "\n"):
        with pytest.raises(ValueError, match=r"memory://.*bad\.txt"):
            encode_parts(tok, address, tmp_path / "ids", separator=separator, part_bytes=4)
    with pytest.raises(FileNotFoundError, match="there is no file memory://nowhere/x.txt"):
        encode_parts(tok, "memory://nowhere/x.txt", tmp_path / "ids2")
    with pytest.raises(ValueError, match="out must be a path on this computer, got 'memory://nowhere/ids'"):
        encode_parts(tok, address, "memory://nowhere/ids")


@pytest.mark.slow
def test_workers_read_addresses(tok, tmp_path, mixed):
    pytest.importorskip("distributed")
    pytest.importorskip("fsspec")
    from subword_nb import scale

    addresses = [f"file://{path}" for path in mixed]
    done = scale.encode(tok, addresses, tmp_path / "there", n_workers=2, part_bytes=60)
    wanted = scale.encode(tok, mixed, tmp_path / "here", client=False, part_bytes=60)
    assert done._replace(folder=wanted.folder) == wanted
    assert but_for_sources(tmp_path / "there") == but_for_sources(tmp_path / "here")
