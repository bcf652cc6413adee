"""Nothing is lost and nothing published twice, whatever dies: at named places and at random moments
of a load.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import psutil
import pytest
from polars.testing import assert_frame_equal

from penstock.catalog.model import Table
from penstock.codec import frame_of
from penstock.mesh.standby import remark
from tests.nightly import NIGHTLY
from tests.stack.conftest import eventually
from tests.stack.jobs_kit import leader
from tests.stack.operator_kit import OperatorKit, meter_rows, operator_kit, windows_of

TABLES = 40
_WINDOWS = "_wstart AS ts, count(*) AS n, avg(current) AS c, max(voltage) AS v"
_QUERIES = {
    "windows": f"SELECT {_WINDOWS} FROM k.meters PARTITION BY tbname INTERVAL(10s)",
    "places": f"SELECT {_WINDOWS} FROM k.meters PARTITION BY location INTERVAL(10s)",
    "high": "SELECT ts, current, voltage FROM k.meters WHERE voltage > 230 PARTITION BY tbname",
}
STREAMS = {
    name: f"CREATE STREAM k_{name} TRIGGER AT_ONCE INTO k.{name} AS {query}"
    for name, query in _QUERIES.items()
}


class Load:
    """Rows flowing in from a thread until told to stop."""

    def __init__(self, kit: OperatorKit, source: Table, chunk: int = 200) -> None:
        self._kit = kit
        self._source = source
        self._chunk = chunk
        self._halt = threading.Event()
        self.rows: list[pl.DataFrame] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        sent = 0
        while not self._halt.wait(0.02):
            rows = meter_rows(TABLES, self._chunk, first=sent)
            self._kit.write(self._source, rows, batch=50)
            self.rows.append(rows)
            sent += self._chunk

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._halt.set()
            self._thread.join()

    def all(self) -> pl.DataFrame:
        return pl.concat(self.rows)


def parts(kit: OperatorKit) -> dict[str, list[psutil.Process]]:
    """Processes of the stream jobs by what they are."""
    found: dict[str, list[psutil.Process]] = {"driver": [], "jvm": [], "daemon": [], "worker": []}
    driver, *children = kit.mesh.processes("spark")
    found["driver"].append(driver)
    for process in children:
        with suppress(psutil.Error):  # it has just died
            if process.name() == "java":
                found["jvm"].append(process)
            elif "spark_jobs.daemon" in " ".join(process.cmdline()):
                parent = process.parent()
                found[
                    "daemon" if parent is not None and parent.name() == "java" else "worker"
                ].append(process)
    return found


def kill(kit: OperatorKit, kind: str, rnd: random.Random) -> None:
    """kill -9 one of a kind, and wait until somebody works again."""
    victims = eventually(lambda: parts(kit)[kind])
    victim = rnd.choice(victims)
    driver = kit.mesh.pid("spark")
    victim.send_signal(signal.SIGKILL)
    if kind in ("driver", "jvm"):
        kit.mesh.wait_ready("spark", not_pid=driver)


def start(kit: OperatorKit) -> tuple[Table, dict[str, Table]]:
    kit.database("k")
    source = kit.stable("k")
    return source, {name: kit.stream(sql, "k")[1] for name, sql in STREAMS.items()}


def check(kit: OperatorKit, rows: pl.DataFrame, targets: dict[str, Table]) -> None:
    """Every result is there, right, and in the log once."""
    for name, key in (("windows", "tbname"), ("places", "location")):
        expected = windows_of(rows, key=key).select(
            pl.col("wstart").alias("ts"), pl.col("n").cast(pl.Int64), "c", "v"
        )
        found = kit.results(targets[name]).select("ts", "n", "c", "v")
        assert_frame_equal(
            found.sort("ts", "c", "v", "n"), expected.sort("ts", "c", "v", "n"), rel_tol=1e-9
        )
    high, _ = kit.raw_results(targets["high"])
    expected_high = (
        rows.filter(pl.col("voltage") > 230).select("ts", "current", "voltage").sort(pl.all())
    )
    assert_frame_equal(high.select("ts", "current", "voltage").sort(pl.all()), expected_high)
    assert {name: kit.repeats(table) for name, table in targets.items()} == dict.fromkeys(
        targets, 0
    )


PLACES = [
    "after_produce:exit:60",
    "mid_state_file:exit:8",
    "after_state:exit:20",
    "before_commit:exit:2",
    "mid_settle:exit:1",
    "mid_replay:exit:2",
]
#: alone each place is met in a mesh of its own (nightly), together one death follows another
RUNS = (
    [",".join(PLACES), *PLACES[:5], f"{PLACES[0]},{PLACES[5]}"] if NIGHTLY else [",".join(PLACES)]
)


@pytest.mark.timeout(600)
@pytest.mark.long
@pytest.mark.parametrize("failpoints", RUNS)
def test_deaths_at_named_places(tmp_path: Path, failpoints: str) -> None:
    with operator_kit(tmp_path / "mesh", failpoints=failpoints, epoch_seconds="6") as kit:
        source, targets = start(kit)
        # nobody reads results here: what is wrong with such a record is found out when it has been
        # put off for a while
        broken = frame_of(targets["windows"].schema_id) + b"\xff"
        wrong = {(p, kit.raw(source.topic, broken, p)) for p in range(source.partitions)}
        load = Load(kit, source)
        with load.flowing():
            places = [item.partition(":")[0] for item in failpoints.split(",")]
            counts = {
                item.partition(":")[0]: int(item.rpartition(":")[2])
                for item in failpoints.split(",")
            }

            def reached() -> bool:
                visits = {
                    p: kit.mesh.layout.root / "state/notes/failpoints" / f"failpoint-{p}"
                    for p in places
                }
                return all(v.exists() and v.stat().st_size >= counts[p] for p, v in visits.items())

            eventually(reached, 90)
            time.sleep(2)
        kit.drain("k", depth=1)
        check(kit, load.all(), targets)
        assert {
            (letter.partition, letter.offset) for letter in kit.dead_letters(source.topic)
        } == wrong


@pytest.mark.long
def test_deaths_at_random_moments(tmp_path: Path) -> None:
    rnd = random.Random(20)
    kills = 20 if NIGHTLY else 5
    with operator_kit(tmp_path / "mesh", epoch_seconds="6") as kit:
        source, targets = start(kit)
        load = Load(kit, source)
        with load.flowing():
            for n in range(kills):
                time.sleep(rnd.uniform(0.5, 4.0))
                kill(kit, ("worker", "jvm", "worker", "driver", "daemon")[n % 5], rnd)
        kit.drain("k")
        check(kit, load.all(), targets)


@pytest.mark.long
def test_a_death_in_the_very_first_commit(tmp_path: Path) -> None:
    """Spark would refuse what that leaves for ever; the processors know by themselves how far they
    are.
    """
    with operator_kit(tmp_path / "mesh", epoch_seconds="300") as kit:
        source, targets = start(kit)
        rows = [meter_rows(TABLES, 400, first=n) for n in (0, 400)]
        kit.write(source, rows[0])
        kit.drain("k")
        checkpoint = next((kit.mesh.layout.root / "state/checkpoints").glob("*/in.k"))
        pid = kit.mesh.kill("spark")
        (checkpoint / "commits").mkdir(exist_ok=True)
        (checkpoint / "commits/.0.half-written.tmp").touch()
        kit.mesh.wait_ready("spark", not_pid=pid)
        kit.write(source, rows[1])
        kit.drain("k")
        check(kit, pl.concat(rows), targets)


def end(kit: OperatorKit, service: str, kind: str) -> None:
    """kill -9 a driver, or its JVM."""
    driver, *children = kit.mesh.processes(service)
    victim = driver if kind == "driver" else next(c for c in children if c.name() == "java")
    victim.kill()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_standby_takes_over_from_a_driver_or_a_jvm_that_dies(tmp_path: Path) -> None:
    """It leads while whoever died is not even started again; nothing is lost or there twice."""
    with operator_kit(tmp_path / "mesh", PENSTOCK_STANDBY="true", epoch_seconds="300") as kit:
        source, targets = start(kit)
        load = Load(kit, source)
        with load.flowing():
            for kind, first, second in (("driver", "spark", "spark2"), ("jvm", "spark2", "spark")):
                kit.mesh.wait_ready(second)
                assert leader(kit.mesh, kit.redis) == first
                port = kit.mesh.state()["ports"][f"{second}-health"]
                assert remark(port) == "node 1 runs the jobs"
                time.sleep(11)  # whoever dies young is started again sooner
                end(kit, first, kind)
                eventually(lambda: leader(kit.mesh, kit.redis) == second, 10)  # noqa: B023
                # the other may lead before the supervisor has noticed the death
                eventually(
                    lambda: kit.mesh.state()["services"][first]["state"] == "backoff",  # noqa: B023
                    5,
                )
                kit.drain("k")
        kit.drain("k")
        check(kit, load.all(), targets)
