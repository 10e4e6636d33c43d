"""GGUF: files made here from real vocabularies, read as the libraries read those vocabularies; and what damaged files lead to."""

import contextlib
import io
import json
import os
import random
import struct
import tracemalloc
from array import array
from pathlib import Path

import pytest
from seeds import TEXTS
from costs import cpu_seconds

from subword_nb import Tokenizer
from subword_nb.formats import gguf
from subword_nb.formats.gguf import (
    PRE_TOKENIZERS,
    explain_gguf,
    gguf_pre_tokenizer,
    looks_like_gguf,
    parts_from_gguf,
    read_gguf,
    read_gguf_metadata,
)
from subword_nb.core.unicode import to_visible

CODES = {
    "u8": (0, "B"),
    "i8": (1, "b"),
    "u16": (2, "H"),
    "i16": (3, "h"),
    "u32": (4, "I"),
    "i32": (5, "i"),
    "f32": (6, "f"),
    "bool": (7, "?"),
    "u64": (10, "Q"),
    "i64": (11, "q"),
    "f64": (12, "d"),
}


class As:
    "A value with the type it is written with; `kind` of an array is that of its elements."

    def __init__(self, kind, value):
        self.kind, self.value = kind, value


def typed(v):
    "What a Python value is written as if nothing is said."
    if isinstance(v, As):
        return v
    if isinstance(v, list):
        return As(typed(v[0]).kind if v else "i32", v)
    return As({bool: "bool", int: "u32", float: "f32", str: "str"}[type(v)], v)


def packed(kind, v, o):
    "A scalar."
    if kind == "str":
        data = v if isinstance(v, bytes) else v.encode("utf-8")
        return struct.pack(f"{o}Q", len(data)) + data
    return struct.pack(o + CODES[kind][1], v)


def number(kind):
    "A type's number."
    return 8 if kind == "str" else CODES[kind][0]


def pair(key, v, o):
    "A key, its type and its value."
    v = typed(v)
    head = packed("str", key, o)
    if not isinstance(v.value, list):
        return head + struct.pack(f"{o}I", number(v.kind)) + packed(v.kind, v.value, o)
    if v.kind == "nested":
        return (
            head
            + struct.pack(f"{o}IIQ", 9, 9, len(v.value))
            + b"".join(struct.pack(f"{o}IQ", 5, len(x)) + struct.pack(f"{o}{len(x)}i", *x) for x in v.value)
        )
    if v.kind == "str":
        body = b"".join(packed("str", x, o) for x in v.value)
    else:
        body = struct.pack(f"{o}{len(v.value)}{CODES[v.kind][1]}", *v.value)
    return head + struct.pack(f"{o}IIQ", 9, number(v.kind), len(v.value)) + body


def gguf_bytes(pairs, version=3, o="<"):
    "A GGUF file without tensors."
    return (
        b"GGUF"
        + struct.pack(f"{o}IQQ", version, 0, len(pairs))
        + b"".join(pair(k, v, o) for k, v in pairs.items())
    )


def ggml(**pairs):
    "Keys of a tokenizer; double underscores stand for dots."
    return {"general.architecture": "test"} | {
        f"tokenizer.ggml.{k.replace('__', '.')}": v for k, v in pairs.items()
    }


@pytest.fixture
def write(tmp_path):
    "Write bytes or pairs to a file; its path."

    def to_file(content, name="model.gguf", **how):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else gguf_bytes(content, **how))
        return path

    return to_file


def toy_bpe(**more):
    "A small byte-level vocabulary."
    alphabet = sorted({to_visible(bytes([b])) for b in range(256)})
    return (
        ggml(
            model="gpt2",
            pre="gpt-2",
            tokens=[*alphabet, "ug", "hug", "<|end|>", "ADDED one"],
            token_type=As("i32", [1] * 258 + [3, 4]),
            merges=["u g", "h ug"],
            eos_token_id=258,
        )
        | more
    )


def toy_llama(**more):
    "A small SentencePiece BPE."
    tokens = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{b:02X}>" for b in range(256)),
        "▁",
        "h",
        "u",
        "g",
        "ug",
        "hug",
        "▁hug",
        "<x y>",
    ]
    types = [2, 3, 3] + [6] * 256 + [1] * 7 + [4]
    scores = [0.0] * 259 + [-10.0, -11.0, -12.0, -13.0, -1.0, -2.0, -3.0, 0.0]
    return (
        ggml(
            model="llama",
            tokens=tokens,
            token_type=As("i32", types),
            scores=scores,
            bos_token_id=1,
            eos_token_id=2,
        )
        | more
    )


def toy_t5(**more):
    "A small Unigram."
    return (
        ggml(
            model="t5",
            tokens=["<pad>", "</s>", "<unk>", "▁", "h", "u", "g", "▁hug"],
            token_type=As("i32", [3, 3, 2, 1, 1, 1, 1, 1]),
            scores=[0.0, 0.0, 0.0, -2.0, -4.0, -4.0, -4.0, -3.0],
            add_space_prefix=True,
            remove_extra_whitespaces=True,
            eos_token_id=1,
            unknown_token_id=2,
            padding_token_id=0,
        )
        | more
    )


def toy_bert(**more):
    "A small WordPiece."
    return (
        ggml(
            model="bert",
            tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁hug", "s", "▁[", "▁]"],
            token_type=As("i32", [3, 3, 3, 3, 3, 1, 1, 1, 1]),
            bos_token_id=2,
            eos_token_id=3,
            unknown_token_id=1,
            seperator_token_id=3,
            padding_token_id=0,
        )
        | more
    )


TOYS = {"gpt2": toy_bpe, "llama": toy_llama, "t5": toy_t5, "bert": toy_bert}


def opened(path, **options):
    "The tokenizer in a file."
    return Tokenizer(**read_gguf(path, **options)._replace(source=None, allowed_special=())._asdict())


# --- the format


