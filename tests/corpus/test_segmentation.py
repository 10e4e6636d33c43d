"""Cutting a text at spaces before anything else is done with it changes no id, whatever the parts of a tokenizer are."""

import random
from string import ascii_letters, digits

import pytest
from costs import assert_linear

from subword_nb.text import pretokenizers as pre
from subword_nb.text.alignment import Aligned
from subword_nb.text.regex import DEEPSEEK, PATTERNS
from subword_nb.text.splitters import BEHAVIORS
from subword_nb.bpe.model import BPE
from subword_nb.text.charsmap import build_charsmap
from subword_nb.pipeline.encoder import Engine, encoder_of
from subword_nb.text.normalizers import (
    NFC,
    NFD,
    NFKC,
    NFKD,
    BertNormalizer,
    ByteLevel,
    Lowercase,
    Nmt,
    Precompiled,
    Prepend,
    Replace,
    Sequence,
    Strip,
    StripAccents,
    normalizer,
)
from subword_nb.corpus.segmentation import StringSpans, cut_words, joins_words, word_normalizer, string_spans
from subword_nb.unigram.model import Unigram
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.wordpiece.wordlevel import WordLevel
from subword_nb.wordpiece.model import WordPiece

LETTERS = [
    *"abcZ019",
    *"   ",
    "  ",
    *"é,'-_▁你я\n\t\u3000\u0301\u0327\u200d\u200b\u0600",
    "e\u0301",
    "ﬁ",
    "ǅ",
    "🤗",
    "👩\u200d💻",
    "'s",
    "##",
    "한",
]


def some_text(rng):
    "Words of ASCII letters and digits with much else between them."
    words = [
        "".join(rng.choices("abcZ019", k=rng.randrange(1, 4)))
        if rng.random() < 0.7
        else "".join(rng.choices(LETTERS, k=rng.randrange(5)))
        for _ in range(rng.randrange(7))
    ]
    return rng.choice(("", "", " ", "é", "\u0301", "\u0600")) + rng.choice((" ", " ", " ", "")).join(words)


MARKED = Precompiled(build_charsmap({"a\u0301": "á", "ﬁ": "fi", "\u3000": " ", "Z": "z"}))
DROPPING = Precompiled(build_charsmap({"a": "", " ": "▁"}))
PLAIN = [
    NFC(),
    NFD(),
    NFKC(),
    NFKD(),
    Lowercase(),
    StripAccents(),
    Nmt(),
    BertNormalizer(),
    BertNormalizer(False, False, True, False),
    Strip(),
    Strip(True, False),
    Strip(False, True),
    ByteLevel(),
    MARKED,
    DROPPING,
    *(Prepend(p) for p in ("▁", " ", "a", "\u0301", "")),
    normalizer(str.swapcase),
    *(
        Replace(a, b)
        for a, b in (
            (" ", "▁"),
            (" ", ""),
            (" ", "\u0301"),
            (" ", "  "),
            (" ", " a"),
            (" ", "a "),
            ("  ", " "),
            ("a", "b"),
            ("a b", "c"),
            ("▁", " "),
            (",", " "),
            ("é", "e "),
            ("-", ""),
            ("", "x"),
        )
    ),
    *(
        Replace({"Regex": r}, b)
        for r, b in (
            (r"\s+", " "),
            (r"\s+", ""),
            (r"\s+", "▁"),
            (" {2,}", "▁"),
            (" {2,}", " "),
            (r"\s", "a"),
            (r"\n", " "),
            (r"\w ", "x"),
            (r"^", "▁"),
            (r"(?<=a) ", ""),
        )
    ),
]


def some_normalizer(rng):
    "None, one step, or a few."
    n = rng.choice((0, 1, 1, 1, 2, 2, 3, 4))
    steps = [rng.choice(PLAIN) for _ in range(n)]
    return (
        None
        if not n
        else steps[0]
        if n == 1
        else Sequence((steps[0], Sequence(tuple(steps[1:]))))
        if rng.random() < 0.3
        else Sequence(tuple(steps))
    )


