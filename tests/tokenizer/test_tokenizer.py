"""The tokenizer as its users meet it: real files, peers' libraries, every kind of text, crashes."""

import asyncio
import copy
import importlib.util
import inspect
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT

import pytest

from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS
from subword_nb.pipeline.vocab import AddedToken


def random_text(rng: random.Random, length: int = 30) -> str:
    "Characters of all planes, white space of every kind, controls, and the spellings of special tokens."
    parts = []
    for _ in range(rng.randrange(length)):
        kind = rng.randrange(7)
        if kind == 0:
            parts.append(
                rng.choice(
                    [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85", "\x00"]
                )
            )
        elif kind == 1:
            parts.append(
                rng.choice(
                    ["'s", "'LL", "don't", "123", "١٢٣", "Ⅷ", "<|endoftext|>", "…", "🤗", "👩‍👩‍👧", "e\u0301"]
                )
            )
        else:
            c = rng.randrange([0x80, 0x250, 0x800, 0x10000, 0x110000][kind - 2])
            parts.append(chr(c) if not 0xD800 <= c < 0xE000 else "?")
    return "".join(parts)


@pytest.fixture(scope="module")
def small() -> Tokenizer:
    return Tokenizer.train(COURSE_CORPUS, vocab_size=320, special_tokens=["<|endoftext|>"])


def test_the_course_comes_out_as_published(shared_file):
    expected = json.loads(shared_file("course_expected.json").read_text())["bpe"]
    tok = Tokenizer.train(
        COURSE_CORPUS,
        algorithm="bpe",
        vocab_size=50,
        special_tokens=["<|endoftext|>"],
        tie_break="first",
        initial_alphabet="corpus",
    )
    assert tok.model.merges == [tuple(m) for m in expected["merges"]]
    assert tok.id2piece == expected["vocab"]
    for text, pieces in expected["tokenize"].items():
        assert tok.tokenize(text) == pieces


@pytest.mark.parametrize("source", ["tokenizer.json", "folder", "two files"])
def test_gpt2_ids_are_golden_and_texts_come_back(shared_file, tmp_path, source):
    folder = shared_file("vocab/gpt2/tokenizer.json").parent
    if source == "two files":
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(folder / name, tmp_path / name)
        folder = tmp_path
    tok = Tokenizer.load(folder / "tokenizer.json" if source == "tokenizer.json" else folder)
    strings = json.loads(shared_file("golden/strings.json").read_text())
    golden = json.loads(shared_file("golden/hf__gpt2.json").read_text())["ids"]
    assert [tok.encode(s) for s in strings] == golden
    assert tok.encode_batch(strings).tolist() == golden
    assert [tok.decode(ids) for ids in golden] == strings


def test_random_texts_come_back(shared_file, small):
    real = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json"))
    rng = random.Random(0)
    for _ in range(2_000):
        text = random_text(rng)
        assert small.decode(small.encode(text)) == text
        assert real.decode(real.encode(text)) == text


@pytest.mark.peers
def test_random_texts_have_hugging_faces_ids(shared_file, small, tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    gpt2 = shared_file("vocab/gpt2/tokenizer.json")
    for path in (gpt2, small.save(tmp_path / "tokenizer.json")):
        ours, theirs, rng = Tokenizer.load(path), tokenizers.Tokenizer.from_file(str(path)), random.Random(1)
        texts = [random_text(rng) for _ in range(10_000)]
        assert [ours.encode(t) for t in texts] == [
            e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)
        ]
        assert [ours.tokenize(t) for t in texts[:500]] == [
            theirs.encode(t, add_special_tokens=False).tokens for t in texts[:500]
        ]


SAVED = {
    "gpt2 pattern": {},
    "cl100k pattern": dict(pre_tokenizer="cl100k"),
    "o200k pattern": dict(pre_tokenizer="o200k"),
    "own pattern": dict(pre_tokenizer=r"\d|\p{L}+|[^\d\p{L}]+"),
    "no splitting": dict(pre_tokenizer=None),
    "added tokens": dict(
        special_tokens=[
            "<s>",
            AddedToken("<mask>", lstrip=True, rstrip=True),
            AddedToken("tok", single_word=True, special=False),
        ]
    ),
    "characters": dict(algorithm="char_bpe", unk_piece="[UNK]"),
    "fused unknowns": dict(algorithm="char_bpe", unk_piece="[UNK]", fuse_unk=True, end_of_word_suffix="</w>"),
    "marks": dict(
        algorithm="char_bpe",
        unk_piece="[UNK]",
        continuing_subword_prefix="##",
        end_of_word_suffix="</w>",
        ignore_merges=True,
    ),
    "byte fallback": dict(algorithm="char_bpe", byte_fallback=True, vocab_size=400),
}


@pytest.mark.peers
@pytest.mark.parametrize("options", SAVED.values(), ids=SAVED.keys())
def test_saved_tokenizers_load_elsewhere_with_the_same_ids(tmp_path, options):
    tokenizers = pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    tok = Tokenizer.train(
        COURSE_CORPUS, **{"vocab_size": 330, "special_tokens": ["<s>", "<|endoftext|>"], **options}
    )
    path = tok.save(tmp_path / "tokenizer.json")
    theirs, again, rng = tokenizers.Tokenizer.from_file(str(path)), Tokenizer.load(path), random.Random(2)
    extra = ["<s>", " <mask> ", "tok", "token", "Hugging", "<|endoftext|>", " are ", "you'll"]
    for _ in range(2000):
        text = "".join(
            rng.choice(extra) if rng.random() < 0.3 else random_text(rng, 4) for _ in range(rng.randrange(6))
        )
        encoded = theirs.encode(text, add_special_tokens=False)
        assert tok.encode(text, allowed_special="all") == encoded.ids == again.encode(text), (
            text,
            encoded.tokens,
            tok.tokenize(text),
        )
        assert tok.decode(encoded.ids) == theirs.decode(encoded.ids, skip_special_tokens=False)
    assert theirs.get_vocab() == tok.piece2id
    # what they write, we read
    theirs.save(str(tmp_path / "theirs.json"))
    assert Tokenizer.load(tmp_path / "theirs.json").encode("This is the Course.") == tok.encode(
        "This is the Course."
    )


@pytest.mark.peers
def test_saved_tokenizers_load_in_transformers(tmp_path, small):
    transformers = pytest.importorskip("transformers", reason="the peer tests need the extra 'peers'")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(small.save(tmp_path / "tokenizer.json")))
    for text in (*COURSE_CORPUS, "naïve 你好 <|endoftext|> 🤗", ""):
        assert theirs(text)["input_ids"] == small.encode(text, allowed_special="all")


