"""tiktoken's files and calls: published and made-up rank tables, the files' faults, and the installed tiktoken as the judge."""

import base64
import hashlib
import http.server
import itertools
import json
import pickle
import random
import re
import shutil
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import pytest
from seeds import TEXTS, fresh, some_of
from tests.pipeline.test_align import generated
from costs import assert_linear

from subword_nb import Tokenizer, processors
from subword_nb.formats import tiktoken as tiktoken_format
from subword_nb.bpe.model import BPE
from subword_nb.pipeline.decoders import ByteLevel as ByteLevelDecoder
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.pipeline.parts import Parts
from subword_nb.text.pretokenizers import ByteLevel, byte_level
from subword_nb.text.splitters import Split
from subword_nb.pipeline.processors import RobertaProcessing
from subword_nb.core.unicode import BYTE2CHAR, to_visible
from subword_nb.formats.tiktoken import (
    MODEL_BEGINNINGS,
    MODEL_ENCODINGS,
    PUBLISHED,
    TiktokenSource,
    decode_single_token_bytes,
    decode_tokens_bytes,
    decode_with_offsets,
    encode_by_ranks_ref,
    encode_ordinary,
    encode_single_token,
    encode_with_unstable,
    encoding_name_for_model,
    identify,
    looks_like_ranks,
    merges_from_ranks,
    parts_to_ranks,
    published_ranks,
    read_encoding,
    read_ranks,
    read_tiktoken,
    tiktoken_notes,
    to_tiktoken,
    token_byte_values,
    write_ranks,
    write_tiktoken,
)
from subword_nb.pipeline.vocab import AddedToken

# golden name → (file, encoding=, name in PUBLISHED)
FILES = {
    "r50k_base": ("tiktoken/r50k_base.tiktoken", None, "r50k_base"),
    "p50k_base": ("tiktoken/p50k_base.tiktoken", None, "p50k_base"),
    "p50k_edit": ("tiktoken/p50k_base.tiktoken", "p50k_edit", "p50k_edit"),
    "cl100k_base": ("tiktoken/cl100k_base.tiktoken", None, "cl100k_base"),
    "o200k_base": ("tiktoken/o200k_base.tiktoken", None, "o200k_base"),
    "o200k_harmony": ("tiktoken/o200k_base.tiktoken", "o200k_harmony", "o200k_harmony"),
    "llama-3": ("llama-3/tokenizer.model", None, "llama3"),
    "qwen": ("qwen/qwen.tiktoken", None, "qwen"),
}
OPENAI = [n for n in FILES if n not in ("llama-3", "qwen")]
BIG = {"cl100k_base", "o200k_base", "o200k_harmony", "llama-3", "qwen"}  # some seconds each
EACH = [pytest.param(n, marks=[pytest.mark.slow] if n in BIG else []) for n in FILES]
GOLDEN = [
    pytest.param(n, marks=[] if n == "p50k_edit" else [pytest.mark.slow]) for n in FILES
]  # one by default
SPECIAL = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|endofprompt|>",
    "<|start|>",
    "<|reserved_200018|>",
    "<|im_start|>",
    "<|",
    "|>",
    "<0x41>",
    "<|endoftext|",
]
BYTES = {bytes([b]): b for b in range(256)}


@lru_cache(2)
def loaded(path, encoding):
    return read_tiktoken(path, encoding=encoding)


def tokenizer(parts: Parts) -> Tokenizer:
    "A tokenizer to which special tokens' spellings are ordinary text, as they are to tiktoken."
    return Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())


@pytest.fixture
def known(shared_file):
    "A function from a golden name to the parts in its file."
    return lambda name: loaded(str(shared_file("vocab/" + FILES[name][0])), FILES[name][1])


def line(token: bytes, rank) -> bytes:
    return (
        (base64.b64encode(token) or b"=") + b" " + str(rank).encode() + b"\n"
    )  # as the library spells no bytes


def table(ranks=BYTES) -> bytes:
    return b"".join(line(t, r) for t, r in ranks.items())


# ---- the files at hand ----


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_ids(name, known, shared_file, record_property):
    golden, strings = (
        json.loads(shared_file(f"golden/tiktoken__{name}.json").read_text()),
        json.loads(shared_file("golden/strings.json").read_text()),
    )
    strings, parts = strings["strings"] if isinstance(strings, dict) else strings, known(name)
    tok = tokenizer(parts)
    for i, text in enumerate(strings):
        assert tok.encode(text) == golden["ids"][i], text
        assert tok.decode(golden["ids"][i]) == text and tok.decode_bytes(golden["ids"][i]) == text.encode(), (
            text
        )
    assert not golden.get("decoded_where_different")
    assert {t.content: i for t, i in parts.added_tokens} == golden.get("special_tokens", {})
    assert parts.source == TiktokenSource(FILES[name][2], golden["pat_str"])
    assert len(tok.id2piece) == golden["vocab_size"]
    record_property("texts", len(strings))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_is_known_by_its_hash_and_written_byte_for_byte(name, shared_file, tmp_path, known):
    file, encoding, published = FILES[name]
    data = shared_file("vocab/" + file).read_bytes()
    written = data.replace(b"\r\n", b"\n")  # Qwen's lines end in two characters
    assert looks_like_ranks(data) and looks_like_ranks(data[:1000])
    assert identify(data) == {"p50k_edit": "p50k_base", "o200k_harmony": "o200k_base"}.get(
        published, published
    )
    ranks = read_ranks(data)
    assert write_ranks(ranks, tmp_path / "x.tiktoken").read_bytes() == written
    parts = known(name)
    again, source, special = parts_to_ranks(parts)
    assert (again, source, special) == (
        ranks,
        parts.source.pattern,
        {t.content: i for t, i in parts.added_tokens},
    )
    assert write_tiktoken(parts, tmp_path / "y.tiktoken").read_bytes() == written
    assert published_ranks(published, path=shared_file("vocab/" + file)) == ranks
    holes = {"cl100k_base": 16, "o200k_base": 19}.get(
        name, 0
    )  # ids that no token has, between the special tokens
    assert (
        PUBLISHED[published].n_vocab
        == len(ranks) + len(set(PUBLISHED[published].special_tokens.values())) + holes
    )


def test_special_tokens_of_families_are_those_of_their_configurations(shared_file):
    for name, file in (
        ("llama3", "llama-3/tokenizer_config.json"),
        ("qwen2.5", "qwen/qwen2.5_tokenizer_config.json"),
        ("qwen3", "qwen/qwen3_tokenizer_config.json"),
    ):
        config = json.loads(shared_file("vocab/" + file).read_text())["added_tokens_decoder"]
        assert PUBLISHED[name].special_tokens == {t["content"]: int(i) for i, t in config.items()}, name
    assert [len(PUBLISHED[n].special_tokens) for n in ("llama3", "llama3.1", "qwen", "qwen2")] == [
        256,
        256,
        208,
        3,
    ]
    assert (
        PUBLISHED["llama3.1"].special_tokens["<|python_tag|>"] == 128010
        and max(PUBLISHED["llama3.1"].special_tokens.values()) == 128255
    )
    assert PUBLISHED["qwen"].special_tokens["<|extra_204|>"] == 151850


def test_recovered_merges_are_gpt2s_own(shared_file):
    "GPT-2 published its merges; its ranks give back the same list."
    ranks = published_ranks("gpt2", path=shared_file("vocab/gpt2/vocab.bpe"))
    merges = [
        tuple(row.split(" "))
        for row in shared_file("vocab/gpt2/merges.txt").read_text("utf-8").split("\n")[1:-1]
    ]
    found = merges_from_ranks(ranks)
    assert [(to_visible(a), to_visible(b)) for a, b in found.merges] == merges and found.whole == []
    assert ranks == read_ranks(shared_file("vocab/tiktoken/r50k_base.tiktoken"))
    assert {to_visible(t): i for t, i in ranks.items()} | {"<|endoftext|>": 50256} == json.loads(
        shared_file("vocab/gpt2/vocab.json").read_text("utf-8")
    )
    assert published_ranks("gpt2", path=shared_file("vocab/gpt2/vocab.bpe").parent) == ranks


@pytest.mark.slow
def test_gpt2_is_the_same_in_all_its_files(shared_file):
    parts, ranks = (
        read_encoding("gpt2", path=shared_file("vocab/gpt2/vocab.bpe")),
        published_ranks("gpt2", path=shared_file("vocab/gpt2/vocab.bpe")),
    )
    hf = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json"))
    tok = tokenizer(parts)
    assert all(tok.encode(t) == hf.encode(t, allowed_special=()) for t in generated(100, 1))
    assert parts_to_ranks(hf.parts)[0] == ranks and parts_to_ranks(hf.parts)[2] == {"<|endoftext|>": 50256}
    assert not [
        n for n in tiktoken_notes(hf.parts) if "post-processor" in n
    ]  # ByteLevel puts nothing around ids


