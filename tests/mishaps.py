"""What goes wrong outside of a program.

Threads that come at once, forks, full and failing disks. Helpers, and what child processes run (`python
tests/mishaps.py WHAT …`).
"""

import contextlib
import errno
import gc
import hashlib
import json
import multiprocessing
import os
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PATIENCE = int(
    os.environ.get("SUBWORD_NB_PATIENCE", "600")
)  # seconds after which a child that should take one counts as locked up

TEXTS = [
    "",
    " ",
    "low",
    "Lower, lowest!",
    "it's 12 o'clock",
    "Zwölf Boxkämpfer jagen Eva",
    "naïve café",
    "こんにちは世界",
    "你好,世界",
    "the\ttab\n\nand  lines \n",
    "🤗 hugs 👩‍👩‍👧",
    "x" * 70,
    "e\u0301\u0323",
    "a<s>b</s> <unk> [UNK] <|endoftext|>",
    "Привет, мир",
    "नमस्ते दुनिया",
    "def f(x): return x ** 2",
    "\u00a0wide\u3000spaces",
    "-1,234.50",
    "end ",
]
LONG = " ".join(TEXTS * 30)


def run_child(what, *args, timeout=PATIENCE, env=None, python=(), check=True):
    "Run this file in a process of its own; whatever it leaves behind is ended with it. What it printed, as JSON if it is that."
    options = {"start_new_session": True} if hasattr(os, "setsid") else {}
    child = subprocess.Popen(
        [sys.executable, *python, str(TESTS / "mishaps.py"), what, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=TESTS.parent,
        env={
            **os.environ,
            "SUBWORD_NB_QUIET": "1",
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
            **(env or {}),
        },
        **options,
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        out, err = b"", b"it did not end in time"
    finally:
        if options:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()
    if check:
        assert child.returncode == 0, (
            f"{what} {args}: ended with {child.returncode}\n{out.decode()}\n{err.decode()}"
        )
        assert not err.strip(), f"{what} {args}: {err.decode()}"
    return json.loads(out) if out.strip() else None


def in_fork(job, timeout=PATIENCE):
    "What `job()` gives in a fork of this process, as JSON has it; an error if the fork does not end in time, or fails."
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # newer Pythons warn of forks beside threads, which are what is tried here
        out, into = os.pipe()
        child = os.fork()
    if child == 0:
        os.close(out)
        try:
            answer = json.dumps(job()).encode()
            code = 0
        except BaseException:
            answer, code = traceback.format_exc().encode(), 1
        with contextlib.suppress(BaseException):
            os.write(into, answer[:60_000])
        os._exit(code)
    os.close(into)
    due, status = time.monotonic() + timeout, None
    try:
        while status is None and time.monotonic() < due:
            done, found = os.waitpid(child, os.WNOHANG)
            status = found if done else time.sleep(0.005)
        answer = b"".join(iter(lambda: os.read(out, 1 << 16), b"")) if status is not None else b""
    finally:
        os.close(out)
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert status is not None, f"a fork was locked up for {timeout} s"
    assert status == 0, f"a fork ended with {status}: {answer.decode()}"
    return json.loads(answer)


class _Watched:
    "A file whose writes are steps of a disk."

    def __init__(self, file, disk):
        self._file, self._disk = file, disk

    def write(self, data):
        self._disk.step()
        return self._file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *how):
        self._file.close()

    def __iter__(self):
        return iter(self._file)

    def __getattr__(self, name):
        return getattr(self._file, name)


class Disk:
    """A disk that fails from its step `at` on.

    Steps are files opened for writing below a folder, their writes, and `fsync`; renaming fails if it is that step.
    What is done then is `fail`, which raises the error of a full disk if nothing else is given; removing still works."""

    def __init__(self, folder, at, fail=None, renames=True):
        self.folder = str(folder)
        self.at = at
        self.steps = 0
        self.fail = fail or self._full
        self.renames = renames
        self.failed = False

    def _full(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def step(self, once=False):
        self.steps += 1
        if self.steps == self.at or self.steps > self.at and not once:
            self.failed = True
            self.fail()

    def __enter__(self):
        import builtins
        import io

        self.patched = [(builtins, "open"), (io, "open"), (os, "fsync"), (os, "replace")]
        opens, _, fsync, replace = (getattr(home, name) for home, name in self.patched)
        if accessor := getattr(
            pathlib, "_normal_accessor", None
        ):  # Python 3.10's paths keep functions of their own
            self.patched += [(accessor, "open"), (accessor, "replace")]
        self.old = [getattr(home, name) for home, name in self.patched]

        def opened(file, mode="r", *args, **options):
            ours = (
                isinstance(file, (str, os.PathLike))
                and os.fspath(file).startswith(self.folder)
                and any(c in mode for c in "wxa+")
            )
            if ours:
                try:
                    self.step()
                except OSError as e:
                    raise OSError(e.errno, e.strerror, os.fspath(file)) from None  # `open` says a name
            found = opens(file, mode, *args, **options)
            return _Watched(found, self) if ours else found

        def synced(handle):
            self.step()
            return fsync(handle)

        def replaced(a, b, **options):
            if self.renames:
                self.step(once=True)
            return replace(a, b, **options)

        for (home, name), new in zip(self.patched, (opened, opened, synced, replaced, opened, replaced)):
            setattr(home, name, new)
        return self

    def __exit__(self, *how):
        for (home, name), old in zip(self.patched, self.old):
            setattr(home, name, old)


@contextlib.contextmanager
def small_disk(folder, size):
    "A disk of so many bytes at a folder, or None where this process may mount none."
    done = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
        )
        if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount")
        else None
    )
    if done is None or done.returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def ballast(folder, left):
    "Fill a disk but for so many bytes; the file that does it."
    stat = os.statvfs(folder)
    path = Path(folder, "ballast")
    path.write_bytes(bytes(max(0, stat.f_bavail * stat.f_frsize - left)))
    return path


