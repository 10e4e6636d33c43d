"""A trace tells what happened in training, by definition, and leaves training as it was."""

import copy
import json
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS
from subword_nb.corpus.counts import flatten_counts
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.train.train import TrainingReport
from subword_nb.insight.training_history import (
    merge_facts,
    merge_facts_ref,
    merge_history,
    never_merged,
    symbol_counts,
)
from subword_nb.train.trace import Recorder, load_trace, save_trace

ALGORITHMS = ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"]
SIZES = {"bpe": 280, "char_bpe": 60, "wordpiece": 80, "unigram": 45, "wordlevel": 20}
SOME = [*COURSE_CORPUS, "the cat sat on the mat, and the dog sat on the cat; aaa aaaa <b>&amp;</b>"]


def traced(algorithm="char_bpe", source=TOY_COUNTS, size=14, **options):
    return Tokenizer.train(source, algorithm=algorithm, vocab_size=size, trace=True, **options)


def random_case(rng):
    "An algorithm, counts and options."
    algorithm = rng.choice(["bpe", "char_bpe", "char_bpe", "wordpiece", "wordpiece"])
    counts = {
        "".join(rng.choice("abcé#"[: rng.randint(1, 5)]) for _ in range(rng.randint(1, 9))): rng.randint(1, 4)
        for _ in range(rng.randint(1, 8))
    }
    options = dict(
        tie_break=rng.choice(["ids", "first", "bytes"]),
        min_frequency=rng.choice([1, 1, 2]),
        max_token_length=rng.choice([None, None, 3]),
        limit_alphabet=rng.choice([None, None, 3]),
    )
    more = {
        "char_bpe": [
            {},
            {"end_of_word_suffix": "</w>"},
            {"continuing_subword_prefix": "##"},
            {"initial_alphabet": ["z"]},
        ],
        "wordpiece": [{"objective": "score"}, {"objective": "frequency"}, {"continuing_subword_prefix": ""}],
        "bpe": [{"initial_alphabet": "corpus"}, {}],
    }
    if rng.random() < 0.2 and algorithm == "char_bpe":
        options["byte_fallback"] = True
    specials = (
        rng.choice([[], ["<s>"], ["<s>", "é"], ["ab"]]) if algorithm != "bpe" else rng.choice([[], ["<s>"]])
    )
    options |= rng.choice(more[algorithm])
    if algorithm == "bpe" and "initial_alphabet" not in options:
        options["limit_alphabet"] = None
    return algorithm, counts, options, specials


def check_cases(seed, n):
    rng, done = random.Random(seed), 0
    while done < n:
        algorithm, counts, options, specials = random_case(rng)
        tok = traced(
            algorithm,
            counts,
            300 if algorithm == "bpe" or options.get("byte_fallback") else 40,
            special_tokens=specials,
            **options,
        )
        trace = tok.training.trace
        merges = len(trace.arrays["merges"])
        if not merges:
            continue
        step, most = rng.randrange(merges), rng.choice([1, 2, 8])
        ref = merge_facts_ref(trace, step, limit=most)
        assert merge_facts(trace, step, limit=most) == ref, (algorithm, counts, options, specials, step)
        assert (ref["order"][0]["left"], ref["order"][0]["right"]) == (ref["left"], ref["right"])
        if algorithm != "wordpiece" or options.get("objective") == "frequency":
            assert ref["count"] == tok.training.history[step]
        else:
            assert float(tok.training.history[step]) == trace.arrays["worth"][step]
        story = merge_history(trace, ref["piece"])
        check_tree(trace, story["tree"], {})
        assert step in story["steps"]
        assert all(n >= 0 for n in symbol_counts(trace).values())
        done += 1


def check_tree(trace, node, known):
    "Each node of a tree is its merge, by definition."
    if node["step"] is None:
        assert set(node) == {"piece", "step"}
        return
    ref = known.setdefault(node["step"], merge_facts_ref(trace, node["step"], limit=1))
    assert [node[k] for k in ("piece", "count", "score", "tied")] == [
        ref[k] for k in ("piece", "count", "score", "tied")
    ]
    assert (node["left"]["piece"], node["right"]["piece"]) == (ref["left"], ref["right"])
    for side in ("left", "right"):
        assert node[side]["step"] is None or node[side]["step"] < node["step"]
        check_tree(trace, node[side], known)


def test_moments_by_definition():
    check_cases(1, 250)


