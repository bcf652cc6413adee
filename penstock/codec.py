"""Rows to Kafka record values and back: the Avro `RowBatch` of a table version, in Confluent
framing.

`TableCodec` is the only place that knows how a table's columns look on the wire. pyruhvro (Rust,
straight to and from Arrow) does the work; tables with VARBINARY or DECIMAL columns, which it cannot
do, go through fastavro, the reference. The 5-byte frame costs nothing: to pyruhvro it is a boolean
(the zero byte) and a float (the id's four bytes) in front.

A record is used whole or not at all: malformed Avro, a value outside its column's type or an
unknown `op` makes it bad, with a reason, and never raises. Encoding refuses (`SchemaError`) a row
that is larger than a record may be.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyruhvro

from penstock.catalog.model import Table, TableVersion
from penstock.cutting import ID, MAGIC, MAX_RECORD_BYTES, META, Head, cut_into_records
from penstock.errors import SchemaError
from penstock.few import Few
from penstock.fewrows import MAX_FRAME, FewRows
from penstock.names import MAX_NAME_BYTES
from penstock.partition import partition, partition_of
from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS, ColumnType
from penstock.versions import CLEAR, MERGE

#: names that rows have on the wire besides their columns; no user column may be called so
RESERVED = ("tbname", "op")
#: bytes in front of an Avro body
_FRAME = 5
#: where a row's operation is on the wire
_OP = 2
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TIMESTAMP = {"ms": "timestamp-millis", "us": "timestamp-micros", "ns": "timestamp-nanos"}
_SLOW = ("VARBINARY", "DECIMAL")
#: up to this many rows fastavro encodes faster than pyruhvro, which starts threads for every call
_FEW = 8
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
#: most bytes a value of a fixed-size kind takes, its union branch included
_SIZE = {"boolean": 2, "float": 5, "double": 9, "long": 11, "int": 11}

_Ints = npt.NDArray[np.int64]
#: what did not fit: name, and which rows
_Failed = list[tuple[str, npt.NDArray[np.bool_]]]


@dataclass(frozen=True)
class Decoded:
    """Records of one schema, decoded.

    rows    : `_record` UInt32 (index into the input), `_write` UInt32 (running number of the client
    write), `_op` Int8,
              `tbname`, then the newest version's columns and tags under their own names, TIMESTAMP
              as Int64 ticks
    bad     : (index, reason) of each record that cannot be used
    stamps  : (index, producer, offset, ordinal) of each good record that has a producer
    traced  : whether a record has a trace id
    few     : the rows as values, where they came like that
    """

    _rows: Callable[[], pl.DataFrame]
    bad: list[tuple[int, str]]
    stamps: list[tuple[int, str, int, int]]
    traced: bool
    _records: Callable[[], pl.DataFrame]
    few: Few | None = None

    @cached_property
    def rows(self) -> pl.DataFrame:
        return self._rows()

    @cached_property
    def records(self) -> pl.DataFrame:
        """One line per good record: `_record`, `rows` UInt32, `producer`, `from_offset`, `offset`,
        `ordinal`, `last`, `trace`.
        """
        return self._records()


def schema_ids(values: Sequence[bytes | None], array: pa.BinaryArray | None = None) -> _Ints:
    """Schema id of each record value; -1 where there is no Confluent frame. *array*: the same
    values, where it is at hand.
    """
    if (
        len(values) <= _FEW
    ):  # what comes one by one: numpy's fixed costs would be ten times the work
        return np.array(
            [
                int.from_bytes(v[1:5], "big") if v is not None and len(v) >= 5 and not v[0] else -1
                for v in values
            ],
            np.int64,
        )
    return _ids_in(pa.array(values, pa.binary()) if array is None else array)


def _ids_in(values: pa.BinaryArray) -> _Ints:
    """`schema_ids`, read where the values lie."""
    _, ends, data = values.buffers()
    octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    if len(octets) < _FRAME:
        return np.full(len(values), -1)
    bounds = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    framed = np.diff(bounds) >= _FRAME
    if values.null_count:
        framed &= values.is_valid().to_numpy(zero_copy_only=False)
    begin = np.where(framed, bounds[:-1], 0)
    # four bytes from any place on, the first byte apart
    fours: npt.NDArray[np.uint32] = np.ndarray((len(octets) - _FRAME + 1,), ">u4", octets, 1, (1,))
    return np.where(framed & (octets[begin] == 0), fours[begin].astype(np.int64), -1)


def frame_of(schema_id: int) -> bytes:
    """The five bytes in front of an Avro body."""
    return b"\0" + schema_id.to_bytes(4, "big")


def wire_name(name: str) -> str:
    """Field name of column *name*: itself where Avro allows it, else its UTF-8 bytes in hex behind
    `x_`.
    """
    return name if _AVRO_NAME.match(name) else "x_" + name.encode().hex()


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


def avro_schema(version: TableVersion, precision: str, name: str = "table") -> dict[str, Any]:
    """Avro schema of the table *name*'s RowBatch in *version*, as the schema registry view serves
    it.
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


