"""OpenTelemetry's SDK, whose metrics go out as OTLP over HTTP."""

from __future__ import annotations

import base64

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from told import options, serve

_told = options()


def measure(database: str) -> bool:
    """Measure with each kind of instrument, and send all; whether that went well."""
    login = base64.b64encode(f"{_told['user']}:{_told['password']}".encode()).decode()
    exporter = OTLPMetricExporter(
        endpoint=f"http://{_told['host']}:{_told['http']}/v1/metrics",
        headers={"Authorization": f"Basic {login}", "X-Penstock-Database": database},
        compression=Compression.Gzip,
        timeout=20,
    )
    provider = MeterProvider(
        resource=Resource.create({"service.name": "plant", "host.name": "h1"}),
        metric_readers=[PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)],
        shutdown_on_exit=False,
    )
    meter = provider.get_meter("meter.of.tests", "1.2")
    counter = meter.create_counter("doors.opened")
    counter.add(3, {"hall": "east"})
    counter.add(4, {"hall": "east"})
    counter.add(5, {"hall": "it's west"})
    meter.create_up_down_counter("people").add(-2)
    histogram = meter.create_histogram(
        "wait.seconds", explicit_bucket_boundaries_advisory=[1.0, 10.0]
    )
    for seconds in (0.5, 2.0, 20.0):
        histogram.record(seconds)

    def heat(_: CallbackOptions) -> list[Observation]:
        return [Observation(21.5, {"floor": 2})]

    meter.create_observable_gauge("heat", [heat])
    sent = provider.force_flush(30_000)
    provider.shutdown()
    return sent


serve(lambda: "1", {"measure": measure}, lambda wrong: None)
