"""A real server of the PostgreSQL wire over a memory gateway, and a client that speaks bytes."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gateway.postgres.catalog_answers import CatalogAnswers
from gateway.postgres.server import PostgresServer
from gateway.postgres.statements import PgStatements
from penstock.auth.login import Login
from penstock.auth.passwords import hash_password
from penstock.catalog.model import Grant, Right, User
from penstock.runtime.clock import SystemClock
from tests.unit.gateway.kit import ROOT, MemoryGateway
from tests.unit.gateway.statements.kit import Statements, Store

PASSWORD = "secret"
DEFINITIONS = (
    "CREATE DATABASE d PARTITIONS 2;"
    " CREATE STABLE meters (ts TIMESTAMP, volts DOUBLE, price DECIMAL(10, 2)) TAGS (site VARCHAR(16));"
    " CREATE TABLE plain (ts TIMESTAMP, n INT, who NCHAR(8));"
    " CREATE DATABASE hidden PARTITIONS 1; CREATE TABLE hidden.secrets (ts TIMESTAMP, x INT)"
)


@dataclass
class Wire:
    """What a test has: the server, the gateway behind it, and the store that is told."""

    server: PostgresServer
    gateway: MemoryGateway
    store: Store
    login: Login

    @property
    def port(self) -> int:
        return self.server.port

    def add_user(self, name: str, *rights: Right, on: str = "") -> None:
        """Make a user whose password is `PASSWORD`s own twice."""
        catalog = self.gateway.catalog
        home = catalog.database(on)
        grants = tuple(Grant(right, home.id if home is not None else 0) for right in rights)
        password = hash_password(PASSWORD * 2)
        catalog.put(User(self.gateway.writer.new_id(), name, password, grants=grants))


@asynccontextmanager
async def serving(
    directory: Path, context: ssl.SSLContext | None = None, **settings: Any
) -> AsyncIterator[Wire]:
    loop = asyncio.get_running_loop()
    gateway = MemoryGateway(directory, loop=loop, postgres=True, postgres_port=0, **settings)
    store = Store()
    statements = Statements(gateway, store, loop)
    gateway.define(DEFINITIONS)
    login = Login(lambda: gateway.catalog, ROOT, PASSWORD, SystemClock(), "k" * 48)
    catalogs = CatalogAnswers(lambda: gateway.catalog, gateway.access)
    answers = PgStatements(statements.executor, catalogs, lambda: gateway.catalog, gateway.access)
    server = PostgresServer(gateway.settings, answers, login, SystemClock(), context)
    await server.start()
    try:
        yield Wire(server, gateway, store, login)
    finally:
        while PgWire.opened:
            PgWire.opened.pop().writer.close()
        await server.stop()
        statements.close()


@dataclass
class Reply:
    """Messages up to ReadyForQuery, or the end of the connection."""

    messages: list[tuple[bytes, bytes]] = field(default_factory=list)
    ended: bool = False

    @property
    def kinds(self) -> str:
        return b"".join(kind for kind, _ in self.messages).decode()

    @property
    def rows(self) -> list[list[str | None]]:
        return [[None if v is None else v.decode() for v in row] for row in self.raw_rows]

    @property
    def raw_rows(self) -> list[list[bytes | None]]:
        return [_values(body) for kind, body in self.messages if kind == b"D"]

    @property
    def columns(self) -> list[tuple[str, int]]:
        """Names and oids."""
        bodies = [body for kind, body in self.messages if kind == b"T"]
        return _columns(bodies[-1]) if bodies else []

    @property
    def error(self) -> dict[str, str]:
        bodies = [body for kind, body in self.messages if kind == b"E"]
        return _fields(bodies[0]) if bodies else {}

    @property
    def tags(self) -> list[str]:
        return [body[:-1].decode() for kind, body in self.messages if kind == b"C"]

    @property
    def status(self) -> str:
        return self.messages[-1][1].decode()


class PgWire:
    """One connection."""

    #: what a server that ends closes
    opened: ClassVar[list[PgWire]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened.append(self)
        self.reader = reader
        self.writer = writer
        self.begun = Reply()

    @classmethod
    async def open(cls, port: int) -> PgWire:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    @classmethod
    async def log_in(
        cls, wire: Wire, user: str = ROOT, password: str = PASSWORD, **options: str
    ) -> PgWire:
        client = await cls.open(wire.port)
        client.begin(user=user, **options)
        reply = await client.reply(until=b"RE")
        if reply.kinds == "R":
            client.send(b"p", text(password))
            reply = await client.reply()
        client.begun = reply
        return client

    def begin(self, version: int = 3 << 16, **options: str) -> None:
        body = b"".join(text(k) + text(v) for k, v in options.items()) + b"\0"
        self.writer.write(struct.pack("!ii", len(body) + 8, version) + body)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self.writer.write(message(kind, body))

    async def reply(self, until: bytes = b"Z") -> Reply:
        """Read up to a message of one of the kinds *until*."""
        found = Reply()
        try:
            while True:
                kind = await self.reader.readexactly(1)
                (length,) = struct.unpack("!i", await self.reader.readexactly(4))
                found.messages.append((kind, await self.reader.readexactly(length - 4)))
                if kind in until:
                    return found
        except (asyncio.IncompleteReadError, ConnectionError):
            found.ended = True
            return found

    async def query(self, sql: str) -> Reply:
        self.send(b"Q", text(sql))
        return await self.reply()

    async def prepared(
        self,
        sql: str,
        values: list[bytes | None] | None = None,
        *,
        oids: tuple[int, ...] = (),
        formats: tuple[int, ...] = (),
        results: tuple[int, ...] = (),
        most: int = 0,
    ) -> Reply:
        """Parse, Bind, Describe, Execute, Sync: as drivers do."""
        self.send(b"P", parse("", sql, oids))
        self.send(b"B", bind("", "", values or [], formats, results))
        self.send(b"D", b"P\0")
        self.send(b"E", text("") + struct.pack("!i", most))
        self.send(b"S")
        return await self.reply()

    async def close(self) -> None:
        self.writer.close()


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def parse(name: str, sql: str, oids: tuple[int, ...] = ()) -> bytes:
    return text(name) + text(sql) + struct.pack(f"!h{len(oids)}I", len(oids), *oids)


def bind(
    portal: str,
    statement: str,
    values: list[bytes | None],
    formats: tuple[int, ...] = (),
    results: tuple[int, ...] = (),
) -> bytes:
    body = text(portal) + text(statement) + _formats(formats) + struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body + _formats(results)


def _formats(formats: tuple[int, ...]) -> bytes:
    return struct.pack(f"!h{len(formats)}h", len(formats), *formats)


def _values(body: bytes) -> list[bytes | None]:
    (count,) = struct.unpack_from("!h", body)
    at = 2
    found: list[bytes | None] = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        found.append(None if length < 0 else body[at : at + length])
        at += max(length, 0)
    return found


def _columns(body: bytes) -> list[tuple[str, int]]:
    (count,) = struct.unpack_from("!h", body)
    at = 2
    found = []
    for _ in range(count):
        end = body.index(b"\0", at)
        (oid,) = struct.unpack_from("!i", body, end + 7)
        found.append((body[at:end].decode(), oid))
        at = end + 19
    return found


def _fields(body: bytes) -> dict[str, str]:
    parts = body.rstrip(b"\0").split(b"\0")
    return {part[:1].decode(): part[1:].decode() for part in parts}
