"""Vocabularies of real files made smaller: what stays the same, what is saved, and what other libraries read of it."""

import random
import warnings
from dataclasses import replace

import pytest
from seeds import fresh

from subword_nb.bpe.model import RankRules
from subword_nb.corpus.documents import default_corpus
from subword_nb.formats.export import translate
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.train.prune import lasting_pieces, parents_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FILES = {  # file → formats that it can be saved in after surgery
    "gpt2/tokenizer.json": ["x.json"],
    "tiktoken/r50k_base.tiktoken": ["x.json", "x.tiktoken"],
    "llama-2/tokenizer.model": ["x.json", "x.model"],
    "phi-3-mini/tokenizer.json": ["x.json"],
    "clip/tokenizer.json": ["x.json"],
    "t5-small/spiece.model": ["x.json", "x.model"],
    "t5-small/tokenizer.json": ["x.json"],
    "bert-base-uncased/vocab.txt": ["x.json", "x.txt"],
    "wordlevel-vulrepair/wordlevel.json": ["x.json"],
}
EXACT = [file for file in FILES if file.split("/")[0] in ("gpt2", "tiktoken", "phi-3-mini", "clip")]


@pytest.fixture(scope="module")
def text(shared_file):
    return shared_file("corpus/english_small.txt").read_text(encoding="utf-8")[:60_000]


def plain(tok, text):
    return tok.encode_array(text, add_special_tokens=False, allowed_special=()).tolist()


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_each_kind_is_pruned_and_saved(shared_file, tmp_path, text, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    new = tok.prune(tok.vocab_size // 2, text[:30_000].split("\n"))
    assert new.vocab_size == tok.vocab_size // 2
    assert sorted({*new.piece2id.values()}) == [*range(new.n_vocab)]
    assert lasting_pieces(tok) <= {*new.piece2id}
    old_ids, ids = plain(tok, text), plain(new, text)
    assert len(ids) >= len(old_ids) or new.model.unk_piece is not None
    for name in FILES[file]:
        new.save(tmp_path / name)
        options = {"pattern": "r50k"} if name.endswith("tiktoken") else {}
        assert plain(Tokenizer.load(tmp_path / name, **options), text) == ids, name


@pytest.mark.parametrize("file", FILES)
def test_texts_without_removed_pieces_keep_their_segmentation(shared_file, text, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    lines = text.split("\n")
    new = tok.shrink_to(lines[: len(lines) // 2])
    assert new.vocab_size < tok.vocab_size
    for line in lines[: len(lines) // 2]:
        old, found = plain(tok, line), plain(new, line)
        assert [new.id2piece[i] for i in found] == [tok.id2piece[i] for i in old]


@pytest.mark.parametrize("file", EXACT)
def test_exact_pruning_splits_what_it_removes(shared_file, text, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    share = fresh("share", file).choice((0.9, 0.5))
    new = tok.prune(int(tok.vocab_size * share), text[:30_000].split("\n"), exact=True)
    parents, kept = parents_of(tok.model), new.piece2id

    def split(piece):
        if piece in kept:
            return [kept[piece]]
        return [id for parent in parents[piece] for id in split(parent)]

    wanted = [id for old in plain(tok, text) for id in split(tok.id2piece[old])]
    assert plain(new, text) == wanted
    assert tok.id_map(new).convert(plain(tok, text)).tolist() == wanted


@pytest.mark.parametrize(
    "file", ["gpt2/tokenizer.json", "bert-base-uncased/vocab.txt", "clip/tokenizer.json"]
)
def test_ids_with_gaps_are_read_by_the_other_library(hf, shared_file, tmp_path, text, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    new = tok.prune(tok.vocab_size * 3 // 4, text.split("\n"), renumber=False)
    assert all(tok.piece2id[piece] == id for piece, id in new.piece2id.items())
    new.save(tmp_path / "x.json")
    assert plain(Tokenizer.load(tmp_path / "x.json"), text) == plain(new, text)
    peer = hf.Tokenizer.from_file(str(tmp_path / "x.json"))
    assert peer.encode(text, add_special_tokens=False).ids == plain(new, text)


@pytest.mark.parametrize("file", ["llama-2/tokenizer.model", "t5-small/spiece.model"])
def test_a_sentencepiece_model_stays_one(spm, shared_file, tmp_path, text, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    new = tok.prune(tok.vocab_size // 2, text.split("\n"))
    assert type(new.model) is type(tok.model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new.save(tmp_path / "x.model")  # without a note: nothing is lost
    peer = spm.SentencePieceProcessor(model_file=str(tmp_path / "x.model"))
    for line in text.split("\n")[:300]:
        assert peer.encode(line) == plain(new, line)


def test_what_is_built_on_a_removed_piece_goes_too(shared_file, text):
    tok = Tokenizer.load(shared_file("vocab/gpt2/tokenizer.json"))
    new = tok.remove(["Ġthe"])
    assert "Ġthere" not in new.piece2id or "Ġthe" not in parents_of(tok.model)["Ġthere"]
    assert "Ġthe" not in {new.id2piece[i] for i in plain(new, text)}
    assert new.decode(plain(new, text)) == text
    assert not translate(new.parts, "tokenizer.json").notes


def test_ranks_that_are_not_ids_decide_what_is_pruned():
    "The same merges under other ids lose the same pieces, and give the same tokens."
    tok = Tokenizer.train(default_corpus()[:10], vocab_size=400)
    ranks, order = dict(tok.piece2id), random.Random(24).sample(range(400), 400)
    ids = {piece: order[id] for piece, id in ranks.items()}
    by_ids = Tokenizer(replace(tok.model, merges=RankRules(ranks)), pre_tokenizer=tok.pre_tokenizer)
    other = Tokenizer(
        replace(tok.model, piece2id=ids, merges=RankRules(ranks)), pre_tokenizer=tok.pre_tokenizer
    )
    text = default_corpus()[3][:3000]
    assert other.tokenize(text) == by_ids.tokenize(text)
    for n in (390, 350, 300):
        small, wanted = other.prune(n), by_ids.prune(n)
        assert {*small.piece2id} == {*wanted.piece2id}
        assert small.tokenize(text) == wanted.tokenize(text)
