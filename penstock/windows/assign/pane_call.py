"""A call put together from panes: the same pairs of key and window as those of the rows, and the
same values to the last bit.

Counts, minima, maxima and sums are those of panes, unless a sum of floats would be rounded: then
its rows are added one by one, as in any call. What needs the rows themselves (`first`, `stddev`,
sketches, rows that come too late) is answered by the call of the rows, which is made when it is
first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import polars as pl

from penstock.windows.assign.calls import Answered, Array, Call
from penstock.windows.assign.chunk_columns import ChunkColumns
from penstock.windows.assign.panes import WindowsOfPanes
from penstock.windows.clocks.ticks import Mask, Ticks
from penstock.windows.groups.key_index import Numbers


class PaneCall(Call):
    """A call of one stream; see the module."""

    def __init__(
        self,
        windows: WindowsOfPanes,
        columns: ChunkColumns,
        arguments: Sequence[object],
        of_rows: Callable[[], Call],
    ) -> None:
        """*arguments*: what they are called in *columns*. *of_rows*: makes the call of the rows."""
        Answered.__init__(self)
        self._windows = windows
        self._columns = columns
        self._arguments = arguments
        self._of_rows = of_rows
        self.keys = windows.chosen.keys
        self.owner = windows.owner
        self.index = windows.index
        self.stops = windows.stops
        self.told_late = False
        self._sums: dict[tuple[int, object], list[tuple[Array, Array]]] = {}

    @cached_property
    def _rows_call(self) -> Call:
        return self._of_rows()

    def without(self, dropped: Mask) -> Call:
        return self._rows_call.without(dropped)

    # ---------------------------------------------------------------- rows

    @cached_property
    def rows(self) -> pl.DataFrame:  # type: ignore[override]
        return self._rows_call.rows

    @cached_property
    def tables(self) -> Numbers:  # type: ignore[override]
        return self._rows_call.tables

    @cached_property
    def key_of(self) -> Numbers:  # type: ignore[override]
        return self._rows_call.key_of

    @cached_property
    def positions(self) -> Numbers | None:  # type: ignore[override]
        return self._rows_call.positions

    @cached_property
    def place(self) -> Numbers:  # type: ignore[override]
        return self._windows.place if self._windows.apart else self._rows_call.place

    @cached_property
    def row_times(self) -> Ticks:
        return self._rows_call.row_times

    @cached_property
    def steps(self) -> Numbers:
        return self._rows_call.steps

    @cached_property
    def lines(self) -> pl.DataFrame:
        return self._rows_call.lines

    @cached_property
    def times(self) -> Ticks:
        return self._rows_call.times

    def rows_of(self) -> Numbers:
        return self._rows_call.rows_of()

    @cached_property
    def now(self) -> int:
        return int(self._columns.appended[self._windows.chosen.last])

    # ---------------------------------------------------------------- keys

    @cached_property
    def highest(self) -> Ticks:
        return self._windows.chosen.highest

    @cached_property
    def lowest(self) -> Ticks:
        return self._windows.chosen.lowest

    @cached_property
    def earliest(self) -> int:
        return int(self.lowest.min())

    @cached_property
    def appeared(self) -> Numbers:
        return self._windows.chosen.appeared

    @cached_property
    def heard(self) -> Ticks:
        chosen = self._windows.chosen
        return chosen.of_keys(np.maximum, self._columns.appended.take(chosen.panes.order))

    @cached_property
    def descends(self) -> Mask:
        chosen = self._windows.chosen
        return chosen.once("descends", lambda: chosen.descends(self._columns.steps))

    # ---------------------------------------------------------------- pairs

    @cached_property
    def latest_last(self) -> Numbers:
        return self._windows.latest_last

    def argument(self, number: int) -> pl.Series:
        if not self._windows.apart:
            return self._rows_call.argument(number)
        passed = self._windows.chosen.passed
        values = self._columns.values(self._arguments[number])
        return values if passed is None else values.filter(pl.Series(passed))

    def counts(self, number: int) -> Array:
        if number < 0 or not self._columns.values(self._arguments[number]).null_count():
            return self._windows.counts
        argument = self._arguments[number]
        there = self._columns.values(argument).is_not_null().to_numpy().astype(np.int64)
        return self._reduce(("n", argument), np.add, lambda: there)

    def extremes(self, number: int, dtype: pl.DataType, nothing: float, chosen: np.ufunc) -> Array:
        argument = self._arguments[number]
        return self._reduce(
            (chosen, argument, dtype),
            chosen,
            lambda: self._columns.numbers(argument, dtype, nothing),
        )

    def add_to(self, number: int, dtype: pl.DataType, before: Array) -> Array:
        if before.dtype.kind == "f":
            exact = self._columns.exact(self._arguments[number])
            if exact is None or not exact.are_exact(before, self._windows.counts):
                return super().add_to(number, dtype, before)
        return before + self.totals(number, dtype)

    def totals(self, number: int, dtype: pl.DataType) -> Array:
        argument = self._arguments[number]
        return self._reduce(
            ("sum", argument, dtype), np.add, lambda: self._columns.numbers(argument, dtype, 0)
        )

    def _reduce(self, question: object, ufunc: np.ufunc, values: Callable[[], Array]) -> Array:
        """What *values*, one a row of the chunk, come to in each pair."""
        chosen = self._windows.chosen
        panes = chosen.panes

        def of_panes() -> Array:
            laid_out = panes.once(question, lambda: values().take(panes.order))
            return chosen.reduce(ufunc, laid_out)

        return self._windows.once(
            question, lambda: self._windows.reduce(ufunc, chosen.once(question, of_panes))
        )
