"""Cutting a text at spaces before anything else is done with it changes no id, whatever the parts of a tokenizer are."""

import copy
import pickle
import random
import sys
from collections.abc import Sequence as AbstractSequence
from string import ascii_letters, digits

import numpy as np
import pytest
from costs import assert_linear

from subword_nb.text import pretokenizers as pre
from subword_nb.text.alignment import Aligned
from subword_nb.bpe.model import BPE
from subword_nb.text.charsmap import build_charsmap
from subword_nb.pipeline.engine import Engine, compiled
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
from subword_nb.pipeline.segmentation import (
    Path,
    Ragged,
    cut_words,
    find_path,
    joins_words,
    later_words,
    ragged,
)
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
    *(pre.Punctuation(b) for b in pre.BEHAVIORS),
    *(
        pre.Metaspace(replacement=r, prepend_scheme=scheme, split=split)
        for r in "▁_a"
        for scheme in ("always", "never", "first")
        for split in (True, False)
    ),
    *(
        pre.Split(p, b, i)
        for p in (
            *pre.PATTERNS,
            pre.DEEPSEEK[1],
            pre.DEEPSEEK[2],
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
        for b in pre.BEHAVIORS
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
    c = compiled(tok)
    ids = []
    for a, b, token in c.raw.spans(text):
        if token is not None:
            ids.append(c.ids[token.content])
            continue
        part = Aligned(text).slice(a, b)
        part = c.norm.align(part) if c.norm else part
        for x, y, late in c.normalized_added.spans(part.text):
            if late is not None:
                ids.append(c.ids[late.content])
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
    return compiled(tok).path.spans


def test_random_tokenizers_word_by_word():
    rng = random.Random(0)
    kinds = [check(rng) for _ in range(700)]
    assert kinds.count("words") > 60 and kinds.count("pretokens") > 100


@pytest.mark.slow
def test_many_random_tokenizers_word_by_word():
    rng = random.Random(1)
    assert [check(rng) for _ in range(3000)].count("words") > 250


def test_every_normalizer_alone():
    "For each step that is said to act word by word: normalized apart, the words are the text normalized."
    rng = random.Random(2)
    for norm in PLAIN:
        local, later = later_words(norm)
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
    assert [find_path(model, split, norm).spans for split, norm in words] == ["words"] * len(words)
    assert [find_path(model, split, norm).spans for split, norm in kept] == ["pretokens"] * len(kept)


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


def test_paths_compare_and_say_why():
    path = find_path(BPE({"a": 0}, []), pre.Whitespace(), Lowercase())
    assert path == Path("words", "normalizer and pre-tokenizer treat each word alike", Lowercase()) and hash(
        path
    )


def test_a_megabyte_is_cut_in_a_moment():
    for unit in (" ", "a", "a ", " a", "é", "\u0301", "▁"):

        def work(text):
            assert "".join(cut_words(text)) == text

        assert_linear(work, unit, 1_000_000)


def some_rows(rng):
    "Lists of ids, some of them empty."
    return [[rng.randrange(9) for _ in range(rng.randrange(4))] for _ in range(rng.randrange(6))]


def lists(rows):
    "Rows as lists, to compare."
    return [row.tolist() for row in rows]


def test_a_batch_of_ids_is_a_sequence_of_documents():
    "Length, iteration, indices and slices of either sign, membership, index and count are those of the list of lists."
    rng = random.Random(19)
    for _ in range(300):
        rows = some_rows(rng)
        batch, n = ragged(rows), len(rows)
        assert isinstance(batch, Ragged) and isinstance(batch, AbstractSequence)
        assert (len(batch), bool(batch), batch.tolist(), lists(batch), lists(reversed(batch))) == (
            n,
            bool(rows),
            rows,
            rows,
            rows[::-1],
        )
        for k in range(-n, n):
            row = batch[k]
            assert (
                row.tolist() == rows[k]
                and row.dtype == np.uint32
                and (not rows[k] or np.shares_memory(row, batch.ids))
            )
        for k in (n, -n - 1, 10**30):
            with pytest.raises(IndexError, match=f"document {k} of {n}"):
                batch[k]
        for _ in range(8):
            cut = slice(*(rng.choice((None, *range(-7, 8))) for _ in "ab"), rng.choice((None, 1, 2, -1, -2)))
            part = batch[cut]
            assert isinstance(part, Ragged) and part.tolist() == rows[cut]
            assert part.bounds.dtype == np.int64 and (part.bounds[0], part.bounds[-1], len(part.bounds)) == (
                0,
                len(part.ids),
                len(part) + 1,
            )
            assert part == ragged(rows[cut]) and (part == batch) == (rows[cut] == rows)
        for row in (*rows, [8, 8, 8, 8], []):
            assert (row in batch, batch.count(row)) == (row in rows, rows.count(row))
            if row in rows:
                assert batch.index(row) == rows.index(row)
        for again in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), copy.deepcopy(batch)):
            assert type(again) is Ragged and again == batch


