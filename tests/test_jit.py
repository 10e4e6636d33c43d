"""Kernels where Numba is switched off, has no cache folder, meets two threads at once, or finds a cache of another day."""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import subword_nb
from subword_nb import jit

PLAIN = """
import random, sys, warnings
warnings.simplefilter("error")
from subword_nb.bpe import bpe_train_ref
from subword_nb.bpe_kernels import RankMisses, solved
from subword_nb.bpe_train import bpe_train
rng = random.Random(3)
for _ in range(25):
    counts = {"".join(rng.choices("aéb", k=rng.randrange(1, 9))): rng.randrange(1, 4) for _ in range(rng.randrange(1, 9))}
    for rule in ("first", "ids", "bytes"):
        rules = bpe_train_ref(counts, 40, tie_break=rule)
        assert bpe_train(counts, 40, tie_break=rule, bulk=True) == rules
ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"aba": 257}
assert solved(RankMisses(ranks), [b"abab", b"aba", b"ab" * 90, b"b"]) == [[256, 256], [257], [256] * 90, [98]]
print("numba" in sys.modules)
"""

LOWER = """
import numpy as np
from subword_nb.jit import Kernel, kernel

STEP = 5

def _word():
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def word(context, a, i):
        def emit(context, builder, signature, values):
            address = builder.gep(context.make_array(signature.args[0])(context, builder, values[0]).data, [values[1]])
            found = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
            found.align = 1
            return found
        return types.uint64(a, types.uint64), emit
    return word

def word(a, i): return np.uint64(int.from_bytes(bytes(a[int(i):int(i) + 8]), "little"))
word = Kernel(word, make=_word)

@kernel
def lower(a, i): return word(a, i) + np.uint64(STEP)
"""

UPPER = """
import sys
import numpy as np
from subword_nb.jit import cached, kernel
from lower import lower, word

@kernel
def upper(a):
    s = np.uint64(0)
    for i in range(len(a) - 7): s += lower(a, i) ^ word(a, i)
    return s

@kernel
def countdown(n): return 0 if n == 0 else 1 + countdown(n - 1)

a = np.arange(64, dtype=np.uint8)
known = cached(upper, countdown)
assert "numba" not in sys.modules
assert upper(a) == upper.plain(a) and countdown(9) == 9
print(known, upper(a), cached(upper, countdown))
"""


def run(code, folder, **settings):
    "The output and the complaints of a process whose kernels are cached in `folder` and nowhere else."
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SUBWORD_NB_", "NUMBA_"))}
    env |= {"SUBWORD_NB_CACHE": str(folder), "PYTHONPATH": os.pathsep.join([str(folder.parent), *filter(None, [env.get("PYTHONPATH")])])} | settings
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_kernels_are_right_without_numba(tmp_path):
    assert run(PLAIN, tmp_path / "cache", SUBWORD_NB_JIT="0") == ("False", "")


def test_a_kernel_is_compiled_anew_when_a_kernel_of_another_file_changes(tmp_path):
    pytest.importorskip("numba")
    lower, cache = tmp_path / "lower.py", tmp_path / "cache"
    lower.write_text(LOWER)
    first, said = run(UPPER, cache)
    assert first.startswith("False") and first.endswith("True") and said.count("\n") == 1 and "compiling" in said
    assert run(UPPER, cache) == (first.replace("False", "True"), "")
    lower.write_text(LOWER.replace("STEP = 5", "STEP = 70"))
    other, said = run(UPPER, cache)
    assert other.startswith("False") and other != first and said
    lower.write_text(LOWER + "\n# a line more\n")
    assert run(UPPER, cache)[0] == first.replace("False", "True")  # what it is, not when it was written
    for file in cache.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    assert run(UPPER, cache)[0] == first.replace("False", "True")  # damaged files are replaced
    assert run(UPPER, cache) == (first.replace("False", "True"), "")


def test_checked_kernels_refuse_what_lies_outside(tmp_path):
    pytest.importorskip("numba")
    code = """
import numpy as np
from subword_nb.jit import kernel
@kernel
def at(a, i): return a[i]
try: at(np.zeros(3), 3)
except IndexError as e: print("refused:", at(np.ones(3), 2))
"""
    assert run(code, tmp_path / "cache", SUBWORD_NB_JIT="check")[0] == "refused: 1.0"
    assert run(code, tmp_path / "cache")[0] == ""


def test_without_a_cache_folder_kernels_still_compile(monkeypatch, tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path / "file"))
    kernel = jit.kernel(lambda x: x + 1)
    assert not jit.cached(kernel) and kernel(1) == 2 and jit.cached(kernel)


def test_a_folder_that_cannot_be_written_is_read_and_the_next_one_written(tmp_path):
    pytest.importorskip("numba")
    store = jit._Store(jit.kernel(lambda x: x * 17))
    store.folders = [tmp_path / "file" / "sub", tmp_path / "user"]
    (tmp_path / "file").write_text("not a folder")
    import numba
    from numba.core.registry import cpu_target

    made = numba.njit(lambda x: x * 17)
    made._cache = store
    assert made(2) == 34
    saved = list((tmp_path / "user").iterdir())
    assert len(saved) == 1
    (signature,) = made.signatures
    store.folders.reverse()
    assert store.load_overload(signature, cpu_target.target_context) is not None
    os.utime(saved[0], (0, 0))
    later = jit._Store(jit.kernel(lambda x: x * 18))
    later.folders = [tmp_path / "user"]
    made = numba.njit(lambda x: x * 18)
    made._cache = later
    assert made(2) == 36 and not saved[0].exists()  # of another stamp, and old


def test_plain_runs_everything_plain():
    seen = []

    def low(x):
        seen.append(type(x))
        return x * 2**40

    lower = jit.kernel(low)

    def high(x): return lower(x) + 1  # noqa: E704

    assert jit.kernel(high).plain(2**40) == 2**80 + 1 and seen == [int]
    with jit.plainly():
        assert jit.kernel(high)(2**40) == 2**80 + 1


def test_threads_meet_at_a_first_call():
    pytest.importorskip("numba")
    kernel = jit.kernel(lambda x: 2 * x)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(kernel, range(64))) == [2 * x for x in range(64)]


def test_warm_up_knows_every_room_with_kernels(project):
    rooms = {p.stem for p in (project / "subword_nb").glob("*.py") if re.search(r"^@on_warm_up", p.read_text(encoding="utf-8"), re.M)}
    assert rooms <= set(subword_nb._KERNEL_ROOMS)


@pytest.mark.slow
def test_the_notice_is_one_line_and_only_for_compiling(tmp_path):
    pytest.importorskip("numba")
    code = "from subword_nb import warm_up; print(len(warm_up()))"
    first = run(code, tmp_path / "cache")
    second = run(code, tmp_path / "cache")
    assert first[0] == second[0] and int(first[0]) >= 3
    assert first[1].count("\n") == 1 and "compiling" in first[1]
    assert second[1] == ""
