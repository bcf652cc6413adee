"""DELETE and RECALCULATE for a kernel of accumulators: windows computed again from stored rows.

Accumulators cannot take a row back. So the windows that a correction touches are found, their rows
are read again in all versions that count (`Counted`), and what comes of them replaces what is held.
Costs nothing while rows come.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.boundaries import Grid
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.clocks.ticks import Ticks
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.groups.key_index import Numbers
from penstock.windows.interval.forgotten_windows import with_call
from penstock.windows.interval.slot_publisher import SlotPublisher
from penstock.windows.kernel import LATEST, Control
from penstock.windows.rows.counted import Counted, standing
from penstock.windows.rows.row_reader import RowReader


class Corrections:
    """Corrects the windows of one interval kernel."""

    def __init__(
        self,
        reader: RowReader,
        counted: Counted,
        grid: Grid,
        aggregates: Aggregates,
        clock: GroupClock,
        publisher: SlotPublisher,
        *,
        time: str,
        solo: bool,
    ) -> None:
        """*time*: the time column. *solo*: the rows of a group come from one table."""
        self._reader = reader
        self._counted = counted
        self._grid = grid
        self._aggregates = aggregates
        self._clock = clock
        self._publisher = publisher
        self._time = time
        self._solo = solo
        #: event time of the earliest of all rows
        self.earliest = LATEST

    def note(self, rows: pl.DataFrame) -> None:
        """Note that *rows* are in the source: RECALCULATE STREAM may count what was left out."""
        times = rows.get_column(self._time)
        if times.len() > times.null_count():
            self.earliest = min(self.earliest, int(times.min()))  # type: ignore[arg-type]

    def delete(self, control: Control, out: EmissionBuffer) -> None:
        """Delete a range of rows: what they were in is computed again without them."""
        span = self._span(control.low, control.high)
        if span is None:
            return
        stored = self._fetch(*span, control.tables)
        chosen = pl.col(self._time).is_between(control.low, control.high)
        if control.tables is not None:
            chosen &= pl.col("tbname").str.to_lowercase().is_in([t.lower() for t in control.tables])
        self._again(stored.filter(~chosen), stored.filter(chosen), None, out)

    def remove(self, removed: pl.DataFrame, call: pl.DataFrame, out: EmissionBuffer) -> None:
        """Delete rows by key.

        Args:
            removed: rows with these keys.
            call: all rows of the call, which `History` lacks yet.
        """
        identity = self._counted.columns.identity
        for low, high in _ranges(np.unique(removed.get_column(self._time).to_numpy())):
            span = self._span(low, high)
            if span is None:
                continue
            mine = removed.filter(pl.col(self._time).is_between(low, high))
            names = mine.get_column("tbname").unique(maintain_order=True)
            stored = self._fetch(*span, names.to_list())
            recent = call.filter(pl.col(self._time).is_between(*span))
            if self._solo:
                recent = recent.filter(pl.col("tbname").is_in(names.implode()))
            both = with_call(stored, recent)
            touched = both.filter(pl.col("_op") != DELETE).join(
                mine.select(identity), on=identity, how="semi", nulls_equal=True
            )
            self._again(standing(both, identity), touched, None, out)

    def recalculate(self, control: Control, out: EmissionBuffer) -> None:
        """Compute the windows that touch a range again from stored rows."""
        span = self._span(control.low, control.high)
        if span is None:
            return
        before = self._fetch(control.low, control.high, None)
        self._counted.renew(control.low, control.high)
        stored = self._fetch(*span, None)
        slots = self._publisher.slots.live()
        first = self._grid.first(np.array([control.low]).clip(*span))
        last = self._grid.last(np.array([control.high]).clip(*span))
        indexes = self._publisher.slots.index[slots]
        inside = stored.filter(pl.col(self._time).is_between(control.low, control.high))
        touched = pl.concat([before, inside])
        self._again(stored, touched, slots[(indexes >= first) & (indexes <= last)], out)

    def _span(self, low: int, high: int) -> tuple[int, int] | None:
        """Return the first and last tick of the windows that touch low..high and can have rows;
        None: there are none.
        """
        low = max(low, self.earliest)
        high = min(high, self._clock.latest())
        if low > high:
            return None
        edges = np.array([low, high], np.int64)
        start, end = self._grid.bounds(
            np.array([self._grid.first(edges)[0], self._grid.last(edges)[1]])
        )
        return int(start[0]), int(end[1]) - 1

    def _fetch(self, low: int, high: int, tables: Sequence[str] | None) -> pl.DataFrame:
        return self._counted.fetch(low, high, tables if self._solo else None)

    def _again(
        self,
        rows: pl.DataFrame,
        touched: pl.DataFrame,
        slots: Numbers | None,
        out: EmissionBuffer,
    ) -> None:
        """Compute the windows that *touched* rows were in (and those in *slots*) anew from
        *rows*.
        """
        gone, failed = self._reader.label(touched)
        affected = gone.select("_g", "_i")
        if slots is not None:
            held = self._publisher.slots
            more = pl.DataFrame({"_g": held.group[slots], "_i": held.index[slots]})
            affected = pl.concat([affected, more])
        affected = affected.unique()
        left, failed_too = self._reader.label(rows)
        left = left.join(affected, on=["_g", "_i"], how="semi")
        partials = self._aggregates.partial(left, ["_g", "_i"]).sort("_g", "_i")
        empty = affected.join(partials.select("_g", "_i"), on=["_g", "_i"], how="anti")
        out.failed += failed + failed_too
        self._publisher.replace(partials, empty.sort("_g", "_i"), out)


def _ranges(times: Ticks) -> list[tuple[int, int]]:
    """Return a few ranges that cover sorted *times*: near neighbours go together."""
    if len(times) <= 16:
        return [(int(t), int(t)) for t in times]
    return [(int(times[0]), int(times[-1]))]
