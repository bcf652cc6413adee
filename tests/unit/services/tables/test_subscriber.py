"""What one subscriber gets, and when it is told to go; which of several programs has its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import AuthError, CatalogError, PenstockError
from services.tables import filters
from services.tables.chunk import Chunk
from services.tables.settings import TablesSettings
from services.tables.shared_subscription import GRACE_SECONDS, group_id, is_next, together
from services.tables.subscriber import (
    EARLIEST,
    NOW,
    PROCESSED,
    SharedFrames,
    Subscriber,
    first_row,
    frame,
    pump,
)
from tests.unit.services.tables.kit import Log, Node, rows, stream_table
from tests.unit.services.tables.served_node import SETTINGS, Socket


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    table = stream_table()
    made = Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop())
    made.lead(1)
    made.settle()
    return made


def put(node: Node, *numbers: int) -> None:
    sequence = node.replica.copy.next + 1
    node.write("p", sequence, rows(*numbers))
    node.settle()


def subscriber(node: Node, **more: Any) -> Subscriber:
    given: dict[str, Any] = {"filter": None, "row": 0, "user": "ann", "action": "act"} | more
    socket: Any = Socket(stays=True)
    return Subscriber(node.replica, id="client", remote="10.0.0.1", socket=socket, **given)


class Pumping:
    """`pump` at work for one subscriber."""

    def __init__(self, one: Subscriber) -> None:
        self.one = one
        self.socket: Socket = one.socket  # type: ignore[assignment]
        self.elsewhere: dict[str, Any] | None = None
        self.allowed: Callable[[], None] = lambda: None
        self.turn = False
        self.shared = SharedFrames()
        self.task = asyncio.create_task(
            pump(
                one,
                self.shared,
                0.001,
                lambda: self.elsewhere,
                lambda: self.allowed(),
                self._begin,
            )
        )

    async def _begin(self) -> bool:
        self.one.executes = self.turn
        return self.turn

    async def until(self, check: Callable[[], bool]) -> None:
        await self.socket.until(check)

    def numbers(self) -> list[int]:
        found: list[int] = []
        for data in self.socket.frames:
            batch = pa.ipc.open_stream(data[16:]).read_all()
            found += batch.column("n").to_pylist()
        return found

    def said(self, kind: str) -> list[Any]:
        return [text for text in self.socket.texts if text["type"] == kind]

    async def last_words(self) -> Any:
        await self.task
        return self.socket.texts[-1]


def test_a_message_says_which_rows_it_is_about() -> None:
    batch = pa.record_batch({"n": [1, 2]})
    data = frame(7, 9, batch)
    assert int.from_bytes(data[:8], "big") == 7
    assert int.from_bytes(data[8:16], "big") == 9
    assert pa.ipc.open_stream(data[16:]).read_all().column("n").to_pylist() == [1, 2]


def test_subscribers_that_are_up_to_date_share_encoded_rows() -> None:
    shared = SharedFrames()
    chunk = Chunk(0, pa.record_batch({"n": [1]}), 0, 0)
    data = shared.get(chunk)
    assert shared.get(Chunk(0, pa.record_batch({"n": [1]}), 0, 0)) is data
    for first in range(1, 65):
        shared.get(Chunk(first, pa.record_batch({"n": [1]}), 0, 0))
    assert shared.get(chunk) is not data, "only so many are kept"


async def test_rows_come_as_they_are_written_and_each_once(node: Node) -> None:
    put(node, 1, 2)
    pumping = Pumping(subscriber(node))
    await pumping.until(lambda: pumping.numbers() == [1, 2])
    put(node, 3)
    await pumping.until(lambda: pumping.numbers() == [1, 2, 3])
    one = pumping.one
    assert (one.row, one.sent) == (3, 3)
    assert one.bytes == sum(map(len, pumping.socket.frames))
    pumping.socket.closed = True
    node.replica.wake()
    await pumping.task


async def test_who_waits_gets_signs_of_life(node: Node) -> None:
    pumping = Pumping(subscriber(node))
    await pumping.until(lambda: len(pumping.said("idle")) >= 2)
    assert pumping.said("idle")[0] == {"type": "idle", "next": 0}
    pumping.task.cancel()


async def test_only_rows_that_pass_the_filter_come(node: Node) -> None:
    put(node, 1, 20, 3, 40)
    condition = filters.make(node.table, {"sql": "n >= 20"})
    pumping = Pumping(subscriber(node, filter=condition))
    await pumping.until(lambda: pumping.numbers() == [20, 40])
    assert pumping.one.sent == 2 and pumping.one.row == 4
    put(node, 5)
    await pumping.until(lambda: {"type": "idle", "next": 5} in pumping.socket.texts)
    assert pumping.numbers() == [20, 40]
    pumping.task.cancel()


async def test_a_subscription_that_is_ended_says_by_whom(node: Node) -> None:
    pumping = Pumping(subscriber(node, cancelled="10.0.0.9"))
    assert await pumping.last_words() == {"type": "unsubscribed", "by": "10.0.0.9"}


async def test_a_table_that_is_dropped(node: Node) -> None:
    node.replica.drop()
    words = await Pumping(subscriber(node)).last_words()
    assert (words["type"], words["code"]) == ("error", "E_NO_TABLE")


async def test_a_subscriber_goes_where_the_leader_is(node: Node) -> None:
    put(node, 1)
    pumping = Pumping(subscriber(node))
    await pumping.until(lambda: pumping.numbers() == [1])
    pumping.elsewhere = {"node": "N2", "url": "http://n2", "epoch": 4}
    node.replica.wake()
    words = await pumping.last_words()
    assert words == {"type": "moved", "next": 1, "node": "N2", "url": "http://n2", "epoch": 4}


async def test_a_right_that_is_taken_away_ends_it(node: Node) -> None:
    def refuse() -> None:
        raise AuthError("no", code="E_FORBIDDEN")

    pumping = Pumping(subscriber(node))
    pumping.allowed = refuse
    words = await pumping.last_words()
    assert words["code"] == "E_FORBIDDEN" and "earliest" not in words


async def test_a_row_that_retention_took_names_the_earliest(node: Node) -> None:
    put(node, 1, 2, 3)
    node.replica.copy.expire(node.log.clock.now() // 10**6)
    pumping = Pumping(subscriber(node, row=1))
    words = await pumping.last_words()
    assert (words["code"], words["earliest"]) == ("E_OFFSET_GONE", 3)


async def test_one_of_several_programs_waits_for_its_turn(node: Node) -> None:
    put(node, 1)
    pumping = Pumping(subscriber(node, executes=False, executed=True, group=11))
    await pumping.until(lambda: bool(pumping.said("standby")))
    assert pumping.numbers() == []
    assert not pumping.one.executed, "it forgets what it has not worked off"
    pumping.turn = True
    node.replica.wake()
    await pumping.until(lambda: pumping.numbers() == [1])
    pumping.task.cancel()


# -------------------------------------------------------------------- where one begins


async def test_where_a_subscription_begins(node: Node) -> None:
    put(node, 1, 2, 3)
    replica = node.replica
    assert first_row(replica, NOW, None) == 3
    assert first_row(replica, PROCESSED, None) == 3
    assert first_row(replica, PROCESSED, 1) == 1
    assert first_row(replica, EARLIEST, None) == 0
    assert first_row(replica, 2, None) == 2
    assert first_row(replica, 3, None) == 3


@pytest.mark.parametrize(("offset", "code"), [(-4, "E_BODY"), (4, "E_BODY"), (0, "E_OFFSET_GONE")])
async def test_where_none_can_begin(node: Node, offset: int, code: str) -> None:
    put(node, 1, 2, 3)
    node.replica.copy.skip(3)
    with pytest.raises(PenstockError) as wrong:
        first_row(node.replica, offset, None)
    assert wrong.value.code == code


# -------------------------------------------------------------------- whose turn it is


async def test_subscriptions_are_told_apart_by_table_user_and_name(node: Node) -> None:
    one = subscriber(node, group=11)
    assert one.key == (node.table.id, "ann", "act")
    assert one.topic == "11/ha.trades/act"
    same = subscriber(node, group=11, user="ANN")
    others = [
        subscriber(node, group=12),
        subscriber(node, group=11, user="bob"),
        subscriber(node, group=11, action="other"),
    ]
    assert together([same, *others, one], one) == [one, same], "in the order they came"


async def test_the_first_one_has_its_turn_after_a_moment(node: Node) -> None:
    first = subscriber(node, group=11, executes=False)
    second = subscriber(node, group=11, executes=False)
    both = [second, first]
    assert not is_next(both, first, GRACE_SECONDS / 2)
    assert is_next(both, first, GRACE_SECONDS)
    assert not is_next(both, second, GRACE_SECONDS)


async def test_who_had_rows_from_the_leader_before_goes_on_at_once(node: Node) -> None:
    first = subscriber(node, group=11, executes=False)
    before = subscriber(node, group=11, executes=False, executed=True)
    assert is_next([first, before], before, 0.0)
    assert not is_next([first, before], first, 99.0)


async def test_nobody_else_has_a_turn_while_one_executes_or_is_being_ended(node: Node) -> None:
    busy = subscriber(node, group=11, executes=True)
    waits = subscriber(node, group=11, executes=False)
    assert not is_next([busy, waits], waits, 99.0)
    busy.executes = False
    busy.cancelled = "somebody"
    assert not is_next([busy, waits], waits, 99.0)
    busy.cancelled = ""
    assert is_next([busy, waits], busy, 99.0)


def test_a_raft_group_is_named_by_id_or_not_at_all() -> None:
    assert group_id(SETTINGS, None) == 0
    assert group_id(SETTINGS, 11) == 11
    for wanted, code in ((99, "E_NO_GROUP"), (1, "E_RAFT_GROUP"), ("x", "E_RAFT_GROUP")):
        with pytest.raises(CatalogError) as wrong:
            group_id(SETTINGS, wanted)
        assert wrong.value.code == code
    with pytest.raises(CatalogError):
        group_id(TablesSettings(alias="N1"), 11)
