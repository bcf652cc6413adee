"""Times that cannot be read: where they stand, and which forms can be."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from penstock.errors import SqlError
from penstock.sql.words import TIME_FORMS
from services.store.time_texts import explain_cast
from tests.unit.services.store.kit import PLAIN
from tests.unit.services.store.test_query_run import Asking, statement


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    made = Asking(Path(tmp_path_factory.mktemp("store")))
    made.put(PLAIN, ("plain", 1_000, 1, "a"))
    return made


@pytest.mark.parametrize(
    ("condition", "shown", "column"),
    [
        ("ts > 'yesterday'", "'yesterday'", 32),
        ("'31.12.2024' <= ts", "'31.12.2024'", 27),
        ("v = 1 AND ts = '2024-02-30'", "'2024-02-30'", 42),
        ("ts IN ('1970-01-01', 'x')", "'x'", 48),
        ("ts BETWEEN '1970-01-01' AND 'b'", "'b'", 55),
        ("ts > 1.5", "'1.5'", 32),
        ("_rowts > 'soon'", "'soon'", 36),
    ],
)
def test_a_literal_that_is_no_time(asking: Asking, condition: str, shown: str, column: int) -> None:
    with pytest.raises(SqlError) as caught:
        asking.rows(f"SELECT v FROM plain WHERE {condition}")
    error = caught.value
    assert (error.code, error.message) == ("E_TYPE", f"{shown} is no time")
    assert (error.line, error.column, error.hint) == (1, column, TIME_FORMS)


@pytest.mark.parametrize(
    "text",
    ["'1970-01-01 00:00:00.500'", "'1970-01-01T00:00:00Z'", "'1970-01-01 08:00:00+08:00'", "0"],
)
def test_the_forms_that_the_hint_names_can_be_read(asking: Asking, text: str) -> None:
    assert asking.rows(f"SELECT v FROM plain WHERE ts > {text}") == [(1,)]
    assert asking.rows(f"SELECT v FROM plain WHERE w = 'yesterday' AND ts > {text}") == []


@pytest.mark.parametrize(
    ("select", "shown", "column"),
    [
        ("CAST('abc' AS TIMESTAMP)", "'abc'", 13),
        ("TIMESTAMP '2024-02-30'", "'2024-02-30'", 8),
        ("v, coalesce(ts, (CAST(('') AS TIMESTAMP)))", "''", 31),
    ],
)
def test_a_constant_that_is_made_a_time_must_be_one(
    asking: Asking, select: str, shown: str, column: int
) -> None:
    with pytest.raises(SqlError) as caught:
        asking.rows(f"SELECT {select} AS t FROM plain")
    error = caught.value
    assert (error.code, error.message) == ("E_TYPE", f"{shown} is no time")
    assert (error.line, error.column, error.hint) == (1, column, TIME_FORMS)


def test_a_value_that_is_no_time_gives_null(asking: Asking) -> None:
    assert asking.rows("SELECT CAST(w AS TIMESTAMP) AS t FROM plain") == [(None,)]


def test_a_text_that_duckdb_cannot_cast(asking: Asking) -> None:
    sql = "SELECT date_diff('day', 'abc', ts) AS t FROM plain"
    with pytest.raises(duckdb.ConversionException) as caught:
        asking.rows(sql)
    error = explain_cast(caught.value, statement(sql))
    assert error is not None
    assert (error.code, error.column, error.hint) == ("E_TYPE", 25, TIME_FORMS)
    assert explain_cast(duckdb.BinderException("timestamp field 'x'"), statement(sql)) is None
    assert explain_cast(duckdb.ConversionException("INT32"), statement(sql)) is None
