"""POST /v1/check: what is wrong with the statements of a text, for editors. Runs nothing."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gateway import http, times
from gateway.guard import RequestGuard, body, user_of
from gateway.ingest import parse_json
from gateway.statements.checking import CheckedStatement, StatementChecker
from gateway.statements.context import RequestContext
from gateway.statements.mistakes import describe, kind_of
from penstock.errors import SchemaError

#: a text of as many characters as are checked, whatever they take as JSON
_MOST_BYTES = 2 << 20


class CheckRoutes:
    """The handler; `routes` mounts it."""

    def __init__(self, checker: StatementChecker) -> None:
        self._checker = checker

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.post("/v1/check", guard.wrap(self._check))]

    async def _check(self, request: web.Request) -> web.Response:
        text, database, timezone = _read(parse_json(await body(request, _MOST_BYTES)))
        times.zone(timezone)
        context = RequestContext(
            database, timezone, user=user_of(request), remote=request.remote or ""
        )
        checked = await self._checker.check(text, context)
        found = [(i, one.mistake) for i, one in enumerate(checked) if one.mistake is not None]
        return http.json_response(
            {
                "statements": [_tell(one) for one in checked],
                "mistakes": [describe(mistake, i) for i, mistake in found],
            }
        )


def _tell(one: CheckedStatement) -> dict[str, Any]:
    columns = one.columns
    follows = one.follows
    return {
        "kind": kind_of(one.statement) if one.statement is not None else "",
        "start": one.start,
        "end": one.end,
        "columns": None
        if columns is None
        else [{"name": name, "type": kind} for name, kind in columns],
        "follows": None
        if follows is None
        else {
            "database": follows.table.database,
            "table": follows.table.name,
            "columns": list(follows.columns),
        },
    }


def _read(asked: Any) -> tuple[str, str | None, str]:
    """Return text, database and time zone of a request. Raises SchemaError."""
    given = asked if isinstance(asked, dict) else {}
    text, database = given.get("sql"), given.get("database")
    timezone = given.get("timezone", "UTC")
    if (
        not isinstance(text, str)
        or not isinstance(database, str | None)
        or not isinstance(timezone, str)
    ):
        raise SchemaError(
            'the body is {"sql": "…", "database": "…", "timezone": "UTC"}',
            code="E_BODY",
            hint="database and timezone may be left out",
        )
    return text, database or None, timezone
