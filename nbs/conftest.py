"""Every notebook is one pytest item: it passes when it runs from top to bottom.

Cells run in a process of their own (dev/nbs.py), by nbdev's rules: `eval: false` cells, cells flagged in `tst_flags`
and notebooks with `skip_exec` are left out.
With SUBWORD_NB_NOTEBOOKS=check all cells run, and their outputs must be the stored ones (under the Python that stored them).
"""

import importlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@cache
def _runner():
    "The module dev/nbs.py, by a name that the processes of notebooks can import, too."
    sys.path.insert(0, str(HERE.parent))
    return importlib.import_module("dev.nbs")


def _action(runner) -> str:
    "What is done to each notebook."
    right_python = f"{sys.version_info.major}.{sys.version_info.minor}" == runner.OUTPUTS_PYTHON
    return "check" if os.environ.get("SUBWORD_NB_NOTEBOOKS") == "check" and right_python else "test"


class NotebookFailed(Exception):
    "A notebook did not run to its end."


class NotebookItem(pytest.Item):
    "One notebook."

    def runtest(self):
        runner = _runner()
        if runner.skipped(self.path):
            pytest.skip("skip_exec in its front matter")
        problem, _ = runner.apart(_action(runner), self.path)
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
    if file_path.suffix == ".ipynb" and not any(
        p.startswith((".", "_")) for p in file_path.relative_to(HERE).parts
    ):
        return NotebookFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_finish(session):
    if any(isinstance(i, NotebookItem) for i in session.items) and importlib.util.find_spec("nbdev") is None:
        raise pytest.UsageError(
            'nbdev must be installed to run notebooks: pip install -e ".[dev]", or test without them: pytest tests'
        )
