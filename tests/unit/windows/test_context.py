"""What kernels share: numbers of tables, and nothing with kernels of another context."""

from __future__ import annotations

import polars as pl

from penstock.windows import KernelContext
from penstock.windows.groups.table_names import OneChild, TableNames
from penstock.windows.interval.kernel import IntervalKernel
from tests.unit.windows.plans import frame, window_plan


def tables(*names):
    return pl.DataFrame({"tbname": list(names)})


def test_tables_are_numbered_in_the_order_in_which_they_come():
    names = TableNames()
    assert names.numbers(tables("b", "a", "b")).tolist() == [0, 1, 0]
    assert names.numbers(tables("c", "a")).tolist() == [2, 1]
    assert len(names) == 3
    assert names.names(pl.Series([2, 0]).to_numpy()).to_list() == ["c", "b"]
    assert (names.met("a"), names.met("nobody")) == (1, -1)


def test_many_rows_get_the_same_numbers_as_few():
    names = TableNames()
    known = names.numbers(tables("a", "b")).tolist()
    many = names.numbers(tables(*["a", "b"] * 2_000)).tolist()
    assert many == known * 2_000


def test_the_rows_of_one_child_table_are_picked_whatever_the_case():
    names = TableNames()
    child = OneChild("Dev1", names)
    rows, numbers = child.rows(tables("dev1", "dev2", "DEV1"))
    assert rows["tbname"].to_list() == ["dev1", "DEV1"]
    assert names.names(numbers).to_list() == ["dev1", "DEV1"]
    assert child.rows(tables("dev2", "other"))[0].height == 0


def test_a_kernel_numbers_tables_in_its_own_context_only():
    mine = KernelContext()
    others = KernelContext()
    IntervalKernel(window_plan(), context=mine).apply(frame([[("d1", 1, 1.0), ("d2", 1, 1.0)]]))
    IntervalKernel(window_plan()).apply(frame([[("d3", 1, 1.0)]]))
    assert (len(mine.tables), len(others.tables)) == (2, 0)
