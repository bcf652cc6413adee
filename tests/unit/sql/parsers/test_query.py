"""SELECT: clauses in their order, joins, names, table functions and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.parsers.expression import MAX_DEPTH
from penstock.sql.parsers.query import QueryParser
from tests.unit.sql.reading import read, refusal, refused


def query(text: str) -> Any:
    return read(QueryParser, text, QueryParser.query)


ALIKE = [
    "SELECT 1",
    "SELECT DISTINCT a, b AS c FROM t",
    "SELECT TAGS a, `tags` FROM t WHERE b",
    "SELECT DISTINCT TAGS * FROM t",
    "SELECT * FROM db.t",
    "SELECT t.*, u.a FROM t, u",
    "SELECT a FROM t AS x INNER JOIN u ON x.a = u.a",
    "SELECT a FROM t LEFT JOIN u USING (a, b)",
    "SELECT a FROM t LEFT OUTER JOIN u ON a = b",
    "SELECT a FROM t LEFT SEMI JOIN u ON a = b",
    "SELECT a FROM t RIGHT ANTI JOIN u ON a = b",
    "SELECT a FROM t LEFT ASOF JOIN u ON a = b",
    "SELECT a FROM t FULL JOIN u ON a = b",
    "SELECT a FROM t CROSS JOIN u",
    "SELECT a FROM (SELECT b FROM t) AS x",
    "SELECT a FROM t OPEN WINDOWS WHERE b",
    "SELECT a FROM t WHERE b PARTITION BY c, d AS e INTERVAL(1s) FILL(PREV)",
    "SELECT a FROM t GROUP BY a, b HAVING c > 1 ORDER BY a DESC NULLS LAST, b NULLS FIRST",
    "SELECT a FROM t ORDER BY a SLIMIT 1 SOFFSET 2 LIMIT 3 OFFSET 4",
    "SELECT a FROM t UNION SELECT b FROM u UNION ALL SELECT c FROM v",
    "(SELECT a FROM t LIMIT 1) UNION ALL (SELECT b FROM u) ORDER BY a LIMIT 2",
]


@pytest.mark.parametrize("text", ALIKE)
def test_canonical_text_is_read_and_written_alike(text: str) -> None:
    assert to_sql(query(text)) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("select all a from t", "SELECT a FROM t"),
        ("SELECT a b FROM t x", "SELECT a AS b FROM t AS x"),
        ("SELECT a AS 'b c' FROM t", "SELECT a AS `b c` FROM t"),
        ("SELECT a `select` FROM t", "SELECT a AS `select` FROM t"),
        ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a"),
        ("SELECT a FROM t LIMIT 5, 10", "SELECT a FROM t LIMIT 10 OFFSET 5"),
        ("SELECT a FROM t JOIN u ON b", "SELECT a FROM t JOIN u ON b"),
        ("SELECT a FROM table(db.t)", "SELECT a FROM db.t"),
        ("SELECT a FROM table", "SELECT a FROM table"),
        (
            "SELECT count(*) FROM tumble(t, 10s)",
            "SELECT count(*) FROM t INTERVAL(10s)",
        ),
        (
            "SELECT count(*) FROM tumble(db.t, ts, 10s) x WHERE a",
            "SELECT count(*) FROM db.t AS x WHERE a INTERVAL(10s)",
        ),
        (
            "SELECT count(*) FROM hop(t, 5s, 10s)",
            "SELECT count(*) FROM t INTERVAL(10s) SLIDING(5s)",
        ),
        (
            "SELECT count(*) FROM session(t, ts, 10s)",
            "SELECT count(*) FROM t SESSION(ts, 10s)",
        ),
        (
            "SELECT count(*) FROM session(t, 10s)",
            "SELECT count(*) FROM t SESSION(_tp_time, 10s)",
        ),
        (
            "SELECT window_start, a FROM tumble(t, 10s) GROUP BY window_start, a",
            "SELECT _wstart AS window_start, a FROM t PARTITION BY a INTERVAL(10s)",
        ),
        (
            "SELECT max(Window_End - window_start) AS w FROM tumble(t, 1s) GROUP BY window_end",
            "SELECT max(_wend - _wstart) AS w FROM t INTERVAL(1s)",
        ),
    ],
)
def test_other_spellings_have_the_canonical_text(text: str, wanted: str) -> None:
    assert to_sql(query(text)) == wanted


def test_an_item_keeps_its_text_and_its_place() -> None:
    items = query("SELECT COUNT( * ) n, a+b FROM t").expressions
    assert [i.meta["sql"] for i in items] == ["COUNT( * )", "a+b"]
    assert (items[0].meta["start"], items[0].meta["end"]) == (7, 19)
    assert items[0].alias == "n"


def test_a_partition_key_keeps_its_text() -> None:
    found = query("SELECT a FROM t PARTITION BY a + 1 k, tbname INTERVAL(1s)")
    keys = found.args["partition_by"].expressions
    assert [k.meta["sql"] for k in keys] == ["a + 1", "tbname"]
    assert [k.alias for k in keys] == ["k", ""]


def test_a_union_joins_from_the_left() -> None:
    found = query("SELECT 1 UNION SELECT 2 UNION ALL SELECT 3")
    assert isinstance(found, exp.Union)
    assert found.args["distinct"] is False
    assert isinstance(found.this, exp.Union) and found.this.args["distinct"] is True


def test_words_before_join_are_no_alias() -> None:
    found = query("SELECT a FROM t LEFT JOIN u ON b")
    assert found.args["from_"].this.alias == ""
    assert query("SELECT a FROM t asof").args["from_"].this.alias == "asof"


def test_open_windows_is_no_alias() -> None:
    found = query("SELECT a FROM t OPEN WINDOWS")
    assert found.args["open_windows"] == exp.Boolean(this=True)
    assert query("SELECT a FROM t open").args["from_"].this.alias == "open"


def test_a_table_function_keeps_the_name_of_its_pseudo_column_only_in_the_list() -> None:
    found = query("SELECT window_start FROM tumble(t, 1s) WHERE window_start > 1")
    (item,) = found.expressions
    assert isinstance(item, exp.Alias) and item.alias == "window_start"
    assert found.args["where"].find(exp.Column).name == "_wstart"
    assert isinstance(found.args["window"], nodes.IntervalWindow)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t EXCEPT SELECT a FROM u INTERSECT ALL SELECT a FROM v UNION ALL SELECT 1",
        "(SELECT a FROM t UNION SELECT a FROM u) INTERSECT SELECT a FROM v EXCEPT ALL (SELECT 1)",
        "SELECT a AS except FROM t AS intersect ORDER BY a",
    ],
)
def test_sets_have_one_text(text: str) -> None:
    assert to_sql(query(text)) == text


def test_intersect_binds_more_tightly() -> None:
    found = query("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4")
    assert isinstance(found, exp.Except) and isinstance(found.this, exp.Union)
    assert isinstance(found.this.expression, exp.Intersect)
    assert to_sql(query("SELECT a except FROM t intersect WHERE b")) == (
        "SELECT a AS except FROM t AS intersect WHERE b"
    )


REFUSED = [
    ("SELECT a FROM t WHERE b WHERE c", 25, "WHERE is given twice"),
    ("SELECT a FROM t GROUP BY a WHERE b", 28, "WHERE stands in the wrong place"),
    ("SELECT a FROM t INTERVAL(1s) INTERVAL(2s)", 30, "INTERVAL is given twice"),
    ("SELECT a FROM t GROUP BY a INTERVAL(2s)", 28, "INTERVAL stands in the wrong place"),
    ("SELECT a FROM t INTERVAL(1s) PARTITION BY b", 30, "PARTITION stands in the wrong place"),
    ("SELECT a FROM t FILL(PREV) FILL(NEXT)", 28, "FILL is given twice"),
    ("SELECT a FROM t HAVING b GROUP BY c", 26, "GROUP stands in the wrong place"),
    ("SELECT a FROM t LEFT u", 22, "expected JOIN, found u"),
    ("SELECT a FROM t JOIN u", 23, "expected ON, but the statement ends"),
    ("SELECT a FROM", 14, "expected a name, but the statement ends"),
    ("SELECT a AS '' FROM t", 13, "a name cannot be empty"),
    ("SELECT a FROM t LIMIT x", 23, "expected a whole number, found x"),
    ("SELECT a FROM t ORDER BY a NULLS a", 34, "expected FIRST or LAST, found a"),
    ("SELECT a FROM tumble(t, 1s, 2s)", 31, "tumble has one length"),
    ("SELECT a FROM hop(t, 1s)", 24, "hop has a step and a size"),
    ("SELECT a FROM tumble(t)", 23, 'expected ",", found )'),
    ("SELECT a FROM tumble(t, 1s) INTERVAL(1s)", 40, "there are two windows"),
    ("SELECT a FROM tumble(t, 1s) PARTITION BY b", 42, "there are two windows"),
    ("SELECT a FROM (t)", 16, "expected SELECT, found t"),
]


@pytest.mark.parametrize(("text", "column", "message"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_fault_is_refused_at_its_place(text: str, column: int, message: str) -> None:
    assert refused(lambda: query(text)) == ("E_SYNTAX", 1, column, message)


def test_a_misplaced_clause_gets_the_order_of_all_as_a_hint() -> None:
    hint = refusal(lambda: query("SELECT a FROM t HAVING b WHERE c")).hint
    assert hint.startswith("the order is SELECT … FROM … WHERE … PARTITION BY")


def test_tables_unions_and_subqueries_have_a_limit() -> None:
    most = "SELECT a FROM t" + ", t" * (MAX_DEPTH - 1)
    assert len(query(most).args["joins"]) == MAX_DEPTH - 1
    error = refusal(lambda: query(most + ", u"))
    assert error.message == f"more than {MAX_DEPTH} tables in one FROM"
    assert error.snippet.split("\n")[0].endswith(", u") and error.column == len(most) + 3
    union = "SELECT 1" + " UNION SELECT 1" * (MAX_DEPTH + 1)
    assert refusal(lambda: query(union)).message == f"more than {MAX_DEPTH} queries in one UNION"
    deep = "(" * 60 + "SELECT 1" + ")" * 60
    assert "nested deeper" in refusal(lambda: query(deep)).message
