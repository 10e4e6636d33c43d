"""From the cells of a notebook that nbdev has processed to one markdown text for pandoc.

nbdev takes away what is hidden and adds the `show_doc` cells; the cell options that Quarto knows
(`echo`, `output`, `include`, `code-fold`, `code-summary`, `fig-cap`, `fig-alt`) are still in the sources, and are read here.
"""

import html
import re
from collections.abc import Collection
from unicodedata import east_asian_width

import docsite_steppers
import yaml
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String

TOKEN_CLASSES = [  # the first that holds; style.css has the colours
    (Comment, "co"),
    (Keyword.Namespace, "im"),
    (Keyword.Constant, "cn"),
    (Keyword, "cf"),
    (Operator.Word, "kw"),
    (String.Escape, "sc"),
    (String.Interpol, "sc"),
    (String, "st"),
    (Number, "dv"),
    (Name.Function, "fu"),
    (Name.Class, "fu"),
    (Name.Decorator, "at"),
    (Name.Builtin.Pseudo, ""),
    (Name.Builtin, "bu"),
    (Name.Exception, "ex"),
]
WRAPPED = 40  # characters of a line that fit on a phone
LETTERS = 104  # small characters of a line that fit beside the list of pages
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def split_options(
    source: str,  # A code cell's source as nbdev leaves it
) -> tuple[dict, str]:  # The `#| name: value` options; the code below them
    "Take the leading option lines off a cell."
    lines = source.splitlines(keepends=True)
    n = next((i for i, line in enumerate(lines) if not line.startswith("#|")), len(lines))
    found = yaml.safe_load("".join(line[2:].lstrip() for line in lines[:n])) or {}
    return found if isinstance(found, dict) else {}, "".join(lines[n:]).strip("\n")


def fence(
    text: str,
    attributes: str,  # Pandoc attributes without braces, such as `.python .code`
) -> str:  # A code block whose fence is longer than any run of backticks inside
    "Put text into a fenced code block."
    ticks = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{ticks} {{{attributes}}}\n{text}\n{ticks}\n"


def raw_html(markup: str) -> str:
    "Markup that pandoc passes through untouched."
    return fence(markup, "=html")


def painted(
    code: str,
    language: str,  # A name that Pygments knows
) -> str:  # Elements and classes as pandoc makes them, which would take five times as long
    "Highlight code."
    code = code.rstrip("\n")
    lines = [""]
    for kind, text in get_lexer_by_name(language, stripnl=False, ensurenl=False).get_tokens(code):
        name = next((c for k, c in TOKEN_CLASSES if kind in k), "")
        for i, part in enumerate(html.escape(text, quote=False).split("\n")):
            if i > 0:
                lines.append("")
            lines[-1] += f'<span class="{name}">{part}</span>' if name and part.strip() else part
    body = ""
    for line, plain in zip(lines, code.split("\n"), strict=True):
        indent = len(plain) - len(plain.lstrip(" "))
        # a long line is wrapped on a phone, and goes on deeper than it begins
        long = len(plain) > WRAPPED
        body += f'<span class="w" style="--n:{indent}">{line}\n</span>' if long else f"{line}\n"
    body = body.removesuffix("\n")
    return f'<div class="sourceCode"><pre class="sourceCode {language}"><code class="sourceCode {language}">{body}</code></pre></div>'


def painted_page(
    text: str,  # HTML in which filter.lua has marked the code that is in a language
) -> str:
    "Highlight the code of a page."
    marked = re.compile(r'<pre data-language="(\w+)"><code>(.*?)</code></pre>', re.S)
    return marked.sub(lambda m: painted(html.unescape(m[2]), m[1]), text)


def div(
    content: str,
    *classes: str,
    **data: str,  # Name of a data attribute → its value
) -> str:  # A fenced div; blank lines keep it apart from its neighbours
    "Wrap markdown in a div."
    attributes = [*("." + c for c in classes), *(f'data-{name}="{value}"' for name, value in data.items())]
    return f"\n::: {{{' '.join(attributes)}}}\n\n{content}\n\n:::\n"


def joined(value) -> str:
    "Notebook text: stored as one string or as a list of lines."
    return value if isinstance(value, str) else "".join(value)


