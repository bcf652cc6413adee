"""A few rows as values: a kernel that takes them publishes and keeps to the last bit what it does
with their frame.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from penstock.rows.rows import Rows
from penstock.sql.plan import Column, Key, Output, StreamPlan, Target
from penstock.types import ColumnType
from penstock.windows import make_kernel
from penstock.windows.emit.few_results import TakesFew
from penstock.windows.filter import FilterKernel
from penstock.windows.interval.kernel import IntervalKernel
from penstock.windows.kernel import Control, Emission, Kernel
from tests.nightly import drawn
from tests.unit.windows.plans import (
    BIGINT,
    BY_TABLE,
    BY_TAG,
    DOUBLE,
    INT,
    TBNAME,
    TEXT,
    TIMESTAMP,
    Row,
    duration,
    frame,
    window_plan,
)

FUNCTIONS = (
    ("count", None),
    ("count", "v"),
    ("sum", "v"),
    ("sum", "i"),
    ("avg", "v"),
    ("avg", "i"),
    ("min", "i"),
    ("max", "v"),
)

tables = st.sampled_from(["d1", "d2", "D1"])
values = (
    st.none()
    | st.sampled_from([float("nan"), 0.0, -0.0, 0.1, 1e300])
    | st.integers(-8, 8).map(lambda n: n / 3)
)
row = st.tuples(tables, st.integers(0, 120).map(lambda n: n * 500), values)
#: mostly in order, as rows come
ordered = st.lists(row, min_size=1, max_size=40).map(lambda rows: sorted(rows, key=lambda r: r[1]))
calls = st.one_of(
    ordered.map(lambda rows: [rows[i : i + 2] for i in range(0, len(rows), 2)]),
    st.lists(st.lists(row, min_size=1, max_size=4), max_size=20),
)


def few(rows: pl.DataFrame) -> Rows:
    return Rows.of_values(rows.to_dict(as_series=False), rows.schema)


def parted(writes: Sequence[Sequence[Row]], sizes: Sequence[int]) -> list[pl.DataFrame]:
    """The rows of *writes* with so many writes a call."""
    found = []
    at = 0
    for size in [*sizes, *([1] * len(writes))]:
        if part := writes[at : at + size]:
            # i holds no NaN
            rows = [[(t, ts, v) for t, ts, v in write] for write in part]
            whole = frame(
                [
                    [
                        (t, ts, None if v is None or v != v or abs(v) > 1e9 else v)
                        for t, ts, v in write
                    ]
                    for write in rows
                ],
                at,
            )
            found.append(
                whole.with_columns(
                    pl.Series("v", [v for write in rows for *_, v in write], pl.Float64)
                )
            )
        at += size
    return found


def state(kernel: Kernel, full: bool) -> dict[str, pl.DataFrame]:
    found = kernel.delta(full).frames
    return {
        name: f.sort(keys) if (keys := [c for c in ("_g", "_i") if c in f.columns]) else f
        for name, f in found.items()
    }


def both(plan: StreamPlan, given_: Sequence[pl.DataFrame | Control]) -> int:
    """Feed two kernels, one with values where it takes them; how often it did."""
    one = make_kernel(plan, None)
    other = make_kernel(plan, None)
    taken = 0
    for n, item in enumerate(given_):
        if isinstance(item, Control):
            one.control(item)
            other.control(item)
            continue
        made: Emission = one.apply(item)
        assert isinstance(other, TakesFew)
        results = other.take_few(few(item))
        if results is None:
            repeated = other.apply(item)
            assert (made.rows is None) == (repeated.rows is None)
            if made.rows is not None and repeated.rows is not None:
                assert_frame_equal(made.rows, repeated.rows)
        else:
            taken += 1
            assert not made.events
            assert made.late is None
            assert made.failed is None
            expected = made.rows if made.rows is not None else results.rows.frame.clear()
            assert_frame_equal(results.rows.frame, expected, check_exact=True)
            if made.hashes is not None:
                assert list(results.hashes) == made.hashes.to_list()
        full = n % 5 == 4
        mine = state(one, full)
        its = state(other, full)
        assert mine.keys() == its.keys()
        for name, held in mine.items():
            assert_frame_equal(held, its[name], check_exact=True)
    return taken


plans = st.fixed_dictionaries(
    {
        "offset": st.sampled_from([None, "3s"]),
        "watermark": st.sampled_from(["0a", "2s", "15s"]),
        "trigger": st.sampled_from(["at_once", "window_close"]),
        "keys": st.sampled_from([BY_TABLE, BY_TAG, ()]),
        "where": st.sampled_from([None, "v > -2", "ts > 3000 AND v < 2"]),
        "source": st.sampled_from(["stable", "child"]),
    }
)
controls = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(["flush", "pause", "resume"])), max_size=2
)


def windows(**given_: object) -> StreamPlan:
    plan = window_plan(FUNCTIONS, **given_)  # type: ignore[arg-type]
    if given_.get("source") == "child":
        plan = dataclasses.replace(plan, source=dataclasses.replace(plan.source, child="d1"))
    return plan


@settings(max_examples=drawn(200), deadline=None)
@given(calls, st.lists(st.integers(1, 4), max_size=10), plans, controls)
def test_windows(
    writes: list[list[Row]],
    sizes: list[int],
    given_: dict[str, object],
    controls_: list[tuple[int, str]],
) -> None:
    items: list[pl.DataFrame | Control] = list(parted(writes, sizes))
    for at, kind in controls_:
        items.insert(at, Control(kind))
    both(windows(**given_), items)


@pytest.mark.parametrize("trigger", ["at_once", "window_close"])
@pytest.mark.parametrize("watermark", ["0a", "2s"])
def test_rows_in_order_take_the_short_way_once_their_group_is_there(
    trigger: str, watermark: str
) -> None:
    rows = [frame([[("d1", n * 1500, float(n)), ("d2", n * 1500, 1.0)]], n) for n in range(40)]
    assert both(windows(trigger=trigger, watermark=watermark), rows) == 39


def test_a_row_that_is_late_or_a_window_that_was_closed_goes_the_long_way() -> None:
    late = [
        frame([[("d1", ts, 1.0)]], n)
        for n, ts in enumerate([0, 25_000, 26_000, 4_000, 27_000, 18_000])
    ]
    assert both(windows(), late) == 3


@pytest.mark.parametrize(
    ("functions", "size"),
    [((("spread", "v"),), "10s"), ((("count", "v * 2"),), "10s"), ((("count", None),), "1n")],
)
def test_other_plans_have_no_short_way(
    functions: tuple[tuple[str, str | None], ...], size: str
) -> None:
    kernel = IntervalKernel(window_plan(functions, size=size))
    data = frame([[("d1", 0, 1.0)]])
    kernel.apply(data)
    assert kernel.take_few(few(data)) is None


def test_a_sum_that_may_leave_its_type_goes_the_long_way() -> None:
    kernel = IntervalKernel(dataclasses.replace(window_plan((("sum", "i"),))))
    data = frame([[("d1", 0, 1.0)]])
    kernel.apply(data)
    large = data.with_columns(pl.lit(1 << 60).alias("i"))
    assert kernel.take_few(few(large)) is None
    assert kernel.take_few(few(data)) is not None


def test_a_sum_that_has_left_its_type_is_null_on_the_short_way_too() -> None:
    plan = window_plan((("count", None), ("sum", "i"), ("avg", "i")))
    columns = tuple(
        dataclasses.replace(c, type=BIGINT) if c.name == "i" else c for c in plan.source.columns
    )
    plan = dataclasses.replace(plan, source=dataclasses.replace(plan.source, columns=columns))
    large = [1 << 62] * 4
    values = [1, *large, 7, *(-v for v in large), 3]
    rows = [
        frame([[("d1", n, 1.0)]], n).with_columns(i=pl.Series([v], dtype=pl.Int64))
        for n, v in enumerate(values)
    ]
    assert both(plan, rows) == 2


def filter_plan(
    where: str | None, keys: tuple[Key, ...], names: Sequence[str], **more: object
) -> StreamPlan:
    kinds = {"ts": TIMESTAMP, "v": DOUBLE, "i": INT, "s": TEXT, "loc": TEXT, "tbname": TBNAME}
    outputs = tuple(Output(n, n, kinds.get(n, DOUBLE)) for n in names)
    target = Target(
        2,
        "db",
        "out",
        tuple(Column(f"c{i}", o.type) for i, o in enumerate(outputs)),
        (
            Column("group_id", ColumnType("BIGINT UNSIGNED")),
            *(Column(k.alias, k.type) for k in keys),
        ),
        tuple(o.name for o in outputs),
        ("group_id", *range(len(keys))),
    )
    plan = window_plan((("count", None),), keys=keys)
    return dataclasses.replace(
        plan,
        window=None,
        aggregates=(),
        outputs=outputs,
        target=target,
        where=where,
        watermark=duration("0a"),
        **more,
    )


@settings(max_examples=drawn(150), deadline=None)
@given(
    calls,
    st.lists(st.integers(1, 4), max_size=10),
    st.sampled_from([None, "v > 0", "v > 0 AND i < 2", "cast(s AS INT) > 1"]),
    st.sampled_from([BY_TABLE, BY_TAG, ()]),
    st.sampled_from([("ts", "v", "s"), ("ts", "loc", "tbname"), ("ts", "v * 2")]),
    st.booleans(),
    controls,
)
def test_filters(
    writes: list[list[Row]],
    sizes: list[int],
    where: str | None,
    keys: tuple[Key, ...],
    names: Sequence[str],
    updates: bool,
    controls_: list[tuple[int, str]],
) -> None:
    items: list[pl.DataFrame | Control] = list(parted(writes, sizes))
    for at, kind in controls_:
        items.insert(at, Control(kind))
    both(filter_plan(where, keys, names, ignore_update=not updates), items)


def test_what_a_filter_takes() -> None:
    kernel = FilterKernel(filter_plan("v > 0", BY_TABLE, ("ts", "v")))
    data = frame([[("d1", 0, 1.0), ("d2", 0, -1.0), ("d1", 5, 3.0)]])
    assert kernel.take_few(few(data)) is None, "no group is known yet"
    kernel.apply(data)
    made = kernel.take_few(few(data))
    assert made is not None
    assert made.rows.column("c1") == [1.0, 3.0]
    assert kernel.take_few(few(frame([[("d1", 0, 1.0), ("d1", 0, 2.0)]]))) is None, (
        "one target row twice"
    )
    assert kernel.take_few(few(frame([[("d1", 0, 1.0)]], op=1))) is None, "a delete"
    nothing = kernel.take_few(few(frame([[("d9", 0, -1.0)]])))
    assert nothing is not None
    assert not len(nothing.rows)
