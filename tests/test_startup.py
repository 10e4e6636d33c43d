"""What a short-lived process pays: which modules it loads, how long it takes, and the quick way of short texts."""

import copy
import gc
import os
import pickle
import resource
import subprocess
import sys
import warnings

import pytest
from seeds import TEXTS as N, fresh

from subword_nb import Tokenizer
from subword_nb.pipeline.encoder import encode_general, encoder_of, choose_fast_path
from subword_nb.text.splitters import Split
from subword_nb.pipeline.processors import TemplateProcessing

SIGNS = "".join(map(chr, range(128))) + " " * 60 + "''''sStTrReElLmMdDvV019\n\n\r\r//aAzZ<|endoftext|>" * 2
LATER = (
    "numpy numba regex tqdm subword_nb.core.draw subword_nb.train.train subword_nb.pipeline.align "
    "subword_nb.text.normalizers subword_nb.formats.sentencepiece_models subword_nb.pipeline.runs"
)


def toy(**options):
    tok = Tokenizer.train(
        ["It's a test of 12 tokens, isn't it?\n\n  Yes: IT'S one's.\tEnd"] * 3,
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        **options,
    )
    tok.allowed_special = "all"
    return tok


@pytest.mark.parametrize(
    "pattern", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", Split(r"\w+|\W", dialect="rust")], ids=str
)
def test_the_fast_path_is_the_general_path(pattern):
    tok, rng = toy(pre_tokenizer=pattern), fresh(str(pattern))
    for _ in range(max(300, N // 2)):
        text = "".join(rng.choices(SIGNS, k=rng.randrange(14)))
        assert tok.encode(text) == encode_general(tok, text)
    if isinstance(pattern, str) and (
        sys.version_info >= (3, 11) or pattern == "gpt2"
    ):  # older ones lack possessive repeats
        assert choose_fast_path(encoder_of(tok))("it's quick") is not None
        assert choose_fast_path(encoder_of(tok))("<|endoftext|>") is None


def test_what_is_changed_is_heeded():
    tok = toy()
    plain = tok.encode("a test")
    tok.post_processor = TemplateProcessing(
        "<|endoftext|> $A", special_tokens=[("<|endoftext|>", tok.piece2id["<|endoftext|>"])]
    )
    assert (
        tok.encode("a test") == [tok.piece2id["<|endoftext|>"], *plain]
        and tok.encode("a test", add_special_tokens=False) == plain
    )
    tok.post_processor = None
    assert tok.encode("a test") == plain
    tok.add_tokens(["test"])
    assert tok.encode("a test")[-1] == tok.piece2id["test"]
    tok.model.dropout = 1.0
    assert len(tok.encode("a tokens")) == 8 and tok.encode("a tokens", dropout=0.0) == toy().encode(
        "a tokens"
    )


def test_a_path_with_kernels_is_asked_first():
    tok = toy()
    text = "seven " * 30  # shorter ones are quicker without
    encoder = encoder_of(tok)
    encoder.quick = lambda given: [7] if given == text else None
    assert tok.encode(text) == [7] and tok.encode("a test") == toy().encode("a test")
    assert tok.encode(text, dropout=0.0) == toy().encode(text)


def test_copies_are_whole():
    tok = toy()
    ids = tok.encode("a test")
    assert copy.deepcopy(tok).encode("a test") == pickle.loads(pickle.dumps(tok)).encode("a test") == ids


def test_reading_a_file_leaves_the_collector_as_it_was(tmp_path):
    toy().save(tmp_path / "tokenizer.json")
    for collects in (True, False):
        (gc.enable if collects else gc.disable)()
        try:
            Tokenizer.load(tmp_path / "tokenizer.json")
            (tmp_path / "bad.json").write_text('{"model": 5}')
            with pytest.raises(ValueError):
                Tokenizer.load(tmp_path / "bad.json")
            assert gc.isenabled() == collects
        finally:
            gc.enable()


@pytest.mark.parametrize("name", ["tokenizer.json", "folder", "tok.tiktoken"])
def test_one_line_needs_few_modules(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    tok = Tokenizer.train(["a test of tokens"] * 3, vocab_size=270, pre_tokenizer="gpt2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ranks do not say how text is split
        tok.save(path, kind="gpt2" if name == "folder" else None)
    code = (
        "import sys; from subword_nb import Tokenizer; Tokenizer.load(sys.argv[1], "
        "**eval(sys.argv[3])).encode('A sentence.'); print(*(m for m in sys.argv[2].split() if m in "
        "sys.modules))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            str(path),
            LATER,
            "dict(pattern='gpt2')" if name == "tok.tiktoken" else "{}",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    later = (
        {"subword_nb.core.draw", "subword_nb.text.normalizers"} if name == "folder" else set()
    )  # that is told apart from other pairs of files
    assert set(done.stdout.split()) <= later


def seconds(code, folder, runs=5):
    "The least CPU time of a fresh Python that runs the code."
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPYCACHEPREFIX": str(folder)
    }
    times = []
    for _ in range(runs + 1):  # the first one compiles the modules
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


@pytest.mark.peers
@pytest.mark.slow
def test_a_process_starts_about_as_quickly_as_with_tiktoken(shared_file, tmp_path):
    pytest.importorskip("tiktoken")
    ranks, pipeline = (
        shared_file("vocab/tiktoken/r50k_base.tiktoken"),
        shared_file("vocab/gpt2/tokenizer.json"),
    )
    theirs = f"""
import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tiktoken_ext.openai_public import r50k_pat_str
ranks = load_tiktoken_bpe({str(ranks)!r})
special = {{"<|endoftext|>": 50256}}
tiktoken.Encoding("r50k", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens=special).encode("A sentence.")"""
    peer = seconds(theirs, tmp_path)
    for path in (ranks, pipeline):
        ours = seconds(
            f"from subword_nb import Tokenizer; Tokenizer.load({str(path)!r}).encode('A sentence.')", tmp_path
        )
        assert ours < 3 * peer, (path.name, ours, peer)  # about as much; the margin is for the machine
