"""Appends to a stream table that is no more, over real connections."""

from __future__ import annotations

import http
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from penstock.client.appender import Appender
from penstock.client.nodes import Nodes
from penstock.errors import CatalogError

ROWS = pa.table({"n": [1]})


def answer(status: http.HTTPStatus, body: dict[str, Any]) -> Response:
    data = json.dumps(body).encode()
    headers = Headers(
        {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            "Connection": "close",
        }
    )
    return Response(status.value, status.phrase, headers, data)


class Node:
    """A node that leads group 2 and takes writes to `ha.t` as long as that is `there`."""

    def __init__(self) -> None:
        self.there = True
        self.server: Server = serve(self._serve, "127.0.0.1", 0, process_request=self._request)
        self.url = f"http://127.0.0.1:{self.server.socket.getsockname()[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def described(self) -> dict[str, Any]:
        """What the gateway says."""
        group = {"id": 2, "alias": "", "members": ["n1"], "learners": []}
        return {
            "nodes": {"n1": self.url},
            "groups": [group],
            "tables": {"ha.t": 2} if self.there else {},
        }

    def _request(self, _: ServerConnection, request: Request) -> Response | None:
        if request.path.startswith("/v1/node"):
            group = {
                "id": 2,
                "leader": "n1",
                "epoch": 1,
                "client_urls": {"n1": self.url},
                "urls": {"n1": self.url},
            }
            return answer(http.HTTPStatus.OK, {"groups": [group]})
        if not self.there:
            return answer(
                http.HTTPStatus.NOT_FOUND,
                {"error": {"code": "E_NO_TABLE", "message": "table ha.t does not exist"}},
            )
        return None

    def _serve(self, socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "hello", "node": "n1", "leads": True}))
        for sequence, _ in enumerate(socket, 1):
            if self.there:
                socket.send(json.dumps({"answers": [{"seq": sequence, "rows": 1}]}))
            else:
                error = {"code": "E_NOT_LEADER", "message": "this node does not lead ha.t"}
                socket.send(json.dumps({"answers": [{"seq": sequence, "error": error}]}))


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.server.shutdown()


def test_an_append_after_drop_says_so_at_once(node: Node) -> None:
    nodes = Nodes(node.described, "Basic x")
    rows = Appender(nodes, "ha.t", 2, patience=60.0)
    assert rows.append(ROWS) == 1
    node.there = False
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(CatalogError, match="ha.t was dropped") as gone:
            rows.append(ROWS)
        assert gone.value.code == "E_NO_TABLE" and time.monotonic() - began < 20
    rows.abandon()
    nodes.close()
