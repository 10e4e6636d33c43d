"""Run the cells of a lesson in the worker, one after the other, in one namespace.

An answer is JSON: whether the cell came to its end, and what it shows, a list of {"kind": "text", "html" or "error", "data": …}.
"""

import ast
import contextlib
import io
import json
import math
import sys
import traceback
import types
import warnings
from pprint import pformat

MOST_SHOWN = 20_000  # Characters of one output
FILE = "<cell>"  # What Python calls the source of a cell

namespace: dict = {}


class Differs(AssertionError):
    "Two values of a test differ; an exercise does not show them, because one is the answer."


def shown(kind: str, text: str) -> dict:
    "One output, which is not too long to be shown."
    left = len(text) - MOST_SHOWN
    return {"kind": kind, "data": text if left <= 0 else f"{text[:MOST_SHOWN]}\n… {left:,} more characters"}


def outputs_of(value) -> list[dict]:
    "The richest form of a value that the page can show."
    if value is None:
        return []
    for method in ("_repr_html_", "_repr_svg_"):
        draw = None if isinstance(value, type) else getattr(value, method, None)
        if draw is not None:
            return [{"kind": "html", "data": draw()}]
    is_container = isinstance(value, (dict, list, set)) or type(value) is tuple
    return [shown("text", pformat(value, width=79, sort_dicts=False) if is_container else repr(value))]


def mistake(e: BaseException) -> str:
    "What went wrong, and in which line of the cell."
    if isinstance(e, ModuleNotFoundError) and e.name:
        return f"This cell needs {e.name.partition('.')[0]}, which this page does not have. It runs in JupyterLab."
    if isinstance(e, AssertionError):
        return str(e) or "The assertion does not hold."
    if isinstance(e, SyntaxError):
        lines = [e.lineno]
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename == FILE]
    return f"{type(e).__name__}: {e.msg if isinstance(e, SyntaxError) else e}" + (
        f" (line {lines[0]})" if lines else ""
    )


def execute(source: str):
    "Run the statements of a cell; the value of the last one, if it is an expression."
    lines = ["" if line.startswith(("#|", "%")) else line for line in source.splitlines()]
    tree = ast.parse("\n".join(lines), FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, FILE, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), FILE, "eval"), namespace) if last else None


def attempt(source: str) -> tuple[list, BaseException | None]:
    "Run a cell: what it shows, and the error that ended it."
    printed, shows, error = io.StringIO(), [], None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shows = outputs_of(execute(source))
        except (Exception, SystemExit, KeyboardInterrupt) as e:  # whatever a reader may write
            error = e
    text = printed.getvalue().rstrip("\n")
    return ([shown("text", text)] if text else []) + shows, error


def run(source: str) -> str:
    "Run one cell."
    shows, error = attempt(source)
    if error is not None:
        shows.append(shown("error", mistake(error)))
    return json.dumps({"ok": error is None, "shows": shows})


def check(source: str, name: str) -> str:
    "Run the answer to an exercise, which must call the function `name`; what it shows is a hint if the answer is wrong."
    calls, original = [], namespace[name]

    def counted(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)

    namespace[name] = counted
    try:
        shows, error = attempt(source)
    finally:
        namespace[name] = original
    if isinstance(error, Differs):
        hint = "Not yet: this is not what the check computes."
    elif isinstance(error, AssertionError):
        hint = f"Not yet: {error}" if str(error) else "Not yet."
    elif error is not None:
        hint = mistake(error)
    else:
        hint = "" if calls else f"Call {name} with your answer."
    return json.dumps({"ok": not hint, "shows": shows, "hint": hint})


def begin() -> str:
    "An empty namespace, in which a lesson's functions for tests can be imported."
    namespace.clear()
    namespace["__name__"] = "__main__"
    sys.modules["fastcore"], sys.modules["fastcore.test"] = types.ModuleType("fastcore"), tests()
    return "{}"


def tests() -> types.ModuleType:
    "The functions of fastcore.test that lessons use; the library itself is not in the page."
    module = types.ModuleType("fastcore.test")

    def expect(holds, message):
        if not holds:
            raise Differs(message)

    def test_eq(a, b):
        "Fail unless two values are equal."
        expect(a == b, f"expected {b!r}, got {a!r}")

    def test_ne(a, b):
        "Fail if two values are equal."
        expect(a != b, f"expected another value than {b!r}")

    def test_close(a, b, eps=1e-5):
        "Fail unless numbers, or the numbers of two lists, are close."
        pairs = zip(a, b, strict=True) if hasattr(a, "__len__") else [(a, b)]
        expect(
            all(math.isclose(x, y, rel_tol=0, abs_tol=eps) for x, y in pairs),
            f"expected about {b!r}, got {a!r}",
        )

    def test_fail(f, msg="", contains="", exc=Exception, args=None, kwargs=None):
        "Fail unless a call raises an error whose message has some words."
        try:
            f(*(args or []), **(kwargs or {}))
        except exc as e:
            expect(contains in str(e), f"expected an error with {contains!r}, got {e}")
            return
        raise Differs(f"expected an error, got none. {msg}")

    for function in (test_eq, test_ne, test_close, test_fail):
        setattr(module, function.__name__, function)
    return module
