"""A hundred attackers without credentials hold up nobody who has some."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.security.conftest import SERVICES
from tests.stack.attackers import ATTACKERS, ATTACKS
from tests.stack.endpoints_kit import PASSWORD, mesh_without_jobs

#: of an attack, and what the slowest of a hundred statements may take meanwhile
SECONDS = 12
LIMIT_S = 0.5


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with mesh_without_jobs(tmp_path_factory.mktemp("mesh"), services=SERVICES, nodes=1) as running:
        yield running


def _pids(mesh: RunningMesh) -> dict[str, int]:
    return {service: mesh.pid(service) for service in mesh.state()["services"]}


@pytest.fixture(scope="module")
def ann(mesh: RunningMesh) -> Iterator[Connection]:
    with connect(
        mesh.gateway_url,
        user="root",
        password=mesh.password,
        options=ConnectionOptions(timeout=150),
    ) as root:
        root.execute("CREATE DATABASE plant; CREATE TABLE plant.meters (ts TIMESTAMP, v DOUBLE)")
        root.execute(f"CREATE USER ann PASS '{PASSWORD}'; GRANT READ, WRITE ON plant.meters TO ann")
    with connect(
        mesh.gateway_url, user="ann", password=PASSWORD, options=ConnectionOptions(timeout=60)
    ) as client:
        for _ in range(20):  # warm
            _statements(client)
        yield client


def _statements(client: Connection) -> list[float]:
    """Seconds of an INSERT and of a SELECT."""
    took = []
    for sql in ("INSERT INTO plant.meters VALUES (now, 1)", "SELECT count(*) FROM plant.meters"):
        began = time.perf_counter()
        client.execute(sql) if sql.startswith("INSERT") else client.query(sql)
        took.append(time.perf_counter() - began)
    return took


def _p99_while(client: Connection, going: Callable[[], bool]) -> tuple[float, float]:
    """Seconds of INSERT and SELECT."""
    took = []
    while going():
        took.append(_statements(client))
    inserts, selects = (sorted(one) for one in zip(*took, strict=True))
    at = int(len(took) * 0.99)
    return inserts[at], selects[at]


def _port(mesh: RunningMesh, endpoint: str) -> int:
    urls = {
        "gateway": mesh.gateway_url,
        "notifier": mesh.notifier_url,
        "store": mesh.store_url,
        "federation": mesh.federation_url,
    }
    return (
        urlsplit(urls[endpoint]).port or 0
        if endpoint in urls
        else int(mesh.state()["ports"][endpoint])
    )


#: what is done at which endpoint
_ENDPOINTS = [
    ("guesses", "gateway"),
    ("silent", "gateway"),
    ("sockets", "notifier"),
    ("calls", "store"),
    ("links", "federation"),
    ("silent", "federation"),
    ("nodes", "node1"),
    ("silent", "node1"),
    ("questions", "gateway-health"),
    ("silent", "gateway-health"),
    ("questions", "store-health"),
    ("silent", "federation-health"),
]


def test_every_attack_is_tried() -> None:
    assert {kind for kind, _ in _ENDPOINTS} == ATTACKS.keys()


@pytest.mark.long
@pytest.mark.parametrize(("kind", "endpoint"), _ENDPOINTS)
def test_select_and_insert_stay_quick_under_a_hundred_attackers(
    mesh: RunningMesh, ann: Connection, kind: str, endpoint: str
) -> None:
    port = _port(mesh, endpoint)
    pids = _pids(mesh)
    command = [sys.executable, "-m", "tests.stack.attackers", kind, str(port), str(SECONDS)]
    until = time.monotonic() + SECONDS
    before = _p99_while(ann, lambda: time.monotonic() < until)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attackers:
        during = _p99_while(ann, lambda: attackers.poll() is None)
        assert attackers.stdout is not None
        attempts = int(attackers.stdout.read())
    assert attempts >= ATTACKERS
    assert _pids(mesh) == pids, "a service was started anew: nobody could ask for its health"
    print(
        f"{kind} at {endpoint}: {attempts} attempts, p99 of INSERT and SELECT {during}, before {before}"
    )
    for came, quiet in zip(during, before, strict=True):
        assert came < max(LIMIT_S, 1.5 * quiet), (
            "a machine that is busy with others is slow without attackers, too"
        )
