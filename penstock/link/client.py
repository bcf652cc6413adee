"""The client's end of the link: one WebSocket to another deployment, with any number of channels on
it.

Threads: one reads; callers ask from any thread and wait on their own channel. Rows wait in a
channel up to the credit it gave, so a slow reader slows its sender down and nobody else. A link
that breaks fails every channel with `E_LINK_LOST`; who holds a token opens a new one and goes on.
Refused here: deciding whether to try again.
"""

from __future__ import annotations

import base64
import itertools
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    WebSocketException,
)
from websockets.sync.client import ClientConnection, connect

from penstock.client.wire import error_of
from penstock.errors import AuthError, CatalogError, PenstockError, RemoteError
from penstock.link.description import Description
from penstock.link.frames import (
    CREDIT,
    MAX_FRAME,
    ORIGIN_HEADER,
    PATH,
    VERSION,
    VERSION_HEADER,
    pack,
    unpack,
)
from penstock.targets import reason_of

if TYPE_CHECKING:
    from penstock.reach import Reach

DEFAULT_PORT = 7707
DEFAULT_TLS_PORT = 7708


class LinkLost(RemoteError):
    """The link broke, or could not be made: another try may find it."""

    code = "E_LINK_LOST"


@dataclass(frozen=True)
class Address:
    """Where a deployment's federation room listens, and as whom to go there. Never printed with its
    password.
    """

    host: str
    port: int
    user: str = "root"
    password: str = ""
    secure: bool = False
    #: certificates to trust besides the system's (a PEM file)
    ca_file: str | None = None
    #: where links may go; None: anywhere
    allowed: Reach | None = None

    @property
    def shown(self) -> str:
        return f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({self.user}@{self.shown}{' secure' if self.secure else ''})"


@dataclass(frozen=True)
class Message:
    """One message of a channel: `kind` is its `type`, `rows` what it carries."""

    header: dict[str, Any]
    rows: pa.Table | None = None

    @property
    def kind(self) -> str:
        return str(self.header.get("type", ""))


class Channel:
    """One question and its answers."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.number = number
        self._inbox: queue.Queue[Message | PenstockError] = queue.Queue()
        self._taken = 0
        self._failed: PenstockError | None = None

    def put(self, item: Message | PenstockError) -> None:
        """Called by the thread that reads the link."""
        self._inbox.put(item)

    def get(self, timeout: float | None = None) -> Message | None:
        """The next message; None when none came in *timeout* seconds.

        Raises:
            PenstockError: what the other side said, or E_LINK_LOST.
        """
        if self._failed is not None:
            raise self._failed
        try:
            item = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(item, PenstockError):
            self._failed = item
            raise item
        if item.rows is not None:
            self._taken += 1
            if self._taken >= CREDIT // 2:
                self._link.send({"ch": self.number, "op": "credit", "n": self._taken})
                self._taken = 0
        return item

    @property
    def waiting(self) -> bool:
        """Whether `get` has something to give at once."""
        return not self._inbox.empty()

    def expect(self, kind: str, timeout: float) -> Message:
        """The next message, which must be of *kind*. Raises PenstockError."""
        message = self.get(timeout)
        if message is None:
            raise RemoteError(
                f"{self._link.address.shown} does not answer",
                code="E_TIMEOUT",
                detail=f"within {timeout:g} s",
            )
        if message.kind != kind:
            raise RemoteError(
                "the other side answers out of turn", detail=f"{message.kind}, not {kind}"
            )
        return message

    def send(self, header: dict[str, Any], rows: pa.Table | None = None) -> None:
        self._link.send({"ch": self.number, **header}, rows)

    def close(self) -> None:
        """Ask the other side to stop; nothing comes after this."""
        self._link.forget(self)


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
        self._socket = _connect(address, timeout, ping_seconds)
        #: bytes of rows received, compressed as they came
        self.received = 0
        self._reader = threading.Thread(
            target=self._read, name=f"link-{address.shown}", daemon=True
        )
        self._reader.start()

    # ---------------------------------------------------------------- questions

    def describe(self, table: str, database: str = "") -> Description:
        """What the table looks like over there. Raises PenstockError."""
        return Description.from_json(
            self._ask({"op": "describe", "table": table, "database": database})["table"]
        )

    def resolve(
        self,
        table: str,
        query: str | None = None,
        serial: int | None = None,
        *,
        timeout: float | None = None,
    ) -> Description:
        """A table in the scope of a running query: a stream, a view or a database, by name or
        serial. Raises PenstockError.
        """
        request = {"op": "describe", "table": table, "query": query, "serial": serial}
        return Description.from_json(self._ask(request, timeout)["table"])

    def information(self) -> dict[str, Any]:
        """Who is there: `deployment` (an id that stays), `queries` (name, serial and state of each
        stream and view).
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
        """The rows of one SELECT, as of now. Raises PenstockError.

        Args:
            positions: also say, in the schema's metadata, up to where in the log the rows go
                (`penstock.token`).
            timeout: seconds for all of it; None: as long as pieces of it come.
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
        """The same in pieces as they come; at least one, which may be empty."""
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
        """Rows that pass a SELECT, as they come. Raises PenstockError.

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
        """A channel that takes rows for *table*: `append_rows`, then an `ack` for each. Its first
        message is `opened`.

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
        """A new channel with its first message sent, less what is off in it: so an older peer need
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
            raise self._lost(lost) from None

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
                    channel.put(Message(header, rows))
            reason = ConnectionError("closed")
        except Exception as wrong:  # whatever the other side sent: who waits is told
            reason = wrong
        lost = self._lost(reason)
        with self._lock:
            self._failed, waiting = lost, list(self._channels.values())
        for channel in waiting:
            channel.put(lost)

    def _lost(self, reason: Exception) -> LinkLost:
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


