"""Lessons that run where they are read: which pages they are, and their cells for the worker of the playground."""

import ast
import json
from pathlib import Path

from docsite_cells import joined, split_options

LESSONS = (  # notebooks whose code runs without compiled modules
    "bpe/00_reference.ipynb",
    "wordpiece/00_reference.ipynb",
    "unigram/00_lattice.ipynb",
    "unigram/01_reference.ipynb",
    "pipeline/07_engine.ipynb",
)


def check_of(
    code: str,  # A code cell
) -> tuple[
    str, str
]:  # Name of the function that checks an answer, and a call without the answer; "" if there is none
    "The check of an exercise, if the cell defines one."
    if "def check_" not in code:
        return "", ""
    last = ast.parse(code).body[-1]
    if not (isinstance(last, ast.FunctionDef) and last.name.startswith("check_")):
        return "", ""
    arguments = ", ".join(f"{a.arg}=..." for a in last.args.args)
    return last.name, f"{last.name}({arguments})"


def read_names(tree: ast.AST) -> set[str]:
    "The names that a piece of code reads, without the parameters of its functions."
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - {
        n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)
    }


def bound_names(tree: ast.AST) -> set[str]:
    "The names that a piece of code assigns."
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def needed_later(name: str, later: list[ast.Module]) -> bool:
    "Does a later cell read a name before one assigns it anew?"
    for tree in later:
        if name in bound_names(tree):
            return False
        if name in read_names(tree):
            return True
    return False


def only_tests(
    tree: ast.Module,  # A cell
    later: list[ast.Module],  # The cells below
) -> bool:
    "Is a cell nothing but asserts, calls of test functions, and loops over them? Then later cells do not need it."
    allowed = (ast.Assert, ast.For, ast.Expr, ast.Assign)
    effects = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    if not all(isinstance(s, allowed) for s in tree.body) or any(
        needed_later(n, later) for n in bound_names(tree)
    ):
        return False
    for node in ast.walk(tree):
        if isinstance(node, effects) or (
            isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
        ):
            return False
    calls = [s.value for s in tree.body if isinstance(s, ast.Expr)]
    tests = ("test_", "check_")
    return all(
        isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id.startswith(tests)
        for c in calls
    )


def lesson_cells(
    path: Path,  # A notebook
) -> list[dict]:  # id, source, whether it only tests; for an exercise the name of its check and a call of it
    "All code cells in their order, also those that a page hides: later ones need them."
    cells, in_exercises = [], False
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            in_exercises = in_exercises or joined(cell["source"]).startswith("## Exercises")
            continue
        options, code = split_options(joined(cell["source"]))
        if not code.strip() or code.startswith("show_doc("):
            continue
        check, call = check_of(code) if in_exercises else ("", "")
        cells.append({"id": cell["id"], "source": code} | ({"check": check, "call": call} if check else {}))
    trees = [ast.parse(cell["source"]) for cell in cells]
    for i, cell in enumerate(cells):
        cell["tests"] = only_tests(trees[i], trees[i + 1 :])
    return cells


def write_lessons(
    folder: Path,  # The playground's folder in the site
    nbs: Path,  # Where the notebooks are
    targets: dict[str, str],  # Notebook of a lesson → its page
) -> None:
    "Write the cells of each lesson, in a file named like its page."
    for source, page in targets.items():
        path = folder / "lessons" / Path(page).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(lesson_cells(nbs / source), ensure_ascii=False), encoding="utf-8")
