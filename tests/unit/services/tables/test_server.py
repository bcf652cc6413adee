"""What a node answers over HTTP: to whom, with which status, and how things are."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from aiohttp import web

from penstock.auth.passwords import hash_setting
from penstock.catalog.model import Grant, User
from services.tables.server import Server
from tests.unit.services.tables.kit import Log, Node, rows, stream_table
from tests.unit.services.tables.served_node import (
    ROOT,
    SETTINGS,
    ServedNode,
    Socket,
    answer,
    content,
    make_request,
)

TABLE = "/v1/tables/ha/trades"


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


class Served(ServedNode):
    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.node = node
        self.server = Server(
            SETTINGS,
            self.reader,
            self.keeper,
            self.election,
            self.registry,
            node.log.clock,
            ssl.create_default_context(),
        )
        self.application = self.server.application()

    async def get(self, path: str, *, method: str = "GET", **headers: str) -> web.Response:
        given = headers or basic(ROOT, SETTINGS.root_password)
        return await answer(self.application, make_request(method, path, headers=given))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.application.freeze()
        return await self.application._handle(request)

    def put(self, *numbers: int) -> None:
        self.node.write("p", self.node.replica.copy.next + 1, rows(*numbers))
        self.node.settle()


@pytest.fixture
async def served(tmp_path: Path) -> Served:
    table = stream_table(keys=("n",))
    return Served(Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()))


# -------------------------------------------------------------------- the door


async def test_nobody_gets_in_without_a_login(served: Served) -> None:
    for headers in ({"X-Other": "x"}, basic(ROOT, "wrong")):
        refused = await served.get("/v1/node", **headers)
        assert refused.status == 401
        assert content(refused)["error"]["code"] == "E_AUTH"


async def test_pages_of_browsers_are_refused(served: Served) -> None:
    headers = basic(ROOT, SETTINGS.root_password) | {"Origin": "http://evil"}
    refused = await served.get("/v1/node", **headers)
    assert refused.status == 403
    assert "pages may not connect" in content(refused)["error"]["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/tables/ha/none", 404),
        (f"{TABLE}/rows?from=9999", 200),
        (f"{TABLE}/producer?id=p", 421),
    ],
)
async def test_errors_have_their_status(served: Served, path: str, status: int) -> None:
    assert (await served.get(path)).status == status


async def test_who_asks_the_wrong_node_is_told_the_right_one(served: Served) -> None:
    served.lead_elsewhere()
    refused = content(await served.get(f"{TABLE}/producer?id=p"))
    assert refused["error"]["code"] == "E_NOT_LEADER"
    assert refused["leader"] == {"node": "N2", "url": "http://n2", "epoch": 0}


async def test_a_bug_is_no_more_than_that_to_a_client(served: Served) -> None:
    served.keeper.all = None
    refused = await served.get("/v1/stat")
    assert refused.status == 500
    error = content(refused)["error"]
    assert error["code"] == "E_INTERNAL" and "bug in the node" in error["message"]


async def test_what_is_no_path_is_left_to_the_framework(served: Served) -> None:
    with pytest.raises(web.HTTPNotFound):
        await served.get("/v1/none")


# -------------------------------------------------------------------- how things are


async def test_a_node_says_who_leads_and_what_it_has(served: Served) -> None:
    served.standing.alive = ("N1",)
    body = content(await served.get("/v1/node"))
    (group,) = body["groups"]
    assert (group["id"], group["leader"], group["serving"]) == (11, "", False)
    assert group["quorum"].startswith("no quorum")
    assert body["redis"] == "ok"
    served.lead_here(epoch=4)
    served.standing.alive = ("N1", "N2")
    served.standing.term = served.node.session.leadership.term  # type: ignore[union-attr]
    served.put(1, 2)
    served.election.redis_down = "away"
    body = content(await served.get("/v1/node"))
    (group,) = body["groups"]
    assert (group["leader"], group["epoch"], group["serving"]) == ("N1", 4, True)
    assert (group["quorum"], group["alive"]) == ("", ["N1", "N2"])
    assert body["tables"] == [{"table": "ha.trades", "group": 11, "next": 2}]
    assert body["redis"] == "away"


async def test_who_sees_no_table_gets_none(served: Served) -> None:
    served.catalog.put(User(950, "zoe", hash_setting("zoe-secret")))
    headers = basic("zoe", "zoe-secret")
    assert content(await served.get("/v1/node", **headers))["tables"] == []
    stat = content(await served.get("/v1/stat", **headers))
    assert stat["pubTables"] == stat["pubConns"] == []
    assert (await served.get(TABLE, **headers)).status == 403
    grants = (Grant("WRITE", served.node.table.id),)
    served.catalog.put(User(950, "zoe", hash_setting("zoe-secret"), grants=grants))
    assert (await served.get(TABLE, **headers)).status == 200, "a writer needs the columns, too"
    assert (await served.get(f"{TABLE}/rows", **headers)).status == 403


async def test_a_table_is_described(served: Served) -> None:
    served.lead_here()
    served.put(1, 2)
    body = content(await served.get(TABLE))
    assert (body["table"], body["group"], body["precision"]) == ("ha.trades", 11, "ms")
    assert body["columns"] == [
        ["ts", "TIMESTAMP"],
        ["sym", "VARCHAR(8)"],
        ["n", "BIGINT"],
        ["came", "TIMESTAMP"],
    ]
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(body["schema"])))
    assert schema.names == ["ts", "row_id", "sym", "n", "came"]
    assert body["leader"]["node"] == "N1"
    meta = body["meta"]
    assert (meta["raftGroup"], meta["keyColumn"], meta["totalSize"]) == (11, ["n"], 2)
    assert "warning" not in meta


async def test_a_cache_limit_that_was_lowered_is_said(tmp_path: Path) -> None:
    table = stream_table(limit=200_000)
    served = Served(Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()))
    meta = content(await served.get(TABLE))["meta"]
    assert meta["warning"] == "cacheLimit 200000 was lowered to 100000"


async def test_the_rows_in_memory_are_read(served: Served) -> None:
    served.lead_here()
    served.put(1, 2)
    served.put(3)

    async def numbers(query: str) -> list[int]:
        found = await served.get(f"{TABLE}/rows{query}")
        assert isinstance(found.body, bytes)
        numbers: list[int] = pa.ipc.open_stream(found.body).read_all().column("n").to_pylist()
        return numbers

    assert await numbers("") == [1, 2, 3]
    assert await numbers("?from=1&limit=1") == [2]
    assert await numbers("?from=3") == []
    assert await numbers("?limit=0") == []


async def test_statistics_of_subscribers_and_tables(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.lead_here()
    served.put(1, 2)
    socket = Socket(
        json.dumps({"table": "ha.trades", "action": "act", "id": "c1", "offset": 0}), stays=True
    )
    monkeypatch.setattr(web, "WebSocketResponse", socket)
    request = make_request("GET", "/v1/subscribe", headers=basic(ROOT, SETTINGS.root_password))
    serving = asyncio.create_task(served.handle(request))
    await socket.until(lambda: bool(socket.frames))
    body = content(await served.get("/v1/stat"))
    (connected,) = body["pubConns"]
    assert (connected["topic"], connected["sentRows"], connected["queueDepth"]) == (
        "11/ha.trades/act",
        2,
        0,
    )
    (table,) = body["pubTables"]
    assert (table["leads"], table["totalSize"], table["subscribers"]) == (True, 2, 1)
    assert table["ackedRows"] == 2
    assert body["persistWorkers"] == [{"table": "ha.trades", "queueDepth": table["waitingForDisk"]}]
    assert body["producers"] == 0
    await served.server.close()
    await serving
    assert socket.closed


async def test_only_nodes_watch_nodes(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.catalog.put(User(950, "zoe", hash_setting("zoe-secret")))
    assert (await served.get("/v1/peer", **basic("zoe", "zoe-secret"))).status == 403
    socket = Socket()
    monkeypatch.setattr(web, "WebSocketResponse", socket)
    request = make_request("GET", "/v1/peer", headers=basic(ROOT, SETTINGS.root_password))
    found: Any = await served.handle(request)
    assert found is socket


async def test_waking_lets_subscribers_look_again(served: Served) -> None:
    arrived = served.node.replica.arrival()
    served.server.wake()
    assert arrived.is_set()
