"""Types: the package is clean, right uses pass a checker, and each wrong one is found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytestmark = pytest.mark.slow
HERE = Path(__file__).parent / "types"


def mypy(project, cache, *arguments) -> tuple[int, str]:
    "The exit code and the output of the checker, run in the repository's folder."
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--no-color-output", *map(str, arguments)],
        cwd=project,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        env={**os.environ, "MYPYPATH": str(project)},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_the_package_says_that_it_has_types(project):
    assert (project / "subword_nb" / "py.typed").is_file()
    assert "subword_nb/py.typed" in (project / "MANIFEST.in").read_text(encoding="utf-8")


def test_the_package_is_clean(project, cache):
    code, said = mypy(project, cache, "--config-file", "dev/mypy.ini")
    assert code == 0, said


def test_few_errors_are_passed_over(project):
    found = [
        f"{p.relative_to(project)}:{n}"
        for p in sorted((project / "subword_nb").rglob("*.py"))
        for n, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1)
        if "type: ignore" in line
    ]
    assert len(found) <= 6, found


def test_right_uses_pass(project, cache):
    code, said = mypy(project, cache, "--config-file=", "--ignore-missing-imports", HERE / "right.py")
    assert code == 0, said


def test_each_wrong_use_is_found(project, cache):
    source = (HERE / "wrong.py").read_text(encoding="utf-8").splitlines()
    wanted = {n: m[1] for n, line in enumerate(source, 1) if (m := re.search(r"# E: (\S+)$", line))}
    assert len(wanted) > 30
    code, said = mypy(project, cache, "--config-file=", "--ignore-missing-imports", HERE / "wrong.py")
    found = {
        int(n): kind for n, kind in re.findall(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]$", said, re.MULTILINE)
    }
    assert code == 1 and found == wanted, said
