"""A write decides nothing about its own rows: none is late for another, and what it takes back is
only what stands before that in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import Key, StreamPlan
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.interval.kernel import IntervalKernel
from tests.nightly import drawn
from tests.unit.windows.plans import BY_TABLE, BY_TAG, MemoryHistory, Table, frame, window_plan
from tests.unit.windows.test_controls import frame as writes_of_one_row
from tests.unit.windows.test_controls import kernel, shown

Line = tuple[int, str, int]
Kind = type[IntervalKernel] | type[GeneralKernel]
KINDS = pytest.mark.parametrize("kind", [IntervalKernel, GeneralKernel])


def _calls(writes: Sequence[Sequence[Line]], cuts: Sequence[int]) -> list[pl.DataFrame]:
    """The writes, with a new call behind each of those at *cuts*."""
    parts = [
        frame([[(t, ts, 1.0) for _, t, ts in w]], n).with_columns(
            _op=pl.Series([op for op, *_ in w], dtype=pl.Int8)
        )
        for n, w in enumerate(writes)
    ]
    edges = sorted({0, len(parts), *(c for c in cuts if c < len(parts))})
    return [pl.concat(parts[low:high]) for low, high in zip(edges, edges[1:], strict=False)]


def _play(kind: Kind, plan: StreamPlan, calls: Sequence[pl.DataFrame]) -> Table:
    history = MemoryHistory()
    table = Table()
    made = kind(plan, history)
    for rows in calls:
        table.take(made.apply(rows))
        history.add(rows)
    return table


def _counts(table: Table) -> dict[object, object]:
    """Rows of each window, by its start."""
    return {key[1]: row[1] for key, row in table.rows.items()}


@KINDS
@pytest.mark.parametrize("keys", [BY_TABLE, BY_TAG, ()])
@pytest.mark.parametrize("trigger", ["at_once", "window_close"])
@pytest.mark.parametrize("cuts", [[], [1], [1, 2]])
def test_a_row_is_late_for_earlier_writes_only(
    kind: Kind, keys: tuple[Key, ...], trigger: str, cuts: list[int]
) -> None:
    plan = window_plan((("count", None),), keys=keys, trigger=trigger)  # type: ignore[arg-type]
    own = [
        (UPSERT, "d1", 95_000),
        (UPSERT, "d1", 3_000),
        (UPSERT, "d1", 50_000),
        (UPSERT, "d1", 4_000),
    ]
    table = _play(kind, plan, _calls([[(UPSERT, "d1", 0)], own, [(UPSERT, "d1", 1_000)]], cuts))
    assert table.late == 1
    assert {start: n for start, n in _counts(table).items() if start != 90_000} == {0: 3, 50_000: 1}


@KINDS
@pytest.mark.parametrize("keys", [BY_TABLE, BY_TAG, ()])
@pytest.mark.parametrize("trigger", ["at_once", "window_close"])
def test_a_row_behind_a_delete_of_its_own_write_is_not_late(
    kind: Kind, keys: tuple[Key, ...], trigger: str
) -> None:
    plan = window_plan((("count", None),), keys=keys, trigger=trigger)  # type: ignore[arg-type]
    own = [(UPSERT, "d1", 95_000), (DELETE, "d1", 0), (UPSERT, "d1", 3_000)]
    table = _play(kind, plan, _calls([[(UPSERT, "d1", 0)], own], [1]))
    assert table.late == 0
    assert _counts(table).get(0) == 1


@KINDS
def test_a_delete_takes_what_stands_before_it_in_its_own_write(kind: Kind) -> None:
    plan = window_plan((("count", None),))
    own = [
        (UPSERT, "d1", 1_000),
        (UPSERT, "d1", 1_000),
        (DELETE, "d1", 1_000),
        (UPSERT, "d1", 1_000),
        (UPSERT, "d1", 2_000),
    ]
    assert _counts(_play(kind, plan, _calls([own], []))) == {0: 2}


@pytest.mark.parametrize("by", ["tbname", "b"])
@pytest.mark.parametrize("notify", ["", "NOTIFY ('ws://127.0.0.1:1/n') ON ('WINDOW_CLOSE')"])
@pytest.mark.parametrize("steps", [[0, 0, 0, 0], [0, 1, 2, 3]])
def test_a_delete_takes_what_stands_before_it_in_windows_of_any_kind(
    by: str, notify: str, steps: list[int]
) -> None:
    made = kernel(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met"
        f" {'PARTITION BY tbname' if by == 'tbname' else 'PARTITION BY b'} SESSION(ts, 10a) {notify}"
    )
    ops = [UPSERT, UPSERT, DELETE, UPSERT]
    marks = [0, 0, None, 0]
    rows = writes_of_one_row(("d1", 0, 1), ("d1", 5, 1), ("d1", 5, 1), ("d1", 5, 1))
    rows = rows.with_columns(
        _step=pl.Series(steps, dtype=pl.UInt32),
        _op=pl.Series(ops, dtype=pl.Int8),
        b=pl.Series(marks, dtype=pl.Int32),
    )
    assert shown(made.apply(rows)) == [(0, 0, 2)]


lines = st.tuples(
    st.sampled_from([UPSERT, UPSERT, UPSERT, DELETE]),
    st.sampled_from(["d1", "d2", "d33"]),
    st.integers(0, 24).map(lambda n: n * 2_500),
)
plans = st.fixed_dictionaries(
    {
        "sliding": st.sampled_from([None, "5s"]),
        "watermark": st.sampled_from(["0a", "15s"]),
        "trigger": st.sampled_from(["at_once", "window_close"]),
        "keys": st.sampled_from([BY_TABLE, BY_TAG, ()]),
    }
)


@settings(deadline=None, max_examples=drawn(100))
@given(
    st.lists(st.lists(lines, min_size=1, max_size=5), min_size=1, max_size=12),
    plans,
    st.lists(st.integers(1, 11), max_size=6),
)
def test_writes_with_deletes_come_out_the_same_in_all_kernels_and_cuts(
    writes: list[list[Line]], given_: dict[str, object], cuts: list[int]
) -> None:
    plan = window_plan((("count", None), ("sum", "v")), **given_)  # type: ignore[arg-type]
    alone = _play(IntervalKernel, plan, _calls(writes, range(len(writes))))
    for kind in (IntervalKernel, GeneralKernel):
        for chosen in (cuts, range(len(writes))):
            table = _play(kind, plan, _calls(writes, chosen))
            assert (table.rows, table.late) == (alone.rows, alone.late), (kind, chosen)
