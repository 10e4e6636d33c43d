"""SentencePiece's `.model` files: read and written as by its own library, with the same ids; damaged files are refused."""

import json
import math
import pickle
import struct
from collections import Counter
from functools import partial

import pytest
from seeds import TEXTS as N, fresh
from peers import sp_file

from subword_nb import Tokenizer, normalizers
from subword_nb.text import pretokenizers
from subword_nb.text.charsmap import build_charsmap
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.formats.sentencepiece import (
    as_sentencepiece,
    parts_from_proto,
    proto_from_parts,
    read_sentencepiece,
    sentencepiece_notes,
    write_sentencepiece,
)
from subword_nb.formats.sentencepiece_normalizer import SentencePieceNormalizer
from subword_nb.formats.sentencepiece_proto import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    ModelProto,
    Piece,
    read_model_proto,
    wire_fields,
    write_model_proto,
)
from subword_nb.pipeline.vocab import AddedToken

FILES = [
    "barthez/sentencepiece.bpe.model",
    "chatglm-6b/ice_text.model",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "sentencepiece/test_ja_model.model",
    "sentencepiece/test_model.model",
    "t5-small/spiece.model",
    "tf-text/fast_sentencepiece.model",
    *(
        f"transformers-fixtures/test_sentencepiece{x}.model"
        for x in ("", "_bpe", "_bpe_char", "_no_bos", "_with_bytefallback")
    ),
    "xlnet-base-cased/spiece.model",
]
QUICK = [
    "llama-2/tokenizer.model",
    "sentencepiece/test_model.model",
    "transformers-fixtures/test_sentencepiece_bpe_char.model",
]
MARKED = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FILES]
LINES = [
    "the hugging face course is about tokenization and the tokens",
    "Hello, World! It's 2024 and I'll see you at 10:30",
    "naïve café ÉCOLE",
    "你好世界 我们在学习",
    "привет мир",
    "a b c aaaa bbb",
    "low lower lowest newer wider",
    "Ａ ﬁ ① and more words that are made of other words",
] * 4
SPACES = " \u00a0\u2003\u3000\u200b\ufeff\t\r\n\x0b\x0c\x1c\x1f\x85\u2028"
ODD = [
    "▁",
    "▁▁",
    "  ",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<0x41>",
    "<|endoftext|>",
    "👩\u200d👩\u200d👧",
    "e\u0301",
    "\u1112\u1161\u11ab",
    "\x00",
    "\x07",
    "\ue000",
    "\u0378",
    "𝔘",
    "🤗",
    "☃",
    "-" * 9,
    "aaaaaaa",
    "你好",
    "ﬁ",
    "１２",
    "…",
    "<x>",
    "ab",
    "\ufffd",
]
WORDS = " ".join(LINES).split()


def sp():
    return pytest.importorskip("sentencepiece")


def text(rng):
    "A text of words, of spaces of every kind, and of what is unusual."
    kind = rng.random()
    if kind < 0.35:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(12)))
    if kind < 0.5:
        return "".join(
            chr(
                rng.choice(
                    (
                        rng.randrange(32, 127),
                        rng.randrange(0xA0, 0x3100),
                        rng.randrange(0x4E00, 0xD7A4),
                        rng.randrange(0xE000, 0x11000),
                        rng.randrange(0x1F300, 0x1FA00),
                        rng.randrange(0x10000, 0x110000),
                    )
                )
            )
            for _ in range(rng.randrange(12))
        )
    return "".join(
        rng.choice(
            (
                rng.choice(WORDS),
                rng.choice(WORDS)[:2],
                rng.choice(SPACES),
                " ",
                rng.choice(ODD),
                rng.choice("abehlotuw'!.,09"),
            )
        )
        for _ in range(rng.randrange(16))
    )


def texts(seed, n):
    rng = fresh(seed)
    return [
        "",
        " ",
        "  ",
        "▁",
        " ▁ ",
        "\n",
        "a" * 300,
        "-" * 200,
        " " * 50,
        "☃" * 60,
        *(text(rng) for _ in range(n)),
    ]


def load(proto, **options):
    "A tokenizer of our own, as `Tokenizer.load` makes it."
    return Tokenizer(**parts_from_proto(proto, **options)._replace(source=None, allowed_special=())._asdict())


def whole_characters(found):
    "The library's offsets; where a character is spelled in bytes, all of them have its place, which there only the last has."
    spans = list(found["offsets"])
    for i in reversed(range(len(spans) - 1)):
        (a, b), after = spans[i], spans[i + 1]
        if (
            a == b == after[0] < after[1]
            and found["pieces"][i][:3] == found["pieces"][i + 1][:3] == "<0x"
            and int(found["pieces"][i + 1][3:5], 16) & 0xC0 == 0x80
        ):
            spans[i] = after
    return spans


def same(tok, peer, strings, pieces=True, decode=True):
    "Ids, pieces, offsets and decoded texts are the peer's."
    for s in strings:
        ids = peer.encode(s)
        assert tok.encode(s) == ids, s
        if pieces:
            theirs, found = peer.encode(s, return_type="offset_mapping"), tok.align(s)
            assert (found.ids, found.pieces, found.offsets) == (
                theirs["ids"],
                theirs["pieces"],
                whole_characters(theirs),
            ), s
        if decode:
            assert tok.decode(ids) == peer.decode(ids), s


# Real files


