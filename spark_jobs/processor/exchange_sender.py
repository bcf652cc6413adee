"""A scan's way to the exchange: rows go where `route` says, controls to every exchange partition.

Order is promised per source partition only, so a range delete is passed on for the tables of the
sending partition alone.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterable, Sequence

import polars as pl

from penstock import names
from penstock.records import DROPPED, ControlRecord, ExchangeRecord, encode
from penstock.rows.partition import partition
from penstock.runtime import traces
from spark_jobs.processor.clocks import numbered
from spark_jobs.processor.group_places import PARTITIONS
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.route import Taken, newest
from spark_jobs.processor.stream import LiveStream

_MAX_BYTES = 700_000


class ExchangeSender:
    """A scan processor's way to the exchange."""

    def __init__(self, processor: PartitionProcessor) -> None:
        self._processor = processor

    def announce_history(self, stream: LiveStream, offset: int) -> None:
        """Tell a stream that fills its history what this partition held before it."""
        route = stream.route
        stored = self._processor.source_rows(stream.plan)
        if route is None or stored is None:
            return

        def meet() -> None:
            for rows in stored.versions(route.looked_at):
                route.meet(rows)

        stream.guard(meet, offset, offset)

    def rows(self, stream: LiveStream, taken: Sequence[Taken], first: int, last: int) -> None:
        """Send a chunk's rows of one stream to the partitions of their groups.

        All at once: what is sent for a chunk is told apart by its number within the chunk, so a
        second sending would pass for a repeat.
        """
        mine = [t for t in taken if t.table_id in stream.plan.source.table_ids]
        if stream.child is not None:
            mine = [t.of_child(stream.child) for t in mine]
        mine = [t for t in mine if t.rows.height]
        if mine:
            stream.guard(lambda: self._send(stream, mine, first, last), first, last)

    def _send(self, stream: LiveStream, taken: Sequence[Taken], first: int, last: int) -> None:
        processor = self._processor
        assert stream.route is not None
        for of_table in taken:
            stream.count(of_table.rows)
        stream.changed = True
        trace = newest(taken)
        parts, failed = stream.route.split(taken, processor.source_rows(stream.plan))
        producer = names.exchange_producer(
            stream.id, processor.place.topic, processor.place.partition
        )
        for place, part in parts:
            if trace is not None:
                part = part.with_columns(pl.lit(trace).alias(traces.COLUMN))
            pieces = 1 + int(part.estimated_size()) // _MAX_BYTES
            size = -(-part.height // pieces)
            cuts = range(0, part.height, size)
            for ordinal, start in enumerate(cuts):
                buffer = io.BytesIO()
                part[start : start + size].write_ipc_stream(buffer, compression="lz4")
                record = ExchangeRecord(
                    stream.id,
                    producer,
                    first,
                    last,
                    buffer.getvalue(),
                    ordinal,
                    start + size >= part.height,
                )
                processor.outbox.send(
                    producer, names.EXCHANGE, place, last, ordinal, encode(record)
                )
        if failed is not None and failed.height:
            stream.output.bury(failed, last)

    def control(self, control: ControlRecord, offset: int) -> None:
        """Pass a control on when the exchange has to know it."""
        processor = self._processor
        if not self._concerns_exchange(control):
            return
        sent = dataclasses.replace(
            control, producer=processor.place.forwarder, offset=offset, ordinal=0
        )
        if control.kind == "barrier":
            partitions = processor.worker.catalog.catalog.topics().get(processor.place.topic, 1)
            sent = dataclasses.replace(
                sent, body=json.dumps({"partitions": partitions, "topic": processor.place.topic})
            )
        if control.kind == "tick":
            partitions = processor.worker.catalog.catalog.topics().get(processor.place.topic, 1)
            sent = dataclasses.replace(sent, body=numbered(partitions))
        if control.kind == "delete" and control.table is not None:
            tables = self._tables_here(control.table, control.tables)
            if not tables:
                return
            sent = dataclasses.replace(sent, tables=tuple(sorted(tables)))
        value = encode(sent)
        for place in range(PARTITIONS):
            processor.outbox.send(
                processor.place.forwarder, names.EXCHANGE, place, offset, 0, value
            )

    def _concerns_exchange(self, control: ControlRecord) -> bool:
        if control.kind in ("barrier", "stream_off", "begin"):
            return True
        streams = [s for s in self._processor.streams.by_id.values() if s.plan.path == "exchange"]
        if control.stream is not None:
            return any(s.id == control.stream for s in streams)
        if control.kind == "tick":
            return any(s.timed for s in streams)
        if control.body == DROPPED and _any_reads(streams, control.table):
            return True
        return any(control.table in (None, s.plan.source.table_id) for s in streams)

    def _tables_here(self, table_id: int, tables: Iterable[str] | None) -> set[str]:
        """Return those of *tables*, or of all tables of *table_id*, that belong to this
        partition.
        """
        processor = self._processor
        here = processor.tables(table_id)
        if tables is None:
            return here
        partitions = processor.worker.catalog.catalog.topics().get(processor.place.topic, 1)
        return {t for t in tables if partition(t, partitions) == processor.place.partition}


def _any_reads(streams: Iterable[LiveStream], table_id: int | None) -> bool:
    return any(table_id in stream.plan.source.table_ids for stream in streams)
