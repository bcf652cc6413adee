"""Databases as the clients of others name them, and the words in which theirs are missed."""

from __future__ import annotations

import re

from gateway.intake import database_of
from penstock.auth.access import Access
from penstock.catalog.model import Database, Right
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.words import in_backticks

#: what a database may be called
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_DAY = 86_400 * 10**9


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


def quoted_database(name: str) -> str:
    """Return the name of a database as SQL has it. Raises CatalogError."""
    if not _NAME.fullmatch(name):
        raise CatalogError(
            f"{name[:64]!r} cannot be a database's name",
            code="E_BAD_NAME",
            hint="letters, digits and underscores, at most 64",
        )
    return in_backticks(name)


def create_database(name: str, keep: int | None, *, again: bool) -> str:
    """Return the statement that makes a database. Raises CatalogError.

    Args:
        keep: nanoseconds that rows are kept for at least, since it is by days here; None: for ever.
        again: one that is there already is fine.
    """
    kept = "" if keep is None else f" KEEP {-(-keep // _DAY)}d"
    return f"CREATE DATABASE {'IF NOT EXISTS ' if again else ''}{quoted_database(name)}{kept}"
