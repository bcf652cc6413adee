"""What a node asks another one: as whom, and what becomes of answers that do not come."""

from __future__ import annotations

import base64
import ssl
from typing import Any, Self

import aiohttp
import pytest

from penstock.errors import RemoteError
from services.tables.forward import Forward
from services.tables.lookup import FORWARDED
from services.tables.settings import TablesSettings


class Client:
    """Stands where `aiohttp.ClientSession` does."""

    made: list[Client] = []

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.requests: list[tuple[str, str, bytes]] = []
        self.failure: Exception | None = None
        self.status = 200
        self.closed = False
        Client.made.append(self)

    def request(self, method: str, url: str, *, data: bytes, timeout: Any) -> Self:
        self.requests.append((method, url, data))
        if self.failure is not None:
            raise self.failure
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def json(self) -> Any:
        return {"rows": 3}

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def forward(monkeypatch: pytest.MonkeyPatch) -> Forward:
    Client.made = []
    monkeypatch.setattr(aiohttp, "ClientSession", Client)
    return Forward(TablesSettings(alias="N1", password="secret"), ssl.create_default_context())


async def test_a_node_asks_as_root_and_says_that_it_passes_something_on(forward: Forward) -> None:
    assert await forward.call("POST", "http://n2/v1/x", b"data") == (200, {"rows": 3})
    await forward.call("GET", "http://n3/v1/y", b"")
    (client,) = Client.made
    assert [r[:2] for r in client.requests] == [
        ("POST", "http://n2/v1/x"),
        ("GET", "http://n3/v1/y"),
    ]
    headers = client.options["headers"]
    assert headers[FORWARDED] == "N1"
    user, _, _ = base64.b64decode(headers["Authorization"].split()[1]).decode().partition(":")
    assert user == TablesSettings(alias="N1", password="secret").user


@pytest.mark.parametrize(
    "failure", [aiohttp.ClientConnectionError("no"), TimeoutError(), ValueError("no JSON")]
)
async def test_a_node_that_does_not_answer(forward: Forward, failure: Exception) -> None:
    await forward.call("GET", "http://n2/v1/x", b"")
    Client.made[0].failure = failure
    with pytest.raises(RemoteError) as away:
        await forward.call("GET", "http://n2/v1/x", b"")
    assert away.value.detail == f"http://n2/v1/x: {type(failure).__name__}"


async def test_closing_closes_what_was_opened(forward: Forward) -> None:
    await forward.close()
    assert not Client.made
    await forward.call("GET", "http://n2/v1/x", b"")
    await forward.close()
    assert Client.made[0].closed
