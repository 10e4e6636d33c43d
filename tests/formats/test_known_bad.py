"""Defects that raise no error: named for files derived from published ones, and for none of the published ones."""

import json
import warnings
from pathlib import Path

import pytest

import subword_nb.compat.transformers as face
from subword_nb import Tokenizer
from subword_nb.bpe.model import BPE
from subword_nb.core.unicode import BYTE2CHAR, CHAR2BYTE
from subword_nb.formats.known_bad import TEKKEN_PATTERN, known_defects, repaired
from subword_nb.pipeline.encoding import TokenizerConfig
from subword_nb.pipeline.processors import TemplateProcessing


def defects(load, *args) -> list:
    "What is warned of while something is loaded."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(*args)
    return [str(w.message) for w in caught if str(w.message).endswith(")")]


def written(path, described) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(described), encoding="utf-8")
    return path


def described(tok, folder) -> dict:
    "What the tokenizer.json of a tokenizer says."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tok.save(folder / "written.json")
    return json.loads((folder / "written.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tekken(shared_file, tmp_path_factory):
    """A tokenizer.json as Mistral's are: special tokens, then bytes, then pieces with their ranks.

    The pieces are those of o200k, whose pattern cuts words at capitals as Tekken's does.
    """
    base = Tokenizer.load(shared_file("vocab/tiktoken/o200k_base.tiktoken"))
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    pieces = list(base.model.piece2id)[:20_000]
    ranks = [p for p in pieces if len(p) == 1] + [p for p in pieces if len(p) > 1]
    ids = {piece: 1000 + i for i, piece in enumerate(ranks)} | {s: i for i, s in enumerate(special)}
    rules = [pair for pair in base.model.merges if "".join(pair) in ids][: len(ranks)]
    step = {"type": "Split", "behavior": "Isolated", "invert": False}
    spell = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": s, "special": True, "normalized": False, "lstrip": False, "rstrip": False}
            | {"single_word": False}
            for i, s in enumerate(special)
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [step | {"pattern": {"Regex": TEKKEN_PATTERN}}, spell],
        },
        "post_processor": None,
        "decoder": spell,
        "model": {
            "type": "BPE",
            "vocab": ids,
            "merges": [list(pair) for pair in rules],
            "ignore_merges": True,
        },
    }


