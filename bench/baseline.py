"""What Penstock is compared with: plain Spark jobs over plain Avro, in a JVM of their own, on the
same broker.

`throughput`: `from_avro`, 10 s windows per table (count, avg, max), RocksDB state, micro-batches,
warm. `latency`: real-time mode without Python: `from_avro`, a filter, a Kafka sink. Runs as `python
-m bench.baseline`, so that nothing of Spark is in the bench's own process; says what it found as
JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from penstock.config.settings import Settings
from penstock.mesh.process import die_with_parent
from penstock.setup import jars
from penstock.setup.java import find_java, spark_java_home

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _session(scratch: str, options: dict[str, str], slots: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{slots}]").appName("baseline")
    common = {
        "spark.jars": ",".join(str(p) for p in jars.paths("spark")),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1500m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": scratch,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }
    for key, value in {**common, **options}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _source(session: Any, bootstrap: str, topic: str, options: dict[str, str]) -> Any:
    reader = (
        session.readStream.format("kafka").options(**_brokers(bootstrap)).option("subscribe", topic)
    )
    return reader.options(**options).load()


def _brokers(bootstrap: str) -> dict[str, str]:
    """Where the brokers are, and how the mesh, whose settings are in the environment, logs in to
    them.
    """
    return {"kafka.bootstrap.servers": bootstrap} | {
        f"kafka.{k}": v for k, v in Settings.load().kafka_java_options.items()
    }


def _cpu() -> float:
    """CPU seconds of this process's JVM."""
    times = [p.cpu_times() for p in psutil.Process().children(recursive=True)]
    return float(sum(t.user + t.system for t in times))


def throughput(bootstrap: str, topic: str, schema: str, per_trigger: int, scratch: str) -> None:
    """Read the topic to its end; print rows and milliseconds of every micro-batch, and sums of what
    was computed last.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    cores = len(os.sched_getaffinity(0))
    options = {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    }
    session = _session(scratch, options, str(cores))
    fetch = {
        "kafka.fetch.max.wait.ms": "5",
        "kafka.max.partition.fetch.bytes": str(4 << 20),
        "kafka.max.poll.records": "16384",
    }
    start = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(per_trigger)}
    rows = (
        _source(session, bootstrap, topic, fetch | start)
        .select(from_avro("value", schema).alias("r"))
        .select("r.*")
    )
    windows = rows.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds"), "tbname")
    result = windows.agg(
        F.count("*").alias("n"), F.avg("current").alias("c"), F.max("voltage").alias("v")
    )
    writer = (
        result.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", f"{scratch}/checkpoint")
    )
    before = _cpu()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    print(json.dumps({"cpu": _cpu() - before}), flush=True)
    for p in query.recentProgress:
        print(
            json.dumps({"rows": p["numInputRows"], "ms": p["durationMs"]["triggerExecution"]}),
            flush=True,
        )
    session.stop()


def latency(
    bootstrap: str, topic: str, sink: str, schema: str, batched: bool, scratch: str
) -> None:
    """Filter records (or rows of batches) into *sink* in real-time mode until stdin closes; prints
    `ready` once it reads.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro, to_avro

    options = {
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    }
    session = _session(scratch, options | {"spark.sql.adaptive.enabled": "false"}, "8")
    source = _source(session, bootstrap, topic, {"startingOffsets": "latest"})
    if batched:
        rows = source.select(F.explode(from_avro("value", schema)["rows"]).alias("r")).where(
            "r.voltage >= 236"
        )
        out = rows.select(to_avro("r").alias("value"))
    else:
        out = source.where(from_avro("value", schema)["voltage"] >= 236).select("value")
    writer: Any = (
        out.writeStream.format("kafka").options(**_brokers(bootstrap)).option("topic", sink)
    )
    writer = (
        writer.option("kafka.linger.ms", "0")
        .option("checkpointLocation", f"{scratch}/checkpoint")
        .outputMode("update")
    )
    query = writer.trigger(realTime="60 seconds").start()
    print(json.dumps({"started": True}), flush=True)
    sys.stdin.read()
    query.stop()
    session.stop()


@contextmanager
def process(settings: Mapping[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """This module in a process of its own; *settings*: those of the mesh whose broker it reads."""
    with tempfile.TemporaryDirectory(prefix="penstock-baseline-") as scratch:
        java = spark_java_home(find_java(), Path(scratch, "java"))
        environment = {
            **os.environ,
            **settings,
            "JAVA_HOME": str(java),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with open(f"{scratch}/errors", "wb") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "bench.baseline", *arguments, "--scratch", scratch],
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=die_with_parent(15),
            )
            try:
                yield child
            finally:
                assert child.stdin is not None
                child.stdin.close()
                try:
                    status = child.wait(60)
                except subprocess.TimeoutExpired:
                    child.kill()
                    status = child.wait()
        if status:
            raise RuntimeError(
                f"baseline {arguments[0]} failed: {Path(scratch, 'errors').read_text(errors='replace')[-1500:]}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=["throughput", "latency"])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--schema", required=True)
    parser.add_argument("--sink", default="")
    parser.add_argument("--batched", action="store_true")
    parser.add_argument("--per-trigger", type=int, default=1_000_000)
    parser.add_argument("--scratch", required=True)
    given = parser.parse_args()
    if given.job == "throughput":
        throughput(given.bootstrap, given.topic, given.schema, given.per_trigger, given.scratch)
    else:
        latency(
            given.bootstrap, given.topic, given.sink, given.schema, given.batched, given.scratch
        )


if __name__ == "__main__":
    main()
