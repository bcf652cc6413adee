"""How a delivery connects: to the address that was checked, never to the mesh, and no further than
that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from polars.exceptions import PanicException
from prometheus_client import CollectorRegistry
from websockets.asyncio.server import ServerConnection, serve

from penstock.feeds.feed import FeedHistory
from penstock.outbound.reach import Own
from penstock.outbound.targets import AllowList, TargetRefused
from services.notifier.cursor import Mark
from services.notifier.delivery import TargetDelivery
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.metrics import PushMetrics
from services.notifier.settings import NotifierSettings
from services.notifier.surroundings import Surroundings

SECRET = "hunter2"


def delivery(url: str, is_own: Callable[[str, int], bool] = lambda *_: False) -> TargetDelivery:
    settings = NotifierSettings(connect_seconds=5, retry_min=0.01, retry_max=0.02)
    none = cast(Any, None)
    return TargetDelivery(
        NotifyTarget(url, "drop"),
        Surroundings(settings, AllowList([]), is_own, none, none, none, none, none, none),
    )


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port that says *answer* to every request."""
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


async def test_a_message_goes_to_the_address_that_was_checked() -> None:
    got: list[str | bytes] = []

    async def take(connection: ServerConnection) -> None:
        got.append(await connection.recv())
        await connection.wait_closed()

    async with serve(take, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        one = delivery(f"ws://ann:{SECRET}@localhost:{port}/in")
        await one._connection.open()
        await one._connection.send([message(0, 1, one.target)])
        await one._connection.close()
    assert got == ["of stream 1"]


def message(offset: int, stream: int, target: NotifyTarget) -> NotifyMessage:
    return NotifyMessage(
        0, offset, stream, f"d.s{stream}", "p", (offset, 0), 1, f"of stream {stream}", (target,)
    )


@pytest.mark.parametrize("allow", [["10.0.0.0/8"], ["127.0.0.0/8"], []])
async def test_a_host_that_is_not_listed_gets_the_messages_of_users_with_admin_only(
    allow: list[str],
) -> None:
    """Streams of several makers share a connection: stream 1 is of a user with ADMIN, stream 2 of
    one without.
    """
    got: list[str | bytes] = []
    done = asyncio.Event()

    async def take(connection: ServerConnection) -> None:
        async for text in connection:
            got.append(text)

    async with serve(take, "127.0.0.1", 0) as server:
        target = NotifyTarget(
            f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/in", "pause"
        )
        settings = NotifierSettings(connect_seconds=5, retry_min=0.01, retry_max=0.02)
        none = cast(Any, None)
        metrics = PushMetrics(CollectorRegistry())
        around = Surroundings(
            settings,
            AllowList(allow),
            lambda *_: False,
            metrics,
            none,
            none,
            lambda _: 10,
            lambda *_: None,
            lambda _: done.set() if one.has_settled(0, 4) else None,
            lambda stream: stream == 1,
            lambda _: True,
        )
        one = TargetDelivery(target, around)
        one.follow(0, Mark(0), behind=False)
        for offset, stream in enumerate((2, 1, 2, 1)):
            one.offer(message(offset, stream, target))
        one.start()
        async with asyncio.timeout(10):
            await done.wait()
        await one.stop()
    mine = ["of stream 1"] * 2
    assert got == (mine if allow == ["10.0.0.0/8"] else ["of stream 2", "of stream 1"] * 2)


async def test_messages_wait_while_nobody_may_notify_the_host() -> None:
    """The right of the only maker who had it was taken away: the target is as one that is down."""
    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0) as server:
        target = NotifyTarget(
            f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/in", "pause"
        )
        none = cast(Any, None)
        settings = NotifierSettings(connect_seconds=5, retry_min=0.01, retry_max=0.02)
        around = Surroundings(
            settings,
            AllowList(["10.0.0.0/8"]),
            lambda *_: False,
            PushMetrics(CollectorRegistry()),
            none,
            none,
            lambda _: 10,
            lambda *_: None,
            lambda _: None,
        )
        one = TargetDelivery(target, around)
        one.follow(0, Mark(0), behind=False)
        one.offer(message(0, 1, target))
        with pytest.raises(TargetRefused, match="may not be notified"):
            await one._connection.open()
        one._connection.listed = False
        with pytest.raises(TargetRefused, match="may not be notified"):
            one._check(await one._window())
        assert not one.has_settled(0, 1)


@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    ok = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    async with answering(ok) as (inside, asked):
        for host in ("127.0.0.1", "localhost"):
            moved = f"HTTP/1.1 {status} Moved\r\nLocation: ws://{host}:{inside}/{SECRET}\r\nContent-Length: 0\r\n\r\n"
            async with answering(moved.encode()) as (port, heard):
                with pytest.raises(Exception):  # noqa: B017, PT011
                    await delivery(f"ws://127.0.0.1:{port}/in")._connection.open()
                assert len(heard) == 1
        assert asked == []


async def test_a_redirect_to_itself_is_not_followed_either() -> None:
    moved = b"HTTP/1.1 302 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    async with answering(moved) as (port, heard):
        with pytest.raises(Exception):  # noqa: B017, PT011
            await delivery(f"ws://127.0.0.1:{port}/in")._connection.open()
        assert len(heard) == 1


async def test_the_mesh_itself_is_not_notified() -> None:
    async with answering(b"") as (port, heard):
        own = Own((("127.0.0.1", port),))
        for host in ("127.0.0.1", "localhost", "127.1"):
            with pytest.raises(TargetRefused, match="may not be notified"):
                await delivery(f"ws://{host}:{port}/in", own.holds)._connection.open()
        assert heard == []


@pytest.mark.parametrize(
    "answer",
    [
        f"HTTP/1.1 500 {SECRET}\r\nContent-Length: 7\r\n\r\n{SECRET}",
        f"SSH-2.0-{SECRET}\r\n",
        f"HTTP/1.1 302 {SECRET}\r\nLocation: http://h/{SECRET}\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_neither_the_answer_nor_the_address_is_in_the_log(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with answering(answer.encode()) as (port, _):
        one = delivery(f"ws://ann:{SECRET}@127.0.0.1:{port}?token={SECRET}")
        with pytest.raises(Exception) as failed:  # noqa: PT011
            await one._connection.open()
        sitting = asyncio.create_task(one._sit_out(failed.value))
        while not one.down:
            await asyncio.sleep(0)
        sitting.cancel()
    assert one.down and SECRET not in one.down and SECRET not in caplog.text
    assert one._label == f"ws://127.0.0.1:{port}"


@pytest.mark.parametrize("on_failure", ["drop", "pause"])
async def test_messages_that_cannot_be_read_do_not_end_a_courier(on_failure: str) -> None:
    """Nor do they while it waits for its target: it looks again, and the process goes on."""
    enough = asyncio.Event()
    asked = []

    def history(partition: int, offset: int) -> FeedHistory:
        asked.append(offset)
        if len(asked) == 5:
            enough.set()
        raise PanicException("a bug")

    none = cast(Any, None)
    settings = NotifierSettings(connect_seconds=5, retry_min=0.001, retry_max=0.002)
    around = Surroundings(
        settings, AllowList([]), lambda *_: False, none, none, history, lambda _: 10, none, none
    )
    one = TargetDelivery(NotifyTarget("ws://127.0.0.1:9/in", on_failure), around)
    one.follow(0, Mark(0), behind=True)
    one.start()
    async with asyncio.timeout(30):
        await enough.wait()
    assert one._task is not None and not one._task.done()
    await one.stop()
