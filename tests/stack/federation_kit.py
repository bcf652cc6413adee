"""Meshes for the tests of federation: services without stream jobs, flushing often, and links into
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.client.connection import Connection, connect
from penstock.link.address import Address
from penstock.link.client import Link
from penstock.mesh.running import RunningMesh, running_mesh

SERVICES = ("kafka", "redis", "gateway", "store", "federation")
ENVIRONMENT = {
    "PENSTOCK_STORE_FLUSH_SECONDS": "1",
    "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false",
    "PENSTOCK_GATEWAY_LIVE_TIMEOUT": "60",
}
#: for a mesh that is its own other deployment
SELF = {"PENSTOCK_EXTERNAL_SELF": "true"}
#: 2026-01-01
T0 = 1_767_225_600_000


@contextmanager
def deployment(
    directory: Path, *statements: str, environment: Mapping[str, str] | None = None
) -> Iterator[RunningMesh]:
    """A mesh of its own in *directory*, in which *statements* have run; what tests stop for a while
    is not started again.
    """
    with running_mesh(
        directory,
        services=SERVICES,
        environment={**ENVIRONMENT, **(environment or {})},
        silent_seconds=0,
    ) as mesh:
        with client_of(mesh) as client:
            for statement in statements:
                client.execute(statement)
        yield mesh


def client_of(mesh: RunningMesh) -> Connection:
    return connect(mesh.gateway_url, user=mesh.user, password=mesh.password)


def address_of(mesh: RunningMesh, **changes: Any) -> Address:
    port = int(mesh.settings["PENSTOCK_FEDERATION_URL"].rpartition(":")[2])
    return Address(
        **{
            "host": "127.0.0.1",
            "port": port,
            "user": mesh.user,
            "password": mesh.password,
            **changes,
        }
    )


def link_to(mesh: RunningMesh) -> Link:
    return Link(address_of(mesh))


def rows(first: int, count: int, tables: int = 5) -> list[dict[str, Any]]:
    return [
        {"tbname": f"m{i % tables}", "ts": T0 + i, "v": i, "note": f"n{i}", "site": i % tables}
        for i in range(first, first + count)
    ]


METERS = "CREATE STABLE meters (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"


def settings_of(mesh: RunningMesh, stream: str, **more: str) -> Mapping[str, str]:
    """SETTINGS of an external stream that is a table of *mesh*."""
    port = mesh.settings["PENSTOCK_FEDERATION_URL"].rpartition(":")[2]
    database, _, name = stream.partition(".")
    return {
        "type": "penstock",
        "hosts": f"127.0.0.1:{port}",
        "db": database,
        "user": mesh.user,
        "password": mesh.password,
        "stream": name,
        **more,
    }


def clause(settings: Mapping[str, str]) -> str:
    return "SETTINGS " + ", ".join(
        f"{k}='{v}'" if v not in ("true", "false") else f"{k}={v}" for k, v in settings.items()
    )


def health_port(mesh: RunningMesh, service: str) -> int:
    return int(mesh.state()["ports"][f"{service}-health"])
