"""What the store counts for Prometheus."""

from __future__ import annotations

import time

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import CollectorRegistry

from penstock.runtime.health import SECONDS
from services.store.flight_connections import IDLE, TOO_MANY


class StoreMetrics:
    """One per process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Counter("penstock_store_rows", "Rows taken from the log", registry=registry)
        self._lag = Gauge(
            "penstock_store_lag_seconds", "Age of the newest record taken", registry=registry
        )
        self.tail = Gauge("penstock_store_tail_rows", "Rows not in segments yet", registry=registry)
        self.took = Histogram(
            "penstock_store_query_seconds",
            "Time that a query took",
            buckets=SECONDS,
            registry=registry,
        )
        self._closed = Counter(
            "penstock_store_closed_connections",
            "Connections to the Flight port that were ended: too many of them, or idle",
            ["why"],
            registry=registry,
        )
        for why in (TOO_MANY, IDLE):
            self._closed.labels(why)  # 0 from the beginning on

    def note_read(self, rows: int, stamp: float) -> None:
        """Count *rows* of a record that was stamped at *stamp*, in epoch milliseconds."""
        self._rows.inc(rows)
        self._lag.set(max(time.time() - stamp / 1000, 0.0))

    def note_closed(self, why: str) -> None:
        """Count a connection that was ended, because `TOO_MANY` or `IDLE`."""
        self._closed.labels(why).inc()
