"""What earlier builds wrote is opened by this one: a file of every version of every format is kept
in `data/`.

When a version is raised, `python -m tests.unit.formats.make` adds the new files and the old ones
stay.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from penstock.catalog import entries
from penstock.codec import TableCodec
from penstock.records import decode
from penstock.storage import backup_list, segments, statefile
from penstock.storage.segments import Position
from penstock.storage.vault import Vault
from spark_jobs.state import StateFiles
from tests.unit.formats.make import (
    DATA,
    DELTA,
    ENTRIES,
    FRAME,
    FULL,
    POSITION,
    RECORDS,
    ROWS,
    TABLE,
)


def test_a_file_of_every_version_is_kept() -> None:
    for name, newest in (
        ("state", statefile.VERSION),
        ("segment", segments.FORMAT_VERSION),
        ("vault", backup_list.VERSION),
    ):
        for version in range(1, newest + 1):
            assert (DATA / f"{name}.v{version}").is_dir(), (
                f"run `python -m tests.unit.formats.make` for {name} v{version}"
            )
    assert (DATA / f"position.v{segments.FORMAT_VERSION}.json").exists()


@pytest.mark.parametrize("version", range(1, statefile.VERSION + 1))
def test_state(version: int, tmp_path: Path) -> None:
    shutil.copytree(DATA / f"state.v{version}", tmp_path / "s")
    found = StateFiles(str(tmp_path / "s")).load()
    assert found is not None
    assert (found.next, found.time) == (DELTA.next, DELTA.time)
    assert found.ends == {**FULL.ends, **DELTA.ends} and found.seen == {**FULL.seen, **DELTA.seen}
    assert found.streams == FULL.streams
    assert [d.full for d in found.deltas[7]] == [True, False]
    assert_frame_equal(found.deltas[7][0].frames["x"], FRAME)


def test_catalog() -> None:
    found = [
        entries.from_record(entries.read((DATA / f"catalog.v1/{n}.avro").read_bytes()))
        for n in range(len(ENTRIES))
    ]
    assert found == list(ENTRIES)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_records(record: object) -> None:
    value = (DATA / f"records.v1/{type(record).__name__}.avro").read_bytes()
    assert decode(type(record), value) == record  # type: ignore[type-var]


def test_rows() -> None:
    found = TableCodec(TABLE).decode([(DATA / "rows.v1.avro").read_bytes()]).rows
    assert_frame_equal(found.select(ROWS.columns), ROWS, check_dtypes=False)


@pytest.mark.parametrize("version", range(1, segments.FORMAT_VERSION + 1))
def test_segments(version: int, tmp_path: Path) -> None:
    (tmp_path / "positions").mkdir()
    shutil.copy(DATA / f"position.v{version}.json", tmp_path / "positions" / "in.d-1.99.json")
    assert Position.load(str(tmp_path), "in.d", 1, 99) == POSITION
    found = segments.segments(str(DATA / f"segment.v{version}"))
    assert [(s.first, s.last, s.rows, s.low, s.high, s.fresh) for s in found] == [
        (3, 3, 1, 5, 5, True)
    ]
    rows = segments.read(found, time_column="ts")
    assert rows is not None and rows.select("tbname", "ts").rows() == [("a", 5)]
    assert rows.schema["_op"] == pl.Int8


@pytest.mark.parametrize("version", range(1, backup_list.VERSION + 1))
def test_backups(version: int) -> None:
    kept = Vault(str(DATA / f"vault.v{version}"))
    (backup,) = kept.backups("q.1")
    assert (backup.name, backup.facts, kept.faults(backup)) == (
        "00000000000001000-000000002",
        {"n": 1},
        [],
    )
    assert kept.read(backup, backup.items[0]) == b"bytes"
