"""Explanations as data.

Every stage of every kind of tokenizer, the same ids and pieces as `encode` and `tokenize`, and nothing that
JSON or a browser's Python lacks.
"""

import json
import random
import subprocess
import sys
import textwrap

import pytest
from seeds import TEXTS as N
from tests.test_models_in_tokenizer import random_text

from subword_nb import Tokenizer
from subword_nb.text.alignment import Aligned
from subword_nb.bpe.model import BPE, RankRules
from subword_nb.bpe.explain import explain_bpe
from subword_nb.corpus.documents import COURSE_CORPUS
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.insight.explain import changes, explain
from subword_nb.text.protocols import Model
from subword_nb.formats.subword_nmt import WORDS, NmtBPE
from subword_nb.text.normalizers import Replace
from subword_nb.pipeline.align import place_tokens_ref
from subword_nb.pipeline.encoder import encoder_of
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.formats.sentencepiece_models import (
    SentencePieceBPE,
    SentencePieceChars,
    SentencePieceUnigram,
    SentencePieceWords,
)
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.wordpiece.wordlevel import WordLevel

REAL = {
    "gpt2/tokenizer.json": "BPE",
    "tiktoken/r50k_base.tiktoken": "BPE",
    "tiktoken/o200k_base.tiktoken": "BPE",
    "clip/tokenizer.json": "BPE",
    "phi-3-mini/tokenizer.json": "BPE",
    "whisper-tiny/tokenizer.json": "BPE",
    "roberta-base/tokenizer.json": "BPE",
    "bert-base-uncased/tokenizer.json": "WordPiece",
    "bert-base-chinese/vocab.txt": "WordPiece",
    "t5-small/tokenizer.json": "Unigram",
    "pegasus/tokenizer.json": "Unigram",
    "barthez/tokenizer.json": "BPE",
    "wordlevel-vulrepair/wordlevel.json": "WordLevel",
    "llama-2/tokenizer.model": "SentencePieceBPE",
    "t5-small/spiece.model": "SentencePieceUnigram",
    "transformers-fixtures/test_sentencepiece_bpe_char.model": "SentencePieceChars",
    "chatglm-6b/ice_text.model": "SentencePieceUnigram",
}
QUICK = (
    "gpt2/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "t5-small/tokenizer.json",
    "wordlevel-vulrepair/wordlevel.json",
    "llama-2/tokenizer.model",
)
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def put(text: str, start: int, found: list) -> str:
    "A stretch of text with its changes made; `start` is where it begins in the original."
    for c in reversed(found):
        assert text[c["start"] - start : c["end"] - start] == c["before"] != c["after"]
        text = text[: c["start"] - start] + c["after"] + text[c["end"] - start :]
    return text


def sums(e, tok, text, **options):
    "All that must contain of an explanation, whatever the tokenizer."
    d = e.to_dict()
    assert json.loads(json.dumps(d)) == d
    assert (d["text"], d["model"]) == (text, type(tok.model).__name__)
    assert e.ids == tok.encode(text, **options) and e.pieces == tok.tokenize(text, **options)
    at, parts = 0, d["parts"]
    for p, after in zip(
        parts, [*parts[1:], {"start": len(text)}]
    ):  # they cover the text; only a character that became several may be in two parts
        assert p["start"] <= at and p["start"] < p["end"] >= at, (p, at)
        if p["start"] == at and p["end"] <= after["start"]:
            assert put(text[at : p["end"]], at, p["changes"]) == p["normalized"]
        at = max(at, p["end"])
    assert at == len(text)
    assert len({(w["pretoken"], *d["reasons"][w["why"]]["pieces"]) for w in d["words"]}) == len(d["reasons"])
    for k, w in enumerate(d["words"]):
        reason, (a, b) = d["reasons"][w["why"]], w["tokens"]
        assert 0 <= w["start"] <= w["end"] <= len(text) and all(
            t["word"] == k or d["words"][t["word"]] == w for t in d["tokens"][a:b]
        )
        if tok.truncation is None:
            unk = getattr(tok.model, "unk_piece", None)
            made = [t["piece"] for t in d["tokens"][a:b]]
            names = [unk if t["id"] == tok.piece2id.get(unk) else t["piece"] for t in d["tokens"][a:b]]
            assert reason["pieces"] in (made, names), (w, reason["pieces"], made)
    inside = [k for k, t in enumerate(d["tokens"]) if t["word"] is not None]
    assert inside == [k for w in d["words"] for k in range(*w["tokens"])]
    for t in d["tokens"]:
        bytes.fromhex(t["bytes"])
    return d


