"""Unigram's best splits against SentencePiece and Hugging Face, with real vocabularies and with random ones."""
import json
import random
import struct

import pytest

from subword_nb.lattice import viterbi
from subword_nb.unigram_encode import part_ids, unigram_encode, unigram_encode_ref, unigram_model

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # the kinds of pieces in a SentencePiece model


def fields(data: bytes):
    "The fields of a protocol buffer message: (number, value), bytes for what has a length."
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
        else:
            size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
            yield number, data[at:at + size]
            at += size


def read_pieces(data: bytes) -> list:
    "(piece, score, kind) of a SentencePiece model, in the order of ids."
    pieces = []
    for number, value in fields(data):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0], piece.get(3, NORMAL)))
    return pieces


def model_of(pieces: list):
    "The Unigram model of a SentencePiece file."
    kinds = {kind: [p for p, _, k in pieces if k == kind] for kind in range(1, 7)}
    special = {*kinds[UNKNOWN], *kinds[CONTROL], *kinds[UNUSED], *kinds[BYTE]}
    scores = [(p, 0.0 if p in special or p in kinds[USER_DEFINED] else s) for p, s, _ in pieces]
    return unigram_model(scores, unk_piece=kinds[UNKNOWN][0], control=sorted(special), user_defined=kinds[USER_DEFINED])


def lines_of(shared_file, most: int) -> list:
    "Strings of all kinds, and lines of an English book."
    strings = json.loads(shared_file("golden/strings.json").read_text())
    return strings + shared_file("corpus/english_small.txt").read_text().split("\n")[:most]


@pytest.mark.peers
@pytest.mark.parametrize("name", ["xlnet-base-cased/spiece.model", "t5-small/spiece.model"])
def test_best_splits_are_those_of_sentencepiece(shared_file, name):
    spm = pytest.importorskip("sentencepiece")
    path = shared_file(f"vocab/{name}")
    sp = spm.SentencePieceProcessor(model_file=str(path))
    model = model_of(read_pieces(path.read_bytes()))
    assert list(model.piece2id) == [sp.id_to_piece(i) for i in range(len(sp))]
    score_of = lambda parts: sum(model.table.get(p, model.unk_score) if p in model.table else model.unk_score * len(p) for p in parts)
    ties = 0
    for text in lines_of(shared_file, 1500):
        normal = sp.normalize(text)
        theirs = sp.encode(text, out_type=str)
        assert "".join(theirs) == normal
        ours = [node.piece for node in viterbi(model.lattice(normal))[0]]
        assert abs(score_of(ours) - score_of(theirs)) < 1e-6, text
        ids = model.encode(normal)
        assert ids == part_ids(model, ours)
        if ids != sp.encode(text):
            ties += 1  # equal scores, told apart by rounding in 32 bits
    assert ties <= 3, ties


@pytest.mark.parametrize("name", ["xlnet-base-cased", "t5-small"])
def test_the_walk_is_the_lattice_on_real_vocabularies(shared_file, name):
    model = model_of(read_pieces(shared_file(f"vocab/{name}/spiece.model").read_bytes()))
    for text in lines_of(shared_file, 100):
        text = "▁" + text.replace(" ", "▁")
        assert unigram_encode(model, text) == unigram_encode_ref(model, text)


@pytest.mark.peers
def test_random_models_against_hugging_face():
    tokenizers = pytest.importorskip("tokenizers")
    rng = random.Random(0)
    for _ in range(1500):
        pieces = sorted({"".join(rng.choices("abcé", k=rng.randrange(1, 4))) for _ in range(rng.randrange(1, 15))})
        scored = [("<unk>", 0.0), *((p, -rng.randrange(1, 400) / 37) for p in pieces)]
        spells = rng.random() < 0.5
        if spells:
            scored += [(f"<0x{b:02X}>", -99.0) for b in range(256)]
        theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(scored, 0, spells))
        ours = unigram_model(scored, unk_piece="<unk>", byte_fallback=spells)
        for _ in range(5):
            text = "".join(rng.choices("abcéx你", weights=(5, 5, 5, 2, 1, 1), k=rng.randrange(1, 12)))
            assert ours.encode(text) == theirs.encode(text).ids, (scored, text)


def test_a_megabyte_without_a_space():
    model = unigram_model([("<unk>", 0.0), ("a", -2.0), ("aa", -3.0), ("ab", -3.5), ("b", -2.5)], unk_piece="<unk>", control=["<unk>"])
    rng = random.Random(1)
    for text in ("a" * 1_000_000, "".join(rng.choices("abx", k=1_000_000))):
        ids = model.encode(text)
        assert sum(len(p) for p in (list(model.piece2id)[i] for i in ids) if p != "<unk>") == len(text) - text.count("x")


def test_paths_of_a_long_text_neither_overflow_nor_recurse():
    model = unigram_model([("<unk>", 0.0), ("a", -700.0), ("aa", -1.0), ("b", -0.001)], unk_piece="<unk>", control=["<unk>"])
    from subword_nb.lattice import backward, forward, nbest
    lattice = model.lattice("aab" * 30_000)
    ahead, back = forward(lattice), backward(lattice)
    assert ahead[-1] == pytest.approx(back[0]) and ahead[-1] == pytest.approx(-1.001 * 30_000)
    best = nbest(lattice, 3)
    assert [len(path) for path, _ in best] == [60_000, 60_001, 60_001]


@pytest.mark.peers
def test_the_ten_best_are_those_of_sentencepiece(shared_file):
    spm = pytest.importorskip("sentencepiece")
    from subword_nb.lattice import nbest
    path = shared_file("vocab/t5-small/spiece.model")
    sp = spm.SentencePieceProcessor(model_file=str(path))
    model = model_of(read_pieces(path.read_bytes()))
    for text in ["unbelievable", "Hello world", "tokenization", "internationalization", "New York", "aaaaaa"]:
        ours = nbest(model.lattice(sp.normalize(text)), 10)
        theirs = [sum(model.table[p] for p in pieces) for pieces in sp.nbest_encode_as_pieces(text, 10)]
        assert [score for _, score in ours] == pytest.approx(theirs, abs=1e-4), text
