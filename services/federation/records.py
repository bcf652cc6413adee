"""Records of one table in a slice of a topic: rows with their place in the log, deletes and tag
changes between them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock import names
from penstock.catalog.model import Table
from penstock.codec import TableCodec
from penstock.errors import SchemaError
from penstock.feeds.slices import Slice
from penstock.records import ControlRecord, decode


@dataclass(frozen=True)
class FoundRecords:
    """`rows`: `_at` (index of the record in the slice), `_op`, `tbname`, `_time`, `_offset`,
    `_row`, `_part`, `_appended`, columns.

    `stamps`: record, producer, offset and ordinal of records that a producer stamped. `controls`:
    index and control of this table.
    """

    rows: pl.DataFrame
    stamps: list[tuple[int, str, int, int]]
    controls: list[tuple[int, ControlRecord]]


def records_of(piece: Slice, table: Table) -> FoundRecords:
    """Return what a slice holds of *table*; decoded once for all who listen."""
    return piece.share(("link", table.id, table.schema_ids), lambda: _decode(piece, table))


def _decode(piece: Slice, table: Table) -> FoundRecords:
    values = piece.batch.values
    ids = piece.ids
    frames = []
    stamps = []
    for schema_id in table.schema_ids:
        place = np.flatnonzero(ids == schema_id).astype(np.uint32)
        if not len(place):
            continue
        decoded = TableCodec(table, schema_id).decode([values[i] for i in place])
        stamps += [
            (int(place[r]), producer, offset, ordinal)
            for r, producer, offset, ordinal in decoded.stamps
        ]
        record = decoded.rows["_record"].to_numpy()
        starts = np.flatnonzero(np.diff(record.astype(np.int64), prepend=-1))
        row = np.arange(len(record)) - np.repeat(starts, np.diff([*starts, len(record)]))
        at = place[record]
        frames.append(
            decoded.rows.drop("_record", "_write").with_columns(
                pl.Series("_at", at, dtype=pl.UInt32),
                pl.Series("_row", row.astype(np.uint32)),
                pl.Series("_offset", piece.batch.offsets[at]),
                pl.Series("_appended", piece.batch.timestamps[at]),
            )
        )
    controls = _controls(piece, table)
    if not frames:
        return FoundRecords(pl.DataFrame(), [], controls)
    rows = (
        pl.concat(frames)
        if len(frames) == 1
        else pl.concat(frames).sort("_at", maintain_order=True)
    )
    rows = rows.with_columns(
        _time=pl.col(table.time_column), _part=pl.lit(piece.partition, pl.Int32)
    )
    return FoundRecords(rows, sorted(stamps), controls)


def _controls(piece: Slice, table: Table) -> list[tuple[int, ControlRecord]]:
    """Decode the deletes and tag changes of *table*."""
    controls = []
    for i in np.flatnonzero(piece.ids == names.CONTROL_SCHEMA_ID).tolist():
        try:
            control = decode(ControlRecord, piece.batch.values[i])
        except SchemaError:
            continue
        if control.table == table.id and control.kind in ("delete", "tag"):
            controls.append((i, control))
    return controls
