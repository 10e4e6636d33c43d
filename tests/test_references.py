"""The page of references has every work that the pages cite, each is cited, and citations become links."""

import html
import json
import re
from pathlib import Path

import pytest
from notebooks import dev_module

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
NAME = r"(?:de )?[A-ZÁÄÖÜ][a-záäöüéčć]+"
CITATION = re.compile(rf"((?:{NAME}(?:(?:, {NAME})* and {NAME}| et al\.)?)),? \(?((?:19|20)\d\d)\b(?!-)")
NO_AUTHORS = {  # words with a capital before a year that cites nothing
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December", "In", "Since", "Until", "Before", "After", "Of", "By", "From", "Unicode"),
}


@pytest.fixture(scope="module")
def references():
    "The module that links citations."
    return dev_module("docsite_references")


@pytest.fixture(scope="module")
def works(references):
    "All works that are listed."
    return references.read_works(NBS / references.PAGE)


def prose(path: Path) -> str:
    "The markdown of a notebook, without code and without addresses."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", re.sub(r"```.*?```", "", text, flags=re.S))


def code(path: Path) -> str:
    "The code of a notebook, whose docstrings cite, too."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def cited() -> dict[tuple[str, str], set[str]]:
    "(authors, year) → the notebooks that cite it."
    found = {}
    for path in sorted(NBS.rglob("*.ipynb")):
        if path.name == "references.ipynb":
            continue
        for authors, year in CITATION.findall(prose(path)):
            if authors not in NO_AUTHORS:
                found.setdefault((authors, year), set()).add(path.relative_to(NBS).as_posix())
    return found


def test_every_citation_is_listed_and_every_work_is_cited(works):
    listed = {(name, work.year): work.key for work in reversed(works) for name in work.names}
    found = cited()
    assert not {c: pages for c, pages in found.items() if c not in listed}
    docstrings = {c for path in NBS.rglob("*.ipynb") for c in CITATION.findall(code(path)) if c in listed}
    assert {listed[c] for c in {*found, *docstrings}} == {work.key for work in works}


def test_every_page_of_another_site_that_is_linked_is_listed():
    address = re.compile(r"\]\((https?://[^)\s#]+)")
    ours, example = (
        "https://github.com/subword-nb/",
        re.compile(r"https?://(\w+\.example|127\.0\.0\.1|localhost)\b"),
    )
    pages = {
        path.relative_to(NBS).as_posix(): "\n".join(
            "".join(c["source"])
            for c in json.loads(path.read_text(encoding="utf-8"))["cells"]
            if c["cell_type"] == "markdown"
        )
        for path in sorted(NBS.rglob("*.ipynb"))
    }
    listed = tuple(address.findall(pages.pop("book/references.ipynb")))
    unlisted = {
        (page, link)
        for page, text in pages.items()
        for link in address.findall(text)
        if not link.startswith((ours, *listed)) and not example.match(link)
    }
    assert len(listed) > 90 and not unlisted


def test_works_have_one_anchor_each_and_a_title(references, works):
    text = prose(NBS / references.PAGE)
    assert len({work.key for work in works}) == len(works) == text.count("<a id=")
    assert [w.key for w in works] == sorted(w.key for w in works)


def test_citations_become_links_where_they_are_text(references, works):
    linked = references.citation_linker(works)

    def to(key, text):
        return f'<a class="cite" href="refs.html#{key}">{text}</a>'

    for text, want in (
        ("<p>(Kudo 2018)</p>", f"<p>({to('kudo-2018', 'Kudo 2018')})</p>"),
        ("Kudo (2018) says", f"{to('kudo-2018', 'Kudo (2018')}) says"),
        ("Kudo and Richardson (2018)", f"{to('kudo-richardson-2018', 'Kudo and Richardson (2018')})"),
        ("Sennrich et al., 2016", to("sennrich-2016", "Sennrich et al., 2016")),
        ("Sennrich et al. 2016", to("sennrich-2016", "Sennrich et al. 2016")),
        ("Sennrich et al.\u00a02016", to("sennrich-2016", "Sennrich et al.\u00a02016")),
        ("Kudo 2019, Kudos 2018", "Kudo 2019, Kudos 2018"),
        (
            '<script>["<svg>Kudo 2018<\\/svg>"]</script>Kudo 2018',
            f'<script>["<svg>Kudo 2018<\\/svg>"]</script>{to("kudo-2018", "Kudo 2018")}',
        ),
        ("<code>Kudo 2018</code><a href='x'>Kudo <b>2018</b> Kudo 2018</a>", None),
    ):
        assert linked(text, "refs.html") == (want or text)


@pytest.mark.slow
def test_no_citation_on_the_site_is_plain_text(built_site, works):
    listed = {(name, work.year) for work in works for name in work.names}
    plain, links = {}, 0
    for path in sorted(built_site.rglob("*.html")):
        _, start, text = path.read_text(encoding="utf-8").partition("<main")
        if not start or path.name == "references.html":
            continue
        links += text.count('class="cite"')
        text = re.sub(r"<(script|style|svg|math|pre|code|summary|h[1-4]|a)\b.*?</\1>", " ", text, flags=re.S)
        text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u00a0", " ")
        if found := listed.intersection(CITATION.findall(text)):
            plain[path.relative_to(built_site).as_posix()] = found
    assert links > 100 and not plain