@pytest.mark.parametrize("o, version", [("<", 2), ("<", 3), (">", 3), (">", 2)])
def test_every_type_in_both_orders_of_bytes(write, o, version):
    pairs = {
        k: As(k, v)
        for k, v in {
            "u8": 255,
            "i8": -128,
            "u16": 65535,
            "i16": -2,
            "u32": 2**32 - 1,
            "i32": -3,
            "f32": 0.5,
            "bool": True,
            "u64": 2**64 - 1,
            "i64": -5,
            "f64": 0.1,
        }.items()
    }
    pairs |= {
        "text": "née\0 ▁",
        "empty": "",
        "none": [],
        "words": ["a", "", "ß"],
        "yes": [True, False],
        "nested": As("nested", [[1, 2], [], [-3]]),
    }
    pairs |= {f"{k}s": As(k, [pairs[k].value, pairs[k].value]) for k in CODES if k != "bool"}
    found = read_gguf_metadata(write(pairs, version=version, o=o))
    assert list(found) == list(pairs)
    for key, v in pairs.items():
        value, expected = found[key], getattr(v, "value", v)
        if key == "nested":
            assert [list(x) for x in value] == expected
        elif isinstance(value, array):
            assert value.tolist() == expected, key
        else:
            assert value == expected and type(value) is type(expected), key
    assert sum(len(d) for _, d, _ in explain_gguf(gguf_bytes(pairs, version, o))) == len(
        gguf_bytes(pairs, version, o)
    )


@pytest.mark.parametrize("o", "<>")
@pytest.mark.parametrize("kind", TOYS)
def test_both_orders_of_bytes_give_one_tokenizer(write, kind, o):
    assert read_gguf(write(TOYS[kind](), o=o)) == read_gguf(write(TOYS[kind](), name="other.gguf", version=2))


def test_what_is_not_asked_for_is_not_read(write, monkeypatch):
    pairs = {
        "big.numbers": As("u8", [7] * 300_000),
        "big.text": "x" * 300_000,
        "big.words": ["word"] * 5000,
        "big.nested": As("nested", [[1] * 1000] * 50),
        "tokenizer.ggml.model": "none",
    }
    path = write(gguf_bytes(pairs) + bytes(200_000))
    tracemalloc.start()
    found = read_gguf_metadata(path, only="tokenizer.ggml.")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == {"tokenizer.ggml.model": "none"}
    assert peak < 250_000, peak


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "must be a GGUF file, which starts with b'GGUF', got b''"),
        (b"GGU", "must be a GGUF file, which starts with b'GGUF', got b'GGU'"),
        (b"PK\3\4" + bytes(40), "must be a GGUF file, which starts with b'GGUF', got b'PK\\x03\\x04'"),
        (b"GGUF", "byte 4: the version must fit into the 0 bytes that are left, got 4"),
        (b"GGUF" + struct.pack("<III", 1, 0, 1), "byte 4: the version of the format must be 2 or 3, got 1"),
        (b"GGUF" + struct.pack(">III", 1, 0, 1), "byte 4: the version of the format must be 2 or 3, got 1"),
        (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "byte 4: the version of the format must be 2 or 3, got 4"),
        (b"GGUF" + struct.pack("<IQQ", 0, 0, 0), "byte 4: the version of the format must be 2 or 3, got 0"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60),
            "byte 16: the number of pairs must be at most",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1000),
            "metadata of 1,000 pairs must fit into the 0 bytes that are left, got 13,000",
        ),
        (gguf_bytes({"a": "b"})[:-1], "a must fit into the 0 bytes that are left, got 1"),
        (
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63) + bytes(20),
            "byte 32: key 0 must fit into the 20 bytes that are left, got 9,223,372,036,854,775,808",
        ),
        (
            gguf_bytes({"a": 1})[:-8] + struct.pack("<II", 13, 0),
            "byte 33: the type of a must be from 0 to 12, got 13",
        ),
        (
            gguf_bytes({"a": As("u8", 2)}).replace(b"a\0\0\0\0", b"a\7\0\0\0"),
            "a must contain truth values, 0 or 1, got 0x02",
        ),
        (
            gguf_bytes({"a": As("u8", [2, 1])}).replace(b"a\x09\0\0\0\0", b"a\x09\0\0\0\7"),
            "a must contain truth values, 0 or 1, got 0x02",
        ),
        (gguf_bytes({"a": As("str", b"x\xff")}), "byte 46: a must be UTF-8, got the byte 0xff"),
        (gguf_bytes({"a": As("str", [b"x", b"\xe2\x96"])}), "byte 66: a[1] must be UTF-8, got the byte 0xe2"),
        (gguf_bytes({"a": 1, "b": 2}).replace(b"b", b"a"), "byte 41: keys must be different, got 'a' twice"),
        (
            gguf_bytes({"a": As("f64", [1.0])})[:-16] + struct.pack("<Qd", 2**61, 1.0),
            "a, with 2,305,843,009,213,693,952 elements, must fit into the",
        ),
        (
            gguf_bytes({"a": As("u8", [1])}).replace(b"a\x09\0\0\0\0", b"a\x09\0\0\0\x63"),
            "the type of the elements of a must be from 0 to 12, got 99",
        ),
        (
            b"GGUF"
            + struct.pack("<IQQQ", 3, 0, 1, 1)
            + b"a"
            + struct.pack("<I", 9)
            + struct.pack("<IQ", 9, 1) * 10_000,
            "must be nested at most 8 deep, got more",
        ),
        (gguf_bytes({"k" * 65536: 1}), "key 0 must have at most 65,535 bytes, got more"),
    ],
)
def test_damaged_files(write, content, message):
    path = write(content)
    with pytest.raises(ValueError) as e:
        read_gguf_metadata(path)
    assert str(e.value).startswith(str(path)) and message in str(e.value), str(e.value)


def test_long_things_in_a_sparse_file_are_refused_at_once(tmp_path, monkeypatch):
    "After a few bytes have been read."
    read = []

    class Counted(io.FileIO):
        def read(self, n=-1):
            read.append(n)
            return super().read(n)

    monkeypatch.setattr(gguf, "open", Counted, raising=False)
    path = tmp_path / "sparse.gguf"
    for body in (
        struct.pack("<IQ", 8, 2**33),
        struct.pack("<IIQ", 9, 8, 2**30),
        struct.pack("<IIQ", 9, 6, 2**30),
        struct.pack("<IIQ", 9, 9, 2**27),
    ):
        with open(path, "wb") as f:
            f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a" + body)
            f.truncate(2**34)
        read.clear()
        with pytest.raises(ValueError, match="the file is damaged"):
            read_gguf_metadata(path)
        assert 0 < len(read) < 20 and all(0 <= n <= 8 for n in read), read


