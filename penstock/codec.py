"""Rows to Kafka record values and back: the Avro `RowBatch` of a table version, in Confluent framing.

`TableCodec` is the only place that knows how a table's columns look on the wire. pyruhvro (Rust, straight to and from
Arrow) does the work; tables with VARBINARY or DECIMAL columns, which it cannot do, go through fastavro, the reference.
The 5-byte frame costs nothing: to pyruhvro it is a boolean (the zero byte) and a float (the id's four bytes) in front.

A record is used whole or not at all: malformed Avro, a value outside its column's type or an unknown `op` makes it bad,
with a reason, and never raises. Encoding refuses (`SchemaError`) a row that is larger than a record may be.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyruhvro

from penstock.catalog.model import Table, TableVersion
from penstock.errors import SchemaError
from penstock.names import MAX_NAME_BYTES
from penstock.partition import partition_of
from penstock.sql.plan import Column
from penstock.types import ColumnType

#: names that rows have on the wire besides their columns; no user column may be called so
RESERVED = ("tbname", "op")
MAX_RECORD_BYTES = 900_000
_MAGIC, _ID = "penstock_magic", "penstock_id"
_META = ("producer", "from_offset", "offset", "ordinal", "last", "trace")
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TIMESTAMP = {"ms": "timestamp-millis", "us": "timestamp-micros", "ns": "timestamp-nanos"}
_SLOW = ("VARBINARY", "DECIMAL")
_PLAIN = {"BOOL": "boolean", "FLOAT": "float", "DOUBLE": "double", "VARCHAR": "string", "NCHAR": "string", "JSON": "string",
          "VARBINARY": "bytes", "BIGINT": "long", "INT UNSIGNED": "long"}  # fmt: skip
#: most bytes a value of a fixed-size kind takes, its union branch included
_SIZE = {"boolean": 2, "float": 5, "double": 9, "long": 11, "int": 11}

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Decoded:
    """Records of one schema, decoded.

    rows    : `_record` UInt32 (index into the input), `_write` UInt32 (running number of the client write), `_op` Int8,
              `tbname`, then the newest version's columns and tags under their own names, TIMESTAMP as Int64 ticks
    records : one line per good record: `_record`, `rows` UInt32, `producer`, `from_offset`, `offset`, `ordinal`, `last`, `trace`
    bad     : (index, reason) of each record that cannot be used
    """

    rows: pl.DataFrame
    records: pl.DataFrame
    bad: list[tuple[int, str]]


def schema_ids(values: Sequence[bytes | None]) -> _Ints:
    """Schema id of each record value; -1 where there is no Confluent frame."""
    heads = [v[:5] if v is not None and len(v) >= 5 else b"\xff\0\0\0\0" for v in values]
    frames = np.frombuffer(b"".join(heads), dtype=np.uint8).reshape(-1, 5)
    ids = np.ascontiguousarray(frames[:, 1:]).view(">u4").astype(np.int64).reshape(-1)
    return np.where(frames[:, 0] == 0, ids, -1)


def frame_of(schema_id: int) -> bytes:
    """The five bytes in front of an Avro body."""
    return b"\0" + schema_id.to_bytes(4, "big")


def wire_name(name: str) -> str:
    """Field name of column *name*: itself where Avro allows it, else its UTF-8 bytes in hex behind `x_`."""
    return name if _AVRO_NAME.match(name) else "x_" + name.encode().hex()


def _avro_type(kind: ColumnType, precision: str) -> Any:
    if kind.kind == "TIMESTAMP":
        return {"type": "long", "logicalType": _TIMESTAMP[precision]}
    if kind.kind == "BIGINT UNSIGNED":
        return {"type": "long", "logicalType": "penstock-uint64"}
    if kind.kind == "DECIMAL":
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _PLAIN.get(kind.kind, "int")


def avro_schema(version: TableVersion, precision: str, name: str = "table") -> dict[str, Any]:
    """Avro schema of the table *name*'s RowBatch in *version*, as the schema registry view serves it."""
    time, *others = version.columns
    fields: list[dict[str, Any]] = [
        {"name": "tbname", "type": "string"},
        {"name": wire_name(time.name), "type": _avro_type(time.type, precision)},
        {"name": "op", "type": "int", "default": 0, "doc": "0 upsert, 1 delete, 2 merge"},
    ]
    for column in (*others, *version.tags):
        extra = {} if wire_name(column.name) == column.name else {"doc": column.name}
        fields.append({"name": wire_name(column.name), "type": ["null", _avro_type(column.type, precision)], "default": None, **extra})
    return {
        "type": "record", "name": "RowBatch", "namespace": "penstock", "doc": f"Rows of {name}",
        "fields": [
            {"name": "rows", "type": {"type": "array", "items": {"type": "record", "name": "Row", "fields": fields}}},
            {"name": "writes", "type": {"type": "array", "items": "int"}, "default": []},
            {"name": "producer", "type": ["null", "string"], "default": None},
            {"name": "from_offset", "type": "long", "default": -1},
            {"name": "offset", "type": "long", "default": -1},
            {"name": "ordinal", "type": "int", "default": 0},
            {"name": "last", "type": "boolean", "default": True},
            {"name": "trace", "type": ["null", "string"], "default": None},
        ],
    }  # fmt: skip


