"""The arguments of a plan's aggregates: expressions over source rows, each evaluated once.

An argument is known by a number; its values are the column `_x` and that number. Does not know what
aggregates make of them.
"""

from __future__ import annotations

import polars as pl

from penstock.types import ColumnType
from penstock.windows.emit.projection import Quick, without_nan
from penstock.windows.rows.scope import Scope

#: the number of what has no argument and counts rows, such as `count(*)`
ROWS = -1


class Arguments:
    """The arguments met so far, in order of number."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._types: list[ColumnType] = []
        #: as they are written in the plan
        self.texts: list[str] = []
        #: that make `_x0…` from source rows
        self.expressions: list[pl.Expr] = []
        #: of each another way to its values, where there is one
        self.quick: list[Quick | None] = []

    def number(self, sql: str | None) -> int:
        """Return the number of the argument *sql*; equal texts share one."""
        if sql is None:
            return ROWS
        if sql in self.texts:
            return self.texts.index(sql)
        compiled = self.scope.over_rows(sql)
        expr = compiled.expr
        quick: Quick | None = None
        if compiled.type.kind in ("FLOAT", "DOUBLE"):
            quick = without_nan(expr.meta.root_names()[0]) if expr.meta.is_column() else None
            expr = expr.fill_nan(None)
        self._types.append(compiled.type)
        self.expressions.append(expr.alias(f"_x{len(self.texts)}"))
        self.quick.append(quick)
        self.texts.append(sql)
        return len(self.texts) - 1

    def type_of(self, number: int) -> ColumnType:
        """Return the type that an argument's expression has."""
        return self._types[number]
