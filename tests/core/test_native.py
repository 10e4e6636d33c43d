"""Kernels compiled ahead of time: what may be loaded, what is passed, and that no kernel is left behind."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from subword_nb.core import jit, native, native_build
from subword_nb.core.native import Entry, library_at, parse_signature
from subword_nb.core.span_cache import SpanTable
from subword_nb.pipeline.runs import known_rows
from subword_nb.text.gpt_scanners import gpt_scanner

needs_library = pytest.mark.skipif(
    native.library() is None,
    reason="this installation has no library of kernels, or it is not that of its sources",
)


def test_arguments_that_do_not_fit_are_refused():
    entry = Entry(None, "uint8[:], int64[:,:], bool, none, float64, uint64, bytes", [], False, "f")
    flat = [np.zeros(3, np.uint8), np.zeros((2, 2), np.int64), True, None, 0.5, 7, b"text"]
    assert entry.words(flat)[2:4] == [1, 0] and entry.words(flat)[5] == 7
    assert entry.words([*flat[:5], np.uint64(2**64 - 1), b""])[5] == -1
    wrong = [np.zeros(3, np.int8), np.zeros((4, 4), np.int64).T[:2], 1, 0, 1, 1.0, "text"]
    for i, value in enumerate(wrong):
        assert entry.words([*flat[:i], value, *flat[i + 1 :]]) is None, i
    assert entry.words(flat[:5]) is None and entry.words([*flat, 1]) is None
    assert entry.words([flat[0].astype(">u2").view(np.uint8)[::2], *flat[1:]]) is None


def test_a_status_is_an_error():
    with pytest.raises(RuntimeError, match="kernel f must not fail"):
        Entry(lambda *_: 1, "int64", [], False, "f").run([1])


@needs_library
def test_every_entry_is_in_the_library_with_its_signatures():
    entries = native.library().entries
    kernels = native_build.entry_kernels(native_build.kernel_pages())
    names = {f"{k.__module__.partition('.')[2]}.{k.__name__}": k for k in kernels}
    assert names.keys() == entries.keys() and len(names) > 50
    for name, kernel in names.items():
        for signature, entry in zip(kernel.signatures, entries[name], strict=True):
            flat = native.flat_arguments(parse_signature(signature))
            assert [slot.ndim for slot in entry.arguments] == [a.ndim for a in flat]
            dtypes = [np.dtype(a.kind) if a.ndim else None for a in flat]
            assert [slot.dtype for slot in entry.arguments] == dtypes


EVERYTHING = """
import sys, warnings
sys.modules["numba"] = None # as if it were not installed
warnings.simplefilter("ignore")
import subword_nb
from subword_nb import Tokenizer
from subword_nb.core import jit, native

def refused(self, *args): raise AssertionError(f"{self.__module__}.{self.__name__} ran as plain Python")

assert native.library() is not None and not jit.installed() and jit.available()
jit.Kernel.plain = refused
subword_nb.warm_up()
texts = [f"it's the {i * 7919}th of {i} hugs, éé 你好 ab{i}\\n" for i in range(4000)]
for algorithm in ("bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"):
    for options in ({}, {"objective": "frequency"}) if algorithm == "wordpiece" else ({},):
        tok = Tokenizer.train(texts, algorithm=algorithm, vocab_size=700, progress=False, threads=2, **options)
        text = "".join(texts)
        ids = tok.encode_array(text)
        assert ids.tolist() == tok.align(text).ids == tok.encode(text), algorithm
        assert [i for row in tok.encode_batch(texts, threads=2) for i in row.tolist()] == [
            i for text in texts for i in tok.encode(text)], algorithm
