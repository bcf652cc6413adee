"""FILL of a query, beside a few lines of plain Python that fill the same windows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SqlError
from tests.unit.services.store.kit import PLAIN, STABLE
from tests.unit.services.store.test_query_run import Asking

_SIZE = 1_000
Windows = Mapping[int, int | None]


def nearest(known: Windows, start: int, step: int, end: int) -> tuple[int, int] | None:
    """Return the nearest window with a value from *start* on, up to *end*, and its value."""
    for at in range(start, end, step):
        value = known.get(at)
        if value is not None:
            return at, value
    return None


def filled(known: Windows, mode: str, start: int, low: int, high: int) -> int | None:
    """Return the value of the empty window at *start*."""
    before = nearest(known, start, -_SIZE, low - 1)
    behind = nearest(known, start, _SIZE, high + 1)
    if mode == "VALUE, 5":
        return 5
    if mode == "PREV":
        return before[1] if before else None
    if mode == "NEXT":
        return behind[1] if behind else None
    if mode == "LINEAR" and before and behind:
        part = (behind[1] - before[1]) * (start - before[0])
        total = before[1] * (behind[0] - before[0]) + part
        return int(total / (behind[0] - before[0]))
    return None


def expected(rows: list[tuple[int, int | None]], mode: str, low: int, high: int) -> list[Any]:
    known: dict[int, int | None] = {}
    for time, value in rows:
        if low <= time <= high:
            start = time // _SIZE * _SIZE
            old = known.get(start)
            known[start] = value if old is None else old if value is None else max(old, value)
    if not known:
        return []
    first = low // _SIZE * _SIZE
    last = high // _SIZE * _SIZE
    return [
        known[start] if start in known else filled(known, mode, start, first, last)
        for start in range(first, last + 1, _SIZE)
    ]


@pytest.mark.parametrize("mode", ["NULL", "VALUE, 5", "PREV", "NEXT", "LINEAR"])
def test_a_range_is_filled_from_end_to_end(tmp_path: Path, mode: str) -> None:
    chance = random.Random(mode)
    asking = Asking(tmp_path)
    rows = [
        (time, chance.choice([None, chance.randint(-40, 40)]))
        for time in sorted(chance.sample(range(5_000, 30_000), 12))
    ]
    asking.put(PLAIN, *(("plain", time, value, "w") for time, value in rows))
    for _ in range(6):
        low = chance.randint(0, 20_000)
        high = low + chance.randint(0, 15_000)
        found = asking.rows(
            f"SELECT max(v) FROM plain WHERE ts BETWEEN {low} AND {high}"
            f" INTERVAL(1s) FILL({mode}) ORDER BY _wstart"
        )
        assert [value for (value,) in found] == expected(rows, mode, low, high), (low, high)


def test_days_of_a_zone_are_filled_over_a_change_of_the_clocks(tmp_path: Path) -> None:
    """In Berlin 2026-03-29 has 23 hours."""
    asking = Asking(tmp_path)
    asking.put(PLAIN, ("plain", 1_774_696_000_000, 1, "w"))
    found = asking.result(
        "SELECT _wstart, _wduration, count(*) AS n FROM plain WHERE ts >= '2026-03-28' AND"
        " ts < '2026-03-31' INTERVAL(1d) FILL(VALUE, 0) ORDER BY _wstart",
        timezone="Europe/Berlin",
    )
    assert found.column("n").to_pylist() == [1, 0, 0]
    hours = [ticks / 3_600_000 for ticks in found.column("_wduration").to_pylist()]
    assert hours == [24, 23, 24]


def test_each_partition_is_filled_and_one_of_null_too(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    asking.put(
        STABLE,
        ("d1", 1_000, 1, "x", 1),
        ("d1", 3_000, 2, "x", 1),
        ("d2", 2_000, 3, "y", None),
    )
    found = asking.rows(
        "SELECT g, max(v) AS m FROM meters WHERE ts BETWEEN 1000 AND 3000 PARTITION BY g"
        " INTERVAL(1s) FILL(PREV) ORDER BY g NULLS LAST, _wstart"
    )
    assert found == [(1, 1), (1, 1), (1, 2), (None, None), (None, 3), (None, 3)]


def test_a_range_with_too_many_windows_is_refused_at_its_place(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    asking.put(PLAIN, ("plain", 1_000, 1, "w"))
    with pytest.raises(SqlError) as wrong:
        asking.rows(
            "SELECT count(*) FROM plain WHERE ts BETWEEN 0 AND 99999999999 INTERVAL(10a) FILL(PREV)"
        )
    assert (wrong.value.code, wrong.value.column) == ("E_RESULT_TOO_LARGE", 77)
    assert "10000000000 rows" in wrong.value.message


@pytest.mark.parametrize(
    ("where", "ends"),
    [
        ("ts > 1000 AND ts < 3000", (1_001, 2_999)),
        ("1000 <= ts AND (ts <= 3000 AND v = 1)", (1_000, 3_000)),
        ("ts >= 1000 AND ts >= 2000 AND _c0 < now", (2_000, 19_999)),
        ("ts = '1970-01-01 00:00:02'", (2_000, 2_000)),
        ("ts >= now - 10s AND ts < now - 5s + 1s", (10_000, 15_999)),
        ("ts > 1000 OR ts < 3000", (None, None)),
        ("ts > v AND v < 3000", (None, None)),
        ("NOT ts < 1000", (None, None)),
    ],
)
def test_the_range_of_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, ends: tuple[int, int]
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 20 * 10**9)
    asking = Asking(tmp_path)
    asking.put(PLAIN, *(("plain", time, 1, "w") for time in (2_000, 12_000)))
    sql = f"SELECT DISTINCT _qstart, _qend, _qduration FROM plain WHERE {where} INTERVAL(1h)"
    table = asking.result(sql)
    found = [column.cast("timestamp[ms]").cast("int64") for column in table.columns[:2]]
    assert tuple(column[0].as_py() for column in found) == ends
    wanted = ends[1] - ends[0] if ends[0] is not None else None
    assert table.column("_qduration")[0].as_py() == wanted
