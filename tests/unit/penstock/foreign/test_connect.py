"""Values of Kafka Connect's and Debezium's types, as columns of ours have them."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from penstock.foreign.avro import Nanoseconds
from penstock.foreign.connect import (
    UNKNOWN,
    ConnectType,
    fit,
    kinds_of_avro,
    kinds_of_json,
    struct_of_json,
)
from penstock.sql.plan import Column
from penstock.types import ColumnType

TIME = ColumnType("TIMESTAMP")
TEXT = ColumnType("VARCHAR", 64)
DECIMAL = ColumnType("DECIMAL", 0, 9, 2)
#: 2026-01-01 00:00:01.5
T = 1_767_225_601_500
DEBEZIUM = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def taken(value: Any, kind: ConnectType, column: ColumnType, precision: Any = "ms") -> Any:
    return fit(value, kind, Column("x", column), precision)


@pytest.mark.parametrize(
    ("name", "value", "ticks"),
    [
        ("io.debezium.time.Timestamp", T, T),
        ("io.debezium.time.MicroTimestamp", T * 1000 + 7, T),
        ("io.debezium.time.NanoTimestamp", T * 10**6 + 7, T),
        ("org.apache.kafka.connect.data.Timestamp", T, T),
        ("io.debezium.time.ZonedTimestamp", "2026-01-01T02:00:01.500+02:00", T),
        ("io.debezium.time.IsoTimestamp", "2026-01-01T00:00:01.500Z", T),
        ("io.debezium.time.Date", 20454, T - 1500),
        ("org.apache.kafka.connect.data.Date", 20454, T - 1500),
        ("io.debezium.time.Timestamp", -1, -1),
        ("io.debezium.time.MicroTimestamp", -1, -1),
        ("", T, T),
        ("", "2026-01-01", T - 1500),
        ("", "2026-01-01 00:00:01.5", T),
        ("", dt.datetime(2026, 1, 1, 0, 0, 1, 500_000, dt.UTC), T),
        ("", dt.datetime(2026, 1, 1, 0, 0, 1, 500_000), T),  # noqa: DTZ001
        ("", dt.date(2026, 1, 1), T - 1500),
        ("", Nanoseconds(T * 10**6 + 999_999), T),
    ],
)
def test_times_by_their_names(name: str, value: Any, ticks: int) -> None:
    assert taken(value, ConnectType("int64", name), TIME) == ticks


def test_times_of_another_precision() -> None:
    micro = ConnectType("int64", DEBEZIUM + "MicroTimestamp")
    assert taken(T * 1000 + 7, micro, TIME, "us") == T * 1000 + 7
    assert taken(T * 1000 + 7, micro, TIME, "ns") == T * 10**6 + 7000
    assert taken("2026-01-01T00:00:01.500000009Z", UNKNOWN, TIME, "ns") == T * 10**6 + 9
    assert taken(5, UNKNOWN, TIME, "us") == 5, "a number without a name is ticks"


@pytest.mark.parametrize(
    ("kind", "value", "column", "found"),
    [
        (
            ConnectType("bytes", CONNECT + "Decimal", 2),
            base64_of((1250).to_bytes(2, "big")),
            DECIMAL,
            Decimal("12.50"),
        ),
        (
            ConnectType("bytes", CONNECT + "Decimal", 0),
            base64_of(b"\xff"),
            ColumnType("BIGINT"),
            -1,
        ),
        (
            ConnectType("struct", "io.debezium.data.VariableScaleDecimal"),
            {"scale": 1, "value": base64_of(b"\x0f")},
            DECIMAL,
            Decimal("1.50"),
        ),
        (
            ConnectType("record", "io.debezium.data.VariableScaleDecimal"),
            {"scale": 1, "value": b"\x0f"},
            ColumnType("DOUBLE"),
            1.5,
        ),
        (UNKNOWN, "1.5", DECIMAL, Decimal("1.50")),
        (UNKNOWN, 0.1, DECIMAL, Decimal("0.10")),
        (UNKNOWN, 7, DECIMAL, Decimal("7.00")),
        (UNKNOWN, "1.5", ColumnType("DOUBLE"), 1.5),
        (UNKNOWN, 3, ColumnType("DOUBLE"), 3.0),
        (UNKNOWN, "12", ColumnType("INT"), 12),
        (UNKNOWN, 12.0, ColumnType("INT"), 12),
        (UNKNOWN, True, ColumnType("TINYINT"), 1),
        (UNKNOWN, 1, ColumnType("BOOL"), True),
        (UNKNOWN, False, ColumnType("BOOL"), False),
        (ConnectType("bytes"), base64_of(b"\0\xff"), ColumnType("VARBINARY", 8), b"\0\xff"),
        (UNKNOWN, base64_of(b"\0\xff"), ColumnType("VARBINARY", 8), b"\0\xff"),
        (ConnectType("bytes"), b"\0\xff", ColumnType("VARBINARY", 8), b"\0\xff"),
        (
            ConnectType("string", "io.debezium.data.Json"),
            '{"a": 1}',
            ColumnType("JSON"),
            '{"a": 1}',
        ),
        (ConnectType("array"), [1, "ä", None], TEXT, '[1,"ä",null]'),
        (UNKNOWN, 5, TEXT, "5"),
        (UNKNOWN, True, TEXT, "true"),
        (UNKNOWN, Decimal("1E+2"), TEXT, "100"),
        (ConnectType("int64", DEBEZIUM + "MicroTime"), 3_600_000_001, TEXT, "01:00:00.000001"),
        (ConnectType("int32", DEBEZIUM + "Time"), 3_600_000, ColumnType("INT"), 3_600_000),
        (ConnectType("int32", DEBEZIUM + "Date"), 20454, TEXT, "2026-01-01"),
        (ConnectType("int64", DEBEZIUM + "Timestamp"), T, TEXT, "2026-01-01T00:00:01.500000+00:00"),
        (UNKNOWN, None, DECIMAL, None),
    ],
)
def test_values_by_their_columns(
    kind: ConnectType, value: Any, column: ColumnType, found: Any
) -> None:
    made = taken(value, kind, column)
    assert made == found and type(made) is type(found)


@pytest.mark.parametrize(
    ("kind", "value", "column"),
    [
        (UNKNOWN, "noon", TIME),
        (UNKNOWN, "2026-13-01T00:00:00Z", TIME),
        (UNKNOWN, True, TIME),
        (UNKNOWN, 1.5, TIME),
        (ConnectType("int32", DEBEZIUM + "Time"), 5, TIME),
        (ConnectType("int32", DEBEZIUM + "Year"), 2026, TIME),
        (UNKNOWN, "1.234", DECIMAL),
        (UNKNOWN, 1.5, ColumnType("INT")),
        (UNKNOWN, "1E999999999", ColumnType("BIGINT")),
        (UNKNOWN, "1E-999999999", DECIMAL),
        (UNKNOWN, "9" * 1_000_000, ColumnType("BIGINT")),
        (UNKNOWN, "NaN", ColumnType("DOUBLE")),
        (UNKNOWN, [1], ColumnType("DOUBLE")),
        (UNKNOWN, 2, ColumnType("BOOL")),
        (UNKNOWN, "true", ColumnType("BOOL")),
        (UNKNOWN, b"x", TEXT),
        (UNKNOWN, b"x", ColumnType("INT")),
        (UNKNOWN, dt.date(2026, 1, 1), ColumnType("INT")),
        (UNKNOWN, "no base64!", ColumnType("VARBINARY", 8)),
        (ConnectType("bytes", CONNECT + "Decimal"), base64_of(b"x" * 65), DECIMAL),
        (
            ConnectType("struct", "io.debezium.data.VariableScaleDecimal"),
            {"scale": -(10**9), "value": "AQ=="},
            ColumnType("BIGINT"),
        ),
        (
            ConnectType("struct", "io.debezium.data.VariableScaleDecimal"),
            {"value": "AQ=="},
            DECIMAL,
        ),
        (ConnectType("int32", DEBEZIUM + "Date"), 10**12, TEXT),
    ],
)
def test_values_that_are_none(kind: ConnectType, value: Any, column: ColumnType) -> None:
    with pytest.raises((ValueError, OverflowError)):
        taken(value, kind, column)


def test_kinds_of_a_schema_beside_the_payload() -> None:
    row = {
        "field": "after",
        "fields": [
            {"field": "id", "type": "int32"},
            {"field": "at", "type": "int64", "name": DEBEZIUM + "MicroTimestamp"},
            {
                "field": "price",
                "type": "bytes",
                "name": CONNECT + "Decimal",
                "parameters": {"scale": "2"},
            },
        ],
    }
    assert struct_of_json({"fields": [{"field": "before"}, row]}, "after") == row
    assert struct_of_json({"fields": [row]}, "before") is None
    assert kinds_of_json(row) == {
        "id": ConnectType("int32"),
        "at": ConnectType("int64", DEBEZIUM + "MicroTimestamp"),
        "price": ConnectType("bytes", CONNECT + "Decimal", 2),
    }
    for broken in (None, [], {"fields": 1}, {"fields": [1]}):
        with pytest.raises(ValueError, match="none of a struct"):
            kinds_of_json(broken)


def test_kinds_of_an_avro_schema() -> None:
    at = {"type": "long", "connect.version": 1, "connect.name": DEBEZIUM + "MicroTimestamp"}
    value = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "at", "type": at},
            {"name": "until", "type": ["null", at], "default": None},
            {"name": "either", "type": ["null", "int", "string"]},
        ],
    }
    schema = fastavro.parse_schema(
        {
            "type": "record",
            "name": "Envelope",
            "namespace": "shop.orders",
            "fields": [
                {"name": "before", "type": ["null", value], "default": None},
                {"name": "after", "type": ["null", "Value"], "default": None},
                {"name": "op", "type": "string"},
            ],
        }
    )
    micro = ConnectType("long", DEBEZIUM + "MicroTimestamp")
    expected = {"id": ConnectType("int"), "at": micro, "until": micro, "either": UNKNOWN}
    assert kinds_of_avro(schema, ("before",)) == expected
    assert kinds_of_avro(schema, ("after",)) == expected
    assert kinds_of_avro(schema)["op"] == ConnectType("string")
    for path in (("op",), ("nothing",), ("op", "deeper")):
        assert kinds_of_avro(schema, path) == {}
