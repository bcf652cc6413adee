"""DuckDB's complaints in the dialect's words."""

from __future__ import annotations

import duckdb
import pytest

from penstock.sql.parser import parse_one
from penstock.sql.statements import Query
from services.store.engine_errors import explain_call


def statement(sql: str) -> Query:
    found = parse_one(sql)
    assert isinstance(found, Query)
    return found


@pytest.mark.parametrize(
    ("sql", "text", "code", "column", "message"),
    [
        (
            "SELECT a, Year(s) FROM t",
            "No function matches the given name and argument types 'year(VARCHAR, TIMESTAMP_MS)'.",
            "E_TYPE",
            11,
            "year() does not take (VARCHAR, TIMESTAMP)",
        ),
        (
            "SELECT epoch('x') FROM t",
            'Could not choose a best candidate function for the function call "epoch(STRING_LITERAL'
            ', UTINYINT, HUGEINT)".',
            "E_TYPE",
            8,
            "epoch() does not take (VARCHAR, TINYINT UNSIGNED, HUGEINT)",
        ),
        (
            "SELECT date_trunc('eon', ts) FROM t",
            'extract specifier "eon" not recognized',
            "E_FUNCTION_ARGUMENT",
            19,
            "'eon' is no unit of time",
        ),
        (
            "SELECT n FROM (SELECT 1 AS n) WHERE n = (SELECT n FROM t)",
            "More than one row returned by a subquery used as an expression",
            "E_QUERY",
            41,
            "a subquery that stands for a value gives more than one row",
        ),
        (
            "SELECT quantile_cont(n, 2) FROM t",
            "QUANTILE can only take parameters in the range [-1, 1]",
            "E_FUNCTION_ARGUMENT",
            8,
            "a quantile is a share from 0 to 1",
        ),
    ],
)
def test_a_complaint_gets_words_and_a_place(
    sql: str, text: str, code: str, column: int, message: str
) -> None:
    found = explain_call(duckdb.BinderException(f"Binder Error: {text}\nmore"), statement(sql))
    assert found is not None
    assert (found.code, found.line, found.column, found.message) == (code, 1, column, message)
    assert found.hint


def test_of_two_subqueries_nobody_knows_which_it_was() -> None:
    sql = "SELECT n FROM t WHERE n = (SELECT n FROM t) OR n = (SELECT m FROM t)"
    found = explain_call(
        duckdb.InvalidInputException("More than one row returned by a subquery"), statement(sql)
    )
    assert found is not None
    assert (found.line, found.column) == (1, 1)


@pytest.mark.parametrize(
    "text", ["No function matches the given name and argument types 'other(INT)'", "anything else"]
)
def test_what_is_not_known_is_left(text: str) -> None:
    assert explain_call(duckdb.BinderException(text), statement("SELECT year(s) FROM t")) is None
