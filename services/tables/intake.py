"""Rows in: what producers write over WebSockets and single requests, and the answers.

Writes go to the leader: a producer's WebSocket is told where that is, a single POST is passed on.
WRITE on the table is asked for again with each write.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import WSMsgType, web

from penstock import tuning
from penstock.errors import PenstockError, RemoteError, SchemaError
from penstock.rows import arrow_reader
from penstock.rows.arrow_reader import Opened
from services.tables.forward import Forward
from services.tables.leadership_term import not_leader
from services.tables.lookup import FORWARDED, USER, Lookup
from services.tables.replica import Replica
from services.tables.settings import TablesSettings
from services.tables.writes import OFFSET_PREFIXES, ProducerWrite, WriteOutcome

Answer = dict[str, Any]


class _Reply:
    """Has the outcome of a producer's write sent to it at once: a future would wait for the loop's
    next turn to say it.
    """

    def __init__(
        self,
        tell: Callable[[Answer], None],
        where: Callable[[], Answer],
        took: Callable[[float], None],
    ) -> None:
        """
        Args:
            tell: takes the answer.
            where: says who leads, for a write that failed.
            took: takes the seconds that a write has waited for its answer.
        """
        self._tell = tell
        self._where = where
        self._took = took
        self._begun = time.monotonic()
        #: of the write, once it is known
        self.sequence = -1
        self._told = False

    def done(self) -> bool:
        return self._told

    def set_result(self, rows: int) -> None:
        self._told = True
        self._tell({"seq": self.sequence, "rows": rows})
        self._took(time.monotonic() - self._begun)

    def set_exception(self, error: PenstockError) -> None:
        self._told = True
        self._tell({"seq": self.sequence, "error": error.to_dict(), "leader": self._where()})


class ProducerIntake:
    """Event loop only."""

    def __init__(self, settings: TablesSettings, tables: Lookup, others: Forward) -> None:
        self._settings = settings
        self._tables = tables
        self._others = others
        self._limits = arrow_reader.for_body(settings.max_body)
        #: connections of producers
        self.producers = 0
        #: is told how many seconds each write has waited until it was confirmed
        self.on_confirmed: Callable[[float], None] = lambda _: None

    def routes(self) -> list[web.RouteDef]:
        rows = "/v1/tables/{db}/{table}"
        return [
            web.get("/v1/append", self._append),
            web.post(f"{rows}/rows", self._write),
            web.get(f"{rows}/producer", self._producer),
        ]

    async def _append(self, request: web.Request) -> web.WebSocketResponse:
        """A producer's writes to one table, each with an answer; several answers may come in one
        message.
        """
        user = request[USER]
        replica = self._tables.by_name(user, "WRITE", request.query.get("table", ""))
        socket = web.WebSocketResponse(
            max_msg_size=self._settings.max_body, compress=False, heartbeat=20.0
        )
        await socket.prepare(request)
        session = self._tables.session_of(replica)
        hello = {
            "type": "hello",
            "node": self._tables.alias,
            "leads": session is not None and session.serving,
        }
        await socket.send_str(json.dumps({**hello, "leader": self._tables.leader(replica)}))
        self.producers += 1
        answers: asyncio.Queue[Answer] = asyncio.Queue()
        try:
            # a producer that can get no answers is disconnected
            async with asyncio.TaskGroup() as both:
                sender = both.create_task(self._answer(socket, answers))
                async for message in socket:
                    if message.type is WSMsgType.BINARY:
                        await self._take(user, replica, message.data, answers)
                sender.cancel()
        finally:
            self.producers -= 1
        return socket

    async def _take(
        self, user: str, replica: Replica, data: bytes, answers: asyncio.Queue[Answer]
    ) -> None:
        reply = _Reply(answers.put_nowait, lambda: self._tables.leader(replica), self.on_confirmed)
        try:
            body = Opened(data)
            head = _head_of(body)
            reply.sequence = head.sequence
            self._tables.access.require(
                user, "WRITE", replica.table
            )  # it may have been revoked since
            session = self._tables.session(replica)
            session.submit(await self._write_of(head, body, reply))
        except PenstockError as error:
            reply.set_exception(error)

    async def _write_of(self, head: _Head, body: Opened, done: WriteOutcome) -> ProducerWrite:
        """The write in a message; a large one is read beside the event loop. Raises SchemaError."""
        size = len(body.data)
        if size <= tuning.ARROW_BYTES_DECODED_IN_LOOP:
            table = body.read(self._limits)
        else:
            table = await asyncio.to_thread(body.read, self._limits)
        rows = table.replace_schema_metadata(None)
        return ProducerWrite(
            head.producer,
            head.sequence,
            head.settled,
            rows,
            max(size, rows.nbytes),
            done,
            head.after,
        )

    @staticmethod
    async def _answer(socket: web.WebSocketResponse, answers: asyncio.Queue[Answer]) -> None:
        while True:
            batch = [await answers.get()]
            while not answers.empty():
                batch.append(answers.get_nowait())
            with contextlib.suppress(ConnectionError):
                await socket.send_str(json.dumps({"answers": batch}))

    async def _write(self, request: web.Request) -> web.Response:
        """One write over HTTP, on any node."""
        replica = self._tables.of_request(request, "WRITE")
        data = await request.read()
        begun = time.monotonic()
        try:
            written: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._tables.session(replica)  # on another node it is read, too: it need not be here
            body = Opened(data)
            write = await self._write_of(_head_of(body), body, written)
            self._tables.session(replica).submit(write)
            rows = await written
            self.on_confirmed(time.monotonic() - begun)
        except RemoteError as error:
            if error.code != "E_NOT_LEADER" or FORWARDED in request.headers:
                raise
            return await self._forward(request, replica, data, error)
        return web.json_response({"rows": rows, "node": self._tables.alias})

    async def _producer(self, request: web.Request) -> web.Response:
        """The last write of a producer that is certain, as the leader knows it; 0: none."""
        replica = self._tables.of_request(request, "WRITE")
        if not self._tables.session(replica).serving:
            raise not_leader(replica.name, "it is about to")
        known = replica.copy.producers.get(request.query.get("id", ""))
        return web.json_response({"sequence": known.sequence if known is not None else 0})

    async def _forward(
        self, request: web.Request, replica: Replica, data: bytes, error: PenstockError
    ) -> web.Response:
        standing = self._tables.standing(replica)
        if not standing.leader or standing.leader == self._tables.alias:
            raise error
        url = f"{standing.url}{request.path}"
        status, answer = await self._others.call("POST", url, data)
        return web.json_response(answer, status=status)


@dataclass(frozen=True)
class _Head:
    """What a producer's message says of itself, in the metadata of its schema."""

    producer: str
    sequence: int
    settled: int
    after: int | None


def _head_of(body: Opened) -> _Head:
    """Producer, sequence number and what is settled, without a look at the rows. Raises
    SchemaError.
    """
    meta = body.metadata
    try:
        producer = meta["penstock.producer"]
        sequence = int(meta["penstock.seq"])
        settled = int(meta.get("penstock.settled", sequence))
        after = int(meta["penstock.after"]) if "penstock.after" in meta else None
    except (KeyError, ValueError) as wrong:
        raise SchemaError("this is no write", code="E_BODY", detail=str(wrong)[:200]) from None
    if not 0 < len(producer) <= 128 or not 1 <= sequence < 1 << 63:
        raise SchemaError(
            "a write has a producer of at most 128 characters and a sequence number from 1 on",
            code="E_BODY",
        )
    if producer.startswith(OFFSET_PREFIXES):
        hint = f"choose a name that does not begin with {' or '.join(OFFSET_PREFIXES)}"
        raise SchemaError(
            "this producer's name is one of a subscription's offset", code="E_BODY", hint=hint
        )
    return _Head(producer, sequence, settled, after)
