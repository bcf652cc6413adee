"""Subscriptions over a link from the first row to the present, across segments and generations."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from penstock.catalog.model import Child, Database, Table, View
from penstock.errors import PenstockError
from penstock.feeds import feed
from penstock.feeds.cursor import Cursor
from penstock.link.channel import LinkMessage
from penstock.outbound.reach import Reach
from penstock.rows.versions import UPSERT
from penstock.storage import segments
from penstock.storage.segments import Position
from services.federation import relay, subscription_pump
from services.federation.subscriptions import LinkSubscriptions
from tests.unit.services.federation.kit import (
    DATABASE,
    FAR,
    PLAIN,
    STABLE,
    TOPIC,
    VIEW,
    Connection,
    Deployment,
    channel,
)


class Served(Deployment):
    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, *entries: Any) -> None:
        super().__init__(directory, *(entries or (DATABASE, PLAIN, STABLE, FAR, VIEW)))
        monkeypatch.setattr(feed, "Reader", self._reader)
        monkeypatch.setattr(feed, "Admin", lambda *_, **__: self.log)
        monkeypatch.setattr(subscription_pump, "_TOKEN_SECONDS", 0.01)
        outbound: Any = SimpleNamespace(reach=lambda maker, *, link: Reach(link=link))
        self.subscriptions = LinkSubscriptions(
            self.settings, self.reader, self.access, self.lookup, outbound
        )
        self.tasks: list[asyncio.Task[None]] = []

    def _reader(self, bootstrap: str, offsets: Any, **_: Any) -> Any:
        return self.log.reader(bootstrap, offsets)

    def subscribe(
        self, sql: str = "SELECT v FROM d.plain", user: str = "root", **more: Any
    ) -> tuple[asyncio.Task[None], Connection]:
        subject, peer = channel(user)
        request = {"sql": sql, "from": "earliest"} | more
        task = asyncio.create_task(self.subscriptions.serve(subject, request))
        self.tasks.append(task)
        return task, peer

    def store(self, *numbers: int) -> None:
        """The first records are in segments and no longer in the log."""
        rows = pl.DataFrame(
            {
                "tbname": "plain",
                "ts": list(numbers),
                "v": list(numbers),
                "_op": UPSERT,
                "_offset": range(len(numbers)),
                "_row": 0,
            },
            schema_overrides={
                "_op": pl.Int8,
                "_offset": pl.Int64,
                "_row": pl.UInt32,
                "v": pl.Int32,
            },
        ).with_columns(pl.col("ts").cast(pl.Datetime("ms")))
        root = self.settings.segments_dir
        where = segments.directory(root, PLAIN.id, 0, TOPIC)
        end = len(numbers)
        segments.write(
            where,
            rows.to_arrow(),
            "ts",
            0,
            end - 1,
            fresh=True,
            low=min(numbers),
            high=max(numbers),
        )
        Position(TOPIC, 0, 1, end).save(root)
        self.log.starts[TOPIC, 0] = end


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    made = Served(tmp_path, monkeypatch)
    yield made
    await close(made)


async def close(served: Served) -> None:
    for task in served.tasks:
        task.cancel()
    await asyncio.gather(*served.tasks, return_exceptions=True)
    served.subscriptions.close()


async def until(check: Any) -> None:
    async with asyncio.timeout(20):
        while not check():
            await asyncio.sleep(0)


async def refusal(task: asyncio.Task[None]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        await task
    return wrong.value


async def test_rows_that_are_there_and_rows_that_come(served: Served) -> None:
    served.publish(PLAIN, ("plain", 1, 1), ("plain", 2, 2))
    _, peer = served.subscribe()
    await until(lambda: peer.numbers() == [1, 2])
    first = peer.messages()[0][0]
    assert first["type"] == "subscribed" and first["columns"] == ["v"]
    served.publish(STABLE, ("d1", 3, 30, 1))
    served.publish(PLAIN, ("plain", 3, 3))
    await until(lambda: peer.numbers() == [1, 2, 3])


async def test_only_new_rows_and_those_of_a_condition(served: Served) -> None:
    served.publish(PLAIN, ("plain", 1, 1))
    _, latest = served.subscribe("SELECT v FROM d.plain WHERE v > 2", **{"from": "latest"})
    await until(lambda: bool(latest.sent))
    served.publish(PLAIN, ("plain", 2, 2), ("plain", 3, 3))
    await until(lambda: latest.numbers() == [3])


async def test_a_token_goes_on_exactly_behind_its_message(served: Served) -> None:
    served.publish(PLAIN, ("plain", 1, 1))
    task, peer = served.subscribe()
    await until(lambda: bool(peer.said("token")))
    token = peer.said("token")[-1]["token"]
    task.cancel()
    served.publish(PLAIN, ("plain", 2, 2))
    _, again = served.subscribe(**{"from": token})
    await until(lambda: again.numbers() == [2])


async def test_how_far_behind_a_subscription_is_is_said(served: Served) -> None:
    served.publish(PLAIN, ("plain", 1, 1))
    _, peer = served.subscribe()
    await until(lambda: bool(peer.said("token")))
    assert peer.said("token")[-1]["behind"] == 0
    assert any("behind" in header for header in peer.said("rows"))


async def test_rows_that_left_the_log_come_from_segments(served: Served) -> None:
    for _ in range(3):
        served.log.append(TOPIC, b"gone")
    served.store(1, 2, 3)
    served.publish(PLAIN, ("plain", 4, 4))
    _, peer = served.subscribe()
    await until(lambda: peer.numbers() == [1, 2, 3, 4])


async def test_rows_of_a_child_table_only(served: Served) -> None:
    served.catalog.put(Child(50, "d", STABLE.id, "d1", (1,)))
    served.publish(STABLE, ("d1", 1, 1, 1), ("d2", 2, 2, 2))
    _, peer = served.subscribe("SELECT v FROM d.d1")
    await until(lambda: peer.numbers() == [1])


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT v FROM d.nothing", "E_NO_TABLE"),
        ("SELECT x FROM d.plain", "E_UNKNOWN_COLUMN"),
        ("SELECT FROM", "E_SYNTAX"),
    ],
)
async def test_what_cannot_be_followed(served: Served, sql: str, code: str) -> None:
    task, peer = served.subscribe(sql)
    assert (await refusal(task)).code == code
    assert peer.sent == []


async def test_a_token_of_another_table_is_refused(served: Served) -> None:
    token = f"999.{Cursor({0: 0}).token()}"
    task, _ = served.subscribe(**{"from": token})
    assert (await refusal(task)).code == "E_RESUME_TOKEN"


async def test_rights_are_asked_for_again_as_rows_go_by(served: Served) -> None:
    task, _ = served.subscribe(user=served.allow("bob"))
    assert (await refusal(task)).code == "E_FORBIDDEN"
    ann = served.allow("ann", "READ")
    served.publish(PLAIN, ("plain", 1, 1))
    task, peer = served.subscribe(user=ann)
    await until(lambda: peer.numbers() == [1])
    served.allow("ann")
    served.publish(PLAIN, ("plain", 2, 2))
    assert (await refusal(task)).code == "E_FORBIDDEN"


async def test_it_ends_with_the_table_and_with_the_query_it_is_in(served: Served) -> None:
    task, peer = served.subscribe("SELECT v FROM up", query="up", database="d")
    await until(lambda: bool(peer.sent))
    served.catalog.put(dataclasses.replace(VIEW, status="paused"))
    assert (await refusal(task)).code == "E_QUERY_NOT_RUNNING"
    task, peer = served.subscribe()
    await until(lambda: bool(peer.sent))
    served.catalog.remove(PLAIN.id)
    assert (await refusal(task)).code == "E_NO_TABLE"


async def test_altered_tables_say_so_before_their_rows(served: Served) -> None:
    _, peer = served.subscribe()
    await until(lambda: bool(peer.sent))
    version = dataclasses.replace(PLAIN.newest, schema_id=117)
    altered = dataclasses.replace(PLAIN, versions=(*PLAIN.versions, version))
    served.catalog.put(altered)
    served.publish(altered, ("plain", 1, 1))
    await until(lambda: peer.numbers() == [1])
    kinds = [header["type"] for header, _ in peer.messages() if header["type"] != "token"]
    assert kinds == ["subscribed", "schema", "rows"]


async def test_a_subscription_follows_its_database_to_the_next_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(tmp_path, monkeypatch, DATABASE, PLAIN)
    served.publish(PLAIN, ("plain", 1, 1))
    _, peer = served.subscribe()
    await until(lambda: peer.numbers() == [1])
    served.log.append(TOPIC, b"\0\0\0\0\1the control record that ends it")
    moved = Database(1, "d", partitions=2, former=((1,),))
    served.log.partitions[moved.topic] = 2
    table: Table = dataclasses.replace(PLAIN, topic=moved.topic, partitions=2)
    for partition in range(2):
        for _ in range(2):
            served.log.append(moved.topic, b"before it begins", None, partition)
    served.catalog.put(moved)
    served.catalog.put(table)
    served.publish(table, ("plain", 2, 2))
    await until(lambda: peer.numbers() == [1, 2])
    await close(served)


# -------------------------------------------------------------------- external streams


async def test_external_streams_are_passed_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def messages(shards: Any, sql: str, database: str, start: str, **more: Any) -> Any:
        asked.append((len(shards), sql, database, start, more["positions"]))
        yield LinkMessage({"type": "subscribed", "token": "x.t"})
        yield LinkMessage({"type": "rows"}, FAR_ROWS)

    monkeypatch.setattr(relay, "messages", messages)
    task, peer = served.subscribe("SELECT v FROM d.far", positions=True, **{"from": "latest"})
    await task
    assert peer.numbers() == [9]
    ((shards, sql, database, start, positions),) = asked
    assert (shards, database, start, positions) == (2, "rd", "latest", True)
    assert "rt" in sql


FAR_ROWS = pl.DataFrame({"v": [9]}).to_arrow()


async def test_external_streams_need_read_as_well(served: Served) -> None:
    task, _ = served.subscribe("SELECT v FROM d.far", user=served.allow("bob"))
    assert (await refusal(task)).code == "E_FORBIDDEN"


async def test_a_view_that_writes_an_external_stream_is_followed_there(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.catalog.put(View(43, "d", "out", "SELECT * FROM d.meters", STABLE.id, FAR.id))

    async def messages(*_: Any, **__: Any) -> Any:
        yield LinkMessage({"type": "subscribed", "token": "x.t"})

    monkeypatch.setattr(relay, "messages", messages)
    task, peer = served.subscribe("SELECT v FROM d.out")
    await task
    assert peer.messages()[0][0]["token"] == "x.t"


class Arrival(asyncio.Event):
    """Says when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = False

    async def wait(self) -> Any:
        self.awaited = True
        return await super().wait()


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancellation_that_comes_with_a_record_ends_a_subscription(
    served: Served, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    arrived = Arrival()
    arrivals = chain([arrived], repeat(asyncio.Event()))
    monkeypatch.setattr(subscription_pump, "_TOKEN_SECONDS", 30)
    monkeypatch.setattr(feed.Listening, "arrival", lambda _: next(arrivals))
    task, _ = served.subscribe()
    await until(lambda: arrived.awaited)
    arrived.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done and task.cancelled()
