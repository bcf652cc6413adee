"""Times in a query: durations become intervals, and text becomes ticks."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from penstock.errors import SqlSemanticError
from penstock.sql.plan import Duration
from services.store.times import interval, read_time

CON = duckdb.connect()


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("u", "INTERVAL '3' MICROSECOND"),
        ("a", "INTERVAL '3' MILLISECOND"),
        ("s", "INTERVAL '3' SECOND"),
        ("m", "INTERVAL '3' MINUTE"),
        ("h", "INTERVAL '3' HOUR"),
        ("d", "INTERVAL '3' DAY"),
        ("w", "INTERVAL '3' WEEK"),
        ("n", "INTERVAL '3' MONTH"),
        ("y", "INTERVAL '3' YEAR"),
    ],
)
def test_durations_become_intervals(unit: Any, wanted: str) -> None:
    made = interval(Duration(3, unit)).sql(dialect="duckdb")
    assert made == wanted
    assert CON.execute(f"SELECT {made}").fetchone() is not None


def test_nanoseconds_are_refused() -> None:
    with pytest.raises(SqlSemanticError, match="nanoseconds"):
        interval(Duration(3, "b"))


@pytest.mark.parametrize(
    ("text", "timezone", "seconds"),
    [
        ("2024-01-31 12:00:00", "Asia/Shanghai", 1_706_673_600),
        ("2024-01-31T12:00:00Z", "Asia/Shanghai", 1_706_702_400),
        ("2024-01-31 12:00:00+01:00", "Asia/Shanghai", 1_706_698_800),
        (" 2024-01-31 ", "UTC", 1_706_659_200),
    ],
)
def test_a_text_is_a_time_of_the_session_unless_it_names_its_own_zone(
    text: str, timezone: str, seconds: int
) -> None:
    assert read_time(text, "ms", timezone) == seconds * 1_000
    assert read_time(text, "ns", timezone) == seconds * 1_000_000_000


def test_a_text_that_is_no_time() -> None:
    with pytest.raises(SqlSemanticError, match="'tomorrow' is no time") as caught:
        read_time("tomorrow", "ms", "UTC")
    assert "2024-01-31 12:00:00" in caught.value.hint
