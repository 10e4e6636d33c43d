"""Render the notebooks as a website, and write README.md from nbs/index.ipynb.

    python dev/docsite.py build [--out _site]      the whole site, offline, without Quarto
    python dev/docsite.py playground --out FOLDER  only the playground's page and its files, in seconds
    python dev/docsite.py readme [--check]         README.md; --check writes nothing and fails when it is out of date

The way of a page: nbdev's own processors (hidden cells go, `show_doc` and links come) → one markdown text (docsite_cells.py)
→ pandoc with dev/docsite/template.html and filter.lua → links made relative → a search index by pagefind.
Title, order and links come from _quarto.yml, so that a place that has Quarto builds the same site from the same settings.
"""

import argparse
import configparser
import fnmatch
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import docsite_home
import docsite_lessons
import docsite_playground
import docsite_references
import docsite_search
import docsite_steppers
import yaml

from subword_nb.core.progress import progress_lines, track
from subword_nb.core.processes import cpu_count

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "docsite"
PICTURES = {".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"}
WORKERS = cpu_count()
NBDEV_JOB = """
from nbdev.doclinks import NbdevLookup, nbdev_export
from nbdev.serve import proc_nbs
nbdev_export()
if {lib!r} not in NbdevLookup().entries:
    raise SystemExit("nbdev does not know {lib}: install the project first, `pip install -e '.[dev]'`")
proc_nbs(n_workers={workers}, force=True)
"""


@dataclass
class Page:
    "A page of the site and where it came from."

    source: str  # Notebook, relative to nbs/, such as `bpe/00_reference.ipynb`
    target: str  # Page, relative to the site, such as `bpe.html`
    chapter: str  # The folder of a page that exports a module, else ""
    title: str  # The notebook's first heading
    lead: str  # The one-line promise below it


@dataclass
class Section:
    "A group of the sidebar."

    name: str
    entries: list  # Pages and sections, in reading order

    def pages(self) -> list[Page]:
        "All pages in it, in reading order."
        return [p for e in self.entries for p in ([e] if isinstance(e, Page) else e.pages())]


def run(command: list, **kwargs) -> str:
    "Run a program; when it fails, stop with all that it said."
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **kwargs)
    if done.returncode:
        raise SystemExit(
            f"{Path(str(command[0])).name} failed ({done.returncode}):\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
    sys.stderr.write(done.stderr)
    return done.stdout


def settings() -> configparser.SectionProxy:
    "settings.ini, the project's one sheet of facts."
    ini = configparser.ConfigParser(delimiters=["="])
    ini.read(ROOT / "settings.ini", encoding="utf-8")
    return ini["DEFAULT"]


def website() -> dict:
    "The `website` part of _quarto.yml."
    return yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))["website"]


# ---------------------------------------------------------------- notebooks to pages


def process_notebooks(
    work: Path,  # An empty folder
) -> Path:  # Folder of the processed notebooks
    "Run nbdev on a copy of the project, so that the project itself is never written to."
    cfg = settings()
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "_proc", "_docs")
    for name in (cfg["nbs_path"], cfg["lib_path"]):
        shutil.copytree(ROOT / name, work / name, ignore=ignore)
    ini = (ROOT / "settings.ini").read_text(encoding="utf-8")
    (work / "settings.ini").write_text(
        ini.rstrip() + "\nrenderer = docsite_showdoc.Entry\n", encoding="utf-8"
    )
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(work), str(HERE.parent)]),
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
    }
    env.pop("IN_TEST", None)
    print(
        run(
            [sys.executable, "-c", NBDEV_JOB.format(lib=cfg["lib_name"], workers=WORKERS)], cwd=work, env=env
        ),
        end="",
    )
    return work / "_proc"


def front_matter(nb) -> dict:
    "Title, description and output file as nbdev wrote them into the first cell."
    raw = next((c.source for c in nb.cells if c.cell_type == "raw"), "")
    return yaml.safe_load("".join(raw).strip().strip("-")) or {}


