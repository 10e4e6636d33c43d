"""What the home page says of this library and of others, and that it is short; each line of its table is tried."""

import configparser
import importlib
import importlib.metadata
import inspect
import io
import json
import re
from pathlib import Path

import pytest

from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS
from subword_nb.formats.detect import KINDS
from subword_nb.formats.export import translate

pytestmark = pytest.mark.filterwarnings("ignore:training ended with")
ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LIBRARIES = ["tiktoken", "tokenizers", "SentencePiece", "gigatoken"]


def table() -> dict[str, dict[str, str]]:
    "The table of libraries: line → library → what it says."
    lines = README.split("## Compared with other libraries")[1].split("##")[0].strip().splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head = cells[0][1:]
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in cells[2:]}


def test_the_home_page_is_short():
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize(
    "name, key",
    [
        ("speed", ("gpt2", "english", "documents", 1)),
        ("train", ("bpe 32000", "english", "train", 1)),
    ],
)
def test_the_home_page_gives_the_figures_of_the_last_run(name, key):
    run = json.loads((ROOT / "nbs" / "bench" / f"{name}.json").read_text(encoding="utf-8"))
    of = {
        r["library"]: r
        for r in run["records"]
        if (r["vocabulary"], r["text"], r["case"], r["threads"]) == key
    }
    ours = of["subword_nb"]["cpu"]["first"]["best"]
    figure = f"{of['subword_nb']['bytes'] / ours / 1e6:.0f}" if name == "speed" else f"{ours:.2f}"
    line = next(
        line
        for line in README.splitlines()
        if line.startswith("GPT-2, English, 4 KB" if name == "speed" else "train BPE")
    )
    assert figure in re.findall(r"[\d.]+", line)


def test_what_it_says_of_this_library(tmp_path):
    said = {line: of["subword_nb"] for line, of in table().items()}
    assert said["models"] == "BPE, WordPiece, Unigram, whole words" and said["training"] == "all four"
    for algorithm in ("bpe", "wordpiece", "unigram", "wordlevel"):
        Tokenizer.train(COURSE_CORPUS, algorithm=algorithm, vocab_size=300, special_tokens=["[UNK]"])
    tok = Tokenizer.train(COURSE_CORPUS, vocab_size=300)
    assert tok.align("hug").offsets[0][0] == 0 and tok.explain("hug") is not None and tok.stream() is not None
    words = Tokenizer.train(COURSE_CORPUS, algorithm="wordpiece", vocab_size=300)
    unigram = Tokenizer.train(COURSE_CORPUS, algorithm="unigram", vocab_size=80)
    bare = Tokenizer.train(
        COURSE_CORPUS,
        algorithm="char_bpe",
        vocab_size=80,
        end_of_word_suffix="</w>",
        pre_tokenizer="whitespace_split",
    )
    for kind in KINDS:
        source = {"vocab.txt": words, "sentencepiece": unigram, "nmt": bare}.get(kind, tok)
        assert Tokenizer(**translate(source.parts, kind).parts._asdict()).vocab_size > 0
    settings = configparser.ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    needs = re.findall(r"^[a-z]+|(?<= )[a-z]+", settings["DEFAULT"]["requirements"])
    assert said["dependencies"].split(", ") == needs


@pytest.mark.peers
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_other_libraries_install(library):
    pytest.importorskip(library.lower())
    asked = importlib.metadata.requires(library.lower()) or []
    needs = [re.match(r"[\w-]+", r)[0] for r in asked if "extra" not in r]
    said = table()["dependencies"][library]
    assert ([] if said == "–" else said.split(", ")) == needs