def replay(reason: dict):
    "The steps of a reason of merges, done over."
    symbols, places = list(reason["symbols"]), [tuple(p) for p in reason.get("places", [])]
    for m in reason["steps"]:
        k = m["at"]
        assert symbols[k : k + 2] == [m["left"], m["right"]]
        if places:
            assert (places[k][0], places[k + 1][1]) == (m["start"], m["end"])
            places[k : k + 2] = [(m["start"], m["end"])]
        symbols[k : k + 2] = [m["piece"]]
    return symbols


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "name, every",
    [
        *((n, 6) for n in QUICK),
        *(pytest.param(n, 1 if N >= 2000 else 4, marks=pytest.mark.slow) for n in REAL),
    ],
)
def test_golden_strings(shared_file, name, every, record_property):
    strings = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))[::every]
    options = {"encoding": name.split("/")[1].split(".")[0]} if name.startswith("tiktoken") else {}
    tok = Tokenizer.load(shared_file(f"vocab/{name}"), **options)
    assert type(tok.model).__name__ == REAL[name]
    kinds = set()
    for text in strings:
        d = sums(explain(tok, text), tok, text)
        kinds |= {r["kind"] for r in d["reasons"]}
        for r in d["reasons"]:
            if r["kind"] == "bpe" and tok.model.__class__ is BPE:
                assert replay(r) == r["pieces"]
            if r["kind"] == "wordpiece" and not r["note"]:
                assert (
                    [t["piece"] for t in r["trials"] if t["found"]]
                    == r["pieces"]
                    == [p for s in r["links"] for p in s["pops"]]
                )
        if len(text) < 60:
            assert explain(tok, text, add_special_tokens=False).ids == tok.encode(
                text, add_special_tokens=False
            )
    assert len(kinds) == 1
    record_property("texts", len(strings))


NORMALIZERS = [None, "nfkc", "strip", ["nfd", "strip_accents", "lowercase"], "prepend", "bert", "nmt"]


def trained(algorithm, normalizer=None, **options) -> Tokenizer:
    tok = Tokenizer.train(
        COURSE_CORPUS * 4,
        algorithm=algorithm,
        vocab_size=320 if algorithm == "bpe" else 90,
        special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        normalizer=normalizer,
        unk_piece=None if algorithm == "bpe" else "[UNK]",
        **options,
    )
    tok.add_tokens(
        [
            AddedToken("naïve", normalized=True, special=False),
            AddedToken("12", lstrip=True, rstrip=True),
            AddedToken(" cut ", normalized=True, lstrip=True, special=False),
            AddedToken("½", normalized=False, special=False),
        ]
    )
    tok.allowed_special = "all"
    return tok


def framed(tok: Tokenizer, form="[CLS] $A [SEP]", **parts) -> Tokenizer:
    tok.post_processor = TemplateProcessing(
        form, special_tokens=[(p, tok.piece2id[p]) for p in ("[CLS]", "[SEP]")]
    )
    for name, value in parts.items():
        setattr(tok, name, value)
    return tok


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=str)
@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"])
def test_generated_texts(algorithm, normalizer):
    rng = random.Random(f"{algorithm}{normalizer}")
    tok = trained(algorithm, normalizer)
    for k in range(25):
        text = random_text(rng, 12) + rng.choice(
            ["", " cut ", "  12  ", "½", "naïve", "NAÏVE", " \u0301", "Ｈﬁ"]
        )
        options = rng.choice([{}, {"allowed_special": ()}, {"allowed_special": {"[MASK]"}}])
        sums(explain(tok, text, **options), tok, text, **options)
        if k == 12:
            framed(tok)


