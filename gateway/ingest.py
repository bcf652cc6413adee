"""Rows over HTTP: POST /v1/tables/{db}/{table}/rows with JSON, newline-delimited JSON or an Arrow stream as body.

Owns the media types. Answers when Kafka has the rows on all replicas; an `Idempotency-Key` header makes a retry safe.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
from aiohttp import web

from gateway import http, times
from gateway.door import Door, body, user_of
from gateway.intake import Intake
from gateway.rest import ARROW
from penstock.errors import SchemaError

Rows = list[Mapping[str, Any]]


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


#: NaN and Infinity are not JSON, though Python's reader takes them
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parse_json(data: bytes | str) -> Any:
    """JSON, strictly. Raises SchemaError."""
    try:
        return _DECODER.decode(data if isinstance(data, str) else data.decode())
    except (ValueError, RecursionError) as wrong:
        raise SchemaError("the body is not JSON", code="E_BODY", detail=str(wrong)) from None


def from_json(data: bytes | str) -> Rows:
    """One row as an object, several as a list of objects."""
    value = parse_json(data)
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list):
        raise SchemaError("rows are one JSON object or a list of them", code="E_BODY")
    return value


def from_ndjson(data: bytes) -> Rows:
    """One object a line."""
    lines = [line for line in data.splitlines() if line.strip()]
    rows: Sequence[Any] = parse_json(b"[" + b",".join(lines) + b"]")
    if len(rows) != len(lines):
        raise SchemaError("each line is one JSON object", code="E_BODY")
    return list(rows)


def from_arrow(data: bytes) -> pa.Table:
    """An Arrow IPC stream."""
    try:
        return pa.ipc.open_stream(data).read_all()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as wrong:
        raise SchemaError("the body is not an Arrow IPC stream", code="E_BODY", detail=str(wrong)[:200]) from None


def parse_body(content_type: str, data: bytes) -> Rows | pa.Table:
    """Rows of a body by its media type. Raises SchemaError."""
    if content_type in ("application/json", "text/json"):
        return from_json(data)
    if content_type in ("application/x-ndjson", "application/ndjson", "application/jsonl"):
        return from_ndjson(data)
    if content_type == ARROW:
        return from_arrow(data)
    raise SchemaError(
        f"rows cannot be read from {content_type}", code="E_MEDIA_TYPE", hint=f"send application/json, application/x-ndjson or {ARROW}"
    )


class Ingest:
    """The handler of row requests."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def routes(self, door: Door) -> list[web.RouteDef]:
        return [web.post("/v1/tables/{db}/{table}/rows", door.guard(self._rows))]

    async def _rows(self, request: web.Request) -> web.Response:
        data = await body(request)
        rows = parse_body(request.content_type, data)
        key = request.headers.get("Idempotency-Key")
        digest = hashlib.sha256(request.path.encode() + b"\0" + data).hexdigest() if key else ""
        tz = times.zone(request.query.get("tz", "UTC"))
        names = request.match_info
        receipt = await self._intake.write(
            names["db"], names["table"], rows, user=user_of(request), size=len(data), key=key, digest=digest, tz=tz
        )
        return http.json_response({"rows": receipt.rows})
