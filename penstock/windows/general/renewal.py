"""How windows change with the rows: cut anew where a change reaches, or added to where rows only
come in.

Turns a partition's windows as they were into windows as they are, and says which are new, which
were touched and which published ones vanished. Refuses to publish and to know T.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import Cutter
from penstock.windows.assign.ingest import Ingest
from penstock.windows.assign.regions import Regions, after_start, before_end, touches
from penstock.windows.general.store import Store


class Renewal:
    """The windows of one plan."""

    store: Store

    def __init__(
        self,
        ingest: Ingest,
        aggregates: Aggregates,
        cutter: Cutter,
        regions: Regions,
        key_type: pl.DataType,
        keeps_vanished: bool,
    ) -> None:
        self.ingest = ingest
        self.aggregates = aggregates
        self.cutter = cutter
        self.regions = regions
        self._key_type = key_type
        self._keeps_vanished = keeps_vanished
        self.store = Store(ingest.empty, self.describe(ingest.empty), ingest.time)

    def renew(
        self, windows: pl.DataFrame, points: pl.DataFrame, fresh: pl.DataFrame | None
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """All *windows* as they are after the change, those that are new, and published ones that
        vanished.
        """
        if not self.regions.by_window or fresh is None:
            return self._recut(windows, points)
        # windows of the grid do not depend on each other: rows that only come in are added to them
        shrunk = np.zeros(len(self.ingest.groups), np.bool_)
        shrunk[points.filter(pl.col("_gone")).get_column("_g").to_numpy()] = True

        def again(frame: pl.DataFrame) -> pl.Series:
            return pl.Series(shrunk[frame.get_column("_g").to_numpy()])

        if not shrunk.any():
            return self._add(windows, points, fresh)
        mine = again(windows)
        cut = again(points)
        grown = self._add(windows.filter(~mine), points.filter(~cut), fresh.filter(~again(fresh)))
        renewed = self._recut(windows.filter(mine), points.filter(cut))
        all_, opened, vanished = (
            pl.concat(pair, rechunk=True) for pair in zip(grown, renewed, strict=True)
        )
        return all_, opened, vanished

    def _add(
        self, windows: pl.DataFrame, points: pl.DataFrame, fresh: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Merge *fresh* rows into the windows that hold them."""
        identity = ["_g", "_wstart"]
        made = self.describe(
            fresh.select(self.ingest.columns).sort(self.ingest.order)
        ).with_columns(pl.lit(True).alias("_touched"))
        loud = (
            touches(made, points.filter(~pl.col("_quiet")))
            if self._keeps_vanished
            else pl.lit(True)
        )
        made = made.with_columns(loud.alias("_loud"))
        places = windows.select(identity).join(
            made.select(identity).with_row_index("_at"),
            on=identity,
            how="left",
            maintain_order="left",
        )
        at = places.get_column("_at")
        held = at.is_not_null()
        if not held.any():
            return pl.concat([windows, made], rechunk=True), made, windows.clear()
        at = at.filter(held)
        new = np.ones(made.height, np.bool_)
        new[at.to_numpy()] = False
        known = windows.filter(held)
        more = made[at]
        opened = made.filter(pl.Series(new))
        both = pl.concat(
            [
                known.select("_g", *self.aggregates.columns),
                more.select("_g", *self.aggregates.columns),
            ]
        )
        line = np.tile(np.arange(known.height), 2)
        parts = self.aggregates.merge(both.with_columns(pl.Series("_line", line)), ["_line"])
        grown = known.with_columns(
            *parts.drop("_line"),
            known.get_column("_n") + more.get_column("_n"),
            *(more.get_column(c) for c in ("_lseq", "_touched", "_loud")),
        )
        return (
            pl.concat([windows.filter(~held), opened, grown], rechunk=True),
            opened,
            windows.clear(),
        )

    def _recut(
        self, windows: pl.DataFrame, points: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Cut the regions of *points* anew. Returns all *windows* as they are now, those that are
        new, and published ones that vanished.
        """
        spans = points.group_by("_g", maintain_order=True).agg(
            pl.col("_t").min().alias("_lo"), pl.col("_t").max().alias("_hi")
        )
        regions = self.regions.find(spans, windows).select("_g", "_from", "_fseq", "_to", "_tseq")
        near = windows.join(regions, on="_g", how="left", maintain_order="left")
        inside = self._inside().fill_null(False)
        old = near.filter(inside).select(windows.columns)
        kept = near.filter(~inside).select(windows.columns)
        rows = self.store.within(regions)
        rows = (
            rows.filter(after_start(self.ingest.time), before_end(self.ingest.time))
            .select(self.ingest.columns)
            .sort(self.ingest.order)
        )
        new = self.describe(rows)
        if self.regions.by_window:
            new = (
                new.join(regions, on="_g", how="left", maintain_order="left")
                .filter(self._inside())
                .select(windows.columns)
            )
        new = self._inherit(new, old, points)
        fresh = new.filter(pl.col("_fresh")).select(windows.columns)
        new = new.select(windows.columns)
        identity = ["_g", "_wstart"]
        vanished = old.filter(pl.col("_pub") > 0).join(
            new.select(identity), on=identity, how="anti"
        )
        return pl.concat([kept, new], rechunk=True), fresh, vanished

    def _inside(self) -> pl.Expr:
        if self.regions.by_window:
            return (pl.col("_wstart") >= pl.col("_from")) & (pl.col("_stop") <= pl.col("_to"))
        return after_start("_wstart", "_sseq") & before_end("_wstart", "_sseq")

    def describe(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Windows of *rows* (sorted) with their partials, not yet published."""
        labelled = self.cutter.label(rows)
        made = self.cutter.describe(labelled)
        partial = self.aggregates.partial(labelled, ["_w"], ordered=True).drop("_w")
        return (
            made.drop("_w")
            .hstack(partial)
            .with_columns(
                pl.lit(0, dtype=pl.Int8).alias("_pub"),
                pl.lit(False).alias("_dirty"),
                pl.lit(None, dtype=self._key_type).alias("_key"),
                pl.lit(False).alias("_touched"),
                pl.lit(False).alias("_loud"),
            )
        )

    def _inherit(self, new: pl.DataFrame, old: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
        """Carry over what is known of windows that were there before, and find the ones touched."""
        known = old.select("_g", "_wstart", "_pub", "_dirty", "_key", "_stop", "_n").unique(
            ["_g", "_wstart"], keep="last"
        )
        joined = new.drop("_pub", "_dirty", "_key").join(
            known, on=["_g", "_wstart"], how="left", maintain_order="left", suffix="_old"
        )
        fresh = joined.get_column("_pub").is_null()
        reshaped = (joined.get_column("_stop") != joined.get_column("_stop_old")) | (
            joined.get_column("_n") != joined.get_column("_n_old")
        )
        hit = touches(new, points)
        loud = touches(new, points.filter(~pl.col("_quiet"))) if self._keeps_vanished else hit
        return joined.with_columns(
            pl.col("_pub").fill_null(0),
            pl.col("_dirty").fill_null(False),
            pl.Series("_fresh", fresh),
            (reshaped.fill_null(True) | fresh | hit).alias("_touched"),
            loud.alias("_loud"),
        )
