"""Results of statements in the forms that clients ask for: TDengine's REST JSON, or an Arrow
stream.

Owns the mapping from Arrow types to TDengine's type names and how each value looks in JSON. Refuses
nothing: whatever a query gives can be shown.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from gateway import times
from penstock.types import ColumnType

#: a field's metadata may say its exact type, as ColumnType prints it
TYPE_KEY = b"penstock.type"
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


@dataclass(frozen=True)
class Affected:
    """A statement that gives no rows."""

    rows: int = 0


Answer: TypeAlias = Affected | pa.Table


def table_of(
    columns: Sequence[tuple[str, ColumnType]], rows: Sequence[Sequence[Any]], precision: str = "ms"
) -> pa.Table:
    """A small table made here (SHOW, DESCRIBE, …); TIMESTAMP values are ticks."""
    arrays = []
    fields = []
    for i, (name, kind) in enumerate(columns):
        arrow = kind.arrow(precision)
        arrays.append(pa.array([row[i] for row in rows], arrow))
        fields.append(pa.field(name, arrow, metadata={TYPE_KEY: str(kind).encode()}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_tdengine(
    answer: Answer,
    *,
    tz: str = "UTC",
    objects: bool = False,
    timing: int | None = None,
    notices: Sequence[str] = (),
) -> bytes:
    """The body of a good `/rest/sql` answer; *objects* is its `row_with_meta`, *timing* nanoseconds
    to report.
    """
    if isinstance(answer, Affected):
        meta: list[list[Any]] = [["affected_rows", "INT", 4]]
        data: list[Any] = [[answer.rows]]
    else:
        # column by column: a query may give two of one name
        found = [pl.Series(values=column) for column in answer.columns]
        meta = [_meta(field, series) for field, series in zip(answer.schema, found, strict=True)]
        columns = [
            _plain(series, kind, tz).to_list()
            for series, (_, kind, _) in zip(found, meta, strict=True)
        ]
        data = list(zip(*columns, strict=True)) if columns else []
    if objects:
        data = [dict(zip((m[0] for m in meta), row, strict=True)) for row in data]
    body: dict[str, Any] = {"code": 0, "column_meta": meta, "data": data, "rows": len(data)}
    if timing is not None:
        body["timing"] = timing
    if notices:
        body["notices"] = list(notices)
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def to_arrow(answer: Answer) -> bytes:
    """An Arrow IPC stream; a statement without rows gives one row, `affected_rows`."""
    table = (
        pa.table({"affected_rows": pa.array([answer.rows], pa.int64())})
        if isinstance(answer, Affected)
        else answer
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _meta(field: pa.Field, series: pl.Series) -> list[Any]:
    declared = (field.metadata or {}).get(TYPE_KEY)
    if declared:
        text = declared.decode()
        base, _, rest = text.partition("(")
        sizes = [int(x) for x in rest.rstrip(")").split(",")] if rest else []
        if base == "DECIMAL":
            return [field.name, text, 16 if sizes[0] > 18 else 8]
        return [field.name, base, sizes[0] if sizes else ColumnType(base).bytes()]
    dtype = series.dtype
    if isinstance(dtype, pl.Datetime | pl.Date):
        return [field.name, "TIMESTAMP", 8]
    if isinstance(dtype, pl.Decimal):
        return [
            field.name,
            f"DECIMAL({dtype.precision},{dtype.scale})",
            16 if (dtype.precision or 38) > 18 else 8,
        ]
    if dtype == pl.Binary:
        return [field.name, "VARBINARY", max(_MIN_TEXT, int(series.bin.size().max() or 0))]  # type: ignore[arg-type]
    if type(dtype) in _NAMES:
        return [field.name, *_NAMES[type(dtype)]]
    text_bytes = series.str.len_bytes().max() if dtype == pl.String else None
    return [field.name, "VARCHAR", max(_MIN_TEXT, int(text_bytes or 0))]  # type: ignore[arg-type]


def _plain(series: pl.Series, kind: str, tz: str) -> pl.Series:
    """Values that json.dumps writes as TDengine does."""
    dtype = series.dtype
    if isinstance(dtype, pl.Datetime):
        return times.render(series.cast(pl.Int64), dtype.time_unit, tz)
    if isinstance(dtype, pl.Date):
        return times.render(series.cast(pl.Datetime("ms")).cast(pl.Int64), "ms", tz)
    if isinstance(dtype, pl.Decimal) or dtype == pl.Int128:
        return series.cast(pl.String)
    if dtype == pl.Binary:
        return series.bin.encode("hex")
    if dtype.is_float():
        return (
            series.set(series.is_nan() | series.is_infinite(), None)
            if (series.is_nan() | series.is_infinite()).any()
            else series
        )
    if kind == "JSON" and dtype == pl.String:
        return pl.Series(
            series.name, [None if v is None else json.loads(v) for v in series], dtype=pl.Object
        )
    if dtype.is_nested() or dtype == pl.Time or dtype == pl.Duration:
        return pl.Series(
            series.name, [None if v is None else str(v) for v in series], dtype=pl.String
        )
    return series
