"""GET /v1/openapi.json and /v1/asyncapi.json: what can be asked, for programs that make clients.

For users only, as everything that tells of a mesh: who has no login learns nothing of its version.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from aiohttp import web

from gateway import http
from gateway.api import asyncapi, openapi
from gateway.guard import RequestGuard


class ApiDocuments:
    """The handlers; a document is made when it is first asked for."""

    def __init__(self, version: str) -> None:
        self._version = version

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            web.get("/v1/openapi.json", guard.wrap(self._show_openapi)),
            web.get("/v1/asyncapi.json", guard.wrap(self._show_asyncapi)),
        ]

    async def _show_openapi(self, request: web.Request) -> web.Response:
        return http.json_response(self._openapi)

    async def _show_asyncapi(self, request: web.Request) -> web.Response:
        return http.json_response(self._asyncapi)

    @cached_property
    def _openapi(self) -> dict[str, Any]:
        return openapi.document(self._version)

    @cached_property
    def _asyncapi(self) -> dict[str, Any]:
        return asyncapi.document(self._version)
