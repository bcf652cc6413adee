"""What a service of a running mesh tells Prometheus."""

from __future__ import annotations

from urllib.request import Request, urlopen

from penstock.mesh.running import RunningMesh
from tests.stack.federation_kit import health_port


def text(mesh: RunningMesh, service: str, timeout: float = 5) -> str:
    """All of it, with names. Raises OSError."""
    key = mesh.layout.metrics_key.read_text(encoding="utf-8").strip()
    asked = Request(
        f"http://127.0.0.1:{health_port(mesh, service)}/metrics",
        headers={"Authorization": f"Bearer {key}"},
    )
    with urlopen(asked, timeout=timeout) as answer:
        return str(answer.read().decode())


def lines(mesh: RunningMesh, service: str) -> list[str]:
    return text(mesh, service).splitlines()


def above_0(mesh: RunningMesh, service: str, name: str) -> bool:
    """Whether any metric whose line begins with *name* is above 0."""
    return any(
        line.startswith(name) and float(line.rpartition(" ")[2]) > 0
        for line in lines(mesh, service)
    )
