"""The rows of a stream's source table as its kernel's input has left it: segments, and the log
behind them.

Nothing is read before somebody asks. Then the part of the log that is not in segments yet is read
once and kept decoded, and every further question reads on from there to the position of the asking
unit, never past it. What segments have taken over is dropped from the tail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock import names, segments
from penstock.bus import Batch, Reader
from penstock.catalog.model import Table
from penstock.catalog.stored import StoredNames, written
from penstock.codec import schema_ids
from penstock.errors import SchemaError, StateError
from penstock.records import ControlRecord, decode
from penstock.segments import Position, RangeDelete
from penstock.sql.plan import TICKS_PER_SECOND, Source
from penstock.versions import UPSERT
from penstock.windows.kernel import History, Rewindable
from penstock.windows.virtual import Mapper, merged
from spark_jobs.filling import stretches
from spark_jobs.replay import Position as Stamp
from spark_jobs.worker import Worker

_PATIENCE = 30.0
#: which of some versions are wanted: `segments.live` or `segments.drop_deleted`
_Choice = Callable[[pl.DataFrame, Sequence[str], Sequence[RangeDelete]], pl.DataFrame]
_META: dict[str, pl.DataType] = {
    "_step": pl.UInt32(),
    "_offset": pl.Int64(),
    "_now": pl.Int64(),
    "_op": pl.Int8(),
    "tbname": pl.String(),
}


class _Tail:
    """Rows of one table of one partition from the log, behind the segments."""

    def __init__(self, worker: Worker, table_id: int, topic: str, partition: int) -> None:
        self._worker = worker
        self._table_id = table_id
        self._topic = topic
        self._partition = partition
        self._start(self._committed())

    def _start(self, position: Position) -> None:
        self.position = position
        self._seen: dict[str, Stamp] = dict(self.position.producers)
        self._next = self.position.next
        self.rows: list[pl.DataFrame] = []
        self.deletes: list[RangeDelete] = [
            d for d in self.position.deletes if d.table_id == self._table_id
        ]

    def _follow(self, position: Position) -> None:
        """The store has written more: what is in segments now is not kept here, and older lists of
        segments are out of date.
        """
        self.position = position
        self.rows = [
            left
            for rows in self.rows
            if (left := rows.filter(pl.col("_offset") >= position.next)).height
        ]
        written = [
            d for d in position.deletes if d.table_id == self._table_id and d.offset < position.next
        ]
        self.deletes = [*written, *(d for d in self.deletes if d.offset >= position.next)]

    def _committed(self) -> Position:
        owner = self._worker.catalog.catalog.topic_owner(self._topic)
        return Position.load(
            self._worker.settings.segments_dir, self._topic, self._partition, owner
        )

    def advance(self, until: int) -> None:
        """Know everything below offset *until*.

        Raises:
            StateError: the log cannot be read up to there.
        """
        committed = self._committed()
        if committed.next > self._next:
            self._start(committed)
        elif committed.next > self.position.next:
            self._follow(committed)
        if self._next >= until:
            return
        where = (self._topic, self._partition)
        start = max(self._next, self._worker.admin.start_offsets([where])[where])
        silent = 0
        with Reader(
            self._worker.settings.kafka_bootstrap,
            {where: start},
            client_id="penstock-history",
            max_wait_ms=20,
        ) as reader:
            while self._next < until and silent < _PATIENCE:
                batches = reader.read(20_000, 1.0)
                silent = 0 if batches else silent + 1
                for batch in batches:
                    stop = int(np.searchsorted(batch.offsets, until))
                    self._take(batch, stop)
                    self._next = int(batch.offsets[stop - 1]) + 1 if stop == len(batch) else until
        if self._next < until:
            raise StateError(
                f"history of {self._topic}[{self._partition}] cannot be read",
                detail=f"{self._next} of {until}",
            )

    def _take(self, batch: Batch, stop: int) -> None:
        ids = schema_ids(batch.values[:stop])
        self._worker.catalog.know(np.unique(ids).tolist())
        cuts = (np.flatnonzero(np.diff(ids)) + 1).tolist() if stop else []
        for low, high in zip([0, *cuts], [*cuts, stop], strict=True):
            schema_id = int(ids[low]) if high > low else -1
            if schema_id == names.CONTROL_SCHEMA_ID:
                self._controls(batch, low, high)
                continue
            found = self._worker.catalog.catalog.schema(schema_id)
            codec = (
                self._worker.codec(schema_id)
                if found is not None and found[0].id == self._table_id
                else None
            )
            if codec is None:
                continue
            decoded = codec.decode(batch.values[low:high])
            repeats = [
                r
                for r, producer, offset, ordinal in decoded.stamps
                if self._repeated(producer, (offset, ordinal))
            ]
            rows = (
                decoded.rows.filter(~pl.col("_record").is_in(repeats)) if repeats else decoded.rows
            )
            record = rows["_record"].to_numpy()
            factor = TICKS_PER_SECOND[codec.table.precision] // 1000
            offsets = batch.offsets[low:high][record]
            times = batch.timestamps[low:high][record] * factor
            added = (
                rows.drop("_record", "_write")
                .rename(written(codec.table.stored_names))
                .with_columns(_offset=pl.Series(offsets), _now=pl.Series(times))
            )
            self.rows.append(
                added.with_columns(_row=pl.int_range(pl.len(), dtype=pl.UInt32).over("_offset"))
            )

    def _repeated(self, producer: str, stamp: Stamp) -> bool:
        if stamp <= self._seen.get(producer, (-1, -1)):
            return True
        self._seen[producer] = stamp
        return False

    def _controls(self, batch: Batch, low: int, high: int) -> None:
        for i in range(low, high):
            try:
                control = decode(ControlRecord, batch.values[i])
            except SchemaError:
                continue  # the lane has made it a dead letter
            if control.kind == "delete" and control.table == self._table_id:
                self.deletes.append(
                    RangeDelete(
                        self._table_id,
                        int(batch.offsets[i]),
                        control.tables,
                        control.low,
                        control.high,
                    )
                )


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
        self._tails: dict[int, _Tail] = {}
        self._types = {c.name: c.type for c in (*source.columns, *source.tags)}
        self._schema: dict[str, pl.DataType] = {
            **_META,
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
            columns = ["_offset", *(held for n in wanted for held in self._held(n))]
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

    def _tail(self, partition: int, until: int) -> _Tail:
        if partition not in self._tails:
            self._tails[partition] = _Tail(
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
            times = {
                held
                for n, t in self._types.items()
                if t.kind == "TIMESTAMP"
                for held in self._held(n)
            }
            ticks = [pl.col(n).cast(pl.Int64) for n in stored.columns if n in times]
            frames.insert(0, stored.with_columns(ticks))
        if not frames:
            return self._layout(None)
        rows = pl.concat(frames, how="diagonal_relaxed").filter(pl.col("_offset") < until)
        keys = ["tbname", time, *([self._source.key_column] if self._source.key_column else [])]
        lived = self._layout(choose(rows, keys, [d for d in tail.deletes if d.offset < until]))
        if self._begins is not None and (begin := self._begins().get(partition, 0)):
            lived = lived.with_columns(
                pl.when(pl.col("_offset") >= begin)
                .then(pl.col("_offset"))
                .otherwise(-1)
                .alias("_offset")
            )
        return lived

    def _layout(
        self, rows: pl.DataFrame | None, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """*rows* in the kernels' layout, or these columns of it."""
        types = self._schema if names is None else {n: self._schema[n] for n in names}
        if rows is None:
            return pl.DataFrame(schema=types)
        there = set(rows.columns)
        found = {
            n: [pl.col(held) for held in self._held(n) if held in there] or [pl.lit(None)]
            for n in types
        }
        return rows.select(
            pl.coalesce(found[n]).cast(t, strict=False).alias(n) for n, t in types.items()
        )

    def _held(self, name: str) -> tuple[str, ...]:
        """Names of a column of the plan in what is stored."""
        return self._stored().get(name, (name,))


