"""Kinds of stream tables, what they promise when something dies, and subscriptions of several
programs. Names of tests begin with the ids of the reference's features that they hold.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from tests.documents import ROOT
from tests.stack.conftest import PATIENT, MeshFactory, eventually
from tests.stack.names import unique

SERVICES = ("kafka", "redis", "gateway")
ENVIRONMENT = {**PATIENT, "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false"}
NUMBERS = ["ts", "n"]
TYPES = ["TIMESTAMP", "BIGINT"]
AT = "2026-03-02T09:30:00Z"
#: handlers get tables, and subscriptions go to the next leader
TABLES = penstock.SubscriptionOptions(msg_as_table=True, reconnect=True)
RECONNECT = penstock.SubscriptionOptions(reconnect=True)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    groups = {
        "PENSTOCK_STREAMING_HA_MODE": "raft",
        "PENSTOCK_STREAMING_RAFT_GROUPS": "11:NODE1:NODE2:NODE3,12:NODE3:NODE2:NODE1",
    }
    with running_mesh(
        tmp_path_factory.mktemp("kinds"),
        services=SERVICES,
        nodes=3,
        environment={**ENVIRONMENT, **groups},
    ) as mesh:
        yield mesh


@pytest.fixture
def client(nodes: RunningMesh) -> Iterator[Connection]:
    with connected(nodes) as connection:
        database = unique("kinds")
        connection.execute(f"CREATE DATABASE {database}")
        connection.database = database
        yield connection


def connected(mesh: RunningMesh) -> Connection:
    return penstock.connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        options=penstock.ConnectionOptions(timeout=90),
    )


def refused(code: str) -> Any:
    return pytest.raises(PenstockError, match=code)


def numbers(*values: int) -> list[dict[str, Any]]:
    return [{"ts": AT, "n": n} for n in values]


def times(*thousandths: int, day: int = 10) -> list[datetime]:
    return [datetime.fromisoformat(f"2024-09-{day}T00:00:00.{n:03}Z") for n in thousandths]


def shown(table: penstock.StreamTable) -> list[tuple[Any, ...]]:
    """What a select shows, times as milliseconds of their day."""
    found = table.select().table
    for i, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            ticks = found.column(i).cast(pa.int64())
            days = pc.multiply(pc.divide(ticks, 86_400_000), 86_400_000)
            found = found.set_column(i, field.name, pc.subtract(ticks, days))
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


def test_d4_a_name_is_taken_for_every_group(client: Connection) -> None:
    client.ha.create(11, penstock.table(NUMBERS, TYPES), "numbers", 100)
    with refused("E_TABLE_EXISTS"):
        client.ha.create(12, penstock.table(NUMBERS, TYPES), "numbers", 100)
    client.ha.create(12, penstock.table(NUMBERS, TYPES), "others", 100).append(numbers(1))
    assert [row[0] for row in client.ha.groups("NODE1").rows] == [11, 12]


def test_a_row_alone_goes_straight_to_the_log_and_many_rows_do_not(client: Connection) -> None:
    table = client.ha.create(11, penstock.table(NUMBERS, TYPES), "numbers", 50_000)

    def straight() -> int:
        lines = client.ha.stat()["pubTables"]
        return sum(line["straightRecords"] for line in lines if line["table"] == table.name)

    written = 0

    def one() -> int:
        nonlocal written
        table.append(numbers(written))
        written += 1
        return straight()

    before = eventually(one)  # the connection is made when it is wanted for the first time
    table.append({"ts": [AT] * 20_000, "n": list(range(written, written + 20_000))})
    assert straight() == before
    written += 20_000
    # one after the other and many at once, in any mixture: one order, nothing twice
    for _ in range(20):
        waiting = [table.submit(numbers(written + i)) for i in range(10)]
        table.append(numbers(written + 10))
        written += 11
        assert [w.result(60) for w in waiting] == [1] * 10
    assert table.rows().table.column("n").to_pylist() == list(range(written))


# ---------------------------------------------------------------- which rows are taken


def test_d38_a_keyed_table_keeps_the_first_row_of_a_key_as_in_the_references_example(
    client: Connection,
) -> None:
    t1 = client.ha.share(
        penstock.keyed_stream_table(
            "id", {"id": [*"ABCDE"], "x": [1, 2, 3, 4, 5]}, ["SYMBOL", "INT"]
        ),
        "t1",
    )
    assert shown(t1) == [("A", 1), ("B", 2), ("C", 3), ("D", 4), ("E", 5)]
    t2 = client.ha.share(penstock.keyed_stream_table("id", ["id", "x"], ["INT", "INT"]), "t2")
    t2.append({"id": [1, 2, 3], "x": [10, 20, 30]})
    t2.append({"id": [3, 4, 5], "x": [35, 45, 55]})
    assert shown(t2) == [(1, 10), (2, 20), (3, 30), (4, 45), (5, 55)]
    t = client.ha.share(
        penstock.keyed_stream_table(
            ["sym", "id"], ["sym", "id", "val"], ["SYMBOL", "INT", "DOUBLE"]
        ),
        "t",
    )
    t.append({"sym": [*"ABCDE"], "id": [5, 4, 3, 2, 1], "val": [52.1, 64.2, 25.5, 48.8, 71.9]})
    t.append({"sym": [*"ABRTY"], "id": [5, 8, 3, 2, 1], "val": [152.3, 164.6, 125.5, 148.8, 171.6]})
    assert shown(t) == [
        ("A", 5, 52.1),
        ("B", 4, 64.2),
        ("C", 3, 25.5),
        ("D", 2, 48.8),
        ("E", 1, 71.9),
        ("B", 8, 164.6),
        ("R", 3, 125.5),
        ("T", 2, 148.8),
        ("Y", 1, 171.6),
    ]


def test_d38_a_latest_keyed_table_takes_newer_rows_and_drops_ties_as_in_the_references_example(
    client: Connection,
) -> None:
    first = {"id": [*"ABCDE"], "x": [1, 2, 3, 4, 5], "timeCol": times(1, 2, 3, 4, 5)}
    t1 = client.ha.share(
        penstock.latest_keyed_stream_table("id", "timeCol", first, ["SYMBOL", "INT", "TIMESTAMP"]),
        "t1",
    )
    begun = [("A", 1, 1), ("B", 2, 2), ("C", 3, 3), ("D", 4, 4), ("E", 5, 5)]
    assert shown(t1) == begun
    t1.append({"id": [*"DEF"], "x": [6, 7, 8], "timeCol": times(5, 5, 5)})
    assert shown(t1) == [*begun, ("D", 6, 5), ("F", 8, 5)]
    t3 = client.ha.share(
        penstock.latest_keyed_stream_table(
            ["id", "x"], "timeCol", first, ["SYMBOL", "INT", "TIMESTAMP"]
        ),
        "t3",
    )
    t3.append({"id": [*"DE"], "x": [4, 5], "timeCol": times(4, 5)})
    t3.append({"id": [*"DF"], "x": [6, 7], "timeCol": times(4, 5)})
    assert shown(t3) == [*begun, ("D", 6, 4), ("F", 7, 5)]
    # a date and a time: the time of day is a number here
    days = {
        "id": [*"ABCDE"],
        "x": [1, 2, 3, 4, 5],
        "dateCol": times(0, 0, 0, 0, 0),
        "timeCol": [1, 2, 3, 4, 5],
    }
    made = penstock.latest_keyed_stream_table(
        "id", ["dateCol", "timeCol"], days, ["SYMBOL", "INT", "DATE", "TIME"]
    )
    t4 = client.ha.share(made, "t4")
    t4.append(
        {"id": [*"DE"], "x": [4, 5], "dateCol": [*times(0), *times(0, day=11)], "timeCol": [4, 5]}
    )
    assert t4.select().table.column("dateCol").to_pylist() == [
        *times(0, 0, 0, 0, 0),
        *times(0, day=11),
    ]
    assert [(r[0], r[1], r[3]) for r in shown(t4)] == [*begun, ("E", 5, 5)]
    # of one write only the newest of a key, and of equal times the first
    t1.append({"id": [*"GGG"], "x": [1, 2, 3], "timeCol": times(1, 9, 9)})
    assert shown(t1)[-1] == ("G", 2, 9)


def test_d38_a_changelog_tells_new_from_updated_and_shows_the_latest_as_in_the_references_example(
    client: Connection,
) -> None:
    stream = client.ha.share(
        penstock.changelog_stream_table(
            ["sym", "time"], ["sym", "time", "price"], ["STRING", "DATETIME", "DOUBLE"]
        ),
        "tick",
    )
    got: list[tuple[str, float]] = []

    def handler(message: penstock.Message) -> None:
        got.extend(
            zip(
                message.table.column("changelog_type").to_pylist(),
                message.table.column("price").to_pylist(),
                strict=True,
            )
        )

    client.ha.subscribe("tick", handler, "changes", offset=0, options=TABLES)
    stream.append(
        {"sym": ["000001.SH"] * 4, "time": times(1, 2, 1, 2), "price": [14.66, 105.6, 89.72, 69.34]}
    )
    assert shown(stream) == [("000001.SH", 1, 89.72), ("000001.SH", 2, 69.34)]
    every = client.ha.table("tick").changelog()
    assert every.table.column_names == ["changelog_type", "sym", "time", "price"]
    assert every.table.column("changelog_type").to_pylist() == ["N", "N", "U", "U"]
    assert every.table.column("price").to_pylist() == [14.66, 105.6, 89.72, 69.34]
    eventually(lambda: got == [("N", 14.66), ("N", 105.6), ("U", 89.72), ("U", 69.34)])
    # a state of one's own stays
    stream.append([{"sym": "000001.SH", "time": times(2)[0], "price": 1.0, "changelog_type": "D"}])
    assert stream.changelog().table.column("changelog_type").to_pylist()[-1] == "D"
    with refused("is no changelog"):
        client.ha.share(penstock.stream_table(["x"], ["INT"]), "plain").changelog()


def test_d38_the_same_in_sql_and_what_does_not_fit_is_refused(client: Connection) -> None:
    columns = "(ts TIMESTAMP, sym VARCHAR(8), state VARCHAR(1), n BIGINT)"
    client.execute(
        f"CREATE STREAM TABLE latest {columns} WITH (raft_group=11, cache_limit=100, key_column='sym', key_rule='latest', time_column='ts')"
    )
    latest = client.ha.table("latest")
    latest.append([{"ts": AT, "sym": "A", "n": 1}])
    latest.append([{"ts": AT, "sym": "A", "n": 2}])
    latest.append([{"ts": AT.replace("30:00", "30:01"), "sym": "A", "n": 3}])
    assert latest.rows().table.column("n").to_pylist() == [1, 3]
    statement = str(client.query("SHOW CREATE TABLE latest").rows[0][1])
    assert "key_rule = 'latest'" in statement and "time_column = 'ts'" in statement
    for options, message in (
        ("key_rule='newest', key_column='sym'", "keyRule must be one of first, latest, changelog"),
        ("key_rule='latest', time_column='ts'", "needs a keyColumn"),
        ("key_rule='latest', key_column='sym'", "timeColumn"),
        ("key_rule='latest', key_column='sym', time_column='sym'", "timeColumn sym is VARCHAR"),
        ("key_rule='changelog', key_column='sym'", "statusColumn"),
        ("key_rule='changelog', key_column='sym', status_column='n'", "statusColumn n is BIGINT"),
        ("async_write=true, flush_mode=1", "waits for the disk"),
        ("flush_mode=2", "flushMode must be 0 or 1"),
        (
            "cache_purge_time_column='ts'",
            "cache_purge_interval and cache_retention_time is missing",
        ),
        (
            "cache_purge_time_column='ts', cache_purge_interval=1h, cache_retention_time=2h",
            "less than cachePurgeInterval",
        ),
    ):
        with refused(message):
            client.execute(
                f"CREATE STREAM TABLE wrong {columns} WITH (raft_group=11, cache_limit=100, {options})"
            )
    with refused("not a stream table"):
        client.ha.create(11, penstock.stream_table(NUMBERS, TYPES), "wrong", 100)


@pytest.mark.long
def test_d38_keys_and_times_are_known_to_the_next_leader(own_mesh: MeshFactory) -> None:
    mesh = own_mesh(services=SERVICES, nodes=3, environment=ENVIRONMENT)
    with connected(mesh) as client:
        kinds = {
            "first": penstock.keyed_stream_table("ts", NUMBERS, TYPES),
            "latest": penstock.latest_keyed_stream_table("ts", "n", NUMBERS, TYPES),
            "log": penstock.changelog_stream_table("ts", NUMBERS, TYPES),
        }
        tables = {name: client.ha.share(definition, name) for name, definition in kinds.items()}
        for table in tables.values():
            table.append(numbers(5))
        mesh.kill(client.ha.leader(11).lower())
        for table in tables.values():
            for n in (4, 5, 6):
                table.append(numbers(n))
        assert shown(tables["first"]) == [(34_200_000, 5)]
        assert shown(tables["latest"]) == [(34_200_000, 5), (34_200_000, 6)]
        assert tables["log"].changelog().table.column("changelog_type").to_pylist() == [
            "N",
            "U",
            "U",
            "U",
        ]
        assert shown(tables["log"]) == [(34_200_000, 6)]


# ---------------------------------------------------------------- what is kept


def test_d39_rows_leave_memory_by_their_time(client: Connection) -> None:
    """The reference's example: a row a minute, purged each 7 hours down to 2."""
    made = penstock.stream_table(["time", "x"], ["TIMESTAMP", "INT"])
    table = client.ha.share(
        made,
        "st1",
        options=penstock.StreamTableOptions(
            cache_purge_time_column="time", cache_purge_interval="7H", cache_retention_time="2H"
        ),
    )
    minutes = [datetime.fromtimestamp(1_546_300_800 + 60 * m, UTC) for m in range(1, 1001)]
    in_memory = 0
    for minute in minutes[:600]:
        table.submit({"time": [minute], "x": [1]})
        in_memory = in_memory + 1 if in_memory < 420 else 121
    table.append({"time": minutes[600:601], "x": [1]})
    meta = client.ha.meta("st1")
    assert (meta["totalSize"], meta["sizeInMemory"]) == (601, in_memory + 1)
    assert (
        meta["memoryOffset"] == meta["totalSize"] - meta["sizeInMemory"] and meta["diskOffset"] == 0
    )
    assert (meta["asynWrite"], meta["compress"], meta["flushMode"]) == (False, True, 0)


