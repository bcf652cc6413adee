"""What this node asks another one, as itself."""

from __future__ import annotations

import ssl
from typing import Any

import aiohttp

from penstock.basic_auth import basic_header
from penstock.errors import RemoteError
from services.tables.lookup import FORWARDED
from services.tables.settings import TablesSettings

_SECONDS = 30.0


class Forward:
    """Event loop only."""

    def __init__(self, settings: TablesSettings, context: ssl.SSLContext) -> None:
        """`context`: for nodes that speak TLS."""
        self._context = context
        self._headers = {
            "Authorization": basic_header(settings.user, settings.root_password),
            FORWARDED: settings.alias,
        }
        self._client: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def call(
        self, method: str, url: str, data: bytes, *, timeout: float = _SECONDS
    ) -> tuple[int, Any]:
        """Status and answer of another node, which does not pass it on. Raises RemoteError when it
        does not answer.
        """
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._context), headers=self._headers
            )
        try:
            async with self._client.request(
                method, url, data=data, timeout=aiohttp.ClientTimeout(total=timeout)
            ) as response:
                return response.status, await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as failed:
            raise RemoteError(
                "another node does not answer", detail=f"{url}: {type(failed).__name__}"
            ) from failed
