"""The encoders of new spans for models that merge, against the models: real vocabularies, hostile spans, whole texts."""

import re

import numpy as np
import pytest
import seeds
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.bpe.model import BPE, RankRules, Rules, implied_rules
from subword_nb.bpe.merge_kernels import EMPTY, LEFT, RankSpanEncoder, merge_symbols, rule_slots, span_ids
from subword_nb.bpe.span_encoder import BPESpanEncoder, SentencePieceBPESpanEncoder, joins_at_space
from subword_nb.pipeline.encoder import encoder_of
from subword_nb.core.jit import available
from subword_nb.text.pretokenizers import Metaspace, byte_level
from subword_nb.text.splitters import WholeText
from subword_nb.formats.sentencepiece_models import SentencePieceBPE
from subword_nb.core.unicode import BYTE2CHAR, from_visible
from subword_nb.formats.tiktoken import encode_by_ranks_ref, read_ranks

pytestmark = pytest.mark.skipif(
    not available(), reason="kernels as plain Python are checked in the notebooks"
)
TEXTS = seeds.TEXTS // 4
BYTEWISE = [
    "gpt2/tokenizer.json",
    "roberta-base/tokenizer.json",
    "clip/tokenizer.json",
    "falcon/tokenizer.json",
    "whisper-tiny/tokenizer.json",
    "tiktoken/cl100k_base.tiktoken",
]
MARKED = [
    "phi-3-mini/tokenizer.json",
    "derived/llama-2-legacy.tokenizer.json",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "transformers-fixtures/test_sentencepiece_bpe.model",
]
ALPHABETS = [
    "etaoin shrdlu",
    "aAbB019 .,'!?",
    " \n\t\u3000\u00a0",
    "éßäñøœ",
    "中文字日本語",
    "🤗👩‍🚀❤️",
    "кириллица",
    "שלום عربي",
    "०१२गि",
    "▁ <0x41>",
    "\x00\x7f\u200b\ufeff\U0010ffff",
]


def model_of(path):
    "Model and pre-tokenizer as the engine uses them."
    c = encoder_of(Tokenizer.load(path), allowed_special="all")
    return c.model, c.pre


def span_encoder_of(model, pre, space=None):
    "What computes the ids of new spans for a model."
    if isinstance(model, SentencePieceBPE):
        return SentencePieceBPESpanEncoder(model)
    return BPESpanEncoder(model, pre, space=space)


def random_spans(rng, n):
    "Texts of mixed alphabets, short and long."
    return [
        "".join(
            rng.choices(
                "".join(rng.sample(ALPHABETS, rng.randrange(1, 4))),
                k=rng.choice((1, 2, 4, 8, 8, 16, 40, 70, 150)),
            )
        )
        for _ in range(n)
    ]


def compare(encoder, spans, expected, most_left=0.0):
    "The ids where there are any; few spans left to Python."
    found = span_ids(encoder, [s.encode() for s in spans])
    wrong = [(s, a, b) for s, a, b in zip(spans, found, expected) if a is not None and a != list(b)]
    assert not wrong, wrong[0]
    assert found.count(None) <= most_left * len(spans)


@pytest.mark.parametrize("name", BYTEWISE)
def test_byte_level_models(shared_file, name):
    model, pre = model_of(shared_file(f"vocab/{name}"))

    def visible(text):
        return pre.piece_of(text) if name != "falcon/tokenizer.json" else byte_level(None).piece_of(text)

    spans = random_spans(fresh(name), TEXTS)
    compare(span_encoder_of(model, pre), spans, [model.encode(visible(s)) for s in spans])


@pytest.mark.parametrize("name", MARKED)
def test_models_of_characters(shared_file, name):
    model, pre = model_of(shared_file(f"vocab/{name}"))
    assert isinstance(model, SentencePieceBPE) or not joins_at_space(model)
    spans = [
        " " * rng.randrange(1, 40 if k % 9 == 0 else 2) + s.replace(" ", "").replace("▁", "")
        for rng in [fresh(name)]
        for k, s in enumerate(random_spans(rng, TEXTS))
    ]
    expected = [model.encode(s.replace(" ", "▁")) for s in spans]
    compare(span_encoder_of(model, pre, space="▁"), spans, expected)


