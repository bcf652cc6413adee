"""Tables of one case: its DDL statements executed into the planner's view of a catalog, without any
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.errors import CatalogError
from penstock.sql import parse
from penstock.sql.plan import Column, Precision
from penstock.sql.planning.view import TableDef
from penstock.sql.statements import (
    ColumnDef,
    CreateChildren,
    CreateDatabase,
    CreateStable,
    CreateTable,
    UseDatabase,
    Value,
)

DATABASE = "conformance"


@dataclass(frozen=True)
class Child:
    """A child table with its tag values by name."""

    name: str
    stable: str
    tags: dict[str, Value]


@dataclass
class Schema:
    """Implements `penstock.sql.planning.view.SchemaView`."""

    database: str = DATABASE
    precisions: dict[str, Precision] = field(default_factory=lambda: {DATABASE: "ms"})
    tables: dict[str, TableDef] = field(default_factory=dict)
    children: dict[str, Child] = field(default_factory=dict)

    def execute(self, text: str) -> None:
        """Run DDL."""
        for statement in parse(text):
            if isinstance(statement, CreateDatabase):
                self.precisions[statement.name.lower()] = statement.options.precision or "ms"
            elif isinstance(statement, UseDatabase):
                self.database = statement.name.lower()
            elif isinstance(statement, CreateStable):
                self._add(
                    statement.table.name,
                    "virtual" if statement.virtual else "stable",
                    statement.columns,
                    statement.tags,
                )
            elif isinstance(statement, CreateTable):
                self._add(
                    statement.table.name,
                    "virtual" if statement.virtual else "plain",
                    statement.columns,
                    (),
                )
            elif isinstance(statement, CreateChildren):
                for child in statement.children:
                    tags = self.tables[child.stable.name.lower()].tags
                    names = child.tag_names or tuple(t.name for t in tags)
                    values = dict(zip(names, child.tag_values, strict=True))
                    self.children[child.table.name.lower()] = Child(
                        child.table.name, child.stable.name, values
                    )
            else:
                raise CatalogError(f"a case cannot run {type(statement).__name__}")

    def _add(
        self, name: str, kind: str, columns: Sequence[ColumnDef], tags: Sequence[ColumnDef]
    ) -> None:
        key = next((c.name for c in columns if c.composite_key), None)
        self.tables[name.lower()] = TableDef(
            id=len(self.tables) + 1,
            database=self.database,
            name=name,
            kind=kind,  # type: ignore[arg-type]
            columns=tuple(Column(c.name, c.type) for c in columns),
            tags=tuple(Column(t.name, t.type) for t in tags),
            precision=self.precisions[self.database],
            key_column=key,
        )

    def precision(self, database: str) -> Precision | None:
        return self.precisions.get(database.lower())

    def table(self, database: str, name: str) -> TableDef | None:
        if (table := self.tables.get(name.lower())) is not None:
            return table
        child = self.children.get(name.lower())
        if child is None:
            return None
        stable = self.tables[child.stable.lower()]
        return TableDef(
            stable.id,
            stable.database,
            stable.name,
            "child",
            stable.columns,
            stable.tags,
            stable.precision,
            stable.key_column,
            child.name,
        )

    def table_names(self, database: str) -> Sequence[str]:
        return [table.name for table in self.tables.values()]

    def function(self, name: str) -> None:
        return None

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        return ()