@pytest.mark.peers
@pytest.mark.parametrize("name", MARKED)
def test_golden(name, shared_file, shared_data, record_property):
    "Ids, pieces, decoded texts and facts of every real file are those of the golden files and of the library."
    path = shared_file(f"vocab/{name}")
    golden = json.loads(
        (shared_data / "golden" / f"sp__{name.replace('/', '.')}.json").read_text(encoding="utf-8")
    )
    strings = json.loads((shared_data / "golden" / "strings.json").read_text(encoding="utf-8"))
    parts = read_sentencepiece(path)
    tok = Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())
    for i, (s, ids) in enumerate(zip(strings, golden["ids"])):
        assert tok.encode(s) == ids, s
        assert tok.decode(ids) == golden["decoded_where_different"].get(str(i), s)
    assert tok.vocab_size == golden["vocab_size"]
    probe = [s for s in strings if tok.tokenize(s) and tok.align(s).pieces == golden["probe_pieces"]]
    assert probe, "no string has the probe's pieces"
    info, proto = golden["info"], parts.source
    kind = ("", "UNIGRAM", "BPE", "WORD", "CHAR")[proto.trainer("model_type")]
    facts = {
        "model_type": kind,
        "byte_fallback": proto.trainer("byte_fallback"),
        "normalizer": proto.normalizer("name"),
        "charsmap_bytes": len(proto.normalizer("precompiled_charsmap")),
        **{
            k: proto.normalizer(k)
            for k in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
        },
        "treat_whitespace_as_suffix": proto.trainer("treat_whitespace_as_suffix"),
    }
    assert {k: v for k, v in info.items() if k in facts} == {k: v for k, v in facts.items() if k in info}
    assert write_model_proto(proto_from_parts(parts)) == path.read_bytes()
    record_property("texts", len(strings))


