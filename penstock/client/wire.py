"""The protocol between client and gateway: rows as Arrow, errors as exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from penstock.client.http import Answer
from penstock.client.values import without_nan
from penstock.errors import (
    SchemaError,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

ARROW = "application/vnd.apache.arrow.stream"
#: rows of one request or frame; more are cut
CHUNK_ROWS = 50_000
#: column of a stream table that holds each row's index
ROW_ID = "row_id"

Rows: TypeAlias = (
    "Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch | pl.DataFrame | pd.DataFrame"
)


def to_table(rows: Rows) -> pa.Table:
    """Rows in any of the accepted forms as an Arrow table, with NULL for NaN; objects are not among
    them (see `is_objects`).

    Raises:
        SchemaError: they are no table, or one that Arrow has no types for.
    """
    try:
        if isinstance(rows, pa.Table):
            return without_nan(rows)
        if isinstance(rows, pa.RecordBatch):
            return without_nan(pa.Table.from_batches([rows]))
        if hasattr(rows, "to_arrow"):
            return without_nan(rows.to_arrow())
        if hasattr(rows, "iloc"):
            return without_nan(pa.Table.from_pandas(rows, preserve_index=False))
    except (pa.ArrowException, ValueError, TypeError) as wrong:
        raise SchemaError(
            "the rows are no table that can be written", code="E_ROW", detail=str(wrong)[:200]
        ) from None
    raise SchemaError(
        f"rows of type {type(rows).__name__} cannot be written",
        hint="a list of dicts, or an Arrow, polars or pandas table",
    )


def is_objects(rows: Rows) -> bool:
    """Tell whether *rows* is a list of dictionaries."""
    return isinstance(rows, (list, tuple))


def chunks(table: pa.Table, size: int) -> Iterator[pa.Table]:
    """The table in pieces of at most *size* rows."""
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)


def to_stream(table: pa.Table, metadata: Mapping[str, str] | None = None) -> bytes:
    """An Arrow IPC stream, with *metadata* in its schema."""
    table = table.replace_schema_metadata(dict(metadata) if metadata else None)
    # Arrow's own buffer: through a Python file each piece of a stream costs a call
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def notices_of(answer: Answer) -> tuple[str, ...]:
    """What the gateway has to say about a request that it took."""
    return answer.values("Penstock-Notice")


def from_stream(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
