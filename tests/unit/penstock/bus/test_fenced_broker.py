"""A broker that is fenced for a moment names no broker in its answers; whoever asks comes back.

The broker here speaks as much of Kafka's protocol as a client needs to ask for topics, because a
real one is fenced when it likes.
"""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from penstock.bus import Admin, Publisher, Reader, reader
from penstock.errors import BusError

_PRODUCE, _METADATA, _API_VERSIONS, _INIT_PRODUCER_ID = 0, 3, 18, 22
_UNSUPPORTED_VERSION = 35
#: of forty clients of librdkafka 2.10 to 2.16, two to five never ask again by themselves
_CLIENTS = 40
#: those that have threads of their own
_FEW_CLIENTS = 20


class Broker(socketserver.ThreadingTCPServer):
    """The only broker of a cluster, with one topic of one partition that it leads."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.fenced = False
        self.deaf = False
        #: client ids of those that asked since this was emptied
        self.heard: set[str] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, api: int, version: int) -> bytes:
        if api == _API_VERSIONS:
            error = 0 if version == 0 else _UNSUPPORTED_VERSION
            known = [
                (_API_VERSIONS, 0, 0),
                (_METADATA, 1, 1),
                (_PRODUCE, 0, 3),
                (_INIT_PRODUCER_ID, 0, 0),
            ]
            return struct.pack(">hi", error, len(known)) + b"".join(
                struct.pack(">hhh", *one) for one in known
            )
        if api == _INIT_PRODUCER_ID:
            return struct.pack(">ihqh", 0, 0, 1, 0)
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
            (length,) = struct.unpack_from(">h", request, 8)
            self.server.heard.add(request[10 : 10 + length].decode())
            if self.server.deaf or api == _PRODUCE:
                continue  # nobody is told that a record is written
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


def open_again(broker: Broker) -> None:
    broker.fenced = False
    broker.heard.clear()


def silent(broker: Broker, wanted: set[str], seconds: float) -> set[str]:
    """Return those of *wanted* that did not ask since `open_again`; wait *seconds* at most."""
    until = time.monotonic() + seconds
    while not wanted <= broker.heard and time.monotonic() < until:
        time.sleep(0.05)
    return wanted - broker.heard


def test_readers_come_back(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_SILENCE_SECONDS", 1.0)
    wanted = {f"reads-{n}" for n in range(_FEW_CLIENTS)}
    done = threading.Event()

    def read(name: str) -> None:
        with Reader(broker.address, {("t", 0): 0}, client_id=name) as one:
            while not done.is_set():
                one.read(timeout=0.1)

    threads = [threading.Thread(target=read, args=(name,)) for name in wanted]
    for thread in threads:
        thread.start()
    assert not silent(broker, wanted, 20)
    broker.fenced = True
    broker.heard.clear()
    assert not silent(broker, wanted, 20), "each hears that there is no broker"
    open_again(broker)
    lost = silent(broker, wanted, 30)
    done.set()
    for thread in threads:
        thread.join()
    assert not lost


def test_publishers_come_back(broker: Broker) -> None:
    wanted = {f"writes-{n}" for n in range(_FEW_CLIENTS)}
    publishers = [Publisher(broker.address, client_id=name, timeout=1.0) for name in wanted]

    def send() -> None:
        sent = [one.publish("t", b"1") for one in publishers]
        assert all(isinstance(one.exception(20), BusError) for one in sent)

    send()
    broker.fenced = True
    send()
    open_again(broker)
    send()
    lost = silent(broker, wanted, 20)
    for one in publishers:
        one.close(0.1)
    assert not lost


def test_a_publisher_without_an_answer_goes_on_with_a_new_client(broker: Broker) -> None:
    with Publisher(broker.address, client_id="writes", timeout=1.0) as one:
        assert isinstance(one.publish("t", b"1").exception(20), BusError)
        assert one._clients == 1, "the broker answers: only the record was not written"
        broker.deaf = True
        asked = one._producer
        sent = [one.publish("t", b"2") for _ in range(3)]
        assert all(isinstance(each.exception(20), BusError) for each in sent)
        until = time.monotonic() + 20
        while one._producer is asked and time.monotonic() < until:
            time.sleep(0.05)
        assert one._producer is not asked
        one.flush(20)
