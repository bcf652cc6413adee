"""Rows as clients send them, made into one frame.

Owns which column a key means, and how values become a column of its type. Types are never guessed:
text is never read as a number. All conversions run on whole columns; only after one failed does a
loop look for the row to blame.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import InvalidOperation
from typing import Any

import polars as pl
import pyarrow as pa

from gateway import named_nulls, times
from gateway.layout import OP, TBNAME, RowLayout
from gateway.row_error import RowError, abbreviate
from penstock import names
from penstock.rows import python_values
from penstock.rows.versions import MERGE, UPSERT
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.sql.words import TIME_FORMS
from penstock.types import ColumnType, to_ticks

#: what values that do not fit a column's type make of it
#: what values that do not fit a column's type make of it
_UNFIT = (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError)


def from_objects(
    layout: RowLayout,
    rows: Sequence[Mapping[str, Any]],
    *,
    child: str | None = None,
    tz: tzinfo = UTC,
) -> pl.DataFrame:
    """Return a frame of rows given as JSON objects. Raises RowError."""
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RowError("is not an object", row=i)
    if not rows:
        raise RowError("there are no rows")
    if not any(rows):
        raise RowError("is empty", row=0, hint="a row is an object with a value for each column")
    first = rows[0].keys()
    same = all(row.keys() == first for row in rows)
    keys = list(first) if same else list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    given = {key: [row.get(key) for row in rows] for key in keys}
    uneven = None if same else _Uneven(keys, rows)
    return from_columns(layout, given, child=child, tz=tz, uneven=uneven)


@dataclass(frozen=True)
class _Uneven:
    """Rows that do not all have the same keys."""

    keys: Sequence[str]
    rows: Sequence[Mapping[str, Any]]

    def partial(self, layout: RowLayout) -> list[bool]:
        """Tell which rows are without a key for every column: what they leave out (which is not the
        same as null) keeps its stored value.
        """
        wanted = {c.name.lower() for c in layout.columns}
        columns = [k for k in self.keys if k.lower() in wanted]
        return [sum(k in row for k in columns) < len(wanted) for row in self.rows]

    def have(self, column: str) -> list[bool]:
        """Tell which rows have a key for *column*."""
        key = next(k for k in self.keys if k.lower() == column.lower())
        return [key in row for row in self.rows]


def from_columns(
    layout: RowLayout,
    given: Mapping[str, Sequence[Any]],
    *,
    child: str | None = None,
    tz: tzinfo = UTC,
    uneven: _Uneven | None = None,
) -> pl.DataFrame:
    """Return a frame of rows given as columns of Python values."""
    height = len(next(iter(given.values())))
    ready: dict[str, pl.Series] = {}
    for key, values in given.items():
        target = _target(layout, key, ready)
        if target is None:
            ready[TBNAME] = _column(TBNAME, values, pl.String(), python_values.text)
            continue
        ready[target.name] = _series(layout, target, values, tz)
    return _finish(layout, ready, height, child, uneven)


def from_arrow(layout: RowLayout, table: pa.Table, *, child: str | None = None) -> pl.DataFrame:
    """Return a frame of rows given as an Arrow table, whose types must fit without loss. Raises
    RowError.
    """
    if table.num_rows == 0:
        raise RowError("there are no rows")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    ready: dict[str, pl.Series] = {}
    for series in frame.get_columns():
        target = _target(layout, series.name, ready)
        if target is None:
            ready[TBNAME] = _cast(series, pl.String(), TBNAME, "text")
        elif target.type.kind == "TIMESTAMP":
            ready[target.name] = _ticks(series, layout.precision, target.name)
        else:
            ready[target.name] = _cast(series, target.type.polars(), target.name, str(target.type))
    return _finish(layout, ready, frame.height, child, None)


def _target(layout: RowLayout, key: str, ready: Mapping[str, Any]) -> Column | None:
    """Return the column a key means; None for the table's name."""
    if key.lower() == TBNAME:
        return None
    found = layout.find(key)
    if found is None:
        raise _unknown_column(layout, key)
    if found.name in ready:
        raise RowError("is given twice", column=found.name)
    return found


