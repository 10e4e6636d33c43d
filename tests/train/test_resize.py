"""Vocabularies that are truncated, extended and learned anew; training that is observed, stopped and resumed; one result in every way."""

import os
import random
import shutil
import signal
import subprocess
import sys
import warnings

from itertools import pairwise

import numpy as np
import pytest

from subword_nb.bpe.model import BPE
from subword_nb.corpus import counts as counts_module
from subword_nb.corpus.counts import FlatCounts, flatten_counts
from subword_nb.formats.sentencepiece_normalizer import SentencePieceNormalizer
from subword_nb.text.pretokenizers import Metaspace
from subword_nb.text.splitters import WhitespaceSplit
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.core.unicode import to_visible
from subword_nb.train.train import pretoken_counts
from subword_nb.pipeline.vocab import AddedToken

ALPHABETS = ["ab", "abc", "abcdé", "ab你好é", "aab<s>", "ab▁c"]
LIMITS = {
    "limit_alphabet": [1, 2, 4],
    "max_token_length": [1, 3, 5],
    "tie_break": ["ids", "first", "bytes"],
    "initial_alphabet": ["corpus", ["z", "a"]],
    "min_frequency": [1, 2, 4],
}
OWN = {
    "bpe": {"pre_tokenizer": ["gpt2", "cl100k", None, r"\w|\W+"], "normalizer": ["nfc", "lowercase"]},
    "char_bpe": {
        "pre_tokenizer": ["whitespace", "metaspace", None],
        "end_of_word_suffix": ["</w>"],
        "continuing_subword_prefix": ["##", "@@"],
        "byte_fallback": [True],
        "unk_piece": ["<unk>"],
    },
    "wordpiece": {
        "objective": ["score", "frequency"],
        "continuing_subword_prefix": ["", "@"],
        "normalizer": ["nfc", None],
    },
    "wordlevel": {"normalizer": ["lowercase"]},
}
SPECIAL = [[], ["<s>"], ["<s>", "</s>", "<pad>"], ["ab"], ["##a"]]
TRAINED = (
    "min_frequency",
    "max_token_length",
    "tie_break",
    "objective",
    "initial_alphabet",
    "limit_alphabet",
)  # what extend needs again
COMMON = """
the of and a to in is was he for it with as his on be at by i this had not are but from or have an they
which one you were her all she there would their we him been has when who will no more if out so said
what up its about into than them can only other new some could time these two may then do first any my
now such like our over man me even most made after also did many before must through back years where
much your way well down should because each just those people how too little state good very make world
still own see men work long get here between both life being under never day same another know while last
might us great old year off come since against go came right used take three
"""
WORDS = COMMON.split()


