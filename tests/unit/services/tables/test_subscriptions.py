"""Subscriptions from hello to the end, over sockets in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from aiohttp import web

from penstock.coordination.presence import Presence
from penstock.errors import PenstockError
from services.tables.shared_subscription import GRACE_SECONDS
from services.tables.subscriptions import Subscriptions
from tests.unit.services.tables.kit import Log, Node, rows, stream_table
from tests.unit.services.tables.served_node import (
    ROOT,
    SETTINGS,
    ServedNode,
    Socket,
    ask,
    content,
    make_request,
)

HELLO = {"table": "ha.trades", "action": "act", "id": "c1", "offset": 0}


class Client:
    """A subscriber's connection."""

    def __init__(self, socket: Socket, task: asyncio.Task[Any]) -> None:
        self.socket = socket
        self.task = task

    def said(self, kind: str) -> list[Any]:
        return [text for text in self.socket.texts if text["type"] == kind]

    def numbers(self) -> list[int]:
        found: list[int] = []
        for data in self.socket.frames:
            found += pa.ipc.open_stream(data[16:]).read_all().column("n").to_pylist()
        return found

    async def hear(self, kind: str, count: int = 1) -> Any:
        """Wait for a message of a kind; return the last one."""
        await self.socket.until(lambda: len(self.said(kind)) >= count)
        return self.said(kind)[-1]

    async def get(self, *numbers: int) -> None:
        await self.socket.until(lambda: self.numbers() == list(numbers))

    async def process(self, row: int) -> None:
        self.socket.say(json.dumps({"processed": row}))

    async def leave(self) -> None:
        self.socket.leave()
        await self.task


class Served(ServedNode):
    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(node)
        self.node = node
        self.subscriptions = Subscriptions(SETTINGS, self.lookup, self.registry, self.others)
        self.allow("ann", "READ")
        self.allow("bob", "READ")
        self._monkeypatch = monkeypatch
        self._tasks: list[asyncio.Task[Any]] = []

    def put(self, *numbers: int) -> None:
        self.node.write("p", self.node.replica.copy.next + 1, rows(*numbers))
        self.node.settle()

    async def connect(self, hello: dict[str, Any] | str, user: str = "ann") -> Client:
        text = hello if isinstance(hello, str) else json.dumps(HELLO | hello)
        socket = Socket(text, stays=True)
        self._monkeypatch.setattr(web, "WebSocketResponse", socket)
        app = web.Application()
        app.add_routes(self.subscriptions.routes())
        request = make_request("GET", "/v1/subscribe")
        request["user"] = user
        task = asyncio.create_task(app._handle(request))
        self._tasks.append(task)
        await socket.until(lambda: bool(socket.texts))
        return Client(socket, task)

    async def settle_until(self, check: Any) -> None:
        """Let Kafka take everything until something holds."""
        async with asyncio.timeout(30):
            while not check():
                self.node.settle()
                await asyncio.sleep(0)

    async def unsubscribe(self, body: dict[str, Any], **more: Any) -> Any:
        whole = {"table": "ha.trades", "action": "act"} | body
        asked = asyncio.create_task(
            ask(self.subscriptions.routes(), "POST", "/v1/unsubscribe", whole, **more)
        )
        await self.settle_until(asked.done)
        return content(await asked)

    def offset(self, name: str = "act") -> int:
        user = self.catalog.user("ann")
        assert user is not None
        known = self.node.replica.copy.producers.get(f"u:{user.id}:{name}")
        return known.sequence if known is not None else -1

    async def close(self) -> None:
        await self.subscriptions.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    table = stream_table()
    made = Served(
        Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()), monkeypatch
    )
    made.lead_here()
    yield made
    await made.close()


async def test_a_subscriber_is_told_where_it_begins_and_gets_rows(served: Served) -> None:
    served.put(1, 2)
    client = await served.connect({})
    assert client.socket.texts[0] == {
        "type": "subscribed",
        "from": 0,
        "topic": "11/ha.trades/act",
        "node": "N1",
        "leader": {"node": "N1", "url": "http://n1", "epoch": 1},
    }
    await client.get(1, 2)
    (connected,) = served.subscriptions.connected
    assert (connected.user, connected.action) == ("ann", "act")
    await client.leave()
    assert not served.subscriptions.connected
    assert client.socket.closed


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        ("junk", "E_BODY"),
        ("[1]", "E_BODY"),
        ({"table": "trades"}, "E_BODY"),
        ({"offset": "x"}, "E_BODY"),
        ({"offset": 5}, "E_BODY"),
        ({"table": "ha.none"}, "E_FORBIDDEN"),
        ({"filter": {"sql": "n +"}}, "E_SYNTAX"),
        ({"raft_group": 99}, "E_NO_GROUP"),
    ],
)
async def test_what_is_no_subscription(
    served: Served, hello: dict[str, Any] | str, code: str
) -> None:
    client = await served.connect(hello)
    await client.task
    assert client.socket.texts[0]["type"] == "error"
    assert client.socket.texts[0]["code"] == code
    assert client.socket.closed and not served.subscriptions.connected


