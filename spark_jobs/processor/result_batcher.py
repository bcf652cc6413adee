"""Result rows on their way out of a processor: those of many streams that look the same on the wire
are encoded at once.

What a stream's results cost to encode however few they are is a thousand rows' worth; a hundred
streams over one table have mostly few. A stream whose rows do not fit its table stops alone.
Refused: deciding what leaves, and where to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.codec import Outgoing, encode_together

#: rows that wait for others at most: they are in memory twice while they are encoded
_MOST_ROWS = 1 << 17

#: what sends encoded records: (partition, value) of each
Send = Callable[[Sequence[tuple[int, bytes]]], None]


class Sends(Protocol):
    """A stream, as far as its results are concerned."""

    def guard(self, action: Callable[[], None], first: int, last: int) -> None: ...


class ResultBatcher:
    """What the streams of one chunk publish."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Sends, Outgoing, Send]] = []
        self._rows = 0

    def add(self, stream: Sends, part: Outgoing, send: Send) -> None:
        """Have *part* sent, later or now."""
        self._waiting.append((stream, part, send))
        self._rows += part.rows.height
        if self._rows > _MOST_ROWS:
            self.flush()

    def flush(self) -> None:
        """Send all that waits."""
        waiting = self._waiting
        self._waiting = []
        self._rows = 0
        if not waiting:
            return
        try:
            encoded = encode_together([part for _, part, _ in waiting])
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # noqa: B036  a panic of polars is no Exception
            encoded = []  # each by itself, then, which tells who is to blame
        for i, (stream, part, send) in enumerate(waiting):
            stream.guard(
                lambda i=i, part=part, send=send: send(encoded[i] if encoded else part.encode()),  # type: ignore[misc]
                part.from_offset,
                part.offset,
            )
