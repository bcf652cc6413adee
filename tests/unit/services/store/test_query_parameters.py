"""Parameters of queries by the store's real DuckDB and kernels: what goes in comes out as itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from penstock.errors import SqlError
from penstock.rows.parameters import Moment, Parameters
from services.store.query import Queries
from tests.nightly import drawn
from tests.unit.services.store.test_query import opened

HOSTILE = "'\"`\\'; DROP TABLE mine; --/*\0?:a$1{}%_ é 😀\n\r\t"


@pytest.fixture
def queries(tmp_path: Path, rows: Callable[..., pl.DataFrame]) -> Iterator[Queries]:
    yield opened(tmp_path, rows, 20.0)


def ask(queries: Queries, sql: str, parameters: Parameters, zone: str = "UTC") -> list[Any]:
    found = queries.run(sql, "d", zone, parameters=parameters)
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize(
    "value",
    [
        HOSTILE,
        "",
        "\0",
        b"",
        b"\x00'\xff\\x41",
        True,
        None,
        0,
        -(2**63),
        2**63 - 1,
        0.1,
        -1e-300,
        5e-324,
        1.7976931348623157e308,
        datetime(2026, 3, 1, 9, 0, 0, 5_000, tzinfo=UTC),
    ],
)
def test_a_value_comes_out_as_itself(queries: Queries, value: Any) -> None:
    sent = Moment(value.isoformat()) if isinstance(value, datetime) else value
    found = ask(queries, "SELECT ? AS x, v FROM mine WHERE v = ?", [sent, 1])
    if isinstance(value, datetime):
        assert found == [(value.replace(tzinfo=None), 1)]
    else:
        assert found == [(value, 1)] and type(found[0][0]) is type(value)


@settings(
    max_examples=drawn(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some.text(some.characters(exclude_categories=["Cs"])), some.binary())
def test_any_text_and_any_bytes(queries: Queries, text: str, data: bytes) -> None:
    sql = (
        "SELECT :text AS a, :data AS b, :text = :text AS c, w FROM mine WHERE v = 1 AND w <> :text"
    )
    assert ask(queries, sql, {"text": text, "data": data}) == [(text, data, True, "mine a")]


def test_conditions_take_parameters(queries: Queries) -> None:
    assert ask(queries, "SELECT v FROM mine WHERE v > ? AND w LIKE ?", [1, "mine%"]) == [(2,), (3,)]
    assert ask(queries, "SELECT v FROM mine WHERE w = ?", ["mine a' OR '1'='1"]) == []
    assert ask(queries, "SELECT v FROM mine WHERE v IN (?, ?)", [1, None]) == [(1,)]
    assert ask(queries, "SELECT v FROM mine ORDER BY v LIMIT ? OFFSET ?", [1, 1]) == [(2,)]
    assert ask(queries, "SELECT v FROM mine WHERE w LIKE ?", ["\0%"]) == []


def test_times_take_parameters(queries: Queries) -> None:
    late = "SELECT v FROM mine WHERE ts >= ?"
    assert ask(queries, late, [2000]) == [(2,), (3,)]
    assert ask(queries, late, ["1970-01-01 00:00:02"]) == [(2,), (3,)]
    assert ask(queries, late, [Moment("1970-01-01T00:00:03Z")]) == [(3,)]
    assert ask(queries, late, [Moment("1970-01-01T01:00:03")], "Europe/Berlin") == [(3,)]


def test_windows_take_parameters(queries: Queries) -> None:
    sql = "SELECT count(*) AS n FROM mine WHERE ts >= ? AND w <> ? INTERVAL(2s)"
    assert ask(queries, sql, [Moment("1970-01-01T00:00:02Z"), HOSTILE]) == [(2,)]


def test_errors_point_into_the_users_text(queries: Queries) -> None:
    with pytest.raises(SqlError) as caught:
        ask(queries, "SELECT v\nFROM mine WHERE v = ? AND v = ?", [1])
    assert (caught.value.line, caught.value.column) == (2, 31)
