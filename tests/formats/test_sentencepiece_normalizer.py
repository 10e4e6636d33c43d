"""SentencePiece's normalizer and decoder against sentencepiece: all options, texts, offsets, ids in any order, streams."""

import contextlib
import copy
import json
import pickle
import random
import tracemalloc
from functools import partial
from types import SimpleNamespace

import pytest
from seeds import TEXTS as N_TEXTS, fresh, some_of
from costs import assert_linear
from peers import sp_file

from subword_nb.text.alignment import Aligned
from subword_nb.text.charsmap import build_charsmap
from subword_nb.pipeline.decoders import Sequence, decode_pieces
from subword_nb.pipeline.decoding import decode, decode_stream
from subword_nb.pipeline.encoder import Encoders
from subword_nb.formats.sentencepiece_normalizer import (
    SentencePieceDecoder,
    SentencePieceNormalizer,
    sentencepiece_decoder,
    sentencepiece_normalizer,
)
from subword_nb.formats.sentencepiece_proto import (
    BYTE,
    CHAR,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    ModelProto,
    Piece,
    read_model_proto,
    write_model_proto,
)

SPACES = " \u00a0\u2003\u3000\u200b\ufeff\t\r\n\x0b\x0c\x1c\x1f\x85\u2028"
ALPHABETS = [
    "ab ",
    "  a▁",
    SPACES + "a",
    "aé\u0301e\u0327ö",
    "ﬁ²½①ＡＢｱﾞ",
    "한글\u1112\u1161\u11ab",
    "👩\u200d🚀🏽🇩🇪",
    "\x00\x01\x07\x7f\x9f",
    "\ue000\U000fffff\u0378\U00010900",
    "你好、日本 ",
    "<s></s><unk><0x41>",
    "´¨ \u0308",
    "שלוםمر\u0651ا",
]
WHOLE = [
    "",
    " ",
    "   ",
    "▁",
    "▁▁▁",
    " ▁ ",
    "a" * 40,
    " " * 40 + "x",
    "<s> a",
    "<|endoftext|>",
    "\ufeff",
    "\x00",
    "a\r\nb",
    "\u200b\u200b",
    "\u00a0",
    "x\u3000",
]
NAMES = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "treat_whitespace_as_suffix")


def texts(rng: random.Random, n: int):
    "n texts of a few alphabets each, with doubled and leading spaces."
    for _ in range(n):
        yield (
            rng.choice(WHOLE)
            if rng.random() < 0.03
            else "".join(
                rng.choices(
                    "".join(rng.sample(ALPHABETS, rng.randint(1, 3))) + "  ",
                    k=rng.choice((1, 2, 3, 5, 8, 13, 30)),
                )
            )
        )


def rules(rng: random.Random) -> dict:
    "A few rules of letters, spaces and nothing; some keys begin with others, some replacements hold several spaces."
    letters = "ab \t▁é\u0301ﬁ<"
    return {
        "".join(rng.choices(letters, k=rng.choice((1, 1, 2, 3)))): "".join(
            rng.choices("ab  x▁é", k=rng.randrange(4))
        )
        for _ in range(rng.randrange(1, 9))
    }


def options(rng: random.Random) -> dict:
    return {name: rng.random() < 0.6 for name in NAMES}


def normalizer(rng: random.Random) -> SentencePieceNormalizer:
    spelled = {
        "".join(rng.choices("ab ▁é\u0301<", k=rng.choice((1, 1, 2, 3, 4))))
        for _ in range(rng.choice((0, 0, 1, 3)))
    }
    return SentencePieceNormalizer(
        build_charsmap(rules(rng)) if rng.random() < 0.7 else b"", **options(rng), user_defined=tuple(spelled)
    )


def proto_of(n: SentencePieceNormalizer) -> ModelProto:
    "A model of characters with a normalizer."
    pieces = [
        Piece("<unk>", 0.0, UNKNOWN),
        Piece("<s>", 0.0, CONTROL),
        *(Piece(s, 0.0, USER_DEFINED) for s in n.user_defined),
    ]
    pieces += [Piece(c, -1.0) for c in "▁abx" if c not in n.user_defined]
    spec = {name: getattr(n, name) for name in NAMES[:3]} | (
        {"precompiled_charsmap": n.charsmap} if n.charsmap else {}
    )
    return ModelProto(
        pieces, {"model_type": CHAR, "treat_whitespace_as_suffix": n.treat_whitespace_as_suffix}, spec
    )


