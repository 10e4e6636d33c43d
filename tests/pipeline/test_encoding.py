"""The result object: every question, cut, padding and join, against the same done by Hugging Face's library."""

# ruff: noqa: B023
import json
import pickle
import random

import pytest
from costs import assert_linear

from subword_nb import Tokenizer
from subword_nb.bpe.model import BPE
from subword_nb.pipeline.encoding import (
    Encoding,
    Padding,
    Truncation,
    byte_offsets,
    merge_encodings,
    pad_batch,
    truncate_encoding,
    truncate_pair,
    windows,
)
from subword_nb.pipeline.processors import TemplateProcessing

LISTS = [
    ("ids", "ids"),
    ("type_ids", "type_ids"),
    ("tokens", "pieces"),
    ("words", "word_ids"),
    ("offsets", "offsets"),
    ("special_tokens_mask", "special_tokens_mask"),
    ("attention_mask", "attention_mask"),
]
PIECES = [
    "a",
    "Ġb",
    "##c",
    "▁d",
    "e ",
    " ",
    "Ġ",
    "ĠĠf",
    "\u00a0g",
    "\u3000",
    "é",
    "🙂",
    "[X]",
    "\u2028h\n",
    "i\t ",
    "",
    "ĠjĠ",
    "\x1ck",
    "\x85",
    "\u200bl",
    "\ufeff",
]


def state(e: Encoding) -> dict:
    "An encoding as the other library writes it."
    ranges = {str(s): {"start": a, "end": b} for s, (a, b) in sorted(e.sequence_ranges.items())}
    lists = {
        theirs: [list(x) if isinstance(x, tuple) else x for x in getattr(e, ours)] for theirs, ours in LISTS
    }
    return {**lists, "overflowing": [state(o) for o in e.overflowing], "sequence_ranges": ranges}


def theirs(e: Encoding):
    "The same encoding as an object of the other library."
    out = pytest.importorskip("tokenizers").Encoding()
    out.__setstate__(json.dumps(state(e)).encode())
    return out


def read(theirs) -> dict:
    "What an object of the other library holds."
    return json.loads(theirs.__getstate__())


def random_encoding(rng, most=9, depth=1, ranges=True) -> Encoding:
    "Any encoding at all: offsets that jump, words that repeat, sequences that lie anywhere."
    n = rng.randint(0, most)
    starts = [rng.randint(0, 12) for _ in range(n)]
    offsets = [(s, s + rng.randint(0, 5)) for s in starts]
    words = sorted(rng.choices(range(5), k=n)) if rng.random() < 0.7 else rng.choices(range(4), k=n)
    known = {}
    for s in range(rng.choice([0, 0, 1, 2])) if ranges else ():
        a = rng.randint(0, n)
        known[s] = (a, rng.randint(a, n))
    over = (
        [random_encoding(rng, 5, depth - 1, ranges) for _ in range(rng.choice([0, 0, 1, 2]))] if depth else []
    )

    def bit():
        return rng.choices([0, 1], k=n)

    return Encoding(
        [rng.randint(0, 99) for _ in range(n)],
        rng.choices(PIECES, k=n),
        offsets,
        None,
        [rng.choice([w, w, w, None]) for w in words],
        bit(),
        bit(),
        bit(),
        over,
        known,
    )


def said(f):
    "What a call gives, or that it fails."
    try:
        return f()
    except BaseException as e:  # the other library panics
        if isinstance(e, KeyboardInterrupt):
            raise
        return "fails"


@pytest.mark.peers
def test_state_of_an_encoding():
    rng = random.Random(0)
    for _ in range(200):
        e = random_encoding(rng)
        t = theirs(e)
        assert read(t) == state(e)
        if sum(b - a for a, b in e.sequence_ranges.values()) == len(
            {i for a, b in e.sequence_ranges.values() for i in range(a, b)}
        ):
            assert (t.sequence_ids, t.n_sequences, len(t)) == (e.sequence_ids, e.n_sequences, len(e))
        assert (t.tokens, t.word_ids) == (e.tokens, e.words)


