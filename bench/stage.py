"""A mesh to measure: start it, hold and release its stream jobs, watch their positions, count their
CPU and memory.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import redis

from penstock import names
from penstock.bus import Admin
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import RemoteError
from penstock.mesh.process import proportional_memory
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.setup.service_packages import ALL_SERVICES

_PATIENCE = 900.0


@dataclass
class Stage:
    """The mesh and everything a measurement needs of it."""

    mesh: RunningMesh
    client: Connection
    admin: Admin
    redis: redis.Redis
    catalog: CatalogReader

    def table(self, database: str, name: str) -> Table:
        """The table as the catalog has it, once it has it."""
        self.catalog.wait_for(lambda c: c.table(database, name) is not None, 30)
        found = self.catalog.catalog.table(database, name)
        assert found is not None
        return found

    def ends(self, topic: str) -> dict[int, int]:
        partitions = self.admin.topics()[topic]
        return {
            p: offset
            for (_, p), offset in self.admin.end_offsets(
                [(topic, p) for p in range(partitions)]
            ).items()
        }

    def positions(self, topic: str) -> dict[int, int]:
        """Next source offset of each partition that the operator has saved, so with all results
        before it acknowledged.
        """
        return {
            int(k): int(v)
            for k, v in self.redis.hgetall(names.query_progress(topic)).items()
            if str(k).isdigit()
        }

    def mode(self, topic: str) -> str:
        """`realtime`, `microbatch` or `rest`; `-` while the topic is not minded."""
        beat = self.redis.get(names.query_heartbeat(topic))
        return "-" if beat is None else str(json.loads(str(beat))["mode"])

    @contextlib.contextmanager
    def held(self, service: str = "spark") -> Iterator[None]:
        """Stop every process of a service where it is, and let it go on afterwards: warm, and with a
        backlog.
        """
        processes = self.mesh.processes(service)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)

    def caught_up(self, topic: str, until: Mapping[int, int], start: Mapping[int, int]) -> Drained:
        """Wait until the operator has saved the position *until* everywhere; how its positions
        moved on the way.
        """
        times = []
        moved = []
        modes = set()
        begin = time.monotonic()
        while True:
            found = self.positions(topic)
            now = time.monotonic()
            times.append(now - begin)
            moved.append(
                sum(
                    min(max(found.get(p, 0) - start.get(p, 0), 0), end - start.get(p, 0))
                    for p, end in until.items()
                )
            )
            if moved[-1] > 0:
                modes.add(self.mode(topic))
            if all(found.get(p, 0) >= end for p, end in until.items()):
                return Drained(np.array(times), np.array(moved), modes - {"-", "rest"})
            if now - begin > _PATIENCE:
                raise RemoteError(
                    f"{topic} is not caught up after {_PATIENCE:g} s",
                    detail=f"{found} of {dict(until)}",
                )
            time.sleep(0.02)

    def cpu(self, service: str) -> float:
        """CPU seconds of a service so far, of its processes that ended too."""
        total = 0.0
        for process in self.mesh.processes(service):
            with contextlib.suppress(psutil.NoSuchProcess):
                t = process.cpu_times()
                total += t.user + t.system + t.children_user + t.children_system
        return total

    def memory(self) -> dict[str, float]:
        """PSS of each service in MiB."""
        services = self.mesh.state()["services"]
        return {
            name: proportional_memory(int(r["pid"])) / 2**20
            for name, r in services.items()
            if r["pid"]
        }

    def drop(self, database: str) -> None:
        self.client.execute(f"DROP DATABASE IF EXISTS {database}")


@dataclass(frozen=True)
class Drained:
    """Records worked on by the time; both arrays have one entry a look."""

    times: np.ndarray[tuple[int], np.dtype[np.float64]]
    records: np.ndarray[tuple[int], np.dtype[np.int64]]
    modes: set[str]

    @property
    def rate(self) -> float:
        """Records/s between the first and the last position saved; what came before the first
        (start-up of a query) is apart.
        """
        first = int(np.argmax(self.records > 0))
        last = int(np.argmax(self.records >= self.records[-1]))
        if last <= first:
            return float(self.records[-1] / max(self.times[last], 1e-9))
        return float(
            (self.records[last] - self.records[first]) / (self.times[last] - self.times[first])
        )

    @property
    def steady(self) -> float:
        """Records/s between a tenth and nine tenths of the way: without the switch to micro-batches
        and the last partition's tail.
        """
        low, high = (int(np.argmax(self.records >= self.records[-1] * part)) for part in (0.1, 0.9))
        seconds = float(self.times[high] - self.times[low])
        return float(self.records[high] - self.records[low]) / seconds if seconds > 0 else self.rate

    @property
    def start_up(self) -> float:
        return float(self.times[int(np.argmax(self.records > 0))])


@contextlib.contextmanager
def stage(
    services: tuple[str, ...] = ALL_SERVICES,
    environment: Mapping[str, str] | None = None,
    nodes: int = 0,
    *,
    standby: bool = False,
) -> Iterator[Stage]:
    """A fresh mesh for the length of a `with`; its data is removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        # held processes do not answer, and are not to be started again for it
        with running_mesh(
            directory,
            services=services,
            environment=environment,
            nodes=nodes,
            silent_seconds=0,
            standby=standby,
        ) as mesh:
            catalog = CatalogReader(mesh.kafka_bootstrap, client_id="bench", children=False).start()
            client = connect(
                mesh.gateway_url,
                user=mesh.user,
                password=mesh.password,
                options=ConnectionOptions(timeout=120.0),
            )
            try:
                yield Stage(
                    mesh,
                    client,
                    Admin(mesh.kafka_bootstrap),
                    redis.Redis.from_url(mesh.redis_url, decode_responses=True),
                    catalog,
                )
            finally:
                client.close()
                catalog.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
