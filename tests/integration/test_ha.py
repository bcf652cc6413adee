"""Profile ha in a stack of its own. The file comes before those that share a stack, so that a small
machine has one at a time.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from penstock import names
from penstock.bus import Admin
from tests.backends import backends, running_stack
from tests.integration.load import Load


@pytest.mark.docker
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    "containers" not in backends(), reason="local: the embedded mesh has one broker and one Redis"
)
def test_three_brokers_and_redis_with_sentinels(tmp_path: Path) -> None:
    """The broker that leads and the Redis that is master die under load; others take over, nothing
    acked is lost.
    """
    name = f"db{secrets.token_hex(4)}"
    with (
        running_stack(tmp_path / "ha", env_files=["deploy/compose/ha.env"]) as stack,
        stack.connect() as client,
    ):
        with Load(client, name, partitions=3) as load:
            load.wait(lambda: load.newest > 2)
            described = (
                Admin(stack.kafka_bootstrap)._topics()[names.ingest_topic(name)].partitions.values()
            )
            assert all(len(p.replicas) == 3 and len(p.isrs) == 3 for p in described)
            for service in ("kafka-2", "redis"):
                stack.container(service).kill()  # stays down: somebody else has to do it
                acked, told = load.recovery()
                print(
                    f"\n{service} is gone: acks after {acked:.1f} s, new windows after {told:.1f} s"
                )
            for service in ("kafka-2", "redis"):
                stack.container(service).start()
                stack.wait_ready(
                    service, seconds=400
                )  # a JVM's start on a machine with other work to do
            load.recovery()
            load.check()
        load.drop()
