"""Reasons of Unigram models and of SentencePiece's four models.

The pieces are the model's, the numbers are those of the list of all segmentations, and long texts cost no more than their length.
"""

import json
import math
import os
import subprocess
import sys

import pytest
from seeds import TEXTS as N, fresh
from costs import assert_linear
from tests.formats.test_sentencepiece_models import MODELS, model_of, near_ties, random_model, random_text

from subword_nb import Tokenizer
from subword_nb.unigram.lattice import build_lattice, segmentations
from subword_nb.unigram.explain_sentencepiece import (
    WholeReason,
    explain_sentencepiece,
    explain_slices,
    scored_merges,
    scored_merges_ref,
    slice_cutter,
)
from subword_nb.formats.sentencepiece import read_sentencepiece
from subword_nb.unigram.model import Unigram, unigram_model
from subword_nb.unigram.explain import Arc, RankedPath, draw_unigram, explain_unigram, explain_unigram_ref

FILES = [
    "llama-2/tokenizer.model",
    "sentencepiece/test_model.model",
    "t5-small/spiece.model",
    *(
        f"transformers-fixtures/test_sentencepiece{x}.model"
        for x in ("", "_bpe", "_bpe_char", "_no_bos", "_with_bytefallback")
    ),
]
QUICK = ["transformers-fixtures/test_sentencepiece_bpe_char.model"]
KEYS = {
    "unigram": ["kind", "arcs", "paths", "total", "pieces", "note"],
    "bpe": {"kind", "symbols", "steps", "pieces", "note"},
    "wordlevel": ["kind", "found", "pieces", "note"],
}
ARC = ["start", "end", "piece", "id", "score", "marginal", "best", "unknown"]


def random_unigram(rng, ties):
    "A model over three letters; its scores are multiples of a half, so that sums are exact, or any."
    pieces = sorted(
        {
            "".join(rng.choices("abé", weights=(4, 4, 1), k=rng.randrange(1, 5)))
            for _ in range(rng.randrange(1, 14))
        }
    )
    rest = ["<unk>", "<0x61>", "<0x62>", "<0xC3>", "<0xA9>"][: rng.choice([1, 4, 5])]
    draw = (lambda: -rng.randrange(1, 4) / 2) if ties else (lambda: -rng.random() * rng.choice([1, 10, 50]))
    return unigram_model(
        [(p, draw()) for p in pieces + rest],
        unk_piece=rng.choice([None, "<unk>", "<unk>"]),
        byte_fallback=rng.random() < 0.5,
        fuse_unk=rng.random() < 0.5,
        unk_penalty=rng.choice([0, 10]),
        user_defined=[] if ties else rng.sample(pieces, rng.randrange(2)),
        control=rest[rng.randrange(2) :],
    )


def check_plain(reason, model, text):
    "What holds for every reason: plain data in the agreed form, and the model's pieces."
    d = reason.to_dict()
    assert json.loads(json.dumps(d, allow_nan=False)) == d
    assert [*d] == KEYS[d["kind"]] if d["kind"] != "bpe" else KEYS["bpe"] <= {*d}
    assert [model.piece2id[p] for p in reason.pieces] == model.encode(text), (model, text)
    assert reason.note is None or (isinstance(reason.note, str) and reason.note)


def check_lattice(reason, model, text, n=5):
    "What holds for every reason of a Unigram model, whoever adds up."
    assert [(a.start, a.end) for a in reason.arcs] == sorted({(a.start, a.end) for a in reason.arcs})
    taken = [a for a in reason.arcs if a.best]
    assert [a.start for a in taken] + [len(text)] == [0] + [a.end for a in taken]
    assert all(
        a.piece == text[a.start : a.end]
        and 0 <= a.marginal <= 1
        and a.unknown == (a.piece not in model.known)
        for a in reason.arcs
    )
    assert all(a.id == model.piece2id[a.piece] for a in reason.arcs if not a.unknown)
    assert all(a.id is None or a.id == model.piece2id[model.unk_piece] for a in reason.arcs if a.unknown)
    assert (
        1 <= len(reason.paths) <= n and reason.paths[0].pieces == reason.pieces and reason.paths[0].gap == 0
    )
    gaps = [p.gap for p in reason.paths[1:]]
    assert gaps == sorted(gaps) and all(p.gap == reason.paths[0].score - p.score for p in reason.paths)
    for i in range(len(text)):
        assert sum(a.marginal for a in reason.arcs if a.start <= i < a.end) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("ties", [True, False], ids=["ties", "any scores"])