def test_numbers_of_words_are_those_of_align():
    tok, rng = trained("bpe", "nfkc"), random.Random(3)
    for _ in range(100):
        text = random_text(rng, 10)
        e, placed = explain(tok, text), place_tokens_ref(encoder_of(tok), text)
        assert [(t["start"], t["end"]) for t in e.tokens] == placed.offsets
        ordinary = dict.fromkeys(k for k, t in zip(placed.splits, e.tokens) if t["word"] is not None)
        assert [t["word"] for t in e.tokens if t["word"] is not None] == [
            [*ordinary].index(k) for k in placed.splits if k in ordinary
        ]
        assert len(e.words) == len(ordinary)


@pytest.mark.parametrize("direction", ["left", "right"])
def test_cut_and_filled_up(direction):
    text = "This is the course, this is the cut of tokens"
    tok = framed(
        trained("wordpiece", "bert"),
        truncation=Truncation(9, direction=direction),
        padding=Padding(12, direction=direction, pad_id=1, pad_piece="[CLS]"),
    )
    e = explain(tok, text)
    sums(e, tok, text)
    assert len(e.ids) == 12 and [t["word"] for t in e.tokens].count(None) == 5
    whole = sums(
        explain(framed(trained("wordpiece", "bert")), text), framed(trained("wordpiece", "bert")), text
    )
    assert [w["pretoken"] for w in whole["words"]] == [w["pretoken"] for w in e.words]
    assert sum(a == b for a, b in (w["tokens"] for w in e.words)) >= 5  # cut off, and still told
    twice = explain(framed(trained("wordpiece", "bert"), "[CLS] $A $A"), "the course")
    assert [w["tokens"][0] for w in twice.words][0] == 1 and twice.ids == twice.ids[:1] + twice.ids[
        1 : 1 + len(twice.ids) // 2
    ] * 2


def test_late_tokens_and_what_is_dropped():
    tok = Tokenizer(
        WordLevel({"<unk>": 0, "ab": 1}),
        normalizer="strip",
        added_tokens=[(AddedToken("X", normalized=True), 2)],
    )
    e = explain(tok, "  ab  ")
    assert e.parts == [
        {
            "start": 0,
            "end": 6,
            "added": None,
            "normalized": "ab",
            "changes": [
                {"start": 0, "end": 2, "before": "  ", "after": ""},
                {"start": 4, "end": 6, "before": "  ", "after": ""},
            ],
        }
    ]
    e = explain(tok, "   ")
    assert (
        e.parts
        == [
            {
                "start": 0,
                "end": 3,
                "added": None,
                "normalized": "",
                "changes": [{"start": 0, "end": 3, "before": "   ", "after": ""}],
            }
        ]
        and e.tokens == [] == e.words
    )
    e = explain(tok, " XabX ")
    assert [(p["start"], p["end"], p["added"], p["normalized"]) for p in e.parts] == [
        (0, 2, "X", "X"),
        (2, 4, None, "ab"),
        (4, 6, "X", "X"),
    ]
    assert explain(tok, "").to_dict() == {
        "text": "",
        "model": "WordLevel",
        "byte_level": False,
        "parts": [],
        "words": [],
        "reasons": [],
        "tokens": [],
    }


def test_equal_pretokens_share_a_reason():
    tok = trained("bpe")
    e = explain(tok, "the the the course the")
    assert (
        [w["pretoken"] for w in e.words] == ["the", "Ġthe", "Ġthe", "Ġcourse", "Ġthe"]
        and [w["why"] for w in e.words] == [0, 1, 1, 2, 1]
        and len(e.reasons) == 3
    )
    assert e.words[1]["shown"] == "·the" and all(
        bytes.fromhex("".join(t["bytes"] for t in e.tokens[slice(*w["tokens"])])).decode()
        == e.text[w["start"] : w["end"]]
        for w in e.words
    )


def test_bytes_that_tokens_spell():
    tok = trained("bpe")
    e = explain(tok, "né🤗 \x00[MASK]½")
    assert bytes.fromhex("".join(t["bytes"] for t in e.tokens)).decode() == e.text
    assert [t["special"] for t in e.tokens if t["word"] is None] == [True, False]
    ids = {p: i for i, p in enumerate(["<unk>", "a", *(f"<0x{b:02X}>" for b in range(256))])}
    e = explain(Tokenizer(BPE(ids, [], unk_piece="<unk>", byte_fallback=True)), "aé")
    assert [t["bytes"] for t in e.tokens] == ["61", "c3", "a9"] and [
        (t["start"], t["end"]) for t in e.tokens
    ] == [(0, 1), (1, 2), (1, 2)]
    assert e.reasons[0].note == "'é': spelled by its bytes (byte_fallback)"