@pytest.mark.peers
def test_questions():
    rng = random.Random(1)
    for _ in range(600):
        e = random_encoding(rng, depth=0)
        t = theirs(e)
        covered = [i for a, b in e.sequence_ranges.values() for i in range(a, b)]
        for i in range(len(e) + 2):
            if covered.count(i) > 1:
                continue  # two ranges at once: theirs answers with the one its hash table meets first
            assert t.token_to_sequence(i) == e.token_to_sequence(i), (e, i)
            assert t.token_to_chars(i) == e.token_to_chars(i), (e, i)
            assert t.token_to_word(i) == e.token_to_word(i), (e, i)
        for s in range(3):
            for w in range(6):
                assert t.word_to_tokens(w, s) == e.word_to_tokens(w, s)
                assert t.word_to_chars(w, s) == e.word_to_chars(w, s)
            for c in range(18):
                assert t.char_to_token(c, s) == e.char_to_token(c, s)
                if len(covered) == len(set(covered)):
                    assert t.char_to_word(c, s) == e.char_to_word(c, s)


@pytest.mark.peers
def test_truncate():
    rng = random.Random(2)
    for _ in range(1500):
        e, most = random_encoding(rng, most=14), rng.randint(0, 9)
        options = {"stride": rng.choice([0, 0, 1, 2, 3]), "direction": rng.choice(["right", "left"])}
        if most and most < len(e) and options["stride"] >= most:  # theirs panics
            with pytest.raises(ValueError, match="pass a smaller stride"):
                e.truncate(most, **options)
            continue
        t = theirs(e)
        t.truncate(most, **options)
        assert read(t) == state(e.truncate(most, **options)), (e, most, options)


@pytest.mark.peers
def test_pad():
    rng = random.Random(3)
    for _ in range(600):
        e, n, side = random_encoding(rng, depth=2), rng.randint(0, 14), rng.choice(["right", "left"])
        t = theirs(e)
        t.pad(n, direction=side, pad_id=7, pad_type_id=3, pad_token="<p>")
        assert read(t) == state(e.pad(n, direction=side, pad_id=7, pad_type_id=3, pad_token="<p>"))
    e, t = Encoding([1], ["a"], [(0, 1)]), theirs(Encoding([1], ["a"], [(0, 1)]))
    t.pad(3)
    assert read(t) == state(e.pad(3))


@pytest.mark.peers
@pytest.mark.parametrize("growing_offsets", [True, False])
def test_merge(growing_offsets):
    T = pytest.importorskip("tokenizers")
    rng = random.Random(4)
    for _ in range(500):
        parts = [random_encoding(rng, 4, rng.choice([0, 1, 2])) for _ in range(rng.randint(0, 3))]
        assert read(T.Encoding.merge([theirs(e) for e in parts], growing_offsets)) == state(
            merge_encodings(parts, growing_offsets=growing_offsets)
        )
        assert Encoding.merge(parts, growing_offsets=growing_offsets) == merge_encodings(
            parts, growing_offsets=growing_offsets
        )
    parts = [random_encoding(rng, 4), random_encoding(rng, 4)]
    assert read(T.Encoding.merge([theirs(e) for e in parts])) == state(Encoding.merge(parts))


def tokenizer():
    "Theirs, with a word per letter."
    T = pytest.importorskip("tokenizers")
    tok = T.Tokenizer(
        T.models.WordLevel({"[UNK]": 0} | {c: i for i, c in enumerate("abcdefghij", 1)}, "[UNK]")
    )
    tok.pre_tokenizer = T.pre_tokenizers.Whitespace()
    return tok


