"""A node as requests see it: its tables, users with rights, who leads, and other nodes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from aiohttp import StreamReader, WSMessage, WSMsgType, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from penstock.auth.access import Access
from penstock.catalog import changes
from penstock.catalog.model import Database, Grant, Right, User
from penstock.catalog.view import Catalog
from penstock.config.raft import Group
from penstock.coordination.presence import Registry
from penstock.errors import RemoteError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.tables.election import GroupStanding
from services.tables.lookup import FORWARDED, USER, Lookup
from services.tables.session import LeaderSession
from services.tables.settings import TablesSettings
from tests.unit.services.memory_redis import MemoryRedis
from tests.unit.services.tables.kit import Node

GROUP = Group(11, ("N1", "N2", "N3"))
SETTINGS = TablesSettings(
    alias="N1",
    password="secret",
    streaming_ha_mode="raft",
    streaming_raft_groups="11:N1:N2:N3,12:N1:N2:N3",
    idle_seconds=0.01,
)
ROOT = SETTINGS.user


class Others:
    """Other nodes: what they are asked, and what each of them answers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {}

    async def call(
        self, method: str, url: str, data: bytes, *, timeout: float = 30.0
    ) -> tuple[int, Any]:
        self.calls.append((method, url, data))
        for beginning, answer in self.answers.items():
            if url.startswith(beginning):
                return answer
        raise RemoteError("another node does not answer", detail=url)

    async def close(self) -> None:
        """Nothing is open."""


class ServedNode:
    """One node's `Lookup` over the tables of a kit's nodes; ann, bob and carl are users."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = nodes
        self.catalog = Catalog([Database(100, "ha"), *(n.table for n in nodes)])
        self.standing = GroupStanding(GROUP, alive=("N1", "N2", "N3"))
        self.access = Access(lambda: self.catalog, ROOT)
        self.others: Any = Others()
        self.registry = Registry(MemoryRedis(), 2.0)  # type: ignore[arg-type]
        reader: Any = SimpleNamespace(catalog=self.catalog)
        self.reader = reader
        self.keeper: Any = SimpleNamespace(all=self._all, find=self._find)
        self.election: Any = SimpleNamespace(
            standings={GROUP.id: self.standing}, session=self._session, redis_down=""
        )
        self.lookup = Lookup("N1", reader, self.keeper, self.election, self.access)

    def _all(self) -> list[Any]:
        return [n.replica for n in self.nodes]

    def _find(self, database: str, name: str) -> Any:
        return next((r for r in self._all() if r.name == f"{database}.{name}".lower()), None)

    def _session(self, group: int, table_id: int) -> LeaderSession | None:
        found = (n.session for n in self.nodes if n.table.id == table_id)
        return next(found, None)

    def allow(self, name: str, *rights: Right) -> str:
        """Give a user rights on the first table; it is made when there is none yet."""
        known = self.catalog.user(name)
        number = known.id if known is not None else 900 + len(self.catalog.users())
        grants = tuple(Grant(right, self.nodes[0].table.id) for right in rights)
        self.catalog.put(User(number, name, "", grants=grants))
        return name

    def lead_here(self, epoch: int = 1) -> None:
        """Let this node lead the group and serve its tables."""
        for node in self.nodes:
            node.lead(epoch)
            node.settle()
        self.standing.leader = "N1"
        self.standing.url = "http://n1"
        self.standing.epoch = epoch

    def lead_elsewhere(self, leader: str = "N2") -> None:
        self.standing.leader = leader
        self.standing.url = f"http://{leader.lower()}"

    def add_plain_table(self, name: str) -> None:
        """Put a table into the catalog that is no stream table."""
        made = changes.create_table(
            self.catalog,
            lambda: self.catalog.next_id,
            "ha",
            name,
            (Column("ts", ColumnType("TIMESTAMP")), Column("n", ColumnType("INT"))),
        )
        for entry in made.puts:
            self.catalog.put(entry)


async def ask(
    routes: list[web.RouteDef],
    method: str,
    path: str,
    body: bytes | dict[str, Any] = b"",
    *,
    user: str = ROOT,
    forwarded: bool = False,
) -> web.Response:
    """What the handler of *path* answers to *user*. Raises what the handler raises."""
    app = web.Application()
    app.add_routes(routes)
    request = make_request(method, path, body, forwarded=forwarded)
    request[USER] = user
    return await answer(app, request)


async def answer(app: web.Application, request: web.Request) -> web.Response:
    """What an application answers, without a server in front of it."""
    app.freeze()
    response = await app._handle(request)
    assert isinstance(response, web.Response)
    return response


def make_request(
    method: str,
    path: str,
    body: bytes | dict[str, Any] = b"",
    *,
    forwarded: bool = False,
    headers: dict[str, str] | None = None,
) -> web.Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    payload = StreamReader(mock.Mock(spec=BaseProtocol), 1 << 20)
    payload.feed_data(data)
    payload.feed_eof()
    sent = (headers or {}) | ({FORWARDED: "N2"} if forwarded else {})
    return make_mocked_request(method, path, headers=sent, payload=payload)


def content(response: web.Response) -> Any:
    assert response.text is not None
    return json.loads(response.text)


class Socket:
    """A WebSocket of a client: what it says, and what it has been told.

    It stands where `aiohttp.web.WebSocketResponse` does; `frames` come in order, and then the
    client waits until the node hangs up, or leaves.
    """

    def __init__(self, *frames: str | bytes, stays: bool = False) -> None:
        self.closed = False
        self.texts: list[Any] = []
        self.frames: list[bytes] = []
        self.arrived = asyncio.Event()
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        for frame in frames:
            self.say(frame)
        if not stays:
            self._messages.put_nowait(None)

    def __call__(self, **_: Any) -> Socket:
        """Be made by the handler."""
        return self

    async def prepare(self, request: web.Request) -> None:
        """A handshake that succeeds."""

    async def receive_str(self) -> str:
        message = await self._messages.get()
        return str(message.data)

    def say(self, frame: str | bytes) -> None:
        kind = WSMsgType.TEXT if isinstance(frame, str) else WSMsgType.BINARY
        self._messages.put_nowait(WSMessage(kind, frame, None))

    def leave(self) -> None:
        self._messages.put_nowait(None)

    def __aiter__(self) -> Socket:
        return self

    async def __anext__(self) -> Any:
        message = await self._messages.get()
        if message is None:
            raise StopAsyncIteration
        return message

    async def send_str(self, text: str) -> None:
        self.texts.append(json.loads(text))
        self.arrived.set()

    async def send_bytes(self, data: bytes) -> None:
        self.frames.append(data)
        self.arrived.set()

    async def close(self) -> None:
        self.closed = True
        self.leave()

    async def until(self, check: Callable[[], bool]) -> None:
        """Wait until the client has been told enough."""
        async with asyncio.timeout(30):
            while not check():
                self.arrived.clear()
                await self.arrived.wait()
