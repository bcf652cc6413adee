"""Names of a query to tables: the catalog first, then child tables that were only ever seen in
rows.
"""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass

import redis

from penstock import names
from penstock.catalog.child_tags import Tagged, tagged_children
from penstock.catalog.model import External, Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.schema_view import CatalogSchema
from penstock.catalog.virtual import members
from penstock.coordination import redis_link
from penstock.sql.plan import Member
from services.store.external_rows import ExternalRows, as_table
from services.store.retention import expiry


@dataclass(frozen=True)
class ResolvedTable:
    """A supertable or plain table, or one child table of it."""

    table: Table
    child: str | None = None
    #: where its rows are, when that is another deployment
    external: External | None = None


class Resolver:
    def __init__(
        self, catalog: CatalogReader, client: redis.Redis, external_rows: ExternalRows | None = None
    ) -> None:
        self._reader = catalog
        self._redis = client
        self.external_rows = external_rows

    @property
    def revision(self) -> int:
        """Number of the catalog's last change."""
        return self._reader.catalog.revision

    def find(self, database: str, name: str) -> ResolvedTable | None:
        catalog = self._reader.catalog
        table = catalog.table(database, name)
        if table is not None:
            return ResolvedTable(table)
        child = catalog.child(database, name)
        if child is not None:
            stable = catalog.table_by_id(child.stable_id)
            return ResolvedTable(stable, child.name) if stable is not None else None
        entry = self.external_rows.find(database, name) if self.external_rows is not None else None
        if entry is not None:
            return ResolvedTable(as_table(entry), external=entry)
        view = catalog.view(database, name)
        target = catalog.table_by_id(view.target_id) if view is not None else None
        if target is not None:
            return ResolvedTable(target)
        stable_id = self._find_in_rows(database, name)
        stable = catalog.table_by_id(stable_id) if stable_id is not None else None
        return ResolvedTable(stable, name) if stable is not None else None

    def expiry(self, table: Table) -> int | None:
        """Rows below this time (ticks) are over their KEEP and no longer shown."""
        return expiry(self._reader.catalog, table, time.time())

    def view(self) -> CatalogSchema:
        """The catalog as the planner asks it; a virtual table's rows are there as any other's."""
        return CatalogSchema(
            self._reader.catalog,
            self._find_in_rows,
            virtual_as_real=True,
            find_other=self._external,
        )

    def members(self, found: ResolvedTable) -> tuple[Member, ...]:
        """Where the columns of a virtual table come from at this moment."""
        return members(self._reader.catalog, self.view().find, found.table, found.child)

    def tagged(self, found: ResolvedTable, only: str | None) -> list[Tagged]:
        """Return the child tables of a supertable with their tags; the one that is found, or that
        is called *only*. Raises BusError.
        """
        catalog = self._reader.catalog
        name = found.child or only
        wanted = None if name is None else (name,)
        children = tagged_children(catalog, self._redis, found.table, wanted)
        return redis_link.ask(lambda: list(children))

    def by_id(self, table_id: int) -> Table | None:
        return self._reader.catalog.table_by_id(table_id)

    def _external(self, database: str, name: str) -> Table | None:
        found = self.external_rows.find(database, name) if self.external_rows is not None else None
        return as_table(found) if found is not None else None

    def _find_in_rows(self, database: str, name: str) -> int | None:
        """Id of the supertable of a child table that was never created but written to."""
        if self._reader.catalog.database(database) is None:
            return None
        stables = [t for t in self._reader.catalog.tables(database) if t.kind == "stable"]
        return next(
            (t.id for t in stables if self._redis.hexists(names.children(t.id), name)), None
        )

    def suggestion(self, database: str, name: str) -> str:
        """Hint for a name that does not exist."""
        catalog = self._reader.catalog
        if not database:
            return "write database.table, or choose a database with USE"
        if catalog.database(database) is None:
            return f'there is no database "{database}"'
        near = difflib.get_close_matches(name, [t.name for t in catalog.tables(database)], 1)
        return (
            f'did you mean "{near[0]}"?'
            if near
            else "SHOW STABLES and SHOW TABLES list what there is"
        )
