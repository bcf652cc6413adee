"""A service with a real health server; what Kafka and Redis would be asked is noted instead."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from penstock.bus.security import login
from penstock.errors import BusError, ConfigError
from penstock.runtime import audit
from tests.unit.penstock.service.kit import Parts, readiness, terminate

LOOPS = [None, uvloop.new_event_loop]


def test_parts_start_in_one_order_and_close_in_the_reverse_one(tmp_path: Path) -> None:
    parts = Parts()
    with parts.service(tmp_path) as service:
        service.read_catalog()
        service.announce()
        parts.note("serves")
    assert parts.events == [
        "catalog starts",
        "presence starts",
        "serves",
        "presence closes",
        "catalog closes",
    ]


def test_log_trail_and_login_are_there_before_the_catalog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[object] = []

    def look() -> None:
        audit.write("login", user="ann")
        found.append(login("kafka:9092")["sasl.username"])

    parts = Parts(on={"catalog starts": look})
    with parts.service(
        tmp_path, kafka_security="SASL_PLAINTEXT", kafka_user="mesh", kafka_password="secret"
    ) as service:
        service.read_catalog()
    assert found == ["mesh"]
    line = json.loads((tmp_path / "logs" / "audit.log").read_text())
    assert (line["service"], line["event"], line["user"]) == ("attic", "login", "ann")
    assert '"room": "attic"' in capsys.readouterr().err


def test_it_is_ready_when_all_is_reported_and_not_while_it_stops(tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    parts = Parts(on={"catalog closes": lambda: seen.append(readiness(port))})
    with parts.service(tmp_path) as service:
        port = service.health.port
        assert sorted(readiness(port)["waiting"]) == ["catalog", "socket"]
        service.read_catalog()
        assert sorted(readiness(port)["waiting"]) == ["socket"]
        service.health.ready("socket")
        assert readiness(port)["ready"]
    assert seen[0]["waiting"] == {"stop": "the service is stopping"}
    assert service.stop.is_set()
    with pytest.raises(urllib.error.URLError):
        readiness(port)


def test_the_catalog_is_read_as_the_service_says(tmp_path: Path) -> None:
    parts = Parts()
    with parts.service(tmp_path, kafka_bootstrap="kafka:9092") as service:
        service.read_catalog()
        assert parts.options == {
            "bootstrap": "kafka:9092",
            "client_id": "attic-catalog",
            "children": True,
            "registry": service.health.registry,
        }
        service.read_catalog(children=False, client_id="attic-7")
        assert parts.options["client_id"] == "attic-7" and not parts.options["children"]


def _fail() -> None:
    raise BusError("Kafka is away")


@pytest.mark.parametrize(
    ("event", "closed"),
    [
        ("catalog starts", ["catalog closes"]),
        ("presence starts", ["presence closes", "catalog closes"]),
        ("serves", ["presence closes", "catalog closes"]),
    ],
)
def test_a_part_that_fails_closes_those_before_it(
    tmp_path: Path, event: str, closed: list[str]
) -> None:
    parts = Parts(on={event: _fail})
    with pytest.raises(BusError, match="Kafka is away"), parts.service(tmp_path) as service:
        port = service.health.port
        service.read_catalog()
        service.announce()
        parts.note("serves")
    assert parts.events[parts.events.index(event) + 1 :] == closed
    with pytest.raises(urllib.error.URLError):
        readiness(port)


def test_a_part_that_does_not_close_keeps_no_other_from_closing(tmp_path: Path) -> None:
    parts = Parts(on={"presence closes": _fail})
    with pytest.raises(BusError), parts.service(tmp_path) as service:
        service.read_catalog()
        service.announce()
    assert parts.events[-1] == "catalog closes"


def test_without_its_health_port_nothing_is_left_behind(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        service = Parts().service(tmp_path, health_port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match="health port"), service:
            pytest.fail("the block began")
    assert not [t for t in threading.enumerate() if t.name == "signals"]


def test_a_signal_stops_a_service_of_threads(tmp_path: Path) -> None:
    with Parts().service(tmp_path) as service:
        service.read_catalog()
        service.health.ready("socket")
        terminate()
        assert service.stop.wait(5)
        assert not service.health.is_ready()


def test_a_signal_ends_the_wait_for_a_catalog_that_does_not_come(tmp_path: Path) -> None:
    def never() -> None:
        terminate()
        threading.Event().wait(60)

    parts = Parts(on={"catalog starts": never})
    with pytest.raises(SystemExit) as ended, parts.service(tmp_path) as service:
        service.read_catalog()
        service.announce()
    assert ended.value.code == 0
    assert parts.events == ["catalog starts", "catalog closes"]


@pytest.mark.parametrize("factory", LOOPS)
def test_a_signal_stops_an_event_loop(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop] | None
) -> None:
    parts = Parts()

    async def serve(stop: asyncio.Event) -> int:
        terminate()
        async with asyncio.timeout(30):
            await stop.wait()
        parts.note("served")
        return 7

    with parts.service(tmp_path) as service:
        service.read_catalog()
        assert service.run_async(serve, factory) == 7
        assert "event loop" in service.health.conditions()
    assert parts.events == ["catalog starts", "served", "catalog closes"]


def test_a_stop_before_the_loop_runs_is_heard_in_it(tmp_path: Path) -> None:
    async def serve(stop: asyncio.Event) -> None:
        async with asyncio.timeout(30):
            await stop.wait()

    with Parts().service(tmp_path) as service:
        terminate()
        assert service.stop.wait(5)
        service.run_async(serve)