class TableCodec:
    """Encodes and decodes the records of one version of a table; decoding yields the newest
    version's columns.
    """

    def __init__(
        self, table: Table, schema_id: int | None = None, precision: str | None = None
    ) -> None:
        """
        Arguments that need a word:
            table: the table with all its versions.
            schema_id: which version writes or wrote the records; None: the newest.
            precision: of its database, when it is not the table's own.
        """
        self.table = table
        self.schema_id = table.schema_id if schema_id is None else schema_id
        try:
            self.version = table.version(self.schema_id)
        except KeyError:
            raise SchemaError(
                f"schema {schema_id} is none of table {table.name}", code="E_UNKNOWN_SCHEMA"
            ) from None
        self._limits = TIME_LIMITS[precision or table.precision]
        self.schema = avro_schema(self.version, precision or table.precision, table.name)
        self._columns = (*self.version.columns, *self.version.tags)
        self._fast = not any(c.type.kind in _SLOW for c in self._columns)
        self._wire = _internal(self.schema)
        self._wire_json = json.dumps(self._wire)
        self._reference = fastavro.parse_schema({**self._wire, "fields": self._wire["fields"][2:]})
        self._rows_type, self._batch_schema = self._arrow_types()
        self._wire_order = [
            "tbname",
            self._columns[0].name.lower(),
            "_op",
            *(c.name.lower() for c in self._columns[1:]),
        ]
        self._sources = _sources(table, self.version)
        self._few = self._few_rows() if self._fast else None

    # ---------------------------------------------------------------- decode

    @cached_property
    def reads_like(self) -> Hashable:
        """Codecs of which this is equal can decode each other's records; None: no other can."""
        columns = tuple((column.type, place) for column, place, _ in self._sources)
        return (columns, *(field.type for field in self._rows_type)) if self._fast else None

    def decode(
        self, values: Sequence[bytes | None] | pa.Array | pa.ChunkedArray, alike: Sequence[int] = ()
    ) -> Decoded:
        """Decode record values of this schema id. What is wrong with a record is told in `bad`;
        nothing raises.

        *alike*: schema ids of codecs that read like this one, whose records may be among them.
        """
        if isinstance(values, pa.Array | pa.ChunkedArray):
            values = values.to_pylist()
        items = values if isinstance(values, list) else list(values)
        if self._few is not None and not alike and (few := self._few.decode(items)) is not None:
            return Decoded(lambda: few.rows.frame, [], few.stamps, few.traced, few.frame, few.rows)
        bad: list[tuple[int, str]] = []
        batches: list[tuple[int, pa.RecordBatch]] = []
        self._read(items, 0, [self.schema_id, *alike], batches, bad)
        if not batches:
            batches.append((0, pa.RecordBatch.from_pylist([], schema=self._batch_schema)))
        frames = []
        step = 0
        for start, batch in batches:
            frame, step = self._conform(batch, start, step, bad)
            frames.append(frame)
        bad = sorted({index: reason for index, reason in reversed(bad)}.items())

        def good(parts: list[pl.DataFrame]) -> pl.DataFrame:
            whole = parts[0] if len(parts) == 1 else pl.concat(parts)
            return (
                whole.filter(~pl.col("_record").is_in([index for index, _ in bad]))
                if bad
                else whole
            )

        # few ask for the records themselves
        records = cache(lambda: good([_records(batch, start) for start, batch in batches]))
        stamps = _stamps(batches, {index for index, _ in bad}) if _any(batches, "producer") else []
        rows = good(frames)
        return Decoded(lambda: rows, bad, stamps, _any(batches, "trace"), records)

    def _read(
        self,
        items: list[bytes | None],
        start: int,
        ids: Sequence[int],
        out: list[tuple[int, pa.RecordBatch]],
        bad: list[tuple[int, str]],
    ) -> None:
        """Decode *items*, halving them around the ones that cannot be."""
        if not items:
            return
        try:
            out.append((start, self._deserialize(items, ids)))
            return
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # noqa: B036  a panic of pyruhvro is no Exception
            if len(items) == 1:
                bad.append((start, _reason(items[0], self.schema_id, error)))
                return
        middle = len(items) // 2
        self._read(items[:middle], start, ids, out, bad)
        self._read(items[middle:], start + middle, ids, out, bad)

    def _deserialize(self, items: list[bytes | None], ids: Sequence[int]) -> pa.RecordBatch:
        if self._fast:
            batch = pyruhvro.deserialize_array(items, self._wire_json)
            found = batch.column(1).to_numpy().view(">u4")
            known = found == ids[0] if len(ids) == 1 else np.isin(found, ids)
            if not known.all() or batch.column(0).true_count:
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

    def _conform(
        self, batch: pa.RecordBatch, start: int, step: int, bad: list[tuple[int, str]]
    ) -> tuple[pl.DataFrame, int]:
        """(rows, next write number) of *batch* in the newest version's layout; adds to *bad* what
        does not fit.

        Arrow all the way and one hand-over to polars: for a single record every polars call would
        cost more than the decoding.
        """
        lists = batch.column("rows")
        counts = _counts(lists)
        children = lists.flatten().flatten()
        record = np.repeat(np.arange(start, start + len(counts), dtype=np.uint32), counts)
        writes, step, wrong = _write_numbers(batch.column("writes"), counts, step)
        bad += [(start + int(i), "writes does not add up to the number of rows") for i in wrong]
        failed: _Failed = []
        tbname = children[0]
        op = children[2]
        _check_length(tbname, pc.binary_length(tbname), 1, MAX_NAME_BYTES, "tbname", failed)
        if op.to_numpy().any():
            op = _narrow(op, pa.int8(), "op", failed)
            _check_length(op, op, 0, CLEAR, "op", failed)
            alone = self._lone_clears(op.to_numpy(), children, record, writes)
            bad += [(int(i), "op 3 without the op 2 of its row after it") for i in alone]
        else:  # upserts, as nearly always
            op = pa.array(np.zeros(len(op), np.int8))
        names = ["_record", "_write", "_op", "tbname"]
        columns = [pa.array(record), pa.array(writes), op, tbname]
        for column, source, target in self._sources:
            names.append(column.name)
            columns.append(
                pa.nulls(len(record), target)
                if source is None
                else _conform_column(children[source], column, target, self._limits, failed)
            )
        for name, mask in failed:
            bad += [(int(i), f"value out of range in {name}") for i in np.unique(record[mask])]
        return pl.DataFrame(pa.RecordBatch.from_arrays(columns, names)), step

    def _lone_clears(
        self,
        op: npt.NDArray[np.int8],
        children: Sequence[pa.Array],
        record: npt.NDArray[np.uint32],
        writes: npt.NDArray[np.uint32],
    ) -> npt.NDArray[np.uint32]:
        """Records with a CLEAR that no MERGE of the same row follows in the same write."""
        (place,) = np.nonzero(op == CLEAR)
        if not len(place):
            return np.empty(0, np.uint32)
        key = self.table.key_column
        keys = [0, 1, *(source for c, source, _ in self._sources if c.name == key)]
        after = np.minimum(place + 1, len(op) - 1)
        paired = (op[after] == MERGE) & (writes[after] == writes[place])
        for source in keys:
            if source is not None:
                one = children[source].take(pa.array(place))
                other = children[source].take(pa.array(after))
                paired &= pc.equal(one, other).fill_null(False).to_numpy(zero_copy_only=False)
        return np.unique(record[place[~paired]])

    # ---------------------------------------------------------------- encode

    def encode(
        self,
        rows: pl.DataFrame,
        *,
        writes: Sequence[int] | _Ints | None = None,
        producer: str | None = None,
        from_offset: int = -1,
        offset: int = -1,
        trace: str | None = None,
        max_bytes: int = MAX_RECORD_BYTES,
        ordinal: int = 0,
    ) -> list[bytes]:
        """Record values for *rows*, which all belong to one partition, split (at ends of writes
        where it can be) so that none is larger than *max_bytes*; ordinals count from *ordinal* and
        `last` marks the final one.

        Arguments that need a word:
            rows: `tbname`, optionally `_op`, and any of this version's columns and tags; others are
                NULL.
            writes: row counts of the client writes; None: every record is one write.
            producer, from_offset, offset: position stamp of results.
            max_bytes: largest value; the same rows and limit always split the same way.
        """
        head = Head(self.schema_id, producer, from_offset, offset, trace, ordinal)
        return (
            self._encode(rows, np.array([0, rows.height]), writes, head, max_bytes)[0]
            if rows.height
            else []
        )

    def encode_partitioned(
        self,
        rows: pl.DataFrame,
        partitions: int,
        *,
        writes: Sequence[int] | _Ints | None = None,
        producer: str | None = None,
        from_offset: int = -1,
        offset: int = -1,
        trace: str | None = None,
        max_bytes: int = MAX_RECORD_BYTES,
        hashes: pl.Series | None = None,
    ) -> list[tuple[int, bytes]]:
        """(partition, record value) for *rows* of any table names; ordinals count from 0 in each
        partition.

        *hashes*: `penstock.partition.hashes` of the names, where they are known.
        """
        if not rows.height:
            return []
        head = Head(self.schema_id, producer, from_offset, offset, trace)
        numbers = _places(rows, partitions, hashes)
        if (numbers == numbers[0]).all():
            place = int(numbers[0])
            return [
                (place, value)
                for value in self._encode(
                    rows, np.array([0, rows.height]), writes, head, max_bytes
                )[0]
            ]
        order, ends = _in_stretches(numbers, partitions)
        if writes is not None:
            of_row = np.repeat(np.arange(len(writes)), writes)[order]
            changed = np.flatnonzero((np.diff(of_row) != 0) | (np.diff(numbers[order]) != 0)) + 1
            writes = np.diff(np.concatenate([[0], changed, [rows.height]]))
        values, owner = self._encode(
            rows, ends, writes, head, max_bytes, None if (np.diff(numbers) >= 0).all() else order
        )
        return list(zip(owner, values, strict=True))

    def shape(self, rows: pl.DataFrame) -> Hashable:
        """Rows of equal shapes look the same on the wire but for the schema id, whatever tables
        they are of; None: as no others.
        """
        if not self._fast or rows.height <= MAX_FRAME:
            return None
        return (
            *(None if c is None else c.dtype for c in self.in_order(rows)),
            *(field.type for field in self._rows_type),
        )

    def encode_few(
        self,
        columns: Mapping[str, Sequence[Any]],
        *,
        producer: str,
        from_offset: int,
        offset: int,
        trace: str | None,
    ) -> bytes | None:
        """One record of a few rows, whose values fit their columns; None: `encode` has to, as with
        VARBINARY and DECIMAL.
        """
        if self._few is None or (bodies := self._few.bodies_of(columns)) is None:
            return None
        stamp = {
            "producer": producer,
            "from_offset": from_offset,
            "offset": offset,
            "ordinal": 0,
            "last": True,
            "trace": trace,
        }
        return self._few.encode({"rows": bodies, "writes": [], **stamp})

    def encode_few_partitioned(
        self,
        rows: Few,
        partitions: int,
        hashes: Sequence[int],
        *,
        producer: str,
        from_offset: int,
        offset: int,
    ) -> list[tuple[int, bytes]]:
        """`encode_partitioned` of a few rows; *hashes* as there."""
        places = [h % partitions for h in hashes]
        if len(set(places)) == 1:
            value = self.encode_few(
                rows.columns, producer=producer, from_offset=from_offset, offset=offset, trace=None
            )
            if value is not None:
                return [(places[0], value)]
        known = pl.Series(hashes, dtype=pl.UInt32)
        return self.encode_partitioned(
            rows.frame,
            partitions,
            producer=producer,
            from_offset=from_offset,
            offset=offset,
            hashes=known,
        )

    def empty(
        self, *, producer: str, from_offset: int, offset: int, trace: str | None = None
    ) -> bytes:
        """A record without rows: its position alone says something to readers."""
        buffer = io.BytesIO()
        buffer.write(frame_of(self.schema_id))
        body = {
            "rows": [],
            "writes": [],
            "producer": producer,
            "from_offset": from_offset,
            "offset": offset,
            "ordinal": 0,
            "last": True,
        }
        fastavro.schemaless_writer(buffer, self._reference, {**body, "trace": trace})
        return buffer.getvalue()

    def _encode(
        self,
        rows: pl.DataFrame,
        ends: _Ints,
        writes: Sequence[int] | _Ints | None,
        head: Head,
        max_bytes: int,
        order: _Ints | None = None,
    ) -> tuple[list[bytes], list[int]]:
        """Values of each stretch ends[i]..ends[i+1] of *rows*, taken in *order*, and the stretch
        each value is of.
        """
        if (
            writes is None
            and max_bytes >= MAX_RECORD_BYTES
            and self._few is not None
            and (bodies := self._few.bodies(rows)) is not None
        ):
            stamp: dict[str, Any] = {
                "writes": [],
                "producer": head.producer,
                "from_offset": head.from_offset,
                "offset": head.offset,
                "ordinal": head.ordinal,
                "last": True,
                "trace": head.trace,
            }
            if order is not None:
                bodies = [bodies[i] for i in order]
            parts = [
                (i, bodies[low:high]) for i, (low, high) in enumerate(pairwise(ends)) if low < high
            ]
            return [self._few.encode({"rows": part, **stamp}) for _, part in parts], [
                i for i, _ in parts
            ]
        heads = [head] * (len(ends) - 1)
        return self._values(
            self.in_order(rows),
            rows.height,
            ends,
            heads,
            writes=writes,
            max_bytes=max_bytes,
            order=order,
        )

    def encode_alike(
        self,
        parts: Sequence[Sequence[pl.Series | None]],
        ends: _Ints,
        heads: Sequence[Head],
        order: _Ints,
    ) -> tuple[list[bytes], list[int]]:
        """Values of rows of one shape, as `in_order` gives them, one part after the other and taken
        in *order*: of each stretch ends[i]..ends[i+1] under heads[i]; and the stretch that each is
        of.
        """
        columns = [
            None if some[0] is None else pl.concat(some) for some in zip(*parts, strict=True)
        ]
        return self._values(columns, len(order), ends, heads, order=order)

    def _values(
        self,
        columns: Sequence[pl.Series | None],
        height: int,
        ends: _Ints,
        heads: Sequence[Head],
        *,
        order: _Ints | None,
        writes: Sequence[int] | _Ints | None = None,
        max_bytes: int = MAX_RECORD_BYTES,
    ) -> tuple[list[bytes], list[int]]:
        """`_encode` of columns as `in_order` gives them; each stretch with a head of its own."""
        struct, fixed, texts = self._struct(columns, height, order)
        batch, owner = cut_into_records(struct, fixed, texts, ends, heads, writes, max_bytes)
        return self._serialize(batch), owner

    def _serialize(self, batch: pa.RecordBatch) -> list[bytes]:
        if self._fast and len(batch.column(2).values) > _FEW:
            try:
                chunks = pyruhvro.serialize_record_batch(batch, self._wire_json, 1)
            except (KeyboardInterrupt, SystemExit, MemoryError):
                raise
            except BaseException as error:  # noqa: B036  a panic of pyruhvro is no Exception
                raise SchemaError(
                    f"rows do not fit table {self.table.name}", detail=str(error)
                ) from None
            return [value for chunk in chunks for value in chunk.to_pylist()]
        out = []
        frame = frame_of(self.schema_id)
        for record in batch.drop_columns([MAGIC, ID]).to_pylist():
            buffer = io.BytesIO()
            buffer.write(frame)
            fastavro.schemaless_writer(buffer, self._reference, record)
            out.append(buffer.getvalue())
        return out

    def in_order(self, rows: pl.DataFrame) -> list[pl.Series | None]:
        """The columns of *rows* in the order of the wire; None where it has none."""
        known = {name.lower(): name for name in rows.columns}
        found = (known.get(wanted) for wanted in self._wire_order)
        return [None if name is None else rows.get_column(name) for name in found]

    def _struct(
        self, columns: Sequence[pl.Series | None], height: int, order: _Ints | None
    ) -> tuple[pa.StructArray, int, list[pa.Array]]:
        """Rows, taken in *order*, as the wire's struct, an upper bound of a row's size without its
        texts, and the texts.
        """
        fields: list[pa.Array] = []
        fixed = 8
        for i, (field, column) in enumerate(zip(self._rows_type, columns, strict=True)):
            if column is None:
                fields.append(
                    pa.array(np.zeros(height, dtype=np.int64))
                    if i == _OP
                    else pa.nulls(height, field.type)
                )
                fixed += 1
                continue
            fields.append(_to_wire(column, field.type))
            fixed += 22 if pa.types.is_decimal(field.type) else 11
        if any(fields[i].null_count for i in (0, 1)):
            raise SchemaError(
                f"a row of table {self.table.name} has no table name or no time", code="E_NULL_TIME"
            )
        struct = pa.StructArray.from_arrays(fields, fields=list(self._rows_type))
        if (
            order is not None
        ):  # here and not in the frame: polars would hand even a few lines to its threads
            struct = struct.take(pa.array(order))
        texts = [
            struct.field(i)
            for i, field in enumerate(self._rows_type)
            if field.type in (pa.string(), pa.binary())
        ]
        return struct, fixed, texts

    def _few_rows(self) -> FewRows:
        time, *others = self._columns
        written: list[tuple[str, str, pl.DataType]] = [
            ("tbname", "tbname", pl.String()),
            (wire_name(time.name), time.name, pl.Int64()),
            ("op", "_op", pl.Int8()),
            *((wire_name(c.name), c.name, c.type.polars()) for c in others),
        ]
        sources = [
            (column, None if place is None else written[place][0])
            for column, place, _ in self._sources
        ]
        return FewRows(self._reference, frame_of(self.schema_id), sources, written, self._limits)

    def _arrow_types(self) -> tuple[pa.StructType, pa.Schema]:
        def wire(column: Column) -> pa.DataType:
            kind = column.type.kind
            if (
                kind in ("BOOL", "FLOAT", "DOUBLE", "DECIMAL")
                or column.type.text
                or kind == "VARBINARY"
            ):
                return column.type.arrow()
            return pa.int64()

        time, *others = self._columns
        row = pa.struct(
            [
                pa.field("tbname", pa.string(), nullable=False),
                pa.field(wire_name(time.name), pa.int64(), nullable=False),
                pa.field("op", pa.int64(), nullable=False),
                *(pa.field(wire_name(c.name), wire(c)) for c in others),
            ]
        )
        kinds = dict(
            zip(
                META,
                (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.bool_(), pa.string()),
                strict=True,
            )
        )
        schema = pa.schema(
            [("rows", pa.list_(row)), ("writes", pa.list_(pa.int64())), *kinds.items()]
        )
        return row, schema


