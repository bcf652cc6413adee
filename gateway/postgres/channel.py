"""Bytes of one connection: read as many as are asked for, never held beyond what is asked for and
a little more; TLS begun in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import cast

from penstock.runtime.connections import Connections

#: bytes that are held without being asked for
_AHEAD = 65_536
#: bytes of answers that may wait for the client
_UNSENT = 262_144


class ClientGone(Exception):
    """The other side has ended the connection."""


class PgChannel(asyncio.Protocol):
    """Event loop only. One reader, one writer."""

    def __init__(
        self, connections: Connections, begin: Callable[[PgChannel], asyncio.Task[None]]
    ) -> None:
        """
        Args:
            connections: counts this one.
            begin: starts what serves the channel, once it is admitted.
        """
        self._connections = connections
        self._begin = begin
        self._task: asyncio.Task[None] | None = None
        self._address: str | None = None
        self._transport: asyncio.Transport | None = None
        self._held = bytearray()
        self._wanted = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._ended = False
        self.tls = False

    # ---------------------------------------------------------------- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.tls:
            return  # the same connection, behind TLS
        self._address = self._connections.enter(transport)
        if self._address is None:
            self._ended = True
            return
        held = transport.get_extra_info("socket")
        if held is not None:
            # a client whose machine has gone says nothing any more
            held.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._transport.set_write_buffer_limits(high=_UNSENT)
        self._writable.set()
        self._task = self._begin(self)

    def data_received(self, data: bytes) -> None:
        if self._ended or self._transport is None:
            return
        self._held += data
        if len(self._held) >= max(self._wanted, _AHEAD):
            self._transport.pause_reading()
        self._arrived.set()

    def eof_received(self) -> bool:
        self._ended = True
        self._arrived.set()
        return False

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._arrived.set()
        self._writable.set()
        if self._address is not None:
            self._connections.leave(self._address)
            self._address = None
        if self._task is not None:
            self._task.cancel()

    # ---------------------------------------------------------------- what a connection calls

    @property
    def remote(self) -> str:
        """Return the address of the other side."""
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(peer[0]) if peer else ""

    def is_private(self, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
        """Tell whether nobody between can read what is sent: over TLS, within this machine, or
        from one of these *networks*.
        """
        if self.tls:
            return True
        with contextlib.suppress(ValueError):
            address = ip_address(self.remote.partition("%")[0])
            address = getattr(address, "ipv4_mapped", None) or address
            return address.is_loopback or any(address in network for network in networks)
        return False

    @property
    def waiting(self) -> int:
        """Return how many bytes are held that nobody has asked for."""
        return len(self._held)

    async def read(self, count: int) -> bytes:
        """Return the next *count* bytes. Raises ClientGone."""
        self._wanted = count
        while len(self._held) < count:
            if self._ended or self._transport is None:
                raise ClientGone
            self._arrived.clear()
            self._transport.resume_reading()
            await self._arrived.wait()
        self._wanted = 0
        found = bytes(self._held[:count])
        del self._held[:count]
        return found

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written. Raises ClientGone."""
        await self._writable.wait()
        if self._transport is None or self._transport.is_closing():
            raise ClientGone

    async def start_tls(self, context: ssl.SSLContext, answer: bytes, seconds: float) -> None:
        """Write *answer* in the clear, then go on over TLS. Raises ClientGone."""
        assert self._transport is not None
        self.write(answer)
        self.tls = True
        try:
            made = await asyncio.get_running_loop().start_tls(
                self._transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=seconds,
            )
        except (OSError, ssl.SSLError):
            raise ClientGone from None
        if made is None:
            raise ClientGone
        self._transport = made
        self._transport.set_write_buffer_limits(high=_UNSENT)
        self._writable.set()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
