"""A partition of the exchange without a mesh: the processor itself, over a log and a catalog in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from penstock import names
from penstock.bus import Delivery
from penstock.catalog.model import Database, Entry, StreamEntry, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec, schema_ids
from penstock.records import ControlRecord, ExchangeRecord, encode
from penstock.runtime.failpoints import Failpoints
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column, StreamPlan
from penstock.sql.planner import TableDef, plan_stream
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.windows import KernelContext
from spark_jobs.codecs import Codecs
from spark_jobs.input import Records
from spark_jobs.processor.clocks import numbered
from spark_jobs.processor.exchange import ExchangeProcessor
from spark_jobs.settings import SparkSettings
from tests.unit.sql.memory_view import MemoryView

_COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("a", ColumnType("INT")))
_TAGS = (Column("g", ColumnType("INT")),)


class Log:
    """What is published, by topic."""

    def __init__(self) -> None:
        self.values: dict[str, list[bytes]] = {}

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int = -1,
        on_delivery: Callable[[Delivery], None],
    ) -> None:
        known = self.values.setdefault(topic, [])
        known.append(value)
        on_delivery(Delivery(topic, partition, len(known) - 1, 0))


class Exchange:
    """Databases with a table `m` each, streams over them, and one partition of the exchange."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.catalog = Catalog()
        self.log = Log()
        self._view = MemoryView(databases={})
        self._ids = iter(range(100, 1_000))
        self._targets: dict[int, Table] = {}
        self._sent = 0
        self._worker = _Worker(self)
        self.processor = self.restarted()

    def restarted(self) -> ExchangeProcessor:
        """Start the processor as it comes up from what the one before has saved."""
        worker: Any = self._worker
        self.processor = ExchangeProcessor(
            worker, str(self.directory / "state"), names.EXCHANGE, 0, 0, first_time=0
        )
        return self.processor

    def database(self, name: str, **options: Any) -> Database:
        made = Database(next(self._ids), name, **options)
        self._put(made)
        self._view.databases[name] = made.precision
        table = self._table(made, next(self._ids), "m", _COLUMNS, _TAGS)
        self._put(table)
        self._view.add(
            TableDef(table.id, name, "m", "stable", _COLUMNS, _TAGS, made.precision, None)
        )
        return made

    def grow(self, database: Database, partitions: int) -> Database:
        """The database with another generation of its topic."""
        made = replace(database, partitions=partitions, former=((0,) * database.partitions,))
        self._put(made)
        for table in self.catalog.tables(database.name):
            self._put(replace(table, topic=made.topic, partitions=partitions))
        return made

    def stream(self, database: Database, text: str) -> StreamPlan:
        """A stream that begins now; *text* has its options and its query, which reads `m`."""
        stream_id = next(self._ids)
        target_id = next(self._ids)
        statement = parse_one(f"CREATE STREAM s{stream_id} {text}")
        assert isinstance(statement, CreateStream)
        planned = plan_stream(
            statement,
            self._view,
            database=database.name,
            stream_id=stream_id,
            target_id=target_id,
        )
        assert planned.new_target is not None and planned.plan.path == "exchange"
        new = planned.new_target
        target = self._table(database, target_id, new.name, new.columns, new.tags)
        self._targets[stream_id] = target
        self._put(target, StreamEntry(stream_id, planned.plan))
        for partition in range(database.partitions):
            self.control(
                database,
                ControlRecord("stream_on", stream=stream_id, body=planned.plan.to_json()),
                partition,
            )
        return planned.plan

    def control(self, database: Database, control: ControlRecord, partition: int = 0) -> None:
        """A control record that a partition of the database passes on."""
        self._sent += 1
        sender = names.exchange_producer(database.id, database.topic, partition)
        record = ControlRecord(
            **{**vars(control), "producer": sender, "offset": self._sent, "ordinal": 0}
        )
        self._feed(encode(record))

    def tick(self, database: Database, time: int, partition: int = 0) -> None:
        body = numbered(database.partitions)
        self.control(database, ControlRecord("tick", time=time, body=body), partition)

    def rows(
        self,
        database: Database,
        plan: StreamPlan,
        rows: Sequence[tuple[str, int, int]],
        came: int,
        partition: int = 0,
    ) -> None:
        """Rows (table, time, value) that came to a partition of the database in one write at
        *came*.
        """
        self._sent += 1
        frame = pl.DataFrame(
            [(0, self._sent, came, 0, table, ts, a, 1, False) for table, ts, a in rows],
            schema={
                "_step": pl.UInt32,
                "_offset": pl.Int64,
                "_now": pl.Int64,
                "_op": pl.Int8,
                "tbname": pl.String,
                "ts": pl.Int64,
                "a": pl.Int32,
                "g": pl.Int32,
                "_late": pl.Boolean,
            },
            orient="row",
        )
        buffer = io.BytesIO()
        frame.write_ipc_stream(buffer)
        sender = names.exchange_producer(plan.stream_id, database.topic, partition)
        self._feed(
            encode(
                ExchangeRecord(plan.stream_id, sender, self._sent, self._sent, buffer.getvalue())
            )
        )

    def results(self, plan: StreamPlan) -> list[dict[str, Any]]:
        """All that the stream has published so far, in order."""
        target = self._targets[plan.stream_id]
        values = [value for sent in self.log.values.values() for value in sent]
        mine = [v for v in values if schema_ids([v])[0] == target.schema_id]
        return TableCodec(target).decode(mine).rows.to_dicts() if mine else []

    def _feed(self, value: bytes) -> None:
        offset = self.processor.positions.next if self.processor.positions.next >= 0 else 0
        self.processor.feed(
            Records(
                names.EXCHANGE,
                0,
                np.array([offset]),
                np.array([0]),
                [value],
                schema_ids([value]),
            )
        )

    def _put(self, *entries: Entry) -> None:
        for entry in entries:
            self.catalog.put(entry)

    def _table(
        self,
        database: Database,
        table_id: int,
        name: str,
        columns: tuple[Column, ...],
        tags: tuple[Column, ...],
    ) -> Table:
        version = TableVersion(next(self._ids), columns, tags)
        return Table(
            table_id,
            database.name,
            name,
            "stable",
            database.topic,
            database.partitions,
            database.precision,
            (version,),
        )


