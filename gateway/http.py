"""The one place where a Penstock error becomes an HTTP answer.

Owns the map from error codes to HTTP status and to the numeric codes of TDengine's REST API, and
the two error bodies: ours (`{"error": {...}}`) and TDengine's (`{"code": n, "desc": "..."}`).
Nothing is guessed: a code without a line here is a bug that a test finds.
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from penstock.errors import (
    AuthError,
    OverloadError,
    PenstockError,
    SchemaError,
    SqlError,
    SqlSyntaxError,
)

#: every code that is not an SqlError's; those are all the client's fault (400)
STATUS: dict[str, int] = {
    # what was sent
    "E_BODY": 400,
    "E_PARAMETER": 400,
    "E_ROW": 400,
    "E_LINE": 400,
    "E_SCHEMA": 400,
    "E_UNKNOWN_SCHEMA": 400,
    "E_NULL_TIME": 400,
    "E_ROW_TOO_LARGE": 400,
    "E_BAD_NAME": 400,
    "E_RESERVED_NAME": 400,
    "E_DUPLICATE_COLUMN": 400,
    "E_BAD_OPTION": 400,
    "E_BAD_KEY": 400,
    "E_BAD_JSON": 400,
    "E_BAD_MODIFY": 400,
    "E_NO_TIME_COLUMN": 400,
    "E_TOO_MANY_COLUMNS": 400,
    "E_NOT_A_STABLE": 400,
    "E_CHILD_TABLE": 400,
    "E_KEY_COLUMN": 400,
    "E_LAST_TAG": 400,
    "E_WHICH_DATABASE": 400,
    "E_STREAM_CYCLE": 400,
    "E_TOO_LARGE": 413,
    "E_MEDIA_TYPE": 415,
    "E_KEY_REUSED": 422,
    "E_RESUME_TOKEN": 400,
    "E_VTABLE_ORIGIN": 400,
    "E_VTABLE_WRITE": 400,
    "E_RAFT_GROUP": 400,
    "E_SEQUENCE": 400,
    "E_STREAM_TABLE": 400,
    "E_FILTER": 400,
    "E_UNSUPPORTED_STATEMENT": 400,
    # who sent it
    "E_AUTH": 401,
    "E_FORBIDDEN": 403,
    "E_USER_EXISTS": 409,
    "E_ROLE_EXISTS": 409,
    "E_NO_USER": 404,
    "E_NO_ROLE": 404,
    "E_BAD_GRANT": 400,
    "E_PASSWORD": 400,
    "E_EXTERNAL_HOST": 400,
    "E_NOTIFY_TARGET": 400,
    # what there is
    "E_NO_DATABASE": 404,
    "E_NO_TABLE": 404,
    "E_NO_STREAM": 404,
    "E_NO_COLUMN": 404,
    "E_CATALOG": 409,
    "E_DATABASE_EXISTS": 409,
    "E_STREAM_STATE": 409,
    "E_NO_FUNCTION": 404,
    "E_FUNCTION_EXISTS": 409,
    "E_FUNCTION_CODE": 400,
    "E_TABLE_EXISTS": 409,
    "E_STREAM_EXISTS": 409,
    "E_IN_USE": 409,
    "E_IN_PROGRESS": 409,
    "E_NO_DNODE": 404,
    "E_CANNOT_MOVE": 409,
    "E_NO_TOPIC": 404,
    "E_NO_SNODE": 409,
    "E_SNODE_EXISTS": 409,
    "E_TOPIC_PARTITIONS": 409,
    "E_NO_GROUP": 404,
    "E_NO_SUBSCRIPTION": 404,
    "E_HA_OFF": 409,
    "E_SUBSCRIPTION_EXISTS": 409,
    # not now
    "E_OVERLOAD": 429,
    "E_BUS": 503,
    "E_FENCED": 503,
    "E_OFFSET_GONE": 503,
    "E_KAFKA_DOWN": 503,
    "E_REDIS_DOWN": 503,
    "E_REDIS": 503,
    "E_MOVING": 503,
    "E_NOT_LEADER": 421,
    "E_NO_QUORUM": 503,
    "E_NO_LEADER": 503,
    "E_STORE_DOWN": 503,
    "E_LEASE_LOST": 503,
    "E_LEASE_HELD": 503,
    "E_TIMEOUT": 504,
    "E_NOT_LIVE": 504,
    "E_REMOTE": 502,
    "E_LINK_LOST": 502,
    "E_LINK_FRAME": 502,
    "E_LINK_VERSION": 502,
    "E_TLS": 502,
    "E_REGISTRY": 502,
    "E_REMOTE_SCHEMA": 409,
    "E_NO_VIEW": 404,
    "E_NO_LOG": 400,
    "E_URI": 400,
    "E_NO_QUERY": 404,
    "E_QUERY_NOT_RUNNING": 503,
    "E_NO_SESSION": 400,
    "E_RETRY_WINDOW": 504,
    "E_NOT_BLINK": 400,
    # our fault
    "E_INTERNAL": 500,
    "E_CONFIG": 500,
    "E_STATE": 500,
}

#: TDengine's numbers for what its clients look at; the rest is its "unknown" 0xffff
_TDENGINE: dict[str, int] = {
    "E_SYNTAX": 0x2600,
    "E_NO_COLUMN": 0x2602,
    "E_COLUMN_NOT_EXIST": 0x2602,
    "E_UNKNOWN_COLUMN": 0x2602,
    "E_NO_TABLE": 0x2603,
    "E_TABLE_NOT_EXIST": 0x2603,
    "E_NO_DATABASE": 0x0388,
    "E_DATABASE_NOT_EXIST": 0x0388,
    "E_WHICH_DATABASE": 0x2616,
    "E_DATABASE_EXISTS": 0x0381,
    "E_TABLE_EXISTS": 0x0603,
    "E_STREAM_EXISTS": 0x03F0,
    "E_NO_STREAM": 0x03F1,
    "E_AUTH": 0x0357,
    "E_FORBIDDEN": 0x2644,
    "E_ROW": 0x2605,
    "E_OVERLOAD": 0x0139,
    "E_BUS": 0x0020,
    "E_KAFKA_DOWN": 0x0020,
    "E_REDIS_DOWN": 0x0020,
    "E_STORE_DOWN": 0x0020,
    "E_SEMANTIC": 0x2645,
}
_UNKNOWN = 0xFFFF
#: statuses that errors keep in TDengine's form: who, where and when; the others have 200 there
TDENGINE_STATUS = (401, 403, 413, 429, 503, 504)
RETRY_AFTER_S = "1"


def status_of(error: PenstockError) -> int:
    """HTTP status for *error*. A code that is not mapped is a bug, which a test finds; to clients
    it is a 500.
    """
    return STATUS.get(error.code, 400 if isinstance(error, SqlError) else 500)


def tdengine_code(error: PenstockError) -> int:
    """TDengine's number for *error*."""
    if isinstance(error, SqlSyntaxError):
        return _TDENGINE["E_SYNTAX"]
    return _TDENGINE.get(
        error.code, _TDENGINE["E_SEMANTIC"] if isinstance(error, SqlError) else _UNKNOWN
    )


