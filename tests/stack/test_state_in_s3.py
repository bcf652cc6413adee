"""State of the stream jobs in an object store: nothing of it is on a disk that a successor
elsewhere would not have.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from penstock.mesh.running import running_mesh
from tests.stack.conftest import eventually
from tests.stack.operator_kit import SERVICES, OperatorKit
from tests.stack.test_kill_operator import Load, check, kill, start

pytestmark = pytest.mark.long

#: a server of our own, and keys that it does not look at
_KEYS = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.mark.timeout(600)
def test_a_successor_needs_only_the_bucket(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in _KEYS.items():
        monkeypatch.setenv(name, value)
    bucket = fsspec.filesystem("s3", endpoint_url=endpoint)
    bucket.mkdir("penstock")
    environment = {
        **_KEYS,
        "AWS_ENDPOINT_URL": endpoint,
        "PENSTOCK_STATE_DIR": "s3://penstock/state",
    }
    with ExitStack() as stack:
        mesh = stack.enter_context(
            running_mesh(tmp_path / "mesh", services=SERVICES, environment=environment)
        )
        kit = OperatorKit(mesh)
        stack.callback(kit.close)
        source, targets = start(kit)
        load = Load(kit, source)
        with load.flowing():
            for victim in ("worker", "driver"):
                seen = len(load.rows)
                eventually(lambda: len(load.rows) > seen + 40, 60)  # noqa: B023
                kill(kit, victim, random.Random(1))
                # what is on this machine's disk goes with the machine
                shutil.rmtree(tmp_path / "mesh/state/notes", ignore_errors=True)
        kit.drain("k", depth=1)
        check(kit, load.all(), targets)
        bucket.invalidate_cache()
        files = bucket.find("penstock/state")
        assert any(f.endswith(".full") for f in files) and not any(
            "checkpoints" in f for f in files
        )
        assert not [f for f in (tmp_path / "mesh").rglob("p*.full")]
