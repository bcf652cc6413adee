"""INTERVAL windows from accumulators: the fast kernel of AT_ONCE and WINDOW_CLOSE.

Owns plans with IGNORE EXPIRED 1, IGNORE UPDATE 1, no FILL, no NOTIFY, over a source that is no
stream's result (`supports`): then a row once counted stays counted, and a window is its
accumulators. Only DELETE and RECALCULATE go back to the rows (`Corrections`): to all their versions
that counted. Everything is judged per client write: a row that comes after its window was
closed by an earlier write of the same call is dropped exactly as if each write were a call; a call
in which no row lies in a window that is over by its end skips that work.

T of a group is its highest time minus the watermark, or what FLUSH and the idle time-out raised it
to. A row is expired for a window that ends before T if it is also out of order for its own table.
Where a group is one table (`solo`), a window that is over can never get another row and its state
goes at once; otherwise it stays, for slower tables, until DELETE_MARK. A window that history has
closed goes at once, too: filling takes the memory of a stretch and not of history, and a slower
table's row has it read again. Holds no rows: late ones are handed back, not kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from penstock.rows.rows import Rows
from penstock.rows.versions import DELETE, without_clears
from penstock.sql.plan import Interval, StreamPlan
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.slots import Slots
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.clocks.clock import GroupClock, TableClock
from penstock.windows.clocks.late_pairs import LatePairs
from penstock.windows.clocks.ticks import Mask
from penstock.windows.context import KernelContext
from penstock.windows.emit.few_results import FewResults, Picked
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.window_rows import WindowRows
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.key_index import Numbers
from penstock.windows.interval.corrections import Corrections
from penstock.windows.interval.few_windows import few_windows
from penstock.windows.interval.forgotten_windows import ForgottenWindows
from penstock.windows.interval.slot_publisher import SlotPublisher
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History, since_full
from penstock.windows.rows import columnwise
from penstock.windows.rows.counted import Counted
from penstock.windows.rows.row_reader import RowReader
from penstock.windows.rows.scope import Scope


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
        assert isinstance(plan.window, Interval)
        context = context or KernelContext()
        precision = plan.source.precision
        time = plan.source.time_column
        scope = Scope(plan)
        grid = Grid(plan.window, precision, plan.timezone)
        aggregates = Aggregates(scope)
        self._history = history
        self._answers = context.answers
        self._counted = Counted(plan, history)
        self._groups = Groups(scope, context.tables)
        self._slots = Slots(aggregates)
        self._clock = GroupClock.of(plan)
        self._reader = RowReader(
            scope, grid, aggregates, self._groups, self._counted, context.tables, self._reserve
        )
        solo = self._groups.solo
        rows = WindowRows(scope, self._groups, aggregates)
        self._publisher = SlotPublisher(
            self._slots,
            grid,
            self._clock,
            rows,
            at_once=plan.trigger.kind == "at_once",
            solo=solo,
            shows_open=plan.fill_history,
        )
        self._corrections = Corrections(
            self._reader,
            self._counted,
            grid,
            aggregates,
            self._clock,
            self._publisher,
            time=time,
            solo=solo,
        )
        self._late = LatePairs(
            self._clock, TableClock(context.tables), self._counted, whole=self._groups.whole
        )
        self._forgotten = ForgottenWindows(
            self._reader,
            grid,
            aggregates,
            self._slots,
            self._clock,
            self._counted,
            time=time,
            mark=plan.delete_mark.ticks(precision) if plan.delete_mark else 0,
            solo=solo,
        )
        picked = Picked(plan.source.child, scope.over_rows(plan.where).expr if plan.where else None)
        self._few = few_windows(
            scope, picked, grid, aggregates, self._groups, rows.results, self._slots, self._clock
        )

    # ---------------------------------------------------------------- rows

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = EmissionBuffer()
        if rows.height:
            given = rows
            rows = self._answers.get(given, "written", lambda: without_clears(given))
            self._counted.begin(rows)
            removed = self._answers.get(rows, "removed", lambda: _find_removed(rows))
            if removed is None:
                self._count(rows, out)
            else:
                self._count(columnwise.kept(rows, ~removed), out)
                self._corrections.remove(columnwise.kept(rows, removed), rows, out)
        return self._emission(out)

    def take_few(self, rows: Rows) -> FewResults | None:
        """See `TakesFew`."""
        made = None if self._few is None or self._counted.first is None else self._few.count(rows)
        if made is None:
            return None
        results, earliest, came = made
        if came >= 0:
            self._publisher.now = came
            self._corrections.earliest = min(self._corrections.earliest, earliest)
        return results

    def _emission(self, out: EmissionBuffer) -> Emission:
        return out.emission(self._publisher.rows.results.identity)

    def _count(self, rows: pl.DataFrame, out: EmissionBuffer) -> None:
        """Count *rows* in their windows and publish what that changes."""
        call, failed = self._reader.call_among(rows, self._answers)
        out.failed += failed
        if call is None:
            return
        self._publisher.now = call.now
        groups = self._groups.of_keys(call.keys, lambda: call.keys[call.appeared])
        self._reserve()
        before = self._clock.highest.take(groups)
        self._advance(call, groups)
        now = self._clock.t(groups)
        owners = groups.take(call.owner)
        over = call.stops < now.take(call.owner)
        counted = call
        if over.any():
            expired = self._late.find(call, groups, before, over)
            if expired is not None:
                lost = self._late.rows_lost(call, expired, rows.columns)
                if lost is not None:
                    out.late.append(lost)
                self._late.remember(call, expired)
                counted = call.without(expired)
                owners = groups.take(counted.owner)
        self._late.advance(call)
        forgotten = self._forgotten.find(owners, counted.index, counted.stops)
        if forgotten.any():
            self._forgotten.bring_back(counted, owners, forgotten, rows)
        slots = self._slots.locate(owners, counted.index, counted.stops)
        self._slots.add(slots, counted)
        closing = self._slots.oldest.take(groups) < now
        self._publisher.publish(counted, slots, groups[closing], out)

    def _advance(self, call: Call, groups: Numbers) -> None:
        """Take the times of the call's rows over into what is known of its keys' *groups*."""
        self._clock.advance(groups, call.highest, call.heard if self._clock.idle else None)
        self._corrections.earliest = min(self._corrections.earliest, call.earliest)

    def _reserve(self) -> None:
        self._clock.reserve(len(self._groups))
        self._slots.reserve_groups(len(self._groups))

    def open_windows(self) -> pl.DataFrame:
        return self._publisher.open_rows()

    def skip(self, rows: pl.DataFrame) -> None:
        self._counted.skip(rows)
        self._corrections.note(rows)

    # ---------------------------------------------------------------- controls

    def control(self, control: Control) -> Emission:
        out = EmissionBuffer()
        if control.kind == "delete":
            self._corrections.delete(control, out)
        elif control.kind == "recalculate":
            self._corrections.recalculate(control, out)
        elif control.kind == "flush":
            self._publisher.close(np.arange(len(self._groups)), out)
        elif control.kind == "tick" and self._clock.idle:
            self._publisher.now = max(self._publisher.now, control.time)
            self._publisher.close(self._clock.silent(control.heard_until), out)
        return self._emission(out)

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        out = EmissionBuffer()
        if self._history is not None:
            self._counted.fill()
            call, failed = self._reader.call(self._history.fetch(low, high))
            out.failed += failed
            if call is not None:
                self._load(call, out)
        return self._emission(out)

    def _load(self, call: Call, out: EmissionBuffer) -> None:
        """Count the rows of history."""
        groups = self._groups.of_keys(call.keys, lambda: call.keys[call.appeared])
        self._reserve()
        self._advance(call, groups)
        self._late.advance(call)
        slots = self._slots.locate(groups.take(call.owner), call.index, call.stops)
        self._slots.add(slots, call)
        self._publisher.publish_history(call, slots, groups, out)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool = False) -> Delta:
        self._forgotten.purge()
        now = self._publisher.now
        earliest = self._corrections.earliest
        frames = {
            "groups": self._groups.delta(full),
            **self._slots.delta(full),
            "clock": self._clock.delta(full),
            "call": columnwise.beside([pl.Series("now", [now]), pl.Series("earliest", [earliest])]),
            **self._late.delta(full),
        }
        frames = {name: frame for name, frame in frames.items() if frame.height}
        return Delta(frames | self._counted.delta(full), full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in since_full(deltas):
            frames = delta.frames
            if "groups" in frames:
                self._groups.restore(frames["groups"])
                self._reserve()
            self._late.restore(frames)
            self._counted.restore(frames, delta.full)
            if "call" in frames:
                self._publisher.now, self._corrections.earliest = frames["call"].row(0)
            if "clock" in frames:
                self._clock.restore(frames["clock"])
            self._slots.restore(
                frames.get("windows"), frames.get("windows.gone"), keep=not self._groups.solo
            )


def _find_removed(rows: pl.DataFrame) -> Mask | None:
    """Return which rows are deleted by key; None: none of them."""
    removed: Mask = rows.get_column("_op").to_numpy() == DELETE
    return removed if removed.any() else None