def load(name):
    "A tokenizer by its path, or by the name of a published encoding and its file."
    from subword_nb import Tokenizer

    path = Path(name)
    options = {}
    if path.name == "qwen.tiktoken":
        options = {"encoding": "qwen2"}
    elif path.suffix == ".tiktoken" and path.stem in ("cl100k_base", "o200k_base", "p50k_base", "r50k_base"):
        options = {"encoding": path.stem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Tokenizer.load(path, **options)


def works(tok):
    "Name → something that is done with a tokenizer, and what comes of it."
    from subword_nb.pipeline.encoder import encode_general

    ids = encode_general(tok, "low and lower")
    return {
        "short": lambda: [tok.encode(t) for t in TEXTS],
        "bare": lambda: [tok.encode(t, add_special_tokens=False) for t in TEXTS],
        "none allowed": lambda: [tok.encode(t, allowed_special=()) for t in TEXTS],
        "long": lambda: tok.encode(LONG),
        "array": lambda: tok.encode_array(LONG).tolist(),
        "batch": lambda: tok.encode_batch(TEXTS * 3).tolist(),
        "threads": lambda: tok.encode_batch([LONG, *TEXTS, LONG], threads=2).tolist(),
        "pieces": lambda: [tok.tokenize(t) for t in TEXTS[:12]],
        "places": lambda: [[(e.ids, e.offsets) for e in [tok.align(t)]] for t in TEXTS],
        "long places": lambda: [(e.ids, e.offsets[::7], e.pieces[::11]) for e in [tok.align(LONG)]],
        "text": lambda: [
            tok.decode(ids),
            [tok.decode(tok.encode(t), skip_special_tokens=True) for t in TEXTS],
        ],
        "stream": lambda: [piece for s in [tok.stream()] for piece in [*map(s.step, ids), s.finish()]],
    }


def digest(found):
    "A number for an answer."
    return hashlib.sha256(json.dumps(found, default=list).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def answers(tok, first=0):
    "The numbers of all answers, asked for in an order that begins with the one of that number."
    todo = list(works(tok).items())
    first %= len(todo)
    return {name: digest(work()) for name, work in todo[first:] + todo[:first]}


def ids_only(tok):
    "What every way of encoding must agree upon."
    from subword_nb.pipeline.encoder import encode_general

    slow = [encode_general(tok, t) for t in TEXTS]
    assert [tok.encode(t) for t in TEXTS] == slow
    assert tok.encode_batch(TEXTS * 200).tolist() == slow * 200
    assert tok.encode(LONG) == tok.encode_array(LONG).tolist() == encode_general(tok, LONG)


def race(names, threads=8):
    "Threads that come at once to tokenizers nobody has used; then one alone, with tokenizers of its own."
    sys.setswitchinterval(1e-5)
    for name in names:
        race_for(name, threads)
    return len(names)


def race_for(name, threads):
    "The race for one tokenizer."
    tok, start = load(name), threading.Barrier(threads)
    found, wrong = [None] * threads, []

    def work(k):
        try:
            start.wait(PATIENCE)
            found[k] = answers(tok, k * 3)
        except BaseException:
            wrong.append(traceback.format_exc())

    team = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(threads)]
    for t in team:
        t.start()
    for t in team:
        t.join(PATIENCE)
    assert not any(t.is_alive() for t in team), f"{name}: threads are locked up"
    assert not wrong, f"{name}: {wrong[0]}"
    alone = answers(load(name))
    assert all(f == alone for f in found), (
        f"{name}: threads found {[k for f in found for k in alone if f[k] != alone[k]]} otherwise"
    )
    ids_only(tok)


def forks(names, times, seed):
    "Forks at random moments, while a thread uses tokenizers for the first time, and then while four of them go on."
    sys.setswitchinterval(1e-5)
    return sum(forks_for(name, times, 0.1 if k else 0.5, random.Random(seed)) for k, name in enumerate(names))


def forks_for(name, times, within, rng):
    "The forks for one tokenizer, within so many seconds; how many."
    found, stop, warm = [], threading.Event(), load(name)

    def work():
        while not stop.is_set():
            answers(load(name), rng.randrange(12))
            answers(warm, rng.randrange(12))

    team = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for t in team:
        t.start()
    begun = time.monotonic()
    for wait in sorted(rng.random() ** 2 * within for _ in range(times)):
        time.sleep(max(0.0, begun + wait - time.monotonic()))
        found.append(in_fork(lambda: answers(warm, 5)))
        found.append(in_fork(lambda: answers(load(name), rng.randrange(12))))
        assert in_fork(gc.isenabled), f"{name}: a fork has no garbage collector"
    stop.set()
    for t in team:
        t.join(PATIENCE)
    assert not any(t.is_alive() for t in team), f"{name}: threads are locked up"
    alone = answers(load(name))
    assert all(f == alone for f in found), (
        f"{name}: forks found {[k for f in found for k in alone if f[k] != alone[k]]} otherwise"
    )
    return 3 * times


def _spawned(blob, into):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        into.put({name: answers(pickle.loads(tok)) for name, tok in blob.items()})


def spawn(names):
    "The same answers in a spawned process, which gets the tokenizers pickled, used and unused."
    context = multiprocessing.get_context("spawn")
    used = {name: load(name) for name in names}
    here = {name: answers(tok) for name, tok in used.items()}
    into = context.Queue()
    for toks in (used, {name: load(name) for name in names}):
        child = context.Process(
            target=_spawned, args=({name: pickle.dumps(tok) for name, tok in toks.items()}, into)
        )
        child.start()
        try:
            assert into.get(timeout=2 * PATIENCE) == here
        finally:
            child.join(10)
            child.kill()
    return len(names)


def resident():
    "KiB of memory that this process holds, after what can be given back has been."
    import ctypes

    for _ in range(3):
        gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def small_memories():
    "Limits that a short test reaches, so that memories are filled and begun anew."
    from subword_nb.pipeline.thresholds import SIZES
    from subword_nb.formats import sentencepiece_models

    sentencepiece_models.CACHE_LIMIT = 1 << 10
    SIZES.cached_spans = SIZES.placed_spans = SIZES.cached_slices = 1 << 10
    SIZES.aligned_spans, SIZES.aligned_pieces = 1 << 12, 1 << 10
    with contextlib.suppress(ImportError):
        from subword_nb.core.span_cache import SpanTable

        SpanTable.__init__.__defaults__ = (12, 1 << 20)


def some_text(rng):
    "A short text, of words that come again and words that never do."
    return " ".join(
        rng.choice(
            (
                "low",
                "lower",
                "hugs",
                "naïve",
                "你好",
                "12",
                "it's",
                f"w{rng.getrandbits(40):x}",
                str(rng.getrandbits(30)),
            )
        )
        for _ in range(rng.randrange(1, 7))
    )


def grow(name, n):
    "Many short texts, all different, through all ways: (texts, KiB more at the end than after a quarter of them)."
    small_memories()
    tok, rng, at_first = load(name), random.Random(n), None
    with contextlib.suppress(ImportError):
        import numba  # noqa: F401

        tok.encode_array(LONG * 200)  # loads the kernels
    for k in range(n + n // 4):
        ids = tok.encode(some_text(rng))
        if k % 16 == 0:
            tok.decode(ids), tok.align(some_text(rng)), tok.tokenize(some_text(rng))
        if k % 512 == 0:
            (
                tok.encode_batch([some_text(rng) for _ in range(300)], threads=2),
                tok.align(" ".join(some_text(rng) for _ in range(100))),
            )
        if k == n // 4:
            at_first = resident()
    return n, resident() - at_first


def cycles(names, n):
    "Tokenizers that are loaded, used and forgotten: (cycles, KiB more at the end than after a quarter of them, threads that are left)."
    at_first = None
    for k in range(n + n // 4):
        for name in names:
            tok = load(name)
            (
                tok.encode("low lower"),
                tok.encode_array(LONG),
                tok.align(LONG).ids,
                tok.decode(tok.encode(TEXTS[5])),
                pickle.loads(pickle.dumps(tok)).encode("low"),
            )
        del tok
        if k == n // 4:
            at_first = resident()
    return n, resident() - at_first, threading.active_count() - 1


if __name__ == "__main__":
    warnings.simplefilter("error")
    what, *args = sys.argv[1:]
    print(
        json.dumps(
            {"race": race, "forks": forks, "spawn": spawn, "grow": grow, "cycles": cycles}[what](
                *map(json.loads, args)
            )
        )
    )
