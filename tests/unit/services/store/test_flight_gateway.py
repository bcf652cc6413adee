"""What a store hands to a gateway for Flight's clients: lists, definitions, writes, bulk ingestion.
ADBC's own driver asks, and a small HTTP server stands where the gateway is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pytest
from adbc_driver_manager import Error

from penstock.client.wire import ARROW, to_stream
from penstock.errors import SchemaError
from services.store import ingest
from services.store.flight_tickets import TicketRequest
from services.store.flightsql import FlightCommand, read_command, write_command
from services.store.gateway_statements import GatewayStatements, kind_of
from tests.unit.services.store.test_flight import _Asked, served


@dataclass
class _Gateway:
    """Answers as a gateway would, and keeps what it was asked."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, path: str, key: str, body: bytes) -> tuple[int, str, bytes]:
        self.keys.add(key.split()[0])
        if path != "/v1/query":
            table = pa.ipc.open_stream(body).read_all()
            self.rows += table.to_pylist()
            self.asked.append((path, str(table.num_rows)))
            return 200, "application/json", json.dumps({"rows": table.num_rows}).encode()
        wanted = json.loads(body)
        self.asked.append((wanted["sql"], wanted.get("database", "")))
        sql = wanted["sql"]
        if "nowhere" in sql:
            error = {"code": "E_NO_TABLE", "message": "there is no table nowhere"}
            where = {"line": 1, "column": 10, "snippet": sql}
            return 404, "application/json", json.dumps({"error": {**error, **where}}).encode()
        if sql.startswith(("SHOW", "SELECT", "DESCRIBE")):
            return 200, ARROW, to_stream(pa.table({"name": ["d", "e"]}))
        count = max(1, sql.count("(?"))
        return 200, ARROW, to_stream(pa.table({"affected_rows": pa.array([count], pa.int64())}))


