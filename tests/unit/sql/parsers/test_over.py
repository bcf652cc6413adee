"""FILTER, OVER and WINDOW: canonical texts, and faults at their places."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.parsers.query import QueryParser
from tests.unit.sql.reading import read, refused


def query(text: str) -> exp.Query:
    found: exp.Query = read(QueryParser, text, QueryParser.query)
    return found


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("sum(a) over()", "sum(a) OVER ()"),
        (
            "rank() over (order by a desc nulls last, b)",
            "rank() OVER (ORDER BY a DESC NULLS LAST, b)",
        ),
        (
            "sum(a) filter (where b > 1) over (partition by c, d)",
            "sum(a) FILTER(WHERE b > 1) OVER (PARTITION BY c, d)",
        ),
        (
            "sum(a) OVER (ORDER BY b ROWS 2 PRECEDING)",
            "sum(a) OVER (ORDER BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        ),
        (
            "sum(a) OVER (RANGE BETWEEN 10s PRECEDING AND UNBOUNDED FOLLOWING)",
            "sum(a) OVER (RANGE BETWEEN 10s PRECEDING AND UNBOUNDED FOLLOWING)",
        ),
        ("count() FILTER (WHERE a)", "count(*) FILTER(WHERE a)"),
        ("1 + lag(a, 1, 0) OVER (ORDER BY b) * 2", "1 + lag(a, 1, 0) OVER (ORDER BY b) * 2"),
    ],
)
def test_a_call_keeps_what_stands_behind_it(text: str, canonical: str) -> None:
    found = to_sql(query(f"SELECT {text} FROM t"))
    assert found == f"SELECT {canonical} FROM t"
    assert to_sql(query(found)) == found


def test_a_named_window_is_written_out_wherever_its_select_uses_it() -> None:
    found = query(
        "SELECT rank() OVER W, (SELECT rank() OVER w FROM u WINDOW w AS ()) x FROM t"
        " WINDOW w AS (PARTITION BY a ORDER BY b ROWS 1 PRECEDING), v AS (ORDER BY c)"
        " QUALIFY sum(a) OVER v > 1 ORDER BY rank() OVER v"
    )
    long = "(PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    assert to_sql(found) == (
        f"SELECT rank() OVER {long}, (SELECT rank() OVER () FROM u) AS x FROM t"
        " QUALIFY sum(a) OVER (ORDER BY c) > 1 ORDER BY rank() OVER (ORDER BY c)"
    )
    both = query("SELECT rank() OVER w FROM t WINDOW w AS () UNION SELECT 1")
    assert to_sql(both) == "SELECT rank() OVER () FROM t UNION SELECT 1"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS filter, a AS window, b AS qualify FROM t AS window",
        "SELECT filter, window, rows FROM t",
    ],
)
def test_the_new_words_are_names_elsewhere(text: str) -> None:
    assert to_sql(query(text)) == text


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("SELECT rank() OVER w FROM t", 20, "there is no window called w"),
        ("SELECT (SELECT rank() OVER w FROM u) FROM t WINDOW w AS ()", 28, "there is no window"),
        ("SELECT a FROM t WINDOW w AS (), w AS ()", 33, "two windows are called w"),
        ("SELECT rank() OVER (ORDER a) FROM t", 27, "expected BY"),
        ("SELECT rank() OVER (ROWS a PRECEDING) FROM t", 26, "expected UNBOUNDED, CURRENT ROW"),
        ("SELECT rank() OVER (ROWS 1) FROM t", 27, "expected PRECEDING or FOLLOWING"),
        ("SELECT rank() OVER (ROWS UNBOUNDED FOLLOWING) FROM t", 36, "a frame begins before"),
        (
            "SELECT sum(a) OVER (ROWS BETWEEN 1 FOLLOWING AND 2 PRECEDING) FROM t",
            52,
            "a frame begins before",
        ),
        ("SELECT sum(a) OVER (ROWS 1 FOLLOWING) FROM t", 28, "a frame begins before it ends"),
        ("SELECT sum(a) FILTER (a > 1) FROM t", 23, "expected WHERE"),
        ("SELECT a FROM t QUALIFY b QUALIFY c", 27, "QUALIFY is given twice"),
        ("SELECT DISTINCT ON (a) b FROM t", 17, "there is no DISTINCT ON"),
    ],
)
def test_a_fault_is_refused_at_its_place(text: str, column: int, message: str) -> None:
    code, line, found, words = refused(lambda: query(text))
    assert (code, line, found) == ("E_SYNTAX", 1, column)
    assert words.startswith(message)
