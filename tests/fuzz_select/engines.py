"""The engines that are compared: a store over the rows of a world, its windows computed by DuckDB
or by the kernels alone, and the expressions of streams.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa

from penstock.catalog.model import Child, Database, Table, TableVersion
from penstock.sql.compile import compile_expression
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store import interval_sql
from services.store.query import Queries, QueryLimits
from tests.fuzz_select import printing
from tests.fuzz_select.tables import RandomTable, World
from tests.fuzz_select.tree import Expression
from tests.unit.services.store.kit import TOPIC, MemoryStore

DATABASE = "d"
#: a query that takes longer hangs
_SECONDS = 10.0
_LIMITS = QueryLimits("256MB", 1, 1_000_000, _SECONDS, "0B")


class RandomStore:
    """A store whose tables are those of a world, partly in segments and partly in the tail."""

    def __init__(self, world: World, directory: Path) -> None:
        tables = [_table_of(i, t) for i, t in enumerate(world.tables, 10)]
        children = [
            Child(1000 + 10 * number + i, DATABASE, table.id, name, (None, None))
            for number, table in enumerate(tables)
            for i, name in enumerate(world.tables[number].children)
        ]
        entries = (Database(1, DATABASE, partitions=1), *tables, *children)
        self._store = MemoryStore(directory, *entries)
        for table, random_table in zip(tables, world.tables, strict=True):
            self._put(table, random_table, random_table.rows[: random_table.flushed])
        if any(t.flushed for t in world.tables):
            self._store.flush()
        for table, random_table in zip(tables, world.tables, strict=True):
            self._put(table, random_table, random_table.rows[random_table.flushed :])
        self._queries = Queries(self._store.partitions, self._store.resolver, _LIMITS)

    def ask(self, sql: str, zone: str) -> pa.Table:
        """Return the answer of a query. Raises PenstockError."""
        return self._queries.run(sql, DATABASE, zone)

    def ask_kernels(self, sql: str, zone: str) -> pa.Table | None:
        """Return the answer with windows computed by the kernels; None where they are anyway."""
        written: list[str | None] = []

        def leave_to_kernels(plan: Any, rows: str) -> None:
            written.append(_written(plan, rows))

        with patch.object(interval_sql, "sql", leave_to_kernels):
            found = self._queries.run(sql, DATABASE, zone)
        return found if any(written) else None

    def _put(self, table: Table, given: RandomTable, rows: tuple[dict[str, Any], ...]) -> None:
        names = ("tbname", *given.columns, *given.tags)
        if rows:
            self._store.put(table, *(tuple(row[name] for name in names) for row in rows))


_written = interval_sql.sql


def _table_of(number: int, table: RandomTable) -> Table:
    columns = tuple(Column(name, kind) for name, kind in table.columns.items())
    tags = tuple(Column(name, kind) for name, kind in table.tags.items())
    kind = "stable" if table.children else "plain"
    version = TableVersion(100 + number, columns, tags)
    return Table(number, DATABASE, table.name, kind, TOPIC, 1, "ms", (version,))


def values_in_stream(
    node: Expression, rows: list[dict[str, Any]], types: dict[str, ColumnType], zone: str
) -> list[Any]:
    """Compute an expression of each row as a stream does; times are ticks."""
    kinds = {"tbname": ColumnType("VARCHAR", length=192), **types}
    frame = pl.DataFrame(rows, schema={name: kind.polars() for name, kind in kinds.items()})
    text = printing.expression(node, qualified=False)
    compiled = compile_expression(text, kinds, timezone=zone)
    # a constant is one value however many rows there are
    found = frame.select(pl.col("tbname"), compiled.expr.alias("_"))
    return found.get_column("_").to_list()
