"""BPE against the Hugging Face library: the same merges, in the same order, from the same text."""

import json
import lzma
import os
import random
import subprocess
import sys

import pytest
from seeds import TEXTS, fresh

from subword_nb.bpe.reference import bpe_train_ref, join_pair
from subword_nb.bpe.model import BPE, encode_pretoken
from subword_nb.bpe.trainer import truncate_rules
from subword_nb.bpe.trainer import bpe_train
from subword_nb.corpus.documents import documents
from subword_nb.corpus.counts import count_pretokens, flatten_counts
from subword_nb.text.pretokenizers import byte_level
from subword_nb.core.unicode import from_visible, to_visible

BYTES = [bytes([i]) for i in range(256)]


def hf_train(texts, pre_tokenizer=None, **options):
    "Merges and vocabulary (in the order of ids) that Hugging Face's BpeTrainer learns."
    tokenizers = pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = pre_tokenizer or tokenizers.pre_tokenizers.WhitespaceSplit()
    tok.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(show_progress=False, **options))
    model = json.loads(tok.to_str())["model"]
    return [tuple(m) for m in model["merges"]], sorted(model["vocab"], key=model["vocab"].get)


@pytest.mark.peers
@pytest.mark.parametrize("form", ["text", "lines"])
@pytest.mark.parametrize("name", ["botchan", "english_small", "wagahaiwa_nekodearu"])
def test_merges_of_real_text_are_hugging_faces(shared_file, name, form, record_property):
    tokenizers = pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    texts = list(documents(shared_file(f"corpus/{name}.txt")))
    if form == "lines":
        texts = "".join(texts).splitlines(keepends=True)
    counts = {from_visible(p): n for p, n in count_pretokens(texts, byte_level("gpt2")).items()}
    pre = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    merges, vocab = hf_train(texts, pre, vocab_size=8000, initial_alphabet=pre.alphabet())
    for bulk in (False, True):
        rules = bpe_train(counts, 8000, initial_alphabet=BYTES, tie_break="ids", bulk=bulk)
        assert [(to_visible(a), to_visible(b)) for a, b in rules.merges] == merges
        assert [to_visible(p) for p in rules.pieces] == vocab
    record_property("merges", len(merges))


@pytest.mark.peers
def test_merges_of_small_corpora_are_hugging_faces():
    "Two thousand tiny corpora, with ties, a minimum frequency and special tokens."
    rng = random.Random(0)
    for _ in range(2000):
        letters = rng.choice(["ab", "abc", "aé漢"])
        counts = {}
        for _ in range(rng.randrange(1, 8)):
            word = "".join(rng.choices(letters, k=rng.randrange(1, 9)))
            counts[word] = counts.get(word, 0) + rng.randrange(1, 4)
        options = dict(
            vocab_size=rng.choice([8, 12, 40]),
            min_frequency=rng.choice([1, 2, 3]),
            special_tokens=rng.choice([[], ["<s>", "<pad>"]]),
        )
        merges, vocab = hf_train([" ".join(w for w, n in counts.items() for _ in range(n))], **options)
        for train in (bpe_train_ref, bpe_train):
            rules = train(counts, tie_break="ids", **options)
            assert (rules.merges, rules.pieces) == (merges, vocab), (counts, options)


@pytest.mark.peers
def test_limits_of_the_alphabet_are_hugging_faces():
    "Only where the rarest characters are not tied: there the order in Hugging Face's hash table decides."
    counts = {"aabab": 7, "abc": 4, "cd": 2, "e": 1}
    for limit in (1, 2, 3, 4, 5):
        merges, vocab = hf_train(
            [" ".join(w for w, n in counts.items() for _ in range(n))], vocab_size=20, limit_alphabet=limit
        )
        rules = bpe_train(counts, 20, limit_alphabet=limit)
        assert (rules.merges, rules.pieces) == (merges, vocab)


@pytest.mark.peers
def test_the_length_limit_of_hugging_face_is_exclusive():
    "What the errata callout of the BPE notebook says about their trainer."
    merges, vocab = hf_train(["abcdefgh " * 5], vocab_size=100, max_token_length=4)
    assert max(map(len, vocab)) == 2
    assert max(map(len, hf_train(["ab " * 5], vocab_size=100, max_token_length=1)[1])) == 2
    assert max(map(len, bpe_train({"abcdefgh": 5}, 100, max_token_length=4).pieces)) == 4
    assert max(map(len, bpe_train({"ab": 5}, 100, max_token_length=1).pieces)) == 1


