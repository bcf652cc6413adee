"""The surroundings of a query: what its names are bound to, and what its translation needs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.catalog.model import Table
from penstock.sql.functions.duckdb import Helper
from penstock.sql.relational import Output, TableColumns, binding_of
from penstock.types import ColumnType
from penstock.udf import UserFunction


@dataclass(frozen=True)
class Context:
    """The surroundings of an expression: the session's zone, and what it may name and call."""

    timezone: str
    #: user-defined functions by name
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    #: relations that the query may read
    relations: frozenset[str] = frozenset()
    #: the moment of the statement, in nanoseconds
    moment: int = field(default_factory=time.time_ns)
    #: what the translated query needs of the engine besides DuckDB's own functions, by name
    needed: dict[str, Helper] = field(default_factory=dict)
    #: unit of the ticks that a call's times have
    precision: str = "ms"
    #: time of the rows among which a call chooses
    time: exp.Column | None = None
    #: type of a call's first argument
    argument: ColumnType | None = None
    #: the expression is a column that an answer shows, or stands for one
    shown: bool = False

    def is_time(self, node: exp.Expr) -> bool:
        """Tell if *node* is bound to a TIMESTAMP."""
        binding = binding_of(node)
        return binding is not None and binding.kind == "TIMESTAMP"


def columns_of(table: Table, *, child: bool = False) -> TableColumns:
    """Return what the names of a query may mean in *table*, or in one child table of it, of which
    `*` means the columns without the tags.
    """
    columns = (Output(c.name, c.type, table.precision) for c in (*table.columns, *table.tags))
    tags = frozenset(t.name.lower() for t in table.tags)
    of_supertable = ("tbname",) if table.kind == "stable" else ()
    key = (table.key_column,) if table.key_column is not None else ()
    return TableColumns(
        tuple(columns),
        table.precision,
        database=table.database,
        tags=tags,
        hidden=tags if child else frozenset(),
        row_keys=(*of_supertable, *key),
    )
