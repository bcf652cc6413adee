"""Record batches of one Spark task, as Arrow columns. Does not interpret them.

In real time a batch is one record and a filler. Spark's way from its stream to a batch (a reader
that calls Python for each piece, a struct made flat, a schema made anew) then costs several times
what the record does; a message that has come whole is read where it lies. Whatever else there is, a
part of a message, a large batch, the end, goes Spark's way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock import tuning
from spark_jobs.pipe import Pipe

Columns = Sequence[pa.Array]


class InputEnded(Exception):
    """Spark has closed a task's input before anything came: its query was stopped."""


class TaskBatches:
    """The batches of a task, in order."""

    def __init__(self, batches: Iterator[pa.RecordBatch], source: Pipe | None = None) -> None:
        """
        Arguments that need a word:
            batches: as Spark gives them, read from *source* one at a time and not ahead.
            source: None: they come from elsewhere, and only asking for the next one tells whether
                there is one.
        """
        self._batches = batches
        self._source = source
        #: of the stream's messages, once it is known to be of small ones
        self._schema: pa.Schema | None = None
        self._begun = False

    def waits(self, timeout: float | None) -> bool:
        """Whether there is a batch to take, be it the end: at once, or within *timeout* seconds
        (None: however long it takes).
        """
        return self._source is None or self._source.waits(timeout)

    def take(self) -> Columns | None:
        """The columns of the next batch, waiting for it; None at the end. Raises InputEnded."""
        if not self._begun and self._source is not None and not self._source.peek():
            raise InputEnded
        self._begun = True
        if self._schema is not None and (found := self._whole(self._schema)) is not None:
            return found
        batch = next(self._batches, None)
        if batch is None:
            return None
        small = batch.num_rows <= tuning.BATCH_ROWS_READ_IN_PLACE
        if self._schema is None and self._source is not None and small:
            self._schema = pa.schema([pa.field("", pa.struct(list(batch.schema)))])
        columns: Columns = batch.columns
        return columns

    def _whole(self, schema: pa.Schema) -> Columns | None:
        """The next batch, if all of it has come."""
        assert self._source is not None
        ahead = pa.BufferReader(self._source.peek())
        try:
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(ahead), schema)
        except (EOFError, OSError, pa.ArrowInvalid):  # a part of one, or the end
            return None
        self._source.skip(ahead.tell())
        columns: Columns = batch.column(0).flatten()
        return columns
