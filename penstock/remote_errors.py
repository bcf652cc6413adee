"""Errors of another process as exceptions here: what an answer's `error` object stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import (
    AuthError,
    BusError,
    CatalogError,
    OverloadError,
    PenstockError,
    RemoteError,
    SchemaError,
    SqlError,
    SqlSemanticError,
    SqlSyntaxError,
)

#: kinds of errors whose code is not known
_KINDS_BY_STATUS: dict[int, type[PenstockError]] = {
    400: SqlSemanticError,
    404: CatalogError,
    409: CatalogError,
}

_KINDS: dict[str, type[PenstockError]] = {
    "E_AUTH": AuthError,
    "E_FORBIDDEN": AuthError,
    "E_OVERLOAD": OverloadError,
    "E_TOO_LARGE": SchemaError,
    "E_ROW": SchemaError,
    "E_BODY": SchemaError,
    "E_LINE": SchemaError,
    "E_SCHEMA": SchemaError,
    "E_MEDIA_TYPE": SchemaError,
    "E_KEY_REUSED": SchemaError,
    "E_BUS": BusError,
    "E_KAFKA_DOWN": BusError,
    "E_REDIS_DOWN": BusError,
    "E_NOT_LIVE": BusError,
    "E_SYNTAX": SqlSyntaxError,
    "E_NO_TABLE": CatalogError,
    "E_NO_DATABASE": CatalogError,
    "E_NO_STREAM": CatalogError,
}


def error_of(body: Mapping[str, Any], status: int = 0) -> PenstockError:
    """Return the exception that an answer's `error` object stands for."""
    code = str(body.get("code", "E_REMOTE"))
    message, detail, hint = (str(body.get(k, "")) for k in ("message", "detail", "hint"))
    kind = _KINDS.get(code)
    if "line" in body and "snippet" in body or kind is SqlSyntaxError:
        sql: type[SqlError] = SqlSyntaxError if code == "E_SYNTAX" else SqlSemanticError
        where = {k: body[k] for k in ("line", "column", "snippet") if k in body}
        return sql(message, code=code, detail=detail, hint=hint, **where)
    if kind is None:
        kind = _KINDS_BY_STATUS.get(status, RemoteError)
    return kind(message, code=code, detail=detail, hint=hint)
