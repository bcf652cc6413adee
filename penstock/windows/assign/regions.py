"""How far a change reaches: the stretch of a partition whose windows must be cut anew.

Outside its region a change alters no window, and a region begins and ends where the cut is sure: a
session where nothing is near enough to join, a state window with one neighbour either side, an
event window between two end rows, count windows from the first that is touched up to the end,
INTERVAL at window borders. Lower and upper bounds are (time, arrival) pairs so that rows of equal
time fall on one side.

    _lo _hi       the times that changed
    _from _fseq   first row of the region (at or after)
    _to _tseq     last row of the region (at or before)
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.sql.plan import Count, Interval, Session, StreamPlan
from penstock.windows.assign.boundaries import Grid
from penstock.windows.clocks.ticks import ALWAYS, NEVER, Ticks


class Regions:
    """Finds regions among the windows known."""

    def __init__(self, plan: StreamPlan) -> None:
        self.window = plan.window
        self.tolerance = (
            plan.window.tolerance.ticks(plan.source.precision)
            if isinstance(plan.window, Session)
            else 0
        )
        self._grid = (
            Grid(plan.window, plan.source.precision, plan.timezone)
            if isinstance(plan.window, Interval)
            else None
        )

        #: whether a region is a range of windows (INTERVAL) and not of rows
        self.by_window = self._grid is not None

    def last_tick(self, times: Ticks) -> Ticks:
        """What T is compared with to tell whether a row comes too late: the last tick of its last
        window, else the row's own time.
        """
        return self._grid.end(self._grid.last(times)) - 1 if self._grid is not None else times

    def first_last_tick(self, times: Ticks) -> Ticks:
        """The same for the first of a row's windows."""
        return self._grid.end(self._grid.first(times)) - 1 if self._grid is not None else times

    def reach(self, time: int) -> int:
        """Where the first window that holds *time* begins; *time* itself where windows follow the
        rows.
        """
        return (
            int(self._grid.start(self._grid.first(np.array([time])))[0])
            if self._grid is not None
            else time
        )

    def find(self, changes: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
        """One line per partition of *changes* (`_g`, `_lo`, `_hi`); *windows* are at least those of
        these partitions.
        """
        if self._grid is not None:
            low, high = (changes.get_column(c).to_numpy() for c in ("_lo", "_hi"))
            return changes.with_columns(
                pl.Series("_from", self._grid.start(self._grid.first(low))),
                pl.lit(NEVER).alias("_fseq"),
                pl.Series("_to", self._grid.end(self._grid.last(high)) - 1),
                pl.lit(ALWAYS).alias("_tseq"),
            )
        near = changes.join(windows, on="_g", how="inner")
        if isinstance(self.window, Session):
            return self._session(changes, near)
        if isinstance(self.window, Count):
            return self._count(changes, near)
        return self._neighbours(changes, near)

    def _session(self, changes: pl.DataFrame, near: pl.DataFrame) -> pl.DataFrame:
        reach = near.filter(
            pl.col("_stop") >= pl.col("_lo") - self.tolerance,
            pl.col("_wstart") <= pl.col("_hi") + self.tolerance,
        )
        found = reach.group_by("_g").agg(
            pl.col("_wstart").min().alias("_a"), pl.col("_stop").max().alias("_b")
        )
        made = changes.join(found, on="_g", how="left").with_columns(
            pl.min_horizontal("_lo", "_a").alias("_from"),
            pl.max_horizontal("_hi", "_b").alias("_to"),
            pl.lit(NEVER).alias("_fseq"),
            pl.lit(ALWAYS).alias("_tseq"),
        )
        return made.drop("_a", "_b")

    def _count(self, changes: pl.DataFrame, near: pl.DataFrame) -> pl.DataFrame:
        assert isinstance(self.window, Count)
        touched = near.filter(
            (pl.col("_stop") >= pl.col("_lo")) | (pl.col("_n") < self.window.size)
        )
        found = (
            touched.sort("_wstart", "_sseq").group_by("_g").agg(pl.col("_wstart", "_sseq").first())
        )
        made = changes.join(found, on="_g", how="left")
        inside = pl.col("_wstart") <= pl.col("_lo")
        return made.with_columns(
            pl.when(inside).then(pl.col("_wstart")).otherwise(pl.col("_lo")).alias("_from"),
            pl.when(inside).then(pl.col("_sseq")).otherwise(NEVER).alias("_fseq"),
            pl.lit(ALWAYS).alias("_to"),
            pl.lit(ALWAYS).alias("_tseq"),
        ).drop("_wstart", "_sseq")

    def _neighbours(self, changes: pl.DataFrame, near: pl.DataFrame) -> pl.DataFrame:
        """STATE_WINDOW: one window either side. EVENT_WINDOW: from a finished window before to a
        finished window that ends after.
        """
        event = self.window is not None and self.window.kind == "event"
        before = near.filter(
            pl.col("_stop") < pl.col("_lo"), *([pl.col("_ends_it")] if event else [])
        )
        after = near.filter(
            pl.col("_stop" if event else "_wstart") > pl.col("_hi"),
            *([pl.col("_ends_it")] if event else []),
        )
        first = (
            before.sort("_wstart", "_sseq").group_by("_g").agg(pl.col("_wstart", "_sseq").last())
        )
        last = after.sort("_stop", "_lseq").group_by("_g").agg(pl.col("_stop", "_lseq").first())
        made = changes.join(first, on="_g", how="left").join(last, on="_g", how="left")
        return made.select(
            *changes.columns,
            pl.col("_wstart").fill_null(NEVER).alias("_from"),
            pl.col("_sseq").fill_null(NEVER).alias("_fseq"),
            pl.col("_stop").fill_null(ALWAYS).alias("_to"),
            pl.col("_lseq").fill_null(ALWAYS).alias("_tseq"),
        )


def after_start(time: str, sequence: str = "_seq") -> pl.Expr:
    """Whether a line lies at or after the region's first row."""
    return (pl.col(time) > pl.col("_from")) | (
        (pl.col(time) == pl.col("_from")) & (pl.col(sequence) >= pl.col("_fseq"))
    )


def before_end(time: str, sequence: str = "_seq") -> pl.Expr:
    """Whether a line lies at or before the region's last row."""
    return (pl.col(time) < pl.col("_to")) | (
        (pl.col(time) == pl.col("_to")) & (pl.col(sequence) <= pl.col("_tseq"))
    )


def touches(windows: pl.DataFrame, points: pl.DataFrame) -> pl.Series:
    """Whether each window has one of *points* between its first and last tick."""
    starts, stops, at = (
        f.get_column(c).to_numpy()
        for f, c in ((windows, "_wstart"), (windows, "_stop"), (points, "_t"))
    )
    if not len(at) or not len(starts):
        return pl.Series(np.zeros(len(starts), bool))
    _, ranks = np.unique(np.concatenate([starts, stops, at]), return_inverse=True)
    n = len(starts)

    def place(
        groups: pl.Series, rank: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return (groups.to_numpy() << 32) + rank

    marks = np.sort(place(points.get_column("_g"), ranks[2 * n :]))
    first = np.searchsorted(marks, place(windows.get_column("_g"), ranks[:n]), "left")
    behind = np.searchsorted(marks, place(windows.get_column("_g"), ranks[n : 2 * n]), "right")
    return pl.Series(behind > first)
