"""Topics of tables and databases: made before the catalog names them, deleted after.

A topic that something dropped has left stays, so that offsets in it stay what they were, until its
name is wanted with another number of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import redis

from gateway.ddl.mesh_watch import MeshWatch
from penstock import names
from penstock.bus import Admin
from penstock.catalog.changes import Change
from penstock.catalog.model import Database, Table
from penstock.catalog.view import Catalog
from penstock.coordination.redis_link import ask
from penstock.errors import BusError, CatalogError
from penstock.runtime import log

_log = log.get("gateway.ddl")
#: as many copies as Kafka makes by itself
_KAFKAS_DEFAULT = -1


class Topics:
    """Runs in the DDL thread, except `log_end`."""

    def __init__(
        self, catalog: Callable[[], Catalog], admin: Admin, client: redis.Redis, watch: MeshWatch
    ) -> None:
        self._catalog = catalog
        self._admin = admin
        self._redis = client
        self._watch = watch

    def prepare(self, change: Change) -> None:
        """Make the topics that *change* needs."""
        tables = [e for e in change.puts if isinstance(e, Table)]
        databases = [e for e in change.puts if isinstance(e, Database)]
        missing = self._missing([*tables, *databases])
        for replica, topics in self._by_replica(databases, missing).items():
            self._clear_way(topics)
            self._admin.ensure_topics(topics, replication=replica)
        for table in tables:
            # also when it is not wanted: the topic may be one that a dropped table has left
            if table.topic in missing and table.replicated is not None:
                self._admin.set_flush(table.topic, 1 if table.replicated.flush_mode else None)

    def _missing(self, entries: Iterable[Table | Database]) -> dict[str, int]:
        """Return topics of *entries* that the catalog does not know, with their partitions."""
        known = self._catalog().topics()
        return {e.topic: e.partitions for e in entries if e.topic not in known}

    def make(self, topics: dict[str, int], database: Database) -> None:
        """Make topics of a database, unless they are there."""
        self._admin.ensure_topics(topics, replication=_replication(database))

    def _by_replica(
        self, databases: Iterable[Database], topics: dict[str, int]
    ) -> dict[int, dict[str, int]]:
        """Group topics to make by the number of copies their database asks for; *databases* are
        not in the catalog yet.
        """
        new = {d.name.lower(): d for d in databases}
        groups: dict[int, dict[str, int]] = {}
        for topic, partitions in topics.items():
            name = names.database_of(topic)
            replica = _replication(new.get(name) or self._catalog().database(name))
            groups.setdefault(replica, {})[topic] = partitions
        most = max(groups, default=_KAFKAS_DEFAULT)
        if most > 1:
            self._check_brokers(most)
        return groups

    def _check_brokers(self, replica: int) -> None:
        brokers = self._admin.brokers()
        if brokers < replica:
            raise CatalogError(
                f"Kafka has {brokers} broker{'s' if brokers > 1 else ''}, REPLICA {replica}"
                f" needs {replica}",
                code="E_BAD_OPTION",
                hint="`penstock up` runs one broker; PENSTOCK_KAFKA_BOOTSTRAP can name a cluster",
            )

    def _clear_way(self, topics: dict[str, int]) -> None:
        """Delete topics that something dropped has left with another number of partitions, once
        the stream jobs and the store have left them. One that we have not dropped is not ours to
        delete.
        """
        there = self._admin.topics()
        other = [t for t, partitions in topics.items() if there.get(t, partitions) != partitions]
        if not other:
            return
        self.delete(
            ask(lambda: [t for t in other if self._redis.sismember(names.topics_dropped(), t)])
        )

    def delete(self, topics: list[str]) -> None:
        """Delete topics that the catalog no longer knows, once the stream jobs and the store have
        left them.
        """
        if not topics:
            return
        store_runs = self._watch.runs("store")
        beats = [names.query_heartbeat(t) for t in topics]
        revision = self._catalog().revision

        def are_left() -> bool:
            if self._watch.wait_for_jobs and self._redis.exists(*beats):
                return False
            return not store_runs or int(self._redis.get(names.store_followed()) or 0) >= revision

        self._watch.until(
            are_left,
            f"topic {topics[0]} of what was dropped is still being read",
            "send it again; `penstock status` shows who lags",
        )
        self._admin.delete_topics(topics)

    def remember_dropped(self, topics: Iterable[str]) -> None:
        """Note topics that what was dropped has left."""
        catalog = self._catalog()
        gone = sorted(set(topics) - catalog.topics().keys() - catalog.former_topics().keys())
        try:
            if gone:
                self._redis.sadd(names.topics_dropped(), *gone)
        except redis.RedisError as down:
            _log.warning(
                "topics cannot be made again with other partitions", topics=gone, reason=str(down)
            )

    def log_ends(self, topic: str, partitions: int) -> dict[tuple[str, int], int]:
        """Return where a topic ends."""
        return self._admin.end_offsets([(topic, p) for p in range(partitions)])

    def log_end(self, topic: str) -> int:
        """Return where the log of a stream table ends."""
        return self._admin.end_offsets([(topic, 0)])[topic, 0]

    def empty_log(self, table: Table) -> None:
        """Delete the records of a stream table that was dropped. The topic stays, so that offsets
        in it stay what they were.
        """
        if table.replicated is None:
            return
        try:
            self._admin.delete_records(self._admin.end_offsets([(table.topic, 0)]))
        except BusError as error:
            _log.warning(
                "records of a dropped stream table stay in Kafka",
                topic=table.topic,
                reason=str(error),
            )


def _replication(database: Database | None) -> int:
    if database is None or database.replica <= 1:
        return _KAFKAS_DEFAULT
    return database.replica
