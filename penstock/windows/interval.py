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

from penstock.few import Few
from penstock.sql.plan import Interval, StreamPlan
from penstock.versions import DELETE, without_clears
from penstock.windows import columnwise
from penstock.windows.aggregates import Aggregates
from penstock.windows.boundaries import Grid
from penstock.windows.calls import SHARED, Call
from penstock.windows.counted import Counted, standing
from penstock.windows.fewrows import FewResults, Picked
from penstock.windows.fewwindows import few_windows
from penstock.windows.groups import TABLES, Groups, Numbers, OneChild
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History
from penstock.windows.projection import Projection
from penstock.windows.result import Results
from penstock.windows.scope import FAILURES, Scope, evaluate
from penstock.windows.slots import Slots
from penstock.windows.steps import NEVER, GroupClock, TableClock, Ticks, previous_max

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

    def __init__(self, plan: StreamPlan, history: History | None = None) -> None:
        assert isinstance(plan.window, Interval)
        self.plan = plan
        self._history = history
        scope = Scope(plan)
        self._time = plan.source.time_column
        self._counted = Counted(plan, history)
        self._grid = Grid(plan.window, plan.source.precision, plan.timezone)
        self._aggregates = Aggregates(scope)
        self._groups = Groups(scope)
        self._results = Results(scope, self._groups)
        self._where = (
            Projection([scope.over_rows(plan.where).expr.alias("_pass")]) if plan.where else None
        )
        self._child = OneChild(plan.source.child) if plan.source.child is not None else None
        keys = self._groups.expressions
        self._expressions = Projection(
            [*keys, *self._aggregates.argument_expressions()],
            [*(None for _ in keys), *self._aggregates.quick_arguments()],
        )
        self._question = repr(
            (
                plan.source,
                plan.where,
                [k.sql for k in plan.keys],
                plan.window,
                plan.timezone,
                plan.functions,
                self._aggregates.arguments,
            )
        )
        self._slots = Slots(self._aggregates)
        self._at_once = plan.trigger.kind == "at_once"
        self._mark = plan.delete_mark.ticks(plan.source.precision) if plan.delete_mark else 0
        self._idle = plan.idle_timeout.ticks(plan.source.precision) if plan.idle_timeout else 0
        self._solo = self._groups.solo
        self._clock = GroupClock(plan.watermark.ticks(plan.source.precision))
        self._tables = TableClock()
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
        removed = SHARED.get(rows, "removed", lambda: _removed(rows))
        if removed is None:
            return self._count(rows)
        emission = self._count(columnwise.kept(rows, ~removed))
        return self._combine(emission, self._remove(columnwise.kept(rows, removed), rows))

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
            SHARED.get(rows, self._question, lambda: self._read(rows))
            if self._groups.common
            else self._read(rows)
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
            expired = self._expired(call, groups, before, over)
            if expired is not None:
                late = self._dropped(call, expired, rows.columns)
                self._lose(call, expired)
                counted = call.without(expired)
                owners = groups.take(counted.owner)
        if self._judges_tables(call.rows):
            self._tables.advance(call.tables, call.row_times)
        lost = self._forgotten(owners, counted.index, counted.stops)
        if lost.any():
            self._remember(counted, owners, lost, rows)
        slots = self._slots.locate(owners, counted.index, counted.stops)
        self._slots.add(slots, counted)
        closing = self._slots.oldest.take(groups) < now
        made = self._publish(self._changed(slots, counted), groups[closing])
        return Emission(
            made.rows, late=late, failed=_stack(failed, made.failed), hashes=made.hashes
        )

    def _read(self, rows: pl.DataFrame) -> tuple[Call | None, pl.DataFrame | None]:
        """The call that *rows* make, None if WHERE passes none; and the rows on which an expression
        fails.
        """
        made, tables, failed = self._prepare(rows)
        if not made.height:
            return None, failed
        return (
            Call(made, self._time, tables, self._groups.keys_in(made, tables), self._grid),
            failed,
        )

    def _forgotten(self, owners: Numbers, indexes: Numbers, stops: Ticks) -> Mask:
        """Which windows had their state dropped: behind DELETE_MARK, or because history had closed
        them.
        """
        if self._solo or not (self._mark or self._clock.releases):
            return np.zeros(0, np.bool_)
        behind = self._clock.released.take(owners)
        if self._mark:
            behind = np.maximum(behind, self._clock.highest.take(owners) - self._mark)
        lost: Mask = stops < behind
        lost[lost] = self._slots.find(owners[lost], indexes[lost]) < 0
        return lost

    def _remember(self, counted: Call, owners: Numbers, lost: Mask, call: pl.DataFrame) -> None:
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
        stored = self._fetch(low, high, None)
        fresh = call.filter(pl.col(self._time).is_between(low, high))
        at = pl.concat(
            [
                pl.repeat(-1, stored.height, dtype=pl.Int64, eager=True),
                fresh.get_column("_step").cast(pl.Int64),
            ]
        )
        labelled, _ = self._labelled(self._with_call(stored, fresh).with_columns(at.alias("_at")))
        left = labelled.join(windows, on=["_g", "_i"]).filter(pl.col("_at") < pl.col("_until"))
        partials = self._aggregates.partial(left, ["_g", "_i"]).sort("_g", "_i")
        groups = partials.get_column("_g").to_numpy()
        found = partials.get_column("_i").to_numpy()
        slots = self._slots.locate(groups, found, self._grid.stops(found))
        self._slots.put(slots, partials)
        concerned = np.unique(groups)
        chained = self._slots.open_of(concerned)
        self._slots.retire(concerned, chained, np.isin(chained, slots), keep=True)

    @staticmethod
    def _with_call(stored: pl.DataFrame, call: pl.DataFrame) -> pl.DataFrame:
        call = call.drop("_late", strict=False)
        return pl.concat([stored.select(call.columns).cast(dict(call.schema)), call])  # type: ignore[arg-type]

    def _advance(self, call: Call, groups: Numbers) -> None:
        """Take the times of the call's rows over into what is known of its keys' *groups*."""
        self._clock.advance(groups, call.highest, call.heard if self._idle else None)
        self._earliest = min(self._earliest, call.earliest)

    def _judges_tables(self, rows: pl.DataFrame) -> bool:
        """Whether a row's being late for its table has to be found out here, and is not its group's
        matter.
        """
        return not self._groups.whole and "_late" not in rows.columns

    def _prepare(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, Numbers, pl.DataFrame | None]:
        """Rows that pass WHERE, with `_k…` and `_x…`; their tables' numbers; and the rows on which
        an expression fails.
        """
        refused: pl.DataFrame | None = None
        rows, tables = (
            (rows, TABLES.numbers(rows)) if self._child is None else self._child.rows(rows)
        )
        if not rows.height:
            return rows, tables, None
        if self._where is not None:
            rows = rows.hstack([pl.Series("_tab", tables)])
            try:
                rows = columnwise.kept(rows, *self._where.columns(rows))
            except FAILURES:
                rows, refused = evaluate(rows, self._where)
                rows = rows.filter(pl.col("_pass")).drop("_pass")
        if not rows.height:
            return rows, tables[:0], refused
        made, failed = evaluate(rows, self._expressions)
        if "_tab" in made.columns:
            tables = made.get_column("_tab").to_numpy()
        elif failed is not None:
            tables = TABLES.numbers(made)
        failed = _stack(refused, failed)
        return made, tables, None if failed is None else failed.drop("_tab", strict=False)

    def _expired(self, call: Call, groups: Numbers, before: Ticks, over: Mask) -> Mask | None:
        """Which (row, window) are dropped: the window was over before the row's write, and the row
        is late for its table.

        Args:
            groups, before: of each key its group, and the group's highest time before the call.
            over: which pairs' windows are over now. Returns None if none is dropped.
        """
        judged = self._judges_tables(call.rows)
        told = not judged and "_late" in call.rows.columns
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

    def _lose(self, call: Call, expired: Mask) -> None:
        """Remember which (row, window) are dropped: storage has the rows."""
        floors = np.full(call.rows.height, NEVER, np.int64)
        np.maximum.at(floors, call.rows_of()[expired], call.stops.take(call.place)[expired] + 1)
        lost = call.rows.select(*self._counted.identity, "_offset").with_columns(
            pl.Series("_floor", floors)
        )
        self._counted.lose(lost.filter(pl.Series(floors != NEVER)))

    @staticmethod
    def _dropped(call: Call, expired: Mask, columns: list[str]) -> pl.DataFrame | None:
        """Rows that are expired for each of their windows."""
        rows_of = call.rows_of()
        counted = np.zeros(call.rows.height, np.bool_)
        counted[rows_of[~expired]] = True
        lost = np.zeros(call.rows.height, np.bool_)
        lost[rows_of[expired]] = True
        lost &= ~counted
        return columnwise.kept(call.rows.select(columns), lost) if lost.any() else None

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
            both = self._with_call(stored, recent)
            touched = both.filter(pl.col("_op") != DELETE).join(
                mine.select(identity), on=identity, how="semi", nulls_equal=True
            )
            emission = self._combine(emission, self._again(standing(both, identity), touched))
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
        gone, failed = self._labelled(touched)
        affected = gone.select("_g", "_i")
        if slots is not None:
            affected = pl.concat(
                [
                    affected,
                    pl.DataFrame({"_g": self._slots.group[slots], "_i": self._slots.index[slots]}),
                ]
            )
        affected = affected.unique()
        left, more = self._labelled(rows)
        left = left.join(affected, on=["_g", "_i"], how="semi")
        partials = self._aggregates.partial(left, ["_g", "_i"]).sort("_g", "_i")
        empty = affected.join(partials.select("_g", "_i"), on=["_g", "_i"], how="anti").sort(
            "_g", "_i"
        )
        result, unmade = self._replace(partials, empty)
        return Emission(result, failed=_stack(_stack(failed, more), unmade))

    def _labelled(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Prepared rows, once per window, with `_g` and `_i`."""
        made, tables, failed = self._prepare(rows)
        if not made.height:
            made = evaluate(made, self._expressions)[0]
        groups = self._groups.numbers(made, tables)
        self._reserve()
        positions, indexes = self._grid.assign(made.get_column(self._time).to_numpy())
        labelled = made[positions].with_columns(
            pl.Series("_g", groups[positions]), pl.Series("_i", indexes)
        )
        labelled = labelled.filter(
            pl.Series(self._grid.stops(indexes) >= self._counted.floors(labelled).to_numpy())
        )
        return labelled, failed

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
        return (rows if rows.height else None), _stack(upserts.failed, deletes.failed)

    def _combine(self, first: Emission, second: Emission) -> Emission:
        """One emission of two: of equal keys the later line stands."""
        rows = _stack(first.rows, second.rows)
        if rows is not None:
            rows = rows.unique(["tbname", self._results.time], keep="last", maintain_order=True)
        return Emission(
            rows, late=_stack(first.late, second.late), failed=_stack(first.failed, second.failed)
        )

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        if self._history is None:
            return Emission()
        self._counted.fill()
        stored = self._history.fetch(low, high)
        call, failed = self._read(stored)
        if call is None:
            return Emission(failed=failed)
        groups = self._groups.of_keys(call.keys, lambda: call.keys[call.appeared])
        self._reserve()
        self._advance(call, groups)
        if self._judges_tables(call.rows):
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
        return Emission(result.rows, failed=_stack(failed, result.failed))

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
        for delta in deltas:
            if delta.full and len(self._groups):
                self.__init__(self.plan, self._history)  # type: ignore[misc]
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


def _stack(first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
    if first is None or second is None:
        return first if second is None else second
    return pl.concat([first, second], how="diagonal")
