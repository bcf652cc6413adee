"""Tables as requests over a link name them, for users who have the right to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from penstock.auth.access import Access
from penstock.catalog.model import External, Right, Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.errors import AuthError, CatalogError
from penstock.sql import parse
from penstock.sql.statements import Query

T = TypeVar("T")
#: a table, and the spelling of the child table that was named, if one was
TableOrChild = tuple[Table, str | None]


class TableLookup:
    """Finds tables by name. Somebody without a right on a database is not told what is in it."""

    def __init__(
        self, reader: CatalogReader, access: Access, born: Callable[[int, str], bool]
    ) -> None:
        """
        Args:
            born: tells if rows made a child table of this name known, by the supertable's id.
                Blocks.
        """
        self._reader = reader
        self._access = access
        self._born = born

    async def look(self, find: Callable[[bool], T]) -> T:
        """Return what *find* finds, also when it was made or granted just now and that has not come
        here yet, or only rows know of it.

        Args:
            find: told whether to ask, and wait, for child tables that only rows know.

        Raises:
            PenstockError: of *find*.
        """
        try:
            return find(False)
        except (CatalogError, AuthError):
            # users without a right on the database are not told that there is no such table
            await asyncio.to_thread(self._reader.catch_up)
            return await asyncio.to_thread(find, True)

    def require_read(self, user: str, sql: str, database: str) -> None:
        """Require READ on every table of a query; say nothing of those that are not there.

        Raises:
            AuthError: the right is missing.
            SqlError: the query cannot be parsed.
        """
        if user == self._access.root:
            return
        for statement in parse(sql):
            if isinstance(statement, Query):
                for node in statement.query.find_all(exp.Table):
                    self._require_read(user, node.db or database, node.name)

    def _require_read(self, user: str, database: str, name: str) -> None:
        try:
            table, _ = self.find(database, name, born=True)
        except CatalogError:
            self._access.require_named(user, "READ", database, name)
        else:
            self._access.require(user, "READ", table, f"{database}.{name}")

    def find_for(
        self, user: str, right: Right, database: str, name: str, born: bool
    ) -> TableOrChild:
        """Find a table for somebody who needs *right*; without it nobody is told whether the table
        exists. Raises AuthError, CatalogError.
        """
        try:
            table, child = self.find(database, name, born=born)
        except CatalogError:
            home, _, plain = name.partition(".") if "." in name else (database, "", name)
            self._access.require_named(user, right, home, plain)
            raise
        self._access.require(user, right, table, name if "." in name else f"{database}.{name}")
        return table, child

    def find(self, database: str, name: str, *, born: bool = False) -> TableOrChild:
        """Find a table, or the supertable and spelling of a child table; of a stream or view its
        result. Raises CatalogError.

        *born*: look for child tables that only rows know, too.
        """
        catalog = self._reader.catalog
        if "." in name:
            database, _, name = name.partition(".")
        if catalog.database(database) is None:
            raise CatalogError(f'there is no database "{database}"', code="E_NO_DATABASE")
        found = _table_or_child(catalog, database, name)
        if found is not None:
            return found
        result = _result_table(catalog, database, name)
        if result is not None:
            return result, None
        stable = self._born_into(database, name) if born else None
        if stable is not None:
            return stable, name
        raise CatalogError(
            f'there is no table "{name}" in database "{database}"', code="E_NO_TABLE"
        )

    def _born_into(self, database: str, name: str) -> Table | None:
        """Find the supertable of a child table that only rows know."""
        stables = (t for t in self._reader.catalog.tables(database) if t.kind == "stable")
        return next((t for t in stables if self._born(t.id, name)), None)

    def external(self, database: str, name: str) -> External | None:
        """Find the external stream *name*, or the one that a view of this name writes."""
        catalog = self._reader.catalog
        view = catalog.view(database, name)
        target = catalog.by_id(view.target_id) if view is not None else None
        written = target if isinstance(target, External) else None
        return catalog.external(database, name) or written

    def present(self, table: Table) -> Table:
        """Return the table as it is now. Raises CatalogError when it is gone."""
        found = self._reader.catalog.table_by_id(table.id)
        if found is None:
            raise CatalogError(f"table {table.name} was dropped", code="E_NO_TABLE")
        return found


def _table_or_child(catalog: Catalog, database: str, name: str) -> TableOrChild | None:
    table = catalog.table(database, name)
    if table is not None:
        return table, None
    child = catalog.child(database, name)
    if child is None:
        return None
    stable = catalog.table_by_id(child.stable_id)
    return (stable, child.name) if stable is not None else None


def _result_table(catalog: Catalog, database: str, name: str) -> Table | None:
    """Find the table that a view or stream of this name writes."""
    view = catalog.view(database, name)
    target = catalog.table_by_id(view.target_id) if view is not None else None
    if target is not None:
        return target
    stream = catalog.stream(database, name)
    return catalog.table_by_id(stream.plan.target.table_id) if stream is not None else None
