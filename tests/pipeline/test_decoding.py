"""Ids to text, at once and in steps: the stream against decode for every decoder, and both against HF."""

import copy
import json
import random
import sys
import threading
from types import SimpleNamespace

import pytest
from tests.pipeline.test_decoders import PATTERNS, piece
from costs import assert_linear
from seeds import fresh, some_of

from subword_nb import Tokenizer, decoders as D
from subword_nb.pipeline.decoders import decoder_from_dict
from subword_nb.pipeline.decoding import (
    decode,
    decode_batch,
    decode_bytes,
    decode_ref,
    decode_stream,
    decode_stream_ref,
    stream,
    stream_decoder,
)
from subword_nb.pipeline.encoder import Encoders, table_of
from subword_nb.pipeline.encoding import TokenizerConfig
from subword_nb.text.normalizers import NFC, Lowercase
from subword_nb.core.ragged import ragged
from subword_nb.core.unicode import BYTE2CHAR
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.wordpiece.wordlevel import WordLevel


def toy(id2piece, decoder, added=(), normalizer=None):
    "What decoding needs of a tokenizer."
    return SimpleNamespace(
        id2piece=list(id2piece),
        vocab_size=sum(p is not None for p in id2piece),
        decoder=decoder,
        added_tokens=tuple(added),
        normalizer=normalizer,
        _encoders=Encoders(None),  # where its tables are stored
    )


class Reversed(D.Decoder):
    "A decoder of somebody else's, that looks at all pieces."

    def _decode(self, pieces, errors):
        return pieces[::-1]


def some_decoder(rng: random.Random, depth: int = 0):
    "A decoder of any kind with random options."
    kind, flag = rng.randrange(12 if depth < 2 else 10), rng.random() < 0.5
    if kind < 8:
        mark = rng.choice(["▁", " ", "##", "a", "", "▁▁", "\u0301"])
        return [
            D.ByteLevel(),
            D.ByteFallback(),
            D.Fuse(),
            D.BPEDecoder(rng.choice(["</w>", mark])),
            D.WordPiece(rng.choice(["##", mark]), flag),
            D.CTC(rng.choice(["<pad>", mark]), rng.choice(["|", mark]), flag),
            D.Metaspace(rng.choice("▁ _"), rng.choice(["always", "never", "first"])),
            D.Replace(mark, rng.choice(["", " ", "▁a", "b"])),
        ][kind]
    if kind == 8:
        return D.Strip(
            rng.choice(" ▁a"), rng.choice((0, 1, 2, 2**64 - 1)), rng.choice((0, 0, 1, 3, 2**64 - 1))
        )
    if kind == 9:
        return (
            D.Replace({"Regex": rng.choice(PATTERNS)}, "-")
            if flag
            else rng.choice([None, Reversed()])
            if not depth
            else Reversed()
        )
    return D.Sequence([some_decoder(rng, depth + 1) for _ in range(rng.randrange(5))])


LLAMA = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
USUAL = [
    D.ByteLevel(),
    LLAMA,
    D.Metaspace(),
    D.WordPiece(),
    D.BPEDecoder(),
    D.CTC(),
    None,
    D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]),
    D.Sequence([D.ByteFallback(), D.Metaspace()]),
]


def some_tokenizer(rng: random.Random, decoder):
    "Random pieces, some of them added or special, and holes."
    pieces = [None if rng.random() < 0.1 else piece(rng) for _ in range(12)]
    added = [
        (AddedToken(p, normalized=rng.random() < 0.3, special=rng.random() < 0.5), i)
        for i, p in enumerate(pieces)
        if p and rng.random() < 0.25
    ]
    return toy(pieces, decoder, added, rng.choice([None, None, Lowercase(), NFC()]))


def some_ids(rng: random.Random, tok, longest: int = 14) -> list[int]:
    "Ids with runs of equal ones."
    real = [i for i, p in enumerate(tok.id2piece) if p is not None]
    return (
        [i for _ in range(rng.randrange(longest)) for i in [rng.choice(real)] * rng.choice((1, 1, 1, 2))]
        if real
        else []
    )


def as_streamed(tok):
    "The same tokenizer, with the stream's rule for runs of bytes that are not UTF-8."
    return toy(tok.id2piece, stream_decoder(tok.decoder), tok.added_tokens, tok.normalizer)


