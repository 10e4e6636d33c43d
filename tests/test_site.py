"""The docs site: every page is there, every link and anchor resolves, nothing comes from elsewhere, every figure has words."""

import configparser
import html.parser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from notebooks import CHAPTERS, dev_module

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
SITE_PY = ROOT / "dev" / "docsite.py"
MISSING = [
    name for name in ("nbdev", "pypandoc", "pagefind", "yaml") if importlib.util.find_spec(name) is None
]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"the docs site needs {', '.join(MISSING)}: pip install -e '.[dev]'"
)


def site_py(*args, **kwargs) -> subprocess.CompletedProcess:
    "Run dev/docsite.py."
    return subprocess.run(
        [sys.executable, str(SITE_PY), *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        **kwargs,
    )


def notebooks() -> list[Path]:
    "Every notebook that must become a page, relative to nbs/."
    found = (p.relative_to(NBS) for p in NBS.rglob("*.ipynb"))
    return sorted(p for p in found if not any(part[0] in "._" for part in p.parts))


class PageReader(html.parser.HTMLParser):
    "What the checks need from one page: ids, links, loaded files, figures, the sidebar."

    def __init__(self, path: Path):
        super().__init__()
        self.ids = []
        self.links = []
        self.loads = []
        self.figures = []
        self.sidebar = []
        self.in_pages, self.svg = False, None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if "id" in a:
            self.ids.append(a["id"])
        if tag == "nav":
            self.in_pages = a.get("id") == "site--pages"
        if tag == "a" and "href" in a:
            self.links.append(a["href"])
            if self.in_pages:
                self.sidebar.append(a["href"])
        if tag == "link" or "src" in a:
            self.loads.append(a.get("src") or a["href"])
        if tag == "img":
            self.figures.append((a.get("src", "")[:60], bool(a.get("alt"))))
        if tag == "svg" and self.svg is None:
            self.svg = bool(a.get("aria-label")) or a.get("aria-hidden") == "true"
        if tag == "title" and self.svg is False:
            self.svg = True

    def handle_endtag(self, tag):
        if tag == "nav":
            self.in_pages = False
        if tag == "svg" and self.svg is not None:
            self.figures.append(("svg", self.svg))
            self.svg = None


class ProseReader(html.parser.HTMLParser):
    """The words of a page, block by block: no code, formulas, figures, or output of cells.

    The cells of a table that document a function are apart."""

    BLOCKS = {"p", "li", "h1", "h2", "h3", "h4", "td", "th", "figcaption", "summary", "dt", "dd", "div"}
    SKIPPED = {"code", "pre", "script", "style", "svg", "math", "nav", "title"}
    VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}

    def __init__(self, text: str):
        super().__init__()
        self.open, self.blocks = [], [""]
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "meta" and a.get("name") == "description":
            self.blocks.append(a.get("content", ""))
        if tag in self.VOID:
            return
        self.open.append((tag, "output" in (a.get("class") or "")))
        if tag in self.BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass
        if tag in self.BLOCKS:
            self.blocks.append("")

    def handle_data(self, data):
        if not any(tag in self.SKIPPED or output for tag, output in self.open):
            self.blocks[-1] += data
        elif self.open[-1][0] in ("code", "math"):
            self.blocks[-1] += "\u200b"  # something stands there, on which an asterisk could lean


MARKUP = re.compile(
    r"""
    (?<=[^\s*+/])\*+ | (?<!\*)\*+(?=[^\s*/+=)])           # asterisks that lean on a word: emphasis not closed, or nested
    | \w\^ | \^[\w(]                                       # a power that is no formula
    | `                                                     # code that was not closed
    | \]\( | \[\]                                          # a link within a link
    | :::                                                   # a callout that was not closed
    | (?<!\w)__?\w[^_\s]*_(?!\w)                           # emphasis with underscores
    | \$[^$\s](?:[^$]*[^$\s])?\$(?!\d)                     # a formula that was not set
""",
    re.VERBOSE,
)
PYTHON = re.compile(
    r"\*{1,2}\w+( \u200b)?|.*\w\*\*\w.*|.*\(\w+ \* \d+,\).*|__\w+__"
)  # how tables of parameters spell what a function takes, and powers


