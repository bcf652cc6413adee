"""Mutated bytes at the endpoints of a mesh, beside honest writers: no process ends, nobody reads
another's bytes, no ack is missing.

A hundred mutations a way in (`ways_in`) in the cheap part, 100,000 over all of them in the long one.
What a mesh adds to `tests/fuzz/endpoints.py`: sockets, event loops, and whoever decodes the bytes
later. A foreign registry's Avro and stream tables' writes are mutated there only.
"""

from __future__ import annotations

import base64
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from penstock.bus import Publisher
from penstock.catalog.reader import CatalogReader
from penstock.client.connection import Connection
from penstock.codec import TableCodec
from penstock.mesh.running import RunningMesh
from tests.fuzz.endpoints import mutated
from tests.security.conftest import OWN, PASSWORD, SECRET, Attacker
from tests.security.ways_in import ROW, ROWS, T0, TABLE, WaysIn
from tests.stack.conftest import eventually
from tests.stack.federation_kit import link_to

#: seconds between an honest writer's ack and its next write
_PACE = 0.02


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
    """Somebody with READ, WRITE and CREATE in the database of the table that is attacked: lines and
    puts make tables.
    """
    victims.execute(
        f"CREATE STABLE {TABLE} (ts TIMESTAMP, v DOUBLE, n INT, s VARCHAR(64)) TAGS (g INT)"
    )
    victims.execute(f"CREATE USER fuzzer PASS '{PASSWORD}'")
    victims.execute(f"GRANT READ, WRITE, CREATE ON {OWN}.* TO fuzzer")
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
def ways(mesh: RunningMesh, fuzzer: Attacker, record: bytes) -> Iterator[WaysIn]:
    publisher = Publisher(mesh.kafka_bootstrap, client_id="mutated-bytes")
    made = WaysIn(fuzzer, publisher, record)
    yield made
    made.close()
    publisher.close()


NAMES = [
    "arrow",
    "json",
    "record",
    "check",
    "lines",
    "put json",
    "put telnet",
    "remote write",
    "otlp",
    "otlp json",
    "influxql",
    "sqlt",
    "sqlutc",
    "registry",
    "follow",
    "socket text",
    "socket rows",
    "link text",
    "link rows",
    "token",
    "subscription",
    "log in",
    "tdengine text",
    "tdengine bytes",
    "postgres",
    "ticket",
    "flight command",
    "flight action",
    "flight session",
]
#: how many are sent at once; a ticket that asks for rows to come makes its query wait for them
AT_ONCE = {"ticket": 8}
LONG = [pytest.mark.long, pytest.mark.timeout(3600)]


def test_every_way_in_is_tried(ways: WaysIn) -> None:
    assert list(ways.known()) == NAMES


@pytest.mark.parametrize(
    "count",
    [pytest.param(100, id="few"), pytest.param(100_000 // len(NAMES) + 1, id="many", marks=LONG)],
)
@pytest.mark.parametrize("name", NAMES)
def test_mutated_bytes_harm_nobody(
    mesh: RunningMesh, victims: Connection, ways: WaysIn, name: str, count: int
) -> None:
    send, samples = ways.known()[name]
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
