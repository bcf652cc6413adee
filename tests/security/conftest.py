"""Attackers of a mesh, one fixture each, beside an owner who has something to lose.

The mesh is shared by all tests of a session and has every service but the stream jobs, which most
attacks can do without; a test of streams asks for `own_mesh()`, which has them. `victims` makes two
databases: `own`, on which the attackers have the right that they are named after, and `foreign`, on
which they have none. An attack passes when nobody gets more than the right says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.stack import endpoints_kit
from tests.stack.conftest import own_mesh, pytest_runtest_makereport
from tests.stack.endpoints_kit import PASSWORD, mesh_without_jobs

__all__ = ["PASSWORD", "own_mesh", "pytest_runtest_makereport"]

SERVICES = (*endpoints_kit.SERVICES, "federation")
#: the value in a row of `foreign.secrets`, which no answer to an attacker may hold
SECRET = "marigold-4711"
#: pages from here may subscribe at the notifier
PAGE = "https://page.example"
ENVIRONMENT = {
    "PENSTOCK_GATEWAY_POSTGRES": "1",
    "PENSTOCK_NOTIFIER_ORIGINS": f'["{PAGE}"]',
}
OWN = "own"
FOREIGN = "foreign"


@dataclass(frozen=True)
class Attacker:
    """Somebody with a login, or none, at the endpoints of a mesh."""

    name: str
    password: str | None
    mesh: RunningMesh

    @property
    def credentials(self) -> tuple[str, str] | None:
        return None if self.password is None else (self.name, self.password)

    def http(self) -> httpx.Client:
        """A client of the gateway that sends the attacker's credentials."""
        return httpx.Client(base_url=self.mesh.gateway_url, auth=self.credentials, timeout=60)

    def sql(self, text: str) -> httpx.Response:
        """Send *text* to the gateway, whatever comes back."""
        with self.http() as client:
            return client.post("/rest/sql", content=text.encode())

    def connect(self) -> Connection:
        return connect(
            self.mesh.gateway_url,
            user=self.name,
            password=self.password or "",
            options=ConnectionOptions(timeout=150),
        )


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """The session's mesh. Tests share it: use names of your own."""
    with mesh_without_jobs(
        tmp_path_factory.mktemp("mesh"), services=SERVICES, environment=ENVIRONMENT, nodes=1
    ) as running:
        yield running


@pytest.fixture(scope="session")
def victims(mesh: RunningMesh) -> Iterator[Connection]:
    """Make both databases and all accounts; the connection of root."""
    with connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        options=ConnectionOptions(timeout=150),
    ) as root:
        for database in (OWN, FOREIGN):
            root.execute(f"CREATE DATABASE {database}")
            root.execute(f"CREATE TABLE {database}.secrets (ts TIMESTAMP, who VARCHAR(32))")
        root.execute(f"INSERT INTO {FOREIGN}.secrets VALUES ('2026-03-01', '{SECRET}')")
        root.execute(f"INSERT INTO {OWN}.secrets VALUES ('2026-03-01', 'mine')")
        for user in ("stranger", "reader", "writer", "creator"):
            root.execute(f"CREATE USER {user} PASS '{PASSWORD}'")
        root.execute(f"GRANT READ ON {OWN}.* TO reader")
        root.execute(f"GRANT WRITE ON {OWN}.* TO writer")
        root.execute(f"GRANT CREATE ON {OWN}.* TO creator")
        yield root


def _attacker(name: str, password: str | None = PASSWORD) -> Any:
    """A fixture: somebody with a login of that name, or without any."""

    @pytest.fixture(name=name)
    def attacker(mesh: RunningMesh, victims: Connection) -> Attacker:
        return Attacker(name, password, mesh)

    return attacker


#: no key at all
nobody = _attacker("nobody", None)
#: a login without any grant
stranger = _attacker("stranger")
#: with the right on the database `own` that the name says
reader = _attacker("reader")
writer = _attacker("writer")
creator = _attacker("creator")


@pytest.fixture(params=["nobody", "stranger", "reader", "writer", "creator"])
def anyone(request: pytest.FixtureRequest) -> Attacker:
    """Each attacker with a place at the network in turn."""
    attacker: Attacker = request.getfixturevalue(request.param)
    return attacker


@dataclass(frozen=True)
class Account:
    """Another account of the machine: sees what the modes of files and directories let others
    see.
    """

    uid: int = 65534
    gid: int = 65534

    def reads(self, path: Path) -> bool:
        """Open *path* as this account, in a child process; needs root."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setgid(self.gid)
                os.setuid(self.uid)
                os.close(os.open(path, os.O_RDONLY))
                status = 0
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def account() -> Account:
    """An account of the machine without rights on the mesh's files; skips where the tests may not
    change the user.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root to act as another account")
    return Account()
