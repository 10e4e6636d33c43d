"""The playground in Jupyter: what is sent between the page and Python, and the whole of it in JupyterLab."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import browser
import pytest

from subword_nb import Tokenizer
from subword_nb.tokenizer.widget import answer, front_end, playground

ROOT = Path(__file__).resolve().parent.parent.parent
MARKUP = "<img src=x onerror=window.hit=1> <script>window.hit=1</script> </textarea><svg/onload=window.hit=1>"
NASTY = [
    "",
    " ",
    "\n\t\r\n",
    "\0\x7f\x85",
    MARKUP,
    "\u202eabc\u202c",
    "e" + "\u0301" * 300,
    "👩‍👩‍👧‍👦🇺🇳",
    "\ufeffx\u2028y",
    "\uffff\U0010ffff",
    "__proto__ constructor",
    "ab " * 1000,
]
needs_anywidget = pytest.mark.skipif(
    importlib.util.find_spec("anywidget") is None,
    reason="the widget needs anywidget: pip install -e '.[widget]'",
)
NO_LAB = browser.missing() or (
    "" if importlib.util.find_spec("jupyterlab") else "JupyterLab is missing: pip install -e '.[dev]'"
)


@pytest.fixture(scope="module")
def tok():
    "A byte-level tokenizer: it has tokens for every text."
    return Tokenizer.train(["low lower lowest new newer <b>newest</b>"] * 3, algorithm="bpe", vocab_size=280)


@pytest.fixture
def sent(tok):
    "A widget, and what it sends to the page, message by message."
    box, messages = playground(tok, text="low"), []
    box.comm.send = lambda data=None, *args, **kwargs: messages.append(data)
    return box, messages


def test_importing_the_module_needs_no_widget_library():
    block = (
        "import sys\nfor m in ('anywidget', 'traitlets', 'ipywidgets', 'IPython'): sys.modules[m] = "
        "None\nimport subword_nb.tokenizer.widget as w\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            block
            + "try: w.playground(type('T', (), {'explain': print})())\nexcept ModuleNotFoundError as e: print(e)",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 'pip install "subword_nb[widget]"' in done.stdout


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_answers_are_json_with_the_ids_of_the_package(tok, text):
    found = json.loads(json.dumps(answer(tok, text)))
    assert found["problem"] == "" and found["data"]["text"] == text
    assert [t["id"] for t in found["data"]["tokens"]] == tok.encode(text)


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "\udc00\ud800"], ids=ascii)
def test_half_characters_are_a_problem_not_an_exception(tok, text):
    found = answer(tok, text)
    assert found["data"] == {} and found["problem"]
    json.dumps(found).encode()
    found["problem"].encode()


def test_a_fault_of_ours_is_not_hidden_as_a_problem():
    class Faulty:
        def explain(self, text):
            raise RuntimeError("ours")

    with pytest.raises(RuntimeError):
        answer(Faulty(), "low")


@needs_anywidget
def test_only_three_traits_and_the_view_travel(tok):
    box = playground(tok, text="low")
    assert {k for k in box.keys if not k.startswith("_")} - {"layout", "tabbable", "tooltip"} == {
        "text",
        "data",
        "problem",
    }
    assert [t["id"] for t in box.data["tokens"]] == tok.encode("low")


@needs_anywidget
def test_a_message_from_the_page_is_answered_in_one(sent, tok):
    box, messages = sent
    box.set_state({"text": "lowest new"})
    answers = [m["state"] for m in messages if m.get("method") == "update" and "data" in m["state"]]
    assert len(answers) == 1 and [t["id"] for t in answers[0]["data"]["tokens"]] == tok.encode("lowest new")
    messages.clear()
    box.set_state({"text": "\ud800"})
    answers = [m["state"] for m in messages if m.get("method") == "update" and "data" in m["state"]]
    assert len(answers) == 1 and answers[0]["data"] == {} and answers[0]["problem"] == box.problem != ""


@needs_anywidget
def test_two_widgets_have_their_own_tokenizers(tok):
    other = Tokenizer.train(["low lower"], algorithm="char_bpe", vocab_size=7)
    one, two = playground(tok, text="low"), playground(other, text="low")
    one.text = two.text = "lower"
    assert [t["id"] for t in one.data["tokens"]] == tok.encode("lower")
    assert [t["id"] for t in two.data["tokens"]] == other.encode("lower")


def test_the_script_has_one_export_and_no_way_to_markup():
    script, style = front_end()
    assert re.findall(r"^\s*(?:export|import)\b.*", script, re.M) == ["export default { render: show };"]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|https?://(?!www\.w3\.org/)",
        script + style,
    )


# ---------- the view in a browser ----------

TEXTS = ["the hug of a pug and the hug of a pun, hugs "] * 6
KINDS = {  # of reasons → options of a tokenizer that gives them, and words of the drawing
    "bpe": ({"algorithm": "bpe", "vocab_size": 270}, "After merge 1 of"),
    "wordpiece": ({"algorithm": "wordpiece", "vocab_size": 30}, "Pieces:"),
    "unigram": ({"algorithm": "unigram", "vocab_size": 30}, "among all segmentations"),
    "wordlevel": ({"algorithm": "wordlevel", "vocab_size": 30}, "is in the vocabulary as a whole"),
    "steps": ({"algorithm": "pathpiece", "vocab_size": 272}, "Pieces:"),
}
DRAW = """async (explained) => {
  const { render } = await import("/view.js"), root = document.createElement("main");
  document.body.append(root);
  for (const options of [{}, { word: 1, step: 1 }]) render(root, explained, options);
  for (const fold of root.querySelectorAll("details")) fold.open = true;
  return [root.textContent, [...root.querySelectorAll(".sw-token")].map((e) => Number(e.dataset.id))];
}"""


@pytest.mark.slow
@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing())
def test_every_kind_of_reason_is_drawn(tmp_path):
    (tmp_path / "index.html").write_text(
        '<!doctype html><title>view</title><link rel="icon" href="data:,">', encoding="utf-8"
    )
    shutil.copyfile(ROOT / "subword_nb" / "view.js", tmp_path / "view.js")
    with browser.served(tmp_path) as url, browser.chromium() as chrome:
        page = chrome.new_page()
        wrong = browser.watch(page)
        page.goto(f"{url}/index.html")
        for kind, (options, words) in KINDS.items():
            tok = Tokenizer.train(TEXTS, progress=False, **options)
            explained = tok.explain("the hugs of").to_dict()
            assert {r["kind"] for r in explained["reasons"]} == {kind}
            text, ids = page.evaluate(DRAW, json.loads(json.dumps(explained)))
            assert words in text and ids == tok.encode("the hugs of"), kind
        assert not wrong


# ---------- in JupyterLab ----------

NOTEBOOK = """
from subword_nb import Tokenizer
from subword_nb.tokenizer.widget import playground
tok = Tokenizer.load("tok.json")
box = playground(tok, text="low")
box
"""


@pytest.mark.slow
@needs_anywidget
@pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB)
def test_typing_in_jupyterlab(tok, tmp_path):
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir(), home.mkdir()
    tok.save(work / "tok.json")
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": NOTEBOOK.strip(),
    }
    meta = {"kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}}
    (work / "box.ipynb").write_text(
        json.dumps({"cells": [cell], "metadata": meta, "nbformat": 4, "nbformat_minor": 5})
    )
    with browser.jupyterlab(work, home) as url, browser.chromium() as chrome:
        page = chrome.new_page(viewport={"width": 1280, "height": 900})
        wrong = []
        page.on("pageerror", lambda e: wrong.append(str(e)))
        assert not [c for c in browser.run_all(page, url, work / "box.ipynb", work) if c["error"]]
        area = page.get_by_label("Text", exact=True)

        def shown(text):
            "The ids in the page, when they are those of the text."
            wanted = [str(i) for i in tok.encode(text)]
            page.wait_for_function(
                "(ids) => JSON.stringify([...document.querySelectorAll('.sw-widget .sw-token .sw-id')].map((e) => e.textContent)) == ids",
                arg=json.dumps(wanted, separators=(",", ":")),
                timeout=20_000,
            )

        shown("low")
        counts = page.evaluate(
            "() => [...document.querySelectorAll('.sw-widget .sw-counts > div')].map((e) => "
            "[...e.children].map((part) => part.getBoundingClientRect()).map((r) => [r.left, r.right, r.top]))"
        )
        assert (
            len(counts) > 3
            and len({term[2] for term, _ in counts}) == 1
            and len({value[2] for _, value in counts}) == 1
        ), "the counts stand in a row"
        assert all(a[0][1] < b[0][0] for a, b in zip(counts, counts[1:])) and all(
            value[2] < term[2] for term, value in counts
        )
        for text in ("lowest newer", "<b>new</b>", MARKUP, "Größe 東京 👩‍👩‍👧‍👦\ttab\nline"):
            area.fill(text)
            shown(text)
            assert (
                page.evaluate("window.hit") is None
                and page.locator(".sw-widget :is(img, script)").count() == 0
            )
        area.fill("")
        area.press_sequentially("newest lower", delay=15)
        shown("newest lower")
        area.fill("ab " * 2000)
        page.wait_for_selector(".sw-problem:visible")
        assert (
            "at most 5000" in page.locator(".sw-problem").inner_text()
            and page.locator(".sw-widget .sw-token:visible").count() == 0
        )
        area.fill("low")
        shown("low")
        assert page.locator(".sw-problem:visible").count() == 0
        if browser.axe_script().exists():
            assert not browser.axe(page, within=".sw-widget")
        assert not wrong
    shutil.rmtree(home, ignore_errors=True)
