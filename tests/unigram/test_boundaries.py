"""Unigram in bulk: spans, kernels and settling against the engine, on real vocabularies and on models made up."""

import json
import threading
from functools import partial

import numpy as np
import pytest
from seeds import TEXTS, fresh, some_of
from costs import assert_linear

from subword_nb import Tokenizer
from subword_nb.core import jit
from subword_nb.text.charsmap import build_charsmap, graphemes
from subword_nb.pipeline.encoder import encoder_of
from subword_nb.core.simd import HEAD, buffer_of
from subword_nb.text.normalizers import Precompiled, Replace, Sequence, Strip
from subword_nb.text.pretokenizers import Metaspace, Sequence as Steps
from subword_nb.text.splitters import Split, WhitespaceSplit, WholeText
from subword_nb.formats.sentencepiece_models import SentencePieceUnigram, sentencepiece_unigram_ref
from subword_nb.formats.sentencepiece_normalizer import SentencePieceNormalizer
from subword_nb.core.span_cache import IdBuffer, SpanTable, encode_spans
from subword_nb.unigram.span_encoder import CONTROLS, DROPPED, EXTENDS, JOINS, PREPENDS
from subword_nb.unigram.model import Unigram, unigram_model
from subword_nb.unigram.boundaries import UnigramSpanEncoder, kinds_in_clusters, unigram_spans
from subword_nb.text.word_scanners import whitespace_scanner

REAL = [
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
    "pegasus/tokenizer.json",
    "xlnet-base-cased/spiece.model",
]
pytestmark = pytest.mark.skipif(not jit.available(), reason="bulk encoding needs Numba")


class Parts:
    "What a plan is made from."

    def __init__(self, model, norm, pre):
        self.model, self.norm, self.pre, self.has_normalized_added = model, norm, pre, False

    def ids(self, text):
        "The plain way."
        text = self.norm.normalize(text) if self.norm else text
        return [
            i
            for raw in self.pre.raw_pretokens(text, first=True)
            for i in self.model.encode(self.pre.piece_of(raw))
        ]


def plan_of(c):
    "(scanner, opening, encoder, the model in Python) of a tokenizer; None if words are not known to stand alone."
    if (spans := unigram_spans(c.model, c.norm, c.pre)) is None:
        return None
    later = (
        SentencePieceNormalizer(c.norm.charsmap, False, False, user_defined=c.norm.user_defined)
        if isinstance(c.norm, SentencePieceNormalizer) and not c.norm.remove_extra_whitespaces
        else c.norm
    )

    def encode_span(span):
        text = later.normalize(span.decode()) if later else span.decode()
        return [
            i for raw in c.pre.raw_pretokens(text, first=False) for i in c.model.encode(c.pre.piece_of(raw))
        ]

    return (
        whitespace_scanner(spans.space),
        lambda d: spans.prefix if d and not d.startswith(spans.unless) else b"",
        UnigramSpanEncoder(c.model, normalizer=c.norm, pre=c.pre),
        encode_span,
    )


