"""The writes of a producer that have no answer yet, in order, and what their answers say."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.client.quorum import QuorumLoss
from penstock.client.wire import to_stream
from penstock.remote_errors import error_of

#: errors after which the same write is sent again, to whoever leads then
_AGAIN = frozenset({"E_NOT_LEADER", "E_SEQUENCE", "E_OVERLOAD"})


@dataclass(eq=False)
class OpenWrite:
    """A write under its number."""

    sequence: int
    data: pa.Table
    done: Future[int] = field(default_factory=Future)


class OpenWrites:
    """All methods are called with the appender's lock held."""

    def __init__(self, producer: str) -> None:
        self.producer = producer
        self._open: dict[int, OpenWrite] = {}
        self._sequence = 0
        self._quorum = QuorumLoss()
        #: when an answer came last, or the first write after a pause was made
        self.heard = time.monotonic()
        #: rows that are in the log
        self.acked = 0

    def __len__(self) -> int:
        return len(self._open)

    def all(self) -> list[OpenWrite]:
        return list(self._open.values())

    def add(self, data: pa.Table) -> OpenWrite:
        """Give rows the next number."""
        if not self._open:
            self.heard = time.monotonic()
        self._sequence += 1
        write = self._open[self._sequence] = OpenWrite(self._sequence, data)
        return write

    def message(self, write: OpenWrite) -> bytes:
        """Return *write* as it is sent; it says which ones before it are settled."""
        meta = {
            "penstock.producer": self.producer,
            "penstock.seq": str(write.sequence),
            "penstock.settled": str(next(iter(self._open))),
        }
        return to_stream(write.data, meta)

    def settle(self, answers: Sequence[dict[str, Any]]) -> bool:
        """Settle writes by their answers; False when the rest has to be sent again."""
        for answer in answers:
            error = error_of(answer["error"]) if "error" in answer else None
            if error is not None and (error.code in _AGAIN or self._quorum.may_recover(error)):
                return False
            write = self._open.pop(int(answer["seq"]), None)
            if write is None:
                continue
            self.heard = time.monotonic()
            if error is None:
                self._quorum.end()
                self.acked += write.data.num_rows
                write.done.set_result(int(answer["rows"]))
            else:
                write.done.set_exception(error)
        return True

    def take_all(self) -> list[OpenWrite]:
        """Take out all writes: nobody answers them any more."""
        taken = self.all()
        self._open = {}
        self.heard = time.monotonic()
        return taken
