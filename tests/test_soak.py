"""What only time shows.

Memory that grows, work that grows faster than the text, and ids that go wrong under a mixed load, compared
with the peers all the time.

`pytest tests -m soak` runs the full forms; SUBWORD_NB_SOAK_SECONDS, _THREADS, _TEXTS, _CYCLES and _MB say how much.
"""

import json
import os
import random
import sys
import threading
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import pytest
from costs import assert_linear, user_seconds
from long_texts import MODELS, NAMES, forget, long_text
from mishaps import LONG, TEXTS, load, run_child, some_text

from subword_nb import Tokenizer
from subword_nb.pipeline.encoder import encode_general, encoder_of

linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
THREADS = int(os.environ.get("SUBWORD_NB_SOAK_THREADS", "6"))
KINDS = ["bpe", "char_bpe", "wordpiece", "unigram"]
GROWTH = (
    16 << 10
)  # KiB that a process may grow, whatever it has encoded and loaded; memories are made small for the test, so that they are full before


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    "Algorithm → the file of a small tokenizer."
    folder, docs = (
        tmp_path_factory.mktemp("toys"),
        [*TEXTS * 3, "low lower lowest newer wider hugs pug pun bun " * 20],
    )
    special = {
        "bpe": ["<s>"],
        "char_bpe": ["<unk>", "<s>"],
        "wordpiece": ["[UNK]", "<s>"],
        "unigram": ["<unk>", "<s>"],
    }
    for kind in KINDS:
        unknown = {"unk_piece": "<unk>"} if kind == "char_bpe" else {}
        Tokenizer.train(
            docs, algorithm=kind, vocab_size=400, special_tokens=special[kind], progress=False, **unknown
        ).save(folder / f"{kind}.json")
    return {kind: str(folder / f"{kind}.json") for kind in KINDS}


# Memory.


@linux
@pytest.mark.parametrize(
    "kind",
    [
        "bpe",
        pytest.param("wordpiece", marks=pytest.mark.slow),
        pytest.param("unigram", marks=pytest.mark.slow),
    ],
)
def test_short_texts_do_not_grow_memory(toys, kind, record_property):
    n, growth = run_child("grow", json.dumps(toys[kind]), 20_000 if kind == "bpe" else 100_000, timeout=900)
    record_property("texts", n)
    record_property("growth_kib", growth)
    assert growth < GROWTH


@pytest.mark.slow
@linux
def test_loading_and_forgetting_does_not_grow_memory(toys, record_property):
    n, growth, threads = run_child("cycles", json.dumps([*toys.values()]), 30, timeout=900)
    record_property("cycles", n)
    record_property("growth_kib", growth)
    assert growth < GROWTH and threads == 0


@linux
@pytest.mark.soak
@pytest.mark.parametrize(
    "name",
    [
        "gpt2/tokenizer.json",
        "bert-base-uncased/tokenizer.json",
        "t5-small/spiece.model",
        "llama-2/tokenizer.model",
    ],
)
def test_ten_million_short_texts_do_not_grow_memory(shared_file, name, record_property):
    n, growth = run_child(
        "grow",
        json.dumps(str(shared_file(f"vocab/{name}"))),
        int(os.environ.get("SUBWORD_NB_SOAK_TEXTS", "10000000")) // 4,
        timeout=7200,
    )
    record_property("texts", n)
    record_property("growth_kib", growth)
    assert growth < 2 * GROWTH


@linux
@pytest.mark.soak
def test_a_thousand_loads_do_not_grow_memory(shared_file, record_property):
    names = [
        str(shared_file(f"vocab/{name}"))
        for name in (
            "gpt2/tokenizer.json",
            "bert-base-uncased/vocab.txt",
            "t5-small/spiece.model",
            "llama-2/tokenizer.model",
            "tiktoken/cl100k_base.tiktoken",
        )
    ]
    n, growth, threads = run_child(
        "cycles", json.dumps(names), int(os.environ.get("SUBWORD_NB_SOAK_CYCLES", "1000")), timeout=7200
    )
    record_property("cycles", n)
    record_property("growth_kib", growth)
    assert growth < 4 * GROWTH and threads == 0


# Time.

UNITS = {
    "one long word": "ab",
    "one letter": "a",
    "spaces": " ",
    "tabs and spaces": "\t ",
    "newlines": "\n",
    "combining marks": "e\u0301\u0323\u0301",
    "marks alone": "\u0301",
    "special tokens": "<s>",
    "halves of special tokens": "<s <",
    "no spaces": "你好",
    "signs": "!?",
    "digits": "1",
    "unknown": "\U0001f9ff",
    "apostrophes": "'s'",
}


