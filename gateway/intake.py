"""From "these rows, that table" to a queued write: what HTTP, WebSocket, line protocol and INSERT
have in common.

Owns finding the table (supertable, child or plain) by the names a client used, and claiming
idempotency keys. Unknown tables are refused with the nearest name.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from gateway import write_spans
from gateway.children import Children
from gateway.coalescer import PendingWrite
from gateway.idempotency import Ledger, Receipt
from gateway.layout import RowLayout
from gateway.publisher import RowPublisher
from penstock.auth.access import Access
from penstock.catalog.model import ROW_ID, Database, Right, Table
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec
from penstock.errors import CatalogError
from penstock.foreign import MESSAGE_ID
from penstock.runtime import log, traces

_log = log.get("gateway.intake")
Body: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table | pl.DataFrame


def layout_of(database: Database, table: Table) -> RowLayout:
    """Return what rows of *table* look like."""
    replicated = table.replicated is not None
    numbered = None
    if replicated:
        numbered = ROW_ID
    elif table.foreign:
        numbered = MESSAGE_ID
    columns = tuple(c for c in table.columns if c.name != numbered)
    return RowLayout(
        table.id,
        table.schema_id,
        table.database,
        table.name,
        table.topic,
        table.partitions,
        columns,
        table.tags,
        table.precision,
        database.max_ahead.ticks(table.precision),
        not table.tags,
        None if numbered else table.key_column,
        table.kind == "virtual",
        replicated,
        table.foreign,
        table.stored_names,
    )


def database_of(catalog: Catalog, name: str) -> Database:
    """Return the database called *name*. Raises CatalogError."""
    found = catalog.database(name)
    if found is None:
        close = difflib.get_close_matches(
            name.lower(), [d.name.lower() for d in catalog.databases()], n=1
        )
        hint = f'did you mean "{close[0]}"?' if close else ""
        raise CatalogError(f'there is no database "{name[:192]}"', code="E_NO_DATABASE", hint=hint)
    return found


def refuse_virtual(layout: RowLayout) -> None:
    """Raise CatalogError when *layout* is a virtual table's."""
    if layout.virtual:
        raise CatalogError(
            f"{layout.database}.{layout.table} is a virtual table and has no rows of its own",
            code="E_VTABLE_WRITE",
            hint="write to the tables that its columns come from",
        )


