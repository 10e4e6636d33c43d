"What a file contains is stored after the first reading: the next one gives an equal tokenizer, and checks what it must."

import os
import pickle
import random

import numpy as np
import pytest

from subword_nb.bpe.model import BPE, Rules
from subword_nb.core.limits import limited
from subword_nb.core.table_cache import packed, tables_folder
from subword_nb.formats.huggingface import read_hf
from subword_nb.formats.sentencepiece import read_sentencepiece
from subword_nb.pipeline.parts import parts_from_bytes, parts_to_bytes
from subword_nb.tokenizer.tokenizer import Tokenizer

ALGORITHMS = ["bpe", "char_bpe", "wordpiece", "unigram"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SUBWORD_NB_TABLES", raising=False)
    monkeypatch.setattr("subword_nb.core.table_cache.SMALL", 0)


def words(n, seed=0):
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdeäß語 ", k=rng.randrange(1, 9))) for _ in range(n)]


def trained(algorithm):
    options = {"unk_piece": "<unk>"} if algorithm == "char_bpe" else {}
    return Tokenizer.train(
        words(400), algorithm=algorithm, vocab_size=330, special_tokens=["<s>"], threads=1, **options
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", [".json", ".model"])
def test_second_reading_is_equal(algorithm, kind, tmp_path):
    if kind == ".model" and algorithm in ("bpe", "wordpiece"):
        return
    options = {"pre_tokenizer": "metaspace", "normalizer": None} if kind == ".model" else {}
    tok = Tokenizer.train(words(400), algorithm=algorithm, vocab_size=330, unk_piece="<unk>", **options)
    path = tmp_path / f"tok{kind}"
    tok.save(path)
    first, second = Tokenizer.load(path), Tokenizer.load(path)
    assert packed(first.model, "piece2id") is None and packed(second.model, "piece2id") is not None
    texts = words(300, seed=1)
    assert second.encode_batch(texts).tolist() == first.encode_batch(texts).tolist()
    assert [second.encode(text) for text in texts] == [first.encode(text) for text in texts]
    assert second == first and second.parts.source == first.parts.source
    assert second.piece2id == first.piece2id and second.id2piece == first.id2piece
    assert second.decode(second.encode("abcd")) == first.decode(first.encode("abcd"))
    assert second.tokenize("äbc") == first.tokenize("äbc") and repr(second) == repr(first)
    assert second.inspect() == first.inspect()
    copied = pickle.loads(pickle.dumps(Tokenizer.load(path)))
    assert copied == first and copied.encode(texts[0]) == first.encode(texts[0])


def test_a_changed_file_is_read(tmp_path):
    path = tmp_path / "tokenizer.json"
    trained("bpe").save(path)
    before = Tokenizer.load(path)
    path.write_text(path.read_text(encoding="utf-8").replace('"<s>"', '"<t>"'), encoding="utf-8")
    assert Tokenizer.load(path) != before and "<t>" in Tokenizer.load(path).piece2id


def test_a_damaged_store_is_read_anew(tmp_path):
    path = tmp_path / "tokenizer.json"
    trained("unigram").save(path)
    first = Tokenizer.load(path)
    for stored in tables_folder().iterdir():
        stored.write_bytes(stored.read_bytes()[:-1] + b"?")
    assert Tokenizer.load(path) == first


def test_limits_and_warnings_hold_the_second_time(tmp_path):
    path = tmp_path / "tokenizer.json"
    trained("bpe").save(path)
    Tokenizer.load(path)
    for _ in range(2):
        with limited(pieces=10), pytest.raises(ValueError, match="330 pieces"):
            Tokenizer.load(path)
        with limited(piece_chars=1), pytest.raises(ValueError, match="characters"):
            Tokenizer.load(path)
    text = path.read_text(encoding="utf-8").replace('"model": {', '"model": {\n  "unknown_key": 1,', 1)
    path.write_text(text, encoding="utf-8")
    for _ in range(2):
        with pytest.warns(UserWarning, match="unknown_key"):
            read_hf(path)
    model = tmp_path / "tok.model"
    Tokenizer.train(words(400), algorithm="unigram", vocab_size=60, pre_tokenizer="metaspace").save(model)
    read_sentencepiece(model)
    for _ in range(2):
        with limited(pieces=10), pytest.raises(ValueError, match=r"tok\.model.* pieces"):
            read_sentencepiece(model)


def test_nothing_is_stored_if_it_is_switched_off(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    trained("bpe").save(path)
    monkeypatch.setenv("SUBWORD_NB_TABLES", "none")
    assert packed(Tokenizer.load(path).model, "piece2id") is None
    assert packed(Tokenizer.load(path).model, "piece2id") is None
    assert not (tmp_path / "cache").exists()


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_only_this_package_is_in_the_store(tmp_path):
    for value in (Harmful(str(tmp_path / "made")), eval, pickle.loads, np.array):
        assert parts_from_bytes(pickle.dumps(value)) is None
    assert not (tmp_path / "made").exists()
    assert parts_to_bytes([lambda: 0]) is None


def test_packed_attributes_of_every_form():
    letters = {c: i for i, c in enumerate("abc\n")} | {"ab": 7, "a\nb": 9, "": 8}
    for merges in ([], [("a", "b")], [("a\n", "b"), ("a", "b")], Rules("a b")):
        model = BPE({**letters, "a\n": 10}, merges)
        again = parts_from_bytes(parts_to_bytes(model))
        assert again.n_rules == model.n_rules
        assert (again.piece2id, list(again.merges)) == (model.piece2id, list(model.merges))
        assert again == model and again.encode("abc") == model.encode("abc")
