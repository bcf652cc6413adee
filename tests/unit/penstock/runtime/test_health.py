from __future__ import annotations

import asyncio
import json
import platform
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock.errors import ConfigError
from penstock.runtime.health import Health
from penstock.runtime.pulse import Pulse


def get(health: Health, path: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{health.port}{path}", headers=headers),
            timeout=5,
        ) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read()


def test_ready_when_every_condition_holds() -> None:
    with Health("attic", wait_for=("kafka", "redis")) as health:
        assert get(health, "/healthz")[0] == 200
        health.ready("kafka")
        status, body = get(health, "/readyz")
        assert status == 503 and json.loads(body)["waiting"] == {"redis": "not started yet"}
        health.ready("redis")
        assert get(health, "/readyz")[0] == 200 and health.is_ready()
        health.ready("kafka", False, "no broker")
        assert json.loads(get(health, "/readyz")[1])["waiting"] == {"kafka": "no broker"}


def test_metrics_and_unknown_paths() -> None:
    with Health("attic") as health:
        Counter("penstock_rows", "rows", registry=health.registry).inc(3)
        assert b"penstock_rows_total 3.0" in get(health, "/metrics")[1]
        assert get(health, "/other")[0] == 404


def counted(health: Health) -> None:
    """Count as services do: under names that users gave, and under words of our own."""
    Counter("penstock_query_failures", "of a topic", ["topic"], registry=health.registry).labels(
        "in.payroll"
    ).inc(2)
    Gauge(
        "penstock_notify_behind_events", "of a stream", ["stream"], registry=health.registry
    ).labels("payroll.fired").set(3)
    Gauge(
        "penstock_federation_behind_seconds", "of a view", ["view"], registry=health.registry
    ).labels("payroll.audit").set(4)
    Counter("penstock_snode_backups", "of a query", ["query"], registry=health.registry).labels(
        "in.payroll"
    ).inc(5)
    Histogram(
        "penstock_stream_lag_seconds", "of a stream", ["stream"], registry=health.registry
    ).labels("payroll.fired").observe(1)
    Gauge("penstock_lease_held", "held", ["lease"], registry=health.registry).labels("catalog").set(
        1
    )


@pytest.mark.parametrize("key", [None, "a key of metrics"])
def test_who_has_no_key_reads_numbers_and_no_names(key: str | None) -> None:
    with Health("attic", metrics_key=key) as health:
        counted(health)
        status, body = get(health, "/metrics")
        told = body.decode()
        assert status == 200 and "payroll" not in told and "fired" not in told
        assert platform.python_version() not in told
        values = {
            line.partition("{")[0]: line.rpartition(" ")[2]
            for line in told.splitlines()
            if "~" in line
        }
        assert (
            values["penstock_query_failures_total"] == "2.0"
            and values["penstock_notify_behind_events"] == "3.0"
        )
        assert 'penstock_lease_held{lease="catalog"} 1.0' in told and 'le="+Inf"' in told
        assert (
            "# TYPE penstock_query_failures_total counter" in told
            and "# TYPE penstock_stream_lag_seconds histogram" in told
        )


def test_who_has_the_key_reads_names() -> None:
    with Health("attic", metrics_key="a key of metrics") as health:
        counted(health)
        told = get(health, "/metrics", Authorization="Bearer a key of metrics")[1].decode()
        assert (
            'penstock_query_failures_total{topic="in.payroll"} 2.0' in told
            and 'stream="payroll.fired"' in told
        )
        for wrong in (
            "Bearer another",
            "Bearer",
            "Basic a key of metrics",
            "a key of metrics",
            "Bearer \xe9",
        ):
            status, body = get(health, "/metrics", Authorization=wrong)
            assert status == 401 and b"penstock_" not in body


def test_pseudonyms_stay_with_the_key_and_tell_nothing_without_it() -> None:
    def pseudonym(key: str | None) -> str:
        with Health("attic", metrics_key=key) as health:
            counted(health)
            (line,) = (
                x
                for x in get(health, "/metrics")[1].decode().splitlines()
                if x.startswith("penstock_query_failures_total{")
            )
            return line

    assert pseudonym("one") == pseudonym("one") != pseudonym("two")
    assert pseudonym(None) != pseudonym(None), (
        "names that can be guessed are not told by a hash that can be made again"
    )


def test_many_askers_cost_no_more_than_one() -> None:
    class Costly(Collector):
        asked = 0

        def collect(self) -> list[Metric]:
            Costly.asked += 1
            return []

    with Health("attic") as health:
        health.registry.register(Costly())
        Costly.asked = 0
        started = time.monotonic()
        for _ in range(20):
            get(health, "/metrics")
        assert Costly.asked <= 1 + (time.monotonic() - started)


def test_taken_port_says_how_to_change_it() -> None:
    with Health("attic") as first, pytest.raises(ConfigError, match="PENSTOCK_ATTIC_HEALTH_PORT"):
        Health("attic", first.port)


def test_a_blocked_event_loop_is_neither_ready_nor_alive() -> None:
    blocked = threading.Event()
    free = threading.Event()

    async def serve(health: Health) -> None:
        health.watch("event loop", Pulse(asyncio.get_running_loop()).late)
        health.ready("start")
        assert (await asyncio.to_thread(get, health, "/readyz"))[0] == 200
        blocked.set()
        free.wait(30)  # what must not be done in a loop

    with Health("attic") as health:
        thread = threading.Thread(target=asyncio.run, args=(serve(health),))
        thread.start()
        assert blocked.wait(10)
        deadline = time.monotonic() + 20
        while (answer := get(health, "/readyz"))[0] == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        told = json.loads(answer[1])
        assert told["stuck"] == ["event loop"] and "has not moved" in told["waiting"]["event loop"]
        free.set()
        thread.join()


def test_what_is_vital_and_stands_for_long_is_dead() -> None:
    with Health("attic", wait_for=()) as health:
        late = {"slow": 0.0, "vital": 0.0}
        health.watch("slow", lambda: late["slow"], vital=False)
        health.watch("vital", lambda: late["vital"])
        assert get(health, "/healthz")[0] == get(health, "/readyz")[0] == 200
        late["slow"] = float("inf")
        assert get(health, "/healthz")[0] == 200 and get(health, "/readyz")[0] == 503
        late["vital"] = float("inf")
        assert get(health, "/healthz")[0] == 503


def test_slow_askers_hold_up_nobody() -> None:
    with Health("attic") as health:
        slow = [socket.create_connection(("127.0.0.1", health.port)) for _ in range(200)]
        try:
            for connection in slow[100:]:
                connection.sendall(b"GET /readyz HT")
            started = time.monotonic()
            assert get(health, "/healthz")[0] == 200
            assert time.monotonic() - started < 2
        finally:
            for connection in slow:
                connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/other"])
def test_answers_name_no_software(path: str) -> None:
    with (
        Health("attic") as health,
        socket.create_connection(("127.0.0.1", health.port)) as connection,
    ):
        connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head = connection.makefile("rb").read().partition(b"\r\n\r\n")[0].lower()
        assert b"python" not in head and b"server:" not in head


def test_details_are_told_on_loopback_only() -> None:
    addresses = [
        a[4][0]
        for a in socket.getaddrinfo(socket.gethostname(), 0, socket.AF_INET)
        if not a[4][0].startswith("127.")
    ]
    if not addresses:
        pytest.skip("this machine has no address besides loopback")
    with Health("attic", host="0.0.0.0") as health:
        body = urllib.request.urlopen(f"http://{addresses[0]}:{health.port}/healthz").read()
        assert json.loads(body) == {"alive": True}
