"""The exchange: rows of streams whose groups cross partitions, sent by scans to the partition that finishes their groups.

`Sender` is the scan's side: WHERE applied, rows hashed by group, controls passed to every exchange partition. `ExchangeLane` is the other
side: a lane over `penstock.exchange` whose position is its own offset, and which drops what a producer sends twice. Order is promised per
source partition only, so a range delete is passed on for the tables of the sending partition alone.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from penstock import names
from penstock.errors import SchemaError
from penstock.partition import partition
from penstock.records import ControlRecord, ExchangeRecord, decode, encode
from penstock.sql.plan import StreamPlan
from penstock.windows.kernel import DELETE, History
from penstock.windows.scope import Scope, evaluate
from spark_jobs.history import TableHistory
from spark_jobs.input import Records
from spark_jobs.lanes.partition import Lane
from spark_jobs.lanes.stream import LiveStream
from spark_jobs.worker import Worker

_PARTITIONS = names.BUILT_IN_TOPICS[names.EXCHANGE]
_MAX_BYTES = 700_000


class _Route:
    """Where rows of one stream go: WHERE and the keys, compiled once, and the partition of every group met."""

    def __init__(self, plan: StreamPlan) -> None:
        scope = Scope(plan)
        self._plan = plan
        where = scope.over_rows(plan.where).expr.fill_null(False) if plan.where else pl.lit(True)
        self._keys = [f"_k{i}" for i in range(len(plan.keys))]
        # a delete of a row names its key only: every partition has to hear of it
        self._expressions = [
            (where | (pl.col("_op") == DELETE)).alias("_pass"),
            *(scope.over_rows(key.sql).expr.alias(name) for name, key in zip(self._keys, plan.keys, strict=True)),
        ]
        self._known: dict[tuple[Any, ...], int] = {}

    def split(self, rows: pl.DataFrame) -> tuple[list[tuple[int, pl.DataFrame]], pl.DataFrame | None]:
        """(exchange partition, rows) in order, and the rows on which an expression failed."""
        made, failed = evaluate(rows, self._expressions)
        made = made.filter(pl.col("_pass"))
        if not made.height:
            return [], failed
        if not self._keys:
            return [(0, made.select(rows.columns))], failed
        groups = made.select(self._keys).unique(maintain_order=True)
        places = groups.with_columns(_place=pl.Series([self._place(k) for k in groups.rows()], dtype=pl.Int64))
        made = made.join(places, on=self._keys, how="left", nulls_equal=True, maintain_order="left")
        parts = []
        deletes = (made["_op"] == DELETE).any()
        for number in range(_PARTITIONS):
            mine = pl.col("_place") == number
            part = made.filter(mine | (pl.col("_op") == DELETE) if deletes else mine)
            if part.height:
                parts.append((number, part.select(rows.columns)))
        return parts, failed

    def _place(self, values: tuple[Any, ...]) -> int:
        if values not in self._known:
            self._known[values] = names.group_id(self._plan.target.table, values) % _PARTITIONS
        return self._known[values]


class Sender:
    """A scan lane's way to the exchange."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._routes: dict[int, _Route] = {}

    def rows(self, stream: LiveStream, rows: pl.DataFrame, first: int, last: int) -> None:
        """Send a unit's rows of one stream to the partitions of their groups."""
        if stream.child is not None:
            rows = rows.filter(pl.col("tbname").str.to_lowercase() == stream.child)
        lane = self._lane
        route = self._routes.setdefault(stream.id, _Route(stream.plan))
        parts, failed = route.split(rows)
        producer = names.exchange_producer(stream.id, lane.topic, lane.partition)
        for place, part in parts:
            pieces = 1 + int(part.estimated_size()) // _MAX_BYTES
            size = -(-part.height // pieces)
            cuts = range(0, part.height, size)
            for ordinal, start in enumerate(cuts):
                buffer = io.BytesIO()
                part[start : start + size].write_ipc_stream(buffer, compression="lz4")
                record = ExchangeRecord(stream.id, producer, first, last, buffer.getvalue(), ordinal, start + size >= part.height)
                lane.outbox.send(producer, names.EXCHANGE, place, last, ordinal, encode(record))
        if failed is not None and failed.height:
            stream.bury(failed, last)

    def control(self, control: ControlRecord, offset: int) -> None:
        """Pass a control on when the exchange has to know it."""
        lane = self._lane
        if not self._wanted(control):
            return
        sent = dataclasses.replace(control, producer=lane.forwarder, offset=offset, ordinal=0)
        if control.kind == "barrier":
            partitions = lane.worker.catalog.catalog.topics().get(lane.topic, 1)
            sent = dataclasses.replace(sent, body=json.dumps({"partitions": partitions, "topic": lane.topic}))
        if control.kind == "delete" and control.table is not None:
            here = lane.tables(control.table)
            partitions = lane.worker.catalog.catalog.topics().get(lane.topic, 1)
            wanted = here if control.tables is None else {t for t in control.tables if partition(t, partitions) == lane.partition}
            sent = dataclasses.replace(sent, tables=tuple(sorted(wanted)))
            if not wanted:
                return
        value = encode(sent)
        for place in range(_PARTITIONS):
            lane.outbox.send(lane.forwarder, names.EXCHANGE, place, offset, 0, value)

    def _wanted(self, control: ControlRecord) -> bool:
        if control.kind in ("barrier", "stream_off"):
            return True
        streams = [s for s in self._lane.streams.values() if s.plan.path == "exchange"]
        if control.stream is not None:
            return any(s.id == control.stream for s in streams)
        if control.kind == "tick":
            return any(s.timed for s in streams)
        return any(control.table in (None, s.plan.source.table_id) for s in streams)


def _announced(stream_id: int) -> str:
    return f"on {stream_id}"


class ExchangeLane(Lane):
    """All exchange streams, on one partition of the exchange."""

    reader = "exchange"

    def __init__(self, worker: Worker, directory: str, topic: str, topic_id: int, partition: int, first_time: int) -> None:
        #: while history is filled: stream → source partition → offset up to which
        self._bounds: dict[int, dict[int, int]] = {}
        super().__init__(worker, directory, topic, topic_id, partition, first_time)

    def data_unit(self, records: Records, ids: Sequence[int]) -> None:
        frames: dict[int, list[pl.DataFrame]] = {}
        for i in range(len(records)):
            offset, value = int(records.offsets[i]), records.values[i]
            try:
                record = decode(ExchangeRecord, value)
                rows = pl.read_ipc_stream(io.BytesIO(record.rows))
            except (SchemaError, pl.exceptions.PolarsError) as error:
                self.bury(offset, "E_MALFORMED", str(error), value, int(records.times[i]))
                continue
            if not self.repeated(record.producer, record.offset, record.ordinal):
                frames.setdefault(record.stream, []).append(rows.with_columns(_offset=pl.lit(offset, dtype=pl.Int64)))
        first, last = int(records.offsets[0]), int(records.offsets[-1])
        for stream_id, parts in frames.items():
            stream = self.streams.get(stream_id)
            if stream is not None:
                rows = pl.concat(parts)
                steps = pl.struct("_offset", "_step").rle_id().cast(pl.UInt32)
                stream.apply(rows.with_columns(_step=steps), first, last)

    def forward(self, control: ControlRecord, offset: int) -> None:
        """Nobody comes behind the exchange; but every announcement of a stream counts for its history."""
        if control.kind == "stream_on" and control.stream in self.streams and _announced(control.stream) in self._waiting:
            self._fill(self.streams[control.stream], control, offset)

    def barrier(self, control: ControlRecord, offset: int) -> None:
        """Passed when it has come from every partition of its source topic."""
        try:
            origin = json.loads(control.body)
            needed, key = int(origin["partitions"]), f"{control.id} {origin['topic']}"
        except (ValueError, KeyError, TypeError):
            return  # not one that a scan passed on
        heard = self._waiting.setdefault(key, [])
        if control.producer is not None and control.producer not in heard:
            heard.append(control.producer)
        if len(heard) >= needed:
            del self._waiting[key]
            self.outbox.then(lambda _: self.worker.report_barrier(control.id, f"{self.reader}:{self.topic}:{self.partition}", offset))

    def plans(self) -> list[StreamPlan]:
        return [s.plan for s in self.worker.catalog.catalog.streams() if s.plan.path == "exchange"]

    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        table = self.worker.catalog.catalog.table_by_id(plan.target.table_id)
        target = {} if table is None else {table.topic: table.partitions}
        return {**target, names.EVENTS: names.BUILT_IN_TOPICS[names.EVENTS]}

    def begun(self, stream: LiveStream, offset: int) -> None:
        """Whether there is history to fill is known when every source partition has announced the stream."""
        if stream.plan.fill_history:
            self._waiting[_announced(stream.id)] = []

    def tables(self, table_id: int) -> set[str]:
        return set()

    def _fill(self, stream: LiveStream, control: ControlRecord, offset: int) -> None:
        """Fill history up to the announcements, once they have come from all source partitions."""
        heard = self._waiting[_announced(stream.id)]
        heard.append(f"{(control.producer or '').rpartition(':')[2]}:{control.offset}")
        table = self.worker.catalog.catalog.table_by_id(stream.plan.source.table_id)
        if table is not None and len(heard) >= table.partitions:
            self._bounds[stream.id] = {int(p): int(o) for p, _, o in (h.partition(":") for h in heard)}
            stream.fill_history(offset)
            del self._waiting[_announced(stream.id)], self._bounds[stream.id]

    def history(self, plan: StreamPlan) -> History | None:
        table = self.worker.catalog.catalog.table_by_id(plan.source.table_id)
        topic, partitions = ("", 0) if table is None else (table.topic, table.partitions)

        def bounds() -> dict[int, int]:
            if plan.stream_id in self._bounds:
                return self._bounds[plan.stream_id]
            stamps = {p: self._seen.get(names.exchange_producer(plan.stream_id, topic, p), (-1, -1)) for p in range(partitions)}
            return {p: offset + 1 for p, (offset, _) in stamps.items()}

        return TableHistory(self.worker, plan.source, topic, bounds)

    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        if control.kind == "tick":
            return stream.timed
        return control.table is None or control.table == stream.plan.source.table_id