@pytest.mark.peers
def test_what_it_says_of_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    said = {line: of["tiktoken"] for line, of in table().items()}
    methods = {name for name in dir(tiktoken.Encoding) if not name.startswith("_")}
    assert said["models"] == "BPE" and said["reads"] == "`.tiktoken`"
    assert said["training"] == said["writes"] == "–"
    assert not methods & {"train", "save", "sample", "stream"}
    assert said["offsets of tokens"] == "yes" and "decode_with_offsets" in methods
    shows = importlib.import_module("tiktoken._educational").SimpleBytePairEncoding.encode
    assert said["explains a segmentation"] == "an educational module"
    assert "visualise" in inspect.signature(shows).parameters


@pytest.mark.peers
def test_what_it_says_of_tokenizers():
    tokenizers = pytest.importorskip("tokenizers")
    said = {line: of["tokenizers"] for line, of in table().items()}
    models = {"BPE": "BPE", "WordPiece": "WordPiece", "Unigram": "Unigram", "WordLevel": "whole words"}
    assert said["models"].split(", ") == [models[m] for m in models if hasattr(tokenizers.models, m)]
    assert all(hasattr(tokenizers.trainers, f"{m.replace('BPE', 'Bpe')}Trainer") for m in models)
    assert {"dropout"} <= set(dir(tokenizers.models.BPE)) and {"alpha"} <= set(dir(tokenizers.models.Unigram))
    assert said["random segmentations"] == "dropout, sampling"
    assert said["streaming decoder"] == "yes" and hasattr(tokenizers.decoders, "DecodeStream")
    assert not [name for name in dir(tokenizers.Tokenizer) if "explain" in name or "nbest" in name]


@pytest.mark.peers
def test_what_it_says_of_sentencepiece(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    said = {line: of["SentencePiece"] for line, of in table().items()}
    kinds = {"bpe": "BPE", "unigram": "Unigram", "char": "characters", "word": "whole words"}
    assert said["models"].split(", ") == list(kinds.values()) and said["training"] == "all four"
    models = {}
    for kind in kinds:
        models[kind] = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(COURSE_CORPUS * 20),
            model_writer=models[kind],
            model_type=kind,
            vocab_size=60,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    bpe, unigram = (
        sentencepiece.SentencePieceProcessor(model_proto=models[kind].getvalue())
        for kind in ("bpe", "unigram")
    )
    assert said["random segmentations"] == "dropout, sampling, n-best"
    for model in (bpe, unigram):
        drawn = {
            tuple(model.encode("the tokens", enable_sampling=True, alpha=0.5, nbest_size=-1))
            for _ in range(50)
        }
        assert len(drawn) > 1
    assert len(unigram.nbest_encode("the tokens", nbest_size=3)) == 3
    assert said["offsets of tokens"] == "yes" and hasattr(unigram, "encode_as_offset_mapping")
    assert not [name for name in dir(unigram) if "explain" in name or "stream" in name]


@pytest.mark.peers
def test_what_it_says_of_gigatoken(tmp_path):
    gigatoken = pytest.importorskip("gigatoken")
    said = {line: of["gigatoken"] for line, of in table().items()}
    assert said["models"] == said["training"] == "BPE" and hasattr(gigatoken, "train_bpe")
    for algorithm in ("bpe", "wordpiece", "unigram"):
        path = tmp_path / f"{algorithm}.json"
        Tokenizer.train(COURSE_CORPUS, algorithm=algorithm, vocab_size=300).save(path)
        if algorithm == "bpe":
            assert len(gigatoken.Tokenizer(str(path)).encode("tokens")) > 0
        else:
            with pytest.raises(RuntimeError, match="[Uu]nsupported"):
                gigatoken.Tokenizer(str(path))
    methods = {name for name in dir(gigatoken.Tokenizer) if not name.startswith("_")}
    assert {"from_json", "from_tiktoken", "from_sentencepiece"} <= methods
    assert not [m for m in methods if re.search("save|offset|sample|nbest|stream|explain", m)]
    lines = ("writes", "offsets of tokens", "random segmentations", "streaming decoder")
    assert [said[line] for line in lines] == ["–"] * 4
