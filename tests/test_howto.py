"""The how-to pages: what they show in fences runs, in order with their cells, where the libraries that they name are installed."""

import ast
import json
import os
import re

import pytest
from notebooks import NBS, Notebook, steps

PAGES = sorted((NBS / "howto").glob("*.ipynb"))


def run_page(path, state) -> int:
    "Run cells and fences in one namespace; the number of fences."
    run = 0
    for index, code, fence in steps(path):
        exec(compile(code, f"{path.name}, cell {index}", "exec"), state)
        run += fence
    return run


def test_there_are_pages():
    assert len(PAGES) >= 16


def prose(path) -> str:
    "The markdown of a page."
    return "\n\n".join(cell.source for cell in Notebook(path).cells if cell.kind == "markdown")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_needs_no_files_but_its_own(path):
    code = "\n".join(code for _, code, _ in steps(path))
    assert not re.search(r"SUBWORD_NB_DATA|shared|https?://(?!tokenizer)", code)


QUESTIONS = [path for path in PAGES if "**Question:**" in prose(path)]


def test_most_pages_answer_a_question():
    assert len(QUESTIONS) >= 11


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_an_answer_has_at_most_three_steps_what_can_go_wrong_and_links(path):
    text = prose(path)
    numbers = [
        int(n) for line in re.findall(r"^## (\d.*)$", text, re.M) for n in re.findall(r"(\d)\. ", line)
    ]
    assert numbers in ([1, 2, 3], [1, 2], [])
    assert "\n## What can go wrong\n" in text
    assert text.index("**Question:**") < text.index("\n## ")
    assert re.search(r"\*\*See also:\*\* .*\.ipynb\)", text) and re.search(r"\*\*Next:\*\* .*\.ipynb\)", text)
    assert any(cell.outputs for cell in Notebook(path).cells)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_fences_parse_and_those_of_a_library_assert(path):
    fences = [code for _, code, fence in steps(path) if fence]
    for code in fences:
        ast.parse(code, path.name)
    assert all("assert " in code for code in fences), "a fence that asserts nothing shows nothing"


