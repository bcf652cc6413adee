"""Aggregates that only a SELECT has, beside plain Python, over random rows with NULL and NaN."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.model import Database, Table, TableVersion
from penstock.sql.functions import QUERY_AGGREGATES
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store.query import Queries, QueryLimits
from tests.unit.services.store.kit import TOPIC, MemoryStore

COLUMNS = {"ts": "TIMESTAMP", "k": "INT", "i": "INT", "d": "DOUBLE", "o": "BOOL"}
VERSION = TableVersion(0, tuple(Column(n, ColumnType(kind)) for n, kind in COLUMNS.items()))
TABLE = Table(7, "d", "t", "plain", TOPIC, 1, "ms", (VERSION,))
_DOUBLES = (None, math.nan, 0.0, -0.0, 1.5, -2.25, 1e300, 0.1, 3.0)


def _rows() -> list[dict[str, Any]]:
    dice = random.Random(18)
    times = dice.sample(range(100_000), 300)
    return [
        {
            "ts": time,
            "k": dice.randrange(8),
            "i": dice.choice((None, 0, 7, -3, dice.randrange(-100, 100))),
            "d": dice.choice((*_DOUBLES, dice.uniform(-9, 9), dice.uniform(-9, 9))),
            "o": dice.choice((None, True, False)),
        }
        for time in sorted(times)
    ]


ROWS = _rows()


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Queries:
    directory: Path = tmp_path_factory.mktemp("store")
    store = MemoryStore(directory, Database(1, "d", partitions=1), TABLE)
    store.put(TABLE, *(("t", *(row[name] for name in COLUMNS)) for row in ROWS))
    limits = QueryLimits("256MB", 1, 1_000_000, 60.0, "0B")
    return Queries(store.partitions, store.resolver, limits)


Points = list[tuple[int, float]]


def _groups(column: str) -> Iterator[tuple[int, Points]]:
    """Yield the values that count, with their times, of each k."""
    for key in range(8):
        rows = [(row["ts"], row[column]) for row in ROWS if row["k"] == key]
        yield key, [(ts, float(v)) for ts, v in rows if v is not None and not math.isnan(v)]


def _twa(points: Points) -> float:
    area = math.fsum(
        (v / 2 + w / 2) * (u - t) for (t, v), (u, w) in zip(points, points[1:], strict=False)
    )
    return area / (points[-1][0] - points[0][0])


def _rank(points: Points, share: float) -> float:
    values = sorted(v for _, v in points)
    place = share * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _line(points: Points) -> tuple[float, float]:
    """Slope and intercept of the values at 2, 5, 8 and so on, by the textbook."""
    places = [2.0 + 3.0 * n for n in range(len(points))]
    middle = math.fsum(places) / len(places)
    mean = math.fsum(v for _, v in points) / len(points)
    above = math.fsum((p - middle) * (v - mean) for p, (_, v) in zip(places, points, strict=True))
    slope = above / math.fsum((p - middle) ** 2 for p in places)
    return slope, mean - slope * middle


def _mode(points: Points) -> float:
    counts = Counter(v for _, v in points)
    most = max(counts.values())
    return min(v for v, count in counts.items() if count == most)


def _ask(queries: Queries, call: str) -> dict[int, Any]:
    answer = queries.run(f"SELECT k, {call} AS found FROM t GROUP BY k", "d").to_pylist()
    assert len(answer) == 8
    return {row["k"]: row["found"] for row in answer}


_NUMBERS: dict[str, Callable[[Points], float]] = {
    "twa({})": _twa,
    "mode({})": _mode,
    "percentile({}, 37.5)": lambda points: _rank(points, 0.375),
}


@pytest.mark.parametrize("column", ["i", "d", "o"])
@pytest.mark.parametrize("call", _NUMBERS)
def test_numbers_are_those_of_plain_python(queries: Queries, call: str, column: str) -> None:
    found = _ask(queries, call.format(column))
    for key, points in _groups(column):
        wanted = _NUMBERS[call](points)
        assert float(found[key]) == pytest.approx(wanted, rel=1e-12, abs=1e-12), key


@pytest.mark.parametrize("column", ["i", "o"])
def test_several_percentiles_are_a_json_array(queries: Queries, column: str) -> None:
    found = _ask(queries, f"percentile({column}, 0, 10, 99.5)")
    for key, points in _groups(column):
        wanted = [_rank(points, share) for share in (0, 0.1, 0.995)]
        assert json.loads(found[key]) == pytest.approx(wanted, abs=1e-6), key


@pytest.mark.parametrize("column", ["i", "o"])
def test_a_line_is_the_nearest(queries: Queries, column: str) -> None:
    found = _ask(queries, f"leastsquares({column}, 2, 3)")
    for key, points in _groups(column):
        slope, intercept = _line(points)
        assert found[key] == f"{{slop:{slope:.6f}, intercept:{intercept:.6f}}}", key


@pytest.mark.parametrize("column", ["i", "d", "o"])
def test_a_rate_is_of_the_last_two_values(queries: Queries, column: str) -> None:
    found = _ask(queries, f"irate({column})")
    for key, points in _groups(column):
        (t, v), (u, w) = points[-2:]
        # a counter that fell began anew at 0
        rise = w - v if w >= v else w
        assert found[key] == pytest.approx(rise * 1000 / (u - t)), key


def test_a_time_counts_whatever_the_value(queries: Queries) -> None:
    found = _ask(queries, "elapsed(ts, 1s)")
    for key in range(8):
        times = [row["ts"] for row in ROWS if row["k"] == key]
        assert found[key] == (times[-1] - times[0]) / 1000


@pytest.mark.parametrize("column", ["i", "d", "o"])
@pytest.mark.parametrize("normalized", [0, 1])
def test_values_fall_into_bins(queries: Queries, column: str, normalized: int) -> None:
    edges = [-3, 0, 1, 7, 50]
    call = f"histogram({column}, 'user_input', '{edges}', {normalized})"
    answer = queries.run(f"SELECT k, {call} AS found FROM t GROUP BY k", "d").to_pylist()
    assert len(answer) == 8 * 4
    for key, points in _groups(column):
        texts = [json.loads(row["found"]) for row in answer if row["k"] == key]
        bins = list(zip(edges, edges[1:], strict=False))
        assert [(t["lower_bin"], t["upper_bin"]) for t in texts] == bins
        counts = [sum(low < v <= high for _, v in points) for low, high in bins]
        divisor = (sum(counts) or 1) if normalized else 1
        wanted = [count / divisor for count in counts]
        assert [t["count"] for t in texts] == pytest.approx(wanted, abs=1e-6), key


def test_every_aggregate_of_queries_is_tested_here() -> None:
    tested = {"twa", "mode", "percentile", "leastsquares", "elapsed", "histogram", "irate"}
    assert QUERY_AGGREGATES.keys() == tested
