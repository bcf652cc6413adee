"""Protobuf of another Kafka: messages by the schema of a registry, and what is refused."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import RemoteError, SchemaError
from penstock.foreign import SchemaRegistry
from penstock.foreign.descriptors import Descriptors
from penstock.foreign.protobuf import ProtobufMessages
from penstock.protobuf import bytes_field, number_field, varint_bytes
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.answering import answering

#: 2026-01-01
T0 = 1_767_225_600_000
_KINDS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "sfixed32": 15,
    "sint64": 18,
}


def field(name: str, number: int, kind: str, label: int = 1, oneof: bool = False) -> bytes:
    """A FieldDescriptorProto; a kind with a dot is a message, one with a star an enum."""
    made = bytes_field(1, name.encode()) + number_field(3, number) + number_field(4, label)
    if kind.startswith("*"):
        made += number_field(5, 14) + bytes_field(6, kind[1:].encode())
    elif "." in kind:
        made += number_field(5, 11) + bytes_field(6, kind.encode())
    else:
        made += number_field(5, _KINDS[kind])
    return made + (b"\x48\x00" if oneof else b"")


def message(name: str, *parts: bytes, nested: tuple[bytes, ...] = (), entry: bool = False) -> bytes:
    made = bytes_field(1, name.encode()) + b"".join(bytes_field(2, p) for p in parts)
    made += b"".join(bytes_field(3, n) for n in nested)
    return made + (bytes_field(7, number_field(7, 1)) if entry else b"")


def enum(name: str, **values: int) -> bytes:
    made = bytes_field(1, name.encode())
    for word, number in values.items():
        made += bytes_field(2, bytes_field(1, word.encode()) + number_field(2, number))
    return made


def file(*messages: bytes, enums: tuple[bytes, ...] = (), syntax: str = "proto3") -> bytes:
    made = bytes_field(2, b"shop") + b"".join(bytes_field(4, m) for m in messages)
    made += b"".join(bytes_field(5, e) for e in enums)
    return made + bytes_field(12, syntax.encode())


ORDER = message(
    "Order",
    field("at", 1, ".google.protobuf.Timestamp"),
    field("id", 2, "int64"),
    field("price", 3, "double"),
    field("who", 4, "string", oneof=True),
    field("state", 5, "*.shop.State"),
    field("step", 6, "*.shop.State"),
    field("sizes", 7, "int32", label=3),
    field("to", 8, ".shop.Order.Address"),
    field("notes", 9, ".shop.Order.NotesEntry", label=3),
    field("low", 10, "sint64"),
    field("data", 11, "bytes"),
    field("paid", 12, "bool"),
    field("total", 13, ".confluent.type.Decimal"),
    field("maybe", 14, ".google.protobuf.Int64Value"),
    field("half", 15, "sfixed32"),
    nested=(
        message("Address", field("town", 1, "string"), field("inner", 2, ".shop.Order.Address")),
        message("NotesEntry", field("key", 1, "string"), field("value", 2, "int32"), entry=True),
    ),
)
FILE = file(message("First"), ORDER, enums=(enum("State", NEW=0, SENT=1),))
COLUMNS = (
    Column("at", ColumnType("TIMESTAMP")),
    Column("id", ColumnType("BIGINT")),
    Column("price", ColumnType("DOUBLE")),
    Column("who", ColumnType("VARCHAR", 64)),
    Column("state", ColumnType("VARCHAR", 64)),
    Column("step", ColumnType("INT")),
    Column("sizes", ColumnType("VARCHAR", 64)),
    Column("to", ColumnType("VARCHAR", 64)),
    Column("notes", ColumnType("VARCHAR", 64)),
    Column("low", ColumnType("INT")),
    Column("data", ColumnType("VARBINARY", 8)),
    Column("paid", ColumnType("BOOL")),
    Column("total", ColumnType("DECIMAL", 0, 9, 2)),
    Column("maybe", ColumnType("BIGINT")),
    Column("half", ColumnType("INT")),
    Column("nowhere", ColumnType("INT")),
)


class Shelf(SchemaRegistry):
    """A registry that has these files already."""

    def __init__(self, *files: bytes) -> None:
        super().__init__("http://registry.invalid")
        for number, data in enumerate(files):
            self._descriptors[number] = Descriptors()
            self._descriptors[number].add(data)


def framed(body: bytes, indexes: bytes = b"\x02\x02", schema_id: int = 0) -> bytes:
    """Behind the id of a schema, and by default the index of its second message."""
    return struct.pack(">bI", 0, schema_id) + indexes + body


def read(*values: bytes, columns: tuple[Column, ...] = COLUMNS) -> list[dict[str, Any]]:
    return ProtobufMessages(columns, "ms", Shelf(FILE)).decode(values).to_dicts()


def test_every_kind_of_field() -> None:
    body = b"".join(
        (
            bytes_field(1, number_field(1, T0 // 1000) + number_field(2, 5_000_000)),
            number_field(2, (1 << 64) - 7),
            b"\x19" + struct.pack("<d", 2.5),
            bytes_field(4, "ä".encode()),
            number_field(5, 1),
            number_field(6, 1),
            bytes_field(7, b"\x01\x02" + varint_bytes((1 << 64) - 1)),
            bytes_field(8, bytes_field(1, b"Oslo")),
            bytes_field(9, bytes_field(1, b"a") + number_field(2, 1)),
            bytes_field(9, bytes_field(1, b"b")),
            number_field(10, 3),
            bytes_field(11, b"\0\xff"),
            number_field(12, 1),
            bytes_field(13, bytes_field(1, (1250).to_bytes(2, "big")) + number_field(3, 2)),
            b"\x72\x00",
            b"\x7d" + struct.pack("<i", -9),
            number_field(99, 1),
        )
    )
    (row,) = read(framed(body))
    assert row.pop("total") == Decimal("12.50")
    assert row == {
        "at": T0 + 5,
        "id": -7,
        "price": 2.5,
        "who": "ä",
        "state": "SENT",
        "step": 1,
        "sizes": "[1,2,-1]",
        "to": '{"town":"Oslo"}',
        "notes": '{"a":1,"b":0}',
        "low": -2,
        "data": b"\0\xff",
        "paid": True,
        "maybe": 0,
        "half": -9,
        "nowhere": None,
    }


def test_what_proto3_leaves_out_has_its_default_and_what_says_nothing_is_null() -> None:
    (row,) = read(framed(b""))
    assert (row["id"], row["price"], row["state"], row["step"]) == (0, 0.0, "NEW", 0)
    assert (row["data"], row["paid"], row["sizes"]) == (b"", False, "[]")
    assert [row[n] for n in ("at", "who", "to", "total", "maybe")] == [None] * 5
    old = file(message("Old", field("n", 1, "int32")), syntax="proto2")
    columns = (Column("n", ColumnType("INT")),)
    found = ProtobufMessages(columns, "ms", Shelf(old)).decode([framed(b"", b"\0")])
    assert found["n"].to_list() == [None]


def test_the_indexes_say_which_message_it_is() -> None:
    columns = (Column("town", ColumnType("VARCHAR", 9)),)
    (row,) = read(framed(bytes_field(1, b"Rome"), b"\x04\x02\x00"), columns=columns)
    assert row == {"town": "Rome"}
    for indexes in (b"\x02\x04", b"\x04\x02\x04", b"\x02\x01", b"\x01", b"\x80\x01", b""):
        with pytest.raises(SchemaError):
            read(framed(b"", indexes))


def _nested(levels: int) -> bytes:
    body = b""
    for _ in range(levels):
        body = bytes_field(2, body + bytes_field(1, b"x"))
    return body


@pytest.mark.parametrize(
    "body",
    [
        b"\x08",
        b"\x0a\x05ab",
        b"\x10" + b"\xff" * 11,
        bytes_field(2, b"text"),
        bytes_field(4, b"\xff\xfe"),
        number_field(4, 1),
        b"\x0b",
        bytes_field(8, _nested(40)),
        bytes_field(13, bytes_field(1, b"x" * 65)),
        bytes_field(13, bytes_field(1, b"x") + number_field(3, 10**9)),
        b"\x52\x00",
        bytes_field(7, b"\xff"),
    ],
)
def test_messages_that_are_none(body: bytes) -> None:
    with pytest.raises(SchemaError) as refused:
        read(framed(b""), framed(body))
    assert refused.value.code == "E_MALFORMED"


def test_values_that_do_not_fit_their_columns() -> None:
    columns = (Column("id", ColumnType("TINYINT")),)
    with pytest.raises(SchemaError, match="id is no TINYINT"):
        read(framed(number_field(2, 300)), columns=columns)
    with pytest.raises(SchemaError, match="no schema id"):
        read(b"{}")


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A schema of two files, one that is no descriptor, and one that imports itself."""
    base = file(message("Base", field("n", 1, "int32")))
    main = file(message("Main", field("base", 1, ".shop.Base")))
    endless = {"schema": "", "references": [{"name": "e", "subject": "e", "version": "1"}]}

    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    answers: dict[str, Any] = {
        "/schemas/ids/1": {
            "schemaType": "PROTOBUF",
            "schema": encoded(main),
            "references": [{"name": "base.proto", "subject": "a/b", "version": 3}],
        },
        "/subjects/a%2Fb/versions/3": {"schema": encoded(base)},
        "/schemas/ids/2": {"schema": 'syntax = "proto3";'},
        "/schemas/ids/3": {"schema": encoded(b"\x0a\xff")},
        "/schemas/ids/4": endless,
        "/subjects/e/versions/1": endless,
        "/schemas/ids/5": {"schema": "", "references": 7},
    }

    def answer(path: str) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        known = query == "format=serialized" and path in answers
        return (200, answers[path]) if known else (404, {"error_code": 40403})

    with answering(answer) as url:
        made = SchemaRegistry(url)
        yield made
        made.close()


def test_a_schema_comes_from_the_registry_with_its_imports(registry: SchemaRegistry) -> None:
    columns = (Column("base", ColumnType("VARCHAR", 20)),)
    messages = ProtobufMessages(columns, "ms", registry)
    value = framed(bytes_field(1, number_field(1, 5)), b"\0", 1)
    assert messages.decode([value, value])["base"].to_list() == ['{"n":5}'] * 2
    for schema_id in (2, 3, 9):
        for _ in range(2):
            with pytest.raises(SchemaError):
                messages.decode([framed(b"", b"\0", schema_id)])
    with pytest.raises(SchemaError, match="no message of this index"):
        messages.decode([framed(b"", b"\0", 4)])
    with pytest.raises(RemoteError):
        messages.decode([framed(b"", b"\0", 5)])
