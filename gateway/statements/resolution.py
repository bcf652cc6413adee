"""Names in statements, as databases and tables; errors come back pointing at the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gateway.intake import WriteIntake, database_of, refuse_virtual
from gateway.layout import RowLayout
from gateway.statements.context import RequestContext
from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql import statements as st

T = TypeVar("T")


class NameResolver:
    """Event loop only."""

    def __init__(self, catalog: Callable[[], Catalog], intake: WriteIntake) -> None:
        self._catalog = catalog
        self._intake = intake

    def home(self, statement: st.Statement, name: st.Name, context: RequestContext) -> Database:
        """Return the database that *name* is in. Raises SqlSemanticError."""
        home = name.database or context.database
        if home is None:
            hint = f"write database.{name.name}, or send the request to /rest/sql/database"
            raise statement.error("which database?", name, code="E_WHICH_DATABASE", hint=hint)
        return _point_at(statement, name, lambda: database_of(self._catalog(), home))

    async def find(
        self, home: Database, statement: st.Statement, name: st.Name
    ) -> tuple[RowLayout, str | None]:
        """Return the layout of a table and, for a child table, its own spelling. Raises
        SqlSemanticError.
        """
        try:
            return await self._intake.locate(home.name, name.name)
        except CatalogError as error:
            raise statement.error(error.message, name, code=error.code, hint=error.hint) from error

    def refuse_virtual(self, statement: st.Statement, name: st.Name, layout: RowLayout) -> None:
        """Raise SqlSemanticError when *layout* is a virtual table's."""
        _point_at(statement, name, lambda: refuse_virtual(layout))


def _point_at(statement: st.Statement, name: st.Name, action: Callable[[], T]) -> T:
    try:
        return action()
    except CatalogError as error:
        raise statement.error(error.message, name, code=error.code, hint=error.hint) from error
