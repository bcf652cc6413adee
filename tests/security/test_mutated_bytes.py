"""Mutated bytes at the endpoints of a mesh, beside honest writers: no process ends, nobody reads
another's bytes, no ack is missing.

A hundred mutations an endpoint in the cheap part, 100,000 over all endpoints in the long one. What a mesh
adds to `tests/fuzz/endpoints.py`: sockets, event loops, and whoever decodes the bytes later. A foreign
registry's Avro and stream tables' writes are mutated there only.
"""

from __future__ import annotations

import base64
import json
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as dial

from penstock.bus import Publisher
from penstock.catalog.reader import CatalogReader
from penstock.client.connection import Connection
from penstock.client.wire import ARROW, to_stream
from penstock.codec import TableCodec
from penstock.feeds.cursor import Cursor
from penstock.link.frames import pack
from penstock.mesh.running import RunningMesh
from tests.fuzz.endpoints import SERIES, mutated
from tests.security.conftest import OWN, PASSWORD, SECRET, Attacker
from tests.stack.conftest import eventually
from tests.stack.federation_kit import link_to

#: 2026-03-01
T0 = 1_772_323_200_000
TABLE = f"{OWN}.points"
PARTITIONS = 2
#: seconds between an honest writer's ack and its next write
_PACE = 0.02
_FORM = "application/x-www-form-urlencoded"
#: bytes in, what came back out
Send = Callable[[bytes], str]


# ---------------------------------------------------------------- good bytes


ROW = {"tbname": "p1", "ts": T0, "v": 0.5, "n": 3, "s": "some text", "g": 1}
ROWS = pa.table(
    {
        "tbname": [f"p{i % 4}" for i in range(40)],
        "ts": pa.array(range(T0, T0 + 40), pa.int64()),
        "v": [0.5] * 40,
        "n": pa.array(range(40), pa.int32()),
        "s": ["some text", None, "ü" * 9, ""] * 10,
        "g": pa.array([1] * 40, pa.int32()),
    }
)
META = {"penstock.seq": "7", "penstock.table": TABLE}
LINE = b'points,g=1i v=0.5,n=3i,s="some text" 1772323200000000000\npoints v=1 1772323200001000000\n'


def arrow_bodies() -> list[bytes]:
    words = ROWS.set_column(4, "s", ROWS["s"].dictionary_encode())
    views = ROWS.set_column(4, "s", ROWS["s"].cast(pa.string_view()))
    return [to_stream(ROWS), to_stream(words), to_stream(views)]


def token() -> bytes:
    return Cursor({0: 0, 1: 0}, {"0/a": (1, 2)}).token().encode()


# ---------------------------------------------------------------- endpoints


