"""One subscriber on this node: from its row on, rows as they come, at its own pace.

A message is 16 bytes (first row, next row) and an Arrow IPC stream of the rows in between that pass
the filter. Subscribers that are up to date share the encoded bytes. A slow one is waited for by its
own task alone; it reads from memory or files when it comes again. The subscriber goes to the leader
when another node leads: it is told where, and then left.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
from aiohttp import web

from penstock.errors import BusError, CatalogError, PenstockError, SchemaError
from services.tables.chunk import Chunk, encode, join
from services.tables.copy import offset_gone
from services.tables.filters import Filter
from services.tables.replica import Replica

#: rows of one message, about
_ROWS = 20_000
_SHARED = 64
#: chunks put together into one message
_JOIN = 256
#: how often one of several programs that waits for its turn is looked at, and hears that the node
#: is there
_STANDBY_SECONDS = 0.1
NOW = -1
PROCESSED = -2
EARLIEST = -3


class SharedFrames:
    """Encoded rows of one table that several subscribers want at the same time."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def get(self, chunk: Chunk) -> bytes:
        key = (chunk.first, chunk.next)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = frame(chunk.first, chunk.next, chunk.batch)
            while len(self._made) > _SHARED:
                self._made.popitem(last=False)
        return found


def frame(first: int, next_: int, batch: pa.RecordBatch) -> bytes:
    """Return a message."""
    return first.to_bytes(8, "big") + next_.to_bytes(8, "big") + encode(batch)


@dataclass(eq=False)
class Subscriber:
    """A subscription while it is connected here."""

    replica: Replica
    action: str
    #: chosen by the client, the same when it comes again
    id: str
    #: who subscribed
    user: str
    remote: str
    socket: web.WebSocketResponse
    filter: Filter | None
    row: int
    sent: int = 0
    bytes: int = 0
    processed: int = -1
    cancelled: str = ""
    #: the raftGroup it was made with: one of several programs, of which one gets rows; 0: it is
    #: alone
    group: int = 0
    #: whether rows go there; of several programs to one at a time
    executes: bool = True
    #: it got rows from the node that led before, up to `row`
    executed: bool = False
    came: int = field(default_factory=itertools.count().__next__)

    @property
    def key(self) -> tuple[int, str, str]:
        """What subscriptions of one user to one table under one name have in common."""
        return self.replica.table.id, self.user.lower(), self.action

    @property
    def topic(self) -> str:
        return f"{self.replica.replicated.group}/{self.replica.name}/{self.action}"


def first_row(replica: Replica, offset: int, processed: int | None) -> int:
    """Return where a subscription with *offset* begins.

    Raises:
        BusError: `E_OFFSET_GONE`: that row is not kept any more.
        SchemaError: *offset* cannot be one.
    """
    copy = replica.copy
    if offset == NOW or (offset == PROCESSED and processed is None):
        return copy.next
    if offset == EARLIEST:
        return copy.earliest
    if offset == PROCESSED:
        assert processed is not None
        offset = processed
    if offset < 0:
        raise SchemaError(
            f"offset {offset} means nothing",
            code="E_BODY",
            hint="a row, 0 (the first), -1 (now), -2 (processed), -3 (earliest)",
        )
    if offset > copy.next:
        raise SchemaError(
            f"row {offset} is not there yet",
            code="E_BODY",
            detail=f"the next row is {copy.next}",
            hint="-1 begins there",
        )
    if offset < copy.earliest:
        raise offset_gone(offset, copy.earliest)
    return offset


