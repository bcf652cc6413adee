"""Literal values of TAGS and RECALCULATE."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from penstock.sql.parsers.insert import parse_insert
from penstock.sql.parsers.values import ValueParser
from penstock.sql.plan import Duration
from penstock.sql.source import Source
from penstock.sql.statements import Insert, RelativeTime
from tests.unit.sql.reading import read, refusal, refused

S = Duration(1, "s")
VALUES: list[tuple[str, Any]] = [
    ("NULL", None),
    ("true", True),
    ("FALSE", False),
    ("'it''s'", "it's"),
    ('"x"', "x"),
    ("7", 7),
    ("-7", -7),
    ("+7", 7),
    ("1.5", 1.5),
    ("-1.5", -1.5),
    ("-0.12345678901234567", Decimal("-0.12345678901234567")),
    ("18446744073709551615", 2**64 - 1),
    ("now", RelativeTime("now")),
    ("now()", RelativeTime("now")),
    ("TODAY()", RelativeTime("today")),
    ("now + 1s", RelativeTime("now", ((1, S),))),
    ("now() - 1s + 2d", RelativeTime("now", ((-1, S), (1, Duration(2, "d"))))),
    ("'2024-01-01' + 1s", RelativeTime("2024-01-01", ((1, S),), True)),
    ("1700000000000 - 1s", RelativeTime(1700000000000, ((-1, S),))),
]


def value(text: str) -> Any:
    return read(ValueParser, text, lambda p: p.value())


@pytest.mark.parametrize(("text", "wanted"), VALUES)
def test_a_literal_becomes_a_plain_value(text: str, wanted: Any) -> None:
    found = value(text)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(("text", "wanted"), VALUES)
def test_insert_reads_the_same_values(text: str, wanted: Any) -> None:
    whole = f"INSERT INTO t VALUES ({text})"
    statement = parse_insert(Source(whole), 0, len(whole), lambda at: pytest.fail("no SELECT"))
    assert isinstance(statement, Insert)
    assert statement.parts[0].rows == ((wanted,),)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("1.5 + 1s", 1, "arithmetic is only allowed on times"),
        ("NULL + 1s", 1, "arithmetic is only allowed on times"),
        ("TRUE - 1s", 1, "arithmetic is only allowed on times"),
        ("now + 1", 7, "expected a length of time such as 10s, found 1"),
        ("now +", 6, "expected a length of time such as 10s, but the statement ends"),
        ("- x", 3, "expected a number, found x"),
        ("-1s", 2, "expected a number, found 1"),
        ("abc", 1, "expected a value, found abc"),
        ("`now`", 1, "expected a value, found `now`"),
    ],
)
def test_what_is_no_value_is_refused(text: str, column: int, message: str) -> None:
    assert refused(lambda: value(text)) == ("E_SYNTAX", 1, column, message)


def test_the_hint_lists_what_a_value_can_be() -> None:
    assert "NULL, TRUE, FALSE, or a time such as now + 1s" in refusal(lambda: value("x")).hint
