"""Tools that speak DB-API and SQLAlchemy against a mesh: pandas, reflection, plain cursors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
import sqlalchemy as sa

import penstock
from penstock import dbapi
from penstock.mesh.running import RunningMesh
from tests.stack.names import unique

T0 = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def database(mesh: RunningMesh) -> str:
    name = unique("tools")
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {name}")
        client.execute(
            f"CREATE STABLE {name}.meters (ts TIMESTAMP, current DOUBLE, n INT) TAGS (site VARCHAR(16))"
        )
    return name


@pytest.fixture
def connection(mesh: RunningMesh, database: str) -> Iterator[dbapi.Connection]:
    with dbapi.connect(
        mesh.gateway_url, user=mesh.user, password=mesh.password, database=database
    ) as made:
        yield made


@pytest.fixture
def engine(mesh: RunningMesh, database: str) -> Iterator[sa.Engine]:
    url = sa.make_url(mesh.gateway_url.replace("http", "penstock", 1)).set(
        username=mesh.user, password=mesh.password, database=database
    )
    made = sa.create_engine(url)
    yield made
    made.dispose()


def test_a_cursor_writes_and_reads(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    for number in range(3):
        cursor.execute(f"CREATE TABLE d{number} USING meters TAGS ('x\\'); --')")
    rows = [(f"d{i % 3}", T0 + timedelta(seconds=i), i / 2, i) for i in range(2_500)]
    cursor.executemany("INSERT INTO meters (tbname, ts, current, n) VALUES (?, ?, ?, ?)", rows)
    assert cursor.rowcount == 2_500 and cursor.description is None
    connection.penstock.drain(depth=0)
    cursor.execute("SELECT ts, current, n, site FROM meters WHERE n < ? ORDER BY n", [3])
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [
        ("ts", "TIMESTAMP"),
        ("current", "DOUBLE"),
        ("n", "INT"),
        ("site", "VARCHAR"),
    ]
    assert cursor.description[0][1] == dbapi.DATETIME
    assert cursor.fetchone() == (T0, 0.0, 0, "x'); --")
    assert [row[2] for row in cursor.fetchmany(5)] == [1, 2] and cursor.fetchone() is None
    cursor.execute("SELECT sum(n) AS s FROM meters WHERE n < :most", {"most": 100})
    assert list(cursor) == [(4950,)]
    connection.commit()
    connection.rollback()


def test_errors_are_the_standards(connection: dbapi.Connection, mesh: RunningMesh) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="E_UNKNOWN_COLUMN.*line 1, column 8"):
        cursor.execute("SELECT curent FROM meters")
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchall()
    with pytest.raises(dbapi.OperationalError, match="E_AUTH"):
        dbapi.connect(mesh.gateway_url, user=mesh.user, password="wrong")


def test_pandas_writes_and_reads_by_sqlalchemy(engine: sa.Engine) -> None:
    index = pd.date_range(T0, periods=1_200, freq="s", name="ts")
    frame = pd.DataFrame(
        {"v": [i * 0.5 for i in range(1_200)], "n": range(1_200), "s": ["ä"] * 1_200}, index=index
    )
    frame.to_sql("weather", engine, if_exists="fail")
    frame.iloc[:0].to_sql("weather", engine, if_exists="append")
    with engine.connect() as connection:
        connection.connection.driver_connection.penstock.drain(depth=0)  # type: ignore[union-attr]
    read = pd.read_sql("SELECT ts, v, n, s FROM weather ORDER BY ts", engine, index_col="ts")
    assert len(read) == 1_200
    assert read["v"].tolist() == frame["v"].tolist() and read["n"].tolist() == list(range(1_200))
    assert read.index[0] == pd.Timestamp(T0) and read["s"].iloc[7] == "ä"
    table = pd.read_sql_table("weather", engine)
    assert set(table.columns) == {"ts", "v", "n", "s"} and len(table) == 1_200
    part = pd.read_sql(
        sa.text("SELECT max(n) AS m FROM weather WHERE n < :k"), engine, params={"k": 9}
    )
    assert part["m"].tolist() == [8]


def test_reflection(engine: sa.Engine, database: str) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE d1 USING meters TAGS ('north')"))
        connection.execute(sa.text("CREATE TABLE plain (ts TIMESTAMP, big DECIMAL(10, 2))"))
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == database
    assert database in inspector.get_schema_names()
    assert inspector.get_table_names() == ["meters", "plain"]
    assert inspector.has_table("meters") and inspector.has_table("d1")
    assert not inspector.has_table("nothing") and not inspector.has_table("t", schema="nowhere")
    columns = {c["name"]: c["type"] for c in inspector.get_columns("meters")}
    assert list(columns) == ["ts", "current", "n", "site"]
    assert isinstance(columns["site"], sa.String) and columns["site"].length == 16
    assert inspector.get_pk_constraint("meters")["constrained_columns"] == ["ts"]
    meters = sa.Table("meters", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(meters)).scalar() == 0
        assert connection.dialect.server_version_info is not None


def test_a_wrong_name_is_sqlalchemys_error(engine: sa.Engine) -> None:
    with (
        engine.connect() as connection,
        pytest.raises(sa.exc.ProgrammingError, match="E_TABLE_NOT_EXIST"),
    ):
        connection.execute(sa.text("SELECT * FROM nothing"))
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nothing", sa.MetaData(), autoload_with=engine)
