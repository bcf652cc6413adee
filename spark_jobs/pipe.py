"""What Spark sends to a Python worker, for the thread that works on it to read by itself.

A thread that reads ahead wakes another one with every record, and takes turns with it at the
interpreter's lock: at a thousand records a second that was most of what a record waited for. Who
reads alone has to know whether there is anything to read before he would have to wait. This file
knows: it has read so many bytes ahead, or the socket has some. Refused: knowing what the bytes
mean.
"""

from __future__ import annotations

import io
import select
from collections.abc import Callable
from typing import Any, BinaryIO, cast

#: read ahead at most
_CHUNK = 1 << 16
_Main = Callable[[Any, BinaryIO], Any]


class Pipe(io.BufferedIOBase):
    """A binary file over *source*, of which nobody has read ahead and nobody else reads from now
    on.
    """

    def __init__(self, source: io.BufferedReader) -> None:
        # not through its buffer: what lies there cannot be asked for without waiting for more
        self._source = source
        self._raw = cast(io.FileIO, source.raw)
        self._poll = select.poll()
        self._poll.register(source.fileno(), select.POLLIN)
        self._chunk = b""
        self._at = 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._source.close()
        super().close()

    def read(self, size: int | None = -1) -> bytes:
        """*size* bytes, fewer at the end only; all there are when it is negative."""
        if size is None or size < 0:
            return self._ahead() + self._raw.readall()
        end = self._at + size
        if end <= len(self._chunk):
            found = self._chunk[self._at : end]
            self._at = end
            return found
        if size >= _CHUNK:
            return self._large(size)
        parts = [self._ahead()]
        missing = size - len(parts[0])
        while missing and (chunk := self._raw.read(_CHUNK)):
            if len(chunk) > missing:
                self._chunk = chunk
                self._at = missing
                chunk = chunk[:missing]
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)

    def _large(self, size: int) -> bytes:
        """Without reading ahead, to where it belongs."""
        ahead = self._ahead()
        whole = bytearray(size)
        filled = len(ahead)
        with memoryview(whole) as view:
            view[:filled] = ahead
            while filled < size and (found := self._raw.readinto(view[filled:])):
                filled += found
        del whole[filled:]
        return cast(bytes, whole)  # as good as one to Arrow and to pickle, and a copy less

    def waits(self, timeout: float | None) -> bool:
        """Whether there is something to read, be it the end: at once, or within *timeout* seconds
        (None: however long it takes).
        """
        if self._at < len(self._chunk):
            return True
        return bool(self._poll.poll(None if timeout is None else max(timeout, 0.0) * 1000))

    def peek(self) -> memoryview:
        """What was read ahead, or else what one reading of the source gives; nothing at its end."""
        if self._at == len(self._chunk):
            self._chunk = self._raw.read(_CHUNK) or b""
            self._at = 0
        return memoryview(self._chunk)[self._at :]

    def skip(self, size: int) -> None:
        """Have read *size* bytes of what `peek` gave."""
        self._at += size

    def _ahead(self) -> bytes:
        """All that was read ahead, which then is no more."""
        found = self._chunk[self._at :]
        self._chunk = b""
        self._at = 0
        return found


#: of the task at work: a worker has one at a time
_current: Pipe | None = None


def through_a_pipe(main: _Main) -> _Main:
    """Spark's *main* of a worker, given its input as a `Pipe` that `waits` knows of."""

    def piped(infile: io.BufferedReader, outfile: BinaryIO) -> Any:
        # Spark hands an operator its batches, not where they come from
        global _current  # noqa: PLW0603
        _current = Pipe(infile)
        try:
            return main(_current, outfile)
        finally:
            _current = None

    return piped


def current() -> Pipe | None:
    """The pipe that this process's task reads through; None outside of Spark's workers."""
    return _current
