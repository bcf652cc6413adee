"""How many records of a backlog are handed over at once."""

from __future__ import annotations

import pytest

from spark_jobs.backlog import CAUTIOUS, places, records_at_once

MOST = {"most_records": 16_384, "most_bytes": 8 << 20}


@pytest.mark.parametrize(
    ("size", "expected"),
    [(None, CAUTIOUS), (50.0, 16_384), (9_000.0, 932), (900_000.0, 16), (0.0, 16_384)],
)
def test_as_many_as_memory_allows(size: float | None, expected: int) -> None:
    assert records_at_once(size, **MOST) == expected


def test_never_more_than_the_operator_takes() -> None:
    assert records_at_once(None, most_records=100, most_bytes=1) == 100
    assert records_at_once(900_000.0, most_records=4, most_bytes=1) == 4


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (7, 7, []),
        (9, 7, []),
        (7, 8, [7]),
        (0, 27, [0, 1, 2]),
        (100, 1700, [*range(137, 1638, 100)]),
    ],
)
def test_places_are_spread_over_what_waits(begin: int, end: int, expected: list[int]) -> None:
    assert places(begin, end) == expected


def test_what_a_backlog_begins_with_is_not_looked_at_unless_it_is_much_of_it() -> None:
    assert places(0, 1_000_000)[0] > 30_000
