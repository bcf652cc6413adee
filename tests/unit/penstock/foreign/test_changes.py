"""Debezium's messages as versions of rows: what overwrites, what deletes, and what is refused rather
than guessed.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from typing import Any

import fastavro
import polars as pl
import pytest

from penstock.errors import RemoteError, SchemaError
from penstock.foreign import SchemaRegistry
from penstock.foreign.changes import Changes, KeyValue
from penstock.foreign.envelopes import AvroEnvelopes, JsonEnvelopes
from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType

COLUMNS = (
    Column("at", ColumnType("TIMESTAMP")),
    Column("id", ColumnType("BIGINT")),
    Column("name", ColumnType("VARCHAR", 64)),
    Column("price", ColumnType("DECIMAL", 0, 9, 2)),
)
#: 2026-01-01
T0 = 1_767_225_600_000
UNTOUCHED = "__debezium_unavailable_value"


def row(number: int, at: int | None = T0, **more: Any) -> dict[str, Any]:
    return {"id": number, "at": at, "name": f"n{number}", "price": "1.50"} | more


def message(
    op: str,
    after: dict[str, Any] | None = None,
    before: dict[str, Any] | None = None,
    key: Any = None,
) -> KeyValue:
    value = {"before": before, "after": after, "op": op, "source": {"table": "t"}, "ts_ms": T0}
    return None if key is None else json.dumps(key).encode(), json.dumps(value).encode()


def changes(*, fixed_time: bool = False) -> Changes:
    return Changes(JsonEnvelopes(), COLUMNS, "ms", fixed_time=fixed_time)


def versions(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Message, row, operation, time and key of each."""
    return frame.select("_message", "_row", "_op", "at", "id").rows()


def test_rows_are_created_overwritten_and_deleted() -> None:
    frame = changes().decode(
        [
            message("r", row(1)),
            message("c", row(2)),
            message("u", row(1, name="other"), row(1)),
            message("d", before=row(2)),
            (b'{"id":2}', None),
        ]
    )
    assert versions(frame) == [
        (0, 0, UPSERT, T0, 1),
        (1, 0, UPSERT, T0, 2),
        (2, 0, UPSERT, T0, 1),
        (3, 0, DELETE, T0, 2),
    ], "a tombstone without the row's time deletes nothing more"
    assert frame["name"].to_list() == ["n1", "n2", "other", None]
    assert frame["price"].cast(pl.String).to_list() == ["1.50", "1.50", "1.50", None]


def test_a_row_that_moves_is_deleted_where_it_was() -> None:
    frame = changes().decode(
        [message("u", row(1, T0 + 5), row(1)), message("u", row(3, T0), row(2))]
    )
    assert versions(frame) == [
        (0, 0, DELETE, T0, 1),
        (0, 1, UPSERT, T0 + 5, 1),
        (1, 0, DELETE, T0, 2),
        (1, 1, UPSERT, T0, 3),
    ]


def test_the_key_says_where_a_row_was_when_it_has_the_time() -> None:
    key = {"id": 1, "at": T0}
    frame = changes().decode(
        [
            message("u", row(1), key=key),
            message("d", before={"id": 1, "at": 0}, key=key),
            (json.dumps(key).encode(), None),
        ]
    )
    assert versions(frame) == [(0, 0, UPSERT, T0, 1), (1, 0, DELETE, T0, 1), (2, 0, DELETE, T0, 1)]


