"""Prometheus itself sends what it scrapes by remote write."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.names import unique


@pytest.fixture
def database(mesh: RunningMesh) -> Iterator[str]:
    name = unique("prometheus")
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {name} PARTITIONS 1")
        yield name
        client.execute(f"DROP DATABASE {name}")


@pytest.fixture
def prometheus(mesh: RunningMesh, database: str, tmp_path: Path) -> Iterator[str]:
    """A Prometheus that scrapes itself each second; its address."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus: on Debian, apt-get install prometheus")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    target: dict[str, Any] = {
        "url": f"{mesh.gateway_url}/api/v1/write?db={database}",
        "basic_auth": {"username": mesh.user, "password": mesh.password},
        "queue_config": {"batch_send_deadline": "1s"},
    }
    settings = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "self", "static_configs": [{"targets": [address]}]}],
        "remote_write": [target],
    }
    # JSON is YAML
    (tmp_path / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    words = [program, f"--config.file={tmp_path / 'prometheus.yml'}"]
    words += [f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address={address}"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log) as run,
    ):
        yield address
        run.terminate()


def test_remote_write(mesh: RunningMesh, database: str, prometheus: str) -> None:
    with penstock.connect(
        mesh.gateway_url, user=mesh.user, password=mesh.password, database=database
    ) as client:

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in client.query(sql).rows]

        # `up` is 1 from the second scrape on: at the first, Prometheus may not listen yet
        eventually(lambda: rows("SELECT count(*) FROM up WHERE _value = 1")[0][0] >= 3, 60)
        assert rows("SELECT DISTINCT job, instance FROM up") == [("self", prometheus)]
        built = rows("SELECT DISTINCT _value, version FROM prometheus_build_info")
        assert [value for value, _ in built] == [1.0] and built[0][1]
        sizes = "prometheus_tsdb_compaction_chunk_size_bytes_bucket"
        bounds = [le for (le,) in rows(f"SELECT DISTINCT le FROM {sizes}")]
        assert "+Inf" in bounds and len(bounds) > 5
