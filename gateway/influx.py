"""InfluxDB's ways to write: POST /influxdb/v1/write, /write (1.x) and /api/v2/write, all with line
protocol.

Owns what a point becomes: the measurement is a supertable (made or widened when needed), tags are
its tags, and each set of tag values is a child table with a name made from them. Lines that do not
fit (another type than the table's column, say) are refused by their numbers; the others are
written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from gateway import http, notices
from gateway.ddl import growth
from gateway.ddl.definer import Definer, Elsewhere
from gateway.forward import Forwarder
from gateway.guard import RequestGuard, body, user_of
from gateway.idempotency import Receipt
from gateway.intake import WriteIntake, database_of, layout_of, refuse_virtual
from gateway.layout import TBNAME, RowLayout
from gateway.lines import LineError, Point, Unsigned, parse
from gateway.partial_write import PartialWrite, Row, agreeing, fitting, shapes, words_of
from gateway.row_error import RowError
from penstock import names, tuning
from penstock.auth.access import Access
from penstock.errors import PenstockError, SchemaError
from penstock.runtime.clock import Clock
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType

TIME_COLUMN = "_ts"
_UNITS = {
    "n": 1,
    "ns": 1,
    "u": 10**3,
    "us": 10**3,
    "µ": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_SMALLEST_TEXT = 64


class Influx:
    """The handlers of line protocol."""

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

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        first = guard.wrap(self._write_v1, _error_v1)
        second = guard.wrap(self._write_v2, _error_v2)
        return [
            web.post("/influxdb/v1/write", first),
            web.post("/write", first),
            web.post("/api/v2/write", second),
            web.post("/influxdb/api/v2/write", second),
            *(web.get(path, _ping) for path in ("/ping", "/influxdb/v1/ping", "/health")),
        ]

    async def _write_v1(self, request: web.Request) -> web.Response:
        return await self._write(
            request, request.query.get("db"), request.query.get("precision", "ns")
        )

    async def _write_v2(self, request: web.Request) -> web.Response:
        bucket = request.query.get("bucket")
        return await self._write(
            request, bucket and bucket.partition("/")[0], request.query.get("precision", "ns")
        )

    async def _write(
        self, request: web.Request, database: str | None, precision: str
    ) -> web.Response:
        if not database:
            raise SchemaError(
                "the database is not named", code="E_BODY", hint="?db=… (1.x) or ?bucket=… (2.x)"
            )
        if precision not in _UNITS:
            raise SchemaError(
                f"unknown precision {precision[:16]!r}",
                code="E_BODY",
                hint=f"one of {', '.join(_UNITS)}",
            )
        data = await body(request)
        points, refused = await _parse(data)
        by_table: dict[str, list[Point]] = {}
        for point in self._rename(database, points):
            by_table.setdefault(point.measurement, []).append(point)
        user = user_of(request)
        ready = {}
        for table, some in by_table.items():
            ready[table], bad = await self._prepare(user, database, table, some)
            refused += bad
        writes = [
            (some, await self._submit(database, table, some, precision, len(data)))
            for table, some in ready.items()
            if some
        ]
        written = 0
        said: list[str] = []
        for some, (layout, rows, future) in writes:
            try:
                receipt: Receipt = await future
            except RowError as error:
                receipt, bad = await self._rest(error, layout, some, rows, len(data))
                refused += bad
            written += receipt.rows
            said += receipt.notices
        if refused:
            raise PartialWrite(refused, written, said)
        return web.Response(status=204, headers=notices.headers(said))

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
        self, database: str, table: str, points: list[Point], precision: str, size: int
    ) -> tuple[RowLayout, list[Row], asyncio.Future[Any]]:
        """Points on their way as rows of their table."""
        found = self._intake.find(database, table)
        assert found is not None, "ensure() made the table"
        layout = found[0]
        now = self._clock.now()
        tick = 10**9 // TICKS_PER_SECOND[layout.precision]
        unit = _UNITS[precision]
        rows = []
        for point in points:
            row: dict[str, Any] = {
                k: v.value if isinstance(v, Unsigned) else v for k, v in point.fields.items()
            }
            row.update(point.tags)
            row[layout.time] = (now if point.time is None else point.time * unit) // tick
            row[TBNAME] = names.line_child(point.measurement, point.tags)
            rows.append(row)
        return layout, rows, await self._intake.submit_to(layout, rows, size=size, told=True)


class ColumnDefaults:
    """Columns that line protocol makes."""

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


async def _parse(data: bytes) -> tuple[list[Point], list[LineError]]:
    """Return the points of a body, and its bad lines. Raises SchemaError."""
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        raise SchemaError("the body is not UTF-8", code="E_BODY", detail=str(wrong)) from None
    if len(text) < tuning.LINE_CHARACTERS_PARSED_IN_LOOP:
        return parse(text)
    return await asyncio.to_thread(parse, text)


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


def _headers(error: PenstockError, response: web.Response) -> dict[str, str]:
    """Return those of *response* that are not about its body, and notices of what was written."""
    kept = {
        k: v for k, v in response.headers.items() if k not in ("Content-Type", "Content-Length")
    }
    return kept | notices.headers(error.notices) if isinstance(error, PartialWrite) else kept


def _error_v1(error: PenstockError) -> web.Response:
    """Return InfluxDB 1's form of an error: a text."""
    response = http.error_response(error)
    text = error.message + (f" ({error.hint})" if error.hint else "")
    headers = _headers(error, response)
    return http.json_response({"error": text}, status=response.status, headers=headers)


def _error_v2(error: PenstockError) -> web.Response:
    """Return InfluxDB 2's form of an error, with ours inside."""
    response = http.error_response(error)
    words = {
        400: "invalid",
        401: "unauthorized",
        404: "not found",
        413: "request too large",
        429: "too many requests",
        503: "unavailable",
    }
    body_: dict[str, Any] = {
        "code": words.get(response.status, "internal error"),
        "message": error.message,
        "error": error.to_dict(),
    }
    if isinstance(error, PartialWrite):
        body_["line"] = error.lines[0].line
    headers = _headers(error, response)
    return http.json_response(body_, status=response.status, headers=headers)


async def _ping(request: web.Request) -> web.Response:
    if request.path == "/health":
        return http.json_response(
            {"name": "penstock", "status": "pass", "message": "ready for writes"}
        )
    return web.Response(status=204, headers={"X-Influxdb-Version": "penstock"})
