"""SentencePiece's face: every public name of the installed library, equal answers and kinds of errors.

Texts are generated, models are published ones; every call is tested without that library, too, on models trained here.
"""

import ast
import copy
import importlib
import io
import math
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from seeds import TEXTS, fresh

import subword_nb.compat.sentencepiece as spm
from subword_nb.formats.sentencepiece_proto import NORMALIZER_SPEC, TRAINER_SPEC, read_model_proto
from subword_nb.text.charsmap import build_charsmap

MODELS = [
    "llama-2/tokenizer.model",
    "t5-small/spiece.model",
    "xlnet-base-cased/spiece.model",
    "barthez/sentencepiece.bpe.model",
    "chatglm-6b/ice_text.model",
    "sentencepiece/test_model.model",
    "sentencepiece/test_ja_model.model",
    "tf-text/fast_sentencepiece.model",
    "transformers-fixtures/test_sentencepiece.model",
    "transformers-fixtures/test_sentencepiece_bpe.model",
    "transformers-fixtures/test_sentencepiece_bpe_char.model",
    "transformers-fixtures/test_sentencepiece_no_bos.model",
    "transformers-fixtures/test_sentencepiece_with_bytefallback.model",
]
SMALL = ["llama-2/tokenizer.model", "t5-small/spiece.model", "sentencepiece/test_ja_model.model"]
EACH = [pytest.param(m, marks=[] if m in SMALL else [pytest.mark.slow]) for m in MODELS]
PARTS = [
    "hello", " world", " ", "  ", "\t", "\n", "é", "日本", "👍", "e\u0301", "ＡＢ", "ﬁ", "\u3000", "12345", "'s", "<s>", "</s>",
    "<unk>", "<pad>", "▁", "\u200b", "\xa0", "ॐ", "<0x41>", "\x00", "\x85", "the", "of", "ing", "ß", "İ", "한국", "\ufffd", "!!",
    "<mask>", "<extra_id_1>", "\U000e0001",
]  # fmt: skip


def text_of(rng, most=8):
    "A text of troublesome parts."
    return "".join(rng.choices(PARTS, k=rng.randrange(most)))


def said(call, *args, **options):
    "What a call gives, or the kind of its error."
    try:
        return call(*args, **options)
    except Exception as e:
        return next(
            k for k in (IndexError, TypeError, ValueError, RuntimeError, Exception) if isinstance(e, k)
        )


@pytest.fixture(scope="module")
def peer():
    return pytest.importorskip("sentencepiece", reason="the peer tests need the extra 'peers'")


@pytest.fixture(scope="module", params=EACH)
def both(request, peer, shared_file):
    "A published model here and in the installed library."
    path = str(shared_file(f"vocab/{request.param}"))
    return spm.SentencePieceProcessor(model_file=path), peer.SentencePieceProcessor(model_file=path)


def trained(**options):
    "A small model, trained here."
    corpus = (
        ["hug"] * 10 + ["pug"] * 5 + ["pun"] * 12 + ["bun"] * 4 + ["hugs"] * 5 + ["hug the pug, 日本 é!"] * 3
    )
    out = io.BytesIO()
    given = {
        "vocab_size": 30,
        "hard_vocab_limit": False,
        "normalization_rule_name": "identity",
        "character_coverage": 1.0,
    }
    spm.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=out, **{**given, **options})
    return spm.SentencePieceProcessor(model_proto=out.getvalue())


@pytest.fixture(scope="module")
def unigram():
    return trained()


@pytest.fixture(scope="module")
def bpe():
    return trained(model_type="bpe", vocab_size=300, byte_fallback=True, user_defined_symbols=["<mask>"])


# The installed library: names


@pytest.mark.peers
def test_every_public_name_is_here(peer):
    for cls in ("SentencePieceProcessor", "SentencePieceTrainer", "SentencePieceNormalizer", "ThreadPool"):
        names = {n for n in dir(getattr(peer, cls)) if not n.startswith("_")}
        assert names <= set(dir(getattr(spm, cls))), names - set(dir(getattr(spm, cls)))
    modules = {"csv", "importlib", "io", "os", "sys"}
    names = {n for n in dir(peer) if not n.startswith("_")} - modules
    assert names <= set(dir(spm)), names - set(dir(spm))
    assert spm.__version__ == "0.2.3"


# The installed library: answers


@pytest.mark.peers
def test_encodes_equally(both):
    mine, theirs = both
    rng = fresh("encode", len(mine))
    texts = [text_of(rng) for _ in range(TEXTS)]
    for kind in (int, str, bytes, "serialized_proto", "offset_mapping"):
        assert mine.encode(texts, out_type=kind) == theirs.encode(texts, out_type=kind)
    for text in texts:
        for kind in (int, str, "serialized_proto", "offset_mapping"):
            assert mine.encode(text, out_type=kind) == theirs.encode(text, out_type=kind), text
        raw = text.encode()[:-1] + bytes(rng.choices(range(256), k=2))
        for kind in (int, bytes, "serialized_proto", "offset_mapping"):
            assert mine.encode(raw, out_type=kind) == theirs.encode(raw, out_type=kind), raw
        assert mine.encode(text, out_type="numpy").tolist() == theirs.encode(text, out_type="numpy").tolist()
        assert mine.parallel_encode(text, chunk_len=4) == theirs.parallel_encode(text, chunk_len=4)


@pytest.mark.peers
def test_puts_around_equally(both):
    mine, theirs = both
    rng = fresh("around", len(mine))
    for _ in range(TEXTS):
        text = text_of(rng)
        names = ("add_bos", "add_eos", "reverse", "emit_unk_piece")
        options = {name: rng.random() < 0.5 for name in names}
        for kind in (int, str, "serialized_proto"):
            given = said(mine.encode, text, out_type=kind, **options)
            assert given == said(theirs.encode, text, out_type=kind, **options), (text, kind, options)