@pytest.mark.parametrize("seed", range(6))
def test_the_stream_is_decode_in_steps(seed):
    "What has come out is never changed, no more than hindsight allows, and all of it in the end."
    rng = random.Random(seed)
    for _ in range(400):
        tok = some_tokenizer(rng, rng.choice(USUAL) if rng.random() < 0.4 else some_decoder(rng))
        ids, skip, errors = (
            some_ids(rng, tok),
            rng.random() < 0.5,
            rng.choice(["replace", "replace", "ignore"]),
        )
        s = stream(tok, skip_special_tokens=skip, errors=errors)
        steps = [*map(s.step, ids), s.finish()]
        assert (
            "".join(steps)
            == decode(as_streamed(tok), ids, skip_special_tokens=skip, errors=errors)
            == "".join(decode_stream(tok, ids, skip_special_tokens=skip, errors=errors))
        ), (tok, ids)
        if "".join(steps) != (whole := decode(tok, ids, skip_special_tokens=skip, errors=errors)):
            pieces = [p if p is not None else "" for p in tok.id2piece]
            assert any(D.fallback_byte(pieces[i]) is not None for i in ids) and (
                errors == "ignore" or "\ufffd" in whole
            ), (tok, ids)
        out = most = ""
        for step, ref in zip(steps, decode_stream_ref(tok, ids, skip_special_tokens=skip, errors=errors)):
            out, most = out + step, most + ref
            assert most.startswith(out), (tok, ids)
        k = rng.randrange(len(ids) + 1)
        assert "".join(steps[:k]) + "".join(
            decode_stream(tok, ids[k:], skip_special_tokens=skip, errors=errors, after=ids[:k])
        ) == "".join(steps)


@pytest.mark.parametrize(
    "decoder",
    [
        D.ByteLevel(),
        D.WordPiece(),
        D.Metaspace(),
        D.BPEDecoder(),
        D.Sequence([D.Replace("▁▁", " "), D.Fuse(), D.Strip(" ", 1, 1)]),
        LLAMA,
        None,
    ],
    ids=str,
)
def test_nothing_is_held_back_without_need(decoder):
    "For these decoders: what every possible next id agrees on is out already."
    rng = random.Random(9)
    for _ in range(50):
        tok = toy(["Ã", "©", "a", "▁", "▁b", "##c", "d</w>", "é", " ", "<0xC3>", "<0xA9>", "<0x41>"], decoder)
        ids, out = some_ids(rng, tok, 6), ""
        s = stream(tok)
        for k, i in enumerate(ids):
            out += s.step(i)
            # All texts that may follow: the end, or one of some continuations.
            texts = [
                decode(as_streamed(tok), ids[: k + 1] + more)
                for more in (
                    [],
                    [0],
                    [1],
                    [2],
                    [3],
                    [4],
                    [9],
                    [10],
                    [11],
                    [0, 1],
                    [1, 1],
                    [3, 3],
                    [8, 8, 2],
                    [9, 2],
                    [10, 2],
                    [10, 9, 2],
                    [0, 2],
                )
            ]
            agreed = len(min(texts, key=len))
            while any(t[:agreed] != texts[0][:agreed] for t in texts):
                agreed -= 1
            assert len(out) == agreed, (tok.decoder, ids[: k + 1], out, texts)


def test_no_half_characters():
    text = "naïve 你好 👩\u200d🚀 e\u0301 ﷺ\U0010ffff"
    visible, fallback = (
        toy([BYTE2CHAR[b] for b in range(256)], D.ByteLevel()),
        toy([f"<0x{b:02X}>" for b in range(256)] + ["x"], LLAMA),
    )
    s, out = stream(visible), []
    out.extend(s.step(b) for b in text.encode())
    assert [c for c in out if c] == list(text) and s.finish() == ""
    s = stream(fallback)
    assert [c for b in text.encode() if (c := s.step(b))] == list(text) and (s.step(256), s.finish()) == (
        "x",
        "",
    )


