"""A change of the catalog as data, and the entries that a rule starts from.

Nothing is written here: `CatalogWriter.commit(change.puts, change.removes)` does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from penstock.catalog.model import Database, Entry, Table
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import Column

#: gives an id that nothing else has or had (`CatalogWriter.new_id`)
NewId = Callable[[], int]


@dataclass(frozen=True)
class Change:
    """Entries to write and entries to remove; both empty when IF [NOT] EXISTS made the statement do
    nothing.
    """

    puts: tuple[Entry, ...] = ()
    removes: tuple[Entry, ...] = ()


def refuse(code: str, message: str, *, detail: str = "", hint: str = "") -> NoReturn:
    raise CatalogError(message, code=code, detail=detail, hint=hint)


def find_database(catalog: Catalog, name: str) -> Database:
    found = catalog.database(name)
    if found is None:
        refuse("E_NO_DATABASE", f"there is no database {name}")
    return found


def find_table(catalog: Catalog, database: str, name: str) -> Table:
    find_database(catalog, database)
    found = catalog.table(database, name)
    if found is None:
        if catalog.child(database, name) is not None:
            refuse(
                "E_CHILD_TABLE",
                f"{name} is a child table",
                hint="its columns and tags are its supertable's",
            )
        refuse("E_NO_TABLE", f"there is no table {database}.{name}")
    return found


def find_column(table: Table, name: str, tag: bool) -> Column:
    for column in table.tags if tag else table.columns:
        if column.name.lower() == name.lower():
            return column
    refuse("E_NO_COLUMN", f"{table.name} has no {'tag' if tag else 'column'} {name}")
