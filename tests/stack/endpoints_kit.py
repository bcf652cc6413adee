"""A mesh for tests of its endpoints: every service that answers somebody, and no stream jobs, which
these tests can do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.mesh.running import RunningMesh, running_mesh
from tests.stack.conftest import PATIENT

SERVICES = ("kafka", "redis", "gateway", "store", "notifier")
#: of the accounts that tests make
PASSWORD = "correct horse battery"


@contextmanager
def mesh_without_jobs(
    directory: Path,
    *,
    services: tuple[str, ...] = SERVICES,
    environment: Mapping[str, str] | None = None,
    nodes: int = 0,
) -> Iterator[RunningMesh]:
    """Run it in *directory*; *environment* and *nodes* are those of `running_mesh`."""
    own = {**PATIENT, "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false", **(environment or {})}
    with running_mesh(directory, services=services, environment=own, nodes=nodes) as running:
        yield running
