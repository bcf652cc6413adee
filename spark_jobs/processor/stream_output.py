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
from spark_jobs.processor.json_rows import letter_values
from spark_jobs.processor.route import columns_to_send
from spark_jobs.processor.stats import Stats
from spark_jobs.worker import Worker

#: columns of source rows that results have none of
_INPUT_ONLY = ("_step", "_offset", "_now", "_op")


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
        came = self._milliseconds(int(rows["_now"][0]))
        for count, value in letter_values(rows.drop("_step", "_late", strict=False)):
            reason = f"{count} rows came after their windows were over"
            self._post_dead_letter("E_LATE", reason, last, came, value)

    def bury(self, failed: pl.DataFrame, last: int) -> None:
        """Send dead letters about source rows that failed, in the kernels' input layout, and about
        results that failed, which have no `_op`; all with `_reason`.
        """
        self._stats.failed += failed.height
        self._stats.error = str(failed["_reason"][0])[:1000]
        if "_op" not in failed.columns:
            self._bury_results(failed, last)
            return
        of_rows = failed.get_column("_op").is_not_null()
        if of_rows.any():
            self._bury_rows(failed.filter(of_rows), last)
        if not of_rows.all():
            self._bury_results(failed.filter(~of_rows), last)

    def _bury_rows(self, rows: pl.DataFrame, last: int) -> None:
        """Keep source rows whole, record by record; where the record is not known, or is one of
        another topic, they count for the chunk's *last*.
        """
        place = pl.lit(last, dtype=pl.Int64).alias("_offset")
        # rows that came through the exchange carry offsets of another topic
        if "_offset" in rows.columns and self._topic != names.EXCHANGE:
            own = pl.col("_offset")  # negative: it was there before the stream
            place = pl.when(own >= 0).then(own).otherwise(place).alias("_offset")
        kept = self._kept_columns(rows)
        for (offset,), part in rows.with_columns(place).group_by("_offset", maintain_order=True):
            came = self._came(part)
            for count, value in letter_values(part.select(kept)):
                reason = f"{count} rows failed: {part['_reason'][0]}"
                self._post_dead_letter("E_EXPRESSION", reason, int(str(offset)), came, value)

    def _kept_columns(self, rows: pl.DataFrame) -> list[str]:
        """Return the columns that a letter about source rows keeps: what the source has, but for
        values that were not sent through the exchange, which are NULL there only.
        """
        source = self.plan.source
        own = [column.name for column in (*source.columns, *source.tags)]
        if self._topic == names.EXCHANGE:
            sent = columns_to_send(self.plan)
            own = [name for name in own if name in sent]
        wanted = ("_offset", "_op", "tbname", *own, "_reason")
        return [name for name in wanted if name in rows.columns]

    def _came(self, rows: pl.DataFrame) -> int:
        """Return when the first of source *rows* came, in milliseconds."""
        came = rows["_now"][0] if "_now" in rows.columns else None
        return self._outbox.time if came is None else self._milliseconds(int(came))

    def _bury_results(self, results: pl.DataFrame, last: int) -> None:
        """Tell of results that failed by the chunk's *last* record. What they were made of is in
        the source, so they are computed again and not sent again.
        """
        again = f"RECALCULATE STREAM {self.plan.database}.{self.plan.name}"
        kept = [c for c in results.columns if c not in _INPUT_ONLY]
        for count, value in letter_values(results.select(kept)):
            reason = (
                f"{count} results failed: {results['_reason'][0]}. Results cannot be sent again:"
                f" mend the stream or its target, then {again}"
            )
            self._post_dead_letter("E_EXPRESSION", reason, last, self._outbox.time, value)

    def _post_dead_letter(
        self, code: str, reason: str, offset: int, came: int, value: bytes
    ) -> None:
        """Send a dead letter about rows or results, *value*, that came at *came*, in ms."""
        dead_letter = DeadLetter(
            self._topic, self._partition, offset, "stream", code, reason, came, self._id, value
        )
        self._outbox.post(names.DEAD_LETTER, encode(dead_letter), partition=0)
