"""Trace ids in requests, records and logs."""

from __future__ import annotations

import polars as pl
import pytest
import structlog

from penstock.runtime import traces

ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, None),
        ({"traceparent": f"00-{ID}-00f067aa0ba902b7-01"}, ID),
        ({"traceparent": f"cc-{ID}-00f067aa0ba902b7-01-of-a-later-version"}, ID),
        ({"traceparent": f"00-{ID}-00f067aa0ba902b7-00"}, None),
        ({"traceparent": f"00-{ID}-00f067aa0ba902b7-03"}, ID),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, None),
        ({"traceparent": f"00-{ID.upper()}-00f067aa0ba902b7-01"}, None),
        ({"traceparent": "nonsense", "X-Trace-Id": "order-17"}, "order-17"),
        ({"traceparent": f"00-{ID}-00f067aa0ba902b7-01", "X-Trace-Id": "order-17"}, ID),
        ({"X-Trace-Id": "two\nlines"}, None),
        ({"X-Trace-Id": "x" * 65}, None),
    ],
)
def test_what_a_request_says(headers: dict[str, str], wanted: str | None) -> None:
    assert traces.trace_of(headers) == wanted


def test_the_last_record_that_has_one_counts() -> None:
    stamps = [
        "idempotency:k",
        traces.stamp("a"),
        None,
        traces.stamp("b", "idempotency:trace:z"),
        "NODE1.1f|p:1:2:2",
        "idempotency:trace:y",
    ]
    assert traces.newest(pl.Series(stamps)) == (3, "b")
    assert traces.newest(pl.Series(stamps[:3])) == (1, "a")
    assert traces.newest(pl.Series([None, "idempotency:trace:z"])) is None
    assert traces.newest(pl.Series([None, None], dtype=pl.String)) is None
    assert (traces.stamp(None), traces.stamp(None, "idempotency:k")) == (None, "idempotency:k")


def test_one_with_a_name_comes_before_newer_ones_without() -> None:
    """Who gave an id finds it again, whatever else is sampled meanwhile."""
    own = f"/{'1' * 32}{'2' * 16}"
    stamps = [traces.stamp(own), traces.stamp("order-17"), traces.stamp(own), None]
    assert traces.newest(pl.Series(stamps)) == (1, "order-17")
    assert traces.newest(pl.Series(stamps[2:])) == (0, own)
    assert traces.newest(pl.Series([traces.stamp(own, "idempotency:trace:z")])) == (0, own)
    assert traces.chosen([own, "a", None, own]) == "a"
    assert traces.chosen(["a", "b"]) == "b"
    assert traces.chosen([None, "/x", own]) == own
    assert traces.chosen([None]) is None
    assert max([(3, own), (1, "a")], key=traces.rank) == (1, "a")


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", None),
        (f"00-{ID}-00f067aa0ba902b7-01", (traces.SpanContext(ID, "00f067aa0ba902b7"), True)),
        (f"00-{ID}-00f067aa0ba902b7-00", (traces.SpanContext(ID, "00f067aa0ba902b7"), False)),
        (f"cc-{ID}-00f067aa0ba902b7-03-x", (traces.SpanContext(ID, "00f067aa0ba902b7"), True)),
        (f"ff-{ID}-00f067aa0ba902b7-01", None),
        (f"00-{ID}-{'0' * 16}-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{ID}-00f067aa0ba902b7-01x", None),
    ],
)
def test_the_callers_span(header: str, wanted: object) -> None:
    assert traces.caller_of({"traceparent": header}) == wanted
    assert traces.caller_of({}) is None


@pytest.mark.parametrize("name", ["", "order-17", ID])
def test_what_is_carried_with_a_span(name: str) -> None:
    context = traces.SpanContext(ID, "00f067aa0ba902b7")
    carried = traces.text_of(name or None, context)
    assert carried is not None
    assert traces.context_of(carried) == context
    assert traces.name_of(carried) == name
    assert traces.shown(carried) == (name or ID)
    assert context.traceparent == f"00-{ID}-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "carried", [None, "a", "a/b", f"a/{'1' * 47}", f"a/{'1' * 49}", f"a b/{'1' * 48}", "/"]
)
def test_what_holds_no_span(carried: str | None) -> None:
    """Whoever may publish on a topic may write anything there."""
    assert traces.context_of(carried) is None
    assert traces.text_of(carried, None) == carried


def test_a_name_is_bound_to_the_log_and_nothing_else() -> None:
    context = traces.SpanContext(ID, "00f067aa0ba902b7")
    for name, wanted in (("order-17", {"trace": "order-17"}), ("", {})):
        carried = traces.text_of(name, context)
        assert carried is not None
        with traces.bound(carried):
            assert structlog.contextvars.get_contextvars() == wanted


def test_it_is_current_inside_only() -> None:
    with traces.bound("a"):
        with traces.bound("b"):
            assert traces.current() == "b"
        assert traces.current() == "a"
    assert traces.current() is None