async def pump(
    subscriber: Subscriber,
    shared: SharedFrames,
    idle: float,
    moved: Callable[[], dict[str, Any] | None],
    allowed: Callable[[], None],
    begin: Callable[[], Awaitable[bool]],
) -> None:
    """Send rows until the subscriber leaves, is cancelled, or has to go elsewhere.

    Args:
        idle: seconds after which a subscriber without rows gets a sign of life.
        moved: where the leader is, when that is another node.
        allowed: raises AuthError when the subscriber may not read any more.
        begin: of one of several programs that does not get rows: lets it have rows from now on, if
            it is its turn. Raises PenstockError.
    """
    replica = subscriber.replica
    socket = subscriber.socket
    while not socket.closed:
        arrived = replica.arrival()
        last_words = _last_words(subscriber, moved)
        if last_words is not None:
            await _say(socket, last_words)
            return
        try:
            allowed()
            has_turn = subscriber.executes or await begin()
            chunk = await _read(replica, subscriber.row) if has_turn else None
        except PenstockError as error:
            earliest = {"earliest": replica.copy.earliest} if isinstance(error, BusError) else {}
            await _say(socket, {"type": "error", **error.to_dict(), **earliest})
            return
        if chunk is None:
            await _wait(subscriber, arrived, idle if has_turn else _STANDBY_SECONDS)
        else:
            await _send(subscriber, shared, chunk)


def _last_words(
    subscriber: Subscriber, moved: Callable[[], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """Return what a subscriber hears last, when it gets no more rows here."""
    replica = subscriber.replica
    if subscriber.cancelled:
        return {"type": "unsubscribed", "by": subscriber.cancelled}
    if replica.dropped:
        dropped = CatalogError(f"table {replica.name} was dropped", code="E_NO_TABLE")
        return {"type": "error", **dropped.to_dict()}
    elsewhere = moved()
    if elsewhere is not None:
        return {"type": "moved", "next": subscriber.row, **elsewhere}
    return None


async def _wait(subscriber: Subscriber, arrived: asyncio.Event, seconds: float) -> None:
    """Wait for rows; after *seconds* give a sign of life."""
    try:
        # `wait_for` would swallow a cancellation that comes together with rows
        async with asyncio.timeout(seconds):
            await arrived.wait()
    except TimeoutError:
        if subscriber.executes:
            await _say(subscriber.socket, {"type": "idle", "next": subscriber.row})
        else:
            subscriber.executed = False  # it forgets what it has not worked off
            await _say(subscriber.socket, {"type": "standby"})


async def _send(subscriber: Subscriber, shared: SharedFrames, chunk: Chunk) -> None:
    """Send the rows of a chunk that pass the subscriber's filter."""
    replica = subscriber.replica
    if subscriber.filter is None:
        data = shared.get(chunk)
        count = chunk.rows
    else:
        passing = await asyncio.to_thread(_filter, replica, subscriber.filter, chunk)
        data = frame(chunk.first, chunk.next, passing)
        count = passing.num_rows
    subscriber.row = chunk.next
    if count:
        await subscriber.socket.send_bytes(data)
        subscriber.sent += count
        subscriber.bytes += len(data)
    elif chunk.next >= replica.copy.next:
        await _say(subscriber.socket, {"type": "idle", "next": chunk.next})


async def _read(replica: Replica, row: int) -> Chunk | None:
    copy = replica.copy
    if row < copy.next and not copy.in_memory(row):
        return await asyncio.to_thread(copy.read, row, _ROWS)
    found = copy.read(row, _ROWS)
    if found is None:
        return None
    parts = [found]
    rows = found.rows
    while rows < _ROWS and len(parts) < _JOIN:
        more = copy.read(parts[-1].next, _ROWS - rows)
        if more is None:
            break
        parts.append(more)
        rows += more.rows
    return join(parts)


def _filter(replica: Replica, condition: Filter, chunk: Chunk) -> pa.RecordBatch:
    frame_ = pl.from_arrow(pa.Table.from_batches([chunk.batch]))
    assert isinstance(frame_, pl.DataFrame)
    ticks = [
        pl.col(c.name).cast(pl.Int64) for c in replica.table.columns if c.type.kind == "TIMESTAMP"
    ]
    mask = condition(frame_.with_columns(ticks))
    return chunk.batch.filter(mask.to_arrow().cast(pa.bool_()))


async def _say(socket: web.WebSocketResponse, message: dict[str, Any]) -> None:
    await socket.send_str(json.dumps(message))