@pytest.mark.slow
def test_many_moments_by_definition():
    check_cases(2, 3000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_trace_changes_nothing(algorithm):
    plain, tok = (
        Tokenizer.train(SOME, algorithm=algorithm, vocab_size=SIZES[algorithm], trace=trace)
        for trace in (False, True)
    )
    assert tok == plain and tok.model == plain.model
    assert tok.training != plain.training and tok.training._replace(trace=None) == plain.training
    assert plain.training.trace is None and "trace" not in repr(plain.training)
    assert TrainingReport(*plain.training[:7]) == plain.training


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_piece_is_explained(algorithm):
    tok = traced(algorithm, SOME, SIZES[algorithm], special_tokens=["<|end|>"])
    kinds = {}
    for piece, i in tok.piece2id.items():
        e = tok.explain_training(i)
        assert (e.piece, e.id) == (piece, i) and e.kind not in ("never", "dropped", "added")
        assert json.loads(json.dumps(e.to_dict())) == e.to_dict()
        assert e.summary in str(e) and "\n" not in e.summary
        kinds[e.kind] = kinds.get(e.kind, 0) + 1
    assert kinds["special"] == 1 + (tok.model.unk_piece is not None)
    if algorithm in ("bpe", "char_bpe", "wordpiece"):
        assert kinds["merge"] == len(tok.training.trace.arrays["merges"]) == len(tok.training.history)


def test_unigram_tells_of_required_and_user_defined_pieces():
    tok = traced("unigram", SOME, 60, required_chars="Q", user_defined=["<b>"], pre_tokenizer=None)
    assert [tok.explain_training(p).kind for p in ("Q", "<b>", "<unk>", "t")] == [
        "alphabet",
        "defined",
        "special",
        "kept",
    ]
    assert "required_chars" in tok.explain_training("Q").summary
    bytewise = traced("unigram", SOME, 320, byte_fallback=True)
    assert bytewise.explain_training("<0x41>").kind == "special"


def test_unigram_says_why_something_was_no_seed():
    tok = traced(
        "unigram",
        {"abcabcabc": 3, "xy": 1, "qabc": 1},
        12,
        pre_tokenizer=None,
        max_piece_length=3,
        seed_size=12,
        character_coverage=0.9,
    )
    why = {p: tok.explain_training(p).facts["why"] for p in ("abcabc", "xy", "q")}
    assert why == {"abcabc": "length", "xy": "rare", "q": "coverage"}
    with pytest.raises(KeyError, match="it occurs in no pretoken"):
        tok.explain_training("zz")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_flat_counts_give_the_same_trace(algorithm):
    counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    assert (
        traced(algorithm, counts, 270 if algorithm == "bpe" else 16).training.trace
        == traced(algorithm, flatten_counts(counts), 270 if algorithm == "bpe" else 16).training.trace
    )


@pytest.mark.parametrize("algorithm", ["bpe", "wordpiece", "unigram"])
def test_a_run_that_goes_on_leaves_the_whole_trace(algorithm, tmp_path, monkeypatch):
    monkeypatch.setattr("subword_nb.unigram.trainer.PAUSE", 0)
    text = tmp_path / "some.txt"
    text.write_text("\n".join(SOME), encoding="utf-8")
    whole = traced(algorithm, text, SIZES[algorithm])

    def stop(done, total, what, state):
        if what not in ("counting", "suffixes", "seeds"):
            raise KeyboardInterrupt

    call = dict(checkpoint=tmp_path / "run", every=0)
    with pytest.raises(KeyboardInterrupt):
        traced(algorithm, text, SIZES[algorithm], on_progress=stop, **call)
    again = traced(algorithm, text, SIZES[algorithm], **call)
    assert again.model == whole.model and again.training == whole.training
    assert traced(algorithm, text, SIZES[algorithm], **call).training.trace == whole.training.trace


@pytest.mark.parametrize("algorithm", ["char_bpe", "wordpiece", "unigram"])
def test_on_progress_gets_the_same(algorithm):
    reports = {}
    for trace in (False, True):
        calls = reports[trace] = []
        Tokenizer.train(
            TOY_COUNTS,
            algorithm=algorithm,
            vocab_size=12,
            trace=trace,
            on_progress=lambda done, total, what, state, calls=calls: calls.append(
                (what, total, callable(state))
            ),
        )
    assert {*reports[True]} >= {*reports[False][:1]} and reports[True]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_files_and_pickles(algorithm, tmp_path):
    path = tmp_path / "trace.npz"
    tok = Tokenizer.train(SOME, algorithm=algorithm, vocab_size=SIZES[algorithm], trace=path)
    trace = tok.training.trace
    assert load_trace(path) == trace == load_trace(str(path))
    assert [p.name for p in tmp_path.iterdir()] == ["trace.npz"]
    assert pickle.loads(pickle.dumps(tok)).training == tok.training == copy.deepcopy(tok).training
    tok.save(tmp_path / "tok.json")
    loaded = Tokenizer.load(tmp_path / "tok.json")
    some = [*tok.piece2id][-5:]
    assert [loaded.explain_training(p, trace=path).to_dict() for p in some] == [
        tok.explain_training(p).to_dict() for p in some
    ]
    with pytest.raises(ValueError, match="has no trace of its training"):
        loaded.explain_training(some[0])


def test_foreign_and_damaged_files(tmp_path):
    path = tmp_path / "trace.npz"
    trace = traced().training.trace
    save_trace(trace, path)
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            assert load_trace(path) == trace  # what was hit means nothing
        except ValueError as e:
            assert "must be a trace of training, got another or a damaged file" in str(e)
    for data in (b"", b"{}", b"PK\x03\x04", whole[: len(whole) // 2]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="must be a trace of training, got another or a damaged file"):
            load_trace(path)
    at = (
        whole.rindex(b"PK\x05\x06") + 16
    )  # where the directory says that it begins: a little later, so the first member begins before the file
    path.write_bytes(
        whole[:at]
        + (int.from_bytes(whole[at : at + 4], "little") + 4).to_bytes(4, "little")
        + whole[at + 4 :]
    )
    with pytest.raises(ValueError, match="must be a trace of training, got another or a damaged file"):
        load_trace(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(ValueError, match="must be a trace of training"):
        load_trace(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        load_trace(tmp_path / "none.npz")


def test_a_trace_without_a_place_is_refused_before_the_run(tmp_path):
    reports = []
    for wrong, error in (
        (tmp_path / "none" / "t.npz", FileNotFoundError),
        (tmp_path, IsADirectoryError),
        (3, ValueError),
    ):
        with pytest.raises(error):
            Tokenizer.train(SOME, trace=wrong, on_progress=lambda *args: reports.append(args))
    assert not reports
    with pytest.raises(ValueError, match="must be True, False, or the path"):
        Recorder(on_progress=None, path=3)


def test_what_never_became_a_piece():
    trace = traced(size=9).training.trace
    found = never_merged(trace, "pun")
    assert (found["split"], found["pairs"], found["last"]) == (
        ["p", "un"],
        [dict(left="p", right="un", count=12, score=None)],
        16,
    )
    assert never_merged(trace, "pux")["missing"] == ["x"]
    marked = traced("char_bpe", TOY_COUNTS, 13, end_of_word_suffix="</w>")
    assert never_merged(marked.training.trace, "bun</w>")["split"][-1].endswith("</w>")
    inside = traced("wordpiece", TOY_COUNTS, 10)
    assert never_merged(inside.training.trace, "##ugs")["split"][0].startswith("##")


def test_a_cut_tokenizer_is_explained_by_the_larger_run():
    tok = traced()
    small = tok.truncate(9)
    assert (
        small.explain_training("hugs").id is None
        and small.explain_training("hugs").facts == tok.explain_training("hugs").facts
    )
    assert tok.train_new(TOY_COUNTS, vocab_size=12, trace=True).explain_training("ug").kind == "merge"
    with pytest.raises(ValueError, match="has no trace of its training"):
        small.extend(TOY_COUNTS, 12).explain_training("ug")
    tok.add_tokens(["<new>"])
    assert tok.explain_training("<new>").kind == "added"


def test_odd_pieces_are_escaped_and_clipped():
    counts = {"<script>alert(1)</script>": 9, "=" * 300: 5, "a\u202eb\nc": 4, "e" + "\u0301" * 50: 3}
    for algorithm in ("char_bpe", "bpe", "wordpiece", "unigram", "wordlevel"):
        tok = traced(
            algorithm,
            counts,
            400 if algorithm == "bpe" else 110,
            **({} if algorithm in ("bpe", "wordlevel") else {"pre_tokenizer": None}),
        )
        for piece in tok.piece2id:
            e = tok.explain_training(piece)
            html = e._repr_html_()
            assert "<script" not in html and "\u202e" not in html + str(e)
            assert len(e.summary) < 700
            assert not re.search(r"=\{60\}", html)


def test_a_plot_is_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    tok, uni = traced(), traced("unigram", SOME, 45)
    assert tok.explain_training("hugs").plot().get_ylabel() == "count of its pair"
    assert uni.explain_training("e").plot().get_xlabel() == "round"
    with pytest.raises(ValueError, match="nothing to plot"):
        tok.explain_training("h").plot()
    plt.close("all")


def test_without_compiled_kernels():
    code = """
from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS
for algorithm, n in (("bpe", 280), ("wordpiece", 80), ("unigram", 45)):
    tok = Tokenizer.train(COURSE_CORPUS, algorithm=algorithm, vocab_size=n, trace=True)
    print([tok.explain_training(p).summary for p in [*tok.piece2id][-8:]])
"""
    seen = {}
    for jit in ("0", "1"):
        env = os.environ | {"SUBWORD_NB_JIT": jit, "PYTHONPATH": str(Path(__file__).parents[2])}
        seen[jit] = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        ).stdout
    assert seen["0"] == seen["1"] and seen["0"].count("[") == 3


def test_the_command_line_writes_a_trace(tmp_path):
    from typer.testing import CliRunner

    from subword_nb.cli.main import app

    (tmp_path / "some.txt").write_text("\n".join(SOME), encoding="utf-8")
    call = ["train", str(tmp_path / "some.txt"), "--vocab-size", "280", "-o", str(tmp_path / "tok.json")]
    assert CliRunner().invoke(app, [*call, "--trace", str(tmp_path / "trace.npz")]).exit_code == 0
    tok = Tokenizer.load(tmp_path / "tok.json")
    assert (
        tok.explain_training(" the", trace=tmp_path / "trace.npz").to_dict()
        == traced("bpe", tmp_path / "some.txt", 280).explain_training("Ġthe").to_dict()
    )
    assert (
        CliRunner()
        .invoke(app, [*call, "--extend", str(tmp_path / "tok.json"), "--trace", str(tmp_path / "t.npz")])
        .exit_code
        != 0
    )
