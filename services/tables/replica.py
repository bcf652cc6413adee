"""One stream table on this node: from records of its log to its copy, and to those who wait for
either.

The log thread applies, and a leader its own records at once; anybody reads. What counts is decided
here and only here, by the fence; a leader's session is told what became of each record, so the node
that leads learns about its own writes in the same way as everybody else.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock import names
from penstock.bus import Batch
from penstock.catalog.model import ROW_ID, Replicated, Table
from penstock.codec import schema_ids
from penstock.runtime.log import get
from services.tables.arrivals import Arrivals
from services.tables.chunk import Chunk
from services.tables.copy import Copy
from services.tables.rows import TableRows
from services.tables.stamp import Trace, WritePart, parse_trace, unpack

log = get(__name__)


@dataclass(frozen=True)
class Content:
    """What a record says: its position, who wrote it and for whom, the index of its first row, and
    its rows as copies keep them.
    """

    stamp: int
    leader: str
    parts: tuple[WritePart, ...]
    first: int
    rows: pa.RecordBatch | None


class Listener(Protocol):
    """A leader's session, asked and told in the log thread."""

    def content(self, value: bytes | None) -> Content | None: ...
    def note_applied(
        self, offset: int, epoch: int, number: int, leader: str, accepted: bool
    ) -> None: ...


class Replica:
    """`apply` from the log thread, `take` from Kafka's; `arrival` and `wake` from the event
    loop.
    """

    def __init__(
        self,
        table: Table,
        rows: TableRows,
        copy: Copy,
        loop: asyncio.AbstractEventLoop,
        *,
        hurry: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            hurry: called when somebody waits for what is in the log.
        """
        replicated = table.replicated
        assert replicated is not None
        self.table = table
        self.rows = rows
        self.copy = copy
        self.replicated: Replicated = replicated
        self.name = f"{table.database}.{table.name}"
        #: as which a leader writes
        self.producer = names.producer_of_replicas(table.id)
        self.hurry = hurry
        self._arrivals = Arrivals(loop)
        self.dropped = False
        #: set while this node leads the group
        self.session: Listener | None = None
        self.lock = threading.RLock()
        #: records that did not count: a former leader's
        self.fenced = 0

    # ---------------------------------------------------------------- the log thread

    def apply(self, batch: Batch) -> None:
        """Apply records in order."""
        places = np.flatnonzero(
            (schema_ids(batch.values) == self.table.schema_id) & (batch.offsets >= self.copy.offset)
        )
        found = self._contents(batch, places.tolist())
        told: list[tuple[int, int, int, str, bool]] = []
        with self.lock:
            rest = [
                (o, c) for o, c in found if o >= self.copy.offset
            ]  # the others were taken as they were sent
            kept: list[pa.RecordBatch] = []
            first = -1
            for offset, content in rest:
                accepted = self._admit(content)
                told.append((offset, *unpack(content.stamp), content.leader, accepted))
                if accepted:
                    first = content.first if first < 0 else first
                    if content.rows is not None and content.rows.num_rows:
                        kept.append(content.rows)
            if kept:
                times = batch.timestamps[np.searchsorted(batch.offsets, [rest[0][0], rest[-1][0]])]
                self._append(kept, int(times[0]), int(times[1]))
            elif first > self.copy.next:
                self.copy.skip(first)
            self.copy.advance(max(batch.next_offset, self.copy.offset))
            session = self.session
        if session is not None:
            for offset, epoch, number, leader, accepted in told:
                session.note_applied(offset, epoch, number, leader, accepted)
        self._arrivals.announce()

    def take(self, offset: int, time: int, content: Content) -> bool:
        """Apply a record of this node's own as soon as it has its place, if all before it are
        applied. Kafka's thread.

        Args:
            offset: its place.
            time: when it was appended, epoch ms.
            content: what it says.
        """
        with self.lock:
            if offset != self.copy.offset or not self._admit(content):
                return False
            if content.rows is not None and content.rows.num_rows:
                self._append([content.rows], time, time)
            self.copy.advance(offset + 1)
        self._arrivals.announce()
        return True

    def _admit(self, content: Content) -> bool:
        if not self.copy.fence.admits(content.stamp, content.leader):
            self.fenced += 1
            return False
        for part in content.parts:
            self.copy.producers.note(part)
        return True

    def _append(self, kept: list[pa.RecordBatch], oldest: int, newest: int) -> None:
        rows = kept[0] if len(kept) == 1 else pa.concat_batches(kept)
        self.copy.append(Chunk(int(rows.column(ROW_ID)[0].as_py()), rows, oldest, newest))

    def _contents(self, batch: Batch, places: list[int]) -> list[tuple[int, Content]]:
        """Contents of records with their offsets, in order. What this node has sent itself it need
        not decode.
        """
        session = self.session
        own = {
            i: c
            for i in places
            if session is not None and (c := session.content(batch.values[i])) is not None
        }
        found = [(int(batch.offsets[i]), c) for i, c in own.items()]
        return sorted(
            [*found, *self._decode(batch, [i for i in places if i not in own])], key=itemgetter(0)
        )

    def _decode(self, batch: Batch, places: list[int]) -> list[tuple[int, Content]]:
        """Contents of records with their offsets; what cannot be used is left out."""
        if not places:
            return []
        decoded = self.rows.codec.decode([batch.values[i] for i in places])
        for index, reason in decoded.bad:
            log.error(
                "a record of a stream table's log cannot be read",
                table=self.name,
                reason=reason,
                place=index,
            )
        rows = self.rows.to_batch(decoded.rows)
        meta = (
            decoded.records.get_column(name).to_list()
            for name in ("_record", "rows", "producer", "from_offset", "offset", "trace")
        )
        found = []
        at = 0
        for record, count, producer, first, stamp, text in zip(*meta, strict=True):
            trace = _trace(text)
            at = at + count
            if producer != self.producer:
                log.error(
                    "a record of a stream table's log is not its leader's",
                    table=self.name,
                    producer=str(producer)[:64],
                )
                continue
            found.append(
                (
                    int(batch.offsets[places[record]]),
                    Content(stamp, trace.leader, trace.parts, first, rows.slice(at - count, count)),
                )
            )
        return found

    def drop(self) -> None:
        """The table is gone from the catalog."""
        self.dropped = True
        self._arrivals.announce()

    # ---------------------------------------------------------------- the event loop

    def wake(self) -> None:
        """Have everybody who waits look again."""
        self._arrivals.announce()

    def arrival(self) -> asyncio.Event:
        """Set when rows come after this call, or the table goes."""
        return self._arrivals.upcoming()


def _trace(text: str | None) -> Trace:
    try:
        return parse_trace(text)
    except ValueError:
        return Trace("")
