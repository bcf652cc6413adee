"""TDengine's REST API: POST /rest/sql[/db] and GET /rest/login, as taosAdapter answers them; and
POST /v1/query, our own form of the same. GET /v1/info and /v1/dialect tell what this is and what
can be said to it.

Owns reading the parameters and choosing the form of the answer. What a statement does is
the business of `gateway/statements`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from aiohttp import web

from gateway import answers, http, notices, times
from gateway.guard import RequestGuard, body, user_of, with_password
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from penstock import tuning
from penstock.auth.login import Login
from penstock.errors import PenstockError, SchemaError
from penstock.rows import parameters
from penstock.runtime.clock import Clock
from penstock.sql.vocabulary import vocabulary

ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
#: by what Accept names; JSON is what is not asked for
_FORMS = {ARROW: answers.to_arrow, PARQUET: answers.to_parquet}


class SqlRoutes:
    """The handlers; `routes` mounts them."""

    def __init__(
        self, executor: Executor, login: Login, clock: Clock, info: Mapping[str, str | bool]
    ) -> None:
        """
        Args:
            info: what /v1/info tells: version, and where the other ports are.
        """
        self._executor = executor
        self._login = login
        self._clock = clock
        self._info = dict(info)

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        sql = guard.wrap(self._sql, http.tdengine_error)
        return [
            web.post("/rest/sql", sql),
            web.post("/rest/sql/", sql),
            web.post("/rest/sql/{db}", sql),
            web.get("/rest/login/{user}/{password}", self._log_in),
            web.post("/v1/query", guard.wrap(self._query)),
            web.get("/v1/info", guard.wrap(self._about)),
            web.get("/v1/dialect", guard.wrap(self._describe_dialect)),
        ]

    async def _sql(self, request: web.Request) -> web.Response:
        started = self._clock.now()
        query = request.query
        if "req_id" in query and not query["req_id"].lstrip("-").isdigit():
            return _bad_parameter(f"illegal param, req_id must be numeric {query['req_id'][:64]}")
        with_meta = query.get("row_with_meta", "false").lower()
        if with_meta not in ("true", "false", "1", "0", "t", "f"):
            return _bad_parameter(f"illegal param, row_with_meta must be boolean {with_meta[:64]}")
        text = (await body(request)).decode("utf-8", errors="replace").strip()
        if not text:
            return _bad_parameter("no sql input" if request.can_read_body else "no message input")
        tz = query.get("conn_tz") or query.get("tz") or "UTC"
        times.zone(tz)
        context = _context(request, request.match_info.get("db"), tz)
        answer = await self._executor.run(text, context)
        timing = self._clock.now() - started if query.get("timing") == "true" else None
        data = await _render(answer, context.notices, tz, with_meta in ("true", "1", "t"), timing)
        told = notices.headers(context.notices)
        return web.Response(
            body=data, content_type="application/json", charset="utf-8", headers=told
        )

    async def _log_in(self, request: web.Request) -> web.Response:
        where = request.remote or ""
        try:
            user = await self._login.log_in(
                request.match_info["user"], request.match_info["password"], where=where
            )
            token = self._login.token(user, where=where)
        except PenstockError as error:
            return http.tdengine_error(error)
        return http.json_response({"code": 0, "desc": token})

    async def _about(self, request: web.Request) -> web.Response:
        return http.json_response(self._info)

    async def _describe_dialect(self, request: web.Request) -> web.Response:
        return http.json_response(vocabulary())

    async def _query(self, request: web.Request) -> web.Response:
        wanted = _wanted(await body(request), request.content_type)
        tz = str(wanted.get("timezone") or request.query.get("tz") or "UTC")
        times.zone(tz)
        database = wanted.get("database") or request.query.get("db")
        context = replace(
            _context(request, database, tz), parameters=parameters.decode(wanted.get("parameters"))
        )
        answer = await self._executor.run(wanted["sql"], context)
        told = notices.headers(context.notices)
        accepted = request.headers.get("Accept", "")
        for form, make in _FORMS.items():
            if form in accepted:
                body_made = await asyncio.to_thread(make, answer)
                return web.Response(body=body_made, content_type=form, headers=told)
        data = await _render(answer, context.notices, tz, False, None)
        return web.Response(
            body=data, content_type="application/json", charset="utf-8", headers=told
        )


def _wanted(raw: bytes, content_type: str) -> dict[str, Any]:
    """Return what a body asks for: `sql`, and what JSON has beside it. Raises SchemaError."""
    wanted: Any = {"sql": raw.decode("utf-8", errors="replace")}
    if content_type == "application/json":
        try:
            wanted = json.loads(raw)
        except (ValueError, RecursionError) as wrong:
            raise SchemaError("the body is not JSON", code="E_BODY", detail=str(wrong)) from wrong
    text = wanted.get("sql") if isinstance(wanted, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise SchemaError(
            "there is no statement",
            code="E_BODY",
            hint='send the text itself, or {"sql": "…"} as application/json',
        )
    return cast(dict[str, Any], wanted)


def _context(request: web.Request, database: str | None, tz: str) -> RequestContext:
    key = request.headers.get("Idempotency-Key")
    remote = request.remote or ""
    return RequestContext(
        database,
        tz,
        user=user_of(request),
        key=key,
        remote=remote,
        with_password=with_password(request),
    )


async def _render(
    answer: answers.Answer, told: Sequence[str], tz: str, objects: bool, timing: int | None
) -> bytes:
    made = partial(answers.to_tdengine, answer, tz=tz, objects=objects, timing=timing, notices=told)
    if isinstance(answer, answers.Affected):
        return made()
    if answer.num_rows * answer.num_columns < tuning.CELLS_RENDERED_IN_LOOP:
        return made()
    return await asyncio.to_thread(made)


def _bad_parameter(words: str) -> web.Response:
    return http.json_response(
        {"code": 0xFFFF, "desc": words, "error": {"code": "E_BODY", "message": words}}, status=400
    )