def made_up(rng, size: int) -> str:
    "A text of words like those of a language, many of them rare."
    words = list(WORDS) + [
        "".join(rng.choice("abcdeilmnorstu") for _ in range(rng.randint(3, 9))) for _ in range(size // 60)
    ]
    out, n = [], 0
    while n < size:
        out.append(
            words[min(int(rng.paretovariate(0.6)) - 1, len(words) - 1)]
            + rng.choice(["", "", "", ".", ",", "é", " 12"])
        )
        n += len(out[-1]) + 1
    return " ".join(out)


def case(rng):
    "A corpus, an algorithm, special tokens, options."
    alphabet, kind = (
        rng.choice(ALPHABETS) + " ",
        rng.choice(["bpe", "char_bpe", "char_bpe", "wordpiece", "wordpiece", "wordlevel"]),
    )
    docs = [
        "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 60))) for _ in range(rng.randint(1, 6))
    ]
    known = OWN[kind] | (LIMITS if kind != "wordlevel" else {"min_frequency": [1, 2]})
    options = {k: rng.choice(v) for k, v in known.items() if rng.random() < 0.35}
    if (
        kind == "bpe"
        and isinstance(options.get("initial_alphabet"), list)
        or kind == "wordpiece"
        and options.get("objective") == "frequency"
    ):
        options.pop("limit_alphabet", None)
    return docs, kind, rng.choice(SPECIAL), options


def parts(tok):
    "What must be equal: ids, merges, added tokens."
    return tok.piece2id, list(getattr(tok.model, "merges", [])), tok.added_tokens


def trained_or_none(docs, kind, n, special, options):
    "The tokenizer, or None where the size is too small."
    try:
        return Tokenizer.train(docs, algorithm=kind, vocab_size=n, special_tokens=special, **options)
    except ValueError:
        return None


@pytest.mark.parametrize("seed", range(2))
def test_cutting_and_growing_equal_direct_training(seed):
    rng, compared = random.Random(seed), 0
    for _ in range(75):
        docs, kind, special, options = case(rng)
        base = 256 * (
            kind == "bpe" and "initial_alphabet" not in options or bool(options.get("byte_fallback"))
        )
        size = base + rng.randint(3, 40)
        if (big := trained_or_none(docs, kind, size, special, options)) is None:
            continue
        for n in {rng.randint(max(1, base), big.vocab_size) for _ in range(3)}:
            small = trained_or_none(docs, kind, n, special, options)
            if small is None or small.vocab_size != n:
                continue
            cut, grown = (
                big.truncate(n),
                small.extend(
                    docs,
                    size,
                    **{
                        k: v
                        for k, v in options.items()
                        if k in TRAINED[: 3 if "bpe" in kind else 6]
                        and (kind != "wordlevel" or k == "min_frequency")
                    },
                ),
            )
            where = (docs, kind, special, options, n)
            assert parts(cut) == parts(small), where
            assert parts(grown) == parts(big), where
            if (
                "unk_piece" in options
                or kind in ("wordpiece", "wordlevel")
                or kind == "bpe"
                and not {"limit_alphabet", "initial_alphabet"} & {*options}
            ):
                assert cut.encode(docs[0]) == small.encode(docs[0]) and grown.encode(docs[0]) == big.encode(
                    docs[0]
                ), where
            compared += 1
    assert compared > 75


def test_a_cut_below_the_alphabet_is_refused_where_nothing_was_merged():
    for options in (
        {"max_token_length": 1},
        {"min_frequency": 99},
        {"min_frequency": 99, "byte_fallback": True},
    ):
        tok = Tokenizer.train(["abc abc"], algorithm="char_bpe", vocab_size=400, **options)
        with pytest.raises(ValueError, match="vocab_size must be at least"):
            tok.truncate(tok.vocab_size - 1)


def test_growing_knows_a_special_token_of_one_character_as_a_letter():
    docs = ["aaba abab baab"]
    for options in ({}, {"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}):
        big = Tokenizer.train(docs, algorithm="char_bpe", vocab_size=12, special_tokens=["a"], **options)
        assert parts(
            Tokenizer.train(docs, algorithm="char_bpe", vocab_size=7, special_tokens=["a"], **options).extend(
                docs, 12
            )
        ) == parts(big)


def test_the_report_of_a_cut_tells_of_the_merges_that_are_left():
    for kind in ("bpe", "char_bpe", "wordpiece"):
        big, small = (
            Tokenizer.train([made_up(random.Random(0), 9000)], algorithm=kind, vocab_size=n)
            for n in (400, 300)
        )
        assert big.truncate(300).training.history == small.training.history


def test_growing_says_how_it_ended(tmp_path):
    texts = ["a b c d d d e e f g h"]
    Tokenizer.train(texts, algorithm="wordlevel", vocab_size=4).save(tmp_path / "tok.json")
    tok = Tokenizer.load(tmp_path / "tok.json")
    other = tok.extend(["x y z z"], 6)
    assert (
        other.training is not None
        and other.training.pieces == 6
        and all(other.piece2id[p] == i for p, i in tok.piece2id.items())
    )


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "wordlevel"])
def test_nothing_is_learned_from_an_empty_corpus(algorithm):
    tok = Tokenizer.train(["ab ab abc"], algorithm=algorithm, vocab_size=300)
    for empty in ([], [""], {}):
        with pytest.raises(ValueError, match="at least one pretoken, got none; pass text that is not empty"):
            tok.extend(empty, tok.vocab_size + 5)


def test_an_unknown_option_of_a_corpus_is_named_with_the_known_ones():
    tok, docs = Tokenizer.train(["ab ab abc"], vocab_size=259), ["ab abc"]
    for change in (tok.shrink_to, lambda corpus, **options: tok.prune(258, corpus, **options)):
        with pytest.raises(ValueError, match="errors, field, sample or seed, got fields"):
            change(docs, fields="text")


def test_unigram_is_cut_with_its_corpus_and_cannot_grow():
    text = [made_up(random.Random(1), 20000)]
    tok = Tokenizer.train(
        text, algorithm="unigram", vocab_size=400, special_tokens=["<pad>"], user_defined=["<n>"]
    )
    with pytest.raises(ValueError, match="source"):
        tok.truncate(200)
    with pytest.raises(ValueError, match="cannot grow"):
        tok.extend(text, 500)
    cut = tok.truncate(200, source=text)
    assert (
        cut.vocab_size == 200
        and set(cut.piece2id) <= set(tok.piece2id)
        and sorted(cut.piece2id.values()) == [*range(200)]
    )
    assert [t.content for t, _ in cut.added_tokens] == [t.content for t, _ in tok.added_tokens]
    assert cut.decode(cut.encode(text[0][:500])) == text[0][:500]


# Files of other projects

BYTES = [
    "gpt2/tokenizer.json",
    "gpt2/vocab.json",
    "roberta-base/tokenizer.json",
    "tiktoken/r50k_base.tiktoken",
    "tiktoken/cl100k_base.tiktoken",
    "falcon/tokenizer.json",
    "whisper-tiny/tokenizer.json",
    "qwen/qwen.tiktoken",
    "llama-3/tokenizer.model",
]
OTHERS = [
    "clip/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "bert-base-cased/vocab.txt",
    "wordlevel-vulrepair/wordlevel.json",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "derived/llama-2-legacy.tokenizer.json",
    "phi-3-mini/tokenizer.json",
    "barthez/tokenizer.json",
    "transformers-fixtures/test_sentencepiece_bpe.model",
]
PRUNED = [
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
    "xlnet-base-cased/spiece.model",
    "pegasus/tokenizer.json",
    "sentencepiece/test_model.model",
]
TEXTS = ["Hello world, this is a test. naïve 你好 🙂 \n\n  x=1\t", "", "The quick brown fox"]
DOCS = [
    "the quick brown fox jumps over the lazy dog and runs away " * 20,
    "zebrafishes zebrafishes zebrafishes in zebrafishland" * 5,
]


def gaps(tok):
    ids = {*tok.piece2id.values()}
    return {*range(max(ids))} - ids


def check_whole(tok, like, tmp_path):
    "No gaps between ids but those of `like`, added tokens where the vocabulary says, all of it saved and loaded."
    assert gaps(tok) <= gaps(like) and len({*tok.piece2id.values()}) == tok.vocab_size
    assert all(tok.piece2id[t.content] == i for t, i in tok.added_tokens)

    def order(t):
        return [token for token, _ in sorted(t.added_tokens, key=lambda item: item[1])]

    def around(t):
        return [p for i in t.encode("") for p, k in t.piece2id.items() if k == i]

    assert order(tok) == order(like)
    tok.save(tmp_path / "tok.json")
    again = Tokenizer.load(tmp_path / "tok.json")
    for text in TEXTS:
        ids = tok.encode(text)
        assert again.encode(text) == ids and {*ids} <= {*tok.piece2id.values()}
    assert around(tok) == around(like)  # what the post-processor puts around


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name",
    [
        *BYTES[:3],
        OTHERS[1],
        *(pytest.param(n, marks=pytest.mark.slow) for n in BYTES[3:] + OTHERS[:1] + OTHERS[2:]),
    ],
)
def test_files_of_others_are_cut(name, shared_file, tmp_path):
    tok = Tokenizer.load(shared_file("vocab/" + name))
    least = 4000 if tok.vocab_size > 4000 else tok.vocab_size - 10
    for n in (tok.vocab_size - 1, tok.vocab_size // 2, least):
        cut = tok.truncate(n)
        assert cut.vocab_size == n
    check_whole(cut, tok, tmp_path)
    if name in BYTES:
        assert [cut.decode(cut.encode(t)) for t in TEXTS] == [tok.decode(tok.encode(t)) for t in TEXTS]


@pytest.mark.slow
@pytest.mark.parametrize("name", PRUNED)
def test_unigram_files_of_others_are_pruned(name, shared_file, tmp_path):
    tok = Tokenizer.load(shared_file("vocab/" + name))
    n = len(tok.added_tokens) + 300
    with pytest.raises(ValueError, match="source"):
        tok.truncate(n)
    cut = tok.truncate(n, source=DOCS)
    assert set(cut.piece2id) <= set(tok.piece2id) and cut.vocab_size <= n
    check_whole(cut, cut, tmp_path)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", [BYTES[0], *(pytest.param(n, marks=pytest.mark.slow) for n in BYTES[1:] + OTHERS)]
)
def test_files_of_others_grow_and_keep_all_ids_or_say_why_not(name, shared_file, tmp_path):
    tok = Tokenizer.load(shared_file("vocab/" + name))
    try:
        grown = tok.extend(DOCS, tok.vocab_size + 10)
    except ValueError as e:
        assert "train_new" in str(e) or "Tokenizer.train" in str(e), e  # a refusal names the way out
        assert name not in (
            "gpt2/tokenizer.json",
            "roberta-base/tokenizer.json",
            "falcon/tokenizer.json",
            "qwen/qwen.tiktoken",
        )
        return
    assert {
        p: grown.piece2id[p] for p in tok.piece2id
    } == tok.piece2id and tok.vocab_size <= grown.vocab_size <= tok.vocab_size + 10
    assert len(grown.encode(DOCS[1])) <= len(tok.encode(DOCS[1])) and grown.training is not None
    check_whole(grown, tok, tmp_path)
    if name in BYTES:
        assert [grown.decode(grown.encode(t)) for t in TEXTS] == [tok.decode(tok.encode(t)) for t in TEXTS]


