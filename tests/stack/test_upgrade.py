"""The former version's data directory under the new version, while programs write and listen: no row
is lost or counted twice, streams go on where they were, users and rights are what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.errors import AuthError, PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from tests.integration.load import PER_WINDOW, TABLES, Load
from tests.stack.conftest import PATIENT
from tests.stack.former import FormerMesh, former_mesh, unpack

pytestmark = pytest.mark.long

#: windows that are open while the version changes, each of another kind
STREAMS = {
    "day": "AT_ONCE INTO up.of_day TAGS (name VARCHAR(16)) AS SELECT _wstart, count(*) AS n,"
    " sum(v) AS v FROM up.m PARTITION BY tbname AS name INTERVAL(1d)",
    "quiet": "AT_ONCE INTO up.of_session TAGS (name VARCHAR(16)) AS SELECT _wstart, count(*) AS n,"
    " sum(v) AS v FROM up.m PARTITION BY tbname AS name SESSION(ts, 1s)",
    "sevens": "WINDOW_CLOSE WATERMARK 1s INTO up.of_sevens TAGS (name VARCHAR(16)) AS SELECT _wstart,"
    " count(*) AS n, sum(v) AS v FROM up.m PARTITION BY tbname AS name COUNT_WINDOW(7)",
    "again": "AT_ONCE INTO up.of_windows TAGS (name VARCHAR(16)) AS SELECT _wstart, sum(n) AS n,"
    " sum(v) AS v FROM up.w PARTITION BY name INTERVAL(1d)",
}
#: what is at rest while the version changes, and what it says
KEPT = """
CREATE DATABASE kept;
CREATE STABLE kept.kinds (ts TIMESTAMP, yes BOOL, i TINYINT, u BIGINT UNSIGNED, f FLOAT, d DOUBLE,
    m DECIMAL(20, 4), t VARCHAR(20), w NCHAR(20), b VARBINARY(8)) TAGS (at JSON);
CREATE TABLE kept.one USING kept.kinds TAGS ('{"rack": 7}');
INSERT INTO kept.one VALUES
    ('2026-03-01 09:00:00', true, -128, 18446744073709551615, 1.5, -2.25, 12345678.0001, 'a''b', 'öß', 'bin')
    ('2026-03-01 09:00:01', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    ('2026-03-01 09:00:02', false, 1, 1, 1, 1, 1, '', '', '');
INSERT INTO kept.one (ts, i) VALUES ('2026-03-01 09:00:02', 2);
DELETE FROM kept.one WHERE ts = '2026-03-01 09:00:01';
CREATE FUNCTION twice(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'def twice(x): return pc.multiply(x, 2.0)'
"""
QUESTIONS = (
    "SELECT * FROM kept.kinds ORDER BY ts",
    "SELECT tbname, at->'rack' AS rack, twice(d) AS d FROM kept.kinds ORDER BY ts",
    "DESCRIBE kept.kinds",
    "SHOW GRANTS",
)
ENVIRONMENT = {**PATIENT, "PENSTOCK_GATEWAY_ALLOW_FUNCTIONS": "1"}
PASSWORD = "Blue-Lamp-On-The-Wall-7"  # noqa: S105


def root(mesh: RunningMesh) -> penstock.Connection:
    return login(mesh.gateway_url, user=mesh.user, password=mesh.password)


def login(url: str, **who: str) -> penstock.Connection:
    return penstock.connect(url, options=penstock.ConnectionOptions(timeout=180), **who)


def make_reader(client: penstock.Connection, url: str) -> str:
    """Make a user that may read one database of two; return a token of theirs."""
    client.execute("CREATE DATABASE closed; CREATE TABLE closed.t (ts TIMESTAMP, v INT)")
    client.execute(f"CREATE USER reader PASS '{PASSWORD}'; GRANT READ ON up.* TO reader")
    with login(url, user="reader", password=PASSWORD) as reader:
        return reader.token()


def check_reader(url: str, token: str) -> None:
    """The reader may what they might, by password and by token, and nothing else."""
    for who in ({"user": "reader", "password": PASSWORD}, {"token": token}):
        with login(url, **who) as reader:
            assert reader.query("SELECT count(*) AS n FROM up.m").rows[0][0] > 0
            with pytest.raises(PenstockError, match="READ") as refused:
                reader.query("SELECT * FROM closed.t")
            assert refused.value.code == "E_FORBIDDEN"
            with pytest.raises(PenstockError, match="WRITE"):
                reader.execute("INSERT INTO up.m (tbname, ts, v, place) VALUES ('t0', 1, 1, 1)")
    with pytest.raises(AuthError):
        login(url, user="reader", password="wrong")


def windows(client: penstock.Connection, table: str) -> dict[str, list[tuple[int, int]]]:
    """Return count and sum of each window, by table and in the order of time."""
    found: dict[str, list[tuple[int, int]]] = {f"t{i}": [] for i in range(TABLES)}
    for name, n, v in client.query(f"SELECT name, n, v FROM up.{table} ORDER BY _wstart").rows:
        found[name].append((n, v))
    return found


def check_open_windows(client: penstock.Connection, batches: int) -> None:
    """What was counted before and after the change of version is in one window, once."""
    values = {f"t{i}": [batch + i for batch in range(batches)] for i in range(TABLES)}
    whole = {name: [(len(own), sum(own))] for name, own in values.items()}
    for table in ("of_day", "of_session", "of_windows"):
        assert windows(client, table) == whole, table
    for name, found in windows(client, "of_sevens").items():
        sevens = [values[name][i : i + 7] for i in range(0, len(found) * 7, 7)]
        assert found == [(7, sum(own)) for own in sevens], name
        # the last second is open yet
        assert len(found) >= (batches - PER_WINDOW) // 7 - 1


def check_streams(client: penstock.Connection) -> None:
    rows = client.query("SHOW STREAMS", database="up").rows
    assert {row[0]: row[4] for row in rows} == dict.fromkeys(["s", *STREAMS], "ready")


@pytest.mark.timeout(2700)
@pytest.mark.parametrize("end", [FormerMesh.stop, FormerMesh.kill], ids=["stopped", "killed"])
def test_the_former_versions_data_directory_opens_under_load(
    tmp_path: Path, end: Callable[[FormerMesh], None]
) -> None:
    data = tmp_path / "data"
    sources = unpack(tmp_path / "former")
    with former_mesh(sources, data, ENVIRONMENT) as former, root(former.mesh) as client:
        load = Load(client, "up")
        for name, text in STREAMS.items():
            client.execute(f"CREATE STREAM up.{name} TRIGGER {text}")
        token = make_reader(client, former.mesh.gateway_url)
        client.execute(KEPT)
        client.drain("kept")
        with load:
            load.recovery()
            check_reader(former.mesh.gateway_url, token)
            kept = {question: client.query(question).rows for question in QUESTIONS}
            ports = former.ports
            before = load.acked
            end(former)
            with running_mesh(data, environment=ENVIRONMENT, ports=ports) as mesh:
                load.recovery()
                assert load.acked > before
                assert {question: client.query(question).rows for question in QUESTIONS} == kept
                check_reader(mesh.gateway_url, token)
                load.check()
                client.drain("up", depth=2)
                check_open_windows(client, load.acked)
                check_streams(client)
