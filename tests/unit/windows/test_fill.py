"""Rows for the empty windows between two published ones, mode by mode, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from penstock.sql.plan import Fill, FillMode
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.emit.fill import Filler
from penstock.windows.emit.result import Results
from penstock.windows.rows.scope import Scope
from tests.unit.windows.assembly import groups_of
from tests.unit.windows.plans import frame, window_plan

SIZE = 10_000


class _Gaps:
    """A filler for `sum(i)` and `max(s)` in windows of ten seconds, and the windows of rows."""

    def __init__(self, mode: FillMode, values: tuple[str | None, ...] = ()) -> None:
        plan = window_plan((("sum", "i"), ("max", "s")))
        plan = replace(plan, fill=Fill(mode, values))
        scope = Scope(plan)
        self.groups = groups_of(plan)
        self.aggregates = Aggregates(scope)
        self.filler = Filler(scope, self.aggregates, Results(scope, self.groups))

    def windows(self, *lines: tuple[str, int, float | None]) -> pl.DataFrame:
        """Windows with partials, by group and start, of rows of (table, number of window, i)."""
        rows = frame([[(table, SIZE * n, v)] for table, n, v in lines])
        rows = rows.with_columns(self.aggregates.arguments.expressions)
        rows = rows.with_columns(self.groups.expressions)
        rows = rows.with_columns(
            pl.Series("_g", self.groups.numbers(rows), pl.Int64),
            _wstart=pl.col("ts"),
            _wend=pl.col("ts") + SIZE,
        )
        by = ["_g", "_wstart", "_wend"]
        return self.aggregates.partial(rows, by).sort("_g", "_wstart")

    def refill(
        self, before: pl.DataFrame, after: pl.DataFrame, *changed: tuple[int, int]
    ) -> tuple[list[tuple[Any, ...]], list[tuple[int, int]]]:
        """(number of window, sum, text) of the rows put, and (group, number) of those deleted."""
        at = pl.DataFrame(
            [(g, SIZE * n) for g, n in changed],
            schema={"_g": pl.Int64, "_wstart": pl.Int64},
            orient="row",
        )
        put, gone = self.filler.refill(before.select("_g", "_wstart"), after, at)
        assert (gone.get_column("_wend") - gone.get_column("_wstart") == SIZE).all()
        return self.shown(put), [(g, s // SIZE) for g, s in gone.select("_g", "_wstart").rows()]

    @staticmethod
    def shown(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
        return [(t // SIZE, i, s) for t, i, s in rows.select("_wstart", "c_a0", "c_a1").rows()]


_MODES: list[tuple[FillMode, tuple[str | None, ...], list[tuple[Any, ...]]]] = [
    ("null", (), [(1, None, None), (2, None, None)]),
    ("value", (None, "7", "'x'"), [(1, 7, "x"), (2, 7, "x")]),
    ("value", (None, "7"), [(1, 7, None), (2, 7, None)]),
    ("prev", (), [(1, -5, "s-5.0"), (2, -5, "s-5.0")]),
    ("next", (), [(1, 5, "s5.0"), (2, 5, "s5.0")]),
    ("linear", (), [(1, -1, None), (2, 1, None)]),  # whole numbers, cut toward zero
]


@pytest.mark.parametrize(("mode", "values", "rows"), _MODES)
def test_two_empty_windows_between_two_others(mode, values, rows):
    gaps = _Gaps(mode, values)
    after = gaps.windows(("d1", 0, -5.0), ("d1", 3, 5.0))
    assert gaps.refill(after.clear(), after, (0, 0), (0, 3)) == (rows, [])


def test_neighbours_and_single_windows_have_no_gap():
    gaps = _Gaps("prev")
    after = gaps.windows(("d1", 0, 1.0), ("d1", 1, 2.0), ("d22", 5, 3.0))
    assert gaps.refill(after.clear(), after, (0, 0), (0, 1), (1, 5)) == ([], [])


def test_only_gaps_around_the_change_are_made_again():
    gaps = _Gaps("prev")
    after = gaps.windows(("d1", 0, 1.0), ("d1", 2, 2.0), ("d1", 4, 3.0), ("d1", 6, 4.0))
    put, _ = gaps.refill(after, after, (0, 2))
    assert [n for n, *_ in put] == [1, 3]


def test_each_partition_is_filled_from_its_own_windows():
    gaps = _Gaps("prev")
    after = gaps.windows(("d1", 0, 1.0), ("d1", 2, 2.0), ("d22", 0, 8.0), ("d22", 2, 9.0))
    put, _ = gaps.refill(after.clear(), after, (0, 0), (0, 2), (1, 0), (1, 2))
    assert put == [(1, 1, "s1.0"), (1, 8, "s8.0")]


def test_what_stood_outside_the_windows_left_is_deleted():
    gaps = _Gaps("prev")
    before = gaps.windows(("d1", 0, 1.0), ("d1", 3, 2.0))
    left = before.filter(pl.col("_wstart") == 0)
    assert gaps.refill(before, left, (0, 3)) == ([], [(0, 1), (0, 2), (0, 3)])
    right = before.filter(pl.col("_wstart") > 0)
    assert gaps.refill(before, right, (0, 0)) == ([], [(0, 0), (0, 1), (0, 2)])
    put, gone = gaps.refill(before, before.clear(), (0, 0), (0, 3))
    assert (put, gone) == ([], [(0, n) for n in range(4)])


def test_a_window_in_between_that_is_gone_is_filled_itself():
    gaps = _Gaps("next")
    before = gaps.windows(("d1", 0, 1.0), ("d1", 1, 2.0), ("d1", 2, 3.0))
    after = before.filter(pl.col("_wstart") != SIZE)
    assert gaps.refill(before, after, (0, 1)) == ([(1, 3, "s3.0")], [])


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("prev", [(2, 1, "s1.0")]),
        ("next", [(2, 7, "s7.0")]),
        ("linear", [(2, 5, None)]),  # two thirds of the way from window 0 to window 3
    ],
)
def test_a_window_without_a_value_is_looked_past(mode, rows):
    gaps = _Gaps(mode)
    after = gaps.windows(("d1", 0, 1.0), ("d1", 1, None), ("d1", 3, 7.0))
    assert gaps.refill(after.clear(), after, (0, 3)) == (rows, [])


def test_a_change_reaches_across_windows_without_a_value():
    """Window 0 changes; the gap behind window 1, which has no value, is filled from it."""
    gaps = _Gaps("prev")
    after = gaps.windows(("d1", 0, 1.0), ("d1", 1, None), ("d1", 3, 7.0))
    put, _ = gaps.refill(after, after, (0, 0))
    assert put == [(2, 1, "s1.0")]


def test_where_no_window_has_a_value_there_is_none():
    gaps = _Gaps("linear")
    after = gaps.windows(("d1", 0, None), ("d1", 2, 7.0))
    assert gaps.refill(after.clear(), after, (0, 0), (0, 2)) == ([(1, None, None)], [])


def test_rows_behind_the_last_window_by_the_clock():
    for mode, value in (("prev", (4, "s4.0")), ("null", (None, None))):
        gaps = _Gaps(mode)
        known = gaps.windows(("d1", 0, 4.0), ("d1", 1, None), ("d22", 0, 9.0))
        wanted = pl.DataFrame(
            {"_g": [0], "_line": [1], "_f": [2], "_u": [4]}, schema_overrides={"_line": pl.UInt32}
        )
        assert gaps.shown(gaps.filler.after(wanted, known)) == [(2, *value), (3, *value)]


def test_later_rows_need_the_last_window_and_the_last_with_each_value():
    gaps = _Gaps("prev")
    known = gaps.windows(
        ("d1", 0, 4.0), ("d1", 1, 5.0), ("d1", 2, None), ("d22", 0, 9.0), ("d22", 1, 8.0)
    )
    kept = gaps.filler.lasting(known).select("_g", "_wstart").rows()
    assert kept == [(0, SIZE), (0, 2 * SIZE), (1, SIZE)]
    other = _Gaps("null")
    known = other.windows(("d1", 0, 4.0), ("d1", 1, None))
    assert other.filler.lasting(known).get_column("_wstart").to_list() == [SIZE]


def test_blank_rows_have_keys_and_times():
    gaps = _Gaps("null")
    gaps.windows(("d1", 0, 4.0))
    windows = pl.DataFrame({"_g": np.array([0]), "_wstart": [SIZE], "_wend": [2 * SIZE]})
    made = gaps.filler.blank(windows)
    assert made.select("_wstart", "c_a0", "c_a1", "tname").rows() == [(SIZE, None, None, "d1")]


@pytest.mark.parametrize("kind", ["v", "i"])
def test_lines_between_numbers_of_any_kind(kind):
    plan = window_plan((("max", kind),))
    plan = replace(plan, fill=Fill("linear"))
    scope = Scope(plan)
    groups = groups_of(plan)
    aggregates = Aggregates(scope)
    filler = Filler(scope, aggregates, Results(scope, groups))
    rows = frame([[("d1", 0, 1.0)], [("d1", 4 * SIZE, 3.0)]])
    rows = rows.with_columns(aggregates.arguments.expressions).with_columns(groups.expressions)
    rows = rows.with_columns(pl.Series("_g", groups.numbers(rows), pl.Int64), _wstart=pl.col("ts"))
    after = aggregates.partial(rows, ["_g", "_wstart"]).sort("_wstart")
    put, _ = filler.refill(
        after.select("_g", "_wstart").clear(), after, after.select("_g", "_wstart")
    )
    wanted = [1.5, 2.0, 2.5] if kind == "v" else [1, 2, 2]
    assert put.get_column("c_a0").to_list() == wanted