def run(plan, text, block=1 << 16, table=None):
    "(ids, ends of documents) of bytes, block by block, as a driver does it."
    (scanner, dummy_prefix, encoder, encode_span), sums = plan, np.zeros(1)
    assert not any(b in text for b in encoder.spans.forbidden_bytes)
    rescore_float32 = (
        (lambda *args: encoder.rescore_float32(*args, sums)) if encoder.spans.sums_continue else None
    )
    documents = [dummy_prefix(d) + d for d in text.split(b"\xff")]
    text, at, table = b"\xff".join(documents), 0, table or SpanTable()
    id_buffer, size = IdBuffer(max(8, len(text) // 4), documents=len(documents)), block
    while at < len(text):
        end = min(len(text), at + size)
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        buffer, starts = buffer_of(text[at:end]), np.empty(end - at + 8, np.uint32)
        k = scanner.scan(buffer, end - at, end == len(text), starts)
        size = block if k else 2 * size
        if k:
            encode_spans(
                buffer,
                starts,
                k,
                table,
                id_buffer,
                encoder.span_kernel,
                encode_span,
                rescore_float32=rescore_float32,
            )
            at += int(starts[k]) - HEAD
    return id_buffer.ids().tolist(), id_buffer.ends[: id_buffer.state[1]].tolist()


def span_ids(encoder, spans):
    "The kernel's ids of spans; None where Python has to say."
    length = np.array([len(s) for s in spans], np.int64)
    at, m = HEAD + np.cumsum(length) - length, len(spans)
    ids, bounds, extra = (
        np.empty(4 * int(length.sum()) + 16 * m, np.uint32),
        np.zeros(m + 1, np.int64),
        np.zeros(m, np.uint32),
    )
    encoder.span_kernel(buffer_of(b"".join(spans)), at, length, m, ids, bounds, extra)
    return [None if e >> 24 else ids[a:b].tolist() for a, b, e in zip(bounds[:-1], bounds[1:], extra)]


@pytest.fixture(scope="module", params=REAL)
def real(request, shared_file):
    "(tokenizer, its plan where special tokens are ordinary text)"
    tok = Tokenizer.load(shared_file(f"vocab/{request.param}"))
    tok.truncation = tok.padding = None
    return tok, plan_of(encoder_of(tok, allowed_special=()))


def plain(tok, text):
    c = encoder_of(tok, allowed_special=())
    return Parts(c.model, c.norm, c.pre).ids(text)


def test_kinds_are_those_of_all_characters():
    kinds = kinds_in_clusters()
    codes = [i for i in range(0x10000) if not 0xD800 <= i < 0xE000 and i != 10]
    for kind, front, back, joins in [
        (EXTENDS, "a", "", True),
        (PREPENDS, "", "a", True),
        (CONTROLS, "", "\u0301", False),
    ]:
        found = {*graphemes("\n".join(front + chr(i) + back for i in codes))}
        assert [i for i in codes if (front + chr(i) + back in found) == joins] == [
            i for i in codes if kinds[i] == kind
        ]


def test_characters_of_no_kind_begin_a_cluster():
    kinds = kinds_in_clusters()
    joining = {chr(i) for i in np.flatnonzero(kinds == JOINS)}
    assert {*"각가각क©™‼ℹ"} <= joining and not joining & {*"aéΩ日あ\u0301\u0600"}
    rng, codes = fresh(2), [i for i in range(0x20, 0x10000) if not 0xD800 <= i < 0xE000]
    for _ in range(20 * TEXTS):
        i, j = rng.choices(codes, k=2)
        if kinds[i] != PREPENDS and kinds[j] not in (EXTENDS, JOINS):
            assert graphemes(chr(i) + chr(j)) == [chr(i), chr(j)]


def test_strings_of_many_kinds(real, shared_file):
    tok, plan = real
    strings = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    table = SpanTable()
    for s in strings:
        s = s.encode("utf-8", "replace").decode()
        assert run(plan, s.encode(), table=table)[0] == plain(tok, s), s


def test_documents_and_blocks(real, shared_file):
    tok, plan = real
    text = (
        shared_file("corpus/english_small.txt").read_text(encoding="utf-8")[:40_000]
        + "½ e\u0301 \u00a0 日本語 ﷽ \t\r\n  " * 20
    )
    documents = [text[i : i + 3000] for i in range(0, len(text), 3000)]
    expected = [plain(tok, d) for d in documents]
    for block in (1 << 16, 4096, 333):
        ids, ends = run(plan, b"\xff".join(d.encode() for d in documents), block)
        assert ids == [i for e in expected for i in e]
        assert ends == np.cumsum([len(e) for e in expected])[:-1].tolist()


CHARACTERS = [
    *"abcxyzABC019.,-()'\"  \t\n\r",
    "\r\n",
    "é",
    "e",
    "\u0301",
    "\u0323",
    "\u0300",
    "▁",
    "½",
    "ﬁ",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\u200d",
    "\u00ad",
    "©",
    "\ufe0f",
    "한",
    "ᄒ",
    "ᅡ",
    "ᆫ",
    "क",
    "\u094d",
    "ष",
    "ि",
    "\u0600",
    "\u06dd",
    "🤗",
    "👩",
    "🇩",
    "🇪",
    "\U000110bd",
    "\U0001d165",
    "日",
    "が",
    "か",
    "\u3099",
    "ﾞ",
    "ｶ",
    "\x01",
    "\x7f",
    "\ufffd",
    "ǅ",
    "﷽",
    "\u0344",
    "<eop>",
    "<unk>",
    "</s>",
]


def test_signs_that_join_what_follows(real):
    tok, plan = real
    for text in (
        "C\U000110bd\xa0\ufe0fx",
        "C\u0600\xa0\ufe0fx",
        "\u0600 \ufe0fx",
        "\U000110bd e\u0301",
        "👩\u200d©\ufe0fx",
        "\u0600\u0600e\u0301",
        "\U000110bde\u0301",
        "a🤗",
        "½🤗",
        "\t🤗",
        "ᄒ\u1161\u0301",
    ):
        assert run(plan, text.encode())[0] == plain(tok, text), ascii(text)


def test_signs_that_join_what_follows_are_no_reason_to_ask(real):
    "One such sign in a long text without spaces would have all of it done the slow way."
    tok, plan = real
    encoder, rng = (
        UnigramSpanEncoder(
            encoder_of(tok, allowed_special=()).model, normalizer=tok.normalizer, pre=tok.pre_tokenizer
        ),
        fresh("signs"),
    )
    signs = [chr(i) for i in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x8E2, 0xD4E)]
    for _ in range(TEXTS):
        text = "".join(
            rng.choices(
                [
                    *signs,
                    "a",
                    "é",
                    "日",
                    "한",
                    "क",
                    "\u0301",
                    "\u0323",
                    "\u200d",
                    "½",
                    "\xa0",
                    "\x01",
                    "🤗",
                    "ﬁ",
                    "Ａ",
                ],
                k=rng.randrange(1, 12),
            )
        )
        assert run(plan, text.encode())[0] == plain(tok, text), ascii(text)
    assert None not in span_ids(encoder, [f" {sign}a".encode() for sign in signs])


def test_clusters_of_every_kind(real):
    tok, plan = real
    rng, encoder = (
        fresh(0),
        UnigramSpanEncoder(
            encoder_of(tok, allowed_special=()).model, normalizer=tok.normalizer, pre=tok.pre_tokenizer
        ),
    )
    texts = ["".join(rng.choices(CHARACTERS, k=rng.choice([1, 2, 3, 5, 9, 20]))) for _ in range(TEXTS)]
    for text in texts:
        assert run(plan, text.encode())[0] == plain(tok, text), ascii(text)
    spans = [
        (" " + t.replace(" ", "").replace("\t", "").replace("\n", "").replace("\r", "")).encode()
        for t in texts
    ]
    assert sum(ids is None for ids in span_ids(encoder, spans)) < len(spans) // 2


MARKS = [
    chr(i) for i in [*range(0x300, 0x346), 0x591, 0x64B, 0x93C, 0x94D, 0x9BE, 0x200D, 0x20E3, 0x3099, 0xFE0F]
]
JOINING = [*"ᄀ까ᅢᆨ가각कय™‼ℹⓂ㊗㊙©®❤\u0958\u095f\u09dc\u0b5c\u0a33"]
OTHERS = [*"ẀẛάΩÅ⼀\u3000\u2002Ａﬁㄱ\xa0½;\u0600\u06dd\u0d4e\x01\xad\u200b😀🏻🇦Ae "]


def text_of_clusters(rng):
    "A text of clusters whose letters the map replaces, or of any characters below U+3000."
    if rng.random() < 0.3:
        return "".join(chr(rng.randrange(1, 0x3000)) for _ in range(rng.choice([5, 50, 400])))
    return "".join(rng.choice(rng.choice([MARKS, JOINING, OTHERS])) for _ in range(rng.choice([2, 4, 8, 20])))


def test_clusters_whose_letters_are_replaced(real):
    tok, plan = real
    rng, table = fresh(4), SpanTable()
    for _ in range(TEXTS):
        text = text_of_clusters(rng)
        assert run(plan, text.encode(), table=table)[0] == plain(tok, text), ascii(text)
    words = [
        "".join(chr(rng.randrange(0x1E00, 0x2000)) + rng.choice(MARKS[:70]) for _ in range(50))
        for _ in range(50)
    ]
    assert None not in span_ids(plan[2], [f" {word}".encode() for word in words])


@pytest.mark.peers
@pytest.mark.parametrize("name", ["t5-small", "pegasus", "barthez"])
def test_clusters_as_in_tokenizers(name, shared_file):
    tokenizers = pytest.importorskip("tokenizers")
    path = shared_file(f"vocab/{name}/tokenizer.json")
    ours, theirs = Tokenizer.load(path), tokenizers.Tokenizer.from_file(str(path))
    ours.truncation = ours.padding = None
    theirs.no_truncation()
    theirs.no_padding()
    rng = fresh(5)
    texts = [text_of_clusters(rng) for _ in range(10 * TEXTS)]
    for text, a, b in zip(texts, ours.encode_batch(texts), theirs.encode_batch(texts), strict=True):
        assert list(a) == b.ids, ascii(text)


WHITE = [" ", "\t", "\n", "\r", "\f"]  # the map takes a vertical tab away


def test_white_space_is_dropped_without_a_look_at_the_map(real):
    tok, plan = real
    before_ascii, dropped = plan[2].tables.chars[:256], {c for c in WHITE if not plain(tok, f"{c}{c}")}
    if " " not in dropped:
        return  # each space is a piece of its own
    assert {chr(c) for c in np.flatnonzero(before_ascii == DROPPED)} == dropped
    rng = fresh(3)
    for _ in range(TEXTS):
        text = "".join(
            rng.choices(
                [*WHITE, "\v", "\r\n", "\u0301", "\u00a0", "\x01", "▁", "a", "hello"],
                k=rng.choice([2, 9, 60]),
            )
        )
        assert run(plan, text.encode())[0] == plain(tok, text), ascii(text)


@pytest.mark.slow
def test_every_character(real):
    tok, plan = real
    table = SpanTable()
    for front, back in [("", ""), ("a", "b"), ("", "\u0301x")]:
        for a in some_of(range(0, 0x110000, 0x200), front, back):
            text = "\n".join(front + chr(i) + back for i in range(a, a + 0x200) if not 0xD800 <= i < 0xE000)
            assert run(plan, text.encode(), table=table)[0] == plain(tok, text), hex(a)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["corpus/english_small.txt", "corpus/wagahaiwa_nekodearu.txt", "corpus/tinyshakespeare.txt"]
)
def test_whole_books(real, shared_file, name):
    tok, plan = real
    text = shared_file(name).read_text(encoding="utf-8")
    assert run(plan, text.encode())[0] == plain(tok, text)


