"""Source rows on their way into windows of a grid: WHERE, group keys, arguments, windows."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.context import SharedAnswers
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.key_index import Numbers
from penstock.windows.groups.table_names import OneChild, TableNames
from penstock.windows.rows import columnwise
from penstock.windows.rows.counted import Counted
from penstock.windows.rows.scope import FAILURES, Scope, evaluate
from penstock.windows.rows.shared_rows import SharedRows


class RowReader:
    """Reads the rows of one plan."""

    def __init__(
        self,
        scope: Scope,
        grid: Grid,
        aggregates: Aggregates,
        groups: Groups,
        counted: Counted,
        tables: TableNames,
        reserve: Callable[[], None],
    ) -> None:
        """*tables*: numbers child tables. *reserve*: called when groups may have been added."""
        plan = scope.plan
        self._tables = tables
        self._time = plan.source.time_column
        self._grid = grid
        self._groups = groups
        self._counted = counted
        self.reserve = reserve
        #: plans with the same one read rows alike
        self.question = repr(
            (
                plan.source,
                plan.where,
                [k.sql for k in plan.keys],
                plan.window,
                plan.timezone,
                plan.functions,
                aggregates.arguments.texts,
            )
        )
        self._where = (
            Projection([scope.over_rows(plan.where).expr.alias("_pass")]) if plan.where else None
        )
        self._shared = SharedRows(scope, grid, aggregates, groups, tables, self._where)
        self._child = OneChild(plan.source.child, tables) if plan.source.child is not None else None
        keys = groups.expressions
        self._expressions = Projection(
            [*keys, *aggregates.arguments.expressions],
            [*(None for _ in keys), *aggregates.arguments.quick],
        )

    def call_among(
        self, rows: pl.DataFrame, answers: SharedAnswers
    ) -> tuple[Call | None, list[pl.DataFrame]]:
        """Do what `call` does, together with the other streams that are given these *rows*."""
        if not self._groups.common:
            return self.call(rows)
        return answers.get(rows, self.question, lambda: self._ask(rows, answers))

    def _ask(
        self, rows: pl.DataFrame, answers: SharedAnswers
    ) -> tuple[Call | None, list[pl.DataFrame]]:
        shared = self._shared
        if not (shared.able(rows, answers) and shared.evaluate(rows, answers)):
            return self.call(rows)
        return shared.call(rows, answers, lambda: self._call_of_rows(rows)), []

    def _call_of_rows(self, rows: pl.DataFrame) -> Call:
        """Return the call of rows of which some are known to count, and none fails."""
        call, _ = self.call(rows)
        assert call is not None
        return call

    def call(self, rows: pl.DataFrame) -> tuple[Call | None, list[pl.DataFrame]]:
        """Return the call that *rows* make, if WHERE passes any, and the rows that fail."""
        made, tables, failed = self.prepare(rows)
        if not made.height:
            return None, failed
        return (
            Call(made, self._time, tables, self._groups.keys_in(made, tables), self._grid),
            failed,
        )

    def prepare(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, Numbers, list[pl.DataFrame]]:
        """Return rows that pass WHERE, with `_k…` and `_x…`, their tables' numbers, and the rows on
        which an expression fails.
        """
        refused: list[pl.DataFrame] = []
        rows, tables = (
            (rows, self._tables.numbers(rows)) if self._child is None else self._child.rows(rows)
        )
        if not rows.height:
            return rows, tables, refused
        if self._where is not None:
            rows = rows.hstack([pl.Series("_tab", tables)])
            try:
                rows = columnwise.kept(rows, *self._where.columns(rows))
            except FAILURES:
                rows, failed = evaluate(rows, self._where)
                refused += _without_numbers(failed)
                rows = rows.filter(pl.col("_pass")).drop("_pass")
        if not rows.height:
            return rows, tables[:0], refused
        made, failed = evaluate(rows, self._expressions)
        if "_tab" in made.columns:
            tables = made.get_column("_tab").to_numpy()
        elif failed is not None:
            tables = self._tables.numbers(made)
        return made, tables, refused + _without_numbers(failed)

    def label(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return prepared rows, once per window that they count in, with `_g` and `_i`."""
        made, tables, failed = self.prepare(rows)
        if not made.height:
            made = evaluate(made, self._expressions)[0]
        groups = self._groups.numbers(made, tables)
        self.reserve()
        positions, indexes = self._grid.assign(made.get_column(self._time).to_numpy())
        labelled = made[positions].with_columns(
            pl.Series("_g", groups[positions]), pl.Series("_i", indexes)
        )
        labelled = labelled.filter(
            pl.Series(self._grid.stops(indexes) >= self._counted.floors(labelled).to_numpy())
        )
        return labelled, failed


def _without_numbers(failed: pl.DataFrame | None) -> list[pl.DataFrame]:
    return [] if failed is None else [failed.drop("_tab", strict=False)]
