"""What leaves a kernel: result rows of the windows put, deletions of those taken back, filled rows,
events.

Owns the target row's key: windows whose composite-key value changed lose their old row. Refuses to
decide what is put.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from penstock.windows.aggregates import Aggregates
from penstock.windows.clock import GroupClock
from penstock.windows.events import Events, Stamp
from penstock.windows.fill import Filler
from penstock.windows.groups import Groups
from penstock.windows.output import EmissionBuffer
from penstock.windows.result import Results
from penstock.windows.scope import Scope

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
        plan = scope.plan
        self.plan = plan
        self.aggregates = aggregates
        self.clock = clock
        self.results = Results(scope, groups)
        self.events = Events(plan, groups)
        self.filler = Filler(scope, aggregates, self.results) if plan.fill.mode != "none" else None
        #: several rows of one time may begin windows of one start; several windows may be given one
        #: child table and time
        rows_tie = (
            not replaces
            and plan.window is not None
            and plan.window.kind in ("state", "event", "count")
        )
        self.may_repeat = (
            rows_tie or plan.target.subtable_sql is not None or plan.outputs[0].sql != "_wstart"
        )
        self.target_key = plan.target.key_column
        self.identity = [
            "tbname",
            plan.target.columns[0].name,
            *([self.target_key] if self.target_key else []),
        ]
        # never a column of type Null: each concatenation multiplies its chunks, which no rechunk
        # puts together
        self.key_type = next(
            (c.type.polars() for c in plan.target.columns if c.name == self.target_key),
            pl.Boolean(),
        )

    def publish(self, change: WindowChange, stamp: Stamp, out: EmissionBuffer) -> pl.DataFrame:
        """Rows and events of the windows put and of those taken back. Returns the windows as they
        are to be remembered.
        """
        put = change.put
        removed = change.removed
        known = change.known
        made = self.results_of(put, stamp.now, out)
        if self.target_key and made is not None:
            changed, known = self._rekeyed(put, made, known)
            removed = pl.concat([removed, changed])
        if removed.height:
            out.rows.append(self._deletions(removed))
        if made is not None:
            out.rows.append(made)
            out.repeats = out.repeats or self.may_repeat
        if self.filler is not None and (put.height or removed.height):
            self._refill(put, removed, known, out)
        if self.plan.notify is not None and (not change.history or self.plan.notify.history):
            self._notify(change, made, removed, stamp, out)
        return known

    def results_of(
        self, windows: pl.DataFrame, now: int, out: EmissionBuffer
    ) -> pl.DataFrame | None:
        """Result rows of *windows*; None when there are none."""
        if not windows.height:
            return None
        finals = windows.select("_g", "_wstart", "_wend").hstack(
            self.aggregates.finalise(windows, [])
        )
        made = self.results.upserts(finals.with_columns(pl.lit(now).alias("_now")))
        if made.failed is not None:
            out.failed.append(made.failed)
        return made.rows

    def _deletions(self, removed: pl.DataFrame) -> pl.DataFrame:
        rows = self.results.deletes(removed.select("_g", "_wstart", "_wend")).rows
        return (
            rows.with_columns(removed.get_column("_key").alias(self.target_key))
            if self.target_key
            else rows
        )

    def _rekeyed(
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
        self, put: pl.DataFrame, removed: pl.DataFrame, known: pl.DataFrame, out: EmissionBuffer
    ) -> None:
        assert self.filler is not None
        changed = pl.concat([put.select("_g", "_wstart"), removed.select("_g", "_wstart")]).unique()
        after = known.filter(pl.col("_pub") > 0)
        fresh = put.filter(pl.col("_pub") == 0).select("_g", "_wstart")
        before = after.select("_g", "_wstart").join(fresh, on=["_g", "_wstart"], how="anti")
        before = pl.concat([before, removed.select("_g", "_wstart")]).unique()
        rows, outside = self.filler.refill(before, after, changed)
        if outside.height:
            out.rows.append(self.results.deletes(outside).rows)
        if rows.height:
            out.rows.append(rows)

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
            t = self.clock.all_t()
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
        out.events += self.events.make(opened, closed, results, removed, stamp)


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