class Endpoints:
    """Ways in, as somebody with READ and WRITE on the database."""

    def __init__(self, attacker: Attacker, publisher: Publisher, record: bytes) -> None:
        key = base64.b64encode(f"{attacker.name}:{PASSWORD}".encode()).decode()
        self._key = {"Authorization": f"Basic {key}"}
        self._mesh = attacker.mesh
        self._http = attacker.http()
        self._publisher = publisher
        self._record = record
        self._sockets: dict[str, ClientConnection] = {}
        store = flight.FlightClient(self._mesh.store_url)
        self._store = store
        self._call = flight.FlightCallOptions(
            headers=[(b"authorization", self._key["Authorization"].encode())], timeout=60
        )

    def known(self) -> dict[str, tuple[Send, list[bytes]]]:
        """Each way in, with good bytes for it."""
        row = json.dumps(ROW).encode()
        frame = json.dumps({"seq": 7, "table": TABLE, "rows": [ROW]}).encode()
        ask = json.dumps({"action": "subscribe", "id": "a", "table": TABLE}).encode()
        links = [
            {"ch": 1, "op": "information"},
            {"ch": 2, "op": "append", "table": "points", "database": OWN, "producer": "p"},
        ]
        return {
            "arrow": (
                lambda data: self._post(f"/v1/tables/{OWN}/points/rows", data, ARROW),
                arrow_bodies(),
            ),
            "json": (
                lambda data: self._post(f"/v1/tables/{OWN}/points/rows", data, "application/json"),
                [row, b"[" + row + b"]"],
            ),
            "lines": (lambda data: self._post(f"/write?db={OWN}", data, "text/plain"), [LINE]),
            "put json": (
                lambda data: self._post(f"/opentsdb/v1/put/json/{OWN}", data, "application/json"),
                [b'[{"metric": "puts", "timestamp": 1772323200, "value": 1, "tags": {"g": "1"}}]'],
            ),
            "put telnet": (
                lambda data: self._post(f"/opentsdb/v1/put/telnet/{OWN}", data, "text/plain"),
                [b"put puts 1772323200 0.5 g=1\nputs 1772323200001 2 g=2"],
            ),
            "remote write": (
                lambda data: self._post(f"/api/v1/write?db={OWN}", data, "application/x-protobuf"),
                [pa.Codec("snappy").compress(SERIES * 3, asbytes=True)],
            ),
            "influxql": (
                lambda data: self._post(f"/query?db={OWN}", data, _FORM),
                [b"q=SELECT+mean(v)+FROM+points+WHERE+g+%3D+1+GROUP+BY+time(1h)+LIMIT+3"],
            ),
            "check": (
                lambda data: self._post("/v1/check", data, "application/json"),
                [json.dumps({"sql": "SELECT v FROM points", "database": OWN}).encode()],
            ),
            "follow": (
                lambda data: self._socket("/v1/follow", _text(data)),
                [b'{"action": "subscribe", "id": "a", "table": "own.points", "limit": 5}'],
            ),
            "socket text": (lambda data: self._socket("/v1/ingest", _text(data)), [frame]),
            "socket rows": (lambda data: self._socket("/v1/ingest", data), [to_stream(ROWS, META)]),
            "link text": (
                lambda data: self._link(_text(data)),
                [json.dumps(link).encode() for link in links],
            ),
            "link rows": (lambda data: self._link(data), [pack({"ch": 2, "seq": 1}, ROWS)]),
            "token": (lambda data: self._subscribe(_text(data)), [token()]),
            "subscription": (lambda data: self._socket("/ws", _text(data)), [ask]),
            "record": (self._publish, [self._record]),
            "ticket": (
                self._fetch,
                [
                    json.dumps(
                        {"sql": f"SELECT s FROM {TABLE} LIMIT 5", "after": {f"in.{OWN}:0": 0}}
                    ).encode()
                ],
            ),
        }

    def close(self) -> None:
        self._http.close()
        self._store.close()
        for socket in self._sockets.values():
            socket.close()

    def _post(self, path: str, body: bytes, kind: str) -> str:
        answer = self._http.post(path, content=body, headers={"Content-Type": kind})
        assert answer.status_code < 500, answer.text
        return answer.text

    def _open(self, path: str) -> ClientConnection:
        if path not in self._sockets:
            urls = {
                "/v1/ingest": self._mesh.gateway_url,
                "/v1/follow": self._mesh.gateway_url,
                "/ws": self._mesh.notifier_url,
                "/link": self._mesh.federation_url,
            }
            socket = dial(
                urls[path].replace("http", "ws", 1) + path,
                additional_headers=self._key,
                open_timeout=60,
                legacy=True,
            )
            if path == "/v1/ingest":
                socket.recv(60)
            self._sockets[path] = socket
        return self._sockets[path]

    def _socket(self, path: str, data: str | bytes) -> str:
        """Send a frame that has one answer, or ends its connection."""
        try:
            socket = self._open(path)
            socket.send(data)
            return str(socket.recv(60))
        except ConnectionClosed:
            self._sockets.pop(path, None)
            return ""

    def _link(self, data: str | bytes) -> str:
        """Send a frame that may have no answer, and a question behind it that has one, unless the
        connection ends.
        """
        said = ""
        try:
            socket = self._open("/link")
            if isinstance(data, bytes):
                socket.send(
                    json.dumps({"ch": 2, "op": "append", "table": "points", "database": OWN})
                )
            socket.send(data)
            socket.send(json.dumps({"ch": 9_999, "op": "no such"}))
            while '"ch": 9999' not in said.replace('"ch":9999', '"ch": 9999'):
                said += str(socket.recv(60))
        except ConnectionClosed:
            self._sockets.pop("/link", None)
        return said

    def _subscribe(self, text: str) -> str:
        """Subscribe from a token, which is taken or refused, and leave again."""
        said = self._socket(
            "/ws", json.dumps({"action": "subscribe", "id": "t", "table": TABLE, "from": text})
        )
        self._sockets.pop("/ws").close()
        return said

    def _publish(self, value: bytes) -> str:
        self._publisher.publish(f"in.{OWN}", value, partition=len(value) % PARTITIONS).result(60)
        return ""

    def _fetch(self, ticket: bytes) -> str:
        try:
            return str(self._store.do_get(flight.Ticket(ticket), self._call).read_all().to_pylist())
        except flight.FlightError as error:
            assert "E_INTERNAL" not in str(error), error
            return str(error)
        except (pa.ArrowException, OSError) as error:
            return str(error)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


# ---------------------------------------------------------------- who is beside them


