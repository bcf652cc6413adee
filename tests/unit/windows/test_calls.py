"""Calls: the pairs found are those that a walk over the rows finds, and what is shared is what each
would have got alone.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.plan import Interval
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.context import KernelContext, SharedAnswers
from penstock.windows.interval.kernel import IntervalKernel
from penstock.windows.rows.row_reader import RowReader
from tests.unit.windows.plans import BY_TABLE, Table, aggregate, duration, frame, window_plan

TUMBLING = Grid(Interval(duration("10s"), duration("10s")), "ms", "UTC")
SLIDING = Grid(Interval(duration("10s"), duration("4s")), "ms", "UTC")
AGGREGATES = (
    aggregate(0, "count", None),
    aggregate(1, "sum"),
    aggregate(2, "avg"),
    aggregate(3, "min", "i"),
    aggregate(4, "max"),
    aggregate(5, "stddev"),
    aggregate(6, "last", "s"),
    aggregate(7, "hyperloglog", "s"),
)

#: key, time, value of a row
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 3, 4, 900_000]),
        st.integers(-50, 50).map(lambda n: n * 1000),
        st.integers(-9, 9),
    ),
    min_size=1,
)
writes = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.integers(0, 60).map(lambda n: n * 1000),
            st.floats(-9, 9),
        ),
        min_size=1,
        max_size=4,
    ),
    max_size=9,
)


def call(given_rows, grid):
    keys, times, values = (np.array(column) for column in zip(*given_rows, strict=True))
    steps = np.arange(len(keys), dtype=np.uint32) // 2
    prepared = pl.DataFrame(
        {"_step": steps, "_now": times + 5, "ts": times, "_x0": pl.Series(values, dtype=pl.Float64)}
    )
    return Call(prepared, "ts", keys, keys, grid), steps


@given(rows, st.sampled_from([TUMBLING, SLIDING]), st.integers(0, 7))
def test_pairs_are_what_a_walk_over_the_rows_finds(given_rows, grid, dropped_of_8):
    made, steps = call(given_rows, grid)
    lines = [
        (at, key, int(window), value)
        for at, (key, time, value) in enumerate(given_rows)
        for window in windows(grid, time)
    ]
    dropped = np.array([n % 8 == dropped_of_8 for n in range(len(lines))])
    check(made, given_rows, lines)
    check(
        made.without(dropped),
        given_rows,
        [line for line, gone in zip(lines, dropped, strict=True) if not gone],
    )
    by_key = {
        k: [(t, s) for (key, t, _), s in zip(given_rows, steps.tolist(), strict=True) if key == k]
        for k, _, _ in given_rows
    }
    keys = made.keys.tolist()
    assert keys == sorted(by_key)
    assert made.highest.tolist() == [max(by_key[k])[0] for k in keys]
    assert made.lowest.tolist() == [min(by_key[k])[0] for k in keys]
    assert made.heard.tolist() == [max(by_key[k])[0] + 5 for k in keys]
    assert made.descends.tolist() == [
        any(t < u and s > r for t, s in by_key[k] for u, r in by_key[k]) for k in keys
    ]
    assert [keys[i] for i in made.appeared] == list(by_key)


def windows(grid, time):
    return range(int(grid.first(np.array([time]))[0]), int(grid.last(np.array([time]))[0]) + 1)


def check(made, given_rows, lines):
    pairs = sorted({(key, window) for _, key, window, _ in lines})
    assert list(zip(made.keys[made.owner].tolist(), made.index.tolist(), strict=True)) == pairs
    assert [pairs[p] for p in made.place] == [(key, window) for _, key, window, _ in lines]
    assert made.rows_of().tolist() == [at for at, *_ in lines]
    assert made.times.tolist() == [given_rows[at][1] for at, *_ in lines]
    last = {(key, window): n for n, (_, key, window, _) in enumerate(lines)}
    assert [pairs[p] for p in made.latest_last] == sorted(pairs, key=last.__getitem__)
    values = {pair: [v for _, key, window, v in lines if (key, window) == pair] for pair in pairs}
    assert made.counts(-1).tolist() == made.counts(0).tolist() == [len(values[p]) for p in pairs]
    before = np.arange(len(pairs)) / 8
    assert made.add_to(0, pl.Float64(), before).tolist() == [
        b + sum(values[p]) for b, p in zip(before, pairs, strict=True)
    ]


def test_a_sum_is_added_up_in_order_from_where_it_was():
    values = [1e16, 1.0, -1e16, 1.0]
    made, _ = call([(0, n, value) for n, value in enumerate(values)], TUMBLING)
    for start in (0.0, 3.0, 0.5):
        expected = start
        for value in values:
            expected += value
        for _ in range(2):  # the second time it is known
            assert made.add_to(0, pl.Float64(), np.array([start])).tolist() == [expected]
    whole, _ = call([(0, n, n + 1) for n in range(4)], TUMBLING)
    assert whole.add_to(0, pl.Int64(), np.array([5])).tolist() == [15]


def test_who_asks_second_gets_what_the_first_one_got():
    shared = SharedAnswers()
    rows_ = pl.DataFrame({"a": [1]})
    others = pl.DataFrame({"a": [1]})
    with shared.among(rows_):
        assert shared.get(rows_, "q", lambda: 1) == shared.get(rows_, "q", lambda: 2) == 1
        assert shared.get(rows_, "other", lambda: 2) == 2
        assert shared.get(others, "q", lambda: 3) == 3, "equal rows are not the same"
    assert shared.get(rows_, "q", lambda: 4) == 4, "nothing is kept"


@given(
    writes,
    st.lists(st.integers(0, 8), max_size=3),
    st.sampled_from(["at_once", "window_close"]),
    st.integers(0, 9),
)
def test_streams_that_share_publish_what_each_would_alone(all_writes, cuts, trigger, second_begins):
    """Two streams that ask the same, one of which began later, and a third that asks something
    else, fed the same frames.
    """
    plan = window_plan(keys=BY_TABLE, trigger=trigger, aggregates=AGGREGATES)
    other = replace(plan, where="v > 0")
    pieces = cut(all_writes, cuts)
    together = []
    alone = []
    context = KernelContext()
    for into, scope in ((together, context.answers.among), (alone, nullcontext)):
        kernels = [IntervalKernel(p, context=context) for p in (plan, plan, other)]
        for n, piece in enumerate(pieces):
            with scope(piece):
                into += [
                    kernel.apply(piece)
                    for at, kernel in enumerate(kernels)
                    if at != 1 or n >= second_begins
                ]
    for a, b in zip(together, alone, strict=True):
        assert (a.rows is None) == (b.rows is None) and (a.late is None) == (b.late is None)
        assert a.rows is None or a.rows.equals(b.rows)
        assert a.late is None or a.late.equals(b.late)


def cut(all_writes, cuts):
    """The writes in pieces, each a call."""
    borders = sorted({0, len(all_writes), *(c for c in cuts if c < len(all_writes))})
    return [
        frame(all_writes[low:high], low)
        for low, high in zip(borders[:-1], borders[1:], strict=True)
    ]


def test_a_hundred_streams_evaluate_their_expressions_once(monkeypatch):
    plan = replace(window_plan(keys=BY_TABLE), where="v > 0")
    context = KernelContext()
    kernels = [IntervalKernel(replace(plan, stream_id=n), context=context) for n in range(100)]
    asked = []
    monkeypatch.setattr(
        RowReader,
        "prepare",
        lambda self, given_, kept=RowReader.prepare: asked.append(self) or kept(self, given_),
    )
    tables = [Table() for _ in kernels]
    for start in range(3):
        rows_ = frame([[("d1", start * 20_000 + 1, 1.0), ("d2", start * 20_000 + 2, 2.0)]], start)
        with context.answers.among(rows_):
            for kernel, table in zip(kernels, tables, strict=True):
                table.take(kernel.apply(rows_))
    assert len(asked) == 3
    assert all(table.rows == tables[0].rows for table in tables)
    assert tables[0].rows
