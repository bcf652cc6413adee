"""Counters of streams each second: sampled once for all who ask, rates between samples, and only
what somebody may see.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.information.streams import StreamLists
from gateway.information.viewer import Viewer
from gateway.stream_counters import StreamSampler, counters
from penstock import names
from tests.unit.gateway.kit import ROOT, MemoryGateway


class Here:
    def __init__(self, directory: Path) -> None:
        self.gateway = MemoryGateway(directory)
        self.gateway.define(
            "CREATE DATABASE d PARTITIONS 1; CREATE DATABASE e PARTITIONS 1;"
            " CREATE TABLE p (ts TIMESTAMP, a INT); CREATE TABLE e.p (ts TIMESTAMP, a INT)"
        )
        for name in ("d.s", "e.s"):
            home = name[0]
            self.gateway.define(
                f"CREATE STREAM {name} INTO {home}.r AS SELECT _wstart, avg(a) AS v FROM {home}.p"
                " INTERVAL(10s)"
            )
        self.reads = 0
        lists = StreamLists(self.viewer())

        def read() -> Any:
            self.reads += 1
            return lists.streams()

        self.sampler = StreamSampler(read, self.gateway.clock)

    def viewer(self, user: str = ROOT) -> Viewer:
        gateway = self.gateway
        return Viewer(lambda: gateway.catalog, gateway.redis, gateway.access, user)

    def count(self, stream: str, **counted: int) -> None:
        """Have the only processor of a stream count."""
        entry = self.gateway.catalog.stream(*stream.split("."))
        assert entry is not None
        told = dict.fromkeys(("rows_in", "rows_out", "late", "failed", "state_bytes"), 0)
        key = names.stream_status(entry.id)
        stats = json.dumps({**told, "error": "", **counted})
        self.gateway.redis.hset(key, f"{names.STATS}in.{entry.database}:0", stats)

    async def ask(self, user: str = ROOT) -> dict[str, Any]:
        before, newest = await self.sampler.sample()
        return counters(before, newest, self.viewer(user))


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    made = Here(tmp_path)
    yield made
    made.gateway.close()


async def test_rates_are_what_a_second_brought(here: Here) -> None:
    here.count("d.s", rows_in=100, rows_out=10)
    first = await here.ask()
    (one,) = [s for s in first["streams"] if s["database"] == "d"]
    assert (one["name"], one["rows_in"], one["rows_in_rate"]) == ("s", 100, None)
    assert first["seconds"] is None
    here.gateway.clock.advance(2)
    here.count("d.s", rows_in=150, rows_out=10, late=4, state_bytes=77)
    second = await here.ask()
    (one,) = [s for s in second["streams"] if s["database"] == "d"]
    assert second["seconds"] == 2.0 and second["at"] == first["at"] + 2_000
    assert (one["rows_in"], one["rows_in_rate"], one["rows_out_rate"]) == (150, 25.0, 0.0)
    assert (one["late"], one["late_rate"], one["state_bytes"]) == (4, 2.0, 77)
    assert {s["status"] for s in second["streams"]} == {"init"}


async def test_counters_that_were_set_back_have_no_rate(here: Here) -> None:
    here.count("d.s", rows_in=100)
    await here.ask()
    here.gateway.clock.advance(1)
    here.count("d.s", rows_in=3)
    told = await here.ask()
    assert [s["rows_in_rate"] for s in told["streams"] if s["database"] == "d"] == [None]


async def test_however_many_ask_it_is_read_once_a_second(here: Here) -> None:
    for _ in range(20):
        await here.ask()
    assert here.reads == 1
    here.gateway.clock.advance(1)
    for _ in range(20):
        await here.ask()
    assert here.reads == 2


async def test_a_sample_of_long_ago_gives_no_rates(here: Here) -> None:
    await here.ask()
    here.gateway.clock.advance(3600)
    told = await here.ask()
    assert told["seconds"] is None and told["streams"][0]["rows_in_rate"] is None


async def test_only_streams_that_one_may_see(here: Here) -> None:
    home = here.gateway.catalog.database("e")
    assert home is not None
    ann = here.gateway.allow("ann", "READ", on=home.id)
    assert [s["database"] for s in (await here.ask())["streams"]] == ["d", "e"]
    assert [s["database"] for s in (await here.ask(ann))["streams"]] == ["e"]
    assert (await here.ask(here.gateway.allow("eve")))["streams"] == []


async def test_a_stream_that_is_gone_is_left_out(here: Here) -> None:
    await here.ask()
    here.gateway.define("DROP STREAM d.s")
    assert [s["database"] for s in (await here.ask())["streams"]] == ["e"]
