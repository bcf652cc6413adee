"""Expressions over many small frames: columns that are taken as they are need no query.

Owns one optimisation. polars plans, optimises and runs a query for every `select`; over a single row that costs more than everything else
a kernel does with it, and most expressions of a stream only name a column. Refuses to decide what happens to rows that fail.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


class Projection:
    """Expressions with distinct output names, in order."""

    def __init__(self, expressions: Sequence[pl.Expr], plain: Sequence[tuple[str, pl.DataType] | None] | None = None) -> None:
        """*plain*: for each expression that is just a column with a cast to a type it mostly has already, that column and type."""
        self.expressions = list(expressions)
        self._names = [e.meta.output_name() for e in self.expressions]
        given = plain if plain is not None else [None] * len(self.expressions)
        self._taken = [p or _column(e) for p, e in zip(given, self.expressions, strict=True)]
        self._made = [e for e, taken in zip(self.expressions, self._taken, strict=True) if taken is None]

    def columns(self, rows: pl.DataFrame) -> list[pl.Series]:
        """The values of each expression, one a row. Raises what polars raises."""
        made = iter(rows.select(self._made).get_columns() if self._made else ())
        found = [next(made) if t is None else _take(rows, *t).alias(n) for n, t in zip(self._names, self._taken, strict=True)]
        # without a column beside it, a literal has one value whatever the height
        return [c if len(c) == rows.height else c.new_from_index(0, rows.height) for c in found]

    def add(self, rows: pl.DataFrame) -> pl.DataFrame:
        """*rows* and the expressions."""
        if not self._names:
            return rows
        old = [n for n in self._names if n in rows.columns]
        return (rows.drop(old) if old else rows).hstack(self.columns(rows))


def _column(expression: pl.Expr) -> tuple[str, pl.DataType | None] | None:
    bare = expression.meta.undo_aliases()
    return (bare.meta.root_names()[0], None) if bare.meta.is_column() else None


def _take(rows: pl.DataFrame, name: str, kind: pl.DataType | None) -> pl.Series:
    column = rows.get_column(name)
    return column if kind is None or column.dtype == kind else column.cast(kind, strict=False)