class Honest:
    """Write row after row into the table that is attacked, over one way, until the end; note each
    write without an ack.
    """

    def __init__(self, name: str, write: Callable[[int], object]) -> None:
        self.name = name
        self.acked = 0
        self.failed: list[str] = []
        self._write = write
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def _run(self) -> None:
        # paced, so that most of the machine is left to what is attacked
        while not self._end.wait(_PACE):
            try:
                self._write(self.acked)
                self.acked += 1
            except Exception as wrong:
                self.failed.append(repr(wrong))
                return

    def __enter__(self) -> Honest:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def rows_of(name: str, number: int) -> dict[str, Any]:
    return {"tbname": name, "ts": T0 + number, "v": 1.0, "n": number, "s": name, "g": 9}


@contextmanager
def honest_writers(
    mesh: RunningMesh, root: Connection, round_: str
) -> Iterator[tuple[Honest, Honest]]:
    with link_to(mesh) as link:
        requests = Honest(
            f"requests_{round_}", lambda n: root.write(TABLE, [rows_of(f"requests_{round_}", n)])
        )
        frames = Honest(
            f"frames_{round_}",
            lambda n: link.write(
                "points", OWN, pa.Table.from_pylist([rows_of(f"frames_{round_}", n)], ROWS.schema)
            ),
        )
        with requests, frames:
            yield requests, frames


def pids(mesh: RunningMesh) -> dict[str, Any]:
    return {
        service: (found["pid"], found["restarts"])
        for service, found in mesh.state()["services"].items()
    }


@pytest.fixture(scope="module")
def fuzzer(mesh: RunningMesh, victims: Connection) -> Attacker:
    """Somebody with READ and WRITE on the database of the table that is attacked."""
    victims.execute(
        f"CREATE STABLE {TABLE} (ts TIMESTAMP, v DOUBLE, n INT, s VARCHAR(64)) TAGS (g INT)"
    )
    victims.execute(f"CREATE USER fuzzer PASS '{PASSWORD}'")
    victims.execute(f"GRANT READ, WRITE ON {OWN}.* TO fuzzer")
    return Attacker("fuzzer", PASSWORD, mesh)


@pytest.fixture(scope="module")
def record(mesh: RunningMesh, fuzzer: Attacker) -> bytes:
    """A row batch of the table, as clients of Kafka send it."""
    with CatalogReader(mesh.kafka_bootstrap, client_id="mutated-bytes") as reader:
        table = reader.wait_for(lambda c: c.table(OWN, "points") is not None).table(OWN, "points")
    assert table is not None
    frame = pl.DataFrame([ROW], schema_overrides={"n": pl.Int32, "g": pl.Int32})
    (_, value), *_ = TableCodec(table).encode_partitioned(frame, table.partitions)
    return bytes(value)


@pytest.fixture
def endpoints(mesh: RunningMesh, fuzzer: Attacker, record: bytes) -> Iterator[Endpoints]:
    publisher = Publisher(mesh.kafka_bootstrap, client_id="mutated-bytes")
    made = Endpoints(fuzzer, publisher, record)
    yield made
    made.close()
    publisher.close()


NAMES = [
    "arrow",
    "json",
    "lines",
    "socket text",
    "socket rows",
    "link text",
    "link rows",
    "token",
    "subscription",
    "record",
    "ticket",
]
#: how many are sent at once; a ticket that asks for rows to come makes its query wait for them
AT_ONCE = {"ticket": 8}
LONG = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    "count",
    [pytest.param(100, id="few"), pytest.param(100_000 // len(NAMES) + 1, id="many", marks=LONG)],
)
@pytest.mark.parametrize("name", NAMES)
def test_mutated_bytes_harm_nobody(
    mesh: RunningMesh, victims: Connection, endpoints: Endpoints, name: str, count: int
) -> None:
    send, samples = endpoints.known()[name]
    key = base64.b64encode(f"{mesh.user}:{mesh.password}".encode()).decode()
    secrets = (SECRET, mesh.password, key)
    # with the right, and known everywhere: else nothing would be decoded
    eventually(lambda: not any(code in send(samples[0]) for code in ("E_AUTH", "E_FORBIDDEN")))
    chance = random.Random(f"{name} {count}")
    before = pids(mesh)
    bodies = [mutated(chance.choice(samples), chance) for _ in range(count)]
    with (
        honest_writers(mesh, victims, f"{NAMES.index(name)}_{count}") as writers,
        ThreadPoolExecutor(AT_ONCE.get(name, 1)) as pool,
    ):
        for data, said in zip(bodies, pool.map(send, bodies), strict=True):
            assert not any(secret in said for secret in secrets), (data, said)
    assert pids(mesh) == before
    for writer in writers:
        assert writer.acked and not writer.failed, writer.failed
        counted = f"SELECT count(*) FROM {TABLE} WHERE tbname = '{writer.name}'"
        eventually(
            lambda counted=counted, writer=writer: victims.query(counted).rows == [(writer.acked,)]
        )
    kept = str(victims.query(f"SELECT * FROM {TABLE} WHERE g <> 9 OR g IS NULL").rows)
    assert not any(secret in kept for secret in secrets)
