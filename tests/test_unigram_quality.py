"""Unigram against SentencePiece on text that neither has seen.

Both train on the same lines with matching options, and SentencePiece encodes the unseen text with both
models.

python -m pytest -q -m peers tests/test_unigram_quality.py -s       prints what is measured, as `unigram.trainer` shows
it
"""

import lzma
import re
import time
import unicodedata
from pathlib import Path

import pytest
from peers import sp_file

from subword_nb import Tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.peers]
MATCHING = dict(
    model_type="unigram",
    normalization_rule_name="identity",
    remove_extra_whitespaces=False,
    add_dummy_prefix=True,
    split_by_whitespace=True,
    split_by_unicode_script=False,
    split_by_number=False,
    max_sentence_length=1 << 30,
    input_sentence_size=0,
    num_threads=2,
    minloglevel=2,
)
COVERAGE = 0.9995
SIZES = 8_000, 16_000, 32_000
PAGE = Path(__file__).resolve().parent.parent / "nbs" / "unigram/05_trainer.ipynb"


def even(text):
    "Lines in NFKC with single spaces, so that both libraries see the same text; empty lines are left out."
    lines = (" ".join(unicodedata.normalize("NFKC", line).split()) for line in text.split("\n"))
    return [line for line in lines if line]


def english(shared_file):
    "Eight megabytes of books to train on, two megabytes of other books."
    with lzma.open(shared_file("corpus/english_60mb.txt.xz")) as f:
        data = f.read()
    return even(data[:8_000_000].decode(errors="ignore")), even(data[-2_000_000:].decode(errors="ignore"))


def languages(shared_file):
    "Of 42 languages in stretches of a hundred lines, one in ten to train on (3 MB), and one in twenty that is none of them."
    with lzma.open(shared_file("corpus/multilingual_mixed.txt.xz")) as f:
        lines = f.read().decode().split("\n")
    seen = [line for i, line in enumerate(lines) if i // 100 % 10 == 0]
    return even("\n".join(seen)), even("\n".join(line for i, line in enumerate(lines) if i // 100 % 20 == 19))


TEXTS = {"English": english, "42 languages": languages}


def judged(sp, lines):
    "Tokens and nats per character when SentencePiece encodes lines; an unknown character is 10 below the lowest score."
    score = [sp.get_score(i) for i in range(len(sp))]
    score[sp.unk_id()] = min(s for i, s in enumerate(score) if i != sp.unk_id() and not sp.is_control(i)) - 10
    rows = sp.encode(lines)
    characters = sum(map(len, lines))
    return sum(map(len, rows)) / characters, sum(score[i] for row in rows for i in row) / characters


def models(spm, seen, size, folder):
    "Name → processor and CPU seconds of training: SentencePiece's own model, and ours of a text file and of a list of lines, as saved."
    clock = time.process_time()
    theirs = spm.SentencePieceProcessor(
        model_proto=sp_file(
            spm, seen, vocab_size=size, character_coverage=COVERAGE, hard_vocab_limit=True, **MATCHING
        )
    )
    out = {"SentencePiece": (theirs, time.process_time() - clock)}
    file = folder / "seen.txt"
    file.write_text("\n".join(seen) + "\n", encoding="utf-8")
    for name, source in {"subword_nb": file, "subword_nb, lines": seen}.items():
        clock = time.process_time()
        tok = Tokenizer.train(
            source,
            algorithm="unigram",
            vocab_size=size,
            special_tokens=["<s>", "</s>"],
            character_coverage=COVERAGE,
        )
        seconds = time.process_time() - clock
        path = tok.save(folder / "ours.model")
        assert [p for p in tok.model.piece2id if "\n" in p] == ["\n"] * (source is file)
        out[name] = spm.SentencePieceProcessor(model_file=str(path)), seconds
    return out


def on_the_page():
    "(text, size) → what the page's table says: tokens and nats per character of SentencePiece, then ours."
    found = re.findall(
        r"\| (\S[^|]*?) \| ([\d,]+) \| ([\d.]+) \| −([\d.]+) \| ([\d.]+) \| −([\d.]+) \|",
        PAGE.read_text(encoding="utf-8"),
    )
    return {
        (name, int(size.replace(",", ""))): (float(a), -float(b), float(c), -float(d))
        for name, size, a, b, c, d in found
    }


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", TEXTS)
def test_no_worse_than_sentencepiece_on_unseen_text(spm, shared_file, tmp_path, name, size):
    seen, unseen = TEXTS[name](shared_file)
    found = {}
    for who, (sp, seconds) in models(spm, seen, size, tmp_path).items():
        assert len(sp) == size
        found[who] = judged(sp, unseen)
        print(
            f"\n{name:14} {size:6} {who:18} {found[who][0]:.4f} tokens, {found[who][1]:.4f} nats per character; "
            f"trained in {seconds:.1f} s CPU",
            end="",
        )
    theirs, ours, of_lines = found.values()
    assert ours[1] > theirs[1]  # likelihood is what a Unigram model is trained for
    assert ours[0] < 1.01 * theirs[0]
    assert ours == pytest.approx(of_lines, abs=2e-4)  # a text file is trained on as its lines are
    assert on_the_page()[name, size] == pytest.approx((*theirs, *ours), abs=6e-5)


def test_line_ends_inside_pieces_cost_what_they_cover(spm, shared_file, tmp_path):
    "The same text as one document: pieces hold line ends, and unseen lines need more tokens."
    seen, unseen = english(shared_file)
    (file := tmp_path / "seen.txt").write_text("\n\n".join(seen[:20_000]), encoding="utf-8")
    lines, whole = (
        Tokenizer.train(file, algorithm="unigram", vocab_size=4000, documents=documents)
        for documents in (None, "whole")
    )
    with_ends = [sum("\n" in p and len(p) > 1 for p in tok.model.piece2id) for tok in (lines, whole)]
    costs = [
        judged(spm.SentencePieceProcessor(model_file=str(tok.save(tmp_path / "ours.model"))), unseen[:5000])[
            0
        ]
        for tok in (lines, whole)
    ]
    assert with_ends[0] == 0 < with_ends[1] and costs[0] < costs[1]
