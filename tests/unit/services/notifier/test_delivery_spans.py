"""Spans of deliveries, and the span that a target goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.runtime import traces
from penstock.runtime.traces import SpanContext
from penstock.telemetry.tracer import close_tracer, open_tracer
from services.notifier.cloud_events import cloud_events, trace_headers
from services.notifier.delivery_spans import DeliverySpans, context_to_tell
from services.notifier.kafka_target import _headers
from services.notifier.message import NotifyTarget, pack
from tests.otlp_collector import FoundSpan, OtlpCollector, collecting
from tests.unit.services.notifier.kit import TARGET, entry, event, message, record
from tests.unit.services.notifier.web_kit import OK, delivering, web_server

CHUNK = SpanContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
CARRIED = traces.text_of("order-17", CHUNK)
BUSY = b"HTTP/1.1 503 Not now\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with collecting() as made:
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": made.url}
        open_tracer(given, "notifier", lambda kind, n: None)
        yield made
    close_tracer()


def _sent(collector: OtlpCollector) -> list[FoundSpan]:
    close_tracer()
    return list(collector.spans)


async def test_a_delivery_is_one_span_however_often_it_is_tried(collector: OtlpCollector) -> None:
    async with web_server() as server, delivering(server.url) as to:
        server.answers = [BUSY, BUSY, OK]
        to.offer(7, trace=CARRIED)
        await to.delivered()
    (span,) = _sent(collector)
    assert (span.trace, span.parent, span.name) == (CHUNK.trace_id, CHUNK.span_id, "notify db.s")
    assert (span.attributes["penstock.attempts"], span.error) == (3, "")
    assert span.attributes["penstock.target"] == f"http://127.0.0.1:{server.port}"
    told = f"00-{span.trace}-{span.span}-01"
    assert [r.headers["traceparent"] for r in server.requests] == [told] * 3
    ((first,), *_) = [r.events for r in server.requests]
    assert first["traceparent"] == told
    assert first["data"]["traceId"] == "order-17"


async def test_messages_of_several_traces_share_a_request_without_a_header(
    collector: OtlpCollector,
) -> None:
    other = traces.text_of(None, SpanContext("1" * 32, "2" * 16))
    async with web_server() as server, delivering(server.url) as to:
        to.offer(7, trace=CARRIED)
        to.offer(8, trace=other)
        to.offer(9)
        await to.delivered()
    (request,) = server.requests
    assert "traceparent" not in request.headers
    traced = [e.get("traceparent", "")[3:35] for e in request.events]
    assert traced == [CHUNK.trace_id, "1" * 32, ""]
    assert request.events[1]["data"]["traceId"] == "1" * 32
    assert len(_sent(collector)) == 2


async def test_what_is_lost_is_an_error(collector: OtlpCollector) -> None:
    spans = DeliverySpans(TARGET, "ws://h:1")
    followed = replace(message(4), trace=CARRIED)
    spans.attempt([followed, message(5)])
    spans.settle(followed, delivered=False)
    spans.settle(message(5), delivered=False)
    (span,) = _sent(collector)
    assert span.code == 2 and "not delivered" in span.error
    assert span.attributes["messaging.kafka.offset"] == 4


async def test_what_another_notifier_delivers_is_forgotten(collector: OtlpCollector) -> None:
    spans = DeliverySpans(TARGET, "ws://h:1")
    spans.attempt([replace(message(4), trace=CARRIED)])
    spans.leave(0)
    assert _sent(collector) == []


def test_each_target_has_a_span_of_its_own(collector: OtlpCollector) -> None:
    followed = replace(message(4), trace=CARRIED)
    mine, other = (
        context_to_tell(followed, TARGET),
        context_to_tell(followed, NotifyTarget("x", "drop")),
    )
    assert mine is not None and other is not None
    assert mine == context_to_tell(followed, TARGET) != other
    assert mine.trace_id == other.trace_id == CHUNK.trace_id


def test_without_a_collector_a_target_goes_on_from_the_chunk() -> None:
    assert context_to_tell(replace(message(4), trace=CARRIED), TARGET) == CHUNK
    assert context_to_tell(replace(message(4), trace="order-17"), TARGET) is None
    assert context_to_tell(message(4), TARGET) is None


def test_kafka_has_both_headers() -> None:
    packed = pack(entry(), record([event()], trace=CARRIED), 0, 4, 1)
    assert packed is not None
    (made,) = cloud_events(packed, CHUNK)
    headers = dict(_headers(made))
    assert headers["traceparent"] == headers["ce_traceparent"] == CHUNK.traceparent.encode()
    (plain,) = cloud_events(packed)
    assert trace_headers([plain]) == []
    assert not {"traceparent", "ce_traceparent"} & dict(_headers(plain)).keys()
