"""What a write does to the live rows: a row more, or a row in the place of another."""

from __future__ import annotations

from typing import Any

import polars as pl

from penstock.rows.versions import DELETE, MERGE
from penstock.windows.general.live_rows import LiveRows
from penstock.windows.kernel import LATEST
from tests.unit.windows.assembly import hear, kernel_of, make_room
from tests.unit.windows.plans import MemoryHistory, frame, window_plan


class _Writes:
    """Live rows of one plan, and what writes to them change."""

    def __init__(self, **given: Any) -> None:
        self.kernel = kernel_of(window_plan(**given))
        self.live: LiveRows = self.kernel.live

    def write(self, rows: pl.DataFrame, floor: int | None = None) -> list[tuple[Any, ...]]:
        """(time, quiet, gone) of the points that a write changes; *floor*: it is late below it."""
        made, _ = self.kernel.ingest.prepare(rows)
        made = made.with_columns(_late=pl.lit(False))
        if floor is not None:
            made = made.with_columns(_floor=pl.lit(floor, pl.Int64))
        counting = made.filter(pl.col("_pass") & (pl.col("_op") != DELETE))
        make_room(self.kernel)
        _, points = self.live.change(made, counting)
        hear(self.kernel, counting)
        return sorted(points.select("_t", "_quiet", "_gone").rows())

    def rows(self) -> list[tuple[int, float]]:
        return sorted(self.kernel.store.rows.select("ts", "_x0").rows())


_COME = (False, False)


def test_a_repeat_is_one_row_more():
    writes = _Writes()
    assert writes.write(frame([[("d1", 10, 1.0)]])) == [(10, *_COME)]
    assert writes.write(frame([[("d1", 10, 2.0)]], first=1)) == [(10, *_COME)]
    assert writes.rows() == [(10, 1.0), (10, 2.0)]


def test_a_delete_takes_all_that_stand_before_it():
    writes = _Writes()
    writes.write(frame([[("d1", 10, 1.0), ("d1", 20, 2.0), ("d22", 10, 3.0)]]))
    assert writes.write(frame([[("d1", 10, None)]], first=1, op=DELETE)) == [(10, True, True)]
    assert writes.rows() == [(10, 3.0), (20, 2.0)]


def test_a_delete_spares_what_comes_behind_it_in_its_write():
    writes = _Writes()
    before = frame([[("d1", 10, 1.0)]])
    gone = frame([[("d1", 10, None)]], op=DELETE)
    after = frame([[("d1", 10, 2.0)]])
    writes.write(pl.concat([before, gone, after]))
    assert writes.rows() == [(10, 2.0)]


def test_an_update_replaces_quietly():
    writes = _Writes(ignore_update=False)
    assert writes.write(frame([[("d1", 10, 1.0)]])) == [(10, *_COME)]
    assert writes.write(frame([[("d1", 10, 2.0), ("d1", 11, 3.0)]], first=1)) == [
        (10, True, False),
        (10, True, True),
        (11, *_COME),
    ]
    assert writes.rows() == [(10, 2.0), (11, 3.0)]


def test_of_two_versions_in_one_write_the_last_counts():
    writes = _Writes(ignore_update=False)
    writes.write(frame([[("d1", 10, 1.0), ("d1", 10, 2.0)]]))
    assert writes.rows() == [(10, 2.0)]


def test_a_version_that_fails_where_takes_the_row_away():
    writes = _Writes(ignore_update=False, where="v < 5")
    writes.write(frame([[("d1", 10, 1.0)]]))
    assert writes.write(frame([[("d1", 10, 9.0)]], first=1)) == [(10, True, True)]
    assert writes.rows() == []


def test_a_deleted_row_may_come_again():
    writes = _Writes(ignore_update=False)
    writes.write(frame([[("d1", 10, 1.0)]]))
    writes.write(frame([[("d1", 10, None)]], first=1, op=DELETE))
    assert writes.rows() == []
    writes.write(frame([[("d1", 10, 2.0)]], first=2))
    assert writes.rows() == [(10, 2.0)]


def test_a_version_late_for_some_windows_leaves_the_earlier_one_there():
    writes = _Writes(ignore_update=False)
    writes.write(frame([[("d1", 10, 1.0)]]))
    writes.write(frame([[("d1", 10, 2.0)]], first=1), floor=20)
    found = writes.kernel.store.rows.sort("_x0").select("_x0", "_floor", "_ceiling").rows()
    assert [(x, ceiling) for x, _, ceiling in found] == [(1.0, 20), (2.0, LATEST)]
    assert found[1][1] == 20


def test_the_latest_time_is_that_of_the_table():
    writes = _Writes()
    writes.write(frame([[("d1", 10, 1.0), ("d1", 30, 1.0), ("d22", 20, 1.0)]]))
    made, _ = writes.kernel.ingest.prepare(frame([[("d1", 5, 1.0), ("d22", 5, 1.0)]]))
    assert writes.live.highest(made).tolist() == [30, 20]


def test_points_tell_where_when_and_how():
    writes = _Writes()
    made, _ = writes.kernel.ingest.prepare(frame([[("d1", 5, 1.0), ("d22", 6, 1.0)]]))
    points = writes.live.points(made, pl.col("ts") > 5, gone=True)
    assert points.rows() == [(0, 5, False, True), (1, 6, True, True)]


def _late_twice(first: int, second: int) -> list[tuple[float, int]]:
    """Value and ceiling of what counts of two versions in one write, late below these times."""
    writes = _Writes(ignore_update=False)
    made, _ = writes.kernel.ingest.prepare(frame([[("d1", 10, 1.0), ("d1", 10, 2.0)]]))
    made = made.with_columns(_late=pl.lit(False), _floor=pl.Series([first, second]))
    make_room(writes.kernel)
    writes.live.change(made, made)
    return sorted(writes.kernel.store.rows.select("_x0", "_ceiling").rows())


def test_of_two_late_versions_the_first_counts_up_to_where_the_second_begins():
    assert _late_twice(20, 30) == [(1.0, 30), (2.0, LATEST)]
    assert _late_twice(20, 20) == [(2.0, LATEST)]
    assert _late_twice(30, 20) == [(2.0, LATEST)]


def test_what_storage_has_otherwise_is_told_to_whoever_lets_rows_go():
    kernel = kernel_of(window_plan(), MemoryHistory(), room=100)
    source = pl.concat([frame([[("d1", 10, 1.0)]]), frame([[("d1", 20, 2.0)]], first=1, op=MERGE)])
    made, _ = kernel.ingest.prepare(source)
    made = made.with_columns(_late=pl.lit(False))
    kernel.live.note(made, made.clear(), source)
    # a part of a row counts as it was written, and is stored as the whole row that it made
    assert kernel.evictor.unstored.get_column("_seq").to_list() == [1]
    assert kernel.evictor.stored.dropped.select("ts", "_offset").rows() == [(20, 1)]
