"""The documentation site and JupyterLab in a real browser.

Nothing fails to load, nothing is too wide, everybody can read it, notebooks run.
"""

import importlib.util
import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import browser
import pytest
import yaml
from seeds import some_of

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
SITE = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))
COMMON = (".pages", "pre.sourceCode")  # the same on all pages, and long: checked on every tenth
RUN_IN_LAB = ("bpe/00_reference.ipynb", "wordpiece/03_longest_match.ipynb", "unigram/01_reference.ipynb")
NO_BROWSER = browser.missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(NO_BROWSER), reason=NO_BROWSER)]
NO_AXE = browser.no_axe()
needs_axe = pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE)


@pytest.fixture(scope="module")
def chrome():
    "One browser for all tests of the site."
    with browser.chromium() as one:
        yield one


@pytest.fixture(scope="module")
def address(built_site, tmp_path_factory):
    "Where the site is served: in the folder that its page for lost readers expects."
    root, name = tmp_path_factory.mktemp("server"), urlsplit(SITE["website"]["site-url"]).path.strip("/")
    (root / name).symlink_to(built_site, target_is_directory=True)
    with browser.served(root) as url:
        yield f"{url}/{name}"


@pytest.fixture(scope="module")
def names(built_site) -> list[str]:
    "Every page, relative to the site."
    return sorted(p.relative_to(built_site).as_posix() for p in built_site.rglob("*.html"))


def complaints(chrome, address, names, look, **context) -> dict[str, object]:
    "Open every page in one window; what `look` has to say of each, where it says anything."
    window = chrome.new_context(reduced_motion="reduce", **context)
    page, found = window.new_page(), {}
    wrong = browser.watch(page)
    for i, name in enumerate(names):
        page.goto(f"{address}/{name}")
        said = [*wrong, *look(page, i)]
        if said:
            found[name] = said
        wrong.clear()
    window.close()
    return found


def accessible(page, i) -> list[str]:
    "Complaints of axe-core; every tenth page as a whole, the others without what all have."
    return browser.axe(page, () if i % 10 == 0 else COMMON)


def test_pages_load_whole_and_fit(chrome, address, names):
    blocks = []  # of a phone: does each scroll?

    def no_wider(page, i) -> list[str]:
        "Complaints about a page that scrolls sideways, in a wide window or on a phone, and code that does not fit or wrap."
        said = []
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            said += [s for s in [browser.sideways(page)] if s]
            if any(browser.scrolling(page, "main .sourceCode pre")):
                said.append(f"code is wider than its place at {width}")
        blocks.extend(browser.scrolling(page, "main pre"))
        return said

    assert not complaints(chrome, address, names, no_wider)
    assert sum(blocks) < len(blocks) / 5


def test_tables_of_the_home_page_fit(page, address):
    page.goto(f"{address}/index.html")
    fits = browser.scrolling(page, "main :is(pre, table)")
    assert len(fits) > 5 and not any(fits)


def test_lattices_fit_a_phone(page, address):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{address}/unigram/reference.html")
    fits = browser.scrolling(page, "main .out-html svg")
    assert fits and not any(fits)
    page.set_viewport_size({"width": 1280, "height": 900})
    drawn = page.locator(".out-html svg").first
    assert drawn.bounding_box()["width"] == pytest.approx(float(drawn.get_attribute("width")), abs=1)


@needs_axe
def test_light_wide_pages_are_accessible(chrome, address, names):
    drawn = some_of(names, "light pages")  # others in each run
    assert not complaints(
        chrome, address, drawn, accessible, viewport={"width": 1280, "height": 900}, color_scheme="light"
    )


@needs_axe
def test_dark_narrow_pages_are_accessible(chrome, address, names):
    drawn = some_of(names, "dark pages")
    assert not complaints(
        chrome, address, drawn, accessible, viewport={"width": 390, "height": 900}, color_scheme="dark"
    )


@needs_axe
def test_a_page_with_faults_is_complained_about(chrome, address):
    page = chrome.new_page()
    page.goto(f"{address}/bpe/reference.html")
    faults = (
        '<h5>deep</h5><img src="data:,"><button></button><p style="color:#999;background:#aaa">pale</p>'
        '<div style="width:3000px">wide</div>'
    )
    page.evaluate(
        """(html) => document.querySelector(".text").insertAdjacentHTML("afterbegin", html)""",
        faults,
    )
    said = " ".join(browser.axe(page, COMMON))
    assert all(rule in said for rule in ("heading-order", "image-alt", "button-name", "color-contrast"))
    assert browser.sideways(page)
    page.reload()
    assert not browser.sideways(page)
    picture = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='3000' height='9'/>"
    page.evaluate(
        """(src) => { const img = new Image(); img.src = src; img.style.maxWidth = "none";
        document.querySelector(".text").prepend(img); return img.decode(); }""",
        picture,
    )
    assert "<img" in browser.sideways(page)
    page.close()


