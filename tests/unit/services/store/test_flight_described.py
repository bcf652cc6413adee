"""What ADBC's driver is told of a statement before it runs, and of one that is wrong: by the store's
real DuckDB, over the real Flight server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import adbc_driver_flightsql.dbapi as flight_sql
import polars as pl
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from adbc_driver_manager import Error

from services.store.flightsql import write_command
from tests.unit.services.store.test_flight import served
from tests.unit.services.store.test_query import opened


@pytest.fixture
def endpoint(tmp_path: Path, rows: Callable[..., pl.DataFrame]) -> Iterator[tuple[str, bytes]]:
    with served(tmp_path, cast(Any, opened(tmp_path, rows, 20.0))) as way:
        yield way


@pytest.fixture
def cursor(endpoint: tuple[str, bytes]) -> Iterator[flight_sql.Cursor]:
    address, ca = endpoint
    options = {
        "username": "root",
        "password": "secret",
        "adbc.flight.sql.client_option.tls_root_certs": ca.decode(),
        "adbc.flight.sql.rpc.call_header.database": "d",
    }
    with flight_sql.connect(f"grpc+tls://{address}", options, autocommit=True) as connection:
        with connection.cursor() as made:
            yield made


def test_parameters_and_columns_are_known_before_a_statement_runs(
    cursor: flight_sql.Cursor,
) -> None:
    sql = "SELECT v, w, ts FROM mine WHERE v = ? AND ts >= ? LIMIT ?"
    assert cursor.adbc_prepare(sql) == pa.schema(
        [("1", pa.int32()), ("2", pa.timestamp("ms", "UTC")), ("3", pa.int64())]
    )
    schema = cursor.adbc_execute_schema("SELECT v, w, ts FROM mine")
    cursor.execute("SELECT v, w, ts FROM mine WHERE v >= ? ORDER BY v", (2,))
    table = cursor.fetch_arrow_table()
    assert table.column("v").to_pylist() == [2, 3]
    assert table.schema == schema
    assert schema.types == [pa.int32(), pa.string(), pa.timestamp("ms", "UTC")]


def test_times_say_their_zone_to_drivers_that_can_read_it(endpoint: tuple[str, bytes]) -> None:
    address, ca = endpoint
    for agent, zone in (("grpc-go/1.70", "UTC"), ("grpc-java-netty/1.71.0", None)):
        options = [("grpc.primary_user_agent", agent)]
        with flight.FlightClient(
            f"grpc+tls://{address}", tls_root_certs=ca, generic_options=options
        ) as client:
            key = client.authenticate_basic_token("root", "secret")
            calls = flight.FlightCallOptions(headers=[key, (b"database", b"d")])
            sql = b"SELECT ts FROM mine ORDER BY ts"
            found = client.do_get(flight.Ticket(sql), calls).read_all()
            asked = flight.FlightDescriptor.for_command(sql)
            assert client.get_schema(asked, calls).schema.types == found.schema.types
            assert found.schema.types == [pa.timestamp("ms", zone)]
            # a gateway asks for times as it has always got them
            ticket = json.dumps({"sql": sql.decode(), "revision": 0}).encode()
            inside = client.do_get(flight.Ticket(ticket), calls).read_all()
            assert inside.schema.types == [pa.timestamp("ms")]
            assert inside.column(0).cast("int64") == found.column(0).cast("int64")


def test_bins_of_time(cursor: flight_sql.Cursor) -> None:
    cursor.execute("SELECT date_bin(2s, ts) AS t, count(*) AS n FROM mine GROUP BY t ORDER BY t")
    assert cursor.fetch_arrow_table().column("n").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT v,\n  vv FROM mine", '"line": 2, "column": 3'),
        ("SELECT v FROM mine WHERE", "E_SYNTAX"),
        ("SELECT v FROM nowhere", "E_TABLE_NOT_EXIST"),
        ("SELECT read_text('/etc/passwd') FROM mine", '"message": "read_text()'),
    ],
)
def test_errors_have_a_status_a_code_and_a_place(
    cursor: flight_sql.Cursor, sql: str, words: str
) -> None:
    with pytest.raises(Error) as told:
        cursor.execute(sql)
        cursor.fetchall()
    said = str(told.value)
    assert words in said and "INVALID_ARGUMENT" in said
    assert "Traceback" not in said and ".py" not in said


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (b"", "no command of Flight SQL"),
        (b"SELECT 1", "E_REQUEST"),
        (b"\n\xff\xff", "E_REQUEST"),
        (write_command("CommandPreparedStatementQuery", [(1, b"\xff")]), "E_REQUEST"),
        (write_command("CommandPreparedStatementQuery", [(1, b"{}")]), "it has no sql"),
        (write_command("CommandPreparedStatementUpdate", [(1, b'{"sql": []}')]), "it has no sql"),
        (write_command("CommandPreparedStatementQuery", [(1, b"SELECT ?")]), "one row"),
        (write_command("CommandStatementUpdate", [(1, b"\xff")]), "utf-8"),
        (write_command("CommandStatementIngest", []), "E_WHICH_DATABASE"),
        (write_command("CommandStatementSubstraitPlan", []), "is not served"),
        (write_command("CommandGetTables", []), "is not served"),
    ],
)
def test_hostile_uploads_are_told_what_is_wrong(
    endpoint: tuple[str, bytes], command: bytes, words: str
) -> None:
    options = flight.FlightCallOptions(
        headers=[(b"authorization", b"Bearer root:secret")], timeout=60
    )
    values = pa.record_batch({"x": [1, 2]})
    with flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client:
        with pytest.raises((pa.ArrowException, NotImplementedError)) as told:
            descriptor = flight.FlightDescriptor.for_command(command)
            writer, reader = client.do_put(descriptor, values.schema, options)
            with writer:
                writer.write_batch(values)
                writer.done_writing()
                reader.read()
    said = str(told.value)
    assert words in said
    assert "Traceback" not in said and ".py" not in said and "E_INTERNAL" not in said
