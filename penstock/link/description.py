"""What one side tells the other about a table: its columns, its key, and which table of that name
it is.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from penstock.catalog.model import ROW_ID, Table
from penstock.errors import CatalogError, RemoteError
from penstock.sql.plan import Column, Precision, build
from penstock.sql.planning.view import TableDef


def require_log(table: Table, *, writing: bool = False) -> None:
    """Refuse tables that nobody can follow over a link (a virtual table has no topic), or write
    into. Raises CatalogError (`E_NO_LOG`).
    """
    shown = f"{table.database}.{table.name}"
    if table.kind == "virtual":
        hint = "a snapshot or a SELECT reads it; a stream over it has a result that can be followed"
        raise CatalogError(
            f"{shown} is a virtual table and has no log to follow or to write to",
            code="E_NO_LOG",
            hint=hint,
        )
    if writing and table.foreign:
        raise CatalogError(
            f"{shown} is a topic of another Kafka",
            code="E_NO_LOG",
            hint="INSERT writes to it, on its own deployment",
        )


@dataclass(frozen=True)
class Description:
    """A supertable (`tags`) or a plain table. `id` differs when a table was dropped and made again
    under its name.
    """

    id: int
    database: str
    name: str
    columns: tuple[Column, ...]
    tags: tuple[Column, ...] = ()
    precision: Precision = "ms"
    key_column: str | None = None
    partitions: int = 1
    #: name of the child table that was asked for, spelled as it is
    child: str | None = None
    #: ids of the definitions its records may have; a new one means ALTER
    versions: tuple[int, ...] = ()
    #: a stream table: rows are written without ROW_ID, which its leader fills, and none replaces
    #: another
    numbered: bool = False

    @property
    def time_column(self) -> str:
        return self.columns[0].name

    @property
    def fields(self) -> tuple[Column, ...]:
        return (*self.columns, *self.tags)

    @property
    def given(self) -> tuple[Column, ...]:
        """What a row is written with."""
        return tuple(c for c in self.fields if not (self.numbered and c.name == ROW_ID))

    @property
    def is_stable(self) -> bool:
        return bool(self.tags)

    @property
    def shown(self) -> str:
        """Its name for people."""
        return f"{self.database}.{self.child or self.name}"

    def schema(self) -> pa.Schema:
        """Columns and tags as they come over the link."""
        return pa.schema([(c.name, c.type.arrow(self.precision)) for c in self.fields])

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, body: Any) -> Description:
        """Raises RemoteError when *body* is none."""
        try:
            return cast(Description, build(cls, body))
        except (TypeError, KeyError, ValueError) as wrong:
            raise RemoteError(
                "the other side describes a table in a way that is not understood",
                detail=str(wrong)[:200],
            ) from None

    @classmethod
    def of(cls, table: Table, child: str | None = None) -> Description:
        return cls(
            table.id,
            table.database,
            table.name,
            table.columns,
            table.tags,
            table.precision,
            table.key_column,
            table.partitions,
            child,
            table.schema_ids,
            table.replicated is not None,
        )

    def definition(self, table_id: int, database: str, name: str) -> TableDef:
        """The same table as a planner sees it under another name."""
        kind: Any = "stable" if self.tags else "plain"
        return TableDef(
            table_id, database, name, kind, self.columns, self.tags, self.precision, self.key_column
        )
