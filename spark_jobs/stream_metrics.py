"""Metrics of all streams, in the driver: sums over what the processors report to Redis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

import redis
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.catalog.view import Catalog
from penstock.runtime.health import SECONDS

_SHOWN = {
    "rows_in": "Rows of its source that a stream has seen",
    "rows_out": "Rows that a stream has published",
    "late": "Rows that a stream has dropped as late",
    "failed": "Rows and results of a stream that failed",
    "state_bytes": "State of a stream as it is saved",
}


class StreamMetrics(Collector):
    """Gauges and a histogram per stream, called `database.stream`."""

    def __init__(self, client: redis.Redis, registry: CollectorRegistry) -> None:
        self._redis = client
        self._gauges = {
            k: Gauge(f"penstock_stream_{k}", text, ["stream"], registry=registry)
            for k, text in _SHOWN.items()
        }
        self._broken = (
            Gauge(
                "penstock_stream_failed_partitions",
                "Partitions in which a stream has stopped",
                ["stream"],
                registry=registry,
            ),
            Gauge(
                "penstock_stream_failed_lanes",
                "The former name of penstock_stream_failed_partitions",
                ["stream"],
                registry=registry,
            ),
        )
        #: by stream: what each of its processors has counted
        self._counted: dict[str, list[Mapping[str, Any]]] = {}
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """How long results follow their rows, as it was measured last."""
        shown = HistogramMetricFamily(
            "penstock_stream_lag_seconds",
            "From a row in the log until the result that it led to is there, too",
            labels=["stream"],
        )
        bounds = [*map(str, SECONDS), "+Inf"]
        for name, processors in self._counted.items():
            counts = [
                sum(each)
                for each in zip(
                    *(processor["followed"] for processor in processors if "followed" in processor),
                    strict=True,
                )
            ]
            if counts:
                seconds = sum(processor.get("followed_seconds", 0.0) for processor in processors)
                shown.add_metric(
                    [name], list(zip(bounds, accumulate(counts), strict=True)), seconds
                )
        yield shown

    def measure(self, catalog: Catalog, awake: Callable[[str], bool] = lambda _: True) -> None:
        """Read those of new streams anew, and of streams that read a topic that is *awake*: others
        have nothing new to tell.
        """
        streams = {f"{s.database}.{s.name}": s for s in catalog.streams()}
        for gone in self._counted.keys() - streams.keys():
            del self._counted[gone]
            for gauge in (*self._gauges.values(), *self._broken):
                gauge.remove(gone)
        read = {
            name: s.id
            for name, s in streams.items()
            if name not in self._counted or any(map(awake, _topics(catalog, s)))
        }
        pipe = self._redis.pipeline(transaction=False)
        for stream_id in read.values():
            pipe.hgetall(names.stream_status(stream_id))
        for name, fields in zip(read, pipe.execute(), strict=True):
            self._counted[name] = found = [
                json.loads(v) for f, v in fields.items() if str(f).startswith(names.STATS)
            ]
            for key, gauge in self._gauges.items():
                gauge.labels(name).set(sum(s[key] for s in found))
            failed = sum(str(f).startswith(names.FAILED) for f in fields)
            for gauge in self._broken:
                gauge.labels(name).set(failed)


def _topics(catalog: Catalog, stream: StreamEntry) -> list[str]:
    """Return the topics whose processors report the stream."""
    exchange = [names.EXCHANGE] if stream.plan.path == "exchange" else []
    return [*catalog.source_topics(stream.plan), *exchange]
