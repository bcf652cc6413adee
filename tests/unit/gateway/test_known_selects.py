"""A SELECT that came before is known by its text, and says what it would say when read anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gateway.known_selects import KnownSelect, KnownSelects
from gateway.rights import Asked, needs
from penstock.catalog.view import Catalog
from penstock.errors import SqlError
from penstock.rows.parameters import Parameters
from penstock.sql import parse
from tests.nightly import drawn


def ask(
    selects: KnownSelects, text: str, parameters: Parameters | None = None, database: str = "d"
) -> KnownSelect | None:
    """Return the SELECT if it is known; read and note it if it is not."""
    known = selects.find(text, database, parameters, "UTC")
    if known is None:
        statements = parse(text, parameters)
        selects.note(text, statements, bound=bool(parameters))
    return known


def told(text: str, statement: Any) -> tuple[Any, ...]:
    asked = Asked("ann", "d", Catalog(()), lambda target: False)
    return statement.text, needs(statement, asked)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("SELECT v FROM p", "SELECT v FROM p"),
        ("SELECT v FROM p WHERE v > 5", "SELECT v FROM p WHERE v > 12345"),
        (
            "-- a\n SELECT v FROM e.q, p WHERE ts BETWEEN '2026-01-01' AND 7 ; -- 5",
            "-- a\n SELECT v FROM e.q, p WHERE ts BETWEEN 'x; -- /* y' AND 12345 ; -- 5",
        ),
        (
            "WITH p AS (SELECT v FROM q WHERE w IN ('a', 'b')) SELECT v FROM p WHERE v <> 1.5",
            "WITH p AS (SELECT v FROM q WHERE w IN ('', 'SELECT')) SELECT v FROM p WHERE v <> 9.25",
        ),
    ],
)
def test_other_values_are_the_same_select(first: str, later: str) -> None:
    selects = KnownSelects()
    assert ask(selects, first) is None
    found = ask(selects, later)
    assert found is not None
    assert told(later, found) == told(later, parse(later)[0])


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("SELECT v FROM p WHERE v > 5", "SELECT v FROM q WHERE v > 5"),
        ("SELECT v FROM p WHERE v > 5", "SELECT v FROM p WHERE v > 5.5"),
        ("SELECT v FROM p WHERE v > 5", "SELECT v FROM p WHERE v > '5'"),
        ("SELECT v FROM p WHERE w = 'a'", "SELECT v FROM p WHERE w = 'it''s'"),
        ("SELECT v FROM p WHERE w = 'a'", "SELECT v FROM p WHERE w = 'a\\'"),
        ("SELECT v FROM p LIMIT 5", "SELECT v FROM p LIMIT 6"),
        ("SELECT v FROM `p`", "SELECT v FROM `q`"),
        ("SELECT v FROM p /* p */", "SELECT v FROM p /* q */"),
        ("SELECT interp(v) FROM p RANGE('1970-01-01')", "SELECT interp(v) FROM p RANGE('x')"),
    ],
)
def test_other_texts_are_read(first: str, later: str) -> None:
    selects = KnownSelects()
    ask(selects, first)
    assert ask(selects, first) is not None
    assert selects.find(later, "d", None, "UTC") is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT * FROM information_schema.ins_tables",
        "SELECT v FROM p JOIN information_schema.ins_tables t ON v = t.db_name",
        "SELECT v FROM s OPEN WINDOWS",
        "SELECT v FROM p; SELECT v FROM q",
        "USE d; SELECT v FROM p",
        "EXPLAIN SELECT v FROM p",
        "INSERT INTO p SELECT ts, v FROM q",
        "SHOW TABLES",
        "SELECT v FROM p WHERE w = '" + "x" * 4096 + "'",
    ],
)
def test_what_the_gateway_itself_answers_is_read_each_time(text: str) -> None:
    selects = KnownSelects()
    for _ in range(3):
        assert ask(selects, text) is None


def test_lists_are_not_for_the_store() -> None:
    selects = KnownSelects()
    for text in ("SELECT db_name FROM ins_tables", "SELECT v FROM d.p"):
        ask(selects, text)
        assert ask(selects, text) is not None
    assert selects.find("SELECT db_name FROM ins_tables", "Information_Schema", None, "UTC") is None
    assert selects.find("SELECT v FROM d.p", "information_schema", None, "UTC") is not None


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT v FROM p WHERE v = ? AND v < 5", [1]),
        ("SELECT v FROM p WHERE v = :a OR :a < v", {"a": 1}),
    ],
)
@pytest.mark.parametrize(
    "wrong",
    [None, [], {}, [1, 2], {"b": 1}, [float("nan")], {"a": [1]}, [{"x": 1}], {"a": 1, "b": 2}],
)
def test_parameters_are_refused_in_the_same_words(
    text: str, parameters: Parameters, wrong: Any
) -> None:
    selects = KnownSelects()
    ask(selects, text, parameters)
    assert ask(selects, text, parameters) is not None
    with pytest.raises(SqlError) as first:
        ask(KnownSelects(), text, wrong)
    with pytest.raises(SqlError) as later:
        ask(selects, text, wrong)
    assert later.value.to_dict() == first.value.to_dict()


def test_values_for_no_placeholders_are_refused() -> None:
    selects = KnownSelects()
    ask(selects, "SELECT v FROM p")
    with pytest.raises(SqlError, match="no placeholders for 1 parameter"):
        ask(selects, "SELECT v FROM p", [1])


def test_a_statement_with_placeholders_is_known_as_it_stands() -> None:
    selects = KnownSelects()
    text = "SELECT v FROM p WHERE v > 5 AND w = ?"
    ask(selects, text, ["a"])
    assert ask(selects, text, ["b"]) is not None
    assert selects.find(text.replace("5", "6"), "d", ["a"], "UTC") is None


def test_few_texts_are_remembered() -> None:
    selects = KnownSelects()
    for number in range(1_025):
        ask(selects, f"SELECT v{number} FROM p")
    assert selects.find("SELECT v0 FROM p", "d", None, "UTC") is None
    assert selects.find("SELECT v1 FROM p", "d", None, "UTC") is not None
    ask(selects, "SELECT w FROM p")
    assert selects.find("SELECT v1 FROM p", "d", None, "UTC") is not None
    assert selects.find("SELECT v2 FROM p", "d", None, "UTC") is None


_VALUES = some.sampled_from(["'a'", "'b; c'", "''", "5", "007", "1.5", "'it''s'", '"x"', "?", "5s"])
_SOUP = some.lists(
    some.sampled_from(
        ["v", "=", "<", "AND", "OR", "(", ")", "'", '"', "`", "--", "/*", "*/", "\n", ",", "-", ";"]
        + ["\\", "FROM q", "UNION SELECT v FROM r", "IN (SELECT v FROM q)", "IN", "BETWEEN", "{}"]
    ),
    max_size=10,
)


@given(_SOUP, some.sampled_from([" ", ""]), some.data())
@settings(max_examples=drawn(200), deadline=None)
def test_a_known_text_says_what_it_says_when_read(
    soup: list[str], blank: str, data: some.DataObject
) -> None:
    selects = KnownSelects()
    form = f"SELECT v FROM p WHERE v = {{}} AND w < {{}} OR {blank.join(soup)}"
    for _ in range(3):
        text = form
        while "{}" in text:
            text = text.replace("{}", data.draw(_VALUES), 1)
        try:
            statements = parse(text)
        except SqlError:
            assert selects.find(text, "d", None, "UTC") is None
            continue
        known = ask(selects, text)
        if known is not None:
            assert [told(text, known)] == [told(text, s) for s in statements]
