"""FILTER and OVER in a stream: the first is written as CASE, the second refused."""

from __future__ import annotations

import pytest

from penstock.sql import parse_one
from penstock.sql.dialect import to_sql
from penstock.sql.planning.query import check_shape
from penstock.sql.statements import CreateStream
from tests.unit.sql.reading import refusal


def stream(items: str) -> CreateStream:
    text = f"CREATE STREAM s INTO o AS SELECT _wstart, {items} FROM t INTERVAL(1s)"
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    return statement


@pytest.mark.parametrize(
    ("item", "written"),
    [
        ("count(*) FILTER (WHERE a > 1)", "count(CASE WHEN a > 1 THEN 1 END)"),
        ("sum(b) FILTER (WHERE a)", "sum(CASE WHEN a THEN b END)"),
        ("apercentile(b, 50) FILTER (WHERE a)", "apercentile(CASE WHEN a THEN b END, 50)"),
        ("1 + last(b) FILTER (WHERE a)", "1 + last(CASE WHEN a THEN b END)"),
        ("mine(b) FILTER (WHERE a)", "mine(CASE WHEN a THEN b END)"),
    ],
)
def test_filter_is_a_case_of_the_same_name(item: str, written: str) -> None:
    select = check_shape(stream(item))
    found = select.expressions[1]
    assert to_sql(found) == written
    assert found.meta["sql"] == item


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("abs(b) FILTER (WHERE a)", "FILTER stands behind an aggregate"),
        ("last_row(b) FILTER (WHERE a)", "last_row() takes no FILTER here"),
        ("last(b, c) FILTER (WHERE a)", "last() takes one value here"),
        ("last(*) FILTER (WHERE a)", "last(*) takes no FILTER"),
        ("sum(b) OVER ()", "OVER is not possible in a stream"),
        ("rank() OVER (ORDER BY b)", "OVER is not possible in a stream"),
    ],
)
def test_what_a_stream_cannot_do_is_refused_with_a_way_out(item: str, words: str) -> None:
    error = refusal(lambda: check_shape(stream(item)))
    assert error.code == "E_UNSUPPORTED_QUERY" and words in error.message
    assert error.column == 43 and error.hint


def test_qualify_is_refused() -> None:
    statement = parse_one("CREATE STREAM s INTO o AS SELECT count(*) FROM t INTERVAL(1s) QUALIFY a")
    assert isinstance(statement, CreateStream)
    assert "QUALIFY is not possible in a stream" in refusal(lambda: check_shape(statement)).message
