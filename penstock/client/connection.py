"""`penstock.connect`: statements, queries, rows and subscriptions over one gateway."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote, urlsplit

import httpx

from penstock.client.result import Count, Result
from penstock.client.stream_tables import StreamTables
from penstock.client.subscribe import Subscription, subscription_request
from penstock.client.values import to_json
from penstock.client.wire import (
    ARROW,
    CHUNK_ROWS,
    Rows,
    chunks,
    from_stream,
    is_objects,
    notices_of,
    to_stream,
    to_table,
)
from penstock.client.writer import Writer
from penstock.errors import AuthError, CatalogError, PenstockError, RemoteError
from penstock.remote_errors import error_of
from penstock.runtime import tls

if TYPE_CHECKING:
    from penstock.client.stream import Stream


class Connection(StreamTables):
    """A gateway as one user. Safe to use from several threads; `close` it or use it in a `with`."""

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        *,
        database: str | None = None,
        timezone: str = "UTC",
        timeout: float = 60.0,
        notifier_url: str | None = None,
        token: str | None = None,
        ca: str | Path | None = None,
    ) -> None:
        """
        Args:
            url: of the gateway, `http://host:port` or `https://host:port`.
            user: to log in as.
            password: of that user.
            database: for names without one.
            timezone: of times without one in statements.
            timeout: seconds that a request may take.
            notifier_url: of the notifier; by default what the gateway says.
            token: instead of user and password (see `token()`).
            ca: PEM file of authorities to trust besides the machine's own.
        """
        super().__init__()
        self.url = url.rstrip("/")
        self.database = database
        self.timezone = timezone
        self._user = user
        self._password = password
        self._timeout = timeout
        self._notifier_url = notifier_url
        self._token = token
        self._context = tls.client(ca) if self.url.startswith("https") else None
        headers = {"Authorization": self._header()}
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, verify=self._context or True
        )

    # ---------------------------------------------------------------- statements

    def execute(
        self, sql: str, *, database: str | None = None, idempotency_key: str | None = None
    ) -> Count:
        """Run statements in order and return the last one's number of affected rows, with the
        `notices` of all.

        Args:
            sql: one statement or several.
            database: for names without one; by default the connection's.
            idempotency_key: makes a repeated INSERT count once.

        Raises:
            PenstockError: whatever the gateway says.
        """
        found = self._query(sql, database, idempotency_key)
        table = found.table
        rows = (
            int(table.column(0)[0].as_py())
            if table.column_names == ["affected_rows"]
            else table.num_rows
        )
        return Count(rows, found.notices)

    def query(self, sql: str, *, database: str | None = None) -> Result:
        """Run a statement and return its rows. Raises PenstockError."""
        return self._query(sql, database, None)

    def _query(self, sql: str, database: str | None, key: str | None) -> Result:
        body = {"sql": sql, "database": database or self.database, "timezone": self.timezone}
        headers = {"Accept": ARROW} | ({"Idempotency-Key": key} if key else {})
        answer = self._send("/v1/query", json.dumps(body).encode(), "application/json", headers)
        return Result(from_stream(answer.content), notices=notices_of(answer.headers))

    # ---------------------------------------------------------------- rows

    def write(self, table: str, rows: Rows, *, idempotency_key: str | None = None) -> Count:
        """Write rows and return their number, with `notices`, when Kafka has them on all replicas.

        Args:
            table: supertable, child table or plain table, `[database.]name`. Rows of a supertable
                name theirs in `tbname`.
            rows: a list of dicts, or an Arrow, polars or pandas table; NaN is NULL.
            idempotency_key: makes a repeated call count once; parts of a large call get keys of
                their own from it.

        Raises:
            SchemaError: a row does not fit; it names row and column.
            OverloadError, BusError: try again later.
        """
        path = self._path(table)
        if is_objects(rows):
            assert isinstance(rows, (list, tuple))
            bodies = [
                to_json(rows[i : i + CHUNK_ROWS]).encode() for i in range(0, len(rows), CHUNK_ROWS)
            ]
            kind = "application/json"
        else:
            bodies = [to_stream(part) for part in chunks(to_table(rows), CHUNK_ROWS)]
            kind = ARROW
        written = 0
        notices = list[str]()
        for i, body in enumerate(bodies):
            key = (
                idempotency_key
                if len(bodies) == 1 or idempotency_key is None
                else f"{idempotency_key}/{i}"
            )
            answer = self._send(path, body, kind, {"Idempotency-Key": key} if key else {})
            written += int(answer.json()["rows"])
            notices += notices_of(answer.headers)
        return Count(written, notices)

    def last(self, table: str, names: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The latest row of each child table, from Redis: fast, and up to a second old. Times are
        ticks.

        Args:
            table: supertable, child table or plain table.
            names: of a supertable, only these children.
        """
        query = "&".join(f"tbname={quote(name, safe='')}" for name in names)
        found: list[dict[str, Any]] = self._send(
            self._path(table, "last") + (f"?{query}" if query else ""), None, "", {}
        ).json()["rows"]
        return found

    def writer(self, table: str | None = None, *, window: int | None = None) -> Writer:
        """A stream of writes over one WebSocket, many under way at once.

        Args:
            table: for `write` calls that name none.
            window: most frames without an answer; by default what the gateway allows.
        """
        return Writer(
            self.url,
            self._header(),
            table and self._qualify(table),
            self._qualify,
            window=window,
            timeout=self._timeout,
            context=self._context,
        )

    # ---------------------------------------------------------------- the rest

    def subscribe(
        self,
        name: str,
        *,
        what: Literal["rows", "events"] = "rows",
        stream: bool = False,
        tables: Sequence[str] | None = None,
        start: str = "latest",
    ) -> Subscription:
        """Follow a table or stream: iterate the result, with `for` or `async for`.

        Args:
            name: `[database.]name` of a table, or of a stream (with *stream*, or for its window
                events).
            what: result rows, or window events.
            stream: *name* is a stream's, not a table's.
            tables: only these child tables.
            start: `latest`, `earliest` or an update's token.
        """
        if self._notifier_url is None:
            self.check()
            assert self._notifier_url is not None
        request = subscription_request(self._qualify(name), what=what, stream=stream, tables=tables)
        context = self._context if self._notifier_url.startswith("wss") else None
        return Subscription(
            self._notifier_url,
            self._user,
            self._password,
            request,
            start=start,
            token=self._token,
            context=context,
        )

    def token(self, seconds: int = 86_400) -> str:
        """A token that stands for this user until it expires, or until the password changes: for
        `connect(url, token=…)`.
        """
        return str(
            self._send(
                "/v1/tokens", json.dumps({"seconds": seconds}).encode(), "application/json", {}
            ).json()["token"]
        )

    def stream(self, sql: str, *, start: str = "latest", database: str | None = None) -> Stream:
        """An unbounded SELECT that filters and projects: iterate the result for Arrow tables of
        rows as they come.

        Args:
            sql: over one table or external stream.
            start: `latest`, `earliest` or a message's token.
            database: for a name without one; by default the connection's.
        """
        from penstock.client.stream import Stream
        from penstock.link.address import Address

        link = urlsplit(self.federation_url())
        host = (
            link.hostname
            if link.hostname not in (None, "0.0.0.0", "::")
            else urlsplit(self.url).hostname
        )
        address = Address(
            host or "127.0.0.1", link.port or 0, self._user, self._password, link.scheme == "wss"
        )
        return Stream(
            address, sql, database or self.database or "", start=start, timezone=self.timezone
        )

    def drain(self, database: str | None = None, *, depth: int = 1) -> None:
        """Return when all that was written has gone through *depth* streams in a row and into the
        store. Raises BusError.
        """
        home = database or self.database
        self._send(f"/v1/drain?depth={depth}" + (f"&db={quote(home)}" if home else ""), b"", "", {})

    def check(self) -> None:
        """Ask the gateway who it is. Raises AuthError or RemoteError."""
        info = self._send("/v1/info", None, "", {}).json()
        self._notifier_url = self._notifier_url or str(info["notifier_url"])

    def federation_url(self) -> str:
        """Ask where the deployment answers links. Raises AuthError or RemoteError."""
        return str(self._send("/v1/info", None, "", {}).json()["federation_url"])

    def _default_database(self) -> str | None:
        return self.database

    def close(self) -> None:
        self.close_stream_tables()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _qualify(self, table: str) -> str:
        if "." in table:
            return table
        if self.database is None:
            raise CatalogError(
                "which database?",
                code="E_WHICH_DATABASE",
                hint=f"write database.{table}, or connect(…, database=…)",
            )
        return f"{self.database}.{table}"

    def _path(self, table: str, what: str = "rows") -> str:
        database, _, name = self._qualify(table).partition(".")
        return f"/v1/tables/{quote(database, safe='')}/{quote(name, safe='')}/{what}"

    def _header(self) -> str:
        if self._token is not None:
            return f"Bearer {self._token}"
        return "Basic " + base64.b64encode(f"{self._user}:{self._password}".encode()).decode()

    def _send(
        self, path: str, body: bytes | None, kind: str, headers: dict[str, str]
    ) -> httpx.Response:
        """GET without a body, else POST. Raises PenstockError."""
        try:
            if body is None:
                response = self._http.get(path, headers=headers)
            else:
                response = self._http.post(
                    path, content=body, headers=headers | ({"Content-Type": kind} if kind else {})
                )
        except httpx.TimeoutException as late:
            raise RemoteError(
                "the gateway does not answer in time",
                code="E_TIMEOUT",
                detail=f"{self._timeout:g} s",
            ) from late
        except httpx.HTTPError as broken:
            hint = "is the mesh up? `penstock status` shows it"
            raise RemoteError(
                f"the gateway at {self.url} cannot be reached",
                detail=type(broken).__name__,
                hint=hint,
            ) from broken
        if response.is_success:
            return response
        try:
            found = response.json()["error"]
        except (ValueError, KeyError, TypeError):
            kind_: type[PenstockError] = (
                AuthError if response.status_code in (401, 403) else RemoteError
            )
            raise kind_(
                f"the gateway answered with status {response.status_code}",
                detail=response.text[:200],
            ) from None
        raise error_of(found, response.status_code)


def connect(
    url: str = "http://127.0.0.1:7700",
    *,
    user: str = "root",
    password: str = "",
    database: str | None = None,
    timezone: str = "UTC",
    timeout: float = 60.0,
    notifier_url: str | None = None,
    token: str | None = None,
    ca: str | Path | None = None,
) -> Connection:
    """Connect to a gateway and check the credentials. Arguments are those of `Connection`.

    Raises:
        AuthError: user or password is wrong.
        RemoteError: the gateway cannot be reached.
    """
    connection = Connection(
        url,
        user,
        password,
        database=database,
        timezone=timezone,
        timeout=timeout,
        notifier_url=notifier_url,
        token=token,
        ca=ca,
    )
    try:
        connection.check()
    except BaseException:
        connection.close()
        raise
    return connection
