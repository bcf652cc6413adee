"""Windows of accumulators → result rows: which of them a call publishes, and which are over.

Owns the trigger of the INTERVAL kernel over arrays of slots: AT_ONCE publishes what rows have
touched, WINDOW_CLOSE what T has passed, and again what touches it afterwards. Where a group is one
table (`solo`), a window that is over can never get another row and its state goes at once;
otherwise it stays for slower tables. Does not know rows.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.accumulate.slots import Slots
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.result import Made
from penstock.windows.emit.window_rows import WindowRows
from penstock.windows.groups.key_index import Numbers


class SlotPublisher:
    """Publishes the windows of one interval kernel."""

    def __init__(
        self,
        slots: Slots,
        grid: Grid,
        clock: GroupClock,
        rows: WindowRows,
        *,
        at_once: bool,
        solo: bool,
        shows_open: bool,
    ) -> None:
        """
        Args:
            at_once: the trigger is AT_ONCE; otherwise WINDOW_CLOSE.
            solo: the rows of a group come from one table.
            shows_open: windows that are open may have been published.
        """
        self.slots = slots
        self.rows = rows
        self._grid = grid
        self._clock = clock
        self._at_once = at_once
        self._solo = solo
        self._shows_open = at_once or shows_open
        #: append time of the latest row, or the latest tick
        self.now = 0

    def publish(self, call: Call, slots: Numbers, groups: Numbers, out: EmissionBuffer) -> None:
        """Publish what *call* has changed, and close what is over.

        Args:
            slots: of the call's pairs.
            groups: those with windows that may be over now.
        """
        self._publish(self._slots_to_publish(slots, call), groups, out)

    def close(self, groups: Numbers, out: EmissionBuffer) -> None:
        """Raise T of *groups* above their open windows, and publish what that closes."""
        chained = self.slots.open_of(groups)
        owners = self.slots.group[chained]
        self._clock.raise_floor(owners, self.slots.stop[chained] + 1)
        self._publish(np.empty(0, np.int64), np.unique(owners), out)

    def publish_history(
        self, call: Call, slots: Numbers, groups: Numbers, out: EmissionBuffer
    ) -> None:
        """Publish all that history touches, open or not, and let go of what is over.

        Args:
            slots, groups: of the call's pairs and of its keys.
        """
        out.put(self._make_rows(slots[call.latest_last]))
        chained = self.slots.open_of(groups)
        over = self.slots.stop[chained] < self._clock.t(self.slots.group[chained])
        # published already: closing adds nothing, and a slower table's row reads the window again
        self.slots.retire(groups, chained, over, keep=False)
        if not self._solo:
            self._clock.release(groups)

    def _slots_to_publish(self, slots: Numbers, call: Call) -> Numbers:
        """Return those of the pairs' *slots* whose new values are to be published now, in order of
        their last rows.
        """
        if self._at_once:
            return slots[call.latest_last]
        again = self.slots.closed.take(slots)
        if not again.any():
            return slots[:0]
        in_order = call.latest_last
        return slots[in_order[again[in_order]]]

    def _publish(self, touched: Numbers, groups: Numbers, out: EmissionBuffer) -> None:
        """Publish the *touched* windows, and close what is over in *groups*."""
        slots = touched
        chained = self.slots.open_of(groups) if len(groups) else groups
        over = self.slots.stop[chained] < self._clock.t(self.slots.group[chained])
        if not self._at_once:
            slots = np.concatenate((slots, chained[over & ~self.slots.closed[chained]]))
        if len(slots):
            out.put(self._make_rows(slots))
        if not len(chained):
            return
        self.slots.mark_closed(chained[over])
        if self._solo:
            reached = self._clock.reached(self.slots.group[chained])
            self.slots.retire(groups, chained, self.slots.stop[chained] < reached, keep=False)
        else:
            self.slots.retire(groups, chained, over, keep=True)

    def _make_rows(self, slots: Numbers) -> Made:
        """Return the rows of the windows in *slots*."""
        groups = self.slots.group[slots]
        return self._rows_of(groups, self.slots.index[slots], self.slots.partials(slots))

    def _rows_of(self, groups: Numbers, indexes: Numbers, partials: pl.DataFrame) -> Made:
        return self.rows.of_partials(partials, self._span_of(groups, indexes), self.now)

    def _span_of(self, groups: Numbers, indexes: Numbers) -> list[pl.Series]:
        """Return `_g`, `_wstart` and `_wend` of windows."""
        start, end = self._grid.bounds(indexes)
        return [pl.Series("_g", groups), pl.Series("_wstart", start), pl.Series("_wend", end)]

    def open_rows(self) -> pl.DataFrame:
        """Return the rows of the windows that are not closed, as `Kernel.open_windows` does."""
        slots = self.slots.live()
        slots = slots[~self.slots.closed[slots]]
        slots = slots[np.lexsort((self.slots.index[slots], self.slots.group[slots]))]
        if not len(slots):
            return self.rows.no_open_rows()
        groups = self.slots.group[slots]
        span = self._span_of(groups, self.slots.index[slots])
        windows = self.slots.partials(slots).hstack(span)
        return self.rows.open_rows(windows, self.now, self._clock.t(groups))

    # ---------------------------------------------------------------- computed again

    def replace(self, partials: pl.DataFrame, empty: pl.DataFrame, out: EmissionBuffer) -> None:
        """Put windows that were computed again into the state, take empty ones out, and publish
        both.

        Args:
            partials: `_g`, `_i` (the window's number in the grid) and what is held of each.
            empty: `_g` and `_i` of windows that have no rows any more.
        """
        groups = partials.get_column("_g").to_numpy()
        indexes = partials.get_column("_i").to_numpy()
        stops = self._grid.stops(indexes)
        closed = stops < self._clock.t(groups)
        held = np.ones(len(groups), np.bool_)
        if self._solo:
            held = stops >= self._clock.reached(groups)
        slots = self.slots.locate(groups[held], indexes[held], stops[held])
        self.slots.put(slots, partials.filter(pl.Series(held)))
        if not self._solo and closed.any():
            owners = np.unique(groups[closed])
            chained = self.slots.open_of(owners)
            over = self.slots.stop[chained] < self._clock.t(self.slots.group[chained])
            self.slots.retire(owners, chained, over, keep=True)
        self.slots.mark_closed(slots[closed[held]])
        shown = np.ones(len(groups), np.bool_) if self._at_once else closed
        made = self._rows_of(groups[shown], indexes[shown], partials.filter(pl.Series(shown)))
        out.put(self._drop_windows(empty))
        out.put(made)

    def _drop_windows(self, empty: pl.DataFrame) -> Made:
        """Take windows out of the state, and return what takes their rows back."""
        groups = empty.get_column("_g").to_numpy()
        indexes = empty.get_column("_i").to_numpy()
        found = self.slots.find(groups, indexes)
        self.slots.drop(found[found >= 0])
        start, end = self._grid.bounds(indexes)
        shown = np.ones(len(start), np.bool_)
        if not self._shows_open:
            shown = end - 1 < self._clock.t(groups)
        gone = {"_g": groups[shown], "_wstart": start[shown], "_wend": end[shown]}
        return self.rows.deletes(pl.DataFrame(gone))
