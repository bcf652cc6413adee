"""Rows as clients send them, checked against their table and made into one frame.

Owns the rules a row must keep (known columns, types, sizes, time in range) and the words in which a
breach is told: always with the row's index and the column. All checks run on whole columns; only
after one failed does a loop look for the row to blame. Refuses to guess types: text is never read
as a number.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
from penstock import names, python_values
from penstock.catalog.stored import StoredNames
from penstock.errors import SchemaError
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType, to_ticks
from penstock.versions import MERGE, UPSERT

MAX_ROW_BYTES = 64 * 1024
TBNAME = "tbname"
OP = "_op"
#: what values that do not fit a column's type make of it
_UNFIT = (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError)


class RowError(SchemaError):
    """A row that does not fit its table; `row` counts from 0 within the request."""

    code = "E_ROW"

    def __init__(
        self, message: str, *, row: int = -1, column: str = "", detail: str = "", hint: str = ""
    ) -> None:
        where = ", ".join(
            x
            for x in (f"row {row}" if row >= 0 else "", f'column "{column}"' if column else "")
            if x
        )
        super().__init__(f"{where}: {message}" if where else message, detail=detail, hint=hint)
        self.row = row
        self.column = column

    def to_dict(self) -> dict[str, Any]:
        more = {"row": self.row if self.row >= 0 else None, "column": self.column or None}
        return {**super().to_dict(), **{k: v for k, v in more.items() if v is not None}}


@dataclass(frozen=True)
class Layout:
    """What rows of one table look like. `columns[0]` is the time column; `max_ahead` in ticks."""

    table_id: int
    schema_id: int
    database: str
    table: str
    topic: str
    partitions: int
    columns: tuple[Column, ...]
    tags: tuple[Column, ...]
    precision: str
    max_ahead: int
    plain: bool
    key_column: str | None = None
    #: its rows are other tables' rows: nothing can be written
    virtual: bool = False
    #: a stream table of a raft group: its leader writes the rows, and numbers them
    replicated: bool = False
    #: a topic of another Kafka: its messages become rows
    foreign: bool = False
    #: names of columns and tags in what Redis holds of rows
    stored: StoredNames = dataclasses.field(default_factory=dict, hash=False)

    @property
    def time(self) -> str:
        return self.columns[0].name

    @property
    def fields(self) -> tuple[Column, ...]:
        return self.columns + self.tags

    @property
    def values(self) -> tuple[Column, ...]:
        """Columns that are no part of the key."""
        return tuple(c for c in self.columns[1:] if c.name != self.key_column)

    @property
    def stamped(self) -> bool:
        """A stream without a time column: its first two columns, time and number, come by
        themselves.
        """
        return self.time == names.EVENT_TIME and self.key_column == names.EVENT_NUMBER

    def find(self, name: str) -> Column | None:
        """Column or tag called *name*, whatever its case."""
        low = name.lower()
        return next((c for c in self.fields if c.name.lower() == low), None)


def from_objects(
    layout: Layout, rows: Sequence[Mapping[str, Any]], *, child: str | None = None, tz: tzinfo = UTC
) -> pl.DataFrame:
    """Rows given as JSON objects. Raises RowError."""
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

    def partial(self, layout: Layout) -> list[bool]:
        """Rows without a key for every column: what they leave out (which is not the same as null)
        keeps its stored value.
        """
        wanted = {c.name.lower() for c in layout.columns}
        columns = [k for k in self.keys if k.lower() in wanted]
        return [sum(k in row for k in columns) < len(wanted) for row in self.rows]

    def named(self, column: str) -> list[bool]:
        """Tell which rows have a key for *column*."""
        key = next(k for k in self.keys if k.lower() == column.lower())
        return [key in row for row in self.rows]


def from_columns(
    layout: Layout,
    given: Mapping[str, Sequence[Any]],
    *,
    child: str | None = None,
    tz: tzinfo = UTC,
    uneven: _Uneven | None = None,
) -> pl.DataFrame:
    """Rows given as columns of Python values."""
    height = len(next(iter(given.values())))
    ready: dict[str, pl.Series] = {}
    for key, values in given.items():
        target = _target(layout, key, ready)
        if target is None:
            ready[TBNAME] = _column(TBNAME, values, pl.String(), python_values.text)
            continue
        ready[target.name] = _typed(layout, target, values, tz)
    return _finish(layout, ready, height, child, uneven)


def from_arrow(layout: Layout, table: pa.Table, *, child: str | None = None) -> pl.DataFrame:
    """Rows given as an Arrow table: types must fit without loss. Raises RowError."""
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


def _target(layout: Layout, key: str, ready: Mapping[str, Any]) -> Column | None:
    """The column a key means; None: the table's name."""
    if key.lower() == TBNAME:
        return None
    found = layout.find(key)
    if found is None:
        close = difflib.get_close_matches(
            key.lower(), [c.name.lower() for c in layout.fields] + [TBNAME], n=1
        )
        hint = (
            f'did you mean "{close[0]}"?'
            if close
            else f"columns are {', '.join(c.name for c in layout.fields)}"
        )
        raise RowError(
            f'{layout.database}.{layout.table} has no column "{key[:192]}"',
            column=key[:192],
            hint=hint,
        )
    if found.name in ready:
        raise RowError("is given twice", column=found.name)
    return found


