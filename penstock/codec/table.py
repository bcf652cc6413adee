"""`TableCodec`: record values of one version of a table, from rows and back to rows."""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from penstock import tuning
from penstock.catalog.model import Table
from penstock.codec.decoder import Decoded, Decoder
from penstock.codec.encoder import Encoder, in_stretches, partitions_of
from penstock.codec.few_rows import FewRows
from penstock.codec.record_cutter import MAX_RECORD_BYTES, Head
from penstock.codec.schema import Source, WireLayout, sources_of, wire_name
from penstock.errors import SchemaError
from penstock.rows.rows import Rows
from penstock.types import TIME_LIMITS

_Ints = npt.NDArray[np.int64]


class TableCodec:
    """Encodes and decodes the records of one version of a table; decoding yields the newest
    version's columns.

    Few rows at a time go through `FewRows` where it takes them, all others through Arrow.
    """

    def __init__(
        self, table: Table, schema_id: int | None = None, precision: str | None = None
    ) -> None:
        """
        Arguments that need a word:
            table: the table with all its versions.
            schema_id: which version writes or wrote the records; the newest by default.
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
        limits = TIME_LIMITS[precision or table.precision]
        self._layout = WireLayout(self.version, precision or table.precision, table.name)
        self._sources = sources_of(table, self.version)
        self._decoder = Decoder(table, self._layout, self._sources, limits)
        self._encoder = Encoder(self._layout, table.name)
        self._few = _few_rows(self._layout, self._sources, limits) if self._layout.fast else None

    # ---------------------------------------------------------------- decode

    @cached_property
    def reads_like(self) -> Hashable:
        """Equal for codecs that can decode each other's records; None if no other can."""
        if not self._layout.fast:
            return None
        columns = tuple((column.type, place) for column, place, _ in self._sources)
        return (columns, *(field.type for field in self._layout.row_type))

    def decode(
        self, values: Sequence[bytes | None] | pa.Array | pa.ChunkedArray, alike: Sequence[int] = ()
    ) -> Decoded:
        """Decode record values of this schema id. `bad` says what is wrong with a record; nothing
        raises.

        Args:
            alike: schema ids of codecs that read like this one, whose records may be among them.
        """
        if isinstance(values, pa.Array | pa.ChunkedArray):
            values = values.to_pylist()
        items = values if isinstance(values, list) else list(values)
        if self._few is not None and not alike and (few := self._few.decode(items)) is not None:
            return Decoded(few.rows, [], few.stamps, few.traced, few.frame)
        return self._decoder.decode(items, [self.schema_id, *alike])

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
        """Encode *rows*, which all belong to one partition, as record values, split (at ends of
        writes where it can be) so that none is larger than *max_bytes*; ordinals count from
        *ordinal* and `last` marks the final one.

        Arguments that need a word:
            rows: `tbname`, optionally `_op`, and any of this version's columns and tags; others are
                NULL.
            writes: row counts of the client writes; by default every record is one write.
            producer, from_offset, offset: position stamp of results.
            max_bytes: largest value; the same rows and limit always split the same way.
        """
        head = Head(self.schema_id, producer, from_offset, offset, trace, ordinal)
        if not rows.height:
            return []
        return self._encode(rows, np.array([0, rows.height]), writes, head, max_bytes)[0]

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
        """Encode *rows* of any table names as (partition, record value); ordinals count from 0 in
        each partition.

        Args:
            hashes: `penstock.rows.partition.hashes` of the names, where they are known.
        """
        if not rows.height:
            return []
        head = Head(self.schema_id, producer, from_offset, offset, trace)
        numbers = partitions_of(rows, partitions, hashes)
        if (numbers == numbers[0]).all():
            place = int(numbers[0])
            values, _ = self._encode(rows, np.array([0, rows.height]), writes, head, max_bytes)
            return [(place, value) for value in values]
        order, ends = in_stretches(numbers, partitions)
        if writes is not None:
            of_row = np.repeat(np.arange(len(writes)), writes)[order]
            changed = np.flatnonzero((np.diff(of_row) != 0) | (np.diff(numbers[order]) != 0)) + 1
            writes = np.diff(np.concatenate([[0], changed, [rows.height]]))
        in_order = (np.diff(numbers) >= 0).all()
        values, owner = self._encode(
            rows, ends, writes, head, max_bytes, None if in_order else order
        )
        return list(zip(owner, values, strict=True))

    def shape(self, rows: pl.DataFrame) -> Hashable:
        """Return what is equal for rows that look the same on the wire but for the schema id,
        whatever tables they are of; None if no others look like them.
        """
        by_fastavro = rows.height <= tuning.FRAME_ROWS_ENCODED_BY_FASTAVRO
        if not self._layout.fast or by_fastavro:
            return None
        return (
            *(None if c is None else c.dtype for c in self._encoder.in_order(rows)),
            *(field.type for field in self._layout.row_type),
        )

    def few_rows(self, columns: Mapping[str, list[Any]]) -> Rows | None:
        """Return a few rows of one table as `encode_few` takes them. Return None where a value does
        not fit its column, or `encode_few` takes no rows.

        Args:
            columns: `tbname` and the newest columns, by name; TIMESTAMP as ticks.
        """
        return None if self._few is None else self._few.fit(columns)

    def encode_few(
        self,
        rows: Rows,
        *,
        producer: str,
        from_offset: int,
        offset: int,
        trace: str | None,
    ) -> bytes | None:
        """Encode one record of a few rows, whose values fit their columns. Return None where
        `encode` has to do it, as with VARBINARY and DECIMAL.
        """
        if self._few is None or (bodies := self._few.bodies_of(rows)) is None:
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
        rows: Rows,
        partitions: int,
        hashes: Sequence[int],
        *,
        producer: str,
        from_offset: int,
        offset: int,
    ) -> list[tuple[int, bytes]]:
        """Encode a few rows as `encode_partitioned` does; *hashes* as there."""
        places = [h % partitions for h in hashes]
        if len(set(places)) == 1:
            value = self.encode_few(
                rows, producer=producer, from_offset=from_offset, offset=offset, trace=None
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
        """Encode a record without rows: its position alone says something to readers."""
        buffer = io.BytesIO()
        buffer.write(self._layout.frame)
        body = {
            "rows": [],
            "writes": [],
            "producer": producer,
            "from_offset": from_offset,
            "offset": offset,
            "ordinal": 0,
            "last": True,
        }
        fastavro.schemaless_writer(buffer, self._layout.reference, {**body, "trace": trace})
        return buffer.getvalue()

    def in_order(self, rows: pl.DataFrame) -> list[pl.Series | None]:
        """Return the columns of *rows* in the order of the wire; None where it has none."""
        return self._encoder.in_order(rows)

    def encode_alike(
        self,
        parts: Sequence[Sequence[pl.Series | None]],
        ends: _Ints,
        heads: Sequence[Head],
        order: _Ints,
    ) -> tuple[list[bytes], list[int]]:
        """Encode rows of one shape, as `in_order` gives them, one part after the other and taken in
        *order*: each stretch ends[i]..ends[i+1] under heads[i]. Return the values, and the stretch
        that each is of.
        """
        columns = [
            None if some[0] is None else pl.concat(some) for some in zip(*parts, strict=True)
        ]
        return self._encoder.encode(columns, len(order), ends, heads, order=order)

    def _encode(
        self,
        rows: pl.DataFrame,
        ends: _Ints,
        writes: Sequence[int] | _Ints | None,
        head: Head,
        max_bytes: int,
        order: _Ints | None = None,
    ) -> tuple[list[bytes], list[int]]:
        """Encode each stretch ends[i]..ends[i+1] of *rows*, taken in *order*. Return the values,
        and the stretch that each is of.
        """
        if writes is None and max_bytes >= MAX_RECORD_BYTES and self._few is not None:
            bodies = self._few.bodies(rows)
            if bodies is not None:
                return _encode_bodies(self._few, bodies, ends, head, order)
        return self._encoder.encode(
            self._encoder.in_order(rows),
            rows.height,
            ends,
            [head] * (len(ends) - 1),
            writes=writes,
            max_bytes=max_bytes,
            order=order,
        )


def _encode_bodies(
    few: FewRows, bodies: list[dict[str, Any]], ends: _Ints, head: Head, order: _Ints | None
) -> tuple[list[bytes], list[int]]:
    """Encode each stretch of a few rows as one record."""
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
    values = []
    owner = []
    for i, (low, high) in enumerate(pairwise(ends)):
        if low < high:
            values.append(few.encode({"rows": bodies[low:high], **stamp}))
            owner.append(i)
    return values, owner


def _few_rows(layout: WireLayout, sources: Sequence[Source], limits: tuple[int, int]) -> FewRows:
    time, *others = layout.columns
    written: list[tuple[str, str, pl.DataType]] = [
        ("tbname", "tbname", pl.String()),
        (wire_name(time.name), time.name, pl.Int64()),
        ("op", "_op", pl.Int8()),
        *((wire_name(c.name), c.name, c.type.polars()) for c in others),
    ]
    named = [(column, None if place is None else written[place][0]) for column, place, _ in sources]
    return FewRows(layout.reference, layout.frame, named, written, limits)
