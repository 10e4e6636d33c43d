"""What a process costs from its start to its end, beside its peers: the goals "no process waits for a compiler".

    python dev/bench_processes.py FOLDER [--rounds 7] [--only encode|train|load|first] [--json FILE]

The folder holds vocabularies and texts under the names of `bench_goals.SUITE_FILES`. Install the peers first:
pip install '.[bench]'; and for the release candidate pip install --target RC 'tokenizers==1.0.0rc3', then set
SUBWORD_NB_BENCH_RC=RC. All libraries run in turns, each time in a new process with one thread, and the least CPU time
counts: of the process from the start of Python to its end, imports and the reading of files included.
"""

import argparse
import compileall
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench_goals import SUITE_FILES

from subword_nb.cli.bench import run_rows
from subword_nb.cli.bench_process import PEAK
from subword_nb.cli.bench_rows import Row, installed, run_process, vocabulary
from subword_nb.core import native
from subword_nb.core.progress import progress_lines

OURS = "subword_nb"


class Must(NamedTuple):
    "A ratio that is to be reached."

    vocabulary: str  # A key of `SUITE_FILES`
    megabytes: int  # Of English
    against: tuple[str, ...]  # The best of these counts; () for all
    least: float  # Their CPU seconds over ours


MUSTS = [
    Must("gpt2", 1, ("tiktoken",), 1.0),
    Must("gpt2", 10, ("gigatoken",), 1.5),
    Must("gpt2", 50, ("gigatoken",), 1.5),
    Must("bert", 10, (), 1.3),
    Must("t5", 10, (), 1.3),
    Must("llama2", 10, (), 1.3),
]
SLOW = {("tokenizers", 10), ("tokenizers", 50), ("tiktoken", 50), ("fastokens", 50)}  # minutes, and no rival
LOADS = [  # vocabulary, file, the peer, its most seconds by the goals (0: no more than the peer takes)
    ("cl100k", "vocab/tiktoken/cl100k_base.tiktoken", "tiktoken", 0.13),
    ("o200k", "vocab/tiktoken/o200k_base.tiktoken", "tiktoken", 0.25),
    ("llama2", "vocab/llama-2/tokenizer.model", "sentencepiece", 0),
    ("t5", "vocab/t5-small/spiece.model", "sentencepiece", 0),
]
LOADING = {  # lines that import, and those whose time counts
    OURS: ("from subword_nb import Tokenizer\nimport subword_nb.formats.detect", "Tokenizer.load(path)"),
    "tiktoken": (
        "import tiktoken\nfrom tiktoken.load import load_tiktoken_bpe",
        "tiktoken.Encoding('x', pat_str='.', mergeable_ranks=load_tiktoken_bpe(path), special_tokens={})",
    ),
    "sentencepiece": (
        "from sentencepiece import SentencePieceProcessor",
        "SentencePieceProcessor(model_file=path)",
    ),
}
TRAINING = {
    OURS: "import sys\nfrom subword_nb.cli.main import main\n"
    "sys.argv = ['subword-nb', 'train', path, '--vocab-size', '32000', '-o', path + '.json']\nmain()",
    "gigatoken": "from gigatoken import TextFileSource, train_bpe\nresult = train_bpe(TextFileSource([path]), 32000, [])",
    "rustbpe": "from rustbpe import Tokenizer\nresult = Tokenizer()\n"
    "result.train_from_iterator(open(path, encoding='utf-8'), 32000)",
}


def text_file(home: Path, folder: Path, megabytes: int) -> Path:
    "The beginning of the English text; 0 for all."
    path = folder / f"english{megabytes}.txt"
    if not path.exists():
        data = lzma.decompress((home / SUITE_FILES["english"]).read_bytes())
        size = megabytes * 10**6 or len(data)
        path.write_bytes(data[:size].decode("utf-8", "ignore").encode("utf-8"))
    return path


def best(record: dict) -> float | None:
    "The least CPU seconds of a record."
    return record["cpu"]["first"]["best"] if "cpu" in record else None


def alike(records: list[dict]) -> list[dict]:
    "Those whose number of ids is ours, to one in a thousand, and that ended."
    ours = next((r["tokens"] for r in records if r["library"] == OURS and "tokens" in r), 0)
    return [r for r in records if "cpu" in r and abs(r["tokens"] - ours) <= ours / 1000 + 3]


def encode(args: argparse.Namespace, folder: Path, say) -> Iterator[tuple]:
    "Whole processes that encode."
    libraries = list(installed())
    everything = []
    for must in MUSTS:
        files = [
            str(args.folder / f)
            for f in SUITE_FILES[must.vocabulary].split(",")
            if (args.folder / f).exists()
        ]
        if not files:
            continue
        names = tuple(x for x in libraries if (x, must.megabytes) not in SLOW and x != "rustbpe")
        v = vocabulary(f"{must.vocabulary}={','.join(files)}", list(names), folder)
        text = text_file(args.folder, folder, must.megabytes)
        row = Row(v, f"english {must.megabytes} MB", str(text), "process", libraries=names)
        records = run_rows([row], rounds=args.rounds, repeats=0, seconds=20.0, on_progress=say)
        everything += records
        fair = {r["library"]: r for r in alike(records)}
        rivals = [x for x in (must.against or fair) if x in fair and x != OURS]
        if OURS not in fair or not rivals:
            continue
        rival = min(rivals, key=lambda x: best(fair[x]))
        what = f"{must.vocabulary}, {must.megabytes} MB, against {rival}"
        yield what, best(fair[OURS]), best(fair[rival]), "CPU s", must.least
        if must.megabytes == 50 and "gigatoken" in fair:
            ours, theirs = (fair[x]["memory"] for x in (OURS, "gigatoken"))
            if ours and theirs:
                yield "gpt2, 50 MB, peak memory, against gigatoken", ours / 1e6, theirs / 1e6, "MB", 1.0
    if args.json:
        args.json.write_text(json.dumps({"records": everything}, indent=1) + "\n", encoding="utf-8")


