"""Spans from where they are made to a collector over HTTP."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from penstock.errors import ConfigError
from penstock.runtime.traces import SpanContext
from penstock.telemetry.collector import Collector
from penstock.telemetry.exporter import CollectorError
from penstock.telemetry.options import TraceOptions
from penstock.telemetry.span import Span, SpanKind
from penstock.telemetry.tracer import close_tracer, open_tracer, tracer
from tests.otlp_collector import OtlpCollector, collecting

PARENT = SpanContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with collecting() as made:
        yield made
    close_tracer()


def _open(collector: OtlpCollector, **variables: str) -> Counter[str]:
    counts: Counter[str] = Counter()

    def count(kind: str, spans: int) -> None:
        counts[kind] += spans

    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}
    assert open_tracer(given, "gateway", count) is tracer() is not None
    return counts


def test_without_an_endpoint_there_is_no_tracer() -> None:
    assert open_tracer({"OTEL_SERVICE_NAME": "x"}, "gateway", lambda kind, n: None) is None
    assert tracer() is None


def test_spans_arrive_with_their_place_in_the_trace(collector: OtlpCollector) -> None:
    counts = _open(
        collector,
        OTEL_EXPORTER_OTLP_HEADERS="api-key=hunter2",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )
    sends = tracer()
    assert sends is not None
    outer = sends.begin("GET /x", SpanKind.SERVER, (PARENT, True))
    assert outer is not None
    inner = sends.below(outer.context, "send", SpanKind.PRODUCER, "00f067aa0ba902b7")
    assert inner is not None
    sends.finish(inner, "it broke")
    sends.finish(outer)
    close_tracer()
    assert tracer() is None
    first, second = collector.of_trace(PARENT.trace_id)
    assert (first.name, first.parent, first.kind) == ("GET /x", PARENT.span_id, 2)
    assert (second.parent, second.span) == (first.span, "00f067aa0ba902b7")
    assert second.error == "it broke" and not first.error
    assert first.start <= second.start <= second.end <= first.end
    assert first.resource["service.name"] == "penstock-gateway"
    assert first.resource["deployment.environment.name"] == "test"
    ((path, headers),) = collector.requests
    assert path == "/v1/traces" and headers["api-key"] == "hunter2"
    assert headers["content-type"] == "application/x-protobuf"
    assert counts == {"sent": 2}


def test_what_is_not_sampled_is_not_made(collector: OtlpCollector) -> None:
    _open(collector, OTEL_TRACES_SAMPLER="parentbased_always_off")
    sends = tracer()
    assert sends is not None
    assert sends.begin("x", SpanKind.SERVER) is None
    assert sends.begin("x", SpanKind.SERVER, (PARENT, False)) is None
    assert sends.begin("x", SpanKind.SERVER, (PARENT, True)) is not None
    assert sends.below(PARENT, "x", SpanKind.CLIENT) is not None


def test_ids_are_random_and_well_formed(collector: OtlpCollector) -> None:
    _open(collector)
    sends = tracer()
    assert sends is not None
    made = [sends.begin("x", SpanKind.SERVER) for _ in range(100)]
    contexts = {s.context for s in made if s is not None}
    assert len(contexts) == 100
    assert {(len(c.trace_id), len(c.span_id)) for c in contexts} == {(32, 16)}


def test_a_span_id_that_follows_from_a_place_is_the_same_again() -> None:
    assert PARENT.derived_span("p", 1) == PARENT.derived_span("p", 1)
    assert PARENT.derived_span("p", 1) != PARENT.derived_span("p", 2)
    assert len(bytes.fromhex(PARENT.derived_span())) == 8


def test_a_wrong_variable_leaves_no_tracer(collector: OtlpCollector) -> None:
    _open(collector)
    wrong = {"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://x"}
    with pytest.raises(ConfigError):
        open_tracer(wrong, "gateway", lambda kind, n: None)
    assert tracer() is None


@pytest.mark.parametrize(
    ("status", "again"), [(503, True), (429, True), (400, False), (307, False)]
)
def test_answers(collector: OtlpCollector, status: int, again: bool) -> None:
    collector.answers = [status]
    with pytest.raises(CollectorError, match=str(status)) as caught:
        _collector(collector.url)([Span("x", SpanKind.SERVER, PARENT, 1)])
    assert caught.value.again is again


def test_nobody_there_is_worth_another_attempt(caplog: pytest.LogCaptureFixture) -> None:
    with collecting() as gone:
        pass
    with caplog.at_level(logging.DEBUG), pytest.raises(CollectorError) as caught:
        _collector(gone.url)([Span("x", SpanKind.SERVER, PARENT, 1)])
    assert caught.value.again
    assert "hunter2" not in str(caught.value) + caplog.text


def _collector(url: str) -> Collector:
    options = TraceOptions.read(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hunter2",
        },
        "gateway",
    )
    assert options is not None
    return Collector(options, {}, ("penstock.gateway", "1"))
