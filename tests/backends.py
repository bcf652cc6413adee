"""A whole mesh to test against, embedded or in containers, with one handle for both: addresses,
kill, wait.

`PENSTOCK_TEST_BACKEND=local|containers` chooses. In containers it is the repository's own compose
file with a name, passwords and ports of its own, through testcontainers. What exists in one of them
only (files of the embedded mesh, containers of the stack) skips a test by name in the other.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import docker
import pytest
from docker.errors import DockerException, ImageNotFound
from docker.models.containers import Container

# the reaper's image is one more to have; fixtures stop what they start. /.dockerenv does not make
# this a container's network
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")

from testcontainers.compose import DockerCompose  # noqa: E402

from penstock import bus, names  # noqa: E402
from penstock.client.connection import Connection, connect  # noqa: E402
from penstock.client.connection_options import ConnectionOptions  # noqa: E402
from penstock.mesh.layout import free_ports  # noqa: E402
from tests.documents import ROOT  # noqa: E402

KAFKA_IMAGE = "apache/kafka:4.3.1"
REDIS_IMAGE = "redis:7-bookworm"
BASE_IMAGES = ("python:3.11-slim-bookworm", "eclipse-temurin:17-jre", "debian:bookworm-slim")
#: a busy machine is slow, not wrong
_PATIENT = {"STACK_LIVE_TIMEOUT": "150", "STACK_WORKER_SLOTS": "96", "STACK_EXTERNAL_SELF": "true"}


def backends() -> list[str]:
    """What the environment asks for; both when it asks for nothing."""
    chosen = os.environ.get("PENSTOCK_TEST_BACKEND")
    if chosen not in (None, "", "local", "containers"):
        pytest.exit(f"PENSTOCK_TEST_BACKEND={chosen}: it is local or containers", returncode=4)
    return [chosen] if chosen else ["local", "containers"]


def require_image(image: str) -> None:
    """Skip the test unless there is a Docker daemon that has the image or can pull it."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as absent:
        pytest.skip(f"no Docker daemon: {absent}")
    try:
        client.images.get(image)
    except ImageNotFound:
        try:
            client.images.pull(image)
        except DockerException as absent:
            pytest.skip(f"no image {image}: {absent}")


def require_compose() -> None:
    """Skip the test where there is no docker compose."""
    found = (
        shutil.which("docker")
        and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    )
    if not found:
        pytest.skip("no docker compose")


