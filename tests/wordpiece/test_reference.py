"""WordPiece against the published numbers and the Hugging Face library."""

import json
import os
import pickle
import random
import subprocess
import sys
from dataclasses import replace
from itertools import permutations

import pytest

from subword_nb.bpe.reference import start_vocabulary
from subword_nb.bpe.trainer import learn_merges
from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS, documents
from subword_nb.corpus.counts import count_pretokens, flatten_counts
from subword_nb.text.pretokenizers import pretokenizer
from subword_nb.wordpiece.reference import wordpiece_encode_ref, wordpiece_train_ref
from subword_nb.wordpiece.longest_match import match_trie, wordpiece_encode
from subword_nb.wordpiece.model import WordPiece
from subword_nb.wordpiece.trainer import (
    corpus_symbols,
    learn_pieces,
    new_state,
    truncate_pieces,
    wordpiece_train,
)

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def peer():
    "The Hugging Face library, or a skipped test."
    return pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")


def model_of(pieces, **options):
    "A model with ids in the order of the pieces."
    return WordPiece({p: i for i, p in enumerate(pieces)}, **options)


@pytest.mark.parametrize("train", [wordpiece_train_ref, wordpiece_train])
def test_vocabulary_of_the_course(shared_file, train):
    expected = json.loads(shared_file("course_expected.json").read_text(encoding="utf-8"))["wordpiece"]
    rules = train(count_pretokens(COURSE_CORPUS, "bert"), 70, special_tokens=SPECIALS, tie_break="first")
    assert rules.pieces == expected["vocab"]
    assert rules.merges == [tuple(pair) for pair in expected["merges"]]
    model = model_of(rules.pieces)
    for word, pieces in expected["encode_word"].items():
        assert (
            wordpiece_encode_ref(word, rules.pieces)
            == [rules.pieces[i] for i in model.encode(word)]
            == pieces
        )
    for text, pieces in expected["tokenize"].items():
        words = [word for word, _, _ in pretokenizer("bert").split(text)]
        assert [rules.pieces[i] for word in words for i in model.encode(word)] == pieces


def test_toy_words():
    rules = wordpiece_train(TOY_COUNTS, 12, tie_break="first")
    assert rules.pieces[7:] == ["##gs", "hu", "hugs", "hug", "pu"]
    assert [str(s) for s in rules.scores] == ["1/20", "1/36", "1/15", "1/15", "1/21"]


def random_corpus(rng):
    "Counts and options that provoke ties, collisions of spelling and huge numbers."
    letters, prefix = rng.choice(
        [("ab", "##"), ("abcde", "##"), ("aé漢", "##"), ("a#", "##"), ("ab#", "#"), ("ab", "a"), ("abc", "")]
    )
    counts = {}
    for _ in range(rng.randrange(1, 10)):
        counts["".join(rng.choices(letters, k=rng.randrange(1, 12)))] = rng.choice([1, 1, 2, 3, 2**40, 2**55])
    return counts, dict(
        tie_break=rng.choice(["first", "ids", "bytes"]),
        min_frequency=rng.choice([0, 1, 2, 3]),
        max_token_length=rng.choice([None, None, 2, 5]),
        special_tokens=rng.choice([(), ["[UNK]"], ["ab", "##b", "#a"]]),
        limit_alphabet=rng.choice([None, None, 1, 2]),
        continuing_subword_prefix=prefix,
    )


