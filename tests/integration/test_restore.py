"""The volume with the jobs' state is gone: what snode kept is put onto a fresh one, streams go on,
and nothing is lost or told twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import docker
import pytest

from penstock.client.connection import Connection
from tests.backends import RunningStack
from tests.integration.load import Load
from tests.stack.conftest import eventually

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

#: those that have the volume mounted
JOBS = ("jobs", "spark-worker", "spark-master", "snode")


@contextmanager
def snode(client: Connection) -> Iterator[None]:
    client.execute("CREATE SNODE ON DNODE 1")
    try:
        yield
    finally:
        client.execute("DROP SNODE ON DNODE 1")


def backed_up(stack: RunningStack, query: str) -> int:
    """Records that the newest backup of *query* covers; 0 while there is none."""
    listed = stack.container("snode").exec_run(
        ["penstock", "snode", "list", "--query", query], stderr=False
    )
    lines = listed.output.decode().splitlines()[1:]
    return int(lines[0].split()[-1]) if listed.exit_code == 0 and lines else 0


def lose_the_volume(stack: RunningStack) -> None:
    """Everything that is the jobs dies, and not a byte of their state is left."""
    stack.run("kill", *JOBS)
    stack.run("rm", "--force", *JOBS)
    docker.from_env().volumes.get(f"{stack.name}_state").remove()


def lose_and_restore(stack: RunningStack, client: Connection) -> None:
    name = f"db{secrets.token_hex(4)}"
    with snode(client), Load(client, name) as load:
        load.wait(lambda: load.newest > 2)
        eventually(lambda: backed_up(stack, f"in.{name}"), 180, every=1)
        load.recovery()  # the backup is older than what is lost
        lose_the_volume(stack)
        stack.up()
        acked, told = load.recovery()
        print(
            f"\nrestored onto a fresh volume: acks after {acked:.1f} s, new windows after {told:.1f} s"
        )
        load.check()
        assert "state restored from a backup" in stack.container("jobs").logs().decode()
    load.drop()


def test_a_lost_volume_of_state_comes_back_from_snode(stack: RunningStack) -> None:
    with stack.connect() as client:
        lose_and_restore(stack, client)