@pytest.mark.parametrize("name", MARKED)
def test_words_in_a_row_are_the_text(shared_file, name):
    "Spans that end before a run of marks may be encoded one by one."
    model, pre = model_of(shared_file(f"vocab/{name}"))
    encoder, rng = span_encoder_of(model, pre, space="▁"), fresh(name)
    for text in random_spans(rng, TEXTS // 5):
        text = " " + text
        rows = span_ids(encoder, [s.encode() for s in re.findall("[ ▁]+[^ ▁]*", text)])
        assert None not in rows and [i for row in rows for i in row] == list(
            model.encode(text.replace(" ", "▁"))
        )


@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
@pytest.mark.peers
def test_rank_files_against_tiktoken(shared_file, name):
    tiktoken = pytest.importorskip("tiktoken")
    ranks = read_ranks(shared_file(f"vocab/tiktoken/{name}.tiktoken"))
    special = {"<|gap|>": 50256} if name == "p50k_base" else {}
    peer = tiktoken.Encoding(name, pat_str="(?s:.)+", mergeable_ranks=ranks, special_tokens=special)
    spans = [
        *random_spans(fresh(name), TEXTS),
        *("a" * n for n in range(50, 300, 7)),
        *("-" * n for n in range(50, 300, 7)),
        *(" " * n for n in range(50, 300, 7)),
    ]
    compare(RankSpanEncoder(ranks), spans, [peer.encode_ordinary(s) for s in spans])


def test_rank_models_equal_rank_files(shared_file):
    path = shared_file("vocab/tiktoken/r50k_base.tiktoken")
    model, pre = model_of(path)
    assert isinstance(model.merges, RankRules)
    a, b = span_encoder_of(model, pre), RankSpanEncoder(read_ranks(path))
    assert "table" not in vars(model) and "pairs" not in vars(model.merges)
    for x, y in zip((a.first[:256], *a.tables), (b.first[:256], *b.tables)):
        assert np.array_equal(
            np.sort(x) if x.dtype == np.uint64 else x, np.sort(y) if y.dtype == np.uint64 else y
        )


@pytest.mark.parametrize("unit", ["a", " ", "0", "!", "🤗", "中文字", "ab", "-="])
def test_long_spans_are_linear_and_exact(shared_file, unit):
    "Windows against the whole, at lengths around their sizes; a long one by the periods of its ids."
    ranks = read_ranks(shared_file("vocab/tiktoken/r50k_base.tiktoken"))
    encoder = RankSpanEncoder(ranks)
    spans = [(unit * n)[:n] for n in (63, 64, 65, 96, 97, 128, 129, 200, 333, 1023, 1025)]
    compare(encoder, spans, [encode_by_ranks_ref(s.encode(), ranks) for s in spans])
    (ids,) = span_ids(encoder, [unit.encode() * 100_000])
    spelled = {i: t for t, i in ranks.items()}
    assert b"".join(map(spelled.get, ids)) == unit.encode() * 100_000


def random_ranks(rng):
    "Tokens that no training would give, in any order."
    letters = b"abc"[: rng.randrange(1, 4)]
    tokens = {
        bytes(rng.choices(letters, k=rng.choice((2, 2, 3, 3, 4, 6, 9)))) for _ in range(rng.randrange(14))
    }
    names = [*(bytes([b]) for b in letters), *sorted(tokens)]
    return letters, dict(zip(names, rng.sample(range(3 * len(names)), len(names))))


def test_random_ranks_in_any_order():
    rng = fresh(4)
    for _ in range(TEXTS):
        (letters, ranks), ignore_merges = random_ranks(rng), rng.random() < 0.5
        spans = [bytes(rng.choices(letters, k=n)) for n in (1, 2, 3, 7, 20, 64, 65, rng.randrange(66, 400))]
        found = span_ids(RankSpanEncoder(ranks, ignore_merges=ignore_merges), spans)
        assert [
            r
            for r in zip(spans, found)
            if r[1] is not None and r[1] != encode_by_ranks_ref(r[0], ranks, ignore_merges=ignore_merges)
        ] == []
        assert None not in found[:6]


def test_a_piece_that_reaches_back_further_than_any_window():
    "Pairs that merge from the right end on: the first piece depends on the last symbol."
    n = 3000
    names = ["a", "b", *("a" * k + "b" for k in range(1, 40))]
    ids = {p: i for i, p in enumerate(names)}
    assert implied_rules(ids)[0][:2] == [("a", "b"), ("a", "ab")]
    encoder = BPESpanEncoder(BPE(ids, RankRules(ids), drop_unknown=True), byte_level(None))
    assert span_ids(encoder, [b"a" * n + b"b"]) == [[0] * (n - 39) + [ids["a" * 39 + "b"]]]
    domino = {
        "a": 9,
        "b": 8,
        "c": 7,
        "ab": 2,
        "ba": 1,
        "bc": 0,
    }  # whether all pairs are ab or ba depends on the end
    for end in ("", "c", "bc"):
        (found,) = span_ids(
            RankSpanEncoder({p.encode(): i for p, i in domino.items()}), [("ab" * 400 + end).encode()]
        )
        assert found in (
            None,
            encode_by_ranks_ref(("ab" * 400 + end).encode(), {p.encode(): i for p, i in domino.items()}),
        )


def test_runs_of_one_byte_with_long_pieces():
    "Three pieces of 80 spaces are kept from window to window; neighbours of one rank are merged without a search."
    rng = fresh(9)
    for k in range(4 + TEXTS // 50):
        runs = [b" " * n for n in (range(2, 81) if k % 2 else rng.sample(range(2, 130), 40))]
        names = [
            *(bytes([b]) for b in range(256)),
            *(runs if k < 4 else rng.sample(runs, len(runs))),
            b" a",
            b"  a",
        ]
        ranks = {name: i for i, name in enumerate(names)}
        spans = [b" " * n + end for n in (3, 63, 64, 65, 200, 1500) for end in (b"", b"a", b"ba")]
        found = span_ids(RankSpanEncoder(ranks, ignore_merges=False), spans)
        assert [
            s
            for s, f in zip(spans, found)
            if f is not None and f != encode_by_ranks_ref(s, ranks, ignore_merges=False)
        ] == []
        assert k >= 4 or None not in found


def test_made_pieces_with_gaps_or_equal_ids():
    "What rules make is a sum where ids follow each other, and a table where they do not."
    pre, words = byte_level(None), ["hug", "hugs", "unhug", "huhu", "ughug"]
    for ids in (
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 2, 3, 4, 5, 7, 9],
        [0, 1, 2, 3, 4, 9, 7, 5],
        [0, 1, 2, 3, 4, 5, 5, 6],
        [9, 8, 7, 6, 5, 10, 11, 12],
    ):
        vocab = dict(zip([*"hugsn", "ug", "un", "hug"], ids))
        for merges in (["u g", "u n", "h ug"], ["u g"]):
            model = BPE(vocab, Rules("\n".join(merges)), drop_unknown=True)
            assert span_ids(BPESpanEncoder(model, pre), [w.encode() for w in words]) == [
                model.encode(w) for w in words
            ]


def test_ranks_with_words_that_merging_does_not_make():
    names = [*BYTE2CHAR, "ug", "pugs", "hug", "gspu"]
    ids = {p: i for i, p in enumerate(names)}
    for vocab in (ids, ids | {"pugspugs": 300}):
        model = BPE(vocab, RankRules(ids), ignore_merges=True)
        spans = ["pugs", "hug", "pugspugs", "gspu", "gspus"]
        compare(BPESpanEncoder(model, byte_level(None)), spans, [model.encode(s) for s in spans])


def test_many_spans_in_one_call_and_room():
    "Nothing is written outside of what an encoder may write."
    ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abab": 257}
    rng, encoder = fresh(5), RankSpanEncoder(ranks)
    spans = [bytes(rng.choices(b"abc\xff", k=rng.randrange(1, 90))) for _ in range(500)]
    spans = [s for s in spans if s[0] != 255] + [b"\xff"]
    data, length = b"".join(spans), np.array([*map(len, spans)], np.int64)
    buf, at = (
        np.frombuffer(b"\xff" * 128 + data + b"\xff" * 128, np.uint8).copy(),
        128 + np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64),
    )
    capacity, m = 4 * len(data) + 16 * len(spans), len(spans)
    ids, bounds, extra = (
        np.full(capacity + 64, 7, np.uint32),
        np.full(m + 65, 7, np.int64),
        np.full(m + 64, 7, np.uint32),
    )
    encoder.span_kernel(buf, at, length, m, ids[:capacity], bounds[: m + 1], extra[:m])
    assert (ids[capacity:] == 7).all() and (bounds[m + 1 :] == 7).all() and (extra[m:] == 7).all()
    assert extra[m - 1] == LEFT and bounds[m] == bounds[m - 1]
    for k in range(m - 1):
        assert extra[k] == 0 and ids[bounds[k] : bounds[k + 1]].tolist() == encode_by_ranks_ref(
            spans[k], ranks
        )