def read_pages(proc: Path) -> list[tuple[Page, object]]:  # Each page with its processed notebook
    "Every notebook of the processed folder; it is an error when nbdev lost one."
    from execnb.nbio import read_nb

    nbs = ROOT / settings()["nbs_path"]
    wanted = {
        p.relative_to(nbs).as_posix()
        for p in nbs.rglob("*.ipynb")
        if not any(q[0] in "._" for q in p.relative_to(nbs).parts)
    }
    found = {p.relative_to(proc).as_posix(): read_nb(p) for p in sorted(proc.rglob("*.ipynb"))}
    if wanted != set(found):
        raise SystemExit(f"nbdev processed {sorted(found)}, expected {sorted(wanted)}")
    pages, chapters = [], settings()["chapters"].split()
    for source, nb in found.items():
        fm = front_matter(nb)
        if "title" not in fm:
            raise SystemExit(f"{nbs.name}/{source} has no title; begin its first cell with `# Title`")
        target = posixpath.join(posixpath.dirname(source), fm["output-file"])
        pages.append(
            (
                Page(
                    source,
                    target,
                    source.partition("/")[0] if source.partition("/")[0] in chapters else "",
                    fm["title"],
                    fm.get("description", ""),
                ),
                nb,
            )
        )
    targets = [p.target for p, _ in pages]
    if len(set(targets)) < len(targets):
        raise SystemExit(
            f"two notebooks would become the same page: {sorted(t for t in targets if targets.count(t) > 1)}"
        )
    return pages


def sidebar_order(
    pages: dict[str, Page],  # By source
    contents: list,  # `website: sidebar: contents` of _quarto.yml
) -> list[Section]:  # In reading order, empty sections left out
    "Sort the pages into the sections of the sidebar; every page has one place."
    left = sorted(pages)

    def chosen(entry: str) -> list[Page]:
        glob = entry.lstrip("/")
        found = [s for s in left if fnmatch.fnmatchcase(s, glob) and s.count("/") == glob.count("/")]
        for source in found:
            left.remove(source)
        return [pages[s] for s in found]

    def section(entry: dict) -> Section:
        inner = entry["contents"] if isinstance(entry["contents"], list) else [entry["contents"]]
        entries = []
        for x in inner:
            if isinstance(x, str):
                entries += chosen(x)
            elif (part := section(x)).entries:
                entries.append(part)
        return Section(entry["section"], entries)

    sections = [s for s in map(section, contents) if s.entries]
    if left:
        raise SystemExit(f"no section of the sidebar in _quarto.yml takes {left}")
    return sections


# ---------------------------------------------------------------- one page


def site_link(
    url: str,  # As written in the notebook
    page: Page,
    targets: dict[str, str],  # Notebook or picture, relative to nbs/ → file of the site
    site: dict,  # The `website` part of _quarto.yml
) -> str:  # As it must be on that page
    "Turn links to notebooks and to our own site into relative ones, and links to other project files into links to the repository."
    if url.startswith(site["site-url"] + "/"):
        path, mark, anchor = url[len(site["site-url"]) + 1 :].partition("#")
    elif urlsplit(url).scheme or url.startswith(("#", "//")):
        return url
    else:
        path, mark, anchor = url.partition("#")
        source = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path))
        if source not in targets:
            file = posixpath.normpath(posixpath.join(site["repo-subdir"], source))
            if file.startswith("..") or not (ROOT / file).exists():
                raise SystemExit(f"{page.source}: the link `{url}` leads nowhere")
            return f"{site['repo-url']}/blob/{site['repo-branch']}/{file}{mark}{anchor}"
        path = targets[source]
    return posixpath.relpath(path, posixpath.dirname(page.target) or ".") + mark + anchor


def name_links(
    text: str,
    ids: dict[str, set[str]],  # Page → its anchors
    site: dict,
) -> str:
    "nbdev links every name it knows; keep the links whose page shows the name, or at least the class it belongs to."

    def keep(m: re.Match) -> str:
        for anchor in (m[2], m[2].rpartition(".")[0]):
            if anchor in ids.get(m[1], ()):
                return f'<a href="{site["site-url"]}/{m[1]}#{anchor}">{m[3]}</a>'
        return m[3]

    return re.sub(
        rf'<a href="{re.escape(site["site-url"])}/([^"#]+)#([^"]+)">(.*?)</a>', keep, text, flags=re.S
    )


