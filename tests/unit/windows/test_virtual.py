"""Virtual sources: whatever order the parts of a row come in, and however often the kernel is
restored, windows see the joined rows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import Member, Origin, Source, StreamPlan
from penstock.windows import Delta, Kernel, make_kernel
from penstock.windows.pause import PausableKernel
from penstock.windows.virtual import JoinKernel, Mapper, merged
from tests.unit.sql.memory_view import MemoryView, plan

T0 = 1_700_006_400_000
DDL = (
    "CREATE TABLE p (ts TIMESTAMP, a INT)",
    "CREATE TABLE q (ts TIMESTAMP, b INT)",
    "CREATE VTABLE v (ts TIMESTAMP, a INT FROM p.a, b INT FROM q.b)",
)


def planned(text: str) -> StreamPlan:
    made = plan(text, MemoryView(*DDL)).plan
    member = Member("v", (), (Origin("a", 101, "p", "a"), Origin("b", 102, "q", "b")))
    return replace(made, source=replace(made.source, members=(member,)))


def origin_rows(
    column: str, table: str, rows: list[tuple[int, int]], op: int = UPSERT
) -> pl.DataFrame:
    schema = {
        "_step": pl.UInt32,
        "_offset": pl.Int64,
        "_now": pl.Int64,
        "_op": pl.Int8,
        "tbname": pl.String,
        "ts": pl.Int64,
        column: pl.Int32,
    }
    lines = [(i, i, T0, op, table, T0 + t, v) for i, (t, v) in enumerate(rows)]
    return pl.DataFrame(lines, schema=schema, orient="row")


def apply(
    kernel: Kernel,
    mapper: Mapper,
    rows: pl.DataFrame,
    table: int,
    target: dict[int, tuple[object, ...]],
) -> None:
    part = mapper.rows(table, "ts", rows).drop("_origin").with_columns(_late=pl.lit(False))
    emission = kernel.apply(part)
    for row in emission.rows.iter_rows(named=True) if emission.rows is not None else ():
        if row["_op"] == DELETE:
            target.pop(row["ws"] - T0, None)
        else:
            target[row["ws"] - T0] = (row["n"], row["sa"], row["sb"])


@pytest.mark.parametrize("seed", range(12))
def test_joined_rows_do_not_depend_on_order_or_restarts(seed: int) -> None:
    chance = random.Random(seed)
    made = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, sum(a) sa, sum(b) sb FROM v INTERVAL(10a)"
    )
    mapper = Mapper(made.source)
    events = [(101, "a", "p", t, t) for t in range(40)] + [
        (102, "b", "q", t, 100 + t) for t in range(0, 40, 2)
    ]
    # each origin comes in order, but one may be far ahead of the other
    order = sorted(
        events, key=lambda e: (e[3] + (chance.random() * 60 if seed else 0) * (e[0] == 102), e[0])
    )
    ahead = (
        [e for e in order if e[0] == 101],
        sorted((e for e in order if e[0] == 102), key=lambda e: e[3]),
    )
    kernel = make_kernel(made)
    saved = list[Delta]()
    target = dict[int, tuple[object, ...]]()
    queues = [list(ahead[0]), list(ahead[1])]
    while any(queues):
        queue = chance.choice([q for q in queues if q])
        part = [queue.pop(0) for _ in range(min(len(queue), chance.randint(1, 5)))]
        apply(
            kernel,
            mapper,
            origin_rows(part[0][1], part[0][2], [(e[3], e[4]) for e in part]),
            part[0][0],
            target,
        )
        if chance.random() < 0.4:
            full = not saved or chance.random() < 0.3
            saved = [kernel.delta(full)] if full else [*saved, kernel.delta()]
            if chance.random() < 0.5:
                kernel = make_kernel(made)
                kernel.restore(saved)
    for start in range(0, 40, 10):
        a = list(range(start, start + 10))
        b = [100 + t for t in range(start, start + 10, 2)]
        assert target[start] == (10, sum(a), sum(b))


class Joined:
    """A virtual source's history in memory: what the origins have brought, joined by time."""

    since_begin = True

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts = list[pl.DataFrame]()

    def add(self, part: pl.DataFrame) -> None:
        self._parts.append(part)

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        rows = pl.concat(self._parts).filter(pl.col("ts").is_between(low, high))
        return (
            merged(rows, self._source)
            .with_columns(pl.lit(UPSERT, pl.Int8).alias("_op"))
            .sort("tbname", "ts")
        )

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        return self.fetch(low, high, tables)