@dataclass(frozen=True)
class Outgoing:
    """Rows that leave a stream together; `encode_partitioned` says what the fields are."""

    codec: TableCodec
    rows: pl.DataFrame
    partitions: int
    producer: str
    from_offset: int
    offset: int
    trace: str | None = None
    hashes: pl.Series | None = None

    def encode(self) -> list[tuple[int, bytes]]:
        """(partition, record value)"""
        return self.codec.encode_partitioned(
            self.rows,
            self.partitions,
            producer=self.producer,
            from_offset=self.from_offset,
            offset=self.offset,
            trace=self.trace,
            hashes=self.hashes,
        )

    @property
    def head(self) -> Head:
        return Head(self.codec.schema_id, self.producer, self.from_offset, self.offset, self.trace)


def encode_together(parts: Sequence[Outgoing]) -> list[list[tuple[int, bytes]]]:
    """What `Outgoing.encode` gives for each of *parts*; those of one shape are encoded at once.

    What is fixed of the cost of encoding is as much as that of some thousand rows.

    Raises:
        SchemaError: one of them does not fit its table, which one is not told.
    """
    alike: dict[Hashable, list[int]] = {}
    for i, part in enumerate(parts):
        shape = part.codec.shape(part.rows) if len(parts) > 1 else None
        alike.setdefault(i if shape is None else shape, []).append(i)
    made: dict[int, list[tuple[int, bytes]]] = {}
    for chosen in alike.values():
        some = [parts[i] for i in chosen]
        made.update(
            zip(chosen, [some[0].encode()] if len(some) == 1 else _encode_alike(some), strict=True)
        )
    return [made[i] for i in range(len(parts))]