@pytest.fixture
def page(chrome):
    "A window that prefers the light theme, and complains at the end of what went wrong in it."
    window = chrome.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    page = window.new_page()
    wrong = browser.watch(page)
    yield page
    window.close()
    assert not wrong


def paper(page) -> str:
    "The colour behind the text."
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_theme_follows_the_system_until_the_button_says_otherwise(page, address):
    page.goto(f"{address}/index.html")
    light = paper(page)
    page.emulate_media(color_scheme="dark")
    dark = paper(page)
    assert light != dark
    page.get_by_role("button", name="Light theme").click()
    assert paper(page) == light
    page.goto(f"{address}/bpe/reference.html")  # the choice is kept
    assert paper(page) == light
    page.get_by_role("button", name="Dark theme").click()
    page.emulate_media(color_scheme="light")
    assert paper(page) == dark


def test_search_finds_and_enter_follows(page, address):
    page.goto(f"{address}/index.html")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Search the pages")
    box.fill("wordpiece_encode")
    page.locator(".found a").first.wait_for()
    wanted = page.locator(".found a").first.get_attribute("href")
    assert "wordpiece" in wanted
    box.press("Enter")
    page.wait_for_url("**/" + wanted.split("/")[-1])
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize(
    "typed, first",
    [
        ("install", "index.html"),
        ("migrate", "migrate/"),
        ("pad", "howto/pytorch.html"),
        ("chat", "howto/chats.html"),
        ("speed", "bench/speed.html"),
        ("encode_batch", "reference/api.html#tok-encode_batch"),
        ("bpe", "bpe/reference.html"),
        ("how to install", "index.html"),
        ("migrating", "migrate/"),
        ("em algorithm", "unigram/em.html"),
        ("what is a token", "book/glossary.html"),
    ],
)
def test_search_ranks_titles_and_knows_other_words(page, address, typed, first):
    page.goto(f"{address}/text/normalizers.html")
    page.keyboard.press("/")
    page.get_by_role("searchbox", name="Search the pages").fill(typed)
    page.locator(".found a").first.wait_for()
    assert first in page.locator(".found a").first.get_attribute("href")


def test_titles_are_searched_in_a_page_opened_as_a_file(chrome, built_site):
    page = chrome.new_page()
    page.goto((built_site / "text" / "normalizers.html").as_uri())
    page.keyboard.press("/")
    page.get_by_role("searchbox", name="Search the pages").fill("install")
    page.locator(".found a").first.wait_for()
    assert page.locator(".found a").first.get_attribute("href") == (built_site / "index.html").as_uri()
    assert "Only titles" in page.locator(".count").inner_text()
    page.close()


def test_search_opens_and_closes_by_mouse_and_keyboard(page, address):
    page.goto(f"{address}/tutorials/pipelines.html")
    page.get_by_role("button", name="Search").click()
    box = page.get_by_role("searchbox", name="Search the pages")
    box.fill("merge")
    page.locator(".found a").nth(1).wait_for()
    box.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelector('.found a')")
    page.keyboard.press("Escape")
    assert not page.locator(".finder").is_visible()


def test_the_list_of_pages_opens_and_closes_on_a_narrow_screen(page, address):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{address}/bpe/reference.html")
    pages, menu = page.locator(".pages"), page.get_by_role("button", name="Pages")
    assert not pages.is_visible()
    menu.click()
    assert pages.is_visible() and menu.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert not pages.is_visible() and menu.get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize("width", [1280, 390])
def test_groups_of_the_sidebar_open_and_close(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/bpe/model.html")
    if width == 390:
        page.get_by_role("button", name="Pages").click()
    sidebar = page.locator(".pages")
    here, other = sidebar.locator("[aria-current=page]"), sidebar.get_by_role("link", name="A tour")
    assert here.inner_text() == page.locator("h1").inner_text()
    assert here.is_visible() and not other.is_visible()
    sidebar.get_by_text("Start", exact=True).click()
    sidebar.get_by_text("Learn", exact=True).click()
    assert other.is_visible() and not here.is_visible()


def test_pages_are_readable_without_scripts(chrome, address):
    window = chrome.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = window.new_page()
    page.goto(f"{address}/bpe/reference.html")
    assert page.locator(".pages").is_visible() and page.locator(".text").is_visible()
    assert not page.get_by_role("button", name="Search").is_visible()
    window.close()


@pytest.mark.skipif(
    importlib.util.find_spec("jupyterlab") is None, reason="JupyterLab is missing: pip install -e '.[dev]'"
)
def test_notebooks_run_in_jupyterlab(chrome, tmp_path):
    work, home = tmp_path / "nbs", tmp_path / "home"
    shutil.copytree(NBS, work, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "_*"))
    home.mkdir()
    failed = {}
    with browser.jupyterlab(work, home) as url:
        for name in RUN_IN_LAB:
            page = chrome.new_page(viewport={"width": 1280, "height": 900})
            cells = browser.run_all(page, url, work / name, work)
            assert cells
            failed |= {f"{name}, code cell {c['cell']}": c["error"] for c in cells if c["error"]}
            page.close()
    assert not failed


