"""Rows that agree in some columns, beside what grouping says."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from penstock.rows.copies import find_copies, has_copies

_SCHEMA = {"_tab": pl.UInt32(), "ts": pl.Int64(), "key": pl.String(), "x": pl.Int64()}
_row = st.tuples(
    st.integers(0, 3),
    st.sampled_from([None, 0, 1, -(2**63), 2**63 - 1]),
    st.sampled_from([None, "", "a", "b"]),
    st.integers(0, 100),
)


@given(st.lists(_row, max_size=40))
def test_they_are_those_that_grouping_finds(lines: list[tuple[object, ...]]) -> None:
    rows = pl.DataFrame(lines, schema=_SCHEMA, orient="row")
    names = ["_tab", "ts", "key"]
    identities = [line[:3] for line in lines]
    expected = [line for line in lines if identities.count(line[:3]) > 1]
    assert find_copies(rows, names).rows() == expected
    assert has_copies(rows, names) == bool(expected)


def test_no_rows_and_one_row_have_none() -> None:
    rows = pl.DataFrame([(1, 2, "a", 3)], schema=_SCHEMA, orient="row")
    assert not has_copies(rows, ["_tab"])
    assert find_copies(rows.clear(), ["_tab"]).schema == rows.schema
