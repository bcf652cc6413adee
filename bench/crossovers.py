"""crossover_*: up to which size the first of two ways is the cheaper one, beside the number that
`penstock/tuning.py` has for it. In a process of its own, where polars has one thread as in the
stream jobs' workers.

Not here: numbers of the event loop, which weigh what others wait, and those whose second way ends
on a network or begins in Spark.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import polars as pl
import pyarrow as pa

from bench.alone import alone
from bench.profile import Profile
from bench.report import Line, Recorder
from penstock import tuning
from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec, schema_ids
from penstock.rows import arrow_reader
from penstock.rows.partition import hashes
from penstock.sql.plan import Column
from penstock.types import ColumnType
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows import columnwise

_COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")))
_TABLE = Table(1, "db", "m", "plain", "in.db", 1, "ms", (TableVersion(100, _COLUMNS, ()),))
#: sizes that are tried, as parts of the number
_PARTS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
#: more than any size
_ALL = 1 << 40

Work = Callable[[], object]


@dataclass(frozen=True)
class Timed:
    """What both ways cost at one size, in µs."""

    size: int
    first: float
    second: float


def rows(count: int) -> pl.DataFrame:
    """So many rows of as many tables."""
    return pl.DataFrame(
        {
            "tbname": [f"d{i:06d}" for i in range(count)],
            "ts": range(count),
            "v": [i / 8 for i in range(count)],
        },
        schema_overrides={"ts": pl.Int64},
    )


def _hash(count: int) -> Work:
    names = rows(count).get_column("tbname")
    return lambda: hashes(names)


def _name(count: int) -> Work:
    names = TableNames()
    frame = rows(count)
    # a clone, because the numbers of the last frames are kept
    return lambda: names.numbers(frame.clone())


def _compare(count: int) -> Work:
    frame = rows(count)
    return lambda: columnwise.repeats(frame, ["tbname", "ts"])


def _query(expressions: int, count: int) -> Work:
    frame = rows(count)
    projection = Projection([(pl.col("v") * i).alias(f"e{i}") for i in range(expressions)])
    return lambda: projection.columns(frame)


def _encode(count: int) -> Work:
    codec = TableCodec(_TABLE)
    frame = rows(count)
    return lambda: codec.encode(frame)


def _encode_writes(count: int) -> Work:
    codec = TableCodec(_TABLE)
    frame = rows(count)
    return lambda: codec.encode(frame, writes=[count])


def _values(count: int) -> list[bytes]:
    codec = TableCodec(_TABLE)
    return [codec.encode(rows(1))[0] for _ in range(count)]


def _decode(count: int) -> Work:
    codec = TableCodec(_TABLE)
    values = _values(count)
    return lambda: codec.decode(values)


def _unframe(count: int) -> Work:
    values = _values(count)
    return lambda: schema_ids(values)


def _validate(count: int) -> Work:
    table = pa.table({"s": [f"text {i}" for i in range(count)], "v": list(range(count))})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue()
    return lambda: arrow_reader.read(data)


#: of numbers in `penstock/tuning.py` what they decide about, for a size
WORK: dict[str, Callable[[int], Work]] = {
    "RECORDS_DECODED_TO_VALUES": _decode,
    "FRAME_ROWS_ENCODED_BY_FASTAVRO": _encode,
    "ARROW_ROWS_ENCODED_BY_FASTAVRO": _encode_writes,
    "VALUES_UNFRAMED_ONE_BY_ONE": _unframe,
    "NAMES_HASHED_ONE_BY_ONE": _hash,
    "ROWS_NAMED_BY_DICTIONARY": _name,
    "ROWS_COMPARED_BY_SET": _compare,
    "EXPRESSIONS_QUERIED_ONE_BY_ONE": lambda count: _query(count, 1),
    "ROWS_QUERIED_ONE_BY_ONE": lambda count: _query(3, count),
    "BATCH_ROWS_VALIDATED_TOGETHER": _validate,
}


def sizes(number: int) -> list[int]:
    """Return the sizes that are tried for a number."""
    return sorted({max(round(number * part), 1) for part in _PARTS})


def cheaper_up_to(tried: Sequence[Timed]) -> int:
    """Return the size up to which the first way costs no more; 0 if it always does."""
    cheaper = list(takewhile(lambda timed: timed.first <= timed.second, tried))
    return cheaper[-1].size if cheaper else 0


def both_ways(name: str, size: int) -> tuple[Work, Work]:
    """Return the two ways of one size."""
    work = WORK[name](size)

    def way(number: int) -> Work:
        def run() -> object:
            before = getattr(tuning, name)
            setattr(tuning, name, number)
            try:
                return work()
            finally:
                setattr(tuning, name, before)

        return run

    return way(_ALL), way(0)


def _time(work: Work, seconds: float) -> float:
    """Return the median cost of a call, in µs."""
    work()
    took: list[float] = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end or len(took) < 5:
        work()
        took.append(time.perf_counter() - begin)
    return statistics.median(took) * 1e6


def line(name: str, seconds: float) -> Line:
    """Measure one number; each way has so many *seconds* for a size."""
    number = getattr(tuning, name)
    tried = []
    for size in sizes(number):
        first, second = both_ways(name, size)
        tried.append(Timed(size, _time(first, seconds), _time(second, seconds)))
    found = cheaper_up_to(tried)
    note = "; ".join(f"{t.size}: {t.first:.0f} or {t.second:.0f} µs" for t in tried)
    return Line(f"crossover_{name.lower()}", found, "size", baseline=number, note=note)


def measure(profile: Profile, record: Recorder, chosen: str = "") -> None:
    """One line a number; baseline: what `penstock/tuning.py` says."""
    wanted = [n for n in WORK if f"crossover_{n.lower()}".startswith(tuple(chosen.split(",")))]
    seconds = 0.02 if profile.name == "quick" else 0.2 * profile.rounds
    with alone() as pool:
        for name in wanted:
            record.add(pool.submit(line, name, seconds).result())
