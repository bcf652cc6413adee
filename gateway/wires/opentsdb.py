"""OpenTSDB's ways to write: POST /opentsdb/v1/put/json/{db} and /opentsdb/v1/put/telnet/{db}.

A metric is a supertable with the columns `_ts` and `_value`, made when it is first sent; each set
of tags is a child table.
"""

from __future__ import annotations

from aiohttp import web

from gateway import notices
from gateway.guard import Handler, RequestGuard, body, user_of
from gateway.wires import puts
from gateway.wires.point_writer import PointBatch, PointWriter
from gateway.wires.text_body import Read, read_text

_MILLISECOND = 10**6


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
            points, refused = await read_text(read, data)
            sent = PointBatch(points, refused, _MILLISECOND, len(data))
            said = await self._writer.write(user, database, sent)
            return web.Response(status=204, headers=notices.headers(said))

        return put
