"""`penstock.connect`: statements, queries, rows and subscriptions over one gateway."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from urllib.parse import quote, urlsplit

from penstock.client.connection_options import ConnectionOptions
from penstock.client.gateway import JSON, Gateway, authorization
from penstock.client.old_names import ON_CONNECTION, OldKeywords, OldNames, with_old_keywords
from penstock.client.result import Count, Result
from penstock.client.values import plain_parameters, to_json
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
from penstock.errors import CatalogError
from penstock.rows.parameters import Parameters, encode

if TYPE_CHECKING:
    from penstock.client.stream import Stream
    from penstock.client.stream_tables import StreamTables
    from penstock.client.subscribe import Subscription
    from penstock.client.writer import Writer


class Connection(OldNames):
    """A gateway as one user. Safe to use from several threads; `close` it or use it in a `with`."""

    _OLD = ON_CONNECTION

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        *,
        database: str | None = None,
        token: str | None = None,
        options: ConnectionOptions | None = None,
        **old: Unpack[OldKeywords],
    ) -> None:
        """
        Args:
            url: of the gateway, `http://host:port` or `https://host:port`.
            user: to log in as.
            password: of that user.
            database: for names without one.
            token: instead of user and password (see `token()`).
            options: time zone, timeout, certificates and the notifier's address.
            old: single options by keyword, as before there was `options`.
        """
        chosen = with_old_keywords(options or ConnectionOptions(), old)
        self.database = database
        self.timezone = chosen.timezone
        self._user = user
        self._password = password
        self._notifier_url = chosen.notifier_url
        self._gateway = Gateway(
            url, authorization(user, password, token), timeout=chosen.timeout, ca=chosen.ca
        )
        self._lock = threading.Lock()
        self._ha: StreamTables | None = None

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self._gateway.url

    @property
    def ha(self) -> StreamTables:
        """Stream tables of raft groups: made, written, subscribed to, and asked about."""
        with self._lock:
            if self._ha is None:
                from penstock.client.stream_tables import StreamTables

                self._ha = StreamTables(self, self._gateway)
            return self._ha

    # ---------------------------------------------------------------- statements

    def execute(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        database: str | None = None,
        idempotency_key: str | None = None,
    ) -> Count:
        """Run statements in order and return the last one's number of affected rows, with the
        `notices` of all.

        Args:
            sql: one statement or several.
            parameters: a list for each `?` of the only statement, or a dict for `:name`. They are
                values, never text of it.
            database: for names without one; by default the connection's.
            idempotency_key: makes a repeated INSERT count once.

        Raises:
            PenstockError: whatever the gateway says.
        """
        found = self._query(sql, parameters, database, idempotency_key)
        table = found.table
        rows = (
            int(table.column(0)[0].as_py())
            if table.column_names == ["affected_rows"]
            else table.num_rows
        )
        return Count(rows, found.notices)

    def query(
        self, sql: str, parameters: Parameters | None = None, *, database: str | None = None
    ) -> Result:
        """Run a statement and return its rows; *parameters* as in `execute`. Raises
        PenstockError.
        """
        return self._query(sql, parameters, database, None)

    def _query(
        self, sql: str, parameters: Parameters | None, database: str | None, key: str | None
    ) -> Result:
        body: dict[str, Any] = {"sql": sql, "timezone": self.timezone}
        body["database"] = database or self.database
        if parameters is not None:
            body["parameters"] = encode(plain_parameters(parameters))
        headers = {"Accept": ARROW} | ({"Idempotency-Key": key} if key else {})
        answer = self._gateway.post("/v1/query", json.dumps(body).encode(), JSON, headers)
        return Result(from_stream(answer.content), notices=notices_of(answer))

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
            kind = JSON
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
            answer = self._gateway.post(path, body, kind, {"Idempotency-Key": key} if key else {})
            written += int(answer.json()["rows"])
            notices += notices_of(answer)
        return Count(written, notices)

    def last(self, table: str, names: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The latest row of each child table, from Redis: fast, and up to a second old. Times are
        ticks.

        Args:
            table: supertable, child table or plain table.
            names: of a supertable, only these children.
        """
        query = "&".join(f"tbname={quote(name, safe='')}" for name in names)
        path = self._path(table, "last") + (f"?{query}" if query else "")
        found: list[dict[str, Any]] = self._gateway.get(path).json()["rows"]
        return found

    def writer(self, table: str | None = None, *, window: int | None = None) -> Writer:
        """A stream of writes over one WebSocket, many under way at once.

        Args:
            table: for `write` calls that name none.
            window: most frames without an answer; by default what the gateway allows.
        """
        from penstock.client.writer import Writer

        return Writer(self._gateway, table and self._qualify(table), self._qualify, window=window)

    # ---------------------------------------------------------------- the rest

    def subscribe(
        self,
        name: str,
        *,
        what: Literal["rows", "events"] = "rows",
        stream: bool = False,
        tables: Sequence[str] | None = None,
        start: str = "latest",
        patience: float | None = None,
    ) -> Subscription:
        """Follow a table or stream: iterate the result, with `for` or `async for`.

        Args:
            name: `[database.]name` of a table, or of a stream (with *stream*, or for its window
                events).
            what: result rows, or window events.
            stream: *name* is a stream's, not a table's.
            tables: only these child tables.
            start: `latest`, `earliest` or an update's token.
            patience: seconds to go on trying while the notifier can't be reached; by default until
                the subscription is closed.
        """
        from penstock.client.row_times import RowTimes, time_units
        from penstock.client.subscribe import Subscription, subscription_request

        if self._notifier_url is None:
            self.check()
            assert self._notifier_url is not None
        request = subscription_request(self._qualify(name), what=what, stream=stream, tables=tables)
        context = self._gateway.context if self._notifier_url.startswith("wss") else None
        return Subscription(
            self._notifier_url,
            self._gateway.authorization,
            request,
            start=start,
            patience=patience,
            context=context,
            times=RowTimes(lambda: time_units(self, request)),
        )

    def token(self, seconds: int = 86_400) -> str:
        """A token that stands for this user until it expires, or until the password changes: for
        `connect(url, token=…)`.
        """
        body = json.dumps({"seconds": seconds}).encode()
        return str(self._gateway.post("/v1/tokens", body, JSON).json()["token"])

    def stream(
        self,
        sql: str,
        *,
        start: str = "latest",
        database: str | None = None,
        patience: float | None = None,
    ) -> Stream:
        """An unbounded SELECT that filters and projects: iterate the result for Arrow tables of
        rows as they come.

        Args:
            sql: over one table or external stream.
            start: `latest`, `earliest` or a message's token.
            database: for a name without one; by default the connection's.
            patience: seconds to go on trying while the other side can't be reached; by default
                until it is closed.
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
            address,
            sql,
            database or self.database or "",
            start=start,
            timezone=self.timezone,
            patience=patience,
        )

    def drain(self, database: str | None = None, *, depth: int = 1) -> None:
        """Return when all that was written has gone through *depth* streams in a row and into the
        store. Raises BusError.
        """
        home = database or self.database
        self._gateway.post(f"/v1/drain?depth={depth}" + (f"&db={quote(home)}" if home else ""))

    def check(self) -> None:
        """Ask the gateway who it is. Raises AuthError or RemoteError."""
        info = self._gateway.get("/v1/info").json()
        self._notifier_url = self._notifier_url or str(info["notifier_url"])

    def dialect(self) -> dict[str, Any]:
        """Ask for words, types and functions of the gateway's SQL, as `GET /v1/dialect` has them.
        Raises AuthError or RemoteError.
        """
        found: dict[str, Any] = self._gateway.get("/v1/dialect").json()
        return found

    def federation_url(self) -> str:
        """Ask where the deployment answers links. Raises AuthError or RemoteError."""
        return str(self._gateway.get("/v1/info").json()["federation_url"])

    def close(self) -> None:
        """End the subscriptions to stream tables, and close all connections."""
        if self._ha is not None:
            self._ha.close()
        self._gateway.close()

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


def connect(
    url: str = "http://127.0.0.1:7700",
    *,
    user: str = "root",
    password: str = "",
    database: str | None = None,
    token: str | None = None,
    options: ConnectionOptions | None = None,
    **old: Unpack[OldKeywords],
) -> Connection:
    """Connect to a gateway and check the credentials. Arguments are those of `Connection`.

    Raises:
        AuthError: user or password is wrong.
        RemoteError: the gateway cannot be reached.
    """
    chosen = with_old_keywords(options or ConnectionOptions(), old)
    connection = Connection(url, user, password, database=database, token=token, options=chosen)
    try:
        connection.check()
    except BaseException:
        connection.close()
        raise
    return connection
