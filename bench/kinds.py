"""windows_stack_*: rows/s of each window kind through the stream jobs: a backlog in Kafka to
windows in the result table.

The same rows and statements as `bench.windows` gives the kernels alone, so a line here beside its
line there says what the way costs. Each kind has a database of its own. Its stream is made first
and a warm-up has gone through; then the jobs are held while a round's rows are published, and the
clock runs between positions that the operator has saved.
"""

from __future__ import annotations

import statistics

from bench import windows
from bench.profile import Profile
from bench.report import Recorder, median_line, number
from bench.stage import Stage
from penstock import names
from penstock.bus import Publisher
from penstock.catalog.model import Table
from penstock.codec import TableCodec

_KINDS = {
    "interval": "interval_window_close",
    "session": "session",
    "state": "state",
    "event": "event",
    "count": "count",
    "recompute": "recompute",
}
#: rows published at once: some 250 in each partition's record
_PUBLISHED = 1000


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """One line a window kind."""
    for name, kind in _KINDS.items():
        _measure(stage, profile, record, name, kind)


def _measure(stage: Stage, profile: Profile, record: Recorder, name: str, kind: str) -> None:
    database = f"kind_{name}"
    topic = names.ingest_topic(database)
    stage.client.execute(f"CREATE DATABASE {database}")
    stage.client.execute(f"CREATE STABLE meters {windows.COLUMNS}", database=database)
    stage.client.execute(windows.statement(kind), database=database)
    table = stage.table(database, "meters")
    done = windows.WARM
    each = max(profile.stack_rows // windows.UNIT, 4) * windows.UNIT
    _publish(stage, table, kind, 0, done)
    stage.caught_up(topic, stage.ends(topic), {})
    rates: list[float] = []
    steady: list[float] = []
    modes: set[str] = set()
    for _ in range(profile.rounds):
        start = stage.ends(topic)
        with stage.held():
            _publish(stage, table, kind, done, each)
            until = stage.ends(topic)
        done += each
        drained = stage.caught_up(topic, until, start)
        rows_each = each / (sum(until.values()) - sum(start.values()))
        rates.append(drained.rate * rows_each)
        steady.append(drained.steady * rows_each)
        modes |= drained.modes
    note = f"{profile.rounds} × {each / 1e6:g} M rows; {number(statistics.median(steady))} between a tenth and nine tenths of the way"
    record.add(
        median_line(
            f"windows_stack_{name}", rates, "rows/s", mode="+".join(sorted(modes)) or "-", note=note
        )
    )
    stage.drop(database)


def _publish(stage: Stage, table: Table, kind: str, first: int, rows: int) -> None:
    """Rows *first*.. of the fleet straight to Kafka, in records as the gateway would make them."""
    codec = TableCodec(table)
    with Publisher(stage.mesh.kafka_bootstrap, client_id="bench-kinds") as publisher:
        for unit in windows.units(kind, rows, first):
            data = unit.drop("_step", "_offset", "_now", "_op")
            for start in range(0, data.height, _PUBLISHED):
                for partition, value in codec.encode_partitioned(
                    data[start : start + _PUBLISHED], table.partitions
                ):
                    publisher.send(table.topic, value, partition=partition)
        publisher.flush()
