"""The console's sessions: how one begins and ends, and what its user may do.

GET /login is the link that `penstock up` prints, good once: Redis remembers its id for as long as
it could be opened. POST /v1/login takes user and password from the console's form. POST /v1/logout
ends one session or all of its user. GET /v1/whoami tells any caller who they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import redis
from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, body, came_by, cookie_of, user_of
from gateway.information.principals import rights_held
from gateway.information.viewer import Viewer
from gateway.ingest import parse_json
from penstock import names
from penstock.auth.cookies import COOKIE, CookieSessions
from penstock.auth.login import Login
from penstock.auth.tokens import LOGIN_S, SESSION_S
from penstock.coordination.redis_link import ask
from penstock.errors import AuthError, PenstockError, SchemaError
from penstock.runtime import audit

#: bytes of the bodies of a log-in and a log-out
_MOST_BYTES = 4096


class Sessions:
    """The handlers."""

    def __init__(
        self,
        login: Login,
        cookies: CookieSessions,
        viewer_of: Callable[[str], Viewer],
        client: redis.Redis,
        *,
        secure: bool,
    ) -> None:
        """
        Args:
            viewer_of: the mesh as a user may see it.
            secure: cookies are for https only.
        """
        self._login = login
        self._cookies = cookies
        self._viewer_of = viewer_of
        self._redis = client
        self._secure = secure

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            # a HEAD, which programs send to look at a link, would use it up
            web.get("/login", self._enter, allow_head=False),
            web.post("/v1/login", guard.wrap_unknown(self._log_in)),
            web.post("/v1/logout", guard.wrap_unknown(self._leave)),
            web.get("/v1/whoami", guard.wrap(partial(self._tell, guard))),
        ]

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        """Begin a session for who opens a link."""
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
            return _refuse_link(request, error)
        audit.write("login", user=user, remote=request.remote or "", by="link", token=claims.id)
        answer = web.HTTPSeeOther(
            "/", headers={"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        )
        self._set_cookie(answer, cookie)
        return answer

    async def _log_in(self, request: web.Request) -> web.Response:
        """`{"user", "password"}` → a session, and what `/v1/whoami` tells in it."""
        name, password = await _read_credentials(request)
        where = request.remote or ""
        user = await self._login.log_in(name, password, where=where)
        cookie = await asyncio.to_thread(self._cookies.begin, user)
        _, ends = await asyncio.to_thread(self._cookies.user_of, cookie)
        audit.write("login", user=user, remote=where, by="form")
        answer = _private(self._describe(user, "session", ends))
        self._set_cookie(answer, cookie)
        return answer

    async def _leave(self, request: web.Request) -> web.Response:
        """End the caller's session, or all of its user, at every gateway."""
        everywhere = await _wants_everywhere(request)
        cookie = cookie_of(request)
        ended = 0
        if cookie is not None:
            end = partial(self._cookies.end, cookie, everywhere=everywhere)
            ended = await asyncio.to_thread(end)
            audit.write("logout", remote=request.remote or "", sessions=ended)
        answer = http.json_response({"ended": ended})
        answer.del_cookie(COOKIE, path="/")
        return answer

    async def _tell(self, guard: RequestGuard, request: web.Request) -> web.Response:
        return _private(self._describe(user_of(request), came_by(request), guard.ends(request)))

    def _describe(self, user: str, by: str, ends: int | None) -> dict[str, Any]:
        """Return who *user* is, how they were recognised and until when, and what they may do."""
        viewer = self._viewer_of(user)
        roles, rights = rights_held(viewer)
        return {
            "user": user,
            "by": by,
            "expires": ends,
            "admin": viewer.may("ADMIN", None),
            "roles": roles,
            "rights": rights,
        }

    def _set_cookie(self, answer: web.StreamResponse, cookie: str) -> None:
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=SESSION_S,
            httponly=True,
            samesite="Strict",
            secure=self._secure,
            path="/",
        )

    def _first(self, link: str) -> bool:
        return bool(ask(lambda: self._redis.set(names.link_in_use(link), 1, nx=True, ex=LOGIN_S)))


def _refuse_link(request: web.Request, error: PenstockError) -> web.StreamResponse:
    """Answer a link that opens no session: a person is shown the console, which says what to do
    about it.
    """
    if isinstance(error, AuthError) and "text/html" in request.headers.get("Accept", ""):
        return web.HTTPSeeOther("/?link=ended", headers={"Cache-Control": "no-store"})
    answer = http.error_response(error)
    # a browser would ask for user and password in a dialog of its own
    answer.headers.popall("WWW-Authenticate", None)
    return answer


def _private(told: dict[str, Any]) -> web.Response:
    """Return an answer that no cache keeps."""
    return http.json_response(told, headers={"Cache-Control": "no-store"})


async def _read_credentials(request: web.Request) -> tuple[str, str]:
    """Return the user and password that a form sends. Raises SchemaError."""
    if request.content_type != "application/json":
        # a form of another site's page can send other types without asking
        raise SchemaError(
            "a log-in is application/json",
            code="E_MEDIA_TYPE",
            detail=request.content_type[:100],
        )
    asked = parse_json(await body(request, _MOST_BYTES))
    given = asked if isinstance(asked, dict) else {}
    user, password = given.get("user"), given.get("password")
    if not isinstance(user, str) or not isinstance(password, str) or not user:
        raise SchemaError('the body is {"user": "…", "password": "…"}', code="E_BODY")
    return user, password


async def _wants_everywhere(request: web.Request) -> bool:
    """Tell whether all sessions of the user are to end. Raises SchemaError."""
    data = await body(request, _MOST_BYTES)
    asked = parse_json(data) if data.strip() else {}
    everywhere = asked.get("everywhere", False) if isinstance(asked, dict) else None
    if not isinstance(everywhere, bool):
        raise SchemaError('the body is empty, or {"everywhere": true}', code="E_BODY")
    return everywhere
