"""One tokenizer in eight threads from its first call, in forks at the worst moments, and in spawned processes.

The same ids, no deadlock, no warning.
"""

import gc
import json
import os
import sys
import threading
import time
import warnings

import pytest
from mishaps import LONG, TEXTS, answers, digest, ids_only, in_fork, load, run_child

from subword_nb import Tokenizer
from subword_nb.bpe import model as bpe_encode
from subword_nb.pipeline import encoder as page
from subword_nb.core import processes as forks
from subword_nb.core import jit, native, simd
from subword_nb.pipeline.encoder import encode_general, encoder_of, choose_fast_path
from subword_nb.pipeline.thresholds import SIZES
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.pipeline.vocab import AddedToken

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
REAL = [
    "gpt2/tokenizer.json",
    "gpt2",
    "bert-base-uncased/vocab.txt",
    "t5-small/spiece.model",
    "llama-2/tokenizer.model",
    "tiktoken/cl100k_base.tiktoken",
    "barthez/tokenizer.json",
    "clip/tokenizer.json",
    "falcon/tokenizer.json",
    "pegasus/tokenizer.json",
    "phi-3-mini/tokenizer.json",
    "qwen/qwen.tiktoken",
    "roberta-base/tokenizer.json",
    "t5-small/tokenizer.json",
    "whisper-tiny/tokenizer.json",
    "xlnet-base-cased/spiece.model",
    "chatglm-6b/ice_text.model",
    "tf-text/fast_sentencepiece.model",
    "bert-base-chinese/vocab.txt",
    "tiktoken/o200k_base.tiktoken",
]


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    "Small tokenizers of each algorithm, in files of several formats."
    folder, docs = (
        tmp_path_factory.mktemp("toys"),
        [*TEXTS * 3, "low lower lowest newer wider hugs pug pun bun " * 20],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for kind, special in {
            "bpe": ["<s>"],
            "char_bpe": ["<unk>"],
            "wordpiece": ["[UNK]"],
            "unigram": ["<unk>", "<s>"],
        }.items():
            unknown = {"unk_piece": "<unk>"} if kind == "char_bpe" else {}
            tok = Tokenizer.train(
                docs, algorithm=kind, vocab_size=400, special_tokens=special, progress=False, **unknown
            )
            tok.save(folder / f"{kind}.json")
            if kind == "bpe":
                tok.save(folder / "gpt2", kind="gpt2")
            if kind == "wordpiece":
                tok.save(folder / "vocab.txt")
            if kind == "unigram":
                tok.save(folder / "unigram.model")
    return [
        folder / name
        for name in (
            "bpe.json",
            "gpt2",
            "char_bpe.json",
            "wordpiece.json",
            "vocab.txt",
            "unigram.json",
            "unigram.model",
        )
    ]


def named(paths):
    return json.dumps([str(p) for p in paths])


@pytest.fixture(scope="module")
def real(shared_file):
    return [shared_file(f"vocab/{name}") for name in REAL]


@pytest.mark.slow
def test_eight_threads_from_the_first_call(toys, record_property):
    assert run_child("race", named(toys[:1] + toys[3:4] + toys[6:])) == 3
    record_property("tokenizers", 3)


def test_a_tokenizer_in_a_spawned_process(toys, record_property):
    assert run_child("spawn", named(toys[::2])) == 4
    record_property("tokenizers", 4)


@forking
def test_forks_at_random_moments(toys, record_property):
    record_property("forks", run_child("forks", named(toys[:1]), 3, 0))


@pytest.mark.slow
@pytest.mark.parametrize("bulk", ["2000", ""], ids=["kernels", "usual"])
def test_eight_threads_from_the_first_call_of_each_toy(toys, bulk, record_property):
    record_property(
        "tokenizers",
        run_child("race", named(toys), env={"SUBWORD_NB_BULK": bulk} if bulk else {}, timeout=900),
    )


@pytest.mark.one_in(3)
@pytest.mark.slow
def test_eight_threads_from_the_first_call_of_real_files(real, record_property):
    record_property("tokenizers", run_child("race", named(real[:6]), timeout=900))


@pytest.mark.soak
def test_eight_threads_from_the_first_call_of_all_real_files(real, record_property):
    rounds = int(os.environ.get("SUBWORD_NB_SOAK_ROUNDS", "10"))
    for _ in range(rounds):
        for path in real:
            assert run_child("race", named([path]), timeout=600) == 1
    record_property("tokenizers", rounds * len(real))


@pytest.mark.one_in(3)
@pytest.mark.slow
def test_real_files_in_a_spawned_process(real, record_property):
    record_property("tokenizers", run_child("spawn", named(real[:6]), timeout=900))


@forking
@pytest.mark.slow
def test_forks_at_random_moments_of_all_algorithms(toys, record_property):
    tried = sum(
        run_child("forks", named([path]), 4, seed, timeout=900, env={"SUBWORD_NB_BULK": "2000"})
        for seed, path in enumerate([toys[2], toys[3], toys[5]])
    )
    record_property("forks", tried)


@forking
@pytest.mark.soak
def test_forks_at_random_moments_of_real_files(real, record_property):
    rounds = int(os.environ.get("SUBWORD_NB_SOAK_ROUNDS", "10"))
    record_property(
        "forks",
        sum(
            run_child("forks", named([path]), 20, seed, timeout=1200)
            for seed in range(rounds)
            for path in real
        ),
    )


# Forks at a chosen moment: while another thread is inside.


def while_inside(inside, job, enter=0.4):
    "What a fork finds that is made while a thread is in `inside(entered, wait)`; the thread leaves a moment later."
    entered, wrong = threading.Event(), []

    def wait():
        entered.set()
        time.sleep(enter)

    def work():
        try:
            inside(entered, wait)
        except BaseException as e:
            wrong.append(e)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        assert entered.wait(300)
        return in_fork(job, timeout=300)
    finally:
        thread.join(300)
        assert not thread.is_alive() and not wrong, wrong


class SlowImport:
    "Finds a module a good while after it is asked for."

    def __init__(self, name, wait):
        self.name, self.wait = name, wait

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            self.name = None
            self.wait()


@forking
def test_a_fork_waits_for_an_import(monkeypatch):
    monkeypatch.delitem(sys.modules, "subword_nb.formats.subword_nmt", raising=False)

    def inside(entered, wait):
        monkeypatch.setattr(
            sys, "meta_path", [SlowImport("subword_nb.formats.subword_nmt", wait), *sys.meta_path]
        )
        import subword_nb.formats.subword_nmt  # noqa: F401

    def job():
        from subword_nb.formats.subword_nmt import looks_like_codes

        return callable(looks_like_codes)

    assert while_inside(inside, job) is True


@forking
def test_a_fork_waits_for_the_compiler():
    def double(x):
        return 2 * x

    def triple(x):
        return 3 * x

    if not jit.available():
        pytest.skip("without Numba nothing is compiled")
    jit.kernel(triple)(1)

    def inside(entered, wait):
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock:
            wait()

    assert while_inside(inside, lambda: jit.kernel(double)(21)) == 42


@forking
def test_a_fork_waits_for_who_makes_kernels():
    def inside(entered, wait):
        with jit.LOCK:
            wait()

    def job():
        return jit.kernel(lambda x: x + 1)(41) if jit.available() else 42

    assert while_inside(inside, job) == 42


@forking
def test_a_fork_waits_for_who_loads_the_library(monkeypatch):
    if os.environ.get("SUBWORD_NB_JIT") or os.environ.get("SUBWORD_NB_KERNELS") == "none":
        pytest.skip("no library is looked for")

    def inside(entered, wait):
        find = native.library_at

        def slowly(*args, **options):
            wait()
            return find(*args, **options)

        monkeypatch.setattr(native, "library_at", slowly)
        native.reload_library()

    def job():
        monkeypatch.undo()
        return native.library() is None or native.is_loaded()

    assert while_inside(inside, job) is True


@forking
def test_a_fork_leaves_no_table_locked(toys, monkeypatch):
    "`functools.cached_property` has one lock for all models up to Python 3.11."
    tok, other, make = load(toys[2]), load(toys[2]), bpe_encode.merge_table
    expected, home = load(toys[2]).encode("low lower"), os.getpid()
    vars(other.model).pop("table", None), vars(tok.model).pop("table", None)

    def inside(entered, wait):
        def merge_table(*args, **options):
            if os.getpid() == home:
                wait()
            return make(*args, **options)

        monkeypatch.setattr(bpe_encode, "merge_table", merge_table)
        assert other.model.table

    assert while_inside(inside, lambda: (tok.model.table, tok.encode("low lower"))[1]) == expected


@forking
def test_a_fork_waits_for_who_aligns(toys, monkeypatch):
    tok = load(toys[0])
    tok.encode_array(LONG * 200)  # loads the kernels
    expected = tok.align(LONG).ids
    assert type(tok.align(LONG)).__name__ == "LongEncoding" or not jit.available()
    buffer, home = simd.IdBuffer, os.getpid()

    def inside(entered, wait):
        def made(*args, **options):
            if os.getpid() == home:
                wait()
            return buffer(*args, **options)

        monkeypatch.setattr(simd, "IdBuffer", made)
        tok.align(LONG)

    if not jit.available():
        pytest.skip("without Numba nothing is placed in bulk")
    assert while_inside(inside, lambda: tok.align(LONG).ids) == expected


@forking
def test_a_fork_has_a_garbage_collector(toys):
    def inside(entered, wait):
        with forks.gc_paused():
            wait()

    assert while_inside(inside, gc.isenabled) is True and gc.isenabled()


def test_the_collector_goes_again_behind_threads_that_pause_it_at_once():
    "A thread that finds it switched off by another one must not leave it off."

    def pause():
        for _ in range(3000):
            with forks.gc_paused():
                assert not gc.isenabled()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            team = [threading.Thread(target=pause, daemon=True) for _ in range(4)]
            for t in team:
                t.start()
            for t in team:
                t.join(60)
            assert gc.isenabled()
    finally:
        sys.setswitchinterval(before)
        gc.enable()


@forking
def test_a_fork_inside_of_an_import_a_compiler_and_a_pause_does_not_wait_for_itself():
    with forks.gc_paused(), jit.LOCK:
        assert in_fork(lambda: [gc.isenabled(), jit.LOCK.acquire(timeout=300)], timeout=200) == [
            False,
            True,
        ]
    assert gc.isenabled()


@forking
def test_forks_of_forks_and_forks_in_threads(toys):
    tok, expected, found = load(toys[0]), answers(load(toys[0])), []
    assert in_fork(lambda: in_fork(lambda: answers(tok))) == expected
    team = [
        threading.Thread(target=lambda: found.append(in_fork(lambda: answers(tok))), daemon=True)
        for _ in range(3)
    ]
    for t in team:
        t.start()
    for t in team:
        t.join(60)
    assert found == [expected] * 3


# What one thread makes while another changes the tokenizer must not be kept.


def framed(tok):
    return TemplateProcessing("<s> $A", special_tokens=[("<s>", tok.piece2id["<s>"])])


@pytest.mark.parametrize("kernels", [False, True])
def test_a_fast_path_made_while_the_tokenizer_changes_is_not_kept(toys, kernels, monkeypatch):
    tok = load(toys[0])
    if kernels and not jit.available():
        pytest.skip("without Numba there is no such fast path")
    text, make = "low lower " * (200 if kernels else 1), page.choose_fast_path

    def make_and_change(c, *, bulk=None):
        if (bulk is not None) == kernels:
            monkeypatch.setattr(page, "choose_fast_path", make)
            tok.post_processor = framed(tok)
        return make(c, bulk=bulk)

    monkeypatch.setattr(page, "choose_fast_path", make_and_change)
    before = tok.encode_array(text * 600).tolist() if kernels else tok.encode(text.strip())
    assert tok.post_processor is not None
    assert before[0] != tok.piece2id["<s>"], "a call ends with the parts that it began with"
    assert (
        tok.encode("low lower")
        == encode_general(tok, "low lower")
        == [tok.piece2id["<s>"], *load(toys[0]).encode("low lower")]
    )


def test_a_call_ends_with_the_parts_that_it_began_with(toys):
    "Whatever is exchanged meanwhile, ids are those of the parts before or of the parts after, never of both."
    tok, stop = load(toys[0]), threading.Event()
    extra, text = AddedToken("lower", special=False), "low lower lowest " * 40

    def variant(added, post):
        one = load(toys[0])
        if added:
            one.add_tokens([extra])
        one.post_processor = framed(one) if post else None
        return one

    variants = [variant(added, post) for added in (False, True) for post in (False, True)]
    allowed = {tuple(v.encode(text)) for v in variants}
    batches = {tuple(map(tuple, v.encode_batch([text, "low"]).tolist())) for v in variants}
    wrong, answers = [], 0

    def ask():
        nonlocal answers
        while not stop.is_set():
            found = tuple(tok.encode(text))
            rows = tuple(map(tuple, tok.encode_batch([text, "low"]).tolist()))
            answers += 1
            if found not in allowed or rows not in batches:
                wrong.append((found[:5], rows))

    team = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in team:
            t.start()
        for k in range(120):
            if k % 3 == 0:
                tok.added_tokens = variants[2 * (k % 2)].added_tokens
            tok.post_processor = framed(tok) if k % 2 else None
    finally:
        stop.set()
        for t in team:
            t.join(60)
        sys.setswitchinterval(before)
    assert not wrong, wrong[0]
    assert answers > 0


def test_a_compiled_engine_made_while_tokens_are_added_is_not_kept(toys, monkeypatch):
    tok, make = load(toys[0]), page.Encoder

    def make_and_change(*args):
        made = make(*args)
        monkeypatch.setattr(page, "Encoder", make)
        tok.add_tokens(["lower"])
        return made

    monkeypatch.setattr(page, "Encoder", make_and_change)
    tok.encode("low lower")
    assert tok.piece2id["lower"] in tok.encode("low lower") and tok.piece2id["lower"] in tok.encode(
        "low lower", allowed_special="all"
    )


def test_threads_share_what_the_first_puts_down(toys):
    tok, start, found = load(toys[0]), threading.Barrier(8), []
    team = [
        threading.Thread(target=lambda: (start.wait(30), found.append(encoder_of(tok)))) for _ in range(8)
    ]
    for t in team:
        t.start()
    for t in team:
        t.join(30)
    assert len(found) == 8 and {*map(id, found)} == {id(encoder_of(tok))}


def test_ids_follow_each_change_while_others_encode(toys, record_property):
    "Seven threads encode, one changes the post-processor to and fro: each answer is of before or after, and the last is of the end."
    tok, stop, wrong = load(toys[0]), threading.Event(), []
    plain = [load(toys[0]).encode(t) for t in TEXTS]
    marked = [[tok.piece2id["<s>"], *ids] for ids in plain]

    def work():
        while not stop.is_set():
            for k, text in enumerate(TEXTS):
                if (ids := tok.encode(text)) not in (plain[k], marked[k]):
                    wrong.append((text, ids))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    team = [threading.Thread(target=work, daemon=True) for _ in range(7)]
    try:
        for t in team:
            t.start()
        for n in range(60):
            tok.post_processor = framed(tok) if n % 2 == 0 else None
            assert [tok.encode(t) for t in TEXTS] == (marked if n % 2 == 0 else plain)
            time.sleep(0.002)
    finally:
        stop.set()
        for t in team:
            t.join(30)
        sys.setswitchinterval(interval)
    assert not wrong, wrong[0]
    record_property("changes", 60)


# Memories have an end.


def test_memories_of_spans_have_an_end(toys, monkeypatch):
    monkeypatch.setattr(SIZES, "cached_spans", 50)
    for path in toys:
        tok = load(path)
        expected = load(path)
        for n in range(300):
            text = f"word{n} and{n * 7}x"
            assert tok.encode(text) == encode_general(expected, text)
        c = encoder_of(tok)
        assert len(c.pretokens) <= 51 and len(c.words) <= 51, path


class Busy(list):
    "Tables that other threads always have."

    def pop(self):
        raise IndexError


def test_many_threads_leave_few_tables(toys):
    if not jit.available():
        pytest.skip("without Numba there are no tables")
    tok, text = load(toys[0]), "low lower lowest newer wider hugs"
    tok.encode_batch([LONG] * 600)
    kept = encoder_of(tok).bulk
    kept.tables = Busy()
    fast_path, expected = choose_fast_path(encoder_of(tok), bulk=kept), encode_general(tok, text)
    for _ in range(100):
        assert fast_path(text) == expected
    most = len(kept.tables)
    assert 0 < most < 100
    tok.encode_batch([LONG] * 600)
    assert len(kept.tables) == most


@pytest.mark.slow
def test_unknown_words_have_an_end_in_places(toys, monkeypatch):
    if not jit.available():
        pytest.skip("without Numba nothing is placed in bulk")
    monkeypatch.setattr(SIZES, "aligned_pieces", 100)
    for path in toys:
        tok = load(path)
        tok.encode_array(LONG * 200)
        for n in range(6):
            text = " ".join(f"w{chr(0x4E00 + 997 * n + i)}x" for i in range(900))
            found, expected = tok.align(text), load(path).align(text)
            assert (found.ids, found.offsets, found.pieces) == (
                expected.ids,
                expected.offsets,
                expected.pieces,
            )
        tier = encoder_of(tok).bulk
        places = tier and tier.made.get("places")
        if places is not None:
            assert len(places.extra) <= 100 + 2000 and len(places.names) <= len(places.written) + 2100, path


def test_answers_are_those_of_the_way_without_kernels(toys):
    for path in toys:
        ids_only(load(path))
    assert digest([1]) != digest([2])
