"""What tests of the command line share."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest


class Out(io.StringIO):
    "Standard output with the buffer that bytes are written to."

    def __init__(self):
        super().__init__()
        self.buffer = io.BytesIO()

    def flush(self):
        pass


def run(*args, data: bytes | None = None, cwd=None, quiet: bool = True, **env) -> subprocess.CompletedProcess:
    """The command line with arguments and standard input, in this process; with variables of the environment, in one of its own.

    `quiet`: without lines about progress, which a busy machine would cause."""
    if env:
        return subprocess.run(
            [sys.executable, "-m", "subword_nb", *map(str, args)],
            input=data or b"",
            capture_output=True,
            cwd=cwd,
            env={**os.environ, "PYTHONUTF8": "1", "SUBWORD_NB_QUIET": "1" if quiet else "", **env},
        )
    from subword_nb.cli.main import app

    out, err = Out(), io.StringIO()
    before, said, stdin = os.getcwd(), os.environ.get("SUBWORD_NB_QUIET"), sys.stdin
    os.chdir(cwd or before)
    os.environ["SUBWORD_NB_QUIET"] = "1" if quiet else ""
    sys.stdin = io.TextIOWrapper(io.BytesIO(data or b""))
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
            app(list(map(str, args)), prog_name="subword-nb")
    finally:
        os.chdir(before)
        sys.stdin = stdin
        os.environ.pop("SUBWORD_NB_QUIET")
        if said is not None:
            os.environ["SUBWORD_NB_QUIET"] = said
    return subprocess.CompletedProcess(
        args, left.value.code or 0, out.buffer.getvalue() or out.getvalue().encode(), err.getvalue().encode()
    )
