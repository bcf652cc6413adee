"""Spans of what streams compute: below the write's, above what follows, and the same again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.codec import TableCodec
from penstock.records import EventsRecord, decode
from penstock.runtime import traces
from penstock.runtime.traces import SpanContext
from penstock.telemetry.tracer import close_tracer, open_tracer
from spark_jobs.processor import chunk_spans
from tests.otlp_collector import FoundSpan, OtlpCollector, collecting
from tests.unit.spark_jobs.processor_kit import TOPIC, Mesh, record, values_of

WRITE = SpanContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
_STREAM = (
    "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM m"
    " PARTITION BY tbname INTERVAL(10a) NOTIFY ('ws://h:1/a') ON ('WINDOW_CLOSE')"
)


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with collecting() as made:
        yield made
    close_tracer()


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    return Mesh(tmp_path, monkeypatch)


def _send_to(collector: OtlpCollector, **variables: str) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}
    open_tracer(given, "spark", lambda kind, n: None)


def _sent(collector: OtlpCollector) -> list[FoundSpan]:
    close_tracer()
    return list(collector.spans)


def _write(mesh: Mesh, carried: str | None) -> None:
    """Append a record that carries a trace, and one that closes its window."""
    mesh.log.append(TOPIC, 0, record(("t1", 1, 5, 1), trace=traces.stamp(carried)))
    mesh.log.append(TOPIC, 0, record(("t1", 11, 5, 1)))


def _results(mesh: Mesh) -> set[str]:
    table = mesh.worker.catalog.catalog.table("db", "o")
    stamps: Any = TableCodec(table, table.schema_id).decode(values_of(mesh.log, table.topic))
    found = stamps.records.get_column("trace").drop_nulls().to_list()
    return {text.removeprefix("trace:") for text in found}


def test_a_chunk_stands_between_a_write_and_what_follows(
    mesh: Mesh, collector: OtlpCollector
) -> None:
    _send_to(collector)
    mesh.stream(1000, _STREAM)
    _write(mesh, traces.text_of("order-17", WRITE))
    mesh.feed()
    (span,) = _sent(collector)
    assert (span.trace, span.parent, span.name) == (WRITE.trace_id, WRITE.span_id, "stream db.s")
    assert span.attributes["messaging.destination.name"] == TOPIC
    assert (span.attributes["penstock.rows"], span.attributes["penstock.results"]) == (2, 2)
    assert span.attributes["penstock.offset.last"] == 2
    wanted = f"order-17/{span.trace}{span.span}"
    assert _results(mesh) == {wanted}
    (event,) = values_of(mesh.log, names.EVENTS)
    assert decode(EventsRecord, event).trace == wanted


def test_computed_again_it_is_the_same_span(mesh: Mesh, collector: OtlpCollector) -> None:
    _send_to(collector)
    plan = mesh.stream(1000, _STREAM)
    carried = traces.text_of(None, WRITE)
    assert carried is not None
    first, second, other = (
        chunk_spans.begin(carried, plan, (TOPIC, 0), chunk) for chunk in ((1, 2), (1, 2), (1, 3))
    )
    assert first is not None and second is not None and other is not None
    assert first.context == second.context != other.context


def test_without_a_collector_the_writes_span_is_passed_on(mesh: Mesh) -> None:
    mesh.stream(1000, _STREAM)
    carried = traces.text_of(None, WRITE)
    _write(mesh, carried)
    mesh.feed()
    assert _results(mesh) == {carried}


def test_what_is_not_sampled_has_no_span(mesh: Mesh, collector: OtlpCollector) -> None:
    _send_to(collector)
    mesh.stream(1000, _STREAM)
    _write(mesh, "order-17")
    mesh.feed()
    assert _sent(collector) == []
    assert _results(mesh) == {"order-17"}


def test_a_stream_that_stops_says_so_in_its_span(mesh: Mesh, collector: OtlpCollector) -> None:
    _send_to(collector)
    mesh.stream(1000, _STREAM)
    mesh.worker.catalog.catalog.remove(1001)
    _write(mesh, traces.text_of(None, WRITE))
    mesh.feed()
    (span,) = _sent(collector)
    assert span.code == 2 and "does not exist" in span.error
