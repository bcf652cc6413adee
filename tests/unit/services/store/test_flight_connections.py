"""Caps and idle time of the Flight port, with a real Flight server and real sockets."""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from services.store.flight_connections import IDLE, TOO_MANY, FlightConnections
from services.store.settings import StoreSettings

_SCHEMA = pa.schema([("n", pa.int64())])
_CALL = flight.FlightCallOptions(timeout=20)
IDLE_SECONDS = 1.0
STREAM_SECONDS = 4.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when data came last")


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """Streams batches: as many as the ticket says, 0.2 s apart."""

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.GeneratorStream:
        def batches() -> Iterator[pa.RecordBatch]:
            pause = threading.Event()
            for number in range(int(ticket.ticket)):
                if number:
                    pause.wait(0.2)
                yield pa.record_batch([pa.array([number])], schema=_SCHEMA)

        return flight.GeneratorStream(_SCHEMA, batches())


@contextmanager
def port(closed: Callable[[str], object] = str, **limits: float) -> Iterator[int]:
    """A Flight port that is looked after; *closed* is told of what is shut down."""
    with served(closed, **limits) as (where, _):
        yield where


@contextmanager
def served(
    closed: Callable[[str], object] = str, **limits: float
) -> Iterator[tuple[int, FlightConnections]]:
    """A Flight port and what looks after it."""
    server = _Server("grpc://127.0.0.1:0")
    settings: dict[str, Any] = {"most": 0, "most_per_address": 0, "idle_seconds": 0.0, **limits}
    connections = FlightConnections(server.port, **settings, closed=closed)
    connections.start()
    try:
        yield server.port, connections
    finally:
        server.shutdown()
        connections.stop()


@contextmanager
def sockets(number: int, where: int, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", where), 20, source_address=(source, 0))
            )
            for _ in range(number)
        ]


def ended(connections: list[socket.socket], number: int, seconds: float = 15.0) -> int:
    """Wait until *number* of them were closed by the other side, and count those that were."""
    deadline = time.monotonic() + seconds
    count = 0
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while count < number and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if not _read(key.fileobj):
                    selector.unregister(key.fileobj)
                    count += 1
    return count


def until(check: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not check():
        assert time.monotonic() < deadline
        pause.wait(0.01)


def _read(connection: Any) -> bytes:
    try:
        return bytes(connection.recv(65536))
    except ConnectionError:
        return b""


def asked(client: flight.FlightClient, batches: int = 1) -> int:
    return int(client.do_get(flight.Ticket(b"%d" % batches), _CALL).read_all().num_rows)


def test_a_flood_from_one_address_is_cut_and_others_go_on() -> None:
    closed: list[str] = []
    with (
        port(closed.append, most_per_address=5) as where,
        flight.FlightClient(f"grpc://127.0.0.1:{where}") as first,
    ):
        assert asked(first) == 1
        with sockets(30, where, "127.0.0.2") as flood:
            assert ended(flood, 25) == 25
            # who was there goes on, and another address comes in
            assert asked(first) == 1
            with flight.FlightClient(
                f"grpc://127.0.0.1:{where}", generic_options=[("grpc.use_local_subchannel_pool", 1)]
            ) as second:
                assert asked(second) == 1
            assert closed == [TOO_MANY] * 25
        with sockets(5, where, "127.0.0.2") as others:
            # there is room again once the flood has gone
            assert ended(others, 1, seconds=2.5) == 0


@pytest.mark.parametrize("source", ["127.0.0.2", "127.0.0.4"])
def test_the_newest_are_cut_when_there_are_too_many_in_all(source: str) -> None:
    # gRPC itself gives up on a silent client after 20 s, so this has to be quick
    with (
        served(most=5) as (where, connections),
        sockets(4, where, "127.0.0.3") as early,
        flight.FlightClient(f"grpc://127.0.0.1:{where}") as client,
    ):
        assert asked(client) == 1
        # one look does not tell who of those that it finds came first
        until(lambda: connections.count == 5)
        with sockets(4, where, source) as late:
            assert ended(late, 4) == 4
        assert ended(early, 1, seconds=0.5) == 0
        assert asked(client) == 1


@linux
def test_idle_connections_are_cut_and_a_stream_that_sends_goes_on() -> None:
    closed: list[str] = []
    with (
        port(closed.append, idle_seconds=IDLE_SECONDS) as where,
        flight.FlightClient(f"grpc://127.0.0.1:{where}") as client,
    ):
        batches = int(STREAM_SECONDS / 0.2)
        reader = client.do_get(flight.Ticket(b"%d" % batches), _CALL)
        with sockets(10, where) as silent:
            assert ended(silent, 10, seconds=STREAM_SECONDS) == 10
        assert reader.read_all().num_rows == batches
        assert closed == [IDLE] * 10


@linux
def test_a_client_whose_idle_connection_was_cut_calls_again() -> None:
    closed: SimpleQueue[str] = SimpleQueue()
    with (
        port(closed.put, idle_seconds=IDLE_SECONDS) as where,
        flight.FlightClient(f"grpc://127.0.0.1:{where}") as client,
    ):
        assert asked(client) == 1
        assert closed.get(timeout=20) == IDLE
        client.wait_for_available(20)  # until it has noticed, too
        assert asked(client) == 1


def test_other_sockets_of_the_process_are_left_alone() -> None:
    with (
        port(most=1, most_per_address=1, idle_seconds=0.1) as where,
        socket.create_server(("127.0.0.1", 0)) as others,
        contextlib.ExitStack() as stack,
    ):
        pairs = []
        for _ in range(5):
            one = stack.enter_context(socket.create_connection(others.getsockname()[:2]))
            pairs.append((one, stack.enter_context(others.accept()[0])))
            pairs.append(tuple(map(stack.enter_context, socket.socketpair())))
        with sockets(10, where) as flood:
            assert ended(flood, 10) == 10
        for one, other in pairs:
            one.sendall(b"x")
            assert other.recv(1) == b"x"


_SMALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))
from tests.unit.services.store.test_flight_connections import port
with port(most=20) as where:
    print(where, flush=True)
    sys.stdin.read()
"""


def test_the_port_comes_back_when_a_flood_took_all_descriptors() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _SMALL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        where = int(child.stdout.readline())
        with sockets(200, where) as flood:
            assert ended(flood, 180, seconds=60) == 180
        with flight.FlightClient(f"grpc://127.0.0.1:{where}") as client:
            assert asked(client) == 1


def test_silence_lasts_longer_than_a_query() -> None:
    settings = StoreSettings(idle_seconds=30, query_seconds=100)
    assert settings.silent_seconds == 130
    assert StoreSettings(idle_seconds=0).silent_seconds == 0