def marked_bytes(suffix, prefix="") -> Tokenizer:
    "A byte-level BPE whose pieces carry marks of their place, before it has learned anything."
    from subword_nb.bpe.model import BPE
    from subword_nb.pipeline.decoders import ByteLevel
    from subword_nb.text.pretokenizers import byte_level
    from subword_nb.core.unicode import CHAR2BYTE

    pieces = [
        "<end>",
        *dict.fromkeys(f"{p}{c}{s}" for s in ("", suffix) for p in ("", prefix) for c in CHAR2BYTE),
    ]
    model = BPE(
        {p: i for i, p in enumerate(pieces)}, [], end_of_word_suffix=suffix, continuing_subword_prefix=prefix
    )
    return Tokenizer(
        model,
        pre_tokenizer=byte_level(r"\p{L}+|[^\p{L}]"),
        decoder=ByteLevel(),
        added_tokens=((AddedToken("<end>", special=True), 0),),
    )


@pytest.mark.parametrize("suffix, prefix", [("</w>", ""), ("</w>", "##"), ("", "@@")])
def test_bytes_with_marks_of_their_place_are_learned_anew_and_further(suffix, prefix, tmp_path):
    start = marked_bytes(suffix, prefix)
    n, other = len(start.piece2id), "ünlike w\u00f6rds 漢字 zzyzx\x00"
    small, large = (start.train_new(DOCS, vocab_size=n + k) for k in (20, 45))
    assert (len(small.piece2id), len(large.piece2id), small.training.ended) == (n + 20, n + 45, "full")
    grown = small.extend(DOCS, vocab_size=n + 45)
    assert (grown.piece2id, grown.model.merges) == (large.piece2id, large.model.merges), (
        "as if it had learned on"
    )
    assert start.extend(DOCS, vocab_size=n + 20).model.merges == small.model.merges
    for tok in (small, large, grown, small.extend([other] * 3, vocab_size=n + 25)):
        for text in (DOCS[0], other, ""):
            bare = "".join(
                p.removeprefix(prefix).removesuffix(suffix) if suffix else p.removeprefix(prefix)
                for p in tok.tokenize(text)
            )
            assert bare == to_visible(text.encode()), "every byte is known, wherever it stands"
    assert len(large.encode(DOCS[0])) < len(small.encode(DOCS[0])) < len(start.encode(DOCS[0]))
    assert Tokenizer.load(large.save(tmp_path / "t.json")) == large
    with pytest.raises(ValueError, match=f"vocab_size must be at least {n} .*, got 300"):
        start.train_new(DOCS, vocab_size=300)