def _encode_alike(parts: Sequence[Outgoing]) -> list[list[tuple[int, bytes]]]:
    bases = np.cumsum([0, *(p.partitions for p in parts)])
    stretches = np.concatenate(
        [
            _places(p.rows, p.partitions, p.hashes) + base
            for p, base in zip(parts, bases, strict=False)
        ]
    )
    order, ends = _in_stretches(stretches, int(bases[-1]))
    of_part = np.repeat(np.arange(len(parts)), np.diff(bases)).tolist()
    values, owner = parts[0].codec.encode_alike(
        [p.codec.in_order(p.rows) for p in parts], ends, [parts[i].head for i in of_part], order
    )
    made: list[list[tuple[int, bytes]]] = [[] for _ in parts]
    for stretch, value in zip(owner, values, strict=True):
        part = of_part[stretch]
        made[part].append((int(stretch - bases[part]), value))
    return made


def _in_stretches(numbers: _Ints, count: int) -> tuple[_Ints, _Ints]:
    """The order in which rows of one stretch, of *count*, come together, and where each begins and
    the last ends.
    """
    order = np.argsort(numbers, kind="stable")
    return order, np.searchsorted(numbers[order], np.arange(count + 1))


def _places(rows: pl.DataFrame, partitions: int, hashes: pl.Series | None) -> _Ints:
    """Partition of each row."""
    if rows.height == 1:  # a column of one costs many times as much
        return np.array([partition(rows.item(0, "tbname"), partitions)])
    places = (
        partition_of(rows.get_column("tbname"), partitions)
        if hashes is None
        else hashes % partitions
    )
    return places.to_numpy().astype(np.int64)


