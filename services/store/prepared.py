"""Prepared statements of Flight SQL: a text, and values for its placeholders that come as Arrow.

A handle is the ticket that the statement will be run by, so nothing is kept between calls: binding
gives the client a new one, with the values in it. What they stand for is decided when it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from penstock.dbapi.many import fold
from penstock.errors import SchemaError
from penstock.rows.parameters import Moment, Parameters, encode
from penstock.sql.parser import read
from services.store import flightsql
from services.store.flight_tickets import TicketRequest, read_ticket

QUERY = "CommandPreparedStatementQuery"
UPDATE = "CommandPreparedStatementUpdate"
#: of the values of one statement
_MOST_BYTES = 4 << 20


def created(request: TicketRequest, answer: pa.Schema | None, parameters: pa.Schema) -> bytes:
    """Return the answer to CreatePreparedStatement.

    Args:
        answer: what the statement gives; None: no rows, or nobody knows yet.
        parameters: what it takes.
    """
    shape = b"" if answer is None else bytes(answer.serialize())
    return flightsql.created(request.to_bytes(), shape, bytes(parameters.serialize()))


def handle_of(command: flightsql.FlightCommand) -> TicketRequest:
    """Return the statement that a command's handle stands for. Raises ValueError."""
    return read_ticket(command.content(1) or b"")


def bind(command: flightsql.FlightCommand, reader: flight.MetadataRecordBatchReader) -> bytes:
    """Return the answer to values for a query: its new handle.

    Raises:
        PenstockError: its text cannot be read, or a value cannot be bound.
        ValueError: it has another handle than ours.
    """
    request = handle_of(command)
    found = list(_batches(reader))
    if sum(batch.num_rows for batch in found) != 1:
        raise SchemaError(
            "a query takes one row of parameters",
            code="E_PARAMETER",
            hint="run the statement once for each row",
        )
    bound = next(_with_values(request, found))
    return flightsql.bound(bound.to_bytes())


def updates(
    command: flightsql.FlightCommand, reader: flight.MetadataRecordBatchReader
) -> Iterator[TicketRequest]:
    """Yield what a statement is run as for each row of values; rows of an INSERT go together.

    Raises:
        PenstockError: its text cannot be read, or a value cannot be bound.
        ValueError: it has another handle than ours.
    """
    request = handle_of(command)
    takes = any(statement.placeholders for statement in read(request.sql))
    # where there is nothing to bind, some drivers send not even a schema
    found = list(_batches(reader)) if takes and request.parameters is None else []
    if not found:
        yield request
        return
    bound = list(_with_values(request, found))
    folded = None
    if all(isinstance(one.parameters, list) for one in bound):
        folded = fold(request.sql, [one.parameters for one in bound])
    if folded is None:
        yield from bound
        return
    for sql, values in folded:
        yield replace(request, sql=sql, parameters=values)


def _with_values(request: TicketRequest, batches: list[pa.RecordBatch]) -> Iterator[TicketRequest]:
    """Yield the statement with each row of values."""
    names = any(h.name for statement in read(request.sql) for h in statement.placeholders)
    for batch in batches:
        columns = [_values(column) for column in batch.columns]
        for at in range(batch.num_rows):
            row = [column[at] for column in columns]
            given: Parameters = row
            if names:
                given = dict(zip(batch.schema.names, row, strict=True))
            yield replace(request, parameters=encode(given))


def _batches(reader: flight.MetadataRecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches that have rows."""
    size = 0
    while True:
        try:
            batch = reader.read_chunk().data
        except StopIteration:
            return
        size += batch.nbytes
        if size > _MOST_BYTES:
            raise SchemaError(f"parameters have more than {_MOST_BYTES} bytes", code="E_TOO_LARGE")
        # what a client sends is not to be believed
        batch.validate(full=True)
        if batch.num_rows:
            yield batch


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column; times keep their nanoseconds."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return list(column.to_pylist())
    if kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    texts = column.cast(pa.string()).to_pylist()
    return [None if text is None else Moment(text) for text in texts]
