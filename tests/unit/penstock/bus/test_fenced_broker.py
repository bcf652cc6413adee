"""A broker that is fenced for a moment names no broker in its answers; whoever asks comes back.

The broker here speaks as much of Kafka's protocol as a client needs to ask for topics, because a
real one is fenced when it likes.
"""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator

import pytest

from penstock.bus import Admin
from penstock.errors import BusError

_API_VERSIONS, _METADATA = 18, 3
_UNSUPPORTED_VERSION = 35
#: of forty clients of librdkafka 2.10 to 2.16, two to five never ask again by themselves
_CLIENTS = 40


class Broker(socketserver.ThreadingTCPServer):
    """The only broker of a cluster, with one topic of one partition that it leads."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.fenced = False

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, api: int, version: int) -> bytes:
        if api == _API_VERSIONS:
            error = 0 if version == 0 else _UNSUPPORTED_VERSION
            known = [(_API_VERSIONS, 0, 0), (_METADATA, 1, 1)]
            return struct.pack(">hi", error, len(known)) + b"".join(
                struct.pack(">hhh", *one) for one in known
            )
        if self.fenced:
            brokers, leader = struct.pack(">i", 0), -1
        else:
            brokers = struct.pack(">ii", 1, 1) + _text("127.0.0.1")
            brokers += struct.pack(">ih", self.server_address[1], -1)
            leader = 1
        partition = struct.pack(">hii", 0 if leader == 1 else 5, 0, leader)
        partition += struct.pack(">ii", 1, 1) + struct.pack(">ii", 1, 1)
        topic = struct.pack(">h", 0) + _text("t") + struct.pack(">?i", False, 1) + partition
        return brokers + struct.pack(">ii", 1, 1) + topic


class Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Broker)
        while size := self.rfile.read(4):
            request = self.rfile.read(int.from_bytes(size, "big"))
            api, version, correlation = struct.unpack_from(">hhi", request)
            body = struct.pack(">i", correlation) + self.server.answer(api, version)
            self.wfile.write(struct.pack(">i", len(body)) + body)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def known(admin: Admin) -> int:
    """Count the brokers that *admin* is told of; -1: nobody answers."""
    try:
        return admin.brokers()
    except BusError:
        return -1


def test_nobody_is_lost_when_the_only_broker_is_fenced(broker: Broker) -> None:
    lost = 0
    for number in range(_CLIENTS):
        admin = Admin(broker.address, client_id=f"asks-{number}", timeout=1)
        broker.fenced = False
        assert known(admin) == 1
        broker.fenced = True
        assert known(admin) < 1
        broker.fenced = False
        lost += not any(known(admin) == 1 for _ in range(3))
    assert lost == 0, f"{lost} of {_CLIENTS} never came back"
