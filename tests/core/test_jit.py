"""Kernels where Numba is switched off, has no cache folder, meets two threads at once, or finds a cache of another day."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from notebooks import dotted, modules

from subword_nb.core import jit

PLAIN = """
import random, sys, warnings
warnings.simplefilter("error")
from subword_nb.bpe.reference import bpe_train_ref
from subword_nb.bpe.merge_kernels import RankSpanEncoder, span_ids
from subword_nb.bpe.trainer import bpe_train
rng = random.Random(3)
for _ in range(25):
    counts = {"".join(rng.choices("aéb", k=rng.randrange(1, 9))): rng.randrange(1, 4) for _ in range(rng.randrange(1, 9))}
    for rule in ("first", "ids", "bytes"):
        rules = bpe_train_ref(counts, 40, tie_break=rule)
        assert bpe_train(counts, 40, tie_break=rule, bulk=True) == rules
ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"aba": 257}
assert span_ids(RankSpanEncoder(ranks), [b"abab", b"aba", b"ab" * 90, b"b"]) == [[256, 256], [257], [256] * 90, [98]]
print("numba" in sys.modules)
"""

LOWER = """
import numpy as np
from subword_nb.core.jit import Kernel, kernel

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
from subword_nb.core.jit import cached, kernel
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
    env |= {
        "SUBWORD_NB_CACHE": str(folder),
        "PYTHONPATH": os.pathsep.join([str(folder.parent), *filter(None, [env.get("PYTHONPATH")])]),
    } | settings
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
    assert (
        first.startswith("False") and first.endswith("True") and said.count("\n") == 1 and "compiling" in said
    )
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
from subword_nb.core.jit import kernel
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
    store = jit.Store(jit.kernel(lambda x: x * 17))
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
    later = jit.Store(jit.kernel(lambda x: x * 18))
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

    def high(x):
        return lower(x) + 1

    assert jit.kernel(high).plain(2**40) == 2**80 + 1 and seen == [int]
    with jit.interpreted():
        assert jit.kernel(high)(2**40) == 2**80 + 1


