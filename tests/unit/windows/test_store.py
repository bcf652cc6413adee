"""Live rows and windows of a kernel: where they stand, what is given back, what a delta holds."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.general.store import Store
from tests.nightly import drawn

_ROWS = {"_g": pl.Int64, "_seq": pl.Int64, "ts": pl.Int64}
_WINDOWS = {
    "_g": pl.Int64,
    "_wstart": pl.Int64,
    "_stop": pl.Int64,
    "_sseq": pl.Int64,
    "_pub": pl.Int8,
    "_dirty": pl.Boolean,
}


def _rows(*lines: tuple[int, int, int]) -> pl.DataFrame:
    """Rows of (group, arrival, time)."""
    return pl.DataFrame(lines, schema=_ROWS, orient="row")


def _windows(*lines: tuple[int, int, int], pub: int = 0, dirty: bool = False) -> pl.DataFrame:
    """Windows of (group, start, stop)."""
    made = [(g, start, stop, start, pub, dirty) for g, start, stop in lines]
    return pl.DataFrame(made, schema=_WINDOWS, orient="row")


def _store(groups: int = 3) -> Store:
    made = Store(_rows(), _windows(), "ts")
    made.reserve(groups)
    return made


def _t(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def _spans(windows: pl.DataFrame) -> list[tuple[int, int]]:
    return sorted(windows.select("_g", "_wstart").rows())


# -------------------------------------------------------------------- rows


def test_rows_are_there_until_they_are_removed():
    store = _store()
    store.add(_rows((0, 0, 10), (1, 1, 20), (0, 2, 30)))
    store.add(_rows())
    store.remove(_rows((1, 1, 20)))
    assert store.count == 2
    assert sorted(store.rows.rows()) == [(0, 0, 10), (0, 2, 30)]


def test_rows_are_found_by_what_makes_them_the_same():
    store = _store()
    store.add(_rows((0, 0, 10), (1, 1, 10), (0, 2, 30)))
    assert store.like(_rows((0, 9, 10)), ["_g", "ts"]).rows() == [(0, 0, 10)]
    assert store.like(_rows((0, 9, 11)), ["_g", "ts"]).rows() == []


def test_rows_within_spans_of_their_partition():
    store = _store()
    store.add(_rows((0, 0, 10), (0, 1, 20), (1, 2, 20), (2, 3, 20)))
    spans = pl.DataFrame({"_g": [0, 1], "_from": [15, 0], "_to": [20, 19], "more": ["a", "b"]})
    found = store.within(spans)
    assert found.rows() == [(0, 1, 20, 15, 20, "a")]


# -------------------------------------------------------------------- windows


def test_the_latest_window_stands_apart_and_the_others_by_t():
    store = _store()
    store.put(_windows((0, 0, 9), (0, 10, 19), (0, 20, 29), (1, 0, 9)), _t(10, 10, 0))
    assert _spans(store.heads) == [(0, 20), (1, 0)]
    assert _spans(store.pending) == [(0, 10)]
    assert _spans(store.done) == [(0, 0)]
    lines = store.head_lines(_t(0, 1, 2))
    assert lines[2] == -1
    assert [store.heads.row(i)[:2] for i in lines[:2]] == [(0, 20), (1, 0)]


def test_a_window_is_open_up_to_its_last_tick():
    store = _store()
    store.put(_windows((0, 0, 9), (0, 10, 19), (1, 0, 9)), _t(0, 0, 0))
    assert _spans(store.open_windows(_t(9, 10, 0))) == [(0, 0), (0, 10)]


def test_groups_with_a_window_in_some_state():
    store = _store()
    store.put(_windows((0, 0, 9), (0, 10, 19), pub=1), _t(0, 0, 0))
    store.put(_windows((2, 0, 9)), _t(0, 0, 0))
    assert store.groups_with(1, 3).tolist() == [True, False, False]
    assert store.groups_with(0, 3).tolist() == [False, False, True]


def test_what_is_taken_is_gone():
    store = _store()
    store.put(_windows((0, 0, 9), (0, 10, 19), (1, 0, 9)), _t(10, 0, 0))
    assert _spans(store.take(_t(0))) == [(0, 0), (0, 10)]
    assert _spans(store.take(_t(0, 1))) == [(1, 0)]
    assert store.take(_t(0, 1)).height == 0
    assert store.head_lines(_t(0, 1)).tolist() == [-1, -1]


def test_of_what_is_done_only_what_a_change_may_reach_is_taken():
    store = _store()
    store.put(_windows((0, 0, 9), (0, 10, 19), (0, 30, 39)), _t(20, 0, 0))
    store.put(_windows((0, 2, 5), dirty=True), _t(20, 0, 0))
    store.take(_t(0), _t(10, 0, 0))
    assert _spans(store.done) == [(0, 0)]
    assert store.heads.height == store.pending.height == 0


def test_heads_advance_and_leave_their_predecessors_behind():
    store = _store()
    store.put(_windows((0, 0, 9), (1, 0, 9)), _t(0, 0, 0))
    store.advance(_t(0), _windows((0, 20, 29)), _windows((0, 0, 9), (0, 10, 19)), _t(10, 0, 0))
    assert _spans(store.heads) == [(0, 20), (1, 0)]
    assert _spans(store.pending) == [(0, 10)]
    assert _spans(store.done) == [(0, 0)]


def test_pending_windows_are_overdue_once_t_has_passed_them():
    store = _store()
    assert store.overdue(_t(0), _t(99, 99, 99)).height == 0
    store.put(_windows((0, 0, 9), (0, 10, 19), (0, 20, 29)), _t(0, 0, 0))
    assert store.overdue(_t(0), _t(9, 0, 0)).height == 0
    assert _spans(store.overdue(_t(0), _t(10, 0, 0))) == [(0, 0)]
    assert _spans(store.pending) == [(0, 10)]


def test_done_windows_below_a_horizon_are_forgotten_unless_they_wait():
    store = _store()
    store.put(_windows((0, 0, 9), (0, 10, 19), (0, 20, 29)), _t(20, 0, 0))
    store.put(_windows((1, 0, 9), (1, 10, 19), dirty=True), _t(0, 20, 0))
    store.forget(_t(10, 10, 0))
    assert _spans(store.done) == [(0, 10), (1, 0)]


def test_more_groups_than_there_was_room_for():
    store = _store()
    store.put(_windows((2, 0, 9)), _t(0, 0, 0))
    store.reserve(1000)
    assert store.head_lines(_t(2, 999)).tolist() == [0, -1]
    store.put(_windows((999, 0, 9)), np.zeros(1000, np.int64))
    assert store.head_lines(_t(999)).tolist() == [1]


# -------------------------------------------------------------------- state


def test_a_delta_holds_what_changed_and_nothing_twice():
    store = _store()
    store.add(_rows((0, 0, 10), (1, 1, 20)))
    store.put(_windows((0, 0, 9), (1, 0, 9)), _t(0, 0, 0))
    store.delta(full=True)
    assert store.delta(full=False) == {}
    store.add(_rows((0, 2, 30), (0, 3, 40)))
    store.remove(_rows((1, 1, 20), (0, 3, 40)))
    store.put(store.take(_t(1)), _t(0, 0, 0))
    frames = store.delta(full=False)
    assert frames["rows"].rows() == [(0, 2, 30)]
    assert frames["rows.gone"].get_column("_seq").to_list() == [1, 3]
    assert frames["windows.gone"].rows() == [(1,)]
    assert _spans(frames["windows"]) == [(1, 0)]


_actions = st.lists(
    st.tuples(
        st.sampled_from(["rows", "remove", "windows", "take", "forget", "save"]),
        st.integers(0, 2),
        st.integers(0, 5),
    ),
    max_size=20,
)


def _all(store: Store) -> tuple[list[object], list[object]]:
    windows = pl.concat([store.heads, store.pending, store.done])
    return sorted(store.rows.rows()), sorted(windows.rows())


@settings(max_examples=drawn(100), deadline=None)
@given(_actions)
def test_deltas_in_their_order_restore_the_store(actions):
    store, copy, t = _store(), _store(), _t(25, 25, 25)
    for number, (kind, group, place) in enumerate([*actions, ("save", 0, 0)]):
        if kind == "rows":
            store.add(_rows((group, number, place)))
        elif kind == "remove":
            store.remove(store.rows.filter(pl.col("ts") == place))
        elif kind == "windows":
            known = store.take(_t(group))
            fresh = _windows((group, 10 * place, 10 * place + 9))
            both = pl.concat([known, fresh]).unique(["_g", "_wstart"], keep="last")
            store.put(both, t)
        elif kind == "take":
            store.take(_t(group))
        elif kind == "forget":
            store.forget(_t(*([10 * place] * 3)))
        else:
            copy.restore(store.delta(full=False), t)
            assert _all(copy) == _all(store)
    fresh_copy = _store()
    fresh_copy.restore(store.delta(full=True), t)
    assert _all(fresh_copy) == _all(store)
