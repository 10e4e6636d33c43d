"""Tokens of all four models: places and pieces as the Hugging Face library gives them, ids as the models themselves give them."""

import pickle
import random

import pytest

from subword_nb.bpe.reference import base_symbols, join_pair
from subword_nb.bpe.model import BPE, encode_pretoken
from subword_nb.pipeline.tokens import Token, tokens, tokens_ref
from subword_nb.unigram.model import Unigram
from subword_nb.wordpiece.wordlevel import WordLevel, wordlevel_train
from subword_nb.wordpiece.model import WordPiece

LETTERS = "abcé你🤗"
STRANGE = [
    "x",
    "ÿ",
    "▁",
    " ",
    "\u00a0",
    "\u200b",
    "\ufeff",
    "\x00",
    "\x1c",
    "\x85",
    "\u2028",
    "e\u0301",
    "\u1100\u1161",
    "👩‍👩‍👧",
    "👍🏽",
    "\U000e0001",
    "\ue000",
    "\u0378",
    "<unk>",
    "<0xC3>",
    "##",
    "</w>",
]


def random_word(rng: random.Random, length: int = 12) -> str:
    "Letters of the small alphabets, and now and then something no model has seen."
    return "".join(
        rng.choice(LETTERS) if rng.random() < 0.8 else rng.choice(STRANGE)
        for _ in range(rng.randrange(length))
    )


def random_bpe(rng: random.Random, dropout: float | None = None) -> BPE:
    "Letters with and without marks, random rules over them, perhaps bytes, perhaps an unknown piece."
    prefix, suffix = rng.choice(["", "", "##"]), rng.choice(["", "", "</w>"])
    fallback = rng.random() < 0.5
    letters = rng.sample(LETTERS, rng.randrange(2, len(LETTERS)))
    pieces = [
        "<unk>",
        *dict.fromkeys(m for c in letters for m in (c, prefix + c, c + suffix, prefix + c + suffix)),
    ]
    pieces += [f"<0x{b:02X}>" for b in range(256) if fallback]
    marked = [p for p in pieces[1:] if not p.startswith("<0x")]
    merges = []
    for _ in range(rng.randrange(12)):
        a, b = rng.choice(marked), rng.choice(marked)
        if (suffix and a.endswith(suffix)) or (prefix and not b.startswith(prefix)):
            continue
        merges.append((a, b))
        marked.append(join_pair(a, b, prefix=prefix))
        pieces.append(marked[-1])
    piece2id = {p: i for i, p in enumerate(dict.fromkeys(pieces))}
    return BPE(
        piece2id, merges, dropout, "<unk>", prefix, suffix, rng.random() < 0.5, fallback, rng.random() < 0.3
    )


def random_wordpiece(rng: random.Random) -> WordPiece:
    prefix = rng.choice(["##", "##", "_"])
    words = ["".join(rng.choices(LETTERS, k=rng.randrange(1, 4))) for _ in range(12)]
    pieces = [
        "<unk>",
        *words,
        *(prefix + w for w in words),
        *(c for c in LETTERS if rng.random() < 0.7),
        *(prefix + c for c in LETTERS if rng.random() < 0.7),
    ]
    return WordPiece(
        {p: i for i, p in enumerate(dict.fromkeys(pieces))}, "<unk>", prefix, rng.choice([5, 100])
    )


def random_unigram(rng: random.Random, **options) -> Unigram:
    words = ["".join(rng.choices(LETTERS, k=rng.randrange(1, 4))) for _ in range(15)]
    letters = [c for c in LETTERS if rng.random() < 0.7]
    fallback = rng.random() < 0.5
    pieces = list(
        dict.fromkeys(["<unk>", *letters, *words, *(f"<0x{b:02X}>" for b in range(256) if fallback)])
    )
    # Odd fractions: no two splits tie, so that the order of additions cannot decide.
    return Unigram(
        {p: i for i, p in enumerate(pieces)},
        [0.0] + [-rng.random() * 9 - 1 for _ in pieces[1:]],
        "<unk>",
        fallback,
        **options,
    )


