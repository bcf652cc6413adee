"""Queries of the dialect as DuckDB runs them: same names, same NULLs, times in the session's zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import duckdb
import pytest
from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql import parse_one
from penstock.sql.statements import Query
from services.store.translate import Bound, Context, query

TABLE = Bound("t", ("ts", "a", "s", "ta"), frozenset({"ts"}), "ms")
START = datetime(2023, 11, 15, tzinfo=UTC).replace(tzinfo=None)  # DuckDB's times have no zone


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("SET error_on_division_by_zero=false; SET ieee_floating_point_ops=false")
        made.execute(
            "CREATE TABLE t AS SELECT 'd1' AS tbname, make_timestamp_ms(1700006400000 + i * 1000)::TIMESTAMP_MS AS ts, i::INT AS a, "
            "'x' || i AS s, 1 AS ta FROM range(10) r(i)"
        )
        yield made


def run(con: duckdb.DuckDBPyConnection, text: str, timezone: str = "UTC", *, tables: bool = True) -> list[tuple[object, ...]]:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    tree = statement.query.copy()
    bound = {t.alias_or_name.lower(): TABLE for t in tree.find_all(exp.Table)} if tables else {}
    return con.execute(query(tree, Context(bound, timezone))).fetchall()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*), first(a), last(s), spread(a) FROM t", [(10, 0, "x9", 9)]),
        ("SELECT last_row(a) FROM t WHERE ts > '2023-11-15 00:00:05' AND a < 8", [(7,)]),
        ("SELECT count(*) FROM t WHERE ts >= 1700006405000", [(5,)]),
        ("SELECT a FROM t WHERE ts BETWEEN 1700006401000 AND 1700006403000", [(1,), (2,), (3,)]),
        ("SELECT tbname, max(a) FROM t PARTITION BY tbname", [("d1", 9)]),
        ("SELECT a / 0 FROM t LIMIT 1", [(None,)]),
        ("SELECT max(a), ts, s FROM t", [(9, START + timedelta(seconds=9), "x9")]),
        ("SELECT _tp_time FROM t LIMIT 1", [(START,)]),
        ("SELECT ts + 1s FROM t LIMIT 1", [(START + timedelta(seconds=1),)]),
        ("SELECT count(*) FROM t GROUP BY ta HAVING count(*) > 1 ORDER BY count(*)", [(10,)]),
        ("SELECT x.m FROM (SELECT max(a) AS m FROM t) x", [(9,)]),
        ("SELECT t1.a, t2.a FROM t t1 JOIN t t2 ON t1.ts = t2.ts ORDER BY t1.a LIMIT 1", [(0, 0)]),
        ("SELECT count(a) FROM t WHERE s MATCH '^x[0-3]'", [(4,)]),
        ("SELECT timetruncate(ts, 1m) FROM t LIMIT 1", [(START,)]),
        ("SELECT a + 1 FROM t LIMIT 1", [(1.0,)]),
        ("SELECT ifnull(NULL, a) FROM t LIMIT 1", [(0,)]),
    ],
)
def test_results(con: duckdb.DuckDBPyConnection, text: str, rows: list[tuple[object, ...]]) -> None:
    assert run(con, text) == rows


def test_star_leaves_out_tbname_and_rows_come_in_time_order(con: duckdb.DuckDBPyConnection) -> None:
    found = run(con, "SELECT * FROM t")
    assert len(found[0]) == 4
    assert [r[1] for r in found] == list(range(10))


def test_a_text_is_a_time_in_the_sessions_zone(con: duckdb.DuckDBPyConnection) -> None:
    assert run(con, "SELECT count(*) FROM t WHERE ts >= '2023-11-15 08:00:05'", "Asia/Shanghai") == [(5,)]
    assert run(con, "SELECT count(*) FROM t WHERE ts >= '2023-11-15T00:00:05Z'", "Asia/Shanghai") == [(5,)]


@pytest.mark.parametrize("text", ["SELECT last(*)", "SELECT apercentile(a, 101) FROM t", "SELECT a FROM t WHERE ts > 'yesterday'"])
def test_refusals(con: duckdb.DuckDBPyConnection, text: str) -> None:
    with pytest.raises(SqlError):
        run(con, text, tables="FROM" in text)
