"""What goes and what stays: rows over their KEEP, old records, and files of what was dropped."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pytest

from penstock.catalog.model import FOREIGN, Database, Table
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.sql.plan import Duration
from penstock.storage import segments
from penstock.storage.segments import Position
from services.store.retention import Retention, expiry
from tests.unit.services.store.kit import DATABASE, PLAIN, STABLE, TOPIC, MemoryStore

DAY = 86_400.0
OLD = time.time() - 30 * DAY


class Keeping(MemoryStore):
    def __init__(self, directory: Path, *entries: object) -> None:
        super().__init__(directory, *entries)  # type: ignore[arg-type]
        self.retention = Retention(self.settings, self.reader, self.partitions, self.log)

    def files(self, table: Table) -> list[Path]:
        where = Path(segments.directory(self.partitions.root, table.id, 0, TOPIC))
        return sorted(where.glob("*.parquet"))

    def age(self, table: Table) -> None:
        for path in self.files(table):
            os.utime(path, (OLD, OLD))


def ticks(ago: float) -> int:
    return int((time.time() - ago) * 1000)


def test_a_tables_keep_goes_before_its_databases() -> None:
    short = dataclasses.replace(PLAIN, keep=Duration(1, "h"))
    database = Database(1, "d", keep=Duration(1, "d"))
    catalog = Catalog([database, short, STABLE])
    assert expiry(catalog, short, 10_000.0) == 10_000_000 - 3_600_000
    assert expiry(catalog, STABLE, 100_000.0) == 100_000_000 - 86_400_000
    assert expiry(Catalog([DATABASE, PLAIN]), PLAIN, 10_000.0) is None
    nano = dataclasses.replace(short, precision="ns")
    assert expiry(catalog, nano, 10_000.0) == (10_000 - 3_600) * 10**9


def test_rows_without_a_time_of_their_own_are_never_over_a_keep() -> None:
    database = Database(1, "d", keep=Duration(1, "d"))
    for fixed, expected in (("true", None), ("false", 100_000_000 - 86_400_000)):
        table = dataclasses.replace(PLAIN, options={FOREIGN: f'{{"fixed_time":{fixed}}}'})
        assert expiry(Catalog([database, table]), table, 100_000.0) == expected


def test_segments_over_their_keep_are_removed_and_others_stay(tmp_path: Path) -> None:
    short = dataclasses.replace(PLAIN, keep=Duration(1, "d"))
    keeping = Keeping(tmp_path, DATABASE, short, STABLE)
    keeping.put(short, ("plain", ticks(3 * DAY), 1, "a"))
    keeping.put(STABLE, ("d1", ticks(3 * DAY), 1, "a", 1))
    keeping.flush()
    keeping.put(short, ("plain", ticks(2 * DAY), 2, "b"), ("plain", ticks(0), 3, "c"))
    keeping.flush()
    keeping.retention.sweep()
    assert len(keeping.files(short)) == 1, "what has one row left stays whole"
    assert len(keeping.files(STABLE)) == 1


def test_records_that_are_long_in_segments_are_deleted(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    keeping.put(PLAIN, ("plain", 1_000, 1, "a"))
    keeping.flush()
    keeping.age(PLAIN)
    keeping.put(PLAIN, ("plain", 2_000, 2, "b"))
    keeping.flush()
    keeping.retention.sweep()
    assert keeping.log.starts == {(TOPIC, 0): 1}, "the newer segment's stay"
    keeping.log.starts[TOPIC, 0] = 9
    keeping.retention.sweep()
    assert keeping.log.starts == {(TOPIC, 0): 9}, "what is gone already is not asked for"


def test_records_that_are_in_no_segment_stay(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    keeping.put(PLAIN, ("plain", 1_000, 1, "a"))
    keeping.retention.sweep()
    assert keeping.log.starts == {}


def test_records_of_earlier_generations_go_by_their_age(tmp_path: Path) -> None:
    database = Database(1, "d", partitions=1, former=((3,),))
    table = dataclasses.replace(PLAIN, topic=database.topic)
    keeping = Keeping(tmp_path, database, table)
    keeping.clock.advance(0)
    for _ in range(3):
        keeping.log.append(TOPIC, b"x")
    keeping.log.records[TOPIC, 0][0] = (int(OLD * 1000), None, b"x")
    keeping.log.records[TOPIC, 0][1] = (int(OLD * 1000), None, b"x")
    keeping.retention.sweep()
    assert keeping.log.starts == {(TOPIC, 0): 2}


def test_what_the_catalog_no_longer_knows_is_removed(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    keeping.put(PLAIN, ("plain", 1_000, 1, "a"))
    keeping.put(STABLE, ("d1", 1_000, 1, "a", 1))
    keeping.flush()
    root = Path(keeping.partitions.root)
    Position("in.gone", 0, 3).save(str(root))
    newer = root / "table=100000"
    newer.mkdir()
    keeping.catalog.remove(PLAIN.id)
    keeping.retention.sweep()
    assert not (root / f"table={PLAIN.id}").exists()
    assert (root / f"table={STABLE.id}").exists()
    assert newer.exists(), "the catalog here may not have come so far"
    topics = {p.stem for p in (root / "positions").glob("*.json")}
    assert len(topics) == 1 and next(iter(topics)).startswith(TOPIC)


def test_segments_of_earlier_generations_go_once_no_query_reads_them(tmp_path: Path) -> None:
    database = Database(1, "d", partitions=1, former=((3,),))
    table = dataclasses.replace(PLAIN, topic=database.topic)
    keeping = Keeping(tmp_path, database, table)
    folder = Path(keeping.partitions.root) / f"table={PLAIN.id}"
    first = folder / "partition=0"
    second = folder / "generation=2"
    for path in (first, second):
        path.mkdir(parents=True)
    keeping.retention.sweep()
    assert first.exists(), "a query may be at it"
    os.utime(first, (OLD, OLD))
    keeping.retention.sweep()
    assert not first.exists() and second.exists()


def test_a_kafka_that_is_away_leaves_it_to_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(tmp_path)
    keeping.put(PLAIN, ("plain", 1_000, 1, "a"))
    keeping.flush()
    keeping.age(PLAIN)
    keeping.log.refusal = BusError("Kafka is away")
    keeping.retention.sweep()
    assert keeping.log.starts == {}
    keeping.log.refusal = None
    keeping.retention.sweep()
    assert keeping.log.starts == {(TOPIC, 0): 1}
