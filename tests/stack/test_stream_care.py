"""Looking after streams: figures, late rows, open windows, the idle time-out, corrections on
demand, changes without starting over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import polars as pl
import pytest

import penstock
from penstock.errors import PenstockError, SqlSemanticError
from penstock.mesh.running import RunningMesh
from tests.stack import metrics_kit
from tests.stack.conftest import MeshFactory, eventually
from tests.stack.names import unique

T0 = 1_700_000_000_000


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("care")
    ) as connection:
        connection.execute(f"CREATE DATABASE {connection.database} PARTITIONS 2")
        connection.execute("CREATE STABLE m (ts TIMESTAMP, v DOUBLE, x VARCHAR(8)) TAGS (g INT)")
        yield connection


def put(db: penstock.Connection, *rows: tuple[str, int, float]) -> None:
    for table, at, value in rows:
        db.write("m", [{"tbname": table, "ts": T0 + at, "v": value, "g": 1}])


def refused(db: penstock.Connection, text: str) -> str:
    with pytest.raises(PenstockError) as caught:
        db.execute(text)
    return caught.value.code


def test_a_stream_that_is_not_there_is_pointed_at(db: penstock.Connection) -> None:
    for text in (
        "PAUSE STREAM nobody",
        "DROP STREAM nobody",
        "FLUSH STREAM nobody",
        "SELECT * FROM nobody OPEN WINDOWS",
    ):
        with pytest.raises(SqlSemanticError, match="SHOW STREAMS") as caught:
            db.execute(f"\n{text}")
        assert (caught.value.code, caught.value.line, caught.value.column) == (
            "E_NO_STREAM",
            2,
            text.index("nobody") + 1,
        )


def figures(db: penstock.Connection, name: str, *columns: str) -> tuple[object, ...]:
    where = f"stream_name = '{name}' AND source_db = '{db.database}'"
    return db.query(
        f"SELECT {', '.join(columns)} FROM information_schema.ins_streams WHERE {where}"
    ).rows[0]


@pytest.mark.parametrize("by", ["tbname", "g"])
def test_figures_late_rows_and_open_windows(db: penstock.Connection, by: str) -> None:
    """Once in the scan of the source partition, once behind the exchange."""
    db.execute(
        f"CREATE STREAM s INTO r AS SELECT _wstart, count(*) AS n, sum(v) AS v FROM m PARTITION BY {by} k INTERVAL(10s)"
    )
    put(db, ("t", 1_000, 1), ("t", 2_000, 2), ("t", 31_000, 3), ("t", 3_000, 99), ("t", 32_000, 4))
    db.drain()
    assert db.query("SELECT n, v FROM r").rows == [(2, 3.0)]
    late = db.query(
        f"SELECT stream_name, table_name, ticks FROM information_schema.ins_late_rows WHERE db_name = '{db.database}'"
    ).rows
    assert late == [("s", "t", T0 + 3_000)]
    open_ = db.query("SELECT n, v FROM s OPEN WINDOWS WHERE n > 1 ORDER BY v").rows
    assert open_ == [(2, 7.0)]
    assert refused(db, "SELECT * FROM nobody OPEN WINDOWS") == "E_NO_STREAM"
    eventually(
        lambda: (
            figures(db, "s", "status", "rows_in", "rows_out", "late_rows", "failed_rows")
            == ("ready", 5, 1, 1, 0)
        )
    )
    eventually(lambda: figures(db, "s", "last_error", "lag_records") == (None, 0))
    eventually(lambda: figures(db, "s", "state_bytes") > (0,))
    put(db, ("t", 33_000, 5), ("u", 33_000, 5))
    eventually(lambda: figures(db, "s", "rows_in") == (7,))
    tasks = "SELECT sum(rows_in), sum(rows_out), sum(late_rows), count(last_error), min(status) FROM information_schema.ins_stream_tasks"
    assert db.query(f"{tasks} WHERE db_name = '{db.database}'").rows == [(7, 1, 1, 0, "ready")]


def test_late_rows_with_bytes_are_shown_too(db: penstock.Connection) -> None:
    db.execute("CREATE TABLE raw (ts TIMESTAMP, b VARBINARY(8))")
    db.execute("CREATE STREAM s INTO r AS SELECT _wstart, last(b) AS b FROM raw INTERVAL(10s)")
    for at in (1_000, 31_000, 2_000):
        db.write("raw", [{"ts": T0 + at, "b": "\\xff00"}])
    db.drain()
    assert figures(db, "s", "status", "message") == ("ready", "")
    late = db.query(
        f"SELECT `row` FROM information_schema.ins_late_rows WHERE db_name = '{db.database}'"
    ).rows
    assert late == [(f'{{"ts": {T0 + 2_000}, "b": "ff00"}}',)]


def test_when_late_rows_came_is_known_in_every_precision(db: penstock.Connection) -> None:
    fine = f"{db.database}_ns"
    db.execute(
        f"CREATE DATABASE {fine} PRECISION 'ns'; CREATE TABLE {fine}.m (ts TIMESTAMP, v INT)"
    )
    db.execute(
        f"CREATE STREAM {fine}.s INTO {fine}.r AS SELECT _wstart, count(*) AS n FROM {fine}.m INTERVAL(10s)"
    )
    began = time.time()
    for at in (1_000, 31_000, 2_000):
        db.write(f"{fine}.m", [{"ts": (T0 + at) * 1_000_000, "v": 1}])
    db.drain(fine)
    ((arrived,),) = db.query(
        f"SELECT arrived FROM information_schema.ins_late_rows WHERE db_name = '{fine}'"
    ).rows
    assert began - 1 < arrived.timestamp() < time.time() + 1


def test_a_failed_stream_is_shown_as_failed(db: penstock.Connection) -> None:
    db.execute("CREATE STABLE small (ts TIMESTAMP, n TINYINT) TAGS (group_id BIGINT UNSIGNED)")
    db.execute(
        "CREATE STREAM s TRIGGER AT_ONCE ON_ERROR STOP INTO small AS SELECT _wstart, sum(v) AS n FROM m PARTITION BY tbname INTERVAL(10s)"
    )
    db.execute(
        "CREATE STREAM other TRIGGER AT_ONCE INTO ro AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(10s)"
    )
    put(db, ("t", 0, 1))
    db.drain()
    assert figures(db, "s", "status") == ("ready",)
    put(db, ("t", 1, 300))
    db.drain()
    status, message, error = eventually(lambda: figures(db, "s", "status", "message", "last_error"))
    assert status == "failed" and "does not fit" in str(message) and "does not fit" in str(error)
    assert figures(db, "other", "status") == ("ready",)
    assert db.query("SELECT n FROM ro").rows == [(2,)]
    letters = db.query(
        f"SELECT code, stream_name FROM information_schema.ins_dead_letters WHERE db_name = '{db.database}'"
    ).rows
    assert letters == [("E_EXPRESSION", "s")]
    # its windows are gone: it can only begin anew
    assert refused(db, "ALTER STREAM s ON_ERROR DROP") == "E_STREAM_STATE"
    again = "CREATE OR REPLACE STREAM s TRIGGER AT_ONCE {} INTO small AS SELECT _wstart, {} AS n FROM m PARTITION BY tbname INTERVAL(10s)"
    assert refused(db, again.format("", "sum(v)")) == "E_STREAM_STATE"
    db.execute(again.format("FILL_HISTORY 1", "count(v)"))
    db.drain()
    assert figures(db, "s", "status", "message", "last_error") == ("ready", "", None)
    eventually(lambda: db.query("SELECT n FROM small").rows == [(2,)])


def test_a_stream_over_its_quota_of_state_stops_alone(db: penstock.Connection) -> None:
    create = "CREATE STREAM {} WATERMARK 30d {} INTO r{} AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(1s)"
    for name, option in (("s", "MAX_STATE 1"), ("o", "")):
        db.execute(create.format(name, option, name))
    assert figures(db, "s", "max_state", "max_results") == (1, None)
    written = 0

    def stopped() -> bool:
        """Whoever has a full state file sees it; the next one is due when as much has changed as
        there was.
        """
        nonlocal written
        second = pl.int_range(written, written + 10_000, eager=True)
        db.write("m", pl.DataFrame({"tbname": "t", "ts": T0 + second * 1000, "v": 1.0, "g": 1}))
        written += 10_000
        return figures(db, "s", "status") == ("failed",)

    eventually(stopped, 60)
    assert "MAX_STATE is 1" in str(figures(db, "s", "message"))
    db.drain()
    assert figures(db, "o", "status") == ("ready",)
    assert len(db.query("SELECT n FROM o OPEN WINDOWS").rows) == written


def test_a_stream_over_its_quota_of_results_is_throttled_and_loses_nothing(
    db: penstock.Connection,
) -> None:
    create = "CREATE STREAM {} TRIGGER AT_ONCE {} INTO r{} AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(1m)"
    for name, option in (("s", "MAX_RESULTS 20"), ("o", "")):
        db.execute(create.format(name, option, name))
    tables = pl.DataFrame({"tbname": [f"t{i}" for i in range(800)], "ts": T0, "v": 1.0, "g": 1})
    db.write("m", tables)
    eventually(lambda: figures(db, "s", "status") == ("throttled",))
    assert "MAX_RESULTS is 20 a second" in str(figures(db, "s", "message"))
    for second in (1, 2):
        db.write("m", tables.with_columns(pl.col("ts") + second))
        db.drain()  # or a busy machine computes both at once, for the other stream, too
    each = "SELECT n, count(*) FROM r{} GROUP BY n"
    eventually(lambda: db.query(each.format("o")).rows == [(3, 800)])
    assert db.query(each.format("s")).rows == [(1, 800)]
    db.execute("ALTER STREAM s MAX_RESULTS 200")
    assert figures(db, "s", "max_results") == (200,)
    eventually(lambda: db.query(each.format("s")).rows == [(3, 800)], 60)
    # what came meanwhile was computed together
    eventually(
        lambda: figures(db, "s", "rows_out") == (1600,) and figures(db, "o", "rows_out") == (2400,)
    )


def test_the_idle_time_out_closes_the_last_window(db: penstock.Connection) -> None:
    db.execute(
        "CREATE STREAM s IDLE_TIMEOUT 1s INTO r AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(10s)"
    )
    put(db, ("t", 1_000, 1))
    eventually(lambda: db.query("SELECT n FROM r").rows == [(1,)])


def test_recalculate_takes_what_is_stored(db: penstock.Connection) -> None:
    db.execute(
        "CREATE STREAM s INTO r AS SELECT _wstart, count(*) AS n, sum(v) AS v FROM m PARTITION BY tbname INTERVAL(10s)"
    )
    put(db, ("t", 1_000, 1), ("t", 31_000, 3), ("t", 2_000, 99))
    db.drain()
    assert db.query("SELECT n, v FROM r").rows == [(1, 1.0)]
    db.execute(f"RECALCULATE STREAM s FROM {T0} TO {T0 + 9_999}")
    db.drain()
    assert db.query("SELECT n, v FROM r").rows == [(2, 100.0)]


@pytest.mark.parametrize("by", ["tbname", "g"])
def test_a_drain_waits_for_history_that_is_filled_beside(db: penstock.Connection, by: str) -> None:
    db.write(
        "m", [{"tbname": f"t{i % 5}", "ts": T0 + 100 * i, "v": 1.0, "g": 1} for i in range(5_000)]
    )
    db.execute(
        f"CREATE STREAM s FILL_HISTORY 1 ASYNC INTO r AS SELECT _wstart, sum(v) AS v FROM m PARTITION BY {by} INTERVAL(10s)"
    )
    db.write(
        "m", [{"tbname": f"t{i % 5}", "ts": T0 + 600_000 + i, "v": 1.0, "g": 1} for i in range(100)]
    )
    db.execute("FLUSH STREAM s")
    db.drain()
    assert figures(db, "s", "status", "message") == ("ready", "")
    assert db.query("SELECT sum(v) FROM r").rows == [(5_100.0,)]


def test_a_replacement_that_does_not_plan_leaves_the_stream_running(
    db: penstock.Connection,
) -> None:
    create = "CREATE {} STREAM s INTO r AS SELECT _wstart, {} AS n FROM m PARTITION BY tbname INTERVAL({})"
    db.execute(create.format("", "count(*)", "10s"))
    put(db, ("t", 1_000, 1), ("t", 2_000, 2))
    db.drain()
    shown = db.query("SHOW CREATE STREAM s").rows
    assert refused(db, create.format("OR REPLACE", "sum(nothing)", "10s")) == "E_UNKNOWN_COLUMN"
    assert refused(db, create.format("OR REPLACE", "count(*)", "0s")) == "E_INTERVAL_TOO_SMALL"
    assert refused(db, create.format("OR REPLACE", "count(*)", "20s")) == "E_STREAM_STATE"
    assert (db.query("SHOW CREATE STREAM s").rows, figures(db, "s", "status")) == (
        shown,
        ("ready",),
    )
    put(db, ("t", 3_000, 3), ("t", 31_000, 3))
    db.drain()
    assert db.query("SELECT n FROM r").rows == [(3,)]


@pytest.mark.parametrize("by", ["tbname", "g"])
def test_options_change_while_windows_stay(db: penstock.Connection, by: str) -> None:
    select = f"SELECT _wstart, count(*) AS n FROM m PARTITION BY {by} k INTERVAL(10s)"
    db.execute(f"CREATE STREAM s INTO r TAGS (k VARCHAR(16)) AS {select}")
    put(db, ("t", 1_000, 1), ("t", 2_000, 2))
    db.drain()
    assert refused(db, "ALTER STREAM s WATERMARK 5s") == "E_STREAM_STATE"
    db.execute("ALTER STREAM s IDLE_TIMEOUT 1h")
    assert "IDLE_TIMEOUT 1h" in db.query("SHOW CREATE STREAM s").rows[0][1]
    put(db, ("t", 3_000, 2))
    db.execute(f"CREATE OR REPLACE STREAM s ON_ERROR STOP INTO r TAGS (k VARCHAR(16)) AS {select}")
    put(db, ("t", 4_000, 2), ("t", 31_000, 2))
    db.drain()
    assert db.query("SELECT n FROM r").rows == [(4,)]
    # what changes the meaning of windows starts over, from what is stored or not at all
    other = select.replace("10s", "20s")
    assert (
        refused(db, f"CREATE OR REPLACE STREAM s INTO r TAGS (k VARCHAR(16)) AS {other}")
        == "E_STREAM_STATE"
    )
    assert (
        refused(
            db,
            f"CREATE OR REPLACE STREAM s FILL_HISTORY 1 INTO r AS {other.replace('n FROM', 'z FROM')}",
        )
        == "E_STREAM_STATE"
    )
    assert figures(db, "s", "status") == ("ready",)
    db.execute(
        f"CREATE OR REPLACE STREAM s FILL_HISTORY 1 TRIGGER AT_ONCE INTO r TAGS (k VARCHAR(16)) AS {other}"
    )
    put(db, ("t", 33_000, 2))
    db.drain()
    assert db.query("SELECT _wstart, n FROM r ORDER BY 1").rows[-1][1] == 2


@pytest.mark.long
def test_what_alter_changed_and_what_was_counted_outlive_the_jobs(own_mesh: MeshFactory) -> None:
    mesh = own_mesh(services=("kafka", "redis", "gateway", "store", "spark"))
    with penstock.connect(mesh.gateway_url, password=mesh.password, database="alt") as db:
        db.execute("CREATE DATABASE alt PARTITIONS 1")
        db.execute("CREATE STABLE m (ts TIMESTAMP, v DOUBLE) TAGS (g INT)")
        db.execute(
            "CREATE STREAM s INTO r AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(10s)"
        )
        put(db, ("t", 1_000, 1), ("t", 2_000, 2))
        eventually(lambda: figures(db, "s", "rows_in") == (2,))
        db.execute("ALTER STREAM s IDLE_TIMEOUT 1h")
        put(db, ("t", 3_000, 3))
        eventually(lambda: figures(db, "s", "rows_in") == (3,))
        db.execute("ALTER STREAM s IDLE_TIMEOUT 1s")
        mesh.wait_ready("spark", not_pid=mesh.kill("spark"))
        eventually(lambda: db.query("SELECT n FROM r").rows == [(3,)], 60)
        put(db, ("t", 31_000, 4))
        eventually(lambda: figures(db, "s", "rows_in", "rows_out", "status") == (4, 2, "ready"))
        assert db.query("SELECT n FROM r").rows == [(3,), (1,)]
        eventually(
            lambda: (
                'penstock_stream_rows_in{stream="alt.s"} 4.0' in metrics_kit.lines(mesh, "spark")
            )
        )


@pytest.mark.parametrize("by", ["tbname", "g"])
def test_a_database_is_made_again_with_other_partitions(db: penstock.Connection, by: str) -> None:
    stream = f"CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, count(*) AS n FROM m PARTITION BY {by} k INTERVAL(10s)"
    db.execute(stream)
    put(db, *((f"t{i}", i, 1) for i in range(20)))
    db.drain()
    for partitions in (3, 1, 4):
        db.execute(f"DROP DATABASE {db.database}")
        db.execute(f"CREATE DATABASE {db.database} PARTITIONS {partitions}")
        db.execute("CREATE STABLE m (ts TIMESTAMP, v DOUBLE) TAGS (g INT)")
        assert db.query("SELECT count(*) FROM m").rows == [(0,)]
        db.execute(stream)
        put(db, *((f"t{i}", 5, 1) for i in range(8)))
        db.drain()
        assert db.query("SELECT count(*) FROM m").rows == [(8,)]
        assert db.query("SELECT sum(n) FROM r").rows == [(8,)]
        eventually(lambda: figures(db, "s", "status", "rows_in") == ("ready", 8))


def test_a_table_of_its_own_topic_is_made_again_with_other_partitions(
    db: penstock.Connection,
) -> None:
    for partitions in (2, 3, 1):
        db.execute(
            f"CREATE TABLE own (ts TIMESTAMP, v DOUBLE) WITH (topic='own', partitions={partitions})"
        )
        db.write("own", [{"ts": T0, "v": partitions}])
        assert db.query("SELECT v FROM own").rows == [(float(partitions),)]
        db.execute("DROP TABLE own")
