"""Kafka and Redis as the services need them, and whole meshes, from two makers: the embedded mesh's
child processes, and containers.

Every test runs against both, or against what PENSTOCK_TEST_BACKEND names; without a Docker daemon
(or without an image) the container half skips and says what is missing.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.mesh.running import RunningMesh, running_mesh
from tests.backends import (
    KAFKA_IMAGE,
    REDIS_IMAGE,
    RunningStack,
    backends,
    require_image,
    running_stack,
)

# after tests.backends, which says how testcontainers is to behave here
from testcontainers.community.redis import RedisContainer  # isort: skip
from testcontainers.core.container import DockerContainer  # isort: skip
from testcontainers.core.wait_strategies import LogMessageWaitStrategy  # isort: skip

_MAKERS = [b if b == "local" else pytest.param(b, marks=pytest.mark.docker) for b in backends()]


@pytest.fixture(scope="session")
def local_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with running_mesh(tmp_path_factory.mktemp("servers"), services=("kafka", "redis")) as running:
        yield running


@contextmanager
def kafka_container() -> Iterator[str]:
    """A broker in the public image's layout. It learns the port it is reached at only when it runs,
    so it starts by waiting for that.
    """
    waiting = "while [ ! -f /tmp/advertised ]; do sleep 0.1; done; . /tmp/advertised; exec /etc/kafka/docker/run"
    settings = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,INSIDE://localhost:9094,CONTROLLER://localhost:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
        "KAFKA_MESSAGE_MAX_BYTES": str(32 << 20),
    }
    container = (
        DockerContainer(KAFKA_IMAGE).with_exposed_ports(9092).with_command(["sh", "-c", waiting])
    )
    for name, value in settings.items():
        container = container.with_env(name, value)
    with container:
        address = f"{container.get_container_host_ip()}:{container.get_exposed_port(9092)}"
        text = f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},INSIDE://localhost:9094\n".encode()
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            entry = tarfile.TarInfo("advertised")
            entry.size = len(text)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(text))
        container.get_wrapped_container().put_archive("/tmp", archive.getvalue())
        LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(120).wait_until_ready(
            container
        )
        yield address


@pytest.fixture(scope="session", params=_MAKERS)
def kafka(request: pytest.FixtureRequest) -> Iterator[str]:
    """Bootstrap address of a broker."""
    if request.param == "local":
        yield request.getfixturevalue("local_servers").kafka_bootstrap
        return
    require_image(KAFKA_IMAGE)
    with kafka_container() as address:
        yield address


@pytest.fixture(scope="session", params=_MAKERS)
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a redis-server, with its password."""
    if request.param == "local":
        yield request.getfixturevalue("local_servers").redis_url
        return
    require_image(REDIS_IMAGE)
    with RedisContainer(REDIS_IMAGE, password="between-us") as container:
        yield f"redis://:between-us@{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"


@pytest.fixture(scope="session", params=_MAKERS)
def mesh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningMesh | RunningStack]:
    """All services, shared by the session's tests: use names of your own."""
    directory = tmp_path_factory.mktemp("mesh")
    if request.param == "local":
        with running_mesh(
            directory, environment={"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "150"}
        ) as running:
            yield running
        return
    with running_stack(directory) as stack:
        yield stack


@pytest.fixture
def stack(mesh: RunningMesh | RunningStack) -> RunningStack:
    """The mesh where it is one of containers."""
    if not isinstance(mesh, RunningStack):
        pytest.skip("this is about containers")
    return mesh


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed and call.when in ("setup", "call"):
        running = getattr(item, "funcargs", {}).get("mesh")
        if running is not None:
            report.sections.append(("logs of the mesh", running.log_tails()))
