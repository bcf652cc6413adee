"""The supervisor with real servers: what dies comes back, what is stopped is gone, and nothing is
started twice.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis
from confluent_kafka.admin import AdminClient

from penstock import names
from penstock.errors import RemoteError
from penstock.mesh.layout import Layout
from penstock.mesh.running import RunningMesh, launch, running_mesh, wait_for_start
from penstock.mesh.stop import stop_mesh
from penstock.runtime.mesh_members import members

from .conftest import MeshFactory, eventually

SERVERS = ("kafka", "redis")


def penstock(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PENSTOCK_DATA_DIR": str(data_dir), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "penstock.cli", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> RunningMesh:  # type: ignore[misc]
    with running_mesh(tmp_path_factory.mktemp("servers"), services=SERVERS) as running:
        yield running


def test_built_in_topics_are_there(servers: RunningMesh) -> None:
    found = AdminClient(servers.kafka_client).list_topics(timeout=10).topics
    assert {
        name: len(found[name].partitions) for name in names.BUILT_IN_TOPICS
    } == names.BUILT_IN_TOPICS


def test_redis_wants_the_generated_password(servers: RunningMesh) -> None:
    assert redis.from_url(servers.redis_url).ping()
    with pytest.raises(redis.AuthenticationError):
        redis.from_url(servers.settings["PENSTOCK_REDIS_URL"]).ping()
    for name in ("root", "redis", "kafka"):
        assert stat.S_IMODE(servers.layout.secret(name).stat().st_mode) == 0o600


@pytest.mark.parametrize("service", SERVERS)
def test_a_killed_service_comes_back(servers: RunningMesh, service: str) -> None:
    before = servers.state()["services"][service]["restarts"]
    pid = servers.kill(service)
    servers.wait_ready(service, not_pid=pid, seconds=60)
    assert servers.state()["services"][service]["restarts"] == before + 1


def test_restart_and_status(servers: RunningMesh) -> None:
    root = servers.layout.root
    pid = servers.pid("redis")
    assert penstock(root, "restart", "redis").returncode == 0
    assert servers.pid("redis") != pid
    status = penstock(root, "status")
    assert status.returncode == 0, status.stderr
    assert all(
        word in status.stdout
        for word in ("kafka", "redis", "ready", "PSS MB", str(servers.pid("redis")))
    )


def test_second_mesh_in_the_same_directory_is_refused(servers: RunningMesh) -> None:
    second = penstock(
        servers.layout.root, "up", "--plain", "--services", "redis", "--port-base", "auto"
    )
    assert second.returncode == 78
    assert "runs already" in second.stderr


def test_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = penstock(
            tmp_path, "up", "--plain", "--services", "redis", "--port", f"redis={port}"
        )
    assert refused.returncode == 78
    assert f"redis {port}" in refused.stderr and "--port-base" in refused.stderr
    assert not members(tmp_path)


def test_unknown_service_is_refused(tmp_path: Path) -> None:
    refused = penstock(tmp_path, "up", "--services", "kafka,attic")
    assert refused.returncode == 78
    assert "attic: no such service" in refused.stderr


def test_children_die_with_a_killed_supervisor_and_data_stays(
    own_mesh: MeshFactory, tmp_path: Path
) -> None:
    first = own_mesh(tmp_path / "data", services=SERVERS)
    redis.from_url(first.redis_url).set("kept", "yes")
    children = [psutil.Process(first.pid(service)) for service in SERVERS]
    os.kill(first.state()["supervisor"], signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    second = own_mesh(tmp_path / "data", services=SERVERS)
    assert redis.from_url(second.redis_url).get("kept") == b"yes"


def test_services_killed_together_are_forked_again(own_mesh: MeshFactory, tmp_path: Path) -> None:
    """One import serves them all, as at the first start."""
    mesh = own_mesh(tmp_path / "data", services=(*SERVERS, "gateway", "store", "notifier"))
    supervisor = psutil.Process(mesh.state()["supervisor"])
    mesh.wait_ready()
    victims = [p for p in members(mesh.layout.root) if p.pid != supervisor.pid]
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, timeout=30)
    mesh.wait_ready(seconds=120)
    titles = [" ".join(child.cmdline()) for child in supervisor.children()]
    assert sum("penstock.mesh.forkserver" in title for title in titles) == 1, titles


def test_down_leaves_nothing(tmp_path: Path) -> None:
    up = penstock(tmp_path, "up", "--detach", "--services", "kafka,redis", "--port-base", "auto")
    assert up.returncode == 0, up.stderr
    assert len(members(tmp_path)) == 2
    assert penstock(tmp_path, "down").returncode == 0
    assert not members(tmp_path)
    assert penstock(tmp_path, "status").returncode == 1


def test_a_service_that_cannot_start_ends_the_start_with_its_log(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    # a damaged append-only file: redis-server says so and exits, every time
    (layout.redis / "appendonly.aof").write_bytes(b"*2\r\n$9\r\nnot redis at all\r\n")
    supervisor = launch(tmp_path, services=("redis",))
    with pytest.raises(RemoteError) as failed:
        for _ in wait_for_start(supervisor, layout):
            pass
    assert "redis does not start" in failed.value.detail
    eventually(lambda: not members(tmp_path), 10)
    stop_mesh(layout)
