"""Virtual tables through the whole mesh: joined by time in queries and in streams, and what a
running stream does not follow.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import penstock
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.names import unique

T0 = 1_700_000_000_000


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("vt")
    ) as connection:
        connection.execute(f"CREATE DATABASE {connection.database} PARTITIONS 3")
        connection.execute(
            "CREATE TABLE p (ts TIMESTAMP, a INT, x INT); CREATE STABLE m (ts TIMESTAMP, v DOUBLE) TAGS (g INT)"
        )
        connection.execute("CREATE TABLE m1 USING m TAGS (1); CREATE TABLE m2 USING m TAGS (2)")
        connection.execute(
            "CREATE VTABLE v (ts TIMESTAMP, a INT FROM p.a, b DOUBLE FROM m1.v, c DOUBLE FROM m2.v, d INT)"
        )
        yield connection


def put(db: penstock.Connection, table: str, column: str, *values: tuple[int, float]) -> None:
    rows = " ".join(f"({T0 + at}, {value})" for at, value in values)
    db.execute(f"INSERT INTO {table} (ts, {column}) VALUES {rows}")


def result(db: penstock.Connection, text: str) -> list[tuple[object, ...]]:
    db.drain(depth=1)
    return db.query(text).rows


def refused(db: penstock.Connection, text: str) -> str:
    with pytest.raises(PenstockError) as caught:
        db.execute(text)
    return caught.value.code


def test_a_query_joins_by_time(db: penstock.Connection) -> None:
    put(db, "p", "a", (0, 1), (1000, 2))
    put(db, "m1", "v", (0, 1.5), (2000, 2.5))
    put(db, "m2", "v", (1000, 9))
    assert db.query("SELECT a, b, c, d FROM v ORDER BY ts").rows == [
        (1, 1.5, None, None),
        (2, None, 9.0, None),
        (None, 2.5, None, None),
    ]
    put(db, "p", "a", (0, 7))
    db.execute(f"DELETE FROM m2 WHERE ts <= {T0 + 5000}")
    assert db.query("SELECT count(*), sum(a), sum(b), count(c) FROM v").rows == [(3, 9, 4.0, 0)]
    assert db.query("SELECT count(*) AS n, sum(b) AS b FROM v COUNT_WINDOW(2)").rows == [
        (2, 1.5),
        (1, 2.5),
    ]
    assert db.query("SHOW VTABLES").rows == [("v",)]
    assert ("v",) not in db.query("SHOW TABLES").rows
    assert "FROM" in db.query("SHOW CREATE TABLE v").rows[0][1]
    assert refused(db, "INSERT INTO v VALUES (now, 1, 1, 1, 1)") == "E_VTABLE_WRITE"
    assert refused(db, "CREATE VTABLE w (ts TIMESTAMP, a DOUBLE FROM p.a)") == "E_VTABLE_ORIGIN"
    assert refused(db, "CREATE VTABLE w (ts TIMESTAMP, a DOUBLE FROM m.v)") == "E_VTABLE_ORIGIN"
    db.execute("ALTER VTABLE v ALTER COLUMN a SET p.x; ALTER VTABLE v ALTER COLUMN c SET NULL")
    assert db.query("SELECT sum(a), sum(b), sum(c) FROM v").rows == [(None, 4.0, None)]


def test_a_virtual_supertable(db: penstock.Connection) -> None:
    db.execute("CREATE VIRTUAL STABLE vs (ts TIMESTAMP, a INT, b DOUBLE) TAGS (site VARCHAR(8))")
    db.execute(
        "CREATE VTABLE v1 (a FROM p.a, b FROM m1.v) USING vs TAGS ('one'); CREATE VTABLE v2 (b FROM m2.v) USING vs TAGS ('two')"
    )
    db.execute(
        "CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, count(*) AS n, sum(a) AS a, sum(b) AS b FROM vs "
        "PARTITION BY tbname t, site k INTERVAL(10s)"
    )
    put(db, "p", "a", (0, 1), (1000, 2))
    put(db, "m1", "v", (0, 1.5), (2000, 2.5))
    put(db, "m2", "v", (1000, 9))
    assert result(db, "SELECT n, a, b FROM r ORDER BY n") == [(1, None, 9.0), (3, 3, 4.0)]
    assert db.query(
        "SELECT tbname, site, count(*), sum(b) FROM vs GROUP BY tbname, site ORDER BY 1"
    ).rows == [
        ("v1", "one", 3, 4.0),
        ("v2", "two", 1, 9.0),
    ]
    assert db.query("SELECT count(*) FROM v2").rows == [(1,)]
    # a child table that comes later takes part in queries, not in the stream
    db.execute("CREATE VTABLE v3 (b FROM m2.v) USING vs TAGS ('three')")
    put(db, "m2", "v", (2000, 1))
    assert result(db, "SELECT count(*), sum(n) FROM r") == [(2, 5)]
    assert db.query("SELECT count(*) FROM vs").rows == [(7,)]
    assert refused(db, "DROP TABLE v1") == "E_IN_USE"
    assert refused(db, "ALTER STABLE vs ADD COLUMN z INT") == "E_IN_USE"


def test_a_stream_over_tables_of_several_partitions_and_databases(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    other = f"{db.database}_b"
    db.execute(
        f"CREATE DATABASE {other} PARTITIONS 2; CREATE TABLE {other}.q (ts TIMESTAMP, e INT)"
    )
    db.execute(
        f"CREATE VTABLE w (ts TIMESTAMP, a INT FROM p.a, b DOUBLE FROM m1.v, e INT FROM {other}.q.e)"
    )
    db.execute(
        "CREATE STREAM s INTO r AS SELECT _wstart, count(*) AS n, sum(a) AS a, sum(b) AS b, sum(e) AS e FROM w INTERVAL(10s)"
    )
    db.execute("CREATE STREAM o TRIGGER AT_ONCE INTO ro AS SELECT ts, a, b, e FROM w WHERE a > 1")
    put(db, "p", "a", *((i * 1000, i) for i in range(25)))
    put(db, "m1", "v", *((i * 1000, 0.5) for i in range(0, 25, 2)))
    put(db, f"{other}.q", "e", *((i * 1000, 1) for i in range(25)))
    db.drain(depth=1)
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=other) as more:
        more.drain(depth=1)
    # windows that one origin closed are put right by the rows of the others, which come in order
    # for their own table
    assert result(db, "SELECT n, a, b, e FROM r ORDER BY _wstart") == [
        (10, 45, 2.5, 10),
        (10, 145, 2.5, 10),
    ]
    assert db.query("SELECT count(*), sum(a), sum(b), sum(e) FROM ro").rows == [(23, 299, 6.0, 23)]


def test_rows_of_several_tables_that_are_worked_on_at_once(mesh: RunningMesh) -> None:
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=unique("vt")) as db:
        db.execute(f"CREATE DATABASE {db.database} PARTITIONS 1")
        db.execute(
            "CREATE TABLE p (ts TIMESTAMP, a INT); CREATE TABLE q (ts TIMESTAMP, b INT); CREATE TABLE o (ts TIMESTAMP, c INT)"
        )
        db.execute("CREATE VTABLE v (ts TIMESTAMP, a INT FROM p.a, b INT FROM q.b, c INT FROM o.c)")
        db.execute(
            "CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, count(*) AS n, sum(a) AS a, sum(b) AS b, sum(c) AS c FROM v "
            "INTERVAL(10s)"
        )
        # one request, one partition: what it writes is read as one unit, or nearly
        for i in range(20):
            values = " ".join(f"({T0 + 10_000 * i + at}, 1)" for at in range(5))
            db.execute(f"INSERT INTO p VALUES {values} q VALUES {values} o VALUES {values}")
        assert result(db, "SELECT n, a, b, c FROM r") == [(5, 5, 5, 5)] * 20


def test_what_a_running_stream_does_not_follow(db: penstock.Connection) -> None:
    db.execute(
        "CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, sum(a) AS a, sum(b) AS b, sum(c) AS c FROM v INTERVAL(1h)"
    )
    put(db, "p", "a", (0, 1))
    put(db, "m1", "v", (0, 1))
    put(db, "m2", "v", (0, 1))
    assert result(db, "SELECT a, b, c FROM r") == [(1, 1.0, 1.0)]
    # the schema is frozen
    assert refused(db, "ALTER TABLE v ADD COLUMN z INT") == "E_IN_USE"
    assert refused(db, "ALTER TABLE v DROP COLUMN a") == "E_IN_USE"
    assert refused(db, "DROP TABLE v") == "E_IN_USE"
    # a column that is mapped anew is read from where it was
    db.execute("ALTER VTABLE v ALTER COLUMN a SET p.x")
    put(db, "p", "x", (1, 100))
    put(db, "p", "a", (2, 10))
    assert result(db, "SELECT a, b, c FROM r") == [(11, 1.0, 1.0)]
    # tables made again under an old name are read by queries, not by the stream
    db.execute("DROP TABLE m1; CREATE TABLE m1 USING m TAGS (1)")
    db.execute("DROP TABLE p; CREATE TABLE p (ts TIMESTAMP, a INT, x INT)")
    put(db, "m1", "v", (3, 50))
    put(db, "p", "a", (4, 1000))
    put(db, "m2", "v", (5, 2))
    assert result(db, "SELECT a, b, c FROM r") == [(11, 1.0, 3.0)]
    assert db.query("SELECT sum(b), sum(c) FROM v").rows == [(50.0, 3.0)]
