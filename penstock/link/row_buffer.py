"""Rows of a followed table: the frames they came in, put together when somebody looks. Not
thread-safe: its user holds a lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from penstock.link.description import Description
from penstock.link.remote_request import keys_of
from penstock.rows import tag_values
from penstock.sql.plan import Column
from penstock.storage import segments
from penstock.storage.segments import RangeDelete

#: rows that wait to be put together with the rest
_LOOSE_ROWS = 500_000


class RowBuffer:
    """Versions of rows in the order they came; each step of the log has a number, which says what
    came before what.
    """

    def __init__(self, frames: Sequence[pl.DataFrame] = ()) -> None:
        """`frames`: of `versions`, the rows to begin with."""
        self._frames = [pl.concat(frames)] if frames else []
        self._loose = 0
        self._step = 1
        self._deletes: list[RangeDelete] = []

    def frame(self, description: Description) -> pl.DataFrame | None:
        """Return the rows that count; None when there never were any."""
        self.settle(description)
        return self._frames[0] if self._frames else None

    def add(self, rows: pa.Table, description: Description, columns: Sequence[Column]) -> None:
        """Add rows that were added, changed or (where `_op` is 1) removed in one step."""
        self._step += 1
        frame = versions(rows, description, columns, self._step)
        self._frames.append(frame)
        self._loose += frame.height
        if self._loose > _LOOSE_ROWS:
            self.settle(description)

    def delete(
        self, tables: Sequence[str] | None, low: int, high: int, description: Description
    ) -> None:
        """Delete the rows of these child tables, or of all, between two times in ticks."""
        self._step += 1
        self._deletes.append(
            RangeDelete(0, self._step, None if tables is None else tuple(tables), low, high)
        )
        self.settle(description)

    def retag(
        self, tables: Sequence[str], tags: Mapping[str, Any], description: Description
    ) -> None:
        """Set new tags of child tables for all their rows."""
        self.settle(description)
        hit = pl.col("tbname").is_in(list(tables))
        for i, frame in enumerate(self._frames):
            changed = [
                pl.when(hit)
                .then(_tag(column, tags[column.name]))
                .otherwise(pl.col(column.name))
                .alias(column.name)
                for column in description.tags
                if column.name in tags and column.name in frame.columns
            ]
            self._frames[i] = frame.with_columns(changed)

    def settle(self, description: Description) -> None:
        """Put what came together into one frame of the rows that count."""
        if not self._frames or (len(self._frames) == 1 and not self._deletes and not self._loose):
            return
        rows = pl.concat(self._frames, how="diagonal_relaxed")
        live = segments.live(rows, keys_of(description), self._deletes)
        self._frames = [live]
        self._loose = 0
        self._deletes = []


def _tag(column: Column, value: Any) -> pl.Expr:
    """Return the value of a tag that JSON had."""
    return pl.lit(tag_values.from_json(value, column.type)).cast(column.type.polars())


def versions(
    rows: pa.Table, description: Description, columns: Sequence[Column], step: int = 0
) -> pl.DataFrame:
    """Return rows as `segments.live` takes them: times as ticks, and their place in the order of
    what came.
    """
    arrays: dict[str, Any] = {"tbname": rows.column("tbname").cast(pa.string())}
    for column in columns:
        array = rows.column(column.name)
        if column.type.kind == "TIMESTAMP":
            array = array.cast(pa.timestamp(description.precision)).cast(pa.int64())
        arrays[column.name] = array
    frame = pl.DataFrame({name: pl.Series(array) for name, array in arrays.items()})
    op = (
        pl.Series(rows.column("_op").cast(pa.int8()))
        if "_op" in rows.column_names
        else pl.repeat(0, rows.num_rows, dtype=pl.Int8, eager=True)
    )
    numbers = pl.int_range(rows.num_rows, dtype=pl.UInt32, eager=True)
    return frame.with_columns(
        op.alias("_op"), pl.lit(step, pl.Int64).alias("_offset"), numbers.alias("_row")
    )


def to_arrow(frame: pl.DataFrame, columns: Sequence[Column], precision: str) -> pa.Table:
    """Return settled rows as people get them; NULLs for a column they came without."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    schema = schema_of(columns, precision)
    known = set(table.column_names)
    arrays = [
        table.column(f.name).cast(f.type) if f.name in known else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.table(arrays, schema=schema)


def schema_of(columns: Sequence[Column], precision: str) -> pa.Schema:
    return pa.schema([(c.name, c.type.arrow(precision)) for c in columns])
