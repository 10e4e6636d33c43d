"""Every notebook is one pytest item: it passes when it runs from top to bottom.

Cells run in a process of their own (dev/nbs.py), by nbdev's rules: `eval: false` cells, cells flagged in `tst_flags`
and notebooks with `skip_exec` are left out. The processes start ahead of their items, one fewer at a time
than there are processors; one more when the tests are through, and this process only waits.
With SUBWORD_NB_NOTEBOOKS=check all cells run, and their outputs must be the stored ones (under the Python that stored them).
"""
import importlib.util
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from subword_nb.cpus import cpu_count

HERE = Path(__file__).resolve().parent
PROCESSORS = cpu_count()
_places, _waiting = threading.Semaphore(max(1, PROCESSORS - 1)), threading.Event()


def _runner():
    "The module dev/nbs.py."
    spec = importlib.util.spec_from_file_location("subword_nb_dev_nbs", HERE.parent / "dev" / "nbs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _action(runner) -> str:
    "What is done to each notebook."
    check = os.environ.get("SUBWORD_NB_NOTEBOOKS") == "check" and f"{sys.version_info.major}.{sys.version_info.minor}" == runner.OUTPUTS_PYTHON
    return "check" if check else "test"


class NotebookFailed(Exception):
    "A notebook did not run to its end."


class NotebookItem(pytest.Item):
    "One notebook."

    future = None

    def runtest(self):
        runner = _runner()
        if runner.skipped(self.path):
            pytest.skip("skip_exec in its front matter")
        if PROCESSORS > 1 and not _waiting.is_set():
            _waiting.set()
            _places.release()
        problem, _ = self.future.result() if self.future else runner.apart(_action(runner), self.path)
        if problem:
            raise NotebookFailed(problem)

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, NotebookFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, f"notebook {self.path.relative_to(HERE).as_posix()}"


class NotebookFile(pytest.File):
    "Holds the one item of a notebook."

    def collect(self):
        yield NotebookItem.from_parent(self, name="runs")


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".ipynb" and not any(p.startswith((".", "_")) for p in file_path.relative_to(HERE).parts):
        return NotebookFile.from_parent(parent, path=file_path)


def pytest_collection_finish(session):
    items = [i for i in session.items if isinstance(i, NotebookItem)]
    if items and importlib.util.find_spec("nbdev") is None:
        raise pytest.UsageError('notebooks run by nbdev, which is not installed: pip install -e ".[dev]", or name what is to be tested without them: pytest tests')
    if not session.config.option.collectonly and len(items) > 1:
        runner = _runner()
        session.config.stash[_pool] = pool = ThreadPoolExecutor(PROCESSORS)
        for item in items:
            if not runner.skipped(item.path):
                item.future = pool.submit(_in_turn, runner, item.path)


def _in_turn(runner, path):
    "Run a notebook when there is a place."
    with _places:
        return runner.apart(_action(runner), path)


_pool = pytest.StashKey[ThreadPoolExecutor]()


def pytest_sessionfinish(session):
    if pool := session.config.stash.get(_pool, None):
        pool.shutdown(wait=True, cancel_futures=True)
