"""The read half of Confluent's Schema Registry API, over the catalog: Kafka tools can decode `in.*`
topics with it.

Owns the paths and the error numbers of that API; what is registered, `penstock.codec.subjects`
says. Nothing is registered here: tables are made by SQL.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, user_of
from penstock.auth.access import Access, visible
from penstock.catalog.view import Catalog
from penstock.codec import subjects as registry
from penstock.codec.subjects import Registered
from penstock.errors import AuthError, PenstockError

_JSON = "application/vnd.schemaregistry.v1+json"


class SchemaRegistryRoutes:
    """Subjects are `<topic>-<table>`; versions count from 1."""

    def __init__(self, catalog: Callable[[], Catalog], access: Access) -> None:
        self._all = catalog
        self._access = access

    def _catalog(self, request: web.Request) -> Catalog:
        """Return what the user may see: a table that is not theirs has no subject here."""
        return visible(self._all(), self._access, user_of(request))

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        def get(path: str, handler: Callable[[web.Request], object]) -> web.RouteDef:
            async def call(request: web.Request) -> web.Response:
                try:
                    return _answer(handler(request))
                except _Missing as missing:
                    return _answer({"error_code": missing.number, "message": missing.words}, 404)

            return web.get(path, guard.wrap(call, _error))

        return [
            get("/schemas/types", lambda _: ["AVRO"]),
            get("/schemas/ids/{id}", lambda r: {"schema": self._text(r)}),
            get("/schemas/ids/{id}/schema", lambda r: json.loads(self._text(r))),
            get("/schemas/ids/{id}/subjects", lambda r: [f.subject for f in self._of_id(r)]),
            get(
                "/schemas/ids/{id}/versions",
                lambda r: [{"subject": f.subject, "version": f.version} for f in self._of_id(r)],
            ),
            get("/subjects", lambda r: registry.subjects(self._catalog(r))),
            get("/subjects/{subject}/versions", lambda r: [v.version for v in self._versions(r)]),
            get("/subjects/{subject}/versions/{version}", lambda r: _to_json(self._version(r))),
            get(
                "/subjects/{subject}/versions/{version}/schema",
                lambda r: json.loads(self._version(r).schema),
            ),
            get("/config", lambda _: {"compatibilityLevel": "BACKWARD"}),
            get("/mode", lambda _: {"mode": "READONLY"}),
        ]

    def _text(self, request: web.Request) -> str:
        number = request.match_info["id"]
        text = (
            registry.schema_text(self._catalog(request), int(number))
            if number.isdecimal()
            else None
        )
        if text is None:
            raise _Missing(40403, f"Schema {number} not found")
        return text

    def _of_id(self, request: web.Request) -> list[Registered]:
        number = request.match_info["id"]
        found = registry.of_id(self._catalog(request), int(number)) if number.isdecimal() else None
        return [found] if found is not None else []

    def _versions(self, request: web.Request) -> list[Registered]:
        subject = request.match_info["subject"]
        found = registry.versions(self._catalog(request), subject)
        if not found:
            raise _Missing(40401, f"Subject '{subject}' not found.")
        return found

    def _version(self, request: web.Request) -> Registered:
        known = self._versions(request)
        wanted = request.match_info["version"]
        if wanted in ("latest", "-1"):
            return known[-1]
        if not wanted.isdecimal() or not 1 <= int(wanted) <= len(known):
            raise _Missing(40402, f"Version {wanted} not found.")
        return known[int(wanted) - 1]


class _Missing(Exception):
    """The registry's own kind of 404."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(words)
        self.number = number
        self.words = words


def _to_json(found: Registered) -> dict[str, object]:
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "schema": found.schema,
    }


def _answer(body: object, status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, content_type=_JSON)


def _error(error: PenstockError) -> web.Response:
    status = http.status_of(error)
    response = _answer(
        {"error_code": status * 100 + (1 if status == 404 else 0), "message": error.message}, status
    )
    if isinstance(error, AuthError):
        response.headers["WWW-Authenticate"] = 'Basic realm="penstock"'
    return response