@pytest.mark.parametrize("n", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_incremental_training_is_the_reference(n):
    rng = random.Random(n)
    for _ in range(n):
        counts, options = random_corpus(rng)
        size = rng.choice([12, 30, 60])
        expected = wordpiece_train_ref(counts, size, **options)
        assert wordpiece_train(counts, size, **options) == expected, (counts, size, options)
        assert wordpiece_train(flatten_counts(counts), size, **options) == expected, (counts, size, options)


@pytest.mark.slow
@pytest.mark.parametrize("tie_break", ["ids", "first", "bytes"])
def test_incremental_training_is_the_reference_on_real_text(shared_file, tie_break):
    counts = dict(list(count_pretokens(documents(shared_file("corpus/botchan.txt")), "bert").items())[:1500])
    for least in (1, 3):
        start = len(wordpiece_train(counts, 10**6, min_frequency=10**6).pieces)
        options = dict(tie_break=tie_break, min_frequency=least)
        assert wordpiece_train(counts, start + 150, **options) == wordpiece_train_ref(
            counts, start + 150, **options
        )


def test_result_does_not_depend_on_the_hash_seed():
    code = """
from subword_nb.corpus.documents import *
from subword_nb.corpus.counts import *
from subword_nb.wordpiece.trainer import *
corpora = TOY_COUNTS, flatten_counts(count_pretokens(COURSE_CORPUS, 'bert'))
print([wordpiece_train(c, 60, tie_break=t) for t in ('first', 'ids', 'bytes') for c in corpora])
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != "", runs[0].stderr


def test_a_symbol_with_many_pairs_does_not_slow_training():
    "Every merge changes the score of thousands of pairs of one letter; a quadratic trainer takes minutes here."
    counts = {"x" + chr(0x4E00 + i) + chr(0x4E00 + i * 7 % 20_000): 1 for i in range(20_000)}
    rules = wordpiece_train(counts, 10**6)
    assert (len(rules.merges), rules.ended) == (40_000, "no pair left")


@pytest.mark.parametrize("tie_break", ["ids", "first", "bytes"])
def test_unusual_characters_train_as_the_reference(tie_break):
    rng = random.Random(4)
    for _ in range(300):
        letters, prefix = rng.choice(
            [
                ("a😀𝒳", "##"),
                ("▁ab", "▁"),
                ("a\u0300\u200d", "##"),
                ("ab", "ab"),
                ("a😀", "😀"),
                ("##a", "a#"),
            ]
        )
        counts = {"".join(rng.choices(letters, k=rng.randrange(0, 9))): rng.randrange(1, 4) for _ in range(6)}
        options = dict(
            tie_break=tie_break,
            continuing_subword_prefix=prefix,
            initial_alphabet=rng.choice([(), ["a"], [prefix + "z"]]),
            limit_alphabet=rng.choice([None, 1, 2]),
        )
        if any(counts):
            assert wordpiece_train(counts, 40, **options) == wordpiece_train_ref(counts, 40, **options), (
                counts,
                options,
            )
    assert wordpiece_train({"a\ud800b": 1}, 9).pieces[-1] == "a\ud800b"


@pytest.mark.parametrize("objective", ["score", "frequency"])
def test_what_cannot_be_counted_is_refused(objective):
    numpy = pytest.importorskip("numpy")
    for counts, message in [
        ({}, "corpus must contain at least one pretoken"),
        ({"": 2}, "corpus must contain at least one pretoken"),
        ({b"ab": 1}, "pretokens must be str"),
        ({"ab": 2.0}, "float"),
        ({"ab": numpy.int64(2**62)}, "int64"),
        ({"ab": "3"}, "str"),
        ({"ab": None}, "None"),
        ({"ab": -1}, "got -1"),
        (["ab"], "must be a dict"),
    ]:
        with pytest.raises(ValueError, match=message):
            wordpiece_train(counts, 50, objective=objective)
    for options, message in [
        (dict(special_tokens="[UNK]"), "must be a list"),
        (dict(special_tokens=[3]), "got 3"),
        (dict(special_tokens=["a", "a"]), "more than once"),
        (dict(initial_alphabet=[""]), "single characters"),
        (dict(initial_alphabet=["xyz"]), "single characters"),
        (dict(initial_alphabet=[b"x"]), "single characters"),
        (dict(continuing_subword_prefix=None), "no mark"),
        (dict(tie_break="x"), "tie_break must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            wordpiece_train(TOY_COUNTS, 50, objective=objective, **options)


def test_tie_rule_is_checked_with_the_arrays_as_well():
    names, symbol, length, weight = corpus_symbols({"ab": 1})
    with pytest.raises(ValueError, match="tie_break must be"):
        new_state(symbol, length, weight, names, tie_break="random")


def test_counts_above_the_range_of_a_word_are_refused():
    for counts in ({"ab": 10**30}, {"ab": 2**62}, {"a": 2**62, "b": 2**62}, {"a": 2**63}):
        with pytest.raises(ValueError, match="divide all counts"):
            wordpiece_train(counts, 50)
    with pytest.raises(ValueError, match="divide all counts"):
        wordpiece_train(flatten_counts({"ab": 2**62}), 50)
    assert wordpiece_train({"ab": 2**62 - 1}, 50).scores[0].denominator == 2**62 - 1
    with pytest.raises(ValueError, match="pretokens must be str"):
        wordpiece_train(flatten_counts({b"ab": 1}), 50)


@pytest.mark.parametrize("tie_break", ["ids", "first", "bytes"])
@pytest.mark.parametrize("prefix", ["##", ""])
def test_stopping_going_on_and_cutting_on_real_text(shared_file, tie_break, prefix):
    "Without a prefix most merges spell a piece that was there before."
    counts = count_pretokens(documents(shared_file("corpus/botchan.txt")), "bert")
    options = dict(tie_break=tie_break, continuing_subword_prefix=prefix)
    start = len(wordpiece_train(counts, 10**6, min_frequency=10**6, **options).pieces)
    full = wordpiece_train(counts, start + 300, **options)
    assert full == wordpiece_train(flatten_counts(counts), start + 300, **options)
    for n in (0, 1, 77, len(full.pieces) - start):
        short = wordpiece_train(counts, start + n, **options)
        assert truncate_pieces(full, start + n, prefix=prefix) == short
        assert wordpiece_train(counts, start + 300, known=short, **options) == full


def test_a_run_is_resumed_from_every_snapshot(shared_file):
    counts = dict(list(count_pretokens(documents(shared_file("corpus/botchan.txt")), "bert").items())[:3000])
    names, symbol, length, weight = corpus_symbols(counts)
    pieces = sorted(names)
    ids, found = {p: i for i, p in enumerate(pieces)}, []
    state = new_state([ids[names[i]] for i in symbol.tolist()], length, weight, pieces)
    rules = learn_pieces(
        *state, pieces, 3000, on_progress=lambda *args: found.append(args[3]()), every=0, work=1000
    )
    assert rules == wordpiece_train(counts, 3000)
    assert len(found) > 20
    for snapshot in [found[0], *found[5::20], found[-1]]:
        assert wordpiece_train(counts, 3000, resume=pickle.loads(pickle.dumps(snapshot))) == rules


def test_bytes_are_no_word():
    for model in (model_of(["[UNK]", "a"]), model_of(["a"], unk_piece=None)):
        with pytest.raises(ValueError, match="pretoken must be a str"):
            model.encode(b"ab")


def test_a_fan_of_pieces_under_a_long_one_keeps_nothing_for_those_without_link():
    trie = match_trie(["a", "##a", *("##" + "a" * 300 + chr(0x4E00 + i) + "x" for i in range(1000))])
    assert len(trie.popped) < 3000


def test_a_word_of_a_megabyte_trains_and_encodes():
    word = "".join(random.Random(0).choices("abcd", k=1_000_000))
    rules = wordpiece_train({word: 1}, 60, special_tokens=["[UNK]"])
    assert rules.ended == "full"
    model = model_of(rules.pieces, max_input_chars_per_word=1_000_000)
    pieces = [rules.pieces[i] for i in model.encode(word)]
    assert "".join(p.removeprefix("##") for p in pieces) == word
    assert model.encode(word + "a") == [0]


def test_a_long_piece_does_not_slow_long_words():
    "Over one-letter pieces, a piece of twenty thousand letters: the pops of all its nodes share their beginnings."
    text = "".join(random.Random(1).choices("abcdefgh", k=20_000))
    trie = match_trie([*"abcdefgh", *("##" + c for c in "abcdefgh"), "##" + text + "!"])
    assert len(trie.popped) < 50_000
    assert wordpiece_encode(text[0] + text, trie) == [text[0], *("##" + c for c in text)]
    assert wordpiece_encode(text[0] + text + "!", trie) == [text[0], "##" + text + "!"]


def test_model_survives_copies_with_every_option_set():
    model = WordPiece({"?": 5, "a": 3, "b": 9, "+b": 7}, "?", "+", 70)
    before = model.encode("abb"), model.encode("a" + "b" * 69), model.encode("x")
    assert before == ([3, 7, 7], [3] + [7] * 69, [5])
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model and (copy.encode("abb"), copy.encode("a" + "b" * 69), copy.encode("x")) == before
    assert replace(model, unk_piece=None) != model
    with pytest.raises(ValueError, match="without unk_piece"):
        replace(model, unk_piece=None).encode("x" * 500)


@pytest.mark.peers
def test_encoding_is_hugging_faces():
    tokenizers, rng = peer(), random.Random(2)
    for _ in range(1500):
        letters, prefix = rng.choice([("ab", "##"), ("aéb漢", "##"), ("a#", "##"), ("abc", "")])
        pieces = [
            rng.choice(["", prefix]) + "".join(rng.choices(letters, k=rng.randrange(1, 6)))
            for _ in range(rng.randrange(12))
        ]
        names, most = list(dict.fromkeys(["[UNK]", *pieces])), rng.choice([3, 20, 100])
        ours = model_of(names, continuing_subword_prefix=prefix, max_input_chars_per_word=most)
        theirs = tokenizers.models.WordPiece(
            ours.piece2id, unk_token="[UNK]", max_input_chars_per_word=most, continuing_subword_prefix=prefix
        )
        for _ in range(5):
            word = "".join(rng.choices(letters, k=rng.choice([1, 2, 3, 4, 19, 20, 21, 99, 100, 101])))
            assert ours.encode(word) == [t.id for t in theirs.tokenize(word)], (names, prefix, most, word)


@pytest.mark.peers
def test_a_model_without_unknown_piece_complains_when_hugging_face_does():
    theirs = peer().models.WordPiece({"h": 0, "##u": 1}, unk_token="[UNK]")
    ours = WordPiece({"h": 0, "##u": 1}, unk_piece=None)
    assert ours.encode("hu") == [t.id for t in theirs.tokenize("hu")] == [0, 1]
    with pytest.raises(Exception, match="UNK"):
        theirs.tokenize("mu")
    with pytest.raises(ValueError, match="cannot be spelled"):
        ours.encode("mu")


@pytest.mark.peers
@pytest.mark.parametrize("name", ["bert-base-cased", "bert-base-chinese"])
def test_words_of_real_text_with_bert_vocabularies(shared_file, name):
    "Greedy, LinMaxMatch and Hugging Face on every distinct word of a book and of a text in many scripts."
    names = shared_file(f"vocab/{name}/vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    ours, trie = model_of(names), match_trie({p: i for i, p in enumerate(names)})
    theirs = peer().models.WordPiece(ours.piece2id, unk_token="[UNK]")
    texts = [
        *documents(shared_file("corpus/botchan.txt")),
        *documents(shared_file("corpus/stress/UTF-8-demo.txt")),
    ]
    for word in count_pretokens(texts, "bert"):
        ids = ours.encode(word)
        assert ids == [t.id for t in theirs.tokenize(word)], word
        if len(word) <= 100:
            assert ids == (wordpiece_encode(word, trie) or [ours.piece2id["[UNK]"]])


def hf_train(texts, pre_tokenizer, **options):
    "The vocabulary, in the order of ids, that Hugging Face's WordPieceTrainer learns."
    tokenizers = peer()
    tok = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizer
    tok.train_from_iterator(texts, tokenizers.trainers.WordPieceTrainer(show_progress=False, **options))
    vocab = tok.get_vocab()
    return sorted(vocab, key=vocab.get)


def learned_from(counts, start, splits, vocab_size, **options):
    "By frequency, with the ids that the pieces have in `start`."
    ids = {p: i for i, p in enumerate(start)}
    words = [[ids[s] for s in symbols] for symbols in splits.values()]
    return learn_merges(words, list(counts.values()), list(start), vocab_size, prefix="##", **options).pieces


@pytest.mark.peers
@pytest.mark.parametrize("name", ["botchan", "english_small"])
def test_frequency_is_hugging_faces_given_the_ids_of_its_run(shared_file, name):
    "Its ids of marked letters come from a hash table and break ties; with them, 8,000 pieces agree id for id."
    texts = list(documents(shared_file(f"corpus/{name}.txt")))
    counts = count_pretokens(texts, "bert")
    theirs = hf_train(
        texts, peer().pre_tokenizers.BertPreTokenizer(), vocab_size=8000, special_tokens=SPECIALS
    )
    start, splits = start_vocabulary(counts, 8000, special_tokens=SPECIALS, prefix="##")
    assert set(theirs[: len(start)]) == set(start)
    assert theirs[: len(SPECIALS)] == SPECIALS
    assert learned_from(counts, theirs[: len(start)], splits, 8000) == theirs
    ours = wordpiece_train(counts, 8000, special_tokens=SPECIALS, objective="frequency").pieces
    assert len(ours) == 8000 and len(set(ours) - set(theirs)) < 200


@pytest.mark.peers
def test_frequency_is_hugging_faces_where_no_tie_depends_on_its_ids():
    "Small corpora that give the same pieces for every order of the marked letters: there Hugging Face is deterministic."
    rng, certain = random.Random(3), 0
    for _ in range(1500):
        counts = {}
        for _ in range(rng.randrange(1, 7)):
            counts["".join(rng.choices("abc", k=rng.randrange(1, 7)))] = rng.randrange(1, 500)
        options = dict(
            vocab_size=rng.choice([8, 12, 20, 60]),
            min_frequency=rng.choice([0, 2, 40]),
            special_tokens=["[UNK]"],
        )
        start, splits = start_vocabulary(counts, 100, special_tokens=["[UNK]"], prefix="##")
        plain, marked = [p for p in start if not p.startswith("##")], [p for p in start if p.startswith("##")]
        if options["vocab_size"] < len(start):
            continue
        learned = {
            tuple(
                learned_from(
                    counts,
                    [*plain, *order],
                    splits,
                    options["vocab_size"],
                    min_frequency=options["min_frequency"],
                )[len(start) :]
            )
            for order in permutations(marked)
        }
        if len(learned) > 1:
            continue
        certain += 1
        theirs = hf_train(
            [" ".join([word] * n) for word, n in counts.items()],
            peer().pre_tokenizers.WhitespaceSplit(),
            **options,
        )
        ours = wordpiece_train(counts, objective="frequency", **options).pieces
        assert (ours[len(start) :], ours[: len(plain)], set(ours)) == (
            theirs[len(start) :],
            theirs[: len(plain)],
            set(theirs),
        ), (counts, options)
    assert certain > 700
