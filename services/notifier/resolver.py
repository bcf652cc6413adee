"""Requests for subscriptions, resolved: what is asked for, if the user may read it, and where it
begins in the log.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock import names
from penstock.auth.access import Access
from penstock.catalog.model import StreamEntry, Table
from penstock.catalog.reader import CatalogReader
from penstock.errors import AuthError, CatalogError, PenstockError
from penstock.feeds.cursor import Cursor, TokenError
from penstock.feeds.feed import Feed, Feeds
from penstock.repartition import readers
from services.notifier.subscription import (
    EventSubscription,
    RowForm,
    RowSubscription,
    WorkCount,
)

#: rows of a message that a subscription can be limited to
_MOST_ROWS = 10_000
Subscription = RowSubscription | EventSubscription
T = TypeVar("T")


class BadHubRequest(PenstockError):
    code = "E_REQUEST"


@dataclass(frozen=True)
class ResolvedSubscription:
    """A subscription, the feed in which it begins, and what its user must go on being allowed to
    read.
    """

    feed: Feed
    subscription: Subscription
    subject: StreamEntry | Table


class SubscriptionResolver:
    """Event loop only."""

    def __init__(
        self,
        catalog: CatalogReader,
        access: Access,
        feeds: Feeds,
        work: WorkCount | None = None,
    ) -> None:
        """
        Args:
            work: told of the rows that are decoded and written.
        """
        self._catalog = catalog
        self._access = access
        self._feeds = feeds
        self._work = work

    async def resolve(self, request: dict[str, Any], user: str) -> ResolvedSubscription:
        """Resolve what *user* asks for. Raises PenstockError."""
        what = request.get("what", "rows")
        tables = _child_tables(request)
        if what == "events":
            return await self._events(request, user, tables)
        if what != "rows":
            raise BadHubRequest(f"what is rows or events, not {what}")
        return await self._rows(request, user, tables)

    async def _events(
        self, request: dict[str, Any], user: str, tables: list[str] | None
    ) -> ResolvedSubscription:
        stream = await self._look(lambda: self._stream(str(request.get("stream", "")), user))
        if stream.plan.notify is None:
            raise BadHubRequest(
                f'stream "{stream.name}" makes no window events',
                code="E_NO_EVENTS",
                hint="create it with NOTIFY ON ('WINDOW_OPEN', 'WINDOW_CLOSE')",
            )
        if tables is not None and not stream.plan.target.stored:
            raise BadHubRequest(
                f'stream "{stream.name}" has no result table, and so no child tables',
                hint="leave tables out, and choose by the tags of the events",
            )
        feed = await self._feeds.of(names.EVENTS)
        cursor = await _cursor(_start(request), feed)
        return ResolvedSubscription(feed, EventSubscription(cursor, stream, tables), stream)

    async def _rows(
        self, request: dict[str, Any], user: str, tables: list[str] | None
    ) -> ResolvedSubscription:
        form = _form(request)
        table = await self._look(lambda: self._table(request, user))
        source = self._stream(str(request["stream"]), user) if "stream" in request else None
        # READ on a stream goes with it to its own result table only
        subject = source if source is not None and table.result_of == source.id else table
        if tables is None and request.get("_child"):
            tables = [request["_child"]]
        feed, cursor = await self._place(request, table)
        subscription = RowSubscription(
            cursor, lambda: self._catalog.catalog.table_by_id(table.id), tables, form, self._work
        )
        return ResolvedSubscription(feed, subscription, subject)

    async def _look(self, find: Callable[[], T]) -> T:
        """Return what *find* finds, also when it was made or granted just now and that has not come
        here yet. Raises what *find* does.
        """
        try:
            return find()
        except (CatalogError, AuthError):
            # users without a right on the database are not told that there is no such table
            await asyncio.to_thread(self._catalog.catch_up)
            return find()

    async def _place(self, request: dict[str, Any], table: Table) -> tuple[Feed, Cursor]:
        """Return the topic, of those that the table's database has had, in which a subscription
        begins, and where. Raises TokenError.
        """
        catalog = self._catalog.catalog
        start = _start(request)
        topic = table.topic
        if isinstance(start, Cursor):
            topic, start = readers.resume(catalog, topic, start)
        elif start == "earliest":
            topic = readers.earliest(catalog, topic)
        feed = await self._feeds.of(topic)
        return feed, await _cursor(start, feed)

    def _stream(self, name: str, user: str) -> StreamEntry:
        database, _, plain = name.rpartition(".")
        entry = self._catalog.catalog.stream(database, plain)
        if entry is None:
            self._access.require_named(user, "READ", database, plain)
            raise CatalogError(
                f'there is no stream "{name}"',
                code="E_STREAM_NOT_EXIST",
                hint="write database.stream; SHOW STREAMS lists them",
            )
        self._access.require(user, "READ", entry)
        return entry

    def _table(self, request: dict[str, Any], user: str) -> Table:
        """Find the table asked for: a stream's result, a supertable, a plain table or a child
        table, whose name is left in *request*.
        """
        if "stream" in request:
            table = self._result_table(str(request["stream"]), user)
        else:
            table = self._table_by_name(request, user)
        if table is None:
            raise CatalogError(
                f'there is no table "{request.get("table") or request.get("stream")}"',
                code="E_TABLE_NOT_EXIST",
                hint="write database.table",
            )
        return table

    def _result_table(self, stream_name: str, user: str) -> Table | None:
        stream = self._stream(stream_name, user)
        target = stream.plan.target
        if not target.stored:
            raise CatalogError(
                f'stream "{stream.name}" has no result table',
                code="E_TABLE_NOT_EXIST",
                hint='subscribe to its events: "what": "events"',
            )
        table = self._catalog.catalog.table(target.database, target.table)
        if table is not None and table.result_of != stream.id:
            self._access.require(user, "READ", table)
        return table

    def _table_by_name(self, request: dict[str, Any], user: str) -> Table | None:
        catalog = self._catalog.catalog
        database, _, name = str(request.get("table", "")).rpartition(".")
        table = catalog.table(database, name)
        child = catalog.child(database, name) if table is None else None
        if child is not None:
            request["_child"] = child.name
            table = catalog.table_by_id(child.stable_id)
        if table is not None:
            self._access.require(user, "READ", table, f"{database}.{name}")
        else:
            self._access.require_named(user, "READ", database, name)
        return table


def _child_tables(request: dict[str, Any]) -> list[str] | None:
    """Return the child tables that a request names. Raises BadHubRequest."""
    tables = request.get("tables")
    if tables is None:
        return None
    if not isinstance(tables, list) or not all(isinstance(t, str) for t in tables):
        raise BadHubRequest("tables must be a list of child-table names")
    return tables


def _form(request: dict[str, Any]) -> RowForm:
    """Return how a request wants its rows. Raises BadHubRequest."""
    limit = request.get("limit")
    if limit is not None and (type(limit) is not int or not 1 <= limit <= _MOST_ROWS):
        raise BadHubRequest(f"limit is a number of rows from 1 to {_MOST_ROWS}")
    exact = request.get("exact", False)
    if not isinstance(exact, bool):
        raise BadHubRequest("exact is true or false")
    return RowForm(limit, exact)


def _start(request: dict[str, Any]) -> str | Cursor:
    """Return where a subscription asks to begin: `latest`, `earliest` or a token's place. Raises
    TokenError when it sends none of these.
    """
    start = str(request.get("from", "latest"))
    return start if start in ("latest", "earliest") else Cursor.from_token(start)


async def _cursor(start: str | Cursor, feed: Feed) -> Cursor:
    """Find that place in a topic. Raises TokenError when it is in none like this one."""
    if not isinstance(start, Cursor):
        return Cursor(feed.ends() if start == "latest" else feed.beginnings())
    if not _within(start, feed.ends()) and not _within(
        start, await asyncio.get_running_loop().run_in_executor(None, feed.log_ends)
    ):
        raise TokenError(
            "the token points past the end of the log",
            hint="it is of another table, or the database was made anew",
        )
    missing = {p: o for p, o in feed.beginnings().items() if p not in start.offsets}
    start.offsets.update(missing)
    return start


def _within(cursor: Cursor, ends: dict[int, int]) -> bool:
    return all(p in ends and 0 <= offset <= ends[p] for p, offset in cursor.offsets.items())


def parse_request(text: str | bytes) -> dict[str, Any]:
    """Parse a message of a client. Raises BadHubRequest."""
    try:
        request = json.loads(text)
    except ValueError as error:
        raise BadHubRequest("a message must be a JSON object", detail=str(error)) from None
    if not isinstance(request, dict):
        raise BadHubRequest("a message must be a JSON object")
    return {k: v for k, v in request.items() if not k.startswith("_")}
