"BPE with removals: files, formats that cannot hold it, and that training ends as encoding does."

import json
import random

import pytest
from seeds import TEXTS, fresh

from subword_nb import Tokenizer
from subword_nb.bpe.parity import Parity
from subword_nb.bpe.reference import base_symbols
from subword_nb.bpe.event_kernels import EventSpanEncoder
from subword_nb.bpe.merge_kernels import span_ids
from subword_nb.bpe.refined import (
    Event,
    RefinedBPE,
    picky_train,
    refined_model,
    replay_events,
    replay_events_ref,
)

WORDS = [
    "the",
    "hug",
    "of",
    "a",
    "pug,",
    "in",
    "1984…",
    "der",
    "Hügel;",
    "東京都",
    "and",
    "don't",
    "“stop”!",
    "hugs",
    "hugging",
    "hugged",
]
OPTIONS = [{"picky": 0.6}, {"scaffold": True}, {"trim": 40}]


def texts(rng, n):
    for _ in range(n):
        yield " ".join(rng.choices(WORDS, k=rng.randrange(1, 30)))


@pytest.fixture(scope="module", params=OPTIONS, ids=lambda options: next(iter(options)))
def trained(request):
    corpus = [*texts(random.Random(5), 300)]
    options = {"special_tokens": ["<s>"], "vocab_size": 285, "progress": False}
    return Tokenizer.train(corpus, **options, **request.param)


def test_something_is_removed_and_texts_come_back(trained):
    assert trained.model.facts(())["removals"] > 0
    for text in texts(fresh(), 50):
        ids = trained.encode(text)
        assert trained.decode(ids) == text
        assert trained.encode_array(text).tolist() == ids
        assert [i for row in trained.encode_batch([text, text]) for i in row] == ids + ids
    assert "event" in repr(trained.model.explain("Ġhugging"))
    assert trained.explain("hugging")


def test_saved_and_loaded_it_is_the_same(trained, tmp_path):
    with pytest.warns(UserWarning, match="only this library reads the model"):
        trained.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.model == trained.model
    for text in texts(fresh(), 50):
        assert again.encode(text) == trained.encode(text)


@pytest.mark.parametrize("name", ["tok.tiktoken", "tok.model", "tok.gguf", "merges.txt"])
def test_formats_that_cannot_hold_it_refuse(trained, tmp_path, name):
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        trained.save(tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([["merge", "h"]], "parts that spell its piece"),
        ([["merge", "h", 1]], "must be a kind and the parts"),
        ([["grow", "h", "u"]], '"merge" or "remove"'),
        ([[]], '"merge" or "remove"'),
        ([["remove", "hu", "h", "u"]], "pieces that exist at that point"),
        ([["merge", "h", "u"], ["merge", "hu", "x"]], "pieces that exist at that point"),
        ({"merge": 1}, "must be a list"),
    ],
)
def test_damaged_files_are_refused(tmp_path, events, message):
    model = {"type": "RefinedBPE", "unk_token": None, "vocab": {"h": 0, "u": 1, "hu": 2}, "events": events}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(path)


def test_a_long_pretoken_takes_no_time_to_speak_of():
    counts = {"abab": 9, "abc": 5, "bcab": 3, "cccc": 2}
    rules = picky_train(counts, 9, threshold=0.4)
    assert any(event.kind == "remove" for event in rules.events)
    word = fresh().choices("abc", k=50_000)
    assert replay_events(word, rules.events) == replay_events_ref(word, rules.events)


def random_events(rng, letters):
    "Merges and removals in any order, in which pieces are made and taken apart in several ways; the pieces that are left."
    present, events = [*letters], []
    for _ in range(rng.randrange(1, 25)):
        removable = [p for p in present if len(p) > 1]
        if removable and rng.random() < 0.35:
            piece, parts, at = rng.choice(removable), [], 0
            while at < len(piece):
                fits = [p for p in present if p != piece and piece.startswith(p, at)]
                parts.append(rng.choice(fits))
                at += len(parts[-1])
            present.remove(piece)
            events.append(Event("remove", piece, tuple(parts)))
            continue
        pair = rng.choice(present), rng.choice(present)
        if len("".join(pair)) <= 6:
            events.append(Event("merge", "".join(pair), pair))
            present += [] if "".join(pair) in present else ["".join(pair)]
    return events, present


def test_events_of_every_kind_are_replayed():
    rng = fresh("events")
    for _ in range(TEXTS):
        letters = rng.choice(["ab", "abc"])
        events, pieces = random_events(rng, letters)
        word = "".join(rng.choices(letters, k=rng.randrange(1, 14)))
        wanted = replay_events_ref(list(word), events)
        assert replay_events(list(word), events) == wanted, (events, word)
        model = RefinedBPE({p: i for i, p in enumerate(pieces)}, tuple(events))
        found = span_ids(EventSpanEncoder(model.events, model.piece2id), [word.encode()])
        assert found == [[model.piece2id[p] for p in wanted]], (events, word)


def test_parts_that_were_never_made_in_a_word_keep_their_length():
    merges = [("b", "b"), ("a", "bb"), ("b", "b"), ("a", "b")]
    events = [Event("merge", a + b, (a, b)) for a, b in merges]
    events += [Event("remove", "abb", ("ab", "b")), Event("merge", "bb", ("b", "b"))]
    assert replay_events_ref(list("abbb"), events) == ["ab", "bb"]
    assert replay_events(list("abbb"), events) == ["ab", "bb"]


def test_training_sees_what_encoding_gives():
    counts = {w.encode(): n for n, w in enumerate(WORDS, 1)}
    rules = picky_train(counts, 70, threshold=0.5)
    model = refined_model(rules)
    assert isinstance(model, RefinedBPE)
    often = {}
    for pretoken, n in counts.items():
        for symbol in replay_events(base_symbols(pretoken), rules.events):
            often[symbol] = often.get(symbol, 0) + n
    assert {*often} <= {*rules.pieces}


def test_several_corpora_take_turns(tmp_path):
    sources = {"en": [*texts(random.Random(1), 50)], "de": ["der Hügel des Hugo " * 3] * 20}
    options = {"vocab_size": 300, "progress": False}
    one = Tokenizer.train(sources, parity=Parity(dev={"en": ["a"], "de": sources["de"]}), **options)
    two = Tokenizer.train(sources, parity=Parity("window"), threads=1, **options)
    assert one.model.merges != two.model.merges
    assert two == Tokenizer.train(sources, parity=Parity("window"), threads=2, **options)
    one.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode("der Hügel") == one.encode("der Hügel")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"picky": 0.9, "scaffold": True}, "scaffold must be left out with picky"),
        ({"picky": 2}, "threshold must be a number above 0"),
        ({"picky": 0.9, "dropout": 0.1}, "dropout must be left out"),
        ({"picky": 0.9, "algorithm": "char_bpe"}, 'pass algorithm="bpe"'),
        ({"parity": Parity()}, "the source must be a dict of names and corpora"),
        ({"parity": "base"}, "parity must be a Parity"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Tokenizer.train(["a hug and a pug"], **{"vocab_size": 300, "progress": False} | options)
