from __future__ import annotations

import io
import json
import os
import time
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from penstock.errors import SchemaError
from penstock.foreign.avro import parse, row_of


def record(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "top", "fields": [{"name": "x", "type": kind}]})


def varint(number: int) -> bytes:
    number <<= 1
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def _laughs() -> dict[str, Any]:
    """Records that hold the one before twice: a billion values, and no byte."""
    kind: Any = "null"
    for level in range(30):
        name = f"r{level}"
        fields = [
            {"name": "a", "type": kind},
            {"name": "b", "type": kind if isinstance(kind, str) else kind["name"]},
        ]
        kind = {"type": "record", "name": name, "fields": fields}
    return kind


_EMPTY = {"type": "record", "name": "empty", "fields": []}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "null"}},
        {"type": "array", "items": _EMPTY},
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}},
        {
            "type": "array",
            "items": {"type": "record", "name": "n", "fields": [{"name": "a", "type": "null"}]},
        },
        ["null", {"type": "array", "items": "null"}],
        {"type": "map", "values": {"type": "array", "items": "null"}},
        {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]},
        {"type": "array", "items": "top"},
        _laughs(),
    ],
)
def test_schemas_that_no_bytes_pay_for_are_refused(kind: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        parse(record(kind))
    assert caught.value.code == "E_REMOTE_SCHEMA"


@pytest.mark.parametrize(
    "text", ["", "[", "[" * 100_000, "5", '{"type": "none"}', '"' + "x" * (2 << 20) + '"']
)
def test_what_is_no_schema_is_one_error(text: str) -> None:
    with pytest.raises(SchemaError):
        parse(text)


def test_usual_schemas_are_read() -> None:
    inner = {
        "type": "record",
        "name": "in",
        "fields": [{"name": "a", "type": ["null", "string"]}, {"name": "n", "type": "null"}],
    }
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    for kind, value in (
        ({"type": "array", "items": ["null", "long"]}, [1, None, 3]),
        ({"type": "map", "values": inner}, {"k": {"a": "x", "n": None}}),
        (decimal, Decimal("-12.34")),
        # as many digits as an Avro decimal may have, whatever decimal's context rounds to
        ({**decimal, "precision": 38}, Decimal("-" + "9" * 36 + ".99")),
        (
            {
                "type": "fixed",
                "name": "f",
                "size": 5,
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
            },
            Decimal("12.34"),
        ),
    ):
        schema = parse(record(kind))
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, schema, {"x": value})
        assert row_of(sink.getvalue(), schema) == {"x": value}


def test_lengths_that_the_message_has_not_and_long_decimals_cost_nothing() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 400_000_000, "scale": 2}
    begun = time.process_time()
    for kind, body in (
        ({"type": "array", "items": "long"}, varint(10**12)),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 4}}, varint(10**12)),
        ("bytes", varint(10**12)),
        (decimal, varint(10**6) + os.urandom(10**6)),
    ):
        with pytest.raises(SchemaError):
            row_of(body, parse(record(kind)))
    assert time.process_time() - begun < 5.0
