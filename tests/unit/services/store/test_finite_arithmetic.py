"""Arithmetic of a query as DuckDB gets it: finite numbers or NULL, however deep it is nested."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from penstock.sql.parser import parse_one
from penstock.sql.relational import Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.binding import Context
from services.store.translate import query
from tests.installing import install
from tests.relations import placed

COLUMNS = {"ts": "TIMESTAMP", "x": "DOUBLE", "f": "FLOAT", "n": "INT"}
TABLE = TableColumns(tuple(Output(name, ColumnType(kind)) for name, kind in COLUMNS.items()))
INFINITY = "(1e308 * n * 10)"


def translate(expression: str) -> tuple[str, Context]:
    context = Context("UTC", relations=frozenset(("t",)))
    statement = parse_one(f"SELECT {expression} AS found FROM t")
    assert isinstance(statement, Query)
    bound = bind(statement.query, QueryScope(statement.source, lambda _: TABLE))
    return query(placed(bound, time="ts"), context), context


def value(expression: str) -> Any:
    text, context = translate(expression)
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 1 AS ts, 'nan'::DOUBLE AS x, 3::FLOAT AS f, 74 AS n")
    install(con, context.needed.values(), parse_one("SELECT 1").source)
    (found,) = con.sql(text).fetchall()
    con.close()
    return found[0]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("n + 1", 75.0),
        ("x + 1", None),
        ("x % 5", None),
        (INFINITY, None),
        (f"1 / {INFINITY}", None),
        (f"coalesce({INFINITY}, 7)", 7.0),
        (f"{INFINITY} > 0", None),
        (f"abs(n + {INFINITY}) IS NULL", True),
        ("n / f", 74 / 3),
        ("f / n", 3 / 74),
        ("abs(n - (n * 2)) / (f + 1)", 18.5),
    ],
)
def test_what_is_no_finite_number_is_null(expression: str, wanted: Any) -> None:
    assert value(expression) == wanted


def test_a_chain_is_checked_once() -> None:
    text, _ = translate(" + ".join(["n"] * 400))
    assert text.count("finite") == 1
    assert value(" + ".join(["n"] * 400)) == 29_600.0


def test_nested_arithmetic_does_not_double() -> None:
    nested = "n"
    for _ in range(16):
        nested = f"(1 - ({nested} * 2))"  # of v it is 1 - 2v
    text, _ = translate(nested)
    assert len(text) < 2_000
    assert value(nested) == 4_827_819.0
