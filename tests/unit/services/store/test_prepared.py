"""Prepared statements of Flight SQL, by ADBC's own driver and by bad bytes; the statement that the
store would run is the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pytest
from adbc_driver_manager import Error
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.rows.parameters import Moment, Parameters
from penstock.sql import parse, render
from services.store import flightsql, prepared
from services.store.flight_tickets import TicketRequest, read_ticket
from services.store.flightsql import FlightCommand
from tests.nightly import drawn
from tests.unit.services.store.test_flight import served


class _Told:
    """Stands where queries are answered: tells the statement with its parameters."""

    def run(
        self, sql: str, database: str, timezone: str, *, parameters: Parameters | None, **_: Any
    ) -> pa.Table:
        return pa.table({"told": [render(s) for s in parse(sql, parameters, timezone)]})

    def describe(self, *_: Any, **__: Any) -> pa.Schema:
        return pa.schema([("told", pa.string())])

    def find_table(self, database: str, name: str) -> None:
        return None


@pytest.fixture(scope="module")
def cursor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[flight_sql.Cursor]:
    directory: Path = tmp_path_factory.mktemp("tls")
    with served(directory, cast(Any, _Told())) as (address, ca):
        options = {
            "username": "root",
            "password": "secret",
            "adbc.flight.sql.client_option.tls_root_certs": ca.decode(),
        }
        uri = f"grpc+tls://{address}"
        with flight_sql.connect(uri, options, autocommit=True) as connection:
            with connection.cursor() as made:
                yield made


@pytest.mark.parametrize(
    ("sql", "parameters", "told"),
    [
        ("SELECT a FROM t", None, "SELECT a FROM t"),
        ("SELECT a FROM t WHERE b = ?", (5,), "SELECT a FROM t WHERE b = 5"),
        ("SELECT ?, ?", ("it's", None), "SELECT 'it\\'s', NULL"),
        ("SELECT ?, ?", (True, -0.5), "SELECT TRUE, -0.5e0"),
        ("SELECT ?", (b"\x00'",), "SELECT CAST('\\\\x0027' AS VARBINARY)"),
        ("SELECT ?", (Decimal("1.50"),), "SELECT 1.50"),
        ("SELECT ?", (date(2026, 3, 1),), "SELECT CAST('2026-03-01 00:00:00+00:00' AS TIMESTAMP)"),
        (
            "SELECT ?",
            (datetime(2026, 3, 1, 9, 0, 0, 5, tzinfo=UTC),),
            "SELECT CAST('2026-03-01 09:00:00.000005+00:00' AS TIMESTAMP)",
        ),
    ],
)
def test_a_driver_binds_values(
    cursor: flight_sql.Cursor, sql: str, parameters: tuple[Any, ...] | None, told: str
) -> None:
    cursor.execute(sql, parameters)
    assert cursor.fetchall() == [(told,)]


def test_a_statement_is_run_again_with_other_values(cursor: flight_sql.Cursor) -> None:
    for value in ("x", "'; DROP TABLE t; --"):
        cursor.execute("SELECT a FROM t WHERE b = ?", (value,))
        (told,) = cursor.fetchone() or ()
        assert told == render(parse("SELECT a FROM t WHERE b = ?", [value])[0])


@pytest.mark.parametrize(
    ("sql", "parameters", "words"),
    [
        ("SELECT ?, ?", (1,), "too few parameters"),
        ("SELECT ?", None, "no parameters for 1"),
        ("SELECT ?", (float("inf"),), "infinite"),
        ("SELECT ?", ([1, 2],), "of type list"),
        ("SELECT a FROM ?", (1,), "names, keywords"),
    ],
)
def test_a_driver_hears_what_is_wrong(
    cursor: flight_sql.Cursor, sql: str, parameters: tuple[Any, ...] | None, words: str
) -> None:
    with pytest.raises(Error, match=words):
        cursor.execute(sql, parameters)
        cursor.fetchall()


def bound(sql: str, table: pa.Table) -> Any:
    """The ticket of a prepared statement with the values of *table*."""
    handle = json.dumps({"sql": sql}).encode()
    command = flightsql.read_command(flightsql.write_command(prepared.QUERY, [(1, handle)]))
    chunks = iter(table.to_batches())

    class _Reader:
        def read_chunk(self) -> Any:
            return SimpleNamespace(data=next(chunks))

    reader: Any = _Reader()
    answer = FlightCommand("", tuple(flightsql._fields(prepared.bind(command, reader))))
    return json.loads(answer.text(1) or "")


def test_columns_are_names_where_the_statement_has_names() -> None:
    table = pa.table({"b": [1], "a": ["x"]})
    assert bound("SELECT :a, :b", table)["parameters"] == {"b": 1, "a": "x"}
    assert bound("SELECT ?, ?", table)["parameters"] == [1, "x"]


def test_times_keep_their_nanoseconds() -> None:
    at = pa.array([1_772_355_600_123_456_789], pa.timestamp("ns", "Europe/Berlin"))
    found = bound("SELECT ?", pa.table({"0": at}))["parameters"]
    assert found == [{"$timestamp": "2026-03-01 09:00:00.123456789Z"}]
    assert parse("SELECT ?", [Moment(found[0]["$timestamp"])])


def test_one_row_is_one_query() -> None:
    with pytest.raises(Exception, match="one row of parameters"):
        bound("SELECT ?", pa.table({"0": [1, 2]}))
    with pytest.raises(Exception, match="4194304 bytes"):
        bound("SELECT ?", pa.table({"0": ["x" * (5 << 20)]}))


@settings(max_examples=drawn(100), deadline=None)
@given(some.binary())
def test_bad_bytes_are_no_statement(body: bytes) -> None:
    with pytest.raises(ValueError):
        flightsql.prepared_query(body)


@settings(max_examples=drawn(100), deadline=None)
@given(some.text(some.characters(exclude_categories=["Cs"])))
def test_a_handle_has_the_text_as_it_came(text: str) -> None:
    body = flightsql.write_command("ActionCreatePreparedStatementRequest", [(1, text.encode())])
    request = TicketRequest(flightsql.prepared_query(body))
    wrapped = FlightCommand(
        "", tuple(flightsql._fields(prepared.created(request, None, pa.schema([]))))
    )
    answer = wrapped.message(2)
    assert read_ticket(answer.content(1) or b"") == request
    assert answer.content(2) is None
    assert pa.ipc.read_schema(pa.py_buffer(answer.content(3) or b"")) == pa.schema([])
