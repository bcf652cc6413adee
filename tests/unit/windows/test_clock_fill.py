"""Windows that a partition lets pass without rows, where windows close by the clock."""

from __future__ import annotations

from penstock.windows.emit.clock_fill import ClockFill
from tests.unit.windows.test_fill import _Gaps as Gaps


def shown(fill, windows, first, behind):
    rows = fill.rows(windows, first, behind)
    return None if rows is None else sorted(Gaps.shown(rows))


def test_windows_behind_the_latest_data_have_rows_as_the_clock_passes_them():
    gaps = Gaps("prev")
    fill = ClockFill(gaps.filler)
    windows = gaps.windows(("d1", 1, 3.0))

    assert shown(fill, windows, 0, 4) == [(2, 3, "s3.0"), (3, 3, "s3.0")]
    assert shown(fill, windows.clear(), 4, 6) == [(4, 3, "s3.0"), (5, 3, "s3.0")]
    assert shown(fill, gaps.windows(("d1", 6, 5.0)), 6, 8) == [(7, 5, "s5.0")]


def test_before_its_first_data_a_partition_has_no_rows():
    gaps = Gaps("null")
    fill = ClockFill(gaps.filler)
    windows = gaps.windows(("d1", 0, 3.0), ("d2", 2, 4.0))

    assert shown(fill, windows.clear(), 0, 5) is None
    assert shown(fill, windows, 0, 3) == [(1, None, None), (2, None, None)]


def test_a_value_is_the_last_one_that_there_was():
    gaps = Gaps("prev")
    fill = ClockFill(gaps.filler)
    assert shown(fill, gaps.windows(("d1", 0, 3.0)), 0, 1) is None

    assert shown(fill, gaps.windows(("d1", 1, None)), 1, 3) == [(2, 3, "s3.0")]
