"What a file contains is stored after the first reading: the next one gives an equal tokenizer, and checks what it must."

import copy
import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

from subword_nb.bpe.model import BPE, Rules
from subword_nb.core.limits import limited
from subword_nb.core.table_cache import packed, tables_folder
from subword_nb.formats.huggingface import read_hf
from subword_nb.formats.sentencepiece import read_sentencepiece
from subword_nb.pipeline.parts import parts_from_bytes, parts_to_bytes
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.unigram.model import Unigram

ALGORITHMS = ["bpe", "char_bpe", "wordpiece", "unigram"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SUBWORD_NB_TABLES", raising=False)
    monkeypatch.setattr("subword_nb.core.table_cache.SMALL", 0)


AGAIN = """
import sys
from subword_nb.core import table_cache
table_cache.SMALL = 0
from subword_nb import Tokenizer
assert Tokenizer.load(sys.argv[1]).source.pieces
print(*sorted({"dataclasses", "numbers", *sys.argv[2:]} & sys.modules.keys()))
"""
OF_CONVERSIONS = ["subword_nb.text.normalizers", "subword_nb.text.charsmap", "subword_nb.text.unicode_forms"]


def test_second_reading_imports_no_page_of_conversions(tmp_path):
    path = tmp_path / "tok.model"
    options = {"pre_tokenizer": "metaspace", "normalizer": None, "unk_piece": "<unk>"}
    Tokenizer.train(words(400), algorithm="char_bpe", vocab_size=330, **options).save(path)
    Tokenizer.load(path)
    command = [sys.executable, "-c", AGAIN, str(path), *OF_CONVERSIONS]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert found[1].split() == []


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
    for make in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        fresh = Tokenizer.load(path)
        assert make(fresh.model) == first.model and make(fresh.parts) == fresh.parts
        again = make(Tokenizer.load(path))
        assert again == first and again.encode(texts[0]) == first.encode(texts[0])


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


def call_of(module, name, argument):
    "A pickle that calls what a module has under a name."
    text = [
        b"\x8c" + bytes([len(word)]) + word for word in (module.encode(), name.encode(), argument.encode())
    ]
    return b"\x80\x05" + text[0] + text[1] + b"\x93" + text[2] + b"\x85R."


def test_only_this_package_is_in_the_store(tmp_path):
    made = str(tmp_path / "made")
    assert pickle.loads(call_of("os", "mkdir", made + "1")) is None and os.path.exists(made + "1")
    for value in (Harmful(made), eval, pickle.loads, np.array):
        assert parts_from_bytes(pickle.dumps(value)) is None
    for module, name in [
        ("os", "mkdir"),
        ("subword_nb.core.table_cache", "os.mkdir"),
        ("subword_nb.formats.huggingface", "os.mkdir"),
        ("subword_nb.text.pretokenizers", "Callable"),
        ("subword_nb.text.pretokenizers", "function_at"),
        ("subword_nb.core.files", "write_atomically"),
        ("subword_nb.pipeline.parts", "io"),
    ]:
        assert parts_from_bytes(call_of(module, name, made)) is None
    assert not os.path.exists(made)
    assert parts_from_bytes(call_of("subword_nb.pipeline.parts", "_restored", made)) is None
    assert parts_to_bytes([lambda: 0]) is None


def test_tables_are_those_of_the_model_that_asks(tmp_path):
    "A model that was changed in place stores nothing that another one finds."
    pieces = {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "ab": 4}
    scores = [0.0, -3.0, -2.0, -2.0, -5.0]
    text = "ab " * 200_000

    def ids(model):
        return Tokenizer(model, pre_tokenizer="metaspace").encode_array(text)

    changed = Unigram(dict(pieces), list(scores), unk_piece="<unk>")
    changed.scores[4] = -3.5
    joined = Unigram(dict(pieces), [*scores[:4], -3.5], unk_piece="<unk>")
    assert ids(changed).tolist()[:3] == [1, 2, 3] and ids(joined).tolist()[:2] == [1, 4]
    stored = parts_from_bytes(parts_to_bytes(joined))
    stored.scores[4] = -5.0
    assert ids(stored).tolist()[:3] == [1, 2, 3] and ids(joined).tolist()[:2] == [1, 4]


def test_added_tokens_of_ones_own_are_checked(tmp_path):
    path = tmp_path / "tokenizer.json"
    trained("bpe").save(path)
    for _ in range(2):
        tok = Tokenizer.load(path)
        for wrong in (-5, 1.0, 1 << 40):
            with pytest.raises(ValueError, match="must be"):
                Tokenizer(tok.model, added_tokens=[(AddedToken("<x>"), wrong)])


def test_packed_attributes_of_every_form():
    letters = {c: i for i, c in enumerate("abc\n")} | {"ab": 7, "a\nb": 9, "": 8}
    for merges in ([], [("a", "b")], [("a\n", "b"), ("a", "b")], Rules("a b")):
        model = BPE({**letters, "a\n": 10}, merges)
        again = parts_from_bytes(parts_to_bytes(model))
        assert again.n_rules == model.n_rules
        assert (again.piece2id, list(again.merges)) == (model.piece2id, list(model.merges))
        assert again == model and again.encode("abc") == model.encode("abc")


def test_a_template_is_stored():
    "A component with a dictionary, as most files have one, does not keep a tokenizer from being stored."
    tok = Tokenizer.train({"hug": 2, "hugs": 1}, vocab_size=260, special_tokens=["<s>"])
    tok.post_processor = TemplateProcessing("<s> $A", special_tokens=[("<s>", tok.piece2id["<s>"])])
    assert parts_from_bytes(parts_to_bytes(tok.parts)).post_processor == tok.post_processor
