"""The top of the home page: what the strip shows is what the package says, its figures are the benchmark's, its example runs."""

import json
import random
import re
from pathlib import Path

import browser
import pytest
from notebooks import dev_module

from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS

ROOT = Path(__file__).resolve().parent.parent
FILES = ("bpe.json", "wordpiece.json", "unigram.json")
NO_BROWSER = browser.missing()
in_a_browser = pytest.mark.skipif(bool(NO_BROWSER), reason=NO_BROWSER)
LETTERS = [
    *"abcdeéñ İßΣς'’!?.,- \t\n\r12½東京あ한🙂👍🏽\u0301\u200d\u00a0\u2028ÅﬁЖ‑_$+",
    "ing",
    "'s",
    "'ll",
    "tion",
]


@pytest.fixture(scope="module")
def home():
    "The module that writes the top of the home page."
    return dev_module("docsite_home")


def test_the_example_runs(home, tmp_path, monkeypatch, capsys):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("\n".join(COURSE_CORPUS), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = home.EXAMPLE.replace("32_000", "300")
    assert code != home.EXAMPLE and len(code.strip().splitlines()) == 6
    exec(compile(code, "the home page", "exec"), {})
    assert "Tokenizers" in capsys.readouterr().out
    Tokenizer.load("tokenizer.json")


def test_the_chart_has_the_figures_of_the_last_run_and_all_libraries_of_its_rows(home):
    run = json.loads((ROOT / "nbs" / "bench" / "speed.json").read_text(encoding="utf-8"))
    text = home.chart(run)
    figures = home.speeds(run)
    assert set(figures) == set(home.CHART)
    for row, libraries in figures.items():
        shown = re.search(rf"<h3>{re.escape(row)}</h3>\n<ul>(.*?)</ul>", text, re.S)[1]
        named = re.findall(r'bar-name">([^<]+)<.*?width:([\d.]+)%.*?bar-figure">([\d.]+)<', shown)
        assert {name for name, _, _ in named} == set(libraries)
        for name, width, figure in named:
            assert float(figure) == pytest.approx(libraries[name], rel=0.05)
            assert float(width) == pytest.approx(100 * libraries[name] / max(libraries.values()), abs=0.1)


@pytest.mark.slow
def test_the_static_strip_is_what_the_package_says(home, built_site):
    page = (built_site / "index.html").read_text(encoding="utf-8")
    for file in FILES:
        tokens = home.shown(Tokenizer.load(built_site / "playground" / file), home.TEXT)
        row = re.search(rf'data-file="playground/{file}">(.*?)</div>', page, re.S)[1]
        assert f"{len(tokens)} tokens" in row
        assert [
            t.replace("&lt;", "<").replace("&gt;", ">") for t in re.findall("<span>(.*?)</span>", row)
        ] == tokens


@pytest.mark.slow
def test_every_page_names_the_card_and_its_own_address(built_site):
    assert (built_site / "card.png").read_bytes().startswith(b"\x89PNG")
    for name in ("index.html", "bpe/reference.html"):
        page = (built_site / name).read_text(encoding="utf-8")
        site = re.search(r'og:image" content="(https://[^"]+)/card\.png"', page)[1]
        assert f'og:url" content="{site}/{name}"' in page and 'og:title" content="' in page


@pytest.fixture(scope="module")
def address(built_site):
    "Where the site is served."
    with browser.served(built_site) as url:
        yield url


@pytest.fixture
def page(address):
    "The home page in a window; what went wrong in it fails the test."
    with browser.chromium() as chrome:
        window = chrome.new_page(viewport={"width": 1280, "height": 900})
        wrong = browser.watch(window)
        window.goto(f"{address}/index.html")
        yield window
        assert not wrong


@pytest.mark.slow
@in_a_browser
def test_javascript_gives_the_pieces_of_the_package(page, built_site):
    rng = random.Random(7)
    texts = [
        "",
        " ",
        "hello",
        "'ll",
        "\r\n\n x",
        "\ufeffx\x85y\x0bz\x1c.",
        "a" * 300,
        "\ufffd\uffff\U0010ffff",
        "▁▁a",
    ]
    texts += ["".join(rng.choices(LETTERS, k=rng.randrange(1, 40))) for _ in range(600)]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    texts += [readme[i : i + 500] for i in range(0, len(readme), 500)]
    got = page.evaluate(
        """async ([files, texts]) => {
            const { tokenizerOf } = await import("./strip.js");
            return Promise.all(files.map(async (file) => {
                const tokenize = tokenizerOf(await (await fetch(`playground/${file}`)).json());
                return texts.map((text) => tokenize(text).map((token) => token.piece));
            }));
        }""",
        [list(FILES), texts],
    )
    for file, rows in zip(FILES, got, strict=True):
        tok = Tokenizer.load(built_site / "playground" / file)
        for text, row in zip(texts, rows, strict=True):
            assert tok.tokenize(text) == row, (file, text)


@pytest.mark.slow
@in_a_browser
def test_the_strip_follows_what_is_typed(page, built_site, home):
    field = page.locator("#site--strip")
    for text in ("", "naïve 🙂 functions", "<b>&amp;</b>\n two"):
        field.fill(text)
        for file in FILES:
            tokens = home.shown(Tokenizer.load(built_site / "playground" / file), text)
            row = page.locator(f'[data-file="playground/{file}"]')
            row.get_by_text("1 token" if len(tokens) == 1 else f"{len(tokens)} tokens", exact=True).wait_for()
            assert row.locator(".strip-tokens span").all_inner_texts() == tokens


@pytest.mark.slow
@in_a_browser
def test_example_and_doors_are_in_the_first_screen(page):
    for selector in (".strip", ".install", ".doors"):
        box = page.locator(selector).bounding_box()
        assert box["y"] + box["height"] <= 900, selector
