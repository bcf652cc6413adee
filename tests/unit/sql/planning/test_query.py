"""The shape of the query: one SELECT over one table."""

from __future__ import annotations

import pytest

from penstock.sql.planning.query import check_shape, find_source
from tests.unit.sql.memory_view import MemoryView
from tests.unit.sql.planning.binding import refused_at, select_of, statement
from tests.unit.sql.reading import refusal

VIEW = MemoryView(
    "CREATE STABLE Met (ts TIMESTAMP, a INT) TAGS (t INT)",
    "CREATE TABLE D1 USING met TAGS (1)",
    databases={"other": "us"},
)


def test_one_select_over_one_table_is_taken() -> None:
    made = statement("a FROM t WHERE b PARTITION BY c INTERVAL(1s) FILL(PREV)")
    assert check_shape(made) is made.query


@pytest.mark.parametrize(
    ("tail", "code", "at"),
    [
        ("1 FROM t UNION SELECT 2 FROM u", "E_UNSUPPORTED_QUERY", "SELECT 2 FRO"),
        ("1", "E_UNSUPPORTED_QUERY", "SELECT 1"),
        ("1 FROM (SELECT 2 FROM u)", "E_UNSUPPORTED_QUERY", "(SELECT 2 FR"),
        ("1 FROM t, u", "E_UNSUPPORTED_QUERY", "u"),
        ("1 FROM t JOIN u ON a", "E_UNSUPPORTED_QUERY", "u ON a"),
        ("1 FROM t WHERE EXISTS (SELECT 2 FROM u)", "E_UNSUPPORTED_QUERY", "EXISTS (SELE"),
        ("(SELECT 2 FROM u) FROM t", "E_UNSUPPORTED_QUERY", "(SELECT 2 FR"),
        ("1 FROM t GROUP BY a, b", "E_GROUP_BY", "a, b"),
        ("1 FROM t HAVING a > 1", "E_HAVING", "a > 1"),
        ("1 FROM t ORDER BY a", "E_UNSUPPORTED_QUERY", "a"),
        ("DISTINCT a FROM t", "E_UNSUPPORTED_QUERY", "SELECT DISTI"),
        ("1 FROM t LIMIT 5", "E_UNSUPPORTED_QUERY", "5"),
        ("1 FROM t SLIMIT 5", "E_UNSUPPORTED_QUERY", "5"),
        ("1 FROM t SOFFSET 5", "E_UNSUPPORTED_QUERY", "5"),
        ("1 FROM t OPEN WINDOWS", "E_UNSUPPORTED_QUERY", "SELECT 1 FRO"),
    ],
)
def test_what_no_stream_can_have_is_refused_where_it_stands(tail: str, code: str, at: str) -> None:
    made = statement(tail)
    assert refused_at(made, lambda: check_shape(made)) == (code, at)


def test_a_query_in_parentheses_is_told_to_be_bare() -> None:
    made = statement("1 FROM t", "")
    wrapped = type(made)(
        stream=made.stream, target=made.target, query=made.query.subquery(), source=made.source
    )
    assert "parentheses" in refusal(lambda: check_shape(wrapped)).message


def test_grouping_is_told_its_own_clause() -> None:
    error = refusal(lambda: check_shape(statement("1 FROM t GROUP BY a, b + 1")))
    assert "PARTITION BY a, b + 1" in error.hint


@pytest.mark.parametrize(
    ("tail", "database", "name", "qualifiers"),
    [
        ("1 FROM met", "db", "Met", {"Met", "met"}),
        ("1 FROM db.MET", None, "Met", {"Met", "MET"}),
        ("1 FROM met x", "db", "Met", {"x"}),
        ("1 FROM d1", "db", "Met", {"Met", "D1", "d1"}),
    ],
)
def test_the_source_has_names_to_stand_before_columns(
    tail: str, database: str | None, name: str, qualifiers: set[str]
) -> None:
    made = statement(tail)
    table, names = find_source(made, VIEW, select_of(made), database)
    assert (table.name, set(names)) == (name, qualifiers)


@pytest.mark.parametrize(
    ("tail", "database", "code", "at"),
    [
        ("1 FROM met", None, "E_NO_DATABASE", "met"),
        ("1 FROM no.met", "db", "E_DATABASE_NOT_EXIST", "no.met"),
        ("1 FROM nosuch", "db", "E_TABLE_NOT_EXIST", "nosuch"),
        ("1 FROM other.met", "db", "E_TABLE_NOT_EXIST", "other.met"),
        ("1 FROM information_schema.ins_tables", "db", "E_UNSUPPORTED_QUERY", "information_"),
    ],
)
def test_a_source_that_is_not_there_is_refused(
    tail: str, database: str | None, code: str, at: str
) -> None:
    made = statement(tail)
    call = lambda: find_source(made, VIEW, select_of(made), database)  # noqa: E731
    assert refused_at(made, call) == (code, at)


@pytest.mark.parametrize(
    ("name", "hint"), [("mett", 'did you mean "Met"?'), ("xyz", "SHOW STABLES and SHOW TABLES")]
)
def test_a_source_that_is_not_there_has_the_nearest_name(name: str, hint: str) -> None:
    made = statement(f"1 FROM {name}")
    error = refusal(lambda: find_source(made, VIEW, select_of(made), "db"))
    assert error.hint.startswith(hint)
