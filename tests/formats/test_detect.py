"""Files of every kind: recognized by their content, opened with the ids of their own library, refused when damaged."""

import json
import os
import random
import shutil

import pytest
from seeds import TEXTS as N, fresh
from subword_nb import Tokenizer
from subword_nb.formats.detect import KINDS, find_tokenizer, kind_of_head, read_file

KIND_OF = {
    "gpt2/tokenizer.json": "tokenizer.json",
    "gpt2/vocab.json": "gpt2",
    "gpt2/merges.txt": "gpt2",
    "gpt2/encoder.json": "gpt2",
    "gpt2/vocab.bpe": "gpt2",
    "clip/tokenizer.json": "tokenizer.json",
    "t5-small/tokenizer.json": "tokenizer.json",
    "wordlevel-vulrepair/wordlevel.json": "tokenizer.json",
    "roberta-base/merges.txt": "gpt2",
    "t5-small/spiece.model": "sentencepiece",
    "llama-2/tokenizer.model": "sentencepiece",
    "mistral-v1/tokenizer.model.v1": "sentencepiece",
    "xlnet-base-cased/spiece.model": "sentencepiece",
    "chatglm-6b/ice_text.model": "sentencepiece",
    "barthez/sentencepiece.bpe.model": "sentencepiece",
    "sentencepiece/test_ja_model.model": "sentencepiece",
    "tf-text/fast_sentencepiece.model": "sentencepiece",
    "transformers-fixtures/test_sentencepiece_bpe_char.model": "sentencepiece",
    "llama-3/tokenizer.model": "tiktoken",
    "qwen/qwen.tiktoken": "tiktoken",
    "tiktoken/o200k_base.tiktoken": "tiktoken",
    "tiktoken/r50k_base.tiktoken": "tiktoken",
    "bert-base-uncased/vocab.txt": "vocab.txt",
    "bert-base-cased/vocab.txt": "vocab.txt",
    "bert-base-chinese/vocab.txt": "vocab.txt",
}


@pytest.mark.parametrize("name", KIND_OF)
def test_real_files_are_told_by_content(shared_file, tmp_path, name):
    path = shared_file("vocab/" + name)
    assert find_tokenizer(path).kind == KIND_OF[name]
    if KIND_OF[name] != "gpt2":  # half of a pair is nothing without its other half
        bare = tmp_path / "nameless"
        with open(path, "rb") as f:
            bare.write_bytes(f.read(200_000))
        assert kind_of_head(bare.read_bytes()[: 1 << 16], is_complete=False) == KIND_OF[name]


def test_real_folders(shared_data):
    found = {
        d.name: find_tokenizer(d).kind
        for d in sorted((shared_data / "vocab").iterdir())
        if d.name
        in (
            "gpt2",
            "llama-2",
            "llama-3",
            "qwen",
            "t5-small",
            "bert-base-cased",
            "roberta-base",
            "chatglm-6b",
            "mistral-v1",
        )
    }
    want = {
        "gpt2": "tokenizer.json",
        "llama-2": "sentencepiece",
        "llama-3": "tiktoken",
        "qwen": "tiktoken",
        "t5-small": "tokenizer.json",
        "bert-base-cased": "vocab.txt",
        "roberta-base": "tokenizer.json",
        "chatglm-6b": "sentencepiece",
        "mistral-v1": "sentencepiece",
    }
    assert found == {k: want[k] for k in found}


def test_llama_3_folder_names_its_special_tokens(shared_file):
    folder = shared_file("vocab/llama-3/tokenizer.model").parent
    shared_file("vocab/llama-3/tokenizer_config.json")
    tok, alone = Tokenizer.load(folder), Tokenizer.load(folder / "tokenizer.model")
    assert (alone.vocab_size, tok.vocab_size) == (128_000, 128_256)
    assert tok.encode("<|begin_of_text|>hi", allowed_special="all")[0] == 128_000
    assert 128_000 not in tok.encode("<|begin_of_text|>hi")
    assert tok.decode([128_000]) == "<|begin_of_text|>"


def golden_cases(shared_data):
    for path in sorted((shared_data / "golden").glob("*__*.json")):
        yield path.stem, json.loads(path.read_text("utf-8"))


