"""What a room of a running mesh tells Prometheus."""

from __future__ import annotations

from urllib.request import urlopen

from penstock.mesh.running import RunningMesh
from tests.stack.federation_kit import health_port


def lines(mesh: RunningMesh, room: str) -> list[str]:
    with urlopen(f"http://127.0.0.1:{health_port(mesh, room)}/metrics", timeout=5) as answer:
        return list(answer.read().decode().splitlines())


def above_0(mesh: RunningMesh, room: str, name: str) -> bool:
    """Whether any metric whose line begins with *name* is above 0."""
    return any(line.startswith(name) and float(line.rpartition(" ")[2]) > 0 for line in lines(mesh, room))
