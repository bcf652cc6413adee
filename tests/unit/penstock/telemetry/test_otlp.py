"""Spans on the wire, read back."""

from __future__ import annotations

from penstock.runtime.traces import SpanContext
from penstock.telemetry import otlp
from penstock.telemetry.span import Span, SpanKind
from tests.otlp_collector import spans_in

_CONTEXT = SpanContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


def test_everything_in_a_span_comes_back() -> None:
    span = Span("send in.plant", SpanKind.PRODUCER, _CONTEXT, 5, "00f067aa0ba902b7", 9)
    span.attributes.update(
        {
            "text": "grün",
            "empty": "",
            "yes": True,
            "no": False,
            "zero": 0,
            "less": -3,
            "large": 1 << 40,
            "half": 0.5,
            "list": [0, 7],
            "words": ["a", ""],
        }
    )
    span.links.append(SpanContext("1" * 32, "2" * 16))
    span.error = "it broke"
    (found,) = spans_in(otlp.request({"service.name": "s"}, ("penstock.gateway", "1"), [span]))
    assert (found.trace, found.span, found.parent) == (
        _CONTEXT.trace_id,
        _CONTEXT.span_id,
        "00f067aa0ba902b7",
    )
    assert (found.name, found.kind, found.start, found.end) == ("send in.plant", 4, 5, 9)
    assert found.attributes == span.attributes
    assert found.links == [("1" * 32, "2" * 16)]
    assert (found.error, found.code) == ("it broke", 2)
    assert found.resource == {"service.name": "s"}


def test_a_first_span_has_no_parent_and_ends_not_before_it_begins() -> None:
    span = Span("x", SpanKind.SERVER, _CONTEXT, 1 << 62, end=5)
    (found,) = spans_in(otlp.request({}, ("a", "1"), [span]))
    assert (found.parent, found.code, found.error) == ("", 0, "")
    assert found.start == found.end == 1 << 62


def test_long_texts_are_cut() -> None:
    span = Span("x", SpanKind.SERVER, _CONTEXT, 1, attributes={"a": "b" * 9999}, error="c" * 9999)
    (found,) = spans_in(otlp.request({}, ("a", "1"), [span]))
    assert (len(found.attributes["a"]), len(found.error)) == (1024, 1024)
