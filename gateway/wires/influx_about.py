"""What InfluxDB's clients ask about a server: whether it is there, its buckets and organisations;
and buckets that they make.

Databases are the buckets. There is one organisation, which answers to every name, as the write
endpoint does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, body, user_of
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from gateway.wires.databases import create_database
from gateway.wires.influx_write import error_v2
from penstock.auth.access import Access, visible
from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError, SchemaError
from penstock.runtime.clock import Clock

_ORGANISATION = "0000000000000001"
_NAME = "penstock"
_MOST_LISTED = 100
#: bytes of a request for a bucket
_MOST_BODY = 64 * 1024
_FOR_EVER = 10**10


class InfluxAbout:
    """The handlers; what tells whether the server is there asks for no login."""

    def __init__(
        self, executor: Executor, catalog: Callable[[], Catalog], access: Access, clock: Clock
    ) -> None:
        self._executor = executor
        self._catalog = catalog
        self._access = access
        self._clock = clock
        self._started = clock.now() // 10**9

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        buckets = guard.wrap(self._list_buckets, error_v2)
        return [
            web.get("/ping", _ping),
            web.get("/influxdb/v1/ping", _ping),
            web.get("/health", _health),
            web.get("/ready", self._ready),
            web.get("/api/v2/buckets", buckets),
            web.post("/api/v2/buckets", guard.wrap(self._make_bucket, error_v2)),
            web.get("/api/v2/buckets/{id}", guard.wrap(self._show_bucket, error_v2)),
            web.get("/api/v2/orgs", guard.wrap(self._list_organisations, error_v2)),
        ]

    async def _ready(self, request: web.Request) -> web.Response:
        started = datetime.fromtimestamp(self._started, UTC).isoformat()
        up = f"{self._clock.now() // 10**9 - self._started}s"
        return http.json_response({"status": "ready", "started": started, "up": up})

    async def _list_buckets(self, request: web.Request) -> web.Response:
        query = request.query
        found = [
            _bucket(database)
            for database in sorted(self._databases(request), key=lambda d: d.name)
            if query.get("name", database.name).lower() == database.name.lower()
            and query.get("id", _id(database)) == _id(database)
        ]
        offset = _count(query.get("offset"), 0)
        limit = min(_count(query.get("limit"), 20), _MOST_LISTED)
        page = found[offset : offset + limit]
        return http.json_response({"links": {"self": "/api/v2/buckets"}, "buckets": page})

    async def _make_bucket(self, request: web.Request) -> web.Response:
        name, seconds = _wanted_bucket(await body(request, _MOST_BODY))
        sql = create_database(name, seconds * 10**9 or None, again=False)
        context = RequestContext(user=user_of(request), remote=request.remote or "")
        await self._executor.run(sql, context)
        made = self._catalog().database(name)
        if made is None:
            raise CatalogError(f'bucket "{name}" was dropped meanwhile', code="E_NO_DATABASE")
        return http.json_response(_bucket(made), status=201)

    async def _show_bucket(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        for database in self._databases(request):
            if _id(database) == wanted:
                return http.json_response(_bucket(database))
        raise CatalogError("bucket not found", code="E_NO_DATABASE")

    async def _list_organisations(self, request: web.Request) -> web.Response:
        found = [{"id": _ORGANISATION, "name": request.query.get("org", _NAME)}]
        if request.query.get("orgID", _ORGANISATION) != _ORGANISATION:
            found = []
        return http.json_response({"links": {"self": "/api/v2/orgs"}, "orgs": found})

    def _databases(self, request: web.Request) -> list[Database]:
        return visible(self._catalog(), self._access, user_of(request)).databases()


def _id(database: Database) -> str:
    return f"{database.id:016x}"


def _bucket(database: Database) -> dict[str, Any]:
    rules = []
    if database.keep is not None:
        rules = [{"type": "expire", "everySeconds": database.keep.ticks("ms") // 1000}]
    return {
        "id": _id(database),
        "orgID": _ORGANISATION,
        "type": "user",
        "name": database.name,
        "retentionRules": rules,
    }


def _wanted_bucket(data: bytes) -> tuple[str, int]:
    """Return name and seconds of a bucket that is to be made; 0: rows are kept for ever. Raises
    SchemaError.
    """
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise SchemaError("the body is no JSON", code="E_BODY", detail=str(wrong)[:200]) from None
    name = asked.get("name") if isinstance(asked, dict) else None
    if not isinstance(name, str):
        raise SchemaError('the body needs a "name"', code="E_BODY")
    return name, _seconds_to_keep(asked.get("retentionRules") or [])


def _seconds_to_keep(rules: Any) -> int:
    """Return how long rows stay by the rules of a bucket; 0: for ever. Raises SchemaError."""
    if not isinstance(rules, list) or len(rules) > 1 or not all(isinstance(r, dict) for r in rules):
        raise SchemaError("retentionRules is a list of one rule at most", code="E_BODY")
    seconds = rules[0].get("everySeconds", 0) if rules else 0
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds < _FOR_EVER:
        raise SchemaError(
            "everySeconds is a whole number of seconds", code="E_BODY", hint="0 keeps rows for ever"
        )
    return seconds


def _count(text: str | None, usual: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else usual


async def _ping(request: web.Request) -> web.Response:
    return web.Response(status=204, headers={"X-Influxdb-Version": "penstock"})


async def _health(request: web.Request) -> web.Response:
    return http.json_response(
        {"name": "penstock", "status": "pass", "message": "ready for queries and writes"}
    )
