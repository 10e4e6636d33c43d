"""A batch of ids is a sequence of documents, for Python, NumPy, Arrow, PyTorch and datasets."""

import copy
import pickle
import random
import sys
from collections.abc import Sequence as AbstractSequence

import numpy as np
import pytest

from subword_nb.bpe.model import BPE
from subword_nb.core.ragged import Ragged, ragged
from subword_nb.pipeline.encoder import Engine


def some_rows(rng):
    "Lists of ids, some of them empty."
    return [[rng.randrange(9) for _ in range(rng.randrange(4))] for _ in range(rng.randrange(6))]


def lists(rows):
    "Rows as lists, to compare."
    return [row.tolist() for row in rows]


def test_a_batch_of_ids_is_a_sequence_of_documents():
    "Length, iteration, indices and slices of either sign, membership, index and count are those of the list of lists."
    rng = random.Random(19)
    for _ in range(300):
        rows = some_rows(rng)
        batch, n = ragged(rows), len(rows)
        assert isinstance(batch, Ragged) and isinstance(batch, AbstractSequence)
        assert (len(batch), bool(batch), batch.tolist(), lists(batch), lists(reversed(batch))) == (
            n,
            bool(rows),
            rows,
            rows,
            rows[::-1],
        )
        for k in range(-n, n):
            row = batch[k]
            assert (
                row.tolist() == rows[k]
                and row.dtype == np.uint32
                and (not rows[k] or np.shares_memory(row, batch.ids))
            )
        for k in (n, -n - 1, 10**30):
            with pytest.raises(IndexError, match=f"document {k} of {n}"):
                batch[k]
        for _ in range(8):
            cut = slice(*(rng.choice((None, *range(-7, 8))) for _ in "ab"), rng.choice((None, 1, 2, -1, -2)))
            part = batch[cut]
            assert isinstance(part, Ragged) and part.tolist() == rows[cut]
            assert part.bounds.dtype == np.int64 and (part.bounds[0], part.bounds[-1], len(part.bounds)) == (
                0,
                len(part.ids),
                len(part) + 1,
            )
            assert part == ragged(rows[cut]) and (part == batch) == (rows[cut] == rows)
        for row in (*rows, [8, 8, 8, 8], []):
            assert (row in batch, batch.count(row)) == (row in rows, rows.count(row))
            if row in rows:
                assert batch.index(row) == rows.index(row)
        for again in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), copy.deepcopy(batch)):
            assert type(again) is Ragged and again == batch


def test_a_batch_is_not_taken_for_what_it_was():
    "It was a tuple of two arrays: what still takes it apart as one gets an error, or two documents where there are two."
    batch = ragged([[5, 6], [], [7]])
    with pytest.raises(ValueError, match="unpack"):
        ids, bounds = batch
    with pytest.raises(ValueError, match="unpack"):
        ids, bounds = ragged([[5, 6]])
    first, second = ragged([[5, 6], [7]])
    assert (first.tolist(), second.tolist()) == ([5, 6], [7])
    for wrong in ("ids", [2, 0], np.array([True, False, True]), 1.0, None, (0, 1)):
        with pytest.raises(TypeError, match="a number or a slice"):
            batch[wrong]
    with pytest.raises(AttributeError):
        batch.lengths = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)
    with pytest.raises(ValueError, match=r"document must .*got \[8\], which is not among them"):
        batch.index([8])
    assert batch != [[5, 6], [], [7]] and batch != (batch.ids, batch.bounds)
    with pytest.raises(TypeError, match="a document must be an iterable of ids, got int"):
        assert 5 in batch
    assert (
        repr(batch) == "Ragged(3 documents, 3 ids: [5, 6], [], [7])"
        and repr(ragged([])) == "Ragged(0 documents, 0 ids)"
    )
    assert (
        repr(ragged([[1] * 20] * 2000))
        == "Ragged(2,000 documents, 40,000 ids: [1, 1, 1, 1, 1, 1, 1, 1, …], [1, 1, 1, 1, 1, 1, 1, 1, …], [1, 1, 1, 1, 1, 1, 1, 1, …], …)"
    )


def test_numpy_is_told_what_to_use_instead():
    "An array of rows of different lengths is nothing that NumPy has, and an array of objects is what nobody wants."
    for rows in ([[5, 6], [], [7]], [[1, 2], [3, 4]], []):
        for call in (
            np.asarray,
            np.array,
            lambda b: np.asarray(b, np.int64),
            lambda b: np.array([b, b]),
            np.sum,
            lambda b: np.zeros(2) + b,
        ):
            with pytest.raises(TypeError, match=r"\.ids.*tolist.*padding=True"):
                call(ragged(rows))
    assert np.concatenate(ragged([[5, 6], [], [7]])).tolist() == [5, 6, 7]


def test_a_batch_becomes_an_arrow_column():
    "Without a copy of the ids; slices too; and whatever takes Arrow's arrays takes a batch."
    pa = pytest.importorskip("pyarrow")
    batch = ragged([[5, 6], [], [7], [8, 9]])
    column = batch.to_arrow()
    column.validate(full=True)
    assert column.type == pa.large_list(pa.uint32()) and column.to_pylist() == batch.tolist()
    assert column.values.buffers()[1].address == batch.ids.ctypes.data
    assert (
        batch[1:3].to_arrow().to_pylist() == [[], [7]]
        and batch[::-2].to_arrow().to_pylist() == [[8, 9], []]
        and ragged([]).to_arrow().to_pylist() == []
    )
    assert pa.array(batch).equals(column) and pa.array(batch, pa.list_(pa.int64())).type == pa.list_(
        pa.int64()
    )
    assert pa.table({"ids": batch})["ids"].to_pylist() == batch.tolist()
    ak = pytest.importorskip("awkward")
    assert ak.from_arrow(column).to_list() == batch.tolist()


def test_arrow_is_asked_for_by_name(monkeypatch):
    for name, call in (
        ("pyarrow", lambda: ragged([[1]]).to_arrow()),
        ("torch", lambda: ragged([[1]]).to_torch()),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"needs .*{name}.*pip install"):
            call()


def test_a_batch_becomes_a_nested_tensor():
    torch = pytest.importorskip("torch")
    batch = ragged([[5, 6], [], [7]])
    tensor = batch.to_torch()
    assert tensor.dtype == torch.int64 and [row.tolist() for row in tensor.unbind()] == batch.tolist()
    assert (tensor.values().tolist(), tensor.offsets().tolist()) == (
        batch.ids.tolist(),
        batch.bounds.tolist(),
    )


@pytest.mark.peers
def test_datasets_map_takes_a_batch(tmp_path):
    "As a column, also where all documents of a batch are empty or of one length; and the column holds the ids."
    datasets = pytest.importorskip("datasets")
    datasets.disable_caching()
    tok = Engine(BPE({c: i for i, c in enumerate("ab ")}, []))
    texts = ["ab", "", "b a b", "aa", "bb", "", "", ""]
    made = datasets.Dataset.from_dict({"text": texts})
    for size in (1, 2, 3, 8):
        found = made.map(lambda b: {"ids": tok.encode_batch(b["text"])}, batched=True, batch_size=size)
        assert found["ids"][:] == [tok.encode(t) for t in texts]
