"""The general window kernel: any window kind, any option.

It holds a stream's live rows and the windows cut from them. A write changes live rows; what a
change reaches is cut anew, compared with the windows known, and published as the trigger says
(`WindowUpdates`). So a result is a function of the live rows and of T alone, and how rows were
batched changes nothing. Does not do FORCE_WINDOW_CLOSE (`force`) and streams without a window
(`filter`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import StreamPlan
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import make_cutter
from penstock.windows.assign.events import Stamp
from penstock.windows.assign.ingest import Ingest
from penstock.windows.assign.inorder import InOrder
from penstock.windows.assign.regions import Regions
from penstock.windows.clocks.clock import GroupClock, StreamClock
from penstock.windows.clocks.lateness import Lateness
from penstock.windows.clocks.ticks import Highest
from penstock.windows.context import KernelContext
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.general.evict import Evictor
from penstock.windows.general.live_rows import LiveRows
from penstock.windows.general.window_updates import WindowUpdates
from penstock.windows.groups.groups import Groups
from penstock.windows.kernel import (
    EARLIEST,
    LATEST,
    ROOM,
    Control,
    Delta,
    Emission,
    History,
    since_full,
)
from penstock.windows.rows.scope import Scope
from penstock.windows.rows.write_order import by_write, stamp_of
from penstock.windows.rules import Rules


class GeneralKernel:
    """See the module."""

    def __init__(
        self,
        plan: StreamPlan,
        history: History | None,
        room: int = ROOM,
        context: KernelContext | None = None,
    ) -> None:
        """
        Args:
            room: how many live rows stay in memory in any case.
            context: what it has in common with other kernels; None: nothing.
        """
        self.history = history
        self.rules = Rules.of(plan)
        scope = Scope(plan)
        groups = Groups(scope, (context or KernelContext()).tables)
        aggregates = Aggregates(scope)
        cutter = make_cutter(scope)
        regions = Regions(plan)
        replaces = self.rules.replaces
        self.ingest = Ingest(scope, groups, aggregates, cutter)
        self.clock = GroupClock.of(plan)
        #: the highest event time by table; where groups are tables, they have the same numbers
        self.tables = self.clock.times if groups.whole else Highest()
        self.stream = StreamClock()
        self.updates = WindowUpdates(
            scope,
            self.ingest,
            aggregates,
            cutter,
            regions,
            self.clock,
            self.stream,
            replaces=replaces,
        )
        self.store = self.updates.store
        # filled rows depend on neighbours however far away, so nothing is let go then
        again = None if self.updates.outlet.fills else history
        self.evictor = Evictor(
            self.ingest,
            self.store,
            self.clock,
            regions,
            again,
            self.updates.remembered,
            replaces,
            room,
        )
        self.live = LiveRows(self.ingest, self.store, self.evictor, self.tables, replaces=replaces)
        self.lateness = Lateness(
            self.clock,
            self.tables,
            regions,
            self.evictor,
            self.ingest.time,
            whole=groups.whole,
            keeps_late=self.rules.keeps_late,
        )
        inorder = InOrder(self.ingest, aggregates, cutter, self.store, self.store.heads)
        plain = (
            not self.rules.notifies
            and not self.updates.outlet.fills
            and plan.target.key_column is None
        )
        self.inorder = inorder if plain and inorder.able else None

    @property
    def _whole(self) -> bool:
        """Whether a group is a table."""
        return self.ingest.groups.whole

    # ---------------------------------------------------------------- input

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = EmissionBuffer()
        if rows.height:
            rows = self.ingest.written(rows, self.history, replaces=self.rules.replaces)
            made, failed = self.ingest.prepare(rows)
            out.fail(failed)
            if made.height:
                self.evictor.stored.begin(rows)
                self._take(made, rows, out)
                self.evictor.trim()
        return out.emission(self.updates.identity)

    def skip(self, rows: pl.DataFrame) -> None:
        """See `Kernel`."""
        rows = self.ingest.written(rows, self.history, replaces=self.rules.replaces)
        made, _ = self.ingest.prepare(rows)
        self._reserve()
        self.evictor.stored.begin(rows)
        offsets = rows.get_column("_offset").gather(made.get_column("_source"))
        self.evictor.stored.drop(made.with_columns(offsets))
        self.evictor.supersede(made)

    def _take(self, made: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """Prepared rows of one call."""
        self._reserve()
        if not self._whole:
            # by what came before the call: rows of other partitions that are worked on first do not
            # make a row late
            made = made.with_columns(pl.Series("_behind", self.lateness.behind_table(made)))
        if self.inorder is None:
            for part in self._parts(made):
                self._write(part, source, out)
            return
        replaces = self.rules.replaces
        ordered = self.inorder.split(
            made, self.clock.times, self.tables, replaces, replaces or self.evictor.bound.trimmed
        )
        if ordered.all():
            self._extend(made, source, out)
            return
        if ordered.any():
            self._extend(made.filter(pl.Series(ordered)), source, out)
        for part in self._parts(made.filter(pl.Series(~ordered))):
            self._write(part, source, out)

    def _extend(self, rows: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """Take rows of partitions that are in order."""
        assert self.inorder is not None
        self.stream.hear(int(rows.get_column("_now").to_numpy().max()))
        passed = rows.get_column("_pass")
        live = rows.filter(passed) if not passed.all() else rows
        repeats = rows.clear() if live is rows or self.rules.replaces else rows.filter(~passed)
        times = repeats.get_column(self.ingest.time).to_numpy()
        repeats = repeats.filter(pl.Series(times <= self.live.highest(repeats)))
        if live.height:
            self._raise(live)
            self.store.add(live.select(self.ingest.columns))
        self.live.note(live, repeats, source)
        if live.height:
            t = self.clock.all_t()
            waiting, windows = self.inorder.extend(live, t)
            self.updates.extend(waiting, windows, t, out)

    def _parts(self, rows: pl.DataFrame) -> list[pl.DataFrame]:
        """Pieces of a call between which the kernel must settle."""
        if self.rules.by_write:
            return by_write(rows, whole=self._whole)
        shown = self.updates.shown() if self.rules.shows_open else np.zeros(0, np.bool_)
        if not shown.any():
            return [rows] if rows.height else []
        # a write that moves or dissolves such a window takes its row back, and a later one of the
        # call does not bring it again
        if not self._whole:
            return by_write(rows, whole=False)
        mine = pl.Series(shown[rows.get_column("_g").to_numpy()])
        rest = rows.filter(~mine)
        return [*by_write(rows.filter(mine), whole=True), *([rest] if rest.height else [])]

    def _write(self, rows: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """Take one or several writes, settled once at their end."""
        self.stream.hear(int(rows.get_column("_now").to_numpy().max()))
        self._reserve()
        each = self.rules.notifies and self._whole
        self.updates.stamp = stamp_of(rows, self.stream.now, each_group=each)
        before = self.clock.all_t()
        rows, lost = self.lateness.drop(rows, source, out)
        self.evictor.load_for(rows)
        if self.evictor.bound.trimmed:
            # behind what has just been read again
            rows, lost = self.ingest.renumbered(rows, lost)
        live = rows.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
        fresh, points = self.live.change(rows, live)
        if not self.rules.replaces:
            lost = pl.concat([lost, rows.filter(~pl.col("_pass") & (pl.col("_op") != DELETE))])
        self.live.note(live, lost, source)
        self._raise(live)
        numbers = pl.concat([points.get_column("_g"), live.get_column("_g")]).unique().to_numpy()
        self.updates.settle(points, numbers, before, out, fresh)

    def _raise(self, live: pl.DataFrame) -> None:
        """Move event time on to what *live* rows say."""
        times = live.get_column(self.ingest.time).to_numpy()
        heard = live.get_column("_now").to_numpy() if self.clock.idle else None
        self.clock.advance(live.get_column("_g").to_numpy(), times, heard)
        if not self._whole:
            tables = live.get_column("_tab").to_numpy()
            self.tables.reserve(int(tables.max(initial=-1)) + 1)
            self.tables.raise_to(tables, times)

    def _reserve(self) -> None:
        self.clock.reserve(len(self.ingest.groups))
        self.store.reserve(len(self.ingest.groups))

    # ---------------------------------------------------------------- controls

    def control(self, control: Control) -> Emission:
        out = EmissionBuffer()
        self.updates.stamp = Stamp(0, max(self.stream.now, control.time))
        if control.kind == "tick":
            self._tick(control.time, control.heard_until, out)
        elif control.kind == "delete":
            self._delete(control, out)
        elif control.kind == "flush":
            self.updates.close(np.arange(len(self.ingest.groups)), out)
        elif control.kind == "recalculate":
            self._recalculate(control.low, control.high, out)
        return out.emission(self.updates.identity)

    def _delete(self, control: Control, out: EmissionBuffer) -> None:
        chosen = pl.col(self.ingest.time).is_between(control.low, control.high)
        if control.tables is not None:
            chosen &= pl.col("_tab").is_in(self.ingest.tables_named(control.tables))
        self.evictor.load_range(control.low, control.high, control.tables)
        gone = self.store.rows.filter(chosen)
        if gone.height:
            self.store.remove(gone)
            self.updates.settle(
                self.live.points(gone, pl.lit(True)),
                gone.get_column("_g").unique().to_numpy(),
                self.clock.all_t(),
                out,
            )

    def _tick(self, time: int, heard_until: int, out: EmissionBuffer) -> None:
        if self.stream.begin(time):
            return
        if self.clock.idle:
            # also by a tick of the same time: it may come from the partition that was behind
            self.updates.close(self.clock.silent(heard_until), out)
        due = self.stream.is_due(time, self.rules.every)
        self.stream.advance(time)
        if due:
            self.updates.push(out)

    def _recalculate(self, low: int, high: int, out: EmissionBuffer) -> None:
        """Replace the live rows of low..high by what is stored, and publish what changes."""
        if self.history is None:
            return
        self.evictor.load_range(low, high)
        stored = self.history.fetch(low, high)
        made, failed = self.ingest.prepare(stored)
        out.fail(failed)
        made = made.filter(pl.col("_pass"))
        fresh = made.select(self.ingest.columns)
        self.evictor.count_again(
            made.with_columns(stored.get_column("_offset").gather(made.get_column("_source"))),
            low,
            high,
        )
        gone = self.store.rows.filter(pl.col(self.ingest.time).is_between(low, high))
        self.store.remove(gone)
        self.store.add(fresh)
        self._reserve()
        points = pl.concat(
            [self.live.points(gone, pl.lit(False)), self.live.points(fresh, pl.lit(False))]
        )
        self.updates.settle(
            points, points.get_column("_g").unique().to_numpy(), self.clock.all_t(), out
        )

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        out = EmissionBuffer()
        self.updates.stamp = Stamp(0, self.stream.now)
        stored = self.history.fetch(low, high) if self.history is not None else None
        if stored is not None and stored.height:
            made, failed = self.ingest.prepare(stored)
            out.fail(failed)
            self._reserve()
            live = made.filter(pl.col("_pass")).with_columns(pl.lit(False).alias("_late"))
            self.evictor.load_for(live)
            fresh, points = self.live.change(live, live)
            self._raise(live)
            self.updates.settle(
                points,
                live.get_column("_g").unique().to_numpy(),
                self.clock.all_t(),
                out,
                fresh,
                at_once=True,
            )
            self.evictor.trim()
        return out.emission(self.updates.identity)

    def open_windows(self) -> pl.DataFrame:
        return self.updates.open_rows()

    # ---------------------------------------------------------------- state

    def delta(self, full: bool = False) -> Delta:
        times = self.clock.frames(full)
        tables = {} if self._whole else {"t.tables": self.tables.delta(full)}
        frames = {
            **self.ingest.delta(full),
            "t.groups": times.pop("t.groups"),
            **tables,
            **times,
            **self.store.delta(full),
            **self.evictor.delta(full),
        }
        frames = {name: frame for name, frame in frames.items() if frame.height or name == "extras"}
        frames["ghosts"] = self.updates.delta()
        frames["clock"] = self.stream.delta()
        return Delta(frames, full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in since_full(deltas):
            frames = dict(delta.frames)
            self.ingest.restore(frames)
            self._reserve()
            self.clock.restore_frames(frames)
            if "t.tables" in frames:
                self.tables.restore(frames["t.tables"])
            if "windows" in frames:
                frames["windows"] = self.updates.completed(frames["windows"])
            if "rows" in frames:
                frames = frames | {"rows": self.ingest.as_now(frames["rows"])}
            self.store.restore(frames, self.clock.all_t())
            self.evictor.restore(frames)
            self.updates.restore(frames["ghosts"])
            self.stream.restore(frames["clock"])