@pytest.mark.slow
def test_the_empty_token_of_whisper(shared_file, tmp_path):
    "Whisper's vocabulary has an empty token; its own rank file spells it as a lone =."
    tok = Tokenizer.load(shared_file("vocab/whisper-tiny/tokenizer.json"))
    ranks, pattern, special = parts_to_ranks(tok.parts)
    assert ranks[b""] == 50256 and len(ranks) == 50257 and special["<|endoftext|>"] == 50257
    path = write_tiktoken(tok.parts, tmp_path / "multilingual.tiktoken")
    assert path.read_bytes().endswith(b"5Zy6 50255\n= 50256\n")
    again = Tokenizer.load(path, pattern=pattern, special_tokens=special)
    assert parts_to_ranks(again.parts) == (ranks, pattern, special) and again.decode_bytes([50256]) == b""
    for text in generated(200, 12, ["<|en|>"]):
        assert again.encode(text, allowed_special="all") == tok.encode(text, add_special_tokens=False)
        assert again.decode_with_offsets([50256, *again.encode(text), 50256])[0] == text


@pytest.mark.slow
def test_recovering_is_quick(shared_file):
    ranks = list(read_ranks(shared_file("vocab/tiktoken/o200k_base.tiktoken")).items())
    assert_linear(merges_from_ranks, lambda n: dict(ranks[:n]), len(ranks))


# ---- any table of ranks ----


