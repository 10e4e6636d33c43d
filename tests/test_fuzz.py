"""Fuzzing.

Whatever bytes come, there is an answer or a documented error; every way gives the same ids; nothing takes
long, or much memory.

`SUBWORD_NB_FUZZ_SECONDS=600 pytest tests/test_fuzz.py -m soak` is the full form: so many seconds for each target,
twice, the second time with checked kernels.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "fuzz"
sys.path.insert(0, str(HERE))

import run  # noqa: E402
import targets  # noqa: E402
import ways  # noqa: E402
from inputs import Choices, mutated  # noqa: E402

from subword_nb import Tokenizer, normalizers  # noqa: E402
from subword_nb.corpus import batches  # noqa: E402
from subword_nb.text import pretokenizers  # noqa: E402
from subword_nb.bpe.model import BPE  # noqa: E402
from subword_nb.formats.sentencepiece import parts_from_proto  # noqa: E402
from subword_nb.formats.sentencepiece_proto import ModelProto, Piece  # noqa: E402
from subword_nb.core.unicode import BYTE2CHAR  # noqa: E402
from subword_nb.unigram.model import Unigram  # noqa: E402
from subword_nb.pipeline.vocab import AddedToken  # noqa: E402
from subword_nb.wordpiece.wordlevel import WordLevel  # noqa: E402
from subword_nb.wordpiece.model import WordPiece  # noqa: E402

NAMES = sorted(targets.TARGETS)
SECONDS = float(os.environ.get("SUBWORD_NB_FUZZ_SECONDS", "0.3"))
SEED = int(os.environ.get("SUBWORD_NB_FUZZ_SEED", "0"))
CHECKED = (
    "bytes_that_are_no_text",
    "counting",
    "encode_bpe",
    "encode_char_bpe",
    "encode_made",
    "encode_unigram",
    "encode_wordpiece",
    "train",
)
FROM_ATHERIS = ("tokenizer_json", "sentencepiece_wire")


def record_without_faults(tried: dict, record_property):
    "Figures for the page of promises, and no fault."
    record_property("inputs", sum(found["inputs"] for found in tried.values()))
    record_property("faults", sum(len(found["faults"]) for found in tried.values()))
    for name, found in tried.items():
        assert not found["faults"], "\n\n".join(
            f"{name}: {f['why']}\ninput {f['input']}, saved as {f['saved']}" for f in found["faults"]
        )
        assert found["inputs"] > 0, name
        assert found["longest"] <= run.LIMIT and found["memory"] <= 1, name


@pytest.mark.parametrize("name", NAMES)
def test_seeds(name, record_property):
    "Every seed, and every input that once failed."
    seeds = run.seeds_of(name)
    assert seeds, f"there are no seeds for {name}: python tests/fuzz/make_seeds.py"
    for data in [b"", *seeds]:
        start = time.process_time()
        targets.TARGETS[name](data)
        assert time.process_time() - start < 6 * run.LIMIT  # kernels may be compiled meanwhile
    record_property("inputs", len(seeds) + 1)


@pytest.mark.parametrize(
    "name",
    ["tokenizer_json", "sentencepiece_model", "gguf", "counts_npz", "pattern", "json_lines", "encode_bpe"],
)
def test_memory_of_seeds(name):
    "What Python and NumPy allocate, also where it is never touched."
    for data in run.seeds_of(name)[:6]:
        targets.TARGETS[name](data)  # pages, kernels and tables
        tracemalloc.start()
        try:
            targets.TARGETS[name](data)
            used = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert used <= run.TIMES * len(data) + run.BESIDE


def test_seeds_are_few():
    size = sum(p.stat().st_size for p in run.SEEDS.rglob("*") if p.is_file())
    assert size <= 200_000, f"the seeds have {size:,} bytes together; keep the small ones"
    assert {p.name for p in run.SEEDS.iterdir()} == set(NAMES)


def found_tokenizers():
    "(tokenizer, texts): what once had other ids by kernels, or none."
    metaspace = pretokenizers.Metaspace
    few = {"<unk>": 0, "a": 1, "b": 2, "▁": 3, "▁a": 4, "ab": 5}
    for split in (False, True):
        for scheme in ("never", "always"):
            pre = metaspace(prepend_scheme=scheme, split=split)
            yield (
                Tokenizer(BPE({"<unk>": 0, "a": 1}, [], unk_piece="<unk>", fuse_unk=True), pre_tokenizer=pre),
                ["é é", "a  é", " "],
            )  # the mark is unknown
            yield (
                Tokenizer(
                    BPE({"▁": 0, "a": 1, "▁a": 2}, [("▁", "a")], unk_piece="▁", fuse_unk=True),
                    pre_tokenizer=pre,
                ),
                ["éa b", "a é a"],
            )  # and stands for the unknown
            yield (
                Tokenizer(
                    BPE(
                        few | {"a b": 6, " ": 7},
                        [("▁", "a"), ("a", "b")],
                        unk_piece="<unk>",
                        ignore_merges=True,
                    ),
                    pre_tokenizer=pre,
                ),
                ["a b", "aba b ab", "a  b"],
            )  # a space inside a piece
            yield (
                Tokenizer(
                    BPE(
                        few | {"a</w>": 6, "b</w>": 7},
                        [("▁", "a")],
                        unk_piece="<unk>",
                        end_of_word_suffix="</w>",
                    ),
                    pre_tokenizer=pre,
                ),
                ["a a b", "ab a"],
            )  # the end of a text
            yield (
                Tokenizer(
                    BPE(
                        few | {f"<0x{b:02X}>": b + 6 for b in range(0xC0)},
                        [("a", "b")],
                        unk_piece="<unk>",
                        byte_fallback=True,
                        fuse_unk=True,
                    ),
                    pre_tokenizer=pre,
                ),
                ["éש]é a", "é!é"],
            )  # some bytes only
            yield (
                Tokenizer(BPE(few, [("▁", "a"), ("a", "b")], unk_piece="a"), pre_tokenizer=pre),
                ["éb ab", "bé éb"],
            )  # the unknown piece is merged
    pieces = [
        Piece("<unk>", 0.0, 2),
        *(Piece(p, -float(k), 1) for k, p in enumerate(["▁", "a", "b", "n'", "a b", "a ", "▁b", "你好"])),
    ]
    for unk in ("<unk>", "▁"):
        own = [Piece(unk, 0.0, 2), *(p for p in pieces[1:] if p.piece != unk)]
        yield (
            Tokenizer(
                **parts_from_proto(
                    ModelProto(own, {"model_type": 2}, {"remove_extra_whitespaces": False})
                )._asdict()
            ),
            ["n'", "a b", "你好 n' b", "a  n", "nn'你 好"],
        )  # characters known inside pieces only
    word = WordLevel({"a": 0, "<unk>": 1})
    yield (
        Tokenizer(
            word,
            pre_tokenizer="whitespace_split",
            decoder=None,
            added_tokens=[(AddedToken("\n", single_word=True, rstrip=True), 2)],
        ),
        ["\n\n\n\na", "\n\u3000\n\n é"],
    )  # tokens that overlap
    yield (
        Tokenizer(Unigram({"b": 0, "▁": 1}, [-1.0, -1.0]), pre_tokenizer=metaspace()),
        ["b b", ""],
    )  # nothing is known of a letter that pages ask about
    yield (
        Tokenizer(
            WordPiece({"[UNK]": 0, "▁t": 1, "]": 2}),
            pre_tokenizer=metaspace(),
            decoder=None,
            added_tokens=(),
            post_processor=None,
            normalizer=normalizers.Strip(True, True),
        ),
        ["]\u3000 t", " ] t "],
    )  # a normalizer that looks at the ends
    yield (
        Tokenizer(
            BPE({c: i for i, c in enumerate(BYTE2CHAR)}, []),
            pre_tokenizer="gpt2",
            decoder=None,
            added_tokens=[(AddedToken("a"), 97)],
            post_processor=None,
            normalizer=normalizers.Strip(True, False),
        ),
        ["a\n", "a b a \n"],
    )


@pytest.mark.parametrize("number", range(len(list(found_tokenizers()))))
def test_ids_once_wrong(number):
    tok, texts = list(found_tokenizers())[number]
    for text in texts:
        for k in range(4):
            ways.check_all(tok, text, Choices(bytes([k, 3, 9])))


def test_small_blocks_without_a_place_to_cut(monkeypatch):
    "Every byte is looked at a few times, however small the blocks are; chunks are those of one long look."
    looked = []
    one_look = batches.last_cut
    monkeypatch.setattr(
        batches, "last_cut", lambda data, quick=False: looked.append(len(data)) or one_look(data, quick=quick)
    )

    def blocks(data, size):
        return [
            *((data[i : i + size], min(len(data), i + size)) for i in range(0, len(data), size)),
            (b"", len(data)),
        ]

    def chunks_ref(data, size):
        "The same with a look at all that is held, each time."
        out, place = [], 0
        held = tail = b""
        for block, reached in blocks(data, size):
            text = (tail + block).decode("utf-8", "ignore").encode()  # whole characters
            tail = (tail + block)[len(text) :]
            if text and held:
                k = one_look(held) or (len(held) if len(held.decode()) > batches.LONGEST else 0)
                out += [(held[:k], place)] * (k > 0)
                held = held[k:]
            held, place = held + text, reached
        return out + [(held, place)] * (held != b"")

    assert b"".join(c for c, _ in batches.byte_chunks(blocks(b" " * 60_000, 100))) == b" " * 60_000
    assert sum(looked) < 5 * 60_000
    monkeypatch.setattr(batches, "LONGEST", 64)
    rng = random.Random(0)
    for _ in range(1000):
        data, size = (
            "".join(
                rng.choices([" ", "\n", "a", "é", "你", "\u3000", "\u2028", "."], k=rng.randrange(120))
            ).encode(),
            rng.randrange(1, 12),
        )
        assert [*batches.byte_chunks(blocks(data, size))] == chunks_ref(data, size)


@pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform != "linux", reason="limits of a process are Linux's"
)
@pytest.mark.parametrize(
    "fault, said",
    [
        ("raise IndexError('odd')", "IndexError: odd"),
        pytest.param("while True: pass", "exit code", marks=pytest.mark.slow),
        ("x = bytearray(10**8)", "bytes for an input of"),
        ("assert False, 'differs'", "differs"),
        ("raise ValueError('no')", None),
    ],
)
def test_faults_are_found(fault, said, tmp_path, monkeypatch):
    "The harness itself: it tells faults from documented errors, and ends what hangs."
    (tmp_path / "targets.py").write_text(
        f"TARGETS = {{}}\ndef broken(data):\n    if len(data) > 3:\n        try:\n            {fault}\n       "
        " except ValueError: pass\nTARGETS['broken'] = broken\n"
    )
    (tmp_path / "run.py").write_text(
        (HERE / "run.py")
        .read_text(encoding="utf-8")
        .replace("LIMIT, TIMES", "_, TIMES", 1)
        .replace("HERE = Path", "LIMIT = 1\nHERE = Path", 1),
        encoding="utf-8",
    )
    (tmp_path / "inputs.py").write_text((HERE / "inputs.py").read_text(encoding="utf-8"), encoding="utf-8")
    code = "import json, run, sys; print(json.dumps(run.fuzz(['broken'], 1, crashes=run.Path(sys.argv[1]), most=1)['broken']))"
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUBWORD_NB")} | {
        "PYTHONPATH": str(tmp_path)
    }
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "crashes")],
        env=env,
        capture_output=True,
        text=True,
        timeout=1200,
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stderr
    found = json.loads(found.stdout)
    if said is None:
        assert not found["faults"] and found["inputs"] > 10
    else:
        assert said in found["faults"][0]["why"]
        assert Path(found["faults"][0]["saved"]).exists()


def test_mutations_are_repeatable():
    seeds = run.seeds_of("tokenizer_json")
    one, other = (
        [mutated(seeds[k % len(seeds)], rng, seeds) for k in range(200)]
        for rng in (random.Random(1), random.Random(1))
    )
    assert one == other and len(set(one)) > 150


def in_quarters(names):
    "The targets in a few groups, each of which is a process."
    return [names[k::4] for k in range(4)]


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("names", in_quarters(NAMES), ids=lambda names: names[0])
def test_bounded(names, record_property, tmp_path):
    "Some seconds of each target."
    record_without_faults(run.fuzz(names, SECONDS, "own", SEED, tmp_path), record_property)


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", FROM_ATHERIS)
def test_bounded_by_lines_reached(name, record_property, tmp_path):
    "The same, led by the lines that inputs reach."
    pytest.importorskip("atheris")
    record_without_faults(run.fuzz([name], SECONDS, "atheris", SEED, tmp_path), record_property)


@pytest.mark.slow
def test_bounded_with_checked_kernels(record_property, tmp_path):
    "No kernel reads or writes outside its arrays."
    pytest.importorskip("numba")
    record_without_faults(
        run.fuzz(list(CHECKED), SECONDS, "own", SEED + 1, tmp_path, checked=True), record_property
    )


@pytest.mark.soak
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_long(name, checked, record_property, tmp_path):
    "The full form."
    kept = Path(os.environ.get("SUBWORD_NB_CRASHES", tmp_path))
    engine = "atheris" if not checked and importlib.util.find_spec("atheris") else "own"
    record_without_faults(run.fuzz([name], max(SECONDS, 60), engine, SEED, kept, checked), record_property)
