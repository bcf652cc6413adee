"""Which stored versions of rows a kernel of accumulators has counted: what it computes windows from
after DELETE and RECALCULATE.

Under IGNORE UPDATE 1 every version of a row counts: storage has them all, and a DELETE takes those
before it. Some never counted: those from before the stream, those that were dropped as expired
(`lost`), and those older than what RECALCULATE found (`renewed`). Of the rows from before a stream
that has filled its history the last versions counted. Costs nothing while rows come.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from penstock.errors import StateError
from penstock.rows.versions import DELETE, without_clears
from penstock.sql.plan import StreamPlan
from penstock.windows.clocks.ticks import NEVER
from penstock.windows.kernel import LATEST, History
from penstock.windows.rows.merge import complete
from penstock.windows.rows.row_columns import RowColumns


class Counted:
    """The versions that count, of one kernel."""

    def __init__(self, plan: StreamPlan, history: History | None) -> None:
        source = plan.source
        self._history = history
        self._time = source.time_column
        self._child = None if source.child is None else source.child.lower()
        self.columns = RowColumns.of(source)
        types = {c.name: c.type.polars() for c in source.columns}
        keys = {"tbname": pl.String(), **{name: types[name] for name in self.columns.identity[1:]}}
        #: versions dropped as expired: those of their windows whose last tick is before `_floor` do
        #: not have them
        self._lost = pl.DataFrame(schema={**keys, "_offset": pl.Int64(), "_floor": pl.Int64()})
        #: how many of them are saved; -1: all are to be saved again
        self._lost_saved = 0
        #: rows of which RECALCULATE took the version `_offset`: older ones do not count, whatever
        #: they did before
        self._renewed = pl.DataFrame(schema={**keys, "_offset": pl.Int64()})
        #: the first offset that is the stream's; None: not known yet
        self.first: int | None = 0 if getattr(history, "since_begin", False) else None
        #: whether rows from before it count, in their last versions
        self._filled = False
        self._changed = True

    def begin(self, rows: pl.DataFrame) -> None:
        """Note where the stream began."""
        if self.first is None and rows.height:
            self.first = rows.get_column("_offset").min()  # type: ignore[assignment]
            self._changed = True

    def skip(self, rows: pl.DataFrame) -> None:
        """Leave *rows* out for good, as `Kernel.skip` says."""
        rows = without_clears(rows)
        self.begin(rows)
        if self._child is not None:
            rows = rows.filter(pl.col("tbname").str.to_lowercase() == self._child)
        self.lose(rows.with_columns(pl.lit(LATEST).alias("_floor")))

    def fill(self) -> None:
        """What is stored from before the stream counts."""
        self._filled = self._changed = True

    def lose(self, rows: pl.DataFrame) -> None:
        """Remember dropped *rows*: their identity, `_offset` and `_floor`."""
        if self._history is not None and rows.height:
            self._lost = pl.concat([self._lost, rows.select(self._lost.columns)], rechunk=True)

    def renew(self, low: int, high: int) -> None:
        """All that is stored in low..high counts from now on, in its last version."""
        stored = self._fetch(low, high, None)
        between = pl.col(self._time).is_between(low, high)
        apart = pl.col("_offset") < (LATEST if self.first is None else self.first)
        last = stored.filter((pl.len().over(self.columns.identity) > 1) | apart).unique(
            self.columns.identity, keep="last", maintain_order=True
        )
        self._renewed = pl.concat(
            [self._renewed.filter(~between), last.select(self._renewed.columns)], rechunk=True
        )
        self._lost = self._lost.filter(~between)
        self._lost_saved = -1
        self._changed = True

    def fetch(self, low: int, high: int, tables: Sequence[str] | None) -> pl.DataFrame:
        """The versions of low..high that count, by table and time, older ones first."""
        rows = self._fetch(low, high, tables)
        first = LATEST if self.first is None else self.first
        found = rows.join(
            self._renewed.rename({"_offset": "_settled"}),
            on=self.columns.identity,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        counts = pl.col("_settled").is_not_null() | self._filled
        old = found.get_column("_offset") <= found.get_column("_settled").fill_null(first - 1)
        if not old.any():
            return without_clears(rows)
        found = found.with_columns(old.alias("_old"), counts.alias("_counts"))
        # a partial version counts as the whole row that it made
        settled = complete(found.filter(pl.col("_old")), None, self.columns)
        settled = settled.unique(self.columns.identity, keep="last", maintain_order=True).filter(
            pl.col("_counts")
        )
        new = without_clears(found.filter(~pl.col("_old")))
        both = pl.concat([settled, new]).select(rows.columns)
        return both.sort("tbname", self._time, maintain_order=True)

    def _fetch(self, low: int, high: int, tables: Sequence[str] | None) -> pl.DataFrame:
        if self._history is None:
            raise StateError(
                "this kernel has no history to read again",
                hint="a kernel that gets DELETE needs a History",
            )
        return self._history.fetch_versions(low, high, tables)

    def floors(self, rows: pl.DataFrame) -> pl.Series:
        """Of each of *rows* the last tick from which on windows have it."""
        if not self._lost.height:
            return pl.repeat(NEVER, rows.height, dtype=pl.Int64, eager=True)
        dropped = self._lost.group_by(*self.columns.identity, "_offset").agg(pl.col("_floor").max())
        found = rows.join(
            dropped,
            on=[*self.columns.identity, "_offset"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        return found.get_column("_floor").fill_null(NEVER)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """Versions dropped since the last call; where the stream began and what RECALCULATE took,
        when that changed.
        """
        frames = {}
        if self._lost_saved < 0:
            frames["lost.afresh"] = self._lost
        elif self._lost.height > (0 if full else self._lost_saved):
            frames["lost"] = self._lost[0 if full else self._lost_saved :]
        self._lost_saved = self._lost.height
        if full or self._changed:
            frames["renewed"] = self._renewed
            frames["begun"] = pl.DataFrame(
                {"first": [self.first], "filled": [self._filled]},
                {"first": pl.Int64, "filled": pl.Boolean},
            )
        self._changed = False
        return frames

    def restore(self, frames: dict[str, pl.DataFrame], full: bool) -> None:
        """Apply what `delta` gave."""
        if "lost.afresh" in frames:
            self._lost = frames["lost.afresh"]
        elif "lost" in frames:
            self._lost = pl.concat([self._lost, frames["lost"]])
        self._lost_saved = self._lost.height
        if "begun" in frames:
            self.first, self._filled = frames["begun"].row(0)
            self._renewed = frames["renewed"]
        elif full and not getattr(self._history, "since_begin", False):
            # a state of earlier versions: what came before is known by its last versions
            self.first = None
            self._filled = True
        self._changed = False


def standing(rows: pl.DataFrame, identity: Sequence[str]) -> pl.DataFrame:
    """Those of *rows*, in order, that no DELETE among them takes."""
    later = (pl.col("_op") == DELETE).cum_sum(reverse=True).over(list(identity))
    return rows.filter(later == 0)