def _unknown_column(layout: RowLayout, key: str) -> RowError:
    known = [c.name.lower() for c in layout.fields] + [TBNAME]
    close = difflib.get_close_matches(key.lower(), known, n=1)
    if close:
        hint = f'did you mean "{close[0]}"?'
    else:
        hint = f"columns are {', '.join(c.name for c in layout.fields)}"
    return RowError(
        f'{layout.database}.{layout.table} has no column "{key[:192]}"',
        column=key[:192],
        hint=hint,
    )


def column_value(layout: RowLayout, target: Column, value: Any, tz: tzinfo) -> Any:
    """Return *value* as a row of *target* has it. Raises RowError: a column cannot have it."""
    stored = _series(layout, target, [value], tz)[0]
    # a FLOAT keeps the digits that were given, which it has in no other type
    return value if target.type.kind == "FLOAT" else stored


def _series(layout: RowLayout, target: Column, values: Sequence[Any], tz: tzinfo) -> pl.Series:
    """Return values of JSON as a column of the type of *target*."""
    kind = target.type
    if kind.kind == "TIMESTAMP":
        plain = bool not in set(map(type, values))  # polars takes true for 1
        with contextlib.suppress(*_UNFIT):
            if plain:
                return pl.Series(target.name, values, dtype=pl.Int64, strict=True)
        return _each(target, values, pl.Int64(), lambda v: times.one(v, layout.precision, tz))
    if kind.kind == "DECIMAL":
        return _each(
            target,
            values,
            kind.polars(),
            lambda v: python_values.decimal(v, kind.precision, kind.scale),
        )
    if kind.kind == "VARBINARY":
        return _each(target, values, kind.polars(), _binary)
    if kind.kind == "JSON":
        return _each(target, values, kind.polars(), _json)
    return _column(target.name, values, kind.polars(), lambda v: _scalar(v, kind), str(kind))


def _column(
    name: str,
    values: Sequence[Any],
    dtype: pl.DataType,
    convert: Callable[[Any], Any],
    kind: str = "text",
) -> pl.Series:
    try:
        return pl.Series(name, values, dtype=dtype, strict=True)
    except _UNFIT:
        return _each(Column(name, ColumnType(kind)), values, dtype, convert)


def _each(
    target: Column, values: Sequence[Any], dtype: pl.DataType, convert: Callable[[Any], Any]
) -> pl.Series:
    """Value by value: the way for odd values, and the one that finds the row to blame."""
    made: list[Any] = []
    for i, value in enumerate(values):
        try:
            made.append(None if value is None else convert(value))
            pl.Series(values=made[-1:], dtype=dtype, strict=True)
        except (*_UNFIT, InvalidOperation, RecursionError) as wrong:
            hint = TIME_FORMS if target.type.kind == "TIMESTAMP" else ""
            raise RowError(
                f"{abbreviate(value)} is not {target.type.kind}",
                row=i,
                column=target.name,
                hint=hint,
            ) from wrong
    return pl.Series(target.name, made, dtype=dtype, strict=True)


def _scalar(value: Any, kind: ColumnType) -> Any:
    if kind.kind == "BOOL" and value in (0, 1):
        return bool(value)
    if kind.integer and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _binary(value: Any) -> bytes:
    """Return bytes as JSON has them: {"$bytes": "00ff"} is what clients send."""
    if isinstance(value, dict) and len(value) == 1 and python_values.BYTES in value:
        return bytes.fromhex(python_values.text(value[python_values.BYTES]))
    return python_values.binary(value)


def _cast(series: pl.Series, dtype: pl.DataType, name: str, kind: str) -> pl.Series:
    """Cast a column of Arrow without loss. Raises RowError."""
    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == dtype or series.dtype == pl.Null:
        return series.cast(dtype).alias(name)
    number = series.dtype.is_numeric() or series.dtype == pl.Boolean
    if number and dtype.is_numeric():
        return _cast_number(series, dtype, name, kind)
    if series.dtype == pl.String and dtype == pl.Binary:
        return series.cast(dtype).alias(name)
    raise RowError(f"Arrow type {series.dtype} does not fit {kind}", column=name)


