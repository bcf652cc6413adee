"""Conversions by type, as DuckDB then computes them."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.sql.parser import parse_one
from penstock.sql.relational import Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.binding import Context
from services.store.translate import query
from tests.installing import install
from tests.relations import placed

TYPES = {
    "ts": ColumnType("TIMESTAMP"),
    "t2": ColumnType("TIMESTAMP"),
    "v": ColumnType("INT"),
    "big": ColumnType("BIGINT"),
    "w": ColumnType("VARCHAR", length=16),
    "flag": ColumnType("BOOL"),
}
CONTEXT = Context("Asia/Shanghai", relations=frozenset(("t",)))
#: 2024-01-31 04:00 and one second later
START = 1_706_673_600_000


def run(con: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return con.sql(text(sql, con=con)).to_arrow_table()


def table(precision: str = "ms") -> TableColumns:
    return TableColumns(tuple(Output(n, k, precision) for n, k in TYPES.items()), precision)


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET TimeZone='UTC'")
    rows = {
        "tbname": ["t", "t"],
        "ts": pa.array([START, START + 1_000], pa.timestamp("ms")),
        "t2": pa.array([START - 500, None], pa.timestamp("ms")),
        "v": pa.array([1, 2], pa.int32()),
        "big": pa.array([2**63 - 1, 2**63 - 1], pa.int64()),
        "w": ["1.5", "x"],
        "flag": [True, False],
    }
    made.register("t", pa.table(rows))
    return made


def text(sql: str, precision: str = "ms", con: duckdb.DuckDBPyConnection | None = None) -> str:
    """Translate a query; let *con* have what it needs."""
    statement = parse_one(sql)
    assert isinstance(statement, Query)
    scope = QueryScope(statement.source, lambda _: table(precision), "Asia/Shanghai")
    context = Context(CONTEXT.timezone, relations=CONTEXT.relations)
    translated = query(placed(bind(statement.query, scope), time="ts"), context)
    if con is not None:
        install(con, context.needed.values(), statement.source)
    return translated


def answer(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, str]:
    """The first value and DuckDB's type of it."""
    found = run(con, sql)
    return found.column(0)[0].as_py(), str(found.schema.field(0).type)


@pytest.mark.parametrize(
    ("item", "wanted", "kind"),
    [
        ("sum(v)", 3, "int64"),
        ("sum(v) / 2", 1.5, "double"),
        ("sum(big)", None, "int64"),  # does not fit: NULL, as in a stream
        ("count(DISTINCT v)", 2, "int64"),
        ("spread(ts)", 1000.0, "double"),
        ("spread(ts + 1)", 1000.0, "double"),
        ("sum(DISTINCT flag)", 1, "int64"),
        ("sum(DISTINCT big)", 2**63 - 1, "int64"),
        ("percentile(DISTINCT v, 100)", 2.0, "double"),
        ("max(DISTINCT v)", 2, "int32"),
        ("avg(v)", 1.5, "double"),
        ("1.5", 1.5, "double"),
        (".5", 0.5, "double"),
        ("18446744073709551616", 18446744073709551616.0, "double"),
        ("v + 1", 2.0, "double"),
        ("v % 2", 1.0, "double"),
        ("v * 1.1", 1.1, "double"),
        ("ts - t2", 500, "int64"),
        ("(ts - t2) / 2", 250.0, "double"),
        ("1h + 1m", 3_660_000, "int64"),
        ("1s", 1_000, "int64"),
        ("v = '1'", True, "bool"),
        ("v < w", True, "bool"),
        ("v IN ('1', '7')", True, "bool"),
        ("flag = 'true'", True, "bool"),
        ("ts = '2024-01-31 12:00:00'", True, "bool"),
        ("ts = '2024-01-31T04:00:00Z'", True, "bool"),
        ("'2024-01-31 12:00:00' <= ts", True, "bool"),
        (f"ts = {START}", True, "bool"),
        ("ts > -1000", True, "bool"),
        ("ts BETWEEN 0 AND '2024-02-01'", True, "bool"),
        (f"ts IN ({START}, 5)", True, "bool"),
        ("ts IN ('2024-01-31 12:00:00', '2024-01-31 13:00:00')", True, "bool"),
        (f"ts + 1000 = {START + 1000}", True, "bool"),
        (f"1000 + ts = {START + 1000}", True, "bool"),
        (f"ts - 1000 = {START - 1000}", True, "bool"),
        (f"ts + 1m = {START + 60_000}", True, "bool"),
        (f"ts + (1h + 1m) = {START + 3_660_000}", True, "bool"),
        (f"ts > {START} + v - 2", True, "bool"),
        ("ts - 0.5", START - 0.5, "double"),
    ],
)
def test_values_have_the_types_of_the_dialect(
    con: duckdb.DuckDBPyConnection, item: str, wanted: Any, kind: str
) -> None:
    assert answer(con, f"SELECT {item} AS x FROM t ORDER BY 1 LIMIT 1") == (wanted, kind) or (
        answer(con, f"SELECT {item} AS x FROM t") == (wanted, kind)
    )


