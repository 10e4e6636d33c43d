"""The kernels give the ids of the engine, for every kind of tokenizer and however a text is cut: real files, corpora, batches, threads."""

from pathlib import Path

import numpy as np
import pytest
import seeds
from seeds import fresh
from tests.pipeline.test_align import generated

from subword_nb import Tokenizer
from subword_nb.pipeline import blocks
from subword_nb.pipeline.encoder import Engine, encode_general, encoder_of, choose_fast_path
from subword_nb.core.jit import available

pytestmark = pytest.mark.skipif(not available(), reason="there are no kernels without Numba")
REAL = [
    "gpt2/tokenizer.json",
    "roberta-base/tokenizer.json",
    "falcon/tokenizer.json",
    "whisper-tiny/tokenizer.json",
    "clip/tokenizer.json",
    "phi-3-mini/tokenizer.json",
    "t5-small/tokenizer.json",
    "pegasus/tokenizer.json",
    "barthez/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "bert-base-cased/vocab.txt",
    "bert-base-chinese/vocab.txt",
    "wordlevel-vulrepair",
    "derived/llama-2-legacy.tokenizer.json",
    "tiktoken/r50k_base.tiktoken",
    "tiktoken/cl100k_base.tiktoken",
    "tiktoken/o200k_base.tiktoken",
    "qwen/qwen.tiktoken",
    "t5-small/spiece.model",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "xlnet-base-cased",
    "chatglm-6b/ice_text.model",
    "sentencepiece/test_model.model",
]
WITH_KERNELS = {
    "gpt2",
    "roberta-base",
    "whisper-tiny",
    "phi-3-mini",
    "t5-small",
    "bert-base-uncased",
    "bert-base-cased",
    "bert-base-chinese",
    "tiktoken",
    "llama-2",
    "mistral-v1",
    "xlnet-base-cased",
}


def texts_for(seed: int) -> list[str]:
    n = seeds.TEXTS
    return generated(
        max(n // 4, 100),
        seed,
        [
            "<|endoftext|>",
            "</s>",
            "[SEP]",
            "<s>",
            "<pad>",
            "▁",
            "  ",
            "\n\n",
            "don't",
            "'re",
            "\u00a0",
            "\u3000",
        ],
    )


def exact(tok, text, **options):
    "The ids by the engine alone; its `encode` hands long texts over to the kernels."
    return encode_general(tok, text, **options)


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
        assert encoder_of(tok).bulk is not None, "this tokenizer should have a plan"
    texts = texts_for(len(name)) + ["", " ", "a" * 3000, " " * 500, "x y " * 300]
    expected = [exact(tok, t) for t in texts]
    for block in (1 << 18, 64):
        always.setattr(blocks.SIZES, "block", block)
        found = tok.encode_batch(texts).tolist()
        for text, a, b in zip(texts, found, expected):
            assert a == b, (name, block, text[:200])
    bare = [exact(tok, t, add_special_tokens=False, allowed_special=()) for t in texts]
    assert (
        tok.encode_batch(
            [t.encode() for t in texts], add_special_tokens=False, allowed_special=(), threads=2
        ).tolist()
        == bare
    )
    whole = "\n".join(texts)
    assert tok.encode(whole) == exact(tok, whole)
    assert tok.encode_array(whole, threads=2).tolist() == exact(tok, whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gpt2/tokenizer.json",
        "tiktoken/cl100k_base.tiktoken",
        "tiktoken/o200k_base.tiktoken",
        "bert-base-uncased/tokenizer.json",
        "t5-small/tokenizer.json",
        "t5-small/spiece.model",
        "llama-2/tokenizer.model",
    ],
)
@pytest.mark.parametrize("corpus", ["botchan.txt", "wagahaiwa_nekodearu.txt", "taylorswift.txt", "stress"])
def test_corpora(name, corpus, shared_file, shared_data, always):
    tok, path = loaded(shared_file, name), shared_data / "corpus" / corpus
    if not path.exists():
        pytest.skip(f"{corpus} is missing")
    for file in sorted(path.rglob("*.txt")) if path.is_dir() else [path]:
        text = file.read_bytes().decode("utf-8", "replace")[:100_000]
        expected = exact(tok, text)
        assert tok.encode(text) == expected
        lines = text.splitlines(True)[:1000]
        assert tok.encode_batch(lines, threads=2).tolist() == [exact(tok, t) for t in lines]