def test_rows_without_a_time_of_their_own_are_told_apart_by_their_key() -> None:
    def plain(number: int) -> dict[str, Any]:
        return {"id": number, "name": "x", "price": None}

    frame = changes(fixed_time=True).decode(
        [
            message("c", plain(1)),
            message("u", plain(1)),
            message("u", plain(2), plain(1)),
            message("d", before={"id": 2}),
            (b'{"id":7}', None),
            (b'{"schema":null,"payload":{"id":8}}', None),
        ]
    )
    assert versions(frame) == [
        (0, 0, UPSERT, 0, 1),
        (1, 0, UPSERT, 0, 1),
        (2, 0, DELETE, 0, 1),
        (2, 1, UPSERT, 0, 2),
        (3, 0, DELETE, 0, 2),
        (4, 0, DELETE, 0, 7),
        (5, 0, DELETE, 0, 8),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((None, b"nonsense"), "no JSON object of Debezium"),
        ((None, b"[" * 100_000), "no JSON object of Debezium|cannot be read"),
        ((None, b'{"at":1,"id":1}'), "no envelope of Debezium"),
        ((None, b"3"), "no envelope of Debezium"),
        ((None, b"\xff\xfe"), "no JSON object of Debezium"),
        (message("t"), "not followed"),
        (message("x", row(1)), "not followed"),
        (message("c"), "no row after the change"),
        (message("c", row(1, None)), "no at"),
        (message("c", {"at": T0}), "no id"),
        (message("c", row(1, "noon")), "at is no TIMESTAMP"),  # type: ignore[arg-type]
        (message("c", row(1, price="1.555")), "price is no DECIMAL"),
        (message("c", row(2**63)), "id is no BIGINT"),
        (message("c", "{}"), "after is no record"),  # type: ignore[arg-type]
        (message("u", row(1)), "what the row was before"),
        (message("u", row(1), {"id": 1, "at": None}), "what the row was before"),
        (message("d", before={"id": 1, "at": None}), "what the row was before"),
        (message("d", before={"id": 1, "at": 0}), "what the row was before"),
        (message("d"), "what the row was before"),
        (message("u", row(1, T0 + 1, name=UNTOUCHED), row(1, name=UNTOUCHED)), "row that moved"),
        (message("c", row(1), key={"id": 1, "shop": 2}), "told apart by shop"),
        ((None, b'{"schema":{"fields":3},"payload":{"op":"c"}}'), "no JSON object of Debezium"),
    ],
)
def test_what_is_refused(given: KeyValue, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as refused:
        changes().decode([message("c", row(5)), given])
    assert refused.value.code == "E_MALFORMED"


def test_what_says_nothing_is_left_out() -> None:
    frame = changes().decode(
        [
            (None, None),
            (b"Struct{id=1}", None),
            (b"7", None),
            (None, b'{"op":"m","message":{"prefix":"x"}}'),
        ]
    )
    assert frame.height == 0 and frame.columns[:3] == ["_message", "_row", "_op"]


def test_keys_that_a_router_added_and_keys_that_are_text_do_not_count() -> None:
    routed = {"id": 1, "__dbz__physicalTableIdentifier": "t1"}
    text = message("c", row(2))[1]
    frame = changes().decode([message("c", row(1), key=routed), (b"Struct{id=2}", text)])
    assert frame["id"].to_list() == [1, 2]


def test_a_large_value_that_was_not_touched_stays() -> None:
    frame = changes(fixed_time=True).decode(
        [
            message("u", row(1, name=UNTOUCHED)),
            message("u", row(2, name=UNTOUCHED, price=None)),
            message("u", row(3, name=UNTOUCHED), row(3, name="known")),
        ]
    )
    assert frame.select("_op", "id", "name").rows() == [
        (MERGE, 1, None),
        (CLEAR, 2, None),
        (MERGE, 2, None),
        (UPSERT, 3, "known"),
    ]
    cleared = frame.row(1, named=True)
    assert cleared["price"] is not None, "a NULL that came is a value, and overwrites"


SCHEMA = {
    "type": "struct",
    "fields": [
        {
            "field": name,
            "type": "struct",
            "fields": [
                {"field": "id", "type": "int64"},
                {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
                {"field": "name", "type": "string", "optional": True},
                {
                    "field": "price",
                    "type": "bytes",
                    "name": "org.apache.kafka.connect.data.Decimal",
                    "parameters": {"scale": "2", "connect.decimal.precision": "9"},
                },
            ],
        }
        for name in ("before", "after")
    ],
}
KEY_SCHEMA = {"type": "struct", "fields": [{"field": "id", "type": "int64"}]}


def test_the_schema_beside_a_payload_says_what_numbers_and_texts_mean() -> None:
    price = base64.b64encode((1999).to_bytes(2, "big")).decode()
    given = row(1, T0 * 1000 + 7, price=price)
    value = json.dumps({"schema": SCHEMA, "payload": {"op": "c", "before": None, "after": given}})
    key = json.dumps({"schema": KEY_SCHEMA, "payload": {"id": 1}})
    plain = message("c", row(2))
    frame = changes().decode([(key.encode(), value.encode()), plain, (None, value.encode())])
    assert frame["at"].to_list() == [T0, T0, T0]
    assert frame["price"].cast(pl.String).to_list() == ["19.99", "1.50", "19.99"]


VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "at",
            "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
        },
        {"name": "name", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            ],
            "default": None,
        },
    ],
}
ENVELOPE = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Envelope",
        "namespace": "server.shop.orders",
        "fields": [
            {"name": "before", "type": ["null", VALUE], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }
)
KEY = fastavro.parse_schema(
    {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
)


class Shelf(SchemaRegistry):
    """A registry that has these schemas already."""

    def __init__(self, schemas: dict[int, Any]) -> None:
        super().__init__("http://registry.invalid")
        self._schemas = schemas

    def schema(self, schema_id: int) -> Any:
        if schema_id not in self._schemas:
            raise RemoteError("the schema registry does not answer", code="E_REGISTRY")
        return self._schemas[schema_id]


def avro(schema_id: int, schema: Any, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return struct.pack(">bI", 0, schema_id) + out.getvalue()


def avro_changes(*, fixed_time: bool = False) -> Changes:
    shelf = Shelf({1: KEY, 2: ENVELOPE, 3: "string"})
    return Changes(AvroEnvelopes(shelf), COLUMNS, "ms", fixed_time=fixed_time)


def test_avro_envelopes_of_a_registry() -> None:
    def kept(number: int, **more: Any) -> dict[str, Any]:
        return {"id": number, "at": T0 * 1000 + 1, "name": "x", "price": None} | more

    key = avro(1, KEY, {"id": 1})
    frame = avro_changes().decode(
        [
            (key, avro(2, ENVELOPE, {"op": "c", "before": None, "after": kept(1)})),
            (key, avro(2, ENVELOPE, {"op": "u", "before": kept(1), "after": kept(1, name="y")})),
            (key, avro(2, ENVELOPE, {"op": "d", "before": kept(1), "after": None})),
            (key, None),
            (b"text", None),
            (struct.pack(">bI", 0, 3) + b"\x02x", None),
        ]
    )
    assert versions(frame) == [(0, 0, UPSERT, T0, 1), (1, 0, UPSERT, T0, 1), (2, 0, DELETE, T0, 1)]
    assert frame["name"].to_list() == ["x", "y", None]
    assert versions(avro_changes(fixed_time=True).decode([(key, None)])) == [(0, 0, DELETE, 0, 1)]


@pytest.mark.parametrize(
    "value", [b"{}", b"\0\0\0\0\x02", b"\0\0\0\0\x02\xff\xff", b"\0\0\0\0\x03\x02x"]
)
def test_avro_that_is_no_envelope(value: bytes) -> None:
    with pytest.raises(SchemaError) as refused:
        avro_changes().decode([(None, value)])
    assert refused.value.code == "E_MALFORMED"


def test_a_registry_that_is_away_is_no_fault_of_the_message() -> None:
    with pytest.raises(RemoteError):
        avro_changes().decode([(struct.pack(">bI", 0, 9), avro(2, ENVELOPE, {"op": "m"}))])
