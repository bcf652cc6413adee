"""State split by child table: what the partitions of the next generation compute together is what
the old one would have computed.
"""

from __future__ import annotations

import random

import polars as pl
import pytest

from penstock.errors import StateError
from penstock.rows.partition import partition
from penstock.sql import parse_one
from penstock.sql.plan import StreamPlan
from penstock.sql.planner import plan_stream
from penstock.sql.statements import CreateStream
from penstock.windows import Control, Emission, Kernel, make_kernel
from penstock.windows.kernel import Delta
from spark_jobs.processor.generation import inherit
from spark_jobs.processor.pending import CLOSED, ENDED
from spark_jobs.processor.stats import FRAME
from spark_jobs.state import Snapshot
from tests.conformance.memory import MemoryHistory
from tests.conformance.schema import Schema

T0 = 1_700_006_400_000
PARTITIONS = 6
_CALLS = {
    "interval": "WATERMARK 20a INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM met PARTITION BY tbname INTERVAL(100a)",
    "at_once": "TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, max(a) s FROM met PARTITION BY tbname k, ta INTERVAL(100a)",
    "session": "WATERMARK 20a INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM met PARTITION BY tbname SESSION(ts, 30a)",
    "state": "INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM met PARTITION BY tbname STATE_WINDOW(b)",
    "event": "INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM met PARTITION BY tbname EVENT_WINDOW START WITH b = 1 END WITH a >= 7",
    "count": "WATERMARK 100a INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM met PARTITION BY tbname COUNT_WINDOW(3)",
    "forced": "TRIGGER FORCE_WINDOW_CLOSE INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM met PARTITION BY tbname INTERVAL(100a)",
    "filter": "TRIGGER AT_ONCE INTO o AS SELECT ts, a FROM met WHERE a > 3 PARTITION BY tbname",
    "one": "INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM d1 INTERVAL(100a)",
}


def planned(text: str) -> StreamPlan:
    schema = Schema()
    schema.execute("CREATE STABLE met (ts TIMESTAMP, a INT, b INT) TAGS (ta INT)")
    for i in range(12):
        schema.execute(f"CREATE TABLE d{i} USING met TAGS ({i})")
    statement = parse_one(f"CREATE STREAM s {text}")
    assert isinstance(statement, CreateStream)
    return plan_stream(statement, schema, database=schema.database, stream_id=1, target_id=2).plan


def rows(count: int, rnd: random.Random) -> list[tuple[str, int, int, int]]:
    return [
        (
            f"d{rnd.randrange(12)}",
            7 * i + rnd.randrange(-10, 10),
            rnd.randrange(10),
            rnd.randrange(2),
        )
        for i in range(count)
    ]


def frame(given: list[tuple[str, int, int, int]], first: int) -> pl.DataFrame:
    data = {
        "_step": range(len(given)),
        "_offset": range(first, first + len(given)),
        "_now": [T0 + r[1] for r in given],
        "_op": [0] * len(given),
        "tbname": [r[0] for r in given],
        "ts": [T0 + r[1] for r in given],
        "a": [r[2] for r in given],
        "b": [r[3] for r in given],
        "ta": [int(r[0][1:]) for r in given],
    }
    schema = {
        "_step": pl.UInt32,
        "_offset": pl.Int64,
        "_now": pl.Int64,
        "_op": pl.Int8,
        "tbname": pl.String,
        "ts": pl.Int64,
        "a": pl.Int32,
        "b": pl.Int32,
        "ta": pl.Int32,
    }
    return pl.DataFrame(data, schema=schema)


def results(emissions: list[Emission], key: str) -> dict[tuple[object, ...], tuple[object, ...]]:
    """The rows of the result table: of those with one key the last."""
    found = [
        (e.rows.select("tbname", key).rows(), e.rows.rows())
        for e in emissions
        if e.rows is not None
    ]
    return {k: row for keys, lines in found for k, row in zip(keys, lines, strict=True)}


def feed(kernel: Kernel, given: list[tuple[str, int, int, int]], first: int) -> list[Emission]:
    made = [kernel.apply(frame(given[i : i + 20], first + i)) for i in range(0, len(given), 20)]
    last = max((r[1] for r in given), default=0)
    return [*made, kernel.control(Control("tick", T0 + last))]


@pytest.mark.parametrize("chained", [False, True], ids=["full", "deltas"])
@pytest.mark.parametrize("name", _CALLS)
def test_children_go_on_where_the_parent_ended(name: str, chained: bool) -> None:
    plan = planned(_CALLS[name])
    rnd = random.Random(name)
    before = rows(200, rnd)
    after = [(t, at + 1400, a, b) for t, at, a, b in rows(200, rnd)]
    before = [r for r in before if partition(r[0], 2) == 0]
    after = [r for r in after if partition(r[0], 2) == 0]

    parent = make_kernel(plan, MemoryHistory("ts"))
    half = len(before) // 2
    feed(parent, before[:half], 0)
    chain = [parent.delta(True)]
    feed(parent, before[half:], half)
    chain = [*chain, parent.delta(False)] if chained else [parent.delta(True)]
    state = Snapshot(
        500,
        streams={1: (plan.to_json(), "running")},
        deltas={1: chain},
        waiting={CLOSED: ["400"], ENDED: ["499"]},
    )

    children: list[Emission] = []
    for number in (0, 2, 4):
        mine = inherit(state, StreamPlan.from_json, number, PARTITIONS, 500, counts=False)
        assert (mine.next, mine.waiting) == (500, {})
        kernel = make_kernel(plan, MemoryHistory("ts"))
        kernel.restore(mine.deltas[1])
        assert partial(kernel) <= partial(parent)
        own = [r for r in after if partition(r[0], PARTITIONS) == number]
        children += feed(kernel, own, 500)
        children += [kernel.control(Control("tick", T0 + 20_000)), kernel.control(Control("flush"))]
    parents = feed(parent, after, 500)
    parents += [parent.control(Control("tick", T0 + 20_000)), parent.control(Control("flush"))]
    key = "ts" if name == "filter" else "ws"
    assert results(children, key) == results(parents, key)
    assert results(parents, key) or name == "one"


def partial(kernel: Kernel) -> set[tuple[object, ...]]:
    """The windows that are open."""
    found = kernel.open_windows()
    return set() if found is None else set(found.rows())


def test_counters_go_on_with_one_child_only() -> None:
    plan = planned(_CALLS["interval"])
    counters = pl.DataFrame({"rows_in": [5]})
    delta = Delta({FRAME: counters, "groups": pl.DataFrame({"_k0": ["d1"]})}, True)
    state = Snapshot(
        10,
        streams={1: (plan.to_json(), "running"), 2: None},
        deltas={1: [delta]},
        waiting={ENDED: ["9"]},
    )
    assert FRAME in inherit(state, StreamPlan.from_json, 0, 4, 10, counts=True).deltas[1][0].frames
    assert (
        FRAME
        not in inherit(state, StreamPlan.from_json, 2, 4, 10, counts=False).deltas[1][0].frames
    )


def test_a_state_that_is_not_of_the_end_is_refused() -> None:
    for waiting in ({}, {ENDED: ["8"]}):
        with pytest.raises(StateError, match="does not end at 9"):
            inherit(Snapshot(10, waiting=waiting), StreamPlan.from_json, 0, 2, 10, counts=True)
