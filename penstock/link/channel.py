"""One question over a link and its answers, with the credit that holds back a fast sender."""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import PenstockError, RemoteError
from penstock.link.frames import CREDIT

if TYPE_CHECKING:
    from penstock.link.client import Link


@dataclass(frozen=True)
class LinkMessage:
    """One message of a channel: `kind` is its `type`, `rows` what it carries."""

    header: dict[str, Any]
    rows: pa.Table | None = None

    @property
    def kind(self) -> str:
        return str(self.header.get("type", ""))


class Channel:
    """One question and its answers."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.number = number
        self._inbox: queue.Queue[LinkMessage | PenstockError] = queue.Queue()
        self._taken = 0
        self._failed: PenstockError | None = None

    def put(self, item: LinkMessage | PenstockError) -> None:
        """Called by the thread that reads the link."""
        self._inbox.put(item)

    def get(self, timeout: float | None = None) -> LinkMessage | None:
        """Return the next message, or None when none came in *timeout* seconds.

        Raises:
            PenstockError: what the other side said, or E_LINK_LOST.
        """
        if self._failed is not None:
            raise self._failed
        try:
            item = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(item, PenstockError):
            self._failed = item
            raise item
        if item.rows is not None:
            self._taken += 1
            if self._taken >= CREDIT // 2:
                self._link.send({"ch": self.number, "op": "credit", "n": self._taken})
                self._taken = 0
        return item

    @property
    def waiting(self) -> bool:
        """True while `get` has something to give at once."""
        return not self._inbox.empty()

    def expect(self, kind: str, timeout: float) -> LinkMessage:
        """Return the next message, which must be of *kind*. Raises PenstockError."""
        message = self.get(timeout)
        if message is None:
            raise RemoteError(
                f"{self._link.address.shown} does not answer",
                code="E_TIMEOUT",
                detail=f"within {timeout:g} s",
            )
        if message.kind != kind:
            raise RemoteError(
                "the other side answers out of turn", detail=f"{message.kind}, not {kind}"
            )
        return message

    def send(self, header: dict[str, Any], rows: pa.Table | None = None) -> None:
        self._link.send({"ch": self.number, **header}, rows)

    def close(self) -> None:
        """Ask the other side to stop; nothing comes after this."""
        self._link.forget(self)
