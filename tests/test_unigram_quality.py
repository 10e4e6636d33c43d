"""Unigram against SentencePiece: both train on the same text with matching options, one function measures both models."""
import lzma
import math
import time

import pytest
from peers import sp_scores, sp_trained

from subword_nb.corpus import documents
from subword_nb.counts import count_pretokens
from subword_nb.measure import unigram_cost
from subword_nb.unigram_train import unigram_train

pytestmark = [pytest.mark.slow, pytest.mark.peers]
MATCHING = dict(model_type="unigram", normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True, split_by_whitespace=True,
                split_by_unicode_script=False, split_by_number=False, max_sentence_length=1 << 30, input_sentence_size=0, num_threads=2, minloglevel=2)


def measure(pieces, scores, counts):
    "Tokens per character, log-probability of the best segmentation per character, and of all segmentations together."
    cost = unigram_cost(pieces, scores, counts)
    return cost.tokens / cost.characters, cost.best / cost.characters, cost.total / cost.characters


def sentencepiece_model(lines, vocab_size, **options):
    "SentencePiece trained on the lines: its processor, its learned pieces and their scores."
    spm = pytest.importorskip("sentencepiece", reason="the peer tests need the extra 'peers'")
    sp = sp_trained(spm, lines, vocab_size=vocab_size, **MATCHING, **options)
    scores = sp_scores(sp)
    return sp, [*scores], [*scores.values()]


def compare(name, lines, vocab_size, coverage=1.0):
    "Both models measured, theirs and ours, of the same size; a row of the table is printed for each."
    lines = [line for line in (x.replace("\r", "").lstrip(" ") for x in lines) if line]
    clock = time.process_time()
    sp, pieces, scores = sentencepiece_model(lines, vocab_size, character_coverage=coverage, hard_vocab_limit=False)
    times = [time.process_time() - clock]
    clock = time.process_time()
    counts = count_pretokens(lines, "metaspace")
    ours = unigram_train(counts, len(sp), special_tokens=["<s>", "</s>"], character_coverage=coverage)
    times.append(time.process_time() - clock)
    assert (len(ours.pieces), ours.ended) == (len(sp), "full")
    theirs, mine = measure(pieces, scores, counts), measure(ours.pieces[3:], ours.scores[3:], counts)
    for who, row, seconds in zip(("SentencePiece", "subword_nb"), (theirs, mine), times):
        print(f"{name:16} {len(sp):6} {coverage:7} {who:14} {row[0]:.5f} tokens {row[1]:.5f} {row[2]:.5f} nats per character, {seconds:.1f} s CPU")
    tokens = sum(map(len, sp.encode(lines))) / sum(len(t) * n for t, n in counts.items())
    if coverage == 1.0:
        assert math.isclose(tokens, theirs[0], rel_tol=1e-4)  # the function measures what SentencePiece does
    return theirs, mine


def assert_no_worse(theirs, mine):
    assert mine[0] <= theirs[0]
    assert mine[1] >= theirs[1]
    assert mine[2] >= theirs[2]


@pytest.mark.parametrize("name, coverage", [("english_small", 1.0), ("botchan", 1.0), ("botchan", 0.9995)])
def test_no_worse_than_sentencepiece(shared_file, name, coverage):
    "SentencePiece has fewer than 8,000 pieces for botchan, and says so; then ours is trained to as many."
    lines = "".join(documents(shared_file(f"corpus/{name}.txt"))).split("\n")
    assert_no_worse(*compare(name, lines, 8000, coverage))


def test_exactly_as_many_as_asked_for(shared_file):
    "Also of a text from which SentencePiece makes fewer."
    counts = count_pretokens("".join(documents(shared_file("corpus/botchan.txt"))).split("\n"), "metaspace")
    found = unigram_train(counts, 8000)
    assert (len(found.pieces), len(set(found.pieces)), found.ended) == (8000, 8000, "full")


def test_no_worse_than_sentencepiece_in_many_languages(shared_file):
    text = lzma.open(shared_file("corpus/multilingual_mixed.txt.xz")).read(5_000_000).decode(errors="ignore")
    assert_no_worse(*compare("multilingual", text.split("\n"), 16_000))


def test_no_worse_on_text_not_seen(shared_file):
    "Nine lines in ten to train on, the tenth to measure."
    lines = "".join(documents(shared_file("corpus/english_small.txt"))).split("\n")
    seen, unseen = [x for i, x in enumerate(lines) if i % 10], count_pretokens([x for i, x in enumerate(lines) if i % 10 == 0 and x], "metaspace")
    _, pieces, scores = sentencepiece_model(seen, 4000)
    ours = unigram_train(count_pretokens([x for x in seen if x], "metaspace"), 4000, special_tokens=["<s>", "</s>"])
    assert_no_worse(measure(pieces, scores, unseen), measure(ours.pieces[3:], ours.scores[3:], unseen))
