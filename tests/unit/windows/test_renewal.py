"""Windows after a change are those of a cut through all rows that are live then."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.plan import Count, Event, Interval, Session, State
from penstock.windows.general.renewal import Renewal
from tests.nightly import drawn
from tests.unit.windows.assembly import kernel_of, plan_with, renewal_of
from tests.unit.windows.plans import INT, duration, frame

SESSION = Session(duration("10a"))
GRID = Interval(duration("20a"), duration("10a"))


class _Live:
    """The windows of one plan over rows that come and go."""

    def __init__(self, window: Any, **given_: Any) -> None:
        kernel = kernel_of(plan_with(window, **given_))
        self.ingest = kernel.ingest
        self.renewal: Renewal = renewal_of(kernel)
        self.aggregates = self.renewal.aggregates
        self.windows = self.renewal.describe(self.ingest.empty)

    def change(
        self, come: list[tuple[str, int, float]], gone: pl.DataFrame | None = None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Add and remove rows; return the windows opened and the published ones that vanished."""
        store = self.renewal.store
        fresh, _ = self.ingest.prepare(frame([come]))
        fresh = fresh.select(self.ingest.columns)
        gone = store.rows.clear() if gone is None else gone
        store.reserve(len(self.ingest.groups))
        store.add(fresh)
        store.remove(gone)
        points = pl.concat([_points(fresh, gone=False), _points(gone, gone=True)])
        self.windows, opened, vanished = self.renewal.renew(self.windows, points, fresh)
        return opened, vanished

    def publish(self) -> None:
        self.windows = self.windows.with_columns(pl.lit(1, dtype=pl.Int8).alias("_pub"))

    def shown(self, windows: pl.DataFrame) -> list[tuple[Any, ...]]:
        """Group, start, last tick, number of rows and values of each window, in order."""
        columns = ["_g", "_wstart", "_stop", "_n"]
        values = self.aggregates.finalise(windows, columns)
        return sorted(values.rows())

    def cut_anew(self) -> list[tuple[Any, ...]]:
        rows = self.renewal.store.rows.sort(self.ingest.order)
        return self.shown(self.renewal.describe(rows))


def _points(rows: pl.DataFrame, *, gone: bool) -> pl.DataFrame:
    return rows.select(
        "_g",
        pl.col("ts").alias("_t"),
        pl.lit(False).alias("_quiet"),
        pl.lit(gone).alias("_gone"),
    )


def test_a_row_between_two_sessions_joins_them_and_the_later_one_vanishes():
    live = _Live(SESSION)
    opened, vanished = live.change([("d1", 0, 1.0), ("d1", 16, 2.0), ("d22", 0, 1.0)])
    assert opened.select("_g", "_wstart").rows() == [(0, 0), (0, 16), (1, 0)]
    assert vanished.height == 0
    live.publish()
    opened, vanished = live.change([("d1", 8, 4.0)])
    assert opened.height == 0
    assert vanished.select("_g", "_wstart").rows() == [(0, 16)]
    assert live.shown(live.windows) == [(0, 0, 16, 3, 3, 7.0, 4.0), (1, 0, 0, 1, 1, 1.0, 1.0)]


def test_what_is_known_of_a_window_stays_known():
    live = _Live(SESSION)
    live.change([("d1", 0, 1.0), ("d1", 50, 2.0)])
    live.publish()
    live.change([("d1", 5, 4.0)])
    found = live.windows.sort("_wstart")
    assert found.get_column("_pub").to_list() == [1, 1]
    assert found.get_column("_touched").to_list()[0]
    assert found.select("_wstart", "_stop").rows() == [(0, 5), (50, 50)]


def test_rows_are_added_to_windows_of_the_grid():
    live = _Live(GRID)
    live.change([("d1", 15, 1.0)])
    live.publish()
    opened, vanished = live.change([("d1", 25, 2.0)])
    assert opened.get_column("_wstart").to_list() == [20]
    assert vanished.height == 0
    assert live.shown(live.windows) == [
        (0, 0, 19, 1, 1, 1.0, 1.0),
        (0, 10, 29, 2, 2, 3.0, 2.0),
        (0, 20, 39, 1, 1, 2.0, 2.0),
    ]
    assert live.windows.sort("_wstart").get_column("_pub").to_list() == [1, 1, 0]


def test_windows_of_the_grid_that_lose_their_last_row_vanish():
    live = _Live(GRID)
    live.change([("d1", 15, 1.0), ("d1", 25, 2.0)])
    live.publish()
    gone = live.renewal.store.rows.filter(pl.col("ts") == 25)
    opened, vanished = live.change([], gone)
    assert opened.height == 0
    assert vanished.get_column("_wstart").to_list() == [20]
    assert live.shown(live.windows) == [(0, 0, 19, 1, 1, 1.0, 1.0), (0, 10, 29, 1, 1, 1.0, 1.0)]


def test_some_partitions_grow_while_others_lose_rows():
    live = _Live(GRID)
    live.change([("d1", 15, 1.0), ("d22", 15, 1.0), ("d22", 45, 2.0)])
    gone = live.renewal.store.rows.filter((pl.col("_g") == 1) & (pl.col("ts") == 45))
    live.change([("d1", 16, 2.0)], gone)
    assert live.shown(live.windows) == live.cut_anew()
    assert [w[:4] for w in live.shown(live.windows)] == [
        (0, 0, 19, 2),
        (0, 10, 29, 2),
        (1, 0, 19, 1),
        (1, 10, 29, 1),
    ]


_KINDS = [SESSION, State("i", INT), Event("i = 1", "i = 3"), Count(3, 3), Count(3, 2), GRID]
_row = st.tuples(st.sampled_from(["d1", "d22"]), st.integers(0, 80), st.integers(1, 3).map(float))
_changes = st.lists(
    st.tuples(st.lists(_row, max_size=4), st.sets(st.integers(0, 80), max_size=30)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=drawn(25), deadline=None)
@given(_changes)
@pytest.mark.parametrize(
    "window", _KINDS, ids=["session", "state", "event", "count", "sliding count", "grid"]
)
def test_after_any_changes_windows_are_those_of_all_live_rows(window, changes):
    live = _Live(window)
    for come, times in changes:
        gone = live.renewal.store.rows.filter(pl.col("ts").is_in(list(times)))
        if not come and not gone.height:
            continue
        live.change(come, gone)
        assert live.shown(live.windows) == live.cut_anew()
