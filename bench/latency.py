"""latency_*: from Kafka's acknowledgement of a row to its result in a consumer's hands, real-time
mode, warm, epochs turning.

A filter stream and 1 s windows per child table, at 1,000 single-row records/s and at 100,000 rows/s
in batches as the gateway makes them. The baseline is Spark's own real-time mode without Python. A
row of a window counts until the first result that includes it; a closed window counts from the
first record of the unit that closed it.
"""

from __future__ import annotations

import json
import math
import time
import uuid

import numpy as np
import polars as pl
import pyruhvro

from bench import baseline, load
from bench.load import Load, Outcome
from bench.profile import Profile
from bench.report import Line, Recorder, median_line, number
from bench.stage import Stage
from gateway.settings import partitions_here
from penstock import names
from penstock.codec import TableCodec, schema_ids

_DATABASE = "latency"
_STREAMS = {
    "filter": "TRIGGER AT_ONCE INTO latency.out_{n} AS SELECT ts, seq, current, voltage FROM latency.meters "
    f"WHERE voltage >= {load.PASSES} PARTITION BY tbname AS meter",
    "window": "TRIGGER AT_ONCE INTO latency.out_{n} AS SELECT _wstart, count(*) AS n, max(seq) AS newest FROM latency.meters "
    "PARTITION BY tbname AS meter INTERVAL(1s)",
    "window_close": "TRIGGER WINDOW_CLOSE INTO latency.out_{n} AS SELECT _wstart, count(*) AS n, max(seq) AS newest FROM latency.meters "
    "PARTITION BY tbname AS meter INTERVAL(1s)",
}
_RATES = {"1k": (1_000, False), "100k": (100_000, True)}
#: results that the reader has, latency in ms, and when the row was due
Latencies = pl.DataFrame


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """All latency lines."""
    stage.client.execute(f"CREATE DATABASE {_DATABASE}")
    stage.client.execute(f"CREATE STABLE {_DATABASE}.meters {load.COLUMNS}")
    cold = _idle(stage, profile, record)
    for label in _RATES:
        base = _rounds(_baseline(stage, profile, label), profile)
        for kind in _STREAMS:
            found, outcome = _stream(stage, profile, kind, label, record)
            whole = load.percentiles(
                found.filter(pl.col("due") >= profile.warm_seconds)["ms"].to_numpy()
            )
            _report(
                f"latency_{kind}_{label}", _rounds(found, profile), base, whole, record, outcome
            )
    warm = _idle(stage, profile, record)
    note = f"{profile.idle_records} records, one a second, after all the others; p99 {number(warm['p99'])} ms"
    note += f"; p50 in a mesh just started {number(cold['p50'])} ms"
    record.add(Line("latency_idle_p50", warm["p50"], "ms", mode="realtime", note=note))
    stage.drop(_DATABASE)


def _seconds(profile: Profile) -> float:
    return profile.warm_seconds + profile.rounds * profile.latency_seconds


def _rounds(found: Latencies, profile: Profile) -> list[dict[str, float]]:
    """Percentiles of each round; what came while warming up is left out."""
    rounds = []
    for i in range(profile.rounds):
        start = profile.warm_seconds + i * profile.latency_seconds
        part = found.filter(
            pl.col("due").is_between(start, start + profile.latency_seconds, closed="left")
        )
        rounds.append(
            load.percentiles(part["ms"].to_numpy())
            | {"from_send_p50": float(part["send_ms"].quantile(0.5) or math.nan)}
        )
    return rounds


def _report(
    name: str,
    rounds: list[dict[str, float]],
    base: list[dict[str, float]],
    whole: dict[str, float],
    record: Recorder,
    outcome: Outcome,
) -> None:
    """Medians of the rounds; an epoch turns in one of them only, so the whole run is told beside
    them.
    """
    for p in ("p50", "p99", "p999"):
        note = f"{number(whole[p])} ms over all rounds"
        if p == "p50":
            note += f"; from produce() {np.median([r['from_send_p50'] for r in rounds]):.1f} ms"
        elif p == "p999":
            note += f"; the publisher was late by at most {outcome.behind * 1000:.0f} ms"
        middle = float(np.median([b[p] for b in base]))
        record.add(
            median_line(
                f"{name}_{p}",
                [r[p] for r in rounds],
                "ms",
                baseline=middle,
                mode="realtime",
                note=note,
            )
        )


def _stream(
    stage: Stage, profile: Profile, kind: str, label: str, record: Recorder
) -> tuple[Latencies, Outcome]:
    rate, batched = _RATES[label]
    suffix = uuid.uuid4().hex[:8]
    stream = f"{_DATABASE}.s_{suffix}"
    topic = names.ingest_topic(_DATABASE)
    stage.client.execute(f"CREATE STREAM {stream} {_STREAMS[kind].format(n=suffix)}")
    source = stage.table(_DATABASE, "meters")
    target = stage.table(_DATABASE, f"out_{suffix}")
    made = load.make(rate, _seconds(profile), source, batched=batched, partitions=source.partitions)
    outcome = load.run(stage.mesh.kafka_bootstrap, topic, topic, source.partitions, made)
    results = _results(outcome, TableCodec(target))
    stage.client.execute(f"DROP STREAM {stream}")
    if np.isnan(outcome.acked).any():
        record.problem(
            f"latency_{kind}_{label}: {int(np.isnan(outcome.acked).sum())} records were not acknowledged"
        )
    if kind == "window_close":
        return _closed(results, made, outcome), outcome
    found = _rows(
        results.rename({"newest": "seq"}) if kind == "window" else results,
        made,
        outcome,
        every=kind == "window",
    )
    wanted = (
        made.rows.height
        if kind == "window"
        else made.rows.filter(pl.col("voltage") >= load.PASSES).height
    )
    if found.height < wanted:
        record.problem(
            f"latency_{kind}_{label}: {wanted - found.height} of {wanted} rows have no result"
        )
    return found, outcome


