"""Streams without a window: the target holds what a filter over the table's rows gives, through
updates and deletes.
"""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.versions import MERGE
from penstock.sql.plan import Column, Key, Output
from penstock.windows.filter import FilterKernel
from penstock.windows.kernel import Control
from tests.nightly import drawn
from tests.unit.windows.plans import (
    BIGINT,
    BY_TABLE,
    BY_TAG,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    MemoryHistory,
    Table,
    frame,
    window_plan,
)

BY_VALUE = (Key("kind", "s", TEXT),)


def filter_plan(
    where="v > 0",
    keys=BY_TABLE,
    items=(("ts", "ts", TIMESTAMP), ("v", "v", DOUBLE), ("double", "v * 2", DOUBLE)),
    **more,
):
    base = window_plan(keys=keys, **more)
    target = dataclasses.replace(
        base.target,
        columns=tuple(Column(name, kind) for name, _, kind in items),
        column_of=tuple(name for name, _, _ in items),
    )
    outputs = tuple(Output(name, sql, kind) for name, sql, kind in items)
    return dataclasses.replace(
        base, where=where, window=None, aggregates=(), outputs=outputs, target=target
    )


def values(table):
    return sorted(row[:3] for row in table.rows.values())


def test_rows_that_pass_are_projected_at_once():
    kernel = FilterKernel(filter_plan())
    table = Table("ts")
    table.take(
        kernel.apply(frame([[("d1", 1, 1.0), ("d1", 2, -1.0)], [("d2", 1, 3.0), ("d2", 5, None)]]))
    )
    assert values(table) == [(1, 1.0, 2.0), (1, 3.0, 6.0)]
    assert len({name for name, _ in table.rows}) == 2
    assert kernel.open_windows().columns[:2] == ["tbname", "ts"]


def test_a_stream_over_one_child_sees_no_other():
    base = filter_plan()
    kernel = FilterKernel(
        dataclasses.replace(base, source=dataclasses.replace(base.source, kind="child", child="D1"))
    )
    table = Table("ts")
    table.take(kernel.apply(frame([[("d1", 1, 1.0), ("d2", 2, 1.0)]])))
    assert values(table) == [(1, 1.0, 2.0)]


def test_by_default_a_rewrite_replaces_only_when_it_passes():
    kernel = FilterKernel(filter_plan())
    table = Table("ts")
    table.take(kernel.apply(frame([[("d1", 1, 1.0)], [("d1", 1, 4.0)], [("d1", 1, -1.0)]])))
    assert values(table) == [(1, 4.0, 8.0)]


def test_a_partial_write_is_made_whole():
    history = MemoryHistory()
    kernel = FilterKernel(filter_plan(where=None), history)
    table = Table("ts")
    first = frame([[("d1", 1, 1.0), ("d1", 2, 2.0)]])
    table.take(kernel.apply(first))
    history.add(first)
    part = frame([[("d1", 1, None)], [("d1", 2, 5.0)], [("d1", 2, None)]], 1, op=MERGE)
    table.take(kernel.apply(part))
    assert values(table) == [(1, 1.0, 2.0), (2, 5.0, 10.0)]


def test_a_moved_row_leaves_its_old_place():
    history = MemoryHistory()
    kernel = FilterKernel(filter_plan(keys=BY_VALUE, ignore_update=False), history)
    table = Table("ts")
    for n, v in enumerate((1.0, 2.0, -1.0)):
        piece = frame([[("d1", 1, v)]], n)
        table.take(kernel.apply(piece))
        history.add(piece)
        assert values(table) == ([(1, v, 2 * v)] if v > 0 else [])


def test_casts_that_fail_are_reported_and_do_not_stop_the_rest():
    plan = filter_plan(where=None, items=(("ts", "ts", TIMESTAMP), ("n", "s", BIGINT)))
    rows = frame([[("d1", 1, 1.0), ("d1", 2, 2.0)]]).with_columns(s=pl.Series(["7", "x"]))
    emission = FilterKernel(plan).apply(rows)
    assert emission.rows is not None and emission.rows["n"].to_list() == [7, None]
    assert emission.failed is not None and emission.failed["_reason"].to_list() == [
        "x does not fit column n"
    ]
    # the row as it came: with its place, its own time, and the value
    assert emission.failed.select("_offset", "_op", "tbname", "ts", "s").rows() == [
        (0, 0, "d1", 2, "x")
    ]


