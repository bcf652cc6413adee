"""A whole table in a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from penstock.cli.options import messages
from penstock.client.connection import Connection
from penstock.sql.words import in_backticks

#: rows asked for at once: a slice of time is halved until it holds no more
SLICE_ROWS = 1_000_000


def write(client: Connection, table: str, out: Path) -> None:
    """Write all rows of *table* to *out*, which is there only when it is whole."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
    )
    with Progress(*columns, console=messages()) as progress:
        task = progress.add_task(table, total=None)
        written = 0
        partial = out.with_name(out.name + ".part")
        with pq.ParquetWriter(partial, _schema(client, table), compression="zstd") as writer:
            for rows in slices(client, table):
                writer.write_table(rows.cast(writer.schema))
                written += rows.num_rows
                progress.update(task, completed=written)
        partial.replace(out)
        progress.update(task, total=written)
    messages().print(f"{written} rows in {out}")


def slices(client: Connection, table: str, most: int = SLICE_ROWS) -> Iterator[pa.Table]:
    """The rows of *table* in pieces of at most *most* rows, each a range of time, oldest first.

    Rows that share one moment stay together, however many.
    """
    key = in_backticks(_schema(client, table).names[0])
    whole = client.query(
        f"SELECT count(*) AS n, min({key}) AS a, max({key}) AS b FROM {table}"
    ).table
    if whole["n"][0].as_py() == 0:
        return
    first, last = (whole[name].cast(pa.int64())[0].as_py() for name in ("a", "b"))
    waiting = [(first, last)]
    while waiting:
        low, high = waiting.pop()
        where = f"WHERE {key} >= {low} AND {key} <= {high}"
        count = client.query(f"SELECT count(*) AS n FROM {table} {where}").table["n"][0].as_py()
        if count > most and low < high:
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]
        elif count:
            yield client.query(f"SELECT * FROM {table} {where} ORDER BY {key}").table


def _schema(client: Connection, table: str) -> pa.Schema:
    schema = client.query(f"SELECT * FROM {table} LIMIT 0").table.schema
    return schema.remove_metadata()
