"""Numbers of clients and of NOTIFY delivery, for /metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import CollectorRegistry

from penstock.runtime.health import SECONDS
from services.notifier.message import NotifyMessage


class HubMetrics:
    """Clients of the hub, and what they get."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.clients = Gauge("penstock_notifier_clients", "Connected clients", registry=registry)
        self.sent = Counter(
            "penstock_notifier_messages",
            "Messages sent to clients",
            ["kind"],
            registry=registry,
        )
        self.decoded = Counter(
            "penstock_notifier_rows_decoded",
            "Rows decoded for clients, however many of them get those",
            registry=registry,
        )
        self.written = Counter(
            "penstock_notifier_rows_written",
            "Rows written as JSON for clients, however many of them get those",
            registry=registry,
        )
        self.delay = Histogram(
            "penstock_notifier_delay_seconds",
            "From the newest record of a message in the log until it is sent",
            buckets=SECONDS,
            registry=registry,
        )


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

    def count_offer(self, message: NotifyMessage) -> None:
        """Count a message that is on its way to one more target."""
        self._behind.labels(message.name).inc(message.events)

    def count_outcome(self, message: NotifyMessage, *, delivered: bool, waited: bool) -> None:
        """Count a message whose way to one target is over.

        Args:
            waited: it was counted as offered.
        """
        (self._delivered if delivered else self._dropped).labels(message.name).inc(message.events)
        if waited:
            self._behind.labels(message.name).dec(message.events)

    def state(self, *, down: int, held: int) -> None:
        self._down.set(down)
        self._held.set(held)

    def forget(self) -> None:
        """Nothing is on its way any more: the deliveries have ended."""
        self._behind.clear()
