"""Steppers of texts: suffixes are sorted and counted as by hand, and parts have the offsets that the tokenizer gives."""

import random

import pytest

from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS
from subword_nb.insight.text_steps import cache_steps, mask_steps, pipeline_steps, suffix_steps
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.text.gpt_scanners import scan_ref
from subword_nb.unigram.reference import substring_counts

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def table(stepper, number: int) -> list[list[str]]:
    "The rows of a frame, split at spaces, without marks."
    marks = str.maketrans("", "", "<>()")
    return [line.translate(marks).split() for line in stepper.frame(number).splitlines()[2:]]


def test_suffixes_are_sorted_by_more_and_more_letters():
    rng = random.Random(6)
    for _ in range(60):
        words = {"".join(rng.choices("ab", k=rng.randrange(1, 6))) for _ in range(rng.randrange(1, 6))}
        counts = {word: rng.randrange(1, 5) for word in sorted(words)}
        piece = rng.choice([w[i:j] for w in counts for i in range(len(w)) for j in range(i + 1, len(w) + 1)])
        stepper = suffix_steps(counts, piece)
        rounds = len(stepper) - len(piece)
        for length in range(rounds):
            rows = [
                line.replace("[", "").replace("]", "").split()
                for line in stepper.frame(length).splitlines()[2:]
            ]
            suffixes = ["".join(row[3 : row.index("×")]) for row in rows]
            assert sorted(suffixes) == sorted(w[i:] for w in counts for i in range(len(w)))
            assert [s[:length] for s in suffixes] == sorted(s[:length] for s in suffixes)
        assert suffixes == sorted(suffixes)
        assert stepper.captions[-1].endswith(
            f"begin{'s' * (stepper.captions[-1][:2] == '1 ')} with {piece}, which occurs {substring_counts(counts)[piece]} times."
        )
        marked = [i for i, line in enumerate(stepper.frame(-1).splitlines()) if "<" in line]
        assert marked == list(range(marked[0], marked[-1] + 1)) and stepper.captions[-1].startswith(
            f"{len(marked)} "
        )


@pytest.fixture(scope="module")
def bert():
    "A WordPiece tokenizer with a template."
    tok = Tokenizer.train(COURSE_CORPUS, algorithm="wordpiece", vocab_size=110, special_tokens=SPECIAL)
    tok.post_processor = TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", [("[CLS]", 2), ("[SEP]", 3)]
    )
    return tok


@pytest.mark.parametrize("text", ["This côurse [MASK] is", "", "Tokenizers[MASK]", "a  Chapter"])
def test_parts_have_the_offsets_of_the_tokenizer(bert, text):
    stepper, found = pipeline_steps(bert, text), bert.align(text)
    assert len(stepper) == 6
    expected = [
        [f"{a}–{b}", piece, "id", str(i)]
        for piece, (a, b), i in zip(found.pieces, found.offsets, found.ids, strict=True)
    ]
    assert table(stepper, 5) == expected
    assert table(stepper, 4) == expected[1:-1]
    if text:
        assert expected[0][0] == expected[-1][0] == "0–0"


def test_the_pretokens_are_spelled_from_the_normalized_text(bert):
    rows = table(pipeline_steps(bert, "Thís [MASK] IS"), 3)
    assert rows == [["0–4", "this"], ["5–11", "[MASK]"], ["12–14", "is"]]


def test_what_is_refused(bert):
    with pytest.raises(ValueError, match="text must be a str, got a bytes"):
        pipeline_steps(bert, b"a")
    with pytest.raises(ValueError, match="piece must have at least one character"):
        suffix_steps({"a": 1}, "")


def test_the_model_is_called_for_new_spans_only():
    rng = random.Random(2)
    for _ in range(40):
        spans = [bytes(rng.choices(b"ab", k=rng.randrange(1, 3))) for _ in range(rng.randrange(1, 9))]
        stepper = cache_steps(spans, list)
        assert stepper.frame(-1).splitlines()[-1].split() == [str(i) for span in spans for i in span]
        said = ["is new" in caption for caption in stepper.captions[1:]]
        assert said == [span not in spans[:i] for i, span in enumerate(spans)]


def test_masks_mark_the_bytes_where_spans_of_the_pattern_begin():
    rng = random.Random(7)
    for _ in range(300):
        text = "".join(rng.choices("aB7'stlrevmd \n,", k=rng.randrange(1, 65)))
        stepper = mask_steps(text)
        bits = "".join(
            line.split()[1].strip("<>")
            for line in stepper.frame(7).splitlines()
            if line.split()[0] == "starts"
        )
        places, at = [], 0
        for span in scan_ref("gpt2", text.encode()):
            places.append(at)
            at += len(span)
        assert [i for i, bit in enumerate(bits) if bit == "1"] == places and len(bits) == len(text)
