"""A leader's records of one table: rows of producers, checked, numbered, stamped and encoded.

Owns the numbers of the next record and of the next row, and which rows of a keyed table are taken.
Knows nothing of who waits or of Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from penstock.errors import BusError
from penstock.runtime.clock import Clock
from services.tables.keys import Listed, Taker
from services.tables.leadership_term import LeadershipTerm
from services.tables.replica import Content, Replica
from services.tables.rows import NumberedRows, TableRows
from services.tables.stamp import Trace, pack
from services.tables.writes import Cut, Entry, ProducerWrite, cuts, ends, whole

_RECORD_LIMIT = 6 << 20
_Places = npt.NDArray[np.int64]


@dataclass(eq=False)
class Sent:
    """A record under way."""

    number: int
    value: bytes
    complete: list[Entry]
    #: what a reader will find in it
    content: Content | None = None


@dataclass(frozen=True)
class Short:
    """The record of a small write, before it counts as sent."""

    value: bytes
    number: int
    cut: Cut
    rows: NumberedRows


class RecordBuilder:
    """Used by one thread at a time; `settle` from any."""

    def __init__(self, replica: Replica, term: LeadershipTerm, clock: Clock) -> None:
        self._replica = replica
        self._epoch = term.epoch
        self._leader = term.leader
        self._clock = clock
        self._producer = replica.producer
        self._codec = replica.rows.codec
        self._taker = Taker(replica.copy.keys)
        self._taking = threading.Lock()
        #: of the last record
        self._number = 0
        #: of the next row
        self._row = 0

    def opening(self) -> Sent:
        """The record that begins the epoch."""
        value = self._codec.empty(
            producer=self._producer,
            from_offset=-1,
            offset=pack(self._epoch, 0),
            trace=str(Trace(self._leader)),
        )
        return Sent(0, value, [])

    def begin(self, row: int) -> None:
        """The next row is number *row*: the log is read as far as the epoch's beginning."""
        self._row = row

    def settle(self, number: int) -> None:
        """The copy has the rows of the records up to *number*."""
        with self._taking:
            self._taker.settle(number)

    # --------------------------------------------------------------- a small write that comes alone

    def short(self, write: ProducerWrite) -> Short | None:
        """Its record, made the short way; None: it has to be made the long one."""
        shape = self._replica.copy.shape
        numbered = (
            None
            if shape.key_columns or write.skip
            else self._replica.rows.number_few(write.data, self._row, self._clock.now())
        )
        if numbered is None:
            return None
        cut = whole(write, write.rows)
        number = self._number + 1
        trace = str(Trace(self._leader, tuple(cut.parts)))
        stamp = pack(self._epoch, number)
        value = self._codec.encode_few(
            numbered.rows,
            producer=self._producer,
            from_offset=self._row,
            offset=stamp,
            trace=trace,
        )
        return None if value is None else Short(value, number, cut, numbered)

    def count(self, short: Short) -> Sent:
        """Count it as sent."""
        parts = tuple(short.cut.parts)
        rows = short.rows.kept
        content = Content(pack(self._epoch, short.number), self._leader, parts, self._row, rows)
        self._number = short.number
        self._row = self._row + int(rows.num_rows)
        return Sent(short.number, short.value, short.cut.complete, content)

    # ---------------------------------------------------------------- any writes

    def to_frame(self, writes: Sequence[ProducerWrite]) -> pl.DataFrame:
        """The rows of *writes* that are not in the log yet. Raises SchemaError: one does not
        fit.
        """
        if not writes:
            return self._replica.rows.empty()
        return self._replica.rows.to_frame(
            _concat([w.data.slice(w.skip) for w in writes]), self._clock.now()
        )

    def cut(
        self, frame: pl.DataFrame, writes: Sequence[ProducerWrite]
    ) -> tuple[pl.DataFrame, list[Cut]]:
        """Those rows of *writes* that are new by key, and how they lie in records."""
        if not writes:
            return frame, []
        taken = np.arange(frame.height, dtype=np.int64)
        begins = np.cumsum([0, *(w.rows - w.skip for w in writes)])
        if self._replica.copy.shape.key_columns and frame.height:
            frame, taken = self._by_keys(frame, begins.tolist())
        if len(writes) == 1 and TableRows.fits(frame):
            return frame, [whole(writes[0], frame.height)]
        borders = np.searchsorted(taken, begins).tolist()
        return frame, cuts(
            writes,
            taken,
            ends(borders, TableRows.step(frame), lambda low, high: TableRows.fits(frame[low:high])),
        )

    def _by_keys(self, frame: pl.DataFrame, borders: list[int]) -> tuple[pl.DataFrame, _Places]:
        """The rows that are taken because of their keys, and their places."""
        listed = self._list_keys(frame)
        with self._taking:
            found, states = self._taker.take(listed, borders)
        taken = np.array(found, dtype=np.int64)
        accepted = frame[taken]
        status = self._replica.replicated.status_column
        if status is not None:
            given = accepted[status]
            told = (
                pl.when(given.is_null())
                .then(pl.Series(states, dtype=pl.String))
                .otherwise(given)
                .alias(status)
            )
            accepted = accepted.with_columns(told)
        return accepted, taken

    def _list_keys(self, frame: pl.DataFrame) -> Listed:
        shape = self._replica.copy.shape
        wanted = frame.select(list(dict.fromkeys((*shape.key_columns, *shape.time_columns))))
        return self._replica.copy.keys.list(wanted.to_arrow().combine_chunks().to_batches()[0])

    def make(self, cut: Cut, accepted: pl.DataFrame) -> Sent:
        """The next record, counted as sent. Raises BusError: it does not hold its rows."""
        number = self._number + 1
        row = self._row
        part = accepted.slice(cut.low, cut.high - cut.low)
        stamp: dict[str, Any] = {
            "producer": self._producer,
            "from_offset": row,
            "offset": pack(self._epoch, number),
        }
        trace = str(Trace(self._leader, tuple(cut.parts)))
        kept: pa.RecordBatch | None = None
        if part.height:
            numbered = self._replica.rows.number(part, row)
            kept = self._replica.rows.to_batch(numbered)
            # a record that says nothing of writes is one write, and is made in an eighth of the
            # time
            counts = cut.counts if len(cut.counts) > 1 else None
            values = self._codec.encode(
                numbered, writes=counts, trace=trace, max_bytes=_RECORD_LIMIT, **stamp
            )
            if len(values) > 1:
                raise BusError("a record does not hold the rows it should", code="E_INTERNAL")
        else:
            values = [self._codec.empty(trace=trace, **stamp)]
        if self._replica.copy.shape.key_columns and part.height:
            listed = self._list_keys(part)
            with self._taking:
                self._taker.note_sent(number, listed)
        self._number = number
        self._row = row + part.height
        return Sent(
            number,
            values[0],
            cut.complete,
            Content(stamp["offset"], self._leader, tuple(cut.parts), row, kept),
        )


def _concat(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of producers that may send columns in different orders or types."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0].schema
    if all(t.schema.equals(first) for t in tables[1:]):
        return pa.concat_tables(tables)
    return pa.concat_tables(tables, promote_options="permissive")
