"""The services' clients of Redis, blocking and asyncio, against a server with access lists: behind
TLS, and named by a Sentinel.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import redis

from penstock.config.settings import Settings
from penstock.coordination import redis_link
from penstock.mesh.layout import free_ports
from penstock.setup.redis_server import find_redis_server
from tests.certificates import issued
from tests.stack.conftest import eventually

PASSWORD = "correct horse battery"


@contextmanager
def server(directory: Path, lines: str, *options: str) -> Iterator[None]:
    directory.mkdir()
    config = directory / "redis.conf"
    config.write_text(f"bind 127.0.0.1\ndir {directory}\n{lines}")
    with subprocess.Popen(
        [str(find_redis_server()), str(config), *options], stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def in_tls(certificate: Path, key: Path, behind: int) -> Iterator[int]:
    """A port that takes TLS off and passes on to the one *behind*; the servers that we bring are
    built without it.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, there = await asyncio.open_connection("127.0.0.1", behind)
        ways = [
            asyncio.create_task(pass_on(reader, there)),
            asyncio.create_task(pass_on(answers, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            there.close()
            writer.close()

    async def end() -> None:
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(end())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that knows one user, and that one by a password."""
    number = free_ports()["redis"]
    lines = f'port {number}\nuser default off\nuser rooms on ">{PASSWORD}" ~* &* +@all\n'
    with server(tmp_path_factory.mktemp("redis") / "redis", lines):
        eventually(
            lambda: _answers(
                Settings(
                    redis_url=f"redis://127.0.0.1:{number}/0",
                    redis_user="rooms",
                    redis_password=PASSWORD,
                )
            )
        )  # type: ignore[arg-type]
        yield number


def _answers(settings: Settings) -> bool:
    """Whether both kinds of clients are served."""

    async def ask() -> bool:
        async with redis_link.connect_async(settings) as client:
            return bool(await cast(Awaitable[bool], client.ping()))

    try:
        with redis_link.connect(settings) as client:
            return bool(client.ping()) and asyncio.run(ask())
    except redis.RedisError:
        return False


def test_behind_tls(port: int, tmp_path: Path) -> None:
    ours = issued(tmp_path / "ours")
    others = issued(tmp_path / "others")
    with in_tls(ours.cert, ours.key, port) as endpoint:

        def known(
            scheme: str = "rediss",
            user: str = "rooms",
            password: str = PASSWORD,
            ca: Path | None = ours.ca,
        ) -> bool:
            url = f"{scheme}://127.0.0.1:{endpoint}/0"
            return _answers(
                Settings(redis_url=url, redis_user=user, redis_password=password, redis_ca=ca)
            )  # type: ignore[arg-type]

        assert known()
        assert not known(user="") and not known(password="a guess"), (
            "nobody comes in without being the user"
        )
        assert not known(ca=None) and not known(ca=others.ca), (
            "the certificate is of nobody that we trust"
        )
        assert not known(scheme="redis"), "nothing is answered in the clear"


def test_named_by_a_sentinel(port: int, tmp_path: Path) -> None:
    asked = free_ports()["redis"]
    lines = (
        f'port {asked}\nrequirepass "{PASSWORD}"\nsentinel monitor main 127.0.0.1 {port} 1\n'
        f'sentinel auth-user main rooms\nsentinel auth-pass main "{PASSWORD}"\n'
    )

    def named(user: str) -> Callable[[], bool]:
        settings = Settings(
            redis_url=f"redis+sentinel://127.0.0.1:{asked}/main/0",
            redis_user=user,
            redis_password=PASSWORD,
        )  # type: ignore[arg-type]
        return lambda: _answers(settings)

    with server(tmp_path / "sentinel", lines, "--sentinel"):
        eventually(named("rooms"))
        assert not named("")()