def private_ids(
    svg: str,
    prefix: str,  # Unique in the page
) -> str:
    """Prefix the ids of an SVG, and what refers to them, so that two figures never share one.

    Ids that begin with tok- are the anchors of the reference's entries, to which search leads; they stay."""
    names = [name for name in re.findall(r'\bid="([^"]+)"', svg) if not name.startswith("tok-")]
    for name in sorted(set(names), key=len, reverse=True):
        n = re.escape(name)
        svg = re.sub(rf'\bid="{n}"', f'id="{prefix}{name}"', svg)
        svg = re.sub(rf'(href="#|url\(#){n}(?=["\)])', rf"\g<1>{prefix}{name}", svg)
        svg = re.sub(
            rf'(aria-(?:labelledby|describedby)="(?:[^"]* )?){n}(?=[" ])', rf"\g<1>{prefix}{name}", svg
        )
    return svg


def columns(line: str) -> int:
    "The width of a line in a terminal."
    wide = sum(east_asian_width(c) in "WF" for c in line)
    return len(line.expandtabs(4)) + wide


def wrapped_lines(text: str) -> str:  # HTML
    "Text whose long lines wrap on a phone, and go on deeper than they begin."
    parts = []
    for line in text.split("\n"):
        shown, indent = html.escape(line, quote=False), len(line) - len(line.lstrip(" "))
        long = len(line) > WRAPPED
        parts.append(f'<span class="w" style="--n:{indent}">{shown}\n</span>' if long else f"{shown}\n")
    return "".join(parts).removesuffix("\n")


ALIGNED = re.compile(r"\S( {2,}|\t)\S|[─-╿▀-▟^~]{2}|[│┃]")  # columns, boxes, marks below letters


