"""Execute notebooks, each in a process of its own.

    python dev/nbs.py run [nbs/bpe/00_reference.ipynb ...]      execute, store the outputs, clean (all notebooks when none is named)
    python dev/nbs.py check [nbs/bpe/00_reference.ipynb ...]    execute a copy and compare its outputs with the stored ones
    python dev/nbs.py test [nbs/bpe/00_reference.ipynb ...]     execute without looking at outputs, cells flagged in `tst_flags` left out

`check` compares under one Python only (OUTPUTS_PYTHON): some outputs show that Python's own prose or messages.
Notebooks with `skip_exec: true` in their front matter are left alone.
"""

import argparse
import configparser
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from subword_nb.core.processes import cpu_count

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
OUTPUTS_PYTHON = "3.11"
TIMEOUT = 1200


def all_notebooks() -> list[Path]:
    "Every notebook of the project, in reading order."
    return sorted(
        p for p in NBS.rglob("*.ipynb") if not any(q.startswith((".", "_")) for q in p.relative_to(NBS).parts)
    )


def skipped(path: Path) -> bool:
    "Does the notebook's front matter say `skip_exec: true`?"
    if "skip_exec" not in path.read_text(encoding="utf-8"):
        return False
    from fastcore.basics import str2bool
    from nbdev.frontmatter import FrontmatterProc
    from nbdev.process import NBProcessor

    return str2bool(
        getattr(NBProcessor(path, procs=FrontmatterProc, process=True).nb, "frontmatter_", {}).get(
            "skip_exec", False
        )
    )


def setting(name: str) -> set[str]:
    "The words of an entry of settings.ini."
    parser = configparser.ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return set(parser["DEFAULT"].get(name, "").split())


def skip_flags() -> set[str]:
    "Directives that keep a cell out of a test run."
    return setting("tst_flags")


def kernel_module(nb) -> str:
    "The module of a notebook with kernels, if its cells are exported as they are: by this name they are found in the library."
    sources = [cell.source for cell in nb.cells if cell.cell_type == "code"]
    if not any("\n@entry(" in source for source in sources):
        return ""
    name = re.search(r"^#\| default_exp (\S+)", "\n".join(sources), re.M)[1]
    written = ROOT.joinpath("subword_nb", *name.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    exported = [s for s in sources if re.search(r"^#\| ?export", s, re.M) and "from subword_nb" not in s]
    cells = [re.sub(r"^#\|.*\n", "", s, flags=re.M).strip() for s in exported]
    return f"subword_nb.{name}" if all(cell in written for cell in cells) else ""


def compare_at_once():
    "`test_eq` looks at each element of a list or of bytes in Python, some 10 µs each; what is equal for Python needs no second look."
    import fastcore.test

    elementwise = fastcore.test.equals

    def equals(a, b):
        try:
            if type(a) is type(b) and (a == b) is True:  # for arrays this is an array
                return True
        except ValueError:  # lists of arrays
            pass
        return elementwise(a, b)

    fastcore.test.equals = equals


def execute(path: Path, flags: set[str] = frozenset()) -> tuple[str, str]:
    "The cleaned notebook after running it from top to bottom, cells with `flags` left out, and the traceback if a cell failed."
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("MPLBACKEND", "agg")
    os.environ.setdefault("COLUMNS", "100")
    os.environ.setdefault("SUBWORD_NB_BUILD", "0")  # kernels of a changed page are compiled in place
    from execnb.nbio import nb2str, read_nb
    from execnb.shell import CaptureShell
    from nbdev.clean import clean_nb
    from nbdev.process import extract_directives

    compare_at_once()
    nb = read_nb(path)

    def skip(cell) -> bool:
        if cell.cell_type != "code":
            return True
        found = extract_directives(cell, remove=False) or {}
        if found.get("eval:", [""])[0].lower() == "false" or flags & found.keys():
            return True
        cell.outputs = []
        return False

    shell = CaptureShell(path)
    if module := kernel_module(nb):
        shell.user_ns["__name__"] = module
    old = Path.cwd()
    os.chdir(path.parent)
    try:
        shell.run_all(nb, exc_stop=True, preproc=skip)
    except Exception:
        return "", shell.prettytb(fname=path)
    finally:
        os.chdir(old)
    clean_nb(nb, allowed_cell_metadata_keys=setting("allowed_cell_metadata_keys"))
    return nb2str(nb), ""


def is_picture(kind: str, value) -> bool:
    "Is an output a plot, whose lines may depend on measured times and on the version of Matplotlib?"
    return kind.startswith("image/png") or kind == "text/html" and '<svg class="plot"' in "".join(value)


def comparable(text: str) -> list:
    "What must agree between a stored and a fresh run: sources and outputs; pictures only by their presence."
    cells = []
    for c in json.loads(text)["cells"]:
        outs = []
        for o in c.get("outputs", []):
            data = {k: ("picture" if is_picture(k, v) else v) for k, v in o.get("data", {}).items()}
            outs.append((o["output_type"], o.get("name"), o.get("text"), sorted(data.items())))
        cells.append((c["cell_type"], "".join(c["source"]), outs))
    return cells


def first_difference(stored: list, fresh: list) -> str:
    "Where two runs part, in words."
    for i, (a, b) in enumerate(zip(stored, fresh, strict=False)):  # one run may have more cells
        if a != b:
            return f"cell {i}:\n{a[1]}\n--- stored output\n{a[2]}\n--- output of this run\n{b[2]}"
    return f"{len(stored)} stored cells, {len(fresh)} now"


def one(action: str, path: Path) -> str:
    "Do `action` to one notebook in this process; returns what is wrong, if anything."
    text, problem = execute(path, skip_flags() if action == "test" else set())
    if problem or action == "test":
        return problem
    stored = path.read_text(encoding="utf-8")
    if action == "check":
        a, b = comparable(stored), comparable(text)
        return (
            ""
            if a == b
            else f"stored outputs are stale (run `python dev/nbs.py run {path.relative_to(ROOT)}`)\n{first_difference(a, b)}"
        )
    if text != stored:
        path.write_text(text, encoding="utf-8")
    return ""


WARM = [
    "execnb.nbio",
    "execnb.shell",
    "nbdev.clean",
    "nbdev.process",
    "nbdev.showdoc",
    "numpy",
    "numba",
    "matplotlib.pyplot",
]


@cache
def _processes():
    "How notebooks get their processes: forked from one that has imported what nearly all need, where the system can do that."
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM)
    return context