def _internal(schema: dict[str, Any]) -> dict[str, Any]:
    """The same bytes with every integer a plain long (ranges are checked here, exactly) and the
    frame as two fields.
    """

    def plain(kind: Any) -> Any:
        if isinstance(kind, list):
            return [plain(k) for k in kind]
        if isinstance(kind, dict):
            if kind["type"] == "array":
                return {**kind, "items": plain(kind["items"])}
            if kind["type"] == "record":
                return {
                    **kind,
                    "fields": [
                        {"name": f["name"], "type": plain(f["type"])} for f in kind["fields"]
                    ],
                }
            return "long" if kind["type"] == "long" else kind
        return "long" if kind == "int" else kind

    body: dict[str, Any] = plain(schema)
    return {
        **body,
        "fields": [
            {"name": MAGIC, "type": "boolean"},
            {"name": ID, "type": "float"},
            *body["fields"],
        ],
    }


def _sources(table: Table, version: TableVersion) -> list[tuple[Column, int | None, pa.DataType]]:
    """For each newest column or tag: where *version*'s wire rows hold it (None: it was dropped or
    not made yet), and its type.
    """
    later = table.versions[table.versions.index(version) :]
    wire = {c.name.lower(): i for i, c in enumerate((*version.columns, *version.tags))}
    found: list[tuple[Column, int | None, pa.DataType]] = []
    for column in (*table.columns, *table.tags):
        name: str | None = column.name.lower()
        for before, after in zip(reversed(later[:-1]), reversed(later), strict=False):
            name = {new.lower(): old.lower() for old, new in after.renamed}.get(name or "", name)
            name = (
                name if name in {c.name.lower() for c in (*before.columns, *before.tags)} else None
            )
        at = None if name is None else wire[name]
        place = (
            None if at is None else 1 if at == 0 else at + 2
        )  # on the wire: tbname, time, op, the rest
        found.append(
            (column, place, pa.int64() if column.type.kind == "TIMESTAMP" else column.type.arrow())
        )
    return found