class VirtualHistory:
    """`penstock.windows.kernel.History` of a virtual source: rows of its origins since the stream
    began, joined by time.
    """

    since_begin = True

    def __init__(
        self,
        worker: Worker,
        source: Source,
        bounds: Callable[[str, int], Mapping[int, int]],
        begins: Callable[[str], Mapping[int, int]],
    ) -> None:
        """*bounds*: (topic, its partitions) → as for `TableHistory`; *begins*: topic → as there."""
        self._worker = worker
        self._source = source
        self._bounds = bounds
        self._begins = begins
        self._mapper = Mapper(source)
        self._tables: dict[int, TableHistory] = {}

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        """Live rows with low <= ts <= high in the kernels' input layout, sorted by (tbname, ts)."""
        time = self._source.time_column
        parts = []
        for table in self._origins():
            wanted = None if tables is None else self._mapper.origins_of(table.id, tables)
            rows = self._origin(table).fetch(low, high, wanted)
            parts.append(
                self._mapper.rows(
                    table.id, table.time_column, rows.filter(pl.col("_offset") >= 0)
                ).drop("_origin")
            )
        names_of = [*_META, *(c.name for c in (*self._source.columns, *self._source.tags))]
        types = {c.name: c.type.polars() for c in (*self._source.columns, *self._source.tags)}
        rows = pl.concat(parts) if parts else pl.DataFrame(schema={**_META, **types})
        if tables is not None:
            rows = rows.filter(
                pl.col("tbname").str.to_lowercase().is_in([t.lower() for t in tables])
            )
        made = merged(rows.select(names_of).sort("_now", maintain_order=True), self._source).sort(
            "tbname", time
        )
        return made.with_columns(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("_step"),
            pl.lit(UPSERT, dtype=pl.Int8).alias("_op"),
        )

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The same as `fetch`: a joined row is made of its parts, and has no versions of its
        own.
        """
        return self.fetch(low, high, tables)

    def mark(self) -> str:
        """See `penstock.windows.kernel.Rewindable`."""
        return json.dumps({str(table.id): self._origin(table).mark() for table in self._origins()})

    def at(self, mark: str) -> None:
        """See `penstock.windows.kernel.Rewindable`."""
        marks = json.loads(mark) if mark else {}
        for table in self._origins():
            self._origin(table).at(marks.get(str(table.id), ""))

    def _origins(self) -> list[Table]:
        found = (self._worker.catalog.catalog.table_by_id(i) for i in self._mapper.tables)
        return [t for t in found if t is not None]

    def _origin(self, table: Table) -> TableHistory:
        if table.id not in self._tables:
            source = Source(
                table.id,
                table.database,
                table.name,
                "stable" if table.tags else "plain",
                table.columns,
                table.tags,
                table.precision,
                key_column=table.key_column,
            )
            topic = table.topic
            partitions = table.partitions
            self._tables[table.id] = TableHistory(
                self._worker,
                source,
                topic,
                lambda: self._bounds(topic, partitions),
                lambda: self._begins(topic),
                self._worker.stored_names(table.id),
            )
        return self._tables[table.id]
