"""Emissions put together."""

from __future__ import annotations

import polars as pl

from penstock.windows.kernel import Emission


def combine(first: Emission, second: Emission, time: str) -> Emission:
    """Make one emission of two: of lines of one table and *time* (a column) the later stands."""
    rows = stack(first.rows, second.rows)
    if rows is not None:
        rows = rows.unique(["tbname", time], keep="last", maintain_order=True)
    return Emission(
        rows, late=stack(first.late, second.late), failed=stack(first.failed, second.failed)
    )


def stack(first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return the lines of both frames, where there are any."""
    if first is None or second is None:
        return first if second is None else second
    return pl.concat([first, second], how="diagonal")
