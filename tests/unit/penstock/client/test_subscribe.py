"""A subscription and what a proxy in front of the notifiers answers while none is there."""

from __future__ import annotations

import http
import json
import threading
from collections.abc import Iterator

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from penstock.client.subscribe import Subscription
from penstock.errors import AuthError, RemoteError


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


def test_a_refusal_is_not_repeated(url: str, answers: list[int]) -> None:
    answers += [401]
    with pytest.raises(AuthError):
        Subscription(url, "Basic x", {"table": "d.t", "what": "rows"}, patience=20).open()
    assert not answers