@pytest.fixture
def lesson(chrome, address, built_site):
    "A lesson on a phone, and everything that it loads."
    if not (built_site / "playground" / "pyodide").is_dir():
        pytest.skip(browser.excuse("the site was built without Pyodide: npm ci --prefix dev/web"))
    window = chrome.new_context(viewport={"width": 390, "height": 800}, color_scheme="light")
    page, loaded = window.new_page(), []
    wrong = browser.watch(page)
    page.on("request", lambda r: loaded.append(r.url))
    page.goto(f"{address}/bpe/reference.html")
    yield page, loaded
    window.close()
    assert not wrong


def ran(page, action) -> None:
    "Do something that runs cells, and wait until they have run."
    before = int(page.evaluate("document.querySelector('.run-bar').dataset.ran ?? 0"))
    action()
    page.wait_for_selector(f'.run-bar[data-ran="{before + 1}"]', timeout=300_000)


def test_a_lesson_runs_and_checks_where_it_is_read(lesson):
    page, loaded = lesson
    page.wait_for_load_state("networkidle")
    assert not any("playground" in url for url in loaded)
    page.get_by_role("button", name="Run this lesson").press("Enter")
    page.get_by_text("0 of 4 exercises solved").wait_for(timeout=300_000)
    assert page.evaluate(
        "document.activeElement.closest('.run-bar') !== null"
    )  # the next Tab leads on from here

    cell = page.locator('[data-cell="1e0f26c0"]')  # toy = bpe_train_ref(TOY_COUNTS, vocab_size=10, …)
    cell.get_by_role("button", name="Edit").click()
    code = cell.get_by_label("Code of this cell")
    code.fill(code.input_value().replace("vocab_size=10", "vocab_size=8"))
    ran(page, lambda: code.press("Control+Enter"))
    assert "merges=[('u', 'g')]" in cell.locator(".out").inner_text()
    code.fill("while True: pass\nprint(")
    ran(page, lambda: code.press("Shift+Enter"))
    assert "SyntaxError" in cell.locator(".out-error").inner_text()
    cell.get_by_role("button", name="Undo edits").click()
    assert "merges=[('u', 'g'), ('u', 'n')" in cell.locator(".out").inner_text()

    cell.get_by_role("button", name="Edit").click()
    code.fill(f"long = {'x' * 300!r}")  # on a phone: many lines, none of which is hidden or scrolls
    height, sides = code.evaluate(
        "(e) => [e.clientHeight, [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]]"
    )
    assert sides == [0, 0] and height > 5 * 14
    cell.get_by_role("button", name="Undo edits").click()

    answer, check = page.get_by_label("check_fourth").first, page.get_by_role("button", name="Check").first
    verdict = page.locator(".ls-verdict").first
    ran(page, check.click)
    assert "in place of the dots" in verdict.inner_text()
    answer.fill('check_fourth(("u", "g"), 20)')
    ran(page, check.click)
    assert verdict.inner_text().startswith("Not yet: this pair is merged already")
    answer.fill("pass")
    ran(page, check.click)
    assert verdict.inner_text() == "Call check_fourth with your answer."
    answer.fill('check_fourth(("p", "un"), 12)')
    ran(page, check.click)
    assert verdict.inner_text() == "Solved."
    assert browser.sideways(page) == "" and (NO_AXE or browser.axe(page, COMMON) == [])
    page.reload()
    assert "You solved 1 of 4 exercises" in page.locator(".run-bar").inner_text()


def test_every_cell_of_the_running_lessons_is_on_its_page(built_site):
    for path in (built_site / "playground" / "lessons").rglob("*.json"):
        text = (built_site / path.relative_to(built_site / "playground" / "lessons")).with_suffix(".html")
        on_page = re.findall(r'data-cell="(\w+)"', text.read_text(encoding="utf-8"))
        cells = json.loads(path.read_text(encoding="utf-8"))
        assert on_page and set(on_page) <= {c["id"] for c in cells}
        assert any(c.get("check") for c in cells) and all(c["id"] in on_page for c in cells if "check" in c)
