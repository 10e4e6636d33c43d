"""Audits: every kind of tokenizer, tokenizers with faults, and published files."""

import os
import random
import warnings
from dataclasses import fields
from pathlib import Path

import pytest

from subword_nb.corpus.documents import default_corpus
from subword_nb.insight.audit import CHECKS, audit, model_gives, reached, spell, unused_rules
from subword_nb.tokenizer.tokenizer import Tokenizer

DATA = Path(os.environ.get("SUBWORD_NB_DATA") or Path(__file__).parents[3] / "shared/data") / "vocab"
KINDS = ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"]


def real(name) -> Tokenizer:
    "A published file; the test is skipped where it is missing."
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {path}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Tokenizer.load(path)


@pytest.fixture(scope="module", params=KINDS)
def trained(request) -> Tokenizer:
    "A tokenizer of each kind."
    docs = default_corpus()[:10]
    return Tokenizer.train(docs, algorithm=request.param, vocab_size=600, special_tokens=["<s>"])


def test_what_is_unreachable_is_in_no_text(trained):
    "Ids that a large text gives are never said to be unreachable, though the audit does not see that text."
    report = audit(trained)
    given = set(trained.encode_batch(default_corpus()[:10]).ids.tolist())
    assert not given & set(report.unreachable)


def test_trained_tokenizers_have_few_faults(trained):
    "Training leaves no unreachable piece but bytes that UTF-8 lacks, and what Unigram's last round leaves."
    report = audit(trained)
    allowed = {"unreachable: byte", "unreachable: scores", "partial characters", "missing bytes"}
    assert {finding.check for finding in report.findings} <= allowed
    assert report.n_pieces >= report.returned > 0


def test_a_saved_tokenizer_has_the_same_audit(trained, tmp_path):
    "The report follows from the file."
    trained.save(tmp_path / "tok.json")
    again = Tokenizer.load(tmp_path / "tok.json")
    assert audit(again).to_dict() == audit(trained).to_dict()
    assert repr(trained.audit()) == repr(audit(trained))


def test_dropout_does_not_matter():
    "Chance has no part in an audit, and the tokenizer keeps its dropout."
    tok = Tokenizer.train(default_corpus()[:5], vocab_size=400)
    before = audit(tok).to_dict()
    tok.model.dropout = 0.5
    assert audit(tok).to_dict() == before
    assert tok.model.dropout == 0.5


def test_a_corpus_takes_back_what_it_shows():
    "A piece that a corpus has is reachable, whatever contexts were tried."
    tok = Tokenizer.train(default_corpus()[:10], vocab_size=800)
    report = audit(tok, default_corpus()[:10])
    assert report.n_documents == 10
    counts = tok.encode_batch(default_corpus()[:10]).ids.tolist()
    assert not set(counts) & set(report.unreachable)
    assert not set(counts) & set(report["glitch candidates"].ids)


def test_pieces_that_the_model_does_not_give_are_in_no_pretoken():
    "By random texts over two letters: a piece that is emitted is one that the model gives."
    rng = random.Random(5)
    for _ in range(100):
        pieces, rules = ["a", "b"], []
        for _ in range(8):
            a, b = rng.choices(pieces, k=2)
            if (a, b) not in rules and len(a + b) < 7:
                rules.append((a, b))
                pieces += [a + b] * (a + b not in pieces)
        tok = Tokenizer.train({"a": 1}, algorithm="char_bpe", vocab_size=1, unk_piece=None)
        model = type(tok.model)({piece: i for i, piece in enumerate(pieces)}, rules)
        emitted = {i for _ in range(40) for i in model.encode("".join(rng.choices("ab", k=12)))}
        assert all(model_gives(model, pieces[i]) for i in emitted)


def test_every_name_of_a_check_can_be_asked_for():
    "Also those that found nothing."
    report = audit(Tokenizer.train(default_corpus()[:3], vocab_size=300))
    assert all(report[check].check == check for check in CHECKS)
    with pytest.raises(KeyError, match="check must be one of"):
        report["merges"]


def test_what_a_page_shows_is_escaped():
    "Pieces of strangers' files are text in the table."
    hostile = "<script>alert(1)</script>"
    model = type(Tokenizer.train({"a": 1}, algorithm="char_bpe", vocab_size=1, unk_piece=None).model)
    report = audit(Tokenizer(model({"a": 0, hostile: 1}, [])))
    assert report.unreachable == (1,)
    assert "<script>" not in report._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, check, count",
    [
        ("gpt2/tokenizer.json", "unreachable: byte", 13),
        ("gpt2/tokenizer.json", "partial characters", 216),
        ("roberta-base/tokenizer.json", "unreachable: merges", 3),
        ("tiktoken/cl100k_base.tiktoken", "id holes", 16),
        ("qwen/qwen.tiktoken", "unreachable: pre-tokenizer", 1670),
        ("t5-small/spiece.model", "unreachable: scores", 2),
        ("t5-small/tokenizer.json", "unreachable: scores", 2),
        ("bert-base-chinese/vocab.txt", "unreachable: pre-tokenizer", 7442),
        ("falcon/tokenizer.json", "missing bytes", 15),
        ("phi-3-mini", "duplicates", 96),
    ],
)
def test_published_files(name, check, count):
    "Counts of the table in the book."
    assert audit(real(name))[check].count == count


@pytest.mark.slow
def test_o200k():
    "The largest vocabulary: every piece is reachable but 13 bytes, and 19 ids have no piece."
    tok = real("tiktoken/o200k_base.tiktoken")
    report = audit(tok)
    assert report.unreachable == report["unreachable: byte"].ids and len(report.unreachable) == 13
    assert report["id holes"].ids == (199998, *range(200000, 200018))


@pytest.mark.slow
def test_rules_of_a_converted_file():
    "Half of the rules that a converter writes are never applied, and without them ids are the same."
    tok = real("phi-3-mini")
    unused = set(unused_rules(tok.model))
    assert len(unused) == 31637
    kept = [rule for rank, rule in enumerate(tok.model.merges) if rank not in unused]
    lean = Tokenizer(
        **tok.parts._replace(model=type(tok.model)(**vars_of(tok.model) | {"merges": kept}))._asdict()
    )
    for text in default_corpus()[:40]:
        assert lean.encode(text) == tok.encode(text)
    assert reached(spell(lean)) == reached(spell(tok))


def vars_of(model) -> dict:
    "The options of a model."
    return {field.name: getattr(model, field.name) for field in fields(model) if field.init}


def test_signs_before_signs_are_reachable():
    "A piece without the mark at the end of a word occurs before another sign, as `$` in `$%` with CLIP's pieces."
    from subword_nb.bpe.model import BPE
    from subword_nb.insight.audit import reached_ref
    from subword_nb.pipeline.decoders import ByteLevel
    from subword_nb.text.splitters import Split

    pieces = ["$", "%", "a", "$</w>", "%</w>", "a</w>", "$.</w>", ".</w>", "."]
    model = BPE({p: i for i, p in enumerate(pieces)}, [("$", ".</w>")], end_of_word_suffix="</w>")
    words = Split(r"\p{L}+|[^\s\p{L}]+", "removed", invert=True)
    spelled = spell(Tokenizer(model, pre_tokenizer=words, decoder=ByteLevel()))
    assert reached(spelled)[0] == reached_ref(spelled) >= {0, 3, 4, 5, 6, 7}
