"""Subscriptions of the client: rows of a table or stream, or a stream's window events, from the
notifier's `/ws`.

A `Subscription` reconnects by itself and goes on behind the last item it gave out, so a loop over
it sees each row or event exactly once across cuts and restarts of the notifier. `token` can be kept
to continue in another process.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import tenacity
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection as SyncConnection
from websockets.sync.client import connect as connect_sync

from penstock.errors import AuthError, PenstockError, RemoteError

#: largest message accepted from the notifier
_MAX_MESSAGE = 64 << 20
#: too many requests, bad gateway, unavailable, gateway timeout
_PASSING = (429, 502, 503, 504)


@dataclass(frozen=True)
class Update:
    """One message: `rows` or `events` (dictionaries), and the token that continues behind it."""

    kind: Literal["rows", "events"]
    items: list[dict[str, Any]]
    token: str


class Subscription:
    """Iterate it (`for update in …` or `async for update in …`); `close` ends it. Not to be
    iterated twice at a time.
    """

    def __init__(
        self,
        url: str,
        authorization: str,
        request: dict[str, Any],
        *,
        start: str = "latest",
        patience: float = 60.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """
        Args:
            url: of the notifier, `ws://host:port`.
            authorization: header that says who subscribes.
            request: `stream` or `table`, `what`, `tables`.
            start: `latest`, `earliest`, or a token.
            patience: seconds to go on trying when the notifier can't be reached.
            context: what to trust (`wss://`).
        """
        self._url = url.rstrip("/") + "/ws"
        self._headers = {"Authorization": authorization}
        self._context = context
        self._request = request
        self._patience = patience
        #: continues behind the last update given out
        self.token = start
        self._sync: SyncConnection | None = None
        self._async: ClientConnection | None = None
        self._closed = False

    def _hello(self) -> str:
        return json.dumps({"action": "subscribe", "id": "s", **self._request, "from": self.token})

    def _update(self, text: str | bytes) -> Update | None:
        """An update, or None for an acknowledgement.

        Raises:
            PenstockError: the notifier refused or ended the subscription.
        """
        message = json.loads(text)
        kind = message["type"]
        if kind == "error":
            raise RemoteError(
                message["message"],
                code=message.get("code"),
                detail=message.get("detail", ""),
                hint=message.get("hint", ""),
            )
        if kind == "subscribed":
            self.token = message["token"]
            return None
        return Update(kind, message[kind], message["token"])

    def _retrying(self) -> dict[str, Any]:
        return {
            "retry": tenacity.retry_if_exception(_may_pass),
            "wait": tenacity.wait_exponential_jitter(multiplier=0.05, jitter=0.05, max=0.5),
            "stop": tenacity.stop_after_delay(self._patience),
            "reraise": True,
        }

    def open(self) -> Self:
        """Connect and subscribe now, instead of at the first iteration: whatever comes after this
        call is seen.
        """
        if self._sync is None:
            self._sync = self._connect()
        return self

    def _connect(self) -> SyncConnection:
        def attempt() -> SyncConnection:
            connection = connect_sync(
                self._url,
                additional_headers=self._headers,
                max_size=_MAX_MESSAGE,
                ssl=self._context,
                legacy=True,
            )
            connection.send(self._hello())
            self._update(connection.recv())
            return connection

        try:
            return tenacity.Retrying(**self._retrying())(attempt)
        except (OSError, WebSocketException) as error:
            raise _unreachable(self._url, error) from None

    def __iter__(self) -> Iterator[Update]:
        while not self._closed:
            self.open()
            assert self._sync is not None
            try:
                for text in self._sync:
                    update = self._update(text)
                    if update is not None:
                        self.token = update.token
                        yield update
            except ConnectionClosed:
                pass
            self._sync = None

    def next(self, timeout: float | None = None) -> Update:
        """The next update.

        Raises:
            TimeoutError: none came in *timeout* seconds.
        """
        while True:
            self.open()
            assert self._sync is not None
            try:
                update = self._update(self._sync.recv(timeout))
            except ConnectionClosed:
                self._sync = None
                continue
            if update is not None:
                self.token = update.token
                return update

    async def __aiter__(self) -> AsyncIterator[Update]:
        while not self._closed:
            self._async = await self._connect_async()
            try:
                async for text in self._async:
                    update = self._update(text)
                    if update is not None:
                        self.token = update.token
                        yield update
            except ConnectionClosed:
                pass
            self._async = None

    async def _connect_async(self) -> ClientConnection:
        async def attempt() -> ClientConnection:
            connection = await connect_async(
                self._url,
                additional_headers=self._headers,
                max_size=_MAX_MESSAGE,
                ssl=self._context,
            )
            await connection.send(self._hello())
            self._update(await connection.recv())
            return connection

        try:
            return await tenacity.AsyncRetrying(**self._retrying())(attempt)
        except (OSError, WebSocketException) as error:
            raise _unreachable(self._url, error) from None

    def close(self) -> None:
        """End the subscription; a loop over it ends."""
        self._closed = True
        if self._sync is not None:
            self._sync.close()

    async def aclose(self) -> None:
        self._closed = True
        if self._async is not None:
            await self._async.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def subscription_request(
    name: str,
    *,
    what: Literal["rows", "events"] = "rows",
    stream: bool = False,
    tables: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the request for *name* (`database.stream` or `database.table`); events need a
    stream.
    """
    request: dict[str, Any] = {
        "stream" if stream or what == "events" else "table": name,
        "what": what,
    }
    if tables is not None:
        request["tables"] = list(tables)
    return request


def _may_pass(error: BaseException) -> bool:
    """Whether to try again: a proxy in front of notifiers that come back answers for them with one
    of these.
    """
    if isinstance(error, InvalidStatus):
        return error.response.status_code in _PASSING
    return isinstance(error, (OSError, WebSocketException))


def _unreachable(url: str, error: Exception) -> PenstockError:
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        if status in (401, 403):
            return AuthError(
                "the notifier refused the connection",
                detail=(error.response.body or b"").decode(errors="replace").strip(),
            )
        return RemoteError(f"the notifier answered with status {status}")
    return RemoteError(
        f"the notifier at {url} can't be reached",
        detail=type(error).__name__,
        hint="is the mesh up? `penstock status` shows it",
    )
