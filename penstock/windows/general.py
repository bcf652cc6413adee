"""The general window kernel: any window kind, any option.

It holds a stream's live rows and the windows cut from them. A write changes live rows; what a change reaches (`regions`) is cut
anew (`cut`), compared with the windows known, and published as the trigger says (`publish`). So a result is a function of the
live rows and of T alone, and how rows were batched changes nothing. Refuses FORCE_WINDOW_CLOSE (`force`) and streams
without a window (`filter`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from penstock.sql.plan import StreamPlan
from penstock.windows.aggregates import Aggregates
from penstock.windows.cut import make_cutter
from penstock.windows.events import Events
from penstock.windows.fill import Filler
from penstock.windows.groups import Groups
from penstock.windows.ingest import Ingest
from penstock.windows.kernel import DELETE, Control, Delta, Emission, History
from penstock.windows.output import Output
from penstock.windows.publish import CLOSED, OPEN, Publisher
from penstock.windows.regions import Regions, after_start, before_end
from penstock.windows.result import Results
from penstock.windows.scope import Scope
from penstock.windows.timeline import ALWAYS, NEVER, Ticks, Timeline

_POINTS = {"_g": pl.Int64(), "_t": pl.Int64(), "_quiet": pl.Boolean()}


class GeneralKernel:
    """See the module."""

    def __init__(self, plan: StreamPlan, history: History | None) -> None:
        self.plan, self.history = plan, history
        scope = Scope(plan)
        source = plan.source
        self.groups = Groups(scope)
        self.aggregates = Aggregates(scope)
        self.cutter = make_cutter(scope)
        self.ingest = Ingest(scope, self.groups, self.aggregates, self.cutter)
        self.results = Results(scope, self.groups)
        self.regions = Regions(plan)
        self.publisher = Publisher(plan.trigger)
        self.events = Events(plan, self.groups)
        self.filler = Filler(scope, self.aggregates, self.results) if plan.fill.mode != "none" else None
        self.timeline = Timeline(plan.watermark.ticks(source.precision))
        self.time, self.key = source.time_column, source.key_column
        self.order = ["_g", self.time, *([self.key] if self.key else []), "_seq"]
        # the result of a stream is a keyed table: a repeat replaces whatever the options say, and nothing expires
        continuous = plan.trigger.kind == "continuous_window_close"
        derived = source.result_of is not None
        self.keeps_late = not plan.ignore_expired or continuous or derived
        self.replaces = not plan.ignore_update or continuous or derived
        #: whether what is published depends on the single writes, not just on the live rows after the call
        self.by_step = plan.notify is not None or plan.trigger.kind in ("max_delay", "continuous_window_close")
        self.target_key = plan.target.key_column
        self.identity = ["tbname", plan.target.columns[0].name, *([self.target_key] if self.target_key else [])]
        self._key_type = next((c.type.polars() for c in plan.target.columns if c.name == self.target_key), pl.Null())
        self.every = plan.trigger.every.ticks(source.precision) if plan.trigger.every else 0
        if continuous and not self.every:
            self.every = 3600 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[source.precision]
        self.idle = plan.idle_timeout.ticks(source.precision) if plan.idle_timeout else 0
        self.rows: pl.DataFrame | None = None
        self.windows: pl.DataFrame | None = None
        self.ghosts = pl.DataFrame(schema={"_g": pl.Int64, "_wstart": pl.Int64, "_wend": pl.Int64, "_stop": pl.Int64, "_key": self._key_type})
        self.clock, self.clock_start = NEVER, NEVER
        self.now = 0

    # -- input ---------------------------------------------------------------------------------------------------

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = Output()
        if rows.height:
            rows = self.ingest.merge(rows, self.history) if self.replaces else rows
            made, failed = self.ingest.prepare(rows)
            if failed is not None:
                out.failed.append(failed)
            for part in self._parts(made):
                self._write(part, rows, out)
        return out.emission(self.identity)

    def _parts(self, rows: pl.DataFrame) -> list[pl.DataFrame]:
        """Pieces of a call between which the kernel must settle."""
        if self.by_step:
            return rows.partition_by("_step", maintain_order=True)
        deletes = rows.get_column("_op") == DELETE
        if not self.replaces and deletes.any():
            # rows are a multiset: a delete takes those before it, not those after it
            return rows.with_columns(deletes.rle_id().alias("_run")).partition_by("_run", maintain_order=True, include_key=False)
        return [rows] if rows.height else []

    def _write(self, rows: pl.DataFrame, source: pl.DataFrame, out: Output) -> None:
        """One or several writes, settled once at their end."""
        self.now = max(self.now, int(rows.get_column("_now").max() or 0))  # type: ignore[call-overload]
        self.timeline.reserve(len(self.groups))
        before = self.timeline.all_t()
        rows = self._drop_late(rows, source, out)
        live = rows.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
        points = self._change(rows, live)
        numbers, times = live.get_column("_g").to_numpy(), live.get_column(self.time).to_numpy()
        self.timeline.groups.raise_to(numbers, times)
        self.timeline.tables.raise_to(live.get_column("_tab").to_numpy(), times)
        self.timeline.reserve(len(self.groups))
        self._settle(points, before, out)

    def _drop_late(self, rows: pl.DataFrame, source: pl.DataFrame, out: Output) -> pl.DataFrame:
        """Mark rows that are late (`_late`: out of order for their table and overdue), and drop them unless they are wanted."""
        steps, times = rows.get_column("_step").to_numpy(), rows.get_column(self.time).to_numpy()
        counts = (rows.get_column("_pass") & (rows.get_column("_op") != DELETE)).to_numpy()
        tables = self.timeline.tables.before(rows.get_column("_tab").to_numpy(), steps, times, counts)
        behind = (times < tables) & (rows.get_column("_op") != DELETE).to_numpy()
        if not behind.any():
            return rows.with_columns(pl.lit(False).alias("_late"))
        t = self.timeline.t_before(rows.get_column("_g").to_numpy(), steps, times, counts)
        last = self.regions.last_tick(times)
        late = behind & (last < t)
        partly = behind & ~late & (self.regions.first_last_tick(times) < t)
        if self.keeps_late:
            return rows.with_columns(pl.Series("_late", late))
        if late.any():
            lost = rows.filter(pl.Series(late & counts)).get_column("_source")
            if len(lost):
                out.late.append(source.with_row_index("_source").join(lost.to_frame(), on="_source", how="semi").drop("_source"))
        floor = pl.when(pl.Series(partly)).then(pl.Series(t)).otherwise(pl.col("_floor"))
        return rows.with_columns(pl.lit(False).alias("_late"), floor.alias("_floor")).filter(pl.Series(~late))

    # -- live rows -----------------------------------------------------------------------------------------------

    def _change(self, rows: pl.DataFrame, live: pl.DataFrame) -> pl.DataFrame:
        """Take *rows* over into the live rows; returns the points that changed (`_g`, `_t`, `_quiet`)."""
        if self.rows is None:
            self.rows = rows.select(self.ingest.columns).clear()
        identity = self.ingest.identity
        fresh = live
        gone = self.rows.clear()
        if self.replaces:
            final = rows.unique(subset=identity, keep="last", maintain_order=True)
            fresh = final.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
            gone = self.rows.join(final.select(identity), on=identity, how="semi", nulls_equal=True)
        else:
            deleted = rows.filter(pl.col("_op") == DELETE)
            if deleted.height:
                keys = [k for k in identity if deleted.get_column(k).null_count() == 0]
                gone = self.rows.join(deleted.select(keys), on=keys, how="semi")
        self._remove(gone)
        self.rows = pl.concat([self.rows, fresh.select(self.ingest.columns)])
        updated = pl.lit(False)
        if gone.height and self.replaces:
            again = fresh.join(gone.select(identity), on=identity, how="semi", nulls_equal=True).get_column("_seq")
            updated = pl.col("_seq").is_in(again.implode())
        return pl.concat([
            fresh.select("_g", pl.col(self.time).alias("_t"), (pl.col("_late") | updated).alias("_quiet")),
            gone.select("_g", pl.col(self.time).alias("_t"), pl.lit(True).alias("_quiet")),
        ])  # fmt: skip

    def _remove(self, gone: pl.DataFrame) -> None:
        if gone.height and self.rows is not None:
            self.rows = self.rows.join(gone.select("_seq"), on="_seq", how="anti")

    # -- windows -------------------------------------------------------------------------------------------------

    def _settle(self, points: pl.DataFrame, before: Ticks, out: Output, at_once: bool = False) -> None:
        """Cut what *points* reach anew and publish what is due. *before*: T per partition before the write."""
        opened, vanished = self._recut(points) if points.height else (None, None)
        if self.windows is None:
            return
        windows = self.windows
        t = self.timeline.all_t()
        number, stop = windows.get_column("_g").to_numpy(), windows.get_column("_stop").to_numpy()
        earlier = np.full(len(t), NEVER, np.int64)
        earlier[: len(before)] = before
        windows = windows.with_columns(pl.Series("_closed", stop < t[number]), pl.Series("_was_open", stop >= earlier[number]))
        decided = self.publisher.decide(windows, at_once)
        put, drop = decided.filter(pl.col("_put")), decided.filter(pl.col("_drop"))
        pub = pl.when("_put").then(pl.when("_closed").then(CLOSED).otherwise(OPEN)).when("_drop").then(0).otherwise(pl.col("_pub"))
        self.windows = decided.with_columns(
            pub.cast(pl.Int8).alias("_pub"), pl.lit(False).alias("_touched"), pl.lit(False).alias("_loud"),
        ).drop("_put", "_drop", "_closed", "_was_open")  # fmt: skip
        removed = [drop.select(self.ghosts.columns)] if drop.height else []
        if vanished is not None and vanished.height:
            if self.publisher.keeps_vanished and not at_once:
                self.ghosts = pl.concat([self.ghosts, vanished.select(self.ghosts.columns)]).unique(maintain_order=True)
            else:
                removed.append(vanished.select(self.ghosts.columns))
        self._publish(put, pl.concat(removed) if removed else self.ghosts.clear(), out, at_once, opened)

    def _recut(self, points: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Cut the regions of *points* anew. Returns the windows that are new, and published ones that vanished."""
        assert self.rows is not None
        affected = np.zeros(max(len(self.groups), 1), bool)
        affected[points.get_column("_g").to_numpy()] = True
        spans = points.group_by("_g", maintain_order=True).agg(pl.col("_t").min().alias("_lo"), pl.col("_t").max().alias("_hi"))
        if self.windows is None:
            self.windows = self._describe(self.rows.clear())
        mine = pl.Series(affected[self.windows.get_column("_g").to_numpy()])
        near, rest = self.windows.filter(mine), self.windows.filter(~mine)
        regions = self.regions.find(spans, near).select("_g", "_from", "_fseq", "_to", "_tseq")
        near = near.join(regions, on="_g", how="left", maintain_order="left")
        inside = self._inside()
        old, kept = near.filter(inside).select(self.windows.columns), near.filter(~inside).select(self.windows.columns)
        rows = self.rows.filter(pl.Series(affected[self.rows.get_column("_g").to_numpy()])).join(regions, on="_g")
        rows = rows.filter(after_start(self.time), before_end(self.time)).select(self.ingest.columns).sort(self.order)
        new = self._describe(rows).join(regions, on="_g", how="left", maintain_order="left")
        new = new.filter(self._inside()) if self.regions.by_window else new
        new = self._inherit(new.select(self.windows.columns), old, points)
        self.windows = pl.concat([rest, kept, new.select(self.windows.columns)])
        identity = ["_g", "_wstart"]
        vanished = old.filter(pl.col("_pub") > 0).join(new.select(identity), on=identity, how="anti")
        return new.filter(pl.col("_fresh")), vanished

    def _inside(self) -> pl.Expr:
        if self.regions.by_window:
            return (pl.col("_wstart") >= pl.col("_from")) & (pl.col("_stop") <= pl.col("_to"))
        return after_start("_wstart", "_sseq") & before_end("_wstart", "_sseq")

    def _describe(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Windows of *rows* (sorted) with their partials, not yet published."""
        labelled = self.cutter.label(rows)
        made = self.cutter.describe(labelled)
        partial = self.aggregates.partial(labelled, ["_w"], ordered=True).drop("_w")
        return made.drop("_w").hstack(partial).with_columns(
            pl.lit(0, dtype=pl.Int8).alias("_pub"), pl.lit(False).alias("_dirty"), pl.lit(None, dtype=self._key_type).alias("_key"),
            pl.lit(False).alias("_touched"), pl.lit(False).alias("_loud"),
        )  # fmt: skip

    def _inherit(self, new: pl.DataFrame, old: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
        """Carry over what is known of windows that were there before, and find the ones touched."""
        known = old.select("_g", "_wstart", "_pub", "_dirty", "_key", "_stop", "_n").unique(["_g", "_wstart"], keep="last")
        joined = new.drop("_pub", "_dirty", "_key").join(known, on=["_g", "_wstart"], how="left", maintain_order="left", suffix="_old")
        fresh = joined.get_column("_pub").is_null()
        reshaped = (joined.get_column("_stop") != joined.get_column("_stop_old")) | (joined.get_column("_n") != joined.get_column("_n_old"))
        hit = touches(new, points)
        loud = touches(new, points.filter(~pl.col("_quiet"))) if self.publisher.keeps_vanished else hit
        return joined.with_columns(
            pl.col("_pub").fill_null(0), pl.col("_dirty").fill_null(False), pl.Series("_fresh", fresh),
            (reshaped.fill_null(True) | fresh | hit).alias("_touched"), loud.alias("_loud"),
        )  # fmt: skip

    # -- output --------------------------------------------------------------------------------------------------

    def _publish(self, put: pl.DataFrame, removed: pl.DataFrame, out: Output, silent: bool = False, opened: pl.DataFrame | None = None) -> None:
        """Rows and events of the windows put and of those taken back."""
        finals = put.select("_g", "_wstart", "_wend").hstack(self.aggregates.finalise(put, [])) if put.height else put
        made = self.results.upserts(finals.with_columns(pl.lit(self.now).alias("_now"))) if put.height else None
        if made is not None and made.failed is not None:
            out.failed.append(made.failed)
        if self.target_key and made is not None:
            removed = pl.concat([removed, self._rekeyed(put, made.rows)])
        if removed.height:
            out.rows.append(self._deletions(removed))
        if made is not None and made.rows.height:
            out.rows.append(made.rows)
        if self.filler is not None and (put.height or removed.height):
            self._refill(put, removed, out)
        if self.plan.notify is not None and (not silent or self.plan.notify.history):
            shown = put.with_columns(_closed=pl.Series(put.get_column("_stop").to_numpy() < self.timeline.all_t()[put.get_column("_g").to_numpy()]))
            closing = pl.lit(True) if self.plan.trigger.kind == "at_once" or silent else pl.col("_closed")
            mask = shown.select(closing.alias("c").and_(True) if put.height else pl.lit(None, dtype=pl.Boolean).alias("c")).to_series()
            whole = made is not None and made.rows.height == put.height
            results = made.rows.filter(mask) if made is not None and whole else None
            fresh = opened if opened is not None else put.clear()
            self._notify(fresh, put.filter(mask) if put.height else put, results, removed, out)

    def _deletions(self, removed: pl.DataFrame) -> pl.DataFrame:
        rows = self.results.deletes(removed.select("_g", "_wstart", "_wend")).rows
        return rows.with_columns(removed.get_column("_key").alias(self.target_key)) if self.target_key else rows

    def _rekeyed(self, put: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        """Windows published before under another composite-key value; the new values are remembered."""
        assert self.windows is not None and self.target_key is not None
        now = put.select("_g", "_wstart", "_sseq").with_columns(rows.get_column(self.target_key).alias("_newkey"))
        changed = put.with_columns(now.get_column("_newkey")).filter((pl.col("_pub") > 0) & pl.col("_key").ne_missing(pl.col("_newkey")))
        joined = self.windows.join(now, on=["_g", "_wstart", "_sseq"], how="left", maintain_order="left")
        known = pl.when(pl.col("_newkey").is_not_null()).then(pl.col("_newkey")).otherwise(pl.col("_key"))
        self.windows = joined.with_columns(known.alias("_key")).drop("_newkey")
        return changed.select(self.ghosts.columns)

    def _refill(self, put: pl.DataFrame, removed: pl.DataFrame, out: Output) -> None:
        assert self.filler is not None and self.windows is not None
        changed = pl.concat([put.select("_g", "_wstart"), removed.select("_g", "_wstart")]).unique()
        after = self.windows.filter(pl.col("_pub") > 0).join(changed.select("_g").unique(), on="_g", how="semi")
        fresh = put.filter(pl.col("_pub") == 0).select("_g", "_wstart")
        before = after.select("_g", "_wstart").join(fresh, on=["_g", "_wstart"], how="anti")
        before = pl.concat([before, removed.select("_g", "_wstart")]).unique()
        rows, outside = self.filler.refill(before, after, changed)
        if outside.height:
            out.rows.append(self.results.deletes(outside).rows)
        if rows.height:
            out.rows.append(rows)

    def _notify(
        self, opened: pl.DataFrame, closed: pl.DataFrame, results: pl.DataFrame | None, removed: pl.DataFrame, out: Output
    ) -> None:
        if "_state" in closed.columns and self.windows is not None:
            ordered = self.windows.sort("_g", "_wstart", "_sseq").select(
                "_g", "_wstart", "_sseq", pl.col("_state").shift(1).over("_g").alias("_before"), pl.col("_state").shift(-1).over("_g").alias("_after"),
            )  # fmt: skip
            on = ["_g", "_wstart", "_sseq"]
            opened = opened.join(ordered, on=on, how="left", maintain_order="left")
            closed = closed.join(ordered, on=on, how="left", maintain_order="left")
        out.events += self.events.make(opened, closed, results, removed, self.now)

    # -- controls ------------------------------------------------------------------------------------------------

    def control(self, control: Control) -> Emission:
        out = Output()
        if control.kind == "tick":
            self._tick(control.time, out)
        elif control.kind == "delete":
            self._delete(control, out)
        elif control.kind == "flush":
            self._flush(np.arange(len(self.groups)), out)
        elif control.kind == "recalculate":
            self._recalculate(control.low, control.high, out)
        return out.emission(self.identity)

    def _delete(self, control: Control, out: Output) -> None:
        if self.rows is None:
            return
        chosen = pl.col(self.time).is_between(control.low, control.high)
        if control.tables is not None:
            chosen &= pl.col("tbname").str.to_lowercase().is_in([t.lower() for t in control.tables])
        gone = self.rows.filter(chosen)
        if gone.height:
            self._remove(gone)
            points = gone.select("_g", pl.col(self.time).alias("_t"), pl.lit(True).alias("_quiet"))
            self._settle(points, self.timeline.all_t(), out)

    def _tick(self, time: int, out: Output) -> None:
        if self.clock_start == NEVER:
            self.clock_start = self.clock = time
        if time <= self.clock:
            return
        elapsed = self.every and (time - self.clock_start) // self.every > (self.clock - self.clock_start) // self.every
        self.clock = time
        self.now = max(self.now, time)
        if elapsed:
            self._push(out)

    def _push(self, out: Output) -> None:
        """MAX_DELAY's and RECALCULATE's moment: publish what waited for it."""
        if self.windows is None:
            return
        t = self.timeline.all_t()
        closed = pl.Series("_closed", self.windows.get_column("_stop").to_numpy() < t[self.windows.get_column("_g").to_numpy()])
        put = self.windows.filter(pl.col("_dirty") & pl.col("_done"))
        pub = pl.when(pl.col("_dirty") & pl.col("_done")).then(pl.when(closed).then(CLOSED).otherwise(OPEN)).otherwise(pl.col("_pub"))
        self.windows = self.windows.with_columns(pub.cast(pl.Int8).alias("_pub"), pl.lit(False).alias("_dirty"))
        removed = self.ghosts.join(self.windows.filter(pl.col("_pub") > 0), on=["_g", "_wstart"], how="anti")
        self.ghosts = self.ghosts.clear()
        self._publish(put, removed, out)

    def _flush(self, numbers: Ticks, out: Output) -> None:
        """Raise T of partitions past everything they hold."""
        if self.windows is None or not self.windows.height:
            return
        before = self.timeline.all_t()
        ends = self.windows.filter(pl.col("_g").is_in(numbers)).group_by("_g").agg(pl.col("_stop").max() + 1)
        self.timeline.floors.raise_to(ends.get_column("_g").to_numpy(), ends.get_column("_stop").to_numpy())
        self._settle(pl.DataFrame(schema=_POINTS), before, out)

    def _recalculate(self, low: int, high: int, out: Output) -> None:
        """Replace the live rows of low..high by what is stored, and publish what changes."""
        if self.history is None:
            return
        stored = self.history.fetch(low, high)
        made, failed = self.ingest.prepare(stored)
        if failed is not None:
            out.failed.append(failed)
        fresh = made.filter(pl.col("_pass")).select(self.ingest.columns)
        gone = self.rows.filter(pl.col(self.time).is_between(low, high)) if self.rows is not None else fresh.clear()
        self._remove(gone)
        self.rows = pl.concat([self.rows, fresh]) if self.rows is not None else fresh
        self.timeline.reserve(len(self.groups))
        points = pl.concat([f.select("_g", pl.col(self.time).alias("_t"), pl.lit(False).alias("_quiet")) for f in (gone, fresh)])
        self._settle(points, self.timeline.all_t(), out)

    def load_history(self) -> Emission:
        out = Output()
        stored = self.history.fetch(NEVER, ALWAYS) if self.history is not None else None
        if stored is not None and stored.height:
            made, failed = self.ingest.prepare(stored)
            if failed is not None:
                out.failed.append(failed)
            live = made.filter(pl.col("_pass")).with_columns(pl.lit(False).alias("_late"))
            points = self._change(live, live)
            times = live.get_column(self.time).to_numpy()
            self.timeline.groups.raise_to(live.get_column("_g").to_numpy(), times)
            self.timeline.tables.raise_to(live.get_column("_tab").to_numpy(), times)
            self.timeline.reserve(len(self.groups))
            self._settle(points, self.timeline.all_t(), out, at_once=True)
        return out.emission(self.identity)

    def open_windows(self) -> pl.DataFrame:
        if self.windows is None:
            return self.results.empty().drop("_op")
        t = self.timeline.all_t()
        still = self.windows.filter(pl.Series(self.windows.get_column("_stop").to_numpy() >= t[self.windows.get_column("_g").to_numpy()]))
        finals = still.select("_g", "_wstart", "_wend").hstack(self.aggregates.finalise(still, []))
        return self.results.upserts(finals).rows.drop("_op")

    # -- state ---------------------------------------------------------------------------------------------------

    def delta(self, full: bool = False) -> Delta:
        raise NotImplementedError

    def restore(self, deltas: Iterable[Delta]) -> None:
        raise NotImplementedError


def touches(windows: pl.DataFrame, points: pl.DataFrame) -> pl.Series:
    """Whether each window has one of *points* between its first and last tick."""
    starts, stops, at = (f.get_column(c).to_numpy() for f, c in ((windows, "_wstart"), (windows, "_stop"), (points, "_t")))
    if not len(at) or not len(starts):
        return pl.Series(np.zeros(len(starts), bool))
    _, ranks = np.unique(np.concatenate([starts, stops, at]), return_inverse=True)
    n = len(starts)

    def place(groups: pl.Series, rank: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return (groups.to_numpy() << 32) + rank

    marks = np.sort(place(points.get_column("_g"), ranks[2 * n :]))
    first = np.searchsorted(marks, place(windows.get_column("_g"), ranks[:n]), "left")
    behind = np.searchsorted(marks, place(windows.get_column("_g"), ranks[n : 2 * n]), "right")
    return pl.Series(behind > first)