def _child(action: str, path: Path, env: dict, log: str):
    "Do `action` to a notebook in the process it was given; what is wrong goes to `log`, and so does all that the process prints."
    os.environ.clear()
    os.environ.update(env)
    with open(log, "w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    with open(os.devnull, encoding="utf-8") as sys.stdin:
        problem = one(action, path)
    print(problem, end="", flush=True)
    os._exit(1 if problem else 0)  # threads that a notebook left behind must not keep the process


def apart(action: str, path: Path) -> tuple[str, float]:
    "`one` in a process of its own: (what is wrong, seconds). IPython takes `__main__` over, and a crash must not end the others."
    start = time.perf_counter()
    # QUIET: whether kernels are compiled or found in a cache must not show in outputs
    env = {
        **os.environ,
        "IN_TEST": "1",
        "PYTHONIOENCODING": "utf-8",
        "SUBWORD_NB_QUIET": "1",
        "SUBWORD_NB_BUILD": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        child = _processes().Process(target=_child, args=(action, path, env, str(log)))
        child.start()
        child.join(TIMEOUT)
        if child.exitcode is None:
            child.kill()
            child.join()
            problem = f"still running after {TIMEOUT} s"
        elif child.exitcode:
            said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
            problem = said or f"ended with code {child.exitcode} and no message"
        else:
            problem = ""
    return problem, time.perf_counter() - start


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("action", choices=["run", "check", "test"])
    ap.add_argument("notebooks", nargs="*", type=Path)
    args = ap.parse_args()
    paths = [p.resolve() for p in args.notebooks] or all_notebooks()
    if args.action == "check" and f"{sys.version_info.major}.{sys.version_info.minor}" != OUTPUTS_PYTHON:
        print(
            f"not compared: the stored outputs are those of Python {OUTPUTS_PYTHON}, this is {sys.version.split()[0]}"
        )
        return 0
    failed = 0
    with ThreadPoolExecutor(max_workers=cpu_count()) as pool:
        skips = [skipped(p) for p in paths]
        results = pool.map(lambda p, skip: ("", 0.0) if skip else apart(args.action, p), paths, skips)
        for path, skip, (problem, secs) in zip(paths, skips, results, strict=True):
            result = "ok"
            if skip:
                result = "skip"
            elif problem:
                result = "FAILED"
            print(f"{result:6} {secs:6.1f} s  {path.relative_to(ROOT)}", flush=True)
            if problem:
                failed += 1
                print(problem, flush=True)
    print(f"{len(paths) - failed - sum(skips)} passed, {failed} failed, {sum(skips)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
