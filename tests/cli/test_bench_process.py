"""The benchmark: what it measures is what was asked for, every library gives the same ids, and nothing that goes wrong is silent."""

import json
import subprocess
import sys
from functools import partial

import pytest
import typer
from seeds import TEXTS, fresh
from typer.testing import CliRunner

from subword_nb.cli import bench_rows
from subword_nb.cli import bench as cli_bench
from subword_nb.cli.bench_rows import (
    Row,
    TrainRow,
    chain,
    hostile,
    run_cold,
    run_job,
    run_row,
    run_training,
    shuffled,
    vocabulary,
)
from subword_nb.cli.bench_process import (
    TRAINERS,
    Job,
    Training,
    cut,
    digest,
    measure,
    mixed_text,
    text_slices,
)
from subword_nb.cli.bench import bench_command, chain_rows, compared, hostile_table, table, train_table
from subword_nb.cli.common import Commands
from subword_nb.tokenizer.tokenizer import Tokenizer

CASES = ["whole", "list", "documents", "20"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "A text and a tokenizer."
    home = tmp_path_factory.mktemp("bench")
    (home / "text.txt").write_text(mixed_text(size=20_000), encoding="utf-8")
    Tokenizer.train([mixed_text(size=20_000)], vocab_size=600, progress=False).save(home / "tok.json")
    return home


@pytest.fixture(scope="module")
def row(folder):
    "A function from a case to its row, ours alone."
    v = vocabulary(f"v={folder / 'tok.json'}", ["subword_nb"], folder)
    return lambda case, **more: Row(
        v, "nonsense", str(folder / "text.txt"), case, libraries=("subword_nb",)
    )._replace(**more)


def shell(*words):
    "The command as a shell runs it."
    app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode=None)
    app.command("bench")(bench_command)
    app.callback()(lambda: None)
    return CliRunner().invoke(app, ["bench", *map(str, words)], prog_name="subword-nb")


def test_an_array_that_is_made_is_counted_as_memory():
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells how much memory a process holds now")
    code = (
        "import json, numpy as np; from subword_nb.cli.bench_process import passes; "
        "print(json.dumps(passes(lambda n: np.ones(n, np.uint8), 60_000_000, lambda result: {'n': len(result)}, repeats=1)))"
    )  # in a small process: of a large one the system may take memory away meanwhile
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["n"] == 60_000_000 and 55_000_000 < found["memory"] < 90_000_000


def test_measuring_here_and_in_a_process_gives_the_same_ids(folder):
    job = Job("subword_nb", str(folder / "tok.json"), str(folder / "text.txt"), "documents", 4096, repeats=0)
    there, tok = (
        run_job(job, patience=900),
        Tokenizer.load(folder / "tok.json"),
    )  # with nothing in a cache it compiles first
    assert (there["digest"], there["tokens"]) == digest(
        [tok.encode(t) for t in cut(mixed_text(size=20_000), 4096)]
    )
    assert len(there["cpu"]) == 1 and there["cpu"][0] > 0 and there["wall"][0] > 0
    assert there["bytes"] == len(mixed_text(size=20_000).encode())


def test_what_fails_is_a_record(row, monkeypatch):
    job = Job("subword_nb", "gone.json", "gone.txt")
    assert "gone" in run_job(job)["error"] and "gone.json" in run_cold(job)["error"]
    assert run_job(job, patience=0.001) == {"error": "no answer within 0.001 s"}
    monkeypatch.setattr(bench_rows, "run_job", lambda job: {"error": "ended by signal 9"})
    [record] = run_row(row("whole"))
    assert record["error"] == "ended by signal 9" and "signal 9" in table([record])


def test_a_result_that_changes_from_run_to_run_is_told(row, monkeypatch):
    digests = iter("abc")
    monkeypatch.setattr(
        bench_rows,
        "run_job",
        lambda job: {
            "cpu": [1.0, 2.0],
            "wall": [1.0, 2.0],
            "memory": 1,
            "digest": next(digests),
            "tokens": 3,
            "bytes": 9,
            "count": 1,
        },
    )
    [record] = run_row(row("whole"))
    assert record["digest"] == "differs from run to run"
    assert record["cpu"]["first"] == {"best": 1.0, "noise": 0.0, "runs": 3}


def test_a_case_that_does_not_exist(folder):
    with pytest.raises(ValueError, match="case must be one of whole, list, documents, short, got 'fast'"):
        measure(Job("subword_nb", str(folder / "tok.json"), str(folder / "text.txt"), "fast"))


