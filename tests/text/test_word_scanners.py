"""Scanning by classes: every block size and offset, every code point, and what normalizers and splitters make of the spans."""

import lzma
import re
import unicodedata

import numpy as np
import pytest
from seeds import TEXTS, fresh, some_of

from subword_nb.core.jit import available
from subword_nb.core.simd import HEAD, buffer_of, class_table, scan_spans
from subword_nb.core.table_cache import tables_folder
from subword_nb.text.normalizers import NFC, NFD, BertNormalizer, Lowercase, Prepend, Sequence, StripAccents
from subword_nb.text.pretokenizers import BertPreTokenizer
from subword_nb.text.splitters import Punctuation, Whitespace, WhitespaceSplit
from subword_nb.pipeline.encoder import encode_general
from subword_nb.corpus.segmentation import cut_words
from subword_nb.text.word_scanners import (
    ALONE,
    CHANGED,
    GONE,
    CONTEXTUAL,
    OTHER,
    SAME,
    SPACE,
    SPACED,
    WORD,
    bert_scanner,
    char_map,
    class_scanner,
    safe_scanner,
    space_scanner,
    split_scanner,
    splitter_classes,
    whitespace_scanner,
    word_classes,
    word_starts_ref,
)

MIXED = word_classes(
    space=[(32, 33), (0x2003, 0x2004), (0x85, 0x86)],
    alone=[(33, 34), (0x4E00, 0x9FFF)],
    other=[(43, 44), (0x1F600, 0x1F650), (0xD7, 0xD8)],
)
PARTS = [
    c.encode()
    for c in (
        "a",
        "b",
        " ",
        "  ",
        "!",
        "+",
        "é",
        "\u2003",
        "你",
        "😀",
        "×",
        "\x85",
        "𐍈",
        "abcdefghij" * 7,
        " " * 66,
        "你" * 23,
    )
] + [b"\xff"]
NORMALIZERS = [
    None,
    Lowercase(),
    BertNormalizer(),
    BertNormalizer(lowercase=False),
    BertNormalizer(strip_accents=False),
    BertNormalizer(clean_text=False),
    BertNormalizer(handle_chinese_chars=False),
    BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False),
    Sequence([NFD(), Lowercase(), StripAccents()]),
    Sequence([StripAccents(), BertNormalizer(lowercase=False)]),
]
FEW = 1 if available() else 40  # plain Python is slow


def spans_ref(text: bytes, classes) -> list[bytes]:
    "Spans by the plain rule."
    starts = [*word_starts_ref(text, classes), len(text)]
    return [text[a:b] for a, b in zip(starts, starts[1:])]


