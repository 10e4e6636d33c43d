"""A tokenizer of a file of any kind can be audited, measured, healed, constrained, changed and saved again."""

import numpy as np
import pytest

from subword_nb.corpus.documents import default_corpus
from subword_nb.insight.canonical import canonicalize, is_canonical, piece_table
from subword_nb.insight.constraint import Constraint
from subword_nb.tokenizer.tokenizer import Tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
LINES = [line for doc in default_corpus()[:4] for line in doc.split("\n") if line][:120]
GENERATED = {  # kind of file → (name, options of `train`)
    "tokenizer.json": ("x.json", {"special_tokens": ["<s>"]}),
    "tokenizer.json of characters": ("x.json", {"algorithm": "char_bpe"}),
    "tokenizer.json of whole words": ("x.json", {"algorithm": "wordlevel"}),
    "tokenizer.json of WordPiece": ("x.json", {"algorithm": "wordpiece"}),
    "tokenizer.json of Unigram": ("x.json", {"algorithm": "unigram"}),
    "sentencepiece": ("x.model", {"algorithm": "unigram", "pre_tokenizer": "metaspace"}),
    "tiktoken": ("x.tiktoken", {"pre_tokenizer": "gpt2"}),
    "gpt2": ("folder", {"pre_tokenizer": "gpt2"}),
    "vocab.txt": ("x.txt", {"algorithm": "wordpiece"}),
    "gguf": ("x.gguf", {"pre_tokenizer": "gpt2"}),
    "nmt": ("x.codes", {"algorithm": "char_bpe", "end_of_word_suffix": "</w>"}),
}
FILES = ["mistral-v1/tokenizer.model.v1", "sentencepiece/test_model.model"]


def plain(tok, text):
    return tok.encode(text, add_special_tokens=False, allowed_special=())


def inspect_all(tok):
    "Every question about a vocabulary has an answer."
    tok.audit(LINES[:20])
    found = tok.measure(LINES[:20])
    assert found.tokens == sum(len(plain(tok, line)) for line in LINES[:20])
    for line in LINES[:5]:
        ids = plain(tok, line)
        if tok.piece2id.get(tok.model.unk_piece) not in ids:
            assert is_canonical(tok, canonicalize(tok, ids))
        assert 0 <= tok.unstable(line) <= len(ids) + 1
        try:
            healed = tok.heal(line)
        except ValueError as error:  # of an unknown character, or of spaces that are not in the ids
            assert "write it in characters of the vocabulary" in str(error)
        else:
            assert healed.mask().any() or not healed.prefix or tok.model.unk_piece is not None
    assert Constraint(piece_table(tok), "[A-Za-z ]+").mask(0).any()


def changes(tok):
    "Name of an operation → its result; an error must say what else to do."
    rare = max(tok.piece2id, key=lambda piece: (piece.isalpha() and len(piece), piece))
    n = tok.vocab_size
    yield "remove", lambda: tok.remove([rare])
    yield "shrink", lambda: tok.shrink_to(LINES)
    yield "prune", lambda: tok.prune(n - n // 20, LINES)
    yield "prune, ids stay", lambda: tok.prune(n - n // 20, LINES, renumber=False)
    yield "prune exactly", lambda: tok.prune(n - n // 20, LINES, exact=True)
    yield "extend", lambda: tok.extend(LINES, n + 5)
    yield "merge", lambda: tok.merge(tok.remove([rare]))


WAYS_OUT = ("leave it out", "instead", "train_new", "only merges can be pruned", "keep fewer pieces")


def change_all(tok, folder):
    "Every operation ends in a tokenizer with a map of ids that can be saved, or in an error with a way out."
    done = []
    for name, change in changes(tok):
        try:
            new = change()
        except ValueError as error:
            assert " must be " in str(error) or " must " in str(error), (name, str(error))
            assert any(way in str(error) for way in WAYS_OUT), (name, str(error))
            continue
        found = tok.id_map(new)
        assert found.rows(np.ones((tok.n_vocab, 2), np.float32)).shape == (new.n_vocab, 2)
        found.convert(plain(tok, LINES[0]))
        again = Tokenizer.load(new.save(folder / f"{len(done)}.json"))
        for line in LINES[:20]:
            assert plain(again, line) == plain(new, line), name
        done.append(name)
    assert {"remove", "shrink"} <= {*done}, done
    return done


@pytest.mark.parametrize("kind", GENERATED)
def test_a_generated_file_of_every_kind(tmp_path, kind):
    name, options = GENERATED[kind]
    first = Tokenizer.train(LINES, vocab_size=400, **options)
    path = first.save(tmp_path / name, kind="gpt2" if kind == "gpt2" else None)
    tok = Tokenizer.load(path, **({"pattern": "gpt2"} if kind == "tiktoken" else {}))
    if kind != "nmt":  # codes have no ids, and another spelling
        assert plain(tok, LINES[0]) == plain(first, LINES[0])
    inspect_all(tok)
    change_all(tok, tmp_path)


@pytest.mark.parametrize("file", FILES)
def test_published_files(shared_file, tmp_path, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    inspect_all(tok)
    change_all(tok, tmp_path)
