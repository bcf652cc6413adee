"""What every request passes: credentials, origin, and errors made into answers.

Owns the decorator that wraps each handler and the reading of bodies within limits. Refuses requests without credentials, from
foreign pages, or that are too large; never lets an exception become a stack trace in an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from gateway import http
from penstock import audit, log, traces
from penstock.errors import AuthError, BusError, PenstockError, SchemaError
from penstock.limits import Open, Rate
from penstock.login import Login, query_credentials

_log = log.get("gateway.door")
_USER = "penstock.user"
_UNTRACED = contextlib.nullcontext()
#: holds a token, for the console
COOKIE = "penstock_session"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Door:
    """Wraps handlers. `origins` are the pages, besides our own, that a browser may call from."""

    login: Login
    origins: tuple[str, ...]
    rate: Rate
    open: Open

    def guard(self, handler: Handler, answer: Callable[[PenstockError], web.Response] = http.error_response) -> Handler:
        """*handler* behind the checks; *answer* gives errors their form."""

        @functools.wraps(handler)
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                trace = traces.given(request.headers)
                with self.open.entered(request.remote or ""), traces.bound(trace) if trace is not None else _UNTRACED:
                    request[_USER] = user = await self.admit(request)
                    self.rate.spend(user)
                    return await handler(request)
            except PenstockError as error:
                if error.code == "E_FORBIDDEN":
                    audit.refused(request.get(_USER, ""), request.remote or "", error)
                if http.status_of(error) >= 500:
                    _log.warning("request failed", path=request.path, code=error.code, reason=error.message, detail=error.detail)
                return _parting(request, answer(error))
            except (asyncio.CancelledError, web.HTTPException):
                raise
            except Exception:
                _log.exception("a request found a bug", path=request.path)
                bug = BusError("this is a bug in the gateway; its log has the details", code="E_INTERNAL")
                return _parting(request, answer(bug))

        return guarded

    async def admit(self, request: web.Request) -> str:
        """The user of a request. Raises AuthError."""
        self._same_origin(request)
        header = request.headers.get("Authorization") or query_credentials(request.query) or self._session(request)
        # a new password costs its tens of milliseconds in a thread of its own
        known = self.login.known(header)
        return known if known is not None else await asyncio.to_thread(self.login.check, header, where=request.remote or "")

    @staticmethod
    def _session(request: web.Request) -> str | None:
        """The console's cookie as a header. A browser that says the request comes from another site's page is not believed to mean it."""
        token = request.cookies.get(COOKIE)
        if not token or request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return None
        return f"Bearer {token}"

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


def _parting(request: web.Request, response: web.Response) -> web.Response:
    """Who is refused a WebSocket has no more use for the connection; a client with TLS may wait in a read until it ends."""
    if "Upgrade" in request.headers:
        response.force_close()
    return response


def user_of(request: web.Request) -> str:
    """Who sent a request that came through the door."""
    return str(request[_USER])


async def body(request: web.Request) -> bytes:
    """The whole body. Raises SchemaError when it is larger than the application allows."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as large:
        raise SchemaError("the request is too large", code="E_TOO_LARGE", detail=large.text or "", hint="send it in parts") from large
    except web.RequestPayloadError as broken:
        raise SchemaError("the request's body cannot be read", code="E_BODY", detail=str(broken)) from broken
