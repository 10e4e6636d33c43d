"""Tables of calls: what counts as equal, how code is run, and the error of a row that is wrong."""

import numpy as np
import pytest

from subword_nb import Tokenizer
from subword_nb.compat.migration import CallTable, plain, value_of


def table(*rows, **names):
    "A table whose columns use the same names."
    return CallTable(rows, theirs=lambda: dict(names), ours=lambda: dict(names))


@pytest.mark.parametrize(
    "value, wanted",
    [
        (np.array([[1, 2]]), [[1, 2]]),
        (((1, 2), [3]), [[1, 2], [3]]),
        ({"a": np.int64(3), "b": {2, 1}}, {"a": 3, "b": [1, 2]}),
        (b"ab", b"ab"),
        (None, None),
    ],
)
def test_plain_forms(value, wanted):
    assert plain(value) == wanted


def test_encodings_and_rows_of_ids_are_plain():
    tok = Tokenizer.train(["hugs"] * 9, vocab_size=258)
    assert plain(tok.align("hug")) == {
        "ids": tok.encode("hug"),
        "offsets": [list(o) for o in tok.align("hug").offsets],
    }
    assert plain(tok.encode_batch(["hug", ""])) == [tok.encode("hug"), []]


def test_statements_then_a_probe():
    scope = {}
    assert value_of("def f(): return 3\nx = f()", scope, probe="x + 1") == 4
    assert scope["x"] == 3 and value_of("x = 1", {}) is None
    with pytest.raises(SyntaxError):
        value_of("x =", {})


def test_rows_do_not_share_names():
    fresh = CallTable(
        [("x.append(1)", "x.append(1)", "x", "x")] * 2, theirs=lambda: {"x": []}, ours=lambda: {"x": []}
    )
    assert [value for _, _, value in fresh.rows] == [[1], [1]]


def test_a_wrong_row_is_an_error_that_names_both_calls():
    with pytest.raises(
        ValueError, match=r"'x\[1:\]' must give what 'x' gives, \[1, 2\], got \[2\]; correct the row"
    ):
        table(("x", "x[1:]"), x=[1, 2])


def test_html_is_escaped_and_values_are_short():
    shown = table(("'<b>' + x", "'<b>' + x"), x="y" * 99)._repr_html_()
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "y" * 41 not in shown and "…" in shown
