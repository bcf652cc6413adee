"""Appends over a link: frames of rows into a table, each acked once it is on all replicas."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import Counter, Histogram

from penstock.auth.access import Access
from penstock.catalog.reader import CatalogReader
from penstock.errors import SchemaError
from penstock.link.description import Description, require_log
from penstock.link.frames import CREDIT
from services.federation.appenders import AnyAppender, Appenders
from services.federation.channel import LinkChannel
from services.federation.lookup import TableLookup


@dataclass(frozen=True)
class _UnderWay:
    """Rows that came under *number* at *came* (monotonic seconds), on their way into the log."""

    number: object
    came: float
    written: asyncio.Future[int]


class LinkAppends:
    """Serves append channels."""

    def __init__(
        self,
        catalog: CatalogReader,
        access: Access,
        tables: TableLookup,
        appenders: Appenders,
        received_rows: Counter,
        ack_seconds: Histogram,
    ) -> None:
        self._catalog = catalog
        self._access = access
        self._tables = tables
        self._appenders = appenders
        self._received_rows = received_rows
        self._ack_seconds = ack_seconds

    async def serve(self, channel: LinkChannel, request: dict[str, Any]) -> None:
        """Write what comes on *channel* until it ends."""
        user = channel.user
        database = str(request.get("database", ""))
        name = str(request.get("table", ""))
        table, child = await self._tables.look(
            partial(self._tables.find_for, user, "WRITE", database, name)
        )
        require_log(table, writing=True)
        if child is not None:
            raise SchemaError(
                f"{child} is a child table",
                code="E_CHILD_TABLE",
                hint=f"append to {table.name} and name it in tbname",
            )
        producer = request.get("producer")
        appender, places = await asyncio.to_thread(
            self._appenders.open,
            table,
            None if producer is None else str(producer),
            self._catalog.catalog.topic_owner(table.topic),
            lambda: self._catalog.catalog.table_by_id(table.id),
        )
        held = {str(p): list(place) for p, place in places.items()}
        await channel.say(
            {"type": "opened", "table": Description.of(table).to_json(), "places": held}
        )
        acks: asyncio.Queue[_UnderWay] = asyncio.Queue(CREDIT)
        answering = asyncio.create_task(self._acknowledge(channel, acks))
        frame: asyncio.Future[tuple[dict[str, Any], Any]] | None = None
        try:
            while True:
                frame = asyncio.ensure_future(channel.frames.get())
                await asyncio.wait({frame, answering}, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    answering.result()
                    return
                header, rows = frame.result()
                came = time.monotonic()
                self._access.require(user, "WRITE", table)  # it may have been revoked since
                sent = await self._write(appender, header, rows)
                await acks.put(_UnderWay(header.get("seq"), came, asyncio.wrap_future(sent)))
        finally:
            answering.cancel()
            if frame is not None:
                frame.cancel()

    async def _write(self, appender: AnyAppender, header: dict[str, Any], rows: Any) -> Future[int]:
        """Hand a frame to the appender: rows, or else a DELETE of a range."""
        if rows is not None:
            sent = await asyncio.to_thread(appender.append, rows, _ignore_place)
            self._received_rows.inc(rows.num_rows)
            return sent
        what = header["delete"]
        return await asyncio.to_thread(
            appender.delete,
            what.get("tables"),
            what.get("partition"),
            int(what["low"]),
            int(what["high"]),
            int(what["offset"]),
            _ignore_place,
        )

    async def _acknowledge(self, channel: LinkChannel, acks: asyncio.Queue[_UnderWay]) -> None:
        while True:
            oldest = await acks.get()
            # a channel that ends does not cancel its writes: what confirms them would trip over a
            # future that is settled already
            rows = await asyncio.shield(oldest.written)
            await channel.say({"type": "ack", "seq": oldest.number, "rows": rows})
            self._ack_seconds.observe(time.monotonic() - oldest.came)


def _ignore_place(topic: str, partition: int, offset: int) -> None:
    """Take the place of a record that is on all replicas: over a link nobody asks for it."""
