"""Rows that come too late for a window of a grid."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.assign.calls import Call
from penstock.windows.clocks.clock import GroupClock, TableClock
from penstock.windows.clocks.ticks import NEVER, Mask, Ticks, previous_max
from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows import columnwise
from penstock.windows.rows.counted import Counted


class LatePairs:
    """Judges the pairs of row and window of a call."""

    def __init__(
        self, clock: GroupClock, tables: TableClock, counted: Counted, *, whole: bool
    ) -> None:
        """*whole*: a group is a table, so that who is late for the one is late for the other."""
        self._clock = clock
        self._tables = tables
        self._counted = counted
        self._whole = whole

    def advance(self, call: Call) -> None:
        """Take the times of the call's rows over into what is known of their tables."""
        if self._judges_tables(call):
            self._tables.advance(call.tables, call.row_times)

    def _judges_tables(self, call: Call) -> bool:
        """Tell whether a row's being late for its table has to be found out here, and is not its
        group's matter.
        """
        return not self._whole and not call.told_late

    def find(self, call: Call, groups: Numbers, before: Ticks, over: Mask) -> Mask | None:
        """Find the pairs of row and window that are dropped: the window was over before the row's
        write, and the row is late for its table.

        Args:
            groups, before: of each key its group, and the group's highest time before the call.
            over: which pairs' windows are over now. Returns None if none is dropped.
        """
        judged = self._judges_tables(call)
        told = not judged and call.told_late
        if not (judged or told):  # then who is late for its table is late for its group
            suspects = call.descends | (call.lowest < before)
            if not (over & suspects.take(call.owner)).any():
                return None
        key_of = call.key_of
        times = call.row_times
        steps = call.steps
        rows_of = call.rows_of()
        concerned = np.zeros(len(call.keys), np.bool_)
        concerned[call.owner[over]] = True
        among = np.flatnonzero(concerned.take(key_of))
        previous = np.full(len(key_of), NEVER, np.int64)
        previous[among] = previous_max(
            key_of[among], times[among], steps[among], before[key_of[among]]
        )
        overdue = over.take(call.place) & (
            call.stops.take(call.place) < self._clock.t_of(previous, groups.take(key_of))[rows_of]
        )
        if judged:
            rows_overdue = np.zeros(len(key_of), np.bool_)
            rows_overdue[rows_of[overdue]] = True
            late = self._tables.late(call.tables, times, steps, rows_overdue)
        elif told:
            late = call.rows.get_column("_late").to_numpy()
        else:
            late = times < previous
        expired: Mask = overdue & late[rows_of]
        return expired if expired.any() else None

    def remember(self, call: Call, expired: Mask) -> None:
        """Note which pairs are dropped: storage has the rows."""
        floors = np.full(call.rows.height, NEVER, np.int64)
        np.maximum.at(floors, call.rows_of()[expired], call.stops.take(call.place)[expired] + 1)
        lost = call.rows.select(*self._counted.columns.identity, "_offset").with_columns(
            pl.Series("_floor", floors)
        )
        self._counted.lose(lost.filter(pl.Series(floors != NEVER)))

    @staticmethod
    def rows_lost(call: Call, expired: Mask, columns: list[str]) -> pl.DataFrame | None:
        """Return the rows that are expired for each of their windows."""
        rows_of = call.rows_of()
        counted = np.zeros(call.rows.height, np.bool_)
        counted[rows_of[~expired]] = True
        lost = np.zeros(call.rows.height, np.bool_)
        lost[rows_of[expired]] = True
        lost &= ~counted
        return columnwise.kept(call.rows.select(columns), lost) if lost.any() else None

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """Return how far tables have come, as changed since the last call, where that matters."""
        return {} if self._whole else {"tables": self._tables.delta(full)}

    def restore(self, frames: dict[str, pl.DataFrame]) -> None:
        """Take over what `delta` gave."""
        if "tables" in frames:
            self._tables.restore(frames["tables"])