def _cast_number(series: pl.Series, dtype: pl.DataType, name: str, kind: str) -> pl.Series:
    cast = series.cast(dtype, strict=False)
    bad = cast.is_null() & series.is_not_null()
    if dtype.is_integer() and series.dtype.is_float():
        bad = bad | (cast.cast(series.dtype) != series).fill_null(False)
    if not bad.any():
        return cast.alias(name)
    row = int(bad.arg_true()[0])
    raise RowError(f"{abbreviate(series[row])} is not {kind}", row=row, column=name)


def _ticks(series: pl.Series, precision: str, name: str) -> pl.Series:
    if isinstance(series.dtype, pl.Datetime) or series.dtype == pl.Date:
        return to_ticks(series, precision).alias(name)
    if series.dtype == pl.Boolean:
        raise RowError("Arrow type Boolean does not fit TIMESTAMP", column=name)
    return _cast(series, pl.Int64(), name, "TIMESTAMP")


def _finish(
    layout: RowLayout,
    ready: dict[str, pl.Series],
    height: int,
    child: str | None,
    uneven: _Uneven | None,
) -> pl.DataFrame:
    """Put missing columns in, in the table's order, with the operation each row is."""
    _complete_key(layout, ready, height, child)
    absent = any(c.name not in ready for c in layout.columns)
    columns = [ready[TBNAME].alias(TBNAME), _operations(layout, height, uneven, absent=absent)]
    for field in layout.fields:
        column = ready.get(field.name)
        if column is None:
            column = _repeat(field.name, None, field.type.polars(), height)
        columns.append(column)
    frame = pl.DataFrame(columns)
    if uneven is None and not absent:
        return frame
    given = [c.name for c in layout.values if c.name in ready]
    return named_nulls.note(frame, given, None if uneven is None else uneven.have)


def _complete_key(
    layout: RowLayout, ready: dict[str, pl.Series], height: int, child: str | None
) -> None:
    """Put in what rows need not say: times and numbers of a stream's, the only child table."""
    if layout.stamped and names.EVENT_NUMBER not in ready:
        _stamp(layout, ready, height)
    if layout.time not in ready:
        raise RowError("is missing", row=0, column=layout.time, hint="every row has its time")
    if layout.plain or child is not None:
        ready[TBNAME] = _repeat(TBNAME, child or layout.table, pl.String(), height)
    elif TBNAME not in ready:
        hint = 'rows of a supertable name their child table: {"tbname": "d1", …}'
        raise RowError("is missing", row=0, column=TBNAME, hint=hint)


def _operations(
    layout: RowLayout, height: int, uneven: _Uneven | None, *, absent: bool
) -> pl.Series:
    """Return the operation of each row: one without all columns merges into what is stored."""
    if absent or uneven is None:
        return _repeat(OP, MERGE if absent else UPSERT, pl.Int8(), height)
    return pl.Series(OP, [MERGE if p else UPSERT for p in uneven.partial(layout)], dtype=pl.Int8)


def _repeat(name: str, value: Any, dtype: pl.DataType, height: int) -> pl.Series:
    return pl.Series(name, [value], dtype=dtype).new_from_index(0, height)


class _Numbers:
    """Numbers that only grow, near the nanoseconds of now: what tells rows of one moment apart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0

    def take(self, count: int) -> int:
        """Return the first of *count* numbers that nobody else gets."""
        with self._lock:
            first = max(self._next, time.time_ns())
            self._next = first + count
            return first


_numbers = _Numbers()


def _stamp(layout: RowLayout, ready: dict[str, pl.Series], height: int) -> None:
    """Give time and number to rows that come without them: a stream made by CREATE STREAM name
    (columns) without a time column.
    """
    first = _numbers.take(height)
    ready[names.EVENT_NUMBER] = pl.int_range(
        first, first + height, eager=True, dtype=pl.Int64
    ).alias(names.EVENT_NUMBER)
    if layout.time not in ready:
        now = first * TICKS_PER_SECOND[layout.precision] // 10**9
        ready[layout.time] = pl.repeat(now, height, dtype=pl.Int64, eager=True).alias(layout.time)
