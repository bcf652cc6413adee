"""Tables by URI and by builder (features H1 to H25): live objects in this process over tables of a
running mesh.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa
import pytest

from penstock import remote_table, uri
from penstock.errors import PenstockError, RemoteError
from penstock.link.mirror import RemoteTable
from penstock.link.updates import TableUpdate
from penstock.mesh.proxy import Proxy
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import METERS, SELF, T0, client_of, deployment, rows


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    database = "CREATE DATABASE plant PARTITIONS 2"
    with deployment(tmp_path_factory.mktemp("plant"), database, environment=SELF) as mesh:
        with client_of(mesh) as client:
            client.execute(METERS, database="plant")
            client.write("plant.meters", rows(0, 100))
        uri.session(mesh.gateway_url, user=mesh.user, password=mesh.password, default=True)
        yield mesh


def _live(text: str) -> RemoteTable:
    found = uri.resolve(text)
    assert isinstance(found, RemoteTable)
    return found


def _restart(mesh: RunningMesh) -> None:
    pid = mesh.kill("federation")
    mesh.wait_ready("federation", not_pid=pid)


def test_H1_H2_H12_H13_by_name_and_serial_and_it_ticks(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        with _live("pq://plant/scope/meters") as table:
            assert (
                table.columns == ["ts", "v", "note", "site"]
                and len(table) == 100
                and not table.stale
            )
            seen: list[TableUpdate] = []
            table.on_update(seen.append)
            client.write("plant.meters", rows(100, 50))
            table.wait(lambda t: len(t) == 150)
            assert sum(u.rows.num_rows for u in seen if u.rows is not None) == 50
            client.execute(
                f"INSERT INTO plant.m1 (ts, v) VALUES ({T0 + 1}, -5)"
            )  # an update in place, of some columns
            table.wait(lambda t: -5 in t.to_polars()["v"].to_list())
            assert len(table) == 150 and table.to_polars().filter(v=-5)["note"].to_list() == ["n1"]
            client.execute(f"DELETE FROM plant.meters WHERE ts < {T0 + 10}")
            table.wait(lambda t: len(t) == 140)
            assert sorted(table.to_pandas()["v"].tolist()) == sorted(
                client.query("SELECT v FROM plant.meters").to_polars()["v"].to_list()
            )
            assert table.sql("SELECT max(v) AS top FROM t").to_pylist() == [{"top": 149}]
        with pytest.raises(PenstockError, match="E_NO_QUERY"):
            uri.resolve("pq://999999/scope/meters")
        with pytest.raises(PenstockError, match="E_NO_QUERY"):
            uri.resolve("pq://nobody/scope/meters")
        with pytest.raises(PenstockError, match="E_NO_TABLE"):
            uri.resolve("pq://plant/scope/none")


def test_H3_H16_H18_H19_a_query_that_does_not_run(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        client.execute("CREATE TABLE plant.src (ts TIMESTAMP, v INT)")
        client.execute(
            "CREATE MATERIALIZED VIEW plant.doubled AS SELECT v, v * 2 AS twice FROM plant.src"
        )
        client.execute("SYSTEM PAUSE MATERIALIZED VIEW plant.doubled")
        eventually(lambda: client.query("SHOW VIEWS LIKE 'doubled'").rows[0][2] == "paused")
        with pytest.raises(PenstockError, match='query "doubled" is not running'):
            uri.resolve("pq://doubled/scope/doubled")
        builder = remote_table.in_local_cluster(query_name="doubled", table_name="doubled")
        with pytest.raises(PenstockError, match='"doubled"'):
            builder.subscribe()
        with pytest.raises(PenstockError, match='"doubled"'):
            builder.table_definition({"ts": "TIMESTAMP", "v": pa.int32()}).snapshot()
        with builder.table_definition({"ts": "TIMESTAMP", "v": pa.int32()}).subscribe() as table:
            assert len(table) == 0 and table.columns == ["ts", "v"] and table.stale
            client.write("plant.src", [{"ts": T0, "v": 21}])
            client.execute("SYSTEM RESUME MATERIALIZED VIEW plant.doubled")
            table.wait(lambda t: t.to_polars()["v"].to_list() == [21])
            client.execute(
                "SYSTEM PAUSE MATERIALIZED VIEW plant.doubled"
            )  # H20: it stops: empty, not failed
            table.wait(lambda t: len(t) == 0)
            assert table.state == "disconnected"
            client.execute("SYSTEM RESUME MATERIALIZED VIEW plant.doubled")
            table.wait(lambda t: len(t) == 1)
        with builder.table_definition({"ts": "TIMESTAMP", "v": "BIGINT"}).subscribe() as wrong:
            wrong.wait(lambda t: t.error is not None and t.error.code == "E_REMOTE_SCHEMA")


def test_H18_H19_H20_H23_the_other_side_is_away(plant: RunningMesh) -> None:
    """Not only the query: nobody answers there."""
    with Proxy(int(plant.federation_url.rpartition(":")[2])) as wire:
        there = f"ws://127.0.0.1:{wire.port}"
        uri.session(there, user=plant.user, password=plant.password)
        builder = remote_table.for_remote_cluster(there).query_name("plant").table_name("meters")
        defined = builder.table_definition(
            pa.schema([("ts", pa.timestamp("ms", "UTC")), ("v", pa.int32())])
        )
        wire.cut()
        with defined.subscribe() as table:
            for call in (builder.subscribe, builder.snapshot, defined.snapshot):
                with pytest.raises(PenstockError, match="E_LINK_LOST"):
                    call()
            assert len(table) == 0 and table.columns == ["ts", "v"] and table.stale
            wire.heal()
            with client_of(plant) as client:
                wanted = client.query("SELECT count(*) FROM plant.meters").rows[0][0]
            table.wait(lambda t: len(t) == wanted)
            wire.cut()
            table.wait(lambda t: len(t) == 0 and t.state == "disconnected")
            assert table.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 0}], (
                "empty, not failed"
            )
            wire.heal()
            table.wait(lambda t: len(t) == wanted)


def test_H26_waiting_for_the_first_rows_ends(plant: RunningMesh) -> None:
    before = threading.active_count()
    for service in ("federation", "store"):
        plant.kill(service, signal.SIGSTOP)  # it takes connections and says nothing
        try:
            for more in ("", "&snapshot=true"):
                began = time.monotonic()
                with pytest.raises(PenstockError, match="E_TIMEOUT"):
                    uri.resolve(f"pq://plant/scope/meters?waitTimeout=PT0.5S{more}")
                assert time.monotonic() - began < 5
        finally:
            plant.kill(service, signal.SIGCONT)
    eventually(lambda: threading.active_count() <= before)  # nothing is left behind


def test_H13_what_was_written_at_once_is_seen_at_once(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        client.execute("CREATE TABLE plant.cycles (ts TIMESTAMP, v INT)")
        with _live("pq://plant/scope/cycles") as table:
            seen: list[int] = []
            table.on_update(lambda _: seen.append(len(table)))
            for i in range(20):
                client.write("plant.cycles", [{"ts": T0 + 700 * i + k, "v": k} for k in range(700)])
            table.wait(lambda t: len(t) == 14_000)
            assert seen and all(count % 700 == 0 for count in seen)


def test_H11_names_that_need_encoding(plant: RunningMesh) -> None:
    name = "Sla\\sh PQ/50% größer?"
    with client_of(plant) as client:
        client.execute("CREATE TABLE plant.odd (ts TIMESTAMP, v INT)")
        client.execute(f"CREATE MATERIALIZED VIEW plant.`{name}` AS SELECT * FROM plant.odd")
        client.write("plant.odd", [{"ts": T0, "v": 5}])
        with _live(
            f"pq://{quote(name, safe='')}/scope/{quote(name, safe='')}?waitTimeout=PT20S"
        ) as table:
            table.wait(lambda t: t.to_polars()["v"].to_list() == [5])


def test_a_resolved_table_is_a_source_of_sql_and_streams(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        client.execute("CREATE DATABASE taker PARTITIONS 1")
        client.execute(METERS.replace("meters", "shared"), database="plant")
        client.write("plant.shared", rows(0, 40))
        with _live("pq://plant/scope/shared?columns=v,site") as table:
            table.make_external(client, "taker.shared")
            assert [r[0] for r in client.query("DESCRIBE taker.shared").rows] == ["ts", "v", "site"]
            assert client.query("SELECT count(*), sum(v) FROM taker.shared").rows == [
                (len(table), sum(range(40)))
            ]
            client.execute(
                "CREATE MATERIALIZED VIEW taker.big AS SELECT v FROM taker.shared WHERE v > 40"
            )
            assert [r[0] for r in client.query("DESCRIBE taker.big").rows] == ["ts", "v", "site"]
            client.write("plant.shared", rows(41, 3))
            eventually(lambda: client.query("SELECT count(*) FROM taker.big").rows == [(3,)])
        builder = remote_table.in_local_cluster("plant", "shared")
        with (
            builder.subscribe(filters="v > 3") as filtered,
            pytest.raises(PenstockError, match="no filter of its own"),
        ):
            filtered.make_external(client, "taker.filtered")


def test_H4_H5_H17_H23_H24_H25_snapshot_and_columns(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        copy = uri.resolve("pq://plant/scope/meters?snapshot=true&columns=site,v")
        assert isinstance(copy, pa.Table) and copy.column_names == ["site", "v"]
        before = copy.num_rows
        client.write("plant.meters", rows(1000, 10))
        assert copy.num_rows == before
        assert (
            remote_table.in_local_cluster("plant", "meters")
            .snapshot(included_columns=["v"])
            .num_rows
            == before + 10
        )
        with pytest.raises(RemoteError, match="it has ts, v, note, site"):
            uri.resolve("pq://plant/scope/meters?columns=nothing")
        builder = (
            remote_table.for_remote_cluster(plant.gateway_url)
            .query_name("plant")
            .table_name("meters")
        )
        with builder.subscribe(included_columns=["site", "v"], filters="v >= 1000") as table:
            assert table.columns == ["site", "v"] and len(table) == 10
            client.write("plant.meters", rows(1010, 10))
            table.wait(lambda t: len(t) == 20)
            assert table.to_arrow().column_names == ["site", "v"]
        with (
            _live("pq://plant/scope/meters") as wide,
            _live("pq://plant/scope/meters?columns=v") as narrow,
            builder.subscribe(filters="v < -100") as none,
        ):
            crossed = [
                table._link.received for table in (none, narrow, wide) if table._link is not None
            ]
            assert len(crossed) == 3 and crossed == sorted(set(crossed)), (
                "what was not asked for does not cross the link"
            )
        with pytest.raises(RemoteError, match="which table"):
            remote_table.for_remote_cluster(plant.gateway_url).query_name("plant").subscribe()


def test_H6_H14_H20_clear_and_retain(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        with (
            _live("pq://plant/scope/meters") as clear,
            _live("pq://plant/scope/meters?onDisconnect=retain") as retain,
        ):
            before = len(retain)
            events: list[str] = []
            clear.on_update(lambda u: events.append(u.kind))
            pid = plant.kill("federation")
            clear.wait(lambda t: t.state == "disconnected")
            retain.wait(lambda t: t.stale)
            assert len(clear) == 0 and len(retain) == before
            client.write("plant.meters", rows(2000, 30))
            plant.wait_ready("federation", not_pid=pid)
            for table in (clear, retain):
                table.wait(lambda t: len(t) == before + 30 and not t.stale)
                assert table.reconnects == 1
            assert events[0] == "clear" and "restored" in events


def test_H7_H8_the_window_and_the_retries_end(plant: RunningMesh) -> None:
    window = _live("pq://plant/scope/meters?retryWindowMillis=300&onDisconnect=retain")
    few = _live("pq://plant/scope/meters?maxRetries=3")
    port = window.target.replicas[0].port
    try:
        plant.kill("federation", 19)  # stopped, not dead: nobody listens to it
        for link in (window._link, few._link):
            assert link is not None
            link._socket.close()
        window.wait(lambda t: t.state == "failed", 60)
        assert window.error is not None and window.error.code == "E_RETRY_WINDOW"
        with pytest.raises(PenstockError, match="E_RETRY_WINDOW"):
            window.to_arrow()
        few.wait(lambda t: t.state == "failed", 120)
        assert few.attempts == 3
    finally:
        plant.kill("federation", 18)
        window.close()
        few.close()
    assert port


def test_H9_H22_blink(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        with pytest.raises(PenstockError, match="E_NOT_BLINK"):
            uri.resolve("pq://plant/scope/meters?blink=require")
        with remote_table.in_local_cluster("plant", "meters").blink(True).subscribe() as table:
            assert len(table) == 0
            cycles: list[int] = []
            table.on_update(
                lambda u: (
                    cycles.append(u.rows.num_rows)
                    if u.kind == "rows" and u.rows is not None
                    else None
                )
            )
            for i in range(5):
                client.write("plant.meters", rows(3000 + 10 * i, 10))
            table.wait(lambda _: sum(cycles) == 50)  # every row in exactly one cycle
            assert len(table) <= 10
            table.wait(lambda t: len(t) == 0)  # a cycle without data
            client.write("plant.meters", rows(4000, 1))
            table.wait(lambda t: t.to_polars()["v"].to_list() == [4000])


def test_H21_a_table_made_again_is_read_anew(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        client.execute("CREATE TABLE plant.again (ts TIMESTAMP, v INT)")
        client.write("plant.again", [{"ts": T0 + i, "v": i} for i in range(5)])
        with _live("pq://plant/scope/again") as table:
            assert len(table) == 5
            client.execute("DROP TABLE plant.again")
            table.wait(lambda t: len(t) == 0)
            client.execute("CREATE TABLE plant.again (ts TIMESTAMP, v INT)")
            client.write("plant.again", [{"ts": T0, "v": 77}])
            table.wait(lambda t: t.to_polars()["v"].to_list() == [77])


def test_updates_are_iterated_over_cuts(plant: RunningMesh) -> None:
    with client_of(plant) as client:
        client.execute("CREATE TABLE plant.feed (ts TIMESTAMP, v INT)")
        with _live("pq://plant/scope/feed") as table:
            got: list[int] = []
            done = threading.Event()

            def watch() -> None:
                for update in table.updates(timeout=60):
                    if update.kind == "rows" and update.rows is not None:
                        got.extend(update.rows.column("v").to_pylist())
                    if len(got) >= 300:
                        break
                done.set()

            thread = threading.Thread(target=watch)
            thread.start()
            for i in range(30):
                client.write(
                    "plant.feed", [{"ts": T0 + 10 * i + k, "v": 10 * i + k} for k in range(10)]
                )
                if i in (8, 20):
                    _restart(plant)
            assert done.wait(60)
            thread.join()
            assert got == list(range(300)), "each once, in order"


def test_H_latency_of_an_update(plant: RunningMesh) -> None:
    """A loose bound; `make bench ONLY=federation` measures it."""
    with (
        client_of(plant) as client,
        _live("pq://plant/scope/feed") as table,
        client.writer("plant.feed") as writer,
    ):
        times: list[float] = []
        arrived = threading.Event()
        table.on_update(lambda _: arrived.set())
        for i in range(30):
            arrived.clear()
            began = time.perf_counter()
            writer.write([{"ts": T0 + 100_000 + i, "v": i}])
            assert arrived.wait(10)
            times.append(time.perf_counter() - began)
        assert sorted(times)[15] < 0.5


def test_H27_dh_uris_and_sessions(plant: RunningMesh) -> None:
    port = plant.federation_url.rpartition(":")[2]
    with _live(f"dh+plain://127.0.0.1:{port}/scope/plant.meters") as table:
        assert len(table) > 0
    with _live(f"dh+plain://127.0.0.1:{port}?uri=dh://elsewhere/scope/plant.meters") as table:
        assert len(table) > 0
    with pytest.raises(RemoteError, match="E_NO_SESSION"):
        uri.resolve("dh://nobody.example/scope/plant.meters")
    with pytest.raises(PenstockError, match="E_AUTH"):
        uri.session(plant.gateway_url, user="root", password="wrong")
