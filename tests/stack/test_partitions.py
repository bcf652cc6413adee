"""ALTER DATABASE … PARTITIONS while rows flow: nothing is lost, nothing is there twice, and windows
stay open across it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import polars as pl
import pytest

import penstock
from penstock.bus import Admin, Publisher
from penstock.catalog.model import Move
from penstock.catalog.reader import CatalogReader
from penstock.client.subscribe import Subscription
from penstock.codec import TableCodec
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from penstock.rows.partition import partition
from tests.stack.conftest import MeshFactory, eventually
from tests.stack.names import unique

T0 = 1_700_000_040_000
TABLES = 24
STEP = 1_000
#: a value that no row of the load has
LATE = 7

STREAMS = {
    "by_table": "SELECT _wstart, count(*) AS n, sum(v) AS v FROM m PARTITION BY tbname k INTERVAL(10s)",
    "by_group": "SELECT _wstart, count(*) AS n, sum(v) AS v FROM m PARTITION BY g k INTERVAL(10s)",
    "states": "SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname k STATE_WINDOW(s)",
    "chained": "SELECT _wstart, sum(n) AS n FROM r_by_table PARTITION BY tbname k INTERVAL(60s)",
}


class Load:
    """A row of every table each second of event time, through the gateway, until told to stop."""

    def __init__(self, db: penstock.Connection) -> None:
        self._db = db
        self.steps = 0
        self._halt = threading.Event()

    def write(self, at: int) -> None:
        rows = [
            {"tbname": f"t{i}", "ts": T0 + at * STEP, "v": at % 5, "s": at // 7 % 3, "g": i % 5}
            for i in range(TABLES)
        ]
        self._db.write("m", rows, idempotency_key=f"{self._db.database} {at}")

    def _run(self) -> None:
        while not self._halt.is_set():
            with suppress(PenstockError):  # then again, under the same key
                self.write(self.steps)
                self.steps += 1

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._halt.clear()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._halt.set()
            thread.join()

    def grow(self) -> None:
        """Return when some more has been written."""
        before = self.steps
        eventually(lambda: self.steps > before + 25)


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url,
        password=mesh.password,
        database=unique("wide"),
        options=penstock.ConnectionOptions(timeout=150),
    ) as connection:
        prepare(connection)
        yield connection


def prepare(db: penstock.Connection, number: int = 2) -> None:
    db.execute(f"CREATE DATABASE {db.database} PARTITIONS {number}")
    db.execute("CREATE STABLE m (ts TIMESTAMP, v INT, s INT) TAGS (g INT)")
    for name, query in STREAMS.items():
        db.execute(f"CREATE STREAM {name} INTO r_{name} AS {query}")


def partitions(db: penstock.Connection) -> tuple[object, ...]:
    return db.query(
        f"SELECT partitions, topic FROM information_schema.ins_databases WHERE name = '{db.database}'"
    ).rows[0]


def check(db: penstock.Connection, steps: int) -> None:
    """Every row is there, and every window of every stream as if nothing had happened."""
    closing = (steps // 60 + 2) * 60
    for at in (
        closing,
        closing + 60,
        closing + 120,
    ):  # the last one closes what the streams over results have open
        db.write(
            "m",
            [
                {"tbname": f"t{i}", "ts": T0 + at * STEP, "v": 0, "s": 9, "g": i % 5}
                for i in range(TABLES)
            ],
        )
        db.drain(depth=2)
    whole = steps // 10
    assert db.query(f"SELECT count(*) FROM m WHERE ts < {T0 + steps * STEP}").rows == [
        (steps * TABLES,)
    ]
    per = f"SELECT count(*), sum(n), min(n), max(n), sum(v) FROM {{}} WHERE _wstart < {T0 + whole * 10 * STEP}"
    total = sum(at % 5 for at in range(whole * 10)) * TABLES
    assert db.query(per.format("r_by_table")).rows == [
        (whole * TABLES, whole * TABLES * 10, 10, 10, total)
    ]
    small = 10 * (TABLES // 5)
    large = 10 * -(-TABLES // 5)
    assert db.query(per.format("r_by_group")).rows == [
        (whole * 5, whole * TABLES * 10, small, large, total)
    ]
    sevens = steps // 7
    found = db.query(
        f"SELECT count(*), min(n), max(n) FROM r_states WHERE _wstart < {T0 + sevens * 7 * STEP}"
    ).rows
    assert found == [(sevens * TABLES, 7, 7)]
    minutes = steps // 60
    found = db.query(
        f"SELECT count(*), min(n), max(n) FROM r_chained WHERE _wstart < {T0 + minutes * 60 * STEP}"
    ).rows
    assert found == [(minutes * TABLES, 60, 60)]


def test_partitions_grow_under_load(db: penstock.Connection) -> None:
    load = Load(db)
    with load.flowing():
        load.grow()
        db.execute(f"ALTER DATABASE {db.database} PARTITIONS 6")
        assert partitions(db) == (6, f"in.{db.database}-g2")
        load.grow()
    check(db, load.steps)


def take(subscription: Subscription, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += subscription.next(60).items
    return found


def late(mesh: RunningMesh, database: str) -> None:
    """A producer that has not heard of the change writes a row into the first topic."""
    with (
        CatalogReader(mesh.kafka_bootstrap, client_id="late") as reader,
        Publisher(mesh.kafka_bootstrap, client_id="late") as bus,
    ):
        table = reader.catalog.table(database, "m")
        assert table is not None
        row = pl.DataFrame(
            {"tbname": ["t0"], "ts": [T0 + 1], "v": [LATE], "s": [0], "g": [0]}
        ).with_columns(pl.lit(0, pl.Int8).alias("_op"))
        for value in TableCodec(table).encode(row):
            bus.publish(f"in.{database}", value, partition=partition("t0", 2)).result(30)


def test_whoever_reads_or_writes_an_old_topic(db: penstock.Connection, mesh: RunningMesh) -> None:
    """Over two changes a subscriber goes on, one that comes back and one that begins at the
    beginning miss nothing, a late producer is told and nobody hears what it wrote, and corrections
    reach what came before.
    """
    name = db.database
    assert name is not None
    load = Load(db)
    with (
        db.subscribe("r_by_table", start="earliest") as listener,
        db.subscribe("r_by_table", start="earliest") as leaver,
    ):
        with load.flowing():
            load.grow()
        gone = take(leaver, 1)
        leaver.close()
        for number in (4, 8):
            with load.flowing():
                load.grow()
                db.execute(f"ALTER DATABASE {name} PARTITIONS {number}")
                load.grow()
        late(mesh, name)
        check(db, load.steps)
        wanted = db.query("SELECT count(*) FROM r_by_table").rows[0][0]
        assert isinstance(wanted, int)
        heard = take(listener, wanted)
        assert len({(r["tbname"], r["_wstart"]) for r in heard}) == len(heard) == wanted
        with db.subscribe("r_by_table", start=leaver.token) as again:
            rest = take(again, wanted - len(gone))
            assert len({(r["tbname"], r["_wstart"]) for r in [*gone, *rest]}) == wanted
    with db.subscribe("m", start="earliest") as beginner:
        rows = db.query("SELECT count(*) FROM m").rows[0][0]
        assert isinstance(rows, int)
        assert len({(r["tbname"], r["ts"]) for r in take(beginner, rows) if r["v"] != LATE}) == rows
    code = f"SELECT code, reader FROM information_schema.ins_dead_letters WHERE topic = 'in.{name}'"
    eventually(lambda: ("E_MOVED", "store") in db.query(code).rows)

    db.execute(f"DELETE FROM m WHERE ts < {T0 + 10 * STEP} AND tbname = 't3'")
    db.drain(depth=2)
    assert db.query(
        f"SELECT count(*) FROM m WHERE tbname = 't3' AND ts < {T0 + 20 * STEP}"
    ).rows == [(10,)]
    before = db.query("SELECT count(*), sum(n), sum(v) FROM r_by_table").rows
    db.execute(f"RECALCULATE STREAM by_table FROM {T0 + 10 * STEP}")
    db.drain(depth=2)
    assert db.query("SELECT count(*), sum(n), sum(v) FROM r_by_table").rows == before


@pytest.mark.long
def test_an_old_topic_goes_when_its_last_record_is_gone(
    db: penstock.Connection, mesh: RunningMesh
) -> None:
    """With its state and checkpoint. Who comes back then is told, and the beginning is where the
    present topic's is.
    """
    former = f"in.{db.database}"
    load = Load(db)
    for at in range(30):
        load.write(at)
    with db.subscribe("m", start="earliest") as reader:
        first = take(reader, 30 * TABLES)
        db.execute(f"ALTER DATABASE {db.database} PARTITIONS 4")
        token = reader.token
    admin = Admin(mesh.kafka_bootstrap, client_id="test")
    admin.delete_records(admin.end_offsets([(former, p) for p in range(2)]))
    eventually(lambda: former not in admin.topics(), 60)
    kept = mesh.layout.root
    eventually(
        lambda: (
            not [
                p
                for p in kept.rglob(f"{former}*")
                if p.is_dir() and not p.name.startswith(f"{former}-g")
            ]
        )
    )
    for at in range(30, 60):
        load.write(at)
    with db.subscribe("m", start="earliest") as beginner:
        assert {r["ts"] for r in take(beginner, 30 * TABLES)}.isdisjoint(r["ts"] for r in first)
    with db.subscribe("m", start=token) as again, pytest.raises(PenstockError) as gone:
        again.next(60)
    assert gone.value.code == "E_OFFSET_GONE"
    check(db, 60)


@pytest.mark.long
def test_the_store_empties_an_old_topic(own_mesh: MeshFactory) -> None:
    """Records of any age are old here: they go from the log once they are in segments, the old
    topic's too.
    """
    environment = {
        "PENSTOCK_STORE_LOG_DAYS": "0",
        "PENSTOCK_STORE_SWEEP_SECONDS": "1",
        "PENSTOCK_STORE_FLUSH_SECONDS": "1",
        "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false",
    }
    mesh = own_mesh(services=("kafka", "redis", "gateway", "store"), environment=environment)
    with penstock.connect(
        mesh.gateway_url,
        password=mesh.password,
        database="kept",
        options=penstock.ConnectionOptions(timeout=150),
    ) as db:
        db.execute("CREATE DATABASE kept PARTITIONS 2")
        db.execute("CREATE STABLE m (ts TIMESTAMP, v INT, s INT) TAGS (g INT)")
        load = Load(db)
        for at in range(20):
            load.write(at)
        for number in (4, 8):
            db.execute(f"ALTER DATABASE kept PARTITIONS {number}")
        admin = Admin(mesh.kafka_bootstrap, client_id="test")
        eventually(lambda: {t for t in admin.topics() if t.startswith("in.")} == {"in.kept-g3"}, 60)
        load.write(20)
        assert db.query("SELECT count(*), count(DISTINCT tbname) FROM m").rows == [
            (21 * TABLES, TABLES)
        ]


def test_what_cannot_be_moved_is_refused_by_name(db: penstock.Connection) -> None:
    name = db.database

    def refusal(partitions: int = 4) -> PenstockError:
        with pytest.raises(PenstockError) as caught:
            db.execute(f"ALTER DATABASE {name} PARTITIONS {partitions}")
        return caught.value

    for impossible in (1, 3):
        assert refusal(impossible).code == "E_BAD_OPTION"
    db.execute("PAUSE STREAM by_table")
    assert (refusal().code, refusal().hint) == ("E_CANNOT_MOVE", f"RESUME STREAM {name}.by_table")
    db.execute("RESUME STREAM by_table")
    delayed = "SELECT _wstart, count(*) AS n FROM m PARTITION BY g k INTERVAL(10s)"
    db.execute(f"CREATE STREAM clock TRIGGER MAX_DELAY 5s INTO r_clock AS {delayed}")
    assert f"stream {name}.clock" in str(refusal())
    db.execute("DROP STREAM clock")
    db.execute(f"ALTER DATABASE {name} PARTITIONS 4")
    db.execute(f"ALTER DATABASE {name} PARTITIONS 4")
    assert partitions(db) == (4, f"in.{name}-g2")


@pytest.mark.long
def test_whoever_dies_in_the_middle(own_mesh: MeshFactory) -> None:
    """Each service that has a part in it is killed once it has begun, one after the other."""
    stages = {
        "gateway": lambda m: m.halted,
        "spark": lambda m: m.halted,
        "store": lambda m: bool(m.ended),
    }
    mesh = own_mesh()
    with (
        penstock.connect(
            mesh.gateway_url,
            password=mesh.password,
            database="killed",
            options=penstock.ConnectionOptions(timeout=150),
        ) as db,
        CatalogReader(mesh.kafka_bootstrap, client_id="test") as catalog,
    ):
        prepare(db, 1)
        load = Load(db)
        with load.flowing():
            for number, (service, stage) in enumerate(stages.items(), 1):
                load.grow()

                def move() -> Move | None:
                    home = catalog.catalog.database("killed")
                    return home.move if home is not None else None

                with asking(mesh, f"ALTER DATABASE killed PARTITIONS {2**number}"):
                    eventually(lambda s=stage: (m := move()) is not None and s(m), every=0.001)
                    pid = mesh.kill(service)
                    mesh.wait_ready(service, not_pid=pid)
                    eventually(lambda n=number: partitions(db) == (2**n, f"in.killed-g{n + 1}"), 60)
            load.grow()
        check(db, load.steps)


@contextmanager
def asking(mesh: RunningMesh, statement: str) -> Iterator[None]:
    """Somebody sends a statement, and may or may not get an answer."""

    def ask() -> None:
        with (
            suppress(PenstockError),
            penstock.connect(
                mesh.gateway_url,
                password=mesh.password,
                options=penstock.ConnectionOptions(timeout=150),
            ) as db,
        ):
            db.execute(statement)

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    thread.join()
