"""Lines picked column by column are those that polars itself picks."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from penstock.windows.rows import columnwise

LINES = st.lists(
    st.tuples(st.none() | st.integers(-2, 2), st.none() | st.sampled_from(["", "a", "b"])),
    max_size=12,
)


def frame(lines: list[tuple[int | None, str | None]]) -> pl.DataFrame:
    return pl.DataFrame(lines, {"n": pl.Int64, "t": pl.String}, orient="row")


@given(LINES, st.data())
def test_kept_and_picked_are_what_polars_picks(
    lines: list[tuple[int | None, str | None]], data: st.DataObject
) -> None:
    rows = frame(lines)
    mask = data.draw(st.lists(st.none() | st.booleans(), min_size=len(lines), max_size=len(lines)))
    wanted = pl.Series(mask, dtype=pl.Boolean)
    assert_frame_equal(columnwise.kept(rows, wanted), rows.filter(wanted))
    if lines:
        numbers = np.array(data.draw(st.lists(st.integers(0, len(lines) - 1))), np.int64)
        assert_frame_equal(columnwise.picked(rows, numbers), rows[numbers])


@given(LINES)
def test_repeats_are_what_polars_calls_duplicated(
    lines: list[tuple[int | None, str | None]],
) -> None:
    rows = frame(lines)
    assert columnwise.repeats(rows, ["n", "t"]) == bool(rows.is_duplicated().any())


@pytest.mark.parametrize("again", [True, False])
def test_many_lines_are_asked_about_in_a_query(again: bool) -> None:
    count = 2000
    rows = pl.DataFrame({"n": range(count), "t": ["a"] * count})
    assert columnwise.repeats(pl.concat([rows, rows[7:8]]) if again else rows, ["n", "t"]) == again