print(len(native.library().entries))
"""


@needs_library
@pytest.mark.slow
def test_nothing_runs_as_plain_python_without_numba():
    "Training, encoding and alignment with every model: each kernel that Python calls has an entry for what it is called with."
    env = {k: v for k, v in os.environ.items() if k != "SUBWORD_NB_JIT"}
    done = subprocess.run([sys.executable, "-c", EVERYTHING], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


@pytest.fixture
def copied(tmp_path):
    "The library of this installation in a folder of its own, and that folder's manifest."
    if native.library() is None:
        pytest.skip("this installation has no library of kernels")
    folder = tmp_path / "kernels"
    shutil.copytree(native.library().path.parent, folder)
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o700)
    return folder, json.loads((folder / "kernels.json").read_bytes())


def test_a_system_without_users_has_only_private_files(tmp_path, monkeypatch):
    "As Python in a browser, whose `os.name` is posix."
    tmp_path.chmod(0o777)
    if os.name == "posix":
        assert not native.is_private(tmp_path)
    monkeypatch.delattr(os, "geteuid", raising=False)
    assert native.is_private(tmp_path)


def test_a_library_is_loaded_from_a_private_folder(copied):
    folder, _ = copied
    assert library_at(folder, native.PACKAGE).path.parent == folder


def test_a_damaged_file_is_not_loaded(copied):
    folder, manifest = copied
    path = folder / manifest["files"][native.library().target]["name"]
    path.write_bytes(path.read_bytes()[:-100])
    assert library_at(folder, native.PACKAGE) is None
    (folder / "kernels.json").write_text("{")
    assert library_at(folder, native.PACKAGE) is None


def needs_own_unicode(manifest):
    "Skip where another Python, with other Unicode data, built the library; no table is loaded there."
    described = manifest["tables"]["unicode"]
    if described != unicodedata.unidata_version:
        pytest.skip(
            f"the tables are of Unicode {described}, and this Python has {unicodedata.unidata_version}"
        )


def test_prepared_tables_are_those_that_the_pages_make():
    folder = native.PACKAGE / "_kernels"
    found = native.library_at(folder, native.PACKAGE, trusted=True)
    made = native_build.prepared_tables(native_build.kernel_pages())
    assert {"text.gpt_scanners.kind_table"} <= {native.table_name(make) for make in made}
    if found:
        needs_own_unicode(json.loads((folder / "kernels.json").read_bytes()))
    for make in made if found else ():
        table = found.tables[native.table_name(make)]
        assert table.dtype == make().dtype and table.tobytes() == make().tobytes()


def test_a_damaged_table_is_not_loaded(copied):
    folder, manifest = copied
    needs_own_unicode(manifest)
    path = folder / manifest["tables"]["name"]
    data = path.read_bytes()
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    assert library_at(folder, native.PACKAGE) is None
    path.write_bytes(data)
    assert library_at(folder, native.PACKAGE).tables.keys() == manifest["tables"]["arrays"].keys()


def test_tables_of_another_unicode_are_made_anew(copied):
    folder, manifest = copied
    manifest["tables"]["unicode"] = "1.0.0"
    (folder / "kernels.json").write_text(json.dumps(manifest))
    assert library_at(folder, native.PACKAGE).tables == {}


def test_a_library_of_other_sources_is_not_loaded(copied, tmp_path):
    folder, manifest = copied
    package = tmp_path / "package"
    for name in manifest["sources"]:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(native.PACKAGE / name, package / name)
    assert library_at(folder, package) is not None
    with open(package / min(manifest["sources"]), "a") as file:
        file.write("\n")
    assert library_at(folder, package) is None


def test_a_library_for_another_processor_or_outside_its_folder_is_not_loaded(copied, monkeypatch, tmp_path):
    folder, manifest = copied
    [(target, file)] = manifest["files"].items()
    shutil.move(folder / file["name"], tmp_path / file["name"])
    outside = manifest | {"files": {target: file | {"name": f"../{file['name']}"}}}
    (folder / "kernels.json").write_text(json.dumps(outside))
    assert library_at(folder, native.PACKAGE) is None
    shutil.move(tmp_path / file["name"], folder / file["name"])
    (folder / "kernels.json").write_text(json.dumps(manifest))
    assert library_at(folder, native.PACKAGE) is not None
    monkeypatch.setattr(native, "targets", lambda: ["of another kind"])
    assert library_at(folder, native.PACKAGE) is None


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights")
def test_what_others_may_write_is_not_loaded(copied):
    folder, manifest = copied
    for path in (
        folder,
        folder / "kernels.json",
        folder / manifest["files"][native.library().target]["name"],
    ):
        path.chmod(0o722)
        assert library_at(folder, native.PACKAGE) is None
        assert library_at(folder, native.PACKAGE, trusted=True) is not None
        path.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
        assert library_at(folder, native.PACKAGE) is None


def test_an_older_processor_gets_what_it_can_run(monkeypatch):
    monkeypatch.setattr(native, "machine", lambda: "x86_64")
    for has, found in ((True, ["x86_64-v3", "x86_64-v2"]), (False, ["x86_64-v2"])):
        monkeypatch.setattr(native, "has_v3", lambda has=has: has)
        assert native.targets() == found


@pytest.fixture
def bare_package(project, tmp_path):
    "A copy of the package without a library, and the environment of a process that uses it and an empty cache."
    package = tmp_path / "here" / "subword_nb"
    shutil.copytree(project / "subword_nb", package, ignore=shutil.ignore_patterns("_kernels", "__pycache__"))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SUBWORD_NB_", "PYTHONPATH"))}
    return package, env | {"SUBWORD_NB_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(package.parent)}


def needs_compiler():
    "Skip where kernels cannot be compiled."
    pytest.importorskip("numba")
    if not shutil.which("cc"):
        pytest.skip("there is no linker")


@pytest.mark.slow
def test_it_is_built_once_into_the_cache_folder_and_loaded_from_there(bare_package, tmp_path):
    "Two processes at once, a package without a library; the third process loads what they built."
    needs_compiler()
    _, env = bare_package
    code = (
        "from subword_nb.core import native, native_build; before = native.library();"
        "print(before is None, native_build.ensure(progress=False), native.library().path)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )
        for _ in range(2)
    ]
    said = [process.communicate()[0].split() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert [words[:2] for words in said] == [["True", "True"]] * 2 and said[0][2] == said[1][2]
    path = Path(said[0][2])
    assert tmp_path / "cache" in path.parents and path.stat().st_mode & 0o077 == 0
    later = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=tmp_path
    )
    assert later.stdout.split()[:2] == ["False", "True"], later.stderr


BULK = """
import sys, time
from pathlib import Path
from subword_nb import Tokenizer
from subword_nb.core import jit, native
assert native.library() is None
tok = Tokenizer.train(["the cat sat on the mat, isn't it? " * 20], vocab_size=270, progress=False)
texts = [f"the rat sat on mat {i} and isn't é 你好" for i in range(20_000)]
rows = tok.encode_batch(texts)
assert not jit.ready() and "numba" not in sys.modules
assert all(row.tolist() == tok.encode(text) for row, text in zip(rows, texts))
folder = native.library_folders()[-1]
end = time.monotonic() + 300
while not (folder / "kernels.json").exists() and time.monotonic() < end:
    time.sleep(0.2)