CALLBACK = """
import signal, sys
from contextlib import suppress
from numba.core.codegen import JITCodeLibrary

which, name = sys.argv[1], sys.argv[2]
hook, calls = getattr(JITCodeLibrary, which), []

def interrupted(cls, *args): # what LLVM calls while it translates, or looks for what was translated
    calls.append(len(calls))
    if len(calls) == 1: signal.raise_signal(getattr(signal, name))
    return hook.__func__(cls, *args)

setattr(JITCodeLibrary, which, classmethod(interrupted))
import numpy as np
from subword_nb.core.jit import kernel

@kernel
def low(a): return a.sum() + 1

@kernel
def high(a): return low(a) * 2

class Stopped(BaseException): pass

def stop(number, frame): raise Stopped(number)

if name == "SIGTERM": signal.signal(signal.SIGTERM, stop)
before = signal.getsignal(getattr(signal, name))
reached = []
try:
    reached.append(high(np.arange(4)))
    reached.append("went on")
except (KeyboardInterrupt, Stopped) as e: print(type(e).__name__, len(calls) > 0, reached)
assert signal.getsignal(getattr(signal, name)) is before
print(high(np.arange(4)))
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize(
    "name, error",
    [("SIGINT", "KeyboardInterrupt"), pytest.param("SIGTERM", "Stopped", marks=pytest.mark.slow)],
)
def test_a_signal_while_kernels_compile_or_load_is_heard(tmp_path, name, error):
    "An error raised inside a callback is lost: the signal is held back until the callback is left."
    pytest.importorskip("numba")
    for which in (
        "_object_compiled_hook",
        "_object_getbuffer_hook",
    ):  # the second run loads what the first one compiled
        code = f"import sys; sys.argv = ['', {which!r}, {name!r}]\n{CALLBACK}"
        out, err = run(code, tmp_path / "cache", SUBWORD_NB_QUIET="1")
        assert out.splitlines() == [f"{error} True []", "14"], which
        assert "ignored" not in err


def test_signals_are_held_back_in_the_main_thread_alone():
    "Held signals are given to whoever handled them before, each once, in order; nothing changes in another thread."
    if os.name != "posix":
        pytest.skip("Windows has no such signals")
    heard, old = (
        [],
        {
            n: signal.signal(n, lambda number, frame: heard.append(number))
            for n in (signal.SIGINT, signal.SIGTERM)
        },
    )
    try:
        with jit.signals_deferred():
            with jit.signals_deferred():
                for n in (signal.SIGTERM, signal.SIGINT):
                    signal.raise_signal(n)
                assert heard == []
            assert heard == [signal.SIGTERM, signal.SIGINT]  # a step inside is done: there they can be heard
            signal.raise_signal(signal.SIGINT)
            assert len(heard) == 2
        assert heard == [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: jit.signals_deferred().__enter__()).result()
        signal.raise_signal(signal.SIGINT)
        assert len(heard) == 4
    finally:
        for n, handler in old.items():
            signal.signal(n, handler)


def test_threads_meet_at_a_first_call():
    pytest.importorskip("numba")
    kernel = jit.kernel(lambda x: 2 * x)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(kernel, range(64))) == [2 * x for x in range(64)]


def test_warm_up_imports_every_page(project):
    "So that it finds all kernels; no list of pages is kept by hand."
    code = "import sys, subword_nb; subword_nb.warm_up(); print(*sorted(m for m in sys.modules if m.startswith('subword_nb.')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SUBWORD_NB_JIT": "0"},
    )
    pages = {dotted(path) for path in modules()}
    assert pages <= set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.one_in(3)
def test_the_notice_is_one_line_and_only_for_compiling(tmp_path):
    pytest.importorskip("numba")
    code = "from subword_nb import warm_up; print(len(warm_up()))"
    first = run(code, tmp_path / "cache", SUBWORD_NB_JIT="1")  # in place, and not out of the library
    second = run(code, tmp_path / "cache", SUBWORD_NB_JIT="1")
    assert first[0] == second[0] and int(first[0]) >= 3
    assert first[1].count("\n") == 1 and "compiling" in first[1]
    assert second[1] == ""


INSIDE = """
import gc, sys
import numpy as np
from subword_nb.core.jit import kernel

@kernel
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@kernel
def both(n): return np.arange(n), np.ones(n)

@kernel
def squares(n): return sum([i * i for i in range(n)])

@kernel
def small(i):
    if i > 3: raise ValueError("too large", i)
    return i

@kernel
def tail(a): return a[max(1, min(len(a), 1)):] # max and min are functions that Numba compiles, too

@kernel
def everything(n):
    total = 0.0
    for _ in range(1000):
        a, b = both(n)
        total += a[-1] + b.sum()
    return fibonacci(n), squares(n), small(n - 7), tail(tail(a)), total

for collects in (True, False):
    gc.enable() if collects else gc.disable()
    f, s, i, t, total = everything(10)
    assert (f, s, i, t.tolist(), total) == (55, 285, 3, [*range(2, 10)], 19000.0) and gc.isenabled() == collects
try: everything(11)
except ValueError as e: print(e.args)
"""


def test_kernels_inside_become_part_of_the_one_that_calls_them(tmp_path):
    """Recursion, arrays made and given back, lists and an error in kernels that have no code of their own; compiled, and from the cache."""
    pytest.importorskip("numba")
    (tmp_path / "inside.py").write_text(INSIDE)
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, str(tmp_path / "inside.py")],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "SUBWORD_NB_CACHE": str(tmp_path / "made"),
                "SUBWORD_NB_JIT": "1",
                "SUBWORD_NB_QUIET": "1",
            },
        )
        assert (run.returncode, run.stdout) == (0, "('too large', 4)\n"), run.stderr
        names = {path.name.partition("-")[0] for path in (tmp_path / "made").iterdir()}
        assert names == {"__main__.everything"}


CIRCLES = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from subword_nb.core import jit
from subword_nb.core.jit import kernel

if sys.argv[1] == "other": jit.numba_fits = lambda: False

@kernel
def depth(a, i): return np.int64(0) if i >= len(a) else np.int64(a[i]) + depth(a, i + 1)

@kernel
def steps(a, b):
    s = 0
    for i in range(len(a)):
        x = a[i] * 3 + 1
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            s += 1
            if s % 7 == 3: s ^= b + i
            if s % 11 == 5: s += a[x % len(a)]
    return s

@kernel
def top(a): return depth(a, 0) + steps(a, 3)

@kernel
def other(a): return steps(a, 3) * 2 + depth(a, 0) + steps(a, 1)

@kernel
def even(n): return True if n == 0 else odd(n - 1)

@kernel
def odd(n): return False if n == 0 else even(n - 1)

@kernel
def both(n): return even(n), odd(n)

a = np.arange(1, 20)
b = a.astype(np.int32)
jobs = {"t": (top, a), "T": (top, b), "o": (other, a), "O": (other, b), "b": (both, 7), "B": (both, np.int32(8)), "e": (even, 4)}
def run(job):
    kernel, given = jobs[job]
    assert kernel(given) == kernel.plain(given), job

if sys.argv[1] == "threads":
    with ThreadPoolExecutor(8) as pool: list(pool.map(run, sys.argv[2] * 3))
else:
    for job in sys.argv[2]: run(job)
"""


