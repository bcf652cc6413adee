"""Record values of one table version to columns of the newest one, many at once by Arrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import fastavro
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyruhvro

from penstock.catalog.model import Table
from penstock.codec.conform import (
    Failed,
    check_range,
    conform_column,
    counts_of,
    narrow,
    write_numbers,
)
from penstock.codec.record_cutter import META
from penstock.codec.schema import OP, Source, WireLayout
from penstock.names import MAX_NAME_BYTES
from penstock.rows.rows import Rows
from penstock.rows.versions import CLEAR, MERGE, UPSERT

#: a batch of records, and the number of its first one
_Numbered = tuple[int, pa.RecordBatch]
#: (index, reason) of records that cannot be used
_Bad = list[tuple[int, str]]


@dataclass(frozen=True)
class Decoded:
    """Records of one schema, decoded.

    given   : the rows, in the form in which they came: `_record` UInt32 (index into the input),
              `_write` UInt32 (running number of the client write), `_op` Int8, `tbname`, then the
              newest version's columns and tags under their own names, TIMESTAMP as Int64 ticks
    bad     : (index, reason) of each record that cannot be used
    stamps  : (index, producer, offset, ordinal) of each good record that has a producer
    traced  : a record has a trace id
    """

    given: Rows
    bad: list[tuple[int, str]]
    stamps: list[tuple[int, str, int, int]]
    traced: bool
    _records: Callable[[], pl.DataFrame]

    @property
    def rows(self) -> pl.DataFrame:
        """The rows as a frame."""
        return self.given.frame

    @cached_property
    def records(self) -> pl.DataFrame:
        """One line per good record: `_record`, `rows` UInt32, `producer`, `from_offset`, `offset`,
        `ordinal`, `last`, `trace`.
        """
        return self._records()


class Decoder:
    """Decodes records of one version of a table, by pyruhvro or, where it cannot, by fastavro."""

    def __init__(
        self,
        table: Table,
        layout: WireLayout,
        sources: Sequence[Source],
        limits: tuple[int, int],
    ) -> None:
        """
        Arguments that need a word:
            sources: where each column of the newest version is on the wire.
            limits: first and last time in ticks.
        """
        self._layout = layout
        self._sources = sources
        self._limits = limits
        key = table.key_column
        #: what is equal in two versions of one row: table, time and key, on the wire
        self._key_places = [
            0,
            1,
            *(at for column, at, _ in sources if column.name == key and at is not None),
        ]

    def decode(self, items: list[bytes | None], ids: Sequence[int]) -> Decoded:
        """Decode record values of any of the schemas *ids*, all of which lie alike on the wire."""
        bad: _Bad = []
        batches: list[_Numbered] = []
        self._read(items, 0, ids, batches, bad)
        if not batches:
            batches.append((0, pa.RecordBatch.from_pylist([], schema=self._layout.batch_schema)))
        frames = []
        step = 0
        for start, batch in batches:
            frame, step = self._conform(batch, start, step, bad)
            frames.append(frame)
        reasons = {index: reason for index, reason in reversed(bad)}
        # few ask for the records themselves
        records = cache(
            lambda: _join([_records(batch, start) for start, batch in batches], reasons)
        )
        stamps = _stamps(batches, reasons) if _any(batches, "producer") else []
        rows = Rows.of_frame(_join(frames, reasons))
        return Decoded(rows, sorted(reasons.items()), stamps, _any(batches, "trace"), records)

    def _read(
        self,
        items: list[bytes | None],
        start: int,
        ids: Sequence[int],
        out: list[_Numbered],
        bad: _Bad,
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
                bad.append((start, _reason(items[0], self._layout.schema_id, error)))
                return
        middle = len(items) // 2
        self._read(items[:middle], start, ids, out, bad)
        self._read(items[middle:], start + middle, ids, out, bad)

    def _deserialize(self, items: list[bytes | None], ids: Sequence[int]) -> pa.RecordBatch:
        layout = self._layout
        if layout.fast:
            batch = pyruhvro.deserialize_array(items, layout.framed_json)
            found = batch.column(1).to_numpy().view(">u4")
            known = found == ids[0] if len(ids) == 1 else np.isin(found, ids)
            if not known.all() or batch.column(0).true_count:
                raise ValueError("another schema id")
            batch.validate(full=True)  # pyruhvro does not check UTF-8
            return batch
        records = []
        for item in items:
            if item is None or item[:5] != layout.frame:
                raise ValueError("another schema id")
            records.append(fastavro.schemaless_reader(io.BytesIO(item[5:]), layout.reference, None))
        return pa.RecordBatch.from_pylist(records, schema=layout.batch_schema)

    def _conform(
        self, batch: pa.RecordBatch, start: int, step: int, bad: _Bad
    ) -> tuple[pl.DataFrame, int]:
        """Lay *batch* out as the newest version does: its rows, and the next write number; adds to
        *bad* what does not fit.

        Arrow all the way and one hand-over to polars: for a single record every polars call would
        cost more than the decoding.
        """
        lists = batch.column("rows")
        counts = counts_of(lists)
        children = lists.flatten().flatten()
        record = np.repeat(np.arange(start, start + len(counts), dtype=np.uint32), counts)
        writes, step, wrong = write_numbers(batch.column("writes"), counts, step)
        bad += [(start + int(i), "writes does not add up to the number of rows") for i in wrong]
        failed: Failed = []
        tbname = children[0]
        op = children[OP]
        check_range(tbname, pc.binary_length(tbname), 1, MAX_NAME_BYTES, "tbname", failed)
        if op.to_numpy().any():
            op = narrow(op, pa.int8(), "op", failed)
            check_range(op, op, 0, CLEAR, "op", failed)
            known = op.fill_null(UPSERT).to_numpy()  # one out of range is no number here
            alone = self._lone_clears(known, children, record, writes)
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
                else conform_column(children[source], column, target, self._limits, failed)
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
        """Return the records with a CLEAR that no MERGE of the same row follows in the same
        write.
        """
        (place,) = np.nonzero(op == CLEAR)
        if not len(place):
            return np.empty(0, np.uint32)
        after = np.minimum(place + 1, len(op) - 1)
        paired = (op[after] == MERGE) & (writes[after] == writes[place])
        for source in self._key_places:
            one = children[source].take(pa.array(place))
            other = children[source].take(pa.array(after))
            paired &= pc.equal(one, other).fill_null(False).to_numpy(zero_copy_only=False)
        return np.unique(record[place[~paired]])


def _join(parts: list[pl.DataFrame], bad: Collection[int]) -> pl.DataFrame:
    """Put frames of records together, less those that are *bad*."""
    whole = parts[0] if len(parts) == 1 else pl.concat(parts)
    return whole.filter(~pl.col("_record").is_in(list(bad))) if bad else whole


def _records(batch: pa.RecordBatch, start: int) -> pl.DataFrame:
    """`Decoded.records` of a batch whose first record is the *start*-th."""
    counts = counts_of(batch.column("rows"))
    index = np.arange(start, start + len(counts), dtype=np.uint32)
    meta = [
        pa.array(index),
        pa.array(counts.astype(np.uint32)),
        *(batch.column(name) for name in META),
    ]
    return pl.DataFrame(pa.RecordBatch.from_arrays(meta, ["_record", "rows", *META]))


def _stamps(batches: Sequence[_Numbered], bad: Container[int]) -> list[tuple[int, str, int, int]]:
    """`Decoded.stamps`, without a query, which costs more than a few records do."""
    stamps = []
    for start, batch in batches:
        about = (batch.column(name).to_pylist() for name in ("producer", "offset", "ordinal"))
        for i, (producer, offset, ordinal) in enumerate(zip(*about, strict=True), start):
            if producer is not None and i not in bad:
                stamps.append((i, producer, offset, ordinal))
    return stamps


def _any(batches: Sequence[_Numbered], name: str) -> bool:
    """Tell whether any record has a *name*."""
    return any(batch.column(name).null_count < batch.num_rows for _, batch in batches)


def _reason(value: bytes | None, schema_id: int, error: BaseException) -> str:
    if value is None:
        return "empty record"
    if len(value) < 5 or value[0]:
        return "no schema frame in front"
    found = int.from_bytes(value[1:5], "big")
    if found != schema_id:
        return f"schema id {found} where {schema_id} was expected"
    return f"malformed Avro: {error}"[:300]
