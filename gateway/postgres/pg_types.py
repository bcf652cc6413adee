"""PostgreSQL's types, and which of them Arrow's types and ours are. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.types import ColumnType


@dataclass(frozen=True)
class PgType:
    """Its oid, its size in bytes (-1: it varies), its oid as an array, and the letter of its
    category.
    """

    name: str
    oid: int
    size: int
    array: int = 0
    category: str = "U"


BOOL = PgType("bool", 16, 1, 1000, "B")
BYTEA = PgType("bytea", 17, -1, 1001)
INT8 = PgType("int8", 20, 8, 1016, "N")
INT2 = PgType("int2", 21, 2, 1005, "N")
INT4 = PgType("int4", 23, 4, 1007, "N")
TEXT = PgType("text", 25, -1, 1009, "S")
FLOAT4 = PgType("float4", 700, 4, 1021, "N")
FLOAT8 = PgType("float8", 701, 8, 1022, "N")
DATE = PgType("date", 1082, 4, 1182, "D")
TIMESTAMPTZ = PgType("timestamptz", 1184, 8, 1185, "D")
NUMERIC = PgType("numeric", 1700, -1, 1231, "N")
#: types that values come in and go out as
SERVED = (BOOL, BYTEA, INT8, INT2, INT4, TEXT, FLOAT4, FLOAT8, DATE, TIMESTAMPTZ, NUMERIC)
#: types that clients may name for values, or look for
_OTHERS = (
    PgType("char", 18, 1, 1002, "Z"),
    PgType("name", 19, 64, 1003, "S"),
    PgType("oid", 26, 4, 1028, "N"),
    PgType("json", 114, -1, 199),
    PgType("unknown", 705, -2, 0, "X"),
    PgType("bpchar", 1042, -1, 1014, "S"),
    PgType("varchar", 1043, -1, 1015, "S"),
    PgType("time", 1083, 8, 1183, "D"),
    PgType("timestamp", 1114, 8, 1115, "D"),
    PgType("uuid", 2950, 16, 2951),
    PgType("jsonb", 3802, -1, 3807),
)
ALL_TYPES = (*SERVED, *_OTHERS)
_ARRAYS = {
    t.oid: PgType(f"_{t.name}", t.array, -1, 0, "A") for t in (BOOL, INT2, INT4, INT8, FLOAT8, TEXT)
}
ARRAY_TYPES = tuple(_ARRAYS.values())
_FIXED: dict[pa.DataType, PgType] = {
    pa.bool_(): BOOL,
    pa.int8(): INT2,
    pa.int16(): INT2,
    pa.int32(): INT4,
    pa.int64(): INT8,
    pa.uint8(): INT2,
    pa.uint16(): INT4,
    pa.uint32(): INT8,
    pa.uint64(): NUMERIC,
    pa.float32(): FLOAT4,
    pa.float64(): FLOAT8,
}


def pg_type_of(kind: pa.DataType) -> PgType:
    """Return what values of an Arrow type come as; text where nothing fits better."""
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    if pa.types.is_timestamp(kind):
        return TIMESTAMPTZ
    if pa.types.is_date(kind):
        return DATE
    if pa.types.is_decimal(kind):
        return NUMERIC
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return BYTEA
    if pa.types.is_list(kind):
        return _ARRAYS.get(pg_type_of(kind.value_type).oid, TEXT)
    return TEXT


def pg_type_of_column(kind: ColumnType) -> PgType:
    """Return what values of a column of a table come as."""
    return pg_type_of(kind.arrow())


def pg_type_named(text: str) -> PgType:
    """Return what values of a type come as, by the name that the store gives it."""
    base, _, rest = text.partition("(")
    sizes = [int(x) for x in rest.rstrip(") ").split(",") if x.strip().isdigit()]
    if base == "DECIMAL":
        return NUMERIC
    try:
        return pg_type_of_column(ColumnType(base, *sizes[:1]))
    except KeyError:
        return TEXT