def test_a_batch_is_not_taken_for_what_it_was():
    "It was a tuple of two arrays: what still takes it apart as one gets an error, or two documents where there are two."
    batch = ragged([[5, 6], [], [7]])
    with pytest.raises(ValueError, match="unpack"):
        ids, bounds = batch
    with pytest.raises(ValueError, match="unpack"):
        ids, bounds = ragged([[5, 6]])
    first, second = ragged([[5, 6], [7]])
    assert (first.tolist(), second.tolist()) == ([5, 6], [7])
    for wrong in ("ids", [2, 0], np.array([True, False, True]), 1.0, None, (0, 1)):
        with pytest.raises(TypeError, match="a number or a slice"):
            batch[wrong]
    with pytest.raises(AttributeError):
        batch.lengths = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)
    with pytest.raises(ValueError, match="no such document"):
        batch.index([8])
    assert batch != [[5, 6], [], [7]] and batch != (batch.ids, batch.bounds)
    with pytest.raises(TypeError, match="a document is some ids, got int"):
        assert 5 in batch
    assert (
        repr(batch) == "Ragged(3 documents, 3 ids: [5, 6], [], [7])"
        and repr(ragged([])) == "Ragged(0 documents, 0 ids)"
    )
    assert (
        repr(ragged([[1] * 20] * 2000))
        == "Ragged(2,000 documents, 40,000 ids: [1, 1, 1, 1, 1, 1, 1, 1, …], [1, 1, 1, 1, 1, 1, 1, 1, …], [1, 1, 1, 1, 1, 1, 1, 1, …], …)"
    )


def test_numpy_is_told_what_to_use_instead():
    "An array of rows of different lengths is nothing that NumPy has, and an array of objects is what nobody wants."
    for rows in ([[5, 6], [], [7]], [[1, 2], [3, 4]], []):
        for call in (
            np.asarray,
            np.array,
            lambda b: np.asarray(b, np.int64),
            lambda b: np.array([b, b]),
            np.sum,
            lambda b: np.zeros(2) + b,
        ):
            with pytest.raises(TypeError, match=r"\.ids.*tolist.*padding=True"):
                call(ragged(rows))
    assert np.concatenate(ragged([[5, 6], [], [7]])).tolist() == [5, 6, 7]


def test_a_batch_becomes_an_arrow_column():
    "Without a copy of the ids; slices too; and whatever takes Arrow's arrays takes a batch."
    pa = pytest.importorskip("pyarrow")
    batch = ragged([[5, 6], [], [7], [8, 9]])
    column = batch.to_arrow()
    column.validate(full=True)
    assert column.type == pa.large_list(pa.uint32()) and column.to_pylist() == batch.tolist()
    assert column.values.buffers()[1].address == batch.ids.ctypes.data
    assert (
        batch[1:3].to_arrow().to_pylist() == [[], [7]]
        and batch[::-2].to_arrow().to_pylist() == [[8, 9], []]
        and ragged([]).to_arrow().to_pylist() == []
    )
    assert pa.array(batch).equals(column) and pa.array(batch, pa.list_(pa.int64())).type == pa.list_(
        pa.int64()
    )
    assert pa.table({"ids": batch})["ids"].to_pylist() == batch.tolist()
    ak = pytest.importorskip("awkward")
    assert ak.from_arrow(column).to_list() == batch.tolist()


def test_arrow_is_asked_for_by_name(monkeypatch):
    for name, call in (
        ("pyarrow", lambda: ragged([[1]]).to_arrow()),
        ("torch", lambda: ragged([[1]]).to_torch()),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"needs .*{name}.*pip install"):
            call()


def test_a_batch_becomes_a_nested_tensor():
    torch = pytest.importorskip("torch")
    batch = ragged([[5, 6], [], [7]])
    tensor = batch.to_torch()
    assert tensor.dtype == torch.int64 and [row.tolist() for row in tensor.unbind()] == batch.tolist()
    assert (tensor.values().tolist(), tensor.offsets().tolist()) == (
        batch.ids.tolist(),
        batch.bounds.tolist(),
    )


@pytest.mark.peers
def test_datasets_map_takes_a_batch(tmp_path):
    "As a column, also where all documents of a batch are empty or of one length; and the column holds the ids."
    datasets = pytest.importorskip("datasets")
    datasets.disable_caching()
    tok = Engine(BPE({c: i for i, c in enumerate("ab ")}, []))
    texts = ["ab", "", "b a b", "aa", "bb", "", "", ""]
    made = datasets.Dataset.from_dict({"text": texts})
    for size in (1, 2, 3, 8):
        found = made.map(lambda b: {"ids": tok.encode_batch(b["text"])}, batched=True, batch_size=size)
        assert found["ids"][:] == [tok.encode(t) for t in texts]
