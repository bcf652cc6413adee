"""Spans of messages on their way to one target: from the first attempt until the target has
confirmed a message, or has lost it.

A span's id follows from the message and the target, so that each attempt tells the target the same
one, also after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.runtime import traces
from penstock.runtime.traces import SpanContext
from penstock.telemetry.span import Span, SpanKind
from penstock.telemetry.tracer import tracer
from services.notifier.message import NotifyMessage, NotifyTarget

#: messages that have been tried and are not over
_MOST = 4096


class DeliverySpans:
    """Event loop only. `label` is the target's address without secrets."""

    def __init__(self, target: NotifyTarget, label: str) -> None:
        self._target = target
        self._label = label
        self._open: dict[tuple[int, int], Span] = {}
        #: attempts behind each
        self._attempts: dict[tuple[int, int], int] = {}

    def attempt(self, messages: Iterable[NotifyMessage]) -> None:
        """Note that sampled messages are sent now, perhaps not for the first time."""
        if tracer() is None:
            return
        for message in messages:
            place = (message.partition, message.offset)
            span = self._open.get(place) or self._begin(message)
            if span is not None and (place in self._open or len(self._open) < _MOST):
                self._open[place] = span
                self._attempts[place] = self._attempts.get(place, 0) + 1

    def settle(self, message: NotifyMessage, *, delivered: bool) -> None:
        """End the span of a message that is over."""
        sends = tracer()
        if sends is None or message.trace is None:
            return
        place = (message.partition, message.offset)
        span = self._open.pop(place, None) or self._begin(message)
        attempts = self._attempts.pop(place, 0)
        if span is not None:
            span.attributes["penstock.attempts"] = attempts
            sends.finish(span, "" if delivered else "not delivered: the target is down")

    def leave(self, partition: int) -> None:
        """Forget what another notifier delivers now."""
        for place in [p for p in self._open if p[0] == partition]:
            self._open.pop(place)
            self._attempts.pop(place, None)

    def _begin(self, message: NotifyMessage) -> Span | None:
        sends = tracer()
        parent = traces.context_of(message.trace)
        if sends is None or parent is None:
            return None
        span_id = _span_id(parent, message, self._target)
        span = sends.below(parent, f"notify {message.name}", SpanKind.CLIENT, span_id)
        if span is not None:
            span.attributes.update(
                {
                    "penstock.stream": message.name,
                    "penstock.target": self._label,
                    "penstock.events": message.events,
                    "messaging.destination.partition.id": str(message.partition),
                    "messaging.kafka.offset": message.offset,
                }
            )
        return span


def context_to_tell(message: NotifyMessage, target: NotifyTarget) -> SpanContext | None:
    """Return the span that a target goes on from; None: the message is not sampled."""
    parent = traces.context_of(message.trace)
    if parent is None or tracer() is None:
        return parent
    return SpanContext(parent.trace_id, _span_id(parent, message, target))


def _span_id(parent: SpanContext, message: NotifyMessage, target: NotifyTarget) -> str:
    return parent.derived_span(target.key(message.partition), message.offset)
