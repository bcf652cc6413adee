"""Publishes a fleet's rows straight to Kafka, a process per partition, as fast as the broker takes
them and with lower priority.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

from confluent_kafka import Producer

from bench import rows
from bench.rows import Fleet
from penstock.bus import login
from penstock.catalog.model import Table

_CONFIG = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 50,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 300_000,
    "queue.buffering.max.kbytes": 128_000,
}


def fill(
    bootstrap: str,
    topic: str,
    fleet: Fleet,
    first: int,
    sweeps: int,
    table: Table | None,
    size: int,
) -> float:
    """Publish sweeps *first*..; *table* None: as plain Avro, a row a record. Returns seconds."""
    started = time.monotonic()
    with ProcessPoolExecutor(
        fleet.partitions, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(5,)
    ) as pool:
        client = {"bootstrap.servers": bootstrap, **login(bootstrap)}
        jobs = [
            pool.submit(_partition, client, topic, fleet, p, first, sweeps, table, size)
            for p in range(fleet.partitions)
        ]
        for job in jobs:
            job.result()
    return time.monotonic() - started


def _partition(
    client: dict[str, str],
    topic: str,
    fleet: Fleet,
    partition: int,
    first: int,
    sweeps: int,
    table: Table | None,
    size: int,
) -> None:
    producer = Producer({**client, **_CONFIG})
    frame_rows = 50_000 if size == 1 else 250_000
    for frame in fleet.frames(partition, first, sweeps, frame_rows // size * size):
        values = rows.plain(frame) if table is None else rows.batches(frame, table, size)
        for value in values:
            while True:
                try:
                    producer.produce(topic, value, None, partition)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    if left := producer.flush(300):
        raise RuntimeError(f"{left} records of {topic}[{partition}] are not acknowledged")
