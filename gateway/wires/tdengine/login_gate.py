"""How much a client may send before it is known: a gate between a connection and aiohttp, which
would hold a message of any allowed size for whoever connects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class LoginGate(asyncio.Protocol):
    """Passes so many bytes on; what is past them is dropped. Event loop only."""

    def __init__(self, inner: asyncio.Protocol, most: int, when_full: Callable[[], None]) -> None:
        """
        Args:
            inner: gets what passes.
            most: bytes.
            when_full: called once, at the first byte too many.
        """
        self._inner = inner
        self._left = most
        self._when_full = when_full

    @property
    def is_full(self) -> bool:
        return self._left < 0

    def data_received(self, data: bytes) -> None:
        if self.is_full:
            return
        self._left -= len(data)
        if self.is_full:
            self._when_full()
        else:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)


@contextmanager
def login_gate(
    transport: asyncio.Transport, most: int, when_full: Callable[[], None]
) -> Iterator[LoginGate]:
    """Let at most *most* bytes in while inside, and everything behind it; after an error the gate
    stays closed.
    """
    inner = transport.get_protocol()
    assert isinstance(inner, asyncio.Protocol)
    gate = LoginGate(inner, most, when_full)
    transport.set_protocol(gate)
    yield gate
    transport.set_protocol(inner)