def train(args: argparse.Namespace, folder: Path, say) -> Iterator[tuple]:
    "Whole processes that train: 32,000 pieces on all of the English text."
    text, here = text_file(args.folder, folder, 0), installed()
    found: dict[str, list[dict]] = {x: [] for x in TRAINING if x in here}
    for _ in range(max(1, args.rounds // 2)):
        for library, runs in found.items():
            say(f"training, {library}")
            source = f"{PEAK}path = {str(text)!r}\n{TRAINING[library]}"
            runs.append(run_process(source, size=text.stat().st_size, library=library))
    for library, runs in found.items():
        if any("error" in run for run in runs):
            print(f"training, {library}: {runs[-1].get('error')}")
            return
    seconds = {x: min(run["cpu"][0] for run in runs) for x, runs in found.items()}
    peaks = {x: min(run["memory"] or 0 for run in runs) for x, runs in found.items()}
    for rival, least in (("gigatoken", 3.0), ("rustbpe", 0.0)):
        if rival in found:
            yield f"training, 60 MB, 32k, against {rival}", seconds[OURS], seconds[rival], "CPU s", least
            yield (
                f"training, 60 MB, 32k, peak memory, against {rival}",
                peaks[OURS] / 1e6,
                peaks[rival] / 1e6,
                "MB",
                1.0,
            )


def load(args: argparse.Namespace, folder: Path, say) -> Iterator[tuple]:
    "Loading alone, with everything imported."
    here = installed()
    for name, file, rival, most in LOADS:
        path = args.folder / file
        found: dict[str, list[float]] = {x: [] for x in (OURS, rival) if x in here}
        for _ in range(args.rounds if path.exists() else 0):
            for library, times in found.items():
                ready, lines = LOADING[library]
                source = (
                    f"import time\npath = {str(path)!r}\n{ready}\nbegin = time.process_time()\n{lines}\n"
                    "print(time.process_time() - begin)"
                )
                times.append(float(answer(source)))
        if all(found.values()) and len(found) == 2:
            say(f"loading {name}")
            yield (
                f"loading {name}, against {rival}",
                min(found[OURS]),
                most or min(found[rival]),
                "CPU s",
                1.0,
            )


def answer(source: str, **variables: str) -> str:
    "What a program prints."
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"TIKTOKEN_CACHE_DIR": ""}
    done = subprocess.run(
        [sys.executable, "-c", source], env=env | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


FIRST = """
import time
from subword_nb import Tokenizer
text = open({text!r}, encoding="utf-8").read()
tok = Tokenizer.load({path!r})
begin = time.process_time()
tok.encode_array(text)
print(time.process_time() - begin)
"""


def first(args: argparse.Namespace, folder: Path, say) -> Iterator[tuple]:
    "The first bulk call after an installation, and that of the process after it."
    if not (native.PACKAGE / "_kernels").is_dir():
        print("first after installation: this package has no library of kernels; install it, or build one")
        return
    path, text = args.folder / SUITE_FILES["gpt2"].split(",")[0], text_file(args.folder, folder, 1)
    times: list[list[float]] = []
    for k in range(args.rounds):
        say(f"installation {k + 1}")
        site = folder / f"site{k}"
        shutil.copytree(native.PACKAGE, site / "subword_nb", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(site, quiet=1)  # as pip does
        source = FIRST.format(text=str(text), path=str(path))
        variables = {"PYTHONPATH": str(site), "SUBWORD_NB_CACHE": str(site / "cache")}
        times.append([float(answer(source, **variables)) for _ in range(2)])
    one, two = (min(column) * 1e3 for column in zip(*times, strict=True))
    yield "first bulk call after installation, against the second + 5", one, two + 5, "ms", 1.0


PARTS = {"encode": encode, "train": train, "load": load, "first": first}


def main() -> None:
    "The command line."
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds vocab/ and corpus/")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument(
        "--rounds", type=int, default=7, help="processes for each library; the least time counts"
    )
    parser.add_argument("--json", type=Path, help="write the records of encoding to this file")
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    if not args.folder.is_dir():
        raise SystemExit(f"FOLDER must be a folder with vocab/ and corpus/ in it, got {args.folder}")
    rows = []
    with tempfile.TemporaryDirectory() as place, progress_lines("bench processes") as say:
        for name in [args.only] if args.only else PARTS:
            rows += PARTS[name](args, Path(place), say)
    print(f"\n  {'goal':66} {'ours':>9} {'theirs':>9}      {'ratio':>7} {'wanted':>7}")
    for what, ours, theirs, unit, least in rows:
        said = "yes" if theirs / ours >= least else "NO"
        print(f"  {what:66} {ours:9.3f} {theirs:9.3f} {unit:5}{theirs / ours:6.2f}× {least:6.2f}×  {said}")


if __name__ == "__main__":
    main()
