"""Names of statements, bound to the current database."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.intake import database_of
from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.sql import statements as st
from penstock.sql.plan import Column


def home_of(
    catalog: Catalog, statement: st.Statement, name: st.Name, database: str | None
) -> Database:
    """Return the database that *name* is in. Raises SqlSemanticError, CatalogError."""
    home = name.database or database
    if home is None:
        raise statement.error(
            "which database?", name, code="E_WHICH_DATABASE", hint=f"write database.{name.name}"
        )
    return database_of(catalog, home)


def columns_of(defined: Sequence[st.ColumnDef]) -> list[Column]:
    """Return columns as the catalog has them."""
    return [Column(c.name, c.type) for c in defined]
