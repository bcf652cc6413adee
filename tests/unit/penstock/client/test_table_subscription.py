"""A subscription to a stream table, from `client.ha.subscribe` to the handler, at a node that is
played here.
"""

from __future__ import annotations

import http
import json
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

import penstock
from penstock.client.stream_tables import StreamTables
from penstock.client.wire import to_stream
from tests.unit.penstock.notebook.played import PlayedNotebook


class Node:
    """Leads group 11 and gives every subscription rows 5 and 6 of `d.trades`."""

    def __init__(self) -> None:
        self.hellos: list[dict[str, Any]] = []
        #: what subscribers tell
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.server: Server = serve(
            self._serve, "127.0.0.1", 0, process_request=self._answer, compression=None
        )
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.socket.getsockname()[1]}"

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/v1/subscribe":
            return None
        group = {"id": 11, "leader": "NODE1", "epoch": 1, "client_urls": {"NODE1": self.url}}
        response = connection.respond(http.HTTPStatus.OK, json.dumps({"groups": [group]}))
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/json"
        return response

    def _serve(self, socket: ServerConnection) -> None:
        hello = json.loads(socket.recv())
        self.hellos.append(hello)
        topic = f"11/{hello['table']}/{hello['action']}"
        socket.send(json.dumps({"type": "subscribed", "topic": topic, "from": 5}))
        rows = pa.table({"row_id": pa.array([5, 6], pa.int64()), "n": [50, 60]})
        socket.send((5).to_bytes(8, "big") + (7).to_bytes(8, "big") + to_stream(rows))
        for text in socket:
            self.told.put(json.loads(text))

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join(5)


class Answer:
    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def json(self) -> dict[str, Any]:
        return self._body


class Gateway:
    """Says that the node keeps `d.trades`."""

    authorization = "Basic x"
    context = None

    def __init__(self, node: Node) -> None:
        self._node = node

    def get(self, path: str) -> Answer:
        group = {"id": 11, "alias": "", "members": ["NODE1"], "learners": []}
        nodes = {"NODE1": self._node.url}
        return Answer({"groups": [group], "nodes": nodes, "tables": {"d.trades": 11}})


class Connection:
    database = "d"


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


@pytest.fixture
def ha(node: Node) -> Iterator[StreamTables]:
    made = StreamTables(Connection(), Gateway(node))  # type: ignore[arg-type]
    yield made
    made.close()


def test_rows_come_to_the_handler_and_their_offset_to_the_node(
    node: Node, ha: StreamTables
) -> None:
    got: queue.Queue[Any] = queue.Queue()
    options = penstock.SubscriptionOptions(
        msg_as_table=True, reconnect=True, filter="n > 1", persist_offset=True
    )
    found = ha.subscribe("trades", got.put, "watch", offset=-2, options=options)
    message = got.get(timeout=10)
    assert (message.rows, message.row_ids.to_pylist()) == ([(50,), (60,)], [5, 6])
    assert node.told.get(timeout=10) == {"processed": 7}
    hello = node.hellos[0]  # a silent node is asked again
    assert hello["table"] == "d.trades" and hello["action"] == "watch" and hello["offset"] == -2
    assert hello["filter"] == {"sql": "n > 1"} and "raft_group" not in hello
    assert found.topic == "11/d.trades/watch" and found.served_by == node.url
    line = found.to_dict()
    assert (line["msgOffset"], line["filter"], line["offset"]) == (7, {"sql": "n > 1"}, -2)


def test_without_options_rows_come_as_columns(node: Node, ha: StreamTables) -> None:
    got: queue.Queue[Any] = queue.Queue()
    with pytest.warns(UserWarning, match="ends with its leader"):
        ha.subscribe("trades", got.put, server="NODE1")
    assert got.get(timeout=10) == [[50, 60]]
    assert node.hellos[0]["offset"] == -1


def test_it_says_how_far_it_is_and_shows_the_newest_rows(
    node: Node, ha: StreamTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = PlayedNotebook().install(monkeypatch)
    got: queue.Queue[Any] = queue.Queue()
    options = penstock.SubscriptionOptions(reconnect=True)
    found = ha.subscribe("trades", got.put, "watch", options=options)
    got.get(timeout=10)
    found.display(0.5)
    shown = notebook.drawn[-1]
    assert f"subscription watch to stream table d.trades</b>: connected to {node.url}" in shown
    assert "next row 7, 2 rows handled, the last came at 20" in shown
    assert "<td>5</td><td>50</td>" in shown and "<td>6</td><td>60</td>" in shown
    found.close()
    assert "closed, next row 7" in repr(found)


def test_a_handler_that_fails_is_told(node: Node, ha: StreamTables) -> None:
    def fail(_: Any) -> None:
        raise ValueError("<b>\n")

    found = ha.subscribe(
        "trades", fail, "watch", options=penstock.SubscriptionOptions(reconnect=True)
    )
    end = time.monotonic() + 10
    while "1 calls failed" not in repr(found) and time.monotonic() < end:
        time.sleep(0.01)
    assert "1 calls failed: ValueError: <b>\\n" in repr(found)
    assert "&lt;b&gt;" in found._repr_html_()


def test_a_stream_table_asks_nobody_what_it_is(ha: StreamTables) -> None:
    assert repr(ha.table("trades")) == "<stream table d.trades>"
