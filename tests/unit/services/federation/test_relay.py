"""Subscriptions to external streams: several shards passed on as one, with one token."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError, RemoteError
from penstock.feeds.cursor import TokenError
from penstock.link.address import Address
from penstock.link.channel import LinkMessage
from services.federation import relay

ROWS = pa.table({"v": [1]})


class Shard:
    """The link to one shard, and what it says when."""

    def __init__(self) -> None:
        self.items: queue.Queue[LinkMessage | Exception] = queue.Queue()
        self.asked: dict[str, Any] = {}
        self.closed = threading.Event()

    def say(self, kind: str, token: str | None = None, rows: pa.Table | None = None) -> None:
        header = {"type": kind} | ({} if token is None else {"token": token})
        self.items.put(LinkMessage(header, rows))

    def subscribe(self, sql: str, database: str, **more: Any) -> Shard:
        self.asked = {"sql": sql, "database": database, **more}
        return self

    def expect(self, kind: str, timeout: float) -> LinkMessage:
        found = self.get(timeout)
        assert found is not None and found.kind == kind
        return found

    def get(self, timeout: float) -> LinkMessage | None:
        try:
            item = self.items.get(timeout=min(timeout, 0.01))
        except queue.Empty:
            return None
        if isinstance(item, Exception):
            raise item
        return item

    def close(self) -> None:
        self.closed.set()


class Remote:
    def __init__(self, shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shards = [Shard() for _ in range(shards)]
        self.places = [(Address(f"h{i}", 1, "u", "p"),) for i in range(shards)]
        monkeypatch.setattr(relay, "connect_any", self._connect)

    def _connect(self, replicas: tuple[Address, ...], *, timeout: float) -> Any:
        return self.shards[self.places.index(replicas)]  # type: ignore[arg-type]

    def messages(self, start: str = "latest") -> AsyncGenerator[LinkMessage, None]:
        return relay.messages(
            self.places,
            "SELECT v FROM rt",
            "rd",
            start,
            positions=True,
            cycles=False,
            timezone="UTC",
            patience=5.0,
        )


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Remote]:
    return lambda shards: Remote(shards, monkeypatch)


def test_tokens_of_all_shards_are_the_token_of_the_whole() -> None:
    assert relay.split(relay.join(["a", "b"]), 2) == ["a", "b"]
    assert relay.split("latest", 3) == ["latest"] * 3
    assert relay.split("earliest", 1) == ["earliest"]


@pytest.mark.parametrize(
    "token", ["", "x.", "x.!!!", "junk", relay.join(["a"]), relay.join(["a", "b"])[2:], "x.MQ=="]
)
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(TokenError):
        relay.split(token, 2)


async def closed(*shards: Shard) -> None:
    """Wait until links have been hung up."""
    for shard in shards:
        assert await asyncio.to_thread(shard.closed.wait, 3)


async def test_it_begins_when_all_shards_have(remote: Callable[[int], Remote]) -> None:
    far = remote(2)
    first, second = far.shards
    messages = far.messages(relay.join(["a0", "b0"]))
    first.say("subscribed", "a1")
    first.say("rows", rows=ROWS)
    second.say("subscribed", "b1")
    begun = await anext(messages)
    assert begun.kind == "subscribed"
    assert relay.split(begun.header["token"], 2) == ["a1", "b1"]
    early = await anext(messages)
    assert early.rows is ROWS, "what came before is not lost"
    second.say("token", "b2")
    said = await anext(messages)
    assert relay.split(said.header["token"], 2) == ["a1", "b2"]
    assert first.asked["start"] == "a0" and second.asked["start"] == "b0"
    assert (first.asked["sql"], first.asked["database"]) == ("SELECT v FROM rt", "rd")
    assert first.asked["positions"] is True
    await messages.aclose()
    await closed(first, second)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (RemoteError("gone", code="E_LINK_LOST"), "E_LINK_LOST"),
        (ValueError("a bug"), "E_INTERNAL"),
    ],
)
async def test_an_error_of_one_shard_ends_it(
    remote: Callable[[int], Remote], failure: Exception, code: str
) -> None:
    far = remote(2)
    first, second = far.shards
    first.say("subscribed", "a1")
    second.items.put(failure)
    with pytest.raises(PenstockError) as wrong:
        await anext(far.messages())
    assert wrong.value.code == code
    await closed(first)


async def test_a_shard_that_cannot_be_reached(
    remote: Callable[[int], Remote], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = remote(1)

    def refuse(*_: Any, **__: Any) -> Any:
        raise RemoteError("nobody there", code="E_LINK_LOST")

    monkeypatch.setattr(relay, "connect_any", refuse)
    with pytest.raises(RemoteError):
        await anext(far.messages())
