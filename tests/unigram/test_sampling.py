"""Sampling: against enumeration, against SentencePiece, on long texts, from the same seed twice."""

import inspect
import math
import random
import re
from collections import Counter

import pytest
from peers import sp_scores, sp_trained

from subword_nb import Tokenizer
from subword_nb.bpe.model import BPE, bpe_dropout, encode_pretoken, merge_table
from subword_nb.pipeline.encoder import Engine
from subword_nb.unigram.lattice import build_lattice, forward, log_sum, path_score, segmentations
from subword_nb.formats.subword_nmt import NmtBPE, segment_word
from subword_nb.pipeline.nbest import Segmentation
from subword_nb.pipeline.tokens import tokens
from subword_nb.unigram.model import Unigram
from subword_nb.unigram.sampling import (
    entropy,
    last_pieces,
    sample,
    sample_nbest,
    sample_ref,
    sample_rows_without_replacement,
    sample_without_replacement,
)


def limit(df: int) -> float:
    "What chi-square exceeds once in a hundred thousand right samplers (Wilson and Hilferty)."
    return df * (1 - 2 / (9 * df) + 4.265 * math.sqrt(2 / (9 * df))) ** 3


def chi_square(seen: Counter, expected: dict) -> tuple:
    "The statistic and its degrees of freedom; outcomes expected fewer than 5 times are one outcome."
    rare = [k for k, e in expected.items() if e < 5]
    cells = [(seen[k], e) for k, e in expected.items() if e >= 5]
    if rare:
        cells.append((sum(seen[k] for k in rare), sum(expected[k] for k in rare)))
    assert set(seen) <= set(expected)
    return sum((s - e) ** 2 / e for s, e in cells), max(1, len(cells) - 1)


def law(lattice, alpha: float = 1.0) -> dict:
    "Path (as a tuple of nodes) → probability, by listing."
    total = log_sum(alpha * path_score(p) for p in segmentations(lattice))
    return {tuple(p): math.exp(alpha * path_score(p) - total) for p in segmentations(lattice)}


def random_lattice(rng: random.Random, longest: int = 8):
    text = "".join(rng.choices("abé京", k=rng.randrange(longest)))
    spans = sorted({text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)})
    return build_lattice(
        text,
        {s: -rng.choice([1.0, 2.0, 12 * rng.random()]) for s in spans if len(s) == 1 or rng.random() < 0.5},
    )


def test_chances_of_every_path_are_those_of_the_list():
    rng = random.Random(0)
    for _ in range(300):
        lattice, alpha = random_lattice(rng), rng.choice([0, 0, 0.1, 1, 2.5, 40])
        sums, exact = forward(lattice, alpha=alpha), law(lattice, alpha)
        for end in range(1, len(lattice.text) + 1):
            assert math.isclose(
                sum(math.exp(p) for _, p in last_pieces(lattice, end, sums, alpha)), 1, rel_tol=1e-12
            )
        for path, p in exact.items():
            steps = sum(dict(last_pieces(lattice, node.end, sums, alpha))[node] for node in path)
            assert math.isclose(math.exp(steps), p, rel_tol=1e-9, abs_tol=1e-300)
        for path, logp in (
            sample(lattice, alpha, rng=rng),
            sample_ref(lattice, alpha, rng=rng),
            sample_nbest(lattice, -1, alpha, rng=rng),
            *((q, w) for q, w, _ in sample_without_replacement(lattice, 5, alpha, rng=rng)),
        ):
            assert math.isclose(math.exp(logp), exact[tuple(path)], rel_tol=1e-9, abs_tol=1e-300)


@pytest.mark.parametrize("draw", [sample, sample_ref])
def test_frequencies(draw):
    rng = random.Random(1)
    for _ in range(8):
        lattice, alpha, n = random_lattice(rng, 6), rng.choice([0, 0.5, 1]), 2000
        exact = law(lattice, alpha)
        stat, df = chi_square(
            Counter(tuple(draw(lattice, alpha, rng=rng)[0]) for _ in range(n)),
            {k: n * p for k, p in exact.items()},
        )
        assert stat < limit(df)