def ours(text: str, type_id: int = 0) -> Encoding:
    "The same encoding without it."
    at = range(len(text))
    return Encoding(
        ["abcdefghij".index(c) + 1 for c in text[::2]],
        list(text[::2]),
        [(i, i + 1) for i in at[::2]],
        None,
        list(range(len(at[::2]))),
        [type_id] * len(at[::2]),
    )


@pytest.mark.peers
@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
def test_truncation_of_one_text_and_of_two(strategy):
    tok, rng = tokenizer(), random.Random(5)
    for _ in range(700):
        texts = [
            " ".join(rng.choices("abcdefghij", k=rng.randint(0, 9))) for _ in range(rng.choice([1, 2, 2]))
        ]
        limit = rng.randint(0, 12)
        stride = rng.randint(0, 3)
        how = Truncation(limit, stride, strategy, rng.choice(["right", "left"]))
        if (
            said(
                lambda: tok.enable_truncation(
                    limit, stride=stride, strategy=strategy, direction=how.direction
                )
            )
            == "fails"
        ):
            assert stride > limit
            continue
        assert json.loads(tok.to_str())["truncation"] == how.to_dict()
        want = said(lambda: read(tok.encode(*texts)))
        got = said(lambda: merged(truncate_pair([ours(t, i) for i, t in enumerate(texts)], how)))
        assert want == got, (texts, how)


def merged(encodings):
    "One encoding, labelled as theirs."
    if len(encodings) == 1:
        return state(encodings[0])
    for i, e in enumerate(encodings):
        e.sequence_ranges = {i: (0, len(e))}
    return state(merge_encodings(encodings))


@pytest.mark.parametrize(
    "n, m, want",
    [
        (0, 0, (0, 0)),
        (0, 2, (0, 2)),
        (0, 4, (0, 4)),
        (0, 8, (0, 7)),
        (2, 0, (2, 0)),
        (2, 2, (2, 2)),
        (2, 4, (2, 4)),
        (2, 8, (2, 5)),
        (4, 0, (4, 0)),
        (4, 2, (4, 2)),
        (4, 4, (3, 4)),
        (4, 8, (3, 4)),
        (8, 0, (7, 0)),
        (8, 2, (5, 2)),
        (8, 4, (4, 3)),
        (8, 8, (3, 4)),
    ],
)
def test_longest_first_into_seven(n, m, want):
    both = truncate_pair([ours(" ".join("abcdefgh"[:k])) for k in (n, m)], Truncation(7))
    assert tuple(map(len, both)) == want
    assert [len(e) for e in truncate_pair(both, Truncation(0))] == [0, 0]


@pytest.mark.peers
def test_padding_of_a_batch():
    tok, rng = tokenizer(), random.Random(6)
    for _ in range(300):
        texts = [" ".join(rng.choices("abcdefghij", k=rng.randint(0, 9))) for _ in range(rng.randint(0, 4))]
        how = Padding(
            rng.choice(["longest", rng.randint(0, 12)]),
            rng.choice(["right", "left"]),
            rng.choice([None, 0, 1, 4, 8]),
            5,
            2,
            "<p>",
        )
        tok.enable_padding(
            direction=how.direction,
            pad_id=5,
            pad_type_id=2,
            pad_token="<p>",
            length=None if how.strategy == "longest" else how.strategy,
            pad_to_multiple_of=how.pad_to_multiple_of,
        )
        assert json.loads(tok.to_str())["padding"] == how.to_dict()
        assert [read(e) for e in tok.encode_batch(texts)] == [
            state(e) for e in pad_batch([ours(t) for t in texts], how)
        ]


