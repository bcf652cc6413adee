"""Spans of a service: sent while it runs, counted, and refused when they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from penstock.errors import EXIT_CONFIG
from penstock.service.spans import send_spans
from penstock.telemetry.span import SpanKind
from penstock.telemetry.tracer import tracer
from tests.otlp_collector import collecting
from tests.unit.penstock.service.kit import Parts


def test_a_service_sends_spans_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with Parts().service(tmp_path) as service:
            sends = tracer()
            assert sends is not None
            span = sends.begin("x", SpanKind.INTERNAL)
            assert span is not None
            sends.finish(span)
            registry = service.health.registry
        assert tracer() is None
        assert [s.name for s in collector.spans] == ["x"]
        assert collector.spans[0].resource["service.name"] == "penstock-attic"
    counted = {
        kind: registry.get_sample_value("penstock_trace_spans_total", {"kind": kind})
        for kind in ("sent", "dropped", "failed")
    }
    assert counted == {"sent": 1, "dropped": 0, "failed": 0}


def test_without_a_collector_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with Parts().service(tmp_path) as service:
        assert tracer() is None
        name = "penstock_trace_spans_total"
        assert service.health.registry.get_sample_value(name, {"kind": "sent"}) is None


def test_a_wrong_variable_is_a_wrong_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@collector")
    with pytest.raises(SystemExit) as caught, send_spans("attic", CollectorRegistry()):
        pass
    assert caught.value.code == EXIT_CONFIG
    said = capsys.readouterr().err
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in said and "hunter2" not in said
