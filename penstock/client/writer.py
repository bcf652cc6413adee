"""`Writer`: rows over one WebSocket, with many frames under way and an answer for each.

A frame that was not answered when the connection broke may or may not be written; `Writer` does not send it again by itself but
says so, with the number of rows that are certain. Frames with an idempotency key may be sent again safely.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect

from penstock.client.wire import Rows, chunks, error_of, is_objects, to_stream, to_table
from penstock.errors import AuthError, BusError, PenstockError, RemoteError, SchemaError

#: rows of one frame; larger writes are cut
FRAME_ROWS = 10_000


class Writer:
    """Use it in a `with`: leaving it waits for all answers. One thread writes."""

    def __init__(
        self,
        url: str,
        authorization: str,
        table: str | None,
        qualify: Callable[[str], str],
        *,
        window: int | None,
        timeout: float,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """See `Connection.writer`."""
        self._table, self._qualify, self._timeout = table, qualify, timeout
        self._lock = threading.Condition()
        self._sent = self._answered = 0
        #: rows that Kafka has on all replicas
        self.acked = 0
        self._failed: PenstockError | None = None
        self._closed = False
        try:
            self._socket = connect(
                url.replace("http", "ws", 1) + "/v1/ingest",
                additional_headers={"Authorization": authorization},
                max_size=1 << 20,
                compression=None,
                ssl=context,
                open_timeout=timeout,
            )
            hello = json.loads(self._socket.recv(timeout))
        except InvalidStatus as refused:
            kind: type[PenstockError] = AuthError if refused.response.status_code in (401, 403) else RemoteError
            raise kind(
                "the gateway refused the connection", detail=(refused.response.body or b"").decode(errors="replace")[:200]
            ) from refused
        except (OSError, WebSocketException) as broken:
            raise RemoteError(f"the gateway at {url} cannot be reached", detail=type(broken).__name__) from broken
        self._window = min(window or hello["window"], hello["window"])
        self._reader = threading.Thread(target=self._read, name="penstock-writer", daemon=True)
        self._reader.start()

    def write(self, rows: Rows, table: str | None = None, *, idempotency_key: str | None = None) -> None:
        """Send rows; waits while the window is full. An earlier frame's failure is raised here or by `flush`.

        Raises:
            PenstockError: a frame was refused, or the connection is lost.
        """
        name = self._qualify(table) if table is not None else self._table
        if name is None:
            raise SchemaError("which table?", code="E_BODY", hint="writer(table), or write(rows, table)")
        if is_objects(rows):
            assert isinstance(rows, (list, tuple))
            for i in range(0, len(rows), FRAME_ROWS):
                key = _key(idempotency_key, i // FRAME_ROWS, len(rows))
                frame = {"seq": self._room(), "table": name, "rows": list(rows[i : i + FRAME_ROWS]), **({"key": key} if key else {})}
                self._send(json.dumps(frame, default=str))
            return
        whole = to_table(rows)
        for i, part in enumerate(chunks(whole, FRAME_ROWS)):
            key = _key(idempotency_key, i, whole.num_rows)
            metadata = {"penstock.seq": str(self._room()), "penstock.table": name, **({"penstock.key": key} if key else {})}
            self._send(to_stream(part, metadata))

    def flush(self) -> int:
        """Wait for all answers; the rows acked so far. Raises PenstockError when a frame failed or answers do not come."""
        with self._lock:
            done = self._lock.wait_for(lambda: self._answered >= self._sent or self._failed is not None, self._timeout)
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed
            if not done:
                raise BusError(f"{self._sent - self._answered} frames have no answer", detail=f"after {self._timeout:g} s", retryable=True)
            return self.acked

    def close(self) -> None:
        """Close the connection without waiting for answers."""
        self._closed = True
        self._socket.close()
        self._reader.join(self._timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def _room(self) -> int:
        """Wait for room in the window; the number of the next frame."""
        with self._lock:
            room = self._lock.wait_for(lambda: self._sent - self._answered < self._window or self._failed is not None, self._timeout)
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed
            if not room:
                raise BusError("the gateway answers no frame", detail=f"after {self._timeout:g} s", retryable=True)
            self._sent += 1
            return self._sent

    def _send(self, frame: str | bytes) -> None:
        try:
            self._socket.send(frame)
        except ConnectionClosed as lost:
            raise self._lost(lost) from lost

    def _read(self) -> None:
        try:
            for text in self._socket:
                self._take(json.loads(text))
        except (ConnectionClosed, ValueError) as lost:
            reason: Exception = lost
        else:
            reason = ConnectionError("closed")
        with self._lock:
            if not self._closed and self._answered < self._sent:
                self._failed = self._failed or self._lost(reason)
            self._lock.notify_all()

    def _take(self, answer: dict[str, Any]) -> None:
        with self._lock:
            self._answered += 1
            if "ack" in answer:
                self.acked += int(answer["rows"])
            elif self._failed is None:
                self._failed = error_of(answer["error"])
            self._lock.notify_all()

    def _lost(self, reason: Exception) -> PenstockError:
        open_ = self._sent - self._answered
        hint = "write them again under the same idempotency keys"
        return RemoteError(f"the connection is lost; {open_} frames have no answer", detail=str(reason)[:200], hint=hint)


def _key(key: str | None, part: int, rows: int) -> str | None:
    return key if key is None or rows <= FRAME_ROWS else f"{key}/{part}"
