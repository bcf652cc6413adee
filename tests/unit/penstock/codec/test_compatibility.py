"""Avro's compatibility: rules by examples, and beside what fastavro reads of what was written."""

from __future__ import annotations

import io
import json
from itertools import chain
from typing import Any

import fastavro
import pytest
from fastavro.read import SchemaResolutionError
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.catalog.model import TableVersion
from penstock.codec import avro_schema
from penstock.codec.compatibility import LEVELS, AvroSchema, check, faults, is_same, parse
from penstock.errors import SchemaError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.nightly import drawn

Schema = Any
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_VALUES = {
    "null": b"",
    "boolean": b"\x01",
    "int": b"\x02",
    "long": b"\x02",
    "float": bytes(4),
    "double": bytes(8),
    "bytes": b"\x02a",
    "string": b"\x02a",
}
_DEFAULTS = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
}


def made(schema: Schema) -> AvroSchema:
    return parse(json.dumps(schema))


def row(*fields: Any, name: str = "Row", **more: Any) -> Schema:
    """A record; a field is its name and type, and a default if it has one."""
    keys = ("name", "type", "default")
    described = [dict(zip(keys, one, strict=False)) for one in fields]
    return {"type": "record", "name": name, "fields": described, **more}


def enum(*symbols: str, **more: Any) -> Schema:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def fixed(size: int, **more: Any) -> Schema:
    return {"type": "fixed", "name": "F", "size": size, **more}


def decimal(scale: int) -> Schema:
    return {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}


CHAIN = {
    "type": "record",
    "name": "Node",
    "fields": [
        {"name": "value", "type": "int"},
        {"name": "next", "type": ["null", "Node"], "default": None},
    ],
}
#: reader, writer and the kind of the only fault
CASES = [
    (row(("a", "long")), row(("a", "int")), ""),
    (row(("a", "int")), row(("a", "long")), "TYPE_MISMATCH at /fields/0/type"),
    (row(("a", "string")), row(("a", "bytes")), ""),
    (row(), row(("a", "int")), ""),
    (row(("a", "int")), row(), "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0"),
    (row(("a", "int", 5)), row(), ""),
    (row(("a", ["null", "int"], None)), row(("a", "int")), ""),
    (row(("a", ["null", "string"], None)), row(("a", "int")), "MISSING_UNION_BRANCH"),
    (row(("a", "int")), row(("a", ["null", "int"])), "TYPE_MISMATCH"),
    (row(("a", "int")), row(("a", ["int"])), ""),
    (enum("A", "B"), enum("A"), ""),
    (enum("A"), enum("A", "B"), "MISSING_ENUM_SYMBOLS at /symbols: B"),
    (enum("A", default="A"), enum("A", "B"), ""),
    (fixed(2), fixed(2), ""),
    (fixed(2), fixed(3), "FIXED_SIZE_MISMATCH"),
    (row(name="x.Row"), row(name="y.Row"), ""),
    (row(name="Other"), row(), "NAME_MISMATCH"),
    (row(name="Other", aliases=["Row"]), row(), ""),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, ""),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "null"}, "TYPE_MISMATCH"),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, "TYPE_MISMATCH"),
    (decimal(2), decimal(2), ""),
    (decimal(2), decimal(3), "TYPE_MISMATCH"),
    (decimal(2), "bytes", ""),
    (CHAIN, CHAIN, ""),
    ("int", "string", "TYPE_MISMATCH at /"),
]


@pytest.mark.parametrize(("reader", "writer", "kind"), CASES)
def test_a_schema_reads_another(reader: Schema, writer: Schema, kind: str) -> None:
    found = faults(made(reader), made(writer))
    if not kind:
        assert found == []
    else:
        (only,) = found
        assert only.startswith(kind)


def test_a_field_is_found_by_the_readers_alias() -> None:
    reader = row(("b", "int"))
    reader["fields"][0]["aliases"] = ["a"]
    assert faults(made(reader), made(row(("a", "int")))) == []


