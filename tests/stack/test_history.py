"""FILL_HISTORY in stretches: others go on meanwhile, progress shows, and whatever dies in between
loses and doubles nothing.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import penstock
from penstock import names
from penstock.catalog.model import StreamEntry, Table
from penstock.records import ControlRecord
from penstock.windows.kernel import EARLIEST
from tests.nightly import NIGHTLY
from tests.stack.conftest import MeshFactory, eventually
from tests.stack.operator_kit import OperatorKit, meter_rows, operator_kit, windows_of

_WINDOWS = "_wstart AS ts, count(*) AS n, avg(current) AS c, max(voltage) AS v"
_TABLES = 20


def progress(kit: OperatorKit, stream: StreamEntry) -> list[int]:
    """Percent of history filled, for each partition that is at it."""
    said = kit.redis.hgetall(names.stream_status(stream.id))
    return [int(v) for f, v in said.items() if str(f).startswith(names.FILLING)]


def check(kit: OperatorKit, target: Table, rows: pl.DataFrame, key: str) -> None:
    """Every window is there, right, and in the log once."""
    expected = windows_of(rows, key=key).select(
        pl.col("wstart").alias("ts"), pl.col("n").cast(pl.Int64), "c", "v"
    )
    found = kit.results(target).select("ts", "n", "c", "v")
    assert_frame_equal(
        found.sort("ts", "c", "v", "n"), expected.sort("ts", "c", "v", "n"), rel_tol=1e-9
    )
    assert kit.repeats(target) == 0


@pytest.mark.long
@pytest.mark.parametrize("key", ["tbname", "location"])
def test_history_is_filled_over_kills_while_new_rows_flow(tmp_path: Path, key: str) -> None:
    with operator_kit(tmp_path / "mesh", history_rows="40", epoch_seconds="6") as kit:
        kit.database("h", partitions=2)
        source = kit.stable("h")
        _, beside = kit.stream(
            f"CREATE STREAM beside TRIGGER AT_ONCE INTO h.beside AS SELECT {_WINDOWS} FROM h.meters PARTITION BY tbname INTERVAL(10s)",
            "h",
        )
        rows = meter_rows(_TABLES, 16_000)
        kit.write(source, rows[:8000])
        kit.drain("h")
        query = f"SELECT {_WINDOWS} FROM h.meters PARTITION BY {key} INTERVAL(10s)"
        stream, target = kit.stream(
            f"CREATE STREAM past TRIGGER AT_ONCE FILL_HISTORY 1 ASYNC INTO h.past AS {query}",
            "h",
            wait=False,
        )
        eventually(lambda: any(0 < p < 100 for p in progress(kit, stream)), 60)
        kit.write(source, rows[8000:12_000])
        eventually(lambda: kit.results(beside)["n"].sum() == 12_000, 60)
        assert progress(kit, stream), "new rows were to flow while history is filled"
        for _ in range(3 if NIGHTLY else 1):
            before = sum(progress(kit, stream))
            pid = kit.mesh.kill("spark")
            kit.mesh.wait_ready("spark", not_pid=pid)
            eventually(lambda b=before: sum(progress(kit, stream)) != b, 60)  # type: ignore[misc]
        doomed = ("d1", "d2", "d7")
        low = 1_700_000_005_000
        high = 1_700_000_011_000
        kit.control(
            source.topic,
            ControlRecord("delete", table=source.id, tables=doomed, low=low, high=high),
        )
        kit.write(source, rows[12_000:])
        eventually(lambda: not progress(kit, stream), 180)
        kit.drain("h")
        gone = pl.col("tbname").is_in(doomed) & pl.col("ts").is_between(low, high)
        for table, by in ((target, key), (beside, "tbname")):
            check(kit, table, rows.filter(~gone), by)


@pytest.mark.long
def test_a_stretch_that_kills_is_given_up_with_its_stream_alone(tmp_path: Path) -> None:
    # what the first stretch's record says, and no other
    with operator_kit(tmp_path / "mesh", failpoints=f'value:exit:"low": {EARLIEST}') as kit:
        kit.database("h", partitions=1)
        source = kit.stable("h")
        windows = f"SELECT {_WINDOWS} FROM h.meters PARTITION BY tbname INTERVAL(10s)"
        _, beside = kit.stream(
            f"CREATE STREAM beside TRIGGER AT_ONCE INTO h.beside AS {windows}", "h"
        )
        rows = meter_rows(_TABLES, 2000)
        kit.write(source, rows[:1000])
        stream, _ = kit.stream(
            f"CREATE STREAM past TRIGGER AT_ONCE FILL_HISTORY 1 INTO h.past AS {windows}",
            "h",
            wait=False,
        )
        failed = f"failed:{source.topic}:0"
        eventually(lambda: kit.redis.hexists(names.stream_status(stream.id), failed), 120)
        eventually(lambda: not progress(kit, stream), 60)
        kit.write(source, rows[1000:])
        kit.drain("h")
        check(kit, beside, rows, "tbname")
        assert [letter.code for letter in kit.dead_letters(source.topic)] == ["E_POISON"]


@pytest.mark.long
def test_a_stream_is_changed_flushed_and_drained_while_it_fills_its_history(
    own_mesh: MeshFactory,
) -> None:
    """Once in the scan of the source partition, once behind the exchange."""
    mesh = own_mesh(
        services=("kafka", "redis", "gateway", "store", "spark"),
        environment={"PENSTOCK_SPARK_HISTORY_ROWS": "20"},
    )
    rows = (
        meter_rows(_TABLES, 4000)
        .with_columns(pl.lit(1).alias("g"))
        .select("tbname", "ts", "voltage", "g")
        .to_dicts()
    )
    for by in ("tbname", "g"):
        with penstock.connect(
            mesh.gateway_url,
            password=mesh.password,
            database=f"by_{by}",
            options=penstock.ConnectionOptions(timeout=300),
        ) as db:
            db.execute(f"CREATE DATABASE {db.database} PARTITIONS 2")
            db.execute("CREATE STABLE m (ts TIMESTAMP, voltage INT) TAGS (g INT)")
            db.write("m", rows[:3900])
            db.drain()

            def filling(db: penstock.Connection = db) -> bool:
                where = f"stream_name = 's' AND source_db = '{db.database}'"
                return str(
                    db.query(
                        f"SELECT message FROM information_schema.ins_streams WHERE {where}"
                    ).rows[0][0]
                ).startswith("history ")

            def check(
                target: str, seconds: int, db: penstock.Connection = db, by: str = by
            ) -> None:
                windows = f"_wstart, count(*) AS n, sum(voltage) AS v FROM m PARTITION BY {by} INTERVAL({seconds}s)"
                found = db.query(f"SELECT _wstart, n, v FROM {target}")
                expected = db.query(f"SELECT {windows}")
                assert sorted(found.rows) == sorted(expected.rows)

            create = (
                "CREATE {} STREAM s FILL_HISTORY 1 ASYNC {} INTO {} AS SELECT _wstart, count(*) AS n, sum(voltage) AS v"
                f" FROM m PARTITION BY {by} INTERVAL({{}}s)"
            )
            db.execute(create.format("", "", "r", 10))
            eventually(filling)
            db.write("m", rows[3900:])
            db.execute("ALTER STREAM s IDLE_TIMEOUT 1h")
            db.execute("FLUSH STREAM s")
            db.execute(create.format("OR REPLACE", "ON_ERROR STOP", "r", 10))
            assert filling(), "all of it was to happen while history is filled"
            db.drain()
            assert not filling()
            check("r", 10)
            db.execute(create.format("OR REPLACE", "", "r2", 20))
            eventually(filling)
            db.execute(create.format("OR REPLACE", "TRIGGER AT_ONCE", "r3", 30))
            db.drain()
            check("r3", 30)
            db.execute("DROP STREAM s")
