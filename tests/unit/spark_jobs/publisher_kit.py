"""A publisher that acknowledges when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.bus import Delivery
from penstock.errors import BusError


class HeldPublisher:
    """Notes what is sent, and holds back the deliveries."""

    def __init__(self) -> None:
        #: topic, partition, key and value of each record
        self.sent: list[tuple[str, int, bytes | None, bytes]] = []
        self._waiting: list[Callable[[Any], None]] = []

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None,
        partition: int,
        on_delivery: Callable[[Any], None],
    ) -> None:
        offset = len(self.sent)
        self.sent.append((topic, partition, key, value))
        self._waiting.append(
            lambda error: on_delivery(error or Delivery(topic, partition, offset, 0))
        )

    def acknowledge(self, number: int = 0, error: BusError | None = None) -> None:
        """Deliver the record that is *number*th among those that wait, or say why not."""
        self._waiting.pop(number)(error)
