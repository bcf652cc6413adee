"""NULLs that a partial write names: they overwrite, while columns that it leaves out stay.

A frame on its way through the gateway has one line a row, as its client counts them. Which columns
a row sets to NULL stands beside it, in a column of its own that only such frames have, until
`spell_out` makes a CLEAR of it, right before the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from penstock.rows.versions import CLEAR, MERGE, filler
from penstock.sql.plan import Column

CLEARED = "_clear"
_OP = "_op"


def note(
    frame: pl.DataFrame, columns: Sequence[str], named: Callable[[str], Sequence[bool]] | None
) -> pl.DataFrame:
    """Return *frame* with the names of the columns that each partial row sets to NULL, if there are
    any.

    Args:
        columns: those that may be NULL and that the write names.
        named: tells which rows name a column; without it all of them do.
    """
    partial = frame.get_column(_OP) == MERGE
    found = []
    for name in columns:
        column = frame.get_column(name)
        if not column.null_count():
            continue
        cleared = column.is_null() & partial
        if named is not None:
            cleared &= pl.Series(named(name), dtype=pl.Boolean)
        if cleared.any():
            found.append(pl.when(cleared).then(pl.lit(name)))
    if not found:
        return frame
    names = pl.concat_list(found).list.drop_nulls()
    return frame.with_columns(pl.when(names.list.len() > 0).then(names).alias(CLEARED))


def spell_out(
    frame: pl.DataFrame, values: Sequence[Column], counts: Sequence[int]
) -> tuple[pl.DataFrame, list[int]]:
    """Return *frame* with a CLEAR before each row that has one coming, and how many rows each write
    has then.

    *values*: the table's columns that are no part of its key.
    """
    if CLEARED not in frame.columns:
        return frame, list(counts)
    wanted = frame.get_column(CLEARED).is_not_null()
    clears = frame.filter(wanted).with_columns(
        pl.lit(CLEAR, dtype=pl.Int8).alias(_OP),
        *(
            pl.when(pl.col(CLEARED).list.contains(pl.lit(c.name)))
            .then(pl.lit(filler(c.type.polars()), dtype=c.type.polars()))
            .alias(c.name)
            for c in values
        ),
    )
    lines = np.arange(frame.height)
    order = np.argsort(np.concatenate([lines[wanted.to_numpy()], lines]), kind="stable")
    more = np.add.reduceat(wanted.to_numpy().astype(np.int64), np.cumsum([0, *counts])[:-1])
    whole = pl.concat([clears, frame]).drop(CLEARED)[order]
    return whole, (np.asarray(counts) + more).tolist()
