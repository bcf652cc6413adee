"""TDengine's own Python REST connector against the gateway, unchanged."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest
import requests
import taosrest

from penstock.mesh.running import RunningMesh
from tests.stack.names import unique


@pytest.fixture
def connection(mesh: RunningMesh) -> taosrest.TaosRestConnection:
    return taosrest.connect(
        url=mesh.gateway_url, user=mesh.user, password=mesh.password, timezone="UTC"
    )


@pytest.fixture
def database(connection: taosrest.TaosRestConnection) -> str:
    name = unique("taos")
    assert connection.execute(f"CREATE DATABASE {name} PARTITIONS 2") == 0
    connection.execute(
        f"CREATE STABLE {name}.meters (ts TIMESTAMP, current FLOAT, voltage INT, note NCHAR(20)) TAGS (location VARCHAR(24), groupid INT)"
    )
    return name


def test_connect_execute_query(connection: taosrest.TaosRestConnection, database: str) -> None:
    assert connection.server_info
    written = connection.execute(
        f"INSERT INTO {database}.d1001 USING {database}.meters TAGS ('San Francisco', 2) "
        "VALUES ('2018-10-03 14:38:05.000', 10.3, 219, 'ä') ('2018-10-03 14:38:15.000', 12.6, 218, NULL) "
        f"{database}.d1002 USING {database}.meters TAGS ('Los Angeles', 3) VALUES ('2018-10-03 14:38:16.650', 10.5, 221, 'x')"
    )
    assert written == 3
    result = connection.query(
        f"SELECT ts, current, voltage, note, location FROM {database}.meters ORDER BY ts"
    )
    assert [f["name"] for f in result.fields] == ["ts", "current", "voltage", "note", "location"]
    assert [f["type"] for f in result.fields][:3] == ["TIMESTAMP", "FLOAT", "INT"]
    assert result.rows == 3
    assert result.data[0][0] == datetime(2018, 10, 3, 14, 38, 5, tzinfo=UTC)
    assert [row[2] for row in result] == [219, 218, 221]
    assert result.data[0][3:] == ["ä", "San Francisco"]
    assert result.data[1][3] is None


def test_cursor_and_pandas(connection: taosrest.TaosRestConnection, database: str) -> None:
    cursor = connection.cursor()
    cursor.execute(
        f"INSERT INTO {database}.d1 USING {database}.meters TAGS ('a', 1) VALUES (1538548685000, 1.5, 2, 'n') (1538548686000, 2.5, 3, 'm')"
    )
    assert cursor.rowcount == cursor.affected_rows == 2
    cursor.execute(f"SELECT ts, voltage FROM {database}.d1 ORDER BY ts")
    assert [column[0] for column in cursor.description] == ["ts", "voltage"]
    assert cursor.rowcount == 2
    assert [row[1] for row in cursor.fetchall()] == [2, 3]
    result = connection.query(f"SELECT ts, current FROM {database}.meters ORDER BY ts")
    frame = pd.DataFrame(result.data, columns=[f["name"] for f in result.fields])
    assert frame["current"].tolist() == [1.5, 2.5]
    assert str(frame["ts"].dtype).startswith("datetime64[ns")


def test_database_in_the_url(mesh: RunningMesh, database: str) -> None:
    connection = taosrest.connect(
        url=mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        database=database,
        timezone="UTC",
    )
    assert connection.execute("CREATE TABLE plain (ts TIMESTAMP, v BIGINT)", req_id=7) == 0
    assert connection.execute("INSERT INTO plain VALUES (NOW, 1)") == 1
    assert connection.query("SELECT v FROM plain").data == [[1]]
    described = connection.query("DESCRIBE meters")
    assert described.data[0][:3] == ["ts", "TIMESTAMP", 8]
    assert described.data[-1][:4] == ["groupid", "INT", 4, "TAG"]


def test_errors_are_the_connectors_own(
    connection: taosrest.TaosRestConnection, mesh: RunningMesh, database: str
) -> None:
    with pytest.raises(taosrest.errors.ConnectError, match="nothing"):
        connection.execute(f"INSERT INTO {database}.nothing VALUES (NOW, 1)")
    with pytest.raises(taosrest.errors.ConnectError, match="line 1"):
        connection.query("SELEC 1")
    stranger = taosrest.connect(url=mesh.gateway_url, user="root", password="wrong")
    with pytest.raises(taosrest.errors.HTTPError):
        stranger.query("SELECT 1")


def test_login_token_time_zone_and_objects(mesh: RunningMesh, database: str) -> None:
    answer = requests.get(
        f"{mesh.gateway_url}/rest/login/{mesh.user}/{mesh.password}", timeout=10
    ).json()
    assert answer["code"] == 0
    headers = {"Authorization": f"Taosd {answer['desc']}"}

    def ask(sql: str, **query: str) -> requests.Response:
        return requests.post(
            f"{mesh.gateway_url}/rest/sql/{database}",
            params=query,
            data=sql.encode(),
            headers=headers,
            timeout=30,
        )

    assert (
        ask(
            "INSERT INTO d9 USING meters TAGS ('z', 9) VALUES ('2024-01-01 08:00:00', 1, 2, 'x')",
            tz="Asia/Shanghai",
        ).json()["code"]
        == 0
    )
    utc = ask("SELECT ts FROM d9").json()
    assert utc == {
        "code": 0,
        "column_meta": [["ts", "TIMESTAMP", 8]],
        "data": [["2024-01-01T00:00:00.000Z"]],
        "rows": 1,
    }
    local = ask("SELECT ts FROM d9", tz="Asia/Shanghai", row_with_meta="true", timing="true").json()
    assert local["data"] == [{"ts": "2024-01-01T08:00:00.000+08:00"}]
    assert local["timing"] > 0
    assert ask("SELECT 1", req_id="x").status_code == 400
    assert ask("").status_code == 400
    assert requests.get(f"{mesh.gateway_url}/rest/login/root/guess", timeout=10).status_code == 401
    assert (
        requests.post(
            f"{mesh.gateway_url}/rest/sql",
            data="SELECT 1",
            headers={"Authorization": "Taosd x"},
            timeout=10,
        ).status_code
        == 401
    )
