"""Operations of a link that are answered once: information, describe and query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.auth.access import Access, visible
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.link.description import Description
from penstock.link.frames import pack
from services.federation.channel import LinkChannel
from services.federation.lookup import TableLookup, TableOrChild
from services.federation.reading import StoreReader
from services.federation.scope import NamedQuery


class Questions:
    """Answers on the channels that ask."""

    def __init__(
        self,
        catalog: CatalogReader,
        access: Access,
        tables: TableLookup,
        store: StoreReader,
        information: Callable[[Catalog], dict[str, Any]],
        frame_rows: int,
    ) -> None:
        """
        Args:
            information: describes this deployment as far as somebody sees the catalog.
            frame_rows: rows of one frame, at least.
        """
        self._catalog = catalog
        self._access = access
        self._tables = tables
        self._store = store
        self._information = information
        self._frame_rows = frame_rows

    async def inform(self, channel: LinkChannel, _: dict[str, Any]) -> None:
        """Say who is here, and which queries and views there are."""
        seen = visible(self._catalog.catalog, self._access, channel.user)
        found = await asyncio.to_thread(self._information, seen)
        await channel.say({"type": "answer", **found})

    async def describe(self, channel: LinkChannel, request: dict[str, Any]) -> None:
        """Describe the columns and the key of a table."""
        scope = NamedQuery.of(request)
        user = channel.user
        database = str(request.get("database") or "")
        name = str(request.get("table", ""))

        def find(born: bool) -> TableOrChild:
            if scope is None:
                return self._tables.find_for(user, "READ", database, name, born)
            found = scope.table(self._catalog.catalog, name, partial(self._tables.find, born=born))
            self._access.require(user, "READ", found[0])
            return found

        table, child = await self._tables.look(find)
        await channel.say({"type": "answer", "table": Description.of(table, child).to_json()})

    async def query(self, channel: LinkChannel, request: dict[str, Any]) -> None:
        """Send the rows of a SELECT, frame by frame."""
        loop = asyncio.get_running_loop()
        sql = str(request["sql"])
        database = str(request.get("database", ""))
        timezone = str(request.get("timezone") or "UTC")
        await asyncio.to_thread(self._catalog.catch_up)
        await asyncio.to_thread(self._tables.require_read, channel.user, sql, database)
        pieces = self._store.run(sql, database, timezone, self._frame_rows)
        next_frame = partial(_next_frame, channel.number, pieces)
        ahead = loop.run_in_executor(None, next_frame)
        while (frame := await ahead) is not None:
            # the next one is read while this one is on its way
            ahead = loop.run_in_executor(None, next_frame)
            await channel.send_frame(*frame)
        await channel.say({"type": "end"})


def _next_frame(channel: int, pieces: Iterator[pa.Table]) -> tuple[bytes, int] | None:
    """Encode the next piece of an answer; return the frame and its number of rows."""
    piece = next(pieces, None)
    if piece is None:
        return None
    return pack({"ch": channel, "type": "rows"}, piece), piece.num_rows
