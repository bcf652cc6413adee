"""SETTINGS of type='kafka', and messages of a foreign topic: JSON and Avro both ways, and what is
refused.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock import foreign
from penstock.catalog import changes
from penstock.catalog.model import Database, Table
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError, SchemaError
from penstock.foreign import MESSAGE_ID, Messages, SchemaRegistry
from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS, ColumnType

GIVEN = {"type": "kafka", "brokers": "h1,h2:9093", "topic": "orders", "data_format": "JSONEachRow"}
COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("DOUBLE")),
    Column("n", ColumnType("INT")),
    Column("b", ColumnType("BOOL")),
    Column("s", ColumnType("VARCHAR", 20)),
    Column("x", ColumnType("VARBINARY", 8)),
    Column("d", ColumnType("DECIMAL", 0, 9, 2)),
)
#: 2026-01-01
T0 = 1_767_225_600_000


def json_of(*columns: Column) -> Messages:
    return Messages("json", columns or COLUMNS, "ms", None)


def test_settings_and_what_they_say(tmp_path: Path) -> None:
    topic, password, start = foreign.read_settings({**GIVEN, "password": "p"}, tmp_path)
    assert (topic.brokers, topic.format, password, start) == (
        "h1:9092,h2:9093",
        "json",
        "p",
        "earliest",
    )
    assert topic.hosts == ["h1", "h2"] and topic.options("p") == {"security.protocol": "PLAINTEXT"}
    secured = {
        **GIVEN,
        "security_protocol": "sasl_ssl",
        "sasl_mechanism": "scram-sha-512",
        "username": "u",
        "ssl_ca_cert_file": "/ca",
    }
    options = foreign.read_settings(secured, tmp_path)[0].options("secret")
    assert (options["sasl.mechanism"], options["sasl.password"], options["ssl.ca.location"]) == (
        "SCRAM-SHA-512",
        "secret",
        "/ca",
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": " "}, "`brokers` cannot be empty"),
        ({"topic": ""}, "`topic` cannot be empty"),
        ({"data_format": "CSV"}, "CSV"),
        ({"data_format": "Avro"}, "need kafka_schema_registry_url"),
        ({"data_format": "Protobuf"}, "need kafka_schema_registry_url"),
        ({"kafka_schema_registry_url": "http://r"}, "no use for it"),
        ({"data_format": "Avro", "kafka_schema_registry_url": "http://me:secret@r"}, "no address"),
        ({"data_format": "DebeziumAvro"}, "need kafka_schema_registry_url"),
        ({"fixed_time": "true"}, "belongs to Debezium"),
        ({"data_format": "DebeziumJSON", "fixed_time": "noon"}, "true or false"),
        ({"start": "noon"}, "noon"),
        ({"security_protocol": "TLS"}, "TLS"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism"),
        ({"hosts": "h"}, "no setting hosts"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism"),
        ({"brokers": "h:x"}, "no host"),
        ({"password_file": "../p"}, "name of a file"),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, change: dict[str, str], words: str) -> None:
    with pytest.raises(CatalogError, match=words) as refused:
        foreign.read_settings({**GIVEN, **change}, tmp_path)
    assert refused.value.code == "E_BAD_OPTION" and "secret@" not in str(refused.value)


def test_the_catalog_keeps_all_but_the_password(tmp_path: Path) -> None:
    topic = foreign.at(
        foreign.read_settings({**GIVEN, "username": "u", "password": "hidden"}, tmp_path)[0],
        {0: 7, 1: 0},
    )
    key = Column(MESSAGE_ID, ColumnType("BIGINT"))
    ids = iter(range(100, 200))
    (table,) = changes.create_foreign(
        Catalog([Database(1, "d")]), lambda: next(ids), "d", "o", COLUMNS, key, topic.option()
    ).puts
    assert isinstance(table, Table) and table.foreign and table.key_column == MESSAGE_ID
    assert foreign.of(table) == topic and "hidden" not in str(table)
    assert not table.timeless
    assert [c.name for c in table.columns] == ["ts", MESSAGE_ID, "v", "n", "b", "s", "x", "d"]
    shown = foreign.definition_sql(table, topic)
    assert "`topic`" not in shown and "topic = 'orders'" in shown and MESSAGE_ID not in shown
    for columns, code in (
        (COLUMNS[1:], "E_NO_TIME_COLUMN"),
        ((COLUMNS[0], key), "E_RESERVED_NAME"),
    ):
        with pytest.raises(CatalogError) as refused:
            changes.create_foreign(
                Catalog([Database(1, "d")]),
                lambda: next(ids),
                "d",
                "o",
                columns,
                key,
                topic.option(),
            )
        assert refused.value.code == code


def test_a_table_of_changes_has_a_key_of_its_own(tmp_path: Path) -> None:
    given = {**GIVEN, "data_format": "debezium-json", "fixed_time": "true"}
    topic = foreign.at(foreign.read_settings(given, tmp_path)[0], {0: 7})
    assert (topic.format, topic.changes, topic.fixed_time) == ("json", True, True)
    ids = iter(range(100, 200))
    columns = (COLUMNS[0], Column("id", ColumnType("BIGINT")), COLUMNS[4])
    (table,) = changes.create_foreign(
        Catalog([Database(1, "d")]),
        lambda: next(ids),
        "d",
        "o",
        columns,
        Column(MESSAGE_ID, ColumnType("BIGINT")),
        topic.option(),
        key_column="id",
    ).puts
    assert isinstance(table, Table) and table.key_column == "id"
    assert table.columns == columns and foreign.of(table) == topic
    shown = foreign.definition_sql(table, topic)
    assert "`id` BIGINT PRIMARY KEY" in shown and "data_format = 'DebeziumJSON'" in shown
    assert "fixed_time = 'true'" in shown
    assert table.timeless


def test_json_objects_become_rows() -> None:
    frame = json_of().decode(
        [
            b'{"ts":1767225600000,"v":1,"n":2,"b":true,"s":"x","x":"00ff","d":"1.50","other":[1]}',
            b'{\n "ts": "2026-01-01T01:00:00+01:00",\n "d": 2.5\n}',
            b'{"ts":"2026-01-01 00:00:01.5"}',
            b'{"s":"\xc3\xa4","ts":"2026-01-01T00:00:00Z"}',
            b"{}",
        ]
    )
    assert frame["ts"].to_list() == [T0, T0, T0 + 1500, T0, None]
    assert frame["d"].cast(pl.String).to_list() == ["1.50", "2.50", None, None, None]
    assert (frame["x"][0], frame["s"].to_list()) == (b"\x00\xff", ["x", None, None, "ä", None])


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[1]",
        "3",
        "",
        '{"v":"abc"}',
        '{"n":5000000000}',
        '{"n":1.5}',
        '{"b":1}',
        '{"ts":"noon"}',
        '{"x":"zz"}',
        '{"d":"x"}',
    ],
)
def test_messages_that_are_no_rows(text: str) -> None:
    with pytest.raises(SchemaError) as refused:
        json_of().decode([b"{}", text.encode(), b"{}"])
    assert refused.value.code == "E_MALFORMED"


_VALUES = some.fixed_dictionaries(
    {
        "ts": some.integers(-(10**12), 4 * 10**12),
        "v": some.none() | some.floats(allow_nan=False, allow_infinity=False),
        "n": some.none() | some.integers(-(2**31), 2**31 - 1),
        "b": some.none() | some.booleans(),
        "s": some.none() | some.text(max_size=8),
        "x": some.none() | some.binary(max_size=8),
        "d": some.none() | some.decimals(-9999, 9999, places=2),
    }
)


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={c.name: c.type.polars() for c in COLUMNS})


@given(some.lists(_VALUES, min_size=1, max_size=5))
def test_rows_as_json_and_back(rows: list[dict[str, Any]]) -> None:
    frame = frame_of(rows)
    values = json_of().encode(frame, "")
    assert len(values) == frame.height
    assert json_of().decode(values).equals(frame)


class Shelf(SchemaRegistry):
    """A registry that has these schemas already."""

    def __init__(self, **schemas: Any) -> None:
        super().__init__("http://registry.invalid")
        self._schemas = {int(k[1:]): fastavro.parse_schema(v) for k, v in schemas.items()}

    def newest(self, subject: str) -> tuple[int, Any]:
        assert subject == "orders-value"
        return max(self._schemas), self._schemas[max(self._schemas)]


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]}


FULL = record(
    ("ts", {"type": "long", "logicalType": "timestamp-millis"}),
    ("v", ["null", "double"]),
    ("n", ["null", "int"]),
    ("b", ["null", "boolean"]),
    ("s", ["null", "string"]),
    ("x", ["null", "bytes"]),
    ("d", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]),
)


@given(some.lists(_VALUES, min_size=1, max_size=5))
def test_rows_as_avro_and_back(rows: list[dict[str, Any]]) -> None:
    messages = Messages("avro", COLUMNS, "ms", Shelf(_7=FULL))
    frame = frame_of(rows)
    values = messages.encode(frame, "orders-value")
    assert values[0][:5] == struct.pack(">bI", 0, 7)
    assert messages.decode(values).equals(frame)


def test_avro_of_several_schemas_and_what_is_refused() -> None:
    old = record(("ts", "long"), ("n", "int"))
    messages = Messages("avro", COLUMNS, "ms", Shelf(_1=old, _2=FULL))

    def written(schema_id: int, schema: Any, row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        return struct.pack(">bI", 0, schema_id) + out.getvalue()

    full = {
        "ts": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "v": 1.5,
        "n": None,
        "b": None,
        "s": "y",
        "x": None,
        "d": None,
    }
    frame = messages.decode([written(1, old, {"ts": T0, "n": 3}), written(2, FULL, full)])
    assert (
        frame["ts"].to_list() == [T0, T0]
        and frame["n"].to_list() == [3, None]
        and frame["s"].to_list() == [None, "y"]
    )
    text = record(("ts", "long"), ("n", "string"))
    worded = Messages("avro", COLUMNS, "ms", Shelf(_1=text))
    for reader, value in (
        (messages, b"{}"),
        (messages, b"\x00\x00\x00\x00\x02\xff"),
        (worded, written(1, text, {"ts": 1, "n": "x"})),
    ):
        with pytest.raises(SchemaError) as refused:
            reader.decode([value])
        assert refused.value.code == "E_MALFORMED"
    with pytest.raises(SchemaError, match="no field v"):
        Messages("avro", COLUMNS, "ms", Shelf(_1=old)).encode(
            frame_of([{**full, "ts": T0}]), "orders-value"
        )


def _written(schema: Any, **row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return struct.pack(">bI", 0, 1) + out.getvalue()


TEXT = Column("x", ColumnType("VARCHAR", 64))
_UUID = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.mark.parametrize(
    ("kind", "value", "column", "taken"),
    [
        ({"type": "string", "logicalType": "uuid"}, str(_UUID), TEXT, str(_UUID)),
        ({"type": "string", "logicalType": "uuid"}, "no such thing", TEXT, "no such thing"),
        (
            {"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"},
            _UUID.bytes,
            TEXT,
            str(_UUID),
        ),
        (["null", {"type": "string", "logicalType": "uuid"}], str(_UUID), TEXT, str(_UUID)),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            T0,
            Column("x", ColumnType("TIMESTAMP")),
            T0,
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            T0 * 1000,
            Column("x", ColumnType("TIMESTAMP")),
            T0,
        ),
        (
            {"type": "long", "logicalType": "timestamp-nanos"},
            T0 * 10**6 + 7,
            Column("x", ColumnType("TIMESTAMP")),
            T0,
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-nanos"},
            T0 * 10**6,
            Column("x", ColumnType("TIMESTAMP")),
            T0,
        ),
        (
            {"type": "int", "logicalType": "date"},
            T0 // 86_400_000,
            Column("x", ColumnType("TIMESTAMP")),
            T0,
        ),
        ({"type": "string", "logicalType": "of-nobody"}, "as it is", TEXT, "as it is"),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", TEXT, "B"),
        (
            {"type": "fixed", "name": "f", "size": 3},
            b"abc",
            Column("x", ColumnType("VARBINARY", 8)),
            b"abc",
        ),
    ],
)
def test_avro_types_that_are_taken(kind: Any, value: Any, column: Column, taken: object) -> None:
    messages = Messages("avro", [column], "ms", Shelf(_1=record(("x", kind))))
    plain = [k for k in (kind if isinstance(kind, list) else [kind]) if k != "null"][0]
    written = _written(
        record(("x", {k: v for k, v in plain.items() if k != "logicalType"})), x=value
    )
    body = written if plain is kind else written[:5] + b"\x02" + written[5:]
    assert messages.decode([body])["x"].to_list() == [taken]


_LINK = {"type": "record", "name": "link", "fields": [{"name": "next", "type": ["null", "link"]}]}


@pytest.mark.parametrize(
    "column",
    ["VARCHAR", "TIMESTAMP", "INT", "DOUBLE", "BOOL", "VARBINARY", "DECIMAL", "BIGINT UNSIGNED"],
)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"}, b"\0" * 12),
        ({"type": "bytes", "logicalType": "big-decimal"}, b"\x02\x02\x04"),
        ({"type": "string", "logicalType": "uuid"}, str(_UUID)),
        ({"type": "int", "logicalType": "time-millis"}, dt.time(12)),
        ({"type": "int", "logicalType": "date"}, dt.date(2026, 1, 1)),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 3},
            Decimal("1" * 36),
        ),
        ({"type": "map", "values": "string"}, {"a": "b"}),
        ({"type": "array", "items": "int"}, [1, 2]),
        ({"type": "record", "name": "inner", "fields": [{"name": "a", "type": "int"}]}, {"a": 1}),
        (["null", {"type": "record", "name": "inner", "fields": []}, "string"], {}),
        (["null", "string", "long", "boolean"], True),
        ({"type": "fixed", "name": "f", "size": 3}, b"\xff\xff\xff"),
        ("bytes", b"\xff"),
        ("string", "text"),
        ("double", float("inf")),
        ("long", 2**63 - 1),
        ("boolean", True),
    ],
)
def test_an_avro_value_is_taken_or_its_message_refused(column: str, kind: Any, value: Any) -> None:
    """What raises anything but SchemaError stops the stream for ever."""
    kinds = ColumnType(
        column, 64 if column.startswith("VAR") else 0, 9 if column == "DECIMAL" else 0, 0
    )  # type: ignore[arg-type]
    messages = Messages("avro", [Column("x", kinds)], "ms", Shelf(_1=record(("x", kind))))
    try:
        assert messages.decode([_written(record(("x", kind)), x=value)]).height == 1
    except SchemaError as refused:
        assert refused.code == "E_MALFORMED"


def test_a_schema_that_is_refused_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = SchemaRegistry("http://registry.invalid")
    asked = []

    def answer(path: str) -> dict[str, Any]:
        asked.append(path)
        return {"schema": json.dumps(_LINK)}

    monkeypatch.setattr(registry, "_get", answer)
    messages = Messages("avro", [TEXT], "ms", registry)
    for _ in range(3):
        with pytest.raises(SchemaError):
            messages.decode([struct.pack(">bI", 0, 9) + b"\0"])
    assert asked == ["/schemas/ids/9"]


def test_a_schema_that_the_registry_does_not_know_yet_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = SchemaRegistry("http://registry.invalid")
    unknown = SchemaError("it does not know it", code="E_UNKNOWN_SCHEMA")
    known: dict[str, dict[str, Any]] = {}

    def answer(path: str) -> dict[str, Any]:
        if path not in known:
            raise unknown
        return known[path]

    monkeypatch.setattr(registry, "_get", answer)
    for ask in (registry.schema, registry.descriptors):
        with pytest.raises(SchemaError, match="does not know"):
            ask(9)
    known["/schemas/ids/9"] = {"schema": '"string"'}
    known["/schemas/ids/9?format=serialized"] = {"schema": ""}
    assert registry.schema(9) == "string"
    assert registry.descriptors(9).messages == {}


def test_json_as_confluents_json_schema_serializers_frame_it() -> None:
    n = Column("n", ColumnType("INT"))
    framed = struct.pack(">bI", 0, 7) + b'{"n": 3}'
    assert json_of(n).decode([framed, b'{"n": 4}'])["n"].to_list() == [3, 4]


@pytest.mark.parametrize("text", ["9000-01-01T00:00:00Z", "1500-01-01 00:00:00"])
def test_a_text_beyond_the_nanoseconds_is_no_time(text: str) -> None:
    messages = Messages("json", COLUMNS[:1], "ns", None)
    near, far = messages.decode(
        [b'{"ts": "2026-01-01T00:00:00.123456789Z"}', f'{{"ts": "{text}"}}'.encode()]
    )["ts"]
    assert near == T0 * 10**6 + 123_456_789
    assert far < TIME_LIMITS["ns"][0]
