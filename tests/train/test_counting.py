"""Counting: whatever way a corpus is counted, the counts and their order are those of the definition."""

import itertools
import lzma
import random
import signal
import subprocess
import sys
import time
import warnings
from itertools import product

import numpy as np
import pytest
from characters import strange_texts
from seeds import TEXTS as N, fresh, window

from subword_nb import Tokenizer
from subword_nb.core.limits import limited
from subword_nb.text import pretokenizers, splitters
from subword_nb.train import span_counts, train
from subword_nb.train.train import pretoken_counts
from subword_nb.train.counting import (
    Counter,
    batches_of,
    count_batches,
    count_corpus,
    count_corpus_ref,
    sum_counts,
)
from subword_nb.corpus.counts import flatten_counts, load_counts, save_counts
from subword_nb.text.normalizers import (
    NFKC,
    BertNormalizer,
    Lowercase,
    Prepend,
    Replace,
    Sequence,
    StripAccents,
)
from subword_nb.text.pretokenizers import (
    BertPreTokenizer,
    ByteLevel,
    Metaspace,
    Sequence as Steps,
    byte_level,
)
from subword_nb.text.splitters import Digits, Punctuation, Split, Whitespace, WhitespaceSplit
from subword_nb.corpus.sources import Corpus
from subword_nb.corpus.segmentation import SegmentationPlan

MARKED = Sequence((Prepend("▁"), Replace(" ", "▁")))
KINDS = {
    "gpt2": (None, byte_level("gpt2")),
    "cl100k": (None, byte_level("cl100k")),
    "o200k": (None, byte_level("o200k")),
    "roberta": (None, ByteLevel(add_prefix_space=True)),
    "bert": (BertNormalizer(), BertPreTokenizer()),
    "bert, cased": (BertNormalizer(lowercase=False), BertPreTokenizer()),
    "lower, gpt2": (Lowercase(), byte_level("gpt2")),
    "nfkc, gpt2": (NFKC(), byte_level("gpt2")),
    "whitespace": (None, Whitespace()),
    "split": (None, WhitespaceSplit()),
    "marks": (MARKED, Split("▁", "merged_with_next")),
    "nfkc, marks": (Sequence((NFKC(), *MARKED.normalizers)), Split("▁", "merged_with_next")),
    "metaspace": (None, Metaspace()),
    "metaspace, first": (None, Metaspace("▁", "first")),
    "metaspace, never": (None, Metaspace("▁", "never")),
    "digits": (None, Steps([Whitespace(), Digits(True)])),
    "accents": (Sequence((NFKC(), StripAccents())), Steps([WhitespaceSplit(), Punctuation()])),
    "pattern": (None, Split({"Regex": r"\w+|\W"}, "isolated")),
}
PARTS = [
    "low",
    "Light",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "'s",
    "'ll",
    ",",
    "...",
    "é",
    "e\u0301",
    "\u0301",
    "你",
    "你好",
    "▁",
    "1",
    "12",
    "\u00a0",
    "\u3000",
    "ﬁ",
    "🤗",
    "👩\u200d👩",
    "a",
    "don't",
    "\x00",
    "İ",
    "ß",
    "한국",
    "각",
    "supercalifragilisticexpialidocious",
    "_",
    "ﷺ",
]


def items(counts):
    return list(counts.to_dict().items())


def docs(n, seed=0):
    rng = fresh(seed)
    return ["".join(rng.choices(PARTS, k=rng.randrange(20))) for _ in range(n)]


@pytest.mark.parametrize("kind", KINDS)
def test_generated_documents(kind):
    norm, pre = KINDS[kind]
    several, rng = docs(N), fresh(1)
    for _ in range(6):
        some = several[: rng.randrange(N)]
        options = {"threads": rng.choice([1, 2, 3]), "memory": rng.choice([1, 1 << 30])}
        assert items(
            count_corpus(batches_of(some, size=rng.choice([1, 100, 1 << 20])), norm, pre, **options)
        ) == items(count_corpus_ref(some, norm, pre))


