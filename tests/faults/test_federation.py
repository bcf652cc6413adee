"""Two deployments and a bad link: cuts at random moments, slow links, changed schemas, wrong
passwords, expired certificates.

`make test-faults ONLY=federation`. Every check is exact: each row is in the other side's log once,
in order per child table.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator

import pytest
import trustme

from penstock import uri
from penstock.client.connection import Connection
from penstock.errors import PenstockError
from penstock.link.client import Link
from penstock.link.mirror import RemoteTable
from penstock.mesh.proxy import Proxy
from penstock.mesh.running import RunningMesh
from tests.certificates import issued
from tests.stack.conftest import eventually
from tests.stack.federation_kit import (
    METERS,
    T0,
    address_of,
    clause,
    client_of,
    deployment,
    rows,
    settings_of,
)

_SEED = 20261121


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("cloud"), "CREATE DATABASE hq PARTITIONS 3") as mesh:
        yield mesh


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """A deployment whose links need TLS; beside its directory are `ca.pem`, its certificate, and
    one in `expired`.
    """
    directory = tmp_path_factory.mktemp("secure")
    authority = trustme.CA()
    made = issued(directory, authority=authority)
    issued(directory / "expired", authority=authority, expired=True)
    files = {
        "PENSTOCK_FEDERATION_TLS_CERT": str(made.cert),
        "PENSTOCK_FEDERATION_TLS_KEY": str(made.key),
    }
    with deployment(
        directory / "mesh", "CREATE DATABASE hq PARTITIONS 1", environment=files
    ) as mesh:
        yield mesh


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("edge"), "CREATE DATABASE site PARTITIONS 2") as mesh:
        yield mesh


@pytest.fixture
def wire(cloud: RunningMesh) -> Iterator[Proxy]:
    """The link to the cloud, which can be cut and slowed."""
    with Proxy(int(cloud.federation_url.rpartition(":")[2])) as proxy:
        yield proxy


def _through(proxy: Proxy, mesh: RunningMesh, table: str, **more: str) -> str:
    return clause({**settings_of(mesh, table, **more), "hosts": f"127.0.0.1:{proxy.port}"})


def _each_once(mesh: RunningMesh, table: str, total: int) -> None:
    with Link(address_of(mesh)) as link:
        channel = link.subscribe(f"SELECT v FROM {table}", start="earliest")
        channel.expect("subscribed", 30)
        per_table: dict[str, list[int]] = {}
        count = 0
        while count < total or (message := channel.get(1.0)) is not None:
            message = channel.get(30) if count < total else message
            assert message is not None, f"{count} of {total} came"
            if message.rows is not None:
                for name, value in zip(
                    message.rows.column("tbname").to_pylist(),
                    message.rows.column("v").to_pylist(),
                    strict=True,
                ):
                    per_table.setdefault(name, []).append(value)
                    count += 1
    assert sorted(v for values in per_table.values() for v in values) == list(range(total))
    assert all(values == sorted(values) for values in per_table.values())


def _status(client: Connection, name: str) -> dict[str, object]:
    result = client.query(f"SHOW VIEWS LIKE '{name}'")
    return dict(zip(result.columns, result.rows[0], strict=True))


def test_cuts_at_random_moments(edge: RunningMesh, cloud: RunningMesh, wire: Proxy) -> None:
    chance = random.Random(_SEED)
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE STABLE hq.cut (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)")
        near.execute(
            "CREATE STABLE site.cut (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute(f"CREATE EXTERNAL STREAM site.hq_cut {_through(wire, cloud, 'hq.cut')}")
        near.execute(
            "CREATE MATERIALIZED VIEW site.send INTO site.hq_cut AS SELECT * FROM site.cut"
        )
        uri.session(f"ws://127.0.0.1:{wire.port}", user=cloud.user, password=cloud.password)
        watched = uri.resolve(
            "pq://hq/scope/cut?onDisconnect=retain",
            where=uri.session_for(f"ws://127.0.0.1:{wire.port}"),
        )
        assert isinstance(watched, RemoteTable)
        total = 0
        for _ in range(15):
            for _ in range(chance.randrange(1, 6)):
                near.write("site.cut", rows(total, 40, tables=7))
                total += 40
            time.sleep(chance.random() * 0.15)
            wire.cut()
            near.write("site.cut", rows(total, 40, tables=7))
            total += 40
            wire.heal()
        eventually(
            lambda: (
                far.query("SELECT count(*), sum(v) FROM hq.cut").rows
                == [(total, sum(range(total)))]
            )
        )
        _each_once(cloud, "hq.cut", total)
        watched.wait(lambda t: len(t) == total, 60)
        watched.close()
        near.execute("DROP MATERIALIZED VIEW site.send")


def test_a_slow_link_loses_nothing_and_holds_back_nobody(
    edge: RunningMesh, cloud: RunningMesh, wire: Proxy
) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE STABLE hq.slow (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)")
        near.execute(
            "CREATE STABLE site.slow (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        near.execute(f"CREATE EXTERNAL STREAM site.hq_slow {_through(wire, cloud, 'hq.slow')}")
        near.execute(
            "CREATE MATERIALIZED VIEW site.crawl INTO site.hq_slow AS SELECT * FROM site.slow"
        )
        eventually(lambda: _status(near, "crawl")["status"] == "running")
        wire.rate = 100_000
        wire.delay = 0.02
        began = time.monotonic()
        near.write("site.slow", rows(0, 20_000, tables=7))
        assert time.monotonic() - began < 10, "writers at the edge do not wait for the link"
        assert near.query("SELECT count(*) FROM site.slow").rows == [(20_000,)]
        eventually(lambda: far.query("SELECT count(*) FROM hq.slow").rows == [(20_000,)], 60)
        wire.rate = 0
        wire.delay = 0.0
        _each_once(cloud, "hq.slow", 20_000)
        near.execute("DROP MATERIALIZED VIEW site.crawl")


def test_a_schema_that_changed_over_there(
    edge: RunningMesh, cloud: RunningMesh, wire: Proxy
) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE TABLE hq.shape (ts TIMESTAMP, v INT, w INT)")
        near.execute("CREATE TABLE site.shape (ts TIMESTAMP, v INT, w INT)")
        near.execute(f"CREATE EXTERNAL STREAM site.hq_shape {_through(wire, cloud, 'hq.shape')}")
        near.execute(
            "CREATE MATERIALIZED VIEW site.pull INTO site.shape AS SELECT ts, v, w FROM site.hq_shape"
        )
        eventually(lambda: _status(near, "pull")["status"] == "running")
        far.write("hq.shape", [{"ts": T0, "v": 1, "w": 1}])
        far.execute("ALTER TABLE hq.shape ADD COLUMN x INT")
        far.write("hq.shape", [{"ts": T0 + 1, "v": 2, "w": 2, "x": 3}])
        eventually(
            lambda: near.query("SELECT v, w FROM site.shape ORDER BY ts").rows == [(1, 1), (2, 2)]
        )
        assert near.query("SELECT * FROM site.hq_shape ORDER BY ts").columns == ["ts", "v", "w"], (
            "as it was when it was looked at"
        )
        far.execute("ALTER TABLE hq.shape DROP COLUMN w")
        far.write("hq.shape", [{"ts": T0 + 2, "v": 3}])
        eventually(
            lambda: (
                "w" in str(_status(near, "pull")["last_error"])
                and _status(near, "pull")["status"] == "error"
            )
        )
        far.execute("ALTER TABLE hq.shape ADD COLUMN w INT")
        eventually(lambda: near.query("SELECT max(v) FROM site.shape").rows == [(3,)])
        near.execute("DROP MATERIALIZED VIEW site.pull")


def test_a_wrong_password_and_a_changed_one(
    edge: RunningMesh, cloud: RunningMesh, wire: Proxy
) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute("CREATE TABLE hq.pw (ts TIMESTAMP, v INT)")
        with pytest.raises(PenstockError) as refused:
            near.execute(
                f"CREATE EXTERNAL STREAM site.pw {clause({**settings_of(cloud, 'hq.pw'), 'password': 'not-this-1234'})}"
            )
        assert "refuses user" in str(refused.value) and "not-this-1234" not in str(refused.value)
        near.execute(f"CREATE EXTERNAL STREAM site.pw {_through(wire, cloud, 'hq.pw')}")
        near.execute("CREATE TABLE site.pw_src (ts TIMESTAMP, v INT)")
        near.execute(
            "CREATE MATERIALIZED VIEW site.pw_view INTO site.pw AS SELECT * FROM site.pw_src"
        )
        eventually(lambda: _status(near, "pw_view")["status"] == "running")
        secret = max(
            (edge.layout.secrets).glob("external-*.password"), key=lambda p: p.stat().st_mtime_ns
        )
        assert secret.stat().st_mode & 0o777 == 0o600
        right = secret.read_text()
        secret.write_text("changed-over-there\n")
        pid = edge.kill("federation")
        edge.wait_ready("federation", not_pid=pid)
        near.write("site.pw_src", [{"ts": T0, "v": 1}])
        eventually(lambda: "refuses user" in str(_status(near, "pw_view")["last_error"]))
        secret.write_text(right)
        pid = edge.kill("federation")
        edge.wait_ready("federation", not_pid=pid)
        eventually(lambda: far.query("SELECT v FROM hq.pw").rows == [(1,)])
        near.execute("DROP MATERIALIZED VIEW site.pw_view")


def test_tls_its_authority_and_an_expired_certificate(
    edge: RunningMesh, secure: RunningMesh
) -> None:
    directory = secure.layout.root.parent
    tls_port = secure.state()["ports"]["federation-tls"]
    there = {**settings_of(secure, "hq.tls"), "hosts": f"localhost:{tls_port}", "secure": "true"}
    with client_of(edge) as near, client_of(secure) as far:
        far.execute("CREATE TABLE hq.tls (ts TIMESTAMP, v INT)")
        with pytest.raises(PenstockError, match="E_TLS"):
            near.execute(f"CREATE EXTERNAL STREAM site.tls {clause(there)}")
        trusted = {**there, "ca_file": str(directory / "ca.pem")}
        near.execute(f"CREATE EXTERNAL STREAM site.tls {clause(trusted)}")
        near.execute(f"INSERT INTO site.tls VALUES ({T0}, 1)")
        assert near.query("SELECT v FROM site.tls").rows == [(1,)]
        good = {name: (directory / name).read_text() for name in ("cert.pem", "key.pem")}
        for name in good:
            (directory / name).write_text((directory / "expired" / name).read_text())
        pid = secure.kill("federation")
        secure.wait_ready("federation", not_pid=pid)
        with pytest.raises(PenstockError, match="expired"):
            near.execute(f"CREATE EXTERNAL STREAM site.tls2 {clause(trusted)}")
        for name, text in good.items():
            (directory / name).write_text(text)
        pid = secure.kill("federation")
        secure.wait_ready("federation", not_pid=pid)
        assert near.query("SELECT v FROM site.tls").rows == [(1,)]


def test_the_remote_is_down_at_the_start(
    edge: RunningMesh, cloud: RunningMesh, wire: Proxy
) -> None:
    with client_of(edge) as near, client_of(cloud) as far:
        far.execute(METERS.replace("meters", "late"), database="hq")
        near.execute(METERS.replace("meters", "late"), database="site")
        near.execute(f"CREATE EXTERNAL STREAM site.hq_late {_through(wire, cloud, 'hq.late')}")
        wire.cut()
        with pytest.raises(PenstockError, match="E_LINK_LOST"):
            near.execute(f"CREATE EXTERNAL STREAM site.other {_through(wire, cloud, 'hq.late')}")
        near.execute(
            "CREATE MATERIALIZED VIEW site.wait INTO site.hq_late AS SELECT * FROM site.late"
        )
        near.write("site.late", rows(0, 500))
        eventually(lambda: _status(near, "wait")["status"] == "retrying")
        for service in ("federation", "store", "gateway"):
            pid = edge.kill(service)
            edge.wait_ready(service, not_pid=pid)
        near.write("site.late", rows(500, 500))
        wire.heal()
        eventually(lambda: far.query("SELECT count(*) FROM hq.late").rows == [(1000,)])
        _each_once(cloud, "hq.late", 1000)
        near.execute("DROP MATERIALIZED VIEW site.wait")


def test_store_and_forward_while_both_sides_are_restarted(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The link is cut; both deployments go down as a whole and come back, rows are written before,
    between and after; then it heals.
    """
    there = tmp_path_factory.mktemp("far")
    here = tmp_path_factory.mktemp("near")
    made = METERS.replace("meters", "m")
    with contextlib.ExitStack() as far_life, contextlib.ExitStack() as near_life:
        far = far_life.enter_context(deployment(there, "CREATE DATABASE hq PARTITIONS 3"))
        near = near_life.enter_context(deployment(here, "CREATE DATABASE site PARTITIONS 2"))
        with Proxy(int(far.federation_url.rpartition(":")[2])) as wire:
            with client_of(far) as client:
                client.execute(made, database="hq")
            with client_of(near) as client:
                client.execute(made, database="site")
                client.execute(f"CREATE EXTERNAL STREAM site.hq {_through(wire, far, 'hq.m')}")
                client.execute(
                    "CREATE MATERIALIZED VIEW site.send INTO site.hq AS SELECT * FROM site.m"
                )
                client.write("site.m", rows(0, 500, tables=7))
                with client_of(far) as other:
                    eventually(lambda: other.query("SELECT count(*) FROM hq.m").rows == [(500,)])
                wire.cut()
                client.write("site.m", rows(500, 500, tables=7))
            near_life.close()
            far_life.close()
            near = near_life.enter_context(deployment(here))
            with client_of(near) as client:
                client.write("site.m", rows(1000, 500, tables=7))
                eventually(lambda: _status(client, "send")["status"] == "retrying")
            near_life.close()
            far = far_life.enter_context(deployment(there))
            near = near_life.enter_context(deployment(here))
            wire.point_at(int(far.federation_url.rpartition(":")[2]))
            with client_of(near) as client, client_of(far) as other:
                client.write("site.m", rows(1500, 500, tables=7))
                assert other.query("SELECT count(*) FROM hq.m").rows == [(500,)]
                wire.heal()
                eventually(lambda: other.query("SELECT count(*) FROM hq.m").rows == [(2000,)])
            _each_once(far, "hq.m", 2000)


