"""Materialized views between two deployments (features T11 to T15, T30): filters, pauses, kills of
every side, counts exact.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

from penstock.client.connection import Connection
from penstock.errors import PenstockError
from penstock.link.channel import Channel
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import (
    METERS,
    SELF,
    T0,
    clause,
    client_of,
    deployment,
    link_to,
    rows,
    settings_of,
)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("cloud"), "CREATE DATABASE hq PARTITIONS 3") as mesh:
        yield mesh


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    database = "CREATE DATABASE site PARTITIONS 2"
    with deployment(tmp_path_factory.mktemp("edge"), database, environment=SELF) as mesh:
        yield mesh


def _view(client: Connection, name: str) -> dict[str, object]:
    result = client.query(f"SHOW VIEWS LIKE '{name}'")
    return dict(zip(result.columns, result.rows[0], strict=True))


def _each_once(mesh: RunningMesh, table: str, column: str, wanted: list[int]) -> None:
    """In the log itself, not only in the table: each row came once, and in order per child
    table.
    """
    with link_to(mesh) as link:
        channel = link.subscribe(f"SELECT {column} FROM {table}", start="earliest", positions=True)
        channel.expect("subscribed", 30)
        got: list[int] = []
        per_table: dict[str, list[int]] = {}
        while len(got) < len(wanted):
            message = channel.get(30)
            assert message is not None, f"{len(got)} of {len(wanted)}"
            if message.rows is not None:
                for name, value in zip(
                    message.rows.column("tbname").to_pylist(),
                    message.rows.column(column).to_pylist(),
                    strict=True,
                ):
                    per_table.setdefault(name, []).append(value)
                    got.append(value)
        extra = channel.get(1.0)
        assert extra is None or extra.rows is None, "no row more"
    assert sorted(got) == wanted
    assert all(values == sorted(values) for values in per_table.values())


def test_T13_T14_edge_to_cloud_with_a_filter_and_a_pause(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE TABLE hq.errors (ts TIMESTAMP, http_code INT, path VARCHAR(40))")
        near.execute(
            "CREATE STREAM site.web (ts TIMESTAMP, http_code INT, path VARCHAR(40), bytes BIGINT)"
        )
        near.execute(
            f"CREATE EXTERNAL STREAM site.in_cloud {clause(settings_of(cloud, 'hq.errors'))}"
        )
        near.write("site.web", [{"ts": T0 - 1, "http_code": 500, "path": "/before", "bytes": 1}])
        near.execute(
            "CREATE MATERIALIZED VIEW site.up INTO site.in_cloud AS SELECT ts, http_code, path FROM site.web WHERE http_code >= 400"
        )
        web = [
            {"ts": T0 + i, "http_code": 200 + 100 * (i % 4), "path": f"/{i}", "bytes": i}
            for i in range(1000)
        ]
        near.write("site.web", web[:500])
        eventually(lambda: far.query("SELECT count(*) FROM hq.errors").rows == [(250,)])
        near.execute("SYSTEM PAUSE MATERIALIZED VIEW site.up")
        eventually(lambda: _view(near, "up")["status"] == "paused")
        near.write("site.web", web[500:])
        pid = edge.kill("federation")
        edge.wait_ready("federation", not_pid=pid)
        assert _view(near, "up")["status"] == "paused", "a pause outlives restarts"
        assert far.query("SELECT count(*) FROM hq.errors").rows == [(250,)]
        near.execute("SYSTEM UNPAUSE MATERIALIZED VIEW site.up")
        eventually(
            lambda: far.query("SELECT count(*), min(http_code) FROM hq.errors").rows == [(500, 400)]
        )
        eventually(
            lambda: (
                _view(near, "up")["lag_records"] == 0 and _view(near, "up")["status"] == "running"
            )
        )
        # a figure, not a promise: what was sent just before the kill may not be counted
        eventually(lambda: 250 <= _view(near, "up")["rows_sent"] <= 500)
        shown = near.query("SHOW CREATE MATERIALIZED VIEW site.up").rows[0][1]
        assert "INTO `site`.`in_cloud`" in shown and "http_code >= 400" in shown
        assert [r[0] for r in near.query("DESCRIBE site.up").rows] == ["ts", "http_code", "path"]
        near.execute("DROP MATERIALIZED VIEW site.up")
        assert far.query("SELECT count(*) FROM hq.errors").rows == [(500,)], "what was sent stays"


def test_T11_T12_T15_migration_from_the_first_row_on(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute(METERS, database="hq")
        far.write("hq.meters", rows(0, 700))
        near.execute(METERS, database="site")
        near.execute(
            f"CREATE EXTERNAL STREAM site.proton {clause({**settings_of(cloud, 'hq.meters'), 'type': 'timeplus'})}"
        )
        near.execute(
            "CREATE MATERIALIZED VIEW site.migrate INTO site.meters AS SELECT * FROM site.proton WHERE _tp_time > earliest_ts()"
        )
        with pytest.raises(PenstockError, match="exists"):
            near.execute(
                "CREATE MATERIALIZED VIEW site.migrate INTO site.meters AS SELECT * FROM site.proton"
            )
        far.write("hq.meters", rows(700, 300))
        eventually(
            lambda: (
                near.query("SELECT count(*), sum(v) FROM site.meters").rows
                == [(1000, sum(range(1000)))]
            )
        )
        _each_once(edge, "site.meters", "v", list(range(1000)))
        with pytest.raises(PenstockError, match="E_IN_USE"):
            near.execute("DROP EXTERNAL STREAM site.proton")
        near.execute("DROP VIEW site.migrate")
        near.execute("DROP EXTERNAL STREAM site.proton")
        assert near.query("SELECT count(*) FROM site.meters").rows == [(1000,)]


def test_a_view_without_into_owns_its_table(edge: RunningMesh) -> None:
    with client_of(edge) as near:
        near.execute("CREATE TABLE site.raw (ts TIMESTAMP, v INT, w INT)")
        near.execute(
            "CREATE MATERIALIZED VIEW site.big AS SELECT v, v * 2 AS twice FROM site.raw WHERE v > 10"
        )
        near.write("site.raw", [{"ts": T0 + i, "v": i, "w": 0} for i in range(20)])
        eventually(
            lambda: near.query("SELECT count(*), max(twice) FROM site.big").rows == [(9, 38)]
        )
        with pytest.raises(PenstockError, match="E_IN_USE"):
            near.execute("DROP TABLE site.raw")
        with pytest.raises(PenstockError, match="E_UNSUPPORTED_QUERY"):
            near.execute("CREATE MATERIALIZED VIEW site.no AS SELECT count(*) FROM site.raw")
        with pytest.raises(PenstockError, match="E_TARGET_COLUMNS"):
            near.execute("CREATE MATERIALIZED VIEW site.no INTO site.big AS SELECT w FROM site.raw")
        near.execute("DROP MATERIALIZED VIEW site.big")
        with pytest.raises(PenstockError):
            near.query("SELECT * FROM site.big")


def test_rows_that_do_not_fit_stop_a_view_or_are_dead_letters(edge: RunningMesh) -> None:
    """Over a link, and with the service killed: every row that fits is there once, and of the others
    each is known.
    """
    with client_of(edge) as near:
        near.execute("CREATE TABLE site.sent (ts TIMESTAMP, v INT, note VARCHAR(20))")
        near.execute("CREATE TABLE site.narrow (ts TIMESTAMP, v INT, note VARCHAR(4))")
        near.execute("CREATE TABLE site.mended (ts TIMESTAMP, v INT, note VARCHAR(4))")
        near.execute(
            f"CREATE EXTERNAL STREAM site.narrowed {clause(settings_of(edge, 'site.narrow'))}"
        )
        near.execute(
            "CREATE MATERIALIZED VIEW site.dropping INTO site.narrowed ON_ERROR DROP AS SELECT * FROM site.sent"
        )
        near.execute(
            "CREATE MATERIALIZED VIEW site.stopping INTO site.mended ON_ERROR STOP AS SELECT * FROM site.sent"
        )
        assert (
            "INTO `site`.`mended` ON_ERROR STOP AS"
            in near.query("SHOW CREATE MATERIALIZED VIEW site.stopping").rows[0][1]
        )
        bad = {3, 200, 201, 499, 700}
        sent = [
            {"ts": T0 + i, "v": i, "note": "much too long" if i in bad else f"{i}"}
            for i in range(1000)
        ]
        letters = "SELECT code, value FROM information_schema.ins_dead_letters WHERE stream_name = 'dropping'"

        def dead() -> list[int]:
            return sorted(
                json.loads(value)["v"]
                for code, value in near.query(letters).rows
                if code == "E_ROW"
            )

        near.write("site.sent", sent[:500])
        eventually(
            lambda: (
                near.query("SELECT count(*), sum(v) FROM site.narrow").rows
                == [(496, sum(range(500)) - 903)]
            )
        )
        eventually(lambda: dead() == [3, 200, 201, 499])
        eventually(lambda: _view(near, "stopping")["status"] == "stopped")
        said = str(_view(near, "stopping")["last_error"])
        assert "E_ROW" in said and "row 3 of in.site" in said and '"v": 3' in said
        assert near.query("SELECT v FROM site.mended").rows == [(0,), (1,), (2,)]
        pid = edge.kill("federation")
        edge.wait_ready("federation", not_pid=pid)
        near.write("site.sent", sent[500:])
        eventually(lambda: near.query("SELECT count(*) FROM site.narrow").rows == [(995,)])
        eventually(lambda: dead() == sorted(bad))
        eventually(
            lambda: (
                (_view(near, "dropping")["status"], _view(near, "dropping")["rows_dropped"])
                == ("running", 5)
            )
        )
        eventually(lambda: _view(near, "stopping")["status"] == "stopped")
        near.execute("SYSTEM RESUME MATERIALIZED VIEW site.stopping")
        eventually(lambda: _view(near, "stopping")["status"] == "stopped")
        assert near.query("SELECT count(*) FROM site.mended").rows == [(3,)], "nothing was mended"
        near.execute("ALTER TABLE site.mended MODIFY COLUMN note VARCHAR(20)")
        near.execute("SYSTEM RESUME MATERIALIZED VIEW site.stopping")
        eventually(
            lambda: (
                near.query("SELECT count(*), sum(v) FROM site.mended").rows
                == [(1000, sum(range(1000)))]
            )
        )
        eventually(
            lambda: (
                (_view(near, "stopping")["status"], _view(near, "stopping")["last_error"])
                == ("running", None)
            )
        )
        _each_once(edge, "site.mended", "v", list(range(1000)))
        _each_once(edge, "site.narrow", "v", [i for i in range(1000) if i not in bad])


def test_store_and_forward_over_kills_of_both_sides(edge: RunningMesh, cloud: RunningMesh) -> None:
    """The remote away, both sides killed in between, rows written all the while: each there once,
    in order per table.
    """
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute(
            "CREATE STABLE hq.all_meters (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute(
            "CREATE STABLE site.src (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute(
            f"CREATE EXTERNAL STREAM site.hq {clause(settings_of(cloud, 'hq.all_meters'))}"
        )
        near.execute("CREATE MATERIALIZED VIEW site.forward INTO site.hq AS SELECT * FROM site.src")
        done = threading.Event()
        written = [0]

        def write() -> None:
            while not done.is_set():
                near.write("site.src", rows(written[0], 50, tables=7))
                written[0] += 50
                time.sleep(0.01)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for round_ in range(3):
                before = written[0]
                eventually(lambda before=before: written[0] >= before + 300)  # type: ignore[misc]
                killed = [(cloud, cloud.kill("federation"))]
                if round_ != 1:
                    killed.append((edge, edge.kill("federation")))
                for mesh, pid in killed:
                    mesh.wait_ready("federation", not_pid=pid)
        finally:
            done.set()
            writer.join()
        total = written[0]
        eventually(
            lambda: (
                far.query("SELECT count(*), sum(v) FROM hq.all_meters").rows
                == [(total, sum(range(total)))]
            )
        )
        _each_once(cloud, "hq.all_meters", "v", list(range(total)))


@pytest.mark.long
def test_partitions_change_on_both_sides_while_rows_flow(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    """Source and target get more partitions, the source twice: the view and whoever reads over a
    link, also behind a token of the first topic, have each row once and in order.
    """
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE DATABASE widening PARTITIONS 3")
        far.execute(
            "CREATE STABLE widening.target (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute("CREATE DATABASE widening PARTITIONS 1")
        near.execute(
            "CREATE STABLE widening.src (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute(
            f"CREATE EXTERNAL STREAM widening.hq {clause(settings_of(cloud, 'widening.target'))}"
        )
        near.execute(
            "CREATE MATERIALIZED VIEW widening.forward INTO widening.hq AS SELECT * FROM widening.src"
        )
        done = threading.Event()
        written = [0]

        def write() -> None:
            while not done.is_set():
                near.write("widening.src", rows(written[0], 50, tables=7))
                written[0] += 50
                time.sleep(0.01)

        writer = threading.Thread(target=write)
        with link_to(edge) as link:
            listening = link.subscribe("SELECT v FROM widening.src", start="earliest")
            token = listening.expect("subscribed", 30).header["token"]
            writer.start()
            try:
                had: list[int] = []
                while not had:
                    message = listening.get(30)
                    assert message is not None
                    had += [] if message.rows is None else message.rows.column("v").to_pylist()
                    token = message.header.get("token", token)
                for client, partitions in ((near, 2), (far, 6), (near, 6)):
                    client.execute(f"ALTER DATABASE widening PARTITIONS {partitions}")
                    before = written[0]
                    eventually(lambda before=before: written[0] >= before + 300)  # type: ignore[misc]
            finally:
                done.set()
                writer.join()
            total = written[0]
            assert sorted(had + _values(listening, total - len(had))) == list(range(total))
            resumed = link.subscribe("SELECT v FROM widening.src", start=token)
            resumed.expect("subscribed", 30)
            assert sorted(had + _values(resumed, total - len(had))) == list(range(total))
        eventually(
            lambda: (
                far.query("SELECT count(*), sum(v) FROM widening.target").rows
                == [(total, sum(range(total)))]
            )
        )
        _each_once(cloud, "widening.target", "v", list(range(total)))
        _each_once(edge, "widening.src", "v", list(range(total)))


def _values(channel: Channel, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        message = channel.get(30)
        assert message is not None, f"{len(found)} of {count} rows came"
        found += [] if message.rows is None else message.rows.column("v").to_pylist()
    return found


def test_errors_are_shown_and_heal(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE TABLE hq.t (ts TIMESTAMP, v INT)")
        near.execute("CREATE TABLE site.t (ts TIMESTAMP, v INT)")
        near.execute(f"CREATE EXTERNAL STREAM site.there {clause(settings_of(cloud, 'hq.t'))}")
        near.execute("CREATE MATERIALIZED VIEW site.heal INTO site.there AS SELECT * FROM site.t")
        eventually(lambda: _view(near, "heal")["status"] == "running")
        far.execute("DROP TABLE hq.t")
        near.write("site.t", [{"ts": T0, "v": 1}])
        eventually(lambda: "E_NO_TABLE" in str(_view(near, "heal")["last_error"]))
        assert _view(near, "heal")["status"] == "error"
        far.execute("CREATE TABLE hq.t (ts TIMESTAMP, v INT)")
        eventually(lambda: far.query("SELECT v FROM hq.t").rows == [(1,)])
        eventually(
            lambda: (
                _view(near, "heal")["status"] == "running" and not _view(near, "heal")["last_error"]
            )
        )


def test_deletes_pass_in_their_place(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        near.execute("CREATE DATABASE gone PARTITIONS 3")
        far.execute("CREATE STABLE hq.gone (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)")
        near.execute(
            "CREATE STABLE gone.src (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute(f"CREATE EXTERNAL STREAM gone.there {clause(settings_of(cloud, 'hq.gone'))}")
        near.execute("CREATE MATERIALIZED VIEW gone.send INTO gone.there AS SELECT * FROM gone.src")
        for i in range(5):
            near.write("gone.src", rows(0, 100, tables=7))
            near.execute(f"DELETE FROM gone.src WHERE ts < {T0 + 50}")
            near.execute(f"DELETE FROM gone.m1 WHERE ts >= {T0 + 90}")
            if i in (1, 3):
                pid = cloud.kill("federation")
                cloud.wait_ready("federation", not_pid=pid)
        near.write("gone.src", rows(0, 10, tables=7))
        wanted = near.query("SELECT count(*), sum(v) FROM gone.src").rows
        assert wanted[0][0] < 70
        eventually(lambda: far.query("SELECT count(*), sum(v) FROM hq.gone").rows == wanted)
