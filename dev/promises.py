"""The figures of the promises: how much the tests that keep them tried when they last ran.

    python dev/promises.py run               run every test that nbs/book/promises.json names, and keep its figures
    python dev/promises.py run tests/test_x.py::test_y ...     only these
    python dev/promises.py read FOLDER       take the figures from reports that pytest wrote (--junitxml),
                                             such as those of `SUBWORD_NB_REPORTS=FOLDER bash .ci/run`

A test says what it tried by `record_property(name, number)`. Numbers of a test with parameters are added up;
those whose name ends in `_kib` or `_mib` are not: the largest counts.
The figures go to nbs/book/promises_figures.json, from which the page of promises is made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISES = ROOT / "nbs" / "book" / "promises.json"
FIGURES = ROOT / "nbs" / "book" / "promises_figures.json"
ANY = "not soak"


def named() -> list[str]:
    "The tests that promises name, each once, sorted."
    return sorted({t for p in json.loads(PROMISES.read_text(encoding="utf-8")) for t in p["tests"]})


def outcome(case) -> str:
    "passed, skipped or failed."
    return next(
        (
            word
            for tag, word in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped"))
            if case.find(tag) is not None
        ),
        "passed",
    )


def test_id(case) -> str:
    "The name of a reported test as pytest takes it, without parameters."
    return case.get("classname").replace(".", "/") + ".py::" + case.get("name").split("[")[0]


def add(figures: dict, case) -> None:
    "Add what one reported case tried to the figures of its test."
    figures["cases"] = figures.get("cases", 0) + 1
    for p in case.iter("property"):
        name, value = p.get("name"), int(p.get("value"))
        figures[name] = (
            max(figures.get(name, 0), value)
            if name.endswith(("_kib", "_mib"))
            else figures.get(name, 0) + value
        )


def read(folder: Path) -> dict:
    "Figures of every named test that reports in a folder tell of and that passed in all its cases."
    found, bad, wanted = {}, {}, set(named())
    for report in sorted(folder.glob("*.xml")):
        for case in ET.parse(report).getroot().iter("testcase"):
            name = test_id(case)
            if name not in wanted:
                continue
            if outcome(case) == "passed":
                add(found.setdefault(name, {}), case)
            else:
                bad[name] = outcome(case)
    for name, word in bad.items():
        print(f"{name}: {word} in a case, so its figures stay as they are")
    return {k: v for k, v in found.items() if k not in bad}


def keep(found: dict) -> None:
    "Write the figures: new ones in place of old, none of tests that no promise names."
    old = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    wanted = named()
    new = {k: v for k, v in sorted({**old, **found}.items()) if k in wanted}
    FIGURES.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(found)} tests read, {len(new)} of {len(wanted)} have figures")
    for name in wanted:
        if name not in new:
            print(f"none for {name}")


def run(tests: list[str], folder: Path) -> int:
    "Run tests, a file at a time, with a report for each."
    bad = 0
    for k, file in enumerate(sorted({t.split("::")[0] for t in tests})):
        own = [t for t in tests if t.split("::")[0] == file]
        env = {**os.environ, "PYTEST_ADDOPTS": ""}
        bad |= subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", ANY, f"--junitxml={folder / f'{k}.xml'}", *own],
            cwd=ROOT,
            env=env,
        ).returncode
    return bad


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest="action", required=True)
    sub.add_parser("run").add_argument("tests", nargs="*")
    sub.add_parser("read").add_argument("folder", type=Path)
    args = ap.parse_args()
    if args.action == "read":
        keep(read(args.folder))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bad = run(args.tests or named(), Path(folder))
        keep(read(Path(folder)))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
