"""Unigram training: the same model everywhere, on hostile corpora too."""

import hashlib
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys

import pytest
from seeds import TEXTS, fresh
from notebooks import ROOT

from subword_nb.unigram import trainer
from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS
from subword_nb.corpus.counts import count_pretokens, flatten_counts
from subword_nb.unigram.reference import best_pieces, corpus_loss
from subword_nb.unigram.model import Unigram
from subword_nb.unigram.seeds import seed_pieces, seed_pieces_ref
from subword_nb.unigram.trainer import em_train_ref, unigram_train

COUNTS = count_pretokens(COURSE_CORPUS, "metaspace")
TRAIN = """
import json
from subword_nb.corpus.documents import COURSE_CORPUS
from subword_nb.corpus.counts import count_pretokens
from subword_nb.unigram import trainer
trainer.FEW = FEW
options = dict(special_tokens=["<s>"], user_defined=["token"], min_frequency=1)
options |= dict(character_coverage=0.99, required_chars="é")
found = trainer.unigram_train(count_pretokens(COURSE_CORPUS, "metaspace"), 90, **options)
print(json.dumps([found.pieces, [s.hex() for s in found.scores], [[n, loss.hex()] for n, loss in found.history], found.ended]))
"""
PINNED = "c84230dec7995468"  # of what TRAIN prints