def test_d39_files_are_compressed_or_not(nodes: RunningMesh, client: Connection) -> None:
    sizes = {}
    for compress in (True, False):
        name = f"compress_{compress}".lower()
        table = client.ha.share(
            penstock.stream_table(NUMBERS, TYPES),
            name,
            options=penstock.StreamTableOptions(compress=compress),
        )
        table.append({"ts": [AT] * 20_000, "n": [7] * 20_000})
        meta = client.ha.meta(name)
        eventually(lambda n=name: client.ha.meta(n)["sizeOnDisk"] == 20_000)  # type: ignore[misc]
        sizes[compress] = sum(
            f.stat().st_size for f in Path(meta["persistenceDir"]).glob("*.arrow")
        )
    assert sizes[True] * 3 < sizes[False]


def program(*arguments: str) -> subprocess.Popen[str]:
    """One of tests/stack/table_program.py."""
    command = [sys.executable, "-m", "tests.stack.table_program", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


class Lines:
    """What a program has printed so far."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self.found: list[int] = []
        self._running = running
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._running.stdout is not None
        for line in self._running.stdout:
            self.found.append(int(line))

    def rest(self) -> list[int]:
        self._thread.join()
        return self.found


@pytest.mark.long
def test_d39_levels_asynchronous_and_synchronous_over_kills(own_mesh: MeshFactory) -> None:
    """asynWrite may lose what was under way when program and leader die together, and nothing else;
    without it no row that was told to be there is lost, whatever dies.
    """
    mesh = own_mesh(services=SERVICES, nodes=3, environment=ENVIRONMENT)
    with connected(mesh) as client:
        for asynchronous in (True, False):
            name = f"ha.kept_{asynchronous}".lower()
            client.execute("CREATE DATABASE IF NOT EXISTS ha")
            table = client.ha.share(
                penstock.stream_table(NUMBERS, TYPES),
                name,
                options=penstock.StreamTableOptions(async_write=asynchronous),
            )
            writer = program("append", mesh.gateway_url, mesh.user, mesh.password, name)
            printed = Lines(writer)
            eventually(lambda t=table: len(t) > 20)  # type: ignore[misc]
            if asynchronous:
                mesh.kill("kafka", signal.SIGSTOP)  # the log takes nothing more
                eventually(lambda p=printed, t=table: len(p.found) > len(t) + 100)  # type: ignore[misc]
            leader = client.ha.leader(11)
            writer.kill()
            writer.wait()
            mesh.kill(leader.lower())
            mesh.kill("kafka", signal.SIGCONT if asynchronous else signal.SIGKILL)
            told = printed.rest()
            eventually(lambda t=table: t.append(numbers(-1)) == 1, 90)  # type: ignore[misc]
            table.flush()
            # a node that has just started may be asked, too
            every = eventually(
                lambda t=table: (
                    (found := t.rows().table.column("n").to_pylist()) and -1 in found and found
                )
            )  # type: ignore[misc]
            kept = [n for n in every if n >= 0]
            assert kept == list(range(len(kept)))
            if asynchronous:
                # it was told before the log had it, as seen above; what had come to the broker's
                # socket may still get there and one row may be there that the program, killed in
                # the middle, had no time to tell of
                assert 20 < len(kept) <= len(told) + 1
            else:
                assert len(told) <= len(kept) <= len(told) + 1


_SYNCED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static void note(int fd) {
    char link[64], path[4096], line[4200]; struct stat found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || fstat(fd, &found)) return;
    path[n] = 0;
    int out = open(getenv("SYNCED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(out, line, snprintf(line, sizeof line, "%lld %s\n", (long long)found.st_size, path)) < 0) return;
    close(out);
}
int fsync(int fd) { int r = ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); if (!r) note(fd); return r; }
int fdatasync(int fd) { int r = ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); if (!r) note(fd); return r; }
"""


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler to watch fsync with")
def test_d39_flush_mode_1_survives_a_power_cut_and_0_does_not(tmp_path: Path) -> None:
    """The broker's syncs are noted; then everything is killed, and what was not synced of the
    tables' logs is cut off, as if the machine had lost its power.
    """
    library = tmp_path / "synced.so"
    synced = tmp_path / "synced"
    home = tmp_path / "mesh"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"],
        input=_SYNCED,
        text=True,
        check=True,
    )
    noted = {**ENVIRONMENT, "LD_PRELOAD": str(library), "SYNCED": str(synced)}
    with running_mesh(home, services=SERVICES, nodes=3, environment=noted) as mesh:
        with connected(mesh) as client:
            for mode in (0, 1):
                table = client.ha.share(
                    penstock.stream_table(NUMBERS, TYPES),
                    f"mode{mode}",
                    options=penstock.StreamTableOptions(flush_mode=mode),
                )
                for n in range(50):
                    table.append(numbers(n))
        supervisor = int(mesh.state()["supervisor"])
        services = [
            mesh.pid(service)
            for service in ("kafka", "redis", "gateway", "node1", "node2", "node3")
        ]
        for pid in (supervisor, *services):
            os.kill(pid, signal.SIGSTOP)
        for pid in (supervisor, *services):
            os.kill(pid, signal.SIGKILL)
    sizes: dict[str, int] = {}
    for line in synced.read_text(encoding="utf-8").splitlines():
        size, _, path = line.partition(" ")
        sizes[path] = int(size)
    cut = [path for path in home.rglob("*.log") if "mode" in path.parent.name]
    assert len(cut) == 2
    for path in cut:
        os.truncate(path, sizes.get(str(path), 0))
        for index in path.parent.glob("*.*index"):
            index.unlink()
    shutil.rmtree(home / "tables")
    with (
        running_mesh(home, services=SERVICES, nodes=3, environment=ENVIRONMENT) as mesh,
        connected(mesh) as client,
    ):
        left = {}
        for mode in (0, 1):
            table = client.ha.table(f"ha.mode{mode}")
            eventually(lambda t=table: t.append(numbers(-1)), 60)  # type: ignore[misc]
            found = eventually(
                lambda t=table: (
                    (seen := t.rows().table.column("n").to_pylist()) and -1 in seen and seen
                )
            )  # type: ignore[misc]
            left[mode] = found[: found.index(-1)]
        assert left[1] == list(range(50))
        assert len(left[0]) < 50


