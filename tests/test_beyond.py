"""Tokens that lie beyond their text, and ids beyond the vocabulary: what is said about them is what Hugging Face's library says."""

import json
import pickle
import random

import pytest
from peers import hf_bpe, hf_file

from subword_nb import Tokenizer
from subword_nb.pipeline.tokens import tokens

BYTES = {f"<0x{b:02X}>": b for b in range(256)}
TEXTS = ["", "a", "ab", "é", "éa", "aé b", " a  é ", "añ🚀 b 😀é c", "abab é", "a\tb"]


def model(**options):
    return hf_bpe(BYTES, [], end_of_word_suffix="</w>", byte_fallback=True) | options


def content(m, **parts):
    return hf_file(m) | {"pre_tokenizer": {"type": "WhitespaceSplit"}} | parts


def loaded(tmp_path, d):
    (tmp_path / "tokenizer.json").write_text(json.dumps(d), encoding="utf-8")
    return Tokenizer.load(tmp_path / "tokenizer.json")


MODELS = {
    "suffix": model(),
    "prefix": model(end_of_word_suffix=None, continuing_subword_prefix="##"),
    "both": model(continuing_subword_prefix="##"),
    "unknown": model(vocab=BYTES | {"?": 256}, unk_token="?"),
    "some bytes, unknown": model(
        vocab={k: v for k, v in BYTES.items() if v < 128} | {"?": 128}, unk_token="?"
    ),
    "fused": model(
        vocab={k: v for k, v in BYTES.items() if v < 128} | {"?": 128}, unk_token="?", fuse_unk=True
    ),
    "some bytes": model(vocab={k: v for k, v in BYTES.items() if v < 200}),
    "pieces": model(vocab=BYTES | {"a": 256, "b</w>": 257, "ab</w>": 258}, merges=["a b</w>"]),
    "merged bytes": model(
        vocab=BYTES | {"<0x61><0x3C>": 256, "<0x2F><0x77>": 257}, merges=["<0x61> <0x3C>", "<0x2F> <0x77>"]
    ),
    "wide suffix": model(end_of_word_suffix="é🚀"),
}
PARTS = {
    "words": {},
    "lower": {"normalizer": {"type": "Lowercase"}},
    "NFD": {"normalizer": {"type": "NFD"}},
    "whole": {"pre_tokenizer": None},
    "marks": {
        "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": True}
    },
}