def test_clip_is_learned_anew_and_further(shared_file):
    clip = Tokenizer.load(shared_file("vocab/clip/tokenizer.json"))
    new = clip.train_new(DOCS, vocab_size=540)
    assert (
        new.vocab_size == 540
        and {"<|startoftext|>", "<|endoftext|>", "!</w>"} <= new.piece2id.keys()
        and new.model.end_of_word_suffix == "</w>"
    )
    around = new.encode(DOCS[0])
    assert (around[0], around[-1]) == (
        new.piece2id["<|startoftext|>"],
        new.piece2id["<|endoftext|>"],
    ) and new.model.unk_piece == "<|endoftext|>"
    more = clip.extend(["zzyzx zzyzx"] * 50, vocab_size=len(clip.piece2id) + 1)
    assert more.piece2id.items() > clip.piece2id.items() and more.model.merges[:-1] == list(clip.model.merges)
    assert (more.encode("zzyzx"), len(clip.encode("zzyzx"))) == ([49406, 49408, 49407], 4)


# train_new and transformers


@pytest.mark.peers
@pytest.mark.parametrize(
    "name, size",
    [
        ("gpt2", 600),
        ("bert-base-uncased", 500),
        ("roberta-base", 700),
        ("whisper-tiny", 2500),
        ("falcon", 600),
        ("t5-small", 400),
    ],
)
def test_train_new_is_train_new_from_iterator(name, size, shared_file, monkeypatch):
    transformers = pytest.importorskip("transformers")
    path = shared_file(f"vocab/{name}/tokenizer.json")
    tok, peer = Tokenizer.load(path), transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
    docs = [made_up(random.Random(i), 4000) for i in range(5)]
    theirs = peer.train_new_from_iterator(docs, size)
    ours = tok.train_new(docs, vocab_size=size)
    vocab = theirs.get_vocab()
    assert {t.content: i for t, i in ours.added_tokens if t.special} == {
        t.content: i for i, t in theirs.added_tokens_decoder.items() if t.special
    }
    if name == "bert-base-uncased":  # the peer numbers ##x in the order of a hash map, which decides ties
        assert len(vocab) == ours.vocab_size and {
            p for p in ours.piece2id if len(p.removeprefix("##")) == 1
        } == {p for p in vocab if len(p.removeprefix("##")) == 1}
    elif name not in (
        "t5-small",
        "whisper-tiny",
    ):  # the peer drops Whisper's time marks, which are no special tokens
        assert ours.piece2id == vocab
        for text in [*TEXTS, docs[0]]:
            assert ours.encode(text) == theirs.backend_tokenizer.encode(text).ids
    for text in TEXTS:
        assert ours.normalizer is None or ours.normalizer.normalize(text) == tok.normalizer.normalize(text)
    assert type(ours.pre_tokenizer) is type(tok.pre_tokenizer) and type(ours.post_processor) is type(
        tok.post_processor
    )


@pytest.mark.parametrize(
    "name, size",
    [
        ("gpt2/tokenizer.json", 400),
        ("bert-base-uncased/tokenizer.json", 300),
        ("t5-small/tokenizer.json", 350),
        ("roberta-base/tokenizer.json", 400),
    ],
)
def test_train_new_keeps_the_pipeline(name, size, shared_file, tmp_path):
    tok, docs = Tokenizer.load(shared_file("vocab/" + name)), [made_up(random.Random(3), 20000)]
    new = tok.train_new(docs, vocab_size=size, special_tokens=["<more>"])
    assert (
        new.vocab_size == size and new.pre_tokenizer == tok.pre_tokenizer and new.normalizer == tok.normalizer
    )
    old = [t for t, _ in tok.added_tokens]
    assert sorted((t.content for t, _ in new.added_tokens)) == sorted({*(t.content for t in old), "<more>"})
    check_whole(new, new, tmp_path)
    assert new.decode(new.encode(docs[0][:300]), skip_special_tokens=True) == tok.decode(
        tok.encode(docs[0][:300]), skip_special_tokens=True
    )


# Checkpoints

RUNS = {
    "bpe": {},
    "char_bpe": {"unk_piece": "<unk>"},
    "wordpiece": {},
    "frequency": {"objective": "frequency"},
    "unigram": {},
    "wordlevel": {},
}
CHILD = """
import sys, json
from subword_nb.tokenizer.tokenizer import Tokenizer
if __name__ == "__main__":
    path, folder, out, kind, size, options = sys.argv[1:]
    print("go", flush=True)
    more = dict(checkpoint=folder, every=0.0, threads=1, memory=1 << 16) | json.loads(options)
    tok = Tokenizer.train(path, algorithm=kind, vocab_size=int(size), **more)
    tok.save(out)
"""


def kind_of(name):
    "The algorithm of a run."
    return "wordpiece" if name == "frequency" else name


