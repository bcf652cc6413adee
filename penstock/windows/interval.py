"""INTERVAL windows from accumulators: the fast kernel of AT_ONCE and WINDOW_CLOSE.

Owns plans with IGNORE EXPIRED 1, IGNORE UPDATE 1, no FILL, no NOTIFY, over a source that is no
stream's result (`supports`): then a row once counted stays counted, and a window is its
accumulators. Only DELETE and RECALCULATE go back to the rows, through `counted`: to all their
versions that counted. Everything is judged per client write: a row that comes after its window was
closed by an earlier write of the same call is dropped exactly as if each write were a call; a call
in which no row lies in a window that is over by its end skips that work.

T of a group is its highest time minus the watermark, or what FLUSH and the idle time-out raised it
to. A row is expired for a window that ends before T if it is also out of order for its own table.
Where a group is one table (`solo`), a window that is over can never get another row and its state
goes at once; otherwise it stays, for slower tables, until DELETE_MARK. A window that history has
closed goes at once, too: filling takes the memory of a stretch and not of history, and a slower
table's row has it read again. Refuses to hold rows: late ones are handed back, not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.rows.few import Few
from penstock.rows.versions import DELETE, without_clears
from penstock.sql.plan import Interval, StreamPlan
from penstock.windows import columnwise
from penstock.windows.aggregates import Aggregates
from penstock.windows.boundaries import Grid
from penstock.windows.calls import Call
from penstock.windows.clock import GroupClock, TableClock
from penstock.windows.context import KernelContext
from penstock.windows.counted import Counted, standing
from penstock.windows.emissions import combine, stack
from penstock.windows.fewrows import FewResults, Picked
from penstock.windows.fewwindows import few_windows
from penstock.windows.forgotten_windows import ForgottenWindows, with_call
from penstock.windows.groups import Groups
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History, since_full
from penstock.windows.key_index import Numbers
from penstock.windows.late_pairs import LatePairs
from penstock.windows.result import Results
from penstock.windows.row_reader import RowReader
from penstock.windows.scope import Scope
from penstock.windows.slots import Slots
from penstock.windows.ticks import Ticks

Mask = npt.NDArray[np.bool_]


def supports(plan: StreamPlan) -> bool:
    """Whether *plan* is one of this kernel's."""
    return (
        isinstance(plan.window, Interval)
        and plan.trigger.kind in ("at_once", "window_close")
        and plan.ignore_expired
        and plan.ignore_update
        and plan.fill.mode == "none"
        and plan.notify is None
        and plan.source.result_of is None
        and plan.source.kind != "virtual"
        and plan.target.key_column is None
    )


