"""Who leads a group, when nodes do not say the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps

import pytest

from penstock.client.nodes import Nodes

MEMBERS = ("NODE1", "NODE2", "NODE3")


@contextmanager
def node(leader: str, epoch: int) -> Iterator[str]:
    """A node that names this leader of group 11."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = dumps({"groups": [{"id": 11, "leader": leader, "epoch": epoch, "urls": {}, "client_urls": {}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """NODE1 is dead, NODE2 leads since, NODE3 has not heard of it."""
    with ExitStack() as stack:
        urls = ["http://127.0.0.1:1", stack.enter_context(node("NODE2", 8)), stack.enter_context(node("NODE1", 7))]
        group = {"id": 11, "alias": "", "members": MEMBERS, "learners": ()}
        found = Nodes(lambda: {"nodes": dict(zip(MEMBERS, urls, strict=True)), "groups": [group], "tables": {}}, "")
        found.refresh()
        yield found
        found.close()


def test_the_newest_epoch_of_all_is_who_leads(nodes: Nodes) -> None:
    for _ in range(10):  # nodes are asked in any order
        leader = nodes.leader(11, of_all=True)
        assert leader is not None and (leader.node, leader.epoch) == ("NODE2", 8)


def test_who_is_avoided_is_not_believed_while_another_is_named(nodes: Nodes) -> None:
    for _ in range(10):
        leader = nodes.leader(11, avoid=nodes.url("NODE1"))
        assert leader is not None and leader.node == "NODE2"
