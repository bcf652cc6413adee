"""A line of a frame per slot: what is put is read, until other lines take its place."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.accumulate.slot_lines import SlotLines


def _lines(slots: int) -> SlotLines:
    made = SlotLines()
    made.lines = np.zeros(slots, np.int64)
    return made


def _frame(*values: str) -> pl.DataFrame:
    return pl.DataFrame({"a": values, "b": [len(v) for v in values]})


def test_nothing_is_read_before_the_first_line():
    assert _lines(3).read(np.array([0, 1])) is None


def test_a_slot_without_a_line_reads_as_null():
    lines = _lines(3)
    lines.put(np.array([2, 0]), _frame("two", "zero"))
    found = lines.read(np.array([0, 1, 2]))
    assert found is not None
    assert found.rows() == [("zero", 4), (None, None), ("two", 3)]


def test_the_last_line_of_a_slot_counts_whatever_the_order_of_columns():
    lines = _lines(2)
    lines.put(np.array([0, 1]), _frame("old", "other"))
    lines.put(np.array([0]), _frame("new").select("b", "a"))
    found = lines.read(np.array([1, 0]))
    assert found is not None
    assert found.rows() == [("other", 5), ("new", 3)]


def test_many_small_puts_stay_in_few_chunks():
    lines = _lines(200)
    for slot in range(200):
        lines.put(np.array([slot]), _frame(f"v{slot}"))
    found = lines.read(np.arange(200))
    assert found is not None
    assert found.get_column("a").to_list() == [f"v{slot}" for slot in range(200)]
    assert found.n_chunks() < 100


def test_dead_lines_go_and_live_ones_keep_their_values():
    lines = _lines(10)
    slots = np.arange(10)
    for turn in range(500):
        lines.put(slots, _frame(*(f"{turn}.{s}" for s in range(10))))
    live = np.array([3, 7, 9])
    lines.compact(live)
    found = lines.read(live)
    assert found is not None
    assert found.get_column("a").to_list() == ["499.3", "499.7", "499.9"]
    assert lines.lines[live].tolist() == [1, 2, 3]  # right behind the line of NULLs


def test_few_dead_lines_stay_where_they_are():
    lines = _lines(2)
    lines.put(np.array([0, 1]), _frame("a", "b"))
    lines.put(np.array([0]), _frame("c"))
    before = lines.lines.tolist()
    lines.compact(np.array([0, 1]))
    assert lines.lines.tolist() == before
