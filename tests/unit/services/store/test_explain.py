"""EXPLAIN SELECT tells the steps, the engine, and what is read; it computes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import AuthError, SqlError
from services.store.query import Queries, QueryLimits
from tests.unit.services.store.kit import PLAIN, STABLE, MemoryStore

LIMITS = QueryLimits("256MB", 1, 1_000, 20.0, "0B")


class Explained(MemoryStore):
    """Two files of each table, and a tail: files up to 2 s and up to 12 s, two rows behind."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        for first in (1_000, 11_000):
            times = (first, first + 1_000)
            self.put(PLAIN, *(("plain", at, 1, "secret") for at in times))
            self.put(STABLE, *((name, at, 1, "x", 1) for name in "ab" for at in times))
            self.flush()
        self.put(PLAIN, ("plain", 21_000, 1, "x"), ("plain", 22_000, 1, "x"))
        self.queries = Queries(self.partitions, self.resolver, LIMITS)

    def explain(self, sql: str, **more: Any) -> dict[str, list[str]]:
        """Return item → values."""
        told: dict[str, list[str]] = {}
        for line in self.queries.run(f"EXPLAIN {sql}", "d", **more).to_pylist():
            told.setdefault(line["item"], []).append(line["value"])
        return told


@pytest.fixture
def store(tmp_path: Path) -> Explained:
    return Explained(tmp_path)


def test_the_steps_of_a_select(store: Explained) -> None:
    sql = (
        "SELECT DISTINCT w, count(*) AS n FROM plain WHERE v > 0 GROUP BY w HAVING count(*) > 1"
        " ORDER BY n DESC LIMIT 3"
    )
    assert store.explain(sql) == {
        "query": [sql],
        "runs in": ["store"],
        "engine": ["DuckDB"],
        "plan": [
            "LIMIT 3",
            "  sort by n DESC",
            "    leave out repeated rows",
            "      compute w: VARCHAR(16), count(*) AS n: BIGINT",
            "        keep groups where count(*) > 1",
            "          group by w",
            "            keep rows where v > 0",
            "              scan d.plain: columns v, w",
        ],
        "reads": ["d.plain: 2 of 2 files with 4 rows, 2 rows of the log's tail"],
    }


def test_each_side_of_a_join_and_of_a_union_stands_below_it(store: Explained) -> None:
    told = store.explain(
        "SELECT a.v FROM plain a LEFT JOIN (SELECT v FROM meters UNION ALL SELECT v FROM plain) b"
        " ON a.v = b.v"
    )
    assert told["plan"] == [
        "compute a.v: INT",
        "  left join on a.v = b.v",
        "    scan d.plain AS a: columns v",
        "    call it b",
        "      union all",
        "        compute v: INT",
        "          scan d.meters: columns v",
        "        compute v: INT",
        "          scan d.plain: columns v",
    ]
    assert sorted(line.partition(":")[0] for line in told["reads"]) == [
        "d.meters",
        "d.plain",
        "d.plain",
    ]


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        (
            "SELECT v FROM plain WHERE ts > 10000",
            "d.plain: 1 of 2 files with 2 rows, 2 rows of the log's tail",
        ),
        (
            "SELECT v FROM plain WHERE ts < 10000",
            "d.plain: 1 of 2 files with 2 rows, 0 rows of the log's tail",
        ),
        (
            "SELECT v FROM meters WHERE tbname IN ('a', 'b')",
            "d.meters, 2 child tables: 2 of 2 files with 8 rows, 0 rows of the log's tail",
        ),
        (
            "SELECT _wstart, count(*) FROM meters WHERE tbname = 'a' AND ts > 10000 INTERVAL(1s)",
            "d.meters, 1 child table: 1 of 2 files with 4 rows, 0 rows of the log's tail",
        ),
    ],
)
def test_what_is_left_out_by_time_and_by_table(store: Explained, sql: str, reads: str) -> None:
    assert store.explain(sql)["reads"] == [reads]


