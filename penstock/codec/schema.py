"""The wire format of one table version's rows: its Avro schema, the Arrow types that go with
it, and where each column of the newest version is found in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa

from penstock.catalog.model import Table, TableVersion
from penstock.codec.framing import frame_of
from penstock.codec.record_cutter import ID, MAGIC, META
from penstock.sql.plan import Column
from penstock.types import ColumnType

#: names that rows have on the wire besides their columns; no user column may be called so
RESERVED = ("tbname", "op")
#: where a row's operation is on the wire
OP = 2
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TIMESTAMP = {"ms": "timestamp-millis", "us": "timestamp-micros", "ns": "timestamp-nanos"}
#: kinds of columns that pyruhvro cannot do
_SLOW = ("VARBINARY", "DECIMAL")
_PLAIN = {
    "BOOL": "boolean",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "NCHAR": "string",
    "JSON": "string",
    "VARBINARY": "bytes",
    "BIGINT": "long",
    "INT UNSIGNED": "long",
}
#: kinds that Arrow has on the wire as they are; all other numbers are longs there
_AS_THEY_ARE = ("BOOL", "FLOAT", "DOUBLE", "DECIMAL", "VARBINARY")
_META_TYPES = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.bool_(), pa.string())

#: a newest column, its place in the wire's rows (None where they do not hold it) and its type
Source = tuple[Column, int | None, pa.DataType]


class WireLayout:
    """The wire of one version of a table, as each engine wants to be told of it."""

    def __init__(self, version: TableVersion, precision: str, name: str) -> None:
        self.schema_id = version.schema_id
        self.frame = frame_of(version.schema_id)
        self.columns = (*version.columns, *version.tags)
        #: pyruhvro can do all of its columns
        self.fast = not any(c.type.kind in _SLOW for c in self.columns)
        with_frame = _with_long_integers(avro_schema(version, precision, name))
        #: pyruhvro's schema: the frame is two fields in front
        self.framed_json = json.dumps(with_frame)
        #: fastavro's schema of a record without its frame
        self.reference: Any = fastavro.parse_schema(
            {**with_frame, "fields": with_frame["fields"][2:]}
        )
        self.row_type = _row_type(self.columns)
        #: of a batch of records without their frames
        self.batch_schema = pa.schema(
            [
                ("rows", pa.list_(self.row_type)),
                ("writes", pa.list_(pa.int64())),
                *zip(META, _META_TYPES, strict=True),
            ]
        )
        #: what each field of a row is called in a frame, in lower case
        self.order = [
            "tbname",
            self.columns[0].name.lower(),
            "_op",
            *(c.name.lower() for c in self.columns[1:]),
        ]


def wire_name(name: str) -> str:
    """Return the field name of column *name*: itself where Avro allows it, else its UTF-8 bytes in
    hex behind `x_`.
    """
    return name if _AVRO_NAME.match(name) else "x_" + name.encode().hex()


def avro_schema(version: TableVersion, precision: str, name: str = "table") -> dict[str, Any]:
    """Return the Avro schema of the table *name*'s RowBatch in *version*, as the schema registry
    view serves it.
    """
    time, *others = version.columns
    fields: list[dict[str, Any]] = [
        {"name": "tbname", "type": "string"},
        {"name": wire_name(time.name), "type": _avro_type(time.type, precision)},
        {"name": "op", "type": "int", "default": 0, "doc": "0 upsert, 1 delete, 2 merge, 3 clear"},
    ]
    for column in (*others, *version.tags):
        extra = {} if wire_name(column.name) == column.name else {"doc": column.name}
        fields.append(
            {
                "name": wire_name(column.name),
                "type": ["null", _avro_type(column.type, precision)],
                "default": None,
                **extra,
            }
        )
    return {
        "type": "record",
        "name": "RowBatch",
        "namespace": "penstock",
        "doc": f"Rows of {name}",
        "fields": [
            {
                "name": "rows",
                "type": {
                    "type": "array",
                    "items": {"type": "record", "name": "Row", "fields": fields},
                },
            },
            {"name": "writes", "type": {"type": "array", "items": "int"}, "default": []},
            {"name": "producer", "type": ["null", "string"], "default": None},
            {"name": "from_offset", "type": "long", "default": -1},
            {"name": "offset", "type": "long", "default": -1},
            {"name": "ordinal", "type": "int", "default": 0},
            {"name": "last", "type": "boolean", "default": True},
            {"name": "trace", "type": ["null", "string"], "default": None},
        ],
    }


def sources_of(table: Table, version: TableVersion) -> list[Source]:
    """Find each newest column and tag of *table* in *version*'s wire rows. A column that was
    dropped, or not made yet, has no place.
    """
    later = table.versions[table.versions.index(version) :]
    wire = {c.name.lower(): i for i, c in enumerate((*version.columns, *version.tags))}
    sources: list[Source] = []
    for column in (*table.columns, *table.tags):
        name = _name_in_first(column.name.lower(), later)
        kind = pa.int64() if column.type.kind == "TIMESTAMP" else column.type.arrow()
        sources.append((column, None if name is None else _place(wire[name]), kind))
    return sources


def _name_in_first(newest: str, versions: Sequence[TableVersion]) -> str | None:
    """Follow the column called *newest* in the last of *versions* back to its name in the first."""
    name: str | None = newest
    for before, after in zip(reversed(versions[:-1]), reversed(versions), strict=False):
        old_names = {new.lower(): old.lower() for old, new in after.renamed}
        name = old_names.get(name or "", name)
        if name not in {c.name.lower() for c in (*before.columns, *before.tags)}:
            name = None
    return name


def _place(index: int) -> int:
    """Return where the *index*-th column is on the wire: tbname, time, op, the rest."""
    return 1 if index == 0 else index + 2


def _avro_type(kind: ColumnType, precision: str) -> Any:
    if kind.kind == "TIMESTAMP":
        return {"type": "long", "logicalType": _TIMESTAMP[precision]}
    if kind.kind == "BIGINT UNSIGNED":
        return {"type": "long", "logicalType": "penstock-uint64"}
    if kind.kind == "DECIMAL":
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    return _PLAIN.get(kind.kind, "int")


def _with_long_integers(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of the same bytes with every integer a plain long (the codec checks ranges
    itself, exactly) and the frame as two fields in front.
    """
    body: dict[str, Any] = _as_longs(schema)
    return {
        **body,
        "fields": [
            {"name": MAGIC, "type": "boolean"},
            {"name": ID, "type": "float"},
            *body["fields"],
        ],
    }


def _as_longs(kind: Any) -> Any:
    if isinstance(kind, list):
        return [_as_longs(k) for k in kind]
    if not isinstance(kind, dict):
        return "long" if kind == "int" else kind
    if kind["type"] == "array":
        return {**kind, "items": _as_longs(kind["items"])}
    if kind["type"] == "record":
        fields = [{"name": f["name"], "type": _as_longs(f["type"])} for f in kind["fields"]]
        return {**kind, "fields": fields}
    return "long" if kind["type"] == "long" else kind


def _row_type(columns: Sequence[Column]) -> pa.StructType:
    time, *others = columns
    return pa.struct(
        [
            pa.field("tbname", pa.string(), nullable=False),
            pa.field(wire_name(time.name), pa.int64(), nullable=False),
            pa.field("op", pa.int64(), nullable=False),
            *(pa.field(wire_name(c.name), _arrow_type(c.type)) for c in others),
        ]
    )


def _arrow_type(kind: ColumnType) -> pa.DataType:
    return kind.arrow() if kind.text or kind.kind in _AS_THEY_ARE else pa.int64()
