"""A mesh that faults happen to: started once, broken and mended by scenarios, started anew when one
has broken it for good.
"""

from __future__ import annotations

import contextlib
import http.client
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import redis

import penstock
from penstock.errors import PenstockError
from penstock.mesh.layout import Layout, free_ports
from penstock.mesh.running import RunningMesh, launch, wait_for_start
from penstock.mesh.stop import stop_mesh
from penstock.runtime.mesh_members import members
from penstock.setup.service_packages import ALL_SERVICES
from penstock.storage.vault import Vault
from tests.faults.table_load import GROUP
from tests.stack import jobs_kit, metrics_kit
from tests.stack.conftest import eventually
from tests.stack.federation_kit import SELF

T = TypeVar("T")
#: quick epochs, so that a snode has something to keep; patient about a busy machine
ENVIRONMENT = {
    "PENSTOCK_GATEWAY_LIVE_TIMEOUT": "120",
    "PENSTOCK_SPARK_EPOCH_SECONDS": "6",
    "PENSTOCK_SPARK_LEASE_SECONDS": "5",
    "PENSTOCK_NOTIFIER_RETRY_MAX": "1",
    **SELF,
}


def _has_ended(process: psutil.Process) -> bool:
    """Tell if a process runs no more, whether or not anybody has asked for its end."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class World:
    """One mesh on ports that stay, so that clients find it again after all of it was killed."""

    def __init__(
        self,
        directory: Path,
        services: tuple[str, ...] = ALL_SERVICES,
        *,
        standby: bool = False,
        **environment: str,
    ) -> None:
        self.directory = directory
        self.services = services
        self.standby = standby
        self._environment = {**ENVIRONMENT, **environment}
        self._ports = tuple(f"{name}={number}" for name, number in free_ports().by_name.items())
        self._supervisor: subprocess.Popen[bytes] | None = None
        self.mesh: RunningMesh = self.start()
        self.client = penstock.connect(
            self.mesh.gateway_url,
            password=self.mesh.password,
            options=penstock.ConnectionOptions(timeout=180),
        )
        self.client.execute("CREATE SNODE ON DNODE 1")

    def start(self) -> RunningMesh:
        """Start the mesh of the directory, new or as it was left: every service, and three nodes of
        stream tables.
        """
        self._supervisor = launch(
            self.directory,
            services=self.services,
            ports=self._ports,
            environment=self._environment,
            nodes=3,
            standby=self.standby,
        )
        settings = {}
        layout = Layout(self.directory.absolute())
        for state in wait_for_start(self._supervisor, layout):
            settings = state["settings"]
        self.mesh = RunningMesh(layout, settings)
        return self.mesh

    def close(self) -> None:
        if self._supervisor is not None and self._supervisor.poll() is None:
            self._supervisor.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._supervisor.wait(60)
        stop_mesh(self.mesh.layout)

    # ---------------------------------------------------------------- faults

    def kill(self, service: str) -> None:
        """kill -9 of a service's first process; returns when its successor is ready."""
        pid = self.mesh.kill(service)
        self.mesh.wait_ready(service, not_pid=pid, seconds=180)

    def kill_everything(self) -> None:
        """kill -9 of the whole mesh at once, its supervisor first, and a new start."""
        assert self._supervisor is not None
        victims = members(self.mesh.layout.root)
        self._supervisor.send_signal(signal.SIGKILL)
        for process in victims:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._supervisor.wait(30)
        psutil.wait_procs(victims, timeout=30)
        self.start()

    def table_leader(self) -> str:
        """The service whose node leads the group of stream tables."""

        def look() -> str:
            found = self.client.ha.nodes.leader(GROUP)
            return found.node.lower() if found is not None else ""

        return eventually(look, 60)

    def leader(self) -> str:
        """The service that runs the stream jobs; nothing while none does."""
        if not self.standby:
            return "spark"
        with self.redis() as client:
            return jobs_kit.leader(self.mesh, client)

    def jobs(self) -> list[psutil.Process]:
        """The driver, and behind each process those that it started."""
        return self.mesh.processes(eventually(self.leader, 60))

    def one_of_the_jobs(self, wanted: Callable[[psutil.Process], bool]) -> psutil.Process:
        """The first process below the driver that is *wanted*; waits for one."""

        def look() -> psutil.Process | None:
            for process in self.jobs()[1:]:
                with contextlib.suppress(psutil.Error):
                    if wanted(process):
                        return process
            return None

        found = eventually(look, 30)
        assert found is not None
        return found

    def jvm(self) -> psutil.Process:
        return self.one_of_the_jobs(lambda process: process.name() == "java")

    def worker(self) -> psutil.Process:
        """A Python worker of the jobs."""

        def works(process: psutil.Process) -> bool:
            parent = process.parent()
            # as an argument of its own: the JVM has it inside of another; the daemon itself is a
            # child of the JVM
            return (
                "spark_jobs.daemon" in process.cmdline()
                and parent is not None
                and parent.name() != "java"
            )

        return self.one_of_the_jobs(works)

    @contextmanager
    def nobody_restarts(self) -> Iterator[None]:
        """What dies inside the `with` stays dead until behind it: a supervisor that is awake starts
        it again at once.
        """
        assert self._supervisor is not None
        self._supervisor.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._supervisor.send_signal(signal.SIGCONT)

    @contextmanager
    def jobs_dead(self) -> Iterator[None]:
        """Inside the `with` nothing of the jobs runs; behind it they are ready again."""
        driver = self.mesh.pid("spark")
        with self.nobody_restarts():
            for process in self.jobs():  # who starts others sleeps before they are listed again
                with contextlib.suppress(psutil.Error):
                    process.suspend()
            doomed = self.jobs()
            for process in doomed:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            # orphans become the sleeping supervisor's, which takes them over once it is awake
            eventually(lambda: all(map(_has_ended, doomed)), 30)
            yield
        self.mesh.wait_ready("spark", not_pid=driver, seconds=360)

    @property
    def state(self) -> Path:
        return self.mesh.layout.root / "state"

    @property
    def vault(self) -> Vault:
        return Vault(str(self.mesh.layout.root / "backup"))

    def lose_redis(self) -> None:
        """Redis dies and comes back with nothing."""
        with self.nobody_restarts():
            pid = self.mesh.kill("redis")
            eventually(
                lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 10
            )  # its parent sleeps; a dead one writes no file
            for leftover in self.mesh.layout.redis.iterdir():
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                elif leftover.name != "redis.conf":
                    leftover.unlink()
        self.mesh.wait_ready("redis", not_pid=pid)

    def lag(self) -> float:
        """Records that wait, over all queries, as the jobs' metrics say; 0 while there are no
        jobs.
        """
        try:
            if not (leader := self.leader()):
                return 0.0
            lines = metrics_kit.text(self.mesh, leader, timeout=2).splitlines()
        # it may die over its answer
        except (OSError, http.client.HTTPException, redis.RedisError, PenstockError):
            return 0.0
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("penstock_lag_records{")
        )

    def redis(self) -> redis.Redis:
        found: redis.Redis = redis.Redis.from_url(self.mesh.redis_url, decode_responses=True)
        return found


def persistently(action: Callable[[], T], seconds: float = 180.0) -> T:
    """Repeat *action* until the mesh lets it; what is wrong with the question itself is raised at
    once.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return action()
        except PenstockError as error:
            if time.monotonic() > end or error.code.startswith(("E_SYNTAX", "E_SEMANTIC", "E_ROW")):
                raise
        time.sleep(0.1)
