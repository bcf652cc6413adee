"""The training run of the broker and of Spark: a mesh of its own works for a while, and its JVMs
write down what they have learned (`penstock.setup.aot_cache`).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import psutil

from penstock.client.connection import Connection, connect
from penstock.errors import StateError
from penstock.mesh.layout import Layout
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.setup.aot_cache import make_cache, recording
from penstock.setup.java import find_java
from penstock.setup.jvm_programs import JvmProgram, broker, spark

#: long enough for both compilers to have seen what runs often
_WORK_SECONDS = 20.0
_ROWS_AT_ONCE = 10
_TABLES = 4
#: how long a JVM takes to write on a very slow machine
_WRITE_SECONDS = 120.0
_DATABASE = "training"
_SETUP = (
    f"CREATE DATABASE {_DATABASE}",
    f"CREATE STABLE {_DATABASE}.meters (ts TIMESTAMP, seq BIGINT, current DOUBLE) TAGS (site INT)",
    f"CREATE STREAM {_DATABASE}.windows TRIGGER AT_ONCE INTO {_DATABASE}.by_second AS SELECT"
    f" _wstart, count(*) AS n, avg(current) AS mean FROM {_DATABASE}.meters PARTITION BY tbname AS"
    " meter INTERVAL(1s)",
    f"CREATE STREAM {_DATABASE}.filter TRIGGER AT_ONCE INTO {_DATABASE}.high AS SELECT ts, seq,"
    f" current FROM {_DATABASE}.meters WHERE current > 90 PARTITION BY tbname AS meter",
)


def train() -> None:
    """Have a mesh work, and make the caches from what its JVMs have learned. Takes about a minute
    on two cores.

    Raises:
        RemoteError: the mesh does not start.
        StateError: a JVM wrote nothing, or Java made no cache from it.
        ConfigError: a jar is not there.
    """
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="penstock-training-") as directory:
        layout = Layout(Path(directory) / "mesh")
        layout.make()
        layout.recordings.mkdir(mode=0o700)
        kept = Path(directory)
        with running_mesh(layout.root, silent_seconds=0) as mesh:
            with connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
                _work(client)
            # Spark first: it reads from the broker until it ends
            commands = [
                (program, _end(program, _jvm(mesh, service), layout, kept))
                for program, service in ((spark(), "spark"), (broker(), "kafka"))
            ]
        for program, command in commands:
            make_cache(java, program, command, recording(program, kept))


def _work(client: Connection) -> None:
    for statement in _SETUP:
        client.execute(statement)
    began = time.monotonic()
    seq = 0
    with client.writer(f"{_DATABASE}.meters") as writer:
        while time.monotonic() - began < _WORK_SECONDS:
            rows = [
                {
                    "tbname": f"m{number % _TABLES}",
                    "site": number % _TABLES,
                    "ts": time.time_ns() // 1_000_000,
                    "seq": number,
                    "current": float(number % 100),
                }
                for number in range(seq, seq + _ROWS_AT_ONCE)
            ]
            seq += _ROWS_AT_ONCE
            writer.write(rows)
            # no more than there is time for: nothing may wait in a queue
            writer.flush()
    client.drain(_DATABASE)


def _jvm(mesh: RunningMesh, service: str) -> psutil.Process:
    return next(process for process in mesh.processes(service) if process.name() == "java")


def _end(program: JvmProgram, jvm: psutil.Process, layout: Layout, kept: Path) -> list[str]:
    """End *jvm*, keep what it writes then in *kept*, and return how it was started."""
    command = jvm.cmdline()
    jvm.terminate()
    try:
        jvm.wait(_WRITE_SECONDS)
        # its successor will be recording to the same place
        recording(program, layout.recordings).rename(recording(program, kept))
    except (psutil.TimeoutExpired, FileNotFoundError) as wrong:
        raise StateError(f"{program.name} wrote nothing in its training run") from wrong
    return command