@pytest.fixture
def gateway() -> Iterator[tuple[_Gateway, str]]:
    state = _Gateway()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, kind, said = state.answer(self.path, self.headers["Authorization"], body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield state, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def cursor(
    tmp_path: Path, gateway: tuple[_Gateway, str]
) -> Iterator[tuple[flight_sql.Cursor, _Gateway]]:
    state, url = gateway
    with served(tmp_path, _Asked(), gateway_url=url) as (address, ca):
        options = {
            "username": "ann",
            "password": "anns password",
            "adbc.flight.sql.client_option.tls_root_certs": ca.decode(),
            "adbc.flight.sql.rpc.call_header.database": "d",
        }
        uri = f"grpc+tls://{address}"
        with flight_sql.connect(uri, options, autocommit=True) as connection:
            with connection.cursor() as made:
                yield made, state


def test_lists_and_definitions_are_a_gateways(cursor: tuple[flight_sql.Cursor, _Gateway]) -> None:
    made, state = cursor
    made.execute("SHOW DATABASES")
    assert made.fetchall() == [("d",), ("e",)]
    made.execute("SELECT name FROM information_schema.ins_databases")
    assert made.fetchall() == [("d",), ("e",)]
    made.execute("CREATE DATABASE e")
    assert made.fetchall() == [(1,)]
    lists = ["SHOW DATABASES", "SELECT name FROM information_schema.ins_databases"]
    # the driver prepares what it runs: lists are asked for their columns first
    assert state.asked == [
        *((sql, "d") for sql in lists for _ in range(2)),
        ("CREATE DATABASE e", "d"),
    ]
    # the token that the handshake gave, never the store's own password
    assert state.keys == {"Bearer"}


def test_prepared_statements_that_write(cursor: tuple[flight_sql.Cursor, _Gateway]) -> None:
    made, state = cursor
    rows = [(datetime(2026, 3, 1, 9, minute, tzinfo=UTC), minute) for minute in range(3)]
    made.executemany("INSERT INTO mine (ts, n) VALUES (?, ?)", rows)
    assert made.rowcount == 3
    assert state.asked == [("INSERT INTO mine (ts, n) VALUES (?, ?), (?, ?), (?, ?)", "d")]
    made.executemany("DELETE FROM mine WHERE n = ?", [(1,), (2,)])
    assert [sql for sql, _ in state.asked[1:]] == ["DELETE FROM mine WHERE n = ?"] * 2


def test_no_proxy_sees_a_users_credentials(
    gateway: tuple[_Gateway, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, url = gateway
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    found = GatewayStatements(url, timeout=20).rows("Bearer x", TicketRequest("SHOW DATABASES"))
    assert found.num_rows == 2 and state.asked == [("SHOW DATABASES", "")]


@pytest.mark.parametrize("prepared", [False, True])
def test_updates_say_how_many_rows_they_changed(
    cursor: tuple[flight_sql.Cursor, _Gateway], prepared: bool
) -> None:
    made, state = cursor
    statement = made.adbc_statement
    statement.set_sql_query("INSERT INTO mine (n) VALUES (1)")
    if prepared:
        statement.prepare()
    assert statement.execute_update() == 1
    assert state.asked == [("INSERT INTO mine (n) VALUES (1)", "d")]
    statement.set_sql_query("SHOW DATABASES")
    if prepared:
        statement.prepare()
    assert statement.execute_update() == -1


def test_errors_of_a_gateway_have_their_place_and_no_traceback(
    cursor: tuple[flight_sql.Cursor, _Gateway],
) -> None:
    made, _ = cursor
    for ask in (
        lambda: made.execute("DESCRIBE nowhere"),
        lambda: made.executemany("DELETE FROM nowhere WHERE n = ?", [(1,)]),
    ):
        with pytest.raises(Error) as told:
            ask()
            made.fetchall()
        words = str(told.value)
        assert "E_NO_TABLE" in words and '"line": 1, "column": 10' in words
        assert "INVALID_ARGUMENT" in words or "INVALID_ARGUMENT" in repr(told.value.status_code)
        assert "Traceback" not in words and ".py" not in words


def test_a_gateway_that_is_away_is_told(tmp_path: Path) -> None:
    with served(tmp_path, _Asked()) as (address, ca):
        options = {
            "username": "root",
            "password": "secret",
            "adbc.flight.sql.client_option.tls_root_certs": ca.decode(),
        }
        with flight_sql.connect(f"grpc+tls://{address}", options, autocommit=True) as connection:
            with connection.cursor() as made, pytest.raises(Error, match="cannot be reached"):
                made.execute("SHOW DATABASES")
                made.fetchall()


def test_bulk_ingestion(cursor: tuple[flight_sql.Cursor, _Gateway]) -> None:
    made, state = cursor
    times = pa.array([datetime(2026, 3, 1, 9, tzinfo=UTC)] * 2, pa.timestamp("ms", "UTC"))
    rows = pa.table({"n": pa.array([1, 2], pa.int32()), "ts": times, "a`b": ["x", None]})
    assert made.adbc_ingest("mine", rows, mode="append") == 2
    assert state.asked == [("/v1/tables/d/mine/rows", "2")]
    assert [row["n"] for row in state.rows] == [1, 2]
    state.asked.clear()
    assert made.adbc_ingest("new", rows, mode="create_append", db_schema_name="e") == 2
    ((define, database), sent) = state.asked
    assert define.startswith("CREATE TABLE IF NOT EXISTS") and database == "e"
    # the time comes first, and a hostile name stays a name
    assert define.index("ts") < define.index("`n`" if "`n`" in define else "n INT")
    assert "`a``b`" in define
    assert sent == ("/v1/tables/e/new/rows", "2")
    state.asked.clear()
    made.adbc_ingest("mine", rows, mode="replace")
    assert [sql.split("(")[0].split()[:2] for sql, _ in state.asked[:2]] == [
        ["DROP", "TABLE"],
        ["CREATE", "TABLE"],
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([(2, b"t")], "no database"),
        ([(3, b"d")], "no table"),
        ([(2, b"t"), (3, b"d"), (6, b"x")], "transactions"),
        ([(2, b"\xff"), (3, b"d")], "utf-8"),
        ([(1, b"\xff"), (2, b"t"), (3, b"d")], "ends within"),
    ],
)
def test_commands_that_cannot_be_followed(fields: list[tuple[int, bytes]], words: str) -> None:
    command = read_command(write_command(ingest.COMMAND, fields))
    with pytest.raises((SchemaError, ValueError), match=words):
        ingest.read_ingest(command, "")


def test_large_batches_are_cut_and_small_ones_put_together() -> None:
    sent: list[int] = []

    def send(table: pa.Table) -> int:
        sent.append(table.num_rows)
        return int(table.num_rows)

    batch = pa.record_batch({"n": pa.array(range(120_000), pa.int32())})
    small = [batch.slice(at, 10) for at in range(0, 50, 10)]
    assert ingest.write([*small, batch], send) == 120_050
    assert sent == [50, 50_000, 50_000, 20_000]


def test_a_type_that_no_column_has_is_refused() -> None:
    wanted = ingest.read_ingest(FlightCommand("", ((1, b"\x08\x01"), (2, b"t"), (3, b"d"))), "")
    schema = pa.schema([("ts", pa.timestamp("ms")), ("x", pa.list_(pa.int32()))])
    with pytest.raises(SchemaError, match='"x" has the type list'):
        list(ingest.definitions(wanted, schema))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT a FROM t", "store"),
        ("EXPLAIN SELECT a FROM t", "store"),
        ("SELECT 1", "store"),
        ("not SQL at all", "store"),
        ("", "store"),
        ("SELECT database()", "lists"),
        ("SELECT name FROM INFORMATION_SCHEMA.ins_databases", "lists"),
        ("SELECT * FROM s OPEN WINDOWS", "lists"),
        ("SHOW STREAMS", "lists"),
        ("DESCRIBE t", "lists"),
        ("SHOW CREATE TABLE t", "lists"),
        ("INSERT INTO t VALUES (1, 2)", "changes"),
        ("CREATE DATABASE d", "changes"),
        ("USE d; SHOW TABLES", "changes"),
    ],
)
def test_who_answers(sql: str, kind: str) -> None:
    assert kind_of(TicketRequest(sql)) == kind
    # what a gateway asks never goes back to it
    assert kind_of(TicketRequest(sql, revision=0)) == "store"


def test_the_default_database_may_be_the_lists() -> None:
    assert kind_of(TicketRequest("SELECT * FROM ins_tables", "information_schema")) == "lists"
