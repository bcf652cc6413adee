"""start_* and cli_*: how long `penstock up` takes until SQL is answered and until all is ready, what
that costs, and how long commands take that need little.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import penstock
from bench.profile import Profile
from bench.report import Line, Recorder
from penstock.errors import PenstockError
from penstock.mesh.layout import Layout
from penstock.mesh.running import RunningMesh, launch
from penstock.mesh.state import read_state
from penstock.mesh.stop import stop_mesh
from penstock.runtime.mesh_members import members

_QUESTION = "SELECT count(*) FROM information_schema.ins_databases"
#: between two looks at what is being started
_LOOK_SECONDS = 0.05
#: runs of each command; the first one is not counted
_COMMANDS = 6
#: a start that takes longer is no start
_PATIENCE_SECONDS = 600.0


@dataclass(frozen=True)
class Start:
    """Seconds from the start of the process, and the core seconds of the whole mesh until then."""

    answer: float
    ready: float
    cpu: float


def measure(profile: Profile, record: Recorder) -> None:
    """Start a mesh in a new directory and again in the same one, as often as *profile* has
    rounds; then run commands beside the last.
    """
    cold = []
    warm = []
    for number in range(profile.rounds):
        with tempfile.TemporaryDirectory(prefix="penstock-start-") as directory:
            root = Path(directory) / "mesh"
            cold.append(_started(root, lambda root: None))
            last = number == profile.rounds - 1
            warm.append(
                _started(root, lambda root, last=last: _commands(root, record) if last else None)
            )
    for kind, starts in (("cold", cold), ("warm", warm)):
        of = "in a new data directory" if kind == "cold" else "in a directory of an earlier start"
        for name, unit, values, note in (
            ("sql", "s", [s.answer for s in starts], "until the first SELECT is answered"),
            ("ready", "s", [s.ready for s in starts], "until all services are ready"),
            ("cpu", "core s", [s.cpu for s in starts], "of all processes until then"),
        ):
            record.add(
                Line(
                    f"start_{kind}_{name}",
                    statistics.median(values),
                    unit,
                    note=f"{note}, {of}",
                    rounds=tuple(values),
                )
            )


def _started(root: Path, then: Callable[[Path], None]) -> Start:
    """Start a mesh in *root*, watch it come up, do something *then*, and stop it."""
    begun = time.monotonic()
    supervisor = launch(root)
    layout = Layout(root)
    try:
        answer = _wait(begun, lambda: _answers(layout, supervisor.pid))
        ready = _wait(begun, lambda: (_state(layout, supervisor.pid) or {}).get("ready", False))
        cpu = core_seconds(root, supervisor.pid)
        then(root)
    finally:
        supervisor.terminate()
        with suppress(subprocess.TimeoutExpired):
            supervisor.wait(60)
        stop_mesh(layout)
    return Start(answer, ready, cpu)


def _wait(begun: float, is_so: Callable[[], bool]) -> float:
    """Return the seconds from *begun* until something is so. Raises TimeoutError."""
    while not is_so():
        if time.monotonic() - begun > _PATIENCE_SECONDS:
            raise TimeoutError(f"the mesh is not up after {_PATIENCE_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - begun


def _state(layout: Layout, supervisor: int) -> dict[str, Any] | None:
    state = read_state(layout)
    return state if state is not None and state["supervisor"] == supervisor else None


def _answers(layout: Layout, supervisor: int) -> bool:
    """Tell whether a SELECT is answered already."""
    state = _state(layout, supervisor)
    if state is None:
        return False
    mesh = RunningMesh(layout, state["settings"])
    try:
        with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
            client.query(_QUESTION)
    except PenstockError:
        return False
    return True


def core_seconds(root: Path, supervisor: int) -> float:
    """Return the processor time so far of a mesh's processes, and of those of them that ended."""
    total = 0.0
    for process in [psutil.Process(supervisor), *members(root)]:
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def _commands(root: Path, record: Recorder) -> None:
    for name, words, what in (
        ("help", ["--help"], "penstock --help"),
        ("up_help", ["up", "--help"], "penstock up --help"),
        ("sql", ["sql", _QUESTION], "penstock sql of a SELECT"),
    ):
        times = [_run(root, words) for _ in range(_COMMANDS)][1:]
        record.add(
            Line(
                f"cli_{name}",
                statistics.median(times),
                "s",
                note=f"{what}, beside a mesh that rests",
                rounds=tuple(times),
            )
        )


def _run(root: Path, words: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "penstock.cli", *words],
        env={**os.environ, "PENSTOCK_DATA_DIR": str(root)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - begun
