"""A deployment as its link sees it: tables and users, a log in memory, and one channel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
from prometheus_client import Counter
from prometheus_client.registry import CollectorRegistry

from penstock.auth.access import Access
from penstock.catalog.model import (
    Database,
    Entry,
    External,
    Grant,
    Right,
    Table,
    TableVersion,
    User,
    View,
)
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec
from penstock.link.frames import unpack
from penstock.rows.versions import UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation.channel import LinkChannel
from services.federation.lookup import TableLookup
from services.federation.settings import FederationSettings
from tests.unit.services.kit import MemoryLog

ROOT = "root"
TOPIC = "in.d"
NOW_MS = 1_800_000_000_000
COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))
TAGS = (Column("g", ColumnType("INT")),)
DATABASE = Database(1, "d", partitions=1)
PLAIN = Table(7, "d", "plain", "plain", TOPIC, 1, "ms", (TableVersion(107, COLUMNS),))
STABLE = Table(8, "d", "meters", "stable", TOPIC, 1, "ms", (TableVersion(108, COLUMNS, TAGS),))
FAR = External(40, "d", "far", "penstock", (("h1:1",), ("h2:1",)), "rd", "rt", COLUMNS)
VIEW = View(42, "d", "up", "SELECT * FROM d.meters", STABLE.id, PLAIN.id, begin=("x",))


class Connection:
    """The other side of a link: what it has been sent."""

    def __init__(self) -> None:
        self.sent: list[str | bytes] = []

    async def send(self, frame: str | bytes) -> None:
        self.sent.append(frame)

    def messages(self) -> list[tuple[dict[str, Any], pa.Table | None]]:
        return [unpack(frame) for frame in self.sent]

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [header for header, _ in self.messages() if header.get("type") == kind]

    def numbers(self) -> list[int]:
        """Column v of all rows."""
        found: list[int] = []
        for _, rows in self.messages():
            if rows is not None:
                found += rows.column("v").to_pylist()
        return found


def channel(user: str = ROOT) -> tuple[LinkChannel, Connection]:
    connection = Connection()
    peer: Any = connection
    counter = Counter("rows", "Rows", registry=CollectorRegistry())
    return LinkChannel(peer, user, 3, counter), connection


class Deployment:
    """What the parts of the federation service share."""

    def __init__(self, directory: Path, *entries: Entry) -> None:
        self.catalog = Catalog(entries or (DATABASE, PLAIN, STABLE))
        #: entries that come while somebody waits for the catalog
        self.late: list[Entry] = []
        self.listeners: list[Callable[[Any], None]] = []
        self.reader: Any = SimpleNamespace(
            catalog=self.catalog,
            know=lambda ids: None,
            catch_up=self._catch_up,
            listen=self.listeners.append,
        )
        self.access = Access(lambda: self.catalog, ROOT)
        self.born: set[tuple[int, str]] = set()
        self.lookup = TableLookup(self.reader, self.access, lambda i, n: (i, n) in self.born)
        self.log: Any = MemoryLog()
        self.log.partitions[TOPIC] = 1
        self.settings = FederationSettings(
            data_dir=directory,
            password="secret",
            retry_min=0.001,
            retry_max=0.002,
            connect_seconds=1.0,
        )

    def _catch_up(self) -> None:
        for entry in self.late:
            self.catalog.put(entry)
        self.late.clear()

    def allow(self, name: str, *rights: Right, on: int = DATABASE.id) -> str:
        """Give a user rights; it is made when there is none yet."""
        known = self.catalog.user(name)
        number = known.id if known is not None else 900 + len(self.catalog.users())
        self.catalog.put(User(number, name, "", grants=tuple(Grant(r, on) for r in rights)))
        return name

    def publish(self, table: Table, *rows: tuple[Any, ...], **more: Any) -> None:
        """Append rows (tbname, columns, tags) as a record of the table's topic."""
        self.log.append(table.topic, record(table, *rows, **more))


def record(table: Table, *rows: tuple[Any, ...], op: int = UPSERT, **more: Any) -> bytes:
    columns = (*table.columns, *table.tags)
    schema: dict[str, Any] = {"tbname": pl.String} | {c.name: c.type.polars() for c in columns}
    frame = pl.DataFrame([list(row) for row in rows], schema=schema, orient="row")
    frame = frame.with_columns(pl.lit(op, pl.Int8).alias("_op"))
    (value,) = TableCodec(table).encode(frame, max_bytes=1_000_000, **more)
    return value


def texts(connection: Connection) -> list[Any]:
    return [json.loads(frame) for frame in connection.sent if isinstance(frame, str)]