# ---------------------------------------------------------------- who works rows off


@pytest.mark.long
def test_d36_several_programs_subscribe_and_one_gets_the_rows_until_it_is_killed(
    own_mesh: MeshFactory, tmp_path: Path
) -> None:
    mesh = own_mesh(services=SERVICES, nodes=3, environment=ENVIRONMENT)
    with connected(mesh) as client:
        client.execute("CREATE DATABASE IF NOT EXISTS ha")
        table = client.ha.create(11, penstock.table(NUMBERS, TYPES), "ha.numbers", 10_000)
        files = [tmp_path / f"rows{i}" for i in range(3)]
        programs = [
            program(
                "subscribe", mesh.gateway_url, mesh.user, mesh.password, "ha.numbers", "11", str(f)
            )
            for f in files
        ]

        def got(i: int) -> list[int]:
            return [int(line) for line in files[i].read_text(encoding="utf-8").split()]

        try:
            eventually(lambda: all(f.exists() and f.read_text(encoding="utf-8") for f in files))
            topic = "11/ha.numbers/ha_sub"
            total = 0

            def write(count: int) -> None:
                nonlocal total
                for _ in range(count):
                    table.append(numbers(total))
                    total += 1

            def worked_off() -> bool:
                return client.ha.processed_offset(topic) == total - 1

            write(20)
            eventually(worked_off)
            (first,) = [i for i in range(3) if got(i)]
            assert got(first) == list(range(20))
            connections = [c for c in client.ha.stat()["pubConns"] if c["topic"] == topic]
            assert [c["executes"] for c in connections].count(True) == 1 and len(connections) == 3
            assert {c["node"] for c in connections} == {client.ha.leader(11)}
            # the program that works rows off dies: another one goes on where it was
            programs[first].kill()
            programs[first].wait()
            write(20)
            eventually(worked_off)
            (second,) = [i for i in range(3) if i != first and got(i)]
            assert got(second) == list(range(20, 40))
            # the leader dies: rows go on, to whoever had them unless that one is very late at the
            # next leader
            mesh.kill(client.ha.leader(11).lower())
            write(20)
            eventually(worked_off)
            (third,) = [i for i in range(3) if i not in (first, second)]
            assert sorted(got(second) + got(third)) == list(range(20, 60))
            with refused("raftGroup of subscription 11/ha.numbers/ha_sub is 11"):
                client.ha.unsubscribe("ha.numbers", "ha_sub", server="NODE2")
            client.ha.unsubscribe("ha.numbers", "ha_sub", server="NODE2", raft_group=11)
            eventually(lambda: client.ha.processed_offset(topic) == -1)
            assert [c for c in client.ha.stat()["pubConns"] if c["topic"] == topic] == []
        finally:
            for running in programs:
                running.kill()
                running.wait()