def test_a_suffix_spelled_as_bytes_has_places(tmp_path):
    tok = loaded(tmp_path, content(model()))
    assert tok.encode("a") == [97, 60, 47, 119, 62] == tok.align("a").ids
    assert tok.align("a").offsets == [(k, k + 1) for k in range(5)] and tok.align("a").word_ids == [0] * 5
    assert tok.align("aé b").offsets == [
        (0, 1),
        (1, 2),
        (1, 2),
        (2, 3),
        (3, 4),
        (5, 6),
        (6, 7),
        (3, 4),
        (1, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    ]
    assert [t.id for t in tokens(tok.model, "a")] == tok.encode("a")


@pytest.mark.parametrize("name", MODELS)
def test_every_call_gives_its_ids(name, tmp_path):
    tok = loaded(tmp_path, content(MODELS[name]))
    for text in [*TEXTS, "aé b " * 300]:
        ids = tok.encode(text)
        assert (
            tok.align(text).ids
            == ids
            == tok(text)["input_ids"].reshape(-1).tolist()
            == tok.align_batch([text])[0].ids
            == tok.encode_array(text).tolist()
        )
        assert len(tok.tokenize(text)) == len(ids) == len(tok.align(text).offsets_bytes) and tok.align(
            [text, text], is_pretokenized=True
        ).ids == [*ids, *ids]
    for text in TEXTS:
        for shown in (
            tok.stages(text),
            tok.explain(text),
            tok.compare(tok, text),
            tok.draw(text),
            tok.align(text),
        ):
            assert isinstance(str(shown) + shown._repr_html_(), str)
    assert pickle.loads(pickle.dumps(tok)).align("aé b") == tok.align("aé b")


@pytest.mark.peers
@pytest.mark.parametrize(
    "name", sorted({*MODELS} - {"unknown", "some bytes, unknown", "fused"})
)  # with an unknown piece, places stay within the word here
def test_places_are_those_of_the_other_library(name, hf, tmp_path):
    rng = random.Random(name)
    texts = [*TEXTS, *("".join(rng.choices("abé🚀 <AÉ", k=rng.randrange(12))) for _ in range(100))]
    for part, more in PARTS.items():
        peer, tok = (
            hf.Tokenizer.from_str(json.dumps(content(MODELS[name], **more))),
            loaded(tmp_path, content(MODELS[name], **more)),
        )
        for text in texts:
            theirs, ours = peer.encode(text), tok.align(text)
            assert (ours.ids, ours.pieces, ours.offsets, ours.word_ids) == (
                theirs.ids,
                theirs.tokens,
                theirs.offsets,
                theirs.word_ids,
            ), (part, text)


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "[X]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[Y]", "type_id": 0}},
    ],
    "pair": [
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[Z]", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 1}},
    ],
    "special_tokens": {
        "[X]": {"id": "[X]", "ids": [999], "tokens": ["<x>"]},
        "[Y]": {"id": "[Y]", "ids": [7, 1_000_000], "tokens": ["seven", "<y>"]},
        "[Z]": {"id": "[Z]", "ids": [5_000], "tokens": ["<z>"]},
    },
}
PROCESSORS = {
    "template": TEMPLATE,
    "bert": {"type": "BertProcessing", "sep": ["[SEP]", 900], "cls": ["[CLS]", 901]},
    "roberta": {
        "type": "RobertaProcessing",
        "sep": ["</s>", 900],
        "cls": ["<s>", 901],
        "trim_offsets": True,
        "add_prefix_space": False,
    },
    "both": {
        "type": "Sequence",
        "processors": [
            {"type": "BertProcessing", "sep": ["[SEP]", 900], "cls": ["[CLS]", 901]},
            {
                "type": "RobertaProcessing",
                "sep": ["</s>", 902],
                "cls": ["<s>", 903],
                "trim_offsets": True,
                "add_prefix_space": False,
            },
        ],
    },
}
WORDLEVEL = {
    "type": "WordLevel",
    "vocab": {"a": 0, "b": 1, "?": 3, "c": 12},
    "unk_token": "?",
}  # ids without pieces between them
BYTE_LEVEL = {
    "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_ids_beyond_the_vocabulary_have_names(name, tmp_path):
    for more in ({}, BYTE_LEVEL):
        tok = loaded(tmp_path, content(WORDLEVEL, post_processor=PROCESSORS[name], **more))
        named = tok.align("a b c").pieces
        assert (
            tok.tokenize("a b c") == named
            and len(tok.encode("a b c")) == len(named)
            and tok.tokenize("a", add_special_tokens=False) == ["a"]
        )
        for piece in named:
            assert piece.strip("<>") in str(tok.draw("a b c"))
        assert str(tok.stages("a b")) and str(tok.explain("a b")) and str(tok.compare(tok, "a b"))
        assert tok.tokenize("a", "b") == tok.align("a", "b").pieces


@pytest.mark.peers
@pytest.mark.parametrize("name", PROCESSORS)
def test_names_are_those_of_the_other_library(name, hf, tmp_path):
    d = content(WORDLEVEL, post_processor=PROCESSORS[name])
    peer, tok = hf.Tokenizer.from_str(json.dumps(d)), loaded(tmp_path, d)
    assert (
        tok.tokenize("a b d") == peer.encode("a b d").tokens
        and tok.encode("a b d") == peer.encode("a b d").ids
        and tok.tokenize("a", "b") == peer.encode("a", "b").tokens
    )
