"""The kernels give the ids of the engine, for every kind of tokenizer and however a text is cut: real files, corpora, batches, threads."""
import os
import random
from pathlib import Path

import pytest
from test_pipeline import generated

from subword_nb import Tokenizer, blocks, bulk, engine
from subword_nb.engine import compiled
from subword_nb.jit import available

pytestmark = pytest.mark.skipif(not available(), reason="there are no kernels without Numba")
REAL = ["gpt2/tokenizer.json", "roberta-base/tokenizer.json", "falcon/tokenizer.json", "whisper-tiny/tokenizer.json", "clip/tokenizer.json", "phi-3-mini/tokenizer.json", "t5-small/tokenizer.json", "pegasus/tokenizer.json",
        "barthez/tokenizer.json", "bert-base-uncased/tokenizer.json", "bert-base-cased/vocab.txt", "bert-base-chinese/vocab.txt", "wordlevel-vulrepair", "derived/llama-2-legacy.tokenizer.json", "tiktoken/r50k_base.tiktoken",
        "tiktoken/cl100k_base.tiktoken", "tiktoken/o200k_base.tiktoken", "qwen/qwen.tiktoken", "t5-small/spiece.model", "llama-2/tokenizer.model", "mistral-v1/tokenizer.model.v1", "xlnet-base-cased", "chatglm-6b/ice_text.model", "sentencepiece/test_model.model"]
WITH_KERNELS = {"gpt2", "roberta-base", "whisper-tiny", "phi-3-mini", "t5-small", "bert-base-uncased", "bert-base-cased", "bert-base-chinese", "tiktoken", "llama-2", "mistral-v1", "xlnet-base-cased"}


