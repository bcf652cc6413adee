"""Rows of a stream table between the three forms they have: as producers send them, on the wire,
and as copies keep them.

Owns the rules a producer's rows must keep: known columns, types without loss, texts within their
length, times within MAX_AHEAD. Refused: a row_id from outside, because the leader numbers the rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from penstock import tuning
from penstock.catalog.model import ROW_ID, Table
from penstock.codec import TableCodec, readable
from penstock.errors import SchemaError
from penstock.rows.rows import Rows
from penstock.runtime import vital
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import TIME_LIMITS, to_ticks

#: a record of rows has about this many bytes at most
RECORD_BYTES = 900_000
_ARROW = pl.CompatLevel.oldest()


@dataclass(frozen=True)
class NumberedRows:
    """Numbered rows: as the codec takes them, and as copies keep them, which is made when somebody
    asks.
    """

    rows: Rows
    make: Callable[[], pa.RecordBatch]

    @cached_property
    def kept(self) -> pa.RecordBatch:
        return self.make()


@dataclass(frozen=True)
class _Plain:
    """The schema of writes that need no work on their columns."""

    schema: pa.Schema
    #: for each column that copies keep its place, row_id in front, and the type that it is cast to
    places: tuple[tuple[int, pa.DataType | None], ...]


class TableRows:
    """Of one table version. Safe to share."""

    def __init__(self, table: Table, max_ahead: int) -> None:
        """
        Args:
            table: a stream table.
            max_ahead: ticks that a row's time may lie in the future.
        """
        self.table = table
        self.codec = TableCodec(table)
        self.user = tuple(c for c in table.columns if c.name != ROW_ID)
        self._max_ahead = max_ahead
        self._limits = TIME_LIMITS[table.precision]
        self._by_name = {c.name.lower(): c for c in self.user}
        replicated = table.replicated
        #: filled by the leader when rows come without it
        self.stamped = replicated.timestamp_column if replicated is not None else None
        self.schema = self.to_batch(self.empty()).schema
        #: of the last such write
        self._plain = _Plain(pa.schema([]), ())
        self._short = self.stamped is None and not any(
            c.type.kind in ("VARBINARY", "DECIMAL", "BIGINT UNSIGNED") for c in self.user
        )

    def empty(self) -> pl.DataFrame:
        """No rows, with all columns as they are inside."""
        return pl.DataFrame(schema={c.name: c.type.polars() for c in self.table.columns})

    # ---------------------------------------------------------------- in

    def to_frame(self, data: pa.Table, now: int) -> pl.DataFrame:
        """A producer's rows as a frame of all user columns; *now* is nanoseconds.

        Raises:
            SchemaError: a row does not fit.
        """
        ticks = now * TICKS_PER_SECOND[self.table.precision] // 10**9
        try:
            made = self._fit(_columns(data), data.num_rows, ticks)
            self._check(made, ticks)
        except SchemaError:
            raise
        except vital.FAULTS as wrong:
            # what a columnar library makes of odd types: the write is at fault, and no other
            raise SchemaError(
                "the rows cannot be read", code="E_ROW", detail=type(wrong).__name__
            ) from None
        if not data.schema.equals(self._plain.schema) and self._is_plain(data.schema):
            self._plain = _Plain(data.schema, self._places(data.schema))
        return made

    def _is_plain(self, schema: pa.Schema) -> bool:
        """Whether a batch of *schema* holds the table's own columns, in its order and types."""
        if self.stamped is not None or schema.names != [c.name for c in self.user]:
            return False
        wanted = (
            pa.timestamp(self.table.precision, "UTC")
            if c.type.kind == "TIMESTAMP"
            else c.type.arrow()
            for c in self.user
        )
        return all(found == kind for found, kind in zip(schema.types, wanted, strict=True))

    def _places(self, plain: pa.Schema) -> tuple[tuple[int, pa.DataType | None], ...]:
        types = [pa.int64(), *plain.types]
        found = (
            (0 if f.name == ROW_ID else 1 + plain.get_field_index(f.name), f.type)
            for f in self.schema
        )
        return tuple((i, None if types[i] == kept else kept) for i, kept in found)

    def _fit(self, columns: list[pl.Series], height: int, ticks: int) -> pl.DataFrame:
        """All user columns from those that were sent."""
        named: dict[str, pl.Series] = {}
        for series in columns:
            column = self._by_name.get(series.name.lower())
            if column is None:
                close = difflib.get_close_matches(series.name.lower(), list(self._by_name), n=1)
                hint = (
                    f"did you mean {close[0]}?"
                    if close
                    else f"columns are {', '.join(self._by_name)}"
                )
                raise SchemaError(
                    f'table {self.table.name} has no column "{series.name}" to fill',
                    code="E_ROW",
                    hint=hint,
                )
            named[column.name] = self._cast(series, column)
        if self.stamped is not None:
            named[self.stamped] = pl.Series(self.stamped, [ticks], dtype=pl.Int64).new_from_index(
                0, height
            )
        for missing in [c for c in self.user if c.name not in named]:
            named[missing.name] = pl.Series(
                missing.name, [None], dtype=missing.type.polars()
            ).new_from_index(0, height)
        return pl.DataFrame([named[c.name] for c in self.user])

    def _cast(self, series: pl.Series, column: Column) -> pl.Series:
        """Return a column in the table's own type. Raises SchemaError when a value does not fit."""
        kind = column.type
        wanted = kind.polars()
        if series.dtype == wanted and series.name == column.name and kind.kind != "TIMESTAMP":
            return series
        try:
            if kind.kind == "TIMESTAMP":
                return self._to_ticks(series, column.name).alias(column.name)
            _check_kind(series, column)
            return series.cast(wanted, strict=True).alias(column.name)
        except pl.exceptions.PolarsError as wrong:
            raise SchemaError(
                f'a value of column "{column.name}" does not fit {kind}',
                code="E_ROW",
                detail=str(wrong)[:200],
            ) from None

    def _to_ticks(self, series: pl.Series, name: str) -> pl.Series:
        if series.dtype == pl.Date or isinstance(series.dtype, pl.Datetime):
            series = to_ticks(series, self.table.precision)
        elif not (series.dtype.is_integer() or series.dtype == pl.Null):
            raise SchemaError(f'column "{name}" takes times, not {series.dtype}', code="E_ROW")
        return series.cast(pl.Int64)

    def _check(self, frame: pl.DataFrame, now: int) -> None:
        time = frame[self.user[0].name]
        if time.null_count():
            raise SchemaError(
                f'a row has no time: column "{time.name}" is null', code="E_NULL_TIME"
            )
        newest = time.max()
        if newest is not None and int(str(newest)) > now + self._max_ahead:
            raise SchemaError(
                f'a time in column "{time.name}" is more than MAX_AHEAD in the future',
                code="E_ROW",
                detail=str(newest),
            )
        for column in self.user:
            readable.check(frame[column.name], column, self._limits)
            if column.type.sized:
                size = frame[column.name]
                length = (
                    size.bin.size() if column.type.kind == "VARBINARY" else size.str.len_bytes()
                )
                if column.type.kind == "NCHAR":
                    length = size.str.len_chars()
                if int(str(length.max() or 0)) > column.type.length:
                    raise SchemaError(
                        f'a value of column "{column.name}" is longer than {column.type.length}',
                        code="E_ROW",
                    )

    # ---------------------------------------------------------------- to the log

    def number_few(self, data: pa.Table, first: int, now: int) -> NumberedRows | None:
        """Take a few plain rows the short way, from a producer to its record: all that `to_frame`,
        `number` and `to_batch` do, without a query engine, whose fixed costs are most of a single
        row's. Others go the long way, which also says what is wrong with them.

        Args:
            first: the index of the first row.
            now: nanoseconds.
        """
        height = data.num_rows
        batches = data.to_batches() if 0 < height <= tuning.ROWS_KEPT_AS_VALUES else []
        if len(batches) != 1 or not self._short or not data.schema.equals(self._plain.schema):
            return None
        batch = batches[0]
        ticks = now * TICKS_PER_SECOND[self.table.precision] // 10**9
        arrays = batch.columns
        places = self._plain.places
        columns: dict[str, list[Any]] = {
            "tbname": [self.table.name] * height,
            ROW_ID: list(range(first, first + height)),
        }
        for column, array in zip(self.user, arrays, strict=True):
            is_time = column.type.kind == "TIMESTAMP"
            columns[column.name] = (array.view(pa.int64()) if is_time else array).to_pylist()
        rows = self.codec.few_rows(columns)
        times = columns[self.user[0].name]
        if rows is None or None in times or max(times) > ticks + self._max_ahead:
            return None

        def kept() -> pa.RecordBatch:
            found = [pa.array(rows.column(ROW_ID), pa.int64()), *arrays]
            return pa.RecordBatch.from_arrays(
                [found[i] if t is None else found[i].cast(t) for i, t in places], schema=self.schema
            )

        return NumberedRows(rows, kept)

    def number(self, frame: pl.DataFrame, first: int) -> pl.DataFrame:
        """Rows with their index and the table's name, as the codec takes them."""
        name = pl.Series("tbname", [self.table.name]).new_from_index(0, frame.height)
        ids = pl.Series(ROW_ID, np.arange(first, first + frame.height, dtype=np.int64))
        # put together from columns: a query engine's plan would cost a single row more than all the
        # rest of this
        return pl.DataFrame([name, ids, *frame.get_columns()])

    @staticmethod
    def step(frame: pl.DataFrame) -> int:
        """Rows of the frame that make one record."""
        pieces = max(-(-int(frame.estimated_size()) // (RECORD_BYTES // 2)), 1)
        return max(-(-frame.height // pieces), 1)

    @staticmethod
    def fits(frame: pl.DataFrame) -> bool:
        """Whether the frame may be one record."""
        return int(frame.estimated_size()) <= RECORD_BYTES

    # ---------------------------------------------------------------- from the log

    def to_batch(self, decoded: pl.DataFrame) -> pa.RecordBatch:
        """Decoded rows as copies keep them: the table's columns with real times, in one batch."""
        arrays = []
        fields = []
        for column in self.table.columns:
            array = decoded.get_column(column.name).to_arrow(compat_level=_ARROW)
            if column.type.kind == "TIMESTAMP":
                array = array.view(pa.timestamp(self.table.precision, "UTC"))
            arrays.append(array)
            fields.append(pa.field(column.name, array.type))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _check_kind(series: pl.Series, column: Column) -> None:
    """Refuse texts where there are none, and fractions of whole numbers. Raises SchemaError."""
    kind = column.type
    dtype = series.dtype
    is_text = dtype in (pl.String, pl.Categorical) or isinstance(dtype, pl.Enum)
    lacks_text = kind.text and not is_text and dtype != pl.Null
    if lacks_text or (is_text and not kind.text):
        raise SchemaError(f'column "{column.name}" is {kind}, not {dtype}', code="E_ROW")
    if kind.integer and dtype.is_float() and (series != series.round()).any():
        raise SchemaError(
            f'a value of column "{column.name}" is not whole, as {kind} is',
            code="E_ROW",
            hint="round it first",
        )


def _columns(data: pa.Table) -> list[pl.Series]:
    """The columns of *data*. A table in one piece goes over as one: that costs a fifth of what a
    table does.
    """
    batches = data.to_batches()
    frame = pl.DataFrame(batches[0]) if len(batches) == 1 else pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame.get_columns()
