"""`Writer`: rows over one WebSocket, with many frames under way and an answer for each.

Frames are numbered from 1; `write` returns the numbers of its own. A refused frame harms no other:
all that were refused are told together, by number and reason, by the next `write` (which then sends
nothing) or by `flush`. A frame that was not answered when the connection broke may or may not be
written; `Writer` does not send it again by itself but says so. Frames with an idempotency key may
be sent again safely.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect

from penstock.client.frame_answers import FrameAnswers
from penstock.client.gateway import Gateway
from penstock.client.values import to_json
from penstock.client.wire import Rows, chunks, is_objects, to_stream, to_table
from penstock.errors import AuthError, PenstockError, RemoteError, SchemaError

#: rows of one frame; larger writes are cut
FRAME_ROWS = 10_000
#: a frame without its number: how many rows it has, and how it is made
_Frame = tuple[int, Callable[[int], str | bytes]]


class Writer:
    """Use it in a `with`: leaving it waits for all answers. One thread writes."""

    def __init__(
        self,
        gateway: Gateway,
        table: str | None,
        qualify: Callable[[str], str],
        *,
        window: int | None,
    ) -> None:
        """See `Connection.writer`."""
        self._table = table
        self._qualify = qualify
        self._timeout = gateway.timeout
        self._closed = False
        try:
            self._socket = connect(
                gateway.url.replace("http", "ws", 1) + "/v1/ingest",
                additional_headers={"Authorization": gateway.authorization},
                max_size=1 << 20,
                compression=None,
                ssl=gateway.context,
                open_timeout=gateway.timeout,
            )
            hello = json.loads(self._socket.recv(gateway.timeout))
        except InvalidStatus as refused:
            kind: type[PenstockError] = (
                AuthError if refused.response.status_code in (401, 403) else RemoteError
            )
            raise kind(
                "the gateway refused the connection",
                detail=(refused.response.body or b"").decode(errors="replace")[:200],
            ) from refused
        except (OSError, WebSocketException) as broken:
            raise RemoteError(
                f"the gateway at {gateway.url} cannot be reached", detail=type(broken).__name__
            ) from broken
        self._answers = FrameAnswers(
            min(window or hello["window"], hello["window"]), gateway.timeout
        )
        self._reader = threading.Thread(target=self._read, name="penstock-writer", daemon=True)
        self._reader.start()

    @property
    def acked(self) -> int:
        """Rows that Kafka has on all replicas."""
        return self._answers.acked

    @property
    def refused(self) -> list[tuple[int | None, PenstockError]]:
        """(number, reason) of every frame that was refused."""
        return self._answers.refused

    def write(
        self, rows: Rows, table: str | None = None, *, idempotency_key: str | None = None
    ) -> range:
        """Send rows and return the numbers of their frames; waits while the window is full.

        Raises:
            SchemaError: these rows cannot be sent.
            PenstockError: earlier frames were refused, or the connection is lost; it says how many
                of these rows were sent.
        """
        name = self._qualify(table) if table is not None else self._table
        if name is None:
            raise SchemaError(
                "which table?", code="E_BODY", hint="writer(table), or write(rows, table)"
            )
        frames = list(
            _objects(rows, name, idempotency_key)
            if is_objects(rows)
            else _tables(to_table(rows), name, idempotency_key)
        )
        total = sum(count for count, _ in frames)
        sent = 0
        first = self._answers.sent + 1
        try:
            self._answers.require_good()
            for count, make in frames:
                self._send(make(self._answers.next_number()))
                sent += count
        except PenstockError as error:
            words = (
                f"{sent} of the {total} rows of this call were sent"
                if sent
                else "the rows of this call were not sent"
            )
            raise type(error)(
                f"{error.message}; {words}", code=error.code, detail=error.detail, hint=error.hint
            ) from error
        return range(first, first + len(frames))

    def flush(self) -> int:
        """Wait for all answers; the rows acked so far. Raises PenstockError when frames were
        refused or answers do not come.
        """
        self._answers.wait_for_all()
        return self.acked

    def close(self) -> None:
        """Close the connection without waiting for answers."""
        self._closed = True
        self._socket.close()
        self._reader.join(self._timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def _send(self, frame: str | bytes) -> None:
        try:
            self._socket.send(frame)
        except ConnectionClosed as lost:
            raise self._answers.loss(lost) from lost

    def _read(self) -> None:
        try:
            for text in self._socket:
                self._answers.take(json.loads(text))
        except (ConnectionClosed, ValueError) as lost:
            reason: Exception = lost
        else:
            reason = ConnectionError("closed")
        if not self._closed:
            self._answers.lose(reason)


def _key(key: str | None, part: int, rows: int) -> str | None:
    return key if key is None or rows <= FRAME_ROWS else f"{key}/{part}"


def _objects(rows: Any, table: str, key: str | None) -> Iterator[_Frame]:
    """Frames of rows that are objects. Raises SchemaError."""
    for i in range(0, len(rows), FRAME_ROWS):
        part = rows[i : i + FRAME_ROWS]
        own = _key(key, i // FRAME_ROWS, len(rows))
        head = json.dumps({"table": table, **({"key": own} if own else {})})[1:-1]
        yield len(part), partial('{{"seq": {2}, {0}, "rows": {1}}}'.format, head, to_json(part))


def _tables(whole: pa.Table, table: str, key: str | None) -> Iterator[_Frame]:
    """Frames of rows that are a table."""
    for i, part in enumerate(chunks(whole, FRAME_ROWS)):
        own = _key(key, i, whole.num_rows)
        yield (
            part.num_rows,
            partial(
                _stream, part, {"penstock.table": table, **({"penstock.key": own} if own else {})}
            ),
        )


def _stream(part: pa.Table, metadata: dict[str, str], number: int) -> bytes:
    return to_stream(part, {"penstock.seq": str(number), **metadata})
