"""The operator alone: broker, Redis and the stream jobs, with catalog entries and controls written
by the test in the gateway's place.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import redis

from penstock import names
from penstock.bus import Admin, Publisher, Reader
from penstock.catalog.model import Database, Entry, StreamEntry, Table, TableVersion
from penstock.catalog.reader import CatalogReader
from penstock.catalog.writer import CatalogWriter
from penstock.codec import TableCodec, schema_ids
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.records import ControlRecord, DeadLetter, decode, encode
from penstock.rows.partition import partition
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column, Precision
from penstock.sql.planner import TableDef, plan_stream
from penstock.sql.statements import CreateStable, CreateStream
from penstock.types import ColumnType
from tests.stack.conftest import eventually

SERVICES = ("kafka", "redis", "spark")
METERS = "CREATE STABLE {db}.meters (ts TIMESTAMP, current DOUBLE, voltage INT) TAGS (location VARCHAR(20))"


class _View:
    def __init__(self, kit: OperatorKit) -> None:
        self._kit = kit

    def precision(self, database: str) -> Precision | None:
        found = self._kit.catalog.catalog.database(database)
        return found.precision if found else None

    def table(self, database: str, name: str) -> TableDef | None:
        table = self._kit.catalog.catalog.table(database, name)
        if table is None:
            return None
        return TableDef(
            table.id,
            table.database,
            table.name,
            table.kind,
            table.columns,
            table.tags,
            table.precision,
            table.key_column,
            result_of=table.result_of,
        )

    def table_names(self, database: str) -> Sequence[str]:
        return [table.name for table in self._kit.catalog.catalog.tables(database)]

    def function(self, name: str) -> None:
        return None

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        return []


class OperatorKit:
    """What a test does to the mesh and reads from it."""

    def __init__(self, mesh: RunningMesh) -> None:
        self.mesh = mesh
        self.redis: redis.Redis = redis.Redis.from_url(mesh.redis_url, decode_responses=True)
        self.admin = Admin(mesh.kafka_bootstrap)
        self.publisher = Publisher(mesh.kafka_bootstrap, client_id="kit")
        self.catalog = CatalogReader(mesh.kafka_bootstrap, client_id="kit").start()
        self.writer = CatalogWriter(mesh.kafka_bootstrap, self.redis, self.catalog, address="kit")
        assert self.writer.lead()

    def commit(self, puts: Sequence[Entry], removes: Sequence[Entry] = ()) -> None:
        """Change the catalog, though a busy machine may have cost the lease meanwhile."""
        eventually(self.writer.lead)
        self.writer.commit(puts, removes, timeout=30.0)

    def close(self) -> None:
        self.writer.close()
        self.publisher.close()
        self.catalog.close()

    def database(self, name: str, partitions: int = 4) -> Database:
        """Create a database; returns when its topic is being read."""
        database = Database(self.writer.new_id(), name, partitions=partitions)
        self.admin.ensure_topics({names.ingest_topic(name): partitions})
        self.commit([database])
        eventually(lambda: self.redis.exists(names.query_heartbeat(names.ingest_topic(name))), 60)
        return database

    def stable(self, database: str, ddl: str = METERS) -> Table:
        statement = parse_one(ddl.format(db=database))
        assert isinstance(statement, CreateStable)
        columns = tuple(Column(c.name, c.type) for c in statement.columns)
        tags = tuple(Column(c.name, c.type) for c in statement.tags)
        table = self._table(self._ids(), database, statement.table.name, columns, tags)
        self.commit([table])
        return table

    def _ids(self) -> tuple[int, int]:
        return self.writer.new_id(), self.writer.new_id()

    def _table(
        self,
        ids: tuple[int, int],
        database: str,
        name: str,
        columns: tuple[Column, ...],
        tags: tuple[Column, ...],
        result_of: int | None = None,
    ) -> Table:
        """A table to commit; *ids*: its own and its first schema's."""
        found = self.catalog.catalog.database(database)
        assert found is not None
        return Table(
            ids[0],
            database,
            name,
            "stable",
            names.ingest_topic(database),
            found.partitions,
            found.precision,
            (TableVersion(ids[1], columns, tags),),
            result_of=result_of,
        )

    def stream(
        self, sql: str, database: str, *, wait: bool = True, partitions: Sequence[int] | None = None
    ) -> tuple[StreamEntry, Table]:
        """CREATE STREAM; returns when it is live in every partition. *partitions*: where it is
        announced now, others later.
        """
        statement = parse_one(sql)
        assert isinstance(statement, CreateStream)
        ids, stream_id = (
            self._ids(),
            self.writer.new_id(),
        )  # a stream's id is the highest of what is made for it
        planned = plan_stream(
            statement, _View(self), database=database, stream_id=stream_id, target_id=ids[0]
        )
        assert planned.new_target is not None
        new = planned.new_target
        made = self._table(ids, new.database, new.name, new.columns, new.tags, stream_id)
        entry = StreamEntry(stream_id, planned.plan, created=time.time_ns() // 10**6)
        self.commit([made, entry])
        source = self.catalog.catalog.table_by_id(planned.plan.source.table_id)
        assert source is not None
        self.announce(entry, range(source.partitions) if partitions is None else partitions)
        if wait and partitions is None:
            self.wait_live(entry)
        return entry, made

    def announce(self, entry: StreamEntry, partitions: Sequence[int]) -> None:
        """Say in these partitions of its source that a stream begins."""
        source = self.catalog.catalog.table_by_id(entry.plan.source.table_id)
        assert source is not None
        self.control(
            source.topic,
            ControlRecord("stream_on", stream=entry.id, body=entry.plan.to_json()),
            partitions,
        )

    def wait_live(self, entry: StreamEntry) -> None:
        """Return when a stream is live in every partition."""
        source = self.catalog.catalog.table_by_id(entry.plan.source.table_id)
        assert source is not None
        wanted = {f"{source.topic}:{p}" for p in range(source.partitions)}
        if entry.plan.path == "exchange":
            wanted |= {
                f"{names.EXCHANGE}:{q}" for q in range(names.BUILT_IN_TOPICS[names.EXCHANGE])
            }
        eventually(lambda: wanted <= set(self.redis.hkeys(names.stream_status(entry.id))))

    def drop_stream(self, entry: StreamEntry) -> None:
        source = self.catalog.catalog.table_by_id(entry.plan.source.table_id)
        assert source is not None
        self.commit([], [entry])
        self.control(source.topic, ControlRecord("stream_off", stream=entry.id))

    def control(
        self, topic: str, record: ControlRecord, partitions: Sequence[int] | None = None
    ) -> None:
        """To every partition of the topic, or to some."""
        for p in range(self.catalog.catalog.topics()[topic]) if partitions is None else partitions:
            self.publisher.publish(topic, encode(record), partition=p).result(30)

    def write(self, table: Table, rows: pl.DataFrame, batch: int = 250) -> int:
        """Publish rows in records of *batch*; returns the number of records."""
        codec = TableCodec(table)
        sent = 0
        for start in range(0, rows.height, batch):
            for p, value in codec.encode_partitioned(rows[start : start + batch], table.partitions):
                self.publisher.send(table.topic, value, partition=p)
                sent += 1
        self.publisher.flush()
        return sent

    def raw(self, topic: str, value: bytes, p: int) -> int:
        """Publish bytes as they are; their offset."""
        return self.publisher.publish(topic, value, partition=p).result(30).offset

    def drain(self, database: str, depth: int = 1, deadline: float = 120.0) -> None:
        """Return when everything written before has been computed, *depth* streams deep."""
        topic = names.ingest_topic(database)
        for _ in range(depth):
            barrier = uuid.uuid4().hex
            self.control(topic, ControlRecord("barrier", id=barrier))
            wanted = {f"scan:{topic}:{p}" for p in range(self.catalog.catalog.topics()[topic])}
            wanted |= {
                f"exchange:{names.EXCHANGE}:{q}"
                for q in range(names.BUILT_IN_TOPICS[names.EXCHANGE])
            }
            eventually(
                lambda b=barrier, w=wanted: w <= set(self.redis.hkeys(names.barrier(b))), deadline
            )  # type: ignore[misc]

    def records(self, topic: str) -> list[tuple[int, int, bytes]]:
        """(partition, offset, value) of the whole topic."""
        partitions = [(topic, p) for p in range(self.admin.topics()[topic])]
        ends = {tp: e for tp, e in self.admin.end_offsets(partitions).items() if e}
        found: list[tuple[int, int, bytes]] = []
        if not ends:
            return found
        with Reader(
            self.mesh.kafka_bootstrap, dict.fromkeys(ends, 0), client_id="kit-read"
        ) as reader:
            left = dict(ends)
            while left:
                for batch in reader.read(50_000, 1.0):
                    found += [
                        (batch.partition, int(o), v)
                        for o, v in zip(batch.offsets, batch.values, strict=True)
                        if v is not None
                    ]
                    if batch.next_offset >= ends[batch.topic, batch.partition]:
                        left.pop((batch.topic, batch.partition), None)
        return found

    def raw_results(self, table: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
        """(rows, records) of a result table exactly as they are in the log, in its order."""
        rows = []
        records = []
        codec = TableCodec(table)
        for p in range(table.partitions):
            values = [v for q, _, v in self.records(table.topic) if q == p]
            ids = schema_ids(values)
            decoded = codec.decode(
                [v for v, i in zip(values, ids, strict=True) if i == table.schema_id]
            )
            rows.append(decoded.rows.with_columns(_p=pl.lit(p)))
            records.append(decoded.records.with_columns(_p=pl.lit(p)))
        return pl.concat(rows), pl.concat(records)

    def results(self, table: Table) -> pl.DataFrame:
        """The live rows of a result table as every reader of ours sees them."""
        rows, _ = self.raw_results(table)
        time_column = table.time_column
        last = rows.unique(["tbname", time_column], keep="last", maintain_order=True).filter(
            pl.col("_op") != 1
        )
        return last.drop("_record", "_write", "_op", "_p").sort("tbname", time_column)

    def repeats(self, table: Table) -> int:
        """Result records in the log whose position (or one above it) their producer had published
        there already.
        """
        _, records = self.raw_results(table)
        highest: dict[tuple[int, str], tuple[int, int]] = {}
        count: Counter[str] = Counter()
        for p, producer, offset, ordinal in records.select(
            "_p", "producer", "offset", "ordinal"
        ).iter_rows():
            if (offset, ordinal) <= highest.get((p, producer), (-1, -1)):
                count["repeat"] += 1
            highest[p, producer] = max(highest.get((p, producer), (-1, -1)), (offset, ordinal))
        return count["repeat"]

    def dead_letters(self, topic: str) -> list[DeadLetter]:
        letters = [decode(DeadLetter, v) for _, _, v in self.records(names.DEAD_LETTER)]
        return [letter for letter in letters if letter.topic == topic]


@contextmanager
def operator_kit(
    directory: Path, services: tuple[str, ...] = SERVICES, **environment: str
) -> Iterator[OperatorKit]:
    """A mesh of broker, Redis and stream jobs for the length of a `with`; *environment*: the jobs'
    settings, others as variables.
    """
    own = {
        name if name.startswith("PENSTOCK_") else f"PENSTOCK_SPARK_{name.upper()}": value
        for name, value in environment.items()
    }
    with running_mesh(directory, services=services, environment=own) as mesh:
        kit = OperatorKit(mesh)
        try:
            yield kit
        finally:
            kit.close()


def meter_rows(
    tables: int, count: int, *, start: int = 1_700_000_000_000, step: int = 100, first: int = 0
) -> pl.DataFrame:
    """Rows *first*.. of a fleet of meters: each table in turn, every table's time growing by *step*
    ms.
    """
    n = pl.int_range(first, first + count, eager=True)
    return pl.DataFrame({"n": n}).select(
        tbname=pl.format("d{}", pl.col("n") % tables),
        ts=start + pl.col("n") // tables * step,
        current=(pl.col("n") * 7919 % 1000) / 10.0,
        voltage=(200 + pl.col("n") * 31 % 40).cast(pl.Int32),
        location=pl.format("city{}", pl.col("n") % tables % 5),
    )


def windows_of(rows: pl.DataFrame, size: int = 10_000, key: str = "tbname") -> pl.DataFrame:
    """What `count(*), avg(current), max(voltage) … INTERVAL(10s)` should give, by a plain polars
    query.
    """
    grouped = rows.group_by(key, wstart=pl.col("ts") // size * size)
    return grouped.agg(n=pl.len(), c=pl.col("current").mean(), v=pl.col("voltage").max()).sort(
        key, "wstart"
    )


def place_of(table: str, partitions: int = 4) -> int:
    return partition(table, partitions)


VARCHAR = ColumnType("VARCHAR", 64)
