"""Steps as figures: everything escaped, every frame kept, the same every time; buttons, slider, keys, paper, no script."""

import json
import re
from html.parser import HTMLParser

import browser
import pytest

from subword_nb.core.diagrams import draw_lattice
from subword_nb.core.stepper import draw_steps

HOSTILE = [
    "</script><script>alert(1)</script>",
    '" onload="x',
    "<!--",
    "&amp;",
    "\x1b[31m",
    "\ud800",
    "",
    "\n",
    "東京",
]
ALLOWED = {
    *["div", "style", "p", "b", "button", "input", "output", "ol", "li", "table", "tr", "th", "td", "span"]
}
ARCS = [(0, 1, "h"), (1, 2, "u"), (2, 3, "g"), (0, 2, "hu"), (1, 3, "ug")]
FRAMES = [
    ("The word starts as characters.", {"word": [("hugs", ["h", ("u", "strong"), ("g", "strong"), "s"])]}),
    (
        "u and g become one symbol.",
        {"word": [("hugs", ["h", ("ug", "new"), "s"], "rank 0")], "rest": [("", [])]},
    ),
    ("A lattice of hug.", {"lattice": draw_lattice("hug", ARCS, best=(0, 4))}),
    ("The last.", {"word": [("hugs", [("hug", "new"), ("s", "weak")])]}),
]
NO_BROWSER, NO_AXE = browser.missing(), browser.no_axe()
in_a_browser = pytest.mark.skipif(bool(NO_BROWSER), reason=NO_BROWSER)


def stored(stepper) -> list[str]:
    "The frames that the script draws, as it joins them."
    text = re.search(r'<script type="application/json">(.*?)</script>', stepper._repr_html_(), re.S)[1]
    data = json.loads(text)
    return ["\n".join(data["lines"][i] for i in frame) for frame in data["frames"]]


class Tags(HTMLParser):
    "The tags and attributes of a page, and whether every tag is closed."

    def __init__(self, text: str):
        super().__init__()
        self.seen, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_script_has_every_frame_and_each_line_once():
    stepper = draw_steps(FRAMES, title="A word")
    assert stored(stepper) == ["\n".join(body) for body in stepper.bodies]
    assert len(draw_steps(FRAMES * 20, title="A word")._repr_html_()) < len(stepper._repr_html_()) + 6000


def test_the_page_without_a_script_has_the_last_frame_and_all_captions():
    html = draw_steps(FRAMES, title="A word")._repr_html_()
    static = re.sub(r"<script.*?</script>", "", html, flags=re.S)
    assert re.findall("<li>(.*?)</li>", static) == [caption for caption, _ in FRAMES]
    assert '<span class="new">hug</span><span class="weak">s</span>' in static and "<svg" not in static
    assert '<div class="sw-bar" hidden>' in static


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    stepper = draw_steps([(text, {text: [(text, [text, (text, "strong")], text)]})] * 2, title=text)
    html = stepper._repr_html_()
    html.encode()  # no surrogates
    for page in [re.sub(r"<script.*?</script>", "", html, flags=re.S), *stored(stepper)]:
        tags = Tags(page)
        assert not tags.open
        assert {name for name, _ in tags.seen} <= ALLOWED
        assert not [a for _, attrs in tags.seen for a in attrs if a.startswith("on")]
    assert html.count("<script") == 2 and "\x1b" not in html + str(stepper)


def test_text_has_every_frame():
    stepper = draw_steps(FRAMES, title="A word")
    assert [stepper.frame(i).splitlines()[0] for i in range(len(stepper))] == [c for c, _ in FRAMES]
    assert stepper.frame(1) == "u and g become one symbol.\nword\n  hugs  h <ug> s  rank 0\nrest\n"
    assert str(stepper).splitlines()[:2] == ["A word", "1. The word starts as characters."]
    assert repr(stepper) == str(stepper) and str(stepper).endswith("hugs  <hug> (s)")
    with pytest.raises(IndexError, match="number must be below 4"):
        stepper.frame(4)


