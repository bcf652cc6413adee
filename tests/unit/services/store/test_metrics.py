from __future__ import annotations

import time

from prometheus_client.registry import CollectorRegistry

from services.store.flight_connections import IDLE, TOO_MANY
from services.store.metrics import StoreMetrics


def test_what_is_read_counts_with_its_age_and_no_age_is_negative() -> None:
    registry = CollectorRegistry()
    metrics = StoreMetrics(registry)
    metrics.note_read(3, (time.time() - 100) * 1000)
    metrics.note_read(2, (time.time() - 50) * 1000)
    lag = registry.get_sample_value("penstock_store_lag_seconds")
    assert registry.get_sample_value("penstock_store_rows_total") == 5
    assert lag is not None and 50 <= lag < 60
    metrics.note_read(1, (time.time() + 100) * 1000)
    assert registry.get_sample_value("penstock_store_lag_seconds") == 0


def test_ended_connections_are_told_apart_from_the_beginning_on() -> None:
    registry = CollectorRegistry()
    metrics = StoreMetrics(registry)
    metrics.note_closed(IDLE)
    counts = {
        why: registry.get_sample_value("penstock_store_closed_connections_total", {"why": why})
        for why in (TOO_MANY, IDLE)
    }
    assert counts == {TOO_MANY: 0, IDLE: 1}
