"""Sampling: against enumeration, against SentencePiece, on long texts, from the same seed twice."""
import math
import random
from collections import Counter

import pytest
from peers import sp_scores, sp_trained

from subword_nb.lattice import build_lattice, forward, log_sum, path_score, segmentations
from subword_nb.unigram_sample import entropy, last_pieces, sample, sample_nbest, sample_ref, sample_without_replacement


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
    return build_lattice(text, {s: -rng.choice([1.0, 2.0, 12 * rng.random()]) for s in spans if len(s) == 1 or rng.random() < 0.5})


def test_chances_of_every_path_are_those_of_the_list():
    rng = random.Random(0)
    for _ in range(300):
        lattice, alpha = random_lattice(rng), rng.choice([0, 0, 0.1, 1, 2.5, 40])
        sums, exact = forward(lattice, alpha), law(lattice, alpha)
        for end in range(1, len(lattice.text) + 1):
            assert math.isclose(sum(math.exp(p) for _, p in last_pieces(lattice, end, sums, alpha)), 1, rel_tol=1e-12)
        for path, p in exact.items():
            steps = sum(dict(last_pieces(lattice, node.end, sums, alpha))[node] for node in path)
            assert math.isclose(math.exp(steps), p, rel_tol=1e-9, abs_tol=1e-300)
        for path, logp in (sample(lattice, alpha, rng), sample_ref(lattice, alpha, rng), sample_nbest(lattice, -1, alpha, rng), *((q, w) for q, w, _ in sample_without_replacement(lattice, 5, alpha, rng))):
            assert math.isclose(math.exp(logp), exact[tuple(path)], rel_tol=1e-9, abs_tol=1e-300)


@pytest.mark.parametrize("draw", [sample, sample_ref])
def test_frequencies(draw):
    rng = random.Random(1)
    for _ in range(8):
        lattice, alpha, n = random_lattice(rng, 6), rng.choice([0, 0.5, 1]), 2000
        exact = law(lattice, alpha)
        stat, df = chi_square(Counter(tuple(draw(lattice, alpha, rng)[0]) for _ in range(n)), {k: n * p for k, p in exact.items()})
        assert stat < limit(df)


def test_nbest_frequencies():
    rng = random.Random(2)
    lattice = build_lattice("abcd", {s: -rng.random() * 5 for s in ("a", "b", "c", "d", "ab", "bc", "cd", "abc", "bcd", "abcd")})
    scores = sorted((path_score(p), tuple(p)) for p in segmentations(lattice))[::-1]
    for size in (2, 4, 8, 99):
        top = {p: math.exp(0.7 * s) for s, p in scores[:size]}
        stat, df = chi_square(Counter(tuple(sample_nbest(lattice, size, 0.7, rng)[0]) for _ in range(3000)), {p: 3000 * w / sum(top.values()) for p, w in top.items()})
        assert stat < limit(df)
    assert [sample_nbest(lattice, size, 0.7, rng) for size in (0, 1)] == [(list(scores[0][1]), 0.0)] * 2


def test_without_replacement_is_drawing_one_by_one():
    rng, n = random.Random(3), 6000
    for alpha in (0, 0.3, 1.5):
        lattice = build_lattice("abcd", {s: -rng.random() * 5 for s in ("a", "b", "c", "d", "ab", "bc", "cd", "abc")})
        exact = law(lattice, alpha)
        pairs = {(a, b): n * p * q / (1 - p) for a, p in exact.items() for b, q in exact.items() if a != b}
        draws = [sample_without_replacement(lattice, 2, alpha, rng) for _ in range(n)]
        stat, df = chi_square(Counter((tuple(a), tuple(b)) for (a, _, _), (b, _, _) in draws), pairs)
        assert stat < limit(df)


def test_without_replacement_exhausts_the_lattice_and_keys_fall():
    rng = random.Random(4)
    for _ in range(200):
        lattice = random_lattice(rng, 7)
        drawn = sample_without_replacement(lattice, 1000, rng.choice([0, 1, 30]), rng)
        assert {tuple(p) for p, _, _ in drawn} == set(map(tuple, segmentations(lattice))) and len(drawn) == len(law(lattice))
        keys = [k for _, _, k in drawn]
        assert keys == sorted(keys, reverse=True) and all(map(math.isfinite, keys))


def test_without_replacement_splits_each_position_once_per_draw(monkeypatch):
    "Only sets that hold a path still to come are split, so k draws split at most k sets per position."
    lattice, asked = build_lattice("a" * 30, {"a" * k: -float(k) for k in range(1, 31)}), Counter()
    monkeypatch.setattr("subword_nb.unigram_sample.last_pieces", lambda lattice, end, sums, alpha: asked.update([end]) or last_pieces(lattice, end, sums, alpha))
    for k in (1, 5, 50):
        asked.clear()
        assert len(sample_without_replacement(lattice, k, 0.5, random.Random(k))) == k
        assert max(asked.values()) <= k


def test_the_first_without_replacement_is_a_draw():
    rng = random.Random(5)
    lattice = build_lattice("abc", {s: -len(s) * rng.random() * 3 for s in ("a", "b", "c", "ab", "bc", "abc")})
    seen = Counter(tuple(sample_without_replacement(lattice, 1, 1.0, rng)[0][0]) for _ in range(4000))
    stat, df = chi_square(seen, {k: 4000 * p for k, p in law(lattice).items()})
    assert stat < limit(df)