class TableCodec:
    """Encodes and decodes the records of one version of a table; decoding yields the newest version's columns."""

    def __init__(self, table: Table, schema_id: int | None = None, precision: str | None = None) -> None:
        """
        Args:
            table: the table with all its versions.
            schema_id: which version writes or wrote the records; None: the newest.
            precision: of its database, when it is not the table's own.
        """
        self.table = table
        self.schema_id = table.schema_id if schema_id is None else schema_id
        try:
            self.version = table.version(self.schema_id)
        except KeyError:
            raise SchemaError(f"schema {schema_id} is none of table {table.name}", code="E_UNKNOWN_SCHEMA") from None
        self.schema = avro_schema(self.version, precision or table.precision, table.name)
        self._columns = (*self.version.columns, *self.version.tags)
        self._fast = not any(c.type.kind in _SLOW for c in self._columns)
        self._wire = _internal(self.schema)
        self._wire_json = json.dumps(self._wire)
        self._reference = fastavro.parse_schema({**self._wire, "fields": self._wire["fields"][2:]})
        self._rows_type, self._batch_schema = self._arrow_types()
        self._sources = _sources(table, self.version)

    # ---------------------------------------------------------------- decode

    def decode(self, values: Sequence[bytes | None] | pa.Array | pa.ChunkedArray) -> Decoded:
        """Decode record values of this schema id. What is wrong with a record is told in `bad`; nothing raises."""
        items: list[bytes | None] = values.to_pylist() if isinstance(values, pa.Array | pa.ChunkedArray) else list(values)
        bad: list[tuple[int, str]] = []
        batches: list[tuple[int, pa.RecordBatch]] = []
        self._read(items, 0, batches, bad)
        parts = [self._conform(batch, start, bad) for start, batch in batches]
        rows = pl.concat([p[0] for p in parts]) if parts else self._conform(self._batch_schema.empty_table(), 0, bad)[0]
        records = pl.concat([p[1] for p in parts]) if parts else self._conform(self._batch_schema.empty_table(), 0, bad)[1]
        if len(parts) > 1:
            step = np.concatenate([[0], np.cumsum([p[2] for p in parts])])[:-1]
            shift = np.repeat(step, [p[0].height for p in parts]).astype(np.uint32)
            rows = rows.with_columns(_write=pl.col("_write") + pl.Series(shift))
        if bad:
            bad.sort()
            gone = pl.Series([index for index, _ in bad], dtype=pl.UInt32).implode()
            rows, records = rows.filter(~pl.col("_record").is_in(gone)), records.filter(~pl.col("_record").is_in(gone))
        return Decoded(rows, records, bad)

    def _read(self, items: list[bytes | None], start: int, out: list[tuple[int, pa.RecordBatch]], bad: list[tuple[int, str]]) -> None:
        """Decode *items*, halving them around the ones that cannot be."""
        if not items:
            return
        try:
            out.append((start, self._deserialize(items)))
            return
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # noqa: B036  a panic of pyruhvro is no Exception
            if len(items) == 1:
                bad.append((start, _reason(items[0], self.schema_id, error)))
                return
        middle = len(items) // 2
        self._read(items[:middle], start, out, bad)
        self._read(items[middle:], start + middle, out, bad)

    def _deserialize(self, items: list[bytes | None]) -> pa.RecordBatch:
        if self._fast:
            batch = pyruhvro.deserialize_array(items, self._wire_json)
            if bool(np.any(batch.column(1).to_numpy().view(">u4") != self.schema_id)) or batch.column(0).true_count:
                raise ValueError("another schema id")
            batch.validate(full=True)  # pyruhvro does not check UTF-8
            return batch
        frame = frame_of(self.schema_id)
        records = []
        for item in items:
            if item is None or item[:5] != frame:
                raise ValueError("another schema id")
            records.append(fastavro.schemaless_reader(io.BytesIO(item[5:]), self._reference, None))
        return pa.RecordBatch.from_pylist(records, schema=self._batch_schema)

    def _conform(self, batch: pa.RecordBatch | pa.Table, start: int, bad: list[tuple[int, str]]) -> tuple[pl.DataFrame, pl.DataFrame, int]:
        """(rows, records, number of writes) of *batch* in the newest version's layout; adds to *bad* what does not fit."""
        lists = batch.column("rows")
        lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        counts = np.diff(lists.offsets.to_numpy())
        raw = pl.DataFrame(pa.Table.from_struct_array(lists.flatten()))
        record = np.repeat(np.arange(start, start + len(counts), dtype=np.uint32), counts)
        writes, total, wrong = _write_numbers(batch.column("writes"), counts)
        bad += [(start + int(i), "writes does not add up to the number of rows") for i in wrong]
        failed: list[tuple[str, pl.Series]] = []
        columns = [_cast(raw["op"], pl.Int8(), "op", failed).alias("_op"), raw["tbname"]]
        for column, source in self._sources:
            if source is None:
                columns.append(pl.Series(column.name, [None], dtype=column.type.polars()).new_from_index(0, raw.height))
            else:
                columns.append(_cast_column(raw[wire_name(source.name)], column, failed).alias(column.name))
        size = raw["tbname"].str.len_bytes()
        failed += [("op", ~columns[0].is_between(0, 2)), ("tbname", (size == 0) | (size > MAX_NAME_BYTES))]
        for name, mask in failed:
            if mask.any():
                gone = np.unique(record[mask.fill_null(False).to_numpy()])
                bad += [(int(i), f"value out of range in {name}") for i in gone if int(i) not in {b for b, _ in bad}]
        rows = pl.DataFrame([pl.Series("_record", record), pl.Series("_write", writes), *columns])
        meta = pl.DataFrame([pl.Series(name, batch.column(name)) for name in _META]).with_columns(pl.col("ordinal").cast(pl.Int32))
        index = pl.Series("_record", np.arange(start, start + len(counts), dtype=np.uint32))
        records = pl.DataFrame([index, pl.Series("rows", counts.astype(np.uint32)), *meta.get_columns()])
        return rows, records, total

    # ---------------------------------------------------------------- encode

    def encode(
        self, rows: pl.DataFrame, *, writes: Sequence[int] | _Ints | None = None, producer: str | None = None,
        from_offset: int = -1, offset: int = -1, trace: str | None = None, max_bytes: int = MAX_RECORD_BYTES,
    ) -> list[bytes]:  # fmt: skip
        """Record values for *rows*, which all belong to one partition, split (at ends of writes where it can be) so that
        none is larger than *max_bytes*; ordinals count from 0 and `last` marks the final one.

        Args:
            rows: `tbname`, optionally `_op`, and any of this version's columns and tags; others are NULL.
            writes: row counts of the client writes; None: every record is one write.
            producer, from_offset, offset: position stamp of results.
            max_bytes: largest value; the same rows and limit always split the same way.
        """
        meta = _Meta(producer, from_offset, offset, trace)
        return self._encode(rows, np.array([0, rows.height]), writes, meta, max_bytes)[0] if rows.height else []

    def encode_partitioned(
        self, rows: pl.DataFrame, partitions: int, *, writes: Sequence[int] | _Ints | None = None, producer: str | None = None,
        from_offset: int = -1, offset: int = -1, trace: str | None = None, max_bytes: int = MAX_RECORD_BYTES,
    ) -> list[tuple[int, bytes]]:  # fmt: skip
        """(partition, record value) for *rows* of any table names; ordinals count from 0 in each partition."""
        if not rows.height:
            return []
        meta = _Meta(producer, from_offset, offset, trace)
        numbers = partition_of(rows["tbname"], partitions).to_numpy()
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(partitions + 1))
        if partitions > 1:
            rows = rows[order]
        if writes is not None:
            of_row = np.repeat(np.arange(len(writes)), writes)[order]
            changed = np.flatnonzero((np.diff(of_row) != 0) | (np.diff(numbers[order]) != 0)) + 1
            writes = np.diff(np.concatenate([[0], changed, [rows.height]]))
        values, owner = self._encode(rows, ends, writes, meta, max_bytes)
        return list(zip(owner, values, strict=True))

    def _encode(
        self, rows: pl.DataFrame, ends: _Ints, writes: Sequence[int] | _Ints | None, meta: _Meta, max_bytes: int
    ) -> tuple[list[bytes], list[int]]:
        """Values of each stretch ends[i]..ends[i+1] of *rows*, and the stretch each value is of."""
        struct, size = self._struct(rows)
        write_ends = None if writes is None else np.cumsum(np.asarray(writes, dtype=np.int64))
        if write_ends is not None and (len(write_ends) == 0 or write_ends[-1] != rows.height):
            raise SchemaError("writes does not add up to the number of rows")
        room = max_bytes - 96 - len((meta.producer or "").encode()) - len((meta.trace or "").encode())
        cuts: list[int] = []
        owner: list[int] = []
        ordinals: list[int] = []
        last: list[bool] = []
        for i, (low, high) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
            if low == high:
                continue
            pieces = _cut(size, int(low), int(high), write_ends, room)
            cuts += pieces
            owner += [i] * len(pieces)
            ordinals += range(len(pieces))
            last += [False] * (len(pieces) - 1) + [True]
        bounds = np.array([*cuts, rows.height], dtype=np.int32)
        n = len(cuts)
        arrays = [
            pa.array(np.zeros(n, dtype=bool)),
            pa.array(np.full(n, self.schema_id, dtype=">u4").view("<f4")),
            pa.ListArray.from_arrays(pa.array(bounds), struct),
            _writes_array(bounds, write_ends),
            pa.array([meta.producer] * n, pa.string()),
            pa.array(np.full(n, meta.from_offset, dtype=np.int64)),
            pa.array(np.full(n, meta.offset, dtype=np.int64)),
            pa.array(ordinals, pa.int64()),
            pa.array(last, pa.bool_()),
            pa.array([meta.trace] * n, pa.string()),
        ]
        names = [_MAGIC, _ID, "rows", "writes", *_META]
        return self._serialize(pa.RecordBatch.from_arrays(arrays, names)), owner

    def _serialize(self, batch: pa.RecordBatch) -> list[bytes]:
        if self._fast:
            try:
                chunks = pyruhvro.serialize_record_batch(batch, self._wire_json, 1)
            except (KeyboardInterrupt, SystemExit, MemoryError):
                raise
            except BaseException as error:  # noqa: B036  a panic of pyruhvro is no Exception
                raise SchemaError(f"rows do not fit table {self.table.name}", detail=str(error)) from None
            return [value for chunk in chunks for value in chunk.to_pylist()]
        out, frame = [], frame_of(self.schema_id)
        for record in batch.drop_columns([_MAGIC, _ID]).to_pylist():
            buffer = io.BytesIO()
            buffer.write(frame)
            fastavro.schemaless_writer(buffer, self._reference, record)
            out.append(buffer.getvalue())
        return out

    def _struct(self, rows: pl.DataFrame) -> tuple[pa.StructArray, pl.Series]:
        """The rows as the wire's struct, and an upper bound of each row's size."""
        known = {name.lower(): name for name in rows.columns}
        fields, fixed, size = [], 8, pl.Series([0], dtype=pl.Int64)
        for field, column in zip(self._rows_type, (None, self.version.columns[0], None, *self._columns[1:]), strict=True):
            name = known.get("_op" if column is None and field.name == "op" else (column.name if column else "tbname").lower())
            if name is None:
                fields.append(pa.array(np.zeros(rows.height, dtype=np.int64)) if column is None else pa.nulls(rows.height, field.type))
                fixed += 1
                continue
            series = rows[name]
            if field.type in (pa.string(), pa.binary()):
                size = size + (series.str.len_bytes() if field.type == pa.string() else series.bin.size()).fill_null(0).cast(pl.Int64)
                fixed += 6
            else:
                fixed += 22 if pa.types.is_decimal(field.type) else 11
            fields.append(_to_wire(series, field.type))
        if any(fields[i].null_count for i in (0, 1)):
            raise SchemaError(f"a row of table {self.table.name} has no table name or no time", code="E_NULL_TIME")
        size = size + fixed
        return pa.StructArray.from_arrays(fields, fields=list(self._rows_type)), size if len(size) == rows.height else size.new_from_index(0, rows.height)

    def _arrow_types(self) -> tuple[pa.StructType, pa.Schema]:
        def wire(column: Column) -> pa.DataType:
            kind = column.type.kind
            if kind in ("BOOL", "FLOAT", "DOUBLE", "DECIMAL") or column.type.text or kind == "VARBINARY":
                return column.type.arrow()
            return pa.int64()

        time, *others = self._columns
        row = pa.struct(
            [
                pa.field("tbname", pa.string(), nullable=False), pa.field(wire_name(time.name), pa.int64(), nullable=False),
                pa.field("op", pa.int64(), nullable=False), *(pa.field(wire_name(c.name), wire(c)) for c in others),
            ]
        )  # fmt: skip
        kinds = dict(zip(_META, (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.bool_(), pa.string()), strict=True))
        schema = pa.schema([("rows", pa.list_(row)), ("writes", pa.list_(pa.int64())), *kinds.items()])
        return row, schema