BLOCKS = {
    "truncation": (
        {"direction": "Left", "max_length": 3, "strategy": "OnlyFirst", "stride": 9},
        [
            {"stride": None},
            {"strategy": None},
            {"max_length": None},
            {"direction": None},
            {"strategy": "longest_first"},
            {"strategy": "OnlySecond"},
            {"max_length": -3},
            {"direction": "left"},
            {"max_length": 3.0},
            {"max_length": "3"},
            {"max_length": True},
            {"max_length": 2**40},
            {"stride": 0},
            {"strategy": []},
        ],
    ),
    "padding": (
        {
            "strategy": {"Fixed": 3},
            "direction": "Left",
            "pad_to_multiple_of": 8,
            "pad_id": 4,
            "pad_type_id": 1,
            "pad_token": "<p>",
        },
        [
            {"strategy": None},
            {"direction": None},
            {"pad_to_multiple_of": None},
            {"pad_id": None},
            {"pad_type_id": None},
            {"pad_token": None},
            {"strategy": "BatchLongest"},
            {"strategy": "Fixed"},
            {"strategy": {"Fixed": -3}},
            {"strategy": {"Fixed": 3, "x": 2}},
            {"strategy": "batch_longest"},
            {"direction": "left"},
            {"pad_to_multiple_of": 0},
            {"pad_to_multiple_of": -1},
            {"pad_id": 2**32},
            {"pad_id": 2**31},
            {"pad_type_id": -1},
            {"pad_token": 3},
        ],
    ),
}


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_of_a_file(block):
    good, changes = BLOCKS[block]
    kind = Truncation if block == "truncation" else Padding
    assert kind.from_dict(good).to_dict() == good and kind.from_dict(None) is None
    bad = [{k: v for k, v in {**good, **c}.items() if k not in c or v is not None} for c in changes]
    for d in [*bad, [], 3]:
        try:
            assert (
                kind.from_dict(d).to_dict()
                == {"direction": "Right"} | ({"pad_to_multiple_of": None} if block == "padding" else {}) | d
            )
        except ValueError as e:
            assert str(e).startswith(block), str(e)
    with pytest.warns(UserWarning, match=f"^{block}: ignored {block}.x: no such option"):
        assert kind.from_dict({**good, "x": 1}).to_dict() == good


@pytest.mark.peers
@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_of_a_file_as_theirs(block):
    T = pytest.importorskip("tokenizers")
    file = json.loads(T.Tokenizer(T.models.WordLevel({"a": 0}, "a")).to_str())
    good, changes = BLOCKS[block]
    for c in changes:
        d = {k: v for k, v in {**good, **c}.items() if k not in c or v is not None}
        want = said(lambda: json.loads(T.Tokenizer.from_str(json.dumps({**file, block: d})).to_str())[block])
        assert (
            said(lambda: (Truncation if block == "truncation" else Padding).from_dict(d).to_dict()) == want
        ), d


def test_byte_offsets_follow_every_change():
    text = "aé漢🙂\u00a0b"
    offsets = [(i, i + 1) for i in range(len(text))]
    e = Encoding(list(range(6)), list(text), offsets, byte_offsets(text, offsets))
    assert e.offsets_bytes == [(len(text[:a].encode()), len(text[:b].encode())) for a, b in offsets]
    assert e.truncate(2, stride=1, direction="left").overflowing[0].offsets_bytes == [(6, 10), (10, 12)]
    assert e.pad(8, direction="left").offsets_bytes == [(0, 0)] * 2 + e.offsets_bytes
    assert merge_encodings([e, e], growing_offsets=True).offsets_bytes[6:] == [
        (a + 13, b + 13) for a, b in e.offsets_bytes
    ]
    assert merge_encodings([e, e]).offsets_bytes == e.offsets_bytes * 2


def test_windows():
    for n in range(12):
        for m in range(1, 7):
            for s in range(m):
                right, left = windows(n, m, stride=s), windows(n, m, stride=s, direction="left")
                assert left == [(n - b, n - a) for a, b in right]
                assert right[0][0] == 0 and right[-1][1] == n and all(0 <= b - a <= m for a, b in right)
                assert all(b - c == s for (_, b), (c, _) in zip(right, right[1:]))


