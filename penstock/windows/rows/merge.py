"""Partial writes made whole: a row of op MERGE takes the columns it lacks from the row it
overwrites.

Used where a kernel needs the row as the table will have it. Applies nothing: rows stay rows.
"""

from __future__ import annotations

import polars as pl

from penstock.rows.versions import MERGE, UPSERT, carried, without_clears
from penstock.sql.plan import Source
from penstock.windows.kernel import History
from penstock.windows.rows.row_columns import RowColumns


def complete(rows: pl.DataFrame, history: History | None, columns: RowColumns) -> pl.DataFrame:
    """*rows* with every MERGE turned into an UPSERT of the whole row, and without CLEARs.

    NULLs among the values take those that the row of the same identity had before: earlier in
    *rows*, or in *history*. Those that a CLEAR names stay NULL.
    """
    if not (rows.get_column("_op").to_numpy() == MERGE).any():
        return rows
    partial = pl.col("_op") >= MERGE
    keys = columns.identity
    touched = rows.filter(partial).select(keys).unique()
    numbered = rows.with_row_index("_at")
    work = numbered.join(touched, on=keys, how="semi", nulls_equal=True, maintain_order="left")
    stored = _fetch_stored(touched, history, keys)
    if stored is not None:
        # what is not filled from them is of no use, and a table may have columns that are newer
        # than the plan
        used = {*keys, *columns.values}
        before = stored.select(
            (pl.col(n) if n in used else pl.lit(None)).cast(kind).alias(n)
            for n, kind in work.schema.items()
        )
        work = pl.concat([before.with_columns(pl.lit(UPSERT, dtype=pl.Int8).alias("_op")), work])
    # a life of the row begins with each upsert or delete; values reach forward within it only
    work = work.with_columns((~partial).cum_sum().over(keys).alias("_life"))
    filled = carried(work, columns.values, [*keys, "_life"]).drop("_life")
    whole = filled.filter((pl.col("_op") == MERGE) & pl.col("_at").is_not_null())
    whole = whole.with_columns(pl.lit(UPSERT, dtype=pl.Int8).alias("_op"))
    return pl.concat([numbered.filter(~partial), whole]).sort("_at").drop("_at")


def written(
    rows: pl.DataFrame, history: History | None, columns: RowColumns, *, replaces: bool
) -> pl.DataFrame:
    """Return *rows* as a kernel counts them: whole, where a row takes the place of the one before
    it, and otherwise as they were written. Arguments as of `complete`.
    """
    return complete(rows, history, columns) if replaces else without_clears(rows)


def _fetch_stored(
    touched: pl.DataFrame, history: History | None, keys: list[str]
) -> pl.DataFrame | None:
    if history is None:
        return None
    times = touched.get_column(keys[1])
    low = times.min()
    high = times.max()
    assert isinstance(low, int) and isinstance(high, int)
    found = history.fetch(
        low, high, touched.get_column("tbname").unique(maintain_order=True).to_list()
    )
    return found.join(touched, on=keys, how="semi", nulls_equal=True) if found.height else None


def as_planned(rows: pl.DataFrame, source: Source) -> pl.DataFrame:
    """*rows* with the columns that *source* had when the plan was made: since then a table may have
    got others.
    """
    types = {c.name: c.type.polars() for c in (*source.columns, *source.tags)}
    meta = [n for n in rows.columns if n.startswith("_") and n not in types]
    there = set(rows.columns)
    made = [
        (pl.col(n) if n in there else pl.lit(None)).cast(kind, strict=False).alias(n)
        for n, kind in types.items()
    ]
    return rows.select(*meta, "tbname", *made)
