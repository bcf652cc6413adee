"""Compilers of some kinds of nodes over a small frame, for the tests beside this file."""

from __future__ import annotations

from decimal import Decimal
from types import ModuleType
from typing import Any

import polars as pl

from penstock.sql.compile.compiler import Compiler, Functions, nothing
from penstock.sql.compile.expression import parse_expression
from penstock.sql.source import Source
from penstock.types import ColumnType

COLUMNS = {
    "ts": ColumnType("TIMESTAMP"),
    "a": ColumnType("INT"),
    "u": ColumnType("BIGINT UNSIGNED"),
    "d": ColumnType("DOUBLE"),
    "s": ColumnType("VARCHAR", length=10),
    "n": ColumnType("NCHAR", length=5),
    "o": ColumnType("BOOL"),
    "v": ColumnType("VARBINARY", length=4),
    "j": ColumnType("JSON"),
    "m": ColumnType("DECIMAL", precision=10, scale=2),
}
ROWS: dict[str, list[Any]] = {
    "ts": [1_000, None, 3_000],
    "a": [1, None, -2],
    "u": [2**63 + 1, None, 3],
    "d": [1.5, None, -0.5],
    "s": ["1", None, "b"],
    "n": ["ä", None, "xyz"],
    "o": [True, None, False],
    "v": [b"ab", None, b"c"],
    "j": ['{"k":1,"t":true}', None, '{"k":null}'],
    "m": [Decimal("1.25"), None, Decimal("-2.00")],
}
FRAME = pl.DataFrame(
    {**ROWS, "_now": [5_000] * 3},
    schema={**{name: kind.polars() for name, kind in COLUMNS.items()}, "_now": pl.Int64()},
)


def compiler(
    *modules: ModuleType,
    text: str = "",
    functions: Functions = nothing,
    precision: str = "ms",
    timezone: str = "UTC",
    computed: dict[str, pl.Expr] | None = None,
) -> Compiler:
    """A compiler that knows the nodes of *modules* only."""
    known = {kind: make for module in modules for kind, make in module.NODES.items()}
    return Compiler(known, COLUMNS, precision, timezone, Source(text), functions, computed or {})


def evaluate(text: str, *modules: ModuleType, **options: Any) -> tuple[str, list[Any]]:
    """Type and values of *text*, compiled with the nodes of *modules* only."""
    compiled = compiler(*modules, text=text, **options).compile(parse_expression(text))
    return str(compiled.type), FRAME.with_columns(x=compiled.expr).get_column("x").to_list()
