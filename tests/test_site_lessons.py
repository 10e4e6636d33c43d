"""Lessons that run in their pages: their cells need no compiled module, their stored answers are right, and others get a hint."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from notebooks import dev_module

ROOT = Path(__file__).resolve().parent.parent
DEV = ROOT / "dev"
NEEDS_NUMPY = {"pipeline/07_engine.ipynb": 2}  # cells that say so in the page

AS_IN_THE_PAGE = """
import json, sys
for name in ("numpy", "numba", "llvmlite", "regex", "tqdm", "typer", "matplotlib", "IPython", "fastcore"):
    sys.modules[name] = None
import lesson
lesson.begin()
print(json.dumps([json.loads(getattr(lesson, what)(*args)) for what, *args in json.load(sys.stdin)]))
"""


def in_the_page(*questions: tuple) -> list[dict]:
    "What the worker's Python answers to questions such as ('run', source)."
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(DEV / "docsite" / "playground")])}
    done = subprocess.run(
        [sys.executable, "-c", AS_IN_THE_PAGE],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=env,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def lessons():
    "The module that writes the cells of lessons."
    return dev_module("docsite_lessons")


def test_what_a_cell_shows():
    def text(source):
        return in_the_page(("run", source))[0]

    assert text("1 + 1") == {"ok": True, "shows": [{"kind": "text", "data": "2"}]}
    assert text("#| hide\nprint('a')\n'b'")["shows"] == [
        {"kind": "text", "data": "a"},
        {"kind": "text", "data": "'b'"},
    ]
    assert text("x = 3")["shows"] == []
    (drawn,) = text("from subword_nb.core.draw import draw_tokens\ndraw_tokens(['a', 'b'])")["shows"]
    assert drawn["kind"] == "html" and "<" in drawn["data"]
    for source, said in [
        ("a = 1\nb = c", "NameError: name 'c' is not defined (line 2)"),
        ("a = (", "SyntaxError: '(' was never closed (line 1)"),
        ("import numpy", "This cell needs numpy, which this page does not have. It runs in JupyterLab."),
        ("assert 1 == 2, 'one is not two'", "one is not two"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1)"),
    ]:
        assert text(source) == {"ok": False, "shows": [{"kind": "error", "data": said}]}
    assert len(text("'x' * 100_000")["shows"][0]["data"]) < 21_000


def test_an_answer_is_right_if_its_check_was_called_and_agreed():
    check = "def check_it(n):\n    assert n > 1, 'n is too small'\n    test_eq(n, 2)"
    found = in_the_page(
        ("run", "from fastcore.test import test_eq, test_fail, test_close, test_ne"),
        ("run", check),
        *(
            ("check", source, "check_it")
            for source in ("check_it(2)", "check_it(1)", "check_it(3)", "2", "check_it(n)")
        ),
        ("run", "check_it.__name__"),
    )[2:]
    assert [(f["ok"], f.get("hint")) for f in found] == [
        (True, ""),
        (False, "Not yet: n is too small"),
        (False, "Not yet: this is not what the check computes."),
        (False, "Call check_it with your answer."),
        (False, "NameError: name 'n' is not defined (line 1)"),
        (True, None),
    ]


def test_cells_that_only_test_are_told_from_those_that_others_need(lessons):
    import ast

    def only_tests(source, *later):
        return lessons.only_tests(ast.parse(source), [ast.parse(x) for x in later])

    assert only_tests("test_eq(f(1), 2)\nassert f(2) == 3")
    assert only_tests("for i in range(3):\n    n = f(i)\n    test_eq(n, i)", "n = 1\nn")
    assert only_tests("for n in range(3):\n    test_eq(n, n)", "def f(n):\n    return n")
    assert not only_tests("n = f(1)\ntest_eq(n, 2)", "m = 1", "n + m")
    assert not only_tests("tok.pad = 1\ntest_eq(tok.pad, 1)")
    assert not only_tests("tok.add(1)\ntest_eq(tok.size, 1)")
    assert not only_tests("from a import b\ntest_eq(b, 1)")


@pytest.mark.slow
def test_lessons_run_without_compiled_modules(lessons):
    "The cells in their order, without those that only test; then each exercise with its stored answer, and with another."
    for name in lessons.LESSONS:
        cells = lessons.lesson_cells(ROOT / "nbs" / name)
        needed = [c for c in cells if not c["tests"]]
        exercises = [c for c in cells if "check" in c]
        assert exercises
        found = in_the_page(
            *(("run", c["source"]) for c in needed),
            *(("check", cells[cells.index(c) + 1]["source"], c["check"]) for c in exercises),
            *(("check", c["call"], c["check"]) for c in exercises),
        )
        answers, dots = found[len(needed) : -len(exercises)], found[-len(exercises) :]
        failed = [f["shows"][-1]["data"] for f in found[: len(needed)] if not f["ok"]]
        assert len(failed) == NEEDS_NUMPY.get(name, 0) and all("needs numpy" in f for f in failed), failed
        assert [a["hint"] for a in answers] == [""] * len(exercises), name
        assert not any(d["ok"] for d in dots), name