def test_nbest_frequencies():
    rng = random.Random(2)
    lattice = build_lattice(
        "abcd", {s: -rng.random() * 5 for s in ("a", "b", "c", "d", "ab", "bc", "cd", "abc", "bcd", "abcd")}
    )
    scores = sorted((path_score(p), tuple(p)) for p in segmentations(lattice))[::-1]
    for size in (2, 4, 8, 99):
        top = {p: math.exp(0.7 * s) for s, p in scores[:size]}
        stat, df = chi_square(
            Counter(tuple(sample_nbest(lattice, size, 0.7, rng=rng)[0]) for _ in range(3000)),
            {p: 3000 * w / sum(top.values()) for p, w in top.items()},
        )
        assert stat < limit(df)
    assert [sample_nbest(lattice, size, 0.7, rng=rng) for size in (0, 1)] == [(list(scores[0][1]), 0.0)] * 2


def test_without_replacement_is_drawing_one_by_one():
    rng, n = random.Random(3), 6000
    for alpha in (0, 0.3, 1.5):
        lattice = build_lattice(
            "abcd", {s: -rng.random() * 5 for s in ("a", "b", "c", "d", "ab", "bc", "cd", "abc")}
        )
        exact = law(lattice, alpha)
        pairs = {(a, b): n * p * q / (1 - p) for a, p in exact.items() for b, q in exact.items() if a != b}
        draws = [sample_without_replacement(lattice, 2, alpha, rng=rng) for _ in range(n)]
        stat, df = chi_square(Counter((tuple(a), tuple(b)) for (a, _, _), (b, _, _) in draws), pairs)
        assert stat < limit(df)


def test_without_replacement_exhausts_the_lattice_and_keys_fall():
    rng = random.Random(4)
    for _ in range(200):
        lattice = random_lattice(rng, 7)
        drawn = sample_without_replacement(lattice, 1000, rng.choice([0, 1, 30]), rng=rng)
        assert {tuple(p) for p, _, _ in drawn} == set(map(tuple, segmentations(lattice))) and len(
            drawn
        ) == len(law(lattice))
        keys = [k for _, _, k in drawn]
        assert keys == sorted(keys, reverse=True) and all(map(math.isfinite, keys))


def test_without_replacement_splits_each_position_once_per_draw(monkeypatch):
    "Only sets that hold a path still to come are split, so k draws split at most k sets per position."
    lattice, asked = build_lattice("a" * 30, {"a" * k: -float(k) for k in range(1, 31)}), Counter()
    monkeypatch.setattr(
        "subword_nb.unigram.sampling.last_pieces",
        lambda lattice, end, sums, alpha: asked.update([end]) or last_pieces(lattice, end, sums, alpha),
    )
    for k in (1, 5, 50):
        asked.clear()
        assert len(sample_without_replacement(lattice, k, 0.5, rng=random.Random(k))) == k
        assert max(asked.values()) <= k


def test_the_first_without_replacement_is_a_draw():
    rng = random.Random(5)
    lattice = build_lattice(
        "abc", {s: -len(s) * rng.random() * 3 for s in ("a", "b", "c", "ab", "bc", "abc")}
    )
    seen = Counter(tuple(sample_without_replacement(lattice, 1, 1.0, rng=rng)[0][0]) for _ in range(4000))
    stat, df = chi_square(seen, {k: 4000 * p for k, p in law(lattice).items()})
    assert stat < limit(df)


def test_entropy():
    rng = random.Random(6)
    for _ in range(300):
        lattice, alpha = random_lattice(rng), rng.choice([0, 0.1, 1, 5, 100])
        assert math.isclose(
            entropy(lattice, alpha=alpha),
            -sum(p * math.log(p) for p in law(lattice, alpha).values() if p),
            rel_tol=1e-9,
            abs_tol=1e-9,
        )


def test_extremes_of_alpha():
    lattice = build_lattice("abab", {"a": -1.0, "b": -2.0, "ab": -700.0, "ba": -0.5})
    best = [n.piece for n in sample_nbest(lattice, 1, 1, rng=random.Random(0))[0]]
    for alpha in (50, 1e3, 1e6):
        for seed in range(20):
            path, logp = sample(lattice, alpha, rng=random.Random(seed))
            assert [n.piece for n in path] == best and -1e-9 < logp <= 1e-9
        assert abs(entropy(lattice, alpha=alpha)) < 1e-9
        assert len(sample_without_replacement(lattice, 9, alpha, rng=random.Random(0))) == 5


