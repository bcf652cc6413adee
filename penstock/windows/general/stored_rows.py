"""Which rows of storage are the stream's: not those from before it, and none that it dropped."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from penstock.windows.assign.ingest import Ingest
from penstock.windows.clocks.ticks import NEVER
from penstock.windows.kernel import History


class StoredRows:
    """The rows of one kernel as storage has them."""

    def __init__(self, ingest: Ingest, history: History | None) -> None:
        self._ingest = ingest
        self.history = history
        #: first offset that was the stream's; NEVER with FILL_HISTORY; None: not known yet
        self.first: int | None = NEVER if ingest.plan.fill_history else None
        if self.first is None and getattr(history, "since_begin", False):
            self.first = 0
        types = ingest.empty.schema
        #: rows that were dropped as late: storage has them, the stream does not
        self.dropped = pl.DataFrame(
            schema={n: types[n] for n in ingest.identity} | {"_offset": pl.Int64}
        )
        self._saved = 0

    def begin(self, rows: pl.DataFrame) -> None:
        """Note where the stream began."""
        if self.first is None and rows.height:
            self.first = rows.get_column("_offset").min()  # type: ignore[assignment]

    def drop(self, rows: pl.DataFrame) -> None:
        """Remember rows that were dropped as late (`_tab`, time, key, `_offset`)."""
        if self.history is not None and rows.height:
            self.dropped = pl.concat(
                [self.dropped, rows.select(self.dropped.columns)], rechunk=True
            )

    def count_again(self, rows: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
        """Note that all stored *rows* of *low*..*high* (with `_offset`) count from now on, whatever
        came of them before. Return those from before the stream, which `fetch` leaves out.
        """
        self.dropped = self.dropped.filter(~pl.col(self._ingest.time).is_between(low, high))
        self._saved = min(self._saved, self.dropped.height)
        if self.first is None:
            return rows.clear()
        before = rows.filter(pl.col("_offset") < self.first)
        self.drop(before)
        return before

    def fetch(self, low: int, high: int, tables: Sequence[str] | None) -> pl.DataFrame | None:
        """Return prepared rows of low..high that are the stream's and count; None: there are
        none.
        """
        assert self.history is not None
        stored = self.history.fetch(low, high, tables)
        if self.first is not None and stored.height:
            stored = stored.filter(pl.col("_offset") >= self.first)
        if not stored.height:
            return None
        made, _ = self._ingest.prepare(stored.sort("_offset", maintain_order=True))
        offsets = stored.get_column("_offset").sort().gather(made.get_column("_source"))
        live = made.with_columns(offsets).filter(pl.col("_pass"))
        return live.join(
            self.dropped, on=[*self._ingest.identity, "_offset"], how="anti", nulls_equal=True
        )

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> pl.DataFrame:
        """Return the rows dropped since the last call (all when *full*)."""
        begin = 0 if full else self._saved
        self._saved = self.dropped.height
        return self.dropped[begin:]

    def restore(self, dropped: pl.DataFrame | None, first: int | None) -> None:
        """Take over what `delta` gave, and where the stream began."""
        if dropped is not None:
            self.dropped = pl.concat([self.dropped, dropped])
        self._saved = self.dropped.height
        self.first = first
