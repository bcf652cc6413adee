"""How the services are, as each said of itself, and what doctor says of streams; for those who may
know.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.dead_letters import DeadLetterReader
from gateway.guard import RequestGuard
from gateway.health import HealthRoutes
from penstock import names
from penstock.runtime.clock import ManualClock
from tests.unit.gateway.kit import NOW, ROOT
from tests.unit.gateway.test_rest import EverybodyIs
from tests.unit.gateway.test_stream_counters import Here as Streams

SECONDS = NOW / 1e9


class Here(Streams):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.say("gateway", memory=1000, version="0.9", restarts=2)
        self.say("store", waiting={"kafka": "broker b:9092 refuses"})
        self.say("snode", node=2, seen=SECONDS - 60)
        clock: ManualClock = self.gateway.clock
        letters = DeadLetterReader(self.gateway.log, "kafka", "g1")
        self.routes = HealthRoutes(self.sampler, self.viewer, letters.count, clock)

    def say(self, service: str, node: int = 1, seen: float = SECONDS - 1, **more: Any) -> None:
        about = {"host": "box", "started": SECONDS - 100, "seen": seen, **more}
        self.gateway.redis.hset(names.nodes(), f"{node}:{service}", json.dumps(about))

    async def health(self, user: str = ROOT) -> dict[str, Any]:
        app = web.Application()
        app.add_routes(self.routes.routes(cast(RequestGuard, EverybodyIs(user))))
        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/v1/health")
            assert answer.status == 200
            return dict(await answer.json())


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    made = Here(tmp_path)
    yield made
    made.gateway.close()


async def test_each_service_says_how_it_is(here: Here) -> None:
    told = await here.health()
    assert told["ready"] is False
    states = {(s["name"], s["node"]): s["state"] for s in told["services"]}
    assert states == {("gateway", 1): "ready", ("snode", 2): "offline", ("store", 1): "waiting"}
    gateway, snode, store = told["services"]
    assert (gateway["memory"], gateway["version"], gateway["uptime"]) == (1000, "0.9", 100.0)
    assert gateway["restarts"] == 2
    assert store["waiting"] == {"kafka": "broker b:9092 refuses"}
    assert (store["memory"], store["version"]) == (None, ""), "an earlier version"
    assert snode["uptime"] == 0.0 and snode["seen"] == SECONDS - 60


async def test_others_learn_names_and_states(here: Here) -> None:
    told = await here.health(here.gateway.allow("ann"))
    _, _, store = told["services"]
    assert (store["state"], store["waiting"]) == ("waiting", {"kafka": ""})
    assert {(s["host"], s["memory"], s["restarts"]) for s in told["services"]} == {(None,) * 3}


async def test_findings_are_of_streams_that_one_may_see(here: Here) -> None:
    entry = here.gateway.catalog.stream("d", "s")
    assert entry is not None
    key = names.stream_status(entry.id)
    here.gateway.redis.hset(key, f"{names.FAILED}in.d:0", "E_STATE: too large")
    found = (await here.health())["findings"]
    assert [f["grade"] for f in found] == ["bad", "look", "ok"]
    assert "stream d.s stopped" in found[0]["what"] and "SHOW CREATE STREAM d.s" in found[0]["do"]
    assert (await here.health(here.gateway.allow("eve")))["findings"] == [
        {"grade": "ok", "what": "there are no streams", "do": ""}
    ]


async def test_what_is_away_is_told_and_no_error(here: Here) -> None:
    here.gateway.memory_redis.down = True
    told = await here.health()
    assert (told["ready"], told["services"]) == (False, [])
    assert [f["grade"] for f in told["findings"]] == ["bad", "ok"]


async def test_dead_letters_are_for_who_has_admin(here: Here) -> None:
    here.gateway.log.records[names.DEAD_LETTER, 0] += [(NOW, b"", b"x")] * 3
    found = (await here.health())["findings"]
    assert [f["what"] for f in found if f["grade"] == "look"][-1] == "3 dead letters"
    ann = (await here.health(here.gateway.allow("ann")))["findings"]
    assert not [f for f in ann if "dead" in f["what"]]
