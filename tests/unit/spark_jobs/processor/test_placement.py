"""Which child tables belong to a partition, and which rows are in the wrong one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from penstock.rows.partition import partition
from penstock.windows.groups.table_names import TableNames
from spark_jobs.processor.placement import Placement
from tests.unit.spark_jobs.processor_kit import SOURCE

_FOUR = replace(SOURCE, partitions=4)
_NAMES = [f"placed{n}" for n in range(40)]
_HERE = [n for n in _NAMES if partition(n, 4) == 2]
_ELSEWHERE = [n for n in _NAMES if partition(n, 4) != 2]


def _placement(number: int) -> Placement:
    """What partition *number* knows before its first rows."""
    return Placement(number, TableNames())


def _find(placement: Placement, tables: list[str], table_id: int = 1) -> list[bool] | None:
    rows = pl.DataFrame({"tbname": tables})
    mask = placement.find_misplaced(rows, np.full(len(tables), table_id), _FOUR)
    return None if mask is None else mask.tolist()


def test_rows_of_its_own_tables_are_in_place():
    assert _find(_placement(2), _HERE) is None


def test_each_row_of_another_partitions_table_is_found():
    rows = [_HERE[0], _ELSEWHERE[0], _HERE[1], _ELSEWHERE[0]]
    placement = _placement(2)
    for _ in range(2):  # again, now that they are known
        assert _find(placement, rows) == [False, True, False, True]


def test_with_one_partition_nothing_is_misplaced():
    rows = pl.DataFrame({"tbname": _NAMES})
    assert _placement(0).find_misplaced(rows, np.full(len(_NAMES), 1), SOURCE) is None


def test_a_table_is_known_once_rows_of_it_were_seen():
    placement = _placement(2)
    assert not placement.is_home(_HERE[0], 1)
    _find(placement, [_HERE[0], _ELSEWHERE[0]])
    assert placement.is_home(_HERE[0], 1)
    assert not placement.is_home(_HERE[0], 9)  # of another supertable
    assert not placement.is_home(_ELSEWHERE[0], 1)
    assert not placement.is_home("a table that nobody has met", 1)


def test_tables_are_listed_by_their_supertable():
    placement = _placement(2)
    _find(placement, _HERE[:2], table_id=1)
    _find(placement, _HERE[2:3], table_id=7)
    assert placement.tables_of(1) == set(_HERE[:2])
    assert placement.tables_of(7) == {_HERE[2]}
    assert placement.tables_of(8) == set()


def test_a_table_that_was_made_again_under_another_supertable_moves_there():
    placement = _placement(2)
    _find(placement, _HERE[:1], table_id=1)
    assert _find(placement, _HERE[:1], table_id=7) is None
    assert placement.tables_of(1) == set()
    assert placement.tables_of(7) == set(_HERE[:1])
