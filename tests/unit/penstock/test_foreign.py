"""SETTINGS of type='kafka', and messages of a foreign topic: JSON and Avro both ways, and what is refused."""

from __future__ import annotations

import datetime as dt
import io
import struct
from pathlib import Path
from typing import Any

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
from penstock.foreign import MESSAGE_ID, Messages, Registry
from penstock.sql.plan import Column
from penstock.types import ColumnType

GIVEN = {"type": "kafka", "brokers": "h1,h2:9093", "topic": "orders", "data_format": "JSONEachRow"}
COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")), Column("n", ColumnType("INT")),
    Column("b", ColumnType("BOOL")), Column("s", ColumnType("VARCHAR", 20)), Column("x", ColumnType("VARBINARY", 8)),
    Column("d", ColumnType("DECIMAL", 0, 9, 2)),
)  # fmt: skip
#: 2026-01-01
T0 = 1_767_225_600_000


def json_of(*columns: Column) -> Messages:
    return Messages("json", columns or COLUMNS, "ms", None)


def test_settings_and_what_they_say(tmp_path: Path) -> None:
    topic, password, start = foreign.read_settings({**GIVEN, "password": "p"}, tmp_path)
    assert (topic.brokers, topic.format, password, start) == ("h1:9092,h2:9093", "json", "p", "earliest")
    assert topic.hosts == ["h1", "h2"] and topic.options("p") == {"security.protocol": "PLAINTEXT"}
    secured = {**GIVEN, "security_protocol": "sasl_ssl", "sasl_mechanism": "scram-sha-512", "username": "u", "ssl_ca_cert_file": "/ca"}
    options = foreign.read_settings(secured, tmp_path)[0].options("secret")
    assert (options["sasl.mechanism"], options["sasl.password"], options["ssl.ca.location"]) == ("SCRAM-SHA-512", "secret", "/ca")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": " "}, "`brokers` cannot be empty"), ({"topic": ""}, "`topic` cannot be empty"), ({"data_format": "CSV"}, "CSV"),
        ({"data_format": "Avro"}, "needs kafka_schema_registry_url"), ({"kafka_schema_registry_url": "http://r"}, "no use for it"),
        ({"data_format": "Avro", "kafka_schema_registry_url": "http://me:secret@r"}, "no address"), ({"start": "noon"}, "noon"),
        ({"security_protocol": "TLS"}, "TLS"), ({"security_protocol": "SASL_SSL"}, "sasl_mechanism"), ({"hosts": "h"}, "no setting hosts"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism"), ({"brokers": "h:x"}, "no host"), ({"password_file": "../p"}, "name of a file"),
    ],
)  # fmt: skip
def test_settings_that_are_refused(tmp_path: Path, change: dict[str, str], words: str) -> None:
    with pytest.raises(CatalogError, match=words) as refused:
        foreign.read_settings({**GIVEN, **change}, tmp_path)
    assert refused.value.code == "E_BAD_OPTION" and "secret@" not in str(refused.value)


def test_the_catalog_keeps_all_but_the_password(tmp_path: Path) -> None:
    topic = foreign.at(foreign.read_settings({**GIVEN, "username": "u", "password": "hidden"}, tmp_path)[0], {0: 7, 1: 0})
    key = Column(MESSAGE_ID, ColumnType("BIGINT"))
    ids = iter(range(100, 200))
    (table,) = changes.create_foreign(Catalog([Database(1, "d")]), lambda: next(ids), "d", "o", COLUMNS, key, topic.option()).puts
    assert isinstance(table, Table) and table.foreign and table.key_column == MESSAGE_ID
    assert foreign.of(table) == topic and "hidden" not in str(table)
    assert [c.name for c in table.columns] == ["ts", MESSAGE_ID, "v", "n", "b", "s", "x", "d"]
    shown = foreign.shown(table, topic)
    assert "`topic`" not in shown and "topic = 'orders'" in shown and MESSAGE_ID not in shown
    for columns, code in ((COLUMNS[1:], "E_NO_TIME_COLUMN"), ((COLUMNS[0], key), "E_RESERVED_NAME")):
        with pytest.raises(CatalogError) as refused:
            changes.create_foreign(Catalog([Database(1, "d")]), lambda: next(ids), "d", "o", columns, key, topic.option())
        assert refused.value.code == code


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
    ["nonsense", "[1]", "3", "", '{"v":"abc"}', '{"n":5000000000}', '{"n":1.5}', '{"b":1}', '{"ts":"noon"}', '{"x":"zz"}', '{"d":"x"}'],
)
def test_messages_that_are_no_rows(text: str) -> None:
    with pytest.raises(SchemaError) as refused:
        json_of().decode([b"{}", text.encode(), b"{}"])
    assert refused.value.code == "E_MALFORMED"


_VALUES = some.fixed_dictionaries(
    {
        "ts": some.integers(-(10**12), 4 * 10**12), "v": some.none() | some.floats(allow_nan=False, allow_infinity=False),
        "n": some.none() | some.integers(-(2**31), 2**31 - 1), "b": some.none() | some.booleans(),
        "s": some.none() | some.text(max_size=8), "x": some.none() | some.binary(max_size=8),
        "d": some.none() | some.decimals(-9999, 9999, places=2),
    }
)  # fmt: skip


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={c.name: c.type.polars() for c in COLUMNS})


@given(some.lists(_VALUES, min_size=1, max_size=5))
def test_rows_as_json_and_back(rows: list[dict[str, Any]]) -> None:
    frame = frame_of(rows)
    values = json_of().encode(frame, "")
    assert len(values) == frame.height
    assert json_of().decode(values).equals(frame)


class Shelf(Registry):
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
    ("ts", {"type": "long", "logicalType": "timestamp-millis"}), ("v", ["null", "double"]), ("n", ["null", "int"]),
    ("b", ["null", "boolean"]), ("s", ["null", "string"]), ("x", ["null", "bytes"]),
    ("d", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]),
)  # fmt: skip


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

    full = {"ts": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "v": 1.5, "n": None, "b": None, "s": "y", "x": None, "d": None}
    frame = messages.decode([written(1, old, {"ts": T0, "n": 3}), written(2, FULL, full)])
    assert frame["ts"].to_list() == [T0, T0] and frame["n"].to_list() == [3, None] and frame["s"].to_list() == [None, "y"]
    text = record(("ts", "long"), ("n", "string"))
    worded = Messages("avro", COLUMNS, "ms", Shelf(_1=text))
    for reader, value in ((messages, b"{}"), (messages, b"\x00\x00\x00\x00\x02\xff"), (worded, written(1, text, {"ts": 1, "n": "x"}))):
        with pytest.raises(SchemaError) as refused:
            reader.decode([value])
        assert refused.value.code == "E_MALFORMED"
    with pytest.raises(SchemaError, match="no field v"):
        Messages("avro", COLUMNS, "ms", Shelf(_1=old)).encode(frame_of([{**full, "ts": T0}]), "orders-value")


def test_json_as_confluents_json_schema_serializers_frame_it() -> None:
    n = Column("n", ColumnType("INT"))
    framed = struct.pack(">bI", 0, 7) + b'{"n": 3}'
    assert json_of(n).decode([framed, b'{"n": 4}'])["n"].to_list() == [3, 4]
