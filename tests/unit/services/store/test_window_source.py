"""The rows that windows are cut from: what of a WHERE DuckDB is given."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from penstock.sql.functions.base import BIGINT, DOUBLE, TIMESTAMP
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column
from penstock.sql.relational import (
    Derived,
    Output,
    QueryScope,
    SelectPlan,
    StreamSource,
    TableColumns,
    bind_stream,
)
from penstock.sql.statements import Query
from services.store.row_origins import SubqueryRows
from services.store.window_source import WindowSource
from tests.unit.sql.memory_view import MemoryView

COLUMNS = (
    Column("ts", TIMESTAMP),
    Column("n", BIGINT),
    Column('odd "name', BIGINT),
    Column("d", DOUBLE),
)
ROWS = """SELECT 'a' AS tbname, make_timestamp_ms(n * 1000) AS ts, n, n AS "odd ""name", n / 2 AS d
    FROM (VALUES (1::BIGINT), (2), (3), (4)) AS made (n)"""


def rows(condition: str, *, given: str = "t") -> tuple[str, bool]:
    """FROM and WHERE of a window select with *condition*, and whether DuckDB decides."""
    text = f"SELECT count(*) FROM {given} {condition} PARTITION BY n + 1 AS k INTERVAL(1s)"
    statement = parse_one(text)
    assert isinstance(statement, Query) and isinstance(statement.query, exp.Select)
    select = statement.query
    origin = SubqueryRows(Derived(SelectPlan(()), ""), "t", ROWS)
    source = WindowSource(select, origin, MemoryView(), "db", COLUMNS, "ms", ())
    table = TableColumns(tuple(Output(c.name, c.type) for c in COLUMNS), database="db")
    relation = StreamSource(select.args["from_"].this.alias_or_name, table)
    bound = bind_stream(select, QueryScope(statement.source, lambda _: table), relation)
    condition, whole = source.condition(bound.select, "UTC")
    return source.read(ROWS, condition), whole


def kept(text: str) -> list[int]:
    # a connection of its own: the module's may hold an unfinished result of another test
    return [n for (n,) in duckdb.connect().execute(f"SELECT n {text} ORDER BY n").fetchall()]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("", [1, 2, 3, 4]),
        ("WHERE N > 2", [3, 4]),
        ("WHERE t.N BETWEEN 2 AND 3", [2, 3]),
        ('WHERE `odd "name` = 4', [4]),
        ("WHERE _c0 >= '1970-01-01 00:00:02' AND n < 4", [2, 3]),
        ("WHERE db.t.ts >= 3000", [3, 4]),
        ("WHERE tbname = 'b'", []),
    ],
)
def test_duckdb_decides_on_plain_conditions(condition: str, wanted: list[int]) -> None:
    text, whole = rows(condition)
    assert whole
    assert kept(text) == wanted


def test_a_table_is_known_by_its_alias() -> None:
    assert kept(rows("WHERE x.n = 1", given="t AS x")[0]) == [1]


def test_reals_are_narrowed_by_duckdb_and_decided_by_kernels() -> None:
    text, whole = rows("WHERE d > 1")
    assert not whole
    assert kept(text) == [3, 4]


@pytest.mark.parametrize("condition", ["WHERE n + 1 > 2", "WHERE k > 2", "WHERE n > 1 OR n < 0"])
def test_other_conditions_are_the_kernels(condition: str) -> None:
    text, whole = rows(condition)
    assert not whole
    assert kept(text) == [1, 2, 3, 4]
