"""What a written row does to the row of the same key, and what a partial write leaves of it.

A table is kept as versions of rows. Each has an operation (`_op`): UPSERT puts a whole row, DELETE
takes it away, MERGE puts some columns of it. A NULL in a MERGE keeps what is stored. A CLEAR stands
right before the MERGE of the same row and says which columns become NULL all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

UPSERT = 0
DELETE = 1
#: a row that leaves columns out: its NULLs keep what is stored
MERGE = 2
#: columns that hold a value, whichever it is, become NULL; those that are NULL stay as they are
CLEAR = 3


def carried(rows: pl.DataFrame, columns: Sequence[str], over: Sequence[str]) -> pl.DataFrame:
    """*rows* whose *columns* hold the last value that came before or with each of them.

    Args:
        rows: versions, older ones first, with `_op`.
        over: columns that tell rows, and the lives of one row, apart. A life begins with each
            UPSERT and DELETE.

    A delete leaves nothing, whatever values it holds; a CLEAR leaves NULL.
    """
    there = {c: pl.when(pl.col("_op") != DELETE).then(pl.col(c)) for c in columns}
    keys = list(over)
    if not has_clears(rows):
        return rows.with_columns(v.forward_fill().over(keys).alias(c) for c, v in there.items())
    # by the place of the last version that says something of the column, since NULL is a value here
    said = {
        c: pl.when(v.is_not_null()).then(pl.col("_line")).forward_fill().over(keys)
        for c, v in there.items()
    }
    return (
        rows.with_row_index("_line")
        .with_columns(
            pl.when(pl.col("_op") != CLEAR).then(pl.col(c)).gather(line).alias(c)
            for c, line in said.items()
        )
        .drop("_line")
    )


def has_clears(rows: pl.DataFrame) -> bool:
    """Tell whether a row of *rows* is a CLEAR."""
    return bool((rows.get_column("_op").to_numpy() == CLEAR).any())


def without_clears(rows: pl.DataFrame) -> pl.DataFrame:
    """*rows* as they were written, each once: a partial row without the CLEAR before it."""
    return rows.filter(pl.col("_op") != CLEAR) if has_clears(rows) else rows


def filler(kind: pl.DataType) -> Any:
    """Give any value of *kind*: in a CLEAR it only says that there is one."""
    if kind == pl.String:
        return "0"
    if kind == pl.Binary:
        return b"0"
    if kind == pl.Boolean:
        return False
    return Decimal(0) if isinstance(kind, pl.Decimal) else 0
