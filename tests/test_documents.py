"""What a document is: lines, whole texts and batches of texts, in every way of training and counting."""

import random

import pytest
from commands import run

from subword_nb import Tokenizer
from subword_nb.train.counting import sum_counts
from subword_nb.text.pretokenizers import Metaspace, Sequence
from subword_nb.text.splitters import WhitespaceSplit
from subword_nb.bulk.distributed import count
from subword_nb.corpus.sources import Corpus
from subword_nb.train.train import pretoken_counts

WORDS = [
    "hug",
    "pug",
    "pun",
    "bun",
    "hugs",
    "The",
    "the",
    "a",
    "of",
    "and",
    "to",
    "in.",
    "it,",
    "was",
    "said",
]


def prose(seed, lines=300):
    "Wrapped paragraphs with line ends of both kinds."
    rng = random.Random(seed)
    return "".join(
        " ".join(rng.choices(WORDS, k=rng.randint(1, 9))) + rng.choice(["\n", "\n", "\n\n", "\r\n"])
        for _ in range(lines)
    )


@pytest.fixture(scope="module")
def text():
    return prose(0)


@pytest.fixture(scope="module")
def file(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "a.txt"
    path.write_bytes(text.encode())
    return path


MARKED = [
    ("unigram", {}),
    ("unigram", dict(pre_tokenizer=Metaspace())),
    ("char_bpe", dict(pre_tokenizer="metaspace", unk_piece="<unk>")),
    ("char_bpe", dict(pre_tokenizer=Metaspace(prepend_scheme="never"), unk_piece="<unk>")),
]


@pytest.mark.parametrize("algorithm, options", MARKED)
def test_no_line_end_inside_a_piece(file, text, algorithm, options):
    "By default: however the text comes, its lines are what is learned from."

    def trained(source, **more):
        return Tokenizer.train(source, algorithm=algorithm, vocab_size=150, **options, **more)

    tok = trained(file)
    assert sorted(p for p in tok.piece2id if set(p) & {"\n", "\r"}) == ["\n", "\r"]
    assert (
        tok.model
        == trained([text]).model
        == trained(file, documents="lines").model
        == trained([text], max_pretokens=10**6).model
    )
    lines = [line for line in text.replace("\r", "\n").split("\n") if line]
    of_lines = Tokenizer.train(lines, algorithm=algorithm, vocab_size=148, **options)
    assert (
        tok.piece2id.keys() - of_lines.piece2id.keys() == {"\n", "\r"}
        and of_lines.piece2id.keys() < tok.piece2id.keys()
    )
    assert any(len(p) > 1 and "\n" in p for p in trained(file, documents="whole").piece2id)


def test_texts_of_several_lines_come_back(file):
    tok = Tokenizer.train(file, algorithm="unigram", vocab_size=150)
    for sample in ("hug\npug\r\n\nThe bun", prose(1, 20)):
        assert tok.decode(tok.encode(sample)) == sample
        assert all(p in ("\n", "\r") for p in tok.tokenize(sample) if set(p) & {"\n", "\r"})
    assert tok.training.total == sum(pretoken_counts(file, algorithm="unigram").to_dict().values())


def test_a_coverage_keeps_line_ends(file):
    assert "\n" in Tokenizer.train(file, algorithm="unigram", vocab_size=100, character_coverage=0.9).piece2id


def test_white_space_that_is_dropped_is_not_counted(file):
    "A pipeline that makes words of lines has no line ends to count."
    for documents in (None, "lines", "whole"):
        assert not any(
            set(p) & {"\n", "\r"}
            for p in pretoken_counts(
                file,
                algorithm="unigram",
                pre_tokenizer=Sequence([WhitespaceSplit(), Metaspace()]),
                documents=documents,
            ).to_dict()
        )


@pytest.mark.parametrize(
    "algorithm, documents", [("unigram", None), ("unigram", "whole"), ("bpe", "lines"), ("bpe", None)]
)
def test_counts_are_the_same_everywhere(file, text, tmp_path, algorithm, documents):
    "In Python, by kernels, in parts and as a sum."
    small = pretoken_counts(file, algorithm=algorithm, documents=documents).to_dict()
    assert (
        pretoken_counts(
            file, algorithm=algorithm, documents=documents, max_pretokens=10**6, threads=2
        ).to_dict()
        == small
    )
    parts = count(str(file), algorithm=algorithm, client=False, part_bytes=2000, documents=documents)
    assert list(parts.to_dict().items()) == list(
        pretoken_counts(file, algorithm=algorithm, documents=documents, max_pretokens=10**6).to_dict().items()
    )
    if documents is None and algorithm == "unigram":
        half = text.index("\n", len(text) // 2) + 1
        assert (
            sum_counts(
                *(pretoken_counts([t], algorithm=algorithm) for t in (text[:half], text[half:]))
            ).to_dict()
            == small
        )


def test_counts_train_as_their_corpus(file):
    counts = pretoken_counts(file, algorithm="unigram")
    assert (
        Tokenizer.train(counts, algorithm="unigram", vocab_size=120).model
        == Tokenizer.train(file, algorithm="unigram", vocab_size=120).model
    )
    with pytest.raises(ValueError, match="documents must be None where the source is counts, got 'lines'"):
        Tokenizer.train(counts, algorithm="unigram", vocab_size=120, documents="lines")


def test_another_vocabulary_and_a_longer_one(file, text):
    for algorithm, options in MARKED[::2]:
        tok = Tokenizer.train(file, algorithm=algorithm, vocab_size=100, **options)
        again = tok.train_new(prose(2).split("\n\n"), vocab_size=120)
        assert not any("\n" in p and len(p) > 1 for p in again.piece2id)
        assert any(
            "\n" in p and len(p) > 1
            for p in tok.train_new([prose(2)], vocab_size=120, documents="whole").piece2id
        )
    assert not any("\n" in p and len(p) > 1 for p in tok.extend([prose(2)], vocab_size=120).piece2id)


def test_a_run_that_is_gone_on_with(file, tmp_path):
    call = dict(algorithm="unigram", vocab_size=120)

    def stop(done, total, what, state):
        if what != "counting":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tokenizer.train(file, **call, checkpoint=tmp_path / "run", every=0, on_progress=stop)
    with pytest.raises(ValueError, match="another run"):
        Tokenizer.train(file, **call, checkpoint=tmp_path / "run", documents="whole")
    assert (
        Tokenizer.train(file, **call, checkpoint=tmp_path / "run").model
        == Tokenizer.train(file, **call).model
    )


BATCHES = {
    "lists": lambda docs: [docs[i : i + 3] for i in range(0, len(docs), 3)],
    "tuples": lambda docs: tuple(tuple(docs[i : i + 3]) for i in range(0, len(docs), 3)),
    "generator of lists": lambda docs: (docs[i : i + 3] for i in range(0, len(docs), 3)),
    "list of generators": lambda docs: [(d for d in docs[i : i + 3]) for i in range(0, len(docs), 3)],
    "some": lambda docs: [docs[0], docs[1:5], docs[5:]],
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_of_texts(kind):
    docs = prose(3, 40).splitlines()
    batched = BATCHES[kind]
    assert list(Corpus(batched(docs))) == docs
    assert Tokenizer.train(batched(docs), vocab_size=300).model == Tokenizer.train(docs, vocab_size=300).model
    assert (
        Tokenizer.train(docs, vocab_size=280).train_new(batched(docs), vocab_size=300).model
        == Tokenizer.train(docs, vocab_size=300).model
    )
    assert pretoken_counts(batched(docs)).to_dict() == pretoken_counts(docs).to_dict()


def test_batches_know_their_size_and_one_level():
    assert Corpus([["a", "b"], ("c",), "d"]).total == 4
    assert list(Corpus([[{"text": "a"}, {"text": "b"}], [b"c"]])) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="document 1 must be str, bytes.*got list"):
        list(Corpus([["a", ["b"]]]))


def test_on_the_command_line(file, tmp_path):
    for more, inside in (([], False), (["--documents", "whole"], True)):
        done = run(
            "train", file, "--algorithm", "unigram", "--vocab-size", 100, "-o", tmp_path / "t.json", *more
        )
        assert done.returncode == 0, done.stderr
        assert any("\n" in p and len(p) > 1 for p in Tokenizer.load(tmp_path / "t.json").piece2id) == inside
    assert (
        b'documents must be "lines", "whole" or None'
        in run("count", file, "--documents", "words", "-o", tmp_path / "c.npz").stderr
    )


@pytest.mark.peers
def test_lines_of_a_file_as_hugging_face_reads_them(hf, shared_file, tmp_path):
    "WikiText: the merges of Hugging Face's train([file]), three thousand pieces."
    text = shared_file("corpus/wikitext-2").glob("*test*")
    (path := tmp_path / "wiki.txt").write_bytes(next(text).read_bytes()[:600_000])
    theirs = hf.Tokenizer(hf.models.BPE())
    theirs.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.train(
        [str(path)],
        hf.trainers.BpeTrainer(
            vocab_size=3000, show_progress=False, initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet()
        ),
    )
    ours = Tokenizer.train(path, vocab_size=3000, documents="lines")
    import json

    merges = [
        tuple(m) if isinstance(m, list) else tuple(m.split(" "))
        for m in json.loads(theirs.to_str())["model"]["merges"]
    ]
    assert [tuple(m) for m in ours.model.merges] == merges
    assert Tokenizer.train(path, vocab_size=3000).model.merges != ours.model.merges
