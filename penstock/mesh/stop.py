"""Stops a mesh from outside, also one whose supervisor was killed."""

from __future__ import annotations

import psutil

from penstock.errors import PenstockError
from penstock.mesh.layout import Layout
from penstock.mesh.state import read_state
from penstock.runtime.mesh_members import members


def stop_mesh(layout: Layout, seconds: float = 60.0) -> int:
    """Stop the mesh of *layout*, also what a killed supervisor left behind; the number of processes
    that were ended.

    Raises:
        PenstockError: something of it cannot be ended.
    """
    before = members(layout.root)
    state = read_state(layout)
    if state is not None:
        supervisor = psutil.Process(state["supervisor"])
        supervisor.terminate()
        try:
            supervisor.wait(seconds)
        except psutil.TimeoutExpired:
            supervisor.kill()
            supervisor.wait(5)
    end_orphans(layout)
    layout.state_file.unlink(missing_ok=True)
    return len(before)


def end_orphans(layout: Layout) -> None:
    """End every process that belongs to the mesh of *layout*, but not this one.

    Raises:
        PenstockError: some do not end.
    """
    left = members(layout.root)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(left, timeout=10)
    if alive:
        raise PenstockError(
            f"processes do not end: {', '.join(str(p.pid) for p in alive)}",
            hint="they ignore SIGKILL",
        )