def _counts(lists: pa.ListArray) -> npt.NDArray[np.int32]:
    """How many items each of *lists* has."""
    offsets = lists.offsets.to_numpy()
    counts: npt.NDArray[np.int32] = offsets[1:] - offsets[:-1]
    return counts


def _records(batch: pa.RecordBatch, start: int) -> pl.DataFrame:
    """`Decoded.records` of a batch whose first record is the *start*-th."""
    counts = _counts(batch.column("rows"))
    index = np.arange(start, start + len(counts), dtype=np.uint32)
    meta = [
        pa.array(index),
        pa.array(counts.astype(np.uint32)),
        *(batch.column(name) for name in META),
    ]
    return pl.DataFrame(pa.RecordBatch.from_arrays(meta, ["_record", "rows", *META]))


def _stamps(
    batches: Sequence[tuple[int, pa.RecordBatch]], bad: Container[int]
) -> list[tuple[int, str, int, int]]:
    """`Decoded.stamps`, without a query, which costs more than a few records do."""
    found = []
    for start, batch in batches:
        about = (batch.column(name).to_pylist() for name in ("producer", "offset", "ordinal"))
        for i, (producer, offset, ordinal) in enumerate(zip(*about, strict=True), start):
            if producer is not None and i not in bad:
                found.append((i, producer, offset, ordinal))
    return found