_JOINED = (
    "INTERVAL(10a)",
    "INTERVAL(10a) SLIDING(5a)",
    "SESSION(ts, 2a)",
    "STATE_WINDOW(a)",
    "EVENT_WINDOW START WITH a = 1 END WITH b = 2",
)


@pytest.mark.parametrize("room", range(1, 51))
def test_joined_rows_do_not_depend_on_room(room: int) -> None:
    chance = random.Random(room)
    made = planned(
        f"CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, sum(a) sa, sum(b) sb FROM v {_JOINED[room % 5]}"
    )
    mapper = Mapper(made.source)
    history = Joined(made.source)
    small = make_kernel(made, history, room)
    large = make_kernel(made, None)
    joins = [k.inner for k in (small, large) if isinstance(k, PausableKernel)]
    assert isinstance(joins[0], JoinKernel) and len(joins) == 2
    joins[0].room = room
    queues = [
        [(t, chance.randint(0, 3)) for t in range(0, 160, chance.randint(1, 3))] for _ in range(2)
    ]
    results: list[dict[int, tuple[object, ...]]] = [{}, {}]
    offset = 0
    while any(queues):
        # one origin is far behind the other now and then
        number = chance.choice([n for n in (0, 1, 1) if queues[n]])
        count = min(len(queues[number]), chance.choice([1, 3, 40]))
        lines = queues[number][:count]
        queues[number] = queues[number][count:]
        part = mapper.rows(101 + number, "ts", origin_rows("ab"[number], "pq"[number], lines)).drop(
            "_origin"
        )
        part = part.with_columns(
            _offset=pl.int_range(offset, offset + count, dtype=pl.Int64), _late=pl.lit(False)
        )
        offset += count
        for kernel, target in zip((small, large), results, strict=True):
            emission = kernel.apply(part)
            for row in emission.rows.iter_rows(named=True) if emission.rows is not None else ():
                if row["_op"] == DELETE:
                    target.pop(row["ws"] - T0, None)
                else:
                    target[row["ws"] - T0] = (row["n"], row["sa"], row["sb"])
        history.add(part.drop("_late"))
        assert results[0] == results[1]
    assert results[0]


def test_where_looks_at_the_whole_row() -> None:
    made = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, sum(a) sa, sum(b) sb FROM v WHERE b > 1 INTERVAL(10a)"
    )
    mapper = Mapper(made.source)
    kernel = make_kernel(made)
    target = dict[int, tuple[object, ...]]()
    apply(kernel, mapper, origin_rows("a", "p", [(1, 5), (2, 6)]), 101, target)
    assert target == {}
    apply(kernel, mapper, origin_rows("b", "q", [(1, 1), (2, 2)]), 102, target)
    assert target == {0: (1, 6, 2)}


def test_deletes_of_an_origin_are_not_seen() -> None:
    mapper = Mapper(
        planned(
            "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM v INTERVAL(10a)"
        ).source
    )
    assert mapper.rows(101, "ts", origin_rows("a", "p", [(1, 5)], DELETE)).is_empty()


def test_old_joined_rows_are_let_go() -> None:
    made = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, sum(a) sa, sum(b) sb FROM v INTERVAL(10a)"
    )
    kernel = JoinKernel(made, make_kernel(made), None)
    kernel.room = 10
    mapper = Mapper(made.source)
    for t in range(100):
        kernel.apply(
            mapper.rows(101, "ts", origin_rows("a", "p", [(t, t)]))
            .drop("_origin")
            .with_columns(_late=pl.lit(False))
        )
    assert kernel._rows.height <= 21
    again = JoinKernel(made, make_kernel(made), None)
    again.restore([kernel.delta(True)])
    assert again._rows.sort("ts").equals(kernel._rows.sort("ts")) and again._floors.equals(
        kernel._floors
    )


def test_merged_takes_what_each_origin_said_last() -> None:
    source = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM v INTERVAL(10a)"
    ).source
    mapper = Mapper(source)
    parts = [
        mapper.rows(101, "ts", origin_rows("a", "p", [(1, 5), (1, 6), (2, 7)])),
        mapper.rows(102, "ts", origin_rows("b", "q", [(1, 9)])),
    ]
    assert merged(pl.concat(parts), source).sort("ts").select("a", "b").rows() == [
        (6, 9),
        (7, None),
    ]
