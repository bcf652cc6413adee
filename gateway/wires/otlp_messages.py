"""Messages of OTLP metrics, from protobuf to the form that they have as JSON.

Owns the numbers of fields; unknown ones are stepped over, as are exemplars, quantiles and whatever
else becomes no row.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import SchemaError
from penstock.protobuf import BYTES, FIXED64, VARINT, ProtobufReader, signed

#: fields of protobuf of one request
MOST_FIELDS = 2_000_000
#: values of attributes hold others
_DEEPEST = 24
_DOUBLES = struct.Struct("<d")
_UNSIGNED = struct.Struct("<Q")
_SIGNED = struct.Struct("<q")
_VARINTS: dict[str, Callable[[int], Any]] = {"bool": bool, "int64": signed, "uint32": int}
_FIXED = {"double": _DOUBLES, "fixed64": _UNSIGNED, "sfixed64": _SIGNED}


@dataclass(frozen=True)
class MessageField:
    """`kind` is a message's name or that of a scalar."""

    name: str
    kind: str
    repeated: bool = False


def _many(name: str, kind: str) -> MessageField:
    return MessageField(name, kind, repeated=True)


_ATTRIBUTES = _many("attributes", "KeyValue")
_TIME = MessageField("timeUnixNano", "fixed64")
_FLAGS = MessageField("flags", "uint32")
#: message → its fields by number
_MESSAGES: dict[str, dict[int, MessageField]] = {
    "ExportMetricsServiceRequest": {1: _many("resourceMetrics", "ResourceMetrics")},
    "ResourceMetrics": {
        1: MessageField("resource", "Resource"),
        2: _many("scopeMetrics", "ScopeMetrics"),
    },
    "Resource": {1: _ATTRIBUTES},
    "ScopeMetrics": {1: MessageField("scope", "Scope"), 2: _many("metrics", "Metric")},
    "Scope": {1: MessageField("name", "string"), 2: MessageField("version", "string")},
    "Metric": {
        1: MessageField("name", "string"),
        5: MessageField("gauge", "Numbers"),
        7: MessageField("sum", "Numbers"),
        9: MessageField("histogram", "Histogram"),
        10: MessageField("exponentialHistogram", "Untaken"),
        11: MessageField("summary", "Untaken"),
    },
    "Numbers": {1: _many("dataPoints", "NumberPoint")},
    "Histogram": {1: _many("dataPoints", "HistogramPoint")},
    "Untaken": {1: _many("dataPoints", "UntakenPoint")},
    "UntakenPoint": {},
    "NumberPoint": {
        3: _TIME,
        4: MessageField("asDouble", "double"),
        6: MessageField("asInt", "sfixed64"),
        7: _ATTRIBUTES,
        8: _FLAGS,
    },
    "HistogramPoint": {
        3: _TIME,
        4: MessageField("count", "fixed64"),
        5: MessageField("sum", "double"),
        6: _many("bucketCounts", "fixed64"),
        7: _many("explicitBounds", "double"),
        9: _ATTRIBUTES,
        10: _FLAGS,
        11: MessageField("min", "double"),
        12: MessageField("max", "double"),
    },
    "KeyValue": {1: MessageField("key", "string"), 2: MessageField("value", "AnyValue")},
    "AnyValue": {
        1: MessageField("stringValue", "string"),
        2: MessageField("boolValue", "bool"),
        3: MessageField("intValue", "int64"),
        4: MessageField("doubleValue", "double"),
        5: MessageField("arrayValue", "ArrayValue"),
        6: MessageField("kvlistValue", "KeyValueList"),
        7: MessageField("bytesValue", "bytes"),
    },
    "ArrayValue": {1: _many("values", "AnyValue")},
    "KeyValueList": {1: _many("values", "KeyValue")},
}


def decode(data: bytes) -> dict[str, Any]:
    """Return an ExportMetricsServiceRequest. Raises SchemaError: it is none, or too large a one."""
    return _Message(data).read("ExportMetricsServiceRequest", 0, len(data), _DEEPEST)


def decode_json(data: bytes) -> Any:
    """Return what a body of JSON holds. Raises SchemaError: it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise body_error(str(wrong)) from None


class _Message:
    def __init__(self, data: bytes) -> None:
        self._reader = ProtobufReader(data, MOST_FIELDS, body_error, too_large)

    def read(self, message: str, at: int, end: int, depth: int) -> dict[str, Any]:
        if depth < 0:
            raise body_error("its values are nested too deeply")
        known = _MESSAGES[message]
        made: dict[str, Any] = {}
        for number, wire, start, stop in self._reader.fields(at, end):
            field = known.get(number)
            if field is None:
                continue
            values = self._values(field, wire, start, stop, depth)
            if field.repeated:
                made.setdefault(field.name, []).extend(values)
            elif values:
                made[field.name] = values[-1]
        return made

    def _values(
        self, field: MessageField, wire: int, start: int, stop: int, depth: int
    ) -> list[Any]:
        """Return what one field holds: several values when they are packed, none when it is of
        another type than it should be.
        """
        kind = field.kind
        if kind in _FIXED:
            return self._fixed(_FIXED[kind], wire, start, stop)
        if wire == VARINT:
            return [_VARINTS[kind](start)] if kind in _VARINTS else []
        if wire != BYTES:
            return []
        if kind in _MESSAGES:
            return [self.read(kind, start, stop, depth - 1)]
        if kind == "string":
            return [self._reader.text(start, stop)]
        if kind == "bytes":
            return [base64.b64encode(self._reader.data[start:stop]).decode()]
        return []

    def _fixed(self, form: struct.Struct, wire: int, start: int, stop: int) -> list[Any]:
        if wire not in (FIXED64, BYTES):
            return []
        if (stop - start) % form.size:
            raise body_error("packed numbers end in the middle")
        return [value for (value,) in form.iter_unpack(self._reader.data[start:stop])]


def body_error(detail: str) -> SchemaError:
    """Make the error for a body that is no request."""
    return SchemaError(
        "the body is no ExportMetricsServiceRequest",
        code="E_BODY",
        detail=detail[:200],
        hint="OTLP over HTTP, as JSON or protobuf, packed by gzip or not",
    )


def too_large(detail: str) -> SchemaError:
    """Make the error for a request that has too much in it."""
    return SchemaError(
        "the request is too large",
        code="E_TOO_LARGE",
        detail=detail,
        hint="lower send_batch_max_size of the collector's batch processor",
    )