def test_a_type_that_contains_itself_is_compared_once() -> None:
    other = json.loads(json.dumps(CHAIN))
    other["fields"][0]["type"] = "string"
    found = faults(made(CHAIN), made(other))
    assert [one.partition(":")[0] for one in found][:1] == ["TYPE_MISMATCH at /fields/0/type"]


@pytest.mark.parametrize(
    ("level", "versions", "fits"),
    [
        ("NONE", ["string"], True),
        ("BACKWARD", ["int"], True),
        ("BACKWARD", ["double"], False),
        ("FORWARD", ["double"], True),
        ("FORWARD", ["int"], False),
        ("FULL", ["long"], True),
        ("FULL", ["int"], False),
        ("BACKWARD", ["string", "int"], True),
        ("BACKWARD_TRANSITIVE", ["string", "int"], False),
        ("FORWARD_TRANSITIVE", ["string", "double"], False),
        ("FULL_TRANSITIVE", ["long", "long"], True),
        ("FULL", [], True),
    ],
)
def test_levels(level: str, versions: list[str], fits: bool) -> None:
    new = made(row(("a", "long")))
    earlier = [made(row(("a", kind))) for kind in versions]
    assert (check(level, new, earlier) == []) is fits
    assert level in LEVELS


def test_spelling_does_not_count_and_defaults_do() -> None:
    plain = made({"type": "record", "name": "a.R", "fields": [{"name": "x", "type": "int"}]})
    spelled = {"name": "R", "namespace": "a", "type": "record", "doc": "said"}
    fields = [{"type": {"type": "int"}, "name": "x", "doc": "said"}]
    assert is_same(plain, made({**spelled, "fields": fields}))
    assert not is_same(plain, made({**spelled, "fields": [{**fields[0], "default": 1}]}))
    assert not is_same(plain, made({**spelled, "namespace": "b", "fields": fields}))


def test_a_tables_versions_are_backward_compatible() -> None:
    columns = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")))
    first, more = (
        made(avro_schema(TableVersion(number, columns + added), "ms", "m"))
        for number, added in ((100, ()), (101, (Column("n", ColumnType("INT")),)))
    )
    assert is_same(first, made(avro_schema(TableVersion(100, columns), "ms", "other")))
    assert check("BACKWARD", more, [first]) == []
    assert check("BACKWARD", first, [more]) == []
    assert not is_same(first, more)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "5",
        "null",
        '"nothing"',
        '{"type": "record"}',
        '{"type": "record", "name": "r", "fields": [{"name": 5, "type": "int"}]}',
        '{"type": "record", "name": "r", "fields": [{"name": ["a"], "type": "int"}]}',
        '{"type": "record", "name": "r", "aliases": 5, "fields": []}',
        '{"type": "enum", "name": "e", "symbols": "A", "aliases": [{}]}',
        '{"__fastavro_parsed": true, "__named_schemas": {}, "type": "nothing"}',
        '[{"__fastavro_parsed": true, "__named_schemas": {"x": 5}, "type": "nothing"}]',
        '{"type": "array", "items": ' * 100 + '"int"' + "}" * 100,
        "[" * 100_000,
        '"' + "x" * (1 << 20) + '"',
    ],
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError) as wrong:
        parse(text)
    assert wrong.value.code == "E_SCHEMA"


# ---------------------------------------------------------------- beside fastavro


@some.composite
def types(draw: Any, path: str, depth: int) -> Schema:
    """Any type; named ones are called by where they are, so that two schemas share names."""
    kinds = ["primitive", "enum", "fixed"]
    kind = draw(some.sampled_from([*kinds, "array", "map", "record", "union"] if depth else kinds))
    if kind == "primitive":
        return draw(some.sampled_from(_PRIMITIVES))
    if kind == "array":
        return {"type": "array", "items": draw(types(path + "i", depth - 1))}
    if kind == "map":
        return {"type": "map", "values": draw(types(path + "v", depth - 1))}
    if kind == "union":
        return draw(unions(path, depth - 1))
    return draw(named(kind, path, depth))


