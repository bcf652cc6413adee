"""Finds in the logs what a predecessor has published: results, events, exchange rows and forwarded
controls, by the positions that those records carry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

import schemas
from penstock import names
from penstock.bus import Batch, Reader
from penstock.codec import schema_ids
from penstock.errors import BusError, PenstockError, SchemaError, StateError
from penstock.records import ControlRecord, EventsRecord, ExchangeRecord, decode
from spark_jobs.replay import Published
from spark_jobs.worker import Worker

#: (topic, partition)
Place = tuple[str, int]
#: (producer, from_offset, offset, ordinal) of one output record
OutputPosition = tuple[str, int, int, int]

_EXCHANGE = schemas.BUILT_IN_IDS["exchange"]
_EVENTS = schemas.BUILT_IN_IDS["events"]
_PATIENCE = 30.0
#: clocks of several brokers may differ by this much, milliseconds
_SKEW = 5_000


def find_published(
    worker: Worker, producers: Collection[str], outputs: Mapping[Place, int], since: int
) -> list[Published]:
    """Return what is in the logs of *outputs* behind the known ends.

    Args:
        worker: whose Kafka and catalog are asked.
        producers: ids of those whose records count.
        outputs: by topic-partition the end known from the state (0: none).
        since: append time (ms) of the newest record that the state covers: nothing unsaved is
            older.

    Raises:
        StateError: a log cannot be read.
    """
    if not outputs:
        return []
    try:
        return _read(worker, producers, outputs, since)
    except PenstockError as error:
        raise StateError("cannot learn what was published", detail=str(error)) from error


def _read(
    worker: Worker, producers: Collection[str], outputs: Mapping[Place, int], since: int
) -> list[Published]:
    ends = worker.admin.end_offsets(outputs)
    begins = _begins(worker, outputs, ends, since)
    left = {place: offset for place, offset in begins.items() if offset < ends[place]}
    found: list[Published] = []
    if not left:
        return found
    with Reader(
        worker.settings.kafka_bootstrap, left, client_id="penstock-replay", max_wait_ms=20
    ) as reader:
        silent = 0
        while left and silent < _PATIENCE:
            batches = reader.read(10_000, 1.0)
            silent = 0 if batches else silent + 1
            for batch in batches:
                found += _find_published(worker, producers, batch)
                if batch.next_offset >= ends[batch.topic, batch.partition]:
                    left.pop((batch.topic, batch.partition), None)
    if left:
        raise BusError(
            "cannot read what was published before", detail=str(sorted(left)), retryable=True
        )
    return found


def _find_published(worker: Worker, producers: Collection[str], batch: Batch) -> list[Published]:
    return [
        Published(producer, batch.topic, batch.partition, first, last, ordinal)
        for producer, first, last, ordinal in positions_of(worker, batch.values)
        if producer in producers
    ]


def _begins(
    worker: Worker, outputs: Mapping[Place, int], ends: Mapping[Place, int], since: int
) -> dict[Place, int]:
    """Return the offsets from which there may be records that the state does not know of."""
    starts = worker.admin.start_offsets(outputs)
    at = worker.admin.offsets_at(outputs, max(since - _SKEW, 0))
    return {
        place: max(known, starts[place], at[place] if at[place] >= 0 else ends[place])
        for place, known in outputs.items()
    }


def positions_of(worker: Worker, values: Sequence[bytes | None]) -> Iterator[OutputPosition]:
    """Yield the positions in all records that carry one; what cannot be read has none."""
    ids = schema_ids(values)
    known = np.unique(ids).tolist()
    worker.catalog.know(known)
    for schema_id in known:
        chosen = [values[i] for i in np.flatnonzero(ids == schema_id).tolist()]
        if schema_id == names.CONTROL_SCHEMA_ID or schema_id in (_EXCHANGE, _EVENTS):
            yield from _built_in(schema_id, chosen)
        elif schema_id >= names.FIRST_TABLE_SCHEMA_ID:
            yield from _in_rows(worker, schema_id, chosen)


def _in_rows(
    worker: Worker, schema_id: int, values: Sequence[bytes | None]
) -> Iterator[OutputPosition]:
    """Yield the positions in records of a table, if streams write it: rows of others are not worth
    decoding.
    """
    found = worker.catalog.catalog.schema(schema_id)
    if found is None or not worker.catalog.catalog.writers_of(found[0].id):
        return
    codec = worker.codecs.decoder(schema_id)
    if codec is not None:
        stamped = codec.decode(values).records.filter(pl.col("producer").is_not_null())
        yield from stamped.select("producer", "from_offset", "offset", "ordinal").iter_rows()


def _built_in(schema_id: int, values: Sequence[bytes | None]) -> Iterator[OutputPosition]:
    for value in values:
        try:
            if schema_id == names.CONTROL_SCHEMA_ID:
                control = decode(ControlRecord, value)
                if control.producer is not None:
                    yield control.producer, control.offset, control.offset, control.ordinal
            else:
                record = (
                    decode(ExchangeRecord, value)
                    if schema_id == _EXCHANGE
                    else decode(EventsRecord, value)
                )
                yield record.producer, record.from_offset, record.offset, record.ordinal
        except SchemaError:
            continue
