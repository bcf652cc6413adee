"""Entries of logs, and which of them a filter takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.runtime.log_entries import LogEntry, LogFilter, moment_of, parse_json

NOW = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)


def entry(**more: Any) -> LogEntry:
    line = {"timestamp": NOW.isoformat(), "level": "info", "event": "Rows came", **more}
    found = parse_json(json.dumps(line), "store")
    assert found is not None
    return found


def test_a_filter_takes_what_is_like_it() -> None:
    one = entry(level="warning", trace="order-17", table="plant.Meters")
    assert LogFilter().has(one)
    assert LogFilter(severity=2).has(one) and not LogFilter(severity=3).has(one)
    assert LogFilter(trace="order-17").has(one) and not LogFilter(trace="order-1").has(one)
    assert LogFilter(text="rows CAME").has(one)
    assert LogFilter(text="table=plant.meters").has(one)
    assert not LogFilter(text="timestamp").has(one)


def test_a_filter_takes_what_is_recent() -> None:
    assert LogFilter(since=NOW).is_recent(entry())
    assert not LogFilter(since=NOW + timedelta(seconds=1)).is_recent(entry())


def test_what_json_cannot_have_is_a_text() -> None:
    assert entry(v=float("nan")).fields["v"] == "NaN"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("10m", NOW - timedelta(minutes=10)),
        ("1d", NOW - timedelta(days=1)),
        ("2026-03-01T08:00", NOW - timedelta(hours=1)),
        ("2026-03-01T10:00+01:00", NOW),
    ],
)
def test_moments(given: str, wanted: datetime) -> None:
    assert moment_of(given, NOW) == wanted


@pytest.mark.parametrize("given", ["soon", "", "99999999999w", "9" * 5_000 + "m", "-1m"])
def test_what_is_no_moment(given: str) -> None:
    with pytest.raises(ValueError):
        moment_of(given, NOW)
