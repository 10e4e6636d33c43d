"MinGram as a tokenizer: trained, saved, read by Hugging Face's library."

import random

import pytest
from characters import same_ids, strange_texts
from seeds import TEXTS, fresh

from subword_nb import Tokenizer, models
from subword_nb.corpus.segmentation import SegmentationPlan
from subword_nb.unigram.byte_spans import ByteSpanEncoder

pytestmark = pytest.mark.filterwarnings("ignore:training ended")
TEXT = "hug pug pun bun hugs the of naïve 東京 don't 🤗 1984 …"
WORDS = TEXT.split(" ")


@pytest.fixture(scope="module")
def corpus():
    rng = random.Random(4)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(30))) for _ in range(200)]


@pytest.fixture(scope="module")
def trained(corpus):
    return Tokenizer.train(corpus, algorithm="mingram", vocab_size=285, special_tokens=["<s>"])


def test_segmentations_have_the_fewest_tokens(trained, corpus):
    few = Tokenizer(**trained.parts._asdict())
    few.model = models.with_inference(trained.model, "fewest_tokens")
    for text in [*corpus, "Ünseen\x00 text"]:
        ids = trained.encode(text)
        assert len(ids) == len(few.encode(text))
        assert trained.decode(ids) == text


def test_kernels_give_the_ids_of_the_model(trained):
    encoder = trained.model.span_encoder(SegmentationPlan(None, trained.pre_tokenizer).byte_spans)
    assert isinstance(encoder, ByteSpanEncoder)
    same_ids(trained, strange_texts(fresh(), WORDS, TEXTS))


def test_threads_do_not_matter(trained, corpus):
    one = Tokenizer.train(corpus, algorithm="mingram", vocab_size=285, special_tokens=["<s>"], threads=1)
    assert one.model == trained.model


@pytest.mark.peers
def test_hugging_faces_library_gives_the_same_ids(trained, corpus, hf, tmp_path):
    trained.save(tmp_path / "tokenizer.json")
    theirs = hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == trained
    for text in corpus:
        assert theirs.encode(text).ids == trained.encode(text) == again.encode(text)