@dataclass
class RunningStack:
    """A compose project that is up. Has the addresses of a `RunningMesh`; services are compose's
    services.
    """

    compose: DockerCompose
    variables: Mapping[str, str]
    directory: Path
    docker: docker.DockerClient = field(default_factory=docker.from_env)

    def __post_init__(self) -> None:
        """Have clients of Kafka that this process makes speak to the stack's brokers as the mesh
        itself does.
        """
        options = {k: v for k, v in self.kafka_client.items() if k != "bootstrap.servers"}
        bus.secure(options, self.kafka_bootstrap)

    @property
    def name(self) -> str:
        return self.variables["STACK_NAME"]

    @property
    def host(self) -> str:
        return self.variables.get("STACK_BIND", "127.0.0.1")

    @property
    def kafka_bootstrap(self) -> str:
        return f"{self.host}:{self.variables['STACK_KAFKA_PORT']}"

    @property
    def kafka_client(self) -> dict[str, str]:
        """What a Kafka client of anybody's needs to speak to the brokers as the mesh itself does,
        in librdkafka's names.
        """
        return {
            "bootstrap.servers": self.kafka_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": names.KAFKA_USER,
            "sasl.password": self._secret("kafka"),
        }

    @property
    def gateway_url(self) -> str:
        return f"http://{self.host}:{self.variables['STACK_GATEWAY_PORT']}"

    @property
    def notifier_url(self) -> str:
        return f"ws://{self.host}:{self.variables['STACK_NOTIFIER_PORT']}"

    @property
    def store_url(self) -> str:
        return f"grpc://{self.host}:{self.variables['STACK_STORE_PORT']}"

    @property
    def redis_url(self) -> str:
        return (
            f"redis://:{self._secret('redis')}@{self.host}:{self.variables['STACK_REDIS_PORT']}/0"
        )

    @property
    def user(self) -> str:
        return "root"

    @property
    def password(self) -> str:
        return self._secret("root")

    def _secret(self, name: str) -> str:
        return (self.directory / "secrets" / f"{name}.password").read_text(encoding="utf-8").strip()

    def connect(self, *, timeout: float = 180.0) -> Connection:
        return connect(
            self.gateway_url,
            user=self.user,
            password=self.password,
            options=ConnectionOptions(timeout=timeout),
        )

    def containers(self, service: str) -> list[Container]:
        """Containers of a service, those that are down too, by their number."""
        labels = [
            f"com.docker.compose.project={self.name}",
            f"com.docker.compose.service={service}",
        ]
        found = self.docker.containers.list(all=True, filters={"label": labels})
        return sorted(found, key=lambda c: int(c.labels["com.docker.compose.container-number"]))

    def container(self, service: str, number: int = 1) -> Container:
        return self.containers(service)[number - 1]

    def pid(self, service: str, number: int = 1) -> int:
        """Of the container's first process, on this machine; 0 while it is down."""
        return int(self.container(service, number).attrs["State"]["Pid"])

    def kill(self, service: str, number: int = 1) -> int:
        """Kill a container's first process from outside, so that Docker starts it again; `docker
        kill` would count as a stop.
        """
        pid = self.pid(service, number)
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            container = self.container(service, number)
            container.kill()
            container.start()
        return pid

    def wait_ready(
        self, service: str, *, not_pid: int | None = None, seconds: float = 180.0
    ) -> None:
        """Wait until every container of a service is healthy, and none is the one that was
        killed.
        """
        deadline = time.monotonic() + seconds
        while True:
            states = [c.attrs["State"] for c in self.containers(service)]
            if states and all(
                s["Running"]
                and s.get("Health", {}).get("Status") == "healthy"
                and s["Pid"] != not_pid
                for s in states
            ):
                return
            assert time.monotonic() < deadline, (
                f"{service} does not get ready: {states}\n{self.log_tails()}"
            )
            time.sleep(0.1)

    def scale(self, **numbers: int) -> None:
        """Run so many containers of each service (`spark_worker=2`)."""
        chosen = [
            f"--scale={service.replace('_', '-')}={number}" for service, number in numbers.items()
        ]
        self.up(*chosen)

    def up(self, *options: str) -> None:
        """Start what is missing of the stack's services, and wait until all is healthy."""
        self.run(
            "up", "--detach", "--wait", "--no-recreate", *options, *(self.compose.services or ())
        )

    def run(self, *arguments: str) -> str:
        """A command of docker compose on this project."""
        command = [*self.compose.docker_compose_command(), *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr[-3000:]}"
        return done.stdout

    def log_tails(self, lines: int = 15) -> str:
        """The end of every container's log, for a failure's report."""
        return self.run("logs", "--no-color", "--tail", str(lines))

    @property
    def layout(self) -> NoReturn:
        """The embedded mesh's files."""
        pytest.skip("containers: this test looks into files of the embedded mesh")

    def state(self) -> NoReturn:
        pytest.skip("containers: this test asks the embedded mesh's supervisor")

    settings = property(state)
    processes = state


def build() -> None:
    """Build the images as they are now; quick when nothing has changed."""
    require_compose()
    for image in (KAFKA_IMAGE, REDIS_IMAGE, *BASE_IMAGES):
        require_image(image)
    done = subprocess.run(
        [ROOT / "deploy/stack", "build"], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-4000:]


@contextmanager
def running_stack(
    directory: Path,
    *,
    profiles: Sequence[str] = (),
    env_files: Sequence[str] = (),
    files: Sequence[str] = (),
    services: Sequence[str] = (),
    **variables: str,
) -> Iterator[RunningStack]:
    """The compose stack for the length of a `with`, in a project of its own; *files* are put over
    the repository's compose file; *services* alone when given; *variables* are those of
    .env.example, and of *files*."""
    build()
    ports = {
        f"STACK_{n.upper().replace('-', '_')}_PORT": str(p) for n, p in free_ports().by_name.items()
    }
    more = {
        f"STACK_{n}_PORT": str(p)
        for n, p in zip(("KAFKA_2", "KAFKA_3"), list(free_ports().by_name.values()), strict=False)
    }
    own = {
        "STACK_NAME": f"penstock-test-{secrets.token_hex(3)}",
        "STACK_SECRETS": str(directory / "secrets"),
    }
    chosen = {**ports, **more, **_PATIENT, **own, **variables}
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([ROOT / "deploy/stack", "secrets"], env={**os.environ, **own}, check=True)
    file = directory / "stack.env"
    file.write_text("".join(f"{k}={v}\n" for k, v in chosen.items()), encoding="utf-8")
    compose = DockerCompose(
        ROOT,
        compose_file_name=["docker-compose.yml", *files],
        env_file=[*(str(ROOT / f) for f in env_files), str(file)],
        profiles=list(profiles),
        services=list(services) or None,
        wait=True,
    )
    stack = RunningStack(compose, chosen, directory)
    try:
        compose.start()
        yield stack
    except subprocess.CalledProcessError as failed:
        raise AssertionError(
            f"the stack does not come up: {failed.stderr[-2000:]!r}\n{stack.log_tails()}"
        ) from failed
    finally:
        stack.run("--profile", "*", "down", "--volumes", "--remove-orphans", "--timeout", "3")
