"""A broker that is fenced for a moment names no broker in its answers; the client comes back.

The broker here speaks as much of Kafka's protocol as a client needs to ask for topics, because a
real one is fenced when it likes.
"""

from __future__ import annotations

import logging
import socketserver
import struct
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_API_VERSIONS, _METADATA = 18, 3
_UNSUPPORTED_VERSION = 35
#: of forty clients of the versions that are refused, two to five are lost
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


def knows(client: AdminClient, seconds: float) -> int:
    """Count the brokers that *client* is told of; -1: nobody answers."""
    try:
        return len(client.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return -1


def test_no_client_is_lost_when_the_only_broker_is_fenced(broker: Broker) -> None:
    lost = 0
    for _ in range(_CLIENTS):
        client = AdminClient(
            {
                "bootstrap.servers": broker.address,
                "reconnect.backoff.max.ms": 200,
                "logger": logging.getLogger(__name__),
            }
        )
        broker.fenced = False
        assert knows(client, 10) == 1
        broker.fenced = True
        assert knows(client, 10) == 0
        broker.fenced = False
        lost += knows(client, 3) != 1
    assert lost == 0, f"{lost} of {_CLIENTS} clients never asked again"
