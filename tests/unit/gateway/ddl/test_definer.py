"""Changes of the catalog: who may make them, what is made in Kafka before, and what is sent."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.ddl.database_definitions import DatabaseDefinitions
from gateway.ddl.definer import Definer, Elsewhere
from gateway.ddl.mesh_watch import MeshWatch
from gateway.ddl.topics import Topics
from penstock import names
from penstock.catalog.changes import Change
from penstock.catalog.model import Database, Table, TableVersion
from penstock.coordination.lease import Holder
from penstock.errors import BusError, LeaseLost, PenstockError, RemoteError
from penstock.records import ControlRecord, decode
from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.gateway.kit import MemoryGateway
from tests.unit.services.memory_redis import MemoryRedis


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[MemoryGateway]:
    made = MemoryGateway(tmp_path)
    yield made
    made.close()


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


def beat(gateway: MemoryGateway, *services: str, node: int = 1) -> None:
    """Services of a node are heard of."""
    for service in services:
        about = {"host": "h", "started": time.time(), "seen": time.time()}
        gateway.redis.hset(names.nodes(), f"{node}:{service}", json.dumps(about))


# -------------------------------------------------------------------- who may change it


async def test_what_a_user_makes_is_theirs(gateway: MemoryGateway) -> None:
    ann = gateway.allow("ann", "CREATE")
    await gateway.define_as(ann, "CREATE DATABASE mine")
    made = gateway.catalog.database("mine")
    assert gateway.access.may(ann, "DROP", made)
    assert gateway.definer.user == ann


async def test_another_gateway_leads(gateway: MemoryGateway) -> None:
    gateway.writer.holder = Holder(4, "http://other:1")
    with pytest.raises(Elsewhere) as elsewhere:
        await gateway.definer.run(lambda: None)
    assert elsewhere.value.address == "http://other:1"


async def test_nobody_leads_at_the_moment(gateway: MemoryGateway) -> None:
    gateway.writer.leads = False
    with pytest.raises(RemoteError) as nobody:
        await gateway.definer.run(lambda: None)
    assert nobody.value.code == "E_LEASE_HELD"


async def test_a_lease_that_is_lost_in_between_is_taken_once_more(gateway: MemoryGateway) -> None:
    gateway.writer.losses = 1
    await gateway.define_as("root", "CREATE DATABASE a")
    assert gateway.catalog.database("a") is not None
    gateway.writer.losses = 2
    with pytest.raises(LeaseLost):
        await gateway.define_as("root", "CREATE DATABASE b")


async def test_what_an_earlier_leader_left_is_settled_first(gateway: MemoryGateway) -> None:
    order: list[str] = []
    gateway.definer.settle = lambda: order.append("settle")
    await gateway.definer.run(lambda: order.append("run"))
    assert order == ["settle", "run"]


async def test_ddl_is_done_one_after_the_other_in_a_thread(gateway: MemoryGateway) -> None:
    running: list[int] = []

    def work() -> int:
        running.append(1)
        assert len(running) == 1
        time.sleep(0)
        running.pop()
        return 7

    found = await asyncio.gather(*(gateway.definer.run(work) for _ in range(4)))
    assert found == [7] * 4


def test_a_change_of_nothing_is_not_written(gateway: MemoryGateway) -> None:
    gateway.catalog.revision = 5
    assert gateway.definer.commit(Change()) == 5
    assert gateway.writer.changes == []


def test_what_was_written_is_told(gateway: MemoryGateway) -> None:
    told: list[Change] = []
    gateway.definer.committed = told.append
    gateway.define("CREATE DATABASE a")
    assert [type(e) for c in told for e in c.puts] == [Database]


# -------------------------------------------------------------------- control records


def test_control_records_have_their_offsets_once_kafka_has_them(gateway: MemoryGateway) -> None:
    gateway.log.append("in.d", b"x", None, 2)
    sent = gateway.definer.send("in.d", [0, 2], ControlRecord("barrier", id="b"))
    assert sent == {0: 0, 2: 1}
    assert decode(ControlRecord, gateway.log.values("in.d", 2)[1]).id == "b"


def test_control_records_that_kafka_does_not_take(
    gateway: MemoryGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.log.refusal = BusError("Kafka is away")
    assert refusal(lambda: gateway.definer.send("in.d", [0], ControlRecord("tick"))).code == "E_BUS"

    class Never:
        def result(self, timeout: float) -> None:
            raise TimeoutError

    monkeypatch.setattr(gateway.log, "publish", lambda *_, **__: Never())
    error = refusal(lambda: gateway.definer.send("in.d", [0], ControlRecord("tick")))
    assert "does not confirm a control record" in error.message


# -------------------------------------------------------------------- topics


def test_copies_need_brokers(gateway: MemoryGateway) -> None:
    error = refusal(lambda: gateway.define("CREATE DATABASE a REPLICA 3"))
    assert error.code == "E_BAD_OPTION" and "Kafka has 1 broker, REPLICA 3" in error.message
    gateway.log.brokers = lambda: 3
    gateway.define("CREATE DATABASE a REPLICA 3")
    assert gateway.log.partitions == {"in.a": 2}


def test_a_topic_of_a_dropped_database_is_used_again(gateway: MemoryGateway) -> None:
    gateway.define("CREATE DATABASE a PARTITIONS 2; DROP DATABASE a")
    assert gateway.log.partitions == {"in.a": 2}, "offsets in it stay what they were"
    gateway.define("CREATE DATABASE a PARTITIONS 2")
    gateway.define("DROP DATABASE a")
    gateway.define("CREATE DATABASE a PARTITIONS 3")
    assert gateway.log.partitions == {"in.a": 3}


def test_a_topic_of_somebody_else_is_not_deleted(gateway: MemoryGateway) -> None:
    gateway.log.partitions["in.a"] = 5
    error = refusal(lambda: gateway.define("CREATE DATABASE a PARTITIONS 2"))
    assert error.code == "E_TOPIC_PARTITIONS"
    assert gateway.log.partitions == {"in.a": 5}


def test_a_topic_is_deleted_once_nobody_reads_it(gateway: MemoryGateway) -> None:
    gateway.define("CREATE DATABASE a PARTITIONS 2; DROP DATABASE a")
    beat(gateway, "store")
    error = refusal(lambda: gateway.define("CREATE DATABASE a PARTITIONS 3"))
    assert error.code == "E_NOT_LIVE" and "is still being read" in error.message
    gateway.redis.set(names.store_followed(), gateway.catalog.revision)
    gateway.define("CREATE DATABASE a PARTITIONS 3")
    assert gateway.log.partitions == {"in.a": 3}


def test_stream_jobs_are_waited_for_as_well(tmp_path: Path) -> None:
    gateway = MemoryGateway(tmp_path, wait_for_jobs=True)
    gateway.redis.set(names.query_heartbeat("in.a"), "{}")
    assert refusal(lambda: gateway.definer.topics.delete(["in.a"])).code == "E_NOT_LIVE"
    gateway.redis.delete(names.query_heartbeat("in.a"))
    gateway.log.partitions["in.a"] = 1
    gateway.definer.topics.delete(["in.a"])
    gateway.definer.topics.delete([])
    assert gateway.log.partitions == {}
    gateway.close()


def test_ends_of_logs_and_logs_that_are_emptied(gateway: MemoryGateway) -> None:
    topics: Topics = gateway.definer.topics
    for _ in range(3):
        gateway.log.append("st", b"x")
    assert topics.log_end("st") == 3
    assert topics.log_ends("st", 2) == {("st", 0): 3, ("st", 1): 0}
    plain = Table(
        7,
        "d",
        "t",
        "plain",
        "st",
        1,
        "ms",
        (TableVersion(8, (Column("ts", ColumnType("TIMESTAMP")),)),),
    )
    topics.empty_log(plain)
    assert gateway.log.starts == {}
    options = {
        "raft_group": "11",
        "cache_limit": "1",
        "asked_limit": "1",
        "retention_minutes": "1",
        "flush_mode": "1",
    }
    replicated = dataclasses.replace(plain, options=options)
    topics.empty_log(replicated)
    assert gateway.log.starts == {("st", 0): 3}
    gateway.log.refusal = BusError("Kafka is away")
    topics.empty_log(replicated)
    gateway.log.refusal = None
    gateway.catalog.put(Database(1, "d"))
    topics.prepare(Change((replicated,)))
    assert gateway.log.flushes == {"st": 1}


def test_redis_that_is_away_leaves_a_note_out(gateway: MemoryGateway) -> None:
    gateway.memory_redis.down = True
    gateway.definer.topics.remember_dropped(["in.a"])
    gateway.memory_redis.down = False
    assert not gateway.memory_redis.sets[names.topics_dropped()]


# -------------------------------------------------------------------- what runs


def test_nodes_and_their_services(gateway: MemoryGateway) -> None:
    watch = gateway.definer.watch
    assert watch.nodes() == [] and not watch.runs("store")
    beat(gateway, "store", "gateway", node=3)
    assert [(n.id, n.services) for n in watch.nodes()] == [(3, ("gateway", "store"))]
    assert watch.runs("store") and not watch.runs("snode")


def test_waiting_ends_when_it_is_so_or_in_time() -> None:
    client: Any = MemoryRedis()
    watch = MeshWatch(client, live_timeout=0.005, wait_for_jobs=True)
    answers = iter([False, False, True])
    watch.until(lambda: next(answers), "never", "none")
    with pytest.raises(BusError) as late:
        watch.until(lambda: False, "it is not so", "start it")
    assert (late.value.code, late.value.message, late.value.hint) == (
        "E_NOT_LIVE",
        "it is not so",
        "start it",
    )
    client.down = True
    with pytest.raises(BusError) as down:
        watch.until_read("in.d")
    assert down.value.code == "E_REDIS_DOWN"


def test_a_pause_of_a_view_has_an_answer_of_its_own() -> None:
    client: Any = MemoryRedis()
    watch = MeshWatch(client, live_timeout=0.005, wait_for_jobs=False)
    client.hset(names.view_status(5), "state", "paused")
    watch.until_paused(5)
    watch.forget_pause(5)
    with pytest.raises(BusError):
        watch.until_paused(5)
    watch.until_read("in.d")


# -------------------------------------------------------------------- databases


def test_databases_and_their_options(gateway: MemoryGateway) -> None:
    gateway.define("CREATE DATABASE a PRECISION 'us' KEEP 10d MAX_AHEAD 2h DOT_TO_UNDERSCORE 1")
    made = gateway.catalog.database("a")
    assert made is not None
    assert (made.precision, str(made.keep), str(made.max_ahead)) == ("us", "10d", "2h")
    assert made.partitions == 2, "as the gateway's settings say"
    assert made.dot_to_underscore
    gateway.define("CREATE DATABASE IF NOT EXISTS a PRECISION 'ns'")
    gateway.define("ALTER DATABASE a KEEP 100d MAX_AHEAD 1d DOT_TO_UNDERSCORE 0")
    changed = gateway.catalog.database("a")
    assert changed is not None
    assert (str(changed.keep), str(changed.max_ahead)) == ("100d", "1d")
    assert not changed.dot_to_underscore and changed.precision == "us"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("ALTER DATABASE a REPLICA 3", "E_BAD_OPTION"),
        ("ALTER DATABASE a PRECISION 'ns'", "E_BAD_OPTION"),
        ("ALTER DATABASE none KEEP 1d", "E_NO_DATABASE"),
        ("ALTER DATABASE a PARTITIONS 3", "E_BAD_OPTION"),
        ("CREATE DATABASE a", "E_DATABASE_EXISTS"),
    ],
)
def test_what_databases_cannot_be(gateway: MemoryGateway, sql: str, code: str) -> None:
    gateway.define("CREATE DATABASE a")
    assert refusal(lambda: gateway.define(sql)).code == code


def test_more_partitions_are_a_move(gateway: MemoryGateway) -> None:
    gateway.define("CREATE DATABASE a PARTITIONS 2")
    moved: list[tuple[str, int]] = []

    class Coordinator:
        def move(self, name: str, partitions: int) -> None:
            moved.append((name, partitions))

    coordinator: Any = Coordinator()
    definer: Definer = gateway.definer
    statement = parse_one("ALTER DATABASE a PARTITIONS 4")
    assert isinstance(statement, st.AlterDatabase)
    wait = DatabaseDefinitions(definer, coordinator, 2).alter(statement)
    assert moved == [("a", 4)]
    assert wait is not None
    wait()
