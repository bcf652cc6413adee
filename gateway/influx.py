"""InfluxDB's ways to write: POST /influxdb/v1/write, /write (1.x) and /api/v2/write, all with line protocol.

Owns what a point becomes: the measurement is a supertable (made or widened when needed), tags are its tags, and each set of tag
values is a child table with a name made from them. Fields with other types than the table's columns are refused with their line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from gateway import http
from gateway.ddl import Definer, Elsewhere
from gateway.door import Door, body, user_of
from gateway.forward import Forwarder
from gateway.intake import Intake, database_of
from gateway.lines import LineError, Point, Unsigned, parse
from gateway.rows import TBNAME, RowError
from penstock import names
from penstock.access import Access
from penstock.clock import Clock
from penstock.errors import PenstockError, SchemaError
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType

TIME_COLUMN = "_ts"
_UNITS = {
    "n": 1, "ns": 1, "u": 10**3, "us": 10**3, "µ": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_SMALLEST_TEXT = 64
#: texts longer than this are parsed in a worker thread
_LONG = 64 * 1024


class Influx:
    """The handlers of line protocol."""

    def __init__(self, intake: Intake, definer: Definer, forwarder: Forwarder, access: Access, clock: Clock) -> None:
        self._intake, self._definer, self._forwarder, self._access, self._clock = intake, definer, forwarder, access, clock

    def routes(self, door: Door) -> list[web.RouteDef]:
        first, second = door.guard(self._write_v1, _error), door.guard(self._write_v2, _error)
        return [
            web.post("/influxdb/v1/write", first),
            web.post("/write", first),
            web.post("/api/v2/write", second),
            web.post("/influxdb/api/v2/write", second),
            *(web.get(path, _ping) for path in ("/ping", "/influxdb/v1/ping", "/health")),
        ]

    async def _write_v1(self, request: web.Request) -> web.Response:
        return await self._write(request, request.query.get("db"), request.query.get("precision", "ns"))

    async def _write_v2(self, request: web.Request) -> web.Response:
        bucket = request.query.get("bucket")
        return await self._write(request, bucket and bucket.partition("/")[0], request.query.get("precision", "ns"))

    async def _write(self, request: web.Request, database: str | None, precision: str) -> web.Response:
        if not database:
            raise SchemaError("the database is not named", code="E_BODY", hint="?db=… (1.x) or ?bucket=… (2.x)")
        if precision not in _UNITS:
            raise SchemaError(f"unknown precision {precision[:16]!r}", code="E_BODY", hint=f"one of {', '.join(_UNITS)}")
        data = await body(request)
        try:
            text = data.decode()
        except UnicodeDecodeError as wrong:
            raise SchemaError("the body is not UTF-8", code="E_BODY", detail=str(wrong)) from None
        points = parse(text) if len(text) < _LONG else await asyncio.to_thread(parse, text)
        by_table: dict[str, list[Point]] = {}
        for point in points:
            by_table.setdefault(point.measurement, []).append(point)
        user = user_of(request)
        for table, some in by_table.items():
            await self._ensure(user, database, table, *_needs(some))
        futures = [await self._submit(database, table, some, precision, len(data)) for table, some in by_table.items()]
        for future, some in zip(futures, by_table.values(), strict=True):
            try:
                await future
            except RowError as error:
                if error.row < 0:
                    raise
                raise LineError(error.message.partition(": ")[2] or error.message, some[error.row].line) from error
        return web.Response(status=204)

    async def _ensure(self, user: str, database: str, table: str, columns: list[Column], tags: list[Column]) -> None:
        """Make the table, or give it what these points need and it lacks; who may do neither may still write what fits."""
        known = self._definer.catalog.table(database, table)
        if known is None:
            self._access.require_named(user, "CREATE", database, table)
        else:
            self._access.require(user, "WRITE", known)
        database_of(self._definer.catalog, database)
        if not self._definer.missing(database, table, columns, tags):
            return
        if known is not None:
            self._access.require(user, "ALTER", known)
        time = ColumnDefaults.time()
        try:
            await self._definer.run(lambda: self._definer.widen(database, table, time, columns, tags), user)
        except Elsewhere as elsewhere:
            await self._forwarder.widen(elsewhere.address, user, database, table, time, columns, tags)

    async def _submit(self, database: str, table: str, points: list[Point], precision: str, size: int) -> asyncio.Future[Any]:
        found = self._intake.find(database, table)
        assert found is not None, "ensure() made the table"
        layout = found[0]
        now = self._clock.now()
        tick = 10**9 // TICKS_PER_SECOND[layout.precision]
        unit = _UNITS[precision]
        rows = []
        for point in points:
            row: dict[str, Any] = {k: v.value if isinstance(v, Unsigned) else v for k, v in point.fields.items()}
            row.update(point.tags)
            row[layout.time] = (now if point.time is None else point.time * unit) // tick
            row[TBNAME] = names.line_child(point.measurement, point.tags)
            rows.append(row)
        return await self._intake.submit_to(layout, rows, size=size)


class ColumnDefaults:
    """Columns that line protocol makes."""

    @staticmethod
    def time() -> Column:
        return Column(TIME_COLUMN, ColumnType("TIMESTAMP"))

    @staticmethod
    def text(size: int) -> ColumnType:
        """Sizes in powers of two, so that a table is not altered for each longer value."""
        length = _SMALLEST_TEXT
        while length < size:
            length *= 2
        return ColumnType("VARCHAR", length)


def _needs(points: Sequence[Point]) -> tuple[list[Column], list[Column]]:
    """(columns, tags) that the points of one measurement need."""
    columns: dict[str, ColumnType] = {}
    tags: dict[str, int] = {}
    for point in points:
        for name, value in point.fields.items():
            kind = _type(value)
            before = columns.get(name)
            if before is None or (kind.sized and before.sized and kind.length > before.length):
                columns[name] = kind
        for name, text in point.tags:
            tags[name] = max(tags.get(name, 0), len(text.encode()))
    both = {c.lower() for c in columns} & {t.lower() for t in tags}
    if both:
        line = next(p.line for p in points if {f.lower() for f in p.fields} & both or {t.lower() for t, _ in p.tags} & both)
        raise LineError(f'"{min(both)}" is a tag and a field', line)
    if not tags:
        tags = {"_tag": 0}
    return [Column(n, k) for n, k in columns.items()], [Column(n, ColumnDefaults.text(s)) for n, s in tags.items()]


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


def _error(error: PenstockError) -> web.Response:
    """InfluxDB's form of an error, with ours inside."""
    response = http.error_response(error)
    words = {400: "invalid", 401: "unauthorized", 404: "not found", 413: "request too large", 429: "too many requests", 503: "unavailable"}
    body_ = {"code": words.get(response.status, "internal error"), "message": error.message, "error": error.to_dict()}
    headers = {k: v for k, v in response.headers.items() if k not in ("Content-Type", "Content-Length")}
    return http.json_response(body_, status=response.status, headers=headers)


async def _ping(request: web.Request) -> web.Response:
    if request.path == "/health":
        return http.json_response({"name": "penstock", "status": "pass", "message": "ready for writes"})
    return web.Response(status=204, headers={"X-Influxdb-Version": "penstock"})
