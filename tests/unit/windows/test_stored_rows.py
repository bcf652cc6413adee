"""What of storage is a stream's own."""

from __future__ import annotations

import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import make_cutter
from penstock.windows.assign.ingest import Ingest
from penstock.windows.general.bound import Bound
from penstock.windows.general.stored_rows import StoredRows
from penstock.windows.rows.scope import Scope
from tests.unit.windows.assembly import groups_of
from tests.unit.windows.plans import MemoryHistory, frame, window_plan


class _Stored:
    """Rows of d1 at 10, 20 … in storage, each a write of its own."""

    def __init__(self, **given):
        plan = window_plan(**given)
        scope = Scope(plan)
        self.ingest = Ingest(scope, groups_of(plan), Aggregates(scope), make_cutter(scope))
        self.history = MemoryHistory()
        self.rows = frame([[("d1", 10 * n, float(n))] for n in range(1, 6)])
        self.history.add(self.rows)
        self.stored = StoredRows(self.ingest, self.history)

    def prepared(self, *offsets):
        made, _ = self.ingest.prepare(self.rows.filter(pl.col("_offset").is_in(offsets)))
        return made.with_columns(pl.Series("_offset", offsets, pl.Int64))

    def times(self, low=0, high=100, tables=None):
        found = self.stored.fetch(low, high, tables)
        return None if found is None else found.get_column("ts").to_list()


def test_rows_from_before_the_stream_are_not_its_own():
    made = _Stored()
    made.stored.begin(made.rows[2:])
    made.stored.begin(made.rows[1:])

    assert made.stored.first == 2
    assert made.times() == [30, 40, 50]
    assert made.times(high=20) is None


def test_all_rows_are_a_stream_s_that_fills_its_history():
    made = _Stored(fill_history=True)
    made.stored.begin(made.rows[2:])

    assert made.times(20, 40) == [20, 30, 40]


def test_rows_that_were_dropped_or_fail_where_do_not_count():
    made = _Stored(where="v < 5")
    made.stored.begin(made.rows)
    made.stored.drop(made.prepared(1))

    assert made.times() == [10, 30, 40]


def test_rows_may_count_again():
    made = _Stored()
    made.stored.begin(made.rows[1:])
    made.stored.drop(made.prepared(1, 3))

    before = made.stored.count_again(made.prepared(0, 1, 2), 10, 30)

    assert before.get_column("ts").to_list() == [10]
    assert made.stored.dropped.select("ts", "_offset").rows() == [(40, 3), (10, 0)]
    assert made.times() == [20, 30, 50]


def test_what_was_dropped_is_saved_once():
    made = _Stored()
    made.stored.begin(made.rows)
    made.stored.drop(made.prepared(1))
    first = made.stored.delta(full=False)
    made.stored.drop(made.prepared(2))
    second = made.stored.delta(full=False)
    copy = StoredRows(made.ingest, made.history)

    copy.restore(first, 0)
    copy.restore(second, 0)
    copy.restore(None, 0)

    assert (first.height, second.height, made.stored.delta(full=True).height) == (1, 1, 2)
    assert copy.dropped.equals(made.stored.dropped) and copy.first == 0
    assert copy.delta(full=False).height == 0


def test_rows_are_let_go_when_there_are_twice_as_many_as_were_left():
    bound = Bound(5)
    assert bound.allows(5) and not bound.allows(6) and not bound.trimmed

    bound.settle(4)

    assert bound.allows(8) and not bound.allows(9) and bound.trimmed
    bound.settle(1)
    assert bound.allows(5) and not bound.allows(6), "its room it has in any case"
