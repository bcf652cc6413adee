"""Metrics of streams: sums over the processors that have reported."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client import CollectorRegistry

from penstock import names
from penstock.runtime.health import SECONDS
from spark_jobs.stream_metrics import StreamMetrics
from tests.unit.spark_jobs.driver_kit import MemoryRedis, Reader, database, source, stream


def _stats(**given: Any) -> str:
    usual = {"rows_in": 0, "rows_out": 0, "late": 0, "failed": 0, "state_bytes": 0}
    return json.dumps({**usual, **given})


class _Shown:
    """Metrics of the streams `a` (7) and `b` (8)."""

    def __init__(self) -> None:
        self.redis: Any = MemoryRedis()
        self.reader = Reader(database(), source(), stream(7, "a"), stream(8, "b"))
        self.registry = CollectorRegistry()
        self.figures = StreamMetrics(self.redis, self.registry)

    def said(self, stream_id: int, partition: int, **given: Any) -> None:
        field = f"{names.STATS}in.db:{partition}"
        self.redis.hset(names.stream_status(stream_id), field, _stats(**given))

    def value(self, name: str, stream_name: str, **labels: str) -> float | None:
        self.figures.measure(self.reader.catalog)
        return self.registry.get_sample_value(
            f"penstock_stream_{name}", {"stream": stream_name, **labels}
        )


def test_figures_are_summed_up_over_processors():
    shown = _Shown()
    shown.said(7, 0, rows_in=3, late=1)
    shown.said(7, 1, rows_in=4, state_bytes=100)
    shown.said(8, 0, rows_in=50)
    assert shown.value("rows_in", "db.a") == 7
    assert shown.value("late", "db.a") == 1
    assert shown.value("state_bytes", "db.a") == 100
    assert shown.value("rows_in", "db.b") == 50
    assert shown.value("failed", "db.b") == 0


def test_a_stream_that_nobody_has_reported_shows_zero():
    assert _Shown().value("rows_in", "db.a") == 0


def test_partitions_in_which_a_stream_has_stopped_are_counted():
    shown = _Shown()
    for partition in (0, 2):
        field = f"{names.FAILED}in.db:{partition}"
        shown.redis.hset(names.stream_status(7), field, "why")
    assert shown.value("failed_partitions", "db.a") == 2
    assert shown.value("failed_partitions", "db.b") == 0


def test_a_stream_that_is_gone_is_shown_no_more():
    shown = _Shown()
    assert shown.value("rows_in", "db.b") == 0
    shown.reader.remove(8)
    assert shown.value("rows_in", "db.b") is None
    assert shown.value("failed_partitions", "db.b") is None
    assert shown.value("rows_in", "db.a") == 0


def test_delays_are_a_histogram_over_all_processors():
    shown = _Shown()
    one = [0] * (len(SECONDS) + 1)
    two = list(one)
    one[0], one[2] = 3, 1
    two[2], two[-1] = 4, 2
    shown.said(7, 0, followed=one, followed_seconds=0.5)
    shown.said(7, 1, followed=two, followed_seconds=200.0)
    shown.said(7, 2)  # from before delays were counted
    assert shown.value("lag_seconds_bucket", "db.a", le=str(SECONDS[0])) == 3
    assert shown.value("lag_seconds_bucket", "db.a", le=str(SECONDS[2])) == 8
    assert shown.value("lag_seconds_bucket", "db.a", le="+Inf") == 10
    assert shown.value("lag_seconds_sum", "db.a") == 200.5
    assert shown.value("lag_seconds_count", "db.b") is None
