"""The interval kernel against an oracle that goes through the writes one by one, however they are
cut into calls.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.partition import partition
from penstock.sql.plan import Key, Trigger
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.interval.kernel import IntervalKernel, supports
from penstock.windows.kernel import Control
from tests.nightly import drawn
from tests.unit.windows.plans import (
    BY_TABLE,
    BY_TAG,
    TEXT,
    MemoryHistory,
    Table,
    aggregate,
    duration,
    frame,
    window_plan,
)

FUNCTIONS = (
    ("count", None),
    ("count", "v"),
    ("sum", "v"),
    ("avg", "v"),
    ("min", "i"),
    ("max", "v"),
    ("spread", "v"),
)
PICKS = (
    aggregate(0, "count", None),
    aggregate(1, "first"),
    aggregate(2, "last", "s"),
    aggregate(3, "max"),
    aggregate(4, "companion", "ts", of="_a3"),
    aggregate(5, "stddev"),
    aggregate(6, "last_row"),
)

RESTS = (
    aggregate(0, "count", None),
    aggregate(1, "apercentile", params=(50,)),
    aggregate(2, "hyperloglog", "s"),
    aggregate(3, "max", "s"),
    aggregate(4, "companion", "v", of="_a3"),
    aggregate(5, "avg", "i"),
)

tables = st.sampled_from(["d1", "d2", "d33"])
row = st.tuples(
    tables,
    st.integers(0, 120).map(lambda n: n * 500),
    st.none() | st.integers(-8, 8).map(lambda n: n / 2),
)
writes = st.lists(st.lists(row, min_size=1, max_size=5), min_size=1, max_size=25)
cuts = st.lists(st.integers(0, 25), max_size=6)
plans = st.fixed_dictionaries(
    {
        "sliding": st.sampled_from([None, "5s", "4s"]),
        "offset": st.sampled_from([None, "3s"]),
        "watermark": st.sampled_from(["0a", "2s", "15s"]),
        "trigger": st.sampled_from(["at_once", "window_close"]),
        "keys": st.sampled_from([BY_TABLE, BY_TAG, ()]),
        "where": st.sampled_from([None, "v > -3"]),
    }
)


def seconds(text):
    return int(text[:-1]) * 1000 if text and text[-1] == "s" else 0


def oracle(all_writes, given_):
    """Late rows and final values by (group, window start)."""
    step = seconds(given_["sliding"]) or 10_000
    size = 10_000
    offset = seconds(given_["offset"])
    watermark = seconds(given_["watermark"])
    group_of = {BY_TABLE: lambda t: t, BY_TAG: lambda t: f"l{len(t) % 2}", (): lambda t: ""}[
        given_["keys"]
    ]
    highest = defaultdict(lambda: -(10**15))
    of_table = defaultdict(lambda: -(10**15))
    live = defaultdict(list)
    late = 0
    published = {}
    for write in all_writes:
        kept = [r for r in write if given_["where"] is None or (r[2] is not None and r[2] > -3)]
        before = dict(highest)
        before_table = dict(of_table)
        for table, ts, v in kept:
            group = group_of(table)
            counted = False
            start = (ts - offset) // step * step + offset
            while start > ts - size:
                over = start + size - 1 < before.get(group, -(10**15)) - watermark
                if not (over and ts < before_table.get(table, -(10**15))):
                    live[group, start].append((ts, v))
                    counted = True
                start -= step
            late += not counted
        for table, ts, _ in kept:
            group = group_of(table)
            highest[group] = max(highest[group], ts)
            of_table[table] = max(of_table[table], ts)
        for (group, start), rows in live.items():
            if given_["trigger"] == "at_once" or start + size - 1 < highest[group] - watermark:
                published[group, start] = list(rows)
    return late, published


def run(plan, pieces, history=None, restart=frozenset()):
    kernel = IntervalKernel(plan, history)
    table = Table()
    deltas = []
    for n, piece in enumerate(pieces):
        table.take(kernel.apply(piece))
        if history is not None:
            history.add(piece)
        deltas.append(kernel.delta(full=n == 0))
        if n in restart:
            kernel = IntervalKernel(plan, history)
            kernel.restore(deltas)
    return kernel, table


def pieces_of(data, cuts_):
    steps = data["_step"].n_unique()
    edges = sorted({0, steps, *(c for c in cuts_ if c < steps)})
    ids = data["_step"].rle_id()
    return [data.filter((ids >= a) & (ids < b)) for a, b in zip(edges, edges[1:], strict=False)]


def same(a, b):
    return all(
        math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)
        if isinstance(x, float) and y is not None
        else x == y
        for x, y in zip(a, b, strict=True)
    )


@settings(max_examples=drawn(100), deadline=None)
@given(writes, cuts, plans, st.sets(st.integers(0, 6)))
def test_any_cut_gives_what_the_oracle_gives(all_writes, cuts_, given_, restart):
    plan = window_plan(FUNCTIONS, **given_)
    data = frame(all_writes)
    late, published = oracle(all_writes, given_)
    _, table = run(plan, pieces_of(data, cuts_), restart=restart)
    values = sorted(
        (start, *row) for (start, *row) in (r[: 1 + len(FUNCTIONS)] for r in table.rows.values())
    )
    expected = []
    for (_, start), rows in published.items():
        numbers = [v for _, v in rows if v is not None]
        ints = [int(v) for v in numbers]
        if numbers:
            more = (
                sum(numbers),
                sum(numbers) / len(numbers),
                min(ints),
                max(numbers),
                max(numbers) - min(numbers),
            )
        else:
            more = (None,) * 5
        expected.append((start, len(rows), len(numbers), *more))
    key = lambda r: tuple((x is not None, x or 0) for x in r)  # noqa: E731
    assert len(values) == len(expected)
    assert all(
        same(a, b) for a, b in zip(sorted(values, key=key), sorted(expected, key=key), strict=True)
    )
    assert table.late == late


@settings(max_examples=drawn(40), deadline=None)
@given(writes, cuts, plans, st.sets(st.integers(0, 6)))
def test_float_sums_do_not_depend_on_cuts_to_the_last_bit(all_writes, cuts_, given_, restart):
    thirds = [[(t, ts, None if v is None else v / 3) for t, ts, v in w] for w in all_writes]
    plan = window_plan(FUNCTIONS, **given_ | {"where": None})
    data = frame(thirds)
    assert run(plan, pieces_of(data, cuts_), restart=restart)[1].rows == run(plan, [data])[1].rows


@settings(max_examples=drawn(40), deadline=None)
@given(writes, cuts, plans, st.sets(st.integers(0, 6)))
@pytest.mark.parametrize("aggregates", [PICKS, RESTS], ids=["picks", "rests"])
def test_selections_and_sketches_agree_with_the_general_kernel(
    aggregates, all_writes, cuts_, given_, restart
):
    plan = window_plan(aggregates=aggregates, **given_)
    data = frame(all_writes)
    kernel, table = run(plan, pieces_of(data, cuts_), restart=restart)
    general = GeneralKernel(plan, None)
    other = Table()
    other.take(general.apply(data))
    assert table.rows.keys() == other.rows.keys()
    assert all(same(table.rows[k], other.rows[k]) for k in table.rows)
    assert table.late == other.late
    mine, theirs = (
        w.sort("tbname", "_wstart") for w in (kernel.open_windows(), general.open_windows())
    )
    assert all(same(a, b) for a, b in zip(mine.rows(), theirs.rows(), strict=True))


unique_rows = st.lists(
    st.tuples(tables, st.integers(0, 120), st.integers(-8, 8)),
    min_size=1,
    max_size=40,
    unique_by=lambda r: r[:2],
)
deletes = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 120),
        st.integers(0, 60),
        st.sampled_from([None, ("d1",), ("d2", "d33")]),
    ),
    max_size=3,
)


@settings(max_examples=drawn(50), deadline=None)
@given(unique_rows, deletes, plans)
@pytest.mark.parametrize("aggregates", [(), PICKS, RESTS], ids=["numbers", "picks", "rests"])
def test_deletes_leave_what_the_remaining_rows_give(aggregates, rows, deleted, given_):
    rows = sorted(
        rows, key=lambda r: r[1]
    )  # in order and once each: nothing expires, so history and accumulators know the same rows
    plan = window_plan(FUNCTIONS, aggregates=aggregates, **given_)
    history = MemoryHistory()
    kernel = IntervalKernel(plan, history)
    table = Table()
    gone = set()
    for n, (name, ts, v) in enumerate(rows):
        piece = frame([[(name, ts * 500, float(v))]], n)
        table.take(kernel.apply(piece))
        history.add(piece)
        for at, low, length, names in deleted:
            if at == n:
                table.take(
                    kernel.control(
                        Control("delete", tables=names, low=low * 500, high=(low + length) * 500)
                    )
                )
                history.delete(low * 500, (low + length) * 500, names)
                gone |= {
                    (t, s)
                    for t, s, _ in rows[: n + 1]
                    if low <= s <= low + length and (names is None or t in names)
                }
    left = frame([[(t, s * 500, float(v))] for t, s, v in rows if (t, s) not in gone])
    highest = IntervalKernel(plan)
    expected = Table()
    expected.take(highest.apply(left))
    if given_["trigger"] == "at_once":
        assert table.rows.keys() == expected.rows.keys()
        assert all(same(table.rows[k], expected.rows[k]) for k in table.rows)
    else:  # T of the rows that are gone stays: more windows may be closed, none fewer, and each holds what is left
        assert expected.rows.keys() <= table.rows.keys()
        every = Table()
        every.take(IntervalKernel(replace(plan, trigger=Trigger("at_once"))).apply(left))
        assert table.rows.keys() <= every.rows.keys()
        assert all(same(row, every.rows[k]) for k, row in table.rows.items())


def test_a_row_deleted_by_key_leaves_its_window_even_from_within_the_call():
    plan = window_plan()
    history = MemoryHistory()
    kernel = IntervalKernel(plan, history)
    table = Table()
    first = frame([[("d1", 1000, 1.0), ("d1", 2000, 2.0)]])
    table.take(kernel.apply(first))
    history.add(first)
    call = pl.concat(
        [
            frame([[("d1", 3000, 4.0)]], 1),
            frame([[("d1", 2000, None), ("d1", 3000, None)]], 2, op=1),
            frame([[("d1", 4000, 8.0)]], 3),
        ]
    )
    table.take(kernel.apply(call))
    assert [r[1:3] for r in table.rows.values()] == [(2, 9.0)]
    history.add(call)
    table.take(kernel.apply(frame([[("d1", 1000, None), ("d1", 4000, None)]], 4, op=1)))
    assert table.rows == {}
    assert kernel.open_windows().height == 0


def test_flush_closes_open_windows_and_their_late_rows_are_dropped():
    kernel = IntervalKernel(window_plan(trigger="window_close", watermark="1s"))
    table = Table()
    table.take(kernel.apply(frame([[("d1", 1000, 1.0), ("d1", 5000, 2.0)]])))
    assert table.rows == {}
    table.take(kernel.control(Control("flush")))
    assert [r[1:3] for r in table.rows.values()] == [(2, 3.0)]
    table.take(kernel.apply(frame([[("d1", 4000, 1.0)]], 1)))
    assert table.late == 1
    table.take(
        kernel.apply(frame([[("d1", 6000, 4.0)]], 2))
    )  # in order for its table: a correction at once
    assert [r[1:3] for r in table.rows.values()] == [(3, 7.0)]
    assert kernel.control(Control("flush")).rows is None


def test_a_silent_group_is_closed_by_its_idle_time_out():
    kernel = IntervalKernel(window_plan(trigger="window_close", idle_timeout=duration("30s")))
    table = Table()
    table.take(kernel.apply(frame([[("d1", 1000, 1.0)]])))
    table.take(kernel.control(Control("tick", time=30_999)))
    assert table.rows == {}
    table.take(kernel.control(Control("tick", time=31_000)))
    assert len(table.rows) == 1


def test_recalculate_reads_the_rows_again():
    history = MemoryHistory()
    kernel = IntervalKernel(window_plan(), history)
    table = Table()
    rows = frame([[("d1", 1000, 1.0)], [("d1", 1000, 5.0)]])
    table.take(kernel.apply(rows))
    assert [r[1:3] for r in table.rows.values()] == [
        (2, 6.0)
    ]  # IGNORE UPDATE 1: a rewrite is one more row
    history.add(rows)
    table.take(kernel.control(Control("recalculate", low=0, high=60_000)))
    assert [r[1:3] for r in table.rows.values()] == [(1, 5.0)]


@pytest.mark.parametrize("trigger", ["at_once", "window_close"])
def test_history_is_published_at_once_and_live_rows_go_on(trigger):
    history = MemoryHistory()
    history.add(frame([[("d1", 25_000, 1.0), ("d1", 3_000, 2.0), ("d2", 4_000, 4.0)]]))
    kernel = IntervalKernel(window_plan(trigger=trigger), history)
    table = Table()
    table.take(kernel.load_history())
    assert sorted(r[:3] for r in table.rows.values()) == [
        (0, 1, 2.0),
        (0, 1, 4.0),
        (20_000, 1, 1.0),
    ]
    table.take(
        kernel.apply(frame([[("d1", 26_000, 1.0), ("d1", 4_000, 2.0)], [("d1", 31_000, 9.0)]]))
    )
    assert sorted(r[:3] for r in table.rows.values() if r[0] == 20_000) == [(20_000, 2, 2.0)]
    assert table.late == 1


@pytest.mark.parametrize("trigger", ["at_once", "window_close"])
def test_filling_history_of_groups_over_tables_holds_a_stretch_and_not_history(trigger):
    rows = 2_000
    most = 0
    history = MemoryHistory()
    history.add(
        frame(
            [
                [
                    (f"d{table}", n * 10_000 + table, 1.0)
                    for n in range(rows)
                    for table in (1, 2, 11, 22)
                ]
            ]
        )
    )
    kernel = IntervalKernel(window_plan(keys=BY_TAG, trigger=trigger), history)
    table = Table()
    for piece in range(20):
        low = piece * 1_000_000
        high = (piece + 1) * 1_000_000 - 1
        table.take(kernel.load_history(low, high))
        most = max(most, kernel.delta(True).frames.get("windows", pl.DataFrame()).height)
    assert len(table.rows) == 2 * rows
    assert most == 2, "the open window of each group"
    assert kernel.delta(True).frames["clock"].height == 2


@settings(max_examples=drawn(60), deadline=None)
@given(writes, writes, cuts, plans, st.integers(0, 60_000), st.integers(0, 6))
def test_cuts_and_stretches_change_nothing_of_windows_that_history_closed(
    before, after, cuts_, given_, end, restart
):
    plan = window_plan(FUNCTIONS, **given_)
    data = frame(after, len(before))
    found = []
    for pieces, stretches in (
        (pieces_of(data, range(25)), [(0, 60_000)]),
        (pieces_of(data, cuts_), [(0, end), (end + 1, 60_000)]),
    ):
        history = MemoryHistory()
        table = Table()
        history.add(frame(before))
        kernel = IntervalKernel(plan, history)
        for low, high in stretches:
            table.take(kernel.load_history(low, high))
        deltas = [kernel.delta(True)]
        for n, piece in enumerate(pieces):
            table.take(kernel.apply(piece))
            history.add(piece)
            deltas.append(kernel.delta())
            if n == restart:
                kernel = IntervalKernel(plan, history)
                kernel.restore(deltas)
        found.append((table.rows, table.late))
    assert found[0] == found[1]


@pytest.mark.parametrize("trigger", ["at_once", "window_close"])
def test_a_slow_tables_row_counts_in_a_window_that_history_closed(trigger):
    history = MemoryHistory()
    table = Table()
    history.add(frame([[("d1", 1000, 1.0), ("d2", 2000, 2.0), ("d1", 50_000, 1.0)]]))
    kernel = IntervalKernel(window_plan(keys=BY_TAG, trigger=trigger), history)
    table.take(kernel.load_history())
    for n, write in enumerate([[("d2", 2000, 4.0), ("d3", 1000, 8.0)], [("d3", 3000, 16.0)]], 1):
        table.take(kernel.apply(frame([write], n)))
        history.add(frame([write], n))
    assert sorted(r[:3] for r in table.rows.values()) == [(0, 5, 31.0), (50_000, 1, 1.0)]
    assert table.late == 0


def test_a_row_that_fails_is_handed_back_and_the_rest_counts():
    plan = window_plan(
        (
            ("count", None),
            ("sum", "v"),
            ("sum", "char_length(to_iso8601(CAST(v * 1e15 AS BIGINT)))"),
        ),
        keys=(),
    )
    kernel = IntervalKernel(plan)
    assert supports(plan)
    assert kernel.apply(frame([])).rows is None
    assert kernel.open_windows().height == 0
    emission = kernel.apply(frame([[("d1", 1000, 1.0), ("d1", 2000, 9000.0), ("d1", 3000, 2.0)]]))
    assert emission.failed is not None
    assert emission.failed.get_column("ts").to_list() == [2000]
    assert emission.rows.select("c_a0", "c_a1").rows() == [(2, 3.0)]


def test_state_is_proportional_to_change():
    kernel = IntervalKernel(window_plan(trigger="window_close"))
    kernel.apply(frame([[(f"d{n}", 1000, 1.0) for n in range(500)]]))
    assert kernel.delta().frames["windows"].height == 500
    kernel.apply(frame([[("d7", 2000, 1.0)]], 1))
    frames = kernel.delta().frames
    assert frames["windows"].height == 1 and frames["clock"].height == 1 and "groups" not in frames
    kernel.apply(frame([[("d7", 12_000, 1.0)]], 2))
    frames = kernel.delta().frames
    assert frames["windows.gone"].height == 1 and frames["windows"].height == 1


by_text = (Key("kind", "s", TEXT),)
one_table = st.lists(
    st.lists(
        st.tuples(st.just("d1"), st.integers(0, 120).map(lambda n: n * 500), st.integers(0, 2)),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
)


@settings(max_examples=drawn(40), deadline=None)
@given(one_table, cuts, st.sampled_from(["0a", "15s"]), st.integers(0, 10))
def test_groups_within_one_table_agree_with_the_general_kernel(
    all_writes, cuts_, watermark, flushed
):
    plan = window_plan(
        FUNCTIONS, keys=by_text, source="plain", trigger="window_close", watermark=watermark
    )
    kernels = (IntervalKernel(plan), GeneralKernel(plan, None))
    targets = (Table(), Table())
    for n, piece in enumerate(pieces_of(frame(all_writes), cuts_)):
        for kernel, table in zip(kernels, targets, strict=True):
            table.take(kernel.apply(piece))
            if n == flushed:
                table.take(kernel.control(Control("flush")))
    assert targets[0].rows == targets[1].rows
    assert targets[0].late == targets[1].late


def test_a_window_behind_delete_mark_is_read_again_when_a_slow_table_reaches_it():
    history = MemoryHistory()
    kernel = IntervalKernel(
        window_plan(keys=(), trigger="window_close", delete_mark=duration("60s")), history
    )
    table = Table()
    for n, write in enumerate([[("d1", 1000, 1.0), ("d1", 2000, 2.0)], [("d1", 200_000, 1.0)]]):
        table.take(kernel.apply(frame([write], n)))
        history.add(frame([write], n))
    assert kernel.delta(True).frames["windows"].height == 1
    table.take(kernel.apply(frame([[("d2", 3000, 4.0)]], 2)))
    assert [r[:3] for r in table.rows.values()] == [(0, 3, 7.0)]


def test_hashes_of_published_rows_are_those_of_their_names():
    kernel = IntervalKernel(window_plan(trigger="window_close"))
    names = [f"d{i}" for i in range(40)]
    kernel.apply(frame([[(name, 1_000, 1.0) for name in names]]))
    emission = kernel.apply(frame([[(name, 20_000, 1.0) for name in reversed(names)]]))
    assert emission.rows.height == 40
    assert [h % 5 for h in emission.hashes] == [partition(n, 5) for n in emission.rows["tbname"]]
