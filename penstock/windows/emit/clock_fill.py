"""FILL where windows close by the clock: a row for each window that a partition lets pass without
rows, once it has had data.
"""

from __future__ import annotations

import polars as pl

from penstock.windows.emit.fill import Filler


class ClockFill:
    """The empty windows of one FORCE_WINDOW_CLOSE stream."""

    def __init__(self, filler: Filler) -> None:
        self._filler = filler
        #: partials of the latest window with rows of each partition that had any, and of the latest
        #: with each value
        self.latest: pl.DataFrame | None = None

    def rows(self, windows: pl.DataFrame, first: int, behind: int) -> pl.DataFrame | None:
        """Return rows for the windows from *first* up to *behind* (numbers in the grid) that
        partitions with data have let pass; None: none have.

        Args:
            windows: those among them that have rows, with their partials.
        """
        indexed = windows.with_columns(
            pl.Series(
                "_i",
                self._filler.grid.last(windows.get_column("_wstart").to_numpy()),
                dtype=pl.Int64,
            )
        )
        earlier = (
            self.latest.with_columns(pl.lit(first - 1, dtype=pl.Int64).alias("_i"))
            if self.latest is not None
            else indexed.clear()
        )
        known = pl.concat([earlier.select(indexed.columns), indexed]).sort("_g", "_i", "_wstart")
        gaps = (
            known.with_row_index("_line")
            .select(
                "_g",
                "_line",
                (pl.col("_i") + 1).alias("_f"),
                pl.col("_i").shift(-1).over("_g").fill_null(behind).alias("_u"),
            )
            .filter(pl.col("_u") > pl.col("_f"))
        )
        self.latest = self._filler.lasting(known).drop("_i")
        return self._filler.after(gaps, known) if gaps.height else None