def test_plain_object():
    e = Encoding(
        [1, 2],
        ["a", "<b>"],
        [(0, 1), (1, 2)],
        sequence_ranges={0: (0, 1)},
        overflowing=[Encoding([3], ["c"], [(2, 3)])],
    )
    assert pickle.loads(pickle.dumps(e)) == e and e != Encoding()
    assert e.to_dict()["sequence_ids"] == [0, None] and json.loads(json.dumps(e.to_dict()))["overflowing"][0][
        "ids"
    ] == [3]
    assert (
        "&lt;b&gt;" in e._repr_html_()
        and "<b>" not in e._repr_html_()
        and repr(e) == "Encoding(2 tokens: a, <b>; 1 overflowing)"
    )
    before = state(e)
    e.truncate(1), e.pad(9), Encoding.merge([e, e])
    assert state(e) == before
    assert truncate_encoding(e, 5) is e


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda e: Encoding([1], [], []), "pieces must have an entry for each of the 1 ids, got 0"),
        (
            lambda e: e.token_to_word(-1),
            "token_index must be a whole number from 0 to 18446744073709551615, got -1",
        ),
        (
            lambda e: e.char_to_token(-1),
            "char_pos must be a whole number from 0 to 18446744073709551615, got -1",
        ),
        (
            lambda e: e.word_to_tokens("a"),
            "word_index must be a whole number from 0 to 18446744073709551615, got 'a'",
        ),
        (
            lambda e: e.char_to_word(0, -1),
            "sequence_index must be a whole number from 0 to 18446744073709551615, got -1",
        ),
        (
            lambda e: e.word_to_chars(0, "b"),
            "sequence_index must be a whole number from 0 to 18446744073709551615, got 'b'",
        ),
        (
            lambda e: e.token_to_chars(True),
            "token_index must be a whole number from 0 to 18446744073709551615, got True",
        ),
        (lambda e: e.pad(3, pad_id=-1), "pad_id must be a whole number from 0 to 4294967295, got -1"),
        (
            lambda e: e.pad(3, pad_type_id=None),
            "pad_type_id must be a whole number from 0 to 4294967295, got None",
        ),
        (lambda e: e.pad(3, pad_token=0), "pad_token must be a text such as"),
        (lambda e: Padding(pad_piece=None), "pad_piece must be a text such as"),
        (lambda e: Padding(True), "strategy must be a whole number from 0 to 18446744073709551615, got True"),
        (
            lambda e: Padding(pad_to_multiple_of=1.0),
            "pad_to_multiple_of must be a whole number from 0 to 18446744073709551615, got 1.0",
        ),
        (lambda e: e.truncate(1, direction="up"), 'direction must be "right" or "left", got \'up\''),
        (
            lambda e: e.truncate(-1),
            "max_length must be a whole number from 0 to 18446744073709551615, got -1",
        ),
        (lambda e: e.pad(1.5), "length must be a whole number from 0 to 18446744073709551615, got 1.5"),
        (lambda e: e.pad(3, direction="down"), 'direction must be "right" or "left", got \'down\''),
        (
            lambda e: Truncation(3, strategy="first"),
            "strategy must be one of longest_first, only_first, only_second, got 'first'",
        ),
        (lambda e: Truncation(3, direction="up"), "'up'"),
        (
            lambda e: Truncation(-1),
            "max_length must be a whole number from 0 to 18446744073709551615, got -1",
        ),
        (
            lambda e: Padding("short"),
            "strategy must be a whole number from 0 to 18446744073709551615, got 'short'",
        ),
        (lambda e: Padding(pad_id=-1), "pad_id must be a whole number from 0 to 4294967295, got -1"),
        (
            lambda e: truncate_pair([e], Truncation(1, strategy="only_second")),
            "strategy must be 'longest_first' or 'only_first' for one text, got 'only_second'",
        ),
        (
            lambda e: truncate_pair([e, e], Truncation(1, strategy="only_first")),
            "the text of strategy='only_first' must have more than the 3 tokens to be cut, got 2",
        ),
    ],
)
def test_refusals(wrong, says):
    with pytest.raises(ValueError, match=says.replace("[", r"\[")):
        wrong(Encoding([1, 2], ["a", "b"], [(0, 1), (1, 2)]))