def test_a_moved_time_has_the_precision_of_the_database(con: duckdb.DuckDBPyConnection) -> None:
    found = run(con, "SELECT ts + 1000 AS a, max(t2) AS b FROM t GROUP BY ts")
    assert [str(f.type) for f in found.schema] == ["timestamp[ms]"] * 2


@pytest.mark.parametrize(("precision", "function"), [("us", "epoch_us"), ("ns", "epoch_ns")])
def test_ticks_are_of_the_precision_of_the_database(precision: str, function: str) -> None:
    made = text("SELECT ts - t2 AS x FROM t WHERE ts > '2024-01-31'", precision)
    assert made.count(f"{function}(") == 2
    assert ("make_timestamp_ns(" if precision == "ns" else "make_timestamp(") in made


def test_a_chain_of_hundreds_of_operators_needs_no_deep_stack() -> None:
    for operator in ("+", "-", "*"):
        assert text("SELECT " + operator.join(["v"] * 401) + " AS x FROM t")
    assert text("SELECT ts" + " + 1" * 400 + " AS x FROM t LIMIT 1")


def test_a_subquery_with_an_aggregate_is_grouped_by_its_partition(
    con: duckdb.DuckDBPyConnection,
) -> None:
    sql = "SELECT max(n) AS m FROM (SELECT sum(v) AS n FROM t PARTITION BY v)"
    found = con.execute(text(sql, con=con))
    assert found.fetchall() == [(2,)]
    assert con.execute(text("SELECT median(v) AS m FROM t")).fetchall() == [(1.5,)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT DISTINCT abs(v) AS x FROM t ORDER BY abs(v) DESC", [(2,), (1,)]),
        ("SELECT DISTINCT v + 1 FROM t ORDER BY v + 1", [(2.0,), (3.0,)]),
        ("SELECT v + 1 AS x, count(*) FROM t GROUP BY v + 1 ORDER BY v + 1", [(2.0, 1), (3.0, 1)]),
        ("SELECT v % 2 AS x, sum(v) FROM t GROUP BY 1 ORDER BY x", [(0.0, 2), (1.0, 1)]),
        ("SELECT floor(v), count(*) FROM t GROUP BY floor(v) ORDER BY floor(v)", [(1, 1), (2, 1)]),
        ("SELECT v FROM t UNION SELECT v + 1 FROM t ORDER BY 1", [(1.0,), (2.0,), (3.0,)]),
        ("SELECT count(*) FROM t HAVING sum(v) > 2.5", [(2,)]),
        ("SELECT v FROM t WHERE v > (SELECT avg(v) FROM t)", [(2,)]),
        ("SELECT v FROM t WHERE v IN (SELECT max(v) FROM t)", [(2,)]),
        ("SELECT max(v), w FROM t", [(2, "x")]),
        ("SELECT CASE WHEN v = 1 THEN 1 ELSE 2.5 END AS x FROM t ORDER BY v", [(1.0,), (2.5,)]),
    ],
)
def test_what_is_given_a_type_can_be_grouped_and_ordered_by(
    con: duckdb.DuckDBPyConnection, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert con.execute(text(sql, con=con)).fetchall() == rows


def test_dates_are_times(con: duckdb.DuckDBPyConnection) -> None:
    kinds = [f.type for f in run(con, "SELECT last_day(ts) AS a, today() AS b FROM t").schema]
    assert kinds == [pa.timestamp("ms")] * 2
