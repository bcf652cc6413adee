"""The table that each client must see as it is: types at their limits, NULLs, texts, times, sums."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

DATABASE = "facts"
#: rows of the table `many`
MANY = 10_000
DEFINITIONS = (
    f"CREATE DATABASE {DATABASE} PRECISION 'ns' PARTITIONS 1",
    "CREATE TABLE limits (ts TIMESTAMP, ok BOOL, i8 TINYINT, u8 TINYINT UNSIGNED, i16 SMALLINT,"
    " u16 SMALLINT UNSIGNED, i32 INT, u32 INT UNSIGNED, i64 BIGINT, u64 BIGINT UNSIGNED, f FLOAT,"
    " d DOUBLE, price DECIMAL(20, 4), word VARCHAR(40), note NCHAR(20), raw VARBINARY(8))",
    "CREATE STABLE meters (ts TIMESTAMP, volts INT, amps DOUBLE) TAGS (site VARCHAR(16), line INT)",
    "CREATE TABLE many (ts TIMESTAMP, n BIGINT)",
    "CREATE TABLE empty (ts TIMESTAMP, n INT)",
)
TABLES = ["empty", "limits", "many", "meters"]
WORD = 'it\'s "so" 100% \\ äß日🚀'
INSERTS = (
    "INSERT INTO limits VALUES ('2024-03-31T00:59:59.123456789Z', true, 127, 255, 32767, 65535,"
    " 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 1.5, 0.1,"
    " 1234567890123456.7891, 'it''s \"so\" 100% \\\\ äß日🚀', 'äß日🚀', '\\x00ff')"
    " ('2024-03-31T01:00:00Z', false, -128, 0, -32768, 0, -2147483648, 0, -9223372036854775808, 0,"
    " -0.25, -1.7976931348623157e308, -0.0001, '', 'x', '\\x')"
    " ('2024-03-31T01:00:01.5Z'" + ", NULL" * 15 + ")",
    "INSERT INTO d1 USING meters TAGS ('north', 1) VALUES"
    " ('2024-03-31T00:00:00Z', 2000000000, 1.5) ('2024-03-31T00:00:10Z', 2000000000, NULL)"
    " d2 USING meters TAGS ('it''s south', 2) VALUES"
    " ('2024-03-31T00:00:05Z', 2000000000, 2.5) ('2024-03-31T00:00:15Z', 7, -0.25)",
)


class Time(str):
    """A time in UTC, with nanoseconds."""

    __slots__ = ()


COLUMNS = (
    *("ts", "ok", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"),
    *("f", "d", "price", "word", "note", "raw"),
)
LIMITS: list[list[Any]] = [
    [
        *(Time("2024-03-31T00:59:59.123456789"), True, 127, 255, 32_767, 65_535, 2**31 - 1),
        *(2**32 - 1, 2**63 - 1, 2**64 - 1, 1.5, 0.1, Decimal("1234567890123456.7891")),
        *(WORD, "äß日🚀", b"\0\xff"),
    ],
    [
        *(Time("2024-03-31T01:00:00.000000000"), False, -128, 0, -32_768, 0, -(2**31), 0),
        *(-(2**63), 0, -0.25, -1.7976931348623157e308, Decimal("-0.0001"), "", "x", b""),
    ],
    [Time("2024-03-31T01:00:01.500000000"), *[None] * 15],
]
#: site, count, sum and average of volts, sum and smallest of amps
SUMS_SQL = (
    "SELECT site, count(*), sum(volts), avg(volts), sum(amps), min(amps) FROM meters"
    " GROUP BY site ORDER BY site"
)
SUMS: list[list[Any]] = [
    ["it's south", 2, 2_000_000_007, 1_000_000_003.5, 2.25, -0.25],
    ["north", 2, 4_000_000_000, 2_000_000_000.0, 1.5, 1.5],
]


def agree(expected: Any, found: Any, places: int = 9) -> bool:
    """Tell whether what a program printed is the value that is expected.

    Args:
        expected: a value of `LIMITS` or `SUMS`.
        found: the same out of JSON; numbers may be text, since JSON's are doubles for many.
        places: digits of a second that this client can tell.
    """
    if expected is None or found is None:
        return expected is None and found is None
    if isinstance(expected, Time):
        return _time(found) == expected[: 20 + places].ljust(29, "0")
    if isinstance(expected, bytes):
        return bool(found == expected.hex())
    if isinstance(expected, bool | str):
        return type(found) is type(expected) and found == expected
    if isinstance(expected, float):
        return float(found) == expected
    return not isinstance(found, bool) and Decimal(str(found)) == expected


def disagreements(
    expected: list[list[Any]], found: list[list[Any]], names: tuple[str, ...], places: int = 9
) -> list[tuple[int, str, Any, Any]]:
    """Return row, name, expected and found value of each that differs."""
    assert len(found) == len(expected), found
    return [
        (row, name, wanted, seen)
        for row, (left, right) in enumerate(zip(expected, found, strict=True))
        for name, wanted, seen in zip(names, left, right, strict=True)
        if not agree(wanted, seen, places)
    ]


def _time(text: str) -> str:
    """Return a time of ISO 8601 in UTC with nanoseconds."""
    whole, _, rest = text.replace(" ", "T").partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = (rest[len(digits) :] if rest else whole[19:]) or "Z"
    moment = datetime.fromisoformat(whole[:19] + zone.replace("Z", "+00:00")).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + digits.ljust(9, "0")
