"""Records that Spark has left out, read from the log."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.bus import Reader
from penstock.codec import schema_ids
from penstock.errors import StateError
from spark_jobs.input import Records
from spark_jobs.worker import Worker

_PATIENCE = 30.0


def read_gap(
    worker: Worker, topic: str, partition: int, start: int, until: int
) -> Iterator[Records]:
    """Yield the records of a partition from offset *start* to before *until*.

    Offsets for which the log has no record (a transaction's markers) are left out.

    Raises:
        StateError: the log does not hold them any more, or cannot be read.
    """
    place = (topic, partition)
    first = worker.admin.start_offsets([place])[place]
    if first > start:
        raise StateError(
            f"{topic}[{partition}]: records {start}..{first - 1} are needed but"
            " no longer in the log",
            hint="restore a newer state, or drop and create the streams again",
        )
    at = start
    silent = 0
    with Reader(
        worker.settings.kafka_bootstrap, {place: start}, client_id="penstock-gap", max_wait_ms=20
    ) as reader:
        while at < until and silent < _PATIENCE:
            batches = reader.read(worker.settings.unit_records, 1.0)
            silent = 0 if batches else silent + 1
            for batch in batches:
                stop = int(batch.offsets.searchsorted(until))
                if stop:
                    values = batch.values[:stop]
                    yield Records(
                        topic,
                        partition,
                        batch.offsets[:stop],
                        batch.timestamps[:stop],
                        values,
                        schema_ids(values),
                    )
                at = until if stop < len(batch) else batch.next_offset
    if at < until:
        raise StateError(f"{topic}[{partition}]: records {at}..{until - 1} cannot be read")
