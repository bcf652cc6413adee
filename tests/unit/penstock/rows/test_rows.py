"""Rows mean the same in both forms: as values, and as a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from penstock.rows.rows import Rows

LAYOUT = {"tbname": pl.String(), "_op": pl.Int8(), "v": pl.UInt64(), "d": pl.Float64()}
_row = st.tuples(
    st.sampled_from(["a", "B", "ü"]),
    st.integers(0, 2),
    st.none() | st.integers(0, 2**64 - 1),
    st.none() | st.floats(),
)


def both(listed: list[tuple[Any, ...]]) -> tuple[Rows, Rows]:
    """The same rows as values and as a frame."""
    values = {name: [row[i] for row in listed] for i, name in enumerate(LAYOUT)}
    return Rows.of_values(values, LAYOUT), Rows.of_frame(pl.DataFrame(values, LAYOUT))


def same(few: Rows, many: Rows) -> None:
    """Check that both are the same rows, in different forms."""
    assert few.few
    assert not many.few
    assert len(few) == len(many)
    assert_frame_equal(few.frame, many.frame, check_exact=True)
    for name in many.frame.columns:
        assert repr(few.column(name)) == repr(many.column(name)), "NaN is no number's equal"


@given(st.lists(_row, max_size=5), st.data())
def test_both_forms_are_the_same_rows(listed: list[tuple[Any, ...]], data: st.DataObject) -> None:
    few, many = both(listed)
    same(few, many)
    assert_frame_equal(few.columns(["v", "tbname"]), many.columns(["v", "tbname"]))
    if listed:
        places = data.draw(st.lists(st.integers(0, len(listed) - 1), max_size=4))
        same(few.picked(places), many.picked(places))


def test_other_columns_stand_in_front() -> None:
    head = {"_step": [0, 1], "_now": [7, 8]}
    kinds = {"_step": pl.UInt32(), "_now": pl.Int64()}
    made = [
        rows.with_head(head, kinds, without=["_op", "d"])
        for rows in both([("a", 0, 1, None), ("b", 1, None, 0.5)])
    ]
    same(*made)
    assert made[0].frame.schema == {
        "_step": pl.UInt32(),
        "_now": pl.Int64(),
        "tbname": pl.String(),
        "v": pl.UInt64(),
    }
    assert made[0].frame.rows() == [(0, 7, "a", 1), (1, 8, "b", None)]


@pytest.mark.parametrize("change", [lambda r: r.picked([1]), lambda r: r.with_head({}, {}, ["v"])])
def test_rows_stay_as_they_are(change: Callable[[Rows], Rows]) -> None:
    few, many = both([("a", 0, 1, None), ("b", 1, None, 0.5)])
    change(few)
    change(many)
    same(few, many)
    assert few.frame.rows() == [("a", 0, 1, None), ("b", 1, None, 0.5)]