def small_tokenizers():
    corpus = [
        "the low light in rooms, isn't it? 12 34",
        "été, ça va 你好 🤗",
        "low lower lowest; they've 1,000 rooms",
    ] * 3
    for algorithm, options in [
        ("bpe", {}),
        ("bpe", {"pre_tokenizer": "cl100k"}),
        ("bpe", {"pre_tokenizer": "o200k"}),
        ("bpe", {"pre_tokenizer": r"\p{L}+|\d|\s+"}),
        ("char_bpe", {"pre_tokenizer": "metaspace", "unk_piece": "<unk>"}),
        ("wordpiece", {}),
        ("unigram", {}),
    ]:
        yield Tokenizer.train(
            corpus,
            algorithm=algorithm,
            vocab_size=330 if algorithm == "bpe" else 90,
            special_tokens=["<s>", "<unk>"],
            progress=False,
            **options,
        )


def test_trained_tokenizers_in_any_blocks(always):
    texts = list(generated(150, 3, ["<s>", "low", "light", "'s", "1", "\n"]))
    for tok in small_tokenizers():
        expected = [exact(tok, t, allowed_special="all") for t in texts]
        for block in (5, 1 << 18):
            always.setattr(blocks.SIZES, "block", block)
            assert tok.encode_batch(texts, allowed_special="all").tolist() == expected
        assert tok.encode_array(" ".join(texts), threads=3).tolist() == exact(tok, " ".join(texts))


def recipes():
    "(algorithm, options) of `Tokenizer.train`, all of which are to have a plan."
    from subword_nb.text.normalizers import BertNormalizer
    from subword_nb.text.pretokenizers import Metaspace
    from subword_nb.text.splitters import Split

    for pre in (
        "default",
        "gpt2",
        "cl100k",
        "o200k",
        "llama3",
        "qwen2",
        "whitespace",
        "whitespace_split",
        "bert",
        "metaspace",
        r"\p{L}+|\d|\s+",
    ):
        yield "bpe", {"pre_tokenizer": pre}
    for norm in ("nfc", "nfkc", "lowercase", "bert"):
        yield "bpe", {"normalizer": norm}
    for pre in ("default", "whitespace_split", "bert", "metaspace", Metaspace("▁", "first"), Split("gpt2")):
        for options in (
            {"unk_piece": "<unk>"},
            {"byte_fallback": True},
            {"end_of_word_suffix": "</w>", "unk_piece": "<unk>"},
            {"continuing_subword_prefix": "##", "unk_piece": "<unk>"},
            {"unk_piece": "<unk>", "fuse_unk": True},
            {"unk_piece": "<unk>", "ignore_merges": True},
        ):
            yield "char_bpe", {"pre_tokenizer": pre, **options}
    for pre in ("default", "whitespace", "whitespace_split", "metaspace"):
        for norm in ("default", None, "lowercase", "nfkc", BertNormalizer(lowercase=False)):
            yield "wordpiece", {"pre_tokenizer": pre, "normalizer": norm}
            yield "wordlevel", {"pre_tokenizer": pre, "normalizer": norm}
    for pre in (
        "default",
        "whitespace",
        "whitespace_split",
        "bert",
        "gpt2",
        Metaspace(),
        Metaspace("▁", "first"),
        Metaspace("▁", "never"),
    ):
        for options in ({}, {"byte_fallback": True}, {"fuse_unk": False}, {"user_defined": ["low"]}):
            yield "unigram", {"pre_tokenizer": pre, **options}
    for norm in ("nfkc", "lowercase", "bert"):
        for pre in ("default", Metaspace(), "whitespace_split"):
            yield "unigram", {"pre_tokenizer": pre, "normalizer": norm}


ODD = [
    "<s>",
    "low",
    "light",
    " low",
    "▁",
    " ▁",
    "▁▁",
    "  ",
    "\n",
    "İ",
    "ſ",
    "\u212a",
    "ß",
    "\u0345",
    "ᄒ",
    "ᅡ",
    "\u200b",
    "\x00",
    "\u0378",
    "\ue000",
    "ខ្មែរ",
    "'s",
]


