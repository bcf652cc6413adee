"""A gateway and a store in this process, over one log in memory: what a mesh does with a statement,
without its servers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.answers import Affected
from gateway.select import Question, aware
from services.store.controls import ControlHandler
from services.store.latest import LatestRows
from services.store.query import Queries, QueryLimits
from services.store.record_decoder import RecordDecoder
from services.store.redis_reports import RedisReports
from services.store.tail_writer import TailWriter
from tests.sql.script import Context
from tests.unit.gateway.kit import ROOT, MemoryGateway
from tests.unit.gateway.statements.kit import Statements
from tests.unit.services.kit import MemoryReader
from tests.unit.services.store.kit import MemoryStore

_LIMITS = QueryLimits("256MB", 1, 100_000, 20.0, "0B")


class _NoDeadLetters:
    """Every record of the log can be used here."""

    def bury(self, batch: object, index: int, code: str, reason: str) -> None:
        raise AssertionError(f"the store does not take a record: {code} {reason}")


class FollowingStore(MemoryStore):
    """A store that reads a gateway's log up to its end before it answers.

    What it reads the first time, the third and so on goes into segments, the rest stays in tails:
    a query meets both.
    """

    def __init__(self, directory: Path, gateway: MemoryGateway) -> None:
        super().__init__(
            directory,
            catalog=gateway.catalog,
            log=gateway.log,
            memory_redis=gateway.memory_redis,
        )
        self._reads = 0
        dead: Any = _NoDeadLetters()
        latest = LatestRows(self.redis)
        self._reader = MemoryReader(self.log, {})
        self._writer = TailWriter(
            self.reader,
            self.partitions,
            RecordDecoder(self.reader, dead),
            ControlHandler(self.reader, self.partitions, self.redis, latest, dead),
            latest,
            RedisReports(),
            lambda rows, at: None,
        )
        self.queries = Queries(self.partitions, self.resolver, _LIMITS)

    async def select_for(self, user: str, question: Question) -> pa.Table:
        """Stands where `StoreClient.select_for` does."""
        self.follow()
        answer = self.queries.run(
            question.sql,
            question.database or "",
            question.timezone,
            parameters=question.parameters,
        )
        return aware(answer)

    def follow(self) -> None:
        topics = {table.topic for table in self.catalog.tables()}
        places = [place for place in self.log.records if place[0] in topics]
        self._reader.add({p: 0 for p in places if p not in self._reader.offsets})
        batches = self._reader.read(100_000, 0.0)
        for batch in batches:
            self._writer.take(batch)
        self._reads += bool(batches)
        if batches and self._reads % 2:
            for topic, partition in places:
                if self.partitions.open(topic, partition).rows:
                    self.flush(topic, partition)


class MemoryMesh:
    """Runs statements in an event loop of its own."""

    name = "memory"

    def __init__(self, directory: Path) -> None:
        self._runner = asyncio.Runner()
        loop = self._runner.get_loop()
        gateway = MemoryGateway(directory, loop=loop)
        self._statements = Statements(gateway, FollowingStore(directory, gateway), loop)

    def run(self, sql: str, context: Context) -> pa.Table:
        """See `tests.sql.play.Backend`."""
        database = context.database or None
        given = {"database": database, "user": ROOT, "timezone": context.timezone}
        answer = self._runner.run(self._statements.run(sql, **given))
        if isinstance(answer, Affected):
            return pa.table({"affected_rows": [answer.rows]})
        return answer

    def close(self) -> None:
        self._statements.close()
        self._runner.close()
