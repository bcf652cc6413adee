"""Streams over external streams (feature T16), and streams without a time column: the mesh is its
own other deployment.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import T0, clause, settings_of

_WINDOWS = {
    "tumble": "SELECT _wstart, count(*) AS n, sum(v) AS s FROM {t} PARTITION BY tbname INTERVAL(10s)",
    "hop": "SELECT _wstart, count(*) AS n, sum(v) AS s FROM {t} PARTITION BY tbname INTERVAL(10s) SLIDING(5s)",
    "gap": "SELECT _wstart, count(*) AS n, sum(v) AS s FROM {t} PARTITION BY tbname SESSION(ts, 2s)",
    "state": "SELECT _wstart, count(*) AS n, sum(v) AS s FROM {t} PARTITION BY tbname STATE_WINDOW(site)",
    "count": "SELECT _wstart, count(*) AS n, sum(v) AS s FROM {t} PARTITION BY tbname COUNT_WINDOW(7)",
    "event": "SELECT _wstart, count(*) AS n, sum(v) AS s FROM {t} PARTITION BY tbname EVENT_WINDOW START WITH v % 7 = 0 END WITH v % 5 = 0",
}


@pytest.fixture
def client(mesh: RunningMesh) -> Iterator[Connection]:
    with connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        options=ConnectionOptions(timeout=150),
    ) as made:
        yield made


def test_T16_windows_over_a_remote_stream_are_those_over_a_local_one(
    mesh: RunningMesh, client: Connection
) -> None:
    client.execute("CREATE DATABASE wfar PARTITIONS 1")
    client.execute("CREATE DATABASE wnear PARTITIONS 1")
    client.execute("CREATE STABLE wfar.src (ts TIMESTAMP, v INT, site INT) TAGS (g INT)")
    client.execute(f"CREATE EXTERNAL STREAM wnear.ext {clause(settings_of(mesh, 'wfar.src'))}")
    for name, sql in _WINDOWS.items():
        client.execute(
            f"CREATE STREAM wfar.{name} TRIGGER AT_ONCE WATERMARK 1h INTO wfar.{name}_r AS {sql.format(t='wfar.src')}"
        )
        client.execute(
            f"CREATE STREAM wnear.{name} TRIGGER AT_ONCE WATERMARK 1h INTO wnear.{name}_r AS {sql.format(t='wnear.ext')}"
        )
    rows = [
        {
            "tbname": f"d{i % 2}",
            "ts": T0 + 700 * i + (5000 if i > 60 else 0),
            "v": i,
            "site": i // 20,
            "g": i % 2,
        }
        for i in range(120)
    ]
    client.write("wfar.src", rows)
    eventually(lambda: client.query("SELECT count(*) FROM wnear._mirror_ext").rows == [(120,)])
    client.drain("wfar")
    client.drain("wnear")
    for name in _WINDOWS:
        wanted = client.query(f"SELECT _wstart, n, s FROM wfar.{name}_r ORDER BY _wstart, s").rows
        assert len(wanted) > 3
        assert (
            client.query(f"SELECT _wstart, n, s FROM wnear.{name}_r ORDER BY _wstart, s").rows
            == wanted
        ), name
    client.execute(f"DELETE FROM wfar.src WHERE ts < {T0 + 20_000}")
    left = client.query("SELECT count(*) FROM wfar.src").rows
    eventually(lambda: client.query("SELECT count(*) FROM wnear._mirror_ext").rows == left)
    client.drain("wfar")
    client.drain("wnear")
    for name in _WINDOWS:
        wanted = client.query(f"SELECT _wstart, n, s FROM wfar.{name}_r ORDER BY _wstart, s").rows
        assert (
            client.query(f"SELECT _wstart, n, s FROM wnear.{name}_r ORDER BY _wstart, s").rows
            == wanted
        ), f"{name} after a DELETE"
    with pytest.raises(PenstockError, match="E_IN_USE"):
        client.execute("DROP EXTERNAL STREAM wnear.ext")
    client.execute(
        "CREATE STREAM wnear.past TRIGGER AT_ONCE FILL_HISTORY 1 INTO wnear.past_r AS "
        + _WINDOWS["tumble"].format(t="wnear.ext")
    )
    wanted = client.query("SELECT _wstart, n, s FROM wfar.tumble_r ORDER BY _wstart, s").rows
    eventually(
        lambda: (
            client.query("SELECT _wstart, n, s FROM wnear.past_r ORDER BY _wstart, s").rows
            == wanted
        )
    )
    for name in (*_WINDOWS, "past"):
        client.execute(f"DROP STREAM wnear.{name}")
    client.execute("DROP EXTERNAL STREAM wnear.ext")
    assert not [r for r in client.query("SHOW wnear.TABLES").rows if str(r[0]).startswith("_")], (
        "mirrors go with their last stream"
    )


_FUNCTIONS = {
    "tumbled": "SELECT window_start, site, count(*) AS n, sum(v) AS s FROM tumble({t}, 10s) GROUP BY window_start, site",
    "hopped": "SELECT window_start, window_end, count(*) AS n, sum(v) AS s FROM hop({t}, ts, 5s, 10s) GROUP BY window_start, window_end",
    "sessions": "SELECT window_start, window_end, count(*) AS n, sum(v) AS s FROM session({t}, 2s) GROUP BY window_start, window_end",
}


def test_T9_T16_window_functions_over_a_remote_stream_and_its_table(
    mesh: RunningMesh, client: Connection
) -> None:
    client.execute("CREATE DATABASE ffar PARTITIONS 1; CREATE DATABASE fnear PARTITIONS 1")
    client.execute("CREATE TABLE ffar.src (ts TIMESTAMP, v INT, site INT)")
    client.execute(f"CREATE EXTERNAL STREAM fnear.ext {clause(settings_of(mesh, 'ffar.src'))}")
    for name, sql in _FUNCTIONS.items():
        client.execute(
            f"CREATE STREAM fnear.{name} TRIGGER AT_ONCE INTO fnear.{name}_r AS {sql.format(t='fnear.ext')}"
        )
    client.write(
        "ffar.src",
        [{"ts": T0 + 700 * i + (5000 if i > 60 else 0), "v": i, "site": i % 3} for i in range(120)],
    )
    eventually(lambda: client.query("SELECT count(*) FROM fnear._mirror_ext").rows == [(120,)])
    client.drain("fnear")
    for name, sql in _FUNCTIONS.items():
        wanted = sorted(client.query(sql.format(t="ffar.src")).rows)
        assert len(wanted) > 1
        for source in ("fnear.ext", "table(fnear.ext)"):
            assert sorted(client.query(sql.format(t=source)).rows) == wanted, f"{name} in a SELECT"
        kept = client.query(f"SELECT * FROM fnear.{name}_r")
        assert sorted(
            tuple(row[kept.columns.index(c)] for c in ("window_start", "n", "s"))
            for row in kept.rows
        ) == sorted((row[0], *row[-2:]) for row in wanted), f"{name} as a stream"
        client.execute(f"DROP STREAM fnear.{name}")


def test_a_stream_without_a_time_column(client: Connection) -> None:
    client.execute("CREATE DATABASE wplain PARTITIONS 1")
    client.execute("CREATE STREAM wplain.web (http_code INT, path VARCHAR(20))")
    client.execute("INSERT INTO wplain.web VALUES (200, '/a') (404, '/b') (404, '/b')")
    client.write("wplain.web", [{"http_code": 500, "path": "/c"}] * 3)
    assert client.query(
        "SELECT http_code, count(*) AS n FROM wplain.web GROUP BY http_code ORDER BY 1"
    ).rows == [
        (200, 1),
        (404, 2),
        (500, 3),
    ]
    assert client.query("SELECT count(*) FROM wplain.web WHERE _tp_time > earliest_ts()").rows == [
        (6,)
    ]
