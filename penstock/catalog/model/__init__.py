"""Entries of the catalog: frozen dataclasses of databases, tables with all their versions, child
tables, streams, users and roles.

Names keep the spelling they were created with; lookups compare case-insensitively
(`penstock.catalog.view`). Nothing here knows Kafka or Avro: entries become records in
`penstock.catalog.entries`.
"""

from penstock.catalog.model.databases import Database, Move, Snode
from penstock.catalog.model.entry import Entry
from penstock.catalog.model.federation import External, View
from penstock.catalog.model.principals import Grant, Principal, Right, Role, User
from penstock.catalog.model.registry import EVERY_TABLE, CompatibilityLevel
from penstock.catalog.model.streams import StreamEntry, StreamStatus
from penstock.catalog.model.tables import (
    FOREIGN,
    ROW_ID,
    Child,
    KeyRule,
    Purge,
    Replicated,
    Table,
    TableKind,
    TableVersion,
    VirtualColumn,
)

__all__ = [
    "Child",
    "CompatibilityLevel",
    "Database",
    "EVERY_TABLE",
    "Entry",
    "External",
    "FOREIGN",
    "Grant",
    "KeyRule",
    "Move",
    "Principal",
    "Purge",
    "ROW_ID",
    "Replicated",
    "Right",
    "Role",
    "Snode",
    "StreamEntry",
    "StreamStatus",
    "Table",
    "TableKind",
    "TableVersion",
    "User",
    "View",
    "VirtualColumn",
]
