"""The span of a write, from its rows being taken until they are in the log, and where they are
there.

Records carry this span, so what follows from them stands below it. Where several writes share a
record, that carries the span of one; the others are linked to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway import request_spans
from gateway.layout import RowLayout
from penstock.bus import Delivery
from penstock.runtime import traces
from penstock.telemetry.span import Span, SpanKind
from penstock.telemetry.tracer import Tracer, tracer

if TYPE_CHECKING:
    from gateway.coalescer import PendingWrite
    from gateway.idempotency import Receipt


def begin(layout: RowLayout, rows: int) -> Span | None:
    """Begin the span of a write; None: it is not sampled, or nobody asked for spans."""
    sends = tracer()
    if sends is None:
        return None
    request_spans.note_rows(layout.database, rows)
    span = _new_span(sends, f"send {layout.topic}")
    if span is not None:
        span.attributes.update(
            {
                "messaging.system": "kafka",
                "messaging.operation.type": "send",
                "messaging.operation.name": "send",
                "messaging.destination.name": layout.topic,
                "db.namespace": layout.database,
                "db.collection.name": layout.table,
                "penstock.rows": rows,
            }
        )
    return span


def _new_span(sends: Tracer, name: str) -> Span | None:
    parent = request_spans.parent()
    if parent is None:
        return sends.begin(name, SpanKind.PRODUCER)
    return None if isinstance(parent, bool) else sends.below(parent, name, SpanKind.PRODUCER)


def finish(span: Span, done: asyncio.Future[Receipt]) -> None:
    """End the span of a write that came to something."""
    sends = tracer()
    if sends is None:
        return
    if done.cancelled():
        sends.finish(span, "cancelled")
    else:
        error = done.exception()
        sends.finish(span, "" if error is None else str(error))


class WritePlaces:
    """Where the records are that some sampled writes are in. Its user holds a lock."""

    def __init__(self, spans: Sequence[Span], carried: str | None) -> None:
        """*carried*: the trace that the records have."""
        self._spans = spans
        self._offsets: dict[int, int] = {}
        context = traces.context_of(carried)
        for span in spans:
            if context is not None and span.context != context:
                span.links.append(context)

    def note(self, place: Delivery) -> None:
        """Take the place of one record; of several in a partition, the last one counts."""
        before = self._offsets.get(place.partition, -1)
        self._offsets[place.partition] = max(before, place.offset)

    def tell(self) -> None:
        """Write the places into the spans."""
        partitions = sorted(self._offsets)
        for span in self._spans:
            if len(partitions) == 1:
                span.attributes["messaging.destination.partition.id"] = str(partitions[0])
                span.attributes["messaging.kafka.offset"] = self._offsets[partitions[0]]
            elif partitions:
                span.attributes["penstock.partitions"] = partitions
                span.attributes["penstock.offsets"] = [self._offsets[p] for p in partitions]


def places_of(writes: Sequence[PendingWrite]) -> WritePlaces | None:
    """Return what notes the places of records of *writes*; None when none of these is sampled."""
    if tracer() is None:
        return None
    spans = [write.span for write in writes if write.span is not None]
    return WritePlaces(spans, traces.chosen(w.trace for w in writes)) if spans else None