def assert_all_linear(tok, unit, n, what, works=("encode", "general path", "places", "text", "pieces")):
    def forgetting(work):
        def run(text):
            bulk = encoder_of(tok).bulk
            if bulk is not None:
                bulk.tables.clear()  # a short text would be remembered as one span, and a long one is not
            return work(text)

        return run

    ways = {
        "encode": forgetting(tok.encode),
        "general path": partial(encode_general, tok),
        "places": lambda text: tok.align(text).ids,
        "pieces": forgetting(tok.tokenize),
    }
    for work in works:
        if work == "text":
            ids = tok.encode(unit * 64)
            if ids:  # a text of nothing but spaces may have none
                assert_linear(
                    tok.decode, lambda k, ids=ids: (ids * (k // len(ids) + 1))[:k], n, what=f"{what}: decode"
                )
        else:
            assert_linear(ways[work], unit, n, what=f"{what}: {work}")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("unit", ["one long word", "spaces"])
def test_time_grows_with_the_text(toys, kind, unit):
    tok = load(toys[kind])
    tok.encode_array(LONG * 200), tok.align(LONG * 20)  # loads the kernels
    assert_all_linear(tok, UNITS[unit], 16_000, f"{kind}, {unit}", ("encode", "general path", "places"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_time_grows_with_every_hostile_text(toys, kind, record_property):
    tok = load(toys[kind])
    tok.encode_array(LONG * 200)  # loads the kernels
    tried = 0
    for what, unit in UNITS.items():
        assert_all_linear(tok, unit, 32_000, f"{kind}, {what}")
        tried += 5
    record_property("comparisons", tried)


@pytest.mark.soak
@pytest.mark.parametrize(
    "name",
    [
        "gpt2/tokenizer.json",
        "bert-base-uncased/tokenizer.json",
        "t5-small/tokenizer.json",
        "t5-small/spiece.model",
        "llama-2/tokenizer.model",
        "phi-3-mini/tokenizer.json",
        "tiktoken/cl100k_base.tiktoken",
        "xlnet-base-cased/spiece.model",
    ],
)
def test_time_grows_with_every_hostile_text_of_real_files(shared_file, name, record_property):
    tok = load(shared_file(f"vocab/{name}"))
    tok.encode_array(LONG * 200)
    for what, unit in UNITS.items():
        for n in (16_000, 256_000):
            assert_all_linear(tok, unit, n, f"{name}, {what}")
    record_property("comparisons", 10 * len(UNITS))


@pytest.mark.soak
@pytest.mark.parametrize("name", MODELS)
def test_twice_a_long_hostile_text_takes_twice_the_time(shared_file, name, record_property):
    tok, size = (
        load(shared_file(f"vocab/{name}")),
        int(float(os.environ.get("SUBWORD_NB_SOAK_MB", "8")) * 1e6),
    )
    tok.encode(LONG * 3000)  # loads the kernels

    def encode(text):
        forget(tok)
        tok.encode(text)

    for what in NAMES:
        assert_linear(
            encode,
            partial(long_text, what, tok=tok),
            size,
            times=2,
            slack=1.3,
            clock=user_seconds,
            what=f"{name}, {what}",
        )
    record_property("comparisons", len(NAMES))


# A mixed load.


def hugging_face(path):
    theirs = pytest.importorskip("tokenizers").Tokenizer.from_file(str(path))
    return lambda text: theirs.encode(text, add_special_tokens=False).ids


def sentence_piece(path):
    theirs = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(path))
    return theirs.encode


def tik_token(path):
    tiktoken = pytest.importorskip("tiktoken")
    from tiktoken.load import load_tiktoken_bpe

    from subword_nb.text.regex import PATTERNS

    theirs = tiktoken.Encoding(
        "of the test",
        pat_str=PATTERNS["cl100k"],
        mergeable_ranks=load_tiktoken_bpe(str(path)),
        special_tokens={},
    )
    return theirs.encode_ordinary


PEERS = {
    "gpt2/tokenizer.json": hugging_face,
    "bert-base-uncased/tokenizer.json": hugging_face,
    "t5-small/tokenizer.json": hugging_face,
    "llama-2/tokenizer.model": sentence_piece,
    "t5-small/spiece.model": sentence_piece,
    "tiktoken/cl100k_base.tiktoken": tik_token,
}
OPTIONS = {"add_special_tokens": False}


class Load:
    "What several threads do to shared tokenizers, and what they find."

    def __init__(self, paths, texts, seconds):
        self.paths = paths
        self.texts = texts
        self.due = time.monotonic() + seconds
        self.tried = {}
        self.wrong = []
        self.held = {name: load(path) for name, path in paths.items()}
        self.theirs = {name: PEERS[name](path) for name, path in paths.items()}

    def expect(self, name, text):
        return list(self.theirs[name](text))

    def check(self, name, what, found, text):
        expected = self.expect(name, text)
        if list(found) != expected:
            self.wrong.append((name, what, text[:200], list(found)[:20], expected[:20]))

    def step(self, rng):
        name = rng.choice(list(self.paths))
        tok, what = (
            self.held[name],
            rng.choice(
                (
                    "short",
                    "short",
                    "short",
                    "long",
                    "batch",
                    "threads",
                    "places",
                    "stream",
                    "decode",
                    "load",
                    "changed",
                )
            ),
        )
        text = rng.choice(self.texts) if rng.random() < 0.6 else some_text(rng)
        if what == "short":
            self.check(name, what, tok.encode(text, **OPTIONS), text)
        elif what == "long":
            whole = " ".join(rng.choices(self.texts, k=60))
            self.check(name, what, tok.encode_array(whole, **OPTIONS).tolist(), whole)
        elif what in ("batch", "threads"):
            some = rng.choices(self.texts, k=80)
            for t, ids in zip(
                some,
                tok.encode_batch(some, **OPTIONS, **({"threads": 2} if what == "threads" else {})).tolist(),
            ):
                self.check(name, what, ids, t)
        elif what == "places":
            found = tok.align(text, **OPTIONS)
            self.check(name, what, found.ids, text)
            if any(not 0 <= a <= b <= len(text) for a, b in found.offsets):
                self.wrong.append((name, what, text, found.offsets))
        elif what == "stream":
            ids, stream = tok.encode(text, **OPTIONS), tok.stream()
            if "".join([*map(stream.step, ids), stream.finish()]) != tok.decode(
                ids, skip_special_tokens=False
            ):
                self.wrong.append((name, what, text))
        elif what == "decode":
            self.check(name, what, tok.encode(text, **OPTIONS), text)
            tok.decode(tok.encode(text, **OPTIONS)), tok.decode_bytes(tok.encode(text, **OPTIONS))
        elif what == "load":
            if rng.random() < 0.2:
                self.held[name] = load(self.paths[name])  # the old one is forgotten once nobody uses it
        else:
            self.check(name, what, Tokenizer(**tok.parts._asdict()).encode(text, **OPTIONS), text)
        self.tried[what] = self.tried.get(what, 0) + (80 if what in ("batch", "threads") else 1)

    def work(self, seed):
        rng = random.Random(seed)
        try:
            while time.monotonic() < self.due and not self.wrong:
                self.step(rng)
        except BaseException:
            self.wrong.append(traceback.format_exc())

    def train(self, seed):
        "Trainings between, each of which gives what the first gave."
        first = {}
        try:
            while time.monotonic() < self.due and not self.wrong:
                for kind in KINDS:
                    unknown = (
                        {"unk_piece": "<unk>", "special_tokens": ["<unk>"]} if kind == "char_bpe" else {}
                    )
                    tok = Tokenizer.train(
                        self.texts[:300],
                        algorithm=kind,
                        vocab_size=400 if kind == "bpe" else 2000,
                        progress=False,
                        **unknown,
                    )
                    ids = [tok.encode(t) for t in self.texts[:50]]
                    if first.setdefault(kind, ids) != ids:
                        self.wrong.append((kind, "another tokenizer"))
                    self.tried["training"] = self.tried.get("training", 0) + 1
                    time.sleep(0.2)
        except BaseException:
            self.wrong.append(traceback.format_exc())


def run_load(shared_file, seconds, record_property, threads=THREADS):
    paths = {name: shared_file(f"vocab/{name}") for name in PEERS}
    lines = [
        line.strip()[:300]
        for line in shared_file("corpus/english_small.txt").read_text(encoding="utf-8").splitlines()
    ]
    rng = random.Random(7)
    texts = [
        t
        for t in rng.sample(
            [line for line in lines if line], min(1500, len([line for line in lines if line]))
        )
        if "<" not in t
    ] + [t for t in TEXTS if "<" not in t and "[" not in t and t.strip()]
    at_work = Load(paths, texts, seconds)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    team = [threading.Thread(target=at_work.work, args=(k,), daemon=True) for k in range(threads)] + [
        threading.Thread(target=at_work.train, args=(0,), daemon=True)
    ]
    try:
        for t in team:
            t.start()
        for t in team:
            t.join(seconds + 120)
    finally:
        sys.setswitchinterval(interval)
    assert not any(t.is_alive() for t in team), "threads are locked up"
    assert not at_work.wrong, at_work.wrong[0]
    assert sum(at_work.tried.values()) > 100
    record_property("texts", sum(at_work.tried.values()))
    record_property("seconds", seconds)
    return at_work


@pytest.mark.peers
def test_a_mixed_load_agrees_with_the_peers(shared_file, record_property):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run_load(shared_file, 10, record_property)


@pytest.mark.soak
def test_a_long_mixed_load_agrees_with_the_peers(shared_file, record_property):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = run_load(
            shared_file, float(os.environ.get("SUBWORD_NB_SOAK_SECONDS", "900")), record_property
        )
    assert {"short", "long", "batch", "threads", "places", "stream", "decode", "changed", "training"} <= {
        *found.tried
    }
