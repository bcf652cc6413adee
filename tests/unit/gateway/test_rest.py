"""POST /v1/query over HTTP: what of its body reaches the statements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway import guard, http
from gateway.answers import Affected, Answer
from gateway.guard import RequestGuard
from gateway.rest import SqlRoutes
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from penstock.errors import PenstockError
from penstock.rows.parameters import Moment
from penstock.runtime.clock import SystemClock


class Open:
    """Lets everybody in as one user."""

    def __init__(self, user: str = "ann") -> None:
        self._user = user

    def wrap(self, handler: Any, answer: Any = http.error_response) -> Any:
        async def pass_on(request: web.Request) -> web.StreamResponse:
            request[guard._USER] = self._user
            try:
                return cast(web.StreamResponse, await handler(request))
            except PenstockError as error:
                return cast(web.StreamResponse, answer(error))

        return pass_on


class _Asked:
    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    async def run(self, text: str, context: RequestContext) -> Answer:
        self.contexts.append(context)
        return Affected(1)


@pytest.fixture
def asked() -> _Asked:
    return _Asked()


@pytest.fixture
async def client(asked: _Asked) -> AsyncIterator[TestClient[Any, Any]]:
    app = web.Application()
    routes = SqlRoutes(cast(Executor, asked), cast(Any, None), SystemClock(), {})
    app.add_routes(routes.routes(cast(RequestGuard, Open())))
    async with TestClient(TestServer(app)) as made:
        yield made


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (None, None),
        ([], []),
        ([1, "it's", None, True], [1, "it's", None, True]),
        ({"a": {"$bytes": "00ff"}}, {"a": b"\x00\xff"}),
        ([{"$timestamp": "2026-03-01"}], [Moment("2026-03-01")]),
    ],
)
async def test_parameters_come_beside_the_text(
    client: TestClient[Any, Any], asked: _Asked, sent: object, got: object
) -> None:
    answer = await client.post("/v1/query", json={"sql": "SELECT ?", "parameters": sent})
    assert answer.status == 200
    assert asked.contexts[-1].parameters == got


async def test_other_parameters_are_refused(client: TestClient[Any, Any], asked: _Asked) -> None:
    answer = await client.post("/v1/query", json={"sql": "SELECT ?", "parameters": "x"})
    assert answer.status == 400
    assert (await answer.json())["error"]["code"] == "E_PARAMETER"
    assert asked.contexts == []


async def test_a_bare_text_has_none(client: TestClient[Any, Any], asked: _Asked) -> None:
    assert (await client.post("/v1/query", data="SELECT 1")).status == 200
    assert asked.contexts[-1].parameters is None


async def test_the_dialect_is_told(asked: _Asked, client: TestClient[Any, Any]) -> None:
    answer = await client.get("/v1/dialect")
    told = await answer.json()
    assert answer.status == 200 and told.keys() == {"keywords", "types", "clauses", "functions"}
    assert "INTERVAL" in told["keywords"] and "VARCHAR" in told["types"]
    assert not asked.contexts
