"""Which partitions the store reads, from where, and what it does when topics come and go."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from penstock import names
from penstock.catalog.model import Database
from penstock.storage import segments
from services.store.redis_reports import RedisReports
from services.store.topic_follower import TopicFollower
from tests.unit.services.kit import MemoryReader
from tests.unit.services.store.kit import PLAIN, TOPIC, MemoryStore


class Following(MemoryStore):
    def __init__(self, directory: Path, *entries: Any) -> None:
        super().__init__(directory, *entries)
        self.follower = TopicFollower(
            self.reader, self.partitions, self.log, self.redis, RedisReports()
        )
        self.memory_reader = MemoryReader(self.log, {})

    def step(self) -> dict[tuple[str, int], int]:
        """Follow the catalog; say what is read from where."""
        reader: Any = self.memory_reader
        self.follower.step(reader)
        return dict(self.memory_reader.offsets)


def test_a_topic_is_read_once_kafka_has_it(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.catalog.revision = 5
    assert following.step() == {}
    following.log.partitions[TOPIC] = 1
    assert following.step() == {(TOPIC, 0): 0}
    assert following.memory_redis.texts[names.store_followed()] == "5"


def test_reading_begins_where_segments_end(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.put(PLAIN, ("plain", 1_000, 1, "a"))
    following.flush()
    again = Following(tmp_path)
    again.catalog.revision = 1
    again.log.partitions[TOPIC] = 1
    assert again.step() == {(TOPIC, 0): 1}


def test_reading_begins_where_the_log_does_when_records_are_missing(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.catalog.revision = 1
    following.log.partitions[TOPIC] = 1
    following.log.starts[TOPIC, 0] = 7
    assert following.step() == {(TOPIC, 0): 7}


def test_segments_that_were_never_committed_are_removed(tmp_path: Path) -> None:
    following = Following(tmp_path)
    folder = Path(segments.directory(following.partitions.root, PLAIN.id, 0, TOPIC))
    folder.mkdir(parents=True)
    left = folder / "00000000000000000005-00000000000000000009.parquet"
    left.write_bytes(b"x")
    following.catalog.revision = 1
    following.log.partitions[TOPIC] = 1
    following.step()
    assert not left.exists()


def test_nothing_is_asked_until_the_catalog_changes(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.catalog.revision = 1
    following.log.partitions[TOPIC] = 1
    following.step()
    del following.log.partitions[TOPIC]
    assert following.step() == {(TOPIC, 0): 0}


def test_a_dropped_database_is_read_no_more(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.catalog.revision = 1
    following.log.partitions[TOPIC] = 1
    following.step()
    for entry in list(following.catalog.tables()) + list(following.catalog.databases()):
        following.catalog.remove(entry.id)
    following.catalog.revision = 2
    assert following.step() == {}
    assert following.partitions.tails() == {}
    assert following.memory_redis.texts[names.store_followed()] == "2"


def test_a_topic_that_is_anothers_now_begins_anew(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.catalog.revision = 1
    following.log.partitions[TOPIC] = 1
    following.step()
    tail = following.partitions.open(TOPIC, 0)
    for entry in list(following.catalog.tables()) + list(following.catalog.databases()):
        following.catalog.remove(entry.id)
    following.catalog.put(Database(500, "d", partitions=1))
    following.catalog.put(dataclasses.replace(PLAIN, id=501))
    following.catalog.revision = 2
    assert following.step() == {(TOPIC, 0): 0}
    assert following.partitions.open(TOPIC, 0) is not tail


def test_earlier_generations_are_read_as_well(tmp_path: Path) -> None:
    database = Database(1, "d", partitions=2, former=((3,),))
    table = dataclasses.replace(PLAIN, topic=database.topic, partitions=2)
    following = Following(tmp_path, database, table)
    following.catalog.revision = 1
    following.log.partitions |= {TOPIC: 1, database.topic: 2}
    assert following.step().keys() == {(TOPIC, 0), (database.topic, 0), (database.topic, 1)}


def test_redis_is_told_later_when_it_is_away(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.catalog.revision = 1
    following.log.partitions[TOPIC] = 1
    following.memory_redis.down = True
    assert following.step() == {(TOPIC, 0): 0}
    following.memory_redis.down = False
    following.catalog.revision = 2
    following.step()
    assert following.memory_redis.texts[names.store_followed()] == "2"
