"""How the site shows a function or class: a short signature, the docstring, then one entry for each parameter.

nbdev calls `Entry` for every `show_doc` (the `renderer` setting of the build's copy of settings.ini). Its stock form puts
the words of the parameters into comments at the end of long code lines, which a phone cannot show.
"""

import importlib
import inspect
import io
import linecache
import pkgutil
import re
import textwrap
import tokenize
from functools import cached_property, reduce

from fastcore.docments import docments
from nbdev.doclinks import NbdevLookup

import subword_nb


def type_name(anno) -> str:
    "An annotation as it is written, with its generics; empty when there is none."
    if anno is inspect.Parameter.empty or anno is None:
        return ""
    anno = (
        getattr(anno, "__origin__", anno) if hasattr(anno, "__metadata__") else anno
    )  # Annotated[str, …] is a str
    text = anno if isinstance(anno, str) else inspect.formatannotation(anno)
    return re.sub(r"\b(?:typing|collections\.abc|pathlib|subword_nb(?:\.\w+)*|__main__)\.", "", text).replace(
        " | ", "|"
    )


def default_text(value) -> str:
    "A default as code; functions and classes by name, so that no address is shown."
    if value is ...:
        return "..."
    text = getattr(value, "__name__", None) or repr(value)
    return "…" if text == "<factory>" else text


def plain(text: str) -> str:
    "Words of a comment or docstring as markdown: only backticks keep their meaning."
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([\\<>*_\[\]{}$~^#|@!\"'])", r"\\\1", p) for p in parts[::2]]
    return "".join(parts)


def short_signature(
    name: str,
    sig: inspect.Signature,
    width: int = 64,  # Longest line, in characters
) -> str:  # Names and defaults only: types and meanings follow below
    "A signature without annotations, broken into lines when it is long."
    params, keyword_only = [], False
    for p in sig.parameters.values():
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not keyword_only and not any(q.startswith("*") for q in params):
            params.append("*")
        keyword_only = p.kind is p.KEYWORD_ONLY
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        params.append(stars + p.name + ("" if p.default is p.empty else "=" + default_text(p.default)))
    one_line = f"{name}({', '.join(params)})"
    return one_line if len(one_line) <= width else f"{name}(\n" + "".join(f"    {p},\n" for p in params) + ")"


def parameter(
    name: str,  # "return" for what comes back
    p: dict,  # What fastcore found out: `anno`, `default`, `docment`, `kind`
) -> str:  # An entry of a definition list: name, type and default, its meaning below
    "One parameter or return value; empty for a return of which nothing is known."
    anno, default = type_name(p["anno"]), p.get("default", inspect.Parameter.empty)
    words = p["docment"] or next(
        (m.help for m in getattr(p["anno"], "__metadata__", ()) if getattr(m, "help", None)), ""
    )  # typer's help
    if name == "return":
        if not anno and not words:
            return ""
        term = "[returns]{.returns}"
    else:
        stars = {inspect.Parameter.VAR_POSITIONAL: r"\*", inspect.Parameter.VAR_KEYWORD: r"\*\*"}.get(
            p.get("kind"), ""
        )
        term = f"[{stars}{name}]{{.param}}"
    term += f" `{anno}`" if anno else ""
    term += (
        f" [default]{{.default}} `{default_text(default)}`" if default is not inspect.Parameter.empty else ""
    )
    return f"{term}\n:   {plain(' '.join(words.split())) or '[]{.nothing}'}\n"


def signature_of(
    symbol,  # A function or class
) -> inspect.Signature | None:  # None for a class that adds nothing to a built-in one, such as an exception
    "The signature, if Python knows one."
    try:
        return inspect.signature(symbol)
    except ValueError:
        return None


def home(
    symbol,  # The object that the notebook's shell holds
) -> str:  # Its full name in the package, or its own name if it is not exported
    "Where a symbol was exported to: of several objects of this name, the one with the same signature and docstring."
    name, look = (
        symbol.__qualname__,
        lambda s: (str(signature_of(s)) if callable(s) else "", inspect.getdoc(s)),
    )
    for module in sorted({m.name for m in pkgutil.walk_packages(subword_nb.__path__, "subword_nb.")}):
        full = f"{module}.{name}"
        if NbdevLookup()[full] and look(exported(full, symbol)) == look(symbol):
            return full
    return name


def exported(
    name: str,  # Full or qualified name, such as `Tokenizer.train`
    symbol,  # The object that the notebook's shell holds
):  # The same object in the exported module when there is one: Python finds the source of a class only there
    "Prefer the module's object to the shell's."
    found = NbdevLookup()[name]
    if not isinstance(found, tuple):
        return symbol
    path = found[1].removesuffix(".py").replace("/", ".")
    return reduce(getattr, name.removeprefix(path + ".").split("."), importlib.import_module(path))


def source_of_fields(symbol):
    "The cell in which a class of a notebook was defined."
    start = re.compile(rf"^class {symbol.__name__}\b", re.M)
    cells = [
        "".join(entry[2])
        for name, entry in linecache.cache.items()
        if len(entry) > 2 and "ipython-input" in name
    ]
    return next((cell for cell in reversed(cells) if start.search(cell)), "")


def comment_on(
    name: str,  # A parameter or field
    source: str,  # Of the function or class
) -> str:  # Its comment: on its line, else the lines of comment above; empty if there is none
    "How source describes a parameter, where fastcore does not look."
    lines = textwrap.dedent(source).splitlines()
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0] - 1] = token.string.lstrip("#").strip()
    line = next((i for i, text in enumerate(lines) if re.match(rf"\s+\**{name}\b", text)), None)
    if line is None:
        return ""
    if line in comments:
        return comments[line]
    above = []
    while lines[line - 1].lstrip().startswith("#"):
        line -= 1
        above.insert(0, comments[line])
    return " ".join(above)


