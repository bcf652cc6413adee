"""The planner's questions to the catalog, and the one shape of table it gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from penstock.sql.plan import Column, Member, Precision
from penstock.udf.function import UserFunction


@dataclass(frozen=True)
class TableDef:
    """A table as a stream sees it. Of a child table `id`, `name`, `columns` and `tags` are its
    supertable's and `child` its own name.

    `virtual` tables take their columns from others; one with tags is a supertable.
    """

    id: int
    database: str
    name: str
    kind: Literal["stable", "child", "plain", "virtual"]
    columns: tuple[Column, ...]
    tags: tuple[Column, ...] = ()
    precision: Precision = "ms"
    key_column: str | None = None
    child: str | None = None
    #: id of the stream whose result this is
    result_of: int | None = None
    #: of a virtual table: itself, or the virtual child tables there are now
    members: tuple[Member, ...] = ()

    @property
    def many(self) -> bool:
        """True when its rows come from several tables, so that a timeline of its own needs
        PARTITION BY tbname.
        """
        return self.kind == "stable" or (
            self.kind == "virtual" and bool(self.tags) and self.child is None
        )

    @property
    def shown(self) -> str:
        """Its name for people."""
        return f"{self.database}.{self.child or self.name}"


class SchemaView(Protocol):
    """The catalog for planning. Names compare case-insensitively."""

    def precision(self, database: str) -> Precision | None:
        """Precision of *database*; None when there is no such database."""
        ...

    def table(self, database: str, name: str) -> TableDef | None: ...

    def table_names(self, database: str) -> Sequence[str]:
        """Names of its tables, without child tables: for hints."""
        ...

    def function(self, name: str) -> UserFunction | None:
        """The user-defined function *name*."""
        ...

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        """Names of the streams whose result goes into that table."""
        ...