def theirs(proto: ModelProto):
    return pytest.importorskip(
        "sentencepiece", reason="sentencepiece is one of the peers"
    ).SentencePieceProcessor(model_proto=write_model_proto(proto))


@pytest.mark.peers
def test_generated_normalizers_against_sentencepiece():
    "Text and the origin of every character, for models of random rules, options and user-defined spellings."
    rng = fresh(1)
    for _ in range(max(60, N_TEXTS // 10)):
        n = normalizer(rng)
        proto = proto_of(n)
        sp, ours = theirs(proto), sentencepiece_normalizer(proto)
        assert ours == n
        for text in ["", " ", "▁", *texts(rng, 20)]:
            expected, origins = sp.normalize(text, with_offsets=True)
            assert ours.normalize(text) == expected, (n.to_dict(), text)
            assert ours.normalize_ref(text) == expected
            if not expected:
                continue
            assert ours.align(text) == Aligned(expected, [*zip(origins, origins[1:])]), (n.to_dict(), text)
            found = sp.encode(text, return_type="offset_mapping")
            at, aligned = 0, ours.align(text)
            for piece, span in zip(found["pieces"], found["offsets"]):
                assert aligned.span(at, at + len(piece)) == tuple(span), (n.to_dict(), text)
                at += len(piece)
            assert at == len(expected)


REAL = (
    "t5-small/spiece.model",
    "sentencepiece/test_model.model",
    "xlnet-base-cased/spiece.model",
    "chatglm-6b/ice_text.model",
    "llama-2/tokenizer.model",
    "transformers-fixtures/test_sentencepiece_bpe_char.model",
)


@pytest.mark.peers
@pytest.mark.parametrize("name", REAL)
def test_real_normalizers_against_sentencepiece(shared_file, name):
    "The normalizers of published models, on generated texts and the golden strings."
    data, rng = shared_file(f"vocab/{name}").read_bytes(), fresh(2)
    sp = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=data)
    ours = sentencepiece_normalizer(read_model_proto(data))
    golden = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    for k, text in enumerate([*golden, *texts(rng, N_TEXTS // 2)]):
        expected, origins = sp.normalize(text, with_offsets=True)
        assert ours.normalize(text) == expected, text
        if expected and k % 2:
            assert ours.align(text) == Aligned(expected, [*zip(origins, origins[1:])]), text


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("layout", ("{}", " a {} b ", "e{}\u0301"))
def test_every_code_point_against_sentencepiece(shared_file, layout):
    "With the rules that most models have."
    data = shared_file("vocab/t5-small/spiece.model").read_bytes()
    sp = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=data)
    ours = sentencepiece_normalizer(read_model_proto(data))
    for code in some_of(range(0x110000), layout):
        if not 0xD800 <= code < 0xE000:
            text = layout.replace("{}", chr(code))
            expected, origins = sp.normalize(text, with_offsets=True)
            aligned = ours.align(text)
            assert (ours.normalize(text), aligned.text) == (expected, expected), hex(code)
            if expected:
                assert aligned.char_spans() == [*zip(origins, origins[1:])], hex(code)


def test_fast_equals_reference():
    "Everything that decides between the fast ways, without a peer."
    rng, seen = fresh(3), set()
    for _ in range(400):
        n = normalizer(rng)
        seen.add((n._tables.wide, n._tables.crossed))
        for text in texts(rng, 10):
            assert n.normalize(text) == n.normalize_ref(text) == n.align(text).text, (n.to_dict(), text)
    assert len(seen) == 4


KANA = {
    "Ａ": "A",
    "Ｂ": "B",
    "Ｃ": "C",
    "ｸﾞ": "グ",
    "ｸ": "ク",
    "ｰ": "ー",
    "ﾙ": "ル",
    "①": "1",
    "②": "2",
    "③": "3",
    "㍿": "株式会社",
    "\u3000": " ",
    "\x7f": "",
}
# text, options that are not the default, the normalized text, origins and the end
LIBRARY = [
    ("", {}, "", None),
    ("      ", {}, "", None),
    ("\u3000", {}, "", None),
    ("ＡＢＣ", {}, "▁ABC", [0, 0, 1, 2, 3]),
    ("㍿", {}, "▁株式会社", [0, 0, 0, 0, 0, 1]),
    ("ｸﾞｰｸﾞﾙ", {}, "▁グーグル", [0, 0, 2, 3, 5, 6]),
    ("①②③", {}, "▁123", [0, 0, 1, 2, 3]),
    (
        " I  saw a\u3000 \u3000girl\u3000\u3000",
        {},
        "▁I▁saw▁a▁girl",
        [1, 1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16],
    ),
    ("I saw a girl", {"add_dummy_prefix": False}, "I▁saw▁a▁girl", [*range(13)]),
    ("I saw a girl", {"treat_whitespace_as_suffix": True}, "I▁saw▁a▁girl▁", [*range(13), 12]),
    ("  I saw a girl ", {"escape_whitespaces": False}, " I saw a girl", [2, *range(2, 15)]),
    (" I  saw a girl ", {"remove_extra_whitespaces": False}, "▁▁I▁▁saw▁a▁girl▁", [0, *range(16)]),
    (
        " I  saw a girl ",
        {"remove_extra_whitespaces": False, "add_dummy_prefix": False},
        "▁I▁▁saw▁a▁girl▁",
        [*range(16)],
    ),
    ("a\x7fb\x7f", {}, "▁ab", [0, 0, 2, 4]),
    ("\x7f", {}, "", None),
    ("\x7f", {"remove_extra_whitespaces": False}, "▁", [0, 1]),
    ("Ａ<b>Ａ Ａ", {"user_defined": ("<b>", "Ａ Ａ")}, "▁A<b>Ａ▁Ａ", [0, 0, 1, 1, 1, 4, 4, 4, 7]),
]


@pytest.mark.parametrize(("text", "given", "expected", "origins"), LIBRARY)
def test_what_the_librarys_own_tests_ask(text, given, expected, origins):
    n = SentencePieceNormalizer(build_charsmap(KANA), **given)
    assert n.normalize(text) == n.normalize_ref(text) == n.align(text).text == expected
    if origins:
        assert n.align(text).char_spans() == [*zip(origins, origins[1:])]


@pytest.mark.peers
def test_the_library_answers_so():
    for text, given, expected, origins in LIBRARY:
        got, places = theirs(proto_of(SentencePieceNormalizer(build_charsmap(KANA), **given))).normalize(
            text, with_offsets=True
        )
        assert got == expected and (origins is None or places == origins), (text, given, got, places)


NESTED = [
    SentencePieceNormalizer(
        build_charsmap({"a" * n: "bx"[n % 2] * (n % 3) for n in range(1, k)}) if k else b"",
        False,
        False,
        user_defined=tuple("<" * n for n in range(1, m)),
    )
    for k, m in ((32, 0), (33, 0), (34, 64), (60, 65), (0, 66), (90, 140))
]


@pytest.mark.parametrize("n", NESTED, ids=lambda n: f"{len(n.charsmap)}-{len(n.user_defined)}")
def test_rows_of_keys_and_spellings_that_begin_alike(n):
    for text in ("a" * 70, "<" * 150, "a" * 40 + "<" * 80 + "a" * 33):
        assert n.normalize(text) == n.normalize_ref(text) == n.align(text).text
    assert SentencePieceNormalizer(user_defined=tuple("<" * k for k in range(1, 70))).align(
        "<" * 66
    ).char_spans()[64:] == [(0, 64), (64, 64), (64, 66)]


@pytest.mark.peers
def test_rows_against_sentencepiece():
    for n in NESTED:
        sp = theirs(proto_of(n))
        for text in ("a" * 70, "<" * 150, "a" * 40 + "<" * 80 + "a" * 33):
            expected, origins = sp.normalize(text, with_offsets=True)
            assert n.normalize(text) == expected and n.align(text).char_spans() == [
                *zip(origins, origins[1:])
            ]


def test_aligned_again():
    "What has been changed already keeps its places."
    rng = fresh(4)
    for _ in range(300):
        first, second = normalizer(rng), normalizer(rng)
        for text in texts(rng, 3):
            once = first.align(text)
            twice = second.align(once)
            assert twice.text == second.normalize(first.normalize(text))
            assert all(0 <= a <= b <= len(text) for a, b in twice.char_spans())
            assert [a for a, _ in twice.char_spans()] == sorted(a for a, _ in twice.char_spans())
    part = Aligned("xx a b", None, 0).slice(2, 6)
    assert SentencePieceNormalizer().align(part) == Aligned("▁a▁b", [(3, 3), (3, 4), (4, 5), (5, 6)], 2)


def test_options_are_checked_and_kept():
    blob = build_charsmap({"ﬁ": "fi"})
    n = SentencePieceNormalizer(blob, False, False, False, True, ("b", "aa", "a", "aa"))
    assert n.user_defined == ("aa", "a", "b")
    for same in (
        pickle.loads(pickle.dumps(n)),
        copy.deepcopy(n),
        SentencePieceNormalizer(blob, False, False, False, True, ["a", "aa", "b"]),
    ):
        assert same == n and hash(same) == hash(n) and same.normalize("ﬁ aa") == "fi aa"
    assert json.loads(json.dumps(n.to_dict()))["type"] == "SentencePieceNormalizer"
    assert "ﬁ" not in repr(n) and len(repr(n)) < 200
    assert not n.splits_at_space
    for wrong in (
        dict(charsmap="x"),
        dict(charsmap=b"abc"),
        dict(add_dummy_prefix=1),
        dict(user_defined="ab"),
        dict(user_defined=("",)),
        dict(user_defined=(b"a",)),
        dict(user_defined=3),
    ):
        with pytest.raises(ValueError):
            SentencePieceNormalizer(**wrong)
    with pytest.raises(ValueError, match="text must .*got bytes"):
        n.normalize(b"a")
    d = SentencePieceDecoder("u", "?", ("<s>",), True, False, False, blob)
    assert decode_pieces(d, ["u", "<s>", "a"]) == "?a"
    assert (
        d == pickle.loads(pickle.dumps(d)) == copy.copy(d)
        and hash(d) == hash(copy.deepcopy(d))
        and d.denormalizer == SentencePieceNormalizer(blob, False, False, False)
    )
    assert json.loads(json.dumps(d.to_dict()))["type"] == "SentencePieceDecoder"
    for wrong in (
        dict(unk_piece=None),
        dict(control="<s>"),
        dict(control=(1,)),
        dict(byte_fallback=1),
        dict(denormalizer="x"),
        dict(denormalizer=b"abc"),
        dict(control=3),
    ):
        with pytest.raises(ValueError):
            SentencePieceDecoder(**wrong)


def test_damaged_maps_are_refused_or_used():
    "A map with flipped bits gives a text or a ValueError."
    rng, blob = fresh(5), build_charsmap({"ﬁ": "fi", "e\u0301": "é", "\t": " ", "abc": "x"})
    for _ in range(300):
        bad = bytearray(blob)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        for make in (
            lambda n: n.normalize("ﬁ e\u0301 abc ab"),
            lambda n: n.align("ﬁ e\u0301 abc ab").text,
            lambda n: decode_pieces(SentencePieceDecoder(denormalizer=n.charsmap), ["ﬁ", "ab", "c"]),
        ):
            with contextlib.suppress(ValueError):
                cut = rng.choice((len(bad), len(bad), 40))
                assert isinstance(make(SentencePieceNormalizer(bytes(bad[:cut]))), str)


def test_time_is_proportional_to_the_text():
    n = SentencePieceNormalizer(
        build_charsmap({"a\u0301": "á", "\u0301\u0301a": "x", "\t": "  "}),
        user_defined=("<" * 50, "<a", "a" * 30 + "b"),
    )
    plain = SentencePieceNormalizer()
    for unit in ("a", " ", "\u0301", "<", "▁", "\t"):
        assert_linear(
            lambda text: (n.normalize(text), n.align(text), plain.normalize(text), plain.align(text)),
            unit,
            24_000,
        )
    decoders = (
        SentencePieceDecoder(control=("<s>",)),
        SentencePieceDecoder(byte_fallback=True, denormalizer=build_charsmap({"aaa": "b"})),
    )
    for piece in ("<s>", "▁", "a", "<0xE2>", "<0x61>"):
        for d in decoders:
            assert_linear(partial(decode_pieces, d), [piece] * 16_000, 16_000, what=piece)


def test_a_long_key_costs_no_memory():
    "A key of ten thousand letters in the map for decoded text, and a stream whose text waits for its end."
    undo = SentencePieceDecoder(denormalizer=build_charsmap({"a" * 10_000: "x", "ab": "c"}))
    tracemalloc.start()
    assert held_back(undo, ["a", "b", "a" * 9, "c", "a"]) == ["", "c", "", "a" * 9 + "c", "", "a"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000

    def wait(n):
        stages = SentencePieceDecoder(
            denormalizer=SentencePieceNormalizer(build_charsmap({"ab": "c"}))
        ).stages()
        for _ in range(n):
            assert stages[1].push([("abab", True)]) == []
        assert stages[1].finish() == [("▁" + "cc" * n, True)]

    assert_linear(wait, int, 24_000)


BYTES = [Piece(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]


def decoding_proto(rng: random.Random) -> ModelProto:
    "A model with pieces of every type."
    texts = {"".join(rng.choices("ab▁▁é ", k=rng.choice((1, 1, 2, 3)))) for _ in range(8)}
    pieces = [
        Piece("<unk>" if rng.random() < 0.5 else "▁unk", 0.0, UNKNOWN),
        Piece("<s>", 0.0, CONTROL),
        Piece("▁c", 0.0, CONTROL),
        Piece("▁", -1.0),
    ]
    pieces += [
        Piece(t, -1.0, rng.choice((NORMAL, NORMAL, USER_DEFINED, UNUSED))) for t in sorted(texts - {"▁"})
    ]
    fallback = rng.random() < 0.6
    pieces += BYTES if fallback else [Piece("<0x41>", -1.0)]
    trainer = {"model_type": CHAR, "byte_fallback": fallback} | (
        {"unk_surface": rng.choice(["", "?", " ", "▁?"])} if rng.random() < 0.5 else {}
    )
    spec = {name: rng.random() < 0.5 for name in NAMES[:2]}
    undo = {}
    if rng.random() < 0.4:
        undo = {"precompiled_charsmap": build_charsmap(rules(rng) | {"é": "e\u0301"})}
        undo |= (
            dict.fromkeys(NAMES[:3], False)
            if rng.random() < 0.7
            else {name: rng.random() < 0.5 for name in NAMES[:3] if rng.random() < 0.8}
        )
    return ModelProto(pieces, trainer | {"treat_whitespace_as_suffix": rng.random() < 0.3}, spec, undo)


def drawn_ids(rng: random.Random, proto: ModelProto, n: int) -> list:
    "Ids: mostly ordinary ones, and runs of bytes that are text, or not."
    ids, size = [], len(proto.pieces)
    first = next((i for i, p in enumerate(proto.pieces) if p.type == BYTE), None)
    while len(ids) < n:
        kind = rng.random()
        if first is None or kind < 0.5:
            ids.append(rng.randrange(first or size))
        elif kind < 0.8:
            ids += [first + b for b in rng.choice("aé€😀\x00").encode()[: rng.randint(1, 4)]]
        else:
            ids.append(first + rng.choice((0xE2, 0x82, 0xF0, 0x9F, 0xC3, 0xFF, 0xED, 0xA0, 0xC0, 0x41, 0)))
    return ids


@pytest.mark.peers
def test_decoding_any_ids_against_sentencepiece():
    rng = fresh(6)
    for _ in range(max(60, N_TEXTS // 10)):
        proto = decoding_proto(rng)
        sp, ours = theirs(proto), sentencepiece_decoder(proto)
        for _ in range(20):
            ids = list(drawn_ids(rng, proto, rng.choice((0, 1, 2, 3, 5, 12))))
            assert decode_pieces(ours, [proto.pieces[i].piece for i in ids]) == sp.decode(ids), (
                ours.to_dict(),
                [proto.pieces[i] for i in ids],
            )


def test_streams_give_what_decode_gives():
    "Nothing given out is taken back, and what waits is what may still change, for every policy."
    rng = fresh(7)
    for _ in range(150):
        proto = decoding_proto(rng)
        tok = SimpleNamespace(
            id2piece=[p.piece for p in proto.pieces],
            vocab_size=len(proto.pieces),
            decoder=sentencepiece_decoder(proto),
            added_tokens=(),
            normalizer=None,
            _encoders=Encoders(None),  # where its tables are stored
        )
        for _ in range(6):
            ids = drawn_ids(rng, proto, rng.choice((0, 1, 3, 6, 15)))
            for errors in ("replace", "ignore"):
                stages, out = tok.decoder.stages(errors=errors), []
                for i in ids:
                    chunks = [(tok.id2piece[i], True)]
                    for stage in stages:
                        chunks = stage.push(chunks)
                    out.append("".join(text for text, _ in chunks))
                    if rng.random() < 0.3:
                        stages = copy.deepcopy(stages)
                chunks = []
                for stage in stages:
                    chunks = stage.push(chunks) + stage.finish()
                assert "".join(out) + "".join(text for text, _ in chunks) == decode(tok, ids, errors=errors)
                assert "".join(decode_stream(tok, ids, errors=errors)) == decode(tok, ids, errors=errors)


def held_back(decoder: SentencePieceDecoder, pieces: list) -> list:
    "What each piece makes a stream give out, and the rest."
    stages, out = decoder.stages(), []
    for piece in pieces:
        chunks = [(piece, True)]
        for stage in stages:
            chunks = stage.push(chunks)
        out.append("".join(text for text, _ in chunks))
    chunks = []
    for stage in stages:
        chunks = stage.push(chunks) + stage.finish()
    return [*out, "".join(text for text, _ in chunks)]


def test_only_what_must_wait_waits():
    d = SentencePieceDecoder(byte_fallback=True, control=("<s>",))
    assert held_back(d, ["<s>", "▁", "▁a", "<0xE2>", "<0x82>", "<0xAC>", "▁b"]) == [
        "",
        "",
        "a",
        "",
        "",
        "€",
        " b",
        "",
    ]
    assert held_back(d, ["<0xE2>", "<0x82>", "a", "<0xFF>", "<0xF0>"]) == [
        "",
        "",
        "\ufffd\ufffda",
        "\ufffd",
        "",
        "\ufffd",
    ]
    undo = SentencePieceDecoder(denormalizer=build_charsmap({"ab": "x", "abcd": "y", "e": ""}))
    assert held_back(undo, ["a", "b", "c", "z", "a", "e", "ab"]) == ["", "", "", "xcz", "", "a", "", "x"]


def test_states_decide_what_comes_next():
    "Two streams in the same state give the same texts from there on."
    rng = fresh(8)
    for _ in range(60):
        proto = decoding_proto(rng)
        decoder, seen = sentencepiece_decoder(proto), {}
        tail = [proto.pieces[i].piece for i in drawn_ids(rng, proto, 6)]
        for _ in range(12):
            stages = decoder.stages(errors="replace")
            for i in drawn_ids(rng, proto, rng.randrange(4)):
                chunks = [(proto.pieces[i].piece, True)]
                for stage in stages:
                    chunks = stage.push(chunks)
            state = tuple(stage.state() for stage in stages)
            if None in state:
                continue
            rest = []
            for piece in tail:
                chunks = [(piece, True)]
                for stage in stages:
                    chunks = stage.push(chunks)
                rest.append("".join(text for text, _ in chunks))
            assert seen.setdefault(state, rest) == rest


def test_strict_and_ignored_bytes():
    d = SentencePieceDecoder(byte_fallback=True)
    pieces = ["▁a", "<0xE2>", "<0x82>", "▁b", "<0xC3>", "<0xA9>", "<0xFF>"]
    assert decode_pieces(d, pieces) == "a\ufffd\ufffd bé\ufffd"
    assert decode_pieces(d, pieces, errors="ignore") == "a bé"
    with pytest.raises(UnicodeDecodeError):
        decode_pieces(d, pieces, errors="strict")
    with pytest.raises(UnicodeDecodeError):
        decode_pieces(d, ["<0xE2>"], errors="strict")
    assert decode_pieces(d, ["<0xE2>", "▁b"], errors="ignore") == " b"
    assert decode_pieces(Sequence((d,)), ["▁a", "▁b"]) == "a b"


TRAINED = [
    dict(
        model_type="unigram",
        byte_fallback=True,
        user_defined_symbols=["<n>", "ab c", "▁▁"],
        control_symbols=["<c>"],
    ),
    dict(model_type="bpe", add_dummy_prefix=False, remove_extra_whitespaces=False, unk_surface="?"),
    dict(model_type="bpe", treat_whitespace_as_suffix=True, normalization_rule_name="identity"),
    dict(model_type="char", normalization_rule_name="nfkc_cf", unk_piece="▁u"),
    dict(model_type="unigram", split_by_whitespace=False),
]


@pytest.mark.peers
@pytest.mark.parametrize("how", TRAINED, ids=lambda how: how["model_type"])
def test_trained_models_against_sentencepiece(tmp_path, how):
    "Models as sentencepiece's trainer writes them, with a map for decoded texts."
    spm, rng = pytest.importorskip("sentencepiece"), fresh(10)
    (tmp_path / "undo.tsv").write_text("62 61\t78\n63\t\n62 61 62 61\t79 20\n", encoding="utf-8")
    lines = ["".join(rng.choices("abc  é", k=30)) for _ in range(200)] + ["abcé▁"]
    file = sp_file(
        spm,
        lines,
        vocab_size=300 if "byte_fallback" in how else 40,
        denormalization_rule_tsv=str(tmp_path / "undo.tsv"),
        **how,
    )
    proto = read_model_proto(file)
    sp, n, d = (
        spm.SentencePieceProcessor(model_proto=file),
        sentencepiece_normalizer(proto),
        sentencepiece_decoder(proto),
    )
    assert d.denormalizer.charsmap and d.denormalizer == SentencePieceNormalizer(
        d.denormalizer.charsmap, False, False, False
    )
    names = [p.piece for p in proto.pieces]
    for text in [*texts(rng, 300), *("".join(rng.choices("abc  <n>▁", k=12)) for _ in range(300))]:
        expected, origins = sp.normalize(text, with_offsets=True)
        assert n.normalize(text) == expected, text
        if expected:
            assert n.align(text).char_spans() == [*zip(origins, origins[1:])], text
        ids = sp.encode(text)
        for given in (ids, rng.choices(range(len(names)), k=6)):
            assert decode_pieces(d, [names[i] for i in given]) == sp.decode(given), [names[i] for i in given]
            assert "".join(held_back(d, [names[i] for i in given])) == sp.decode(given)


@pytest.mark.peers
@pytest.mark.slow
def test_decoding_generated_ids_of_real_models(shared_file):
    "Any ids of published models."
    rng = fresh(9)
    for name in (
        *REAL,
        "transformers-fixtures/test_sentencepiece_with_bytefallback.model",
        "mistral-v1/tokenizer.model.v1",
    ):
        data = shared_file(f"vocab/{name}").read_bytes()
        sp, proto = (
            pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=data),
            read_model_proto(data),
        )
        ours, pieces = sentencepiece_decoder(proto), [p.piece for p in proto.pieces]
        few = [i for i, p in enumerate(proto.pieces) if p.type != NORMAL or p.piece[:1] == "▁"][:400]
        for _ in range(N_TEXTS):
            ids = [
                rng.choice(few) if rng.random() < 0.5 else rng.randrange(len(pieces))
                for _ in range(rng.choice((1, 2, 5, 20)))
            ]
            assert decode_pieces(ours, [pieces[i] for i in ids]) == sp.decode(ids), (name, ids)