class _Admin:
    """Nothing has been published before."""

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        return dict.fromkeys(places, 0)

    start_offsets = end_offsets

    def offsets_at(
        self, places: Iterable[tuple[str, int]], time: int
    ) -> Mapping[tuple[str, int], int]:
        return dict.fromkeys(places, -1)


class _Worker:
    """What a processor asks of `spark_jobs.worker.Worker`, answered from memory."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.settings = SparkSettings(
            data_dir=exchange.directory, state_dir=str(exchange.directory / "state")
        )
        self.driver = ""
        self.failpoints = Failpoints()
        self.kernels = KernelContext()
        self.publisher = exchange.log
        self.admin = _Admin()
        self.guard = SimpleNamespace(enforce=lambda: None)

    @property
    def catalog(self) -> Any:
        return SimpleNamespace(catalog=self._exchange.catalog)

    def await_catalog(self, condition: Callable[[Catalog], bool], timeout: float) -> bool:
        return condition(self._exchange.catalog)

    def plan(self, text: str) -> StreamPlan:
        return StreamPlan.from_json(text)

    @property
    def codecs(self) -> Codecs:
        return Codecs(self.catalog)

    def names_in_storage(self, table_id: int) -> Callable[[], dict[str, str]]:
        return dict

    def find_dropped(self, streams: Iterable[int]) -> set[int]:
        return set()

    def report(self, action: object) -> None:
        """Nobody reads reports here."""

    def report_stream(self, stream_id: int, field: str, value: object) -> None:
        """See `report`."""

    def report_streams(self, said: object) -> None:
        """See `report`."""
