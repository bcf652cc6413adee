"""A web server that a test tells what to answer, and deliveries to it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry

from penstock.outbound.targets import AllowList
from penstock.runtime.clock import Clock, SystemClock
from services.notifier.cursor import Mark
from services.notifier.delivery import TargetDelivery
from services.notifier.message import NotifyMessage, NotifyTarget, pack
from services.notifier.metrics import PushMetrics
from services.notifier.settings import NotifierSettings
from services.notifier.surroundings import Surroundings
from tests.unit.services.notifier.kit import entry, event, record

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True)
class Request:
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        found = json.loads(self.body)
        return found if isinstance(found, list) else [found]


@dataclass
class WebServer:
    """`answers` are given one after the other, then OK; None cuts the connection."""

    context: ssl.SSLContext | None = None
    port: int = 0
    answers: list[bytes | None] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    #: ends each connection behind its answer, without saying so
    cuts: bool = False
    talkers: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    def starts(self) -> list[int]:
        """Window starts in the order of first arrival."""
        found = {e["id"]: e["data"]["windowStart"] for r in self.requests for e in r.events}
        return list(found.values())

    async def come(self) -> None:
        """Listen, on the port that it had."""
        self._server = await asyncio.start_server(
            self.talk, "127.0.0.1", self.port, ssl=self.context
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def go(self) -> None:
        """Listen no more, and cut what is connected."""
        self._server.close()
        for task in list(self.talkers):
            task.cancel()
        await asyncio.gather(*self.talkers, return_exceptions=True)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.talkers.add(task)
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if self.cuts:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.talkers.discard(task)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.rstrip("\r\n").split("\r\n")
    headers = {k.lower(): v for k, v in (f.split(": ", 1) for f in fields)}
    return Request(line, headers, await reader.readexactly(int(headers["content-length"])))


@asynccontextmanager
async def web_server(context: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """Serve until the end; with *context* over TLS."""
    made = WebServer(context)
    await made.come()
    try:
        yield made
    finally:
        await made.go()


class Delivering:
    """One delivery with what it reports."""

    def __init__(
        self,
        url: str,
        on_failure: str = "pause",
        *,
        signed_by: str = "",
        data_dir: Path = Path("/nowhere"),
        allow: tuple[str, ...] = (),
        is_own: Callable[[str, int], bool] = lambda *_: False,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        self.target = NotifyTarget(url, cast(Any, on_failure), signed_by)
        self.settled = asyncio.Event()
        self.marks: list[int] = []
        pauses = {"retry_min": 0.01, "retry_max": 0.02, "http_retry_max": 0.05}
        none = cast(Any, None)
        around = Surroundings(
            NotifierSettings(data_dir=data_dir, **{**pauses, "connect_seconds": 5, **settings}),
            AllowList(allow),
            is_own,
            PushMetrics(CollectorRegistry()),
            none,
            none,
            lambda _: 10**6,
            lambda _, partition, mark: self.marks.append(mark.offset),
            lambda _: self.settled.set(),
            clock=clock or SystemClock(),
        )
        self.one = TargetDelivery(self.target, around)
        self.one.follow(0, Mark(0), behind=False)
        self._offset = 0

    def offer(
        self,
        *numbers: int,
        events: int = 1,
        padding: int = 0,
        groups: int = 1,
        trace: str | None = None,
    ) -> None:
        """One message of *events* events for each number, its first window start; of *groups* in
        turn.
        """
        for number in numbers:
            made = [
                event(
                    windowStart=number + i,
                    eventTime=1733284887197,
                    groupId=str(53 + (number + i) % groups),
                    **({"pad": "x" * padding} if padding else {}),
                )
                for i in range(events)
            ]
            self.one.offer(self.message(self._offset, made, trace))
            self._offset += 1

    def message(
        self, offset: int, events: list[dict[str, Any]], trace: str | None = None
    ) -> NotifyMessage:
        packed = pack(entry(), record(events, offset=offset, trace=trace), 0, offset, 1)
        assert packed is not None
        return packed

    async def delivered(self, seconds: float = 10) -> None:
        """Return when the target has all that was offered."""
        async with asyncio.timeout(seconds):
            while not self.one.has_settled(0, self._offset):
                self.settled.clear()
                await self.settled.wait()


@asynccontextmanager
async def delivering(url: str, on_failure: str = "pause", **more: Any) -> AsyncIterator[Delivering]:
    made = Delivering(url, on_failure, **more)
    made.one.start()
    try:
        yield made
    finally:
        await made.one.stop()
