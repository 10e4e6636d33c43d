"""Numbers are layers: what may import what, and what importing the package loads."""

import ast
import json
import re
import subprocess
import sys
from configparser import ConfigParser
from contextlib import suppress

import pytest
from notebooks import CHAPTERS, ROOT, dotted, imported_modules, modules, notebooks, numbered

NUMBERED = numbered()
# Pages whose kernels need NumPy at once; every other page is on the short path and loads without it.
MAY_NEED_NUMPY = {
    "bpe.train_kernels",
    "wordpiece.train_kernels",
    "unigram.em_kernels",
    "core.simd",
    "text.dfa",
    "text.gpt_scanners",
    "text.script_scanner",
    "text.word_scanners",
    "core.span_cache",
    "core.spelling_finder",
    "core.string_utf8",
    "core.spellings",
    "bpe.event_kernels",
    "bpe.merge_kernels",
    "bpe.span_encoder",
    "wordpiece.span_encoder",
    "unigram.byte_spans",
    "unigram.span_encoder",
    "unigram.boundaries",
    "bulk.span_places",
    "bulk.word_tokens",
    "pipeline.runs",
    "train.span_counts",
    "insight.constraint",
}
# The page that needs Jinja is loaded by the one that renders chats, when the first is rendered.
MAY_NEED_JINJA = {"pipeline.chat_dialect"}
HEAVY = ["numba", "regex", "tqdm", "matplotlib"]
DEV_ONLY = ["nbdev", "fastcore", "execnb", "IPython", "pytest"]
FOR_CHECKERS = ["typing_extensions"]  # every type checker knows it; under `if TYPE_CHECKING:` only


def layers() -> dict[str, tuple[int, int]]:
    "Module, such as bpe.model → its layer."
    return {nb.module: nb.number for nb in NUMBERED}


def requirements() -> dict[str, str]:
    "Import name → the key of settings.ini that asks for it."
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    found = {}
    for key, value in parser["DEFAULT"].items():
        if key == "requirements" or key.endswith("_requirements"):
            for name in value.split():
                found.setdefault(re.split(r"[<>=!;~\[]", name)[0].replace("-", "_"), key)
                if name.startswith("dask[distributed]"):
                    found.setdefault("distributed", key)
    return found


