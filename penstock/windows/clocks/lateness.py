"""Which rows of a write come too late, and what becomes of them in the general kernel."""

from __future__ import annotations

import polars as pl

from penstock.rows.versions import DELETE
from penstock.windows.assign.regions import Regions
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.clocks.ticks import Highest, Mask
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.general.evict import Evictor


class Lateness:
    """Judges the rows of a write by what was known before it."""

    def __init__(
        self,
        clock: GroupClock,
        tables: Highest,
        regions: Regions,
        evictor: Evictor,
        time: str,
        *,
        whole: bool,
        keeps_late: bool,
    ) -> None:
        """
        Args:
            tables: the highest event time by table.
            time: the time column.
            whole: a group is a table.
            keeps_late: late rows count.
        """
        self._clock = clock
        self._tables = tables
        self._regions = regions
        self._evictor = evictor
        self._time = time
        self._whole = whole
        self._keeps_late = keeps_late

    def behind_table(self, rows: pl.DataFrame) -> Mask:
        """Tell which rows lie below what their table had before the row's write."""
        tables = rows.get_column("_tab").to_numpy()
        self._tables.reserve(int(tables.max(initial=-1)) + 1)
        steps = rows.get_column("_step").to_numpy()
        times = rows.get_column(self._time).to_numpy()
        counts = (rows.get_column("_pass") & (rows.get_column("_op") != DELETE)).to_numpy()
        made: Mask = times < self._tables.before(tables, steps, times, counts)
        return made

    def drop(
        self, rows: pl.DataFrame, source: pl.DataFrame, out: EmissionBuffer
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Mark rows that are late (`_late`: out of order for their table and overdue), and drop
        them unless they are wanted.

        Returns the rows left and those dropped.
        """
        steps = rows.get_column("_step").to_numpy()
        times = rows.get_column(self._time).to_numpy()
        counts = (rows.get_column("_pass") & (rows.get_column("_op") != DELETE)).to_numpy()
        if "_late" in source.columns:
            behind = source.get_column("_late").gather(rows.get_column("_source")).to_numpy()
        elif self._whole:
            behind = self.behind_table(rows)
        else:
            behind = rows.get_column("_behind").to_numpy()
        behind = behind & (rows.get_column("_op") != DELETE).to_numpy()
        rows = rows.with_columns(pl.lit(False).alias("_late"))
        if not behind.any():
            return rows, rows.clear()
        t = self._clock.t_before(rows.get_column("_g").to_numpy(), steps, times, counts)
        last = self._regions.last_tick(times)
        late = behind & (last < t)
        partly = behind & ~late & (self._regions.first_last_tick(times) < t)
        if self._keeps_late:
            return rows.with_columns(pl.Series("_late", late)), rows.clear()
        if late.any():
            lost = rows.filter(pl.Series(late & counts)).get_column("_source")
            if len(lost):
                dropped = source.with_row_index("_source").join(
                    lost.to_frame(), on="_source", how="semi"
                )
                out.late.append(dropped.drop("_source"))
                self._evictor.stored.drop(
                    rows.join(dropped.select("_source", "_offset"), on="_source")
                )
        floor = pl.when(pl.Series(partly)).then(pl.Series(t)).otherwise(pl.col("_floor"))
        gone = pl.Series(late)
        return rows.with_columns(floor.alias("_floor")).filter(~gone), rows.filter(gone)