@pytest.mark.parametrize("algorithm, options", list(recipes()), ids=str)
def test_what_is_trained_has_a_plan(algorithm, options, always):
    corpus = [
        "the low light in rooms, isn't it? 12 34",
        "été, ça va 你好 🤗",
        "low lower lowest; they've 1,000 rooms",
    ] * 3
    size = {"bpe": 330}.get(algorithm, 90) + 256 * ("byte_fallback" in options)
    tok = Tokenizer.train(
        corpus, algorithm=algorithm, vocab_size=size, special_tokens=["<s>"], progress=False, **options
    )
    for special in ("all", ()):
        assert encoder_of(tok, allowed_special=special).bulk is not None, (
            f"{algorithm} with {options} should have a plan"
        )
    texts = [
        *generated(40, 5, ODD),
        "",
        " ",
        "▁",
        " a",
        "▁a",
        "  ▁ a ",
        "low ▁light",
        "<s>low",
        "<s> low<s>▁low <s>",
    ]
    expected = [exact(tok, t, allowed_special="all") for t in texts]
    for block in (7, 1 << 18):
        always.setattr(blocks.SIZES, "block", block)
        assert tok.encode_batch(texts, allowed_special="all").tolist() == expected
        assert tok.encode_array(" ".join(texts), threads=2, allowed_special="all").tolist() == exact(
            tok, " ".join(texts), allowed_special="all"
        )


def test_text_between_added_tokens_is_not_searched_again(always, shared_file):
    "A part that holds ▁ is not for kernels; a token that touched a word before it was cut off is none."
    from subword_nb.pipeline.vocab import AddedToken

    tok = Tokenizer.load(shared_file("vocab/sentencepiece/test_ja_model.model"))
    tok.add_tokens(
        [
            AddedToken("ab", single_word=True, lstrip=True, rstrip=True, normalized=False, special=False),
            AddedToken("abc", lstrip=True, normalized=False, special=False),
        ]
    )
    assert encoder_of(tok).bulk.spans.forbidden_bytes
    texts = ["abcab▁", "abcab", "ab▁", *generated(300, 6, ["ab", "abc", "c", "▁", " ", "日本"])]
    assert tok.encode_batch(texts).tolist() == [exact(tok, t) for t in texts]


def test_words_that_may_be_joined_have_no_plan():
    "Where pieces reach over spaces, or sums go over whole texts, the engine encodes."
    from subword_nb.text.pretokenizers import Metaspace

    corpus = ["the low light in the low light"] * 3
    for algorithm, options in [
        ("bpe", {"pre_tokenizer": None}),
        ("char_bpe", {"pre_tokenizer": None, "unk_piece": "<unk>"}),
        ("unigram", {"pre_tokenizer": Metaspace("▁", "always", split=False)}),
        ("unigram", {"pre_tokenizer": Metaspace("▁", "first"), "normalizer": "nfkc"}),
    ]:
        tok = Tokenizer.train(
            corpus,
            algorithm=algorithm,
            vocab_size=270 if algorithm == "bpe" else 60,
            progress=False,
            **options,
        )
        assert encoder_of(tok).bulk is None


@pytest.mark.peers
def test_marks_as_the_peers_have_them(tmp_path, always):
    "Unigram behind each way to write spaces as ▁, in files of Hugging Face's library."
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import Regex, models, normalizers as n, pre_tokenizers as p

    rng = fresh(0)
    pieces = [
        ("<unk>", 0.0),
        ("▁", -2.0),
        *((c, -4.0 - k / 8) for k, c in enumerate("abcdelowightrms,.1é你")),
        ("▁low", -3.0),
        ("low", -5.0),
        ("▁l", -3.5),
        ("ight", -4.25),
        ("▁light", -3.75),
        ("oo", -4.5),
        ("ms", -4.75),
    ]
    marks = [n.Prepend("▁"), n.Replace(" ", "▁")]
    split = p.Split("▁", "merged_with_next")
    kinds = [
        (n.Sequence(marks), split),
        (n.Sequence([n.NFKC(), n.Lowercase(), *marks]), split),
        (n.Replace(" ", "▁"), p.Split(Regex("▁"), "merged_with_next")),
        (n.NFKC(), p.Metaspace()),
        (n.Sequence([n.NFD(), n.StripAccents()]), p.Metaspace(prepend_scheme="never")),
    ]
    kinds += [(None, p.Metaspace(prepend_scheme=s)) for s in ("always", "first", "never")]
    texts = [
        "".join(rng.choices([*"abcdelow ,.1é你", " low", " light", *ODD], k=rng.randrange(1, 14)))
        for _ in range(2000)
    ]
    for k, (norm, pre) in enumerate(kinds):
        theirs = tokenizers.Tokenizer(models.Unigram(pieces, 0, False))
        theirs.pre_tokenizer = pre
        if norm:
            theirs.normalizer = norm
        theirs.add_special_tokens(["<s>"])
        theirs.save(str(tmp_path / "tokenizer.json"))
        tok = Tokenizer.load(tmp_path / "tokenizer.json")
        assert encoder_of(tok).bulk is not None, k
        expected = [e.ids for e in theirs.encode_batch(texts)]
        for block in (7, 1 << 18):
            always.setattr(blocks.SIZES, "block", block)
            for text, a, b in zip(texts, tok.encode_batch(texts).tolist(), expected):
                assert a == b, (k, block, text)