class WriteIntake:
    """Takes writes from every way in. Event loop only."""

    def __init__(
        self,
        publisher: RowPublisher,
        children: Children,
        ledger: Ledger,
        catalog: Callable[[], Catalog],
        access: Access,
        replicate: Callable[[PendingWrite, str | None], asyncio.Future[Receipt]],
        send_abroad: Callable[[PendingWrite], int],
    ) -> None:
        """
        Args:
            replicate: takes writes of stream tables, which their leaders put into the log.
            send_abroad: writes to a topic of another Kafka and returns the number of messages;
                blocks.
        """
        self._replicate = replicate
        self._send_abroad = send_abroad
        self._publisher = publisher
        self._children = children
        self._ledger = ledger
        self._catalog = catalog
        self._access = access
        self._found: dict[tuple[str, str], tuple[RowLayout, str | None]] = {}
        self._revision = -1
        self._running: dict[str, asyncio.Future[Receipt]] = {}

    async def write(
        self,
        database: str,
        table: str,
        rows: Body,
        *,
        user: str,
        size: int,
        key: str | None = None,
        digest: str = "",
        tz: tzinfo = UTC,
    ) -> Receipt:
        """Write rows and wait until Kafka has them."""
        return await (
            await self.submit(
                database, table, rows, user=user, size=size, key=key, digest=digest, tz=tz
            )
        )

    async def submit(
        self,
        database: str,
        table: str,
        rows: Body,
        *,
        user: str,
        size: int,
        key: str | None = None,
        digest: str = "",
        tz: tzinfo = UTC,
    ) -> asyncio.Future[Receipt]:
        """Queue rows; the future is done when Kafka has them.

        Raises:
            AuthError: *user* may not write there.
            CatalogError: there is no such table.
            OverloadError, BusError: not now.
        """
        layout, child = await self.locate_for(user, "WRITE", database, table)
        return await self.submit_to(
            layout, rows, size=size, child=child, key=key, digest=digest, tz=tz
        )

    async def submit_to(
        self,
        layout: RowLayout,
        rows: Body,
        *,
        size: int,
        child: str | None = None,
        key: str | None = None,
        digest: str = "",
        tz: tzinfo = UTC,
        told: bool = False,
        notices: tuple[str, ...] = (),
    ) -> asyncio.Future[Receipt]:
        """Queue rows of a table that was found before.

        Args:
            told: the client hears of notices.
            notices: that are known already.
        """
        refuse_virtual(layout)
        count = rows.num_rows if isinstance(rows, pa.Table) else len(rows)
        loop = asyncio.get_running_loop()
        trace = traces.current()
        span = write_spans.begin(layout, count)
        if span is not None:
            trace = traces.text_of(traces.name_of(trace), span.context)
        write = PendingWrite(
            layout,
            rows,
            count,
            size,
            loop.create_future(),
            child,
            tz,
            trace=trace,
            span=span,
            told=told,
            notices=notices,
        )
        if name := traces.name_of(trace):
            write.done.add_done_callback(partial(_tell, layout, name))
        if span is not None:
            write.done.add_done_callback(partial(write_spans.finish, span))
        if layout.replicated:
            return self._replicate(write, key)
        if layout.foreign:
            if key is not None:
                raise CatalogError(
                    "an idempotency key is for tables of this deployment",
                    code="E_UNSUPPORTED_STATEMENT",
                )
            write.done.set_result(Receipt(await asyncio.to_thread(self._send_abroad, write)))
            return write.done
        if key is None:
            return self._publisher.write(write)
        # the table's id, too: a table dropped and made again under its name has not got the rows
        return await self._submit_once(write, key, f"{layout.table_id}:{digest}")

    async def _submit_once(
        self, write: PendingWrite, key: str, digest: str
    ) -> asyncio.Future[Receipt]:
        running = self._running.get(key)
        if running is not None:
            # the same client was impatient; a different request under this key is told by the
            # ledger once the first is through
            await asyncio.wait([running])
        mine: asyncio.Future[Receipt] = write.done
        self._running[key] = mine
        try:
            table = self._catalog().table_by_id(write.layout.table_id)
            if table is None:
                raise CatalogError(f'table "{write.layout.table}" was dropped', code="E_NO_TABLE")
            codec = TableCodec(table, write.layout.schema_id)
            claim = await asyncio.to_thread(self._ledger.claim, key, digest, write.layout, codec)
            if isinstance(claim, Receipt):
                mine.set_result(claim)
            else:
                write.claim = claim
                write.digest = digest
                self._publisher.write(write)
        except BaseException:
            mine.cancel()
            self._forget(key, mine)
            raise
        mine.add_done_callback(lambda done: self._forget(key, done))
        return mine

    def _forget(self, key: str, future: asyncio.Future[Receipt]) -> None:
        if self._running.get(key) is future:
            del self._running[key]

    async def locate_for(
        self, user: str, right: Right, database: str, name: str
    ) -> tuple[RowLayout, str | None]:
        """Find a table for somebody who needs a right on it: who has none is not told whether it
        exists. Raises AuthError, CatalogError.
        """
        try:
            found = self.find(database, name) or await self._search(database, name)
        except CatalogError:
            self._access.require_named(user, right, database, name)
            raise
        table = self._catalog().table_by_id(found[0].table_id)
        if table is None:
            self._access.require_named(user, right, database, name)
        else:
            self._access.require(user, right, table, f"{database}.{name}")
        return found

    async def locate(self, database: str, name: str) -> tuple[RowLayout, str | None]:
        """Return the layout of *name* and, when it is a child table, its own spelling. Raises
        CatalogError.
        """
        return self.find(database, name) or await self._search(database, name)

    def find(self, database: str, name: str) -> tuple[RowLayout, str | None] | None:
        """Return the layout of *name* and, when it is a child table, its own spelling; None when it
        is not in the catalog (it may be in Redis).
        """
        catalog = self._catalog()
        if catalog.revision != self._revision:
            self._found.clear()
            self._revision = catalog.revision
        found = self._found.get((database, name))
        if found is None:
            made = self._resolve(catalog, database, name)
            if made is None:
                return None
            found = self._found[database, name] = made
        return found

    def _resolve(
        self, catalog: Catalog, database: str, name: str
    ) -> tuple[RowLayout, str | None] | None:
        home = database_of(catalog, database)
        table = catalog.table(database, name)
        if table is not None:
            return layout_of(home, table), None
        child = catalog.child(database, name)
        stable = catalog.table_by_id(child.stable_id) if child is not None else None
        return (
            (layout_of(home, stable), child.name)
            if child is not None and stable is not None
            else None
        )

    async def _search(self, database: str, name: str) -> tuple[RowLayout, str | None]:
        """Find a child table that was first seen in rows: Redis knows it."""
        catalog = self._catalog()
        home = database_of(catalog, database)
        stables = [layout_of(home, t) for t in catalog.tables(database) if t.kind == "stable"]
        for layout in stables:
            found = await asyncio.to_thread(self._children.find, layout, name, catalog)
            if found is not None:
                self._found[database, name] = (layout, found[0])
                return layout, found[0]
        known = [t.name for t in catalog.tables(database)]
        close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1)
        raise CatalogError(
            f'there is no table "{name[:192]}" in database "{home.name}"',
            code="E_NO_TABLE",
            hint=f'did you mean "{close[0]}"?' if close else "",
        )


def _tell(layout: RowLayout, trace: str, done: asyncio.Future[Receipt]) -> None:
    """Log what became of rows that are followed."""
    error = None if done.cancelled() else done.exception()
    table = f"{layout.database}.{layout.table}"
    if done.cancelled() or error is not None:
        _log.info(
            "rows were not written", table=table, trace=trace, reason=str(error or "cancelled")
        )
    else:
        _log.info("rows are in the log", table=table, trace=trace, rows=done.result().rows)
