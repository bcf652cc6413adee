"""Targets `http://` and `https://`: CloudEvents in POST requests, one request at a time.

An answer with a status of 2xx confirms a request. Redirects and the environment's proxies are not
followed, and no more than the status and `Retry-After` of an answer is looked at. Each connection
is dialled to an address that was checked for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore

from penstock.basic_auth import basic_header
from penstock.outbound.targets import Resolved, endpoint, reason_of
from services.notifier.cloud_events import (
    CloudEvent,
    body_of,
    cloud_events,
    request_id,
    trace_headers,
)
from services.notifier.delivery_spans import context_to_tell
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.signing import read_key, signature_headers
from services.notifier.surroundings import Surroundings
from services.notifier.target_connection import ConnectionBroke, TargetFailed, TargetLimits

_MOST_MESSAGES = 64
#: of one request: web servers and frameworks take 100 kB without being told to
_MOST_EVENTS = 100
_MOST_SIZE = 64 << 10
#: of an answer's body; the connection of a longer one is not used again
_MOST_ANSWER = 64 << 10
_ANSWER_SECONDS = 2.0
#: a connection at rest is closed, so that the next one is checked anew
_REST_SECONDS = 30.0
#: no target keeps its messages waiting for longer
_MOST_RETRY_AFTER = 3600.0
_TOO_LARGE = 413


class HttpTarget:
    """A `TargetConnection`."""

    def __init__(self, target: NotifyTarget, around: Surroundings) -> None:
        settings = around.settings
        self.listed = True
        self.limits = TargetLimits(_MOST_MESSAGES, _MOST_SIZE, settings.http_retry_max)
        self._target = target
        self._around = around
        self._key: bytes | None = None
        self._pool: httpcore.AsyncConnectionPool | None = None
        #: for the first connection of the pool
        self._found: Resolved | None = None
        #: events of messages that were not confirmed as a whole, which the target has
        self._had: set[str] = set()
        self._at_once = _MOST_EVENTS

    async def open(self) -> None:
        settings = self._around.settings
        if self._target.signed_by:
            self._key = await asyncio.to_thread(read_key, settings.data_dir, self._target.signed_by)
        async with asyncio.timeout(settings.connect_seconds):
            self._found = await self._around.find(self._target)
        self.listed = self._found.listed
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=self._around.encryption(self._target),
            max_connections=1,
            keepalive_expiry=_REST_SECONDS,
            network_backend=_Network(self._next_address),
        )

    async def send(self, messages: Sequence[NotifyMessage]) -> None:
        events = [
            event
            for message in messages
            for event in cloud_events(message, context_to_tell(message, self._target))
        ]
        self._had &= {event.id for event in events}
        left = [event for event in events if event.id not in self._had]
        while left:
            some = _first(left, self._at_once)
            try:
                await self._post(some)
            except TimeoutError:
                self._at_once = max(len(some) // 4, 1)
                raise
            self._had.update(event.id for event in some)
            left = left[len(some) :]
        self._at_once = min(self._at_once * 2, _MOST_EVENTS)
        self._had.clear()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
        self._pool = None

    async def _next_address(self) -> str:
        """Return the address to dial: a target may end a connection behind each answer. Raises
        TargetFailed, TargetRefused, OSError.
        """
        found, self._found = self._found, None
        if found is None:
            found = await self._around.find(self._target)
            if self.listed and not found.listed:
                # what is on its way may be of a user who may not have this address notified
                raise ConnectionBroke("the connection broke")
        return found.address

    # ---------------------------------------------------------------- one request

    async def _post(self, events: Sequence[CloudEvent]) -> None:
        """Send one request. Raises TargetFailed, OSError."""
        assert self._pool is not None
        body, kind = body_of(events)
        headers = [
            *self._headers,
            ("Content-Type", kind),
            *trace_headers(events),
            *self._signature(events, body),
        ]
        timeout = {"connect": self._around.settings.connect_seconds}
        with _plain_errors():
            async with (
                asyncio.timeout(self._around.settings.ack_seconds),
                self._pool.stream(
                    "POST",
                    self._url,
                    headers=headers,
                    content=body,
                    extensions={"timeout": timeout},
                ) as answer,
            ):
                status = answer.status
                retry_after = self._retry_after(answer.headers)
                await _read_rest(answer)
        if not 200 <= status < 300:
            if status == _TOO_LARGE:
                self._at_once = max(len(events) // 4, 1)
            raise TargetFailed(f"it answers with HTTP status {status}", retry_after=retry_after)

    def _signature(self, events: Sequence[CloudEvent], body: bytes) -> list[tuple[str, str]]:
        if self._key is None:
            return []
        seconds = self._around.clock.now() // 10**9
        return signature_headers(self._key, request_id(events), seconds, body)

    def _retry_after(self, headers: Iterable[tuple[bytes, bytes]]) -> float:
        """Return for how many seconds an answer asks to be left alone."""
        for name, value in headers:
            if name.lower() == b"retry-after":
                asked = _seconds(value.decode("latin-1").strip(), self._around.clock.now() / 1e9)
                return min(max(asked, 0.0), _MOST_RETRY_AFTER)
        return 0.0

    @cached_property
    def _url(self) -> httpcore.URL:
        where = endpoint(self._target.url)
        parts = urlsplit(self._target.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = f"[{where.host}]" if ":" in where.host else where.host
        return httpcore.URL(
            scheme=where.scheme.encode(), host=host.encode(), port=where.port, target=path.encode()
        )

    @cached_property
    def _headers(self) -> list[tuple[str, str]]:
        """Those of all requests."""
        parts = urlsplit(self._target.url)
        user, _, host = parts.netloc.rpartition("@")
        headers = [("Host", host), ("User-Agent", "penstock-notifier"), ("Accept", "*/*")]
        if user:
            name, _, password = user.partition(":")
            header = basic_header(unquote(name), unquote(password))
            headers.append(("Authorization", header))
        return headers


class _Network(httpcore.AsyncNetworkBackend):
    """Dials the addresses that it is given, whatever name the library asks for."""

    def __init__(self, next_address: Callable[[], Awaitable[str]]) -> None:
        self._next_address = next_address
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **named: Any
    ) -> httpcore.AsyncNetworkStream:
        address = await self._next_address()
        return await self._network.connect_tcp(address, port, *args, **named)

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn the library's errors into those that deliveries know; without what was answered."""
    try:
        yield
    except httpcore.TimeoutException:
        raise TimeoutError from None
    except httpcore.ConnectError as error:
        raise TargetFailed(_reason_of_connect(error)) from None
    except httpcore.LocalProtocolError:
        raise TargetFailed("its address cannot be put into a request") from None
    except (httpcore.NetworkError, httpcore.RemoteProtocolError):
        raise ConnectionBroke("the connection broke") from None


def _reason_of_connect(error: BaseException | None) -> str:
    """Say why a connection could not be made: the system's error is somewhere behind *error*, and
    others that only say that all attempts failed may stand before it.
    """
    found: OSError | None = None
    while error is not None and (found is None or found.errno is None):
        if isinstance(error, OSError):
            found = error
        error = error.__cause__ or error.__context__
    return reason_of(found) if found is not None else "it cannot be reached"


async def _read_rest(answer: httpcore.Response) -> None:
    """Read the body of an answer, so that its connection can be used again; not if that is long or
    takes long.
    """
    size = 0
    with contextlib.suppress(
        TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException
    ):
        async with asyncio.timeout(_ANSWER_SECONDS):
            async for piece in answer.aiter_stream():
                size += len(piece)
                if size > _MOST_ANSWER:
                    return


def _first(events: Sequence[CloudEvent], most: int) -> Sequence[CloudEvent]:
    """Return the events of the next request, one at least."""
    size = 0
    for number, event in enumerate(events[:most]):
        size += len(event.text)
        if number and size > _MOST_SIZE:
            return events[:number]
    return events[:most]


def _seconds(text: str, now: float) -> float:
    """Return what Retry-After says: seconds or a date; 0 when it says neither."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() - now