RULES = {
    "\t": " ",
    "\n": " ",
    "A": "a",
    "e\u0301": "é",
    "½": "1⁄2",
    "\u00a0": " ",
    "\x01": "",
    "´": " ́",
    "▁": " ",
    "b\u0301": "ab",
}
LETTERS = [
    "a",
    "a",
    "b",
    "b",
    "é",
    "A",
    "e",
    "\u0301",
    "½",
    "€",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "▁",
    "\x01",
    "´",
    "\u0600",
    "\u200d",
    "🤗",
]
MAPPED, BLOB = Precompiled(build_charsmap(RULES)), build_charsmap(RULES)
RUNS, BOTH = Replace(" {2,}", " ", True), Steps([WhitespaceSplit(), Metaspace()])
MARKED = Split("▁", "merged_with_next")
PIPELINES = [
    (None, BOTH),
    (MAPPED, BOTH),
    (MAPPED, Steps([WhitespaceSplit(), Metaspace("▁", "never")])),
    (MAPPED, Steps([WhitespaceSplit(), Metaspace("▁", "always", split=False)])),
    (MAPPED, WhitespaceSplit()),
    (Sequence([MAPPED, RUNS]), BOTH),
    (None, Metaspace()),
    (None, Metaspace("▁", "never")),
    (None, Metaspace("▁", "first")),
    (Replace(" ", "▁"), MARKED),
    (Replace(" ", "▁"), Split({"String": "▁"}, "merged_with_next")),
    (Strip(), BOTH),
    (
        Sequence(
            [
                Precompiled(
                    build_charsmap(
                        {
                            "A": "a",
                            "▁": " ",
                            **{
                                chr(i): " "
                                for i in [
                                    9,
                                    10,
                                    11,
                                    12,
                                    13,
                                    0x85,
                                    0xA0,
                                    0x1680,
                                    *range(0x2000, 0x200B),
                                    0x2028,
                                    0x2029,
                                    0x202F,
                                    0x205F,
                                    0x3000,
                                ]
                            },
                        }
                    )
                ),
                Strip(False, True),
                RUNS,
            ]
        ),
        Metaspace(),
    ),
]