def test_a_line_end_in_bytes_is_given_out_at_once():
    "Phi-3 and Llama 2 write a line end as <0x0A>: nobody waits for the next word to see it."
    tok = toy(["▁one", "<0x0A>", "two", "<0xC3>", "<0xA9>", "<0xFF>"], LLAMA)
    assert [*map(stream(tok).step, [0, 1, 1, 2, 1, 3, 4, 1, 2])] == [
        "one",
        "\n",
        "\n",
        "two",
        "\n",
        "",
        "é",
        "\n",
        "two",
    ]
    # A bad byte takes what has not been given out, to the end of its run; the run after the next piece is another.
    s = stream(tok)
    assert [*map(s.step, [0, 1, 3, 5, 1, 2, 1]), s.finish()] == [
        "one",
        "\n",
        "",
        "\ufffd\ufffd",
        "\ufffd",
        "two",
        "\n",
        "",
    ]
    s = stream(tok, errors="ignore")
    assert [*map(s.step, [0, 1, 3, 5, 1, 2, 1]), s.finish()] == ["one", "\n", "", "", "", "two", "\n", ""]
    s = stream(tok)
    assert [*map(s.step, [1, 3, 2, 3]), s.finish()] == ["\n", "", "\ufffdtwo", "", "\ufffd"]
    # A stage that wants whole parts gets the run as one.
    words = toy(tok.id2piece, D.Sequence([D.ByteFallback(), D.WordPiece("\n")]))
    assert "".join(decode_stream(words, [2, 1, 1, 2, 1])) == decode(words, [2, 1, 1, 2, 1]) == "two\n two"


def test_lost_bytes_are_seen_at_once():
    "A byte that begins nothing, and one that is cut short by the next."
    tok = toy(["Ã", "©", "a", "â", "ĤĬ"], D.ByteLevel())
    s = stream(tok)
    assert [s.step(i) for i in (1, 0, 2, 3, 3, 0, 1)] == [
        "\ufffd",
        "",
        "\ufffda",
        "",
        "\ufffd",
        "\ufffd",
        "é",
    ] and s.finish() == ""
    assert [stream(tok, errors="ignore").step(i) for i in (1, 0)] == ["", ""]
    strict = stream(tok, errors="strict")
    with pytest.raises(UnicodeDecodeError):
        strict.step(1)


def test_what_is_refused():
    tok = toy(["a", None, "c"], D.Fuse())
    for ids, message in (
        ([1], "ids must be from 0 to 2 in this vocabulary of 2 pieces, got 1"),
        ([3], "ids must be from 0 to 2 in this vocabulary of 2 pieces, got 3"),
        ([-1], "ids must be from 0 to 2 in this vocabulary of 2 pieces, got -1"),
        ([2**70], "ids must be from 0 to 2 in this vocabulary of 2 pieces, got 1180591620717411303424"),
    ):
        for f in (
            decode,
            decode_bytes,
            lambda tok, ids: stream(tok).step(ids[0]),
            lambda tok, ids: decode_batch(tok, [ids]),
        ):
            with pytest.raises(KeyError, match=message):
                f(tok, ids)
    for bad, message in (
        ([True], "ids must be integers, got True, a bool"),
        (["a"], "ids must be integers, got 'a', a str"),
        ([1.0], "ids must be integers, got 1.0, a float"),
        ([[0]], r"ids must be integers, got \[0\], a list"),
        (0, r"pass \[0\]"),
        (None, "NoneType"),
        ("ab", "ids must be a list or an array, which have an order, got str"),
        (b"ab", "ids must be a list or an array, which have an order, got bytes"),
        ({0}, "ids must be a list or an array, which have an order, got set"),
        ({0: 1}, "ids must be a list or an array, which have an order, got dict"),
    ):
        with pytest.raises(ValueError, match=message):
            decode(tok, bad)
    for f in (
        lambda: stream(tok).step(True),
        lambda: stream(tok, errors="x"),
        lambda: decode(tok, [0], errors=None),
        lambda: decode_batch(tok, 3),
        lambda: decode_batch(tok, [3]),
    ):
        with pytest.raises(ValueError):
            f()
    s = stream(tok)
    assert (s.step(0), s.finish(), s.finish()) == ("a", "", "")
    with pytest.raises(ValueError, match=r"ids must be pushed before finish\(\), got one after it"):
        s.step(0)


