"""Every stage that can make more than it is given.

What stays below the limit is made, and what goes beyond is refused before memory is taken for it.
"""

import json
import time

import pytest
from peers import hf_bpe, hf_file

from subword_nb import Tokenizer
from subword_nb.pipeline.encoding import Encoding, merge_encodings
from subword_nb.core.limits import SMALL, WORD_SMALL, Limits, LimitExceeded, check_growth, limited
from subword_nb.pipeline.processors import BertProcessing, Sequence, template

MODEL = hf_bpe({"a": 0, "b": 1, "aa": 2}, ["a a"], unk_token="b")
FALLBACK = {f"<0x{b:02X}>": b + 3 for b in range(256)}
SPELL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPACED = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
A, B = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
SPECIAL = {"SpecialToken": {"id": "s", "type_id": 0}}
WORDS = "a b é a " * 40
SHORT = "a b é"  # where a longer one would be slow


def described(**parts):
    return hf_file(MODEL) | parts


def loaded(tmp_path, **parts):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(described(**parts)), encoding="utf-8")
    return Tokenizer.load(path)


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def steps(name, *inner):
    return {"type": "Sequence", name: list(inner)}


def filled(n_ids, *single):
    "A template whose special token has so many ids."
    return {
        "type": "TemplateProcessing",
        "single": list(single),
        "pair": [*single, B],
        "special_tokens": {"s": {"id": "s", "ids": [0] * n_ids, "tokens": ["a"] * n_ids}},
    }


def added(content, id):
    return {
        "id": id,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": True,
        "special": False,
    }


