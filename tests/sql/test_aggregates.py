"""Each aggregate in a query and in a window of one, which the kernels of streams compute: equal to
each other, and to plain Python.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.model import Database, Table, TableVersion
from penstock.sql.functions import AGGREGATES
from penstock.sql.plan import Column
from services.store.query import Queries, QueryLimits
from tests.sql.rows import COLUMNS, make_rows
from tests.sql.test_functions import alike
from tests.unit.services.store.kit import TOPIC, MemoryStore

TABLE = Table(
    7,
    "d",
    "t",
    "plain",
    TOPIC,
    1,
    "ms",
    (TableVersion(0, tuple(Column(name, kind) for name, kind in COLUMNS.items())),),
)


def _stored(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as a table takes it: infinity is refused."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in row.items()
    }


#: of one time there is one row
ROWS = sorted(
    {r["ts"]: _stored(r) for r in make_rows() if r["ts"] is not None and r["ts"] >= 0}.values(),
    key=lambda r: r["ts"],
)
_WHOLE = ("i", "b", "y", "u")


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Queries:
    directory: Path = tmp_path_factory.mktemp("store")
    store = MemoryStore(directory, Database(1, "d", partitions=1), TABLE)
    store.put(TABLE, *(("t", *(row[name] for name in COLUMNS)) for row in ROWS))
    limits = QueryLimits("256MB", 1, 1_000_000, 60.0, "0B")
    return Queries(store.partitions, store.resolver, limits)


def known(column: str) -> list[Any]:
    """Values that an aggregate counts."""
    return [
        row[column]
        for row in ROWS
        if row[column] is not None
        and not (isinstance(row[column], float) and math.isnan(row[column]))
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _sum(column: str) -> float | int | None:
    values = known(column)
    if column not in (*_WHOLE, "n", "o"):
        return _finite(sum(values))
    total = sum(map(int, values))
    low, high = (0, 2**64) if column == "u" else (-(2**63), 2**63)
    return total if low <= total < high else None


def _mean(column: str) -> float | None:
    values = known(column)
    return _finite(sum(values) / len(values))


def _rank(column: str, share: float) -> float | None:
    """Between two values in proportion."""
    values = sorted(map(float, known(column)))
    place = share * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return low if low == high else _finite(low + (high - low) * (place - math.floor(place)))


_PLAIN: dict[str, Callable[[str], Any]] = {
    "count": lambda c: len(known(c)),
    "sum": _sum,
    "avg": _mean,
    "min": lambda c: min(known(c)),
    "max": lambda c: max(known(c)),
    "first": lambda c: known(c)[0],
    "last": lambda c: known(c)[-1],
    "last_row": lambda c: ROWS[-1][c],
    "spread": lambda c: _finite(float(max(known(c))) - float(min(known(c)))),
    **dict.fromkeys(("stddev", "stddev_pop", "std"), lambda c: statistics.pstdev(known(c))),
    **dict.fromkeys(("var_pop", "variance"), lambda c: float(statistics.pvariance(known(c)))),
    "stddev_samp": lambda c: statistics.stdev(known(c)),
    "var_samp": lambda c: float(statistics.variance(known(c))),
}
_OF_ANY = ("count", "min", "max", "first", "last", "last_row")
_ALL = ("d", "x", "f", "i", "b", "y", "u", "n")
_MOMENTS = ("stddev", "stddev_pop", "std", "var_pop", "variance", "stddev_samp", "var_samp")
CASES = [
    *((name, column) for name in ("sum", "avg", "spread") for column in _ALL),
    *((name, column) for name in _OF_ANY for column in (*_ALL, "s", "o")),
    *((name, column) for name in _MOMENTS for column in ("i", "y", "n")),
]


def ask(queries: Queries, call: str, clause: str = "") -> Any:
    answer = queries.run(f"SELECT {call} AS found FROM t WHERE ts >= 0 {clause}", "d")
    (row,) = answer.to_pylist()
    return row["found"]


@pytest.mark.parametrize(("name", "column"), CASES)
def test_both_engines_give_what_the_words_say(queries: Queries, name: str, column: str) -> None:
    wanted = _PLAIN[name](column)
    call = f"{name}({column})"
    in_window = ask(queries, call, "INTERVAL(36500d)")
    in_query = ask(queries, call)
    assert alike(in_window, wanted), (in_window, wanted)
    assert alike(in_query, wanted), (in_query, wanted)
    assert alike(in_query, in_window), (in_query, in_window)


@pytest.mark.parametrize("share", [0, 10, 33.3, 50, 99, 100])
def test_a_percentile_is_exact(queries: Queries, share: float) -> None:
    for column in ("i", "n", "b"):
        found = ask(queries, f"percentile({column}, {share})")
        assert alike(found, _rank(column, share / 100)), column


def test_sketches_are_near(queries: Queries) -> None:
    distinct = len(set(known("i")))
    for clause in ("", "INTERVAL(36500d)"):
        assert ask(queries, "apercentile(n, 50)", clause) == pytest.approx(_rank("n", 0.5), abs=1)
        assert ask(queries, "hyperloglog(i)", clause) == pytest.approx(distinct, rel=0.1)


def test_now_in_a_window_is_the_moment_of_the_statement(queries: Queries) -> None:
    in_window = ask(queries, "max(timediff(now, ts, 1d))", "INTERVAL(36500d)")
    in_query = ask(queries, "max(timediff(now, ts, 1d))")
    assert in_window == in_query > 20_000


def test_every_aggregate_is_in_a_case() -> None:
    assert not AGGREGATES.keys() - {name for name, _ in CASES} - {"apercentile", "hyperloglog"}
