"""Groups that are child tables are numbered as they appear, whatever numbers tables have."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from penstock.windows.groups.table_groups import TableGroups
from penstock.windows.groups.table_names import TableNames


@pytest.fixture
def names():
    made = TableNames()
    made.numbers(rows("a", "b", "c", "d"))
    return made


def rows(*tables):
    return pl.DataFrame({"tbname": tables}, schema={"tbname": pl.String})


def ints(*values):
    return np.array(values, np.int64)


def test_groups_come_in_order_of_their_first_rows(names):
    groups = TableGroups(names)

    assert groups.of_rows(rows("c", "a", "c")).tolist() == [0, 1, 0]
    assert groups.of_rows(rows("d", "a")).tolist() == [2, 1]
    assert len(groups) == 3
    assert groups.names(ints(2, 0)).to_list() == ["d", "c"]


def test_distinct_tables_are_new_groups_in_the_order_that_is_told(names):
    groups = TableGroups(names)

    assert groups.of_distinct(ints(0, 1, 3), lambda: ints(3, 0, 1)).tolist() == [1, 2, 0]
    assert groups.of_distinct(ints(1, 3), lambda: pytest.fail("all are known")).tolist() == [2, 0]


def test_tables_that_are_named_later_have_groups_too(names):
    groups = TableGroups(names)
    groups.of_rows(rows("b"))
    many = [f"t{i}" for i in range(100)]

    assert groups.of_rows(rows(*many, "b")).tolist() == [*range(1, 101), 0]
    assert groups.names(ints(100)).to_list() == ["t99"]


def test_the_group_of_a_name(names):
    groups = TableGroups(names)
    groups.of_rows(rows("b"))

    assert [groups.of_name(name) for name in ("b", "a", "new")] == [0, -1, -1]
