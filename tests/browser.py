"""What the tests in a browser share: Chromium under Playwright, a small file server, and a list of what went wrong on a page."""

import contextlib
import functools
import http.server
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = Path(os.environ.get("SUBWORD_NB_CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
]


def excuse(
    why: str,  # Why a test cannot run here; empty when it can
) -> str:  # The same
    "A reason to skip a test; where SUBWORD_NB_BROWSER says `required`, nothing is one."
    if why and os.environ.get("SUBWORD_NB_BROWSER") == "required":
        raise RuntimeError(why)
    return why


def missing() -> str:
    "Why there is no browser here; empty when there is one."
    if importlib.util.find_spec("playwright") is None:
        return excuse("a browser needs Playwright: pip install -e '.[browser]'")
    return excuse(
        ""
        if CHROMIUM.exists()
        else f"there is no Chromium at {CHROMIUM}: install one, or name it in SUBWORD_NB_CHROMIUM"
    )


def axe_script() -> Path:
    "The file of axe-core, which checks a page for accessibility."
    named = os.environ.get("SUBWORD_NB_NODE_MODULES")
    return (Path(named) if named else ROOT / "dev" / "web" / "node_modules") / "axe-core" / "axe.min.js"


def no_axe() -> str:
    "Why axe-core is not here; empty when it is."
    return excuse(
        ""
        if axe_script().is_file()
        else f"axe-core is missing ({axe_script()}): npm ci --prefix dev/web, or set SUBWORD_NB_NODE_MODULES"
    )


@contextlib.contextmanager
def chromium():
    "A browser, closed at the end."
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    "Serves files and says nothing."

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    "A file server whose visitors may leave before a file is through."

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def served(
    folder: Path,
):  # The address, without a slash at its end
    "Serve a folder on this machine only."
    server = Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def watch(page) -> list[str]:  # Grows while the page lives
    "Note everything that goes wrong on a page: errors in its console, failed requests, missing files, requests to elsewhere."
    wrong = []
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda e: wrong.append(f"error: {e}"))
    left = "net::ERR_ABORTED"  # not a failure: the next page was asked for before this one had all it wanted
    page.on(
        "requestfailed", lambda r: wrong.append(f"failed: {r.url} {r.failure}") if r.failure != left else None
    )
    page.on("response", lambda r: wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.on(
        "request",
        lambda r: (
            wrong.append(f"elsewhere: {r.url[:200]}")
            if urlsplit(r.url).hostname not in (None, "", "127.0.0.1")
            else None
        ),
    )
    return wrong


def sideways(page) -> str:  # Empty when the page keeps to its width
    "What makes a page wider than its window."
    return page.evaluate("""() => {
      const root = document.documentElement;
      if (root.scrollWidth <= root.clientWidth) return "";
      const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1);
      return `${root.scrollWidth} > ${root.clientWidth}: ${wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join(" | ")}`;
    }""")


def scrolling(
    page,  # A loaded page
    selector: str,  # Of blocks
) -> list[bool]:  # For each that is visible: does it scroll sideways?
    "Which blocks of a page are wider than their place."
    return page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].filter((e) => e.getBoundingClientRect().width).map((e) => {
          for (let n = e; n.tagName !== "MAIN"; n = n.parentElement)
            if (n.scrollWidth > n.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(n).overflowX)) return true;
          return false;
        })""",
        selector,
    )


def axe(
    page,  # A loaded page
    leave_out: tuple = (),  # Selectors of parts that other pages have too, and that are checked there
    within: str = "html",  # Selector of the part that is checked
) -> list[str]:  # One line for each violation, with the first elements at fault
    "What axe-core finds against WCAG 2.1, levels A and AA, or against the order of headings."
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(
            axe_script().read_text(encoding="utf-8")
        )  # as a value, so that a page's policy on scripts stands
    found = page.evaluate(
        """([within, out]) => axe.run({ include: [within], exclude: out.map((s) => [s]) }, {
          resultTypes: ['violations'],
          runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] },
          rules: { 'heading-order': { enabled: true } },
        }).then((r) => r.violations)""",
        [within, [s for s in leave_out if page.locator(s).count()]],
    )
    return [
        f"{v['id']} ({len(v['nodes'])}): "
        + " ; ".join(
            f"{n['target']} {n['html'][:160]} {n['any'][0]['message'] if n['any'] else n['failureSummary'][:150]}"
            for n in v["nodes"][:4]
        )
        for v in found
    ]


@contextlib.contextmanager
def jupyterlab(
    folder: Path,  # What JupyterLab shows; its notebooks run there
    home: Path,  # An empty folder for all that Jupyter writes elsewhere
):  # The address, without a slash at its end
    "JupyterLab in a process of its own, with nobody's settings."
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER_", "IPYTHON", "PYTEST_"))}
    env |= {
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": str(ROOT),
    }
    env.setdefault("NUMBA_CACHE_DIR", str(home / "numba"))
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip",
        "127.0.0.1",
        "--port",
        str(port),
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
        f"--ServerApp.root_dir={folder}",
    ]
    log = home / "jupyterlab.log"
    with log.open("w") as out:
        lab = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + 600
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/status", timeout=5):
                break
            if lab.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield url
    finally:
        lab.terminate()  # it ends its kernels itself
        try:
            lab.wait(30)
        except subprocess.TimeoutExpired:
            lab.kill()
            lab.wait()


def run_all(
    page,  # A page of the browser
    url: str,  # JupyterLab's address
    file: Path,  # A notebook
    top: Path,  # The folder that JupyterLab shows
    seconds: int = 900,  # For all cells together
) -> list[dict]:  # For each code cell that ran: its number, and the text of its error, "" if there is none
    "Open a notebook, run all its cells, wait until the kernel is idle, save it, and read from the file what came out."
    page.goto(f"{url}/lab/tree/{file.relative_to(top).as_posix()}?reset", timeout=600_000)
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=600_000)
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=600_000)
    end, asked, started = time.monotonic() + seconds, page.locator(".jp-Dialog .jp-mod-accept"), 0.0
    while True:  # a cell that has not run has no number yet
        page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=1000 * seconds)
        page.wait_for_timeout(500)
        if (
            asked.is_visible()
        ):  # a slow kernel lets JupyterLab ask which one is meant, and forget what it should do
            asked.click()
            started = 0.0
            continue
        if not started:
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            started = time.monotonic()
            continue
        page.keyboard.press("Control+s")
        page.wait_for_timeout(500)
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))["cells"]
        except ValueError:  # it is just being written
            continue
        cells = [c for c in stored if c["cell_type"] == "code" and "".join(c["source"]).strip()]
        errors = [
            {"cell": i, "error": f"{o['ename']}: {o['evalue']}"}
            for i, c in enumerate(cells)
            for o in c["outputs"]
            if o["output_type"] == "error"
        ]
        if errors or all(c["execution_count"] for c in cells):
            return errors or [{"cell": i, "error": ""} for i in range(len(cells))]
        if time.monotonic() > end:
            raise TimeoutError(
                f"{file.name}: cells still waiting after {seconds} s: {[i for i, c in enumerate(cells) if not c['execution_count']][:5]}"
            )
        if time.monotonic() > started + 30:  # asked too early: the kernel has nothing to do, and cells wait
            started = 0.0
