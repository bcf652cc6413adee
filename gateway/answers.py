"""Results of statements in the forms that clients ask for: TDengine's REST JSON, or an Arrow
stream.

Owns the mapping from Arrow types to TDengine's type names and how each value looks in JSON.
Whatever a query gives can be shown.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from gateway import times
from penstock.types import ColumnType

#: a field's metadata may say its exact type, as ColumnType prints it
TYPE_KEY = b"penstock.type"
#: where the store says the column type of a field of its answer
_STORE_KEY = b"type"
#: types whose length no value tells
_SIZED = {"VARCHAR": pl.String, "NCHAR": pl.String, "VARBINARY": pl.Binary}
_NAMES: dict[Any, tuple[str, int]] = {
    pl.Boolean: ("BOOL", 1),
    pl.Int8: ("TINYINT", 1),
    pl.Int16: ("SMALLINT", 2),
    pl.Int32: ("INT", 4),
    pl.Int64: ("BIGINT", 8),
    pl.UInt8: ("TINYINT UNSIGNED", 1),
    pl.UInt16: ("SMALLINT UNSIGNED", 2),
    pl.UInt32: ("INT UNSIGNED", 4),
    pl.UInt64: ("BIGINT UNSIGNED", 8),
    pl.Float32: ("FLOAT", 4),
    pl.Float64: ("DOUBLE", 8),
    pl.Int128: ("DECIMAL", 16),
    pl.Null: ("BOOL", 1),
}
_MIN_TEXT = 1
#: rows of a list that are Python's at a time; the rest are Arrow's
_ROWS_AT_A_TIME = 20_000


@dataclass(frozen=True)
class Affected:
    """A statement that gives no rows."""

    rows: int = 0


Answer: TypeAlias = Affected | pa.Table


def table_of(
    columns: Sequence[tuple[str, ColumnType]], rows: Sequence[Sequence[Any]], precision: str = "ms"
) -> pa.Table:
    """Return a small table made here (SHOW, DESCRIBE, …); TIMESTAMP values are ticks."""
    arrays = []
    fields = []
    for i, (name, kind) in enumerate(columns):
        arrow = kind.arrow(precision)
        arrays.append(pa.array([row[i] for row in rows], arrow))
        fields.append(pa.field(name, arrow, metadata={TYPE_KEY: str(kind).encode()}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def gather(
    columns: Sequence[tuple[str, ColumnType]], rows: Iterator[Sequence[Any]], precision: str = "ms"
) -> pa.Table:
    """Do what `table_of` does, without ever having all rows as Python's values."""
    made = [table_of(columns, [], precision)]
    while some := list(islice(rows, _ROWS_AT_A_TIME)):
        made.append(table_of(columns, some, precision))
    return pa.concat_tables(made)


def to_tdengine(
    answer: Answer,
    *,
    tz: str = "UTC",
    objects: bool = False,
    timing: int | None = None,
    notices: Sequence[str] = (),
) -> bytes:
    """Return the body of a good `/rest/sql` answer; *objects* is its `row_with_meta`, *timing*
    nanoseconds to report.
    """
    if isinstance(answer, Affected):
        meta: list[list[Any]] = [["affected_rows", "INT", 4]]
        data: list[Any] = [[answer.rows]]
    else:
        meta, data = columns_and_rows(answer, tz)
    if objects:
        data = [dict(zip((m[0] for m in meta), row, strict=True)) for row in data]
    body: dict[str, Any] = {"code": 0, "column_meta": meta, "data": data, "rows": len(data)}
    if timing is not None:
        body["timing"] = timing
    if notices:
        body["notices"] = list(notices)
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def columns_of(table: pa.Table) -> list[tuple[str, str]]:
    """Return the name and type of each column, as far as a table without rows tells it."""
    return [(name, kind) for name, kind, _ in describe(table.slice(0, 0))]


def describe(table: pa.Table) -> list[list[Any]]:
    """Return the name, type and size in bytes of each column."""
    return _metas(table, _series_of(table))


def to_arrow(answer: Answer) -> bytes:
    """Return an Arrow IPC stream; a statement without rows gives one row, `affected_rows`."""
    table = _table_from(answer)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def to_parquet(answer: Answer) -> bytes:
    """Return a Parquet file with what `to_arrow` has."""
    sink = io.BytesIO()
    pq.write_table(_table_from(answer), sink, compression="zstd")
    return sink.getvalue()


def _table_from(answer: Answer) -> pa.Table:
    if isinstance(answer, Affected):
        return pa.table({"affected_rows": pa.array([answer.rows], pa.int64())})
    return answer