async def test_a_name_is_one_subscription_of_a_user(served: Served) -> None:
    await served.connect({})
    other = await served.connect({"id": "c2"})
    assert other.socket.texts[0]["code"] == "E_SUBSCRIPTION_EXISTS"
    for hello, user in (({"id": "c1"}, "ann"), ({"id": "c2", "action": "b"}, "ann"), ({}, "bob")):
        taken = await served.connect(hello, user)
        assert taken.socket.texts[0]["type"] == "subscribed"


async def test_rows_that_are_worked_off_are_kept_in_the_log(served: Served) -> None:
    served.put(1, 2, 3)
    client = await served.connect({})
    await client.get(1, 2, 3)
    await client.process(2)
    await served.settle_until(lambda: bool(client.said("processed")))
    assert client.said("processed") == [{"type": "processed", "row": 2}]
    assert served.offset() == 2
    await client.leave()
    again = await served.connect({"offset": -2})
    assert again.socket.texts[0]["from"] == 2


async def test_an_offset_that_cannot_be_kept_is_said(served: Served) -> None:
    client = await served.connect({})
    served.node.session = None
    served.standing.leader = ""
    await client.process(0)
    words = await client.hear("not_processed")
    assert words["code"] == "E_NOT_LEADER" and words["row"] == 0


async def test_who_comes_back_may_be_ahead_of_this_node(served: Served) -> None:
    client = await served.connect({"offset": 40, "resume": True})
    assert client.socket.texts[0]["from"] == 40


async def test_a_subscriber_is_sent_to_a_leader_that_is_there(served: Served) -> None:
    client = await served.connect({})
    served.node.session = None
    served.lead_elsewhere("N2")
    served.standing.alive = ("N1", "N3")
    served.node.replica.wake()
    await client.hear("idle", 2)
    served.standing.alive = ("N1", "N2")
    served.node.replica.wake()
    words = await client.hear("moved")
    assert words["node"] == "N2"
    await client.task


# -------------------------------------------------------------------- several programs


async def test_of_several_programs_one_gets_rows_and_the_next_goes_on(served: Served) -> None:
    served.put(1, 2)
    first = await served.connect({"raft_group": 11, "id": "c1"})
    second = await served.connect({"raft_group": 11, "id": "c2"})
    await first.hear("standby")
    served.node.log.clock.advance(GRACE_SECONDS)
    served.node.replica.wake()
    await served.settle_until(lambda: bool(first.said("executes")))
    assert first.said("executes") == [{"type": "executes", "from": 0}]
    await first.get(1, 2)
    await first.process(1)
    await served.settle_until(lambda: served.offset() == 1)
    assert second.numbers() == []
    await first.leave()
    await served.settle_until(lambda: bool(second.said("executes")))
    assert second.said("executes") == [{"type": "executes", "from": 1}]
    await second.get(2)


async def test_what_a_program_without_rows_says_is_not_counted(served: Served) -> None:
    served.put(1)
    waits = await served.connect({"raft_group": 11})
    await waits.process(1)
    await waits.hear("standby")
    assert served.offset() == -1
    assert not waits.said("processed")


async def test_several_programs_meet_at_the_leader(served: Served) -> None:
    served.node.session = None
    served.lead_elsewhere()
    refused = await served.connect({"raft_group": 11})
    assert refused.socket.texts[0]["code"] == "E_NOT_LEADER"


async def test_programs_leave_a_node_that_leads_no_more(served: Served) -> None:
    client = await served.connect({"raft_group": 11})
    assert client.said("subscribed")
    served.node.session = None
    served.standing.alive = ("N1",)
    served.standing.leader = "N2"
    served.node.replica.wake()
    assert (await client.hear("moved"))["node"] == "N2"


async def test_one_program_alone_and_several_do_not_share_a_name(served: Served) -> None:
    await served.connect({"raft_group": 11})
    for hello in ({"id": "c2"}, {"id": "c2", "raft_group": 12}):
        other = await served.connect(hello)
        assert other.socket.texts[0]["code"] == "E_SUBSCRIPTION_EXISTS"


