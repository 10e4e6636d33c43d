"""Fuzz the targets.

`python tests/fuzz/run.py [targets] --seconds N`; without names all of them, each in a process of its own.

Inputs come from atheris, which is led by the lines that they reach, where it is installed (the extra `fuzz`), else from
a mutating loop over the seeds.
An input fails if it raises what is not documented, takes a processor longer than ten seconds (or a minute goes by), or
needs more memory than 40 times its size and 32 MiB; it is saved in the folder --crashes.
"""

import argparse
import contextlib
import faulthandler
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from io import FileIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEEDS = HERE / "seeds"
LIMIT = 10  # seconds for an input
TIMES = 40  # bytes of memory for each byte of an input …
BESIDE = 32 << 20  # … and bytes besides
ADDRESSES = 6 << 30  # bytes of address space beyond the start's
HANG = 124  # exit code of a child that had to be ended


class LimitExceeded(Exception):
    "An input needed more memory than it may."


def seeds_of(name: str) -> list[bytes]:
    "The seeds of a target, in the order of their names."
    return [p.read_bytes() for p in sorted((SEEDS / name).glob("*"))]


def resident() -> int:
    "Bytes of memory in use."
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    "The most bytes in use since `mark`."
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))


def mark():
    "Begin to look for the most bytes anew."
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def measures() -> bool:
    "Does this system tell what a process needs?"
    try:
        mark()
        return peak() > 0
    except (OSError, StopIteration):
        return False


class Guard:
    "Runs a target on inputs, within its limits."

    def __init__(self, name: str, run, folder: Path):
        self.name = name
        self.run = run
        self.folder = folder
        self.inputs = 0
        self.longest = 0.0
        self.most = 0.0
        self.measured = measures()
        self.current = FileIO(folder / "current", "wb")  # unbuffered; open until the process ends
        self.patience = 1
        self.clocks = {}
        if hasattr(signal, "setitimer"):
            self.clocks = {signal.ITIMER_PROF: LIMIT, signal.ITIMER_REAL: 6 * LIMIT}
        for number in (signal.SIGPROF, signal.SIGALRM) if self.clocks else ():
            faulthandler.register(number, chain=True)  # the stack, and then the default: the process ends

    def __call__(self, data: bytes):
        "Run the target; what needed too much is run again, since kernels are compiled and pages loaded once."
        try:
            self.once(data)
        except LimitExceeded:
            self.once(data)

    def once(self, data: bytes):
        self.current.seek(0)
        self.current.truncate()
        self.current.write(data)
        if self.measured:
            mark()
            before = resident()
        for clock, seconds in self.clocks.items():
            signal.setitimer(clock, seconds * self.patience)
        start = time.process_time()
        try:
            self.run(data)
        finally:
            for clock in self.clocks:
                signal.setitimer(clock, 0)
        self.inputs, self.longest = self.inputs + 1, max(self.longest, time.process_time() - start)
        if self.measured and self.inputs > 1:  # the first one loads pages and kernels
            used = peak() - before
            if used > TIMES * len(data) + BESIDE:
                raise LimitExceeded(
                    f"{used:,} bytes for an input of {len(data):,}; {TIMES * len(data) + BESIDE:,} are allowed"
                )
            self.most = max(self.most, used / (TIMES * len(data) + BESIDE))

    def tell(self, done: bool = False):
        "How far it is, for the parent; its file is replaced at once."
        progress = {
            "inputs": self.inputs,
            "longest": round(self.longest, 3),
            "memory": round(self.most, 3),
            "done": done,
        }
        (self.folder / ".counted").write_text(json.dumps(progress))
        os.replace(self.folder / ".counted", self.folder / f"{self.name}.counted")


def limited():
    "Addresses beyond these are refused, so that a wrong length becomes a MemoryError."
    try:
        import resource

        with open("/proc/self/statm") as f:
            now = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        pass


def prepared(name: str, folder: Path):
    "The target's guard, its kernels and pages loaded, and the seeds."
    import targets

    guard, seeds = Guard(name, targets.TARGETS[name], folder), seeds_of(name)
    guard.tell()
    for data in [b"", *seeds[:40]]:
        targets.TARGETS[name](data)
    return guard, seeds