def test_missing_file_and_folder(tmp_path):
    for handle in (0, True):  # `open` would take it, and close it
        with pytest.raises(TypeError, match="PathLike"):
            read_gguf(handle)
    with pytest.raises(FileNotFoundError):
        read_gguf(tmp_path / "nothing.gguf")
    with pytest.raises(OSError):
        read_gguf(tmp_path)


def test_looks_like():
    assert [looks_like_gguf(d) for d in (b"GGUF\3\0\0\0", b"GGUF", b"gguf", b"GGML", b"", b"\0GGUF")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


# --- the pairs


def test_toys(write):
    bpe, llama, t5, bert = (opened(write(make(), name=f"{kind}.gguf")) for kind, make in TOYS.items())
    assert bpe.encode("hug ug") == [257, bpe.piece2id["Ġ"], 256]
    assert llama.encode("hug", add_special_tokens=False) == [265] and llama.encode("hug") == [1, 265]
    assert llama.encode("é", add_special_tokens=False) == [259, 3 + 0xC3, 3 + 0xA9]
    assert t5.encode(" hug  hug ") == [7, 7, 1] and t5.encode("x", add_special_tokens=False) == [3, 2]
    assert bert.encode("Hugs [x]") == [2, 5, 6, 7, 1, 8, 3]
    assert bert.piece2id["##s"] == 6
    assert [t.decode(t.encode("hug", add_special_tokens=False)) for t in (bpe, llama, t5, bert)] == [
        "hug"
    ] * 4


def test_special_pieces(write):
    tok = opened(write(toy_bpe()))
    assert [(t.content, t.special, i) for t, i in tok.added_tokens] == [
        ("<|end|>", True, 258),
        ("ADDED one", False, 259),
    ]
    assert tok.encode("ADDED one", allowed_special=()) == [259] and 258 not in tok.encode("hug<|end|>")
    assert tok.encode("hug<|end|>", allowed_special="all") == [257, 258]
    assert tok.decode([257, 258, 259], skip_special_tokens=True) == "hugADDED one"
    assert opened(write(toy_llama())).encode("<x y>hug", add_special_tokens=False) == [259, 266, 264], (
        "a user-defined piece with a space"
    )


def test_bos_and_eos(write):
    for bos, eos, expected in [
        (True, True, [258, 257, 258]),
        (True, False, [258, 257]),
        (False, False, [257]),
        (False, True, [257, 258]),
    ]:
        tok = opened(
            write(
                toy_bpe(
                    **{
                        "tokenizer.ggml.add_bos_token": bos,
                        "tokenizer.ggml.add_eos_token": eos,
                        "tokenizer.ggml.bos_token_id": 258,
                    }
                )
            )
        )
        assert tok.encode("hug") == expected and tok.encode("hug", add_special_tokens=False) == [257]
    assert opened(
        write(toy_bpe(**{"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.bos_token_id": 258}))
    ).encode("hug") == [258, 257], "Llama 3 begins texts without being asked"
    assert opened(write(toy_llama(**{"tokenizer.ggml.add_bos_token": False}))).encode("hug") == [265]


@pytest.mark.parametrize(
    "kind, change, message",
    [
        (
            "gpt2",
            dict(model="none"),
            "tokenizer.ggml.model must be llama, t5, gpt2 or bert, got 'none': the file says that it has no tokenizer",
        ),
        (
            "gpt2",
            dict(model="rwkv"),
            "tokenizer.ggml.model must be llama, t5, gpt2 or bert, got 'rwkv': its pieces",
        ),
        (
            "gpt2",
            dict(model="plamo2"),
            "tokenizer.ggml.model must be llama, t5, gpt2 or bert, got 'plamo2': its tables",
        ),
        (
            "gpt2",
            dict(model="new"),
            "tokenizer.ggml.model must be llama, t5, gpt2 or bert, got 'new'; open the model's",
        ),
        (
            "gpt2",
            dict(model=None),
            "the file must have tokenizer.ggml.model, got none; it contains weights without a vocabulary",
        ),
        ("gpt2", dict(model=5), "tokenizer.ggml.model must be a string, got '5'"),
        ("gpt2", dict(tokens=None), "the file must have tokenizer.ggml.tokens, got none"),
        ("gpt2", dict(tokens=As("i32", [1, 2])), "tokenizer.ggml.tokens[0] must be a string, got '1'"),
        ("gpt2", dict(tokens="a b"), "tokenizer.ggml.tokens must be an array, got 'a b'"),
        (
            "gpt2",
            dict(token_type=As("i32", [1] * 10)),
            "tokenizer.ggml.token_type must have an element for each of the 260 tokens, got 10",
        ),
        (
            "gpt2",
            dict(token_type=As("i32", [1] * 7 + [9] + [1] * 260)),
            "tokenizer.ggml.token_type[7] must be from 1 to 6, got 9",
        ),
        (
            "gpt2",
            dict(pre="unheard-of"),
            "got 'unheard-of', and how that splits text is not known; if you know it, pass pattern=",
        ),
        (
            "gpt2",
            dict(pre=None),
            "the file must have tokenizer.ggml.pre, which says how text is split, got none",
        ),
        (
            "gpt2",
            dict(merges=None),
            "the file must have tokenizer.ggml.merges, without which BPE encodes nothing, got none",
        ),
        (
            "gpt2",
            dict(merges=["u g", "hug"]),
            "tokenizer.ggml.merges[1] must be two pieces with a space between them, got 'hug'",
        ),
        (
            "gpt2",
            dict(merges=["u g", "h x"]),
            "merge 1 ('h', 'x') must have all its pieces in the vocabulary, got no piece 'hx'",
        ),
        (
            "gpt2",
            dict(add_bos_token=True),
            "the file must have tokenizer.ggml.bos_token_id to add a bos token, got none",
        ),
        (
            "gpt2",
            dict(add_eos_token=True, eos_token_id=999),
            "tokenizer.ggml.eos_token_id must be below 260, the number of tokens, got 999",
        ),
        ("gpt2", dict(add_eos_token="yes"), "tokenizer.ggml.add_eos_token must be a truth value, got 'yes'"),
        (
            "gpt2",
            dict(tokens=["a", "b", "a"], token_type=None),
            "tokenizer.ggml.tokens must contain each piece once, got 'a' as 0 and 2",
        ),
        (
            "llama",
            dict(scores=None),
            "the file must have tokenizer.ggml.scores, which rank the pieces, got none",
        ),
        (
            "llama",
            dict(scores=[1.0]),
            "tokenizer.ggml.scores must have an element for each of the 267 tokens, got 1",
        ),
        ("llama", dict(add_space_prefix=1), "tokenizer.ggml.add_space_prefix must be a truth value, got '1'"),
        ("t5", dict(precompiled_charsmap=As("u8", [9, 9, 9, 9, 0])), "charsmap"),
        (
            "bert",
            dict(
                tokens=["▁hug", "s"],
                token_type=As("i32", [1, 1]),
                unknown_token_id=None,
                bos_token_id=None,
                eos_token_id=None,
                seperator_token_id=None,
                padding_token_id=None,
            ),
            "the file must have tokenizer.ggml.unknown_token_id, or BERT's own name for it as a piece, got neither",
        ),
    ],
)
def test_pairs_that_make_no_tokenizer(write, kind, change, message):
    pairs = TOYS[kind]() | {f"tokenizer.ggml.{k}": v for k, v in change.items()}
    path = write({k: v for k, v in pairs.items() if v is not None})
    with pytest.raises(ValueError) as e:
        read_gguf(path)
    assert str(e.value).startswith(str(path)) and message in str(e.value), str(e.value)


def test_pattern_as_an_argument(write):
    path = write({k: v for k, v in toy_bpe().items() if k != "tokenizer.ggml.pre"})
    assert opened(path, pattern="gpt2").encode("hug") == [257]
    assert opened(path, pattern="llama3").pre_tokenizer == gguf_pre_tokenizer("llama-bpe")
    assert opened(path, pattern=r"\S+|\s+").encode("hug") == [257]
    for kind in ("llama", "t5", "bert"):
        with pytest.raises(ValueError, match=r"model\.gguf: pattern must .*got 'gpt2'"):
            read_gguf(write(TOYS[kind]()), pattern="gpt2")


def test_cased_or_not(write):
    capital = toy_bert(
        **{"tokenizer.ggml.tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁Hug", "s", "▁hug", "▁]"]}
    )
    for said, asked, expected in [
        (None, None, 5),
        (True, None, 7),
        (False, None, 5),
        (None, True, 7),
        (True, False, 5),
        (False, True, 7),
    ]:
        path = write(capital if said is None else capital | {"tokenizer.ggml.normalizer.lowercase": said})
        assert opened(path, lowercase=asked).encode("Hug", add_special_tokens=False) == [expected]
    tok = opened(
        write(
            toy_bert(
                **{
                    "tokenizer.ggml.normalizer.lowercase": True,
                    "tokenizer.ggml.normalizer.strip_accents": False,
                }
            )
        )
    )
    assert tok.encode("HÜG", add_special_tokens=False) == [1] and tok.normalizer.strip_accents is False
    for kind in ("llama", "t5", "gpt2"):
        with pytest.raises(ValueError, match=r"model\.gguf: lowercase must .*got True"):
            read_gguf(write(TOYS[kind]()), lowercase=True)


