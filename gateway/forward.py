"""DDL on its way to the gateway that holds the catalog's lease, and its arrival there.

Owns the internal route and its token. Returns when this gateway's own catalog shows the change, and
lets reads that follow here wait for what the other gateway has written in band, also where the
statement failed half-way. Calls without the token, and a statement that was forwarded once already,
are refused.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from gateway import http
from gateway.statements.context import RequestContext
from penstock.bus import Offsets
from penstock.catalog.reader import CatalogReader
from penstock.errors import (
    AuthError,
    PenstockError,
    RemoteError,
)
from penstock.remote_errors import error_of
from penstock.sql.plan import Column
from penstock.types import ColumnType

PATH = "/internal/ddl"
#: what the catalog refuses, where the code alone does not tell the kind
_CONFLICT = 409
#: has the token that gateways show each other
HEADER = "X-Penstock-Internal"
_TIMEOUT_S = 60.0

#: runs what was sent, and fills in where it has written
Run = Callable[[dict[str, Any], dict[tuple[str, int], int]], Awaitable[None]]


def internal_token(password: str) -> str:
    """What gateways show each other."""
    return hmac.digest(password.encode(), b"penstock gateway to gateway", "sha256").hex()


def column_to_json(column: Column) -> list[Any]:
    return [
        column.name,
        column.type.kind,
        column.type.length,
        column.type.precision,
        column.type.scale,
    ]


def column_from_json(item: list[Any]) -> Column:
    return Column(item[0], ColumnType(*item[1:]))


class Forwarder:
    """Both ends of the internal route."""

    def __init__(
        self,
        reader: CatalogReader,
        token: str,
        note_own: Callable[[Offsets], None],
        context: ssl.SSLContext | bool = True,
    ) -> None:
        """*note_own*: told of records that reads which follow have to wait for."""
        self._reader = reader
        self._token = token
        self._note_own = note_own
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    async def statement(self, address: str, sql: str, context: RequestContext) -> None:
        """Have a DDL statement run at *address*, for the user of *context*."""
        body = {
            "sql": sql,
            "database": context.database,
            "timezone": context.timezone,
            "user": context.user,
        }
        await self._send(address, body)

    async def grow_table(
        self,
        address: str,
        user: str,
        database: str,
        table: str,
        time: Column,
        columns: list[Column],
        tags: list[Column],
    ) -> None:
        """Have a table made or widened for line protocol at *address*."""
        parts = {
            "time": [column_to_json(time)],
            "columns": [column_to_json(c) for c in columns],
            "tags": [column_to_json(c) for c in tags],
        }
        await self._send(
            address, {"widen": {"database": database, "table": table, **parts}, "user": user}
        )

    async def compatibility(
        self, address: str, user: str, table_id: int, level: str | None
    ) -> None:
        """Have a level of the schema registry set at *address*, or (None) cleared."""
        asked = {"table": table_id, "level": level}
        await self._send(address, {"compatibility": asked, "user": user})

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _send(self, address: str, body: dict[str, Any]) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S))
        try:
            async with self._session.post(
                address + PATH, json=body, headers={HEADER: self._token}, ssl=self._context
            ) as response:
                answer = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as failed:
            raise RemoteError(
                "the gateway that leads the catalog does not answer",
                code="E_LEASE_HELD",
                detail=f"{address}: {failed}",
            ) from failed
        self._note_own({(topic, p): offset for topic, p, offset in answer.get("own", ())})
        if "revision" in answer:
            await asyncio.to_thread(self._reader.wait_for, int(answer["revision"]))
        if "error" in answer:
            raise error_of(answer["error"], _CONFLICT)

    def routes(self, run: Run) -> list[web.RouteDef]:
        async def handle(request: web.Request) -> web.Response:
            given = request.headers.get(HEADER, "").encode()
            if not hmac.compare_digest(given, self._token.encode()):
                refused = AuthError("this route is for gateways", code="E_FORBIDDEN")
                return http.error_response(refused)
            own: dict[tuple[str, int], int] = {}
            answer: dict[str, Any] = {}
            status = 200
            try:
                await run(json.loads(await request.read()), own)
            except PenstockError as error:
                answer = {"error": error.to_dict()}
                status = http.status_of(error)
            answer["revision"] = self._reader.catalog.revision
            answer["own"] = [[topic, p, offset] for (topic, p), offset in own.items()]
            return http.json_response(answer, status=status)

        return [web.post(PATH, handle)]
