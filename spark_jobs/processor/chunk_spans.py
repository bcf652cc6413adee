"""Spans of what streams compute: one for a stream and a chunk that holds a sampled write.

The span's id follows from its parent's and the chunk's place, so what is computed again after a
crash is the same bytes, and no second span.
"""

from __future__ import annotations

from penstock.runtime import traces
from penstock.sql.plan import StreamPlan
from penstock.telemetry.span import Span, SpanKind
from penstock.telemetry.tracer import tracer


def begin(
    trace: str, plan: StreamPlan, place: tuple[str, int], chunk: tuple[int, int]
) -> Span | None:
    """Begin the span of a stream's work on a chunk.

    Args:
        trace: of the newest record that has one.
        place: topic and partition that are read.
        chunk: first and last offset.

    Returns:
        None: the write is not sampled, or nobody asked for spans here.
    """
    sends = tracer()
    parent = None if sends is None else traces.context_of(trace)
    if sends is None or parent is None:
        return None
    name = f"{plan.database}.{plan.name}"
    topic, partition = place
    span_id = parent.derived_span(plan.stream_id, topic, partition, *chunk)
    span = sends.below(parent, f"stream {name}", SpanKind.CONSUMER, span_id)
    if span is not None:
        span.attributes.update(
            {
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.operation.name": "stream",
                "messaging.destination.name": topic,
                "messaging.destination.partition.id": str(partition),
                "penstock.offset.first": chunk[0],
                "penstock.offset.last": chunk[1],
                "penstock.stream": name,
                "db.namespace": plan.database,
            }
        )
    return span


def finish(span: Span, *, rows: int, results: int, error: str) -> None:
    """End the span of a chunk: *rows* went in, *results* came out; *error*: the stream stopped."""
    span.attributes["penstock.rows"] = rows
    span.attributes["penstock.results"] = results
    if (sends := tracer()) is not None:
        sends.finish(span, error)