native.LOADED["build"].wait(60)
assert jit.ready() and native.library().path.parent == folder
again = Tokenizer(tok.model, pre_tokenizer=tok.pre_tokenizer).encode_batch(texts)
assert (again.ids == rows.ids).all() and (again.bounds == rows.bounds).all()
"""


@pytest.mark.slow
def test_the_first_bulk_call_builds_it_in_the_background_and_does_not_wait(bare_package, tmp_path):
    "Without a library, texts are encoded without kernels and without Numba, with the same ids, and a process builds one."
    needs_compiler()
    _, env = bare_package
    done = subprocess.run([sys.executable, "-c", BULK], env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("in the background, once") == 1
    assert (tmp_path / "cache" / "subword_nb").stat().st_mode & 0o077 == 0


@pytest.fixture
def without_library(monkeypatch, tmp_path):
    "A process without a library that has started no build; the arguments of those that it starts."
    started = []
    monkeypatch.setattr(native, "LOADED", {"library": None})
    monkeypatch.setattr(native, "library", lambda: None)
    monkeypatch.setattr(native, "library_folders", lambda: [tmp_path / "package", tmp_path / "cache"])
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **options: started.append(options) or Running())
    for name in ("SUBWORD_NB_BUILD", "SUBWORD_NB_JIT", "SUBWORD_NB_KERNELS", "SUBWORD_NB_QUIET"):
        monkeypatch.delenv(name, raising=False)
    return started


class Running:
    "A process that has not ended."

    def poll(self):
        return None


def test_one_process_is_started_outside_the_working_directory(without_library, capsys):
    assert native.build_in_background() and native.build_in_background()
    [options] = without_library
    assert options["cwd"] == native.PACKAGE.parent and options["start_new_session"]
    assert capsys.readouterr().err.count("in the background, once") == 1


@pytest.mark.parametrize("name, value", [("BUILD", "0"), ("JIT", "1"), ("KERNELS", "none")])
def test_no_process_is_started_where_the_environment_says_so(without_library, monkeypatch, name, value):
    monkeypatch.setenv(f"SUBWORD_NB_{name}", value)
    assert not native.build_in_background() and without_library == []


def test_a_failed_build_is_told_and_not_repeated_for_a_day(without_library, capsys, tmp_path):
    failed = tmp_path / "cache.failed"
    failed.write_text("a linker must be installed")
    failed.chmod(0o600)
    assert not native.build_in_background() and without_library == []
    assert "a linker must be installed" in capsys.readouterr().err
    native.LOADED.pop("build")
    os.utime(failed, (0, 0))
    assert native.build_in_background() and len(without_library) == 1


@pytest.mark.slow
def test_a_build_that_fails_leaves_the_reason(bare_package, tmp_path):
    _, env = bare_package
    env |= {"PATH": "", "CC": ""}
    code = (
        "import importlib.util, sys; sys.modules['ziglang'] = None; sys.modules['numba'] = None;"
        "from subword_nb.core import native_build; print(native_build.ensure(progress=False))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["False"], done.stderr
    [failed] = (tmp_path / "cache" / "subword_nb").glob("*.failed")
    assert "must be installed" in failed.read_text()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@needs_library
def test_a_forked_process_calls_it():
    from subword_nb.core.simd import places_of

    def count():
        text = np.frombuffer(b"abcab" * 20, np.uint8)
        return places_of(text, np.frombuffer(b"ab", np.uint8), 0, np.zeros(100, np.int64))

    here = count()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if count() == here else 1)
    assert os.waitpid(pid, 0)[1] == 0 and here == 40


@needs_library
def test_kernels_say_where_they_are():
    from subword_nb.core.simd import count_separators

    count_separators(np.zeros(200, np.uint8), 0, 10)
    assert repr(count_separators) == "<kernel count_separators, in the library>"
    assert jit.cached(count_separators) and jit.available()


def test_a_bound_argument_changes_and_the_others_stay(monkeypatch):
    def add(result, error, words):
        numbers = (ctypes.c_int64 * 3).from_address(words)
        numbers[2] = numbers[0] + numbers[1]
        return 0

    entry = Entry(add, "int64, int64", ["int64"], False, "add")
    add_to_5 = entry.bind(entry.words([5, 0]), 1)
    assert [add_to_5(n) for n in (1, -7, 0)] == [6, -2, 5]
    kernel = jit.entry("int64, int64")(lambda a, b: a - b)
    monkeypatch.setattr(kernel, "native", [entry])
    assert kernel.bind(0, 5, at=0)(2) == 7  # of the library
    with pytest.raises(RuntimeError, match="kernel f must not fail"):
        Entry(lambda *_: 1, "int64", ["int64"], False, "f").bind([1], 0)(2)


def test_a_kernel_outside_the_library_can_be_bound():
    take = jit.kernel(lambda a, b: a - b)
    with jit.interpreted():
        assert [take.bind(9, 0, at=1)(n) for n in (1, 2)] == [8, 7]


@needs_library
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "llama3", "qwen2"])
def test_short_texts_of_every_gpt_pattern_are_looked_up_by_the_library(name):
    table_of, gpt2, kind = gpt_scanner(name).kernel_args
    slots, keys, spill, _ = SpanTable().arrays
    buffer, starts, out = np.zeros(300, np.uint8), np.zeros(300, np.uint32), np.zeros(300, np.int32)
    args = [b"low", buffer, starts, slots, keys, spill, out, table_of(), gpt2, kind]
    assert any(e.words(args) is not None for e in native.entries_of(known_rows.py_func))
