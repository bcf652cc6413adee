"""FILL: rows for the empty windows between two published neighbours of one partition.

Filled rows are a function of the published windows alone: a change of published windows re-makes the gaps around it and removes
what stood outside the first and last window that are left. Refuses to fill before the first or after the last window
(FORCE_WINDOW_CLOSE does that by its clock, with `blank`).
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from penstock.sql.plan import Interval
from penstock.windows.aggregates import Aggregates
from penstock.windows.boundaries import Grid
from penstock.windows.cast import cast_expression
from penstock.windows.result import Results
from penstock.windows.scope import Scope

_AGGREGATE = re.compile(r"\b_a\d+\b")


class Filler:
    """Makes the filled rows of one plan."""

    def __init__(self, scope: Scope, aggregates: Aggregates, results: Results) -> None:
        plan = scope.plan
        assert isinstance(plan.window, Interval)
        self.mode = plan.fill.mode
        self.grid = Grid(plan.window, plan.source.precision, plan.timezone)
        self.aggregates, self.results = aggregates, results
        outputs = {o.name: o for o in plan.outputs}
        #: target columns that hold values (the others are computed for each filled row), each with its value under VALUE
        self.values: dict[str, pl.Expr] = {}
        self.linear: list[str] = []
        for column, origin in zip(plan.target.columns, plan.target.column_of, strict=True):
            if origin is None or not _AGGREGATE.search(outputs[origin].sql):
                continue
            null = pl.lit(None, dtype=column.type.polars())
            self.values[column.name] = null
            index = list(outputs).index(origin)
            text = plan.fill.values[index] if index < len(plan.fill.values) else None
            if self.mode == "value" and text is not None:
                given = scope.over_windows(text)
                value = cast_expression(given.expr, given.type, column.type, plan.source.precision, plan.target.precision)
                self.values[column.name] = value.cast(column.type.polars(), strict=False)
            if column.type.numeric:
                self.linear.append(column.name)

    def refill(self, before: pl.DataFrame, after: pl.DataFrame, changed: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Filled rows to put and windows whose rows are to be deleted, after a change of what is published.

        Args:
            before, after: published windows (`_g`, `_wstart`; `after` with its partials) of the partitions that changed.
            changed: `_g`, `_wstart` of the windows put or removed.
        """
        spans = changed.group_by("_g").agg(pl.col("_wstart").min().alias("_lo"), pl.col("_wstart").max().alias("_hi"))
        near = after.join(spans, on="_g")
        left = near.filter(pl.col("_wstart") < pl.col("_lo")).group_by("_g").agg(pl.col("_wstart").max().alias("_left"))
        right = near.filter(pl.col("_wstart") > pl.col("_hi")).group_by("_g").agg(pl.col("_wstart").min().alias("_right"))
        spans = spans.join(left, on="_g", how="left").join(right, on="_g", how="left").with_columns(
            pl.coalesce("_left", "_lo").alias("_left"), pl.coalesce("_right", "_hi").alias("_right"),
        )  # fmt: skip
        inside = (pl.col("_wstart") >= pl.col("_left")) & (pl.col("_wstart") <= pl.col("_right"))
        real = after.join(spans.select("_g", "_left", "_right"), on="_g").filter(inside).sort("_g", "_wstart")
        old = before.join(spans.select("_g", "_left", "_right"), on="_g").filter(inside)
        return self._gaps(real), self._outside(old, real)

    def _index(self, frame: pl.DataFrame, column: str) -> pl.Series:
        return pl.Series(self.grid.last(frame.get_column(column).to_numpy()), dtype=pl.Int64)

    def _outside(self, old: pl.DataFrame, real: pl.DataFrame) -> pl.DataFrame:
        """Windows between the first and last old one that are not between the first and last one now."""

        def bounds(frame: pl.DataFrame, low: str, high: str) -> pl.DataFrame:
            indexed = frame.select("_g", self._index(frame, "_wstart").alias("_i"))
            return indexed.group_by("_g").agg(pl.col("_i").min().alias(low), pl.col("_i").max().alias(high))

        both = bounds(old, "_a", "_b").join(bounds(real, "_c", "_d"), on="_g", how="left")
        none_left, end = pl.col("_c").is_null(), pl.col("_b") + 1
        until = pl.when(none_left).then(end).otherwise(pl.min_horizontal("_c", end))
        ranges = pl.concat([
            both.select("_g", pl.col("_a").alias("_f"), until.alias("_u")),
            both.filter(~none_left).select("_g", pl.max_horizontal(pl.col("_d") + 1, "_a").alias("_f"), end.alias("_u")),
        ])  # fmt: skip
        return self._windows(ranges.filter(pl.col("_u") > pl.col("_f")))

    def _windows(self, ranges: pl.DataFrame) -> pl.DataFrame:
        """Every window index from `_f` up to, not including, `_u`, with its start and end."""
        every = ranges.with_columns(pl.int_ranges("_f", "_u").alias("_i")).explode("_i", empty_as_null=False).drop("_f", "_u")
        index = every.get_column("_i").cast(pl.Int64).to_numpy()
        return every.drop("_i").with_columns(
            pl.Series("_wstart", self.grid.start(index), dtype=pl.Int64), pl.Series("_wend", self.grid.end(index), dtype=pl.Int64)
        )

    def _gaps(self, real: pl.DataFrame) -> pl.DataFrame:
        """Rows for all windows between neighbours of *real* (sorted)."""
        if real.height < 2:
            return self.results.empty()
        indexed = real.with_columns(self._index(real, "_wstart").alias("_i")).with_row_index("_line")
        pairs = indexed.select(
            "_g", "_line", (pl.col("_i") + 1).alias("_f"), pl.col("_i").shift(-1).over("_g").alias("_u"),
        ).filter(pl.col("_u") > pl.col("_f"))  # fmt: skip
        gaps = self._windows(pairs)
        if not gaps.height:
            return self.results.empty()
        left = gaps.get_column("_line").cast(pl.Int64).to_numpy()
        finals = self.aggregates.finalise(real, ["_wstart"])
        if self.mode in ("null", "value"):
            return self.blank(gaps)
        rows = self._like(gaps, finals, left if self.mode != "next" else left + 1)
        if self.mode == "linear":
            after = self._like(gaps, finals, left + 1)
            starts = finals.get_column("_wstart").to_numpy()
            share = (gaps.get_column("_wstart").to_numpy() - starts[left]) / (starts[left + 1] - starts[left])
            rows = self._interpolate(rows, after, share)
        return rows

    def after(self, gaps: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        """Rows for the windows `_f` up to `_u` behind line `_line` of *known* (NULL, VALUE and PREV)."""
        every = self._windows(gaps)
        if self.mode in ("null", "value"):
            return self.blank(every)
        return self._like(every, self.aggregates.finalise(known, ["_wstart"]), every.get_column("_line").cast(pl.Int64).to_numpy())

    def _like(self, gaps: pl.DataFrame, finals: pl.DataFrame, lines: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.DataFrame:
        """Rows of *gaps* with the aggregates of the real windows at *lines*."""
        return self.results.upserts(gaps.select("_g", "_wstart", "_wend").hstack(finals.drop("_wstart")[lines])).rows

    def _interpolate(self, low: pl.DataFrame, high: pl.DataFrame, share: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pl.DataFrame:
        rows = low.with_columns(null.alias(name) for name, null in self.values.items() if name not in self.linear)
        for name in self.linear:
            a, b = low.get_column(name).cast(pl.Float64), high.get_column(name).cast(pl.Float64)
            value = a + (b - a) * pl.Series(share)
            dtype = low.schema[name]
            if dtype.is_integer():
                value = pl.select(pl.when(value < 0).then(value.ceil()).otherwise(value.floor())).to_series()
            rows = rows.with_columns(value.cast(dtype, strict=False).alias(name))
        return rows

    def blank(self, windows: pl.DataFrame) -> pl.DataFrame:
        """Rows of empty *windows* under NULL and VALUE."""
        nulls = [pl.lit(None, dtype=a.type.polars()).alias(a.name) for a in self.aggregates.items]
        rows = self.results.upserts(windows.select("_g", "_wstart", "_wend").with_columns(nulls)).rows
        return rows.with_columns(e.alias(n) for n, e in self.values.items())