QUICK = (
    "tiktoken__r50k_base",
    "sp__sentencepiece.test_model.model",
    "sp__transformers-fixtures.test_sentencepiece_bpe.model",
    "hf-wordpiece__bert-base-cased",
)


def _check_golden(shared_data, name, found, strings):
    files = [shared_data / "vocab" / f for f in found["files"]]
    options = (
        {"encoding": name.split("__")[1]}
        if name.startswith("tiktoken") and name.split("__")[1] not in ("llama-3", "qwen")
        else {}
    )
    tok = Tokenizer.load(files[0], **options)
    assert (tok.n_vocab if name.startswith("tiktoken") else tok.vocab_size) == found["vocab_size"]
    wrong = [s for s, ids in zip(strings, found["ids"]) if tok.encode(s, add_special_tokens=False) != ids]
    assert not wrong, wrong[:3]
    invalid = found.get("decoded_where_different", {})
    if name.startswith(("tiktoken", "sp__")):
        for i, s in enumerate(strings):
            assert tok.decode(found["ids"][i]) == invalid.get(str(i), s), (i, s)
    if "probe_pieces" in found:
        text = "Hello world! 你好 🤗 naïve café\n\n def f(x): return x"
        assert (
            tok.tokenize(text) == found["probe_pieces"]
            or tok.tokenize(text.replace("\n\n ", "\n\n  ")) == found["probe_pieces"]
        )


@pytest.mark.parametrize("name", QUICK)
def test_golden_ids(shared_data, shared_file, name):
    strings = json.loads(shared_file("golden/strings.json").read_text("utf-8"))
    _check_golden(
        shared_data, name, json.loads(shared_file(f"golden/{name}.json").read_text("utf-8")), strings
    )


@pytest.mark.slow
def test_golden_ids_of_every_file(shared_data, shared_file, record_property):
    strings = json.loads(shared_file("golden/strings.json").read_text("utf-8"))
    cases = list(golden_cases(shared_data))
    for name, found in cases:
        _check_golden(shared_data, name, found, strings)
    record_property("vocabularies", len(cases))
    record_property("texts", len(cases) * len(strings))


