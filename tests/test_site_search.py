"""The list of titles that the search box looks at first, and the page for lost readers."""

import json
import re
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from notebooks import NBS, Notebook, dev_module

pytest.importorskip("yaml", reason="the docs site needs pyyaml: pip install -e '.[dev]'")
pytest.importorskip("pypandoc", reason="the docs site needs pypandoc: pip install -e '.[dev]'")


@pytest.fixture(scope="module")
def sections():
    "The sidebar, from _quarto.yml and the first cells of the notebooks."
    docsite = dev_module("docsite")
    pages = {}
    for path in sorted(NBS.rglob("*.ipynb")):
        source = path.relative_to(NBS).as_posix()
        if any(part[0] in "._" for part in path.relative_to(NBS).parts):
            continue
        first = Notebook(path).cells[0].source
        title = re.search(r"^# (.*)", first, re.M)[1]
        lead = re.search(r"^> (.*)", first, re.M)[1]
        target = re.sub(r"(^|/)\d+[a-zA-Z0-9]*_", r"\1", source).replace(".ipynb", ".html")
        pages[source] = docsite.Page(source, target, "", title, lead)
    return docsite.sidebar_order(pages, docsite.website()["sidebar"]["contents"])


@pytest.fixture(scope="module")
def titles(sections):
    "The list, with the members of the API as the page of it has them."
    cells = Notebook(NBS / "reference" / "api.ipynb").code_cells
    text = "".join(
        "".join(out.get("data", {}).get("text/html", "")) for cell in cells for out in cell.outputs
    )
    return dev_module("docsite_search").search_list(sections, {"reference/api.html": text})


def test_groups_are_those_that_weights_are_for(sections):
    assert [s.name for s in sections] == ["Start", "Learn", "How-to", "Reference", "Inside"]
    assert [s.name for s in sections] == list(dev_module("docsite_search").WEIGHTS)


def test_every_page_is_listed_once_and_lessons_weigh_more_than_kernels(titles):
    pages = [entry for entry in titles if "#" not in entry["u"]]
    assert len(pages) == len({entry["u"] for entry in pages}) > 200
    weight = {entry["u"]: entry["w"] for entry in pages}
    assert weight["bpe/reference.html"] > weight["bpe/train_kernels.html"]
    assert weight["bpe/reference.html"] > weight["core/native.html"]
    assert weight["howto/chats.html"] > weight["pipeline/chat.html"]


def test_members_of_the_api_are_listed(titles):
    names = {entry["t"]: entry["u"] for entry in titles if "#" in entry["u"]}
    assert names["tok.encode_batch"] == "reference/api.html#tok-encode_batch"
    assert "Tokenizer.train" in names and len(names) > 60


@pytest.mark.parametrize(
    "word, page",
    [
        ("install", "index.html"),
        ("migrate", "migrate/tiktoken.html"),
        ("pad", "pipeline/encoding.html"),
        ("chat", "howto/chats.html"),
        ("speed", "bench/speed.html"),
    ],
)
def test_words_that_readers_type_lead_to_pages(titles, word, page):
    assert page in [entry["u"] for entry in titles if word in entry["k"].split()]


def test_anchors_of_members_survive_rendering():
    private_ids = dev_module("docsite_cells").private_ids
    shown = private_ids('<section id="tok-encode"><svg id="a"><use href="#a"/></svg></section>', "cell3-0-")
    assert shown == '<section id="tok-encode"><svg id="cell3-0-a"><use href="#cell3-0-a"/></svg></section>'


def test_words_for_a_page_that_is_gone_are_an_error():
    search = dev_module("docsite_search")
    pages = [SimpleNamespace(source=f"{k}.ipynb", target="", title="", lead="") for k in range(9)]
    section = SimpleNamespace(name="Start", pages=lambda: pages)
    with pytest.raises(SystemExit, match="pages that are not there"):
        search.search_list([section], {})


def test_the_page_for_lost_readers_has_the_header_the_search_and_links_from_the_top(sections, tmp_path):
    docsite = dev_module("docsite")
    site = docsite.website()
    text = docsite.lost_page(sections, site, tmp_path)
    base = urlsplit(site["site-url"]).path + "/"
    assert f'data-root="{base}"' in text and 'name="robots" content="noindex"' in text
    assert 'class="tool search"' in text and 'id="site--query"' in text and "read or run it" not in text
    targets = {base + page.target for section in sections for page in section.pages()}
    links = [link for link in re.findall(r'href="([^"]+)"', text) if link.endswith(".html")]
    assert len(links) > 200 and set(links) <= targets
    assert json.dumps(links).count("index.html") >= 2
