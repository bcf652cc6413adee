"""What connections owe a port, and how many one address may have, with real servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus

from penstock.config.settings import Settings
from penstock.runtime.connections import Connections, GuardedSite, counting_connection, prepare

QUICK: dict[str, Any] = {"header_seconds": 0.5, "body_seconds": 1.0}


@asynccontextmanager
async def site(**settings: Any) -> AsyncIterator[int]:
    """An application that answers with the body it was sent."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def slow(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(3)
        return web.Response(text="slow")

    async def socket(request: web.Request) -> web.WebSocketResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        async for message in response:
            await response.send_str(message.data)
        return response

    app = web.Application()
    app.add_routes([web.post("/", echo), web.post("/slow", slow), web.get("/ws", socket)])
    runner = web.AppRunner(prepare(app), access_log=None)
    await runner.setup()
    served = GuardedSite(runner, Settings(**settings), None)
    await served.start()
    try:
        yield served.port
    finally:
        await runner.cleanup()


async def ended(reader: asyncio.StreamReader, seconds: float) -> bytes:
    """What came until the other side closed the connection, which it has to do in time."""
    got = b""
    async with asyncio.timeout(seconds):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                got += piece
    return got


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"P",
        b"POST / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
def test_who_does_not_send_what_it_owes_is_cut_off(sent: bytes) -> None:
    async def run() -> None:
        async with site(**QUICK) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert b" 200 " not in await ended(reader, 6)
            writer.close()

    asyncio.run(run())


def test_headers_that_trickle_are_cut_off_also_on_a_connection_that_was_good_before() -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            for byte in b"POST / HTTP/1.1\r\nHost: " + b"x" * 10_000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)

    async def run() -> None:
        async with site(**QUICK) as port:
            for before in (b"", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(before)
                if before:
                    assert b"ok" in await reader.readuntil(b"ok")
                task = asyncio.create_task(trickle(writer))
                await ended(reader, 6)
                task.cancel()
                writer.close()

    asyncio.run(run())


def test_slow_answers_and_sockets_that_say_nothing_are_left_alone() -> None:
    async def run() -> None:
        async with site(**QUICK) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"POST /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
            )
            await asyncio.sleep(0.2)
            writer.write(b"ok")
            async with connect(f"ws://127.0.0.1:{port}/ws") as socket:
                assert (await ended(reader, 10)).endswith(b"slow")
                await socket.send("still here")
                assert await socket.recv() == "still here"
            writer.close()

    asyncio.run(run())


def test_one_address_has_so_many_connections_and_gets_new_ones_when_it_closes_some() -> None:
    async def run() -> None:
        async with site(max_connections_per_address=3) as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            told = await ended(reader, 5)
            head, _, body = told.partition(b"\r\n\r\n")
            assert b" 429 " in head and b"E_OVERLOAD" in body
            assert f"content-length: {len(body)}".encode() in head.lower()
            writer.close()
            # another address is another's
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=("127.0.0.2", 0)
            )
            writer.write(
                b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
            )
            assert (await ended(reader, 5)).endswith(b"ok")
            writer.close()
            held[0][1].close()
            async with asyncio.timeout(30):
                while True:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(
                        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
                    )
                    answer = await ended(reader, 5)
                    writer.close()
                    if answer.endswith(b"ok"):
                        break
            for _, other in held:
                other.close()

    asyncio.run(run())


def test_a_port_has_so_many_connections_from_however_many_addresses() -> None:
    async def run() -> None:
        async with site(max_connections=3, max_connections_per_address=2) as port:
            held = [
                await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.0.0.{i}", 0))
                for i in (2, 3, 4)
            ]
            for host, words in (("127.0.0.5", b"to this port"), ("127.0.0.2", b"to this port")):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=(host, 0)
                )
                head, _, body = (await ended(reader, 5)).partition(b"\r\n\r\n")
                assert b" 429 " in head and b"E_OVERLOAD" in body and words in body
                assert f"content-length: {len(body)}".encode() in head.lower()
                writer.close()
            # who is there is served
            held[0][1].write(
                b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
            )
            assert (await ended(held[0][0], 5)).endswith(b"ok")
            async with asyncio.timeout(30):
                while True:
                    reader, writer = await asyncio.open_connection(
                        "127.0.0.1", port, local_addr=("127.0.0.5", 0)
                    )
                    writer.write(
                        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
                    )
                    answer = await ended(reader, 5)
                    writer.close()
                    if answer.endswith(b"ok"):
                        break
            for _, other in held:
                other.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"GET /no HTTP/1.1\r\nHost: x\r\n\r\n",
        b"what\r\n\r\n",
    ],
)
def test_answers_tell_no_versions(sent: bytes) -> None:
    async def run() -> None:
        async with site() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert b"aiohttp" not in head and b"python" not in head
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("limit", ["max_connections_per_address", "max_connections"])
def test_web_socket_servers_count_connections_before_they_say_anything_and_end_silent_ones(
    limit: str,
) -> None:
    async def hello(connection: ServerConnection) -> None:
        await connection.send("hello")

    async def run() -> None:
        connections = Connections(Settings(**{limit: 3, **QUICK}))
        served = serve(
            hello,
            "127.0.0.1",
            0,
            create_connection=counting_connection(connections),
            open_timeout=QUICK["header_seconds"],
        )
        async with served as server:
            port = server.sockets[0].getsockname()[1]
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            with pytest.raises(InvalidStatus, match="429"):
                await connect(f"ws://127.0.0.1:{port}/")
            for reader, writer in silent:
                await ended(reader, 6)
                writer.close()
            async with connect(f"ws://127.0.0.1:{port}/") as socket:
                assert await socket.recv() == "hello"

    asyncio.run(run())