@dataclass(frozen=True)
class _Meta:
    producer: str | None
    from_offset: int
    offset: int
    trace: str | None


def _internal(schema: dict[str, Any]) -> dict[str, Any]:
    """The same bytes with every integer a plain long (ranges are checked here, exactly) and the frame as two fields."""

    def plain(kind: Any) -> Any:
        if isinstance(kind, list):
            return [plain(k) for k in kind]
        if isinstance(kind, dict):
            if kind["type"] == "array":
                return {**kind, "items": plain(kind["items"])}
            if kind["type"] == "record":
                return {**kind, "fields": [{"name": f["name"], "type": plain(f["type"])} for f in kind["fields"]]}
            return "long" if kind["type"] == "long" else kind
        return "long" if kind == "int" else kind

    body: dict[str, Any] = plain(schema)
    return {**body, "fields": [{"name": _MAGIC, "type": "boolean"}, {"name": _ID, "type": "float"}, *body["fields"]]}


def _sources(table: Table, version: TableVersion) -> list[tuple[Column, Column | None]]:
    """For each newest column or tag, the column of *version* that holds its values: none when it was dropped in between."""
    later = table.versions[table.versions.index(version) :]
    pairs: list[tuple[Column, Column | None]] = []
    for part in ("columns", "tags"):
        known = [{c.name.lower(): c for c in getattr(v, part)} for v in later]
        for column in getattr(table.newest, part):
            kept = all(column.name.lower() in k for k in known)
            pairs.append((column, known[0][column.name.lower()] if kept else None))
    return pairs


