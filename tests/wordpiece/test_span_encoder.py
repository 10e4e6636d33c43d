"""WordPiece on raw spans against the engine: real vocabularies, every code point, generated spans, hostile texts."""

import json
import random

import numpy as np
import pytest
from costs import assert_linear
from seeds import some_of

from subword_nb.core.jit import available
from subword_nb.core.simd import HEAD, buffer_of, scan_spans
from subword_nb.text.normalizers import NFC, NFD, BertNormalizer, Lowercase, Sequence, StripAccents
from subword_nb.text.pretokenizers import BertPreTokenizer, byte_level
from subword_nb.text.splitters import Whitespace, WhitespaceSplit
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.text.word_scanners import CONTEXTUAL, bert_scanner, char_map
from subword_nb.wordpiece.model import WordPiece
from subword_nb.wordpiece.span_encoder import WordPieceSpanEncoder, byte_trie, wordpiece_span_ref

pytestmark = pytest.mark.skipif(
    not available(), reason="thousands of spans need compiled kernels; the notebook tests plain Python"
)
CHARS = [
    *"abcdeTUVxyz019,.!+$_^~ ",
    "un",
    "aff",
    "able",
    "ing",
    "the",
    "E",
    "\n",
    "\t",
    "\x0b",
    "\u00a0",
    "\u2028",
    "é",
    "e\u0301",
    "\u0327",
    "\u0345",
    "\u0f71\u0f72",
    "你",
    "好",
    "\uf900",
    "\x00",
    "\x7f",
    "한",
    "ﬁ",
    "İ",
    "ᾂ",
    "Σ",
    "\u037e",
    "😀",
    "𖿰",
    "=\u0338",
    "≠",
    "\u0378",
    "\u200b",
    "\ufffd",
    "\ue000",
    "я",
    "ё",
    "ب",
    "हिन्दी",
    "ไทย",
    "a" * 99,
    "##",
]


def span_kernel(encoder, spans: list[bytes]) -> list:
    "The ids of each span, None where it is left."
    text, lengths = buffer_of(b"".join(spans)), np.array([len(s) for s in spans], np.int64)
    ids, bounds, extra = (
        np.full(4 * int(lengths.sum()) + 16 * len(spans), 12345678, np.uint32),
        np.empty(len(spans) + 1, np.int64),
        np.empty(len(spans), np.uint32),
    )
    encoder.span_kernel(text, HEAD + np.cumsum(lengths) - lengths, lengths, len(spans), ids, bounds, extra)
    assert set(extra.tolist()) <= {0, 1 << 24}
    return [
        None if x else ids[a:b].tolist()
        for a, b, x in zip(bounds.tolist(), bounds.tolist()[1:], extra.tolist())
    ]


def compare(model, normalizer, pre, spans: list[str]) -> int:
    "Hold the kernel against the parts; returns how many spans it left."
    invalid, left = char_map(normalizer).kinds == CONTEXTUAL, 0
    for span, ids in zip(
        spans, span_kernel(WordPieceSpanEncoder(model, normalizer, pre), [s.encode() for s in spans])
    ):
        if ids is None:
            left += 1
            assert model.unk_piece is None or invalid[[ord(c) for c in span]].any(), f"{span!r} was left"
        else:
            assert ids == wordpiece_span_ref(model, normalizer, pre, span.encode()), repr(span)
    return left


@pytest.fixture(scope="module", params=["uncased", "cased", "chinese"])
def tok(request, shared_file):
    return Tokenizer.load(shared_file(f"vocab/bert-base-{request.param}/vocab.txt"))


def test_generated_spans(tok):
    rng = random.Random(0)
    spans = ["".join(rng.choices(CHARS, k=rng.randrange(1, 9))) for _ in range(3000)]
    for normalizer in (
        tok.normalizer,
        BertNormalizer(),
        BertNormalizer(lowercase=False),
        BertNormalizer(clean_text=False, strip_accents=True, lowercase=False),
    ):
        assert compare(tok.model, normalizer, tok.pre_tokenizer, spans) < 600


