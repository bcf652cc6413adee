"""Tells those who wait for a table that there is something new."""

from __future__ import annotations

import asyncio


class Arrivals:
    """`announce` from any thread; `upcoming` from the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived = asyncio.Event()

    def upcoming(self) -> asyncio.Event:
        """Return an event that is set by the next announcement after this call."""
        return self._arrived

    def announce(self) -> None:
        """Wake everybody who waits; at once in the loop's own thread."""
        if _runs_here(self._loop):
            self._wake()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell if this thread is the loop's, which need not be woken then."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
