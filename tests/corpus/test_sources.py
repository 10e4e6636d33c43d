"""Corpora of every kind: the same documents whatever holds them, in bounded memory, and a clear word when something is wrong."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import random
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from subword_nb.core.limits import limited
from subword_nb.corpus import batches
from subword_nb.corpus import sources
from subword_nb.corpus.batches import Batch, byte_chunks, column_batches, draws, is_utf8, pack
from subword_nb.corpus.documents import COURSE_CORPUS, documents, read_blocks
from subword_nb.corpus.sources import Corpus, as_corpus, files, wikitext

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
STORY = "naïve 東京 🚀\r\n\ttabs\n\nand 3 more\nlines\x00\x85\u2028\ufeff end"
ROWS = [
    {"id": i, "text": d, "meta": {"title": f"t{i}"}}
    for i, d in enumerate([*COURSE_CORPUS, "naïve 東京 🚀", ""])
]
TEXTS = [r["text"] for r in ROWS]


def zst(data: bytes, frame: int = 1 << 30) -> bytes:
    "Zstandard in frames of so many bytes."
    compress = pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress
    return b"".join(compress(data[i : i + frame]) for i in range(0, max(1, len(data)), frame))


def packed(kind: str, data: bytes) -> bytes:
    return zst(data, 7) if kind == ".zst" else PACK[kind](data)


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def jsonl(rows: list) -> bytes:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows).encode()


def same_as_batches(corpus: Corpus) -> list[str]:
    "The documents, after checking that both ways give the same and the steps add up."
    found, step = [], 0
    for batch in corpus.batches():
        assert (
            isinstance(batch.data, bytes)
            and batch.bounds.dtype == np.int64
            and batch.bounds[0] == 0
            and batch.bounds[-1] == len(batch.data)
        )
        assert (np.diff(batch.bounds) >= 0).all()
        found += [d.decode() for d in batch.docs()]
        step += batch.step
    assert corpus.total in (None, step)
    if not corpus.parts.once:
        assert list(corpus) == list(corpus.documents()) == found
    return found


# Files and their compression


@pytest.mark.parametrize("kind", [*PACK, ".zst"])
@pytest.mark.parametrize("named", [True, False], ids=["suffix", "magic"])
def test_a_file_is_what_it_was_whatever_packs_it(tmp_path, kind, named):
    p = write(tmp_path / f"a.txt{kind if named else ''}", packed(kind, STORY.encode()))
    with open(p, "rb") as opened:
        for source in (p, str(p), f"{tmp_path}/a.*", tmp_path, [p], files(p), opened, iter([p])):
            assert same_as_batches(Corpus(source)) == [STORY]
    assert list(documents(p)) == [STORY]


@pytest.mark.parametrize("kind", [".gz", ".xz", ".bz2", ".zst"])
def test_a_damaged_file_is_named(tmp_path, kind):
    whole = (
        packed(kind, random.Random(0).randbytes(3000).hex().encode())
        if kind != ".zst"
        else zst(random.Random(0).randbytes(3000).hex().encode(), 2000)
    )
    for keep in (len(whole) - 1, len(whole) // 2, 12):
        p = write(tmp_path / f"cut{kind}", whole[:keep])
        with pytest.raises(
            ValueError, match=re.escape(f"cut{kind} must be a complete {kind} file, got a truncated one")
        ):
            list(Corpus(p))
    for place in (0, len(whole) // 2, len(whole) - 6):
        bad = bytearray(whole)
        bad[place] ^= 0xFF
        p = write(tmp_path / f"bad{kind}", bytes(bad))
        with pytest.raises(
            ValueError,
            match=rf"bad\{kind} must be a (valid|complete) \{kind} file, got .*download or compress it again",
        ):
            list(Corpus(p))


def test_many_zstandard_frames_and_one_that_holds_nothing(tmp_path):
    data = STORY.encode() * 50
    p = write(
        tmp_path / "a.zst", zst(data, 100) + zst(b"") + b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zst(b"tail")
    )  # a frame to be skipped, too
    assert "".join(Corpus(p)) == data.decode() + "tail"
    assert b"".join(b for b, _ in read_blocks(p, 1000, offset=37)) == data[37:] + b"tail"


def test_without_a_zstandard_package_it_says_what_to_install(tmp_path, monkeypatch):
    p = write(tmp_path / "a.zst", zst(b"hug"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "subword_nb[corpora]"')):
        list(Corpus(p))


@pytest.mark.parametrize("kind", [*PACK, ".zst"])
def test_chunks_are_those_of_documents(tmp_path, kind):
    rng = random.Random(1)
    text = "".join(rng.choices(["word ", "wörd\n", "東京 ", "\n\n", "  x", "9\n"], k=700_000))
    data = text.encode()
    p = write(
        tmp_path / f"a.txt{kind}",
        zst(data) if kind == ".zst" else PACK[kind](data) if kind != ".xz" else lzma.compress(data, preset=0),
    )
    found = same_as_batches(Corpus(p))
    assert found == list(documents(p)) and len(found) > 2 and "".join(found) == text


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(
    "text",
    ["word " * 700_000, "x" * 3_000_000, "é" * 1_500_000, "a\n\n" * 900_000, "東京\u3000\n" * 300_000],
    ids=["line", "solid", "wide", "blank", "white"],
)
def test_hard_texts_are_cut_as_documents_cuts(tmp_path, monkeypatch, text, quick):
    monkeypatch.setattr("subword_nb.corpus.documents.LONGEST", 1 << 20)
    monkeypatch.setattr(batches, "LONGEST", 1 << 20)
    p = write(tmp_path / "a", text.encode())
    assert [c.decode() for c, _ in byte_chunks(read_blocks(p, 1 << 20), quick=quick)] == list(documents(p))


@pytest.mark.parametrize("errors", ["strict", "replace", "ignore"])
def test_bad_bytes_are_treated_as_documents_treats_them(tmp_path, errors):
    rng = random.Random(2)
    for n in range(40):
        data = "".join(rng.choices("a é東\n", k=rng.randrange(2_200_000 if n < 4 else 40))).encode()
        at = rng.randrange(len(data) + 1)
        p = write(
            tmp_path / "a.txt",
            data[:at] + rng.choice([b"\xff", b"\xe6\x9d", b"\xed\xa0\x80", b"\xc0\xaf"]) + data[at:],
        )
        try:
            expected = list(documents(p, errors=errors))
        except ValueError as e:
            with pytest.raises(ValueError, match=re.escape(str(e))):
                list(Corpus(p, errors=errors))
        else:
            assert "".join(Corpus(p, errors=errors)) == "".join(expected) and errors != "strict"


def test_every_two_and_three_bytes_are_judged_as_python_judges():
    firsts = [
        0x00,
        0x7F,
        0x80,
        0xBF,
        0xC0,
        0xC1,
        0xC2,
        0xDF,
        0xE0,
        0xE1,
        0xEC,
        0xED,
        0xEE,
        0xEF,
        0xF0,
        0xF1,
        0xF3,
        0xF4,
        0xF5,
        0xFF,
    ]
    seconds = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
    for n in (1, 2, 3, 4):
        for data in map(bytes, itertools.product(firsts, *[seconds] * (n - 1))):
            for around in (data, b"a" * 61 + data + b"b" * 9):
                try:
                    expected = bool(around.decode()) or True
                except UnicodeDecodeError:
                    expected = False
                assert is_utf8(around, quick=True) == is_utf8(around) == expected, around


# Names, patterns, folders, addresses


def test_a_folder_gives_what_is_text_by_its_suffix_and_names_the_rest(tmp_path):
    for name in (
        "b.txt",
        "a.md.gz",
        "sub/c.py",
        "sub/d.png",
        "e",
        "f.JSONL",
        "g.tar.gz",
        ".hidden/h.txt",
        ".i.txt",
    ):
        write(
            tmp_path / name,
            gzip.compress(b"md")
            if name.endswith("gz")
            else jsonl([{"text": "row"}])
            if name.endswith("JSONL")
            else name.encode(),
        )
    c = Corpus(tmp_path)
    assert same_as_batches(c) == ["md", "b.txt", "row", "sub/c.py"]
    assert [Path(s).name for s in c.skipped] == [
        "e",
        "g.tar.gz",
        "d.png",
    ] and "skipped 1 .png, 1 .tar, 1 no suffix" in repr(c)
    assert (
        same_as_batches(Corpus(str(tmp_path)))
        == same_as_batches(Corpus([tmp_path]))
        == same_as_batches(Corpus(iter([tmp_path])))
    )
    with pytest.raises(
        FileNotFoundError, match=re.escape("no file that is text by its suffix (skipped: 1 .png)")
    ):
        Corpus(write(tmp_path / "only" / "x.png", b"").parent)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match="with a pattern"):
        Corpus(empty)


def test_several_names_keep_their_order(tmp_path):
    for name in "abc":
        write(tmp_path / f"{name}.txt", name.encode())
    assert list(Corpus(files(tmp_path / "c.txt", f"{tmp_path}/[ab].txt", io.BytesIO(b"open")))) == [
        "c",
        "a",
        "b",
        "open",
    ]
    assert list(Corpus([tmp_path / "c.txt", tmp_path / "[ab].txt"])) == ["c", "a", "b"]
    assert repr(files("a", "b")) == "files('a', 'b')"
    with pytest.raises(FileNotFoundError, match="no file"):
        Corpus(files(tmp_path / "a.txt", tmp_path / "missing.txt"))


def test_a_list_of_names_is_refused_and_texts_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hug.txt", b"a hug")
    write(tmp_path / "tests" / "x", b"")
    for names in (["hug.txt"], [str(tmp_path / "hug.txt"), "*.txt"], ("s3://box/a.txt",)):
        with pytest.raises(ValueError, match=re.escape("pass files(...)")):
            Corpus(names)
    for texts in (["hug.txt", "a text"], ["tests"], ["what?"], ["a * b"], iter(["hug.txt"]), [""]):
        texts = list(texts) if isinstance(texts, list) else texts
        expected = texts if isinstance(texts, list) else ["hug.txt"]
        assert list(Corpus(texts)) == expected


@pytest.fixture
def box():
    "A file system in memory."
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    yield fs
    fs.store.clear()


@pytest.mark.parametrize("kind", [*PACK, ".zst"])
def test_addresses_are_read_like_files(box, kind):
    box.pipe(f"/box/a.txt{kind}", packed(kind, STORY.encode()))
    box.pipe(f"/box/sub/b.jsonl{kind}", packed(kind, jsonl(ROWS)))
    box.pipe("/box/c.bin", b"\0")
    box.pipe("/box/.git/d.txt", b"no")
    assert same_as_batches(Corpus(f"memory://box/a.txt{kind}")) == [STORY]
    assert same_as_batches(Corpus("memory://box/*.txt*")) == [STORY]
    c = Corpus("memory://box")
    assert same_as_batches(c) == [STORY, *TEXTS] and [s.rsplit("/", 1)[1] for s in c.skipped] == ["c.bin"]
    assert same_as_batches(Corpus(files("memory://box/**/*.jsonl*"), field="meta.title")) == [
        r["meta"]["title"] for r in ROWS
    ]
    for missing in ("memory://box/none.txt", "memory://nobox/*.txt"):
        with pytest.raises(FileNotFoundError, match="check the address"):
            Corpus(missing)
    with pytest.raises(ValueError, match="nosuch://a/b.txt: "):
        Corpus("nosuch://a/b.txt")


def test_a_damaged_file_at_an_address_is_named_by_it(box):
    box.pipe("/box/a.txt.gz", gzip.compress(b"hug" * 100)[:-5])
    box.pipe("/box/b.txt", b"vi\xf1edo")
    with pytest.raises(ValueError, match=r"box/a\.txt\.gz must be a complete \.gz file, got a truncated one"):
        list(Corpus("memory://box/a.txt.gz"))
    with pytest.raises(
        ValueError,
        match=re.escape("<stream> must be a complete .gz file, got a truncated one"),
    ):
        list(Corpus(io.BytesIO(gzip.compress(b"hug" * 100)[:-5])))
    with pytest.raises(ValueError, match=r"box/b\.txt must be UTF-8, got the byte 0xf1 at offset 2"):
        list(Corpus("memory://box/b.txt"))


def test_without_fsspec_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "subword_nb[remote]"')):
        Corpus("s3://box/a.txt")


# Rows


def test_json_lines_of_every_shape(tmp_path):
    p = write(
        tmp_path / "a.jsonl",
        b"\xef\xbb\xbf" + jsonl(ROWS[:2]).replace(b"\n", b"\r\n") + b"\n  \n" + jsonl(ROWS[2:]).rstrip(b"\n"),
    )
    assert same_as_batches(Corpus(p)) == TEXTS
    assert list(Corpus(p, field="meta.title")) == [f"t{i}" for i in range(len(ROWS))]
    assert list(Corpus(write(tmp_path / "s.jsonl", b'"one"\n"two"\n'))) == ["one", "two"]
    assert list(Corpus(write(tmp_path / "n.jsonl", b'{"text": null}\n{"text": "x"}\n'))) == ["x"]
    assert list(Corpus(write(tmp_path / "d.jsonl", b'{"a.b": "dot", "a": {"b": "deep"}}'), field="a.b")) == [
        "dot"
    ]
    assert (
        list(Corpus(write(tmp_path / "b.json", jsonl(ROWS)), field="text")) == TEXTS
    )  # a field says that it is lines of JSON
    assert list(Corpus(io.BytesIO(gzip.compress(jsonl(ROWS))), field="text")) == TEXTS
    assert list(Corpus(write(tmp_path / "e.jsonl", b""))) == []


def test_long_lines_go_across_blocks(tmp_path):
    texts = ["é" * 700_000, "short", "東" * 1_000_000, ""]
    assert list(Corpus(write(tmp_path / "a.jsonl", jsonl([{"text": t} for t in texts])))) == texts


@pytest.mark.parametrize(
    ("lines", "field", "says"),
    [
        (b'{"text": "a"}\n{"text": 5}\n', None, "a.jsonl, line 2, field text, must be str, bytes, got int"),
        (b'{"text": "a"}\n{"body": "b"}\n', None, "a.jsonl, line 2 must have the field 'text', got none"),
        (
            b'{"x": "a", "y": "b"}\n',
            None,
            "a.jsonl, line 1 must have one field of text, got several: x (str), y (str)",
        ),
        (b'{"x": 1}\n', None, "a.jsonl, line 1 must have one field of text, got none: x (int)"),
        (b'{"x": {"y": 1}}\n', "x.z", "a.jsonl, line 1 must have the field 'x.z', got none"),
        (b'{"x": "a"}\n', "x.z", "a.jsonl, line 1 must have the field 'x.z', got none"),
        (b'{"x": "a"}\n', "z", "a.jsonl, line 1, which has x (str), got 'z'"),
        (
            b'{"text": "a"}\n{"text": \n',
            None,
            "a.jsonl, line 2 must be JSON, an object or a text, got a line that is not: ",
        ),
        (
            b'\n{"text": "vi\xf1edo"}\n',
            None,
            "a.jsonl, line 2 must be UTF-8, got the byte 0xf1 at offset 12 (invalid continuation byte)",
        ),
        (
            b'{"text": "\\ud800"}\n',
            None,
            "a.jsonl, line 1: text must have no lone surrogate, got U+D800 at position 0",
        ),
        (b'"text"\n', "text", "a.jsonl, line 1 must be an object with the field 'text', got str"),
        (
            b"7\n",
            None,
            "a.jsonl, line 1 must be str, bytes, pathlib.Path or an object with a field of text, got int",
        ),
    ],
)
def test_a_wrong_row_is_named_by_its_line(tmp_path, lines, field, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        list(Corpus(write(tmp_path / "a.jsonl", lines), field=field))


def test_bytes_that_are_not_utf8_within_rows(tmp_path):
    p = write(tmp_path / "a.jsonl", b'{"text": "vi\xf1edo \\ud800"}\n')
    assert list(Corpus(p, errors="replace")) == ["vi\ufffdedo \ufffd"] and list(
        Corpus(p, errors="ignore")
    ) == ["viedo "]


# Columns


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


def tables(pa, folder: Path, table) -> dict:
    "A table in every place that one can be."
    from pyarrow import feather, parquet

    parquet.write_table(table, folder / "a.parquet", row_group_size=3)
    parquet.write_table(table, folder / "no_suffix")
    feather.write_feather(table, str(folder / "a.feather"), compression="zstd", chunksize=2)
    feather.write_feather(table, str(folder / "a.ipc"), compression="uncompressed")
    with pa.OSFile(str(folder / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, 2)
    return {
        "table": table,
        "slice": table.slice(0),
        "reader": table.to_reader(2),
        **{p: folder / p for p in ("a.parquet", "no_suffix", "a.feather", "a.ipc", "a.arrow")},
    }


@pytest.mark.parametrize(
    "type_", ["string", "large_string", "string_view", "dictionary", "binary", "large_binary"]
)
def test_columns_of_every_type_in_every_place(tmp_path, pa, type_):
    if type_ == "string_view" and not hasattr(pa, "string_view"):
        pytest.skip("an older pyarrow")
    kind = pa.dictionary(pa.int32(), pa.string()) if type_ == "dictionary" else getattr(pa, type_)()
    texts = ["a hug", None, "", "naïve 東京 🚀", "a pug", None, "last"]
    table = pa.table(
        {
            "n": range(7),
            "doc": pa.array([t.encode() if t is not None and "binary" in type_ else t for t in texts], kind),
        }
    )
    for name, source in tables(pa, tmp_path, table).items():
        c = Corpus(source, field="doc")
        assert same_as_batches(c) == [t for t in texts if t is not None], name
    assert (
        list(Corpus(table["doc"])) == list(Corpus(table.slice(2)["doc"].combine_chunks()))
        or type_ in ("string_view",)
        or list(Corpus(table["doc"]))[1:] == list(Corpus(table.slice(2)["doc"]))
    )


def test_a_field_within_a_column(tmp_path, pa):
    table = pa.table(
        {
            "n": range(3),
            "m": [{"t": {"x": "one"}, "k": 1}, None, {"t": None, "k": 3}],
            "o": [{"t": {"x": "no"}}] * 3,
        }
    )
    for name, source in tables(pa, tmp_path, table).items():
        assert list(Corpus(source, field="m.t.x")) == ["one"], name
    with pytest.raises(ValueError, match=re.escape("the table must have the field 'm.z', got none")):
        list(Corpus(table, field="m.z"))


def test_the_only_column_of_text_is_taken(pa):
    assert (
        list(Corpus(pa.table({"n": [1], "body": ["x"]})))
        == list(Corpus(pa.table({"text": ["x"], "body": ["y"]})))
        == ["x"]
    )
    assert list(Corpus(pa.record_batch({"body": ["x"]}))) == list(Corpus(pa.array(["x"]))) == ["x"]
    for columns, says in (
        (
            {"a": ["x"], "b": ["y"]},
            "the table must have one field of text, got several: a (string), b (string)",
        ),
        ({"n": [1]}, "the table must have one field of text, got none: n (int64)"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            list(Corpus(pa.table(columns)))
    with pytest.raises(
        ValueError, match=re.escape("the table, field n must be a column of texts, got int64")
    ):
        list(Corpus(pa.table({"n": [1]}), field="n"))
    assert (
        list(Corpus(pa.table({"text": pa.nulls(3)})))
        == []
        == list(Corpus(pa.table({"text": pa.array([], pa.string())})))
    )


def test_bytes_in_a_column_that_are_not_text_are_named_by_their_row(pa):
    table = pa.table({"text": pa.array([None, b"fine", b"vi\xf1edo"])})
    with pytest.raises(
        ValueError,
        match=re.escape(
            "the table, field text, row 2 (counted from 0) must be UTF-8, got the byte 0xf1 at offset 2"
        ),
    ):
        list(Corpus(table, field="text"))
    assert list(Corpus(table, field="text", errors="replace")) == ["fine", "vi\ufffdedo"]
    torn = pa.table({"text": pa.array([b"\xc3", b"\xa9"])})
    with pytest.raises(ValueError, match=re.escape("row 0 (counted from 0)")):
        list(Corpus(torn, field="text"))


def test_long_columns_come_in_batches(pa):
    texts = [f"é{i} " * 300 for i in range(4000)]
    found = list(Corpus(pa.table({"text": texts})).batches())
    assert (
        len(found) > 3
        and max(len(b.data) for b in found) < 3 << 20
        and [d.decode() for b in found for d in b.docs()] == texts
    )


def test_damaged_tables_are_named(tmp_path, pa):
    table = pa.table({"text": [random.Random(0).randbytes(50).hex() for _ in range(100)]})
    for name, source in tables(pa, tmp_path, table).items():
        if not isinstance(source, Path) or name == "no_suffix":
            continue
        whole = source.read_bytes()
        for bad in (
            whole[: len(whole) // 2],
            b"not at all",
            b"",
            *([whole[:100] + bytes(len(whole) - 200) + whole[-100:]] if name == "a.parquet" else []),
        ):
            p = write(tmp_path / "bad" / name, bad)
            with pytest.raises(
                ValueError,
                match=rf"{re.escape(name)} must be a valid (Parquet|Arrow) file, got a damaged one",
            ):
                list(Corpus(p))
    with pytest.raises(ValueError, match="decompress it first"):
        Corpus(write(tmp_path / "x.parquet.gz", b""))


def test_tables_at_an_address(tmp_path, pa, box):
    for source in tables(pa, tmp_path, pa.table({"text": TEXTS})).values():
        if isinstance(source, Path) and source.suffix:
            box.pipe(f"/box/{source.name}", source.read_bytes())
    assert same_as_batches(Corpus("memory://box")) == TEXTS * 4


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    p = write(tmp_path / "a.parquet", b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "subword_nb[arrow]"')):
        list(Corpus(p))


def test_pandas_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": [1, 2, 3], "doc": ["one", None, "东"]}, index=[5, 5, 7])
    assert (
        same_as_batches(Corpus(frame))
        == list(Corpus(frame["doc"]))
        == list(Corpus(frame, field="doc"))
        == ["one", "东"]
    )
    assert list(Corpus(frame.astype({"doc": object}))) == ["one", "东"]
    for source, field, says in (
        (frame, "x", "which has n (int64), doc"),
        (
            frame["n"],
            None,
            "row 0 (counted from 0) must be str, bytes, pathlib.Path or an object with a field of text",
        ),
        (frame["doc"], "x", "field must be left out for a column of texts, such as 'doc', got 'x'"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            list(Corpus(source, field=field))


def test_data_sets():
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_list([*ROWS, {"id": 9, "text": None, "meta": None}])
    stream = made.to_iterable_dataset()
    for ds in (
        made,
        stream,
        made.with_format("numpy"),
        datasets.DatasetDict(train=made, test=made.select([0])),
        datasets.DatasetDict(only=made),
        datasets.IterableDatasetDict(train=stream),
    ):
        assert same_as_batches(Corpus(ds, field="text")) == TEXTS
        assert list(Corpus(ds)) == TEXTS
        assert list(Corpus(ds, field="meta.title")) == [f"t{i}" for i in range(len(ROWS))]
    assert list(Corpus(made.select([3, 1]))) == [TEXTS[3], TEXTS[1]] and Corpus(made).total == len(made)
    assert list(Corpus(stream.map(lambda row: {"text": (row["text"] or "").upper()}))) == [
        t.upper() for t in TEXTS
    ] + [""]
    for source, field, says in (
        (made, "x", "got 'x'"),
        (stream, "x", "got 'x'"),
        (made, "id", "must be a column of texts, got int64"),
        (datasets.DatasetDict(a=made, b=made), None, "source must be one split, got several, 'a', 'b'"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            list(Corpus(source, field=field))


def test_a_data_set_saved_on_disk_is_read_as_files(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(ROWS).save_to_disk(str(tmp_path / "ds"))
    assert same_as_batches(Corpus(str(tmp_path / "ds" / "*.arrow"))) == TEXTS


# Iterables


def test_iterables_are_those_of_documents(tmp_path):
    p = write(tmp_path / "a.txt", b"a file")
    mixed = ["", "a\n", b"b", bytearray(b"c"), p, "d"]
    assert same_as_batches(Corpus(mixed)) == list(documents(mixed)) == ["", "a\n", "b", "c", "a file", "d"]
    assert same_as_batches(Corpus([])) == [] and same_as_batches(Corpus({"k": 1}.keys())) == ["k"]
    assert list(Corpus([{"t": "x"}, p, {"t": "y"}])) == ["x", "a file", "y"]
    assert Corpus(mixed).total == 6
    for source, says in (
        (
            ["a", None],
            "document 1 must be str, bytes, pathlib.Path or an object with a field of text, got NoneType",
        ),
        ([7], "document 0 must be str, bytes, pathlib.Path or an object with a field of text, got int"),
        (["a", b"\xff"], "document 1 must be UTF-8, got the byte 0xff at offset 0 (invalid start byte)"),
        (["\ud800"], "document 0: text must have no lone surrogate, got U+D800 at position 0"),
        (b"text", "[data]"),
        ({"a": 1}, "list(counts)"),
        (None, "source must be a path, a glob pattern, or an iterable of str, bytes or Path, got NoneType"),
        (7, "source must be a path, a glob pattern, or an iterable of str, bytes or Path, got int"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            list(Corpus(source))
    assert list(Corpus(["\ud800x"], errors="ignore")) == ["x"]


def test_a_generator_can_be_read_once(pa=None):
    for source in ((d for d in "ab"), iter(["a", "b"])):
        c = Corpus(source)
        assert list(c) == ["a", "b"]
        with pytest.raises(
            ValueError, match="the source must .*got a generator or a pipe, which was read already"
        ):
            c.batches()
    c = Corpus(io.BytesIO(b"again"))
    assert list(c) == list(c) == ["again"]
    opened = io.BytesIO(b"skip, rest")
    opened.seek(6)
    c = Corpus(opened)
    assert list(c) == list(c) == ["rest"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes")
def test_a_pipe_can_be_read_once_and_is_unpacked():
    read, put = os.pipe()
    with os.fdopen(put, "wb") as out:
        out.write(gzip.compress(jsonl(ROWS)))
    with os.fdopen(read, "rb") as pipe:
        c = Corpus(pipe, field="text")
        assert list(c) == TEXTS
        with pytest.raises(
            ValueError, match="the source must .*got a generator or a pipe, which was read already"
        ):
            list(c)


def test_a_generator_is_read_as_it_is_needed():
    seen = 0

    def endless():
        nonlocal seen
        while True:
            seen += 1
            yield "x" * 100_000

    assert len(next(iter(Corpus(endless()).batches())).data) >= 1 << 20 and seen < 20


# Samples


@pytest.mark.parametrize("sample", [0.3, 1.0, 1, 7, 10_000])
def test_samples_do_not_depend_on_how_a_corpus_is_held(tmp_path, sample):
    lines = [f"line {i} é\n" for i in range(400)]
    p = write(tmp_path / "a.txt.gz", gzip.compress("".join(lines).encode()))
    rows = write(tmp_path / "a.jsonl", jsonl([{"text": t} for t in lines]))
    found = [list(Corpus(s, sample=sample, seed=5)) for s in (lines, p, rows, iter(lines))]
    assert found[0] == found[1] == found[2] == found[3] and found[0] == sorted(found[0], key=lines.index)
    assert isinstance(sample, float) or len(found[0]) == min(sample, 400)
    assert sample in (1.0, 10_000) or found[0] != list(Corpus(lines, sample=sample, seed=6))
    c = Corpus(p, sample=sample)
    assert sum(b.step for b in c.batches()) == c.total


def test_smaller_samples_are_parts_of_larger_ones():
    docs = [str(i) for i in range(2000)]
    for small, large in ((0.1, 0.5), (20, 200)):
        assert set(Corpus(docs, sample=small, seed=1)) < set(Corpus(docs, sample=large, seed=1))


def test_samples_are_the_same_in_every_process():
    code = "from subword_nb.corpus.sources import Corpus; print(list(Corpus([str(i) for i in range(1000)], sample=5, seed=3)))"
    outs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": h},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for h in ("0", "1")
    }
    assert (
        len(outs) == 1
        and outs.pop() == str(list(Corpus([str(i) for i in range(1000)], sample=5, seed=3))) + "\n"
    )
    assert draws(3, 0, 3).tolist() == [int(x) for x in np.concatenate([draws(3, i, 1) for i in range(3)])]


@pytest.mark.parametrize(
    "options",
    [
        {"sample": 0},
        {"sample": 0.0},
        {"sample": 1.1},
        {"sample": True},
        {"sample": "all"},
        {"seed": 1.5},
        {"seed": True},
        {"field": ""},
        {"field": 3},
        {"errors": "skip"},
    ],
)
def test_wrong_options_are_refused_at_once(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Corpus(["a"], **options)


# Memory, and the rest


def peak_of(corpus: Corpus) -> int:
    tracemalloc.start()
    for _ in corpus.batches():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    "kind", [".gz", *(pytest.param(kind, marks=pytest.mark.slow) for kind in (".xz", ".bz2", ".zst"))]
)
def test_memory_stays_bounded(tmp_path, kind):
    line = b"a line of text that says nothing new at all\n"
    blob = b"".join(
        line * 24_000 + str(i).encode() + b"\n" for i in range(40 if kind != ".bz2" else 18)
    )  # bz2 is slow where nothing is new
    p = write(
        tmp_path / f"a.txt{kind}",
        zst(blob) if kind == ".zst" else PACK[kind](blob) if kind != ".xz" else lzma.compress(blob, preset=0),
    )
    assert p.stat().st_size < len(blob) / 100
    assert peak_of(Corpus(p)) < 0.4 * len(blob)
    assert kind == ".bz2" or peak_of(Corpus(p, sample=0.5)) < 0.6 * len(blob)


def test_memory_stays_bounded_for_tables_and_rows(tmp_path, pa):
    from pyarrow import parquet

    rng = random.Random(0)
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})
    with parquet.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for _ in range(10):
            writer.write_table(
                pa.table(
                    {"id": range(2000), "text": [rng.randbytes(1000).hex() for _ in range(2000)]}, schema
                )
            )
    pool = pa.default_memory_pool()
    peaks = [pool.bytes_allocated() for _ in Corpus(tmp_path / "a.parquet").batches()]
    assert (
        sum(len(b.data) for b in Corpus(tmp_path / "a.parquet").batches()) == 40_000_000
        and max(peaks) < 16_000_000
    )
    assert peak_of(Corpus(tmp_path / "a.parquet")) < 12_000_000
    p = write(tmp_path / "a.jsonl.gz", gzip.compress(jsonl([{"text": "hug " * 500}] * 20_000), 1))
    assert peak_of(Corpus(p)) < 14_000_000


def test_tables_of_long_texts_are_read_a_few_megabytes_at_a_time(tmp_path, pa):
    from pyarrow import parquet

    rng = random.Random(0)
    rows = [rng.randbytes(30_000 + i).hex() for i in range(500)]
    parquet.write_table(
        pa.table({"text": rows}), tmp_path / "long.parquet", use_dictionary=False, write_batch_size=16
    )
    # one text of a megabyte 40 times: a few kilobytes on disk
    for kind in ("plain", "dictionary"):
        column = pa.array(["hug " * 250_000] * 40)
        column = column.dictionary_encode() if kind == "dictionary" else column
        parquet.write_table(pa.table({"text": column}), tmp_path / f"{kind}.parquet")
        assert (tmp_path / f"{kind}.parquet").stat().st_size < 100_000
    pool = pa.default_memory_pool()
    for name, size in (("long", sum(map(len, rows))), ("plain", 40_000_000), ("dictionary", 40_000_000)):
        corpus = Corpus(tmp_path / f"{name}.parquet")
        before, read, most = pool.bytes_allocated(), 0, 0
        for batch in corpus.batches():
            read += len(batch.data)
            most = max(most, pool.bytes_allocated() - before)
        assert read == size and most < 20_000_000, (name, read, most)
        assert peak_of(corpus) < 12_000_000


def test_columns_that_store_each_text_once_are_decoded_in_parts(monkeypatch, pa):
    rng, n_parts = random.Random(0), 0
    for _ in range(300):
        monkeypatch.setattr(batches, "BLOCK", rng.choice([1, 2, 5, 9]))
        values = [rng.choice([None, "", "hug", "é", "東京", "🚀 and"]) for _ in range(rng.randrange(30))]
        column = pa.array(values, rng.choice([pa.string(), pa.large_string()])).dictionary_encode()
        a, b = sorted(rng.choices(range(len(values) + 1), k=2))
        found = [*column_batches(column[a:b], "it")]
        n_parts += len(found)
        expected = [v.encode() for v in values[a:b] if v is not None]
        assert [doc for batch in found for doc in batch.docs()] == expected
    assert n_parts > 600
    torn = pa.array([None, b"ab", b"\xff"] * 9).dictionary_encode()
    with pytest.raises(ValueError, match="it, row 2 .*UTF-8"):
        [*column_batches(torn, "it")]
    with pytest.raises(ValueError, match="it, row 5 "):
        [*column_batches(torn[3:], "it", at=3)]


def test_a_row_or_a_line_beyond_the_limit_names_it(tmp_path, pa):
    from pyarrow import parquet

    texts = ["hug", None, "hug " * 100, "pug"]
    parquet.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    with (
        pa.OSFile(str(tmp_path / "c.arrow"), "wb") as raw,
        pa.ipc.new_file(raw, pa.schema({"text": pa.string()})) as out,
    ):
        out.write_table(pa.table({"text": texts}))
    write(tmp_path / "d.txt", ("\n".join(filter(None, texts)) + "hug").encode())
    for name, message, options in (
        ("a.parquet", r"row 2 \(counted from 0\) has 400 bytes.*row_bytes", {}),
        ("c.arrow", r"row 2 \(counted from 0\) has 400 bytes.*row_bytes", {}),
        ("d.txt", r"d\.txt has a line of .*row_bytes", {"sample": 1.0}),
    ):
        corpus = Corpus(tmp_path / name, **options)
        assert any("hug hug" in text for text in corpus)
        with limited(row_bytes=300), pytest.raises(ValueError, match=message):
            list(corpus)
    with limited(row_bytes=300):
        assert len(list(Corpus(tmp_path / "d.txt"))) == 1  # without a sample, no line is stored
    # refused by what the file says of its size, before it is read
    parquet.write_table(pa.table({"text": ["hug " * 50_000]}), tmp_path / "b.parquet")
    with limited(row_bytes=100_000), pytest.raises(ValueError, match=r"b\.parquet has rows of 1.*row_bytes"):
        list(Corpus(tmp_path / "b.parquet"))
    with limited(row_bytes=200_000):
        assert [len(doc) for doc in Corpus(tmp_path / "b.parquet")] == [200_000]


def test_a_corpus_passes_through_and_options_do_not(tmp_path):
    c = Corpus(["a"])
    assert (
        as_corpus(c) is c
        and as_corpus(c, errors="strict", sample=None) is c
        and list(as_corpus(["b"], sample=1)) == ["b"]
    )
    with pytest.raises(ValueError, match="sample, field must .*got an existing Corpus as source"):
        as_corpus(c, sample=3, field="x")
    with pytest.raises(ValueError, match="is for JSON lines"):
        Corpus(write(tmp_path / "a.txt", b"x"), field="text")


def test_a_stamp_changes_with_files_and_options(tmp_path):
    p = write(tmp_path / "a.txt", b"hug")
    os.utime(p, (1, 1))
    stamps = [
        Corpus(p).stamp(),
        Corpus(str(p)).stamp(),
        Corpus(p, seed=1).stamp(),
        Corpus(p, sample=3).stamp(),
        Corpus(p, errors="ignore").stamp(),
        Corpus(["a"]).stamp(),
        Corpus(["a", "b"]).stamp(),
    ]
    os.utime(p, (2, 2))
    stamps.append(Corpus(p).stamp())
    assert stamps[0] == stamps[1] and len(set(stamps)) == len(stamps) - 1


def test_progress_counts_all_of_it(tmp_path, capsys):
    p = write(tmp_path / "a.txt", b"hug " * 1000)
    assert list(Corpus(p).documents(progress=True)) == ["hug " * 1000]
    assert "reading" in capsys.readouterr().err
    assert list(Corpus(p)) and capsys.readouterr().err == ""


def test_wikitext_comes_from_the_hub_or_from_a_file(tmp_path, monkeypatch):
    calls = []

    class Fake:
        column_names = ["text"]

        def iter(self, n):
            yield {"text": ["= Hug =", None, ""]}

    def load(*args, **options):
        calls.append((args, options))
        return Fake()

    monkeypatch.setitem(sys.modules, "datasets", type(sys)("datasets"))
    sys.modules["datasets"].load_dataset = load
    assert list(wikitext("test", name="wikitext-103-raw-v1")) == ["= Hug =", ""] and calls == [
        (("Salesforce/wikitext", "wikitext-103-raw-v1"), {"split": "test"})
    ]

    def offline(*args, **options):
        raise ConnectionError("no network")

    sys.modules["datasets"].load_dataset = offline
    p = write(tmp_path / "a.txt", b"instead")
    assert list(wikitext(fallback=p)) == ["instead"]
    with pytest.raises(OSError, match=re.escape("could not be fetched (ConnectionError: no network)")):
        wikitext()
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert list(wikitext(fallback=p, sample=1)) == ["instead"]
    with pytest.raises(ModuleNotFoundError, match=re.escape("subword_nb[corpora]")):
        wikitext()
    with pytest.raises(ValueError, match="name must .*got 'wikitext'"):
        wikitext(name="wikitext", fallback=p)


def test_importing_the_rooms_is_light():
    heavy = ("numpy", "numba", "pyarrow", "fsspec", "datasets", "zstandard", "tqdm", "lzma", "gzip", "bz2")
    code = f"import sys, subword_nb.corpus.sources; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_batches_are_joined_and_never_split():
    assert [
        b.docs()
        for b in batches.gathered(
            [pack([b"a"]), Batch(b"", np.zeros(1, np.int64), 2), pack([b"b", b""], step=1)]
        )
    ] == [[b"a", b"b", b""]]
    assert sources.files().__class__ is files


def test_lists_are_read_like_iterators(tmp_path):
    "Whatever follows the texts that a list begins with: bytes, objects, files, long texts."
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    rng = random.Random(11)
    others = [b"bytes \xc3\xa9", {"text": "row"}, tmp_path / "a.txt", "x" * (3 << 20), ["in", "side"], "é"]
    for n in (0, 1, 63, 64, 65, 200):
        items = rng.choices(["", "a b", "中 é", *TEXTS], k=n)
        for k in range(3):
            items[rng.randrange(n + 1) : 0] = rng.choices(others, k=k)
            found = [list(Corpus(given).batches()) for given in (items, iter(items), tuple(items))]
            docs = [[doc for batch in row for doc in batch.docs()] for row in found]
            assert docs[0] == docs[1] == docs[2]
            assert len({sum(batch.step for batch in row) for row in found}) == 1
    many = Corpus(["word " * 40] * 30_000)
    assert max(len(batch.data) for batch in many.batches()) < 2 << 20
    for at in (0, 70):
        with pytest.raises(ValueError, match=f"document {at}: .*U\\+D800"):
            list(Corpus([*["a"] * at, "\ud800"]).batches())
