"""All partitions of all ingestion topics as the store holds them: their tails, and the layouts of
the tables in them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from penstock.catalog.model import Table
from penstock.storage.segments import Position
from services.store.flush import Newest, SegmentLayout
from services.store.tail import PartitionView, Tail


def layout_of(table: Table) -> SegmentLayout:
    keys = ("tbname", table.time_column) + ((table.key_column,) if table.key_column else ())
    names = table.stored_names
    times = tuple(
        n
        for c in (*table.columns, *table.tags)
        if c.type.kind == "TIMESTAMP"
        for n in names[c.name]
    )
    return SegmentLayout(table.id, table.time_column, keys, table.precision, times, names)


class Partitions:
    """Thread-safe map (topic, partition) → Tail; a tail begins where its segments end."""

    def __init__(self, root: str, owner_of: Callable[[str], int]) -> None:
        """*owner_of*: `Catalog.topic_owner`."""
        self.root = root
        self._owner_of = owner_of
        self._lock = threading.Lock()
        self._tails: dict[tuple[str, int], Tail] = {}
        #: per topic-partition: newest time of each child table, by table
        self.newest: dict[tuple[str, int], dict[int, Newest]] = {}
        self._waiting = 0
        #: set while somebody waits for a record
        self.awaited = threading.Event()

    def open(self, topic: str, partition: int) -> Tail:
        """The tail of a partition, made from its committed position when it is new here."""
        with self._lock:
            key = (topic, partition)
            if key not in self._tails:
                self._tails[key] = Tail(
                    Position.load(self.root, topic, partition, self._owner_of(topic))
                )
                self.newest[key] = {}
            return self._tails[key]

    def close(self, topic: str, partition: int) -> None:
        """The topic was dropped."""
        with self._lock:
            self._tails.pop((topic, partition), None)
            self.newest.pop((topic, partition), None)

    def wait_for(self, topic: str, partition: int, offset: int, timeout: float) -> bool:
        """See `Tail.wait_for`; whoever reads the log does not rest meanwhile."""
        self._wait(1)
        try:
            return self.open(topic, partition).wait_for(offset, timeout)
        finally:
            self._wait(-1)

    def _wait(self, more: int) -> None:
        with self._lock:
            self._waiting += more
            if self._waiting:
                self.awaited.set()
            else:
                self.awaited.clear()

    def tails(self) -> dict[tuple[str, int], Tail]:
        with self._lock:
            return dict(self._tails)

    def views(self, topic: str) -> dict[int, PartitionView]:
        """One moment of each partition of *topic*."""
        return {
            partition: tail.view() for (t, partition), tail in self.tails().items() if t == topic
        }