def test_kills_and_cuts_under_a_remote_table(cloud: RunningMesh, wire: Proxy) -> None:
    """H14: whatever dies and comes back, the table ends up as the one over there. (A service that is
    killed often comes back more slowly.)
    """
    chance = random.Random(_SEED)
    with client_of(cloud) as client:
        client.execute(
            "CREATE STABLE hq.kills (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (site INT)"
        )
        here = uri.session(f"ws://127.0.0.1:{wire.port}", user=cloud.user, password=cloud.password)
        table = uri.resolve("pq://hq/scope/kills", where=here)
        assert isinstance(table, RemoteTable)
        done = threading.Event()
        total = [0]

        def write() -> None:
            while not done.is_set():
                client.write("hq.kills", rows(total[0], 20, tables=7))
                total[0] += 20
                time.sleep(0.02)

        writer = threading.Thread(target=write)
        writer.start()
        for i in range(20):
            time.sleep(chance.random() * 0.3)
            if i % 10 == 5:
                pid = cloud.kill("federation")
                cloud.wait_ready("federation", not_pid=pid)
            else:
                wire.cut()
                wire.heal()
        done.set()
        writer.join()
        table.wait(lambda t: len(t) == total[0], 60)
        assert sorted(table.to_polars()["v"].to_list()) == list(range(total[0]))
        table.close()
