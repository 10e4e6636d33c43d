"""Scanning by classes: every block size and offset, every code point, and what normalizers and splitters make of the spans."""
import lzma
import random
import re
import unicodedata

import numpy as np
import pytest

from subword_nb.jit import available
from subword_nb.machine import HEAD, buffer_of, scan_spans
from subword_nb.normalizers import NFC, NFD, BertNormalizer, Lowercase, Prepend, Sequence, StripAccents
from subword_nb.pretokenizers import BertPreTokenizer, Punctuation, Whitespace, WhitespaceSplit
from subword_nb.spans import cut_words
from subword_nb.word_scanners import (
    ALONE, CHANGED, GONE, ODD, OTHER, SAME, SPACE, SPACED, WORD, bert_scanner, char_map, class_scanner, safe_scanner, space_scanner, split_scanner, splitter_classes, whitespace_scanner, word_classes,
    word_starts_ref,
)

MIXED = word_classes(space=[(32, 33), (0x2003, 0x2004), (0x85, 0x86)], alone=[(33, 34), (0x4E00, 0x9FFF)], other=[(43, 44), (0x1F600, 0x1F650), (0xD7, 0xD8)])
PARTS = [c.encode() for c in ("a", "b", " ", "  ", "!", "+", "é", "\u2003", "你", "😀", "×", "\x85", "𐍈", "abcdefghij" * 7, " " * 66, "你" * 23)] + [b"\xff"]
NORMALIZERS = [
    None, Lowercase(), BertNormalizer(), BertNormalizer(lowercase=False), BertNormalizer(strip_accents=False), BertNormalizer(clean_text=False), BertNormalizer(handle_chinese_chars=False),
    BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False), Sequence([NFD(), Lowercase(), StripAccents()]), Sequence([StripAccents(), BertNormalizer(lowercase=False)]),
]
FEW = 1 if available() else 40  # plain Python is slow


def spans_ref(text: bytes, classes) -> list[bytes]:
    "Spans by the plain rule."
    starts = [*word_starts_ref(text, classes), len(text)]
    return [text[a:b] for a, b in zip(starts, starts[1:])]


