"""What clients of TDengine talk to, put together: its WebSocket, and REST of version 2."""

from __future__ import annotations

from aiohttp import web

from gateway.guard import RequestGuard
from gateway.intake import WriteIntake
from gateway.layout import RowLayout
from gateway.statements.executor import Executor
from gateway.wires.point_writer import PointWriter
from gateway.wires.tdengine.connection import ConnectionActions
from gateway.wires.tdengine.queries import QueryActions
from gateway.wires.tdengine.results import OpenResults, ResultBudget
from gateway.wires.tdengine.schemaless import SchemalessActions
from gateway.wires.tdengine.session import SessionServices, WireSession
from gateway.wires.tdengine.socket import Made, TdengineSocket
from gateway.wires.tdengine.statements import StatementActions
from gateway.wires.tdengine.version_2 import Version2Rest
from penstock.auth.login import Login


class TdengineParts:
    """One per process."""

    def __init__(
        self,
        executor: Executor,
        intake: WriteIntake,
        writer: PointWriter,
        login: Login,
        max_body: int,
        max_result_bytes: int,
    ) -> None:
        """
        Args:
            max_body: bytes of a message.
            max_result_bytes: of one user's open results.
        """
        self._intake = intake
        self._writer = writer
        self.budget = ResultBudget(max_result_bytes)
        self._rest = Version2Rest(executor)
        self.socket = TdengineSocket(SessionServices(executor, login), self._make, max_body)

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [*self._rest.routes(guard), *self.socket.routes(guard)]

    async def close(self, _: web.Application) -> None:
        """Tell the clients of WebSockets that we go away."""
        await self.socket.close()

    def _make(self, session: WireSession) -> Made:
        results = OpenResults(self.budget)
        queries = QueryActions(session, results)
        handlers = {
            **ConnectionActions(session).handlers(),
            **queries.handlers(),
            **StatementActions(session, queries, self._locate).handlers(),
            **SchemalessActions(session, self._writer).handlers(),
        }
        return handlers, results.free_all

    async def _locate(self, user: str, database: str, name: str) -> RowLayout:
        layout, _ = await self._intake.locate_for(user, "WRITE", database, name)
        return layout
