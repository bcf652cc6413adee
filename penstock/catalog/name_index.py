"""Entries of the catalog by name, in any case."""

from __future__ import annotations

import sys
from typing import Any

from penstock.catalog.model import (
    Child,
    CompatibilityLevel,
    Database,
    Entry,
    External,
    Role,
    Snode,
    StreamEntry,
    Table,
    User,
    View,
)
from penstock.udf.function import UserFunction


class NameIndex:
    """A dict for each type of entry. Keys are names in lower case, of objects in a database with
    the database's; snodes have their number, compatibility levels that of their table.
    """

    def __init__(self) -> None:
        self.databases: dict[str, Database] = {}
        self.tables: dict[tuple[str, str], Table] = {}
        self.streams: dict[tuple[str, str], StreamEntry] = {}
        self.externals: dict[tuple[str, str], External] = {}
        self.views: dict[tuple[str, str], View] = {}
        self.users: dict[str, User] = {}
        self.roles: dict[str, Role] = {}
        self.snodes: dict[int, Snode] = {}
        self.functions: dict[str, UserFunction] = {}
        self.levels: dict[int, CompatibilityLevel] = {}
        #: by database, then by name; child tables may be millions, so no other index has them
        self.children: dict[str, dict[str, Child]] = {}
        self._by_type: dict[type[Entry], dict[Any, Any]] = {
            Database: self.databases,
            Table: self.tables,
            StreamEntry: self.streams,
            External: self.externals,
            View: self.views,
            User: self.users,
            Role: self.roles,
            UserFunction: self.functions,
        }

    def slot(self, entry: Entry) -> tuple[dict[Any, Any], object]:
        """Return the dict that holds *entry*, and its key there."""
        if isinstance(entry, Child):
            children = self.children.setdefault(entry.database.lower(), {})
            return children, _lean_lower(entry.name)
        if isinstance(entry, Snode):
            return self.snodes, entry.dnode
        if isinstance(entry, CompatibilityLevel):
            return self.levels, entry.table_id
        index = self._by_type[type(entry)]
        if isinstance(entry, Table | StreamEntry | External | View):
            return index, (entry.database.lower(), entry.name.lower())
        return index, entry.name.lower()


def _lean_lower(name: str) -> str:
    """Return *name* in lower case; the string itself when it is that already, to save memory."""
    lower = name.lower()
    return name if lower == name else sys.intern(lower)
