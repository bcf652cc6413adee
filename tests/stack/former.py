"""The former version of a mesh, started from its own sources in this environment: for the tests of an
upgrade.

Its dependencies are a subset of today's, so no environment of its own is needed. When a release
changes that, or makes another commit the former version, this file changes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.mesh.layout import Layout
from penstock.mesh.process import die_with_parent
from penstock.mesh.running import RunningMesh
from penstock.mesh.state import read_state, tail
from penstock.mesh.stop import stop_mesh
from tests.documents import ROOT

#: the commit of `v0.2.0`
COMMIT = "6ecc76556d1a801a05cab09c8cd10b8761c93712"
#: how often a start may be late, and what the former version then says
_STARTS = 3
_LATE = "is not ready in time"
_PACKAGES = ("penstock", "schemas", "gateway", "services", "spark_jobs")


def unpack(into: Path) -> Path:
    """Unpack the former version's packages below *into*; skip where the clone does not have them."""
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"], cwd=ROOT, capture_output=True
    )
    if known.returncode != 0:
        pytest.skip(
            f"this clone has no commit {COMMIT[:8]}, the former version: git fetch --unshallow"
        )
    into.mkdir()
    archive = subprocess.run(
        ["git", "archive", COMMIT, *_PACKAGES], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", into], input=archive.stdout, check=True)
    return into


@dataclass(frozen=True)
class FormerMesh:
    """A mesh of the former version that is up."""

    mesh: RunningMesh
    supervisor: subprocess.Popen[bytes]

    @property
    def ports(self) -> tuple[str, ...]:
        """Return its ports as `--port` takes them: who knew this mesh finds the next one there."""
        return tuple(f"{name}={number}" for name, number in self.mesh.state()["ports"].items())

    def stop(self) -> None:
        """Stop it as `penstock down` does."""
        self.supervisor.terminate()
        self.supervisor.wait(120)

    def kill(self) -> None:
        """Kill its supervisor: all its processes die with it, wherever they are in their work."""
        self.supervisor.kill()
        self.supervisor.wait(10)


@contextmanager
def former_mesh(
    sources: Path, data_dir: Path, environment: Mapping[str, str]
) -> Iterator[FormerMesh]:
    """A mesh of the former version in *data_dir*, started from *sources*; whatever is left of it at
    the end of the `with` is ended.
    """
    layout = Layout(data_dir)
    layout.make()
    variables = {**os.environ, **environment, "PYTHONPATH": str(sources)}
    with ExitStack() as ends:
        supervisor, settings = _start(sources, layout, variables, ends)
        yield FormerMesh(RunningMesh(layout, settings), supervisor)


def _start(
    sources: Path, layout: Layout, variables: Mapping[str, str], ends: ExitStack
) -> tuple[subprocess.Popen[bytes], Mapping[str, str]]:
    """Return the supervisor of a mesh that is up, and its addresses; *ends* ends all of it.

    0.1.0 gives a start five minutes, however busy the machine is. What it has prepared stays, so the
    next start needs less.
    """
    said = ""
    for _ in range(_STARTS):
        supervisor = ends.enter_context(_launch(sources, layout, variables))
        ends.callback(stop_mesh, layout)
        settings = _await_ready(supervisor, layout)
        if settings is not None:
            return supervisor, settings
        said = tail(layout, "supervisor", 60)
        assert _LATE in said, said
    raise AssertionError(f"{_STARTS} starts took too long: {said}")


def _launch(sources: Path, layout: Layout, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock.cli", "up", "--plain", "--port-base", "auto"]
    with layout.log("supervisor").open("wb") as output:
        return subprocess.Popen(
            [*command, "--data-dir", str(layout.root)],
            env=dict(variables),
            cwd=sources,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )


def _await_ready(supervisor: subprocess.Popen[bytes], layout: Layout) -> Mapping[str, str] | None:
    """Wait until all is ready, and return the addresses; None: the supervisor gave up."""
    while supervisor.poll() is None:
        state = read_state(layout)
        if state is not None and state["ready"]:
            settings: Mapping[str, str] = state["settings"]
            return settings
        time.sleep(0.1)
    return None
