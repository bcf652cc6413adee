"""The web console at `/`: a page, its scripts and styles, and nothing from elsewhere.

The files hold no data, so everybody gets them; what they show comes from the gateway's own API
with the cookie of the login.
"""

from __future__ import annotations

from aiohttp import web

from gateway.console import static_files
from gateway.console.static_files import StaticFile
from gateway.guard import RequestGuard

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
}
_ASK_AGAIN = "no-cache"
_KEEP = "public, max-age=31536000, immutable"


class Console:
    """Serves the console's files to anyone."""

    def __init__(self) -> None:
        self._files = static_files.packaged()

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            web.get("/", self._show),
            web.get("/console", self._to_page),
            web.get("/console/", self._to_page),
            web.get("/console/{version}/{name:.+}", self._send_file),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        return _answer(request, self._files.page, _ASK_AGAIN)

    async def _to_page(self, request: web.Request) -> web.Response:
        raise web.HTTPPermanentRedirect("/")

    async def _send_file(self, request: web.Request) -> web.Response:
        found = self._files.find(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(headers=_HEADERS)
        # while gateways are upgraded, a page of one may ask another: its files must not stay
        ours = request.match_info["version"] == self._files.version
        return _answer(request, found, _KEEP if ours else _ASK_AGAIN)


def _answer(request: web.Request, file: StaticFile, caching: str) -> web.Response:
    headers = {**_HEADERS, "Cache-Control": caching, "ETag": f'W/"{file.etag}"'}
    known = request.if_none_match or ()
    if any(tag.value in (file.etag, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = file.content_type
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=file.body, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return web.Response(body=file.compressed, headers=headers)
