"""GET /v1/tables/{db}/{table}/last: the latest row of child tables, straight from Redis.

Owns the shape of that answer. It may lack what was written within the last second: SELECT
LAST_ROW(*), which asks the store, does not. Refuses a supertable with more children than one answer
holds, unless `tbname` names some.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import redis
from aiohttp import web

from gateway import http
from gateway.children import text
from gateway.guard import RequestGuard, user_of
from gateway.intake import WriteIntake
from penstock import names
from penstock.catalog.stored import present
from penstock.coordination.redis_link import ask
from penstock.errors import SchemaError

_MOST = 10_000


class LatestRoutes:
    """The handler."""

    def __init__(self, intake: WriteIntake, client: redis.Redis) -> None:
        self._intake = intake
        self._redis = client

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/tables/{db}/{table}/last", guard.wrap(self._last))]

    async def _last(self, request: web.Request) -> web.Response:
        layout, child = await self._intake.locate_for(
            user_of(request), "READ", request.match_info["db"], request.match_info["table"]
        )
        wanted = (
            [child]
            if child is not None
            else request.query.getall("tbname", [layout.table] if layout.plain else [])
        )
        key = names.last_row(layout.database, layout.table)
        found = await asyncio.to_thread(ask, lambda: self._read(key, wanted))
        rows = [
            {"tbname": name, **present(layout.stored, json.loads(row))}
            for name, row in found.items()
            if row is not None
        ]
        return http.json_response({"precision": layout.precision, "rows": rows})

    def _read(self, key: str, wanted: list[str]) -> dict[str, Any]:
        if wanted:
            return dict(zip(wanted, self._redis.hmget(key, wanted), strict=True))
        if self._redis.hlen(key) > _MOST:
            raise SchemaError(
                f"there are more than {_MOST} child tables",
                code="E_TOO_LARGE",
                hint="name some: ?tbname=a&tbname=b",
            )
        return {text(name): row for name, row in self._redis.hgetall(key).items()}
