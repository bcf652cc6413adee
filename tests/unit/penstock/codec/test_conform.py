"""Columns from the wire made into the newest version's: what does not fit is noted, never raised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.codec.conform import (
    Failed,
    check_range,
    conform_column,
    counts_of,
    narrow,
    write_numbers,
)
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.nightly import drawn

INF = float("inf")
LIMITS = (-100, 100)


def conformed(values: pa.Array, kind: ColumnType) -> tuple[list[Any], list[list[int]]]:
    """Values, and the rows of each note."""
    failed: Failed = []
    target = pa.int64() if kind.kind == "TIMESTAMP" else kind.arrow("ms")
    out = conform_column(values, Column("c", kind), target, LIMITS, failed)
    assert out.type == target
    assert {name for name, _ in failed} <= {"c"}
    return out.to_pylist(), [np.flatnonzero(rows).tolist() for _, rows in failed]


@pytest.mark.parametrize(
    ("array", "kind", "values", "failed"),
    [
        (pa.array([1, None]), ColumnType("BIGINT"), [1, None], []),
        (pa.array([-1, 5]), ColumnType("BIGINT UNSIGNED"), [2**64 - 1, 5], []),
        (pa.array([1, 300, None, -129]), ColumnType("TINYINT"), [1, None, None, None], [[1, 3]]),
        (pa.array([-1, 2]), ColumnType("INT UNSIGNED"), [None, 2], [[0]]),
        (pa.array([1.0, INF, None, -INF]), ColumnType("DOUBLE"), [1.0, INF, None, -INF], [[1, 3]]),
        (
            pa.array([0, 101, None, -101]),
            ColumnType("TIMESTAMP"),
            [0, 101, None, -101],
            [[1, 3]],
        ),
        (pa.array(["ab", "abc", None]), ColumnType("VARCHAR", 2), ["ab", "abc", None], [[1]]),
        (pa.array(["é", "éa"]), ColumnType("VARCHAR", 2), ["é", "éa"], [[1]]),
        (pa.array(["éé", "ééa"]), ColumnType("NCHAR", 2), ["éé", "ééa"], [[1]]),
        (pa.array(["ab"]), ColumnType("NCHAR", 2), ["ab"], []),
        (pa.array([b"a", b"abc"]), ColumnType("VARBINARY", 2), [b"a", b"abc"], [[1]]),
        (pa.array([None, None], pa.string()), ColumnType("VARCHAR", 2), [None, None], []),
        (pa.array([], pa.string()), ColumnType("VARCHAR", 2), [], []),
    ],
)
def test_a_value_that_does_not_fit_is_noted(
    array: pa.Array, kind: ColumnType, values: list[Any], failed: list[list[int]]
) -> None:
    assert conformed(array, kind) == (values, failed)


def test_a_column_of_its_type_is_taken_as_it_is() -> None:
    failed: Failed = []
    array = pa.array([1, 2])
    assert narrow(array, pa.int64(), "c", failed) is array
    assert narrow(array, pa.int16(), "c", failed).to_pylist() == [1, 2]
    assert failed == []


def test_a_range_is_of_a_measure_and_null_is_in_it() -> None:
    failed: Failed = []
    array = pa.array(["a", None, "bcd"])
    lengths = pa.array([1, None, 3])
    check_range(array, lengths, 0, 3, "c", failed)
    assert failed == []
    check_range(array, lengths, 0, 2, "c", failed)
    check_range(array, lengths, 2, 9, "c", failed)
    assert [rows.tolist() for _, rows in failed] == [[False, False, True], [True, False, False]]


def lists(counts: list[list[int]]) -> pa.ListArray:
    return pa.array(counts, pa.list_(pa.int64()))


def test_items_are_counted_by_offsets() -> None:
    assert counts_of(lists([[1, 2], [], [3]])).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("writes", "counts", "numbers", "after", "wrong"),
    [
        # without counts each record is a write
        ([[], []], [2, 1], [10, 10, 11], 12, []),
        ([[1, 2], [1]], [3, 1], [10, 11, 11, 12], 13, []),
        ([[], [1, 1]], [2, 2], [10, 10, 11, 12], 13, []),
        # counts that do not add up: the record keeps one number
        ([[1, 1], [2]], [3, 2], [10, 10, 10, 11, 11], 12, [0]),
        ([[2], [-1, 3]], [2, 2], [10, 10, 11, 11], 12, [1]),
        ([[0, 2]], [2], [11, 11], 12, []),
    ],
)
def test_writes_are_numbered_through_the_records(
    writes: list[list[int]], counts: list[int], numbers: list[int], after: int, wrong: list[int]
) -> None:
    found, following, bad = write_numbers(lists(writes), np.array(counts), 10)
    assert (found.tolist(), following, bad.tolist()) == (numbers, after, wrong)


@settings(max_examples=drawn(100), deadline=None)
@given(some.lists(some.lists(some.integers(1, 4), max_size=4), min_size=1, max_size=6))
def test_every_row_gets_the_number_of_its_write(writes: list[list[int]]) -> None:
    counts = [sum(w) or 2 for w in writes]
    wanted: list[int] = []
    step = 0
    for sizes, count in zip(writes, counts, strict=True):
        for size in sizes or [count]:
            wanted += [step] * size
            step += 1
    found, following, bad = write_numbers(lists(writes), np.array(counts), 0)
    assert (found.tolist(), following, bad.tolist()) == (wanted, step, [])
