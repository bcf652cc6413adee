"""Deep, long and hostile texts end quickly in a SqlError or are read."""

from __future__ import annotations

import time

import polars as pl
import pytest

from penstock.errors import SqlError
from penstock.sql import parse, render
from penstock.sql.compile import compile_expression, compiler
from penstock.types import ColumnType

N = 50_000
HOSTILE = {
    "parentheses": "SELECT " + "(" * N,
    "closed parentheses": "SELECT " + "(" * N + "1" + ")" * N,
    "minus": "SELECT " + "- " * N + "1",
    "plus": "SELECT " + "+ " * N + "1",
    "not": "SELECT " + "NOT " * 50_000 + "1",
    "sum": "SELECT " + "1+" * N + "1",
    "and": "SELECT 1 WHERE " + "a AND " * 40_000 + "a",
    "calls": "SELECT " + "f(" * N,
    "case": "SELECT " + "CASE WHEN " * 20_000,
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 10_000,
    "unions": "SELECT 1 " + "UNION SELECT 1 " * 10_000,
    "joins": "SELECT 1 FROM a" + ", a" * 80_000,
    "query parentheses": "(" * N + "SELECT 1",
    "columns": "CREATE TABLE t (ts TIMESTAMP" + ", a INT" * 30_000 + ")",
    "blanks": "INSERT INTO t VALUES (1 " + " " * (16 * N) + "x",
    "blanks after plus": "INSERT INTO t VALUES (1+" + " " * (16 * N) + "x",
    "blanks between rows": "INSERT INTO t VALUES (1)" + " " * (16 * N) + "x",
    "quotes": "INSERT INTO t VALUES ('" + "''" * (4 * N),
    "backslashes": "INSERT INTO t VALUES ('" + "\\" * (8 * N),
    "names": "INSERT INTO t (" + ",".join(f"c{i}" for i in range(N)) + ") VALUES (1)",
    "open comment": "SELECT 1 /*" + "*" * N,
    "open name": "SELECT `" + "a" * N,
    "semicolons": ";" * (20 * N),
    "comments": "/**/" * (2 * N),
    "digits": "SELECT " + "9" * N,
    "insert digits": "INSERT INTO t VALUES (" + "9" * (10 * N) + ")",
    "exponent": "SELECT 1e" + "9" * 1000,
    "long duration": "SELECT 1 FROM t INTERVAL(" + "9" * 1000 + "s)",
    "too long": "SELECT " + " " * (22 * N) + "1",
    "surrogate": "SELECT '\ud800'",
    "zero": "SELECT \0",
    "empty": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_or_read_quickly(name: str) -> None:
    begun = time.process_time()
    try:
        statements = parse(HOSTILE[name])
    except SqlError as error:
        assert len(str(error)) < 2000
    else:
        assert [parse(render(s))[0] for s in statements] == statements
    assert time.process_time() - begun < 10


def test_nesting_that_people_write_is_read() -> None:
    text = (
        "SELECT "
        + "(" * 15
        + "a"
        + ")" * 15
        + " FROM (SELECT * FROM (SELECT * FROM (SELECT * FROM t)))"
    )
    (statement,) = parse(text)
    assert parse(render(statement)) == [statement]


def test_a_megabyte_of_rows_is_read_in_well_under_a_second() -> None:
    text = "INSERT INTO d1 VALUES " + " ".join(
        f"({1_700_000_000_000 + i}, {i * 1.37:.3f}, {i % 7}, 'abc{i % 10}', NULL)"
        for i in range(20_000)
    )
    times = []
    for _ in range(3):
        begun = time.process_time()
        (statement,) = parse(text)
        times.append(time.process_time() - begun)
    assert len(statement.parts[0].rows) == 20_000  # type: ignore[attr-defined]
    assert min(times) < 0.9


COLUMNS = {"a": ColumnType("INT"), "d": ColumnType("DOUBLE")}


@pytest.mark.parametrize(
    "text",
    [
        "+".join(["a"] * 400),
        "*".join(["d"] * 400),
        "/".join(["d"] * 400),
        "%".join(["a"] * 60),
        "a+(" * 40 + "a" + ")" * 40,
    ],
    ids=["sum", "product", "quotient", "remainder", "nested"],
)
def test_an_expression_costs_by_its_length(text: str) -> None:
    """Where an argument is named twice for each operator, twenty of them are a million."""
    begun = time.process_time()
    made = compile_expression(text, COLUMNS)
    pl.DataFrame({"a": [1, 2], "d": [1.0, 2.0]}).select(made.expr)
    assert time.process_time() - begun < 5


def test_an_expression_that_grows_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_MAX_COLUMN_REFERENCES", 2_000)  # ten times as many take seconds
    text = "a"
    for _ in range(7):
        text = f"CASE WHEN {text} > 1 THEN {text} ELSE {text} END"
    with pytest.raises(SqlError, match="too large"):
        compile_expression(text, COLUMNS)


@pytest.mark.parametrize(
    "text", ["d * 10 / 1e308", "d * 10 - d * 10", "d * 10 * 0", "1 / (d * 10)", "1 + 1 / (d * 10)"]
)
def test_what_overflows_within_an_expression_is_null_at_its_end(text: str) -> None:
    found = pl.DataFrame({"d": [1e308]}).select(x=compile_expression(text, COLUMNS).expr)
    assert found["x"].to_list() == [None]
