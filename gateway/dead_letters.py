"""The newest dead letters, for `information_schema`. Reads the topic anew for each question;
refuses to look further back than a bound.
"""

from __future__ import annotations

from dataclasses import replace

from penstock import names
from penstock.bus import Admin, Reader
from penstock.errors import SchemaError
from penstock.records import DeadLetter, decode

#: records read at most
MOST = 20_000
_PATIENCE = 10
_WHERE = (names.DEAD_LETTER, 0)


class DeadLetterReader:
    """`read` gives them, the oldest first; `count` says how many there are."""

    def __init__(self, admin: Admin, bootstrap: str, client_id: str) -> None:
        self._admin = admin
        self._bootstrap = bootstrap
        self._client_id = client_id

    def count(self) -> int:
        """Return how many dead letters the topic holds. Raises BusError."""
        start, end = self._range()
        return end - start

    def _range(self) -> tuple[int, int]:
        """Return the first offset and the one behind the last."""
        start = self._admin.start_offsets([_WHERE])[_WHERE]
        return start, self._admin.end_offsets([_WHERE])[_WHERE]

    def read(self) -> list[DeadLetter]:
        start, end = self._range()
        at = max(start, end - MOST)
        silent = 0
        found = list[DeadLetter]()
        if at >= end:
            return found
        with Reader(
            self._bootstrap, {_WHERE: at}, client_id=self._client_id, max_wait_ms=20
        ) as reader:
            while at < end and silent < _PATIENCE:
                batches = reader.read(5_000, 1.0)
                silent = 0 if batches else silent + 1
                for batch in batches:
                    at = batch.next_offset
                    for value, came in zip(batch.values, batch.timestamps.tolist(), strict=True):
                        try:
                            letter = decode(DeadLetter, value)
                        except SchemaError:
                            continue  # not ours
                        # earlier builds knew no time of a result that failed
                        found.append(letter if letter.time else replace(letter, time=came))
        return found
