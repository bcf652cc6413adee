"""A few rows at a time, between Avro and Python values: where a query engine's and Arrow's fixed
costs would be most of the work.

The stream jobs get most records one by one, within a millisecond of each other. Owns a short cut,
never a judgement: whatever is not plainly what this program's own encoder would have written (other
bytes for the same values, a value out of its column's range, a column of another type) comes back
as None, and `TableCodec` does it the long way, which says what is wrong. Does not know VARBINARY
and DECIMAL.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import polars as pl

from penstock import tuning
from penstock.codec.readable import all_readable
from penstock.names import MAX_NAME_BYTES
from penstock.rows.rows import Rows
from penstock.sql.plan import Column

#: texts of rows that are encoded here are bounded by this many characters, so that no record can be
#: too large
_MAX_TEXT = 16_384
#: one line a record
RECORDS = {
    "_record": pl.UInt32(),
    "rows": pl.UInt32(),
    "producer": pl.String(),
    "from_offset": pl.Int64(),
    "offset": pl.Int64(),
    "ordinal": pl.Int64(),
    "last": pl.Boolean(),
    "trace": pl.String(),
}
_HEAD = {"_record": pl.UInt32, "_write": pl.UInt32, "_op": pl.Int8, "tbname": pl.String}
#: smallest and largest value of each kind of integers
_RANGES = {
    name: bounds
    for kind, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64))
    for name, bounds in (
        (kind, (-(1 << bits - 1), (1 << bits - 1) - 1)),
        (f"{kind} UNSIGNED", (0, (1 << bits) - 1)),
    )
}


@dataclass(frozen=True)
class Read:
    """Rows, and the records without their frames: `Decoded` is made from it."""

    rows: Rows
    records: list[dict[str, Any]]

    @property
    def stamps(self) -> list[tuple[int, str, int, int]]:
        """(index, producer, offset, ordinal) of each record that has a producer."""
        found = enumerate(self.records)
        return [
            (i, r["producer"], r["offset"], r["ordinal"])
            for i, r in found
            if r["producer"] is not None
        ]

    @property
    def traced(self) -> bool:
        """Some record has a trace id."""
        return any(r["trace"] is not None for r in self.records)

    def frame(self) -> pl.DataFrame:
        """Return the records as `Decoded.records` has them."""
        counted = [{**r, "_record": i, "rows": len(r["rows"])} for i, r in enumerate(self.records)]
        return pl.DataFrame(
            [
                pl.Series(name, [r[name] for r in counted], dtype=dtype)
                for name, dtype in RECORDS.items()
            ]
        )


@dataclass(frozen=True)
class _Field:
    """A newest column and its name on the wire, if it is there."""

    column: Column
    wire: str | None
    #: first and last time in ticks
    limits: tuple[int, int]

    def fits(self, values: Sequence[Any]) -> bool:
        """Tell whether all *values* are within the column's type."""
        kind = self.column.type
        if kind.integer:
            low, high = _RANGES[kind.kind]
            return all(v is None or low <= v <= high for v in values)
        if not kind.sized:
            return all_readable(values, kind, self.limits)
        most = kind.length
        if kind.kind == "NCHAR":
            return all(v is None or len(v) <= most for v in values)
        return all(
            v is None or len(v) <= most and (v.isascii() or len(v.encode()) <= most) for v in values
        )