def _headers(error: PenstockError, status: int) -> dict[str, str]:
    if isinstance(error, AuthError) and status == 401:
        return {"WWW-Authenticate": 'Basic realm="penstock"'}
    if isinstance(error, OverloadError) or status in (429, 503):
        return {"Retry-After": RETRY_AFTER_S}
    return {}


def error_response(error: PenstockError) -> web.Response:
    """Our own form of an error."""
    status = status_of(error)
    return json_response({"error": error.to_dict()}, status=status, headers=_headers(error, status))


def tdengine_error(error: PenstockError) -> web.Response:
    """TDengine's form: HTTP 200 for what the statement got wrong (its own default), a real status
    for who, where and when.
    """
    status = status_of(error)
    body = {"code": tdengine_code(error), "desc": description(error), "error": error.to_dict()}
    return json_response(
        body,
        status=status if status in TDENGINE_STATUS else 200,
        headers=_headers(error, status),
    )


def description(error: PenstockError) -> str:
    """Return what *error* says as one text, for clients that show nothing else."""
    text = error.message
    if isinstance(error, SqlError) and error.line:
        text += f" (line {error.line}, column {error.column})"
    for part in (error.detail, error.hint):
        if part:
            text += f"; {part}"
    return text


def limit_of(request: web.Request, default: int, most: int) -> int:
    """Return the `limit` of a request, or the *default*. Raises SchemaError: it is none up to
    *most*.
    """
    given = request.query.get("limit", str(default))
    # more digits than a limit has are not read as a number
    if not given.isdecimal() or len(given) > len(str(most)) or not 1 <= int(given) <= most:
        raise SchemaError(f"limit is 1 to {most}", code="E_BODY")
    return int(given)


def json_response(
    body: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Return a compact JSON answer."""
    data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(
        errors="backslashreplace"
    )
    return web.Response(
        body=data, status=status, headers=headers, content_type="application/json", charset="utf-8"
    )