# -------------------------------------------------------------------- the end by request


async def test_a_user_ends_their_own_and_its_offset_is_forgotten(served: Served) -> None:
    served.put(1)
    client = await served.connect({})
    await client.process(1)
    await served.settle_until(lambda: served.offset() == 1)
    answer = await served.unsubscribe({}, user="ann")
    assert answer == {"ended": 1, "users": ["ann"]}
    assert "by" in await client.hear("unsubscribed")
    assert served.offset() == -1


async def test_an_offset_stays_when_that_is_asked_for(served: Served) -> None:
    served.put(1)
    client = await served.connect({})
    await client.process(1)
    await served.settle_until(lambda: served.offset() == 1)
    await served.unsubscribe({"remove_offset": False}, user="ann")
    assert served.offset() == 1


async def refusal(served: Served, body: dict[str, Any], **more: Any) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        await served.unsubscribe(body, **more)
    return wrong.value


async def test_only_an_administrator_ends_somebody_elses(served: Served) -> None:
    client = await served.connect({})
    assert (await refusal(served, {}, user="bob")).code == "E_FORBIDDEN"
    assert not client.said("unsubscribed")
    served.allow("bob", "READ", "ADMIN")
    assert await served.unsubscribe({}, user="bob") == {"ended": 1, "users": ["ann"]}
    await client.hear("unsubscribed")


async def test_what_does_not_exist_cannot_be_ended(served: Served) -> None:
    error = await refusal(served, {"action": "none"}, user="ann")
    assert error.code == "E_NO_SUBSCRIPTION"


async def test_a_raft_group_has_to_be_named(served: Served) -> None:
    client = await served.connect({"raft_group": 11})
    error = await refusal(served, {}, user="ann")
    assert error.code == "E_RAFT_GROUP" and "raft_group=11" in error.hint
    await served.unsubscribe({"raft_group": 11}, user="ann")
    await client.hear("unsubscribed")
    await served.connect({"action": "alone"})
    error = await refusal(served, {"action": "alone", "raft_group": 11}, user="ann")
    assert error.hint == "client.ha.unsubscribe without raft_group"


def meet(served: Served, *nodes: str) -> None:
    for node in nodes:
        served.registry.beat(Presence(node, f"http://{node.lower()}", "run"))
    served.registry.alive(nodes)


async def test_it_ends_on_all_nodes_of_the_group(served: Served) -> None:
    meet(served, "N1", "N2", "N3")
    served.others.answers["http://n2"] = (200, {"ended": 2, "users": ["ann"]})
    answer = await served.unsubscribe({"by": "10.0.0.3"}, user="ann")
    assert answer == {"ended": 2, "users": ["ann"]}
    urls = [url for _, url, _ in served.others.calls]
    assert urls == ["http://n2/v1/unsubscribe", "http://n3/v1/unsubscribe"], "N3 does not answer"
    asked = json.loads(served.others.calls[0][2])
    assert asked["user"] == "ann" and asked["table"] == "ha.trades"


async def test_what_another_node_refuses_is_refused(served: Served) -> None:
    meet(served, "N2")
    served.others.answers["http://n2"] = (403, {"error": {"code": "E_FORBIDDEN"}})
    assert (await refusal(served, {}, user="ann")).code == "E_FORBIDDEN"
    wrong = {"code": "E_RAFT_GROUP", "message": "raftGroup is 11", "hint": "say raft_group=11"}
    served.others.answers["http://n2"] = (400, {"error": wrong})
    error = await refusal(served, {}, user="ann")
    assert (error.code, error.hint) == ("E_RAFT_GROUP", "say raft_group=11")


async def test_a_node_of_the_mesh_asks_for_a_user_and_passes_nothing_on(served: Served) -> None:
    meet(served, "N2")
    client = await served.connect({})
    nothing = await served.unsubscribe({"user": "ann", "action": "x"}, user=ROOT, forwarded=True)
    assert nothing == {"ended": 0, "users": []}
    error = await refusal(served, {"user": "bob"}, user=ROOT, forwarded=True)
    assert error.code == "E_FORBIDDEN"
    answer = await served.unsubscribe({"user": "ann", "by": "N2"}, user=ROOT, forwarded=True)
    assert answer == {"ended": 1, "users": ["ann"]}
    assert (await client.hear("unsubscribed"))["by"] == "N2"
    assert served.others.calls == []