def _any(batches: Sequence[tuple[int, pa.RecordBatch]], name: str) -> bool:
    """Whether any record has a *name*."""
    return any(batch.column(name).null_count < batch.num_rows for _, batch in batches)


def _narrow(array: pa.Array, target: pa.DataType, name: str, failed: _Failed) -> pa.Array:
    """*array* as *target*; marks as failed the values that do not fit."""
    if array.type == target:
        return array
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        kind = (
            pl.Series([], dtype=pl.Int8).dtype
            if target == pa.int8()
            else pl.Series(pa.array([], target)).dtype
        )
        series = pl.Series(array)
        out = series.cast(kind, strict=False)
        failed.append((name, (out.is_null() & series.is_not_null()).to_numpy()))
        return out.to_arrow().cast(target)


def _conform_column(
    array: pa.Array, column: Column, target: pa.DataType, limits: tuple[int, int], failed: _Failed
) -> pa.Array:
    kind = column.type
    if kind.kind == "BIGINT UNSIGNED" and array.type == pa.int64():
        return array.view(pa.uint64())
    out = _narrow(array, target, column.name, failed)
    if kind.kind == "TIMESTAMP":
        _check_length(out, out, *limits, column.name, failed)
    elif kind.kind in ("FLOAT", "DOUBLE"):
        infinite = pc.is_inf(out)
        if pc.any(infinite).as_py():
            failed.append((column.name, infinite.fill_null(False).to_numpy(zero_copy_only=False)))
    if kind.sized:
        length = pc.binary_length(out)
        if kind.kind == "NCHAR" and (pc.max(length).as_py() or 0) > kind.length:
            length = pc.utf8_length(out)
        _check_length(out, length, 0, kind.length, column.name, failed)
    return out


