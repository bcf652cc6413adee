"""Rows that another deployment sends, brought into the form of the table that they go to."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from penstock.catalog.model import Table
from penstock.codec import readable
from penstock.errors import SchemaError
from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS

#: what rows have beside the table's columns
_SYSTEM_COLUMNS = frozenset({"_op", "tbname", "_time", "_offset", "_row"})


def conform(rows: pa.Table, table: Table) -> pl.DataFrame:
    """Return *rows* in the table's own types, times as ticks; columns that are missing are NULL.
    Raises SchemaError (`E_ROW`).
    """
    given = {name.lower(): name for name in rows.column_names}
    _check_names(given, table)
    arrays = _columns(rows, given, table)
    time = arrays.get(table.time_column)
    if time is None or time.null_count:
        raise SchemaError(f'a row has no time in "{table.time_column}"', code="E_ROW")
    tbname = _tbname(rows, given, table)
    frame = pl.DataFrame(
        {"tbname": tbname, **{name: pl.Series(array) for name, array in arrays.items()}}
    )
    if "_op" in given:
        op = pl.Series(rows.column("_op").cast(pa.int8()))
    else:
        op = pl.repeat(0, rows.num_rows, dtype=pl.Int8, eager=True)
    frame = frame.with_columns(op.alias("_op"))
    for name in ("_offset", "_row"):
        if name in given:
            frame = frame.with_columns(pl.Series(rows.column(name).cast(pa.int64())).alias(name))
    return frame


def _check_names(given: dict[str, str], table: Table) -> None:
    """Refuse columns that the table does not have. Raises SchemaError."""
    own = {c.name.lower() for c in (*table.columns, *table.tags)}
    unknown = sorted(given.keys() - _SYSTEM_COLUMNS - own)
    if unknown:
        raise SchemaError(
            f"{table.name} has no column {unknown[0]}",
            code="E_ROW",
            hint="was the table altered?",
        )


def _columns(
    rows: pa.Table, given: dict[str, str], table: Table
) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Return the table's columns that *rows* have, by name. Raises SchemaError."""
    arrays: dict[str, pa.ChunkedArray | pa.Array] = {}
    for column in (*table.columns, *table.tags):
        name = given.get(column.name.lower())
        if name is None and column == table.columns[0]:
            name = given.get("_time")
        if name is None:
            continue
        array = _cast(rows.column(name), column, table.precision)
        values = pl.Series(array)
        readable.check(values, column, TIME_LIMITS[table.precision])
        if column.type.sized:
            _check_length(values, column.name, column.type.kind, column.type.length)
        arrays[column.name] = array
    return arrays


def _cast(array: pa.ChunkedArray, column: Column, precision: str) -> pa.ChunkedArray | pa.Array:
    """Return *array* in the type of *column*, times as ticks. Raises SchemaError."""
    kind = column.type.arrow(precision)
    try:
        array = array if array.type == kind else array.cast(kind)
        return array.cast(pa.int64()) if column.type.kind == "TIMESTAMP" else array
    except pa.ArrowException as wrong:
        raise SchemaError(
            f'column "{column.name}" is {column.type}', code="E_ROW", detail=str(wrong)[:200]
        ) from None


def _tbname(rows: pa.Table, given: dict[str, str], table: Table) -> pl.Series:
    """Return the child table of each row. Raises SchemaError when a supertable's rows lack it."""
    if table.kind != "stable":
        return pl.repeat(table.name, rows.num_rows, dtype=pl.String, eager=True)
    if "tbname" not in given or rows.column(given["tbname"]).null_count:
        raise SchemaError(
            f"rows of supertable {table.name} name their child table in tbname", code="E_ROW"
        )
    return pl.Series(rows.column(given["tbname"]).cast(pa.string()))


def _check_length(values: pl.Series, name: str, kind: str, length: int) -> None:
    if kind == "VARBINARY":
        sizes = values.bin.size()
    elif kind == "NCHAR":
        sizes = values.str.len_chars()
    else:
        sizes = values.str.len_bytes()
    longest = sizes.max()
    if longest is not None and int(longest) > length:  # type: ignore[arg-type]
        raise SchemaError(
            f'a value of column "{name}" is longer than {kind}({length})',
            code="E_ROW",
            detail=str(longest),
        )
