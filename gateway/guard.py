"""What every request passes: credentials, origin, and errors made into answers.

Owns the decorator that wraps each handler and the reading of bodies within limits. Requests without
credentials, from foreign pages, or that are too large are refused. No exception becomes a
stack trace in an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from gateway import http, request_spans
from penstock.auth.cookies import COOKIE, CookieSessions
from penstock.auth.login import Login, is_token, query_credentials
from penstock.errors import AuthError, BusError, PenstockError, SchemaError
from penstock.runtime import audit, log, traces
from penstock.runtime.limits import Open, Rate
from penstock.telemetry.tracer import tracer

_log = log.get("gateway.guard")
_USER = "penstock.user"
_SESSION_ENDS = "penstock.session_ends"
_UNTRACED = contextlib.nullcontext()
#: value of `X-Requested-With` by which the console says that it has a form for user and password
CONSOLE = "penstock-console"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class RequestGuard:
    """Wraps handlers. `origins` are the pages, besides our own, that a browser may call from."""

    login: Login
    cookies: CookieSessions
    origins: tuple[str, ...]
    rate: Rate
    open: Open

    def wrap(
        self,
        handler: Handler,
        answer: Callable[[PenstockError], web.Response] = http.error_response,
    ) -> Handler:
        """*handler* behind the checks; *answer* gives errors their form."""

        @functools.wraps(handler)
        async def admit(request: web.Request) -> web.StreamResponse:
            request[_USER] = user = await self.admit(request)
            self.rate.spend(user)
            return await handler(request)

        return self._with_answers(admit, answer)

    def wrap_unknown(self, handler: Handler) -> Handler:
        """*handler* behind all checks but that of who asks, which it makes itself."""

        @functools.wraps(handler)
        async def check(request: web.Request) -> web.StreamResponse:
            self._same_origin(request)
            return await handler(request)

        return self._with_answers(check, http.error_response)

    def _with_answers(
        self, handler: Handler, answer: Callable[[PenstockError], web.Response]
    ) -> Handler:
        """*handler* with its errors made into answers, and a span where those are sent."""

        @functools.wraps(handler)
        async def pass_on(request: web.Request) -> web.StreamResponse:
            sends = tracer()
            if sends is None or request_spans.opens_socket(request):
                return await reply(request)
            return await request_spans.answer(sends, request, reply)

        async def reply(request: web.Request) -> web.StreamResponse:
            trace = request_spans.carried(request.headers, tracer())
            # also around what is logged of a request that fails
            with traces.bound(trace) if trace is not None else _UNTRACED:
                return await tell(request)

        async def tell(request: web.Request) -> web.StreamResponse:
            try:
                with self.open.inside(request.remote or ""):
                    return await handler(request)
            except PenstockError as error:
                if error.code == "E_FORBIDDEN":
                    audit.note_refusal(request.get(_USER, ""), request.remote or "", error)
                if http.status_of(error) >= 500:
                    _log.warning(
                        "request failed",
                        path=request.path,
                        code=error.code,
                        reason=error.message,
                        detail=error.detail,
                    )
                return _fit_caller(request, answer(error))
            except (asyncio.CancelledError, web.HTTPException):
                raise
            except Exception:
                _log.exception("a request found a bug", path=request.path)
                bug = BusError(
                    "this is a bug in the gateway; its log has the details", code="E_INTERNAL"
                )
                return _fit_caller(request, answer(bug))

        return pass_on

    async def admit(self, request: web.Request) -> str:
        """Return the user of a request. Raises AuthError."""
        self._same_origin(request)
        header = credentials_of(request)
        if header is None and (cookie := cookie_of(request)) is not None:
            user, request[_SESSION_ENDS] = await asyncio.to_thread(self.cookies.user_of, cookie)
            return user
        return await self.login.admit(header, where=request.remote or "")

    def ends(self, request: web.Request) -> int | None:
        """Return when the token or session of *request* ends, in seconds since 1970; None for
        one with a password.
        """
        if _SESSION_ENDS in request:
            return int(request[_SESSION_ENDS])
        return self.login.expiry(credentials_of(request))

    def _same_origin(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        if origin is None or origin in self.origins or urlsplit(origin).netloc == request.host:
            return
        raise AuthError(
            "this page may not call the gateway",
            code="E_FORBIDDEN",
            detail=f"origin {origin[:128]}",
            hint="see PENSTOCK_GATEWAY_ALLOWED_ORIGINS",
        )


def _fit_caller(request: web.Request, response: web.Response) -> web.Response:
    """Make a refusal fit who gets it.

    The connection of a refused WebSocket is closed: it is of no more use, and a client with TLS may
    wait in a read until it ends. The console gets no challenge: the browser would open a dialog of
    its own.
    """
    if "Upgrade" in request.headers:
        response.force_close()
    if request.headers.get("X-Requested-With") == CONSOLE:
        response.headers.popall("WWW-Authenticate", None)
    return response


def credentials_of(request: web.Request) -> str | None:
    """Return the `Authorization` of a request, or what its URL says in place of one."""
    return request.headers.get("Authorization") or query_credentials(request.query)


def user_of(request: web.Request) -> str:
    """Return who sent a request that came through the guard."""
    return str(request[_USER])


def came_by(request: web.Request) -> str:
    """Return how the caller was recognised: by a `session`, a `token` or a `password`."""
    if _SESSION_ENDS in request:
        return "session"
    return "token" if is_token(credentials_of(request) or "") else "password"


def with_password(request: web.Request) -> bool:
    """Tell a request that came with a password from one with a token or a session."""
    return came_by(request) == "password"


def cookie_of(request: web.Request) -> str | None:
    """Return the console's cookie. A browser that says the request comes from another site's page
    is not believed to mean it.
    """
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return None
    return request.cookies.get(COOKIE) or None


async def body(request: web.Request, most: int | None = None) -> bytes:
    """Read the whole body.

    Args:
        most: bytes that it may have; None: as many as the application allows.

    Raises:
        SchemaError: it is larger, or cannot be read.
    """
    if most is not None:
        request = request.clone(client_max_size=most)
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as large:
        raise SchemaError(
            "the request is too large",
            code="E_TOO_LARGE",
            detail=large.text or "",
            hint="send it in parts",
        ) from large
    except web.RequestPayloadError as broken:
        raise SchemaError(
            "the request's body cannot be read", code="E_BODY", detail=str(broken)
        ) from broken
