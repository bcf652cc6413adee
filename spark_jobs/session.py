"""The one warm Spark session and the queries it runs: records of a topic into the operator, in real
time or in micro-batches.

Both modes read the same checkpoint and feed the same operator; they differ in the trigger and in
how records cross into Python. Refused: knowing which topics there are.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas import functions as spark_functions
from pyspark.sql.streaming.query import StreamingQuery

from penstock.config.environment import ENTRY_FILE_VARIABLE
from penstock.errors import BusError
from penstock.runtime import vital
from penstock.runtime.memory import ALLOCATORS
from penstock.runtime.second_compiler import let_second_compiler_yield
from penstock.setup import jars
from penstock.setup.java import TRIMS_NATIVE_MEMORY
from penstock.storage.checkpoints import directory_of
from spark_jobs.begins import starting_offsets
from spark_jobs.input import OFFSET_BITS
from spark_jobs.operator import Operator
from spark_jobs.queries import Mode, Wanted
from spark_jobs.settings import SHORTEST_EPOCH_SECONDS, SparkSettings

# what crosses is Arrow, but Spark asks for pandas as soon as a function is to cross; it is kept out
# of the driver (a fifth of its imports)
setattr(spark_functions, "require_minimum_pandas_version", lambda: None)  # noqa: B010

#: what a task does with its batches
Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: the records of a backlog outlive a young collection; G1 takes them without stopping, and gives
#: back what a burst took (docs/performance.md)
_COLLECTOR = (
    "-XX:+UseG1GC -XX:ParallelGCThreads=2 -XX:ConcGCThreads=1 -XX:G1PeriodicGCInterval=30000"
)
#: few compiler and collector threads: the work is in Python; nobody records Netty's events, whose
#: classes take longer to load than the first record to come
_JVM = (
    f"{_COLLECTOR} -Xms64m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=25 -Xss512k"
    f" -XX:CICompilerCount=2 -Dio.netty.jfr.enabled=false"
    f" {' '.join(TRIMS_NATIVE_MEMORY)}"
)
#: what crosses into Python, as `input.py` reads it: each column more costs a record on its own more
#: than its value does
_COLUMNS = (
    f"shiftleft(cast(partition AS bigint), {OFFSET_BITS}) + offset AS place",
    "unix_millis(timestamp) AS time",
    "value",
)
#: of the 104 bytes that every system allows, what the name that Spark chooses leaves
_LONGEST_DIRECTORY = 60
#: the bits of Spark's row number that count within a task
_ROW_OF_TASK = (1 << 33) - 1

#: why each is set: docs/decisions/0010-real-time-mode.md
_SESSION = {
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    "spark.sql.session.timeZone": "UTC",
}
#: on a disk Spark's default starts ten programs of the system for rights and links of each file of
#: its checkpoint, this one and the file system below it one
_BY_RENAMING = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
#: consumers and what they fetched are kept from one micro-batch to the next, not for five minutes
#: after the last
_KEPT_CONSUMERS = {
    f"spark.kafka.consumer.{cache}.{name}": value
    for cache in ("cache", "fetchedData.cache")
    for name, value in (("timeout", "15s"), ("evictorThreadRunInterval", "5s"))
}
#: else Spark starts as many threads as there are task slots for each of these
_FEW_THREADS = {
    "spark.rpc.netty.dispatcher.numThreads": "2",
    "spark.shuffle.mapOutput.dispatcher.numThreads": "1",
}
#: else Spark remembers a thousand jobs, stages and executions, and a hundred thousand tasks, for
#: pages that nobody serves
_SHORT_MEMORY = {
    "spark.ui.retainedJobs": "4",
    "spark.ui.retainedStages": "4",
    "spark.ui.retainedTasks": "16",
    "spark.sql.ui.retainedExecutions": "4",
    # how often it notes what goes on
    "spark.ui.liveUpdate.period": "60s",
}
_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: polls for what crosses at once: the garbage collector keeps more of larger ones than the fewer
#: questions save (docs/performance.md)
_POLLS = 4
_PER_MODE: dict[Mode, dict[str, str]] = {
    # one record at a time, and a filler: a larger batch would wait until it is full; the operator
    # coalesces by itself
    "realtime": {
        _AT_ONCE: "2",
        # row numbers are not for streams, says Spark, because they start afresh with each epoch:
        # here they have to
        "spark.sql.streaming.unsupportedOperationCheck": "false",
    },
    # a bound in bytes makes Spark add up its vectors after every row (only this number turns it
    # off): `backlog.py` finds a count that does
    "microbatch": {"spark.sql.execution.arrow.maxBytesPerBatch": "2147483647"},
}


def socket_directory(own: str) -> str:
    """Where Spark and its workers meet: in *own*, unless the paths of sockets there would be longer
    than a socket's may be. Pure.
    """
    # only their owner can connect to them
    return own if len(os.fsencode(own)) <= _LONGEST_DIRECTORY else "/tmp"  # noqa: S108


def checkpoint_files(directory: str) -> dict[str, str]:
    """Settings for how Spark writes its offsets below *directory*: an object store is left to
    Spark. Pure.
    """
    return (
        {
            "spark.sql.streaming.checkpointFileManagerClass": _BY_RENAMING,
            # without a file of checksums, with rights of its own, beside each file
            "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        }
        if directory_of(directory)
        else {}
    )


def _jar_options(*, local: bool) -> dict[str, str]:
    """Return where the classes of the Kafka source are. What Spark hands out by itself gets a class
    loader for each query, in which nothing is loaded or compiled yet; executors elsewhere get it no
    other way.
    """
    found = [str(path) for path in jars.paths("spark")]
    if local:
        return {"spark.driver.extraClassPath": os.pathsep.join(found)}
    return {"spark.jars": ",".join(found)}


def _options(settings: SparkSettings) -> dict[str, str]:
    """Return the settings of the context, those that the user gives last."""
    local = settings.master == "local"
    return {
        **_SESSION,
        **_jar_options(local=local),
        "spark.ui.enabled": "false",
        **({"spark.authenticate": "true"} if local or settings.secret else {}),
        "spark.driver.host": settings.driver_host,
        "spark.driver.bindAddress": settings.driver_host,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f"{_JVM} {settings.jvm_options}".strip(),
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.extraJavaOptions": _JVM,
        "spark.python.daemon.module": "spark_jobs.daemon",
        "spark.python.worker.reuse": "true",
        # on a TCP socket without TCP_NODELAY, as Spark's is, a record waits up to 40 ms for the
        # one before it to be acknowledged
        "spark.python.unix.domain.socket.enabled": "true",
        **(
            {"spark.python.unix.domain.socket.dir": socket_directory(tempfile.gettempdir())}
            if local
            else {}
        ),
        "spark.executorEnv.PYTHONPATH": ":".join(p for p in sys.path if p),
        # one worker per partition is the parallelism: threads below it would only fight over
        # the cores
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        **{f"spark.executorEnv.{name}": value for name, value in ALLOCATORS.items()},
        **({f"spark.executorEnv.{ENTRY_FILE_VARIABLE}": str(settings.entry_file)} if local else {}),
        "spark.task.maxFailures": "4",
        "spark.locality.wait": "0",
        "spark.scheduler.mode": "FAIR",
        "spark.ui.showConsoleProgress": "false",
        "spark.cleaner.periodicGC.interval": "10min",
        **_FEW_THREADS,
        **_SHORT_MEMORY,
        **_KEPT_CONSUMERS,
        # Hadoop's file systems set the rights of what they make themselves, whatever the
        # process's umask
        "spark.hadoop.fs.permissions.umask-mode": "077",
        **checkpoint_files(settings.checkpoint_dir),
        **settings.conf,
    }


def _is_new(wanted: Wanted) -> str:
    """Return a condition on records of a topic: their offset is not below the position that
    `note_positions` has told last. Pure.
    """
    name = f"concat('{_position_name(wanted, '')}', partition)"
    return f"offset >= cast(reflect('java.lang.Long', 'getLong', {name}, 0L) AS bigint)"


def _position_name(wanted: Wanted, partition: int | str) -> str:
    """Return the Java system property that a partition's position is in. Pure."""
    return f"penstock.position.{wanted.topic}.{wanted.id}-{partition}"