SPLITTERS = [
    pre.Whitespace(),
    pre.WhitespaceSplit(),
    pre.WholeText(),
    pre.BertPreTokenizer(),
    pre.UnicodeScripts(),
    pre.Digits(),
    pre.Digits(True),
    pre.FixedLength(2),
    pre.ByteLevel(),
    pre.ByteLevel(False),
    pre.ByteLevel(True, use_regex=False),
    pre.ByteLevel(False, use_regex=False),
    pre.Sequence([]),
    pre.Callable(lambda text: [(0, len(text) // 2), (len(text) // 2, len(text))]),
    *(pre.CharDelimiterSplit(c) for c in " a▁"),
    *(pre.Punctuation(b) for b in BEHAVIORS),
    *(
        pre.Metaspace(replacement=r, prepend_scheme=scheme, split=split)
        for r in "▁_a"
        for scheme in ("always", "never", "first")
        for split in (True, False)
    ),
    *(
        pre.Split(p, b, i)
        for p in (
            *PATTERNS,
            DEEPSEEK[1],
            DEEPSEEK[2],
            r"\s",
            r"\s+",
            r"\d",
            r"[^\s]+|\s",
            r"\p{L}+",
            {"String": " "},
            {"String": "a"},
            {"String": "-"},
            {"String": "▁"},
            {"String": "_-"},
            "(?<=a) ",
        )
        for b in BEHAVIORS
        for i in (False, True)
    ),
]


def some_splitter(rng):
    "One step, or a few."
    steps = [rng.choice(SPLITTERS) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    return steps[0] if len(steps) == 1 else pre.Sequence(steps)


def some_model(rng):
    "A model that knows the characters, or most of them, and joins some at random."
    chars, plain = (
        sorted({*"".join(LETTERS), *"fiz▁áĠ#"}),
        ascii_letters + digits + " _▁Ġ" if rng.random() < 0.8 else " ",
    )
    known = sorted({*plain, *(c for c in chars if rng.random() < 0.95)})
    pieces = {p: i for i, p in enumerate(["<unk>", *known, *(f"<0x{b:02X}>" for b in range(256))])}
    kind = rng.choice(("bpe", "bpe", "bpe", "wordpiece", "unigram", "wordlevel"))
    some = {"".join(rng.choices(known, k=rng.randrange(1, 4))) for _ in range(20)}
    if kind == "wordlevel":
        return WordLevel({p: i for i, p in enumerate(dict.fromkeys(["<unk>", *some, *known]))})
    if kind == "wordpiece":
        return WordPiece(
            {p: i for i, p in enumerate(dict.fromkeys(["[UNK]", *known, *("##" + c for c in known), *some]))}
        )
    if kind == "unigram":
        return Unigram(
            {p: i for i, p in enumerate(dict.fromkeys(["<unk>", *known, *some]))},
            [-float(rng.randrange(1, 9)) for _ in dict.fromkeys(["<unk>", *known, *some])],
            "<unk>",
        )
    merges, often = [], [c for c in known if c in chars]
    for _ in range(rng.randrange(12)):
        a, b = (rng.choice([*often, *(x + y for x, y in merges)]) for _ in range(2))
        if a + b not in pieces:
            merges.append((a, b))
            pieces[a + b] = len(pieces)
    return BPE(
        pieces,
        merges,
        unk_piece="<unk>",
        fuse_unk=rng.random() < 0.5,
        byte_fallback=rng.random() < 0.4,
        ignore_merges=rng.random() < 0.2,
    )


def whole(tok, text):
    "The ids of a text as a whole: normalized, split with every character's place, each piece given to the model."
    c = encoder_of(tok)
    ids = []
    for a, b, token in c.raw.spans(text):
        if token is not None:
            ids.append(c.ids[token.content])
            continue
        part = Aligned(text).slice(a, b)
        part = c.norm.align(part) if c.norm else part
        for x, y, token in c.normalized_added.spans(part.text):
            if token is not None:
                ids.append(c.ids[token.content])
                continue
            ids += [i for p in c.pre.split_aligned(part.slice(x, y)) for i in c.model.encode(p.text)]
    return ids


ADDED = [
    (AddedToken("b c", normalized=True), 5000),
    (AddedToken("<s>", special=True), 5001),
    (AddedToken("Z", normalized=True, single_word=True), 5002),
    (AddedToken(" 9", lstrip=True), 5003),
    (AddedToken("é"), 5004),
]


def check(rng, n_texts=12):
    "One tokenizer with parts drawn at random; the kind of its path."
    norm, split, model = some_normalizer(rng), some_splitter(rng), some_model(rng)
    try:
        tok = Engine(
            model,
            pre_tokenizer=split,
            normalizer=norm,
            added_tokens=rng.sample(ADDED, k=rng.choice((0, 0, 0, 1, 2))),
        )
    except ValueError:
        return None  # an added token whose normalized content is empty
    texts = [some_text(rng) for _ in range(n_texts)]
    batch = tok.encode_batch(texts).tolist()
    for text, ids in zip(texts, batch):
        expected = whole(tok, text)
        assert tok.encode(text) == ids == expected, (text, norm, split, model, getattr(model, "merges", None))
    return encoder_of(tok).plan.string.by_word


def test_random_tokenizers_word_by_word():
    rng = random.Random(0)
    kinds = [check(rng) for _ in range(700)]
    assert kinds.count(True) > 60 and kinds.count(False) > 100


@pytest.mark.slow
def test_many_random_tokenizers_word_by_word():
    rng = random.Random(1)
    assert [check(rng) for _ in range(3000)].count(True) > 250


def test_every_normalizer_alone():
    "For each step that is said to act word by word: normalized apart, the words are the text normalized."
    rng = random.Random(2)
    for norm in PLAIN:
        local, later = word_normalizer(norm)
        for text in [some_text(rng) for _ in range(150)] if local else ():
            first, *rest = cut_words(text) or [""]
            assert norm.normalize(first) + "".join(
                later.normalize(w) if later else w for w in rest
            ) == norm.normalize(text), (norm, text)


def test_words_cover_the_text():
    rng = random.Random(3)
    for text in ["", " ", "a", " a", "a ", "a b", *(some_text(rng) for _ in range(2000))]:
        words = cut_words(text)
        assert "".join(words) == text and all(words)
        for a, b in zip(words, words[1:]):
            assert a[-1].isascii() and a[-1].isalnum() and b[0] == " " and b[1].isascii() and b[1].isalnum()


def test_which_paths_tokenizers_take():
    "The kinds of tokenizer that files hold."
    letters = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789▁Ġ"]
    model = BPE({p: i for i, p in enumerate([*letters, "ab", "▁a"])}, [("a", "b"), ("▁", "a")])
    llama = Sequence((Prepend("▁"), Replace(" ", "▁")))
    clip = Sequence((NFC(), Replace({"Regex": r"\s+"}, " "), Lowercase()))
    words = [
        (pre.BertPreTokenizer(), BertNormalizer()),
        (pre.WholeText(), llama),
        (pre.Metaspace(split=False), None),
        (pre.Metaspace(), NFKC()),
        (pre.byte_level("gpt2"), NFC()),
        (pre.byte_level("cl100k"), clip),
        (
            pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()]),
            Sequence((MARKED, Replace({"Regex": " {2,}"}, " "))),
        ),
        (pre.Sequence([pre.Punctuation("contiguous"), pre.ByteLevel(False)]), Nmt()),
    ]
    kept = [
        (pre.byte_level("gpt2"), None),
        (pre.WholeText(), None),
        (pre.WholeText(), Strip()),
        (pre.FixedLength(3), NFC()),
        (pre.UnicodeScripts(), NFC()),
        (pre.BertPreTokenizer(), Strip()),
        (pre.Whitespace(), normalizer(str.lower)),
        (pre.Whitespace(), Replace("a", "b")),
        (pre.Metaspace(), llama),
        (pre.byte_level(None), NFC()),
        (pre.Whitespace(), Replace({"Regex": r"\w"}, "a")),
    ]
    assert [string_spans(norm, split, model=model).by_word for split, norm in words] == [True] * len(words)
    assert [string_spans(norm, split, model=model).by_word for split, norm in kept] == [False] * len(kept)


def test_models_that_join_words():
    letters = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "]
    pieces = {p: i for i, p in enumerate([*letters, "b ", "b a", " a", "  ", "<unk>"])}
    plain = BPE(pieces, [(" ", "a"), (" ", " ")])
    assert not joins_words(plain, pre.WholeText(), None)
    assert joins_words(BPE(pieces, [("b", " ")]), pre.WholeText(), None) and joins_words(
        BPE(pieces, [(" ", "a"), ("b", " a")]), pre.WholeText(), None
    )
    assert joins_words(BPE(pieces, [], ignore_merges=True), pre.WholeText(), None), (
        "a whole text may be a piece"
    )
    assert joins_words(
        BPE({p: i for p, i in pieces.items() if p != "z"}, [], unk_piece="<unk>", fuse_unk=True),
        pre.WholeText(),
        None,
    ), "a letter that is not known may be fused with what follows"
    assert (
        joins_words(plain, pre.FixedLength(4), None)
        and joins_words(plain, pre.WholeText(), Replace(" ", "")) is False
    )  # nothing joins two letters here
    assert joins_words(BPE({**pieces, "ab": 99}, [("a", "b")]), pre.WholeText(), Replace(" ", "")), (
        "without spaces, any rule may"
    )


def test_spans_compare_and_say_why():
    spans = string_spans(Lowercase(), pre.Whitespace(), model=BPE({"a": 0}, []))
    why = "normalizer and pre-tokenizer treat each word alike"
    assert spans == StringSpans(True, why, Lowercase()) and hash(spans)


def test_a_megabyte_is_cut_in_a_moment():
    for unit in (" ", "a", "a ", " a", "é", "\u0301", "▁"):

        def work(text):
            assert "".join(cut_words(text)) == text

        assert_linear(work, unit, 1_000_000)
