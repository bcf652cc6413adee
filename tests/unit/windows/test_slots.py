"""Slots against a plain dictionary: whatever is made, closed, forgotten and asked for, in whatever
order.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.slots import Slots
from penstock.windows.rows.scope import Scope
from tests.nightly import drawn
from tests.unit.windows.plans import aggregate, window_plan

GROUPS = 6
WINDOWS = 12
pairs = st.sets(
    st.tuples(st.integers(0, GROUPS - 1), st.integers(0, WINDOWS - 1)), min_size=1, max_size=20
).map(sorted)
#: make or find windows; close all of a group up to one; ask for any; save and load
actions = st.lists(
    st.one_of(
        st.tuples(st.just("locate"), pairs),
        st.tuples(st.just("close"), pairs),
        st.tuples(st.just("find"), pairs),
        st.tuples(st.just("reload"), st.just([(0, 0)])),
    ),
    min_size=1,
    max_size=25,
)


def made():
    slots = Slots(Aggregates(Scope(window_plan(aggregates=(aggregate(0, "count", None),)))))
    slots.reserve_groups(GROUPS)
    return slots


def arrays(some):
    return np.array([g for g, _ in some]), np.array([i for _, i in some])


def close(slots, wanted):
    """Close the windows of each group up to the given one."""
    until = dict(wanted)
    groups = np.array(sorted(until))
    chained = slots.open_of(groups)
    done = slots.index[chained] <= np.array(
        [until[g] for g in slots.group[chained].tolist()], np.int64
    )
    slots.retire(groups, chained, done, keep=False)
    return until


@settings(max_examples=drawn(400), deadline=None)
@given(actions)
def test_every_window_is_found_until_it_is_done(todo):
    slots = made()
    held = set()
    for action, some in todo:
        groups, indexes = arrays(some)
        if action == "locate":
            found = slots.locate(groups, indexes, indexes * 10)
            held |= set(some)
            assert len(set(found.tolist())) == len(some)
            assert (
                list(zip(slots.group[found].tolist(), slots.index[found].tolist(), strict=True))
                == some
            )
            assert slots.locate(groups, indexes, indexes * 10).tolist() == found.tolist()
        elif action == "close":
            until = close(slots, some)
            held = {(g, i) for g, i in held if i > until.get(g, -1)}
        elif action == "find":
            assert [s >= 0 for s in slots.find(groups, indexes).tolist()] == [
                p in held for p in some
            ]
        else:
            frames = slots.delta(full=True)
            slots = made()
            slots.restore(frames.get("windows"), None, keep=False)
        assert len(slots) == len(held)
        live = slots.live()
        assert set(zip(slots.group[live].tolist(), slots.index[live].tolist(), strict=True)) == held
        opened = slots.open_of(np.arange(GROUPS))
        assert list(
            zip(slots.group[opened].tolist(), slots.index[opened].tolist(), strict=True)
        ) == sorted(held)
        assert [t for t in slots.oldest[:GROUPS].tolist() if t < 1000] == [
            min(i for h, i in held if h == g) * 10
            for g in range(GROUPS)
            if any(h == g for h, _ in held)
        ]


def test_windows_that_come_and_go_in_order_leave_nothing_behind():
    slots = made()
    groups = np.arange(GROUPS)
    for i in range(5_000):
        slots.locate(groups, np.full(GROUPS, i), np.full(GROUPS, i))
        close(slots, [(g, i - 1) for g in range(GROUPS)])
    assert len(slots) == GROUPS
    assert len(slots.group) < 100
    assert sum(map(len, slots._unhashed)) < 5_000
    assert (slots.find(groups, np.full(GROUPS, 4_999)) >= 0).all()
    assert (slots.find(groups, np.full(GROUPS, 4_998)) < 0).all()
    assert isinstance(slots.partials(slots.live()), pl.DataFrame)