def test_without_types_the_named_ids_are_special(write):
    tok = opened(write({k: v for k, v in toy_bpe().items() if k != "tokenizer.ggml.token_type"}))
    assert [(t.content, i) for t, i in tok.added_tokens] == [("<|end|>", 258)]


def test_scores_as_whole_numbers_and_signed_charsmaps(write):
    whole = toy_llama(**{"tokenizer.ggml.scores": As("i32", [0] * 259 + [-10, -11, -12, -13, -1, -2, -3, 0])})
    assert read_gguf(write(whole)).model == read_gguf(write(toy_llama(), name="b.gguf")).model
    from subword_nb.text.charsmap import build_charsmap

    blob = build_charsmap({"Ｈ": "h"})
    for kind, values in (("u8", list(blob)), ("i8", [b - 256 * (b > 127) for b in blob])):
        assert opened(write(toy_t5(**{"tokenizer.ggml.precompiled_charsmap": As(kind, values)}))).encode(
            "Ｈug", add_special_tokens=False
        ) == [7]


def test_empty_pieces_keep_their_ids(write):
    assert opened(
        write(ggml(model="gpt2", pre="gpt-2", tokens=["a", "", "b", "ab", ""], merges=["a b"]))
    ).encode("ab") == [3]


def test_all_names_of_pre_tokenizers_work():
    names = [n for names in PRE_TOKENIZERS.values() for n in names.split()]
    assert len(names) == len(set(names)) > 60
    text = "Hello wörld's 12345 ２³ x²!!\r\n\n  ▁ \t«yes» ß日本語 हिन्दी\u0301 don'T I'LL a1b2 "
    for n in names:
        assert "".join(p for p, *_ in gguf_pre_tokenizer(n).split(text)) == to_visible(
            text.encode("utf-8")
        ), n


