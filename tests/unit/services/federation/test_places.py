"""How far a table holds a producer's rows already, and the appenders that go on from there."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.model import Database, Table
from penstock.errors import BusError, PenstockError
from penstock.records import ControlRecord, encode
from penstock.repartition.write_gate import Gate
from penstock.storage.segments import Position
from services.federation import places
from services.federation.appender import LogAppender
from services.federation.appenders import Appenders
from services.federation.leaders import LeaderAppender
from services.federation.places import read_places
from tests.unit.services.federation.kit import STABLE, TOPIC, Deployment, record
from tests.unit.services.tables.kit import stream_table

TWO = dataclasses.replace(STABLE, partitions=2)


class Here(Deployment):
    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, table: Table = TWO
    ) -> None:
        super().__init__(directory, Database(1, "d", partitions=2), table)
        self.table = table
        self.segments = str(directory / "segments")
        monkeypatch.setattr(places, "Reader", self._reader)
        leaders: Any = None
        self.halted = False
        self.appenders = Appenders(
            "kafka", self.segments, self.log, self.log, leaders, Gate(lambda topic: self.halted)
        )

    def _reader(self, bootstrap: str, offsets: Any, **_: Any) -> Any:
        return self.log.reader(bootstrap, offsets)

    def stamp(self, partition: int, offset: int, ordinal: int, producer: str = "p") -> None:
        value = record(
            self.table, ("d1", 1, 1, 1), producer=producer, offset=offset, ordinal=ordinal
        )
        self.log.append(TOPIC, value, None, partition)

    def places(self, producer: str = "p") -> dict[int, tuple[int, int]]:
        return read_places("kafka", self.log, self.segments, 1, self.table, producer)

    def open(self, producer: str | None = "p") -> Any:
        appender, held = self.appenders.open(
            self.table, producer, 1, lambda: self.catalog.table_by_id(self.table.id)
        )
        return appender, held


def rows(*offsets: int) -> pa.Table:
    count = len(offsets)
    return pa.table(
        {
            "tbname": ["d1"] * count,
            "ts": pa.array(range(count), pa.timestamp("ms", "UTC")),
            "v": pa.array(offsets, pa.int32()),
            "_offset": pa.array(offsets, pa.int64()),
            "_row": pa.array([0] * count, pa.int64()),
        }
    )


def ignore(topic: str, partition: int, offset: int) -> None:
    """A record has its place."""


def test_a_producer_that_is_new_has_no_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch)
    assert here.places() == {}
    here.stamp(0, 5, 0, producer="other")
    assert here.places() == {}


def test_the_newest_place_of_each_partition_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch)
    here.stamp(0, 5, 2)
    here.stamp(0, 5, 1)
    here.stamp(0, 4, 9)
    here.stamp(1, 3, 0)
    here.stamp(1, 9, 0, producer="p2")
    assert here.places() == {0: (5, 2), 1: (3, 0)}


def test_deletes_of_a_producer_have_places_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch)
    control = ControlRecord("delete", table=TWO.id, low=0, high=1, producer="p", offset=8)
    here.log.append(TOPIC, encode(dataclasses.replace(control, ordinal=0)), None, 1)
    here.log.append(TOPIC, b"\0\0\0\0\1 p junk", None, 1)
    assert here.places() == {1: (8, 0)}


def test_what_is_in_segments_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch)
    here.stamp(0, 5, 0)
    here.stamp(0, 6, 0)
    Position(TOPIC, 0, 1, 2, {"p": (7, 1)}).save(here.segments)
    assert here.places() == {0: (7, 1)}
    here.stamp(0, 9, 0)
    assert here.places() == {0: (9, 0)}
    here.log.starts[TOPIC, 0] = 3
    assert here.places() == {0: (7, 1)}, "the log begins behind it"


# -------------------------------------------------------------------- appenders


def test_an_appender_goes_on_behind_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, dataclasses.replace(STABLE, partitions=1))
    appender, held = here.open()
    assert held == {}
    assert appender.append(rows(1, 2), ignore).result() == 2
    again, held = here.open()
    assert held == {0: (2, 0)}
    assert again.append(rows(1, 2, 3), ignore).result() == 1
    assert here.places() == {0: (3, 0)}


def test_a_newer_connection_fences_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch)
    first, _ = here.open()
    other, _ = here.open("q")
    here.open()
    with pytest.raises(BusError) as fenced:
        first.append(rows(1), ignore)
    assert fenced.value.code == "E_FENCED"
    assert other.append(rows(1), ignore).result() == 1


def test_places_are_looked_up_after_a_write_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, dataclasses.replace(STABLE, partitions=1))
    first, _ = here.open()
    here.log.refusal = BusError("Kafka is away")
    with pytest.raises(BusError):
        first.append(rows(1), ignore).result()
    here.log.refusal = None
    again, held = here.open()
    assert held == {}
    assert again.append(rows(1), ignore).result() == 1


def test_rows_of_nobody_in_particular_have_no_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, dataclasses.replace(STABLE, partitions=1))
    one, held = here.open(None)
    two, _ = here.open(None)
    assert held == {} and isinstance(one, LogAppender)
    for appender in (one, two):
        assert appender.append(rows(1), ignore).result() == 1
    assert len(here.log.values(TOPIC)) == 2


def test_rows_wait_while_partitions_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here(tmp_path, monkeypatch)
    appender, _ = here.open()
    here.halted = True
    with pytest.raises(PenstockError) as moving:
        appender.append(rows(1), ignore)
    assert moving.value.code == "E_MOVING"


def test_stream_tables_are_written_by_way_of_their_leaders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, stream_table())
    appender, held = here.open()
    assert isinstance(appender, LeaderAppender) and held == {}
