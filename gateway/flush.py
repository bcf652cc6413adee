"""The records that were sent together: what became of each, and of the writes that they hold."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gateway.coalescer import PendingWrite
from gateway.idempotency import Receipt
from gateway.write_spans import WritePlaces
from penstock.bus import Delivery
from penstock.errors import BusError, PenstockError

#: what a write came to
WriteOutcome = Receipt | PenstockError


class RowFlush:
    """Counts the deliveries of one flush; the last one settles its writes."""

    def __init__(
        self,
        records: int,
        receipts: list[tuple[PendingWrite, WriteOutcome]],
        settle: Callable[[list[tuple[PendingWrite, WriteOutcome]]], None],
        acked: dict[tuple[str, int], int],
        places: WritePlaces | None = None,
    ) -> None:
        """*acked*: told the newest record of each partition; *places*: where the records are that
        sampled writes are in.
        """
        self._left = records
        self._receipts = receipts
        self._settle = settle
        self._acked = acked
        self._places = places
        self._failed: BusError | None = None
        self._lock = threading.Lock()

    def count(self, result: Delivery | BusError) -> None:
        """Take what became of one record."""
        with self._lock:
            if isinstance(result, BusError):
                self._failed = self._failed or result
            else:
                at = (result.topic, result.partition)
                self._acked[at] = max(self._acked.get(at, 0), result.offset)
                if self._places is not None:
                    self._places.note(result)
            self._left -= 1
            if self._left:
                return
        if self._places is not None:
            self._places.tell()
        if self._failed is None:
            self._settle(self._receipts)
        else:
            error = self._failed
            self._settle([(w, error) for w, _ in self._receipts])