PUBLISHED_NAMES = [
    "default", "minicpm5", "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral",
    "midm-2.0", "lfm2", "jina-v5-nano", "deepseek-llm", "deepseek-coder", "deepseek-v3", "spark2_5",
    "youtu", "falcon", "mpt", "starcoder", "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat",
    "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert", "jais-2", "gemma4",
    "granite-embed-multi-311m", "sarvam-moe", "jina-v1-en", "jina-v2-code", "roberta-bpe", "whitespace",
    "refact", "command-r", "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "qwen35", "stablelm2",
    "olmo", "dbrx", "smaug-bpe", "poro-chat", "glm4", "chatglm-bpe", "viking", "jais", "tekken",
    "smollm", "codeshell", "bloom", "gpt3-finnish", "exaone", "exaone4", "exaone-moe", "chameleon",
    "minerva-7b", "megrez", "gpt-4o", "llama4", "kanana2", "talkie", "granite-embed-multi-97m",
    "tiny_aya", "cohere2moe", "superbpe", "trillion", "granite-docling", "bailingmoe", "bailingmoe2",
    "llada-moe", "seed-coder", "hunyuan", "hunyuan-dense", "hy_v4", "joyai-llm", "kimi-k2", "ufakzeka",
    "grok-2", "afmoe", "laguna", "minimax-m2", "solar-open", "mellum2",
]  # fmt: skip
OF_CHARACTERS = {"gemma4", "granite-embed-multi-311m", "sarvam-moe", "whitespace"}


def test_every_name_that_llama_cpp_publishes_is_read_or_refused_by_name():
    assert {n for names in PRE_TOKENIZERS.values() for n in names.split()} == {
        *PUBLISHED_NAMES
    } - OF_CHARACTERS
    for name in OF_CHARACTERS:
        with pytest.raises(
            ValueError, match=f"tokenizer.ggml.pre must .*got '{name}'.*open the model's tokenizer.json"
        ):
            gguf_pre_tokenizer(name)


def test_flags_that_go_with_a_name(write):
    "Whether whole pieces are taken before merging, and bos put in front, where the file is silent."

    def made(pre):
        return opened(
            write(
                ggml(
                    model="gpt2",
                    pre=pre,
                    tokens=["a", "b", "c", "ab", "bc", "abc", "<s>"],
                    merges=["b c"],
                    token_type=As("i32", [1] * 6 + [3]),
                    bos_token_id=6,
                )
            )
        )

    for pre, whole, bos in (
        ("gpt-2", False, False),
        ("llama-bpe", True, True),
        ("jina-v5-nano", True, True),
        ("tekken", True, True),
        ("chameleon", False, True),
        ("youtu", True, False),
        ("minicpm5", True, False),
        ("granite-embed-multi-97m", True, False),
        ("kimi-k2", False, False),
    ):
        assert made(pre).encode("abc") == [6] * bos + ([5] if whole else [0, 4]), pre


SHORT = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
ENDS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
QWEN2_PATTERN = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + ENDS
CASES_OF = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    + (SHORT + "?|")
    + r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    + (SHORT + "?|")
)
DEEPSEEK_SIGNS = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
AS_IN_LLAMA_CPP = {  # name → the patterns that llama.cpp, or the tokenizer.json that it names, cuts with, one after the other
    "minicpm5": [
        r"\p{N}{1,3}",
        SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|" + ENDS,
    ],
    "jais-2": [
        SHORT
        + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        + r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
    ],
    "spark2_5": [
        r"\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        DEEPSEEK_SIGNS + r"|[\r\n]|\s+(?!\S)|\s+",
        r"\p{N}",
    ],
    "hy_v4": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK_SIGNS + r"[\r\n]*|" + ENDS],
    "youtu": [
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+",
        CASES_OF + r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + ENDS,
    ],
    "viking": [r" ?[^(\s|.,!?…。，、।۔،)]+", r"\p{N}"],
    "mellum2": [r"\p{N}", GPT2_PATTERN],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": [
        "<sentinel:[0-9]+>",
        "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
        r"([\t\n]|    |  )",
        r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]",
        GPT2_PATTERN,
    ],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", CASES_OF + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + ENDS],
    "talkie": [CASES_OF + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + ENDS],
    "kimi-k2": [
        r"[\p{Han}]+|"
        + CASES_OF.replace("]*[", "&&[^\\p{Han}]]*[")
        .replace("]+[", "&&[^\\p{Han}]]+[")
        .replace("]+(?", "&&[^\\p{Han}]]+(?")
        .replace("]*(?", "&&[^\\p{Han}]]*(?")
        + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        + ENDS
    ],
    "bailingmoe": [
        r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    ],
    "ufakzeka": [r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + ENDS],
    "laguna": [r"[^\n]+|[\n]+", QWEN2_PATTERN],
    "f2llmv2": [QWEN2_PATTERN],
    "exaone-moe": [
        SHORT
        + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
    ],
    "deepseek-llm": [
        "[\r\n]",
        r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+",
        "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+",
        r"\s+$",
        "[一-龥ࠀ-一가-\ud7ff]+",
        r"\p{N}+",
    ],
    "afmoe": [
        r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))",
        "[一-鿿㐀-䶿豈-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2fdf\u0e40-\u0e7f\u0e80-\u0effក-\u17ffက-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+",
        DEEPSEEK_SIGNS + r"[\r\n]*|" + ENDS,
    ],
}
STRINGS = [
    "",
    "Hello wörld's 12345 ２³ x²!!\r\n\n    \t«yes» don'T I'LL a1b2 ",
    "1234567 12 1,000 123456\n\n  \n x",
    "<sentinel:12>IMGIMGABCZ    tabs\t\tand  more",
    "日本語 カタカナ 한국어 ภาษาไทย हिन्दी е́ ÀÉé",
    "中文English's混合 fooBar!!/\n\n",
    "“quoted” — well… ok",
    "a  b   c\u3000d " + " " * 70 + "e",
]


@pytest.mark.peers
@pytest.mark.parametrize("name", AS_IN_LLAMA_CPP)
def test_a_name_cuts_as_its_published_patterns_do(name, hf):
    rng, P = random.Random(name), hf.pre_tokenizers
    theirs = P.Sequence([P.Split(hf.Regex(pattern), "isolated") for pattern in AS_IN_LLAMA_CPP[name]])
    ours = gguf_pre_tokenizer(name)
    texts = STRINGS + [
        "".join(rng.choices("abZÉé 12345'sTL.!?/(\r\n\t 日本カ한ไ", k=rng.randrange(30))) for _ in range(300)
    ]
    for text in texts:
        assert [(a, b) for _, a, b in ours.split(text)] == [
            span for _, span in theirs.pre_tokenize_str(text)
        ], text