def test_arrays_and_batches():
    np = pytest.importorskip("numpy")
    tok = toy(["a", "b", "c"], D.Fuse())
    assert (
        decode(tok, np.array([0, 1, 2], np.uint32))
        == decode(tok, iter([0, np.int64(1), 2]))
        == decode(tok, (0, 1, 2))
        == "abc"
    )
    assert (
        decode_batch(tok, np.array([[0, 1], [1, 2]]))
        == decode_batch(tok, [[0, 1], np.array([1, 2])])
        == decode_batch(tok, iter([(0, 1), (1, 2)]))
        == ["ab", "bc"]
    )
    assert decode_batch(tok, []) == [] and decode(tok, []) == "" and stream(tok).step(np.uint32(1)) == "b"
    assert (
        stream(tok).step(np.array([0, 2], np.uint32)) == stream(tok).step(iter([0, 2])) == "ac"
        and stream(tok).step(np.array(1)) == "b"
        and stream(tok).step([]) == ""
    )
    with pytest.raises(ValueError, match=r"ids must be integers, got \[0\], a list"):
        decode(tok, np.array([[0]]))


def outcome(function, *args, **options):
    "What a call returns, or the kind and the text of its error."
    try:
        return function(*args, **options)
    except Exception as e:
        return type(e), str(e)


def check_long_rows(rng, tok, rows):
    "Lists, arrays and batches of many ids are decoded as by the reference, errors included."
    np = pytest.importorskip("numpy")
    for skip in (False, True):
        for errors in ("replace", "ignore", "strict"):
            options = {"skip_special_tokens": skip, "errors": errors}
            expected = [outcome(decode_ref, tok, row, **options) for row in rows]
            for row, text in zip(rows, expected, strict=True):
                kind = rng.choice(
                    (list, tuple, lambda r: np.array(r, rng.choice((np.uint32, np.int64, ">i4"))))
                )
                assert outcome(decode, tok, kind(row), **options) == text, (tok, row, options)
            if all(isinstance(text, str) for text in expected):
                assert decode_batch(tok, rows, **options) == expected
                assert decode_batch(tok, ragged(rows), **options) == expected
                assert decode_batch(tok, [np.array(row, np.uint32) for row in rows], **options) == expected
                assert decode_batch(tok, np.array([rows[0]] * 2), **options) == [expected[0]] * 2