@pytest.mark.peers
def test_decodes_equally(both):
    mine, theirs = both
    rng = fresh("decode", len(mine))
    rows = []
    for _ in range(TEXTS):
        most = rng.choice([len(mine), min(300, len(mine))])
        rows.append([rng.randrange(most) for _ in range(rng.randrange(8))])
    for kind in (str, bytes, "serialized_proto", "offset_mapping"):
        assert mine.decode(rows, out_type=kind) == theirs.decode(rows, out_type=kind)
    for ids in rows:
        pieces = [mine.id_to_piece(i) if rng.random() < 0.7 else rng.choice(PARTS) for i in ids]
        raw = [p.encode() for p in pieces]
        for kind in (str, bytes, "serialized_proto", "offset_mapping"):
            assert mine.decode(ids, out_type=kind) == theirs.decode(ids, out_type=kind), ids
            assert mine.decode(pieces, out_type=kind) == theirs.decode(pieces, out_type=kind), pieces
            assert mine.decode(raw, out_type=kind) == theirs.decode(raw, out_type=kind), raw
        array = np.array(ids, rng.choice([np.int32, np.int64, np.uint32]))
        assert mine.decode(array) == theirs.decode(array)


@pytest.mark.peers
def test_normalizes_equally(both):
    mine, theirs = both
    rng = fresh("normalize", len(mine))
    for _ in range(TEXTS):
        text = text_of(rng)
        raw = text.encode() + bytes(rng.choices(range(256), k=rng.randrange(3)))
        for given in (text, raw, [text, raw]):
            assert mine.normalize(given) == theirs.normalize(given)
            assert mine.normalize(given, with_offsets=True) == theirs.normalize(given, with_offsets=True), (
                given
            )


