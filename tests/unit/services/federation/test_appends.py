"""Appends over a link: what is opened, what is acked, and when it ends."""

from __future__ import annotations

import asyncio
import dataclasses
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import Counter, Histogram
from prometheus_client.registry import CollectorRegistry

from penstock.catalog.model import FOREIGN, Child
from penstock.errors import BusError, PenstockError
from penstock.link.description import Description
from services.federation.appends import LinkAppends
from tests.unit.services.federation.kit import DATABASE, PLAIN, STABLE, Deployment, channel

ROWS = pa.table({"v": [1, 2]})


class Appender:
    """Takes what it is given; its acks come when a test says so."""

    def __init__(self) -> None:
        self.rows: list[pa.Table] = []
        self.deletes: list[tuple[Any, ...]] = []
        self.waiting: list[Future[int]] = []
        self.held = False
        self.refusal: PenstockError | None = None

    def _take(self, count: int) -> Future[int]:
        if self.refusal is not None:
            raise self.refusal
        done: Future[int] = Future()
        if self.held:
            self.waiting.append(done)
        else:
            done.set_result(count)
        return done

    def append(self, rows: pa.Table, acked: Any) -> Future[int]:
        self.rows.append(rows)
        return self._take(rows.num_rows)

    def delete(self, *what: Any) -> Future[int]:
        self.deletes.append(what[:-1])
        return self._take(0)


class Served(Deployment):
    def __init__(self, directory: Path, user: str = "ann") -> None:
        child = Child(50, "d", STABLE.id, "kitchen", (1,))
        super().__init__(directory, DATABASE, PLAIN, STABLE, child)
        self.allow("ann", "WRITE")
        self.appender = Appender()
        self.opened: list[tuple[str, str | None, int]] = []
        appenders: Any = self
        registry = CollectorRegistry()
        self.received = Counter("rows", "Rows", registry=registry)
        self.appends = LinkAppends(
            self.reader,
            self.access,
            self.lookup,
            appenders,
            self.received,
            Histogram("seconds", "Seconds", registry=registry),
        )
        self.channel, self.peer = channel(user)

    def open(self, table: Any, producer: str | None, owner: int, present: Any) -> Any:
        assert present().id == table.id
        self.opened.append((table.name, producer, owner))
        return self.appender, {0: (4, 1)}

    def serve(self, **request: Any) -> asyncio.Task[None]:
        asked = {"table": "d.meters"} | request
        return asyncio.create_task(self.appends.serve(self.channel, asked))

    async def until(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many acks."""
        while len(self.peer.said("ack")) < count:
            await asyncio.sleep(0)
        return self.peer.said("ack")


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def refusal(task: asyncio.Task[None]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        await task
    return wrong.value


async def test_each_frame_is_acked_when_it_is_on_all_replicas(tmp_path: Path) -> None:
    served = Served(tmp_path)
    task = served.serve(producer="p")
    served.channel.frames.put_nowait(({"seq": 1}, ROWS))
    served.channel.frames.put_nowait(({"seq": 2}, ROWS.slice(1)))
    acks = await served.until(2)
    assert [(a["seq"], a["rows"]) for a in acks] == [(1, 2), (2, 1)]
    (opened,) = served.peer.said("opened")
    assert opened["places"] == {"0": [4, 1]}
    assert Description.from_json(opened["table"]).name == "meters"
    assert served.opened == [("meters", "p", DATABASE.id)]
    assert served.received._value.get() == 3
    await end(task)


async def test_acks_come_in_order_and_wait_for_kafka(tmp_path: Path) -> None:
    served = Served(tmp_path)
    served.appender.held = True
    task = served.serve()
    for number in (1, 2):
        served.channel.frames.put_nowait(({"seq": number}, ROWS))
    while len(served.appender.waiting) < 2:
        await asyncio.sleep(0)
    second, first = served.appender.waiting[::-1]
    second.set_result(2)
    await asyncio.sleep(0)
    assert served.peer.said("ack") == []
    first.set_result(2)
    assert [a["seq"] for a in await served.until(2)] == [1, 2]
    await end(task)


async def test_a_delete_of_a_range_has_its_place_among_the_rows(tmp_path: Path) -> None:
    served = Served(tmp_path)
    task = served.serve(producer="p")
    delete = {"tables": ["d1"], "partition": None, "low": 1, "high": 9, "offset": 5}
    served.channel.frames.put_nowait(({"seq": 1, "delete": delete}, None))
    assert (await served.until(1))[0]["seq"] == 1
    assert served.appender.deletes == [(["d1"], None, 1, 9, 5)]
    await end(task)


async def test_a_write_that_fails_ends_the_channel(tmp_path: Path) -> None:
    served = Served(tmp_path)
    served.appender.held = True
    task = served.serve()
    served.channel.frames.put_nowait(({"seq": 1}, ROWS))
    while not served.appender.waiting:
        await asyncio.sleep(0)
    served.appender.waiting[0].set_exception(BusError("Kafka is away"))
    assert (await refusal(task)).code == "E_BUS"
    assert served.peer.said("ack") == []


async def test_rows_that_do_not_fit_end_the_channel(tmp_path: Path) -> None:
    served = Served(tmp_path)
    served.appender.refusal = PenstockError("no", code="E_ROW")
    task = served.serve()
    served.channel.frames.put_nowait(({"seq": 1}, ROWS))
    assert (await refusal(task)).code == "E_ROW"


async def test_a_right_that_is_taken_away_ends_the_channel(tmp_path: Path) -> None:
    served = Served(tmp_path)
    task = served.serve()
    served.channel.frames.put_nowait(({"seq": 1}, ROWS))
    await served.until(1)
    served.allow("ann", "READ")
    served.channel.frames.put_nowait(({"seq": 2}, ROWS))
    assert (await refusal(task)).code == "E_FORBIDDEN"
    assert len(served.appender.rows) == 1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"table": "kitchen", "database": "d"}, "E_CHILD_TABLE"),
        ({"table": "no", "database": "d"}, "E_NO_TABLE"),
        ({"table": "topic", "database": "d"}, "E_NO_LOG"),
        ({"table": "virtual", "database": "d"}, "E_NO_LOG"),
    ],
)
async def test_what_nobody_can_append_to(
    tmp_path: Path, request_: dict[str, Any], code: str
) -> None:
    served = Served(tmp_path)
    served.catalog.put(dataclasses.replace(PLAIN, id=60, name="topic", options={FOREIGN: "{}"}))
    served.catalog.put(dataclasses.replace(PLAIN, id=61, name="virtual", kind="virtual"))
    assert (await refusal(served.serve(**request_))).code == code
    assert served.opened == []


async def test_who_may_not_write(tmp_path: Path) -> None:
    served = Served(tmp_path, "bob")
    served.allow("bob", "READ")
    assert (await refusal(served.serve())).code == "E_FORBIDDEN"