def test_equals_the_list_of_all_splits(ties):
    rng, found, refused = fresh(f"unigram {ties}"), 0, 0
    while found < 2 * N or refused < N // 4:
        assert found < 20 * N, refused
        model, text, n = (
            random_unigram(rng, ties),
            "".join(rng.choices(["a", "b", "é", "?", "<unk>"], weights=(6, 6, 2, 1, 1), k=rng.randrange(10))),
            rng.choice([1, 2, 5, 50]),
        )
        try:
            model.encode(text)
        except ValueError as e:
            with pytest.raises(ValueError) as ours:
                explain_unigram(model, text)
            assert str(ours.value) == str(e)
            refused += 1
            continue
        found += 1
        reason, (share, best, total) = (
            explain_unigram(model, text, n=n),
            explain_unigram_ref(model, text, n=n),
        )
        check_plain(reason, model, text)
        check_lattice(reason, model, text, n)
        assert reason.total == pytest.approx(total, abs=1e-9)
        assert {(a.start, a.end): a.marginal for a in reason.arcs if a.marginal > 1e-12} == pytest.approx(
            {k: p for k, p in share.items() if p > 1e-12}, abs=1e-9
        )
        assert [p.score for p in reason.paths] == pytest.approx([score for _, score, _, _ in best], abs=1e-9)
        assert [p.probability for p in reason.paths] == pytest.approx([p for *_, p in best], abs=1e-9)
        if ties:  # exact sums: the same splits in the same order, equals too
            assert [a.end for a in reason.arcs if a.best] == best[0][0]
            parts = [[text[a:b] for a, b in zip([0, *ends], ends)] for ends, *_ in best]
            if all(part in model.known for split in parts for part in split):
                assert [p.pieces for p in reason.paths] == parts


def test_a_runner_up_that_has_no_ids():
    "A split that the model could not spell is listed with its text; the one that is taken has ids."
    model = unigram_model(
        [("ab", -1.0), ("a", -1.0), ("<0x61>", -9.0)], byte_fallback=True, control=["<0x61>"]
    )
    reason = explain_unigram(model, "ab")
    assert [p.pieces for p in reason.paths] == [["ab"], ["a", "b"]] and model.encode("ab") == [0]
    assert reason.arcs[2] == Arc(
        1, 2, "b", None, model.unk_score, pytest.approx(reason.paths[1].probability), False, True
    )


def test_scores_that_add_up_to_nothing_and_to_much():
    "Scores of any size: no infinity, no NaN."
    model = unigram_model([("a", -1e300), ("aa", -1e300), ("b", -5e-324), ("bb", 0.0)])
    for text in ("aa", "aaaa", "bbbb", "abab"):
        reason = explain_unigram(model, text)
        check_plain(reason, model, text)
        assert all(math.isfinite(x) for p in reason.paths for x in (p.score, p.gap, p.probability))
    worst = unigram_model([("a", -1.7e308)])
    for call in (worst.encode, lambda text: explain_unigram(worst, text)):
        with pytest.raises(ValueError, match="'a'"):
            call("aa")


def test_what_is_no_unigram_is_refused():
    model = unigram_model([("<unk>", 0.0), ("a", -1.0)], unk_piece="<unk>", control=["<unk>"])
    theirs = model_of([("<unk>", 0.0, 2), ("a", -1.0, 1)], "unigram")
    with pytest.raises(ValueError, match="explain_sentencepiece"):
        explain_unigram(theirs, "a")
    with pytest.raises(ValueError, match="pass one of SentencePiece's"):
        explain_sentencepiece(model, "a")
    for n in (0, -1, True, 1.5, None):
        for fn, m in ((explain_unigram, model), (explain_sentencepiece, theirs)):
            with pytest.raises(ValueError, match="n must be an integer, 1 or more"):
                fn(m, "a", n=n)
    for fn, m in ((explain_unigram, model), (explain_sentencepiece, theirs)):
        with pytest.raises(ValueError, match="pass a str|must be a str"):
            fn(m, b"a")


