"""A gateway over Kafka and Redis in memory: its catalog changes at once, and what it sends is
there at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gateway.children import Children
from gateway.ddl.assembly import DdlParts
from gateway.settings import GatewaySettings
from penstock.auth.access import Access
from penstock.catalog import entries
from penstock.catalog.changes import Change
from penstock.catalog.model import Entry, Grant, Right, User
from penstock.catalog.view import Catalog
from penstock.coordination.lease import Holder
from penstock.errors import LeaseLost, SchemaError
from penstock.records import ControlRecord, decode
from penstock.runtime.clock import ManualClock
from penstock.sql import parse
from penstock.sql import statements as st
from tests.unit.services.kit import MemoryLog
from tests.unit.services.memory_redis import MemoryRedis

NOW = 1_800_000_000_000_000_000
ROOT = "root"


class MemoryWriter:
    """Stands where `CatalogWriter` does; `holder` leads instead when it is set."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.holder: Holder | None = None
        self.leads = True
        #: commits that fail because another one leads by now
        self.losses = 0
        self.changes: list[Change] = []
        self._ids = itertools.count(catalog.next_id)

    @property
    def leading(self) -> bool:
        return self.leads and self.holder is None

    def lead(self) -> bool:
        return self.leading

    def leader(self) -> Holder | None:
        return self.holder

    def new_id(self) -> int:
        return max(next(self._ids), 0)

    def commit(self, puts: Sequence[Entry], removes: Sequence[Entry] = ()) -> int:
        if self.losses:
            self.losses -= 1
            raise LeaseLost("catalog", 1)
        self.changes.append(Change(tuple(puts), tuple(removes)))
        # in the order of the log: what is put and removed at once goes
        for entry in puts:
            read = entries.from_record(entries.read(entries.to_value(entry, 1)))
            assert read is not None
            self.catalog.put(read)
        for entry in removes:
            self.catalog.remove(entry.id)
        self.catalog.revision += 1
        return self.catalog.revision


class MemoryGateway:
    """The parts that change the catalog, put together as in a process."""

    def __init__(
        self,
        directory: Path,
        *entries: Entry,
        loop: asyncio.AbstractEventLoop | None = None,
        **settings: Any,
    ) -> None:
        self.directory = directory
        self.clock = ManualClock(NOW)
        self.log: Any = MemoryLog(self.clock)
        self.log.cluster = lambda: None
        self.memory_redis = MemoryRedis(self.clock)
        self.redis: Any = self.memory_redis
        self.catalog = Catalog(entries)
        self.writer = MemoryWriter(self.catalog)
        self.access = Access(lambda: self.catalog, ROOT)
        given: dict[str, Any] = {
            "live_timeout": 0.01,
            "wait_for_jobs": False,
            "partitions": 2,
            "password": "secret",
        } | settings
        self.settings = GatewaySettings(data_dir=directory, **given)
        self.backends: Any = SimpleNamespace(
            name="g1",
            bootstrap="kafka:9092",
            redis=self.redis,
            reader=SimpleNamespace(catalog=self.catalog, listen=lambda listener: None),
            admin=self.log,
            rows=self.log,
            controls=self.log,
            writer=self.writer,
            catalog=lambda: self.catalog,
            client_id=lambda purpose="": f"gateway-{purpose}",
        )
        some_loop: Any = loop
        self.children = Children(self.redis)
        #: what reads that follow have to wait for
        self.own_writes: dict[tuple[str, int], int] = {}
        self.parts = DdlParts(
            self.settings,
            self.backends,
            self.access,
            self.children,
            self.own_writes.update,
            some_loop,
            self.clock,
        )
        self.definer = self.parts.definer

    # ---------------------------------------------------------------- statements

    def define(self, text: str, database: str | None = "d", timezone: str = "UTC") -> None:
        """Apply the statements of *text* in this thread, and wait for what they wait for."""
        for statement in parse(text):
            if isinstance(statement, st.UseDatabase):
                database = statement.name
                continue
            after = self.parts.definitions.apply(statement, database, timezone)
            if after is not None:
                after()

    async def define_as(self, user: str, text: str, database: str | None = "d") -> None:
        """Apply statements in the DDL thread, for *user*."""
        for statement in parse(text):
            await self.definer.run(
                lambda s=statement: self.parts.definitions.apply(s, database, "UTC"), user
            )

    def allow(self, name: str, *rights: Right, on: int = 0) -> str:
        """Give a user rights; it is made when there is none yet."""
        known = self.catalog.user(name)
        number = known.id if known is not None else self.writer.new_id()
        grants = known.grants if known is not None else ()
        added = tuple(Grant(right, on) for right in rights)
        self.catalog.put(User(number, name, "", grants=(*grants, *added)))
        return name

    # ---------------------------------------------------------------- what came of it

    def controls(self, topic: str) -> list[tuple[int, ControlRecord]]:
        """Control records of a topic, with their partitions."""
        found = []
        for name, partition in sorted(self.log.records):
            if name == topic:
                for value in self.log.values(topic, partition):
                    with contextlib.suppress(SchemaError):  # rows, and what tests put there
                        found.append((partition, decode(ControlRecord, value)))
        return found

    def kinds(self, topic: str) -> list[tuple[int, str]]:
        return [(partition, control.kind) for partition, control in self.controls(topic)]

    def close(self) -> None:
        self.parts.stream_tables.close()
        self.parts.close()
