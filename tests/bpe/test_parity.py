"Fair BPE: against Hugging Face's ParityBpeTrainer, merge for merge, and on texts in many languages."

import json
import random

import pytest
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.bpe.parity import Parity, parity_train
from subword_nb.bpe.reference import base_symbols, count_pairs, merge_pair

NAMES = ["de", "en", "fr", "ja"]


def random_words(rng, letters):
    return {
        "".join(rng.choices(letters, k=rng.randrange(1, 9))): rng.randrange(1, 9)
        for _ in range(rng.randrange(1, 9))
    }


def texts_of(counts):
    return [word for word, n in counts.items() for _ in range(n)]


def their_merges(hf, corpora, dev, ratio, **options):
    "The merges of ParityBpeTrainer, with words split at spaces."
    tok = hf.Tokenizer(hf.models.BPE())
    tok.pre_tokenizer = hf.pre_tokenizers.WhitespaceSplit()
    trainer = hf.trainers.ParityBpeTrainer(show_progress=False, ratio=ratio, **options)
    given = {"train_iterators": [iter(texts_of(counts)) for counts in corpora.values()]}
    if dev:
        given["dev_iterators"] = [iter(texts_of(counts)) for counts in dev.values()]
    trainer.train_from_iterator(tok, **given)
    model = json.loads(tok.to_str())["model"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    return merges, model["vocab"]


def all_have_pairs(corpora, merges, least):
    "Has every corpus a pair left that is frequent enough?"
    for counts in corpora.values():
        splits = {word: list(word) for word in counts}
        for pair in merges:
            splits = {word: merge_pair(symbols, pair) for word, symbols in splits.items()}
        if max(count_pairs(splits, counts).values(), default=0) < max(1, least):
            return False
    return True


@pytest.mark.peers
@pytest.mark.parametrize("variant", ["base", "window"])
def test_hugging_faces_trainer_gives_the_same_merges(hf, variant):
    rng, compared = fresh(), 0
    for _ in range(250):
        names = NAMES[: rng.randrange(1, 5)]
        letters = rng.choice(["ab", "abc", "aéß"])
        corpora = {name: random_words(rng, letters) for name in names}
        dev = {name: random_words(rng, letters) for name in names}
        ratio = {name: rng.choice([1.0, 1.5, 2.0]) for name in names}
        by = rng.choice([{}, {"dev": dev}, {"ratio": ratio}])
        some = Parity(
            variant,
            global_merges=rng.choice([0, 0, 2]),
            window=rng.randrange(1, 6),
            alpha=rng.choice([1.0, 1.5, 2.0]),
            **by,
        )
        least = rng.choice([0, 1, 2])
        letters = {
            s for counts in (*corpora.values(), *by.get("dev", {}).values()) for p in counts for s in p
        }
        size = len(letters) + rng.randrange(1, 9)
        found = parity_train(corpora, size, parity=some, min_frequency=least, tie_break="largest")
        if variant == "window" and not all_have_pairs(corpora, found.merges, least):
            continue  # theirs may not end once a corpus has no pair left
        merges, vocab = their_merges(
            hf,
            corpora,
            by.get("dev"),
            [*ratio.values()] if "ratio" in by else None,
            variant=variant,
            num_merges=len(found.merges),
            min_frequency=least,
            global_merges=some.global_merges,
            window_size=some.window,
            alpha=some.alpha,
        )
        repeated = len({*found.merges}) < len(found.merges)
        if repeated:
            continue  # a file lists a rule once
        assert merges == found.merges, (corpora, some)
        assert vocab == {p: i for i, p in enumerate(found.pieces)}
        compared += 1
    assert compared > 50


def test_kernels_and_dictionaries_agree_on_a_larger_corpus():
    rng = random.Random(4)
    corpora = {
        name: {
            "".join(rng.choices(letters, k=rng.randrange(1, 12))): rng.randrange(1, 50) for _ in range(300)
        }
        for name, letters in zip(NAMES, ["abcdefg", "abcdhij", "xyzaaaa", "äöüaei"], strict=True)
    }
    dev = {name: dict([*counts.items()][:30]) for name, counts in corpora.items()}
    for some in (
        Parity(),
        Parity("window", dev=dev, window=10, alpha=1.0),
        Parity(dev=dev, global_merges=40),
    ):
        runs = [
            parity_train(corpora, 200, parity=some, bulk=bulk, tie_break="first") for bulk in (False, True)
        ]
        assert runs[0] == runs[1]
        assert len(runs[0].pieces) == 200


def test_symbols_of_the_development_set_are_in_the_vocabulary():
    found = parity_train({"a": {"xy": 2}}, 4, parity=Parity(dev={"a": {"xz": 1}}))
    assert found.pieces == ["x", "y", "z", "xy"]
    assert {s for p in ("xy", "xz") for s in base_symbols(p)} <= {*found.pieces}


def test_pretokens_that_are_too_long_are_said_to_be_left_out():
    corpora = {"a": ["a b a b" * 9], "b": ["c" * 100 + " b c"]}
    with pytest.warns(UserWarning, match="left out 1 pretokens of 100 bytes from the corpus 'b'") as caught:
        Tokenizer.train(corpora, vocab_size=258, parity=Parity(), max_pretoken_bytes=50)
    assert caught[0].filename == __file__
    corpora["b"] = ["c" * 100]
    with pytest.raises(
        ValueError, match="the corpus 'b' must have pretokens of at most max_pretoken_bytes=50"
    ):
        Tokenizer.train(corpora, vocab_size=258, parity=Parity(), max_pretoken_bytes=50)
