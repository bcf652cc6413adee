"""The partitions that the store reads: those of all topics that the catalog has, and of earlier
generations of them.
"""

from __future__ import annotations

from functools import partial

import redis

from penstock import names
from penstock.bus import Admin
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.runtime.log import get
from services.store import flush
from services.store.partitions import Partitions
from services.store.quiet_reader import QuietReader
from services.store.redis_reports import RedisReports

log = get(__name__)


class TopicFollower:
    """Used by the thread that reads the log."""

    def __init__(
        self,
        catalog: CatalogReader,
        partitions: Partitions,
        admin: Admin,
        client: redis.Redis,
        reports: RedisReports,
    ) -> None:
        self._catalog = catalog
        self._partitions = partitions
        self._admin = admin
        self._redis = client
        self._reports = reports
        #: partitions being read, and whose topic each is
        self._reading: dict[tuple[str, int], int] = {}
        #: catalog revision whose topics are all being read
        self._followed = -1
        #: catalog revision whose dropped topics are read no more
        self._left = -1

    def step(self, reader: QuietReader) -> None:
        """Begin with partitions that are new in the catalog, leave those that are gone."""
        catalog = self._catalog.catalog
        revision = catalog.revision
        if revision == self._followed:
            return
        wanted = _partitions_of(catalog)
        there = self._admin.topics()
        if all(p < there.get(t, 0) for t, p in wanted):
            self._followed = revision
        wanted = {(t, p): owner for (t, p), owner in wanted.items() if p < there.get(t, 0)}
        self._leave(reader, {k for k, o in self._reading.items() if wanted.get(k) != o})
        if revision != self._left:
            self._left = revision
            self._reports.owe(partial(self._say_left, revision))
            self._reports.make()
        for topic, partition in wanted.keys() - self._reading.keys():
            self._begin(reader, topic, partition)
            self._reading[topic, partition] = wanted[topic, partition]

    def _leave(self, reader: QuietReader, gone: set[tuple[str, int]]) -> None:
        if not gone:
            return
        reader.remove(gone)
        for key in gone:
            del self._reading[key]
            self._partitions.close(*key)

    def _begin(self, reader: QuietReader, topic: str, partition: int) -> None:
        tail = self._partitions.open(topic, partition)
        for table in self._catalog.catalog.tables_of_topic(topic):
            flush.remove_leftovers(self._partitions.root, table.id, partition, tail.next, topic)
        start = max(tail.next, self._admin.start_offsets([(topic, partition)])[topic, partition])
        if start > tail.next:
            log.error(
                "records were deleted before they were stored",
                topic=topic,
                partition=partition,
                first_missing=tail.next,
                next=start,
            )
        reader.add({(topic, partition): start})

    def _say_left(self, revision: int) -> None:
        self._redis.set(names.store_followed(), revision)


def _partitions_of(catalog: Catalog) -> dict[tuple[str, int], int]:
    """Return the partitions of all topics of the catalog, and whose topic each is."""
    return {
        (topic, partition): catalog.topic_owner(topic)
        for topic, count in (catalog.former_topics() | catalog.topics()).items()
        for partition in range(count)
    }
