"""FORCE_WINDOW_CLOSE: windows that close by the machine's clock, once, from what is stored then.

A window is computed when the clock has passed its end and the watermark; the window the stream was
created in counts, rows for a window already computed are late. Rows stamped ahead wait for the
clock. With FILL every window a partition lets pass without rows after its first data gives a row
too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import Interval, StreamPlan
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.cut import make_cutter
from penstock.windows.assign.events import Events, Order, Stamp
from penstock.windows.assign.ingest import Ingest
from penstock.windows.clocks.clock import StreamClock
from penstock.windows.clocks.ticks import ALWAYS, NEVER
from penstock.windows.context import KernelContext
from penstock.windows.emit.clock_fill import ClockFill
from penstock.windows.emit.fill import Filler
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.result import Made
from penstock.windows.emit.window_rows import WindowRows
from penstock.windows.groups.groups import Groups
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History, since_full
from penstock.windows.rows.scope import Scope


class ForceKernel:
    """See the module."""

    def __init__(
        self,
        plan: StreamPlan,
        history: History | None,
        context: KernelContext | None = None,
    ) -> None:
        """*context*: what it has in common with other kernels; None: nothing."""
        assert isinstance(plan.window, Interval)
        scope = Scope(plan)
        groups = Groups(scope, (context or KernelContext()).tables)
        precision = plan.source.precision
        self.history = history
        self.aggregates = Aggregates(scope)
        self.cutter = make_cutter(scope)
        self.ingest = Ingest(scope, groups, self.aggregates, self.cutter)
        self.window_rows = WindowRows(scope, groups, self.aggregates)
        self.events = Events(plan, groups) if plan.notify is not None else None
        self.fill: ClockFill | None = None
        if plan.fill.mode != "none":
            self.fill = ClockFill(Filler(scope, self.aggregates, self.window_rows.results))
        self.grid = Grid(plan.window, precision, plan.timezone)
        self.watermark = plan.watermark.ticks(precision)
        self.stream = StreamClock()
        #: index of the next window to compute; NEVER before the first tick
        self.next = NEVER
        self.rows: pl.DataFrame | None = None

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = EmissionBuffer()
        if rows.height:
            rows = self.ingest.written(rows, self.history)
            made, failed = self.ingest.prepare(rows)
            out.fail(failed)
            parts = [made]
            if self.events is not None:
                parts = made.partition_by("_step", maintain_order=True)
            for part in parts:
                self._store(part, rows, out)
        return self._emission(out)

    def _emission(self, out: EmissionBuffer) -> Emission:
        return out.emission(self.window_rows.results.identity)

    def _store(self, made: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """Take rows over; a repeat replaces."""
        if not made.height:
            return
        self.stream.hear(int(made.get_column("_now").to_numpy().max()))
        final = made.unique(subset=self.ingest.identity, keep="last", maintain_order=True)
        stored = self.rows if self.rows is not None else made.select(self.ingest.columns).clear()
        stored = stored.join(
            final.select(self.ingest.identity),
            on=self.ingest.identity,
            how="anti",
            nulls_equal=True,
        )
        fresh = final.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
        if self.next != NEVER and fresh.height:
            last = self.grid.last(fresh.get_column(self.ingest.time).to_numpy())
            late = pl.Series(last < self.next)
            if late.any():
                lost = fresh.filter(late).select("_source")
                out.late.append(
                    source.with_row_index("_source")
                    .join(lost, on="_source", how="semi")
                    .drop("_source")
                )
                fresh = fresh.filter(~late)
        fresh = fresh.select(self.ingest.columns)
        if self.events is not None:
            step = int(made.get_column("_step")[0])
            out.events += self._opening_events(self.events, fresh, stored, step)
        self.rows = pl.concat([stored, fresh])

    def _opening_events(
        self, events: Events, fresh: pl.DataFrame, stored: pl.DataFrame, step: int
    ) -> list[tuple[Order, dict[str, Any]]]:
        """Return the events of windows that *fresh* rows open beside those *stored*."""
        windows, known = (
            self.cutter.describe(self.cutter.label(f.sort("_g", self.ingest.time, "_seq")))
            for f in (fresh, stored)
        )
        opened = windows.join(known, on=["_g", "_wstart"], how="anti")
        if self.next != NEVER:
            opened = opened.filter(
                pl.Series(self.grid.last(opened.get_column("_wstart").to_numpy()) >= self.next)
            )
        none = windows.clear()
        return events.make(opened, none, None, none, Stamp(step, self.stream.now))

    def control(self, control: Control) -> Emission:
        out = EmissionBuffer()
        if control.kind == "tick" and control.time > self.stream.time:
            self.stream.advance(control.time)
            if self.next == NEVER:
                self._start(control.time)
            self._close(control.time - self.watermark, out)
        elif control.kind == "delete" and self.rows is not None:
            chosen = pl.col(self.ingest.time).is_between(control.low, control.high)
            if control.tables is not None:
                chosen &= pl.col("_tab").is_in(self.ingest.tables_named(control.tables))
            self.rows = self.rows.filter(~chosen)
        elif control.kind == "flush":
            self._flush(out)
        return self._emission(out)

    def _flush(self, out: EmissionBuffer) -> None:
        """Close all windows that have rows."""
        if self.next == NEVER or self.rows is None or not self.rows.height:
            return
        last = self.grid.last(self.rows.get_column(self.ingest.time).to_numpy())
        self._close(int(self.grid.end(last).max()), out)

    def _start(self, time: int) -> None:
        """The stream begins: with the window that holds this moment, and what is stored of it
        already.
        """
        self.next = int(self.grid.first(np.array([time]))[0])
        if self.history is None:
            return
        stored = self.history.fetch(int(self.grid.start(np.array([self.next]))[0]), ALWAYS)
        if stored.height:
            made, _ = self.ingest.prepare(stored)
            fresh = made.filter(pl.col("_pass")).select(self.ingest.columns)
            if self.rows is not None:
                fresh = fresh.join(
                    self.rows.select(self.ingest.identity),
                    on=self.ingest.identity,
                    how="anti",
                    nulls_equal=True,
                )
            self.rows = fresh if self.rows is None else pl.concat([fresh, self.rows])

    def _close(self, time: int, out: EmissionBuffer) -> None:
        """Compute every window that ends at or before *time*."""
        behind = int(self.grid.first(np.array([time]))[0])
        if behind <= self.next:
            return
        first = self.next
        self.next = behind
        start = int(self.grid.start(np.array([behind]))[0])
        end = int(self.grid.end(np.array([behind - 1]))[0])
        rows = self.rows
        if rows is None:
            return
        due = rows.filter(pl.col(self.ingest.time) < end).sort(
            "_g", self.ingest.time, *([self.ingest.key] if self.ingest.key else []), "_seq"
        )
        labelled = self.cutter.label(due)
        index = pl.Series(
            "_i", self.grid.last(labelled.get_column("_wstart").to_numpy()), dtype=pl.Int64
        )
        labelled = labelled.filter((index >= first) & (index < behind))
        windows = self._describe(labelled)
        self.rows = rows.filter(pl.col(self.ingest.time) >= start)
        if windows.height:
            made = self.window_rows.upserts(windows, self.stream.now)
            out.put(made)
            if self.events is not None and made.rows.height == windows.height:
                none = windows.clear()
                stamp = Stamp(0, self.stream.now)
                out.events += self.events.make(none, windows, made.rows, none, stamp)
        if self.fill is not None and (filled := self.fill.rows(windows, first, behind)) is not None:
            out.put(Made(filled))

    def _describe(self, labelled: pl.DataFrame) -> pl.DataFrame:
        """Return the windows of *labelled* rows with their partials."""
        partials = self.aggregates.partial(labelled, ["_w"], ordered=True).drop("_w")
        return self.cutter.describe(labelled).hstack(partials).drop("_w")

    def skip(self, rows: pl.DataFrame) -> None:
        """Its rows are all that it computes from."""

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        """Nothing: the planner refuses FILL_HISTORY with this trigger."""
        return Emission()

    def open_windows(self) -> pl.DataFrame:
        if self.rows is None or not self.rows.height:
            return self.window_rows.no_open_rows()
        labelled = self.cutter.label(self.rows.sort("_g", self.ingest.time, "_seq"))
        windows = self._describe(labelled)
        t = np.full(windows.height, self.stream.now - self.watermark, np.int64)
        return self.window_rows.open_rows(windows, self.stream.now, t)

    def delta(self, full: bool = False) -> Delta:
        frames = {name: frame for name, frame in self.ingest.delta(full).items() if frame.height}
        # what is stored is no more than the rows of windows still open
        frames["clock"] = pl.DataFrame(
            {"clock": [self.stream.time], "next": [self.next], "now": [self.stream.now]}
        )
        if self.rows is not None:
            frames["rows"] = self.rows
        if self.fill is not None and self.fill.latest is not None:
            frames["latest"] = self.fill.latest
        return Delta(frames, full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in since_full(deltas):
            self.ingest.restore(delta.frames)
            self.stream.time, self.next, self.stream.now = delta.frames["clock"].row(0)
            rows = delta.frames.get("rows")
            self.rows = None if rows is None else self.ingest.as_now(rows)
            if self.fill is not None:
                latest = delta.frames.get("latest")
                self.fill.latest = None if latest is None else self.aggregates.completed(latest)
