"""All partitions of all ingestion topics as the store holds them: their tails, and the layouts of the tables in them."""

from __future__ import annotations

import threading

from penstock.catalog.model import Table
from penstock.segments import Position
from services.store.flush import Layout, Newest
from services.store.tail import Tail, View


def layout_of(table: Table) -> Layout:
    keys = ("tbname", table.time_column) + ((table.key_column,) if table.key_column else ())
    times = tuple(c.name for c in (*table.columns, *table.tags) if c.type.kind == "TIMESTAMP")
    return Layout(table.id, table.time_column, keys, table.precision, times)


class Shelf:
    """Thread-safe map (topic, partition) → Tail; a tail begins where its segments end."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._tails: dict[tuple[str, int], Tail] = {}
        #: per topic-partition: newest time of each child table, by table
        self.newest: dict[tuple[str, int], dict[int, Newest]] = {}

    def open(self, topic: str, partition: int) -> Tail:
        """The tail of a partition, made from its committed position when it is new here."""
        with self._lock:
            key = (topic, partition)
            if key not in self._tails:
                self._tails[key] = Tail(Position.load(self.root, topic, partition))
                self.newest[key] = {}
            return self._tails[key]

    def close(self, topic: str) -> None:
        """The topic was dropped."""
        with self._lock:
            for key in [k for k in self._tails if k[0] == topic]:
                del self._tails[key], self.newest[key]

    def tails(self) -> dict[tuple[str, int], Tail]:
        with self._lock:
            return dict(self._tails)

    def views(self, topic: str) -> dict[int, View]:
        """One moment of each partition of *topic*."""
        return {partition: tail.view() for (t, partition), tail in self.tails().items() if t == topic}
