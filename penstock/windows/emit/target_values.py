"""Which values a target's columns can hold: times in range, and no infinity."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.sql.plan import Target
from penstock.types import TIME_LIMITS, in_range


class TargetValues:
    """The columns of one target that cannot hold every value of their type."""

    def __init__(self, target: Target) -> None:
        self._times = [c.name for c in target.columns if c.type.kind == "TIMESTAMP"]
        self._floats = [c.name for c in target.columns if c.type.kind in ("FLOAT", "DOUBLE")]
        self._limits = TIME_LIMITS[target.precision]

    def mended(self, rows: pl.DataFrame) -> pl.DataFrame:
        """*rows* with NULL for values that no table takes: times out of range, infinity."""
        mended: list[pl.Series] = []
        for name in self._times:
            column = rows.get_column(name)
            found = in_range(column, self._limits)
            if found is not column:
                mended.append(found)
        for name in self._floats:
            column = rows.get_column(name)
            if np.isinf(column.to_numpy()).any():  # without a query; NULL is NaN there
                infinite = column.is_infinite()
                nothing = pl.Series(name, [None], dtype=column.dtype)
                mended.append(column.zip_with(~infinite.fill_null(value=False), nothing))
        return rows.with_columns(mended) if mended else rows