@pytest.mark.peers
def test_finds_the_same_nbest(both, peer):
    mine, theirs = both
    rng = fresh("nbest", len(mine))
    for _ in range(max(10, TEXTS // 10)):
        text = text_of(rng, most=6)
        n = rng.choice([1, 2, 5])
        raw = said(theirs.nbest_encode, text, nbest_size=n, out_type="serialized_proto")
        given = said(mine.nbest_encode, text, nbest_size=n, out_type="proto")
        if raw is RuntimeError:
            assert given is RuntimeError
            continue
        wanted = spm.NBestSentencePieceText.FromString(raw)
        assert len(given) == len(wanted), text
        assert [t.score for t in given] == pytest.approx([t.score for t in wanted], abs=2e-3)
        for i, t in enumerate(wanted):  # those of other scores are at the same place
            others = [u.score for j, u in enumerate(wanted) if j != i]
            last = i + 1 == len(wanted) and n == len(wanted)
            if n == 1 or not last and all(abs(t.score - s) > 4e-3 for s in others):
                assert given[i].pieces == t.pieces, text


@pytest.mark.peers
def test_pieces_are_the_same(both, shared_file):
    mine, theirs = both
    ids = range(len(theirs))
    assert len(mine) == len(theirs) == mine.piece_size() == mine.vocab_size()
    for name in ("id_to_piece", "get_score", "is_unknown", "is_control", "is_unused", "is_byte"):
        assert getattr(mine, name)(list(ids)) == getattr(theirs, name)(list(ids)), name
    pieces = theirs.id_to_piece(list(ids)) + PARTS
    assert mine.piece_to_id(pieces) == theirs.piece_to_id(pieces)
    for name in ("unk_id", "bos_id", "eos_id", "pad_id", "serialized_model_proto"):
        assert getattr(mine, name)() == getattr(theirs, name)()


@pytest.mark.peers
def test_errors_are_of_the_same_kind(both):
    mine, theirs = both
    calls = [
        *(("encode", (x,), {}) for x in (3, None, ("a",), [1], ["a", None], {"a": 1}, "a\ud800", ["a\ud800"][0])),
        *(("encode", ("a",), {"out_type": x}) for x in ("x", float, list, "Proto")),
        ("encode", ("a",), {"out_type": int, "return_type": int}),
        ("encode", ("a",), {"return_bytes": True}),
        ("encode", (["a"],), {"num_threads": "2"}),
        ("encode", (["a"],), {"num_threads": 0}),
        ("encode", (["a"],), {"thread_pool": 3}),
        *(("encode", ("a",), {"enable_sampling": True, "nbest_size": n}) for n in (0, 1, 513)),
        ("encode", ("a",), {"enable_sampling": True, "alpha": -1.0}),
        ("encode", ("a",), {"out_type": "serialized_proto", "add_bos": True}),
        ("encode", ([],), {}),
        ("nbest_encode", ("a",), {"nbest_size": 513}),
        ("nbest_encode", ("a",), {"nbest_size": 1.5}),
        *(("encode", ("a",), {name: "x"}) for name in ("add_bos", "add_eos", "reverse", "emit_unk_piece")),
        ("nbest_encode", ("a",), {"nbest_size": 2, "out_type": "offset_mapping"}),
        ("parallel_encode", ("a",), {}),
        ("parallel_encode", ("a",), {"chunk_len": 0}),
        *(("decode", (x,), {}) for x in (
            [10**6], [-1], [2**40], [1.5], [3, "a"], ["a", 3], {1, 2}, 10**6, None, "", [], [[]], [True], "zzz", np.array([1.0]),
            np.array([2**40]), [[3], [10**6]], [[], ["a"]], (3, 4), ((3,), (4,)), [None],
        )),
        ("decode", ([3],), {"out_type": int}),
        ("decode", ([3],), {"out_type": "numpy"}),
        *((name, (x,), {}) for name in ("id_to_piece", "get_score", "is_control")
          for x in (-1, 10**6, "a", 1.5, 2**40, [10**6], [-1], None)),
        *(("piece_to_id", (x,), {}) for x in (3, None, [3], ("a",), [], b"a")),
        ("normalize", (3,), {}),
        ("load", (), {}),
        ("load_from_serialized_proto", ("abc",), {}),
    ]  # fmt: skip
    for name, args, options in calls:
        one = copy.copy(mine) if name.startswith("load") else mine  # a processor that may lose its model
        given = said(getattr(one, name), *args, **options)
        wanted = said(getattr(theirs, name), *args, **options)
        assert given == wanted, (name, args, options)


ODD = [
    *(
        None,
        0,
        1,
        -1,
        1.5,
        -1.0,
        math.inf,
        True,
        False,
        "",
        "a",
        b"",
        b"ab",
        [],
        (),
        ["a"],
        [1],
        1 << 31,
        1 << 40,
    ),
    *(
        {1},
        int,
        object(),
        np.int64(3),
        np.array([1, 2]),
        np.array(["a", "b"]),
        np.array(5),
        bytearray(b"ab"),
        "numpy",
    ),
]
INPUTS = [
    "hug the pug",
    b"hug",
    "",
    "a\ud800",
    ["hug", "pug"],
    [b"hug"],
    [],
    ["hug", 1],
    ["a\ud800"],
    3,
    None,
    ("a",),
    {},
]
OPTIONS = (
    "add_bos",
    "add_eos",
    "reverse",
    "emit_unk_piece",
    "num_threads",
    "nbest_size",
    "alpha",
    "out_type",
    "return_type",
)


def called(library, made, name, argument, options):
    "The result of a method of a new processor."
    return getattr(library.SentencePieceProcessor(**made), name)(argument, **options)


@pytest.mark.peers
@pytest.mark.parametrize("has_model", [True, False])
def test_odd_arguments_have_the_same_result_or_error(unigram, peer, has_model):
    "Options of the constructor and of each call, with values of every type."
    rng = fresh("odd", has_model)
    names = "encode encode_as_ids encode_as_pieces encode_as_numpy encode_as_offset_mapping nbest_encode nbest_encode_as_ids"
    names += " nbest_encode_as_pieces parallel_encode parallel_encode_as_ids decode decode_ids decode_pieces id_to_piece"
    names += " get_score is_byte is_unused"
    given = {"model_proto": unigram.serialized_model_proto()} if has_model else {}
    for _ in range(5 * TEXTS):
        name = rng.choice(names.split())
        made = {option: rng.choice(ODD) for option in rng.sample(OPTIONS[:5], rng.choice([0, 0, 1]))}
        call = {option: rng.choice(ODD) for option in rng.sample(OPTIONS, rng.choice([0, 1, 1, 2]))}
        if name.startswith("parallel"):
            call |= {"chunk_len": rng.choice([1, 5, None, 0, 1.5, 1 << 40])}
        if name.startswith("nbest") and has_model:
            call |= {"nbest_size": rng.choice([1, 0, -1, -1.0, None, 1.5, 513, "2", 1 << 40])}  # no ties
        if name.split("_")[0] not in ("encode", "nbest", "parallel", "decode"):
            call = {}
        for options in (made, call):  # the other library would start as many threads
            if type(options.get("num_threads")) is int and options["num_threads"] > 2:
                options["num_threads"] = 2
        argument = rng.choice(ODD if name.startswith(("decode", "id", "get", "is")) else INPUTS)
        if (
            name.startswith("parallel")
            and isinstance(argument, list)
            and argument not in (["hug", "pug"], [])
        ):
            continue  # here invalid elements are found first
        if name.startswith("decode") and not isinstance(argument, (int, str, bytes, list, tuple)):
            call = {}  # which of two errors is found first depends on the type
        mine, theirs = (said(called, lib, given | made, name, argument, call) for lib in (spm, peer))
        if isinstance(theirs, type) or isinstance(mine, type):
            assert mine is theirs, (name, argument, made, call)
        else:
            np.testing.assert_equal(mine, theirs, err_msg=str((name, argument, made, call)))


@pytest.mark.peers
@pytest.mark.parametrize("given", [b"garbage", b"", "/no/such/file.model", "/"])
def test_models_that_cannot_be_loaded(peer, given):
    for module in (spm, peer):
        processor = module.SentencePieceProcessor()
        load = processor.load_from_serialized_proto if isinstance(given, bytes) else processor.load
        with pytest.raises(RuntimeError):
            load(given)
        assert len(processor) == 0


@pytest.mark.peers
def test_draws_with_the_same_probabilities(peer, shared_file):
    path = str(shared_file("vocab/sentencepiece/test_model.model"))
    mine, theirs = spm.SentencePieceProcessor(model_file=path), peer.SentencePieceProcessor(model_file=path)
    for text, nbest_size, alpha in (("hello", -1, 0.3), ("New York", 4, 0.5)):
        n = 3000
        counts = [
            Counter(tuple(sp.sample_encode_as_ids(text, nbest_size, alpha)) for _ in range(n))
            for sp in (mine, theirs)
        ]
        both = counts[0] + counts[1]
        for key in both:
            share = both[key] / (2 * n)
            spread = 6 * math.sqrt(2 * share * (1 - share) / n) + 3 / n
            assert abs(counts[0][key] - counts[1][key]) / n < spread, key


@pytest.mark.peers
@pytest.mark.parametrize(
    "options",
    [
        {"rule_name": "nfkc"},
        {"rule_name": "nmt_nfkc_cf", "add_dummy_prefix": False},
        {"norm_map": [("a", "bb"), ("日", ""), ("é", "e")], "escape_whitespaces": False},
        {"norm_map": [("hello", "HELLO")], "remove_extra_whitespaces": False},
    ],
)
def test_normalizers_are_the_same(peer, options):
    mine, theirs = spm.SentencePieceNormalizer(**options), peer.SentencePieceNormalizer(**options)
    assert dict(mine.decompile()) == dict(theirs.decompile())
    rng = fresh("normalizer", str(options))
    for _ in range(TEXTS):
        text = text_of(rng)
        assert mine.normalize(text, with_offsets=True) == theirs.normalize(text, with_offsets=True)
        assert mine.normalize([text.encode()]) == theirs.normalize([text.encode()])
    spec = theirs.serialized_normalizer_spec()
    assert spm.SentencePieceNormalizer(normalizer_spec=spec).normalize("aé日") == theirs.normalize("aé日")
    again = peer.SentencePieceNormalizer(model_proto=mine.serialized_model_proto())
    assert again.normalize("Hello aé日") == mine.normalize("Hello aé日")


@pytest.mark.peers
@pytest.mark.parametrize(
    "options", [{"model_type": "char", "vocab_size": 40}, {"model_type": "word", "vocab_size": 60}]
)
@pytest.mark.parametrize(
    "more", [{}, {"unk_id": 2, "bos_id": -1, "eos_id": 0, "pad_id": 1}, {"treat_whitespace_as_suffix": True}]
)
def test_trains_words_and_characters_equally(peer, options, more):
    rng = fresh("train", str(options), str(more))
    words = ["hug", "pug", "pun", "bun", "hugs", "日本", "Ａé", "12", "x"]
    corpus = [" ".join(rng.choices(words, k=rng.randrange(1, 9))) for _ in range(200)]
    models = []
    for module in (spm, peer):
        out = io.BytesIO()
        given = {**options, **more, "use_all_vocab": True}
        module.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus), model_writer=out, minloglevel=9, **given
        )
        models.append(peer.SentencePieceProcessor(model_proto=out.getvalue()))
    mine, theirs = models
    ids = list(range(len(theirs)))
    assert mine.id_to_piece(ids) == theirs.id_to_piece(ids)
    assert mine.get_score(ids) == pytest.approx(theirs.get_score(ids), abs=1e-5)
    assert mine.encode(corpus) == theirs.encode(corpus)


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_what_is_trained_here_is_read_there(peer, kind):
    mine = trained(
        model_type=kind, vocab_size=300, byte_fallback=True, user_defined_symbols=["<mask>", "日"], pad_id=3
    )
    theirs = peer.SentencePieceProcessor(model_proto=mine.serialized_model_proto())
    rng = fresh("read there", kind)
    texts = [text_of(rng) for _ in range(TEXTS)] + ["hug pug pun hugs<mask> 日本"]
    assert mine.encode(texts, out_type="serialized_proto") == theirs.encode(
        texts, out_type="serialized_proto"
    )
    assert (mine.pad_id(), mine.is_byte(4)) == (theirs.pad_id(), theirs.is_byte(4))


