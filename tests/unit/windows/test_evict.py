"""Old rows leave memory and come back as they were: the rows that were live, and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import Session
from penstock.windows.general.evict import Evictor
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.kernel import EARLIEST
from tests.unit.windows.assembly import kernel_of, plan_with
from tests.unit.windows.plans import MemoryHistory, duration, frame, window_plan

SESSION = Session(duration("10a"))
#: four sessions of d1, of which all but the last are over
_OLD = [[("d1", t, float(t))] for t in (0, 5, 100, 200, 300)]


class _Stream:
    """A kernel and its source, which have had the same writes."""

    def __init__(self, window: Any = SESSION, *, stored: int = 0, **given: Any) -> None:
        self.history = MemoryHistory()
        plan = plan_with(window, **given) if window is not None else window_plan(**given)
        self.kernel: GeneralKernel = kernel_of(plan, self.history)
        self.evictor: Evictor = self.kernel.evictor
        self.offset = 0
        for _ in range(stored):
            self.history.add(frame([[("d1", -50, -1.0)]], first=self.offset))
            self.offset += 1

    def write(self, writes: list[Any], op: int = 0) -> None:
        """Some writes in one call, behind which rows are let go."""
        rows = frame(writes, first=self.offset, op=op)
        self.kernel.apply(rows)
        self.history.add(rows)
        self.offset += len(writes)

    def times(self) -> list[int]:
        return sorted(self.kernel.store.rows.get_column("ts").to_list())

    def windows(self) -> list[tuple[int, int, int]]:
        store = self.kernel.store
        both = pl.concat([store.heads, store.pending, store.done])
        return sorted(both.select("_wstart", "_stop", "_n").rows())


def test_rows_below_the_windows_that_may_change_are_let_go():
    stream = _Stream()
    stream.write(_OLD)
    assert stream.evictor.bound.trimmed
    # the latest window that is over stays beside the open one
    assert stream.times() == [200, 300]
    assert stream.windows() == [(200, 200, 1), (300, 300, 1)]
    assert stream.evictor.horizon.values[0] == 200


def test_without_a_history_everything_stays():
    kernel = kernel_of(plan_with(SESSION))
    kernel.apply(frame(_OLD))
    assert not kernel.evictor.bound.trimmed
    assert kernel.store.count == 5


def test_up_to_their_room_rows_stay():
    history = MemoryHistory()
    kernel = kernel_of(plan_with(SESSION), history, room=5)
    kernel.apply(frame(_OLD))
    assert kernel.store.count == 5


def test_a_stretch_that_is_asked_for_comes_back_with_its_windows():
    stream = _Stream()
    stream.write(_OLD)
    stream.evictor.load_range(0, 5)
    assert stream.times() == [0, 5, 100, 200, 300]
    assert stream.windows() == [(0, 5, 2), (100, 100, 1), (200, 200, 1), (300, 300, 1)]
    # windows that are read again are known as published
    assert stream.kernel.store.done.get_column("_pub").min() > 0


def test_a_stretch_of_other_tables_stays_where_it_is():
    stream = _Stream()
    stream.write(_OLD)
    stream.write([[("d22", 0, 1.0)]])
    stream.evictor.load_range(0, 5, ("d22",))
    assert 100 not in stream.times()
    stream.evictor.load_range(0, 5, ("D1",))
    assert 100 in stream.times()


def test_rows_of_a_call_bring_back_what_they_may_reach():
    stream = _Stream()
    stream.write(_OLD)
    made, _ = stream.kernel.ingest.prepare(frame([[("d1", 95, 1.0)]], first=9))
    stream.evictor.load_for(made)
    # the first window that was read may be cut off where reading began: it stays where it is
    assert stream.times() == [100, 200, 300]
    assert stream.evictor.horizon.values[0] == 6
    stream = _Stream()
    stream.write(_OLD)
    made, _ = stream.kernel.ingest.prepare(frame([[("d1", 310, 1.0)]], first=9))
    stream.evictor.load_for(made)
    assert stream.times() == [200, 300]


def test_rows_from_before_the_stream_are_not_its_own():
    stream = _Stream(stored=1)
    stream.write(_OLD)
    assert stream.evictor.stored.first == 1
    stream.evictor.load_range(-100, 5)
    assert stream.times() == [0, 5, 100, 200, 300]


def test_with_filled_history_they_are():
    stream = _Stream(stored=1, fill_history=True)
    stream.write(_OLD)
    stream.evictor.load_range(-100, 5)
    assert stream.times() == [-50, 0, 5, 100, 200, 300]


def test_rows_that_were_dropped_as_late_stay_out():
    stream = _Stream()
    stream.write(_OLD)
    stream.write([[("d1", 50, 9.0)]])
    assert stream.evictor.stored.dropped.select("ts", "_offset").rows() == [(50, 5)]
    stream.evictor.load_range(0, 300)
    assert stream.times() == [0, 5, 100, 200, 300]


def test_a_repeat_that_storage_has_once_is_kept_aside():
    stream = _Stream()
    stream.write([[("d1", 0, 1.0)], [("d1", 0, 2.0)], *_OLD[2:]])
    assert stream.times() == [200, 300]
    assert stream.evictor.extras.get_column("ts").to_list() == [0]
    stream.evictor.load_range(0, 0)
    assert stream.times() == [0, 0, 100, 200, 300]
    assert stream.windows()[0] == (0, 0, 2)
    assert stream.evictor.extras.height == 0


def test_deleted_rows_do_not_come_back():
    stream = _Stream(ignore_update=False)
    stream.write(_OLD)
    stream.write([[("d1", 100, None)]], op=DELETE)
    stream.write([[("d1", 400, 1.0)], [("d1", 500, 1.0)]])
    stream.evictor.load_range(0, 300)
    assert stream.times() == [0, 5, 200, 300, 400, 500]


def test_what_recalculate_found_counts_again():
    stream = _Stream(stored=1)
    stream.write(_OLD)
    stream.write([[("d1", 50, 9.0)]])
    rows = frame([[("d1", 50, 9.0)]], first=5)
    made, _ = stream.kernel.ingest.prepare(rows)
    stream.evictor.count_again(made.with_columns(rows.get_column("_offset")), 40, 60)
    assert stream.evictor.stored.dropped.height == 0
    stream.evictor.load_range(0, 300)
    assert 50 in stream.times()


def test_overlapping_windows_of_the_grid_come_back_whole():
    stream = _Stream(None, size="20a", sliding="10a")
    writes = [[("d1", t, float(t))] for t in range(0, 200, 5)]
    stream.write(writes)
    assert 25 not in stream.times()
    stream.evictor.load_range(25, 25)
    windows = {start: n for start, _, n in stream.windows()}
    # 25 lies in 10..30 and 20..40, which hold four rows each
    assert windows[10] == windows[20] == 4
    other = kernel_of(window_plan(size="20a", sliding="10a"))
    other.apply(frame(writes))
    every = pl.concat([other.store.heads, other.store.pending, other.store.done])
    wanted = {start: n for start, n in every.select("_wstart", "_n").rows()}
    assert {start: wanted[start] for start in windows} == windows


def test_horizons_and_what_was_dropped_survive_a_restart():
    stream = _Stream()
    stream.write([[("d1", 0, 1.0)], [("d1", 0, 2.0)], *_OLD[2:], [("d1", 50, 9.0)]])
    copy = _Stream()
    copy.history = stream.history
    copy.kernel.history = copy.evictor.stored.history = stream.history
    copy.kernel.restore([stream.kernel.delta(full=True)])
    assert copy.evictor.bound.trimmed
    assert copy.evictor.stored.first == stream.evictor.stored.first
    assert copy.evictor.horizon.values[0] == stream.evictor.horizon.values[0] != EARLIEST
    for each in (stream, copy):
        each.evictor.load_range(0, 300)
    assert copy.times() == stream.times() == [0, 0, 100, 200, 300]
    assert copy.windows() == stream.windows()


def test_a_delta_holds_only_what_was_dropped_since_the_last():
    stream = _Stream()
    stream.write(_OLD)
    stream.write([[("d1", 50, 9.0)]])
    assert stream.evictor.delta(full=False)["dropped"].get_column("ts").to_list() == [50]
    stream.write([[("d1", 60, 9.0)]])
    assert stream.evictor.delta(full=False)["dropped"].get_column("ts").to_list() == [60]
    assert "dropped" not in stream.evictor.delta(full=False)
    assert stream.evictor.delta(full=True)["dropped"].get_column("ts").to_list() == [50, 60]


def test_nothing_is_read_for_a_stretch_that_is_in_memory():
    stream = _Stream()
    stream.evictor.load_range(0, 10)  # before the first row
    stream.write(_OLD)
    before = stream.times()
    asked: list[tuple[int, int]] = []
    fetch = stream.history.fetch

    def note(low: int, high: int, tables: Any = None) -> pl.DataFrame:
        asked.append((low, high))
        return fetch(low, high, tables)

    stream.history.fetch = note  # type: ignore[method-assign]
    spans = pl.DataFrame({"_g": np.array([0]), "_lo": [300], "_hi": [400]})
    stream.evictor.load(spans)
    assert (stream.times(), asked) == (before, [])
    stream.evictor.load(spans.with_columns(_lo=100))
    assert asked


def test_what_counts_in_the_place_of_a_stored_version_stays_in_memory():
    """The second version of a row does not count: storage has it, the stream the first one."""
    stream = _Stream()
    stream.kernel.evictor.bound.room = 100
    stream.write(_OLD)
    made, _ = stream.kernel.ingest.prepare(frame([[("d1", 300, 9.0)]], first=5))
    stream.evictor.supersede(made.clear())
    assert stream.evictor.unstored.height == 0
    stream.evictor.supersede(made)
    kept = stream.kernel.store.rows.join(stream.evictor.unstored, on="_seq", how="semi")
    assert kept.get_column("ts").to_list() == [300]


def test_what_counted_below_the_horizon_is_fetched_before_it_is_replaced():
    stream = _Stream()
    stream.write(_OLD)
    made, _ = stream.kernel.ingest.prepare(frame([[("d1", 5, 9.0)]], first=5))
    stream.evictor.stored.drop(made.with_columns(_offset=pl.lit(5, pl.Int64)))
    stream.evictor.supersede(made)
    assert stream.evictor.extras.select("ts", "_x0").rows() == [(5, 5.0)]
    stream.history.add(frame([[("d1", 5, 9.0)]], first=5))
    stream.evictor.load_range(0, 300)
    values = stream.kernel.store.rows.filter(pl.col("ts") == 5).get_column("_x0").to_list()
    assert values == [5.0]
