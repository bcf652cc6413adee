"""The wires over HTTP, as a process has them: a gateway and a store over one log in memory, and the
guard that everybody passes.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.guard import RequestGuard
from gateway.wires.assembly import WireParts
from gateway.wires.point_writer import PointWriter
from gateway.wires.tdengine.assembly import TdengineParts
from penstock.auth.login import Login
from penstock.runtime.limits import Open, Rate
from tests.sql.memory_mesh import FollowingStore
from tests.unit.gateway.kit import ROOT, MemoryGateway
from tests.unit.gateway.statements.kit import Statements

PASSWORD = "secret"
MAX_BODY = 1 << 20
#: bytes of one user's open results
MAX_RESULT = 4 << 20


def key(user: str = ROOT, password: str = PASSWORD) -> dict[str, str]:
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


class Wires:
    """A client of the gateway, and what is behind it."""

    def __init__(self, directory: Path) -> None:
        loop = asyncio.get_running_loop()
        self.gateway = MemoryGateway(directory, loop=loop)
        self.statements = Statements(self.gateway, FollowingStore(directory, self.gateway), loop)
        self.login = Login(lambda: self.gateway.catalog, ROOT, PASSWORD, self.gateway.clock)
        cookies: Any = None
        clock = self.gateway.clock
        guard = RequestGuard(self.login, cookies, (), Rate(10_000, clock), Open(1000))
        forwarder: Any = self.statements.forwarder
        writer = PointWriter(
            self.statements.intake, self.gateway.definer, forwarder, self.gateway.access, clock
        )
        self.tdengine = TdengineParts(
            self.statements.executor,
            self.statements.intake,
            writer,
            self.login,
            MAX_BODY,
            MAX_RESULT,
        )
        parts = WireParts(
            writer,
            self.statements.executor,
            lambda: self.gateway.catalog,
            self.gateway.access,
            clock,
            MAX_BODY,
            self.tdengine,
        )
        app = web.Application(client_max_size=MAX_BODY)
        app.add_routes(parts.routes(guard))
        self.client: TestClient[Any, Any] = TestClient(TestServer(app))

    def as_user(self, name: str) -> dict[str, str]:
        """The key of a user that `MemoryGateway.allow` has made."""
        return {"Authorization": f"Token {self.login.token(name)}"}

    async def get(self, path: str, headers: dict[str, str] | None = None, **query: str) -> Any:
        """Status and body of a question."""
        headers = key() if headers is None else headers
        async with self.client.get(path, params=query, headers=headers) as answer:
            return answer.status, await _body(answer)

    async def post(
        self, path: str, data: Any, headers: dict[str, str] | None = None, **query: str
    ) -> Any:
        headers = key() if headers is None else headers
        async with self.client.post(path, data=data, params=query, headers=headers) as answer:
            return answer.status, await _body(answer)

    async def ask(self, q: str, db: str = "d", epoch: str = "s", **more: Any) -> list[Any]:
        """The results of a query, which has status 200."""
        status, said = await self.get("/query", q=q, db=db, epoch=epoch, **more)
        assert status == 200, said
        return [r.get("series", r.get("error", [])) for r in said["results"]]

    async def rows(self, q: str) -> list[list[Any]]:
        """The rows of the only series of a query."""
        ((only,),) = await self.ask(q)
        return list(only["values"])

    async def sql(self, text: str) -> list[tuple[Any, ...]]:
        answer = await self.statements.run(text)
        return [tuple(row.values()) for row in answer.to_pylist()]

    async def close(self) -> None:
        await self.client.close()
        self.statements.close()


async def _body(answer: Any) -> Any:
    if "json" in answer.headers.get("Content-Type", ""):
        return await answer.json()
    return await answer.text()