@pytest.mark.peers
def test_kinds_of_training_errors(peer, tmp_path):
    corpus = ["hello world"] * 20 + ["another line"] * 10
    for options in (
        {"vocab_size": 9999}, {"vocab_size": 6}, {"vocab_size": "abc"}, {"foo": 1}, {"model_type": "foo"}, {"split_digits": "maybe"},
        {"unk_id": 1}, {"unk_id": -1}, {"character_coverage": 2}, {"max_sentencepiece_length": 1000}, {"control_symbols": "<x>,<x>"},
        {"input": "/no/such/file"}, {"normalization_rule_name": "foo"}, {"model_prefix": str(tmp_path / "m")},
    ):  # fmt: skip
        kinds = []
        for module in (spm, peer):
            given = {"vocab_size": 20, "minloglevel": 9, "hard_vocab_limit": True, **options}
            try:
                module.SentencePieceTrainer.train(
                    sentence_iterator=iter(corpus), model_writer=io.BytesIO(), **given
                )
            except Exception as e:
                kinds.append(type(e))
        assert len(kinds) == 2 and issubclass(kinds[0], kinds[1]), (options, kinds)


# On models trained here


def test_nothing_of_the_other_library_is_imported():
    code = (
        "import sys; sys.modules['sentencepiece'] = sys.modules['google'] = None\n"
        "import subword_nb.compat.sentencepiece as spm; spm.SentencePieceProcessor()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_both_spellings_are_one_function():
    for camel, snake in [
        ("EncodeAsIds", "encode_as_ids"),
        ("SampleEncodeAsPieces", "sample_encode_as_pieces"),
        ("NBestEncodeAsPieces", "nbest_encode_as_pieces"),
        ("DecodePieces", "decode_pieces"),
        ("GetPieceSize", "get_piece_size"),
        ("PieceToId", "piece_to_id"),
        ("LoadFromSerializedProto", "load_from_serialized_proto"),
        ("SetEncodeExtraOptions", "set_encode_extra_options"),
        ("CalculateEntropy", "calculate_entropy"),
        ("SampleEncodeAndScore", "sample_encode_and_score"),
        ("OverrideNormalizerSpec", "override_normalizer_spec"),
        ("Tokenize", "encode"),
        ("Detokenize", "decode"),
    ]:
        cls = spm.SentencePieceProcessor
        assert getattr(cls, camel) is getattr(cls, snake)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_round_trips(kind, request):
    sp = request.getfixturevalue(kind)
    rng = fresh("round trip", kind)
    letters = (
        ["hug", "pug", "s", " ", "日本", "é", "!", "<mask>"]
        if kind == "bpe"
        else ["hug", "pug", "s", " ", "日本", "é", "!"]
    )
    for _ in range(TEXTS):
        text = " ".join("".join(rng.choices(letters, k=rng.randrange(6))).split())
        ids, pieces = sp.encode(text), sp.encode(text, out_type=str)
        assert sp.decode(ids) == sp.decode(pieces) == text
        proto = sp.encode(text, out_type="immutable_proto")
        assert "".join(p.surface for p in proto.pieces) == text == proto.text
        assert [p.id for p in proto.pieces] == ids and [p.piece for p in proto.pieces] == pieces
        assert all(text[p.begin : p.end] == p.surface for p in proto.pieces)
        raw = sp.encode(text, out_type="proto")
        assert all(text.encode()[p.begin : p.end] == p.surface_as_bytes() for p in raw.pieces)
        assert spm.SentencePieceText.FromString(sp.encode(text, out_type="serialized_proto")) == raw
        assert sp.decode(ids, out_type="proto").text == text


def test_batches_and_threads_change_nothing(bpe):
    rng = fresh("batch")
    texts = [text_of(rng) for _ in range(50)]
    one_by_one = [bpe.encode(t, out_type=str) for t in texts]
    for threads in (-1, 0, 1, 3):
        assert bpe.encode(texts, out_type=str, num_threads=threads) == one_by_one
    assert bpe.encode(texts, out_type=str, thread_pool=spm.ThreadPool(2)) == one_by_one
    raw = [t.encode() for t in texts]
    assert bpe.encode(raw, out_type=bytes) == [[p.encode() for p in row] for row in one_by_one]
    assert bpe.decode(bpe.encode(texts), num_threads=2) == [bpe.decode(bpe.encode(t)) for t in texts]


def test_extra_options_and_options_of_a_call(unigram):
    sp = copy.deepcopy(unigram)
    plain = sp.encode("hugs")
    assert sp.encode("hugs", add_bos=True, add_eos=True, reverse=True) == [1, *plain[::-1], 2]
    assert sp.set_encode_extra_options("bos:eos:reverse")
    assert sp.encode("hugs") == [2, *plain[::-1], 1]
    assert [p.id for p in sp.encode("hugs", out_type="proto").pieces] == [2, *plain[::-1], 1]
    sp.set_encode_extra_options("unk")
    assert sp.encode("hugsZ", out_type=str)[-1] == "<unk>"
    sp.set_encode_extra_options("")
    assert sp.encode("hugsZ", out_type=str)[-1] == "Z"
    sp.set_decode_extra_options("reverse")
    assert sp.decode(["s", "▁hug"]) == unigram.decode(["▁hug", "s"])
    with pytest.raises(RuntimeError, match="'foo' is not available"):
        sp.set_encode_extra_options("bos:foo")


def log_probabilities(sp, text):
    "The log-probability of each segmentation of a short text."
    found = sp.nbest_encode(text, nbest_size=500, out_type="immutable_proto")
    total = math.log(sum(math.exp(t.score) for t in found))
    return {tuple(p.piece for p in t.pieces): t.score - total for t in found}


def test_scores_of_samples(unigram):
    spm.set_random_generator_seed(3)
    probability = log_probabilities(unigram, "hugs")
    for pieces, score in unigram.sample_encode_and_score("hugs", out_type=str, num_samples=30):
        assert score == pytest.approx(probability[tuple(pieces)], abs=1e-4)
    found = unigram.sample_encode_and_score("hugs", out_type=str, num_samples=4, wor=True, include_best=True)
    assert found[0] == (unigram.encode("hugs", out_type=str), 0.0)
    assert len({tuple(pieces) for pieces, _ in found}) == 4 and all(score <= 0 for _, score in found)
    drawn = unigram.sample_encode_and_score_as_pieces("hugs", 5)  # 0.2.0 takes the number by position
    assert len(drawn) == 5 and len(unigram.sample_encode_and_score_as_ids("hugs", 2, 0.5)) == 2
    assert len(unigram.sample_encode_and_score_as_immutable_proto("hugs", 3).nbests) == 3
    assert isinstance(unigram.sample_encode_and_score_as_serialized_proto("hugs", 3), bytes)
    entropy = -sum(math.exp(p) * p for p in probability.values())
    assert unigram.calculate_entropy("hugs", 1.0) == pytest.approx(entropy, abs=1e-4)
    assert unigram.calculate_entropy(["hugs", ""], alpha=1.0)[1] == 0
    for options in ({"num_samples": 0}, {"include_best": True}):
        with pytest.raises(RuntimeError):
            unigram.sample_encode_and_score("hugs", **options)


def test_inclusion_probabilities(unigram):
    "The score without replacement is the logarithm of the probability to be among those drawn, on average."
    spm.set_random_generator_seed(11)
    probability = log_probabilities(unigram, "hug")
    weight = 0.0
    n = 2000
    for _ in range(n):
        for pieces, score in unigram.sample_encode_and_score("hug", out_type=str, num_samples=2, wor=True):
            weight += math.exp(probability[tuple(pieces)] - score)
    assert weight / n == pytest.approx(1.0, abs=0.1)  # the Horvitz–Thompson estimate of 1


def test_bpe_dropout(bpe):
    assert bpe.sample_encode_as_pieces("hugs", -1, 0.0) == bpe.encode("hugs", out_type=str)
    assert bpe.sample_encode_as_pieces("hugs", -1, 1.0) == ["▁", "h", "u", "g", "s"]
    spm.set_random_generator_seed(5)
    drawn = [bpe.sample_encode_as_ids("hugs", -1, 0.5) for _ in range(20)]
    spm.SetRandomGeneratorSeed(5)
    assert drawn == [bpe.SampleEncodeAsIds("hugs", -1, 0.5) for _ in range(20)]
    assert len({tuple(ids) for ids in drawn}) > 3
    assert {bpe.decode(ids) for ids in drawn} == {"hugs"}
    for call in (bpe.nbest_encode, bpe.calculate_entropy, bpe.sample_encode_and_score):
        with pytest.raises(RuntimeError, match="not available for the current model"):
            call("hugs")


def test_vocabulary_constraints(unigram, tmp_path):
    sp = copy.deepcopy(unigram)
    assert sp.encode("pun", out_type=str) == ["▁pun"]
    sp.set_vocabulary(["▁hug"])
    assert (sp.encode("hug", out_type=str), sp.encode("pun", out_type=str)) == (
        ["▁hug"],
        ["▁", "p", "u", "n"],
    )
    assert sp.is_unused(sp["▁pun"])
    sp.reset_vocabulary()
    assert sp.encode("pun", out_type=str) == ["▁pun"]
    path = tmp_path / "vocab.tsv"
    path.write_text("▁pun\t3\n▁hug\t1\n", encoding="utf-8")
    sp.load_vocabulary(str(path), 2)
    assert (sp.encode("hug", out_type=str)[0], sp.encode("pun", out_type=str)) == ("▁", ["▁pun"])
    with pytest.raises(RuntimeError, match="vocabulary constraint"):
        trained(model_type="char").set_vocabulary(["a"])


def test_loading_in_every_way(unigram, tmp_path):
    data = unigram.serialized_model_proto()
    path = tmp_path / "m.model"
    path.write_bytes(data)
    empty = spm.SentencePieceProcessor()
    assert (len(empty), empty.unk_id(), empty.serialized_model_proto()) == (0, -1, b"")
    for sp in (
        spm.SentencePieceProcessor(str(path)),
        spm.SentencePieceProcessor(path),
        spm.SentencePieceProcessor(model_proto=data),
        spm.SentencePieceProcessor.from_file(str(path), out_type=str),
        spm.SentencePieceProcessor.from_proto(data),
        pickle.loads(pickle.dumps(unigram)),
        copy.deepcopy(unigram),
    ):
        assert sp.encode_as_ids("hugs pun") == unigram.encode("hugs pun")
        assert sp.serialized_model_proto() == data
    for load in ("load", "Load", "load_from_file", "LoadFromFile"):
        sp = spm.SentencePieceProcessor()
        assert getattr(sp, load)(str(path)) is True and len(sp) == len(unigram)
    sp = spm.SentencePieceProcessor()
    sp.Init(model_file=str(path), add_bos=True, out_type=str)
    assert sp.encode("hug")[0] == "<s>"
    assert pickle.loads(pickle.dumps(sp)).encode("hug")[0] == "<s>"
    assert pickle.loads(pickle.dumps(empty)).piece_size() == 0
    with pytest.raises(OSError):
        sp.load(str(tmp_path / "none.model"))
    assert len(sp) == 0
    with pytest.raises(RuntimeError):
        sp.encode("hug")


def test_overridden_normalizer(unigram):
    sp = copy.deepcopy(unigram)
    assert sp.override_normalizer_spec(add_dummy_prefix=False, remove_extra_whitespaces="false")
    assert sp.normalize(" hug  s") == "▁hug▁▁s"
    assert spm.SentencePieceProcessor(model_proto=sp.serialized_model_proto()).normalize(" a") == "▁a"
    with pytest.raises(RuntimeError, match="no field 'foo'"):
        sp.override_normalizer_spec(foo=1)


def test_objects_cannot_be_changed(unigram):
    proto = unigram.encode("hugs", out_type="immutable_proto")
    assert len(proto.pieces) == len(unigram.encode("hugs")) and proto.score == 0.0
    with pytest.raises(AttributeError):
        proto.text = "x"
    with pytest.raises(AttributeError):
        proto.pieces[0].piece = "x"
    best = unigram.nbest_encode("hugs", nbest_size=3, out_type="immutable_proto")
    assert [t.score for t in best.nbests] == sorted((t.score for t in best), reverse=True)
    assert best[0].pieces[::-1] == list(reversed(best[0].pieces)) and best.nbests[:1] == [best[0]]
    array = unigram.encode("hugs", return_type="numpy")
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert hash(proto) == hash(unigram.encode("hugs", out_type="immutable_proto"))


# Training


def test_flags_files_and_vocab(tmp_path):
    corpus, prefix = tmp_path / "c.txt", tmp_path / "m"
    corpus.write_text("hug pug\n" * 10 + "pun bun hugs\n" * 5, encoding="utf-8")
    spm.SentencePieceTrainer.Train(
        f"--input={corpus} --model_prefix={prefix} --vocab_size=15 --model_type=bpe "
        "--normalization_rule_name=identity --vocab_size=14"  # of two, the first counts
    )
    sp = spm.SentencePieceProcessor(model_file=f"{prefix}.model")
    rows = [line.split("\t") for line in Path(f"{prefix}.vocab").read_text(encoding="utf-8").splitlines()]
    assert [(sp.id_to_piece(i), f"{sp.get_score(i):g}") for i in range(len(sp))] == [
        tuple(row) for row in rows
    ]
    assert len(sp) == 15
    log = io.StringIO()
    spm.SentencePieceTrainer.train(
        input=[corpus, str(corpus)], model_prefix=prefix, vocab_size=15, logstream=log, normalization_rule_name="identity",
        vocabulary_output_piece_score=False, hard_vocab_limit=False, self_test_sample_size=2,
    )  # fmt: skip
    assert "from 30 sentences" in log.getvalue()
    assert "\t" not in Path(f"{prefix}.vocab").read_text(encoding="utf-8")


def test_options_that_shape_the_pieces():
    corpus = ["ab12 ab12", "12ab ａ", "hug日本 hug日本"] * 20

    def pieces(**options):
        out = io.BytesIO()
        given = {
            "vocab_size": 40,
            "hard_vocab_limit": False,
            "normalization_rule_name": "identity",
            "model_type": "bpe",
        }
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus), model_writer=out, **{**given, **options}
        )
        sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
        return [sp.id_to_piece(i) for i in range(len(sp))]

    assert "12" in pieces() and "12" not in pieces(split_digits=True)
    assert "▁hug日本" in pieces(split_by_unicode_script=False, split_by_number=False)
    assert not any("g日" in p for p in pieces())
    assert max(map(len, pieces(max_sentencepiece_length=2)[3:])) == 2
    assert "ab12▁" in pieces(
        treat_whitespace_as_suffix=True, split_by_unicode_script=False, split_by_number=False
    )
    assert pieces(control_symbols=["<c>"], user_defined_symbols="hug,日", pad_id=3)[3:7] == [
        "<pad>",
        "<c>",
        "hug",
        "日",
    ]
    assert "ａ" in pieces(required_chars="ａ") and "ｚ" in pieces(required_chars="ｚ")
    assert pieces(unk_piece="[U]", bos_id=-1, eos_id=-1)[0] == "[U]"
    halves = pieces(pretokenizer=lambda text: [text[: len(text) // 2], text[len(text) // 2 :]])
    assert "▁12ab" not in halves
    assert "<0xFF>" in pieces(byte_fallback=True, vocab_size=300)


def test_sentences_are_chosen_and_weighted(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text("hug\t30\npug\t10\n", encoding="utf-8")
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        input=str(path),
        input_format="tsv",
        model_writer=out,
        model_type="word",
        vocab_size=5,
        normalization_rule_name="identity",
    )
    sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
    assert sp.get_score([3, 4]) == pytest.approx([math.log(0.75), math.log(0.25)], abs=1e-6)
    for size, shuffle in ((10, False), (10, True)):
        out = io.BytesIO()
        spm.SentencePieceTrainer.train(
            sentence_iterator=(f"w{i}" for i in range(100)), model_writer=out, model_type="word", vocab_size=13,
            input_sentence_size=size, shuffle_input_sentence=shuffle, normalization_rule_name="identity",
        )  # fmt: skip
        sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
        found = [sp.id_to_piece(i) for i in range(3, len(sp))]
        assert len(found) == 10 and (shuffle or set(found) == {f"▁w{i}" for i in range(10)})


@pytest.mark.parametrize(
    "name,value",
    [
        ("enable_differential_privacy", True),
        ("seed_sentencepieces_file", "x"),
        ("mining_sentence_size", 5),
        ("auto_character_coverage", True),
    ],
)
def test_what_cannot_be_honoured_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        trained(**{name: value})


def test_training_errors(tmp_path):
    for sentences, options, message in (
        (["hug"], {"vocab_size": 99}, "Vocabulary size too high"),
        ([], {}, "no sentences"),
        ([3], {}, "must be str or bytes"),
        (["hug"], {"input": "x"}, "exclusive"),
        (["hug"], {"pretokenizer": lambda t: ["x"]}, "changed"),
        (["hug"], {"pretokenizer": lambda t: 1 / 0}, "Pretokenizer failed: division by zero"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=message):
            spm.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=io.BytesIO(),
                normalization_rule_name="identity",
                **options,
            )
    with pytest.raises(ZeroDivisionError):
        spm.SentencePieceTrainer.train(sentence_iterator=(1 / 0 for _ in "a"), model_writer=io.BytesIO())
    with pytest.raises(RuntimeError, match="exclusive"):
        spm.SentencePieceTrainer.train(sentence_iterator=iter(["a"]))


def test_modules_below():
    module = importlib.import_module("subword_nb.compat.sentencepiece.sentencepiece_pb2")
    assert module.SentencePieceText is spm.SentencePieceText
    with pytest.raises(ValueError, match="FlatBuffers"):
        spm.ConvertToFlatbuffer(model_file="m.model")
    spm.SetMinLogLevel(0)
    spm.set_data_dir("/tmp")
    spm.SetNBestTimeout(5)


# Every option of training, with a value that is not the default

CORPUS = [
    "ab12 ab12    hug", "12ab ａ", "hug日本 hug日本|pun", "pun\t3", "bun pug hugs " * 4, "x" * 30, "é" * 40,
]  # fmt: skip
VALUES = {
    "accept_language": "en,ja", "add_dummy_prefix": False, "allow_whitespace_only_pieces": True, "auto_character_coverage": True,
    "bos_id": -1, "bos_piece": "[B]", "byte_fallback": True, "character_coverage": 0.98, "control_symbols": "<c>",
    "differential_privacy_clipping_threshold": 3, "differential_privacy_noise_level": 0.5, "enable_differential_privacy": True,
    "eos_id": -1, "eos_piece": "[E]", "escape_whitespaces": False, "hard_vocab_limit": True, "input": None, "input_format": "tsv",
    "input_sentence_size": 3, "max_sentence_length": 40, "max_sentencepiece_length": 2, "mining_sentence_size": 5,
    "model_prefix": None, "model_type": "bpe", "name": "nfkc_cf", "normalization_rule_tsv": None, "num_sub_iterations": 3,
    "num_threads": 2, "pad_id": 3, "pad_piece": "[P]", "precompiled_charsmap": None, "pretokenization_delimiter": "|",
    "remove_extra_whitespaces": False, "required_chars": "ｚ", "seed_sentencepiece_size": 30, "seed_sentencepieces_file": "x",
    "self_test_sample_size": 2, "shrinking_factor": 0.5, "shuffle_input_sentence": False, "split_by_number": False,
    "split_by_unicode_script": False, "split_by_whitespace": False, "split_digits": True, "train_extremely_large_corpus": True,
    "training_sentence_size": 5, "treat_whitespace_as_suffix": True, "unk_id": 3, "unk_piece": "[U]", "unk_surface": " ?? ",
    "use_all_vocab": True, "user_defined_symbols": "hug", "vocab_size": 45, "vocabulary_output_piece_score": False,
}  # fmt: skip
# options that only another option brings to life
BESIDE = {
    "allow_whitespace_only_pieces": {"remove_extra_whitespaces": False, "model_type": "bpe"},
    "byte_fallback": {"vocab_size": 300},
    "use_all_vocab": {"model_type": "word", "vocab_size": 6},
    "pad_piece": {"pad_id": 3},
    "shuffle_input_sentence": {"input_sentence_size": 3},
    "hard_vocab_limit": {"vocab_size": 4000},
    "split_by_number": {"model_type": "bpe"},
    "shrinking_factor": {"vocab_size": 30},
    "pretokenization_delimiter": {"split_by_unicode_script": False},
}
WITHOUT_EFFECT = {
    "accept_language",  # nor in SentencePiece
    "differential_privacy_clipping_threshold",  # without enable_differential_privacy
    "differential_privacy_noise_level",
    "num_threads",  # results do not depend on it
    "train_extremely_large_corpus",
}
REFUSED = {
    "auto_character_coverage", "enable_differential_privacy", "mining_sentence_size", "seed_sentencepieces_file",
    "training_sentence_size",
}  # fmt: skip
FIELDS = {name: kind for table in (TRAINER_SPEC, NORMALIZER_SPEC) for name, kind, _ in table.values()}


def outcome(folder, **options):
    "What a training leaves but its record of the options: pieces, rules, samples, lines; or its error."
    path = folder / "c.txt"
    given = {
        "input": str(path),
        "model_prefix": str(folder / "m"),
        "vocab_size": 120,
        "hard_vocab_limit": False,
    }
    given |= {"normalization_rule_name": "identity", "random_seed": 1} | options
    for name in ("name", "normalization_rule_tsv", "precompiled_charsmap"):
        if name in options:
            del given["normalization_rule_name"]
    try:
        spm.SentencePieceTrainer.train(**given)
    except (ValueError, RuntimeError) as e:
        return str(e)
    made = Path(given["model_prefix"] + ".model")
    proto = read_model_proto(made.read_bytes(), name="m")
    sp = spm.SentencePieceProcessor(model_file=str(made))
    return (
        proto.pieces, proto.normalizer_spec, proto.self_test_data, made.with_suffix(".vocab").read_text("utf-8"),
        sp.decode([sp.unk_id()]), sorted(p.name for p in folder.glob("*.model")),
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_no_option_is_silently_ignored(name, tmp_path):
    (tmp_path / "c.txt").write_text("".join(f"{line}\n" for line in CORPUS * 5), encoding="utf-8")
    (tmp_path / "d.txt").write_text("hug pug\n" * 9, encoding="utf-8")
    (tmp_path / "r.tsv").write_text("61\t62\n", encoding="utf-8")
    value = VALUES[name]
    if value is None:
        value = {
            "input": str(tmp_path / "d.txt"), "model_prefix": str(tmp_path / "other"),
            "normalization_rule_tsv": str(tmp_path / "r.tsv"), "precompiled_charsmap": build_charsmap({"a": "b"}),
        }[name]  # fmt: skip
    beside = BESIDE.get(name, {})
    before = outcome(tmp_path, **beside)
    after = outcome(tmp_path, **beside, **{name: value})
    if name in REFUSED:
        assert isinstance(after, str) and name in after
    elif name in WITHOUT_EFFECT:
        assert after == before and not isinstance(after, str)
        spec = read_model_proto((tmp_path / "m.model").read_bytes(), name="m").trainer_spec
        assert name in spec
    else:
        assert after != before
        assert not isinstance(after, str) or name in ("hard_vocab_limit", "input_format")


def test_the_page_has_every_option():
    page = Path(__file__).parents[2] / "nbs" / "compat" / "35_sentencepiece.ipynb"
    text = page.read_text(encoding="utf-8")
    table = text[text.index("## Options of training") :]
    assert [name for name in FIELDS if f"`{name}`" not in table] == []


@pytest.mark.peers
def test_the_options_are_those_of_the_installed_library(peer):
    "Each name is known there, and no field of its messages is missing here."
    source = Path(peer.__file__).with_name("sentencepiece_model_pb2.py").read_text(encoding="utf-8")
    message = ast.literal_eval(re.search(r"AddSerializedFile\((b'.*')\)", source)[1])
    # a field is its name (1), its number (3), its label (4), …: a length before the name, "\x18" after it
    names = {n.decode() for n in re.findall(rb"\n[\x01-\x7f]([a-z][a-z_]+)\x18", message)}
    names -= {
        "pieces",
        "trainer_spec",
        "normalizer_spec",
        "denormalizer_spec",
        "self_test_data",
    }  # of ModelProto
    names -= {"piece", "score", "type", "samples", "expected"}  # of its parts
    assert names == set(FIELDS)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_digits_of_any_script(kind):
    "Without split_by_number a piece holds letters and digits, but still not letters of two scripts."
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(["hug7 hug7 日7 hug日"] * 30), model_writer=out, model_type=kind, vocab_size=16,
        hard_vocab_limit=False, normalization_rule_name="identity", split_by_number=False,
    )  # fmt: skip
    sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
    pieces = [sp.id_to_piece(i) for i in range(3, len(sp))]
    assert any("g7" in p for p in pieces) and not any("g日" in p for p in pieces)
