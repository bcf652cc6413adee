"""Rows that agree in some of their columns: looked for by hashes, since mostly there are none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl


def find_copies(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the rows that agree with another one in the columns *names*, in their order; NULL
    agrees with NULL.
    """
    # sorted hashes take a tenth of the time that grouping the rows takes
    hashes = rows.select(pl.struct(names).hash()).to_series()
    ordered = np.sort(hashes.to_numpy())
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return rows.clear()
    suspected = rows.filter(hashes.is_in(pl.Series(repeated).implode()))
    return suspected.filter(pl.struct(names).is_duplicated())


def has_copies(rows: pl.DataFrame, names: Sequence[str]) -> bool:
    """Return True if two rows agree in the columns *names*."""
    return find_copies(rows, names).height > 0
