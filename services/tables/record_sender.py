"""The two ways of a table's records to Kafka: by librdkafka, and directly from the event loop."""

from __future__ import annotations

from collections.abc import Callable

from penstock.bus import Delivery, Publisher
from penstock.catalog.model import Table
from penstock.errors import BusError
from services.tables.direct import Answer, Direct
from services.tables.kafka_wire import MAX_BYTES

#: largest record that goes the short way
MAX_DIRECT = MAX_BYTES - 512


class RecordSender:
    """Sends to the only partition of one table's log."""

    def __init__(self, table: Table, bus: Publisher, direct: Direct | None) -> None:
        """
        Args:
            direct: the short way, where there is one.
        """
        self._topic = table.topic
        self._key = table.name.encode()
        self._bus = bus
        self._direct = direct
        #: records that went the short way
        self.straight = 0

    @property
    def has_short_way(self) -> bool:
        """Tell if a record may go the short way now."""
        return self._direct is not None and self._direct.ready(self._topic)

    def send_straight(self, value: bytes, on_answer: Answer) -> None:
        """Send a record the short way. Event loop only."""
        assert self._direct is not None
        self._direct.send(self._topic, value, self._key, on_answer)
        self.straight += 1

    def send(self, value: bytes, on_delivery: Callable[[Delivery | BusError], None]) -> None:
        self._bus.send(self._topic, value, key=self._key, partition=0, on_delivery=on_delivery)
