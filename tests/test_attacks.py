"""What nobody had tried.

Trainings killed after a checkpoint, corpora that change while they are counted, counts beyond 32 and 64 bits,
empty caches, homes that cannot be written, long documents.

Short forms run always; those of `-m soak` are the full ones.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
from functools import partial

import pytest

from subword_nb import Tokenizer
from subword_nb.core import jit
from subword_nb.train.counting import count_corpus, sum_counts
from subword_nb.corpus.counts import flatten_counts, load_counts, save_counts
from subword_nb.text.splitters import Whitespace
from subword_nb.corpus.sources import Corpus

unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


# Trainings that are killed.


def prose(rng, size):
    "A text of words like those of a language, many of them rare."
    words = [
        "".join(rng.choice("abcdeilmnorstu") for _ in range(rng.randint(2, 9)))
        for _ in range(size // 60 + 100)
    ]
    return " ".join(words[min(int(rng.paretovariate(0.6)) - 1, len(words) - 1)] for _ in range(size // 6))


def killed_by_itself(train, folder, rng):
    "Train in a fork that kills itself after it has written a checkpoint, or while it writes the next; was it killed?"
    state = folder / "state.npz"
    before, later, writing = (
        state.stat().st_ino if state.exists() else None,
        rng.randrange(3),
        rng.random() < 0.4,
    )
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    calls = 0

    def on_progress(*progress):
        nonlocal calls
        if state.exists() and state.stat().st_ino != before:
            if calls >= later:
                if not writing:
                    os.kill(os.getpid(), signal.SIGKILL)
                os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
            calls += 1

    with contextlib.suppress(BaseException):
        train(on_progress=on_progress)
        os._exit(0)
    os._exit(1)


@unix
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_a_training_killed_after_a_checkpoint_learns_the_same(
    algorithm, kills, tmp_path, no_waiting, record_property
):
    rng, done = random.Random(kills), 0
    path = tmp_path / "a.txt"
    path.write_text(prose(rng, 4_000 if kills < 20 else 400_000))

    def train(**options):
        return Tokenizer.train(
            path, algorithm=algorithm, vocab_size=120 if kills < 20 else 2000, progress=False, **options
        )

    expected = train()
    for run in range(10 * kills):
        folder = tmp_path / f"run{run}"
        while done < kills and killed_by_itself(partial(train, checkpoint=folder, every=0.0), folder, rng):
            done += 1
            assert (folder / "state.npz").exists() and not (tmp_path / "tok.json").exists()
        found = train(checkpoint=folder, every=0.0)
        assert (found.piece2id, found.model) == (expected.piece2id, expected.model)
        assert not [*folder.rglob(".*.tmp")]
        if done == kills:
            break
    assert done == kills
    record_property("kills", done)


# Corpora that change.


@pytest.fixture
def changing(tmp_path, monkeypatch):
    "A function that makes a file which changes once a batch of it was read."

    def make(change):
        path = tmp_path / "a.txt"
        path.write_text("low lower lowest newer wider\n" * 200_000)
        size, read = path.stat().st_size, Corpus.batches

        def batches(corpus, *args, **options):
            for k, batch in enumerate(read(corpus, *args, **options)):
                yield batch
                if k == 0:
                    if change == "grows":
                        with open(path, "a") as f:
                            f.write("more words\n")
                    elif change == "shrinks":
                        os.truncate(path, size // 2)
                    elif change == "vanishes":
                        path.unlink()
                    else:
                        path.write_text("other words here\n" * (size // 17))
                    if path.exists():
                        os.utime(path, ns=(1, 10**18))

        monkeypatch.setattr(Corpus, "batches", batches)
        return path

    return make


@pytest.mark.parametrize("change", ["grows", "shrinks", "rewritten"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_corpus_that_changes_while_it_is_counted_trains_nothing(change, threads, changing, tmp_path):
    path = changing(change)
    with pytest.raises(ValueError, match="must not change while it is read, got a file that did"):
        Tokenizer.train(
            path, vocab_size=300, threads=threads, progress=False, checkpoint=tmp_path / "run", every=0.0
        )
    assert not (tmp_path / "run" / "counts.npz").exists()
    with pytest.raises(
        ValueError, match="got that of another run"
    ):  # what was counted before is not added to what is there now
        Tokenizer.train(
            path, vocab_size=300, threads=threads, progress=False, checkpoint=tmp_path / "run", every=0.0
        )


def test_a_corpus_that_was_replaced_is_read_as_it_was_opened_or_refused(changing):
    "A file that is taken away while it is read has its content still; what is counted is one or the other, whole."
    path = changing("vanishes")
    try:
        found = count_corpus(Corpus(path).batches(), None, Whitespace()).to_dict()
    except (ValueError, OSError) as e:
        assert str(path) in str(e)
    else:
        assert set(found.values()) == {200_000}


# Counts beyond 64 bits.


HUGE = [2**31, 2**32, 2**33 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 2**64 + 5, 10**30]


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"])
@pytest.mark.parametrize("objective", [None, "frequency"])
def test_counts_beyond_64_bits_are_exact_or_refused(algorithm, objective):
    "Never a sum that has wrapped: the rare word does not win against the common one."
    if objective and algorithm != "wordpiece":
        pytest.skip("an option of WordPiece")
    options = {"objective": objective} if objective else {}
    special = ["<unk>"] if algorithm in ("unigram", "wordlevel") else []
    learned = {}
    for n in (1000, *HUGE):
        given = {"abab": n, "cdc": 7, "ab": n // 2}
        small = {word: k if k == 7 else k // (n // 1000) for word, k in given.items()}
        try:
            tok = Tokenizer.train(
                given,
                algorithm=algorithm,
                vocab_size=265 if algorithm == "bpe" else 9,
                special_tokens=special,
                progress=False,
                **options,
            )
        except (ValueError, OverflowError) as e:
            assert n >= 2**50 and ("2**63" in str(e) or "2**53" in str(e) or "63" in str(e)), e
            learned[n] = None
            continue
        learned[n] = list(tok.piece2id)
        plain = Tokenizer.train(
            small,
            algorithm=algorithm,
            vocab_size=265 if algorithm == "bpe" else 9,
            special_tokens=special,
            progress=False,
            **options,
        )
        if algorithm != "unigram":  # whose pieces' order is that of scores
            assert learned[n] == list(plain.piece2id), n
    assert learned[2**33 + 1]


def test_pairs_that_occur_more_often_than_32_bits_can_say_are_merged_first():
    "Hugging Face's counts of pairs have 32 bits: it learns `cd` (see the errata)."
    given = {"ab" * 1000: 2_150_000, "cd" * 1000: 2}
    for algorithm, options in (
        ("char_bpe", {}),
        ("wordpiece", {"objective": "frequency", "continuing_subword_prefix": ""}),
        ("bpe", {"initial_alphabet": "corpus"}),
    ):
        tok = Tokenizer.train(
            given,
            algorithm=algorithm,
            vocab_size=9 if algorithm == "wordpiece" else 8,
            progress=False,
            **options,
        )
        pieces = [piece for piece in tok.piece2id if piece != "[UNK]"]
        assert pieces == ["a", "b", "c", "d", "ab", "abab", "abababab", "ab" * 8], algorithm


@pytest.mark.soak
def test_what_hugging_face_learns_from_pairs_that_32_bits_cannot_count(hf):
    from itertools import chain, repeat

    learned = {}
    for n in (1000, 2_150_000):
        theirs = hf.Tokenizer(hf.models.BPE())
        theirs.train_from_iterator(
            chain(repeat("ab" * 1000, n), ["cd" * 1000] * 2),
            hf.trainers.BpeTrainer(vocab_size=5, show_progress=False),
        )
        learned[n] = {*theirs.get_vocab()} - {*"abcd"}
    assert learned == {1000: {"ab"}, 2_150_000: {"cd"}}


def test_sums_of_counts_beyond_64_bits_are_refused(tmp_path):
    most = flatten_counts({"a": 2**63 - 1, "b": 1})
    for more in ({"a": 1}, {"a": 2**62}, {"a": 2**63 - 1}):
        with pytest.raises((ValueError, OverflowError), match="2\\*\\*63|63"):
            sum_counts(most, flatten_counts(more))
    with pytest.raises(ValueError, match="2\\*\\*63"):  # all of them together, too
        sum_counts(most, flatten_counts({"b": 2**62}))
    assert sum_counts(flatten_counts({"a": 2**62}), flatten_counts({"b": 2**61, "a": 2**60})).to_dict() == {
        "a": 2**62 + 2**60,
        "b": 2**61,
    }
    for n in (2**63, 2**64, 10**30):
        with pytest.raises((ValueError, OverflowError), match="2\\*\\*63|63|too large|int64"):
            flatten_counts({"a": n})
    save_counts(most, tmp_path / "c.npz")
    assert load_counts(tmp_path / "c.npz").to_dict() == most.to_dict()


# Empty caches, homes that cannot be written, long documents.


KERNEL = """
from subword_nb.core import jit

