"""Partition processors over a log in memory: catalog, worker and records as they are, Kafka and
Redis replaced by the little that a processor asks of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import polars as pl

from penstock import names
from penstock.bus import Batch, Delivery
from penstock.catalog.model import Database, StreamEntry, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec, schema_ids
from penstock.records import ControlRecord, encode
from penstock.runtime.failpoints import Failpoints
from penstock.sql import parse_one
from penstock.sql.plan import Column, StreamPlan
from penstock.sql.planner import TableDef, plan_stream
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.windows import KernelContext
from spark_jobs.codecs import Codecs
from spark_jobs.input import Records
from spark_jobs.processor.exchange import ExchangeProcessor
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.scan import ScanProcessor
from spark_jobs.settings import SparkSettings
from spark_jobs.worker import Worker
from tests.unit.sql.memory_view import MemoryView

T0 = 1_700_006_400_000
TOPIC = names.ingest_topic("db")
_DDL = "CREATE STABLE m (ts TIMESTAMP, a INT) TAGS (g INT)"
_COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("a", ColumnType("INT")))
_TAGS = (Column("g", ColumnType("INT")),)
SOURCE = Table(1, "db", "m", "stable", TOPIC, 1, "ms", (TableVersion(100, _COLUMNS, _TAGS),))


class Log:
    """Topics in memory; what is sent is there at once."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, int], list[tuple[int, bytes]]] = defaultdict(list)
        self.now = T0

    def append(self, topic: str, partition: int, value: bytes) -> int:
        self.now += 1
        self.records[topic, partition].append((self.now, value))
        return len(self.records[topic, partition]) - 1

    def batch(self, topic: str, partition: int, start: int, stop: int) -> Batch:
        part = self.records[topic, partition][start:stop]
        return Batch(
            topic,
            partition,
            np.arange(start, start + len(part), dtype=np.int64),
            np.array([time for time, _ in part], np.int64),
            [None] * len(part),
            [value for _, value in part],
        )

    # ---------------------------------------------------------------- as a publisher and an admin

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int = -1,
        on_delivery: Callable[[Any], None] | None = None,
    ) -> None:
        offset = self.append(topic, max(partition, 0), value)
        if on_delivery is not None:
            on_delivery(Delivery(topic, max(partition, 0), offset, self.now))

    def start_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 0)

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {place: len(self.records[place]) for place in places}

    def offsets_at(
        self, places: Iterable[tuple[str, int]], time: int
    ) -> dict[tuple[str, int], int]:
        later = {p: [i for i, (t, _) in enumerate(self.records[p]) if t >= time] for p in places}
        return {place: found[0] if found else -1 for place, found in later.items()}

    def reader(self, bootstrap: str, offsets: Mapping[tuple[str, int], int], **_: Any) -> Any:
        """Stands where `penstock.bus.Reader` does."""
        return _Reader(self, dict(offsets))


class _Reader:
    def __init__(self, log: Log, offsets: dict[tuple[str, int], int]) -> None:
        self._log = log
        self._offsets = offsets

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, most: int, timeout: float) -> list[Batch]:
        batches = [self._log.batch(t, p, o, o + most) for (t, p), o in self._offsets.items()]
        found = [b for b in batches if len(b)]
        self._offsets |= {(b.topic, b.partition): b.next_offset for b in found}
        return found


class Redis:
    """Hashes only."""

    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, str]] = defaultdict(dict)

    def hset(
        self,
        key: str,
        field: str = "",
        value: object = "",
        mapping: Mapping[str, object] | None = None,
    ) -> None:
        for name, given in (mapping or {field: value}).items():
            self.hashes[key][name] = str(given)

    def hdel(self, key: str, field: str) -> None:
        self.hashes[key].pop(field, None)

    def hscan_iter(self, key: str, count: int) -> Iterable[tuple[str, str]]:
        return iter(self.hashes[key].items())

    def smembers(self, key: str) -> set[str]:
        return set()

    def expire(self, key: str, seconds: int) -> None:
        pass

    def pipeline(self, transaction: bool) -> Redis:
        return self

    def execute(self) -> None:
        pass

    def __enter__(self) -> Redis:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class MemoryWorker(Worker):
    """A worker over a log in memory."""

    def __init__(self, directory: Path, log: Log) -> None:
        self.settings = SparkSettings(
            data_dir=directory, state_dir=str(directory / "state"), history_rows=4
        )
        self.driver = "driver"
        self.failpoints = Failpoints()
        self.memory_redis = Redis()
        self.redis: Any = self.memory_redis
        self.publisher: Any = log
        self.admin: Any = log
        self.guard: Any = SimpleNamespace(enforce=lambda: None)
        self.catalog: Any = SimpleNamespace(
            catalog=Catalog([Database(5, "db", partitions=1), SOURCE]),
            know=lambda ids: None,
            wait_for=lambda condition, timeout: None,
        )
        self.kernels = KernelContext()
        self._reports = ThreadPoolExecutor(1)
        self.codecs = Codecs(self.catalog)
        self._plans = {}

    def wait_for_reports(self) -> None:
        self._reports.submit(lambda: None).result()


