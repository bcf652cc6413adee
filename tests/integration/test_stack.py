"""What only the stack in containers has: more of a service, a cluster of Spark workers, networks that
break, other stacks.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import redis

from penstock import names
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from tests.backends import RunningStack, require_compose, require_image, running_stack
from tests.documents import ROOT
from tests.faults import table_load
from tests.faults.verdict import verdict
from tests.integration.load import Load
from tests.stack.conftest import eventually

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


@pytest.fixture
def client(stack: RunningStack) -> Iterator[Connection]:
    with stack.connect() as connection:
        yield connection


@pytest.fixture
def name() -> str:
    return f"db{secrets.token_hex(4)}"


def hosts_at_work(stack: RunningStack, topic: str) -> set[str]:
    """Containers whose Python workers have a task of the topic's query now."""
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        tasks = client.hgetall(names.query_progress(topic))
    return {
        json.loads(value)["host"] for field, value in tasks.items() if field.startswith("task:")
    }


def address(stack: RunningStack, service: str, number: int) -> str:
    networks = stack.container(service, number).attrs["NetworkSettings"]["Networks"]
    return str(next(iter(networks.values()))["IPAddress"])


def one_joins_another_dies(stack: RunningStack, load: Load, topic: str, dies: int) -> None:
    """While rows of *topic* flow a second worker gets partitions, and worker number *dies* is
    killed: everything is there, once.
    """
    load.wait(lambda: load.newest > 2)
    stack.scale(spark_worker=2)
    load.wait(lambda: len(hosts_at_work(stack, topic)) == 2)
    load.recovery()
    killed = stack.kill("spark-worker", dies)
    load.recovery()
    stack.wait_ready("spark-worker", not_pid=killed)
    load.check()


def test_workers_that_share_a_volume_come_and_go_while_rows_flow(
    stack: RunningStack, client: Connection, name: str
) -> None:
    """A second worker takes over partitions at the next epoch, with their state; it dies, and the
    first has them back.
    """
    try:
        with Load(client, name, partitions=4) as load:
            one_joins_another_dies(stack, load, names.ingest_topic(name), 2)
        load.drop()
    finally:
        stack.scale(spark_worker=1)


def test_a_worker_cut_off_from_the_network_loses_nothing(
    stack: RunningStack, client: Connection, name: str
) -> None:
    try:
        stack.scale(spark_worker=2)
        with Load(client, name, partitions=4) as load:
            load.wait(lambda: load.newest > 2)
            worker = stack.container("spark-worker", 2)
            network = docker.from_env().networks.get(f"{stack.name}_default")
            network.disconnect(worker)
            load.recovery()
            network.connect(worker, aliases=["spark-worker", worker.short_id])
            load.recovery()
            load.check()
        load.drop()
    finally:
        stack.scale(spark_worker=1)


def test_several_gateways_and_notifiers(stack: RunningStack, client: Connection, name: str) -> None:
    """Every gateway takes DDL, one leads the catalog; clients of one that dies go on at another."""
    try:
        stack.scale(gateway=2, notifier=2)
        for number in (1, 2):
            with connect(
                f"http://{address(stack, 'gateway', number)}:7700",
                user=stack.user,
                password=stack.password,
                options=ConnectionOptions(timeout=180),
            ) as own:
                own.execute(f"CREATE DATABASE {name}{number} PARTITIONS 1")
                eventually(
                    lambda number=number: (
                        f"{name}{number}" in {r[0] for r in client.query("SHOW DATABASES").rows}
                    )
                )
                own.execute(f"DROP DATABASE {name}{number}")
        with Load(client, name) as load:
            load.wait(lambda: load.newest > 2)
            for service in ("gateway", "notifier"):
                for number in (1, 2):
                    killed = stack.kill(service, number)
                    load.recovery()
                    stack.wait_ready(service, not_pid=killed)
            load.check()
        load.drop()
    finally:
        stack.scale(gateway=1, notifier=1)