@pytest.mark.one_in(3)
@pytest.mark.peers
@pytest.mark.parametrize("name", MARKED)
def test_generated(name, shared_file, record_property):
    "The library itself, on generated texts; also for the file that is written when nothing is known of the old one."
    path = shared_file(f"vocab/{name}")
    parts = read_sentencepiece(path)
    tok, peer = (
        Tokenizer(**parts._replace(source=None, allowed_special=())._asdict()),
        sp().SentencePieceProcessor(model_file=str(path)),
    )
    strings = texts(name, max(20, N // 20 if name in QUICK else N // 4))
    same(tok, peer, strings)
    record_property("texts", len(strings))
    rng = fresh(name)
    for _ in range(max(20, N // 20)):
        ids = [
            rng.randrange(min(len(parts.source.pieces), rng.choice((300, 10**6))))
            for _ in range(rng.randrange(9))
        ]
        assert tok.decode(ids) == peer.decode(ids)
    if name in QUICK:
        return
    bare = parts._replace(source=None)
    again = sp().SentencePieceProcessor(model_proto=write_model_proto(proto_from_parts(bare)))
    for s in strings:
        assert again.encode(s) == peer.encode(s)
    assert (again.bos_id(), again.eos_id(), again.pad_id(), again.unk_id()) == (
        peer.bos_id(),
        peer.eos_id(),
        peer.pad_id(),
        peer.unk_id(),
    )


@pytest.mark.slow
def test_tutorial_opens_the_real_one(shared_file):
    "What the tutorial does with a model of its own works with ChatGLM's."
    tok = Tokenizer.load(shared_file("vocab/chatglm-6b/ice_text.model"))
    assert [
        *(tok.source.trainer(k) for k in ("model_type", "byte_fallback", "bos_piece")),
        tok.vocab_size,
    ] == [1, True, "<s>", 130344]
    assert tok.source.normalizer("name") == "nmt_nfkc" and tok.source.normalizer("remove_extra_whitespaces")
    drawn = [tok.sample("New York", alpha=0.1, seed=k).ids for k in range(5)]
    assert {tok.decode(ids) for ids in drawn} == {"New York"} and len(set(map(tuple, drawn))) > 1


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize(
    "names",
    [
        [f for f in FILES if (("bpe" in f or "llama" in f or "mistral" in f) and "char" not in f) is family]
        for family in (True, False)
    ],
    ids=["bpe", "unigram"],
)
def test_twenty_thousand(names, shared_file):
    "20,000 texts a family."
    n = 20_000 if N >= 2000 else 5 * N
    for k, name in enumerate(names):
        path = shared_file(f"vocab/{name}")
        tok, peer = (
            Tokenizer(**read_sentencepiece(path)._replace(source=None, allowed_special=())._asdict()),
            sp().SentencePieceProcessor(model_file=str(path)),
        )
        same(tok, peer, texts(f"{k} {name}", n // len(names)), pieces=False, decode=False)


@pytest.mark.peers
def test_nbest_and_samples(shared_file):
    "The best splits with their scores, and how often each is drawn."
    path = shared_file("vocab/sentencepiece/test_model.model")
    tok, peer = (
        Tokenizer(**read_sentencepiece(path)._replace(source=None, allowed_special=())._asdict()),
        sp().SentencePieceProcessor(model_file=str(path)),
    )
    for s in ("New York", "hello world", "the course", "☃ a", "aaaa"):
        found, theirs = tok.nbest(s, n=8), nbest_there(peer, s, 8)
        assert [x.score for x in found] == pytest.approx([score for _, score in theirs], abs=1e-3), s

        def by_score(rows):
            return sorted((round(score, 2), ids) for ids, score in rows)

        assert by_score((x.ids, x.score) for x in found)[1:] == by_score(theirs)[1:], s
    check_samples(
        lambda i: tuple(tok.sample("New York", alpha=0.5, seed=i).ids),
        lambda i: tuple(peer.encode("New York", enable_sampling=True, alpha=0.5, nbest_size=-1)),
        1500,
    )
    check_samples(
        lambda i: tuple(tok.sample("New York", alpha=0.5, nbest_size=6, seed=i).ids),
        lambda i: tuple(peer.encode("New York", enable_sampling=True, alpha=0.5, nbest_size=6)),
        1500,
    )


def nbest_there(peer, s, n):
    "(ids, score) of the library's best splits, taken out of the message that it gives."
    data = peer.nbest_encode(s, nbest_size=n, return_type="serialized_proto")

    def fields(f, number):
        return [g for g in wire_fields(data, f.body, f.end) if g.number == number]

    def ids(split):
        return [g.value for piece in fields(split, 2) for g in fields(piece, 2)]

    return [
        (ids(split), struct.unpack_from("<f", data, fields(split, 3)[0].body)[0])
        for split in wire_fields(data)
    ]


@pytest.mark.peers
def test_dropout(shared_file):
    "For BPE, alpha is the probability of passing over a merge."
    path = shared_file("vocab/transformers-fixtures/test_sentencepiece_bpe.model")
    tok, peer = (
        Tokenizer(**read_sentencepiece(path)._replace(source=None, allowed_special=())._asdict()),
        sp().SentencePieceProcessor(model_file=str(path)),
    )
    for alpha in (0.1, 0.5):
        draw = partial(peer.encode, "the hello", enable_sampling=True, alpha=alpha)
        check_samples(partial(dropped, tok, alpha), lambda i, draw=draw: tuple(draw()), 1500)
    assert tok.encode("hello world", dropout=1.0, seed=1) == peer.encode(
        "hello world", enable_sampling=True, alpha=1.0
    )


def dropped(tok, alpha, seed):
    return tuple(tok.encode("the hello", dropout=alpha, seed=seed))


def check_samples(ours, theirs, n):
    "Chi-square of two samples, with rare splits together."
    a, b = Counter(ours(i) for i in range(n)), Counter(theirs(i) for i in range(n))
    often = [k for k in {*a, *b} if a[k] + b[k] >= 20]
    rows = [(a[k], b[k]) for k in often] + [(n - sum(a[k] for k in often), n - sum(b[k] for k in often))]
    chi = sum((x - y) ** 2 / (x + y) for x, y in rows if x + y)
    freedom = max(1, len([r for r in rows if sum(r)]) - 1)
    assert chi < freedom + 5 * math.sqrt(2 * freedom) + 5, (chi, freedom, rows[:8])


# Around a text


@pytest.mark.peers
@pytest.mark.parametrize(
    "name", ["llama-2/tokenizer.model", "transformers-fixtures/test_sentencepiece_no_bos.model"]
)
def test_bos_eos_reverse(name, shared_file):
    "What is put around a text, in all combinations."
    path = shared_file(f"vocab/{name}")
    proto, peer = read_model_proto(path.read_bytes()), sp().SentencePieceProcessor(model_file=str(path))
    tok = load(proto)
    strings = ["", "hello world", "  a\tb", "☃☃ x", "<s> a"]
    for k in range(8):
        options = dict(add_bos=bool(k & 1), add_eos=bool(k & 2), reverse=bool(k & 4))
        if k & 1 and peer.bos_id() < 0:
            with pytest.raises(ValueError, match="without the control piece '<s>'"):
                parts_from_proto(proto, **options)
            continue
        tok.post_processor = parts_from_proto(proto, **options).post_processor
        for s in strings:
            theirs = peer.encode(s, **options)
            assert tok.encode(s) == theirs
            assert tok.align(s).ids == theirs
            assert tok.encode_batch([s, s]).tolist() == [theirs, theirs]
            assert tok.encode(s, add_special_tokens=False) == peer.encode(s, reverse=options["reverse"])


# Models that the library trains


CORPUS = "\n".join(LINES * 6)
TRAINED = {
    "unigram": dict(model_type="unigram", vocab_size=120),
    "bpe": dict(model_type="bpe", vocab_size=150),
    "nmt_nfkc": dict(
        model_type="unigram",
        vocab_size=120,
        normalization_rule_name="nmt_nfkc",
        user_defined_symbols=["<x>", "ab", "①"],
    ),
    "word": dict(model_type="word", vocab_size=50, hard_vocab_limit=False, use_all_vocab=False),
    "char": dict(model_type="char", vocab_size=70, hard_vocab_limit=False),
    "unigram bytes": dict(model_type="unigram", vocab_size=400, byte_fallback=True),
    "bpe bytes": dict(model_type="bpe", vocab_size=420, byte_fallback=True),
    "char bytes": dict(model_type="char", vocab_size=330, byte_fallback=True, character_coverage=0.98),
    "user": dict(
        model_type="unigram",
        vocab_size=130,
        user_defined_symbols=["<x>", "ab", "▁the", "  "],
        control_symbols=["<c>", "[d]"],
    ),
    "bpe user": dict(
        model_type="bpe", vocab_size=150, user_defined_symbols=["<x>", "ab", "a b"], control_symbols=["<c>"]
    ),
    "char user": dict(
        model_type="char", vocab_size=80, user_defined_symbols=["<x>", "ab"], hard_vocab_limit=False
    ),
    "word user": dict(
        model_type="word", vocab_size=60, user_defined_symbols=["<x>", "ab"], hard_vocab_limit=False
    ),
    "suffix": dict(model_type="unigram", vocab_size=120, treat_whitespace_as_suffix=True),
    "bpe suffix": dict(model_type="bpe", vocab_size=150, treat_whitespace_as_suffix=True),
    "no prefix": dict(model_type="unigram", vocab_size=120, add_dummy_prefix=False),
    "bpe no prefix": dict(
        model_type="bpe", vocab_size=150, add_dummy_prefix=False, remove_extra_whitespaces=False
    ),
    "all spaces": dict(model_type="unigram", vocab_size=120, remove_extra_whitespaces=False),
    "spaces alone": dict(
        model_type="bpe", vocab_size=150, remove_extra_whitespaces=False, allow_whitespace_only_pieces=True
    ),
    "over spaces": dict(model_type="unigram", vocab_size=130, split_by_whitespace=False),
    "bpe over spaces": dict(model_type="bpe", vocab_size=150, split_by_whitespace=False),
    "unsplit": dict(
        model_type="bpe",
        vocab_size=150,
        split_by_number=False,
        split_by_unicode_script=False,
        split_digits=True,
    ),
    "surface": dict(
        model_type="unigram",
        vocab_size=120,
        unk_surface="[?]",
        unk_piece="[UNK]",
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        pad_id=3,
        pad_piece="[PAD]",
    ),
    "no bos": dict(model_type="bpe", vocab_size=150, bos_id=-1, eos_id=-1),
    "other ids": dict(model_type="unigram", vocab_size=120, unk_id=5, bos_id=2, eos_id=0, pad_id=1),
    "nfkc_cf": dict(model_type="bpe", vocab_size=150, normalization_rule_name="nfkc_cf"),
    "nmt_nfkc_cf": dict(model_type="unigram", vocab_size=120, normalization_rule_name="nmt_nfkc_cf"),
    "rules": dict(
        model_type="unigram", vocab_size=110, normalization_rule_tsv="61 62\t78\n41\t61\n3f\t\n9\t20 20\n"
    ),
    "undone": dict(
        model_type="unigram", vocab_size=120, denormalization_rule_tsv="74 68 65\t54 48 45\n61\t41 61\n"
    ),
}


def trained(tmp_path, options):
    "The bytes of a model that the library trains."
    options = dict(options)
    for name in ("normalization_rule_tsv", "denormalization_rule_tsv"):
        if name in options:
            (tmp_path / f"{name}.tsv").write_text(options[name])
            options[name] = str(tmp_path / f"{name}.tsv")
    return sp_file(sp(), CORPUS.split("\n"), **{"normalization_rule_name": "identity", **options})


@pytest.mark.peers
@pytest.mark.parametrize("name", TRAINED)
def test_trained_there(name, tmp_path):
    "Models of all kinds with all switches: read alike, written again to the byte, and written anew with the same results."
    data = trained(tmp_path, TRAINED[name])
    peer, proto = sp().SentencePieceProcessor(model_proto=data), read_model_proto(data)
    assert write_model_proto(proto) == data
    parts = parts_from_proto(proto)
    strings, tok = (
        texts(name, max(20, N // 40)),
        Tokenizer(**parts._replace(source=None, allowed_special=())._asdict()),
    )
    same(tok, peer, strings)
    rng = fresh(name)
    for _ in range(max(20, N // 20)):
        ids = [rng.randrange(len(proto.pieces)) for _ in range(rng.randrange(9))]
        assert tok.decode(ids) == peer.decode(ids)
        stream = tok.stream()
        assert "".join(map(stream.step, ids)) + stream.finish() == tok.decode(ids)
    assert write_model_proto(proto_from_parts(parts)) == data
    again = sp().SentencePieceProcessor(
        model_proto=write_model_proto(proto_from_parts(parts._replace(source=None)))
    )
    for s in strings:
        assert (again.encode(s), again.decode(again.encode(s))) == (
            peer.encode(s),
            peer.decode(peer.encode(s)),
        )
    assert pickle.loads(pickle.dumps(tok)).encode(strings[-1]) == tok.encode(strings[-1])


# Models that are trained here


OWN = pretokenizers.Metaspace(prepend_scheme="never")
EXACT = {  # trained so that nothing is lost
    "unigram": dict(
        algorithm="unigram", vocab_size=140, normalizer=SentencePieceNormalizer(), pre_tokenizer=OWN
    ),
    "unigram bytes": dict(
        algorithm="unigram",
        vocab_size=420,
        byte_fallback=True,
        special_tokens=["<s>", "</s>", "<pad>"],
        normalizer=SentencePieceNormalizer(),
        pre_tokenizer=OWN,
    ),
    "unigram whole": dict(
        algorithm="unigram",
        vocab_size=140,
        normalizer=SentencePieceNormalizer(remove_extra_whitespaces=False),
        pre_tokenizer=None,
    ),
    "unigram defaults": dict(algorithm="unigram", vocab_size=140),
    "bpe metaspace": dict(
        algorithm="char_bpe", vocab_size=160, unk_piece="<unk>", fuse_unk=True, pre_tokenizer="metaspace"
    ),
    "unigram never": dict(algorithm="unigram", vocab_size=140, pre_tokenizer=OWN),
    "unigram llama": dict(
        algorithm="unigram",
        vocab_size=140,
        normalizer=[normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")],
        pre_tokenizer=OWN,
    ),
    "unigram lower": dict(
        algorithm="unigram",
        vocab_size=120,
        normalizer=["nmt", "lowercase", normalizers.Replace("é", "e!")],
        pre_tokenizer=OWN,
    ),
    "bpe": dict(
        algorithm="char_bpe",
        vocab_size=160,
        unk_piece="<unk>",
        fuse_unk=True,
        normalizer=SentencePieceNormalizer(),
        pre_tokenizer=OWN,
    ),
    "bpe bytes": dict(
        algorithm="char_bpe",
        vocab_size=440,
        byte_fallback=True,
        normalizer=SentencePieceNormalizer(),
        pre_tokenizer=OWN,
    ),
    "bpe whole": dict(
        algorithm="char_bpe", vocab_size=160, unk_piece="<unk>", fuse_unk=True, pre_tokenizer=None
    ),
    "bpe suffix": dict(
        algorithm="char_bpe",
        vocab_size=160,
        unk_piece="<unk>",
        fuse_unk=True,
        normalizer=SentencePieceNormalizer(treat_whitespace_as_suffix=True),
        pre_tokenizer=OWN,
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", EXACT)
def test_trained_here(name, tmp_path):
    "A model that is trained here and saved: the library gives the same ids for every text, and so does the file read again."
    tok = Tokenizer.train(LINES, **EXACT[name], allowed_special=())  # as in a file of SentencePiece
    path = write_sentencepiece(tok.parts, tmp_path / "x.model")
    peer, again = (
        sp().SentencePieceProcessor(model_file=str(path)),
        Tokenizer(**read_sentencepiece(path)._replace(source=None, allowed_special=())._asdict()),
    )
    for s in texts(name, max(20, N // 10)):
        ids = peer.encode(s)
        assert again.encode(s) == ids
        assert tok.encode(s) == ids, s
    assert as_sentencepiece(tok.parts)[:4] == read_sentencepiece(path)[:4]


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("algorithm", ["unigram", "char_bpe"])
def test_five_thousand(algorithm, tmp_path, shared_file):
    "Trained on a book with the usual options: 5,000 texts of every kind have the same ids and decode alike; splits are drawn as often."
    tok = Tokenizer.train(
        shared_file("corpus/botchan.txt"),
        algorithm=algorithm,
        vocab_size=1000,
        pre_tokenizer="metaspace",
        allowed_special=(),
        **({"unk_piece": "<unk>", "fuse_unk": True} if algorithm == "char_bpe" else {}),
    )
    peer = sp().SentencePieceProcessor(model_file=str(write_sentencepiece(tok.parts, tmp_path / "x.model")))
    for s in texts(algorithm, 5000):
        assert tok.encode(s) == peer.encode(s) and tok.decode(tok.encode(s)) == peer.decode(peer.encode(s)), s
    again = Tokenizer(
        **read_sentencepiece(tmp_path / "x.model")._replace(source=None, allowed_special=())._asdict()
    )
    drawn = (
        tok if algorithm == "unigram" else again
    )  # dropped merges are drawn by SentencePiece's rule from its own file
    check_samples(
        lambda i: tuple(drawn.sample("New York", alpha=0.3, seed=i).ids),
        lambda i: tuple(peer.encode("New York", enable_sampling=True, alpha=0.3, nbest_size=-1)),
        3000,
    )


@pytest.mark.peers
def test_usual_training(tmp_path):
    "Trained with Hugging Face's Metaspace the only texts with other ids are those that begin with a space or ▁, as the notes say."
    for algorithm, options in (("unigram", {}), ("char_bpe", dict(unk_piece="<unk>", fuse_unk=True))):
        tok = Tokenizer.train(
            LINES,
            algorithm=algorithm,
            vocab_size=140,
            pre_tokenizer=pretokenizers.Metaspace(),
            allowed_special=(),
            **options,
        )
        peer = sp().SentencePieceProcessor(
            model_file=str(write_sentencepiece(tok.parts, tmp_path / "x.model"))
        )
        strings = texts(algorithm, max(50, N // 10))
        assert all(s[:1] in (" ", "▁") for s in strings if tok.encode(s) != peer.encode(s))
        assert any("begins with ▁ or with a space" in note for note in sentencepiece_notes(tok.parts))
        assert tok.decode(tok.encode("the ☃ face")) == peer.decode(peer.encode("the ☃ face"))


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    [
        "derived/llama-2-legacy.tokenizer.json",
        "phi-3-mini/tokenizer.json",
        "t5-small/tokenizer.json",
        "barthez/tokenizer.json",
    ],
)
def test_tokenizer_json_as_model(name, shared_file, shared_data):
    "Tokenizers of the Hugging Face library that once were SentencePiece models become such models again."
    from subword_nb.formats.huggingface import read_hf

    parts = read_hf(shared_file(f"vocab/{name}"))
    tok, peer = (
        Tokenizer(**parts._replace(source=None, allowed_special=())._asdict()),
        sp().SentencePieceProcessor(model_proto=write_model_proto(proto_from_parts(parts))),
    )
    strings = [
        s
        for s in json.loads((shared_data / "golden" / "strings.json").read_text(encoding="utf-8"))
        if len(s) < 2000
    ]
    for s in strings:
        ours, theirs = tok.encode(s, add_special_tokens=False), peer.encode(s)
        assert ours == theirs or name[:2] == "t5" and Counter(ours) == Counter(theirs), (
            s
        )  # equally good splits of a run of dashes: sums in 32 bits there


# Changes, and what cannot be said


def small(**changes):
    "The proto of a small Unigram model."
    pieces = [
        Piece("<unk>", 0.0, UNKNOWN),
        Piece("<s>", 0.0, CONTROL),
        Piece("</s>", 0.0, CONTROL),
        Piece("▁", -3.0),
        *(Piece(c, -4.0 - k) for k, c in enumerate("hugs")),
        Piece("▁hug", -2.0),
        Piece("[x]", 0.0, USER_DEFINED),
    ]
    return ModelProto(pieces=changes.pop("pieces", pieces), **changes)


def test_changed_models_keep_fields_of_a_later_version():
    "Fields that nobody knows here stay in a model that is changed and written, but for those of its pieces."
    own, of_trainer = (
        b"\xc2\x3e\x03abc",
        b"\xc2\x3e\x02de",
    )  # field 1000 of the model, and of how it was trained
    proto = small(rest=[((), own), (("trainer_spec",), of_trainer), (("pieces", 3), b"\xc2\x3e\x01f")])
    parts = parts_from_proto(read_model_proto(write_model_proto(proto)))
    tok = Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())
    tok.add_tokens(["<mask>"], special=True)
    new = proto_from_parts(tok.parts._replace(source=parts.source))
    assert new.rest == [((), own), (("trainer_spec",), of_trainer)] or new.rest == [
        (("trainer_spec",), of_trainer),
        ((), own),
    ]
    again = read_model_proto(write_model_proto(new))
    assert again.rest == new.rest and again.pieces == new.pieces and again.shapes == new.shapes == b""


@pytest.mark.peers
def test_changed():
    "A tokenizer that was read and then changed is written with its changes; what else the file said stays."
    proto = small(
        trainer_spec={"model_prefix": "m", "num_threads": 3},
        normalizer_spec={"name": "mine"},
        self_test_data=[("hug", "▁hug")],
    )
    parts = parts_from_proto(proto)
    assert proto_from_parts(parts) is proto
    assert (
        sentencepiece_notes(parts) == []
        and len(sentencepiece_notes(parts_from_proto(proto, add_bos=True))) == 1
    )
    tok = Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())
    tok.add_tokens(["<mask>"], special=True)
    tok.add_tokens([AddedToken("<own>", special=False)])
    new = proto_from_parts(tok.parts._replace(source=proto))
    assert new.pieces[:-2] == proto.pieces
    assert new.pieces[-2:] == [Piece("<mask>", 0.0, CONTROL), Piece("<own>", 0.0, USER_DEFINED)]
    assert (
        new.trainer("model_prefix"),
        new.trainer("num_threads"),
        new.trainer("vocab_size"),
        new.normalizer("name"),
        new.self_test_data,
    ) == ("m", 3, 12, "mine", [])
    peer = sp().SentencePieceProcessor(model_proto=write_model_proto(new))
    assert peer.encode("hugs<own><mask>") == load(new).encode("hugs<own><mask>")
    plain = proto_from_parts(parts._replace(normalizer=None))
    assert not plain.normalizer("add_dummy_prefix") and not plain.normalizer("escape_whitespaces")
    assert sp().SentencePieceProcessor(model_proto=write_model_proto(plain)).encode("hug s") == Tokenizer(
        **parts._replace(normalizer=None, source=None, allowed_special=())._asdict()
    ).encode("hug s")


REFUSED = {
    "bytes": (dict(algorithm="bpe", vocab_size=300), "byte-level BPE"),
    "wordpiece": (dict(algorithm="wordpiece", vocab_size=90), "WordPiece"),
    "words": (dict(algorithm="wordlevel", vocab_size=40), "WordLevel"),
    "suffix": (
        dict(algorithm="char_bpe", vocab_size=150, end_of_word_suffix="</w>", pre_tokenizer="metaspace"),
        "end_of_word_suffix must .*got '</w>'",
    ),
    "dropout": (
        dict(algorithm="char_bpe", vocab_size=150, dropout=0.1, pre_tokenizer="metaspace"),
        r"dropout must .*got 0\.1",
    ),
    "penalty": (dict(algorithm="unigram", vocab_size=120, unk_penalty=5.0), r"unk_penalty must .*got 5\.0"),
    "splits": (
        dict(algorithm="unigram", vocab_size=120, pre_tokenizer="whitespace"),
        r"must have a place in a SentencePiece model, got Whitespace\(\)",
    ),
    "normalized_added": (
        dict(algorithm="unigram", vocab_size=120, normalizer=[normalizers.Prepend("▁"), "lowercase"]),
        "must have a place in a SentencePiece model, got Lowercase",
    ),
    "nfc": (
        dict(algorithm="unigram", vocab_size=120, normalizer="nfc"),
        "must have a place in a SentencePiece model, got NFC",
    ),
    "strip": (dict(algorithm="unigram", vocab_size=120, normalizer="strip"), "Strip alone"),
    "twice": (
        dict(algorithm="unigram", vocab_size=120, normalizer=SentencePieceNormalizer()),
        "must have a place in a SentencePiece model, got Prepend",
    ),
    "twice too": (
        dict(
            algorithm="unigram",
            vocab_size=120,
            normalizer=SentencePieceNormalizer(),
            pre_tokenizer=pretokenizers.Metaspace(),
        ),
        "must have a place in a SentencePiece model, got Metaspace",
    ),
    "unmarked": (
        dict(algorithm="unigram", vocab_size=120, pre_tokenizer="whitespace_split"),
        "WhitespaceSplit.. without ▁ for spaces",
    ),
    "mark": (
        dict(algorithm="unigram", vocab_size=120, pre_tokenizer=pretokenizers.Metaspace(replacement="_")),
        r"must have a place in a SentencePiece model, got Metaspace\('_'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    "What a file cannot say is an error that names it."
    options, message = REFUSED[name]
    tok = Tokenizer.train(LINES, **options)
    for function in (proto_from_parts, sentencepiece_notes, as_sentencepiece):
        with pytest.raises(ValueError, match=message):
            function(tok.parts)


STEPS = [
    "lowercase",
    "strip_accents",
    "nmt",
    normalizers.Strip(),
    normalizers.Strip(left=False),
    normalizers.Strip(right=False),
    normalizers.Prepend("▁"),
    normalizers.Replace(" ", "▁"),
    normalizers.Replace(" {2,}", " ", regex=True),
    normalizers.Replace(" {2,}", "▁", regex=True),
    normalizers.Replace("a", "b"),
    normalizers.Replace("\u00a0", " "),
    normalizers.Replace("▁", " "),
    normalizers.Replace(" ", "_"),
    normalizers.Replace("b", " c"),
    normalizers.Replace("_", ""),
    SentencePieceNormalizer(),
    SentencePieceNormalizer(add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False),
]
CUTS = [
    None,
    *(pretokenizers.Metaspace(prepend_scheme=s) for s in ("always", "never", "first")),
    pretokenizers.Metaspace(split=False),
    pretokenizers.Split("▁", "merged_with_next"),
    pretokenizers.WhitespaceSplit(),
]
CUTS += [pretokenizers.Sequence([a, b]) for a in CUTS[4:] for b in CUTS[1:] if a is not b]
LETTERS = sorted(set("abcdABÉéeİ▁\u00a0\t_ﬁfi1１ "))


def pipelines(rng, n, steps):
    "Tokenizers of any steps in any order that can be said in SentencePiece's terms, with their notes about texts, and what they are there."
    from subword_nb.pipeline.parts import Parts
    from subword_nb.unigram.model import Unigram

    model = Unigram(
        {p: i for i, p in enumerate(["<unk>", *LETTERS])},
        [-20.0] + [-1.0 - i / 64 for i in range(len(LETTERS))],
        unk_piece="<unk>",
    )
    for _ in range(n):
        norm = (
            [rng.choice(steps) for _ in range(rng.choice((0, 1, 1, 2, 3, 4)))]
            if rng.random() < 0.9
            else rng.choice(steps)
        )
        parts = Parts(
            model,
            pretokenizers.pretokenizer(rng.choice(CUTS)),
            None,
            ((AddedToken("<unk>"), 0),),
            None,
            normalizers.normalizer(norm),
        )
        try:
            notes = sentencepiece_notes(parts)
        except ValueError:
            continue
        yield (
            Tokenizer(**parts._replace(source=None, allowed_special=())._asdict()),
            Tokenizer(**as_sentencepiece(parts)._replace(source=None, allowed_special=())._asdict()),
            [n for n in notes if "32 bits" not in n and "own rules" not in n],
        )


def check_pipelines(seed, n, steps=STEPS):
    "Without a note all texts have the same ids; with notes, all that begin and end with letters and hold no ▁. How many have no note."
    rng, silent = fresh(seed), 0
    for here, there, notes in pipelines(rng, n, steps):
        silent += not notes
        for _ in range(25):
            s = "".join(rng.choices("abAÉéİ▁\u00a0\t_ﬁ１      ", k=rng.randrange(9)))
            if notes:
                s = "d" + s.replace("▁", "e").strip().strip("_") + "d"
            assert here.encode(s) == there.encode(s), (
                here.normalizer,
                here.pre_tokenizer,
                notes,
                s,
                here.tokenize(s),
                there.tokenize(s),
            )
    return silent


def test_pipelines():
    assert check_pipelines(0, 150, STEPS[3:])  # without those that are tried on every character


@pytest.mark.slow
def test_many_pipelines():
    assert check_pipelines(1, N) + check_pipelines(2, max(10, N // 20), [*STEPS, "nfkc"])


def test_notes_of_edges():
    "What SentencePiece does another way at the ends of a text is told, and only what it does."
    spaces, strip, runs = (
        normalizers.Replace(" ", "▁"),
        normalizers.Strip(),
        normalizers.Replace(" {2,}", " ", regex=True),
    )

    def notes(norm, pre=None):
        return [
            n
            for n in sentencepiece_notes(
                Tokenizer.train(
                    LINES, algorithm="unigram", vocab_size=120, normalizer=norm, pre_tokenizer=pre
                ).parts
            )
            if "SentencePiece" in n and "32 bits" not in n and "▁ is no piece" not in n
        ]

    assert notes([normalizers.Prepend("▁"), spaces]) == []
    assert notes([spaces], pretokenizers.Metaspace()) == [
        "a text that begins with ▁ or with a space gets one more in front in SentencePiece"
    ]
    assert notes([runs, spaces]) == [
        "spaces at the beginning and at the end of a text are dropped in SentencePiece",
        "▁ at the end of a text is dropped in SentencePiece",
    ]
    assert notes([runs, strip, normalizers.Prepend("▁"), spaces]) == [
        "of white space at the ends of a text, only spaces are dropped in SentencePiece",
        "▁ at the end of a text is dropped in SentencePiece",
    ]
    assert notes([runs, normalizers.Strip(left=False)], pretokenizers.Metaspace())[1:] == [
        "a text that begins with ▁ gets one more in front in SentencePiece",
        "▁ at the end of a text is dropped in SentencePiece",
    ]
    assert (
        notes(None, pretokenizers.Sequence([pretokenizers.WhitespaceSplit(), pretokenizers.Metaspace()]))[0]
        == "a word that begins with ▁ gets one more in front in SentencePiece"
    )


def test_merges_that_differ():
    "Merges that scores cannot stand for are refused with the piece; those that never come into play do not matter."
    from subword_nb.bpe.model import BPE
    from subword_nb.pipeline.parts import Parts

    ids = {p: i for i, p in enumerate(["<unk>", "a", "b", "c", "ab", "bc", "abc"])}

    def parts(merges, **options):
        return Parts(
            BPE(ids, merges, unk_piece="<unk>", fuse_unk=True, **options), pretokenizers.pretokenizer(None)
        )

    assert [
        p.score
        for p in proto_from_parts(parts([("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc")])).pieces[4:]
    ] == [-1.0, -2.0, -3.0]
    with pytest.raises(ValueError, match="merges must .*got no such merge"):
        proto_from_parts(parts([("a", "b"), ("b", "c"), ("a", "bc")]))
    with pytest.raises(ValueError, match="merges must .*got no such merge"):
        proto_from_parts(parts([("a", "b"), ("ab", "c")]))
    for token in ("ab", "c"):
        with pytest.raises(ValueError, match=f"special tokens must .*got '{token}'; choose another"):
            proto_from_parts(
                parts([("a", "b"), ("b", "c"), ("ab", "c")])._replace(
                    added_tokens=((AddedToken(token), ids[token]),)
                )
            )
    with pytest.raises(ValueError, match="is found whole"):
        proto_from_parts(
            Parts(
                BPE(
                    {**ids, "cab ": 7},
                    [("a", "b"), ("b", "c"), ("ab", "c")],
                    unk_piece="<unk>",
                    fuse_unk=True,
                    ignore_merges=True,
                ),
                pretokenizers.pretokenizer(None),
            )
        )
    with pytest.raises(ValueError, match="ids must .*got no piece for 7"):
        proto_from_parts(Parts(BPE({**ids, "d": 8}, [], unk_piece="<unk>"), pretokenizers.pretokenizer(None)))


def test_notes_and_edges():
    "Every thing that is lost has a sentence; the pieces around a text are named in the file."
    tok = Tokenizer.train(
        LINES,
        algorithm="char_bpe",
        vocab_size=160,
        pre_tokenizer=pretokenizers.Metaspace(),
        unk_piece="<unk>",
        fuse_unk=False,
        special_tokens=["<unk>", "[B]", "[E]", "<pad>"],
    )
    tok.post_processor = TemplateProcessing("[B] $A [E]", special_tokens=[("[B]", 1), ("[E]", 2)])
    tok.add_tokens([AddedToken("<own>", special=False, lstrip=True)])
    notes = " ".join(sentencepiece_notes(tok.parts))
    for part in (
        "begins with ▁",
        "in a row",
        "control pieces",
        "the text after '<own>'",
        "such as '<own>'",
        "add_bos",
    ):
        assert part in notes
    proto = proto_from_parts(tok.parts)
    assert [
        proto.trainer(k)
        for k in (
            "bos_piece",
            "bos_id",
            "eos_piece",
            "eos_id",
            "pad_id",
            "control_symbols",
            "user_defined_symbols",
        )
    ] == ["[B]", 1, "[E]", 2, 3, [], ["<own>"]]
    around = parts_from_proto(proto, add_bos=True, add_eos=True)
    assert Tokenizer(**around._replace(source=None, allowed_special=())._asdict()).tokenize("the")[::2] == [
        "[B]",
        "[E]",
    ]


def test_errors_name_the_file(tmp_path):
    "A file that is no model says so under its name."
    path = tmp_path / "bad.model"
    for data, message in [
        (b"", "UNKNOWN"),
        (b"\n\xff", "byte 1"),
        (b"\n\x05ab", "byte 0"),
        (write_model_proto(small(pieces=[Piece("a"), Piece("a")])), "a"),
        (write_model_proto(small(trainer_spec={"byte_fallback": True})), "256"),
        (
            write_model_proto(
                small(
                    pieces=[
                        Piece("<unk>", 0.0, UNKNOWN),
                        Piece("<0x41>", 0.0, BYTE),
                        Piece("a", -1.0, NORMAL),
                    ]
                )
            ),
            "byte",
        ),
        (write_model_proto(small(normalizer_spec={"precompiled_charsmap": b"\x04\0\0\0"})), "charsmap"),
    ]:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message) as caught:
            read_sentencepiece(path)
        assert str(caught.value).startswith(str(path))
    with pytest.raises(FileNotFoundError):
        read_sentencepiece(tmp_path / "none.model")


def mutated(data, rng):
    "A file with a few bytes changed, cut off, doubled or left out."
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = bytes(
                rng.choice((0, 255, 128, 10, rng.randrange(256))) for _ in range(rng.randrange(1, 12))
            )
        elif kind == 3:
            del data[at : at + rng.randrange(1, 9)]
        elif data:
            data[at:at] = data[max(0, at - 9) : at]
    return bytes(data)


def check_mutations(data, n, seed):
    "A damaged file is refused, or read and used without a crash."
    rng = fresh(seed)
    for _ in range(n):
        try:
            tok = load(read_model_proto(mutated(data, rng)))
        except ValueError:
            continue
        for s in ("hugs the [x]", " a\t☃", "▁▁"):
            try:
                tok.decode(tok.encode(s))
            except ValueError as e:
                assert "charsmap" in str(e) or "precompiled" in str(e), e


def test_mutations():
    check_mutations(
        write_model_proto(
            small(normalizer_spec={"precompiled_charsmap": build_charsmap({"A": "a", "ab": "x"})})
        ),
        300,
        1,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "transformers-fixtures/test_sentencepiece_bpe_char.model",
        "transformers-fixtures/test_sentencepiece_bpe.model",
        "sentencepiece/test_model.model",
    ],
)
def test_many_mutations(name, shared_file):
    check_mutations(shared_file(f"vocab/{name}").read_bytes(), max(1, N // 10), name)


@pytest.mark.peers
def test_a_model_splits_words_as_its_published_tokenizer(shared_data, hf):
    "The words of a text, and where they are, from the .model alone."
    P, seen = hf.pre_tokenizers, 0
    words, spaces = (
        P.Sequence([P.WhitespaceSplit(), P.Metaspace("▁", "always", True)]),
        {front: P.Metaspace("▁", "always" if front else "never", True) for front in (True, False)},
    )
    for path in sorted([*shared_data.glob("vocab/*/*.model"), *shared_data.glob("vocab/*/*.model.v1")]):
        if path.parent.name == "llama-3":
            continue  # ranks
        tok = Tokenizer.load(path)
        front, extra = tok.normalizer.add_dummy_prefix, tok.normalizer.remove_extra_whitespaces
        theirs = words if extra else spaces[front]
        for text in ("Hello  my friend, it's 1999", " a\tb\n c ", "é🙂 ñ", ""):
            expected = theirs.pre_tokenize_str(text)
            if extra and not front and expected:
                expected[0] = expected[0][0][1:], expected[0][1]
            assert [(p, (a, b)) for p, a, b in tok.pre_tokenizer.split(text)] == expected, (path, text)
        assert pickle.loads(pickle.dumps(tok.pre_tokenizer)) == tok.pre_tokenizer
        seen += 1
    assert seen > 8


@pytest.mark.peers
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_characters_as_tokenizer_json(tmp_path, hf, byte_fallback):
    "A CHAR model is BPE without merges there: a run of unknown characters is one piece, or the bytes of each."
    proto, rng = small(), fresh(f"characters {byte_fallback}")
    pieces = [p for p in proto.pieces if len(p.piece) == 1 or p.type in (UNKNOWN, CONTROL)]
    if byte_fallback:
        pieces += [Piece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    trainer = {"model_type": 4, "byte_fallback": byte_fallback}
    tok = Tokenizer(**parts_from_proto(small(pieces=pieces, trainer_spec=trainer))._asdict())
    path, runs = tok.save(tmp_path / "tokenizer.json"), 0
    again, theirs = Tokenizer.load(path), hf.Tokenizer.from_file(str(path))
    for _ in range(N):
        line = "".join(rng.choices("hugsxé中 \n", k=rng.randrange(12)))
        ids = tok.encode(line)
        assert again.encode(line) == ids == theirs.encode(line).ids, line
        runs += ids.count(0)
    assert bool(runs) != byte_fallback


@pytest.mark.peers
def test_the_words_of_t5_are_those_of_its_tokenizer_json(shared_file, hf):
    published = hf.Tokenizer.from_file(str(shared_file("vocab/t5-small/tokenizer.json"))).pre_tokenizer
    tok = Tokenizer.load(shared_file("vocab/t5-small/spiece.model"))
    for text in ("This is  the Hugging Face Course.", " tabs\tand\nlines "):
        assert [(p, (a, b)) for p, a, b in tok.pre_tokenizer.split(text)] == published.pre_tokenize_str(text)


def test_a_named_split_trains_a_model_that_is_saved():
    tok = Tokenizer.train(
        ["hug hugs pug puns bun"] * 9, algorithm="unigram", vocab_size=30, pre_tokenizer="t5"
    )
    assert tok.decode(tok.encode("hugs pun")) == "hugs pun" and tok.tokenize("hug")[0].startswith("▁")
