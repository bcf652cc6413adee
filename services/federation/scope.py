"""Persistent queries: what `pq://name` and `pq://serial` mean here, and whether it runs. Pure.

A query is a stream, a materialized view or a database; its serial is its id in the catalog. A
stream or view is running unless it is paused or has failed; a database always is. In the scope of a
stream or view are its result table and its own name for it; in that of a database all tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.catalog.model import Database, StreamEntry, Table, View
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError, RemoteError

Query = StreamEntry | View | Database
Find = Callable[[str, str], tuple[Table, str | None]]


@dataclass(frozen=True)
class NamedQuery:
    """A query by name or by serial."""

    name: str | None
    serial: int | None

    @classmethod
    def of(cls, request: dict[str, Any]) -> NamedQuery | None:
        """The query that a request names, if it does."""
        name = request.get("query")
        serial = request.get("serial")
        return (
            None
            if name is None and serial is None
            else cls(None if name is None else str(name), None if serial is None else int(serial))
        )

    @property
    def shown(self) -> str:
        return self.name if self.name is not None else str(self.serial)

    def find(self, catalog: Catalog) -> Query:
        """Raises CatalogError (`E_NO_QUERY`)."""
        if self.serial is not None:
            entry = catalog.by_id(self.serial)
            if isinstance(entry, StreamEntry | View | Database):
                return entry
            raise CatalogError(f"there is no query with serial {self.serial}", code="E_NO_QUERY")
        name = (self.name or "").lower()
        every: list[Query] = [
            *catalog.streams(),
            *(v for v in catalog.views() if not v.mirror),
            *catalog.databases(),
        ]
        found = [query for query in every if name in _names_of(query)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise CatalogError(
                f'there is no query "{self.name}"',
                code="E_NO_QUERY",
                hint="a stream, a view or a database; SHOW STREAMS lists them",
            )
        raise CatalogError(
            f'there are {len(found)} queries called "{self.name}"',
            code="E_NO_QUERY",
            hint="write database.name, or the serial",
        )

    def check(self, catalog: Catalog) -> Query:
        """The query, which runs. Raises RemoteError (`E_QUERY_NOT_RUNNING`) when it does not."""
        entry = self.find(catalog)
        if not isinstance(entry, Database) and entry.status != "running":
            raise RemoteError(
                f'query "{self.shown}" is not running',
                code="E_QUERY_NOT_RUNNING",
                detail=f"it is {entry.status}",
            )
        return entry

    def table(self, catalog: Catalog, name: str, find: Find) -> tuple[Table, str | None]:
        """A table in the scope of the query, which must run. Raises PenstockError."""
        entry = self.check(catalog)
        if isinstance(entry, Database):
            database, dot, plain = name.rpartition(".")
            if dot and database.lower() != entry.name.lower():
                raise CatalogError(
                    f'there is no table "{name}" in the scope of "{self.shown}"', code="E_NO_TABLE"
                )
            return find(entry.name, plain)
        target = catalog.table_by_id(
            entry.plan.target.table_id if isinstance(entry, StreamEntry) else entry.target_id
        )
        if target is not None and name.lower() in (
            entry.name.lower(),
            target.name.lower(),
            f"{target.database}.{target.name}".lower(),
        ):
            return target, None
        here = target.name if target is not None else "nothing"
        raise CatalogError(
            f'there is no table "{name}" in the scope of "{self.shown}"',
            code="E_NO_TABLE",
            hint=f"there is {here}",
        )


def _names_of(query: Query) -> tuple[str, ...]:
    """Return the names by which a query is found, in lower case."""
    if isinstance(query, Database):
        return (query.name.lower(), "")
    return (query.name.lower(), f"{query.database}.{query.name}".lower())