def left_markup(text: str) -> list[str]:
    "Marks that a reader should not see, each with what stands around it."
    return [
        block[max(0, m.start() - 30) : m.end() + 30]
        for raw in ProseReader(text).blocks
        for block in [" ".join(raw.split())]
        if not PYTHON.fullmatch(block)
        for m in MARKUP.finditer(block)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<p>what is bugs* cut into?*</p>",
        "<p>the first *n* of them</p>",
        "<p>it has 2^(<em>n</em> − 1) cuts</p>",
        "<p>below 2^32</p>",
        "<p>e^<em>d</em> times</p>",
        "<p>an `open one</p>",
        '<p>as <a href="x">[<code>f</code>](https://example.org)</a> does</p>',
        "<p>::: {.callout-tip}</p>",
        "<p>an _old_ way</p>",
        "<li>**bold words</li>",
        '<meta name="description" content="of *n*">',
        "<td>2^64</td>",
        "<p>Pieces <code>a</code>* and so on</p>",
        "<p>a score of $s$ nats</p>",
        "<p>the sum $\\sum_i p_i$</p>",
    ],
)
def test_markup_that_is_left_is_found(text):
    assert left_markup(text)


@pytest.mark.parametrize(
    "text",
    [
        "<p>what is <em>bugs</em> cut into?</p>",
        "<p><code>a*b</code> and <code>2**3</code></p>",
        "<pre>2^3 *x*</pre>",
        "<p>by + - * / alone</p>",
        "<p>2³²</p>",
        "<p><math><mi>x</mi><mo>^</mo></math></p>",
        "<td>**options</td>",
        "<td>*args</td>",
        "<td>From 0 to 2**63-1</td>",
        "<td>(pages * 256,) uint32</td>",
        '<div class="cell-output"><p>ex**are*s^t</p></div>',
        "<script>a*b*c</script>",
        "<p>snake_case names, [CLS] and a list [1] (2)</p>",
        "<p>An img <img src='*a*'> and a line<br>break</p>",
        "<p>from $5 to $10, and $ alone</p>",
        "<p><code>$HOME/$USER</code></p>",
    ],
)
def test_what_is_no_markup_is_left_alone(text):
    assert left_markup(text) == []


def test_code_is_highlighted_line_by_line_and_stays_the_same():
    cells = dev_module("docsite_cells")
    code = 'def f(x):\n    """One line,\n    and another."""\n\n    return f"{x}" + \'a\\n\'  # <a long comment> about what is returned\n'
    page = cells.painted(code, "python")
    assert html.unescape(re.sub(r"<[^>]+>", "", page)).rstrip("\n") == code.rstrip("\n")
    assert page.count('<span class="w" style="--n:4">') == 1
    for language, text in [("text", "a\n\nb"), ("json", "{}"), ("python", ""), ("bash", "x\n  y")]:
        assert re.sub(r"<[^>]+>", "", cells.painted(text, language)).rstrip("\n") == text


@pytest.fixture(scope="module")
def out(built_site) -> Path:
    "The built site."
    return built_site


@pytest.fixture(scope="module")
def pages(out) -> dict[str, PageReader]:
    "Every page, by its path in the site."
    return {p.relative_to(out).as_posix(): PageReader(p) for p in sorted(out.rglob("*.html"))}


def expected_page(notebook: Path) -> str:
    "nbdev's rule: the number goes, the rest stays."
    return (
        notebook.with_name(re.sub(r"^\d+[a-zA-Z0-9]*_", "", notebook.name.lower()))
        .with_suffix(".html")
        .as_posix()
    )


