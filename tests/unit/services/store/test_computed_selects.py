"""Windows and values between rows are nodes of a query's plan: nothing is computed before the whole
query is bound and written, and then only what the answer needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock.duck import Engine
from penstock.errors import SqlError
from services.store import interp, window_rows
from services.store.execution import Execution
from services.store.query import Queries, QueryLimits
from tests.unit.services.store.kit import PLAIN, STABLE, MemoryStore

LIMITS = QueryLimits("256MB", 1, 1_000, 20.0, "0B")
RANGE = "RANGE('1970-01-01 00:00:01', '1970-01-01 00:00:03') EVERY(1s)"
#: one select for each way that rows are computed in
COMPUTED = {
    "kernels": "SELECT _wstart AS t, count(*) AS n FROM plain COUNT_WINDOW(2)",
    "interval": "SELECT _wstart AS t, count(*) AS n FROM plain INTERVAL(2s) FILL(PREV)",
    "session": "SELECT _wstart AS t, count(*) AS n FROM plain SESSION(ts, 1s)",
    "late": "SELECT _wstart AS t, count(DISTINCT w) AS n FROM plain INTERVAL(2s)",
    "subquery": (
        "SELECT _wstart AS t, count(DISTINCT v) AS n FROM (SELECT ts, v FROM plain) COUNT_WINDOW(2)"
    ),
    "nested": (
        "SELECT _wstart AS t, sum(c) AS n FROM"
        " (SELECT _wstart AS ts, count(*) AS c FROM plain COUNT_WINDOW(2)) INTERVAL(2s)"
    ),
    "points": f"SELECT _irowts AS t, interp(v) AS n FROM plain {RANGE}",
}
every = pytest.mark.parametrize("computed", COMPUTED.values(), ids=COMPUTED.keys())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Queries:
    made = MemoryStore(Path(tmp_path_factory.mktemp("store")))
    made.put(PLAIN, ("plain", 1_000, 1, "a"), ("plain", 2_000, 2, "b"))
    made.put(STABLE, ("d1", 1_000, 10, "x", 1), ("d2", 1_500, 20, "y", 2))
    made.flush()
    made.put(PLAIN, ("plain", 2_500, 3, "b"))
    return Queries(made.partitions, made.resolver, LIMITS)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed, and no rows are taken from DuckDB to compute with."""

    def fail(*_: Any, **__: Any) -> None:
        pytest.fail("rows are computed")

    read = Execution.rows

    def rows(self: Execution, text: str, *values: Any) -> Any:
        found = read(self, text, *values)
        assert found.num_rows == 0 or "FROM" not in text, text
        return found

    monkeypatch.setattr(window_rows, "make_kernel", fail)
    monkeypatch.setattr(window_rows, "QueryFill", fail)
    monkeypatch.setattr(Execution, "fetch", fail)
    monkeypatch.setattr(Execution, "rows", rows)


# -------------------------------------------------------------------- mistakes around it


@every
@pytest.mark.parametrize(
    ("around", "code"),
    [
        ("SELECT x FROM ({})", "E_UNKNOWN_COLUMN"),
        ("WITH q AS ({}) SELECT upper(t, n) FROM q", "E_FUNCTION_ARGUMENT"),
        ("SELECT to_unixtimestamp(t) FROM ({})", "E_TYPE"),
        ("{} UNION ALL SELECT v FROM plain", "E_QUERY"),
        ("{} UNION ALL SELECT ts, x FROM plain", "E_UNKNOWN_COLUMN"),
        ("SELECT q.n FROM ({}) q JOIN plain p ON q.t = p.tx", "E_UNKNOWN_COLUMN"),
        (
            "SELECT q.n FROM ({}) q JOIN (SELECT sum(z) AS s FROM plain INTERVAL(1s)) p ON q.n = p.s",
            "E_UNKNOWN_COLUMN",
        ),
        ("SELECT t FROM ({}) WHERE t > 'yesterdayish'", "E_TYPE"),
    ],
)
@pytest.mark.usefixtures("idle")
def test_a_mistake_in_the_outer_query_comes_before_rows_are_computed(
    store: Queries, computed: str, around: str, code: str
) -> None:
    with pytest.raises(SqlError) as wrong:
        store.run(around.format(computed), "d")
    assert wrong.value.code == code


# -------------------------------------------------------------------- what an answer needs


@every
@pytest.mark.parametrize(
    "around",
    [
        "SELECT * FROM ({}) LIMIT 0",
        "SELECT n FROM (SELECT * FROM ({}) LIMIT 0) WHERE n > 1",
        "({}) UNION ALL SELECT ts, v FROM plain LIMIT 0",
    ],
)
@pytest.mark.usefixtures("idle")
def test_nothing_is_computed_for_no_rows(store: Queries, computed: str, around: str) -> None:
    assert store.run(around.format(computed), "d").num_rows == 0


@every
def test_no_rows_have_the_columns_of_rows(store: Queries, computed: str) -> None:
    whole = store.run(computed, "d")
    assert whole.num_rows > 0
    assert store.run(f"SELECT * FROM ({computed}) LIMIT 0", "d").schema == whole.schema


