"""Vocabularies written in GGUF files: read back here and by the package gguf, new or in a copy of a model's file."""

import numpy as np
import pytest

from subword_nb.formats.gguf import gguf_pre_name, gguf_pre_tokenizer, read_gguf_metadata, write_gguf
from subword_nb.text.pretokenizers import byte_level
from subword_nb.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore")
FILES = {
    "gpt2/tokenizer.json": ("gpt2", "gpt-2"),
    "llama-2/tokenizer.model": ("llama", None),
    "t5-small/spiece.model": ("t5", None),
    "bert-base-uncased/tokenizer.json": ("bert", None),
    "bert-base-cased/vocab.txt": ("bert", None),
    "falcon/tokenizer.json": ("gpt2", "falcon"),
    "llama-3/tokenizer.model": ("gpt2", "llama3"),
    "tiktoken/o200k_base.tiktoken": ("gpt2", "gpt-4o"),
    "qwen/qwen.tiktoken": ("gpt2", "qwen2"),
}
FAST = ["gpt2/tokenizer.json", "llama-2/tokenizer.model", "bert-base-cased/vocab.txt"]


def text_of(shared_file):
    return (
        shared_file("corpus/english_small.txt").read_text(encoding="utf-8")[:20_000]
        + "  é 你好 1234 'll\n\n x"
    )


def ids_of(tok, text):
    return tok.encode(text, add_special_tokens=False, allowed_special=())


def values(field):
    "What the package's reader found, as Python values."
    return field.contents()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "file", [pytest.param(f, marks=() if f in FAST else pytest.mark.slow) for f in FILES]
)
def test_a_real_vocabulary_is_read_back(shared_file, tmp_path, file):
    tok, (kind, pre) = Tokenizer.load(shared_file(f"vocab/{file}")), FILES[file]
    path, text = tok.save(tmp_path / "x.gguf"), text_of(shared_file)
    found = read_gguf_metadata(path)
    assert found["tokenizer.ggml.model"] == kind and found.get("tokenizer.ggml.pre") == pre
    again = Tokenizer.load(path)
    assert again.n_vocab == tok.n_vocab
    assert all(again.piece2id[piece] == id for piece, id in tok.piece2id.items())
    assert ids_of(again, text) == ids_of(tok, text)
    again.save(tmp_path / "y.gguf")
    assert ids_of(Tokenizer.load(tmp_path / "y.gguf"), text) == ids_of(tok, text)


@pytest.mark.slow
@pytest.mark.parametrize("file", FAST)
def test_the_package_gguf_reads_what_is_written(shared_file, tmp_path, file):
    gguf = pytest.importorskip("gguf", reason="the package gguf reads what is written here")
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    tok.save(tmp_path / "x.gguf")
    ours, reader = read_gguf_metadata(tmp_path / "x.gguf"), gguf.GGUFReader(tmp_path / "x.gguf")
    for key, value in ours.items():
        wanted = list(value) if not isinstance(value, (str, bool, int, float)) else value
        assert values(reader.fields[key]) == wanted, key


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "char_bpe"])
def test_a_small_vocabulary_of_each_kind(tmp_path, kind):
    gguf = pytest.importorskip("gguf", reason="the package gguf reads what is written here")
    options = {"special_tokens": ["[UNK]", "[CLS]", "[SEP]"]} if kind == "wordpiece" else {}
    if kind == "char_bpe":
        options = {"pre_tokenizer": "metaspace", "unk_piece": "<unk>"}
    size = {"bpe": 270, "unigram": 25}.get(kind, 40)
    tok = Tokenizer.train(["the cat and the dog sat"] * 3, algorithm=kind, vocab_size=size, **options)
    again = Tokenizer.load(tok.save(tmp_path / "x.gguf"))
    assert again.piece2id == tok.piece2id
    for text in ("the cat", "a dog and cats", "", "the  tea ", "[UNK]"):
        assert ids_of(again, text) == ids_of(tok, text)
    fields = gguf.GGUFReader(tmp_path / "x.gguf").fields
    for key, value in read_gguf_metadata(tmp_path / "x.gguf").items():
        wanted = value if isinstance(value, (str, bool, int, float)) else list(value)
        assert fields[key].contents() == wanted, key


