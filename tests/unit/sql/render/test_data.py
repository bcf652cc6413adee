"""Text of statements that write, read and describe rows, and of literal values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.compile.expression import parse_expression
from penstock.sql.parsers.query import QueryParser
from penstock.sql.plan import Duration
from penstock.sql.render import data as family
from penstock.sql.render.parts import name, render, value
from tests.unit.sql.reading import read

T = st.Name("t")
SECOND = Duration(1, "s")


def query(text: str) -> st.Query:
    return st.Query(query=read(QueryParser, text, QueryParser.query))


STATEMENTS: list[tuple[st.Statement, str]] = [
    (
        st.Insert(parts=(st.InsertPart(T, ((1, "x"), (2, None))),)),
        "INSERT INTO t VALUES (1, 'x') (2, NULL)",
    ),
    (
        st.Insert(
            parts=(
                st.InsertPart(st.Name("c", "d"), ((1,),), ("a b",), st.Name("s"), ("t1",), (True,)),
                st.InsertPart(T, ((2,),)),
            )
        ),
        "INSERT INTO d.c USING s (t1) TAGS (TRUE) (`a b`) VALUES (1) t VALUES (2)",
    ),
    (
        st.InsertSelect(table=T, select=query("SELECT a FROM u"), columns=("a", "select")),
        "INSERT INTO t (a, `select`) SELECT a FROM u",
    ),
    (
        st.InsertSelect(table=T, select=query("SELECT a FROM u LIMIT 1")),
        "INSERT INTO t SELECT a FROM u LIMIT 1",
    ),
    (st.Delete(table=T), "DELETE FROM t"),
    (st.Delete(table=T, where=parse_expression("ts < 5")), "DELETE FROM t WHERE ts < 5"),
    (query("SELECT a FROM t"), "SELECT a FROM t"),
    (st.Describe(table=st.Name("t", "d")), "DESCRIBE d.t"),
    (st.Show(what="TABLES"), "SHOW TABLES"),
    (st.Show(what="STREAMS", database="a b", like="x%"), "SHOW `a b`.STREAMS LIKE 'x%'"),
    (st.Show(what="CHILD TABLES", database="d"), "SHOW d.CHILD TABLES"),
    (st.ShowTags(table=st.Name("c", "d")), "SHOW TAGS FROM d.c"),
    (st.ShowTableTags(stable=T), "SHOW TABLE TAGS FROM t"),
    (
        st.ShowTableTags(stable=T, columns=(st.Name("tbname"), st.Name("a b"))),
        "SHOW TABLE TAGS tbname, `a b` FROM t",
    ),
    (st.ShowDistribution(table=st.Name("c", "d")), "SHOW TABLE DISTRIBUTED d.c"),
    (st.ShowIndexes(table=T), "SHOW INDEXES FROM t"),
    (st.ShowCreate(kind="external stream", name=T), "SHOW CREATE EXTERNAL STREAM t"),
]


@pytest.mark.parametrize(("statement", "text"), STATEMENTS, ids=[s[1] for s in STATEMENTS])
def test_a_statement_has_one_text_that_is_read_back(statement: st.Statement, text: str) -> None:
    assert render(statement) == text
    assert parse_one(text) == statement


def test_every_statement_about_rows_has_a_case() -> None:
    made = {type(statement) for statement, _ in STATEMENTS}
    own = {k for k, f in render.registry.items() if f.__module__ == family.__name__}
    assert own == made


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (0, "0"),
        (-1.5, "-1.5"),
        ("it's", r"'it\'s'"),
        (st.RelativeTime("now"), "now"),
        (st.RelativeTime("today", ((1, SECOND), (-1, SECOND))), "today + 1s - 1s"),
        (st.RelativeTime("2024-01-01", ((1, SECOND),), True), "'2024-01-01' + 1s"),
        (st.RelativeTime(5, ((1, SECOND),)), "5 + 1s"),
        (Decimal("0.12345678901234567"), "0.12345678901234567"),
        (Decimal("1.5"), "1.500000000000000"),
        (Decimal("-7"), "-7.000000000000000"),
    ],
)
def test_a_value_is_written(item: Any, text: str) -> None:
    assert value(item)[: len(text)] == text
    if isinstance(item, Decimal):
        (row,) = parse_one(f"INSERT INTO t VALUES ({value(item)})").parts[0].rows  # type: ignore[attr-defined]
        assert row == (item,) and isinstance(row[0], Decimal)


def test_a_name_is_quoted_where_it_must_be() -> None:
    assert name(st.Name("t")) == "t"
    assert name(st.Name("from", "a.b")) == "`a.b`.`from`"


def test_what_is_no_statement_has_no_text() -> None:
    with pytest.raises(TypeError, match="no text for Statement"):
        render(st.Statement())