def stopped_everywhere(name, source, folder, size, **more):
    "Train, stopped by `on_progress` at each call in turn, until a run comes to its end; how often it was stopped."
    for stops in range(1000):
        calls = [0]

        def on_progress(done, total, what, state, calls=calls, stops=stops):
            calls[0] += 1
            if calls[0] == 2 + int(1.6**stops):
                raise KeyboardInterrupt

        try:
            return Tokenizer.train(
                source,
                algorithm=kind_of(name),
                vocab_size=size,
                checkpoint=folder,
                every=0.0,
                on_progress=on_progress,
                **RUNS[name],
                **more,
            ), stops
        except KeyboardInterrupt:
            assert not [p for p in folder.rglob("*") if p.suffix == ".new"]
    raise AssertionError("no end")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_stopped_again_and_again_ends_as_an_undisturbed_one(name, tmp_path, monkeypatch):
    import subword_nb.bpe.trainer

    monkeypatch.setattr(subword_nb.bpe.trainer, "PAUSE", 0.0)
    (tmp_path / "a.txt").write_text(made_up(random.Random(5), 40000))
    plain = Tokenizer.train(tmp_path / "a.txt", algorithm=kind_of(name), vocab_size=500, **RUNS[name])
    tok, _ = stopped_everywhere(name, tmp_path / "a.txt", tmp_path / "run", 500)
    assert parts(tok) == parts(plain)
    plain.save(tmp_path / "1.json")
    tok.save(tmp_path / "2.json")
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    assert tok.training[:5] == plain.training[:5]
    again = Tokenizer.train(
        tmp_path / "a.txt", algorithm=kind_of(name), vocab_size=500, checkpoint=tmp_path / "run", **RUNS[name]
    )  # a folder that is done is no harm
    assert parts(again) == parts(plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill", "interrupt"])
def test_a_process_ended_at_random_goes_on(name, how, tmp_path):
    import json

    rng = random.Random(name + how.name)
    (tmp_path / "a.txt").write_text(made_up(rng, 2_000_000))
    (tmp_path / "child.py").write_text(CHILD)
    size = 3000
    Tokenizer.train(tmp_path / "a.txt", algorithm=kind_of(name), vocab_size=size, **RUNS[name]).save(
        tmp_path / "plain.json"
    )
    command = [
        sys.executable,
        "child.py",
        "a.txt",
        "run",
        "tok.json",
        kind_of(name),
        str(size),
        json.dumps(RUNS[name]),
    ]
    ended, span = (
        0,
        1.0,
    )  # seconds of the first wait at most: half as long after each run that nobody ended in time
    for _ in range(40):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"go\n"
            try:
                child.wait(span * rng.uniform(0.2, 1.0) + ended * 0.3)
            except subprocess.TimeoutExpired:
                child.send_signal(how)
                child.wait(10)
                ended += 1
                if (tmp_path / "tok.json").exists():
                    break  # it had come to its end
                continue
            assert child.returncode == 0, child.stderr.read().decode()
            if ended:
                break
            shutil.rmtree(tmp_path / "run")
            (tmp_path / "tok.json").unlink()
            span /= 2
    assert ended and (tmp_path / "tok.json").read_bytes() == (tmp_path / "plain.json").read_bytes()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    "A corpus, and the folder of a run that was stopped when it had a snapshot."
    home = tmp_path_factory.mktemp("stopped")
    (home / "a.txt").write_text(made_up(random.Random(6), 30000))
    calls = []

    def on_progress(*args):
        calls.append(args)
        if (home / "run" / "state.npz").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tokenizer.train(
            home / "a.txt",
            algorithm="unigram",
            vocab_size=300,
            checkpoint=home / "run",
            every=0.0,
            on_progress=on_progress,
        )
    return home


def copy_of(stopped, tmp_path):
    "A copy of the folder that may be damaged."
    import shutil

    shutil.copytree(stopped / "run", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": 301},
        {"special_tokens": ["<s>"]},
        {"algorithm": "bpe"},
        {"max_piece_length": 5},
        {"normalizer": "nfc"},
        {"pre_tokenizer": "whitespace"},
        {"unk_piece": "?"},
        {"max_pretokens": 50},
        {"seed": 3, "sample": 0.5},
    ],
    ids=lambda c: next(iter(c)),
)
def test_the_folder_of_another_run_is_refused(stopped, tmp_path, change):
    folder, options = copy_of(stopped, tmp_path), {"algorithm": "unigram", "vocab_size": 300} | change
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(ValueError, match="got that of another run"):
        Tokenizer.train(stopped / "a.txt", checkpoint=folder, **options)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_corpus_that_was_changed_is_refused(stopped, tmp_path):
    folder = copy_of(stopped, tmp_path)
    text = (stopped / "a.txt").read_text()
    (stopped / "a.txt").write_text("x" + text[1:])
    try:
        with pytest.raises(ValueError, match="another run"):
            Tokenizer.train(stopped / "a.txt", algorithm="unigram", vocab_size=300, checkpoint=folder)
    finally:
        (stopped / "a.txt").write_text(text)


