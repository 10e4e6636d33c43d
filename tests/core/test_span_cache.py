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


def test_spans_behind_one_without_an_end_come_in_small_numbers(monkeypatch):
    from subword_nb.core import span_cache

    monkeypatch.setattr(span_cache, "_RESCAN", 1 << 16)
    monkeypatch.setattr(span_cache, "_LONG", 1 << 14)
    scanner = SegmentationPlan(None, byte_level("gpt2")).byte_spans.scanner
    text = b"a" * 1_000_000 + b" b" * 500_000
    found, most = [], 0
    blocks = [text[i : i + 10_000] for i in range(0, len(text), 10_000)]
    for _, starts, k, place in feed(scanner, blocks, size=10_000):
        found += [place + int(a) - int(starts[0]) for a in starts[:k]]
        most = max(most, k)
    assert found == [0, *range(1_000_000, 2_000_000, 2)]
    assert most < 1 << 16
