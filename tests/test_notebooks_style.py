"""The house style of notebooks and modules, where a program can tell."""

import ast
import json
import re

import pytest
from docments import module_gaps
from notebooks import NBS, ROOT, dotted, modules, notebooks, numbered, sources

ALL, NUMBERED, MODULES = notebooks(), numbered(), modules()
IN_A_ROW, PROSE_WORDS = 3, 120
# Written in pieces, so that this file does not name what it looks for.
UNFINISHED = re.compile(
    r"\b("
    + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "xf" + "ail", "NotImpl" + "ementedError"])
    + r")\b"
)
MACHINE = re.compile(
    r"(?<![\w.])(/"
    + r"(?:root|home/\w+|work|opt|Users/\w+)/|[A-Z]:\\Users)|site"
    + r"-packages|pypi\."
    + r"org|python"
    + r"hosted|/tmp"
    + r"/\w"
)
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}|<(?:function|bound method|object) .* 0x")
both = pytest.mark.parametrize("nb", ALL, ids=str)
layers = pytest.mark.parametrize("nb", NUMBERED, ids=str)


def import_only(cell) -> bool:
    "Is there nothing in the cell but imports?"
    return bool(cell.tree.body) and all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in cell.tree.body)


@both
def test_opens_with_title_and_promise(nb):
    first = nb.cells[0]
    source = re.sub(r"\A---\n.*?\n---\n+", "", first.source, flags=re.DOTALL)  # front matter
    opens = first.kind == "markdown" and re.fullmatch(
        r"# \S[^\n]*\n\n> \S[^\n]*(\n\n(- [^\n]+\n?)+)?\s*", source
    )
    assert opens, "the first cell is `# Title`, a blank line, and `> promise` on one line"


@layers
def test_second_cell_names_the_module(nb):
    assert "default_exp" in nb.cells[1].directives and not nb.cells[1].tree.body


@both
def test_cell_ids_are_there_and_unique(nb):
    ids = [c.id for c in nb.cells]
    assert all(ids) and len(ids) == len(set(ids)), sorted(i for i in set(ids) if ids.count(i) > 1)


@both
def test_cells_parse_and_none_is_empty(nb):
    assert all(c.tree for c in nb.cells)
    empty = [c.index for c in nb.cells if not c.source.strip()]
    assert not empty, f"empty cells {empty}"


@both
def test_imports_have_cells_of_their_own(nb):
    # The documentation build runs every cell with an import in it, but not the ordinary cells before it.
    mixed = [
        f"cell {c.index}: {c.source[:60]!r}"
        for c in nb.code_cells
        if c.imports and not c.exported and not import_only(c)
    ]
    assert not mixed, "\n".join(mixed)


@both
def test_prose_between_code(nb):
    run, wrong = [], []
    for c in [*nb.cells, None]:
        if c is not None and c.kind == "code":
            if not ("hide" in c.directives or "default_exp" in c.directives or import_only(c)):
                run.append(c.index)
            continue
        if len(run) > IN_A_ROW:
            wrong.append(run)
        run = []
    assert not wrong, f"more than {IN_A_ROW} code cells in a row without prose: cells {wrong}"


@both
def test_prose_is_short(nb):
    long = []
    for c in nb.cells:
        if c.kind == "markdown":
            prose = re.sub(r"```.*?```|^\|.*$|\$\$.*?\$\$", "", c.source, flags=re.DOTALL | re.MULTILINE)
            if len(prose.split()) > PROSE_WORDS:
                long.append(f"cell {c.index}: {len(prose.split())} words: {prose[:50]!r}")
    assert not long, "\n".join(long)


UNRENDERED = {  # what a page would show as it is typed, see `left_markup` in test_site.py, which reads the pages themselves
    "a power that is no formula (write 2³² or $n^2$)": re.compile(r"\w\^|\^[\w(*]|\*\^"),
    "a link around code, which becomes a link itself (write `name` alone)": re.compile(r"\[\x01\]\("),
    "an asterisk that emphasizes nothing (emphasis within emphasis: close the outer one first)": re.compile(
        r"(?<!\\)\*(?=[^\s*])|(?<=[^\s*\\])\*"
    ),
}