def test_threads_share_an_encoder(shared_file):
    from concurrent.futures import ThreadPoolExecutor

    encoder = RankSpanEncoder(read_ranks(shared_file("vocab/tiktoken/r50k_base.tiktoken")))
    spans = [s.encode() for s in random_spans(fresh(6), 1000)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: span_ids(encoder, spans), range(8)))
    assert all(a == answers[0] for a in answers)


def test_merge_symbols_says_when_the_overlap_was_too_small():
    ids = {p: i for i, p in enumerate(["a", "b", "ba", "ab"])}
    merges = implied_rules(ids)[0]
    slots = rule_slots(
        *(np.array(column, np.uint32) for column in zip(*((ids[a], ids[b], ids[a + b]) for a, b in merges)))
    )
    scratch = [np.empty(1024, np.uint32) for _ in range(3)]
    row = np.array([1, 0] * 60, np.uint32)
    n = merge_symbols(
        row, np.uint64(0), np.uint64(120), slots, np.arange(4, dtype=np.uint32), *scratch, np.uint64(1)
    )
    assert n == EMPTY


def test_special_kinds_of_sentencepiece():
    pieces = ["<unk>", "<s>", "▁", "a", "b", "x", "ab", "▁a", "axb", "xx", "<0x41>"]

    def model(**kinds):
        return SentencePieceBPE(
            {p: i for i, p in enumerate(pieces)},
            [-float(i) for i in range(len(pieces))],
            "<unk>",
            control=("<s>",),
            **kinds,
        )

    spans = [" ab", " axb", "xx", " xaxb", "ccab", " <s>ab", "▁ab", "x", "aAb"]
    for kinds in (
        {},
        {"user_defined": ("x",)},
        {"user_defined": ("xx",)},
        {"user_defined": ("axb", "x")},
        {"user_defined": ("ab",)},
    ):
        compare(
            SentencePieceBPESpanEncoder(model(**kinds)),
            spans,
            [model(**kinds).encode(s.replace(" ", "▁")) for s in spans],
            0.5,
        )
    with pytest.raises(ValueError, match="unused must be empty"):
        SentencePieceBPESpanEncoder(model(unused=("ab",)))