@pytest.fixture(scope="module")
def open_page(tmp_path_factory):
    "A page with two steppers, at any width, with or without scripts."
    folder = tmp_path_factory.mktemp("steps")
    two = [draw_steps(FRAMES, title=f"Steps {i}")._repr_html_() for i in range(2)]
    head = '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Steps</title>'
    theme = "<style>:root { color-scheme: light dark; }</style>"
    text = f'{head}<meta charset="utf-8">{theme}<main><h1>Steps</h1>{"".join(two)}</main></html>'
    (folder / "steps.html").write_text(text, encoding="utf-8")
    with browser.chromium() as chromium, browser.served(folder) as url:

        def load(width=1280, **options):
            context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
            page = context.new_page()
            page.wrong = browser.watch(page)
            page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
            page.goto(f"{url}/steps.html")
            return page

        yield load


def shown(page, n: int = 0) -> tuple[str, str]:
    "What a stepper says, and its counter."
    box = page.locator(".sw-steps").nth(n)
    return box.locator(".sw-said").inner_text(), box.locator("output").inner_text()


@pytest.mark.slow
@in_a_browser
def test_buttons_slider_and_keys(open_page):
    page = open_page()
    box = page.locator(".sw-steps").first
    name = {
        n: box.get_by_role("button", name=n)
        for n in ("First step", "Back one step", "Next step", "Last step")
    }
    assert shown(page) == (FRAMES[0][0], "1 / 4") and not box.locator("ol").is_visible()
    name["Back one step"].click(force=True)  # nothing is before the first step
    assert shown(page)[1] == "1 / 4" and name["Back one step"].get_attribute("aria-disabled") == "true"
    name["Next step"].click()
    assert shown(page) == (FRAMES[1][0], "2 / 4") and box.locator(".sw-frame .new").inner_text() == "ug"
    page.keyboard.press("ArrowRight")  # the button has the focus
    assert shown(page)[1] == "3 / 4" and box.locator("svg").count() == 1
    page.keyboard.press("End")
    assert shown(page) == (FRAMES[3][0], "4 / 4")
    page.keyboard.press("Home")
    slider = box.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")  # one step, not two
    assert shown(page)[1] == "2 / 4" and slider.get_attribute("aria-valuetext") == "step 2 of 4"
    slider.fill("2")
    assert shown(page)[1] == "3 / 4"
    name["First step"].click()
    name["Last step"].click()
    assert shown(page)[1] == "4 / 4" and shown(page, 1)[1] == "1 / 4"  # the other one has not moved
    assert not page.wrong


@pytest.mark.slow
@in_a_browser
def test_the_controls_stay_where_they_are(open_page):
    page = open_page(390)
    top, height = page.evaluate(
        WHERE := "[document.querySelector('.sw-bar').getBoundingClientRect().top, document.body.scrollHeight]"
    )
    for _ in range(3):
        page.locator(".sw-steps").first.get_by_role("button", name="Next step").click()
        assert page.evaluate(WHERE) == [top, height]


@pytest.mark.slow
@in_a_browser
def test_without_scripts_and_on_paper(open_page):
    page = open_page(java_script_enabled=False)
    box = page.locator(".sw-steps").first
    assert not box.locator(".sw-bar").is_visible() and box.locator("ol li").count() == 4
    assert box.locator("ol").is_visible() and box.locator(".sw-frame .new").inner_text() == "hug"
    page = open_page()
    page.emulate_media(media="print")
    box = page.locator(".sw-steps").first
    assert not box.locator(".sw-bar").is_visible() and not box.locator(".sw-said").is_visible()
    assert box.locator("ol").is_visible() and box.locator(".sw-frame").is_visible()


@pytest.mark.slow
@in_a_browser
@pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_frame_fits_and_is_accessible(open_page, scheme, width):
    page = open_page(width, color_scheme=scheme)
    for _ in FRAMES:
        assert not browser.sideways(page) and not browser.axe(page)
        page.locator(".sw-steps").first.get_by_role("button", name="Next step").click(force=True)
    assert not page.wrong
