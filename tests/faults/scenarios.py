"""What can happen. Each scenario breaks something of a running mesh and returns when the broken
part is there again.

`limit` is the promise: seconds after the fault within which rows go through all streams again (on a
quiet machine; a busy one gets four times that). It is printed in docs/faults.md. What has to be
prepared before a fault does not count: such a scenario says when it struck.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psutil
import pytest

from penstock import names
from penstock.bus import Admin, Publisher
from penstock.errors import PenstockError
from penstock.mesh.standby import STANDBY
from penstock.records import ControlRecord, encode
from tests.faults.load import TABLES, Load, rows
from tests.faults.world import World, persistently
from tests.stack.conftest import eventually


@dataclass(frozen=True)
class Scenario:
    """`act` breaks what it is about in a mesh under load of a database; it may give the moment
    (monotonic) of the fault. *standby*: the mesh has one for the stream jobs.
    """

    name: str
    act: Callable[[World, Load, str], float | None]
    limit: float
    quick: bool = False
    standby: bool = False


def _service(service: str, limit: float, *, quick: bool = False) -> Scenario:
    return Scenario(
        f"kill -9 of {service}", lambda world, _load, _db: world.kill(service), limit, quick
    )


def _driver(world: World, _load: Load, _db: str) -> None:
    world.kill("spark")


def _jvm(world: World, _load: Load, _db: str) -> None:
    driver = world.mesh.pid("spark")
    world.jvm().kill()
    world.mesh.wait_ready("spark", not_pid=driver, seconds=180)


def _worker(world: World, _load: Load, _db: str) -> None:
    for _ in range(3):
        world.worker().kill()
        time.sleep(0.5)


def _redis_data(world: World, load: Load, _db: str) -> None:
    # the markers of idempotency keys are lost with it: a write that is repeated across this may
    # count twice, so none is under way
    with load.quiet():
        world.lose_redis()
        # tags of tables that only rows made known come back with rows; what was told to nobody else
        # does not
        persistently(lambda: world.client.execute("SHOW DATABASES"))


def _table_leader(world: World, _load: Load, _db: str) -> None:
    world.kill(world.table_leader())


def _torn_state(world: World, _load: Load, db: str) -> None:
    with world.jobs_dead():
        newest: dict[Path, Path] = {}
        for path in sorted(world.state.glob(f"*/{names.ingest_topic(db)}-*/p*")):
            newest[path.parent] = path
        for path in newest.values():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert newest


def _backed_up(world: World, db: str, beyond: int = 0) -> int:
    """Wait until the snode has kept more of the database's query than *beyond*; how much that
    is.
    """

    def look() -> int:
        subject = next(
            (s for s in world.vault.subjects() if s.startswith(f"{names.ingest_topic(db)}.")), ""
        )
        found = world.vault.backups(subject) if subject else []
        done = sum(found[0].facts["positions"].values()) if found else 0
        return done if done > beyond else 0

    return eventually(look, 60)


def _lost_disk(world: World, _load: Load, db: str) -> float:
    _backed_up(world, db)
    began = time.monotonic()
    with world.jobs_dead():
        shutil.rmtree(world.state)
    return began


def _corrupted_backup(world: World, _load: Load, db: str) -> float:
    """The newest backup is damaged and the disk is lost: the backup before it serves."""
    _backed_up(world, db, _backed_up(world, db))
    world.client.execute("DROP SNODE ON DNODE 1")  # nobody makes a newer one now
    began = time.monotonic()
    try:
        with world.jobs_dead():
            damaged = sum(_damage_newest(world, subject) for subject in world.vault.subjects())
            assert damaged, "there is nothing that only the newest backup has"
            shutil.rmtree(world.state)
    finally:
        world.client.execute("CREATE SNODE ON DNODE 1")
    return began


def _damage_newest(world: World, subject: str) -> int:
    """Write nonsense over what only the newest of several backups has; how many objects that is."""
    found = world.vault.backups(subject)
    if len(found) < 2:
        return 0
    fresh = {i.digest for i in found[0].items} - {i.digest for b in found[1:] for i in b.items}
    for digest in fresh:
        (Path(world.vault.url) / subject / "objects" / digest[:2] / digest).write_bytes(b"damaged")
    return len(fresh)


def _disk_full(world: World, _load: Load, db: str) -> float:
    """No byte is left for state files and checkpoints for five seconds, and until somebody has
    missed one.
    """
    aside = world.state.with_name("state-aside")
    with world.jobs_dead():
        world.state.rename(aside)
        world.state.mkdir()
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(world.state)],
            capture_output=True,
        ).returncode:
            world.state.rmdir()
            aside.rename(world.state)
            pytest.skip("a small disk needs the right to mount a tmpfs")
        shutil.copytree(aside, world.state, dirs_exist_ok=True)
    mounted = time.time()
    states = f"*/{names.ingest_topic(db)}-*/p*"
    eventually(lambda: any(path.stat().st_mtime > mounted for path in world.state.glob(states)), 60)
    log = world.mesh.layout.log("spark")
    filler = world.state / "filler"
    said = log.stat().st_size
    began = time.monotonic()
    try:
        with open(filler, "wb", buffering=0) as out:
            while time.monotonic() < began + 5 or b"No space left" not in log.read_bytes()[said:]:
                assert time.monotonic() < began + 60, "nobody has met the full disk"
                try:
                    out.write(b"\0" * (1 << 20))
                except OSError:
                    time.sleep(0.01)  # full; what others give back is taken, too
        assert shutil.disk_usage(world.state).free < 1 << 20
    finally:
        filler.unlink(missing_ok=True)
        eventually(lambda: not world.mesh.state()["services"]["spark"]["why"], 60)
        with world.jobs_dead():
            shutil.rmtree(aside)
            shutil.copytree(world.state, aside)
            subprocess.run(["umount", "-l", str(world.state)], check=True)
            world.state.rmdir()
            aside.rename(world.state)
    return began


def _paused(world: World, _load: Load, _db: str, seconds: float = 30.0) -> None:
    """Everything that is the jobs sleeps and wakes, as on a node that was paused."""
    sleepers = world.jobs()
    for process in sleepers:
        process.suspend()
    time.sleep(seconds)
    for process in sleepers:
        with contextlib.suppress(Exception):
            process.resume()


def _clock(world: World, _load: Load, db: str) -> None:
    """Ticks of a clock that jumps an hour ahead and back, and a client whose clock is a month
    ahead: nothing that is there may expire.
    """
    now = time.time_ns() // 10**6
    topic = names.ingest_topic(db)
    with Publisher(world.mesh.kafka_bootstrap, client_id="faults") as publisher:
        for jump in (0, 3_600_000, -3_600_000, 0):
            for place in range(Admin(world.mesh.kafka_bootstrap).topics()[topic]):
                publisher.publish(
                    topic, encode(ControlRecord("tick", time=now + jump)), partition=place
                ).result(30)
            with pytest.raises(PenstockError, match="E_ROW"):
                world.client.write(
                    f"{db}.m", rows(0, TABLES).with_columns(ts=pl.lit(now + 30 * 86_400_000))
                )


def _taken_over(victim: Callable[[World], psutil.Process]) -> Callable[[World, Load, str], float]:
    """Kill a part of whoever runs the jobs; the other one goes on with them."""

    def act(world: World, _load: Load, _db: str) -> float:
        first = eventually(world.leader, 60)
        second = STANDBY if first == "spark" else "spark"
        world.mesh.wait_ready(second, seconds=180)
        began = time.monotonic()
        victim(world).kill()
        eventually(lambda: world.leader() == second, 60)
        return began

    return act


def _everything(world: World, _load: Load, _db: str) -> None:
    world.kill_everything()


SCENARIOS = (
    Scenario("no fault", lambda *_: None, 20),
    Scenario("kill -9 of the Spark driver", _driver, 30, quick=True),
    Scenario("kill -9 of the JVM", _jvm, 30),
    Scenario("kill -9 of Python workers", _worker, 20, quick=True),
    _service("gateway", 10, quick=True),
    _service("notifier", 10, quick=True),
    _service("store", 10),
    _service("snode", 10),
    _service("federation", 10),
    Scenario("kill -9 of a table leader", _table_leader, 30),
    Scenario("kill -9 of the Kafka broker", lambda world, *_: world.kill("kafka"), 20, quick=True),
    Scenario("kill -9 of Redis", lambda world, *_: world.kill("redis"), 10),
    Scenario("Redis loses all data", _redis_data, 60),
    Scenario("disk full for state", _disk_full, 90),
    Scenario("torn state files", _torn_state, 40, quick=True),
    Scenario("lost disk of the jobs", _lost_disk, 40),
    Scenario("corrupted backup and lost disk", _corrupted_backup, 60),
    Scenario("clock jumps", _clock, 20),
    Scenario("the jobs' node sleeps 30 s", _paused, 60),
    Scenario("the whole mesh killed at once", _everything, 40, quick=True),
    Scenario(
        "kill -9 of the Spark driver, with a standby",
        _taken_over(lambda world: world.jobs()[0]),
        10,
        quick=True,
        standby=True,
    ),
    Scenario("kill -9 of the JVM, with a standby", _taken_over(World.jvm), 10, standby=True),
)