def random_ranks(rng) -> dict:
    "A table that no training would give: ranks in any order, pieces that merging cannot make."
    letters = rng.choice(("ab", "abc", "aé"))
    alphabet, n = sorted(set(letters.encode())), rng.randrange(1, 14)
    tokens = {bytes(rng.choices(alphabet, k=rng.choice((2, 2, 2, 3, 3, 4, 6)))) for _ in range(n)}
    if rng.random() < 0.5:  # as training does: what two tokens join to
        tokens, made = set(), [bytes([b]) for b in alphabet]
        for _ in range(n):
            made.append(rng.choice(made) + rng.choice(made))
        tokens = {t for t in made if 1 < len(t) < 12}
    ranks = list(range(256 + len(tokens)))
    rng.shuffle(ranks)
    if rng.random() < 0.5:
        ranks.sort()
    return dict(
        zip(
            [
                *BYTES,
                *(sorted(tokens, key=len) if rng.random() < 0.5 else rng.sample(sorted(tokens), len(tokens))),
            ],
            ranks,
        )
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_table_is_encoded_as_its_merges(seed):
    rng = fresh(seed)
    for _ in range(300 if seed == 0 else 5000):
        ranks = random_ranks(rng)
        parts = read_tiktoken(table(ranks), pattern=r"(?s:.)+")
        assert parts_to_ranks(parts)[0] == ranks
        for _ in range(5):
            data = bytes(
                rng.choices(
                    [*{b for t in ranks if len(t) > 1 for b in t}, 120], k=rng.choice((1, 2, 3, 4, 6, 10, 80))
                )
            )
            assert parts.model.encode(to_visible(data)) == encode_by_ranks_ref(data, ranks), (ranks, data)


@pytest.mark.peers
def test_any_table_is_encoded_as_tiktoken_does():
    tiktoken, rng = pytest.importorskip("tiktoken"), fresh(2)
    for _ in range(TEXTS):
        ranks = random_ranks(rng)
        theirs, ours = (
            tiktoken.Encoding("x", pat_str="(?s:.)+", mergeable_ranks=ranks, special_tokens={}),
            read_tiktoken(table(ranks), pattern="(?s:.)+"),
        )
        for _ in range(10):
            data = bytes(
                rng.choices(
                    [*{b for t in ranks if len(t) > 1 for b in t}, 120],
                    k=rng.choice((1, 2, 3, 4, 6, 10, 30, 200, 700)),
                )
            )
            assert ours.model.encode(to_visible(data)) == theirs._encode_single_piece(data), (ranks, data)


def test_ranks_of_trained_tokenizers():
    "What we train is what tiktoken would make of its ids; where it is not, the reason is said."
    texts = ["the hugs of the pugs and the buns", "hug pug pun bun hugs", "é è ê 日本語 日本"] * 5
    tok = Tokenizer.train(texts, vocab_size=300, algorithm="bpe", special_tokens=["<s>"])
    ranks, pattern, special = parts_to_ranks(tok.parts)
    assert (
        special == {"<s>": 0} and sorted(ranks.values()) == [*range(1, tok.vocab_size)] and len(ranks) > 270
    )
    again = read_tiktoken(table(ranks), pattern=pattern, special_tokens=special)
    tok2 = tokenizer(again)
    for text in generated(300, 3, ["<s>"]):
        assert encode_ordinary(tok, text) == tok2.encode(text) and tok.encode(
            text, allowed_special="all"
        ) == tok2.encode(text, allowed_special="all")
    assert [n for n in tiktoken_notes(tok.parts) if "special tokens" in n] and not tiktoken_notes(again)[
        0
    ].startswith("1 special")


def refused() -> dict:
    "Name → (parts, message) of tokenizers that are not what tiktoken could be."
    tok = Tokenizer.train(["abab abab hug hugs"] * 3, vocab_size=265, algorithm="bpe")
    model, parts = tok.model, tok.parts

    def change(**new):
        return parts._replace(
            model=type(model)(**{k: getattr(model, k) for k in ("piece2id", "merges", "ignore_merges")} | new)
        )

    (a, b), *rest = model.merges
    swapped = dict(model.piece2id)
    first, second = (x + y for x, y in model.merges[:2])
    swapped[first], swapped[second] = swapped[second], swapped[first]
    without_zero = {p: i for p, i in model.piece2id.items() if p != to_visible(b"\x00")}
    return {
        "dropout": (
            change(dropout=0.1),
            "dropout must be unset for tiktoken, which has no such option, got 0.1",
        ),
        "suffix": (
            change(end_of_word_suffix="</w>"),
            "end_of_word_suffix must be unset for tiktoken, which has no such option, got '</w>'",
        ),
        "ids in another order": (
            change(piece2id=swapped),
            "got 'a' 'b' before one whose piece has a lower id; save as tokenizer.json",
        ),
        "a rule less": (
            change(merges=[*rest]),
            "got none for 'a' and 'b', which make 'ab'; save as tokenizer.json",
        ),
        "a byte less": (
            change(piece2id=without_zero),
            'got none for 1, such as 0x00; train with algorithm="bpe"',
        ),
        "a piece no byte": (
            change(piece2id=model.piece2id | {"日": 999}),
            "pieces must spell bytes for tiktoken, got one that does not",
        ),
        "a whole piece": (
            change(piece2id=model.piece2id | {"qqqq": 999}),
            "got 'qqqq', which this model (ignore_merges=False) does not find; save as tokenizer.json",
        ),
        "a special token that is made": (
            parts._replace(added_tokens=((AddedToken(first), model.piece2id[first]),)),
            "special tokens must be made by no merge rule for tiktoken, got 'ab'",
        ),
        "a special token with space": (
            parts._replace(added_tokens=((AddedToken("<m>", lstrip=True), 999),)),
            "the added token '<m>' must be found as it is spelled, for tiktoken, got lstrip=True",
        ),
        "a normalizer": (
            Tokenizer.train(["ab"] * 3, vocab_size=257, algorithm="bpe", normalizer="nfc").parts,
            "normalizer must be None for tiktoken, which does not change texts, got NFC()",
        ),
        "a space in front": (
            parts._replace(pre_tokenizer=type(byte_level("gpt2"))(add_prefix_space=True)),
            "add_prefix_space",
        ),
        "not byte-level": (parts._replace(pre_tokenizer=Split("gpt2")), "byte-level"),
        "two patterns": (
            parts._replace(pre_tokenizer=byte_level("deepseek")),
            "pre_tokenizer must be one regular expression for tiktoken, got Sequence(",
        ),
        "merged pieces": (
            parts._replace(pre_tokenizer=byte_level(Split("gpt2", "merged_with_next"))),
            "makes others",
        ),
        "another dialect": (
            parts._replace(pre_tokenizer=byte_level(Split(r"\w+$|.", "isolated"))),
            r"pattern must mean the same to tiktoken, got '\\w+$|.'",
        ),
        "not BPE": (
            parts._replace(model=Tokenizer.train(["ab ab"] * 3, vocab_size=5, algorithm="unigram").model),
            "the model must be byte-level BPE for tiktoken, got Unigram(5 pieces)",
        ),
    }


@pytest.mark.parametrize("name", [*refused()])
def test_what_tiktoken_cannot_be_is_refused(name, tmp_path):
    parts, message = refused()[name]
    for call in (
        parts_to_ranks,
        tiktoken_notes,
        to_tiktoken,
        lambda p: write_tiktoken(p, tmp_path / "no.tiktoken"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call(parts)
    assert not list(tmp_path.iterdir())


@pytest.mark.peers
def test_patterns_that_leave_text_out():
    "tiktoken drops what no match covers; a Split that keeps it is written so that tiktoken keeps it, too."
    tiktoken = pytest.importorskip("tiktoken")
    for source in (r"\d+", r"[a-z]+(?=b)|x", r"(?i:the)|\s", r"\p{Lu}\p{Ll}*"):
        theirs = tiktoken.Encoding(
            "x", pat_str=source, mergeable_ranks=BYTES | {b"ab": 256, b"12": 257}, special_tokens={}
        )
        parts = read_tiktoken(table(BYTES | {b"ab": 256, b"12": 257}), pattern=source)
        kept = parts._replace(pre_tokenizer=byte_level(Split({"Regex": source}, "isolated", dialect="rust")))
        whole = to_tiktoken(kept)
        for text in generated(TEXTS // 2, 4, ["ab12", "the", "xyzb"]):
            assert tokenizer(parts).encode(text) == theirs.encode_ordinary(text), (source, text)
            assert tokenizer(kept).encode(text) == whole.encode_ordinary(text), (source, text)
            assert tokenizer(kept).decode(whole.encode_ordinary(text)) == text


# ---- tiktoken as the judge ----


@pytest.fixture
def cache(shared_file, tmp_path, monkeypatch):
    "A folder as tiktoken keeps it, with all published files, and the environment that names it."
    for name, p in PUBLISHED.items():
        for address, _ in p.files:
            if "://" in address:
                file = address.rpartition("/")[2]
                shutil.copyfile(
                    shared_file(("vocab/gpt2/" if name == "gpt2" else "vocab/tiktoken/") + file),
                    tmp_path / hashlib.sha1(address.encode()).hexdigest(),
                )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.peers
def test_published_encodings_are_tiktokens(cache):
    tiktoken = pytest.importorskip("tiktoken")
    from tiktoken_ext import openai_public

    assert {n for n in PUBLISHED if not n.startswith(("llama", "qwen", "kimi"))} == set(
        openai_public.ENCODING_CONSTRUCTORS
    )
    for name, make in openai_public.ENCODING_CONSTRUCTORS.items():
        theirs, ours = make(), PUBLISHED[name]
        assert (theirs["pat_str"], theirs["special_tokens"]) == (
            tiktoken_format.PATTERNS[ours.pattern],
            ours.special_tokens,
        ), name
        assert (
            ours.n_vocab
            == tiktoken.get_encoding(name).n_vocab
            == theirs.get("explicit_n_vocab", ours.n_vocab)
        )
        assert published_ranks(name, download=False) == theirs["mergeable_ranks"], name


def check_like_tiktoken(tok, theirs, name, n):
    "Ids of generated texts with special tokens allowed and not, and decoding."
    special = {t.content for t, _ in tok.added_tokens}
    some = {t for t in ("<|endoftext|>", "<|fim_prefix|>", "<|start|>") if t in special}
    runs = [c * k for c in " a\n\u3000é1.🤗\x00" for k in (1, 2, 3, 17, 300)]
    rng = fresh(7)
    for text in [*generated(n, len(name), SPECIAL), *runs]:
        ids = theirs.encode_ordinary(text)
        assert encode_ordinary(tok, text) == tok.encode(text) == ids, text
        assert tok.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all"), text
        assert tok.encode(text, allowed_special=some) == theirs.encode(
            text, allowed_special=some, disallowed_special=()
        ), text
        for disallowed, allowed in (("all", ()), ("all", some), (some, ()), (some, "all"), (special, some)):
            refused_there = refused_here = False
            try:
                theirs.encode(
                    text,
                    allowed_special=set(allowed) if allowed != "all" else "all",
                    disallowed_special=disallowed,
                )
            except ValueError:
                refused_there = True
            try:
                tok.encode(text, allowed_special=allowed, disallowed_special=disallowed)
            except ValueError:
                refused_here = True
            assert refused_here == refused_there, (text, disallowed, allowed)
        cut = ids[rng.randrange(len(ids) + 1) :]
        assert tok.decode_bytes(cut) == theirs.decode_bytes(cut) and tok.decode(cut) == theirs.decode(cut), (
            text
        )
        assert decode_tokens_bytes(tok, cut) == theirs.decode_tokens_bytes(cut)
        assert decode_with_offsets(tok, ids) == theirs.decode_with_offsets(ids), text


@pytest.mark.peers
@pytest.mark.parametrize("name", EACH)
def test_generated_texts_are_encoded_alike(name, known, cache, record_property):
    tiktoken, parts = pytest.importorskip("tiktoken"), known(name)
    theirs = tiktoken.get_encoding(name) if name in OPENAI else to_tiktoken(parts)
    check_like_tiktoken(tokenizer(parts), theirs, name, TEXTS)
    record_property("texts", TEXTS)


@pytest.mark.one_in(3)
@pytest.mark.peers
@pytest.mark.parametrize("name", EACH)
def test_calls_are_tiktokens(name, known):
    pytest.importorskip("tiktoken")
    parts = known(name)
    tok, theirs, rng = tokenizer(parts), to_tiktoken(parts, name="given"), fresh(5)
    assert theirs.name == "given" and to_tiktoken(parts).name == FILES[name][2]
    assert token_byte_values(tok) == theirs.token_byte_values()
    doubled = {200018}  # one id, two spellings: which of them is decoded is chance there
    for i in [*rng.sample(range(theirs.n_vocab), 3000), *(i for _, i in parts.added_tokens)]:
        try:
            data = theirs.decode_single_token_bytes(i)
        except KeyError:
            with pytest.raises(KeyError):
                decode_single_token_bytes(tok, i)
            continue
        assert decode_single_token_bytes(tok, i) == data or i in doubled
        assert encode_single_token(tok, data) == theirs.encode_single_token(data) == i
    for text in generated(500, 6, SPECIAL):
        try:
            i = theirs.encode_single_token(text)
        except KeyError:
            with pytest.raises(KeyError):
                encode_single_token(tok, text)
        else:
            assert encode_single_token(tok, text) == i


UNSTABLE = [
    "",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    " \n",
    "a\n\n",
    "x \n \n",
    "\t ",
    "é",
    "日本",
    "\u3000",
    "a\u3000",
    "\x85",
    "x\x85",
    "hello",
    "hello fanta",
    "don't",
    "don'",
    "  !",
    "<|endoftext|>",
    "x<|endoftext|>",
    "<|endoftext|>x",
    "<|endoftext|> ",
    "<|endof",
    "🤗",
    "👩🏽\u200d",
    "123",
    "12345",
    "e\u0301",
    "</",
    "def f(x):\n    ",
    "....",
    "\u200b",
    "\ufeff",
    "\x00",
    "ก็",
    "ab12cd \u2003",
    "http",
]


@pytest.mark.one_in(3)
@pytest.mark.peers
@pytest.mark.parametrize("name", EACH)
def test_unstable_ids_are_tiktokens(name, known):
    pytest.importorskip("tiktoken")
    parts = known(name)
    tok, theirs = tokenizer(parts), to_tiktoken(parts)
    drawn = generated(TEXTS // 10, 8, SPECIAL)
    for text in [*some_of(UNSTABLE, name), *drawn, *(c * 150 for c in " \n!")]:
        for allowed in ((), "all"):
            stable, completions = encode_with_unstable(
                tok, text, allowed_special=allowed, disallowed_special=()
            )
            there = theirs.encode_with_unstable(
                text, allowed_special=set(allowed) if allowed != "all" else "all", disallowed_special=()
            )
            assert stable == there[0] and completions == sorted(there[1]), text
    if parts.added_tokens:
        for call in (
            lambda: encode_with_unstable(tok, "x<|endoftext|>"),
            lambda: theirs.encode_with_unstable("x<|endoftext|>"),
        ):
            with pytest.raises(ValueError):
                call()


@pytest.mark.peers
def test_the_empty_token_and_the_calls():
    tiktoken = pytest.importorskip("tiktoken")
    ranks = BYTES | {b"": 256, b"ab": 257}
    theirs, tok = (
        tiktoken.Encoding("x", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={"<s>": 258}),
        tokenizer(read_tiktoken(table(ranks), pattern=r"\w+|\W+", special_tokens={"<s>": 258})),
    )
    assert (
        token_byte_values(tok) == theirs.token_byte_values()
        and encode_single_token(tok, b"") == theirs.encode_single_token(b"") == 256
    )
    for text in ["", "a", "ab ab", "b", " ", "<s>", *generated(100, 13, ["ab", "<s>"])]:
        assert tok.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
        stable, completions = theirs.encode_with_unstable(text, allowed_special="all")
        assert encode_with_unstable(tok, text, allowed_special="all") == (stable, sorted(completions))


@pytest.mark.peers
def test_special_tokens_in_every_combination():
    "Which of a few tokens are allowed, and which are errors: all pairs of sets, on all texts of a few parts."
    pytest.importorskip("tiktoken")
    special = {"<s>": 258, "</s>": 259, "é|": 260}
    tok = toy(special)
    theirs = to_tiktoken(tok)
    sets = ["all", *(set(c) for k in range(3) for c in itertools.combinations(special, k))]
    texts = ["".join(p) for p in itertools.product(["<s>", "</s>", "é|", "hug", " <s", ">"], repeat=3)]

    def result(call, text, allowed, disallowed):
        try:
            return call(text, allowed_special=allowed, disallowed_special=disallowed)
        except ValueError:
            return "refused"

    for text in texts:
        for allowed, disallowed in itertools.product(sets, sets):
            assert result(tok.encode, text, allowed, disallowed) == result(
                theirs.encode, text, allowed, disallowed
            ), (text, allowed, disallowed)
    for text in texts[::7]:
        for allowed, disallowed in itertools.product(sets, sets):
            want = result(theirs.encode_with_unstable, text, allowed, disallowed)
            assert result(tok.encode_with_unstable, text, allowed, disallowed) == (
                want if want == "refused" else (want[0], sorted(want[1]))
            ), (text, allowed, disallowed)


@pytest.mark.peers
def test_an_encoding_warns_of_what_it_does_not_do():
    pytest.importorskip("tiktoken")
    parts = read_tiktoken(TOY, pattern="r50k", special_tokens={"<s>": 258})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_tiktoken(parts)
        to_tiktoken(parts._replace(post_processor=processors.ByteLevel()))
    for change, message in (
        (
            dict(post_processor=processors.TemplateProcessing(["<s>", "A"], special_tokens=[("<s>", 258)])),
            "TemplateProcessing: tiktoken puts nothing around ids",
        ),
        (dict(truncation=Truncation(3)), "the truncation"),
        (dict(added_tokens=((AddedToken("<s>", special=False), 258),)), "is found in every text"),
        (dict(decoder=None), "the decoder, None"),
    ):
        with pytest.warns(UserWarning, match=message):
            to_tiktoken(parts._replace(**change))
    for pair in (("<s>", "<s>x"), ("  ", "   ")):
        with pytest.raises(
            ValueError, match=f"must not begin alike for tiktoken, .* got {pair[0]!r} and {pair[1]!r}"
        ):
            to_tiktoken(
                parts._replace(added_tokens=tuple((AddedToken(t), 258 + k) for k, t in enumerate(pair)))
            )


@pytest.mark.peers
def test_trained_tokenizers_become_encodings():
    pytest.importorskip("tiktoken")
    texts = generated(400, 9)
    for pattern in ("gpt2", "r50k", "cl100k", "o200k", "llama3", "qwen2"):
        tok = Tokenizer.train(
            texts,
            vocab_size=600,
            algorithm="bpe",
            pre_tokenizer=byte_level(pattern),
            special_tokens=["<|endoftext|>", "<s>"],
        )
        theirs = to_tiktoken(tok)
        assert theirs.name == "subword_nb"
        for text in generated(TEXTS, 10, ["<s>"]):
            assert tok.encode(text, allowed_special=()) == theirs.encode_ordinary(text)
            assert tok.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
    assert to_tiktoken(tok, name="mine").name == "mine"
    whole = Tokenizer.train(texts, vocab_size=400, algorithm="bpe", pre_tokenizer=byte_level(None))
    assert all(whole.encode(t) == to_tiktoken(whole).encode_ordinary(t) for t in generated(100, 11))


def test_without_tiktoken_the_message_says_what_to_install():
    code = (
        "import sys; sys.modules['tiktoken'] = None\nfrom subword_nb import Tokenizer\n"
        "from subword_nb.formats.tiktoken import to_tiktoken\n"
        "to_tiktoken(Tokenizer.train(['ab'] * 3, vocab_size=257, algorithm='bpe'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: tiktoken is not installed; run: pip install tiktoken" in done.stderr


# ---- where published files come from ----


class Server:
    "A loopback server of a few files; `seen` are the paths that were asked for."

    def __init__(self, files):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.path)
                data = files.get(self.path)
                self.send_response(200 if data is not None else 404)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


TOY = table(BYTES | {b"hu": 256, b"hug": 257})


@pytest.fixture
def server(monkeypatch, tmp_path):
    "The address of r50k_base's file is the loopback server's, and so is its hash; no folder is named, and the temporary one is empty."
    for name in (
        "TIKTOKEN_CACHE_DIR",
        "DATA_GYM_CACHE_DIR",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    server = Server({"/toy": TOY, "/wrong": TOY[:-1]})
    monkeypatch.setitem(
        PUBLISHED,
        "r50k_base",
        PUBLISHED["r50k_base"]._replace(files=((server.address + "/toy", hashlib.sha256(TOY).hexdigest()),)),
    )
    server.key = hashlib.sha1((server.address + "/toy").encode()).hexdigest()
    yield server
    server.close()


def test_a_published_file_is_downloaded_once_and_kept_as_tiktoken_keeps_it(server, tmp_path, monkeypatch):
    assert published_ranks("r50k_base")[b"hug"] == 257
    kept = tmp_path / "data-gym-cache" / server.key
    assert kept.read_bytes() == TOY and [p.name for p in kept.parent.iterdir()] == [server.key]
    assert published_ranks("r50k_base", download=False) == published_ranks("r50k_base") and server.seen == [
        "/toy"
    ]
    kept.write_bytes(TOY[:50])  # damaged: fetched anew
    assert (
        published_ranks("r50k_base")[b"hug"] == 257
        and server.seen == ["/toy"] * 2
        and kept.read_bytes() == TOY
    )
    for k, variable in enumerate(
        ("DATA_GYM_CACHE_DIR", "TIKTOKEN_CACHE_DIR")
    ):  # the second one goes before the first
        monkeypatch.setenv(variable, str(tmp_path / variable))
        published_ranks("r50k_base")
        assert (tmp_path / variable / server.key).read_bytes() == TOY and len(server.seen) == 3 + k
    published_ranks("r50k_base", cache_dir=tmp_path / "mine")
    assert (tmp_path / "mine" / server.key).is_file()
    published_ranks("r50k_base", cache_dir="")
    assert len(server.seen) == 6 and len(list(tmp_path.iterdir())) == 4
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        published_ranks("r50k_base", cache_dir=tmp_path / "file")  # a folder that is asked for has to take it
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    assert published_ranks("r50k_base")[b"hug"] == 257  # the temporary one need not


def test_what_cannot_be_downloaded_says_where_to_put_it(server, tmp_path, monkeypatch):
    address, digest = PUBLISHED["r50k_base"].files[0]
    with pytest.raises(FileNotFoundError) as e:
        published_ranks("r50k_base", download=False)
    assert all(part in str(e.value) for part in (address, digest, server.key, "path=", "download=True"))
    monkeypatch.setitem(
        PUBLISHED, "r50k_base", PUBLISHED["r50k_base"]._replace(files=((server.address + "/wrong", digest),))
    )
    with pytest.raises(
        ValueError, match=f"must have the SHA-256 {digest}, got .*{len(TOY) - 1} bytes.*try again later"
    ):
        published_ranks("r50k_base")
    monkeypatch.setitem(
        PUBLISHED, "r50k_base", PUBLISHED["r50k_base"]._replace(files=((server.address + "/none", digest),))
    )
    with pytest.raises(
        FileNotFoundError,
        match=r"/none cannot be read .*404.*path= \(to Tokenizer.load the file itself, and encoding='r50k_base'\), or put a file",
    ):
        published_ranks("r50k_base")
    server.close()
    with pytest.raises(FileNotFoundError, match="cannot be read .*refused"):
        published_ranks("r50k_base")
    with pytest.raises(
        FileNotFoundError, match="tokenizer.model is not in the cache, and has no public address"
    ):
        published_ranks("llama3")
    with pytest.raises(
        ValueError,
        match="encoding must be one of gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base, o200k_base, o200k_harmon",
    ):
        published_ranks("r50k")
    for name in (3, None, ["gpt2"]):
        with pytest.raises(
            ValueError,
            match="encoding must be one of gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base, o200k_base, o200k_harmon",
        ):
            published_ranks(name)
    assert not (tmp_path / "data-gym-cache").exists()
    (tmp_path / "mine").write_bytes(b"x")
    with pytest.raises(ValueError, match="mine must be the none of r50k_base, .*got 2d711642"):
        published_ranks("r50k_base", path=tmp_path / "mine")
    with pytest.raises(FileNotFoundError):
        published_ranks("r50k_base", path=tmp_path)


# ---- faults of files ----

FAULTS = {
    "empty": (b"", "the rank file must have a token in base64 and its rank on each line, got an empty file"),
    "an empty line": (TOY + b"\n" + line(b"x", 300), "got an empty one, which only the last line may be"),
    "two empty lines at the end": (TOY + b"\n", "got an empty one, which only the last line may be"),
    "a rank twice": (
        TOY + line(b"xy", 3),
        "the rank file must give each token a rank of its own, got the rank 3 in the lines 4 and 259",
    ),
    "a token twice": (
        TOY + line(b"hu", 300),
        "the rank file must list each token once, got b'hu' in the lines 257 and 259",
    ),
    "bad base64": (TOY + b"a*== 300\n", "got the token 'a*==', which is not base64"),
    "short base64": (TOY + b"abc 300\n", "got the token 'abc', which is not base64"),
    "base64 with bits left": (TOY + b"YR== 300\n", "which is not base64"),
    "base64 without padding": (TOY + b"YQ 300\n", "which is not base64"),
    "no number": (
        TOY + b"YWI= x\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got the rank 'x'",
    ),
    "negative": (
        TOY + b"YWI= -1\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got the rank '-1'",
    ),
    "decimal": (
        TOY + b"YWI= 1.0\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got the rank '1.0'",
    ),
    "zeros": (
        TOY + b"YWI= 0300\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got the rank '0300'",
    ),
    "too high": (
        TOY + b"YWI= 4294967296\n",
        "got the rank '4294967296'; ranks are numbers from 0 to 4294967295, without zeros in front",
    ),
    "very long number": (TOY + b"YWI= " + b"9" * 100_000 + b"\n", "got the rank '9999"),
    "no rank": (
        TOY + b"YWI=\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got 'YWI='",
    ),
    "two spaces": (
        TOY + b"YWI=  300\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got 'YWI=  300'",
    ),
    "a tab": (
        TOY + b"YWI=\t300\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got '",
    ),
    "garbage behind": (
        TOY + b"YWI= 300 x\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got '",
    ),
    "no token": (
        TOY + b" 300\n",
        "the rank file, line 259 must be a token in base64, one space, and its rank, got '",
    ),
    "garbage at the end": (
        TOY + b"\x00\x01\x02",
        r"the rank file, line 259 must be a token in base64, one space, and its rank, got '\x00\x01\x02'",
    ),
    "digits of another script": (
        TOY + "YWI= ٣\n".encode(),
        "the rank file, line 259 must be a token in base64, one space, and its rank, got the rank '",
    ),
    "cut off": (
        TOY[:-4],
        "the rank file, line 258 must be a token in base64, one space, and its rank, got the rank ''",
    ),
    "a mark of byte order": (
        b"\xef\xbb\xbf" + TOY,
        "the rank file, line 1 must be a token in base64, one space, and its rank, got ",
    ),
    "JSON": (b'{"a": 1}', "the rank file, line 1 must be a token in base64, one space, and its rank, got "),
    "UTF-16": (
        TOY.decode().encode("utf-16"),
        "the rank file, line 1 must be a token in base64, one space, and its rank, got ",
    ),
    "only a line break": (
        b"\n",
        "the rank file must have a token in base64 and its rank on each line, got an empty file",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_a_file_have_line_and_reason(name, tmp_path):
    data, message = FAULTS[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        read_ranks(data)
    path = tmp_path / "x.tiktoken"
    path.write_bytes(data)
    for read in (read_ranks, lambda p: read_tiktoken(p, pattern="gpt2")):
        with pytest.raises(ValueError) as e:
            read(path)
        assert str(e.value).startswith(str(path))


def test_line_ends_do_not_matter():
    assert read_ranks(TOY) == read_ranks(TOY.replace(b"\n", b"\r\n")) == read_ranks(TOY[:-1])
    assert read_ranks(TOY, name="mine")[b"hug"] == 257


def test_faults_of_a_table():
    def fails(message, data=TOY, **options):
        with pytest.raises(ValueError, match=message):
            read_tiktoken(data, **{"pattern": "gpt2"} | options)

    fails(
        "pattern must be given for the rank file, .*got None; pass a regular expression, or one of gpt2, r50k",
        pattern=None,
    )
    fails("the rank file must be the file of cl100k_base, got one with the SHA-256", encoding="cl100k_base")
    fails(
        "encoding must be one of gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base, o200k_base, o200k_harmon",
        encoding="nope",
    )
    fails(
        "pattern must be a regular expression, or one of gpt2, r50k, p50k, cl100k, o200k, llama3, qwen2, whit",
        pattern="nope",
    )
    fails(
        "pattern must be a regular expression, or one of gpt2, r50k, p50k, cl100k, o200k, llama3, qwen2, whit",
        pattern=3,
    )
    fails(
        "pattern must be a regular expression, or one of gpt2, r50k, p50k, cl100k, o200k, llama3, qwen2, whit",
        pattern="",
    )
    fails(
        r"text must .*got U\+D800 at position 1, which UTF-8 cannot encode", special_tokens={"<\ud800>": 258}
    )
    fails("the rank file: pattern '\\('", pattern="(")
    fails(
        "the rank file must .*got none for 1, such as 0x61, so that some texts could not be encoded",
        table({t: r for t, r in BYTES.items() if t != b"a"}),
    )
    with pytest.warns(UserWarning, match="the rank file has no token for some ranks up to 257, such as 256"):
        read_tiktoken(table(BYTES | {b"ab": 257}), pattern="gpt2")
    with pytest.warns(UserWarning, match="such as 0: no text has these ids"):
        read_tiktoken(table({t: r + 1 for t, r in BYTES.items()}), pattern="gpt2")
    fails(
        "the rank file must .*without large gaps, got 4294967295 as the highest",
        table(BYTES | {b"ab": 2**32 - 1}),
    )
    fails(
        "the rank file: special_tokens must .*got '<s>' with the id 257, the rank of b'hug'",
        special_tokens={"<s>": 257},
    )
    fails("the rank file: special tokens must .*got 'hug', which is one", special_tokens={"hug": 258})
    fails("special_tokens must .*got '' with the id 258", special_tokens={"": 258})
    fails("special_tokens must .*got '<s>' with the id '258'", special_tokens={"<s>": "258"})
    fails("special_tokens must .*got '<s>' with the id -1", special_tokens={"<s>": -1})
    fails("special_tokens must be a map from spelling to id, got list", special_tokens=["<s>"])
    assert (
        len(
            read_tiktoken(
                table(BYTES | {b"ab": 257}), pattern="cl100k_base", special_tokens={"<s>": 256}
            ).model.piece2id
        )
        == 257
    )
    for ranks, message in (
        ({"a": 1}, "ranks must .*got 'a' with the rank 1"),
        ({b"a": 1.0}, r"ranks must .*got b'a' with the rank 1\.0"),
        ({b"a": True}, "ranks must .*got b'a' with the rank True"),
        ({b"a": -1}, "ranks must .*got b'a' with the rank -1"),
        ({b"a": 1, b"b": 1}, "ranks must .*got 1 for b'a' and b'b'"),
    ):
        for call in (merges_from_ranks, lambda r: write_ranks(r, "never")):
            with pytest.raises(ValueError, match=message):
                call(ranks)
    with pytest.raises(ValueError, match="the bytes of a token must have ranks, got none for 0x62"):
        merges_from_ranks({b"a": 0, b"ab": 1})
    assert merges_from_ranks({}) == ([], [])
    with pytest.raises(ValueError, match="ranks must be a map from token to rank, got list"):
        merges_from_ranks([(b"a", 1)])
    for call in (
        lambda: write_ranks({b"x" * 10**6: -1}, "never"),
        lambda: read_tiktoken(
            table(BYTES | {b"x" * 10**6: 256}), pattern="gpt2", special_tokens={"<s>": 256}
        ),
    ):
        with pytest.raises(ValueError, match="b'x+'") as e:
            call()
        assert len(str(e.value)) < 300


def test_the_empty_token_is_a_lone_equals_sign(tmp_path):
    data = TOY + b"= 258\n"
    ranks = read_ranks(data)
    assert (
        ranks[b""] == 258
        and write_ranks(ranks, tmp_path / "x").read_bytes() == data
        and looks_like_ranks(data[-6:])
    )
    tok = tokenizer(read_tiktoken(data, pattern="gpt2"))
    assert (
        merges_from_ranks(ranks).whole == []
        and tok.model.ignore_merges
        and tok.encode("") == []
        and tok.encode("hug") == [257]
    )
    assert (
        encode_single_token(tok, b"") == 258
        and token_byte_values(tok)[0] == b""
        and decode_tokens_bytes(tok, [258, 257]) == [b"", b"hug"]
    )
    assert decode_with_offsets(tok, [258, 257, 258, 97]) == ("huga", [0, 0, 3, 3])
    for other in (b"== 258\n", b"=== 258\n", b"A= 258\n", b" 258\n"):
        with pytest.raises(
            ValueError, match="the rank file, line 259 must be a token in base64, one space, and its rank"
        ):
            read_ranks(TOY + other)


def test_recognition():
    assert (
        looks_like_ranks(TOY)
        and looks_like_ranks(TOY.replace(b"\n", b"\r\n"))
        and looks_like_ranks(b"YQ== 0")
        and looks_like_ranks(b"YQ== 7\nYWI= 9")
    )
    for other in (
        b"",
        b"\n",
        b"the 120\nthat 77\n",
        b"that 77\nthis 70\n",
        b"#version: 0.2\na b\n",
        b"hug\npug\n",
        b"minbpe v1\n",
        b"{}",
        b"\x0a\x07",
        b"YQ== 3\nYWI= 3\n",
        b"GGUF\x03\x00",
        b"a b 3\n",
    ):
        assert not looks_like_ranks(other), other
    assert identify(TOY) is None and identify(b"") is None


def test_hostile_tables_take_no_time():
    "One long token, many long tokens, a run of one letter."

    def recover(n):
        assert merges_from_ranks(BYTES | {b"a" * n: 256}).whole == [b"a" * n]

    assert_linear(recover, int, 100_000)
    parts = read_tiktoken(table(BYTES | {b"a" * n: 254 + n for n in range(2, 300)}), pattern="(?s:.)+")

    def there_and_back(n):
        assert tokenizer(parts).decode(tokenizer(parts).encode("a" * n)) == "a" * n

    assert_linear(there_and_back, int, 50_000)
    assert len(encode_with_unstable(tokenizer(parts), "a" * 200)[1]) > 50
    doubled = BYTES | {b"a" * 2**k: 255 + k for k in range(1, 16)}
    assert len(merges_from_ranks(doubled).merges) == 15


def mutants(data: bytes, n: int, seed: int):
    "A rank file with something done to it."
    rng = fresh(seed)
    for _ in range(n):
        d, k = bytearray(data), rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            d[k] ^= 1 << rng.randrange(8)
        elif kind == 1:
            d[k] = rng.randrange(256)
        elif kind == 2:
            del d[k:]
        elif kind == 3:
            del d[k : k + rng.choice((1, 2, 5, 40))]
        elif kind == 4:
            d[k:k] = bytes(rng.choices(b" \n\r\t=0129AZaz+/\x00\xff", k=rng.choice((1, 1, 2, 30))))
        elif kind == 5:
            rows = bytes(d).split(b"\n")
            i, j = rng.randrange(len(rows)), rng.randrange(len(rows))
            rows[i] = rng.choice(
                (
                    rows[j],
                    rows[i].split(b" ")[0] + b" " + rows[j].split(b" ")[-1],
                    rows[j][::-1],
                    rows[i] + rows[j],
                )
            )
            d = bytearray(b"\n".join(rows))
        elif kind == 6:
            d += bytes(rng.choices(range(256), k=rng.choice((1, 3, 100))))
        else:
            d[k:k] = d[max(0, k - 50) : k]
        yield bytes(d)


@pytest.mark.parametrize("n", [300, pytest.param(10 * TEXTS, marks=pytest.mark.slow)])
def test_mutants_of_a_file_are_read_or_refused(n, shared_data):
    real = shared_data / "vocab/tiktoken/r50k_base.tiktoken"
    data = b"".join(real.read_bytes().splitlines(True)[:600]) if real.is_file() else TOY
    original, n_read = read_ranks(data), 0
    for mutant in mutants(data, n, n):
        looks_like_ranks(mutant)
        try:
            ranks = read_ranks(mutant)
        except ValueError as e:
            assert str(e).startswith("the rank file"), e
            continue
        n_read += 1
        assert (
            read_ranks(table(ranks)) == ranks
            and set(map(type, ranks)) == {bytes}
            and len(set(ranks.values())) == len(ranks)
        )
        try:
            parts = read_tiktoken(mutant, pattern="gpt2")
        except ValueError as e:
            assert str(e).startswith("the "), e
            continue
        assert ranks == original or len(ranks) != len(original) or parts_to_ranks(parts)[0] == ranks
    assert 0 < n_read < n // 2


# ---- calls ----


def toy(special=None, pattern="r50k") -> Tokenizer:
    return tokenizer(read_tiktoken(TOY, pattern=pattern, special_tokens=special or {}))


def test_errors_of_calls():
    tok = toy({"<s>": 258})
    with pytest.raises(
        ValueError, match=r"byte 0xc3 at offset 1 of their 2 bytes .*pass ids of whole characters"
    ):
        decode_with_offsets(tok, [97, 0xC3])
    with pytest.raises(KeyError, match="ids must be from 0 to 258 in this vocabulary of 259 pieces, got 259"):
        decode_single_token_bytes(tok, 259)
    with pytest.raises(KeyError, match="text_or_bytes must .*got 'pug'"):
        encode_single_token(tok, "pug")
    with pytest.raises(ValueError, match="spells the special token '<s>' at position 1"):
        encode_with_unstable(tok, "x<s>")
    with pytest.raises(ValueError, match="not an added token"):
        encode_with_unstable(tok, "x", allowed_special={"<t>"})
    with pytest.raises(ValueError, match="lone surrogate"):
        encode_ordinary(tok, "x\ud800")
    assert encode_ordinary(tok, "x\ud800", errors="replace") == [120, 0xEF, 0xBF, 0xBD]
    words = Tokenizer.train(["hug hugs"] * 3, vocab_size=20, algorithm="wordpiece")
    for call in (lambda: token_byte_values(words), lambda: encode_with_unstable(words, "hug")):
        with pytest.raises(ValueError, match="byte-level BPE"):
            call()
    assert encode_single_token(words, words.id2piece[-1]) == len(words.id2piece) - 1
    ids = words.encode("hug hugs")
    assert b"".join(decode_tokens_bytes(words, ids)) != words.decode_bytes(ids)  # spaces stand between pieces
    with pytest.raises(ValueError, match="encode with align"):
        decode_with_offsets(words, ids)
    for invalid in (5, None, "ab", b"ab", {97}, [True], [1.5], [[97]], [None]):
        for call in (decode_tokens_bytes, decode_with_offsets):
            with pytest.raises(ValueError, match="ids"):
                call(tok, invalid)
    for invalid in (5, None, ["hug"], 1.5):
        with pytest.raises(ValueError, match="a token must be str or bytes, got"):
            encode_single_token(tok, invalid)
    assert (
        decode_with_offsets(tok, iter([257, 97])) == decode_with_offsets(tok, (257, 97)) == ("huga", [0, 3])
    )
    assert [
        encode_single_token(tok, t)
        for t in (b"hug", bytearray(b"hug"), memoryview(b"hug"), type("S", (str,), {})("hug"))
    ] == [257] * 4
    assert encode_single_token(tok, b"\xff") == 255 and encode_single_token(tok, "<s>") == 258
    assert decode_with_offsets(tok, []) == ("", []) and decode_tokens_bytes(tok, []) == []


def test_what_is_known_of_tokens_follows_added_ones():
    tok = toy()
    assert len(token_byte_values(tok)) == 258
    tok.add_tokens(["hug"], special=True)
    assert b"hug" not in token_byte_values(tok) and len(token_byte_values(tok)) == 257
    tok = tokenizer(
        read_tiktoken(table(BYTES | {b"he": 256, b"ll": 257, b"hell": 258, b"hello": 259}), pattern="r50k")
    )
    tok.add_tokens(["hel"])  # found in every text, also in what is tried as a completion
    assert encode_with_unstable(tok, "ahe")[1] == [[97, 256], [97, 260]]
    copy = pickle.loads(pickle.dumps(tok))
    assert copy == tok and encode_with_unstable(copy, "ahe") == encode_with_unstable(tok, "ahe")


def test_stable_ids_and_completions_hold_what_they_promise():
    tok = toy({"<s>": 258})
    for text in ["h", "hu", "x hu", "<s>", "<s>hu", " ", "a  ", "é"]:
        stable, completions = encode_with_unstable(tok, text, allowed_special="all")
        assert text.encode().startswith(tok.decode_bytes(stable))
        assert all(tok.decode_bytes([*stable, *more]).startswith(text.encode()) for more in completions)
        assert bool(completions) == (not text.endswith("<s>"))


def test_parts_are_equal_and_decoders_are_bytes():
    parts = read_tiktoken(TOY, pattern="r50k")
    assert (
        parts == read_tiktoken(TOY, pattern="r50k")
        and parts.decoder == ByteLevelDecoder()
        and parts.model.ignore_merges
    )
    assert (
        parts.source == TiktokenSource(None, tiktoken_format.PATTERNS["r50k"])
        and parts.normalizer is parts.post_processor is None
    )
    assert read_tiktoken(TOY, pattern="r50k", name="toy").source.name == "toy"


# ---- folders with a rank file and a config ----

KIMI_CONFIG = {
    "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
    "tokenizer_class": "TikTokenTokenizer",
    "bos_token": "[BOS]",
    "eos_token": "[EOS]",
    "added_tokens_decoder": {
        str(258 + i): {"content": t, "special": True}
        for i, t in {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 254: "[UNK]", 255: "[PAD]"}.items()
    },
}


def folder_of(tmp_path, ranks: bytes, config: dict, name: str = "tiktoken.model"):
    (tmp_path / name).write_bytes(ranks)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def kimi_pattern():
    "As Kimi's tokenization_kimi.py spells it."
    upper, lower, suffix = (
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    )
    head = r"[^\r\n\p{L}\p{N}]?"
    return "|".join(
        [
            r"[\p{Han}]+",
            head + upper + "*" + lower + "+" + suffix,
            head + upper + "+" + lower + "*" + suffix,
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    )


@pytest.mark.peers
def test_a_folder_of_kimi_is_read_as_its_program_reads_it(tmp_path, tiktoken):
    tok = Tokenizer.load(folder_of(tmp_path, TOY, KIMI_CONFIG))
    special = {t.content: i for t, i in tok.added_tokens}
    assert len(special) == 258 and [
        special[t] for t in ("[BOS]", "<|reserved_token_261|>", "[PAD]", "<|reserved_token_515|>")
    ] == [258, 261, 513, 515]
    theirs = tiktoken.Encoding(
        "kimi", pat_str=kimi_pattern(), mergeable_ranks=read_ranks(TOY), special_tokens=special
    )
    for text in [
        "中文English混合",
        "汉字abc 北京市 Pascal",
        "IT'S 1234567 ok!\r\n  x",
        *generated(150, 8, ["[BOS]", "<|im_end|>"]),
    ]:
        assert tok.encode(text) == theirs.encode_ordinary(text), text
        assert tok.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all"), text


def test_a_config_and_ranks_that_do_not_fit_are_refused(tmp_path, shared_file):
    other = KIMI_CONFIG | {"added_tokens_decoder": {"300": {"content": "[BOS]", "special": True}}}
    with pytest.raises(
        ValueError, match=r"tokenizer_config\.json must .*got 300, so the two do not belong together"
    ):
        Tokenizer.load(folder_of(tmp_path, TOY, other))
    llama4 = {
        "tokenizer_class": "PreTrainedTokenizer",
        "added_tokens_decoder": {
            str(258 + i): {"content": t, "special": True}
            for i, t in enumerate(["<|begin_of_text|>", "<|end_of_text|>"])
        },
    }
    for config in (
        llama4,
        {},
        {"auto_map": {"AutoTokenizer": ["tokenization_other.TikTokenTokenizer", None]}},
    ):
        with pytest.raises(ValueError, match="pattern must be given .*got None"):
            Tokenizer.load(folder_of(tmp_path, TOY, config))
    assert Tokenizer.load(folder_of(tmp_path, TOY, llama4), pattern="o200k").encode("hug") == [257]
    with pytest.raises(
        ValueError,
        match=r"tokenizer_config\.json must .*got Kimi's",
    ):
        Tokenizer.load(
            folder_of(tmp_path, shared_file("vocab/tiktoken/r50k_base.tiktoken").read_bytes(), KIMI_CONFIG)
        )


def test_published_ranks_of_llama_4_and_kimi_are_known_by_their_hash(tmp_path, monkeypatch):
    "Neither file is at hand, so a small one takes its place."
    for name, split in (("llama4", "o200k"), ("kimi-k2", "kimi")):
        with monkeypatch.context() as patch:
            patch.setitem(
                PUBLISHED,
                name,
                PUBLISHED[name]._replace(files=(("tokenizer.model", hashlib.sha256(TOY).hexdigest()),)),
            )
            config = {"added_tokens_decoder": {"258": {"content": "<|begin_of_text|>", "special": True}}}
            tok = Tokenizer.load(folder_of(tmp_path, TOY, config, "tokenizer.model"))
            assert tok.source.name == name and [t.content for t, _ in tok.added_tokens] == [
                "<|begin_of_text|>"
            ]
            for text in ("中文English's 1234 x/\n\ny", "ÀÉé DON'T"):
                assert tok.pre_tokenizer.raw_pretokens(text) == byte_level(split).raw_pretokens(text)
    assert [
        (len(PUBLISHED[n].special_tokens), min(PUBLISHED[n].special_tokens.values()))
        for n in ("llama4", "kimi-k2")
    ] == [(2048, 200000), (258, 163584)]
    assert PUBLISHED["llama4"].special_tokens["<|reserved_special_token_903|>"] == 202047


# ---- bytes that are no text, and surrogates ----


def some_bytes(rng):
    "Texts with bytes that are no text: cut off, inside, surrogates, at the front."
    text = "".join(
        rng.choices(
            ["a", "ab", " ", "  ", "\n", "é", "실", "👍", "1", "'ll", "<|end|>", " tok", "!"],
            k=rng.randrange(7),
        )
    ).encode()
    invalid = rng.choice(
        [b"\xed", b"\xff", b"\x80", b"\xe4\xbd", b"\xed\xa0\xbd", b"\xf4\x90\x80\x80", b"\xc0\xaf", b""]
    )
    cut = rng.randrange(len(text) + 1)
    return text[:cut] + invalid + text[cut:] if rng.random() < 0.7 else text[:cut]


MADE = BYTES | {
    t: 256 + k
    for k, t in enumerate(
        (
            b"ab",
            b"\xec\x8b",
            b"\xec\x8b\xa4",
            b"\xa4\xed",
            b"  ",
            b" t",
            b"ok",
            b" tok",
            b"\xf0\x9f",
            b"ll",
            b"'ll",
            b"\n\n",
            b"\xffa",
        )
    )
}


@pytest.mark.peers
@pytest.mark.parametrize("pattern", ["r50k", "cl100k", "o200k"])
def test_bytes_have_tiktokens_ids(pattern):
    "As its `_encode_bytes`, for text, for what begins as text, and for bytes that never were; the ids spell the bytes."
    pytest.importorskip("tiktoken")
    rng = random.Random(18)
    tok = tokenizer(read_tiktoken(table(MADE), pattern=pattern, special_tokens={"<|end|>": 300}))
    theirs = to_tiktoken(tok)
    for data in [
        b"\xec\x8b\xa4\xed",
        b"\xff",
        b"",
        b"a \xff",
        b"a  \n \xe4",
        *(some_bytes(rng) for _ in range(1500)),
    ]:
        want = theirs._encode_bytes(data)
        assert tok.encode(data, errors="bytes") == want == tok.encode_ordinary(data, errors="bytes"), data
        assert tok.decode_bytes(want) == data and tok.decode(want) == theirs.decode(want)
        for errors in ("replace", "ignore"):
            assert (
                tok.decode(want, errors=errors)
                == theirs.decode(want, errors=errors)
                == tok.decode_batch([want], errors=errors)[0]
            )
        try:
            assert tok.decode(want, errors="strict").encode() == data
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                theirs.decode(want, errors="strict")


@pytest.mark.peers
def test_surrogates_have_tiktokens_ids():
    "Those that make a pair are joined, lone ones replaced, where that is asked for; tiktoken does so unasked."
    pytest.importorskip("tiktoken")
    rng = random.Random(19)
    tok = tokenizer(read_tiktoken(table(MADE), pattern="r50k"))
    theirs = to_tiktoken(tok)
    for _ in range(500):
        text = "".join(rng.choices(["\ud83d", "\udc4d", "a", "é", "👍", "\ufeff", " "], k=rng.randrange(7)))
        want = theirs.encode_ordinary(text)
        assert (
            tok.encode(text, errors="replace")
            == want
            == tok.encode_array(text, errors="replace").tolist()
            == tok.align(text, errors="replace").ids
        )


def test_bytes_that_are_no_text_in_every_call():
    "One text, many, arrays, pieces; special tokens in front of the first bad byte; dropout."
    tok = tokenizer(read_tiktoken(table(MADE), pattern="r50k", special_tokens={"<|end|>": 300}))
    bad = b"a tok<|end|>ab\xff ab\n"
    want = tok.encode(bad, errors="bytes")
    assert tok.decode_bytes(want) == bad
    assert tok.encode_array(bad, errors="bytes").tolist() == want and [
        tok.id2piece[i] for i in want
    ] == tok.tokenize(bad, errors="bytes")
    assert tok.encode_batch([bad, "é", b"ab", bytearray(bad)], errors="bytes", threads=2).tolist() == [
        want,
        tok.encode("é"),
        tok.encode("ab"),
        want,
    ]
    two = tok.encode(bad, b"ab\xff", errors="bytes")
    assert two == want + tok.encode(b"ab\xff", errors="bytes") and tok.encode_batch(
        [bad, "a"], [b"ab\xff", b"b"], errors="bytes"
    ).tolist() == [two, tok.encode("a", "b")]
    found = tok.encode(bad, errors="bytes", allowed_special="all")
    assert found.count(300) == 1 and tok.decode_bytes(found) == bad
    with pytest.raises(ValueError, match="special token"):
        tok.encode(bad, errors="bytes", disallowed_special="all")
    drawn = [tok.encode(bad, errors="bytes", dropout=0.5, seed=k) for k in range(9)]
    assert (
        drawn == [tok.encode(bad, errors="bytes", dropout=0.5, seed=k) for k in range(9)]
        and {*map(tok.decode_bytes, drawn)} == {bad}
        and len({*map(tuple, drawn)}) > 1
    )


def spelled(data, encoding):
    "The bytes at the places of tokens."
    return [data[a:b] for a, b in encoding.offsets]


def test_tokens_of_bytes_have_their_places_in_them():
    "With the ids of `encode`, and for text within the places that it has as text."
    rng = random.Random(20)
    tok = tokenizer(read_tiktoken(table(MADE), pattern="r50k", special_tokens={"<|end|>": 300}))
    for allowed in ("all", ()):
        for data in [
            b"",
            b"a tok\xff",
            "é 你".encode(),
            b"<|end|>\xff",
            b"a <|end|>  \n\xe4\xbd",
            *(some_bytes(rng) for _ in range(600)),
        ]:
            e = tok.align(data, errors="bytes", allowed_special=allowed)
            assert e.ids == tok.encode(data, errors="bytes", allowed_special=allowed), data
            assert (
                spelled(data, e) == [tok.decode_bytes([i]) for i in e.ids]
                and b"".join(spelled(data, e)) == data
            )
            assert e.offsets_bytes == e.offsets and sorted(e.word_ids) == e.word_ids
            with suppress(UnicodeDecodeError):
                text = tok.align(data.decode(), errors="bytes", allowed_special=allowed)
                assert text == tok.align(data.decode(), allowed_special=allowed) and (
                    e.pieces,
                    e.word_ids,
                ) == (text.pieces, text.word_ids)
                assert all(a <= x <= y <= b for (a, b), (x, y) in zip(text.offsets_bytes, e.offsets))


@pytest.mark.parametrize("kind", ["spaces", "lower", "nfc", "dropout", "framed"])
def test_places_in_bytes_in_every_pipeline(kind):
    rng = random.Random(kind)
    tok = tokenizer(read_tiktoken(table(MADE), pattern="r50k", special_tokens={"<|end|>": 300}))
    changed = {
        "spaces": {"pre_tokenizer": ByteLevel(add_prefix_space=True)},
        "lower": {"normalizer": "lowercase"},
        "nfc": {"normalizer": "nfc"},
        "dropout": {"model": replace(tok.model, dropout=0.5)},
        "framed": {"post_processor": RobertaProcessing(("<|end|>", 300), ("<|end|>", 300))},
    }[kind]
    tok = Tokenizer(**tok.parts._asdict() | changed)
    words = [
        b"tok",
        b"A",
        b" ",
        b"\n",
        "É".encode(),
        "e\u0301".encode(),
        "İ".encode(),
        "你".encode(),
        b"\xff",
        b"\xe4",
        b"<|end|>",
    ]
    for n in range(300):
        data = b"".join(rng.choices(words, k=rng.randrange(8)))
        options = {"errors": "bytes", "seed": n} if kind == "dropout" else {"errors": "bytes"}
        e = tok.align(data, **options)
        assert e.ids == tok.encode(data, **options), data
        inside = [at for at, special in zip(e.offsets, e.special_tokens_mask) if not special]
        assert all(0 <= a <= b <= len(data) for a, b in inside) and [a for a, _ in inside] == sorted(
            a for a, _ in inside
        )
        if kind == "nfc" and "e\u0301".encode() in data:
            continue  # a composed character has the place of its first one
        covered = {k for a, b in inside for k in range(a, b)}
        assert all(k in covered or data[k : k + 1].isspace() for k in range(len(data)))


def test_places_in_bytes_of_pairs_words_and_batches():
    tok = tokenizer(read_tiktoken(table(MADE), pattern="r50k"))
    good, bad = "é tok", b"a tok\xff"
    e = tok.align(good, bad, errors="bytes")
    assert e.ids == tok.encode(good, bad, errors="bytes")
    n = len(tok.encode(good))
    assert (
        e.offsets[:n] == tok.align(good).offsets
        and e.offsets_bytes[:n] == tok.align(good).offsets_bytes
        and e.offsets[n:] == e.offsets_bytes[n:] == tok.align(bad, errors="bytes").offsets
    )
    rows = tok.align_batch([bad, good, good.encode(), bytearray(bad), memoryview(bad)], errors="bytes")
    assert [r.ids for r in rows] == tok.encode_batch(
        [bad, good, good.encode(), bytearray(bad), memoryview(bad)], errors="bytes"
    ).tolist()
    assert rows[0] == rows[3] == rows[4] == tok.align(bad, errors="bytes")
    assert rows[1] == tok.align(good) and rows[2].offsets[:2] == [(0, 1), (1, 2)]
    words = tok.align([good, bad], is_pretokenized=True, errors="bytes")
    assert words.offsets[n:] == tok.align(bad, errors="bytes").offsets and words.word_ids == [0] * n + [1] * (
        len(words) - n
    )
    cut = Tokenizer(**tok.parts._asdict() | {"truncation": Truncation(2), "padding": Padding(3)})
    short = cut.align(bad, errors="bytes")
    assert (
        short.ids == cut.encode(bad, errors="bytes")
        and spelled(bad, short)[:2] == [b"a", b" tok"]
        and len(short.overflowing) == 1
    )
    assert spelled(bad, short.overflowing[0])[0] == b"\xff"


def test_a_suffix_of_words_is_no_byte():
    "What is before bytes that are no text is joined with them without the mark of its end."
    pieces = [
        *(BYTE2CHAR[b] for b in range(256)),
        *(f"{BYTE2CHAR[b]}</w>" for b in range(256)),
        "lo",
        "w</w>",
        "low</w>",
    ]
    model = BPE(
        {p: i for i, p in enumerate(dict.fromkeys(pieces))},
        [("l", "o"), ("lo", "w</w>")],
        end_of_word_suffix="</w>",
    )
    tok = Tokenizer(model, pre_tokenizer=byte_level("gpt2"))
    e = tok.align(b"low low\xff", errors="bytes")
    assert e.pieces == ["low</w>", "Ġ", "lo", "w", "ÿ</w>"] == tok.tokenize(b"low low\xff", errors="bytes")
    assert spelled(b"low low\xff", e) == [b"low", b" ", b"lo", b"w", b"\xff"]


@pytest.mark.slow
def test_long_bytes_that_are_no_text():
    "Where the kernels work, and a bad byte behind."
    tok, long = tokenizer(read_tiktoken(table(MADE), pattern="r50k")), b"ab tok " * 60_000
    want = tok.encode(long)
    assert tok.encode(long, errors="bytes") == want and tok.encode_batch(
        [long, b"\xff"], errors="bytes"
    ).tolist() == [want, [255]]
    assert tok.decode_bytes(tok.encode(long + b"\xff\n", errors="bytes")) == long + b"\xff\n"


def test_bytes_that_are_no_text_are_refused_without_bytes():
    words = Tokenizer.train(["a b"], algorithm="wordpiece", vocab_size=9)
    for call in (
        lambda: words.encode(b"a\xff", errors="bytes"),
        lambda: words.encode_batch([b"a"], errors="bytes"),
        lambda: words.encode("a", errors="bytes"),
        lambda: words.align(b"a\xff", errors="bytes"),
        lambda: words.align("a", errors="bytes"),
        lambda: words.align_batch(["a"], errors="bytes"),
    ):
        with pytest.raises(ValueError, match="load a tokenizer of that kind"):
            call()
    tok = tokenizer(read_tiktoken(table(), pattern="r50k"))
    for call in (
        lambda: tok.encode("\ud83d\udc4d"),
        lambda: tok.encode("\ud83d", errors="bytes"),
        lambda: tok.align("\ud83d", errors="bytes"),
    ):
        with pytest.raises(ValueError, match="lone surrogate"):
            call()
    for wrong in (5, None, ["a"]):
        with pytest.raises(ValueError, match="a text must be str"):
            tok.encode(wrong, errors="bytes")
    with pytest.raises(ValueError, match="a text must be str or UTF-8 bytes, got int"):
        tok.align(5, errors="bytes")
    with pytest.raises(ValueError, match="special token"):
        tokenizer(read_tiktoken(table(MADE), pattern="r50k", special_tokens={"<|end|>": 300})).align(
            b"<|end|>\xff", errors="bytes", allowed_special=(), disallowed_special="all"
        )
    with pytest.raises(ValueError, match="errors must .*got 'bites'"):
        tok.encode(b"\xff", errors="bites")
    few = Tokenizer(BPE({"a": 0, "b": 1}, []), pre_tokenizer=byte_level("gpt2"))
    with pytest.raises(ValueError, match="the vocabulary must have a piece for the byte 0xff, got none"):
        few.encode(b"a\xff", errors="bytes")
    with pytest.raises(ValueError, match="the vocabulary must have a piece for the byte 0xff, got none"):
        few.align(b"a\xff", errors="bytes")


# ---- names of models ----


@pytest.mark.peers
def test_models_have_tiktokens_encodings(tiktoken):
    "All names and beginnings of its table, and names made of them."
    import tiktoken.model as theirs

    assert MODEL_ENCODINGS == theirs.MODEL_TO_ENCODING and MODEL_BEGINNINGS == theirs.MODEL_PREFIX_TO_ENCODING
    names, rng = [*theirs.MODEL_TO_ENCODING, *theirs.MODEL_PREFIX_TO_ENCODING], random.Random(21)
    for name in [
        *names,
        *(
            rng.choice(names) + rng.choice(["-2024-05-13", "-", ":acme", "x", "", "-mini"])
            for _ in range(500)
        ),
        *(rng.choice(names)[:-1] for _ in range(100)),
        "",
        "GPT-4",
    ]:
        try:
            want = theirs.encoding_name_for_model(name)
        except KeyError:
            with pytest.raises(KeyError, match="model must be one whose encoding is known, got"):
                encoding_name_for_model(name)
        else:
            assert encoding_name_for_model(name) == want, name


def test_a_model_is_loaded_by_its_name(tmp_path, monkeypatch):
    "Where there is no file of that name; the encoding's file comes from the cache, as for the encoding itself."
    address = "https://example.org/toy.tiktoken"
    monkeypatch.setitem(
        PUBLISHED,
        "o200k_base",
        PUBLISHED["o200k_base"]._replace(
            files=((address, hashlib.sha256(table(MADE)).hexdigest()),),
            special_tokens={"<|endoftext|>": 300},
            n_vocab=301,
        ),
    )
    (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(table(MADE))
    want = Tokenizer.load("o200k_base", cache_dir=tmp_path, download=False)
    for name in ("gpt-4o", "gpt-4o-2024-05-13", "o1", "ft:gpt-4o:acme"):
        tok = Tokenizer.load(name, cache_dir=tmp_path, download=False)
        assert (
            tok == want and tok.source.name == "o200k_base" and tok.encode("ab tok") == want.encode("ab tok")
        )
    with pytest.raises(FileNotFoundError, match="there is no file or folder gpt-9"):
        Tokenizer.load("gpt-9")
    Tokenizer.train(["a b"], vocab_size=257).save(tmp_path / "gpt-4o.json")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt-4o.json").rename(tmp_path / "gpt-4o")
    assert Tokenizer.load("gpt-4o").vocab_size == 257


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_vocabulary_with_holes_is_written_and_read(shared_file, tmp_path):
    "After surgery that keeps ids; tiktoken, where it is installed, gives the same ids."
    tok = Tokenizer.load(shared_file("vocab/tiktoken/r50k_base.tiktoken"))
    text = shared_file("corpus/english_small.txt").read_text(encoding="utf-8")[:20_000]
    small = tok.prune(20_000, [text[:8000]], renumber=False)
    assert max(small.piece2id.values()) > 40_000
    with pytest.warns(UserWarning, match="has no token for some ranks up to"):
        again = Tokenizer.load(small.save(tmp_path / "small.tiktoken"), pattern="r50k")
    ids = small.encode(text, allowed_special=())
    assert again.encode(text, allowed_special=()) == ids
    assert again.encode_batch([text, "x"], allowed_special=()).tolist()[0] == ids
    assert again.decode(ids) == text
    tiktoken = pytest.importorskip("tiktoken")
    theirs = tiktoken.Encoding(
        "small",
        pat_str=parts_to_ranks(small.parts)[1],
        mergeable_ranks=read_ranks(tmp_path / "small.tiktoken"),
        special_tokens={},
    )
    assert theirs.encode_ordinary(text) == ids