@pytest.mark.parametrize("seed", range(2))
def test_long_rows_are_decoded_as_by_the_reference(seed):
    rng = fresh("long rows", seed)
    for k in range(60):
        tok = some_tokenizer(rng, USUAL[k % len(USUAL)] if k % 2 else some_decoder(rng))
        rows = [row for row in (some_ids(rng, tok) for _ in range(4)) if row]
        if rows:
            check_long_rows(rng, tok, [row * (900 // len(row) + 1) for row in rows])


def test_long_rows_of_every_file(shared_data):
    from subword_nb import Tokenizer

    rng = fresh("long rows")
    paths = [path for path in sorted((shared_data / "vocab").rglob("*")) if path.is_file()]
    paths = [p for p in paths if p.parent.name != "invalid" and "config" not in p.name and p.suffix != ".gz"]
    assert len(paths) > 30
    for path in some_of(paths, "long rows"):
        tok = Tokenizer.load(path)
        real = [i for i, piece in enumerate(tok.id2piece) if piece is not None]
        fallback = [i for i in real if tok.id2piece[i].startswith("<0x")] or real
        added = [i for _, i in tok.added_tokens] or real
        rows = []
        for _ in range(6):
            row = rng.choices(added, k=rng.randrange(3))
            while len(row) < 900:
                row += rng.choices(rng.choice((real, real, fallback, added)), k=rng.randrange(9))
                row += tok.encode(rng.choice(("naïve café 日本語 🎉", " two  spaces .", "don't\n\n")))
            rows.append(row)
        check_long_rows(rng, tok, rows)


def test_long_rows_refuse_what_short_ones_refuse():
    np = pytest.importorskip("numpy")
    tok = toy(["a", "b", None], D.Fuse())
    for wrong in (3, -1, 2, 2**32, 2**70, True, 1.0, "a", None, [0]):
        for row in ([wrong], [0, wrong, 1] * 500, [1] * 900 + [wrong]):
            assert outcome(decode, tok, row) == outcome(decode_ref, tok, row), wrong
            assert outcome(decode_batch, tok, [[0] * 900, row]) == outcome(decode_ref, tok, row), wrong
    for dtype in (np.float64, bool, "U1"):
        row = np.ones(900, dtype)
        assert outcome(decode, tok, row) == outcome(decode_ref, tok, row)
        assert outcome(decode_batch, tok, [row, row]) == outcome(decode_ref, tok, row)
    assert decode(tok, np.array([0, 1] * 500, np.int16)) == "ab" * 500
    assert outcome(decode, tok, np.array([0, -1] * 500, np.int16)) == outcome(decode_ref, tok, [0, -1])


def test_threads_share_what_is_spelled():
    tok = toy([f"▁{i}" for i in range(20_000)], D.Metaspace())
    rows = [list(range(k, 20_000, 7)) for k in range(7)] * 4
    expected = [decode_ref(tok, row) for row in rows]
    found = [None] * len(rows)

    def work(k):
        found[k] = decode(tok, rows[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_parts_changed_later_are_seen():
    "The pieces are stored with the encoders of a tokenizer, and made anew when a part changes."
    model = WordLevel({"a": 0, "##b": 1}, unk_piece=None)
    tok = Tokenizer(
        model,
        decoder=D.ByteLevel(),
        added_tokens=[(AddedToken("B", normalized=True, special=False), 2)],
    )

    def texts(ids):
        long = ids * 1000
        assert "".join(decode_stream(tok, ids)) == decode(tok, ids) == decode_ref(tok, ids)
        assert decode(tok, long) == decode_ref(tok, long)
        return decode(tok, ids)

    assert texts([0, 2]) == "aB"
    tok.normalizer = Lowercase()
    assert texts([0, 2]) == "ab"
    tok.decoder = D.WordPiece()
    assert texts([0, 1, 2]) == "ab b"
    tok.config = TokenizerConfig(clean_up=True)
    tok.add_tokens(["!"])
    assert texts([0, 3]) == "a!"
    tok.model = WordLevel({"x": 0, "y": 1}, unk_piece=None)
    assert texts([0, 1, 2]) == "x y b"


def test_tables_follow_the_parts_and_not_what_comes_around_the_ids():
    tok = Tokenizer.train(["ab ab"], vocab_size=258)
    asked = []

    def make(tok):
        asked.append(tok.decoder)
        return object()

    first = table_of(tok, make)
    tok.truncation = tok.padding = tok.post_processor = None
    assert table_of(tok, make) is first and len(asked) == 1
    for change in ("decoder", "normalizer", "pre_tokenizer", "model", "added_tokens", "config"):
        before = table_of(tok, make)
        setattr(tok, change, getattr(tok, change))
        assert table_of(tok, make) is not before, change
        assert table_of(tok, make) is table_of(tok, make), change
    assert not [
        name for name in vars(tok) if name.startswith("_") and name not in ("_encoders", "_vocabulary")
    ]


def test_a_table_made_while_a_part_changes_is_not_kept():
    tok = Tokenizer.train(["ab ab"], vocab_size=258)

    def make(tok):
        found = tok.decoder
        if found is not None:
            tok.decoder = None
        return [found]

    assert table_of(tok, make) != [None]
    assert table_of(tok, make) == [None]


def test_texts_are_of_before_or_after_while_parts_change():
    "Threads decode short and long rows while the decoder changes to and fro; the last answer is of the end."
    tok = Tokenizer(WordLevel({f"▁{i}": i for i in range(100)}, unk_piece=None), decoder=D.Metaspace())
    rows, stop, wrong = [list(range(9)), list(range(100)) * 20], threading.Event(), []
    allowed = []
    choices = D.ByteLevel(), D.Metaspace()
    for decoder in choices:
        tok.decoder = decoder
        allowed.append([decode_ref(tok, row) for row in rows])

    def work():
        while not stop.is_set():
            for k, row in enumerate(rows):
                if decode(tok, row) not in (allowed[0][k], allowed[1][k]):
                    wrong.append(row)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    team = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    try:
        for thread in team:
            thread.start()
        for k in range(100):
            tok.decoder = choices[k % 2]
            assert [decode(tok, row) for row in rows] == allowed[k % 2]
    finally:
        stop.set()
        for thread in team:
            thread.join(60)
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.parametrize("seed", range(4))
def test_what_streams_remember_changes_nothing(seed):
    "A tokenizer that has streamed before, and copies of a stream in its middle, against a tokenizer that has not."
    rng, hits = random.Random(seed), 0
    for _ in range(120):
        tok, errors, skip = (
            some_tokenizer(rng, rng.choice(USUAL) if rng.random() < 0.6 else some_decoder(rng)),
            rng.choice(["replace", "ignore"]),
            rng.random() < 0.5,
        )
        for _ in range(4):
            ids, fresh = some_ids(rng, tok), toy(tok.id2piece, tok.decoder, tok.added_tokens, tok.normalizer)
            one, other, at = (
                stream(tok, skip_special_tokens=skip, errors=errors),
                stream(fresh, skip_special_tokens=skip, errors=errors),
                rng.randrange(len(ids) + 1),
            )
            hits += sum(i in one._known for i in ids)
            start = [(one.step(i), other.step(i)) for i in ids[:at]]
            again = (copy.copy if rng.random() < 0.5 else copy.deepcopy)(one)
            rest = [*map(other.step, ids[at:]), other.finish()]
            assert all(a == b for a, b in start) and [*map(one.step, ids[at:]), one.finish()] == rest == [
                *map(again.step, ids[at:]),
                again.finish(),
            ], (tok, ids)
    assert hits > 100


def test_after_an_error_the_stream_goes_on():
    "What is refused changes nothing; a byte that is no text is an error under `strict`, wherever it comes."
    tok = toy(["a", "Ã", "©", "ÿ", None], D.ByteLevel())
    s = stream(tok, errors="strict")
    for bad in (4, 9, True, "x", None, 1.5):
        with pytest.raises((KeyError, ValueError)):
            s.step(bad)
    assert [s.step(0), s.step(1), s.step(2)] == ["a", "", "é"]
    for _ in range(3):
        with pytest.raises(UnicodeDecodeError):
            s.step(3)
        assert s.step(0) == "a"
    tok = toy(["a", "<0xFF>", "<0xC3>", "<0xA9>"], D.Sequence([D.ByteFallback(), D.Fuse()]))
    s = stream(tok, errors="strict")
    for _ in range(3):
        assert s.step([0, 0, 2, 3, 0]) == "aaéa"
        with pytest.raises(UnicodeDecodeError):
            s.step(1)
    for _ in range(3):
        assert s.step([2, 3, 2]) == "é"
        with pytest.raises(UnicodeDecodeError):
            s.step(0)
        assert s.step([2, 3, 0]) == "éa"


def test_streams_in_threads():
    "Streams of one tokenizer share what they remember."
    tok, wrong = toy(["a", "##b", "c", "Ã", " "], D.WordPiece()), []

    def work(seed):
        ids = random.Random(seed).choices(range(5), k=4000)
        wrong.extend([seed] * ("".join(decode_stream(tok, ids)) != decode(tok, ids)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_stream_remembers_no_more_than_texts_of_pieces():
    "A hostile Strip counts down; its states are not kept."
    for decoder in (
        D.Strip(" ", 2**64 - 1, 2**64 - 1),
        D.Sequence([D.Fuse(), D.Strip(" ", 10**6, 10**6)]),
        D.BPEDecoder(" "),
        D.CTC(),
    ):
        tok = toy([" ", "a", "  "], decoder)
        s = stream(tok)
        for i in [0, 0, 2] * 3000 + [1, 1, 0] * 3000:
            s.step(i)
        assert sum(1 + len(texts) for texts in s._texts.values()) < 16


def test_a_stream_costs_the_same_at_the_end_as_at_the_beginning():
    for decoder in (
        D.ByteLevel(),
        LLAMA,
        D.WordPiece(),
        D.Sequence([D.ByteFallback(), D.Strip(" ", 0, 2**64 - 1), D.Fuse(), D.Strip(" ", 0, 2**64 - 1)]),
    ):
        tok = toy(["▁a", " ", "<0x41>", "##b"], decoder)

        def work(ids, tok=tok):
            assert "".join(decode_stream(tok, ids)) == decode(tok, ids)

        assert_linear(work, lambda n: [0, 3, 2, 1] * (n // 4) + [1] * n + [2] * n, 16_000)


# ---------------------------------------------------------------- against HF


def in_hf(tk, tok):
    "A tokenizer of HF with the same pieces, decoder and added tokens; ours, with its ids."
    full = json.loads(
        tk.Tokenizer(
            tk.models.WordLevel({p: i for i, p in enumerate(tok.id2piece)}, tok.id2piece[0])
        ).to_str()
    )
    added = [
        dict(
            id=i,
            content=t.content,
            single_word=False,
            lstrip=False,
            rstrip=False,
            normalized=t.normalized,
            special=t.special,
        )
        for t, i in tok.added_tokens
    ]
    return tk.Tokenizer.from_str(
        json.dumps(
            full
            | {
                "added_tokens": added,
                "decoder": tok.decoder and tok.decoder.to_dict(),
                "normalizer": tok.normalizer and tok.normalizer.to_dict(),
            }
        )
    )


@pytest.mark.peers
def test_hf_decodes_the_same():
    tk, rng, n = (
        pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers"),
        random.Random(20),
        0,
    )
    while n < 400:
        decoder = rng.choice([*USUAL, D.Sequence([D.CTC(), D.Fuse()]), D.Sequence([])])
        pieces = list(dict.fromkeys(piece(rng) for _ in range(12)))
        contents = [
            p
            for p in dict.fromkeys([*pieces, "Pug!", "pug!", "<S>", "É", "Å"])
            if p and (rng.random() < 0.3 and not (isinstance(decoder, D.ByteLevel) and not p.isascii()))
        ]
        added = [
            (
                AddedToken(c, normalized=rng.random() < 0.5, special=rng.random() < 0.5),
                pieces.index(c) if c in pieces else None,
            )
            for c in contents
        ]
        for k, (t, i) in enumerate(added):
            if i is None:
                pieces.append(t.content)
                added[k] = t, len(pieces) - 1
        tok = toy(pieces, decoder, added, rng.choice([None, Lowercase(), NFC()]))
        other = in_hf(tk, toy(pieces[: len(pieces)], decoder, added, tok.normalizer))
        n += 1
        for _ in range(10):
            ids = some_ids(rng, tok)
            for skip in (True, False):
                assert decode(tok, ids, skip_special_tokens=skip) == other.decode(
                    ids, skip_special_tokens=skip
                ), (tok, ids, skip)
            assert decode_batch(tok, [ids, ids[:2]], skip_special_tokens=True) == other.decode_batch(
                [ids, ids[:2]], skip_special_tokens=True
            )


@pytest.mark.peers
def test_a_byte_level_added_token_is_its_own_text():
    "HF reads an added token of Latin letters as bytes; here it comes back as it was."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    pieces = ["a", "é", "Ġx"]
    added = [(AddedToken("é", special=False), 1), (AddedToken("Ġx", special=False), 2)]
    tok = toy(pieces, D.ByteLevel(), added)
    assert (decode(tok, [0, 1, 2]), in_hf(tk, tok).decode([0, 1, 2])) == ("aéĠx", "a\ufffd x")
    of_file = D.decoder_from_dict(tok.decoder.to_dict())  # a file is read as HF reads it
    assert decode(toy(pieces, of_file, added), [0, 1, 2]) == "a\ufffd x"


@pytest.mark.peers
def test_hf_stream_and_its_faults():
    "Where HF's stream returns text, it is the same; it loses what it holds at the end, and breaks at a run of invalid bytes."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    tok = toy(["Ġcaf", "Ã", "©", "s", "▁x"], D.ByteLevel())
    s, other, hf = stream(tok), tk.decoders.DecodeStream(), in_hf(tk, tok)
    assert (
        [s.step(i) for i in (0, 1, 2, 3)]
        == [other.step(hf, i) or "" for i in (0, 1, 2, 3)]
        == [" caf", "", "é", "s"]
    )
    assert (s.step(1), other.step(hf, 1), s.finish()) == (
        "",
        None,
        "\ufffd",
    )  # HF's has no end, so this is lost
    tok = toy(["<0xC3>", "<0xA9>", "x", "▁one", "<0x0A>", "▁two"], LLAMA)
    s, other, hf = stream(tok), tk.decoders.DecodeStream(), in_hf(tk, tok)
    assert [(s.step(i), other.step(hf, i) or "") for i in (3, 4, 5, 0, 1, 4, 4, 2)] == [
        (t, t) for t in ("one", "\n", " two", "", "é", "\n", "\n", "x")
    ]
    tok = toy(["<0xC3>", "<0xA9>", "x"], D.Sequence([D.ByteFallback(), D.Fuse()]))
    s, other, hf = stream(tok), tk.decoders.DecodeStream(), in_hf(tk, tok)
    ids = [2, 0, 1, 0, 2]
    assert (
        "".join([*map(s.step, ids), s.finish()]) == "xé\ufffdx"
        and decode(tok, ids) == hf.decode(ids) == "x\ufffd\ufffd\ufffdx"
    )
    theirs = []
    try:
        theirs.extend(other.step(hf, i) or "" for i in ids)
    except Exception as e:
        theirs.append(type(e).__name__)
    assert "".join(theirs) != decode(tok, ids)


@pytest.mark.peers
@pytest.mark.slow
def test_every_file_decodes_as_in_hf(shared_data):
    "Golden and random ids of every tokenizer.json, at once and in steps."
    tk, rng, seen = (
        pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers"),
        random.Random(21),
        0,
    )
    strings = json.loads((shared_data / "golden/strings.json").read_text(encoding="utf-8"))
    for path in sorted((shared_data / "vocab").rglob("*tokenizer*.json")):
        try:
            other, d = tk.Tokenizer.from_file(str(path)), json.loads(path.read_text(encoding="utf-8"))
        except Exception:
            continue
        if "model" not in d:
            continue
        added = tuple(
            (AddedToken(t["content"], normalized=t["normalized"], special=t["special"]), t["id"])
            for t in d.get("added_tokens", ())
        )
        normalizer = other.normalizer and SimpleNamespace(normalize=other.normalizer.normalize_str)
        top = max(other.get_vocab(with_added_tokens=True).values()) + 1
        tok = toy(
            [other.id_to_token(i) for i in range(top)], decoder_from_dict(d.get("decoder")), added, normalizer
        )
        real, seen = [i for i in range(top) if tok.id2piece[i] is not None], seen + 1
        batches = [other.encode(s).ids for s in strings] + [
            rng.choices(real + [i for _, i in added] * 9, k=rng.randrange(1, 24)) for _ in range(500)
        ]
        for ids in batches:
            for skip in (True, False):
                assert decode(tok, ids, skip_special_tokens=skip) == other.decode(
                    ids, skip_special_tokens=skip
                ), (path, ids, skip)
            assert "".join(decode_stream(tok, ids, skip_special_tokens=True)) == decode(
                tok, ids, skip_special_tokens=True
            )
    assert seen > 10


@pytest.mark.peers
def test_hf_stream_of_several_ids_and_its_copies():
    "A letter of three bytes in two ids, handed over one by one, together and in parts; a copy goes on by itself."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    tok = toy(["à¸", "Ń", "±", "Ġ", "<|end|>"], D.ByteLevel(), [(AddedToken("<|end|>"), 4)])
    hf, ids = in_hf(tk, tok), [0, 1, 0, 2, 3]
    for parts in ([[i] for i in ids], [ids], [ids[:1], ids[1:]], [ids[:2], ids[2:]], [ids[:3], ids[3:]]):
        s, other = stream(tok), tk.decoders.DecodeStream()
        ours, theirs = [s.step(p) for p in parts], [other.step(hf, p) or "" for p in parts]
        assert "".join(ours) == "".join(theirs) == "อั " and (
            ours == theirs or len(ours[0]) > len(theirs[0])
        ), parts  # with half a letter behind it theirs holds a whole one back
    s, other = stream(tok), tk.decoders.DecodeStream()
    s.step(0), other.step(hf, 0)
    s2, other2 = copy.copy(s), copy.copy(other)
    assert (s.step(1), s2.step(2)) == (other.step(hf, 1), other2.step(hf, 2)) == ("อ", "ั")
    s, other = stream(tok, skip_special_tokens=True), tk.decoders.DecodeStream(skip_special_tokens=True)
    assert (
        [s.step(i) for i in (4, 3, 4, 0, 4, 1)]
        == [other.step(hf, i) or "" for i in (4, 3, 4, 0, 4, 1)]
        == ["", " ", "", "", "", "อ"]
    )
    s, other = stream(tok, after=[3]), tk.decoders.DecodeStream(ids=[3])
    assert [s.step(i) for i in (0, 1, 3)] == [other.step(hf, i) or "" for i in (0, 1, 3)] == ["", "อ", " "]
    assert (stream(tok, after=[3, 0]).step(1), tk.decoders.DecodeStream(ids=[3, 0]).step(hf, 1)) == (
        "อ",
        " อ",
    )  # theirs shows a space of the prompt again, as that ends in half a letter


def test_the_first_ids_that_a_tokenizer_decodes_may_be_many():
    "No table is filled yet: the bytes are still those of the text, and not the alphabet that shows them."
    from subword_nb import Tokenizer

    tok = Tokenizer.train(["a b ^"] * 3, vocab_size=257)
    text = " " + "^" * 10_000 + "\n"
    assert tok.decode(tok.encode(text)) == text
    assert Tokenizer(**tok.parts._asdict()).decode_bytes(tok.encode(text)) == text.encode()