def test_display_is_safe_and_says_what_it_must():
    "Markup in a text is escaped, what cannot be seen is named, and a page is not drawn as a lattice."
    model = unigram_model([("<unk>", 0.0), ("<b>", -1.0), ("a", -1.0)], unk_piece="<unk>", control=["<unk>"])
    html = explain_unigram(model, "<b>a\0<i>")._repr_html_()
    assert "<b>" not in html and "<i>" not in html and "&lt;b&gt;" in html and "\0" not in html
    reason = explain_unigram(model, "a?")
    assert str(reason).splitlines()[-1] == reason.note == "unknown: ?"
    assert "?" in draw_unigram(reason).alt and "a" in draw_unigram(reason, title="one").text
    assert explain_unigram(model, "??!!##+").note == "unknown: ?, !, #, +"
    assert explain_unigram(model, "1234567").note == "unknown: 1, 2, 3, 4, 5 and 2 more"
    long = explain_unigram(model, "a" * 3000)
    assert "<svg" not in long._repr_html_() and max(map(len, str(long).splitlines())) < 200


def test_long_texts():
    "Ten thousand characters: every number is there and finite, and at most 2,000 arcs beside those of the split that is taken."
    rng = fresh(5)
    pieces = sorted({"".join(rng.choices("abc", k=k)) for k in range(1, 9) for _ in range(60)} | set("abc"))
    model = unigram_model(
        [("<unk>", 0.0), *((p, -1 - rng.random() * len(p)) for p in pieces)],
        unk_piece="<unk>",
        control=["<unk>"],
    )
    text = "".join(rng.choices("abc?", weights=(9, 9, 9, 1), k=10_000))
    reason = explain_unigram(model, text)
    check_plain(reason, model, text)
    assert (
        len(reason.arcs) == max(2000, sum(a.best for a in reason.arcs))
        and "arcs: the best split's" in reason.note
    )
    assert [a[:2] for a in reason.arcs] == sorted(a[:2] for a in reason.arcs)
    every = explain_unigram(model, text[:300])
    assert len(every.arcs) == len(model.lattice(text[:300]).nodes) < 2000
    shorter = explain_unigram(model, text[:1500])
    listed, nodes = {a[:2] for a in shorter.arcs}, model.lattice(text[:1500]).nodes
    least = min(a.marginal for a in shorter.arcs if not a.best)
    kept = explain_unigram_all(model, text[:1500])
    assert len(listed) == 2000 < len(nodes) and all(
        p <= least + 1e-12 for place, p in kept.items() if place not in listed
    )


def explain_unigram_all(model, text):
    "The marginal of every arc, by sums from both ends over prefixes and suffixes, as plain numbers scaled at each place."
    n, before, after = len(text), [0.0], [0.0]
    arcs = [
        (i, j, model.table[text[i:j]])
        for i in range(n)
        for j in range(i + 1, min(n, i + 8) + 1)
        if text[i:j] in model.table
    ]
    arcs += [(i, i + 1, model.unk_score) for i in range(n) if text[i] not in model.table]
    ending, starting = {}, {}
    for i, j, s in arcs:
        ending.setdefault(j, []).append((i, s))
        starting.setdefault(i, []).append((j, s))

    def add(logs):
        return max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))

    for j in range(1, n + 1):
        before.append(add([before[i] + s for i, s in ending[j]]))
    after = {n: 0.0}
    for i in reversed(range(n)):
        after[i] = add([after[j] + s for j, s in starting[i]])
    return {(i, j): math.exp(before[i] + s + after[j] - before[n]) for i, j, s in arcs}


@pytest.mark.parametrize("kind", ["unigram", "sentencepiece unigram", "sentencepiece bpe"])
def test_costs_grow_with_the_text(kind):
    pieces = ["a", "b", "ab", "aba", "bb", "abab"]
    if kind == "unigram":
        model = unigram_model(
            [("<unk>", 0.0), *((p, -float(i + 1)) for i, p in enumerate(pieces))],
            unk_piece="<unk>",
            control=["<unk>"],
        )
        explain = explain_unigram
    else:
        model, explain = (
            model_of(
                [("<unk>", 0.0, 2), *((p, -float(i + 1), 1) for i, p in enumerate(pieces))], kind.split()[1]
            ),
            explain_sentencepiece,
        )
    for text in ("abb", "a", "b", "?", "ab?"):
        assert_linear(lambda text: explain(model, text), text, 3200, what=f"{kind} {text}")