def own_loop(name: str, seconds: float, seed: int, folder: Path, reached: int):
    "Mutate the seeds."
    from inputs import mutated

    guard, seeds = prepared(name, folder)
    rng, pool = random.Random(zlib.crc32(name.encode()) + seed + 7919 * reached), seeds or [b""]
    end, reported = time.monotonic() + seconds, 0.0
    for data in [b"", *seeds] if not reached else []:
        guard(data)
    while time.monotonic() < end:
        guard(
            mutated(rng.choice(pool), rng, seeds) if rng.random() < 0.9 else rng.randbytes(rng.randrange(400))
        )
        if time.monotonic() > reported + 1:
            reported = time.monotonic()
            guard.tell()
    guard.tell(done=True)


def page_modules() -> tuple[list[str], list[str]]:
    "Pages without kernels, and with: Numba would meet the instructions that count lines."
    home = Path(importlib.util.find_spec("subword_nb").origin).parent
    found = {
        ".".join(p.relative_to(home.parent).with_suffix("").parts): "kernel" in p.read_text(encoding="utf-8")
        for p in sorted(home.rglob("*.py"))
        if not p.stem.startswith("_")
    }
    return [n for n, yes in found.items() if not yes], [n for n, yes in found.items() if yes]


def atheris_loop(name: str, seconds: float, seed: int, folder: Path):
    "Let atheris look for inputs that reach new lines."
    import atheris
    from inputs import mutated

    plain, compiled = page_modules()
    with atheris.instrument_imports(include=["subword_nb"], exclude=compiled):
        import targets  # noqa: F401

        for module in plain:
            with contextlib.suppress(ImportError):  # an extra that is not installed
                importlib.import_module(module)
    guard, seeds = prepared(name, folder)
    corpus, rng = folder / "corpus", random.Random(seed)
    corpus.mkdir(exist_ok=True)
    for k, data in enumerate(seeds):
        (corpus / f"seed{k}").write_bytes(data)

    def one(data: bytes):
        guard(data)
        if guard.inputs % 50 == 0:
            guard.tell()

    def mutator(data, size, number):
        rng.seed(number)
        return mutated(data, rng, seeds)[:size] if number % 2 else atheris.Mutate(data, size)

    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-max_total_time={max(1, int(seconds))}",
            f"-seed={seed + 1}",
            "-timeout=3600",
            "-rss_limit_mb=0",
            "-verbosity=0",
            "-max_len=16384",
            "-len_control=20",
            f"-artifact_prefix={folder}/",
        ],
        one,
        custom_mutator=mutator,
    )
    atheris.Fuzz()


def child(names: list[str], engine: str, seconds: float, seed: int, folder: Path, reached: int):
    "One process: it ends with the last target, or with the first input that fails."
    try:
        faulthandler.enable()
        limited()
        for k, name in enumerate(names):
            if engine == "atheris":
                atheris_loop(name, seconds, seed + reached, folder)
            else:
                own_loop(name, seconds, seed, folder, reached * (k == 0))
    except BaseException as e:
        if isinstance(e, (SystemExit, KeyboardInterrupt)):
            raise
        (folder / "fault").write_text(
            "".join(traceback.format_exception(e)), encoding="utf-8", errors="backslashreplace"
        )
        os._exit(3)


def once_more(name: str, folder: Path):
    "Run the input that a child ended with, first with more patience: kernels are compiled then."
    import targets

    data, guard = (folder / "current").read_bytes(), Guard(name, targets.TARGETS[name], folder)
    guard.patience = 6
    with contextlib.suppress(LimitExceeded):
        guard.once(data)
    guard.patience = 1
    guard.once(data)


