"""The newest entries of all logs over HTTP: for whom, by which filters, and what is left out."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.guard import RequestGuard
from gateway.logs import LogRoutes
from penstock import names
from penstock.auth.access import Access
from penstock.catalog.view import Catalog
from penstock.coordination.service_logs import KEPT
from penstock.runtime.clock import ManualClock
from tests.unit.gateway.kit import NOW, ROOT
from tests.unit.gateway.test_rest import EverybodyIs
from tests.unit.services.memory_redis import MemoryRedis

_AT = datetime.fromisoformat("2027-01-15T08:00:00+00:00")


def said(redis: MemoryRedis, service: str, second: int, event: str, **more: Any) -> None:
    left_out = more.pop("left_out", None)
    time = (_AT + timedelta(seconds=second)).isoformat()
    line = {"timestamp": time, "level": "info", "event": event, "service": service, **more}
    fields = {"entry": json.dumps(line)} | ({} if left_out is None else {"left_out": left_out})
    redis.xadd(names.log(1, service), fields, maxlen=KEPT)
    redis.zadd(names.logs(), {f"1:{service}": NOW / 1e9})


@pytest.fixture
def redis() -> MemoryRedis:
    made = MemoryRedis()
    assert _AT.timestamp() == NOW / 1e9
    said(made, "gateway", -90, "ready")
    said(made, "gateway", -50, "rows were not written", trace="order-17", table="plant.meters")
    said(made, "gateway", -20, "request failed", level="error", exception="Traceback\n  X")
    said(made, "store", -40, "slow", level="warning", left_out=12)
    said(made, "store", -30, "ready")
    return made


async def ask(redis: MemoryRedis, query: str = "", user: str = ROOT) -> tuple[int, dict[str, Any]]:
    routes = LogRoutes(Access(Catalog, ROOT), cast(Any, redis), ManualClock(NOW))
    app = web.Application()
    app.add_routes(routes.routes(cast(RequestGuard, EverybodyIs(user))))
    async with TestClient(TestServer(app)) as client:
        answer = await client.get(f"/v1/logs{query}")
        return answer.status, dict(await answer.json())


async def test_it_is_for_who_has_admin(redis: MemoryRedis) -> None:
    status, told = await ask(redis, user="ann")
    assert (status, told["error"]["code"]) == (403, "E_FORBIDDEN")
    assert (await ask(redis))[0] == 200


async def test_entries_are_told_whole(redis: MemoryRedis) -> None:
    _, told = await ask(redis, "?limit=1")
    assert told["entries"] == [
        {
            "time": "2027-01-15T07:59:40.000000Z",
            "level": "error",
            "service": "gateway",
            "node": 1,
            "text": "request failed",
            "fields": {},
            "exception": "Traceback\n  X",
        }
    ]
    assert told["logs"] == [
        {"service": "gateway", "node": 1},
        {"service": "store", "node": 1},
    ]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ["request failed", "ready", "slow", "rows were not written", "ready"]),
        ("?limit=2", ["request failed", "ready"]),
        ("?service=store", ["ready", "slow"]),
        ("?service=none", []),
        ("?level=warning", ["request failed", "slow"]),
        ("?level=debug&limit=1", ["request failed"]),
        ("?trace=order-17", ["rows were not written"]),
        ("?text=METERS", ["rows were not written"]),
        ("?text=meters&service=store", []),
        ("?since=35s", ["request failed", "ready"]),
        ("?since=2027-01-15T07:59:40", ["request failed"]),
    ],
)
async def test_entries_are_merged_and_narrowed(
    redis: MemoryRedis, query: str, wanted: list[str]
) -> None:
    status, told = await ask(redis, query)
    assert (status, [entry["text"] for entry in told["entries"]]) == (200, wanted)


async def test_what_was_left_out_is_counted(redis: MemoryRedis) -> None:
    assert (await ask(redis))[1]["left_out"] == 12
    assert (await ask(redis, "?level=error"))[1]["left_out"] == 12
    assert (await ask(redis, "?since=35s"))[1]["left_out"] == 0


async def test_services_of_earlier_versions_send_nothing() -> None:
    assert await ask(MemoryRedis()) == (200, {"logs": [], "entries": [], "left_out": 0})


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?level=loud", "?since=soon"])
async def test_wrong_questions_are_refused(redis: MemoryRedis, query: str) -> None:
    status, told = await ask(redis, query)
    assert (status, told["error"]["code"]) == (400, "E_BODY")


async def test_redis_away_is_said(redis: MemoryRedis) -> None:
    redis.down = True
    status, told = await ask(redis)
    assert (status, told["error"]["code"]) == (503, "E_REDIS_DOWN")
