"""Windows of a grid whose state was dropped, and that a late row reaches."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.slots import Slots
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.clocks.ticks import Mask, Ticks
from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows.counted import Counted
from penstock.windows.rows.row_reader import RowReader


class ForgottenWindows:
    """Finds such windows and computes them again from what is stored."""

    def __init__(
        self,
        reader: RowReader,
        grid: Grid,
        aggregates: Aggregates,
        slots: Slots,
        clock: GroupClock,
        counted: Counted,
        *,
        time: str,
        mark: int,
        solo: bool,
    ) -> None:
        """*time*: the time column. *mark*: DELETE_MARK in ticks; 0: none. *solo*: the rows of a
        group come from one table, so that none of its windows is ever missed.
        """
        self._reader = reader
        self._grid = grid
        self._aggregates = aggregates
        self._slots = slots
        self._clock = clock
        self._counted = counted
        self._time = time
        self._mark = mark
        self._solo = solo

    def purge(self) -> None:
        """Drop the state of closed windows behind DELETE_MARK."""
        if not self._mark or self._solo:
            return
        slots = self._slots.live()
        slots = slots[self._slots.closed[slots]]
        highest = self._clock.highest[self._slots.group[slots]]
        self._slots.free(slots[self._slots.stop[slots] < highest - self._mark])

    def find(self, owners: Numbers, indexes: Numbers, stops: Ticks) -> Mask:
        """Tell which windows had their state dropped: behind DELETE_MARK, or because history had
        closed them.
        """
        if self._solo or not (self._mark or self._clock.releases):
            return np.zeros(0, np.bool_)
        behind = self._clock.released.take(owners)
        if self._mark:
            behind = np.maximum(behind, self._clock.highest.take(owners) - self._mark)
        lost: Mask = stops < behind
        lost[lost] = self._slots.find(owners[lost], indexes[lost]) < 0
        return lost

    def bring_back(self, counted: Call, owners: Numbers, lost: Mask, call: pl.DataFrame) -> None:
        """Bring windows back into the state, each as it was stored before the first write that
        counts in it.

        Args:
            owners, lost: of each of the *counted* pairs its group, and whether it is to be brought
                back.
            call: the rows that `History` lacks yet.
        """
        chosen = lost.take(counted.place)
        pairs = counted.place[chosen]
        steps = counted.steps[counted.rows_of()[chosen]]
        windows = pl.DataFrame(
            {"_g": owners[pairs], "_i": counted.index[pairs], "_until": steps.astype(np.int64)}
        )
        windows = windows.group_by("_g", "_i").agg(pl.col("_until").min())
        start, end = self._grid.bounds(windows.get_column("_i").to_numpy())
        low = int(start.min())
        high = int(end.max()) - 1
        stored = self._counted.fetch(low, high, None)
        fresh = call.filter(pl.col(self._time).is_between(low, high))
        at = pl.concat(
            [
                pl.repeat(-1, stored.height, dtype=pl.Int64, eager=True),
                fresh.get_column("_step").cast(pl.Int64),
            ]
        )
        labelled, _ = self._reader.label(with_call(stored, fresh).with_columns(at.alias("_at")))
        left = labelled.join(windows, on=["_g", "_i"]).filter(pl.col("_at") < pl.col("_until"))
        partials = self._aggregates.partial(left, ["_g", "_i"]).sort("_g", "_i")
        groups = partials.get_column("_g").to_numpy()
        found = partials.get_column("_i").to_numpy()
        slots = self._slots.locate(groups, found, self._grid.stops(found))
        self._slots.put(slots, partials)
        concerned = np.unique(groups)
        chained = self._slots.open_of(concerned)
        self._slots.retire(concerned, chained, np.isin(chained, slots), keep=True)


def with_call(stored: pl.DataFrame, call: pl.DataFrame) -> pl.DataFrame:
    """Return *stored* rows and behind them those of the *call*, which storage lacks yet."""
    call = call.drop("_late", strict=False)
    return pl.concat([stored.select(call.columns).cast(dict(call.schema)), call])  # type: ignore[arg-type]