def triple(x):
    return 3 * x

if __name__ == "__main__":
    print(jit.kernel(triple)(14))
"""


def started(tmp_path, **env):
    "A process that makes one kernel."
    if not (tmp_path / "job.py").exists():  # the first one may be reading it already
        (tmp_path / "job.py").write_text(KERNEL)
    env = (
        {
            k: v
            for k, v in os.environ.items()
            if k not in ("SUBWORD_NB_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        }
        | {"SUBWORD_NB_JIT": "1", "SUBWORD_NB_QUIET": "1"}
        | env
    )
    return subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


@pytest.mark.skipif(not jit.available(), reason="without Numba there is no cache")
@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_that_begin_with_an_empty_cache_share_it(processes, tmp_path):
    team = [started(tmp_path, SUBWORD_NB_CACHE=str(tmp_path / "cache")) for _ in range(processes)]
    for child in team:
        assert (*child.communicate(timeout=300), child.returncode) == ("42\n", "", 0)
    (kept,) = (tmp_path / "cache").iterdir()  # one file, whoever wrote it last, and nothing half-written
    before = kept.stat().st_mtime_ns
    later = started(tmp_path, SUBWORD_NB_CACHE=str(tmp_path / "cache"))
    assert (*later.communicate(timeout=300), later.returncode) == ("42\n", "", 0)
    assert kept.stat().st_mtime_ns == before, "the kernel was made once more"


@pytest.mark.skipif(
    not jit.available() or not os.path.isdir("/proc/self"),
    reason="needs Numba, and a folder that not even root can write",
)
def test_a_home_that_cannot_be_written_is_no_harm(tmp_path):
    assert started(tmp_path, HOME="/proc/self").communicate(timeout=300) == ("42\n", "")
    code = (
        "from subword_nb import Tokenizer; t = Tokenizer.train(['low lower lowest'], vocab_size=260, "
        "progress=False); t.save('t.json'); print(Tokenizer.load('t.json').encode('low') == t.encode('low'))"
    )
    env = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"} | {"HOME": "/proc/self"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=env, timeout=300
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("size", [2 << 20, pytest.param(100 << 20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_a_document_as_long_as_a_book_shelf(algorithm, size, tmp_path):
    "One document: counted, learned from and encoded as its lines are."
    line = prose(random.Random(1), 4000) + "\n"
    text = line * (size // len(line))
    given = {"pre_tokenizer": "gpt2"} if algorithm == "bpe" else {"pre_tokenizer": "whitespace"}
    tok = Tokenizer.train([text], algorithm=algorithm, vocab_size=400, progress=False, **given)
    assert (
        tok.piece2id
        == Tokenizer.train(
            [line] * (size // len(line)), algorithm=algorithm, vocab_size=400, progress=False, **given
        ).piece2id
    )
    one, ids = tok.encode(line * 2), tok.encode_array(text)
    half = len(one) // 2
    assert (
        one[:half] == one[half:]
        and (ids.reshape(-1, half) == one[:half]).all()
        and len(ids) == half * (size // len(line))
    )
