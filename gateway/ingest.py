"""Rows over HTTP: POST /v1/tables/{db}/{table}/rows with JSON, newline-delimited JSON or an Arrow
stream as body.

Owns the media types. Answers when Kafka has the rows on all replicas; an `Idempotency-Key` header
makes a retry safe.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
from aiohttp import web

from gateway import http, notices, times
from gateway.guard import RequestGuard, body, user_of
from gateway.intake import WriteIntake
from gateway.rest import ARROW
from penstock import tuning
from penstock.errors import SchemaError
from penstock.rows import arrow_reader
from penstock.rows.arrow_reader import Limits, Opened

Rows = list[Mapping[str, Any]]


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


#: NaN and Infinity are not JSON, though Python's reader takes them
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_SURROGATE = re.compile(r"\\u[dD]")


def parse_json(data: bytes | str) -> Any:
    """JSON, strictly. Raises SchemaError."""
    try:
        text = data if isinstance(data, str) else data.decode()
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            # half of a pair is no character; only escapes can spell one
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise SchemaError(
            "the body is not JSON", code="E_BODY", detail="half of a surrogate pair"
        ) from None
    except (ValueError, RecursionError) as wrong:
        raise SchemaError("the body is not JSON", code="E_BODY", detail=str(wrong)[:200]) from None
    return value


def from_json(data: bytes | str) -> Rows:
    """Read one row as an object, several as a list of objects."""
    value = parse_json(data)
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list):
        raise SchemaError("rows are one JSON object or a list of them", code="E_BODY")
    return value


def from_ndjson(data: bytes) -> Rows:
    """Read one object a line."""
    lines = [line for line in data.splitlines() if line.strip()]
    rows: Sequence[Any] = parse_json(b"[" + b",".join(lines) + b"]")
    if len(rows) != len(lines):
        raise SchemaError("each line is one JSON object", code="E_BODY")
    return list(rows)


async def from_arrow(body: Opened, limits: Limits = arrow_reader.DEFAULT) -> pa.Table:
    """Rows of an Arrow IPC stream; a large one is read beside the event loop. Raises
    SchemaError.
    """
    if len(body.data) <= tuning.ARROW_BYTES_DECODED_IN_LOOP:
        return body.read(limits)
    return await asyncio.to_thread(body.read, limits)


def weight(rows: Rows | pa.Table, size: int) -> int:
    """Bytes that rows take while they wait, sent as *size* bytes: Arrow's may have been
    compressed.
    """
    return max(size, rows.nbytes) if isinstance(rows, pa.Table) else size


async def parse_body(
    content_type: str, data: bytes, limits: Limits = arrow_reader.DEFAULT
) -> Rows | pa.Table:
    """Rows of a body by its media type. Raises SchemaError."""
    if content_type in ("application/json", "text/json"):
        return from_json(data)
    if content_type in ("application/x-ndjson", "application/ndjson", "application/jsonl"):
        return from_ndjson(data)
    if content_type == ARROW:
        return await from_arrow(Opened(data), limits)
    raise SchemaError(
        f"rows cannot be read from {content_type}",
        code="E_MEDIA_TYPE",
        hint=f"send application/json, application/x-ndjson or {ARROW}",
    )


class RowRoutes:
    """The handler of row requests."""

    def __init__(self, intake: WriteIntake, max_body: int) -> None:
        self._intake = intake
        self._limits = arrow_reader.for_body(max_body)

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.post("/v1/tables/{db}/{table}/rows", guard.wrap(self._rows))]

    async def _rows(self, request: web.Request) -> web.Response:
        data = await body(request)
        key = request.headers.get("Idempotency-Key")
        digest = hashlib.sha256(request.path.encode() + b"\0" + data).hexdigest() if key else ""
        tz = times.zone(request.query.get("tz", "UTC"))
        names = request.match_info
        # who may not write is told so before anything is made of the body
        layout, child = await self._intake.locate_for(
            user_of(request), "WRITE", names["db"], names["table"]
        )
        rows = await parse_body(request.content_type, data, self._limits)
        size = weight(rows, len(data))
        written = await self._intake.submit_to(
            layout, rows, size=size, child=child, key=key, digest=digest, tz=tz, told=True
        )
        receipt = await written
        told = {"notices": receipt.notices} if receipt.notices else {}
        return http.json_response(
            {"rows": receipt.rows, **told}, headers=notices.headers(receipt.notices)
        )
