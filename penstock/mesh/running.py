"""A mesh to use from a program: started in a process of its own, waited for, and stopped at the end
of a `with`.

Tests, demo, conformance runner and bench all start their mesh through here, so they meet the same
supervisor as `penstock up`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from penstock import bus
from penstock.errors import RemoteError
from penstock.mesh import kafka
from penstock.mesh.layout import Layout
from penstock.mesh.process import UMASK, die_with_parent
from penstock.mesh.state import read_state, tail
from penstock.mesh.stop import stop_mesh
from penstock.mesh.supervisor import stop_seconds
from penstock.setup.service_packages import ALL_SERVICES


@dataclass(frozen=True)
class RunningMesh:
    """Addresses and handles of a mesh that is up."""

    layout: Layout
    settings: Mapping[str, str]

    def __post_init__(self) -> None:
        """Have clients of Kafka that this process makes speak to the mesh's broker as the mesh
        itself does.
        """
        if "PENSTOCK_KAFKA_SECURITY" in self.settings:
            bus.secure(kafka.options(self.settings), self.kafka_bootstrap)

    @classmethod
    def attach(cls, data_dir: Path) -> RunningMesh | None:
        """The mesh that runs in *data_dir* already, whoever started it."""
        layout = Layout(data_dir.absolute())
        state = read_state(layout)
        return cls(layout, state["settings"]) if state is not None else None

    @property
    def kafka_bootstrap(self) -> str:
        return self.settings["PENSTOCK_KAFKA_BOOTSTRAP"]

    @property
    def kafka_client(self) -> dict[str, str]:
        """What a Kafka client of anybody's needs to speak to the broker as the mesh itself does, in
        librdkafka's names.
        """
        return {"bootstrap.servers": self.kafka_bootstrap, **kafka.options(self.settings)}

    @property
    def gateway_url(self) -> str:
        return self.settings["PENSTOCK_GATEWAY_URL"]

    @property
    def notifier_url(self) -> str:
        return self.settings["PENSTOCK_NOTIFIER_URL"]

    @property
    def store_url(self) -> str:
        return self.settings["PENSTOCK_STORE_URL"]

    def node_url(self, alias: str) -> str:
        """Return the URL of a node of stream tables."""
        scheme = "https" if self.gateway_url.startswith("https") else "http"
        return f"{scheme}://127.0.0.1:{self.state()['ports'][alias.lower()]}"

    @property
    def federation_url(self) -> str:
        return self.settings["PENSTOCK_FEDERATION_URL"]

    @property
    def redis_url(self) -> str:
        """With its password."""
        password = self.layout.secret("redis").read_text(encoding="utf-8").strip()
        return self.settings["PENSTOCK_REDIS_URL"].replace("redis://", f"redis://:{password}@", 1)

    @property
    def user(self) -> str:
        return "root"

    @property
    def password(self) -> str:
        return self.layout.secret("root").read_text(encoding="utf-8").strip()

    def state(self) -> dict[str, Any]:
        """What the supervisor knows now.

        Raises:
            RemoteError: it is gone.
        """
        state = read_state(self.layout)
        if state is None:
            raise RemoteError("the mesh is down", detail=tail(self.layout, "supervisor"))
        return state

    def pid(self, service: str) -> int:
        """Process id of the service's first process, which leads a group of its own.

        Raises:
            RemoteError: it does not run at the moment.
        """
        pid = self.state()["services"][service]["pid"]
        if pid is None:
            raise RemoteError(f"{service} does not run")
        return int(pid)

    def kill(self, service: str, number: int = signal.SIGKILL) -> int:
        """Send a signal to the service's first process only; its process id."""
        pid = self.pid(service)
        os.kill(pid, number)
        return pid

    def restart(self, service: str, grace: float | None = None) -> None:
        """Stop *service* and wait until its successor is ready; kill it when it has not stopped
        after *grace* seconds.

        Raises:
            RemoteError: the successor does not become ready.
        """
        process = psutil.Process(self.pid(service))
        with suppress(psutil.NoSuchProcess):
            process.terminate()
            try:
                process.wait(stop_seconds(service) if grace is None else grace)
            except psutil.TimeoutExpired:
                process.kill()
        self.wait_ready(service, not_pid=process.pid)

    def processes(self, service: str) -> list[psutil.Process]:
        """The service's first process and all below it."""
        first = psutil.Process(self.pid(service))
        return [first, *first.children(recursive=True)]

    def wait_ready(
        self, service: str | None = None, *, not_pid: int | None = None, seconds: float = 120.0
    ) -> None:
        """Wait until *service* (or every service) is ready, in another process than *not_pid* when
        that was killed.

        Raises:
            RemoteError: it is not, in that time; holds the end of the service's log.
        """
        deadline = time.monotonic() + seconds
        while True:
            services = self.state()["services"]
            chosen = {service: services[service]} if service else services
            waiting = {
                name: r
                for name, r in chosen.items()
                if r["state"] != "ready" or r["pid"] == not_pid
            }
            if not waiting:
                return
            if time.monotonic() > deadline:
                name, state = next(iter(waiting.items()))
                raise RemoteError(
                    f"{name} is {state['state']}: {state['why']}", detail=tail(self.layout, name)
                )
            time.sleep(0.05)

    def log_tails(self, lines: int = 25) -> str:
        """The end of every log, for a failure's report."""
        grown = sorted(path for path in self.layout.logs.glob("*.log") if path.stat().st_size)
        return "\n".join(
            f"--- {path.name}\n{tail(self.layout, path.stem, lines)}" for path in grown
        )


