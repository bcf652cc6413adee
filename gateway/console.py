"""The web console at `/`: one page, no resources from elsewhere. It asks for the password itself
and calls /rest/sql.
"""

from __future__ import annotations

from importlib.resources import files

from aiohttp import web

from gateway.guard import RequestGuard

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)


class Console:
    """Serves the page to anyone: it holds nothing but itself."""

    def __init__(self) -> None:
        self._page = files("gateway").joinpath("console.html").read_bytes()

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/", self._show)]

    async def _show(self, request: web.Request) -> web.Response:
        headers = {
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return web.Response(
            body=self._page, content_type="text/html", charset="utf-8", headers=headers
        )
