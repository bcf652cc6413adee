"""InfluxDB 1.x's way to ask: GET and POST /query with InfluxQL, answered as `results`.

Owns the parameters of a request and the form of its answer. Errors of a statement stand in its
result, with status 200, as InfluxDB has it; who asks, and what is down, has a status of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, body, user_of
from gateway.parsing import parse_apart
from gateway.wires.influx_write import error_v1
from gateway.wires.influxql.bound_values import read_bound
from gateway.wires.influxql.lexer import BoundValues
from gateway.wires.influxql.parser import parse
from gateway.wires.influxql.runner import Asker, Runner
from gateway.wires.influxql.times import EPOCHS
from gateway.wires.influxql.tree import Statement
from penstock.errors import PenstockError, SchemaError
from penstock.runtime.clock import Clock

_FORM = "application/x-www-form-urlencoded"
_MOST_PARAMETERS = 64
_OF_THE_REQUEST = frozenset((401, 403, 413, 429))


class InfluxQuery:
    """The handlers of InfluxQL."""

    def __init__(self, runner: Runner, clock: Clock) -> None:
        self._runner = runner
        self._clock = clock

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        ask = guard.wrap(self._ask, error_v1)
        return [
            route(path, ask)
            for path in ("/query", "/influxdb/v1/query")
            for route in (web.get, web.post)
        ]

    async def _ask(self, request: web.Request) -> web.Response:
        asked = await _parameters(request)
        text = asked.get("q", "")
        if not text.strip():
            raise SchemaError('missing required parameter "q"', code="E_BODY")
        epoch = asked.get("epoch") or None
        if epoch is not None and epoch not in EPOCHS:
            raise SchemaError(
                f"invalid epoch {epoch[:16]!r}", code="E_BODY", hint=f"one of {', '.join(EPOCHS)}"
            )
        asker = Asker(user_of(request), request.remote or "", asked.get("db") or None, epoch)
        statements = await self._parse(text, read_bound(asked.get("params", "")))
        results = await self._run(statements, asker)
        return await asyncio.to_thread(http.json_response, {"results": results})

    async def _parse(self, text: str, bound: BoundValues) -> list[Statement]:
        now = self._clock.now()
        return await parse_apart(text, lambda: parse(text, now, bound))

    async def _run(self, statements: list[Statement], asker: Asker) -> list[dict[str, Any]]:
        """Return the results in order; behind the first that fails nothing is run."""
        results: list[dict[str, Any]] = []
        failed = False
        for number, statement in enumerate(statements):
            result: dict[str, Any] = {"statement_id": number}
            if failed:
                result["error"] = "not executed"
            else:
                try:
                    found = await self._runner.run(statement, asker)
                    if found:
                        result["series"] = found
                except PenstockError as error:
                    status = http.status_of(error)
                    if status in _OF_THE_REQUEST or status >= 500:
                        raise
                    result["error"] = error.message + (f" ({error.hint})" if error.hint else "")
                    failed = True
            results.append(result)
        return results


async def _parameters(request: web.Request) -> dict[str, str]:
    """Return the parameters of the URL and, behind POST, those of a form. Raises SchemaError."""
    found = dict(request.query)
    if request.method != "POST":
        return found
    data = await body(request)
    if request.content_type != _FORM:
        return found
    try:
        form = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError as wrong:
        raise SchemaError("the form cannot be read", code="E_BODY", detail=str(wrong)) from None
    return dict(form) | found
