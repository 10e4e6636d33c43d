"""Goals and the suite that measures them: only equal work counts, and every goal has its row."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from subword_nb.cli.bench_process import LIBRARIES, TRAINERS
from subword_nb.cli.bench_rows import Vocabulary

DEV = Path(__file__).resolve().parent.parent / "dev"
sys.path.insert(0, str(DEV))
import bench_goals  # noqa: E402

ONCE = {"best": 1.0, "noise": 0, "runs": 1}


def record(library, seconds, **more):
    "A record of a first pass over a megabyte."
    row = dict(vocabulary="gpt2", text="english", case="whole", threads=1, library=library)
    return row | dict(cpu={"first": ONCE | {"best": seconds}}, bytes=10**6, tokens=10_000, digest="aa") | more


def said(records):
    "Whether each goal is reached, and what it is about."
    lines = bench_goals.goals_table(records).splitlines()[1:]
    return [(line.split()[0], line[7:83].rstrip()) for line in lines]


def test_no_record_reaches_no_goal():
    assert bench_goals.goals_table([]) == ""


def test_a_goal_is_a_ratio_of_one_run():
    goal = bench_goals.GOALS[0]
    ours, theirs = record("subword_nb", 0.3), record("gigatoken", 0.4)
    [(what, case, a, b, least)] = bench_goals.reached([ours, theirs], [goal])
    assert (what, case, least) == ("GPT-2, English, first pass, against gigatoken", "whole", 1.2)
    assert a / b == pytest.approx(4 / 3)
    assert said([ours, theirs])[0] == ("yes", f"{what} (whole)")
    assert said([ours | {"cpu": theirs["cpu"]}, theirs])[0][0] == "NO"


def test_other_ids_do_not_count_for_a_goal():
    goal = bench_goals.GOALS[0]
    ours, theirs = record("subword_nb", 1.0), record("gigatoken", 1.0, digest="bb")
    assert len(bench_goals.reached([ours, theirs], [goal])) == 1
    assert bench_goals.reached([ours, theirs | {"tokens": 10_020}], [goal]) == []


def test_a_hostile_text_has_a_rate_and_a_ratio_of_sizes():
    sizes = ((1, 0.1), (4, 0.6))
    hostile = [
        record("subword_nb", t, case="hostile", text=f"spaces {n} MB", bytes=n * 10**6) for n, t in sizes
    ]
    assert [ok for ok, _ in said(hostile)] == ["yes", "NO"]


def training(library, seconds, **more):
    return (
        record(
            library, seconds, vocabulary="bpe 32000", case="train", tokens=32_000, peak=10**8, memory=10**7
        )
        | more
    )


def test_goals_of_training_count_only_equal_work():
    records = [
        training("subword_nb", 1.0),
        training("gigatoken", 2.0),
        training("rustbpe", 2.0, peak=9 * 10**7),
        training("tokenizers", 90.0, tokens=30_000),
    ]
    assert [(ok, what.split("against ")[1].split()[0]) for ok, what in said(records)] == [
        ("yes", "gigatoken"),
        ("NO", "rustbpe"),
        ("NO", "rustbpe"),
        ("yes", "rustbpe"),
    ]


def test_a_long_corpus_needs_little_more_memory():
    texts = (("english", 10**8), ("english ×10", 2 * 10**8))
    records = [training("subword_nb", 1.0, text=text, peak=peak) for text, peak in texts]
    assert said(records) == [("NO", "bpe 32000, peak of ten times the text, times that of the text, at most")]


def test_every_goal_has_its_row_in_the_suite(shared_data, tmp_path, monkeypatch):
    files = [f for files in bench_goals.SUITE_FILES.values() for f in files.split(",")]
    missing = [f for f in files if not list(shared_data.glob(f))]
    if missing:
        pytest.skip(f"the data folder lacks {missing}")
    monkeypatch.setattr("subword_nb.cli.bench.text_file", lambda name, text, folder: name)
    monkeypatch.setattr(
        bench_goals,
        "vocabulary",
        lambda said, libraries, folder: Vocabulary(said.partition("=")[0], {}, "", {}),
    )
    there = {
        (r.vocabulary.name, r.text, r.case, r.threads): r.libraries
        for r in bench_goals.suite_rows(shared_data, list(LIBRARIES), tmp_path)
    }
    for goal in bench_goals.GOALS:
        for case in goal.cases:
            found = there.get((goal.vocabulary, goal.text, case, goal.threads), ())
            assert "subword_nb" in found, goal
            assert goal.against == ("tolist",) or set(goal.against) & set(found), goal


def test_every_file_of_the_suite_has_its_row():
    named = {
        name for vocabularies, texts, *_ in bench_goals.SUITE for name in f"{vocabularies} {texts}".split()
    }
    assert named == set(bench_goals.SUITE_FILES)


def test_every_goal_of_training_has_its_row(tmp_path):
    there = {(what.replace("=", " "), text) for what, text, *_ in bench_goals.TRAIN_SUITE}
    for goal in bench_goals.TRAIN_GOALS:
        assert (goal.vocabulary, goal.text) in there
        assert set(goal.against) <= set(TRAINERS[goal.vocabulary.split()[0]])
    assert bench_goals.suite_training(tmp_path, None, tmp_path) == []


def run(*words):
    "The program, as a shell runs it."
    command = [sys.executable, DEV / "bench_goals.py", *words]
    return subprocess.run([str(w) for w in command], capture_output=True, text=True, encoding="utf-8")


def test_the_program_shows_the_goals_of_a_file(tmp_path):
    records = [record("subword_nb", 0.3), record("gigatoken", 0.4)]
    (tmp_path / "run.json").write_text(json.dumps({"records": records}), encoding="utf-8")
    done = run("show", tmp_path / "run.json")
    assert done.returncode == 0 and done.stdout == bench_goals.goals_table(records) + "\n"


@pytest.mark.parametrize("folder, says", [("missing", "must be a folder"), (".", "must contain files")])
def test_a_folder_without_the_files_is_refused(tmp_path, folder, says):
    done = run("run", tmp_path / folder)
    assert done.returncode == 1 and says in done.stderr
