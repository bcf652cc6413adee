"""Which records a partition processor works on."""

from __future__ import annotations

from dataclasses import dataclass

from penstock import names


@dataclass(frozen=True)
class ProcessorPlace:
    """One partition of a topic."""

    topic: str
    #: no topic of the same name before or after has it
    topic_id: int
    partition: int

    def __str__(self) -> str:
        """Return the place as fields of statuses name it."""
        return f"{self.topic}:{self.partition}"

    @property
    def forwarder(self) -> str:
        """Who controls come from that are passed on from here."""
        return names.exchange_producer(self.topic_id, self.topic, self.partition)