def launch(
    data_dir: Path,
    *,
    services: tuple[str, ...] = ALL_SERVICES,
    clock: Literal["system", "manual"] = "system",
    port_base: str = "auto",
    ports: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    safe: bool = False,
    nodes: int = 0,
    tied: bool = True,
    silent_seconds: float | None = None,
    open_kafka: bool = False,
    standby: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a supervisor in the background; *tied*: it ends when this process does."""
    layout = Layout(data_dir.absolute())
    layout.make()
    command = [
        sys.executable,
        "-m",
        "penstock.cli",
        "up",
        "--plain",
        "--data-dir",
        str(layout.root),
        "--services",
        ",".join(services),
    ]
    command += [
        "--nodes",
        str(nodes),
        "--clock",
        clock,
        "--port-base",
        port_base,
        *(f"--port={port}" for port in ports),
    ]
    command += ["--safe"] if safe else []
    command += ["--open-kafka"] if open_kafka else []
    command += ["--standby"] if standby else []
    command += ["--silent-seconds", str(silent_seconds)] if silent_seconds is not None else []
    with open(
        layout.log("supervisor"),
        "wb",
        opener=lambda path, flags: os.open(path, flags, 0o666 & ~UMASK),
    ) as output:
        return subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=UMASK,
            preexec_fn=die_with_parent(signal.SIGTERM) if tied else None,
        )


def wait_for_start(supervisor: subprocess.Popen[bytes], layout: Layout) -> Iterator[dict[str, Any]]:
    """Each new state while the mesh comes up; ends when all is ready. What is slow but moves is
    waited for.

    Raises:
        RemoteError: the supervisor gave up, and holds what it said; or a service stands still, and
            holds the end of its log. The others go on.
    """
    shown = ""
    while True:
        status = supervisor.poll()
        if status is not None:
            raise RemoteError("the mesh did not start", detail=tail(layout, "supervisor", 60))
        state = read_state(layout)
        if state is not None and state["supervisor"] == supervisor.pid:
            text = json.dumps(state)
            if text != shown:
                shown = text
                yield state
            if state["ready"]:
                return
            _require_movement(layout, state)
        time.sleep(0.05)


def _require_movement(layout: Layout, state: dict[str, Any]) -> None:
    for name, service in state["services"].items():
        if service["stands_still"]:
            raise RemoteError(
                f"{name} does not get on with its start: {service['why'] or 'no answer'}",
                detail=tail(layout, name),
                hint=f"whole log: {layout.log(name)}; `penstock down` stops the mesh",
            )


@contextmanager
def running_mesh(
    data_dir: Path,
    *,
    services: tuple[str, ...] = ALL_SERVICES,
    clock: Literal["system", "manual"] = "system",
    environment: Mapping[str, str] | None = None,
    port_base: str = "auto",
    ports: tuple[str, ...] = (),
    safe: bool = False,
    nodes: int = 0,
    silent_seconds: float | None = None,
    open_kafka: bool = False,
    standby: bool = False,
) -> Iterator[RunningMesh]:
    """A mesh in *data_dir* for the length of a `with`; *environment* is added to that of each
    service, *ports* are single ones by name (`gateway=7700`), *nodes* are of stream tables.

    A service that does not answer for *silent_seconds* is started again (0: never, None: as
    `penstock up` does it).

    Raises:
        RemoteError: it does not start.
    """
    layout = Layout(data_dir.absolute())
    supervisor = launch(
        data_dir,
        services=services,
        clock=clock,
        port_base=port_base,
        ports=ports,
        environment=environment,
        safe=safe,
        nodes=nodes,
        silent_seconds=silent_seconds,
        open_kafka=open_kafka,
        standby=standby,
    )
    try:
        settings: Mapping[str, str] = {}
        for state in wait_for_start(supervisor, layout):
            settings = state["settings"]
        yield RunningMesh(layout, settings)
    finally:
        if supervisor.poll() is None:
            supervisor.terminate()
            try:
                supervisor.wait(60)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
        stop_mesh(layout)
