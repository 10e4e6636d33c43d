"""The reference pages: every public member, component, format and command is there, as the package has it now."""

import html
import inspect
import re

import pytest
from notebooks import NBS, Notebook

from subword_nb import Tokenizer, normalizers, pre_tokenizers

FOLDER = NBS / "reference"


def shown(page: str) -> str:
    "All stored outputs of a page, HTML where there is some, without markup."
    parts = []
    for cell in Notebook(FOLDER / f"{page}.ipynb").code_cells:
        for out in cell.outputs:
            data = out.get("data", {})
            parts.append("".join(data.get("text/html") or data.get("text/plain") or out.get("text", "")))
    return "\n".join(parts)


def parameters(name: str) -> list[str]:
    "The names of a method's parameters."
    return [p for p in inspect.signature(getattr(Tokenizer, name)).parameters if p not in ("self", "cls")]


MEMBERS = sorted({name for name in dir(Tokenizer) if not name.startswith("_")} | {"__call__"})


@pytest.fixture(scope="module")
def api() -> str:
    return shown("api")


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_is_shown_with_its_parameters(api, name):
    entry = re.search(rf'<section class="member" id="tok-{name.strip("_")}">(.*?)</section>', api, re.S)
    assert entry, f"{name} has no entry"
    if callable(getattr(Tokenizer, name)):
        heading = html.unescape(re.search(r"<h3><code>(.*?)</code></h3>", entry[1], re.S)[1])
        inner = heading.partition("(")[2]
        assert re.findall(r"(?:^|, )\**([a-z]\w*)", inner) == parameters(name), "run nbs/reference/api.ipynb"
        described = html.escape(inspect.getdoc(getattr(Tokenizer, name)))
        assert re.sub("`([^`]+)`", r"<code>\1</code>", described) in entry[1]


def test_attributes_of_a_tokenizer_are_shown(api):
    tok = Tokenizer.train(["hug"] * 9, vocab_size=257)
    missing = [name for name in vars(tok) if not name.startswith("_") and f'id="tok-{name}"' not in api]
    assert not missing


def test_links_of_entries_lead_to_pages(api):
    links = set(re.findall(r'href="([^"]+)"', api))
    assert len(links) > 15
    assert not [link for link in links if not (FOLDER / link).resolve().is_file()]


def test_every_method_tells_what_it_returns_and_raises(api):
    entries = dict(re.findall(r'<section class="member" id="tok-(\w+)">(.*?)</section>', api, re.S))
    methods = [name.strip("_") for name in MEMBERS if callable(getattr(Tokenizer, name))]
    without = {
        what: [m for m in methods if f"<b>{what}</b>" not in entries[m]] for what in ("Returns", "Raises")
    }
    assert without == {"Returns": [], "Raises": ["inspect"]}  # that of a tokenizer cannot fail


@pytest.mark.parametrize("module", [normalizers, pre_tokenizers], ids=["normalizers", "pre-tokenizers"])
def test_every_component_is_shown(module):
    text = html.unescape(shown("components"))
    classes = {name for name in module.__all__ if isinstance(getattr(module, name), type)}
    left_out = {"Precompiled", "Callable", "Normalizer", "PreTokenizer"}  # named in prose
    assert not {name for name in classes - left_out if f"<code>{name}(" not in text}


def test_every_format_is_in_the_table():
    from subword_nb.formats.detect import KINDS

    prose = "\n".join(c.source for c in Notebook(FOLDER / "formats.ipynb").cells if c.kind == "markdown")
    assert re.findall(r"^\| `([\w.]+)` \|", prose, re.M) == list(KINDS)


def test_every_command_is_shown_as_it_prints_its_help_now():
    from typer.main import get_command
    from typer.testing import CliRunner

    from subword_nb.cli.main import app

    text = shown("commands")
    env = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    for command in [(), *((name,) for name in get_command(app).commands)]:
        done = CliRunner().invoke(app, [*command, "--help"], prog_name="subword-nb", env=env)
        assert done.exit_code == 0 and done.output.rstrip() in text, (
            f"{command}: run nbs/reference/commands.ipynb"
        )
