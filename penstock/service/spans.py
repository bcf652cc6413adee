"""Spans of a service: sent while it runs, and counted among its metrics."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter

from penstock.config.environment import opentelemetry_variables
from penstock.errors import EXIT_CONFIG, ConfigError
from penstock.telemetry.tracer import close_tracer, open_tracer

#: what becomes of spans
OUTCOMES = ("sent", "dropped", "failed")


@contextmanager
def send_spans(service: str, registry: CollectorRegistry) -> Iterator[None]:
    """Have spans sent inside, if variables name a collector.

    Raises:
        SystemExit: a variable cannot be followed; standard error says which.
    """
    counter = span_counter(registry)
    try:
        tracer = open_tracer(
            opentelemetry_variables(), service, lambda kind, n: counter.labels(kind).inc(n)
        )
    except ConfigError as wrong:
        print(wrong, file=sys.stderr)
        raise SystemExit(EXIT_CONFIG) from None
    if tracer is not None:
        for kind in OUTCOMES:
            counter.labels(kind)
    try:
        yield
    finally:
        close_tracer()


def span_counter(registry: CollectorRegistry) -> Counter:
    """Return the counter of a service's spans, by what became of them."""
    return Counter(
        "penstock_trace_spans",
        "Spans that the collector took, that found the queue full, and that were given up",
        ["kind"],
        registry=registry,
    )
