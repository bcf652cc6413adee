"""ALTER DATABASE … PARTITIONS n: from the topic of one generation to the next, step by step, each
of which can be done again.

How far a move has come is in the catalog, what the other services have done in Redis and in the
logs; so whoever leads the catalog after a death goes on in the middle. The order keeps everything:
writers stop, what is in the log goes through all streams, the stream jobs and the store keep what
they have, and only then does the catalog name the new topic. `penstock.catalog.generations` refuses
what cannot be moved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import redis

from gateway.children import text
from gateway.ddl.definer import Definer
from gateway.drain import Drain
from penstock import names
from penstock.bus import Admin
from penstock.catalog import generations
from penstock.catalog.model import Database
from penstock.coordination.redis_link import ask
from penstock.errors import CatalogError
from penstock.records import ControlRecord
from penstock.repartition import progress
from penstock.repartition.offset_padding import pad
from penstock.runtime import log

_log = log.get("gateway.mover")


class RepartitionCoordinator:
    """Works in the DDL thread."""

    def __init__(
        self, definer: Definer, drain: Drain, admin: Admin, client: redis.Redis, bootstrap: str
    ) -> None:
        self._definer = definer
        self._drain = drain
        self._admin = admin
        self._redis = client
        self._bootstrap = bootstrap

    def move(self, name: str, partitions: int) -> None:
        """Give a database *partitions* partitions. Raises PenstockError: then it has not begun, or
        whoever leads goes on with it.
        """
        database = self._definer.catalog.database(name)
        if database is not None and database.move is None:
            self._check_filling(database)
            # one that an earlier database of this name has left has records in it
            self._admin.delete_topics({database.next_topic} & self._admin.topics().keys())
        self._definer.decide(lambda c, _: generations.begin(c, name, partitions))
        self.finish()

    @property
    def under_way(self) -> bool:
        """Tell whether a database waits for `finish`."""
        return any(d.move is not None for d in self._definer.catalog.databases())

    def finish(self) -> None:
        """Bring to an end what is under way."""
        for database in self._definer.catalog.databases():
            if database.move is not None:
                self._finish(database.name)

    @property
    def has_former_topics(self) -> bool:
        """Tell whether a database has topics of earlier generations for `clear`."""
        return any(d.former_topics for d in self._definer.catalog.databases())

    def clear(self) -> None:
        """Delete topics of earlier generations of which the store has removed the last record."""
        for database in self._definer.catalog.databases():
            topics = database.former_topics
            places = [(t, p) for t, n in topics.items() for p in range(n)]
            starts = self._admin.start_offsets(places)
            ends = self._admin.end_offsets(places)
            left = {t for t, p in places if starts[t, p] < ends[t, p]}
            if empty := list(itertools.takewhile(lambda t, left=left: t not in left, topics)):  # type: ignore[misc]
                self._definer.decide(lambda c, _, d=database, e=empty: generations.remove(d, e))  # type: ignore[misc]
                self._definer.topics.delete(empty)
                _log.info(
                    "topics of earlier generations were deleted",
                    database=database.name,
                    topics=empty,
                )

    def _finish(self, name: str) -> None:
        def now() -> Database:
            found = self._definer.catalog.database(name)
            assert found is not None and found.move is not None
            return found

        database = now()
        assert database.move is not None
        if not database.move.halted:
            # most of what the store has to split is split before anybody has to wait for it
            self._await(
                database,
                lambda done: done.get("store") in ("split", "moved"),
                "the store has not split its segments yet",
            )
            self._make_topic(database)
            self._definer.decide(lambda c, _: generations.halt(now()))
        database = now()
        assert database.move is not None
        if not database.move.ended:
            self._await(
                database,
                lambda done: self._writers() <= done.keys(),
                "not every writer has stopped yet",
            )
            ended = self._end(database)
            self._definer.decide(lambda c, _: generations.end(now(), ended))
        database = now()
        self._await(
            database,
            lambda done: done.get("store") == "moved",
            "the store has not moved its segments yet",
        )
        self._make_topic(database)
        self._open(database)
        self._definer.decide(lambda c, _: generations.turn(c, now()))
        _log.info(
            "a database has moved",
            database=name,
            topic=database.next_topic,
            begins=generations.begins(database),
        )

    # ---------------------------------------------------------------- steps

    def _check_filling(self, database: Database) -> None:
        for stream in self._definer.catalog.streams(database.name):
            fields = {
                text(f)
                for f in ask(lambda i=stream.id: self._redis.hkeys(names.stream_status(i)))  # type: ignore[misc]
            }
            if any(f.startswith(names.FILLING) for f in fields):
                raise CatalogError(
                    f"stream {stream.database}.{stream.name} is filling its history",
                    code="E_CANNOT_MOVE",
                    hint="wait until SHOW STREAMS no longer says so",
                )

    def _writers(self) -> set[str]:
        """Processes of ours that write rows to topics of databases."""
        prefix = names.gateway_heartbeat("")
        gateways = {text(k).removeprefix(prefix) for k in self._redis.scan_iter(f"{prefix}*")}
        nodes = {n.id for n in self._definer.watch.nodes() if "federation" in n.services}
        return {f"writer:{g}" for g in gateways} | {f"writer:federation:{n}" for n in nodes}

    def _end(self, database: Database) -> list[int]:
        """Let all that was written go through, and end every partition; the offsets of the records
        that say so.
        """
        topic = database.topic
        partitions = database.partitions
        key = progress.key(database)
        # from here on rows count only if a stream made them
        self._definer.send(topic, range(partitions), ControlRecord("close", id=key))
        depth = len(
            [s for s in self._definer.catalog.streams(database.name) if s.plan.target.table_id]
        )
        self._drain.through({topic: partitions}, min(depth, 32))
        self._definer.send(topic, range(partitions), ControlRecord("end", id=key))
        readers = ("scan", "store") if self._definer.watch.wait_for_jobs else ("store",)
        wanted = {f"{reader}:{p}" for reader in readers for p in range(partitions)}
        done = self._await(
            database, lambda done: wanted <= done.keys(), "the old topic is not worked off yet"
        )
        return [int(done[f"store:{p}"]) for p in range(partitions)]

    def _make_topic(self, database: Database) -> None:
        assert database.move is not None
        topic = database.next_topic
        partitions = database.move.partitions
        self._definer.topics.make({topic: partitions}, database)
        if database.move.ended:
            ends = generations.begins(database)
        else:
            known = self._admin.end_offsets(
                [(database.topic, p) for p in range(database.partitions)]
            )
            ends = {q: known[database.topic, q % database.partitions] for q in range(partitions)}
        pad(self._bootstrap, self._admin, topic, ends)

    def _open(self, database: Database) -> None:
        """Have the processors of new partitions take over what those of the old ones had, by the
        first record of each; then the padding goes.
        """
        begins = generations.begins(database)
        topic = database.next_topic
        ends = self._admin.end_offsets([(topic, q) for q in begins])
        fresh = [q for q, offset in begins.items() if ends[topic, q] == offset]
        self._definer.send(topic, fresh, ControlRecord("begin", body=topic))
        self._admin.delete_records({(topic, q): offset for q, offset in begins.items()})

    def _await(
        self, database: Database, ready: Callable[[dict[str, str]], bool], message: str
    ) -> dict[str, str]:
        """Wait until others have done their part; what they say."""
        key = progress.key(database)
        done: dict[str, str] = {}

        def look() -> bool:
            done.clear()
            done.update({text(k): text(v) for k, v in self._redis.hgetall(key).items()})
            return ready(done)

        self._definer.watch.until(
            look,
            message,
            "it goes on by itself as soon as they have; `penstock status` shows who lags",
        )
        return done
