"""Expressions of a SELECT against the same in a stream: what agrees must go on agreeing, and what
does not is listed here.
"""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import duckdb
import polars as pl
import pytest

from penstock.errors import SqlError
from penstock.sql.parser import parse_one
from penstock.sql.relational import Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.binding import Context
from services.store.translate import query
from tests.installing import install
from tests.relations import placed
from tests.unit.sql.test_compile import COLUMNS, FRAME, VALUES

CONTEXT = Context("UTC", relations=frozenset(("t",)))
#: `_i` numbers the rows
TABLE = TableColumns(
    tuple(Output(n, t) for n, t in {**COLUMNS, "_i": ColumnType("INT UNSIGNED")}.items())
)
#: DuckDB has no such function, or computes otherwise (docs/sql-functions.md, "Streams and queries");
#: `now` is another moment in a query
DIFFERENT = (
    "length(v)",
    "now",
    "today",
)
SAME = [(sql, wanted) for sql, _, wanted in VALUES if not any(part in sql for part in DIFFERENT)]


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(
        "SET error_on_division_by_zero=false; SET ieee_floating_point_ops=false; SET TimeZone='UTC'"
    )
    made.register(
        "t",
        FRAME.with_columns(pl.col("ts").cast(pl.Datetime("ms")))
        .drop("_now")
        .with_row_index("_i")
        .to_arrow(),
    )
    return made


def translated(sql: str, con: duckdb.DuckDBPyConnection | None = None) -> str:
    """Translate a query; let *con* have what it needs."""
    statement = parse_one(sql)
    assert isinstance(statement, Query)
    context = Context(CONTEXT.timezone, relations=CONTEXT.relations)
    scope = QueryScope(statement.source, lambda _: TABLE)
    text = query(placed(bind(statement.query, scope), time=next(iter(COLUMNS))), context)
    if con is not None:
        install(con, context.needed.values(), statement.source)
    return text


@pytest.mark.parametrize(("sql", "wanted"), SAME, ids=[s for s, _ in SAME])
def test_a_query_computes_as_a_stream(
    con: duckdb.DuckDBPyConnection, sql: str, wanted: list[Any]
) -> None:
    rows = con.execute(
        f"SELECT x FROM ({translated(f'SELECT {sql} AS x, _i FROM t', con)}) ORDER BY _i"
    ).fetchall()
    for (found,), value in zip(rows, wanted, strict=True):
        assert (
            _plain(found) == pytest.approx(_plain(value), rel=1e-9)
            if isinstance(value, float)
            else _plain(found) == _plain(value)
        )


def test_most_examples_agree() -> None:
    assert len(SAME) > 90


def test_names_keep_their_quotes(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute(translated("SELECT max(`ab c`) AS `the top` FROM t", con)).fetchall() == [
        (3,)
    ]


def test_a_star_over_a_subquery_has_its_columns(con: duckdb.DuckDBPyConnection) -> None:
    assert (
        len(
            con.execute(
                translated("SELECT * FROM (SELECT a, tbname FROM t) x ORDER BY a", con)
            ).fetchall()[0]
        )
        == 2
    )


def test_last_of_several_columns(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(translated("SELECT last(a, tbname) FROM t", con))
    assert [c[0] for c in found.description or ()] == ["last(a)", "last(tbname)"]


def test_a_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(SqlError, match="is no time"):
        translated("SELECT a FROM t WHERE ts > 'yesterday'")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return round(value.replace(tzinfo=datetime.UTC).timestamp() * 1000)
    if isinstance(value, decimal.Decimal):
        return float(value)
    return None if isinstance(value, float) and math.isnan(value) else value
