"""Unigram's best splits against SentencePiece and Hugging Face, with real vocabularies and with random ones."""
import json
import random

import pytest
from peers import sp_loaded

from subword_nb.lattice import backward, forward, nbest, viterbi
from subword_nb.sentencepiece_wire import BYTE, CONTROL, NORMAL, UNIGRAM, UNKNOWN, UNUSED, USER_DEFINED, ModelProto, Piece, read_model_proto
from subword_nb.unigram_encode import part_ids, unigram_encode, unigram_encode_ref, unigram_model


def model_of(pieces: list, byte_fallback: bool = False):
    "The Unigram model of a SentencePiece file."
    kinds = {kind: [p for p, _, k in pieces if k == kind] for kind in range(1, 7)}
    special = {*kinds[UNKNOWN], *kinds[CONTROL], *kinds[UNUSED], *kinds[BYTE]}
    scores = [(p, 0.0 if p in special or p in kinds[USER_DEFINED] else s) for p, s, _ in pieces]
    return unigram_model(scores, unk_piece=kinds[UNKNOWN][0], byte_fallback=byte_fallback, control=sorted(special), user_defined=kinds[USER_DEFINED])


def sentencepiece_model(spm, pieces: list, byte_fallback: bool = False):
    "A Unigram model of (piece, score, kind) in SentencePiece that changes nothing in a text before it is split."
    trainer = {"model_type": UNIGRAM, "byte_fallback": byte_fallback, "unk_id": 0, "bos_id": -1, "eos_id": -1, "pad_id": -1}
    normalizer = {"name": "identity", "add_dummy_prefix": False, "remove_extra_whitespaces": False, "escape_whitespaces": False}
    return sp_loaded(spm, ModelProto([Piece(*p) for p in pieces], trainer, normalizer))


def lines_of(shared_file, most: int) -> list:
    "Strings of all kinds, and lines of an English book."
    strings = json.loads(shared_file("golden/strings.json").read_text())
    return strings + shared_file("corpus/english_small.txt").read_text().split("\n")[:most]


@pytest.mark.peers
@pytest.mark.parametrize("name", [
    "xlnet-base-cased/spiece.model", "t5-small/spiece.model", "tf-text/fast_sentencepiece.model", "chatglm-6b/ice_text.model",
    "sentencepiece/test_model.model", "sentencepiece/test_ja_model.model", "transformers-fixtures/test_sentencepiece_with_bytefallback.model"])
def test_best_splits_are_those_of_sentencepiece(shared_file, name):
    "The score of a split is the sum, in 64 bits, of the scores in use: of ours and of theirs alike."
    spm = pytest.importorskip("sentencepiece")
    path = shared_file(f"vocab/{name}")
    sp = spm.SentencePieceProcessor(model_file=str(path))
    pieces = read_model_proto(path.read_bytes()).pieces
    model = model_of(pieces, any(kind == BYTE for *_, kind in pieces))
    assert list(model.piece2id) == [sp.id_to_piece(i) for i in range(len(sp))]
    score_of = lambda parts: sum(model.table[p] if p in model.table else model.unk_score * len(p) for p in parts)
    ties = 0
    for text in lines_of(shared_file, 1500):
        normal, theirs, their_ids = sp.normalize(text), sp.encode(text, out_type=str), sp.encode(text)
        ours = [node.piece for node in viterbi(model.lattice(normal))[0]]
        ids = model.encode(normal)
        assert ids == part_ids(model, ours)
        if "".join(theirs) == normal:
            assert abs(score_of(ours) - score_of(theirs)) < 1e-6, text
            ties += ids != their_ids  # equal scores, told apart by rounding in 32 bits
        else:  # it spells bytes
            assert ids == their_ids, text
    assert ties <= 2, ties


@pytest.mark.parametrize("name", ["xlnet-base-cased", "t5-small"])
def test_the_walk_is_the_lattice_on_real_vocabularies(shared_file, name):
    model = model_of(read_model_proto(shared_file(f"vocab/{name}/spiece.model").read_bytes()).pieces)
    for text in lines_of(shared_file, 100):
        text = "▁" + text.replace(" ", "▁")
        assert unigram_encode(model, text) == unigram_encode_ref(model, text)


