"""The memory of a table of spans, whatever the spans are."""

import numpy as np
import pytest

from subword_nb.core.jit import available
from subword_nb.core.simd import HEAD, IdBuffer, buffer_of
from subword_nb.core.span_cache import SpanTable, encode_spans, feed
from subword_nb.corpus.segmentation import SegmentationPlan
from subword_nb.text.pretokenizers import byte_level

pytestmark = pytest.mark.skipif(
    not available(), reason="kernels as plain Python are checked in the notebooks"
)


@pytest.mark.parametrize("width", [5, 60])
@pytest.mark.parametrize("n_ids", [1, 60])
def test_a_table_stays_within_its_limit(width, n_ids):
    limit, largest = 1 << 22, 0
    table = SpanTable(limit=limit)
    for block in range(40):
        spans = [b"%0*d" % (width, block * 1000 + i) for i in range(1000)]
        starts = np.cumsum([HEAD] + [len(s) for s in spans]).astype(np.uint32)
        id_buffer = IdBuffer(4)
        encode_spans(
            buffer_of(b"".join(spans)),
            starts,
            len(spans),
            table,
            id_buffer,
            None,
            lambda span: [int(span)] * n_ids,
        )
        largest = max(largest, sum(a.nbytes for a in table.arrays))
        expected = np.repeat(np.arange(block * 1000, block * 1000 + 1000), n_ids)
        assert (id_buffer.ids() == expected).all()
    # arrays grow by a part of themselves, and the ids of one block come before the table is emptied
    assert largest < limit * 3 // 2


def test_spans_behind_one_without_an_end_come_in_small_numbers():
    scanner = SegmentationPlan(None, byte_level("gpt2")).byte_spans.scanner
    n, size, lengths = 34 << 20, 1 << 18, []
    blocks = [b"a" * size] * (n // size) + [b" b" * (size // 2)] * 120
    for _, starts, k, place in feed(scanner, blocks, size=size):
        assert place == sum(int(found.sum()) for found in lengths)
        lengths.append(np.diff(starts[: k + 1]))
    assert max(map(len, lengths)) <= 8 << 20  # those of sixteen megabytes
    found = np.concatenate(lengths)
    assert found[0] == n
    assert (found[1:] == 2).all()
    assert len(found) == 1 + 60 * size