def test_needs_nothing_that_a_browser_may_lack():
    code = """
import sys
for name in ("numpy", "numba", "regex", "tqdm", "matplotlib", "typer"): sys.modules[name] = None
from subword_nb.unigram.model import unigram_model
from subword_nb.unigram.explain import explain_unigram
from subword_nb.formats.sentencepiece_models import SentencePieceBPE, SentencePieceUnigram
from subword_nb.unigram.explain_sentencepiece import explain_sentencepiece
model = unigram_model([("<unk>", 0.0), ("a", -1.0), ("ab", -1.5)], unk_piece="<unk>", control=["<unk>"])
reason = explain_unigram(model, "ab?")
print(reason.pieces, len(reason._repr_html_()) > 500)
for cls in (SentencePieceUnigram, SentencePieceBPE):
    model = cls({"<unk>": 0, "a": 1, "b": 2, "ab": 3}, [0, -1, -1, -1.5], "<unk>")
    print(explain_sentencepiece(model, "ab?").pieces)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.stdout.splitlines() == ["['ab', '<unk>'] True", "['ab', '<unk>']", "['ab', '<unk>']"], (
        done.stderr
    )


# SentencePiece's models


def check_sentencepiece(model, text, n=5):
    "What holds for a reason of any of the four."
    reason = explain_sentencepiece(model, text, n=n)
    check_plain(reason, model, text)
    if reason.kind == "unigram":
        check_sums(reason, model, text)
    elif reason.kind == "bpe":
        check_merges(reason, model, text)
    else:
        assert isinstance(reason, WholeReason) and reason.found == all(
            model.known.get(t.piece) == t.id for t in model.tokens(text)
        )
    return reason


def check_sums(reason, model, text):
    taken = [a for a in reason.arcs if a.best]
    assert [a.start for a in taken] + [len(text)] == [0] + [a.end for a in taken]
    assert all(a.score == (model.unk_score if a.unknown else model.table[a.piece]) for a in reason.arcs)
    ahead = -min(p.gap for p in reason.paths)
    assert (ahead > 0) <= ("32-bit sums take this split" in (reason.note or ""))
    reach = max(abs(sum(a.score for a in taken[:i])) for i in range(len(taken) + 1))
    assert ahead <= 4 * (len(text) + 1) * 2**-24 * max(reach, 1.0) + 1e-9


def check_merges(reason, model, text):
    "Replaying the steps, each is a merge of what stands there, and no pair that could be joined before is better."
    symbols = [[s.piece, s.start, s.end] for s in reason.symbols]
    assert "".join(piece for piece, *_ in symbols) == text
    for m in reason.steps:
        (left, a, b), (right, c, d) = symbols[m.at : m.at + 2]
        assert (left, right, left + right, a, d, b) == (m.left, m.right, m.piece, m.start, m.end, c)
        assert m.rank is None and m.score == model.scores[model.piece2id[m.piece]]
        symbols[m.at : m.at + 2] = [[m.piece, a, d]]
    if len(text) <= 60:
        assert reason.steps == scored_merges_ref(model, text)
    assert reason.to_dict()["steps"] == [m._asdict() for m in reason.steps]


@pytest.mark.parametrize("kind", MODELS)
def test_generated_models(kind):
    rng, rounded = fresh(f"explain {kind}"), 0
    for k in range(5 * N):
        if k >= N // 2 and (rounded > 5 or kind != "unigram"):
            break
        pieces, byte_fallback, alphabet = random_model(rng)
        if kind == "unigram" and k % 2:
            (pieces, alphabet), byte_fallback = near_ties(rng), False
        model = model_of(pieces, kind, byte_fallback)
        for _ in range(5):
            reason = check_sentencepiece(model, random_text(rng, alphabet), rng.choice([1, 3, 5]))
            rounded += "32-bit" in (reason.note or "")
    if kind == "unigram":
        assert rounded > 5


def check_stretches(model, text):
    "The stretches against the reason of the whole text at once; the stretches."
    whole, found = explain_sentencepiece(model, text, n=3), explain_slices(model, text, n=3)
    assert [p for s in found for p in s.reason.pieces] == whole.pieces and "".join(
        text[s.start : s.end] for s in found
    ) == text
    if whole.kind == "bpe":

        def place(m, start):
            return m.left, m.right, m.piece, m.start + start, m.end + start, m.score

        for s in found:
            assert [place(m, s.start) for m in s.reason.steps] == [
                place(m, 0) for m in whole.steps if s.start <= m.start and m.end <= s.end
            ]
        assert sum(len(s.reason.steps) for s in found) == len(whole.steps)
    if whole.kind == "unigram" and len(whole.arcs) < 2000:
        assert [
            (a.start + s.start, a.end + s.start, a.piece, a.id, a.score, a.best, a.unknown)
            for s in found
            for a in s.reason.arcs
        ] == [(*a[:5], *a[6:]) for a in whole.arcs]
        assert [a.marginal for s in found for a in s.reason.arcs] == pytest.approx(
            [a.marginal for a in whole.arcs], abs=1e-8
        )
        assert sum(s.reason.total for s in found) == pytest.approx(whole.total, rel=1e-9, abs=1e-9)
    kinds = {}
    for s in found:
        kinds.setdefault((text[s.start : s.end], *s.reason.pieces), set()).add(id(s.reason))
    assert all(len(k) == 1 for k in kinds.values())
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_stretches_are_the_whole(kind):
    "Pieces of all kinds, unknown spaces, runs of unknown words, unused pieces, sums that 32 bits cannot tell apart."
    rng, several, other = fresh(f"stretches {kind}"), 0, 0
    for k in range(2 * N):
        pieces, byte_fallback, alphabet = random_model(rng)
        if kind == "unigram" and k % 2:
            (pieces, alphabet), byte_fallback = near_ties(rng), False
        model = model_of(pieces, kind, byte_fallback)
        text = (
            "".join(rng.choices([*alphabet, "▁"], k=rng.randrange(30)))
            if k % 3
            else "▁".join(
                rng.choices([random_text(rng, alphabet, (0, 1, 2, 3)) for _ in range(3)], k=rng.randrange(12))
            )
        )
        found = check_stretches(model, text)
        several += len(found) > 1
        other += len({(text[s.start : s.end], *s.reason.pieces) for s in found}) > len(
            {text[s.start : s.end] for s in found}
        )
    assert several > N // 4 and (other > 0 or kind != "unigram" or N < 500), (several, other)


def test_where_stretches_begin():
    pieces = [
        ("<unk>", 0.0, 2),
        *((c, -1.0, 1) for c in "ab▁"),
        ("b▁a", -1.0, 1),
        ("<▁>", -1.0, 4),
        ("▁▁", -2.0, 1),
    ]
    for kind in MODELS:
        assert slice_cutter(model_of(pieces, kind))("a▁b▁a▁▁<▁>▁") == [0, 1, 5, 10]
    model = model_of([("<unk>", 0.0, 2), ("a", -1.0, 1)], "unigram")
    places = [(s.start, s.end) for s in explain_slices(model, "a▁a?▁?a▁a")]
    assert places == [(0, 1), (1, 7), (7, 9)]  # one unknown run, and one token, goes over the ▁ at 4


def test_marginals_of_sentencepiece_are_those_of_all_splits():
    rng = fresh("marginals")
    for _ in range(300):
        pieces, byte_fallback, alphabet = random_model(rng)
        model, text = model_of(pieces, "unigram", byte_fallback), random_text(rng, alphabet, (0, 1, 3, 5, 7))
        reason = explain_sentencepiece(model, text, n=10**6)
        paths = list(
            segmentations(build_lattice(text, model.table, piece2id=None, unk_score=model.unk_score))
        )
        scores = [math.fsum(node.score for node in path) for path in paths]
        top = max(scores)
        total = top + math.log(math.fsum(math.exp(s - top) for s in scores))
        assert reason.total == pytest.approx(total, rel=1e-9, abs=1e-9)
        share = {}
        for path, s in zip(paths, scores):
            for node in path:
                share[node[:2]] = share.get(node[:2], 0.0) + math.exp(s - total)
        assert {a[:2]: a.marginal for a in reason.arcs} == pytest.approx(
            share | {a[:2]: 0.0 for a in reason.arcs if a[:2] not in share}, abs=1e-9
        )
        assert len(reason.paths) == len(paths) and sum(p.probability for p in reason.paths) == pytest.approx(
            1, abs=1e-9
        )


def test_notes_of_sentencepiece():
    pieces = [
        ("<unk>", 0.0, 2),
        ("a", -1.0, 1),
        ("b", -2.0, 1),
        ("ab", -3.0, 5),
        ("<x>", 0.0, 4),
        ("▁a", -4.0, 1),
    ]

    def note(kind, text):
        return explain_sentencepiece(model_of(pieces, kind), text).note

    assert note("bpe", "ab<x>?") == "user-defined, kept whole: <x>; unused, split again: ab; unknown: ?"
    assert note("unigram", "ab<x>?") == "unknown: ?" and note("unigram", "ab") is None
    assert (
        note("char", "a<x>?")
        == "each character is a piece of its own; user-defined, kept whole: <x>; unknown: ?"
    )
    assert note("word", "a▁a▁b") == "each word is a piece of its own; unknown: ▁b"
    spelled = model_of([*pieces, *((f"<0x{b:02X}>", 0.0, 6) for b in range(256))], "bpe", True)
    assert explain_sentencepiece(spelled, "é?").note == "byte fallback: é, ?" and explain_sentencepiece(
        spelled, "é"
    ).pieces == ["<0xC3>", "<0xA9>"]


def test_an_unused_piece_is_taken_apart_as_it_was_last_put_together():
    model = model_of(
        [
            ("<unk>", 0.0, 2),
            *((c, -9.0, 1) for c in "abc"),
            ("ab", -1.0, 1),
            ("bc", -2.0, 1),
            ("abc", -3.0, 5),
        ],
        "bpe",
    )
    symbols, steps, parts = scored_merges(model, "abcbc")
    assert (
        [m.piece for m in steps] == ["ab", "bc", "abc"] and parts == ["ab", "c", "bc"] and len(symbols) == 5
    )


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FILES]
)
def test_golden_strings(name, shared_file, shared_data):
    "Real files: the reason of every golden string, as the normalizer leaves it, has the pieces of its ids."
    parts = read_sentencepiece(shared_file(f"vocab/{name}"))
    tok = Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())
    golden = json.loads(
        (shared_data / "golden" / f"sp__{name.replace('/', '.')}.json").read_text(encoding="utf-8")
    )["ids"]
    strings, whole = json.loads((shared_data / "golden" / "strings.json").read_text(encoding="utf-8")), 0
    for i, (s, ids) in enumerate(zip(strings, golden)):
        text = tok.normalizer.normalize(s)
        reason = check_sentencepiece(tok.model, text)
        if i % 4 == 0:
            check_sentencepiece(tok.model, s[:400])  # not normalized: spaces are unknown
        whole += [tok.model.piece2id[p] for p in reason.pieces] == ids
    assert whole > 0.8 * len(strings)  # the rest have added tokens in them, which no model sees


@pytest.mark.slow
def test_a_page_for_t5(shared_file):
    "Ten thousand characters of a real text with a real vocabulary."
    model = read_sentencepiece(shared_file("vocab/t5-small/spiece.model")).model
    text = (
        shared_file("corpus/english_small.txt")
        .read_text(encoding="utf-8")
        .replace("\n", " ")
        .replace(" ", "▁")[:10_000]
    )
    reason = explain_sentencepiece(model, text)
    check_plain(reason, model, text)
    assert len(reason.arcs) >= 2000 and len(reason.paths) == 5 and isinstance(reason.paths[0], RankedPath)
    assert reason.paths[1].gap < 1 and 0 < reason.paths[0].probability < 1


def test_unigram_stays_a_plain_model():
    "Explaining leaves nothing behind in a model."
    model = unigram_model([("<unk>", 0.0), ("a", -1.0)], unk_piece="<unk>", control=["<unk>"])
    explain_unigram(model, "aa?")
    assert model == Unigram({"<unk>": 0, "a": 1}, [0.0, -1.0], "<unk>", control=("<unk>",))
    assert model.known == {"a": 1} and model.table == {"a": -1.0}
