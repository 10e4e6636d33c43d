"""What this project wants of its speed: goals, and the suite of rows that measures them.

    python dev/bench_goals.py run FOLDER [--only encode|train] [--large] [--json FILE]
    python dev/bench_goals.py show FILE...        the goals of a run that was written with --json

The folder of a run holds vocabularies and texts under the names of `SUITE_FILES`; what is missing is left out.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from subword_nb.cli.bench import by_row, chain_rows, rate, rows_of, run_rows, training_rows
from subword_nb.cli.bench_process import LIBRARIES
from subword_nb.cli.bench_rows import Row, TrainRow, installed, vocabulary
from subword_nb.core.progress import progress_lines

# ---------------------------------------------------------------- goals of encoding


class Goal(NamedTuple):
    "A ratio of two rates of one run that is to be reached."

    says: str  # In words
    vocabulary: str  # Where to look
    text: str  # Its name
    cases: tuple[str, ...]  # In which cases
    which: str  # first or warm
    against: tuple[str, ...]  # The best of these counts
    least: float  # Ours over theirs
    threads: int = 1  # How many


BOTH = ("whole", "documents")
GOALS = [
    Goal("GPT-2, English, first pass", "gpt2", "english", BOTH, "first", ("gigatoken",), 1.2),
    Goal("GPT-2, English, warm", "gpt2", "english", BOTH, "warm", ("gigatoken",), 1.0),
    Goal("GPT-2, English, warm", "gpt2", "english", BOTH, "warm", ("tiktoken",), 30),
    Goal("GPT-2, English, warm", "gpt2", "english", BOTH, "warm", ("tokenizers",), 100),
    *(
        Goal(f"{v} on {t}, {w}", v, t, BOTH, w, ("gigatoken",), 1.0)
        for v, t in (
            ("gpt2", "code"),
            ("gpt2", "multilingual"),
            ("cl100k", "code"),
            ("cl100k", "multilingual"),
            ("o200k", "code"),
            ("o200k", "multilingual"),
            ("cl100k", "english"),
        )
        for w in ("first", "warm")
    ),
    *(
        Goal(f"GPT-2, 2 threads, {w}", "gpt2", "english", BOTH, w, ("gigatoken",), 1.0, 2)
        for w in ("first", "warm")
    ),
    *(
        Goal(f"BERT, {t}, first pass", "bert", t, ("documents",), "first", (x,), n)
        for t in ("english", "multilingual")
        for x, n in (("tokie", 4), ("tokenizers", 50))
    ),
    *(
        Goal(f"{v} Unigram, first pass", v, "english", BOTH, "first", ("tokie", "sentencepiece"), 3)
        for v in ("t5", "xlnet")
    ),
    Goal("Llama-2, first pass", "llama2", "english", BOTH, "first", ("gigatoken",), 2),
    Goal("a list of a long text", "gpt2", "english", ("list",), "warm", ("tolist",), 0.9),
    Goal("20 characters to a list", "gpt2", "english", ("20",), "warm", ("tiktoken",), 2),
    Goal("1 KB to a list", "gpt2", "english", ("1000",), "warm", ("tiktoken",), 10),
    *(
        Goal("process start to first ids", v, "sentence", ("cold",), "first", ("tiktoken",), 1.0)
        for v in ("gpt2", "r50k")
    ),
]


def best_rate(group: list[dict], which: str, names: tuple[str, ...]) -> float | None:
    "The fastest of some libraries in a row; whoever has other ids (by more than one in a thousand) does not count."
    if names == ("tolist",):  # no library, but what our list is measured by
        record = next((r for r in group if r["library"] == "subword_nb" and "tolist" in r), None)
        return record and record["bytes"] / record["tolist"] / 1e6
    tokens = next((r["tokens"] for r in group if r["library"] == "subword_nb" and "tokens" in r), 0)
    rates = [
        rate(r, which)
        for r in group
        if r["library"] in names and abs(r.get("tokens", 0) - tokens) <= tokens / 1000
    ]
    return max(filter(None, rates), default=None)


def reached(
    records: list[dict],  # Of one run
    goals: list[Goal] = GOALS,  # What is wanted
) -> list[tuple]:  # (what, case, ours, theirs, least) where both sides were measured; rates in MB/s
    "Look up the goals in a run."
    groups, found = by_row(records), []
    for goal in goals:
        for case in goal.cases:
            group = groups.get((goal.vocabulary, goal.text, case, goal.threads), [])
            ours = best_rate(group, goal.which, ("subword_nb",))
            theirs = best_rate(group, goal.which, goal.against)
            if ours and theirs:
                what = f"{goal.says}, against {' or '.join(goal.against)}"
                found.append((what, case, ours, theirs, goal.least))
    return found


def hostile_goals(groups: dict) -> Iterator[tuple]:  # (what, figure, goal, reached) of each goal
    "Hostile texts: ten megabytes a second, and four megabytes in at most five times the time of one."
    for (name, text, case, threads), group in groups.items():
        ours = next((r for r in group if r["library"] == "subword_nb"), None)
        if case != "hostile" or ours is None:
            continue
        speed = rate(ours, "first") or 0
        if text.endswith("1 MB"):
            yield f"{name} on {text}", f"{speed:.0f} MB/s", "10 MB/s", speed >= 10
            continue
        small = groups.get((name, text.replace("4 MB", "1 MB"), case, threads), [])
        one = best_rate(small, "first", ("subword_nb",))
        if one:
            times = 4 * one / speed if speed else float("inf")
            yield f"{name} on {text}, times as long", f"{times:.1f}", "5", times <= 5


def memory_goals(groups: dict) -> Iterator[tuple]:  # (what, figure, goal, reached) of each goal
    "Memory: not more than gigatoken for a long text of GPT-2's."
    for (name, text, case, threads), group in groups.items():
        memory = {r["library"]: r["memory"] for r in group if r.get("memory") is not None}
        if (name, case, threads) == ("gpt2", "whole", 1) and {"subword_nb", "gigatoken"} <= memory.keys():
            ours, theirs = memory["subword_nb"], memory["gigatoken"]
            yield f"memory, {text}", f"{ours / 1e6:.0f} MB", f"{theirs / 1e6:.0f} MB", ours <= theirs


# ---------------------------------------------------------------- goals of training


class TrainGoal(NamedTuple):
    "A ratio of theirs to ours that is to be reached."

    vocabulary: str  # Kind and number of pieces
    text: str  # Its name
    against: tuple[str, ...]  # The best of these counts
    what: str  # Seconds, nats, or bytes: peak of the process, or memory that is added
    least: float  # Theirs over ours


TRAIN_GOALS = [
    TrainGoal("bpe 32000", "english", ("gigatoken",), "seconds", 1.3),
    TrainGoal("bpe 32000", "english", ("rustbpe",), "seconds", 3),
    TrainGoal("bpe 32000", "english", ("tokenizers",), "seconds", 15),
    TrainGoal("bpe 50000", "mixed", ("rustbpe", "gigatoken", "sentencepiece"), "seconds", 2),
    TrainGoal("wordpiece 30000", "english", ("tokenizers",), "seconds", 6),
    TrainGoal("unigram 8000", "english", ("sentencepiece", "sentencepiece alike"), "seconds", 5),
    TrainGoal("unigram 32000", "english", ("sentencepiece", "sentencepiece alike"), "seconds", 5),
    TrainGoal("unigram 8000", "english", ("sentencepiece alike",), "nats", 1),
    TrainGoal("unigram 32000", "english", ("sentencepiece alike",), "nats", 1),
    TrainGoal("bpe 32000", "english", ("rustbpe",), "peak", 1),
    TrainGoal("bpe 32000", "english", ("rustbpe",), "memory", 1),
]


def worth(record: dict, what: str) -> float | None:
    "What a goal of training compares."
    return record["cpu"]["first"]["best"] if what == "seconds" else record.get(what)


def train_goals(groups: dict) -> Iterator[tuple]:  # (what, figure, goal, reached) of each goal
    "Trainings; only those count that learned as many pieces as we, to one in a thousand."

    def find(name: str, text: str) -> dict[str, dict]:
        return {r["library"]: r for r in groups.get((name, text, "train", 1), []) if "error" not in r}

    for goal in TRAIN_GOALS:
        there = find(goal.vocabulary, goal.text)
        if "subword_nb" not in there:
            continue
        pieces = there["subword_nb"]["tokens"]
        alike = [
            there[x] for x in goal.against if x in there and abs(there[x]["tokens"] / pieces - 1) <= 0.001
        ]
        ours = worth(there["subword_nb"], goal.what)
        rates = [worth(r, goal.what) for r in alike]
        theirs = min((x for x in rates if x is not None), default=None)
        if ours and theirs:
            what = f"{goal.vocabulary}, {goal.text}, {goal.what}, against {' or '.join(goal.against)}"
            yield what, f"{theirs / ours:.2f}×", f"{goal.least:g}×", theirs / ours >= goal.least
    yield from own_goals(find)


def own_goals(find) -> Iterator[tuple]:  # (what, figure, goal, reached) of each goal
    "Goals that compare ours with ours: the score objective, counting alone, and the memory of a long corpus."
    there = find("wordpiece 30000", "english")
    if {"subword_nb", "subword_nb score"} <= there.keys():
        times = worth(there["subword_nb score"], "seconds") / worth(there["subword_nb"], "seconds")
        what = "wordpiece 30000, english, score takes times the frequency's seconds, at most"
        yield what, f"{times:.2f}", "4", times <= 4
    counts = find("counts", "english").get("subword_nb")
    if counts is not None:
        speed = rate(counts, "first")
        yield "counts, english", f"{speed:.0f} MB/s", "150 MB/s", speed >= 150
    texts = ("english", "english ×10")
    short, long = (find("bpe 32000", text).get("subword_nb", {}).get("peak") for text in texts)
    if short and long:
        what = "bpe 32000, peak of ten times the text, times that of the text, at most"
        yield what, f"{long / short:.2f}", "1.5", long <= 1.5 * short


def goals_table(
    records: list[dict],  # Of one run
) -> str:  # For a terminal; empty if no goal was measured
    "The goals that were measured, whatever they are about."
    groups = by_row(records)
    rows = [
        (f"{what} ({case})", f"{ours / theirs:.2f}×", f"{least:g}×", ours / theirs >= least)
        for what, case, ours, theirs, least in reached(records)
    ]
    rows += [*memory_goals(groups), *hostile_goals(groups), *train_goals(groups)]
    lines = [f"  {'yes' if ok else 'NO ':3}  {what:76} {a:>9}  {b:>9}" for what, a, b, ok in rows]
    return "\n".join(["goals: reached, wanted", *lines]) if rows else ""


# ---------------------------------------------------------------- the suite

SUITE_FILES = {
    "gpt2": "vocab/gpt2/tokenizer.json,vocab/tiktoken/r50k_base.tiktoken",
    "r50k": "vocab/tiktoken/r50k_base.tiktoken",
    "cl100k": "vocab/tiktoken/cl100k_base.tiktoken",
    "o200k": "vocab/tiktoken/o200k_base.tiktoken",
    "bert": "vocab/bert-base-uncased/tokenizer.json",
    "t5": "vocab/t5-small/tokenizer.json,vocab/t5-small/spiece.model",
    "xlnet": "vocab/xlnet-base-cased/spiece.model",
    "llama2": "vocab/llama-2/tokenizer.model,vocab/derived/llama-2-legacy.tokenizer.json",
    "english": "corpus/english_60mb.txt.xz",
    "multilingual": "corpus/multilingual_mixed.txt.xz",
    "code": "corpus/code/*.txt.xz",
}
ALL, FAST = tuple(LIBRARIES), ("subword_nb", "gigatoken", "tiktoken")
SUITE = [  # vocabularies, texts, cases, threads, libraries, megabytes at most
    ("gpt2", "english", "whole documents", 1, ALL, 60),
    ("gpt2", "english", "whole documents", 2, ("subword_nb", "gigatoken", "fastokens"), 60),
    ("gpt2", "english", "list", 1, ("subword_nb", "gigatoken", "tiktoken"), 60),
    ("gpt2", "english", "20 1000", 1, ALL, 60),
    ("gpt2 cl100k o200k", "code multilingual", "whole documents", 1, FAST, 60),
    ("cl100k o200k", "english", "whole documents", 1, FAST, 60),
    ("bert", "english multilingual", "documents", 1, ALL, 20),
    ("t5 xlnet", "english", "whole documents", 1, ("subword_nb", "tokie", "sentencepiece"), 20),
    ("llama2", "english", "whole documents", 1, ("subword_nb", "gigatoken", "sentencepiece", "tokie"), 20),
    ("gpt2 r50k cl100k bert t5 llama2", "", "cold", 1, ALL, 0),
    ("gpt2", "", "hostile", 1, ALL, 0),
    ("cl100k o200k bert t5 xlnet llama2", "", "hostile", 1, ("subword_nb",), 0),
]
TRAIN_SUITE = [  # what, text ("mixed" is half code, half prose), megabytes at most, threads
    ("bpe=32000", "english", 60, 1),
    ("counts", "english", 60, 1),
    ("counts", "english", 60, 2),
    ("bpe=50000", "mixed", 10, 1),
    ("wordpiece=30000", "english", 10, 1),
    ("unigram=8000", "english", 10, 1),
    ("unigram=32000", "english", 10, 1),
]


def size_of(megabytes: float, limit: int) -> int:
    "Bytes of a text: what the suite says, or less."
    size = round(megabytes * 10**6)
    return min(size, limit or size)


def suite_rows(
    home: Path,  # The folder with the files of `SUITE_FILES`
    libraries: list[str],  # Those that are installed
    folder: Path,  # Where files are written
    *,
    limit: int = 0,  # Bytes of a text at most; 0 for what the suite says
) -> list[Row]:  # All rows whose files are there
    "The rows of the suite."
    there = {}
    for name, files in SUITE_FILES.items():
        found = [str(home / f) for f in files.split(",") if list(home.glob(f))]
        if found:
            there[name] = found
    names = dict.fromkeys(v for row in SUITE for v in row[0].split() if v in there)
    vocabularies = {v: vocabulary(f"{v}={','.join(there[v])}", libraries, folder) for v in names}
    rows = []
    for said, texts, cases, threads, wanted, megabytes in SUITE:
        more = {"libraries": [x for x in wanted if x in libraries], "threads": threads}
        sources = {t: there[t][0] for t in texts.split() if t in there} if texts else {"": ""}
        for text, source in sources.items():
            for v in said.split():
                for case in cases.split() if v in vocabularies else ():
                    size = size_of(megabytes, limit)
                    rows += rows_of(vocabularies[v], text, source, case, folder, limit=size, **more)
    return rows + chain_rows(libraries, folder) if rows else []


def suite_training(
    home: Path,  # The folder with the texts of `SUITE_FILES`
    libraries: list[str] | None,  # Only these; None: all that are known
    folder: Path,  # Where files are written
    *,
    limit: int = 0,  # Bytes of a text at most; 0 for what the suite says
    large: bool = False,  # Ours on ten times the text too
) -> list[TrainRow]:  # All rows whose texts are there
    "The trainings of the suite."
    sources = {
        t: [str(home / SUITE_FILES[t])] for t in ("english", "code") if list(home.glob(SUITE_FILES[t]))
    }
    if len(sources) == 2:
        sources["mixed"] = [*sources["english"], *sources["code"]]
    rows = []
    for said, text, megabytes, threads in TRAIN_SUITE:
        if text in sources:
            more = {"limit": size_of(megabytes, limit), "large": large and megabytes == 60}
            rows += training_rows(
                said, text, sources[text], folder, libraries=libraries, threads=threads, **more
            )
    return rows


def run(args: argparse.Namespace) -> None:
    "Measure the suite, and print its goals."
    if not args.folder.is_dir():
        raise SystemExit(f"FOLDER must be a folder with vocab/ and corpus/ in it, got {args.folder}")
    here = installed()
    libraries = [x for x in LIBRARIES if x in (args.library or here) and x in here]
    limit = round(args.limit * 10**6)
    with tempfile.TemporaryDirectory() as place, progress_lines("bench goals") as say:
        rows, folder = [], Path(place)
        if args.only != "train":
            rows += suite_rows(args.folder, libraries, folder, limit=limit)
        if args.only != "encode":
            rows += suite_training(args.folder, args.library, folder, limit=limit, large=args.large)
        if not rows:
            needed = SUITE_FILES["gpt2"].split(",")[0]
            raise SystemExit(f"FOLDER must contain files of the suite such as {needed}, got {args.folder}")
        options = {"rounds": args.rounds, "repeats": args.repeats, "seconds": args.seconds}
        records = run_rows(rows, out=args.json, on_progress=say, **options)
    print(goals_table(records))


def show(args: argparse.Namespace) -> None:
    "Print the goals of runs that were measured before."
    for path in args.files:
        print(goals_table(json.loads(path.read_text(encoding="utf-8"))["records"]))


def main() -> None:
    "The command line."
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(required=True)
    a = actions.add_parser("run", help="measure all rows of the suite")
    a.add_argument("folder", type=Path, help="holds vocab/ and corpus/")
    a.add_argument("--only", choices=("encode", "train"), help="one half of the suite")
    a.add_argument("--large", action="store_true", help="train BPE on ten times the text too, for its memory")
    a.add_argument("--library", "-l", action="append", help="only this one; repeat for more")
    a.add_argument("--limit", type=float, default=0, help="megabytes of a text at most; 0 for all")
    a.add_argument("--rounds", type=int, default=3, help="processes for each library")
    a.add_argument("--repeats", type=int, default=5, help="warm passes in each of them")
    a.add_argument("--seconds", type=float, default=10.0, help="no further pass for a library after so many")
    a.add_argument("--json", type=Path, help="write all figures to this file")
    a.set_defaults(action=run)
    b = actions.add_parser("show", help="the goals of runs that were written with --json")
    b.add_argument("files", type=Path, nargs="+")
    b.set_defaults(action=show)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    sys.exit(main())