def model_file(gguf, path, n_rows, **more):
    "A model of the package gguf, with an embedding of so many rows, a vocabulary, and another tensor."
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("a model")
    writer.add_vocab_size(n_rows)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b"])
    writer.add_token_merges(["a b"])
    writer.add_chat_template("{{ messages }}")
    writer.add_float32("llama.some.number", 0.5)
    if more.get("alignment"):
        writer.add_custom_alignment(more["alignment"])
    rng = np.random.default_rng(3)
    writer.add_tensor("token_embd.weight", rng.normal(size=(n_rows, 4)).astype(np.float32))
    writer.add_tensor("blk.0.norm.weight", rng.normal(size=7).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("alignment", [None, 8, 256])
def test_a_model_keeps_its_tensors_and_other_keys(tmp_path, alignment):
    gguf = pytest.importorskip("gguf", reason="the package gguf writes the model")
    tok = Tokenizer.train(["the cat and the dog sat"] * 3, vocab_size=270, special_tokens=["<s>"])
    old = model_file(gguf, tmp_path / "old.gguf", tok.n_vocab, alignment=alignment)
    for place in (tmp_path / "new.gguf", old):  # the last replaces the file that it is made from
        before = {t.name: np.array(t.data) for t in gguf.GGUFReader(old).tensors}
        keys = read_gguf_metadata(old)
        tok.save(place, base=old)
        after = gguf.GGUFReader(place)
        assert [t.name for t in after.tensors] == [*before]
        for tensor in after.tensors:
            assert tensor.data.dtype == before[tensor.name].dtype
            np.testing.assert_array_equal(tensor.data, before[tensor.name])
        found = read_gguf_metadata(place)
        kept = [key for key in keys if not key.startswith("tokenizer.ggml.")]
        assert {key: found[key] for key in kept} == {key: keys[key] for key in kept}
        assert found["tokenizer.chat_template"] == "{{ messages }}"
        again = Tokenizer.load(place)
        assert again.encode("the dog") == tok.encode("the dog")
        assert again.piece2id == tok.piece2id


def test_an_embedding_of_another_size_is_refused(tmp_path):
    gguf = pytest.importorskip("gguf", reason="the package gguf writes the model")
    tok = Tokenizer.train(["the cat and the dog sat"] * 3, vocab_size=270)
    old = model_file(gguf, tmp_path / "old.gguf", tok.n_vocab + 1)
    data = old.read_bytes()
    with pytest.raises(ValueError, match="make the new rows first"):
        tok.save(old, base=old)
    assert old.read_bytes() == data


def test_a_damaged_base_leaves_the_old_file(tmp_path):
    gguf = pytest.importorskip("gguf", reason="the package gguf writes the model")
    tok = Tokenizer.train(["the cat and the dog sat"] * 3, vocab_size=270)
    old = model_file(gguf, tmp_path / "old.gguf", tok.n_vocab)
    data = old.read_bytes()
    target = tok.save(tmp_path / "x.gguf")
    whole = target.read_bytes()
    for n in (0, 3, 23, 60, 300):
        (tmp_path / "cut.gguf").write_bytes(data[:n])
        with pytest.raises(ValueError):
            tok.save(target, base=tmp_path / "cut.gguf")
        assert target.read_bytes() == whole
    assert {p.name for p in tmp_path.iterdir()} == {"old.gguf", "x.gguf", "cut.gguf"}


@pytest.mark.slow
def test_a_vocabulary_after_surgery(shared_file, tmp_path):
    tok = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json"))
    text = text_of(shared_file)
    for renumber in (True, False):
        new = tok.prune(30_000, text.split("\n"), renumber=renumber)
        again = Tokenizer.load(new.save(tmp_path / "x.gguf"))
        assert ids_of(again, text) == ids_of(new, text)
        assert again.n_vocab == new.n_vocab


def test_a_split_without_a_name_is_refused(tmp_path):
    for name in ("gpt-2", "llama3", "qwen2", "falcon", "tekken", "starcoder"):
        assert gguf_pre_tokenizer(gguf_pre_name(gguf_pre_tokenizer(name))) == gguf_pre_tokenizer(name)
    tok = Tokenizer.train(["the cat"], vocab_size=258, pre_tokenizer=byte_level("cl100k"))
    with pytest.raises(ValueError, match="has a name for"):
        tok.save(tmp_path / "x.gguf")
    chars = Tokenizer.train(["the cat"], algorithm="wordlevel", vocab_size=3)
    with pytest.raises(ValueError):
        write_gguf(chars.parts, tmp_path / "x.gguf")
    assert not (tmp_path / "x.gguf").exists()
