"""FORCE_WINDOW_CLOSE: windows that close by the machine's clock, once, from what is stored then.

A window is computed when the clock has passed its end and the watermark; the window the stream was
created in counts, rows for a window already computed are late. Rows stamped ahead wait for the
clock. With FILL every window a partition lets pass without rows after its first data gives a row
too.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import Interval, StreamPlan
from penstock.windows.aggregates import Aggregates
from penstock.windows.boundaries import Grid
from penstock.windows.clock import StreamClock
from penstock.windows.context import KernelContext
from penstock.windows.cut import make_cutter
from penstock.windows.events import Events, Stamp
from penstock.windows.fill import Filler
from penstock.windows.groups import Groups
from penstock.windows.ingest import Ingest
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History, since_full
from penstock.windows.output import EmissionBuffer
from penstock.windows.result import Results
from penstock.windows.scope import Scope
from penstock.windows.ticks import ALWAYS, NEVER


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
        self.plan = plan
        self.history = history
        scope = Scope(plan)
        self.groups = Groups(scope, (context or KernelContext()).tables)
        self.aggregates = Aggregates(scope)
        self.cutter = make_cutter(scope)
        self.ingest = Ingest(scope, self.groups, self.aggregates, self.cutter)
        self.results = Results(scope, self.groups)
        self.events = Events(plan, self.groups)
        self.filler = (
            Filler(scope, self.aggregates, self.results) if plan.fill.mode != "none" else None
        )
        self.grid = Grid(plan.window, plan.source.precision, plan.timezone)
        self.watermark = plan.watermark.ticks(plan.source.precision)
        self.time = plan.source.time_column
        self.key = plan.source.key_column
        self.identity = [
            "tbname",
            plan.target.columns[0].name,
            *([plan.target.key_column] if plan.target.key_column else []),
        ]
        #: index of the next window to compute; NEVER before the first tick
        self.next = NEVER
        self.stream = StreamClock()
        self.rows: pl.DataFrame | None = None
        #: partials of the latest window with rows of each partition that had any, and of the latest
        #: with each value
        self.latest: pl.DataFrame | None = None

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = EmissionBuffer()
        if rows.height:
            rows = self.ingest.written(rows, self.history)
            made, failed = self.ingest.prepare(rows)
            if failed is not None:
                out.failed.append(failed)
            for part in (
                made.partition_by("_step", maintain_order=True) if self.plan.notify else [made]
            ):
                self._store(part, rows, out)
        return out.emission(self.identity)

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
            late = pl.Series(self.grid.last(fresh.get_column(self.time).to_numpy()) < self.next)
            if late.any():
                lost = fresh.filter(late).select("_source")
                out.late.append(
                    source.with_row_index("_source")
                    .join(lost, on="_source", how="semi")
                    .drop("_source")
                )
                fresh = fresh.filter(~late)
        fresh = fresh.select(self.ingest.columns)
        if self.plan.notify is not None:
            self._open(fresh, stored, int(made.get_column("_step")[0]), out)
        self.rows = pl.concat([stored, fresh])

    def _open(
        self, fresh: pl.DataFrame, stored: pl.DataFrame, step: int, out: EmissionBuffer
    ) -> None:
        windows, known = (
            self.cutter.describe(self.cutter.label(f.sort("_g", self.time, "_seq")))
            for f in (fresh, stored)
        )
        opened = windows.join(known, on=["_g", "_wstart"], how="anti")
        if self.next != NEVER:
            opened = opened.filter(
                pl.Series(self.grid.last(opened.get_column("_wstart").to_numpy()) >= self.next)
            )
        out.events += self.events.make(
            opened, windows.clear(), None, windows.clear(), Stamp(step, self.stream.now)
        )

    def control(self, control: Control) -> Emission:
        out = EmissionBuffer()
        if control.kind == "tick" and control.time > self.stream.time:
            self.stream.advance(control.time)
            if self.next == NEVER:
                self._start(control.time)
            self._close(control.time - self.watermark, out)
        elif control.kind == "delete" and self.rows is not None:
            chosen = pl.col(self.time).is_between(control.low, control.high)
            if control.tables is not None:
                chosen &= pl.col("_tab").is_in(self.ingest.tables_named(control.tables))
            self.rows = self.rows.filter(~chosen)
        elif control.kind == "flush":
            self._flush(out)
        return out.emission(self.identity)

    def _flush(self, out: EmissionBuffer) -> None:
        """Close all windows that have rows."""
        if self.next == NEVER or self.rows is None or not self.rows.height:
            return
        last = self.grid.last(self.rows.get_column(self.time).to_numpy())
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
        due = rows.filter(pl.col(self.time) < end).sort(
            "_g", self.time, *([self.key] if self.key else []), "_seq"
        )
        labelled = self.cutter.label(due)
        index = pl.Series(
            "_i", self.grid.last(labelled.get_column("_wstart").to_numpy()), dtype=pl.Int64
        )
        labelled = labelled.filter((index >= first) & (index < behind))
        windows = (
            self.cutter.describe(labelled)
            .hstack(self.aggregates.partial(labelled, ["_w"], ordered=True).drop("_w"))
            .drop("_w")
        )
        self.rows = rows.filter(pl.col(self.time) >= start)
        if windows.height:
            finals = windows.select("_g", "_wstart", "_wend").hstack(
                self.aggregates.finalise(windows, [])
            )
            made = self.results.upserts(finals.with_columns(pl.lit(self.stream.now).alias("_now")))
            out.rows.append(made.rows)
            if made.failed is not None:
                out.failed.append(made.failed)
            if self.plan.notify is not None and made.rows.height == windows.height:
                out.events += self.events.make(
                    windows.clear(), windows, made.rows, windows.clear(), Stamp(0, self.stream.now)
                )
        if self.filler is not None:
            self._fill(windows, first, behind, out)

    def _fill(self, windows: pl.DataFrame, first: int, behind: int, out: EmissionBuffer) -> None:
        """Rows for the windows from *first* up to *behind* that partitions with data have let
        pass.
        """
        assert self.filler is not None
        indexed = windows.with_columns(
            pl.Series(
                "_i", self.grid.last(windows.get_column("_wstart").to_numpy()), dtype=pl.Int64
            )
        )
        earlier = (
            self.latest.with_columns(pl.lit(first - 1, dtype=pl.Int64).alias("_i"))
            if self.latest is not None
            else indexed.clear()
        )
        known = pl.concat([earlier.select(indexed.columns), indexed]).sort("_g", "_i", "_wstart")
        gaps = (
            known.with_row_index("_line")
            .select(
                "_g",
                "_line",
                (pl.col("_i") + 1).alias("_f"),
                pl.col("_i").shift(-1).over("_g").fill_null(behind).alias("_u"),
            )
            .filter(pl.col("_u") > pl.col("_f"))
        )
        if gaps.height:
            out.rows.append(self.filler.after(gaps, known))
        self.latest = self.filler.lasting(known).drop("_i")

    def skip(self, rows: pl.DataFrame) -> None:
        """Its rows are all that it computes from."""

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        """Nothing: the planner refuses FILL_HISTORY with this trigger."""
        return Emission()

    def open_windows(self) -> pl.DataFrame:
        if self.rows is None or not self.rows.height:
            return self.results.empty().drop("_op")
        labelled = self.cutter.label(self.rows.sort("_g", self.time, "_seq"))
        windows = self.cutter.describe(labelled).hstack(
            self.aggregates.partial(labelled, ["_w"], ordered=True).drop("_w")
        )
        finals = windows.select("_g", "_wstart", "_wend").hstack(
            self.aggregates.finalise(windows, [])
        )
        return self.results.upserts(finals).rows.drop("_op")

    def delta(self, full: bool = False) -> Delta:
        frames = {name: frame for name, frame in self.ingest.delta(full).items() if frame.height}
        # what is stored is no more than the rows of windows still open
        frames["clock"] = pl.DataFrame(
            {"clock": [self.stream.time], "next": [self.next], "now": [self.stream.now]}
        )
        if self.rows is not None:
            frames["rows"] = self.rows
        if self.latest is not None:
            frames["latest"] = self.latest
        return Delta(frames, full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in since_full(deltas):
            self.ingest.restore(delta.frames)
            self.stream.time, self.next, self.stream.now = delta.frames["clock"].row(0)
            rows = delta.frames.get("rows")
            self.latest = delta.frames.get("latest")
            self.rows = None if rows is None else self.ingest.as_now(rows)
            if self.latest is not None:
                self.latest = self.aggregates.completed(self.latest)