def test_d36_what_goes_together_and_what_does_not(client: Connection) -> None:
    client.ha.create(11, penstock.table(NUMBERS, TYPES), "numbers", 1000)
    with refused("E_NO_GROUP"):
        client.ha.subscribe(
            "numbers", print, "a", options=penstock.SubscriptionOptions(raft_group=13)
        )
    # the group that works rows off need not be the one that keeps them
    shared = client.ha.subscribe(
        "numbers", print, "a", options=penstock.SubscriptionOptions(raft_group=12)
    )
    assert shared.options.reconnect and shared.options.persist_offset
    with connected_like(client) as other:
        with refused("E_SUBSCRIPTION_EXISTS"):
            other.ha.subscribe("numbers", print, "a", server=shared.served_by, options=RECONNECT)
        alone = other.ha.subscribe("numbers", print, "b", options=RECONNECT)
        with refused("E_RAFT_GROUP"):
            other.ha.unsubscribe("numbers", "b", raft_group=11)
        assert not alone.wait(0)
        other.ha.unsubscribe("numbers", "b")
        other.ha.unsubscribe("numbers", "a", raft_group=12)
    assert shared.wait(30) and shared.cancelled


def connected_like(client: Connection) -> Connection:
    """The same user, in another connection."""
    return penstock.connect(
        client.url, user=client._user, password=client._password, database=client.database
    )