def as_prose(source: str) -> str:
    "Markdown without blocks of code, formulas and emphasis; \\x01 for code within a line."
    source = re.sub(r"```.*?```|\$\$.*?\$\$", "", source, flags=re.DOTALL)
    source = re.sub(r"(?<!\\)\$[^$\n]+?\$", "", re.sub(r"``.*?``|`[^`]*`", "\x01", source))
    source = re.sub(
        r"(?<!\\)\*\*(?=[^\s*])((?:[^*]|\*(?!\*))*?)(?<=\S)\*\*", r"\1", source
    )  # bold, in which there may be emphasis
    return re.sub(r"(?<!\\)\*(?=[^\s*])[^*]*?(?<=[^\s*])\*", "\x02", source)


@both
def test_prose_holds_what_is_rendered(nb):
    wrong = [
        f"cell {c.index}: {why}: {m.group()!r}"
        for c in nb.cells
        if c.kind == "markdown"
        for why, marks in UNRENDERED.items()
        for m in marks.finditer(as_prose(c.source))
    ]
    opening = re.sub(r"\A---\n.*?\n---\n+", "", nb.cells[0].source, flags=re.DOTALL)
    promise = next((line for line in opening.splitlines() if line.startswith("> ")), "")
    if "*" in promise:
        wrong.append(f"the promise is shown as it is typed: {promise!r}")
    assert not wrong, "\n".join(wrong)


@layers
def test_callouts_close(nb):
    depth = 0
    for c in nb.cells:
        for line in c.source.splitlines() if c.kind == "markdown" else []:
            depth += bool(re.match(r":{3,}\s*\{", line)) - bool(re.fullmatch(r":{3,}\s*", line))
            assert 0 <= depth <= 3, f"cell {c.index}: {line!r}"
    assert depth == 0, "a callout is not closed"


@both
def test_nothing_unfinished_and_nothing_of_this_machine(nb):
    wrong = []
    for c in nb.cells:
        wrong += [
            f"cell {c.index}: {m.group()!r}" for p in (UNFINISHED, MACHINE) for m in p.finditer(c.source)
        ]
        for out in c.outputs:
            data = out.get("data", {})
            text = "".join(
                "".join(t)
                for t in [
                    out.get("text", ""),
                    *(v for k, v in data.items() if k.startswith("text/") or "svg" in k),
                ]
            )
            wrong += [
                f"output of cell {c.index}: {m.group()!r}"
                for p in (MACHINE, ADDRESS)
                for m in p.finditer(text)
            ]
            if out["output_type"] == "error":
                wrong.append(f"output of cell {c.index} is an error")
    assert not wrong, "\n".join(wrong)


@both
def test_pictures_have_words(nb):
    wrong = [
        c.index
        for c in nb.code_cells
        if any("image/png" in o.get("data", {}) for o in c.outputs) and not c.directives.get("fig-alt")
    ]
    assert not wrong, f"cells {wrong} show a picture; say it in words in `#| fig-alt: …`"


@both
def test_plots_follow_the_theme(nb):
    "A bitmap has a white background in the dark theme, and words that no reader can enlarge or select."
    wrong = [c.index for c in nb.code_cells if "image/png" in json.dumps(c.outputs)]
    assert not wrong, f"cells {wrong} show a bitmap; end them with `figure_svg(fig, alt)`"


@both
def test_links_between_notebooks(nb):
    wrong = []
    for c in nb.cells:
        if c.kind == "markdown":
            targets = re.findall(r"\]\(([^)#\s:]+\.ipynb)[^)]*\)", c.source)
            missing = [t for t in targets if not (nb.path.parent / t).resolve().is_file()]
            wrong += [f"cell {c.index}: {t}" for t in missing]
    assert not wrong, wrong