def test_every_offset_and_block():
    rng, scanner = random.Random(0), class_scanner("mixed", MIXED)
    for k in range(3200 // FEW):
        text = b"x" * (k % 64) + b"".join(rng.choices(PARTS, weights=[6] * 13 + [1] * 4, k=rng.randrange(50)))
        for block in (1 << 16, rng.randrange(1, 200)):
            assert scan_spans(scanner, text, block) == spans_ref(text, MIXED), (text, block)


def test_every_cut_between_two_characters_at_every_offset():
    scanner = class_scanner("mixed", MIXED)
    chars = [c.encode() for c in "a !+é\u2003你😀×"] + [b"\xff"]
    for at in range(66) if available() else (0, 61, 63):
        for left in chars:
            text = b"x" * at + b"".join(left + right for right in chars)
            assert scan_spans(scanner, text) == spans_ref(text, MIXED), text


def test_nothing_is_written_beyond_the_contract():
    scanner, rng = class_scanner("mixed", MIXED), random.Random(1)
    for make in (scanner, safe_scanner()):
        for n in (0, 1, 2, 63, 64, 65, 127, 200):
            text = bytes(rng.choice(b"! +a") for _ in range(n))
            for last in (False, True):
                starts, buffer = np.full(n + 40, 77, np.uint32), buffer_of(text)
                before = buffer.copy()
                k = make.scan(buffer, n, last, starts)
                assert (starts[n + 8:] == 77).all() and (buffer == before).all()
                assert starts[0] == HEAD and (np.diff(starts[:k + 1].astype(int)) > 0).all() and starts[k] <= HEAD + n
                assert starts[k] == HEAD + n or not last


def test_a_separator_stands_alone_at_every_offset():
    "Also where it is the only byte of its block that is not ASCII."
    for scanner in (safe_scanner(), space_scanner(), split_scanner("whitespace"), bert_scanner()):
        for at in range(200):
            data = ("ab cd ef " * 40)[:at].encode() + b"\xff" + b"gh ij " * 20
            assert b"\xff" in scan_spans(scanner, data), (scanner.name, at)


def test_safe_places_are_those_of_room_39():
    rng, scanner = random.Random(2), safe_scanner()
    for k in range(3200 // FEW):
        text = "x" * (k % 64) + "".join(rng.choices(["a", "Z", "0", " ", " ", ",", "é", "e\u0301", "[", "`", "/", ":", "@", "{", "abcdefghij" * 7], k=rng.randrange(40)))
        for block in (1 << 16, rng.randrange(1, 100)):
            assert [s.decode() for s in scan_spans(scanner, text.encode(), block)] == cut_words(text), (text, block)
    assert scan_spans(scanner, b"a b\xff c d") == [b"a", b" b", b"\xff", b" c", b" d"]


def test_fresh_places_are_cuts():
    rng = random.Random(3)
    for scanner in (class_scanner("mixed", MIXED), safe_scanner(), space_scanner(), split_scanner("whitespace"), bert_scanner(BertNormalizer())):
        for _ in range(300 // FEW + 1):
            text = b"".join(rng.choices(PARTS, k=rng.randrange(30)))
            ends = {0}
            for s in scan_spans(scanner, text):
                ends.add(max(ends) + len(s))
            for m in re.finditer(scanner.fresh, text):
                assert m.end() in ends, (scanner.name, text, m.end())
                assert scan_spans(scanner, text[:m.end()]) + scan_spans(scanner, text[m.end():]) == scan_spans(scanner, text)
    assert whitespace_scanner([(0x3000, 0x3001)]).fresh is None


def test_spaces():
    assert [s.decode() for s in scan_spans(space_scanner(), "a▁b  c \n▁▁".encode())] == ["a", "▁b", "  c", " \n", "▁▁"]
    assert [s.decode() for s in scan_spans(whitespace_scanner([(0x20, 0x21), (0x3000, 0x3001)]), "a\u3000 b\n".encode())] == ["a", "\u3000 b\n"]


@pytest.mark.parametrize("name, pre", [("whitespace", Whitespace()), ("whitespace_split", WhitespaceSplit())])
def test_splitters(name, pre):
    rng, scanner, spaces = random.Random(4), split_scanner(name), "".join(chr(i) for i in np.flatnonzero(splitter_classes(pre) == SPACE))
    for _ in range(2000 // FEW):
        text = "".join(rng.choices([*"ab_1 '.!\n\t", "é", "\u0301", "\u200d", "你", "…", "\u00a0", "\u3000", "😀", "\x85", "\x1c"], k=rng.randrange(25)))
        found = [s.decode() for s in scan_spans(scanner, text.encode(), rng.randrange(1, 90))]
        assert "".join(found) == text
        assert [s.strip(spaces) for s in found if s.strip(spaces)] == pre.raw_pretokens(text), text


@pytest.mark.parametrize("norm", NORMALIZERS, ids=str)
def test_bert_spans_are_independent(norm):
    rng, scanner, pre, become = random.Random(5), bert_scanner(norm), BertPreTokenizer(), norm.normalize if norm else str
    pieces = ["a", "B", "é", "e\u0301", "\u0301", "\u0327", "\u0f71\u0f72", " ", "\n", "\u00a0", "\u2028", ",", ";", "\u037e", "你", "\uf900", "\x00", "\u200b", "한", "ﬁ", "İ", "=\u0338", "≠", "\U000e0100", "𖿰", "\u0378",
              "\ue000", "\ufffd", "\x85", "\u1fef", "\u0345", "\U0001d15e"]
    for _ in range(600 // FEW):
        text = "".join(rng.choices(pieces, k=rng.randrange(20)))
        assert [p for s in scan_spans(scanner, text.encode()) for p in pre.raw_pretokens(become(s.decode()))] == pre.raw_pretokens(become(text)), text


def test_what_is_not_known_character_by_character():
    for norm in (NFC(), Prepend("▁"), Sequence([Lowercase(), NFC()])):
        assert char_map(norm) is None and bert_scanner(norm) is None
    assert splitter_classes(Punctuation()) is None
    with pytest.raises(ValueError, match="whitespace_split"):
        split_scanner("bert")


@pytest.mark.slow
@pytest.mark.parametrize("norm", [n for n in NORMALIZERS if n in (Lowercase(), BertNormalizer(), BertNormalizer(strip_accents=False)) or isinstance(n, Sequence)], ids=str)
def test_the_map_of_every_code_point(norm):
    kinds, changed = char_map(norm)
    decomposes = "NFD" in str(norm) or isinstance(norm, BertNormalizer) and (norm.lowercase if norm.strip_accents is None else norm.strip_accents)
    for code in np.flatnonzero(kinds != ODD).tolist():
        c = chr(code)
        if 0xD800 <= code < 0xE000:
            continue
        got = {SAME: c, GONE: "", SPACED: f" {c} ", CHANGED: changed.get(code)}[int(kinds[code])]
        assert got == (norm.normalize(c) if norm else c), f"U+{code:04X}"
        assert not (decomposes and any(map(unicodedata.combining, got))), f"U+{code:04X} moves"
    odd = kinds == ODD
    assert odd.sum() < 821_000 and all(unicodedata.combining(chr(i)) or i > 0x370 for i in np.flatnonzero(odd[:0x800]).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("pre", [BertPreTokenizer(), Whitespace(), WhitespaceSplit()], ids=str)
def test_the_class_of_every_code_point(pre):
    classes = splitter_classes(pre)
    for page in range(0, 0x110000, 256):
        if 0xD800 <= page < 0xE000 or (classes[page:page + 256] == WORD).all() and page > 0x30000 and page % 0x1000:
            continue
        chars = [chr(code) for code in range(page, page + 256)]
        want = [p for c, k in zip(chars, classes[page:].tolist()) for p in {WORD: ["a" + c + c + "a"], SPACE: ["a", "a"], ALONE: ["a", c, c, "a"], OTHER: ["a", c + c, "a"]}[k]]
        assert pre.raw_pretokens(" ".join("a" + c + c + "a" for c in chars)) == want, f"page U+{page:04X}"


@pytest.mark.slow
def test_whole_corpora(shared_file):
    for name in ("udhr.txt.xz", "multilingual_mixed.txt.xz", "english_60mb.txt.xz"):
        with lzma.open(shared_file(f"corpus/{name}")) as f:
            text = f.read(4_000_000).decode(errors="ignore")
        for scanner, pre in ((bert_scanner(None), BertPreTokenizer()), (split_scanner("whitespace"), Whitespace())):
            spaces = "".join(chr(i) for i in np.flatnonzero(splitter_classes(pre) == SPACE))
            assert [w for s in scan_spans(scanner, text.encode()) if (w := s.decode().lstrip(spaces))] == pre.raw_pretokens(text)
        assert [s.decode() for s in scan_spans(safe_scanner(), text.encode())] == cut_words(text)