@pytest.mark.peers
@pytest.mark.parametrize("kinds", ["normal", "unused", "user_defined", "bytes"])
def test_random_models_against_sentencepiece(kinds):
    "Scores are multiples of a quarter, which are exact in 32 bits too: the same ids, ties included."
    spm = pytest.importorskip("sentencepiece")
    rng, unknowns, fused = random.Random(len(kinds)), 0, 0
    for _ in range(600):
        spelled = sorted({"".join(rng.choices("abcé", weights=(5, 5, 3, 1), k=rng.randrange(1, 5))) for _ in range(rng.randrange(1, 15))})
        pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL)] + [(p, -rng.randrange(1, 30) / 4, NORMAL) for p in spelled]
        if kinds == "bytes":
            pieces += [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
        elif kinds != "normal":
            chosen = rng.sample(spelled, rng.randrange(1, 3) if len(spelled) > 2 else 0)
            pieces = [(p, s, (UNUSED if kinds == "unused" else USER_DEFINED) if p in chosen else k) for p, s, k in pieces]
        sp = sentencepiece_model(spm, pieces, kinds == "bytes")
        model = model_of(pieces, kinds == "bytes")
        for _ in range(6):
            text = "".join(rng.choices(["a", "b", "c", "é", "x", "你", "<s>", "<unk>", "<0x41>"], weights=(8, 8, 6, 3, 2, 1, .3, .3, .3), k=rng.randrange(1, 12)))
            assert model.encode(text) == sp.encode(text), (pieces, text)
            parts = [node.piece for node in viterbi(model.lattice(text))[0]]
            unknowns += 0 in sp.encode(text)
            fused += any(a not in model.known and b not in model.known for a, b in zip(parts, parts[1:]))
    assert unknowns > 500 or kinds == "bytes"
    assert fused > 100


@pytest.mark.peers
def test_user_defined_pieces_score_a_tenth_per_byte_after_the_first():
    "Where a competing piece begins to win tells the score that SentencePiece gives to a user-defined piece."
    spm = pytest.importorskip("sentencepiece")
    for piece in ("zz", "zzzzzzzzzz", "éé", "漢字漢字"):
        for top in (-1.0, -8.0):
            wins = []
            for step in (-0.01, 0.01):
                rival = top + 0.1 * (len(piece.encode()) - 1) + step
                pieces = [("<unk>", 0.0, UNKNOWN), ("a", top, NORMAL), ("b", -500.0, NORMAL), (piece, -7.0, USER_DEFINED), (piece + "a", rival, NORMAL)]
                sp = sentencepiece_model(spm, pieces)
                wins.append(len(sp.encode(piece + "a")) == 1)
                if rival <= 0:
                    assert model_of(pieces).encode(piece + "a") == sp.encode(piece + "a")
            assert wins == [False, True]


@pytest.mark.peers
def test_ties_unknowns_and_missing_bytes_against_hugging_face():
    "Scores are multiples of a half; texts spell special pieces; some byte pieces are missing."
    tokenizers = pytest.importorskip("tokenizers")
    rng, ties = random.Random(3), 0
    for _ in range(1500):
        pieces = sorted({"".join(rng.choices("abé", weights=(4, 4, 1), k=rng.randrange(1, 5))) for _ in range(rng.randrange(1, 15))})
        scored = [("<unk>", rng.choice([0.0, -9.0])), *((p, -rng.randrange(1, 5) / 2) for p in pieces)]
        spells = rng.random() < 0.5
        if spells:
            missing = rng.choice([b"", b"x", "é".encode()])
            scored += [(f"<0x{b:02X}>", -5.0) for b in range(256) if b not in missing]
        theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(scored, 0, spells))
        ours = unigram_model(scored, unk_piece="<unk>", byte_fallback=spells)
        for _ in range(5):
            text = "".join(rng.choices(["a", "b", "é", "x", "<unk>", "<0x61>"], weights=(5, 5, 2, 2, .5, .3), k=rng.randrange(1, 10)))
            assert ours.encode(text) == theirs.encode(text).ids, (scored, text)
            scores = [score for _, score in nbest(ours.lattice(text), 2)]
            ties += len(scores) == 2 and scores[0] == scores[1]
    assert ties > 300


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
    lattice = model.lattice("aab" * 30_000)
    ahead, back = forward(lattice), backward(lattice)
    assert ahead[-1] == pytest.approx(back[0]) and ahead[-1] == pytest.approx(-1.001 * 30_000)
    best = nbest(lattice, 3)
    assert [len(path) for path, _ in best] == [60_000, 60_001, 60_001]


@pytest.mark.peers
def test_the_ten_best_are_those_of_sentencepiece(shared_file):
    spm = pytest.importorskip("sentencepiece")
    path = shared_file("vocab/t5-small/spiece.model")
    sp = spm.SentencePieceProcessor(model_file=str(path))
    model = model_of(read_model_proto(path.read_bytes()).pieces)
    for text in ["unbelievable", "Hello world", "tokenization", "internationalization", "New York", "aaaaaa"]:
        ours = nbest(model.lattice(sp.normalize(text)), 10)
        theirs = [sum(model.table[p] for p in pieces) for pieces in sp.nbest_encode_as_pieces(text, 10)]
        assert [score for _, score in ours] == pytest.approx(theirs, abs=1e-4), text
