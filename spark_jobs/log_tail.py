"""Rows of one table in one partition's log, behind the segments.

The log is read once, up to the position that is asked for, and kept decoded; what segments have
taken over since is dropped.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock import names
from penstock.bus import Batch, Reader
from penstock.catalog.stored import written
from penstock.codec import TableCodec, schema_ids
from penstock.errors import SchemaError, StateError
from penstock.records import ControlRecord, decode
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.storage.segments import Position, RangeDelete
from spark_jobs.replay import Position as ProducerPosition
from spark_jobs.worker import Worker

_PATIENCE = 30.0


class LogTail:
    """Rows of one table of one partition from the log, behind the segments."""

    def __init__(self, worker: Worker, table_id: int, topic: str, partition: int) -> None:
        self._worker = worker
        self._table_id = table_id
        self._topic = topic
        self._partition = partition
        self._start(self._load_position())

    def _start(self, position: Position) -> None:
        self.position = position
        self._seen: dict[str, ProducerPosition] = dict(self.position.producers)
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

    def _load_position(self) -> Position:
        owner = self._worker.catalog.catalog.topic_owner(self._topic)
        return Position.load(
            self._worker.settings.segments_dir, self._topic, self._partition, owner
        )

    def advance(self, until: int) -> None:
        """Know everything below offset *until*.

        Raises:
            StateError: the log cannot be read up to there.
        """
        committed = self._load_position()
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
            if found is None or found[0].id != self._table_id:
                continue
            codec = self._worker.codecs.decoder(schema_id)
            if codec is not None:
                self._take_rows(batch, low, high, codec)

    def _take_rows(self, batch: Batch, low: int, high: int, codec: TableCodec) -> None:
        decoded = codec.decode(batch.values[low:high])
        repeats = [
            r
            for r, producer, offset, ordinal in decoded.stamps
            if self._is_repeat(producer, (offset, ordinal))
        ]
        rows = decoded.rows
        if repeats:
            rows = rows.filter(~pl.col("_record").is_in(repeats))
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

    def _is_repeat(self, producer: str, stamp: ProducerPosition) -> bool:
        if stamp <= self._seen.get(producer, (-1, -1)):
            return True
        self._seen[producer] = stamp
        return False

    def _controls(self, batch: Batch, low: int, high: int) -> None:
        for i in range(low, high):
            try:
                control = decode(ControlRecord, batch.values[i])
            except SchemaError:
                continue  # the processor has made it a dead letter
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
