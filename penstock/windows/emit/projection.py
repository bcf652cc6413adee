"""Expressions over many small frames: columns that are taken as they are need no query.

Owns one optimisation. polars plans, optimises and runs a query for every `select`; over a single
row that costs more than everything else a kernel does with it, and most expressions of a stream
only name a column. Refuses to decide what happens to rows that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from penstock import tuning

#: the values of an expression without a query, or None where only the query knows them
Quick = Callable[[pl.DataFrame], pl.Series | None]


class Projection:
    """Expressions with distinct output names, in order."""

    def __init__(
        self, expressions: Sequence[pl.Expr], quick: Sequence[Quick | None] | None = None
    ) -> None:
        """*quick*: of each expression another way to its values, where there is one; that of
        columns as they are is known here.
        """
        self.expressions = list(expressions)
        self._names = [e.meta.output_name() for e in self.expressions]
        given = quick if quick is not None else [None] * len(self.expressions)
        self._quick = [q or _column(e) for q, e in zip(given, self.expressions, strict=True)]

    def columns(self, rows: pl.DataFrame) -> list[pl.Series]:
        """The values of each expression, one a row. Raises what polars raises."""
        found = [None if quick is None else quick(rows) for quick in self._quick]
        asked = [e for e, column in zip(self.expressions, found, strict=True) if column is None]
        made = iter(_values(rows, asked))
        there = [next(made) if column is None else column for column in found]
        named = [c if c.name == n else c.alias(n) for n, c in zip(self._names, there, strict=True)]
        return [_at_height(column, rows.height) for column in named]

    def add(self, rows: pl.DataFrame) -> pl.DataFrame:
        """*rows* and the expressions."""
        if not self._names:
            return rows
        old = [n for n in self._names if n in rows.columns]
        return (rows.drop(old) if old else rows).hstack(self.columns(rows))

    def add_none(self, rows: pl.DataFrame) -> pl.DataFrame:
        """No row of *rows*, in the layout of `add`; nothing is computed."""
        layout = rows.lazy().with_columns(self.expressions).collect_schema()
        kept = [n for n in rows.columns if n not in self._names]
        return pl.DataFrame(schema={n: layout[n] for n in (*kept, *self._names)})


def _at_height(column: pl.Series, height: int) -> pl.Series:
    """Return *column* with *height* lines: a literal that stands alone has just one."""
    return column if len(column) == height else column.new_from_index(0, height)


def _values(rows: pl.DataFrame, asked: list[pl.Expr]) -> list[pl.Series]:
    many = len(asked) > tuning.EXPRESSIONS_QUERIED_ONE_BY_ONE
    if many or rows.height > tuning.ROWS_QUERIED_ONE_BY_ONE:
        return rows.select(asked).get_columns()
    # polars gives the expressions of one query to its threads
    return [rows.select(expression).to_series() for expression in asked]


def taken(name: str) -> Quick:
    """The column *name* as it is."""
    return lambda rows: rows.get_column(name)


def without_nan(name: str) -> Quick:
    """The float column *name* with NULL for NaN, as long as there is no NaN in it."""

    def quick(rows: pl.DataFrame) -> pl.Series | None:
        found = rows.get_column(name)
        return None if found.is_nan().any() else found

    return quick


def where_above_0(name: str, values: Quick) -> Quick:
    """*values*, which hold as long as every value of the column *name* is above 0."""

    def quick(rows: pl.DataFrame) -> pl.Series | None:
        asked = rows.get_column(name)
        least = None if asked.null_count() else asked.min()
        return values(rows) if isinstance(least, int) and least > 0 else None

    return quick


def cast_to(kind: pl.DataType, quick: Quick) -> Quick:
    """*quick*, cast to a type it mostly has already; what does not fit is NULL."""

    def cast(rows: pl.DataFrame) -> pl.Series | None:
        found = quick(rows)
        return found if found is None or found.dtype == kind else found.cast(kind, strict=False)

    return cast


def _column(expression: pl.Expr) -> Quick | None:
    bare = expression.meta.undo_aliases()
    return taken(bare.meta.root_names()[0]) if bare.meta.is_column() else None