def test_metaspace_cuts_before_each_mark():
    pieces = ["<unk>", "▁", "a", "▁▁", "▁a", "aa", "▁▁a"]
    model = BPE(
        {p: i for i, p in enumerate(pieces)},
        [("▁", "▁"), ("▁", "a"), ("a", "a"), ("▁▁", "a")],
        unk_piece="<unk>",
    )
    for pre in (Metaspace(prepend_scheme="never"), WholeText()):
        spans = ["   aa", " a", "  ", "a", "  \u00e9\u00e9a"]
        expected = [
            [i for p in pre.raw_pretokens(s.replace(" ", "▁"), first=False) for i in model.encode(p)]
            for s in spans
        ]
        compare(BPESpanEncoder(model, pre, space="▁"), spans, expected)


@pytest.mark.parametrize(
    "make,why",
    [
        (lambda: RankSpanEncoder({b"a": 2**21}), "ids must be below 2097151"),
        (lambda: RankSpanEncoder({b"a": 0, b"ab": 1}), "got no rank for 0x62"),
        (
            lambda: BPESpanEncoder(
                BPE({"a": 0}, [], end_of_word_suffix="</w>", ignore_merges=True), byte_level(None)
            ),
            "either take words whole or have a prefix or suffix",
        ),
        (lambda: BPESpanEncoder(BPE({"a": 0}, []), Metaspace()), "must have a piece for the space"),
    ],
)
def test_what_is_refused(make, why):
    with pytest.raises(ValueError, match=why):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BYTEWISE, "tiktoken/o200k_base.tiktoken"])
def test_spans_of_the_corpora(shared_data, shared_file, name):
    "All different pre-tokens of the stored corpora."
    path = shared_file(f"vocab/{name}")
    model, pre = model_of(path)
    files = sorted(p for p in (shared_data / "corpus").rglob("*.txt"))
    texts = [p.read_text(encoding="utf-8", errors="replace")[:300_000] for p in files[:40]] or pytest.skip(
        "no corpora"
    )
    raws = list({r for t in texts for r in pre.raw_pretokens(t, first=True)})
    spans = [from_visible(r).decode("utf-8", "replace") for r in raws] if name.startswith("falcon") else raws
    if name.startswith("falcon"):
        keep = [k for k, s in enumerate(spans) if "\ufffd" not in s]
        raws, spans = [raws[k] for k in keep], [spans[k] for k in keep]
    compare(
        span_encoder_of(model, pre),
        spans,
        [model.encode(r if name.startswith("falcon") else pre.piece_of(r)) for r in raws],
        0.001,
    )


def test_rules_of_rank_files_are_found_when_asked_for(shared_file):
    "Loading, encoding and pickling need no merge rules; comparing with a list, saving and looking do."
    import copy
    import pickle

    tok = Tokenizer.load(shared_file("vocab/tiktoken/r50k_base.tiktoken"))
    ids = tok.encode("A sentence, unhugged; 12345 \u00e9\u00df\U0001f917" + "a" * 300)
    model = tok.model
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin == model and "pairs" not in vars(twin.merges)
    assert (
        "table" not in vars(model)
        and "pairs" not in vars(model.merges)
        and tok.decode(ids).startswith("A sentence")
    )
    listed = BPE(dict(model.piece2id), list(model.merges), ignore_merges=True)
    assert (
        listed == model and model == listed and repr(listed) == repr(model) and "pairs" in vars(model.merges)
    )
    for text in random_spans(fresh(8), 200):
        piece = byte_level(None).piece_of(text)
        assert listed.encode(piece) == model.encode(piece)