def test_a_tokenizer_is_written_as_json_again(write, tmp_path):
    for kind in ("gpt2", "bert"):
        tok = opened(write(TOYS[kind]()))
        again = Tokenizer.load(tok.save(tmp_path / f"{kind}.json"), allowed_special=())
        for text in ("hug hugs", "ADDED one <|end|>", " x ", ""):
            assert again.encode(text) == tok.encode(text)


# --- real vocabularies


def proto_pairs(path, model, **more):
    "A `.model` file as its converter writes it into GGUF."
    from subword_nb.formats.sentencepiece_proto import read_model_proto

    proto = read_model_proto(path.read_bytes())
    charsmap = proto.normalizer("precompiled_charsmap")
    text = [p.piece.replace("▁", " ") if p.type == 4 else p.piece for p in proto.pieces]
    ids = {
        f"{theirs}_token_id": i
        for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if (i := proto.trainer(f"{ours}_id")) >= 0
    }
    return ggml(
        model=model,
        pre="default",
        tokens=text,
        scores=[p.score for p in proto.pieces],
        token_type=As("i32", [p.type for p in proto.pieces]),
        add_space_prefix=proto.normalizer("add_dummy_prefix"),
        remove_extra_whitespaces=proto.normalizer("remove_extra_whitespaces"),
        **ids,
        **({"precompiled_charsmap": As("u8", list(charsmap))} if charsmap and model == "t5" else {}),
        **more,
    )


def rank_pairs(path, pre, special=0):
    "A rank file as a converter writes it."
    from subword_nb.formats.tiktoken import merges_from_ranks, read_ranks

    ranks = read_ranks(path)
    tokens = [to_visible(t) for t in sorted(ranks, key=ranks.get)]
    merges = [f"{to_visible(a)} {to_visible(b)}" for a, b in merges_from_ranks(ranks).merges]
    return ggml(
        model="gpt2",
        pre=pre,
        tokens=tokens + [f"<|special_{i}|>" for i in range(special)],
        token_type=As("i32", [1] * len(tokens) + [3] * special),
        merges=merges,
        bos_token_id=len(tokens) if special else 0,
    )


def json_pairs(path, pre):
    "A tokenizer.json of BPE as a converter writes it."
    d = json.loads(path.read_text(encoding="utf-8"))
    vocab, special = d["model"]["vocab"], {t["id"] for t in d["added_tokens"]}
    tokens = sorted(vocab, key=vocab.get)
    return ggml(
        model="gpt2",
        pre=pre,
        tokens=tokens,
        token_type=As("i32", [3 if i in special else 1 for i in range(len(tokens))]),
        merges=[m if isinstance(m, str) else " ".join(m) for m in d["model"]["merges"]],
    )


def bert_pairs(path, old=False):
    "A vocab.txt as a converter writes it, with phantom spaces; `old` ones know no types."
    pieces = path.read_text(encoding="utf-8").split("\n")[:-1]
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    kept = (lambda p: p.startswith("[") and p.endswith("]")) if old else special.__contains__
    tokens = [p if kept(p) else p[2:] if p.startswith("##") else "▁" + p for p in pieces]
    ids = {
        f"{k}_token_id": pieces.index(p)
        for k, p in (
            ("bos", "[CLS]"),
            ("unknown", "[UNK]"),
            ("seperator", "[SEP]"),
            ("padding", "[PAD]"),
            ("mask", "[MASK]"),
        )
    }
    return ggml(
        model="bert",
        tokens=tokens,
        token_type=As("i32", [3 if p in special and not old else 1 for p in pieces]),
        **ids,
    )


REAL = {
    "gpt2": ("vocab/gpt2/tokenizer.json", lambda p: json_pairs(p, "gpt-2"), "hf-bbpe__gpt2"),
    "roberta": (
        "vocab/roberta-base/tokenizer.json",
        lambda p: json_pairs(p, "roberta-bpe"),
        "hf__roberta-base",
    ),
    "falcon": ("vocab/falcon/tokenizer.json", lambda p: json_pairs(p, "falcon"), "hf__falcon"),
    "llama-3": (
        "vocab/llama-3/tokenizer.model",
        lambda p: rank_pairs(p, "llama-bpe", 256),
        "tiktoken__llama-3",
    ),
    "qwen": ("vocab/qwen/qwen.tiktoken", lambda p: rank_pairs(p, "qwen2"), "tiktoken__qwen"),
    "o200k": (
        "vocab/tiktoken/o200k_base.tiktoken",
        lambda p: rank_pairs(p, "gpt-4o"),
        "tiktoken__o200k_base",
    ),
    "llama-2": (
        "vocab/llama-2/tokenizer.model",
        lambda p: proto_pairs(p, "llama"),
        "sp__llama-2.tokenizer.model",
    ),
    "mistral": (
        "vocab/mistral-v1/tokenizer.model.v1",
        lambda p: proto_pairs(p, "llama"),
        "sp__mistral-v1.tokenizer.model.v1",
    ),
    "t5": ("vocab/t5-small/spiece.model", lambda p: proto_pairs(p, "t5"), "sp__t5-small.spiece.model"),
    "xlnet": (
        "vocab/xlnet-base-cased/spiece.model",
        lambda p: proto_pairs(p, "t5"),
        "sp__xlnet-base-cased.spiece.model",
    ),
    "bert-uncased": ("vocab/bert-base-uncased/vocab.txt", bert_pairs, "hf-wordpiece__bert-base-uncased"),
    "bert-cased": ("vocab/bert-base-cased/vocab.txt", bert_pairs, "hf-wordpiece__bert-base-cased"),
    "bert-chinese": (
        "vocab/bert-base-chinese/vocab.txt",
        lambda p: bert_pairs(p, old=True) | {"tokenizer.ggml.normalizer.lowercase": True},
        "hf-wordpiece__bert-base-chinese",
    ),
}
LARGE = {"llama-3", "qwen", "o200k", "xlnet", "mistral", "roberta", "bert-cased"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in REAL])
def test_real_vocabularies(name, shared_file, write):
    source, pairs, golden = REAL[name]
    tok = opened(write(gguf_bytes(pairs(shared_file(source))) + bytes(1000)))
    strings = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    golden = json.loads(shared_file(f"golden/{golden}.json").read_text(encoding="utf-8"))
    expected = golden["ids"]
    wrong = [
        (i, s[:60])
        for i, (s, ids) in enumerate(zip(strings, expected))
        if tok.encode(s, add_special_tokens=False) != ids
    ]
    assert not wrong, f"{len(wrong)} of {len(strings)}: {wrong[:5]}"
    if name not in ("llama-2", "t5"):
        return
    wrong = [
        i
        for i, (s, ids) in enumerate(zip(strings, expected))
        if tok.decode(ids) != golden["decoded_where_different"].get(str(i), s)
    ]
    assert not wrong, f"decoded otherwise: {wrong[:5]}"


