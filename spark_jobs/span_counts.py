"""What became of the workers' spans: they tell Redis, and the driver shows it in its metrics."""

from __future__ import annotations

from collections.abc import Iterable

import redis
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock import names
from penstock.telemetry.tracer import tracer


class SpanCounts(Collector):
    """A counter over all workers, those that are gone among them. Nothing, where no spans are
    sent.
    """

    def __init__(self, client: redis.Redis, registry: CollectorRegistry) -> None:
        self._redis = client
        self._counted: dict[str, int] = {}
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Show what was measured last."""
        shown = CounterMetricFamily(
            "penstock_stream_spans", "What became of spans of the stream jobs", labels=["kind"]
        )
        for kind, count in sorted(self._counted.items()):
            shown.add_metric([kind], count)
        yield shown

    def measure(self) -> None:
        """Ask Redis, if this mesh sends spans."""
        if tracer() is not None:
            found = self._redis.hgetall(names.span_counts())
            self._counted = {str(kind): int(count) for kind, count in found.items()}


def add(client: redis.Redis, kind: str, spans: int) -> None:
    """Count spans of a worker."""
    client.hincrby(names.span_counts(), kind, spans)