def _typed(layout: Layout, target: Column, values: Sequence[Any], tz: tzinfo) -> pl.Series:
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
        return _each(
            target,
            values,
            kind.polars(),
            lambda v: v if isinstance(v, str) else json.dumps(v, separators=(",", ":")),
        )
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
            raise RowError(
                f"{_short(value)} is not {target.type.kind}", row=i, column=target.name
            ) from wrong
    return pl.Series(target.name, made, dtype=dtype, strict=True)


def _scalar(value: Any, kind: ColumnType) -> Any:
    if kind.kind == "BOOL" and value in (0, 1):
        return bool(value)
    if kind.integer and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _binary(value: Any) -> bytes:
    """Bytes as JSON has them: {"$bytes": "00ff"} is what clients send."""
    if isinstance(value, dict) and len(value) == 1 and python_values.BYTES in value:
        return bytes.fromhex(python_values.text(value[python_values.BYTES]))
    return python_values.binary(value)


def _cast(series: pl.Series, dtype: pl.DataType, name: str, kind: str) -> pl.Series:
    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == dtype or series.dtype == pl.Null:
        return series.cast(dtype).alias(name)
    number = series.dtype.is_numeric() or series.dtype == pl.Boolean
    whole = dtype.is_integer()
    if number and dtype.is_numeric():
        cast = series.cast(dtype, strict=False)
        bad = cast.is_null() & series.is_not_null()
        if whole and series.dtype.is_float():
            bad = bad | (cast.cast(series.dtype) != series).fill_null(False)
        if not bad.any():
            return cast.alias(name)
        row = int(bad.arg_true()[0])
        raise RowError(f"{_short(series[row])} is not {kind}", row=row, column=name)
    if series.dtype == pl.String and dtype == pl.Binary:
        return series.cast(dtype).alias(name)
    raise RowError(f"Arrow type {series.dtype} does not fit {kind}", column=name)


def _ticks(series: pl.Series, precision: str, name: str) -> pl.Series:
    if isinstance(series.dtype, pl.Datetime) or series.dtype == pl.Date:
        return to_ticks(series, precision).alias(name)
    if series.dtype == pl.Boolean:
        raise RowError("Arrow type Boolean does not fit TIMESTAMP", column=name)
    return _cast(series, pl.Int64(), name, "TIMESTAMP")


def _finish(
    layout: Layout,
    ready: dict[str, pl.Series],
    height: int,
    child: str | None,
    uneven: _Uneven | None,
) -> pl.DataFrame:
    """Put missing columns in, in the table's order, with the operation each row is."""
    if layout.stamped and names.EVENT_NUMBER not in ready:
        _stamp(layout, ready, height)
    if layout.time not in ready:
        raise RowError("is missing", row=0, column=layout.time, hint="every row has its time")
    if layout.plain or child is not None:
        ready[TBNAME] = pl.Series(TBNAME, [child or layout.table], dtype=pl.String).new_from_index(
            0, height
        )
    elif TBNAME not in ready:
        hint = 'rows of a supertable name their child table: {"tbname": "d1", …}'
        raise RowError("is missing", row=0, column=TBNAME, hint=hint)
    absent = any(c.name not in ready for c in layout.columns)
    if absent or uneven is None:
        op = pl.Series(OP, [MERGE if absent else UPSERT], dtype=pl.Int8).new_from_index(0, height)
    else:
        op = pl.Series(OP, [MERGE if p else UPSERT for p in uneven.partial(layout)], dtype=pl.Int8)
    columns = [ready[TBNAME].alias(TBNAME), op]
    for field in layout.fields:
        columns.append(
            ready[field.name]
            if field.name in ready
            else pl.Series(field.name, [None], dtype=field.type.polars()).new_from_index(0, height)
        )
    frame = pl.DataFrame(columns)
    if not (absent or uneven is not None):
        return frame
    named = [c.name for c in layout.values if c.name in ready]
    return named_nulls.noted(frame, named, None if uneven is None else uneven.named)


