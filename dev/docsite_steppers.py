"""Steppers of the site share one script and one style; in a notebook each has its own."""

import re
from pathlib import Path

from subword_nb.core.stepper import draw_steps

OWN = re.compile(r"\n<style>(.*?)</style>|\n<script>(.*?)</script>", re.S)
HEAD = '<link rel="stylesheet" href="{root}stepper.css">\n<script src="{root}stepper.js" defer></script>\n</head>'


def has_stepper(markup: str) -> bool:
    "Does a page, or an output of a cell, have a stepper?"
    return '<div class="sw-steps"' in markup


def without_own(
    markup: str,  # An output that is a stepper
) -> str:  # Its data stay
    "Take its own script and style from a stepper."
    return OWN.sub("", markup)


def write_stepper(out: Path) -> None:
    "Write the script and the style of all steppers, as the package makes them."
    markup = draw_steps([("A frame.", {})], title="A stepper")._repr_html_()
    (style,), (script,) = (list(filter(None, found)) for found in zip(*OWN.findall(markup), strict=True))
    (out / "stepper.css").write_text(style.strip() + "\n", encoding="utf-8")
    # a lesson that runs calls it when it has drawn one
    code = f"globalThis.startSteppers = () => {{{script}}};\nglobalThis.startSteppers();\n"
    (out / "stepper.js").write_text(code, encoding="utf-8")


def with_stepper(
    page: str,  # A page as HTML
    root: str,  # Where the site begins, relative to the page
    *,
    always: bool = False,  # Also without a stepper: cells that run may draw one
) -> str:
    "Load the steppers' script and style where there is a stepper."
    return page.replace("</head>", HEAD.format(root=root), 1) if always or has_stepper(page) else page
