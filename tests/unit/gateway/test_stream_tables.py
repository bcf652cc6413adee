"""Stream tables of groups of nodes, as the gateway has to do with them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from gateway.coalescer import PendingWrite
from gateway.intake import layout_of
from gateway.stream_tables import StreamTableGroups, options_of, replication_of
from penstock.auth.access import Access
from penstock.catalog.model import Database, Purge, Replicated
from penstock.catalog.view import Catalog
from penstock.config.raft import RaftGroups, parse_groups
from penstock.coordination.presence import Presence, Registry
from penstock.errors import BusError, PenstockError
from penstock.runtime.clock import ManualClock
from tests.unit.services.memory_redis import MemoryRedis
from tests.unit.services.tables.kit import NOW, stream_table

GROUPS = parse_groups("11:N1:N2:N3")


class Nodes:
    """What nodes of stream tables answer when they are asked how things are."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def ask(self, url: str, path: str, *, seconds: float) -> Any:
        found = self.answers.get(url)
        if found is None:
            raise PenstockError("nobody there", code="E_NODE_DOWN")
        return found

    def close(self) -> None:
        """Nothing is open."""


class Appender:
    """Takes rows for the leader of a table's group."""

    made: list[Appender] = []

    def __init__(self, nodes: Any, table: str, group: int, **more: Any) -> None:
        self.table = table
        self.group = group
        self.producer = more.get("producer")
        self.rows: list[Any] = []
        self.failure: PenstockError | None = None
        self.abandoned = False
        Appender.made.append(self)

    def submit(self, data: Any) -> Future[int]:
        done: Future[int] = Future()
        if self.failure is not None:
            done.set_exception(self.failure)
            return done
        self.rows += data.to_pylist()
        done.set_result(data.num_rows)
        return done

    def abandon(self) -> None:
        self.abandoned = True


class Here:
    def __init__(self, groups: RaftGroups, loop: Any = None) -> None:
        self.table = stream_table()
        self.catalog = Catalog([Database(100, "ha"), self.table])
        self.clock = ManualClock(NOW)
        self.redis = MemoryRedis(ManualClock(NOW))
        self.nodes = Nodes()
        client: Any = self.redis
        self.groups = StreamTableGroups(
            groups,
            client,
            lambda: self.catalog,
            self.clock,
            loop,
            access=Access(lambda: self.catalog, "root"),
            user="root",
            password="secret",
            timeout=-1.0,
            context=ssl.create_default_context(),
        )
        self.registry = Registry(client, 100.0)

    def meet(
        self, *nodes: str, tables: tuple[int, ...] = (), leads: dict[int, int] | None = None
    ) -> None:
        for node in nodes:
            self.registry.beat(Presence(node, f"http://{node}", "run", tables, leads or {}))

    def write(self, key: str | None = None, **row: Any) -> asyncio.Future[Any]:
        layout = layout_of(Database(100, "ha"), self.table)
        loop = asyncio.get_running_loop()
        rows = [{"ts": NOW // 10**6, "sym": "A", "n": 1} | row]
        return self.groups.write(PendingWrite(layout, rows, 1, 10, loop.create_future()), key)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    made = make(monkeypatch)
    yield made
    made.groups.close()


def make(monkeypatch: pytest.MonkeyPatch, groups: RaftGroups = GROUPS, loop: Any = None) -> Here:
    Appender.made = []
    nodes = Nodes()
    monkeypatch.setattr("gateway.stream_tables.Nodes", lambda *_, **__: nodes)
    monkeypatch.setattr("gateway.stream_table_rows.Appender", Appender)
    made = Here(groups, loop)
    made.nodes = nodes
    return made


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


def test_groups_that_are_configured(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here.groups.group(11).members == ("N1", "N2", "N3")
    assert refusal(lambda: here.groups.group(12)).code == "E_NO_GROUP"
    off = make(monkeypatch, RaftGroups())
    assert refusal(lambda: off.groups.group(11)).code == "E_HA_OFF"


def test_what_would_wait_for_ever_is_refused(here: Here) -> None:
    here.meet("N2")
    error = refusal(lambda: here.groups.check_quorum(GROUPS.find(11)))
    assert error.code == "E_NO_QUORUM" and "N2 is there, 2 are needed" in error.detail
    here.meet("N3")
    here.groups.check_quorum(GROUPS.find(11))


def test_a_new_table_is_served_when_all_have_it_and_one_leads(here: Here) -> None:
    here.meet("N1", "N2")
    assert refusal(lambda: here.groups.wait_served(here.table)).code == "E_NOT_LIVE"
    here.meet("N1", tables=(here.table.id,), leads={11: 3})
    here.meet("N2", tables=(here.table.id,))
    served = {"pubTables": [{"leads": True, "table": "ha.trades"}]}
    assert refusal(lambda: here.groups.wait_served(here.table)).code == "E_NOT_LIVE"
    here.nodes.answers["http://N1"] = served
    here.groups.wait_served(here.table)
    here.meet("N2")
    assert refusal(lambda: here.groups.wait_served(here.table)).code == "E_NOT_LIVE"


def test_a_table_that_somebody_subscribes_to_stays(here: Here) -> None:
    here.meet("N1", "N2")
    connections = [{"topic": "11/ha.trades/act", "table": "ha.trades"}]
    here.nodes.answers["http://N2"] = {"pubConns": connections}
    error = refusal(lambda: here.groups.check_unused([here.table]))
    assert (error.code, error.detail) == ("E_IN_USE", "11/ha.trades/act")
    here.nodes.answers["http://N2"] = {"pubConns": []}
    here.groups.check_unused([here.table])
    here.groups.check_unused([])


def test_nodes_that_have_let_go_of_a_table_are_waited_for(here: Here) -> None:
    here.meet("N1", tables=(5,))
    here.groups.wait_gone([here.table])


# -------------------------------------------------------------------- rows


async def test_rows_go_to_the_leader_by_one_producer_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = make(monkeypatch, loop=asyncio.get_running_loop())
    assert (await here.write(n=1)).rows == 1
    assert (await here.write(n=2)).rows == 1
    (appender,) = Appender.made
    assert (appender.table, appender.group) == ("ha.trades", 11)
    assert [row["n"] for row in appender.rows] == [1, 2]
    assert "row_id" not in appender.rows[0], "the leader numbers them"
    here.groups.close()
    assert appender.abandoned


async def test_a_key_is_a_producer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here = make(monkeypatch, loop=asyncio.get_running_loop())
    assert (await here.write("k1")).rows == 1
    (appender,) = Appender.made
    assert appender.producer == "k:k1" and appender.abandoned


async def test_rows_that_do_not_fit_and_leaders_that_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = make(monkeypatch, loop=asyncio.get_running_loop())
    with pytest.raises(PenstockError):
        await here.write(n="x")
    await here.write()
    Appender.made[0].failure = BusError("nobody leads", code="E_NOT_LEADER")
    with pytest.raises(BusError):
        await here.write()
    here.catalog.remove(here.table.id)
    with pytest.raises(PenstockError) as dropped:
        await here.write()
    assert dropped.value.code == "E_NO_TABLE"


# -------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "made",
    [
        Replicated(11, 100, 100),
        Replicated(
            11,
            100,
            100,
            60,
            ("a", "b"),
            "a",
            "ts",
            10,
            "latest",
            ("ts",),
            None,
            True,
            False,
            1,
            Purge("ts", 60_000, 30_000),
        ),
    ],
)
def test_options_make_a_table_like_the_one_they_are_of(made: Replicated) -> None:
    assert replication_of(made.group, options_of(made)) == made
