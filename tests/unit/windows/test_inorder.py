"""Rows in order extend the latest window or begin new ones, as if all rows were cut together."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.versions import DELETE
from penstock.sql.plan import Count, Event, Interval, Session, State
from penstock.windows.assign.inorder import InOrder
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.kernel import EARLIEST
from tests.nightly import drawn
from tests.unit.windows.assembly import (
    in_order,
    kernel_of,
    make_room,
    plan_with,
    renewal_of,
    split,
)
from tests.unit.windows.plans import BY_TAG, INT, duration, frame

SESSION = Session(duration("10a"))


def _pair(window: Any, **given_: Any) -> tuple[GeneralKernel, InOrder]:
    kernel = kernel_of(plan_with(window, **given_))
    return kernel, in_order(kernel)


@pytest.mark.parametrize(
    ("window", "able"),
    [
        (SESSION, True),
        (State("i", INT), True),
        (Event("i = 1", "i = 9"), True),
        (Count(3, 3), True),
        (Count(3, 2), False),
        (Interval(duration("10a"), duration("10a")), False),
    ],
)
def test_windows_that_overlap_or_follow_a_grid_have_no_short_way(window, able):
    assert _pair(window)[1].able is able


# -------------------------------------------------------------------- which rows


def _split(
    rows: pl.DataFrame, *, replaces: bool = False, wait: bool = False, **given_: Any
) -> list[bool]:
    """Who is in order behind d1@10 and d22@50."""
    kernel, inorder = _pair(SESSION, **given_)
    kernel.apply(frame([[("d1", 10, 1.0)], [("d22", 50, 1.0)]]))
    made, _ = kernel.ingest.prepare(rows)
    return split(kernel, inorder, made, replaces=replaces, wait=wait).tolist()


def test_one_row_out_of_order_takes_its_partition_out():
    rows = frame([[("d1", 20, 1.0), ("d22", 40, 1.0), ("d1", 30, 1.0), ("d22", 90, 1.0)]])
    assert _split(rows) == [True, False, True, False]


def test_a_row_below_another_of_its_call_is_out_of_order():
    assert _split(frame([[("d3", 5, 1.0)], [("d3", 4, 1.0), ("d1", 11, 1.0)]])) == [
        False,
        False,
        True,
    ]


def test_a_repeat_is_in_order_unless_it_replaces():
    rows = frame([[("d1", 10, 1.0), ("d22", 51, 1.0)]])
    assert _split(rows) == [True, True]
    assert _split(rows, replaces=True) == [False, True]


def test_a_delete_is_never_in_order():
    both = pl.concat([frame([[("d1", 20, None)]], op=DELETE), frame([[("d22", 60, 1.0)]])])
    assert _split(both) == [False, True]


def test_groups_of_a_table_that_may_have_moved_wait():
    """d1@10 comes again, now with another tag: it leaves the group that it was in."""
    rows = frame([[("d1", 10, 1.0)], [("d1", 11, 1.0)]]).with_columns(loc=pl.lit("elsewhere"))
    assert _split(rows, keys=BY_TAG, wait=False) == [True, True]
    assert _split(rows, keys=BY_TAG, wait=True) == [False, False]


def test_what_comes_behind_a_delete_of_its_table_waits_in_other_groups_too():
    gone = frame([[("d1", 90, None)]], op=DELETE)
    moved = frame([[("d1", 95, 1.0)]], first=1).with_columns(loc=pl.lit("elsewhere"))
    other = frame([[("d22", 95, 1.0)]], first=2)
    rows = pl.concat([gone, moved, other])
    assert _split(rows, keys=BY_TAG) == [False, False, True]


# -------------------------------------------------------------------- extending


def _extended(
    kernel: GeneralKernel, inorder: InOrder, rows: pl.DataFrame, t: int
) -> tuple[int, pl.DataFrame]:
    live, _ = kernel.ingest.prepare(rows)
    make_room(kernel)
    waiting, windows = inorder.extend(live, np.full(len(kernel.ingest.groups), t, np.int64))
    values = renewal_of(kernel).aggregates.finalise(windows, ["_g", "_wstart"])
    return waiting, windows.hstack(values.drop("_g", "_wstart"))


def test_a_row_near_enough_extends_the_head_and_others_begin_windows():
    kernel, inorder = _pair(SESSION)
    kernel.apply(frame([[("d1", 0, 1.0)], [("d1", 5, 2.0)]]))
    rows = frame([[("d1", 12, 4.0), ("d1", 40, 8.0)]], first=2)
    waiting, windows = _extended(kernel, inorder, rows, 30)
    assert waiting == 0
    assert windows.select("_wstart", "_stop", "_n", "_a0", "_a1", "_closed").rows() == [
        (0, 12, 3, 3, 7.0, True),
        (40, 40, 1, 1, 8.0, False),
    ]
    assert windows.get_column("_pub").to_list()[0] == 1  # shown already, as it was


def test_a_head_that_no_row_extends_is_given_back_once_it_is_over():
    kernel, inorder = _pair(SESSION)
    kernel.apply(frame([[("d1", 0, 1.0)], [("d22", 0, 2.0)]]))
    rows = frame([[("d1", 40, 4.0)]], first=2)
    waiting, windows = _extended(kernel, inorder, rows, 30)
    assert waiting == 1
    assert windows.select("_g", "_wstart", "_closed").rows() == [(0, 0, True), (0, 40, False)]


_KINDS = [
    SESSION,
    State("i", INT),
    Event("i = 1", "i = 3"),
    Count(3, 3),
]
_steps = st.lists(
    st.tuples(st.integers(1, 15), st.none() | st.integers(1, 3)), min_size=1, max_size=15
)


@settings(max_examples=drawn(30), deadline=None)
@given(_steps, st.integers(1, 15))
@pytest.mark.parametrize("window", _KINDS, ids=lambda w: w.kind)
def test_windows_are_those_of_one_cut_through_all_rows(window, steps, cut):
    times = np.cumsum([step for step, _ in steps]).tolist()
    lines = [
        ("d1", t, None if i is None else float(i)) for t, (_, i) in zip(times, steps, strict=True)
    ]
    kernel, inorder = _pair(window)
    kernel.apply(frame([[line] for line in lines[:cut]]))
    known = pl.concat([kernel.store.done, kernel.store.heads, kernel.store.pending])
    if lines[cut:]:
        _, due = _extended(kernel, inorder, frame([[line] for line in lines[cut:]]), EARLIEST)
        known = pl.concat(
            [due.select(known.columns), known.join(due, on=["_g", "_wstart"], how="anti")]
        )
    other = kernel_of(plan_with(window))
    rows, _ = other.ingest.prepare(frame([[line] for line in lines]))
    wanted = renewal_of(other).describe(rows.select(other.ingest.columns))
    columns = [
        "_wstart",
        "_stop",
        "_sseq",
        "_lseq",
        "_n",
        "_done",
        *renewal_of(kernel).aggregates.columns,
    ]
    assert sorted(known.select(columns).rows()) == sorted(wanted.select(columns).rows())
