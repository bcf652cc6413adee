"""Result rows of windows: aggregates' final values from what is held of them, and the select list
over those.

The station between windows, whatever a kernel holds them in, and `Results`, which lays rows out.
Does not decide which windows are published.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from penstock.sql.plan import OPEN_SPAN
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.emit.result import Made, Results
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.key_index import Numbers
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

    def of_partials(
        self,
        partials: pl.DataFrame,
        span: Sequence[pl.Series],
        now: int,
        shown: Sequence[str] = (),
    ) -> Made:
        """Do what `upserts` does, of windows' *partials* and, apart, their `_g`, `_wstart` and
        `_wend`.

        Args:
            shown: names of more series in *span* that the rows have as they are.
        """
        beside = list(span)
        if "_now" in self.results.reads:
            beside.append(pl.Series("_now", np.full(partials.height, now, np.int64)))
        return self.results.upserts(self._aggregates.finalise(partials, []).hstack(beside), shown)

    def deletes(self, windows: pl.DataFrame) -> Made:
        """Return rows that take back what *windows* (`_g`, `_wstart`, `_wend`) had put."""
        return self.results.deletes(windows.select(_SPAN))

    def open_rows(self, windows: pl.DataFrame, now: int, t: Numbers) -> pl.DataFrame:
        """Return the rows of *windows* as `Kernel.open_windows` gives them.

        Args:
            t: T of the group of each.
        """
        if not windows.height:
            return self.no_open_rows()
        span = [windows.get_column(name) for name in _SPAN]
        start, end, reached = OPEN_SPAN
        shown = [span[1].alias(start), span[2].alias(end), pl.Series(reached, t)]
        return self.of_partials(windows, [*span, *shown], now, OPEN_SPAN).rows.drop("_op")

    def no_open_rows(self) -> pl.DataFrame:
        """Return what `open_rows` does where no window is open."""
        nothing = (pl.Series(name, [], pl.Int64) for name in OPEN_SPAN)
        return self.results.empty().drop("_op").with_columns(nothing)