@pytest.mark.parametrize("pre", [BertPreTokenizer(), Whitespace(), WhitespaceSplit()], ids=str)
@pytest.mark.parametrize(
    "normalizer",
    [
        None,
        Lowercase(),
        BertNormalizer(),
        BertNormalizer(handle_chinese_chars=False, strip_accents=False),
        Sequence([NFD(), Lowercase(), StripAccents()]),
    ],
    ids=str,
)
def test_small_vocabularies(normalizer, pre):
    rng = random.Random(1)
    for prefix in ("##", "", "▁é"):
        pieces = [
            "[UNK]",
            *{
                rng.choice(["", prefix])
                + "".join(rng.choices([*"abcdeé,!+你한#", "ing", "un"], k=rng.randrange(1, 4)))
                for _ in range(150)
            },
        ]
        model = WordPiece(
            {p: i for i, p in enumerate(pieces)}, rng.choice(["[UNK]", None]), prefix, rng.choice([1, 3, 100])
        )
        spans = ["".join(rng.choices(CHARS, k=rng.randrange(1, 6))) for _ in range(150)]
        if model.unk_piece is None:
            spans = [
                s
                for s, ids in zip(
                    spans,
                    span_kernel(WordPieceSpanEncoder(model, normalizer, pre), [s.encode() for s in spans]),
                )
                if ids is not None
            ]
        if spans:
            compare(model, normalizer, pre, spans)


def test_golden_texts_cut_into_spans(tok, shared_file):
    encoder, scanner = (
        WordPieceSpanEncoder(tok.model, tok.normalizer, tok.pre_tokenizer),
        bert_scanner(norm=tok.normalizer),
    )
    texts = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    texts = [t for t in (texts.values() if isinstance(texts, dict) else texts) if isinstance(t, str)]
    left = 0
    for text in texts:
        spans = [s for s in scan_spans(scanner, text.encode("utf-8", "replace")) if s]
        found = span_kernel(encoder, spans) if spans else []
        left += sum(ids is None for ids in found)
        want = tok.encode(
            text.encode("utf-8", "replace").decode(), add_special_tokens=False, allowed_special=()
        )
        assert [
            i
            for s, ids in zip(spans, found)
            for i in (
                wordpiece_span_ref(tok.model, tok.normalizer, tok.pre_tokenizer, s) if ids is None else ids
            )
        ] == want, text[:80]
    assert len(texts) > 50 and left < 100


@pytest.mark.slow
def test_every_code_point(tok):
    for around in ("{}", "a{}b", " {} ", "{}\u0301", "\u0f72{}"):
        codes = [
            i
            for i in range(0x110000)
            if not 0xD800 <= i < 0xE000 and (i < 0x30000 or 0xE0000 <= i < 0xE0200 or i % 997 == 0)
        ]
        spans = [around.format(chr(i)) for i in some_of(codes, around)]
        compare(tok.model, tok.normalizer, tok.pre_tokenizer, spans)


def test_hostile_spans_are_linear(tok):
    encoder = WordPieceSpanEncoder(tok.model, tok.normalizer, tok.pre_tokenizer)
    for text in (
        "a" * 100_000,
        "ab " * 30_000,
        " " * 100_000,
        "!" * 100_000,
        "你" * 30_000,
        "\u0301" * 50_000,
        "😀" * 25_000,
        "한" * 30_000,
        "ᾂ" * 30_000,
    ):
        assert span_kernel(encoder, [text.encode()])[0] == wordpiece_span_ref(
            tok.model, tok.normalizer, tok.pre_tokenizer, text.encode()
        )
        assert_linear(
            lambda text: span_kernel(encoder, [text.encode()]),
            text[: len(text) // 2],
            8 * len(text),
            what=text[:5],
        )


def test_words_up_to_the_limit(tok):
    compare(
        tok.model,
        tok.normalizer,
        tok.pre_tokenizer,
        ["a" * n for n in range(95, 105)] + ["한" * n for n in range(30, 40)] + ["é" * 100, "é" * 101],
    )


def test_what_is_refused():
    toy = WordPiece({"a": 0}, unk_piece="a")
    for normalizer, pre, says in (
        (NFC(), BertPreTokenizer(), "normalizer must be BertNormalizer"),
        (None, byte_level("gpt2"), "pre must be BertPreTokenizer"),
    ):
        with pytest.raises(ValueError, match=says):
            WordPieceSpanEncoder(toy, normalizer, pre)
    with pytest.raises(ValueError, match="encode without kernels"):
        byte_trie({"a": 1 << 20})
    assert len(byte_trie({})) > 256 and span_kernel(
        WordPieceSpanEncoder(toy, None, BertPreTokenizer()), [b"\xff", b"a\xff"]
    ) == [[], [0]]
