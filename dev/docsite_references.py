"""Citations in the text, such as "Kudo 2018", become links to the page of references."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PAGE = "book/references.ipynb"  # the notebook that lists the works
ENTRY = re.compile(r'^\| <a id="([^"]+)"></a>(.+?) \((\d{4})\) \| ', re.M)
CLOSED = {"a", "code", "pre", "h1", "h2", "h3", "h4", "style", "svg", "math", "summary"}


@dataclass(frozen=True)
class Work:
    "A line of the page of references."

    key: str  # Its anchor
    surnames: tuple[str, ...]  # Of all authors
    year: str

    @property
    def names(self) -> list[str]:
        "How the text may name its authors."
        *others, last = self.surnames
        whole = f"{', '.join(others)} and {last}" if others else last
        return [whole, f"{self.surnames[0]} et al."] if len(self.surnames) > 2 else [whole]


def surname(
    name: str,  # Such as Wouter Kool or Gerard de Melo
) -> str:  # Such as Kool or de Melo
    "The name under which an author is cited."
    words = name.split()
    return " ".join(words[next((k for k, word in enumerate(words) if word[0].islower()), -1) :])


def read_works(
    notebook: Path,  # The page of references
) -> list[Work]:
    "All works of the page."
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return [
        Work(key, tuple(map(surname, re.split(r", | and ", authors))), year)
        for key, authors, year in ENTRY.findall(text)
    ]


def citation_linker(
    works: list[Work],
) -> Callable[[str, str], str]:  # (HTML, address of the page of references) → HTML
    "A function that turns citations into links."
    # of two works with one short name, it is the first one's
    keys = {(name, work.year): work.key for work in reversed(works) for name in work.names}
    names = "|".join(re.escape(name) for name in sorted({name for name, _ in keys}, key=len, reverse=True))
    # pandoc puts a no-break space after an abbreviation, "et al."
    citation = re.compile(rf"\b({names})(,?[ \u00a0])(\(?)(\d{{4}})\b")

    def linked(text: str, address: str) -> str:
        def link(m: re.Match) -> str:
            key = keys.get((m[1], m[4]))
            return f'<a class="cite" href="{address}#{key}">{m[0]}</a>' if key else m[0]

        out, inside = [], 0
        # the data of a stepper, in a script, has tags whose ends are escaped
        for part in re.split(r"(<script\b.*?</script>|<[^>]+>)", text, flags=re.S):
            tag = re.match(r"<(/?)(\w+)", part)
            if tag is None:
                out.append(part if inside else citation.sub(link, part))
                continue
            if tag[2].lower() in CLOSED and not part.endswith("/>"):
                inside += -1 if tag[1] else 1
            out.append(part)
        return "".join(out)

    return linked
