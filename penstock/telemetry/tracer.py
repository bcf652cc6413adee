"""What services make spans with. A process has one tracer or, without an endpoint, none: whoever
asks for it then does nothing more.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping

from penstock import installed
from penstock.runtime.clock import Clock, SystemClock
from penstock.runtime.traces import SpanContext
from penstock.telemetry.collector import Collector
from penstock.telemetry.exporter import OnCount, SpanExporter
from penstock.telemetry.options import TraceOptions
from penstock.telemetry.sampler import Sampler
from penstock.telemetry.span import Span, SpanKind, Value

_tracer: Tracer | None = None


class Tracer:
    """Begins spans that are sampled, and has finished ones sent."""

    def __init__(self, sampler: Sampler, exporter: SpanExporter, clock: Clock) -> None:
        self._sampler = sampler
        self._exporter = exporter
        self._clock = clock

    def begin(
        self, name: str, kind: SpanKind, caller: tuple[SpanContext, bool] | None = None
    ) -> Span | None:
        """Begin the first span of ours in a trace; None: it is not sampled.

        Args:
            caller: span of somebody else that it goes on from, and whether that is kept.
        """
        if caller is None:
            trace_id = secrets.token_hex(16)
            if not self._sampler.keeps(trace_id):
                return None
            return self._new_span(name, kind, SpanContext(trace_id, secrets.token_hex(8)), "")
        parent, kept = caller
        if not self._sampler.keeps(parent.trace_id, kept):
            return None
        context = SpanContext(parent.trace_id, secrets.token_hex(8))
        return self._new_span(name, kind, context, parent.span_id)

    def below(
        self, parent: SpanContext, name: str, kind: SpanKind, span_id: str | None = None
    ) -> Span | None:
        """Begin a span below one of a sampled trace; None: this process keeps none of these."""
        if not self._sampler.keeps(parent.trace_id, True):
            return None
        context = SpanContext(parent.trace_id, span_id or secrets.token_hex(8))
        return self._new_span(name, kind, context, parent.span_id)

    def finish(self, span: Span, error: str = "") -> None:
        """End a span now and have it sent."""
        span.end = self._clock.now()
        span.error = error or span.error
        self._exporter.add(span)

    def close(self) -> None:
        """Send what waits, as far as that takes no more than seconds."""
        self._exporter.close()

    def _new_span(self, name: str, kind: SpanKind, context: SpanContext, parent: str) -> Span:
        return Span(name, kind, context, self._clock.now(), parent)


def tracer() -> Tracer | None:
    """Return the process's tracer; None: nobody asked for spans."""
    return _tracer


def open_tracer(
    variables: Mapping[str, str], service: str, on_count: OnCount, clock: Clock | None = None
) -> Tracer | None:
    """Make the process's tracer when *variables* name an endpoint.

    Args:
        on_count: told in a thread of the tracer's what became of spans.

    Raises:
        ConfigError: a variable cannot be followed.
    """
    global _tracer
    close_tracer()
    options = TraceOptions.read(variables, service)
    if options is None:
        return None
    collector = Collector(options, _resource(options, service), _scope(service))
    exporter = SpanExporter(
        collector, on_count, queue=options.queue, batch=options.batch, delay=options.delay
    )
    _tracer = Tracer(options.sampler, exporter, clock or SystemClock())
    return _tracer


def close_tracer() -> None:
    """Send what waits; from now on the process makes no spans."""
    global _tracer
    if _tracer is not None:
        _tracer.close()
    _tracer = None


def _resource(options: TraceOptions, service: str) -> dict[str, Value]:
    return {
        "service.name": options.service_name,
        "service.namespace": "penstock",
        "service.version": _scope(service)[1],
        "service.instance.id": f"{socket.gethostname()}/{service}/{os.getpid()}",
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
        **dict(options.resource),
    }


def _scope(service: str) -> tuple[str, str]:
    return f"penstock.{service}", installed.version()
