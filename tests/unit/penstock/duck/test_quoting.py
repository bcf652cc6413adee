"""Names and texts as DuckDB's identifiers and strings."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.duck.quoting import impossible, literal, quote
from penstock.errors import SqlSemanticError
from tests.nightly import drawn

texts = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize(
    ("text", "name", "string"),
    [
        ("a", '"a"', "'a'"),
        ('a"b', '"a""b"', "'a\"b'"),
        ("it's", '"it\'s"', "'it''s'"),
        ("'; DROP TABLE t; --", '"\'; DROP TABLE t; --"', "'''; DROP TABLE t; --'"),
        ("\\'", '"\\\'"', "'\\'''"),
    ],
)
def test_quotes_are_doubled(text: str, name: str, string: str) -> None:
    assert (quote(text), literal(text)) == (name, string)


@settings(max_examples=drawn(50), deadline=None)
@given(texts, texts.filter(bool))
def test_duckdb_reads_back_what_was_written(text: str, name: str) -> None:
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {literal(text)} AS {quote(name)}")
        assert found.fetchone() == (text,)
        assert [d[0] for d in found.description or ()] == [name]


@pytest.mark.parametrize("text", ["a\0b", "\ud800", 5, None])
def test_what_no_query_can_hold_is_refused(text: object) -> None:
    for write in (quote, literal):
        with pytest.raises(SqlSemanticError) as caught:
            write(text)  # type: ignore[arg-type]
        assert caught.value.code == "E_QUERY"


def test_what_is_not_possible_is_said_with_a_way_out() -> None:
    error = impossible("OVER")
    assert (error.code, error.message) == ("E_QUERY", "OVER is not possible in a query")
    assert "docs/sql-rows.md" in error.hint
