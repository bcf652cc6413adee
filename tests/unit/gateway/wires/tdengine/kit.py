"""A client of TDengine's WebSocket, as connectors are."""

from __future__ import annotations

import json
import struct
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType

from tests.unit.gateway.kit import ROOT
from tests.unit.gateway.wires.kit import PASSWORD, Wires
from tests.unit.gateway.wires.tdengine.layout import read_block


class TaosClient:
    """One connection."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket
        self._number = 2**63

    async def send(self, action: str, **args: Any) -> int:
        """Send an action; return its number."""
        self._number += 1
        await self.socket.send_str(
            json.dumps({"action": action, "args": {"req_id": self._number, **args}})
        )
        return self._number

    async def send_bytes(self, code: int, resource: int, content: bytes) -> int:
        self._number += 1
        await self.socket.send_bytes(struct.pack("<QQQ", self._number, resource, code) + content)
        return self._number

    async def receive(self) -> Any:
        """The next answer: an object, or bytes; None: the connection is closed."""
        message = await self.socket.receive(timeout=60)
        if message.type is WSMsgType.TEXT:
            return json.loads(message.data)
        return message.data if message.type is WSMsgType.BINARY else None

    async def ask(self, action: str, **args: Any) -> dict[str, Any]:
        """The answer to an action."""
        return self._check(action, await self.send(action, **args), await self.receive())

    async def ask_bytes(self, action: str, code: int, resource: int, content: bytes) -> Any:
        return self._check(
            action, await self.send_bytes(code, resource, content), await self.receive()
        )

    def _check(self, action: str, number: int, reply: Any) -> dict[str, Any]:
        assert isinstance(reply, dict), reply
        assert (reply["action"], reply["req_id"]) == (action, number), reply
        assert reply["timing"] >= 0
        return reply

    async def good(self, action: str, **args: Any) -> dict[str, Any]:
        """The answer to an action that is done."""
        reply = await self.ask(action, **args)
        assert reply["code"] == 0, reply
        return reply

    async def log_in(self, user: str = ROOT, password: str = PASSWORD, **more: Any) -> None:
        await self.good("conn", user=user, password=password, **more)

    async def execute(self, sql: str) -> int:
        reply = await self.good("query", sql=sql)
        assert reply["is_update"], reply
        return int(reply["affected_rows"])

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a SELECT, fetched in the old way."""
        return await self.fetch((await self.good("query", sql=sql))["id"])

    async def fetch(self, number: int) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        while not (told := await self.good("fetch", id=number))["completed"]:
            await self.send("fetch_block", id=number)
            data = await self.receive()
            assert struct.unpack_from("<QQ", data)[1] == number
            rows = list(zip(*read_block(data[16:]), strict=True))
            assert len(rows) == told["rows"]
            found += rows
        return found

    async def fetch_raw(self, number: int) -> list[tuple[Any, ...]]:
        """All rows of a result, fetched as newer connectors do. Raises ValueError: the gateway's
        words.
        """
        found: list[tuple[Any, ...]] = []
        while True:
            sent = await self.send_bytes(7, number, struct.pack("<H", 1))
            data = await self.receive()
            head, action, version, _, told, code, size = struct.unpack_from("<QQHQQII", data)
            assert (head, action, version, told) == (2**64 - 1, 7, 1, sent)
            result, over = struct.unpack_from("<QB", data, 42 + size)
            assert result == number
            if code:
                raise ValueError(data[42 : 42 + size].decode())
            if over:
                return found
            (length,) = struct.unpack_from("<I", data, 51 + size)
            assert len(data) == 55 + size + length
            found += zip(*read_block(data[55 + size :]), strict=True)


async def connect(wires: Wires, headers: dict[str, str] | None = None, **query: str) -> TaosClient:
    return TaosClient(await wires.client.ws_connect("/ws", headers=headers, params=query))


async def logged_in(wires: Wires, database: str = "d") -> TaosClient:
    """The connection of root."""
    client = await connect(wires)
    await client.log_in(db=database)
    return client
