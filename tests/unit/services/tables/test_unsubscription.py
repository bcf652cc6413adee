"""The end of subscriptions by request: on this node, on others, and what is forgotten with them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.coordination.presence import Presence
from penstock.errors import PenstockError
from services.tables.subscriber import Subscriber
from services.tables.subscription_offsets import SubscriptionOffsets
from services.tables.unsubscription import Unsubscription
from tests.unit.services.tables.kit import Log, Node, stream_table
from tests.unit.services.tables.served_node import (
    ROOT,
    SETTINGS,
    ServedNode,
    Socket,
    ask,
    content,
)


class Served(ServedNode):
    """A node to which subscribers are connected."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.connected: set[Subscriber] = set()
        self.offsets = SubscriptionOffsets(self.lookup, self.others)
        self.subject = Unsubscription(
            SETTINGS, self.lookup, self.registry, self.others, self.offsets, self.connected
        )
        for name in ("ann", "bob"):
            self.allow(name, "READ")

    def connect(self, user: str, action: str = "act", group: int = 0) -> Subscriber:
        socket: Any = Socket(stays=True)
        made = Subscriber(
            self.nodes[0].replica,
            action,
            f"{user}-{len(self.connected)}",
            user,
            "",
            socket,
            None,
            0,
        )
        made.group = group
        self.connected.add(made)
        return made

    async def end(self, caller: str, /, **more: Any) -> Any:
        forwarded = more.pop("forwarded", False)
        body = {"table": "ha.trades", "action": "act"} | more
        asked = asyncio.create_task(
            ask(
                self.subject.routes(),
                "POST",
                "/v1/unsubscribe",
                body,
                user=caller,
                forwarded=forwarded,
            )
        )
        while not asked.done():
            await asyncio.sleep(0)
            if self.nodes[0].session is not None:
                self.nodes[0].settle()
        return content(await asked)

    async def refusal(self, caller: str, /, **more: Any) -> PenstockError:
        with pytest.raises(PenstockError) as wrong:
            await self.end(caller, **more)
        return wrong.value


@pytest.fixture
async def served(tmp_path: Path) -> Served:
    table = stream_table()
    made = Served(Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()))
    made.lead_here()
    return made


async def test_only_ones_own_of_that_name_end(served: Served) -> None:
    mine = served.connect("ann")
    twice = served.connect("ANN")
    other_name = served.connect("ann", "other")
    theirs = served.connect("bob")
    assert await served.end("ann", by="10.0.0.9") == {"ended": 2, "users": ["ANN", "ann"]}
    assert mine.cancelled == twice.cancelled == "10.0.0.9"
    assert not other_name.cancelled and not theirs.cancelled


async def test_offsets_go_unless_they_are_to_stay(served: Served) -> None:
    replica = served.nodes[0].replica
    for name in ("ann", "bob"):
        place = served.offsets.name("act", name)
        kept = asyncio.create_task(served.offsets.submit(replica, place, 5))
        while not kept.done():
            await asyncio.sleep(0)
            served.nodes[0].settle()
    served.connect("ann")
    await served.end("ann", remove_offset=False)
    assert served.offsets.find(replica, "act", "ann") is not None
    await served.end("ann")
    assert served.offsets.find(replica, "act", "ann") is None
    assert served.offsets.find(replica, "act", "bob") is not None


async def test_a_raft_group_has_to_be_named(served: Served) -> None:
    grouped = served.connect("ann", group=11)
    error = await served.refusal("ann")
    assert error.code == "E_RAFT_GROUP" and "raft_group=11" in error.hint
    assert not grouped.cancelled
    assert (await served.end("ann", raft_group=11))["ended"] == 1


async def test_administrators_end_anybodys(served: Served) -> None:
    theirs = served.connect("ann")
    assert (await served.refusal("bob")).code == "E_FORBIDDEN"
    assert not theirs.cancelled
    served.allow("bob", "READ", "ADMIN")
    assert await served.end("bob") == {"ended": 1, "users": ["ann"]}


async def test_the_other_nodes_of_the_group_are_asked(served: Served) -> None:
    for node in ("N1", "N2", "N3"):
        served.registry.beat(Presence(node, f"http://{node.lower()}", "run"))
    served.registry.alive(["N1", "N2", "N3"])
    served.others.answers["http://n3"] = (200, {"ended": 1, "users": ["ann"]})
    assert await served.end("ann") == {"ended": 1, "users": ["ann"]}
    asked = [(url, json.loads(body)["user"]) for _, url, body in served.others.calls]
    assert asked == [("http://n2/v1/unsubscribe", "ann"), ("http://n3/v1/unsubscribe", "ann")]
    served.others.answers.clear()
    assert (await served.refusal("ann")).code == "E_NO_SUBSCRIPTION"


async def test_who_was_asked_asks_nobody_else(served: Served) -> None:
    served.registry.beat(Presence("N2", "http://n2", "run"))
    served.registry.alive(["N2"])
    assert await served.end(ROOT, user="ann", forwarded=True) == {"ended": 0, "users": []}
    assert served.others.calls == []