def test_long_lines_of_outputs_wrap_unless_they_are_aligned():
    printed_text = dev_module("docsite_cells").printed_text
    for text in ("['a', 'b']", "{'a': 1,\n 'b': [2,\n       3]}\n", "a sentence.  And"):
        assert (".wraps" in printed_text(text)) == ("  A" not in text), text
    for text in ("name    size\na          1", "a\tb", "│ a │", "x = (\n    ^^^"):
        assert ".wraps" not in printed_text(text) and ".out-text" in printed_text(text), text
    assert "\x1b" not in printed_text("\x1b[31mred\x1b[0m")
    assert "--cols:20" in printed_text("name    size\na          1234567890"[:-1])
    assert "--cols:9" in printed_text("a   b\n東京   cc")  # two columns for each of these characters


def test_help_of_a_command_wraps_like_code():
    text = "Usage: x [OPTIONS]\n\n    x <file>    a line that is longer than a phone is wide\n"
    page = dev_module("docsite_cells").printed_text(text)
    assert page.count('<span class="w" style="--n:4">') == 1
    assert html.unescape(re.sub(r"</?(?:pre|code|span)[^>]*>", "", page)).strip("`{=html}\n ") == text.strip()


def test_of_aligned_lines_only_a_table_keeps_lines_too_long_for_a_page():
    printed_text = dev_module("docsite_cells").printed_text
    row = "name" + "  12345" * 20
    assert "wraps" in printed_text(f"{row}\nshort  1")
    assert "wraps" not in printed_text("\n".join([row] * 5))


def test_diagrams_name_their_width_also_in_the_data_of_a_stepper():
    sized = dev_module("docsite_cells").sized
    svg = '<svg role="img" width="320" height="9" style="font-size:14px"><rect width="5"/></svg>'
    assert sized(svg) == svg.replace('style="', 'style="--w:320px;')
    assert json.loads(sized(json.dumps([svg]))) == [sized(svg)]
    assert sized('<svg viewBox="0 0 1 1"></svg>') == '<svg viewBox="0 0 1 1"></svg>'


@pytest.mark.slow
def test_every_notebook_has_a_page(pages):
    assert set(pages) - {"404.html"} == {expected_page(nb) for nb in notebooks()}


def broken_links(out: Path, pages: dict[str, PageReader], base: str) -> list[str]:
    "Links and loaded files that lead nowhere; `base` is the path at which the site is served."
    broken = []
    for name, page in pages.items():
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme:
                continue
            path = parts.path
            if path.startswith(
                base
            ):  # the page for lost readers is shown at any depth: its links are absolute
                file = out / path.removeprefix(base)
            else:
                file = (out / name).parent / unquote(path) if path else out / name
            target = os.path.relpath(file, out)
            if not file.is_file():
                broken.append(f"{name}: {url}: no such file")
            elif parts.fragment and unquote(parts.fragment) not in pages[Path(target).as_posix()].ids:
                broken.append(f"{name}: {url}: no such anchor")
    return broken


@pytest.mark.slow
def test_every_internal_link_and_anchor_resolves(out, pages):
    settings = (ROOT / "_quarto.yml").read_text(encoding="utf-8")
    base = urlsplit(re.search(r'site-url: "([^"]+)"', settings)[1]).path + "/"
    assert not (broken := broken_links(out, pages, base)), "\n".join(broken)


def test_a_broken_page_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<p id="top"><a href="b.html#end">b</a></p>', encoding="utf-8")
    (tmp_path / "b.html").write_text(
        '<p><a href="a.html#top">good</a> <a href="a.html#bottom">no anchor</a> <a href="c.html">no page</a>'
        ' <a href="/site/a.html">from the top</a> <a href="/site/d.html">lost</a></p><h2 id="end"></h2>'
        '<img src="x.png"><img src="data:," alt="a picture">'
        '<svg></svg><svg aria-label="a drawing"></svg><svg><title>another</title></svg>',
        encoding="utf-8",
    )
    pages = {name: PageReader(tmp_path / name) for name in ("a.html", "b.html")}
    assert broken_links(tmp_path, pages, "/site/") == [
        "b.html: a.html#bottom: no such anchor",
        "b.html: c.html: no such file",
        "b.html: /site/d.html: no such file",
        "b.html: x.png: no such file",
    ]
    assert silent_figures(pages) == [("b.html", "x.png"), ("b.html", "svg")]


