"""Databases as the clients of others name them, and the words in which theirs are missed."""

from __future__ import annotations

from gateway.intake import database_of
from penstock.auth.access import Access
from penstock.catalog.model import Database, Right
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError


def require_database(
    catalog: Catalog, access: Access, user: str, right: Right, name: str
) -> Database:
    """Return the database *name*, if *user* has any right in it.

    Raises:
        AuthError: that names *right*; who may not know what there is learns no more.
        CatalogError: there is no such database, in the words that telegraf looks for before it
            makes one.
    """
    home = catalog.database(name)
    if home is None or not access.sees(user, home):
        access.require_named(user, right, name)
    try:
        return database_of(catalog, name)
    except CatalogError as error:
        message = f'database not found: "{name[:192]}"'
        raise CatalogError(message, code=error.code, hint=error.hint) from None