def test_every_offset_modulo_64(always):
    tok = next(small_tokenizers())
    text = "say'st the low  light\r\n in 12345 rooms… été 你好!! they'll\n\n  x" * 3
    for shift in range(64):
        for head in ("a" * shift, " " * shift, "é" * (shift // 2)):
            assert tok.encode(head + text) == exact(tok, head + text)


def test_threads_share_a_tokenizer(always):
    from concurrent.futures import ThreadPoolExecutor

    tok = next(small_tokenizers())
    texts = [t * 20 for t in generated(40, 5, ["low", "light"])]
    expected = [exact(tok, t) for t in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(tok.encode, texts)) == expected
    assert len(encoder_of(tok).bulk.tables) <= 8


def test_a_memory_map_is_read_in_place(tmp_path, always):
    import mmap

    tok = next(small_tokenizers())
    path = Path(tmp_path / "text.txt")
    path.write_text("the low light " * 500, encoding="utf-8")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert tok.encode_array(mapped).tolist() == exact(tok, "the low light " * 500)


def test_limits_and_padding_in_bulk(always):
    from subword_nb.pipeline.encoding import Padding, Truncation

    tok = next(small_tokenizers())
    texts = generated(60, 9)
    tok.truncation, tok.padding = Truncation(5), Padding()
    assert tok.encode_batch(texts).tolist() == Engine.encode_batch(tok, texts).tolist()


def test_a_text_with_many_tokens_between(always):
    tok = next(small_tokenizers())
    rng = fresh(0)
    text = "".join(rng.choice(["low light", "<s>", " the rooms", "<", "s>", "\n"]) for _ in range(2000))
    assert tok.encode(text, allowed_special="all") == exact(tok, text, allowed_special="all")
    assert tok.encode(text, allowed_special=()) == exact(tok, text, allowed_special=())


def test_tokens_in_long_bytes(always):
    from subword_nb.pipeline.vocab import AddedToken

    base = next(small_tokenizers())
    rng = fresh(1)
    for flags in (
        {},
        {"lstrip": True},
        {"rstrip": True},
        {"single_word": True},
        {"lstrip": True, "rstrip": True, "single_word": True},
    ):
        tok = Tokenizer(**base.parts._replace(allowed_special="all")._asdict())
        tok.add_tokens(
            [
                AddedToken("<s>x", special=True, normalized=False, **flags),
                AddedToken("<s>", special=True, normalized=False),
                AddedToken("<t>", special=True, normalized=False, **flags),
            ]
        )
        for _ in range(4):
            text = "".join(
                rng.choice(
                    [
                        "low light",
                        "<s>",
                        "<s>x",
                        " <t> ",
                        "<",
                        "\u3000",
                        "\u00a0 ",
                        "é",
                        "你好",
                        "\n",
                        "the rooms " * 40,
                        "x",
                    ]
                )
                for _ in range(500)
            )
            assert tok.encode_array(text.encode()).tolist() == exact(tok, text)
            assert tok.encode_batch([text.encode(), b"", text.encode()[:5000].rsplit(b" ", 1)[0]]).tolist()[
                :2
            ] == [exact(tok, text), []]


def test_a_token_lies_across_any_cut(always):
    "Threads and blocks cut texts only where no token is cut."
    from subword_nb.pipeline.encoder import encode_blocks
    from subword_nb.pipeline.vocab import AddedToken

    for base in small_tokenizers():
        tok = Tokenizer(**base.parts._replace(allowed_special="all")._asdict())
        tok.add_tokens(
            [
                AddedToken("low light", special=True, normalized=False),
                AddedToken("你好你好你好你好", special=True, normalized=False),
            ]
        )
        text = "the rooms " * 10 + "low light" + " in rooms" * 10 + "你好你好你好你好" + " in rooms" * 9
        for t in (text, text[95:], "x low light y " * 9, "a b 你好你好你好你好 low light " * 4):
            expected = encode_general(tok, t)
            for block in (5, 64):
                always.setattr(blocks.SIZES, "block", block)
                for n in (1, 4):
                    assert (
                        tok.encode_array(t, threads=n).tolist()
                        == tok.encode_array(t.encode(), threads=n).tolist()
                        == expected
                    )
                for size in (1, 7, 100):
                    data = t.encode()
                    assert [
                        i
                        for ids in encode_blocks(tok, (data[a : a + size] for a in range(0, len(data), size)))
                        for i in ids.tolist()
                    ] == expected


def test_what_goes_on_behind_a_token_opens_nothing(always):
    "A stream that is cut before a token does not begin anew."
    from subword_nb.text.pretokenizers import ByteLevel, Metaspace
    from subword_nb.pipeline.encoder import encode_blocks

    tokenizers = list(small_tokenizers())
    for base, pre in (
        (tokenizers[0], ByteLevel(add_prefix_space=True)),
        (tokenizers[4], Metaspace("▁", "first", split=True)),
        (tokenizers[4], Metaspace("▁", "always", split=True)),
    ):
        tok = Tokenizer(**base.parts._replace(allowed_special="all")._asdict())
        tok.pre_tokenizer = pre
        for text in (
            "low light\nin rooms " * 30 + "<s>low<s> light",
            "<s>low light",
            "low<s>",
            "low light <s> low",
        ):
            data = text.encode()
            for size in (3, 40, 10_000):
                assert [
                    i
                    for ids in encode_blocks(tok, [data[a : a + size] for a in range(0, len(data), size)])
                    for i in ids.tolist()
                ] == encode_general(tok, text), (pre, text[:40], size)


def test_errors_are_mended_behind_any_pipeline(always):
    "Bytes that are not UTF-8, where texts are normalized or hold tokens."
    base = next(small_tokenizers())
    normalized = Tokenizer(**base.parts._replace(allowed_special="all")._asdict())
    normalized.normalizer = "nfc"
    for tok in (base, normalized):
        for rows in (
            [b"low <s> light\xff", b"\xe4\xbd"],
            [b"low \xf0\x9f", b"ok"],
            [b"\xc3(" * 3000 + b"<s>"],
        ):
            for errors in ("replace", "ignore"):
                assert tok.encode_batch(rows, errors=errors, allowed_special="all").tolist() == [
                    encode_general(tok, r, errors=errors, allowed_special="all") for r in rows
                ]
            with pytest.raises(ValueError, match="must be UTF-8, got the byte 0x"):
                tok.encode_batch(rows, allowed_special="all")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gpt2/tokenizer.json",
        "tiktoken/cl100k_base.tiktoken",
        "tiktoken/o200k_base.tiktoken",
        "bert-base-uncased/tokenizer.json",
        "llama-2/tokenizer.model",
        "derived/llama-2-legacy.tokenizer.json",
        "t5-small/tokenizer.json",
        "t5-small/spiece.model",
        "roberta-base/tokenizer.json",
    ],
)
def test_short_texts(name, shared_file):
    tok = loaded(shared_file, name)
    tok.encode_batch(["a text "] * (blocks.SIZES.bulk // 7 + 1))
    fast_path = choose_fast_path(encoder_of(tok), bulk=encoder_of(tok).bulk)
    n = 10 * seeds.TEXTS
    rng, taken = fresh(len(name)), 0
    parts = generated(
        n,
        11,
        [
            "<|endoftext|>",
            "</s>",
            "[SEP]",
            "[MASK]",
            "<",
            "▁",
            "  ",
            "   ",
            "\n\n",
            " \n",
            "\t ",
            "don't",
            "'re",
            "\u00a0",
            "\u3000",
            "\u0301",
            " 12345",
            "été",
            "你好",
            "🤗",
            ".",
        ],
    )
    for k, text in enumerate(parts):
        if k % 4 == 0:
            text = " ".join(parts[rng.randrange(k + 1)] for _ in range(rng.randrange(1, 40)))
        expected = encode_general(tok, text)
        assert tok.encode(text) == expected, (name, text)
        assert (found := fast_path(text)) in (None, expected), (name, text)
        taken += found is not None
    assert taken > n // 4 or name.startswith("t5-small/spiece"), f"{taken} of {n} took the fast path"
    with pytest.raises(ValueError, match="surrogate"):
        tok.encode("a text " * 30 + "\ud800")


def test_short_texts_with_added_tokens_take_the_fast_path(shared_file, always):
    for name, token in (
        ("gpt2/tokenizer.json", "<|endoftext|>"),
        ("bert-base-uncased/tokenizer.json", "[MASK]"),
    ):
        tok = loaded(shared_file, name)
        fast_path = choose_fast_path(encoder_of(tok), bulk=encoder_of(tok).bulk)
        words = "it's née, " * (blocks.SIZES.added_part // 10 + 1)
        for text in (
            words + token,
            token + words,
            f"{token}\n{words}" * blocks.SIZES.few_added,
            "x" * 999 + token,
        ):
            assert fast_path(text) == encode_general(tok, text), (name, text)
        for text in (token, f"a {token} née{token}", (words + token) * (blocks.SIZES.few_added + 1)):
            assert fast_path(text) is None, (name, text)


def test_short_texts_follow_the_tokenizer():
    from subword_nb.pipeline.encoding import Truncation

    tok = next(small_tokenizers())
    tok.encode("low light " * (blocks.SIZES.bulk // 10 + 1))
    for text in ("", "low", " low ", "low  light\n" * 30, "low <s> light " * 20):
        assert tok.encode(text) == encode_general(tok, text)
    tok.model.dropout = 1.0
    assert (
        tok.encode("low light " * 20)
        == encode_general(tok, "low light " * 20)
        != encode_general(tok, "low light " * 20, dropout=0.0)
    )
    tok.model.dropout = None
    tok.truncation = Truncation(5)
    assert len(tok.encode("low light " * 20)) == 5


def test_single_texts_that_are_long_together_load_the_kernels(monkeypatch):
    "In the call that makes them long enough: no thread does it behind a caller's back."
    import threading

    tok = next(small_tokenizers())
    tok.encode("low light " * (blocks.SIZES.bulk // 10 + 1))  # so that nothing has to be compiled
    new = Tokenizer(**tok.parts._asdict())
    monkeypatch.setattr(blocks.SIZES, "library", 10_000)
    encoder, threads = encoder_of(new), threading.active_count()
    text, quick = "low light " * 110, []
    for _ in range(11):
        assert new.encode(text) == encode_general(new, text)
        quick.append(encoder.quick(text) is not None)
    assert quick == [False] * 9 + [True] * 2
    assert threading.active_count() == threads


def test_many_short_texts_load_the_kernels(monkeypatch):
    "Where Python has no fast path of its own, as with a normalizer."
    tok = next(t for t in small_tokenizers() if t.normalizer is not None and encoder_of(t).load_kernels())
    new = Tokenizer(**tok.parts._asdict())
    monkeypatch.setattr(blocks.SIZES, "library", 1000)
    quick = []
    for _ in range(11):
        assert new.encode("low light " * 11) == encode_general(new, "low light " * 11)
        quick.append(encoder_of(new).quick("low light " * 11) is not None)
    assert quick == [False] * 9 + [True] * 2


def test_many_texts_of_the_fast_path_load_the_kernels(monkeypatch):
    "Texts that the fast path in Python encodes count if kernels encode them in less time."
    tok = next(t for t in small_tokenizers() if t.normalizer is None and encoder_of(t).load_kernels())
    monkeypatch.setattr(blocks.SIZES, "library", 1000)
    for text, expected in (("low light", [False] * 200), ("low light " * 11, [False] * 9 + [True] * 2)):
        new = Tokenizer(**tok.parts._asdict())
        new.encode("")
        python, changed = encoder_of(new).quick, []
        for _ in expected:
            assert new.encode(text) == encode_general(new, text)
            changed.append(encoder_of(new).quick is not python)
        assert changed == expected


def test_many_empty_texts_are_encoded_in_bulk(monkeypatch):
    tok = next(small_tokenizers())
    tok.encode("low light " * (blocks.SIZES.bulk // 10 + 1))
    bulk, seen = encoder_of(tok).bulk, []
    run = bulk.run
    monkeypatch.setattr(bulk, "run", lambda work, **k: (seen.append(len(work.texts)), run(work, **k))[1])
    assert tok.encode_batch([""] * 5000).tolist() == [[]] * 5000
    assert seen == [5000]


def test_one_encoder_serves_every_way(monkeypatch):
    "A wrong model shows which encoder answered: all of them are the one that the tokenizer holds."
    tok = next(small_tokenizers())
    encoder, text = encoder_of(tok), "low light " * 300
    assert encoder_of(tok) is encoder and encoder_of(tok, allowed_special=()) is not encoder
    calls = []
    for name in ("encode", "encode_batch", "stream"):
        method = getattr(encoder, name)
        monkeypatch.setattr(encoder, name, lambda *a, m=method, n=name, **k: (calls.append(n), m(*a, **k))[1])
    (
        tok.encode(text),
        tok.encode_batch([text]),
        tok.encode_array(text),
        tok.encode("low", add_special_tokens=False),
    )
    from subword_nb.pipeline.encoder import encode_blocks

    list(encode_blocks(tok, [text.encode()]))
    assert calls.count("stream") == 1 and calls.count("encode") == 2 and calls.count("encode_batch") >= 2


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_added_tokens_of_all_kinds_are_found_in_bulk_as_by_the_finder(seed):
    "Random tokens with random options, whole and in blocks, against the finder that looks at one place after the other."
    from subword_nb.pipeline.blocks import AddedTokenMatcher
    from subword_nb.pipeline.added_tokens import AddedFinder
    from subword_nb.pipeline.vocab import AddedToken

    rng = fresh("added tokens in bulk", seed)
    words = ["low", "é", "你", "🤗", " ", "  ", "\u3000", "\u00a0 ", "a", "\n", "_", "1", ".", "\u0301"]
    spellings = ["<s>x", "<s>", "<m>", "<", "s>", " <s>", " ", "a", "aa", "é", "low", "你 "]
    for n_round in range(seeds.TEXTS):
        options = ("single_word", "lstrip", "rstrip", "special")
        tokens = [
            AddedToken(s, **{name: rng.random() < 0.3 for name in options})
            for s in rng.sample(spellings, rng.randint(1, 6))
        ]
        k = rng.choice((0, 0, rng.randrange(len(tokens))))
        finders = [AddedFinder(part, special=rng.random() < 0.8) for part in (tokens[:k], tokens[k:]) if part]
        ids = {t.content: i for i, t in enumerate(tokens)}
        units = rng.choices(words + spellings, k=rng.choice((2, 8, 30)))
        if n_round % 15 == 0:  # where they are sparse, they are searched for one by one
            units = [unit + "xy" * rng.choice((0, 0, 900)) for unit in units]
        text = "".join(units)
        parts = [(0, len(text), None)]
        for finder in finders:
            parts = [
                (a + x, a + y, i if token is None else ids[token.content])
                for a, b, i in parts
                for x, y, token in (finder.spans(text[a:b]) if i is None else [(0, b - a, None)])
            ]
        bytes_before = [len(text[:n].encode()) for n in range(len(text) + 1)]
        expected = [(bytes_before[a], bytes_before[b], i) for a, b, i in parts if i is not None]
        matcher = AddedTokenMatcher(finders, ids)
        found = matcher.find(text.encode())
        assert [*zip(*(a.tolist() for a in found[:3]))] == expected, (tokens, k, text)
        cuts = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, rng.randrange(4))))
        held, begin, base, after, out = b"", 0, 0, False, []
        for a, b in zip([0, *cuts], [*cuts, len(text)]):
            held += text[a:b].encode()
            found = matcher.find(held, begin=begin, after_first=after, last=b == len(text))
            out += [(base + x, base + y, i) for x, y, i in zip(*(a.tolist() for a in found[:3]))]
            kept = max(0, found.stop - 4)
            held, base, begin, after = held[kept:], base + kept, found.stop - kept, found.after_first
        assert out == expected, (tokens, k, text, cuts)


def test_dummy_prefixes_of_many_parts_are_those_of_each():
    "Which parts of a text get a dummy prefix, all at once and one by one."
    import numpy as np

    from subword_nb.corpus.segmentation import DummyPrefix

    rng = fresh("dummy prefixes of parts")
    for _ in range(1000):
        data = "".join(rng.choices(["a", " ", "▁", "é", "\xa0"], k=rng.randrange(1, 12))).encode()
        prefix = DummyPrefix(
            b" ", rng.choice([(), (b" ",), (b" ", "▁".encode()), ("▁a".encode(),)]), rng.random() < 0.5
        )
        bounds = np.sort(rng.choices(range(len(data) + 1), k=8))
        begins, ends, first = bounds[:-1], bounds[1:].copy(), np.array(rng.choices([False, True], k=7))
        ends[rng.randrange(7)] = 0  # an empty part
        found = prefix.opens(np.frombuffer(data, np.uint8), begins, ends, first)
        expected = [
            bool(prefix(data[a:b], one)) for a, b, one in zip(begins, ends, first.tolist(), strict=True)
        ]
        assert found.tolist() == expected


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram"])
def test_texts_next_to_each_other_have_the_ids_of_texts_in_a_list(algorithm, monkeypatch):
    monkeypatch.setattr(blocks.SIZES, "loaded", 0)
    docs = ["low lower lowest é 中文\n<x>", "newer wider a " * 3]
    options = {} if algorithm in ("bpe", "wordpiece") else {"pre_tokenizer": "metaspace"}
    tok = Tokenizer.train(docs, algorithm=algorithm, vocab_size=40 if algorithm != "bpe" else 280, **options)
    tok.add_tokens(["<x>"])
    rng, plain = fresh("packed", algorithm), encoder_of(tok, allowed_special=())
    for alphabet in (["low", "er", " "], ["a", "é", "中", " ", "\n"], ["low", "<x>", " "]):
        for size in (8, 1 << 19):
            monkeypatch.setattr(blocks.SIZES, "block", size)
            for _ in range(10):
                texts = [
                    "".join(rng.choices(alphabet, k=rng.randrange(9))).encode()
                    for _ in range(rng.randrange(30))
                ]
                bounds = np.cumsum([0, *map(len, texts)])
                found = plain.encode_packed(b"".join(texts), bounds, is_valid=rng.random() < 0.5)
                assert found.bounds[0] == 0 and len(found) == len(texts)
                assert [row.tolist() for row in found] == [
                    tok.encode(text, add_special_tokens=False, allowed_special=()) for text in texts
                ]


NORMALIZED = [
    "bert-base-uncased/tokenizer.json",
    "t5-small/tokenizer.json",
    "pegasus/tokenizer.json",
    "clip/tokenizer.json",
    "derived/llama-2-legacy.tokenizer.json",
]


@pytest.mark.parametrize("name", NORMALIZED)
def test_tokens_in_normalized_text_are_found_in_bulk(name, shared_file, always):
    from subword_nb.pipeline.vocab import AddedToken

    tok, rng = loaded(shared_file, name), fresh("normalized", name)
    spellings = ["hug", "né e", "▁x", " pug ", "[x]", "ﬁ"]
    tok.add_tokens(
        [
            AddedToken(s, normalized=True, lstrip=k == 1, rstrip=k == 3, single_word=k == 0)
            for k, s in enumerate(spellings)
        ]
    )
    tok.truncation = None
    parts = [
        *spellings,
        "HUG",
        "Né E",
        "fi",
        "ｈｕｇ",
        " ",
        "  ",
        "\n",
        "a",
        "x",
        "你",
        "é",
        "e\u0301",
        "</s>",
        "[SEP]",
    ]
    encoder, some = encoder_of(tok), 0
    assert encoder.bulk is not None, encoder.path
    ids = {i for t, i in tok.added_tokens if t.content in spellings}
    texts = ["".join(rng.choices(parts, k=rng.randrange(20))) for _ in range(seeds.TEXTS)]
    for text, found in zip(texts, tok.encode_batch(texts), strict=True):
        assert found.tolist() == encode_general(tok, text), text
        assert tok.align(text).ids == found.tolist(), text
        some += not ids.isdisjoint(found.tolist())
    assert some > len(texts) // 4
