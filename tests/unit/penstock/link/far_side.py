"""The other side of a link in memory: a description, rows, and the links made to it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.link.address import Address, LinkLost
from penstock.link.channel import Channel, LinkMessage
from penstock.link.description import Description
from penstock.link.remote_request import RemoteTarget
from penstock.sql.plan import Column
from penstock.types import ColumnType

ADDRESS = Address("far", 7707)
TARGET = RemoteTarget((ADDRESS,), "t", "q")
READINGS = Description(
    7,
    "d",
    "t",
    (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT"))),
    (Column("site", ColumnType("INT")),),
)


def rows(*values: tuple[str, int, int | None], op: int = 0, site: int = 0) -> pa.Table:
    """Rows as they come over a link: child table, time and value of each."""
    count = len(values)
    return pa.table(
        {
            "tbname": [name for name, _, _ in values],
            "_op": pa.array([op] * count, pa.int8()),
            "ts": pa.array([ts for _, ts, _ in values], pa.timestamp("ms", "UTC")),
            "v": pa.array([v for _, _, v in values], pa.int32()),
            "site": pa.array([site] * count, pa.int32()),
        }
    )


def message(given: pa.Table | None = None, **header: Any) -> LinkMessage:
    return LinkMessage(header, given)


class FarSide:
    """What is over there; a test changes it, sends messages and cuts links."""

    def __init__(self) -> None:
        self.description = READINGS
        self.pieces: Sequence[pa.Table] = [rows()]
        self.positions = {"in.d:0": 5}
        self.links: list[FarLink] = []
        #: raised instead of an answer, by operation: connect, resolve, query, subscribe
        self.errors: dict[str, PenstockError] = {}

    def connect(self, replicas: Sequence[Address], *, timeout: float) -> FarLink:
        """In place of `pool.connect_any`."""
        self.check("connect")
        made = FarLink(self, replicas[0])
        self.links.append(made)
        return made

    def check(self, operation: str) -> None:
        if (error := self.errors.get(operation)) is not None:
            raise error

    @property
    def link(self) -> FarLink:
        """The newest link."""
        return self.links[-1]

    def send(self, given: pa.Table | None = None, **header: Any) -> None:
        """Send a message on the newest link."""
        self.link.channels[-1].put(message(given, **header))

    def cut(self) -> None:
        self.link.fail(LinkLost("cut"))


class FarLink:
    """A link, with real channels, as far as following a table needs it."""

    def __init__(self, side: FarSide, address: Address) -> None:
        self.side = side
        self.address = address
        self.asked: list[tuple[str, Any]] = []
        self.channels: list[Channel] = []
        self.sent: list[dict[str, Any]] = []
        self.closed = False
        self._numbers = itertools.count(1)

    def __enter__(self) -> FarLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def resolve(
        self, table: str, query: str | None, serial: int | None, *, timeout: float
    ) -> Description:
        self.asked.append(("resolve", (table, query, serial)))
        self.side.check("resolve")
        return self.side.description

    def query(self, sql: str, database: str, *, timeout: float | None) -> pa.Table:
        self.asked.append(("query", (sql, database)))
        self.side.check("query")
        return pa.concat_tables(self.side.pieces)

    def stream_query(
        self, sql: str, database: str, *, positions: bool, timeout: float | None
    ) -> Iterator[pa.Table]:
        self.asked.append(("query", (sql, database)))
        self.side.check("query")
        known = {b"penstock.positions": json.dumps(self.side.positions)} if positions else None
        for piece in self.side.pieces:
            yield piece.replace_schema_metadata(known)

    def subscribe(self, sql: str, database: str, **options: Any) -> Channel:
        self.asked.append(("subscribe", {"sql": sql, "database": database, **options}))
        made = Channel(self, next(self._numbers))  # type: ignore[arg-type]
        try:
            self.side.check("subscribe")
            made.put(message(type="subscribed"))
        except PenstockError as error:
            made.put(error)
        self.channels.append(made)
        return made

    def send(self, header: dict[str, Any], given: pa.Table | None = None) -> None:
        self.sent.append(header)

    def forget(self, channel: Channel) -> None:
        self.sent.append({"ch": channel.number, "op": "close"})

    def fail(self, error: PenstockError) -> None:
        for channel in self.channels:
            channel.put(error)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.fail(LinkLost("closed"))

    def of(self, operation: str) -> list[Any]:
        """What was asked of one operation."""
        return [about for name, about in self.asked if name == operation]