def ended(
    names: list[str], engine: str, seconds: float, seed: int, place: Path, reached: int, checked: bool
) -> int:
    "Run a child to its end, or end it; its exit code."
    env = (
        os.environ
        | ({"SUBWORD_NB_JIT": "check"} if checked else {})
        | {
            "PYTHONPATH": os.pathsep.join(
                [str(HERE), str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
            ),
            "SUBWORD_NB_QUIET": "1",
            "TMPDIR": str(place),
        }
    )  # what a child leaves when it is ended goes with its folder
    with open(place / "said", "wb") as said:
        process = subprocess.Popen(
            [
                sys.executable,
                __file__,
                *names,
                "--child",
                str(place),
                "--engine",
                engine,
                "--seconds",
                str(seconds),
                "--seed",
                str(seed),
                "--reached",
                str(reached),
            ],
            env=env,
            stdout=said,
            stderr=said,
            cwd=place,
        )
        try:
            return process.wait(len(names) * seconds + 600)
        except subprocess.TimeoutExpired:
            return HANG
        finally:
            process.kill()
            process.wait()


def fuzz(
    names: list[str],
    seconds: float,
    engine: str = "own",
    seed: int = 0,
    crashes: Path | None = None,
    checked: bool = False,
    most: int = 20,
) -> dict:
    "Fuzz targets, with the own engine one after the other in one process; what was tried of each, and what failed."
    tried = {
        name: {"engine": engine, "checked": checked, "inputs": 0, "longest": 0.0, "memory": 0.0, "faults": []}
        for name in names
    }
    left, end, reached = list(names), None, 0
    while left:
        name = left[0]
        end = time.monotonic() + seconds if end is None else end
        with tempfile.TemporaryDirectory(prefix="subword-nb-fuzz-") as place:
            place = Path(place)
            code = ended(
                [name] if engine == "atheris" or reached else left,
                engine,
                max(1.0, end - time.monotonic()) if reached else seconds,
                seed,
                place,
                reached,
                checked,
            )
            progress = {n: json.loads(p.read_text()) for n in left if (p := place / f"{n}.counted").exists()}
            for n, counted in progress.items():
                tried[n]["inputs"] += counted["inputs"]
                tried[n]["longest"], tried[n]["memory"] = (
                    max(tried[n]["longest"], counted["longest"]),
                    max(tried[n]["memory"], counted["memory"]),
                )
            done = [n for n in progress if progress[n]["done"] or code == 0]
            name = next((n for n in left if n not in done), None)
            slow = code < 0 and -code in (getattr(signal, "SIGPROF", None), getattr(signal, "SIGALRM", None))
            if (
                code
                and name
                and not (slow and ended([name], "again", 60, seed, place, reached, checked) == 0)
            ):
                tried[name]["faults"].append(fault_of(name, place, code, crashes))
            left = [n for n in left if n not in done]
            again = (
                code
                and name
                and name in progress
                and name == left[0]
                and len(tried[name]["faults"]) < most
                and (reached == 0 or time.monotonic() < end)
            )
            end, reached = (
                (end if reached else time.monotonic() + seconds, reached + 1) if again else (None, 0)
            )
            if code and not again:
                left.remove(name)
    return tried


def fault_of(name: str, place: Path, code: int, crashes: Path | None) -> dict:
    "What is known of a fault; its input is saved."
    data = (place / "current").read_bytes() if (place / "current").exists() else b""
    why = (
        (place / "fault").read_text(encoding="utf-8")
        if (place / "fault").exists()
        else f"exit code {code}\n" + (place / "said").read_text(encoding="utf-8", errors="replace")[-3000:]
    )
    saved = None
    if crashes is not None:
        crashes.mkdir(parents=True, exist_ok=True)
        saved = crashes / f"{name}-{zlib.crc32(data):08x}"
        saved.write_bytes(data)
        saved.with_suffix(".txt").write_text(why, encoding="utf-8")
    return {"why": why.strip()[-2000:], "saved": str(saved), "input": data[:200].hex()}


def main(argv=None) -> int:
    sys.path.insert(0, str(HERE))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument(
        "--engine",
        choices=("auto", "atheris", "own", "again"),
        default="auto",
        help="where inputs come from (again: the last one, in a child)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--checked", action="store_true", help="kernels look at every place before they read or write it"
    )
    parser.add_argument(
        "--crashes",
        type=Path,
        default=Path(tempfile.gettempdir()) / "subword-nb-crashes",
        help="where inputs that fail are saved",
    )
    parser.add_argument("--list", action="store_true", help="only the names of the targets")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--reached", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    engine = args.engine
    if engine == "auto":
        engine = "atheris" if importlib.util.find_spec("atheris") else "own"
    if args.child and engine == "again":
        once_more(args.targets[0], args.child)
        return 0
    if args.child:
        child(args.targets, engine, args.seconds, args.seed, args.child, args.reached)
        return 0
    names = subprocess.run(
        [sys.executable, "-c", "import targets; print(*targets.TARGETS)"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent.parent)])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    if invalid := set(args.targets) - set(names):
        parser.error(f"{', '.join(sorted(invalid))}: no such target; there are {', '.join(names)}")
    if args.list:
        print("\n".join(names))
        return 0
    bad = 0
    for name in args.targets or names:
        found = fuzz([name], args.seconds, engine, args.seed, args.crashes, args.checked)[name]
        print(
            f"{name:24} {found['inputs']:>10,} inputs, the slowest {found['longest']:.2f} s, at most "
            f"{found['memory']:.0%} of the memory allowed, {len(found['faults'])} faults",
            flush=True,
        )
        for fault in found["faults"]:
            print("    " + fault["why"].splitlines()[-1][:300], "->", fault["saved"], flush=True)
        bad += len(found["faults"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
