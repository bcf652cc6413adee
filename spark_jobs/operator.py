"""The operator: the function that Spark runs over a task's records, a thin adapter around a
partition processor.

It publishes by itself (Spark reads a Python worker's output only when an epoch ends) and hands
Spark nothing. It never returns before its input has ended, because Spark would take what is left as
done. Any failure ends the process at once: Spark notices a death in 0.1 s, an exception only at the
end of the epoch. The end of the input may be a cancelled task, so it means "save now", not
"committed".
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
from pyspark import TaskContext

from penstock import names
from penstock.errors import StateError
from penstock.runtime import log
from spark_jobs import pipe
from spark_jobs.input import Inbox, Records
from spark_jobs.processor.exchange import ExchangeProcessor
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.scan import ScanProcessor
from spark_jobs.settings import SparkSettings
from spark_jobs.task_batches import InputEnded, TaskBatches
from spark_jobs.worker import Worker, worker_of

#: exit status of a worker that failed (sysexits.h: internal software error)
EXIT_FAILED = 70


class Operator:
    """Called by Spark with an iterator over record batches of one topic-partition; `input.py` says
    what is in them.
    """

    def __init__(self, settings: SparkSettings, topic: str, topic_id: int, token: str = "") -> None:
        self._settings = settings
        self._topic = topic
        self._id = topic_id
        self._token = token

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            self._work(batches)
        except InputEnded:
            # Spark waits for nothing from this worker: it ends like one that failed, and nothing
            # has
            log.get(__name__).info("a task ended before it began", topic=self._topic)
            os._exit(EXIT_FAILED)
        except BaseException as error:  # noqa: B036  nothing may leave as an exception
            _die(error)
        return
        yield

    def _work(self, batches: Iterator[pa.RecordBatch]) -> None:
        source = pipe.current()
        if TaskContext.get() is not None and source is None:
            raise StateError(
                "this worker cannot tell whether records wait",
                hint="spark.python.daemon.module must be spark_jobs.daemon",
            )
        worker = worker_of(self._settings, self._token)
        self._report_start(worker)
        task_batches = TaskBatches(batches, source)
        inbox = Inbox(
            self._topic,
            task_batches,
            max_records=self._settings.unit_records,
            max_bytes=self._settings.unit_bytes,
        )
        processor: PartitionProcessor | None = None
        while True:
            records = inbox.take(processor.due if processor is not None else None)
            if records is None:
                break
            if len(records):
                if processor is None:
                    processor = self._open_processor(worker, records)
                processor.feed(records)
            if processor is not None:
                processor.snapshot_if_due()
        if processor is not None:
            processor.close()
        worker.failpoints.reach("before_commit")

    def _open_processor(self, worker: Worker, records: Records) -> PartitionProcessor:
        """Return the processor of the topic-partition that *records* are the first of."""
        kind = ExchangeProcessor if records.topic == names.EXCHANGE else ScanProcessor
        directory = state_directory(self._settings, records.topic, self._id, records.partition)
        first_time = int(records.timestamps[0])
        return kind(worker, directory, records.topic, self._id, records.partition, first_time)

    def _report_start(self, worker: Worker) -> None:
        """Say that a task of this query reads; without records it knows its number only, not its
        partition.
        """
        context = TaskContext.get()
        if context is not None:
            epoch = context.getLocalProperty("streaming.sql.batchId")
            task = {
                "attempt": context.taskAttemptId(),
                "epoch": epoch,
                "host": socket.gethostname(),
                "pid": os.getpid(),
            }
            key = names.query_progress(self._topic)
            field = f"task:{context.partitionId()}"
            value = json.dumps(task)
            worker.report(lambda r: r.hset(key, field, value))


def state_directory(settings: SparkSettings, topic: str, topic_id: int, partition: int) -> str:
    """Where the state files of one topic-partition are."""
    return names.state_directory(settings.state_dir, str(topic_id), topic, partition)


def _die(error: BaseException) -> NoReturn:
    try:
        log.get(__name__).critical(
            "operator failed", error=str(error), trace="".join(traceback.format_exception(error))
        )
        sys.stderr.flush()
    finally:
        os._exit(EXIT_FAILED)