def test_the_engine_of_windows(store: Explained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.store.window_rows.make_kernel", lambda *_: pytest.fail("it ran"))
    interval = "SELECT _wstart, count(*) FROM plain INTERVAL(1m)"
    assert store.explain(interval)["engine"] == ["DuckDB"]
    event = "SELECT _wstart, count(*) FROM plain COUNT_WINDOW(3)"
    told = store.explain(f"{event} ORDER BY 2 DESC")
    assert told["engine"] == ["the kernels of streams for COUNT_WINDOW(3), DuckDB for the rest"]
    assert told["plan"] == [
        "sort by 2 DESC",
        "  compute _wstart: TIMESTAMP, count(*): BIGINT",
        "    windows of COUNT_WINDOW(3), computed by the kernels of streams",
        "      scan d.plain: columns tbname, ts, v, w",
    ]


@pytest.mark.parametrize(
    ("sql", "plan"),
    [
        # what is left to be understood is written out
        (
            "SELECT * FROM plain",
            [
                "sort by ts",
                "  compute ts: TIMESTAMP, v: INT, w: VARCHAR(16)",
                "    scan d.plain: columns ts, v, w",
            ],
        ),
        (
            "SELECT last(*) FROM plain",
            [
                "compute last(ts) AS ts: TIMESTAMP, last(v) AS v: INT, last(w) AS w: VARCHAR(16)",
                "  group all rows",
                "    scan d.plain: columns ts, v, w",
            ],
        ),
        ("SELECT 1", ["compute 1: INT"]),
        # what is not read of a table
        (
            "SELECT count(*) FROM meters m WHERE tbname IN ('b', 'a') AND ts BETWEEN 5 AND 9",
            [
                "compute count(*): BIGINT",
                "  group all rows",
                "    keep rows where tbname IN ('b', 'a') AND ts BETWEEN 5 AND 9",
                "      scan d.meters AS m: columns tbname, ts; child tables a, b;"
                " times from 1970-01-01T00:00:00.005Z to 1970-01-01T00:00:00.009Z",
            ],
        ),
        # partitions
        (
            "SELECT g, avg(v) FROM meters PARTITION BY tbname, g SLIMIT 3 LIMIT 2 OFFSET 1",
            [
                "SLIMIT 3, LIMIT 2, OFFSET 1 in each partition by tbname, g",
                "  compute g: INT, avg(v): DOUBLE",
                "    group by tbname, g",
                "      scan d.meters: columns tbname, v, g",
            ],
        ),
        (
            "SELECT diff(v) FROM meters PARTITION BY tbname",
            [
                "sort by ts",
                "  compute diff(v): BIGINT",
                "    take rows in the order of ts in each partition by tbname",
                "      scan d.meters: columns tbname, ts, v",
            ],
        ),
        (
            "SELECT top(v, 2), w FROM meters WHERE v > 0 PARTITION BY tbname",
            [
                "sort by ts",
                "  compute top(v, 2, ts) AS `top(v, 2)`: INT, w: VARCHAR(16)",
                "    choose rows by top(v, 2, ts) in each partition by tbname",
                "      keep rows where v > 0",
                "        scan d.meters: columns tbname, ts, v, w",
            ],
        ),
        # joins by time
        (
            "SELECT a.v, count(b.v) FROM plain a LEFT WINDOW JOIN meters b WINDOW_OFFSET(-1s, 1s)",
            [
                "compute a.v: INT, count(b.v): BIGINT",
                "  group by a.ts, a.tbname, a.v",
                "    left join on b.ts >= a.ts - 1s AND b.ts <= a.ts + 1s",
                "      scan d.plain AS a: columns tbname, ts, v",
                "      scan d.meters AS b: columns ts, v",
            ],
        ),
        (
            "SELECT a.v, b.w FROM plain a LEFT ASOF JOIN meters b ON a.ts >= b.ts JLIMIT 3",
            [
                "compute a.v: INT, b.w: VARCHAR(16)",
                "  left join on a.ts >= b.ts, at most 3 rows each",
                "    scan d.plain AS a: columns tbname, ts, v",
                "    scan d.meters AS b: columns ts, w",
            ],
        ),
        # queries inside expressions, and names that mean another table in them
        (
            "SELECT v FROM plain WHERE v IN (SELECT v FROM meters WHERE w = plain.w) ORDER BY v",
            [
                "sort by v",
                "  compute v: INT",
                "    keep rows where v IN (query 1)",
                "      scan d.plain: columns v, w",
                "      query 1",
                "        compute v: INT",
                "          keep rows where w = plain.w",
                "            scan d.meters: columns v, w",
            ],
        ),
        (
            "SELECT (SELECT max(g) FROM (SELECT g FROM meters)) AS x FROM plain ORDER BY x",
            [
                "sort by x",
                "  compute (query 1) AS x: INT",
                "    scan d.plain: no columns",
                "    query 1",
                "      compute max(g): INT",
                "        group all rows",
                "          compute g: INT",
                "            scan d.meters: columns g",
            ],
        ),
        # windows, and what is done with them
        (
            "SELECT _wstart, sum(v) + 1 AS s FROM meters WHERE v > 0 PARTITION BY tbname"
            " INTERVAL(1m) FILL(PREV) HAVING sum(v) > 2 ORDER BY s LIMIT 3",
            [
                "LIMIT 3 in each partition by tbname",
                "  sort by sum(v) + 1",
                "    compute _wstart: TIMESTAMP, sum(v) + 1 AS s: DOUBLE",
                "      keep windows where sum(v) > 2",
                "        FILL(PREV)",
                "          windows of INTERVAL(1m) of each tbname,"
                " computed by the kernels of streams",
                "            keep rows where v > 0",
                "              scan d.meters: columns tbname, ts, v, w, g",
            ],
        ),
        (
            "SELECT count(DISTINCT v) FROM meters PARTITION BY tbname STATE_WINDOW(v)",
            [
                "compute count(DISTINCT v): BIGINT",
                "  windows of STATE_WINDOW(v) of each tbname, computed by the kernels of streams",
                "    scan d.meters: columns tbname, ts, v, w, g",
            ],
        ),
        (
            "SELECT max(n) FROM (SELECT count(v) AS n FROM plain INTERVAL(1s)) WHERE n > 0",
            [
                "compute max(n): BIGINT",
                "  group all rows",
                "    keep rows where n > 0",
                "      sort by _wstart",
                "        compute count(v) AS n: BIGINT",
                "          windows of INTERVAL(1s), computed by DuckDB",
                "            scan d.plain: columns ts, v",
            ],
        ),
        (
            "SELECT max(x) FROM (SELECT ts, v + 1 AS x FROM plain) SESSION(ts, 1s)",
            [
                "sort by _wstart",
                "  compute max(x): DOUBLE",
                "    windows of SESSION(ts, 1s), computed by DuckDB",
                "      compute ts: TIMESTAMP, v + 1 AS x: DOUBLE",
                "        scan d.plain: columns ts, v",
            ],
        ),
        (
            "SELECT _irowts, interp(v) AS x FROM meters PARTITION BY g RANGE(1000, 2000)"
            " EVERY(1s) FILL(PREV)",
            [
                "compute _irowts: TIMESTAMP, interp(v) AS x: INT",
                "  values between rows of each g at RANGE(1000, 2000) EVERY(1s) FILL(PREV),"
                " computed by the store",
                "    compute meters.ts: TIMESTAMP, g: INT, v: INT, meters.tbname: VARCHAR(192)",
                "      keep rows where meters.ts <= 2000",
                "        scan d.meters: columns tbname, ts, v, g; times to 1970-01-01T00:00:02.000Z",
            ],
        ),
    ],
)
def test_the_plan_that_runs(store: Explained, sql: str, plan: list[str]) -> None:
    assert store.explain(sql)["plan"] == plan


def test_only_some_of_many_names_are_listed(store: Explained) -> None:
    names = ", ".join(f"'t{n:02}'" for n in range(22))
    told = store.explain(f"SELECT count(*) FROM meters WHERE tbname IN ({names})")
    assert told["plan"][-1].endswith("t18, t19 and 2 more")


def test_a_time_that_no_calendar_has_is_a_number(store: Explained) -> None:
    told = store.explain(f"SELECT count(*) FROM plain WHERE ts < {10**25}")
    assert told["plan"][-1].endswith(f"columns ts; times to {10**25}")


def test_parameters_are_in_the_steps(store: Explained) -> None:
    told = store.explain("SELECT count(*) FROM plain WHERE ts > ?", parameters=[10_000])
    assert told["plan"][2] == "    keep rows where ts > 10000"
    assert told["reads"] == ["d.plain: 1 of 2 files with 2 rows, 2 rows of the log's tail"]


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [
        ("SELECT x FROM plain", "E_UNKNOWN_COLUMN", 16),
        ("SELECT v FROM none", "E_TABLE_NOT_EXIST", 23),
        ("SELECT sum(v) FROM plain GROUP BY sum(v)", "E_AGGREGATE_HERE", 43),
    ],
)
def test_mistakes_are_those_of_the_query(
    store: Explained, sql: str, code: str, column: int
) -> None:
    with pytest.raises(SqlError) as wrong:
        store.explain(sql)
    assert (wrong.value.code, wrong.value.column) == (code, column)


def test_who_may_not_read_may_not_ask(store: Explained) -> None:
    def refuse(*_: Any) -> None:
        raise AuthError("no")

    with pytest.raises(AuthError):
        store.explain("SELECT v FROM plain", permit=refuse)


def test_nothing_of_rows_files_or_the_engines_text_is_told(store: Explained) -> None:
    told = str(store.explain("SELECT w FROM plain WHERE ts < now"))
    for word in ("secret", "parquet", "_penstock", "make_timestamp", str(store.partitions.root)):
        assert word not in told