@every
def test_what_the_other_side_needs_is_computed(store: Queries, computed: str) -> None:
    wanted = store.run(computed, "d").num_rows
    sql = f"SELECT * FROM ({computed}) UNION ALL SELECT * FROM (SELECT * FROM ({computed}) LIMIT 0)"
    assert store.run(sql, "d").num_rows == wanted


def test_rows_are_computed_each_time_that_a_query_comes(store: Queries) -> None:
    """Also where they are made of no table, so that nothing else of the query can change."""
    points = "SELECT interp(x) AS y FROM (SELECT CAST(1000 AS TIMESTAMP) AS ts, 7 AS x) RANGE(1000)"
    windows = "SELECT sum(x) AS y FROM (SELECT CAST(1000 AS TIMESTAMP) AS ts, 7 AS x) INTERVAL(1s)"
    for sql in (points, windows):
        assert [store.run(sql, "d").to_pylist() for _ in range(4)] == [[{"y": 7}]] * 4


# -------------------------------------------------------------------- describing


@every
def test_a_select_is_described_as_it_is_answered(
    store: Queries, computed: str, request: pytest.FixtureRequest
) -> None:
    around = f"SELECT q.*, n + 1 AS more, p.w FROM ({computed}) q JOIN plain p ON q.t = p.ts"
    answers = [store.run(sql, "d").schema for sql in (computed, around)]
    request.getfixturevalue("idle")
    described = [store.describe(sql, "d") for sql in (computed, around)]
    assert described == answers
    assert [[f.metadata for f in s] for s in described] == [
        [f.metadata for f in s] for s in answers
    ]


@pytest.mark.usefixtures("idle")
def test_rows_that_share_their_time_are_looked_for_when_they_are_read(tmp_path: Path) -> None:
    made = MemoryStore(tmp_path)
    made.put(STABLE, ("d1", 1_000, 10, "x", 1), ("d2", 1_000, 20, "y", 2))
    queries = Queries(made.partitions, made.resolver, LIMITS)
    sql = "SELECT count(DISTINCT v) FROM (SELECT ts, v FROM meters) COUNT_WINDOW(2)"
    assert queries.describe(sql, "d").names == ["count(DISTINCT v)"]


# -------------------------------------------------------------------- EXPLAIN

STEPS = {
    "kernels": ["windows of COUNT_WINDOW(2), computed by the kernels of streams"],
    "interval": ["FILL(PREV)", "windows of INTERVAL(2s), computed by DuckDB"],
    "session": ["windows of SESSION(ts, 1s), computed by DuckDB"],
    "late": ["windows of INTERVAL(2s), computed by DuckDB"],
    "subquery": ["windows of COUNT_WINDOW(2), computed by the kernels of streams"],
    "nested": [
        "windows of INTERVAL(2s), computed by the kernels of streams",
        "windows of COUNT_WINDOW(2), computed by the kernels of streams",
    ],
    "points": [f"values between rows at {RANGE}, computed by the store"],
}
ENGINES = {
    "kernels": "the kernels of streams for COUNT_WINDOW(2), DuckDB for the rest",
    "interval": "DuckDB",
    "session": "DuckDB",
    "late": "DuckDB",
    "subquery": "the kernels of streams for COUNT_WINDOW(2), DuckDB for the rest",
    "nested": "the kernels of streams for COUNT_WINDOW(2), INTERVAL(2s), DuckDB for the rest",
    "points": f"the store for {RANGE}, DuckDB for the rest",
}


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "SELECT max(n) FROM ({})",
        "WITH q AS ({}) SELECT t FROM q WHERE n > 1",
        "SELECT ts, v FROM plain UNION ALL SELECT t, n FROM ({})",
        "SELECT p.v, q.n FROM plain p JOIN ({}) q ON p.ts = q.t",
        "SELECT v FROM plain WHERE v IN (SELECT n FROM ({}))",
    ],
)
@pytest.mark.usefixtures("idle")
def test_explain_shows_the_node_wherever_it_stands(store: Queries, way: str, around: str) -> None:
    table = store.run(f"EXPLAIN {around.format(COMPUTED[way])}", "d")
    told = [(line["item"], line["value"]) for line in table.to_pylist()]
    steps = [value.strip() for item, value in told if item == "plan"]
    assert [step for step in steps if "computed by" in step or "FILL(PREV)" == step] == STEPS[way]
    assert ("engine", ENGINES[way]) in told
    reads = [value for item, value in told if item == "reads"]
    assert set(reads) == {"d.plain: 1 of 1 files with 2 rows, 1 rows of the log's tail"}
    assert len(reads) == 1 + around.count("plain")


def test_explain_asks_duckdb_for_nothing(store: Queries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "answer", lambda *_: pytest.fail("DuckDB is asked"))
    for computed in COMPUTED.values():
        assert store.run(f"EXPLAIN {computed}", "d").num_rows > 3


@pytest.mark.usefixtures("idle")
def test_points_are_not_made_for_explain(store: Queries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interp, "interpolate", lambda *_, **__: pytest.fail("points are made"))
    table = store.run(f"EXPLAIN {COMPUTED['points']}", "d")
    assert pl.DataFrame(table).height > 3