def test_most_have_cuts():
    assert [kind for kind, parts in KINDS.items() if SegmentationPlan(*parts).byte_spans is None] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("corpus", ["english_60mb.txt.xz", "multilingual_mixed.txt.xz", "udhr.txt.xz"])
def test_a_stretch_of_each_corpus(kind, corpus, shared_file):
    with lzma.open(shared_file("corpus/" + corpus), "rt", encoding="utf-8") as file:
        text = window(file.read(1_000_000), 60_000, kind, corpus)
    size = 1 + len(text) // 3
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    assert items(count_corpus(batches_of(parts), *KINDS[kind], threads=2)) == items(
        count_corpus_ref(parts, *KINDS[kind])
    )


def test_a_long_document_in_many_blocks():
    text = "".join(fresh(0).choices(PARTS, k=400_000))
    assert len(text.encode()) > 1 << 20
    for kind in ("gpt2", "bert", "marks"):
        assert items(count_corpus(batches_of([text, "", text[:1000]]), *KINDS[kind])) == items(
            count_corpus_ref([text, "", text[:1000]], *KINDS[kind])
        )


def test_spans_without_an_end_cost_no_square():
    for text in ("a" * 3_000_000, " " * 3_000_000, "你" * 1_000_000):
        counts = count_corpus(batches_of([text]), None, byte_level("gpt2"), bytewise=True)
        assert sum(len(p) * n for p, n in items(counts)) == len(text.encode())


def test_counts_beyond_32_bits():
    big = flatten_counts({"a": 2**40, "b": 3})
    assert items(sum_counts(big, big, flatten_counts({"c": 1, "b": 2}))) == [("a", 2**41), ("b", 8), ("c", 1)]


def test_memory_stays_while_the_corpus_grows():
    words = [f" {w}" for w in range(20_000)]
    rng, table = fresh(0), None
    size = []
    for n in (5, 50):
        counter = Counter(SegmentationPlan(None, byte_level("gpt2")).byte_spans)
        count_batches(
            counter, batches_of(("".join(rng.choices(words, k=20_000)) for _ in range(n)), size=1 << 17)
        )
        size.append(sum(t.nbytes for t in counter.free))
        table = counter.free[0]
    assert len(table) <= 20_100 and size[1] <= size[0] * 1.5


def test_a_limit_is_a_choice_and_tells_its_error():
    text = " ".join(f"w{int(k)}" for k in np.random.default_rng(0).zipf(1.2, 50_000) % 5000)
    exact = dict(items(count_corpus(batches_of([text]), None, WhitespaceSplit())))
    found = count_corpus(batches_of([text], size=1), None, WhitespaceSplit(), max_spans=300)
    assert 0 < found.error <= sum(exact.values()) / 301 and len(found) <= 300
    for p, n in items(found):
        assert exact[p] - 2 * found.error <= n <= exact[p]


LONG = [*PARTS, "x" * 9, "é" * 7, "   ", "▁▁", "a▁b", "!!!!!!!!", "你好你好你好"]


