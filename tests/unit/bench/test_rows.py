"""What the bench publishes is what it compares with, and what it reports is what it measured."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pyruhvro
import pytest

from bench import load, rows, windows
from bench.report import Line, Recorder, median_line
from bench.rows import Fleet
from bench.stage import Drained
from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec
from penstock.sql.plan import Column
from penstock.types import ColumnType


def _table(*columns: tuple[str, str]) -> Table:
    version = TableVersion(
        100,
        tuple(Column(n, ColumnType(k)) for n, k in columns),
        (Column("site", ColumnType("INT")),),
    )
    return Table(1, "b", "meters", "stable", "in.b", 4, "ms", (version,))


METERS = _table(("ts", "TIMESTAMP"), ("current", "DOUBLE"), ("voltage", "INT"), ("phase", "DOUBLE"))
LOAD = _table(("ts", "TIMESTAMP"), ("seq", "BIGINT"), ("current", "DOUBLE"), ("voltage", "INT"))


def test_batches_decode_to_the_rows_they_were_made_of() -> None:
    frame = next(Fleet(100).frames(1, 0, 10))
    values = rows.batches(frame, METERS, 7)
    decoded = TableCodec(METERS).decode(values)
    assert not decoded.bad
    assert len(values) == math.ceil(frame.height / 7)
    assert decoded.rows.select(frame.columns).equals(frame)


def test_plain_records_hold_a_row_each() -> None:
    frame = next(Fleet(100).frames(0, 0, 3))
    found = pl.DataFrame(pyruhvro.deserialize_array(rows.plain(frame), json.dumps(rows.PLAIN)))
    assert found["current"].equals(frame["current"]) and found.height == frame.height


def test_a_fleet_writes_every_table_once_a_sweep_and_its_windows_are_whole() -> None:
    fleet = Fleet(50)
    sweeps = fleet.sweeps(10_000)
    wanted = rows.expected(fleet, sweeps)
    assert sweeps % 100 == 0
    assert wanted["n"].unique().to_list() == [100]
    assert wanted["n"].sum() == sweeps * 50
    assert wanted.height == 50 * sweeps // 100


def test_expected_windows_of_two_rounds_are_those_of_both() -> None:
    fleet = Fleet(20)
    parts = pl.concat([rows.expected(fleet, 100), rows.expected(fleet, 200, first=100)]).sort(
        "tbname", "wstart"
    )
    assert parts.equals(rows.expected(fleet, 300))


@pytest.mark.parametrize("batched", [False, True])
def test_a_load_has_each_row_once_in_the_record_it_names(batched: bool) -> None:
    made = load.make(2000, 0.5, LOAD, batched=batched, partitions=3)
    decoded = TableCodec(LOAD).decode(made.values).rows
    assert sorted(decoded["seq"].to_list()) == list(range(1000))
    by_seq = decoded.sort("seq")
    assert by_seq["_record"].cast(pl.Int64).equals(made.rows["record"])
    assert len(made.due) == len(made.values) == len(made.partitions)
    assert (np.diff(made.due) >= 0).all()
    assert (len(made.values) < 1000) is batched


def test_plain_loads_hold_the_same_rows() -> None:
    made = load.make(2000, 0.5, None, batched=True, partitions=3)
    found = (
        pl.DataFrame(pyruhvro.deserialize_array(made.values, json.dumps(load.PLAIN_BATCH)))
        .explode("rows")
        .unnest("rows")
    )
    assert sorted(found["seq"].to_list()) == list(range(1000))


def test_a_rate_leaves_out_the_start_up() -> None:
    drained = Drained(
        np.array([0.0, 3.0, 4.0, 5.0, 9.0]), np.array([0, 100, 200, 300, 300]), {"realtime"}
    )
    assert drained.rate == 100.0
    assert drained.start_up == 3.0
    assert drained.steady == 100.0


def test_lines_are_plain_and_the_table_has_them(tmp_path: Path) -> None:
    record = Recorder("quick", "spine", tmp_path)
    record.add(
        Line("x", 12.345, "ms", baseline=24.69, mode="realtime"),
        median_line("y", [3.0, 1.0, 2.0], "rows/s"),
    )
    record.close()
    assert (
        record.lines[0].text()
        == "bench: name=x value=12.3 unit=ms baseline=24.7 ratio=0.5 mode=realtime"
    )
    assert record.lines[1].text() == "bench: name=y value=2 unit=rows/s baseline=- ratio=- mode=-"
    assert [
        json.loads(line)["name"] for line in (tmp_path / "results.jsonl").read_text().splitlines()
    ] == ["x", "y"]
    assert "| y | 2 | rows/s | - | - | - | 3 / 1 / 2 |" in (tmp_path / "RESULTS.md").read_text()


@pytest.mark.parametrize(
    "kind", ["interval_window_close", "sliding", "session", "state", "event", "count", "filter"]
)
def test_every_window_kind_has_a_plan(kind: str) -> None:
    assert (windows.plan(kind).window is None) is (kind == "filter")


def test_a_run_of_some_parts_keeps_the_lines_of_the_others(tmp_path: Path) -> None:
    first = Recorder("quick", "", tmp_path)
    first.add(Line("x", 1.0, "ms"), Line("y", 2.0, "ms"))
    first.close()
    second = Recorder("quick", "spine", tmp_path, keep=True)
    second.add(Line("y", 3.0, "ms"))
    second.close()
    table = (tmp_path / "RESULTS.md").read_text()
    assert "| x | 1 |" in table and "| y | 3 |" in table and "| y | 2 |" not in table