class Mesh:
    """A topic's one partition, the exchange, and the processors that have read so far of them."""

    def __init__(self, directory: Path, monkeypatch: Any) -> None:
        self.directory = directory
        self.log = Log()
        self.worker = MemoryWorker(directory, self.log)
        self.processors: dict[tuple[str, int], PartitionProcessor] = {}
        self.positions: dict[tuple[str, int], int] = defaultdict(int)
        for module in ("log_tail", "processor.published", "processor.gap"):
            monkeypatch.setattr(f"spark_jobs.{module}.Reader", self.log.reader)

    def stream(self, number: int, text: str) -> StreamPlan:
        """Put stream *number* and its table, if it has one, into the catalog, and its `stream_on`
        into the log.
        """
        statement = parse_one(text)
        assert isinstance(statement, CreateStream)
        made = plan_stream(
            statement, MemoryView(_DDL), database="db", stream_id=number, target_id=number + 1
        )
        catalog = self.worker.catalog.catalog
        if made.new_target is not None:
            catalog.put(_result_table(number, made.new_target))
        catalog.put(StreamEntry(number, made.plan))
        self.control(ControlRecord("stream_on", stream=number, body=made.plan.to_json()))
        return made.plan

    def control(self, control: ControlRecord) -> None:
        self.log.append(TOPIC, 0, encode(control))

    def rows(self, *rows: tuple[str, int, int, int]) -> None:
        """Append a record for each of (tbname, ms behind T0, a, g)."""
        for row in rows:
            self.log.append(TOPIC, 0, record(row))

    def processor(self, topic: str, partition: int) -> PartitionProcessor:
        """Return the processor of a topic-partition, which begins when it is first asked for."""
        place = (topic, partition)
        if place not in self.processors:
            kind = ExchangeProcessor if topic == names.EXCHANGE else ScanProcessor
            directory = names.state_directory(self.worker.settings.state_dir, "5", topic, partition)
            self.processors[place] = kind(self.worker, directory, topic, 5, partition, T0)
        return self.processors[place]

    def feed(self, topic: str = TOPIC, partition: int = 0, most: int = 1000) -> int:
        """Give a processor the records that it has not had yet, and return how many there were."""
        start = self.positions[topic, partition]
        batch = self.log.batch(topic, partition, start, start + most)
        self.positions[topic, partition] += len(batch)
        self.processor(topic, partition).feed(
            Records(
                topic,
                partition,
                batch.offsets,
                batch.timestamps,
                batch.values,
                schema_ids(batch.values),
            )
        )
        return len(batch)

    def run(self, most: int = 1000) -> None:
        """Feed all processors until none has anything to read."""
        places = [(TOPIC, 0), *((names.EXCHANGE, p) for p in range(4))]
        while sum(self.feed(*place, most) for place in places if self._waits(place)):
            pass

    def _waits(self, place: tuple[str, int]) -> bool:
        return self.positions[place] < len(self.log.records[place])

    def save(self) -> None:
        for processor in self.processors.values():
            if processor.due is not None:
                processor.keep()

    def close(self) -> None:
        """End all tasks; whoever comes next is told what there is from the log's beginning."""
        for processor in self.processors.values():
            processor.close()
        self._forget()

    def die(self) -> None:
        """Leave everything as a killed worker does."""
        self._forget()

    def _forget(self) -> None:
        self.processors.clear()
        self.positions.clear()

    def results(self, table: str) -> list[tuple[Any, ...]]:
        """Rows of a result table that a reader sees who drops what a producer says twice."""
        found = self.worker.catalog.catalog.table("db", table)
        values = [v for _, v in self.log.records[TOPIC, 0]]
        own = [v for v, i in zip(values, schema_ids(values), strict=True) if i == found.schema_id]
        if not own:
            return []
        decoded = TableCodec(found).decode(own)
        stamps = {r: (p, o, n) for r, p, o, n in decoded.stamps}
        assert len(set(stamps.values())) == len(own), "a position was published twice"
        columns = [c.name for c in found.versions[-1].columns]
        return decoded.rows.select(columns).rows()


def _result_table(stream: int, target: TableDef) -> Table:
    version = TableVersion(stream + 2, target.columns, target.tags)
    kind: Literal["stable", "plain"] = "stable" if target.tags else "plain"
    return Table(stream + 1, "db", target.name, kind, TOPIC, 1, "ms", (version,), result_of=stream)


def record(row: tuple[str, int, int, int], trace: str | None = None) -> bytes:
    """A record of one row: (tbname, ms behind T0, a, g); *trace* is its stamp."""
    name, time, a, g = row
    frame = pl.DataFrame(
        {"tbname": [name], "ts": [T0 + time], "a": [a], "g": [g]},
        schema_overrides={"a": pl.Int32, "g": pl.Int32},
    )
    [(_, value)] = TableCodec(SOURCE).encode_partitioned(frame, 1, trace=trace)
    return value


def values_of(log: Log, topic: str) -> Sequence[bytes]:
    """Values in all partitions of a topic, in order."""
    return [v for (t, _), part in sorted(log.records.items()) if t == topic for _, v in part]
