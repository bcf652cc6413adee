"""Targets `ws://` and `wss://`: one text frame a message.

Messages are confirmed by the answer to the ping behind them: a WebSocket peer answers frames in
order, so by then it has read them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from penstock.outbound.targets import endpoint, reason_of
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.surroundings import Surroundings
from services.notifier.target_connection import ConnectionBroke, TargetLimits

_MOST_MESSAGES = 256
_MOST_SIZE = 1 << 20


class WebSocketTarget:
    """A `TargetConnection`."""

    def __init__(self, target: NotifyTarget, around: Surroundings) -> None:
        self.listed = True
        self.limits = TargetLimits(_MOST_MESSAGES, _MOST_SIZE, around.settings.retry_max)
        self._target = target
        self._around = around
        self._connection: ClientConnection | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        settings = self._around.settings
        async with asyncio.timeout(settings.connect_seconds):
            found = await self._around.find(self._target)
            self.listed = found.listed
            # a connection that is made already follows no redirect
            connected = await _connect_socket(found.address, endpoint(self._target.url).port)
            self._connection = await connect(
                self._target.url,
                sock=connected,
                proxy=None,
                compression=None,
                max_size=1 << 20,
                max_queue=4,
                open_timeout=None,
                close_timeout=1.0,
                ping_interval=settings.ping_seconds,
                ping_timeout=settings.ack_seconds,
            )
        self._listening = asyncio.create_task(_ignore(self._connection))

    async def send(self, messages: Sequence[NotifyMessage]) -> None:
        assert self._connection is not None
        try:
            async with asyncio.timeout(self._around.settings.ack_seconds):
                for message in messages:
                    await self._connection.send(message.text)
                await (await self._connection.ping())
        except TimeoutError:
            self._connection.transport.abort()
            raise
        except ConnectionClosed as closed:
            raise ConnectionBroke(reason_of(closed)) from closed

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if self._connection is not None:
            await self._connection.close()
        self._connection = self._listening = None


async def _connect_socket(address: str, port: int) -> socket.socket:
    """Connect to an address that was checked."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(kind, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


async def _ignore(connection: ClientConnection) -> None:
    """Take what a target says, so that its answers to pings get through; closing is noticed by who
    sends.
    """
    with contextlib.suppress(ConnectionClosed):
        async for _ in connection:
            pass