def test_same_seed_same_draws():
    lattice = build_lattice("abab" * 5, {"a": -1.0, "b": -2.0, "ab": -2.5, "ba": -3.0})
    for draw in (
        lambda rng: sample(lattice, 0.5, rng=rng),
        lambda rng: sample_nbest(lattice, 7, 0.5, rng=rng),
        lambda rng: sample_without_replacement(lattice, 7, 0.5, rng=rng),
    ):
        assert draw(random.Random(9)) == draw(random.Random(9))
    assert len({tuple(sample(lattice, 0.5, rng=random.Random(seed))[0]) for seed in range(20)}) > 10


@pytest.mark.parametrize("alpha", [-0.1, math.nan, math.inf, -math.inf, "1", None, 1e7])
def test_alpha_is_checked(alpha):
    lattice, rng = build_lattice("ab", {"a": -1.0, "b": -1.0}), random.Random(0)
    for call in (sample, sample_ref):
        with pytest.raises(ValueError, match="alpha must be"):
            call(lattice, alpha, rng=rng)
    for call in (sample_nbest, sample_without_replacement):
        with pytest.raises(ValueError, match="alpha must be"):
            call(lattice, 2, alpha, rng=rng)
    with pytest.raises(ValueError, match="alpha must be"):
        entropy(lattice, alpha=alpha)


@pytest.mark.parametrize("size", [-2, -1000, 1.0, True, False, None, "3", math.nan])
def test_nbest_size_is_checked(size):
    with pytest.raises(ValueError, match="nbest_size must be"):
        sample_nbest(build_lattice("ab", {"a": -1.0, "b": -1.0}), size, 1.0, rng=random.Random(0))


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
def test_k_is_checked(k):
    with pytest.raises(ValueError, match="k must be"):
        sample_without_replacement(build_lattice("ab", {"a": -1.0, "b": -1.0}), k, 1.0, rng=random.Random(0))


def test_no_path_no_nodes_and_no_generator():
    rng = random.Random(0)
    for lattice in (build_lattice("ab", {"a": -1.0}), build_lattice("ab", {})):
        for call, *args in (
            (sample, 1),
            (sample_ref, 1),
            (sample_nbest, 1, 1),
            (sample_nbest, 3, 1),
            (sample_without_replacement, 1, 1),
        ):
            with pytest.raises(ValueError, match="pieces must spell the text"):
                call(lattice, *args, rng=rng)
        with pytest.raises(ValueError, match="pieces must spell the text"):
            entropy(lattice)
    for rng in (None, 0, 1.5):
        with pytest.raises(ValueError, match="rng must be"):
            sample(build_lattice("a", {"a": -1.0}), 1, rng=rng)


def test_a_dead_end_is_never_taken():
    lattice = build_lattice("aab", {"a": -9.0, "ab": -9.0, "aab": -18.0, "b": -50.0, "aa": -1.0})
    lattice = type(lattice)("aab", [n for n in lattice.nodes if n.piece != "b"])
    rng = random.Random(0)
    assert {"·".join(n.piece for n in sample(lattice, 0.2, rng=rng)[0]) for _ in range(100)} == {
        "a·ab",
        "aab",
    }


@pytest.mark.slow
def test_a_long_text_is_linear():
    lattice = build_lattice("ab" * 150_000, {"a": -3.0, "b": -4.0, "ab": -6.0, "ba": -5.0, "abab": -11.0})
    path, logp = sample(lattice, 1.0, rng=random.Random(0))
    assert "".join(n.piece for n in path) == lattice.text and math.isfinite(logp)
    h = entropy(lattice, alpha=1.0)
    assert math.isfinite(h) and 0 < h < 300_000
    drawn = sample_without_replacement(lattice, 2, 1.0, rng=random.Random(0))
    assert len(drawn) == 2 and drawn[0][0] != drawn[1][0]


