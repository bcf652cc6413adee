"""Tokens and sessions: POST and DELETE /v1/tokens, and GET /login, the link that `penstock up`
prints.

Owns turning a password into a token, and a link that is good once into a session of the console. A
token makes no token that outlives it. A link opens once: Redis remembers its id
for as long as it could be opened.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import redis
from aiohttp import web

from gateway import http
from gateway.cookies import CookieSessions
from gateway.guard import COOKIE, RequestGuard, body, cookie_of, user_of
from gateway.ingest import parse_json
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from penstock import names
from penstock.auth.login import Login
from penstock.auth.tokens import LOGIN_S, SESSION_S
from penstock.coordination.redis_link import ask
from penstock.errors import AuthError, PenstockError, SchemaError
from penstock.runtime import audit
from penstock.sql.words import quote_name


class Sessions:
    """The handlers."""

    def __init__(
        self,
        login: Login,
        cookies: CookieSessions,
        executor: Executor,
        client: redis.Redis,
        *,
        secure: bool,
    ) -> None:
        """
        Args:
            secure: cookies are for https only.
        """
        self._login = login
        self._cookies = cookies
        self._executor = executor
        self._redis = client
        self._secure = secure

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            web.post("/v1/tokens", guard.wrap(partial(self._issue, guard))),
            web.delete("/v1/tokens", guard.wrap(self._revoke)),
            # a HEAD, which programs send to look at a link, would use it up
            web.get("/login", self._enter, allow_head=False),
            web.post("/logout", self._leave),
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

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        try:
            claims = self._login.tokens.read(request.query.get("token", ""), "login")
            user = self._login.still(claims.user, claims.mark)
            if not await asyncio.to_thread(self._first, claims.id):
                raise AuthError(
                    "this link was opened before", hint="`penstock login` prints another"
                )
            cookie = await asyncio.to_thread(self._cookies.begin, user)
        except PenstockError as error:
            audit.write(
                "login refused",
                user="",
                remote=request.remote or "",
                by="link",
                reason=error.message,
            )
            return http.error_response(error)
        audit.write("login", user=user, remote=request.remote or "", by="link", token=claims.id)
        answer = web.HTTPSeeOther(
            "/", headers={"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        )
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=SESSION_S,
            httponly=True,
            samesite="Strict",
            secure=self._secure,
            path="/",
        )
        return answer

    async def _leave(self, request: web.Request) -> web.Response:
        """End the session at every gateway."""
        cookie = cookie_of(request)
        if cookie is not None:
            try:
                await asyncio.to_thread(self._cookies.end, cookie)
            except PenstockError as error:
                return http.error_response(error)
            audit.write("logout", remote=request.remote or "")
        answer = http.json_response({})
        answer.del_cookie(COOKIE, path="/")
        return answer

    def _first(self, link: str) -> bool:
        return bool(ask(lambda: self._redis.set(names.link_in_use(link), 1, nx=True, ex=LOGIN_S)))