def _cast(series: pl.Series, kind: pl.DataType, name: str, failed: list[tuple[str, pl.Series]]) -> pl.Series:
    if series.dtype == kind:
        return series
    out = series.cast(kind, strict=False)
    if out.null_count() > series.null_count():
        failed.append((name, out.is_null() & series.is_not_null()))
    return out


def _cast_column(series: pl.Series, column: Column, failed: list[tuple[str, pl.Series]]) -> pl.Series:
    kind = column.type
    if kind.kind == "BIGINT UNSIGNED" and series.dtype == pl.Int64:
        return series.reinterpret(signed=False)
    out = _cast(series, kind.polars(), column.name, failed)
    if kind.kind in ("VARCHAR", "VARBINARY", "NCHAR"):
        size = out.str.len_bytes() if kind.text else out.bin.size()
        if (size.max() or 0) > kind.length:  # type: ignore[operator]
            failed.append((column.name, (out.str.len_chars() if kind.kind == "NCHAR" else size) > kind.length))
    return out


def _to_wire(series: pl.Series, kind: pa.DataType) -> pa.Array:
    if series.dtype == pl.UInt64:
        series = series.reinterpret(signed=True)
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array if array.type == kind else array.cast(kind)


def _write_numbers(lists: pa.Array | pa.ChunkedArray, counts: _Ints) -> tuple[npt.NDArray[np.uint32], int, _Ints]:
    """(number of the write of each row, how many there are, records whose counts do not add up)."""
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    sizes = np.diff(lists.offsets.to_numpy())
    values = lists.flatten().to_numpy()
    if not len(values):
        return np.repeat(np.arange(len(counts), dtype=np.uint32), counts), len(counts), np.empty(0, dtype=np.int64)
    owner = np.repeat(np.arange(len(counts)), sizes)
    sums = np.zeros(len(counts), dtype=np.int64)
    np.add.at(sums, owner, np.clip(values, 0, 1 << 31))
    negative = np.unique(owner[values < 0])
    wrong = np.union1d(np.flatnonzero((sizes > 0) & (sums != counts)), negative)
    whole = sizes == 0
    whole[wrong] = True  # such a record is dropped later; its rows still need a number
    first = np.concatenate([[0], np.cumsum(sizes)])
    split = [counts[i : i + 1] if whole[i] else values[first[i] : first[i + 1]] for i in range(len(counts))] if whole.any() else [values]
    steps = np.concatenate(split)
    return np.repeat(np.arange(len(steps), dtype=np.uint32), steps), len(steps), wrong


