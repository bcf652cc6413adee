"""Links to the leaders of this node's groups: a process that dies closes its connections, and that
is news within milliseconds.

A closed link alone means nothing; when the leader's address refuses connections as well, nobody is
there. Then there is no need to wait until its lease ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

import aiohttp

from penstock.runtime.log import get
from services.tables.election import Election

log = get(__name__)
_LOOK_SECONDS = 0.1
_CONNECT_SECONDS = 1.0


class Peers:
    """Event loop only."""

    def __init__(
        self, election: Election, node: str, authorization: str, context: ssl.SSLContext
    ) -> None:
        self._election = election
        self._node = node
        self._authorization = authorization
        self._context = context

    async def run(self) -> None:
        """Follow every leader there is, until cancelled."""
        links: dict[str, asyncio.Task[None]] = {}
        connector = aiohttp.TCPConnector(ssl=self._context)
        async with aiohttp.ClientSession(
            connector=connector, headers={"Authorization": self._authorization}
        ) as client:
            try:
                while True:
                    urls = {
                        s.url
                        for s in self._election.standings.values()
                        if s.leader not in ("", self._node)
                    }
                    for url in [u for u in links if u not in urls]:
                        links.pop(url).cancel()
                    for url in urls:
                        if url not in links or links[url].done():
                            links[url] = asyncio.create_task(self._watch(client, url))
                    await asyncio.sleep(_LOOK_SECONDS)
            finally:
                for task in links.values():
                    task.cancel()
                await asyncio.gather(*links.values(), return_exceptions=True)

    async def _watch(self, client: aiohttp.ClientSession, url: str) -> None:
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with client.ws_connect(
                f"{url}/v1/peer", timeout=aiohttp.ClientWSTimeout(ws_close=_CONNECT_SECONDS)
            ) as socket:
                async for _ in socket:
                    pass
        if await _refuses(url):
            for standing in self._election.standings.values():
                if standing.url == url and standing.leader not in ("", self._node):
                    log.info(
                        "a leader is dead",
                        group=standing.group.id,
                        leader=standing.leader,
                        epoch=standing.epoch,
                    )
                    self._election.is_dead(standing.group.id, standing.epoch)


async def _refuses(url: str) -> bool:
    """Whether nothing listens there."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return False
