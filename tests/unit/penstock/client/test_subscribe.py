"""A subscription and what a proxy in front of the notifiers answers while none is there."""

from __future__ import annotations

import asyncio
import http
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from penstock.client import reconnecting
from penstock.client.subscribe import Subscription
from penstock.errors import AuthError, RemoteError
from tests.unit.penstock.notebook.played import PlayedNotebook


@pytest.fixture
def answers() -> list[int]:
    """Statuses to refuse connections with, one after the other; then they are accepted."""
    return []


@pytest.fixture
def url(answers: list[int]) -> Iterator[str]:
    def refuse(connection: ServerConnection, _request: Request) -> Response | None:
        return connection.respond(http.HTTPStatus(answers.pop(0)), "not now\n") if answers else None

    def tell(connection: ServerConnection) -> None:
        connection.recv()
        connection.send(json.dumps({"type": "subscribed", "token": "t0"}))
        connection.send(json.dumps({"type": "rows", "rows": [{"n": 1}], "token": "t1"}))
        for _ in connection:
            pass

    server: Server = serve(tell, "127.0.0.1", 0, process_request=refuse)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    server.shutdown()
    thread.join(5)


def test_goes_on_trying_while_a_proxy_has_nobody_behind_it(url: str, answers: list[int]) -> None:
    answers += [503, 502, 429]
    with Subscription(
        url, "Basic x", {"table": "d.t", "what": "rows"}, patience=20
    ) as subscription:
        assert subscription.next(10).items == [{"n": 1}] and subscription.token == "t1"
    assert not answers


def test_gives_up_when_its_patience_is_over(url: str, answers: list[int]) -> None:
    answers += [503] * 1000
    with pytest.raises(RemoteError, match="status 503"):
        Subscription(url, "Basic x", {"table": "d.t", "what": "rows"}, patience=0.3).open()


def _nobody() -> str:
    """Address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"ws://127.0.0.1:{taken.getsockname()[1]}"


def test_without_patience_it_waits_until_it_is_closed() -> None:
    subscription = Subscription(_nobody(), "Basic x", {"table": "d.t", "what": "rows"})
    threading.Timer(0.5, subscription.close).start()
    began = time.monotonic()
    assert list(subscription) == []
    assert 0.4 < time.monotonic() - began < 5
    with pytest.raises(RemoteError, match="the subscription is closed"):
        subscription.open()


def test_a_coroutine_waits_until_it_is_closed() -> None:
    subscription = Subscription(_nobody(), "Basic x", {"table": "d.t", "what": "rows"})

    async def follow() -> list[object]:
        asyncio.get_running_loop().call_later(0.5, subscription.close)
        return [update async for update in subscription]

    assert asyncio.run(asyncio.wait_for(follow(), 5)) == []


def test_a_coroutine_gives_up_when_its_patience_is_over() -> None:
    async def follow() -> None:
        request = {"table": "d.t", "what": "rows"}
        async for _ in Subscription(_nobody(), "Basic x", request, patience=0.3):
            raise AssertionError("nothing can come")

    with pytest.raises(RemoteError, match="can't be reached"):
        asyncio.run(follow())


def test_the_next_update_is_not_waited_for_longer_than_asked() -> None:
    subscription = Subscription(_nobody(), "Basic x", {"table": "d.t", "what": "rows"})
    with pytest.raises(TimeoutError):
        subscription.next(0.3)


def test_a_wrong_address_is_said_at_once() -> None:
    with pytest.raises(RemoteError, match="can't be reached"):
        Subscription("http://127.0.0.1:1", "Basic x", {"table": "d.t", "what": "rows"}).open()


def test_pauses_grow_and_the_log_says_since_when(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 1000.0
    monkeypatch.setattr(reconnecting.time, "monotonic", lambda: now)
    waiting = reconnecting.Reconnecting("the notifier at x", "the subscription to t", None)
    pauses: list[float] = []
    while now < 1600:
        assert waiting.failed("ConnectionRefusedError")
        pauses.append(waiting.seconds_left())
        now += pauses[-1]
    assert max(pauses[:3]) < 0.1 and 7 < max(pauses) <= 12.5
    assert len(pauses) < 150
    said = [record.getMessage() for record in caplog.records]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    # after about 5, 10, 20, … seconds
    assert 5 <= len(said) <= 8
    assert said[0].startswith("the notifier at x has not been reached since 20")
    assert said[0].endswith("UTC (ConnectionRefusedError): the subscription to t waits for it")
    waiting.succeeded()
    assert "the notifier at x is there again after 6" in caplog.messages[-1]
    caplog.clear()
    assert waiting.failed("OSError") and waiting.away_since
    waiting.succeeded()
    assert waiting.away_since == "" and waiting.seconds_left() <= 0
    assert caplog.messages == []


def test_a_refusal_is_not_repeated(url: str, answers: list[int]) -> None:
    answers += [401]
    with pytest.raises(AuthError):
        Subscription(url, "Basic x", {"table": "d.t", "what": "rows"}, patience=20).open()
    assert not answers


def test_it_says_what_it_follows_how_far_and_whether_it_is_connected(url: str) -> None:
    subscription = Subscription(url, "Basic x", {"table": "d.<b>", "what": "rows"})
    assert repr(subscription) == "<subscription to table d.<b>: not connected yet, 0 rows>"
    subscription.next(10)
    shown = subscription._repr_html_()
    assert "table d.&lt;b&gt;</b>: connected, 1 rows, the last at 20" in shown
    assert "<th>n</th>" in shown and "<td>1</td>" in shown
    subscription.close()
    assert ": closed, 1 rows" in repr(subscription)
    events = Subscription(url, "Basic x", {"stream": "d.s", "what": "events"})
    assert repr(events).startswith("<subscription to window events of stream d.s: ")


def test_it_says_since_when_it_waits() -> None:
    subscription = Subscription(_nobody(), "Basic x", {"table": "d.t", "what": "rows"})
    with pytest.raises(TimeoutError):
        subscription.next(0.1)
    assert "waits for the notifier since 20" in repr(subscription)


def test_a_notebook_shows_rows_as_they_come(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = PlayedNotebook().install(monkeypatch)
    with Subscription(url, "Basic x", {"table": "d.t", "what": "rows"}) as subscription:
        subscription.display(1.0)
    assert "not connected yet" in notebook.drawn[0]
    assert "connected, 1 rows" in notebook.drawn[-1] and "<td>1</td>" in notebook.drawn[-1]
    assert subscription.token == "t1"


def test_a_display_ends_when_it_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = PlayedNotebook().install(monkeypatch)
    subscription = Subscription(url, "Basic x", {"table": "d.t", "what": "rows"}).open()
    threading.Timer(0.5, subscription.close).start()
    subscription.display()
    assert "closed" in notebook.drawn[-1]
