"""What several streams find out about the same rows, by the parts of their plans: each condition,
each argument and each layout of rows in panes is worked out once a chunk, whoever asks for it.

Answers only where nothing depends on which rows an expression is given: if one fails on any row of
the chunk, the stream reads its rows by itself. Does not know what a kernel has had before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from penstock import tuning
from penstock.sql.plan import StreamPlan
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.assign.chunk_columns import ChunkColumns
from penstock.windows.assign.pane_call import PaneCall
from penstock.windows.assign.panes import ChosenRows, Panes, WindowsOfPanes
from penstock.windows.clocks.ticks import Mask
from penstock.windows.context import SharedAnswers
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows.scope import FAILURES, Scope


@dataclass(frozen=True)
class _Passed:
    """The rows that a condition lets pass: `passed` None means all. Conditions that let the same
    rows pass have the same `text`.
    """

    text: bytes
    passed: Mask | None
    none: bool


class _Questions(NamedTuple):
    """What a plan asks of rows; plans that ask the same are given the same answers."""

    condition: tuple[object, ...]
    columns: tuple[object, ...]
    layout: tuple[object, ...]
    windows: tuple[object, ...]

    @classmethod
    def of(cls, plan: StreamPlan, groups: Groups) -> _Questions:
        """The questions of *plan*, whose results are of *groups*."""
        meaning = repr((plan.source, plan.timezone))
        return cls(
            condition=("condition", meaning, plan.where),
            columns=("columns", meaning),
            layout=("layout", bool(groups.columns)),
            windows=("windows", repr(plan.window)),
        )


class SharedRows:
    """The way of one plan through rows that many streams read."""

    def __init__(
        self,
        scope: Scope,
        grid: Grid,
        aggregates: Aggregates,
        groups: Groups,
        tables: TableNames,
        where: Projection | None,
    ) -> None:
        """*tables*: numbers child tables. *where*: makes one column, whether a row counts."""
        plan = scope.plan
        self._time = plan.source.time_column
        self._grid = grid
        self._groups = groups
        self._tables = tables
        self._where = where
        self._unit = grid.unit
        #: functions of users are called for no other rows than those that count
        self._able = bool(
            self._unit and groups.by_name and plan.source.child is None and not plan.functions
        )
        self._questions = _Questions.of(plan, groups)
        self._arguments = aggregates.arguments.texts
        self._projections = [
            Projection([expression], [quick])
            for expression, quick in zip(
                aggregates.arguments.expressions, aggregates.arguments.quick, strict=True
            )
        ]

    def able(self, rows: pl.DataFrame, answers: SharedAnswers) -> bool:
        """Tell whether *rows* are worth sharing, and can be."""
        return (
            self._able
            and answers.streams(rows) >= tuning.STREAMS_SHARING_PANES
            and rows.height >= tuning.ROWS_LAID_OUT_IN_PANES
            and "_late" not in rows.columns
        )

    def evaluate(self, rows: pl.DataFrame, answers: SharedAnswers) -> bool:
        """Work out the plan's condition and arguments, if nobody has; False: one of them fails on
        some row.
        """
        try:
            if answers.get(rows, self._questions.condition, lambda: self._filter_rows(rows)).none:
                return True
            columns = answers.get(rows, self._questions.columns, lambda: ChunkColumns(rows))
            for argument, projection in zip(self._arguments, self._projections, strict=True):
                if not columns.holds(argument):
                    columns.put(argument, projection.columns(rows)[0])
        except FAILURES:
            return False
        return True

    def call(
        self, rows: pl.DataFrame, answers: SharedAnswers, of_rows: Callable[[], Call]
    ) -> Call | None:
        """Return the call that *rows* make, for which `evaluate` was successful; None if none of
        them counts.

        Args:
            of_rows: makes the same call of the rows alone.
        """
        passed = answers.get(rows, self._questions.condition, lambda: self._filter_rows(rows))
        if passed.none:
            return None
        columns = answers.get(rows, self._questions.columns, lambda: ChunkColumns(rows))
        panes = self._panes(rows, answers)
        layout = (*self._questions.layout, panes.unit)
        chosen = answers.get(
            rows, ("chosen", layout, passed.text), lambda: ChosenRows(panes, passed.passed)
        )
        windows = chosen.once(self._questions.windows, lambda: WindowsOfPanes(chosen, self._grid))
        return PaneCall(windows, columns, self._arguments, of_rows)

    def _filter_rows(self, rows: pl.DataFrame) -> _Passed:
        if self._where is None:
            return _Passed(b"", None, none=False)
        found = self._where.columns(rows)[0].fill_null(value=False).to_numpy()
        if found.all():
            return _Passed(b"", None, none=False)
        return _Passed(np.packbits(found).tobytes(), found, none=not found.any())

    def _panes(self, rows: pl.DataFrame, answers: SharedAnswers) -> Panes:
        """Return the rows in panes that this plan's windows can be put together from."""
        known: list[Panes] = answers.get(rows, self._questions.layout, list)
        for panes in known:
            finer = len(panes) * tuning.ROWS_PER_FINER_PANE <= rows.height
            if panes.unit == self._unit or (finer and not self._unit % panes.unit):
                return panes
        tables = self._tables.numbers(rows)
        times = rows.get_column(self._time).to_numpy()
        panes = Panes(times, self._groups.keys_in(rows, tables), self._unit)
        known.append(panes)
        return panes
