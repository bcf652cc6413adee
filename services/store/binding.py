"""Tables that a query's names are bound to, as its translation into DuckDB's SQL needs them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.functions.duckdb import Helper
from penstock.udf import UserFunction

#: other names of the time column that queries use
TIME_ALIASES = ("_tp_time", "_rowts", "_c0")


@dataclass(frozen=True)
class BoundTable:
    """A table of the query: DuckDB's name for it, its columns in order, and which are times."""

    name: str
    columns: tuple[str, ...]
    timestamps: frozenset[str]
    precision: str

    @property
    def time_column(self) -> str:
        return self.columns[0]


@dataclass(frozen=True)
class Context:
    """The surroundings of an expression: the tables by alias, and the session's zone."""

    tables: Mapping[str, BoundTable]
    timezone: str
    #: user-defined functions by name
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    #: relations besides the tables that the query may read
    relations: frozenset[str] = frozenset()
    #: the moment of the statement, in nanoseconds
    moment: int = field(default_factory=time.time_ns)
    #: what the translated query needs of the engine besides DuckDB's own functions, by name
    needed: dict[str, Helper] = field(default_factory=dict)

    @property
    def precision(self) -> str:
        """Precision of times that come from no table: that of the first one."""
        return self.first_table.precision if self.first_table is not None else "ms"

    @property
    def first_table(self) -> BoundTable | None:
        """The first table of the query."""
        return next(iter(self.tables.values()), None)

    def of(self, column: exp.Column) -> BoundTable | None:
        """Return the table of a column, where that is clear."""
        if column.table:
            return self.tables.get(column.table.lower())
        having = [
            b for b in self.tables.values() if column.name.lower() in {c.lower() for c in b.columns}
        ]
        if len(having) == 1:
            return having[0]
        return self.first_table if len(self.tables) == 1 else None

    def time_table(self, node: exp.Expr) -> BoundTable | None:
        """Return the table whose TIMESTAMP column *node* is."""
        if not isinstance(node, exp.Column):
            return None
        bound = self.of(node)
        if bound is not None and (
            node.name.lower() in bound.timestamps or node.name.lower() in TIME_ALIASES
        ):
            return bound
        return None
