"""Compatibility levels of the schema registry: set and cleared."""

from __future__ import annotations

from penstock.catalog.changes.change import Change, NewId
from penstock.catalog.model import CompatibilityLevel
from penstock.catalog.view import Catalog


def set_compatibility(catalog: Catalog, new_id: NewId, table_id: int, level: str) -> Change:
    """Give the subject of a table, or EVERY_TABLE, a level."""
    known = catalog.compatibility(table_id)
    number = known.id if known is not None else new_id()
    return Change((CompatibilityLevel(number, table_id, level),))


def clear_compatibility(catalog: Catalog, table_id: int) -> Change:
    """Take the level away again; does nothing where there is none."""
    known = catalog.compatibility(table_id)
    return Change(removes=(known,) if known is not None else ())
