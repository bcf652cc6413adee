"""Entries that were built from their records before, for a process that reads the log again.

To build an entry is most of what a record costs its reader. Whether a record counts is not decided
here: `LogApplier` asks for its entry only.
"""

from __future__ import annotations

from penstock.catalog import entries
from penstock.catalog.model import Entry
from penstock.records import CatalogRecord


class BuiltEntries:
    """The newest entry of each id, with what its record said."""

    def __init__(self) -> None:
        self._built: dict[int, tuple[tuple[str, str, str], Entry]] = {}

    def __len__(self) -> int:
        return len(self._built)

    def clear(self) -> None:
        self._built.clear()

    def build(self, record: CatalogRecord) -> None:
        """Keep the entry in *record*. Raises SchemaError."""
        entry = self.entry_of(record)
        if entry is not None:
            self._built[record.id] = _said(record), entry

    def entry_of(self, record: CatalogRecord) -> Entry | None:
        """Return what `entries.from_record` does, built anew unless a record said the same to the
        letter. Raises SchemaError.
        """
        said, entry = self._built.get(record.id, (None, None))
        return entry if said == _said(record) else entries.from_record(record)


def _said(record: CatalogRecord) -> tuple[str, str, str]:
    return record.kind, record.name, record.body
