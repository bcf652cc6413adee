"""From changed rows to published windows, in the general kernel.

The stations of a change, in order: windows that it reaches are taken from the store and cut anew
(`Renewal`), the trigger decides which are put and dropped (`PublishPolicy`), `Outlet` makes rows
and events of those, and the store takes the windows back as they are now. Does not know what has
changed them: a write, the clock or a control.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import Cutter
from penstock.windows.assign.events import Stamp
from penstock.windows.assign.ingest import Ingest
from penstock.windows.assign.regions import Regions
from penstock.windows.clocks.clock import GroupClock, StreamClock
from penstock.windows.clocks.ticks import ALWAYS, NEVER, Ticks
from penstock.windows.emit.outlet import GONE, Outlet, WindowChange, as_published
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.publish import CLOSED, OPEN, PublishPolicy
from penstock.windows.general.renewal import Renewal
from penstock.windows.general.store import Mask, Numbers
from penstock.windows.rows.scope import Scope

#: points that changed: partition and time, whether by something that may wait for the clock, and
#: whether the row is gone
_POINTS = {"_g": pl.Int64(), "_t": pl.Int64(), "_quiet": pl.Boolean(), "_gone": pl.Boolean()}


class WindowUpdates:
    """The windows of one plan: known, changed, published."""

    def __init__(
        self,
        scope: Scope,
        ingest: Ingest,
        aggregates: Aggregates,
        cutter: Cutter,
        regions: Regions,
        clock: GroupClock,
        stream: StreamClock,
        *,
        replaces: bool,
    ) -> None:
        """*replaces*: a repeat of a row takes its place."""
        plan = scope.plan
        self._groups = ingest.groups
        self._clock = clock
        self._stream = stream
        self._policy = PublishPolicy(plan.trigger)
        self.outlet = Outlet(scope, ingest.groups, aggregates, clock, replaces)
        #: cuts windows anew where rows have changed
        self.renewal = Renewal(
            ingest,
            aggregates,
            cutter,
            regions,
            self.outlet.key_type,
            self._policy.keeps_vanished,
        )
        self.store = self.renewal.store
        #: whether a change concerns no window that is over before it
        self._local = regions.by_window and not self.outlet.fills
        #: windows that vanished and whose rows wait for the clock to be taken back
        self._ghosts = self.store.heads.select(GONE)
        #: the write that is worked on
        self.stamp = Stamp(0, 0)

    @property
    def identity(self) -> list[str]:
        """The columns that tell target rows from each other."""
        return self.outlet.rows.results.identity

    def settle(
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
            before: T by partition before the change.
            fresh: the rows added, if rows were only added.
            at_once: publish as AT_ONCE.
        """
        if not len(numbers):
            return
        windows = known_before = self.store.take(numbers, self._earliest(points))
        opened = windows.clear()
        vanished = windows.clear()
        if points.height:
            windows, opened, vanished = self.renewal.renew(windows, points, fresh)
        t = self._clock.all_t()
        number = windows.get_column("_g").to_numpy()
        stop = windows.get_column("_stop").to_numpy()
        earlier = np.full(len(t), NEVER, np.int64)
        earlier[: len(before)] = before
        windows = windows.with_columns(
            pl.Series("_closed", stop < t[number]), pl.Series("_was_open", stop >= earlier[number])
        )
        decided = self._policy.decide(windows, at_once)
        put = decided.filter(pl.col("_put"))
        drop = decided.filter(pl.col("_drop"))
        removed = [as_published(drop, known_before)]
        if self._policy.keeps_vanished and not at_once:
            self._ghosts = pl.concat([self._ghosts, vanished.select(GONE)], rechunk=True).unique(
                maintain_order=True
            )
        else:
            removed.append(vanished.select(GONE))
        settled = self._policy.settled(decided, at_once)
        known = self.outlet.publish(
            WindowChange(settled, opened, put, pl.concat(removed), at_once), self.stamp, out
        )
        self.store.put(known, t)

    def _earliest(self, points: pl.DataFrame) -> Ticks | None:
        """Return the first of *points* of each partition, ALWAYS without one; None: windows before
        it may be concerned as well.
        """
        if not self._local:
            return None
        first = np.full(len(self._groups), ALWAYS, np.int64)
        np.minimum.at(first, points.get_column("_g").to_numpy(), points.get_column("_t").to_numpy())
        return first

    def extend(self, waiting: int, windows: pl.DataFrame, t: Ticks, out: EmissionBuffer) -> None:
        """Publish what is due of *windows* that rows in order have extended.

        Args:
            waiting: how many of them, the first ones, have only waited for T.
            windows: in order of partition and start behind those, as `InOrder.extend` gives them.
            t: T by partition.
        """
        decided = self._policy.decide(windows)
        put = decided.filter(pl.col("_put"))
        drop = decided.filter(pl.col("_drop"))
        change = WindowChange(put, put.clear(), put, drop.select(GONE))
        self.outlet.publish(change, Stamp(0, self._stream.now), out)
        settled = self._policy.settled(decided)
        mine = settled[waiting:]
        owners = mine.get_column("_g").to_numpy()
        is_last = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
        last = pl.Series(is_last)
        self.store.advance(
            owners[is_last],
            mine.filter(last),
            pl.concat([settled[:waiting], mine.filter(~last)]),
            t,
        )

    def push(self, out: EmissionBuffer) -> None:
        """Publish what has waited for the clock: MAX_DELAY's moment, and CONTINUOUS'."""
        windows = self.store.take(np.arange(len(self._groups)))
        t = self._clock.all_t()
        stop = windows.get_column("_stop").to_numpy()
        closed = pl.Series("_closed", stop < t[windows.get_column("_g").to_numpy()])
        decided = windows.with_columns(closed).with_columns(
            (pl.col("_dirty") & pl.col("_done")).alias("_put"),
            pl.lit(False).alias("_drop"),
            pl.lit(False).alias("_dirty"),
        )
        known = self._policy.settled(decided)
        removed = self._ghosts.join(
            known.filter(pl.col("_pub") > 0), on=["_g", "_wstart"], how="anti"
        )
        self._ghosts = self._ghosts.clear()
        put = decided.filter(pl.col("_put"))
        change = WindowChange(known, windows.clear(), put, removed)
        known = self.outlet.publish(change, Stamp(0, self._stream.now), out)
        self.store.put(known, t)

    def close(self, numbers: Numbers, out: EmissionBuffer) -> None:
        """Raise T of partitions *numbers* past everything they hold, and publish what that
        closes.
        """
        before = self._clock.all_t()
        windows = self.store.take(numbers)
        self.store.put(windows, before)
        ends = windows.group_by("_g").agg(pl.col("_stop").max() + 1)
        owners = ends.get_column("_g").to_numpy()
        self._clock.raise_floor(owners, ends.get_column("_stop").to_numpy())
        self.settle(pl.DataFrame(schema=_POINTS), owners, before, out)

    def remembered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the windows of *rows* (sorted) as they are known long after: published, and
        closed.
        """
        windows = self.renewal.describe(rows)
        state = OPEN if self._policy.kind == "at_once" else CLOSED
        windows = windows.with_columns(
            pl.when("_done").then(state).otherwise(0).cast(pl.Int8).alias("_pub")
        )
        keys = self.outlet.keys_of(windows, self._stream.now)
        return windows if keys is None else windows.with_columns(keys.alias("_key"))

    def shown(self) -> Mask:
        """Tell which partitions have a window that was published while it is open."""
        return self.store.groups_with(OPEN, len(self._groups))

    def open_rows(self) -> pl.DataFrame:
        """Return the rows of the windows that are not over, as `Kernel.open_windows` does."""
        t = self._clock.all_t()
        still = self.store.open_windows(t)
        reached = t[still.get_column("_g").to_numpy()]
        return self.outlet.rows.open_rows(still, self._stream.now, reached)

    # ---------------------------------------------------------------- state

    def delta(self) -> pl.DataFrame:
        """Return the windows whose rows wait to be taken back; the store has all others."""
        return self._ghosts

    def completed(self, windows: pl.DataFrame) -> pl.DataFrame:
        """Return *windows* of a state, with what earlier versions did not save of them."""
        return self.renewal.aggregates.completed(windows)

    def restore(self, ghosts: pl.DataFrame) -> None:
        """Take over what `delta` gave."""
        self._ghosts = ghosts.cast(dict(self._ghosts.schema))  # type: ignore[arg-type]
