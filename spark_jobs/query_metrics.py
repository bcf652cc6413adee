"""Metrics of the queries of one driver."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from spark_jobs.queries import Mode


class QueryMetrics:
    """By topic."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._mode = Gauge(
            "penstock_query_realtime",
            "1 in real time, 0 in micro-batches",
            ["topic"],
            registry=registry,
        )
        self._failures = Counter(
            "penstock_query_failures", "Queries that failed", ["topic"], registry=registry
        )
        self._epochs = Counter(
            "penstock_epochs", "Epochs of a query that ended", ["topic"], registry=registry
        )

    def count_start(self, topic: str, mode: Mode) -> None:
        self._mode.labels(topic).set(mode == "realtime")

    def count_failure(self, topic: str) -> None:
        self._failures.labels(topic).inc()

    def count_epoch(self, topic: str) -> None:
        self._epochs.labels(topic).inc()