def mutated(data: bytes, rng: random.Random) -> bytes:
    "A file with damage of one kind or several."
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        n, kind = len(data), rng.randrange(8)
        at, end = sorted(rng.choices(range(n + 1), k=2))
        end = min(end, at + rng.choice((1, 4, 100, 10**9)))
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data += rng.randbytes(rng.choice((1, 7, 1000)))
        elif kind == 2 and n:
            data = (
                data[:at] + bytes([(data[at : at + 1] or b"\0")[0] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            )
        elif kind == 3:
            data = data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
        elif kind == 4:
            data = data[:at] + data[end:]
        elif kind == 5:
            data = data[:at] + data[at:end][:4096] * 2 + data[end:]
        elif kind == 6:
            data = data[:at] + b"\xff" * rng.choice((1, 4, 9, 12)) + data[at + 4 :]
        else:
            data = data[:at] + b"\x00" * rng.choice((1, 4, 9)) + data[at + 1 :]
    return data


FUZZED = [
    "sentencepiece/test_model.model",
    "transformers-fixtures/test_sentencepiece_bpe.model",
    "transformers-fixtures/test_sentencepiece_with_bytefallback.model",
    "tiktoken/r50k_base.tiktoken",
    "bert-base-chinese/vocab.txt",
    "wordlevel-vulrepair/wordlevel.json",
]


def attack(path, n, seed, tmp_path, cut=60_000):
    "Damaged copies of a file: each is read, or refused in words."
    data, rng = path.read_bytes(), random.Random(seed)
    outcomes = {"read": 0, "refused": 0}
    for k in range(n):
        head = data if k % 4 == 0 else data[: rng.randrange(1000, cut)]
        target = tmp_path / f"x{path.suffix}"
        target.write_bytes(mutated(head, rng))
        try:
            kind, parts = read_file(
                target, **({"pattern": "gpt2"} if path.suffix == ".tiktoken" and k % 2 else {})
            )
            assert kind in KINDS and parts.model is not None
            outcomes["read"] += 1
        except ValueError as e:
            assert str(e).strip(), "an error without words"
            outcomes["refused"] += 1
    return outcomes


@pytest.mark.parametrize("name", FUZZED)
def test_damaged_files_are_refused_in_words(shared_file, tmp_path, name):
    assert attack(shared_file("vocab/" + name), 40, 7, tmp_path)["refused"] > 0


@pytest.mark.slow
def test_thousands_of_damaged_files(shared_file, tmp_path):
    n = int(os.environ.get("SUBWORD_NB_DAMAGED", 2000 if N >= 2000 else 400)) // len(FUZZED)
    for name in FUZZED:
        seed = fresh(name).randrange(10**9)
        assert attack(shared_file("vocab/" + name), n, seed, tmp_path, cut=20_000)["refused"] > 0, seed


def test_a_folder_without_a_tokenizer(tmp_path):
    (tmp_path / "notes.txt").write_text("a page\nof notes here\n")
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(ValueError, match="the folder .* must contain a tokenizer, one of .*got none"):
        Tokenizer.load(tmp_path)


def test_two_halves_belong_together(shared_file, tmp_path):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(shared_file("vocab/gpt2/" + name), tmp_path / name)
        os.chmod(tmp_path / name, 0o644)
    assert Tokenizer.load(tmp_path) == Tokenizer.load(tmp_path / "merges.txt")
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(ValueError, match=r"vocab\.json must .*got none"):
        Tokenizer.load(tmp_path / "vocab.json")


MISLEADING = [
    ("sentencepiece/test_model.model", "tokenizer.json"),
    ("sentencepiece/test_model.model", "vocab.txt"),
    ("wordlevel-vulrepair/wordlevel.json", "merges.txt"),
    ("tiktoken/r50k_base.tiktoken", "vocab.txt"),
    ("bert-base-chinese/vocab.txt", "tokenizer.model"),
]


@pytest.mark.parametrize(("source", "name"), MISLEADING)
def test_misleading_names(shared_file, tmp_path, source, name):
    source = shared_file("vocab/" + source)
    shutil.copyfile(source, tmp_path / name)
    assert Tokenizer.load(source) == Tokenizer.load(tmp_path / name) == Tokenizer.load(tmp_path)


def test_the_halves_are_told_by_content(shared_file, tmp_path):
    want = Tokenizer.load(shared_file("vocab/gpt2/vocab.json"))
    assert (
        Tokenizer.load(shared_file("vocab/gpt2/encoder.pretty.json")) == want
    )  # merges.txt and vocab.bpe are the same file
    for a, b in [("pieces.json", "rules"), ("merges.txt", "vocab.json")]:
        folder = tmp_path / a
        folder.mkdir()
        shutil.copyfile(shared_file("vocab/gpt2/vocab.json"), folder / a)
        shutil.copyfile(shared_file("vocab/gpt2/merges.txt"), folder / b)
        assert want == Tokenizer.load(folder) == Tokenizer.load(folder / a) == Tokenizer.load(folder / b)


def test_a_pair_of_another_class_is_not_split_as_gpt2_splits(shared_file, tmp_path):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(shared_file("vocab/gpt2/" + name), tmp_path / name)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(
        '{"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {"50257": {"content": "<|im_start|>", "special": true}}}'
    )
    with pytest.raises(ValueError, match="Qwen2Tokenizer.*pre_tokenizer="):
        Tokenizer.load(tmp_path)
    tok = Tokenizer.load(tmp_path, pre_tokenizer="qwen2")
    assert tok.encode("<|im_start|>1234") == [50257, 16, 17, 18, 19]
    config.write_text('{"tokenizer_class": "GPT2TokenizerFast"}')
    tok = Tokenizer.load(tmp_path)
    tok.config = None  # what the folder says about calls
    assert tok == Tokenizer.load(tmp_path / "vocab.json")


def test_what_is_no_tokenizer_says_so(tmp_path):
    for name, data, message in [
        ("tokenizer_config.json", b"{}", "pass its folder"),
        ("v.txt.gz", b"\x1f\x8b\x08\0", r"v\.txt\.gz must not be packed, got gzip; unpack it"),
        ("a.zip", b"PK\x03\x04\x14\0\0\0", r"a\.zip must .*got zip"),
        ("empty", b"", "empty must .*got an empty file"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=message):
            Tokenizer.load(tmp_path / name)
    for text in ("", "{\n}", "x" * 5000):
        with pytest.raises(ValueError, match="path must be the name of a file"):
            Tokenizer.load(text)
