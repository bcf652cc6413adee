"""TDengine's SQLAlchemy dialect for REST, `taosrest://`, with pandas and reflection."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from penstock.mesh.running import RunningMesh
from tests.stack.names import unique

pytestmark = pytest.mark.filterwarnings("ignore:Dialect taosrest")

_execute = sa.Connection.execute


def _execute_text_too(self: sa.Connection, statement: Any, *given: Any, **options: Any) -> Any:
    """Stands for SQLAlchemy 1.4's `execute`, which took a string."""
    if isinstance(statement, str):
        return self.exec_driver_sql(statement, *given)
    return _execute(self, statement, *given, **options)


@pytest.fixture
def dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the dialect without TDengine's native library, into a SQLAlchemy that it was not written
    for. The statements that it sends, and how it reads the answers, stay its own.
    """
    spec = importlib.util.find_spec("taosrest")
    assert spec is not None and spec.origin is not None
    # `import taos` loads libtaos.so, of which the dialect for REST uses nothing
    native = ModuleType("taos")
    native.__path__ = [str(Path(spec.origin).parents[1] / "taos")]
    monkeypatch.setitem(sys.modules, "taos", native)
    from taosrest.sqlalchemy import TaosRestDialect

    has_table = TaosRestDialect.has_table

    def has_table_of(self: Any, connection: Any, name: str, schema: Any = None, **_: Any) -> Any:
        return has_table(self, connection, name, schema)

    monkeypatch.setattr(TaosRestDialect, "has_table", has_table_of)
    monkeypatch.setattr(sa.Connection, "execute", _execute_text_too)


@pytest.fixture
def connection(mesh: RunningMesh, dialect: None) -> Iterator[sa.Connection]:
    address = mesh.gateway_url.partition("://")[2]
    engine = sa.create_engine(f"taosrest://{mesh.user}:{mesh.password}@{address}")
    with engine.connect() as made:
        yield made
    engine.dispose()


@pytest.fixture
def database(connection: sa.Connection) -> str:
    name = unique("alchemy")
    for statement in (
        f"CREATE DATABASE {name} PARTITIONS 2",
        f"CREATE STABLE {name}.meters (ts TIMESTAMP, amps FLOAT, volts INT, note NCHAR(20), ok BOOL,"
        " big BIGINT UNSIGNED) TAGS (line INT, site VARCHAR(24))",
        f"CREATE TABLE {name}.`Plain` (ts TIMESTAMP, v DOUBLE)",
    ):
        connection.exec_driver_sql(statement)
    written = connection.exec_driver_sql(
        f"INSERT INTO {name}.d1 USING {name}.meters TAGS (1, 'north') VALUES"
        " ('2024-01-01T00:00:00Z', 1.5, 2000000000, 'it''s', true, 18446744073709551615)"
        " ('2024-01-01T00:00:01Z', NULL, 2000000000, NULL, NULL, NULL)"
        f" {name}.d2 USING {name}.meters (line) TAGS (2) (ts, volts)"
        " VALUES ('2024-01-01T00:00:02Z', 2000000000)"
    )
    assert written.rowcount == 3
    return name


def test_read_sql(connection: sa.Connection, database: str) -> None:
    frame = pd.read_sql(
        f"SELECT ts, amps, volts, note, ok, site FROM {database}.meters ORDER BY ts", connection
    )
    assert str(frame["ts"].dtype).startswith("datetime64")
    assert frame["amps"].dtype == "float64" and frame["volts"].dtype == "int64"
    assert frame["note"].tolist() == ["it's", None, None]
    assert frame["ok"].tolist() == [True, None, None]
    assert frame["site"].tolist() == ["north", "north", None]
    sums = pd.read_sql(
        sa.text(f"SELECT site, sum(volts) AS s, count(*) FROM {database}.meters GROUP BY site"),
        connection,
        index_col="site",
    )
    assert sums.loc["north"].tolist() == [4_000_000_000, 2]
    assert sums.columns.tolist() == ["s", "count(*)"]
    windows = pd.read_sql(
        f"SELECT _wstart, max(volts) AS v FROM {database}.meters INTERVAL(2s)",
        connection,
        index_col="_wstart",
    )
    assert windows["v"].tolist() == [2_000_000_000] * 2


def test_inspect(connection: sa.Connection, database: str) -> None:
    inspector = sa.inspect(connection)
    assert database in inspector.get_schema_names()
    assert "information_schema" not in inspector.get_schema_names()
    assert inspector.get_table_names(database) == ["meters", "Plain"]
    assert inspector.get_view_names(database) == []
    assert inspector.has_table("meters", database) and inspector.has_table("Plain", database)
    assert not inspector.has_table("d9", database)
    assert inspector.get_pk_constraint("meters", database)["constrained_columns"] == ["ts"]
    assert inspector.get_indexes("meters", database) == []
    assert inspector.get_foreign_keys("meters", database) == []
    listed = {c["name"]: type(c["type"]) for c in inspector.get_columns("meters", database)}
    assert listed == {
        "ts": sa.DATETIME,
        "amps": sa.FLOAT,
        "volts": sa.Integer,
        "note": sa.Unicode,
        "ok": sa.Boolean,
        "big": sa.BigInteger,
        "line": sa.Integer,
        "site": sa.String,
    }


def test_a_reflected_table_is_asked(connection: sa.Connection, database: str) -> None:
    meters = sa.Table("meters", sa.MetaData(), schema=database, autoload_with=connection)
    assert [column.name for column in meters.primary_key] == ["ts"]
    asked = (
        sa.select(meters.c.site, sa.func.sum(meters.c.volts), sa.func.count())
        .where(meters.c.ts >= sa.literal_column("'2024-01-01T00:00:00Z'"))
        .group_by(meters.c.site)
        .order_by(meters.c.site.desc())
        .limit(1)
    )
    text = str(asked.compile(connection, compile_kwargs={"literal_binds": True}))
    assert connection.exec_driver_sql(text).fetchall() == [("north", 4_000_000_000, 2)]
    # a name that is not lower case and one that is a word of SQL come in backticks
    odd = sa.Table(
        "Plain", sa.MetaData(), sa.Column("ts", sa.TIMESTAMP), sa.Column("v"), schema=database
    )
    assert connection.execute(sa.select(odd.c.v)).fetchall() == []


def _insert_as_literals(
    table: Any, connection: sa.Connection, keys: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """A method of `to_sql`: the connector never puts parameters into a statement."""
    for row in rows:
        made = sa.insert(table.table).values(dict(zip(keys, row, strict=True)))
        text = made.compile(connection, compile_kwargs={"literal_binds": True})
        connection.exec_driver_sql(str(text))


def test_to_sql(connection: sa.Connection, database: str) -> None:
    frame = pd.DataFrame(
        {
            "ts": pd.date_range("2024-01-01", periods=3, freq="h"),
            "value": [1.5, 2.5, None],
            "n": [1, 2, 3],
            "note": ["a", "it's", None],
            "ok": [True, False, True],
        }
    )
    kinds = {
        "ts": sa.TIMESTAMP(),
        "value": sa.DOUBLE(),
        "n": sa.BIGINT(),
        "note": sa.VARCHAR(16),
        "ok": sa.Boolean(),
    }
    options: dict[str, Any] = {
        "schema": database,
        "index": False,
        "dtype": kinds,
        "method": _insert_as_literals,
    }
    frame.to_sql("readings", connection, **options)
    described = connection.exec_driver_sql(f"DESCRIBE {database}.readings").fetchall()
    assert [row[:3] for row in described] == [
        ("ts", "TIMESTAMP", 8),
        ("value", "DOUBLE", 8),
        ("n", "BIGINT", 8),
        ("note", "VARCHAR", 16),
        ("ok", "BOOL", 1),
    ]
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql("readings", connection, **options)
    later = frame.assign(ts=pd.date_range("2024-01-02", periods=3, freq="h"))
    later.to_sql("readings", connection, if_exists="append", **options)
    found = pd.read_sql(f"SELECT n, note, ok FROM {database}.readings ORDER BY ts", connection)
    assert found["n"].tolist() == [1, 2, 3] * 2
    assert found["note"].tolist() == ["a", "it's", None] * 2
    assert found["ok"].tolist() == [True, False, True] * 2
    frame[:1].to_sql("readings", connection, if_exists="replace", **options)
    count = pd.read_sql(f"SELECT count(*) AS c FROM {database}.readings", connection)
    assert count["c"].tolist() == [1]


def test_errors_come_with_their_codes(connection: sa.Connection, database: str) -> None:
    frame = pd.DataFrame({"ts": [pd.Timestamp("2024-01-01")], "note": ["a"]})
    with pytest.raises(sa.exc.DBAPIError, match=r"0x2600.*TEXT.*use VARCHAR\(n\)"):
        frame.to_sql("texts", connection, schema=database, index=False)
    with pytest.raises(sa.exc.DBAPIError, match=r"0x2603"):
        connection.exec_driver_sql(f"SELECT * FROM {database}.nothing")
    with pytest.raises(sa.exc.DBAPIError, match=r"0x0388.*no database"):
        connection.exec_driver_sql("SHOW nowhere_at_all.TABLES")
