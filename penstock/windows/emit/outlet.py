"""What leaves a kernel: result rows of the windows put, deletions of those taken back, filled rows,
events.

Owns the target row's key: windows whose composite-key value changed lose their old row. Refuses to
decide what is put.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.events import Events, Stamp
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.emit.fill import Filler
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.result import Made
from penstock.windows.emit.window_rows import WindowRows
from penstock.windows.groups.groups import Groups
from penstock.windows.rows.scope import Scope

#: what must be known of a window to take its row back
GONE = ["_g", "_wstart", "_wend", "_stop", "_key"]


@dataclass
class WindowChange:
    """What a write did to windows: all of the partitions concerned as they are `known` now, those
    new, published and taken back.
    """

    known: pl.DataFrame
    opened: pl.DataFrame
    put: pl.DataFrame
    removed: pl.DataFrame
    history: bool = False


class Outlet:
    """See the module."""

    def __init__(
        self,
        scope: Scope,
        groups: Groups,
        aggregates: Aggregates,
        clock: GroupClock,
        replaces: bool,
    ) -> None:
        """*replaces*: a repeat of a source row takes its place."""
        plan = scope.plan
        self.plan = plan
        self._clock = clock
        self.rows = WindowRows(scope, groups, aggregates)
        self._events = Events(plan, groups)
        results = self.rows.results
        self._filler = Filler(scope, aggregates, results) if plan.fill.mode != "none" else None
        #: several rows of one time may begin windows of one start; several windows may be given one
        #: child table and time
        rows_tie = (
            not replaces
            and plan.window is not None
            and plan.window.kind in ("state", "event", "count")
        )
        self._may_repeat = (
            rows_tie or plan.target.subtable_sql is not None or plan.outputs[0].sql != "_wstart"
        )
        self.target_key = plan.target.key_column
        # never a column of type Null: each concatenation multiplies its chunks, which no rechunk
        # puts together
        self.key_type = next(
            (c.type.polars() for c in plan.target.columns if c.name == self.target_key),
            pl.Boolean(),
        )

    @property
    def fills(self) -> bool:
        """Whether rows are made where windows are missing, which depend on neighbours however far
        away.
        """
        return self._filler is not None

    def publish(self, change: WindowChange, stamp: Stamp, out: EmissionBuffer) -> pl.DataFrame:
        """Put rows and events of the windows put and of those taken back into *out*, and return the
        windows as they are to be remembered.
        """
        put = change.put
        removed = change.removed
        known = change.known
        made = self.rows.upserts(put, stamp.now) if put.height else None
        if self.target_key and made is not None:
            changed, known = self._find_rekeyed(put, made.rows, known)
            removed = pl.concat([removed, changed])
        if removed.height:
            out.put(self._deletions(removed))
        if made is not None:
            out.put(made)
            out.repeats = out.repeats or self._may_repeat
        if self._filler is not None and (put.height or removed.height):
            self._refill(self._filler, put, removed, known, out)
        if self.plan.notify is not None and (not change.history or self.plan.notify.history):
            self._notify(change, None if made is None else made.rows, removed, stamp, out)
        return known

    def keys_of(self, windows: pl.DataFrame, now: int) -> pl.Series | None:
        """Return the value of the composite key of each window's row; None: the target has none."""
        if not self.target_key or not windows.height:
            return None
        return self.rows.upserts(windows, now).rows.get_column(self.target_key)

    def _deletions(self, removed: pl.DataFrame) -> Made:
        # a value that is missing fails nothing
        made = replace(self.rows.deletes(removed), failed=None)
        if not self.target_key:
            return made
        key = removed.get_column("_key").alias(self.target_key)
        return replace(made, rows=made.rows.with_columns(key))

    def _find_rekeyed(
        self, put: pl.DataFrame, rows: pl.DataFrame, known: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Windows published before under another composite-key value; *known* with the new
        values.
        """
        assert self.target_key is not None
        fresh = put.with_columns(rows.get_column(self.target_key).alias("_newkey"))
        changed = fresh.filter((pl.col("_pub") > 0) & pl.col("_key").ne_missing(pl.col("_newkey")))
        on = ["_g", "_wstart", "_sseq"]
        joined = known.join(
            fresh.select(*on, "_newkey", pl.lit(True).alias("_just")),
            on=on,
            how="left",
            maintain_order="left",
        )
        key = (
            pl.when(pl.col("_just").fill_null(False))
            .then(pl.col("_newkey"))
            .otherwise(pl.col("_key"))
        )
        return changed.select(GONE), joined.with_columns(key.alias("_key")).drop("_newkey", "_just")

    def _refill(
        self,
        filler: Filler,
        put: pl.DataFrame,
        removed: pl.DataFrame,
        known: pl.DataFrame,
        out: EmissionBuffer,
    ) -> None:
        changed = pl.concat([put.select("_g", "_wstart"), removed.select("_g", "_wstart")]).unique()
        after = known.filter(pl.col("_pub") > 0)
        fresh = put.filter(pl.col("_pub") == 0).select("_g", "_wstart")
        before = after.select("_g", "_wstart").join(fresh, on=["_g", "_wstart"], how="anti")
        before = pl.concat([before, removed.select("_g", "_wstart")]).unique()
        rows, outside = filler.refill(before, after, changed)
        if outside.height:
            out.put(replace(self.rows.results.deletes(outside), failed=None))
        out.put(Made(rows))

    def _notify(
        self,
        change: WindowChange,
        made: pl.DataFrame | None,
        removed: pl.DataFrame,
        stamp: Stamp,
        out: EmissionBuffer,
    ) -> None:
        opened = change.opened
        closed = change.put
        results = made
        if self.plan.trigger.kind != "at_once" and not change.history and made is not None:
            t = self._clock.all_t()
            over = pl.Series(
                closed.get_column("_stop").to_numpy() < t[closed.get_column("_g").to_numpy()]
            )
            closed = closed.filter(over)
            results = made.filter(over) if made.height == len(over) else None
        if "_state" in closed.columns:
            ordered = change.known.sort("_g", "_wstart", "_sseq").select(
                "_g",
                "_wstart",
                "_sseq",
                pl.col("_state").shift(1).over("_g").alias("_before"),
                pl.col("_state").shift(-1).over("_g").alias("_after"),
            )
            on = ["_g", "_wstart", "_sseq"]
            opened = opened.join(ordered, on=on, how="left", maintain_order="left")
            closed = closed.join(ordered, on=on, how="left", maintain_order="left")
        out.events += self._events.make(opened, closed, results, removed, stamp)


def as_published(drop: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return the windows to *drop* with the ends that they had when they were published."""
    if not drop.height:
        return drop.select(GONE)
    ends = before.select("_g", "_wstart", pl.col("_wend").alias("_e"), pl.col("_stop").alias("_s"))
    ends = ends.unique(["_g", "_wstart"], keep="last")
    joined = drop.join(ends, on=["_g", "_wstart"], how="left", maintain_order="left")
    return joined.with_columns(
        pl.coalesce("_e", "_wend").alias("_wend"), pl.coalesce("_s", "_stop").alias("_stop")
    ).select(GONE)
