"""Subscriptions of the client: rows of a table or stream, or a stream's window events, from the
notifier's `/ws`.

A `Subscription` reconnects by itself and goes on behind the last item it gave out, so a loop over
it sees each row or event exactly once across cuts and restarts of the notifier. While the notifier
is away it goes on trying, with growing pauses, and the log (`penstock.client`) says so. `token` can
be kept to continue in another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import (
    ConnectionClosed,
    InvalidStatus,
    InvalidURI,
    WebSocketException,
)
from websockets.sync.client import ClientConnection as SyncConnection
from websockets.sync.client import connect as connect_sync

from penstock.client.reconnecting import Reconnecting
from penstock.client.row_times import RowTimes
from penstock.errors import AuthError, PenstockError, RemoteError
from penstock.notebook.live import Live
from penstock.notebook.markup import SHOWN_ROWS
from penstock.notebook.newest_rows import NewestRows
from penstock.notebook.view import NotebookView, moment

#: largest message accepted from the notifier
_MAX_MESSAGE = 64 << 20
#: too many requests, bad gateway, unavailable, gateway timeout
_PASSING = (429, 502, 503, 504)
#: a coroutine that waits looks so often whether it was closed
_LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Update:
    """One message: `rows` or `events` (dictionaries), and the token that continues behind it."""

    kind: Literal["rows", "events"]
    items: list[dict[str, Any]]
    token: str


class Subscription(Live):
    """Iterate it (`for update in …` or `async for update in …`), or `display` it in a notebook;
    `close` ends it. Not to be iterated twice at a time.
    """

    def __init__(
        self,
        url: str,
        authorization: str,
        request: dict[str, Any],
        *,
        start: str = "latest",
        patience: float | None = None,
        context: ssl.SSLContext | None = None,
        times: RowTimes | None = None,
    ) -> None:
        """
        Args:
            url: of the notifier, `ws://host:port`.
            authorization: header that says who subscribes.
            request: `stream` or `table`, `what`, `tables`.
            start: `latest`, `earliest`, or a token.
            patience: seconds to go on trying while the notifier can't be reached; None: until it is
                closed.
            context: what to trust (`wss://`).
            times: shows people ticks as times.
        """
        self._url = url.rstrip("/") + "/ws"
        self._headers = {"Authorization": authorization}
        self._context = context
        self._request = request
        #: continues behind the last update given out
        self.token = start
        self._sync: SyncConnection | None = None
        self._async: ClientConnection | None = None
        self._closed = threading.Event()
        self._newest = NewestRows()
        self._times = times or RowTimes()
        self._reconnecting = Reconnecting(
            f"the notifier at {self._url}", f"the subscription to {self.name}", patience
        )

    @property
    def name(self) -> str:
        """What is followed: `table plant.meters`, `window events of stream plant.minutely`."""
        kind = "stream" if "stream" in self._request else "table"
        events = "window events of " if self._request["what"] == "events" else ""
        return f"{events}{kind} {self._request[kind]}"

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

    def open(self) -> Self:
        """Connect and subscribe now, instead of at the first iteration: whatever comes after this
        call is seen.

        Raises:
            PenstockError: the notifier refuses, patience is over, or it was closed.
        """
        self._open_connection(None)
        return self

    def _open_connection(self, deadline: float | None) -> SyncConnection:
        """Return the connection, which is made when there is none. Raises TimeoutError: not until
        *deadline*.
        """
        connection = self._sync
        if connection is None:
            connection = self._sync = self._connect_until(deadline)
        if self._closed.is_set():
            # perhaps while it was made
            connection.close()
            raise _error_when_closed()
        return connection

    def _connect_until(self, deadline: float | None) -> SyncConnection:
        while not self._closed.is_set():
            wait = self._reconnecting.seconds_left()
            if wait > 0:
                left = wait if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self._url} was not reached in time")
                self._closed.wait(min(wait, left))
                continue
            try:
                connection = self._connect()
            except (OSError, WebSocketException) as error:
                self._put_off(error)
            else:
                self._reconnecting.succeeded()
                return connection
        raise _error_when_closed()

    def _connect(self) -> SyncConnection:
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

    def _put_off(self, error: Exception) -> None:
        """Put off the next attempt. Raises PenstockError: there is none."""
        if not _may_pass(error) or not self._reconnecting.failed(_reason(error)):
            raise _unreachable(self._url, error) from None

    def __iter__(self) -> Iterator[Update]:
        while not self._closed.is_set():
            try:
                yield self.next()
            except PenstockError:
                # closed while the next one was waited for
                if self._closed.is_set():
                    return
                raise

    def next(self, timeout: float | None = None) -> Update:
        """Return the next update.

        Raises:
            TimeoutError: none came in *timeout* seconds.
            PenstockError: the notifier refuses, patience is over, or it was closed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            connection = self._open_connection(deadline)
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            try:
                update = self._update(connection.recv(left))
            except ConnectionClosed:
                self._sync = None
                continue
            if update is not None:
                return self._give_out(update)

    def _give_out(self, update: Update) -> Update:
        self.token = update.token
        self._newest.add(update.items)
        return update

    async def __aiter__(self) -> AsyncIterator[Update]:
        while not self._closed.is_set():
            try:
                self._async = await self._connect_async()
            except (OSError, WebSocketException) as error:
                self._put_off(error)
                await self._sleep(self._reconnecting.seconds_left())
                continue
            self._reconnecting.succeeded()
            with contextlib.suppress(ConnectionClosed):
                async for text in self._async:
                    update = self._update(text)
                    if update is not None:
                        yield self._give_out(update)
            self._async = None

    async def _connect_async(self) -> ClientConnection:
        connection = await connect_async(
            self._url,
            additional_headers=self._headers,
            max_size=_MAX_MESSAGE,
            ssl=self._context,
        )
        await connection.send(self._hello())
        self._update(await connection.recv())
        return connection

    async def _sleep(self, seconds: float) -> None:
        """Wait, in steps short enough for `close` to be noticed."""
        end = time.monotonic() + seconds
        while not self._closed.is_set() and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_SECONDS))

    def view(self, rows: int = SHOWN_ROWS) -> NotebookView:
        """Return what it looks like: whether it is connected, and the newest rows given out. Their
        times are asked for once.
        """
        what = self._request["what"]
        came = self._newest.count
        last = f", the last at {moment(self._newest.at)}" if came else ""
        names, newest = self._newest.last(rows)
        facts = [f"{came:,} {what}{last}"]
        shown = self._times.shown(names, newest)
        return NotebookView(f"subscription to {self.name}", self._state(), facts, names, shown)

    def _state(self) -> str:
        if self._closed.is_set():
            return "closed"
        if self._reconnecting.away_since:
            return f"waits for the notifier since {self._reconnecting.away_since}"
        connected = self._sync is not None or self._async is not None
        return "connected" if connected else "not connected yet"

    def _await_change(self, seconds: float) -> bool:
        try:
            self.next(seconds)
        except TimeoutError:
            return True
        except PenstockError:
            if not self._closed.is_set():
                raise
        return not self._closed.is_set()

    def close(self) -> None:
        """End the subscription; a loop over it ends."""
        self._closed.set()
        if self._sync is not None:
            self._sync.close()

    async def aclose(self) -> None:
        """End the subscription; a loop over it with `async for` ends."""
        self._closed.set()
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


def _may_pass(error: Exception) -> bool:
    """Tell whether to try again: a proxy in front of notifiers that come back answers for them with
    some of the statuses. A wrong address or certificate stays wrong.
    """
    if isinstance(error, InvalidStatus):
        return error.response.status_code in _PASSING
    return not isinstance(error, (InvalidURI, ssl.SSLCertVerificationError))


def _error_when_closed() -> RemoteError:
    return RemoteError("the subscription is closed", hint="subscribe again")


def _reason(error: Exception) -> str:
    if isinstance(error, InvalidStatus):
        return f"status {error.response.status_code}"
    return type(error).__name__


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
