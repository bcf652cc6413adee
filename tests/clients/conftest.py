"""One mesh for all clients, with every wire switched on and the facts that all of them must see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import penstock
from penstock.mesh.running import RunningMesh, running_mesh
from tests.clients import facts
from tests.clients.program import Program

Start = Callable[..., Program]
#: faults of a client itself, by the end of the test's name; docs/clients.md tells them to users
FAULTS = {
    "test_flight_sql.py::test_types_limits_and_nulls[jdbc-flight-sql]": (
        "the driver reads unsigned numbers as signed ones"
    ),
    "test_flight_sql.py::test_an_empty_table_has_columns[jdbc-flight-sql]": (
        "the driver adds the columns of a Statement twice, and starts anew only when rows come"
    ),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        why = next((why for end, why in FAULTS.items() if item.nodeid.endswith(end)), None)
        if why is not None:
            item.add_marker(pytest.mark.xfail(strict=True, reason=why))


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    environment = {"PENSTOCK_GATEWAY_POSTGRES": "1", "PENSTOCK_GATEWAY_LIVE_TIMEOUT": "120"}
    with pytest.MonkeyPatch.context() as patched:
        # the launcher asks its own environment which ports there are
        patched.setenv("PENSTOCK_GATEWAY_POSTGRES", "1")
        with running_mesh(tmp_path_factory.mktemp("mesh"), environment=environment) as running:
            _write_facts(running)
            yield running


def _write_facts(mesh: RunningMesh) -> None:
    with penstock.connect(
        mesh.gateway_url, user=mesh.user, password=mesh.password, database=facts.DATABASE
    ) as client:
        for statement in (*facts.DEFINITIONS, *facts.INSERTS):
            client.execute(statement)
        begin = datetime(2024, 1, 1, tzinfo=UTC)
        client.write(
            "many", [{"ts": begin + timedelta(seconds=n), "n": n} for n in range(facts.MANY)]
        )
        client.drain()


@pytest.fixture(scope="session")
def options(mesh: RunningMesh) -> dict[str, Any]:
    """Return what programs are told of the mesh."""
    port_of = mesh.state()["ports"]
    return {
        "host": "127.0.0.1",
        "http": port_of["gateway"],
        "postgres": port_of["postgres"],
        "flight": port_of["store"],
        "kafka": mesh.kafka_bootstrap,
        "user": mesh.user,
        "password": mesh.password,
        "database": facts.DATABASE,
    }


@pytest.fixture(scope="module")
def start(
    mesh: RunningMesh, options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Start a client's program: `start("psycopg", zone="Europe/Berlin")`."""
    with ExitStack() as stack:

        def begin(client: str, **more: Any) -> Program:
            log = tmp_path_factory.mktemp(client) / "stderr"
            program = Program.start(client, {**options, **more}, log)
            stack.callback(program.close)
            return program

        yield begin