def test_the_pattern_of_llama3_in_a_file_of_mistral(tekken, tmp_path):
    from subword_nb.text.regex import PATTERNS

    right = Tokenizer.load(written(tmp_path / "right" / "tokenizer.json", tekken))
    said = json.loads(json.dumps(tekken))
    said["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = PATTERNS["llama3"]
    path = written(tmp_path / "wrong" / "tokenizer.json", said)
    for load, place in ((Tokenizer.load, path), (Tokenizer.load, path.parent)):
        found = defects(load, place)
        assert len(found) == 1 and "(mistral-pattern)" in found[0] and "Hindi" in found[0]
    assert len(defects(face.AutoTokenizer.from_pretrained, path.parent)) == 1
    wrong = Tokenizer.load(path)
    again = Tokenizer(**repaired(wrong.parts)._asdict())
    differ = ["'this' at the start of a line", "हिन्दी में"]
    assert not [text for text in differ if wrong.encode(text) == right.encode(text)]
    for text in [*differ, "plain words", "2024", "isn't", "a/\n"]:
        assert again.encode(text) == right.encode(text)
    assert not list(known_defects(again.parts))
    said["added_tokens"][3]["content"] = "[OTHER]"
    said["model"]["vocab"]["[OTHER]"] = said["model"]["vocab"].pop("[INST]")
    assert not defects(Tokenizer.load, written(tmp_path / "other.json", said))


def test_llama3_without_ignore_merges(shared_file, tmp_path):
    right = Tokenizer.load(shared_file("vocab/llama-3"))
    said = described(right, tmp_path)
    assert said["model"]["ignore_merges"] is True
    assert not defects(Tokenizer.load, written(tmp_path / "right.json", said))
    del said["model"]["ignore_merges"]
    path = written(tmp_path / "tokenizer.json", said)
    found = defects(Tokenizer.load, path)
    assert len(found) == 1 and found[0].endswith("(llama3-merges)") and "ignore_merges" in found[0]
    wrong = Tokenizer.load(path)
    again = Tokenizer(**repaired(wrong.parts)._asdict())
    assert wrong.encode(" việc") != right.encode(" việc") == again.encode(" việc")
    assert len(right.encode(" việc", add_special_tokens=False)) == 1


def test_rules_that_are_older_than_the_vocabulary(shared_file, tmp_path):
    vocab, merges = shared_file("vocab/gpt2/vocab.json"), shared_file("vocab/gpt2/merges.txt")
    lines = merges.read_text(encoding="utf-8").splitlines()
    for name, kept in (("all", lines), ("few", lines[:40_000])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "vocab.json").write_bytes(vocab.read_bytes())
        (folder / "merges.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    assert not defects(Tokenizer.load, tmp_path / "all")
    found = defects(Tokenizer.load, tmp_path / "few")
    assert (
        len(found) == 1 and found[0].endswith("(stale-merges)") and "10,001 of the 50,257 pieces" in found[0]
    )
    right, wrong = Tokenizer.load(tmp_path / "all"), Tokenizer.load(tmp_path / "few")
    piece = found[0].split("such as '")[1].split("'")[0]
    text = bytes(CHAR2BYTE[c] for c in piece).decode()
    assert len(right.encode(text)) == 1 < len(wrong.encode(text))


@pytest.mark.parametrize("line", [1, 2, 40_000, 50_000])
def test_rules_beside_a_tokenizer_json(shared_file, tmp_path, line):
    for name in ("tokenizer.json", "vocab.json"):
        (tmp_path / name).write_bytes(shared_file(f"vocab/gpt2/{name}").read_bytes())
    lines = shared_file("vocab/gpt2/merges.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    assert not defects(Tokenizer.load, tmp_path)
    del lines[line]
    (tmp_path / "merges.txt").write_text("\r\n".join(lines), encoding="utf-8")
    found = defects(Tokenizer.load, tmp_path)
    assert len(found) == 1 and f"from line {line + 1} on" in found[0]
    assert len(defects(face.AutoTokenizer.from_pretrained, tmp_path)) == 1


def test_bos_in_the_post_processor_and_in_the_template(shared_file, tmp_path):
    tok, bos = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json")), ("<|endoftext|>", 50256)
    template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    tok.config = TokenizerConfig(chat_templates={"default": template}, special_tokens={"bos_token": bos[0]})
    tok.post_processor = None
    assert not list(known_defects(tok.parts))
    tok.post_processor = TemplateProcessing(f"{bos[0]} $A", special_tokens=[bos])
    folder = tmp_path / "chats"
    tok.save(f"{folder}/")
    found = defects(Tokenizer.load, folder)
    assert len(found) == 1 and found[0].endswith("(double-bos)") and "'default'" in found[0]
    assert len(defects(face.AutoTokenizer.from_pretrained, folder)) == 1
    again, chat = Tokenizer.load(folder), [{"role": "user", "content": "hi"}]
    rendered = again.chat(chat, tokenize=False)
    assert again.encode(rendered).count(bos[1]) == 2
    assert again.encode(rendered, add_special_tokens=False) == again.chat(chat)
    tok.config = TokenizerConfig(chat_templates={"default": "{{ messages[0].content }}"})
    tok.save(f"{folder}/")
    assert not defects(Tokenizer.load, folder)
    twice = TemplateProcessing(f"{bos[0]} {bos[0]} $A", special_tokens=[bos])
    tok.post_processor, tok.config = twice, None
    tok.save(tmp_path / "twice.json")
    found = defects(Tokenizer.load, tmp_path / "twice.json")
    assert len(found) == 1 and "twice" in found[0]


@pytest.mark.slow
def test_published_files_are_right(shared_data):
    loaded = 0
    for path in sorted((shared_data / "vocab").rglob("*")):
        if "invalid" in path.parts:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                parts = Tokenizer.load(path).parts
            except (ValueError, OSError):
                continue  # companions, and folders with several files
        assert not list(known_defects(parts, folder=path if path.is_dir() else None)), path
        loaded += 1
    assert loaded > 30 or not loaded


def test_small_vocabularies_may_have_a_few_pieces_more():
    from subword_nb.pipeline.parts import Parts
    from subword_nb.text.pretokenizers import ByteLevel

    for n, wrong in ((10, False), (11, True)):
        ids = {c: b for b, c in enumerate(BYTE2CHAR)} | {f"ab{i}": 256 + i for i in range(n)}
        assert bool(list(known_defects(Parts(BPE(ids, []), ByteLevel())))) == wrong
