"""The select list of a plan, computed and cast to the target's columns.

Takes frames of windows or, for a stream without a window, of source rows. A value that cannot be
cast is NULL. Does not know groups, and which of the results can be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from penstock.sql.compile import Compiled
from penstock.sql.plan import StreamPlan
from penstock.types import ColumnType
from penstock.windows.emit.projection import Projection, Quick, cast_to, taken
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import FAILURES, evaluate


class Selected(NamedTuple):
    """The lines that have values, these by the target's columns, and the lines on which an
    expression fails, with `_reason`.
    """

    lines: pl.DataFrame
    columns: list[pl.Series]
    failed: pl.DataFrame | None


class CompiledSelectList:
    """The select list of one plan."""

    def __init__(self, plan: StreamPlan, compiled: Mapping[str, Compiled]) -> None:
        """*compiled*: the plan's outputs by name."""
        raw: list[pl.Expr] = []
        cast: list[pl.Expr] = []
        direct: list[pl.Expr] = []  # both in one, where no cast has to be checked
        plain: list[Quick | None] = []
        #: the target's columns whose casts may fail, each with what is cast
        self._checked: dict[str, str] = {}
        for i, (column, origin) in enumerate(
            zip(plan.target.columns, plan.target.column_of, strict=True)
        ):
            kind = column.type.polars()
            if origin is None:
                raw.append(pl.lit(None, dtype=kind).alias(f"_r{i}"))
                cast.append(pl.col(f"_r{i}").alias(column.name))
                direct.append(pl.repeat(None, pl.len(), dtype=kind).alias(column.name))
                plain.append(None)
                continue
            given = compiled[origin]
            raw.append(given.expr.alias(f"_r{i}"))
            for made, value in ((cast, pl.col(f"_r{i}")), (direct, given.expr)):
                value = cast_expression(
                    value, given.type, column.type, plan.source.precision, plan.target.precision
                )
                made.append(value.cast(kind, strict=False).alias(column.name))
            plain.append(
                cast_to(kind, taken(value.meta.root_names()[0])) if value.meta.is_column() else None
            )
            if _may_misfit(given.type, column.type):
                self._checked[column.name] = f"_r{i}"
        self._raw = Projection(raw)
        self._cast = Projection(cast)
        self._direct = Projection(direct, plain)
        #: columns that it is computed from
        self.reads = {name for e in raw for name in e.meta.root_names()}

    def of(self, lines: pl.DataFrame) -> Selected:
        """Compute the target's columns of *lines*."""
        if not self._checked:
            try:
                return Selected(lines, self._direct.columns(lines), None)
            except FAILURES:
                pass
        raw, failed = evaluate(lines, self._raw)
        return Selected(raw, self._cast.columns(raw), failed)

    def misfits(self, lines: pl.DataFrame, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield, for each column that has any, the *lines* of which a cast made NULL of a value,
        with `_reason`; they are those that `of` gave, in the order of *rows*, which it made.
        """
        for name, cast in self._checked.items():
            column = rows.get_column(name)
            given = lines.get_column(cast)
            if column.null_count() > given.null_count():
                lost = column.is_null() & given.is_not_null()
                reason = pl.format(
                    "{} does not fit column {}", given.filter(lost).cast(pl.String), pl.lit(name)
                )
                yield lines.filter(lost).with_columns(reason.alias("_reason"))


def _may_misfit(given: ColumnType, wanted: ColumnType) -> bool:
    """Tell whether a cast may make NULL of a value, or another value, so that it is looked at."""
    if wanted.sized:
        return False
    return given != wanted if wanted.kind == "DECIMAL" else given.kind != wanted.kind


def columns_as_is(
    plan: StreamPlan, compiled: Mapping[str, Compiled]
) -> dict[str, str | None] | None:
    """Of each of the target's columns the column that it is, None where it has no values; None:
    some are worked out or cast.
    """
    found: dict[str, str | None] = {}
    for column, origin in zip(plan.target.columns, plan.target.column_of, strict=True):
        if origin is None:
            found[column.name] = None
            continue
        given = compiled[origin]
        value = cast_expression(
            given.expr, given.type, column.type, plan.source.precision, plan.target.precision
        )
        if not value.meta.is_column() or given.type.polars() != column.type.polars():
            return None
        found[column.name] = value.meta.root_names()[0]
    return found
