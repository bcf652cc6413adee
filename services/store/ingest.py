"""Bulk ingestion of Flight SQL (`CommandStatementIngest`): a table is made if that is asked for,
and rows are written by a gateway, some at a time.

Rows that were written before an error stay: the same rows once more replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.client.wire import to_table
from penstock.duck.types import column_type
from penstock.errors import SchemaError
from penstock.sql import statements as st
from penstock.types import ColumnType
from services.store.flight_lists import CATALOG
from services.store.flightsql import FlightCommand

COMMAND = "CommandStatementIngest"
#: rows and bytes of one request to a gateway
_ROWS = 50_000
_BYTES = 4 << 20
_TIME = ColumnType("TIMESTAMP")
#: what the command says about a table that is not there …
_CREATE = 1
#: … and about one that is
_APPEND = 2
_REPLACE = 3


@dataclass(frozen=True)
class IngestTarget:
    """Where rows go.

    Attributes:
        create: the table is made if it is not there.
        append: it may be there already.
        replace: one that is there goes first, with its rows.
    """

    database: str
    table: str
    create: bool
    append: bool
    replace: bool

    @property
    def name(self) -> st.Name:
        return st.Name(self.table, self.database)


def read_ingest(command: FlightCommand, database: str) -> IngestTarget:
    """Read the command; *database* is the default one. Raises SchemaError, ValueError."""
    if command.number(5):
        raise _refusal("there are no temporary tables", "ingest into a table of a database")
    if command.content(6):
        raise _refusal("there are no transactions", "ingest with autocommit")
    home = command.text(3) or _database_as_catalog(command) or database
    table = command.text(2) or ""
    if not home or not table:
        what = "table" if home else "database"
        hint = "give the database as db_schema_name, or in the header `database`"
        raise SchemaError(f"no {what} is named to ingest into", code="E_WHICH_DATABASE", hint=hint)
    options = command.message(1)
    return IngestTarget(
        home,
        table,
        create=options.number(1) == _CREATE,
        append=options.number(2) in (0, _APPEND),
        replace=options.number(2) == _REPLACE,
    )


def _database_as_catalog(command: FlightCommand) -> str:
    """Return the catalog that is named, if it is not ours: some drivers know databases as those."""
    catalog = command.text(4) or CATALOG
    return "" if catalog == CATALOG else catalog


def definitions(ingest: IngestTarget, schema: pa.Schema) -> Iterator[st.Statement]:
    """Yield what is run before there are rows. Raises SchemaError."""
    if ingest.replace:
        yield st.Drop(kind="table", names=(ingest.name,), if_exists=(True,))
    if ingest.create:
        columns = tuple(st.ColumnDef(f.name, _type(f)) for f in _time_first(schema))
        yield st.CreateTable(table=ingest.name, columns=columns, if_not_exists=ingest.append)


def write(batches: Iterable[pa.RecordBatch], send: Callable[[pa.Table], int]) -> int:
    """Write rows by *send*; return how many were written. Raises PenstockError, ArrowInvalid."""
    count = 0
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, _ROWS):
            part = batch.slice(start, _ROWS)
            if waiting and (rows + part.num_rows > _ROWS or size + part.nbytes > _BYTES):
                count += send(_together(waiting))
                waiting = []
                rows = size = 0
            waiting.append(part)
            rows += part.num_rows
            size += part.nbytes
    return count + (send(_together(waiting)) if waiting else 0)


def _together(batches: list[pa.RecordBatch]) -> pa.Table:
    return to_table(pa.Table.from_batches(batches))


def _time_first(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns with the first time before the others: it is a table's first column."""
    times = (i for i, f in enumerate(schema) if column_type(f.type) == _TIME)
    at = next(times, 0)
    fields = list(schema)
    return fields[at : at + 1] + fields[:at] + fields[at + 1 :]


def _type(field: pa.Field) -> ColumnType:
    kind = column_type(field.type)
    if kind is not None and kind.kind != "NULL":
        return kind
    raise SchemaError(
        f'column "{field.name}" has the type {field.type}, which no column can have',
        code="E_ROW",
        hint="convert it, or create the table first",
    )


def _refusal(message: str, hint: str) -> SchemaError:
    return SchemaError(message, code="E_UNSUPPORTED_STATEMENT", hint=hint)
