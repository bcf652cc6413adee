"""The general window kernel: any window kind, any option.

It holds a stream's live rows and the windows cut from them. A write changes live rows; what a
change reaches (`regions`) is cut anew (`cut`), compared with the windows known, and published as
the trigger says (`publish`). So a result is a function of the live rows and of T alone, and how
rows were batched changes nothing. Refuses FORCE_WINDOW_CLOSE (`force`) and streams without a window
(`filter`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import StreamPlan
from penstock.windows.aggregates import Aggregates
from penstock.windows.clock import GroupClock, StreamClock
from penstock.windows.context import KernelContext
from penstock.windows.cut import make_cutter
from penstock.windows.events import Stamp
from penstock.windows.evict import Evictor
from penstock.windows.groups import Groups
from penstock.windows.ingest import Ingest
from penstock.windows.inorder import InOrder
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
from penstock.windows.lateness import Lateness
from penstock.windows.live_rows import LiveRows
from penstock.windows.outlet import GONE, Outlet, WindowChange, as_published
from penstock.windows.output import EmissionBuffer
from penstock.windows.publish import CLOSED, OPEN, PublishPolicy
from penstock.windows.regions import Regions
from penstock.windows.renewal import Renewal
from penstock.windows.rules import Rules
from penstock.windows.scope import Scope
from penstock.windows.store import Numbers
from penstock.windows.ticks import ALWAYS, NEVER, Highest, Ticks
from penstock.windows.write_order import by_write, stamp_of


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
        self.plan = plan
        self.history = history
        scope = Scope(plan)
        source = plan.source
        self.groups = Groups(scope, (context or KernelContext()).tables)
        self.aggregates = Aggregates(scope)
        self.cutter = make_cutter(scope)
        self.ingest = Ingest(scope, self.groups, self.aggregates, self.cutter)
        self.regions = Regions(plan)
        self.publisher = PublishPolicy(plan.trigger)
        self.clock = GroupClock(plan.watermark.ticks(source.precision))
        #: the highest event time by table; where groups are tables, they have the same numbers
        self.tables = self.clock.times if self.groups.whole else Highest()
        self.stream = StreamClock()
        self.time = source.time_column
        self.rules = Rules.of(plan)
        replaces = self.rules.replaces
        self.outlet = Outlet(scope, self.groups, self.aggregates, self.clock, replaces)
        self.identity = self.outlet.identity
        self.target_key = self.outlet.target_key
        self.renewal = Renewal(
            self.ingest,
            self.aggregates,
            self.cutter,
            self.regions,
            self.outlet.key_type,
            self.publisher.keeps_vanished,
        )
        self.store = self.renewal.store
        # filled rows depend on neighbours however far away, so nothing is let go then
        again = history if self.outlet.filler is None else None
        self.evictor = Evictor(
            self.ingest,
            self.store,
            self.clock,
            self.regions,
            again,
            self._remembered,
            replaces,
            room,
        )
        self.live = LiveRows(
            self.ingest,
            self.store,
            self.evictor,
            self.tables,
            replaces=replaces,
        )
        self.lateness = Lateness(
            self.clock,
            self.tables,
            self.regions,
            self.evictor,
            self.time,
            whole=self.groups.whole,
            keeps_late=self.rules.keeps_late,
        )
        inorder = InOrder(self.ingest, self.aggregates, self.cutter, self.store, self.store.heads)
        plain = plan.notify is None and self.outlet.filler is None and self.target_key is None
        self.inorder = inorder if plain and inorder.able else None
        self.ghosts = self.store.heads.select(GONE)
        self.stamp = Stamp(0, 0)

    # ---------------------------------------------------------------- input

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = EmissionBuffer()
        if rows.height:
            rows = self.ingest.written(rows, self.history, replaces=self.rules.replaces)
            made, failed = self.ingest.prepare(rows)
            if failed is not None:
                out.failed.append(failed)
            if made.height:
                self.evictor.begin(rows)
                self._take(made, rows, out)
                self.evictor.trim()
        return out.emission(self.identity)

    def skip(self, rows: pl.DataFrame) -> None:
        """See `Kernel`."""
        rows = self.ingest.written(rows, self.history, replaces=self.rules.replaces)
        made, _ = self.ingest.prepare(rows)
        self._reserve()
        self.evictor.begin(rows)
        offsets = rows.get_column("_offset").gather(made.get_column("_source"))
        self.evictor.drop(made.with_columns(offsets))
        self.evictor.supersede(made)

    def _take(self, made: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """Prepared rows of one call."""
        self._reserve()
        if not self.groups.whole:
            # by what came before the call: rows of other partitions that are worked on first do not
            # make a row late
            made = made.with_columns(pl.Series("_behind", self.lateness.behind_table(made)))
        if self.inorder is None:
            for part in self._parts(made):
                self._write(part, source, out)
            return
        ordered = self.inorder.split(
            made,
            self.clock.times,
            self.tables,
            self.rules.replaces,
            self.rules.replaces or self.evictor.trimmed,
        )
        if ordered.all():
            self._extend(made, source, out)
            return
        if ordered.any():
            self._extend(made.filter(pl.Series(ordered)), source, out)
        for part in self._parts(made.filter(pl.Series(~ordered))):
            self._write(part, source, out)

    def _extend(self, rows: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """Rows of partitions that are in order."""
        assert self.inorder is not None
        self.stream.hear(int(rows.get_column("_now").to_numpy().max()))
        passed = rows.get_column("_pass")
        live = rows.filter(passed) if not passed.all() else rows
        repeats = rows.clear() if live is rows or self.rules.replaces else rows.filter(~passed)
        repeats = repeats.filter(
            pl.Series(repeats.get_column(self.time).to_numpy() <= self.live.highest(repeats))
        )
        if live.height:
            self._raise(live)
            self.store.add(live.select(self.ingest.columns))
        self.live.note(live, repeats, source)
        if not live.height:
            return
        t = self.clock.all_t()
        waiting, windows = self.inorder.extend(live, t)
        decided = self.publisher.decide(windows)
        put = decided.filter(pl.col("_put"))
        drop = decided.filter(pl.col("_drop"))
        self.outlet.publish(
            WindowChange(put, put.clear(), put, drop.select(GONE)), Stamp(0, self.stream.now), out
        )
        settled = self.publisher.settled(decided)
        mine = settled[waiting:]
        owners = mine.get_column("_g").to_numpy()
        last = pl.Series(np.append(owners[1:] != owners[:-1], True)[: len(owners)])
        self.store.advance(
            owners[last.to_numpy()],
            mine.filter(last),
            pl.concat([settled[:waiting], mine.filter(~last)]),
            t,
        )

    def _parts(self, rows: pl.DataFrame) -> list[pl.DataFrame]:
        """Pieces of a call between which the kernel must settle."""
        if self.rules.by_write:
            return by_write(rows, whole=self.groups.whole)
        shown = np.zeros(0, np.bool_)
        if self.rules.shows_open:
            shown = self.store.groups_with(OPEN, len(self.groups))
        if not shown.any():
            return [rows] if rows.height else []
        # a write that moves or dissolves such a window takes its row back, and a later one of the
        # call does not bring it again
        if not self.groups.whole:
            return by_write(rows, whole=False)
        mine = pl.Series(shown[rows.get_column("_g").to_numpy()])
        rest = rows.filter(~mine)
        return [*by_write(rows.filter(mine), whole=True), *([rest] if rest.height else [])]

    def _write(self, rows: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer) -> None:
        """One or several writes, settled once at their end."""
        self.stream.hear(int(rows.get_column("_now").to_numpy().max()))
        self._reserve()
        each = self.plan.notify is not None and self.groups.whole
        self.stamp = stamp_of(rows, self.stream.now, each_group=each)
        before = self.clock.all_t()
        rows, lost = self.lateness.drop(rows, source, out)
        self.evictor.load_for(rows)
        if self.evictor.trimmed:
            # behind what has just been read again
            rows, lost = self.ingest.renumbered(rows, lost)
        live = rows.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
        fresh, points = self.live.change(rows, live)
        if not self.rules.replaces:
            lost = pl.concat([lost, rows.filter(~pl.col("_pass") & (pl.col("_op") != DELETE))])
        self.live.note(live, lost, source)
        self._raise(live)
        numbers = pl.concat([points.get_column("_g"), live.get_column("_g")]).unique().to_numpy()
        self._settle(points, numbers, before, out, fresh)

    def _raise(self, live: pl.DataFrame) -> None:
        """Move event time on to what *live* rows say."""
        times = live.get_column(self.time).to_numpy()
        heard = live.get_column("_now").to_numpy() if self.rules.idle else None
        self.clock.advance(live.get_column("_g").to_numpy(), times, heard)
        if not self.groups.whole:
            tables = live.get_column("_tab").to_numpy()
            self.tables.reserve(int(tables.max(initial=-1)) + 1)
            self.tables.raise_to(tables, times)

    def _reserve(self) -> None:
        self.clock.reserve(len(self.groups))
        self.store.reserve(len(self.groups))

    # ---------------------------------------------------------------- windows

    def _settle(
        self,
        points: pl.DataFrame,
        numbers: Numbers,
        before: Ticks,
        out: EmissionBuffer,
        fresh: pl.DataFrame | None = None,
        at_once: bool = False,
    ) -> None:
        """Cut what *points* reach anew and publish what is due in partitions *numbers*.

        Args:
            before: T per partition before the write.
            fresh: the rows added.
            at_once: publish as AT_ONCE.
        """
        if not len(numbers):
            return
        windows = known_before = self.store.take(numbers, self._earliest(points))
        opened = windows.clear()
        vanished = windows.clear()
        if points.height:
            windows, opened, vanished = self.renewal.renew(windows, points, fresh)
        t = self.clock.all_t()
        number = windows.get_column("_g").to_numpy()
        stop = windows.get_column("_stop").to_numpy()
        earlier = np.full(len(t), NEVER, np.int64)
        earlier[: len(before)] = before
        windows = windows.with_columns(
            pl.Series("_closed", stop < t[number]), pl.Series("_was_open", stop >= earlier[number])
        )
        decided = self.publisher.decide(windows, at_once)
        put = decided.filter(pl.col("_put"))
        drop = decided.filter(pl.col("_drop"))
        removed = [as_published(drop, known_before)]
        if self.publisher.keeps_vanished and not at_once:
            self.ghosts = pl.concat([self.ghosts, vanished.select(GONE)], rechunk=True).unique(
                maintain_order=True
            )
        else:
            removed.append(vanished.select(GONE))
        settled = self.publisher.settled(decided, at_once)
        known = self.outlet.publish(
            WindowChange(settled, opened, put, pl.concat(removed), at_once), self.stamp, out
        )
        self.store.put(known, t)

    def _earliest(self, points: pl.DataFrame) -> Ticks | None:
        """The first of *points* of each partition, ALWAYS without one; None: windows before it may
        be concerned as well.
        """
        if not self.regions.by_window or self.outlet.filler is not None:
            return None
        first = np.full(len(self.groups), ALWAYS, np.int64)
        np.minimum.at(first, points.get_column("_g").to_numpy(), points.get_column("_t").to_numpy())
        return first

    def _remembered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Windows of *rows* (sorted) as they are known long after: published, and closed."""
        windows = self.renewal.describe(rows)
        state = OPEN if self.plan.trigger.kind == "at_once" else CLOSED
        windows = windows.with_columns(
            pl.when("_done").then(state).otherwise(0).cast(pl.Int8).alias("_pub")
        )
        if not self.target_key:
            return windows
        made = self.outlet.results_of(windows, self.stream.now, EmissionBuffer())
        if made is None:
            return windows
        return windows.with_columns(made.get_column(self.target_key).alias("_key"))

    # ---------------------------------------------------------------- controls

    def control(self, control: Control) -> Emission:
        out = EmissionBuffer()
        self.stamp = Stamp(0, max(self.stream.now, control.time))
        if control.kind == "tick":
            self._tick(control.time, control.heard_until, out)
        elif control.kind == "delete":
            self._delete(control, out)
        elif control.kind == "flush":
            self._flush(np.arange(len(self.groups)), out)
        elif control.kind == "recalculate":
            self._recalculate(control.low, control.high, out)
        return out.emission(self.identity)

    def _delete(self, control: Control, out: EmissionBuffer) -> None:
        chosen = pl.col(self.time).is_between(control.low, control.high)
        if control.tables is not None:
            chosen &= pl.col("_tab").is_in(self.ingest.tables_named(control.tables))
        self.evictor.load_range(control.low, control.high, control.tables)
        gone = self.store.rows.filter(chosen)
        if gone.height:
            self.store.remove(gone)
            self._settle(
                self.live.points(gone, pl.lit(True)),
                gone.get_column("_g").unique().to_numpy(),
                self.clock.all_t(),
                out,
            )

    def _tick(self, time: int, heard_until: int, out: EmissionBuffer) -> None:
        if self.stream.begin(time):
            return
        if self.rules.idle:
            # also by a tick of the same time: it may come from the partition that was behind
            self._flush(self.clock.silent(heard_until - self.rules.idle), out)
        due = self.stream.is_due(time, self.rules.every)
        self.stream.advance(time)
        if due:
            self._push(out)

    def _push(self, out: EmissionBuffer) -> None:
        """MAX_DELAY's and RECALCULATE's moment: publish what waited for it."""
        windows = self.store.take(np.arange(len(self.groups)))
        t = self.clock.all_t()
        stop = windows.get_column("_stop").to_numpy()
        closed = pl.Series("_closed", stop < t[windows.get_column("_g").to_numpy()])
        decided = windows.with_columns(closed).with_columns(
            (pl.col("_dirty") & pl.col("_done")).alias("_put"),
            pl.lit(False).alias("_drop"),
            pl.lit(False).alias("_dirty"),
        )
        known = self.publisher.settled(decided)
        removed = self.ghosts.join(
            known.filter(pl.col("_pub") > 0), on=["_g", "_wstart"], how="anti"
        )
        self.ghosts = self.ghosts.clear()
        known = self.outlet.publish(
            WindowChange(known, windows.clear(), decided.filter(pl.col("_put")), removed),
            Stamp(0, self.stream.now),
            out,
        )
        self.store.put(known, t)

    def _flush(self, numbers: Numbers, out: EmissionBuffer) -> None:
        """Raise T of partitions past everything they hold."""
        before = self.clock.all_t()
        windows = self.store.take(numbers)
        self.store.put(windows, before)
        ends = windows.group_by("_g").agg(pl.col("_stop").max() + 1)
        if ends.height:
            self.clock.raise_floor(
                ends.get_column("_g").to_numpy(), ends.get_column("_stop").to_numpy()
            )
            self._settle(
                self.live.points(self.ingest.empty(), pl.lit(True)),
                ends.get_column("_g").to_numpy(),
                before,
                out,
            )

    def _recalculate(self, low: int, high: int, out: EmissionBuffer) -> None:
        """Replace the live rows of low..high by what is stored, and publish what changes."""
        if self.history is None:
            return
        self.evictor.load_range(low, high)
        stored = self.history.fetch(low, high)
        made, failed = self.ingest.prepare(stored)
        if failed is not None:
            out.failed.append(failed)
        made = made.filter(pl.col("_pass"))
        fresh = made.select(self.ingest.columns)
        self.evictor.count_again(
            made.with_columns(stored.get_column("_offset").gather(made.get_column("_source"))),
            low,
            high,
        )
        gone = self.store.rows.filter(pl.col(self.time).is_between(low, high))
        self.store.remove(gone)
        self.store.add(fresh)
        self._reserve()
        points = pl.concat(
            [self.live.points(gone, pl.lit(False)), self.live.points(fresh, pl.lit(False))]
        )
        self._settle(points, points.get_column("_g").unique().to_numpy(), self.clock.all_t(), out)

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        out = EmissionBuffer()
        self.stamp = Stamp(0, self.stream.now)
        stored = self.history.fetch(low, high) if self.history is not None else None
        if stored is not None and stored.height:
            made, failed = self.ingest.prepare(stored)
            if failed is not None:
                out.failed.append(failed)
            self._reserve()
            live = made.filter(pl.col("_pass")).with_columns(pl.lit(False).alias("_late"))
            self.evictor.load_for(live)
            fresh, points = self.live.change(live, live)
            self._raise(live)
            self._settle(
                points,
                live.get_column("_g").unique().to_numpy(),
                self.clock.all_t(),
                out,
                fresh,
                at_once=True,
            )
            self.evictor.trim()
        return out.emission(self.identity)

    def open_windows(self) -> pl.DataFrame:
        still = self.store.open_windows(self.clock.all_t())
        rows = self.outlet.results_of(still, self.stream.now, EmissionBuffer())
        return (rows if rows is not None else self.outlet.results.empty()).drop("_op")

    # ---------------------------------------------------------------- state

    def delta(self, full: bool = False) -> Delta:
        times = self.clock.frames(full)
        tables = {} if self.groups.whole else {"t.tables": self.tables.delta(full)}
        frames = {
            **self.ingest.delta(full),
            "t.groups": times.pop("t.groups"),
            **tables,
            **times,
            **self.store.delta(full),
            **self.evictor.delta(full),
        }
        frames = {name: frame for name, frame in frames.items() if frame.height or name == "extras"}
        frames["ghosts"] = self.ghosts
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
                frames["windows"] = self.aggregates.completed(frames["windows"])
            if "rows" in frames:
                frames = frames | {"rows": self.ingest.as_now(frames["rows"])}
            self.store.restore(frames, self.clock.all_t())
            self.evictor.restore(frames)
            self.ghosts = frames["ghosts"].cast(dict(self.ghosts.schema))  # type: ignore[arg-type]
            self.stream.restore(frames["clock"])
