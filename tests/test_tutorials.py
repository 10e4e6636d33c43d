"""What tutorials show and do not run: their fences of Python must parse, and run where the libraries that they name are installed."""

import ast
import os

import pytest
from notebooks import NBS, steps

TRANSFORMERS = NBS / "tutorials" / "corpus_to_transformers.ipynb"


def test_fences_of_tutorials_parse():
    for path in sorted((NBS / "tutorials").glob("*.ipynb")):
        for index, code, fence in steps(path):
            if fence:
                ast.parse(code, f"{path.name}, cell {index}")


def test_every_fence_for_transformers_asserts():
    shown = [code for _, code, fence in steps(TRANSFORMERS) if fence]
    assert len(shown) == 5 and all("assert " in code for code in shown)


@pytest.mark.peers
def test_fences_for_transformers_run(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.chdir(TRANSFORMERS.parent)
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    state, run = {"__name__": "tutorial"}, 0
    for index, code, fence in steps(TRANSFORMERS):
        exec(compile(code, f"{TRANSFORMERS.name}, cell {index}", "exec"), state)
        run += fence
    assert run == 5
    assert {"fast", "theirs", "named"} <= state.keys()  # what the fences made
    assert state["fast"](state["texts"][0])["input_ids"] == state["tok"].encode(state["texts"][0])