def parameters_of(
    symbol,  # A function or class
) -> dict:  # Name → what is known of it, "return" among them
    "Parameters with their comments; the fields of a NamedTuple, whose constructor Python writes without any."
    if not (inspect.isclass(symbol) and hasattr(symbol, "_fields")):
        found = docments(symbol, full=True)
        for name, p in found.items():  # fastcore leaves out the comment of **options
            if (
                p.get("kind") in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
                and not p["docment"]
            ):
                p["docment"] = comment_on(name, inspect.getsource(symbol))
        return found
    found = {}
    signature = signature_of(symbol)
    if signature is None:
        return found
    try:
        source = inspect.getsource(symbol)
    except OSError:
        source = source_of_fields(symbol)  # a class made in a notebook, whose fields no function holds
    for name, p in signature.parameters.items():
        found[name] = {
            "anno": p.annotation,
            "default": p.default,
            "kind": p.kind,
            "docment": comment_on(name, source),
        }
    return found


class Entry:
    "Markdown of one `show_doc`; stands in for nbdev's own renderer."

    def __init__(self, sym, name: str | None = None, title_level: int = 3):
        found = inspect.unwrap(getattr(sym, "fget", None) or sym)
        self.name, self.level = name or found.__qualname__, title_level
        self.full_name = (
            home(found) if found.__module__ == "__main__" else f"{found.__module__}.{found.__qualname__}"
        )
        self.sym = exported(self.full_name, found)

    def _repr_markdown_(self) -> str:
        "What the page shows; IPython asks twice, and looking for sources takes long."
        return self.markdown

    @cached_property
    def markdown(self) -> str:
        "Heading, source link, signature, docstring, parameters."
        parts, source = [f"{'#' * self.level} {self.name}"], NbdevLookup().code(self.full_name)
        if source:
            source = re.sub(
                "#L.*", f"#L{inspect.getsourcelines(getattr(self.sym, 'fget', None) or self.sym)[1]}", source
            )
            parts.append(f'[source]({source}){{.source aria-label="Source of {self.name}"}}')
        signature = signature_of(self.sym) if callable(self.sym) else None
        if signature is not None:
            parts.append(f"```python\n{short_signature(self.name, signature)}\n```")
        parts.append(plain(inspect.getdoc(self.sym) or ""))
        entries = [parameter(k, v) for k, v in parameters_of(self.sym).items() if k != "self"]
        if any(entries):
            parts += ["::: {.params}", "\n".join(e for e in entries if e), ":::"]
        return "\n\n".join(p for p in parts if p)
