"""Images of tables: what a query reads of each, as of one moment."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.model import Table
from services.store.relation import TablePart, parts
from services.store.tail import PartitionView


class Images:
    """Images of the tables of one query, each taken once: the query reads one moment of a table
    wherever it names it.

    What is in no image cannot be opened, so they are all taken before the engine is confined.
    """

    def __init__(self, root: str, views: Callable[[str], dict[int, PartitionView]]) -> None:
        self._root = root
        self._views = views
        self._found: dict[int, tuple[dict[int, PartitionView], list[TablePart]]] = {}

    def of(self, table: Table) -> tuple[dict[int, PartitionView], list[TablePart]]:
        """The partitions of a table's topic as they were, and the table's parts in them."""
        found = self._found.get(table.id)
        if found is None:
            views = self._views(table.topic)
            found = self._found[table.id] = views, parts(self._root, table.id, views, table.topic)
        return found

    def files(self) -> list[str]:
        """Paths of all segments of the images so far."""
        return [
            str(segment.path)
            for _, image in self._found.values()
            for part in image
            for segment in part.found
        ]
