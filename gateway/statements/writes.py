"""INSERT and DELETE."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import tzinfo

from gateway import deleting, times
from gateway.answers import Affected
from gateway.ddl.removal import Removal
from gateway.federation.remote_insert import RemoteInsert
from gateway.idempotency import Receipt
from gateway.insert import BoundRows, bind, bind_selected, join_by_table
from gateway.intake import WriteIntake, database_of
from gateway.layout import RowLayout
from gateway.publisher import RowPublisher
from gateway.statements.context import RequestContext
from gateway.statements.queries import ReadStatements
from gateway.statements.resolution import NameResolver
from penstock.catalog.model import Database, External
from penstock.catalog.view import Catalog
from penstock.rows.parameters import Parameters, encode
from penstock.runtime.clock import Clock
from penstock.sql import statements as st
from penstock.sql.plan import TICKS_PER_SECOND

#: rows of a SELECT that are written at once
#: rows of a SELECT that are written at once
_PIECE_ROWS = 50_000


class WriteStatements:
    """Event loop only."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        names: NameResolver,
        intake: WriteIntake,
        remote: RemoteInsert,
        queries: ReadStatements,
        removal: Removal,
        publisher: RowPublisher,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._names = names
        self._intake = intake
        self._remote = remote
        self._queries = queries
        self._removal = removal
        self._publisher = publisher
        self._clock = clock

    # ---------------------------------------------------------------- INSERT … VALUES

    async def insert(self, statement: st.Insert, context: RequestContext) -> Affected:
        """INSERT INTO … VALUES, for each table of the statement."""
        bound, remote = await self.bind_rows(statement, context)
        if remote and context.key is not None:
            raise statement.error(
                "an idempotency key is for tables of this deployment",
                code="E_UNSUPPORTED_STATEMENT",
            )
        written = [await asyncio.to_thread(self._remote.write, e, b.frame) for e, b in remote]
        receipts = await self._submit(statement, context, join_by_table(bound))
        for receipt in receipts:
            context.notices.extend(receipt.notices)
        return Affected(sum(r.rows for r in receipts) + sum(written))

    async def bind_rows(
        self, statement: st.Insert, context: RequestContext
    ) -> tuple[list[BoundRows], list[tuple[External, BoundRows]]]:
        """Return the rows of an INSERT for tables of this deployment and of others. Writes nothing.
        Raises PenstockError.
        """
        tz = times.zone(context.timezone)
        bound: list[BoundRows] = []
        remote: list[tuple[External, BoundRows]] = []
        for part in statement.parts:
            home = self._names.home(statement, part.table, context)
            entry = self._catalog().external(home.name, (part.stable or part.table).name)
            if entry is not None:
                remote.append((entry, self._bind_remote(statement, part, entry, tz)))
            else:
                bound.append(await self._bind(statement, part, home, tz))
        return bound, remote

    def _bind_remote(
        self, statement: st.Insert, part: st.InsertPart, entry: External, tz: tzinfo
    ) -> BoundRows:
        child = part.table.name if part.stable is not None else None
        layout = self._remote.layout(entry)
        return bind(statement, part, layout, child, tz, self._clock.now())

    async def _bind(
        self, statement: st.Insert, part: st.InsertPart, home: Database, tz: tzinfo
    ) -> BoundRows:
        if part.stable is not None:
            layout = await self._find_stable(statement, part.stable, home)
            name: str | None = part.table.name
        else:
            layout, name = await self._names.find(home, statement, part.table)
        self._names.refuse_virtual(statement, part.table, layout)
        return bind(statement, part, layout, name, tz, self._clock.now())

    async def _find_stable(
        self, statement: st.Insert, stable: st.Name, home: Database
    ) -> RowLayout:
        stable_home = database_of(self._catalog(), stable.database or home.name)
        layout, child = await self._names.find(stable_home, statement, stable)
        if layout.plain or child is not None:
            raise statement.error(f"{stable.name} is no supertable", stable, code="E_NOT_A_STABLE")
        return layout

    async def _submit(
        self, statement: st.Insert, context: RequestContext, writes: Sequence[BoundRows]
    ) -> list[Receipt]:
        """Queue the rows of each table, then wait until Kafka has them all."""
        futures = []
        key = context.key
        for i, rows in enumerate(writes):
            own_key = f"{key}#{i}" if key is not None and len(writes) > 1 else key
            digest = _digest(statement, context.parameters) if own_key else ""
            futures.append(
                await self._intake.submit_to(
                    rows.layout,
                    rows.frame,
                    size=int(rows.frame.estimated_size()),
                    key=own_key,
                    digest=digest,
                    told=True,
                    notices=rows.notices,
                )
            )
        return [await f for f in futures]

    # ---------------------------------------------------------------- INSERT … SELECT

    async def insert_selected(
        self, statement: st.InsertSelect, context: RequestContext
    ) -> Affected:
        """INSERT INTO … SELECT: rows as they are now; what follows rows that are still to come is a
        materialized view.
        """
        if context.key is not None:
            hint = "a SELECT may give other rows when it is asked again"
            raise statement.error(
                "an idempotency key is for rows that are given",
                code="E_UNSUPPORTED_STATEMENT",
                hint=hint,
            )
        home = self._names.home(statement, statement.table, context)
        entry = self._catalog().external(home.name, statement.table.name)
        child: str | None = None
        if entry is not None:
            layout = self._remote.layout(entry)
        else:
            layout, child = await self._names.find(home, statement, statement.table)
            self._names.refuse_virtual(statement, statement.table, layout)
        selected = await self._queries.query(statement.select, context)
        if not selected.num_rows:
            return Affected(0)
        bound = await asyncio.to_thread(
            bind_selected, statement, selected, layout, child, self._clock.now()
        )
        if entry is not None:
            return Affected(await asyncio.to_thread(self._remote.write, entry, bound.frame))
        return Affected(await self._submit_pieces(bound, context))

    async def _submit_pieces(self, bound: BoundRows, context: RequestContext) -> int:
        written = 0
        for piece in bound.frame.iter_slices(_PIECE_ROWS):
            size = int(piece.estimated_size())
            receipt = await (
                await self._intake.submit_to(bound.layout, piece, size=size, told=True)
            )
            context.notices.extend(receipt.notices)
            written += receipt.rows
        return written

    # ---------------------------------------------------------------- DELETE

    async def delete(self, statement: st.Delete, context: RequestContext) -> Affected:
        """DELETE FROM …; how many rows it takes is not known."""
        home = self._names.home(statement, statement.table, context)
        layout, child = await self._names.find(home, statement, statement.table)
        self._names.refuse_virtual(statement, statement.table, layout)
        if layout.replicated:
            hint = "rows of a stream table go by its retention; DROP TABLE removes all"
            raise statement.error(
                f"rows of {layout.table} are not deleted one by one",
                statement.table,
                code="E_STREAM_TABLE",
                hint=hint,
            )
        now = self._clock.now() * TICKS_PER_SECOND[layout.precision] // 10**9
        wanted = deleting.bounds(statement, layout, times.zone(context.timezone), now)
        only = layout.table if layout.plain else child
        tables = wanted.tables
        if only is not None:
            tables = (only,) if tables is None or only in tables else ()
        if tables == () or wanted.low > wanted.high:
            return Affected(0)
        where = await asyncio.to_thread(
            self._removal.delete_rows, layout, tables, wanted.low, wanted.high
        )
        self._publisher.confirmed.note_own(where)
        return Affected(0)


def _digest(statement: st.Insert, parameters: Parameters | None) -> str:
    """Return what tells one INSERT from another that has the same idempotency key."""
    content = statement.text
    if parameters:
        content += "\0" + json.dumps(encode(parameters), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
