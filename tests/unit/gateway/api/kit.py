"""The whole HTTP server of a gateway, as `GatewayParts` makes it, over Kafka and Redis in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import encode_basic_auth
from aiohttp.test_utils import TestClient, TestServer

from gateway import assembly
from gateway.assembly import GatewayParts
from penstock.runtime.health import Health
from tests.sql.memory_mesh import FollowingStore
from tests.unit.gateway.api.conform import conform
from tests.unit.gateway.kit import ROOT, MemoryGateway

KEY = {"Authorization": encode_basic_auth(ROOT, "secret")}


class WholeGateway:
    """`client` asks it; every answer is compared with the OpenAPI document."""

    client: TestClient[Any, Any]

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.memory = MemoryGateway(directory)
        self.store: Any = FollowingStore(directory, self.memory)
        patch.setattr(assembly, "Backends", lambda *_: self.memory.backends)
        patch.setattr(assembly, "_store", lambda _: self.store)
        self._health = Health("gateway")
        loop = asyncio.get_running_loop()
        self.parts = GatewayParts(self.memory.settings, self._health, loop)
        self.application = self.parts.application()
        self.application.middlewares.append(conform)

    def routes(self) -> set[tuple[str, str]]:
        """Method and path of all routes; a HEAD is the GET without its body."""
        found = set()
        for route in self.application.router.routes():
            assert route.resource is not None
            found.add((route.method, route.resource.canonical))
        return {(method, path) for method, path in found if method != "HEAD"}

    async def start(self) -> None:
        self.client = TestClient(TestServer(self.application))
        await self.client.start_server()

    async def close(self) -> None:
        await self.client.close()
        self.parts.ddl.stream_tables.close()
        self.parts.writes.publisher.close()
        self.parts.writes.ledger.close()
        self.parts.ddl.close()
        self.memory.close()
        self._health.close()
