"""throughput_*: a backlog in Kafka to 10 s windows per table in the result table, and plain Spark
over the same rows.

The stream is created first, the jobs are held, a round's rows are published, the jobs go on: what
is measured is the operator's rate and not the publisher's. The clock runs between positions that
the operator has saved, which it does only when every result before them is acknowledged. After the
last round all windows are flushed and compared with polars' answer to the same rows.
"""

from __future__ import annotations

import json
import statistics

import polars as pl

from bench import baseline, rows
from bench.fill import fill
from bench.profile import Profile
from bench.report import Recorder, median_line, number
from bench.rows import Fleet
from bench.stage import Stage
from penstock import names
from penstock.bus import Reader
from penstock.codec import TableCodec, schema_ids

_STREAM = (
    "CREATE STREAM {db}.s TRIGGER WINDOW_CLOSE INTO {db}.w TAGS (meter VARCHAR(20)) AS "
    "SELECT _wstart, count(*) AS n, sum(current) AS s, avg(current) AS c, max(voltage) AS v "
    "FROM {db}.meters PARTITION BY tbname AS meter INTERVAL(10s)"
)
_TOPIC = "bench.plain"
_WARM_ROWS = 8_000_000


def plain_spark(stage: Stage, profile: Profile, record: Recorder) -> float:
    """Rows/s of the plain Spark job: the median of three thirds of its warm micro-batches."""
    fleet = Fleet()
    sweeps = fleet.sweeps(profile.baseline_rows)
    stage.admin.ensure_topics({_TOPIC: fleet.partitions}, replication=1)
    with stage.held():
        fill(stage.mesh.kafka_bootstrap, _TOPIC, fleet, 0, sweeps, None, 1)
        arguments = (
            "throughput",
            "--bootstrap",
            stage.mesh.kafka_bootstrap,
            "--topic",
            _TOPIC,
            "--schema",
            json.dumps(rows.PLAIN),
        )
        per_trigger = str(min(4_000_000, profile.baseline_rows // 8))
        with baseline.process(
            stage.mesh.settings, *arguments, "--per-trigger", per_trigger
        ) as child:
            assert child.stdout is not None
            said = [json.loads(line) for line in child.stdout]
    stage.admin.delete_topics([_TOPIC])
    full = [b for b in said if b.get("rows")]
    cores = next(b["cpu"] for b in said if "cpu" in b) / sum(b["rows"] for b in full) * 1e6
    warm = full[max(2, len(full) // 4) :]
    third = max(len(warm) // 3, 1)
    parts = [warm[i : i + third] for i in range(0, third * 3, third) if warm[i : i + third]]
    rates = [sum(b["rows"] for b in part) / sum(b["ms"] for b in part) * 1000 for part in parts]
    record.add(
        median_line(
            "throughput_baseline_spark",
            rates,
            "rows/s",
            mode="microbatch",
            note=f"from_avro + groupBy(window, tbname), {len(warm)} warm micro-batches of {max(b['rows'] for b in warm)} rows; "
            f"{cores:.2f} core s of its JVM for a million rows, warming up included",
        )
    )
    return float(statistics.median(rates))


def penstock(stage: Stage, profile: Profile, record: Recorder, size: int, base: float) -> None:
    """Rows/s from records of *size* rows, and whether every window is right."""
    name, total = (
        ("throughput_single", profile.single_rows)
        if size == 1
        else (f"throughput_batch{size}", profile.batch_rows)
    )
    database = f"bench{size}"
    topic = names.ingest_topic(database)
    stage.client.execute(f"CREATE DATABASE {database}")
    stage.client.execute(f"CREATE STABLE {database}.meters {rows.COLUMNS}")
    stage.client.execute(_STREAM.format(db=database))
    table = stage.table(database, "meters")
    fleet = Fleet(partitions=table.partitions)
    # of the same kind, and at most as many rows as the baseline's first micro-batches have, which
    # do not count either
    warm = fleet.sweeps(min(_WARM_ROWS, total // 2))
    with stage.held():
        fill(stage.mesh.kafka_bootstrap, topic, fleet, 0, warm, table, size)
    stage.caught_up(topic, stage.ends(topic), {})
    sweeps = fleet.sweeps(total)
    done = warm
    modes = set[str]()
    rates: list[float] = []
    steady: list[float] = []
    spent: list[float] = []
    start_ups: list[float] = []
    for _ in range(profile.rounds):
        start = stage.ends(topic)
        with stage.held():
            seconds = fill(stage.mesh.kafka_bootstrap, topic, fleet, done, sweeps, table, size)
            until = stage.ends(topic)
            before = stage.cpu("spark")
        done += sweeps
        drained = stage.caught_up(topic, until, start)
        spent.append((stage.cpu("spark") - before) / (sweeps * fleet.tables) * 1e6)
        written = sum(until.values()) - sum(start.values())
        rates.append(drained.rate * sweeps * fleet.tables / written)
        steady.append(drained.steady * sweeps * fleet.tables / written)
        modes |= drained.modes
        start_ups.append(drained.start_up)
    wrong, count = compare(stage, database, fleet, done)
    if wrong:
        record.problem(f"{name}: {wrong} of {count} windows differ from polars'")
    note = f"{profile.rounds} × {sweeps * fleet.tables / 1e6:g} M rows, {count} windows equal polars' except {wrong}; "
    note += f"{number(statistics.median(steady))} between a tenth and nine tenths of the way; "
    note += f"{statistics.median(spent):.2f} core s of the stream jobs for a million rows"
    record.add(
        median_line(
            name,
            rates,
            "rows/s",
            baseline=base,
            mode="+".join(sorted(modes)) or "-",
            note=note,
            extra={
                "fill_rows_per_s": round(sweeps * fleet.tables / seconds),
                "start_up_s": start_ups,
            },
        )
    )
    stage.drop(database)


def compare(stage: Stage, database: str, fleet: Fleet, sweeps: int) -> tuple[int, int]:
    """(windows that differ or are missing, windows) after the last ones were flushed."""
    topic = names.ingest_topic(database)
    stage.client.execute(f"FLUSH STREAM {database}.s")
    stage.caught_up(topic, stage.ends(topic), {})
    table = stage.table(database, "w")
    codec = TableCodec(table)
    ends = {(topic, p): end for p, end in stage.ends(topic).items()}
    left = dict(ends)
    parts = []
    with Reader(
        stage.mesh.kafka_bootstrap, dict.fromkeys(ends, 0), client_id="bench-check"
    ) as reader:
        while left:
            for batch in reader.read(20_000, 1.0):
                ids = schema_ids(batch.values)
                values = [v for v, i in zip(batch.values, ids, strict=True) if i == table.schema_id]
                if values:
                    parts.append(
                        codec.decode(values).rows.select("meter", "_wstart", "n", "s", "c", "v")
                    )
                if batch.next_offset >= left.get((batch.topic, batch.partition), 1 << 62):
                    left.pop((batch.topic, batch.partition))
    found = pl.concat(parts).unique(["meter", "_wstart"], keep="last", maintain_order=True)
    wanted = rows.expected(fleet, sweeps)
    both = wanted.join(
        found, left_on=["tbname", "wstart"], right_on=["meter", "_wstart"], how="full", suffix="_p"
    )
    same = (
        (pl.col("n") == pl.col("n_p"))
        & (pl.col("s") == pl.col("s_p"))
        & (pl.col("v") == pl.col("v_p"))
        & ((pl.col("c") - pl.col("s") / pl.col("n")).abs() < 1e-9)
    )
    return both.filter(~same.fill_null(False)).height, wanted.height


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """All throughput lines."""
    base = plain_spark(stage, profile, record)
    penstock(stage, profile, record, 250, base)
    penstock(stage, profile, record, 1, base)
