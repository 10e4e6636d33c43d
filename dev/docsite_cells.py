"""From the cells of a notebook that nbdev has processed to one markdown text for pandoc.

nbdev takes away what is hidden and adds the `show_doc` cells; the cell options that Quarto knows
(`echo`, `output`, `include`, `code-fold`, `code-summary`, `fig-cap`, `fig-alt`) are still in the sources, and are read here.
"""
import html
import re

import yaml

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


def div(
    content: str,
    *classes: str,
) -> str:  # A fenced div; blank lines keep it apart from its neighbours
    "Wrap markdown in a div."
    return f"\n::: {{{' '.join('.' + c for c in classes)}}}\n\n{content}\n\n:::\n"


def joined(value) -> str:
    "Notebook text: stored as one string or as a list of lines."
    return value if isinstance(value, str) else "".join(value)


def private_ids(
    svg: str,
    prefix: str,  # Unique in the page
) -> str:
    "Prefix the ids of an SVG, and what refers to them, so that two figures never share one."
    names = re.findall(r'\bid="([^"]+)"', svg)
    for name in sorted(set(names), key=len, reverse=True):
        n = re.escape(name)
        svg = re.sub(rf'\bid="{n}"', f'id="{prefix}{name}"', svg)
        svg = re.sub(rf'(href="#|url\(#){n}(?=["\)])', rf"\g<1>{prefix}{name}", svg)
        svg = re.sub(rf'(aria-(?:labelledby|describedby)="(?:[^"]* )?){n}(?=[" ])', rf"\g<1>{prefix}{name}", svg)
    return svg


def figure(
    picture: str,  # An `<img>` or `<svg>` element
    options: dict,  # The cell's options; `fig-cap` becomes the caption
) -> str:
    "A picture with its caption."
    cap = options.get("fig-cap", "")
    return raw_html(f"<figure>{picture}" + (f"<figcaption>{html.escape(cap)}</figcaption>" if cap else "") + "</figure>")


def render_data(
    data: dict,  # MIME type to content, as stored in the notebook
    options: dict,
    prefix: str,  # For the ids inside an SVG
) -> str:
    "The richest form of one output that a page can show."
    alt = html.escape(str(options.get("fig-alt") or options.get("fig-cap") or ""))
    if "text/html" in data:
        return div(raw_html(private_ids(joined(data["text/html"]), prefix)), "out", "out-html")
    if "image/svg+xml" in data:
        svg = re.sub(r"^\s*(<\?xml.*?\?>|<!DOCTYPE.*?>|\s)*", "", joined(data["image/svg+xml"]), flags=re.S)
        if "<title" not in svg and "aria-label" not in svg:
            if not alt:
                raise ValueError("a figure has no words for those who cannot see it; add `#| fig-alt:` to its cell")
            svg = re.sub(r"<svg\b", f'<svg role="img" aria-label="{alt}"', svg, count=1)
        return div(figure(private_ids(svg, prefix), options), "out", "out-figure")
    if "image/png" in data:
        if not alt:
            raise ValueError("a picture has no words for those who cannot see it; add `#| fig-alt:` to its cell")
        src = "data:image/png;base64," + joined(data["image/png"]).replace("\n", "")
        return div(figure(f'<img alt="{alt}" src="{src}">', options), "out", "out-figure")
    for kind in ("text/markdown", "text/latex"):
        if kind in data:
            return div(joined(data[kind]), "out", "out-markdown")
    return fence(ANSI.sub("", joined(data["text/plain"])), ".out .out-text") if "text/plain" in data else ""


def render_outputs(cell, options: dict, prefix: str) -> str:
    "All outputs of a cell; neighbouring prints become one block."
    if options.get("output") is False:
        return ""
    parts, printed = [], []

    def flush():
        if printed:
            parts.append(fence(ANSI.sub("", "".join(printed)).rstrip("\n"), ".out .out-text"))
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


def render_code(
    cell,  # A code cell
    number: int,  # Its place in the notebook
) -> str:
    "One code cell with its outputs."
    options, code = split_options(cell["source"])
    if options.get("include") is False:
        return ""
    outputs = render_outputs(cell, options, f"cell{number}")
    if code.startswith("show_doc("):
        return div(outputs, "show-doc") if outputs else ""
    shown = ""
    if code and options.get("echo") is not False:
        shown = fence(code, f".{cell.get('metadata', {}).get('language', 'python')} .code")
        fold = options.get("code-fold")
        if fold not in (None, False):
            summary = html.escape(str(options.get("code-summary") or "Code"))
            is_open = " open" if fold == "show" else ""
            shown = raw_html(f'<details class="fold"{is_open}><summary>{summary}</summary>') + "\n" + shown + "\n" + raw_html("</details>")
    return div(f"{shown}\n\n{outputs}", "cell") if shown or outputs else ""


def page_markdown(
    nb,  # A notebook after nbdev's processors
) -> str:  # Markdown for pandoc, without the title
    "The whole notebook as one text, so that a callout may open in one cell and close in another."
    parts = []
    for i, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown" and not joined(cell.source).startswith("<!-- WARNING: THIS FILE WAS AUTOGENERATED"):
            parts.append(joined(cell.source))
        elif cell.cell_type == "code":
            parts.append(render_code(cell, i))
    return "\n\n".join(p for p in parts if p.strip()) + "\n"
