"""Comments that document parameters (docments), read from source with nbdev's rules. Standard library only."""

import ast
import io
import tokenize


def comments(source: str) -> dict[int, tuple[str, bool]]:
    "Line number → (comment, whether it stands alone on its line)."
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = (
                token.string.lstrip("# ").strip(),
                not token.line[: token.start[1]].strip(),
            )
    return found


def documented(lines: dict[int, str], marks: dict[int, tuple[str, bool]]) -> set[str]:
    "The names of `lines` (line → the last name on it) that have a comment on their line or alone on the line above."
    return {
        name
        for line, name in lines.items()
        if marks.get(line, ("", False))[0] or (marks.get(line - 1, ("", False))[0] and marks[line - 1][1])
    }


def _explained(annotation: ast.expr | None, default: ast.expr | None) -> bool:
    "Is the help text inside the annotation or default, as typer has it?"
    both = [n for part in (annotation, default) if part is not None for n in ast.walk(part)]
    return any(isinstance(n, ast.keyword) and n.arg == "help" for n in both)


def gaps(function: ast.FunctionDef, marks: dict[int, tuple[str, bool]], method: bool = False) -> list[str]:
    "What a public function's documentation lacks, in words."
    lacks, a = [], function.args
    kinds = {d.id for d in function.decorator_list if isinstance(d, ast.Name)} | {
        d.attr for d in function.decorator_list if isinstance(d, ast.Attribute)
    }
    if not ast.get_docstring(function):
        if function.name != "__init__":
            lacks.append("no docstring")
    elif "\n" in ast.get_docstring(function).strip():
        lacks.append("docstring longer than a line")
    if kinds & {"property", "cached_property", "setter"}:
        return lacks
    parameters = [
        *a.posonlyargs,
        *a.args,
        *([a.vararg] if a.vararg else []),
        *a.kwonlyargs,
        *([a.kwarg] if a.kwarg else []),
    ]
    if method and "staticmethod" not in kinds:
        parameters = parameters[1:]
    positional = [*a.posonlyargs, *a.args]
    defaults = dict(zip([p.arg for p in positional[len(positional) - len(a.defaults) :]], a.defaults))
    defaults |= {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults) if d is not None}
    lines = {p.lineno: p.arg for p in sorted(parameters, key=lambda p: (p.lineno, p.col_offset))}
    if function.returns:
        lines[function.returns.lineno] = "return"
    good = documented(lines, marks)
    lacks += [
        f"no comment on parameter {p.arg}"
        for p in parameters
        if p.arg not in good and not _explained(p.annotation, defaults.get(p.arg))
    ]
    if function.name == "__init__":
        return lacks
    nothing = isinstance(function.returns, ast.Constant) and function.returns.value is None
    gives = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function)) or any(
        isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function)
    )
    if function.returns is None and gives:
        lacks.append("no type on what it returns")
    elif function.returns is not None and not nothing and "return" not in good:
        lacks.append("no comment on what it returns")
    return lacks


def inherited(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> set[str]:
    "Names of the methods that base classes in the same module, or `str`, define, and so document."
    if any(isinstance(b, ast.Name) and b.id == "str" for b in node.bases):
        return set(dir(str)) - {"__init__"}
    bases = [classes[b.id] for b in node.bases if isinstance(b, ast.Name) and b.id in classes]
    return {m.name for b in bases for m in b.body if isinstance(m, ast.FunctionDef)}.union(
        *(inherited(b, classes) for b in bases)
    ) - {"__init__"}


def module_gaps(source: str) -> list[str]:
    "What the public definitions (those in `__all__`) of a module lack, one line each."
    tree, marks, found = ast.parse(source), comments(source), []
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    public = next(
        (
            ast.literal_eval(n.value)
            for n in tree.body
            if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__"
        ),
        [],
    )
    for node in tree.body:
        if getattr(node, "name", None) not in public:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found += [f"{node.name}: {g}" for g in gaps(node, marks)]
        elif isinstance(node, ast.ClassDef):
            if not ast.get_docstring(node):
                found.append(f"{node.name}: no docstring")
            fields = {
                n.lineno: n.target.id
                for n in node.body
                if isinstance(n, ast.AnnAssign) and not n.target.id.startswith("_")
            }
            found += [
                f"{node.name}: no comment on field {f}"
                for f in fields.values()
                if f not in documented(fields, marks)
            ]
            above = inherited(node, classes)
            for m in node.body:
                if (
                    isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))
                    and (not m.name.startswith("_") or m.name == "__init__")
                    and m.name not in above
                ):
                    found += [f"{node.name}.{m.name}: {g}" for g in gaps(m, marks, method=True)]
    return found
