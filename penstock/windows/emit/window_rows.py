"""Result rows of windows: aggregates' final values from what is held of them, and the select list
over those.

The station between windows, whatever a kernel holds them in, and `Results`, which lays rows out.
Does not decide which windows are published.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.emit.result import Made, Results
from penstock.windows.groups.groups import Groups
from penstock.windows.rows.scope import Scope

#: what tells the windows of a plan from each other, with the end that is shown
_SPAN = ("_g", "_wstart", "_wend")


class WindowRows:
    """Makes the rows of one plan's windows."""

    def __init__(self, scope: Scope, groups: Groups, aggregates: Aggregates) -> None:
        self.results = Results(scope, groups)
        self._aggregates = aggregates

    def upserts(self, windows: pl.DataFrame, now: int) -> Made:
        """Return rows that put *windows* (`_g`, `_wstart`, `_wend` and partials), in their order.

        Args:
            now: what `_now` means in the select list, in ticks.
        """
        return self.of_partials(windows, [windows.get_column(name) for name in _SPAN], now)

    def of_partials(self, partials: pl.DataFrame, span: Sequence[pl.Series], now: int) -> Made:
        """Do what `upserts` does, of windows' *partials* and, apart, their `_g`, `_wstart` and
        `_wend`.
        """
        beside = list(span)
        if "_now" in self.results.reads:
            beside.append(pl.Series("_now", np.full(partials.height, now, np.int64)))
        return self.results.upserts(self._aggregates.finalise(partials, []).hstack(beside))

    def deletes(self, windows: pl.DataFrame) -> Made:
        """Return rows that take back what *windows* (`_g`, `_wstart`, `_wend`) had put."""
        return self.results.deletes(windows.select(_SPAN))

    def open_rows(self, windows: pl.DataFrame, now: int) -> pl.DataFrame:
        """Return the rows of *windows* as `Kernel.open_windows` gives them."""
        rows = self.upserts(windows, now).rows if windows.height else self.results.empty()
        return rows.drop("_op")
