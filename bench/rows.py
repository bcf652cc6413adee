"""The rows that throughput is measured with: a fleet of meters, every table in turn, 100 ms apart,
each value computed from its place.

Values are multiples of 1/8, so sums are exact in any order and results can be compared bit by bit.
`expected` is polars' own answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyruhvro

from gateway.settings import partitions_here
from penstock.catalog.model import Table
from penstock.codec import avro_schema, frame_of
from penstock.rows.partition import partition_of

BASE = 1_700_006_400_000
STEP_MS = 100
WINDOW_MS = 10_000
Bounds = np.ndarray[Any, np.dtype[np.int64]]
COLUMNS = "(ts TIMESTAMP, current DOUBLE, voltage INT, phase DOUBLE) TAGS (site INT)"
#: one row as anybody's Avro: no batches, no frame
PLAIN: dict[str, Any] = {
    "type": "record",
    "name": "Meter",
    "fields": [
        {"name": "tbname", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "current", "type": "double"},
        {"name": "voltage", "type": "int"},
        {"name": "phase", "type": "double"},
    ],
}


@dataclass(frozen=True)
class Fleet:
    """Tables spread over partitions by their names, as every publisher has to."""

    tables: int = 10_000
    partitions: int = field(default_factory=partitions_here)

    def names(self, partition: int) -> pl.Series:
        every = pl.Series("tbname", [f"d{k:06d}" for k in range(self.tables)])
        return every.filter(partition_of(every, self.partitions) == partition)

    def frames(
        self, partition: int, first: int, sweeps: int, rows: int = 250_000
    ) -> Iterator[pl.DataFrame]:
        """Rows of sweeps *first*.. of one partition: a sweep holds one row of every table."""
        names = self.names(partition)
        begin = first * len(names)
        end = (first + sweeps) * len(names)
        for start in range(begin, end, rows):
            yield _frame(names, partition, np.arange(start, min(start + rows, end)))

    def sweeps(self, rows: int) -> int:
        """How many sweeps are about *rows* rows; whole windows."""
        per_window = WINDOW_MS // STEP_MS
        return max(rows // self.tables // per_window, 1) * per_window


def _frame(
    names: pl.Series, partition: int, at: np.ndarray[Any, np.dtype[np.int64]]
) -> pl.DataFrame:
    mixed = at * 4 + partition
    return pl.DataFrame(
        {
            "tbname": names.gather(at % len(names)),
            "ts": BASE + at // len(names) * STEP_MS,
            "current": (mixed * 7919 % 4096) * 0.125,
            "voltage": (200 + mixed * 31 % 40).astype(np.int32),
            "phase": (mixed % 1024) / 1024.0,
            "site": (at % len(names) % 100).astype(np.int32),
        }
    )


def batches(frame: pl.DataFrame, table: Table, size: int) -> list[bytes]:
    """Row batches of *size* rows each, in the table's wire format."""
    return records(frame, table, np.append(np.arange(0, frame.height, size), frame.height))


def records(frame: pl.DataFrame, table: Table, bounds: Bounds) -> list[bytes]:
    """One record value for each stretch bounds[i]..bounds[i+1] of rows, in the table's wire
    format.
    """
    schema = avro_schema(table.newest, table.precision, table.name)
    time = frame[table.time_column].to_arrow().cast(pa.timestamp(table.precision))
    columns = [_text(frame["tbname"]), time, pa.array(np.zeros(frame.height, np.int32))]
    columns += [frame[c.name].to_arrow() for c in (*table.columns[1:], *table.tags)]
    n = len(bounds) - 1
    none = pa.nulls(n, pa.string())
    minus = pa.array(np.full(n, -1, np.int64))
    no_writes = pa.ListArray.from_arrays(
        pa.array(np.zeros(n + 1, np.int32)), pa.array([], pa.int32())
    )
    zeros = pa.array(np.zeros(n, np.int32))
    ones = pa.array(np.ones(n, bool))
    rows = _lists(
        columns, [f["name"] for f in schema["fields"][0]["type"]["items"]["fields"]], bounds
    )
    return serialize(
        [rows, no_writes, none, minus, minus, zeros, ones, none], schema, frame_of(table.schema_id)
    )


def _lists(columns: list[Any], names: list[str], bounds: Bounds) -> pa.ListArray:
    return pa.ListArray.from_arrays(
        pa.array(bounds.astype(np.int32)), pa.StructArray.from_arrays(columns, names=names)
    )


def _text(names: pl.Series) -> pa.Array:
    return names.cast(pl.String).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def plain(
    frame: pl.DataFrame, schema: dict[str, Any] = PLAIN, bounds: Bounds | None = None
) -> list[bytes]:
    """Anybody's Avro: one record a row; with *bounds*, records of `rows` for each stretch."""
    names = [f["name"] for f in schema["fields"]]
    if bounds is not None:
        names = [f["name"] for f in schema["fields"][0]["type"]["items"]["fields"]]
    columns = [_text(frame[n]) if n == "tbname" else frame[n].to_arrow() for n in names]
    columns = [
        c.cast(pa.timestamp("ms")) if n == "ts" else c for n, c in zip(names, columns, strict=True)
    ]
    return serialize(columns if bounds is None else [_lists(columns, names, bounds)], schema, b"")


def serialize(columns: list[Any], schema: dict[str, Any], frame: bytes) -> list[bytes]:
    """Avro bodies of one record a line of *columns*, behind *frame*."""
    batch = pa.RecordBatch.from_arrays(columns, [f["name"] for f in schema["fields"]])
    chunks = pyruhvro.serialize_record_batch(batch, json.dumps(schema), 1)
    values = [value for chunk in chunks for value in chunk.to_pylist()]
    return [frame + value for value in values] if frame else values


def expected(fleet: Fleet, sweeps: int, first: int = 0) -> pl.DataFrame:
    """tbname, wstart, n, s, v of every window, by polars."""
    parts = []
    for partition in range(fleet.partitions):
        for frame in fleet.frames(partition, first, sweeps, 2_000_000):
            keyed = frame.group_by(
                "tbname", (pl.col("ts") // WINDOW_MS * WINDOW_MS).alias("wstart")
            )
            parts.append(
                keyed.agg(
                    n=pl.len().cast(pl.Int64), s=pl.col("current").sum(), v=pl.col("voltage").max()
                )
            )
    merged = pl.concat(parts).group_by("tbname", "wstart")
    return merged.agg(pl.col("n").sum(), pl.col("s").sum(), pl.col("v").max()).sort(
        "tbname", "wstart"
    )