def _connect(address: Address, timeout: float, ping_seconds: float) -> ClientConnection:
    scheme = "wss" if address.secure else "ws"
    basic = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
    host = f"[{address.host}]" if ":" in address.host else address.host
    headers = {"Authorization": f"Basic {basic}", VERSION_HEADER: str(VERSION)}
    if address.allowed is not None and address.allowed.own.identity:
        headers[ORIGIN_HEADER] = address.allowed.own.identity
    try:
        return connect(
            f"{scheme}://{host}:{address.port}{PATH}",
            sock=_reached(address, timeout),
            ssl=_tls(address),
            compression=None,
            max_size=MAX_FRAME,
            open_timeout=timeout,
            ping_interval=ping_seconds,
            ping_timeout=ping_seconds * 2,
            close_timeout=1.0,
            max_queue=CREDIT,
            proxy=None,
            legacy=True,
            additional_headers=headers,
        )
    except InvalidStatus as refused:
        if refused.response.status_code in (401, 403):
            raise AuthError(
                f"{address.shown} refuses user {address.user}",
                hint="check user and password of the external stream",
            ) from None
        if refused.response.status_code == 421 and ORIGIN_HEADER in headers:
            raise CatalogError(
                f"{address.shown} may not be connected to",
                code="E_EXTERNAL_HOST",
                detail="this mesh itself answers there",
                hint="SELECT, streams and subscriptions read the mesh's own tables",
            ) from None
        if refused.response.status_code == 426:
            raise RemoteError(
                f"{address.shown} speaks another version of the link",
                code="E_LINK_VERSION",
                detail=f"this side speaks {VERSION}",
            ) from None
        raise LinkLost(f"{address.shown} refuses the link", detail=reason_of(refused)) from None
    except ssl.SSLCertVerificationError as untrusted:
        raise RemoteError(
            f"the certificate of {address.shown} is not trusted",
            code="E_TLS",
            detail=untrusted.verify_message,
            hint="renew it, or name its authority with ca_file",
        ) from None
    except (ssl.SSLError, InvalidHandshake) as wrong:
        hint = (
            "is that the port for secure links?"
            if address.secure
            else "is that the port of the federation room?"
        )
        raise LinkLost(
            f"{address.shown} does not answer as a federation room does",
            detail=reason_of(wrong),
            hint=hint,
        ) from None
    except (OSError, WebSocketException, EOFError) as down:
        raise LinkLost(f"{address.shown} cannot be reached", detail=reason_of(down)) from None


def _reached(address: Address, timeout: float) -> socket.socket | None:
    """A connection to an address that was checked, so that a name which means another one a moment
    later gains nothing; None: anywhere may be gone to. Raises CatalogError, OSError.
    """
    if address.allowed is None:
        return None
    failed: OSError = socket.gaierror("nobody has that name")
    for place in address.allowed.addresses(address.host, address.port):
        try:
            made = socket.create_connection((place, address.port), timeout)
        except OSError as down:
            failed = down
        else:
            made.settimeout(None)
            return made
    raise failed


def _tls(address: Address) -> ssl.SSLContext | None:
    if not address.secure:
        return None
    try:
        return ssl.create_default_context(cafile=address.ca_file)
    except (OSError, ssl.SSLError) as wrong:
        raise RemoteError(
            "the file of certificates to trust cannot be read",
            code="E_TLS",
            detail=str(wrong)[:200],
        ) from None


def connect_any(
    replicas: Sequence[Address], *, timeout: float = 10.0, ping_seconds: float = 10.0
) -> Link:
    """A link to the first of *replicas* that can be reached; one that answers with an error ends
    the search.

    Raises:
        LinkLost: none can.
    """
    said = []
    for address in replicas:
        try:
            return Link(address, timeout=timeout, ping_seconds=ping_seconds)
        except LinkLost as down:
            said.append(f"{down.message}: {down.detail}")
    raise LinkLost("no replica can be reached", detail="; ".join(said))


class Links:
    """Links kept open between questions, one for each address and group of replicas.
    Thread-safe.
    """

    def __init__(self, *, timeout: float = 10.0, idle_seconds: float = 60.0) -> None:
        self._timeout = timeout
        self._idle = idle_seconds
        self._lock = threading.Lock()
        self._open: dict[tuple[Address, ...], tuple[Link, float]] = {}

    def get(self, replicas: tuple[Address, ...]) -> Link:
        """A living link to one of *replicas*. Raises PenstockError."""
        now = time.monotonic()
        with self._lock:
            found = self._open.get(replicas)
            for key, (link, used) in list(self._open.items()):
                if not link.alive or (now - used > self._idle and key != replicas):
                    del self._open[key]
                    threading.Thread(target=link.close, daemon=True).start()
            if found is not None and found[0].alive:
                self._open[replicas] = (found[0], now)
                return found[0]
        made = connect_any(replicas, timeout=self._timeout)
        with self._lock:
            self._open[replicas] = (made, now)
        return made

    def query(
        self, replicas: tuple[Address, ...], sql: str, database: str, timezone: str
    ) -> pa.Table:
        """The rows of one SELECT. A link that is lost while they come costs another question.
        Raises PenstockError.
        """
        for _ in replicas:
            link = self.get(replicas)
            try:
                return link.query(sql, database, timezone)
            except LinkLost:
                link.close()
        return self.get(replicas).query(sql, database, timezone)

    def close(self) -> None:
        with self._lock:
            links = [link for link, _ in self._open.values()]
            self._open = {}
        for link in links:
            link.close()
