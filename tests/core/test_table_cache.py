"""The same ids whether tables are computed, stored, damaged, switched off, or written by several processes at once."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from subword_nb import Tokenizer, models, pre_tokenizers
from subword_nb.bpe.span_encoder import BPESpanEncoder
from subword_nb.core import native, table_cache
from subword_nb.core.table_cache import clear_tables, stored_tables, tables_folder

TEXTS = ["hug", "pug", "pun", "bun", "hugs", "été", "你好", "naïve", "x\ny"]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    "An empty cache folder, in which tables of any size are stored."
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path))
    monkeypatch.setenv("SUBWORD_NB_TABLES", "")
    monkeypatch.setattr(table_cache, "SMALL", 0)
    return tmp_path / "subword_nb" / "tables"


def text_of(rng):
    return " ".join(rng.choices(TEXTS, k=40_000))


KEPT = ("pre_tokenizer", "decoder", "added_tokens", "post_processor", "normalizer")


def trained(algorithm, rng):
    sizes = {"unigram": 40, "wordpiece": 34, "bpe": 280, "char_bpe": 31}
    words = [" ".join(rng.choices(TEXTS, k=6)) for _ in range(200)]
    pre = {"pre_tokenizer": pre_tokenizers.Metaspace()} if algorithm == "char_bpe" else {}
    tok = Tokenizer.train(words, algorithm=algorithm, vocab_size=sizes[algorithm], progress=False, **pre)
    return lambda: Tokenizer(tok.model, **{k: v for k, v in tok.parts._asdict().items() if k in KEPT})


def sentencepiece(tmp_path, rng):
    "A model of Llama's kind: BPE with scores, from a file."
    words = [" ".join(rng.choices(TEXTS, k=6)) for _ in range(200)]
    tok = Tokenizer.train(
        words,
        algorithm="char_bpe",
        vocab_size=41,
        normalizer=None,
        pre_tokenizer=pre_tokenizers.Metaspace(),
        progress=False,
    )
    path = tmp_path / "tokenizer.model"
    with pytest.warns(UserWarning, match="tokenizer.model"):
        tok.save(path)
    return lambda: Tokenizer.load(path)


def check_all(make, folder, text, monkeypatch):
    "The ids of new tokenizers, with the cache in every state."
    if native.library() is None:
        pytest.skip("without a library of kernels, texts of this size are not encoded in bulk")
    monkeypatch.setenv("SUBWORD_NB_TABLES", "none")
    expected = make().encode_array(text).tolist()
    assert not folder.exists()
    monkeypatch.setenv("SUBWORD_NB_TABLES", "")
    assert make().encode_array(text).tolist() == expected  # cold
    files = sorted(folder.iterdir())
    assert files
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *args: pytest.fail("tables must be found"))
        assert make().encode_array(text).tolist() == expected  # warm
    for path in files:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.unlink()  # never change a file that is mapped
        path.write_bytes(data)
        path.chmod(0o600)
    assert make().encode_array(text).tolist() == expected  # damaged
    assert sorted(folder.iterdir()) == files
    for path in files:
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[: len(data) // 3])
        path.chmod(0o600)
    assert make().encode_array(text).tolist() == expected  # cut off
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *args: pytest.fail("tables must be found"))
        assert make().encode_array(text).tolist() == expected  # repaired


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram"])
def test_the_state_of_the_cache_does_not_change_ids(folder, monkeypatch, algorithm):
    rng = random.Random(algorithm)
    check_all(trained(algorithm, rng), folder, text_of(rng), monkeypatch)


def test_nor_those_of_a_sentencepiece_model(folder, monkeypatch, tmp_path):
    rng = random.Random(1)
    check_all(sentencepiece(tmp_path, rng), folder, text_of(rng), monkeypatch)


def test_options_and_ids_belong_to_the_key(folder, monkeypatch):
    "Models that differ in one field only do not share tables."
    pieces = {c: i for i, c in enumerate(["h", "u", "g", "hu", "ug", "hug", "?", "x", "Ġ", "▁"])}
    merges = [("h", "u"), ("u", "g"), ("hu", "g")]
    fields = [
        {},
        {"piece2id": {**pieces, "?": 7, "x": 6}},
        {"merges": [merges[1], merges[0], merges[2]]},
        {"merges": merges[:2]},
        {"unk_piece": "?"},
        {"unk_piece": "?", "fuse_unk": True},
        {"byte_fallback": True},
        {"ignore_merges": True},
        {"end_of_word_suffix": "x"},
    ]

    def encoders():
        for field in fields:
            model = models.BPE(**{"piece2id": pieces, "merges": merges, **field})
            for pre in (pre_tokenizers.ByteLevel(), pre_tokenizers.Metaspace()):
                if pre == pre_tokenizers.ByteLevel() or "end_of_word_suffix" not in field:
                    found = BPESpanEncoder(model, pre)
                    first = found.first if isinstance(found.first, tuple) else [found.first]
                    yield [table.tolist() for table in (*first, *found.tables)]

    monkeypatch.setenv("SUBWORD_NB_TABLES", "none")
    expected = [*encoders()]
    monkeypatch.setenv("SUBWORD_NB_TABLES", "")
    assert [*encoders()] == expected
    assert len([*folder.iterdir()]) == len(expected)
    assert [*encoders()] == expected


def tables(n=3):
    return [np.arange(n, dtype=np.uint32), np.ones((2, n))]


def test_a_folder_that_others_can_write_to_is_not_used(folder):
    if os.name != "posix":
        pytest.skip("folders of a user are private")
    stored_tables("a", ["content"], tables)
    folder.chmod(0o777)
    calls = []
    found = stored_tables("a", ["content"], lambda: calls.append(1) or tables())
    assert calls and [t.tolist() for t in found] == [t.tolist() for t in tables()]
    folder.chmod(0o700)
    assert folder.stat().st_mode & 0o077 == 0
    stored_tables("a", ["content"], lambda: pytest.fail("the file is good"))


def test_where_nothing_can_be_written_tables_are_computed(monkeypatch, tmp_path, folder):
    place = tmp_path / "file"
    place.write_text("not a folder")
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(place))
    assert [t.tolist() for t in stored_tables("a", ["content"], tables)] == [t.tolist() for t in tables()]
    assert place.read_text() == "not a folder"


def test_the_oldest_files_are_deleted_first(folder, monkeypatch):
    monkeypatch.setattr(table_cache, "MOST", 5_000)
    for k in range(6):
        stored_tables("a", [k], lambda: [np.zeros(1000, np.uint8)])
        for age, path in enumerate(sorted(folder.iterdir(), key=lambda p: -p.stat().st_mtime)):
            os.utime(path, (1e9 - 10 * age, 1e9 - 10 * age))
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 5_000
    stored_tables("a", [5], lambda: pytest.fail("the newest is kept"))
    calls = []
    stored_tables("a", [0], lambda: calls.append(1) or tables())
    assert calls
    clear_tables()
    assert not tables_folder().exists()


def test_an_error_is_not_stored(folder):
    def wrong():
        raise ValueError("no tables for this")

    for _ in range(2):
        with pytest.raises(ValueError, match="no tables for this"):
            stored_tables("a", ["content"], wrong)
    assert not folder.exists()


PROGRAM = """
import hashlib, numpy as np
from subword_nb.bpe.span_encoder import BPESpanEncoder
from subword_nb.core import native, table_cache
found = table_cache.stored_tables("a", [np.arange(1 << 16)], lambda: [np.arange(1 << 18) % 251])
print(hashlib.sha256(found[0].tobytes()).hexdigest())
"""


def test_processes_that_write_at_once_find_whole_files(tmp_path):
    env = {**os.environ, "SUBWORD_NB_CACHE": str(tmp_path), "SUBWORD_NB_TABLES": ""}
    team = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = {process.communicate()[0] for process in team}
    assert len(answers) == 1 and all(process.returncode == 0 for process in team)
    assert [path.suffix for path in (tmp_path / "subword_nb" / "tables").iterdir()] == [".tables"]


def test_a_published_file_loads_the_same_from_every_state(folder, monkeypatch, shared_data):
    path = shared_data / "vocab" / "tiktoken" / "cl100k_base.tiktoken"
    monkeypatch.setenv("SUBWORD_NB_TABLES", "none")
    expected = Tokenizer.load(path)
    monkeypatch.setenv("SUBWORD_NB_TABLES", "")
    cold = Tokenizer.load(path)
    [stored] = folder.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *args: pytest.fail("the text must be found"))
        warm = Tokenizer.load(path)
    damaged = stored.read_bytes()[:-1]
    stored.unlink()
    stored.write_bytes(damaged)
    stored.chmod(0o600)
    for tok in (cold, warm, Tokenizer.load(path)):
        assert tok == expected
        assert list(tok.piece2id.items()) == list(expected.piece2id.items())
        assert tok.id2piece == expected.id2piece
        assert tok.encode("hugs and 你好\n") == expected.encode("hugs and 你好\n")
    [stored] = folder.iterdir()
    assert stored.stat().st_size == len(damaged) + 1


def test_other_options_of_a_published_file_are_checked_as_before(folder, shared_data):
    "Ranks with a gap, another pattern, special tokens of one's own."
    from subword_nb.formats.tiktoken import read_tiktoken

    place = shared_data / "vocab" / "tiktoken"
    for _ in range(2):
        with pytest.warns(UserWarning, match="no token for some ranks"):
            read_tiktoken(place / "p50k_base.tiktoken", special_tokens={})
        with pytest.raises(ValueError, match="special"):
            read_tiktoken(place / "r50k_base.tiktoken", special_tokens={"<|a|>": 5})
        given = read_tiktoken(place / "r50k_base.tiktoken", pattern=r"\\w+|\\W+")
        assert given.source.pattern == r"\\w+|\\W+"
