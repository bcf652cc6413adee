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
            "sort by n DESC",
            "leave out repeated rows",
            "compute w, count(*) AS n",
            "keep groups where count(*) > 1",
            "group by w",
            "keep rows where v > 0",
            "read plain",
        ],
        "reads": ["d.plain: 2 of 2 files with 4 rows, 2 rows of the log's tail"],
    }


def test_steps_of_subqueries_and_joins_stand_further_right(store: Explained) -> None:
    told = store.explain(
        "SELECT a.v FROM plain a LEFT JOIN (SELECT v FROM meters UNION ALL SELECT v FROM plain) b"
        " ON a.v = b.v"
    )
    assert told["plan"] == [
        "compute a.v",
        "read plain AS a",
        "left join on a.v = b.v",
        "    union all",
        "      compute v",
        "      read meters",
        "      compute v",
        "      read plain",
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
    monkeypatch.setattr("services.store.windowed.make_kernel", lambda *_: pytest.fail("it ran"))
    interval = "SELECT _wstart, count(*) FROM plain INTERVAL(1m)"
    assert store.explain(interval)["engine"] == ["DuckDB"]
    event = "SELECT _wstart, count(*) FROM plain COUNT_WINDOW(3)"
    told = store.explain(f"{event} ORDER BY 2 DESC")
    assert told["engine"] == ["the kernels of streams for COUNT_WINDOW(3), DuckDB for the rest"]
    assert told["plan"] == [
        "sort by 2 DESC",
        "compute _wstart, count(*)",
        "windows of COUNT_WINDOW(3)",
        "read plain",
    ]
    filled = store.explain("SELECT _wstart, sum(v) FROM plain INTERVAL(1m) FILL(NULL)")
    assert filled["plan"][1:3] == ["FILL(NULL)", "windows of INTERVAL(1m)"]


def test_parameters_are_in_the_steps(store: Explained) -> None:
    told = store.explain("SELECT v FROM plain WHERE ts > ?", parameters=[10_000])
    assert told["plan"][1] == "keep rows where ts > 10000"
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