# name → the parts of a file that makes a text of 320 characters grow
GROWING = {
    "normalizer, long content": dict(normalizer=replace({"String": "a"}, "b" * 1_000_000)),
    "normalizer, word by word": dict(normalizer=replace({"String": "a"}, "b" * 60_000)),
    "normalizer, pattern": dict(normalizer=replace({"Regex": "a"}, "b" * 60_000)),
    "normalizer, prefix": dict(normalizer={"type": "Prepend", "prepend": "b" * 1_000_000}),
    "normalizers": dict(normalizer=steps("normalizers", *[replace({"String": "a"}, "aa")] * 60)),
    "normalizers, prefixes": dict(
        normalizer=steps("normalizers", *[{"type": "Prepend", "prepend": "b" * 60_000}] * 60)
    ),
    "normalizers, bytes": dict(normalizer=steps("normalizers", *[{"type": "ByteLevel"}] * 60)),
    "added tokens": dict(
        normalizer=replace({"String": "x"}, "b" * 60_000),
        added_tokens=[added(f"x{chr(200 + i)}", 3 + i) for i in range(500)],
    ),
    "pre-tokenizers, bytes": dict(pre_tokenizer=steps("pretokenizers", *[SPELL] * 60)),
    "pre-tokenizers, words": dict(pre_tokenizer=steps("pretokenizers", *[SPACED] * 60)),
    "pre-tokenizers, nested": dict(
        pre_tokenizer=steps(
            "pretokenizers",
            SPELL,
            steps("pretokenizers", *[SPELL] * 30),
            steps("pretokenizers", *[SPELL] * 30),
        )
    ),
    "template, special ids": dict(post_processor=filled(1_000, *[SPECIAL] * 1_000, A)),
    "template, text": dict(post_processor=filled(1, *[A] * 3_000)),
    "post-processors": dict(
        post_processor=steps(
            "processors",
            filled(30, *[SPECIAL] * 2_000, A),
            *[{"type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]}] * 10,
        )
    ),
    "overflow": dict(
        post_processor=filled(1, A, A, A, A),
        truncation={"max_length": 8, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_text_that_grows_is_refused(name, tmp_path):
    "By every call, before it is made: a process of a few hundred megabytes would not survive it."
    start, tok = time.process_time(), loaded(tmp_path, **GROWING[name])
    calls = {
        "encode": tok.encode,
        "align": tok.align,
        "call": tok,
        "tokenize": tok.tokenize,
        "stages": tok.stages,
        "batch": lambda text: tok.encode_batch([text] * 3),
        "array": tok.encode_array,
        "align_batch": lambda text: tok.align_batch([text, text]),
    }
    wanted = list(calls)
    if name == "overflow":  # neither ids alone nor a call return what overflows
        wanted = ["align", "align_batch"]
    elif name.startswith(("pre-", "post-")):
        wanted = ["encode", "align", "array"]
    for call in wanted:
        with pytest.raises(LimitExceeded, match="limit growth is 256"):
            calls[call](SHORT if name.startswith(("pre-", "post-")) else WORDS)
    assert time.process_time() - start < 60


@pytest.mark.parametrize("name", ["template, special ids", "template, text", "post-processors", "overflow"])
def test_pairs_that_grow_are_refused(name, tmp_path):
    tok = loaded(tmp_path, **GROWING[name])
    with pytest.raises(LimitExceeded, match="limit growth is 256"):
        tok.align(*[SHORT if name.startswith("post-") else WORDS] * 2)


@pytest.mark.parametrize(
    "decoder",
    [
        replace({"String": "a"}, "b" * 1_000_000),
        replace({"String": "a"}, "b" * 60_000),
        replace({"Regex": "a"}, "b" * 60_000),
        steps("decoders", *[replace({"String": "a"}, "aa")] * 60),
        steps("decoders", *[{"type": "BPEDecoder", "suffix": ""}] * 60),
        steps("decoders", {"type": "Fuse"}, replace({"String": "a"}, "b" * 60_000)),
    ],
    ids=["long", "each piece", "pattern", "steps", "suffixes", "fused"],
)
def test_texts_that_grow_while_they_are_decoded_are_refused(decoder, tmp_path):
    tok, ids = loaded(tmp_path, decoder=decoder), [2] * 1_000
    for call in (
        tok.decode,
        tok.decode_bytes,
        lambda ids: tok.decode_batch([ids]),
        lambda ids: [stream := tok.stream(), stream.step(ids), stream.finish()],
    ):
        start = time.process_time()
        with pytest.raises(LimitExceeded, match="limit growth is 256"):
            call(ids)
        assert time.process_time() - start < 20


def test_suffixes_spelled_as_bytes_are_refused(tmp_path):
    "A model that spells what it does not know as bytes does so with prefix and suffix."
    model = MODEL | {"byte_fallback": True, "unk_token": None, "vocab": MODEL["vocab"] | FALLBACK}
    assert len(loaded(tmp_path, model=model | {"end_of_word_suffix": "s" * 100}).encode("é")) == 102
    for affix in ("end_of_word_suffix", "continuing_subword_prefix"):
        with pytest.raises(
            ValueError,
            match="spells an unknown character, its prefix and its suffix with 904 tokens, and the limit growth is 256",
        ):
            loaded(tmp_path, model=model | {affix: "é" * 450})
    assert Tokenizer.load(tmp_path / "tokenizer.json", limits={"growth": 1_000}).encode("é") == [
        FALLBACK[f"<0x{b:02X}>"] for b in "é".encode()
    ]


def test_what_stays_below_the_limit_is_made(tmp_path):
    "As Hugging Face's library makes it."
    tok = loaded(tmp_path, post_processor=filled(1_000, *[SPECIAL] * 60, A))
    assert len(tok.encode("aa")) == 60_001 == len(tok.align("aa").ids) and tok.encode(
        "aa", add_special_tokens=False
    ) == [2]
    tok = loaded(tmp_path, post_processor=filled(1, *[A] * 100))
    assert len(tok.encode("aab" * 400)) == 100 * 800 == len(tok.align("aab" * 400).ids)
    tok = loaded(tmp_path, normalizer=replace({"String": "a"}, "b" * 200))
    assert (
        len(tok.encode("a " * 400))
        == 400 * 201
        == len(tok.align("a " * 400).ids)
        == len(tok.encode_array("a " * 400))
    )
    tok = loaded(tmp_path, pre_tokenizer=steps("pretokenizers", *[SPELL] * 5))
    assert tok.encode("é") == tok.align("é").ids and len(tok.encode("é")) == 2**5
    with limited(growth=10**9):
        assert (
            len(loaded(tmp_path, post_processor=filled(1_000, *[SPECIAL] * 100, A)).encode("aa")) == 100_001
        )


def test_what_overflows_is_joined_as_far_as_the_limit_goes():
    def text(n, size):
        return Encoding(
            [0] * size,
            ["a"] * size,
            [(0, 1)] * size,
            overflowing=[Encoding([0] * size, ["a"] * size, [(0, 1)] * size) for _ in range(n)],
        )

    assert len(merge_encodings([text(3, 2), text(4, 3)]).overflowing) == 4 * 5 - 1
    with pytest.raises(LimitExceeded, match=r"joining what overflows makes 12,?000.* tokens of "):
        merge_encodings([text(1_999, 1), text(1_999, 2)])
    with pytest.raises(LimitExceeded):
        merge_encodings([text(50, 1)] * 5)
    with pytest.raises(LimitExceeded, match="TemplateProcessing makes 66,000"):
        template("[X]" + " $A" * 65_999, special_tokens=[("[X]", 0)]).process_ids([0])
    many = Sequence(
        [
            template(
                "[X] " * 1_000 + "$A", special_tokens=[{"id": "[X]", "ids": [0] * 63, "tokens": ["x"] * 63}]
            ),
            *[BertProcessing(("b", 1), ("a", 0))] * 10,
        ]
    )
    with pytest.raises(LimitExceeded, match="a Sequence of post-processors makes"):
        many.process_ids([0])


def test_the_rule():
    "A first 65,536 are free for a text, 256 for a word; then growth times what went in."
    for free, n_in in ((SMALL, 1), (SMALL, 10), (WORD_SMALL, 1)):
        most = free + Limits().growth * n_in
        check_growth(n_in, most, "x", free=free)
        with pytest.raises(LimitExceeded, match="x makes .* pieces of .*limit growth is 256"):
            check_growth(n_in, most + 1, "x", unit="pieces", free=free)
