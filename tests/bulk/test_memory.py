"""Peak memory of calls that promise a bound, each in a process of its own, on texts in which nothing ends."""

import gzip
import random
import subprocess
import sys

import pytest

from subword_nb.core.jit import available
from subword_nb.core.native import library

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc"),
    pytest.mark.skipif(
        not available() or library() is None, reason="without the library, compiling takes most of the memory"
    ),
]
SIZE = 48 << 20
# What a span may take: its bytes once, a sixteenth more while they are collected, and a few blocks
LIMIT = SIZE * 17 // 16 + (72 << 20)
TEXTS = {"a": "a", "spaces": " ", "pairs": "ab", "emoji": "🤗", "newlines": "\n", "Chinese": "中文字日本語"}
MODELS = [
    "gpt2/tokenizer.json",
    "tiktoken/cl100k_base.tiktoken",
    "llama-2/tokenizer.model",
    "bert-base-uncased/tokenizer.json",
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
]

CALL = """
import sys

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

{setup}
before = peak()
{call}
print(peak() - before)
"""


def peak_of(setup, call, *args):
    "How much the peak of a process rises while it makes a call."
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALL.format(setup=setup, call=call), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout.split()[-1])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")

    def find(name):
        path = folder / f"{name}.txt"
        if not path.exists():
            unit = TEXTS[name].encode()
            with open(path, "wb") as file:
                for _ in range(SIZE >> 20):
                    file.write(unit * ((1 << 20) // len(unit)))
        return path

    return find


LOAD = """
from subword_nb import Tokenizer
tok = Tokenizer.load(sys.argv[1])
tok.encode_array("some words " * 20_000)
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("model", MODELS)
def test_files_of_one_span(shared_file, hostile, tmp_path, model, text):
    call = "tok.encode_files(sys.argv[2], sys.argv[3], progress=False)"
    assert peak_of(LOAD, call, shared_file(f"vocab/{model}"), hostile(text), tmp_path / "out.npy") < LIMIT


@pytest.mark.parametrize("model", ["gpt2/tokenizer.json", "t5-small/tokenizer.json"])
def test_a_bomb_in_a_compressed_file(shared_file, tmp_path, model):
    path = tmp_path / "bomb.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(SIZE >> 20):
            file.write(b" " * (1 << 20))
    assert path.stat().st_size < SIZE // 100
    call = "tok.encode_files(sys.argv[2], sys.argv[3], progress=False)"
    assert peak_of(LOAD, call, shared_file(f"vocab/{model}"), path, tmp_path / "out.npy") < LIMIT


def test_characters_that_are_dropped_in_little_address_space(shared_file, tmp_path):
    # how many ids the end of a span may have is known, but not reserved for all of it
    path = tmp_path / "nul.txt"
    path.write_bytes(b"\0" * SIZE)
    call = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
assert tok.encode_files(sys.argv[2], sys.argv[3], add_special_tokens=False, progress=False).tokens == 0
"""
    bert = shared_file("vocab/bert-base-uncased/tokenizer.json")
    assert peak_of(LOAD, call, bert, path, tmp_path / "out.npy") < LIMIT


LETTERS = [chr(c) for c in range(0x10330, 0x1034B)]  # Gothic: four bytes each, and numbers among them


@pytest.mark.parametrize("model", ["gpt2/tokenizer.json", "tiktoken/cl100k_base.tiktoken"])
def test_words_that_never_repeat(shared_file, tmp_path, model):
    # each fills the table of spans with its bytes and with an id for each of them
    rng, path = random.Random(0), tmp_path / "words.txt"
    with open(path, "wb") as file:
        for _ in range(96):
            file.write("".join(rng.choices(LETTERS, k=1 << 17)).encode())
    call = "tok.encode_files(sys.argv[2], sys.argv[3], progress=False)"
    assert peak_of(LOAD, call, shared_file(f"vocab/{model}"), path, tmp_path / "out.npy") < 290 << 20


def test_counts_of_one_span(hostile):
    setup = """
from subword_nb.corpus.sources import Corpus
from subword_nb.text.pretokenizers import byte_level
from subword_nb.train.counting import count_corpus
count_corpus(Corpus(["some words"] * 1000).batches(), None, byte_level("gpt2"), bytewise=True)
"""
    call = """
counts = count_corpus(Corpus(sys.argv[1]).batches(), None, byte_level("gpt2"), bytewise=True, memory=1 << 24)
assert len(counts) > 0
"""
    assert peak_of(setup, call, hostile("a")) < 240 << 20


def test_counts_of_words_that_never_repeat(tmp_path):
    # counts are sorted at last, which must not take several copies of them
    rng, path = random.Random(0), tmp_path / "words.txt"
    data = rng.randbytes(10 << 20).hex().translate({ord("0") + i: "ghijklmnop"[i] for i in range(10)})
    path.write_text(" ".join(data[i : i + 10] for i in range(0, len(data), 10)), encoding="utf-8")
    setup = """
from subword_nb.corpus.sources import Corpus
from subword_nb.text.pretokenizers import byte_level
from subword_nb.train.counting import count_corpus
count_corpus(Corpus(["some words"] * 1000).batches(), None, byte_level("gpt2"), bytewise=True, memory=1 << 20)
"""
    call = """
counts = count_corpus(Corpus(sys.argv[1]).batches(), None, byte_level("gpt2"), bytewise=True, memory=1 << 24)
assert len(counts) > 2_000_000, len(counts)
size = counts.data.nbytes + counts.bounds.nbytes + counts.counts.nbytes
before += 3 * size
"""
    assert peak_of(setup, call, path) < 48 << 20


def test_counts_in_two_threads(tmp_path):
    # tables that a thread is using count as memory, too
    rng, path = random.Random(0), tmp_path / "words.txt"
    data = rng.randbytes(10 << 20).hex().translate({ord("0") + i: "ghijklmnop"[i] for i in range(10)})
    path.write_text(" ".join(data[i : i + 10] for i in range(0, len(data), 10)), encoding="utf-8")
    setup = "from subword_nb.train.train import pretoken_counts"
    call = """
from pathlib import Path
counts = pretoken_counts(Path(sys.argv[1]), threads=2, memory=1 << 26, progress=False)
assert len(counts) > 2_000_000, len(counts)
"""
    assert peak_of(setup, call, path) < 320 << 20


def test_measures_of_words_that_never_repeat(shared_file, tmp_path):
    # Chinese without a space: every chunk of some megabytes is another word
    block = "中文字日本語" * ((1 << 20) // 18)
    call = """
from pathlib import Path
from subword_nb.insight.measures import measure
assert measure(tok, Path(sys.argv[2]), progress=False).words > 0
"""
    peaks = []
    for megabytes in (48, 128):
        path = tmp_path / f"{megabytes}.txt"
        with open(path, "wb") as file:
            file.writelines(f"{chr(0x5000 + i)}{block}".encode() for i in range(megabytes))
        peaks.append(peak_of(LOAD, call, shared_file("vocab/bert-base-uncased/tokenizer.json"), path))
    assert peaks[1] < peaks[0] + (64 << 20)


STREAM = """
from subword_nb.pipeline.encoder import encode_blocks
with open(sys.argv[2], "rb") as file:
    assert sum(map(len, encode_blocks(tok, iter(lambda: file.read(1 << 20), b"")))) > 0
"""
PARTS = """
from subword_nb.bulk.distributed import encode_parts
assert encode_parts(tok, sys.argv[2], sys.argv[3], progress=False).tokens > 0
"""


@pytest.mark.parametrize("call", [STREAM, PARTS], ids=["stream", "parts"])
@pytest.mark.parametrize("model", ["tiktoken/cl100k_base.tiktoken", "t5-small/spiece.model"])
def test_streams_and_parts_of_one_span(shared_file, hostile, tmp_path, model, call):
    assert peak_of(LOAD, call, shared_file(f"vocab/{model}"), hostile("a"), tmp_path / "out") < LIMIT