@pytest.mark.slow
def test_no_markup_is_left_in_prose(out):
    found = {
        p.relative_to(out).as_posix(): left
        for p in sorted(out.rglob("*.html"))
        if (left := left_markup(p.read_text(encoding="utf-8")))
    }
    assert found == {}, "\n".join(f"{page}: {left}" for page, left in found.items())


@pytest.mark.slow
def test_ids_are_unique_in_a_page(pages):
    twice = {name: sorted({i for i in p.ids if p.ids.count(i) > 1}) for name, p in pages.items()}
    assert not {k: v for k, v in twice.items() if v}


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(out, pages):
    remote = [
        (name, url[:80])
        for name, p in pages.items()
        for url in p.loads
        if urlsplit(url).scheme not in ("", "data") or url.startswith("//")
    ]
    assert not remote
    for sheet in [*out.glob("*.css"), *out.glob("*.js")]:
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//|https?://", text), sheet.name


@pytest.mark.slow
def test_no_local_paths_addresses_or_dates(out, pages):
    local = re.compile(
        rf"{re.escape(str(ROOT))}\b|file://|/home/\w+/|/Users/\w+/|<ipython-input|\bat 0x[0-9a-f]{{6,}}|/tmp/(?:tmp|pytest|bash)"
    )
    for name in pages:
        found = local.search((out / name).read_text(encoding="utf-8"))
        assert not found, f"{name}: {found[0]}"


@pytest.mark.slow
def test_sidebar_has_every_page_once_and_chapters_whole(pages):
    order = pages["index.html"].sidebar
    assert order[0] == "index.html" and len(order) == len(set(order)) == len(notebooks())
    for chapter in CHAPTERS:
        here = {expected_page(nb) for nb in notebooks() if nb.parts[0] == chapter}
        begin = min(map(order.index, here))
        assert here == set(order[begin : begin + len(here)])


@pytest.mark.slow
def test_only_the_groups_of_the_page_are_open(out):
    text = (out / "text" / "normalizers.html").read_text(encoding="utf-8")
    groups = re.findall(r'<details class="(?:group|chapter-pages)"( open)?>\s*<summary>(.*?)</summary>', text)
    assert [name for is_open, name in groups if is_open] == ["Inside", "Text"]
    assert [name for _, name in groups][:2] == ["Start", "Learn"]


@pytest.mark.slow
def test_a_title_is_the_same_in_the_sidebar_and_on_the_page(out, pages):
    label = dict(
        re.findall(
            r'<li><a href="([^"]+)"(?: aria-current="page")?>(.*?)</a></li>',
            (out / "index.html").read_text(encoding="utf-8"),
        )
    )
    for name in pages.keys() - {"404.html"}:
        heading = re.search(r"<h1>(.*?)</h1>", (out / name).read_text(encoding="utf-8"))[1]
        assert label[name] == re.sub(r"</?code>", "", heading), name


def title(notebook: Path) -> str:
    "The first heading of a notebook, relative to nbs/."
    cells = json.loads((NBS / notebook).read_text(encoding="utf-8"))["cells"]
    return "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ").replace("`", "")


