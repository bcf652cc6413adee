"""Answers of OTLP over HTTP, in the encoding of the request: full and partial success, and errors
as google.rpc.Status.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from aiohttp import web

from gateway import http
from penstock.errors import PenstockError
from penstock.protobuf import bytes_field, number_field

_UNKNOWN = 2
#: HTTP status → code of gRPC
_CODES = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    409: 9,
    413: 8,
    415: 3,
    421: 14,
    429: 8,
    500: 13,
    502: 14,
    503: 14,
    504: 4,
}


class OtlpEncoding(Enum):
    """Encodings of messages; the value is the media type."""

    JSON = "application/json"
    PROTOBUF = "application/x-protobuf"


def success(
    encoding: OtlpEncoding, rejected: int = 0, message: str = "", headers: Any = None
) -> web.Response:
    """Return an ExportMetricsServiceResponse.

    Args:
        rejected: data points that were not written.
        message: why; without rejected ones, what the client should know.
    """
    partial: dict[str, Any] = {}
    if rejected:
        partial["rejectedDataPoints"] = str(rejected)
    if message:
        partial["errorMessage"] = message
    if encoding is OtlpEncoding.JSON:
        return http.json_response({"partialSuccess": partial} if partial else {}, headers=headers)
    inner = number_field(1, rejected) + bytes_field(2, _utf8(message))
    return _protobuf(bytes_field(1, inner), 200, headers)


def refusal(encoding: OtlpEncoding, error: PenstockError) -> web.Response:
    """Return an error as google.rpc.Status; headers and status are those of our own form."""
    ours = http.error_response(error)
    headers = {k: v for k, v in ours.headers.items() if not k.startswith("Content-")}
    text = ": ".join(part for part in (error.code, error.message) if part)
    text += "".join(f" ({part})" for part in (error.detail, error.hint) if part)
    code = _CODES.get(ours.status, _UNKNOWN)
    if encoding is OtlpEncoding.JSON:
        told = {"code": code, "message": text}
        return http.json_response(told, status=ours.status, headers=headers)
    body = number_field(1, code) + bytes_field(2, _utf8(text))
    return _protobuf(body, ours.status, headers)


def _utf8(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


def _protobuf(body: bytes, status: int, headers: Any) -> web.Response:
    media = OtlpEncoding.PROTOBUF.value
    return web.Response(body=body, status=status, content_type=media, headers=headers)
