"""The project's notebooks as plain data, for the tests that read them. Standard library only."""

import ast
import importlib
import json
import re
import sys
from configparser import ConfigParser
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
LIB = ROOT / "subword_nb"
EXPORTS = {"export", "exports", "exporti"}


def dev_module(name: str):
    "A module of the folder dev, which is no package."
    sys.path.insert(0, str(ROOT / "dev"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "dev"))


def _chapters() -> list[str]:
    "The chapters in the order of their layers, as settings.ini declares it."
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]["chapters"].split()


CHAPTERS = _chapters()
_DIRECTIVE = re.compile(r"^\s*#\s*\|\s*(.+?)\s*$")
_MAGIC = re.compile(r"^\s*(?:%%?|!)(?=[\w./]).*$", re.MULTILINE)  # and no operator at the start of a line


@dataclass
class Cell:
    "One cell, with its directives apart from its code."

    index: int
    kind: str
    id: str
    source: str
    outputs: list = field(default_factory=list)

    @cached_property
    def directives(self) -> dict[str, str]:
        "Directive name → the rest of its line, of the directives that open a code cell."
        found = {}
        for line in self.source.splitlines() if self.kind == "code" else []:
            if not line.strip():
                continue
            match = _DIRECTIVE.match(line)
            if not match:
                break
            name, _, rest = match.group(1).partition(" ")
            found[name.rstrip(":")] = rest.strip()
        return found

    @property
    def exported(self) -> bool:
        return bool(EXPORTS & self.directives.keys())

    @property
    def code(self) -> str:
        "The source without directives and magics, line numbers kept."
        lines = ["" if _DIRECTIVE.match(line) else line for line in self.source.splitlines()]
        return _MAGIC.sub("", "\n".join(lines))

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.code) if self.kind == "code" else ast.Module([], [])

    @property
    def imports(self) -> list:
        "Every import statement in the cell, those inside functions too."
        return [n for n in ast.walk(self.tree) if isinstance(n, (ast.Import, ast.ImportFrom))]


@dataclass
class Notebook:
    "One notebook file."

    path: Path

    @cached_property
    def cells(self) -> list[Cell]:
        raw = json.loads(self.path.read_text(encoding="utf-8"))["cells"]
        return [
            Cell(i, c["cell_type"], c.get("id", ""), "".join(c["source"]), c.get("outputs", []))
            for i, c in enumerate(raw)
        ]

    @property
    def code_cells(self) -> list[Cell]:
        return [c for c in self.cells if c.kind == "code"]

    @property
    def number(self) -> tuple[int, int] | None:
        "The layer: of nbs/bpe/07_model.ipynb the place of `bpe` among the chapters, and 7; None for a page that exports nothing."
        match = re.match(r"(\d\d)_", self.path.name)
        chapter = self.path.parent.name
        if match is None or chapter not in CHAPTERS or self.path.parent.parent != NBS:
            return None
        return CHAPTERS.index(chapter), int(match[1])

    @cached_property
    def module(self) -> str | None:
        "What `default_exp` says."
        return next((c.directives["default_exp"] for c in self.cells if "default_exp" in c.directives), None)

    def __str__(self) -> str:
        return self.path.relative_to(NBS).as_posix()


@cache  # each is read and parsed once for all test files
def notebooks() -> list[Notebook]:
    "Every notebook, in reading order."
    paths = [
        p for p in NBS.rglob("*.ipynb") if not any(q.startswith((".", "_")) for q in p.relative_to(NBS).parts)
    ]
    return [Notebook(p) for p in sorted(paths)]


def module_path(
    module: str,  # Below the package, such as "bpe.model"
) -> Path:  # Its file
    "Where an exported module is."
    return LIB / f"{module.replace('.', '/')}.py"


@cache
def numbered() -> list[Notebook]:
    "The notebooks that are layers."
    return sorted((nb for nb in notebooks() if nb.number is not None), key=lambda nb: nb.number)


def modules() -> list[Path]:
    "The exported modules, `_modidx.py` and `__init__.py` aside, in layer order."
    return [module_path(nb.module) for nb in numbered() if nb.module and module_path(nb.module).exists()]


def dotted(
    path: Path,  # subword_nb/bpe/model.py
) -> str:  # "subword_nb.bpe.model"
    "The name by which a module is imported."
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def sources() -> list[Path]:
    "All Python files of the package."
    return sorted(LIB.rglob("*.py"))


def imported_modules(statement: ast.stmt) -> list[str]:
    "Full names of the modules an import statement may load: `from a import b` gives `a` and `a.b`."
    if isinstance(statement, ast.Import):
        return [a.name for a in statement.names]
    base = "." * statement.level + (statement.module or "")
    return [base] + [f"{base}.{a.name}" for a in statement.names]


_FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(path: Path) -> list[tuple[int, str, bool]]:
    "Code cells, and the Python between ```python and ``` in prose, in reading order: the cell's place, the code, whether it is a fence."
    found = []
    for cell in Notebook(path).cells:
        if cell.kind == "code":
            found.append((cell.index, cell.code, False))
        elif cell.kind == "markdown":
            found += [(cell.index, code, True) for code in _FENCE.findall(cell.source + "\n")]
    return found
