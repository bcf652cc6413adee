"""What a write does to the live rows of the general kernel.

Live rows are a multiset, or one row a key where a repeat replaces. A version that is late for a
window leaves there what came before it: `_floor` and `_ceiling` say from where and up to where a
version counts.
"""

from __future__ import annotations

import polars as pl

from penstock.rows.versions import DELETE, MERGE
from penstock.windows.assign.ingest import Ingest
from penstock.windows.clocks.ticks import ALWAYS, NEVER, Highest, Ticks
from penstock.windows.general.evict import Evictor
from penstock.windows.general.store import Store
from penstock.windows.rows.columnwise import kept
from penstock.windows.rows.counted import standing


class LiveRows:
    """Takes writes over into *store*."""

    def __init__(
        self,
        ingest: Ingest,
        store: Store,
        evictor: Evictor,
        tables: Highest,
        *,
        replaces: bool,
    ) -> None:
        """
        Args:
            tables: the highest event time by table.
            replaces: a repeat replaces the row before it.
        """
        self._ingest = ingest
        self._store = store
        self._evictor = evictor
        self._tables = tables
        self._replaces = replaces
        self._time = ingest.time

    def change(self, rows: pl.DataFrame, live: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Take *rows*, of which *live* count, over into the live rows.

        Returns the rows added and the points that changed (`_g`, `_t`, `_quiet`, `_gone`).
        """
        return self._replace(rows) if self._replaces else self._append(rows, live)

    def _append(self, rows: pl.DataFrame, live: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """`change` where a repeat is a row more."""
        fresh = live
        gone = self._ingest.empty
        deleted = rows.filter(pl.col("_op") == DELETE)
        if deleted.height:
            keys = [k for k in self._ingest.identity if deleted.get_column(k).null_count() == 0]
            gone = self._store.rows.join(deleted.select(keys), on=keys, how="semi")
            # rows are a multiset: a delete takes those before it, those of its own write too, and
            # not those after it
            standing_ = standing(rows, keys).select("_seq")
            fresh = live.join(standing_, on="_seq", how="semi", maintain_order="left")
        self._store.remove(gone)
        self._store.add(fresh.select(self._ingest.columns))
        return fresh, self._change_points(fresh, gone, pl.col("_late"))

    def _replace(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """`change` where a repeat takes the place of the row before it."""
        identity = self._ingest.identity
        versions = self._versions(rows)
        fresh = versions.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
        self._evictor.keep(fresh.filter(pl.col("_ceiling") != ALWAYS))
        again = versions.filter(
            pl.Series(versions.get_column(self._time).to_numpy() <= self.highest(versions))
        )
        gone = self._ingest.empty
        if again.height:
            gone = self._store.like(again.select(identity), identity)
        self._store.remove(gone)
        quiet = pl.col("_late")
        if gone.height:
            self._leave(gone, versions)
            updates = fresh.join(gone.select(identity), on=identity, how="semi", nulls_equal=True)
            quiet = quiet | pl.col("_seq").is_in(updates.get_column("_seq").implode())
        self._store.add(fresh.select(self._ingest.columns))
        return fresh, self._change_points(fresh, gone, quiet)

    def _change_points(
        self, fresh: pl.DataFrame, gone: pl.DataFrame, quiet: pl.Expr
    ) -> pl.DataFrame:
        points = [self.points(fresh, quiet), self.points(gone, pl.lit(True), gone=True)]
        return pl.concat(points)

    def _versions(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the last version of each of *rows*, and before it those that it leaves in windows
        which are over for it.

        `_ceiling` says up to where an earlier version counts. Lateness is a matter of the group, so
        two versions in one call may be late for different windows.
        """
        identity = self._ingest.identity
        if not (rows.get_column("_floor").to_numpy() != NEVER).any():
            return rows.unique(subset=identity, keep="last", maintain_order=True)
        later = pl.col("_floor").reverse().cum_min().shift(1).reverse().over(identity)
        return rows.with_columns(
            pl.min_horizontal("_ceiling", later.fill_null(ALWAYS)).alias("_ceiling")
        ).filter(pl.col("_floor") < pl.col("_ceiling"))

    def _leave(self, gone: pl.DataFrame, rows: pl.DataFrame) -> None:
        """Rows *gone* stay as they were in windows that are over for all the *rows* that replace
        them.
        """
        identity = self._ingest.identity
        if not (rows.get_column("_floor").to_numpy() != NEVER).any():
            return
        # one that is late for nothing takes all of the row's place
        over = rows.group_by(identity).agg(pl.col("_floor").min().alias("_over"))
        left = gone.join(over, on=identity, nulls_equal=True, maintain_order="left")
        left = left.with_columns(pl.min_horizontal("_ceiling", "_over").alias("_ceiling")).filter(
            pl.col("_floor") < pl.col("_ceiling")
        )
        left, _ = self._ingest.renumbered(left.select(gone.columns), left.clear())
        self._store.add(left)
        self._evictor.keep(left)

    def note(self, live: pl.DataFrame, silent: pl.DataFrame, source: pl.DataFrame) -> None:
        """Tell the evictor where storage has something else than what counts.

        *silent* rows replaced only what is stored; *source* has the offsets.
        """
        if self._evictor.stored.history is None:
            return
        otherwise = live.get_column("_floor") != NEVER
        if not self._replaces:
            otherwise |= live.get_column("_op") == MERGE
        partly = kept(live, otherwise)
        self._evictor.keep(partly)
        if not self._replaces and silent.height:
            # one that fails WHERE may pass it as storage has it, with the columns of the row before
            failed = silent.filter((pl.col("_op") == MERGE) & ~pl.col("_pass"))
            partly = pl.concat([partly, failed.select(partly.columns)])
        if partly.height:
            self._evictor.stored.drop(
                partly.with_columns(
                    source.get_column("_offset").gather(partly.get_column("_source"))
                )
            )
        self._evictor.supersede(silent)

    def highest(self, rows: pl.DataFrame) -> Ticks:
        """The latest time of each row's table so far."""
        tables = rows.get_column("_tab").to_numpy()
        self._tables.reserve(int(tables.max(initial=0)) + 1)
        highest: Ticks = self._tables.values[tables]
        return highest

    def points(self, rows: pl.DataFrame, quiet: pl.Expr, gone: bool = False) -> pl.DataFrame:
        return rows.select(
            "_g", pl.col(self._time).alias("_t"), quiet.alias("_quiet"), pl.lit(gone).alias("_gone")
        )
