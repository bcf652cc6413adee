"""The position stamps in records that operators publish: results, events, exchange rows and
forwarded controls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

import schemas
from penstock import names
from penstock.codec import schema_ids
from penstock.errors import SchemaError
from penstock.records import ControlRecord, EventsRecord, ExchangeRecord, decode
from spark_jobs.output import Stamp
from spark_jobs.worker import Worker

_EXCHANGE = schemas.BUILT_IN_IDS["exchange"]
_EVENTS = schemas.BUILT_IN_IDS["events"]


def positions_of(worker: Worker, topic: str, values: Sequence[bytes | None]) -> Iterator[Stamp]:
    """Stamps of all records that have one; what cannot be read has none."""
    ids = schema_ids(values)
    known = np.unique(ids).tolist()
    worker.catalog.know(known)
    for schema_id in known:
        chosen = [values[i] for i in np.flatnonzero(ids == schema_id).tolist()]
        if schema_id == names.CONTROL_SCHEMA_ID or schema_id in (_EXCHANGE, _EVENTS):
            yield from _built_in(schema_id, chosen)
        elif schema_id >= names.FIRST_TABLE_SCHEMA_ID:
            found = worker.catalog.catalog.schema(schema_id)
            # only tables that streams write carry stamps; rows of others are not worth decoding
            written = found is not None and bool(worker.catalog.catalog.writers_of(found[0].id))
            codec = worker.codec(schema_id) if written else None
            if codec is not None:
                stamped = codec.decode(chosen).records.filter(pl.col("producer").is_not_null())
                yield from stamped.select(
                    "producer", "from_offset", "offset", "ordinal"
                ).iter_rows()


def _built_in(schema_id: int, values: Sequence[bytes | None]) -> Iterator[Stamp]:
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
