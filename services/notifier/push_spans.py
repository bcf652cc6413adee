"""Spans of messages to subscribers: one for each sampled write behind the events in a message."""

from __future__ import annotations

from penstock.runtime import traces
from penstock.telemetry.span import Span, SpanKind
from penstock.telemetry.tracer import tracer
from services.notifier.subscription import SubscriberMessage


def begin(message: SubscriberMessage) -> list[Span]:
    """Begin the spans of a message that is sent now."""
    sends = tracer()
    if sends is None:
        return []
    parents = [c for t in message.traces if (c := traces.context_of(t)) is not None]
    made = [sends.below(p, f"push {message.stream}", SpanKind.PRODUCER) for p in parents]
    spans = [span for span in made if span is not None]
    for span in spans:
        span.attributes["penstock.stream"] = message.stream
        span.attributes["penstock.events"] = message.count
    return spans


def finish(spans: list[Span]) -> None:
    """End the spans of a message that was sent."""
    if (sends := tracer()) is not None:
        for span in spans:
            sends.finish(span)
