"""What became of the workers' spans, in the driver's metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from penstock import names
from penstock.telemetry.tracer import close_tracer, open_tracer
from spark_jobs import span_counts
from spark_jobs.span_counts import SpanCounts


class _Redis:
    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, int]] = {}

    def hincrby(self, key: str, field: str, by: int) -> None:
        kept = self.hashes.setdefault(key, {})
        kept[field] = kept.get(field, 0) + by

    def hgetall(self, key: str) -> dict[str, str]:
        return {field: str(count) for field, count in self.hashes.get(key, {}).items()}


@pytest.fixture
def sending() -> Iterator[None]:
    # nobody is there, and nothing is sent
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    open_tracer(given, "spark", lambda kind, n: None)
    yield
    close_tracer()


def _shown(registry: CollectorRegistry, kind: str) -> float | None:
    return registry.get_sample_value("penstock_stream_spans_total", {"kind": kind})


def test_workers_are_counted_together(sending: None) -> None:
    client: Any = _Redis()
    registry = CollectorRegistry()
    counts = SpanCounts(client, registry)
    span_counts.add(client, "sent", 5)
    span_counts.add(client, "sent", 2)
    span_counts.add(client, "dropped", 1)
    assert _shown(registry, "sent") is None
    counts.measure()
    assert (_shown(registry, "sent"), _shown(registry, "dropped")) == (7, 1)
    assert set(client.hashes) == {names.span_counts()}


def test_redis_is_not_asked_where_no_spans_are_sent() -> None:
    registry = CollectorRegistry()
    nobody: Any = None
    counts = SpanCounts(nobody, registry)
    counts.measure()
    assert _shown(registry, "sent") is None
