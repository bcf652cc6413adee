"""Prometheus remote write: POST /api/v1/write?db=….

A metric is a supertable with the columns `_ts` and `_value`, made when it is first sent; labels are
its tags. Prometheus drops a request that is answered with 4xx and sends one with 5xx again, which
is what our errors mean anyway.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from gateway import notices
from gateway.guard import RequestGuard, body, user_of
from gateway.wires import remote_write
from gateway.wires.point_writer import PointBatch, PointWriter
from penstock.errors import SchemaError

_MILLISECOND = 10**6
#: compressed bodies up to here are read in the event loop
_SMALL = 4096


class RemoteWrite:
    """The handler of remote write."""

    def __init__(self, writer: PointWriter, max_body: int) -> None:
        """*max_body*: bytes that a request may have once it is unpacked."""
        self._writer = writer
        self._max_body = max_body

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.post("/api/v1/write", guard.wrap(self._write))]

    async def _write(self, request: web.Request) -> web.Response:
        database = request.query.get("db")
        if not database:
            raise SchemaError("the database is not named", code="E_BODY", hint="?db=…")
        user = user_of(request)
        self._writer.admit(user, database)
        _require_version_1(request)
        data = await body(request)
        if len(data) < _SMALL:
            sent = self._read(data)
        else:
            sent = await asyncio.to_thread(self._read, data)
        said = await self._writer.write(user, database, sent)
        return web.Response(status=204, headers=notices.headers(said))

    def _read(self, data: bytes) -> PointBatch:
        plain = remote_write.decompress(data, self._max_body)
        points, refused = remote_write.points(plain)
        return PointBatch(points, refused, _MILLISECOND, len(plain))


def _require_version_1(request: web.Request) -> None:
    """Raise SchemaError (415), after which a sender of version 2 tries version 1."""
    kind = request.headers.get("Content-Type", "")
    packed = request.headers.get("Content-Encoding", "snappy").lower()
    if "io.prometheus.write.v2" in kind or packed != "snappy":
        raise SchemaError(
            "remote write is taken in version 1, packed by snappy",
            code="E_MEDIA_TYPE",
            detail=f"{kind[:100]} {packed[:32]}",
            hint='protobuf_message: "prometheus.WriteRequest"',
        )
