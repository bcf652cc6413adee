"""Everything that runs statements, over a memory gateway and a store that is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from gateway.idempotency import Ledger, Receipt
from gateway.information.schema import Information
from gateway.intake import WriteIntake, layout_of
from gateway.layout import RowLayout
from gateway.publisher import RowPublisher
from gateway.row_batches import RowBatches
from gateway.select import Question
from gateway.statements.checking import StatementChecker
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from gateway.statements.permissions import Permissions
from gateway.statements.queries import ReadStatements
from gateway.statements.resolution import NameResolver
from gateway.statements.shows import ShowStatements
from gateway.statements.writes import WriteStatements
from penstock.catalog.model import External
from penstock.codec import TableCodec
from penstock.errors import PenstockError
from penstock.repartition.write_gate import Gate
from penstock.rows.parameters import Parameters
from penstock.runtime.clock import SystemClock
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.gateway.kit import ROOT, MemoryGateway

FAR = External(
    900,
    "d",
    "far",
    "penstock",
    (("h1:1",),),
    "rd",
    "rt",
    (Column("ts", ColumnType("TIMESTAMP")), Column("a", ColumnType("INT"))),
)


class Store:
    """Answers SELECTs with what a test gives it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[tuple[str, int], int]]] = []
        self.answer = pa.table({"n": [1]})
        self.parameters: Parameters | None = None

    async def select_for(self, user: str, question: Question) -> pa.Table:
        self.asked.append((user, question.sql, dict(question.after)))
        self.parameters = question.parameters
        return self.answer


class Forwarder:
    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []

    async def statement(self, address: str, text: str, context: RequestContext) -> None:
        self.sent.append((address, context.user, text))


class Remote:
    """Tables of other deployments."""

    def __init__(self, gateway: MemoryGateway) -> None:
        self.layout = gateway.parts.remote_insert.layout
        self.written: list[list[int]] = []

    def write(self, entry: External, frame: Any) -> int:
        self.written.append(frame["a"].to_list())
        return int(frame.height)


class Statements:
    """A gateway that runs statements; `halted` topics hold writes."""

    def __init__(self, gateway: MemoryGateway, store: Any, loop: asyncio.AbstractEventLoop) -> None:
        """*store*: answers SELECTs; a `Store`, or a real one over the gateway's log."""
        self.gateway = gateway
        self.halted: set[str] = set()
        self.ledger = Ledger(gateway.redis, gateway.log, "kafka", "g1", lambda t, p: None)
        self.publisher = RowPublisher(
            gateway.log,
            RowBatches(gateway.children),
            self.ledger,
            lambda: gateway.catalog,
            Gate(lambda topic: topic in self.halted),
            loop=loop,
            clock=SystemClock(),
            max_bytes=1 << 20,
            max_writes=100,
        )
        self.abroad: list[int] = []
        self.intake = WriteIntake(
            self.publisher,
            gateway.children,
            self.ledger,
            lambda: gateway.catalog,
            gateway.access,
            self._replicate,
            self._send_abroad,
        )
        self.store = store
        self.forwarder = Forwarder()
        self.remote = Remote(gateway)
        resolver = NameResolver(lambda: gateway.catalog, self.intake)
        information = Information(
            lambda: gateway.catalog, gateway.redis, "1.0", gateway.access, ROOT
        )
        forwarder: Any = self.forwarder
        remote: Any = self.remote
        queries = ReadStatements(
            lambda: gateway.catalog,
            resolver,
            store,
            self.publisher,
            information,
            gateway.parts.streams,
            gateway.definer.topics,
        )
        permissions = Permissions(gateway.access, lambda: gateway.catalog, self.intake)
        writes = WriteStatements(
            lambda: gateway.catalog,
            resolver,
            self.intake,
            remote,
            queries,
            gateway.parts.removal,
            self.publisher,
            SystemClock(),
        )
        self.checker = StatementChecker(
            lambda: gateway.catalog, permissions, queries, writes, gateway.parts.streams
        )
        self.executor = Executor(
            lambda: gateway.catalog,
            permissions,
            queries,
            writes,
            gateway.definer,
            gateway.parts.definitions,
            ShowStatements(resolver, queries, information),
            forwarder,
        )

    def close(self) -> None:
        self.publisher.close()
        self.ledger.close()
        self.gateway.close()

    def _replicate(self, write: Any, key: str | None) -> asyncio.Future[Receipt]:
        write.done.set_result(Receipt(write.rows))
        done: asyncio.Future[Receipt] = write.done
        return done

    def _send_abroad(self, write: Any) -> int:
        self.abroad.append(write.rows)
        return int(write.rows)

    async def run(self, text: str, **context: Any) -> Any:
        given = {"database": "d", "user": ROOT} | context
        return await self.executor.run(text, RequestContext(**given))

    async def refusal(self, text: str, **context: Any) -> PenstockError:
        with pytest.raises(PenstockError) as wrong:
            await self.run(text, **context)
        return wrong.value

    def rows(self, name: str) -> list[int]:
        """Column a of all rows in the log."""
        table = self.gateway.catalog.table("d", name)
        assert table is not None
        codec = TableCodec(table)
        found: list[int] = []
        for partition in range(2):
            values = [v for v in self.gateway.log.values("in.d", partition) if v]
            mine = [v for v in values if v[1:5] == table.schema_id.to_bytes(4, "big")]
            if mine:
                found += codec.decode(mine).rows["a"].to_list()
        return sorted(found)

    def layout(self, name: str) -> RowLayout:
        table = self.gateway.catalog.table("d", name)
        home = self.gateway.catalog.database("d")
        assert table is not None and home is not None
        return layout_of(home, table)