@some.composite
def named(draw: Any, kind: str, path: str, depth: int) -> Schema:
    name = f"{kind}_{path}"
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": draw(some.integers(1, 2))}
    if kind == "enum":
        symbols = draw(some.lists(some.sampled_from("ABC"), min_size=1, max_size=3, unique=True))
        default = {"default": symbols[0]} if draw(some.booleans()) else {}
        return {"type": "enum", "name": name, "symbols": symbols, **default}
    fields = []
    for field in draw(some.lists(some.sampled_from("abc"), max_size=3, unique=True)):
        kind_of_field = draw(types(f"{path}_{field}", depth - 1))
        default = {"default": default_of(kind_of_field)} if draw(some.booleans()) else {}
        fields.append({"name": field, "type": kind_of_field, **default})
    return {"type": "record", "name": name, "fields": fields}


@some.composite
def unions(draw: Any, path: str, depth: int) -> Schema:
    """A union has one branch of each kind, and no union."""
    branches = draw(some.lists(types(path + "u", depth), min_size=1, max_size=3))
    by_kind = {one if isinstance(one, str) else one["type"]: one for one in flat(branches)}
    return list(by_kind.values())


def flat(branches: list[Schema]) -> list[Schema]:
    return list(chain(*(one if isinstance(one, list) else [one] for one in branches)))


def default_of(schema: Schema) -> Any:
    if isinstance(schema, str):
        return _DEFAULTS[schema]
    if isinstance(schema, list):
        return default_of(schema[0])
    kind = schema["type"]
    if kind == "record":
        return {one["name"]: default_of(one["type"]) for one in schema["fields"]}
    simple = {"array": [], "map": {}, "fixed": "\0" * schema.get("size", 0)}
    return schema["symbols"][0] if kind == "enum" else simple[kind]


def written(schema: Schema) -> list[bytes]:
    """Values as bytes, the first being any: together they have each branch and symbol once."""
    if isinstance(schema, str):
        return [_VALUES[schema]]
    if isinstance(schema, list):
        return [
            bytes([place * 2]) + value
            for place, branch in enumerate(schema)
            for value in written(branch)
        ]
    return written_complex(schema)


def written_complex(schema: Schema) -> list[bytes]:
    kind = schema["type"]
    if kind == "enum":
        return [bytes([place * 2]) for place in range(len(schema["symbols"]))]
    if kind == "fixed":
        return [bytes(schema["size"])]
    if kind == "array":
        return [b"\x02" + value + b"\0" for value in written(schema["items"])]
    if kind == "map":
        return [b"\x02\x02k" + value + b"\0" for value in written(schema["values"])]
    return written_rows(schema)


def written_rows(schema: Schema) -> list[bytes]:
    fields = [written(one["type"]) for one in schema["fields"]]
    usual = [values[0] for values in fields]
    varied = [
        b"".join([*usual[:place], value, *usual[place + 1 :]])
        for place, values in enumerate(fields)
        for value in values[1:]
    ]
    return [b"".join(usual), *varied]


def reads_all(reader: Schema, writer: Schema) -> bool:
    try:
        for data in written(writer):
            fastavro.schemaless_reader(io.BytesIO(data), writer, reader)
    except SchemaResolutionError:
        return False
    return True


@given(types("r", 3), types("r", 3))
@settings(max_examples=drawn(300), deadline=None)
def test_faults_are_what_fastavro_cannot_read(reader: Schema, writer: Schema) -> None:
    for one, other in ((reader, writer), (writer, reader), (reader, reader)):
        found = faults(made(one), made(other))
        assert (found == []) == reads_all(one, other), (found, one, other)