def type_checking(cell) -> list[ast.AST]:
    "Everything in a cell that only a type checker reads."
    branches = [
        n for n in ast.walk(cell.tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    ]
    return [s for branch in branches for statement in branch.body for s in ast.walk(statement)]


def test_there_are_notebooks():
    assert NUMBERED


def test_a_number_is_one_layer_and_names_its_module():
    numbers = [nb.number for nb in NUMBERED]
    assert len(numbers) == len(set(numbers)), f"two notebooks share a number: {[str(nb) for nb in NUMBERED]}"
    wrong = [
        f"{nb}: default_exp {nb.module}"
        for nb in NUMBERED
        if nb.module != f"{nb.path.parent.name}.{nb.path.stem.partition('_')[2]}"
    ]
    assert not wrong, wrong


def test_only_numbered_notebooks_export():
    wrong = [
        f"{nb} cell {c.index}"
        for nb in notebooks()
        if nb.number is None
        for c in nb.cells
        if c.exported or "default_exp" in c.directives
    ]
    assert not wrong, wrong


def test_no_property_holds_a_lock_while_it_is_computed():
    "Before Python 3.12 `functools.cached_property` does, and a process that is forked meanwhile waits forever."
    package = ROOT / "subword_nb"
    wrong = [
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if re.search(r"functools(\.| import .*)cached_property", path.read_text(encoding="utf-8"))
    ]
    assert not wrong, f"use `core.processes.cached_property`: {wrong}"


def test_exported_cells_go_to_their_own_module():
    wrong = [
        f"{nb} cell {c.index}: {c.directives}"
        for nb in NUMBERED
        for c in nb.cells
        for k in ("export", "exports", "exporti")
        if c.directives.get(k)
    ]
    assert not wrong, wrong


@pytest.mark.parametrize("nb", NUMBERED, ids=str)
def test_exported_cells_import_only_lower_numbers(nb):
    known, wrong = layers(), []
    for cell in nb.cells:
        for statement in cell.imports if cell.exported else []:
            for name in imported_modules(statement):
                if name.startswith("."):
                    wrong.append(f"cell {cell.index}: relative import; write `from subword_nb.… import …`")
                elif name == "subword_nb":
                    wrong.append(
                        f"cell {cell.index}: `{ast.unparse(statement)}` goes through the package's front door; import from the page"
                    )
                elif name.startswith("subword_nb."):
                    module = ".".join(name.split(".")[1:3])
                    if module in known and known[module] >= nb.number:
                        wrong.append(f"cell {cell.index}: `{ast.unparse(statement)}` goes up to {module}")
                    elif module not in known and module not in CHAPTERS:
                        wrong.append(f"cell {cell.index}: `{ast.unparse(statement)}` names no page")
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.mark.parametrize("nb", notebooks(), ids=str)
def test_private_names_stay_in_their_notebook(nb):
    wrong = []
    for cell in nb.cells:
        for statement in cell.imports:
            if (
                isinstance(statement, ast.ImportFrom)
                and (statement.module or "").startswith("subword_nb.")
                and statement.module != f"subword_nb.{nb.module}"
            ):
                wrong += [
                    f"cell {cell.index}: {statement.module}.{a.name}"
                    for a in statement.names
                    if a.name.startswith("_")
                ]
    assert not wrong, wrong


@pytest.mark.parametrize("nb", NUMBERED, ids=str)
def test_exported_imports_are_requirements_and_heavy_ones_wait(nb):
    known, wrong = requirements(), []
    for cell in nb.cells:
        if not cell.exported:
            continue
        waits = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        unread = {id(s) for s in type_checking(cell)}  # by Python
        inside = {id(s) for f in ast.walk(cell.tree) if isinstance(f, waits) for s in ast.walk(f)} | unread
        for statement in cell.imports:
            top = imported_modules(statement)[0].split(".")[0]
            where = f"cell {cell.index}: `{ast.unparse(statement)}`"
            if top in FOR_CHECKERS and id(statement) in unread:
                continue
            if top in DEV_ONLY:
                wrong.append(f"{where} is a development tool")
            elif top == "subword_nb" or top in sys.stdlib_module_names:
                continue
            elif top not in known:
                wrong.append(f"{where} is not among the requirements in settings.ini")
            elif top == "jinja2" and nb.module in MAY_NEED_JINJA:
                continue
            elif id(statement) not in inside and (
                known[top] != "requirements"
                or top in HEAVY
                or (top == "numpy" and nb.module not in MAY_NEED_NUMPY)
            ):
                wrong.append(f"{where} belongs inside the function that needs it")
    assert not wrong, "\n".join(wrong)


def loaded_by(code: str) -> list[str]:
    "What a fresh Python has loaded after `code`, as top-level names."
    probe = f"{code}\nimport sys, json\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_the_package_loads_nothing_heavy():
    before = set(loaded_by(""))
    found = (set(loaded_by("import subword_nb")) - before) & {"numpy", "typer", *HEAVY, *DEV_ONLY}
    assert not found, f"`import subword_nb` loads {sorted(found)}"


def test_modules_of_the_short_path_load_without_numpy():
    before = set(loaded_by(""))
    names = [dotted(p) for p in modules() if dotted(p).removeprefix("subword_nb.") not in MAY_NEED_NUMPY]
    banned = {"numpy", *HEAVY, *DEV_ONLY} - before
    if set(loaded_by("".join(f"import {n}\n" for n in names))) & banned:
        found = {n: sorted(set(loaded_by(f"import {n}")) & banned) for n in names}
        raise AssertionError({n: f for n, f in found.items() if f})


def test_every_module_imports_without_the_heavy_and_the_development_ones():
    blocked = [*HEAVY, *DEV_ONLY, "jinja2"]
    free = [name for name in map(dotted, modules()) if name.removeprefix("subword_nb.") not in MAY_NEED_JINJA]
    block = f"import sys\nfor m in {blocked}: sys.modules[m] = None\n"
    loaded_by(block + "".join(f"import {name}\n" for name in free))


def test_front_door_has_at_most_twelve_names_and_all_resolve():
    probe = (
        "import json, subword_nb as s; [getattr(s, n) for n in s.__all__]; print(json.dumps(list(s.__all__)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout.splitlines()[-1])
    assert "Tokenizer" in names
    assert len(names) <= 12, names
    assert not [n for n in names if n.startswith("_") and n != "__version__"], names


def test_one_version():
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import subword_nb; print(subword_nb.__version__)"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout.strip() == parser["DEFAULT"]["version"], done.stderr


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_names(source: str) -> list[str]:
    "What a test takes from a module of the package, or sets there, though its name begins with an underscore."
    tree = ast.parse(source)
    found, ours = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "subword_nb":
            ours.update(alias.asname or alias.name for alias in node.names)
            found += [alias.name for alias in node.names if _private(alias.name)]
        elif isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.partition(".")[0] == "subword_nb"]
            ours.update(alias.asname or "subword_nb" for alias in names)

    def is_ours(node) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in ours

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr) and is_ours(node.value):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and len(node.args) > 1:  # monkeypatch.setattr(page, "_name", …)
            page, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and _private(name.value):
                found += [name.value] if is_ours(page) else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "subword_nb" in node.value:
            found += re.findall(r"\bsubword_nb(?:\.\w+)*\._[a-z]\w*", node.value)
            if "import" in node.value:  # a program that a test runs
                with suppress(SyntaxError):
                    found += private_names(node.value)
    # of named tuples, notebooks, nbdev; and a module of tiktoken's that has its like here
    public = ("_replace", "_asdict", "_fields", "_repr_html_", "_modidx", "_educational")
    return [name for name in found if name.rpartition(".")[2] not in public]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from PACKAGE.core import jit\njit._lock, jit.kernel", "jit._lock"),
        ("from PACKAGE.text.regex import _CODES", "_CODES"),
        ("import PACKAGE.core.jit as j\nm.setattr(j, '_lock', 1)", "_lock"),
        ("m.setattr('PACKAGE.core.jit._lock', 1)", "PACKAGE.core.jit._lock"),
        ("run('from PACKAGE.core import jit; jit._lock')", "jit._lock"),
        ("from PACKAGE import Tokenizer\nx._lock, Parts()._replace()", ""),
    ],
)
def test_private_names_in_tests_are_found(source, found):
    assert private_names(source.replace("PACKAGE", "subword_nb")) == [
        name.replace("PACKAGE", "subword_nb") for name in found.split()
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: path.stem)
def test_tests_use_public_names(path):
    assert private_names(path.read_text(encoding="utf-8")) == []


def test_importing_a_tokenizer_needs_neither_dataclasses_nor_inspect():
    "They take as long as the rest of the import: classes on this path are `core.records`."
    program = "import sys; from subword_nb import Tokenizer; print({'dataclasses', 'inspect', 'numpy'} & {*sys.modules})"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout.strip() == "set()"
