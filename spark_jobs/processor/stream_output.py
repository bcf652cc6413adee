"""How what one stream computes leaves a processor: results, events, and dead letters about rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

import polars as pl

from penstock import names
from penstock.bus import Delivery
from penstock.codec import TableCodec
from penstock.errors import SchemaError
from penstock.records import DeadLetter, EventsRecord, encode
from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from spark_jobs.output import Outbox
from spark_jobs.processor.json_rows import json_rows
from spark_jobs.processor.stats import Stats
from spark_jobs.worker import Worker

_SAMPLE_ROWS = 100


class StreamOutput:
    """Outputs of one stream in one topic-partition; what they are is counted in `stats`."""

    def __init__(
        self,
        worker: Worker,
        outbox: Outbox,
        topic: str,
        partition: int,
        plan: StreamPlan,
        stats: Stats,
    ) -> None:
        self._worker = worker
        self._outbox = outbox
        self._topic = topic
        self._partition = partition
        #: the one that the stream goes by now
        self.plan = plan
        self._stats = stats
        self._id = plan.stream_id
        self.producer = names.stream_producer(self._id, topic, partition)

    def target(self) -> TableCodec:
        """Return the encoder of the result table. Raises SchemaError when it is gone."""
        codec = self._worker.codecs.encoder(self.plan.target.table_id)
        if codec is None:
            raise SchemaError(
                f"table {self.plan.target.table} does not exist", code="E_TARGET_GONE"
            )
        return codec

    def send(
        self,
        topic: str,
        offset: int,
        values: Sequence[tuple[int, bytes]],
        there: Callable[[Delivery], None],
    ) -> None:
        """Publish encoded results, (partition, value) of each, at *offset*; *there* hears of each
        that is in the log.
        """
        ordinals: Counter[int] = Counter()
        for partition, value in values:
            self._outbox.send(
                self.producer, topic, partition, offset, ordinals[partition], value, there
            )
            ordinals[partition] += 1

    def time_delivery(self, oldest: int) -> Callable[[Delivery], None]:
        """Return what notes how long after the oldest of its rows, which came at *oldest* (ticks),
        a result is in the log, by the broker's clock.
        """
        stats = self._stats
        came = self._milliseconds(oldest)
        return lambda result: stats.follow(max(result.timestamp - came, 0) / 1000)

    def _milliseconds(self, ticks: int) -> int:
        return ticks * 1000 // TICKS_PER_SECOND[self.plan.source.precision]

    def send_events(
        self, events: list[dict[str, object]], first: int, last: int, trace: str | None
    ) -> None:
        """Publish events of the chunk first..last."""
        record = EventsRecord(
            stream=self._id,
            stream_name=f"{self.plan.database}.{self.plan.name}",
            producer=self.producer,
            from_offset=first,
            offset=last,
            events=json.dumps(events, separators=(",", ":"), default=str),
            trace=trace,
        )
        partition = self._id % names.BUILT_IN_TOPICS[names.EVENTS]
        self._outbox.send(self.producer, names.EVENTS, partition, last, 0, encode(record))

    def bury_late(self, rows: pl.DataFrame, last: int) -> None:
        """Count rows dropped as late, and keep them whole among the dead letters:
        `information_schema.ins_late_rows` shows them.
        """
        self._stats.late += rows.height
        lines = json_rows(rows.drop("_step", "_late", strict=False)).splitlines(keepends=True)
        came = int(rows["_now"][0])
        while lines:
            size = 0
            taken = 0
            while taken < len(lines) and (
                not taken or size + len(lines[taken]) <= DeadLetter.MAX_VALUE
            ):
                size = size + len(lines[taken])
                taken = taken + 1
            self._post_dead_letter(
                "E_LATE",
                f"{taken} rows came after their windows were over",
                last,
                came,
                b"".join(lines[:taken]),
            )
            lines = lines[taken:]

    def bury(self, rows: pl.DataFrame, last: int) -> None:
        """Send one dead letter per source record with rows that failed, holding a sample of them
        as JSON.

        What failed in a result, not in a row, counts for the chunk's *last* record.
        """
        self._stats.failed += rows.height
        self._stats.error = str(rows["_reason"][0])[:1000]
        have = set(rows.columns)
        # rows that came through the exchange carry offsets of another topic
        own = "_offset" in have and self._topic != names.EXCHANGE
        at = (
            pl.col("_offset").fill_null(last)
            if own
            else pl.lit(last, dtype=pl.Int64).alias("_offset")
        )
        now = (
            pl.col("_now").fill_null(0)
            if "_now" in have
            else pl.lit(0, dtype=pl.Int64).alias("_now")
        )
        for (offset,), part in rows.with_columns(at, now).group_by("_offset", maintain_order=True):
            sample = json_rows(part.head(_SAMPLE_ROWS).drop("_step", "_now", strict=False))
            self._post_dead_letter(
                "E_EXPRESSION",
                f"{part.height} rows failed: {part['_reason'][0]}",
                int(str(offset)),
                int(part["_now"][0]),
                sample,
            )

    def _post_dead_letter(
        self, code: str, reason: str, offset: int, came: int, value: bytes
    ) -> None:
        """Send a dead letter about rows, *value*, of which the first came at *came*, in ticks."""
        time = self._milliseconds(came)
        dead_letter = DeadLetter(
            self._topic, self._partition, offset, "stream", code, reason, time, self._id, value
        )
        self._outbox.post(names.DEAD_LETTER, encode(dead_letter), partition=0)