def _check_length(
    array: pa.Array, length: pa.Array, low: int, high: int, name: str, failed: _Failed
) -> None:
    ends = pc.min_max(length)
    if len(array) > array.null_count and (ends["min"].as_py() < low or ends["max"].as_py() > high):
        inside = pc.and_(pc.greater_equal(length, low), pc.less_equal(length, high))
        failed.append((name, pc.invert(inside).fill_null(False).to_numpy(zero_copy_only=False)))


def _to_wire(series: pl.Series, kind: pa.DataType) -> pa.Array:
    if kind == pa.int64() and series.dtype.is_integer() and not series.null_count():
        numbers = (
            series.to_numpy()
        )  # a fourth of the time that two calls of Arrow take for a hundred values
        return pa.array(
            numbers.view(np.int64)
            if numbers.dtype == np.uint64
            else numbers.astype(np.int64, copy=False)
        )
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    if array.type == pa.uint64():
        array = array.view(pa.int64())
    return array if array.type == kind else array.cast(kind)


def _write_numbers(
    lists: pa.ListArray, counts: npt.NDArray[np.integer], step: int
) -> tuple[npt.NDArray[np.uint32], int, _Ints]:
    """(number of the write of each row, from *step* on; the next number; records whose counts do
    not add up).
    """
    sizes = _counts(lists)
    values = lists.flatten().to_numpy()
    n = len(counts)
    if not len(values):
        return (
            np.repeat(np.arange(step, step + n, dtype=np.uint32), counts),
            step + n,
            np.empty(0, dtype=np.int64),
        )
    owner = np.repeat(np.arange(n), sizes)
    sums = np.bincount(owner, weights=np.clip(values, 0, 1 << 40), minlength=n).astype(np.int64)
    wrong = np.flatnonzero((sizes > 0) & (sums != counts))
    wrong = np.union1d(wrong, owner[values < 0])
    # a record without counts is one write; a wrong one is dropped later, but its rows still need a
    # number
    whole = np.union1d(np.flatnonzero(sizes == 0), wrong)
    kept = ~np.isin(owner, wrong)
    steps = np.concatenate([values[kept], counts[whole]])
    steps = steps[np.argsort(np.concatenate([owner[kept], whole]), kind="stable")]
    return (
        np.repeat(np.arange(step, step + len(steps), dtype=np.uint32), steps),
        step + len(steps),
        wrong,
    )


def _reason(value: bytes | None, schema_id: int, error: BaseException) -> str:
    if value is None:
        return "empty record"
    if len(value) < 5 or value[0]:
        return "no schema frame in front"
    found = int.from_bytes(value[1:5], "big")
    if found != schema_id:
        return f"schema id {found} where {schema_id} was expected"
    return f"malformed Avro: {error}"[:300]
