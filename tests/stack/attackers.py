"""Attackers without credentials, in a process of their own: `python -m tests.stack.attackers KIND
PORT SECONDS`.

A hundred of them, half from one address and half from an address each, do the same thing as fast as
they are let. Prints how many of their attempts came to an end.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import sys
import time
from collections.abc import Awaitable, Callable

import pyarrow.flight as flight

ATTACKERS = 100
Attack = Callable[[int, int], Awaitable[None]]


def address_of(number: int) -> tuple[str, int]:
    return ("127.0.0.1" if number % 2 else f"127.0.1.{number}", 0)


async def _asked(number: int, port: int, request: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address_of(number))
    try:
        writer.write(request)
        async with asyncio.timeout(10):
            await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()


def _guess(names: bool) -> str:
    user = f"user{secrets.token_hex(4)}" if names else "ann"
    return base64.b64encode(f"{user}:{secrets.token_hex(6)}".encode()).decode()


async def guesses(number: int, port: int) -> None:
    """Passwords for many names, over HTTP."""
    head = f"POST /rest/sql HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {_guess(True)}\r\n"
    await _asked(number, port, f"{head}Content-Length: 8\r\n\r\nSELECT 1".encode())


async def _opened(number: int, port: int, path: str) -> None:
    await _asked(
        number,
        port,
        f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {base64.b64encode(secrets.token_bytes(16)).decode()}\r\n"
        f"Authorization: Basic {_guess(number % 3 > 0)}\r\n\r\n".encode(),
    )


async def sockets(number: int, port: int) -> None:
    """Passwords for many names and one, when WebSockets are opened."""
    await _opened(number, port, "/ws")


async def links(number: int, port: int) -> None:
    """The same, when links between deployments are opened."""
    await _opened(number, port, "/link")


async def nodes(number: int, port: int) -> None:
    """Passwords at a node of stream tables."""
    head = f"GET /v1/stat HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {_guess(number % 3 > 0)}\r\nConnection: close\r\n\r\n"
    await _asked(number, port, head.encode())


async def questions(number: int, port: int) -> None:
    """All that a health port tells to anybody, its metrics among it."""
    path = ("/metrics", "/readyz", "/healthz")[number % 3]
    await _asked(number, port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def silent(number: int, port: int) -> None:
    """Connections that send a part of their headers and wait; five each."""
    held = [
        await asyncio.open_connection("127.0.0.1", port, local_addr=address_of(number))
        for _ in range(5)
    ]
    try:
        for _, writer in held:
            writer.write(b"POST /rest/sql HTTP/1.1\r\nHost:")
        async with asyncio.timeout(30):
            await held[0][0].read()
    finally:
        for _, writer in held:
            writer.close()


async def calls(number: int, port: int) -> None:
    """Passwords over Flight."""

    def call() -> None:
        options = flight.FlightCallOptions(
            headers=[(b"authorization", b"Basic " + _guess(True).encode())], timeout=10
        )
        with (
            flight.FlightClient(f"grpc://127.0.0.1:{port}") as client,
            contextlib.suppress(flight.FlightError),
        ):
            client.do_get(flight.Ticket(b"SELECT 1"), options).read_all()

    await asyncio.to_thread(call)


ATTACKS: dict[str, Attack] = {
    "guesses": guesses,
    "sockets": sockets,
    "links": links,
    "nodes": nodes,
    "questions": questions,
    "silent": silent,
    "calls": calls,
}


async def attack(kind: str, port: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    count = 0

    async def one(number: int) -> None:
        nonlocal count
        while time.monotonic() < until:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(max(until - time.monotonic(), 0.01)):
                    await ATTACKS[kind](number, port)
            count += 1
            await asyncio.sleep(0.1)

    await asyncio.gather(*(one(number) for number in range(ATTACKERS)))
    return count


if __name__ == "__main__":
    print(asyncio.run(attack(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