@pytest.mark.parametrize("nb", NUMBERED[:-1], ids=str)
def test_ends_by_naming_the_next(nb):
    last = [c for c in nb.cells if c.kind == "markdown"][-1]
    assert ".ipynb)" in last.source, "the last prose cell links the next notebook"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_module_opens_with_a_docstring_and_imports(path):
    source = path.read_text(encoding="utf-8")
    tree, misplaced, begun = ast.parse(source), [], False
    assert (ast.get_docstring(tree) or "").strip(), "no module docstring"
    for node in tree.body:
        begun |= isinstance(node, (ast.FunctionDef, ast.ClassDef))
        if begun and isinstance(node, (ast.Import, ast.ImportFrom)):
            misplaced.append(f"line {node.lineno}: {ast.unparse(node)}")
    assert not misplaced, f"imports after definitions: {misplaced}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_public_names_are_documented(path):
    found = module_gaps(path.read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


def test_every_page_has_its_module_and_every_module_its_page():
    pages = {f"subword_nb.{nb.module}" for nb in NUMBERED}
    found = {dotted(p) for p in sources() if not p.name.startswith("_")}
    assert pages == found, f"only notebooks: {sorted(pages - found)}; only modules: {sorted(found - pages)}"


def test_other_files_are_finished_and_name_no_machine():
    wrong = []
    for pattern in (
        "tests/*.py",
        "dev/**/*",
        "subword_nb/*",
        "nbs/*.py",
        "nbs/*.css",
        ".github/**/*.yml",
        ".ci/*",
        "*.md",
        "*.ini",
        "*.toml",
        "*.yml",
        "setup.py",
    ):
        for path in ROOT.glob(pattern):
            if path.is_file() and path.suffix not in {".pyc", ".png", ".woff2"}:
                text = path.read_text(encoding="utf-8")
                wrong += [
                    f"{path.relative_to(ROOT)}: {m.group()!r}"
                    for p in (UNFINISHED, MACHINE)
                    for m in p.finditer(text)
                ]
    assert not wrong, "\n".join(wrong)


def test_notebook_folder_holds_nothing_else():
    invalid = [
        p.relative_to(NBS).as_posix()
        for p in NBS.rglob("*")
        if p.is_file() and p.suffix in {".npy", ".log", ".tmp", ".gz", ".xz"}
    ]
    assert not invalid, invalid


LESSONS = (
    "bpe/00_reference",
    "wordpiece/00_reference",
    "wordpiece/03_longest_match",
    "unigram/00_lattice",
    "unigram/01_reference",
    "unigram/02_em",
)


def only_checks(body: list) -> bool:
    "Are there only calls of `test_…` and assertions, perhaps in loops?"

    def is_check(statement) -> bool:
        if isinstance(statement, (ast.For, ast.With)):
            return only_checks(statement.body)
        called = statement.value if isinstance(statement, ast.Expr) else None
        name = called.func.id if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) else ""
        return isinstance(statement, ast.Assert) or name.startswith("test_")

    return bool(body) and all(map(is_check, body))


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_opens_without_its_plumbing(name):
    nb = next(nb for nb in ALL if nb.path == NBS / f"{name}.ipynb")
    cells = json.loads(nb.path.read_text(encoding="utf-8"))["cells"]
    collapsed = {c["id"] for c in cells if c["metadata"].get("jupyter", {}).get("source_hidden")}
    for c in nb.code_cells:
        check = only_checks(c.tree.body) and not c.exported
        plumbing = {"hide", "default_exp", "export"} & c.directives.keys() or import_only(c)
        assert not (check or plumbing) or c.id in collapsed or "code-fold" in c.directives, (
            f'cell {c.index}: collapse it in JupyterLab, metadata {{"jupyter": {{"source_hidden": true}}}}'
        )
        assert not check or {"hide", "code-fold"} & c.directives.keys(), (
            f"cell {c.index}: `#| code-fold: true`"
        )
    shown = [c.id for c in nb.code_cells if "exports" in c.directives]
    assert shown and not collapsed & set(shown), "what a lesson teaches is open"


@pytest.mark.parametrize("folder", ["tutorials", "howto"])
def test_a_tutorial_opens_with_its_title(folder):
    "In JupyterLab hidden cells and imports are collapsed."
    for nb in ALL:
        if nb.path.parent != NBS / folder:
            continue
        cells = json.loads(nb.path.read_text(encoding="utf-8"))["cells"]
        assert cells[0]["cell_type"] == "markdown" and "".join(cells[0]["source"]).startswith("# ")
        collapsed = {c["id"] for c in cells if c["metadata"].get("jupyter", {}).get("source_hidden")}
        wanted = {c.id for c in nb.code_cells if "hide" in c.directives or import_only(c)}
        assert wanted <= collapsed, f"{nb.path.name}: collapse {wanted - collapsed} in JupyterLab"