def test_every_offset_and_block():
    rng, scanner = fresh(0), class_scanner("mixed", MIXED)
    for k in range(3200 // FEW):
        text = b"x" * (k % 64) + b"".join(rng.choices(PARTS, weights=[6] * 13 + [1] * 4, k=rng.randrange(50)))
        for block in (1 << 16, rng.randrange(1, 200)):
            assert scan_spans(scanner, text, block=block) == spans_ref(text, MIXED), (text, block)


def test_every_cut_between_two_characters_at_every_offset():
    scanner = class_scanner("mixed", MIXED)
    chars = [c.encode() for c in "a !+é\u2003你😀×"] + [b"\xff"]
    for at in range(66) if available() else (0, 61, 63):
        for left in chars:
            text = b"x" * at + b"".join(left + right for right in chars)
            assert scan_spans(scanner, text) == spans_ref(text, MIXED), text


def test_nothing_is_written_beyond_the_contract():
    scanner, rng = class_scanner("mixed", MIXED), fresh(1)
    for make in (scanner, safe_scanner()):
        for n in (0, 1, 2, 63, 64, 65, 127, 200):
            text = bytes(rng.choice(b"! +a") for _ in range(n))
            for last in (False, True):
                starts, buffer = np.full(n + 40, 77, np.uint32), buffer_of(text)
                before = buffer.copy()
                k = make.scan(buffer, n, last, starts)
                assert (starts[n + 8 :] == 77).all() and (buffer == before).all()
                assert (
                    starts[0] == HEAD
                    and (np.diff(starts[: k + 1].astype(int)) > 0).all()
                    and starts[k] <= HEAD + n
                )
                assert starts[k] == HEAD + n or not last


def test_a_separator_stands_alone_at_every_offset():
    "Also where it is the only byte of its block that is not ASCII."
    for scanner in (safe_scanner(), space_scanner(), split_scanner("whitespace"), bert_scanner()):
        for at in range(200):
            data = ("ab cd ef " * 40)[:at].encode() + b"\xff" + b"gh ij " * 20
            assert b"\xff" in scan_spans(scanner, data), (scanner.name, at)


def test_safe_places_are_those_of_room_39():
    rng, scanner = fresh(2), safe_scanner()
    for k in range(3200 // FEW):
        text = "x" * (k % 64) + "".join(
            rng.choices(
                [
                    "a",
                    "Z",
                    "0",
                    " ",
                    " ",
                    ",",
                    "é",
                    "e\u0301",
                    "[",
                    "`",
                    "/",
                    ":",
                    "@",
                    "{",
                    "abcdefghij" * 7,
                ],
                k=rng.randrange(40),
            )
        )
        for block in (1 << 16, rng.randrange(1, 100)):
            assert [s.decode() for s in scan_spans(scanner, text.encode(), block=block)] == cut_words(text), (
                text,
                block,
            )
    assert scan_spans(scanner, b"a b\xff c d") == [b"a", b" b", b"\xff", b" c", b" d"]


def test_fresh_places_are_cuts():
    rng = fresh(3)
    for scanner in (
        class_scanner("mixed", MIXED),
        safe_scanner(),
        space_scanner(),
        split_scanner("whitespace"),
        bert_scanner(norm=BertNormalizer()),
    ):
        for _ in range(300 // FEW + 1):
            text = b"".join(rng.choices(PARTS, k=rng.randrange(30)))
            ends = {0}
            for s in scan_spans(scanner, text):
                ends.add(max(ends) + len(s))
            for m in re.finditer(scanner.safe_cut_regex, text):
                assert m.end() in ends, (scanner.name, text, m.end())
                assert scan_spans(scanner, text[: m.end()]) + scan_spans(
                    scanner, text[m.end() :]
                ) == scan_spans(scanner, text)
    assert whitespace_scanner([(0x3000, 0x3001)]).safe_cut_regex is None


def test_spaces():
    assert [s.decode() for s in scan_spans(space_scanner(), "a▁b  c \n▁▁".encode())] == [
        "a",
        "▁b",
        "  c",
        " \n",
        "▁▁",
    ]
    assert [
        s.decode()
        for s in scan_spans(whitespace_scanner([(0x20, 0x21), (0x3000, 0x3001)]), "a\u3000 b\n".encode())
    ] == ["a", "\u3000 b\n"]


@pytest.mark.parametrize("name, pre", [("whitespace", Whitespace()), ("whitespace_split", WhitespaceSplit())])
def test_splitters(name, pre):
    rng, scanner, spaces = (
        fresh(4),
        split_scanner(name),
        "".join(chr(i) for i in np.flatnonzero(splitter_classes(pre) == SPACE)),
    )
    for _ in range(2000 // FEW):
        text = "".join(
            rng.choices(
                [
                    *"ab_1 '.!\n\t",
                    "é",
                    "\u0301",
                    "\u200d",
                    "你",
                    "…",
                    "\u00a0",
                    "\u3000",
                    "😀",
                    "\x85",
                    "\x1c",
                ],
                k=rng.randrange(25),
            )
        )
        found = [s.decode() for s in scan_spans(scanner, text.encode(), block=rng.randrange(1, 90))]
        assert "".join(found) == text
        assert [s.strip(spaces) for s in found if s.strip(spaces)] == pre.raw_pretokens(text), text


@pytest.mark.parametrize("norm", NORMALIZERS, ids=str)
def test_bert_spans_are_independent(norm):
    rng, scanner, pre, become = (
        fresh(5),
        bert_scanner(norm=norm),
        BertPreTokenizer(),
        norm.normalize if norm else str,
    )
    pieces = [
        "a",
        "B",
        "é",
        "e\u0301",
        "\u0301",
        "\u0327",
        "\u0f71\u0f72",
        " ",
        "\n",
        "\u00a0",
        "\u2028",
        ",",
        ";",
        "\u037e",
        "你",
        "\uf900",
        "\x00",
        "\u200b",
        "한",
        "ﬁ",
        "İ",
        "=\u0338",
        "≠",
        "\U000e0100",
        "𖿰",
        "\u0378",
        "\ue000",
        "\ufffd",
        "\x85",
        "\u1fef",
        "\u0345",
        "\U0001d15e",
    ]
    for _ in range(600 // FEW):
        text = "".join(rng.choices(pieces, k=rng.randrange(20)))
        assert [
            p for s in scan_spans(scanner, text.encode()) for p in pre.raw_pretokens(become(s.decode()))
        ] == pre.raw_pretokens(become(text)), text


def test_what_is_not_known_character_by_character():
    for norm in (NFC(), Prepend("▁"), Sequence([Lowercase(), NFC()])):
        assert char_map(norm) is None and bert_scanner(norm=norm) is None
    assert splitter_classes(Punctuation()) is None
    with pytest.raises(ValueError, match="whitespace_split"):
        split_scanner("bert")


@pytest.mark.slow
@pytest.mark.parametrize(
    "norm",
    [
        n
        for n in NORMALIZERS
        if n in (Lowercase(), BertNormalizer(), BertNormalizer(strip_accents=False))
        or isinstance(n, Sequence)
    ],
    ids=str,
)
def test_the_map_of_every_code_point(norm):
    kinds, changed = char_map(norm)
    decomposes = (
        "NFD" in str(norm)
        or isinstance(norm, BertNormalizer)
        and (norm.lowercase if norm.strip_accents is None else norm.strip_accents)
    )
    for code in np.flatnonzero(kinds != CONTEXTUAL).tolist():
        c = chr(code)
        if 0xD800 <= code < 0xE000:
            continue
        got = {SAME: c, GONE: "", SPACED: f" {c} ", CHANGED: changed.get(code)}[int(kinds[code])]
        assert got == (norm.normalize(c) if norm else c), f"U+{code:04X}"
        assert not (decomposes and any(map(unicodedata.combining, got))), f"U+{code:04X} moves"
    invalid = kinds == CONTEXTUAL
    assert invalid.sum() < 821_000 and all(
        unicodedata.combining(chr(i)) or i > 0x370 for i in np.flatnonzero(invalid[:0x800]).tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("pre", [BertPreTokenizer(), Whitespace(), WhitespaceSplit()], ids=str)
def test_the_class_of_every_code_point(pre):
    classes = splitter_classes(pre)
    for page in some_of(range(0, 0x110000, 256), str(pre)):
        if (
            0xD800 <= page < 0xE000
            or (classes[page : page + 256] == WORD).all()
            and page > 0x30000
            and page % 0x1000
        ):
            continue
        chars = [chr(code) for code in range(page, page + 256)]
        want = [
            p
            for c, k in zip(chars, classes[page:].tolist())
            for p in {
                WORD: ["a" + c + c + "a"],
                SPACE: ["a", "a"],
                ALONE: ["a", c, c, "a"],
                OTHER: ["a", c + c, "a"],
            }[k]
        ]
        assert pre.raw_pretokens(" ".join("a" + c + c + "a" for c in chars)) == want, f"page U+{page:04X}"


@pytest.mark.slow
def test_whole_corpora(shared_file):
    for name in ("udhr.txt.xz", "multilingual_mixed.txt.xz", "english_60mb.txt.xz"):
        with lzma.open(shared_file(f"corpus/{name}")) as f:
            text = f.read(4_000_000).decode(errors="ignore")
        for scanner, pre in (
            (bert_scanner(norm=None), BertPreTokenizer()),
            (split_scanner("whitespace"), Whitespace()),
        ):
            spaces = "".join(chr(i) for i in np.flatnonzero(splitter_classes(pre) == SPACE))
            assert [
                w for s in scan_spans(scanner, text.encode()) if (w := s.decode().lstrip(spaces))
            ] == pre.raw_pretokens(text)
        assert [s.decode() for s in scan_spans(safe_scanner(), text.encode())] == cut_words(text)


REAL = [
    "bert-base-uncased/tokenizer.json",
    "bert-base-cased/vocab.txt",
    "bert-base-chinese/vocab.txt",
    "bert-base-multilingual-cased/vocab.txt",
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
    "xlnet-base-cased/spiece.model",
]
ODD_RANGES = [  # scripts that vocabularies lack, marks, Chinese, controls, unassigned and private characters, and everything
    (0x1780, 0x17FA),
    (0x1200, 0x1380),
    (0x13A0, 0x1400),
    (0xA000, 0xA0FF),
    (0x10330, 0x10350),
    (0x12000, 0x12100),
    (0x13000, 0x13100),
    (0x0300, 0x0370),
    (0x0591, 0x05C8),
    (0x0E31, 0x0E50),
    (0x1AB0, 0x1AFF),
    (0x20D0, 0x20F1),
    (0xFE00, 0xFE10),
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x20400),
    (0xF900, 0xFB00),
    (0x0, 0x20),
    (0x7F, 0xA0),
    (0x200B, 0x2070),
    (0x0378, 0x0390),
    (0x30000, 0x30100),
    (0xE000, 0xE010),
    (0xF0000, 0xF0010),
    (0xFFF0, 0x10000),
    (0x1100, 0x1200),
    (0xAC00, 0xD7A4),
    (0x3130, 0x3190),
    (0x1F600, 0x1F650),
    (0x1F1E6, 0x1F200),
    (0x0400, 0x0500),
    (0x10400, 0x10450),
    (0x1E900, 0x1E95E),
    (0x1F00, 0x2000),
    (0x0100, 0x0250),
    (0x2100, 0x2190),
    (0xFF00, 0xFFF0),
    (0x1D400, 0x1D500),
    (0xE0000, 0xE0080),
    (0x1E000, 0x1E030),
    (0x0, 0x110000),
    (0x80, 0x3000),
]
ODD_WORDS = [
    "the",
    "The",
    "THE",
    "don't",
    "DON'T",
    "l’été",
    "rock ʼn",
    "İ",
    "i̇",
    "ſ",
    "ß",
    "ẞ",
    "\u212a",
    "\u212b",
    "Σας",
    "ᾼ",
    "\u0345",
    "α\u0345",
    "ǅ",
    "ŉ",
    "ﬁ",
    "\u1100\u1161\u11a8",
    "각",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u00ad",
    "\x00",
    "\ufffd",
    ",",
    ".",
    "'",
    "’",
    "▁",
    "<unk>",
    "[UNK]",
    "ខ្មែរ",
    "។",
    "🤗",
    "👩🏽‍🚀",
    "I",
    "K",
    "a" * 101,
    "\u17d2" * 40,
    "X" * 64,
    "\u00a0",
    "\u2028",
    "\u3000",
    "\t",
    "\n",
    "  ",
]


def odd_strings(n, seed):
    "Runs of unusual characters, with and without words, capitals and spaces between."
    rng = fresh(seed)

    def run():
        if rng.random() < 0.4:
            return rng.choice(ODD_WORDS)
        a, b = rng.choice(ODD_RANGES)
        return "".join(
            chr(c)
            for c in (rng.randrange(a, b) for _ in range(rng.choice([1, 1, 2, 3, 6])))
            if not 0xD800 <= c < 0xE000
        )

    return [
        "".join(run() + rng.choice(["", "", " ", ",", "x"]) for _ in range(rng.choice([1, 2, 3, 8, 30])))
        for _ in range(n)
    ]


@pytest.fixture(params=REAL)
def real(request, shared_file, monkeypatch):
    "(tokenizer, its file); everything goes in bulk."
    from subword_nb import Tokenizer
    from subword_nb.pipeline import blocks
    from subword_nb.pipeline.encoder import encoder_of

    if not available():
        pytest.skip("there are no kernels without Numba")
    path = shared_file(f"vocab/{request.param}")
    monkeypatch.setattr(blocks.SIZES, "bulk", 0)
    monkeypatch.setattr(blocks.SIZES, "loaded", 0)
    tok = Tokenizer.load(path)
    tok.truncation = tok.padding = None
    assert encoder_of(tok, allowed_special=()).bulk is not None
    return tok, path, lambda size: monkeypatch.setattr(blocks.SIZES, "block", size)


@pytest.mark.slow
def test_odd_characters_in_bulk(real):
    "Characters taken for one another, capitals lowered in the buffer, words cut inside: the ids stay."
    tok, path, cut_at = real
    texts = odd_strings(3 * TEXTS, 0)
    expected = [encode_general(tok, t, add_special_tokens=False, allowed_special=()) for t in texts]
    for block in (1 << 18, 64, 7):
        cut_at(block)
        for text, a, b in zip(
            texts, tok.encode_batch(texts, add_special_tokens=False, allowed_special=()).tolist(), expected
        ):
            assert a == b, (path.name, block, ascii(text))
    whole = "".join(texts)
    assert tok.encode_array(
        whole, add_special_tokens=False, allowed_special=(), threads=2
    ).tolist() == encode_general(tok, whole, add_special_tokens=False, allowed_special=())


@pytest.mark.slow
def test_every_character_in_bulk(real):
    "Each character alone, in a word, as a capital's neighbour and before a mark, in one table."
    tok, path, _ = real
    for form in ("{}", "a{}b", "A{}\u17d2,", "{}\u0301x"):
        texts = [
            " ".join(form.format(chr(c)) for c in range(a, a + 64))
            for a in some_of(
                [
                    *range(0, 0x3400, 64),
                    *range(0x4E00, 0x5000, 64),
                    *range(0xA000, 0xAE00, 64),
                    *range(0xE000, 0x1FC00, 64),
                    *range(0x1FC00, 0x110000, 0x4000),
                ],
                form,
            )
            if not 0xD7C0 < a < 0xE000
        ]
        for text, ids in zip(
            texts, tok.encode_batch(texts, add_special_tokens=False, allowed_special=()).tolist()
        ):
            assert ids == encode_general(tok, text, add_special_tokens=False, allowed_special=()), (
                path.name,
                ascii(text)[:200],
            )


@pytest.mark.peers
def test_odd_characters_as_the_peers_have_them(real):
    tok, path, _ = real
    texts = [t for t in odd_strings(2000, 1) if t.strip()]
    if path.suffix == ".model":
        peer = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(path))
        texts = [t for t in texts if "\x00" not in t]
        expected = [peer.encode(t) for t in texts]
    else:
        tokenizers = pytest.importorskip("tokenizers")
        peer = (
            tokenizers.Tokenizer.from_file(str(path))
            if path.suffix == ".json"
            else tokenizers.BertWordPieceTokenizer(
                str(path), lowercase=tok.normalizer.lowercase, strip_accents=tok.normalizer.strip_accents
            )
        )
        if path.suffix == ".json":
            peer.no_truncation()
            peer.no_padding()
        expected = [e.ids for e in peer.encode_batch(texts, add_special_tokens=False)]
    found = tok.encode_batch(
        texts, add_special_tokens=False, **({"allowed_special": ()} if path.suffix == ".model" else {})
    ).tolist()
    for text, a, b in zip(texts, found, expected):
        assert a == b, (path.name, ascii(text))


def test_one_character_stands_for_those_alike():
    "Widths and classes are kept, spans stay where they are, and what is alike gives the same spans."
    alike = np.zeros(0x110000, bool)
    alike[0x370:0x10000] = alike[0x1F600:0x1F650] = True
    scanner, rng = class_scanner("alike", MIXED, alike=alike, lower=True), fresh(8)
    for k in range(1500 // FEW):
        text = "x" * (k % 64) + "".join(
            rng.choices(
                [
                    "a",
                    "B",
                    " ",
                    "!",
                    "+",
                    "é",
                    "×",
                    "я",
                    "ж",
                    "ქ",
                    "你",
                    "好",
                    "\u2003",
                    "😀",
                    "😃",
                    "𐍈",
                    "\xff",
                    "ABC" * 22,
                ],
                k=rng.randrange(40),
            )
        )
        data, starts = text.encode(), np.empty(len(text.encode()) + 8, np.uint32)
        buffer = buffer_of(data)
        n = scanner.scan(buffer, len(data), True, starts)
        after = bytes(buffer[HEAD : HEAD + len(data)]).decode()
        assert [
            bytes(data[a - HEAD : b - HEAD]) for a, b in zip(starts[:n].tolist(), starts[1 : n + 1].tolist())
        ] == spans_ref(data, MIXED)
        assert [len(c.encode()) for c in after] == [len(c.encode()) for c in text]
        for c, d in zip(text, after):
            if c.isascii():
                assert d == c.lower()
            elif alike[ord(c)]:
                assert alike[ord(d)] and MIXED[ord(c)] == MIXED[ord(d)]
            else:
                assert c == d
        assert (
            len(
                {
                    d
                    for c, d in zip(text, after)
                    if alike[ord(c)] and MIXED[ord(c)] == WORD and len(d.encode()) == 2
                }
            )
            < 2
        )


def test_tables_of_classes_give_the_class_of_every_character():
    rng, codes = np.random.default_rng(0), np.arange(0x110000)
    runs = np.repeat(rng.integers(0, 3, 0x1100 * 2), 128).astype(
        np.uint8
    )  # pages repeat, next to each other or not
    for classes in (MIXED, runs, rng.integers(0, 4, 0x110000).astype(np.uint8), np.zeros(0x110000, np.uint8)):
        pages, flat = class_table(classes)
        assert (flat[pages[codes >> 8].astype(np.int64) << 8 | codes & 255] == classes).all()
        assert len({row.tobytes() for row in flat.reshape(-1, 256)}) == len(flat) // 256
        assert (pages.dtype, flat.dtype) == (np.uint16, np.uint8)


def test_stored_classes_of_bert_are_those_computed(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path))
    monkeypatch.delenv("SUBWORD_NB_TABLES", raising=False)
    seen = set()
    for norm in (None, BertNormalizer(), BertNormalizer(lowercase=False)):
        for known in (None, "", "abc", "é語"):
            computed, stored = (bert_scanner(norm=norm, known=known) for _ in range(2))
            assert (computed.name, computed[2]) == (stored.name, stored[2])
            for a, b in zip(computed.scan.args, stored.scan.args, strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
            seen.add(b"|".join(a.tobytes() for a in stored.scan.args))
    assert len([*tables_folder().iterdir()]) == 12 and len(seen) >= 6
