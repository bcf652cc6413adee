"""A program measured by OpenTelemetry's SDK sends its metrics."""

from __future__ import annotations

import penstock
from penstock.mesh.running import RunningMesh
from tests.clients.conftest import Start
from tests.stack.names import unique


def test_each_kind_of_instrument(mesh: RunningMesh, start: Start) -> None:
    database = unique("otel")
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {database} PARTITIONS 1")
        assert start("opentelemetry").ask("measure", database) is True

        def rows(sql: str) -> list[tuple[object, ...]]:
            # the SDK sends its last figures again when it is shut down
            return list(dict.fromkeys(map(tuple, client.query(sql, database=database).rows)))

        assert rows(
            "SELECT hall, _value, service_name, host_name FROM doors_opened ORDER BY hall"
        ) == [
            ("east", 7.0, "plant", "h1"),
            ("it's west", 5.0, "plant", "h1"),
        ]
        assert rows("SELECT _value, otel_scope_name, otel_scope_version FROM people") == [
            (-2.0, "meter.of.tests", "1.2")
        ]
        assert rows("SELECT floor, _value FROM heat") == [("2", 21.5)]
        assert rows("SELECT le, _value FROM wait_seconds_bucket ORDER BY _value, le") == [
            ("1.0", 1.0),
            ("10.0", 2.0),
            ("+Inf", 3.0),
        ]
        assert rows("SELECT _value FROM wait_seconds_sum") == [(22.5,)]
        assert rows("SELECT _value FROM wait_seconds_count") == [(3.0,)]
        client.execute(f"DROP DATABASE {database}")


def test_a_wrong_password(mesh: RunningMesh, start: Start) -> None:
    """The SDK tells its program nothing of it, so what counts is that nothing is written."""
    database = unique("otel")
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {database} PARTITIONS 1")
        start("opentelemetry", password="wrong").ask("measure", database)
        assert client.query("SHOW TABLES", database=database).rows == []
        client.execute(f"DROP DATABASE {database}")
