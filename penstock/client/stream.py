"""`Connection.stream`: an unbounded SELECT. Rows that pass it come as Arrow tables for as long as
somebody iterates.

Reconnects by itself, with growing pauses, and goes on behind the last message it gave out. Windows
and aggregates are refused: they are CREATE STREAM's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from penstock.client.reconnecting import Reconnecting
from penstock.errors import PenstockError
from penstock.link.address import Address, LinkLost
from penstock.link.channel import Channel
from penstock.link.client import Link


@dataclass(frozen=True)
class StreamRows:
    """One message: `rows` have `_op` (0 upsert, 1 delete, 2 some columns), `tbname`, `_time` and
    the selected columns.
    """

    rows: pa.Table
    token: str


class Stream:
    """Iterate it; `close` ends it. Not to be iterated twice at a time."""

    def __init__(
        self,
        address: Address,
        sql: str,
        database: str,
        *,
        start: str,
        timezone: str,
        patience: float | None = None,
    ) -> None:
        """
        Args:
            patience: seconds to go on trying while the other side can't be reached; None: until it
                is closed.
        """
        self._address = address
        self._sql = sql
        self._database = database
        self._timezone = timezone
        self._reconnecting = Reconnecting(
            f"the deployment at {address.shown}", "an unbounded SELECT", patience
        )
        #: continues behind the last message given out
        self.token = start
        self._link: Link | None = None
        self._channel: Channel | None = None
        self._closed = threading.Event()

    def open(self) -> Self:
        """Subscribe now, instead of at the first iteration: whatever comes after this call is seen.
        Raises PenstockError.
        """
        if self._channel is None:
            self._link = Link(self._address)
            channel = self._link.subscribe(
                self._sql, self._database, start=self.token, timezone=self._timezone
            )
            self.token = str(channel.expect("subscribed", 30.0).header["token"])
            self._channel = channel
        return self

    def __iter__(self) -> Iterator[StreamRows]:
        while not self._closed.is_set():
            try:
                self.open()
                self._reconnecting.succeeded()
                yield from self._messages()
            except PenstockError as error:
                self._drop()
                if self._closed.is_set():
                    return
                lost = isinstance(error, LinkLost) or error.code == "E_LINK_LOST"
                if not lost or not self._reconnecting.failed(error.message):
                    raise
                self._closed.wait(self._reconnecting.seconds_left())

    def _messages(self) -> Iterator[StreamRows]:
        assert self._channel is not None
        held: list[pa.Table] = []
        while not self._closed.is_set():
            message = self._channel.get(1.0)
            if message is None:
                continue
            if message.rows is not None:
                held.append(message.rows)
            token = message.header.get("token")
            if token is None:
                continue
            self.token = str(token)
            for rows in held:
                yield StreamRows(rows, self.token)
            held = []

    def _drop(self) -> None:
        link = self._link
        self._link = None
        self._channel = None
        if link is not None:
            link.close()

    def close(self) -> None:
        self._closed.set()
        self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