CRASH = """
import os, sys
from subword_nb import Tokenizer
from subword_nb.formats import huggingface as hf_format
tok, real = Tokenizer.load(sys.argv[1]), os.fsync
def die(fd): os._exit(9)
os.fsync = die
tok.save(sys.argv[1])
"""


def test_a_crash_while_saving_leaves_the_old_file_whole(tmp_path, small):
    path = small.save(tmp_path / "tokenizer.json")
    before = path.read_bytes()
    assert subprocess.run([sys.executable, "-c", CRASH, str(path)]).returncode == 9
    assert path.read_bytes() == before
    assert Tokenizer.load(path) == small


def test_saving_keeps_permissions_and_follows_links(tmp_path, small):
    path = small.save(tmp_path / "tokenizer.json")
    path.chmod(0o640)
    (tmp_path / "link.json").symlink_to(path)
    small.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and path.stat().st_mode & 0o777 == 0o640


SEEDED = """
from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS
import hashlib, json
from subword_nb.formats.huggingface import parts_to_dict
for options in (dict(), dict(algorithm="char_bpe", unk_piece="?"), dict(tie_break="first"), dict(tie_break="bytes")):
    tok = Tokenizer.train(COURSE_CORPUS, vocab_size=300, **options)
    print(hashlib.sha256(json.dumps(parts_to_dict(tok.parts)).encode()).hexdigest())
"""


