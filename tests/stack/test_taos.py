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


def test_types_and_nulls(connection: taosrest.TaosRestConnection, database: str) -> None:
    connection.execute(
        f"CREATE TABLE {database}.kinds (ts TIMESTAMP, b BOOL, i8 TINYINT, u8 TINYINT UNSIGNED,"
        " i16 SMALLINT, u16 SMALLINT UNSIGNED, i32 INT, u32 INT UNSIGNED, i64 BIGINT,"
        " u64 BIGINT UNSIGNED, f FLOAT, d DOUBLE, n DECIMAL(20, 4), v VARCHAR(8), c NCHAR(4),"
        " x VARBINARY(4))"
    )
    written = connection.execute(
        f"INSERT INTO {database}.kinds VALUES ('2024-01-01T00:00:00.001Z', true, -128, 255, -32768,"
        " 65535, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, 0.1, 1e300,"
        " -123456789012.3456, 'it''s \"', 'äß', '\\x00ff')"
        " ('2024-01-01T00:00:01Z'" + ", NULL" * 15 + ")"
    )
    assert written == 2
    result = connection.query(f"SELECT * FROM {database}.kinds ORDER BY ts")
    assert result.column_meta == [
        ["ts", "TIMESTAMP", 8],
        ["b", "BOOL", 1],
        ["i8", "TINYINT", 1],
        ["u8", "TINYINT UNSIGNED", 1],
        ["i16", "SMALLINT", 2],
        ["u16", "SMALLINT UNSIGNED", 2],
        ["i32", "INT", 4],
        ["u32", "INT UNSIGNED", 4],
        ["i64", "BIGINT", 8],
        ["u64", "BIGINT UNSIGNED", 8],
        ["f", "FLOAT", 4],
        ["d", "DOUBLE", 8],
        ["n", "DECIMAL(20,4)", 16],
        ["v", "VARCHAR", 8],
        ["c", "NCHAR", 4],
        ["x", "VARBINARY", 4],
    ]
    assert result.data[0][1:] == [
        *(True, -128, 255, -32_768, 65_535, -(2**31), 2**32 - 1, -(2**63), 2**64 - 1),
        *(0.1, 1e300, "-123456789012.3456", "it's \"", "äß", "00ff"),
    ]
    assert result.data[1][1:] == [None] * 15


def test_sums_of_integers_are_bigint(
    connection: taosrest.TaosRestConnection, database: str
) -> None:
    connection.execute(
        f"INSERT INTO {database}.d1 USING {database}.meters TAGS ('a', 1) VALUES"
        " (1538548685000, 1.5, 2000000000, 'n') (1538548686000, 2.5, 2000000000, 'm')"
    )
    result = connection.query(
        f"SELECT sum(voltage), count(*), avg(voltage), sum(current), max(ts) FROM {database}.meters"
    )
    assert [(f["name"], f["type"], f["bytes"]) for f in result.fields] == [
        ("sum(voltage)", "BIGINT", 8),
        ("count(*)", "BIGINT", 8),
        ("avg(voltage)", "DOUBLE", 8),
        ("sum(current)", "DOUBLE", 8),
        ("max(ts)", "TIMESTAMP", 8),
    ]
    newest = datetime(2018, 10, 3, 6, 38, 6, tzinfo=UTC)
    assert result.data == [[4_000_000_000, 2, 2e9, 4.0, newest]]


def test_a_cursor_as_db_api_has_it(connection: taosrest.TaosRestConnection, database: str) -> None:
    cursor = connection.cursor()
    cursor.executemany(
        f"INSERT INTO {database}.d1 USING {database}.meters TAGS ('a', 1) (ts, voltage) VALUES"
        " (1538548685000, 1) (1538548686000, 2) (1538548687000, 3)"
    )
    assert cursor.affected_rows == 3
    cursor.execute(f"SELECT voltage, location FROM {database}.d1 ORDER BY ts", None, 12)
    assert cursor.affected_rows is None and cursor.rowcount == 3
    assert cursor.get_type(0) == "INT" and cursor.istype(1, "BINARY")
    assert cursor.fetchone() == [1, "a"]
    assert cursor.fetchmany() == [2, "a"]
    assert cursor.fetchall() == [[3, "a"]]
    assert cursor.fetchone() is None
    cursor.execute(f"SELECT * FROM {database}.d1 WHERE voltage > 9")
    assert cursor.fetchall() == [] and len(cursor.description) == 4
    connection.commit()
    cursor.close()


def test_times_in_zones(
    connection: taosrest.TaosRestConnection, mesh: RunningMesh, database: str
) -> None:
    connection.execute(f"CREATE TABLE {database}.times (ts TIMESTAMP, other TIMESTAMP)")
    connection.execute(
        f"INSERT INTO {database}.times VALUES"
        " ('2024-07-01T08:00:00.5+08:00', '2024-07-01 00:00:00') ('2024-07-02', NULL)"
    )
    asked = f"SELECT ts, other FROM {database}.times ORDER BY ts"
    moment = datetime(2024, 7, 1, tzinfo=UTC)
    assert connection.query(asked).data == [
        [moment.replace(microsecond=500_000), moment],
        [datetime(2024, 7, 2, tzinfo=UTC), None],
    ]

    def rows(**options: object) -> list[list[object]]:
        given = {"url": mesh.gateway_url, "user": mesh.user, "password": mesh.password}
        data: list[list[object]] = taosrest.connect(**given, **options).query(asked).data
        return data

    berlin = rows(timezone="Europe/Berlin")[0][1]
    assert isinstance(berlin, datetime) and berlin == moment
    assert berlin.isoformat() == "2024-07-01T02:00:00+02:00"
    # without a zone: the machine's, and no offset
    assert rows()[0][1] == moment.astimezone().replace(tzinfo=None)
    assert rows(convert_timestamp=False)[0] == [
        "2024-07-01T00:00:00.500Z",
        "2024-07-01T00:00:00.000Z",
    ]


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
    with pytest.raises(taosrest.errors.ConnectError, match="nothing") as unknown:
        connection.execute(f"INSERT INTO {database}.nothing VALUES (NOW, 1)")
    assert unknown.value.errno == 0x2603
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
