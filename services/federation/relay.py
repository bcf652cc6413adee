"""A subscription to an external stream: the other deployments' subscriptions, passed on as one.

Each shard is read by a thread of its own over a link of its own; the tokens of all shards are the
token of the whole. A slow reader slows all of it. When a link breaks the subscription ends with its
error, and whoever holds the token comes again.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import AsyncGenerator, Sequence

from penstock.errors import PenstockError, RemoteError
from penstock.feeds.cursor import TokenError
from penstock.link.address import Address
from penstock.link.channel import LinkMessage
from penstock.link.client import Link
from penstock.link.pool import connect_any
from penstock.runtime import vital

_PREFIX = "x."
_ASIDE = 4
_Item = tuple[int, LinkMessage | PenstockError]


def join(tokens: Sequence[str]) -> str:
    """One token of several."""
    return _PREFIX + base64.urlsafe_b64encode(json.dumps(list(tokens)).encode()).decode()


def split(token: str, shards: int) -> list[str]:
    """Where each shard begins. Raises TokenError."""
    if token in ("latest", "earliest"):
        return [token] * shards
    try:
        found = json.loads(base64.urlsafe_b64decode(token.removeprefix(_PREFIX)))
    except ValueError:
        found = None
    if not token.startswith(_PREFIX) or not isinstance(found, list) or len(found) != shards:
        raise TokenError(
            "this is no token of this external stream",
            hint="send the token of the last message, or from: latest",
        )
    return [str(t) for t in found]


async def messages(
    shards: Sequence[tuple[Address, ...]],
    sql: str,
    database: str,
    start: str,
    *,
    positions: bool,
    cycles: bool,
    timezone: str,
    patience: float,
) -> AsyncGenerator[LinkMessage, None]:
    """First `subscribed`, then what comes, each message with the token of the whole. Raises
    PenstockError.
    """
    tokens = split(start, len(shards))
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[_Item] = asyncio.Queue(_ASIDE)
    halt = threading.Event()

    def put(item: _Item) -> None:
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):
            asyncio.run_coroutine_threadsafe(inbox.put(item), loop).result()

    def read(number: int) -> None:
        link: Link | None = None
        try:
            link = connect_any(shards[number], timeout=patience)
            channel = link.subscribe(
                sql,
                database,
                start=tokens[number],
                positions=positions,
                cycles=cycles,
                timezone=timezone,
            )
            put((number, channel.expect("subscribed", patience * 2)))
            while not halt.is_set():
                message = channel.get(0.5)
                if message is not None:
                    put((number, message))
        except PenstockError as error:
            put((number, error))
        except vital.FAULTS as bug:
            put((number, RemoteError(f"the relay failed: {type(bug).__name__}", code="E_INTERNAL")))
        finally:
            if link is not None:
                link.close()

    threads = [
        threading.Thread(target=read, args=(n,), name=f"relay-{n}", daemon=True)
        for n in range(len(shards))
    ]
    for thread in threads:
        thread.start()
    try:
        begun: set[int] = set()
        early: list[LinkMessage] = []
        while True:
            number, item = await inbox.get()
            if isinstance(item, PenstockError):
                raise item
            if (token := item.header.get("token")) is not None:
                tokens[number] = str(token)
                item.header["token"] = join(tokens)
            if item.kind == "subscribed":
                begun.add(number)
                if len(begun) == len(shards):
                    item.header["token"] = join(tokens)
                    yield item
                    for waiting in early:
                        yield waiting
            elif len(begun) < len(shards):
                early.append(item)
            else:
                yield item
    finally:
        halt.set()
        while not inbox.empty():  # nobody must wait to put what nobody reads
            inbox.get_nowait()
