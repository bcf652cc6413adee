"""InfluxDB's ways to write: POST /influxdb/v1/write, /write (1.x) and /api/v2/write, all with line
protocol; and the forms of errors that InfluxDB's clients read.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gateway import http, notices
from gateway.guard import RequestGuard, body, user_of
from gateway.wires.influxql.times import EPOCHS
from gateway.wires.lines import parse
from gateway.wires.partial_write import PartialWrite
from gateway.wires.point_writer import PointBatch, PointWriter
from gateway.wires.text_body import read_text
from penstock.errors import PenstockError, SchemaError


class InfluxWrite:
    """The handlers of line protocol."""

    def __init__(self, writer: PointWriter) -> None:
        self._writer = writer

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        first = guard.wrap(self._write_v1, error_v1)
        second = guard.wrap(self._write_v2, error_v2)
        return [
            web.post("/influxdb/v1/write", first),
            web.post("/write", first),
            web.post("/api/v2/write", second),
            web.post("/influxdb/api/v2/write", second),
        ]

    async def _write_v1(self, request: web.Request) -> web.Response:
        return await self._write(request, request.query.get("db"))

    async def _write_v2(self, request: web.Request) -> web.Response:
        bucket = request.query.get("bucket")
        return await self._write(request, bucket and bucket.partition("/")[0])

    async def _write(self, request: web.Request, database: str | None) -> web.Response:
        precision = request.query.get("precision", "ns")
        if not database:
            raise SchemaError(
                "the database is not named", code="E_BODY", hint="?db=… (1.x) or ?bucket=… (2.x)"
            )
        if precision not in EPOCHS:
            raise SchemaError(
                f"unknown precision {precision[:16]!r}",
                code="E_BODY",
                hint=f"one of {', '.join(EPOCHS)}",
            )
        user = user_of(request)
        self._writer.admit(user, database)
        data = await body(request)
        points, refused = await read_text(parse, data)
        sent = PointBatch(points, refused, EPOCHS[precision], len(data))
        said = await self._writer.write(user, database, sent)
        return web.Response(status=204, headers=notices.headers(said))


def _headers(error: PenstockError, response: web.Response) -> dict[str, str]:
    """Return those of *response* that are not about its body, and notices of what was written."""
    kept = {
        k: v for k, v in response.headers.items() if k not in ("Content-Type", "Content-Length")
    }
    return kept | notices.headers(error.notices) if isinstance(error, PartialWrite) else kept


def error_v1(error: PenstockError) -> web.Response:
    """Return InfluxDB 1's form of an error: a text."""
    response = http.error_response(error)
    text = error.message + (f" ({error.hint})" if error.hint else "")
    headers = _headers(error, response)
    return http.json_response({"error": text}, status=response.status, headers=headers)


def error_v2(error: PenstockError) -> web.Response:
    """Return InfluxDB 2's form of an error, with ours inside."""
    response = http.error_response(error)
    words = {
        400: "invalid",
        401: "unauthorized",
        403: "forbidden",
        404: "not found",
        409: "conflict",
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
