"""OpenTSDB's ways to write: POST /opentsdb/v1/put/json/{db} and /opentsdb/v1/put/telnet/{db}.

A metric is a supertable with the columns `_ts` and `_value`, made when it is first sent; each set
of tags is a child table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from gateway import notices
from gateway.guard import Handler, RequestGuard, body, user_of
from gateway.wires import puts
from gateway.wires.point_writer import Points, PointWriter
from gateway.wires.points import LineError, Point
from penstock import tuning
from penstock.errors import SchemaError

_MILLISECOND = 10**6
Read = Callable[[str], tuple[list[Point], list[LineError]]]


class OpenTsdb:
    """The handlers of `put`."""

    def __init__(self, writer: PointWriter) -> None:
        self._writer = writer

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            web.post("/opentsdb/v1/put/json/{db}", guard.wrap(self._put(puts.from_json))),
            web.post("/opentsdb/v1/put/telnet/{db}", guard.wrap(self._put(puts.from_lines))),
        ]

    def _put(self, read: Read) -> Handler:
        async def put(request: web.Request) -> web.Response:
            user = user_of(request)
            database = request.match_info["db"]
            self._writer.admit(user, database)
            data = await body(request)
            points, refused = await _parse(read, data)
            sent = Points(points, refused, _MILLISECOND, len(data))
            said = await self._writer.write(user, database, sent)
            return web.Response(status=204, headers=notices.headers(said))

        return put


async def _parse(read: Read, data: bytes) -> tuple[list[Point], list[LineError]]:
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        raise SchemaError("the body is not UTF-8", code="E_BODY", detail=str(wrong)) from None
    if len(text) < tuning.LINE_CHARACTERS_PARSED_IN_LOOP:
        return read(text)
    return await asyncio.to_thread(read, text)
