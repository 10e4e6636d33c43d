"""Maps between vocabularies: of real files, of tensors, and the same as a definition by hand."""

import numpy as np
import pytest

from subword_nb.core.ragged import ragged
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.train.id_map import IdMap, id_map, piece_ids

FILES = [
    "gpt2/tokenizer.json",
    pytest.param("tiktoken/o200k_base.tiktoken", marks=pytest.mark.slow),
    pytest.param("llama-2/tokenizer.model", marks=pytest.mark.slow),
    "t5-small/tokenizer.json",
    "bert-base-uncased/vocab.txt",
    "wordlevel-vulrepair/wordlevel.json",
    pytest.param("clip/tokenizer.json", marks=pytest.mark.slow),
]


def rows_by_hand(found, matrix):
    "The new matrix, row by row: copied, or the mean of the old rows, or that of all rows in use."
    in_use = [i for i, row in enumerate(found.forward) if len(row)]
    return np.array([matrix[row if len(row) else in_use].mean(axis=0) for row in found.backward])


@pytest.mark.parametrize("file", FILES)
def test_a_map_of_a_file_to_itself_changes_nothing(shared_file, file):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    found = tok.id_map(tok)
    used = sorted({*tok.piece2id.values()})
    assert found.convert(used).tolist() == used
    assert found.overlap.tolist() == [[i, i] for i in used]
    assert (found.n_old, found.n_new) == (tok.n_vocab, tok.n_vocab)


def test_a_piece_is_spelled_where_it_is(shared_file):
    bert = Tokenizer.load(shared_file("vocab/bert-base-uncased/vocab.txt"))
    names = bert.id2piece
    assert [names[i] for i in piece_ids(bert, "##subwords")] == ["##su", "##b", "##words"]
    clip = Tokenizer.load(shared_file("vocab/clip/tokenizer.json"))
    pieces = [clip.id2piece[i] for i in piece_ids(clip, "untokenizable</w>")]
    assert "".join(pieces) == "untokenizable</w>"
    assert "".join(clip.id2piece[i] for i in piece_ids(clip, "untokenizab")) == "untokenizab"


def test_rows_are_those_of_the_definition():
    rng = np.random.default_rng(17)
    for _ in range(300):
        n, m = rng.integers(1, 9, 2)
        forward = [rng.integers(0, m, rng.integers(0, 3)).tolist() for _ in range(n)]
        forward[0] = forward[0] or [0]
        backward = [rng.integers(0, n, rng.integers(0, 4)).tolist() for _ in range(m)]
        found, matrix = IdMap(ragged(forward), ragged(backward)), rng.normal(size=(n + 2, 3))
        np.testing.assert_allclose(
            found.rows(matrix)[[len(b) != 1 for b in backward]],
            rows_by_hand(found, matrix)[[len(b) != 1 for b in backward]],
        )
        np.testing.assert_allclose(found.rows(matrix), rows_by_hand(found, matrix))
        shared = {(b[0], j) for j, b in enumerate(backward) if len(b) == 1 and forward[b[0]] == [j]}
        assert {*map(tuple, found.overlap.tolist())} == shared


def test_maps_compose():
    rng = np.random.default_rng(18)

    def random_rows(n, m):
        return [rng.integers(0, m, rng.integers(0, 3)).tolist() for _ in range(n)]

    for _ in range(300):
        a, b, c = rng.integers(1, 7, 3)
        first = IdMap(ragged(random_rows(a, b)), ragged(random_rows(b, a)))
        second = IdMap(ragged(random_rows(b, c)), ragged(random_rows(c, b)))
        both, ids = first.then(second), rng.integers(0, a, 9)
        assert both.convert(ids).tolist() == second.convert(first.convert(ids)).tolist()
        for j in range(c):
            assert both.backward[j].tolist() == [i for k in second.backward[j] for i in first.backward[k]]


def test_half_precision_is_summed_in_more():
    found = IdMap(ragged([[0]] * 2049), ragged([list(range(2049))]))
    matrix = np.ones((2049, 1), np.float16)
    new = found.rows(matrix)
    assert new.dtype == np.float16 and new[0, 0] == 1


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
def test_tensors_keep_their_type(kind):
    torch = pytest.importorskip("torch", reason="tensors need torch")
    found = IdMap(ragged([[0], [1], [0, 1]]), ragged([[0], [1], [0, 1], []]))
    matrix = torch.arange(6, dtype=getattr(torch, kind)).reshape(3, 2).requires_grad_()
    new = found.rows(matrix)
    assert new.dtype == matrix.dtype and not new.requires_grad
    assert new.tolist() == [[0, 1], [2, 3], [1, 2], [2, 3]]


def test_special_tokens_begin_with_the_mean():
    tok = Tokenizer.train({"ab": 3, "ba": 2}, algorithm="char_bpe", vocab_size=4)
    new = tok.__copy__()
    new.add_tokens(["<a>"], special=True)
    new.add_tokens(["ab ba"])
    found = id_map(tok, new)
    assert len(found.backward[new.piece2id["<a>"]]) == 0
    assert found.backward[new.piece2id["ab ba"]].tolist() == tok.encode("ab ba")
    matrix = np.arange(8.0).reshape(4, 2)
    assert found.rows(matrix)[new.piece2id["<a>"]].tolist() == matrix.mean(0).tolist()


def test_what_has_no_ids_is_named():
    tok = Tokenizer.train(["hug pug hugs bun"] * 3, vocab_size=262)
    with pytest.raises(TypeError, match="new must be a tokenizer, got str"):
        tok.id_map("x.json")
    with pytest.raises(TypeError, match="ids must be whole numbers, got str"):
        tok.id_map(tok).convert("hug")
    for call, words in (
        (lambda: tok.remove(None), "pieces must be a list of pieces, got NoneType"),
        (lambda: tok.remove([300]), "pieces must be text, got 300"),
        (lambda: tok.extend(["hug"], "300"), "vocab_size must be an int, .* got '300'"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    with pytest.raises(ValueError, match="coverage must be a share from 0 to 1, got '1'"):
        tok.shrink_to(["hug"], coverage="1")