def _results(outcome: Outcome, codec: TableCodec) -> pl.DataFrame:
    """Rows of the target table, with `read_at` and the stamp of the record they came in."""
    ids = schema_ids(outcome.values)
    index = np.flatnonzero(ids == codec.schema_id)
    decoded = codec.decode([outcome.values[i] for i in index])
    times = pl.DataFrame(
        {
            "_record": np.arange(len(index), dtype=np.uint32),
            "read_at": np.array(outcome.read_at)[index],
        }
    )
    meta = decoded.records.select("_record", "producer", "from_offset").join(times, on="_record")
    return decoded.rows.join(meta, on="_record", maintain_order="left")


def _rows(results: pl.DataFrame, made: Load, outcome: Outcome, *, every: bool) -> Latencies:
    """Latency of each row that has a result; with *every*, of each row up to the `seq` of its
    table's results.
    """
    first = results.select("seq", "read_at").group_by("seq").agg(pl.col("read_at").min())
    sent = made.rows.with_columns(
        acked=pl.Series(outcome.acked)[made.rows["record"].to_numpy()],
        sent=pl.Series(outcome.sent)[made.rows["record"].to_numpy()],
    )
    if every:
        by_table = first.join(made.rows.select("seq", "tbname"), on="seq").sort("seq")
        joined = sent.sort("seq").join_asof(
            by_table, on="seq", by="tbname", strategy="forward", check_sortedness=False
        )
    else:
        joined = sent.join(first, on="seq")
    return _timed(joined.filter(pl.col("read_at").is_not_null() & pl.col("acked").is_not_nan()))


def _timed(joined: pl.DataFrame) -> Latencies:
    since = {
        "ms": (pl.col("read_at") - pl.col("acked")).clip(0),
        "send_ms": pl.col("read_at") - pl.col("sent"),
    }
    return joined.select("due", **{name: seconds * 1000 for name, seconds in since.items()})


def _closed(results: pl.DataFrame, made: Load, outcome: Outcome) -> Latencies:
    """Latency of each closed window, from the first record of the unit that closed it."""
    records = pl.DataFrame(
        {
            "partition": made.partitions,
            "from_offset": outcome.offsets,
            "acked": outcome.acked,
            "sent": outcome.sent,
            "due": made.due,
        }
    )
    partition = pl.col("producer").str.split(":").list.last().cast(pl.Int64)
    return _timed(
        results.with_columns(partition=partition).join(records, on=["partition", "from_offset"])
    )


def _baseline(stage: Stage, profile: Profile, label: str) -> Latencies:
    """Spark's real-time mode over the same rows in plain Avro."""
    rate, batched = _RATES[label]
    topic = f"bench.latency.{label}"
    sink = f"bench.latency.{label}.out"
    partitions = partitions_here()
    stage.admin.ensure_topics({topic: partitions, sink: partitions}, replication=1)
    schema = load.PLAIN_BATCH if batched else load.PLAIN_SINGLE
    arguments = [
        "latency",
        "--bootstrap",
        stage.mesh.kafka_bootstrap,
        "--topic",
        topic,
        "--sink",
        sink,
        "--schema",
        json.dumps(schema),
    ]
    with (
        stage.held(),
        baseline.process(
            stage.mesh.settings, *arguments, *(["--batched"] if batched else [])
        ) as child,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        _until_alive(stage, topic, sink, partitions, batched)
        made = load.make(rate, _seconds(profile), None, batched=batched, partitions=partitions)
        outcome = load.run(stage.mesh.kafka_bootstrap, topic, sink, partitions, made)
    stage.admin.delete_topics([topic, sink])
    rows = pl.DataFrame(pyruhvro.deserialize_array(outcome.values, json.dumps(load.PLAIN_SINGLE)))
    return _rows(rows.with_columns(read_at=pl.Series(outcome.read_at)), made, outcome, every=False)


def _until_alive(stage: Stage, topic: str, sink: str, partitions: int, batched: bool) -> None:
    """Send a row now and then until the query passes one on."""
    deadline = time.monotonic() + 120
    while sum(stage.ends(sink).values()) == 0:
        if time.monotonic() > deadline:
            raise RuntimeError(f"nothing comes out of the baseline query over {topic}")
        made = load.make(400, 0.1, None, batched=batched, partitions=partitions)
        load.run(stage.mesh.kafka_bootstrap, topic, sink, partitions, made)


def _idle(stage: Stage, profile: Profile, record: Recorder) -> dict[str, float]:
    """Percentiles of one record now and then, on partitions where nothing else happens."""
    suffix = uuid.uuid4().hex[:8]
    topic = names.ingest_topic(_DATABASE)
    stage.client.execute(
        f"CREATE STREAM {_DATABASE}.s_{suffix} {_STREAMS['filter'].format(n=suffix)}".replace(
            str(load.PASSES), "0"
        )
    )
    source = stage.table(_DATABASE, "meters")
    target = stage.table(_DATABASE, f"out_{suffix}")
    made = load.make(
        1, profile.idle_records + 2, source, batched=False, partitions=source.partitions
    )
    outcome = load.run(stage.mesh.kafka_bootstrap, topic, topic, source.partitions, made)
    found = _rows(_results(outcome, TableCodec(target)), made, outcome, every=False).filter(
        pl.col("due") >= 2
    )
    stage.client.execute(f"DROP STREAM {_DATABASE}.s_{suffix}")
    if found.height < profile.idle_records:
        record.problem(
            f"latency_idle: {profile.idle_records - found.height} records have no result"
        )
    return load.percentiles(found["ms"].to_numpy())
