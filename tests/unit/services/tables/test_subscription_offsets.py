"""How far subscriptions are: kept in the table's log by whoever leads, each user's own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from penstock.errors import PenstockError, RemoteError
from services.tables.subscription_offsets import SubscriptionOffsets, is_forwarded
from tests.unit.services.tables.kit import Log, Node, rows, stream_table
from tests.unit.services.tables.served_node import (
    ROOT,
    ServedNode,
    ask,
    content,
    make_request,
)

PATH = "/v1/tables/ha/trades/offset"


class Served(ServedNode):
    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.offsets = SubscriptionOffsets(self.lookup, self.others)
        self.allow("ann", "READ")
        self.allow("bob", "READ")

    async def finish(self, call: Any) -> Any:
        """What a call gives when Kafka takes everything meanwhile."""
        task = asyncio.ensure_future(call)
        while not task.done():
            await asyncio.sleep(0)
            if self.nodes[0].session is not None:
                self.nodes[0].settle()
        return await task

    async def ask(self, method: str, path: str, body: Any = b"", **more: Any) -> web.Response:
        answer: web.Response = await self.finish(
            ask(self.offsets.routes(), method, path, body, **more)
        )
        return answer

    async def row(self, action: str, user: str) -> int:
        answer = await self.ask("GET", f"{PATH}?action={action}", user=user)
        return int(content(answer)["row"])


@pytest.fixture
async def served(tmp_path: Path) -> Served:
    table = stream_table()
    return Served(Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()))


async def test_each_user_has_offsets_of_their_own(served: Served) -> None:
    served.lead_here()
    await served.ask("POST", PATH, {"action": "act", "row": 7}, user="ann")
    await served.ask("POST", PATH, {"action": "act", "row": 9}, user="bob")
    assert await served.row("act", "ann") == 7
    assert await served.row("act", "bob") == 9
    assert await served.row("other", "ann") == -1
    assert served.offsets.name("act", ROOT) == "o:act"
    ann = served.catalog.user("ann")
    assert ann is not None
    assert served.offsets.name("act", "ann") == f"u:{ann.id}:act"
    with pytest.raises(PenstockError) as nobody:
        served.offsets.name("act", "nobody")
    assert nobody.value.code == "E_AUTH"


async def test_an_offset_of_earlier_versions_counts_until_the_user_has_one(served: Served) -> None:
    served.lead_here()
    replica = served.nodes[0].replica
    await served.finish(served.offsets.submit(replica, "o:act", 3))
    assert await served.row("act", "ann") == 3
    await served.ask("POST", PATH, {"action": "act", "row": 5}, user="ann")
    assert await served.row("act", "ann") == 5
    assert await served.row("act", "bob") == 3


async def test_an_offset_is_kept_by_the_node_that_leads(served: Served) -> None:
    served.lead_elsewhere()
    served.others.answers["http://n2"] = (200, {})
    await served.ask("POST", PATH, {"action": "act", "row": 7}, user="ann")
    ((method, url, body),) = served.others.calls
    ann = served.catalog.user("ann")
    assert ann is not None
    assert (method, url) == ("POST", f"http://n2{PATH}")
    assert json.loads(body) == {"place": f"u:{ann.id}:act", "row": 7}


async def test_a_leader_that_does_not_take_it(served: Served) -> None:
    served.lead_elsewhere()
    served.others.answers["http://n2"] = (503, {"error": {"code": "E_NO_QUORUM"}})
    with pytest.raises(RemoteError) as refused:
        await served.ask("POST", PATH, {"action": "act", "row": 7}, user="ann")
    assert "did not take an offset" in refused.value.message


async def test_without_a_leader_it_is_not_kept(served: Served) -> None:
    with pytest.raises(RemoteError) as nobody:
        await served.ask("POST", PATH, {"action": "act", "row": 7}, user="ann")
    assert nobody.value.code == "E_NOT_LEADER"


async def test_another_node_passes_on_an_offset_of_anybody(served: Served) -> None:
    served.lead_here()
    served.nodes[0].write("p", 1, rows(1, 2))
    await served.ask("POST", PATH, {"place": "u:900:act", "row": 2}, user=ROOT, forwarded=True)
    known = served.nodes[0].replica.copy.producers.get("u:900:act")
    assert known is not None and known.sequence == 2


async def test_only_nodes_of_the_mesh_pass_on(served: Served) -> None:
    for user, forwarded in (("ann", True), (ROOT, False)):
        request = make_request("POST", PATH, forwarded=forwarded)
        request["user"] = user
        assert not is_forwarded(request, ROOT)
    request = make_request("POST", PATH, forwarded=True)
    request["user"] = ROOT
    assert is_forwarded(request, ROOT)


async def test_who_may_not_read_has_no_offsets(served: Served) -> None:
    carl = served.allow("carl", "WRITE")
    for method, body in (("GET", b""), ("POST", {"action": "act", "row": 1})):
        with pytest.raises(PenstockError) as no:
            await served.ask(method, PATH, body, user=carl)
        assert no.value.code == "E_FORBIDDEN"