@pytest.mark.parametrize("kind", KINDS)
def test_long_pretokens_are_left_out_as_the_definition_says(kind):
    norm, pre = KINDS[kind]
    rng, left_out = fresh(2), 0
    for _ in range(N // 16):
        some = ["".join(rng.choices(LONG, k=rng.randrange(20))) for _ in range(rng.randrange(12))]
        limit = rng.choice([1, 2, 3, 5, 8, 12, 20, 40])
        expected = count_corpus_ref(some, norm, pre, max_pretoken_bytes=limit)
        options = {"threads": rng.choice([1, 2]), "memory": rng.choice([1, 1 << 30])}
        found = count_corpus(
            batches_of(some, size=rng.choice([1, 100, 1 << 20])),
            norm,
            pre,
            max_pretoken_bytes=limit,
            **options,
        )
        assert items(found) == items(expected) and found.left_out[0] == expected.left_out[0], (some, limit)
        assert all(len(p.encode()) <= limit for p in found.to_dict())
        left_out += found.left_out[0]
    assert left_out > N // 16


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram"])
def test_without_long_pretokens_the_limit_changes_nothing(algorithm):
    text = [" ".join(docs(8, seed)) for seed in range(100, 160)]
    longest = max(np.diff(pretoken_counts(text, algorithm=algorithm).bounds))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training ended")
        same, exact, without = (
            Tokenizer.train(text, algorithm=algorithm, vocab_size=320, max_pretoken_bytes=limit, **more)
            for limit, more in (
                (None, {}),
                (int(longest), {}),
                (int(longest), {"max_pretokens": 10**6}),  # counted by kernels
            )
        )
    assert same == exact == without and exact.training.left_out is None


@pytest.mark.parametrize("max_pretokens", [None, 10**6], ids=["python", "kernels"])
def test_what_is_left_out_is_said(max_pretokens, tmp_path):
    options = {"vocab_size": 300, "max_pretoken_bytes": 100, "max_pretokens": max_pretokens}
    text = ["hug " + "x" * 150 + " pug hug", "y" * 200, "hug pug"]
    with pytest.warns(
        UserWarning, match="left out 2 pretokens of 35[01] bytes.*max_pretoken_bytes=100"
    ) as said:
        counts = pretoken_counts(text, max_pretokens=max_pretokens, max_pretoken_bytes=100)
    assert said[0].filename == __file__ and {b"hug", b" pug", b" hug", b" "} >= set(counts.to_dict())
    for suffix in (".npz", ".parquet"):
        save_counts(counts, tmp_path / f"c{suffix}")
        assert load_counts(tmp_path / f"c{suffix}").left_out == counts.left_out
    assert sum_counts(counts, counts).left_out == tuple(2 * n for n in counts.left_out)
    with pytest.warns(UserWarning) as said:
        tok = Tokenizer.train(text, **options)
    assert [w.filename for w in said if "left out" in str(w.message)] == [__file__]
    assert tok.training.left_out == counts.left_out and not any(
        "x" in p for p in tok.model.piece2id if len(p) > 1
    )
    with pytest.raises(
        ValueError, match="at most max_pretoken_bytes=100 bytes, got only 1 longer ones, of 150"
    ):
        Tokenizer.train(["x" * 150], **options)
    with pytest.raises(ValueError, match="max_pretoken_bytes must be at least 1, got 0"):
        pretoken_counts(text, max_pretoken_bytes=0)


def test_a_checkpoint_remembers_what_was_left_out(tmp_path):
    text = [f"word{k} " + "x" * (100 + k) for k in range(40)]

    def failing(batches, at):
        for k, batch in enumerate(batches):
            if k == at:
                raise OSError("cut off")
            yield batch

    options = {"max_pretoken_bytes": 99, "checkpoint": tmp_path / "c", "every": 0}
    for at in (7, 20):
        with pytest.raises(OSError, match="cut off"):
            count_corpus(failing(batches_of(text, size=1), at), None, byte_level("gpt2"), **options)
    found = count_corpus(batches_of(text, size=1), None, byte_level("gpt2"), **options)
    assert found.left_out == (40, sum(101 + k for k in range(40)))
    assert items(found) == items(count_corpus_ref(text, None, byte_level("gpt2"), max_pretoken_bytes=99))


HOSTILE = {
    "one letter": lambda n: b"a" * n,
    "spaces": lambda n: b" " * n,
    "line ends": lambda n: b"\n" * n,
    "letters": lambda n: fresh(3).randbytes(n).translate(bytes(97 + b % 26 for b in range(256))),
    "Chinese": lambda n: "".join(chr(0x4E00 + b) for b in fresh(4).randbytes(n // 3)).encode(),
}
PEAK = """
import sys, warnings
from subword_nb.train.train import pretoken_counts
warnings.simplefilter("ignore")
try:
    print(len(pretoken_counts(sys.argv[1], algorithm=sys.argv[2], memory=1 << 24, progress=False, threads=2)))
except ValueError as e:
    assert "max_pretoken_bytes" in str(e), e
with open("/proc/self/status") as file:  # what getrusage says begins with the peak of the parent
    print(next(line.split()[1] for line in file if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts the peak of memory in kilobytes")
@pytest.mark.parametrize("algorithm", ["bpe", "wordpiece", "unigram"])
@pytest.mark.parametrize("text", HOSTILE)
def test_counting_text_without_spaces_takes_no_more_memory_for_more_of_it(text, algorithm, tmp_path):
    peaks = []
    for size in (48 << 20, 192 << 20):
        (tmp_path / "a.txt").write_bytes(HOSTILE[text](size))
        command = [sys.executable, "-c", PEAK, str(tmp_path / "a.txt"), algorithm]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]) >> 10)
    assert peaks[1] < peaks[0] + 96, (
        peaks
    )  # megabytes: what threads hold varies; a copy of the text is 144 more


def test_files_of_counts(tmp_path):
    pytest.importorskip("pyarrow")
    for k, counts in enumerate(
        [{}, {"a": 1}, {b"\xff": 2**62, b"": 1}, {"你" * n: n + 1 for n in range(300)}]
    ):
        for suffix in (".npz", ".parquet"):
            save_counts(flatten_counts(counts), tmp_path / f"{k}{suffix}")
            assert items(load_counts(tmp_path / f"{k}{suffix}")) == list(counts.items())
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize(
    "damage",
    [lambda d: d[:-20], lambda d: d[: len(d) // 2], lambda d: b"", lambda d: d[:100] + b"\0" * 50 + d[150:]],
)
def test_damaged_files_of_counts(tmp_path, damage):
    path = tmp_path / "c.npz"
    save_counts(flatten_counts({f"w{i}": i + 1 for i in range(50)}), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="c.npz"):
        load_counts(path)


CHILD = """
import sys
from subword_nb import Tokenizer
tok = Tokenizer.train(sys.argv[1], vocab_size=400, checkpoint=sys.argv[2], every=0, threads=int(sys.argv[3]), progress=False)
tok.save(sys.argv[4])
"""


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    "A run that is killed again and again ends with the tokenizer of an undisturbed one."
    text, rng = tmp_path / "text.txt", fresh(0)
    text.write_text("\n".join(docs(60_000)).replace("\x00", "0"), encoding="utf-8")
    run = [sys.executable, "-c", CHILD, str(text)]
    subprocess.run([*run, str(tmp_path / "whole"), "1", str(tmp_path / "whole.json")], check=True)
    start = time.monotonic()
    subprocess.run([*run, str(tmp_path / "again"), "2", str(tmp_path / "again.json")], check=True)
    took, kills, wanted = time.monotonic() - start, 0, (tmp_path / "whole.json").read_text(encoding="utf-8")
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == wanted
    for k in itertools.count():
        if kills >= (12 if N >= 2000 else 3):
            break
        out = tmp_path / f"{k}.json"
        for share in (rng.uniform(0.2, 1), rng.uniform(0.2, 0.8), None):  # killed twice, then left alone
            child = subprocess.Popen(
                [*run, str(tmp_path / str(k)), str(rng.choice([1, 2])), str(out)], stderr=subprocess.PIPE
            )
            try:
                _, said = child.communicate(timeout=share and took * share)
                assert child.returncode == 0, said.decode()
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.communicate()
                kills += 1
        assert out.read_text(encoding="utf-8") == wanted


def test_a_changed_corpus_is_refused(tmp_path):
    some = docs(50)
    with pytest.raises(ZeroDivisionError):
        count_corpus(
            (1 / 0 if i == 30 else b for i, b in enumerate(batches_of(some, size=1))),
            None,
            Whitespace(),
            checkpoint=tmp_path,
            every=0,
        )
    with pytest.raises(ValueError, match="it was changed"):
        count_corpus(batches_of([], size=1), None, Whitespace(), checkpoint=tmp_path)


def test_rows_on_disk_are_cut_off_where_the_manifest_ends(tmp_path):
    spill = span_counts.Spill(tmp_path, {})
    rows = (
        np.frombuffer(b"ab", np.uint8),
        np.array([0, 1, 2]),
        np.array([1, 2]),
        np.array([0, 1], np.uint64),
    )
    spill.write([rows] + [(rows[0][:0], rows[1][:1], rows[2][:0], rows[3][:0])] * (span_counts.PARTS - 1))
    span_counts.commit(spill, 1)
    with open(tmp_path / "counts.00", "ab") as file:
        file.write(b"half of a row")
    again = span_counts.Spill(tmp_path, {})
    assert [r[2].tolist() for r in span_counts.spilled_rows(again, 0)] == [[1, 2]]


def test_ctrl_c_leaves_what_was_counted(tmp_path):
    def batches():
        yield from batches_of(docs(20), size=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_corpus(batches(), None, Whitespace(), checkpoint=tmp_path, every=0, threads=2)
    assert items(
        count_corpus(batches_of(docs(20), size=1), None, Whitespace(), checkpoint=tmp_path)
    ) == items(count_corpus_ref(docs(20), None, Whitespace()))


def test_sources_and_documents_count_alike(tmp_path):
    for k, text in enumerate(docs(30)):
        (tmp_path / f"{k:02}.txt").write_text(text * 50, encoding="utf-8", newline="")
    corpus = Corpus(tmp_path)
    assert items(count_corpus(corpus.batches(), None, byte_level("gpt2"))) == items(
        count_corpus_ref(corpus, None, byte_level("gpt2"))
    )


def test_without_a_scanner(monkeypatch):
    monkeypatch.setattr(SegmentationPlan, "byte_spans", None)
    for kind in ("gpt2", "bert"):
        assert items(count_corpus(batches_of(docs(50)), *KINDS[kind])) == items(
            count_corpus_ref(docs(50), *KINDS[kind])
        )


def test_more_distinct_pretokens_than_a_trainer_may_hold_are_refused():
    corpus = ["".join(f" {i} low lower" for i in range(2000))]
    with limited(distinct_bytes=5000):
        with pytest.raises(ValueError, match=r"distinct pretokens.*max_pretokens.*distinct_bytes is 5,000"):
            Tokenizer.train(corpus, vocab_size=260, max_pretokens=5000)
        report = Tokenizer.train(corpus, vocab_size=260, max_pretokens=500).training
    assert report.pretokens <= 500
    assert report.error > 0


@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_a_result_of_more_distinct_pretokens_than_the_limit_is_refused(memory, monkeypatch):
    "Before all of it is in memory, and also where nothing is trained."
    monkeypatch.setattr(train, "BULK_BYTES", 0)
    corpus = ["".join(f" {i} low lower" for i in range(2000))] * 3
    with limited(distinct_bytes=5000):
        with pytest.raises(
            ValueError, match=r"distinct pretokens or more.*max_pretokens.*distinct_bytes is 5,000"
        ):
            pretoken_counts(corpus, memory=memory)
        assert len(pretoken_counts(corpus, memory=memory, max_pretokens=500)) <= 500
    assert len(pretoken_counts(corpus, memory=memory)) > 2000


def test_small_and_large_corpora_give_the_same_counts(monkeypatch):
    "Whether kernels count or the pipeline does, for every way of splitting and spelling."
    rng = random.Random(2)
    texts = strange_texts(rng, ["the hugging face", "Héllo wörld, it's", "世界 日本語", "привет"], 30)
    steps = [
        *("script", "gpt2", "whitespace", "bert", "metaspace"),
        splitters.ScriptPairs(use_scripts=False),
        pretokenizers.Sequence((splitters.WhitespaceSplit(), splitters.ScriptPairs())),
        pretokenizers.Sequence(
            (splitters.ScriptPairs(), pretokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        ),
    ]
    for pre, algorithm, normalizer in product(steps, ("bpe", "char_bpe", "wordpiece"), (None, "nfkd")):
        found = []
        for limit in (1, 1 << 30):
            monkeypatch.setattr(train, "BULK_BYTES", limit)
            counts = pretoken_counts(
                texts, algorithm=algorithm, pre_tokenizer=pre, normalizer=normalizer, progress=False
            )
            found.append(counts.to_dict())
        assert found[0] == found[1], (pre, algorithm, normalizer)