@pytest.mark.parametrize("name", ["run.json", "counts.npz", "state.npz"])
@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "flipped", "list"])
def test_damage_is_refused_or_does_no_harm(stopped, tmp_path, name, damage):
    folder = copy_of(stopped, tmp_path)
    data = (folder / name).read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0xFF
    (folder / name).write_bytes(
        {
            "empty": b"",
            "cut": data[: len(data) // 2],
            "noise": random.Random(0).randbytes(len(data)),
            "flipped": bytes(flipped),
            "list": b"[1, 2]",
        }[damage]
    )
    with pytest.raises(
        ValueError, match="damaged|another run|is not|delete|must be a file of counts"
    ) as caught:
        Tokenizer.train(stopped / "a.txt", algorithm="unigram", vocab_size=300, checkpoint=folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
@pytest.mark.parametrize("state", [None, [], {}, {"kind": "else"}, 7], ids=str)
def test_a_snapshot_of_something_else_is_refused(stopped, tmp_path, kind, state):
    from subword_nb.train.checkpoints import save_snapshot

    with pytest.raises(KeyboardInterrupt):

        def stop(done, total, what, state):
            if what != "counting":
                raise KeyboardInterrupt

        Tokenizer.train(
            stopped / "a.txt",
            algorithm=kind,
            vocab_size=400,
            checkpoint=tmp_path / "run",
            every=0.0,
            on_progress=stop,
        )
    save_snapshot(tmp_path / "run" / "state.npz", state)
    if state is None:
        Tokenizer.train(stopped / "a.txt", algorithm=kind, vocab_size=400, checkpoint=tmp_path / "run")
        return
    with pytest.raises(ValueError, match="snapshot|resume|damaged"):
        Tokenizer.train(stopped / "a.txt", algorithm=kind, vocab_size=400, checkpoint=tmp_path / "run")


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(made_up(random.Random(6), 30000))
    folder = tmp_path / "run"

    def stop(*args):
        if (folder / "state.npz").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tokenizer.train(
            tmp_path / "a.txt",
            algorithm="unigram",
            vocab_size=300,
            checkpoint=folder,
            every=0.0,
            on_progress=stop,
        )
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert "state.npz" in before
    plain = Tokenizer.train(tmp_path / "a.txt", algorithm="unigram", vocab_size=300)

    def full(file, *args, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(np, "savez", full)
        with pytest.raises(OSError, match="No space left"):
            Tokenizer.train(
                tmp_path / "a.txt", algorithm="unigram", vocab_size=300, checkpoint=folder, every=0.0
            )
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert parts(
        Tokenizer.train(tmp_path / "a.txt", algorithm="unigram", vocab_size=300, checkpoint=folder)
    ) == parts(plain)


def test_what_cannot_be_gone_on_with_is_refused(tmp_path):
    for source in ((t for t in ["a b"]), {"a": 3}, flatten_counts({"a": 3})):
        with pytest.raises(ValueError, match="leave out checkpoint"):
            Tokenizer.train(source, vocab_size=300, checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="which contains 'letter.txt'"):
        Tokenizer.train(["a b"], vocab_size=300, checkpoint=tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]


# Watching


@pytest.mark.parametrize("name", ["bpe", "char_bpe", "wordpiece", "frequency", "unigram"])
@pytest.mark.parametrize("size", [4000, 600000], ids=["small", "large"])
def test_on_progress_gets_sensible_numbers(name, size):
    reports, docs = [], [made_up(random.Random(7), size)]
    tok = Tokenizer.train(
        docs,
        algorithm=kind_of(name),
        vocab_size=800 if size > 4000 else 350,
        on_progress=lambda *a: reports.append(a),
        threads=1,
        **RUNS[name],
    )
    assert reports and all(
        0 <= done <= total and isinstance(what, str) and callable(state)
        for done, total, what, state in reports
    )
    for (a, t, w, _), (b, u, v, _) in pairwise(reports):
        assert w != v or t != u or a <= b
    if name != "unigram":
        assert reports[-1][0] == tok.vocab_size


@pytest.mark.parametrize("name", RUNS)
def test_bars_are_drawn_and_change_nothing(name, capsys, monkeypatch):
    monkeypatch.delenv("SUBWORD_NB_QUIET", raising=False)
    docs = [made_up(random.Random(8), 3000)] * 3
    quiet = Tokenizer.train(docs, algorithm=kind_of(name), vocab_size=350, progress=False, **RUNS[name])
    assert capsys.readouterr() == ("", "")
    assert parts(
        Tokenizer.train(docs, algorithm=kind_of(name), vocab_size=350, progress=True, **RUNS[name])
    ) == parts(quiet)
    out, err = capsys.readouterr()
    assert out == "" and err
    assert "reading" in err and (name != "unigram" or "training" in err)


def test_what_on_progress_raises_comes_out(tmp_path):
    for error in (KeyboardInterrupt, RuntimeError):

        def on_progress(*args, error=error):
            raise error

        for name in ("bpe", "wordpiece", "unigram"):
            with pytest.raises(error):
                Tokenizer.train(
                    [made_up(random.Random(9), 5000)], algorithm=name, vocab_size=400, on_progress=on_progress
                )


# The same file however it is done

SAVE = """
import sys, json
from subword_nb.tokenizer.tokenizer import Tokenizer
if __name__ == "__main__":
    path, out, more = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    for name, (kind, options) in json.loads(sys.argv[4]).items():
        tok = Tokenizer.train(path, algorithm=kind, vocab_size=600, special_tokens=["<s>"], **options, **more)
        tok.save(f"{out}_{name}.json")
"""


@pytest.mark.slow
def test_threads_memory_hash_seeds_and_kernels_do_not_matter(tmp_path, record_property):
    import json

    (tmp_path / "a.txt").write_text("\n".join(made_up(random.Random(i), 30000) for i in range(10)))
    (tmp_path / "save.py").write_text(SAVE)
    runs = json.dumps({name: (kind_of(name), options) for name, options in RUNS.items()})
    ways = {
        "0": ({}, {}),
        "threads1": ({"threads": 1}, {}),
        "threads2": ({"threads": 2}, {"SUBWORD_NB_BULK": "1"}),
        "threads3": ({"threads": 3}, {"SUBWORD_NB_BULK": "1"}),
        "spill": ({"memory": 1}, {"SUBWORD_NB_BULK": "1"}),
        "hash0": ({}, {"PYTHONHASHSEED": "0"}),
        "hash1": ({}, {"PYTHONHASHSEED": "1"}),
        "bulk": ({}, {"SUBWORD_NB_BULK": "1"}),
        "plain": ({}, {"SUBWORD_NB_JIT": "0"}),
        "kept": ({"checkpoint": "run", "every": 0.0}, {}),
    }
    for way, (options, env) in ways.items():
        own = {
            name: (kind, o | ({"checkpoint": f"run_{name}"} if way == "kept" else {}))
            for name, (kind, o) in json.loads(runs).items()
        }
        options.pop("checkpoint", None)
        done = subprocess.run(
            [sys.executable, "save.py", "a.txt", way, json.dumps(options), json.dumps(own)],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, **env},
        )
        assert done.returncode == 0, done.stderr.decode()
        for name in RUNS:
            assert (tmp_path / f"{way}_{name}.json").read_bytes() == (
                tmp_path / f"0_{name}.json"
            ).read_bytes(), (way, name)
    record_property("runs", len(ways) * len(RUNS))


@pytest.mark.parametrize("name", RUNS)
def test_threads_and_spilling_change_nothing_through_kernels(name, monkeypatch):
    from subword_nb.train import train as training

    docs = [made_up(random.Random(i), 3000) for i in range(8)]
    plain = Tokenizer.train(docs, algorithm=kind_of(name), vocab_size=450, **RUNS[name])
    monkeypatch.setattr(training, "BULK_BYTES", 1)
    for more in ({"threads": 1}, {"threads": 3}, {"memory": 1}):
        assert parts(
            Tokenizer.train(docs, algorithm=kind_of(name), vocab_size=450, **more, **RUNS[name])
        ) == parts(plain)


# Counts


@pytest.mark.parametrize("name", RUNS)
def test_counts_beyond_32_bits(name):
    rng = random.Random(name)
    words = {
        "".join(rng.choice("abcd") for _ in range(rng.randint(1, 6))): rng.randint(1, 50) for _ in range(80)
    }
    first = None
    for factor in (1, 2**33, 2**40):
        counts = {w: n * factor for w, n in words.items()}
        found = [
            Tokenizer.train(
                c,
                algorithm=kind_of(name),
                vocab_size=300 if name == "bpe" else 60,
                pre_tokenizer=None,
                normalizer=None,
                **RUNS[name],
            )
            for c in (counts, flatten_counts(counts))
        ]
        assert parts(found[0]) == parts(found[1])
        assert found[0].training.total == found[1].training.total == sum(counts.values())
        if name != "unigram":
            first = first or parts(found[0])
            assert parts(found[0]) == first  # pairs stand to each other as they did
    for counts in (
        {"ab": 2**62, "ba": 2**62, "aa": 2**62},
        flatten_counts({"ab": 2**62, "ba": 2**62, "aa": 2**62}),
    ):
        try:
            assert (
                Tokenizer.train(
                    counts,
                    algorithm=kind_of(name),
                    vocab_size=300,
                    pre_tokenizer=None,
                    normalizer=None,
                    **RUNS[name],
                ).training.total
                == 3 * 2**62
            )
        except ValueError as e:
            assert "2**63" in str(e) or "divide all counts" in str(e)


def test_sums_of_counts_do_not_overflow():
    from subword_nb.train.counting import sum_counts

    many = flatten_counts({"ab": 2**62})
    with pytest.raises(ValueError):
        sum_counts(many, many)


@pytest.mark.parametrize("name", RUNS)
def test_counts_train_as_their_corpus_does(name, tmp_path):
    docs = [made_up(random.Random(10), 9000)]
    plain = Tokenizer.train(docs, algorithm=kind_of(name), vocab_size=400, **RUNS[name])
    counts = pretoken_counts(docs, algorithm=kind_of(name))
    assert parts(Tokenizer.train(counts, algorithm=kind_of(name), vocab_size=400, **RUNS[name])) == parts(
        plain
    )
    for suffix in (".npz", ".parquet"):
        counts_module.save_counts(counts, tmp_path / f"c{suffix}")
        assert parts(
            Tokenizer.train(
                counts_module.load_counts(tmp_path / f"c{suffix}"),
                algorithm=kind_of(name),
                vocab_size=400,
                **RUNS[name],
            )
        ) == parts(plain)


def test_a_limit_on_pretokens_tells_what_it_costs():
    docs = [made_up(random.Random(11), 60000)]
    exact, few = pretoken_counts(docs).to_dict(), pretoken_counts(docs, max_pretokens=100)
    assert isinstance(few, FlatCounts) and few.error > 0
    assert all(exact[p] - few.error <= n <= exact[p] for p, n in few.to_dict().items())
    tok = Tokenizer.train(docs, vocab_size=300, max_pretokens=100)
    assert tok.training.error == few.error
    for bad in (0, -1):
        with pytest.raises(ValueError, match="max_pretokens"):
            pretoken_counts(docs, max_pretokens=bad)


@pytest.mark.parametrize("options", [{"threads": 0}, {"threads": -1}, {"memory": -1}], ids=str)
def test_impossible_limits_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Tokenizer.train([made_up(random.Random(12), 3000)], vocab_size=300, **options)


@pytest.mark.slow
def test_a_vocabulary_with_gaps_grows_behind_its_last_id(shared_file):
    tok = Tokenizer.load(shared_file("vocab/tiktoken/o200k_base.tiktoken"))
    words = ["tokenisierungsverfahrensbeschreibung unwahrscheinlichkeitsrechnung"] * 50
    new = tok.extend(words, tok.vocab_size + 4)
    assert {p: new.piece2id[p] for p in tok.piece2id} == tok.piece2id
    added = sorted({*new.piece2id.values()} - {*tok.piece2id.values()})
    assert added == [tok.n_vocab + i for i in range(4)] and tok.n_vocab > tok.vocab_size
    assert len(new.encode(words[0])) < len(tok.encode(words[0]))
    assert new.decode(new.encode(words[0])) == words[0]
    found = tok.id_map(new)
    assert found.overlap.tolist() == [[i, i] for i in sorted({*tok.piece2id.values()})]
    for i in added:
        spelled = "".join(tok.id2piece[j] for j in found.backward[i])
        assert spelled == new.id2piece[i]


@pytest.mark.filterwarnings("ignore")
def test_wordpiece_whose_pieces_were_removed_grows_behind_its_last_id():
    "The pieces that were removed stay away; the new ones are those of one longer run."
    text = [made_up(random.Random(3), 3000)]
    options = {"algorithm": "wordpiece", "special_tokens": ["[UNK]"], "objective": "score"}
    tok = Tokenizer.train(text, vocab_size=90, **options)
    longer = Tokenizer.train(text, vocab_size=100, **options)
    learned = [p for p in tok.piece2id if len(p.removeprefix("##")) > 1]
    removed = learned[2], learned[-3]
    holed = tok.remove(removed, renumber=False)
    grown = holed.extend(text, holed.vocab_size + 10)
    assert grown.piece2id == {p: i for p, i in longer.piece2id.items() if p not in removed}
    with pytest.raises(ValueError, match="must lead to the pieces of the vocabulary again"):
        holed.extend([made_up(random.Random(4), 3000)], holed.vocab_size + 10)


def test_rules_that_need_a_later_piece_are_kept_and_not_learned_from():
    "As Llama's, which ranks the longest run of spaces first."
    from subword_nb.bpe.model import BPE
    from subword_nb.text.pretokenizers import pretokenizer

    pieces = ["a", "b", "▁", "▁▁▁▁", "▁▁▁", "▁▁", "ab"]
    rules = [("▁▁▁", "▁"), ("▁▁", "▁"), ("▁", "▁"), ("a", "b")]
    model = BPE({piece: i for i, piece in enumerate(pieces)}, rules)
    tok = Tokenizer(model, pre_tokenizer=pretokenizer("whitespace_split"))
    new = tok.extend({"abab": 3, "▁ab": 2}, 9)
    assert new.model.merges == [*rules, ("ab", "ab"), ("▁", "ab")]
    rng = random.Random(5)
    for _ in range(200):
        text = "".join(rng.choices("▁▁▁ ab", k=12))
        if "ab" not in text:
            assert new.encode(text) == tok.encode(text)
    assert new.tokenize("▁▁▁▁▁▁▁ abab ▁ab") == [*tok.tokenize("▁▁▁▁▁▁▁"), "abab", "▁ab"]
    with pytest.raises(ValueError, match="got another order for '▁▁▁', which the corpus has"):
        tok.extend({"a▁▁▁b": 1}, 9)
    assert tok.truncate(7).model.merges == rules


@pytest.mark.slow
@pytest.mark.parametrize("file", ["llama-2/tokenizer.model", "mistral-v1/tokenizer.model.v1"])
def test_a_published_llama_grows(shared_file, file):
    "The recipe of the page about growing a vocabulary, with the file that it names."
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    lines = ["यह एक वाक्य है और वह भी एक वाक्य है।", "भारत एक विशाल देश है।"]
    new = tok.extend(lines, tok.vocab_size + 20)
    assert new.vocab_size == tok.vocab_size + 20
    assert len(new.encode(lines[0])) < len(tok.encode(lines[0]))
    for text in ("The quick brown fox", "a  b     c", "    if x:\n        return y"):
        assert new.encode(text) == tok.encode(text)
    embedding = np.arange(2.0 * tok.n_vocab).reshape(-1, 2)
    rows = tok.id_map(new).rows(embedding)
    assert rows.shape == (new.n_vocab, 2) and (rows[: tok.n_vocab] == embedding).all()


@pytest.mark.parametrize("marks", [{"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}])
def test_rules_out_of_order_are_found_behind_marks(marks):
    "A piece in the vocabulary has marks, and a pretoken has none."
    if "continuing_subword_prefix" in marks:
        pieces = [*"abcd", *(f"##{c}" for c in "abcd"), "##bcd", "##bc"]
        merges = [("##bc", "##d"), ("##b", "##c")]
    else:
        pieces = [*"abcd", *(f"{c}</w>" for c in "abcd"), "bcd</w>", "bc"]
        merges = [("bc", "d</w>"), ("b", "c")]
    model = BPE({p: i for i, p in enumerate(pieces)}, merges, **marks)
    tok = Tokenizer(model, pre_tokenizer=WhitespaceSplit())
    with pytest.raises(ValueError, match="order in which they were learned"):
        tok.extend(["abcd abcd"] * 10, vocab_size=len(pieces) + 4)
    assert tok.extend(["dada dada"] * 10, vocab_size=len(pieces) + 1) is not None


def of_sentencepiece(folder, algorithm):
    "A tokenizer that was read from a `.model` file."
    given = {"vocab_size": 60, "pre_tokenizer": "metaspace", "special_tokens": ["<s>", "<unk>"]}
    first = Tokenizer.train(DOCS, algorithm=algorithm, unk_piece="<unk>", allowed_special=(), **given)
    normalizer = SentencePieceNormalizer(add_dummy_prefix=True, remove_extra_whitespaces=True)
    parts = first.parts._replace(normalizer=normalizer, pre_tokenizer=Metaspace("▁", "never"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Tokenizer.load(Tokenizer(**parts._asdict()).save(folder / f"{algorithm}.model"))


@pytest.mark.filterwarnings("ignore:training ended")
@pytest.mark.parametrize(
    ("algorithm", "change", "merges"),
    [
        ("char_bpe", lambda tok: tok.truncate(55), False),
        ("char_bpe", lambda tok: tok.extend(DOCS, 65), False),
        ("char_bpe", lambda tok: tok.merge(tok), True),
        ("char_bpe", lambda tok: tok.train_new(DOCS, vocab_size=55), False),
        ("unigram", lambda tok: tok.truncate(55, source=DOCS), False),
        ("unigram", lambda tok: tok.merge(tok), True),
    ],
)
def test_a_change_that_translates_names_what_differs(tmp_path, algorithm, change, merges):
    tok = of_sentencepiece(tmp_path, algorithm)
    notes = [f"translated to tokenizer.json: {note}" for note in tok.translated("tokenizer.json")[1]]
    assert notes
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        change(tok)
    told = [w for w in found if "translated" in str(w.message)]
    if merges:
        notes += [f"the other tokenizer, {note}" for note in notes]
    assert [str(w.message) for w in told] == notes
    assert {w.filename for w in told} == {__file__}


@pytest.mark.parametrize("algorithm", ["char_bpe", "unigram"])
def test_a_change_that_does_not_translate_has_nothing_to_tell(tmp_path, algorithm):
    tok = of_sentencepiece(tmp_path, algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(tok.prune(55).model) is type(tok.shrink_to(DOCS).model) is type(tok.model)
