"""Points, as the wires of other databases send them, on their way to rows.

Owns what a point becomes: the measurement is a supertable (made or widened when needed), tags are
its tags, and each set of tag values is a child table with a name made from them. Points that do not
fit (another type than the table's column, say) are refused by their numbers; the others are
written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway import http
from gateway.ddl import growth
from gateway.ddl.definer import Definer, Elsewhere
from gateway.forward import Forwarder
from gateway.idempotency import Receipt
from gateway.intake import WriteIntake, database_of, layout_of, refuse_virtual
from gateway.layout import TBNAME, RowLayout
from gateway.row_error import RowError
from gateway.wires.databases import require_database
from gateway.wires.partial_write import PartialWrite, Row, agreeing, fitting, shapes, words_of
from gateway.wires.points import LineError, Point, Unsigned
from penstock import names
from penstock.auth.access import Access
from penstock.errors import PenstockError
from penstock.runtime.clock import Clock
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType

TIME_COLUMN = "_ts"
_SMALLEST_TEXT = 64


@dataclass(frozen=True)
class PointBatch:
    """What was read of a body.

    Args:
        points: in order; `line` is the place of each.
        refused: what could not be read.
        unit: nanoseconds of one tick of their times.
        size: bytes that were sent.
    """

    points: Sequence[Point]
    refused: Sequence[LineError]
    unit: int
    size: int


class PointWriter:
    """Writes points of any wire. Event loop only."""

    def __init__(
        self,
        intake: WriteIntake,
        definer: Definer,
        forwarder: Forwarder,
        access: Access,
        clock: Clock,
    ) -> None:
        self._intake = intake
        self._definer = definer
        self._forwarder = forwarder
        self._access = access
        self._clock = clock

    def admit(self, user: str, database: str) -> None:
        """Raise AuthError where *user* has no right in the database, and CatalogError when there
        is none: before anything that was sent is read.
        """
        require_database(self._definer.catalog, self._access, user, "WRITE", database)

    async def write(self, user: str, database: str, sent: PointBatch) -> list[str]:
        """Write what was sent, and wait until Kafka has it; return notices for the client.

        Raises:
            PartialWrite: some points were refused.
        """
        refused = list(sent.refused)
        by_table: dict[str, list[Point]] = {}
        for point in self._rename(database, sent.points):
            by_table.setdefault(point.measurement, []).append(point)
        ready = {}
        for table, some in by_table.items():
            ready[table], bad = await self._prepare(user, database, table, some)
            refused += bad
        writes = [
            (some, await self._submit(database, table, some, sent))
            for table, some in ready.items()
            if some
        ]
        written = 0
        said: list[str] = []
        for some, (layout, rows, future) in writes:
            try:
                receipt: Receipt = await future
            except RowError as error:
                receipt, bad = await self._rest(error, layout, some, rows, sent.size)
                refused += bad
            written += receipt.rows
            said += receipt.notices
        if refused:
            raise PartialWrite(refused, written, said)
        return said

    def _rename(self, database: str, points: Sequence[Point]) -> Sequence[Point]:
        """Return the points under the names that their tables have."""
        home = self._definer.catalog.database(database)
        if home is None or not home.dot_to_underscore:
            return points
        return [
            replace(p, measurement=p.measurement.replace(".", "_")) if "." in p.measurement else p
            for p in points
        ]

    async def _prepare(
        self, user: str, database: str, table: str, points: Sequence[Point]
    ) -> tuple[list[Point], list[LineError]]:
        """Return the points that *table*, made or widened for them, has columns for, and the lines
        of the others.
        """
        self._admit(user, database, table)
        good, refused = agreeing(points, self._definer.catalog.table(database, table))
        if not good:
            return good, refused
        try:
            await self._ensure(user, database, table, *_needs(good))
            return good, refused
        except PenstockError as error:
            if not _of_the_line(error):
                raise
        kept: list[Point] = []
        for alike in shapes(good):
            try:
                await self._ensure(user, database, table, *_needs(alike))
                kept += alike
            except PenstockError as error:
                if not _of_the_line(error):
                    raise
                refused += [
                    LineError(error.message + (f"; {error.hint}" if error.hint else ""), p.line)
                    for p in alike
                ]
        return sorted(kept, key=lambda p: p.line), refused

    async def _rest(
        self,
        error: RowError,
        layout: RowLayout,
        points: Sequence[Point],
        rows: Sequence[Row],
        size: int,
    ) -> tuple[Receipt, list[LineError]]:
        """Write the rows of a refused write that are not to blame; what was written, and the lines
        of the others.
        """
        receipt = Receipt(0)
        if error.row < 0:
            return receipt, [LineError(words_of(error), p.line) for p in points]
        now = self._clock.now() * TICKS_PER_SECOND[layout.precision] // 10**9
        kept, reasons = await asyncio.to_thread(fitting, layout, rows, now)
        refused = [LineError(why, points[place].line) for place, why in reasons.items()]
        if kept:
            try:
                receipt = await (
                    await self._intake.submit_to(
                        layout, [rows[place] for place in kept], size=size, told=True
                    )
                )
            except RowError as again:  # the table changed meanwhile
                refused += [LineError(words_of(again), points[place].line) for place in kept]
        return receipt, refused

    def _admit(self, user: str, database: str, table: str) -> None:
        """Raise AuthError where *user* may neither write nor make the table, and CatalogError when
        there is no such database.
        """
        known = self._definer.catalog.table(database, table)
        if known is None:
            self._access.require_named(user, "CREATE", database, table)
        else:
            self._access.require(user, "WRITE", known)
        database_of(self._definer.catalog, database)

    async def _ensure(
        self, user: str, database: str, table: str, columns: list[Column], tags: list[Column]
    ) -> None:
        """Make the table, or give it what these points need and it lacks; who may do neither may
        still write what fits.
        """
        known = self._definer.catalog.table(database, table)
        if known is not None and known.kind == "virtual":
            refuse_virtual(layout_of(database_of(self._definer.catalog, database), known))
        if not growth.lacks(self._definer.catalog, database, table, columns, tags):
            return
        if known is not None:
            self._access.require(user, "ALTER", known)
        time = ColumnDefaults.time()
        try:
            await self._definer.run(
                lambda: growth.grow(self._definer, database, table, time, columns, tags), user
            )
        except Elsewhere as elsewhere:
            await self._forwarder.grow_table(
                elsewhere.address, user, database, table, time, columns, tags
            )

    async def _submit(
        self, database: str, table: str, points: list[Point], sent: PointBatch
    ) -> tuple[RowLayout, list[Row], asyncio.Future[Any]]:
        """Points on their way as rows of their table."""
        found = self._intake.find(database, table)
        assert found is not None, "ensure() made the table"
        layout = found[0]
        now = self._clock.now()
        tick = 10**9 // TICKS_PER_SECOND[layout.precision]
        # Prometheus sends one set of tags for many points
        children: dict[tuple[tuple[str, str], ...], str] = {}
        rows = []
        for point in points:
            child = children.get(point.tags)
            if child is None:
                child = children[point.tags] = names.line_child(point.measurement, point.tags)
            row: dict[str, Any] = {
                k: v.value if isinstance(v, Unsigned) else v for k, v in point.fields.items()
            }
            row.update(point.tags)
            row[layout.time] = (now if point.time is None else point.time * sent.unit) // tick
            row[TBNAME] = child
            rows.append(row)
        return layout, rows, await self._intake.submit_to(layout, rows, size=sent.size, told=True)


class ColumnDefaults:
    """Columns that points make."""

    @staticmethod
    def time() -> Column:
        return Column(TIME_COLUMN, ColumnType("TIMESTAMP"))

    @staticmethod
    def text(size: int) -> ColumnType:
        """Return a type with a size in powers of two, so that a table is not altered for each
        longer value.
        """
        length = _SMALLEST_TEXT
        while length < size:
            length *= 2
        return ColumnType("VARCHAR", length)


def _needs(points: Sequence[Point]) -> tuple[list[Column], list[Column]]:
    """Return (columns, tags) that the points of one measurement need."""
    columns: dict[str, ColumnType] = {}
    tags: dict[str, int] = {}
    for point in points:
        for name, value in point.fields.items():
            kind = _type(value)
            if _is_wider(kind, columns.get(name)):
                columns[name] = kind
        for name, text in point.tags:
            tags[name] = max(tags.get(name, 0), len(text.encode()))
    if not tags:
        tags = {"_tag": 0}
    return [Column(n, k) for n, k in columns.items()], [
        Column(n, ColumnDefaults.text(s)) for n, s in tags.items()
    ]


def _is_wider(kind: ColumnType, before: ColumnType | None) -> bool:
    if before is None:
        return True
    return kind.sized and before.sized and kind.length > before.length


def _type(value: Any) -> ColumnType:
    if isinstance(value, bool):
        return ColumnType("BOOL")
    if isinstance(value, int):
        return ColumnType("BIGINT")
    if isinstance(value, Unsigned):
        return ColumnType("BIGINT UNSIGNED")
    if isinstance(value, float):
        return ColumnType("DOUBLE")
    return ColumnDefaults.text(len(value.encode()))


def _of_the_line(error: PenstockError) -> bool:
    """Tell whether names that a line has are at fault, and not who writes, where or when."""
    return http.status_of(error) in (400, 409)
