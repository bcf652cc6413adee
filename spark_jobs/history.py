"""The rows of a stream's source table as its kernel's input has left it: segments, and the log
behind them.

Nothing is read before somebody asks. Then the part of the log that is not in segments yet is read
once and kept decoded, and every further question reads on from there to the position of the asking
chunk, never past it. What segments have taken over is dropped from the tail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.catalog.stored import StoredNames
from penstock.sql.plan import Source
from penstock.storage import segments
from penstock.storage.segments import RangeDelete
from penstock.windows.kernel import History, Rewindable
from spark_jobs.filling import stretches
from spark_jobs.log_tail import LogTail
from spark_jobs.worker import Worker

#: which of some versions are wanted: `segments.live` or `segments.drop_deleted`
_Choice = Callable[[pl.DataFrame, Sequence[str], Sequence[RangeDelete]], pl.DataFrame]
META: dict[str, pl.DataType] = {
    "_step": pl.UInt32(),
    "_offset": pl.Int64(),
    "_now": pl.Int64(),
    "_op": pl.Int8(),
    "tbname": pl.String(),
}


class StoredHistory(History, Rewindable, Protocol):
    """A history that reads what is stored."""

    def stretches(self, most: int) -> list[int]:
        """Cut all time so that each stretch holds some *most* rows, or one moment; the last tick of
        each, earliest first.
        """
        ...


class TableHistory:
    """`penstock.windows.kernel.History` of one source table over some partitions of its topic."""

    def __init__(
        self,
        worker: Worker,
        source: Source,
        topic: str,
        bounds: Callable[[], Mapping[int, int]],
        begins: Callable[[], Mapping[int, int]] | None = None,
        stored: Callable[[], StoredNames] = dict,
    ) -> None:
        """*bounds*: partition → the offset below which rows are part of the kernel's input.
        *begins*: the offset where the stream begins in each; rows from before it are given a
        negative `_offset`. *stored*: names of the table's columns in what is stored.
        """
        self._stored = stored
        self._worker = worker
        self._source = source
        self._topic = topic
        self._bounds = bounds
        self._begins = begins
        self.since_begin = begins is not None
        self._marked: Mapping[int, int] = {}
        self._tails: dict[int, LogTail] = {}
        self._types = {c.name: c.type for c in (*source.columns, *source.tags)}
        self._schema: dict[str, pl.DataType] = {
            **META,
            **{n: t.polars() for n, t in self._types.items()},
        }

    def mark(self) -> str:
        """See `penstock.windows.kernel.Rewindable`."""
        return json.dumps(dict(self._bounds()))

    def at(self, mark: str) -> None:
        """See `penstock.windows.kernel.Rewindable`."""
        self._marked = {int(p): offset for p, offset in json.loads(mark).items()} if mark else {}

    def stretches(self, most: int) -> list[int]:
        """See `StoredHistory`."""
        return stretches(self._times, most)

    def _times(self, low: int, high: int) -> Iterator[npt.NDArray[np.int64]]:
        """Times of low..high of all versions of rows, a piece at a time."""
        for partition, until in (self._marked or self._bounds()).items():
            found = self._tail(partition, until)
            for segment in self._segments(partition):
                if segment.low <= high and segment.high >= low:
                    yield from (
                        t[(t >= low) & (t <= high)]
                        for t in segments.times(segment, self._source.time_column)
                    )
            for rows in found.rows:
                times = rows.get_column(self._source.time_column).to_numpy()
                yield times[(times >= low) & (times <= high)]

    def versions(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """`_op`, `tbname` and *columns* of all versions of rows, a piece at a time, in no order."""
        wanted = [n for n in ("_op", "tbname", *self._types) if n in {"_op", "tbname", *columns}]
        for partition, until in (self._marked or self._bounds()).items():
            found = self._tail(partition, until)
            columns = ["_offset", *(held for n in wanted for held in self._names_in_storage(n))]
            pieces = (
                piece
                for segment in self._segments(partition)
                for piece in segments.versions(segment, columns)
            )
            for piece in (*found.rows, *pieces):
                rows = piece.filter(pl.col("_offset") < until)
                yield self._layout(rows, wanted)

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        """Live rows with low <= ts <= high in the kernels' input layout, sorted by (tbname, ts)."""
        return self._rows(low, high, tables, segments.live)

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """See `penstock.windows.kernel.History`."""
        return self._rows(low, high, tables, segments.drop_deleted)

    def _rows(
        self, low: int, high: int, tables: Sequence[str] | None, choose: _Choice
    ) -> pl.DataFrame:
        """Of the versions of low..high those that *choose* takes, in the kernels' input layout,
        sorted by (tbname, ts).
        """
        bounds = self._marked or self._bounds()
        parts = [
            self._partition(p, until, low, high, tables, choose) for p, until in bounds.items()
        ]
        rows = pl.concat(parts) if parts else self._layout(None)
        return rows.sort("tbname", self._source.time_column, maintain_order=True).with_columns(
            _step=pl.int_range(pl.len(), dtype=pl.UInt32)
        )

    def _tail(self, partition: int, until: int) -> LogTail:
        if partition not in self._tails:
            self._tails[partition] = LogTail(
                self._worker, self._source.table_id, self._topic, partition
            )
        self._tails[partition].advance(until)
        return self._tails[partition]

    def _segments(self, partition: int) -> list[segments.Segment]:
        directory = segments.directory(
            self._worker.settings.segments_dir, self._source.table_id, partition, self._topic
        )
        return segments.segments(directory, self._tails[partition].position.next)

    def _partition(
        self,
        partition: int,
        until: int,
        low: int,
        high: int,
        tables: Sequence[str] | None,
        choose: _Choice,
    ) -> pl.DataFrame:
        tail = self._tail(partition, until)
        time = self._source.time_column
        stored = segments.read(
            self._segments(partition), time_column=time, low=low, high=high, tables=tables
        )
        wanted = pl.col(time).is_between(low, high) & (
            pl.col("tbname").is_in(list(tables)) if tables is not None else True
        )
        if len(tail.rows) > 1:
            tail.rows = [pl.concat(tail.rows, how="diagonal_relaxed")]
        frames = [r.filter(wanted) for r in tail.rows]
        if stored is not None:
            frames.insert(0, self._in_ticks(stored))
        if not frames:
            return self._layout(None)
        rows = pl.concat(frames, how="diagonal_relaxed").filter(pl.col("_offset") < until)
        keys = ["tbname", time, *([self._source.key_column] if self._source.key_column else [])]
        deletes = [d for d in tail.deletes if d.offset < until]
        return self._mark_older(partition, self._layout(choose(rows, keys, deletes)))

    def _in_ticks(self, stored: pl.DataFrame) -> pl.DataFrame:
        """Return rows of segments with their times as whole numbers, as the log has them."""
        times = {
            name
            for column, kind in self._types.items()
            if kind.kind == "TIMESTAMP"
            for name in self._names_in_storage(column)
        }
        return stored.with_columns(pl.col(n).cast(pl.Int64) for n in stored.columns if n in times)

    def _mark_older(self, partition: int, rows: pl.DataFrame) -> pl.DataFrame:
        """Give rows from before the stream's beginning a negative offset."""
        begin = self._begins().get(partition, 0) if self._begins is not None else 0
        if not begin:
            return rows
        offset = pl.col("_offset")
        return rows.with_columns(
            pl.when(offset >= begin).then(offset).otherwise(-1).alias("_offset")
        )

    def _layout(
        self, rows: pl.DataFrame | None, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Return *rows* in the kernels' layout, or these columns of it."""
        types = self._schema if names is None else {n: self._schema[n] for n in names}
        if rows is None:
            return pl.DataFrame(schema=types)
        there = set(rows.columns)
        found = {
            n: [pl.col(s) for s in self._names_in_storage(n) if s in there] or [pl.lit(None)]
            for n in types
        }
        return rows.select(
            pl.coalesce(found[n]).cast(t, strict=False).alias(n) for n, t in types.items()
        )

    def _names_in_storage(self, name: str) -> tuple[str, ...]:
        """Return the names of a column of the plan in what is stored."""
        return self._stored().get(name, (name,))
