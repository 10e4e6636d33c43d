"Superwords: against Hugging Face's library, and against training that keeps the whole text."

import random

import pytest
from characters import same_ids, strange_texts
from seeds import TEXTS, fresh

from subword_nb import Tokenizer
from subword_nb.bpe.span_encoder import PartsSpanEncoder
from subword_nb.bpe.superwords import superword_train, superword_train_ref, wide_pretokenizer
from subword_nb.bpe.trainer import bpe_train
from subword_nb.core.jit import available
from subword_nb.corpus.segmentation import SegmentationPlan
from subword_nb.train.train import pretoken_counts

BYTES = [bytes([b]) for b in range(256)]
TEXT = "the hug of a pug, in 1984… der Hügel; 東京都 and don't “stop”!  \n\n ..."
WORDS = TEXT.split(" ")


def texts(rng, n):
    for _ in range(n):
        words = rng.choices(WORDS, k=rng.randrange(1, 40))
        yield rng.choice([" ", " ", "  ", "\n"]).join(words)


@pytest.fixture(scope="module")
def trained():
    rng = random.Random(5)
    corpus = [*texts(rng, 300)]
    return Tokenizer.train(corpus, vocab_size=420, superwords=360)


def test_pieces_cross_words(trained):
    crossing = [p for p in trained.model.piece2id if "Ġ" in p.lstrip("Ġ")]
    assert crossing
    assert trained.pre_tokenizer == wide_pretokenizer()


@pytest.mark.peers
def test_hugging_faces_library_gives_the_same_ids(trained, hf, tmp_path):
    trained.save(tmp_path / "tokenizer.json")
    theirs = hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    for text in texts(fresh(), 200):
        ids = trained.encode(text)
        assert theirs.encode(text).ids == ids == again.encode(text)
        assert trained.decode(ids) == text


def test_long_texts_have_the_same_ids_as_short_ones(trained):
    text = "\n".join(texts(fresh(), 400))
    ids = trained.model.encode
    wanted = [i for p, _, _ in trained.pre_tokenizer.split(text) for i in ids(p)]
    assert trained.encode_array(text).tolist() == wanted


def test_kernels_give_the_ids_of_the_model(trained):
    encoder = trained.model.span_encoder(SegmentationPlan(None, trained.pre_tokenizer).byte_spans)
    assert isinstance(encoder, PartsSpanEncoder)
    same_ids(trained, strange_texts(fresh(), WORDS, TEXTS))


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="dictionaries would take minutes")
@pytest.mark.parametrize("name", ["english_small.txt", "wagahaiwa_nekodearu.txt"])
def test_runs_give_what_the_whole_text_gives(name, shared_file):
    path = shared_file(f"corpus/{name}")
    narrow = pretoken_counts(path)
    wide = pretoken_counts(path, pre_tokenizer=wide_pretokenizer())
    found = superword_train(narrow, wide, 3000, superwords=2000, initial_alphabet=BYTES)
    first = bpe_train(narrow, 2000, initial_alphabet=BYTES)
    whole = bpe_train(wide, 3000, initial_alphabet=BYTES, known=first)
    assert found.pieces == whole.pieces
    assert found.merges == whole.merges
    assert found.counts[len(first.merges) :] == whole.counts[len(first.merges) :]


@pytest.mark.skipif(not available(), reason="kernels are compared")
def test_bytes_that_separate_spans_are_learned_too():
    narrow = {b"\xff\xfe": 3, b" \xff": 5, b" a": 4}
    wide = {b"\xff\xfe \xff a": 3, b" \xff a\xff": 2, b"\xff": 1}
    for size in (5, 7, 9, 11):
        how = {"superwords": min(size, 6), "initial_alphabet": BYTES[:1]}
        found = superword_train(narrow, wide, size, bulk=True, **how)
        assert found == superword_train_ref(narrow, wide, size, **how)