@pytest.mark.peers
@pytest.mark.parametrize("nbest_size, alpha", [(-1, 0.1), (-1, 0.5), (-1, 1.0), (4, 0.5), (10, 0.2)])
def test_sentencepiece_draws_from_the_same_law(nbest_size, alpha):
    spm = pytest.importorskip("sentencepiece")
    rng = random.Random(0)
    lines = [
        " ".join("".join(rng.choices("abc", [4, 2, 1], k=rng.randrange(2, 8))) for _ in range(8))
        for _ in range(400)
    ]
    sp = sp_trained(spm, lines, vocab_size=40)
    scores = sp_scores(sp)
    spm.set_random_generator_seed(1)
    n = 8000
    for word in ("abacab", "cabb"):
        lattice = build_lattice("▁" + word, scores)
        exact = law(lattice, alpha)
        if nbest_size > 1:
            top = sorted(exact, key=lambda p: -path_score(p))[:nbest_size]
            exact = {p: exact[p] / sum(exact[q] for q in top) for p in top}
        assert len(exact) > 3, exact
        seen = Counter(
            tuple(sp.encode(word, out_type=str, enable_sampling=True, nbest_size=nbest_size, alpha=alpha))
            for _ in range(n)
        )
        ours = Counter(
            tuple(x.piece for x in sample_nbest(lattice, nbest_size, alpha, rng=rng)[0]) for _ in range(n)
        )
        for counts in (seen, ours):
            stat, df = chi_square(counts, {tuple(x.piece for x in p): n * q for p, q in exact.items()})
            assert stat < limit(df), (word, stat, df)


# ---- with a seed, of whole texts, and wrong names ----


def some_unigram():
    "A tokenizer whose texts have many splits."
    pieces = ["<unk>", "▁", "a", "b", "ab", "ba", "▁a", "▁b", "aba", "▁ab"]
    model = Unigram(
        {p: i for i, p in enumerate(pieces)},
        [0.0, *(-1.0 - 0.37 * i for i in range(len(pieces) - 1))],
        unk_piece="<unk>",
    )
    return Tokenizer(model, pre_tokenizer="metaspace")


def test_different_splits_of_a_text():
    "All of them, once each, with their probabilities; and the first is a draw as any other."
    tok = some_unigram()
    for text in ("aba", "ab ba", "ab aba b", "", "a é b"):
        every = tok.nbest(text, n=10**6)
        for alpha in (0, 0.5, 1.0, 3.0):
            z = math.log(math.fsum(math.exp(alpha * s.score) for s in every))
            law = {tuple(s.ids): alpha * s.score - z for s in every}
            for size in (-1, 10**6):
                drawn = tok.sample(
                    text, alpha=alpha, k=len(every) + 5, replace=False, nbest_size=size, seed=7
                )
                assert len(drawn) == len(every) and {tuple(s.ids) for s in drawn} == law.keys()
                assert all(math.isclose(s.score, law[tuple(s.ids)], abs_tol=1e-9) for s in drawn)
                few = tok.sample(text, alpha=alpha, k=3, replace=False, nbest_size=size, seed=7)
                assert [s.ids for s in few] == [s.ids for s in drawn[:3]]
    text, n = "ab aba", 4000
    law = {tuple(s.ids): math.exp(s.score) for s in tok.sample(text, k=10**6, replace=False, seed=0)}
    for size in (-1, 10**6):
        found = Counter(
            tuple(tok.sample(text, k=2, replace=False, nbest_size=size, seed=s)[0].ids) for s in range(n)
        )
        stat, df = chi_square(found, {ids: n * p for ids, p in law.items()})
        assert stat < limit(df)
    assert (
        tok.sample(text, k=3, replace=False, nbest_size=1) == [Segmentation(tok.encode(text), 0.0)]
        and tok.sample(text, k=3, nbest_size=0) == [Segmentation(tok.encode(text), 0.0)] * 3
    )
    huge = tok.sample(text, alpha=1e5, k=4, replace=False, nbest_size=9, seed=1)
    assert [s.ids for s in huge] == [s.ids for s in tok.nbest(text, n=4)]


