"""A source table in memory: the History of kernels under test, with the store's rules (last write
wins, deletes remove), as it is and as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from penstock.rows.versions import CLEAR, DELETE, MERGE


class MemoryHistory:
    """Rows of the source as of the end of the last call."""

    def __init__(
        self, time: str, key: str | None = None, layout: dict[str, Any] | None = None
    ) -> None:
        """*layout*: columns and types of the rows, as far as they are known before the first."""
        self._time = time
        self._identity = ["tbname", time, *([key] if key else [])]
        self._rows = pl.DataFrame(schema=layout) if layout is not None else None
        self._versions = self._rows
        #: what was there at each mark, and what is there while it is asked as it was at one
        self._marked: list[tuple[pl.DataFrame | None, pl.DataFrame | None]] = []
        self._present: tuple[pl.DataFrame | None, pl.DataFrame | None] | None = None

    def add(self, rows: pl.DataFrame) -> None:
        """Take written rows over."""
        # a write may hold whole rows and partial ones, and each of them finds what stood before it
        runs = rows.with_columns(_run=pl.struct("_step", "_op").rle_id()).partition_by(
            "_run", maintain_order=True, include_key=False
        )
        for run in runs:
            self._put(run)

    def _put(self, rows: pl.DataFrame) -> None:
        if self._rows is None:
            self._rows = rows.clear()
        if self._versions is None:
            self._versions = rows.clear()
        if rows.get_column("_op")[0] == DELETE:
            gone = rows.select(self._identity)
            self._versions = self._versions.join(
                gone, on=self._identity, how="anti", nulls_equal=True, maintain_order="left"
            )
        else:
            self._versions = pl.concat([self._versions, rows])
        stored = self._rows
        if rows.get_column("_op")[0] == CLEAR:
            self._clear(rows)
            return
        if rows.get_column("_op")[0] == MERGE:
            for line in range(rows.height):
                self._merge(rows[line])
            return
        rows = rows.unique(self._identity, keep="last", maintain_order=True)
        stored = stored.join(
            rows.select(self._identity), on=self._identity, how="anti", nulls_equal=True
        )
        self._rows = stored if rows.get_column("_op")[0] == DELETE else pl.concat([stored, rows])

    def _clear(self, rows: pl.DataFrame) -> None:
        """Set what *rows* name to NULL where such rows are."""
        assert self._rows is not None
        values = [c for c in rows.columns if c not in self._identity and not c.startswith("_")]
        for line in range(rows.height):
            row = rows[line]
            named = [c for c in values if row.get_column(c).null_count() == 0]
            here = pl.all_horizontal(pl.col(c).eq_missing(row.item(0, c)) for c in self._identity)
            self._rows = self._rows.with_columns(
                pl.when(~here).then(pl.col(c)).alias(c) for c in named
            )

    def _merge(self, row: pl.DataFrame) -> None:
        assert self._rows is not None
        found = self._rows.join(
            row.select(self._identity), on=self._identity, how="semi", nulls_equal=True
        )
        if found.height:
            old = found.row(0, named=True)
            row = row.with_columns(
                pl.col(c).fill_null(pl.lit(old[c], dtype=row.schema[c]))
                for c in row.columns
                if c not in self._identity
            )
        rest = self._rows.join(
            row.select(self._identity), on=self._identity, how="anti", nulls_equal=True
        )
        self._rows = pl.concat([rest, row.with_columns(pl.lit(0, dtype=pl.Int8).alias("_op"))])

    def delete(self, tables: Sequence[str] | None, low: int, high: int) -> None:
        """Remove rows of *tables* (None: all) with low <= ts <= high."""
        if self._rows is not None and self._versions is not None:
            chosen = self._chosen(low, high, tables)
            self._rows, self._versions = self._rows.filter(~chosen), self._versions.filter(~chosen)

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        """Live rows, as `penstock.windows.kernel.History` has it."""
        return (
            pl.DataFrame()
            if self._rows is None
            else self._rows.filter(self._chosen(low, high, tables)).sort("tbname", self._time)
        )

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """All versions of live rows, as `penstock.windows.kernel.History` has it."""
        if self._versions is None:
            return pl.DataFrame()
        return self._versions.filter(self._chosen(low, high, tables)).sort(
            "tbname", self._time, maintain_order=True
        )

    def mark(self) -> str:
        """The present, as `penstock.windows.kernel.Rewindable` has it."""
        self._marked.append((self._rows, self._versions))
        return str(len(self._marked) - 1)

    def at(self, mark: str) -> None:
        """Be as at *mark*, as `penstock.windows.kernel.Rewindable` has it."""
        if self._present is not None:
            (self._rows, self._versions), self._present = self._present, None
        if mark:
            self._present = self._rows, self._versions
            self._rows, self._versions = self._marked[int(mark)]

    def _chosen(self, low: int, high: int, tables: Sequence[str] | None) -> pl.Expr:
        chosen = pl.col(self._time).is_between(low, high)
        return chosen if tables is None else chosen & pl.col("tbname").is_in(list(tables))
