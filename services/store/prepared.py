"""Prepared statements of Flight SQL: a text, and values for its placeholders that come as Arrow.

A handle is the ticket that the statement will be run by, so nothing is kept between calls: binding
gives the client a new one, with the values in it. What they stand for is decided when it is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from penstock.errors import SchemaError
from penstock.rows.parameters import Moment, Parameters, encode
from penstock.sql.parser import read
from services.store import flightsql

#: of the values of one statement
_MOST_BYTES = 4 << 20


def create(body: bytes) -> bytes:
    """Return the answer to CreatePreparedStatement. Raises ValueError."""
    handle = json.dumps({"sql": flightsql.prepared_query(body)}).encode()
    return flightsql.created(handle)


def bind(command: bytes, reader: flight.MetadataRecordBatchReader) -> bytes:
    """Return the answer to values for a prepared statement: its new handle.

    Raises:
        PenstockError: its text cannot be read, or a value cannot be bound.
        NotImplementedError: it is another command.
        ValueError: it is no command, or has another handle than ours.
    """
    request = json.loads(flightsql.ticket_of(command))
    names = any(h.name for statement in read(str(request["sql"])) for h in statement.placeholders)
    found = _one_row(reader)
    values = [_value(column) for column in found.columns]
    parameters: Parameters = values
    if names:
        parameters = dict(zip(found.schema.names, values, strict=True))
    handle = json.dumps({"sql": request["sql"], "parameters": encode(parameters)}).encode()
    return flightsql.bound(handle)


def _one_row(reader: flight.MetadataRecordBatchReader) -> pa.RecordBatch:
    found = [batch for batch in _batches(reader) if batch.num_rows]
    if sum(batch.num_rows for batch in found) != 1:
        raise SchemaError(
            "a query takes one row of parameters",
            code="E_PARAMETER",
            hint="run the statement once for each row",
        )
    return found[0]


def _batches(reader: flight.MetadataRecordBatchReader) -> Iterator[pa.RecordBatch]:
    size = 0
    while True:
        try:
            batch = reader.read_chunk().data
        except StopIteration:
            return
        size += batch.nbytes
        if size > _MOST_BYTES:
            raise SchemaError(f"parameters have more than {_MOST_BYTES} bytes", code="E_TOO_LARGE")
        yield batch


def _value(column: pa.Array) -> Any:
    """Return the only value of a column; times keep their nanoseconds."""
    kind = column.type
    if not pa.types.is_timestamp(kind) or column.null_count:
        return column[0].as_py()
    if kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    return Moment(column.cast(pa.string())[0].as_py())