def test_hash_seeds_change_nothing():
    runs = {
        subprocess.run(
            [sys.executable, "-c", SEEDED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(runs) == 1


def test_the_short_path_needs_neither_numpy_nor_numba(tmp_path, small):
    path = small.save(tmp_path / "tokenizer.json")
    code = (
        f"from subword_nb import Tokenizer; import sys; t = Tokenizer.load({str(path)!r}); assert "
        "t.decode(t.encode('Hugging é 你')) == 'Hugging é 你'; print([m for m in ('numpy', 'numba', 'regex', "
        "'tqdm', 'matplotlib') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_training_and_batches_work_without_numba(tmp_path):
    code = (
        "from subword_nb import Tokenizer; t = Tokenizer.train([('abcdefgh' * 9)[i % 50:][:7] + str(i) for i "
        "in range(30000)], vocab_size=300); b = t.encode_batch(['abc', 'd' * 99]); import sys; "
        "print(b.tolist() == [t.encode('abc'), t.encode('d' * 99)], 'numba' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SUBWORD_NB_JIT": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.split() == ["True", "False"]


def test_threads_share_a_tokenizer(small):
    from concurrent.futures import ThreadPoolExecutor

    rng = random.Random(3)
    texts = [random_text(rng) for _ in range(400)]
    expected = [small.encode(t) for t in texts]
    fresh = pickle.loads(pickle.dumps(small))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fresh.encode, texts * 4)) == expected * 4
        places = [small.align(t) for t in texts]
        assert list(pool.map(fresh.align, texts * 4)) == places * 4


def test_threads_do_not_see_a_memory_that_starts_anew(small, monkeypatch):
    "Memories that are emptied all the time, by every thread, lose nothing but time."
    from concurrent.futures import ThreadPoolExecutor

    from subword_nb.pipeline.thresholds import SIZES

    monkeypatch.setattr(SIZES, "cached_spans", 3)
    rng, fresh = random.Random(5), pickle.loads(pickle.dumps(small))
    texts = [random_text(rng) for _ in range(100)]
    batch = small.encode_batch(texts).tolist()
    choose = ["all", (), {"<|endoftext|>"}]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: fresh.encode_batch(texts).tolist(), range(8))) == [batch] * 8
        got = list(
            pool.map(lambda k: fresh.encode("a<|endoftext|>", allowed_special=choose[k % 3]), range(300))
        )
    assert got == [small.encode("a<|endoftext|>", allowed_special=choose[k % 3]) for k in range(300)]


def test_exchanged_parts_count_at_once(small):
    "What was compiled from an old part is forgotten; what a file holds and what is encoded never part."
    from dataclasses import replace

    from subword_nb.text.normalizers import Lowercase
    from subword_nb.text.pretokenizers import byte_level

    tok = pickle.loads(pickle.dumps(small))
    for name, value in (
        ("normalizer", Lowercase()),
        ("normalizer", None),
        ("pre_tokenizer", byte_level("o200k")),
        ("pre_tokenizer", byte_level("gpt2")),
        ("model", replace(small.model, ignore_merges=True)),
        ("added_tokens", [(AddedToken("<x>"), len(small.piece2id))]),
        ("allowed_special", "all"),
        ("allowed_special", ["<x>"]),
    ):
        tok.encode("Hugging <x> Tokens")
        setattr(tok, name, value)
        again = pickle.loads(pickle.dumps(tok))
        assert again == tok and hash(again) == hash(tok) and again.allowed_special == tok.allowed_special
        assert (
            again.encode("Hugging <x> Tokens")
            == tok.encode("Hugging <x> Tokens")
            == tok.align("Hugging <x> Tokens").ids
        )
    with pytest.raises(ValueError, match="not an added token"):
        tok.allowed_special = ["<y>"]
    assert tok.allowed_special == {"<x>"} and tok.encode("<x>") == [len(small.piece2id)]


def test_many_tokens_are_added_in_no_time(small):
    tok = pickle.loads(pickle.dumps(small))
    assert tok.add_tokens(f"<t{i % 50_000}>" for i in range(100_000)) == 50_000
    assert (
        tok.encode("<t49999>") == [tok.vocab_size - 1]
        and tok.add_tokens(["<t1>", AddedToken("<t2>", lstrip=True)]) == 0
    )


def test_long_spans_stay_fast(small):
    "A megabyte without a space: linear enough to finish, and it comes back whole."
    text = "ab" * 500_000
    assert small.decode(small.encode(text)) == text


def test_counts_may_be_given(tmp_path):
    tok = Tokenizer.train(TOY_COUNTS, algorithm="char_bpe", vocab_size=10, tie_break="first")
    assert tok.model.merges == [("u", "g"), ("u", "n"), ("h", "ug")]
    assert Tokenizer.train(TOY_COUNTS, vocab_size=259).model.merges[0] == ("u", "g")


MUTATIONS = 300


def test_damaged_files_are_refused_not_misread(tmp_path, small):
    "Bytes changed, cut out or doubled: the file loads with valid content or is refused with a ValueError that names it."
    data, rng, path = (
        small.save(tmp_path / "tokenizer.json").read_bytes(),
        random.Random(4),
        tmp_path / "damaged.json",
    )
    refused = 0
    for _ in range(MUTATIONS):
        a = rng.randrange(len(data))
        b = min(len(data), a + rng.randrange(1, 9))
        path.write_bytes(
            rng.choice(
                [
                    data[:a],
                    data[:a] + rng.randbytes(b - a) + data[b:],
                    data[:a] + data[b:],
                    data[:b] + data[a:],
                ]
            )
        )
        try:
            Tokenizer.load(path)
        except ValueError as e:
            assert "damaged.json" in str(e)
            refused += 1
    assert refused > MUTATIONS / 3


@pytest.mark.parametrize("text", ["a", "a" * 20_000, b"a"])
def test_a_policy_that_is_unknown_is_refused(text):
    "Also where there is nothing wrong with the text."
    tok = Tokenizer.train(["a b"] * 3, vocab_size=257)
    for call in (
        tok.encode,
        tok.encode_array,
        tok.tokenize,
        tok.align,
        lambda x, errors: tok.encode_batch([x], errors=errors),
    ):
        with pytest.raises(ValueError, match="errors must be .*got 'bogus'"):
            call(text, errors="bogus")


COMPATIBLE = {
    "tokenizers": ("subword_nb.compat.tokenizers", "Tokenizer"),
    "tiktoken": ("subword_nb.compat.tiktoken", "Encoding"),
    "sentencepiece": ("subword_nb.compat.sentencepiece", "SentencePieceProcessor"),
    "transformers": ("subword_nb.compat.transformers", "PreTrainedTokenizerFast"),
}


def test_names_of_other_libraries_are_told_what_to_write(small):
    "Each error says what to write; what it says runs, and the face that it names has the name."
    from subword_nb.tokenizer.tokenizer import COMPATIBLE as named, OTHER_NAMES

    assert set(named) == set(COMPATIBLE)
    for library, names in OTHER_NAMES.items():
        for name, instead in names.items():
            with pytest.raises(AttributeError) as said:
                getattr(small, name)
            message = str(said.value)
            assert name in message and library in message and instead in message
            assert not hasattr(small, name)
            assert f"subword_nb.compat.{library}" in message or library not in COMPATIBLE
            if library in COMPATIBLE:
                module, face_name = COMPATIBLE[library]
                assert module in message
                face = getattr(importlib.import_module(module), face_name)
                if library == "transformers":
                    face = face(tokenizer_object=small)
                assert hasattr(face, name) or f"self.{name} =" in inspect.getsource(face), name


def test_names_that_only_a_face_has_name_it(small):
    from subword_nb.tokenizer.tokenizer import ONLY_COMPATIBLE

    for library, names in ONLY_COMPATIBLE.items():
        module, face_name = COMPATIBLE[library]
        face = getattr(importlib.import_module(module), face_name)
        for name in names:
            with pytest.raises(AttributeError, match=f"{name}.*use {module}"):
                getattr(small, name)
            assert hasattr(face(tokenizer_object=small) if library == "transformers" else face, name), name


def test_the_class_gives_the_same_advice():
    with pytest.raises(AttributeError, match=r"write Tokenizer.load\(path\)"):
        Tokenizer.from_pretrained("gpt2")
    with pytest.raises(AttributeError, match="type object 'Tokenizer' has no attribute 'encod'"):
        _ = Tokenizer.encod


@pytest.mark.peers
@pytest.mark.parametrize("library", COMPATIBLE)
def test_every_public_name_of_the_library_has_advice(small, library):
    "Methods, properties and attributes of the installed class, in both spellings of SentencePiece."
    module = pytest.importorskip(library)
    if library == "tiktoken":
        theirs = small.to_tiktoken()
    elif library == "tokenizers":
        theirs = module.Tokenizer(module.models.BPE())
    elif library == "sentencepiece":
        theirs = module.SentencePieceProcessor()
    else:
        empty = pytest.importorskip("tokenizers").Tokenizer(
            importlib.import_module("tokenizers").models.BPE()
        )
        theirs = module.PreTrainedTokenizerFast(tokenizer_object=empty)
    names = {name for name in {*dir(theirs), *vars(type(theirs))} if name[0] != "_" and name != "this"}
    assert len(names) > 20
    for name in sorted(names):
        if not hasattr(small, name):
            with pytest.raises(AttributeError, match=f"{name!r} is a name of "):
                getattr(small, name)


def test_what_is_advised_runs(small, tmp_path, monkeypatch):
    "Every piece of advice that is an expression has a value."
    import subword_nb.compat.transformers as face
    from subword_nb.pipeline.encoding import Padding, TokenizerConfig, Truncation
    from subword_nb.pipeline.processors import TemplateProcessing
    from subword_nb.tokenizer.tokenizer import OTHER_NAMES

    monkeypatch.chdir(tmp_path)
    uploads = []
    monkeypatch.setattr(face.PreTrainedTokenizerFast, "push_to_hub", lambda self, name: uploads.append(name))
    texts = ["the low light", "lower"]
    unigram = Tokenizer.train(
        COURSE_CORPUS,
        algorithm="unigram",
        vocab_size=60,
        pre_tokenizer="metaspace",
        special_tokens=["<s>", "</s>", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>"],
    )
    unigram.post_processor = TemplateProcessing("<s> $A", special_tokens=[("<s>", unigram.piece2id["<s>"])])
    unigram.save("saved.json")
    piece = unigram.id2piece[-1]
    for library, names in OTHER_NAMES.items():
        for name, instead in names.items():
            if instead.startswith("its spelling"):
                continue
            if "patch_transformers" in instead or name == "to_transformers":
                continue  # these need the installed transformers
            if "to_tiktoken" in instead and not importlib.util.find_spec("tiktoken"):
                continue
            tok = small if "to_tiktoken" in instead else pickle.loads(pickle.dumps(unigram))
            if tok is not small:
                tok.padding, tok.truncation = Padding(), Truncation()
                tok.normalizer = "nfc" if name == "normalize" else tok.normalizer
                tok.config = TokenizerConfig(chat_templates={"default": "{{ messages[0].content }}"})
            scope = {
                "asyncio": asyncio,
                "tok": tok,
                "Tokenizer": Tokenizer,
                "Padding": Padding,
                "Truncation": Truncation,
                "PreTrainedTokenizerFast": face.PreTrainedTokenizerFast,
                "name": "org/name",
                "path": "saved.json",
                "rows": [{"input_ids": [3]}, {"input_ids": [3, 4]}],
                "text": texts[0],
                "texts": texts,
                "messages": [{"role": "user", "content": texts[0]}],
                "piece": piece,
                "pieces": [piece],
                "id": 3,
                "ids": [3],
                "batch": [[3], [4]],
                "tokens": ["<new>"],
                "paired": False,
                "max_length": 8,
            }
            code = compile(instead.replace("…", ""), f"{library} {name}", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waiting = eval(code, scope)
            if inspect.iscoroutine(waiting):
                asyncio.run(waiting)
    assert uploads == ["org/name"]


@pytest.mark.peers
def test_the_bridges_that_are_advised_run(small):
    pytest.importorskip("transformers")
    import subword_nb
    import subword_nb.compat
    from subword_nb.compat.transformers import PreTrainedTokenizerFast
    from subword_nb.tokenizer.tokenizer import OTHER_NAMES

    scope = {"tok": small, "PreTrainedTokenizerFast": PreTrainedTokenizerFast, "subword_nb": subword_nb}
    advice = OTHER_NAMES["subword_nb.compat.transformers"]
    assert eval(advice["to_transformers"], scope).encode("Hugging") == small.encode("Hugging")
    eval(advice["patch_transformers"], scope).close()


def test_other_missing_names_are_the_usual_error(small):
    "A slip of the finger has Python's own message, and copies are still made."
    with pytest.raises(AttributeError, match="'Tokenizer' object has no attribute 'encod'"):
        small.encod("text")
    for again in (copy.copy(small), copy.deepcopy(small), pickle.loads(pickle.dumps(small))):
        assert again == small and again.encode("Hugging") == small.encode("Hugging")
        assert type(again) is type(small)


def test_help_and_completion_see_every_method():
    "Each public method is a plain function of the class, with its own signature and docstring."
    for name in dir(Tokenizer):
        if name.startswith("_"):
            continue
        method = inspect.getattr_static(Tokenizer, name)
        assert inspect.getdoc(method), name
        if isinstance(method, property):
            continue
        parameters = list(inspect.signature(getattr(Tokenizer, name)).parameters.values())
        assert not any(p.kind is p.VAR_POSITIONAL for p in parameters), name
        assert name in inspect.getsource(method), name
