"""Spans as the body of an OTLP request, in protobuf. Owns the numbers of its fields."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from penstock.protobuf import BYTES, FIXED64, VARINT, bytes_field, number_field, varint_bytes
from penstock.runtime.traces import SpanContext
from penstock.telemetry.span import Span, Value

_STATUS_ERROR = 2
_MOST_TEXT = 1024
#: of a number that may be negative: protobuf writes it without a sign
_MASK = (1 << 64) - 1


def request(resource: Mapping[str, Value], scope: tuple[str, str], spans: Sequence[Span]) -> bytes:
    """Return an ExportTraceServiceRequest.

    Args:
        resource: attributes of the process.
        scope: name and version of what made the spans.
    """
    name, version = scope
    made_by = bytes_field(1, name.encode()) + bytes_field(2, version.encode())
    of_scope = bytes_field(1, made_by) + b"".join(bytes_field(2, _span(s)) for s in spans)
    about = bytes_field(1, _attributes(1, resource)) + bytes_field(2, of_scope)
    return bytes_field(1, about)


def _span(span: Span) -> bytes:
    return b"".join(
        (
            _context(span.context),
            bytes_field(4, bytes.fromhex(span.parent)),
            bytes_field(5, span.name.encode()),
            number_field(6, span.kind),
            _fixed64(7, span.start),
            _fixed64(8, max(span.end, span.start)),
            _attributes(9, span.attributes),
            *(bytes_field(13, _context(link)) for link in span.links),
            bytes_field(15, _status(span.error)),
        )
    )


def _context(context: SpanContext) -> bytes:
    return bytes_field(1, bytes.fromhex(context.trace_id)) + bytes_field(
        2, bytes.fromhex(context.span_id)
    )


def _status(error: str) -> bytes:
    if not error:
        return b""
    return bytes_field(2, error[:_MOST_TEXT].encode()) + number_field(3, _STATUS_ERROR)


def _attributes(number: int, attributes: Mapping[str, Value]) -> bytes:
    return b"".join(
        bytes_field(number, bytes_field(1, key.encode()) + _message(2, _value(value)))
        for key, value in attributes.items()
    )


def _value(value: Value) -> bytes:
    """Write an AnyValue: a field that is there though it is 0 or empty."""
    if isinstance(value, str):
        return _message(1, value[:_MOST_TEXT].encode(errors="replace"))
    if isinstance(value, bool):
        return varint_bytes(2 << 3 | VARINT) + varint_bytes(int(value))
    if isinstance(value, int):
        return varint_bytes(3 << 3 | VARINT) + varint_bytes(value & _MASK)
    if isinstance(value, float):
        return varint_bytes(4 << 3 | FIXED64) + struct.pack("<d", value)
    return _message(5, b"".join(_message(1, _value(each)) for each in value))


def _message(number: int, value: bytes) -> bytes:
    return varint_bytes(number << 3 | BYTES) + varint_bytes(len(value)) + value


def _fixed64(number: int, value: int) -> bytes:
    return varint_bytes(number << 3 | FIXED64) + struct.pack("<Q", value)
