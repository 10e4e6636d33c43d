"""The pinned table against its source, and against the classes that the peers use."""

import sys
import unicodedata
from importlib import resources

import pytest

from subword_nb.core.unicode import (
    BYTE2CHAR,
    CHAR2BYTE,
    UNICODE_VERSION,
    category,
    code_point_ranges,
    decode_text,
    encode_text,
    from_visible,
    to_visible,
    unicode_table,
)

CHARS = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]


def source():
    "A Unicode database of the pinned version: Python's own, or unicodedata2."
    if unicodedata.unidata_version == UNICODE_VERSION:
        return unicodedata
    module = pytest.importorskip(
        "unicodedata2", reason="unicodedata2 (extra dev) is the source of the pinned table"
    )
    if module.unidata_version != UNICODE_VERSION:
        pytest.skip(f"unicodedata2 has Unicode {module.unidata_version}, not {UNICODE_VERSION}")
    return module


def members(prop):
    return {chr(i) for a, b in code_point_ranges(prop) for i in range(a, b) if not 0xD800 <= i < 0xE000}


def test_shipped_table_is_what_the_generator_writes():
    regex = pytest.importorskip("regex")
    db = source()
    alphabetic = {ord(c) for c in regex.findall(r"\p{Alphabetic}", "".join(CHARS)) if db.category(c) != "Cn"}
    shipped = (resources.files("subword_nb") / "unicode_classes.txt").read_text(encoding="ascii")
    assert unicode_table(db.category, alphabetic) == shipped


def test_category_of_every_code_point():
    db = source()
    assert all(category(chr(i)) == db.category(chr(i)) for i in range(0x110000))


def test_ranges_agree_with_category():
    categories = [category(chr(i)) for i in range(0x110000)]
    for prop in ("L", "Lu", "N", "Nd", "M", "P", "S", "Z", "Zs", "C", "Cn", "Cs", "Co"):
        ranges = code_point_ranges(prop)
        assert all(a < b for a, b in ranges) and all(b < c for (_, b), (c, _) in zip(ranges, ranges[1:]))
        assert sum(b - a for a, b in ranges) == sum(c.startswith(prop) for c in categories)


@pytest.mark.peers
@pytest.mark.parametrize(
    "prop,pattern",
    [
        ("L", r"\p{L}"),
        ("N", r"\p{N}"),
        ("White_Space", r"\s"),
        ("Alphabetic", r"\p{Alphabetic}"),
        ("M", r"\p{M}"),
        ("P", r"\p{P}"),
        ("Cn", r"\p{Cn}"),
    ],
)
def test_sets_are_those_of_hf(prop, pattern):
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    text = "".join(CHARS)
    left = tk.pre_tokenizers.Split(tk.Regex(pattern), "removed").pre_tokenize_str(text)
    assert members(prop) == set(CHARS) - {c for piece, _ in left for c in piece}


@pytest.mark.peers
def test_word_is_the_set_of_hf_whitespace():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    ends = dict(
        span for _, span in tk.pre_tokenizers.Whitespace().pre_tokenize_str("".join(f"a{c} " for c in CHARS))
    )
    assert members("Word") == {c for i, c in enumerate(CHARS) if ends[3 * i] >= 3 * i + 2}


@pytest.mark.peers
def test_visible_alphabet_is_that_of_hf():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    assert sorted(BYTE2CHAR) == sorted(tk.pre_tokenizers.ByteLevel.alphabet())
    pre = tk.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    text = "".join(CHARS)
    assert "".join(p for p, _ in pre.pre_tokenize_str(text)) == to_visible(text.encode())


def test_visible_alphabet_round_trip():
    data = bytes(range(256)) * 3
    assert from_visible(to_visible(data)) == data and len(CHAR2BYTE) == 256


def test_utf8_round_trip_of_every_character():
    text = "".join(CHARS)
    assert decode_text(encode_text(text)) == text


@pytest.mark.parametrize("errors", ("replace", "ignore"))
def test_errors_policies_never_fail(errors):
    for data in (b"\xff", b"a\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", bytes(range(256))):
        assert decode_text(data, errors=errors) == data.decode("utf-8", errors)
    assert (
        encode_text("a\ud800b\udfff", errors=errors).decode()
        == {"replace": "a\ufffdb\ufffd", "ignore": "ab"}[errors]
    )


def test_import_is_light():
    assert "regex" not in sys.modules["subword_nb.core.unicode"].__dict__