def prose(notebook: str) -> str:
    "All markdown of a notebook."
    cells = json.loads((NBS / notebook).read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def test_the_list_of_all_pages_has_their_titles():
    listed = re.findall(r"^\| \[(.+?)\]\(\.\./(.+?)\)", prose("book/pages.ipynb"), flags=re.M)
    assert {page for _, page in listed} == {nb.as_posix() for nb in notebooks() if nb.parts[0] in CHAPTERS}
    assert {page: text for text, page in listed} == {page: title(Path(page)) for _, page in listed}


def test_chapters_have_one_name_in_the_sidebar_on_the_home_page_and_in_the_list_of_all_pages():
    sidebar = {
        folder: name
        for name, folder in re.findall(
            r'section: "(.+?)"\s+contents:\s+(?:- |")(\w+)/',
            (ROOT / "_quarto.yml").read_text(encoding="utf-8"),
        )
    }
    home = re.findall(r"^\| \[(.+?)\]\((\w+)/\S+\.ipynb\) \|", prose("index.ipynb"), flags=re.M)
    assert {folder: name for name, folder in home} == {chapter: sidebar[chapter] for chapter in CHAPTERS}
    headings = re.findall(r"^## (.+)$", prose("book/pages.ipynb"), flags=re.M)
    assert [name for name in headings if name in sidebar.values()] == [sidebar[c] for c in CHAPTERS]


def silent_figures(pages: dict[str, PageReader]) -> list[tuple[str, str]]:
    "Pictures without words for those who cannot see them."
    return [(name, what) for name, p in pages.items() for what, words in p.figures if not words]


@pytest.mark.slow
def test_every_figure_has_words(pages):
    assert not silent_figures(pages)


@pytest.mark.slow
def test_search_index_holds_every_page(out, pages):
    assert (out / "pagefind" / "pagefind.js").is_file()
    assert (
        len(list((out / "pagefind" / "fragment").glob("*.pf_fragment"))) == len(pages) - 1
    )  # not the 404 page


@pytest.mark.slow
def test_links_point_at_the_repository_of_settings_ini(out):
    ini = configparser.ConfigParser(delimiters=["="])
    ini.read(ROOT / "settings.ini", encoding="utf-8")
    cfg, text = ini["DEFAULT"], (ROOT / "_quarto.yml").read_text(encoding="utf-8")
    assert f'repo-url: "{cfg["git_url"]}"' in text and f"repo-branch: {cfg['branch']}" in text
    assert f'site-url: "{cfg["doc_host"]}{cfg["doc_baseurl"]}"' in text
    assert f'title: "{cfg["title"]}"' in text and f'description: "{cfg["description"]}"' in text


def test_readme_is_in_sync():
    done = site_py("readme", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_that_is_no_site_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("do not lose me")
    done = site_py("build", "--out", tmp_path)
    assert done.returncode != 0 and "holds something else" in done.stderr
    assert (tmp_path / "thesis.txt").read_text() == "do not lose me"


@pytest.fixture
def small_project(tmp_path) -> Path:
    "A copy of the project with one notebook, whose second cell a test may fill."
    for name in ("settings.ini", "_quarto.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "dev", tmp_path / "dev", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "subword_nb", tmp_path / "subword_nb", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "nbs").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "kind, source, complaint",
    [
        ("markdown", "See [a page](99_nowhere.ipynb).", "leads nowhere"),
        pytest.param("markdown", "::: {.callout-note}\nnever closed", "pandoc", marks=pytest.mark.slow),
        pytest.param(
            "code",
            "#| export\nraise ValueError('no such page')",
            "no such page",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_failed_build_says_why_and_leaves_the_old_site(small_project, kind, source, complaint):
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Home\n> A page."},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": "#| default_exp home",
        },
        {"cell_type": kind, "id": "c", "metadata": {}, "source": source, **code},
    ]
    meta = {"kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}}
    nb = {"cells": cells, "metadata": meta, "nbformat": 4, "nbformat_minor": 5}
    (small_project / "nbs" / "index.ipynb").write_text(json.dumps(nb))
    old = small_project / "_site"
    old.mkdir()
    (old / ".nojekyll").touch()
    (old / "index.html").write_text("the old site")
    done = subprocess.run(
        [sys.executable, str(small_project / "dev" / "docsite.py"), "build"],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode != 0 and complaint in done.stderr
    assert (old / "index.html").read_text() == "the old site"
    assert not list(small_project.glob(".site-*"))
