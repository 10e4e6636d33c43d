"""README.md out of nbs/index.ipynb: the author's markdown as it stands, code in fences, outputs as text.

The page is read on GitHub, so links lead to notebooks of the repository, and callouts become GitHub's alerts.
"""

import posixpath
import re
from pathlib import Path
from urllib.parse import urlsplit

from docsite_cells import ANSI, joined, split_options

NOTE = "<!-- Written from nbs/index.ipynb by `python dev/docsite.py readme`: edit the notebook, not this file. -->"
HIDDEN = {"hide", "export", "exporti", "default_exp"}
CALLOUT = re.compile(r"^::: *\{\.callout-(\w+)([^}]*)\}\n(.*?)\n:::$", flags=re.M | re.S)
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(?=[\s)])")


def repository_link(url: str, folder: str) -> str:
    "A link seen from nbs/ becomes one seen from the top of the repository."
    if urlsplit(url).scheme or url.startswith(("#", "/")):
        return url
    path, mark, anchor = url.partition("#")
    return posixpath.normpath(posixpath.join(folder, path)) + mark + anchor


def alert(m: re.Match) -> str:
    "A callout as GitHub's alert, or as a <details> block when it is collapsible."
    kind, attributes, content = m[1], m[2], m[3].strip("\n")
    title = re.search(r'title="([^"]*)"', attributes)
    if "collapse" in attributes:
        return f"<details>\n<summary>{title[1] if title else kind.capitalize()}</summary>\n\n{content}\n\n</details>"
    lines = ([f"**{title[1]}**", ""] if title else []) + content.splitlines()
    return "\n".join([f"> [!{kind.upper()}]", *("> " + line if line else ">" for line in lines)])


def prose(text: str, folder: str) -> str:
    "Markdown of a cell with its links and callouts as GitHub wants them; fenced code stays as it is."
    parts = re.split(r"(^```.*?^```[ ]*$)", text, flags=re.M | re.S)
    parts[::2] = [LINK.sub(lambda m: m[1] + repository_link(m[2], folder), p) for p in parts[::2]]
    return CALLOUT.sub(alert, "".join(parts))


def output_text(out) -> str:
    "One output as plain text; empty when it has none."
    text = (
        joined(out["text"])
        if out["output_type"] == "stream"
        else joined(out.get("data", {}).get("text/plain", ""))
    )
    return ANSI.sub("", text).rstrip("\n")


def code(cell) -> str:
    "A code cell: the source in a fence, what it prints in a second one."
    lines = cell.source.splitlines()
    words = {
        line[2:].strip().split()[0].rstrip(":")
        for line in lines
        if line.startswith("#|") and line[2:].strip()
    }
    options, source = split_options(
        "\n".join(line for line in lines if not line.startswith("#|") or ":" in line)
    )
    if words & HIDDEN or options.get("include") is False:
        return ""
    shown = f"```python\n{source}\n```" if source and options.get("echo") is not False else ""
    outputs = [] if options.get("output") is False else [output_text(o) for o in cell.outputs]
    printed = "\n".join(o for o in outputs if o)
    return "\n\n".join(p for p in (shown, f"```text\n{printed}\n```" if printed else "") if p)


def readme_text(
    notebook: Path,  # nbs/index.ipynb
    site: dict,  # The `website` part of _quarto.yml
) -> str:  # README.md
    "The whole text of the README."
    from execnb.nbio import read_nb

    parts = [
        prose(c.source, site["repo-subdir"]) if c.cell_type == "markdown" else code(c)
        for c in read_nb(notebook).cells
        if c.cell_type != "raw"
    ]
    return "\n\n".join([NOTE, *(p.strip("\n") for p in parts if p.strip())]) + "\n"
