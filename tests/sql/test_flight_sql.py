"""Flight SQL from end to end in this process: ADBC's driver, the store's real Flight server and
DuckDB, the gateway's real HTTP routes and statements, and one log in memory behind both.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pytest
from adbc_driver_manager import Error
from aiohttp import web

from gateway.guard import RequestGuard
from gateway.ingest import RowRoutes
from gateway.rest import SqlRoutes
from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.runtime.clock import SystemClock
from services.store.flight import StoreServer
from services.store.flight_answers import FlightAnswers
from services.store.flight_lists import FlightLists
from services.store.flight_queries import FlightQueries
from services.store.gateway_statements import GatewayStatements
from tests.sql.memory_mesh import FollowingStore
from tests.unit.gateway.kit import ROOT, MemoryGateway
from tests.unit.gateway.statements.kit import Statements
from tests.unit.gateway.test_rest import EverybodyIs


class _Following:
    """The store's queries, which read the log to its end first."""

    def __init__(self, store: FollowingStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        self._store.follow()
        return getattr(self._store.queries, name)


class _Gateway:
    """A gateway on a port of its own, in an event loop of its own."""

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self.memory = MemoryGateway(directory, loop=self._loop)
        self.store = FollowingStore(directory, self.memory)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = self._run(self._start())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _start(self) -> str:
        self._statements = Statements(self.memory, self.store, self._loop)
        everybody = cast(RequestGuard, EverybodyIs(ROOT))
        sql = SqlRoutes(self._statements.executor, cast(Any, None), SystemClock(), {})
        app = web.Application(client_max_size=16 << 20)
        app.add_routes(sql.routes(everybody))
        app.add_routes(RowRoutes(self._statements.intake, 16 << 20).routes(everybody))
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    def close(self) -> None:
        self._run(self._runner.cleanup())
        self._statements.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[flight_sql.Connection]:
    gateway = _Gateway(tmp_path)
    catalog = gateway.memory.catalog
    access = Access(lambda: catalog, ROOT)
    forward = GatewayStatements(gateway.url, timeout=60)
    queries = FlightQueries(
        cast(Any, _Following(gateway.store)),
        gateway.store.partitions,
        access,
        reached=lambda revision, patience: None,
        own_writes_seconds=1.0,
    )
    server = StoreServer(
        "grpc://127.0.0.1:0",
        FlightAnswers(queries, forward),
        FlightLists(lambda: catalog, access),
        forward,
        gateway.store.partitions,
        login=Login(lambda: catalog, ROOT, "secret", SystemClock(), "k" * 48),
        access=access,
    )
    options = {
        "username": ROOT,
        "password": "secret",
        "adbc.flight.sql.rpc.call_header.database": "plant",
    }
    try:
        uri = f"grpc://127.0.0.1:{server.port}"
        with flight_sql.connect(uri, options, autocommit=True) as made:
            yield made
    finally:
        server.shutdown()
        forward.close()
        gateway.close()


def test_a_tools_day(connection: flight_sql.Connection) -> None:
    at = [datetime(2026, 3, 1, 9, minute, tzinfo=UTC) for minute in range(4)]
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE plant")
        cursor.execute("SHOW DATABASES")
        assert ("plant",) in cursor.fetchall()
        times = pa.array(at[:2], pa.timestamp("ms", "UTC"))
        rows = pa.table({"temp": [20.5, 21.0], "ts": times, "note": ["it's", None]})
        assert cursor.adbc_ingest("oven", rows, mode="create") == 2
        cursor.executemany(
            "INSERT INTO oven (ts, temp) VALUES (?, ?)", [(at[2], 22.0), (at[3], 23.5)]
        )
        assert cursor.rowcount == 2
        cursor.execute("SELECT temp, note FROM oven WHERE temp > ? ORDER BY ts", (20.7,))
        assert cursor.fetchall() == [(21.0, None), (22.0, None), (23.5, None)]
        cursor.execute("SELECT date_bin(2m, ts) AS t, count(*) FROM oven GROUP BY t ORDER BY t")
        assert [count for _, count in cursor.fetchall()] == [2, 2]
        cursor.execute(
            "SELECT table_name FROM information_schema.ins_tables WHERE db_name = ?", ("plant",)
        )
        assert cursor.fetchall() == [("oven",)]
        cursor.execute("DESCRIBE oven")
        assert [row[0] for row in cursor.fetchall()] == ["ts", "temp", "note"]
        with pytest.raises(Error, match="E_"):
            cursor.adbc_ingest("oven", rows, mode="create")
    assert (connection.adbc_current_catalog, connection.adbc_current_db_schema) == (
        "penstock",
        "plant",
    )
    connection.adbc_current_catalog = "penstock"
    with pytest.raises(Error, match="(?i)invalid"):
        connection.adbc_current_db_schema = "other"
    schema = connection.adbc_get_table_schema("oven", db_schema_filter="plant")
    assert schema.names == ["ts", "temp", "note"]
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest("oven", rows, mode="replace") == 2
        cursor.execute("SELECT count(*) FROM oven")
        assert cursor.fetchall() == [(2,)]
        cursor.execute("DROP TABLE oven")
        with pytest.raises(Error, match='"line": 1, "column": 18'):
            cursor.execute("SELECT temp FROM oven")