@pytest.mark.parametrize("case", ["whole", "cold"])
def test_the_command_writes_what_it_prints(folder, tmp_path, case):
    options = (
        "-t",
        f"v={folder / 'tok.json'}",
        "--text",
        f"t={folder / 'text.txt'}",
        "--case",
        case,
        "-l",
        "subword_nb",
        "--rounds",
        1,
        "--repeats",
        1,
    )
    done = shell(*options, "--json", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    stored = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (
        stored["machine"]["cores"] and stored["versions"]["subword_nb"] and stored["settings"]["rounds"] == 1
    )
    assert table(stored["records"]) in done.output
    assert str(folder) not in json.dumps(stored), "paths of a machine are not written down"
    assert "1.00×" in compared(stored["records"], stored["records"])


def test_hostile_texts_come_in_two_sizes():
    assert len(hostile("one letter", 1000)) == 1000 and set(hostile("spaces", 9)) == {" "}
    clock = {"first": {"best": 1.0, "noise": 0, "runs": 1}}
    records = [
        dict(
            vocabulary="v",
            text=f"spaces {n} MB",
            case="hostile",
            threads=1,
            library="subword_nb",
            cpu=clock | {"first": {"best": t, "noise": 0, "runs": 1}},
            bytes=n * 10**6,
        )
        for n, t in ((1, 0.1), (4, 0.6))
    ]
    assert "6.0 times as long" in hostile_table(records)
    assert "no answer" in hostile_table(
        [
            records[0],
            {k: v for k, v in records[1].items() if k != "cpu"} | {"error": "no answer within 120 s"},
        ]
    )


def test_chains_are_a_case_of_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(cli_bench, "chain_rows", partial(chain_rows, lengths=(4,), letters=20))
    done = shell(
        "--case", "chains", "-l", "subword_nb", "--rounds", 1, "--repeats", 0, "--json", tmp_path / "a.json"
    )
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["records"]
    assert [(r["vocabulary"], r["text"], r["tokens"]) for r in records] == [
        (f"chain of 4, {kind}", "20 letters", 6) for kind in ("tokenizer.json", "sentencepiece")
    ]
    assert records[0]["digest"] == records[1]["digest"]
    assert "chain of 4, sentencepiece · 20 letters · chains · ms of CPU time" in done.output


@pytest.mark.peers
def test_every_library_splits_a_chain_alike(tmp_path):
    here = tuple(x for x in ("subword_nb", "tokenizers", "sentencepiece") if x in bench_rows.installed())
    (tmp_path / "letters.txt").write_text("a" * 40, encoding="utf-8")
    records = [
        r
        for v in chain(10, tmp_path)
        for r in run_row(
            Row(v, "40 letters", str(tmp_path / "letters.txt"), "chains", libraries=here), rounds=1, repeats=0
        )
    ]
    assert [r["library"] for r in records] == [x for x in here if x != "sentencepiece"] + [
        x for x in here if x != "tokenizers"
    ]
    assert {r.get("tokens") for r in records} == {5} and len({r["digest"] for r in records}) == 1, table(
        records
    )


@pytest.mark.parametrize("algorithm, options", [("bpe", {}), ("wordpiece", {"objective": "frequency"})])
def test_a_training_learns_what_the_library_learns(folder, algorithm, options):
    there = run_job(
        Training("subword_nb", algorithm, str(folder / "text.txt"), 500), patience=900
    )  # with nothing in a cache it compiles first
    tok = Tokenizer.train(folder / "text.txt", algorithm=algorithm, vocab_size=500, progress=False, **options)
    assert there["pieces"] == list(tok.piece2id) and there["tokens"] == tok.vocab_size
    assert (
        there["bytes"] == (folder / "text.txt").stat().st_size
        and len(there["cpu"]) == 1
        and there["cpu"][0] > 0
    )
    assert there["peak"] is None or there["peak"] > there["memory"] >= 0


def test_a_unigram_model_is_measured_too(folder):
    there = run_job(Training("subword_nb", "unigram", str(folder / "text.txt"), 500), patience=900)
    assert there["tokens"] == 497 and "<unk>" not in there["pieces"]
    assert 0 < there["nats"] < 20 and 0 < there["pieces_used"] <= 1.5
    assert "nats" not in run_job(
        Training("subword_nb", "unigram", str(folder / "text.txt"), 500, look=False), patience=900
    )


def test_a_training_that_fails_is_a_record(folder, monkeypatch):
    row = TrainRow("text", "gone.txt", "bpe", 300, names=("subword_nb",))
    [record] = run_training(row)
    assert "gone.txt" in record["error"] and "gone.txt" in train_table([record])
    monkeypatch.setitem(TRAINERS["bpe"], "absent", TRAINERS["bpe"]["subword_nb"])
    monkeypatch.setattr(
        bench_rows,
        "run_job",
        lambda job, patience: {"error": "ModuleNotFoundError: No module named 'absent'"},
    )
    assert "No module named 'absent'" in train_table(run_training(row._replace(names=("absent",))))


def test_documents_for_training_are_the_text(folder):
    text = (folder / "text.txt").read_text(encoding="utf-8")
    assert "".join(text_slices(folder / "text.txt", size=50)) == text


def test_a_long_corpus_has_the_same_words_and_other_documents(folder, tmp_path):
    (tmp_path / "a.txt").write_text(
        " ".join(f"Sentence {i} ends here." for i in range(200)), encoding="utf-8"
    )
    documents = (
        shuffled(tmp_path / "a.txt", tmp_path / "b.txt", times=10)
        .read_text(encoding="utf-8")
        .split("\n\n")[:-1]
    )
    assert len(documents) == len(set(documents)) == 100
    assert sorted(" ".join(documents).split()) == sorted(
        (tmp_path / "a.txt").read_text(encoding="utf-8").split() * 10
    )


def test_the_command_trains(folder, tmp_path):
    options = (
        "--train",
        "bpe=400",
        "--train",
        "counts",
        "--text",
        f"t={folder / 'text.txt'}",
        "-l",
        "subword_nb",
        "--rounds",
        1,
        "--threads",
        2,
    )
    done = shell(*options, "--json", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    stored = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert [(r["vocabulary"], r["threads"]) for r in stored["records"]] == [("bpe 400", 2), ("counts", 2)]
    assert all(train_table([r]) in done.output for r in stored["records"])
    assert str(folder) not in json.dumps(stored), "paths of a machine are not written down"
    assert "1.00×" in compared(stored["records"], stored["records"])


@pytest.mark.parametrize(
    "words, says",
    [
        (("--train", "bpe"), "--train must be counts"),
        (("--train", "counts=3"), "got 'counts=3'"),
        (("--only", "both"), "--only must be encode or train"),
        (("--only", "train", "--case", "list"), "encodes nothing"),
        (("--only", "encode", "--train", "counts"), "trains nothing"),
        (("-l", "tokenizers", "--train", "counts"), "--library must learn counts"),
        (("-l", "rustbpe"), "only trains"),
    ],
)
def test_what_is_no_training(words, says, monkeypatch):
    monkeypatch.setattr(
        cli_bench, "installed", lambda: dict.fromkeys(["subword_nb", "tokenizers", "rustbpe"], "1.0")
    )
    done = shell(*words, *([] if "-l" in words else ["-l", "subword_nb"]))
    assert done.exit_code == 2 and says in done.output


@pytest.mark.peers
@pytest.mark.slow
def test_other_trainers_learn_as_many_pieces(folder):
    text = " ".join(w for w in mixed_text(size=40_000).split() if w.isascii() and w.isalpha() and len(w) < 50)
    (folder / "words.txt").write_text(text, encoding="utf-8")
    here = bench_rows.installed()
    for algorithm, trainers in TRAINERS.items():
        names = tuple(n for n in trainers if n.split()[0] in here)
        records = run_training(
            TrainRow(
                "words",
                str(folder / "words.txt"),
                algorithm,
                0 if algorithm == "counts" else 600,
                names=names,
            ),
            rounds=1,
        )
        assert not [r for r in records if "error" in r], train_table(records)
        assert algorithm == "counts" or all(597 <= r["tokens"] <= 600 for r in records), train_table(records)
        if algorithm == "bpe":
            assert all(
                r["shared"] == 1 for r in records if r["library"] in ("subword_nb", "gigatoken", "tokenizers")
            ), train_table(records)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm, known",
    [
        ("bpe", {"tiktoken", "tokenizers", "tokie", "gigatoken", "fastokens"}),
        ("wordpiece", {"tokenizers", "tokie"}),
        ("unigram", {"tokenizers"}),
    ],
)
def test_every_library_gives_the_same_ids(folder, algorithm, known):
    "All of them for whole texts; for one of the other cases one of them, others in each run."
    here = [x for x in cli_bench.installed() if x in known | {"subword_nb"}]
    if len(here) < 2:
        pytest.skip("none of the other libraries is installed")
    text = " ".join(w for w in mixed_text(size=40_000).split() if w.isascii() and w.isalpha() and len(w) < 50)
    (folder / f"{algorithm}.txt").write_text(text, encoding="utf-8")
    Tokenizer.train([text], algorithm=algorithm, vocab_size=900, progress=False).save(
        folder / f"{algorithm}.json"
    )
    v = vocabulary(f"v={folder / algorithm}.json", here, folder)
    others = [*(case for case in CASES if case != "whole"), "cold"] if algorithm == "bpe" else ["documents"]
    for case in ["whole", *(others if TEXTS >= 2000 else [fresh("case").choice(others)])]:
        asked = (
            here
            if case == "whole" or TEXTS >= 2000
            else ["subword_nb", fresh(case).choice([x for x in here if x != "subword_nb"])]
        )
        records = run_row(
            Row(v, "text", str(folder / f"{algorithm}.txt"), case, libraries=tuple(asked)),
            rounds=1,
            repeats=1,
        )
        assert {r["library"] for r in records} == set(asked), case
        assert len({r.get("digest", r.get("error")) for r in records}) == 1, table(records)
