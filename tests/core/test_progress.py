"""A bar on a terminal, and lines that say how far long work is in a log."""

import os
import re
import sys
from pathlib import Path

import pytest
from commands import run

from subword_nb.core import progress
from subword_nb.tokenizer.tokenizer import Tokenizer


def test_track_passes_items_on_and_draws_only_when_asked(capsys):
    assert list(progress.track(range(5))) == list(progress.track(range(5), progress=False)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""
    assert list(progress.track(["aa", "b"], total=3, desc="letters", progress=True, unit="B", step=len)) == [
        "aa",
        "b",
    ]
    assert "letters" in capsys.readouterr().err


def test_a_bar_appears_when_someone_looks_and_it_takes_long(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 4.0, 5.0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    assert list(progress.track("abc", total=3, desc="slow")) == ["a", "b", "c"]
    assert "slow" in capsys.readouterr().err


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    "A folder with a text and a tokenizer trained on it."
    home = tmp_path_factory.mktemp("progress")
    (home / "text.txt").write_text("hugs and pugs, puns and buns\n" * 20000, encoding="utf-8")
    Tokenizer.train(["hugs and pugs, puns and buns"] * 20, vocab_size=270).save(home / "tok.json")
    return home


@pytest.mark.parametrize(
    "call, says",
    [
        (["train", "text.txt", "--vocab-size", "300", "-o", "{out}/t.json"], "subword-nb train: "),
        (["count", "text.txt", "-o", "{out}/c.npz"], "subword-nb count: "),
        (["encode-files", "-t", "tok.json", "text.txt", "-o", "{out}/ids.npy"], "subword-nb encode-files: "),
        pytest.param(
            [
                "bench",
                "--library",
                "subword_nb",
                "--case",
                "20",
                "--limit",
                "0.01",
                "--rounds",
                "1",
                "--repeats",
                "0",
            ],
            "subword-nb bench: row 1 of 1",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda x: x[0] if isinstance(x, list) else "",
)
def test_long_work_shows_life_in_a_log(folder, tmp_path, monkeypatch, call, says):
    "Lines at every moment instead of every ten seconds; none where somebody asked for quiet, and none in standard output."
    monkeypatch.setattr(progress, "EVERY", 1e-4)
    call = [word.format(out=tmp_path) for word in call]
    done = run(*call, cwd=folder, quiet=False)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 0 and any(
        line.startswith(says) and re.search(r", \d+ s$", line) for line in lines
    ), done
    assert b"subword-nb train:" not in done.stdout and not progress.open_lines
    for path in tmp_path.iterdir():
        path.unlink()
    assert run(*call, cwd=folder).stderr == b""


def test_lines_say_how_far_the_work_is(monkeypatch, capsys):
    "What is counted, what is said, what was done before; and a bar where there is a terminal."
    monkeypatch.delenv("SUBWORD_NB_QUIET", raising=False)
    with progress.progress_lines("outer", always=True, every=1000) as say:
        (lines,) = progress.open_lines
        assert re.fullmatch(r"outer: at work, \d+ s", lines.line())
        say("reading")
        for n, _ in enumerate(progress.track(range(3), total=3, desc="counting", unit="doc")):
            assert lines.line().startswith(f"outer: counting, {n} of 3 docs, ")
            for _ in progress.track(b"ab", total=None, desc="", unit="B", step=lambda b: 10**7 * b):
                assert "outer: counting, " in lines.line() and " MB, " in lines.line()
            assert lines.line().startswith(f"outer: counting, {n} of 3 docs, ")
        assert lines.line().startswith("outer: reading, ")
        broken = progress.track(range(3), total=100, desc="training", unit="%")
        next(broken)
        assert lines.line().startswith("outer: training, 0 of 100 %, ")
        broken.close()
        assert lines.line().startswith("outer: reading, ")
    assert progress.open_lines == [] and capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.progress_lines("outer"):
        assert progress.open_lines == []


def test_lines_end_when_nobody_can_read_them(monkeypatch):
    "Standard error that is closed, or none, is no error of the work."
    monkeypatch.delenv("SUBWORD_NB_QUIET", raising=False)
    with open(os.devnull, "w") as closed:
        pass
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress_lines("outer", every=1e-4):
            found = sum(range(10**6))
        assert found == 499999500000
