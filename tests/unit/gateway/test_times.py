from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from gateway import times
from penstock.errors import SqlSemanticError


@pytest.mark.parametrize(
    ("text", "precision", "ticks"),
    [
        ("2024-01-01T00:00:00Z", "ms", 1704067200000),
        ("2024-01-01 00:00:00.123456789", "ns", 1704067200123456789),
        ("2024-01-01 00:00:00.123456789", "us", 1704067200123456),
        ("2024-01-01", "ms", 1704067200000),
        ("2024-01-01T08:00:00.5+08:00", "ms", 1704067200500),
        ("2024-01-01T08:00:00+0800", "ms", 1704067200000),
        ("1969-12-31T23:59:59.999Z", "ms", -1),
    ],
)
def test_texts_to_ticks(text: str, precision: str, ticks: int) -> None:
    assert times.parse(text, precision, UTC) == ticks


def test_a_text_without_a_zone_is_in_the_requests() -> None:
    assert times.parse("2024-01-01 01:00:00", "ms", ZoneInfo("Europe/Berlin")) == 1704067200000


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2024-13-01", "2024-01-01T25:00:00", "2024-01-01T00:00:00.1234567890"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        times.parse(text, "ms")


def test_rest_form() -> None:
    ticks = pl.Series([1704067200123, None, -1])
    assert times.render(ticks, "ms").to_list() == [
        "2024-01-01T00:00:00.123Z",
        None,
        "1969-12-31T23:59:59.999Z",
    ]
    assert (
        times.render(pl.Series([1704067200123456789]), "ns")[0] == "2024-01-01T00:00:00.123456789Z"
    )
    assert times.render(ticks, "ms", "Asia/Shanghai")[0] == "2024-01-01T08:00:00.123+08:00"


def test_unknown_zone() -> None:
    with pytest.raises(SqlSemanticError, match="time zone"):
        times.zone("Mars/Base")
