"""Records of a leader that are under way to the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from services.tables.records import Sent
from services.tables.replica import Content
from services.tables.writes import Entry


class SentRecords:
    """Used under the session's lock; in the order of their numbers."""

    def __init__(self) -> None:
        self._sent: deque[Sent] = deque()
        #: by their bytes, which hold epoch, number and leader: no two records are the same
        self._contents: dict[bytes, Content] = {}

    def __bool__(self) -> bool:
        return bool(self._sent)

    def add(self, sent: Sent) -> None:
        self._sent.append(sent)
        if sent.content is not None:
            self._contents[sent.value] = sent.content

    def content(self, value: bytes | None) -> Content | None:
        """Return what a record of the log says, if it is one of these."""
        return self._contents.get(value) if value is not None else None

    def take_until(self, number: int) -> Iterator[Entry]:
        """Take off the records up to *number*; yield what is complete with them."""
        while self._sent and self._sent[0].number <= number:
            sent = self._sent.popleft()
            self._contents.pop(sent.value, None)
            yield from sent.complete

    def clear(self) -> list[Entry]:
        """Take off all records; return what would have been complete with them."""
        left = [entry for sent in self._sent for entry in sent.complete]
        self._sent.clear()
        self._contents.clear()
        return left
