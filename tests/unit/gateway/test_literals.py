from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from gateway import literals
from penstock.sql.plan import Duration
from penstock.sql.statements import RelativeTime, Value
from penstock.types import ColumnType

NOW = 1_709_164_800_000  # 2024-02-29


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("12", "INT", 12),
        (Decimal("9007199254740993"), "BIGINT", 9007199254740993),
        (2.0, "INT", 2),
        ("1.5", "DOUBLE", 1.5),
        (Decimal("0.1"), "DOUBLE", 0.1),
        ("TRUE", "BOOL", True),
        (0, "BOOL", False),
        ("x", "VARCHAR", "x"),
        (None, "INT", None),
        ("1.25", "DECIMAL", Decimal("1.25")),
        ("2024-01-01", "TIMESTAMP", 1_704_067_200_000),
        (5, "TIMESTAMP", 5),
        (
            RelativeTime("now", ((1, Duration(1, "s")), (-1, Duration(500, "a")))),
            "TIMESTAMP",
            NOW + 500,
        ),
        (RelativeTime("today"), "TIMESTAMP", NOW),
        (
            RelativeTime("now", ((1, Duration(1, "y")),)),
            "TIMESTAMP",
            1_740_700_800_000,
        ),  # 2025-02-28
        (
            RelativeTime("now", ((-1, Duration(1, "n")),)),
            "TIMESTAMP",
            1_706_486_400_000,
        ),  # 2024-01-29
        (RelativeTime("2024-01-31", ((1, Duration(1, "n")),), True), "TIMESTAMP", NOW),
        (RelativeTime(1000, ((1, Duration(1, "s")),)), "TIMESTAMP", 2000),
    ],
)
def test_what_sql_allows(value: Value, kind: str, expected: object) -> None:
    assert literals.convert(value, ColumnType(kind, 20, 10, 2), "ms", UTC, NOW) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "INT"),
        (1.5, "INT"),
        ("maybe", "BOOL"),
        (1, "VARCHAR"),
        ("tomorrow", "TIMESTAMP"),
        (True, "TIMESTAMP"),
        ("nan", "DOUBLE"),
        ("1,5", "DECIMAL"),
        (RelativeTime("now"), "INT"),
    ],
)
def test_what_would_lose_something(value: Value, kind: str) -> None:
    with pytest.raises(ValueError):
        literals.convert(value, ColumnType(kind, 20, 10, 2), "ms", UTC, NOW)


def test_today_is_the_sessions() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert literals.ticks(RelativeTime("today"), "ms", berlin, NOW) == NOW - 3_600_000
