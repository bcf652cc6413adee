"""Text of statements about external streams and materialized views."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.parsers.query import QueryParser
from penstock.sql.render import federation as family
from penstock.sql.render.parts import render
from penstock.types import ColumnType
from tests.unit.sql.reading import read

COLUMNS = (st.ColumnDef("ts", ColumnType("TIMESTAMP")), st.ColumnDef("a", ColumnType("INT")))
QUERY: Any = read(QueryParser, "SELECT a FROM t", QueryParser.query)
STATEMENTS: list[tuple[st.Statement, str]] = [
    (
        st.CreateExternalStream(
            stream=st.Name("s", "d"), settings=(("type", "it's"), ("secure", "true"))
        ),
        r"CREATE EXTERNAL STREAM d.s SETTINGS type = 'it\'s', secure = true",
    ),
    (
        st.CreateExternalStream(
            stream=st.Name("s"),
            settings=(("a b", "5"), ("from", "false")),
            columns=COLUMNS,
            if_not_exists=True,
        ),
        "CREATE EXTERNAL STREAM IF NOT EXISTS s (ts TIMESTAMP, a INT) SETTINGS `a b` = '5',"
        " `from` = false",
    ),
    (
        st.CreateView(view=st.Name("v"), query=QUERY),
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM t",
    ),
    (
        st.CreateView(
            view=st.Name("v", "d"),
            query=QUERY,
            target=st.Name("o"),
            if_not_exists=True,
            on_error="drop",
        ),
        "CREATE MATERIALIZED VIEW IF NOT EXISTS d.v INTO o ON_ERROR DROP AS SELECT a FROM t",
    ),
    (
        st.SteerView(view=st.Name("v"), action="pause"),
        "SYSTEM PAUSE MATERIALIZED VIEW v",
    ),
    (
        st.SteerView(view=st.Name("v"), action="resume"),
        "SYSTEM RESUME MATERIALIZED VIEW v",
    ),
]


@pytest.mark.parametrize(("statement", "text"), STATEMENTS, ids=[s[1] for s in STATEMENTS])
def test_a_statement_has_one_text_that_is_read_back(statement: st.Statement, text: str) -> None:
    assert render(statement) == text
    assert parse_one(text) == statement


def test_every_statement_about_federation_has_a_case() -> None:
    made = {type(statement) for statement, _ in STATEMENTS}
    own = {k for k, f in render.registry.items() if f.__module__ == family.__name__}
    assert own == made
