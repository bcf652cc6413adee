"""Writes of producers as a leader remembers them: those under way, their repeats, and those that
were refused.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from penstock.errors import PenstockError
from services.tables.stamp import ProducerPositions, WritePart
from services.tables.writes import ProducerWrite, judge

#: refused writes that are remembered
_REFUSED = 1_000
_Key = tuple[str, int]


class WriteLedger:
    """Used under the session's lock, but for `judge` and `note`: these by who publishes."""

    def __init__(self, max_producers: int) -> None:
        self._producers = ProducerPositions(max_producers)
        self._under_way: set[_Key] = set()
        #: writes that came again while their first copy is under way
        self._repeats: dict[_Key, list[ProducerWrite]] = {}
        #: writes that do not fit the table, so that the same one gets the same answer
        self._refused: OrderedDict[_Key, PenstockError] = OrderedDict()

    def begin(self, producers: ProducerPositions) -> None:
        """Take over what is known of producers when the epoch begins."""
        self._producers = producers

    def judge(self, write: ProducerWrite) -> Literal["new", "repeat", "rest"]:
        """See `writes.judge`."""
        return judge(self._producers.get(write.producer), write)

    def last(self, producer: str) -> WritePart | None:
        return self._producers.get(producer)

    def note(self, part: WritePart) -> None:
        """Count a write, or an offset, as if it were in the log: the next one follows it."""
        self._producers.note(part)

    def send(self, write: ProducerWrite) -> None:
        """Note that a write is under way."""
        self._under_way.add(_key(write))

    def hold_repeat(self, write: ProducerWrite) -> bool:
        """Let a write wait for its first copy, if that is under way."""
        key = _key(write)
        if key not in self._under_way:
            return False
        self._repeats.setdefault(key, []).append(write)
        return True

    def refusal(self, write: ProducerWrite) -> PenstockError | None:
        """Return the error with which the same write was refused."""
        return self._refused.get(_key(write))

    def refuse(self, write: ProducerWrite, error: PenstockError) -> list[ProducerWrite]:
        """Remember that a write does not fit; return the repeats that wait for its answer."""
        key = _key(write)
        if write.after is not None:
            # its rows may come again in other writes: none of them is there
            total = 0 if write.after else -1
            self._producers.note(WritePart(write.producer, write.after, 0, total))
        else:
            self._refused[key] = error
        while len(self._refused) > _REFUSED:
            self._refused.popitem(last=False)
        return self.confirm(write)

    def confirm(self, write: ProducerWrite) -> list[ProducerWrite]:
        """Note that a write is under way no more; return the repeats that wait for its answer."""
        key = _key(write)
        self._under_way.discard(key)
        return self._repeats.pop(key, [])

    def waiting(self) -> list[ProducerWrite]:
        """Return all repeats that wait."""
        return [write for writes in self._repeats.values() for write in writes]


def _key(write: ProducerWrite) -> _Key:
    return write.producer, write.sequence
