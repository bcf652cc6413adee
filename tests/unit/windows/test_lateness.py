"""Which rows of a write come too late, by what was known before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl

from penstock.rows.versions import DELETE
from penstock.windows.clocks.lateness import Lateness
from penstock.windows.kernel import EARLIEST
from tests.unit.windows.assembly import kernel_of, make_room
from tests.unit.windows.plans import BY_TAG, frame, window_plan


class _Judge:
    """The lateness of a kernel that has had d1@25000; T is there, too."""

    def __init__(self, **given: Any) -> None:
        self.kernel = kernel_of(window_plan(**given))
        self.lateness: Lateness = self.kernel.lateness
        self.late: list[pl.DataFrame] = []
        self.kernel.apply(frame([[("d1", 25_000, 1.0)]]))

    def judge(self, source: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows left and dropped."""
        made, _ = self.kernel.ingest.prepare(source)
        make_room(self.kernel)
        if not self.kernel.ingest.groups.whole:
            made = made.with_columns(pl.Series("_behind", self.lateness.behind_table(made)))
        out: Any = SimpleNamespace(late=self.late)
        return self.lateness.drop(made, source, out)


def _times(rows: pl.DataFrame) -> list[int]:
    return rows.get_column("ts").to_list()


def test_a_row_is_late_once_its_window_is_over():
    judge = _Judge()
    source = frame([[("d1", 24_000, 1.0), ("d1", 9_000, 2.0), ("d1", 30_000, 3.0)]], first=1)
    left, lost = judge.judge(source)
    assert _times(left) == [24_000, 30_000]
    assert _times(lost) == [9_000]
    assert [f.rows() for f in judge.late] == [source[1:2].rows()]
    assert left.get_column("_late").to_list() == [False, False]


def test_a_watermark_gives_rows_time():
    left, lost = _Judge(watermark="20s").judge(frame([[("d1", 9_000, 2.0)]], first=1))
    assert (_times(left), _times(lost)) == ([9_000], [])


def test_late_rows_that_are_wanted_are_marked_and_stay():
    judge = _Judge(ignore_expired=False)
    left, lost = judge.judge(frame([[("d1", 24_000, 1.0), ("d1", 9_000, 2.0)]], first=1))
    assert left.select("ts", "_late").rows() == [(24_000, False), (9_000, True)]
    assert lost.height == 0 and not judge.late


def test_a_row_counts_in_those_of_its_windows_that_are_open():
    judge = _Judge(size="20s", sliding="10s")
    left, lost = judge.judge(frame([[("d1", 15_000, 1.0), ("d1", 24_000, 1.0)]], first=1))
    assert left.select("ts", "_floor").rows() == [(15_000, 25_000), (24_000, EARLIEST)]
    assert lost.height == 0


def test_rows_of_one_write_do_not_make_each_other_late():
    judge = _Judge()
    left, lost = judge.judge(frame([[("d22", 90_000, 1.0), ("d22", 1_000, 1.0)]], first=1))
    assert (_times(left), _times(lost)) == ([90_000, 1_000], [])
    left, lost = judge.judge(frame([[("d333", 90_000, 1.0)], [("d333", 1_000, 1.0)]], first=2))
    assert (_times(left), _times(lost)) == ([90_000], [1_000])


def test_a_table_that_is_behind_others_of_its_group_is_not_late():
    judge = _Judge(keys=BY_TAG)
    left, lost = judge.judge(frame([[("d2", 1_000, 1.0)], [("d1", 1_000, 1.0)]], first=1))
    assert [f.get_column("tbname").to_list() for f in judge.late] == [["d1"]]
    assert (left.height, lost.height) == (1, 1)


def test_rows_of_other_groups_tell_how_far_a_table_has_come():
    judge = _Judge(keys=BY_TAG)
    rows = frame([[("d1", 24_999, 1.0), ("d1", 25_000, 1.0), ("d2", 0, 1.0)]], first=1)
    made, _ = judge.kernel.ingest.prepare(rows)
    assert judge.lateness.behind_table(made).tolist() == [True, False, False]


def test_a_delete_is_never_late():
    judge = _Judge()
    left, lost = judge.judge(frame([[("d1", 1_000, None)]], first=1, op=DELETE))
    assert (left.height, lost.height) == (1, 0)


def test_behind_the_exchange_the_scan_has_seen_who_is_out_of_order():
    judge = _Judge()
    source = frame([[("d1", 9_000, 1.0), ("d1", 9_001, 1.0)]], first=1)
    left, lost = judge.judge(source.with_columns(_late=pl.Series([False, True])))
    assert (_times(left), _times(lost)) == ([9_000], [9_001])


def test_a_row_that_fails_where_is_dropped_without_being_reported():
    judge = _Judge(where="v > 1")
    judge.kernel.apply(frame([[("d1", 25_000, 5.0)]], first=1))
    left, lost = judge.judge(frame([[("d1", 9_000, 1.0)]], first=2))
    assert (left.height, lost.height) == (0, 1)
    assert not judge.late


def test_a_window_whose_last_tick_is_t_is_not_over():
    judge = _Judge()
    judge.kernel.apply(frame([[("d1", 29_999, 1.0)]], first=1))
    left, _ = judge.judge(frame([[("d1", 20_500, 1.0)]], first=2))
    assert _times(left) == [20_500]
    judge.kernel.apply(frame([[("d1", 30_000, 1.0)]], first=3))
    _, lost = judge.judge(frame([[("d1", 20_500, 1.0)]], first=4))
    assert _times(lost) == [20_500]
