"""Two gateways on one mesh: either takes any statement, one leads the catalog, and the other takes
over when that one dies.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

import penstock
from penstock.errors import SqlSemanticError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import MeshFactory, eventually


@pytest.fixture
def mesh(own_mesh: MeshFactory) -> RunningMesh:
    return own_mesh(
        services=("kafka", "redis", "gateway", "store"),
        environment={"PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false"},
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def second(mesh: RunningMesh) -> Iterator[str]:
    """The address of another gateway."""
    port = free_port()
    health = free_port()
    own = {
        "PENSTOCK_GATEWAY_PORT": str(port),
        "PENSTOCK_GATEWAY_HEALTH_PORT": str(health),
        "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway"], env={**os.environ, **mesh.settings, **own}
    )
    try:
        eventually(lambda: httpx.get(f"http://127.0.0.1:{health}/readyz").status_code == 200, 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def test_ddl_goes_to_the_leader_and_leadership_moves(mesh: RunningMesh, second: str) -> None:
    here = penstock.connect(mesh.gateway_url, password=mesh.password, database="d")
    there = penstock.connect(second, password=mesh.password, database="d")
    with here, there:
        here.execute("CREATE DATABASE d PARTITIONS 2")
        there.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
        assert there.query("SHOW STABLES").rows == [("m",)]
        assert eventually(lambda: here.query("SHOW STABLES").rows) == [("m",)]
        with pytest.raises(SqlSemanticError, match="exists already") as refused:
            there.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
        assert refused.value.line == 1
        line = "weather,city=a temp=1 1700000000000"
        written = httpx.post(
            f"{second}/influxdb/v1/write?db=d&precision=ms",
            content=line,
            auth=(mesh.user, mesh.password),
            timeout=30,
        )
        assert written.status_code == 204

        key = secrets.token_hex(8)
        rows = [{"tbname": "a", "ts": 1_700_000_000_000, "v": 1, "g": 1}]
        assert here.write("m", rows, idempotency_key=key) == 1
        assert there.write("m", rows, idempotency_key=key) == 1
        assert there.write("m", [{**rows[0], "g": 99}]) == 1
        assert there.query("SELECT g, v FROM m").rows == [(1, 1)], (
            "the first tags of a child win, at every gateway"
        )

        for number in range(30):  # one alone may be there in time by chance
            there.execute(f"ALTER TABLE a SET TAG g = {number}")
            assert there.query("SELECT TAGS tbname, g FROM m").rows == [("a", number)]
            assert there.query("SELECT g FROM m").rows == [(number,)], "reads wait for own SET TAG"

        mesh.kill("gateway")
        assert eventually(
            lambda: there.execute("CREATE TABLE after (ts TIMESTAMP, v INT)") == 0, 30
        )
        assert there.execute("INSERT INTO after VALUES (NOW, 1)") == 1
        mesh.wait_ready("gateway")
        assert eventually(lambda: here.query("SELECT v FROM after").rows, 30) == [(1,)]