def sidebar_item(p: Page, page: Page | None, href: str) -> dict:
    "A link of the sidebar; `page` is the one that has the sidebar."
    return {"href": href, "label": p.title.replace("`", ""), "here": p is page}


def sidebar_group(s: Section, page: Page | None, item: Callable) -> dict:
    "A group of the sidebar; it is open if the page is in it."
    entries = [
        {"link": item(e)} if isinstance(e, Page) else {"group": sidebar_group(e, page, item)}
        for e in s.entries
    ]
    return {"name": s.name, "open": page in s.pages(), "entry": entries}


def pandoc_variables(page: Page, sections: list[Section], site: dict) -> dict:
    "What the template needs to know about a page besides its text."
    home = posixpath.dirname(page.target) or "."
    order = [p for s in sections for p in s.pages()]
    at = order.index(page)

    def item(p: Page) -> dict:
        return sidebar_item(p, page, posixpath.relpath(p.target, home))

    variables = {
        "site": site["title"],
        "description": (page.lead or site["description"]).replace("`", ""),
        "pagetitle": site["title"]
        if page.source == "index.ipynb"
        else f"{page.title} · {site['title']}".replace("`", ""),
        "address": f"{site['site-url']}/{page.target}",
        "card": f"{site['site-url']}/card.png",
        "root": posixpath.relpath(".", home) + "/",
        "repo": site["repo-url"],
        "notebook": f"{site['repo-url']}/blob/{site['repo-branch']}/{site['repo-subdir']}/{page.source}",
        "chapter": page.chapter,
        "heading": page.title,
        "lead": page.lead,
        "section": [sidebar_group(s, page, item) for s in sections],
        "playground": page.source == docsite_playground.PAGE,
        "home": page.source == docsite_home.PAGE,
    }
    if page.source in docsite_lessons.LESSONS:
        cells = docsite_lessons.lesson_cells(ROOT / site["repo-subdir"] / page.source)
        variables["lesson"] = page.target.removesuffix(".html")
        variables["exercises"] = str(sum("check" in cell for cell in cells))
    if at:
        variables["previous"] = item(order[at - 1])
    if at + 1 < len(order):
        variables["next"] = item(order[at + 1])
    return variables


def escaped(value):
    "The same variables with their strings made safe for HTML; words in backticks become code."
    if isinstance(value, str):
        value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
        return re.sub(r"`([^`]+)`", r"<code>\1</code>", value)
    if isinstance(value, dict):
        return {k: escaped(v) for k, v in value.items()}
    return [escaped(v) for v in value] if isinstance(value, list) else value


def pandoc(
    markdown: str,
    variables: dict,
    work: Path,  # A folder; several pages may be made there at once
) -> str:
    "One page of HTML; a warning from pandoc is an error here."
    import pypandoc

    defaults = {
        "from": "markdown",
        "to": "html5",
        "standalone": True,
        "template": str(HERE / "template.html"),
        "filters": [str(HERE / "filter.lua")],
        "html-math-method": {"method": "mathml"},
        "syntax-highlighting": "none",  # see painted() in docsite_cells.py
        "table-of-contents": True,
        "toc-depth": 3,
        "columns": 10_000,
        "wrap": "preserve",
        "fail-if-warnings": True,
        "variables": escaped(variables),
    }
    with tempfile.TemporaryDirectory(dir=work) as own:
        sheet = Path(own) / "defaults.yaml"
        sheet.write_text(json.dumps(defaults), encoding="utf-8")
        return run([pypandoc.get_pandoc_path(), "--defaults", str(sheet)], input=markdown, cwd=own)


def render_page(page: Page, nb, sections: list, site: dict, work: Path) -> str:
    "One page of HTML, its links still as the author wrote them."
    from docsite_cells import page_markdown, painted_page

    try:
        runs = page.source in docsite_lessons.LESSONS
        text = pandoc(page_markdown(nb, runs=runs), pandoc_variables(page, sections, site), work)
    except (SystemExit, ValueError) as e:
        raise SystemExit(f"{page.source}: {e}") from e
    text = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", painted_page(text))  # it heads nothing
    return re.sub(
        r'<section id="([^"]*)"([^>]*>\s*<h\d)', r'<section\2 id="\1"', text
    )  # search looks for anchors on headings