@pytest.mark.peers
def test_encoding_is_hugging_faces():
    "Rules in any order, unknown characters, affixes, byte fallback: the same ids."
    tokenizers = pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    rng = random.Random(1)
    for _ in range(1500):
        prefix, suffix = rng.choice(["", "##"]), rng.choice(["", "</w>"])
        words = {"".join(rng.choices("abc", k=rng.randrange(1, 9))): rng.randrange(1, 4) for _ in range(8)}
        rules = bpe_train_ref(
            words,
            200,
            special_tokens=["[UNK]"],
            tie_break="first",
            continuing_subword_prefix=prefix,
            end_of_word_suffix=suffix,
        )
        merges = rng.sample(rules.merges, len(rules.merges)) if rng.random() < 0.3 else rules.merges
        piece2id = {p: i for i, p in enumerate(rules.pieces)}
        if fallback := rng.random() < 0.3:
            piece2id |= {f"<0x{b:02X}>": len(piece2id) + b for b in range(256)}
        fuse, ignore = rng.random() < 0.5, rng.random() < 0.3
        ours = BPE(piece2id, merges, None, "[UNK]", prefix, suffix, fuse, fallback, ignore)
        theirs = tokenizers.models.BPE(
            piece2id,
            merges,
            unk_token="[UNK]",
            continuing_subword_prefix=prefix,
            end_of_word_suffix=suffix,
            fuse_unk=fuse,
            byte_fallback=fallback,
            ignore_merges=ignore,
        )
        for _ in range(10):
            word = "".join(
                rng.choices("abc" if fallback and (prefix or suffix) else "abcxyé", k=rng.randrange(1, 12))
            )
            assert encode_pretoken(ours, word) == [t.id for t in theirs.tokenize(word)], (
                word,
                rules,
                prefix,
                suffix,
                fuse,
                fallback,
                ignore,
            )


@pytest.mark.slow
def test_three_versions_agree_on_generated_corpora():
    rng = fresh(2)
    for _ in range(10 * TEXTS):
        letters = rng.choice(["ab", "abc", "abcdefgh"])
        counts = {
            "".join(rng.choices(letters, k=rng.randrange(1, 14))): rng.randrange(1, 5)
            for _ in range(rng.randrange(1, 14))
        }
        options = dict(
            tie_break=rng.choice(["first", "ids", "bytes"]),
            max_token_length=rng.choice([None, 3, 5]),
            min_frequency=rng.choice([1, 2]),
        )
        expected = bpe_train_ref(counts, 80, **options)
        assert bpe_train(counts, 80, bulk=False, **options) == expected, (counts, options)
        assert bpe_train(counts, 80, bulk=True, **options) == expected, (counts, options)


@pytest.mark.slow
def test_tie_rules_agree_on_real_text(shared_data):
    "Dictionaries and kernel on a corpus where heaps, segments and growing really happen."
    counts = count_pretokens(documents(shared_data / "corpus" / "botchan.txt"), "gpt2")
    for rule in ("first", "ids", "bytes"):
        assert bpe_train(counts, 4000, tie_break=rule, bulk=True) == bpe_train(
            counts, 4000, tie_break=rule, bulk=False
        )


def random_counts(rng):
    "A small corpus full of ties, text or bytes, and options."
    letters, few = rng.choice(["ab", "abc", "aé", "a#"]), rng.random() < 0.7
    words = {
        "".join(rng.choices(letters, k=rng.randrange(0, 10))): rng.randrange(1, 4)
        for _ in range(rng.randrange(1, 9) if few else 50)
    }
    words["a"] = 1
    options = dict(
        tie_break=rng.choice(["first", "ids", "bytes"]),
        max_token_length=rng.choice([None, None, 3, 5]),
        min_frequency=rng.choice([1, 1, 2]),
        special_tokens=rng.choice([[], ["<s>", "ab"]]),
    )
    if rng.random() < 0.4:
        return {w.encode(): n for w, n in words.items()}, options
    return words, options | dict(
        continuing_subword_prefix=rng.choice(["", "##"]),
        end_of_word_suffix=rng.choice(["", "</w>"]),
        limit_alphabet=rng.choice([None, None, 1, 2]),
    )