def test_dropout_is_left_out():
    tok = trained("bpe")
    tok.model = BPE(tok.model.piece2id, list(tok.model.merges), dropout=1.0)
    e = explain(tok, "the course")
    assert e.ids == tok.encode("the course", dropout=0.0) and len(e.ids) < len(tok.encode("the course"))


def test_subword_nmt():
    rng, corpus = random.Random(5), " ".join(COURSE_CORPUS)
    base = Tokenizer.train(COURSE_CORPUS * 3, algorithm="char_bpe", vocab_size=110, end_of_word_suffix="</w>")
    merges = [(a, b) for a, b in base.model.merges]
    for version in ((0, 2), (0, 1)):
        pieces = dict.fromkeys(
            [
                "<unk>",
                *(
                    s + m
                    for a, b in merges
                    for p in (a, b, a + b, *a, *b.removesuffix("</w>"))
                    for s in [p.removesuffix("</w>")]
                    if s
                    for m in ("", "@@")
                ),
            ]
        )
        for more in (
            {},
            {"glossaries": ("tok\\w*", "the")},
            {"vocabulary": rng.sample(sorted(pieces), len(pieces) // 2)},
        ):
            tok = Tokenizer(
                NmtBPE({p: i for i, p in enumerate(pieces)}, merges, version, **more), pre_tokenizer=WORDS
            )
            for _ in range(40):
                text = " ".join(
                    rng.choices([*corpus.split(), "tokéns", "Ω", "thethe", ""], k=rng.randrange(8))
                )
                d = sums(explain(tok, text), tok, text)
                for r in d["reasons"]:
                    left = [p.removesuffix("</w>") for p in replay(r)]
                    if not r["note"]:
                        assert [p for p in left if p] == [p.removesuffix("@@") for p in r["pieces"]]


def test_ranks_that_stand_for_rules():
    ids = {p: i for i, p in enumerate(["a", "b", "ab", "abab", "ba"])}
    model = BPE(ids, RankRules(ids))
    assert [(m.rank, m.piece, m.at) for m in explain_bpe(model, "babab").steps] == [
        (2, "ab", 1),
        (2, "ab", 2),
        (3, "abab", 1),
    ]
    assert model.table  # made: the rules are the same
    assert [(m.rank, m.piece, m.at) for m in explain_bpe(model, "babab").steps] == [
        (2, "ab", 1),
        (2, "ab", 2),
        (3, "abab", 1),
    ]
    invalid = BPE({**ids, "<unk>": 5}, RankRules(ids), unk_piece="<unk>")
    assert [(m.rank, m.piece) for m in explain_bpe(invalid, "abxab").steps] == [(2, "ab"), (2, "ab")]


@pytest.mark.parametrize(
    "kind", [SentencePieceBPE, SentencePieceUnigram, SentencePieceWords, SentencePieceChars]
)
@pytest.mark.parametrize(
    "more",
    [{"unk_piece": "<unk>"}, {"byte_fallback": True}, {"unk_piece": "<unk>", "user_defined": ("ab", "▁a")}],
)
def test_sentencepiece_models(kind, more):
    pieces = ["<unk>", *(f"<0x{b:02X}>" for b in range(256)), "a", "b", "▁", "ab", "▁a", "▁ab", "abab"]
    tok, rng = (
        Tokenizer(
            kind({p: i for i, p in enumerate(pieces)}, [-float(i % 7) for i in range(len(pieces))], **more)
        ),
        random.Random(9),
    )
    for _ in range(40):
        text = "".join(rng.choices("ab▁é", [4, 4, 2, 1], k=rng.randrange(14)))
        sums(explain(tok, text), tok, text)


@pytest.mark.parametrize(
    "kind", [SentencePieceBPE, SentencePieceUnigram, SentencePieceWords, SentencePieceChars]
)
@pytest.mark.parametrize("direction", [None, "left", "right"])
def test_words_of_sentencepiece(kind, direction):
    "A text that is one pre-token is explained word by word, whatever is cut off, put around it or found in it."
    pieces = ["<unk>", "[CLS]", "[SEP]", "[MASK]", *"ab▁", "ab", "▁a", "▁ab", "b▁a", "a▁a"]
    rng, several = random.Random(f"{kind}{direction}"), 0
    for k in range(60):
        spare = {"unused": ("ab",)} if k % 3 == 0 else {}
        model = kind(
            {p: i for i, p in enumerate(pieces[: rng.choice([10, 11, 12])])},
            [-float(i % 7) for i in range(12)],
            unk_piece="<unk>",
            **spare,
        )
        tok = Tokenizer(
            model,
            normalizer=["nfkc", "prepend", Replace(" ", "▁")],
            added_tokens=[(AddedToken("[MASK]", special=True), 3)],
            allowed_special="all",
        )
        tok.post_processor = (
            TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
            if k % 2
            else None
        )
        text = "".join(
            rng.choices(
                ["a", "b", " ", " ab", "ﬁ", "é", "a\u00a8", "[MASK]"],
                [4, 4, 2, 4, 1, 1, 1, 1],
                k=rng.randrange(16),
            )
        )
        whole = sums(explain(tok, text), tok, text)
        several += len(whole["words"]) > 3
        if direction is None:
            tok.post_processor = TemplateProcessing("$A [SEP] $A", special_tokens=[("[SEP]", 2)])
            twice = [t["word"] for t in explain(tok, text).tokens]
            assert twice == [
                *(every := [t["word"] for t in whole["tokens"] if t["id"] not in (1, 2)]),
                None,
                *every,
            ]
            continue
        tok.truncation = Truncation(rng.randrange(3, 12), direction=direction)
        d = sums(explain(tok, text), tok, text)
        assert [{**w, "tokens": 0} for w in d["words"]] == [{**w, "tokens": 0} for w in whole["words"]]
        kept = [t["word"] for t in d["tokens"] if t["word"] is not None]
        every = [t["word"] for t in whole["tokens"] if t["word"] is not None]
        if tok.post_processor is None:
            assert kept == (every[: len(kept)] if direction == "right" else every[len(every) - len(kept) :])
    assert several > 8


def test_equal_words_of_sentencepiece_share_a_reason():
    pieces = {p: i for i, p in enumerate(["<unk>", "▁", *"abc", "▁ab", "▁ab▁c"])}
    for kind in (SentencePieceBPE, SentencePieceUnigram):
        tok = Tokenizer(
            kind(pieces, [-float(i) for i in range(len(pieces))], unk_piece="<unk>"),
            normalizer=Replace(" ", "▁"),
        )
        e = explain(tok, " ab ab c ab")
        assert [w["pretoken"] for w in e.words] == [
            "▁ab▁ab▁c",
            "▁ab",
        ]  # a piece has b before ▁, so that no ▁ behind b begins a stretch
        e = explain(tok, " ab ca ca ab")
        assert [(w["start"], w["end"], w["pretoken"], w["why"]) for w in e.words] == [
            (0, 6, "▁ab▁ca", 0),
            (6, 9, "▁ca", 1),
            (9, 12, "▁ab", 2),
        ]
        e = explain(tok, " a a ba ba a")
        assert (
            [w["why"] for w in e.words] == [0, 0, 1, 1, 0]
            and len(e.reasons) == 2
            and e.words[4]["start"] == 10
        )


def test_models_of_other_kinds():
    class Letters(Model):
        piece2id = {"a": 0, "b": 1}

        def encode(self, pretoken):
            return [self.piece2id[c] for c in pretoken]

    reason = Letters().explain("abba")
    assert reason.pieces == ["a", "b", "b", "a"] and reason.note == "nothing more is known of a Letters"
    assert WordLevel({"<unk>": 0, "a": 1}).explain("b").to_dict() == {
        "kind": "wordlevel",
        "found": False,
        "pieces": ["<unk>"],
        "note": "the word is not in the vocabulary: <unk>",
    }
    assert WordLevel({"<unk>": 0, "a": 1}).explain("a").to_dict() == {
        "kind": "wordlevel",
        "found": True,
        "pieces": ["a"],
        "note": None,
    }


def test_changes_of_any_alignment():
    rng = random.Random(7)
    for _ in range(2000):
        text = "".join(rng.choices("abc", k=rng.randrange(8)))
        steps, here = [], 0
        skip = rng.randrange(len(text) + 1) if rng.random() < 0.3 else 0
        here = skip
        while here < len(text):
            n = rng.choice([0, 0, 0, 1, 2, -1])
            n = max(n, -(len(text) - here - 1))
            steps.append((rng.choice("abcX") if rng.random() < 0.5 or n > 0 else text[here], n))
            here += 1 - n if n <= 0 else 0
            if n > 0 and len(steps) > 20:
                break
        new = Aligned(text).transform(steps, skip=skip)
        found = changes(text, new, 0, len(text))
        assert put(text, 0, found) == new.text
        assert all(a["end"] < b["start"] for a, b in zip(found, found[1:]))


def test_long_and_invalid_texts_are_refused_with_a_way_out():
    tok = trained("bpe")
    with pytest.raises(
        ValueError,
        match=r"text must have at most limit=100,000 characters.*got 100,001; pass a part of the text, or limit=100001",
    ):
        explain(tok, "a" * 100_001)
    assert len(explain(tok, "a b " * 20, limit=80).words) and pytest.raises(
        ValueError, explain, tok, "a" * 81, limit=80
    )
    for bad, said in (("a\ud800", "U\\+D800|surrogate"), (b"\xff", "UTF-8"), (["a"], "text")):
        with pytest.raises(ValueError, match=said):
            explain(tok, bad)
    assert (
        explain(tok, b"caf\xc3\xa9").text == "café" and explain(tok, "a\ud800b", errors="ignore").text == "ab"
    )
    with pytest.raises(ValueError, match="has no piece"):
        explain(Tokenizer(BPE({"a": 0}, [])), "ab")
    with pytest.raises(ValueError, match="not an added token"):
        explain(tok, "a", allowed_special={"[NO]"})


def test_ten_thousand_characters_without_a_space():
    ids = {p: i for i, p in enumerate(["a", "b", "aa", "ab", "aaaa", "aaab"])}
    tok = Tokenizer(BPE(ids, RankRules(ids)))
    e = explain(tok, "aaab" * 2500)
    assert len(e.reasons[0].steps) == 7500 and e.ids == tok.encode("aaab" * 2500)
    piece = WordLevel({"<unk>": 0})
    assert explain(Tokenizer(piece), "x" * 10_000).pieces == ["<unk>"]


def test_what_a_browser_lacks_is_not_needed(tmp_path):
    "Files of four kinds are loaded and explained where NumPy, Numba and regex cannot be imported."
    text, ids = "naïve tokens, the cut 12 \u0301 [MASK] HUGGING", {}
    for algorithm in ("bpe", "wordpiece", "unigram", "wordlevel"):
        tok = trained(algorithm, "nfkc", **({"pre_tokenizer": "gpt2"} if algorithm == "bpe" else {}))
        tok.save(tmp_path / f"{algorithm}.json")
        ids[algorithm] = tok.encode(text)
    code = f"""
        import json, sys
        for name in ("numpy", "numba", "regex", "tqdm", "matplotlib"): sys.modules[name] = None
        from subword_nb import Tokenizer
        print(json.dumps({{n: Tokenizer.load({str(tmp_path)!r} + "/" + n + ".json").explain({text!r}).to_dict() for n in {sorted(ids)!r}}}))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {n: [t["id"] for t in d["tokens"]] for n, d in found.items()} == ids
    assert {r["kind"] for d in found.values() for r in d["reasons"]} == {
        "bpe",
        "wordpiece",
        "unigram",
        "wordlevel",
    }


def test_drawings_are_imported_when_somebody_looks(monkeypatch):
    e = explain(trained("bpe"), "the course")
    assert repr(e) == f"Explanation(10 characters, 2 words, {len(e.ids)} tokens)"

    class Page:
        explanation_text = staticmethod(lambda e: f"text of {e.text}")
        explanation_html = staticmethod(lambda e: f"<p>{e.text}</p>")

    monkeypatch.setitem(sys.modules, "subword_nb.insight.explain_draw", Page)
    assert str(e) == "text of the course" and e._repr_html_() == "<p>the course</p>"
    code = (
        "import sys; from subword_nb.insight.explain import explain; print([m for m in sys.modules if m in "
        "('numpy', 'numba', 'regex') or m.endswith(('.explain_draw', '.unigram.explain', "
        "'.wordpiece.explain'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