@pytest.mark.slow
def test_pytorch(monkeypatch, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed: its fences were not run")
    # worker processes that are started anew import the page's classes, so it is a module here
    module = tmp_path / "pytorch_page.py"
    module.write_text(
        "\n".join(code for _, code, _ in steps(NBS / "howto" / "pytorch.ipynb")), encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import pytorch_page

    assert pytorch_page.seen == len([*pytorch_page.dataset.rows()])


@pytest.mark.slow
def test_hf_datasets(tmp_path, monkeypatch):
    pytest.importorskip("datasets", reason="datasets is not installed: its fences were not run")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    state = {"__name__": "__main__"}
    assert run_page(NBS / "howto" / "hf_datasets.ipynb", state) == 5
    assert state["encoded"]["length"] == [len(row) for row in state["tok"].encode_batch(state["texts"])]


@pytest.mark.peers
def test_other_code():
    pytest.importorskip("transformers", reason="transformers is not installed: its fences were not run")
    pytest.importorskip("tiktoken", reason="tiktoken is not installed: its fence was not run")
    page, state, run = NBS / "howto" / "other_code.ipynb", {"__name__": "__main__"}, 0
    for index, code, fence in steps(page):
        if "rmtree" in code and "import" not in code:  # the folder is needed by the last fence
            break
        exec(compile(code, f"{page.name}, cell {index}", "exec"), state)
        run += fence
    state["shutil"].rmtree(state["folder"])
    assert run == 3


# What the test adds to the page's application: a place where every thread of the pool works at once, and the
# memory in use. Both are exact, unlike the size of a process, which depends on when an allocator returns memory.
MEASURES = """
import ctypes
import gc
import sys
import threading

everyone = threading.Barrier(40)  # anyio's pool has 40 threads
kept = []


@app.get("/meet")
def meet() -> dict:
    everyone.wait(300)
    return encode(Texts(texts=["every thread has its buffers now"]))


@app.get("/keep")
def keep() -> dict:
    kept.append(bytearray(1 << 20))
    return {}


class MallocInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]


@app.get("/memory")
async def memory() -> dict:
    gc.collect()
    try:
        info = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):  # not glibc: Python's own blocks only
        return {"blocks": sys.getallocatedblocks(), "bytes": None}
    info.restype = MallocInfo
    found = info()
    return {"blocks": sys.getallocatedblocks(), "bytes": found.uordblks + found.hblkhd}
"""


@pytest.fixture
def served(tmp_path):
    "The page's application in a process of its own: a function that sends requests, all before it reads an answer."
    import http.client
    import socket
    import subprocess
    import sys

    cells = [code for _, code, fence in steps(NBS / "howto" / "server.ipynb") if not fence]
    tried = next(i for i, code in enumerate(cells) if "await" in code)  # what follows tries the application
    (tmp_path / "server.py").write_text("\n".join([*cells[:tried], MEASURES]), encoding="utf-8")
    with socket.socket() as door:
        # it listens before the server starts, so that nothing has to be tried again
        door.bind(("127.0.0.1", 0))
        door.listen(64)
        port, fd = door.getsockname()[1], door.fileno()
        command = [sys.executable, "-m", "uvicorn", "server:app", "--fd", str(fd), "--log-level", "warning"]
        command += ["--timeout-keep-alive", "3600"]  # however slow the machine is
        # without a cache of freed blocks in each of the threads, memory in use is memory in use
        exact = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        server = subprocess.Popen(command, cwd=tmp_path, env=exact, stderr=subprocess.PIPE, pass_fds=[fd])
    connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(50)]

    def ask(requests):
        "The answers to at most 50 requests: paths, or paths with what is sent to them."
        used = connections[: len(requests)]
        for connection, (path, *content) in zip(used, requests, strict=True):
            kind = {"Content-Type": "application/json"}
            connection.request("POST" if content else "GET", path, *map(json.dumps, content), headers=kind)
        answers = [connection.getresponse() for connection in used]
        bodies = [answer.read().decode() for answer in answers]
        assert {answer.status for answer in answers} == {200}, bodies[0]
        return bodies

    try:
        yield ask
    finally:
        for connection in connections:
            connection.close()
        server.terminate()
        server.wait(30)
        server.stderr.close()


@pytest.mark.slow
def test_a_server_answers_2000_requests_and_does_not_grow(served):
    "1,000 texts, each encoded by one request and decoded as a stream by another, 50 requests at once."
    pytest.importorskip("uvicorn")

    def texts_of(first):
        return [f"request {k} " + "word " * (k % 50) + str(k * k) for k in range(first, first + 50)]

    def round_trips(first):
        texts = texts_of(first)
        encoded = served([("/encode", {"texts": [text, text[::-1]]}) for text in texts])
        ids = [json.loads(answer)["ids"] for answer in encoded]
        assert {len(rows) for rows in ids} == {2}
        streams = served([("/stream", {"ids": rows[0]}) for rows in ids])
        lines = [[json.loads(line)["text"] for line in answer.splitlines()] for answer in streams]
        assert ["".join(pieces) for pieces in lines] == texts

    def memory():
        return json.loads(served([("/memory",)])[0])

    def grown(before, after):
        return after["blocks"] - before["blocks"], (after["bytes"] or 0) - (before["bytes"] or 0)

    served([("/meet",)] * 40)
    for first in range(0, 500, 50):
        round_trips(first)
    once = memory()
    for first in range(0, 500, 50):
        round_trips(first)
    twice = memory()
    blocks, size = grown(once, twice)
    assert blocks < 500 and size < 1 << 16, (once, twice)  # a thousand requests, so 64 bytes each at most
    served([("/keep",)] * 2)  # the same measure sees what a request keeps
    if twice["bytes"] is not None:
        assert grown(twice, memory())[1] >= 2 << 20