def test_flat_counts_train_as_a_dict_does():
    rng = fresh(5)
    for _ in range(TEXTS // 2):
        counts, options = random_counts(rng)
        expected = bpe_train_ref(counts, 90, **options)
        for bulk in (False, True):
            assert bpe_train(flatten_counts(counts), 90, bulk=bulk, **options) == expected, (counts, options)
            assert bpe_train(counts, 90, bulk=bulk, **options) == expected, (counts, options)


def test_a_piece_made_twice_keeps_one_id_and_all_its_places():
    "Where the letters of a corpus spell the mark, two merges often make the same piece."
    rng, twice = random.Random(6), 0
    for _ in range(100):
        counts = {"".join(rng.choices("a#", k=rng.randrange(1, 12))): rng.randrange(1, 4) for _ in range(20)}
        options = dict(
            continuing_subword_prefix="##",
            tie_break=rng.choice(["first", "ids", "bytes"]),
            max_token_length=rng.choice([None, 5]),
        )
        expected = bpe_train_ref(counts, 300, **options)
        twice += len({join_pair(a, b, prefix="##") for a, b in expected.merges}) < len(expected.merges)
        assert (
            bpe_train(counts, 300, bulk=True, **options)
            == expected
            == bpe_train(counts, 300, bulk=False, **options)
        )
    assert twice > 10


def watched_run(counts, bulk, options):
    "The rules, and the snapshots of the run."
    seen = []
    return bpe_train(
        counts, 90, bulk=bulk, on_progress=lambda done, total, what, state: seen.append(state()), **options
    ), seen


def test_a_run_in_two_parts_is_one_run():
    rng = fresh(7)
    for case in range(TEXTS // 10):
        counts, options = random_counts(rng)
        bulk = bool(case % 2)
        whole, seen = watched_run(counts, bulk, options)
        for k in range(max(1, seen[0]["start"]), len(whole.pieces) + 1):
            part = truncate_rules(whole, k, prefix=options.get("continuing_subword_prefix", ""))
            if k % 5 == 0:
                assert part == bpe_train_ref(counts, k, **options)
            assert bpe_train(counts, 90, bulk=not bulk, known=part, **options) == whole
            assert bpe_train(counts, 90, bulk=bulk, known=part.merges, **options) == whole
        for snapshot in seen:
            assert (
                bpe_train(counts, 90, bulk=not bulk, resume=json.loads(json.dumps(snapshot)), **options)
                == whole
            )


def test_counts_above_32_bits():
    rng = random.Random(8)
    for k in range(100):
        counts, options = random_counts(rng)
        large = {w: n * (2**33 + k) for w, n in counts.items()}
        assert bpe_train(flatten_counts(large), 60, bulk=True, **options) == bpe_train_ref(
            large, 60, **options
        )
    with pytest.raises(ValueError, match=r"must have fewer than 2\*\*63"):
        bpe_train(flatten_counts({"abc": 2**62}), 10, bulk=True)


def test_hash_seeds_do_not_matter():
    "The same rules in processes that hash differently, from dictionaries and from kernels."
    code = """
import hashlib, random
from subword_nb.bpe.trainer import bpe_train
rng = random.Random(0)
counts = {"".join(rng.choices("abcde", k=rng.randrange(1, 9))): rng.randrange(1, 5) for _ in range(400)}
rules = [
    bpe_train(counts, 300, tie_break=rule, bulk=bulk, end_of_word_suffix="</w>", limit_alphabet=4)
    for rule in ("first", "ids", "bytes")
    for bulk in (False, True)
]
print(hashlib.sha256(repr(rules).encode()).hexdigest())
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "SUBWORD_NB_QUIET": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    ]
    assert len(set(runs)) == 1


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("name", ["english_60mb", "multilingual_mixed"])
def test_merges_of_a_large_corpus_are_hugging_faces(shared_file, name):
    tokenizers = pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    text = lzma.decompress(shared_file(f"corpus/{name}.txt.xz").read_bytes()).decode()
    texts = [text[i : i + 100_000] for i in range(0, len(text), 100_000)]
    counts = flatten_counts(
        {from_visible(p): n for p, n in count_pretokens(texts, byte_level("gpt2")).items()}
    )
    pre = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    merges, vocab = hf_train(texts, pre, vocab_size=32_000, initial_alphabet=pre.alphabet())
    rules = bpe_train(counts, 32_000, initial_alphabet=BYTES)
    assert [(to_visible(a), to_visible(b)) for a, b in rules.merges] == merges
    assert [to_visible(p) for p in rules.pieces] == vocab
