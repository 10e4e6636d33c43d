"BoundlessBPE in a tokenizer: texts, files, explanations; kernels and dictionaries on real text."

import pytest
from characters import same_ids, strange_texts
from seeds import TEXTS, fresh

from subword_nb import Tokenizer, models
from subword_nb.bpe.boundless import (
    BOUNDLESS_PATTERN,
    BoundlessBPE,
    boundless_encode_ref,
    boundless_train,
    boundless_train_ref,
    run_pretokenizer,
    word_runs,
)
from subword_nb.bpe.span_encoder import PartsSpanEncoder
from subword_nb.bpe.trainer import bpe_train
from subword_nb.core.unicode import from_visible
from subword_nb.corpus.counts import count_pretokens
from subword_nb.corpus.segmentation import SegmentationPlan
from subword_nb.insight.explain import explain

BYTES = [bytes([b]) for b in range(256)]
TEXT = "the hug of a pug, in 1984… der Hügel; 東京都 and don't “stop”!  \n\n ... <s> हिन्दी"
WORDS = TEXT.split(" ")


def texts(rng, n):
    return [
        rng.choice([" ", " ", "  ", "\n"]).join(rng.choices(WORDS, k=rng.randrange(1, 30))) for _ in range(n)
    ]


@pytest.fixture(scope="module")
def trained():
    corpus = ["the hug of a pug and the hug of the pug"] * 30 + texts(fresh("corpus"), 100)
    return Tokenizer.train(corpus, vocab_size=420, superwords="boundless", special_tokens=["<s>"])


def test_superwords_are_whole_words(trained):
    assert trained.model.superword_merges
    for a, b in trained.model.superword_merges:
        assert len(trained.model.words(a + b)) > 1
        for word in trained.model.words(a + b):
            assert trained.model.encode(word) == [trained.piece2id[word]]


def test_texts_and_files(trained, tmp_path):
    with pytest.warns(UserWarning, match="only this library reads the model"):
        trained.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == trained
    for text in texts(fresh(), 20):
        ids = trained.encode(text, allowed_special=())
        wanted = [i for p, _, _ in run_pretokenizer().split(text) for i in trained.model.encode(p)]
        assert ids == wanted == again.encode(text, allowed_special=())
        assert ids == trained.encode_array(text, allowed_special=()).tolist()
        assert trained.decode(ids) == text
        assert len(explain(trained, text).to_dict()["tokens"]) == len(trained.encode(text))


def test_tokens_are_those_of_the_reference(trained):
    merges = [(from_visible(a), from_visible(b)) for a, b in trained.model.merges]
    joins = [(from_visible(a), from_visible(b)) for a, b in trained.model.superword_merges]
    for text in texts(fresh(), 20):
        for p, _, _ in run_pretokenizer().split(text):
            words = [from_visible(w) for w in trained.model.words(p)]
            names = [from_visible(t.piece) for t in trained.model.tokens(p)]
            assert names == boundless_encode_ref(words, merges, joins)


def test_a_long_text_has_the_ids_of_its_runs(trained):
    text = "\n".join(texts(fresh(), 300))
    wanted = [i for p, _, _ in trained.pre_tokenizer.split(text) for i in trained.model.encode(p)]
    assert trained.encode_array(text, allowed_special=()).tolist() == wanted


def test_kernels_give_the_ids_of_the_model(trained):
    encoder = trained.model.span_encoder(SegmentationPlan(None, trained.pre_tokenizer).byte_spans)
    assert isinstance(encoder, PartsSpanEncoder)
    same_ids(trained, strange_texts(fresh(), WORDS, TEXTS))


@pytest.mark.peers
def test_other_readers_refuse_the_file(trained, hf, tmp_path):
    with pytest.warns(UserWarning, match="other readers refuse the file"):
        trained.save(tmp_path / "tokenizer.json")
    with pytest.raises(Exception, match=r"(?i)model|variant|data did not match"):
        hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))


def test_the_drawing_shows_what_is_joined(trained):
    assert "joins" in explain(trained, "the hug of the pug")._repr_html_()


def test_models_has_the_name():
    assert models.BoundlessBPE is BoundlessBPE


def counted(text):
    texts = text.splitlines(keepends=True)
    narrow = {p.encode(): n for p, n in count_pretokens(texts, "gpt2").items()}
    wide = {p.encode(): n for p, n in count_pretokens(texts, BOUNDLESS_PATTERN).items()}
    return narrow, word_runs(wide)


@pytest.mark.slow
def test_kernels_and_dictionaries_agree_on_real_text(shared_file):
    narrow, runs = counted(shared_file("corpus/tinyshakespeare.txt").read_text(encoding="utf-8"))
    found = [boundless_train(narrow, runs, 3000, initial_alphabet=BYTES, bulk=bulk) for bulk in (True, False)]
    assert found[0] == found[1]
    alone = bpe_train(narrow, 3000, initial_alphabet=BYTES)
    assert found[0].merges == alone.merges[: len(found[0].merges)]
    assert found[0].superword_merges


@pytest.mark.slow
def test_the_reference_agrees_on_real_text(shared_file):
    narrow, runs = counted(shared_file("corpus/botchan.txt").read_text(encoding="utf-8")[:8000])
    found = boundless_train(narrow, runs, 320)
    assert found == boundless_train_ref(narrow, runs, 320)
    assert found.superword_merges
