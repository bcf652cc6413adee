"""A catalog in memory for planning, filled by the DDL of a test."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.parser import parse
from penstock.sql.plan import Column, Precision
from penstock.sql.planner import PlannedStream, TableDef, plan_stream
from penstock.sql.statements import (
    ColumnDef,
    CreateChildren,
    CreateStable,
    CreateStream,
    CreateTable,
)
from penstock.udf import UserFunction


class MemoryView:
    """`SchemaView` over a dict; `databases` has the precision of each."""

    def __init__(
        self, *ddl: str, precision: Precision = "ms", databases: dict[str, Precision] | None = None
    ) -> None:
        self.databases: dict[str, Precision] = {"db": precision, **(databases or {})}
        self.tables: dict[tuple[str, str], TableDef] = {}
        self.functions: dict[str, UserFunction] = {}
        self.streams: dict[tuple[str, str], list[str]] = {}
        self._ids = iter(range(1, 1_000_000))
        for text in ddl:
            for statement in parse(text):
                self._create(statement)

    def _create(self, statement: object) -> None:
        if isinstance(statement, CreateStable):
            kind = "virtual" if statement.virtual else "stable"
            self._add(
                statement.table.database or "db",
                statement.table.name,
                kind,
                statement.columns,
                statement.tags,
            )
        elif isinstance(statement, CreateTable):
            kind = "virtual" if statement.virtual else "plain"
            self._add(
                statement.table.database or "db", statement.table.name, kind, statement.columns
            )
        elif isinstance(statement, CreateChildren):
            for child in statement.children:
                stable = self.tables[child.stable.database or "db", child.stable.name.lower()]
                self.tables["db", child.table.name.lower()] = TableDef(
                    stable.id,
                    stable.database,
                    stable.name,
                    "child",
                    stable.columns,
                    stable.tags,
                    stable.precision,
                    stable.key_column,
                    child.table.name,
                )

    def _add(
        self,
        database: str,
        name: str,
        kind: str,
        columns: Sequence[ColumnDef],
        tags: Sequence[ColumnDef] = (),
    ) -> None:
        key = next((c.name for c in columns if c.composite_key), None)
        self.tables[database, name.lower()] = TableDef(
            next(self._ids),
            database,
            name,
            kind,
            tuple(Column(c.name, c.type) for c in columns),  # type: ignore[arg-type]
            tuple(Column(t.name, t.type) for t in tags),
            self.databases[database],
            key,
        )

    def add(self, table: TableDef) -> None:
        self.tables[table.database.lower(), table.name.lower()] = table

    def precision(self, database: str) -> Precision | None:
        return self.databases.get(database.lower())

    def table(self, database: str, name: str) -> TableDef | None:
        return self.tables.get((database.lower(), name.lower()))

    def table_names(self, database: str) -> Sequence[str]:
        return [t.name for (home, _), t in self.tables.items() if home == database.lower()]

    def function(self, name: str) -> UserFunction | None:
        return self.functions.get(name.lower())

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        return self.streams.get((database.lower(), table.lower()), [])


def plan(text: str, view: MemoryView, *, timezone: str = "UTC") -> PlannedStream:
    """Plan the one CREATE STREAM in *text*."""
    statement = parse(text)[0]
    assert isinstance(statement, CreateStream)
    return plan_stream(statement, view, database="db", stream_id=7, target_id=99, timezone=timezone)