def texts_for(seed: int) -> list[str]:
    n = int(os.environ.get("SUBWORD_NB_TEXTS", 2000))
    return generated(max(n // 4, 100), seed, ["<|endoftext|>", "</s>", "[SEP]", "<s>", "<pad>", "▁", "  ", "\n\n", "don't", "'re", "\u00a0", "\u3000"])


@pytest.fixture
def always(monkeypatch):
    "Everything goes in bulk."
    monkeypatch.setattr(blocks.SIZES, "bulk", 0)
    monkeypatch.setattr(blocks.SIZES, "loaded", 0)
    return monkeypatch


def loaded(shared_file, name):
    options = {"encoding": "qwen"} if name.startswith("qwen/") else {}
    try:
        return Tokenizer.load(shared_file(f"vocab/{name}"), **options)
    except (TypeError, ValueError):
        return Tokenizer.load(shared_file(f"vocab/{name}"))


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers(name, shared_file, always):
    tok = loaded(shared_file, name)
    if name.split("/")[0] in WITH_KERNELS:
        assert bulk.bulk_of(compiled(tok)).plan is not None, "this tokenizer should have a plan"
    texts = texts_for(len(name)) + ["", " ", "a" * 3000, " " * 500, "x y " * 300]
    expected = [engine.encode(tok, t) for t in texts]
    for block in (1 << 18, 64):
        always.setattr(blocks.SIZES, "block", block)
        found = tok.encode_batch(texts).tolist()
        for text, a, b in zip(texts, found, expected):
            assert a == b, (name, block, text[:200])
    bare = [engine.encode(tok, t, add_special_tokens=False, allowed_special=()) for t in texts]
    assert tok.encode_batch([t.encode() for t in texts], add_special_tokens=False, allowed_special=(), threads=2).tolist() == bare
    whole = "\n".join(texts)
    assert tok.encode(whole) == engine.encode(tok, whole)
    assert tok.encode_array(whole, threads=2).tolist() == engine.encode(tok, whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2/tokenizer.json", "tiktoken/cl100k_base.tiktoken", "tiktoken/o200k_base.tiktoken", "bert-base-uncased/tokenizer.json", "t5-small/tokenizer.json", "t5-small/spiece.model", "llama-2/tokenizer.model"])
@pytest.mark.parametrize("corpus", ["botchan.txt", "wagahaiwa_nekodearu.txt", "taylorswift.txt", "stress"])
def test_corpora(name, corpus, shared_file, shared_data, always):
    tok, path = loaded(shared_file, name), shared_data / "corpus" / corpus
    if not path.exists():
        pytest.skip(f"{corpus} is missing")
    for file in sorted(path.rglob("*.txt")) if path.is_dir() else [path]:
        text = file.read_bytes().decode("utf-8", "replace")[:400_000]
        expected = engine.encode(tok, text)
        assert tok.encode(text) == expected
        lines = text.splitlines(True)[:3000]
        assert tok.encode_batch(lines, threads=2).tolist() == [engine.encode(tok, t) for t in lines]


def small_tokenizers():
    corpus = ["the low light in rooms, isn't it? 12 34", "été, ça va 你好 🤗", "low lower lowest; they've 1,000 rooms"] * 3
    for algorithm, options in [("bpe", {}), ("bpe", {"pre_tokenizer": "cl100k"}), ("bpe", {"pre_tokenizer": "o200k"}), ("bpe", {"pre_tokenizer": r"\p{L}+|\d|\s+"}), ("char_bpe", {"pre_tokenizer": "metaspace", "unk_piece": "<unk>"}), ("wordpiece", {}), ("unigram", {})]:
        yield Tokenizer.train(corpus, algorithm=algorithm, vocab_size=330 if algorithm == "bpe" else 90, special_tokens=["<s>", "<unk>"], progress=False, **options)


def test_trained_tokenizers_in_any_blocks(always):
    texts = [t for t in generated(150, 3, ["<s>", "low", "light", "'s", "1", "\n"])]
    for tok in small_tokenizers():
        expected = [engine.encode(tok, t, allowed_special="all") for t in texts]
        for block in (5, 1 << 18):
            always.setattr(blocks.SIZES, "block", block)
            assert tok.encode_batch(texts, allowed_special="all").tolist() == expected
        assert tok.encode_array(" ".join(texts), threads=3).tolist() == engine.encode(tok, " ".join(texts))


def test_every_offset_modulo_64(always):
    tok = next(small_tokenizers())
    text = "say'st the low  light\r\n in 12345 rooms… été 你好!! they'll\n\n  x" * 3
    for shift in range(64):
        for head in ("a" * shift, " " * shift, "é" * (shift // 2)):
            assert tok.encode(head + text) == engine.encode(tok, head + text)


def test_threads_share_a_tokenizer(always):
    from concurrent.futures import ThreadPoolExecutor

    tok = next(small_tokenizers())
    texts = [t * 20 for t in generated(40, 5, ["low", "light"])]
    expected = [engine.encode(tok, t) for t in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(tok.encode, texts)) == expected
    assert len(bulk.bulk_of(compiled(tok)).tables) <= 8


def test_a_memory_map_is_read_in_place(tmp_path, always):
    import mmap

    tok = next(small_tokenizers())
    path = Path(tmp_path / "text.txt")
    path.write_text("the low light " * 500, encoding="utf-8")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert tok.encode_array(mapped).tolist() == engine.encode(tok, "the low light " * 500)


def test_limits_and_padding_in_bulk(always):
    from subword_nb.encoding import Padding, Truncation

    tok = next(small_tokenizers())
    texts = generated(60, 9)
    tok.truncation, tok.padding = Truncation(5), Padding()
    assert tok.encode_batch(texts).tolist() == engine.encode_batch(tok, texts).tolist()


def test_a_text_with_many_tokens_between(always):
    tok = next(small_tokenizers())
    rng = random.Random(0)
    text = "".join(rng.choice(["low light", "<s>", " the rooms", "<", "s>", "\n"]) for _ in range(2000))
    assert tok.encode(text, allowed_special="all") == engine.encode(tok, text, allowed_special="all")
    assert tok.encode(text, allowed_special=()) == engine.encode(tok, text, allowed_special=())


def test_tokens_in_long_bytes(always):
    from subword_nb.vocab import AddedToken

    base = next(small_tokenizers())
    rng = random.Random(1)
    for flags in ({}, {"lstrip": True}, {"rstrip": True}, {"single_word": True}, {"lstrip": True, "rstrip": True, "single_word": True}):
        tok = Tokenizer(*base.parts, allowed_special="all")
        tok.add_tokens([AddedToken("<s>x", special=True, normalized=False, **flags), AddedToken("<s>", special=True, normalized=False), AddedToken("<t>", special=True, normalized=False, **flags)])
        for _ in range(4):
            text = "".join(rng.choice(["low light", "<s>", "<s>x", " <t> ", "<", "\u3000", "\u00a0 ", "é", "你好", "\n", "the rooms " * 40, "x"]) for _ in range(500))
            assert tok.encode_array(text.encode()).tolist() == engine.encode(tok, text)
            assert tok.encode_batch([text.encode(), b"", text.encode()[:5000].rsplit(b" ", 1)[0]]).tolist()[:2] == [engine.encode(tok, text), []]
