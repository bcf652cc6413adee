"""FILL_HISTORY in stretches: others go on meanwhile, progress shows, and whatever dies in between loses and doubles nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from penstock import names
from penstock.catalog.model import StreamEntry, Table
from penstock.records import ControlRecord
from penstock.windows.kernel import EARLIEST
from tests.nightly import NIGHTLY
from tests.stack.conftest import eventually
from tests.stack.operator_kit import OperatorKit, meter_rows, operator_kit, windows_of

_WINDOWS = "_wstart AS ts, count(*) AS n, avg(current) AS c, max(voltage) AS v"
_TABLES = 20


def progress(kit: OperatorKit, stream: StreamEntry) -> list[int]:
    """Percent of history filled, for each lane that is at it."""
    said = kit.redis.hgetall(names.stream_status(stream.id))
    return [int(v) for f, v in said.items() if str(f).startswith(names.FILLING)]


def check(kit: OperatorKit, target: Table, rows: pl.DataFrame, key: str) -> None:
    """Every window is there, right, and in the log once."""
    expected = windows_of(rows, key=key).select(pl.col("wstart").alias("ts"), pl.col("n").cast(pl.Int64), "c", "v")
    found = kit.results(target).select("ts", "n", "c", "v")
    assert_frame_equal(found.sort("ts", "c", "v", "n"), expected.sort("ts", "c", "v", "n"), rel_tol=1e-9)
    assert kit.repeats(target) == 0


@pytest.mark.parametrize("key", ["tbname", "location"])
def test_history_is_filled_over_kills_while_new_rows_flow(tmp_path: Path, key: str) -> None:
    with operator_kit(tmp_path / "mesh", history_rows="40", epoch_seconds="6") as kit:
        kit.database("h", partitions=2)
        source = kit.stable("h")
        _, beside = kit.stream(
            f"CREATE STREAM beside TRIGGER AT_ONCE INTO h.beside AS SELECT {_WINDOWS} FROM h.meters PARTITION BY tbname INTERVAL(10s)", "h"
        )
        rows = meter_rows(_TABLES, 16_000)
        kit.write(source, rows[:8000])
        kit.drain("h")
        query = f"SELECT {_WINDOWS} FROM h.meters PARTITION BY {key} INTERVAL(10s)"
        stream, target = kit.stream(f"CREATE STREAM past TRIGGER AT_ONCE FILL_HISTORY 1 ASYNC INTO h.past AS {query}", "h", wait=False)
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
        low, high = 1_700_000_005_000, 1_700_000_011_000
        kit.control(source.topic, ControlRecord("delete", table=source.id, tables=doomed, low=low, high=high))
        kit.write(source, rows[12_000:])
        eventually(lambda: not progress(kit, stream), 180)
        kit.drain("h")
        gone = pl.col("tbname").is_in(doomed) & pl.col("ts").is_between(low, high)
        for table, by in ((target, key), (beside, "tbname")):
            check(kit, table, rows.filter(~gone), by)


def test_a_stretch_that_kills_is_given_up_with_its_stream_alone(tmp_path: Path) -> None:
    # what the first stretch's record says, and no other
    with operator_kit(tmp_path / "mesh", failpoints=f'value:exit:"low": {EARLIEST}') as kit:
        kit.database("h", partitions=1)
        source = kit.stable("h")
        windows = f"SELECT {_WINDOWS} FROM h.meters PARTITION BY tbname INTERVAL(10s)"
        _, beside = kit.stream(f"CREATE STREAM beside TRIGGER AT_ONCE INTO h.beside AS {windows}", "h")
        rows = meter_rows(_TABLES, 2000)
        kit.write(source, rows[:1000])
        stream, _ = kit.stream(f"CREATE STREAM past TRIGGER AT_ONCE FILL_HISTORY 1 INTO h.past AS {windows}", "h", wait=False)
        failed = f"failed:{source.topic}:0"
        eventually(lambda: kit.redis.hexists(names.stream_status(stream.id), failed), 120)
        eventually(lambda: not progress(kit, stream), 60)
        kit.write(source, rows[1000:])
        kit.drain("h")
        check(kit, beside, rows, "tbname")
        assert [letter.code for letter in kit.dead_letters(source.topic)] == ["E_POISON"]
