"""Rows at a steady rate, made before the clock starts, and one process that publishes them and
reads what comes of them: one clock.

A row is found again by its `seq`. What is remembered: when each record was handed to the client,
when Kafka acknowledged it and under which offset, and when each result was in the reader's hands.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from bench import rows
from penstock.bus import login
from penstock.catalog.model import Table
from penstock.rows.partition import partition_of

COLUMNS = "(ts TIMESTAMP, seq BIGINT, current DOUBLE, voltage INT) TAGS (site INT)"
#: a tenth of the rows pass the filter
PASSES = 236
#: the gateway sends what came in within this time
LINGER_S = 0.005
_ROW = {
    "type": "record",
    "name": "Meter",
    "fields": [
        {"name": "tbname", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "seq", "type": "long"},
        {"name": "current", "type": "double"},
        {"name": "voltage", "type": "int"},
    ],
}
PLAIN_SINGLE: dict[str, Any] = _ROW
PLAIN_BATCH: dict[str, Any] = {
    "type": "record",
    "name": "Meters",
    "fields": [{"name": "rows", "type": {"type": "array", "items": _ROW}}],
}
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Load:
    """`rows`: seq, tbname, voltage, due (s), record. The others have an entry a record."""

    rows: pl.DataFrame
    due: Floats
    partitions: Ints
    values: list[bytes]


@dataclass
class Outcome:
    """Times are of one clock, seconds. Results in the order they were read."""

    sent: Floats
    acked: Floats
    offsets: Ints
    read_at: list[float] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    behind: float = 0.0


def make(rate: int, seconds: float, table: Table | None, *, batched: bool, partitions: int) -> Load:
    """*rate* rows/s for *seconds*: single records, or as the gateway would coalesce them; *table*
    None: plain Avro.
    """
    count = int(rate * seconds)
    seq = np.arange(count)
    tables = 1000 if batched else 100
    due = np.floor(seq / rate / LINGER_S) * LINGER_S if batched else seq / rate
    frame = pl.DataFrame(
        {
            "seq": seq,
            "tbname": pl.Series([f"d{k:05d}" for k in range(tables)]).gather(seq % tables),
            "due": due,
            "ts": int(time.time() * 1000) + np.floor(seq / rate * 1000).astype(np.int64),
            "current": (seq % 4096) * 0.125,
            "voltage": (200 + seq * 31 % 40).astype(np.int32),
            "site": (seq % tables % 100).astype(np.int32),
        }
    )
    frame = frame.with_columns(partition=partition_of(frame["tbname"], partitions).cast(pl.Int64))
    if batched:
        frame = frame.sort("due", "partition", maintain_order=True)
        frame = frame.with_columns(record=pl.struct("due", "partition").rle_id().cast(pl.Int64))
    else:
        frame = frame.with_columns(record=pl.col("seq"))
    record = frame["record"].to_numpy()
    bounds = np.searchsorted(record, np.arange(int(record[-1]) + 2))
    first = frame[bounds[:-1]]
    if table is not None:
        values = rows.records(frame, table, bounds)
    else:
        values = rows.plain(
            frame, PLAIN_BATCH if batched else PLAIN_SINGLE, bounds if batched else None
        )
    kept = frame.select("seq", "tbname", "voltage", "due", "record").sort("seq")
    return Load(kept, first["due"].to_numpy(), first["partition"].to_numpy(), values)


class Reader:
    """Reads a topic from its present end in a thread and notes when each record was there."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        config = {
            **login(bootstrap),
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,
        }
        self._consumer = Consumer(config)
        # the end is asked for here: an end that is looked up later may lie behind the first results
        ends = [
            (self._consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30) or (0, 0))[
                1
            ]
            for p in range(partitions)
        ]
        self._consumer.assign([TopicPartition(topic, p, end) for p, end in enumerate(ends)])
        self._done = threading.Event()
        self.times: list[float] = []
        self.values: list[bytes] = []
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.05)
            now = time.perf_counter()
            found = [] if message is None else [message]
            while found:
                for m in found:
                    value = m.value()
                    if m.error() is None and value is not None:
                        self.times.append(now)
                        self.values.append(value)
                found = self._consumer.consume(500, 0)
                now = time.perf_counter()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def settle(self, quiet: float, patience: float) -> None:
        """Wait until nothing has come for *quiet* seconds."""
        deadline = time.perf_counter() + patience
        while time.perf_counter() < deadline:
            last = self.times[-1] if self.times else 0.0
            if time.perf_counter() - last > quiet:
                return
            time.sleep(0.1)


def run(bootstrap: str, topic: str, sink: str, sink_partitions: int, load: Load) -> Outcome:
    """Publish the load when it is due, read the sink meanwhile."""
    sys.setswitchinterval(0.0005)
    count = len(load.values)
    out = Outcome(np.zeros(count), np.full(count, np.nan), np.full(count, -1, np.int64))
    config = {
        **login(bootstrap),
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        "compression.type": "lz4",
        "socket.nagle.disable": True,
        "queue.buffering.max.messages": 1_000_000,
    }
    producer = Producer(config)
    reader = Reader(bootstrap, sink, sink_partitions)
    over = threading.Event()

    def deliver() -> None:
        while not over.is_set():
            producer.poll(0.05)

    thread = threading.Thread(target=deliver, name="deliveries", daemon=True)
    thread.start()
    try:
        _settle_connections(producer, topic)
        begin = time.perf_counter() + 0.2
        for i, (due, partition, value) in enumerate(
            zip(load.due.tolist(), load.partitions.tolist(), load.values, strict=True)
        ):
            wait = begin + due - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            else:
                out.behind = max(out.behind, -wait)
            out.sent[i] = time.perf_counter()
            producer.produce(topic, value, None, partition, on_delivery=_Noted(out, i))
        producer.flush(60)
        reader.settle(3.0, 30)
    finally:
        over.set()
        thread.join()
        reader.stop()
    out.read_at = reader.times
    out.values = reader.values
    return out


def _settle_connections(producer: Producer, topic: str) -> None:
    """The first message must not pay for connecting."""
    producer.list_topics(topic, 10)


class _Noted:
    __slots__ = ("_index", "_out")

    def __init__(self, out: Outcome, index: int) -> None:
        self._out = out
        self._index = index

    def __call__(self, error: object, message: Message) -> None:
        if error is None:
            self._out.acked[self._index] = time.perf_counter()
            self._out.offsets[self._index] = message.offset() or 0


def percentiles(milliseconds: Sequence[float] | Floats) -> dict[str, float]:
    """p50, p99, p999."""
    found = (
        np.percentile(np.asarray(milliseconds), [50, 99, 99.9])
        if len(milliseconds)
        else [float("nan")] * 3
    )
    return dict(zip(("p50", "p99", "p999"), (float(v) for v in found), strict=True))
