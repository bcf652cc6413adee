"""Who leads a group, turn by turn, over a Redis in memory and a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.config.raft import Group
from penstock.coordination.lease import Lease
from penstock.coordination.presence import Presence, Registry
from services.tables.election import Election, GroupStanding
from services.tables.settings import TablesSettings
from tests.unit.services.memory_redis import MemoryRedis
from tests.unit.services.tables.kit import Log, Node, stream_table

GROUP = Group(11, ("N1", "N2", "N3"), ("N4",))


class Room:
    """A node's election and what surrounds it."""

    def __init__(
        self, directory: Path, loop: asyncio.AbstractEventLoop, alias: str, with_table: bool
    ) -> None:
        table = stream_table()
        log = Log(table.topic)
        self.clock = log.clock
        self.redis = MemoryRedis(self.clock)
        self.node = Node(alias, table, log, directory, loop)
        self.replicas = [self.node.replica] if with_table else []
        self.changes = 0
        settings = TablesSettings(alias=alias, advertised_url="http://me", lease_seconds=3.0)
        client: Any = self.redis
        bus: Any = self.node.bus
        registry = Registry(client, 10.0)
        self.election = Election(
            settings,
            (GROUP,),
            client,
            registry,
            bus,
            self.clock,
            loop,
            lambda group: list(self.replicas),
        )
        self.election.on_change = self._note_change
        self.standing = self.election.standings[GROUP.id]

    def _note_change(self) -> None:
        self.changes += 1

    def meet(self, *nodes: str) -> None:
        """Other nodes say that they live."""
        for node in nodes:
            presence = Presence(node, f"http://{node}", f"{node}-run")
            Registry(self.redis, 10.0).beat(presence)  # type: ignore[arg-type]

    def lease_of(self, node: str) -> Lease:
        client: Any = self.redis
        return Lease(
            client,
            names.group_lease(GROUP.id),
            ttl=3.0,
            address=f"{node} http://{node}",
            clock=self.clock,
        )

    def holder(self) -> str:
        found = self.lease_of("anybody").holder()
        return found.address if found is not None else ""

    def deliver(self) -> None:
        """What has been sent is in the log, and this node has read it."""
        self.node.bus.pass_on()
        self.node.bus.report()
        self.node.read()


@pytest.fixture
async def room(tmp_path: Path) -> Callable[..., Room]:
    def make(alias: str = "N1", *, with_table: bool = True) -> Room:
        return Room(tmp_path, asyncio.get_running_loop(), alias, with_table)

    return make


def test_a_standing_says_who_is_missing() -> None:
    standing = GroupStanding(GROUP, alive=("N2", "N4"))
    assert not standing.quorum, "a learner does not count"
    assert standing.missing() == ("no quorum: of group 11's 3 members N2 is there, 2 are needed")
    assert "members none is there" in GroupStanding(GROUP).missing()
    assert GroupStanding(GROUP, alive=("N2", "N3")).missing() == ""


async def test_nobody_leads_without_a_majority(room: Callable[..., Room]) -> None:
    one = room()
    one.election.take_turn()
    assert one.election.looked.is_set()
    assert one.standing.alive == ("N1",)
    assert (one.standing.leader, one.standing.term, one.holder()) == ("", None, "")


async def test_a_member_with_a_majority_takes_the_lease_and_serves_once_the_log_says_so(
    room: Callable[..., Room],
) -> None:
    one = room()
    one.meet("N2")
    one.election.take_turn()
    assert one.holder() == "N1 http://me"
    assert (one.standing.leader, one.standing.url, one.standing.epoch) == ("N1", "http://me", 1)
    assert one.changes == 1
    session = one.election.session(GROUP.id, one.node.table.id)
    assert session is not None and not session.serving
    assert one.node.replica.session is session
    one.deliver()
    assert session.serving
    one.election.take_turn()
    assert one.changes == 1, "nothing has changed since"
    presence = Presence.from_json(one.redis.texts[names.node_heartbeat("N1")])
    assert presence.leads == {GROUP.id: 1}
    assert presence.tables == (one.node.table.id,)


async def test_a_group_without_tables_is_led_at_once(room: Callable[..., Room]) -> None:
    one = room(with_table=False)
    one.meet("N3")
    one.election.take_turn()
    assert one.standing.term is not None and one.standing.term.opened
    assert one.election.session(GROUP.id, one.node.table.id) is None
    assert one.election.session(99, one.node.table.id) is None


async def test_a_learner_never_leads(room: Callable[..., Room]) -> None:
    learner = room("N4")
    learner.meet("N1", "N2", "N3")
    learner.election.take_turn()
    assert learner.standing.quorum and learner.standing.term is None
    assert learner.holder() == ""


async def test_the_epoch_is_above_those_in_the_log(room: Callable[..., Room]) -> None:
    one = room()
    one.node.replica.copy.fence.epoch = 7
    one.meet("N2")
    one.election.take_turn()
    assert one.standing.epoch == 8


