"""The notifier with broker, Redis and gateway, and without stream jobs: the test publishes rows and
window events itself.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import redis
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from penstock import names
from penstock.bus import Publisher
from penstock.catalog.model import StreamEntry, Table
from penstock.catalog.reader import CatalogReader
from penstock.client.gateway import authorization
from penstock.client.subscribe import Subscription, subscription_request
from penstock.codec import TableCodec
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.records import ControlRecord, EventsRecord, encode
from tests.stack import metrics_kit
from tests.stack.conftest import eventually

SERVICES = ("kafka", "redis", "gateway", "notifier")


class Kit:
    """What a test does to the mesh and asks it."""

    def __init__(self, mesh: RunningMesh, catalog: CatalogReader, publisher: Publisher) -> None:
        self.mesh = mesh
        self.catalog = catalog
        self.publisher = publisher
        self.redis = redis.from_url(mesh.redis_url, decode_responses=True)
        self._http = httpx.Client(
            base_url=mesh.gateway_url, auth=(mesh.user, mesh.password), timeout=60
        )
        self._positions: Counter[int] = Counter()
        self._databases = 0

    def sql(self, text: str, database: str | None = None) -> dict[str, Any]:
        answer = self._http.post("/v1/query", json={"sql": text, "database": database})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def database(self) -> str:
        """A new database with a supertable `meters`."""
        self._databases += 1
        name = f"n{self._databases}_{time.time_ns() % 10**9}"
        self.sql(f"CREATE DATABASE {name} PARTITIONS 2")
        self.sql("CREATE STABLE meters (ts TIMESTAMP, v INT) TAGS (g INT)", name)
        return name

    def stream(self, database: str, clause: str, name: str = "s") -> StreamEntry:
        self.sql(
            f"CREATE STREAM {name} INTO {name}_r AS SELECT _wstart, count(*) c FROM meters PARTITION BY tbname INTERVAL(1s) {clause}",
            database,
        )
        entry = self.catalog.wait_for(lambda c: c.stream(database, name) is not None).stream(
            database, name
        )
        assert entry is not None
        return entry

    def table(self, database: str, name: str = "meters") -> Table:
        table = self.catalog.wait_for(lambda c: c.table(database, name) is not None).table(
            database, name
        )
        assert table is not None
        return table

    def rows(self, table: Table, tables: list[str], v: int = 1, **stamp: Any) -> None:
        """Publish one row per name, as a client of the ingestion topic would."""
        rows = pl.DataFrame(
            {
                "tbname": tables,
                "ts": [1700006400000 + v] * len(tables),
                "v": [v] * len(tables),
                "g": [1] * len(tables),
            }
        )
        rows = rows.with_columns(pl.col("v", "g").cast(pl.Int32))
        for place, value in TableCodec(table).encode_partitioned(rows, table.partitions, **stamp):
            self.publisher.publish(table.topic, value, partition=place).result(10)

    def events(self, entry: StreamEntry, count: int = 1, *, padding: int = 0) -> None:
        """Publish *count* records with one WINDOW_CLOSE each, numbered on."""
        sent = []
        for _ in range(count):
            number = self._positions[entry.id]
            self._positions[entry.id] += 1
            event = {
                "tableName": "d1",
                "eventType": "WINDOW_CLOSE",
                "windowStart": number,
                "padding": "x" * padding,
            }
            record = EventsRecord(
                entry.id,
                f"{entry.database}.{entry.name}",
                names.stream_producer(entry.id, "in.x", 0),
                number,
                number,
                json.dumps([event]),
            )
            sent.append(
                self.publisher.publish(names.EVENTS, encode(record), partition=self.place(entry))
            )
        for one in sent:
            one.result(10)

    @staticmethod
    def place(entry: StreamEntry) -> int:
        return entry.id % names.BUILT_IN_TOPICS[names.EVENTS]

    def barrier(self, *entries: StreamEntry) -> str:
        """Send a barrier behind the events of these streams; its id."""
        barrier = f"b{time.time_ns()}"
        value = encode(
            ControlRecord(
                "barrier", id=barrier, body=json.dumps({"streams": [e.id for e in entries]})
            )
        )
        for place in range(names.BUILT_IN_TOPICS[names.EVENTS]):
            self.publisher.publish(names.EVENTS, value, partition=place).result(10)
        return barrier

    def passed(self, barrier: str) -> bool:
        fields = {
            f"notifier:{names.EVENTS}:{p}" for p in range(names.BUILT_IN_TOPICS[names.EVENTS])
        }
        return set(self.redis.hkeys(names.barrier(barrier))) == fields

    def metric(self, name: str, stream: str = "") -> float:
        lines = metrics_kit.lines(self.mesh, "notifier")
        wanted = f'{name}{{stream="{stream}"}} ' if stream else f"{name} "
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))

    def subscribe(self, name: str, *, start: str = "latest", **request: Any) -> Subscription:
        return Subscription(
            self.mesh.notifier_url,
            authorization(self.mesh.user, self.mesh.password),
            subscription_request(name, **request),
            start=start,
        ).open()


@contextmanager
def kit(directory: Path, **environment: str) -> Iterator[Kit]:
    settings = {"PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false", **environment}
    with (
        running_mesh(directory, services=SERVICES, environment=settings) as mesh,
        CatalogReader(mesh.kafka_bootstrap, client_id="kit") as catalog,
        Publisher(mesh.kafka_bootstrap, client_id="kit") as publisher,
    ):
        yield Kit(mesh, catalog, publisher)


class Receiver:
    """A target of NOTIFY that can go away and come back on its port."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._server: Server | None = None
        self._port = 0
        self._open: set[ServerConnection] = set()
        self.connections = 0
        self.reading = threading.Event()
        self.reading.set()
        self.up()
        self.down()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/hook?key=foo"

    def up(self) -> None:
        def start() -> Server:
            return serve(self._take, "127.0.0.1", self._port, max_size=64 << 20, max_queue=2)

        self._server = eventually(start, 10)
        self._port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def down(self) -> None:
        """Stop listening and cut what is connected."""
        assert self._server is not None
        self._server.shutdown()
        for connection in list(self._open):
            connection.socket.close()

    def _take(self, connection: ServerConnection) -> None:
        self._open.add(connection)
        self.connections += 1
        try:
            for text in connection:
                self.messages.append(json.loads(text))
                self.reading.wait(60)
        except (ConnectionClosed, OSError):
            pass
        finally:
            self._open.discard(connection)

    def numbers(self) -> list[int]:
        """Window starts in the order of first arrival, repeats of a message dropped."""
        found = {
            m["messageId"]: [e["windowStart"] for s in m["streams"] for e in s["events"]]
            for m in list(self.messages)
        }
        return [n for numbers in found.values() for n in numbers]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A target that is there and reads."""
    made = Receiver()
    made.up()
    yield made
    made.reading.set()
    made.down()