class _Numbers:
    """Numbers that only grow, near the nanoseconds of now: what tells rows of one moment apart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0

    def take(self, count: int) -> int:
        """The first of *count* numbers that nobody else gets."""
        with self._lock:
            first = max(self._next, time.time_ns())
            self._next = first + count
            return first


_numbers = _Numbers()


def _stamp(layout: Layout, ready: dict[str, pl.Series], height: int) -> None:
    """Time and number of rows that come without: a stream made by CREATE STREAM name (columns)
    without a time column.
    """
    first = _numbers.take(height)
    ready[names.EVENT_NUMBER] = pl.int_range(
        first, first + height, eager=True, dtype=pl.Int64
    ).alias(names.EVENT_NUMBER)
    if layout.time not in ready:
        now = first * TICKS_PER_SECOND[layout.precision] // 10**9
        ready[layout.time] = pl.repeat(now, height, dtype=pl.Int64, eager=True).alias(layout.time)


def check(layout: Layout, frame: pl.DataFrame, now: int) -> None:
    """Check sizes, names and times of a whole frame; *now* in ticks. Raises RowError with the index
    of the first bad row.
    """
    low, high = times.LIMITS[layout.precision]
    high = min(now + layout.max_ahead, high)
    time = frame[layout.time]
    names_ = frame[TBNAME]
    lengths = names_.str.len_bytes()
    if time.null_count() or _above(time.max(), high) or _above(low, time.min()):
        _blame(layout.time, time, time.is_null(), "is null")
        _blame(
            layout.time,
            time,
            (time < low) | (time > times.LIMITS[layout.precision][1]),
            "is out of range",
        )
        _blame(layout.time, time, time > high, "is more than MAX_AHEAD in the future")
    if (
        names_.null_count()
        or _above(1, lengths.min())
        or _above(lengths.max(), names.MAX_NAME_BYTES)
    ):
        _blame(TBNAME, names_, names_.is_null() | (lengths == 0), "is empty")
        _blame(
            TBNAME,
            names_,
            lengths > names.MAX_NAME_BYTES,
            f"is longer than {names.MAX_NAME_BYTES} bytes",
        )
    if layout.key_column and frame[layout.key_column].null_count():
        _blame(
            layout.key_column,
            frame[layout.key_column],
            frame[layout.key_column].is_null(),
            "is null, but part of the key",
        )
    _check_values(layout, frame)
    sizes = []
    for field in layout.fields:
        if not (field.type.text or field.type.kind == "VARBINARY"):
            continue
        column = frame[field.name]
        if column.null_count() == len(column):
            continue
        length = column.bin.size() if field.type.kind == "VARBINARY" else column.str.len_bytes()
        counted = column.str.len_chars() if field.type.kind == "NCHAR" else length
        if _above(counted.max(), field.type.bytes()):
            _blame(
                field.name,
                column,
                counted > field.type.bytes(),
                f"is longer than {field.type.bytes()}",
            )
        sizes.append(length)
    if sum(int(str(size.max() or 0)) for size in sizes) > MAX_ROW_BYTES - 8 * len(layout.fields):
        total = pl.select(
            pl.sum_horizontal([size.cast(pl.Int64).fill_null(0) for size in sizes])
        ).to_series()
        _blame(
            "",
            total,
            total + 8 * len(layout.fields) > MAX_ROW_BYTES,
            f"is larger than {MAX_ROW_BYTES} bytes",
        )


def _check_values(layout: Layout, frame: pl.DataFrame) -> None:
    """Refuse what could not be read back: times out of the precision's range, infinity."""
    low, high = times.LIMITS[layout.precision]
    for field in layout.fields:
        column = frame[field.name]
        if field.type.kind == "TIMESTAMP" and field.name != layout.time:
            if _above(column.max(), high) or _above(low, column.min()):
                _blame(field.name, column, (column < low) | (column > high), "is out of range")
        elif field.type.kind in ("FLOAT", "DOUBLE") and column.is_infinite().any():
            _blame(
                field.name, column, column.is_infinite(), "is infinite or too large for its column"
            )


def _above(value: Any, limit: Any) -> bool:
    """Whether *value* is beyond *limit*; nothing is beyond None."""
    return value is not None and limit is not None and value > limit


def _blame(column: str, values: pl.Series, bad: pl.Series, words: str) -> None:
    """Raise RowError for the first bad row, if there is one."""
    if bad.any():
        row = int(bad.arg_true()[0])
        raise RowError(
            f"{_short(values[row])} {words}" if column else words, row=row, column=column
        )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 64 else text[:61] + "…"