def test_numpy_numbers():
    "Positions and lengths that come out of arrays; what is kept of them goes into JSON."
    np = pytest.importorskip("numpy")
    e = Encoding([1, 2, 3], ["a", "b", "c"], [(0, 1), (1, 2), (2, 3)], word_ids=[0, 0, 1])
    for k in (np.int64(1), np.uint8(1)):
        assert (
            e.char_to_token(k),
            e.token_to_chars(k),
            e.word_to_tokens(k),
            e.token_to_word(k),
            e.char_to_word(k, np.int32(0)),
        ) == (1, (1, 2), (2, 3), 0, 0)
        assert (
            e.truncate(k) == e.truncate(1)
            and e.truncate(2, stride=np.int64(1)) == e.truncate(2, stride=1)
            and e.pad(np.int64(5), pad_id=k).ids == [1, 2, 3, 1, 1]
        )
        assert json.loads(
            json.dumps([Truncation(k, k).to_dict(), Padding(k, "left", k, k, k).to_dict()])
        ) == [Truncation(1, 1).to_dict(), Padding(1, "left", 1, 1, 1).to_dict()]


def test_many_encodings_are_joined_at_once():
    parts = [Encoding([k] * 50, ["a"] * 50, [(i, i + 1) for i in range(50)]) for k in range(3000)]
    assert_linear(Encoding.merge, parts, len(parts))
    out = Encoding.merge(parts)
    assert out.ids == [k for k in range(3000) for _ in range(50)] and out.offsets == [
        (i, i + 1) for i in range(150_000)
    ]
    assert merge_encodings(iter(parts[:2])) == merge_encodings(parts[:2]) and merge_encodings(
        iter([parts[0].truncate(30), parts[1]])
    ) == merge_encodings([parts[0].truncate(30), parts[1]])


def test_a_question_and_its_passage():
    "The answers that a user of the other library knows, for one text and for a pair."
    words = ["[CLS]", "i", "love", "hug", "##ging", "##face", "[SEP]"]
    one = Encoding(
        list(range(7)),
        words,
        [(0, 0), (0, 1), (2, 6), (7, 10), (10, 14), (14, 18), (0, 0)],
        word_ids=[None, 0, 1, 2, 2, 2, None],
        special_tokens_mask=[1, 0, 0, 0, 0, 0, 1],
        sequence_ranges={0: (1, 6)},
    )
    tail = Encoding(
        [7, 8, 9],
        ["do", "you", "[SEP]"],
        [(0, 2), (3, 6), (0, 0)],
        word_ids=[0, 1, None],
        type_ids=[1] * 3,
        special_tokens_mask=[0, 0, 1],
        sequence_ranges={1: (0, 2)},
    )
    pair = merge_encodings([one, tail])
    assert (one.n_sequences, one.sequence_ids, pair.n_sequences, pair.sequence_ids) == (
        1,
        [None, *[0] * 5, None],
        2,
        [None, *[0] * 5, None, 1, 1, None],
    )
    assert [one.word_to_tokens(k) for k in range(4)] == [(1, 2), (2, 3), (3, 6), None]
    assert (pair.word_to_tokens(2, 0), pair.word_to_tokens(1, 1), pair.word_to_tokens(2, 1)) == (
        (3, 6),
        (8, 9),
        None,
    )
    assert (one.word_to_chars(2), pair.word_to_chars(1, 1), pair.word_to_chars(0, 0)) == (
        (7, 18),
        (3, 6),
        (0, 1),
    )
    assert [pair.token_to_sequence(k) for k in (0, 1, 5, 6, 7, 9, 99)] == [None, 0, 0, None, 1, None, None]
    assert [pair.token_to_chars(k) for k in (0, 4, 8, 9)] == [None, (10, 14), (3, 6), None]
    assert [pair.token_to_word(k) for k in (0, 4, 8, 9, 42)] == [None, 2, 1, None, None]
    assert [pair.char_to_token(*k) for k in ((0, 0), (1, 0), (11, 0), (0, 1), (2, 1), (5, 1))] == [
        1,
        None,
        4,
        7,
        None,
        8,
    ]
    assert [pair.char_to_word(*k) for k in ((17, 0), (4, 1), (18, 0))] == [2, 1, None]
    assert (
        one.truncate(2).pieces,
        one.truncate(2, direction="left").pieces,
        len(one.truncate(2).overflowing),
    ) == (["[CLS]", "i"], ["##face", "[SEP]"], 3)
    assert [o.pieces for o in one.truncate(4, stride=2).overflowing] == [
        ["love", "hug", "##ging", "##face"],
        ["##ging", "##face", "[SEP]"],
    ]
    assert one.pad(9).attention_mask == [1] * 7 + [0] * 2 and one.pad(9, direction="left").sequence_ids == [
        None
    ] * 3 + [0] * 5 + [None]
    with pytest.raises(ValueError, match='direction must be "right" or "left", got \'both\''):
        one.truncate(2, direction="both")