def columns_and_rows(table: pa.Table, tz: str | None) -> tuple[list[list[Any]], list[Any]]:
    """Return name, type and size of each column, and the rows as JSON has them.

    Args:
        tz: zone of times, which are texts; None: they are ticks.
    """
    # column by column: a query may give two of one name
    columns = _series_of(table)
    meta = _metas(table, columns)
    values = [
        _plain(series, kind, tz).to_list()
        for series, (_, kind, _) in zip(columns, meta, strict=True)
    ]
    return meta, list(zip(*values, strict=True)) if values else []


def _series_of(table: pa.Table) -> list[pl.Series]:
    return [pl.Series(values=column) for column in table.columns]


def _metas(table: pa.Table, columns: Sequence[pl.Series]) -> list[list[Any]]:
    return [_meta(field, series) for field, series in zip(table.schema, columns, strict=True)]


def _meta(field: pa.Field, series: pl.Series) -> list[Any]:
    declared = _find_declared_type(field, series)
    kind, size = _type_of(series) if declared is None else _parse_type(declared)
    return [field.name, kind, size]


def _find_declared_type(field: pa.Field, series: pl.Series) -> str | None:
    """Return the type that a table made here says, or the store of a text of known length."""
    metadata = field.metadata or {}
    if TYPE_KEY in metadata:
        return str(metadata[TYPE_KEY].decode())
    told = str(metadata.get(_STORE_KEY, b"").decode())
    kind, _, length = told.partition("(")
    # CAST(x AS VARCHAR) has no length, which is 0
    sized = kind in _SIZED and length.rstrip(")") not in ("", "0")
    return told if sized and series.dtype == _SIZED[kind] else None


def _parse_type(text: str) -> tuple[str, int]:
    base, _, rest = text.partition("(")
    sizes = [int(x) for x in rest.rstrip(")").split(",")] if rest else []
    if base == "DECIMAL":
        return text, _decimal_bytes(sizes[0])
    return base, sizes[0] if sizes else ColumnType(base).bytes()


def _type_of(series: pl.Series) -> tuple[str, int]:
    """Return the type of a column that no table declares."""
    dtype = series.dtype
    if isinstance(dtype, pl.Datetime | pl.Date):
        return "TIMESTAMP", 8
    if isinstance(dtype, pl.Decimal):
        kind = f"DECIMAL({dtype.precision},{dtype.scale})"
        return kind, _decimal_bytes(dtype.precision or 38)
    if dtype == pl.Binary:
        return "VARBINARY", _longest(series.bin.size())
    if type(dtype) in _NAMES:
        kind, size = _NAMES[type(dtype)]
        return kind, size
    return "VARCHAR", _longest(series.str.len_bytes()) if dtype == pl.String else _MIN_TEXT


def _decimal_bytes(precision: int) -> int:
    return 16 if precision > 18 else 8


def _longest(sizes: pl.Series) -> int:
    return max(_MIN_TEXT, int(sizes.max() or 0))  # type: ignore[arg-type]


def _plain(series: pl.Series, kind: str, tz: str | None) -> pl.Series:
    """Return values that json.dumps writes as TDengine does."""
    dtype = series.dtype
    if isinstance(dtype, pl.Date):
        return _plain_times(series.cast(pl.Datetime("ms")), "ms", tz)
    if isinstance(dtype, pl.Datetime):
        return _plain_times(series, dtype.time_unit, tz)
    if isinstance(dtype, pl.Decimal | pl.Int128):
        return series.cast(pl.String)
    if dtype == pl.Binary:
        return series.bin.encode("hex")
    if dtype.is_float():
        return _plain_numbers(series)
    if kind == "JSON" and dtype == pl.String:
        return _convert(series, json.loads, pl.Object())
    if dtype.is_nested() or isinstance(dtype, pl.Time | pl.Duration):
        return _convert(series, str, pl.String())
    return series


def _plain_times(series: pl.Series, precision: str, tz: str | None) -> pl.Series:
    ticks = series.cast(pl.Int64)
    return ticks if tz is None else times.render(ticks, precision, tz)


def _plain_numbers(series: pl.Series) -> pl.Series:
    """Return numbers with a point; JSON has no NaN and no infinities."""
    if series.dtype == pl.Float32:
        # the shortest digits that are this FLOAT; as a double it has some fifteen
        series = series.cast(pl.String).cast(pl.Float64)
    odd = series.is_nan() | series.is_infinite()
    return series.set(odd, None) if odd.any() else series


def _convert(series: pl.Series, convert: Callable[[Any], Any], dtype: pl.DataType) -> pl.Series:
    """Return *series* with each value that is not NULL converted."""
    return pl.Series(series.name, [None if v is None else convert(v) for v in series], dtype=dtype)