def test_a_killed_node_of_stream_tables_is_replaced_under_load(
    stack: RunningStack, client: Connection, tmp_path: Path
) -> None:
    """Each leader in turn dies in its container: another goes on, and the dead one comes back with
    every row.
    """
    with table_load.load(stack, tmp_path) as (producers, watchers):
        for _ in range(3):
            leader = client.ha.leader(table_load.GROUP)
            service = f"tables-{leader[-1]}"
            killed = stack.kill(service)
            moment = table_load.micros()
            came = max(w.after(moment, 60) for w in watchers)
            # no connection is refused where a container is gone: the lease is waited for
            assert came - moment < 10_000_000
            stack.wait_ready(service, not_pid=killed)
            eventually(lambda: not client.ha.stat()["nodesAway"])
    assert not [f for p in producers for f in p.failed]
    assert verdict(stack.kafka_bootstrap, tmp_path, table_load.NAME).good
    total = client.ha.meta(table_load.NAME)["totalSize"]
    for node in ("NODE1", "NODE2", "NODE3"):
        eventually(
            lambda node=node: client.ha.meta(table_load.NAME, node=node)["totalSize"] == total
        )
    client.execute(f"DROP DATABASE {table_load.DATABASE}")


def test_an_external_stream_between_two_stacks(
    stack: RunningStack, client: Connection, name: str, tmp_path: Path
) -> None:
    """Another project's table is read under a name of ours, also after the service that keeps its
    password was started anew.
    """
    network = docker.from_env().networks.get(f"{stack.name}_default")
    # where our containers find this machine, and so what the other stack publishes
    host = network.attrs["IPAM"]["Config"][0]["Gateway"]
    services = ("kafka", "redis", "gateway", "notifier", "store", "federation", "edge")
    with (
        running_stack(
            tmp_path / "far", services=services, STACK_WAIT_FOR_JOBS="false", STACK_BIND=host
        ) as far,
        far.connect() as there,
    ):
        there.execute("CREATE DATABASE far PARTITIONS 2")
        there.execute("CREATE STABLE far.meters (ts TIMESTAMP, v INT) TAGS (site INT)")
        there.write(
            "far.meters",
            [
                {"tbname": f"m{i % 5}", "ts": 1772355600000 + i, "v": i, "site": i % 5}
                for i in range(100)
            ],
        )
        client.execute(f"CREATE DATABASE {name} PARTITIONS 1")
        client.execute(
            f"CREATE EXTERNAL STREAM {name}.meters SETTINGS type='penstock', hosts='{host}:{far.variables['STACK_FEDERATION_PORT']}', "
            f"db='far', user='{far.user}', password='{far.password}', stream='meters'"
        )
        query = f"SELECT count(*) AS n, sum(v) AS v FROM {name}.meters"
        assert client.query(query).rows == [(100, 4950)]
        killed = stack.kill("gateway"), stack.kill("store")
        stack.wait_ready("gateway", not_pid=killed[0])
        stack.wait_ready("store", not_pid=killed[1])
        there.write("far.meters", [{"tbname": "m9", "ts": 1772355700000, "v": 50, "site": 9}])
        assert eventually(lambda: client.query(query).rows, 30) == [(101, 5000)]
        client.execute(f"DROP EXTERNAL STREAM {name}.meters")
        client.execute(f"DROP DATABASE {name}")


def observing() -> dict[str, dict[str, object]]:
    """Services of the profile `observe` as compose reads the file."""
    require_compose()
    command = ["docker", "compose", "--profile", "observe", "config", "--format", "json"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    services: dict[str, dict[str, object]] = json.loads(found.stdout)["services"]
    return services


def test_profile_observe_is_sound() -> None:
    assert {"prometheus", "grafana"} <= observing().keys()


def test_prometheus_scrapes_every_service(tmp_path: Path) -> None:
    services = observing()
    for service in ("prometheus", "grafana"):
        require_image(str(services[service]["image"]))
    with running_stack(tmp_path / "observe", profiles=["observe"]) as stack:
        query = "http://127.0.0.1:9090/api/v1/query?query=min(up)"

        def all_up() -> bool:
            answer = stack.run("exec", "-T", "prometheus", "wget", "-qO-", query)
            return bool(json.loads(answer)["data"]["result"][0]["value"][1] == "1")

        eventually(all_up, 60)
