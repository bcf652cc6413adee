"""Tokens of the caller: POST and DELETE /v1/tokens.

A token makes no token that outlives it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, body, user_of
from gateway.ingest import parse_json
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from penstock.auth.login import Login
from penstock.errors import SchemaError
from penstock.sql.words import quote_name


class TokenRoutes:
    """The handlers."""

    def __init__(self, login: Login, executor: Executor) -> None:
        self._login = login
        self._executor = executor

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            web.post("/v1/tokens", guard.wrap(partial(self._issue, guard))),
            web.delete("/v1/tokens", guard.wrap(self._revoke)),
        ]

    async def _issue(self, guard: RequestGuard, request: web.Request) -> web.Response:
        """`{"seconds": n}`, or nothing for a day, → `{"token", "expires"}`."""
        data = await body(request)
        asked: Any = parse_json(data) if data.strip() else {}
        seconds = asked.get("seconds") if isinstance(asked, dict) else False
        if isinstance(seconds, bool) or not isinstance(seconds, int | None):
            raise SchemaError(
                'the body is {"seconds": n}', code="E_BODY", hint="or empty, for a token of a day"
            )
        token = self._login.token(
            user_of(request), seconds=seconds, until=guard.ends(request), where=request.remote or ""
        )
        return http.json_response(
            {
                "token": token,
                "user": user_of(request),
                "expires": self._login.tokens.read(token).expires,
            }
        )

    async def _revoke(self, request: web.Request) -> web.Response:
        """Revoke all tokens of the caller."""
        user = user_of(request)
        await self._executor.run(
            f"REVOKE TOKENS FROM {quote_name(user)}",
            RequestContext(user=user, remote=request.remote or ""),
        )
        return http.json_response({})
