"""The jobs' state elsewhere than on a volume that all share: in a bucket, and backed up behind
rsync.

Each test has a stack of its own, so the file comes before those that share one. The servers run on
this machine, at the address where containers find it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import docker
import fsspec
import pytest
from moto.server import ThreadedMotoServer

from penstock import names
from tests.backends import backends, require_image, running_stack
from tests.integration.load import Load
from tests.integration.test_restore import lose_and_restore
from tests.integration.test_stack import one_joins_another_dies
from tests.rsync_daemon import needs_rsync, rsync_daemon

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        "containers" not in backends(),
        reason="local: tests/stack has test_snode.py and test_state_in_s3.py",
    ),
]

SERVICES = ("kafka", "redis", "gateway", "notifier", "store", "edge", "jobs", "spark-worker")


@pytest.fixture
def host() -> str:
    """This machine as containers see it."""
    require_image("debian:bookworm-slim")
    return str(docker.from_env().networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"])


@pytest.fixture
def bucket(host: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Endpoint of an S3-compatible server that has the bucket `penstock`."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    server = ThreadedMotoServer(host, 0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    fsspec.filesystem("s3", endpoint_url=endpoint).mkdir("penstock")
    yield endpoint
    server.stop()


def test_workers_that_share_no_disk_take_over_from_each_other(bucket: str, tmp_path: Path) -> None:
    """Two workers with a bucket and nothing else in common: one joins while rows flow, the other
    dies.
    """
    name = f"db{secrets.token_hex(4)}"
    with (
        running_stack(
            tmp_path,
            files=["tests/integration/bucket.yml"],
            services=SERVICES,
            BUCKET_ENDPOINT=bucket,
        ) as stack,
        stack.connect() as client,
    ):
        with Load(client, name, partitions=4) as load:
            one_joins_another_dies(stack, load, names.ingest_topic(name), 1)
        files = fsspec.filesystem("s3", endpoint_url=bucket).find("penstock/state")
        assert any(f.endswith(".full") for f in files)
        load.drop()


@needs_rsync
def test_a_lost_volume_of_state_comes_back_from_an_rsync_daemon(host: str, tmp_path: Path) -> None:
    with (
        rsync_daemon(tmp_path / "daemon", host) as (url, there),
        running_stack(
            tmp_path / "stack", services=[*SERVICES, "snode"], STACK_BACKUP_DIR=url
        ) as stack,
        stack.connect() as client,
    ):
        lose_and_restore(stack, client)
        assert list(there.rglob("*.backup"))
