"""The how-to pages: what they show in fences runs, in order with their cells, where the libraries that they name are installed."""

import ast
import json
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


def load_server(tmp_path, requests, at_once):
    "Start the page's application with uvicorn, send requests, and return (right answers, memory before, memory after)."
    import asyncio
    import socket
    import subprocess
    import sys
    import time

    import httpx
    import psutil

    cells = [code for _, code, fence in steps(NBS / "howto" / "server.ipynb") if not fence]
    tried = next(i for i, code in enumerate(cells) if "await" in code)  # what follows tries the application
    (tmp_path / "server.py").write_text("\n".join(cells[:tried]), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "server:app", "--port", str(port), "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        address = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx.get(f"{address}/openapi.json").raise_for_status()
                break
            except httpx.TransportError:
                assert server.poll() is None, server.stderr.read().decode()
                time.sleep(0.05)

        async def send(first, n):
            gate = asyncio.Semaphore(at_once)
            limits = httpx.Limits(max_connections=at_once)

            async def one(client, k):
                text = f"request {k} " + "word " * (k % 50) + str(k * k)
                async with gate:
                    ids = (await client.post("/encode", json={"texts": [text, text[::-1]]})).json()["ids"]
                async with gate:
                    answer = await client.post("/stream", json={"ids": ids[0]})
                pieces = [json.loads(line)["text"] for line in answer.text.splitlines()]
                return "".join(pieces) == text and len(ids) == 2

            async with httpx.AsyncClient(base_url=address, limits=limits, timeout=60) as client:
                return sum(await asyncio.gather(*[one(client, k) for k in range(first, first + n)]))

        process = psutil.Process(server.pid)
        right = asyncio.run(send(0, requests // 4))
        before = process.memory_info().rss
        right += asyncio.run(send(requests // 4, requests - requests // 4))
        return right, before, process.memory_info().rss
    finally:
        server.terminate()
        server.wait(30)
        server.stderr.close()


@pytest.mark.slow
def test_a_server_answers_2000_requests_and_does_not_grow(tmp_path):
    "1,000 texts, each encoded by one request and decoded as a stream by another, 50 at once."
    pytest.importorskip("uvicorn")
    pytest.importorskip("psutil")
    right, before, after = load_server(tmp_path, requests=1000, at_once=50)
    assert right == 1000
    assert after - before < 16 << 20, (before, after)
