"MinGram as a tokenizer: trained, saved, read by Hugging Face's library."

import random
from dataclasses import replace

import pytest
from characters import same_ids, strange_texts
from seeds import TEXTS, fresh

from subword_nb import Tokenizer, models
from subword_nb.corpus.segmentation import SegmentationPlan
from subword_nb.insight.explain_training import explain_training
from subword_nb.train.trace import load_trace
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


@pytest.mark.parametrize("name", ["tok.tiktoken", "tok.model", "tok.gguf", "merges.txt"])
def test_formats_that_cannot_hold_it_refuse(trained, tmp_path, name):
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        trained.save(tmp_path / name)
    assert not (tmp_path / name).exists()


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


def test_a_trace_explains_what_was_selected_and_what_fell(corpus, tmp_path):
    options = dict(algorithm="mingram", vocab_size=270, special_tokens=["<s>"], surplus=3.0)
    path = tmp_path / "trace.npz"
    tok = Tokenizer.train(corpus, **options, trace=path)
    assert tok.model == Tokenizer.train(corpus, **options).model
    trace = tok.training.trace
    assert load_trace(path) == trace
    seeds, uses = trace.facts["seeds"], trace.arrays["uses"]
    explained = {p: explain_training(tok, p, trace=path) for p in seeds if len(p) > 1}
    for piece, found in explained.items():
        f = found.to_dict()
        assert found.kind == "used" and str(found) == f["summary"] and found._repr_html_()
        assert f["uses"] == uses[:, seeds.index(piece)].tolist()
        selected = f["rank"] is not None and f["rank"] <= f["selected"]
        assert selected == (piece in tok.piece2id) == ("It was selected" in f["summary"])
        assert (f["rank"] is None) == (0 in f["uses"]) == ("no best segmentation" in f["summary"])
    assert {"It was dropped in pass", "It was selected", "It was not selected"} <= {
        part
        for found in explained.values()
        for part in ("It was dropped in pass", "It was selected", "It was not selected")
        if part in found.summary
    }
    assert explain_training(tok, "a").kind == "alphabet"
    assert explain_training(tok, "<s>").kind == "special"
    assert "none of the" in explain_training(tok, "ïv".encode()).summary
    with pytest.raises(KeyError, match="occurs in no pretoken"):
        explain_training(tok, "xyzzy")


def test_a_damaged_trace_is_refused(corpus, tmp_path):
    trace = Tokenizer.train(corpus, algorithm="mingram", vocab_size=285, trace=True).training.trace
    broken = replace(trace, arrays={"uses": trace.arrays["uses"][:, 1:]})
    broken.save(tmp_path / "trace.npz")
    with pytest.raises(ValueError, match="must fit together"):
        load_trace(tmp_path / "trace.npz")
