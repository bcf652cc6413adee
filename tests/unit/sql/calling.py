"""Builders of functions called over a small frame, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

import polars as pl
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.functions.base import NULL, Compiled, CompileScope, FunctionCall
from penstock.sql.plan import Duration
from penstock.types import ColumnType

TIMESTAMP = ColumnType("TIMESTAMP")
_KINDS: dict[type, ColumnType] = {
    bool: ColumnType("BOOL"),
    int: ColumnType("BIGINT"),
    float: ColumnType("DOUBLE"),
    str: ColumnType("VARCHAR", length=20),
    bytes: ColumnType("VARBINARY", length=20),
    Decimal: ColumnType("DECIMAL", precision=20, scale=2),
}


def scope(precision: str = "ms", timezone: str = "UTC") -> CompileScope:
    """Settings of an expression; a refusal is raised without its place."""

    def refuse(node: exp.Expr, message: str, *, code: str, hint: str = "") -> NoReturn:
        raise SqlSemanticError(message, code=code, hint=hint)

    return CompileScope(precision, timezone, refuse)


def kind_of(value: Any) -> ColumnType:
    """Type of a Python value."""
    return NULL if value is None else _KINDS[type(value)]


def constant(value: Any, kind: ColumnType | None = None) -> Compiled:
    """A literal."""
    if isinstance(value, Duration):
        return Compiled(pl.lit(0), ColumnType("BIGINT"), literal=True, duration=value)
    kind = kind or kind_of(value)
    given = pl.lit(value) if kind == NULL else pl.lit(value, kind.polars())
    return Compiled(given, kind, literal=True, value=value)


class Table:
    """A frame that grows by a column for each list among the arguments."""

    def __init__(self) -> None:
        self.columns: list[pl.Series] = []

    def argument(self, given: Any) -> Compiled:
        """A list is a column, a pair a column and its type; anything else is a constant."""
        if isinstance(given, Compiled):
            return given
        values, kind = given if isinstance(given, tuple) else (given, None)
        if not isinstance(values, list):
            return constant(values, kind)
        if kind is None:
            kind = kind_of(next((v for v in values if v is not None), None))
        name = f"c{len(self.columns)}"
        self.columns.append(pl.Series(name, values, kind.polars()))
        return Compiled(pl.col(name), kind)


def call_of(
    table: Table, *arguments: Any, name: str = "f", precision: str = "ms", timezone: str = "UTC"
) -> FunctionCall:
    """A checked call of function *name*."""
    given = tuple(map(table.argument, arguments))
    return FunctionCall(name, given, scope(precision, timezone), exp.Null())


def apply(build: Callable[[FunctionCall], pl.Expr], *arguments: Any, **options: Any) -> list[Any]:
    """What *build* gives over its arguments, in all rows; and in each row alone, which must be
    the same.
    """
    table = Table()
    made = build(call_of(table, *arguments, **options)).alias("x")
    if not table.columns:
        return pl.select(made).get_column("x").to_list()
    frame = pl.DataFrame(table.columns)
    found = frame.with_columns(made).get_column("x").to_list()
    alone = [frame[i : i + 1].with_columns(made).get_column("x")[0] for i in range(frame.height)]
    assert alone == found
    return found