class IntervalKernel:
    """One plan over one ordered input."""

    def __init__(
        self,
        plan: StreamPlan,
        history: History | None = None,
        context: KernelContext | None = None,
    ) -> None:
        """*context*: what it has in common with other kernels; None: nothing."""
        context = context or KernelContext()
        self._answers = context.answers
        assert isinstance(plan.window, Interval)
        self.plan = plan
        self._history = history
        scope = Scope(plan)
        self._time = plan.source.time_column
        self._counted = Counted(plan, history)
        self._grid = Grid(plan.window, plan.source.precision, plan.timezone)
        self._aggregates = Aggregates(scope)
        self._groups = Groups(scope, context.tables)
        self._results = Results(scope, self._groups)
        self._reader = RowReader(
            scope,
            self._grid,
            self._aggregates,
            self._groups,
            self._counted,
            context.tables,
            self._reserve,
        )
        self._slots = Slots(self._aggregates)
        self._at_once = plan.trigger.kind == "at_once"
        self._mark = plan.delete_mark.ticks(plan.source.precision) if plan.delete_mark else 0
        self._idle = plan.idle_timeout.ticks(plan.source.precision) if plan.idle_timeout else 0
        self._solo = self._groups.solo
        self._clock = GroupClock(plan.watermark.ticks(plan.source.precision))
        self._tables = TableClock(context.tables)
        self._late = LatePairs(self._clock, self._tables, self._counted, whole=self._groups.whole)
        self._forgotten = ForgottenWindows(
            self._reader,
            self._grid,
            self._aggregates,
            self._slots,
            self._clock,
            self._counted,
            time=self._time,
            mark=self._mark,
            solo=self._solo,
        )
        self._now = 0
        self._earliest = LATEST  # of all rows
        picked = Picked(plan.source.child, scope.over_rows(plan.where).expr if plan.where else None)
        self._few = few_windows(
            scope,
            picked,
            self._grid,
            self._aggregates,
            self._groups,
            self._results,
            self._slots,
            self._clock,
        )

    # ---------------------------------------------------------------- rows

    def apply(self, rows: pl.DataFrame) -> Emission:
        if not rows.height:
            return Emission()
        rows = without_clears(rows)
        self._counted.begin(rows)
        removed = self._answers.get(rows, "removed", lambda: _removed(rows))
        if removed is None:
            return self._count(rows)
        emission = self._count(columnwise.kept(rows, ~removed))
        return combine(
            emission, self._remove(columnwise.kept(rows, removed), rows), self._results.time
        )

    def few(self, rows: Few) -> FewResults | None:
        """See `TakesFew`."""
        made = None if self._few is None or self._counted.first is None else self._few.count(rows)
        if made is None:
            return None
        results, earliest, came = made
        if came >= 0:
            self._now, self._earliest = came, min(self._earliest, earliest)
        return results

    def _count(self, rows: pl.DataFrame) -> Emission:
        """Count *rows* in their windows and publish what that changes."""
        call, failed = (
            self._answers.get(rows, self._reader.question, lambda: self._reader.call(rows))
            if self._groups.common
            else self._reader.call(rows)
        )
        if call is None:
            return Emission(failed=failed)
        self._now = int(call.rows.get_column("_now")[-1])
        groups = self._groups.of_keys(call.keys, lambda: call.keys[call.appeared])
        self._reserve()
        before = self._clock.highest.take(groups)
        self._advance(call, groups)
        now = self._clock.t(groups)
        owners = groups.take(call.owner)
        over = call.stops < now.take(call.owner)
        late: pl.DataFrame | None = None
        counted = call
        if over.any():
            expired = self._late.find(call, groups, before, over)
            if expired is not None:
                late = self._late.rows_lost(call, expired, rows.columns)
                self._late.remember(call, expired)
                counted = call.without(expired)
                owners = groups.take(counted.owner)
        if self._late.judges_tables(call.rows):
            self._tables.advance(call.tables, call.row_times)
        lost = self._forgotten.find(owners, counted.index, counted.stops)
        if lost.any():
            self._forgotten.bring_back(counted, owners, lost, rows)
        slots = self._slots.locate(owners, counted.index, counted.stops)
        self._slots.add(slots, counted)
        closing = self._slots.oldest.take(groups) < now
        made = self._publish(self._changed(slots, counted), groups[closing])
        return Emission(made.rows, late=late, failed=stack(failed, made.failed), hashes=made.hashes)

    def _advance(self, call: Call, groups: Numbers) -> None:
        """Take the times of the call's rows over into what is known of its keys' *groups*."""
        self._clock.advance(groups, call.highest, call.heard if self._idle else None)
        self._earliest = min(self._earliest, call.earliest)

    def _reserve(self) -> None:
        self._clock.reserve(len(self._groups))
        self._slots.reserve_groups(len(self._groups))

    # ---------------------------------------------------------------- publishing

    def _changed(self, slots: Numbers, call: Call) -> Numbers:
        """Those of the pairs' *slots* whose new values are to be published now, in order of their
        last rows.
        """
        if self._at_once:
            return slots[call.latest_last]
        again = self._slots.closed.take(slots)
        if not again.any():
            return slots[:0]
        in_order = call.latest_last
        return slots[in_order[again[in_order]]]

    def _publish(self, touched: Numbers, groups: Numbers) -> Emission:
        """Publish the *touched* windows, and close what is over in *groups*."""
        slots = touched
        chained = self._slots.open_of(groups) if len(groups) else groups
        over = self._slots.stop[chained] < self._clock.t(self._slots.group[chained])
        if not self._at_once:
            slots = np.concatenate((slots, chained[over & ~self._slots.closed[chained]]))
        frame = self._windows(slots) if len(slots) else None
        if len(chained):
            self._slots.mark_closed(chained[over])
            if self._solo:
                reached = self._clock.reached(self._slots.group[chained])
                self._slots.retire(groups, chained, self._slots.stop[chained] < reached, keep=False)
            else:
                self._slots.retire(groups, chained, over, keep=True)
        if frame is None:
            return Emission()
        made = self._results.upserts(frame)
        return Emission(
            made.rows if made.rows.height else None, failed=made.failed, hashes=made.hashes
        )

    def _windows(self, slots: Numbers) -> pl.DataFrame:
        """`_g`, `_wstart`, `_wend`, `_a…` of the windows in *slots*."""
        return self._finish(
            self._slots.group[slots], self._slots.index[slots], self._slots.partials(slots)
        )

    def _finish(self, groups: Numbers, indexes: Numbers, partials: pl.DataFrame) -> pl.DataFrame:
        start, end = self._grid.bounds(indexes)
        about = [pl.Series("_g", groups), pl.Series("_wstart", start), pl.Series("_wend", end)]
        now = pl.Series("_now", np.full(len(groups), self._now))
        return self._aggregates.finalise(partials, []).hstack([*about, now])

    def open_windows(self) -> pl.DataFrame:
        slots = self._slots.live()
        slots = slots[~self._slots.closed[slots]]
        slots = slots[np.lexsort((self._slots.index[slots], self._slots.group[slots]))]
        if not len(slots):
            return self._results.empty().drop("_op")
        return self._results.upserts(self._windows(slots)).rows.drop("_op")

    # ---------------------------------------------------------------- controls

    def control(self, control: Control) -> Emission:
        if control.kind == "delete":
            return self._delete(control)
        if control.kind == "recalculate":
            return self._recalculate(control)
        if control.kind == "flush":
            return self._close_all(np.arange(len(self._groups)))
        if control.kind == "tick" and self._idle:
            self._now = max(self._now, control.time)
            return self._close_all(self._clock.silent(control.heard_until - self._idle))
        return Emission()

    def skip(self, rows: pl.DataFrame) -> None:
        """See `Kernel`."""
        rows = without_clears(rows)
        self._counted.begin(rows)
        if (child := self.plan.source.child) is not None:
            rows = rows.filter(pl.col("tbname").str.to_lowercase() == child.lower())
        self._counted.lose(rows.with_columns(pl.lit(LATEST).alias("_floor")))

    def _close_all(self, groups: Numbers) -> Emission:
        """Raise T of *groups* above their open windows."""
        chained = self._slots.open_of(groups)
        owners = self._slots.group[chained]
        groups = np.unique(owners)
        self._clock.raise_floor(owners, self._slots.stop[chained] + 1)
        return self._publish(np.empty(0, np.int64), groups)

    def _delete(self, control: Control) -> Emission:
        """Delete a range of rows: what they were in is computed again without them."""
        span = self._span(control.low, control.high)
        if span is None:
            return Emission()
        stored = self._fetch(*span, control.tables)
        chosen = pl.col(self._time).is_between(control.low, control.high)
        if control.tables is not None:
            chosen &= pl.col("tbname").str.to_lowercase().is_in([t.lower() for t in control.tables])
        return self._again(stored.filter(~chosen), stored.filter(chosen))

    def _remove(self, removed: pl.DataFrame, call: pl.DataFrame) -> Emission:
        """Delete rows by key; *call* holds all rows of the call, which `History` lacks yet."""
        emission = Emission()
        identity = self._counted.identity
        for low, high in _ranges(np.unique(removed.get_column(self._time).to_numpy())):
            span = self._span(low, high)
            if span is None:
                continue
            mine = removed.filter(pl.col(self._time).is_between(low, high))
            stored = self._fetch(
                *span, mine.get_column("tbname").unique(maintain_order=True).to_list()
            )
            recent = call.filter(pl.col(self._time).is_between(*span))
            if self._solo:
                recent = recent.filter(
                    pl.col("tbname").is_in(mine.get_column("tbname").unique().implode())
                )
            both = with_call(stored, recent)
            touched = both.filter(pl.col("_op") != DELETE).join(
                mine.select(identity), on=identity, how="semi", nulls_equal=True
            )
            again = self._again(standing(both, identity), touched)
            emission = combine(emission, again, self._results.time)
        return emission

    def _recalculate(self, control: Control) -> Emission:
        """Compute the windows that touch a range again from stored rows."""
        span = self._span(control.low, control.high)
        if span is None:
            return Emission()
        before = self._fetch(control.low, control.high, None)
        self._counted.renew(control.low, control.high)
        stored = self._fetch(*span, None)
        slots = self._slots.live()
        first = self._grid.first(np.array([control.low]).clip(*span))
        last = self._grid.last(np.array([control.high]).clip(*span))
        slots = slots[(self._slots.index[slots] >= first) & (self._slots.index[slots] <= last)]
        inside = stored.filter(pl.col(self._time).is_between(control.low, control.high))
        return self._again(stored, pl.concat([before, inside]), slots)

    def _span(self, low: int, high: int) -> tuple[int, int] | None:
        """First and last tick of the windows that touch low..high and can have rows."""
        low = max(low, self._earliest)
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
        self, rows: pl.DataFrame, touched: pl.DataFrame, slots: Numbers | None = None
    ) -> Emission:
        """Compute the windows that *touched* rows were in (and those in *slots*) anew from
        *rows*.
        """
        gone, failed = self._reader.label(touched)
        affected = gone.select("_g", "_i")
        if slots is not None:
            affected = pl.concat(
                [
                    affected,
                    pl.DataFrame({"_g": self._slots.group[slots], "_i": self._slots.index[slots]}),
                ]
            )
        affected = affected.unique()
        left, more = self._reader.label(rows)
        left = left.join(affected, on=["_g", "_i"], how="semi")
        partials = self._aggregates.partial(left, ["_g", "_i"]).sort("_g", "_i")
        empty = affected.join(partials.select("_g", "_i"), on=["_g", "_i"], how="anti").sort(
            "_g", "_i"
        )
        result, unmade = self._replace(partials, empty)
        return Emission(result, failed=stack(stack(failed, more), unmade))

    def _replace(
        self, partials: pl.DataFrame, empty: pl.DataFrame
    ) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Put recomputed windows into the state, take empty ones out, publish both."""
        groups = partials.get_column("_g").to_numpy()
        indexes = partials.get_column("_i").to_numpy()
        stops = self._grid.stops(indexes)
        closed = stops < self._clock.t(groups)
        held = np.ones(len(groups), np.bool_)
        if self._solo:
            held = stops >= self._clock.reached(groups)
        slots = self._slots.locate(groups[held], indexes[held], stops[held])
        self._slots.put(slots, partials.filter(pl.Series(held)))
        if not self._solo and closed.any():
            owners = np.unique(groups[closed])
            chained = self._slots.open_of(owners)
            self._slots.retire(
                owners,
                chained,
                self._slots.stop[chained] < self._clock.t(self._slots.group[chained]),
                keep=True,
            )
        self._slots.mark_closed(slots[closed[held]])
        shown = np.ones(len(groups), np.bool_) if self._at_once else closed
        upserts = self._results.upserts(
            self._finish(groups[shown], indexes[shown], partials.filter(pl.Series(shown)))
        )
        empty_groups = empty.get_column("_g").to_numpy()
        empty_indexes = empty.get_column("_i").to_numpy()
        found = self._slots.find(empty_groups, empty_indexes)
        self._slots.drop(found[found >= 0])
        start, end = self._grid.bounds(empty_indexes)
        # history shows windows that are open
        shown = (
            np.ones(len(start), np.bool_)
            if self._at_once or self.plan.fill_history
            else end - 1 < self._clock.t(empty_groups)
        )
        gone = pl.DataFrame(
            {"_g": empty_groups[shown], "_wstart": start[shown], "_wend": end[shown]}
        )
        deletes = self._results.deletes(gone)
        rows = pl.concat([deletes.rows, upserts.rows])
        return (rows if rows.height else None), stack(upserts.failed, deletes.failed)

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        if self._history is None:
            return Emission()
        self._counted.fill()
        stored = self._history.fetch(low, high)
        call, failed = self._reader.call(stored)
        if call is None:
            return Emission(failed=failed)
        groups = self._groups.of_keys(call.keys, lambda: call.keys[call.appeared])
        self._reserve()
        self._advance(call, groups)
        if self._late.judges_tables(call.rows):
            self._tables.advance(call.tables, call.row_times)
        slots = self._slots.locate(groups.take(call.owner), call.index, call.stops)
        self._slots.add(slots, call)
        result = self._results.upserts(self._windows(slots[call.latest_last]))
        chained = self._slots.open_of(groups)
        over = self._slots.stop[chained] < self._clock.t(self._slots.group[chained])
        # published already: closing adds nothing, and a slower table's row reads the window again
        self._slots.retire(groups, chained, over, keep=False)
        if not self._solo:
            self._clock.release(groups)
        return Emission(result.rows, failed=stack(failed, result.failed))

    # ---------------------------------------------------------------- state

    def delta(self, full: bool = False) -> Delta:
        self._purge()
        frames = {
            "groups": self._groups.delta(full),
            **self._slots.delta(full),
            "clock": self._clock.delta(full),
        }
        frames["call"] = pl.DataFrame(
            [pl.Series("now", [self._now]), pl.Series("earliest", [self._earliest])]
        )
        if not self._groups.whole:
            frames["tables"] = self._tables.delta(full)
        frames = {name: frame for name, frame in frames.items() if frame.height}
        return Delta(frames | self._counted.delta(full), full)

    def _purge(self) -> None:
        """Drop closed windows behind DELETE_MARK."""
        if not self._mark or self._solo:
            return
        slots = self._slots.live()
        slots = slots[self._slots.closed[slots]]
        self._slots.free(
            slots[
                self._slots.stop[slots] < self._clock.highest[self._slots.group[slots]] - self._mark
            ]
        )

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in since_full(deltas):
            frames = delta.frames
            if "groups" in frames:
                self._groups.restore(frames["groups"])
                self._reserve()
            if "tables" in frames:
                self._tables.restore(frames["tables"])
            self._counted.restore(frames, delta.full)
            if "call" in frames:
                self._now, self._earliest = frames["call"].row(0)
            if "clock" in frames:
                self._clock.restore(frames["clock"])
            self._slots.restore(
                frames.get("windows"), frames.get("windows.gone"), keep=not self._solo
            )


def _removed(rows: pl.DataFrame) -> Mask | None:
    """Which rows are deleted by key; None: none of them."""
    removed: Mask = rows.get_column("_op").to_numpy() == DELETE
    return removed if removed.any() else None


def _ranges(times: Ticks) -> list[tuple[int, int]]:
    """A few ranges that cover sorted *times*: near neighbours go together."""
    if len(times) <= 16:
        return [(int(t), int(t)) for t in times]
    return [(int(times[0]), int(times[-1]))]
