"""What Kafka has confirmed: where the newest records are, and how many rows."""

from __future__ import annotations

from collections.abc import Callable, Container

from penstock.bus import Offsets


class ConfirmedRows:
    """Written by the bus's thread; read by any."""

    def __init__(self) -> None:
        #: (topic, partition) → offset of the newest record acked here: what a read of one's own
        #: writes waits for
        self.offsets: dict[tuple[str, int], int] = {}
        #: counts acked rows; for metrics
        self.rows = 0
        #: told how many seconds Kafka took to confirm what was sent together
        self.on_seconds: Callable[[float], object] = _ignore

    def note_own(self, offsets: Offsets) -> None:
        """Let reads that follow wait for these records, which another part of the gateway wrote."""
        for at, offset in offsets.items():
            self.offsets[at] = max(offset, self.offsets.get(at, 0))

    def forget(self, topics: Container[str]) -> None:
        """Forget the offsets of topics."""
        for place in [p for p in list(self.offsets) if p[0] in topics]:
            self.offsets.pop(place, None)


def _ignore(_: float) -> None:
    return
