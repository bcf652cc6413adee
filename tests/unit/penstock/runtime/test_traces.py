"""Trace ids in requests, records and logs."""

from __future__ import annotations

import polars as pl
import pytest

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


def test_it_is_current_inside_only() -> None:
    with traces.bound("a"):
        with traces.bound("b"):
            assert traces.current() == "b"
        assert traces.current() == "a"
    assert traces.current() is None