def test_a_stride_that_repeats_everything_is_refused_when_it_is_set():
    "On a tokenizer, with a post-processor that comes later, and in a call; what is around the text counts. What was set before stays."
    made = BPE({"a": 0, "b": 1, "[C]": 2, "[S]": 3}, [])
    around = TemplateProcessing(
        "[C] $A [S]", pair="[C] $A [S] $B [S]", special_tokens=[("[C]", 2), ("[S]", 3)]
    )
    tok = Tokenizer(made, pre_tokenizer="whitespace", post_processor=around)
    for size, stride in ((5, 3), (5, 4), (5, 5), (3, 1), (2, 1), (1, 1), (0, 1)):
        with pytest.raises(
            ValueError, match=f"stride must be below the {max(size - 2, 0)} tokens that fit .*got {stride}"
        ):
            tok.truncation = Truncation(size, stride)
        with pytest.raises(ValueError, match="stride must be below"):
            tok("a b", truncation=True, max_length=size, stride=stride)
        assert tok.truncation is None
    with pytest.raises(ValueError, match="below the 2 tokens"):
        tok("a b", "a", truncation=True, max_length=5, stride=2)
    assert [
        len(r)
        for r in tok(["a b a b a"], truncation=True, max_length=5, stride=2, return_overflowing_tokens=True)[
            "input_ids"
        ]
    ] == [5, 5, 5]
    assert tok(["a b a b a"], truncation=True, max_length=3, stride=2, add_special_tokens=False)["input_ids"][
        0
    ].tolist() == [0, 1, 0]
    for size in (2, 1, 0):
        tok.truncation = Truncation(size)
    bare = Tokenizer(made, pre_tokenizer="whitespace", truncation=Truncation(5, 3))
    with pytest.raises(ValueError, match="below the 3 tokens"):
        bare.post_processor = around
    assert bare.post_processor is None and bare.encode("a b a b a b") == [0, 1, 0, 1, 0]
    copied = pickle.loads(pickle.dumps(bare))
    assert copied.truncation == Truncation(5, 3)


def test_a_file_with_such_a_stride_opens_and_says_so_when_it_cuts(tmp_path):
    tok = Tokenizer(BPE({"a": 0, "b": 1}, []), pre_tokenizer="whitespace")
    tok.save(tmp_path / "t.json")
    described = json.loads((tmp_path / "t.json").read_text())
    described["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 3}
    (tmp_path / "t.json").write_text(json.dumps(described))
    found = Tokenizer.load(tmp_path / "t.json")
    assert found.encode("a b a") == [0, 1, 0]
    with pytest.raises(ValueError, match="pass a smaller stride"):
        found.encode("a b a b")
