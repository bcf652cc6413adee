"""WITH: names are written out as subqueries, within limits."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.parsers.common_tables import MAX_WRITTEN
from penstock.sql.parsers.expression import MAX_DEPTH
from penstock.sql.parsers.query import QueryParser
from tests.unit.sql.reading import read, refusal, refused


def query(text: str) -> exp.Query:
    found: exp.Query = read(QueryParser, text, QueryParser.query)
    return found


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("WITH x AS (SELECT a FROM t) SELECT * FROM x", "SELECT * FROM (SELECT a FROM t) AS x"),
        (
            "WITH x AS (SELECT a FROM t), y AS (SELECT a FROM x) SELECT * FROM y, X z",
            "SELECT * FROM (SELECT a FROM (SELECT a FROM t) AS x) AS y, (SELECT a FROM t) AS z",
        ),
        (
            "WITH x (p, q) AS (SELECT a, b FROM t) SELECT * FROM x JOIN x AS y (r, s) ON p = r",
            "SELECT * FROM (SELECT a, b FROM t) AS x(p, q)"
            " JOIN (SELECT a, b FROM t) AS y(r, s) ON p = r",
        ),
        ("WITH t AS (SELECT a FROM t) SELECT * FROM t", "SELECT * FROM (SELECT a FROM t) AS t"),
        ("WITH t AS (SELECT 1 AS a) SELECT * FROM d.t", "SELECT * FROM d.t"),
        (
            "SELECT a FROM t WHERE a IN (WITH x AS (SELECT b FROM u) SELECT b FROM x) AND x.c",
            "SELECT a FROM t WHERE a IN (SELECT b FROM (SELECT b FROM u) AS x) AND x.c",
        ),
        (
            "SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM x) AS q, x",
            "SELECT * FROM (SELECT a FROM (SELECT 1 AS a) AS x) AS q, x",
        ),
        (
            "WITH x AS (SELECT a FROM t) SELECT * FROM x UNION SELECT * FROM x",
            "SELECT * FROM (SELECT a FROM t) AS x UNION SELECT * FROM (SELECT a FROM t) AS x",
        ),
        ("WITH recursive AS (SELECT 1 AS a) SELECT a FROM t", "SELECT a FROM t"),
        (
            "WITH x AS (SELECT ts FROM t) SELECT count(*) FROM tumble(x, ts, 1s)",
            "SELECT count(*) FROM (SELECT ts FROM t) AS x INTERVAL(1s)",
        ),
    ],
)
def test_a_name_is_its_query(text: str, canonical: str) -> None:
    assert to_sql(query(text)) == canonical


def test_whoever_asks_for_tables_meets_those_inside_and_never_the_name() -> None:
    found = query("WITH m AS (SELECT * FROM secrets), n AS (SELECT * FROM m) SELECT * FROM n, d.m")
    named = [(table.db, table.name) for table in found.find_all(exp.Table)]
    assert sorted(named) == [("", "secrets"), ("d", "m")]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("WITH x AS (SELECT 1), x AS (SELECT 2) SELECT 3", 23, "WITH has x twice"),
        ("WITH RECURSIVE x AS (SELECT 1) SELECT 2", 6, "a query cannot read its own result"),
        ("WITH x AS SELECT 1", 11, 'expected "("'),
        ("WITH x AS (SELECT 1)", 21, "expected SELECT, but the statement ends"),
        ("WITH x AS (SELECT 1) DELETE FROM t", 22, "expected SELECT"),
    ],
)
def test_a_fault_is_refused_at_its_place(text: str, column: int, message: str) -> None:
    code, line, found, words = refused(lambda: query(text))
    assert (code, line, found) == ("E_SYNTAX", 1, column)
    assert words.startswith(message)


def test_names_of_names_nest_no_deeper_than_text_does() -> None:
    def chain(length: int) -> str:
        steps = ["q0 AS (SELECT a FROM t)"]
        steps += [f"q{n} AS (SELECT a FROM q{n - 1})" for n in range(1, length)]
        return f"WITH {', '.join(steps)} SELECT a FROM q{length - 1}"

    assert "FROM (SELECT a FROM t) AS q0" in to_sql(query(chain(MAX_DEPTH - 2)))
    assert (
        refusal(lambda: query(chain(MAX_DEPTH - 1))).message
        == f"nested deeper than {MAX_DEPTH} levels"
    )


def test_names_that_double_have_an_end() -> None:
    steps = ["q0 AS (SELECT a FROM t)"]
    steps += [f"q{n} AS (SELECT a FROM q{n - 1}, q{n - 1} AS r)" for n in range(1, 30)]
    error = refusal(lambda: query(f"WITH {', '.join(steps)} SELECT a FROM q29"))
    assert error.message == "the queries of WITH are used too often"
    assert MAX_WRITTEN < 2**29