@dataclass
class SparkSessions:
    """A session per mode, over one context."""

    settings: SparkSettings
    context: SparkContext
    of: dict[Mode, SparkSession]

    @classmethod
    def start(cls, settings: SparkSettings) -> SparkSessions:
        local = settings.master == "local"
        # task retries exist in local mode only when asked for: one dead worker must not fail the
        # query
        conf = (
            SparkConf()
            .setMaster(f"local[{settings.slots},4]" if local else settings.master)
            .setAppName("penstock")
        )
        for key, value in _options(settings).items():
            conf.set(key, value)
        # there is no public way to either
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001
        let_second_compiler_yield(SparkContext._gateway.proc.pid)  # type: ignore[union-attr]  # noqa: SLF001
        if settings.secret is not None and not local:
            # what is set before the JVM is there stands on its command line
            conf.set("spark.authenticate.secret", settings.secret.get_secret_value())
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        context = session.sparkContext
        # what fails is reported by the supervisor; Spark would add a page for every task that a
        # stop cancels
        context.setLogLevel("FATAL")
        context.pythonExec = sys.executable
        sessions: dict[Mode, SparkSession] = {
            "realtime": session,
            "microbatch": session.newSession(),
        }
        for mode, own in sessions.items():
            for key, value in {**_SESSION, **_PER_MODE[mode]}.items():
                own.conf.set(key, value)
        return cls(settings, context, sessions)

    def when_gone(self, gone: Callable[[], object]) -> None:
        """Call *gone* as soon as the JVM has ended: a call into it would notice at the next look
        only.
        """
        # there is no public way
        process = self.context._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001

        def watch() -> None:
            process.wait()
            gone()

        threading.Thread(target=vital.run(watch), name="jvm", daemon=True).start()

    def note_positions(self, found: Iterable[tuple[Wanted, dict[int, int]]]) -> None:
        """Tell the JVM how far the state files are, by topic and partition: a task that is tried
        again begins where its epoch did, and need not hand over what lies below. Executors of a
        cluster are other JVMs; they hand over all.
        """
        lines = [
            f"{_position_name(wanted, partition)}={offset}\n"
            for wanted, positions in found
            for partition, offset in positions.items()
        ]
        java = self.context._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
        java.lang.System.getProperties().load(java.io.StringReader("".join(lines)))

    def give_back_memory(self) -> None:
        """Have the JVM return what it does not need to the system. It stands still for a moment:
        call this while nothing runs.
        """
        # an object of the JVM lives as long as its proxy here, and proxies are in cycles: plans of
        # queries long over, a quarter of a megabyte each
        gc.collect()
        self.context._jvm.java.lang.System.gc()  # type: ignore[union-attr]  # noqa: SLF001

    def slots(self) -> int:
        """Task slots that exist now."""
        return (
            self.settings.slots
            if self.settings.master == "local"
            else int(self.context.defaultParallelism)
        )

    def retry(self, attempt: int) -> None:
        """End a task attempt whose worker is dead, so that it is tried again: Spark itself notices
        when it next writes to it.
        """
        # there is no public way
        self.context._jsc.sc().killTaskAttempt(attempt, True, "its worker is dead")  # noqa: SLF001

    def query(
        self,
        wanted: Wanted,
        mode: Mode,
        operator: Operator,
        at_once: int,
        first: dict[int, int],
    ) -> StreamingQuery:
        """Start reading a topic into *operator*.

        Args:
            wanted: the topic; its checkpoint must be empty.
            mode: in real time, or a backlog in micro-batches.
            operator: what is done with the records.
            at_once: records of a backlog that are handed over together.
            first: the offset to begin at, by partition.

        Raises:
            BusError: Spark refuses, with its reason.
        """
        topic = wanted.topic
        try:
            if mode == "microbatch":
                self.of[mode].conf.set(
                    _AT_ONCE, str(at_once)
                )  # a query takes its session's settings over when it starts
            records = self._records(wanted, mode, at_once, since=starting_offsets(topic, first))
            checkpoint = self.settings.checkpoint(topic, wanted.id)
            return self._start(
                records, operator, mode, f"{topic} {mode}", checkpoint, self.settings.epoch_seconds
            )
        except (Py4JNetworkError, ConnectionError):
            raise  # the JVM is gone, and with it the use of this process
        except Exception as refused:
            raise BusError(
                f"Spark cannot read {topic}", topic=topic, detail=str(refused)[:500], retryable=True
            ) from refused

    def rehearse(
        self, wanted: Wanted, operator: Work, checkpoint: str, first: dict[int, int]
    ) -> StreamingQuery:
        """Start a query in real time over a topic, with epochs as short as they may be.

        Args:
            first: the offset to begin at, by partition.
        """
        since = starting_offsets(wanted.topic, first)
        records = self._records(wanted, "realtime", 1, since=since)
        return self._start(
            records, operator, "realtime", "rehearsal", checkpoint, SHORTEST_EPOCH_SECONDS
        )

    def _start(
        self,
        records: DataFrame,
        operator: Work,
        mode: Mode,
        name: str,
        checkpoint: str,
        epoch_seconds: float,
    ) -> StreamingQuery:
        writer = records.mapInArrow(operator, "value binary").writeStream.format("noop")
        writer = writer.queryName(name).option("checkpointLocation", checkpoint)
        if mode == "microbatch":
            return writer.outputMode("append").trigger(availableNow=True).start()
        epoch = f"{round(epoch_seconds * 1000)} milliseconds"
        # its overloads do not know real time
        trigger: Any = writer.outputMode("update").trigger
        query: StreamingQuery = trigger(realTime=epoch).start()
        return query

    def _records(self, wanted: Wanted, mode: Mode, at_once: int, *, since: str) -> DataFrame:
        options = {
            "kafka.bootstrap.servers": self.settings.kafka_bootstrap,
            **{f"kafka.{name}": value for name, value in self.settings.kafka_java_options.items()},
            "subscribe": wanted.topic,
            "startingOffsets": since,
            # what is missing below is the operator's to judge: its own position is the authority
            "failOnDataLoss": "false",
            "kafka.max.partition.fetch.bytes": str(4 << 20),
            # nobody collects it, and it loads classes before the first record
            "kafka.enable.metrics.push": "false",
        }
        if mode == "microbatch":
            options |= {
                "kafka.fetch.max.wait.ms": "5",
                # after every poll Spark asks the broker twice; what it returned is held for as long
                # as what crosses
                "kafka.max.poll.records": str(max(at_once // _POLLS, 1)),
                "maxOffsetsPerTrigger": "8000000",
            }
        loaded = self.of[mode].readStream.format("kafka").options(**options).load()
        if mode == "microbatch":
            return loaded.selectExpr(*_COLUMNS)
        # Spark hands two rows over when a third has come: the filler behind a record sends it off
        # and goes with the next one, and the very first record of a task has one in front
        numbered = loaded.where(_is_new(wanted)).selectExpr(
            *_COLUMNS, f"monotonically_increasing_id() & {_ROW_OF_TASK} AS row"
        )
        record = "struct(place, time, value)"
        return numbered.selectExpr(
            f"inline(if(row = 0, array(null, {record}, null), array({record}, null)))"
        )