def learned_by(few=0, **environment):
    "What a fresh Python learns, as JSON; kernels run plainly for fewer than `few` places of seeds."
    done = subprocess.run(
        [sys.executable, "-c", TRAIN.replace("FEW = FEW", f"FEW = {few}")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SUBWORD_NB_QUIET": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_same_bits_compiled_and_plain_and_whatever_the_hash_seed():
    first = learned_by(PYTHONHASHSEED="1")
    assert len(first[0]) == 90
    assert (
        first == learned_by(PYTHONHASHSEED="2", SUBWORD_NB_JIT="0") == learned_by(10**9, PYTHONHASHSEED="3")
    )
    assert hashlib.sha256(json.dumps(first).encode()).hexdigest()[:16] == PINNED


def random_case(rng):
    "A small corpus of hostile characters, and options that fit badly."
    letters = rng.choice(
        [
            "a",
            "ab",
            "abc",
            "aé漢",
            "▁ab",
            "\U0001f40da",
            "a\u0301e",
            "\ud800a\udc00",
            "\0a\uffff",
            "<s>unk",
            "İıß\u0345",
            "<0x41>",
        ]
    )
    word, times = (
        lambda: "".join(rng.choices(letters, k=rng.choice([0, 1, 2, 3, 5, 8, 20]))),
        rng.choice([1, 1, 1000, 2**40]),
    )
    counts = {
        word() * rng.randrange(1, 4): rng.randrange(1, 6) * times for _ in range(rng.choice([1, 2, 5, 20]))
    }
    options = dict(
        special_tokens=[[], ["<s>"], ["<s>", "</s>"], ["a"], ["ab"], ["<unk>"]],
        user_defined=[[], ["aa"], ["ab", "ba"], ["aba", "ba", "ab"], ["<n>"], ["é漢", "漢"]],
        unk_piece=[None, "<unk>", "e", "<0x41>"],
        byte_fallback=[False, False, False, True],
        seed_size=[1, 13, 20, 100],
        max_piece_length=[1, 2, 5, 17, 2**70],
        min_frequency=[1, 2, 50],
        shrinking_factor=[1e-300, 0.1, 0.99],
        n_sub_iterations=[1, 3],
        digamma=[False],
        character_coverage=[1, 0.9, 1e-9],
        required_chars=["é", ["é", "a"], "aa", ("\U0001f40d",)],
    )
    return (
        counts,
        rng.choice([1, 3, 8, 20, 300, 10**6]),
        {name: rng.choice(some) for name, some in options.items() if rng.random() < 0.3},
    )


def check_vocabulary(
    found,
    counts,
    size,
    special_tokens=(),
    user_defined=(),
    unk_piece="<unk>",
    byte_fallback=False,
    max_piece_length=16,
    character_coverage=1,
    required_chars="",
    **_,
):
    "What every vocabulary must be like."
    reserved = (
        [*special_tokens]
        + [unk_piece] * (unk_piece is not None and unk_piece not in special_tokens)
        + [*user_defined]
        + [f"<0x{b:02X}>" for b in range(256) if byte_fallback]
    )
    learned, scores = found.pieces[len(reserved) :], found.scores[len(reserved) :]
    assert (
        found.ended == ("full" if len(found.pieces) == size else "no piece left")
        and len(found.pieces) <= size
        and len(set(found.pieces)) == len(found.pieces) == len(found.scores)
    )
    assert found.pieces[: len(reserved)] == reserved and not any(found.scores[: len(reserved)])
    assert all(math.isfinite(s) and s <= 0 for s in scores) and list(zip(scores, learned)) == sorted(
        zip(scores, learned), key=lambda x: (-x[0], x[1])
    )
    assert all(len(p) <= max_piece_length and not any(u in p for u in user_defined) for p in learned) and set(
        required_chars
    ) <= set(found.pieces)
    if character_coverage == 1:
        assert set("".join(counts)) - set("".join(user_defined)) <= set(found.pieces)
        if unk_piece is None and not user_defined:
            for text in counts:
                assert "".join(best_pieces(text, dict(zip(found.pieces, found.scores)))[0]) == text


def test_random_options_on_hostile_corpora():
    rng, trained, refused = fresh(0), 0, set()
    for _ in range(TEXTS // 2):
        counts, size, options = random_case(rng)
        for _ in range(2):  # once more with the size that the message asks for
            try:
                found = unigram_train(counts, size, **options)
            except ValueError as error:
                refused.add(re.sub(r"'.*?'|\d[\d,]*", "…", str(error))[:40])
                if "vocab_size must be at least" not in str(error):
                    break
                size = int(re.search(r"vocab_size must be at least (\d+)", str(error))[1])
            else:
                check_vocabulary(found, counts, size, **options)
                assert unigram_train(counts, size, **options, threads=3) == found
                trained += 1
                break
    assert trained > TEXTS // 4 and len(refused) < 9, refused


def test_options_may_be_read_once():
    lists = dict(special_tokens=["<s>", "<t>"], user_defined=["to", "en"], required_chars=["é", "w"])
    assert unigram_train(COUNTS, 60, **lists) == unigram_train(
        COUNTS, 60, **{name: iter(some) for name, some in lists.items()}
    )


@pytest.mark.parametrize(
    "name", ["vocab_size", "seed_size", "max_piece_length", "min_frequency", "n_sub_iterations"]
)
@pytest.mark.parametrize("value", [None, 1.5, 0, -1, "9"])
def test_numbers_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        unigram_train(**{"counts": TOY_COUNTS, "vocab_size": 20, name: value})


def test_products_that_do_not_fit_into_64_bits():
    counts = {"ab" * 1000: 2**41}
    with pytest.raises(ValueError, match="max_piece_length must be at most 2097 .*, or divide all counts"):
        unigram_train({"ab" * 1500: 2**42 // 3}, 9, max_piece_length=10**6)
    found = unigram_train(counts, 9, unk_piece=None, max_piece_length=1500, n_sub_iterations=1, seed_size=30)
    assert len(found.pieces) == 9 and found.scores[0] < 0 and all(math.isfinite(s) for s in found.scores)


def test_the_same_for_every_number_of_threads_and_every_run():
    rng = random.Random(0)
    counts = {
        "".join(rng.choices("abcdefg", k=rng.randrange(1, 30))): rng.randrange(1, 50) for _ in range(6_000)
    }
    first = unigram_train(counts, 500, threads=1)
    assert len(first.pieces) == 500
    for threads in (2, 5):
        assert unigram_train(counts, 500, threads=threads) == first


def test_the_model_spells_the_corpus_at_the_loss_it_reports():
    found = unigram_train(COUNTS, 100, special_tokens=["<s>"], min_frequency=1)
    model = Unigram(
        {p: i for i, p in enumerate(found.pieces)}, found.scores, "<unk>", control=("<s>", "<unk>")
    )
    for text in COUNTS:
        ids = model.encode(text)
        assert "".join(found.pieces[i] for i in ids) == text
    assert math.isclose(
        corpus_loss(COUNTS, dict(zip(found.pieces[2:], found.scores[2:]))), found.history[-1][1], rel_tol=1e-6
    )


def test_exact_size_or_the_reason_why_not():
    most = len(seed_pieces(COUNTS))
    for size in range(31, most + 20, 3):
        found = unigram_train(COUNTS, size, unk_piece=None)
        assert len(found.pieces) == len(set(found.pieces)) == min(size, most)
        assert found.ended == ("full" if size <= most else "no piece left")
        assert found.scores == sorted(found.scores, reverse=True)
        assert set("".join(COUNTS)) <= set(found.pieces)
        assert found.history[-1][0] == len(found.pieces)


def test_no_learned_piece_is_spelled_like_a_reserved_one_or_crosses_one():
    counts = {"<s>ab<n>ab": 50, "ab<0x41>": 20, "xaxb": 30}
    found = unigram_train(
        counts, 290, special_tokens=["<s>", "x"], user_defined=["<n>"], byte_fallback=True, min_frequency=1
    )
    assert len(set(found.pieces)) == len(found.pieces)
    assert found.pieces[:4] == ["<s>", "x", "<unk>", "<n>"]
    for piece in found.pieces[260:]:
        assert "x" not in piece and "<n>" not in piece and piece not in found.pieces[:260]


def test_special_tokens_of_one_character_are_not_learned():
    found = unigram_train({"xaxbx": 30, "ab": 3}, 20, special_tokens=["x"])
    assert [p for p in found.pieces if "x" in p] == ["x"]
    assert unigram_train({"xx": 5}, 20, special_tokens=["x"]).pieces == ["x", "<unk>"]


def test_corpora_that_leave_little_to_learn():
    assert unigram_train({"<n>": 5}, 9, user_defined=["<n>"]) == (
        ["<unk>", "<n>"],
        [0.0, 0.0],
        [],
        "no piece left",
    )
    assert unigram_train({"a": 1}, 9)[:2] == (["<unk>", "a"], [0.0, 0.0])
    assert unigram_train({"": 2, "a": 1}, 2, unk_piece=None, required_chars="b").pieces == ["a", "b"]
    assert unigram_train({"\0\ud800": 3}, 9, unk_piece=None).pieces[0] == "\0\ud800"


def test_options_reach_the_pieces():
    assert max(map(len, unigram_train(COUNTS, 60, max_piece_length=3, unk_piece=None).pieces)) == 3
    assert max(map(len, unigram_train(COUNTS, 40, min_frequency=8, unk_piece=None).pieces)) == 1
    assert len(unigram_train(COUNTS, 200, seed_size=40, unk_piece=None).pieces) == 40
    with_rare = unigram_train(TOY_COUNTS, 50, character_coverage=0.5, required_chars=["s"])
    assert "s" in with_rare.pieces and "h" not in "".join(with_rare.pieces[1:])


@pytest.mark.parametrize("letter", ["a", "漢", "\U0001f40d"])
def test_long_repeats(letter):
    counts = {letter * 100_000: 1}
    assert seed_pieces(counts, max_piece_length=5) == {letter * n: 100_001 - n for n in range(1, 6)}
    found = unigram_train(counts, 12)
    assert len(found.pieces) == 12 and math.isfinite(found.history[-1][1])


def test_counts_up_to_two_to_the_53():
    huge = {text: n * 2**44 for text, n in TOY_COUNTS.items()}
    assert seed_pieces(huge) == seed_pieces_ref(huge)
    assert (
        unigram_train(huge, 12, digamma=False).pieces
        == unigram_train({t: n * 2**20 for t, n in TOY_COUNTS.items()}, 12, digamma=False).pieces
    )


MEGABYTE = """
import json, random, re, time
from pathlib import Path
from subword_nb.unigram.trainer import unigram_train
text, seconds = "".join(random.Random(0).choices(LETTERS, k=1_000_000)), []
for part in (text[:250_000], text):
    clock = time.process_time()
    found = unigram_train({part: 1}, SIZE)
    seconds.append(time.process_time() - clock)
status = Path("/proc/self/status")  # getrusage would count the memory of the process that started this one
kilobytes = int(re.search(r"VmHWM:\\s*(\\d+)", status.read_text())[1]) if status.exists() else 0
print(json.dumps([found.ended, found.history[-1][1], seconds, kilobytes]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "letters, size",
    [("a", 10), ("ab", 100), ("".join(map(chr, range(0x4E00, 0x5000))), 712)],
    ids=["one letter", "two letters", "many"],
)
def test_a_megabyte_without_a_space_is_linear(letters, size):
    code = MEGABYTE.replace("LETTERS", repr(letters)).replace("SIZE", str(size))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SUBWORD_NB_QUIET": "1"},
    )
    assert done.returncode == 0, done.stderr
    ended, loss, seconds, kilobytes = json.loads(done.stdout)
    assert ended == "full" and math.isfinite(loss)
    assert seconds[1] < 8 * seconds[0] + 2
    assert kilobytes < 4 << 20


def test_flat_counts_train_to_the_same():
    rng, trained = random.Random(5), 0
    for _ in range(300):
        counts, size, options = random_case(rng)
        if any(0xD800 <= ord(c) < 0xE000 for text in counts for c in text):
            continue  # UTF-8 cannot hold them
        found = []
        for form in (dict, flatten_counts):
            try:
                found.append(unigram_train(form(counts), size, **options))
            except ValueError as error:
                found.append(str(error))
        assert found[0] == found[1]
        trained += not isinstance(found[0], str)
    assert trained > 100


def words(rng, n=400):
    "Counts of words of a few letters."
    return {"".join(rng.choices("abcdeé", k=rng.randrange(1, 12))): rng.randrange(1, 50) for _ in range(n)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(character_coverage=0.9, user_defined=["ab"], required_chars="z"),
        dict(digamma=False, n_sub_iterations=3, shrinking_factor=0.5, byte_fallback=True),
    ],
)
def test_training_goes_on_from_every_state(monkeypatch, options):
    monkeypatch.setattr(trainer, "PAUSE", 0.0)
    counts, states = words(random.Random(6)), []
    whole = unigram_train(
        counts,
        320,
        **options,
        on_progress=lambda done, total, what, state: states.append(
            (done, total, what, pickle.dumps(state()))
        ),
    )
    assert whole == unigram_train(counts, 320, **options)
    assert (
        [done for done, *_ in states] == sorted(done for done, *_ in states)
        and {total for _, total, *_ in states} == {100}
        and states[-1][0] == pytest.approx(100)
    )
    assert {what for _, _, what, _ in states} == {"suffixes", "seeds", "EM", "pruning"}
    for *_, state in states:
        seen = []
        assert (
            unigram_train(
                flatten_counts(counts),
                320,
                **options,
                threads=2,
                resume=pickle.loads(state),
                on_progress=lambda done, *_, seen=seen: seen.append(done),
            )
            == whole
        )
        assert seen == sorted(seen)


def test_an_interrupted_training_can_be_taken_up(monkeypatch):
    monkeypatch.setattr(trainer, "PAUSE", 0.0)
    counts, rng = words(random.Random(7)), random.Random(8)
    whole = unigram_train(counts, 60)
    for _ in range(20):
        left, kept = rng.randrange(12), []

        def on_progress(done, total, what, state, kept=kept, left=left):
            kept.append(state())
            if len(kept) > left:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            unigram_train(counts, 60, on_progress=on_progress)
        assert unigram_train(counts, 60, resume=kept[-1]) == whole


def test_states_of_other_trainings_are_refused(monkeypatch):
    monkeypatch.setattr(trainer, "PAUSE", 0.0)
    counts, states = words(random.Random(9)), []
    unigram_train(counts, 60, on_progress=lambda done, total, what, state: states.append(state()))
    for changed in (
        dict(vocab_size=61),
        dict(counts=counts | {"abc": 1000}),
        dict(seed_size=500),
        dict(special_tokens=["<s>"]),
        dict(shrinking_factor=0.7),
    ):
        with pytest.raises(ValueError, match="resume must belong to these counts and options"):
            unigram_train(**{"counts": counts, "vocab_size": 60, "resume": states[-1], **changed})
    for invalid in (7, {}, {"kind": "bpe"}):
        with pytest.raises(ValueError, match="resume must be a state of a Unigram training"):
            unigram_train(counts, 60, resume=invalid)


def test_a_vocabulary_pruned_further():
    counts = words(random.Random(10))
    large = unigram_train(
        counts, 500, special_tokens=["<s>"], user_defined=["ab"], byte_fallback=True, required_chars="z"
    )
    start = dict(zip(large.pieces, large.scores))
    for size in (450, 300):
        small = unigram_train(
            counts, size, special_tokens=["<s>"], user_defined=["ab"], byte_fallback=True, start=start
        )
        assert (
            (len(small.pieces), small.ended) == (size, "full")
            and set(small.pieces) < set(large.pieces)
            and small.pieces[:259] == large.pieces[:259]
        )
        assert {p for p in large.pieces[259:] if len(p) == 1} <= set(small.pieces)
        again = unigram_train(
            flatten_counts(counts),
            size,
            special_tokens=["<s>"],
            user_defined=["ab"],
            byte_fallback=True,
            start=dict(reversed(start.items())),
        )
        assert again == small
    with pytest.raises(ValueError, match="cannot grow; to learn more, train again without start="):
        unigram_train(
            counts, 501, special_tokens=["<s>"], user_defined=["ab"], byte_fallback=True, start=start
        )
    assert (
        "q"
        not in unigram_train(
            counts | {"qq": 9},
            300,
            special_tokens=["<s>"],
            user_defined=["ab"],
            byte_fallback=True,
            start=start,
        ).pieces
    )  # none comes back


def test_counts_beyond_32_bits():
    rng = random.Random(11)
    counts = {text: n * 2**33 + rng.randrange(2**33) for text, n in words(rng, 40).items()}
    expected = em_train_ref(counts, 60, seed_size=200)
    for form in (dict, flatten_counts):
        found = unigram_train(form(counts), 60, unk_piece=None, seed_size=200)
        assert set(found.pieces) == set(expected)
        assert found.scores == pytest.approx([expected[p] for p in found.pieces], abs=1e-6)
    for form in (dict, flatten_counts):
        with pytest.raises(ValueError, match="divide all counts by 1024"):
            unigram_train(form({"a": 2**63 - 1}), 9)