class FewRows:
    """Records of one version of a table. *sources*: the newest columns, each with its name on the
    wire.
    """

    def __init__(
        self,
        reference: Any,
        frame: bytes,
        sources: Sequence[tuple[Column, str | None]],
        written: Sequence[tuple[str, str, pl.DataType]],
        limits: tuple[int, int],
    ) -> None:
        """
        Arguments that need a word:
            reference: fastavro's parsed schema of a record without its frame.
            limits: first and last time in ticks.
            written: name on the wire, name in a frame and type of what a row holds; table's name,
                time and op come first.
        """
        self._reference = reference
        self._frame = frame
        self._fields = [_Field(c, wire, limits) for c, wire in sources]
        self._layout: dict[str, Any] = {
            **_HEAD,
            **{c.name: c.type.polars().base_type() for c, _ in sources},
        }
        self._written = [(wire, name.lower(), dtype) for wire, name, dtype in written]

    # ---------------------------------------------------------------- decode

    def decode(self, values: Sequence[bytes | None]) -> Read | None:
        """Return the rows of *values*, or None where the long way has to look at them."""
        if len(values) > tuning.RECORDS_DECODED_TO_VALUES:
            return None
        records: list[dict[str, Any]] = []
        for value in values:
            if value is None or value[:5] != self._frame:
                return None
            if len(value) > tuning.RECORD_BYTES_DECODED_TO_VALUES:
                return None
            record = self._read(value)
            if record is None:
                return None
            records.append(record)
        rows = self._rows(records)
        return None if rows is None else Read(rows, records)

    def _read(self, value: bytes) -> dict[str, Any] | None:
        """Return the record in *value*, if its content is written as these very bytes."""
        try:
            record: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), self._reference, None)
            again = io.BytesIO()
            fastavro.schemaless_writer(again, self._reference, record)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except Exception:  # whatever it is, the long way names it
            return None
        return record if again.getvalue() == value[5:] else None

    def _rows(self, records: list[dict[str, Any]]) -> Rows | None:
        rows: list[dict[str, Any]] = [row for record in records for row in record["rows"]]
        columns = _numbers(records)
        tables = [r["tbname"] for r in rows]
        ops = [r["op"] for r in rows]
        if columns is None or not _are_names(tables) or not all(0 <= op <= 2 for op in ops):
            return None
        columns["_op"] = ops
        columns["tbname"] = tables
        for field in self._fields:
            found: list[Any] = (
                [None] * len(rows) if field.wire is None else [r[field.wire] for r in rows]
            )
            if field.column.type.kind == "BIGINT UNSIGNED":
                found = [None if v is None else v & 0xFFFF_FFFF_FFFF_FFFF for v in found]
            if not field.fits(found):
                return None
            columns[field.column.name] = found
        return Rows.of_values(columns, self._layout)

    def fit(self, columns: Mapping[str, list[Any]]) -> Rows | None:
        """Return rows of the newest columns and `tbname`, or None where a value does not fit its
        column.
        """
        if not all(field.fits(columns[field.column.name]) for field in self._fields):
            return None
        layout = {name: self._layout[name] for name in columns}
        return Rows.of_values(columns, layout)

    # ---------------------------------------------------------------- encode

    def bodies(self, rows: pl.DataFrame) -> list[dict[str, Any]] | None:
        """Return each of *rows* as the wire has it, or None where the long way has to look at
        them.
        """
        if rows.height > tuning.FRAME_ROWS_ENCODED_BY_FASTAVRO:
            return None
        known = {name.lower(): name for name in rows.columns}
        fields: list[tuple[str, Sequence[Any]]] = []
        size = 0
        for wire, name, dtype in self._written:
            if name not in known:
                fields.append((wire, [0 if name == "_op" else None] * rows.height))
                continue
            column = rows.get_column(known[name])
            if column.dtype != dtype:
                return None
            values = column.to_list()
            if column.dtype == pl.String:
                size += _characters(values)
            elif column.dtype == pl.UInt64:
                values = _as_signed(values)
            fields.append((wire, values))
        if size > _MAX_TEXT or any(None in values for _, values in fields[:3]):
            return None
        return _bodies(fields, rows.height)

    def bodies_of(self, rows: Rows) -> list[dict[str, Any]] | None:
        """Return the same from values that fit the newest columns; `op` is 0."""
        count = len(rows)
        if not rows.few or count > tuning.ROWS_KEPT_AS_VALUES:
            return None
        if sum(map(_characters, rows.values.values())) > _MAX_TEXT:
            return None
        known = {name.lower(): values for name, values in rows.values.items()}
        fields = []
        for wire, name, dtype in self._written:
            values = known.get(name, [0 if name == "_op" else None] * count)
            fields.append((wire, _as_signed(values) if dtype == pl.UInt64 else values))
        return _bodies(fields, count)

    def encode(self, record: dict[str, Any]) -> bytes:
        """Return the value of one record, `rows` and all."""
        buffer = io.BytesIO()
        buffer.write(self._frame)
        fastavro.schemaless_writer(buffer, self._reference, record)
        return buffer.getvalue()


def _numbers(records: list[dict[str, Any]]) -> dict[str, list[Any]] | None:
    """Number the record and the client write of each row; None where the writes of a record do not
    add up to its rows.
    """
    owners: list[Any] = []
    writes: list[Any] = []
    step = 0
    for i, record in enumerate(records):
        count_of_rows = len(record["rows"])
        counts = record["writes"] or [count_of_rows]
        if sum(counts) != count_of_rows or min(counts) < 0:
            return None
        owners += [i] * count_of_rows
        for count in counts:
            writes += [step] * count
            step += 1
    return {"_record": owners, "_write": writes}


def _characters(values: Sequence[Any]) -> int:
    """Count the characters of all texts among *values*."""
    return sum(len(v) for v in values if isinstance(v, str))


def _are_names(tables: list[str]) -> bool:
    return all(0 < len(t.encode()) <= MAX_NAME_BYTES for t in tables)


def _bodies(fields: list[tuple[str, Sequence[Any]]], count: int) -> list[dict[str, Any]]:
    """Turn columns into rows."""
    return [{wire: values[i] for wire, values in fields} for i in range(count)]


def _as_signed(values: Sequence[Any]) -> list[Any]:
    """BIGINT UNSIGNED as the wire has it, in two's complement."""
    return [v if v is None or v < 1 << 63 else v - (1 << 64) for v in values]
