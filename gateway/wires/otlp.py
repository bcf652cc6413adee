"""OpenTelemetry metrics over HTTP: POST /v1/metrics, in JSON and protobuf.

Tables are made as they come, as those of Prometheus remote write. Data points that do not fit are
told as a partial success, the others are written: a collector sends neither again.
"""

from __future__ import annotations

import asyncio
from functools import partial

from aiohttp import web

from gateway import notices
from gateway.guard import RequestGuard, body, user_of
from gateway.wires import otlp_messages
from gateway.wires.otlp_answers import OtlpEncoding, refusal, success
from gateway.wires.otlp_points import read_points
from gateway.wires.partial_write import PartialWrite
from gateway.wires.point_writer import PointBatch, PointWriter
from penstock.errors import SchemaError

#: names the database where an exporter's address may have no query
DATABASE_HEADER = "X-Penstock-Database"
#: what is unpacked while a body is read
_PACKED = ("identity", "gzip", "deflate")
#: bodies up to here are read in the event loop
_SMALL = 4096
_NANOSECOND = 1


class OtlpMetrics:
    """The handler."""

    def __init__(self, writer: PointWriter) -> None:
        self._writer = writer

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        handlers = {
            encoding: guard.wrap(partial(self._write, encoding), partial(refusal, encoding))
            for encoding in OtlpEncoding
        }

        async def write(request: web.Request) -> web.StreamResponse:
            return await handlers[_encoding(request)](request)

        return [web.post("/v1/metrics", write)]

    async def _write(self, encoding: OtlpEncoding, request: web.Request) -> web.Response:
        database = request.query.get("db") or request.headers.get(DATABASE_HEADER)
        if not database:
            hint = f"?db=… in the address, or the header {DATABASE_HEADER}"
            raise SchemaError("the database is not named", code="E_BODY", hint=hint)
        user = user_of(request)
        self._writer.admit(user, database)
        _require_known_form(encoding, request)
        data = await body(request)
        if len(data) < _SMALL:
            sent = _read(encoding, data)
        else:
            sent = await asyncio.to_thread(_read, encoding, data)
        try:
            said = await self._writer.write(user, database, sent)
        except PartialWrite as error:
            rejected = len({line.line for line in error.lines})
            return success(encoding, rejected, error.message, notices.headers(error.notices))
        return success(encoding, headers=notices.headers(said))


def _encoding(request: web.Request) -> OtlpEncoding:
    """Return the encoding of a request, or JSON for one that is in none of ours."""
    protobuf = OtlpEncoding.PROTOBUF
    return protobuf if request.content_type == protobuf.value else OtlpEncoding.JSON


def _require_known_form(encoding: OtlpEncoding, request: web.Request) -> None:
    """Raise SchemaError (415): what was sent is in another encoding, or packed otherwise."""
    packed = request.headers.get("Content-Encoding", "identity").lower()
    if request.content_type != encoding.value or packed not in _PACKED:
        raise SchemaError(
            "OTLP is taken as JSON or protobuf, packed by gzip or not",
            code="E_MEDIA_TYPE",
            detail=f"{request.content_type[:100]} {packed[:32]}",
            hint=f"Content-Type: {OtlpEncoding.PROTOBUF.value}",
        )


def _read(encoding: OtlpEncoding, data: bytes) -> PointBatch:
    protobuf = encoding is OtlpEncoding.PROTOBUF
    sent = otlp_messages.decode(data) if protobuf else otlp_messages.decode_json(data)
    points, refused = read_points(sent)
    return PointBatch(points, refused, _NANOSECOND, len(data))
