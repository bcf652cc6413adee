"""A target that is down is seen where streams are listed, and no longer than it is so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import redis
import redis.asyncio
from prometheus_client import CollectorRegistry

from gateway.information.schema import Information
from penstock import names
from penstock.auth.access import Access
from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.outbound.targets import AllowList
from penstock.setup.redis_server import find_redis_server
from penstock.sql import parse_one
from penstock.sql.statements import Query
from services.notifier.cursor import Mark
from services.notifier.delivery import TargetDelivery
from services.notifier.message import targets_of
from services.notifier.metrics import PushMetrics
from services.notifier.settings import NotifierSettings
from services.notifier.standing import TargetStanding
from services.notifier.surroundings import Surroundings
from tests.unit.services.notifier.kit import entry, message

STREAM = entry("NOTIFY ('ws://ann:hunter2@h:1/a') ON ('WINDOW_CLOSE')")
SILENT = replace(entry("", stream=13), plan=replace(entry("", stream=13).plan, name="quiet"))
CATALOG = Catalog([Database(1, "db"), STREAM, SILENT])


class Reader:
    """As much of a catalog reader as is asked for."""

    catalog = CATALOG


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("redis")
    command = [
        str(find_redis_server()),
        "--port",
        "0",
        "--unixsocket",
        str(directory / "s"),
        "--save",
        "",
        "--dir",
        str(directory),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        if "eady to accept connections" in line:
            break
    try:
        yield directory / "s"
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


def delivery() -> TargetDelivery:
    """One that delivers nothing, with two messages of an event each: one from the live reader, one
    read again.
    """
    none = cast(Any, None)
    metrics = PushMetrics(CollectorRegistry())
    (target,) = targets_of(STREAM)
    around = Surroundings(
        NotifierSettings(),
        AllowList([]),
        none,
        metrics,
        none,
        none,
        lambda _: 7,
        lambda *_: None,
        lambda _: None,
    )
    made = TargetDelivery(target, around)
    made.follow(0, Mark(5), behind=True)
    made.cursors[0].refill([message(5)], 6, 6)
    made.offer(message(6))
    return made


def listed(client: redis.Redis) -> list[tuple[Any, ...]]:
    statement = parse_one(
        "SELECT message, events_waiting FROM information_schema.ins_streams ORDER BY stream_id"
    )
    assert isinstance(statement, Query)
    answer = Information(
        lambda: CATALOG, client, "1.0", Access(lambda: CATALOG, "root"), "root"
    ).query(statement.query)
    assert answer is not None
    return [tuple(row.values()) for row in answer.to_pylist()]


async def test_a_target_that_is_down_shows_until_it_is_back(socket: Path) -> None:
    one = delivery()
    with redis.Redis(unix_socket_path=str(socket)) as client:
        async with redis.asyncio.Redis(unix_socket_path=str(socket)) as ours:
            standing = TargetStanding(cast(Any, Reader()), ours, "host:1")
            await standing.tell({one.target: one})
            assert listed(client) == [("", 2), ("", None)], "behind, but not down"
            one.down = "ConnectionRefusedError"
            await standing.tell({one.target: one})
            [(message, waiting), silent] = listed(client)
            assert (
                message.endswith(" is down: ConnectionRefusedError; 2 events wait")
                and "hunter2" not in message
            )
            assert (waiting, silent) == (2, ("", None))
            key = names.stream_status(STREAM.id)
            field = names.targets_field("host:1")
            said = json.loads(cast(bytes, client.hget(key, field)))
            client.hset(key, field, json.dumps({**said, "at": said["at"] - 60}))
            assert listed(client)[0] == ("", 0), "its notifier is gone"
            one._settle(one.cursors[0].waiting(10, 1000), delivered=True)
            one.down = ""
            await standing.tell({one.target: one})
            assert client.hkeys(key) == []
