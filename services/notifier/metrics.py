"""Numbers of NOTIFY delivery, per stream, for /metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge
from prometheus_client.registry import CollectorRegistry

from services.notifier.message import NotifyMessage


class PushMetrics:
    """Events, counted once for each target."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._delivered = Counter(
            "penstock_notify_delivered_events",
            "Events that targets confirmed",
            ["stream"],
            registry=registry,
        )
        self._dropped = Counter(
            "penstock_notify_dropped_events",
            "Events lost by ON_FAILURE DROP",
            ["stream"],
            registry=registry,
        )
        self._behind = Gauge(
            "penstock_notify_behind_events",
            "Events that targets have not got yet",
            ["stream"],
            registry=registry,
        )
        self._down = Gauge(
            "penstock_notify_targets_down", "Targets that cannot be reached", registry=registry
        )
        self._held = Gauge(
            "penstock_notify_streams_held",
            "Streams paused because a target is too far behind",
            registry=registry,
        )

    def offered(self, message: NotifyMessage) -> None:
        """A message is on its way to one more target."""
        self._behind.labels(message.name).inc(message.events)

    def settled(self, message: NotifyMessage, *, delivered: bool, waited: bool) -> None:
        """A message's way to one target is over; *waited*: it was counted as offered."""
        (self._delivered if delivered else self._dropped).labels(message.name).inc(message.events)
        if waited:
            self._behind.labels(message.name).dec(message.events)

    def state(self, *, down: int, held: int) -> None:
        self._down.set(down)
        self._held.set(held)

    def forget(self) -> None:
        """Nothing is on its way any more: the deliveries have ended."""
        self._behind.clear()