def printed_text(
    text: str,  # What a cell printed, or the text of its value
) -> str:  # Markdown
    "A text output: its long lines wrap, unless they are aligned with others; those get smaller letters."
    text = ANSI.sub("", text).rstrip("\n")
    if not ALIGNED.search(text):
        return fence(text, ".out .out-text .wraps")
    widths = [columns(line) for line in text.split("\n")]
    style = f'style="--cols:{max(widths)}"'
    too_wide = sum(width > LETTERS for width in widths)
    # help of a command, and a few long lines: they wrap like those of code
    if text.startswith("Usage: ") or 0 < too_wide <= max(4, len(widths) // 2):
        body = wrapped_lines(text)
        return raw_html(f'<pre class="out out-text wraps" {style} tabindex="0"><code>{body}</code></pre>')
    return fence(text, f".out .out-text {style}")


SIZED = re.compile(r'(<svg\b[^>]*? width=(\\?")(\d+)[\d.]*\2[^>]*? style=\2)')


def sized(
    markup: str,  # An output, with diagrams in it or in the data of a stepper
) -> str:  # Their style names their width, so that a narrow page can scale them as far as they stay legible
    "Tell the style sheet how wide diagrams are."
    return SIZED.sub(r"\1--w:\3px;", markup)


def figure(
    picture: str,  # An `<img>` or `<svg>` element
    options: dict,  # The cell's options; `fig-cap` becomes the caption
) -> str:
    "A picture with its caption."
    cap = options.get("fig-cap", "")
    return raw_html(
        f"<figure>{picture}" + (f"<figcaption>{html.escape(cap)}</figcaption>" if cap else "") + "</figure>"
    )


def render_data(
    data: dict,  # MIME type to content, as stored in the notebook
    options: dict,
    prefix: str,  # For the ids inside an SVG
) -> str:
    "The richest form of one output that a page can show."
    alt = html.escape(str(options.get("fig-alt") or options.get("fig-cap") or ""))
    if "text/html" in data:
        markup = joined(data["text/html"])
        if docsite_steppers.has_stepper(markup):
            markup = docsite_steppers.without_own(markup)
        markup = re.sub(r"(?<=<th>)\w+(?=</th>)", lambda m: m[0].replace("_", "_<wbr>"), markup)
        return div(raw_html(private_ids(sized(markup), prefix)), "out", "out-html")
    if "image/svg+xml" in data:
        svg = re.sub(r"^\s*(<\?xml.*?\?>|<!DOCTYPE.*?>|\s)*", "", joined(data["image/svg+xml"]), flags=re.S)
        if "<title" not in svg and "aria-label" not in svg:
            if not alt:
                raise ValueError(
                    "a figure has no words for those who cannot see it; add `#| fig-alt:` to its cell"
                )
            svg = re.sub(r"<svg\b", f'<svg role="img" aria-label="{alt}"', svg, count=1)
        return div(figure(private_ids(svg, prefix), options), "out", "out-figure")
    if "image/png" in data:
        if not alt:
            raise ValueError(
                "a picture has no words for those who cannot see it; add `#| fig-alt:` to its cell"
            )
        src = "data:image/png;base64," + joined(data["image/png"]).replace("\n", "")
        return div(figure(f'<img alt="{alt}" src="{src}">', options), "out", "out-figure")
    for kind in ("text/markdown", "text/latex"):
        if kind in data:
            return div(joined(data[kind]), "out", "out-markdown")
    return printed_text(joined(data["text/plain"])) if "text/plain" in data else ""


def render_outputs(cell, options: dict, prefix: str) -> str:
    "All outputs of a cell; neighbouring prints become one block."
    if options.get("output") is False:
        return ""
    parts, printed = [], []

    def flush():
        if printed:
            parts.append(printed_text("".join(printed)))
            printed.clear()

    for i, out in enumerate(cell.get("outputs", [])):
        if out["output_type"] == "stream":
            printed.append(joined(out["text"]))
            continue
        flush()
        if out["output_type"] == "error":
            parts.append(fence(ANSI.sub("", "\n".join(out["traceback"])), ".out .out-error"))
        elif options.get("output") == "asis" and "text/markdown" in out["data"]:
            parts.append(joined(out["data"]["text/markdown"]))
        else:
            parts.append(render_data(out["data"], options, f"{prefix}-{i}-"))
    flush()
    return "\n\n".join(parts)


def shown_sources(
    nb,  # A notebook after nbdev's processors
) -> set[str]:  # Names of functions and classes
    "What the page shows as source; its comments describe the parameters, so that the card need not repeat them."
    names = set()
    for cell in nb.cells:
        if cell.cell_type == "code":
            options, code = split_options(cell["source"])
            if options.get("code-fold") == "show" and options.get("include") is not False:
                names |= set(re.findall(r"^(?:def|class) (\w+)", code, flags=re.M))
    return names


def only_heading(
    card: str,  # Markdown of a `show_doc`
) -> str:
    "The name and the link to the source."
    return "\n\n".join(re.findall(r"^#+ .*$|^\[source\]\(.*$", card, flags=re.M))


def render_code(
    cell,  # A code cell
    number: int,  # Its place in the notebook
    *,
    runs: bool = False,  # Can the page run it? Then it has the cell's id.
    sources: Collection[str] = (),  # Functions and classes whose source the page shows
) -> str:
    "One code cell with its outputs."
    options, code = split_options(cell["source"])
    if options.get("include") is False:
        return ""
    outputs = render_outputs(cell, options, f"cell{number}")
    if code.startswith("show_doc("):
        if not outputs:
            return ""
        name = re.match(r"show_doc\(\s*([\w.]+)", code)[1]
        return (
            div(only_heading(outputs), "show-doc", "short") if name in sources else div(outputs, "show-doc")
        )
    shown = ""
    if code and options.get("echo") is not False:
        shown = fence(code, f".{cell.get('metadata', {}).get('language', 'python')}")
        fold = options.get("code-fold")
        if fold not in (None, False, "show"):
            summary = html.escape(str(options.get("code-summary") or "Code"))
            shown = (
                raw_html(f'<details class="fold"><summary>{summary}</summary>')
                + "\n"
                + shown
                + "\n"
                + raw_html("</details>")
            )
    data = {"cell": cell["id"]} if runs and shown else {}
    return div(f"{shown}\n\n{outputs}", "cell", **data) if shown or outputs else ""


def page_markdown(
    nb,  # A notebook after nbdev's processors
    *,
    runs: bool = False,  # Can the page run its cells?
) -> str:  # Markdown for pandoc, without the title
    "The whole notebook as one text, so that a callout may open in one cell and close in another."
    parts, sources = [], shown_sources(nb)
    for i, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown" and not joined(cell.source).startswith(
            "<!-- WARNING: THIS FILE WAS AUTOGENERATED"
        ):
            parts.append(joined(cell.source))
        elif cell.cell_type == "code":
            parts.append(render_code(cell, i, runs=runs, sources=sources))
    return "\n\n".join(p for p in parts if p.strip()) + "\n"
