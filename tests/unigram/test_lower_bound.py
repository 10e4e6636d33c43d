"The lower bound on tokens: below the optimum of all vocabularies, and exact."

from itertools import combinations

from seeds import fresh

from subword_nb.unigram.inference import fewest_tokens_ref
from subword_nb.unigram.lower_bound import simplex, tokens_bound


def test_no_vocabulary_is_below_the_bound():
    rng = fresh()
    for _ in range(15):
        counts = {"".join(rng.choices("abc", k=rng.randrange(1, 4))): rng.randrange(1, 9) for _ in range(3)}
        substrings = {w[a:b] for w in counts for b in range(len(w) + 1) for a in range(b - 1)}
        bound, held = tokens_bound(counts, 1)
        assert sum(held.values()) <= 1
        for piece in ["", *substrings]:
            tokens = sum(n * len(fewest_tokens_ref(w, {*w, piece} - {""})) for w, n in counts.items())
            assert bound <= tokens


def test_simplex_finds_the_best_corner():
    rng = fresh()
    for _ in range(100):
        gains = [rng.randrange(-3, 6) for _ in range(2)]
        rows = [[rng.randrange(0, 4), rng.randrange(0, 4)] for _ in range(3)] + [[1, 0], [0, 1]]
        limits = [rng.randrange(0, 9) for _ in rows]
        best, found = simplex(gains, rows, limits)
        assert best == sum(g * x for g, x in zip(gains, found, strict=True))
        assert all(_used(row, found) <= limit for row, limit in zip(rows, limits, strict=True))
        corners = [_corner(*pair) for pair in combinations([*zip(rows, limits, strict=True), *AXES], 2)]
        fitting = [c for c in corners if c and min(c) >= 0 and all(map(_fits(c), rows, limits))]
        assert best == max(sum(g * x for g, x in zip(gains, c, strict=True)) for c in fitting)


AXES = [([1, 0], 0), ([0, 1], 0)]


def _used(row, point):
    return sum(a * x for a, x in zip(row, point, strict=True))


def _fits(point):
    return lambda row, limit: _used(row, point) <= limit


def _corner(first, second):
    "Where two lines meet, exactly."
    from fractions import Fraction

    ((a, b), e), ((c, d), f) = first, second
    det = a * d - b * c
    return (Fraction(e * d - b * f, det), Fraction(a * f - e * c, det)) if det else None