def random_wordlevel(rng: random.Random) -> WordLevel:
    return WordLevel(
        {
            p: i
            for i, p in enumerate(dict.fromkeys(["<unk>", *(random_word(rng, 3) or "a" for _ in range(30))]))
        }
    )


KINDS = {
    "BPE": random_bpe,
    "WordPiece": random_wordpiece,
    "Unigram": random_unigram,
    "WordLevel": random_wordlevel,
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_models_own_and_places_those_of_the_reference(kind):
    rng = random.Random(1)
    for _ in range(150):
        model = KINDS[kind](rng)
        for _ in range(12):
            word = random_word(rng)
            found = tokens(model, word)
            assert [t.id for t in found] == model.encode(word), (model, word)
            assert found == tokens_ref(model, word), (model, word)
            assert not found or (found[0].start, found[-1].end) == (0, len(word))
            for a, b in zip(found, found[1:]):
                assert a.start < a.end and (
                    a.end == b.start
                    or (a.start <= b.start < a.end == b.end)
                    or (b.start, b.end) == (a.start, a.end)
                    or a.end > b.start
                ), (word, found)


def theirs(models, ours):
    "The same model in the other library."
    if isinstance(ours, BPE):
        options = {
            "dropout": ours.dropout,
            "unk_token": ours.unk_piece,
            "continuing_subword_prefix": ours.continuing_subword_prefix,
            "end_of_word_suffix": ours.end_of_word_suffix,
        }
        options = {k: v for k, v in options.items() if v}
        return models.BPE(
            ours.piece2id,
            ours.merges,
            fuse_unk=ours.fuse_unk,
            byte_fallback=ours.byte_fallback,
            ignore_merges=ours.ignore_merges,
            **options,
        )
    if isinstance(ours, WordPiece):
        return models.WordPiece(
            ours.piece2id,
            unk_token=ours.unk_piece,
            continuing_subword_prefix=ours.continuing_subword_prefix,
            max_input_chars_per_word=ours.max_input_chars_per_word,
        )
    if isinstance(ours, WordLevel):
        return models.WordLevel(ours.piece2id, unk_token=ours.unk_piece)
    return models.Unigram(
        [(p, ours.scores[i]) for p, i in ours.piece2id.items()],
        ours.piece2id[ours.unk_piece],
        ours.byte_fallback,
    )


def spelled_with_marks(model, word: str) -> bool:
    "Is a character with a mark spelled in bytes? The other library counts the mark's bytes as text then."
    if (
        not isinstance(model, BPE)
        or not model.byte_fallback
        or not model.continuing_subword_prefix + model.end_of_word_suffix
    ):
        return False
    return any(
        s not in model.piece2id
        for s in base_symbols(word, prefix=model.continuing_subword_prefix, suffix=model.end_of_word_suffix)
    )


@pytest.mark.peers
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_hugging_face(kind):
    hf = pytest.importorskip("tokenizers")
    rng, seen = random.Random(2), 0
    for _ in range(200):
        model = KINDS[kind](rng)
        peer = hf.Tokenizer(theirs(hf.models, model))
        for _ in range(15):
            word = random_word(rng)
            found, expected = tokens(model, word), peer.encode(word)
            assert [t.id for t in found] == expected.ids, (model.__dict__, word)
            assert [t.piece for t in found] == expected.tokens, (model, word)
            if not spelled_with_marks(model, word):
                assert [(t.start, t.end) for t in found] == expected.offsets, (model, word)
                seen += 1
    assert seen > 1000


@pytest.mark.peers
def test_where_the_libraries_part():
    "What is different on purpose: characters are not left out in silence, and bytes stay where they are in the text."
    hf = pytest.importorskip("tokenizers")
    bare = BPE({"a": 0, "b": 1}, [])
    assert hf.Tokenizer(theirs(hf.models, bare)).encode("axb").offsets == [(0, 1), (1, 2)]  # `b` is at 2
    with pytest.raises(ValueError, match="U\\+0078"):
        tokens(bare, "axb")
    assert tokens(BPE(bare.piece2id, [], drop_unknown=True), "axb") == [
        (0, "a", 0, 1),
        (1, "b", 1, 2),
    ]  # as the library counts, which drops it
    some = BPE({"a": 0, "?": 1, "<0xC3>": 2, "<0xA9>": 3}, [], unk_piece="?", byte_fallback=True)
    assert hf.Tokenizer(theirs(hf.models, some)).encode("axéa").tokens == ["a", "<0xC3>", "<0xA9>", "?", "a"]
    assert [t.piece for t in tokens(some, "axéa")] == ["a", "?", "<0xC3>", "<0xA9>", "a"]


def test_dropout_takes_the_same_chances_as_the_encoder():
    rng = random.Random(3)
    for seed in range(300):
        model, word = random_bpe(rng, dropout=rng.choice([None, 0.4])), random_word(rng, 20)
        rate = rng.choice([None, 0.0, 0.5, 1.0])
        found = tokens(model, word, dropout=rate, rng=random.Random(seed))
        assert [t.id for t in found] == encode_pretoken(model, word, dropout=rate, rng=random.Random(seed))
    with pytest.raises(
        ValueError,
        match=r"dropout must be None for a model without merges, got 0.5 for WordPiece\(29 pieces\)",
    ):
        tokens(random_wordpiece(rng), "a", dropout=0.5)


@pytest.mark.slow
def test_long_pretokens_are_quick_and_right():
    "A hundred thousand characters without a space: linear, or nearly so, whatever is unknown."
    rng = random.Random(4)
    for kind in KINDS:
        model = KINDS[kind](rng)
        for word in ("ab" * 50_000, "abéx" * 25_000):
            found = tokens(model, word)
            assert [t.id for t in found] == model.encode(word)
            assert found[-1].end == len(word)


def test_models_with_names_pickle_and_stay_equal():
    rng = random.Random(5)
    for make in KINDS.values():
        model = make(rng)
        fresh = pickle.loads(pickle.dumps(model))
        tokens(model, "abé")
        assert (
            model == fresh
            and pickle.loads(pickle.dumps(model)) == model
            and tokens(fresh, "abé") == tokens(model, "abé")
        )
    with pytest.raises(
        ValueError, match="model must be a Model, got a str without piece2id; name .*Model as its base class"
    ):
        tokens("a model", "a")
    assert tokens(WordLevel({"a": 0}, None), "a") == [Token(0, "a", 0, 1)]


@pytest.mark.peers
def test_trained_words_are_those_of_hugging_face():
    hf = pytest.importorskip("tokenizers")
    rng = random.Random(6)
    for _ in range(60):
        words = [random_word(rng, 3).strip() or "a" for _ in range(rng.randrange(1, 60))]
        words = [
            w for w in words if not set(w) & set(" \u00a0\u2028\x1c\x85") and w not in ("<unk>", "<s>")
        ] or ["a"]
        size, least, special = (
            rng.choice([1, 5, 20, 1000]),
            rng.randrange(4),
            rng.sample(["<unk>", "<s>", "[PAD]"], rng.randrange(4)),
        )
        size = max(size, len(special))
        peer = hf.Tokenizer(hf.models.WordLevel(unk_token="<unk>"))
        peer.pre_tokenizer = hf.pre_tokenizers.WhitespaceSplit()
        peer.train_from_iterator(
            [" ".join(words)],
            hf.trainers.WordLevelTrainer(
                vocab_size=size, min_frequency=least, special_tokens=special, show_progress=False
            ),
        )
        counts = {w: words.count(w) for w in words}
        assert wordlevel_train(
            counts, vocab_size=size, min_frequency=least, special_tokens=special
        ) == peer.get_vocab(with_added_tokens=False), (counts, size, least, special)
