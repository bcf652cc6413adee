"""Spans of messages to subscribers."""

from __future__ import annotations

from penstock.feeds.cursor import Cursor
from penstock.records import encode
from penstock.runtime import traces
from penstock.runtime.traces import SpanContext
from penstock.telemetry.tracer import close_tracer, open_tracer
from services.notifier import push_spans
from services.notifier.subscription import EventSubscription, SubscriberMessage
from tests.otlp_collector import collecting
from tests.unit.services.notifier.kit import entry, event, piece, record

CHUNK = SpanContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")


def _message() -> SubscriberMessage:
    """Events of a sampled write, of a followed one, and of one that is neither."""
    carried = (traces.text_of("order-17", CHUNK), "order-18", None)
    records = [record([event()], offset=n, trace=t) for n, t in enumerate(carried)]
    hidden = record([event(table="d2")], offset=9, trace="order-19")
    subscription = EventSubscription(Cursor({0: 0}), entry(), ["d1"])
    message = subscription.take(piece([encode(r) for r in (*records, hidden)]))
    assert message is not None
    return message


def test_a_message_knows_the_writes_behind_its_events() -> None:
    message = _message()
    assert (message.stream, message.count) == ("db.s", 3)
    assert message.traces == (traces.text_of("order-17", CHUNK), "order-18")
    assert push_spans.begin(message) == []


def test_each_sampled_write_gets_a_span() -> None:
    with collecting() as collector:
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        open_tracer(given, "notifier", lambda kind, n: None)
        push_spans.finish(push_spans.begin(_message()))
        close_tracer()
    (span,) = collector.spans
    assert (span.name, span.trace, span.parent) == ("push db.s", CHUNK.trace_id, CHUNK.span_id)
    assert span.attributes["penstock.events"] == 3
