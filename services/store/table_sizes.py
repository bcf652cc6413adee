"""How many rows and bytes the store keeps of each table, told through Redis.

Adds up what the footers of segments say and what is in tails: reads no rows. A row counts once for
each version of it, since segments keep all versions. Runs on the flushing thread, so no flush or
merge comes between a position and the files below it.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass

import redis

from penstock import names
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.runtime.log import get
from penstock.storage import segments
from services.store.partitions import Partitions
from services.store.tail import PartitionView

log = get(__name__)
#: figures that stay the same are told again after so many seconds: Redis may have lost them
_AGAIN_SECONDS = 60.0
#: and are forgotten after so many, when the store tells nothing more
_KEPT_SECONDS = 180
_Views = dict[tuple[str, int], PartitionView]
#: the catalog's revision; of each partition, the next offset to be read and the next to be in files
_State = tuple[int, dict[tuple[str, int], tuple[int, int]]]


@dataclass(frozen=True)
class TableSize:
    """Versions of rows in files, the bytes of these files, and versions that are in none yet."""

    rows: int = 0
    bytes: int = 0
    files: int = 0
    tail_rows: int = 0

    def __add__(self, other: TableSize) -> TableSize:
        return TableSize(
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.files + other.files,
            self.tail_rows + other.tail_rows,
        )


class TableSizes:
    """Used by the flushing thread."""

    def __init__(self, catalog: CatalogReader, partitions: Partitions, client: redis.Redis) -> None:
        self._catalog = catalog
        self._partitions = partitions
        self._redis = client
        #: directory → when it changed, the position's next offset, and its size then
        self._listed: dict[str, tuple[int, int, TableSize]] = {}
        self._told: dict[str, str] = {}
        self._told_at = float("-inf")
        self._seen: _State | None = None

    def forget(self) -> None:
        """Have the next `tell` look at files though nothing is read: they are changed now."""
        self._seen = None

    def tell(self) -> None:
        """Bring Redis up to date. While it does not answer, the next call tries again."""
        now = time.monotonic()
        again = now - self._told_at >= _AGAIN_SECONDS
        seen = self._state()
        if seen == self._seen and not again:
            return  # at rest a thousand databases would be looked through for nothing
        if again:
            self._listed.clear()
        found = {str(i): json.dumps(asdict(size)) for i, size in self.measure().items()}
        if found != self._told or again:
            try:
                self._write(found)
            except redis.RedisError as error:
                log.warning("sizes of tables wait for redis", error=str(error))
                return
            self._told = found
            self._told_at = now
        self._seen = seen

    def _state(self) -> _State:
        tails = self._partitions.tails()
        places = {key: (tail.next, tail.position.next) for key, tail in tails.items()}
        return self._catalog.catalog.revision, places

    def measure(self) -> dict[int, TableSize]:
        """Return the size of each table by its id; those are left out of which a partition is not
        read yet.
        """
        views = {key: tail.view() for key, tail in self._partitions.tails().items()}
        return {
            table.id: self._size(table, views)
            for table in self._catalog.catalog.tables()
            if table.kind != "virtual"
            and all((table.topic, p) in views for p in range(table.partitions))
        }

    def _size(self, table: Table, views: _Views) -> TableSize:
        total = TableSize()
        for partition in range(table.partitions):
            view = views[table.topic, partition]
            where = segments.directory(self._partitions.root, table.id, partition, table.topic)
            waiting = sum(frame.height for frame in view.frames.get(table.id, ()))
            total += self._in_files(where, view.position.next) + TableSize(tail_rows=waiting)
        return total

    def _in_files(self, directory: str, below: int) -> TableSize:
        try:
            changed = os.stat(directory).st_mtime_ns
        except FileNotFoundError:
            return TableSize()
        held = self._listed.get(directory)
        if held is not None and held[:2] == (changed, below):
            return held[2]
        found = segments.segments(directory, below)
        size = TableSize(
            sum(segment.rows for segment in found),
            sum(segment.path.stat().st_size for segment in found),
            len(found),
        )
        self._listed[directory] = (changed, below, size)
        return size

    def _write(self, found: dict[str, str]) -> None:
        key = names.table_sizes()
        with self._redis.pipeline() as pipeline:
            pipeline.delete(key)
            if found:
                pipeline.hset(key, mapping=dict(found.items()))
                pipeline.expire(key, _KEPT_SECONDS)
            pipeline.execute()
