"""Steppers of Unigram: best scores, sums, expected counts and removals are those of the reference."""

import math
import random

import pytest

from subword_nb.core.draw import printable
from subword_nb.corpus.documents import TOY_COUNTS
from subword_nb.insight.unigram_steps import em_steps, forward_backward_steps, prune_steps, viterbi_steps
from subword_nb.unigram.em import em_ref
from subword_nb.unigram.lattice import build_lattice, node_marginals, segmentations, viterbi_ref
from subword_nb.unigram.reference import removal_losses, scores_of, substring_counts, unigram_train_ref


def lattices(n: int = 60):
    "Random lattices of short texts over two letters, with ties, some without a path."
    rng = random.Random(8)
    for _ in range(n):
        text = "".join(rng.choices("ab", k=rng.randrange(1, 7)))
        pieces = {"".join(rng.choices("ab", k=rng.randrange(1, 4))) for _ in range(rng.randrange(1, 9))}
        yield build_lattice(text, {piece: -rng.randrange(1, 4) / 2 for piece in sorted(pieces)})


def row(stepper, number: int, label: str) -> list[str]:
    "The last row of a frame with a label, without marks."
    lines = [line for line in stepper.frame(number).splitlines() if line.split()[:1] == [label]]
    return lines[-1].replace("[", "").replace("]", "").replace("<", "").replace(">", "").split()


def test_each_frame_of_viterbi_has_the_best_path_so_far():
    for lattice in lattices():
        stepper = viterbi_steps(lattice)
        assert len(stepper) == len(lattice.text) + 1
        scores = {node.piece: node.score for node in lattice.nodes}
        for end in range(1, len(stepper)):
            first = build_lattice(lattice.text[:end], scores)
            if next(segmentations(first), None) is None:
                assert "no path leads here" in stepper.captions[end] and row(stepper, end, str(end)) == [
                    str(end),
                    "−∞",
                ]
                continue
            path, score = viterbi_ref(first)
            spelled = [str(end), f"{score:.2f}".replace("-", "−"), *(node.piece for node in path)]
            assert row(stepper, end, str(end)) == spelled == row(stepper, -1, str(end))


def test_the_sums_and_shares_are_those_of_all_segmentations():
    for lattice in lattices():
        paths = [(path, math.exp(sum(node.score for node in path))) for path in segmentations(lattice)]
        if not paths:
            with pytest.raises(ValueError, match="pieces must spell the text"):
                forward_backward_steps(lattice)
            continue
        total, stepper = sum(p for _, p in paths), forward_backward_steps(lattice)
        assert (
            f"Both ends agree on {total:.3g}." in stepper.captions[-1]
            and len(stepper) == 2 * len(lattice.text) + 3
        )
        shares = [line.split()[-1] for line in stepper.frame(-1).splitlines() if "–" in line]
        assert shares == [f"{share:.3f}" for share in node_marginals(lattice)]
        for share, node in zip(shares, lattice.nodes, strict=True):
            assert float(share) == pytest.approx(
                sum(p for path, p in paths if node in path) / total, abs=0.0006
            )


def test_rounds_of_em_have_the_numbers_of_the_reference():
    scores = scores_of(substring_counts(TOY_COUNTS, whole=False))
    history = em_ref(TOY_COUNTS, scores, 5, threshold=0.5)
    stepper = em_steps(history, limit=20)
    assert any(len(step.scores) < len(scores) for step in history)
    for number, step in enumerate(history):
        assert f"{len(step.scores)} pieces" in stepper.captions[number]
        for piece in scores:
            cells = row(stepper, number, printable(piece))
            if piece in step.scores:
                assert (
                    cells[1] == f"{math.exp(step.scores[piece]):.4f}"
                    and f"{step.expected[piece]:.2f}" in cells[3]
                )
            else:
                assert cells[1:] == ["(removed)"]


@pytest.mark.parametrize("factor", [0.5, 0.8])
def test_pruning_drops_what_the_reference_drops(factor):
    history = unigram_train_ref(TOY_COUNTS, 9, shrinking_factor=factor).history
    stepper = prune_steps(TOY_COUNTS, 9, limit=50, shrinking_factor=factor)
    assert len(stepper) == len(history) > 2
    for number, (n, loss) in enumerate(history):
        assert stepper.captions[number] == f"Round {number + 1}: {n} pieces, loss {loss:.2f} nats."
        state = unigram_train_ref(TOY_COUNTS, n, shrinking_factor=factor)
        losses = removal_losses(TOY_COUNTS, dict(zip(state.pieces, state.scores, strict=True)))
        dropped = [
            line.split()[0] for line in stepper.frame(number).splitlines() if line.endswith("dropped next")
        ]
        following = history[number + 1][0] if number + 1 < len(history) else n
        assert dropped == sorted(losses, key=losses.__getitem__)[: n - following]
