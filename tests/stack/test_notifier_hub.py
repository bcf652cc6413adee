"""`/ws` over real sockets: who may come in, what they get, and that nobody waits for a slow
neighbour.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from penstock.client.gateway import authorization
from penstock.client.subscribe import Subscription, subscription_request
from penstock.errors import AuthError, RemoteError

from .notifier_kit import Kit, kit


@pytest.fixture(scope="module")
def mesh_kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    settings = {
        "PENSTOCK_NOTIFIER_FEED_BYTES": str(1 << 20),
        "PENSTOCK_NOTIFIER_ORIGINS": '["https://good.example"]',
    }
    with kit(tmp_path_factory.mktemp("hub"), **settings) as made:
        yield made


def take(subscription: Subscription, count: int, timeout: float = 20) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += subscription.next(timeout).items
    return found


def raw(mesh_kit: Kit) -> ClientConnection:
    import base64

    word = base64.b64encode(f"{mesh_kit.mesh.user}:{mesh_kit.mesh.password}".encode()).decode()
    headers = {"Authorization": f"Basic {word}"}
    return connect(
        f"{mesh_kit.mesh.notifier_url}/ws",
        additional_headers=headers,
        max_size=64 << 20,
        legacy=True,
    )


def ask(connection: ClientConnection, request: dict[str, Any] | str) -> dict[str, Any]:
    connection.send(request if isinstance(request, str) else json.dumps(request))
    answer: dict[str, Any] = json.loads(connection.recv(20))
    return answer


def test_resume_behind_the_last_message_after_a_cut(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    first = mesh_kit.subscribe(f"{database}.meters")
    mesh_kit.rows(table, ["d1"], 1)
    assert [r["v"] for r in take(first, 1)] == [1]
    first.close()
    for v in range(2, 20):
        mesh_kit.rows(table, ["d1"], v)
    again = mesh_kit.subscribe(f"{database}.meters", start=first.token)
    assert [r["v"] for r in take(again, 18)] == list(range(2, 20))
    pid = mesh_kit.mesh.kill("notifier")
    mesh_kit.rows(table, ["d1"], 20)
    mesh_kit.mesh.wait_ready("notifier", not_pid=pid)
    mesh_kit.rows(table, ["d1"], 21)
    assert [r["v"] for r in take(again, 2)] == [20, 21], "the client comes back by itself"
    again.close()


def test_what_a_stream_published_twice_comes_once_also_over_a_cut(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    first = mesh_kit.subscribe(f"{database}.meters")
    mesh_kit.rows(table, ["d1"], 1, producer="s:1", offset=5)
    take(first, 1)
    first.close()
    mesh_kit.rows(table, ["d1"], 1, producer="s:1", offset=5)
    mesh_kit.rows(table, ["d1"], 2, producer="s:1", offset=6)
    again = mesh_kit.subscribe(f"{database}.meters", start=first.token)
    assert [r["v"] for r in take(again, 1)] == [2]
    again.close()


def test_filters_by_child_table(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    listener = mesh_kit.subscribe(f"{database}.meters", tables=["d2", "d3"])
    mesh_kit.rows(table, [f"d{i}" for i in range(10)])
    assert sorted(r["tbname"] for r in take(listener, 2)) == ["d2", "d3"]
    with pytest.raises(TimeoutError):
        listener.next(0.3)
    listener.close()


def test_events_of_a_stream(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    stream = mesh_kit.stream(database, "NOTIFY ON ('WINDOW_CLOSE')")
    silent = mesh_kit.stream(database, "", "silent")
    with mesh_kit.subscribe(f"{database}.s", what="events") as listener:
        mesh_kit.events(stream, 3)
        assert [e["windowStart"] for e in take(listener, 3)] == [0, 1, 2]
    with pytest.raises(RemoteError, match="E_NO_EVENTS"):
        mesh_kit.subscribe(f"{database}.{silent.name}", what="events")


def test_a_hundred_subscribers_get_everything(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    with ThreadPoolExecutor(100) as pool:
        listeners = list(pool.map(lambda _: mesh_kit.subscribe(f"{database}.meters"), range(100)))
        waiting = [pool.submit(take, s, 1000, 60) for s in listeners]
        for v in range(100):
            mesh_kit.rows(table, [f"d{i}" for i in range(10)], v)
        for one in waiting:
            found = one.result(60)
            assert [r["v"] for r in found if r["tbname"] == "d3"] == list(range(100))
        for s in listeners:
            s.close()


def test_a_hundred_followers_cost_one_pass(mesh_kit: Kit) -> None:
    """What a hundred followers of one table get is decoded once and written as JSON once."""
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    names = [f"d{i}" for i in range(10)]
    rounds = 30
    with ThreadPoolExecutor(100) as pool:
        listeners = list(pool.map(lambda _: mesh_kit.subscribe(f"{database}.meters"), range(100)))
        counters = ("decoded", "written")
        before = [mesh_kit.metric(f"penstock_notifier_rows_{c}_total") for c in counters]
        waiting = [pool.submit(take, one, rounds * len(names), 60) for one in listeners]
        for v in range(rounds):
            mesh_kit.rows(table, names, v)
        got = sum(len(one.result(60)) for one in waiting)
        after = [mesh_kit.metric(f"penstock_notifier_rows_{c}_total") for c in counters]
        for one in listeners:
            one.close()
    decoded, written = (int(b - a) for a, b in zip(before, after, strict=True))
    print(f"100 followers got {got} rows; the notifier decoded {decoded} and wrote {written}")
    assert got == 100 * rounds * len(names)
    assert decoded == written == rounds * len(names)


def test_a_slow_client_hurts_nobody_and_misses_nothing(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    slow = raw(mesh_kit)
    assert (
        ask(slow, {"action": "subscribe", "id": "s", "table": f"{database}.meters"})["type"]
        == "subscribed"
    )
    quick = mesh_kit.subscribe(f"{database}.meters")
    names = [f"a-name-that-takes-room-{i:04}" for i in range(1000)]
    for v in range(100):
        mesh_kit.rows(table, names, v)
    assert len(take(quick, 100_000)) == 100_000
    began = time.perf_counter()
    mesh_kit.rows(table, ["d1"], 100)
    take(quick, 1)
    assert time.perf_counter() - began < 5.0, "a quick one waits for the slow one"
    seen = 0
    while seen < 100_001:  # far behind what the notifier keeps in memory: read again from the log
        seen += len(json.loads(slow.recv(20))["rows"])
    assert seen == 100_001
    slow.close()
    quick.close()


def test_latency(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    table = mesh_kit.table(database)
    listener = mesh_kit.subscribe(f"{database}.meters")
    arrived = threading.Semaphore(0)
    times = []

    def listen() -> None:
        for _ in range(200):
            listener.next(20)
            arrived.release()

    thread = threading.Thread(target=listen)
    thread.start()
    for v in range(200):
        began = time.perf_counter()
        mesh_kit.rows(table, ["d1"], v)
        assert arrived.acquire(timeout=20)
        times.append(time.perf_counter() - began)
    thread.join()
    listener.close()
    times.sort()
    print(f"publish to subscriber: p50 {times[100] * 1000:.1f} ms, p95 {times[190] * 1000:.1f} ms")
    assert times[100] < 0.05


def test_errors_cost_only_their_subscription(mesh_kit: Kit) -> None:
    database = mesh_kit.database()
    with raw(mesh_kit) as connection:
        assert ask(connection, "no json")["code"] == "E_REQUEST"
        assert ask(connection, "[1]")["code"] == "E_REQUEST"
        assert ask(connection, {"action": "dance"})["code"] == "E_REQUEST"
        assert (
            ask(connection, {"action": "subscribe", "id": "a", "stream": "x.y"})["code"]
            == "E_STREAM_NOT_EXIST"
        )
        assert (
            ask(connection, {"action": "subscribe", "id": "a", "table": f"{database}.none"})["code"]
            == "E_TABLE_NOT_EXIST"
        )
        assert (
            ask(
                connection,
                {
                    "action": "subscribe",
                    "id": "a",
                    "table": f"{database}.meters",
                    "from": "nonsense",
                },
            )["code"]
            == "E_RESUME_TOKEN"
        )
        good = {"action": "subscribe", "id": "a", "table": f"{database}.meters"}
        assert ask(connection, good)["type"] == "subscribed"
        assert ask(connection, good)["code"] == "E_REQUEST"
        assert ask(connection, {"action": "unsubscribe", "id": "a"})["type"] == "unsubscribed"
        answer = ask(connection, good)
        assert answer["type"] == "subscribed"
        other = mesh_kit.database()
        table = mesh_kit.table(database)
        for v in range(3):
            mesh_kit.rows(table, ["d1", "d2", "d3", "d4"], v)
        assert sum(len(json.loads(connection.recv(20))["rows"]) for _ in range(1)) >= 1
        token = mesh_kit.subscribe(f"{database}.meters").token
    with pytest.raises(RemoteError, match="E_RESUME_TOKEN"):
        mesh_kit.subscribe(f"{other}.meters", start=token)


def test_who_may_come_in(mesh_kit: Kit) -> None:
    url = mesh_kit.mesh.notifier_url
    with pytest.raises(AuthError):
        Subscription(url, authorization("root", "wrong"), subscription_request("a.b")).open()
    for origin, status in (("https://evil.example", 403), ("https://good.example", 401)):
        with pytest.raises(InvalidStatus) as caught:
            connect(f"{url}/ws", origin=origin)  # type: ignore[arg-type]
        assert caught.value.response.status_code == status
    with pytest.raises(InvalidStatus) as caught:
        connect(f"{url}/elsewhere")
    assert caught.value.response.status_code == 404
