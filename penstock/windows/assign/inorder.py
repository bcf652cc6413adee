"""Rows in order: the short way for partitions whose rows come one after the other.

A row behind everything its partition has had can only extend the latest window (the head) or begin
new ones. So the head goes into the cut as one row that stands for all of its rows, and partials of
the new rows are merged with the head's. Nothing is read again, and a call costs what it brings.
Refuses partitions with updates, deletes or rows out of order: `split` says which those are.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import Count, Event, State
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import CountCutter, Cutter
from penstock.windows.assign.ingest import Ingest
from penstock.windows.clocks.ticks import Highest, Mask, Ticks
from penstock.windows.general.store import Numbers, Store


def _descends(keys: Numbers, times: Ticks, known: Ticks, strict: bool) -> Mask:
    """Whether each row lies below what its key had before it (or, if *strict*, at it)."""
    order = np.argsort(keys, kind="stable")
    key = keys[order]
    time = times[order]
    previous = np.empty(len(time), np.int64)
    previous[1:] = time[:-1]
    first = np.ones(len(key), np.bool_)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    previous[first] = known[key[first]]
    made = np.empty(len(time), np.bool_)
    made[order] = time <= previous if strict else time < previous
    return made


class InOrder:
    """Extends heads for one plan."""

    def __init__(
        self,
        ingest: Ingest,
        aggregates: Aggregates,
        cutter: Cutter,
        store: Store,
        blank: pl.DataFrame,
    ) -> None:
        """*blank*: no windows, in the layout they are remembered in."""
        window = ingest.plan.window
        self.ingest = ingest
        self.aggregates = aggregates
        self.cutter = cutter
        self.store = store
        self.time = ingest.time
        self._event = isinstance(window, Event)
        self._state = isinstance(window, State)
        self._size = window.size if isinstance(window, Count) else 0
        self._inherited = [
            c
            for c in ("_wstart", "_sseq", "_pub", "_dirty", "_key", "_opened")
            if c in blank.columns
        ]
        self._defaults = [
            pl.lit(0, dtype=pl.Int8).alias("_pub"),
            pl.lit(False).alias("_dirty"),
            pl.lit(None, dtype=blank.schema["_key"]).alias("_key"),
            pl.lit(True).alias("_touched"),
            pl.lit(True).alias("_loud"),
        ]
        #: whether this plan's windows can be extended at all
        self.able = (
            window is not None
            and window.kind != "interval"
            and not (isinstance(window, Count) and window.size != window.sliding)
        )

    def split(
        self, rows: pl.DataFrame, times: Highest, tables: Highest, replaces: bool, wait: bool
    ) -> Mask:
        """Which rows belong to partitions that are in order throughout the call.

        Args:
            times, tables: the highest event time by partition, and by table.
            replaces: a repeat replaces the row before it.
            wait: a repeat concerns the row before it, whatever partition that is in.
        """
        groups = rows.get_column("_g").to_numpy()
        row_times = rows.get_column(self.time).to_numpy()
        out_of_order = _descends(groups, row_times, times.values, replaces)
        if wait and not self.ingest.groups.whole:
            owners = rows.get_column("_tab").to_numpy()
            tables.reserve(int(owners.max(initial=-1)) + 1)
            # a new version of a row may take it out of another partition: all partitions of such a
            # table wait
            repeats = np.zeros(len(tables.values), np.bool_)
            repeats[owners[_descends(owners, row_times, tables.values, True)]] = True
            out_of_order |= repeats[owners]
        deletes = (rows.get_column("_op") == DELETE).to_numpy()
        if deletes.any():
            out_of_order |= deletes
            if not self.ingest.groups.whole:
                # it takes a row out of any partition, and what comes for its table behind it stays
                out_of_order |= np.isin(
                    rows.get_column("_tab").to_numpy(), rows.get_column("_tab").to_numpy()[deletes]
                )
        if not out_of_order.any():
            return np.ones(len(groups), np.bool_)
        bad = np.zeros(len(self.ingest.groups), np.bool_)
        bad[groups[out_of_order]] = True
        good: Mask = ~bad[groups]
        return good

    def extend(self, live: pl.DataFrame, t: Ticks) -> tuple[int, pl.DataFrame]:
        """Cut *live* rows behind the heads, where T of each partition is *t*.

        Returns the windows that may be published now, in the layout that they are remembered in,
        with `_closed` and `_was_open`, and how many of them, the first ones, waited for it.
        """
        groups, windows, left = self._cut(live)
        renewed = np.zeros(len(self.ingest.groups), np.bool_)
        renewed[windows.get_column("_g").to_numpy()] = True
        owners = left.get_column("_g").to_numpy()
        replaced = renewed[owners]
        over = left.get_column("_stop").to_numpy() < t[owners]
        waiting = pl.concat([self.store.overdue(groups, t), left.filter(pl.Series(replaced))])
        ended = left.filter(pl.Series(over & ~replaced))
        due = pl.concat([waiting, ended, windows.select(self.store.heads.columns)], rechunk=True)
        closed = due.get_column("_stop").to_numpy() < t[due.get_column("_g").to_numpy()]
        marks = [pl.Series("_closed", closed), pl.lit(True).alias("_was_open")]
        return waiting.height, due.with_columns(marks)

    def _cut(self, live: pl.DataFrame) -> tuple[Numbers, pl.DataFrame, pl.DataFrame]:
        """Return the partitions of *live* rows, their windows touched (in order, with `_touched`),
        and the heads that no row extended.
        """
        order = np.argsort(live.get_column("_g").to_numpy(), kind="stable")
        rows = live.select(self.ingest.columns)[order]
        numbers = rows.get_column("_g").to_numpy()
        groups = numbers[np.append(True, numbers[1:] != numbers[:-1])]
        lines = self.store.head_lines(groups)
        heads = self.store.heads[lines[lines >= 0]]
        seeds = self._seeds(heads)
        labelled = self._label(rows, seeds)
        fresh = labelled.filter(pl.col("_head") < 0).drop("_head")
        made = self.cutter.describe(fresh).with_columns(self._defaults)
        partial = self.aggregates.partial(fresh, ["_w"], ordered=True)
        owners = labelled.filter(pl.col("_head") >= 0).select("_w", "_head")
        extended = np.zeros(heads.height, np.bool_)
        if owners.height and made.height:
            label = made.get_column("_w").to_numpy()
            owner = owners.get_column("_w").to_numpy()
            place = np.minimum(np.searchsorted(label, owner), len(label) - 1)
            hit = label[place] == owner
            at = place[hit]
            source = owners.get_column("_head").to_numpy()[hit]
            extended[source] = True
            made, partial = self._join(made, partial, at, heads[source])
        # an inherited start may make a window long enough
        windows = made.hstack(partial.drop("_w")).with_columns(self.cutter.completed())
        return groups, windows, heads.filter(pl.Series(~extended))

    def _seeds(self, heads: pl.DataFrame) -> pl.DataFrame:
        """One row per head, as its rows would end."""
        extra: list[pl.Expr] = []
        if self._event:
            extra = [pl.lit(True).alias("_begins"), pl.lit(False).alias("_ends")]
        if self._state:
            extra = [pl.col("_state")]
        made = heads.select(
            "_g",
            pl.col("_stop").alias(self.time),
            pl.col("_lseq").alias("_seq"),
            "_ends_it",
            "_n",
            *extra,
        )
        made = made.with_columns(pl.Series("_head", np.arange(heads.height, dtype=np.int64)))
        return made.filter(~pl.col("_ends_it")) if self._event else made

    def _label(self, rows: pl.DataFrame, seeds: pl.DataFrame) -> pl.DataFrame:
        rows = rows.with_columns(pl.lit(-1, dtype=pl.Int64).alias("_head"))
        if isinstance(self.cutter, CountCutter):
            counts = np.zeros(len(self.ingest.groups), np.int64)
            counts[seeds.get_column("_g").to_numpy()] = seeds.get_column("_n").to_numpy()
            labelled = self.cutter.label_after(rows, counts)
            # the head stands where the first rows of its partition go, unless it is full
            first = labelled.unique("_g", keep="first", maintain_order=True).select("_g", "_w")
            part = (
                seeds.filter(pl.col("_n") < self._size)
                .join(first, on="_g")
                .select("_w", "_head", "_g", self.time, "_seq")
            )
            return pl.concat([part, labelled], how="diagonal")
        if not seeds.height:
            return self.cutter.label(rows)
        both = pl.concat([seeds.drop("_ends_it", "_n"), rows], how="diagonal")
        return self.cutter.label(both[np.argsort(both.get_column("_g").to_numpy(), kind="stable")])

    def _join(
        self, made: pl.DataFrame, partial: pl.DataFrame, at: Numbers, heads: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Windows at lines *at* continue *heads*."""
        n = made.get_column("_n").to_numpy().copy()
        n[at] += heads.get_column("_n").to_numpy()
        source = np.arange(made.height)
        source[at] = made.height + np.arange(heads.height)
        carried = pl.concat([made.select(self._inherited), heads.select(self._inherited)])[source]
        made = made.with_columns(*carried.iter_columns(), pl.Series("_n", n))
        columns = list(self.aggregates.columns)
        keyed = pl.Series("_w", at)
        merged = self.aggregates.merge(
            pl.concat(
                [
                    heads.select(columns).with_columns(keyed),
                    partial[at].select(columns).with_columns(keyed),
                ]
            ),
            ["_w"],
        ).sort("_w")
        rest = np.ones(partial.height, np.bool_)
        rest[at] = False
        others = (
            partial.filter(pl.Series(rest))
            .select(columns)
            .with_columns(pl.Series("_w", np.flatnonzero(rest)))
        )
        joined = pl.concat([merged.select(*columns, "_w"), others]).sort("_w")
        return made, joined
