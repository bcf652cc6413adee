from __future__ import annotations

import pytest

from gateway.postgres.translate import split_statements, without_schemas
from penstock.errors import SqlSyntaxError


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ('SELECT "a b", `c` FROM "t"', "SELECT `a b`, `c` FROM `t`"),
        ("SELECT 'it''s \\ ', E'a\\nb'", "SELECT 'it''s \\\\ ', 'a\\nb'"),
        ("SELECT $x$a'b$x$", "SELECT 'a''b'"),
        ("SELECT $2, $1, $2", "SELECT ?, ?, ?"),
        ("SELECT a::int, 'x'::text", "SELECT CAST(a AS INT), CAST('x' AS VARCHAR)"),
        ("SELECT t.a::varchar(5)", "SELECT CAST(t.a AS VARCHAR(5))"),
        ("SELECT f(a, (b))::float8", "SELECT CAST(f(a, (b)) AS DOUBLE)"),
        ("SELECT (a + b)::double precision, 1", "SELECT CAST((a + b) AS DOUBLE), 1"),
        ("SELECT a::int::text", "SELECT CAST(CAST(a AS INT) AS VARCHAR)"),
        ("SELECT x::timestamp with time zone", "SELECT CAST(x AS TIMESTAMP)"),
        ("SELECT a::odd", "SELECT a::odd"),
        ('SELECT * FROM "penstock"."d"."t"', "SELECT * FROM `d`.`t`"),
        ("SELECT d.t.a FROM d.t", "SELECT d.t.a FROM d.t"),
        ("SELECT /* a /* b */ ; */ 1", "SELECT   1"),
        ("SELECT 1 -- ; no\n", "SELECT 1"),
    ],
)
def test_what_is_written_otherwise(theirs: str, ours: str) -> None:
    (statement,) = split_statements(theirs)
    assert statement.ours == ours


def test_statements_end_at_semicolons_outside_of_quotes() -> None:
    found = split_statements(" SELECT ';' ; ;SELECT \";\"; ")
    assert [s.theirs for s in found] == ["SELECT ';'", 'SELECT ";"']
    assert [s.at for s in found] == [1, 15]


def test_parameters_keep_their_numbers() -> None:
    assert split_statements("SELECT $2, '$9', $10")[0].parameters == (2, 10)


def test_places_are_those_of_the_clients_text() -> None:
    text = "SELECT 1; SELECT 'a\\b', \"x\"::int,\n $12 here"
    statement = split_statements(text)[1]
    line, column = 2, statement.ours.split("\n")[1].index("here") + 1
    assert text[statement.position(line, column) - 1 :] == "here"
    assert statement.position(9, 1) == 0


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "/* a /* */", "SELECT $x$ a $y$"])
def test_what_is_not_closed_is_named_with_its_place(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as wrong:
        split_statements(text)
    assert wrong.value.line == 1 and wrong.value.column


def test_functions_of_catalogs_lose_their_schema_and_strings_do_not() -> None:
    text = "SELECT pg_catalog.f(x), 'pg_catalog.f(x)', pg_catalog.pg_class"
    assert without_schemas(text) == "SELECT f(x), 'pg_catalog.f(x)', pg_catalog.pg_class"
