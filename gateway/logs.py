"""GET /v1/logs: the newest entries of the logs of all services, for who has ADMIN.

Owns what is asked for and the form of the answer. How entries come here, and that they are those of
the services' own logs, is the business of `penstock.coordination.service_logs`.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import redis
from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, user_of
from penstock.auth.access import Access
from penstock.coordination import service_logs
from penstock.coordination.redis_link import ask
from penstock.coordination.service_logs import SentEntry
from penstock.errors import SchemaError
from penstock.runtime.clock import Clock
from penstock.runtime.log_entries import LEVELS, LogFilter, moment_of

#: entries of an answer
DEFAULT = 200
MOST = 1_000
#: filters that take all that services send: of each log no more is read than is answered
_ALL = (LogFilter(), LogFilter(severity=LEVELS.index("info")))


class LogRoutes:
    """The handler; `routes` mounts it."""

    def __init__(self, access: Access, client: redis.Redis, clock: Clock) -> None:
        self._access = access
        self._redis = client
        self._clock = clock

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/logs", guard.wrap(self._tell))]

    async def _tell(self, request: web.Request) -> web.Response:
        """`?service=&level=&trace=&text=&since=&limit=` → `{"logs", "entries", "left_out"}`, the
        newest first.
        """
        self._access.require(user_of(request), "ADMIN", None)
        now = self._clock.now() / 1e9
        most = http.limit_of(request, DEFAULT, MOST)
        wanted = _filter(request, datetime.fromtimestamp(now, UTC))
        service = request.query.get("service", "")
        told = await asyncio.to_thread(ask, lambda: self._read(now, service, wanted, most))
        return http.json_response(told, headers={"Cache-Control": "no-store"})

    def _read(self, now: float, service: str, wanted: LogFilter, most: int) -> dict[str, Any]:
        logs = service_logs.senders(self._redis, now)
        chosen = [log for log in logs if service in ("", log[1])]
        found = service_logs.read(self._redis, chosen, most if wanted in _ALL else None)
        recent = [sent for sent in found if wanted.is_recent(sent.entry)]
        return {
            "logs": [{"service": name, "node": node} for node, name in logs],
            "entries": [_describe(sent) for sent in recent if wanted.has(sent.entry)][:most],
            "left_out": sum(sent.left_out for sent in recent),
        }


def _filter(request: web.Request, now: datetime) -> LogFilter:
    asked = request.query
    level = asked.get("level", "info")
    if level not in LEVELS:
        raise SchemaError(f"level is one of {', '.join(LEVELS)}", code="E_BODY")
    try:
        since = moment_of(asked["since"], now) if asked.get("since") else None
    except ValueError:
        raise SchemaError(
            f"since={asked['since'][:64]} is no time",
            code="E_BODY",
            hint="10m, 2h, 1d, or 2026-03-01T09:00",
        ) from None
    return LogFilter(since, LEVELS.index(level), asked.get("trace", ""), asked.get("text", ""))


def _describe(sent: SentEntry) -> dict[str, Any]:
    entry = sent.entry
    return {
        "time": entry.time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "level": entry.level,
        "service": entry.service,
        "node": sent.node,
        "text": entry.text,
        "fields": {name: value for name, value in entry.fields.items() if name != "exception"},
        "exception": str(entry.fields.get("exception", "")),
    }