def test_several_splits_with_replacement():
    tok = some_unigram()
    drawn = tok.sample("ab aba", alpha=0.3, k=50, seed=3)
    assert (
        drawn
        == tok.sample("ab aba", alpha=0.3, k=50, seed=3)
        != tok.sample("ab aba", alpha=0.3, k=50, seed=4)
    )
    assert len(drawn) == 50 > len({tuple(s.ids) for s in drawn}) > 1 and drawn[0] == tok.sample(
        "ab aba", alpha=0.3, seed=3
    )
    bpe = Engine(BPE({"a": 0, "b": 1, "ab": 2, "abab": 3}, [("a", "b"), ("ab", "ab")]))
    from subword_nb.pipeline.nbest import sample as sample_split

    drawn = sample_split(bpe, "abab", alpha=0.5, k=20, seed=1)
    assert (
        drawn == sample_split(bpe, "abab", alpha=0.5, k=20, seed=1) and len({tuple(s.ids) for s in drawn}) > 1
    )
    with pytest.raises(ValueError, match="draw with replace=True"):
        sample_split(bpe, "abab", alpha=0.5, k=2, replace=False)


def test_every_function_that_draws_takes_a_seed():
    "One seed gives one draw; `rng` and `seed` exclude each other; a lattice needs one of them."
    lattice = build_lattice("ababab", {"a": -1.0, "b": -1.1, "ab": -1.7, "ba": -1.9, "aba": -2.0})
    model = BPE({"a": 0, "b": 1, "ab": 2, "abab": 3}, [("a", "b"), ("ab", "ab")])
    nmt = NmtBPE({"<unk>": 0}, [("a", "b"), ("ab", "ab")])
    draws = [
        lambda **o: sample(lattice, 0.3, **o),
        lambda **o: sample_ref(lattice, 0.3, **o),
        lambda **o: sample_nbest(lattice, 4, 0.3, **o),
        lambda **o: sample_without_replacement(lattice, 2, 0.3, **o),
        lambda **o: sample_rows_without_replacement([lattice, lattice], 2, 0.3, **o),
    ]
    for draw in draws:
        with pytest.raises(ValueError, match="pass one of them"):
            draw(rng=random.Random(1), seed=1)
        with pytest.raises(ValueError, match="pass seed=42"):
            draw()
    draws += [
        lambda **o: bpe_dropout("abababab", merge_table([("a", "b"), ("ab", "ab")]), 0.4, **o),
        lambda **o: encode_pretoken(model, "abababab", dropout=0.4, **o),
        lambda **o: model.encode("abababab", dropout=0.4, **o),
        lambda **o: tokens(model, "abababab", dropout=0.4, **o),
        lambda **o: segment_word(nmt, "abababab", dropout=0.4, **o),
    ]
    for draw in draws:
        results = [draw(seed=s) for s in range(30)]
        assert (
            results == [draw(seed=s) for s in range(30)] == [draw(rng=random.Random(s)) for s in range(30)]
            and len({*map(str, results)}) > 1
        )


def test_a_wrong_name_lists_the_public_names():
    "A TypeError for an unknown option names what was called, or what is called in its place; never a function of the inside."
    tok, wrong = some_unigram(), {"no_such_option": 1}
    calls = {
        "encode": ["a"],
        "encode_batch": [["a"]],
        "encode_array": ["a"],
        "tokenize": ["a"],
        "align": ["a"],
        "align_batch": [["a"]],
        "nbest": ["a"],
        "sample": ["a"],
        "entropy": ["a"],
        "explain": ["a"],
        "stages": ["a"],
        "draw": ["a"],
        "decode": [[1]],
        "decode_batch": [[[1]]],
        "decode_bytes": [[1]],
        "stream": [],
        "encode_ordinary": ["a"],
        "encode_with_unstable": ["a"],
        "add_tokens": [["<x>"]],
        "compare": [tok, "a"],
        "encode_files": ["none.txt", "out.npy"],
        "save": ["none.json"],
        "__call__": ["a"],
        "inspect": [],
    }
    for name, given in calls.items():
        with pytest.raises(TypeError) as error:
            getattr(tok, name)(*given, **wrong)
        assert "no_such_option" in str(error.value) and not re.search(r"\b_[a-z]\w*\(", str(error.value)), (
            name,
            error.value,
        )
    assert "seed" in inspect.signature(tok.sample).parameters