def test_history_and_state():
    history = MemoryHistory()
    history.add(frame([[("d1", 1, 1.0), ("d2", 1, -1.0)]]))
    kernel = FilterKernel(filter_plan(ignore_update=False), history)
    table = Table("ts")
    table.take(kernel.load_history())
    copy = FilterKernel(filter_plan(ignore_update=False), history)
    copy.restore([kernel.delta(True)])
    table.take(copy.apply(frame([[("d1", 1, -5.0)], [("d2", 1, 6.0)]], 1)))
    assert values(table) == [(1, 6.0, 12.0)]


change = st.tuples(
    st.sampled_from(["put", "put", "put", "drop"]),
    st.sampled_from(["d1", "d2"]),
    st.integers(0, 6),
    st.integers(-4, 4),
)


@settings(max_examples=drawn(60), deadline=None)
@given(
    st.lists(st.lists(change, min_size=1, max_size=4), min_size=1, max_size=8),
    st.lists(
        st.tuples(
            st.integers(0, 8),
            st.integers(0, 6),
            st.integers(0, 6),
            st.sampled_from([None, ("d1",)]),
        ),
        max_size=2,
    ),
    st.sampled_from([BY_TABLE, BY_TAG, (), BY_VALUE]),
)
@pytest.mark.parametrize("ignore_update", [True, False])
def test_the_target_follows_the_source(ignore_update, calls, ranges, keys):
    if (
        ignore_update
    ):  # each row once: with IGNORE UPDATE 1 a rewrite that fails WHERE leaves the old result
        seen: set[tuple[str, int]] = set()
        calls = [
            [
                c
                for c in call
                if c[0] == "drop" or not ((c[1], c[2]) in seen or seen.add((c[1], c[2])))
            ]
            for call in calls
        ]
    items = (("ts", "ts", TIMESTAMP), ("v", "v", DOUBLE), ("t", "tbname", TEXT))
    if keys is not BY_TABLE:
        calls = [
            [c for c in call if c[1] == "d1"] for call in calls
        ]  # rows of two tables would share a target row
    history = MemoryHistory()
    live = {}
    kernel = FilterKernel(filter_plan(keys=keys, items=items, ignore_update=ignore_update), history)
    table = Table("ts")
    for n, call in enumerate(calls):
        if not call:
            continue
        rows = pl.concat(
            [
                frame(
                    [[(t, ts, None if kind == "drop" else float(v))]],
                    n * 10 + i,
                    op=int(kind == "drop"),
                )
                for i, (kind, t, ts, v) in enumerate(call)
            ]
        )
        table.take(kernel.apply(rows))
        history.add(rows)
        for kind, t, ts, v in call:
            if kind == "drop":
                live.pop((t, ts), None)
            else:
                live[t, ts] = float(v)
        for at, low, length, names in ranges:
            if at == n:
                table.take(
                    kernel.control(Control("delete", tables=names, low=low, high=low + length))
                )
                history.delete(low, low + length, names)
                live = {
                    k: v
                    for k, v in live.items()
                    if not (low <= k[1] <= low + length and (names is None or k[0] in names))
                }
    expected = sorted((ts, v, t) for (t, ts), v in live.items() if v > 0)
    assert values(table) == expected


@pytest.mark.parametrize("keys", [BY_TABLE, BY_VALUE])
def test_a_table_that_got_other_tags_since_is_read_as_before(keys):
    """A tag that the plan knows was renamed, and a new one of another type bears its name."""

    def as_now(rows):
        return rows.rename({"loc": "site"}).with_columns(
            pl.lit(7).alias("loc"), pl.lit("n").alias("note")
        )

    history = MemoryHistory()
    kernel = FilterKernel(filter_plan(keys=keys, ignore_update=False), history)
    table = Table("ts")
    first = frame([[("d1", 1, 1.0), ("d1", 2, 2.0), ("d2", 1, 5.0)]])
    table.take(kernel.apply(as_now(first)))
    history.add(first)
    part = frame([[("d1", 1, None)]], first=1, op=MERGE)
    table.take(kernel.apply(as_now(part)))
    table.take(kernel.apply(as_now(frame([[("d1", 2, -1.0), ("d2", 1, 3.0)]], first=2))))
    assert values(table) == [(1, 1.0, 2.0), (1, 3.0, 6.0)]
