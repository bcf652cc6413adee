"""Some 400 rows of everything that is odd: NULL, NaN, infinities, limits of types, texts of all
kinds, days on which clocks are turned.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.types import ColumnType

COUNT = 400
COLUMNS = {
    "ts": ColumnType("TIMESTAMP"),
    "d": ColumnType("DOUBLE"),
    "x": ColumnType("DOUBLE"),
    "f": ColumnType("FLOAT"),
    "i": ColumnType("INT"),
    "b": ColumnType("BIGINT"),
    "y": ColumnType("TINYINT"),
    "u": ColumnType("BIGINT UNSIGNED"),
    "o": ColumnType("BOOL"),
    "n": ColumnType("INT"),
    "s": ColumnType("VARCHAR", length=200),
    "p": ColumnType("VARCHAR", length=200),
    "w": ColumnType("VARCHAR", length=64),
}
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Shanghai",
)
_DOUBLES = (
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1.0,
    -1.0,
    1e308,
    -1e308,
    5e-324,
    1e-9,
    0.1,
    3.999,
    2.0**53,
    -(2.0**63),
    1234.5678,
    710.0,
    3.25,
)
_TEXTS = (
    None,
    "",
    " ",
    "  a  ",
    "e\u0301te\u0301",
    "ÄÖß",
    "😀x😀",
    "a\\b",
    "50%",
    "a_b",
    "%",
    "_",
    "İi",
    "it's",
    "a,b,,c",
    "\ttab\n",
    "日本語",
    "xxabxx",
    "abab",
    "ΑΣ",
    "b",
    "x" * 70,
    "a\\_b",
    "axb",
)
#: days of 2024 and 2025 on which some zone turns its clocks, and the ends of years
_DAYS = (
    "2024-03-10",
    "2024-03-31",
    "2024-04-06",
    "2024-10-05",
    "2024-10-27",
    "2024-11-03",
    "2023-12-31",
    "2024-12-30",
    "2021-01-03",
    "2026-01-01",
    "1970-01-01",
    "2000-02-29",
)
_READABLE = (
    None,
    "",
    "no time",
    "2024-01-31",
    "2024-03-10 02:30:00",
    "2024-11-03 01:30:00",
    "2024-03-31T02:30:00.5",
    "2024-10-06 02:15:00",
    "2024-10-27 02:30:00",
    "2024-01-31 12:34:56Z",
    "2024-01-31 12:34:56.789+08:00",
    "2024-02-30 00:00:00",
    "2024-01-31 25:00:00",
)


def make_rows() -> list[dict[str, Any]]:
    """Return the rows: the same ones each time."""
    dice = random.Random(29)
    return [draw_row(dice, i) for i in range(COUNT)]


def draw_row(dice: random.Random, number: int) -> dict[str, Any]:
    """Return one row; every 37th has no time."""

    def whole(bits: int, unsigned: bool = False) -> int | None:
        low = 0 if unsigned else -(2 ** (bits - 1))
        high = 2**bits - 1 if unsigned else 2 ** (bits - 1) - 1
        near = dice.randint(0 if unsigned else -1500, 1500) % (high + 1)
        return dice.choice((None, low, low + 1, high, high - 1, 0, 1, near, near, near))

    day = datetime.fromisoformat(dice.choice(_DAYS)).replace(tzinfo=UTC) + timedelta(
        milliseconds=dice.randrange(-86_400_000, 2 * 86_400_000)
    )
    ticks = (day - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    single = dice.choice((None, 0.5, -1.25, 3.0, 2.0**66, float("nan"), float("inf")))
    return {
        "ts": None if number % 37 == 0 else ticks,
        "d": dice.choice((*_DOUBLES, dice.uniform(-10, 10), dice.uniform(-1e6, 1e6))),
        "x": dice.choice((*_DOUBLES, dice.uniform(-3, 3))),
        "f": single,
        "i": whole(32),
        "b": whole(64),
        "y": whole(8),
        "u": whole(64, unsigned=True),
        "o": dice.choice((None, True, False)),
        "n": dice.choice((None, *range(-4, 9))),
        "s": dice.choice(_TEXTS),
        "p": dice.choice(_TEXTS),
        "w": dice.choice((*_READABLE, day.strftime("%Y-%m-%d %H:%M:%S"))),
    }
