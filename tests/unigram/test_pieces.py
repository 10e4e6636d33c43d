"Models of pieces in a tokenizer: texts, files, explanations."

import random

import pytest
from characters import same_ids, strange_texts
from seeds import TEXTS, fresh

from subword_nb import Tokenizer, models
from subword_nb.corpus.segmentation import SegmentationPlan
from subword_nb.insight.explain import explain
from subword_nb.unigram.byte_spans import ByteSpanEncoder
from subword_nb.unigram.inference import fewest_tokens
from subword_nb.unigram.pieces import INFERENCES, Pieces, with_inference

TEXT = "hug pug pun bun hugs the of naïve 東京 don't 🤗 1984 …"
WORDS = TEXT.split(" ")


def texts(rng, n):
    return [" ".join(rng.choices(WORDS, k=rng.randrange(12))) for _ in range(n)]


@pytest.fixture(scope="module")
def trained():
    return Tokenizer.train(texts(random.Random(3), 100), vocab_size=300, special_tokens=["<s>"])


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_tokenizer_with_another_rule(trained, inference, tmp_path):
    tok = Tokenizer(**trained.parts._asdict())
    tok.model = with_inference(tok.model, inference)
    with pytest.warns(UserWarning, match="only this library reads the model"):
        tok.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == tok
    some = texts(fresh(inference), 50)
    for text in some:
        ids = tok.encode(text)
        wanted = [i for p, _, _ in tok.pre_tokenizer.split(text) for i in tok.model.encode(p)]
        assert ids == wanted == again.encode(text) == tok.encode_array(text).tolist()
        assert tok.decode(ids) == text
        assert tok.explain(text).to_dict()["tokens"] is not None
    assert tok.encode("<s>" + some[0])[0] == trained.piece2id["<s>"]
    assert tok.encode("<s>", allowed_special=()) != [trained.piece2id["<s>"]]
    assert tok.decode(tok.encode("<s>", allowed_special=())) == "<s>"


@pytest.mark.parametrize("inference", INFERENCES)
def test_kernels_give_the_ids_of_the_model(trained, inference):
    tok = Tokenizer(**trained.parts._asdict())
    tok.model = with_inference(tok.model, inference)
    encoder = tok.model.span_encoder(SegmentationPlan(None, tok.pre_tokenizer).byte_spans)
    assert isinstance(encoder, ByteSpanEncoder)
    same_ids(tok, strange_texts(fresh(), WORDS, TEXTS))


def test_fewest_tokens_is_never_more(trained):
    few = with_inference(trained.model, "fewest_tokens")
    for text in texts(fresh(), 100):
        for p, _, _ in trained.pre_tokenizer.split(text):
            assert len(few.encode(p)) <= len(trained.model.encode(p))


@pytest.mark.peers
def test_other_readers_refuse_the_file(trained, hf, tmp_path):
    tok = Tokenizer(**trained.parts._asdict())
    tok.model = with_inference(tok.model, "fewest_tokens")
    with pytest.warns(UserWarning, match="other readers refuse the file"):
        tok.save(tmp_path / "tokenizer.json")
    with pytest.raises(Exception, match=r"(?i)model|variant|data did not match"):
        hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))


def test_the_drawing_shows_the_steps(trained):
    tok = Tokenizer(**trained.parts._asdict())
    tok.model = with_inference(tok.model, "fewest_tokens")
    assert "or more, the last of them" in explain(tok, "hugs")._repr_html_()


@pytest.mark.slow
def test_long_words_take_linear_time():
    pieces = {"a" * k for k in range(1, 20)}
    assert len(fewest_tokens("a" * 100_000, pieces, 19)) == -(-100_000 // 19)


def test_models_has_the_names():
    assert models.Pieces is Pieces
    assert models.with_inference is with_inference
