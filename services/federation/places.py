"""Places of a producer's rows in its own log, and how far one of our tables holds them already."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from penstock.bus import Admin, Batch, Reader
from penstock.catalog.model import Table
from penstock.codec import TableCodec, schema_ids
from penstock.errors import SchemaError
from penstock.names import CONTROL_SCHEMA_ID
from penstock.records import ControlRecord, decode
from penstock.storage import segments

#: offset of a record in the producer's log, and number of the row in it
LogPlace = tuple[int, int]
#: before the first row
NOWHERE: LogPlace = (-1, -1)


def read_places(
    bootstrap: str, admin: Admin, segments_dir: str, owner: int, table: Table, producer: str
) -> dict[int, LogPlace]:
    """Find the place of the last row of *producer* in each partition of the table's topic. Reads
    the log from where segments end.
    """
    stored = {
        p: segments.Position.load(segments_dir, table.topic, p, owner)
        for p in range(table.partitions)
    }
    places: dict[int, LogPlace] = {}
    for partition, position in stored.items():
        if producer in position.producers:
            places[partition] = position.producers[producer]
    begin, ends = _unread(admin, table.topic, {p: at.next for p, at in stored.items()})
    if not begin:
        return places
    codecs = [TableCodec(table, i) for i in table.schema_ids]
    with Reader(bootstrap, begin, client_id="federation-held") as reader:
        while begin:
            for batch in reader.read():
                newest = max(_places_in(batch, codecs, producer), default=NOWHERE)
                if newest > places.get(batch.partition, NOWHERE):
                    places[batch.partition] = newest
                if batch.next_offset >= ends[batch.topic, batch.partition]:
                    begin.pop((batch.topic, batch.partition), None)
    return places


def _unread(
    admin: Admin, topic: str, stored: dict[int, int]
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """Return where the log goes on behind what is *stored*, for partitions in which it does, and
    the ends of all.
    """
    partitions = [(topic, p) for p in stored]
    starts = admin.start_offsets(partitions)
    ends = admin.end_offsets(partitions)
    offsets = {at: max(stored[at[1]], starts[at]) for at in partitions}
    return {at: offset for at, offset in offsets.items() if offset < ends[at]}, ends


def _places_in(batch: Batch, codecs: list[TableCodec], producer: str) -> Iterator[LogPlace]:
    """Yield the places with which *producer* stamped records of *batch*."""
    ids = schema_ids(batch.values)
    # only records that name the producer somewhere are worth decoding
    wanted = producer.encode()
    for codec in codecs:
        mine = _values_with(batch, np.flatnonzero(ids == codec.schema_id).tolist(), wanted)
        if mine:
            records = codec.decode(mine).records.filter(pl.col("producer") == producer)
            yield from records.select("offset", "ordinal").iter_rows()
    for value in _values_with(batch, np.flatnonzero(ids == CONTROL_SCHEMA_ID).tolist(), wanted):
        try:
            control = decode(ControlRecord, value)
        except SchemaError:
            continue
        if control.producer == producer:
            yield control.offset, control.ordinal


def _values_with(batch: Batch, indexes: list[int], wanted: bytes) -> list[bytes]:
    values = (batch.values[i] for i in indexes)
    return [value for value in values if value is not None and wanted in value]
