"""Statements as clients of TDengine 2 send them: POST /rest/sqlt[/db], which answers times as
numbers, and POST /rest/sqlutc[/db], which answers them as texts in UTC.

The same statements as at /rest/sql; the answer has the form of that time.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aiohttp import web

from gateway import answers, http, notices
from gateway.guard import Handler, RequestGuard, body, user_of, with_password
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from gateway.wires.tdengine import types
from penstock import tuning
from penstock.errors import PenstockError, SchemaError


class Version2Rest:
    """The handlers."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        ticks = guard.wrap(self._answering(None), error_answer)
        texts = guard.wrap(self._answering("UTC"), error_answer)
        return [
            web.post("/rest/sqlt", ticks),
            web.post("/rest/sqlt/{db}", ticks),
            web.post("/rest/sqlutc", texts),
            web.post("/rest/sqlutc/{db}", texts),
        ]

    def _answering(self, tz: str | None) -> Handler:
        async def run(request: web.Request) -> web.Response:
            text = (await body(request)).decode("utf-8", errors="replace").strip()
            if not text:
                raise SchemaError("no sql input", code="E_BODY", hint="the body is the statement")
            context = RequestContext(
                request.match_info.get("db"),
                user=user_of(request),
                key=request.headers.get("Idempotency-Key"),
                remote=request.remote or "",
                with_password=with_password(request),
            )
            answer = await self._executor.run(text, context)
            return http.json_response(
                await _render(answer, tz), headers=notices.headers(context.notices)
            )

        return run


async def _render(answer: answers.Answer, tz: str | None) -> dict[str, Any]:
    if isinstance(answer, answers.Affected):
        return _result([["affected_rows", types.INT, 4]], [[answer.rows]])
    make = partial(_of_table, answer, tz)
    if answer.num_rows * answer.num_columns < tuning.CELLS_RENDERED_IN_LOOP:
        return make()
    return await asyncio.to_thread(make)


def _of_table(table: Any, tz: str | None) -> dict[str, Any]:
    meta, rows = answers.columns_and_rows(table, tz)
    return _result([[name, types.code_of(kind, size), size] for name, kind, size in meta], rows)


def _result(meta: list[list[Any]], rows: list[Any]) -> dict[str, Any]:
    return {
        "status": "succ",
        "head": [name for name, _, _ in meta],
        "column_meta": meta,
        "data": rows,
        "rows": len(rows),
    }


def error_answer(error: PenstockError) -> web.Response:
    """Return an error in TDengine 2's form, with the status that /rest/sql gives it."""
    answer = http.tdengine_error(error)
    return http.json_response(
        {
            "status": "error",
            "code": http.tdengine_code(error),
            "desc": http.description(error),
            "error": error.to_dict(),
        },
        status=answer.status,
        headers={
            name: value
            for name, value in answer.headers.items()
            if name not in ("Content-Type", "Content-Length")
        },
    )
