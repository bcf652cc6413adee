"""Targets `wss://`: what they have to show."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import trustme
from websockets.asyncio.server import ServerConnection, serve

from tests.unit.services.notifier.web_kit import delivering


async def test_a_certificate_must_be_trusted_and_have_the_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    got: list[str] = []

    async def take(connection: ServerConnection) -> None:
        async for text in connection:
            got.append(str(text))

    async with serve(take, "127.0.0.1", 0, ssl=context) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        for host, trusted in (("localhost", None), ("127.0.0.1", ca)):
            async with delivering(f"wss://{host}:{port}/in", tls_ca=trusted) as to:
                to.offer(1)
                while not to.one.down:
                    await asyncio.sleep(0.01)
                assert to.one.down.startswith("its certificate is not trusted")
        assert got == []
        async with delivering(f"wss://localhost:{port}/in", tls_ca=ca) as to:
            to.offer(1)
            await to.delivered()
    assert len(got) == 1