@pytest.mark.parametrize(
    "name",
    [
        "gpt2",
        "t5",
        "bert-uncased",
        pytest.param("llama-2", marks=pytest.mark.slow),
        pytest.param("mistral", marks=pytest.mark.slow),
        pytest.param("xlnet", marks=pytest.mark.slow),
    ],
)
def test_the_parts_are_those_of_the_original_file(name, shared_file, write):
    from subword_nb.formats.huggingface import read_gpt2
    from subword_nb.formats.vocab_files import read_vocab_txt
    from subword_nb.formats.sentencepiece import read_sentencepiece

    source, pairs, _ = REAL[name]
    path = shared_file(source)
    ours = read_gguf(write(pairs(path)))
    theirs = (
        read_gpt2(path.parent)
        if name == "gpt2"
        else read_vocab_txt(path)
        if name.startswith("bert")
        else read_sentencepiece(path)
    )
    for part in ("model", "pre_tokenizer", "decoder", "added_tokens", "normalizer"):
        a, b = getattr(ours, part), getattr(theirs, part)
        if part == "added_tokens":  # the same tokens; who finds them in a text, and when, is not in the files
            a, b = ({(t.content, t.special, i) for t, i in tokens} for tokens in (a, b))
        assert a == b, part


@pytest.mark.parametrize("name", ["r50k_base", "p50k_base"])
def test_ranks_of_gpt2s_pattern_are_written_and_read_with_equal_ids(name, shared_file, tmp_path):
    tok = Tokenizer.load(shared_file(f"vocab/tiktoken/{name}.tiktoken"), pattern=name)
    path = tok.save(tmp_path / "x.gguf")
    assert read_gguf_metadata(path)["tokenizer.ggml.pre"] == "gpt-2"
    again = Tokenizer.load(path)
    for text in json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))[:500]:
        assert again.encode(text, allowed_special=()) == tok.encode(text, allowed_special=()), text


# --- the peer that defines the format


@pytest.mark.peers
def test_files_of_the_gguf_package(tmp_path):
    peer = pytest.importorskip("gguf")
    for name, endian in (("little", peer.GGUFEndian.LITTLE), ("big", peer.GGUFEndian.BIG)):
        path, toy = tmp_path / f"{name}.gguf", toy_llama()
        w = peer.GGUFWriter(path, "llama", endianess=endian)
        w.add_tokenizer_model("llama")
        w.add_token_list(toy["tokenizer.ggml.tokens"])
        w.add_token_scores(toy["tokenizer.ggml.scores"])
        w.add_token_types(toy["tokenizer.ggml.token_type"].value)
        w.add_bos_token_id(1)
        w.add_eos_token_id(2)
        w.add_add_bos_token(True)
        w.add_add_space_prefix(True)
        w.add_chat_template("{{ x }}")
        w.add_array("test.nested", [[1, 2], [3]])
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.close()
        assert opened(path).encode("hug") == [1, 265]
        assert [list(x) for x in read_gguf_metadata(path)["test.nested"]] == [[1, 2], [3]]
        fields = peer.GGUFReader(path).fields
        assert {
            k: fields[k].contents() for k in fields if not k.startswith("GGUF.") and k != "test.nested"
        } == {
            k: v.tolist() if isinstance(v, array) else v
            for k, v in read_gguf_metadata(path).items()
            if k != "test.nested"
        }


@pytest.mark.peers
def test_our_files_in_the_gguf_package(write):
    peer = pytest.importorskip("gguf")
    for kind, make in TOYS.items():
        for o in "<>":
            path = write(make(), o=o, name=f"{kind}.gguf")
            fields = peer.GGUFReader(path).fields
            assert (
                fields["tokenizer.ggml.tokens"].contents()
                == read_gguf_metadata(path)["tokenizer.ggml.tokens"]
            )


# --- hostile files


def mutated(data: bytes, rng: random.Random) -> bytes:
    "A file with some harm done to it."
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        i = rng.randrange(len(out)) if rng.random() < 0.5 else rng.randrange(min(len(out), 400))
        match rng.randrange(7):
            case 0:
                out[i] ^= 1 << rng.randrange(8)
            case 1:
                out[i] = rng.choice((0, 1, 9, 127, 128, 255))
            case 2:
                del out[i:]
            case 3:
                del out[i : i + rng.randrange(1, 20)]
            case 4:
                out[i:i] = rng.randbytes(rng.randrange(1, 20))
            case 5:
                out[i : i + 8] = struct.pack(
                    "<Q", rng.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, rng.randrange(2**16)))
                )
            case 6:
                j = rng.randrange(len(out))
                out[i : i + 12] = out[j : j + 12]
        if not out:
            out = bytearray(b"G")
    return bytes(out)


def bases(shared) -> list[bytes]:
    "Files to harm: small ones of every kind, and the first pages of a real one where there is one."
    found = [gguf_bytes(make(), o=o) for make in TOYS.values() for o in "<>"]
    path = shared / "vocab/llama-2/tokenizer.model"
    if path.exists():
        pairs = proto_pairs(path, "llama")
        found.append(
            gguf_bytes(
                {
                    k: As(
                        getattr(v, "kind", None) or typed(v).kind,
                        (v.value if isinstance(v, As) else v)[:2000],
                    )
                    if isinstance(getattr(v, "value", v), list)
                    else v
                    for k, v in pairs.items()
                }
            )
        )
    return found