@pytest.mark.parametrize("ways", ["these", pytest.param("other", marks=pytest.mark.slow)])
def test_kernels_that_call_themselves_or_each_other_share_a_cache(tmp_path, ways):
    "Each is compiled in its own process, then all are loaded into one, in several orders and by threads; also with an older Numba."
    pytest.importorskip("numba")
    (tmp_path / "circles.py").write_text(CIRCLES)
    env = {
        **os.environ,
        "SUBWORD_NB_CACHE": str(tmp_path / "made"),
        "SUBWORD_NB_JIT": "1",
        "SUBWORD_NB_QUIET": "1",
    }
    for how, jobs in [
        (ways, "tO"),
        (ways, "oT"),
        (ways, "Be"),
        (ways, "b"),
        (ways, "tToObBe"),
        (ways, "eBbOoTt"),
        (ways if ways == "other" else "threads", "tToObBe"),
    ]:
        done = subprocess.run(
            [sys.executable, str(tmp_path / "circles.py"), how, jobs], capture_output=True, text=True, env=env
        )
        assert done.returncode == 0, (jobs, done.returncode, done.stderr)
    assert ways == "other" or len({*(tmp_path / "made").iterdir()}) == 7  # all were cached


ANOTHER_NUMBA = {  # what another version may have under no such name, or do in another way
    "lowering": "import numba.core.environment as m; del m.lookup_environment",
    "library": "import numba.core.codegen as m; del m.JITCodeLibrary",
    "passes": "from numba.core.typed_passes import NopythonTypeInference as one; one.__name__ = 'WithLifting'",
    "typing": "import numba.core.types.functions as m; del m.BaseFunction",
    "compiler": "import numba.core.compiler as m; del m.Compiler",
    "events": "import numba.core, sys; del numba.core.event; sys.modules['numba.core.event'] = None",
}
LOADED = "import numba; numba.njit(lambda x: x)(1)"  # all that it loads when it first compiles
ADDS_AND_MULTIPLIES = """
from subword_nb.core import jit

lower = jit.kernel(lambda x: x + 5)
upper = jit.kernel(lambda x: lower(x) * lower(x + 1))
print(upper(1), upper.plain(1), jit.numba_fits())
"""


@pytest.mark.parametrize(
    "difference",
    [
        name if name in ("lowering", "compiler") else pytest.param(name, marks=pytest.mark.slow)
        for name in ANOTHER_NUMBA
    ],
)
def test_another_numba_compiles_in_its_own_way(tmp_path, difference):
    pytest.importorskip("numba")
    done = subprocess.run(
        [sys.executable, "-c", f"{LOADED}\n{ANOTHER_NUMBA[difference]}\n{ADDS_AND_MULTIPLIES}"],
        env={**os.environ, "SUBWORD_NB_CACHE": str(tmp_path), "SUBWORD_NB_JIT": "1", "SUBWORD_NB_QUIET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *found, fits = done.stdout.split()
    assert found == ["42", "42"]
    if difference in ("lowering", "library", "passes", "typing"):
        assert fits == "False"
