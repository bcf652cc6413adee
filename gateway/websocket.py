"""Rows over WebSocket: /v1/ingest, frames in, one acknowledgement a frame out.

A text frame is `{"seq": 7, "table": "db.t", "rows": […], "key": "…"}`; a binary frame is an Arrow
IPC stream whose schema metadata holds `penstock.seq`, `penstock.table` and perhaps `penstock.key`.
The table may be given once, as `?table=db.t`. The answer is `{"ack": 7, "rows": 500}` when Kafka
has the rows on all replicas, or `{"nack": 7, "error": {…}}`. First comes `{"window": n,
"max_frame": bytes}`. Back-pressure: with `n` frames unanswered nothing more is read, so TCP slows
the sender down. Frames larger than a request may be are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from aiohttp import WSMsgType, web

from gateway.guard import RequestGuard, user_of
from gateway.idempotency import Receipt
from gateway.ingest import Rows, from_arrow, parse_json, weight
from gateway.intake import WriteIntake
from penstock.errors import AuthError, BusError, PenstockError, SchemaError
from penstock.rows import arrow_reader
from penstock.rows.arrow_reader import Limits, Opened
from penstock.runtime import audit, log

_log = log.get("gateway.websocket")
_PING_S = 20.0


class Socket:
    """The handler of row WebSockets; one instance serves all connections."""

    def __init__(self, intake: WriteIntake, window: int, max_frame: int) -> None:
        self._intake = intake
        self._window = window
        self._max_frame = max_frame
        self._open: set[web.WebSocketResponse] = set()

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/ingest", guard.wrap(self._connect))]

    async def close(self) -> None:
        """Tell every client that we go away."""
        for socket in list(self._open):
            await socket.close(code=1001, message=b"the gateway stops")

    async def _connect(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(
            max_msg_size=self._max_frame, heartbeat=_PING_S, compress=False
        )
        await socket.prepare(request)
        self._open.add(socket)
        try:
            await socket.send_str(
                json.dumps({"window": self._window, "max_frame": self._max_frame})
            )
            limits = arrow_reader.for_body(self._max_frame)
            await _Connection(
                socket,
                self._intake,
                self._window,
                request.query.get("table"),
                user_of(request),
                request.remote or "",
                limits,
            ).serve()
        finally:
            self._open.discard(socket)
        return socket


class _Connection:
    """One client: reads frames while the window has room, sends answers as they come."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        intake: WriteIntake,
        window: int,
        table: str | None,
        user: str,
        remote: str,
        limits: Limits,
    ) -> None:
        self._socket = socket
        self._intake = intake
        self._table = table
        self._limits = limits
        self._user = user
        self._remote = remote
        self._audited: set[str] = set()
        self._room = asyncio.Semaphore(window)
        self._window = window
        self._answers: asyncio.Queue[str | None] = asyncio.Queue()

    async def serve(self) -> None:
        # without a sender there is no room for more frames: if it fails, the connection ends
        async with asyncio.TaskGroup() as both:
            both.create_task(self._send())
            try:
                await self._read()
            finally:
                self._answers.put_nowait(None)

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                continue
            await self._room.acquire()
            await self._take(message.data)
        for _ in range(self._window):  # all answered before the sender stops
            await self._room.acquire()

    async def _send(self) -> None:
        while (answer := await self._answers.get()) is not None:
            try:
                if not self._socket.closed:
                    await self._socket.send_str(answer)
            except ConnectionError:
                pass  # the client is gone; what it sent is written all the same
            finally:
                self._room.release()

    async def _take(self, data: str | bytes) -> None:
        seq: Any = None
        try:
            seq, table, rows, key = from_text(data) if isinstance(data, str) else from_binary(data)
            table = table or self._table
            if not isinstance(table, str) or "." not in table:
                raise SchemaError('a frame names its table: "database.table"', code="E_BODY")
            database, _, name = table.partition(".")
            layout, child = await self._intake.locate_for(self._user, "WRITE", database, name)
            if isinstance(rows, Opened):
                rows = await from_arrow(rows, self._limits)
            digest = _digest(data) if key else ""
            size = weight(rows, len(data))
            future = await self._intake.submit_to(
                layout, rows, size=size, child=child, key=key, digest=digest
            )
        except PenstockError as error:
            self._refuse(seq, error)
            return
        except Exception:
            _log.exception("a frame found a bug")
            self._refuse(
                seq,
                BusError(
                    "this is a bug in the gateway; its log has the details", code="E_INTERNAL"
                ),
            )
            return
        future.add_done_callback(lambda done: self._answer(seq, done))

    def _answer(self, seq: Any, done: asyncio.Future[Receipt]) -> None:
        error = done.exception()
        if error is None:
            self._answers.put_nowait(json.dumps({"ack": seq, "rows": done.result().rows}))
        else:
            self._refuse(
                seq,
                error
                if isinstance(error, PenstockError)
                else BusError("the write was given up", code="E_INTERNAL"),
            )

    def _refuse(self, seq: Any, error: PenstockError) -> None:
        if (
            isinstance(error, AuthError) and error.message not in self._audited
        ):  # once, not for each of its frames
            self._audited.add(error.message)
            audit.note_refusal(self._user, self._remote, error)
        self._answers.put_nowait(json.dumps({"nack": seq, "error": error.to_dict()}))


def from_text(data: str) -> tuple[Any, str | None, Rows, str | None]:
    frame = parse_json(data)
    if not isinstance(frame, dict) or not isinstance(frame.get("rows"), list):
        raise SchemaError('a frame is {"seq": n, "table": "db.t", "rows": [{…}, …]}', code="E_BODY")
    key = frame.get("key")
    return frame.get("seq"), frame.get("table"), frame["rows"], None if key is None else str(key)


def from_binary(data: bytes) -> tuple[Any, str | None, Opened, str | None]:
    """What a binary frame says of itself; its rows are read once it is known that they may be
    written.
    """
    body = Opened(data)
    metadata = body.metadata
    seq = metadata.get("penstock.seq")
    return (
        int(seq) if seq is not None and seq.lstrip("-").isdigit() else seq,
        metadata.get("penstock.table"),
        body,
        metadata.get("penstock.key"),
    )


def _digest(data: str | bytes) -> str:
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