def test_entropy():
    rng = random.Random(6)
    for _ in range(300):
        lattice, alpha = random_lattice(rng), rng.choice([0, 0.1, 1, 5, 100])
        assert math.isclose(entropy(lattice, alpha), -sum(p * math.log(p) for p in law(lattice, alpha).values() if p), rel_tol=1e-9, abs_tol=1e-9)


def test_extremes_of_alpha():
    lattice = build_lattice("abab", {"a": -1.0, "b": -2.0, "ab": -700.0, "ba": -0.5})
    best = [n.piece for n in sample_nbest(lattice, 1, 1, random.Random(0))[0]]
    for alpha in (50, 1e3, 1e6):
        for seed in range(20):
            path, logp = sample(lattice, alpha, random.Random(seed))
            assert [n.piece for n in path] == best and -1e-9 < logp <= 1e-9
        assert abs(entropy(lattice, alpha)) < 1e-9
        assert len(sample_without_replacement(lattice, 9, alpha, random.Random(0))) == 5


def test_same_seed_same_draws():
    lattice = build_lattice("abab" * 5, {"a": -1.0, "b": -2.0, "ab": -2.5, "ba": -3.0})
    for draw in (lambda rng: sample(lattice, 0.5, rng), lambda rng: sample_nbest(lattice, 7, 0.5, rng), lambda rng: sample_without_replacement(lattice, 7, 0.5, rng)):
        assert draw(random.Random(9)) == draw(random.Random(9))
    assert len({tuple(sample(lattice, 0.5, random.Random(seed))[0]) for seed in range(20)}) > 10


@pytest.mark.parametrize("alpha", [-0.1, math.nan, math.inf, -math.inf, "1", None, 1e7])
def test_alpha_is_checked(alpha):
    lattice, rng = build_lattice("ab", {"a": -1.0, "b": -1.0}), random.Random(0)
    for call in (sample, sample_ref):
        with pytest.raises(ValueError, match="alpha="):
            call(lattice, alpha, rng)
    for call in (sample_nbest, sample_without_replacement):
        with pytest.raises(ValueError, match="alpha="):
            call(lattice, 2, alpha, rng)
    with pytest.raises(ValueError, match="alpha="):
        entropy(lattice, alpha)


@pytest.mark.parametrize("size", [-2, -1000, 1.0, True, False, None, "3", math.nan])
def test_nbest_size_is_checked(size):
    with pytest.raises(ValueError, match="nbest_size="):
        sample_nbest(build_lattice("ab", {"a": -1.0, "b": -1.0}), size, 1.0, random.Random(0))


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
def test_k_is_checked(k):
    with pytest.raises(ValueError, match="k="):
        sample_without_replacement(build_lattice("ab", {"a": -1.0, "b": -1.0}), k, 1.0, random.Random(0))


def test_no_path_no_nodes_and_no_chance():
    rng = random.Random(0)
    for lattice in (build_lattice("ab", {"a": -1.0}), build_lattice("ab", {})):
        for call, args in ((sample, (1, rng)), (sample_ref, (1, rng)), (sample_nbest, (1, 1, rng)), (sample_nbest, (3, 1, rng)), (sample_without_replacement, (1, 1, rng)), (entropy, ())):
            with pytest.raises(ValueError, match="no sequence of pieces spells the text"):
                call(lattice, *args)
    for rng in (None, 0, 1.5):
        with pytest.raises(ValueError, match="rng is"):
            sample(build_lattice("a", {"a": -1.0}), 1, rng)


def test_a_dead_end_is_never_taken():
    lattice = build_lattice("aab", {"a": -9.0, "ab": -9.0, "aab": -18.0, "b": -50.0, "aa": -1.0})
    lattice = type(lattice)("aab", [n for n in lattice.nodes if n.piece != "b"])
    rng = random.Random(0)
    assert {"·".join(n.piece for n in sample(lattice, 0.2, rng)[0]) for _ in range(100)} == {"a·ab", "aab"}


@pytest.mark.slow
def test_a_long_text_is_linear():
    lattice = build_lattice("ab" * 150_000, {"a": -3.0, "b": -4.0, "ab": -6.0, "ba": -5.0, "abab": -11.0})
    path, logp = sample(lattice, 1.0, random.Random(0))
    assert "".join(n.piece for n in path) == lattice.text and math.isfinite(logp)
    h = entropy(lattice, 1.0)
    assert math.isfinite(h) and 0 < h < 300_000
    drawn = sample_without_replacement(lattice, 2, 1.0, random.Random(0))
    assert len(drawn) == 2 and drawn[0][0] != drawn[1][0]


@pytest.mark.peers
@pytest.mark.parametrize("nbest_size, alpha", [(-1, 0.1), (-1, 0.5), (-1, 1.0), (4, 0.5), (10, 0.2)])
def test_sentencepiece_draws_from_the_same_law(nbest_size, alpha):
    spm = pytest.importorskip("sentencepiece")
    rng = random.Random(0)
    lines = [" ".join("".join(rng.choices("abc", [4, 2, 1], k=rng.randrange(2, 8))) for _ in range(8)) for _ in range(400)]
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
        seen = Counter(tuple(sp.encode(word, out_type=str, enable_sampling=True, nbest_size=nbest_size, alpha=alpha)) for _ in range(n))
        ours = Counter(tuple(x.piece for x in sample_nbest(lattice, nbest_size, alpha, rng)[0]) for _ in range(n))
        for counts in (seen, ours):
            stat, df = chi_square(counts, {tuple(x.piece for x in p): n * q for p, q in exact.items()})
            assert stat < limit(df), (word, stat, df)
