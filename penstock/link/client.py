"""The client's end of the link: one WebSocket to another deployment, with any number of channels on
it.

Threads: one reads; callers ask from any thread and wait on their own channel. Rows wait in a
channel up to the credit it gave, so a slow reader slows its sender down and nobody else. A link
that breaks fails every channel with `E_LINK_LOST`; whoever holds a token opens a new one and goes
on. Never decides whether to try again.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from websockets.exceptions import ConnectionClosed

from penstock.errors import PenstockError, RemoteError
from penstock.link.address import Address, LinkLost
from penstock.link.channel import Channel, LinkMessage
from penstock.link.frames import CREDIT, pack, unpack
from penstock.link.handshake import open_socket
from penstock.outbound.targets import reason_of
from penstock.remote_errors import error_of

if TYPE_CHECKING:
    from penstock.link.description import Description


class Link:
    """Use it in a `with`, or `close` it. Safe to use from several threads."""

    def __init__(
        self, address: Address, *, timeout: float = 10.0, ping_seconds: float = 10.0
    ) -> None:
        """Connect.

        Raises:
            LinkLost: nobody answers there, or not as we do (no TLS where it was asked for, a bad
                certificate).
            AuthError: user or password is wrong.
            CatalogError: the address is not one of those allowed (any more), or this mesh itself
                answers there.
        """
        self.address = address
        self.timeout = timeout
        self._channels: dict[int, Channel] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._failed: PenstockError | None = None
        self._socket = open_socket(address, timeout, ping_seconds)
        #: bytes of rows received, compressed as they came
        self.received = 0
        self._reader = threading.Thread(
            target=self._read, name=f"link-{address.shown}", daemon=True
        )
        self._reader.start()

    # ---------------------------------------------------------------- questions

    def describe(self, table: str, database: str = "") -> Description:
        """Ask for the columns of a table over there. Raises PenstockError."""
        return _description(self._ask({"op": "describe", "table": table, "database": database}))

    def resolve(
        self,
        table: str,
        query: str | None = None,
        serial: int | None = None,
        *,
        timeout: float | None = None,
    ) -> Description:
        """Ask for a table in the scope of a running query: a stream, a view or a database, by name
        or serial. Raises PenstockError.
        """
        request = {"op": "describe", "table": table, "query": query, "serial": serial}
        return _description(self._ask(request, timeout))

    def information(self) -> dict[str, Any]:
        """Ask the other side who it is: `deployment` (an id that stays), `queries` (name, serial
        and state of each stream and view).
        """
        return self._ask({"op": "information"})

    def query(
        self,
        sql: str,
        database: str = "",
        timezone: str = "UTC",
        *,
        positions: bool = False,
        timeout: float | None = None,
    ) -> pa.Table:
        """Return the rows of one SELECT, as of now. Raises PenstockError.

        Args:
            positions: also say, in the schema's metadata, up to where in the log the rows go
                (`penstock.token`).
            timeout: seconds for all of it; by default as long as pieces of it come.
        """
        batches = list(
            self.stream_query(sql, database, timezone, positions=positions, timeout=timeout)
        )
        return pa.concat_tables(batches) if len(batches) > 1 else batches[0]

    def stream_query(
        self,
        sql: str,
        database: str = "",
        timezone: str = "UTC",
        *,
        positions: bool = False,
        timeout: float | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the same in pieces as they come; at least one, which may be empty."""
        end = None if timeout is None else time.monotonic() + timeout
        channel = self.open(
            {
                "op": "query",
                "sql": sql,
                "database": database,
                "timezone": timezone,
                "positions": positions,
            }
        )
        try:
            while True:
                patience = self.timeout * 6 if end is None else max(end - time.monotonic(), 0.0)
                message = channel.get(patience)
                if message is None:
                    raise RemoteError(
                        f"{self.address.shown} does not answer",
                        code="E_TIMEOUT",
                        detail=f"within {timeout or patience:g} s",
                    )
                if message.kind == "end":
                    return
                if message.rows is not None:
                    yield message.rows
        finally:
            channel.close()

    def subscribe(
        self,
        sql: str,
        database: str = "",
        *,
        start: str = "latest",
        positions: bool = False,
        cycles: bool = False,
        timezone: str = "UTC",
        query: str | None = None,
        serial: int | None = None,
    ) -> Channel:
        """Subscribe to rows that pass a SELECT. Raises PenstockError.

        Args:
            sql: filters and projects one table.
            database: for a name without one.
            start: `latest`, `earliest` or a token.
            positions: rows carry their place in the log (`_offset`, `_row`).
            cycles: messages say how many of their rows came in one batch.
            timezone: of times without one.
            query: a stream, view or database that must be running all the while; or `serial`.
            serial: its number.

        Returns:
            A channel whose first message is `subscribed`.
        """
        request = {
            "op": "subscribe",
            "sql": sql,
            "database": database,
            "from": start,
            "positions": positions,
            "cycles": cycles,
        }
        return self.open(
            {**request, "timezone": timezone, "query": query, "serial": serial, "credit": CREDIT}
        )

    def append(self, table: str, database: str = "", *, producer: str | None = None) -> Channel:
        """Open a channel that takes rows for *table*: `append_rows`, then an `ack` for each. Its
        first message is `opened`.

        Args:
            table: any table over there.
            database: for a name without one.
            producer: who sends; its rows carry `_offset` and `_row`, and each counts once however
                often it is sent.
        """
        return self.open(
            {"op": "append", "table": table, "database": database, "producer": producer}
        )

    def write(
        self, table: str, database: str, rows: pa.Table, *, producer: str | None = None
    ) -> int:
        """Append rows once and wait until they are on all replicas; *producer* as for `append`.
        Raises PenstockError.
        """
        channel = self.append(table, database, producer=producer)
        try:
            channel.expect("opened", self.timeout)
            channel.send({"seq": 1}, rows)
            return int(channel.expect("ack", self.timeout * 3).header["rows"])
        finally:
            channel.close()

    # ---------------------------------------------------------------- channels

    def open(self, request: dict[str, Any]) -> Channel:
        """Open a channel and send its first message, less what is off in it: so an older peer need
        not know of that.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            channel = Channel(self, next(self._numbers))
            self._channels[channel.number] = channel
        channel.send({k: v for k, v in request.items() if v is not None and v is not False})
        return channel

    def forget(self, channel: Channel) -> None:
        with self._lock:
            known = self._channels.pop(channel.number, None) is not None and self._failed is None
        if known:
            try:
                self.send({"ch": channel.number, "op": "close"})
            except LinkLost:
                return

    def send(self, header: dict[str, Any], rows: pa.Table | None = None) -> None:
        """Raises LinkLost."""
        data = json.dumps(header) if rows is None else pack(header, rows)
        try:
            with self._sending:
                self._socket.send(data)
        except (ConnectionClosed, OSError) as lost:
            raise self._link_lost(lost) from None

    def _ask(self, request: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        channel = self.open(request)
        try:
            return channel.expect("answer", self.timeout if timeout is None else timeout).header
        finally:
            channel.close()

    # ---------------------------------------------------------------- the reading thread

    def _read(self) -> None:
        reason: Exception
        try:
            for data in self._socket:
                if isinstance(data, bytes):
                    self.received += len(data)
                header, rows = unpack(data)
                with self._lock:
                    channel = self._channels.get(int(header.get("ch", 0)))
                if channel is None:
                    continue
                if header.get("type") == "error":
                    channel.put(error_of(header))
                else:
                    channel.put(LinkMessage(header, rows))
            reason = ConnectionError("closed")
        except Exception as wrong:  # whatever the other side sent: who waits is told
            reason = wrong
        lost = self._link_lost(reason)
        with self._lock:
            self._failed = lost
            waiting = list(self._channels.values())
        for channel in waiting:
            channel.put(lost)

    def _link_lost(self, reason: Exception) -> LinkLost:
        return LinkLost(f"the link to {self.address.shown} is lost", detail=reason_of(reason))

    @property
    def alive(self) -> bool:
        return self._failed is None

    def close(self) -> None:
        self._socket.close()
        if threading.current_thread() is not self._reader:
            self._reader.join(self.timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _description(answer: dict[str, Any]) -> Description:
    # `Connection.stream` describes no table, and a client has nothing of what is imported here
    from penstock.link.description import Description

    return Description.from_json(answer["table"])
