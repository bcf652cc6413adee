"""Columns of one table version to record values, many rows at once by Arrow."""

from __future__ import annotations

import io
from collections.abc import Sequence

import fastavro
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyruhvro

from penstock import tuning
from penstock.codec.record_cutter import ID, MAGIC, MAX_RECORD_BYTES, Head, cut_into_records
from penstock.codec.schema import OP, WireLayout
from penstock.errors import SchemaError
from penstock.rows.partition import partition, partition_of

_Ints = npt.NDArray[np.int64]


class Encoder:
    """Encodes rows of one version of a table, by pyruhvro or, where it cannot or few rows do not
    pay for its threads, by fastavro.
    """

    def __init__(self, layout: WireLayout, table_name: str) -> None:
        self._layout = layout
        self._table_name = table_name

    def in_order(self, rows: pl.DataFrame) -> list[pl.Series | None]:
        """Return the columns of *rows* in the order of the wire; None where it has none."""
        known = {name.lower(): name for name in rows.columns}
        found = (known.get(wanted) for wanted in self._layout.order)
        return [None if name is None else rows.get_column(name) for name in found]

    def encode(
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
        """Encode each stretch ends[i]..ends[i+1] of rows, taken in *order*, under heads[i]. Return
        the values, and the stretch that each is of.

        Args:
            columns: as `in_order` gives them, of *height* rows.
            writes: row counts of the client writes; without them every record is one write.
        """
        struct, fixed, texts = self._struct(columns, height, order)
        batch, owner = cut_into_records(struct, fixed, texts, ends, heads, writes, max_bytes)
        return self._serialize(batch), owner

    def _struct(
        self, columns: Sequence[pl.Series | None], height: int, order: _Ints | None
    ) -> tuple[pa.StructArray, int, list[pa.Array]]:
        """Make rows, taken in *order*, the wire's struct. Return it, an upper bound of a row's size
        without its texts, and the texts.
        """
        row_type = self._layout.row_type
        fields: list[pa.Array] = []
        fixed = 8
        for i, (field, column) in enumerate(zip(row_type, columns, strict=True)):
            if column is None:
                fields.append(
                    pa.array(np.zeros(height, dtype=np.int64))
                    if i == OP
                    else pa.nulls(height, field.type)
                )
                fixed += 1
                continue
            fields.append(_to_wire(column, field.type))
            fixed += 22 if pa.types.is_decimal(field.type) else 11
        if fields[0].null_count or fields[1].null_count:
            raise SchemaError(
                f"a row of table {self._table_name} has no table name or no time",
                code="E_NULL_TIME",
            )
        struct = pa.StructArray.from_arrays(fields, fields=list(row_type))
        if order is not None:
            # here and not in the frame: polars would hand even a few lines to its threads
            struct = struct.take(pa.array(order))
        texts = [
            struct.field(i)
            for i, field in enumerate(row_type)
            if field.type in (pa.string(), pa.binary())
        ]
        return struct, fixed, texts

    def _serialize(self, batch: pa.RecordBatch) -> list[bytes]:
        layout = self._layout
        count = len(batch.column(2).values)
        if layout.fast and count > tuning.ARROW_ROWS_ENCODED_BY_FASTAVRO:
            try:
                chunks = pyruhvro.serialize_record_batch(batch, layout.framed_json, 1)
            except (KeyboardInterrupt, SystemExit, MemoryError):
                raise
            except BaseException as error:  # noqa: B036  a panic of pyruhvro is no Exception
                raise SchemaError(
                    f"rows do not fit table {self._table_name}", detail=str(error)
                ) from None
            return [value for chunk in chunks for value in chunk.to_pylist()]
        out = []
        for record in batch.drop_columns([MAGIC, ID]).to_pylist():
            buffer = io.BytesIO()
            buffer.write(layout.frame)
            fastavro.schemaless_writer(buffer, layout.reference, record)
            out.append(buffer.getvalue())
        return out


def in_stretches(numbers: _Ints, count: int) -> tuple[_Ints, _Ints]:
    """Return the order in which rows of one stretch, of *count*, come together, and where each
    stretch begins and the last ends.
    """
    order = np.argsort(numbers, kind="stable")
    return order, np.searchsorted(numbers[order], np.arange(count + 1))


def partitions_of(rows: pl.DataFrame, partitions: int, hashes: pl.Series | None) -> _Ints:
    """Return the partition of each row."""
    if rows.height == 1:  # a column of one costs many times as much
        return np.array([partition(rows.item(0, "tbname"), partitions)])
    places = (
        partition_of(rows.get_column("tbname"), partitions)
        if hashes is None
        else hashes % partitions
    )
    return places.to_numpy().astype(np.int64)


def _to_wire(series: pl.Series, kind: pa.DataType) -> pa.Array:
    if kind == pa.int64() and series.dtype.is_integer() and not series.null_count():
        # a fourth of the time that two calls of Arrow take for a hundred values
        numbers = series.to_numpy()
        if numbers.dtype == np.uint64:
            return pa.array(numbers.view(np.int64))
        return pa.array(numbers.astype(np.int64, copy=False))
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    if array.type == pa.uint64():
        array = array.view(pa.int64())
    return array if array.type == kind else array.cast(kind)
