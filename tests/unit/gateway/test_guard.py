"""What is logged of requests that fail: under the trace that they came with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.guard import RequestGuard
from penstock.errors import AuthError, BusError
from penstock.runtime.clock import SystemClock
from penstock.runtime.limits import Open, Rate
from penstock.runtime.newest_entries import NewestEntries
from tests.unit.logs import configure, logging_as_before


@pytest.fixture
def logged() -> Iterator[NewestEntries]:
    kept = NewestEntries()
    with logging_as_before():
        configure("gateway", "INFO", kept.keep)
        yield kept


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (BusError("Kafka is away", code="E_KAFKA_DOWN"), "request failed"),
        (AuthError("no", code="E_FORBIDDEN"), "refused"),
        (ValueError("x"), "a request found a bug"),
    ],
)
async def test_what_is_logged_of_a_failure_has_the_trace(
    logged: NewestEntries, error: Exception, event: str
) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        raise error

    nobody: Any = cast(Any, None)
    guard = RequestGuard(nobody, nobody, (), Rate(0, SystemClock()), Open(0))
    app = web.Application()
    app.add_routes([web.get("/", guard.wrap_unknown(fail))])
    async with TestClient(TestServer(app)) as client:
        await client.get("/", headers={"X-Trace-Id": "order-17"})
    told = [json.loads(entry) for entry in logged.take().entries]
    assert [(entry["event"], entry["trace"]) for entry in told] == [(event, "order-17")]
