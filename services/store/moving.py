"""The store's part in giving a database more partitions: what it does when, as the catalog says how
far the move has come.

Called now and then from the thread that reads the log; the work itself is done where flushes are
done, so neither meets the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import redis

from penstock.catalog import generations
from penstock.catalog.model import Database
from penstock.catalog.reader import CatalogReader
from penstock.repartition import progress
from penstock.runtime.log import get
from services.store import splitting
from services.store.partitions import Partitions

log = get(__name__)


class Moving:
    """One per store."""

    def __init__(
        self,
        catalog: CatalogReader,
        partitions: Partitions,
        client: redis.Redis,
        worker: ThreadPoolExecutor,
    ) -> None:
        self._catalog = catalog
        self._partitions = partitions
        self._redis = client
        self._worker = worker
        self._stages: dict[tuple[int, str], Future[None]] = {}

    def step(self, flush: Callable[[str, int], None]) -> None:
        """Do what is to be done next. *flush*: have a partition's tail cut into segments."""
        for database in self._catalog.catalog.databases():
            if database.move is None:
                continue
            stage = "moved" if database.move.ended else "split"
            key = (database.id, f"{database.next_topic} {stage}")
            known = self._stages.get(key)
            if known is not None and not known.done():
                continue
            if known is not None and known.exception() is None:
                self._say(database, stage)
                continue
            if known is not None:
                log.error(
                    "segments could not be split, trying again",
                    database=database.name,
                    error=str(known.exception()),
                )
            late = [
                p
                for p, end in enumerate(database.move.ended)
                if self._partitions.open(database.topic, p).position.next <= end
            ]
            if late:
                for partition in late:
                    flush(database.topic, partition)
                continue
            self._stages[key] = self._worker.submit(self._split, database)

    def _split(self, database: Database) -> None:
        assert database.move is not None
        begun = time.monotonic()
        tables = self._catalog.catalog.tables_of_topic(database.topic)
        positions = {
            p: self._partitions.open(database.topic, p).position for p in range(database.partitions)
        }
        rows = splitting.split(self._partitions.root, database, tables, positions)
        if database.move.ended:
            splitting.commit(
                self._partitions.root, database, generations.begins(database), positions
            )
        log.info(
            "segments were split",
            database=database.name,
            topic=database.next_topic,
            rows=rows,
            seconds=time.monotonic() - begun,
        )

    def _say(self, database: Database, stage: str) -> None:
        try:
            progress.say(self._redis, progress.key(database), "store", stage)
        except redis.RedisError as down:
            log.warning(
                "cannot say that segments were split", database=database.name, reason=str(down)
            )
