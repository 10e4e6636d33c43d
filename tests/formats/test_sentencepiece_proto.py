"""SentencePiece's files to the byte: every published model, what the installed library accepts and refuses, and damage of every kind."""

import ast
import copy
import importlib.util
import math
import pickle
import random
import struct
import tracemalloc
from pathlib import Path

import pytest
from costs import assert_linear

from subword_nb.text.charsmap import build_charsmap
from subword_nb.formats.sentencepiece_proto import (
    BPE,
    BYTE,
    CHAR,
    CONTROL,
    MODEL,
    NORMAL,
    NORMALIZER_SPEC,
    PIECE,
    TRAINER_SPEC,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    WORD,
    ModelProto,
    Piece,
    check_model_proto,
    draw_model_proto,
    explain_model_proto,
    looks_like_model_proto,
    read_model_proto,
    read_varint,
    used_pieces,
    wire_fields,
    write_model_proto,
    write_varint,
)

META = [Piece("<unk>", 0.0, UNKNOWN), Piece("<s>", 0.0, CONTROL), Piece("</s>", 0.0, CONTROL)]
LETTERS = [Piece("a", -1.0), Piece("▁", -2.0), Piece("b", -2.5)]
BYTES = [Piece(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]


def real_models(shared_data) -> list[Path]:
    "The published models, by their content's kind."
    return [
        p for p in sorted(shared_data.glob("vocab/*/*")) if ".model" in p.name and "llama-3" not in str(p)
    ]


def full_model() -> ModelProto:
    "Every field at something else than its default."
    other = {
        "int32": -7,
        "uint64": (1 << 64) - 1,
        "bool": True,
        "float": 0.25,
        "string": "é▁",
        "strings": ["", "ß"],
        "path": "p\udcff",
        "paths": ["x", "\udc80"],
        "bytes": b"\0\xff",
        "model type": BPE,
    }
    specs = [
        {name: (not default if kind == "bool" else other[kind]) for name, kind, default in table.values()}
        for table in (TRAINER_SPEC, NORMALIZER_SPEC, NORMALIZER_SPEC)
    ]
    rest = [
        ((), b"\xc2\x3e\x01z"),
        (("trainer_spec",), b"\xc8\x0c\x05"),
        (("normalizer_spec",), b"\xcd\x0c1234"),
        (("pieces", 1), b"\xc9\x0c12345678"),
        (("self_test_data",), b"\xc8\x0c\x01"),
        (("self_test_data", 0), b"\xc8\x0c\x02"),
    ]
    return ModelProto(
        [
            *META,
            *LETTERS,
            Piece("ü", -math.pi, UNUSED),
            Piece("", 1e-40, USER_DEFINED),
            Piece("x" * 300, -0.0),
        ],
        *specs,
        [("in put", "▁in ▁put"), ("", "")],
        rest,
    )


@pytest.mark.slow
def test_published_models_are_written_as_they_were(shared_data):
    for path in real_models(shared_data):
        data = path.read_bytes()
        proto = read_model_proto(data, name=str(path))
        assert write_model_proto(proto) == data, path
        assert (
            check_model_proto(proto, name=str(path)) is proto
            and proto.rest == []
            and len(proto.pieces)
            == proto.trainer("vocab_size") + 344 * ("chatglm" in str(path)) + 2 * ("barthez" in str(path))
        )


def test_all_fields_there_and_back():
    full = full_model()
    data = write_model_proto(full)
    again = read_model_proto(data)
    assert again == ModelProto(
        [p._replace(score=struct.unpack("<f", struct.pack("<f", p.score))[0]) for p in full.pieces],
        *(full.trainer_spec, full.normalizer_spec, full.denormalizer_spec, full.self_test_data),
        again.rest,
    )
    assert sorted(map(str, again.rest)) == sorted(map(str, full.rest)) and write_model_proto(again) == data
    assert str(again.pieces[-1].score) == "-0.0"


def test_presence_is_kept():
    data = b"\n\x00\n\x02\x18\x01\n\x05\x15\x00\x00\x00\x00\n\x05\n\x03abc\x12\x00\x1a\x00\x22\x00\x2a\x00"
    proto = read_model_proto(data)
    assert (
        proto.pieces == [Piece(""), Piece(""), Piece(""), Piece("abc")] and write_model_proto(proto) == data
    )
    assert write_model_proto(ModelProto()) == b"" and read_model_proto(b"") == ModelProto()
    proto.pieces[1] = Piece("q", -1.0, CONTROL)  # what changes is written, whatever the file had
    assert read_model_proto(write_model_proto(proto)).pieces == proto.pieces
    proto.pieces.append(Piece("r"))
    assert read_model_proto(write_model_proto(proto)).pieces == proto.pieces


def test_bytes_of_every_kind():
    data = write_model_proto(ModelProto([*META, *LETTERS]))
    for same in (bytearray(data), memoryview(data)):
        assert (
            read_model_proto(same) == read_model_proto(data)
            and explain_model_proto(same) == explain_model_proto(data)
            and looks_like_model_proto(same)
        )
    for use in (read_model_proto, explain_model_proto, draw_model_proto):
        for wrong in ("toy.model", Path("toy.model"), None):
            with pytest.raises(ValueError, match="the model must be the bytes of the file, got"):
                use(wrong)
    proto = read_model_proto(data)
    assert (
        pickle.loads(pickle.dumps(proto)) == copy.deepcopy(proto) == proto
        and write_model_proto(copy.copy(proto)) == data
    )


def test_fields_in_any_order_and_messages_in_parts():
    parts = [write_model_proto(ModelProto([p])) for p in LETTERS] + [
        write_model_proto(ModelProto(trainer_spec=s))
        for s in ({"unk_id": 3}, {"input": ["a"]}, {"input": ["b"], "unk_id": 4})
    ]
    whole = read_model_proto(b"".join(parts[3:] + parts[:3]))
    assert whole.pieces == LETTERS and whole.trainer_spec == {"unk_id": 4, "input": ["a", "b"]}
    assert read_model_proto(write_model_proto(whole)) == whole


def test_varints():
    rng = random.Random(0)
    for value in [0, 127, 128, (1 << 64) - 1, *(rng.getrandbits(rng.randrange(1, 65)) for _ in range(2000))]:
        data = write_varint(value)
        assert read_varint(data, 0) == (value, len(data)) and read_varint(b"x" + data + b"\0", 1) == (
            value,
            1 + len(data),
        )
        assert len(data) == max(1, -(-value.bit_length() // 7))
    for wrong in (b"", b"\x80", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"):
        with pytest.raises(ValueError, match="byte 0"):
            read_varint(wrong, 0)


def descriptor() -> dict:
    "Message → {number: (name, type, repeated, default)}, as the installed library's own description has it, read by our reader."
    spec = importlib.util.find_spec("sentencepiece")
    if spec is None or not (path := Path(spec.origin).with_name("sentencepiece_model_pb2.py")).exists():
        pytest.skip("no description of the messages is installed")
    blobs = [
        n.args[0].value
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "AddSerializedFile"
    ]

    def inside(data, number):
        return [data[f.body : f.end] for f in wire_fields(data) if f.number == number]

    def message(data):
        out = {}
        for raw in inside(data, 2):
            at = {
                f.number: f.value if f.wire == 0 else raw[f.body : f.end].decode()
                for f in wire_fields(raw)
                if f.number != 8
            }
            out[at[3]] = at[1], at[5], at[4] == 3, at.get(7)
        return {inside(data, 1)[0].decode(): out} | {
            k: v for nested in inside(data, 3) for k, v in message(nested).items()
        }

    return {k: v for raw in inside(blobs[0], 4) for k, v in message(raw).items()}


@pytest.mark.peers
def test_the_tables_are_the_librarys():
    kinds = {
        1: "double",
        2: "float",
        4: "uint64",
        5: "int32",
        8: "bool",
        9: "string",
        12: "bytes",
        11: "message",
        14: "enum",
    }
    theirs = descriptor()
    for name, table in (
        ("TrainerSpec", TRAINER_SPEC),
        ("NormalizerSpec", NORMALIZER_SPEC),
        ("SentencePiece", PIECE),
    ):
        assert theirs[name].keys() == table.keys()
        for number, (key, kind, default) in table.items():
            field, code, repeated, text = theirs[name][number]
            plain = {
                "paths": "string",
                "strings": "string",
                "path": "string",
                "model type": "enum",
                "piece type": "enum",
            }.get(kind, kind)
            assert (key, plain, default == ()) == (field, kinds[code], repeated), key
            if repeated or text is None:
                assert not default or kind in ("model type", "piece type"), key
            else:
                shown = {"true": True, "false": False, "UNIGRAM": UNIGRAM, "NORMAL": NORMAL}.get(text, text)
                assert default == (
                    type(default)(shown)
                    if not isinstance(default, float)
                    else struct.unpack("<f", struct.pack("<f", float(text)))[0]
                ), key
    assert {n: key for n, (key, *_) in theirs["ModelProto"].items()} == {
        n: key for n, (key, *_) in MODEL.items() if n != 4
    }  # self-tests are read, though the newest library ignores them


@pytest.mark.peers
def test_against_protobuf(shared_data):
    pytest.importorskip("google.protobuf")
    pb = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    full = read_model_proto(write_model_proto(full_model()))
    full.trainer_spec.update(model_prefix="p", input=["x"], seed_sentencepieces_file="")
    for spec in (full.normalizer_spec, full.denormalizer_spec):
        spec["normalization_rule_tsv"] = ""
    for data in [*(p.read_bytes() for p in real_models(shared_data)), write_model_proto(full)]:
        theirs, ours = pb.ModelProto.FromString(data), read_model_proto(data)
        for name in ("trainer_spec", "normalizer_spec", "denormalizer_spec"):
            assert {
                f.name: list(v) if isinstance(v, (list, tuple)) or hasattr(v, "append") else v
                for f, v in getattr(theirs, name).ListFields()
            } == {k: v for k, v in getattr(ours, name).items() if v != []}
        assert [(p.piece, p.score, p.type) for p in theirs.pieces] == [tuple(p) for p in ours.pieces]
        assert pb.ModelProto.FromString(write_model_proto(ours)) == theirs


def load(data):
    "What the installed library says to a model: None, or why it refuses it."
    sp = pytest.importorskip("sentencepiece")
    try:
        sp.SentencePieceProcessor(model_proto=data)
    except RuntimeError as e:
        return str(e)


def refusal(proto):
    try:
        check_model_proto(proto)
    except ValueError as e:
        return str(e)


def drawn_model(rng: random.Random) -> ModelProto:
    "A small model with few or many things wrong."
    kind, fallback = rng.choice((UNIGRAM, BPE, WORD, CHAR)), rng.random() < 0.3
    pieces = [
        *META[: rng.choice((1, 3, 3, 3))],
        *LETTERS[: rng.randrange(4)],
        *(BYTES[: rng.choice((256, 256, 256, 255))] if fallback != (rng.random() < 0.05) else []),
    ]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        piece = rng.choice(
            [
                "",
                "a\0",
                "\0",
                "<unk>",
                "a",
                "ab",
                "q",
                "y" * 7999,
                "y" * 8000,
                "é" * 3999,
                "é" * 4000,
                "<0x41>",
                "<0xZZ>",
                "<0xff>",
            ]
        )
        pieces.insert(
            rng.randrange(len(pieces) + 1),
            Piece(
                piece,
                rng.choice([0.0, -1.0, math.nan, math.inf, -math.inf, 3e38]),
                rng.choice([1, 1, 2, 3, 4, 5, 6]),
            ),
        )
    if rng.random() < 0.1:
        del pieces[rng.randrange(len(pieces))]
    maps = [b"", build_charsmap({"x": "y"}), b"abc", b"\x08\0\0\0abcdefghx", b"\0\0\0\0"]
    spec, back = [{} if rng.random() < 0.8 else {"precompiled_charsmap": rng.choice(maps)} for _ in range(2)]
    return ModelProto(
        pieces, {"model_type": kind, **({"byte_fallback": True} if fallback else {})}, spec, back
    )


@pytest.mark.peers
def test_refuses_what_sentencepiece_refuses(capfd):
    rng, agreed, stricter = random.Random(7), 0, 0
    for _ in range(3000):
        proto = drawn_model(rng)
        theirs, ours = load(write_model_proto(proto)), refusal(proto)
        if (theirs is None) == (ours is None):
            agreed += 1
        else:  # stricter: two ids of one spelling, and an order that is none
            assert theirs is None and (
                "must spell each piece differently" in ours or "a finite score, got nan" in ours
            ), (
                theirs,
                ours,
            )
            stricter += 1
    assert agreed > 2500 and stricter > 20


@pytest.mark.peers
def test_a_zero_character_is_unused(capfd):
    sp = pytest.importorskip("sentencepiece")
    for kind in range(1, 7):
        proto = ModelProto([*META, *LETTERS, *BYTES, Piece("\0", -1.0, kind)], {"byte_fallback": True})
        peer = sp.SentencePieceProcessor(model_proto=write_model_proto(check_model_proto(proto)))
        assert [UNUSED if peer.is_unused(i) else p.type for i, p in enumerate(proto.pieces)] == [
            p.type for p in used_pieces(proto)
        ]
        assert peer.encode("a\0") == [4, 3, 6]


@pytest.mark.peers
def test_sentencepiece_reads_what_is_written(shared_data):
    sp = pytest.importorskip("sentencepiece")
    texts = ["Hello, world!", "ｆｕｌｌ width e\u0301", "東京  へ", "\u2581 x\t\n", "😀"]
    for path in real_models(shared_data):
        proto = read_model_proto(path.read_bytes())
        proto.shapes = b""  # written plainly
        proto.trainer_spec = dict(sorted(proto.trainer_spec.items()))
        a, b = (
            sp.SentencePieceProcessor(model_file=str(path)),
            sp.SentencePieceProcessor(model_proto=write_model_proto(proto)),
        )
        assert a.encode(texts) == b.encode(texts) and len(a) == len(b)
        assert [a.id_to_piece(i) for i in range(len(a))] == [p.piece for p in proto.pieces]
        assert [a.get_score(i) for i in range(len(a))] == [p.score for p in proto.pieces]
        assert all(
            a.is_control(i) == (p.type == CONTROL)
            and a.is_byte(i) == (p.type == BYTE)
            and a.is_unknown(i) == (p.type == UNKNOWN)
            and a.is_unused(i) == (p.type == UNUSED)
            for i, p in enumerate(proto.pieces)
        )
        if a.serialized_model_proto():
            assert read_model_proto(a.serialized_model_proto()).pieces == proto.pieces


def test_recognition(shared_data):
    models = set(real_models(shared_data))
    for path in shared_data.glob("vocab/*/*"):
        if path.is_file():
            head = path.read_bytes()[:65536]
            assert looks_like_model_proto(head) == looks_like_model_proto(head[:4096]) == (path in models), (
                path
            )
    for other in (
        b"",
        b"\n",
        b"\n\n\n\n",
        b"\nabc\n",
        b"#version: 0.2\n",
        b"{}",
        b"GGUF\x03\0\0\0",
        b"\n\x03\n\x01a\x99",
        bytes(100),
        b"\xff" * 100,
    ):
        assert not looks_like_model_proto(other)
    for proto in (
        ModelProto(META),
        ModelProto(META[:1], {"model_type": BPE}),
        ModelProto([Piece("▁" * 50)], {}, {"name": "x"}),
    ):
        assert looks_like_model_proto(write_model_proto(proto))


def mutated(rng: random.Random, data: bytes) -> bytes:
    "One to three damages."
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(9):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
            case 2 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 3 if at < len(data):
                data[at] = rng.choice((0, 1, 8, 10, 18, 21, 24, 26, 127, 128, 255))
            case 4:
                data[at:at] = b"\xff" * rng.randrange(1, 12)
            case 5:
                data[at:at] = b"\n\xff\xff\xff\xff\x0f"
            case 6:
                data[at : at + rng.randrange(40)] = b""
            case 7:
                data[at:at] = data[rng.randrange(len(data) + 1) :][: rng.randrange(60)]
            case 8:
                nested = b"\n\x00"
                for _ in range(rng.randrange(200)):
                    nested = b"\n" + write_varint(len(nested)) + nested
                data[at:at] = nested
    return bytes(data)


def spelled(proto: ModelProto) -> list:
    "What a model holds, so that equal ones compare equal though a score is no number."
    return [
        repr(proto.pieces),
        *(
            sorted(map(repr, spec.items()))
            for spec in (proto.trainer_spec, proto.normalizer_spec, proto.denormalizer_spec)
        ),
        proto.self_test_data,
        sorted(map(repr, proto.rest)),
    ]


def survive(data: bytes) -> bool:
    "Read or refused; what is read is written and read again the same, explained and drawn."
    looks_like_model_proto(data)
    try:
        proto = read_model_proto(data, name="hostile.model")
    except ValueError as e:
        assert str(e).startswith("hostile.model, ") and "byte " in str(e)
        with pytest.raises(ValueError):
            for row in explain_model_proto(data, limit=len(data)):
                assert row.start < row.body <= row.end <= len(data)
        return False
    once = write_model_proto(proto)
    again = read_model_proto(once)
    assert write_model_proto(again) == once and len(again.pieces) == len(proto.pieces)
    assert spelled(again) == spelled(proto)
    rows = explain_model_proto(data, limit=len(data))
    assert all(r.start < r.body <= r.end <= len(data) for r in rows)
    if rows:
        str(draw_model_proto(data, limit=3))
    try:
        check_model_proto(proto)
    except ValueError as e:
        assert "the model" in str(e)
    return True


def fuzz(n: int, seed: int) -> tuple[int, int]:
    rng, seeds = (
        random.Random(seed),
        [
            write_model_proto(full_model()),
            write_model_proto(ModelProto(META + LETTERS, {"model_type": 2}, {"name": "nfkc"})),
            write_model_proto(ModelProto(META, self_test_data=[("a", "b")])),
        ],
    )
    read = sum(survive(mutated(rng, rng.choice(seeds))) for _ in range(n))
    return read, n - read


def test_damaged_files():
    read, refused = fuzz(300, 1)
    assert read > 20 and refused > 100


@pytest.mark.slow
def test_many_damaged_files():
    read, refused = fuzz(10_000, 2)
    assert read > 500 and refused > 5000


@pytest.mark.slow
def test_damaged_published_models(shared_data):
    rng = random.Random(3)
    for path in real_models(shared_data):
        data = path.read_bytes()
        if len(data) < 400_000:
            for _ in range(10):
                survive(mutated(rng, data))


@pytest.mark.slow
def test_hostile_files_cost_what_they_weigh():
    def work(data):
        try:
            proto = read_model_proto(data)
        except ValueError as e:
            assert len(str(e)) < 500
        else:
            assert write_model_proto(proto) == data

    cases = [
        lambda n: b"\n\x00" * n,
        lambda n: b"\n\xff\xff\xff\xff\x07" + bytes(10),
        lambda n: b"\x80" * 30 * n,
        lambda n: b"\n" * 3 * n,
        lambda n: b"\x12" + write_varint(1 << 63),
        lambda n: b"\x1b" * (n // 10),
        lambda n: b"\x12" + write_varint(2 * n) + b"\x0a\x00" * n,
        lambda n: b"\xc8\x0c\x01" * n,
        lambda n: b"\x08" + b"\xff" * 9 + b"\x01",
    ]
    for make in cases:
        data = make(8_000)
        tracemalloc.start()
        work(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000 + 300 * len(data), (data[:9], peak)
        assert_linear(work, make, 8_000, what=data[:9])


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(pieces=[Piece("a", "x")]), r"pieces\[0\].score: the value must be a float, got 'x'"),
        (dict(pieces=[Piece(3)]), r"pieces\[0\].piece: the value must be a string, got 3"),
        (dict(pieces=[Piece("a", 1e39)]), r"pieces\[0\]\.score: a float must .*got 1e\+39"),
        (dict(pieces=[Piece("\ud800")]), "lone surrogate"),
        (dict(pieces=[Piece("a", 0.0, 7)]), r"pieces\[0\].type: piece type must be 1 to 6, got 7"),
        (dict(trainer_spec={"model_type": 5}), "trainer_spec.model_type: model type must be 1 to 4, got 5"),
        (
            dict(trainer_spec={"unk_id": 1 << 31}),
            "trainer_spec.unk_id: a number must fit into 32 bits, got 2147483648",
        ),
        (
            dict(trainer_spec={"input_sentence_size": -1}),
            r"trainer_spec\.input_sentence_size: value must .*got -1",
        ),
        (
            dict(trainer_spec={"byte_fallback": 1}),
            "trainer_spec.byte_fallback: the value must be a bool, got 1",
        ),
        (
            dict(trainer_spec={"bytefallback": True}),
            "trainer_spec must have only the fields .*got 'bytefallback'",
        ),
        (
            dict(trainer_spec={"control_symbols": "<s>", "input": "a"}),
            "trainer_spec.input: the value must be a list, got 'a'",
        ),
        (
            dict(normalizer_spec={"precompiled_charsmap": "x"}),
            "normalizer_spec.precompiled_charsmap: the value must be a bytes, got 'x'",
        ),
        (
            dict(rest=[(("pieces", 4), b"\xc8\x0c\x01")]),
            r"rest must .*got some for pieces\[4\]",
        ),
        (dict(pieces=[("a", -1.0)]), r"pieces\[0\] must .*got \('a', -1\.0\)"),
        (dict(pieces=[Piece("a"), "abc"]), r"pieces\[1\] must .*got 'abc'"),
        (dict(self_test_data=["ab"]), r"self_test_data\[0\] must .*got 'ab'"),
        (dict(self_test_data=[("a", "b", "c")]), r"self_test_data\[0\] must .*got \('a', 'b', 'c'\)"),
        (dict(rest=[((), "x")]), r"rest\[0\] must .*got \(\(\), 'x'\)"),
        (dict(rest=[((), b"\xff")]), r"rest\[0\], byte 0: a number must .*got one that does not end"),
    ],
)
def test_what_cannot_be_written(change, message):
    with pytest.raises(ValueError, match=message):
        write_model_proto(ModelProto(**change))