def _cut(size: pl.Series, low: int, high: int, write_ends: _Ints | None, room: int) -> list[int]:
    """Where records start in rows low..high so that each holds at most *room* bytes."""
    sums = np.cumsum(size[low:high].to_numpy())
    starts, used = [low], 0
    while sums[-1] - used > room:
        end = low + int(np.searchsorted(sums, used + room, side="right"))
        if end == starts[-1]:
            raise SchemaError("a row is larger than a record may be", code="E_ROW_TOO_LARGE", detail=f"at most {room} bytes")
        if write_ends is not None:
            before = int(np.searchsorted(write_ends, end, side="right")) - 1
            if before >= 0 and write_ends[before] > starts[-1]:
                end = int(write_ends[before])
        starts.append(end)
        used = int(sums[end - low - 1])
    return starts


def _writes_array(bounds: npt.NDArray[np.int32], write_ends: _Ints | None) -> pa.ListArray:
    """Row counts of the writes in each record; a write that was cut counts in each part."""
    if write_ends is None:
        return pa.ListArray.from_arrays(pa.array(np.zeros(len(bounds), dtype=np.int32)), pa.array([], pa.int64()))
    ends = np.unique(np.concatenate([write_ends, bounds[1:]]))
    ends = ends[ends > 0]
    offsets = np.searchsorted(ends, bounds, side="right").astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.diff(np.concatenate([[0], ends])).astype(np.int64)))


def _reason(value: bytes | None, schema_id: int, error: BaseException) -> str:
    if value is None:
        return "empty record"
    if len(value) < 5 or value[0]:
        return "no schema frame in front"
    found = int.from_bytes(value[1:5], "big")
    if found != schema_id:
        return f"schema id {found} where {schema_id} was expected"
    return f"malformed Avro: {error}"[:300]