async def test_a_node_follows_the_holder_and_takes_over_when_its_lease_ends(
    room: Callable[..., Room],
) -> None:
    one = room()
    one.meet("N2", "N3")
    assert one.lease_of("N2").acquire()
    one.election.take_turn()
    assert (one.standing.leader, one.standing.url) == ("N2", "http://N2")
    assert one.standing.term is None
    one.clock.advance(3.1)
    one.election.take_turn()
    assert (one.standing.leader, one.standing.epoch) == ("N1", 2)
    assert one.changes >= 2


async def test_a_dead_leader_is_replaced_before_its_lease_ends(room: Callable[..., Room]) -> None:
    one = room()
    one.meet("N2", "N3")
    one.lease_of("N2").acquire()
    one.election.take_turn()
    one.election.is_dead(GROUP.id, 1)
    one.election.take_turn()
    assert one.standing.alive == ("N1", "N3"), "its last sign of life does not count"
    assert (one.standing.leader, one.standing.epoch) == ("N1", 2)


async def test_a_dead_leader_is_not_replaced_without_a_majority(room: Callable[..., Room]) -> None:
    one = room()
    one.meet("N2")
    one.lease_of("N2").acquire()
    one.election.take_turn()
    one.election.is_dead(GROUP.id, 1)
    one.election.take_turn()
    assert one.standing.term is None
    assert one.holder() == "N2 http://N2"


async def test_the_lease_of_an_earlier_process_of_this_node_is_taken_back(
    room: Callable[..., Room],
) -> None:
    one = room()
    one.meet("N2")
    one.lease_of("N1").acquire()
    one.election.take_turn()
    assert (one.standing.leader, one.standing.epoch) == ("N1", 2)
    assert one.standing.term is not None


async def test_a_leader_renews_its_lease(room: Callable[..., Room]) -> None:
    one = room()
    one.meet("N2")
    one.election.take_turn()
    for _ in range(4):
        one.clock.advance(1.5)
        one.election.take_turn()
    assert one.holder() == "N1 http://me"
    assert one.standing.epoch == 1


async def test_a_leader_that_lost_its_lease_steps_down(room: Callable[..., Room]) -> None:
    one = room()
    one.meet("N2")
    one.election.take_turn()
    one.deliver()
    session = one.election.session(GROUP.id, one.node.table.id)
    assert session is not None
    one.clock.advance(3.1)
    assert one.lease_of("N2").acquire()
    one.election.take_turn()
    assert "lease" in session.over
    assert one.node.replica.session is None
    assert one.standing.leader == "N2"


async def test_a_leader_without_a_majority_stays_but_refuses_writes(
    room: Callable[..., Room],
) -> None:
    one = room()
    one.meet("N2")
    one.election.take_turn()
    one.clock.advance(2.0)
    one.election.take_turn()
    one.redis.delete(names.node_heartbeat("N2"))
    one.election.take_turn()
    session = one.election.session(GROUP.id, one.node.table.id)
    assert session is not None and session.leadership.refuses.startswith("no quorum")
    one.meet("N3")
    one.election.take_turn()
    assert session.leadership.refuses == ""


async def test_without_redis_a_leader_leads_until_its_lease_ends(room: Callable[..., Room]) -> None:
    one = room()
    one.meet("N2")
    one.election.take_turn()
    one.redis.down = True
    one.election.take_turn()
    assert one.election.redis_down == "Redis is away"
    assert one.standing.term is not None
    one.clock.advance(3.1)
    one.election.take_turn()
    assert (one.standing.term, one.standing.leader) == (None, "")
    one.redis.down = False
    one.meet("N2")
    one.election.take_turn()
    assert one.election.redis_down == ""
    assert one.standing.leader == "N1"


async def test_a_session_that_ends_makes_the_node_step_down(room: Callable[..., Room]) -> None:
    one = room()
    one.meet("N2")
    one.election.take_turn()
    session = one.election.session(GROUP.id, one.node.table.id)
    assert session is not None
    session.end("Kafka did not take a record")
    assert one.standing.ended == "Kafka did not take a record"
    one.election.take_turn()
    assert one.standing.epoch == 2, "it leads again, under a new epoch"
    assert one.election.session(GROUP.id, one.node.table.id) is not session


async def test_tables_that_come_and_go_while_a_node_leads(room: Callable[..., Room]) -> None:
    one = room(with_table=False)
    one.meet("N2")
    one.election.take_turn()
    one.replicas.append(one.node.replica)
    one.election.take_turn()
    one.deliver()
    session = one.election.session(GROUP.id, one.node.table.id)
    assert session is not None and session.serving
    one.replicas.clear()
    one.node.replica.drop()
    one.election.take_turn()
    assert one.election.session(GROUP.id, one.node.table.id) is None
    assert one.node.replica.session is None


async def test_a_node_that_stops_gives_back_its_lease_and_says_good_bye(
    room: Callable[..., Room],
) -> None:
    one = room()
    one.meet("N2")
    one.election.start()
    assert await asyncio.to_thread(one.election.looked.wait, 10)
    assert one.holder() == "N1 http://me"
    await asyncio.to_thread(one.election.stop)
    assert one.holder() == ""
    assert names.node_heartbeat("N1") not in one.redis.texts