def render_pages(
    pages: list,
    sections: list,
    targets: dict,
    site: dict,
    work: Path,
    top: str,  # What stands above the text of the home page
) -> dict[str, str]:  # Path → HTML
    "All pages, with links that hold on the site."
    with ThreadPoolExecutor(WORKERS) as pool:  # pandoc works, Python waits
        texts = pool.map(lambda p: render_page(*p, sections, site, work), pages)
        drafts = {
            page.target: text
            for (page, _), text in zip(
                pages, track(texts, total=len(pages), desc="rendering", unit="page"), strict=True
            )
        }
    ids = {target: set(re.findall(r'\bid="([^"]*)"', text)) for target, text in drafts.items()}
    works = ROOT / site["repo-subdir"] / docsite_references.PAGE
    linked = (
        docsite_references.citation_linker(docsite_references.read_works(works)) if works.exists() else None
    )
    for page, _ in pages:
        head, body, tail = re.split("<!-- /?text -->", drafts[page.target])
        body = name_links(body, ids, site)
        body = re.sub(
            r'\b(href|src)="([^"]*)"',
            lambda m, page=page: f'{m[1]}="{site_link(m[2], page, targets, site)}"',
            body,
        )
        if linked and page.source != docsite_references.PAGE:
            home = posixpath.dirname(page.target) or "."
            body = linked(body, posixpath.relpath(targets[docsite_references.PAGE], home))
        if page.source == docsite_home.PAGE:
            head += top
        root = posixpath.relpath(".", posixpath.dirname(page.target) or ".") + "/"
        runs = page.source in docsite_lessons.LESSONS
        whole = docsite_steppers.with_stepper(head + body + tail, root, always=runs)
        drafts[page.target] = (
            docsite_playground.with_policy(whole) if page.source == docsite_playground.PAGE else whole
        )
    return drafts


# ---------------------------------------------------------------- the site


def write_site(out: Path, work: Path, say: Callable) -> int:  # Number of pages
    "Write all pages, pictures, styles and the search index into an empty folder; `say` is told what is done next."
    say("reading the notebooks")
    proc, site = process_notebooks(work), website()
    pages = read_pages(proc)
    targets = {page.source: page.target for page, _ in pages}
    pictures = [p.relative_to(proc) for p in sorted(proc.rglob("*")) if p.suffix.lower() in PICTURES]
    targets |= {p.as_posix(): p.as_posix() for p in pictures}
    sections = sidebar_order({p.source: p for p, _ in pages}, site["sidebar"]["contents"])
    top = ""
    if docsite_playground.PAGE in targets:
        say("writing the playground")
        docsite_playground.write_playground(out)
        nbs, lessons = ROOT / site["repo-subdir"], [s for s in docsite_lessons.LESSONS if s in targets]
        docsite_lessons.write_lessons(out / "playground", nbs, {s: targets[s] for s in lessons})
        top = docsite_home.home_top(out / "playground")
    texts = render_pages(pages, sections, targets, site, work, top)
    for target, text in texts.items():
        (out / target).parent.mkdir(parents=True, exist_ok=True)
        (out / target).write_text(text, encoding="utf-8")
    for p in pictures:
        (out / p).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(proc / p, out / p)
    for name in ("style.css", "site.js", "home/home.css", "home/strip.js"):
        shutil.copyfile(HERE / name, out / Path(name).name)
    docsite_steppers.write_stepper(out)
    docsite_home.write_card(out / "card.png")
    say("making the search index")
    titles = docsite_search.search_list(sections, texts)
    listed = json.dumps(titles, ensure_ascii=False)
    (out / "pages.js").write_text(f"globalThis.sitePages = {listed};\n", encoding="utf-8")
    run([sys.executable, "-m", "pagefind", "--site", str(out), "--include-characters", "_", "--quiet"])
    for extra in [*(out / "pagefind").glob("*ui.*"), out / "pagefind" / "pagefind-highlight.js"]:
        extra.unlink()  # pagefind's own search boxes: ours is in site.js
    # written after the index, which must not have it
    (out / "404.html").write_text(lost_page(sections, site, work), encoding="utf-8")
    (out / ".nojekyll").touch()  # GitHub Pages serves the files as they are
    return len(pages)


