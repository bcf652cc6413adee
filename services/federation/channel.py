"""One channel of a link: its parameters, the credit that its reader gave, and its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from prometheus_client import Counter
from websockets.asyncio.server import ServerConnection

from penstock import tuning
from penstock.errors import RemoteError
from penstock.link.frames import CREDIT, VERSION, pack, rows_of
from services.federation.subscription import Out

#: frames of an append that may wait to be written
MAX_FRAMES = 64
#: parameters of each operation
PARAMETERS: dict[str, frozenset[str]] = {
    "information": frozenset(),
    "describe": frozenset({"table", "database", "query", "serial"}),
    "query": frozenset({"sql", "database", "timezone", "positions"}),
    "subscribe": frozenset(
        {"sql", "database", "from", "positions", "cycles", "timezone", "query", "serial"}
    ),
    "append": frozenset({"table", "database", "producer"}),
}
#: what a request of any operation may have beside its parameters
_ENVELOPE = frozenset({"ch", "op", "credit"})


class BadLinkRequest(RemoteError):
    code = "E_REQUEST"


@dataclass
class LinkChannel:
    """State of one channel."""

    connection: ServerConnection
    #: login of the link
    user: str
    number: int
    #: counts the rows that are sent
    sent_rows: Counter
    task: asyncio.Task[None] | None = None
    #: frames that the reader still takes
    credit: int = CREDIT
    more_credit: asyncio.Event = field(default_factory=asyncio.Event)
    #: frames of an append that wait to be written
    frames: asyncio.Queue[tuple[dict[str, Any], Any]] = field(
        default_factory=lambda: asyncio.Queue(MAX_FRAMES)
    )

    @property
    def is_open(self) -> bool:
        return self.task is not None and not self.task.done()

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def add_credit(self, frames: int) -> None:
        self.credit += max(frames, 0)
        self.more_credit.set()

    async def take_credit(self) -> None:
        while self.credit <= 0:
            self.more_credit.clear()
            await self.more_credit.wait()
        self.credit -= 1

    async def say(self, header: dict[str, Any]) -> None:
        """Send a message without rows."""
        await self.connection.send(json.dumps({"ch": self.number, **header}))

    async def send_frame(self, frame: bytes, rows: int) -> None:
        """Send a frame of *rows* rows once there is credit for it."""
        await self.take_credit()
        await self.connection.send(frame)
        self.sent_rows.inc(rows)

    async def give(self, messages: Sequence[Out]) -> None:
        """Send messages of a subscription in order."""
        for out in messages:
            header = {**out.header, "ch": self.number}
            if out.rows is None:
                await self.connection.send(json.dumps(header))
                continue
            await self.take_credit()
            frame = await _pack(header, out.rows)
            await self.connection.send(frame)
            self.sent_rows.inc(out.rows.num_rows)
        if not messages:
            await asyncio.sleep(0)  # much that is not for this one must not keep the loop


def check_parameters(op: str, header: dict[str, Any]) -> None:
    """Refuse parameters that this build does not know: to leave out what a newer peer asks for
    would be another answer than it means to get.

    Raises:
        BadLinkRequest: *header* has such a parameter.
    """
    unknown = sorted(header.keys() - PARAMETERS[op] - _ENVELOPE)
    if unknown:
        hint = (
            f"this side speaks version {VERSION} of the link; parameters are"
            f" {', '.join(sorted(PARAMETERS[op]))}"
        )
        raise BadLinkRequest(f"{op} has no parameter {unknown[0][:64]}", hint=hint)


async def read_rows(body: memoryview) -> pa.Table:
    """Decode the rows of a frame; large ones are read beside the event loop. Raises FrameError."""
    if len(body) <= tuning.ARROW_BYTES_DECODED_IN_LOOP:
        return rows_of(body)
    return await asyncio.to_thread(rows_of, body)


async def _pack(header: dict[str, Any], rows: pa.Table) -> bytes:
    """Encode a frame; large ones beside the event loop."""
    if rows.nbytes < tuning.SLICE_BYTES_HANDLED_IN_LOOP:
        return pack(header, rows)
    return await asyncio.get_running_loop().run_in_executor(None, pack, header, rows)
