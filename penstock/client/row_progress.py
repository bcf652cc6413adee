"""How far a subscription to a stream table has come: rows that came, and rows that were handled."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.client.wire import ROW_ID, from_stream
from penstock.errors import RemoteError


class RowProgress:
    """Positions are indexes of rows; below zero they are not known yet."""

    def __init__(self) -> None:
        #: the next row that is wanted
        self.next = -1
        #: the row up to which handlers are done, and up to which a node knows it
        self.processed = -1
        self.confirmed = -1

    @property
    def is_known(self) -> bool:
        return self.next >= 0

    @property
    def untold(self) -> bool:
        """Tell if handlers have done more than a node knows."""
        return self.processed > self.confirmed

    def take(self, message: bytes) -> pa.Table | None:
        """Return the rows of a message that have not come yet.

        Raises:
            RemoteError: rows before them are missing.
        """
        first = int.from_bytes(message[:8], "big")
        next_ = int.from_bytes(message[8:16], "big")
        if next_ <= self.next:
            return None
        if first > self.next:
            raise RemoteError(f"rows {self.next} to {first - 1} did not come", code="E_INTERNAL")
        rows = from_stream(message[16:])
        if first < self.next:
            rows = rows.filter(pc.greater_equal(rows.column(ROW_ID), self.next))
        self.next = next_
        return rows if rows.num_rows else None

    def skip_to(self, row: int) -> None:
        """Note that rows before *row* pass no filter."""
        self.next = max(self.next, row)

    def note_processed(self) -> None:
        """Note that handlers are done with all rows that came."""
        self.processed = self.next

    def confirm(self, row: int) -> None:
        """Note that a node knows that rows up to *row* are processed."""
        self.confirmed = max(self.confirmed, row)

    def restart(self, next_: int) -> None:
        """Go on at *next_*, whatever came before."""
        self.next = next_
        self.processed = -1
        self.confirmed = -1
