"""FILL of a query: rows for the empty windows of each partition, out to the ends of the range that
WHERE names.

A stream fills between windows that it has published (`penstock.windows.emit.fill`). A query knows
all windows at once and the range it was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from sqlglot import exp

from penstock.sql.plan import Column, Interval, Output, StreamPlan
from penstock.sql.statements import Query
from penstock.windows.assign.boundaries import Grid
from penstock.windows.emit.fill import between, given_value
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import Scope

#: most rows that FILL makes of one select
MOST_ROWS = 5_000_000
#: aggregates that give a value of one row
_OF_A_ROW = ("companion", "last_row")
_AGGREGATE = re.compile(r"\b_a\d+\b")
_PARTITION = "_penstock_partition"
_INDEX = "_penstock_index"
_THERE = "_penstock_there"


@dataclass(frozen=True)
class FillClause:
    """FILL as it stands at *node*, and how far it goes: from the window with one tick to that with
    another, if there is a range; *forced* also where no window has rows.
    """

    statement: Query
    node: exp.Expr
    ends: tuple[int, int] | None = None
    forced: bool = False


class QueryFill:
    """Fills the windows of one plan, at a moment in ticks."""

    def __init__(self, plan: StreamPlan, clause: FillClause, moment: int) -> None:
        assert isinstance(plan.window, Interval)
        self._plan = plan
        self._clause = clause
        self._moment = moment
        self._grid = Grid(plan.window, plan.source.precision, plan.timezone)
        self._scope = Scope(plan)
        self._columns = list(zip(plan.target.columns, plan.outputs, strict=True))
        self._start = plan.target.columns[0].name
        self._tags = {tag.name for tag in plan.source.tags}
        #: of each partition key the column that has it
        self._keys = {o.sql: c.name for c, o in self._columns if re.fullmatch(r"_k\d+", o.sql)}

    def fill(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return *rows*, the columns of the target in ticks and whatever is the same in a
        partition, and those of the empty windows.

        Raises:
            SqlSemanticError: these are too many.
        """
        keys = [self._keys[f"_k{i}"] for i in range(len(self._plan.keys))]
        indexed = rows.with_columns(self._index(rows.get_column(self._start)).alias(_INDEX))
        spans = self._spans(indexed, keys)
        every = spans.with_columns(pl.int_ranges("_first", pl.col("_last") + 1).alias(_INDEX))
        every = every.explode(_INDEX).drop("_first", "_last")
        known = indexed.with_columns(pl.lit(value=True).alias(_THERE))
        joined = every.join(known, on=[*keys, _INDEX], how="left", nulls_equal=True)
        joined = joined.sort(_PARTITION, _INDEX).with_columns(pl.col(_THERE).fill_null(value=False))
        return self._fill(joined, rows.columns)

    def _index(self, ticks: pl.Series) -> pl.Series:
        return pl.Series(self._grid.last(ticks.to_numpy()), dtype=pl.Int64)

    def _spans(self, indexed: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
        """Return the first and the last window of each partition."""
        ends = (pl.col(_INDEX).min().alias("_first"), pl.col(_INDEX).max().alias("_last"))
        if keys:
            spans = indexed.group_by(keys, maintain_order=True).agg(*ends)
        else:
            spans = indexed.select(*ends).drop_nulls()
        if self._clause.ends is not None:
            first, last = self._index(pl.Series(self._clause.ends, dtype=pl.Int64))
            if not spans.height and self._clause.forced and not keys:
                spans = pl.DataFrame({"_first": [first], "_last": [last]})
            spans = spans.with_columns(
                pl.min_horizontal("_first", pl.lit(first)), pl.max_horizontal("_last", pl.lit(last))
            )
        count = spans.select((pl.col("_last") - pl.col("_first") + 1).sum()).item()
        if count > MOST_ROWS:
            raise self._clause.statement.error(
                f"FILL would make {count} rows, and {MOST_ROWS} is the most",
                self._clause.node,
                code="E_RESULT_TOO_LARGE",
                hint="write a shorter range of times in WHERE, or longer windows",
            )
        return spans.with_row_index(_PARTITION)

    def _fill(self, joined: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
        """Return *joined* with the values of the rows that were not there."""
        windows = self._windows(joined)
        starts = windows.get_column("_wstart")
        made = [
            self._column(column, output, joined, windows, starts)
            for column, output in self._columns
        ]
        of_partition = [name for name in names if name not in {c.name for c, _ in self._columns}]
        made += [self._nearest(joined, name) for name in of_partition]
        return pl.DataFrame(made)

    def _windows(self, joined: pl.DataFrame) -> pl.DataFrame:
        """Return what expressions over empty windows may read."""
        index = joined.get_column(_INDEX).to_numpy()
        start = pl.Series("_wstart", self._grid.start(index), dtype=pl.Int64)
        end = pl.Series("_wend", self._grid.end(index), dtype=pl.Int64)
        keys = [joined.get_column(name).alias(key) for key, name in self._keys.items()]
        now = pl.repeat(self._moment, joined.height, dtype=pl.Int64, eager=True).alias("_now")
        return pl.DataFrame([start, end, (end - start).alias("_wduration"), now, *keys])

    def _column(
        self,
        column: Column,
        output: Output,
        joined: pl.DataFrame,
        windows: pl.DataFrame,
        starts: pl.Series,
    ) -> pl.Series:
        found = joined.get_column(column.name)
        position = self._plan.outputs.index(output)
        values = self._plan.fill.values
        given = values[position] if position < len(values) else None
        if not _AGGREGATE.search(output.sql):
            filled = self._compute(column, output, windows)
        elif given is not None:
            filled = windows.select(given_value(self._scope, column, given)).to_series()
        elif self._is_tag(output):
            return self._nearest(joined, column.name)
        else:
            filled = self._sought(column, joined, starts)
        return found.zip_with(joined.get_column(_THERE), _long(filled, joined.height)).alias(
            column.name
        )

    def _compute(self, column: Column, output: Output, windows: pl.DataFrame) -> pl.Series:
        """Return what follows from the window and its partition."""
        made = self._scope.over_windows(output.sql)
        plan = self._plan
        value = cast_expression(
            made.expr, made.type, column.type, plan.source.precision, plan.target.precision
        )
        return windows.select(value.cast(column.type.polars(), strict=False)).to_series()

    def _is_tag(self, output: Output) -> bool:
        """Tell if *output* is made of tags of the one table that a partition is."""
        names = set(_AGGREGATE.findall(output.sql))
        by_table = any(key.sql == "tbname" for key in self._plan.keys)
        return by_table and all(
            a.sql in self._tags and a.function in _OF_A_ROW
            for a in self._plan.aggregates
            if a.name in names
        )

    def _nearest(self, joined: pl.DataFrame, name: str) -> pl.Series:
        """Return a column that has one value in a partition."""
        value = pl.col(name)
        both = value.forward_fill().over(_PARTITION), value.backward_fill().over(_PARTITION)
        return joined.select(pl.coalesce(value, *both)).to_series().alias(name)

    def _sought(self, column: Column, joined: pl.DataFrame, starts: pl.Series) -> pl.Series:
        """Return the values that FILL takes from the nearest windows that have one."""
        value = pl.col(column.name)
        mode = self._plan.fill.mode
        if mode == "prev":
            return joined.select(value.forward_fill().over(_PARTITION)).to_series()
        if mode == "next":
            return joined.select(value.backward_fill().over(_PARTITION)).to_series()
        between_values = column.type.numeric or column.type.kind == "TIMESTAMP"
        if mode == "linear" and between_values:
            return self._interpolate(column.name, joined, starts)
        return pl.Series([None], dtype=joined.schema[column.name])

    def _interpolate(self, name: str, joined: pl.DataFrame, starts: pl.Series) -> pl.Series:
        known = joined.select(
            _PARTITION, pl.col(name).alias("_v"), pl.lit(starts).alias("_t")
        ).with_columns(pl.when(pl.col("_v").is_not_null()).then("_t").alias("_known"))
        sides = known.with_columns(
            pl.col("_v", "_known").forward_fill().over(_PARTITION).name.suffix("_low"),
            pl.col("_v", "_known").backward_fill().over(_PARTITION).name.suffix("_high"),
        )
        low = sides.get_column("_known_low").fill_null(0).to_numpy()
        high = sides.get_column("_known_high").fill_null(0).to_numpy()
        made = between(
            sides.get_column("_v_low"),
            sides.get_column("_v_high"),
            starts.to_numpy() - low,
            np.maximum(high - low, 0),
        )
        both = sides.get_column("_v_low").is_not_null() & sides.get_column("_v_high").is_not_null()
        return made.zip_with(both, pl.Series([None], dtype=made.dtype))


def _long(values: pl.Series, height: int) -> pl.Series:
    """Return *values* with *height* lines: a literal stands alone."""
    return values if len(values) == height else values.new_from_index(0, height)
