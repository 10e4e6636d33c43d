"""EM for Unigram: arrays against the readable versions, plain Python against machine code, threads against none, and long texts."""

import json
import math
import os
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from notebooks import ROOT
from seeds import TEXTS, fresh

from subword_nb.unigram import em_kernels as unigram_arrays
from subword_nb.corpus.documents import TOY_COUNTS
from subword_nb.unigram.lattice import build_lattice, viterbi
from subword_nb.unigram.em_kernels import (
    best_alternative,
    best_paths,
    e_step,
    keep_edges,
    listed,
    make_edges,
    viterbi_counts,
)
from subword_nb.unigram.em import e_step_ref, em_ref, exps, logs, m_step, probabilities, psi


def case(rng, letters="abé", most=9):
    "A corpus, a vocabulary that spells it, probabilities that tie and add up to anything."
    counts = {
        "".join(rng.choices(letters, k=rng.randrange(most))): rng.randrange(1, 9)
        for _ in range(rng.randrange(1, 6))
    }
    parts = sorted({w[i:j] for w in counts for i in range(len(w)) for j in range(i + 2, len(w) + 1)})
    pieces = [*letters, *rng.sample(parts, len(parts) // 2)]
    rng.shuffle(pieces)
    return counts, pieces, [rng.choice([1, 0.5, 0.25, rng.random() + 1e-9, 1e-90]) for _ in pieces]


def spelled(paths, pieces):
    "The pieces of each path."
    return [[pieces[i] for i in paths.piece[a:b]] for a, b in zip(paths.bounds, paths.bounds[1:])]


def test_arrays_agree_with_the_references():
    rng = fresh(0)
    for _ in range(TEXTS // 2):
        counts, pieces, prob = case(rng)
        edges, scores = make_edges(counts, pieces), {p: math.log(x) for p, x in zip(pieces, prob)}
        expected, total = e_step(edges, prob)
        wanted, wanted_total = e_step_ref(counts, scores)
        assert expected == pytest.approx([wanted[p] for p in pieces], rel=1e-9, abs=1e-60)
        assert total == pytest.approx(wanted_total, rel=1e-11, abs=1e-11)
        paths = [viterbi(build_lattice(w, scores)) for w in counts]
        found = best_paths(edges, [*scores.values()])
        assert spelled(found, pieces) == [[n.piece for n in path] for path, _ in paths]
        assert found.score.tolist() == [score for _, score in paths]
        tokens, used = viterbi_counts(edges, [*scores.values()]), dict.fromkeys(pieces, 0)
        for (path, _), n in zip(paths, counts.values()):
            for node in path:
                used[node.piece] += n
        assert tokens.counts.tolist() == [*used.values()] and tokens.tokens == sum(used.values())
        assert tokens.score == pytest.approx(
            sum(n * s for n, (_, s) in zip(counts.values(), paths)), rel=1e-12
        )


def test_alternatives_are_best_paths_without_the_piece():
    rng = fresh(1)
    for _ in range(TEXTS):
        counts, pieces, prob = case(rng)
        scores = {p: math.log(x) for p, x in zip(pieces, prob)}
        found = best_alternative(make_edges(counts, pieces), [*scores.values()])
        for piece, path, score in zip(pieces, spelled(found, pieces), found.score):
            if len(piece) == 1 or not any(piece in w for w in counts):
                assert (path, score) == ([], -math.inf)
            else:
                best, wanted = viterbi(build_lattice(piece, {p: s for p, s in scores.items() if p != piece}))
                assert (path, score) == ([n.piece for n in best], wanted)


def test_a_piece_with_no_alternative_and_several_places():
    edges = make_edges({"cabab": 1, "ab": 2}, ["ab", "c", "abab", "cab"])
    found = best_alternative(edges, [-1.0, -2.0, -3.0, -4.0])
    assert spelled(found, ["ab", "c", "abab", "cab"]) == [[], [], ["ab", "ab"], ["c", "ab"]]
    assert found.score.tolist() == [-math.inf, -math.inf, -2.0, -3.0]


def test_kept_edges_are_those_of_the_smaller_vocabulary():
    rng = random.Random(2)
    for _ in range(300):
        counts, pieces, _ = case(rng)
        alive = np.array([len(p) == 1 or rng.random() < 0.5 for p in pieces])
        smaller = [p for p, stays in zip(pieces, alive) if stays]
        kept, made = keep_edges(make_edges(counts, pieces), alive, renumber=True), make_edges(counts, smaller)
        assert all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in zip(kept[:-1], made[:-1]))
        for at, piece in zip(kept.at.tolist(), smaller):  # any place will do
            assert (
                "".join(counts)[at : at + len(piece)] == piece
                if at >= 0
                else not any(piece in w for w in counts)
            )
        same = keep_edges(make_edges(counts, pieces), alive)
        for k in range(len(counts)):
            assert [(s, t, pieces[i]) for s, t, i in listed(same, k)] == [
                (s, t, smaller[i]) for s, t, i in listed(kept, k)
            ]


def test_edges_are_the_places_of_all_pieces():
    rng = random.Random(8)
    for _ in range(300):
        counts, pieces, _ = case(rng)
        edges = make_edges(counts, pieces)
        for k, text in enumerate(counts):
            assert listed(edges, k) == sorted(
                (s, s + len(p), i)
                for i, p in enumerate(pieces)
                for s in range(len(text))
                if text.startswith(p, s)
            )


def digest(threads=1):
    "Results on many small corpora and one long text, written out to the last bit."
    rng, out = random.Random(3), []
    for i in range(60):
        counts, pieces, prob = case(rng, most=30 if i else 2)
        if i == 1:
            counts["ab" * 300] = 7
        edges = make_edges(counts, pieces)
        expected, total = e_step(edges, prob, threads=threads)
        again = probabilities(
            expected, digamma=True, threshold=0.5, required=np.array([len(p) == 1 for p in pieces])
        )
        tokens, others = (
            viterbi_counts(edges, logs(again + 1e-9).clip(max=0), threads=threads),
            best_alternative(edges, logs(prob), threads=threads),
        )
        out.append(
            [
                x.hex()
                for x in [*expected.tolist(), total, *again.tolist(), tokens.score, *others.score.tolist()]
            ]
        )
        out.append([tokens.counts.tolist(), others.piece.tolist(), others.bounds.tolist()])
    return out


@pytest.mark.slow
def test_plain_python_gives_the_same_bits():
    code = "import json, sys; sys.path.append('tests'); import tests.unigram.test_em as t; print(json.dumps(t.digest()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SUBWORD_NB_JIT": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == digest()


@pytest.mark.parametrize("block", [1, 50])
def test_threads_do_not_show(monkeypatch, block):
    monkeypatch.setattr(unigram_arrays.SIZES, "block", block)
    assert digest(1) == digest(5)


def test_em_never_lowers_the_likelihood():
    rng = fresh(5)
    for _ in range(TEXTS // 2):
        counts, pieces, prob = case(rng)
        edges, prob = make_edges(counts, pieces), np.array(prob) / sum(prob)
        if not len(edges.longest):
            continue
        before = -math.inf
        for _ in range(8):
            expected, total = e_step(edges, prob)
            assert total >= before - 1e-9 * abs(total)
            before, prob = total, probabilities(expected)
            assert prob.sum() == pytest.approx(1, abs=1e-12)


def test_expected_counts_spell_the_corpus():
    rng = random.Random(6)
    for _ in range(500):
        counts, pieces, prob = case(rng)
        expected, _ = e_step(make_edges(counts, pieces), prob)
        assert expected @ [len(p) for p in pieces] == pytest.approx(
            sum(n * len(w) for w, n in counts.items()), rel=1e-12
        )


@pytest.mark.parametrize(
    "p, q", [(1, 1), (1e-3, 2e-3), (2.0**-800, 2.0**-800), (1, 2.0**-800), (2.0**-800, 1)]
)
def test_a_megabyte_pretoken(p, q):
    n = 1_000_001
    longest = np.append(np.ones(n - 1, np.int32), np.int32(0))
    edges = unigram_arrays.Edges(
        np.array([0, n]),
        np.array([3]),
        longest,
        np.array([-1, 0], np.int32),
        np.array([1, 2], np.int32),
        np.zeros(2, np.int32),
    )
    expected, total = e_step(edges, [p, q])
    assert np.isfinite(expected).all() and expected @ [1, 2] == pytest.approx(3 * n, rel=1e-9)
    tokens = viterbi_counts(edges, logs([p, q]))
    assert tokens.counts @ [1, 2] == 3 * n and tokens.score <= total
    if p < q == 1:  # as few `a` as can be: one, in any of the places between the `aa`
        assert expected[0] == pytest.approx(3) and total == pytest.approx(
            3 * (math.log(p) + math.log(n // 2 + 1)), rel=1e-12
        )


def test_probabilities_far_apart_lose_nothing():
    chars = [chr(0x4E00 + i) for i in range(40)]
    text, tiny = "".join(chars), 2.0**-800
    expected, total = e_step(make_edges({text: 1}, [*chars, text]), [tiny] * 40 + [1.0])
    assert total == 0 and expected[-1] == 1 and expected[:40].max() == 0
    expected, total = e_step(
        make_edges({text: 1}, [*chars, text[:20], text[20:]]), [tiny] * 40 + [tiny, tiny]
    )
    assert total == pytest.approx(2 * math.log(tiny), rel=1e-14) and expected[40:].tolist() == [1, 1]
    expected, total = e_step(make_edges({text: 1}, [*chars, text[:20]]), [tiny] * 40 + [0.0])
    assert total == pytest.approx(40 * math.log(tiny), rel=1e-14) and expected.tolist() == [1] * 40 + [0]


def test_logarithms_and_powers():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            10 ** rng.uniform(-240, 240, 20000),
            1 + rng.uniform(-1e-3, 1e-3, 5000),
            [1, 2, 0.5, 5e-324, 1.7e308],
        ]
    )
    wanted = np.array([math.log(v) for v in x])
    assert (abs(logs(x) - wanted) <= 5e-16 * abs(wanted)).all()
    y = -(10 ** rng.uniform(-12, math.log10(550), 20000))
    wanted = np.array([math.exp(v) for v in y])
    assert (abs(exps(y) - wanted) <= 1e-15 * wanted).all() and (exps(y) <= 1).all()


def test_psi():
    gamma = 0.57721566490153286060651209
    for n in (1, 2, 3, 10, 50):
        harmonic = sum((Fraction(1, k) for k in range(1, n)), Fraction(0))
        assert psi(n) == pytest.approx(float(harmonic) - gamma, abs=1e-13)
        half = sum((Fraction(2, 2 * k - 1) for k in range(1, n + 1)), Fraction(0))
        assert psi(n + 0.5) == pytest.approx(float(half) - gamma - 2 * math.log(2), abs=1e-13)
    x = np.array([0.01, 0.5, 1, 3.25, 1e3, 1e9, 1e15])
    assert psi(x, log=logs) == pytest.approx([psi(v) for v in x.tolist()], rel=1e-13)
    assert psi(1e15) == pytest.approx(math.log(1e15), rel=1e-14)


@pytest.mark.parametrize("digamma", [False, True])
def test_m_step_on_arrays_and_in_dicts(digamma):
    rng = random.Random(7)
    for _ in range(1000):
        c = {
            str(i): rng.choice([0, 0.3, 0.5, 1, rng.random() * 9, rng.random() * 1e9])
            for i in range(rng.randrange(1, 9))
        }
        threshold, required = rng.choice([0.0, 0.5]), [p for p in c if rng.random() < 0.2]
        try:
            wanted = m_step(c, digamma=digamma, threshold=threshold, required=required)
        except ValueError:
            with pytest.raises(ValueError, match="pass a lower threshold"):
                probabilities(
                    [*c.values()], digamma=digamma, threshold=threshold, required=np.isin([*c], required)
                )
            continue
        found = probabilities(
            [*c.values()], digamma=digamma, threshold=threshold, required=np.isin([*c], required)
        )
        assert [p for p, x in zip(c, found) if x > 0] == [*wanted]
        assert logs(found[found > 0]) == pytest.approx([*wanted.values()], rel=1e-12, abs=1e-12)
        assert (found <= 1).all() and found.sum() <= 1 + 1e-12


def test_digamma_settles_the_toy_corpus():
    parts = sorted(
        {
            w[i:j]
            for w in TOY_COUNTS
            for i in range(len(w))
            for j in range(i + 1, len(w) + 1)
            if j - i < len(w)
        }
    )
    uniform = dict.fromkeys(parts, -math.log(len(parts)))
    final = em_ref(TOY_COUNTS, uniform, 40, digamma=True, threshold=0.5)[-1]
    assert final.log_likelihood > -110 and len(final.scores) <= 7


def test_one_score_of_a_certain_piece_is_accepted_again():
    for digamma in (False, True):
        assert m_step({"a": 3.7}, digamma=digamma) == {"a": 0.0}
        assert probabilities([3.7], digamma=digamma).tolist() == [1.0]
        for tiny in (1e-200, 5e-324):
            scores, prob = (
                m_step({"a": 1.0, "b": tiny}, digamma=digamma),
                probabilities([1.0, tiny], digamma=digamma),
            )
            assert scores["a"] <= 0 and prob.max() <= 1
            assert math.log(prob[1]) == pytest.approx(scores["b"]) and e_step(
                make_edges({"b": 1}, ["a", "b"]), prob
            )[1] == pytest.approx(scores["b"])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.5, 2])
def test_scores_are_refused(bad):
    with pytest.raises(ValueError, match="scores must be logarithms of probabilities.* for the piece 'b'"):
        e_step_ref({"a": 1}, {"a": -1.0, "b": bad})
    with pytest.raises(ValueError, match="for piece number 1"):
        best_paths(make_edges({"a": 1}, ["a", "b"]), [-1.0, bad])
    with pytest.raises(ValueError, match="for piece number 1"):
        best_alternative(make_edges({"a": 1}, ["a", "b"]), [-1.0, bad])


def test_other_bad_input():
    edges = make_edges({"ab": 1, "abc": 2}, ["a", "b", "ab"])
    for bad in (math.nan, math.inf, -1e-9, 1.0001, 1e-250):
        with pytest.raises(ValueError, match="must have a probability: 0, or from"):
            e_step(make_edges({"ab": 1}, ["a", "b"]), [0.5, bad])
    with pytest.raises(ValueError, match=r"got none for number 1 \(3 characters\)"):
        e_step(edges, [0.3, 0.3, 0.4])
    with pytest.raises(ValueError, match=r"got none for number 1 \(3 characters\)"):
        viterbi_counts(edges, [-1, -1, -1])
    assert best_paths(edges, [-1, -1, -1]).score.tolist() == [-1, -math.inf]
    with pytest.raises(
        ValueError, match="got 'abc', where no piece continues after 'ab'; add a piece for 'c'"
    ):
        e_step_ref({"ab": 1, "abc": 2}, {"a": -1, "b": -1, "ab": -1})
    for wrong in ([0.5], [[0.5, 0.5, 0.5]], 0.5):
        with pytest.raises(ValueError, match="one for each piece"):
            e_step(edges, wrong)
    for n in (0, -3):
        for refuse, other in ((make_edges, ["a"]), (e_step_ref, {"a": -1.0})):
            with pytest.raises(
                ValueError, match=f"counts must be positive integers, got {n} for the pretoken 'a'"
            ):
                refuse({"a": n}, other)
    with pytest.raises(ValueError, match="got 'a' as numbers 0 and 1"):
        make_edges({"a": 1}, ["a", "a"])
    for bad in (-1.0, math.nan, math.inf):
        for refuse, expected in ((m_step, {"x": 1.0, "y": bad}), (probabilities, [1.0, bad])):
            with pytest.raises(ValueError, match="expected counts must be finite"):
                refuse(expected)


def test_nothing_at_all():
    empty = make_edges({}, ["a"])
    assert e_step(empty, [1.0])[0].tolist() == [0.0] and e_step(empty, [1.0])[1] == 0.0
    assert viterbi_counts(empty, [-1.0]).tokens == 0 and best_alternative(empty, [-1.0]).score.tolist() == [
        -math.inf
    ]
    assert e_step_ref({}, {"a": -1.0}) == ({"a": 0.0}, 0.0)
    blank = make_edges({"": 5}, [])
    assert e_step(blank, [])[1] == 0.0 and viterbi_counts(blank, []).tokens == 0


def test_runs_without_numba():
    code = """
import importlib.util as u
import sys
sys.modules['numba'] = None
f = u.find_spec
u.find_spec = lambda n, *a: None if n == 'numba' else f(n, *a)
sys.path.append('tests')
import tests.unigram.test_em as t
assert len(t.digest()) == 120
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