def rnd_unigram(rng, kind=Unigram, own=False, never="?"):
    pieces = {"".join(rng.choices("ab▁é", k=rng.randrange(1, 4))) for _ in range(9)} | set(
        rng.sample("ab▁é1", 3)
    )
    pieces = {p for p in pieces if not own or "▁" not in p.lstrip("▁")} | ({"▁"} if own else set())
    pieces = {p for p in pieces if never not in p[1:]}
    scale = rng.choice([1, 50, 5000]) if own else 1
    rows = [
        ("<unk>", 0.0),
        *((p, scale * rng.choice([-1.0, -2.0, -2.0001, -4.0])) for p in sorted(pieces)),
        *((f"<0x{b:02X}>", -9.0) for b in range(256)),
    ]
    model = kind({p: i for i, (p, _) in enumerate(rows)}, [s for _, s in rows], "<unk>", rng.random() < 0.3)
    if not own:
        model.fuse_unk = rng.random() < 0.7
    return model


@pytest.mark.parametrize("k", range(len(PIPELINES)))
def test_pipelines_made_up(k):
    rng, (norm, pre) = fresh(k), PIPELINES[k]
    for _ in range(max(1, TEXTS // 200)):
        parts = Parts(rnd_unigram(rng), norm, pre)
        plan = plan_of(parts)
        assert plan is not None
        for _ in range(20):
            text = "".join(rng.choices(LETTERS, k=rng.choice([0, 1, 2, 5, 12, 30])))
            assert run(plan, text.encode(), rng.choice([7, 1 << 16]))[0] == parts.ids(text), repr(text)


@pytest.mark.parametrize("extra", [True, False])
@pytest.mark.parametrize("pre", [WholeText(), Metaspace("▁", "never")])
def test_sentencepiece_made_up(extra, pre):
    rng = fresh(int(extra))
    for k in range(max(1, TEXTS // 100)):
        norm = SentencePieceNormalizer(
            BLOB if extra or k % 2 else b"",
            extra or k % 3 > 0,
            extra,
            user_defined=("ab", "€") if k % 4 == 0 else (),
        )
        parts = Parts(rnd_unigram(rng, SentencePieceUnigram, True, "▁" if k % 2 else "?"), norm, pre)
        plan = plan_of(parts)
        assert plan is not None
        for _ in range(10):
            text = "".join(rng.choices(LETTERS, k=rng.choice([0, 1, 5, 30, 300])))
            want = (
                sentencepiece_unigram_ref(parts.model, norm.normalize(text))
                if isinstance(pre, WholeText)
                else parts.ids(text)
            )
            assert run(plan, text.encode(), rng.choice([50, 1 << 16]))[0] == want, repr(text)


def test_what_does_not_stand_alone_has_no_plan():
    own, toy = (
        SentencePieceNormalizer,
        SentencePieceUnigram({"<unk>": 0, "▁": 1, "a": 2}, [0.0, -1.0, -1.0], "<unk>"),
    )
    wide, hf = (
        SentencePieceUnigram({"<unk>": 0, "▁": 1, "a▁": 2}, [0.0, -1.0, -1.0], "<unk>"),
        unigram_model([("a", -1.0)]),
    )
    double = SentencePieceUnigram({"<unk>": 0, "▁": 1, "▁▁": 2}, [0.0, -1.0, -1.0], "<unk>")
    none = [
        (wide, own(), WholeText()),
        (toy, own(BLOB, False, True), WholeText()),
        (double, own(BLOB, True, False), WholeText()),
        (toy, own(BLOB, escape_whitespaces=False), WholeText()),
        (toy, own(BLOB, treat_whitespace_as_suffix=True), WholeText()),
        (toy, own(build_charsmap({"a b": "c", "▁": " "})), WholeText()),
        (toy, own(build_charsmap({" b": "c", "▁": " "})), WholeText()),
        (toy, own(BLOB, user_defined=("a b",)), WholeText()),
        (toy, own(BLOB, user_defined=("▁a",)), WholeText()),
        (hf, own(BLOB), WholeText()),
        (hf, None, WholeText()),
        (hf, None, Steps([WhitespaceSplit(), Metaspace("▁", "first")])),
        (hf, Replace("a", "▁"), MARKED),
        (hf, Replace(" ", "▁"), Split("▁", "isolated")),
        (hf, Strip(), MARKED),
        (hf, Precompiled(build_charsmap({" a": "b"})), BOTH),
        (hf, Precompiled(build_charsmap({"\u0600a": "b"})), BOTH),
        (hf, MAPPED, Metaspace()),
        (hf, Replace("a", "b"), BOTH),
        (hf, None, Steps([Metaspace(), WhitespaceSplit()])),
    ]
    for model, norm, pre in none:
        assert unigram_spans(model, norm, pre) is None, (norm, pre)
    with pytest.raises(ValueError, match="encode without kernels"):
        UnigramSpanEncoder(hf)


def pairs(chars):
    return tuple((ord(c), ord(c) + 1) for c in chars)


def test_tabs_are_cut_at_only_if_they_become_spaces():
    toy = SentencePieceUnigram({"<unk>": 0, "▁": 1, "a": 2}, [0.0, -1.0, -1.0], "<unk>")
    assert unigram_spans(toy, SentencePieceNormalizer(BLOB), WholeText()).space == pairs("\t\n ")
    assert unigram_spans(
        unigram_model([("a", -1.0)]), Precompiled(build_charsmap({"\t": "", "▁": " "})), BOTH
    ).space == pairs("\n\x0b\x0c\r ")


def test_long_spans_are_linear():
    plans = [
        plan_of(Parts(rnd_unigram(fresh(3)), MAPPED, BOTH)),
        plan_of(
            Parts(
                rnd_unigram(fresh(3), SentencePieceUnigram, True), SentencePieceNormalizer(BLOB), WholeText()
            )
        ),
    ]
    for plan in plans:
        for unit in (
            b"a",
            b"ab",
            "é".encode(),
            "€".encode(),
            b" ",
            "½".encode(),
            "e\u0301".encode(),
            "´".encode(),
        ):
            assert_linear(partial(run, plan), unit, 1 << 18)


@pytest.mark.parametrize("kind", [Unigram, SentencePieceUnigram])
def test_chains_cost_their_longest_piece(kind):
    "Pieces a, aa, aaa, …: the trie is walked once from each place, whatever the longest is; ids as without kernels."

    def chained(longest):
        pieces = ["?", "▁", *("a" * n for n in range(1, longest + 1))]
        scores = [-10.0 - len(p) / 1e6 for p in pieces]
        model = kind({p: i for i, p in enumerate(pieces)}, scores, "?")
        return plan_of(
            Parts(model, None, BOTH)
            if kind is Unigram
            else Parts(model, SentencePieceNormalizer(BLOB), WholeText())
        )

    assert_linear(lambda plan: run(plan, b"a" * 16_000), chained, 1600)
    parts = chained(300)
    pieces = ["?", "▁", *("a" * n for n in range(1, 301))]
    model = kind({p: i for i, p in enumerate(pieces)}, [-10.0 - len(p) / 1e6 for p in pieces], "?")
    same = (
        Parts(model, None, BOTH)
        if kind is Unigram
        else Parts(model, SentencePieceNormalizer(BLOB), WholeText())
    )
    for n in (1, 299, 300, 301, 1000):
        assert run(parts, b"a" * n)[0] == same.ids("a" * n)


def test_long_spans_are_right():
    rng = fresh(5)
    for kind, norm, pre in [
        (Unigram, MAPPED, BOTH),
        (SentencePieceUnigram, SentencePieceNormalizer(BLOB), WholeText()),
    ]:
        parts = Parts(rnd_unigram(rng, kind, kind is SentencePieceUnigram), norm, pre)
        plan = plan_of(parts)
        for unit in ("ab", "½", "é€", "´"):
            text = unit * 3000
            assert run(plan, text.encode())[0] == parts.ids(text), unit


def test_many_threads_share_one_object():
    parts = Parts(rnd_unigram(fresh(1)), MAPPED, BOTH)
    plan, texts = plan_of(parts), ["".join(fresh(k).choices(LETTERS, k=2000)) for k in range(8)]
    run(plan, b"a")
    found = {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: run(plan, texts[k].encode())[0]}))
        for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(8)] == [parts.ids(t) for t in texts]


def test_bars_are_barred_where_their_place_matters():
    toy = SentencePieceUnigram({"<unk>": 0, "▁": 1, "a": 2}, [0.0, -1.0, -1.0], "<unk>")
    bare, kept, mapped = (
        SentencePieceNormalizer(),
        SentencePieceNormalizer(remove_extra_whitespaces=False),
        SentencePieceNormalizer(BLOB),
    )
    assert [unigram_spans(toy, n, WholeText()).forbidden_bytes for n in (bare, kept, mapped)] == [
        ("▁".encode(),),
        (),
        (),
    ]
    parts = Parts(toy, bare, WholeText())
    for text in ("", "a", " a  a ", "b a\ta", "  "):
        assert run(plan_of(parts), text.encode())[0] == parts.ids(text)


def test_a_damaged_map_is_left_to_python():
    parts = Parts(rnd_unigram(fresh(1)), MAPPED, BOTH)
    encoder = UnigramSpanEncoder(parts.model, normalizer=MAPPED, pre=BOTH)
    whole = encoder.tables
    encoder.tables = whole._replace(rules=np.array([1 << 20], np.uint32))
    assert span_ids(encoder, ["½".encode()]) == [None]
    encoder.tables = whole._replace(chars=whole.chars[: 256 + 65536 + 6])
    assert None in span_ids(encoder, [k.encode() for k in ("½", "´", "b\u0301", "e\u0301")])
    own = UnigramSpanEncoder(
        rnd_unigram(fresh(1), SentencePieceUnigram, True), normalizer=SentencePieceNormalizer(BLOB)
    )
    own.tables = own.tables._replace(rules=np.array([1 << 20], np.uint32))
    with pytest.raises(ValueError, match="got a damaged map"):
        own.rescore_float32(
            buffer_of("½".encode()),
            np.array([HEAD, HEAD + 2], np.uint32),
            np.zeros(1, np.uint64),
            0,
            1,
            (np.zeros(4, np.uint64), None, np.zeros(1, np.uint32)),
            IdBuffer(9),
            np.zeros(1),
        )
