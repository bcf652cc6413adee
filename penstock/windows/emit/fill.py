"""FILL: rows for the empty windows between two published neighbours of one partition.

Filled rows are a function of the published windows alone: a change of published windows re-makes
the gaps around it and removes what stood outside the first and last window that are left. Refuses
to fill before the first or after the last window (FORCE_WINDOW_CLOSE does that by its clock, with
`blank`).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.sql.plan import Column, Interval
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.boundaries import Grid
from penstock.windows.emit.result import Results
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import Scope

Lines = npt.NDArray[np.int64]
#: modes whose values come from other windows
_SEEKING = ("prev", "next", "linear")
_AGGREGATE = re.compile(r"\b_a\d+\b")


class Filler:
    """Makes the filled rows of one plan."""

    def __init__(self, scope: Scope, aggregates: Aggregates, results: Results) -> None:
        plan = scope.plan
        assert isinstance(plan.window, Interval)
        self.mode = plan.fill.mode
        self.grid = Grid(plan.window, plan.source.precision, plan.timezone)
        self.aggregates = aggregates
        self.results = results
        outputs = {o.name: o for o in plan.outputs}
        #: target columns that hold values (the others are computed for each filled row), each with
        #: its value under VALUE
        self.values: dict[str, pl.Expr] = {}
        self.linear: list[str] = []
        for column, origin in zip(plan.target.columns, plan.target.column_of, strict=True):
            if origin is None or not _AGGREGATE.search(outputs[origin].sql):
                continue
            index = list(outputs).index(origin)
            text = plan.fill.values[index] if index < len(plan.fill.values) else None
            self.values[column.name] = given_value(scope, column, text)
            if column.type.numeric or column.type.kind == "TIMESTAMP":
                self.linear.append(column.name)

    def refill(
        self, before: pl.DataFrame, after: pl.DataFrame, changed: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Filled rows to put and windows whose rows are to be deleted, after a change of what is
        published.

        Args:
            before, after: published windows (`_g`, `_wstart`; `after` with its partials) of the
                partitions that changed.
            changed: `_g`, `_wstart` of the windows put or removed.
        """
        spans = changed.group_by("_g").agg(
            pl.col("_wstart").min().alias("_lo"), pl.col("_wstart").max().alias("_hi")
        )
        near = after.join(spans, on="_g")
        left = (
            near.filter(pl.col("_wstart") < pl.col("_lo"))
            .group_by("_g")
            .agg(pl.col("_wstart").max().alias("_left"))
        )
        right = (
            near.filter(pl.col("_wstart") > pl.col("_hi"))
            .group_by("_g")
            .agg(pl.col("_wstart").min().alias("_right"))
        )
        spans = (
            spans.join(left, on="_g", how="left")
            .join(right, on="_g", how="left")
            .with_columns(
                pl.coalesce("_left", "_lo").alias("_left"),
                pl.coalesce("_right", "_hi").alias("_right"),
            )
        )
        if self.mode in _SEEKING and after.height:
            spans = self._reach(spans, after)
        inside = (pl.col("_wstart") >= pl.col("_left")) & (pl.col("_wstart") <= pl.col("_right"))
        real = (
            after.join(spans.select("_g", "_left", "_right"), on="_g")
            .filter(inside)
            .sort("_g", "_wstart")
        )
        old = before.join(spans.select("_g", "_left", "_right"), on="_g").filter(inside)
        return self._gaps(real), self._outside(old, real)

    def _reach(self, spans: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
        """Widen *spans* to windows on either side without a NULL: gaps up to there take values from
        across those with one.
        """
        finals = self.aggregates.finalise(after, ["_g", "_wstart"])
        names = [c for c in finals.columns if c not in ("_g", "_wstart")]
        if not any(finals.get_column(c).null_count() for c in names):
            return spans
        whole = pl.all_horizontal(pl.col(c).is_not_null() for c in names)
        near = finals.select("_g", "_wstart", whole.alias("_whole")).join(spans, on="_g")
        start = pl.col("_wstart")
        low = pl.coalesce(start.filter("_whole").max(), start.min()).alias("_low")
        high = pl.coalesce(start.filter("_whole").min(), start.max()).alias("_high")
        below = near.filter(start <= pl.col("_left")).group_by("_g").agg(low)
        above = near.filter(start >= pl.col("_right")).group_by("_g").agg(high)
        spans = spans.join(below, on="_g", how="left").join(above, on="_g", how="left")
        left = pl.coalesce("_low", "_left").alias("_left")
        right = pl.coalesce("_high", "_right").alias("_right")
        return spans.with_columns(left, right).drop("_low", "_high")

    def _index(self, frame: pl.DataFrame, column: str) -> pl.Series:
        return pl.Series(self.grid.last(frame.get_column(column).to_numpy()), dtype=pl.Int64)

    def _outside(self, old: pl.DataFrame, real: pl.DataFrame) -> pl.DataFrame:
        """Windows between the first and last old one that are not between the first and last one
        now.
        """

        def bounds(frame: pl.DataFrame, low: str, high: str) -> pl.DataFrame:
            indexed = frame.select("_g", self._index(frame, "_wstart").alias("_i"))
            return indexed.group_by("_g").agg(
                pl.col("_i").min().alias(low), pl.col("_i").max().alias(high)
            )

        both = bounds(old, "_a", "_b").join(bounds(real, "_c", "_d"), on="_g", how="left")
        none_left = pl.col("_c").is_null()
        end = pl.col("_b") + 1
        until = pl.when(none_left).then(end).otherwise(pl.min_horizontal("_c", end))
        ranges = pl.concat(
            [
                both.select("_g", pl.col("_a").alias("_f"), until.alias("_u")),
                both.filter(~none_left).select(
                    "_g", pl.max_horizontal(pl.col("_d") + 1, "_a").alias("_f"), end.alias("_u")
                ),
            ]
        )
        return self._windows(ranges.filter(pl.col("_u") > pl.col("_f")))

    def _windows(self, ranges: pl.DataFrame) -> pl.DataFrame:
        """Every window index from `_f` up to, not including, `_u`, with its start and end."""
        every = (
            ranges.with_columns(pl.int_ranges("_f", "_u").alias("_i"))
            .explode("_i", empty_as_null=False)
            .drop("_f", "_u")
        )
        index = every.get_column("_i").cast(pl.Int64).to_numpy()
        return every.drop("_i").with_columns(
            pl.Series("_wstart", self.grid.start(index), dtype=pl.Int64),
            pl.Series("_wend", self.grid.end(index), dtype=pl.Int64),
        )

    def _gaps(self, real: pl.DataFrame) -> pl.DataFrame:
        """Rows for all windows between neighbours of *real* (sorted)."""
        if real.height < 2:
            return self.results.empty()
        indexed = real.with_columns(self._index(real, "_wstart").alias("_i")).with_row_index(
            "_line"
        )
        pairs = indexed.select(
            "_g",
            "_line",
            (pl.col("_i") + 1).alias("_f"),
            pl.col("_i").shift(-1).over("_g").alias("_u"),
        ).filter(pl.col("_u") > pl.col("_f"))
        gaps = self._windows(pairs)
        if not gaps.height:
            return self.results.empty()
        left = gaps.get_column("_line").cast(pl.Int64).to_numpy()
        finals = self.aggregates.finalise(real, ["_wstart"])
        if self.mode in ("null", "value"):
            return self.blank(gaps)
        # What each real window shows: a filled value comes from the nearest one that is not NULL.
        windows = real.select("_g", "_wstart").with_columns(
            pl.Series(
                "_wend", self.grid.end(self._index(real, "_wstart").to_numpy()), dtype=pl.Int64
            )
        )
        shown = self._like(windows, finals, np.arange(real.height))
        if shown.height < real.height:
            return self.blank(gaps)
        groups = real.get_column("_g").to_numpy()
        starts = real.get_column("_wstart").to_numpy()
        if self.mode == "linear":
            return self._interpolate(gaps, shown, groups, starts, left)
        down = self.mode == "prev"
        line = left if down else left + 1
        rows = self._like(gaps, finals, line)
        lacking = [name for name in self.values if rows.get_column(name).null_count()]
        return rows.with_columns(
            _at(shown.get_column(name), _nearest(shown.get_column(name), groups, down)[line])
            for name in lacking
        )

    def after(self, gaps: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        """Rows for the windows `_f` up to `_u` behind line `_line` of *known*, which is sorted
        (NULL, VALUE and PREV).
        """
        every = self._windows(gaps)
        if self.mode in ("null", "value"):
            return self.blank(every)
        line = every.get_column("_line").cast(pl.Int64).to_numpy()
        finals = self.aggregates.finalise(known, ["_wstart"])
        rows = self._like(every, finals, line)
        lacking = [name for name in self.values if rows.get_column(name).null_count()]
        shown = self._like(known, finals, np.arange(known.height)) if lacking else rows
        if not lacking or rows.height < every.height or shown.height < known.height:
            return rows
        groups = known.get_column("_g").to_numpy()
        return rows.with_columns(
            _at(shown.get_column(name), _nearest(shown.get_column(name), groups, down=True)[line])
            for name in lacking
        )

    def lasting(self, known: pl.DataFrame) -> pl.DataFrame:
        """Those of *known* windows (sorted) that later rows are filled from: the last of each
        partition, and the last with each value.
        """
        groups = known.get_column("_g").to_numpy()
        last = np.flatnonzero(np.append(groups[1:] != groups[:-1], True)[: len(groups)])
        chosen = [last]
        if self.mode == "prev":
            shown = self._like(
                known, self.aggregates.finalise(known, ["_wstart"]), np.arange(known.height)
            )
            for name in self.values if shown.height == known.height else ():
                if shown.get_column(name).null_count():
                    found = _nearest(shown.get_column(name), groups, down=True)[last]
                    chosen.append(found[found >= 0])
        return known[np.unique(np.concatenate(chosen))]

    def _like(
        self,
        gaps: pl.DataFrame,
        finals: pl.DataFrame,
        lines: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> pl.DataFrame:
        """Rows of *gaps* with the aggregates of the real windows at *lines*."""
        return self.results.upserts(
            gaps.select("_g", "_wstart", "_wend").hstack(finals.drop("_wstart")[lines])
        ).rows

    def _interpolate(
        self, gaps: pl.DataFrame, shown: pl.DataFrame, groups: Lines, starts: Lines, left: Lines
    ) -> pl.DataFrame:
        """Rows of *gaps* with numbers and times between those of the nearest windows that have
        them, in proportion.

        Args:
            shown: the rows of the real windows; *groups* and *starts* are theirs.
            left: of each gap the real window before it.
        """
        rows = self.blank(gaps)
        wanted = gaps.get_column("_wstart").to_numpy()
        for name in self.linear:
            column = shown.get_column(name)
            low = _nearest(column, groups, down=True)[left]
            high = _nearest(column, groups, down=False)[left + 1]
            passed = wanted - starts[low]
            length = starts[high] - starts[low]
            value = between(_at(column, low), _at(column, high), passed, length)
            value = value.zip_with(pl.Series((low >= 0) & (high >= 0)), _nothing(value))
            rows = rows.with_columns(value.alias(name))
        return rows

    def blank(self, windows: pl.DataFrame) -> pl.DataFrame:
        """Rows of empty *windows* under NULL and VALUE."""
        nulls = [pl.lit(None, dtype=a.type.polars()).alias(a.name) for a in self.aggregates.items]
        rows = self.results.upserts(
            windows.select("_g", "_wstart", "_wend").with_columns(nulls)
        ).rows
        return rows.with_columns(e.alias(n) for n, e in self.values.items())


def _nearest(column: pl.Series, groups: Lines, down: bool) -> Lines:
    """Of each line the nearest of its group, itself or before (*down*) or behind it, that has a
    value; -1: there is none.
    """
    count = len(column)
    lines = np.arange(count)
    known = column.is_not_null().to_numpy()
    if down:
        found = np.maximum.accumulate(np.where(known, lines, -1))
    else:
        found = np.minimum.accumulate(np.where(known, lines, count)[::-1])[::-1]
    there = (found >= 0) & (found < count)
    found = np.where(there, found, 0)
    return np.where(there & (groups[found] == groups), found, -1)


def _at(column: pl.Series, lines: Lines) -> pl.Series:
    """The values at *lines*; NULL at -1."""
    found = column.gather(np.maximum(lines, 0))
    return found.zip_with(pl.Series(lines >= 0), _nothing(found))


def _nothing(like: pl.Series) -> pl.Series:
    return pl.Series(like.name, [None], dtype=like.dtype)


def between(low: pl.Series, high: pl.Series, passed: Lines, length: Lines) -> pl.Series:
    """Values *passed* of *length* from *low* to *high*; whole ones exactly, cut toward zero."""
    dtype = low.dtype
    share = pl.Series(passed / np.where(length, length, 1))
    if not dtype.is_integer():
        a = low.cast(pl.Float64)
        value = a + (high.cast(pl.Float64) - a) * share
        return value.cast(dtype, strict=False)
    a = low.cast(pl.Int128)
    span = pl.Series(np.where(length, length, 1)).cast(pl.Int128)
    total = a * span + (high.cast(pl.Int128) - a) * pl.Series(passed).cast(pl.Int128)
    size = total.abs() // span
    signed = pl.when(pl.lit(total) < 0).then(0 - pl.lit(size)).otherwise(pl.lit(size))
    return pl.select(signed.cast(dtype, strict=False)).to_series()


def given_value(scope: Scope, column: Column, text: str | None) -> pl.Expr:
    """Return what FILL(VALUE, …) gives *column*: *text*, or NULL without one."""
    kind = column.type.polars()
    plan = scope.plan
    if plan.fill.mode != "value" or text is None:
        return pl.lit(None, dtype=kind)
    given = scope.over_windows(text)
    value = cast_expression(
        given.expr, given.type, column.type, plan.source.precision, plan.target.precision
    )
    return value.cast(kind, strict=False)