def lost_page(sections: list[Section], site: dict, work: Path) -> str:
    "The page for an address that leads nowhere: it may be shown at any depth, so all its links begin at the top."
    from docsite_cells import painted_page

    root = urlsplit(site["site-url"]).path + "/"
    title = "No such page"
    variables = {
        "site": site["title"],
        "description": site["description"],
        "pagetitle": f"{title} · {site['title']}",
        "address": f"{site['site-url']}/404.html",
        "card": f"{site['site-url']}/card.png",
        "root": root,
        "repo": site["repo-url"],
        "heading": title,
        "lead": "Nothing is at this address. The page may have been renamed.",
        "section": [
            sidebar_group(s, None, lambda p: sidebar_item(p, None, root + p.target)) for s in sections
        ],
        "lost": True,
    }
    text = (HERE / "404.md").read_text(encoding="utf-8").replace("{root}", root)
    return painted_page(pandoc(text, variables, work))


def write_playground_alone(out: Path) -> None:
    "Write the playground's page and its files into a new folder, without the rest of the site; its links lead nowhere."
    from execnb.nbio import read_nb

    nb, site = read_nb(ROOT / settings()["nbs_path"] / docsite_playground.PAGE), website()
    title, lead = (line.lstrip("#> ") for line in nb.cells.pop(0).source.splitlines() if line)
    page = Page(docsite_playground.PAGE, "playground.html", "", title, lead)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        text = render_page(page, nb, [Section("Start", [page])], site, Path(work))
    (out / page.target).write_text(docsite_playground.with_policy(text), encoding="utf-8")
    for name in ("style.css", "site.js"):
        shutil.copyfile(HERE / name, out / name)
    docsite_playground.write_playground(out)


def build(out: Path) -> None:
    "Build beside the old site and swap at the end: a build that fails leaves the old site as it was."
    out = out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / ".nojekyll").exists():
        raise SystemExit(
            f"{out} holds something else than a site; name an empty folder or a new one with --out"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=".site-", dir=out.parent) as new,
        tempfile.TemporaryDirectory() as work,
    ):
        fresh, old = Path(new) / "new", Path(new) / "old"
        fresh.mkdir()
        with progress_lines("docs build", always=True) as say:
            count = write_site(fresh, Path(work), say)
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    print(f"{count} pages in {out}")


def readme(check: bool) -> int:  # Exit code
    "Write README.md, or say whether it is what would be written."
    from docsite_readme import readme_text

    path, text = ROOT / "README.md", readme_text(ROOT / settings()["nbs_path"] / "index.ipynb", website())
    if path.exists() and path.read_text(encoding="utf-8") == text:
        print("README.md is in sync with nbs/index.ipynb")
    elif check:
        print("README.md is out of date; run `python dev/docsite.py readme`", file=sys.stderr)
        return 1
    else:
        path.write_text(text, encoding="utf-8")
        print("README.md written from nbs/index.ipynb")
    return 0


def main() -> int:
    "The command line."
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest="action", required=True)
    b = sub.add_parser("build", help="render the site")
    b.add_argument(
        "--out",
        type=Path,
        default=ROOT / "_site",
        help="folder of the site, replaced as a whole (default: _site)",
    )
    p = sub.add_parser("playground", help="write only the playground's page and its files")
    p.add_argument("--out", type=Path, required=True, help="a new folder")
    r = sub.add_parser("readme", help="write README.md from nbs/index.ipynb")
    r.add_argument("--check", action="store_true", help="write nothing; exit 1 when README.md is out of date")
    args = ap.parse_args()
    actions = {
        "readme": lambda: readme(args.check),
        "playground": lambda: write_playground_alone(args.out),
        "build": lambda: build(args.out),
    }
    return actions[args.action]() or 0


if __name__ == "__main__":
    sys.exit(main())