def harmed_pairs(rng: random.Random) -> bytes:
    "A sound file whose pairs are not all what they should be."
    pairs = dict(rng.choice(list(TOYS.values()))())
    invalid = [
        0,
        1,
        2**32 - 1,
        True,
        False,
        -1.5,
        "",
        "gpt2",
        "llama",
        "t5",
        "bert",
        "x",
        [],
        ["a b"],
        [1, 2, 3],
        [0.0] * 300,
        As("i32", [3] * 300),
        As("i64", [2**62] * 300),
        As("f32", [float("nan")] * 300),
        As("nested", [[1], []]),
    ]
    for _ in range(rng.choice((1, 1, 2, 3))):
        key = rng.choice(list(pairs))
        v = typed(pairs[key])
        match rng.randrange(4):
            case 0:
                del pairs[key]
            case 1:
                pairs[key] = rng.choice(invalid)
            case 2 if isinstance(v.value, list) and v.value:
                values = list(v.value)
                i, j = rng.randrange(len(values)), rng.randrange(len(values))
                values[i] = rng.choice(
                    (values[j], "a", "▁", "<0x41>", "[x]", "\0", "é")
                    if v.kind == "str"
                    else (values[j], 1, 2, 5, 6)
                )
                pairs[key] = As(v.kind, values)
            case _ if isinstance(v.value, list):
                pairs[key] = As(v.kind, v.value[: rng.randrange(len(v.value) + 1)])
    return gguf_bytes(pairs, o=rng.choice("<>"))


def data_folder():
    "Where real files are, if anywhere."
    named = os.environ.get("SUBWORD_NB_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"


def harm(n, seed, shared, path):
    "Read n harmed files: a tokenizer, or a ValueError that names the file; none costs a hundred times what the largest whole one does."
    rng, files, good, dearest = random.Random(seed), bases(shared), 0, (0.0, b"", -1)

    def use(data):
        path.write_bytes(data)
        parts = None
        try:
            parts = read_gguf(path)
            Tokenizer(**parts._replace(source=None, allowed_special=())._asdict()).encode(
                "hug  hugs <x y> é\0▁"
            )
        except ValueError as e:
            assert parts is not None or str(e).startswith(str(path)), e
            return 0
        return 1

    def tried(data):
        nonlocal good
        good += use(data)

    for case in range(n):
        data = harmed_pairs(rng) if rng.random() < 0.3 else mutated(rng.choice(files), rng)
        dearest = max(dearest, (cpu_seconds(tried, data), data, case))
    least = min(cpu_seconds(use, dearest[1]) for _ in range(3))
    assert least < 100 * cpu_seconds(use, max(files, key=len)), (dearest[2], least, len(dearest[1]))
    return good


def test_harmed_files(tmp_path):
    assert 0 < harm(300, 5, data_folder(), tmp_path / "x.gguf") < 300


@pytest.mark.slow
def test_thousands_of_harmed_files(tmp_path):
    n = 10_000 if TEXTS >= 2000 else 2_000
    assert n // 20 < harm(n, 6, data_folder(), tmp_path / "x.gguf") < n * 9 // 10


def test_every_cut_is_noticed(tmp_path):
    for make in TOYS.values():
        data = gguf_bytes(make())
        for end in [*range(150), *range(150, len(data), 97)]:
            (tmp_path / "x.gguf").write_bytes(data[:end])
            with pytest.raises(ValueError):
                read_gguf(tmp_path / "x.gguf")


def test_memory_is_bounded_by_the_file(tmp_path):
    rng, path = random.Random(3), tmp_path / "x.gguf"
    for _ in range(60):
        data = mutated(gguf_bytes(toy_bpe()), rng)
        path.write_bytes(data)
        tracemalloc.start()
        with contextlib.suppress(ValueError):
            read_gguf_metadata(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 300_000 + 40 * len(data), (peak, len(data))


def test_metadata_from_elsewhere():
    pairs = {k: v.value if isinstance(v, As) else v for k, v in toy_bpe().items()}
    assert Tokenizer(**parts_from_gguf(pairs)._replace(source=None)._asdict()).encode("hug") == [257]
    for invalid in (
        {"tokenizer.ggml.tokens": ["a", None]},
        {"tokenizer.ggml.tokens": []},
        {"tokenizer.ggml.merges": [b"a b"]},
        {"tokenizer.ggml.token_type": ["1"] * 300},
    ):
        with pytest.raises(ValueError, match=r"tokenizer\.ggml\."):
            parts_from_gguf(pairs | invalid)


def test_chat_templates_are_read(write, tmp_path):
    "The usual one and named ones, with the special tokens that they ask for; a folder that is saved has them as files."
    end = "{{ messages[0].content }}{{ eos_token }}"
    templates = {
        "tokenizer.chat_template": end,
        "tokenizer.chat_template.tool_use": "{{ tools | length }}",
        "tokenizer.chat_templates": ["tool_use"],
    }
    tok = Tokenizer.load(write(toy_bpe(**templates)))
    assert dict(tok.config.chat_templates) == {"default": end, "tool_use": "{{ tools | length }}"}
    said = [{"role": "user", "content": "hug<|end|>"}]
    ids = tok.chat(said)
    assert tok.decode(ids) == "hug<|end|><|end|>" and ids.count(258) == 1 and ids[-1] == 258
    assert tok.chat(said, tools=[{}], tokenize=False) == "1"
    tok.save(f"{tmp_path / 'folder'}/")
    assert Tokenizer.load(tmp_path / "folder").chat(said) == ids
    for name, more in (("llama", toy_llama), ("t5", toy_t5)):
        tok = Tokenizer.load(
            write(more(**{"tokenizer.chat_template": "{{ eos_token }}hug"}), name=f"{name}.gguf")
        )
        assert dict(tok.config.special_tokens)["eos_token"] == "</s>"
        assert tok.chat(said)[0] == tok.piece2id["</s>"]
    assert Tokenizer.load(write(toy_bpe())).config is None
    with pytest.raises(ValueError, match=r"model\.gguf: tokenizer\.chat_template must .*got 7 for 'default'"):
        Tokenizer.load(write(toy_bpe(**{"tokenizer.chat_template": 7})))
